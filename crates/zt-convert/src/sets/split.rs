//! Writes a set of shards and its index, as the Hub keeps large models.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use zt::{Result, Span, Warning};
use zt_foreign::{
    Cast, ConvertOptions, Duplicate, Fault, FileWriter, Incoming, Input, Job, Loss, Merged,
    SetForm, ShardPlace, Sink, TargetFolder,
};

use super::index::{Index, is_plain};
use super::options::SplitOptions;
use super::plan::{Item, Limits, shards};
use super::replaced::{Place, Replaced};
use super::staging::{self, Staging};
use super::store;
use crate::merge::{Target, join_slices, merge};
use crate::native::ZT;
use crate::table::Kinds;

/// The result of [`Kinds::split`].
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Split {
    /// The shards, in order.
    pub shards: Vec<Shard>,
    /// The index, which opens the set; `None` for a single shard, which is an ordinary file, and for files
    /// that are numbered. Any of these opens its set.
    pub index: Option<PathBuf>,
    /// Bytes of all values, before compression. Shared bytes count once.
    pub total_size: u64,
    /// As [`zt_foreign::Summary::left_out`]. The index does not list them.
    pub left_out: Vec<String>,
    /// As [`zt_foreign::Summary::damaged`].
    pub damaged: Vec<String>,
    /// As [`zt_foreign::Summary::duplicates`].
    pub duplicates: Vec<Duplicate>,
    /// Files of the replaced set that were removed, because the new set has no file of that name.
    pub removed: Vec<PathBuf>,
    /// As [`zt_foreign::Summary::casts`].
    pub casts: Vec<Cast>,
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
    /// Writes the objects of all `inputs` as shards of at most [`SplitOptions::max_shard_size`] bytes of
    /// values into `folder`, and an index beside them. With the stem `model` and the target safetensors,
    /// the files are `model-00001-of-00003.safetensors` and so on, and `model.safetensors.index.json`. The target
    /// may be `.zt` or GGUF too.
    ///
    /// Objects are taken in the order of the inputs and of their data, by the rule of
    /// `huggingface_hub`: an object larger than the limit is a shard by itself. Sizes are before
    /// compression and without headers. A single shard is `model.safetensors`, without an index. Every
    /// shard has the attributes of the inputs. Objects that share their bytes in a `.zt` file stay
    /// together in `.zt` shards, and count once.
    ///
    /// All files appear, or none: they get their names when all are durable, and the index is last. With
    /// [`ConvertOptions::overwrite`], an existing set of this name is replaced as a whole, also if it is an input and the
    /// new set has all its objects. The rename of the index is the one step: before it, the index opens
    /// the old set, and after it the new one. Then the old shards are removed. Where the old index lists
    /// a name of a new shard, or such a file exists, the shards are called
    /// `model-g2-00001-of-00003.safetensors` and so on.
    ///
    /// A kind whose files are numbered, such as GGUF, has no index. Each file has its number, and the first
    /// one has the attributes. The objects keep their order, so an object larger than the limit comes after
    /// those before it. The set opens by any of its files. The first one gets its name last, and the set
    /// does not open before. Existing files of these names are replaced, and after a kill in between neither
    /// set is whole; a set of another number of files stays.
    ///
    /// If the process is killed, the next call for a set of this name removes what it left.
    ///
    /// # Errors
    ///
    /// Code `unsupported` for other targets; `overwrite` for existing files, for an input, and for
    /// folders and devices; `locked` if a program is editing one of the files or writing the set;
    /// `misuse` for a stem that is no plain name; otherwise as [`Kinds::convert`].
    pub fn split(
        &self,
        inputs: &[Input],
        folder: impl AsRef<Path>,
        options: &SplitOptions<'_>,
    ) -> Result<Split> {
        self.split_at(inputs, Place::Local(folder.as_ref()), options)
    }

    /// As [`Kinds::split`], to a folder of a store.
    ///
    /// Each shard appears when it is complete, and the index is last: the set exists from then on. After
    /// an error the shards that were written are removed, unless the index may list them. A program that is
    /// killed may leave shards without an index.
    ///
    /// Of a numbered set, such as GGUF, the first file is written last. It does not open before.
    ///
    /// With [`ConvertOptions::overwrite`], an existing set of this name is replaced, also if it is an input and the new set
    /// has all its objects. The new shards have names that no file has. The old shards are removed when
    /// the new index is there.
    ///
    /// # Errors
    ///
    /// As [`Kinds::split`]; [`zt::ErrorKind::Io`] for errors of the store.
    pub fn split_to_store(
        &self,
        inputs: &[Input],
        folder: &dyn TargetFolder,
        options: &SplitOptions<'_>,
    ) -> Result<Split> {
        self.split_at(inputs, Place::Store(folder), options)
    }

    fn split_at(
        &self,
        inputs: &[Input],
        place: Place<'_>,
        options: &SplitOptions<'_>,
    ) -> Result<Split> {
        let inputs = &*self.in_dialect(join_slices(inputs)?, &options.convert)?;
        let mut plan = Plan::new(self, inputs, options)?;
        let (names, count) = (plan.names.clone(), plan.shards.len());
        if let Place::Local(folder) = place {
            let is_ours =
                |name: &str| names.is_shard(name) && place.expect_no_input(name, inputs).is_ok();
            Staging::clean(folder, &names.index(), names.form, is_ours)?;
        }
        let old = Replaced::of(place, &names, count, inputs, options.convert.overwrite)?;
        if old.is_input && !plan.has_all(old.objects) {
            let input = place.path_of(&names.index());
            return Err(zt::Error::from(Fault::IsInput { input: input.clone() }).with_path(&input));
        }
        let files = match names.form {
            SetForm::Numbered => names.shards(count, 1),
            // A single shard replaces the file of its name.
            _ => names.free(count, |name| {
                let is_listed = old.listed.iter().any(|listed| listed == name);
                Ok(is_listed || count > 1 && place.contains(name)?)
            })?,
        };
        match place {
            Place::Local(folder) => staging::write(folder, &mut plan, &files, &old)?,
            Place::Store(folder) => store::write(folder, &mut plan, &files, &old)?,
        }
        Ok(plan.split)
    }
}

