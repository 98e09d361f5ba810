//! Deltas applied to a base.

use zt::{Digest, HashOptions, Progress, Result};
use zt_foreign::Input;

use crate::delta::fault::Fault;
use crate::delta::header::Header;
use crate::delta::result::Made;

/// The file that `deltas`, one after the other, make of `base`. Its values are made when they are read, from
/// the stretches that are needed. Nothing is read here but the metadata of all files.
///
/// A changed component has the digest that its delta records, so a read of all of it is verified. Whether
/// `base` is the right one is known only from names and lengths: [`patch()`] checks more.
///
/// # Errors
///
/// Code `wrong-base` for deltas that do not follow each other; `misuse` for a file that is no delta; `delta` for
/// one that does not fit the names and the lengths of the base; the fault of an object of a delta.
pub fn patched(base: &Input, deltas: &[Input]) -> Result<Input> {
    Ok(apply(base, deltas, &headers(deltas)?)?.input)
}

/// As [`patch`], but the values that changed are verified when the result is read: base and result are read once
/// less. To copy the whole result gives the right file, or an error of a component. After such an error
/// [`patch`] says what is wrong, most often the base.
///
/// Objects that the last delta does not change are hashed here. Their hashes and the digests that the delta
/// records must give the content identity of the result.
///
/// All is checked as [`patch`] does it if a delta drops or replaces objects of the base, or comes from a
/// store. Then a wrong base could give a right result.
///
/// # Errors
///
/// As [`patch`].
pub fn patch_on_read(
    base: &Input,
    deltas: &[Input],
    progress: Option<Progress<'_>>,
) -> Result<Input> {
    let headers = headers(deltas)?;
    // `patch` knows why deltas do not fit.
    if let Ok(made) = apply(base, deltas, &headers)
        && let Some(last) = headers.last()
        && made.needs_all()
    {
        let options = hashing(progress).recorded(&made.changed);
        let hash = made.input.file().hash(&options)?;
        if hash.content == Some(last.result) {
            return Ok(made.input);
        }
    }
    patch(base, deltas, progress)
}

/// As [`patched`], and checks everything before: the content identity of the base, of each delta, and of
/// the result. [`zt_convert::convert`] writes the result. `progress` counts the bytes of values that
/// are hashed, in the base and in the result.
///
/// # Errors
///
/// As [`patched`]; code `wrong-base` for another base, with both identities and the first object that differs;
/// `unsupported` for a base with a damaged object; `delta` for a result with another identity;
/// [`zt::ErrorKind::Interrupted`].
pub fn patch(base: &Input, deltas: &[Input], progress: Option<Progress<'_>>) -> Result<Input> {
    let headers = headers(deltas)?;
    let (Some(first), Some(last)) = (headers.first(), headers.last()) else {
        return Ok(base.clone());
    };
    let hash = |input: &Input| {
        let hash = input.file().hash(&hashing(progress));
        hash.map_err(|error| input.blame(error))
    };
    let expected = first.expect_base(&hash(base)?);
    expected.map_err(|error| base.blame(error))?;
    let result = apply(base, deltas, &headers)?.input;
    let found = hash(&result)?;
    if let Some(error) = found.errors().next() {
        let error = error.clone();
        // The whole base was read, so a delta is at fault.
        return Err(match deltas {
            [delta] => delta.blame(error),
            _ => error,
        });
    }
    let content = found.content.ok_or(Fault::NoIdentity)?;
    if content != last.result {
        let (expected, found) = (Digest::Sha256(last.result), Digest::Sha256(content));
        let error = Fault::WrongResult { expected, found }.into();
        return Err(deltas.last().unwrap_or(base).blame(error));
    }
    Ok(result)
}

fn hashing(progress: Option<Progress<'_>>) -> HashOptions<'_> {
    let options = HashOptions::new();
    progress.map_or(options, |progress| options.progress(progress))
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

fn apply(base: &Input, deltas: &[Input], headers: &[Header]) -> Result<Made> {
    let mut made = Made::unchanged(base);
    for (delta, header) in deltas.iter().zip(headers) {
        made = made.then(delta, header)?;
    }
    Ok(made)
}
