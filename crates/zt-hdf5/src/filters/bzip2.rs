//! The filter bzip2.
//!
//! ```text
//! "BZh" level   blocks: magic, crc, origin, used bytes, selectors, code lengths, symbols   end: magic, crc
//! ```
//!
//! The symbols of a block are Huffman codes of one of up to six tables, which changes every 50 symbols. They
//! stand for places in a list of bytes that moves each found byte to its front, and for runs of the first one.
//! That gives the last column of the sorted rotations of the block. In the block itself, a byte that comes
//! four times is followed by the number of its further repetitions.
//!
//! Blocks that bzip2 0.9.0 randomised are refused. This decoder is our own: `libbz2-rs-sys` is a translation
//! of the library's C, with its pointers.
//!
//! Reference: `decompress.c` and `huffman.c` of bzip2 1.0.8.

use std::iter::repeat_n;

/// The longest code.
const CODE_MAX: usize = 20;

/// The decompressed bytes; `None` if `bytes` are invalid, or give more than `limit` bytes.
pub(super) fn decompress(bytes: &[u8], limit: usize) -> Option<Vec<u8>> {
    const BLOCK: u64 = 0x3141_5926_5359;
    const END: u64 = 0x1772_4538_5090;
    const LEVEL: usize = 100_000;
    let [b'B', b'Z', b'h', level @ b'1'..=b'9', rest @ ..] = bytes else {
        return None;
    };
    let column_max = LEVEL.checked_mul(level.checked_sub(b'0')?.into())?;
    let mut bits = Bits {
        rest,
        held: 0,
        count: 0,
    };
    let (mut out, mut checked) = (Vec::new(), 0u32);
    loop {
        let magic = u64::from(bits.take(24)?) << 24 | u64::from(bits.take(24)?);
        let expected = bits.take(32)?;
        match magic {
            BLOCK => {
                let start = out.len();
                block(&mut bits, column_max, limit, &mut out)?;
                if crc(out.get(start..)?) != expected {
                    return None;
                }
                checked = checked.rotate_left(1) ^ expected;
            }
            END => return (checked == expected).then_some(out),
            _ => return None,
        }
    }
}

/// Decodes a block.
fn block(bits: &mut Bits<'_>, column_max: usize, limit: usize, out: &mut Vec<u8>) -> Option<()> {
    let is_randomised = bits.take(1)? == 1;
    let origin = usize::try_from(bits.take(24)?).ok()?;
    if is_randomised {
        return None;
    }
    let used = used(bits)?;
    let (selectors, tables) = tables(bits, used.len())?;
    let column = column(bits, used, &selectors, &tables, column_max)?;

    // Each byte of the column is followed by the one at the place of its equal in the sorted column.
    let mut starts = [0usize; 256];
    for byte in &column {
        let count = starts.get_mut(usize::from(*byte))?;
        *count = count.checked_add(1)?;
    }
    let mut start = 0usize;
    for count in &mut starts {
        start = start.checked_add(std::mem::replace(count, start))?;
    }
    let mut following = vec![0; column.len()];
    for (at, byte) in column.iter().enumerate() {
        let place = starts.get_mut(usize::from(*byte))?;
        *following.get_mut(*place)? = at;
        *place = place.checked_add(1)?;
    }
    let mut at = *following.get(origin)?;
    let (mut last, mut same) = (0, 0u8);
    for _ in 0..column.len() {
        let byte = *column.get(at)?;
        at = *following.get(at)?;
        if same == 4 {
            out.extend(repeat_n(last, byte.into()));
            same = 0;
        } else {
            same = if byte == last { same.strict_add(1) } else { 1 };
            last = byte;
            out.push(byte);
        }
        if out.len() > limit {
            return None;
        }
    }
    Some(())
}

/// The bytes that a block has, ascending.
fn used(bits: &mut Bits<'_>) -> Option<Vec<u8>> {
    let groups = bits.take(16)?;
    let mut used = Vec::new();
    for group in 0..16u8 {
        let is_used = groups << group & 0x8000 != 0;
        let members = if is_used { bits.take(16)? } else { 0 };
        let of_group = (0..16u8).filter(|at| members << at & 0x8000 != 0);
        used.extend(of_group.map(|at| group << 4 | at));
    }
    (!used.is_empty()).then_some(used)
}

