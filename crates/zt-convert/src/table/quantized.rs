//! Quantized checkpoints as their weights, with the settings beside them.

use std::borrow::Cow;
use std::fs;
use std::io::Read as _;
use std::path::Path;

use zt::container::memory;
use zt::{Error, ErrorKind, File, Result, Span};
use zt_foreign::{ConvertOptions, Folder, Input, Logical, LogicalTensor};
use zt_quantized::{Dialects, Quantized, Settings, Weight, find, stored};

use crate::native::ZT;
use crate::table::Kinds;
use crate::table::shard_name::is_one_of_several;

impl Kinds {
    /// A quantized checkpoint as the weights that its codes and scales mean, which are computed when they are read.
    /// [`InputOptions::logical`](zt_foreign::InputOptions::logical) opens one so. The settings beside the path of
    /// `input` are read.
    ///
    /// # Errors
    ///
    /// Code `quantization` for settings that are no JSON. A weight that lacks a part is listed, and reading it is an
    /// error of that code.
    pub fn logical(&self, input: Input, logical: Logical) -> Result<Input> {
        let settings = settings(&input)?;
        open(input, logical, &self.dialects, &settings)
    }

    /// As [`Kinds::logical`], with the settings in a folder of a store.
    ///
    /// # Errors
    ///
    /// As [`Kinds::logical`].
    pub fn logical_in(&self, input: Input, folder: &dyn Folder, logical: Logical) -> Result<Input> {
        let settings = in_folder(folder)?.shard(is_shard(&input));
        open(input, logical, &self.dialects, &settings)
    }

    /// The tensors of an input that are codes and scales of quantized weights. The settings beside its path say what
    /// names and types do not.
    ///
    /// # Errors
    ///
    /// Code `quantization` for settings that are no JSON; as reading small tensors that describe others.
    pub fn quantized(&self, input: &Input) -> Result<Quantized> {
        let settings = match input.logical() {
            [] => settings(input)?,
            _ => Settings::default(),
        };
        find(input.file(), &settings, &self.dialects).map_err(|error| input.blame(error))
    }

    /// The inputs as they are written to a file of the kind that the options choose: with their weights in the dialect of
    /// [`ConvertOptions::dialect`]; without one, objects of quantized weights are the tensors that they were, where the
    /// kind has no such objects.
    pub(crate) fn in_dialect<'i>(
        &self,
        inputs: Cow<'i, [Input]>,
        options: &ConvertOptions<'_>,
    ) -> Result<Cow<'i, [Input]>> {
        let mut changed: Vec<(usize, File)> = Vec::new();
        for (at, input) in inputs.iter().enumerate() {
            let file = match &options.dialect {
                Some(dialect) => Some(self.quantized(input)?.in_dialect(dialect)),
                None if options.target == ZT => None,
                None => stored(input.file()).transpose(),
            };
            if let Some(file) = file {
                changed.push((at, file.map_err(|error| input.blame(error))?));
            }
        }
        if changed.is_empty() {
            return Ok(inputs);
        }
        let mut inputs = inputs.into_owned();
        for (at, file) in changed {
            if let Some(input) = inputs.get_mut(at) {
                *input = input.clone().with_file(file);
            }
        }
        Ok(Cow::Owned(inputs))
    }
}

/// The file of the weights that codes and scales of an input mean.
fn open(input: Input, logical: Logical, dialects: &Dialects, settings: &Settings) -> Result<Input> {
    let found = || {
        let found = find(input.file(), settings, dialects)?;
        let warnings = if logical.checks_scales { found.check_scales()? } else { Vec::new() };
        let tensor = |weight: &Weight| {
            LogicalTensor::new(&weight.name, weight.dialect.clone(), found.bits(weight))
        };
        let tensors: Vec<LogicalTensor> = found.weights().iter().map(tensor).collect();
        let file = found.logical(logical.float)?;
        let file = if warnings.is_empty() { file } else { file.with_warnings(warnings)? };
        Ok((file, tensors))
    };
    let (file, tensors) = found().map_err(|error: Error| input.blame(error))?;
    Ok(input.with_file(file).with_logical(tensors))
}

/// The settings beside the path of an input.
fn settings(input: &Input) -> Result<Settings> {
    let settings = input.path().map(beside).transpose()?.unwrap_or_default();
    Ok(settings.shard(is_shard(input)))
}

/// Whether an input is one of several shards, which is open alone.
fn is_shard(input: &Input) -> bool {
    match input.paths() {
        [path] => is_one_of_several(path),
        _ => false,
    }
}

/// The settings in a folder, or beside a file.
fn beside(path: &Path) -> Result<Settings> {
    let folder = if path.is_dir() { Some(path) } else { path.parent() };
    let mut settings = Settings::default();
    for name in Settings::FILES {
        let path = folder.unwrap_or(Path::new("")).join(name);
        let Ok(file) = fs::File::open(&path) else {
            continue;
        };
        let mut json = Vec::new();
        let read = file.take(Settings::LEN_MAX).read_to_end(&mut json).map_err(Error::from);
        let added = read.and_then(|_| settings.add(name, &json));
        added.map_err(|error| error.with_path(&path))?;
    }
    Ok(settings)
}

/// The settings in a folder of a store.
fn in_folder(folder: &dyn Folder) -> Result<Settings> {
    let mut settings = Settings::default();
    for (name, opened) in Settings::FILES.iter().zip(folder.open(&Settings::FILES)) {
        let source = match opened {
            Ok(Some(source)) => source,
            // Not the file that was sealed.
            Err(error) if error.kind() == ErrorKind::DigestMismatch => return Err(error),
            // A store that gives no answer is found by every other request.
            _ => continue,
        };
        let mut json = Vec::new();
        if let Some(span) = Span::new(0, source.byte_len().min(Settings::LEN_MAX)) {
            memory::fetch(&mut json, &*source, span)?;
        }
        settings.add(name, &json)?;
    }
    Ok(settings)
}
