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

#[cfg(test)]
#[cfg(feature = "zstd")]
mod tests {
    use super::*;
    use crate::codec::decode_into;
    use crate::codec::frame::frame;
    use crate::source::Memory;

    /// What `frames` finds.
    fn found(stored: &[u8]) -> Option<Vec<Frame>> {
        frames(&Memory::new(stored), &blob(stored)).unwrap()
    }

    /// What the table at the end says.
    fn listed(stored: &[u8]) -> Option<Vec<Frame>> {
        by_table(&Memory::new(stored), blob(stored).span, 18).unwrap()
    }

    fn walked(stored: &[u8]) -> Option<Vec<(u64, u64)>> {
        walk(&Memory::new(stored), blob(stored).span).unwrap()
    }

    /// Three frames, with their table or without.
    fn three(with_table: bool) -> Vec<u8> {
        let mut table = SeekTable::default();
        let mut stored = Vec::new();
        for part in [&b"first "[..], b"second ", b"third"] {
            let frame = frame(part);
            table.push(frame.len(), part.len()).unwrap();
            stored.extend(frame);
        }
        if with_table {
            stored.extend(table.to_frame());
        }
        stored
    }

    fn blob(stored: &[u8]) -> Blob {
        let span = Span::new(0, stored.len() as u64).unwrap();
        Blob { span, encoding: Encoding::Zstd, decoded_len: Some(18), digest: None, chunks: None }
    }

    #[test]
    fn frames_of_every_kind_are_walked_as_libzstd_does() {
        use zstd::zstd_safe::find_frame_compressed_size;
        let noise = (0..700_000u32).map(|at| at.wrapping_mul(2_654_435_761).to_le_bytes()[3]);
        let noise: Vec<u8> = noise.collect();
        let skippable = [&[0x5A, 0x2A, 0x4D, 0x18, 3, 0, 0, 0][..], b"any"].concat();
        let mut stored = skippable.clone();
        let mut expected = vec![(skippable.len() as u64, 0)];
        let repeated = [(7, 300_000), (0, 0), (1, 255), (2, 256), (3, 65_792)];
        let repeated = repeated.map(|(byte, len)| vec![byte; len]);
        for content in std::iter::once(&noise).chain(&repeated) {
            for frame in [frame(content), zstd::bulk::compress(content, 1).unwrap()] {
                let len = find_frame_compressed_size(&frame).unwrap();
                expected.push((len as u64, content.len() as u64));
                stored.extend(frame);
            }
        }
        assert_eq!(walked(&stored), Some(expected));
        // A cut row of frames is none, wherever it is cut; between two frames it is a shorter row.
        for len in (0..stored.len()).rev().take(70_000).step_by(97) {
            let walked = walked(stored.get(..len).unwrap());
            let total = walked.map(|frames| frames.iter().map(|(stored, _)| stored).sum::<u64>());
            assert!(total.is_none_or(|total| total == len as u64), "{len}");
        }
    }

    #[test]
    fn a_frame_that_does_not_say_its_content_is_not_walked() {
        let mut stored = Vec::new();
        zstd::stream::copy_encode(&b"streamed"[..], &mut stored, 1).unwrap();
        assert_eq!(walked(&stored), None);
    }

    /// A list of frames takes four times the memory of a skippable frame of no bytes.
    #[test]
    fn frames_that_are_too_many_for_their_bytes_are_not_listed() {
        let most = |byte_len| most_frames(Span::new(64, byte_len).unwrap());
        assert_eq!([0, 127, 128, 128_000].map(most), [4096, 4096, 4097, 5096]);
        let skippable = [0x50, 0x2A, 0x4D, 0x18, 0, 0, 0, 0];
        for (count, is_listed) in [(4000, true), (5000, false)] {
            let mut stored = skippable.repeat(count);
            let mut table = SeekTable::default();
            for _ in 0..count {
                table.push(skippable.len(), 0).unwrap();
            }
            let content = frame(&[7; 18]);
            table.push(content.len(), 18).unwrap();
            stored.extend(content);
            let walked = found(&stored).map(|frames| frames.len());
            assert_eq!(walked, is_listed.then_some(count + 1));
            decode_into(&stored, &mut [0; 18]).unwrap();
            stored.extend(table.to_frame());
            let listed = listed(&stored);
            let most = most_frames(blob(&stored).span);
            assert_eq!(listed.is_some(), count < most, "{count} of {most}");
            assert_eq!(is_listed, count < most);
        }
    }

