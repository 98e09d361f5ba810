//! Files as a set of shards and an index, as the Hub keeps large models.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use zt::formats::element_count;
use zt::{AtomicFile, Error, Result, Warning};

use crate::convert::{target, write_merged};
use crate::fault::Fault;
use crate::member::{SAFETENSORS, ZT};
use crate::merge::{Incoming, Merged};
use crate::object::Outgoing;
use crate::output;
use crate::safetensors::is_plain;
use crate::split_plan::{Item, shards};
use crate::{ConvertOptions, Input, Summary};

/// What [`split`] has written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Split {
    /// In their order.
    pub shards: Vec<Shard>,
    /// The index, which opens the set; `None` for a single shard, which is a file like any other.
    pub index: Option<PathBuf>,
    /// Bytes of all values, before compression; those that tensors share count once.
    pub total_size: u64,
    /// As [`Summary::warnings`].
    pub warnings: Vec<Warning>,
}

/// One file of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shard {
    /// Where it is.
    pub path: PathBuf,
    /// Objects in it.
    pub objects: u64,
    /// Bytes of its values, before compression.
    pub bytes: u64,
    /// Bytes of the file.
    pub byte_len: u64,
}

/// Writes the objects of all `inputs` as shards of at most `max_shard_size` bytes of values into
/// `folder`, and an index beside them: `model-00001-of-00003.safetensors` and so on, and
/// `model.safetensors.index.json`, for a `stem` of `model`. Shards are of `options.target`:
/// safetensors, or `.zt`, whose index is `model.zt.index.json`.
///
/// Objects are taken in their order and that of their data, by the rule of `huggingface_hub`: an
/// object larger than the limit is a shard by itself. Sizes are before compression, and without
/// headers. Where everything fits one shard, that is `model.safetensors`, and there is no index.
/// Every shard has the attributes of the inputs. Objects that share their bytes in a `.zt` file
/// stay together in `.zt` shards, and count once.
///
/// All files appear, or none: they are written into a folder of their own within `folder` and take
/// their names last, the index after all shards. Where `overwrite` lets them replace others, an
/// index of that name goes first, so that no index is ever beside shards of another set.
///
/// # Errors
///
/// Code `unsupported` for other targets, `overwrite` for files that are there, `misuse` for a stem
/// that is more than a plain name; otherwise as [`crate::convert()`].
pub fn split(
    inputs: &[Input],
    folder: impl AsRef<Path>,
    stem: &str,
    max_shard_size: u64,
    overwrite: bool,
    options: &ConvertOptions<'_>,
) -> Result<Split> {
    let folder = folder.as_ref();
    let kind = options.target;
    let target = target(options)?;
    if ![SAFETENSORS, ZT].contains(&kind) {
        return Err(Fault::NoSets { kind }.into());
    }
    if !is_plain(stem) {
        return Err(Fault::Stem.into());
    }
    let mut summary = Summary::default();
    let merged = Merged::new(inputs, options, &mut summary)?;
    let is_shared = kind == ZT && options.deduplicate && has_own_places(inputs);
    let objects = merged.objects.iter();
    let items = objects.map(|incoming| item(incoming, options, is_shared));
    let items: Vec<Item<_>> = items.collect::<Result<_>>()?;
    let (shards, total_size) = shards(items, max_shard_size);

    let extension = target.extensions.first().copied().unwrap_or_default();
    let names = Names { stem, extension };
    let index = (shards.len() > 1).then(|| folder.join(names.index()));
    let mut paths: Vec<PathBuf> = (1..=shards.len())
        .map(|number| folder.join(names.shard(number, shards.len())))
        .collect();
    for path in paths.iter().chain(&index) {
        let checked = output::check(path, inputs, overwrite);
        checked.map_err(|error| error.with_path(path))?;
    }
    let mut staging = Staging::new(folder, stem)?;
    let mut split = Split {
        total_size,
        warnings: summary.warnings,
        ..Split::default()
    };
    let mut weight_map = BTreeMap::new();
    for (shard, path) in shards.iter().zip(paths.drain(..)) {
        let objects = shard.iter().filter_map(|at| merged.objects.get(*at));
        let part = Merged {
            objects: objects.copied().collect(),
            attributes: merged.attributes.clone(),
            extra: merged.extra.clone(),
        };
        let name = path.file_name().unwrap_or_default().to_owned();
        for incoming in &part.objects {
            weight_map.insert(incoming.tensor.name(), name.to_string_lossy().into_owned());
        }
        let mut summary = Summary::default();
        let mut file = AtomicFile::create_new(staging.folder.join(&name))?;
        write_merged(part, &mut file, options, &mut summary)
            .map_err(|error| error.with_path(&path))?;
        file.publish()?;
        staging.names.push(name);
        split.shards.push(Shard {
            path,
            objects: summary.objects,
            bytes: summary.bytes,
            byte_len: summary.byte_len,
        });
        // What is lost of the inputs' attributes is lost of every shard.
        let known = split.warnings.len();
        for warning in summary.warnings {
            if !split
                .warnings
                .iter()
                .take(known)
                .any(|other| *other == warning)
            {
                split.warnings.push(warning);
            }
        }
    }
    let metadata = Metadata { total_size };
    staging.publish(
        index.as_deref(),
        &IndexJson {
            metadata,
            weight_map,
        },
        overwrite,
    )?;
    split.index = index;
    Ok(split)
}

