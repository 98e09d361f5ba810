//! Deltas applied to a base.

use zt::{ContentHash, Digest, HashOptions, Progress, Result, Warning};
use zt_foreign::Input;

use crate::delta::fault::Fault;
use crate::delta::header::Header;
use crate::delta::result::Made;

/// The code of the warning that a base is the result of its deltas already.
pub(super) const IS_RESULT: &str = "is-result";

/// The code of the warning that the values of a base were not compared.
const UNCHECKED: &str = "base-unchecked";

/// What deltas, one after the other, make of a base. A base that is the result already is given back, with the warning
/// `is-result`, so deltas can be applied twice. [`Check::Read`] does not look.
///
/// ```
/// use zt::{Dense, File, Writer};
/// use zt_convert::Input;
/// use zt_model::{Check, Patch, delta};
///
/// let file = |values: &[f32]| {
///     let mut bytes = Vec::new();
///     let mut writer = Writer::new(&mut bytes)?;
///     writer.add("w", &Dense::from_slice(&[values.len() as u64], values)?)?;
///     writer.finish()?;
///     File::from_bytes(bytes).map(Input::from)
/// };
/// let (base, new) = (file(&[1.0, 2.0])?, file(&[1.0, 2.5])?);
/// let mut bytes = Vec::new();
/// delta(&base, &new, &mut bytes, None)?;
/// let deltas = [Input::from(File::from_bytes(bytes)?)];
/// let result = Patch::new(&base, &deltas).check(Check::Read).open()?;
/// assert_eq!(*result.file().tensor("w")?.values::<f32>()?, [1.0, 2.5]);
/// # Ok::<(), zt::Error>(())
/// ```
#[must_use]
#[derive(Debug, Clone, Copy)]
pub struct Patch<'a> {
    base: &'a Input,
    deltas: &'a [Input],
    check: Check,
    progress: Option<Progress<'a>>,
}

/// What is checked before the result of a [`Patch`] is given out. With each of these, a changed component has the
/// digest that its delta records, so a read of all of it is verified.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Check {
    /// Names, shapes and lengths. Nothing is read but the metadata of all files, so a wrong base may go unnoticed. The
    /// result has the warning `base-unchecked`. Whoever writes it or believes its values checks more.
    Read,
    /// As much as makes a copy of the whole result right, or an error of a component. After such an error
    /// [`Check::Whole`] says what is wrong, most often the base.
    ///
    /// Objects that the last delta does not change are hashed before. Their hashes and the digests that the delta
    /// records must give the content identity of the result. If a delta drops or replaces objects of the base, or
    /// comes from a store, a wrong base could give a right result: then this is [`Check::Whole`].
    Copy,
    /// The content identity of the base, of each delta, and of the result.
    #[default]
    Whole,
}

impl<'a> Patch<'a> {
    /// `deltas` of `base`, in the order in which they were made. Everything is checked: [`Check::Whole`].
    pub fn new(base: &'a Input, deltas: &'a [Input]) -> Self {
        Patch { base, deltas, check: Check::default(), progress: None }
    }

    /// Sets what is checked before.
    pub const fn check(mut self, check: Check) -> Self {
        self.check = check;
        self
    }

    /// Reports the bytes of values that are hashed, in the base and in the result.
    pub fn progress(mut self, progress: impl Into<Option<Progress<'a>>>) -> Self {
        self.progress = progress.into();
        self
    }

    /// The result. Its values are made when they are read, from the stretches that are needed.
    /// [`zt_convert::Kinds::convert`] writes it.
    ///
    /// # Errors
    ///
    /// Code `wrong-base` for deltas that do not follow each other, and for another base, with both identities and
    /// the first object that differs; `misuse` for a file that is no delta; `delta` for one that does not fit the
    /// base, and for a result with another identity; `unsupported` for a base with a damaged object; the fault of
    /// an object of a delta; [`zt::ErrorKind::Interrupted`].
    pub fn open(&self) -> Result<Input> {
        let headers = headers(self.deltas)?;
        let (Some(first), Some(last)) = (headers.first(), headers.last()) else {
            return Ok(self.base.clone());
        };
        match self.check {
            Check::Read => {
                let result = self.apply(&headers)?.input;
                let message = "the values of the base were not compared, so names and shapes may be another file's";
                let file = result.file().with_warnings([Warning::new(UNCHECKED, message)])?;
                Ok(Input::new(file, result.paths().to_vec()))
            }
            Check::Copy => match self.checked_on_copy(&headers, last)? {
                Some(result) => Ok(result),
                // It knows why deltas do not fit.
                None => self.checked(&headers, first, last),
            },
            Check::Whole => self.checked(&headers, first, last),
        }
    }

    /// The result, if a copy of it is right or an error.
    fn checked_on_copy(&self, headers: &[Header], last: &Header) -> Result<Option<Input>> {
        let Ok(made) = self.apply(headers) else {
            return Ok(None);
        };
        if !made.needs_all() {
            return Ok(None);
        }
        let hash = made.input.file().hash(&self.hashing().recorded(&made.changed))?;
        Ok((hash.content == Some(last.result)).then_some(made.input))
    }

    fn checked(&self, headers: &[Header], first: &Header, last: &Header) -> Result<Input> {
        let base = self.hash(self.base)?;
        if base.content == Some(last.result) && last.result != first.base {
            let message = "the base is the result of the deltas already, so nothing was applied";
            let file = self.base.file().with_warnings([Warning::new(IS_RESULT, message)])?;
            return Ok(Input::new(file, self.base.paths().to_vec()));
        }
        first.expect_base(&base).map_err(|error| self.base.blame(error))?;
        let result = self.apply(headers)?.input;
        let found = self.hash(&result)?;
        if let Some(error) = found.errors().next() {
            let error = error.clone();
            // The whole base was read, so a delta is at fault.
            return Err(match self.deltas {
                [delta] => delta.blame(error),
                _ => error,
            });
        }
        let content = found.content.ok_or(Fault::NoIdentity)?;
        if content != last.result {
            let (expected, found) = (Digest::Sha256(last.result), Digest::Sha256(content));
            let error = Fault::WrongResult { expected, found }.into();
            return Err(self.deltas.last().unwrap_or(self.base).blame(error));
        }
        Ok(result)
    }

    fn apply(&self, headers: &[Header]) -> Result<Made> {
        let mut made = Made::unchanged(self.base);
        for (delta, header) in self.deltas.iter().zip(headers) {
            made = made.then(delta, header)?;
        }
        Ok(made)
    }

    fn hash(&self, input: &Input) -> Result<ContentHash> {
        let hash = input.file().hash(&self.hashing());
        hash.map_err(|error| input.blame(error))
    }

    fn hashing(&self) -> HashOptions<'a> {
        let options = HashOptions::new();
        self.progress.map_or(options, |progress| options.progress(progress))
    }
}

/// What the deltas record. Each must follow the one before it.
fn headers(deltas: &[Input]) -> Result<Vec<Header>> {
    let mut headers: Vec<Header> = Vec::with_capacity(deltas.len());
    for delta in deltas {
        let header = Header::of(delta.file()).map_err(|error| delta.blame(error))?;
        if let Some(before) = headers.last().filter(|before| before.result != header.base) {
            let (expected, found) = (Digest::Sha256(before.result), Digest::Sha256(header.base));
            return Err(delta.blame(Fault::WrongOrder { expected, found }.into()));
        }
        headers.push(header);
    }
    Ok(headers)
}
