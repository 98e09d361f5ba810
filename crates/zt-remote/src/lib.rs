#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod address;
mod async_file;
#[cfg(any(feature = "aws", feature = "gcp", feature = "azure", feature = "http"))]
mod client;
#[cfg(any(feature = "aws", feature = "gcp", feature = "azure"))]
mod cloud;
mod download;
mod error;
mod folder;
mod object;
mod options;
#[cfg(feature = "aws")]
mod profile;
mod ranges;
mod remote;
mod runtime;
mod traffic;
mod upload;
#[cfg(feature = "http")]
mod web;

pub use async_file::AsyncFile;
pub use download::{
    DownloadOptions, Downloaded, HubCache, Leaves, List, Listed, Proof, download, list,
};
pub use folder::RemoteFolder;
pub use options::RemoteOptions;
pub use remote::Remote;
pub use traffic::{Meter, Traffic};
pub use upload::Upload;
pub use zt_foreign::is_url;

/// Opens the object at `url`, with the default [`RemoteOptions`].
///
/// # Errors
///
/// Code `path` for text that is no URL of a file; `unsupported` for a scheme that this build lacks;
/// [`zt::ErrorKind::Io`] if the store cannot be reached or has no such object.
pub fn open(url: &str) -> zt::Result<Remote> {
    Remote::open(url, &RemoteOptions::new())
}

/// Begins to write an object at `url`, with the default [`RemoteOptions`]. It must not exist.
///
/// # Errors
///
/// Code `overwrite` if the object exists; `path` for text that is no URL of a file; `unsupported` for a
/// server that takes no uploads; [`zt::ErrorKind::Io`] if the store cannot be reached.
pub fn create(url: &str) -> zt::Result<Upload> {
    Upload::create(url, &RemoteOptions::new())
}
