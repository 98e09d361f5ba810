//! Writes the index of shards that have none, and changes one.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use zt::foreign::AtomicFile;
use zt::{Error, ErrorKind, Result, codes};
use zt_foreign::Fault;

use crate::examine::folder::{Folder, Weights, some_of};
use zt_convert::{Index, Kinds};

/// An index that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrittenIndex {
    /// Its path.
    pub path: PathBuf,
    /// The number of shards that it names.
    pub shards: u64,
    /// The number of tensors.
    pub tensors: u64,
    /// The bytes of all tensors.
    pub total_size: u64,
    /// Files of weights in the folder that are in no index, because their names have no number of a shard.
    pub left_out: Vec<PathBuf>,
}

/// Writes the index of the shards in a folder, which no index names: `model.safetensors.index.json` for
/// `model-00001-of-00002.safetensors` and its like. The index appears complete or not at all.
///
/// Cost: reads the headers of the files of weights.
///
/// # Errors
///
/// | code | cause |
/// | --- | --- |
/// | `misuse` | there are no such shards, or shards of several sets |
/// | `path` | a shard is missing |
/// | `duplicate-name` | two shards have a tensor of one name |
/// | `overwrite` | the index exists, and `overwrite` is false |
///
/// The fault of a shard that cannot be opened; [`ErrorKind::Io`].
pub fn write_index(
    kinds: &Kinds,
    folder: impl AsRef<Path>,
    overwrite: bool,
) -> Result<WrittenIndex> {
    let path = folder.as_ref();
    write_index_at(kinds, path, overwrite).map_err(|error| error.with_path(path))
}

fn write_index_at(kinds: &Kinds, path: &Path, overwrite: bool) -> Result<WrittenIndex> {
    let folder = Folder::read(kinds, path, &[])?;
    let ((stem, extension), shards) = only_set(&folder, overwrite)?;
    let found = shards.len() as u64;
    let count = shards.first().and_then(|shard| shard.number);
    let count = count.map_or(found, |(_, count)| count.into());
    if found != count {
        let message =
            format!("{found} of {count} shards of {stem:?} are there; put the others beside them");
        return Err(Error::new(ErrorKind::Malformed, codes::PATH, message));
    }
    let mut owners: BTreeMap<&str, &str> = BTreeMap::new();
    let mut total_size = 0u64;
    for shard in shards {
        if shard.tensors.is_empty() {
            // An empty shard is sound, and a damaged one gives its error.
            kinds.open(path.join(&shard.name), zt::OpenOptions::new())?;
        }
        for tensor in &shard.tensors {
            if let Some(first) = owners.insert(&tensor.name, &shard.name) {
                let message =
                    format!("in both {first:?} and {:?}: remove it from one of them", shard.name);
                let error = Error::new(ErrorKind::Misuse, codes::DUPLICATE_NAME, message);
                return Err(error.with_object(&tensor.name));
            }
            let sum = tensor.byte_len.and_then(|byte_len| total_size.checked_add(byte_len));
            total_size = sum.ok_or_else(|| {
                let message =
                    "the number of its bytes is unknown, or those of all tensors are 2^64 or more";
                let error = Error::new(ErrorKind::Unsupported, codes::UNSUPPORTED, message);
                error.with_object(&tensor.name)
            })?;
        }
    }
    let tensors = owners.len() as u64;
    let json = Index::to_json(total_size, &owners)?;
    // Some shards are called `model.safetensors-00001-of-00002.safetensors`, and loaders look for one extension.
    let ending = format!(".{extension}");
    let stem = stem.strip_suffix(&ending).unwrap_or(stem);
    let out = path.join(format!("{stem}{ending}.index.json"));
    if !overwrite && fs::symlink_metadata(&out).is_ok() {
        return Err(Error::from(Fault::Exists).with_path(&out));
    }
    let create = if overwrite { AtomicFile::create } else { AtomicFile::create_new };
    let mut file = create(&out)?;
    file.write_all(&json)?;
    file.publish()?;
    let left_out = folder.files.iter().filter(|file| {
        file.extension == extension && file.number.is_none() && !folder.is_listed(&file.name)
    });
    let left_out = left_out.map(|file| path.join(&file.name)).collect();
    Ok(WrittenIndex { path: out, shards: found, tensors, total_size, left_out })
}

