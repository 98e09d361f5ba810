//! Paths that are no ordinary files.

use std::path::Path;

use crate::failure::Failure;

/// Refuses `-`, which is a file nowhere else.
pub(crate) fn refuse_stdin(path: &Path) -> Result<(), Failure> {
    if path == Path::new("-") {
        Err(Failure::misuse(
            "stdin cannot be read: files are read by position",
        ))
    } else {
        Ok(())
    }
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
