//! A file whose end was left by an edit that has not finished: the old file within it is opened.
//!
//! ```text
//! killed | magic, note | blobs | manifest, footer | zeros, a part of the same manifest |
//! opened | magic       | blobs | manifest, footer |
//! ```
//!
//! An editor notes the length of the old file in the padding behind the header before it makes the file
//! longer. If the first blob leaves no such padding, there is none at all: the manifest is the first
//! thing in the file, and shows where the old file ends.
//!
//! This costs a file with a whole end nothing. Otherwise 16 bytes are read, and the old manifest. The
//! old length is believed only if a whole trailer ends there. A truncated download has no note, and a
//! `.zt` file within a blob is not behind the header. Spec: §16.

use std::io;
use std::sync::Arc;

use zt_container::memory::end_of_read;
use zt_container::{
    HEADER_LEN, Layout, Limits, SIZE_LEN, Source, Span, bytes_of, memory::in_memory,
};
use zt_manifest::{Error as ManifestError, Index, Rule};

use crate::cores::forward::forward;
use crate::error::{Error, ErrorKind, Result};
use crate::file::catalog::Catalog;
use crate::file::warning::Warning;

/// The note follows the header, in bytes that belong to no blob: these begin at multiples of 64.
pub(crate) const NOTE_AT: u64 = HEADER_LEN;

/// A magic, and the length as a little-endian integer.
pub(crate) const NOTE_LEN: usize = 16;

const MAGIC: [u8; 8] = *b"ZT-EDIT\0";

/// The page size of systems, by which they write and extend files.
pub(crate) const PAGE: u64 = 4096;

/// The number of bytes that are read of a manifest first, and the factor by which it grows.
pub(crate) const FIRST: u64 = 512;
pub(crate) const MORE: u64 = 8;

/// The note of an edit of a file with this length.
pub(crate) fn note(old_len: u64) -> [u8; NOTE_LEN] {
    let mut note = [0; NOTE_LEN];
    let (magic, len) = note.split_at_mut(MAGIC.len());
    magic.copy_from_slice(&MAGIC);
    len.copy_from_slice(&old_len.to_le_bytes());
    note
}

/// The length in a note; `None` if the bytes are no note.
pub(crate) fn noted(found: [u8; NOTE_LEN]) -> Option<u64> {
    let (magic, len) = found.split_first_chunk()?;
    let len = u64::from_le_bytes(len.try_into().ok()?);
    (*magic == MAGIC).then_some(len)
}

/// The length that the file had before an edit: what its note says, or the end of a manifest that directly
/// follows the header. The caller checks that a file ends there.
pub(crate) fn old_len(source: &(impl Source + ?Sized), limits: &Limits) -> Result<Option<u64>> {
    let mut found = [0; NOTE_LEN];
    if source.byte_len() < NOTE_AT.strict_add(NOTE_LEN as u64) {
        return Ok(None);
    }
    source.read_at(NOTE_AT, &mut found)?;
    if let Some(old_len) = noted(found) {
        return Ok(Some(old_len));
    }
    let behind = source.byte_len().strict_sub(HEADER_LEN);
    let available = behind.min(limits.manifest_len);
    let mut len = FIRST.min(available);
    while let Some(span) = Span::new(HEADER_LEN, len) {
        let bytes = bytes_of(source, span)?;
        match Index::parse(&bytes[..], Layout::V1_1, limits) {
            Err(ManifestError::Cbor { offset, rule: Rule::Trailing { .. } }) => {
                let footer_len = SIZE_LEN.strict_add(HEADER_LEN);
                return Ok(Some(HEADER_LEN.strict_add(offset).strict_add(footer_len)));
            }
            Err(ManifestError::Cbor { rule: Rule::Truncated | Rule::Length { .. }, .. })
                if len < available =>
            {
                len = len.saturating_mul(MORE).min(available)
            }
            _ => break,
        }
    }
    Ok(None)
}

