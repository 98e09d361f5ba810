//! Reading with a seal: each leaf is checked when it is first touched.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use zt::container::memory::{fetch, in_memory};
use zt::container::{Right, Stretches};
use zt::{Error, Result, Source, Span};
use zt_foreign::{Folder, Opened};

use crate::check::Flaw;
use crate::fault::Fault;
use crate::files::Files;
use crate::seal::Seal;
use crate::tree::{LEAF, leaves};

/// A file. Every byte is compared with the seal before it is given. A wrong leaf is an error that names
/// the file, the leaf, its bytes and its tensors.
///
/// A leaf is checked once, when a read first touches it, and then as a whole: the first read of a few bytes reads
/// 1 MiB. Later reads trust the file, as they do after the digest of a component was checked.
pub struct SealedSource {
    inner: Box<dyn Source>,
    seal: Arc<Seal>,
    file: usize,
    leaves: Stretches,
    right: Right,
    recent: Arc<Recent>,
}

/// The leaves that were read last, of all files of a folder.
#[derive(Default)]
struct Recent {
    leaves: Mutex<Leaves>,
    /// Held while a leaf is checked, so that another reader waits for it and does not read it, too.
    busy: [Mutex<()>; 16],
}

/// The numbers of a file and of a leaf, and the bytes.
type Leaves = VecDeque<(usize, u64, Arc<Vec<u8>>)>;

/// Leaves that are kept: readers take pieces of 1 MiB, which begin anywhere, on some cores at once.
const KEPT: usize = 16;

impl SealedSource {
    /// A file that should be number `file` of the seal.
    ///
    /// # Errors
    ///
    /// Code `seal-mismatch` if it has another length, or is empty and the seal has another digest; `misuse` if the seal
    /// has no such file.
    pub fn new(inner: impl Source + 'static, seal: Arc<Seal>, file: usize) -> Result<Self> {
        Self::with(Box::new(inner), seal, file, Arc::default())
    }

    fn with(
        inner: Box<dyn Source>,
        seal: Arc<Seal>,
        file: usize,
        recent: Arc<Recent>,
    ) -> Result<Self> {
        let Some(sealed) = seal.files.get(file) else {
            return Err(Fault::NotSealed { path: file.to_string() }.into());
        };
        let (expected, found) = (sealed.byte_len, inner.byte_len());
        if expected != found {
            return Err(Fault::Length { path: sealed.path.clone(), expected, found }.into());
        }
        if expected == 0 && !sealed.has_leaf(0, &[]) {
            // No read will compare it: there is nothing to read.
            let flaw = Box::new(Flaw::of_leaf(&seal, file, 0, &[]));
            return Err(Fault::Leaf { path: sealed.path.clone(), flaw }.into());
        }
        let leaves = leaves(found);
        let right = Right::none_of(leaves.count());
        Ok(SealedSource { inner, seal, file, leaves, right, recent })
    }

    /// Compares the bytes of a leaf with the seal.
    fn check(&self, leaf: u64, bytes: &[u8]) -> Result<(), Fault> {
        self.seal.compare(self.file, leaf, bytes)?;
        self.right.add(leaf);
        Ok(())
    }

    /// The bytes of a leaf, which are right.
    fn leaf(&self, leaf: u64) -> Result<Arc<Vec<u8>>> {
        let busy = usize::try_from(leaf % 16).ok().and_then(|at| self.recent.busy.get(at));
        let busy = busy.map(|busy| busy.lock().unwrap_or_else(PoisonError::into_inner));
        let mut recent = self.recent();
        if let Some((.., bytes)) =
            recent.iter().find(|(file, at, _)| (*file, *at) == (self.file, leaf))
        {
            return Ok(Arc::clone(bytes));
        }
        let oldest = if recent.len() < KEPT { None } else { recent.pop_front() };
        drop(recent);
        // Memory that is used again is not cleared by the system.
        let old = oldest.and_then(|(.., bytes)| Arc::try_unwrap(bytes).ok());
        let mut bytes = old.unwrap_or_default();
        fetch(&mut bytes, &*self.inner, self.leaves.get(leaf).unwrap_or_default())?;
        self.check(leaf, &bytes)?;
        let bytes = Arc::new(bytes);
        self.recent().push_back((self.file, leaf, Arc::clone(&bytes)));
        drop(busy);
        Ok(bytes)
    }