/// What an object is to the plan.
fn item(
    incoming: &Incoming<'_>,
    options: &ConvertOptions<'_>,
    is_shared: bool,
) -> Result<Item<Vec<(u64, u64)>>> {
    let mut object = Outgoing::new(incoming, options.dtype);
    if options.dense && !object.is_dense() {
        object.decode(options.dtype);
    }
    let storage = is_shared.then(|| {
        let components = object.object().components.iter();
        let spans = components.map(|(_, component)| component.blob.span);
        spans.map(|span| (span.offset(), span.byte_len())).collect()
    });
    Ok(Item {
        byte_len: byte_len(&object, incoming)?,
        storage: storage.filter(|spans: &Vec<(u64, u64)>| spans.iter().any(|(_, len)| *len > 0)),
    })
}

/// Bytes of an object's values as they are written, before compression.
fn byte_len(object: &Outgoing<'_>, incoming: &Incoming<'_>) -> Result<u64> {
    let (tensor, registry) = (incoming.tensor, incoming.registry);
    if let Some((dtype, logical_type)) = object.dense_type()
        && let Ok(Some(value_len)) = registry.value_len(dtype, logical_type.as_deref())
        && let Some(count) = element_count(tensor.shape())
    {
        return Ok(count.saturating_mul(value_len));
    }
    let mut total = 0u64;
    for (role, _) in &object.object().components {
        total = total.saturating_add(tensor.decoded_len(role)?);
    }
    Ok(total)
}

/// Whether equal spans are the same bytes: in one file that is read as it lies there.
fn has_own_places(inputs: &[Input]) -> bool {
    matches!(inputs, [input] if input.file().kind() == ZT && input.paths().len() <= 1)
}

/// What the files of a set are called.
struct Names<'s> {
    stem: &'s str,
    extension: &'static str,
}

impl Names<'_> {
    fn shard(&self, number: usize, count: usize) -> String {
        let Names { stem, extension } = self;
        match count {
            1 => format!("{stem}.{extension}"),
            _ => format!("{stem}-{number:05}-of-{count:05}.{extension}"),
        }
    }

    fn index(&self) -> String {
        format!("{}.{}.index.json", self.stem, self.extension)
    }
}

/// The index as the Hub has it, names sorted.
#[derive(Serialize)]
struct IndexJson<'n> {
    metadata: Metadata,
    weight_map: BTreeMap<&'n str, String>,
}

#[derive(Serialize)]
struct Metadata {
    total_size: u64,
}

/// A folder within the one that the set is for, where the shards are until all are written. It goes
/// when this is dropped.
struct Staging {
    folder: PathBuf,
    target: PathBuf,
    /// Shards that are complete.
    names: Vec<OsString>,
    /// Those that have their names, and did not replace another file.
    placed: Vec<PathBuf>,
}

impl Staging {
    fn new(target: &Path, stem: &str) -> Result<Self> {
        let mut serial = 0u64;
        let folder = loop {
            let name = format!(".{stem}.{}-{serial}.tmp", std::process::id());
            let folder = target.join(name);
            match fs::create_dir(&folder) {
                Ok(()) => break folder,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => serial += 1,
                Err(error) => return Err(Error::from(error).with_path(target)),
            }
        };
        Ok(Staging {
            folder,
            target: target.to_owned(),
            names: Vec::new(),
            placed: Vec::new(),
        })
    }

    /// Gives the shards their names, then writes the index. Its folder is synced with it.
    fn publish(
        mut self,
        index: Option<&Path>,
        json: &IndexJson<'_>,
        overwrite: bool,
    ) -> Result<()> {
        if let Some(index) = index.filter(|_| overwrite) {
            match fs::remove_file(index) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(Error::from(error).with_path(index));
                }
                _ => {}
            }
        }
        for name in &self.names {
            let (from, to) = (self.folder.join(name), self.target.join(name));
            let placed = match overwrite {
                true => fs::rename(&from, &to),
                false => rename_new(&from, &to),
            };
            placed.map_err(|error| Error::from(error).with_path(&to))?;
            if !overwrite {
                self.placed.push(to);
            }
        }
        if let Some(index) = index {
            let mut file = AtomicFile::create_new(index)?;
            // Writing texts and numbers does not fail, but for the file.
            serde_json::to_writer_pretty(&mut file, json).map_err(io::Error::from)?;
            file.write_all(b"\n")?;
            file.publish()?;
        }
        self.placed.clear();
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // There is nobody left to tell.
        for path in &self.placed {
            let _ = fs::remove_file(path);
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A rename that replaces nothing.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Ok(()) => fs::remove_file(from),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        // Where there are no second names (FAT), the look before has to do.
        Err(_) => fs::rename(from, to),
    }
}
