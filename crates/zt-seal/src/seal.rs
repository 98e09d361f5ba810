//! The seal as values, and its bytes. Spec: seal.md.

use std::path::{Component, Path};

use zt::{Attributes, Digest, DigestAlgorithm, Result, Span, Value};
use zt_convert::{CHECKPOINT_METADATA, is_named_as_slice};

use crate::check::Flaw;
use crate::fault::Fault;
use crate::tree::{LEAF, Sum, leaf_count, leaf_span};

/// The first bytes of a seal say this, under the key `format`.
pub(crate) const FORMAT: &str = "zt.seal/1";

/// The bytes of files, and what tensors they hold. Spec: seal.md.
///
/// ```
/// use zt_convert::Kinds;
/// use zt_seal::{Contents, Files, Seal, SealOptions, seal};
///
/// let folder = tempfile::tempdir()?;
/// std::fs::write(folder.path().join("config.json"), "{}")?;
/// let contents = Contents::of_folder(&Kinds::builtin(), folder.path(), None)?;
/// let made = seal(&Kinds::builtin(), &Files::local(folder.path()), &contents, &SealOptions::new())?;
/// let bytes = made.seal.to_bytes()?;
/// assert_eq!(Seal::from_bytes(&bytes)?, made.seal);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Seal {
    /// Sorted by path.
    pub files: Vec<SealedFile>,
    /// Sorted by path. A folder may have none, or several.
    pub models: Vec<SealedModel>,
}

/// The bytes of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SealedFile {
    /// Below the folder, with `/` between names.
    pub path: String,
    /// The number of its bytes.
    pub byte_len: u64,
    /// As `sha256sum` prints it, and as the Hub names blobs of LFS and Xet.
    pub sha256: Sum,
    /// As `b3sum` prints it: the root of the leaves.
    pub blake3: Sum,
    /// A digest for each [`LEAF`] bytes; at least one.
    pub(crate) leaves: Vec<Sum>,
}

/// A model in these files.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SealedModel {
    /// The file that opens it, or the folder, which is empty for the sealed one.
    pub path: String,
    /// The content identity, as `zt hash` prints it. `None` if an object cannot be read.
    pub content: Option<Sum>,
    /// Sorted by name.
    pub tensors: Vec<SealedTensor>,
}

/// A tensor of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SealedTensor {
    /// Its name.
    pub name: String,
    /// Its identity, which is independent of name, file and encoding: [`zt::ObjectHash::identity`].
    pub identity: Sum,
    /// Where its stored bytes are, in order. Empty if they are made from other bytes, such as inflated ones.
    pub places: Vec<Place>,
}

/// Stored bytes in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The number of the file in [`Seal::files`].
    pub file: usize,
    /// The bytes.
    pub span: Span,
}

impl Place {
    /// Sorts places by file and offset.
    pub(crate) const fn key(&self) -> (usize, u64, u64) {
        (self.file, self.span.offset(), self.span.byte_len())
    }
}

impl SealedFile {
    /// The number of leaves.
    pub fn leaf_count(&self) -> u64 {
        leaf_count(self.byte_len)
    }

    /// The digest of a leaf.
    pub fn leaf(&self, at: u64) -> Option<&Sum> {
        self.leaves.get(usize::try_from(at).ok()?)
    }

    /// The bytes of a leaf.
    pub fn leaf_span(&self, at: u64) -> Option<Span> {
        leaf_span(self.byte_len, at)
    }

    /// Whether `bytes` are leaf `at`.
    pub fn has_leaf(&self, at: u64, bytes: &[u8]) -> bool {
        let is_long = self.leaf_span(at).is_some_and(|span| span.byte_len() == bytes.len() as u64);
        is_long && self.leaf(at) == Some(&self.digest(at, bytes))
    }

    /// The digest of `bytes` as leaf `at`.
    pub(crate) fn digest(&self, at: u64, bytes: &[u8]) -> Sum {
        crate::tree::digest(bytes, at, self.leaf_count() == 1)
    }
}

impl Seal {
    /// The file of this path.
    pub fn file(&self, path: &str) -> Option<&SealedFile> {
        self.files.get(self.position(path)?)
    }

    /// The number of the file of this path.
    pub fn position(&self, path: &str) -> Option<usize> {
        self.files.binary_search_by(|file| file.path.as_str().cmp(path)).ok()
    }

    /// The number of the file that a path of this machine or a URL means: the one whose path ends like it, or
    /// else the only one.
    ///
    /// # Errors
    ///
    /// Code `misuse` if there is none, or if there are several.
    pub fn find(&self, path: &Path) -> Result<usize> {
        let paths: Vec<&str> = self.files.iter().map(|file| file.path.as_str()).collect();
        Ok(find_among(&paths, path)?)
    }

    /// A file that is not in a folder of its own, if there is one: a folder that has it is the sealed one.
    pub fn top(&self) -> Option<&str> {
        self.files.iter().map(|file| file.path.as_str()).find(|path| !path.contains('/'))
    }

    /// The only model. Of several, the one that [`Kinds::open`](zt_convert::Kinds::open) opens for the folder.
    ///
    /// # Errors
    ///
    /// Code `misuse` if there is no such model.
    pub fn only_model(&self) -> Result<&SealedModel> {
        let rank = |model: &SealedModel| match model.path.as_str() {
            CHECKPOINT_METADATA => 0,
            // Slices.
            "" => 1,
            path if path.contains('/') => 4,
            // The index of a set.
            path if path.ends_with(".json") => 2,
            _ => 3,
        };
        let first = self.models.iter().map(rank).min();
        let mut models = self.models.iter().filter(|model| Some(rank(model)) == first);
        match (models.next(), models.next()) {
            (Some(model), None) => Ok(model),
            _ => Err(Fault::Models { count: self.models.len() }.into()),
        }
    }

