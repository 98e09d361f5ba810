//! A `.zt` file in parts, of any generation, and what a reader has to see in it.
//!
//! ```
//! use zt::DType;
//! use zt_conformance::draft::{Draft, Item};
//!
//! let item = Item::dense(&[2], DType::U8, &[7, 9]);
//! let bytes = Draft::v1_2().with("pair", item).build();
//! assert_eq!(zt::File::from_bytes(bytes)?.tensor("pair")?.to_vec::<u8>()?, [7, 9]);
//! # Ok::<(), zt::Error>(())
//! ```
//!
//! Every field can be replaced, left out or doubled before the file is built, and the manifest as a
//! whole, its declared size and the bytes of the file after that. Fields are written in the order of
//! the real writers' structs, not in the deterministic one, so that no case depends on it.

use zt::{Attributes, DType, DigestAlgorithm};

use crate::cbor::{self, Cbor, Edits, Fields, array, attributes, map, text, uint, uints};
use crate::digest;

/// The three ways to bend the map of an object or of a component.
macro_rules! edits {
    () => {
        /// Replaces or adds a field.
        #[must_use]
        pub fn set(mut self, key: &str, value: Cbor) -> Self {
            self.edits.set(key, value);
            self
        }

        /// Leaves out a field.
        #[must_use]
        pub fn unset(mut self, key: &str) -> Self {
            self.edits.unset(key);
            self
        }

        /// Adds a pair, whatever is there.
        #[must_use]
        pub fn push(mut self, key: Cbor, value: Cbor) -> Self {
            self.edits.push(key, value);
            self
        }
    };
}

/// Which generation a file is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// `ZTEN0001`, an array of tensors.
    V0_1,
    /// `ZTEN1000` without a footer, a map with `tensors`.
    V1_0,
    /// `ZTEN1000` at both ends, version 1.1.0.
    V1_1,
    /// `ZTEN1000` at both ends, version 1.2.0.
    V1_2,
}

/// A file on its way.
#[derive(Debug, Clone)]
pub struct Draft {
    generation: Generation,
    version: String,
    attributes: Option<Attributes>,
    root: Edits,
    items: Vec<(Cbor, Item)>,
    /// The file up to here, the header included.
    bytes: Vec<u8>,
    padding: u8,
    manifest: Option<Cbor>,
    size: Option<u64>,
}

/// An object on its way.
#[derive(Debug, Clone)]
pub struct Item {
    /// What a reader has to see.
    pub shape: Vec<u64>,
    /// What a reader has to see.
    pub format: String,
    /// What a reader has to see; also what is written.
    pub attributes: Option<Attributes>,
    /// In the order of the file.
    pub parts: Vec<Part>,
    edits: Edits,
}

/// A component on its way.
#[derive(Debug, Clone)]
pub struct Part {
    /// Its role.
    pub role: String,
    /// What a reader has to see; `None` where the file does not say.
    pub dtype: Option<DType>,
    /// What is written, and what a reader has to see unless it repeats the dtype.
    pub logical_type: Option<String>,
    /// The decoded little-endian bytes that a reader has to see.
    pub decoded: Vec<u8>,
    /// The digest's text.
    pub digest: Option<String>,
    /// Whether the stored bytes are zstd.
    pub zstd: bool,
    stored: Vec<u8>,
    place: Place,
    edits: Edits,
}

#[derive(Debug, Clone, Copy)]
enum Place {
    /// The next multiple of 64.
    Next,
    /// So many bytes after the next multiple of 64.
    After(u64),
    /// The blob is there already.
    At(u64),
}

impl Draft {
    /// A file of that generation without objects.
    #[must_use]
    pub fn new(generation: Generation) -> Self {
        let (magic, version) = match generation {
            Generation::V0_1 => (zt::container::MAGIC_0_1, ""),
            Generation::V1_0 => (zt::container::MAGIC, "1.0"),
            Generation::V1_1 => (zt::container::MAGIC, "1.1.0"),
            Generation::V1_2 => (zt::container::MAGIC, "1.2.0"),
        };
        Draft {
            generation,
            version: version.to_owned(),
            attributes: None,
            root: Edits::default(),
            items: Vec::new(),
            bytes: magic.to_vec(),
            padding: 0,
            manifest: None,
            size: None,
        }
    }

    /// A file as we write it, but for the order of keys.
    #[must_use]
    pub fn v1_2() -> Self {
        Self::new(Generation::V1_2)
    }

    /// A file as the writers of 1.1 made it.
    #[must_use]
    pub fn v1_1() -> Self {
        Self::new(Generation::V1_1)
    }

    /// A file as the writers of 1.0 made it.
    #[must_use]
    pub fn v1_0() -> Self {
        Self::new(Generation::V1_0)
    }

