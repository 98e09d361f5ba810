//! A range of stored bytes to look at, and what the scan found there.

use zt_container::{Blob, Digest, DigestAlgorithm, Encoding, Source, Span};

use crate::cores::region::SMALL;
use crate::error::{Error, Result};

/// Digests of one range. They are not in memory of their own: to allocate it for each small range took 8 %
/// of its verification.
const MOST: usize = 3;

/// One range of stored bytes, and what the caller wants to know about it.
#[derive(Clone)]
pub(crate) struct Job<'f> {
    pub(crate) source: &'f dyn Source,
    pub(crate) span: Span,
    pub(crate) encoding: Encoding,
    /// The largest declared length of the content; `None` if there is none.
    pub(crate) declared: Option<u64>,
    /// The element width for reversing bytes; 1 if the content is little-endian.
    pub(crate) width: usize,
    /// The wanted digests of the stored bytes, each algorithm once. Nearly all digests of one range have one
    /// algorithm; no known file has more than three.
    pub(crate) digests: [Option<DigestAlgorithm>; MOST],
    /// Whether the SHA-256 of the content in little-endian order is wanted.
    pub(crate) content: bool,
    /// Whether to look for bytes of the content other than 0 and 1.
    pub(crate) bools: bool,
    /// Whether components declare different lengths. Then all but one of them are wrong.
    pub(crate) is_disputed: bool,
    /// The number of components with these bytes, for the progress.
    pub(crate) uses: u64,
}

/// The outcome of a job.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    /// The length of the content, or why it cannot be decoded.
    pub(crate) decoded: Result<u64>,
    /// Those that were wanted of the stored bytes, if these could be read.
    pub(crate) digests: [Option<Digest>; MOST],
    /// The SHA-256 of the content, if it was wanted and all could be decoded.
    pub(crate) content: Option<Digest>,
    /// The first byte that is neither 0 nor 1.
    pub(crate) wrong_bool: Option<Box<zt_formats::Error>>,
}

impl Default for Outcome {
    fn default() -> Self {
        Outcome { decoded: Ok(0), digests: [const { None }; MOST], content: None, wrong_bool: None }
    }
}

impl Job<'_> {
    /// The digest by this algorithm is wanted, too. One that has no place is not computed.
    pub(crate) fn want(&mut self, algorithm: DigestAlgorithm) {
        let is_place = |place: &&mut Option<_>| place.is_none_or(|known| known == algorithm);
        if let Some(place) = self.digests.iter_mut().find(is_place) {
            *place = Some(algorithm);
        }
    }

    pub(super) fn blob(&self) -> Blob {
        // Decoding a disputed stream once for each length would let a manifest cost more than its bytes.
        let decoded_len = self.declared.filter(|_| !self.is_disputed);
        Blob { encoding: self.encoding, decoded_len, ..Blob::raw(self.span) }
    }

    /// Whether the content in little-endian order is the stored bytes.
    pub(crate) fn is_stored(&self) -> bool {
        self.encoding == Encoding::Raw && self.width == 1
    }

    /// Whether the stored bytes and the declared content fit one piece.
    pub(super) fn is_small(&self) -> bool {
        !self.is_disputed
            && self.span.byte_len() <= SMALL
            && self.declared.is_some_and(|len| len <= SMALL)
    }
}

impl Outcome {
    pub(crate) fn failed(error: impl Into<Error>) -> Self {
        Outcome { decoded: Err(error.into()), ..Outcome::default() }
    }

    /// The digest of the stored bytes, if it was wanted and they could be read.
    pub(crate) fn digest(&self, algorithm: DigestAlgorithm) -> Option<&Digest> {
        self.digests.iter().flatten().find(|digest| digest.algorithm() == Some(algorithm))
    }
}