/// The place of the table of every 50 symbols, and the tables.
fn tables(bits: &mut Bits<'_>, used: usize) -> Option<(Vec<usize>, Vec<Table>)> {
    let count = usize::try_from(bits.take(3)?).ok()?;
    let mut order = [0, 1, 2, 3, 4, 5];
    let order = order.get_mut(..count)?;
    let mut selectors = Vec::new();
    for _ in 0..bits.take(15)? {
        let mut at = 0usize;
        while bits.take(1)? == 1 {
            at = at.checked_add(1)?;
        }
        order.get_mut(..=at)?.rotate_right(1);
        selectors.push(*order.first()?);
    }
    let mut tables = Vec::new();
    for _ in 0..count {
        let mut len = usize::try_from(bits.take(5)?).ok()?;
        let mut lens = Vec::new();
        // A symbol more for runs, and one for the end.
        for _ in 0..used.checked_add(2)? {
            while bits.take(1)? == 1 {
                len = match bits.take(1)? {
                    0 => len.checked_add(1)?,
                    _ => len.checked_sub(1)?,
                };
            }
            lens.push(Some(len).filter(|len| (1..=CODE_MAX).contains(len))?);
        }
        tables.push(Table::new(&lens)?);
    }
    Some((selectors, tables))
}

/// Decodes the symbols of a block, up to the one of the end.
fn column(
    bits: &mut Bits<'_>,
    mut front: Vec<u8>,
    selectors: &[usize],
    tables: &[Table],
    limit: usize,
) -> Option<Vec<u8>> {
    const GROUP: usize = 50;
    let end = front.len().checked_add(1)?;
    let mut column = Vec::new();
    // A run is a number in which the digits are 1 and 2, the lowest first.
    let (mut run, mut weight) = (0usize, 1usize);
    for selector in selectors
        .iter()
        .flat_map(|selector| repeat_n(*selector, GROUP))
    {
        let symbol = tables.get(selector)?.symbol(bits)?;
        if symbol < 2 {
            let digit = symbol.checked_add(1)?;
            run = run.checked_add(weight.checked_mul(digit)?)?;
            weight = weight.checked_mul(2)?;
            if run > limit {
                return None;
            }
            continue;
        }
        column.extend(repeat_n(*front.first()?, run));
        (run, weight) = (0, 1);
        if symbol == end {
            return (column.len() <= limit).then_some(column);
        }
        front.get_mut(..symbol)?.rotate_right(1);
        column.push(*front.first()?);
        if column.len() > limit {
            return None;
        }
    }
    None
}

/// A canonical Huffman code.
struct Table {
    /// The number of codes of each length.
    counts: [usize; CODE_MAX + 1],
    /// By length, then by number.
    symbols: Vec<usize>,
}

impl Table {
    fn new(lens: &[usize]) -> Option<Self> {
        let mut counts = [0usize; CODE_MAX + 1];
        for len in lens {
            let count = counts.get_mut(*len)?;
            *count = count.checked_add(1)?;
        }
        let mut symbols: Vec<usize> = (0..lens.len()).collect();
        symbols.sort_by_key(|symbol| lens.get(*symbol));
        Some(Table { counts, symbols })
    }

    fn symbol(&self, bits: &mut Bits<'_>) -> Option<usize> {
        // The code so far, the first code of its length, and the symbol of that code.
        let (mut code, mut first, mut place) = (0usize, 0usize, 0usize);
        for count in self.counts.iter().skip(1) {
            code = code << 1 | usize::try_from(bits.take(1)?).ok()?;
            first <<= 1;
            let at = code.checked_sub(first)?;
            if at < *count {
                return self.symbols.get(place.checked_add(at)?).copied();
            }
            first = first.checked_add(*count)?;
            place = place.checked_add(*count)?;
        }
        None
    }
}

