//! The bytes of a seal, which may be a stranger's, become a seal whose fields were all checked.

use std::collections::HashSet;

use zt::{Attributes, Limits, Result, Span, Value};
use zt_foreign::refusal;

use crate::fault::Fault;
use crate::seal::{FORMAT, Place, Seal, SealedFile, SealedModel, SealedTensor};
use crate::tree::{LEAF, Sum, root};

impl Seal {
    /// The longest seal that is read: of about four terabytes. Decoded, hostile bytes take up to 32 times as much.
    pub const MAX_LEN: u64 = 128 << 20;

    /// Whether a file that begins like this may be a seal: it has at least 6 bytes.
    pub fn is_seal(bytes: &[u8]) -> bool {
        // Shorter keys come first in the one encoding.
        const START: &[u8] = b"\xA4\x64leaf";
        bytes.starts_with(START)
    }

    /// The seal that these bytes are.
    ///
    /// # Errors
    ///
    /// Code `seal` if they are no seal, break a rule of it, or are not in the one encoding that it has.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let byte_len = bytes.len() as u64;
        if byte_len > Self::MAX_LEN {
            return Err(Fault::TooLong { byte_len, limit: Self::MAX_LEN }.into());
        }
        if !Self::is_seal(bytes) {
            return Err(Fault::NoSeal.into());
        }
        let value = Value::from_cbor(bytes, Limits::default().nesting).map_err(Fault::Cbor)?;
        let seal = seal_of(&value)?;
        drop(value);
        validate(&seal)?;
        // There is one encoding of a seal: a key that is unknown, repeated or out of order is no part of it.
        if seal.encode()? != bytes {
            return Err(Fault::Encoding.into());
        }
        Ok(seal)
    }
}

fn seal_of(value: &Value) -> Result<Seal, Fault> {
    let map = value.as_map().ok_or(Fault::NoSeal)?;
    let format = map.get("format").and_then(Value::as_str).ok_or(Fault::NoSeal)?;
    if format != FORMAT {
        return Err(Fault::Version { found: format.chars().take(40).collect() });
    }
    if number(map, "leaf")? != LEAF {
        return Err(Fault::Field { field: "leaf" });
    }
    let files = list(map, "files")?.iter().map(file_of).collect::<Result<_, _>>()?;
    let models = list(map, "models")?.iter().map(model_of).collect::<Result<_, _>>()?;
    Ok(Seal { files, models })
}

fn file_of(value: &Value) -> Result<SealedFile, Fault> {
    let map = value.as_map().ok_or(Fault::Field { field: "files" })?;
    let blake3 = sum(map, "blake3")?;
    let mut leaves = Vec::new();
    if let Some(bytes) = map.get("leaves") {
        let bytes = bytes.as_bytes().ok_or(Fault::Field { field: "leaves" })?;
        let (sums, rest) = bytes.as_chunks::<32>();
        // One leaf is the root.
        if sums.len() < 2 || !rest.is_empty() {
            return Err(Fault::Field { field: "leaves" });
        }
        leaves.extend_from_slice(sums);
    } else {
        leaves.push(blake3);
    }
    let path = text(map, "path")?;
    Ok(SealedFile {
        path,
        byte_len: number(map, "size")?,
        sha256: sum(map, "sha256")?,
        blake3,
        leaves,
    })
}

fn model_of(value: &Value) -> Result<SealedModel, Fault> {
    let map = value.as_map().ok_or(Fault::Field { field: "models" })?;
    let content = map.get("content").map(|_| sum(map, "content")).transpose()?;
    let tensors = list(map, "tensors")?.iter().map(tensor_of).collect::<Result<_, _>>()?;
    Ok(SealedModel { path: text(map, "path")?, content, tensors })
}

