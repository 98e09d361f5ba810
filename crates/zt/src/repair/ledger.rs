//! The digests of stored bytes: which are right.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use zt_container::{Blob, BlobReader, Encoding, Hasher, Limits, Source, memory::in_memory};

use crate::cores::progress::Gauge;
use crate::error::{Error, Result};
use crate::file::overlap::Allowance;
use crate::file::tensor::believed_len;

/// The length of the pieces in which stored bytes are read and decoded.
const PIECE: usize = 256 << 10;

/// Bytes of a hole that are hashed before the next look for an interruption.
const ZEROS: u64 = 64 << 20;

/// The state of a component's stored bytes.
#[derive(Debug, Clone)]
pub(super) enum Proof {
    /// They match their digest, or there are no bytes.
    Digest,
    /// They exist and decode, but have no digest that can be checked.
    Nothing,
    /// They do not match their digest, or cannot be read.
    Refuted(Error),
}

/// The state of the file's stored bytes. Each range is read once, however many manifests name it.
pub(super) struct Ledger<'l> {
    source: &'l Arc<dyn Source>,
    limits: Limits,
    gauge: &'l Gauge<'l>,
    known: HashMap<Blob, Proof>,
    /// The budget of bytes to read, including a fixed cost for each blob.
    allowance: Allowance,
    /// The number of offsets that may still be tried as the beginning of a file within.
    bases: u32,
    pub(super) is_cut: bool,
}

/// The least cost of a blob: a read, its name and its state. Otherwise many digests of the same
/// byte could take unlimited memory.
const LOOK: u64 = 512;

/// The cost of a blob whose state is known: the time to find it.
const KNOWN: u64 = 64;

/// Whether a blob is decoded. With a digest it is not: the bytes are the written ones, even if they do
/// not decode. Only saving the component needs its decoded length, which is counted if it is missing
/// or not trusted.
fn is_decoded(blob: &Blob) -> bool {
    let is_asked = blob.algorithm().is_none() || believed_len(blob).is_none();
    is_asked && blob.encoding != Encoding::Raw
}

/// The limit of offsets that are tried, for all manifests together. A crafted file has any number
/// of magics.
const MOST_BASES: u32 = 1 << 16;

impl<'l> Ledger<'l> {
    pub(super) fn new(source: &'l Arc<dyn Source>, limits: Limits, gauge: &'l Gauge<'l>) -> Self {
        // Generations share most of their bytes. Crafted manifests of overlapping ranges could ask
        // for any multiple of the file.
        Ledger {
            source,
            limits,
            gauge,
            known: HashMap::new(),
            allowance: Allowance::of(source.byte_len(), &limits),
            bases: MOST_BASES,
            is_cut: false,
        }
    }

    /// Whether one more offset may be tried. False after any budget was exceeded.
    pub(super) fn may_try(&mut self) -> bool {
        let left = self.bases.checked_sub(1);
        self.bases = left.unwrap_or(0);
        self.is_cut |= left.is_none();
        !self.is_cut
    }

    fn may_spend(&mut self, cost: u64) -> bool {
        let is_spent = self.allowance.spend(cost).is_ok();
        self.is_cut |= !is_spent;
        is_spent
    }

    fn may_look(&mut self, blob: &Blob) -> bool {
        let stored = blob.span.byte_len();
        let spent = if is_decoded(blob) {
            self.allowance.spend_on(0, blob)
        } else {
            self.allowance.spend(stored)
        };
        self.is_cut |= spent.is_err();
        spent.is_ok() && self.may_spend(LOOK.saturating_sub(stored))
    }

    /// The error for a blob without a proof.
    pub(super) fn exceeded(&self) -> Error {
        self.allowance.exceeded()
    }

    /// The proofs of these blobs, in their order. Their offsets are offsets in the file. `None` for
    /// blobs beyond the budget.
    /// Fails only if it is interrupted.
    pub(super) fn prove(&mut self, blobs: &[Blob]) -> Result<Vec<Option<Proof>>> {
        let mut missing = HashSet::new();
        let mut order = Vec::new();
        for blob in blobs {
            if self.known.contains_key(blob) || missing.contains(blob) {
                // A known proof is used even if the budget is spent.
                self.may_spend(KNOWN);
            } else if self.may_look(blob) {
                missing.insert(blob);
                order.push(blob);
            }
        }
        let proofs = crate::cores::parallel::map(&order, |blob| self.look(blob))?;
        for (blob, proof) in order.into_iter().zip(proofs) {
            self.known.insert(blob.clone(), proof);
        }
        let known = blobs.iter().map(|blob| self.known.get(blob).cloned());
        Ok(known.collect())
    }

