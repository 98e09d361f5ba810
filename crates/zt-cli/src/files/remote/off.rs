//! A build without the feature `remote` refuses every URL.

use std::convert::Infallible;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use zt::{Error, ErrorKind, Source, codes};
use zt_convert::foreign::{Existing, Folder, Opened as Found, TargetFolder};

use crate::files::remote::RemoteArgs;
use crate::output::Output;

/// No file is ever opened.
#[derive(Debug, Clone)]
pub(crate) struct Opened(Infallible);
/// No upload is ever begun.
pub(crate) struct Upload(Infallible);

impl Source for Opened {
    fn byte_len(&self) -> u64 {
        match self.0 {}
    }
    fn read_at(&self, _: u64, _: &mut [u8]) -> io::Result<()> {
        match self.0 {}
    }
}

impl Folder for Opened {
    fn open(&self, _: &[&str]) -> Vec<Found> {
        match self.0 {}
    }
}

impl TargetFolder for Opened {
    fn path_of(&self, _: &str) -> PathBuf {
        match self.0 {}
    }
    fn contains(&self, _: &str) -> zt::Result<bool> {
        match self.0 {}
    }
    fn write(
        &self,
        _: &str,
        _: Existing,
        _: &mut dyn FnMut(&mut (dyn Write + Send)) -> zt::Result<()>,
    ) -> zt::Result<()> {
        match self.0 {}
    }
    fn remove(&self, _: &str) -> zt::Result<()> {
        match self.0 {}
    }
}

impl Write for Upload {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        match self.0 {}
    }
    fn flush(&mut self) -> io::Result<()> {
        match self.0 {}
    }
}

impl Upload {
    pub(crate) fn finish(self) -> zt::Result<()> {
        match self.0 {}
    }
}

fn refused<T>(path: &Path) -> zt::Result<T> {
    let message = "this build opens no URLs: build it with the feature `remote`";
    let error = Error::new(ErrorKind::Unsupported, codes::UNSUPPORTED, message);
    Err(error.with_path(path))
}

pub(crate) fn open(path: &Path, _: &RemoteArgs) -> zt::Result<Opened> {
    refused(path)
}

pub(crate) fn create(path: &Path, _: bool, _: &RemoteArgs) -> zt::Result<Upload> {
    refused(path)
}

pub(crate) fn folder(path: &Path, _: &RemoteArgs) -> zt::Result<Opened> {
    refused(path)
}

pub(crate) fn report(_: &Output) {}
