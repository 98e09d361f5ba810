//! Which stored bytes are those that were written.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use zt_container::{Blob, BlobReader, Encoding, Limits, Source, Span};

use crate::error::{Error, Result};
use crate::progress::Gauge;
use crate::tensor::believed_len;

/// Stored bytes are read, and decoded, in pieces of this size.
const PIECE: usize = 256 << 10;

/// What is known of a component's stored bytes.
#[derive(Debug, Clone)]
pub(super) enum Proof {
    /// They have the digest that is written of them, or there are none.
    Digest,
    /// They are there and decode, and there is no digest that can be checked.
    Nothing,
    /// They are not those that were written, or cannot be read.
    Refuted(Error),
}

/// What was found out of the bytes of a file, each range once, however many manifests name it.
pub(super) struct Ledger<'l> {
    source: &'l Arc<dyn Source>,
    limits: Limits,
    gauge: &'l Gauge<'l>,
    known: HashMap<Key, Proof>,
    /// Bytes that may still be read.
    budget: u64,
    /// Offsets at which a file within may still be supposed to begin.
    bases: u32,
    pub(super) is_cut: bool,
}

/// Offsets that are tried, of all manifests together. A file of nothing but magics has any number.
const MOST_BASES: u32 = 1 << 16;

/// Where, what is declared of the encoding, and the digest.
type Key = (Span, u8, Option<u64>, Option<String>);

fn key(blob: &Blob) -> Key {
    let digest = blob.digest.as_ref().map(ToString::to_string);
    (blob.span, blob.encoding as u8, blob.decoded_len, digest)
}

impl<'l> Ledger<'l> {
    pub(super) fn new(source: &'l Arc<dyn Source>, limits: Limits, gauge: &'l Gauge<'l>) -> Self {
        // Generations share most of their bytes. Manifests of nothing but ranges that overlap could
        // ask for any multiple of the file.
        let budget = source.byte_len().saturating_mul(8);
        Ledger {
            source,
            limits,
            gauge,
            known: HashMap::new(),
            budget: budget.saturating_add(16 << 20),
            bases: MOST_BASES,
            is_cut: false,
        }
    }

    /// Whether one more offset may be tried.
    pub(super) fn may_try(&mut self) -> bool {
        let left = self.bases.checked_sub(1);
        self.bases = left.unwrap_or(0);
        self.is_cut |= left.is_none();
        left.is_some()
    }

    /// Proofs of these blobs, whose offsets are those of the file, in their order. `None` where so
    /// much was read before that no more is.
    ///
    /// # Errors
    ///
    /// Interruption alone.
    pub(super) fn prove(&mut self, blobs: &[Blob]) -> Result<Vec<Option<Proof>>> {
        let mut missing = HashSet::new();
        let mut order = Vec::new();
        for blob in blobs {
            let key = key(blob);
            if self.known.contains_key(&key) || missing.contains(&key) {
                continue;
            }
            let Some(left) = self.budget.checked_sub(blob.span.byte_len()) else {
                self.is_cut = true;
                continue;
            };
            self.budget = left;
            missing.insert(key.clone());
            order.push((key, blob));
        }
        let proofs = crate::parallel::map(&order, |(_, blob)| self.look(blob))?;
        for ((key, _), proof) in order.into_iter().zip(proofs) {
            self.known.insert(key, proof);
        }
        let known = blobs.iter().map(|blob| self.known.get(&key(blob)));
        Ok(known.map(Option::<&Proof>::cloned).collect())
    }

    fn look(&self, blob: &Blob) -> Result<Proof> {
        let has_digest = blob.digest.as_ref().and_then(|digest| digest.algorithm());
        let stored = Blob {
            digest: blob.digest.clone(),
            ..Blob::raw(blob.span)
        };
        // Where there is a digest, it is all that there is to say: the bytes are what was written,
        // whether or not that decodes. Only what is to be written again needs a length, which is
        // counted where it is not said or not believed.
        let is_asked = has_digest.is_none() || believed_len(blob).is_none();
        let decoded = (is_asked && blob.encoding != Encoding::Raw).then_some(blob);
        for blob in [Some(&stored), decoded].into_iter().flatten() {
            if let Some(error) = self.read(blob)? {
                return Ok(Proof::Refuted(error));
            }
        }
        Ok(match has_digest {
            None if !blob.span.is_empty() => Proof::Nothing,
            _ => Proof::Digest,
        })
    }

    /// Reads a blob to its end; what is wrong with it.
    fn read(&self, blob: &Blob) -> Result<Option<Error>> {
        let mut reader = match BlobReader::new(self.source, blob, &self.limits) {
            Ok(reader) => reader,
            Err(error) => return Ok(Some(error.into())),
        };
        let len = usize::try_from(blob.span.byte_len()).unwrap_or(PIECE);
        let mut piece = vec![0; len.clamp(1, PIECE)];
        loop {
            match reader.read(&mut piece) {
                Ok(0) => return Ok(None),
                Ok(len) => self.gauge.report(len as u64)?,
                Err(error) => return Ok(Some(error.into())),
            }
        }
    }
}
