//! A folder of a store that files are written to.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use object_store::ObjectStoreExt;
use url::Url;
use zt::{Error, Result, Source};
use zt_foreign::{Existing, Folder, Opened, TargetFolder};

use crate::address::Address;
use crate::error::{Fault, of_store};
use crate::options::RemoteOptions;
use crate::remote::Remote;
use crate::runtime;
use crate::upload::{PATIENCE, Upload, is_there};

/// A folder of a store, to write a set of files to. It need not exist: stores have only the paths of
/// objects.
///
/// ```no_run
/// use zt_foreign::{Existing, TargetFolder};
/// use zt_remote::{RemoteFolder, RemoteOptions};
///
/// let folder = RemoteFolder::new("s3://models/llama/", &RemoteOptions::new())?;
/// folder.write("card.md", Existing::Refused, &mut |file| Ok(file.write_all(b"# Llama")?))?;
/// assert!(folder.contains("card.md")?);
/// # Ok::<(), zt::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct RemoteFolder {
    /// The address of a file in it, which need not exist.
    address: Address,
    options: RemoteOptions,
}

impl RemoteFolder {
    /// The folder at `url`, with or without a slash at the end. No request is made.
    ///
    /// # Errors
    ///
    /// As [`crate::create`], except the errors of the store.
    pub fn new(url: &str, options: &RemoteOptions) -> Result<Self> {
        let mut parsed = Url::parse(url).map_err(|why| Fault::NotUrl { why })?;
        if let Ok(mut parts) = parsed.path_segments_mut() {
            parts.pop_if_empty().push("file");
        }
        let address = Address::new(parsed.as_str(), options)?;
        if !address.is_writable {
            return Err(Fault::ReadOnly.into());
        }
        Ok(RemoteFolder { address, options: options.clone() })
    }

    fn of(&self, name: &str) -> Result<Address> {
        let address = self.address.below(name);
        address.map_err(|error| error.with_path(&self.path_of(name)))
    }
}

impl Folder for RemoteFolder {
    fn open(&self, locations: &[&str]) -> Vec<Opened> {
        let open = |location: &&str| {
            let opened = Remote::at(self.of(location)?, &self.options);
            match opened {
                Ok(remote) => Ok(Some(Box::new(remote) as Box<dyn Source>)),
                Err(error) if is_missing(&error) => Ok(None),
                Err(error) => Err(error),
            }
        };
        locations.iter().map(open).collect()
    }
}

/// Whether there is no such object.
pub(crate) fn is_missing(error: &Error) -> bool {
    io::Error::from(error.clone()).kind() == io::ErrorKind::NotFound
}

impl TargetFolder for RemoteFolder {
    fn path_of(&self, name: &str) -> PathBuf {
        let address = self.address.text.split('?').next().unwrap_or_default();
        let folder = address.rsplit_once('/').map_or("", |(folder, _)| folder);
        format!("{folder}/{name}").into()
    }

    fn contains(&self, name: &str) -> Result<bool> {
        let address = self.of(name)?;
        let found = is_there(&address, &self.options);
        found.map_err(|error| error.with_path(&self.path_of(name)))
    }

    fn write(
        &self,
        name: &str,
        existing: Existing,
        write: &mut dyn FnMut(&mut (dyn Write + Send)) -> Result<()>,
    ) -> Result<()> {
        let options = self.options.clone();
        let options = options.overwrite(existing == Existing::Replaced);
        let mut upload = Upload::at(self.of(name)?, &options)?;
        write(&mut upload).map_err(|error| error.with_path(&self.path_of(name)))?;
        upload.finish()
    }

    fn remove(&self, name: &str) -> Result<()> {
        let address = self.of(name)?;
        self.options.meter.begin();
        let removed = runtime::wait_for(PATIENCE, async move {
            Arc::clone(&address.store).delete(&address.path).await
        });
        let removed = match removed {
            Some(Ok(()) | Err(object_store::Error::NotFound { .. })) => Ok(()),
            Some(Err(error)) => Err(of_store(&error)),
            None => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
        };
        removed.map_err(|error: Error| error.with_path(&self.path_of(name)))
    }
}
