//! Files as a set of shards and an index, as the Hub keeps large models.

use std::collections::{BTreeMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use zt::{Result, Warning};
use zt_foreign::{ConvertOptions, Fault, FileWriter, Incoming, Input, Job, Merged};

use super::index::{is_plain, shards_of};
use super::plan::{Item, shards};
use super::staging::Staging;
use crate::convert::Target;
use crate::merge::merge;
use crate::native::ZT;
use crate::{Kinds, output};

/// What [`Kinds::split`] has written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Split {
    /// In their order.
    pub shards: Vec<Shard>,
    /// The index, which opens the set; `None` for a single shard, which is a file like any other.
    pub index: Option<PathBuf>,
    /// Bytes of all values, before compression; those that tensors share count once.
    pub total_size: u64,
    /// As [`zt_foreign::Summary::left_out`]: the index does not list them either.
    pub left_out: Vec<String>,
    /// Files of the set that was replaced that are no files of this one, and are gone.
    pub removed: Vec<PathBuf>,
    /// As [`zt_foreign::Summary::warnings`].
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

impl Kinds {
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
    /// their names last, the index after all shards. Where `overwrite` lets them replace others, the
    /// set that is there goes as a whole: its index first, so that no index is ever beside shards of
    /// another set, then every shard that it lists and that a set of this name can have. All of them
    /// are back after an error.
    ///
    /// # Errors
    ///
    /// Code `unsupported` for other targets; `overwrite` for files that are there, for an input, and for
    /// what is no file; `misuse` for a stem that is more than a plain name; otherwise as
    /// [`Kinds::convert`].
    pub fn split(
        &self,
        inputs: &[Input],
        folder: impl AsRef<Path>,
        stem: &str,
        max_shard_size: u64,
        overwrite: bool,
        options: &ConvertOptions<'_>,
    ) -> Result<Split> {
        let folder = folder.as_ref();
        let kind = options.target;
        let target = Target::new(self, options)?;
        if !target.writer.has_sets() {
            return Err(Fault::NoSets { kind }.into());
        }
        if !is_plain(stem) {
            return Err(Fault::Stem.into());
        }
        let mut job = Job::new(kind, options);
        let mut merged = merge(self, inputs, &mut job)?;
        let is_shared = kind == ZT && options.deduplicate && has_own_places(inputs);
        let items = items(&mut merged, target.writer, is_shared, &mut job)?;
        let (shards, total_size) = shards(items, max_shard_size);

        let extension = target.extension;
        let names = FileNames { stem, extension };
        let index = (shards.len() > 1).then(|| names.index());
        let files: Vec<String> = (1..=shards.len())
            .map(|number| names.shard(number, shards.len()))
            .collect();
        let replaced = replaced(folder, &names, &files, inputs, overwrite)?;
        let mut staging = Staging::new(folder, stem)?;
        let mut split = Split {
            total_size,
            left_out: job.summary.left_out,
            warnings: job.summary.warnings,
            ..Split::default()
        };
        let mut weight_map = BTreeMap::new();
        let mut told = HashSet::new();
        for (shard, name) in shards.iter().zip(&files) {
            let objects = shard.iter().filter_map(|at| merged.objects.get(*at));
            let part = Merged {
                objects: objects.copied().collect(),
                attributes: merged.attributes.clone(),
                extra: merged.extra.clone(),
            };
            for incoming in &part.objects {
                weight_map.insert(incoming.tensor.name(), name.as_str());
            }
            let mut job = Job::new(kind, options);
            staging.write(name, |file| target.write(part, file, &mut job))?;
            let summary = job.summary;
            split.shards.push(Shard {
                path: folder.join(name),
                objects: summary.objects,
                bytes: summary.bytes,
                byte_len: summary.byte_len,
            });
            // What is lost of the inputs' attributes is lost of every shard.
            let mut warnings = summary.warnings;
            warnings.retain(|it| it.object.is_some() || told.insert(it.message.clone()));
            split.warnings.append(&mut warnings);
        }
        if let Some(index) = &index {
            let metadata = Metadata { total_size };
            let json = IndexJson {
                metadata,
                weight_map,
            };
            staging.write(index, |file| {
                // Writing texts and numbers does not fail, but for the file.
                serde_json::to_writer_pretty(&mut *file, &json).map_err(io::Error::from)?;
                Ok(file.write_all(b"\n")?)
            })?;
        }
        staging.publish(&replaced)?;
        let new: HashSet<&OsStr> = files.iter().chain(&index).map(OsStr::new).collect();
        let removed = replaced
            .iter()
            .filter(|name| !new.contains(name.as_os_str()));
        split.removed = removed.map(|name| folder.join(name)).collect();
        split.index = index.map(|index| folder.join(index));
        Ok(split)
    }
}

/// What is in `folder` that goes when the set of these `files` appears, in the order in which it
/// goes.
///
/// # Errors
///
/// Code `overwrite`.
fn replaced(
    folder: &Path,
    names: &FileNames<'_>,
    files: &[String],
    inputs: &[Input],
    overwrite: bool,
) -> Result<Vec<OsString>> {
    // An index that this set does not have would be beside it, and describe another.
    let index = names.index();
    let mut names_there = Vec::new();
    for name in std::iter::once(&index).chain(files) {
        let path = folder.join(name);
        let checked = output::check_name(&path, inputs, overwrite);
        if checked.map_err(|error| error.with_path(&path))? {
            names_there.push(OsString::from(name));
        }
    }
    if names_there.first().is_none_or(|first| **first != *index) {
        return Ok(names_there);
    }
    let new: HashSet<&String> = files.iter().collect();
    // One that cannot be read says nothing about other files.
    for name in shards_of(&folder.join(&index)).unwrap_or_default() {
        let path = folder.join(&name);
        if names.is_shard(&name)
            && !new.contains(&name)
            && fs::symlink_metadata(&path).is_ok_and(|metadata| !metadata.is_dir())
        {
            output::check_is_no_input(&path, inputs).map_err(|error| error.with_path(&path))?;
            names_there.push(name.into());
        }
    }
    Ok(names_there)
}

/// Offsets and lengths of an object's components.
type Spans = Vec<(u64, u64)>;

/// What every object is to the plan. Objects that the target cannot represent are taken out, if that
/// is allowed.
fn items(
    merged: &mut Merged<'_>,
    writer: &dyn FileWriter,
    is_shared: bool,
    job: &mut Job<'_>,
) -> Result<Vec<Item<Spans>>> {
    let mut items = Vec::with_capacity(merged.objects.len());
    let mut kept = Vec::with_capacity(merged.objects.len());
    for incoming in &merged.objects {
        // What is lost of an object that is written becomes a warning when it is written.
        let mut lost = Job::new(job.target, job.options);
        if let Some(byte_len) = writer.shard_len(incoming, &mut lost)? {
            let storage = spans(incoming).filter(|_| is_shared);
            items.push(Item { byte_len, storage });
            kept.push(*incoming);
        } else {
            let summary = &mut job.summary;
            summary.left_out.push(incoming.tensor.name().to_owned());
            summary.warnings.append(&mut lost.summary.warnings);
        }
    }
    merged.objects = kept;
    Ok(items)
}

/// Where the bytes of an object are; `None` for an object without any.
fn spans(incoming: &Incoming<'_>) -> Option<Spans> {
    let components = incoming.tensor.components();
    let spans = components.map(|(_, component)| component.blob.span);
    let spans: Spans = spans.map(|span| (span.offset(), span.byte_len())).collect();
    spans.iter().any(|(_, len)| *len > 0).then_some(spans)
}

/// Whether equal spans are the same bytes: in one file that is read as it lies there.
fn has_own_places(inputs: &[Input]) -> bool {
    matches!(inputs, [input] if input.file().kind() == ZT && input.paths().len() <= 1)
}

/// What the files of a set are called.
struct FileNames<'s> {
    stem: &'s str,
    extension: &'static str,
}

