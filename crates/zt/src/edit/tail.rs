//! The end of a file that grows while its readers see the old file.
//!
//! ```text
//! before   |      | blobs | manifest, footer |
//! begin    | note | blobs | manifest, footer | room                   | the same manifest, footer |
//! write    | note | blobs | manifest, footer | blobs, manifest, footer| the same manifest, footer |
//! commit   | note | blobs | manifest, footer | blobs, manifest, footer |            a truncation
//! clear    |      | blobs | zeros            | blobs, manifest, footer |
//! ```
//!
//! Readers find the manifest from the end of the file, and its offsets count from the beginning. So
//! a copy of the old manifest behind the room means the same. Readers see the old file until the
//! truncation, and the new file after it.
//!
//! The note is durable before the file becomes longer, so our reader finds the old file whatever part
//! of the copy is there. Other readers do not know the note. For them the copy appears at once where
//! the storage can do that: see [`Storage::extend_at_once`]. Elsewhere a [`Bridge`] ends the file while
//! the copy is written.
//!
//! To undo an edit, the file is truncated to its old length. If the process was killed, the next
//! edit does that: it finds the old length in the note.

use std::fmt;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use super::storage::Storage;
use crate::disk::publish::BUFFER;
use crate::error::{Error, Result};
use crate::file::unfinished::{NOTE_AT, NOTE_LEN, PAGE, note, noted};
use crate::write::writer::Tail;
use zt_container::MAGIC;
use zt_container::memory::{in_memory, zeroed};

/// Writes into the room between the old end of a file and the copy of its trailer, and moves the
/// copy if the room is too small. If it is dropped before [`Tail::commit`], it undoes everything.
pub(crate) struct GrowingTail {
    storage: Arc<dyn Storage>,
    /// Zeros, and the unchanged manifest and footer, which readers look for at the end.
    buffer: Vec<u8>,
    /// Whole pages at the end of the buffer, in memory as in the file: a direct write takes no others.
    copy: Range<usize>,
    /// The manifest and footer without the zeros before them.
    trailer_len: u64,
    old_len: u64,
    /// Whether the note is in the file, or a part of it.
    has_note: bool,
    /// The offset of the next byte that is not gathered.
    position: u64,
    gathered: Vec<u8>,
    /// The offset of the copy; `None` before the first.
    copy_at: Option<u64>,
    /// The offset of the manifest that readers find.
    manifest_at: u64,
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

/// The most bytes from a manifest to the end of its bridge. A reader may read all of them.
const LONGEST_BRIDGE: u64 = 64 << 20;

impl GrowingTail {
    /// `trailer` is the end of the storage. Nothing is changed yet.
    pub(super) fn new(storage: Arc<dyn Storage>, old_len: u64, trailer: &[u8]) -> Result<Self> {
        let trailer_len = trailer.len() as u64;
        let copy_len = trailer_len.checked_next_multiple_of(PAGE);
        let copy_len = copy_len.ok_or(io::Error::from(io::ErrorKind::FileTooLarge))?;
        let mut buffer: Vec<u8> = zeroed(copy_len.strict_add(PAGE))?;
        // At most a page, except if the system reports an unknown length.
        let start = buffer.as_ptr().align_offset(in_memory(PAGE));
        let start = start.min(in_memory(PAGE));
        let copy = start..start.strict_add(in_memory(copy_len));
        let place = copy.end.strict_sub(trailer.len())..copy.end;
        buffer.get_mut(place).unwrap_or_default().copy_from_slice(trailer);
        Ok(GrowingTail {
            storage,
            buffer,
            copy,
            trailer_len,
            old_len,
            has_note: false,
            manifest_at: old_len.strict_sub(trailer_len),
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
            let copy_end = end.strict_add(PAGE).strict_add(self.copy.len() as u64);
            NoRoom::explain(error, copy_end.strict_sub(self.old_len))
        })
    }

    fn move_copy_behind(&mut self, end: u64) -> io::Result<()> {
        // The room doubles, and holds a manifest like the old one, so that the copy moves seldom. It
        // grows by as little as possible on a disk that is nearly full.
        let grown = self.position.strict_sub(self.old_len);
        let grown = grown.max(LEAST).max(self.trailer_len);
        // Not over the copy that readers find.
        let copy_len = self.copy.len() as u64;
        let behind = self.copy_at.map_or(0, |copy_at| copy_at.strict_add(copy_len));
        let end = end.max(behind);
        let on_page = |at: u64| at.checked_next_multiple_of(PAGE);
        let roomy = on_page(add(end, grown)?).ok_or(io::ErrorKind::FileTooLarge)?;
        let copy_at = match self.reserve(roomy) {
            Ok(()) => roomy,
            Err(_) => {
                let least = on_page(end).ok_or(io::ErrorKind::FileTooLarge)?;
                self.reserve(least).map(|()| least)?
            }
        };
        self.write_note()?;
        self.write_copy(copy_at)?;
        // The copy is durable before any byte of the last one changes.
        self.storage.sync()?;
        self.copy_at = Some(copy_at);
        let copy_end = copy_at.strict_add(self.copy.len() as u64);
        self.manifest_at = copy_end.strict_sub(self.trailer_len);
        Ok(())
    }

