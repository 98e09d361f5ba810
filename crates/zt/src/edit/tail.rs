//! The end of a file that grows while its readers see the old file.
//!
//! ```text
//! before   | blobs | manifest, footer |
//! begin    | blobs | manifest, footer | room                   | note, the same manifest, footer |
//! write    | blobs | manifest, footer | blobs, manifest, footer | note, the same manifest, footer |
//! commit   | blobs | manifest, footer | blobs, manifest, footer |                    a truncation
//! clear    | blobs | zeros            | blobs, manifest, footer |
//! ```
//!
//! Readers find the manifest from the end of the file, and its offsets count from the beginning. So
//! a copy of the old manifest behind the room means the same. Readers see the old file until the
//! truncation, and the new file after it.
//!
//! To undo an edit, the file is truncated to its old length. If the process was killed, the next
//! edit does that: it finds the old length in the note.

use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;

use super::leftover;
use super::storage::Storage;
use crate::disk::publish::BUFFER;
use crate::error::{Error, Result};
use crate::write::writer::Tail;
use zt_container::Exact;
use zt_container::memory::zeroed;

/// Writes into the room between the old end of a file and the copy of its trailer, and moves the
/// copy if the room is too small. If it is dropped before [`Tail::commit`], it undoes everything.
pub(crate) struct GrowingTail {
    storage: Arc<dyn Storage>,
    /// The note, and the unchanged manifest and footer, which readers look for at the end.
    copy: Vec<u8>,
    /// The manifest and footer without the note.
    trailer_len: usize,
    /// The length of the file before the edit.
    old_len: u64,
    /// The offset of the next byte that is not gathered.
    position: u64,
    /// Small writes, gathered.
    gathered: Vec<u8>,
    /// The offset of the copy; `None` before the first.
    copy_at: Option<u64>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Growing,
    /// A call has failed, so no other is made.
    Failed,
    /// Readers see the new file.
    Committed,
}

/// The first room, and the least by which it grows.
const LEAST: u64 = 1 << 20;

/// The page size of systems, by which they write and extend files.
const PAGE: u64 = 4096;

impl GrowingTail {
    /// `trailer` is the end of the storage. Nothing is changed yet.
    pub(super) fn new(storage: Arc<dyn Storage>, old_len: u64, trailer: &[u8]) -> Result<Self> {
        let note = leftover::note(old_len);
        let mut copy = zeroed((note.len() as u64).plus(trailer.len() as u64))?;
        let (first, behind) = copy.split_at_mut(note.len());
        first.copy_from_slice(&note);
        behind.copy_from_slice(trailer);
        Ok(GrowingTail {
            storage,
            copy,
            trailer_len: trailer.len(),
            old_len,
            position: old_len,
            gathered: Vec::new(),
            copy_at: None,
            state: State::Growing,
        })
    }

    /// Runs `call`, unless a call has failed before.
    fn attempt<T>(&mut self, call: impl FnOnce(&mut Self) -> io::Result<T>) -> io::Result<T> {
        if self.state == State::Failed {
            return Err(io::Error::other("an earlier step of the edit has failed"));
        }
        let is_growing = self.state == State::Growing;
        call(self).inspect_err(|_| {
            if is_growing && self.state == State::Growing {
                self.state = State::Failed;
            }
        })
    }

    fn make_room_for(&mut self, byte_len: u64) -> io::Result<()> {
        let end = add(self.position, byte_len)?;
        if self.copy_at.is_some_and(|copy_at| end <= copy_at) {
            return Ok(());
        }
        self.move_copy_behind(end).map_err(|error| {
            let copy_end = end.plus(self.copy.len() as u64);
            NoRoom::explain(error, copy_end.minus(self.old_len))
        })
    }