/// Bits, the highest of a byte first.
struct Bits<'b> {
    rest: &'b [u8],
    held: u64,
    /// Bits of `held`, the lowest ones.
    count: u32,
}

impl Bits<'_> {
    /// Takes up to 32 bits.
    fn take(&mut self, count: u32) -> Option<u32> {
        while self.count < count {
            self.held = self.held << 8 | u64::from(*self.rest.split_off_first()?);
            self.count = self.count.strict_add(8);
        }
        self.count = self.count.strict_sub(count);
        let taken = self.held.checked_shr(self.count)?;
        self.held ^= taken.checked_shl(self.count)?;
        u32::try_from(taken).ok()
    }
}

/// The checksum of a block: CRC-32 with the highest bit first.
fn crc(bytes: &[u8]) -> u32 {
    const POLYNOMIAL: u32 = 0x04C1_1DB7;
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        let crc = crc ^ u32::from(*byte) << 24;
        (0..8).fold(crc, |crc, _| {
            let carried = if crc >> 31 == 1 { POLYNOMIAL } else { 0 };
            crc << 1 ^ carried
        })
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, reason = "tests")]
    use super::*;

    #[test]
    fn the_checksum_is_that_of_bzip2() {
        // CRC-32/BZIP2 in the catalogue of parametrised CRC algorithms.
        assert_eq!(crc(b"123456789"), 0xFC89_1918);
    }

    /// `bz2.compress(b"banana bandana", 1)` of Python.
    const TEXT: &[u8] = &[
        0x42, 0x5A, 0x68, 0x31, 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, 0x7C, 0xD5, 0x83, 0x4B, 0x00,
        0x00, 0x03, 0x91, 0x00, 0x40, 0x00, 0x34, 0x01, 0x20, 0x00, 0x21, 0x29, 0xA6, 0xD0, 0x66,
        0x82, 0x3C, 0xA5, 0x5F, 0x0C, 0x2E, 0xE4, 0x8A, 0x70, 0xA1, 0x20, 0xF9, 0xAB, 0x06, 0x96,
    ];
    /// `bz2.compress(bytes(1000) + b"ababab")`.
    const RUN: &[u8] = &[
        0x42, 0x5A, 0x68, 0x39, 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, 0xD1, 0x39, 0xE4, 0xFF, 0x00,
        0x00, 0x01, 0xC1, 0x01, 0xC0, 0x00, 0x30, 0x00, 0x00, 0x80, 0x00, 0x08, 0x20, 0x00, 0x21,
        0x24, 0x6D, 0x06, 0x68, 0x19, 0x7C, 0x27, 0x0B, 0x28, 0x61, 0x77, 0x24, 0x53, 0x85, 0x09,
        0x0D, 0x13, 0x9E, 0x4F, 0xF0,
    ];
    /// `bz2.compress(b"")`.
    const EMPTY: &[u8] = &[
        0x42, 0x5A, 0x68, 0x39, 0x17, 0x72, 0x45, 0x38, 0x50, 0x90, 0x00, 0x00, 0x00, 0x00,
    ];

    #[test]
    fn streams_are_decompressed_up_to_the_limit() {
        assert_eq!(
            decompress(TEXT, 14).as_deref(),
            Some(&b"banana bandana"[..])
        );
        assert_eq!(decompress(TEXT, 13), None);
        let run = [&[0; 1000][..], b"ababab"].concat();
        assert_eq!(decompress(RUN, 1006), Some(run));
        assert_eq!(decompress(RUN, 999), None);
        assert_eq!(decompress(EMPTY, 0), Some(vec![]));
    }

    #[test]
    fn every_cut_and_every_changed_byte_is_noticed() {
        for at in 0..TEXT.len() {
            assert_eq!(decompress(&TEXT[..at], 100), None, "cut at {at}");
            let mut changed = TEXT.to_vec();
            changed[at] ^= 0x10;
            let found = decompress(&changed, 100);
            // The level, and bits that fill the last byte, change nothing.
            assert!(
                found.is_none() || found.as_deref() == Some(b"banana bandana"),
                "{at}"
            );
        }
    }
}
