//! Compressed components of a file whose manifest is missing, found by their seek tables.
//!
//! Nothing else of such a file can be told apart: raw components have no marks, and the names, shapes and
//! types of all components are in the manifest. Spec: §5, "Seek table".

use zt_container::fields::Fields;
use zt_container::{ALIGNMENT, HEADER_LEN, Source, Span, bytes_of};

use crate::cores::progress::Gauge;
use crate::error::Result;

/// The last bytes of a seek table, and the first ones of a frame.
const TABLE_END: [u8; 4] = 0x8F92_EAB1_u32.to_le_bytes();
const FRAME: [u8; 4] = 0xFD2F_B528_u32.to_le_bytes();

/// The magic of a skippable frame, and the bytes of its header and of the footer of a table.
const SKIPPABLE: u32 = 0x184D_2A5E;
const HEADER: u64 = 8;
const FOOTER_LEN: u64 = 9;

/// Bytes of an entry: the stored length of a frame, and the length of its content.
const ENTRY_LEN: u64 = 8;

/// Bytes that are searched at once.
const PIECE: u64 = 1 << 20;

/// A compressed component that no manifest describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remains {
    /// Its stored bytes.
    pub stored: Span,
    /// Bytes of its content, as its frames declare them.
    pub content_len: u64,
}

/// The components with a seek table, in their order. Reads the file once, except for its holes, and each
/// seek table again. Decodes nothing.
pub(super) fn find(source: &dyn Source, gauge: &Gauge<'_>) -> Result<Vec<Remains>> {
    let end = source.byte_len();
    let (mut found, mut at, mut last) = (Vec::new(), HEADER_LEN, HEADER_LEN);
    let mut budget = end.saturating_mul(2);
    while at < end {
        at = at.max(source.data_from(at)).min(end);
        let len = PIECE.min(end.strict_sub(at));
        gauge.report(0)?;
        let Some(span) = Span::new(at, len) else {
            break;
        };
        let piece = bytes_of(source, span)?;
        let ends = piece.windows(TABLE_END.len()).enumerate();
        for (place, _) in ends.filter(|(_, bytes)| **bytes == TABLE_END) {
            let table_end = at.strict_add(place as u64).strict_add(TABLE_END.len() as u64);
            if let Some(remains) = before(source, table_end, last, &mut budget)? {
                last = table_end;
                found.push(remains);
            }
        }
        if len < PIECE {
            break;
        }
        // The magic on the border of two pieces is whole in the second.
        at = at.strict_add(PIECE).strict_sub(3);
    }
    Ok(found)
}

/// The component whose seek table ends at `end`, if it is one, and begins at `least` or behind it. `budget` is
/// how many bytes of tables may still be read: tables of a crafted file overlap.
fn before(source: &dyn Source, end: u64, least: u64, budget: &mut u64) -> Result<Option<Remains>> {
    let read = |offset: Option<u64>, len| {
        let span = offset.and_then(|offset| Span::new(offset, len));
        let span = span.filter(|span| span.offset() >= least && span.end() <= end);
        span.map(|span| bytes_of(source, span)).transpose()
    };
    let Some(footer) = read(end.checked_sub(FOOTER_LEN), FOOTER_LEN)? else {
        return Ok(None);
    };
    let count = u64::from(Fields(&footer).u32(0).unwrap_or_default());
    let entries_len = count.strict_mul(ENTRY_LEN);
    let table_len = HEADER.strict_add(entries_len).strict_add(FOOTER_LEN);
    let table = end.checked_sub(table_len);
    let payload_len = table_len.strict_sub(HEADER);
    let is_table = |header: &[u8]| {
        let (magic, len) = (Fields(header).u32(0), Fields(header).u32(4));
        magic == Some(SKIPPABLE) && len.map(u64::from) == Some(payload_len)
    };
    let Some(left) = budget.checked_sub(table_len) else {
        return Ok(None);
    };
    if !read(table, HEADER)?.is_some_and(|header| is_table(&header)) {
        return Ok(None);
    }
    *budget = left;
    let entries = table.and_then(|table| table.checked_add(HEADER));
    let entries = read(entries, entries_len)?.unwrap_or_default();
    let (mut stored_len, mut content_len) = (0u64, 0u64);
    for entry in entries.chunks_exact(8).map(Fields) {
        stored_len = stored_len.strict_add(entry.u32(0).unwrap_or_default().into());
        content_len = content_len.strict_add(entry.u32(4).unwrap_or_default().into());
    }
    let start = table.and_then(|table| table.checked_sub(stored_len));
    let start = start.filter(|start| start.is_multiple_of(ALIGNMENT));
    let is_frame = read(start, FRAME.len() as u64)?.is_some_and(|first| *first == FRAME);
    let stored = start.filter(|_| is_frame && count > 0);
    let stored = stored.and_then(|start| Span::between(start, end));
    Ok(stored.map(|stored| Remains { stored, content_len }))
}
