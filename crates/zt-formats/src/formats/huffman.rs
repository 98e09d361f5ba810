//! Codes chunks of bytes by their frequency. Spec: formats/zt.planes-2.
//!
//! ```text
//! chunk   0 | the symbols
//!         1 | the only symbol
//!         2 | lengths of codes (128) | lengths of streams 0 to 2 (12) | 4 streams | 8 zeros
//! ```
//!
//! Nothing is searched for: each symbol has a code of whole bits. A decoder looks up as many symbols as
//! 11 bits hold, of four streams in turn, because each look-up waits for the one before in its stream.
#![deny(clippy::cast_possible_truncation)]

use crate::base::buffer::reserved;
use crate::base::{HuffmanFault, Result};
use crate::formats::huffman_code::{LONGEST, Lengths, SIZE, Table, codes, lengths};

const RAW: u8 = 0;
const ONE: u8 = 1;
const STREAMS: u8 = 2;

/// Streams of a chunk.
const COUNT: usize = 4;

/// Zeros behind the streams: a decoder reads 8 bytes at a time.
const PADDING: usize = 8;

/// The bytes of a chunk of streams without the streams.
const AROUND: usize = 1 + 128 + 12 + PADDING;

/// Symbols of every stream of a chunk but the last.
const fn per_stream(symbols: usize) -> usize {
    symbols.div_ceil(COUNT).next_multiple_of(64)
}

/// Bytes of the longest stream of so many symbols, and a store behind it.
const fn room_for(symbols: usize) -> usize {
    symbols.strict_mul(LONGEST as usize).div_ceil(8).strict_add(PADDING)
}

fn zeroed<T: Clone + Default>(len: usize) -> Result<Vec<T>> {
    let mut zeros = reserved(len)?;
    zeros.resize(len, T::default());
    Ok(zeros)
}

/// Codes chunks of symbols. It has the memory for one.
///
/// ```
/// use zt_formats::{HuffmanDecoder, HuffmanEncoder};
///
/// let symbols: Vec<u8> = (0..5000u32).map(|at| at.trailing_zeros() as u8).collect();
/// let mut chunk = Vec::new();
/// HuffmanEncoder::new()?.encode(&symbols, &mut chunk);
/// assert!(chunk.len() < 5000 / 3);
/// let mut decoded = vec![0; 5000];
/// HuffmanDecoder::new().decode(&chunk, &mut decoded)?;
/// assert_eq!(decoded, symbols);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct HuffmanEncoder {
    /// By two symbols, the second in the upper byte: their codes in the highest bits, the length in the
    /// lowest byte.
    pairs: Vec<u64>,
    /// For the streams.
    room: Vec<u8>,
}

impl HuffmanEncoder {
    /// Symbols of a chunk; the last one of a plane may have fewer.
    pub const CHUNK: usize = 1 << 18;

    /// An encoder, which takes 900 KB.
    ///
    /// # Errors
    ///
    /// Allocation.
    pub fn new() -> Result<Self> {
        Ok(HuffmanEncoder {
            pairs: zeroed(1 << 16)?,
            room: zeroed(COUNT.strict_mul(room_for(per_stream(Self::CHUNK))))?,
        })
    }

    /// Appends the chunk of at most [`HuffmanEncoder::CHUNK`] symbols, and returns its length: at most
    /// one byte more than the symbols.
    ///
    /// # Panics
    ///
    /// If there are more symbols.
    pub fn encode(&mut self, symbols: &[u8], out: &mut Vec<u8>) -> u32 {
        assert!(symbols.len() <= Self::CHUNK);
        let before = out.len();
        self.append(symbols, out);
        low_half(out.len().strict_sub(before) as u64)
    }

    fn append(&mut self, symbols: &[u8], out: &mut Vec<u8>) {
        let counts = counts(symbols);
        if let Some(symbol) = symbols.first()
            && symbols.len() > 1
            && counts.get(usize::from(*symbol)).is_some_and(|it| *it as usize == symbols.len())
        {
            out.extend([ONE, *symbol]);
            return;
        }
        let lengths = lengths(&counts);
        let bits = counts.iter().zip(lengths);
        let bits = bits.map(|(count, length)| u64::from(*count).strict_mul(length.into()));
        // Each stream may begin a byte more.
        let most = (bits.sum::<u64>() >> 3).strict_add(AROUND.strict_add(COUNT) as u64);
        if most > symbols.len() as u64 {
            out.push(RAW);
            out.extend_from_slice(symbols);
            return;
        }
        out.push(STREAMS);
        out.extend(lengths.as_chunks::<2>().0.iter().map(|[even, odd]| even | odd.wrapping_shl(4)));
        self.streams(symbols, &lengths, out);
        out.extend([0; PADDING]);
    }

