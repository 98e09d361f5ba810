//! The filter Blosc, and the chunks of Blosc 2.
//!
//! ```text
//!  0 u8 version   u8 version of the codec   u8 flags   u8 bytes of an element
//!  4 u32 bytes of the chunk   u32 bytes of a block   u32 stored bytes
//! 16 in Blosc 2: u8 codes of six filters, u8 u8, u8 parameters of the filters, u8 u8 flags
//!    u32 where each block begins   blocks: streams, each after its length
//! ```
//!
//! All numbers are little-endian. A block is one stream, or it is split into as many as an element has bytes.
//! A stream that cannot be compressed is stored as it is. Each number is a claim: it is compared with the
//! stored bytes, and with the limit of the chunk.
//!
//! Reference: "Blosc Chunk Format", `README_CHUNK_FORMAT.rst` of C-Blosc 1.21 and C-Blosc2.

use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use zt::Result;
use zt::container::codec::FrameDecompressor;
use zt::container::memory::resize;

use crate::bytes::fault::Hdf5Fault;
use crate::filters::bitshuffle::unshuffle_bits;
use crate::filters::shuffle::unshuffle;
use crate::filters::{blosclz, lz4};

/// Bits of the flags. Both shuffles together stand for the longer header of Blosc 2.
const SHUFFLE: u8 = 0x01;
const IS_COPY: u8 = 0x02;
const BIT_SHUFFLE: u8 = 0x04;
const DELTA: u8 = 0x08;
const IS_NOT_SPLIT: u8 = 0x10;

/// Decodes a chunk of the filter; `limit` is the most bytes that it may have.
pub(super) fn decode(bytes: &[u8], limit: usize) -> Result<Vec<u8>> {
    let chunk = Chunk::read(bytes, limit)?;
    let mut out = Vec::new();
    let mut zstd = None;
    for block in 0..chunk.blocks() {
        out.extend_from_slice(&chunk.block(block, &mut zstd)?);
    }
    Ok(out)
}

/// A decoder of zstd for all streams of a chunk, made for the first.
pub(super) type Zstd = Option<FrameDecompressor>;

/// A chunk whose header is checked.
pub(super) struct Chunk<'b> {
    bytes: &'b [u8],
    flags: u8,
    element_len: usize,
    /// Decoded bytes.
    pub(super) byte_len: usize,
    /// Decoded bytes of each block but the last.
    pub(super) block_len: usize,
    header_len: usize,
    filters: Vec<Filter>,
    content: Content<'b>,
}

/// What a chunk is made of.
enum Content<'b> {
    /// Blocks, at offsets that follow the header.
    Blocks,
    /// The values, as they are.
    Plain,
    /// One element again and again.
    Repeated(&'b [u8]),
}

/// A filter of blocks, in the order of encoding.
#[derive(Clone, Copy)]
enum Filter {
    /// Bytes of an element.
    Shuffle(usize),
    Bits {
        element_len: usize,
        /// Whether up to 7 elements at the end stay as they are. Otherwise a block with such elements stays.
        has_rest: bool,
    },
}

impl<'b> Chunk<'b> {
    pub(super) fn read(bytes: &'b [u8], limit: usize) -> Result<Self> {
        let header = header(bytes).filter(|header| header.byte_len <= limit);
        let mut chunk = header.ok_or_else(invalid)?;
        if chunk.flags & (SHUFFLE | BIT_SHUFFLE) == SHUFFLE | BIT_SHUFFLE {
            chunk.extend()?;
            return Ok(chunk);
        }
        if chunk.flags & DELTA != 0 {
            return Err(Hdf5Fault::Unsupported("the filter delta of blosc").into());
        }
        let element_len = chunk.element_len;
        if chunk.flags & SHUFFLE != 0 {
            chunk.filters.push(Filter::Shuffle(element_len));
        } else if chunk.flags & BIT_SHUFFLE != 0 {
            chunk.filters.push(Filter::Bits { element_len, has_rest: false });
        }
        Ok(chunk)
    }

