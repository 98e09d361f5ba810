//! Whole files of stores, under their final name only when they are whole and right.
//!
//! | file | contents |
//! | --- | --- |
//! | `mod` | one file: open, go on, compare, publish |
//! | `partial` | the part that is here, and what it is of |
//! | `proof` | the SHA-256 that the sender gives, and where it stands |
//! | `list`, `hub` | the files of a folder, a set or a repository |
//! | `cache` | the folders of the Hub's cache |

mod cache;
#[cfg(feature = "http")]
mod hub;
mod list;
mod partial;
mod proof;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use zt::{Error, ErrorKind, Progress, Result, Source, Span, codes};

use crate::options::RemoteOptions;
use crate::remote::Remote;
use crate::runtime::PAUSE;
use partial::Partial;

pub use cache::HubCache;
pub use list::{List, Listed, list};
pub use proof::Proof;

/// Bytes that are written at a time.
const PIECE: usize = 4 << 20;

/// Buffers between the thread that reads and writes, and the one that hashes.
const AHEAD: usize = 2;

/// Options of a [`download`].
#[must_use]
#[derive(Debug, Clone)]
pub struct DownloadOptions<'a> {
    remote: RemoteOptions,
    expected: Option<([u8; 32], Proof)>,
    replaces: bool,
    rate: Option<u64>,
    progress: Option<Progress<'a>>,
}

impl<'a> DownloadOptions<'a> {
    /// The defaults, with these options of connections.
    pub fn new(remote: &RemoteOptions) -> Self {
        let remote = remote.clone();
        DownloadOptions { remote, expected: None, replaces: false, rate: None, progress: None }
    }

    /// The SHA-256 that the file must have. It precedes those that the sender gives.
    pub fn sha256(mut self, sha256: impl Into<Option<[u8; 32]>>) -> Self {
        self.expected = sha256.into().map(|sha256| (sha256, Proof::Given));
        self
    }

    /// The file must have the SHA-256 of the list, if the list has one.
    pub fn listed(mut self, file: &Listed) -> Self {
        self.expected = file.sha256.map(|sha256| (sha256, file.proof));
        self
    }

    /// Sets whether an existing file is replaced. It is an error by default.
    pub fn replace(mut self, replaces: bool) -> Self {
        self.replaces = replaces;
        self
    }

    /// Sets the most bytes a second, averaged over a few seconds. Default: no limit.
    pub fn rate(mut self, bytes: impl Into<Option<u64>>) -> Self {
        self.rate = bytes.into();
        self
    }

    /// Reports the bytes that came.
    pub fn progress(mut self, progress: impl Into<Option<Progress<'a>>>) -> Self {
        self.progress = progress.into();
        self
    }
}

/// A file that was downloaded.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Downloaded {
    /// Where it is.
    pub path: PathBuf,
    /// Its length.
    pub byte_len: u64,
    /// Bytes that an earlier call had fetched.
    pub kept: u64,
    /// Its SHA-256.
    pub sha256: [u8; 32],
    /// What that was compared with.
    pub proof: Proof,
}

/// Fetches the file at `url` to `path` by parallel ranges. The bytes are written to a neighbour, which is given the
/// name `path` when all of them are there and have the expected SHA-256 ([`Proof`]). A call that was interrupted
/// goes on where it was, if the file has not changed meanwhile.
///
/// # Errors
///
/// As [`crate::open`]; code `overwrite` if `path` exists, `changed` if the file changes meanwhile, `digest-mismatch` for
/// another SHA-256, `unknown-kind` for a page of HTML in place of a file, `locked` if another program fetches the
/// same file; [`ErrorKind::Io`]; an interruption. No error leaves anything under the name `path`.
pub fn download(url: &str, path: &Path, options: &DownloadOptions<'_>) -> Result<Downloaded> {
    let mut remote_options = options.remote.clone();
    if let Some(rate) = options.rate {
        // What is fetched ahead would exceed the rate.
        let part = (rate / 8).clamp(64 << 10, 1 << 20);
        remote_options = remote_options.part(part).memory(part.saturating_mul(2));
    }
    let remote = Remote::open(url, &remote_options)?;
    expect_no_page(&remote)?;
    if !options.replaces && fs::symlink_metadata(path).is_ok() {
        let why = "exists already";
        return Err(Error::new(ErrorKind::Misuse, codes::OVERWRITE, why).with_path(path));
    }
    let (expected, proof) = match options.expected {
        Some((sha256, proof)) => (Some(sha256), proof),
        None => proof::find(url, &remote, &options.remote)?,
    };
    let mut partial = Partial::open(path, &remote)?;
    let (kept, hasher) = partial.kept(options.progress)?;
    let sha256 = fetch(&remote, &mut partial, kept, hasher, options)?;
    if let Some(expected) = expected.filter(|expected| *expected != sha256) {
        partial.remove()?;
        let [found, expected] = [sha256, expected].map(zt::Digest::Sha256);
        let why = format!(
            "is {found}, and {expected} ({proof}) is expected: it is damaged, or another file"
        );
        let error = Error::new(ErrorKind::Malformed, codes::DIGEST_MISMATCH, why);
        return Err(error.with_path(remote.url().as_ref()));
    }
    partial.publish(path, options.replaces)?;
    let byte_len = remote.byte_len();
    Ok(Downloaded { path: path.into(), byte_len, kept, sha256, proof })
}

