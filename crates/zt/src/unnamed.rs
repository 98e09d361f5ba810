//! A file that has no name yet, where the system has such: if nobody gives it one, it is gone with
//! the process, however that ends.

use std::fs::File;
use std::io;
use std::path::Path;

/// A new file on the file system of `folder`, for the user and the group of this process and with
/// these permissions, less those that the process masks; `None` where there is no such thing.
#[cfg(target_os = "linux")]
pub(crate) fn create_unnamed(folder: &Path, mode: u32) -> Option<File> {
    use rustix::fs::{Mode, OFlags, open};
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = File::from(open(folder, flags, Mode::from_raw_mode(mode)).ok()?);
    // It can be given a name only where the system shows it here.
    std::fs::metadata(shown(&file)).ok()?;
    Some(file)
}

/// Gives a file a name that nothing has.
#[cfg(target_os = "linux")]
pub(crate) fn give_name(file: &File, path: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    Ok(linkat(
        CWD,
        shown(file),
        CWD,
        path,
        AtFlags::SYMLINK_FOLLOW,
    )?)
}

#[cfg(target_os = "linux")]
fn shown(file: &File) -> String {
    use std::os::fd::AsRawFd;
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn create_unnamed(_: &Path, _: u32) -> Option<File> {
    None
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn give_name(_: &File, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