fn tensor_of(value: &Value) -> Result<SealedTensor, Fault> {
    let wrong = || Fault::Field { field: "tensors" };
    let items = value.as_array().ok_or_else(wrong)?;
    let [name, identity, places @ ..] = items else {
        return Err(wrong());
    };
    let name = name.as_str().ok_or_else(wrong)?.to_owned();
    let identity = identity.as_bytes().and_then(|bytes| bytes.try_into().ok()).ok_or_else(wrong)?;
    let (places, rest) = places.as_chunks::<3>();
    if !rest.is_empty() {
        return Err(wrong());
    }
    let place = |[file, offset, byte_len]: &[Value; 3]| {
        let file = usize::try_from(file.as_u64()?).ok()?;
        Some(Place { file, span: Span::new(offset.as_u64()?, byte_len.as_u64()?)? })
    };
    let places = places.iter().map(place).collect::<Option<_>>().ok_or_else(wrong)?;
    Ok(SealedTensor { name, identity, places })
}

fn list<'m>(map: &'m Attributes, field: &'static str) -> Result<&'m [Value], Fault> {
    map.get(field).and_then(Value::as_array).ok_or(Fault::Field { field })
}

fn number(map: &Attributes, field: &'static str) -> Result<u64, Fault> {
    map.get(field).and_then(Value::as_u64).ok_or(Fault::Field { field })
}

fn text(map: &Attributes, field: &'static str) -> Result<String, Fault> {
    map.get(field).and_then(Value::as_str).map(str::to_owned).ok_or(Fault::Field { field })
}

fn sum(map: &Attributes, field: &'static str) -> Result<Sum, Fault> {
    let bytes = map.get(field).and_then(Value::as_bytes);
    bytes.and_then(|bytes| bytes.try_into().ok()).ok_or(Fault::Field { field })
}

/// Refuses a seal that breaks a rule. Spec: seal.md §2.
pub(crate) fn validate(seal: &Seal) -> Result<(), Fault> {
    let mut total = 0u64;
    for file in &seal.files {
        check_path(&file.path)?;
        total = total.checked_add(file.byte_len).ok_or(Fault::Field { field: "size" })?;
        let leaves = file.leaves.len() as u64;
        if leaves != file.leaf_count() {
            let (path, byte_len) = (file.path.clone(), file.byte_len);
            return Err(Fault::LeafCount { path, byte_len, leaves });
        }
        if root(&file.leaves) != file.blake3 {
            return Err(Fault::Root { path: file.path.clone() });
        }
    }
    expect_sorted("files", seal.files.iter().map(|file| file.path.as_str()))?;
    let paths: HashSet<&str> = seal.files.iter().map(|file| file.path.as_str()).collect();
    for path in &paths {
        let mut folders = path.match_indices('/').filter_map(|(at, _)| path.get(..at));
        if folders.any(|folder| paths.contains(folder)) {
            return Err(Fault::Path { path: (*path).to_owned(), why: "a folder in it is a file" });
        }
    }
    expect_sorted("models", seal.models.iter().map(|model| model.path.as_str()))?;
    for model in &seal.models {
        if !model.path.is_empty() {
            check_path(&model.path)?;
        }
        expect_sorted("tensors", model.tensors.iter().map(|tensor| tensor.name.as_str()))?;
        for tensor in &model.tensors {
            let is_within = |place: &Place| {
                seal.files.get(place.file).is_some_and(|file| place.span.end() <= file.byte_len)
            };
            let is_sorted = tensor.places.is_sorted_by(|a, b| a.key() < b.key());
            if !is_sorted || !tensor.places.iter().all(is_within) {
                return Err(Fault::Places { name: tensor.name.clone() });
            }
        }
    }
    Ok(())
}

fn expect_sorted<'a>(
    what: &'static str,
    names: impl Iterator<Item = &'a str>,
) -> Result<(), Fault> {
    let mut last = None;
    for name in names {
        if last.is_some_and(|last| last >= name) {
            return Err(Fault::Order { what, name: name.to_owned() });
        }
        last = Some(name);
    }
    Ok(())
}

/// Refuses a path that is not a list of plain names with `/` between them.
pub(crate) fn check_path(path: &str) -> Result<(), Fault> {
    let why = refusal(path).or_else(|| {
        let is_plain = path.split('/').all(|name| !matches!(name, "" | "." | ".."));
        (!is_plain).then_some("it is not a list of names with \"/\" between them")
    });
    why.map_or(Ok(()), |why| Err(Fault::Path { path: path.to_owned(), why }))
}
