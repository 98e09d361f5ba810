//! URLs. A build without the feature `remote` refuses every one.

use std::io::Write;
use std::path::Path;

use zt::Result;
use zt_convert::{Input, InputOptions};
use zt_foreign::TargetFolder;

use crate::location::LocationOptions;

/// A URL with its secrets, which is never shown.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Url(pub(super) String);

#[cfg(feature = "remote")]
impl Url {
    /// Opens the object, or the file that describes a checkpoint's folder. Messages name it `shown`.
    pub(super) fn open(
        &self,
        shown: &Path,
        input: &InputOptions,
        options: &LocationOptions<'_>,
    ) -> Result<Input> {
        let stores = options.remote.clone().end_first(options.kinds.read_from_end());
        let remote = zt_remote::Remote::open_or_within(&self.0, CHECKPOINT_METADATA, &stores)?;
        let is_within = remote.url().ends_with(CHECKPOINT_METADATA);
        let url = if is_within { remote.url().into() } else { shown.to_owned() };
        options.kinds.open_in(remote.clone(), url, &remote, input)
    }

    /// All bytes of the object.
    pub(super) fn read(&self, most: u64, options: &LocationOptions<'_>) -> Result<Vec<u8>> {
        let remote = zt_remote::Remote::open(&self.0, &options.remote)?;
        let whole = Span::new(0, remote.byte_len()).filter(|whole| whole.byte_len() <= most);
        let whole = whole.ok_or_else(|| io::Error::from(io::ErrorKind::FileTooLarge))?;
        let mut bytes = Vec::new();
        memory::fetch(&mut bytes, &remote, whole)?;
        Ok(bytes)
    }

    /// Uploads what `write` writes. If anything fails, the upload is cancelled.
    pub(super) fn write<T>(
        &self,
        overwrite: bool,
        options: &LocationOptions<'_>,
        write: impl FnOnce(&mut (dyn Write + Send)) -> Result<T>,
    ) -> Result<T> {
        let stores = options.remote.clone().overwrite(overwrite);
        let mut upload = zt_remote::Upload::create(&self.0, &stores)?;
        let written = write(&mut upload)?;
        upload.finish()?;
        Ok(written)
    }

    /// The folder that the files of a set are written to.
    pub(super) fn folder(&self, options: &LocationOptions<'_>) -> Result<Box<dyn TargetFolder>> {
        Ok(Box::new(zt_remote::RemoteFolder::new(&self.0, &options.remote)?))
    }
}

#[cfg(feature = "remote")]
use {
    std::io,
    zt::container::memory,
    zt::{Source as _, Span},
    zt_convert::CHECKPOINT_METADATA,
};

#[cfg(not(feature = "remote"))]
impl Url {
    fn refused<T>() -> Result<T> {
        let message = "this build opens no URLs: build it with the feature `remote`";
        Err(zt::Error::new(zt::ErrorKind::Unsupported, zt::codes::UNSUPPORTED, message))
    }

    pub(super) fn open(
        &self,
        _: &Path,
        _: &InputOptions,
        _: &LocationOptions<'_>,
    ) -> Result<Input> {
        Self::refused()
    }

    pub(super) fn read(&self, _: u64, _: &LocationOptions<'_>) -> Result<Vec<u8>> {
        Self::refused()
    }

    pub(super) fn write<T>(
        &self,
        _: bool,
        _: &LocationOptions<'_>,
        _: impl FnOnce(&mut (dyn Write + Send)) -> Result<T>,
    ) -> Result<T> {
        Self::refused()
    }

    pub(super) fn folder(&self, _: &LocationOptions<'_>) -> Result<Box<dyn TargetFolder>> {
        Self::refused()
    }
}
