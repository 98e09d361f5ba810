//! The wrong leaves of a file are replaced by right ones from another place.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use zt::container::memory::fetch;
use zt::foreign::{AtomicFile, on_all_cores, on_threads};
use zt::{Error, FileSource, Result, Source, Span};

use crate::check::{Damage, Flaw, State, check};
use crate::fault::Fault;
use crate::files::Files;
use crate::options::SealOptions;
use crate::seal::{Seal, SealedFile};

/// What a repair has done, or would do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Mended {
    /// The number of bytes before; `None` for a file that was missing.
    pub old_len: Option<u64>,
    /// What was wrong.
    pub flaws: Vec<Flaw>,
    /// Bytes of wrong leaves, which were taken from the other place.
    pub fetched: u64,
    /// Whether the file was, or is to be, replaced.
    pub changed: bool,
}

/// Compares the file at `path` with number `file` of the seal, and replaces it by one whose wrong leaves come from
/// `from`, which is asked for only if there are any. Every leaf is checked again as it is written. The new file
/// takes the name when it is whole and durable: until then, and after an error, the old one stays.
///
/// With `dry_run`, only compares.
///
/// # Errors
///
/// Code `seal-mismatch` if the other place has wrong bytes, too; `locked`; [`zt::ErrorKind::Io`]; the errors of `from`;
/// an interruption.
pub fn mend(
    path: &Path,
    seal: &Seal,
    file: usize,
    from: impl FnOnce() -> Result<Box<dyn Source>> + Send,
    dry_run: bool,
    options: &SealOptions<'_>,
) -> Result<Mended> {
    let sealed = seal.files.get(file);
    let sealed = sealed.ok_or_else(|| Fault::NotSealed { path: file.to_string() })?;
    let (folder, name) = (path.parent().unwrap_or(Path::new("")), path.file_name());
    let name = name.and_then(|name| name.to_str()).ok_or(Fault::NotUnicode)?;
    let checked = check(&Files::local(folder), seal, &[(file, name.to_owned())], &[], options)?;
    let state = checked.into_iter().next().map_or(State::Missing, |checked| checked.state);
    let mended = Mended::of(state, seal, file)?;
    if mended.changed && !dry_run {
        on_threads(options.threads, || {
            let mending = Mending { seal, file, sealed, mended: &mended, options };
            mending.write(path, from)
        })?;
    }
    Ok(mended)
}

impl Mended {
    /// What is to be done about file number `file`, which is in this state.
    pub(crate) fn of(state: State, seal: &Seal, file: usize) -> Result<Self> {
        let byte_len = seal.files.get(file).map_or(0, |sealed| sealed.byte_len);
        let mut mended = Mended::default();
        match state {
            State::Wrong { byte_len, flaws, .. } => {
                mended = Mended { old_len: Some(byte_len), flaws, changed: true, ..mended };
            }
            State::Unread(error) => return Err(error),
            State::Right => mended.old_len = Some(byte_len),
            // All of it is missing.
            _ => {
                let span = Span::new(0, byte_len).unwrap_or_default();
                let leaves = 0..seal.files.get(file).map_or(0, SealedFile::leaf_count);
                let mut flaw = Flaw { leaves, span, damage: Damage::Cut, tensors: Vec::new() };
                flaw.name_tensors(seal, file);
                mended = Mended { flaws: vec![flaw], changed: true, ..mended };
            }
        }
        let lens = mended.flaws.iter().map(|flaw| flaw.span.byte_len());
        mended.fetched = lens.fold(0, u64::strict_add);
        Ok(mended)
    }
}

/// A file that is written anew.
pub(crate) struct Mending<'m> {
    pub(crate) seal: &'m Seal,
    pub(crate) file: usize,
    pub(crate) sealed: &'m SealedFile,
    pub(crate) mended: &'m Mended,
    pub(crate) options: &'m SealOptions<'m>,
}

impl Mending<'_> {
    pub(crate) fn write(
        &self,
        path: &Path,
        from: impl FnOnce() -> Result<Box<dyn Source>>,
    ) -> Result<()> {
        /// Leaves that are in memory together.
        const TOGETHER: usize = 16;
        let blame = |error: Error| error.with_path(path);
        let mut new = AtomicFile::create(path)?;
        let old = self.mended.old_len.map(|_| FileSource::open(path));
        let old = old.transpose().map_err(|error| blame(error.into()))?;
        let source = if self.mended.flaws.is_empty() { None } else { Some(self.open(from)?) };
        let all: Vec<u64> = (0..self.sealed.leaf_count()).collect();
        for leaves in all.chunks(TOGETHER) {
            let read = on_all_cores(leaves.to_vec(), |leaf| {
                self.leaf(leaf, old.as_ref(), source.as_deref())
            });
            for bytes in read? {
                new.write_all(&bytes).map_err(|error| blame(error.into()))?;
                self.options.report(bytes.len() as u64)?;
            }
        }
        new.publish()
    }

    /// The other place, which has the right length. All that is needed of it is announced.
    fn open(&self, from: impl FnOnce() -> Result<Box<dyn Source>>) -> Result<Arc<dyn Source>> {
        let source: Arc<dyn Source> = from()?.into();
        let (expected, found) = (self.sealed.byte_len, source.byte_len());
        if expected != found {
            let path = self.sealed.path.clone();
            return Err(Fault::Source(Box::new(Fault::Length { path, expected, found })).into());
        }
        let spans: Vec<Span> = self.mended.flaws.iter().map(|flaw| flaw.span).collect();
        source.will_read_all(&spans);
        Ok(source)
    }

    /// The right bytes of a leaf.
    fn leaf(
        &self,
        leaf: u64,
        old: Option<&FileSource>,
        source: Option<&dyn Source>,
    ) -> Result<Vec<u8>> {
        let span = self.sealed.leaf_span(leaf).unwrap_or_default();
        let mut bytes = Vec::new();
        let is_wrong = self.mended.flaws.iter().any(|flaw| flaw.leaves.contains(&leaf));
        let old = old.map(|old| old as &dyn Source);
        let from = source.filter(|_| is_wrong).or(old);
        let missing = || Fault::Missing { path: self.sealed.path.clone() };
        fetch(&mut bytes, from.ok_or_else(missing)?, span)?;
        if self.sealed.has_leaf(leaf, &bytes) {
            return Ok(bytes);
        }
        let flaw = Box::new(Flaw::of_leaf(self.seal, self.file, leaf, &bytes));
        let fault = Fault::Leaf { path: self.sealed.path.clone(), flaw };
        // Without `is_wrong`, the file has changed since it was compared.
        Err(if is_wrong { Fault::Source(Box::new(fault)) } else { fault }.into())
    }
}
