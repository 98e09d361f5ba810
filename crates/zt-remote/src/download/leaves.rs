//! A file whose leaves are known: each is compared as it comes.

use std::sync::mpsc::Receiver;

use zt::{Error, ErrorKind, Result, Source, Span, codes};

use super::partial::Partial;
use super::proof::Proof;
use super::{DownloadOptions, Fetched, transfer};
use crate::error::Fault;
use crate::object::Bytes;
use crate::options::RemoteOptions;
use crate::remote::Remote;

/// The leaves of a file, as a seal has them.
pub trait Leaves: Sync {
    /// The bytes of the file.
    fn byte_len(&self) -> u64;

    /// The bytes of each leaf but the last. An empty file has one leaf, which is empty.
    fn leaf_len(&self) -> usize;

    /// Compares the bytes with the leaf of this number.
    ///
    /// # Errors
    ///
    /// One that names the leaf, if they are other bytes.
    fn check(&self, leaf: u64, bytes: &[u8]) -> Result<()>;
}

/// Fetches what is missing, and compares each leaf before it is written.
pub(super) fn fetch(
    url: &str,
    remote: &Remote,
    partial: &mut Partial,
    leaves: &dyn Leaves,
    remote_options: &RemoteOptions,
    options: &DownloadOptions<'_>,
) -> Result<Fetched> {
    let (found, expected) = (remote.byte_len(), leaves.byte_len());
    if found != expected {
        let why = format!("has {found} bytes, and the seal has {expected}");
        return Err(Error::new(ErrorKind::DigestMismatch, codes::SEAL_MISMATCH, why));
    }
    let leaf_len = leaves.leaf_len().max(1);
    let number = |at: u64| at.checked_div(leaf_len as u64).unwrap_or_default();
    if expected == 0 {
        leaves.check(0, &[])?;
    }
    let kept = partial.kept(options.progress, |at, bytes| {
        let is_aligned = bytes.len().is_multiple_of(leaf_len);
        let mut all = (number(at)..).zip(bytes.chunks(leaf_len));
        Ok(is_aligned && all.all(|(leaf, bytes)| leaves.check(leaf, bytes).is_ok()))
    })?;
    let take = |pieces: Receiver<Bytes>| {
        let mut taker =
            Taker { url, remote, options: remote_options, leaves, partial, at: kept, again: 0 };
        // The beginning of a leaf whose end has not come.
        let mut begun: Vec<u8> = Vec::new();
        for piece in pieces {
            let mut rest = &piece[..];
            while !rest.is_empty() {
                let left = expected.saturating_sub(taker.at);
                let len = usize::try_from(left).unwrap_or(leaf_len).min(leaf_len);
                let room = len.saturating_sub(begun.len()).max(1);
                let (now, later) = rest.split_at(room.min(rest.len()));
                rest = later;
                if now.len() == len {
                    taker.leaf(now)?;
                    continue;
                }
                begun.extend_from_slice(now);
                if begun.len() == len {
                    taker.leaf(&begun)?;
                    begun.clear();
                }
            }
        }
        Ok(taker.again)
    };
    let again = transfer(remote, kept, options, |_| Ok(()), take)?;
    Ok(Fetched { kept, sha256: None, proof: Proof::Leaves, again })
}

/// What takes the leaves in their order.
struct Taker<'t> {
    url: &'t str,
    remote: &'t Remote,
    options: &'t RemoteOptions,
    leaves: &'t dyn Leaves,
    partial: &'t mut Partial,
    /// The offset of the next leaf.
    at: u64,
    again: u64,
}

impl Taker<'_> {
    /// Writes a leaf, if it is right, or else the one that another connection gives.
    fn leaf(&mut self, bytes: &[u8]) -> Result<()> {
        let leaf = self.at.checked_div(self.leaves.leaf_len() as u64).unwrap_or_default();
        if self.leaves.check(leaf, bytes).is_ok() {
            self.partial.append(bytes)?;
        } else {
            let right = self.fetch_again(bytes.len())?;
            self.leaves.check(leaf, &right)?;
            self.partial.append(&right)?;
            self.again = self.again.strict_add(1);
        }
        self.at = self.at.strict_add(bytes.len() as u64);
        Ok(())
    }

    /// The next leaf by another connection: this one keeps what came.
    fn fetch_again(&self, len: usize) -> Result<Vec<u8>> {
        let other = Remote::open(self.url, self.options)?;
        if other.version() != self.remote.version() || other.byte_len() != self.remote.byte_len() {
            return Err(Fault::Changed.into());
        }
        let mut bytes = Vec::new();
        let span = Span::new(self.at, len as u64).unwrap_or_default();
        zt::container::memory::fetch(&mut bytes, &other, span)?;
        Ok(bytes)
    }
}
