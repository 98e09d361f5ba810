//! A range of stored bytes to look at, and what the scan found there.

use zt_container::{Blob, Digest, DigestAlgorithm, Encoding, Source, Span};

use crate::cores::region::SMALL;
use crate::error::{Error, Result};

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
    /// The wanted checksum of the stored bytes, if checksums of pieces combine to it.
    pub(crate) sum: Option<DigestAlgorithm>,
    /// Whether the SHA-256 of the stored bytes is wanted.
    pub(crate) sha256: bool,
    /// The wanted checksum of the stored bytes, if it has to be computed in order.
    pub(crate) chain: Option<DigestAlgorithm>,
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
    pub(crate) sum: Option<Digest>,
    pub(crate) sha256: Option<Digest>,
    pub(crate) chain: Option<Digest>,
    pub(crate) content: Option<Digest>,
    /// The first byte that is neither 0 nor 1.
    pub(crate) wrong_bool: Option<Box<zt_formats::Error>>,
}

impl Default for Outcome {
    fn default() -> Self {
        Outcome {
            decoded: Ok(0),
            sum: None,
            sha256: None,
            chain: None,
            content: None,
            wrong_bool: None,
        }
    }
}

impl Job<'_> {
    pub(super) fn blob(&self) -> Blob {
        // Decoding a disputed stream once for each length would let a manifest cost more than its bytes.
        let decoded_len = self.declared.filter(|_| !self.is_disputed);
        Blob { encoding: self.encoding, decoded_len, ..Blob::raw(self.span) }
    }

    /// Whether a digest of the stored bytes is wanted that takes them in order.
    pub(super) fn is_chained(&self) -> bool {
        self.sha256 || self.chain.is_some()
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
        match algorithm {
            DigestAlgorithm::Sha256 => self.sha256.as_ref(),
            _ => {
                let mut sums = self.sum.iter().chain(&self.chain);
                sums.find(|sum| sum.algorithm() == Some(algorithm))
            }
        }
    }
}