/// The catalog at the end of the file, or the one that the file had before an edit that has not finished.
/// Then the source ends where the old file does, and there is a warning.
/// Fails as opening the file by its end does.
pub(crate) fn open(
    source: Arc<dyn Source>,
    limits: &Limits,
) -> Result<(Catalog, Arc<dyn Source>, Vec<Warning>)> {
    let at_end = Catalog::from_zt(&source, limits);
    let is_settled = match &at_end {
        Ok(catalog) => !catalog.may_be_torn(),
        Err(error) => error.kind() == ErrorKind::Io,
    };
    if is_settled {
        return Ok((at_end?, source, Vec::new()));
    }
    let is_torn = |old: &Catalog| match &at_end {
        Ok(end) => is_torn_copy(end, old),
        Err(_) => true,
    };
    match before_edit(&source, limits)? {
        Some((old, shorter)) if is_torn(&old) => {
            let (old_len, byte_len) = (shorter.byte_len(), source.byte_len());
            let text = format!(
                "an edit of the file was cut short or is still running: the file is read as it was before \
                 the edit, {old_len} of {byte_len} bytes; the next edit or `zt repair` removes the others"
            );
            let warning = Warning::new("unfinished-edit", text);
            Ok((old, shorter, vec![warning]))
        }
        _ => Ok((at_end?, source, Vec::new())),
    }
}

/// The file before the edit, if it is there.
///
/// # Errors
///
/// [`ErrorKind::Io`] alone.
fn before_edit(
    source: &Arc<dyn Source>,
    limits: &Limits,
) -> Result<Option<(Catalog, Arc<dyn Source>)>> {
    let old_len = old_len(source, limits).or_else(unless_unread)?;
    let Some(old_len) = old_len.filter(|old_len| *old_len < source.byte_len()) else {
        return Ok(None);
    };
    let shorter: Arc<dyn Source> =
        Arc::new(Beginning { source: Arc::clone(source), byte_len: old_len });
    let old = match Catalog::from_zt(&shorter, limits) {
        Ok(old) => old,
        Err(error) => return unless_unread(error),
    };
    let placement = old.placement();
    let is_edited_layout = placement.is_some_and(|(at, _)| at.layout == Layout::V1_1);
    Ok(is_edited_layout.then_some((old, shorter)))
}

/// Nothing, unless bytes could not be read.
fn unless_unread<T>(error: Error) -> Result<Option<T>> {
    match error.kind() {
        ErrorKind::Io => Err(error),
        _ => Ok(None),
    }
}

/// Whether the manifest at the end is the old one, or would be if no page of it was lost. A lost page reads
/// as zeros, and within a long text these decode.
fn is_torn_copy(end: &Catalog, old: &Catalog) -> bool {
    let (Some((at, copy)), Some((_, old))) = (end.manifest(), old.manifest()) else {
        return false;
    };
    let mut pages = pages(at, copy).zip(pages(at, old));
    copy.len() == old.len() && pages.all(|(copy, old)| copy == old || is_lost(copy))
}

/// Whether a whole page of it is zeros. The manifest of a kept copy has none.
pub(super) fn has_lost_page(manifest: Span, bytes: &[u8]) -> bool {
    pages(manifest, bytes).any(is_lost)
}

fn is_lost(page: &[u8]) -> bool {
    page.len() as u64 == PAGE && page.iter().all(|byte| *byte == 0)
}

/// The parts of the bytes at `span` that lie on one page each.
pub(crate) fn pages(span: Span, bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let first = in_memory(PAGE.strict_sub(span.offset() % PAGE));
    let (first, others) = bytes.split_at_checked(first).unwrap_or((bytes, &[]));
    [first].into_iter().chain(others.chunks(in_memory(PAGE)))
}

struct Beginning {
    source: Arc<dyn Source>,
    byte_len: u64,
}

impl Source for Beginning {
    fn byte_len(&self) -> u64 {
        self.byte_len
    }

    fn slice(&self, span: Span) -> Option<&[u8]> {
        let is_within = span.end() <= self.byte_len;
        is_within.then(|| self.source.slice(span))?
    }

    forward!(source: is_sequential() -> bool, is_remote() -> bool);
    forward!(source: will_read(span: Span), will_read_all(spans: &[Span]));

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        end_of_read(self.byte_len, offset, buf)?;
        self.source.read_at(offset, buf)
    }
}
