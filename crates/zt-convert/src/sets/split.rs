//! Writes a set of shards and its index, as the Hub keeps large models.

use std::collections::{BTreeMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use zt::{Result, Warning};
use zt_foreign::{ConvertOptions, Fault, FileWriter, Incoming, Input, Job, Loss, Merged, Sink};

use super::index::{is_plain, shards_of};
use super::plan::{Item, shards};
use super::staging::Staging;
use crate::convert::{Target, merge};
use crate::{Kinds, ZT, output};

/// The result of [`Kinds::split`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Split {
    /// The shards, in order.
    pub shards: Vec<Shard>,
    /// The index, which opens the set; `None` for a single shard, which is an ordinary file.
    pub index: Option<PathBuf>,
    /// Bytes of all values, before compression. Shared bytes count once.
    pub total_size: u64,
    /// As [`zt_foreign::Summary::left_out`]. The index does not list them.
    pub left_out: Vec<String>,
    /// As [`zt_foreign::Summary::damaged`].
    pub damaged: Vec<String>,
    /// Files of the replaced set that were removed, because the new set has no file of that name.
    pub removed: Vec<PathBuf>,
    /// As [`zt_foreign::Summary::warnings`].
    pub warnings: Vec<Warning>,
}

/// One file of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shard {
    /// The path.
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
    /// `folder`, and an index beside them. With the `stem` `model` and the target safetensors, the files
    /// are `model-00001-of-00003.safetensors` and so on, and `model.safetensors.index.json`. The target
    /// may be `.zt` too.
    ///
    /// Objects are taken in the order of the inputs and of their data, by the rule of
    /// `huggingface_hub`: an object larger than the limit is a shard by itself. Sizes are before
    /// compression and without headers. A single shard is `model.safetensors`, without an index. Every
    /// shard has the attributes of the inputs. Objects that share their bytes in a `.zt` file stay
    /// together in `.zt` shards, and count once.
    ///
    /// All files appear, or none: they are written into a temporary folder within `folder` and renamed
    /// last, the index after all shards. With `overwrite`, an existing set of this name is replaced as a
    /// whole: its index goes first, so that no index lies beside shards of another set, then the
    /// shards that it lists. After an error all of them are restored.
    ///
    /// # Errors
    ///
    /// Code `unsupported` for other targets; `overwrite` for existing files, for an input, and for
    /// folders and devices; `misuse` for a stem that is no plain name; otherwise as [`Kinds::convert`].
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
        let total_size = total_size.ok_or(Fault::Lossy {
            target: kind,
            loss: Loss::Shape,
        })?;

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
            damaged: job.summary.damaged,
            warnings: job.summary.warnings,
            ..Split::default()
        };
        let mut weight_map = BTreeMap::new();
        let mut messages = HashSet::new();
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
            staging.write(name, |file| {
                target.write(part, Sink::buffered(file), &mut job)
            })?;
            let summary = job.summary;
            split.shards.push(Shard {
                path: folder.join(name),
                objects: summary.objects,
                bytes: summary.bytes,
                byte_len: summary.byte_len,
            });
            // A loss of the inputs' attributes occurs in every shard, but is reported once.
            let mut warnings = summary.warnings;
            warnings.retain(|it| it.object.is_some() || messages.insert(it.message.clone()));
            split.warnings.append(&mut warnings);
        }
        if let Some(index) = &index {
            let metadata = Metadata { total_size };
            let json = IndexJson {
                metadata,
                weight_map,
            };
            staging.write(index, |file| {
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

/// The existing files in `folder` that a set of these `files` replaces, in the order of their removal.
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
    // An old index goes even if this set has none, because it would describe other shards.
    let index = names.index();
    let mut existing = Vec::new();
    for name in std::iter::once(&index).chain(files) {
        let path = folder.join(name);
        let checked = output::check_name(&path, inputs, overwrite);
        if checked.map_err(|error| error.with_path(&path))? {
            existing.push(OsString::from(name));
        }
    }
    if existing.first().is_none_or(|first| **first != *index) {
        return Ok(existing);
    }
    let new: HashSet<&String> = files.iter().collect();
    // An index that cannot be read lists no further files.
    for name in shards_of(&folder.join(&index)).unwrap_or_default() {
        let path = folder.join(&name);
        if names.is_shard(&name)
            && !new.contains(&name)
            && fs::symlink_metadata(&path).is_ok_and(|metadata| !metadata.is_dir())
        {
            output::check_is_no_input(&path, inputs).map_err(|error| error.with_path(&path))?;
            existing.push(name.into());
        }
    }
    Ok(existing)
}

/// Offsets and lengths of an object's components.
type Spans = Vec<(u64, u64)>;

/// The items of the plan, one for each object. Objects that the target cannot represent are removed.
fn items(
    merged: &mut Merged<'_>,
    writer: &dyn FileWriter,
    is_shared: bool,
    job: &mut Job<'_>,
) -> Result<Vec<Item<Spans>>> {
    let mut items = Vec::with_capacity(merged.objects.len());
    let mut kept = Vec::with_capacity(merged.objects.len());
    for incoming in &merged.objects {
        // The losses of a kept object become warnings when it is written.
        let mut lost = Job::new(job.target, job.options);
        let shard_len = writer.shard_len(incoming, &mut lost)?;
        job.refuse(&mut lost);
        if let Some(byte_len) = shard_len {
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
    job.check()?;
    Ok(items)
}

/// The spans of an object's components; `None` for an object without bytes.
fn spans(incoming: &Incoming<'_>) -> Option<Spans> {
    let components = incoming.tensor.components();
    let spans = components.map(|(_, component)| component.blob.span);
    let spans: Spans = spans.map(|span| (span.offset(), span.byte_len())).collect();
    spans.iter().any(|(_, len)| *len > 0).then_some(spans)
}

/// Whether equal spans are the same bytes: only within a single `.zt` file.
fn has_own_places(inputs: &[Input]) -> bool {
    matches!(inputs, [input] if input.file().kind() == ZT && input.paths().len() <= 1)
}

/// The names of a set's files.
struct FileNames<'s> {
    stem: &'s str,
    extension: &'static str,
}

impl FileNames<'_> {
    fn shard(&self, number: usize, count: usize) -> String {
        let FileNames { stem, extension } = self;
        if count == 1 {
            format!("{stem}.{extension}")
        } else {
            format!("{stem}-{number:05}-of-{count:05}.{extension}")
        }
    }

    fn index(&self) -> String {
        format!("{}.{}.index.json", self.stem, self.extension)
    }

    /// Whether a set with this stem, with any number of shards, may have a shard called `name`.
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

/// The index as on the Hub, names sorted.
#[derive(Serialize)]
struct IndexJson<'n> {
    metadata: Metadata,
    weight_map: BTreeMap<&'n str, &'n str>,
}

#[derive(Serialize)]
struct Metadata {
    total_size: u64,
}
