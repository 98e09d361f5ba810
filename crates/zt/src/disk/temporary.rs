//! A file that has no name yet, if the system supports that.
//!
//! If it never gets a name, the system removes it when the process ends, however it ends.

use std::fs::File;
use std::io;
use std::path::Path;

/// A new file on the file system of `folder`, with these permissions less the process's mask. It
/// belongs to the user and the group of this process. `None` if the system does not support it.
#[cfg(target_os = "linux")]
pub(crate) fn create_unnamed(folder: &Path, mode: u32) -> Option<File> {
    use rustix::fs::{Mode, OFlags, open};
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = File::from(open(folder, flags, Mode::from_raw_mode(mode)).ok()?);
    // It can be given a name only if the system lists it here.
    std::fs::metadata(shown(&file)).ok()?;
    Some(file)
}

/// Gives a file a name that is not in use.
#[cfg(target_os = "linux")]
pub(crate) fn give_name(file: &File, path: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    let from = shown(file);
    Ok(rustix::io::retry_on_intr(|| linkat(CWD, &from, CWD, path, AtFlags::SYMLINK_FOLLOW))?)
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_file_is_not_seen_before_it_has_a_name() {
        use rustix::fs::{Mode, OFlags, open};
        let folder = tempfile::tempdir().unwrap();
        let flags = OFlags::TMPFILE | OFlags::WRONLY;
        let has_them = open(folder.path(), flags, Mode::RUSR).is_ok();
        let Some(mut file) = create_unnamed(folder.path(), 0o600) else {
            assert!(!has_them, "the system has such files");
            return;
        };
        file.write_all(b"content").unwrap();
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        let path = folder.path().join("x");
        give_name(&file, &path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"content");
        assert!(give_name(&file, &path).is_err(), "something has it");
    }
}
