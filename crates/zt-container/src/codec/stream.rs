//! Decoding of frames that arrive in pieces.

use std::ops::RangeInclusive;

use zstd::zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer};

use super::frame::{no_context, refused};
use super::header::{Descriptor, FRAME_MAGIC, number};
use crate::error::{Result, ZstdFault};

/// Decodes frames that come in pieces.
///
/// The header of a frame declares a window, and zstd allocates as much memory: 128 MiB at level 22 even for
/// short content, and up to 2 GiB. No match reaches further back than the start of the content. So a
/// window larger than the content is replaced in the header before zstd sees it.
pub(crate) struct FrameDecoder {
    context: DCtx<'static>,
    /// The descriptor of the smallest window that is not shorter than the content. A larger window has a
    /// larger descriptor.
    largest: u8,
    /// The header of a frame, as far as it has arrived.
    head: [u8; HEAD_MAX],
    held: usize,
    /// The content size of this frame, if the header records it, and the bytes given so far.
    content_size: Option<u64>,
    given: u64,
    /// Whether the bytes so far end between two frames.
    at_boundary: bool,
}

/// The magic number and the descriptor.
const HEAD_MIN: usize = 5;

/// With a window, a dictionary and a content size of eight bytes.
const HEAD_MAX: usize = 18;

/// The smallest window, 1 KiB, and the largest that zstd accepts, `ZSTD_WINDOWLOG_MAX`.
const WINDOW_LOG: RangeInclusive<u32> = 10..=if usize::BITS < 64 { 30 } else { 31 };

/// The least limit on the window: 128 MiB. In a frame of a single segment, the window is the content size
/// that the header declares.
const SEGMENT_LOG: u32 = 27;

/// `ZSTD_BLOCKSIZE_MAX`.
const BLOCK_MAX: u64 = 128 << 10;

impl FrameDecoder {
    /// A decoder for frames with at most `content_len` bytes of content together.
    pub(crate) fn new(content_len: u64) -> Result<Self> {
        let mut context = DCtx::try_create().ok_or_else(no_context)?;
        // One block more, so that content beyond the declared length gets its own error. Saturation is
        // right: the logarithm is capped.
        let most = content_len.saturating_add(BLOCK_MAX);
        let log = most.checked_next_power_of_two();
        let log = log.map_or(u64::BITS, u64::trailing_zeros);
        let log = log.min(*WINDOW_LOG.end());
        context.set_parameter(DParameter::WindowLogMax(log.max(SEGMENT_LOG))).map_err(refused)?;
        let largest = log.strict_sub(*WINDOW_LOG.start()) << 3;
        Ok(FrameDecoder {
            context,
            largest: u8::try_from(largest).unwrap_or(u8::MAX), // At most 168.
            head: [0; HEAD_MAX],
            held: 0,
            content_size: None,
            given: 0,
            at_boundary: true,
        })
    }

    /// Decodes from `input` into `out`. Returns the number of bytes taken and the number given.
    pub(crate) fn run(&mut self, input: &[u8], out: &mut [u8]) -> Result<(usize, usize)> {
        if self.held == 0 && !self.at_boundary {
            return self.feed(input, out);
        }
        let mut taken = 0;
        while self.held < self.head_len() {
            let (Some(byte), Some(place)) = (input.get(taken), self.head.get_mut(self.held)) else {
                return Ok((taken, 0));
            };
            *place = *byte;
            (self.held, taken) = (self.held.strict_add(1), taken.strict_add(1));
            self.at_boundary = false;
        }
        // zstd keeps a header until it is complete, and gives nothing for it.
        let (head, held) = (self.narrowed(), std::mem::take(&mut self.held));
        let (_, given) = self.feed(head.split_at(held).0, out)?;
        Ok((taken, given))
    }

    fn feed(&mut self, input: &[u8], out: &mut [u8]) -> Result<(usize, usize)> {
        let mut source = InBuffer::around(input);
        let mut destination = OutBuffer::around(out);
        let hint = self.context.decompress_stream(&mut destination, &mut source);
        let (taken, given) = (source.pos, destination.pos());
        self.given = self.given.strict_add(given as u64);
        match hint {
            Ok(hint) => self.at_boundary = hint == 0,
            Err(code) => return Err(refused(code)),
        }
        // zstd does not check the content size of a frame that ends with an empty block.
        if self.at_boundary && self.content_size.is_some_and(|size| size != self.given) {
            return Err(ZstdFault::Refused("a frame has more or less than it says").into());
        }
        Ok((taken, given))
    }

    /// The descriptor, if it has arrived. Other frames go to zstd unchanged.
    fn descriptor(&self) -> Option<Descriptor> {
        let [m0, m1, m2, m3, descriptor, ..] = self.head;
        let is_frame = u32::from_le_bytes([m0, m1, m2, m3]) == FRAME_MAGIC;
        (self.held >= HEAD_MIN && is_frame).then(|| Descriptor::of(descriptor))
    }

