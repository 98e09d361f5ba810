//! A URL becomes a store and the path of an object in it.

use std::sync::Arc;

use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::path::{Path, PathPart};
use url::Url;
use zt::Result;
use zt_foreign::without_secrets;

use crate::error::Fault;
use crate::options::RemoteOptions;

/// A store, and the path of an object in it.
pub(crate) type Located = (Arc<dyn ObjectStore>, Path);

/// An object that may or may not exist.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) path: Path,
    /// The URL without secrets, for messages.
    pub(crate) text: String,
    /// Whether the store takes uploads in parts.
    pub(crate) is_writable: bool,
}

impl Address {
    /// The store and path of `url`.
    pub(crate) fn new(url: &str, options: &RemoteOptions) -> Result<Self> {
        let parsed = Url::parse(url).map_err(|why| Fault::NotUrl { why })?;
        if parsed.path().is_empty() || parsed.path().ends_with('/') {
            return Err(Fault::NoFile.into());
        }
        let text = without_secrets(url);
        let is_writable = matches!(
            parsed.scheme(),
            "s3" | "s3a" | "gs" | "az" | "azure" | "abfs" | "abfss" | "file" | "memory"
        );
        let (store, path) = match parsed.scheme() {
            #[cfg(feature = "http")]
            "hf" => crate::web::of_hub(&parsed, options)?,
            #[cfg(feature = "http")]
            "http" | "https" => crate::web::of_server(&parsed, options, None)?,
            #[cfg(feature = "aws")]
            "s3" | "s3a" => crate::cloud::of_aws(&parsed, options)?,
            #[cfg(feature = "gcp")]
            "gs" => crate::cloud::of_google(&parsed, options)?,
            #[cfg(feature = "azure")]
            "az" | "azure" | "abfs" | "abfss" => crate::cloud::of_azure(&parsed, options)?,
            "file" => of_disk(&parsed, options)?,
            scheme => {
                let scheme = scheme.to_owned();
                return Err(Fault::Scheme { scheme }.into());
            }
        };
        Ok(Address { store, path, text, is_writable })
    }

    /// The file's name, the last part of the path.
    pub(crate) fn name(&self) -> &str {
        self.path.filename().unwrap_or_default()
    }

    /// The object at `location` below the same folder.
    ///
    /// # Errors
    ///
    /// Code `path` for a location outside the folder: a file must not make its reader fetch from another
    /// address.
    pub(crate) fn below(&self, location: &str) -> Result<Self> {
        if !is_plain(location) {
            return Err(Fault::Elsewhere.into());
        }
        let mut parts: Vec<_> = self.path.parts().collect();
        parts.pop();
        // A part is encoded: its characters have no meaning in a URL.
        parts.extend(location.split('/').map(PathPart::from));
        let address = self.text.split('?').next().unwrap_or_default();
        let folder = address.rsplit_once('/').map_or("", |(folder, _)| folder);
        Ok(Address {
            store: Arc::clone(&self.store),
            path: parts.into_iter().collect(),
            text: format!("{folder}/{location}"),
            is_writable: self.is_writable,
        })
    }
}

/// Whether a name from a file or a server is a list of plain names with `/` between them.
pub(crate) fn is_plain(location: &str) -> bool {
    location.split('/').all(|name| {
        !matches!(name, "" | "." | "..")
            && !name.contains(|c: char| c.is_control() || matches!(c, '\\' | ':'))
    })
}

/// A file of this machine. Like every store, it is given the options; it needs none.
fn of_disk(url: &Url, _: &RemoteOptions) -> Result<Located> {
    let path = url.to_file_path().map_err(|()| Fault::NoFile)?;
    let path = Path::from_absolute_path(path).map_err(|error| Fault::settings(&error))?;
    Ok((Arc::new(LocalFileSystem::new()), path))
}