    /// A file as the writers of 0.1 made it.
    #[must_use]
    pub fn v0_1() -> Self {
        Self::new(Generation::V0_1)
    }

    /// The version that is declared, where there is one.
    #[must_use]
    pub fn version(mut self, version: &str) -> Self {
        version.clone_into(&mut self.version);
        self
    }

    /// The file's attributes.
    #[must_use]
    pub fn attributes(mut self, attributes: Attributes) -> Self {
        self.attributes = Some(attributes);
        self
    }

    /// Stores an item's blobs and lists it. Bytes between blobs are as [`Draft::padding`] says.
    #[must_use]
    pub fn with(self, name: &str, item: Item) -> Self {
        self.with_name(text(name), item)
    }

    /// As [`Draft::with`], under any key.
    #[must_use]
    pub fn with_name(mut self, name: Cbor, mut item: Item) -> Self {
        for part in &mut item.parts {
            part.place = Place::At(self.store(&part.stored, part.place));
        }
        self.items.push((name, item));
        self
    }

    /// Lists an item without storing anything: its parts are where the first item's parts of the
    /// same roles are.
    #[must_use]
    pub fn tied(mut self, name: &str, mut item: Item) -> Self {
        let (_, first) = self.items.first().expect("an item to share with");
        for part in &mut item.parts {
            part.place = first.get(&part.role).place;
        }
        self.items.push((text(name), item));
        self
    }

    fn store(&mut self, stored: &[u8], place: Place) -> u64 {
        let next = self.bytes.len().next_multiple_of(64);
        let start = match place {
            Place::Next => next as u64,
            Place::After(distance) => next as u64 + distance,
            Place::At(offset) => return offset,
        };
        self.bytes.resize(start as usize, self.padding);
        self.bytes.extend(stored);
        start
    }

    /// What lies between blobs from now on.
    #[must_use]
    pub fn padding(mut self, byte: u8) -> Self {
        self.padding = byte;
        self
    }

    /// Puts bytes after the last blob that belong to none.
    #[must_use]
    pub fn gap(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend(bytes);
        self
    }

    /// Replaces or adds a field of the root.
    #[must_use]
    pub fn set(mut self, key: &str, value: Cbor) -> Self {
        self.root.set(key, value);
        self
    }

    /// Leaves out a field of the root.
    #[must_use]
    pub fn unset(mut self, key: &str) -> Self {
        self.root.unset(key);
        self
    }

    /// Adds a pair to the root, whatever is there.
    #[must_use]
    pub fn push(mut self, key: Cbor, value: Cbor) -> Self {
        self.root.push(key, value);
        self
    }

    /// Takes these bytes for the manifest.
    #[must_use]
    pub fn manifest(mut self, manifest: Cbor) -> Self {
        self.manifest = Some(manifest);
        self
    }

    /// Declares this size of the manifest.
    #[must_use]
    pub fn size(mut self, size: u64) -> Self {
        self.size = Some(size);
        self
    }

    /// The manifest as it stands.
    #[must_use]
    pub fn cbor(&self) -> Cbor {
        if let Some(manifest) = &self.manifest {
            return manifest.clone();
        }
        let mut root = Fields::default();
        match self.generation {
            Generation::V0_1 => {
                let tensors: Vec<Cbor> = self
                    .items
                    .iter()
                    .map(|(name, item)| item.tensor_0_1(name))
                    .collect();
                return array(&tensors);
            }
            Generation::V1_0 => {
                root.set("version", text(&self.version));
                root.set("generator", text("conformance"));
                root.set(
                    "attributes",
                    attributes(&self.attributes.clone().unwrap_or_default()),
                );
            }
            Generation::V1_1 | Generation::V1_2 => {
                root.set("version", text(&self.version));
                if let Some(content) = &self.attributes {
                    root.set("attributes", attributes(content));
                }
            }
        }
        let object = |(name, item): &(Cbor, Item)| (name.clone(), item.encode(self.generation));
        let objects: Vec<(Cbor, Cbor)> = self.items.iter().map(object).collect();
        let key = if self.generation == Generation::V1_0 {
            "tensors"
        } else {
            "objects"
        };
        root.set(key, map(&objects));
        self.root.apply(&mut root);
        root.encode()
    }

    /// The file.
    #[must_use]
    pub fn build(&self) -> Vec<u8> {
        let manifest = self.cbor();
        let mut bytes = self.bytes.clone();
        bytes.extend(&manifest);
        bytes.extend(self.size.unwrap_or(manifest.len() as u64).to_le_bytes());
        if matches!(self.generation, Generation::V1_1 | Generation::V1_2) {
            bytes.extend(zt::container::MAGIC);
        }
        bytes
    }