    /// Reads the second half of a header of Blosc 2.
    fn extend(&mut self) -> Result<()> {
        let second = self.bytes.get(16..).and_then(|rest| rest.first_chunk());
        let [codes @ .., _, _, p0, p1, p2, p3, p4, p5, more_flags, flags]: [u8; 16] =
            *second.ok_or_else(invalid)?;
        self.header_len = 32;
        let [c0, c1, c2, c3, c4, c5] = codes;
        let unsupported = |what| Err(Hdf5Fault::Unsupported(what).into());
        if flags & 0x01 != 0 {
            return unsupported("a dictionary of blosc2");
        }
        if flags & 0x88 != 0 || more_flags != 0 {
            return unsupported("a lazy or instrumented chunk of blosc2");
        }
        let pairs = [c0, c1, c2, c3, c4, c5].into_iter().zip([p0, p1, p2, p3, p4, p5]);
        for (code, parameter) in pairs {
            let element_len = match parameter {
                0 => self.element_len,
                parameter => parameter.into(),
            };
            match code {
                0 => {}
                1 => self.filters.push(Filter::Shuffle(element_len)),
                2 => self
                    .filters
                    .push(Filter::Bits { element_len: self.element_len, has_rest: true }),
                // It has removed bits, which are lost.
                4 => {}
                3 => return unsupported("the filter delta of blosc2"),
                _ => return unsupported("a filter of blosc2's plugins"),
            }
        }
        const ZERO: &[u8] = &[0];
        let repeated = match flags >> 4 & 7 {
            0 => return Ok(()),
            1 | 4 => Some(ZERO),
            2 => nan(self.element_len),
            3 => self.bytes.get(32..).and_then(|rest| rest.get(..self.element_len)),
            _ => None,
        };
        self.content = Content::Repeated(repeated.ok_or_else(invalid)?);
        Ok(())
    }

    /// The number of blocks.
    pub(super) fn blocks(&self) -> usize {
        self.byte_len.div_ceil(self.block_len)
    }

    /// The values of a block, which there is.
    pub(super) fn block(&self, at: usize, zstd: &mut Zstd) -> Result<Vec<u8>> {
        let start = at.strict_mul(self.block_len);
        let len = self.byte_len.strict_sub(start).min(self.block_len);
        let plain = || {
            let values = self.bytes.get(self.header_len..)?.get(start..)?;
            values.get(..len)
        };
        match self.content {
            Content::Plain => Ok(plain().ok_or_else(invalid)?.to_vec()),
            Content::Repeated(value) => Ok(value.iter().copied().cycle().take(len).collect()),
            Content::Blocks => {
                let stored = self.stored(at).ok_or_else(invalid)?;
                let mut block = self.streams(stored, len, zstd)?;
                for filter in self.filters.iter().rev() {
                    block = filter.undo(block)?;
                }
                Ok(block)
            }
        }
    }