/// The indexes in the folder of a file, and in the folder above it, that name the file as a shard. One that cannot be
/// read names nothing.
///
/// # Errors
///
/// [`ErrorKind::Io`].
pub fn indexes_of(shard: impl AsRef<Path>) -> Result<Vec<PathBuf>> {
    let shard = shard.as_ref();
    let mut found = Vec::new();
    for folder in shard.ancestors().skip(1).take(2) {
        let at = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let Ok(files) = fs::read_dir(at) else {
            continue;
        };
        for file in files {
            let name = file?.file_name();
            let path = folder.join(&name);
            if name.to_string_lossy().ends_with(".index.json")
                && name_in(folder, shard).is_some_and(|name| lists(&path, &name))
            {
                found.push(path);
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}

fn lists(index: &Path, name: &str) -> bool {
    Index::open(index).is_ok_and(|index| index.shards().iter().any(|shard| shard == name))
}

/// The name of a shard in an index in `folder`.
fn name_in(folder: &Path, shard: &Path) -> Option<String> {
    let steps = shard.strip_prefix(folder).ok()?.components();
    let steps: Option<Vec<&str>> = steps.map(|step| step.as_os_str().to_str()).collect();
    Some(steps?.join("/"))
}

/// An index as it will be once tensors of a shard are removed or renamed.
#[derive(Debug)]
pub struct EditedIndex {
    path: PathBuf,
    json: Vec<u8>,
}

impl EditedIndex {
    /// The index at `path`, in which `new` has the new name of each tensor of the shard, or `None` for one that is
    /// removed. `removed` bytes are taken off a `total_size`. Everything else stays.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`]; code `header` for a file that is no index; code `unsupported` for an index that lists groups,
    /// as Keras writes it; code `duplicate-name` for a new name that another tensor has.
    pub fn new(
        path: impl Into<PathBuf>,
        shard: impl AsRef<Path>,
        removed: u64,
        new: impl Fn(&str) -> Option<String>,
    ) -> Result<Self> {
        let path = path.into();
        match edited(&path, shard.as_ref(), removed, new) {
            Ok(json) => Ok(EditedIndex { path, json }),
            Err(error) => Err(error.with_path(&path)),
        }
    }

    /// Replaces the index, and gives its path. The old one or the new one is there at any time.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`].
    pub fn publish(self) -> Result<PathBuf> {
        let mut file = AtomicFile::create(&self.path)?;
        file.write_all(&self.json)?;
        file.publish()?;
        Ok(self.path)
    }
}

fn edited(
    path: &Path,
    shard: &Path,
    removed: u64,
    new: impl Fn(&str) -> Option<String>,
) -> Result<Vec<u8>> {
    use serde_json::{Map, Value};
    Index::open(path)?;
    let bytes = fs::read(path)?;
    let invalid = |message: &str| Error::new(ErrorKind::Malformed, codes::HEADER, message);
    let mut json: Map<String, Value> =
        serde_json::from_slice(&bytes).map_err(|error| invalid(&error.to_string()))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let name = name_in(folder, shard).unwrap_or_default();
    let map = json.get_mut("weight_map").and_then(Value::as_object_mut);
    let map = map.ok_or_else(|| invalid("the index has no weight_map"))?;
    let mut changed = Map::new();
    for (tensor, file) in std::mem::take(map) {
        let Some(owner) = file.as_str() else {
            let message = "the index lists groups, as Keras writes it";
            return Err(Error::new(ErrorKind::Unsupported, codes::UNSUPPORTED, message));
        };
        let tensor = if owner == name { new(&tensor) } else { Some(tensor) };
        if let Some(tensor) = tensor
            && changed.insert(tensor.clone(), file).is_some()
        {
            let message = "another shard has a tensor of this name";
            let error = Error::new(ErrorKind::Misuse, codes::DUPLICATE_NAME, message);
            return Err(error.with_object(&tensor));
        }
    }
    *map = changed;
    let total = json.get_mut("metadata").and_then(|metadata| metadata.get_mut("total_size"));
    if let Some(total) = total
        && let Some(rest) = total.as_u64().and_then(|total| total.checked_sub(removed))
    {
        *total = rest.into();
    }
    let mut bytes = serde_json::to_vec_pretty(&json).map_err(std::io::Error::from)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// The only numbered set that an index can name. An index that names it already counts only if it may be replaced.
fn only_set(folder: &Folder, overwrite: bool) -> Result<((&str, &str), Vec<&Weights>)> {
    let mut sets = folder.numbered();
    sets.retain(|(_, extension), shards| {
        let is_listed = shards.iter().any(|shard| folder.is_listed(&shard.name));
        *extension != "gguf" && (overwrite || !is_listed)
    });
    let names = sets.values().flatten().map(|shard| &shard.name);
    let message = match sets.len() {
        1 => None,
        0 => Some(
            "the folder has no shards without an index, such as model-00001-of-00002.safetensors"
                .to_owned(),
        ),
        _ => Some(format!(
            "the folder has shards of several sets: {}; move the others away",
            some_of(names)
        )),
    };
    if let Some(message) = message {
        return Err(Error::new(ErrorKind::Misuse, codes::MISUSE, message));
    }
    let (key, shards) = sets.pop_first().unwrap_or_default();
    let mut counts = shards.iter().filter_map(|shard| Some(shard.number?.1));
    let first = counts.next();
    if counts.any(|count| Some(count) != first) {
        let names = shards.iter().map(|shard| &shard.name);
        let message = format!(
            "the folder has shards of several splits: {}; remove the older ones",
            some_of(names)
        );
        return Err(Error::new(ErrorKind::Misuse, codes::MISUSE, message));
    }
    Ok((key, shards))
}