    #[cfg(target_pointer_width = "64")]
    #[test]
    fn a_table_has_room_for_frames_below_4_gib() {
        let mut table = SeekTable::default();
        for (stored, content) in [(1 << 32, 0), (0, 1 << 32)] {
            let error = table.push(stored, content).unwrap_err();
            assert!(matches!(error, Error::Misuse(Misuse::TooLong)), "{error}");
        }
        table.push((1 << 32) - 1, (1 << 32) - 1).unwrap();
        assert_eq!(table.frames, [(u32::MAX, u32::MAX)]);
    }

    /// Spec: the format's own text, "Seek_Table_Descriptor": bit 7 is the checksum flag, the five
    /// below are reserved, the last two unused.
    #[test]
    fn a_table_with_checksums_is_read_and_one_of_another_kind_is_not() {
        let plain = three(true);
        let (frames, plain_table) = plain.split_at(three(false).len());
        let entries = plain_table.get(8..plain_table.len() - 9).unwrap();
        let table = |magic: u32, descriptor: u8, checksum: &[u8], more: u32| {
            let entries = entries.chunks(8).flat_map(|entry| [entry, checksum]);
            let entries: Vec<u8> = entries.flatten().copied().collect();
            let payload = u32::try_from(entries.len()).unwrap() + 9 + more;
            [
                frames,
                &magic.to_le_bytes(),
                &payload.to_le_bytes(),
                &entries,
                &[3, 0, 0, 0, descriptor],
                &SeekTable::SEEKABLE_MAGIC.to_le_bytes(),
            ]
            .concat()
        };
        let ours = SeekTable::SKIPPABLE_MAGIC;
        let expected = listed(&plain);
        assert_eq!(expected.as_ref().map(Vec::len), Some(3));
        assert_eq!(table(ours, 0, &[], 0), plain);
        assert_eq!(listed(&table(ours, 0, &[], 8)), None, "longer than it is");
        for (magic, descriptor, checksum, is_known) in [
            (ours, 0x80, &[0xAB; 4][..], true),
            (ours, 0x83, &[0xAB; 4], true),
            (ours, 0x03, &[], true),
            (ours, 0x80, &[], false), // Said to have checksums, and has none.
            (ours, 0x00, &[0xAB; 4], false),
            (ours, 0x40, &[], false),
            (ours, 0x04, &[], false),
            (ours - 1, 0x00, &[], false), // A skippable frame of some other use.
        ] {
            let stored = table(magic, descriptor, checksum, 0);
            let expected = expected.clone().filter(|_| is_known);
            assert_eq!(listed(&stored), expected, "{magic:#x} {descriptor:#x}");
        }
    }

    #[test]
    fn a_frame_header_cut_anywhere_is_not_walked() {
        // A dictionary of 4 bytes, a window, a content size of 8 bytes; one empty raw block, which
        // is the last; a checksum.
        let header = [0x28, 0xB5, 0x2F, 0xFD, 0xC7, 0x58, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0];
        let stored = [&header[..], &[1, 0, 0], &[0; 4]].concat();
        let whole = Span::new(0, stored.len() as u64).unwrap();
        let walked = |span| walk(&Memory::new(&stored), span).unwrap();
        assert_eq!(walked(whole), Some(vec![(25, 0)]));
        for len in 1..whole.end() {
            assert_eq!(walked(Span::new(0, len).unwrap()), None, "{len}");
        }
        // Nor is what would end beyond the last address.
        assert_eq!(walked(Span::new(u64::MAX - 3, 3).unwrap()), None);
    }

    #[test]
    fn a_table_that_does_not_add_up_is_no_table() {
        let mut stored = three(true);
        let entry = stored.len() - 9 - 8 + 4; // The content length of the last frame.
        *stored.get_mut(entry).unwrap() = 6;
        assert_eq!(listed(&stored), None);
        // A skippable frame has no content, which walking finds out.
        assert!(found(&stored).is_none_or(|frames| frames.len() >= 3));
        for count in [0u32, 4, u32::MAX] {
            let mut stored = three(true);
            let at = stored.len() - 9;
            let field = stored.get_mut(at..at + 4).unwrap();
            field.copy_from_slice(&count.to_le_bytes());
            assert_eq!(listed(&stored), None, "{count}");
        }
    }
}
