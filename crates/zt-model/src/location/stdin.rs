//! Stdin as a file, which `-` stands for.

use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use zt::{Error, ErrorKind, FileSource, Progress, Result, codes};

/// All bytes of stdin.
pub(super) fn bytes() -> Result<Vec<u8>> {
    take()?;
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Stdin, to be read by position. A regular file is read itself. Everything else is copied to a
/// temporary file without a name, so that nothing is left of it however the process ends.
pub(super) fn source(progress: Option<Progress<'_>>) -> Result<FileSource> {
    take()?;
    let file = match redirected() {
        Some(file) => file,
        None => copy(progress)?,
    };
    Ok(FileSource::from_file(file)?)
}

/// Stdin is there once.
fn take() -> Result<()> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    if TAKEN.swap(true, Ordering::Relaxed) {
        let message = "stdin can be read only once";
        return Err(Error::new(ErrorKind::Misuse, codes::MISUSE, message));
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

fn copy(progress: Option<Progress<'_>>) -> Result<File> {
    let failed = |error: io::Error| {
        let folder = std::env::temp_dir();
        let message = format!("copying stdin to {}: {error}", folder.display());
        Error::from(io::Error::new(error.kind(), message))
    };
    let mut file = tempfile::tempfile().map_err(failed)?;
    let mut stdin = io::stdin().lock();
    let mut piece = vec![0; 1 << 20];
    loop {
        let len = match stdin.read(&mut piece) {
            Ok(0) => return Ok(file),
            Ok(len) => len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(error) => return Err(failed(error)),
        };
        let (read, _) = piece.split_at(len);
        file.write_all(read).map_err(failed)?;
        progress.map_or(Ok(()), |progress| progress.report(len as u64))?;
    }
}
