//! Tensor files on object stores and web servers, read and written in place.
//!
//! Place in the graph: above `zt-foreign`, below `zt-model`.
//!
//! | URL | store |
//! | --- | --- |
//! | `s3://BUCKET/PATH` | Amazon S3, and stores with the same protocol |
//! | `gs://BUCKET/PATH` | Google Cloud Storage |
//! | `az://CONTAINER/PATH`, `abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH` | Azure |
//! | `https://HOST/PATH` | a web server that sends ranges; read only |
//! | `hf://OWNER/REPOSITORY[@REVISION]/PATH` | the Hugging Face Hub; read only |
//! | `file:///PATH` | a file of this machine |
//!
//! [`open`] gives a [`zt::Source`], so everything that reads a file reads a remote one: `zt_model::open` does. Only the bytes
//! that are needed are fetched. [`AsyncFile`] is for asynchronous programs.
//!
//! Invariants:
//!
//! * Bytes of two versions of an object are never mixed.
//! * No message contains a secret.
//! * Unencrypted connections are made only if the caller allows them.
//!
//! Absent: formats and kinds of files, threads that compute.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod address;
mod async_file;
#[cfg(any(feature = "aws", feature = "gcp", feature = "azure", feature = "http"))]
mod client;
#[cfg(any(feature = "aws", feature = "gcp", feature = "azure"))]
mod cloud;
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

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
