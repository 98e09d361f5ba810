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
use zt_container::memory::zeroed;

/// Writes into the room between the old end of a file and the copy of its trailer, and moves the
/// copy away where the room runs out. Dropped before [`Tail::commit`], it undoes all of it.
pub(crate) struct GrowingTail {
    storage: Arc<dyn Storage>,
    /// The manifest and footer as they are, which readers look for at the end, behind a note.
    copy: Vec<u8>,
    /// Without the note.
    trailer_len: usize,
    /// The length of the file that is edited.
    old_len: u64,
    /// Where the next byte goes that is not gathered.
    position: u64,
    /// Small writes, gathered.
    gathered: Vec<u8>,
    /// Where the copy begins; `None` until there is one.
    copy_at: Option<u64>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Growing,
    /// A call has failed: nothing is tried again.
    Failed,
    /// The new file is the one that readers see.
    Committed,
}

/// Room that is made at first, and the least by which it grows.
const LEAST: u64 = 1 << 20;

/// Of memory: what systems write at a time, and make a file longer by.
const PAGE: u64 = 4096;

impl GrowingTail {
    /// `trailer` are the last bytes of the storage. Nothing is changed yet.
    pub(super) fn new(storage: Arc<dyn Storage>, old_len: u64, trailer: &[u8]) -> Result<Self> {
        let note = leftover::note(old_len);
        let mut copy = zeroed((note.len() as u64).saturating_add(trailer.len() as u64))?;
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

    /// Does it, unless something has failed before.
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
            let copy_end = end.saturating_add(self.copy.len() as u64);
            NoRoom::explain(error, copy_end.saturating_sub(self.old_len))
        })
    }

    fn move_copy_behind(&mut self, end: u64) -> io::Result<()> {
        // Twice as much each time, so that the copy moves seldom; as little as will do on a disk
        // that is nearly full.
        let grown = self.position.saturating_sub(self.old_len).max(LEAST);
        // Up to a page, what is written from the beginning of one is there at once or not at all.
        let roomy = add(end, grown)?.checked_next_multiple_of(PAGE);
        let roomy = roomy.ok_or(io::ErrorKind::FileTooLarge)?;
        let copy_at = match self.reserve(roomy) {
            Ok(()) => roomy,
            Err(_) => self.reserve(end).map(|()| end)?,
        };
        // In one call, because the file is as long as what was written of it; durable before any
        // byte changes where the last copy was.
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
    /// Makes room for so many bytes behind those that were written and gathered.
    fn make_room(&mut self, byte_len: u64) -> io::Result<()> {
        let len = add(self.gathered.len() as u64, byte_len)?;
        self.attempt(|tail| tail.make_room_for(len))
    }

    /// Makes what was written the file: all of it durable, the copy cut off, the old trailer
    /// cleared.
    ///
    /// After an error before the cut the old file is back; after one behind it the new file is
    /// there, and nobody knows whether it is durable.
    fn commit(&mut self) -> io::Result<()> {
        self.attempt(|tail| {
            // Before anything has changed: later there is nobody to tell that there is no memory.
            let zeros = zeroed(tail.trailer_len as u64).map_err(Error::from)?;
            tail.write_gathered()?;
            tail.storage.sync()?;
            tail.storage.set_len(tail.position)?;
            tail.state = State::Committed;
            tail.storage.sync()?;
            // Bytes of no blob are zero. Spec: §4.
            let trailer_at = tail.old_len.saturating_sub(zeros.len() as u64);
            tail.storage.write_at(trailer_at, &zeros)?;
            tail.storage.sync()
        })
    }
}

impl Write for GrowingTail {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.attempt(|tail| {
            if tail.gathered.len().saturating_add(bytes.len()) <= BUFFER {
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
            // Also where there is no copy yet: reserved space goes back. There is nobody to tell.
            let _ = self.storage.set_len(self.old_len);
        }
    }
}

/// A full disk. What the system says of it says neither how much is missing nor what has become of
/// the file; and whoever removes objects to make room has to know that there must be some first.
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