    /// The file, changed.
    #[must_use]
    pub fn build_with(&self, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut bytes = self.build();
        change(&mut bytes);
        bytes
    }

    /// What a reader has to see: generation, version, attributes, and objects by name.
    pub(crate) fn truth(&self) -> (Generation, &str, Option<&Attributes>, Vec<(String, &Item)>) {
        let items = self
            .items
            .iter()
            .map(|(key, item)| (decoded_name(key), item))
            .collect();
        (
            self.generation,
            &self.version,
            self.attributes.as_ref(),
            items,
        )
    }
}

/// The text of a key that [`text`] or [`cbor::chunked`] made.
fn decoded_name(name: &Cbor) -> String {
    let chunks = |mut rest: &[u8]| {
        let mut out = Vec::new();
        while let Some((&first, after)) = rest.split_first() {
            if first == cbor::BREAK {
                break;
            }
            let (len, after) = match first & 31 {
                24 => (usize::from(after[0]), &after[1..]),
                25 => (
                    usize::from(after[0]) << 8 | usize::from(after[1]),
                    &after[2..],
                ),
                len => (usize::from(len), after),
            };
            out.extend(&after[..len]);
            rest = &after[len..];
        }
        String::from_utf8_lossy(&out).into_owned()
    };
    match name.split_first() {
        Some((0x7f, rest)) => chunks(rest),
        _ => chunks(name),
    }
}

impl Item {
    /// An object without components.
    #[must_use]
    pub fn new(shape: &[u64], format: &str) -> Self {
        Item {
            shape: shape.to_vec(),
            format: format.to_owned(),
            attributes: None,
            parts: Vec::new(),
            edits: Edits::default(),
        }
    }

    /// A dense object of these little-endian bytes.
    #[must_use]
    pub fn dense(shape: &[u64], dtype: DType, bytes: &[u8]) -> Self {
        Item::new(shape, "dense").part(Part::new("data", dtype, bytes))
    }

    /// A matrix by rows, of values of one byte.
    #[must_use]
    pub fn csr(shape: &[u64], values: &[u8], indices: &[u64], indptr: &[u64]) -> Self {
        Item::new(shape, "sparse_csr")
            .part(Part::new("values", DType::U8, values))
            .part(Part::new("indices", DType::U64, &le_u64(indices)))
            .part(Part::new("indptr", DType::U64, &le_u64(indptr)))
    }

    /// Values of one byte with their coordinates, dimension by dimension.
    #[must_use]
    pub fn coo(shape: &[u64], values: &[u8], coords: &[u64]) -> Self {
        Item::new(shape, "sparse_coo")
            .part(Part::new("values", DType::U8, values))
            .part(Part::new("coords", DType::U64, &le_u64(coords)))
    }

    /// Adds a component.
    #[must_use]
    pub fn part(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    /// Replaces the component of the same role.
    #[must_use]
    pub fn replace(mut self, part: Part) -> Self {
        let place = self.parts.iter_mut().find(|known| known.role == part.role);
        *place.expect("a component of that role") = part;
        self
    }

    /// Sets the attributes.
    #[must_use]
    pub fn attributes(mut self, attributes: Attributes) -> Self {
        self.attributes = Some(attributes);
        self
    }

    edits!();

    /// Changes the component of that role.
    #[must_use]
    pub fn change(mut self, role: &str, change: impl FnOnce(Part) -> Part) -> Self {
        let at = self.parts.iter().position(|part| part.role == role);
        let at = at.expect("a component of that role");
        self.parts[at] = change(self.parts[at].clone());
        self
    }

    fn get(&self, role: &str) -> &Part {
        self.parts
            .iter()
            .find(|part| part.role == role)
            .expect("a component of that role")
    }

    fn encode(&self, generation: Generation) -> Cbor {
        let mut fields = Fields::default();
        if generation == Generation::V1_0 {
            let elements = self.parts.iter().find(|part| {
                matches!(part.role.as_str(), "data" | "values") && part.dtype.is_some()
            });
            let dtype = elements.and_then(|part| part.dtype).unwrap_or(DType::U8);
            fields.set("dtype", text(long_name(dtype)));
        }
        fields.set("shape", uints(&self.shape));
        fields.set("format", text(&self.format));
        if let Some(content) = &self.attributes {
            fields.set("attributes", attributes(content));
        }
        let component = |part: &Part| (text(&part.role), part.encode(generation));
        fields.set(
            "components",
            map(&self.parts.iter().map(component).collect::<Vec<_>>()),
        );
        self.edits.apply(&mut fields);
        fields.encode()
    }

    /// A tensor of 0.1: one blob, all in one map of indefinite length.
    fn tensor_0_1(&self, name: &Cbor) -> Cbor {
        let part = self.get("data");
        let mut fields = Fields::default();
        fields.set("name", name.clone());
        fields.set("offset", uint(part.offset()));
        fields.set("size", uint(part.stored.len() as u64));
        fields.set("dtype", text(long_name(part.dtype.unwrap_or(DType::U8))));
        fields.set("layout", text(&self.format));
        fields.set("shape", uints(&self.shape));
        fields.set("encoding", text(if part.zstd { "zstd" } else { "raw" }));
        if let Some(digest) = &part.digest {
            fields.set("checksum", text(digest));
        }
        part.edits.apply(&mut fields);
        self.edits.apply(&mut fields);
        cbor::indefinite_map(fields.pairs())
    }
}

impl Part {
    /// A raw component at the next multiple of 64.
    #[must_use]
    pub fn new(role: &str, dtype: DType, bytes: &[u8]) -> Self {
        Part {
            role: role.to_owned(),
            dtype: Some(dtype),
            logical_type: None,
            decoded: bytes.to_vec(),
            digest: None,
            zstd: false,
            stored: bytes.to_vec(),
            place: Place::Next,
            edits: Edits::default(),
        }
    }

