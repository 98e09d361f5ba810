//! A component in parts.

use zt::{DType, DigestAlgorithm};

use super::{Generation, edits};
use crate::cbor::{Cbor, Edits, Fields, text, uint};
use crate::digest;

/// A component on its way.
#[derive(Debug, Clone)]
pub struct Part {
    /// Its role.
    pub role: String,
    /// What a reader has to see; `None` where the file does not say.
    pub dtype: Option<DType>,
    /// What is written, and what a reader has to see unless it repeats the dtype.
    pub logical_type: Option<String>,
    /// The decoded little-endian bytes that a reader has to see.
    pub decoded: Vec<u8>,
    /// The digest's text.
    pub digest: Option<String>,
    /// Whether the stored bytes are zstd.
    pub zstd: bool,
    pub(super) stored: Vec<u8>,
    pub(super) place: Place,
    pub(super) edits: Edits,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    /// The next multiple of 64.
    Next,
    /// So many bytes after the next multiple of 64.
    After(u64),
    /// The blob is there already.
    At(u64),
}

impl Part {
    /// A raw component at the next multiple of 64.
    #[must_use]
    pub fn new(role: &str, dtype: DType, bytes: &[u8]) -> Self {
        Part {
            role: role.to_owned(),
            dtype: Some(dtype),
            logical_type: None,
            decoded: bytes.to_vec(),
            digest: None,
            zstd: false,
            stored: bytes.to_vec(),
            place: Place::Next,
            edits: Edits::default(),
        }
    }

    /// The bytes mean this.
    #[must_use]
    pub fn logical(mut self, name: &str) -> Self {
        self.logical_type = Some(name.to_owned());
        self
    }

    /// The dtype is not in the file, as in layout 1.0 for roles that it does not define.
    #[must_use]
    pub fn untyped(mut self) -> Self {
        self.dtype = None;
        self
    }

    /// These zstd frames are stored instead of the decoded bytes.
    #[must_use]
    pub fn frames(mut self, frames: Vec<u8>) -> Self {
        self.stored = frames;
        self.zstd = true;
        self
    }

    /// These bytes are stored, and the decoded ones stay what they are.
    #[must_use]
    pub fn stored(mut self, stored: Vec<u8>) -> Self {
        self.stored = stored;
        self
    }

    /// The digest of the stored bytes, spelled as we write it.
    #[must_use]
    pub fn digested(self, algorithm: DigestAlgorithm) -> Self {
        let digest = digest(algorithm, &self.stored);
        self.digest_text(&digest)
    }

    /// This text for a digest.
    #[must_use]
    pub fn digest_text(mut self, digest: &str) -> Self {
        self.digest = Some(digest.to_owned());
        self
    }

    /// So many bytes after the next multiple of 64.
    #[must_use]
    pub fn after(mut self, distance: u64) -> Self {
        self.place = Place::After(distance);
        self
    }

    /// Nothing is stored: the blob is said to be there.
    #[must_use]
    pub fn at(mut self, offset: u64) -> Self {
        self.place = Place::At(offset);
        self
    }

    edits!();

    pub(super) fn offset(&self) -> u64 {
        match self.place {
            Place::At(offset) => offset,
            Place::Next | Place::After(_) => 0,
        }
    }

    pub(super) fn encode(&self, generation: Generation) -> Cbor {
        let mut fields = Fields::default();
        if generation != Generation::V1_0
            && let Some(dtype) = self.dtype
        {
            fields.set("dtype", text(dtype.as_str()));
        }
        if let Some(name) = &self.logical_type {
            fields.set("type", text(name));
        }
        fields.set("offset", uint(self.offset()));
        fields.set("length", uint(self.stored.len() as u64));
        if self.zstd {
            if generation == Generation::V1_2 {
                fields.set("uncompressed_length", uint(self.decoded.len() as u64));
            }
            fields.set("encoding", text("zstd"));
        }
        if let Some(digest) = &self.digest {
            fields.set("digest", text(digest));
        }
        self.edits.apply(&mut fields);
        fields.encode()
    }
}
