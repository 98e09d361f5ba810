//! What is taken from other files, and how it is changed on the way.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use zt::{DType, Entry, File, Kind};
use zt_convert::{ConvertOptions, Input, Member};

use crate::exit::Failure;
use crate::open::{Opening, decoded_len, input};
use crate::output::Output;

/// What every command takes that writes the tensors of other files.
#[derive(Debug, Args)]
pub(crate) struct Taking {
    /// What the inputs are, instead of what their bytes look like
    #[arg(long, value_name = "KIND", value_parser = kinds(|_| true))]
    from: Option<Kind>,
    /// Write every object as its dense value
    #[arg(long)]
    dense: bool,
    /// Cast floating-point values of dense objects
    #[arg(long, value_enum)]
    dtype: Option<Cast>,
    /// Leave out objects that are at fault, and what cannot be said in the file that is written, each
    /// with a warning; damage that shows when values are read is an error all the same
    #[arg(long)]
    lossy: bool,
    #[command(flatten)]
    opening: Opening,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Cast {
    F64,
    F32,
    F16,
    Bf16,
}

impl Taking {
    /// Opens the files, and how many bytes they are after decoding, as far as they say.
    pub(crate) fn open(&self, paths: &[PathBuf]) -> Result<(Vec<Input>, u64), Failure> {
        let mut inputs = Vec::with_capacity(paths.len());
        let mut total = 0u64;
        for path in paths {
            let input = input(path, self.from, &self.opening)?;
            total = total.saturating_add(decoded_len(input.file()));
            inputs.push(input);
        }
        Ok((inputs, total))
    }

    /// Options that say so.
    pub(crate) fn options<'p>(&self, target: Kind) -> ConvertOptions<'p> {
        let mut options = ConvertOptions::new(target);
        options.dense = self.dense;
        options.dtype = self.dtype.map(DType::from);
        options.lossy = self.lossy;
        options
    }

    /// Says that --lossy would help, where it would.
    pub(crate) fn hint(&self, failure: &Failure, inputs: &[Input], output: &Output) {
        let error = match failure {
            Failure::Error(error) if !self.lossy => error,
            _ => return,
        };
        if error.code() == "lossy" {
            output.note("--lossy writes what can be said, with a warning of the rest");
            return;
        }
        let files = inputs.iter().map(Input::file);
        let entries: Vec<Entry<'_>> = files.flat_map(File::entries).collect();
        let faulty = entries.iter().filter(|entry| entry.fault().is_some());
        let names: Vec<&str> = faulty.map(Entry::name).collect();
        // Not where something else of the object stopped the work.
        if error.object().is_some_and(|name| names.contains(&name)) {
            output.note(&format!(
                "{} of {} objects cannot be read: --lossy leaves them out, each with a warning",
                names.len(),
                entries.len()
            ));
        }
    }
}

/// Says that --force would help, which was not given, where it would.
pub(crate) fn hint_force(failure: &Failure, output: &Output) {
    if matches!(failure, Failure::Error(error) if error.code() == "overwrite") {
        output.note("--force replaces files that are there, but never an input");
    }
}

/// The kinds that are `wanted`, by name.
pub(crate) fn kinds(wanted: fn(&Member) -> bool) -> impl TypedValueParser<Value = Kind> {
    let members = zt_convert::members()
        .iter()
        .filter(move |member| wanted(member));
    PossibleValuesParser::new(members.map(|member| member.kind().as_str())).try_map(|name| {
        zt_convert::member(&name)
            .map(Member::kind)
            .ok_or("no such kind")
    })
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
