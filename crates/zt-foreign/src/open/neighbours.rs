//! Files beside a file, which it names.
//!
//! A hostile file could name any file of the system, whose bytes would then appear as values. So only
//! files below the folder of the naming file are opened, and links that lead out of it only if the caller
//! asks for that. A cache of the Hugging Face Hub needs no asking: its files are all links into one
//! folder.

use std::io;
use std::path::{Component, Path, PathBuf};

use zt::{Error, FileSource, Source};

use crate::open::{Folder, Opening};
use crate::tools::beside;

/// The most files that stay open. Some writers make a file for every tensor, and a system may allow
/// some hundreds. Further files are opened for every read.
const OPEN_MAX: usize = 64;

/// The files that were opened because another one names them.
#[derive(Debug)]
pub struct Neighbours<'a> {
    opening: Opening<'a>,
    paths: Vec<PathBuf>,
}

/// Why a neighbour is not opened.
#[derive(Debug, Clone)]
pub enum Refusal {
    /// The file that names it was opened without a path.
    NeedsPath,
    /// There is no such file. A folder or a pipe counts as missing.
    Missing,
    /// The location is not below the folder, in words.
    Location(&'static str),
    /// The file may be there, but its store has not answered.
    Failed(Error),
}

impl<'a> Neighbours<'a> {
    /// No file is open yet. `opening` is that of the first file.
    pub fn new(opening: Opening<'a>) -> Self {
        Neighbours { opening, paths: Vec::new() }
    }

    /// Opens the file at `location`, which the file at `from` names. Returns its path as well.
    ///
    /// # Errors
    ///
    /// The reason why it is not opened.
    pub fn open(
        &mut self,
        from: Option<&Path>,
        location: &str,
    ) -> Result<(Box<dyn Source>, PathBuf), Refusal> {
        let from = from.ok_or(Refusal::NeedsPath)?;
        if let Some(why) = refusal(location) {
            return Err(Refusal::Location(why));
        }
        if let Some(folder) = self.opening.folder {
            return self.open_in(folder, from, location);
        }
        let path = folder_of(from).join(location);
        let real = path.canonicalize().map_err(|_| Refusal::Missing)?;
        if !self.opening.options.follow_links && leads_out(from, &path) {
            return Err(Refusal::Location(LEADS_OUT));
        }
        let source = FileSource::open(&real).map_err(|_| Refusal::Missing)?;
        let source: Box<dyn Source> = if self.paths.len() < OPEN_MAX {
            Box::new(source)
        } else {
            let byte_len = source.byte_len();
            Box::new(Reopened { real, byte_len })
        };
        self.paths.push(path.clone());
        Ok((source, path))
    }

    /// As [`Neighbours::open`], for files that are not on a disk.
    fn open_in(
        &mut self,
        folder: &dyn Folder,
        from: &Path,
        location: &str,
    ) -> Result<(Box<dyn Source>, PathBuf), Refusal> {
        let names: Vec<&str> =
            location.split('/').filter(|name| !matches!(*name, "" | ".")).collect();
        let path = beside(from, names.join("/"));
        // The file that names it may be in a folder below the first one.
        let first = beside(self.opening.path.unwrap_or(from), "");
        let below =
            path.to_str().zip(first.to_str()).and_then(|(path, first)| path.strip_prefix(first));
        let below = below.ok_or(Refusal::NeedsPath)?;
        let opened = folder.open(&[below]).pop().unwrap_or(Ok(None));
        let opened = opened.map_err(|error| Refusal::Failed(error.with_path(&path)))?;
        let source = opened.ok_or(Refusal::Missing)?;
        self.paths.push(path.clone());
        Ok((source, path))
    }

    /// The paths of all files that were opened.
    pub fn into_paths(self) -> Vec<PathBuf> {
        self.paths
    }
}

/// Why a link is refused that leads out of the folder.
pub const LEADS_OUT: &str = "a link leads out of the file's folder";

/// Whether links lead from `path` to a file outside the folder of `from`. They do not if the file is in the
/// folder of the path of `from`, or of its real path. A missing file leads nowhere.
pub fn leads_out(from: &Path, path: &Path) -> bool {
    let Ok(real) = path.canonicalize() else {
        return false;
    };
    let home = folder_of(from).canonicalize();
    let is_home = home.is_ok_and(|home| real.starts_with(home));
    let real_from = from.canonicalize().ok();
    let real_home = real_from.as_deref().and_then(Path::parent);
    !is_home && !real_home.is_some_and(|home| real.starts_with(home))
}

fn folder_of(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// Why a location is refused; `None` for a path that is relative and does not lead upwards on any
/// system.
pub fn refusal(location: &str) -> Option<&'static str> {
    let has = |refused: fn(Component<'_>) -> bool| Path::new(location).components().any(refused);
    if has(|step| matches!(step, Component::RootDir | Component::Prefix(_))) {
        return Some("the path is absolute");
    }
    if location.contains('\\') {
        return Some("the path has a backslash, which is a separator on some systems");
    }
    if location.contains('\0') || cfg!(windows) && location.contains(':') {
        return Some("the path has a character that is invalid in file names");
    }
    if has(|step| step == Component::ParentDir) {
        return Some("the path has \"..\"");
    }
    let names_file = has(|step| matches!(step, Component::Normal(_)));
    (!names_file).then_some("the path names no file")
}

/// A file that is opened for every read.
struct Reopened {
    real: PathBuf,
    byte_len: u64,
}

impl Source for Reopened {
    fn byte_len(&self) -> u64 {
        self.byte_len
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let source = FileSource::open(&self.real).map_err(Error::from)?;
        source.read_at(offset, buf)
    }
}
