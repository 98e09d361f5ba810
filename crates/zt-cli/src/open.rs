//! A path becomes a file.

use std::path::{Path, PathBuf};

use clap::Args;
use zt::{File, Kind};
pub(crate) use zt_convert::is_same_file;
use zt_convert::{Input, InputOptions, Names};

use crate::exit::Failure;

/// What every command takes that shows or writes the names of tensors.
#[derive(Debug, Default, Args)]
pub(crate) struct Opening {
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

impl Opening {
    fn options(&self) -> Result<InputOptions, Failure> {
        let mut options = InputOptions::default();
        options.names = self.names.as_ref().map(Names::read).transpose()?;
        options.void2_as_bf16 = self.v2_as_bf16;
        Ok(options)
    }
}

/// Opens the file at `path`, whatever its kind, to be read by position.
pub(crate) fn open(path: &Path, opening: &Opening) -> Result<File, Failure> {
    input(path, None, opening).map(Input::into_file)
}

/// As [`open`], with the paths of all files that are read, and with the kind forced where one is
/// given.
pub(crate) fn input(path: &Path, kind: Option<Kind>, opening: &Opening) -> Result<Input, Failure> {
    refuse_stdin(path)?;
    let mut options = opening.options()?;
    options.kind = kind;
    let opened = zt_convert::Kinds::builtin().open(path, &options);
    let opened = match (opened, zt_convert::Kinds::builtin().of_extension(path)) {
        // Bytes decide what a file is. Where they say nothing, the reader of the kind that the name
        // promises can say what is wrong: `not-zt` tells more than `unknown-kind`. But `.bin` promises
        // nothing.
        (Err(error), Some(kind))
            if error.code() == "unknown-kind" && kind != zt_convert::PYTORCH =>
        {
            options.kind = Some(kind);
            zt_convert::Kinds::builtin().open(path, &options)
        }
        (opened, _) => opened,
    };
    opened.map_err(Failure::Refused)
}

/// Refuses `-`, which is a file nowhere else.
pub(crate) fn refuse_stdin(path: &Path) -> Result<(), Failure> {
    match path == Path::new("-") {
        true => Err(Failure::misuse(
            "stdin cannot be read: files are read by position",
        )),
        false => Ok(()),
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

/// Whether what is written to the path comes out of stdout, as of `-` or `/dev/stdout`.
#[cfg(unix)]
pub(crate) fn is_stdout(path: &Path) -> bool {
    use std::os::fd::AsFd;
    use std::os::unix::fs::MetadataExt;
    let stdout = std::io::stdout().as_fd().try_clone_to_owned();
    let stdout = stdout.and_then(|stdout| std::fs::File::from(stdout).metadata());
    let is_the_same = matches!((path.metadata(), stdout), (Ok(a), Ok(b))
        // A file takes the place of one that is there.
        if !a.is_file() && (a.dev(), a.ino()) == (b.dev(), b.ino()));
    path == Path::new("-") || is_the_same
}

/// Whether what is written to the path comes out of stdout.
#[cfg(not(unix))]
pub(crate) fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}