/// Which object goes to which shard.
pub(super) struct Plan<'p> {
    target: Target<'p>,
    pub(super) options: &'p ConvertOptions<'p>,
    pub(super) names: FileNames<'p>,
    merged: Merged<'p>,
    /// The positions of the objects of each shard.
    pub(super) shards: Vec<Vec<usize>>,
    /// What was written so far.
    pub(super) split: Split,
    /// Messages of attributes that were lost. A loss occurs in every shard, and is reported once.
    messages: HashSet<String>,
}

impl<'p> Plan<'p> {
    /// # Errors
    ///
    /// As [`Kinds::split`].
    pub(super) fn new(
        kinds: &'p Kinds,
        inputs: &'p [Input],
        split: &'p SplitOptions<'p>,
    ) -> Result<Self> {
        let (stem, options) = (split.stem.as_str(), &split.convert);
        let kind = options.target;
        let target = Target::new(kinds, options)?;
        let form = target.writer.set_form().ok_or(Fault::NoSets { kind })?;
        if !is_plain(stem) || stem.contains(char::is_control) {
            return Err(Fault::Stem.into());
        }
        let mut job = Job::new(kind, options);
        let mut merged = merge(kinds, inputs, &mut job)?;
        let is_shared = kind == ZT && options.deduplicate && has_own_places(inputs);
        let items = items(&mut merged, target.writer, is_shared, &mut job)?;
        let limits = Limits {
            byte_len: split.max_shard_size,
            tensors: split.max_tensors,
            in_order: form == SetForm::Numbered,
        };
        let (shards, total_size) = shards(items, limits);
        let total_size = total_size.ok_or(Fault::Lossy { target: kind, loss: Loss::Shape })?;
        let extension = target.extension;
        Ok(Plan {
            target,
            options,
            names: FileNames { stem, extension, form },
            merged,
            shards,
            split: Split {
                total_size,
                left_out: job.summary.left_out,
                damaged: job.summary.damaged,
                duplicates: job.summary.duplicates,
                warnings: job.summary.warnings,
                ..Split::default()
            },
            messages: HashSet::new(),
        })
    }

    /// Whether the new set has as many objects as the one that it replaces, and leaves none out.
    pub(super) fn has_all(&self, objects: usize) -> bool {
        let new: usize = self.shards.iter().map(Vec::len).sum();
        new >= objects && self.split.left_out.is_empty() && self.split.damaged.is_empty()
    }

    /// Writes the shard of this position, which will be `path`.
    pub(super) fn write(&mut self, at: usize, path: PathBuf, sink: Sink<'_>) -> Result<()> {
        let shard = self.shards.get(at).map(Vec::as_slice);
        let objects = shard.unwrap_or_default().iter();
        let objects = objects.filter_map(|at| self.merged.objects.get(*at));
        let mut attributes = self.merged.attributes.clone();
        if self.shards.len() > 1 {
            let part = ShardPlace {
                no: at as u64,
                count: self.shards.len() as u64,
                objects: self.merged.objects.len() as u64,
            };
            attributes = self.target.writer.part_attributes(attributes, part)?;
        }
        let part = Merged {
            objects: objects.copied().collect(),
            attributes,
            extra: self.merged.extra.clone(),
        };
        let mut job = Job::new(self.options.target, self.options);
        self.target.write(part, sink, &mut job)?;
        let summary = job.summary;
        summary.casts.iter().for_each(|cast| cast.add_to(&mut self.split.casts));
        self.split.shards.push(Shard {
            path,
            objects: summary.objects,
            bytes: summary.bytes,
            byte_len: summary.byte_len,
        });
        // A loss of the inputs' attributes occurs in every shard, but is reported once.
        let mut warnings = summary.warnings;
        warnings.retain(|it| it.object.is_some() || self.messages.insert(it.message.clone()));
        self.split.warnings.append(&mut warnings);
        Ok(())
    }

