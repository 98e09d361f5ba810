//! Locating a blob's frames: by the seek table behind them, or by their headers if there is none.

use super::walk::walk;
use super::{FRAME_CONTENT, SINGLE_FRAME_MAX};
use crate::blob::{Blob, Encoding};
use crate::error::{Error, Misuse, Result};
use crate::source::Source;
use crate::span::Span;

/// The table of frames of zstd's seekable format. It follows the frames in a skippable frame: plain
/// decoders skip it, ours locate frames with it. Spec: §5, "Seek table".
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SeekTable {
    frames: Vec<(u32, u32)>,
}

impl SeekTable {
    const SKIPPABLE_MAGIC: u32 = 0x184D_2A5E;
    const SEEKABLE_MAGIC: u32 = 0x8F92_EAB1;
    /// The seekable format's limit on the number of frames.
    const MAX_FRAMES: usize = 0x0800_0000;

    /// Adds the next frame.
    ///
    /// # Errors
    ///
    /// [`Misuse::TooLong`] if the frame exceeds the limit, or its lengths exceed a `u32`.
    pub fn push(&mut self, stored: usize, content: usize) -> Result<()> {
        let fits = self.frames.len() < Self::MAX_FRAMES;
        match (u32::try_from(stored), u32::try_from(content)) {
            (Ok(stored), Ok(content)) if fits => self.frames.push((stored, content)),
            _ => return Err(Error::Misuse(Misuse::TooLong)),
        }
        Ok(())
    }

    /// The skippable frame, all integers little-endian `u32`: magic, length of the rest, the stored and
    /// content length of each frame, the number of frames, a descriptor byte of 0, magic.
    #[expect(clippy::expect_used, reason = "`push` bounds the number of frames")]
    pub fn to_frame(&self) -> Vec<u8> {
        let count = u32::try_from(self.frames.len()).expect("at most `MAX_FRAMES`");
        let payload = count.strict_mul(8).strict_add(9);
        let mut frame = Vec::new();
        frame.extend(Self::SKIPPABLE_MAGIC.to_le_bytes());
        frame.extend(payload.to_le_bytes());
        for (stored, content) in &self.frames {
            frame.extend(stored.to_le_bytes());
            frame.extend(content.to_le_bytes());
        }
        frame.extend(count.to_le_bytes());
        frame.push(0);
        frame.extend(Self::SEEKABLE_MAGIC.to_le_bytes());
        frame
    }
}

/// One independent frame of a blob. Default: an empty one at 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Frame {
    /// Its stored bytes, at their absolute offset.
    pub stored: Span,
    /// Its content, counted from the first decoded byte of the blob.
    pub content: Span,
}

/// The most frames of a blob that are listed. It keeps the list smaller than the stored bytes, except for
/// short blobs. A gibibyte of zeros is far below it: we write 256 frames of 250 bytes.
pub(super) fn most_frames(stored: Span) -> usize {
    const FREE: u64 = 4096;
    const LEAST_LEN: u64 = 128;
    // Saturates on purpose: it is only a limit.
    let most = FREE.strict_add(stored.byte_len() / LEAST_LEN);
    usize::try_from(most).unwrap_or(usize::MAX)
}

/// The frames of a zstd blob, in order, covering all of its content. `None` if a frame does not record its
/// content size, or if there are too many frames: 4096, plus one for each 128 stored bytes.
///
/// The file claims these lengths: a caller must check that each frame decodes to exactly its content.
///
/// Cost: two small reads with a seek table. Without one, the header of each block is read; a block has up
/// to 128 KiB of content.
///
/// # Errors
///
/// [`Error::Io`], [`crate::LimitExceeded::Allocation`].
pub fn frames(source: &(impl Source + ?Sized), blob: &Blob) -> Result<Option<Vec<Frame>>> {
    let Some(decoded_len) = blob.decoded_len else {
        return Ok(None);
    };
    if blob.encoding != Encoding::Zstd {
        return Ok(None);
    }
    if let Some(frames) = by_table(source, blob.span, decoded_len)? {
        return Ok(Some(frames));
    }
    let lengths = walk(source, blob.span)?;
    let frames = lengths.and_then(|lengths| laid_out(lengths.into_iter(), blob.span.offset()));
    let (start, end) = (blob.span.offset(), blob.span.end());
    Ok(frames.filter(|frames| ends_at(frames, start, end, decoded_len)))
}

