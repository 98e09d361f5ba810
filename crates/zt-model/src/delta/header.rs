//! The file attribute of a delta.

use std::collections::BTreeSet;

use zt::formats::Delta;
use zt::{Attributes, ContentHash, Digest, Error, File, Result, Value};

use crate::delta::fault::{Fault, First};

/// The file attribute.
const KEY: &str = "zt.delta";

const BASE: &str = "base";
const RESULT: &str = "result";
const OBJECTS: &str = "objects";
const REMOVED: &str = "removed";
const ATTRIBUTES: &str = "attributes";

/// Bytes of an object's identity that the delta keeps.
const MARK: usize = 8;

/// Whether a file is a delta: see [`delta`](crate::delta()).
#[must_use]
pub fn is_delta(file: &File) -> bool {
    let attributes = file.attributes().ok().flatten();
    attributes.is_some_and(|attributes| attributes.get(KEY).is_some())
}

/// What a delta shows without its base.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeltaSummary {
    /// The content identity of the base.
    pub base: Digest,
    /// The content identity of the result.
    pub result: Digest,
    /// Objects of the base.
    pub base_objects: u64,
    /// Objects of the base that have new values, attributes or names.
    pub changed: u64,
    /// Objects of the result that are stored whole: new ones, and those that replace one of the base.
    pub whole: u64,
    /// Objects of the base that the result does not have.
    pub removed: u64,
}

impl DeltaSummary {
    /// The summary of a delta; `None` for another file. Reads nothing but metadata.
    ///
    /// # Errors
    ///
    /// Code `delta` for a header that breaks a rule.
    pub fn of(file: &File) -> Result<Option<Self>> {
        if !is_delta(file) {
            return Ok(None);
        }
        let header = Header::of(file)?;
        let entries = file.entries();
        let is_change = |entry: &&zt::Entry<'_>| {
            let tensor = entry.tensor();
            tensor.is_ok_and(|tensor| tensor.format() == Delta::FORMAT)
        };
        let changed = entries.iter().filter(is_change).count() as u64;
        Ok(Some(DeltaSummary {
            base: Digest::Sha256(header.base),
            result: Digest::Sha256(header.result),
            base_objects: header.base_objects(),
            changed,
            whole: (entries.len() as u64).strict_sub(changed),
            removed: header.removed.len() as u64,
        }))
    }
}

/// What a delta records about its base and its result.
#[derive(Debug, Default)]
pub(super) struct Header {
    /// The content identities of the base and of the result.
    pub(super) base: [u8; 32],
    pub(super) result: [u8; 32],
    /// The beginning of the identity of each object of the base, in the order of the names.
    marks: Vec<u8>,
    /// The objects of the base that the result does not have.
    pub(super) removed: BTreeSet<String>,
    /// The attributes of the result; `None` if the base has the same.
    pub(super) attributes: Option<Attributes>,
}

impl Header {
    /// The header of a delta between files with these hashes.
    pub(super) fn new(base: &ContentHash, new: &ContentHash) -> Result<Self> {
        let mut marks = Vec::new();
        for (_, identity) in sorted(base) {
            let identity = identity.ok_or(Fault::NoIdentity)?;
            marks.extend(identity.into_iter().take(MARK));
        }
        Ok(Header {
            base: base.content.ok_or(Fault::NoIdentity)?,
            result: new.content.ok_or(Fault::NoIdentity)?,
            marks,
            ..Header::default()
        })
    }

