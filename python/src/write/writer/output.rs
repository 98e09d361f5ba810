//! The file at a path or a URL: all of it is written, or nothing.

use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use zt::foreign::AtomicFile;
use zt_remote::{RemoteOptions, Upload};

use super::lock;
use crate::share::remote;
use crate::share::work::Line;

/// A file that is not visible until it is published. If it is dropped, nothing stays.
pub(crate) enum Output {
    File(AtomicFile),
    Upload(Box<Upload>),
}

impl Output {
    /// Begins the file at a path or a URL. It will replace an existing one.
    ///
    /// # Errors
    ///
    /// As [`AtomicFile::create`] and [`Upload::create`].
    pub(crate) fn create(path: &Path, stores: &RemoteOptions) -> zt::Result<Self> {
        match remote::url_of(path) {
            Some(url) => {
                let upload = remote::create(url, stores, true)?;
                Ok(Output::Upload(Box::new(upload)))
            }
            None => AtomicFile::create(path).map(Output::File),
        }
    }

    /// Makes the file visible. With `sync`, it is on the disk then. A store always has it on its disks.
    pub(crate) fn publish(self, sync: bool) -> zt::Result<()> {
        match self {
            Output::File(file) if sync => file.publish(),
            Output::File(file) => file.publish_unsynced(),
            Output::Upload(upload) => upload.finish(),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Output::File(file) => file.write(bytes),
            Output::Upload(upload) => upload.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Output::File(file) => file.flush(),
            Output::Upload(upload) => upload.flush(),
        }
    }
}

/// An output that its owner may take away. It refuses writes once the work has to stop.
pub(crate) struct Target {
    pub(crate) output: Arc<Mutex<Option<Output>>>,
    pub(crate) line: Arc<Line>,
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        /// The most bytes between two checks of the line.
        const MOST: usize = 8 << 20;
        if self.line.is_stopped() {
            return Err(io::Error::other("stopped on request"));
        }
        let written = match &mut *lock(&self.output) {
            Some(output) => output.write(&bytes[..bytes.len().min(MOST)])?,
            None => return Err(io::ErrorKind::BrokenPipe.into()),
        };
        self.line.written(written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        lock(&self.output).as_mut().map_or(Ok(()), Output::flush)
    }
}
