//! Stored bytes and how to decode them.

use crate::chunks::Chunks;
use crate::digest::Digest;
use crate::span::Span;

/// How the bytes of a blob are stored.
///
/// Both names always exist; the code behind [`Encoding::Zstd`] needs the feature `zstd`. Without
/// it such a blob is still found and listed, and decoding it is `Unsupported`. Spec: §5.
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
    /// The encoding that a manifest spells so, in lower case as every writer does.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "raw" => Some(Encoding::Raw),
            "zstd" => Some(Encoding::Zstd),
            _ => None,
        }
    }

    /// The manifest's spelling.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Encoding::Raw => "raw",
            Encoding::Zstd => "zstd",
        }
    }
}

#[cfg(test)]
#[test]
fn an_encoding_has_one_name() {
    for (name, encoding) in [("raw", Encoding::Raw), ("zstd", Encoding::Zstd)] {
        assert_eq!(Encoding::from_name(name), Some(encoding));
        assert_eq!(encoding.as_str(), name);
    }
    for name in ["", "Raw", "zstd ", "lz4"] {
        assert_eq!(Encoding::from_name(name), None, "{name}");
    }
}

/// One contiguous run of stored bytes: all that reading it takes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Blob {
    /// Where the stored bytes are.
    pub span: Span,
    /// How they are stored.
    pub encoding: Encoding,
    /// Bytes after decoding. `None` where the file does not say, as with zstd before 1.2;
    /// raw blobs always have their own length here.
    pub decoded_len: Option<u64>,
    /// Checksum of the stored bytes, padding not included. Spec: §6.
    pub digest: Option<Digest>,
    /// Where the digests of its chunks are, by which parts of it are verified. Only a raw blob has
    /// them. Spec: §6.1.
    pub chunks: Option<Box<Chunks>>,
}

impl Blob {
    /// A raw blob without a digest.
    #[must_use]
    pub const fn raw(span: Span) -> Self {
        Blob {
            span,
            encoding: Encoding::Raw,
            decoded_len: Some(span.byte_len()),
            digest: None,
            chunks: None,
        }
    }

    /// The absolute offset behind its last byte, and behind that of its table of chunk digests.
    #[must_use]
    pub fn end(&self) -> u64 {
        let table = self.chunks.as_ref().map_or(0, |chunks| chunks.span.end());
        self.span.end().max(table)
    }
}
