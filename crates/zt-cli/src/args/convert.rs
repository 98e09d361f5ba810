//! How the objects of the inputs are converted.

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use zt::foreign::Kind;
use zt::{DType, Entry, Error, ErrorKind, File};
use zt_convert::foreign::{Fault, Loss};
use zt_convert::{ConvertOptions, FileKind, Input, Kinds, is_same_file};

use crate::args::input::{InputArgs, decoded_len};
use crate::args::write::WriteArgs;
use crate::failure::Failure;
use crate::output::Output;

/// The options of every command that writes the tensors of other files.
#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    #[command(flatten)]
    write: WriteArgs,
    /// Kind of the inputs; by default, their bytes decide
    #[arg(long, value_name = "KIND", value_parser = kinds(|_| true))]
    from: Option<Kind>,
    /// Write every object as a dense one
    #[arg(long)]
    dense: bool,
    /// Cast floating-point values of dense objects; a finite value that becomes infinite is an error
    #[arg(long, value_enum)]
    dtype: Option<Cast>,
    /// Skip damaged objects and everything that the output kind cannot represent, with a warning for
    /// each; a cast may then give infinite values. Inputs are verified first
    #[arg(long)]
    lossy: bool,
    #[command(flatten)]
    input: InputArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Cast {
    F64,
    F32,
    F16,
    Bf16,
}

impl ConvertArgs {
    /// Opens the files, and sums up their known decoded lengths.
    pub(crate) fn open(&self, paths: &[PathBuf]) -> Result<(Vec<Input>, u64), Failure> {
        let mut inputs = Vec::with_capacity(paths.len());
        let mut total = 0u64;
        for path in paths {
            let input = self.input.open_input(path, self.from)?;
            total = total.saturating_add(decoded_len(input.file()));
            inputs.push(input);
        }
        Ok((inputs, total))
    }

    /// The options of the library for files of kind `target`.
    ///
    /// # Errors
    ///
    /// As [`WriteArgs::options_for`].
    pub(crate) fn options<'p>(&self, target: Kind) -> Result<ConvertOptions<'p>, Failure> {
        let mut options = ConvertOptions::new(target);
        options.write = self.write.options_for(target)?;
        options.deduplicate = !self.write.no_dedup;
        options.dense = self.dense;
        options.dtype = self.dtype.map(DType::from);
        options.lossy = self.lossy;
        Ok(options)
    }

    /// Adds a hint at the option that would help: --dense, --lossy, or --force unless `is_forced`.
    pub(crate) fn hint(
        &self,
        failure: &Failure,
        inputs: &[Input],
        is_forced: bool,
        output: &mut Output,
    ) {
        let Failure::Error(error) = failure else {
            return;
        };
        let mut read = inputs.iter().flat_map(Input::paths);
        let path = error.path().unwrap_or(Path::new(""));
        match error.code() {
            "overwrite"
                if !is_forced
                    && is_replaceable(path)
                    && !read.any(|input| is_same_file(input, path)) =>
            {
                output.hint("--force replaces it");
            }
            "lossy" if !self.lossy => {
                let dense = if !self.dense && has_dense_value(error) {
                    "--dense writes dense values; "
                } else {
                    ""
                };
                output.hint(format!(
                    "{dense}--lossy leaves out what the output kind cannot represent, with a warning for each"
                ));
            }
            _ if !self.lossy => hint_at_faults(error, inputs, output),
            _ => {}
        }
    }
}

/// Whether the file at `path` can be replaced.
fn is_replaceable(path: &Path) -> bool {
    let there = path.symlink_metadata();
    there.is_ok_and(|there| there.is_file() || there.is_symlink() && !path.is_dir())
}

/// If an object is at fault, adds a hint that --lossy skips it. The number of such objects is known
/// only from metadata.
fn hint_at_faults(error: &Error, inputs: &[Input], output: &mut Output) {
    // --lossy does not help if the file that is appended to is damaged.
    let mut read = inputs.iter().flat_map(Input::paths);
    if error
        .path()
        .is_some_and(|path| !read.any(|input| input == path))
    {
        return;
    }
    let files = inputs.iter().map(Input::file);
    let entries: Vec<Entry<'_>> = files.flat_map(File::entries).collect();
    let faulty = entries.iter().filter(|entry| entry.fault().is_some());
    let names: Vec<&str> = faulty.map(Entry::name).collect();
    // Another error may have stopped the work at this object.
    if error.object().is_some_and(|name| names.contains(&name)) {
        let (faulty, all) = (names.len(), entries.len());
        output.hint(format!(
            "{faulty} of {all} objects cannot be read: --lossy skips them, with a warning for each"
        ));
    } else if let (Some(_), ErrorKind::Malformed | ErrorKind::DigestMismatch) =
        (error.object(), error.kind())
    {
        output.hint("--lossy skips objects that cannot be read, with a warning for each");
    }
}

/// Whether the output kind can represent the object's dense value, though not its format.
fn has_dense_value(error: &Error) -> bool {
    matches!(
        Fault::of(error),
        Some(Fault::Lossy {
            loss: Loss::Format {
                has_dense_value: true,
                ..
            },
            ..
        })
    )
}

/// Parses the name of a kind that is `wanted`.
pub(crate) fn kinds(wanted: fn(&dyn FileKind) -> bool) -> impl TypedValueParser<Value = Kind> {
    let kinds = Kinds::builtin();
    let names = kinds.iter().filter(|kind| wanted(*kind));
    let names: Vec<&str> = names.map(|kind| kind.kind().as_str()).collect();
    PossibleValuesParser::new(names)
        .try_map(move |name| kinds.get(&name).map(FileKind::kind).ok_or("no such kind"))
}

impl From<Cast> for DType {
    fn from(cast: Cast) -> Self {
        match cast {
            Cast::F64 => DType::F64,
            Cast::F32 => DType::F32,
            Cast::F16 => DType::F16,
            Cast::Bf16 => DType::BF16,
        }
    }
}
