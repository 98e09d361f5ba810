//! A file whose leaves are known: each is compared as it comes.

use std::sync::mpsc::{Receiver, SyncSender};

use zt::{Error, ErrorKind, Result, Source, codes};

use super::partial::Partial;
use super::proof::Proof;
use super::{DownloadOptions, Fetched, piece_of, transfer};
use crate::error::Fault;
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
    let take = |full: &Receiver<Vec<u8>>, spare: &SyncSender<Vec<u8>>| {
        let (mut at, mut again) = (kept, 0u64);
        for mut bytes in full {
            for (leaf, bytes) in (number(at)..).zip(bytes.chunks_mut(leaf_len)) {
                if leaves.check(leaf, bytes).is_err() {
                    fetch_again(url, remote, remote_options, leaf, leaf_len, bytes)?;
                    leaves.check(leaf, bytes)?;
                    again = again.strict_add(1);
                }
            }
            partial.append(&bytes)?;
            at = at.strict_add(bytes.len() as u64);
            let _ = spare.try_send(bytes);
        }
        Ok(again)
    };
    // Whole leaves.
    let piece = piece_of(options).max(leaf_len);
    let piece = piece.strict_sub(piece.checked_rem(leaf_len).unwrap_or_default());
    let again = transfer(remote, kept, options, piece, |_| Ok(()), take)?;
    Ok(Fetched { kept, sha256: None, proof: Proof::Leaves, again })
}

/// Fetches a leaf by another connection: this one keeps what came.
fn fetch_again(
    url: &str,
    remote: &Remote,
    options: &RemoteOptions,
    leaf: u64,
    leaf_len: usize,
    bytes: &mut [u8],
) -> Result<()> {
    let other = Remote::open(url, options)?;
    if other.version() != remote.version() || other.byte_len() != remote.byte_len() {
        return Err(Fault::Changed.into());
    }
    Ok(other.read_at(leaf.strict_mul(leaf_len as u64), bytes)?)
}