    /// The bytes mean this.
    #[must_use]
    pub fn logical(mut self, name: &str) -> Self {
        self.logical_type = Some(name.to_owned());
        self
    }

    /// The dtype is not in the file, as in layout 1.0 for roles that it does not define.
    #[must_use]
    pub fn untyped(mut self) -> Self {
        self.dtype = None;
        self
    }

    /// These zstd frames are stored instead of the decoded bytes.
    #[must_use]
    pub fn frames(mut self, frames: Vec<u8>) -> Self {
        self.stored = frames;
        self.zstd = true;
        self
    }

    /// These bytes are stored, and the decoded ones stay what they are.
    #[must_use]
    pub fn stored(mut self, stored: Vec<u8>) -> Self {
        self.stored = stored;
        self
    }

    /// The digest of the stored bytes, spelled as we write it.
    #[must_use]
    pub fn digested(self, algorithm: DigestAlgorithm) -> Self {
        let digest = digest(algorithm, &self.stored);
        self.digest_text(&digest)
    }

    /// This text for a digest.
    #[must_use]
    pub fn digest_text(mut self, digest: &str) -> Self {
        self.digest = Some(digest.to_owned());
        self
    }

    /// So many bytes after the next multiple of 64.
    #[must_use]
    pub fn after(mut self, distance: u64) -> Self {
        self.place = Place::After(distance);
        self
    }

    /// Nothing is stored: the blob is said to be there.
    #[must_use]
    pub fn at(mut self, offset: u64) -> Self {
        self.place = Place::At(offset);
        self
    }

    edits!();

    fn offset(&self) -> u64 {
        match self.place {
            Place::At(offset) => offset,
            Place::Next | Place::After(_) => 0,
        }
    }

    fn encode(&self, generation: Generation) -> Cbor {
        let mut fields = Fields::default();
        if generation != Generation::V1_0
            && let Some(dtype) = self.dtype
        {
            fields.set("dtype", text(dtype.as_str()));
        }
        if let Some(name) = &self.logical_type {
            fields.set("type", text(name));
        }
        fields.set("offset", uint(self.offset()));
        fields.set("length", uint(self.stored.len() as u64));
        if self.zstd {
            if generation == Generation::V1_2 {
                fields.set("uncompressed_length", uint(self.decoded.len() as u64));
            }
            fields.set("encoding", text("zstd"));
        }
        if let Some(digest) = &self.digest {
            fields.set("digest", text(digest));
        }
        self.edits.apply(&mut fields);
        fields.encode()
    }
}

/// How 0.1 and 1.0 spell a dtype: written out again, so that cases do not agree with the crate that
/// they test by using its table.
fn long_name(dtype: DType) -> &'static str {
    match dtype {
        DType::F64 => "float64",
        DType::F32 => "float32",
        DType::F16 => "float16",
        DType::BF16 => "bfloat16",
        DType::I64 => "int64",
        DType::I32 => "int32",
        DType::I16 => "int16",
        DType::I8 => "int8",
        DType::U64 => "uint64",
        DType::U32 => "uint32",
        DType::U16 => "uint16",
        DType::U8 => "uint8",
        DType::Bool => "bool",
    }
}

/// The little-endian bytes of some integers.
#[must_use]
pub fn le_u64(values: &[u64]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

/// The little-endian bytes of some floats.
#[must_use]
pub fn le_f32(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}
