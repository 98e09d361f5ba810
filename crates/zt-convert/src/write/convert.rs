//! Converts files of any kind to one file of any kind that is written: merges the inputs, then writes.

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::path::Path;

use zt::foreign::{AtomicFile, WarningKind, parted_links};
use zt::{Error, Result, Warning};
use zt_foreign::{
    ConvertOptions, Fault, FileWriter, Incoming, Input, Job, Loss, Merged, Sink, Summary,
};

use crate::damage::Damage;
use crate::union::Union;
use crate::{Kinds, ZT, output};

impl Kinds {
    /// Writes the objects of all `inputs`, in the order of the inputs and of their data, as one file of
    /// the kind `options.target` to `sink`.
    ///
    /// Attributes are kept; unknown fields too, if the target has room for them. The same inputs
    /// and options give the same bytes, with any number of threads. Values are streamed. Memory grows
    /// with their size in three cases only: [`ConvertOptions::dense`], the indices of a sparse object,
    /// and zstd in old files that do not record its decoded length. After an error the sink holds an
    /// unfinished file.
    ///
    /// # Errors
    ///
    /// The fault of any object of an input, unless damaged objects are skipped: no object is dropped
    /// silently.
    ///
    /// | code | cause |
    /// | --- | --- |
    /// | `overlap` | blobs of an input overlap beyond [`zt::Limits::overlap`] |
    /// | `duplicate-name` | two objects have one name |
    /// | `lossy` | the target cannot represent some values, which are listed; a tensor is in two shards |
    /// | `unsupported` | the target cannot be written; an object lacks the requested dense value |
    ///
    /// [`zt::ErrorKind::Io`] if the sink fails; [`zt::ErrorKind::Interrupted`].
    pub fn convert(
        &self,
        inputs: &[Input],
        sink: impl Write + Send,
        options: &ConvertOptions<'_>,
    ) -> Result<Summary> {
        self.convert_to_sink(inputs, Sink::new(sink), options)
    }

    /// As [`Kinds::convert`], to a file that the caller publishes. Raw components without digests go from
    /// file to file without a way through memory, where the system can do that.
    ///
    /// # Errors
    ///
    /// As [`Kinds::convert`].
    pub fn convert_to_file(
        &self,
        inputs: &[Input],
        file: &mut AtomicFile,
        options: &ConvertOptions<'_>,
    ) -> Result<Summary> {
        self.convert_to_sink(inputs, Sink::file(file), options)
    }

    fn convert_to_sink(
        &self,
        inputs: &[Input],
        sink: Sink<'_>,
        options: &ConvertOptions<'_>,
    ) -> Result<Summary> {
        let target = Target::new(self, options)?;
        let mut job = Job::new(options.target, options);
        let merged = merge(self, inputs, &mut job)?;
        target.write(merged, sink, &mut job)?;
        Ok(job.summary)
    }

    /// As [`Kinds::convert`], to a file that appears at `out` complete or not at all. A failure leaves
    /// no temporary file.
    ///
    /// `overwrite` allows to replace an existing file. An input, or a shard of one, is never replaced,
    /// even through a symbolic link or, on Unix, a hard link. A device or a pipe is written to.
    ///
    /// # Errors
    ///
    /// Code `overwrite`; code `locked` if a program is editing the file at `out`; otherwise as [`Kinds::convert`] and [`AtomicFile`].
    pub fn convert_to_path(
        &self,
        inputs: &[Input],
        out: impl AsRef<Path>,
        overwrite: bool,
        options: &ConvertOptions<'_>,
    ) -> Result<Summary> {
        let out = out.as_ref();
        let write = || {
            output::check(out, inputs, overwrite)?;
            // A file that appears during the conversion is not replaced.
            let is_there = fs::symlink_metadata(out).is_ok();
            let create = if overwrite || is_there {
                AtomicFile::create
            } else {
                AtomicFile::create_new
            };
            let mut file = create(out)?;
            let parted = parted_links(out);
            let mut summary = self.convert_to_file(inputs, &mut file, options)?;
            file.publish()?;
            summary.warnings.extend(parted);
            Ok(summary)
        };
        write().map_err(|error: Error| error.with_path(out))
    }
}

