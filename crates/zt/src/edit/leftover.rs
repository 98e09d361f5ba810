//! The bytes that an interrupted edit left behind the end of a file.
//!
//! ```text
//! interrupted | blobs | trailer | some of the new blobs | note | the same trailer |
//! cleaned up  | blobs | trailer |
//! ```
//!
//! The note ends the room that an edit writes into. It holds the old length of the file, so the next
//! edit need not search for it. The note is believed only if the file up to that length ends with the
//! same trailer and holds every blob.

use zt_container::Span;

use super::Storage;
use crate::error::Result;
use crate::file::File;
use zt_container::memory::zeroed;

const MAGIC: [u8; 8] = *b"ZT-EDIT\0";

/// The magic, and the length as a little-endian integer.
const NOTE_LEN: usize = 16;

/// The note of an edit of a file with this length.
pub(super) fn note(old_len: u64) -> [u8; NOTE_LEN] {
    let mut note = [0; NOTE_LEN];
    let (magic, len) = note.split_at_mut(MAGIC.len());
    magic.copy_from_slice(&MAGIC);
    len.copy_from_slice(&old_len.to_le_bytes());
    note
}

/// The length of the file before an interrupted edit; `None` if there was none.
///
/// `bytes` are the bytes of `trailer`, at the end of the file.
pub(super) fn old_len(
    storage: &dyn Storage,
    file: &File,
    trailer: Span,
    bytes: &[u8],
) -> Result<Option<u64>> {
    let Some(note_at) = trailer.offset().checked_sub(NOTE_LEN as u64) else {
        return Ok(None);
    };
    let mut found = [0; NOTE_LEN];
    storage.read_at(note_at, &mut found)?;
    let Some((&MAGIC, len)) = found.split_first_chunk() else {
        return Ok(None);
    };
    let old_len = <[u8; 8]>::try_from(len).map_or(0, u64::from_le_bytes);
    let is_behind_blobs = |start: u64| {
        file.entries().iter().all(|entry| {
            let object = entry.object();
            let mut blobs = object.iter().flat_map(|object| &object.components);
            // A faulty object may have blobs anywhere.
            object.is_ok() && blobs.all(|(_, component)| component.blob.span.end() <= start)
        })
    };
    match old_len.checked_sub(trailer.byte_len()) {
        Some(start) if old_len <= note_at && is_behind_blobs(start) => {
            let mut first = zeroed(bytes.len() as u64)?;
            storage.read_at(start, &mut first)?;
            Ok((first == bytes).then_some(old_len))
        }
        _ => Ok(None),
    }
}