/// Refuses a page that a server sends in place of a file: of an error, or of a login.
fn expect_no_page(remote: &Remote) -> Result<()> {
    let name = remote.name().to_ascii_lowercase();
    if name.ends_with(".html") || name.ends_with(".htm") {
        return Ok(());
    }
    let mut first = [0; 64];
    let len = usize::try_from(remote.byte_len()).unwrap_or(usize::MAX).min(first.len());
    let first = first.get_mut(..len).unwrap_or_default();
    remote.read_at(0, first)?;
    let text = String::from_utf8_lossy(first).trim_start().to_ascii_lowercase();
    if text.starts_with("<!doctype html") || text.starts_with("<html") {
        let why = "the server sent a page of HTML: look at the address in a browser";
        let error = Error::new(ErrorKind::Malformed, codes::UNKNOWN_KIND, why);
        return Err(error.with_path(remote.url().as_ref()));
    }
    Ok(())
}

/// Fetches the bytes from `start` on into `partial`. Returns the SHA-256 of the whole file.
fn fetch(
    remote: &Remote,
    partial: &mut Partial,
    start: u64,
    hasher: Sha256,
    options: &DownloadOptions<'_>,
) -> Result<[u8; 32]> {
    let byte_len = remote.byte_len();
    if let Some(rest) = Span::new(start, byte_len.strict_sub(start)) {
        remote.will_read_all(&[rest]);
    }
    thread::scope(|scope| {
        let (to_hash, full) = sync_channel::<Vec<u8>>(AHEAD);
        let (give_back, spare) = sync_channel::<Vec<u8>>(AHEAD.strict_add(2));
        let hashed = scope.spawn(move || hash(hasher, &full, &give_back));
        let fetched = copy(remote, partial, start, &to_hash, &spare, options);
        drop(to_hash);
        let sha256 = hashed.join().map_err(|_| io::Error::other("a thread ended"))?;
        fetched.map(|()| sha256)
    })
}

fn hash(mut hasher: Sha256, full: &Receiver<Vec<u8>>, spare: &SyncSender<Vec<u8>>) -> [u8; 32] {
    for bytes in full {
        hasher.update(&bytes);
        // Nobody takes buffers at the end.
        let _ = spare.try_send(bytes);
    }
    hasher.finalize().into()
}

fn copy(
    remote: &Remote,
    partial: &mut Partial,
    start: u64,
    to_hash: &SyncSender<Vec<u8>>,
    spare: &Receiver<Vec<u8>>,
    options: &DownloadOptions<'_>,
) -> Result<()> {
    let byte_len = remote.byte_len();
    let (begun, mut at) = (Instant::now(), start);
    let most = options
        .rate
        .map_or(PIECE, |rate| usize::try_from(rate / 8).unwrap_or(PIECE).clamp(16 << 10, PIECE));
    while at < byte_len {
        let len = usize::try_from(byte_len.strict_sub(at)).unwrap_or(most).min(most);
        let mut bytes = spare.try_recv().unwrap_or_default();
        bytes.resize(len, 0);
        let read = remote.read_at(at, &mut bytes).map_err(Error::from);
        if let Err(error) = read {
            // Bytes of the old version are of no use.
            if error.code() == codes::CHANGED {
                partial.remove()?;
            }
            return Err(error.with_path(remote.url().as_ref()));
        }
        partial.append(&bytes)?;
        at = at.strict_add(len as u64);
        // The thread that hashes ends only after this one.
        let _ = to_hash.send(bytes);
        let report = |bytes| options.progress.map_or(Ok(()), |progress| progress.report(bytes));
        report(len as u64)?;
        if let Some(rate) = options.rate {
            let due = Duration::from_secs_f64(at.strict_sub(start) as f64 / rate.max(1) as f64);
            while let Some(left) = due.checked_sub(begun.elapsed()).filter(|it| !it.is_zero()) {
                thread::sleep(left.min(PAUSE));
                report(0)?;
            }
        }
    }
    Ok(())
}