/// The last bytes of a zstd blob, which have the table of its frames if there is one: a source that is far away
/// fetches it in one request. All of a blob of a single frame. `None` for raw bytes.
pub fn table_span(blob: &Blob) -> Option<Span> {
    const LEAST: u64 = 64 << 10;
    const MOST: u64 = 1 << 20;
    const ENTRY_LEN: u64 = 12;
    const FRAME_LEN: u64 = FRAME_CONTENT as u64;
    const FRAME_MAX: u64 = SINGLE_FRAME_MAX as u64;
    let content = blob.decoded_len.filter(|_| blob.encoding == Encoding::Zstd)?;
    let len = match content {
        0..=FRAME_MAX => blob.span.byte_len(),
        // Enough for frames of half the length that ours have.
        _ => (content / FRAME_LEN).strict_mul(2).strict_mul(ENTRY_LEN).clamp(LEAST, MOST),
    };
    let end = blob.span.end();
    Span::between(end.checked_sub(len.min(blob.span.byte_len()))?, end)
}

/// Reads the table at the end, if there is a consistent one.
fn by_table(
    source: &(impl Source + ?Sized),
    span: Span,
    decoded_len: u64,
) -> Result<Option<Vec<Frame>>> {
    const FOOTER_LEN: u64 = 9;
    const HEADER_LEN: u64 = 8;
    let footer_offset = span.end().checked_sub(FOOTER_LEN);
    let Some(footer_offset) = footer_offset.filter(|at| *at >= span.offset()) else {
        return Ok(None);
    };
    let mut footer = [0; 9];
    source.read_at(footer_offset, &mut footer)?;
    let [c0, c1, c2, c3, descriptor, m0, m1, m2, m3] = footer;
    let magic = u32::from_le_bytes([m0, m1, m2, m3]);
    // Bit 7: entries have a checksum as well. The five bits below it are reserved.
    let (has_checksums, reserved) = (descriptor & 0x80 != 0, descriptor & 0x7C);
    if magic != SeekTable::SEEKABLE_MAGIC || reserved != 0 {
        return Ok(None);
    }
    let count = u64::from(u32::from_le_bytes([c0, c1, c2, c3]));
    if count > most_frames(span) as u64 {
        return Ok(None);
    }
    let entry_len: u64 = if has_checksums { 12 } else { 8 };
    let entries_len = count.strict_mul(entry_len);
    let entries_offset = footer_offset.checked_sub(entries_len);
    let table_offset = entries_offset.and_then(|entries| entries.checked_sub(HEADER_LEN));
    let Some(table_offset) = table_offset.filter(|at| *at >= span.offset()) else {
        return Ok(None);
    };
    // The entries lie within the blob, so its stored bytes bound their memory.
    let table = crate::memory::bytes_of(source, Span::exact_between(table_offset, footer_offset))?;
    let Some((header, entries)) = table.split_first_chunk::<8>() else {
        return Ok(None);
    };
    let [h0, h1, h2, h3, s0, s1, s2, s3] = *header;
    let payload = u64::from(u32::from_le_bytes([s0, s1, s2, s3]));
    if u32::from_le_bytes([h0, h1, h2, h3]) != SeekTable::SKIPPABLE_MAGIC
        || payload != entries_len.strict_add(FOOTER_LEN)
    {
        return Ok(None);
    }
    let entry_len = if has_checksums { 12 } else { 8 };
    let lengths = entries.chunks_exact(entry_len).filter_map(|entry| {
        let (stored, rest) = entry.split_first_chunk::<4>()?;
        let (content, _) = rest.split_first_chunk::<4>()?;
        Some((u32::from_le_bytes(*stored).into(), u32::from_le_bytes(*content).into()))
    });
    let frames = laid_out(lengths, span.offset());
    Ok(frames.filter(|frames| ends_at(frames, span.offset(), table_offset, decoded_len)))
}

/// Adjacent frames of these lengths. A skippable frame has no content.
fn laid_out(lengths: impl Iterator<Item = (u64, u64)>, offset: u64) -> Option<Vec<Frame>> {
    let (mut stored_at, mut content_at) = (offset, 0);
    let mut frames = Vec::new();
    for (stored_len, content_len) in lengths {
        let frame = Frame {
            stored: Span::new(stored_at, stored_len)?,
            content: Span::new(content_at, content_len)?,
        };
        (stored_at, content_at) = (frame.stored.end(), frame.content.end());
        frames.push(frame);
    }
    Some(frames)
}

fn ends_at(frames: &[Frame], offset: u64, stored_end: u64, decoded_len: u64) -> bool {
    let last = frames.last();
    last.map_or(offset, |last| last.stored.end()) == stored_end
        && last.map_or(0, |last| last.content.end()) == decoded_len
}