impl FileNames<'_> {
    fn shard(&self, number: usize, count: usize) -> String {
        let FileNames { stem, extension } = self;
        match count {
            1 => format!("{stem}.{extension}"),
            _ => format!("{stem}-{number:05}-of-{count:05}.{extension}"),
        }
    }

    fn index(&self) -> String {
        format!("{}.{}.index.json", self.stem, self.extension)
    }

    /// Whether a set of that name, of however many shards, can have a shard of this one.
    fn is_shard(&self, name: &str) -> bool {
        let numbers = name
            .strip_prefix(self.stem)
            .and_then(|rest| rest.strip_suffix(self.extension))
            .and_then(|rest| rest.strip_prefix('-')?.strip_suffix('.'));
        let is_number =
            |text: &str| text.len() >= 5 && text.bytes().all(|digit| digit.is_ascii_digit());
        numbers
            .and_then(|numbers| numbers.split_once("-of-"))
            .is_some_and(|(number, count)| is_number(number) && is_number(count))
    }
}

/// The index as the Hub has it, names sorted.
#[derive(Serialize)]
struct IndexJson<'n> {
    metadata: Metadata,
    weight_map: BTreeMap<&'n str, &'n str>,
}

#[derive(Serialize)]
struct Metadata {
    total_size: u64,
}