    /// The numbers of the files in a folder whose names are those of slices.
    pub fn slices_in(&self, folder: &str) -> Vec<usize> {
        let is_slice = |path: &str| {
            let (within, name) = path.rsplit_once('/').unwrap_or(("", path));
            within == folder && is_named_as_slice(name)
        };
        let slices = (0..).zip(&self.files).filter(|(_, file)| is_slice(&file.path));
        slices.map(|(at, _)| at).collect()
    }

    /// The numbers of the files of a model: the one that opens it, and those with bytes of its tensors.
    pub fn files_of(&self, model: &SealedModel) -> Vec<usize> {
        let places = model.tensors.iter().flat_map(|tensor| &tensor.places);
        let mut files: Vec<usize> = places.map(|place| place.file).collect();
        files.extend(self.position(&model.path));
        files.sort_unstable();
        files.dedup();
        files
    }

    /// The tensors with bytes in `span` of a file, in the order of their names.
    pub fn tensors_in(&self, file: usize, span: Span) -> impl Iterator<Item = &str> {
        let is_in = move |place: &Place| {
            let (start, end) = (place.span.offset(), place.span.end());
            place.file == file && start < span.end() && span.offset() < end
        };
        let tensors = self.models.iter().flat_map(|model| &model.tensors);
        let found = tensors.filter(move |tensor| tensor.places.iter().any(is_in));
        found.map(|tensor| tensor.name.as_str())
    }

    /// Compares the bytes with a leaf of file number `file`.
    ///
    /// # Errors
    ///
    /// Code `seal-mismatch`: the text names the file, the leaf, its bytes and its tensors.
    pub fn check_leaf(&self, file: usize, leaf: u64, bytes: &[u8]) -> Result<()> {
        Ok(self.compare(file, leaf, bytes)?)
    }

    pub(crate) fn compare(&self, file: usize, leaf: u64, bytes: &[u8]) -> Result<(), Fault> {
        let Some(sealed) = self.files.get(file) else {
            return Err(Fault::NotSealed { path: file.to_string() });
        };
        if sealed.has_leaf(leaf, bytes) {
            return Ok(());
        }
        let flaw = Box::new(Flaw::of_leaf(self, file, leaf, bytes));
        Err(Fault::Leaf { path: sealed.path.clone(), flaw })
    }

    /// The seal as bytes. Equal seals give equal bytes.
    ///
    /// # Errors
    ///
    /// Code `seal` for values that [`Seal::from_bytes`] refuses.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        crate::decode::validate(self)?;
        self.encode()
    }

    /// The SHA-256 of the seal's bytes: what a signature names.
    ///
    /// # Errors
    ///
    /// As [`Seal::to_bytes`].
    pub fn sha256(&self) -> Result<Sum> {
        match DigestAlgorithm::Sha256.digest(&self.to_bytes()?)? {
            Digest::Sha256(sum) => Ok(sum),
            // Unreachable: the algorithm is SHA-256.
            _ => Ok([0; 32]),
        }
    }

    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        let files = self.files.iter().map(|file| {
            let mut map = Attributes::new();
            map.insert("path", file.path.as_str());
            map.insert("size", file.byte_len);
            map.insert("sha256", file.sha256.to_vec());
            map.insert("blake3", file.blake3.to_vec());
            if file.leaves.len() > 1 {
                map.insert("leaves", file.leaves.concat());
            }
            Value::from(map)
        });
        let models = self.models.iter().map(|model| {
            let mut map = Attributes::new();
            map.insert("path", model.path.as_str());
            if let Some(content) = model.content {
                map.insert("content", content.to_vec());
            }
            let tensors: Vec<Value> = model.tensors.iter().map(SealedTensor::to_value).collect();
            map.insert("tensors", tensors);
            Value::from(map)
        });
        let mut map = Attributes::new();
        map.insert("format", FORMAT);
        map.insert("leaf", LEAF);
        map.insert("files", files.collect::<Vec<_>>());
        map.insert("models", models.collect::<Vec<_>>());
        Ok(map.to_cbor()?)
    }
}

impl SealedTensor {
    fn to_value(&self) -> Value {
        let places = self.places.iter().flat_map(|place| {
            let (offset, byte_len) = (place.span.offset(), place.span.byte_len());
            [Value::from(place.file), Value::from(offset), Value::from(byte_len)]
        });
        let mut items = vec![Value::from(self.name.as_str()), Value::from(self.identity.to_vec())];
        items.extend(places);
        Value::array(items)
    }
}

/// The number of the one of `paths` that ends most like `path`, or else of the only one.
pub(crate) fn find_among(paths: &[&str], path: &Path) -> Result<usize, Fault> {
    let names: Vec<&str> = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect();
    // The more names of the end agree, the better.
    let agreeing = |path: &str| {
        let ours = path.rsplit('/');
        ours.zip(names.iter().rev()).take_while(|(ours, name)| ours == *name).count()
    };
    let best = paths.iter().map(|path| agreeing(path)).max().unwrap_or_default();
    let mut found = (0..).zip(paths).filter(|(_, path)| agreeing(path) == best);
    match (best, found.next(), found.next(), paths.len()) {
        (1.., Some((at, _)), None, _) | (_, Some((at, _)), None, 1) => Ok(at),
        (1.., Some((_, one)), Some((_, other)), _) => {
            Err(Fault::Ambiguous { one: (*one).to_owned(), other: (*other).to_owned() })
        }
        _ => {
            let name = names.last().copied().unwrap_or_default().to_owned();
            Err(Fault::NotSealed { path: name })
        }
    }
}
