//! A path becomes a file.

use std::path::{Path, PathBuf};

use clap::Args;
use zt::{File, Kind};
use zt_convert::{Input, InputOptions, Kinds, Names, PYTORCH};

use crate::failure::Failure;
use crate::files::path::refuse_stdin;

/// What every command takes that shows or writes the names of tensors.
#[derive(Debug, Default, Args)]
pub(crate) struct OpenArgs {
    /// Names for the tensors of files that store none (SQUIZD, SLM1): a text, one a line
    // `extract` has names of its own.
    #[arg(
        id = "name_list",
        long = "names",
        value_name = "FILE",
        display_order = 80
    )]
    names: Option<PathBuf>,

    /// Read elements of NumPy's dtype V2 as bf16, which ml_dtypes saves as that
    #[arg(long, display_order = 81)]
    v2_as_bf16: bool,
}

impl OpenArgs {
    /// Opens the file at `path`, whatever its kind, to be read by position.
    pub(crate) fn open(&self, path: &Path) -> Result<File, Failure> {
        self.input(path, None).map(Input::into_file)
    }

    /// As [`OpenArgs::open`], with the paths of all files that are read, and with the kind forced
    /// where one is given.
    pub(crate) fn input(&self, path: &Path, kind: Option<Kind>) -> Result<Input, Failure> {
        refuse_stdin(path)?;
        let mut options = InputOptions::default();
        options.names = self.names.as_ref().map(Names::read).transpose()?;
        options.void2_as_bf16 = self.v2_as_bf16;
        options.kind = kind;
        let kinds = Kinds::builtin();
        let opened = match (kinds.open(path, &options), kinds.of_extension(path)) {
            // Bytes decide what a file is. Where they say nothing, the reader of the kind that the
            // name promises can say what is wrong: `not-zt` tells more than `unknown-kind`. But
            // `.bin` promises nothing.
            (Err(error), Some(kind)) if error.code() == "unknown-kind" && kind != PYTORCH => {
                options.kind = Some(kind);
                kinds.open(path, &options)
            }
            (opened, _) => opened,
        };
        opened.map_err(Failure::Refused)
    }
}

/// Bytes of all components after decoding, as far as the file says.
pub(crate) fn decoded_len(file: &File) -> u64 {
    let entries = file.entries();
    let objects = entries.iter().filter_map(|entry| entry.object().ok());
    let components = objects.flat_map(|object| &object.components);
    components
        .filter_map(|(_, c)| c.blob.decoded_len)
        .fold(0, u64::saturating_add)
}
