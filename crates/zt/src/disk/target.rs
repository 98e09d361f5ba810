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

#[cfg(all(test, any(target_os = "linux", windows)))]
mod tests {
    use super::*;
    use crate::disk::publish::AtomicFile;

    #[cfg(target_os = "linux")]
    #[test]
    fn as_many_links_are_followed_as_the_system_follows() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for count in [1, 40, 41] {
            let target = format!("{count}");
            symlink(&target, at(&format!("{count}.0"))).unwrap();
            for link in 1..count {
                let next = format!("{count}.{}", link - 1);
                symlink(next, at(&format!("{count}.{link}"))).unwrap();
            }
            let first = at(&format!("{count}.{}", count - 1));
            let made = AtomicFile::create(&first).and_then(AtomicFile::publish);
            let by_the_system = fs::File::create(&first).is_ok();
            assert_eq!(made.is_ok(), by_the_system, "{count}");
            assert_eq!(at(&target).exists(), by_the_system, "{count}");
            // The same if the target exists.
            fs::write(at(&target), "").unwrap();
            let made = AtomicFile::create(&first);
            assert_eq!(made.is_ok(), by_the_system, "{count}");
        }
        symlink("round", at("round")).unwrap();
        let error = AtomicFile::create(at("round")).unwrap_err();
        assert_eq!((error.code(), error.path()), ("io", Some(&*at("round"))));
    }

    #[cfg(windows)]
    #[test]
    fn what_is_written_to_nul_is_dropped() {
        use std::io::Write;
        for path in ["NUL", "nul", r"\\.\NUL"] {
            let mut file = AtomicFile::create_new(path).unwrap();
            file.write_all(b"dropped").unwrap();
            file.publish().unwrap();
        }
    }

    #[cfg(windows)]
    #[test]
    fn names_of_other_devices_are_refused() {
        for path in ["CON", r"\\.\COM1", "COM1.zt", "nul.zt"].map(Path::new) {
            // Since Windows 11 these two are files.
            if path.extension().is_some() && !is_device(path) {
                continue;
            }
            for made in [AtomicFile::create(path), AtomicFile::create_new(path)] {
                let error = made.unwrap_err();
                assert!(error.to_string().contains("is the name of a device"), "{error}");
            }
        }
    }
}
