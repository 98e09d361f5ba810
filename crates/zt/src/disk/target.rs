//! What a path to write to stands for: a file, whose links are followed, or a device.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use zt_container::is_device;

/// Whether `path` is `NUL`, where Windows drops what is written. Its metadata does not show it.
///
/// Windows 10 drops what is written to `nul.zt`, too. This is `false` for it: no model is dropped by mistake.
pub fn is_null(path: &Path) -> bool {
    // The device itself has no name of a file.
    let name = path.file_name().unwrap_or(path.as_os_str());
    let is_named = ["NUL", r"\\.\NUL"].iter().any(|null| name.eq_ignore_ascii_case(null));
    is_named && is_device(path)
}

/// The real file of a path: absolute, so that a change of the working folder does not matter, and
/// with every link resolved, also links to missing files.
pub(crate) fn resolved(path: &Path) -> io::Result<PathBuf> {
    /// As many links as Linux follows.
    const MOST: usize = 40;
    let last = path.as_os_str().as_encoded_bytes().last();
    if last.is_some_and(|last| std::path::is_separator(char::from(*last))) {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let mut target = std::path::absolute(path)?;
    for _ in 0..=MOST {
        match fs::canonicalize(&target) {
            Ok(target) => return Ok(target),
            // A link to an open file without a path, such as `/dev/fd/1` for a pipe.
            Err(_) if fs::metadata(&target).is_ok() => return Ok(target),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        match fs::read_link(&target) {
            // A relative link starts at its own folder. An absolute one replaces the path.
            Ok(next) => target = target.parent().unwrap_or(Path::new("/")).join(next),
            Err(_) => return Ok(target),
        }
    }
    Err(io::Error::other("too many links"))
}

pub(crate) fn folder_of(target: &Path) -> &Path {
    let folder = target.parent();
    let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}