    fn move_copy_behind(&mut self, end: u64) -> io::Result<()> {
        // The room doubles, so that the copy moves seldom. It grows by as little as possible on a
        // disk that is nearly full.
        let grown = self.position.minus(self.old_len).max(LEAST);
        // A write of up to a page that begins on a page is complete or absent after a crash.
        let roomy = add(end, grown)?.checked_next_multiple_of(PAGE);
        let roomy = roomy.ok_or(io::ErrorKind::FileTooLarge)?;
        let copy_at = match self.reserve(roomy) {
            Ok(()) => roomy,
            Err(_) => self.reserve(end).map(|()| end)?,
        };
        // The copy is one call, because the file is as long as its written part. It is durable
        // before any byte of the last copy changes.
        self.storage.write_at(copy_at, &self.copy)?;
        self.storage.sync()?;
        self.copy_at = Some(copy_at);
        Ok(())
    }

    fn reserve(&self, copy_at: u64) -> io::Result<()> {
        let end = add(copy_at, self.copy.len() as u64)?;
        self.storage.reserve(self.old_len, end - self.old_len)
    }

    fn write_all_at_end(&mut self, bytes: &[u8]) -> io::Result<()> {
        let len = bytes.len() as u64;
        self.make_room_for(len)?;
        self.storage.write_at(self.position, bytes)?;
        self.position = add(self.position, len)?;
        Ok(())
    }

    fn write_gathered(&mut self) -> io::Result<()> {
        let mut gathered = std::mem::take(&mut self.gathered);
        if !gathered.is_empty() {
            self.write_all_at_end(&gathered)?;
            gathered.clear();
        }
        self.gathered = gathered;
        Ok(())
    }
}

impl Tail for GrowingTail {
    /// Makes room for this many bytes after the written and gathered ones.
    fn make_room(&mut self, byte_len: u64) -> io::Result<()> {
        let len = add(self.gathered.len() as u64, byte_len)?;
        self.attempt(|tail| tail.make_room_for(len))
    }

    /// Commits: makes the written bytes durable, cuts off the copy, and clears the old trailer.
    ///
    /// After an error before the cut, the old file is back. After an error behind it, the new file
    /// is there, and it may not be durable.
    fn commit(&mut self) -> io::Result<()> {
        self.attempt(|tail| {
            // Memory is allocated before anything changes, while an error can still be returned.
            let zeros = zeroed(tail.trailer_len as u64).map_err(Error::from)?;
            tail.write_gathered()?;
            tail.storage.sync()?;
            tail.storage.set_len(tail.position)?;
            tail.state = State::Committed;
            tail.storage.sync()?;
            // Bytes between blobs are zero. Spec: §4.
            let trailer_at = tail.old_len.minus(zeros.len() as u64);
            tail.storage.write_at(trailer_at, &zeros)?;
            tail.storage.sync()
        })
    }
}

impl Write for GrowingTail {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.attempt(|tail| {
            if tail.gathered.len().plus(bytes.len()) <= BUFFER {
                tail.gathered.extend_from_slice(bytes);
                return Ok(());
            }
            tail.write_gathered()?;
            if bytes.len() < BUFFER {
                tail.gathered.extend_from_slice(bytes);
                return Ok(());
            }
            tail.write_all_at_end(bytes)
        })?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.attempt(Self::write_gathered)
    }
}

impl Drop for GrowingTail {
    fn drop(&mut self) {
        if self.state != State::Committed {
            // Reserved space is given back even if there is no copy. An error cannot be returned
            // from here.
            let _ = self.storage.set_len(self.old_len);
        }
    }
}

/// A full disk. The system's message states neither how many bytes are missing nor the state of the
/// file. A user who removes objects to make room has to know that the edit itself needs some.
#[derive(Debug)]
struct NoRoom {
    needed: u64,
    error: io::Error,
}

impl NoRoom {
    fn explain(error: io::Error, needed: u64) -> io::Error {
        match error.kind() {
            kind @ (io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => {
                io::Error::new(kind, NoRoom { needed, error })
            }
            _ => error,
        }
    }
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NoRoom { needed, error } = self;
        write!(
            f,
            "{error}: the file is as it was; while it is edited it takes {needed} bytes more, for what \
             is added, the new manifest and a copy of the old one, also to remove objects: free as \
             much, or edit a copy on another disk"
        )
    }
}

impl std::error::Error for NoRoom {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

fn add(a: u64, b: u64) -> io::Result<u64> {
    a.checked_add(b).ok_or(io::ErrorKind::FileTooLarge.into())
}
