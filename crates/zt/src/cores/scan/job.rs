//! A range of stored bytes to look at, and what the scan found there.

use zt_container::{Blob, Digest, DigestAlgorithm, Encoding, Source, Span};

use crate::cores::region::SMALL;
use crate::error::{Error, Result};

/// One range of stored bytes, and what is wanted of it.
#[derive(Clone)]
pub(crate) struct Job<'f> {
    pub(crate) source: &'f dyn Source,
    pub(crate) span: Span,
    pub(crate) encoding: Encoding,
    /// The most content that is declared; `None` where nothing is.
    pub(crate) declared: Option<u64>,
    /// Bytes of an element to be reversed: 1 where the content is little-endian.
    pub(crate) width: usize,
    /// The checksum of the stored bytes that is wanted: one that pieces' are combined to.
    pub(crate) sum: Option<DigestAlgorithm>,
    /// Whether the SHA-256 of the stored bytes is wanted.
    pub(crate) sha256: bool,
    /// The other checksum of the stored bytes that is wanted: one that takes them in order.
    pub(crate) chain: Option<DigestAlgorithm>,
    /// Whether the SHA-256 of the content is wanted, little-endian.
    pub(crate) content: bool,
    /// Whether bytes of the content other than 0 and 1 are looked for.
    pub(crate) bools: bool,
    /// Whether components declare different lengths: all but one of them are wrong.
    pub(crate) is_disputed: bool,
    /// Components that have these bytes, for telling how far the work is.
    pub(crate) uses: u64,
}

/// What was found.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    /// Bytes of content, or why there are none.
    pub(crate) decoded: Result<u64>,
    pub(crate) sum: Option<Digest>,
    pub(crate) sha256: Option<Digest>,
    pub(crate) chain: Option<Digest>,
    pub(crate) content: Option<Digest>,
    /// The first byte that is no bool.
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
    /// The bytes as a blob.
    pub(super) fn blob(&self) -> Blob {
        Blob {
            encoding: self.encoding,
            decoded_len: self.declared,
            ..Blob::raw(self.span)
        }
    }

    /// Whether a sum of the stored bytes is wanted that takes them in order.
    pub(super) fn is_chained(&self) -> bool {
        self.sha256 || self.chain.is_some()
    }

    /// Whether bytes and content fit a piece, as far as the file says.
    pub(super) fn is_small(&self) -> bool {
        !self.is_disputed
            && self.span.byte_len() <= SMALL
            && self.declared.is_some_and(|len| len <= SMALL)
    }
}

impl Outcome {
    pub(crate) fn failed(error: impl Into<Error>) -> Self {
        Outcome {
            decoded: Err(error.into()),
            ..Outcome::default()
        }
    }

    /// The digest of the stored bytes, where it was wanted and they could be read.
    pub(crate) fn digest(&self, algorithm: DigestAlgorithm) -> Option<&Digest> {
        match algorithm {
            DigestAlgorithm::Sha256 => self.sha256.as_ref(),
            _ => {
                let mut sums = self.sum.iter().chain(&self.chain);
                sums.find(|sum| sum.algorithm() == Some(algorithm))
            }
        }
    }

    /// Adds the sum of the next bytes.
    pub(super) fn append(&mut self, next: Option<&Digest>, next_len: u64) {
        if let Some(sum) = &self.sum {
            self.sum = next.and_then(|next| sum.followed_by(next, next_len));
        }
    }
}