/// Merges all inputs: checks their objects, joins their attributes, repeats their warnings.
///
/// If damaged objects are skipped, the inputs are verified to find them before anything is written.
///
/// # Errors
///
/// The fault of an object, unless damaged ones are skipped. Code `overlap` for blobs that would be
/// written many times; `duplicate-name` for two objects of one name; `lossy` for data that the reader
/// of an input skipped, unless that is allowed.
pub(crate) fn merge<'i>(
    kinds: &Kinds,
    inputs: &'i [Input],
    job: &mut Job<'_>,
) -> Result<Merged<'i>> {
    let mut attributes_of = Vec::with_capacity(inputs.len());
    let mut has_attributes = false;
    for input in inputs {
        let attributes = input.file().attributes();
        let attributes = attributes.map_err(|error| input.blame(error))?;
        has_attributes |= attributes.is_some();
        attributes_of.push(attributes.unwrap_or_default());
    }
    let mut is_whole_set = false;
    for kind in kinds.iter() {
        is_whole_set |= kind.merge_attributes(&mut attributes_of);
    }
    repeat_warnings(inputs, is_whole_set, job)?;

    let mut objects = Vec::new();
    let mut places = HashMap::new();
    let (mut attributes, mut extra) = (Union::default(), Union::default());
    for (input, map) in inputs.iter().zip(attributes_of) {
        let blame = |error| input.blame(error);
        add_objects(input, &mut objects, &mut places, inputs.len() > 1, job)?;
        attributes.add(map, job).map_err(blame)?;
        let map = input.file().extra().map_err(blame)?;
        extra.add(map, job).map_err(blame)?;
    }
    let mut attributes = attributes.into_map();
    for kind in kinds
        .iter()
        .filter(|kind| ![ZT, kind.kind()].contains(&job.target))
    {
        for key in kind.own_attributes() {
            attributes.remove(key);
        }
    }
    Ok(Merged {
        objects,
        attributes: has_attributes.then_some(attributes),
        extra: extra.into_map(),
    })
}

/// Adds the objects of an input. `places` has the path of the input that has each name, if it
/// `is_one_of_several`.
fn add_objects<'i>(
    input: &'i Input,
    objects: &mut Vec<Incoming<'i>>,
    places: &mut HashMap<&'i str, Option<&'i Path>>,
    is_one_of_several: bool,
    job: &mut Job<'_>,
) -> Result<()> {
    let blame = |error| input.blame(error);
    let (file, path) = (input.file(), input.path());
    file.check_overlap().map_err(blame)?;
    let mut damage = Damage::of(file, job.options).map_err(blame)?;
    if objects.is_empty() {
        objects.reserve_exact(file.len());
    }
    for entry in file.entries() {
        let checked = entry.tensor().and_then(|tensor| match tensor.fault() {
            // Another kind of file cannot hold components without a meaning.
            Some(fault) if job.target != ZT => Err(fault.clone()),
            _ => damage.check(tensor),
        });
        let tensor = match checked {
            Ok(tensor) => tensor,
            Err(fault) => {
                job.leave_out(fault, entry.name()).map_err(blame)?;
                continue;
            }
        };
        // The names of one file are unique.
        if is_one_of_several && let Some(first) = places.insert(entry.name(), path) {
            let (first, second) = (first.map(Path::to_owned), path.map(Path::to_owned));
            let error = Error::from(Fault::Repeated { first, second });
            return Err(error.with_object(entry.name()));
        }
        if let Some(fault) = tensor.fault() {
            let message = format!("kept as it is: {}", fault.message());
            let warning = Warning::new(fault.code(), message).with_object(entry.name());
            job.summary.warnings.push(warning);
        }
        objects.push(Incoming {
            tensor,
            registry: file.registry(),
            path,
        });
    }
    Ok(())
}

/// Repeats the warnings about the inputs, except that parts are missing if the set is complete. Data
/// that a reader skipped is a loss.
fn repeat_warnings(inputs: &[Input], is_whole_set: bool, job: &mut Job<'_>) -> Result<()> {
    for input in inputs {
        for mut warning in input.file().warnings() {
            match warning.kind {
                WarningKind::PassedOver => {
                    let what = warning.message;
                    job.accept(Loss::Read { what }, warning.object.as_deref());
                    job.check().map_err(|error| input.blame(error))?;
                    continue;
                }
                WarningKind::Part if is_whole_set => continue,
                _ => {}
            }
            // With several inputs, the message has to name the file.
            if let (Some(path), None, [_, _, ..]) = (input.path(), &warning.object, inputs) {
                warning.message = format!("{}: {}", path.display(), warning.message);
            }
            job.summary.warnings.push(warning);
        }
    }
    Ok(())
}

/// The kind that is written.
pub(crate) struct Target<'k> {
    /// The usual extension of its files.
    pub(crate) extension: &'static str,
    pub(crate) writer: &'k dyn FileWriter,
}

impl<'k> Target<'k> {
    pub(crate) fn new(kinds: &'k Kinds, options: &ConvertOptions<'_>) -> Result<Self> {
        let writer = kinds.writer(options.target)?;
        check_cast(options)?;
        let kind = kinds.get(options.target.as_str());
        let extension = kind.and_then(|kind| kind.extensions().first());
        Ok(Target {
            extension: extension.copied().unwrap_or_default(),
            writer,
        })
    }

    /// Writes one file with all merged objects or some of them.
    pub(crate) fn write(
        &self,
        merged: Merged<'_>,
        mut sink: Sink<'_>,
        job: &mut Job<'_>,
    ) -> Result<()> {
        self.writer.write(merged, &mut sink, job)?;
        job.check()?;
        job.end_attributes();
        sink.flush()?;
        job.summary.byte_len = sink.byte_len();
        Ok(())
    }
}

/// Refuses a cast to something other than a floating-point type.
pub(crate) fn check_cast(options: &ConvertOptions<'_>) -> Result<()> {
    match options.dtype {
        Some(dtype) if !dtype.is_float() => Err(Fault::CastTarget { dtype }.into()),
        _ => Ok(()),
    }
}