    /// The header of a delta that was opened.
    ///
    /// # Errors
    ///
    /// Code `misuse` for a file that is no delta; code `delta` for a header that breaks a rule.
    pub(super) fn of(file: &File) -> Result<Self> {
        let attributes = file.attributes()?.unwrap_or_default();
        let header = attributes.get(KEY).ok_or(Fault::NoDelta)?;
        let header = header.as_map().ok_or(Fault::Header("is not a map"))?;
        let bytes = |key| header.get(key).and_then(Value::as_bytes);
        let identity = |key, fault| {
            let bytes = bytes(key).and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
            bytes.ok_or_else(|| Error::from(Fault::Header(fault)))
        };
        let marks = bytes(OBJECTS).filter(|marks| marks.len().is_multiple_of(MARK));
        let marks = marks.ok_or(Fault::Header("`objects` is not a byte string of 8 for each"))?;
        let mut removed = BTreeSet::new();
        if let Some(value) = header.get(REMOVED) {
            let fault = || Fault::Header("`removed` is not an array of texts");
            for name in value.as_array().ok_or_else(fault)? {
                removed.insert(name.as_str().ok_or_else(fault)?.to_owned());
            }
        }
        let attributes = match header.get(ATTRIBUTES) {
            Some(value) => {
                let map = value.as_map();
                let map = map.ok_or(Fault::Header("`attributes` is not a map"))?;
                if map.get(KEY).is_some() {
                    return Err(Fault::Header("`attributes` has the key `zt.delta`").into());
                }
                Some(map.clone())
            }
            None => None,
        };
        Ok(Header {
            base: identity(BASE, "`base` is not a byte string of 32")?,
            result: identity(RESULT, "`result` is not a byte string of 32")?,
            marks: marks.to_vec(),
            removed,
            attributes,
        })
    }

    /// The number of objects of the base.
    pub(super) const fn base_objects(&self) -> u64 {
        (self.marks.len() / MARK) as u64
    }

    /// The attributes of the delta.
    pub(super) fn into_attributes(self) -> Attributes {
        let mut header = Attributes::new();
        header.insert(BASE, Value::Bytes(self.base.to_vec()));
        header.insert(RESULT, Value::Bytes(self.result.to_vec()));
        header.insert(OBJECTS, Value::Bytes(self.marks));
        if !self.removed.is_empty() {
            let removed = self.removed.into_iter().map(Value::from);
            header.insert(REMOVED, Value::array(removed.collect()));
        }
        if let Some(attributes) = self.attributes {
            header.insert(ATTRIBUTES, Value::Map(attributes));
        }
        let mut attributes = Attributes::new();
        attributes.insert(KEY, Value::Map(header));
        attributes
    }

    /// Checks that a file with this hash is the base.
    ///
    /// # Errors
    ///
    /// Code `wrong-base`, with the first object that differs; code `delta` if `objects` is not of this base; code
    /// `unsupported` for a file with an object that cannot be read.
    pub(super) fn expect_base(&self, base: &ContentHash) -> Result<()> {
        let found = base.content.ok_or(Fault::NoIdentity)?;
        let mut marks = self.marks.chunks(MARK);
        let mut last = String::new();
        let mut first = None;
        for (name, identity) in sorted(base) {
            let is_equal = identity.zip(marks.next());
            if !is_equal.is_some_and(|(identity, mark)| identity.starts_with(mark)) {
                first = Some(First::Object(name.to_owned()));
                break;
            }
            last = name.to_owned();
        }
        let first = first.unwrap_or(match marks.next() {
            Some(_) => First::Missing(last),
            None => First::Names,
        });
        if found == self.base {
            return match first {
                First::Names => Ok(()),
                _ => Err(Fault::Header("`objects` does not fit the base").into()),
            };
        }
        let (expected, found) = (Digest::Sha256(self.base), Digest::Sha256(found));
        Err(Fault::WrongBase { expected, found, first }.into())
    }
}

/// The names and the identities of the objects, in the order of the names.
fn sorted(hash: &ContentHash) -> Vec<(&str, Option<[u8; 32]>)> {
    let objects = hash.objects.iter();
    let objects = objects.map(|(name, hash)| {
        let identity = hash.as_ref().ok().and_then(|hash| hash.identity);
        (name.as_str(), identity)
    });
    let mut objects: Vec<_> = objects.collect();
    objects.sort_unstable();
    objects
}
