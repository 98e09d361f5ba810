//! The digest of a blob whose stored bytes are read in pieces, in any order and on any core.

use std::sync::{Mutex, PoisonError};

use zt_container::{
    Blob, BlobReader, Digest, DigestAlgorithm, Error, Limits, Misuse, Source, Span, bytes_of,
};

use crate::error::Result;

/// The digests of the pieces of one blob that were read so far.
///
/// It compares nothing where no digest is expected, or the digest is a chain of blocks: such a digest is
/// computed from front to back, by [`Ledger::chain`].
#[derive(Default)]
pub(crate) struct Ledger<'b> {
    span: Span,
    expected: Option<&'b Digest>,
    algorithm: Option<DigestAlgorithm>,
    seen: Mutex<Vec<(Span, Digest)>>,
}

impl<'b> Ledger<'b> {
    /// For the recorded digest of `blob`, if `verify` is true.
    pub(crate) fn of(blob: &'b Blob, verify: bool) -> Self {
        let expected = blob.digest.as_ref().filter(|_| verify);
        Ledger { expected, ..Ledger::sum(blob.span, expected.and_then(Digest::algorithm)) }
    }

    /// For a sum of these bytes that is compared elsewhere.
    pub(crate) fn sum(span: Span, algorithm: Option<DigestAlgorithm>) -> Self {
        Ledger { span, expected: None, algorithm, seen: Mutex::default() }
    }

    /// The algorithm to sum pieces with; `None` if no piece is summed.
    pub(crate) fn algorithm(&self) -> Option<DigestAlgorithm> {
        self.algorithm.filter(|algorithm| algorithm.combines())
    }

    /// Whether the digest has to be computed from front to back.
    pub(crate) fn is_chain(&self) -> bool {
        self.algorithm.is_some_and(|algorithm| !algorithm.combines())
    }

    /// Sums the stored bytes of a piece, which is read once.
    pub(crate) fn add(&self, stored: Span, bytes: &[u8]) -> zt_container::Result<()> {
        if let Some(algorithm) = self.algorithm() {
            self.note(stored, algorithm.digest(bytes)?);
        }
        Ok(())
    }

    /// As [`Ledger::add`], of a piece whose sum is known.
    pub(crate) fn note(&self, stored: Span, sum: Digest) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push((stored, sum));
    }

    /// The digest of all bytes, if pieces are summed. Bytes of no piece are read, such as a table of frames at
    /// the end. `Misuse` if pieces overlap.
    pub(crate) fn finish(self, source: &dyn Source) -> zt_container::Result<Option<Digest>> {
        let Some(algorithm) = self.algorithm() else {
            return Ok(None);
        };
        let mut seen = self.seen.into_inner().unwrap_or_else(PoisonError::into_inner);
        seen.sort_unstable_by_key(|(stored, _)| (stored.offset(), stored.end()));
        let mut total = algorithm.digest(&[])?;
        seen.push((Span::exact(self.span.end(), 0), total.clone()));
        let mut end = self.span.offset();
        // A piece that is longer than this machine can address must not pass as verified.
        let too_long = || Error::Misuse(Misuse::TooLong);
        for (stored, sum) in seen {
            let between = Span::between(end, stored.offset()).ok_or_else(too_long)?;
            if !between.is_empty() {
                let sum = algorithm.digest(&bytes_of(source, between)?)?;
                total = total.followed_by(&sum, between.byte_len()).ok_or_else(too_long)?;
            }
            total = total.followed_by(&sum, stored.byte_len()).ok_or_else(too_long)?;
            end = stored.end();
        }
        Ok(Some(total))
    }

    /// Compares the digest of all bytes with the recorded one, if pieces are summed.
    pub(crate) fn compare(self, source: &dyn Source) -> Result<()> {
        match (self.expected, self.finish(source)?) {
            (Some(expected), Some(found)) if *expected != found => {
                let expected = expected.clone();
                Err(Error::DigestMismatch { expected, found }.into())
            }
            _ => Ok(()),
        }
    }

    /// Compares a digest that has to be computed from front to back, on this core.
    pub(crate) fn chain(&self, source: &dyn Source) -> Result<()> {
        if self.is_chain() { self.hash(source) } else { Ok(()) }
    }

    /// Compares the digest of all stored bytes, on this core.
    pub(crate) fn hash(&self, source: &dyn Source) -> Result<()> {
        let stored = Blob::raw(self.span).with_digest(self.expected.cloned());
        let mut reader = BlobReader::new(source, &stored, &Limits::default())?;
        let mut piece = vec![0; 64 << 10];
        while reader.read(&mut piece)? > 0 {}
        Ok(())
    }

    /// A wrong digest explains every error of a decoder, so it is reported instead.
    pub(crate) fn explained(
        &self,
        source: &dyn Source,
        error: crate::error::Error,
    ) -> crate::error::Error {
        if error.code() != "zstd" || self.expected.is_none() {
            return error;
        }
        self.hash(source).err().unwrap_or(error)
    }
}
