//! The cache of the Hub, as `huggingface_hub` reads it.
//!
//! ```text
//! models--OWNER--NAME/blobs/TAG                 the bytes of a file
//! models--OWNER--NAME/snapshots/COMMIT/FILE     a link to them
//! models--OWNER--NAME/refs/REVISION             the commit
//! ```
//!
//! Reference: "Understand caching", documentation of huggingface_hub 0.36. `conformance/interop/hub_cache.py` has its 0.36.0 open such
//! a cache offline.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use zt::{Error, Result};

use crate::download::list::{List, Listed};

/// The places of the files of a list in the cache.
#[derive(Debug, Clone)]
pub struct HubCache {
    /// The folder of the repository.
    folder: PathBuf,
    commit: String,
    revision: String,
}

impl HubCache {
    /// The folder of the cache: `HF_HUB_CACHE`, `HF_HOME/hub`, or the one in the user's folder.
    pub fn default_folder() -> Option<PathBuf> {
        let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = || set("HF_HOME").map(|home| home.join("hub"));
        let user = || {
            let cache = set("XDG_CACHE_HOME");
            let cache = cache.or_else(|| env::home_dir().map(|home| home.join(".cache")));
            cache.map(|cache| cache.join("huggingface").join("hub"))
        };
        set("HF_HUB_CACHE").or_else(home).or_else(user)
    }

    /// The places for a list of a repository in the cache at `folder`; `None` for any other list.
    pub fn new(folder: &Path, list: &List) -> Option<Self> {
        let repository = list.repository.as_ref()?;
        let name = format!("{}--{}", repository.kind, repository.name.replace('/', "--"));
        Some(HubCache {
            folder: folder.join(name),
            commit: repository.commit.clone(),
            revision: repository.revision.clone(),
        })
    }

    /// Where the bytes of a file are, if the Hub names them.
    pub fn blob(&self, file: &Listed) -> Option<PathBuf> {
        Some(self.folder.join("blobs").join(file.blob.as_ref()?))
    }

    /// The folder of all files of this commit.
    pub fn snapshot(&self) -> PathBuf {
        self.folder.join("snapshots").join(&self.commit)
    }

    /// Links a file whose bytes are in [`HubCache::blob`]. Where the system has no links, they are copied.
    ///
    /// # Errors
    ///
    /// [`zt::ErrorKind::Io`].
    pub fn link(&self, file: &Listed) -> Result<PathBuf> {
        let link = self.snapshot().join(&file.name);
        let at = |error: io::Error| Error::from(error).with_path(&link);
        let (Some(blob), Some(parent)) = (&file.blob, link.parent()) else {
            return Err(at(io::ErrorKind::NotFound.into()));
        };
        fs::create_dir_all(parent).map_err(at)?;
        let mut target = PathBuf::from("../..");
        target.extend(file.name.split('/').skip(1).map(|_| ".."));
        target.extend(["blobs", blob]);
        if fs::symlink_metadata(&link).is_ok() {
            fs::remove_file(&link).map_err(at)?;
        }
        symlink(&target, &link)
            .or_else(|_| fs::copy(self.folder.join("blobs").join(blob), &link).map(drop))
            .map_err(at)?;
        Ok(link)
    }

    /// Names the commit of the revision, when all files are there.
    ///
    /// # Errors
    ///
    /// [`zt::ErrorKind::Io`].
    pub fn finish(&self) -> Result<()> {
        if self.revision == self.commit {
            return Ok(());
        }
        let path = self.folder.join("refs").join(&self.revision);
        let write = || {
            fs::create_dir_all(path.parent().unwrap_or(&self.folder))?;
            fs::write(&path, &self.commit)
        };
        write().map_err(|error: io::Error| Error::from(error).with_path(&path))
    }
}

#[cfg(unix)]
fn symlink(target: &Path, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

#[cfg(not(unix))]
fn symlink(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
