//! The output of a conversion: its kind, and the existing files that it may replace.

use std::fs;
use std::io::Write;
use std::path::Path;

use zt::Result;
use zt::foreign::is_null;
use zt_foreign::{ConvertOptions, Fault, FileWriter, Input, Job, Merged, Sink};

use crate::table::Kinds;

/// The kind that is written.
pub(crate) struct Target<'k> {
    /// The usual extension of its files.
    pub(crate) extension: &'static str,
    pub(crate) writer: &'k dyn FileWriter,
}

impl<'k> Target<'k> {
    pub(crate) fn new(kinds: &'k Kinds, options: &ConvertOptions<'_>) -> Result<Self> {
        let writer = kinds.writer(options.target)?;
        let kind = kinds.get(options.target.as_str());
        let extension = kind.and_then(|kind| kind.extensions().first());
        Ok(Target { extension: extension.copied().unwrap_or_default(), writer })
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

/// Refuses an output that is an input, and, unless `overwrite`, one that exists.
///
/// # Errors
///
/// Code `overwrite`.
pub fn check_output(out: &Path, inputs: &[Input], overwrite: bool) -> Result<()> {
    check_is_no_input(out, inputs)?;
    match fs::metadata(out) {
        _ if is_null(out) => Ok(()),
        Ok(there) if there.is_dir() => Err(Fault::NoFile.into()),
        // A device is written to and not replaced.
        Ok(there) if !there.is_file() => Ok(()),
        // A broken link would be replaced, so it counts.
        _ if !overwrite && fs::symlink_metadata(out).is_ok() => Err(Fault::Exists.into()),
        _ => Ok(()),
    }
}

/// As [`check_output`], for a file of a set, which is written elsewhere and renamed to `out`. Only a file or
/// a link can be replaced so. Returns whether `out` exists.
pub(crate) fn check_name(out: &Path, inputs: &[Input], overwrite: bool) -> Result<bool> {
    check_is_no_input(out, inputs)?;
    let Ok(there) = fs::symlink_metadata(out) else {
        return Ok(false);
    };
    if !there.is_file() && !there.is_symlink() {
        return Err(Fault::NoFile.into());
    }
    if !overwrite {
        return Err(Fault::Exists.into());
    }
    Ok(true)
}

/// Refuses to change a file that is an input.
pub(crate) fn check_is_no_input(path: &Path, inputs: &[Input]) -> Result<()> {
    if fs::metadata(path).is_err() {
        // A missing file is no input. Sets have many files, so comparing all pairs would be slow.
        return Ok(());
    }
    let mut read = inputs.iter().flat_map(Input::paths);
    match read.find(|input| is_same_file(input, path)) {
        Some(input) => Err(Fault::IsInput { input: input.clone() }.into()),
        None => Ok(()),
    }
}

/// Whether two paths lead to one file, through hard or symbolic links too. `false` if either cannot be
/// examined.
#[cfg(unix)]
pub fn is_same_file(a: &Path, b: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |path| fs::metadata(path).map(|metadata| (metadata.dev(), metadata.ino()));
    matches!((identity(a), identity(b)), (Ok(a), Ok(b)) if a == b)
}

/// Whether two paths lead to one file, through hard or symbolic links too. `false` if either cannot be
/// examined.
#[cfg(not(unix))]
pub fn is_same_file(a: &Path, b: &Path) -> bool {
    same_file::is_same_file(a, b).unwrap_or(false)
}