    /// Appends the streams and their lengths.
    fn streams(&mut self, symbols: &[u8], lengths: &Lengths, out: &mut Vec<u8>) {
        /// With more symbols, codes of pairs take longer than they save.
        const WORTH_PAIRS: usize = 64;
        let codes = codes(lengths);
        let mut coded = [0u64; 256];
        for ((coded, code), length) in coded.iter_mut().zip(codes).zip(lengths) {
            let unused = u64::BITS.strict_sub(u32::from(*length));
            let code = u64::from(code).checked_shl(unused).unwrap_or_default();
            *coded = code | u64::from(*length);
        }
        let used: Vec<(usize, u64)> =
            (0usize..).zip(coded).filter(|(_, coded)| *coded > 0).collect();
        let has_pairs = used.len() <= WORTH_PAIRS;
        for (upper, second) in used.iter().filter(|_| has_pairs) {
            for (lower, first) in &used {
                if let Some(pair) = self.pairs.get_mut(upper.wrapping_shl(8) | lower) {
                    *pair = (first & !0xff).wrapping_shr(low_half(*second)) | second;
                    *pair = pair.wrapping_add(first & 0xff);
                }
            }
        }
        let m = per_stream(symbols.len());
        let mut parts = symbols.chunks(m);
        let mut rooms = self.room.chunks_mut(room_for(m));
        let mut streams: [Stream<'_>; COUNT] = std::array::from_fn(|_| {
            let place = rooms.next().unwrap_or_default();
            Stream { symbols: parts.next().unwrap_or_default(), place, len: 0 }
        });
        let single = |symbol: u8| coded.get(usize::from(symbol)).copied().unwrap_or_default();
        let pairs: Option<&[u64; 1 << 16]> = self.pairs.first_chunk().filter(|_| has_pairs);
        for two in streams.as_chunks_mut::<2>().0 {
            match pairs {
                Some(pairs) => encode_two(two, single, |bits, two| {
                    let pair = pairs.get(usize::from(u16::from_le_bytes(two)));
                    bits.push(pair.copied().unwrap_or_default());
                }),
                None => encode_two(two, single, |bits, two| {
                    two.into_iter().for_each(|symbol| bits.push(single(symbol)));
                }),
            }
        }
        for stream in streams.iter().take(COUNT - 1) {
            out.extend(low_half(stream.len as u64).to_le_bytes());
        }
        for stream in &streams {
            out.extend_from_slice(stream.place.get(..stream.len).unwrap_or_default());
        }
    }
}

/// How often each byte occurs. Equal neighbours are counted in different tables: a count would wait for
/// the one before.
fn counts(symbols: &[u8]) -> [u32; 256] {
    let mut tables = [[0u32; 256]; 8];
    let (groups, rest) = symbols.as_chunks::<8>();
    let mut count = |group: &[u8]| {
        for (table, symbol) in tables.iter_mut().zip(group) {
            if let Some(count) = table.get_mut(usize::from(*symbol)) {
                *count = count.wrapping_add(1);
            }
        }
    };
    groups.iter().for_each(|group| count(group));
    count(rest);
    let [mut sum, rest @ ..] = tables;
    for table in rest {
        sum.iter_mut().zip(table).for_each(|(sum, count)| *sum = sum.wrapping_add(count));
    }
    sum
}

/// A stream that is encoded.
struct Stream<'s> {
    symbols: &'s [u8],
    place: &'s mut [u8],
    /// Bytes that it has.
    len: usize,
}

/// Bits that do not fill a byte yet, in the highest bits. Those below mean nothing.
#[derive(Default)]
struct Bits {
    bits: u64,
    /// Their number in the lowest 6 bits. Those above mean nothing.
    have: u64,
}

impl Bits {
    /// Adds a code, whose length is in its lowest byte.
    #[inline(always)]
    fn push(&mut self, code: u64) {
        self.bits = self.bits.wrapping_shr(low_half(code)) | code;
        self.have = self.have.wrapping_add(code);
    }

    /// Writes whole bytes. There is room for 8.
    #[inline(always)]
    fn flush(&mut self, place: &mut [u8], len: &mut usize) {
        // Without bits, what is stored means nothing.
        let word = self.bits.wrapping_shr(low_half(self.have).wrapping_neg());
        if let Some(eight) = place.get_mut(*len..).and_then(|place| place.first_chunk_mut()) {
            *eight = word.to_le_bytes();
        }
        *len = len.wrapping_add((low_half(self.have) & 63).wrapping_shr(3) as usize);
        self.have &= 7;
    }
}

