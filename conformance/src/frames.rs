//! Zstandard frames put together by hand (RFC 8878), so that the corpus does not change with the
//! compressor that happens to be built in, and so that it can hold frames that none would write.

/// The first four bytes of a frame, little-endian.
const MAGIC: u32 = 0xfd2f_b528;
/// Descriptor bit: the frame is one segment, and its content size is there.
const SINGLE_SEGMENT: u8 = 0x20;
/// A block may hold no more than this.
const BLOCK_MAX: usize = 128 << 10;

/// How the content of a block is given.
#[derive(Debug, Clone, Copy)]
enum Block<'a> {
    Raw(&'a [u8]),
    /// One byte, that many times.
    Rle(u8, usize),
}

/// A frame with content size, of raw blocks.
#[must_use]
pub fn frame(content: &[u8]) -> Vec<u8> {
    let mut out = sized_header(content.len() as u64);
    blocks(&mut out, &raw(content));
    out
}

/// A frame without content size, with a window of 2 MiB, of raw blocks.
#[must_use]
pub fn unsized_frame(content: &[u8]) -> Vec<u8> {
    let mut out = MAGIC.to_le_bytes().to_vec();
    out.extend([0, 11 << 3]);
    blocks(&mut out, &raw(content));
    out
}

/// A frame of `len` times `byte`, in blocks of four bytes for 128 KiB each: the most that zstd
/// expands.
#[must_use]
pub fn repeated_frame(byte: u8, len: usize) -> Vec<u8> {
    let mut out = sized_header(len as u64);
    let mut list = vec![Block::Rle(byte, BLOCK_MAX); len / BLOCK_MAX];
    if !len.is_multiple_of(BLOCK_MAX) || len == 0 {
        list.push(Block::Rle(byte, len % BLOCK_MAX));
    }
    blocks(&mut out, &list);
    out
}

/// A frame that says it holds `claimed` bytes and holds `content`.
#[must_use]
pub fn lying_frame(claimed: u64, content: &[u8]) -> Vec<u8> {
    let mut out = sized_header(claimed);
    blocks(&mut out, &raw(content));
    out
}

/// A frame that needs the dictionary of that number, which does not exist.
#[must_use]
pub fn dictionary_frame(dictionary: u8, content: &[u8]) -> Vec<u8> {
    let mut out = MAGIC.to_le_bytes().to_vec();
    out.extend([SINGLE_SEGMENT | 1, dictionary, content.len() as u8]);
    blocks(&mut out, &raw(content));
    out
}

/// A frame whose only block is of the type that RFC 8878 reserves.
#[must_use]
pub fn reserved_block_frame(content: &[u8]) -> Vec<u8> {
    let mut out = sized_header(content.len() as u64);
    block_header(&mut out, 3, content.len(), true);
    out.extend(content);
    out
}

/// A frame that decoders pass over.
#[must_use]
pub fn skippable(content: &[u8]) -> Vec<u8> {
    let len = u32::try_from(content.len()).unwrap_or(u32::MAX);
    let (magic, len) = (0x184d_2a50u32.to_le_bytes(), len.to_le_bytes());
    [&magic[..], &len, content].concat()
}

/// The seekable format's table: stored and content length of each frame.
#[must_use]
pub fn seek_table(frames: &[(u32, u32)]) -> Vec<u8> {
    let count = frames.len() as u32;
    let mut out = 0x184d_2a5eu32.to_le_bytes().to_vec();
    out.extend((8 * count + 9).to_le_bytes());
    for (stored, content) in frames {
        out.extend(stored.to_le_bytes());
        out.extend(content.to_le_bytes());
    }
    out.extend(count.to_le_bytes());
    out.push(0);
    out.extend(0x8f92_eab1u32.to_le_bytes());
    out
}

/// Magic, descriptor and content size of a single-segment frame. RFC 8878 §3.1.1.1.
fn sized_header(len: u64) -> Vec<u8> {
    let mut out = MAGIC.to_le_bytes().to_vec();
    match len {
        0..=255 => out.extend([SINGLE_SEGMENT, len as u8]),
        256..=65_791 => {
            out.push(SINGLE_SEGMENT | 1 << 6);
            out.extend(((len - 256) as u16).to_le_bytes());
        }
        _ => {
            out.push(SINGLE_SEGMENT | 3 << 6);
            out.extend(len.to_le_bytes());
        }
    }
    out
}

fn raw(content: &[u8]) -> Vec<Block<'_>> {
    if content.is_empty() {
        return vec![Block::Raw(content)];
    }
    content.chunks(BLOCK_MAX).map(Block::Raw).collect()
}

fn blocks(out: &mut Vec<u8>, list: &[Block<'_>]) {
    for (at, block) in list.iter().enumerate() {
        let last = at + 1 == list.len();
        match block {
            Block::Raw(content) => {
                block_header(out, 0, content.len(), last);
                out.extend(*content);
            }
            Block::Rle(byte, len) => {
                block_header(out, 1, *len, last);
                out.push(*byte);
            }
        }
    }
}

fn block_header(out: &mut Vec<u8>, kind: u32, len: usize, last: bool) {
    let header = (len as u32) << 3 | kind << 1 | u32::from(last);
    out.extend(&header.to_le_bytes()[..3]);
}
