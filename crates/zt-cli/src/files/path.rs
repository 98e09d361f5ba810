//! Paths that are not ordinary files.

use std::path::Path;

/// Whether the path is stdout: `-`, `/dev/stdout`, or a name of the same device or pipe.
#[cfg(unix)]
pub(crate) fn is_stdout(path: &Path) -> bool {
    use std::os::fd::AsFd;
    use std::os::unix::fs::MetadataExt;
    let stdout = std::io::stdout().as_fd().try_clone_to_owned();
    let stdout = stdout.and_then(|stdout| std::fs::File::from(stdout).metadata());
    let is_same = matches!((path.metadata(), stdout), (Ok(a), Ok(b))
        // An ordinary file is replaced, not written to.
        if !a.is_file() && (a.dev(), a.ino()) == (b.dev(), b.ino()));
    path == Path::new("-") || is_same
}

/// Whether the path is stdout.
#[cfg(not(unix))]
pub(crate) fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}
