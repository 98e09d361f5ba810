//! A plain array that is stored raw: each core reads, hashes and uses some stretches, while they are in its
//! cache.

use zt_container::memory::fetch;
use zt_container::{Digest, DigestAlgorithm, Encoding, Source, Span};
use zt_formats::{Dense, View};
use zt_manifest::ByteOrder;

use crate::cores::scratch::Pool;
use crate::cores::sums::compare;
use crate::error::Result;
use crate::file::tensor::{Located, Tensor};

/// The values of a dense object whose bytes are read anywhere and hashed in stretches.
pub(crate) struct RawValue<'f> {
    tensor: Tensor<'f>,
    part: Located<'f>,
    source: &'f dyn Source,
    span: Span,
    expected: Option<(&'f Digest, DigestAlgorithm)>,
}

/// The checksum of a stretch, if one is wanted, and its length.
pub(crate) type Sum = (Option<Digest>, u64);

impl<'f> Tensor<'f> {
    /// `None` for an object that is stored otherwise, whose source is read from front to back or is remote, or
    /// whose digest has to be verified and is a chain: [`Tensor::dense_reader`] reads these.
    pub(crate) fn raw_value(&self) -> Result<Option<RawValue<'f>>> {
        self.expect_meaning()?;
        if self.format() != Dense::FORMAT {
            return Ok(None);
        }
        let part = self.locate("data")?;
        let (source, blob) = (self.source(part), &part.component.blob);
        let is_raw =
            blob.encoding == Encoding::Raw && part.component.byte_order == ByteOrder::Little;
        if !is_raw || source.is_sequential() || source.is_remote() {
            return Ok(None);
        }
        let digest = blob.digest.as_ref().filter(|_| self.must_verify(part));
        let expected = digest.and_then(|digest| {
            let algorithm = digest.algorithm().filter(|it| it.combines())?;
            Some((digest, algorithm))
        });
        Ok((digest.is_some() == expected.is_some()).then_some(RawValue {
            tensor: *self,
            part,
            source,
            span: blob.span,
            expected,
        }))
    }
}

impl RawValue<'_> {
    /// Memory for stretches.
    pub(crate) fn pool(&self) -> &Pool {
        self.tensor.pool()
    }

    /// The places of stretches of `len` bytes, at least one. The last may be shorter.
    pub(crate) fn places(&self, len: u64) -> Vec<u64> {
        (0..self.span.byte_len().div_ceil(len).max(1)).collect()
    }

    /// The bytes of the stretch at this place, lent or in `memory`, and their checksum.
    pub(crate) fn stretch<'m>(
        &'m self,
        at: u64,
        len: u64,
        memory: &'m mut Vec<u8>,
    ) -> Result<(&'m [u8], Sum)> {
        let start = self.span.offset().saturating_add(at.saturating_mul(len));
        let end = start.saturating_add(len).min(self.span.end());
        let stored = Span::between(start, end).unwrap_or_default();
        let bytes = match self.source.slice(stored) {
            Some(lent) => Ok(lent),
            None => fetch(memory, self.source, stored),
        };
        let blame = |error| self.tensor.blame(error, self.part);
        let bytes = bytes.map_err(blame)?;
        let sum = self.expected.map(|(_, algorithm)| algorithm.digest(bytes));
        let sum = sum.transpose().map_err(blame)?;
        Ok((bytes, (sum, stored.byte_len())))
    }

    /// Compares the digest with the checksums of all stretches, in order.
    pub(crate) fn check(&self, sums: impl IntoIterator<Item = Sum>) -> Result<()> {
        let mut sums = sums.into_iter();
        if let (Some((expected, _)), Some((first, _))) = (self.expected, sums.next()) {
            let found = sums.fold(first, |all, (sum, len)| all?.followed_by(&sum?, len));
            let compared = compare(expected, found);
            compared.map_err(|error| self.tensor.blame(error, self.part))?;
            self.tensor.set_verified(self.part);
        }
        Ok(())
    }
}
