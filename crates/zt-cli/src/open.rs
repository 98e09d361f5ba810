//! A path becomes a file.

use std::path::Path;

use zt::{File, Kind, OpenOptions};
use zt_convert::Input;

use crate::exit::Failure;

/// Opens the file at `path`, whatever its kind, to be read by position.
pub(crate) fn open(path: &Path) -> Result<File, Failure> {
    input(path, None).map(Input::into_file)
}

/// As [`open`], with the paths of all files that are read, and with the kind forced where one is
/// given.
pub(crate) fn input(path: &Path, kind: Option<Kind>) -> Result<Input, Failure> {
    let options = OpenOptions::new();
    let opened = match kind {
        Some(kind) => Input::open_as(path, kind, &options),
        None => Input::open(path, &options),
    };
    let opened = match (opened, zt_convert::kind_of_extension(path)) {
        // Bytes decide what a file is. Where they say nothing, the reader of the kind that the name
        // promises can say what is wrong: `not-zt` tells more than `unknown-kind`.
        (Err(error), Some(kind)) if error.code() == "unknown-kind" => {
            Input::open_as(path, kind, &options)
        }
        (opened, _) => opened,
    };
    opened.map_err(Failure::Refused)
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

/// Whether both paths lead to one file, through links too. False where either cannot be looked at.
#[cfg(unix)]
pub(crate) fn is_same_file(a: &Path, b: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |path: &Path| {
        path.metadata()
            .map(|metadata| (metadata.dev(), metadata.ino()))
    };
    matches!((identity(a), identity(b)), (Ok(a), Ok(b)) if a == b)
}

/// Whether both paths lead to one file, through symbolic links too.
#[cfg(not(unix))]
pub(crate) fn is_same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}