/// Encodes two streams in turn: each is a chain of instructions that wait for one another.
#[inline(always)]
fn encode_two(
    streams: &mut [Stream<'_>; 2],
    single: impl Fn(u8) -> u64,
    two: impl Fn(&mut Bits, [u8; 2]),
) {
    let [one, other] = streams;
    let groups = one.symbols.as_chunks::<4>().0.iter().zip(other.symbols.as_chunks::<4>().0);
    let done = groups.len().wrapping_mul(4);
    let (mut bits, mut other_bits) = (Bits::default(), Bits::default());
    let (mut len, mut other_len) = (0, 0);
    // At most 7 bits and four codes of 11.
    for ([a, b, c, d], [e, f, g, h]) in groups {
        two(&mut bits, [*a, *b]);
        two(&mut other_bits, [*e, *f]);
        two(&mut bits, [*c, *d]);
        two(&mut other_bits, [*g, *h]);
        bits.flush(one.place, &mut len);
        other_bits.flush(other.place, &mut other_len);
    }
    for (stream, mut bits, mut len) in [(one, bits, len), (other, other_bits, other_len)] {
        for symbol in stream.symbols.get(done..).unwrap_or_default() {
            bits.push(single(*symbol));
            bits.flush(stream.place, &mut len);
        }
        // What is left fills a byte with the zeros that were stored behind it.
        stream.len = len.wrapping_add(usize::from(bits.have > 0));
    }
}

/// Decodes chunks of symbols. It has the memory for the table of one.
pub struct HuffmanDecoder(Table);

impl Default for HuffmanDecoder {
    fn default() -> Self {
        Self::new()
    }
}

impl HuffmanDecoder {
    /// A decoder, which takes 32 KiB.
    #[must_use]
    pub fn new() -> Self {
        HuffmanDecoder(Table::new())
    }

    /// Decodes a chunk of as many symbols as `out` has room for. After an error they are unspecified.
    ///
    /// # Errors
    ///
    /// The rule that the chunk breaks.
    pub fn decode(&mut self, chunk: &[u8], out: &mut [u8]) -> Result<(), HuffmanFault> {
        match chunk {
            [RAW, symbols @ ..] if symbols.len() == out.len() => out.copy_from_slice(symbols),
            [ONE, symbol] => out.fill(*symbol),
            [STREAMS, rest @ ..] => return self.streams(rest, out),
            [] | [RAW | ONE, ..] => return Err(HuffmanFault::Length),
            _ => return Err(HuffmanFault::Kind),
        }
        Ok(())
    }

    fn streams(&mut self, rest: &[u8], out: &mut [u8]) -> Result<(), HuffmanFault> {
        let (nibbles, rest) = rest.split_first_chunk::<128>().ok_or(HuffmanFault::Length)?;
        let (lens, data) = rest.split_first_chunk::<12>().ok_or(HuffmanFault::Length)?;
        let (coded, padding) = data.split_last_chunk().ok_or(HuffmanFault::Length)?;
        if *padding != [0u8; PADDING] {
            return Err(HuffmanFault::Padding);
        }
        let mut lengths = [0; 256];
        for (two, nibbles) in lengths.as_chunks_mut::<2>().0.iter_mut().zip(nibbles) {
            *two = [nibbles & 15, nibbles >> 4];
        }
        self.0.fill(&lengths).ok_or(HuffmanFault::Code)?;
        let mut parts = out.chunks_mut(per_stream(out.len()).max(1));
        let mut streams: [Decoded<'_>; COUNT] = std::array::from_fn(|_| Decoded {
            bit: 0,
            end: coded.len(),
            at: 0,
            out: parts.next().unwrap_or_default(),
        });
        let mut start = 0usize;
        for (stream, len) in streams.iter_mut().zip(lens.as_chunks::<4>().0) {
            let end = start.checked_add(u32::from_le_bytes(*len) as usize);
            let end = end.filter(|end| *end <= coded.len()).ok_or(HuffmanFault::Stream)?;
            (stream.bit, stream.end, start) = (start.strict_mul(8), end, end);
        }
        let [.., last] = &mut streams;
        last.bit = start.strict_mul(8);
        decode_streams(self.0.entries(), &lengths, data, &mut streams)
    }
}