    /// The index of shards with these names; `None` for one shard.
    pub(super) fn index_json(&self, files: &[String]) -> Result<Option<Vec<u8>>> {
        if files.len() <= 1 {
            return Ok(None);
        }
        let mut weight_map = BTreeMap::new();
        for (shard, name) in self.shards.iter().zip(files) {
            let objects = shard.iter().filter_map(|at| self.merged.objects.get(*at));
            weight_map.extend(objects.map(|incoming| (incoming.tensor.name(), name.as_str())));
        }
        Ok(Some(Index::to_json(self.split.total_size, &weight_map)?))
    }
}

/// The items of the plan, one for each object. Objects that the target cannot represent are removed.
fn items(
    merged: &mut Merged<'_>,
    writer: &dyn FileWriter,
    is_shared: bool,
    job: &mut Job<'_>,
) -> Result<Vec<Item<Vec<Span>>>> {
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
fn spans(incoming: &Incoming<'_>) -> Option<Vec<Span>> {
    let components = incoming.tensor.components();
    let spans: Vec<Span> = components.map(|(_, it)| it.blob.span).collect();
    let has_bytes = spans.iter().any(|span| !span.is_empty());
    has_bytes.then_some(spans)
}

/// Whether equal spans are the same bytes: only within a single `.zt` file.
fn has_own_places(inputs: &[Input]) -> bool {
    matches!(inputs, [input] if input.file().kind() == ZT && input.paths().len() <= 1)
}

/// The names of a set's files.
#[derive(Clone)]
pub(super) struct FileNames<'s> {
    stem: &'s str,
    extension: &'static str,
    pub(super) form: SetForm,
}

impl FileNames<'_> {
    /// The name of a shard. Only the first generation has the names of the Hub.
    pub(super) fn shard(&self, number: usize, count: usize, generation: u64) -> String {
        let FileNames { stem, extension, .. } = self;
        let tag = match generation {
            1 => String::new(),
            generation => format!("-g{generation}"),
        };
        if count == 1 {
            format!("{stem}{tag}.{extension}")
        } else {
            format!("{stem}{tag}-{number:05}-of-{count:05}.{extension}")
        }
    }

    /// The names of `count` shards.
    pub(super) fn shards(&self, count: usize, generation: u64) -> Vec<String> {
        let numbers = 1..=count;
        numbers.map(|number| self.shard(number, count, generation)).collect()
    }

    /// The names of `count` shards, of the first generation in which no name `is_taken`.
    pub(super) fn free(
        &self,
        count: usize,
        mut is_taken: impl FnMut(&str) -> Result<bool>,
    ) -> Result<Vec<String>> {
        let mut generation = 0u64;
        loop {
            generation = generation.strict_add(1);
            let names = self.shards(count, generation);
            let is_free = |free, name: &String| Ok::<_, zt::Error>(free && !is_taken(name)?);
            if names.iter().try_fold(true, is_free)? {
                return Ok(names);
            }
        }
    }

    pub(super) fn index(&self) -> String {
        format!("{}.{}.index.json", self.stem, self.extension)
    }

    /// Whether a set with this stem, of any number of shards and any generation, may have a shard called
    /// `name`.
    pub(super) fn is_shard(&self, name: &str) -> bool {
        let rest = name.strip_prefix(self.stem).and_then(|rest| rest.strip_suffix(self.extension));
        let numbers = rest.and_then(|rest| rest.strip_suffix('.')?.strip_prefix('-'));
        let is_digits = |text: &str| text.bytes().all(|digit| digit.is_ascii_digit());
        let numbers = numbers.and_then(|numbers| match numbers.strip_prefix('g') {
            Some(tagged) => {
                let (generation, numbers) = tagged.split_once('-')?;
                (!generation.is_empty() && is_digits(generation)).then_some(numbers)
            }
            None => Some(numbers),
        });
        let is_number = |text: &str| text.len() >= 5 && is_digits(text);
        numbers
            .and_then(|numbers| numbers.split_once("-of-"))
            .is_some_and(|(number, count)| is_number(number) && is_number(count))
    }
}