    fn reserve(&self, copy_at: u64) -> io::Result<()> {
        let end = add(copy_at, self.copy.len() as u64)?;
        self.storage.reserve(self.old_len, end.strict_sub(self.old_len))
    }

    /// Notes the old length behind the header, in bytes that are zero and belong to no blob. In a file
    /// without blobs the manifest is there, and shows the old length as well.
    fn write_note(&mut self) -> io::Result<()> {
        let trailer_at = self.old_len.strict_sub(self.trailer_len);
        if self.has_note || trailer_at < NOTE_AT.strict_add(NOTE_LEN as u64) {
            return Ok(());
        }
        let mut found = [0; NOTE_LEN];
        self.storage.read_at(NOTE_AT, &mut found)?;
        if found != [0; NOTE_LEN] && noted(found).is_none() {
            return Ok(());
        }
        self.has_note = true;
        self.storage.write_at(NOTE_AT, &note(self.old_len))?;
        self.storage.sync()
    }

    fn clear_note(&mut self) -> io::Result<()> {
        if self.has_note {
            self.storage.write_at(NOTE_AT, &[0; NOTE_LEN])?;
        }
        Ok(())
    }

    fn write_copy(&self, copy_at: u64) -> io::Result<()> {
        let copy = self.buffer.get(self.copy.clone()).unwrap_or_default();
        let copy_end = add(copy_at, copy.len() as u64)?;
        // A write of one page is complete or absent after a kill.
        if copy.len() as u64 == PAGE {
            return self.storage.write_at(copy_at, copy);
        }
        if self.storage.extend_at_once(copy_at, copy)? {
            return Ok(());
        }
        let Some(bridge) = Bridge::over(self.manifest_at, copy_end) else {
            return self.storage.write_at(copy_at, copy);
        };
        self.storage.write_at(bridge.at, &bridge.footer)?;
        self.storage.write_at(copy_at, copy)?;
        self.storage.set_len(copy_end)
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
            let zeros = zeroed(tail.trailer_len).map_err(Error::from)?;
            tail.write_gathered()?;
            tail.storage.sync()?;
            tail.storage.set_len(tail.position)?;
            tail.state = State::Committed;
            tail.storage.sync()?;
            // Bytes between blobs are zero. Spec: §4.
            let trailer_at = tail.old_len.strict_sub(tail.trailer_len);
            tail.storage.write_at(trailer_at, &zeros)?;
            tail.clear_note()?;
            tail.storage.sync()
        })
    }
}

impl Write for GrowingTail {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.attempt(|tail| {
            if tail.gathered.len().strict_add(bytes.len()) <= BUFFER {
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
            // Reserved space is given back even if there is no copy. The note stays until the old length
            // is durable. An error cannot be returned from here.
            let undone = self.storage.set_len(self.old_len);
            if self.has_note && undone.is_ok() && self.storage.sync().is_ok() {
                let _ = self.clear_note();
            }
        }
    }
}

/// A footer of one page behind the copy, which ends the file while the copy is written.
///
/// Its size reaches back to the manifest that readers have found so far. The official reader decodes
/// that manifest and ignores the bytes behind it. A reader that does not ignore them, as ours, refuses
/// the file; ours then finds the note.
struct Bridge {
    at: u64,
    footer: [u8; 16],
}

impl Bridge {
    /// `None` if it would be too long.
    fn over(manifest_at: u64, copy_end: u64) -> Option<Self> {
        let at = copy_end.checked_add(PAGE)?.checked_sub(16)?;
        let size = at.checked_sub(manifest_at)?;
        let mut footer = [0; 16];
        let (first, magic) = footer.split_at_mut(8);
        first.copy_from_slice(&size.to_le_bytes());
        magic.copy_from_slice(&MAGIC);
        (size <= LONGEST_BRIDGE).then_some(Bridge { at, footer })
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
            "{error}: the file is unchanged. The edit needs {needed} more bytes, even if it only removes \
             objects. Free some space, or edit a copy on another disk"
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
