//! Room `disk`: how a new file gets onto the disk completely, or not at all.
//!
//! | module | does |
//! | --- | --- |
//! | `publish` | writes a temporary file and renames it when it is durable: [`AtomicFile`](crate::foreign::AtomicFile) |
//! | `target` | finds the file or the device that a path to write to stands for |
//! | `temporary` | creates a file without a name, where the system supports it |
//! | `reserve` | reserves disk space ahead of the writes |
//! | `lock` | keeps a file for one program that changes it |
//! | `access` | copies permissions and owner of the file that is replaced |
//!
//! It knows paths, permissions, `fsync` and the calls of the system, and the room `error`.
//!
//! It must not know what the bytes mean. No `.zt` format, manifest or object appears here, and no
//! thread starts here.

pub(crate) mod access;
pub(crate) mod lock;
pub(crate) mod publish;
mod reserve;
pub(crate) mod target;
mod temporary;

use std::fs::File;
use std::io;

/// Makes a call of the system again while signals interrupt it: some file systems answer so. The
/// standard library does it for some calls, such as opening and syncing, and not for locks and names.
///
/// # Errors
///
/// Any other error of the call.
pub fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// Makes the bytes of a file or the names in a folder durable.
///
/// # Errors
///
/// The system's. A failed call is final and never repeated: the system may have dropped the data.
pub fn synced(file: &File) -> io::Result<()> {
    let synced = file.sync_all();
    // On Apple's systems this is `F_FULLFSYNC`, which some file systems of servers do not have.
    #[cfg(target_vendor = "apple")]
    if let Err(error) = &synced {
        use rustix::io::Errno;
        let missing = [Errno::NOTSUP, Errno::NOTTY, Errno::INVAL].map(Errno::raw_os_error);
        if error.raw_os_error().is_some_and(|code| missing.contains(&code)) {
            return Ok(rustix::fs::fsync(file)?);
        }
    }
    synced
}