    fn recent(&self) -> MutexGuard<'_, Leaves> {
        self.recent.leaves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`Source::read_at`], with errors of this library.
    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let span = Span::new(offset, buf.len() as u64);
        let span = span.filter(|span| span.end() <= self.byte_len());
        let span = span.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        let (mut at, mut rest) = (offset, buf);
        if self.inner.is_remote() {
            self.inner.will_read(self.leaves.around(span));
        }
        let leaves = self.leaves.touched(span);
        while !rest.is_empty() {
            let leaf = at / LEAF;
            let place = self.leaves.get(leaf).unwrap_or_default();
            let is_checked = self.right.has(leaf);
            let end = if is_checked {
                // Leaves that are right, together.
                let wrong = (leaf..leaves.end).find(|leaf| !self.right.has(*leaf));
                wrong.map_or(span.end(), |it| it.strict_mul(LEAF))
            } else {
                place.end().min(span.end())
            };
            let len = in_memory(end.strict_sub(at));
            let (now, later) = std::mem::take(&mut rest).split_at_mut(len);
            if is_checked || (at, end) == (place.offset(), place.end()) {
                self.inner.read_at(at, now)?;
                if !is_checked {
                    self.check(leaf, now)?;
                }
            } else {
                let bytes = self.leaf(leaf)?;
                let from = in_memory(at % LEAF);
                let part = bytes.get(from..from.strict_add(len));
                now.copy_from_slice(
                    part.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?,
                );
            }
            (at, rest) = (end, later);
        }
        Ok(())
    }
}

impl Source for SealedSource {
    fn byte_len(&self) -> u64 {
        self.inner.byte_len()
    }

    fn slice(&self, span: Span) -> Option<&[u8]> {
        let lent = self.inner.slice(span)?;
        for leaf in self.leaves.touched(span).filter(|leaf| !self.right.has(*leaf)) {
            let bytes = self.inner.slice(self.leaves.get(leaf)?)?;
            // The read that follows returns the error.
            self.check(leaf, bytes).ok()?;
        }
        Some(lent)
    }

    fn is_sequential(&self) -> bool {
        self.inner.is_sequential()
    }

    fn will_read(&self, span: Span) {
        self.inner.will_read(self.leaves.around(span));
    }

    fn will_read_all(&self, spans: &[Span]) {
        let spans: Vec<Span> = spans.iter().map(|span| self.leaves.around(*span)).collect();
        self.inner.will_read_all(&spans);
    }

    fn is_remote(&self) -> bool {
        self.inner.is_remote()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        Ok(self.read(offset, buf)?)
    }
}

/// A folder whose files are read with a seal. A file that the seal does not have is refused.
#[derive(Clone)]
pub struct SealedFolder {
    files: Files,
    seal: Arc<Seal>,
    /// The folder in the seal, with a `/` behind it.
    prefix: String,
    recent: Arc<Recent>,
}

impl SealedFolder {
    /// The folder of file number `file` of the seal.
    pub fn new(files: Files, seal: Arc<Seal>, file: usize) -> Self {
        let path = seal.files.get(file).map_or("", |file| &file.path);
        let (prefix, _) = path.split_at(path.rfind('/').map_or(0, |at| at.strict_add(1)));
        let prefix = prefix.to_owned();
        SealedFolder { files, seal, prefix, recent: Arc::default() }
    }

    /// Opens the file `name` of this folder, which should be the file `path` of the seal.
    ///
    /// # Errors
    ///
    /// As [`SealedSource::new`]; code `seal-mismatch` if it is missing.
    pub fn open_as(&self, name: &str, path: &str) -> Result<SealedSource> {
        let opened = self.files.open(&[name]).pop().unwrap_or(Ok(None))?;
        let inner = opened.ok_or_else(|| Fault::Missing { path: path.to_owned() })?;
        self.source(path, inner)
    }

    /// A file in this folder, by its path in the seal, from the source that has it.
    ///
    /// # Errors
    ///
    /// As [`SealedSource::new`].
    pub fn source(&self, path: &str, inner: Box<dyn Source>) -> Result<SealedSource> {
        let file = self.seal.position(path);
        let file = file.ok_or_else(|| Fault::NotSealed { path: path.to_owned() })?;
        SealedSource::with(inner, Arc::clone(&self.seal), file, Arc::clone(&self.recent))
    }
}

impl std::fmt::Debug for SealedFolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SealedFolder").field(&self.files).finish()
    }
}

impl Folder for SealedFolder {
    fn open(&self, locations: &[&str]) -> Vec<Opened> {
        let opened = self.files.open(locations).into_iter().zip(locations);
        let sealed = opened.map(|(opened, location)| {
            let path = format!("{}{location}", self.prefix);
            let source = opened?.map(|inner| self.source(&path, inner)).transpose();
            let source =
                source.map_err(|error: Error| error.with_path(&self.files.path_of(location)));
            Ok(source?.map(|source| Box::new(source) as Box<dyn Source>))
        });
        sealed.collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use zt::Memory;

    use super::*;
    use crate::seal::SealedFile;

    #[test]
    fn an_empty_file_is_compared_when_it_is_opened() {
        let sealed = |sum: [u8; 32]| SealedFile {
            path: "x".to_owned(),
            byte_len: 0,
            sha256: [0; 32],
            blake3: sum,
            leaves: vec![sum],
        };
        let open = |sum| {
            let seal = Seal { files: vec![sealed(sum)], models: Vec::new() };
            SealedSource::new(Memory::new(Vec::new()), Arc::new(seal), 0)
        };
        open(*blake3::hash(&[]).as_bytes()).unwrap();
        assert_eq!(open([1; 32]).err().unwrap().code(), "seal-mismatch");
    }
}
