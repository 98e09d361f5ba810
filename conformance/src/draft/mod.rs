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

mod item;
mod part;

use zt::Attributes;

use crate::cbor::{self, Cbor, Edits, Fields, array, attributes, map, text};

pub use self::item::Item;
pub use self::part::Part;
use self::part::Place;

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
pub(crate) use edits;

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

    /// A file as we write it, except for the order of keys.
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
                let tensors: Vec<Cbor> =
                    self.items.iter().map(|(name, item)| item.tensor_0_1(name)).collect();
                return array(&tensors);
            }
            Generation::V1_0 => {
                root.set("version", text(&self.version));
                root.set("generator", text("conformance"));
                root.set("attributes", attributes(&self.attributes.clone().unwrap_or_default()));
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
        let key = if self.generation == Generation::V1_0 { "tensors" } else { "objects" };
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
        let items = self.items.iter().map(|(key, item)| (decoded_name(key), item)).collect();
        (self.generation, &self.version, self.attributes.as_ref(), items)
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
                25 => (usize::from(after[0]) << 8 | usize::from(after[1]), &after[2..]),
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

/// The little-endian bytes of some integers.
#[must_use]
pub fn le_u64(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// The little-endian bytes of some floats.
#[must_use]
pub fn le_f32(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}
