//! Whole files of stores, under their final name only when they are whole and right.
//!
//! | file | contents |
//! | --- | --- |
//! | `mod` | one file: open, go on, compare, publish |
//! | `partial` | the part that is here, and what it is of |
//! | `leaves` | each leaf compared as it comes |
//! | `proof` | the SHA-256 that the sender gives, and where it stands |
//! | `list`, `hub` | the files of a folder, a set or a repository |
//! | `cache` | the folders of the Hub's cache |

mod cache;
#[cfg(feature = "http")]
mod hub;
mod leaves;
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

use crate::object::Bytes;
use crate::options::RemoteOptions;
use crate::remote::Remote;
use crate::runtime::PAUSE;
use partial::Partial;

pub use cache::HubCache;
pub use leaves::Leaves;
pub use list::{List, Listed, list};
pub use proof::Proof;

/// Bytes that are written at a time, at most.
///
/// Pays: not measured.
const PIECE: u64 = 4 << 20;

/// Pieces between the two threads. With the two that these have, they are fewer bytes than the parts that stay after
/// they were read, so the memory of those is free when it is used again.
const AHEAD: usize = 1;

/// Options of a [`download`].
#[must_use]
#[derive(Clone)]
pub struct DownloadOptions<'a> {
    remote: RemoteOptions,
    expected: Option<([u8; 32], Proof)>,
    leaves: Option<&'a dyn Leaves>,
    replaces: bool,
    rate: Option<u64>,
    progress: Option<Progress<'a>>,
}

impl<'a> DownloadOptions<'a> {
    /// The defaults, with these options of connections.
    pub fn new(remote: &RemoteOptions) -> Self {
        let remote = remote.clone();
        DownloadOptions {
            remote,
            expected: None,
            leaves: None,
            replaces: false,
            rate: None,
            progress: None,
        }
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

    /// The leaves that the file must have. They are compared as they come, in the place of a SHA-256: a wrong one is
    /// fetched again once, by a connection of its own.
    pub fn leaves(mut self, leaves: &'a dyn Leaves) -> Self {
        self.leaves = Some(leaves);
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
    /// Its SHA-256; `None` if its leaves were compared.
    pub sha256: Option<[u8; 32]>,
    /// What was compared.
    pub proof: Proof,
    /// Leaves that came wrong, and right when they were fetched again.
    pub again: u64,
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
    let mut partial = Partial::open(path, &remote, options.remote.part)?;
    let fetched = match options.leaves {
        Some(leaves) => leaves::fetch(url, &remote, &mut partial, leaves, &remote_options, options),
        None => summed(url, &remote, &mut partial, options),
    };
    // Bytes of the old version are of no use.
    let is_useless =
        |error: &Error| [codes::CHANGED, codes::DIGEST_MISMATCH].contains(&error.code());
    let fetched = match fetched {
        Err(error) if is_useless(&error) => {
            partial.remove()?;
            Err(error)
        }
        fetched => fetched,
    };
    let Fetched { kept, sha256, proof, again } =
        fetched.map_err(|error| error.with_path(remote.url().as_ref()))?;
    partial.publish(path, options.replaces)?;
    let byte_len = remote.byte_len();
    Ok(Downloaded { path: path.into(), byte_len, kept, sha256, proof, again })
}

/// All bytes are in the partial file, and right.
struct Fetched {
    kept: u64,
    sha256: Option<[u8; 32]>,
    proof: Proof,
    again: u64,
}

/// Fetches what is missing, and compares the SHA-256 of the whole.
fn summed(
    url: &str,
    remote: &Remote,
    partial: &mut Partial,
    options: &DownloadOptions<'_>,
) -> Result<Fetched> {
    let mut hasher = Sha256::new();
    let mut kept = partial.kept(options.progress, |_, bytes| {
        hasher.update(bytes);
        Ok(true)
    })?;
    // The bytes come while the sum is looked for, which takes some requests one after the other.
    announce(remote, kept);
    let (expected, proof) = match options.expected {
        Some((sha256, proof)) => (Some(sha256), proof),
        None => proof::find(url, remote, &options.remote)?,
    };
    loop {
        let append = |bytes: &[u8]| partial.append(bytes);
        let hash = move |pieces: Receiver<Bytes>| {
            for bytes in pieces {
                hasher.update(&bytes);
            }
            Ok(<[u8; 32]>::from(hasher.finalize()))
        };
        let sha256 = transfer(remote, kept, options, append, hash)?;
        match expected.filter(|expected| *expected != sha256) {
            None => return Ok(Fetched { kept, sha256: Some(sha256), proof, again: 0 }),
            // An earlier call may have fetched wrong bytes.
            Some(_) if kept > 0 => {
                kept = 0;
                hasher = Sha256::new();
                partial.clear()?;
            }
            Some(expected) => {
                let [found, expected] = [sha256, expected].map(zt::Digest::Sha256);
                let why = format!(
                    "is {found}, and {expected} ({proof}) is expected: it is damaged, or another file"
                );
                return Err(Error::new(ErrorKind::Malformed, codes::DIGEST_MISMATCH, why));
            }
        }
    }
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

/// Begins to fetch the bytes from `start` on.
fn announce(remote: &Remote, start: u64) {
    let rest = remote.byte_len().saturating_sub(start);
    remote.will_read_all(&[Span::new(start, rest).unwrap_or_default()]);
}

/// Fetches the bytes from `start` on. `first` gets each piece on this thread, and `second` gets all of them on another
/// one.
fn transfer<T: Send>(
    remote: &Remote,
    start: u64,
    options: &DownloadOptions<'_>,
    first: impl FnMut(&[u8]) -> Result<()>,
    second: impl FnOnce(Receiver<Bytes>) -> Result<T> + Send,
) -> Result<T> {
    announce(remote, start);
    thread::scope(|scope| {
        let (give, pieces) = sync_channel::<Bytes>(AHEAD);
        let taken = scope.spawn(move || second(pieces));
        let fetched = copy(remote, start, first, &give, options);
        drop(give);
        let taken = taken.join().map_err(|_| io::Error::other("a thread ended"))?;
        // If the other thread failed, this one stopped without an error.
        fetched.and(taken)
    })
}

/// Bytes of a piece, at most: under a limit of speed, an eighth of a second's.
fn piece_of(options: &DownloadOptions<'_>) -> u64 {
    let piece = options.remote.part.min(PIECE);
    options.rate.map_or(piece, |rate| (rate / 8).max(16 << 10).min(piece))
}

fn copy(
    remote: &Remote,
    start: u64,
    mut first: impl FnMut(&[u8]) -> Result<()>,
    give: &SyncSender<Bytes>,
    options: &DownloadOptions<'_>,
) -> Result<()> {
    let byte_len = remote.byte_len();
    let (begun, mut at, most) = (Instant::now(), start, piece_of(options));
    while at < byte_len {
        let bytes = remote.piece(at, most)?;
        first(&bytes)?;
        let len = bytes.len() as u64;
        at = at.strict_add(len);
        if give.send(bytes).is_err() {
            return Ok(());
        }
        let report = |bytes| options.progress.map_or(Ok(()), |progress| progress.report(bytes));
        report(len)?;
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