    /// The stored bytes from the beginning of a block on.
    fn stored(&self, block: usize) -> Option<&'b [u8]> {
        let place = block.checked_mul(4)?.checked_add(self.header_len)?;
        let start = self.bytes.get(place..)?.first_chunk()?;
        self.bytes.get(usize::try_from(u32::from_le_bytes(*start)).ok()?..)
    }

    /// Decodes the streams of a block of `len` bytes.
    fn streams(&self, mut rest: &[u8], len: usize, zstd: &mut Zstd) -> Result<Vec<u8>> {
        /// Blosc 1 splits blocks of elements of up to so many bytes, with at least so many elements.
        const SPLIT_MAX: usize = 16;
        const SPLIT_MIN: usize = 128;
        let element_len = self.element_len;
        let is_two = self.header_len == 32;
        let count = self.block_len.checked_div(element_len);
        let is_split = self.flags & IS_NOT_SPLIT == 0
            && len == self.block_len
            && (is_two
                || element_len <= SPLIT_MAX && count.is_some_and(|count| count >= SPLIT_MIN));
        let streams = if is_split { element_len } else { 1 };
        let stream_len = len.checked_div(streams).filter(|_| len.is_multiple_of(streams));
        let stream_len = stream_len.ok_or_else(invalid)?;
        let mut block = Vec::new();
        for _ in 0..streams {
            let (stored_len, after) = rest.split_first_chunk().ok_or_else(invalid)?;
            rest = after;
            let stored_len = i32::from_le_bytes(*stored_len);
            if is_two && stored_len <= 0 {
                // A byte again and again; if it is not 0, a byte of flags follows.
                if stored_len < 0 && rest.split_off_first() != Some(&1) {
                    return Err(invalid());
                }
                let value = u8::try_from(stored_len.unsigned_abs()).map_err(|_| invalid())?;
                let run = block.len();
                resize(&mut block, run.strict_add(stream_len) as u64)?;
                block.iter_mut().skip(run).for_each(|byte| *byte = value);
                continue;
            }
            let stored = usize::try_from(stored_len).ok();
            let stored = stored.and_then(|len| rest.split_off(..len));
            let stored = stored.ok_or_else(invalid)?;
            if stored.len() == stream_len {
                block.extend_from_slice(stored);
            } else {
                block.extend_from_slice(&self.stream(stored, stream_len, zstd)?);
            }
        }
        Ok(block)
    }

    /// Decompresses a stream to exactly `len` bytes.
    fn stream(&self, stored: &[u8], len: usize, zstd: &mut Zstd) -> Result<Vec<u8>> {
        let decoded = match self.flags >> 5 {
            0 => blosclz::decompress(stored, len),
            1 => lz4::block(stored, len),
            3 => decompress_to_vec_zlib_with_limit(stored, len)
                .ok()
                .filter(|decoded| decoded.len() == len),
            4 => {
                let decoder = match zstd {
                    Some(decoder) => decoder,
                    None => zstd.insert(FrameDecompressor::new()?),
                };
                let mut decoded = vec![0; len];
                let is_valid = decoder.decode_into(stored, &mut decoded).is_ok();
                is_valid.then_some(decoded)
            }
            2 => return Err(Hdf5Fault::Unsupported("the codec snappy of blosc").into()),
            _ => return Err(Hdf5Fault::Unsupported("a codec of blosc's plugins").into()),
        };
        decoded.ok_or_else(invalid)
    }
}

impl Filter {
    fn undo(self, block: Vec<u8>) -> Result<Vec<u8>> {
        match self {
            Filter::Shuffle(element_len) => unshuffle(block, element_len),
            Filter::Bits { element_len, has_rest } => {
                let Some(count) = block.len().checked_div(element_len) else {
                    return Ok(block);
                };
                let whole = match count & 7 {
                    0 => count,
                    _ if has_rest => count & !7,
                    _ => 0,
                };
                let (bits, rest) = block.split_at(whole.strict_mul(element_len));
                let mut out = unshuffle_bits(bits, element_len).ok_or_else(invalid)?;
                out.extend_from_slice(rest);
                Ok(out)
            }
        }
    }
}

/// The first half of a header, which Blosc 1 has alone; `None` for lengths that cannot be.
fn header(bytes: &[u8]) -> Option<Chunk<'_>> {
    let (fields, numbers) = bytes.first_chunk::<16>()?.split_first_chunk::<4>()?;
    let [_, _, flags, element_len] = *fields;
    let mut numbers = numbers.chunks_exact(4).map(|number| {
        let number = number.first_chunk().copied().map(u32::from_le_bytes);
        usize::try_from(number?).ok()
    });
    let mut number = || numbers.next().flatten();
    let (byte_len, block_len, stored_len) = (number()?, number()?, number()?);
    let is_plain = flags & IS_COPY != 0;
    // A chunk of one value has no blocks.
    let is_valid = block_len > 0 || byte_len == 0;
    is_valid.then_some(Chunk {
        bytes: bytes.get(..stored_len)?,
        flags,
        element_len: element_len.into(),
        byte_len,
        block_len: block_len.max(1),
        header_len: 16,
        filters: Vec::new(),
        content: if is_plain { Content::Plain } else { Content::Blocks },
    })
}

/// The value of C's `nan` for floats of so many bytes.
fn nan(element_len: usize) -> Option<&'static [u8]> {
    match element_len {
        4 => Some(&[0, 0, 0xC0, 0x7F]),
        8 => Some(&[0, 0, 0, 0, 0, 0, 0xF8, 0x7F]),
        _ => None,
    }
}

fn invalid() -> zt::Error {
    Hdf5Fault::Chunk { filter: "blosc" }.into()
}