    fn head_len(&self) -> usize {
        let fields = self.descriptor().map_or(0, |descriptor| {
            let fields = descriptor.window_len.strict_add(descriptor.dictionary_len);
            fields.strict_add(descriptor.content_size_len)
        });
        HEAD_MIN.strict_add(fields.into())
    }

    /// Begins a new frame. Returns its header with a window no larger than the content, unless zstd refuses
    /// the header anyway.
    fn narrowed(&mut self) -> [u8; HEAD_MAX] {
        let mut head = self.head;
        (self.content_size, self.given) = (None, 0);
        if let Some(descriptor) = self.descriptor() {
            let size_at = self.held.strict_sub(descriptor.content_size_len.into());
            let (_, size) = self.head.split_at(self.held).0.split_at(size_at);
            self.content_size = descriptor.content_size(number(size));
            let window = &mut head[HEAD_MIN];
            let log = WINDOW_LOG.start().strict_add(u32::from(*window >> 3));
            if descriptor.window_len > 0 && WINDOW_LOG.contains(&log) {
                *window = self.largest.min(*window);
            }
        }
        head
    }

    pub(crate) const fn at_boundary(&self) -> bool {
        self.at_boundary
    }
}

impl std::fmt::Debug for FrameDecoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FrameDecoder").field("at_boundary", &self.at_boundary).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::super::decode_into;
    use super::*;

    const MAGIC: [u8; 4] = FRAME_MAGIC.to_le_bytes();

    /// Whether a decoder takes `stored` in pieces of so many bytes, for `len` bytes that are 7.
    fn takes(stored: &[u8], piece: usize, len: usize) -> bool {
        let mut decoder = FrameDecoder::new(len as u64).unwrap();
        let (mut out, mut filled) = ([0; 256], 0);
        let decoded = stored.chunks(piece).try_for_each(|mut rest| {
            while !rest.is_empty() {
                let (taken, given) = decoder.run(rest, &mut out[filled..])?;
                (rest, filled) = (&rest[taken..], filled.strict_add(given));
            }
            Ok::<_, crate::error::Error>(())
        });
        assert!(decoder.context.sizeof() < 1 << 20, "memory for the content");
        decoded.is_ok() && decoder.at_boundary() && out[..filled] == vec![7; len]
    }

    /// Whether all ways to decode 24 bytes that are 7 take them.
    fn all_take(stored: &[u8]) -> bool {
        let whole = decode_into(stored, &mut [0; 24]).is_ok();
        for piece in [stored.len(), 1] {
            assert_eq!(takes(stored, piece, 24), whole, "{stored:x?} by {piece}");
        }
        whole
    }

    #[test]
    fn a_window_of_any_size_costs_no_more_than_the_content() {
        let largest = u8::try_from(*WINDOW_LOG.end() - *WINDOW_LOG.start()).unwrap();
        let windows = [
            (0, true),
            (0x9f, true),
            (largest << 3 | 7, true),
            (largest.strict_add(1) << 3, false),
        ];
        for (window, is_taken) in windows {
            // The last block: 24 times the byte 7.
            let stored = [&MAGIC[..], &[0, window], &[0xc3, 0, 0, 7]].concat();
            assert_eq!(all_take(&stored), is_taken, "{window:#x}");
        }
    }

    /// Such a frame has its size where others have their window.
    #[test]
    fn the_size_of_a_single_segment_is_not_narrowed() {
        // The last block: 100 times the byte 7. As a window, 100 would be one of 6 MiB.
        let stored = [&MAGIC[..], &[0x20, 100], &[0x23, 3, 0, 7]].concat();
        assert!(takes(&stored, 1, 100));
    }

    #[test]
    fn a_frame_has_what_it_says() {
        let block = [0xc2, 0, 0, 7];
        for (size, is_taken) in [(24, true), (23, false), (25, false), (0, false)] {
            for last in [&[1, 0, 0][..], &[0x03, 0, 0, 7]] {
                let stored = [&MAGIC[..], &[0x20, size], &block, last].concat();
                assert_eq!(all_take(&stored), is_taken, "{size}");
            }
        }
        // Behind a frame that is skipped, and before one of nothing.
        let nothing = [&MAGIC[..], &[0x20, 0, 1, 0, 0]].concat();
        let skipped = [0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9];
        let frame = [&MAGIC[..], &[0x20, 24], &block, &[1, 0, 0]].concat();
        assert!(all_take(&[&skipped[..], &frame, &nothing].concat()));
        // The last block is missing.
        assert!(!all_take(&[&MAGIC[..], &[0, 0], &block].concat()));
        // A dictionary of number 0 means that there is none.
        for (size, is_taken) in [(24, true), (25, false)] {
            let head = [0x81, 0, 0, size, 0, 0, 0];
            let stored = [&MAGIC[..], &head, &block, &[1, 0, 0]].concat();
            assert_eq!(all_take(&stored), is_taken, "{size}");
        }
        // A field of 16 bits counts from 256.
        let frame = [&MAGIC[..], &[0x60, 24, 0], &block, &[1, 0, 0]].concat();
        assert!(!all_take(&frame));
    }
}
