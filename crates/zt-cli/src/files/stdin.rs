//! Stdin as a file, which the path `-` stands for.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use zt::{Error, FileSource};

use crate::failure::Failure;
use crate::output::progress::Progress;

/// The path of stdin.
const PATH: &str = "-";

pub(crate) fn is_stdin(path: &Path) -> bool {
    path == Path::new(PATH)
}

/// Refuses stdin where a file is changed or opened several times.
pub(crate) fn refuse_stdin(path: &Path) -> Result<(), Failure> {
    if is_stdin(path) {
        return Err(Failure::misuse("stdin is not possible here: give a file"));
    }
    Ok(())
}

/// All bytes of stdin.
pub(crate) fn bytes() -> Result<Vec<u8>, Failure> {
    take()?;
    let mut bytes = Vec::new();
    let read = io::stdin().lock().read_to_end(&mut bytes);
    read.map_err(|error| Error::from(error).with_path(Path::new(PATH)))?;
    Ok(bytes)
}

/// Stdin, to be read by position. A regular file is read itself. Everything else is copied to a
/// temporary file without a name, so that nothing is left of it however the process ends.
pub(crate) fn source() -> Result<FileSource, Failure> {
    take()?;
    let file = match redirected() {
        Some(file) => file,
        None => copy()?,
    };
    Ok(FileSource::from_file(file).map_err(Error::from)?)
}

/// Stdin is there once.
fn take() -> Result<(), Failure> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    if TAKEN.swap(true, Ordering::Relaxed) {
        return Err(Failure::misuse("stdin can be read only once"));
    }
    Ok(())
}

/// The file that is redirected to stdin, if nothing of it was read.
#[cfg(unix)]
fn redirected() -> Option<File> {
    use std::io::Seek;
    use std::os::fd::AsFd;
    let stdin = io::stdin().as_fd().try_clone_to_owned().ok()?;
    let mut file = File::from(stdin);
    let is_file = file.metadata().ok()?.is_file();
    (is_file && file.stream_position().ok()? == 0).then_some(file)
}

#[cfg(not(unix))]
fn redirected() -> Option<File> {
    None
}

fn copy() -> Result<File, Failure> {
    let progress = Progress::of_reading();
    let failed = |error: io::Error| {
        let folder = std::env::temp_dir();
        let message = format!("copying stdin to {}: {error}", folder.display());
        let error = Error::from(io::Error::new(error.kind(), message));
        error.with_path(Path::new(PATH))
    };
    let mut file = tempfile::tempfile().map_err(failed)?;
    let mut stdin = io::stdin().lock();
    let mut piece = vec![0; 1 << 20];
    loop {
        let len = match stdin.read(&mut piece) {
            Ok(0) => return Ok(file),
            Ok(len) => len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(error) => return Err(failed(error).into()),
        };
        let read = piece.get(..len).unwrap_or_default();
        file.write_all(read).map_err(failed)?;
        progress.advance(len as u64)?;
    }
}
