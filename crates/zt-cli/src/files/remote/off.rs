//! A build without the feature `remote` refuses every URL.

use std::io;
use std::path::Path;

use zt::{Error, ErrorKind, codes};
use zt_convert::foreign::TargetFolder;
use zt_convert::{Input, InputOptions};

use crate::files::remote::RemoteArgs;
use crate::output::Output;

fn refused<T>(path: &Path) -> zt::Result<T> {
    let message = "this build opens no URLs: build it with the feature `remote`";
    let error = Error::new(ErrorKind::Unsupported, codes::UNSUPPORTED, message);
    Err(error.with_path(path))
}

pub(crate) fn open(path: &Path, _: &RemoteArgs, _: &InputOptions) -> zt::Result<Input> {
    refused(path)
}

pub(crate) fn bytes(path: &Path, _: &RemoteArgs) -> zt::Result<Vec<u8>> {
    refused(path)
}

pub(crate) fn write<T>(
    path: &Path,
    _: bool,
    _: &RemoteArgs,
    _: impl FnOnce(&mut io::Sink) -> zt::Result<T>,
) -> zt::Result<T> {
    refused(path)
}

pub(crate) fn folder(path: &Path, _: &RemoteArgs) -> zt::Result<Box<dyn TargetFolder>> {
    refused(path)
}

pub(crate) fn report(_: &Output) {}