    /// How many components have the right digest if a file within begins at `base`. Each blob comes
    /// with the number of its components. `None` if the budget does not suffice. The result is not
    /// cached, because few places are asked for twice.
    /// Fails only if it is interrupted.
    pub(super) fn count_right(
        &mut self,
        blobs: impl Iterator<Item = (Blob, u64)>,
    ) -> Result<Option<u64>> {
        let mut order = Vec::new();
        for (blob, count) in blobs {
            // A right digest is enough: nothing is decoded.
            let blob = Blob::raw(blob.span).with_digest(blob.digest);
            if !self.may_look(&blob) {
                return Ok(None);
            }
            order.push((blob, count));
        }
        let proofs = crate::cores::parallel::map(&order, |(blob, _)| self.look(blob))?;
        let right = order.iter().zip(&proofs);
        let right = right.filter(|(_, proof)| matches!(proof, Proof::Digest));
        Ok(Some(right.map(|((_, count), _)| count).sum()))
    }

    fn look(&self, blob: &Blob) -> Result<Proof> {
        if let Some(error) = self.read_stored(blob)? {
            return Ok(Proof::Refuted(error));
        }
        if is_decoded(blob)
            && let Some(error) = self.read(blob)?
        {
            return Ok(Proof::Refuted(error));
        }
        Ok(match blob.algorithm().is_some() {
            false if !blob.span.is_empty() => Proof::Nothing,
            _ => Proof::Digest,
        })
    }

    /// Reads the stored bytes of a blob, and compares their digest. Holes of a sparse file are not read:
    /// they cannot fail, and are zeros.
    fn read_stored(&self, blob: &Blob) -> Result<Option<Error>> {
        let (mut at, end) = (blob.span.offset(), blob.span.end());
        let mut hasher = match blob.algorithm().map(Hasher::new).transpose() {
            Ok(hasher) => hasher,
            Err(error) => return Ok(Some(error.into())),
        };
        let mut piece = vec![0; in_memory(blob.span.byte_len().min(PIECE as u64))];
        while at < end {
            let data = self.source.data_from(at).clamp(at, end);
            while let Some(hasher) = hasher.as_mut().filter(|_| at < data) {
                let len = data.strict_sub(at).min(ZEROS);
                hasher.update_zeros(len);
                self.gauge.report(0)?;
                at = at.strict_add(len);
            }
            let len = in_memory(end.strict_sub(data).min(PIECE as u64));
            let bytes = piece.get_mut(..len).unwrap_or_default();
            if let Err(error) = self.source.read_at(data, bytes) {
                return Ok(Some(error.into()));
            }
            if let Some(hasher) = &mut hasher {
                hasher.update(bytes);
            }
            self.gauge.report(len as u64)?;
            at = data.strict_add(len as u64);
        }
        let found = hasher.map(Hasher::finish);
        Ok(match (blob.digest.clone(), found) {
            (Some(expected), Some(found)) if expected != found => {
                Some(zt_container::Error::DigestMismatch { expected, found }.into())
            }
            _ => None,
        })
    }

    /// Reads a blob to its end, and returns its error.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};
    use zt_container::{Digest, Memory, Span};

    #[derive(Default)]
    struct Counted(AtomicU64);

    impl Source for Counted {
        fn byte_len(&self) -> u64 {
            4096
        }
        fn read_at(&self, offset: u64, buf: &mut [u8]) -> std::io::Result<()> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Memory::new(vec![0; 4096]).read_at(offset, buf)
        }
    }

    /// As many different digests of one byte, tried from as many places.
    #[test]
    fn digests_of_the_same_byte_cost_something_each() {
        let reads = Arc::new(Counted::default());
        let source: Arc<dyn Source> = Arc::new(Arc::clone(&reads));
        let gauge = Gauge::new(None);
        let mut ledger = Ledger::new(&source, Limits::default(), &gauge);
        let blobs = |base: u64, count: u32| -> Vec<Blob> {
            let blob = Blob::raw(Span::exact(base, 1));
            let named = (0..count).map(|sum| Some(Digest::Crc32c(sum)));
            named.map(|digest| blob.clone().with_digest(digest)).collect()
        };
        let most = ledger.allowance.left() / LOOK;
        let few = blobs(8, 2000);
        ledger.prove(&few).unwrap();
        assert_eq!(ledger.known.len(), 2000);
        let mut tried = 0;
        while ledger.may_try() {
            tried += 1;
            let once = blobs(8 + tried, 2000).into_iter().map(|blob| (blob, 1));
            ledger.count_right(once).unwrap();
        }
        assert!(ledger.is_cut && tried <= most / 2000, "{tried} places");
        assert_eq!(ledger.known.len(), 2000, "of places nothing is kept");

        let mut ledger = Ledger::new(&source, Limits::default(), &gauge);
        let many = blobs(9, u32::try_from(most).unwrap() * 2);
        let proofs = ledger.prove(&many).unwrap();
        let found = proofs.iter().flatten().count() as u64;
        assert!(ledger.is_cut && found == most);
        assert_eq!(ledger.known.len() as u64, most);
        assert!(reads.0.load(Ordering::Relaxed) <= 2 * most + 2000);
    }
}