/// A stream that is decoded.
struct Decoded<'s> {
    /// The next bit, counted from the beginning of all streams.
    bit: usize,
    /// The end in bytes.
    end: usize,
    /// Symbols that it gave.
    at: usize,
    out: &'s mut [u8],
}

/// Look-ups until the next bits are loaded: 7 bits are of the byte before.
const LOOKUPS: usize = 5;

/// Symbols of so many look-ups at most.
const MOST: usize = 6 * LOOKUPS;

/// What they are stored to: an index of 8 bits, and 8 bytes.
const PLACE: usize = 256 + 8;

/// `data` has 8 bytes behind the streams.
#[inline(never)]
fn decode_streams(
    table: &[u64; SIZE],
    lengths: &Lengths,
    data: &[u8],
    streams: &mut [Decoded<'_>; COUNT],
) -> Result<(), HuffmanFault> {
    let load = |bit: usize| {
        let bytes = data.get(bit >> 3..).and_then(|data| data.first_chunk());
        bytes.map(|bytes| u64::from_le_bytes(*bytes)).ok_or(HuffmanFault::Stream)
    };
    let entry = |bits: u64| table.get(low_half(bits) as usize & (SIZE - 1)).copied();
    let entry = |bits: u64| entry(bits).unwrap_or_default();
    loop {
        // So many rounds leave room for what a look-up stores at most.
        let left = streams.iter().map(|stream| stream.out.len().saturating_sub(stream.at));
        let left = left.min().unwrap_or_default();
        let rounds = left.saturating_sub(PLACE - MOST) / MOST;
        if rounds == 0 {
            break;
        }
        for _ in 0..rounds {
            let mut words = [0; COUNT];
            // The bits that were used in the lowest byte, symbols in the next. Those above mean nothing.
            let mut used = [0u64; COUNT];
            for ((word, used), stream) in words.iter_mut().zip(&mut used).zip(&*streams) {
                *word = load(stream.bit)?;
                *used = (stream.bit & 7) as u64;
            }
            let places = streams.each_mut().map(|stream| {
                let place = stream.out.get_mut(stream.at..);
                place.and_then(|place| place.first_chunk_mut::<PLACE>())
            });
            let [Some(a), Some(b), Some(c), Some(d)] = places else {
                return Err(HuffmanFault::Stream);
            };
            let mut places = [a, b, c, d];
            for _ in 0..LOOKUPS {
                for ((word, used), place) in words.iter().zip(&mut used).zip(&mut places) {
                    let entry = entry(word.wrapping_shr(low_half(*used)));
                    let [_, symbols, ..] = used.to_le_bytes();
                    let place = place.get_mut(usize::from(symbols)..);
                    if let Some(place) = place.and_then(|place| place.first_chunk_mut()) {
                        *place = (entry >> 16).to_le_bytes();
                    }
                    *used = used.wrapping_add(entry);
                }
            }
            for (used, stream) in used.iter().zip(&mut *streams) {
                let [bits, symbols, ..] = used.to_le_bytes();
                stream.bit = (stream.bit & !7).wrapping_add(usize::from(bits));
                stream.at = stream.at.wrapping_add(usize::from(symbols));
            }
        }
    }
    for stream in streams {
        let Decoded { bit, end, at, out } = stream;
        while let Some(place) = out.get_mut(*at..).filter(|place| !place.is_empty()) {
            let found = entry(load(*bit)?.wrapping_shr(low_half(*bit as u64) & 7));
            let [bits, symbols, first, ..] = found.to_le_bytes();
            let (bits, symbols) = match place.first_chunk_mut() {
                Some(place) => {
                    *place = (found >> 16).to_le_bytes();
                    (bits, symbols)
                }
                None => {
                    place.iter_mut().take(1).for_each(|place| *place = first);
                    (lengths.get(usize::from(first)).copied().unwrap_or_default(), 1)
                }
            };
            *bit = bit.wrapping_add(usize::from(bits));
            *at = at.wrapping_add(usize::from(symbols));
        }
        let rest = *bit & 7;
        let last = end.checked_sub(1).and_then(|last| data.get(last)).copied().unwrap_or_default();
        if bit.div_ceil(8) != *end {
            return Err(HuffmanFault::Stream);
        }
        if rest > 0 && last.wrapping_shr(low_half(rest as u64)) != 0 {
            return Err(HuffmanFault::Padding);
        }
    }
    Ok(())
}

#[expect(clippy::cast_possible_truncation, reason = "the rest is cut off on purpose")]
const fn low_half(word: u64) -> u32 {
    word as u32
}
