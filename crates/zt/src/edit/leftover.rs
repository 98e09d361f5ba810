//! The bytes that an interrupted edit left behind the end of a file.
//!
//! ```text
//! interrupted | magic, note | blobs | trailer | some of the new blobs | the same trailer |
//! cleaned up  | magic, note | blobs | trailer |
//! ```
//!
//! The note holds the old length of the file, so the next edit need not search for it. It is believed
//! only if the file up to that length ends with the same trailer and holds every blob.

use zt_container::{Source, Span, memory::zeroed};

use crate::error::Result;
use crate::file::File;
use crate::file::unfinished;

/// The length of the file before an interrupted edit; `None` if there was none.
///
/// `bytes` are the bytes of `trailer`, at the end of the file.
pub(super) fn old_len(
    source: &impl Source,
    file: &File,
    trailer: Span,
    bytes: &[u8],
) -> Result<Option<u64>> {
    let Some(old_len) = unfinished::old_len(source, &file.inner.limits)? else {
        return Ok(None);
    };
    let is_behind_blobs = |start: u64| {
        file.entries().iter().all(|entry| {
            let object = entry.object();
            let mut blobs = object.iter().flat_map(|object| &object.components);
            // A faulty object may have blobs anywhere.
            object.is_ok() && blobs.all(|(_, component)| component.blob.end() <= start)
        })
    };
    match old_len.checked_sub(trailer.byte_len()) {
        Some(start) if old_len <= trailer.offset() && is_behind_blobs(start) => {
            let mut first = zeroed(bytes.len() as u64)?;
            source.read_at(start, &mut first)?;
            Ok((first == bytes).then_some(old_len))
        }
        _ => Ok(None),
    }
}
