//! Stored bytes and how to decode them.

use crate::chunks::Chunks;
use crate::digest::{Digest, DigestAlgorithm};
use crate::span::Span;

/// How the bytes of a blob are stored.
///
/// Both variants always exist; decoding [`Encoding::Zstd`] needs the feature `zstd`. Without it, such a
/// blob is found and listed, and decoding it is `Unsupported`. Spec: §5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Encoding {
    /// The elements themselves.
    #[default]
    Raw,
    /// Zstandard: any number of frames, skippable ones included (RFC 8878 §3).
    Zstd,
}

impl Encoding {
    /// The encoding of this name in a manifest. Names are in lower case.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "raw" => Some(Encoding::Raw),
            "zstd" => Some(Encoding::Zstd),
            _ => None,
        }
    }

    /// The name in a manifest.
    pub const fn as_str(self) -> &'static str {
        match self {
            Encoding::Raw => "raw",
            Encoding::Zstd => "zstd",
        }
    }
}

/// One contiguous range of stored bytes, and how to decode and check it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Blob {
    /// The range of the stored bytes.
    pub span: Span,
    /// How they are encoded.
    pub encoding: Encoding,
    /// Bytes after decoding. `None` if the file does not record it, as with zstd before 1.2. A raw blob
    /// always has its own length here.
    pub decoded_len: Option<u64>,
    /// Checksum of the stored bytes, without padding. Spec: §6.
    pub digest: Option<Digest>,
    /// The table of the digests of its chunks, to verify parts of it. Only a raw blob has one. Spec:
    /// §6.1.
    pub chunks: Option<Box<Chunks>>,
}

impl Blob {
    /// A raw blob without a digest.
    pub const fn raw(span: Span) -> Self {
        Blob {
            span,
            encoding: Encoding::Raw,
            decoded_len: Some(span.byte_len()),
            digest: None,
            chunks: None,
        }
    }

    /// The blob with this digest.
    pub fn with_digest(mut self, digest: Option<Digest>) -> Self {
        self.digest = digest;
        self
    }

    /// The algorithm of its digest; `None` if there is nothing to check: no digest, or an unknown one.
    pub fn algorithm(&self) -> Option<DigestAlgorithm> {
        self.digest.as_ref()?.algorithm()
    }

    /// The absolute offset behind its last byte, or behind its table of chunk digests if that ends later.
    pub fn end(&self) -> u64 {
        let table = self.chunks.as_ref().map_or(0, |chunks| chunks.span.end());
        self.span.end().max(table)
    }
}
