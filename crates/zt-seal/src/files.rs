//! Where files are: a folder of this machine, or one of a store.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use zt::{Error, FileSource, Result, Source};
use zt_foreign::{Folder, Opened};

/// Files below a folder, which are read by their paths in it.
#[derive(Clone)]
pub struct Files {
    folder: Arc<dyn Folder>,
    path: PathBuf,
}

impl Files {
    /// The files of a folder, which messages call `path`.
    pub fn new(folder: Arc<dyn Folder>, path: impl Into<PathBuf>) -> Self {
        Files { folder, path: path.into() }
    }

    /// The files below a folder of this machine. Links are followed.
    pub fn local(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Files { folder: Arc::new(Local(path.clone())), path }
    }

    /// The folder.
    pub fn folder(&self) -> &Arc<dyn Folder> {
        &self.folder
    }

    /// The path or the URL of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path or the URL of a file, for messages.
    pub fn path_of(&self, name: &str) -> PathBuf {
        // Windows takes both separators, and a URL has this one.
        match self.path.to_str() {
            Some(folder) if zt_foreign::is_url(folder) => {
                format!("{}/{name}", folder.trim_end_matches('/')).into()
            }
            _ => self.path.join(name),
        }
    }

    /// The files of a folder below this one; of this one for an empty path.
    pub fn below(&self, folder: &str) -> Self {
        if folder.is_empty() {
            return self.clone();
        }
        let below = Below { files: self.clone(), folder: folder.to_owned() };
        Files { folder: Arc::new(below), path: self.path_of(folder) }
    }

    /// Opens files; `None` for one that is missing.
    pub fn open(&self, names: &[&str]) -> Vec<Opened> {
        let opened = self.folder.open(names).into_iter().zip(names);
        let opened = opened.map(|(opened, name)| {
            opened.map_err(|error: Error| error.with_path(&self.path_of(name)))
        });
        opened.collect()
    }
}

impl Files {
    /// Opens one file.
    ///
    /// # Errors
    ///
    /// [`zt::ErrorKind::Io`] if it is missing; those of opening.
    pub fn open_one(&self, name: &str) -> Result<Box<dyn Source>> {
        let opened = self.open(&[name]).pop().unwrap_or(Ok(None))?;
        let missing = || Error::from(io::Error::from(io::ErrorKind::NotFound));
        opened.ok_or_else(|| missing().with_path(&self.path_of(name)))
    }
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Files").field(&self.path).finish()
    }
}

/// A folder in another one.
#[derive(Debug)]
struct Below {
    files: Files,
    folder: String,
}

impl Folder for Below {
    fn open(&self, locations: &[&str]) -> Vec<Opened> {
        let paths = locations.iter().map(|location| format!("{}/{location}", self.folder));
        let paths: Vec<String> = paths.collect();
        self.files.open(&paths.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

/// A folder of this machine.
#[derive(Debug)]
struct Local(PathBuf);

impl Local {
    fn open_one(&self, location: &str) -> Opened {
        crate::decode::check_path(location)?;
        match FileSource::open(self.0.join(location)).map_err(Error::from) {
            Ok(source) => Ok(Some(Box::new(source) as Box<dyn Source>)),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Folder for Local {
    fn open(&self, locations: &[&str]) -> Vec<Opened> {
        locations.iter().map(|location| self.open_one(location)).collect()
    }
}

fn is_missing(error: &Error) -> bool {
    let kind = io::Error::from(error.clone()).kind();
    matches!(kind, io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// A path below `folder`, with `/` between names; `None` for one that is not below it or not Unicode.
pub(crate) fn relative(path: &Path, folder: &Path) -> Option<String> {
    if let (Some(path), Some(folder)) = (path.to_str(), folder.to_str())
        && zt_foreign::is_url(folder)
    {
        return path.strip_prefix(folder)?.strip_prefix('/').map(str::to_owned);
    }
    let below = path.strip_prefix(folder).ok()?;
    let names = below.iter().map(|name| name.to_str()).collect::<Option<Vec<_>>>()?;
    Some(names.join("/"))
}
