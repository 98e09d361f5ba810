//! The types of blocks: numbers, names, sizes and decoders.

use std::fmt;

use zt_manifest::ByteOrder;

use crate::codebook;
use crate::grid;
use crate::k;
use crate::kernel::each;
use crate::quantize::{self, Quantize};
use crate::simple;

/// A quantized type of ggml: a block of a fixed number of bytes holds a fixed number of values. See
/// [`BLOCK_TYPES`].
#[derive(Clone, Copy)]
pub struct BlockType {
    id: u32,
    name: &'static str,
    format: &'static str,
    values: u16,
    bytes: u16,
    words: Option<&'static [Words]>,
    decode: fn(&[u8], &mut [[u8; 4]]),
}

/// Neighbouring fields of a block that are in the file's byte order.
#[derive(Clone, Copy)]
struct Words {
    at: u16,
    width: u16,
    count: u16,
}

const fn words(at: u16, width: u16, count: u16) -> Words {
    Words { at, width, count }
}

/// The fields that ggml declares wider than a byte, for each type. `None` if ggml declares bytes
/// and reads them as words: their big-endian form is undefined.
mod order {
    use super::{Words, words};

    pub(super) type Order = Option<&'static [Words]>;

    pub(super) const NONE: Order = Some(&[]);
    pub(super) const UNDEFINED: Order = None;
    /// One f16 first.
    pub(super) const D: Order = Some(&[words(0, 2, 1)]);
    /// Two f16, or an f16 and a u16, first.
    pub(super) const D_M: Order = Some(&[words(0, 2, 2)]);
    pub(super) const Q2_K: Order = Some(&[words(80, 2, 2)]);
    pub(super) const Q6_K: Order = Some(&[words(208, 2, 1)]);
    pub(super) const Q8_K: Order = Some(&[words(0, 4, 1), words(260, 2, 16)]);
    pub(super) const IQ2_XS: Order = Some(&[words(0, 2, 33)]);
    pub(super) const IQ1_S: Order = Some(&[words(0, 2, 1), words(34, 2, 8)]);
    pub(super) const TQ1_0: Order = Some(&[words(52, 2, 1)]);
    pub(super) const TQ2_0: Order = Some(&[words(64, 2, 1)]);
}

macro_rules! block_types {
    ($($id:literal $name:ident $lower:ident $values:literal/$bytes:literal $words:expr, $decode:expr;)*) => {
        [$(BlockType {
            id: $id,
            name: stringify!($name),
            format: concat!("gguf.", stringify!($lower), "/1"),
            values: $values,
            bytes: $bytes,
            words: $words,
            decode: |bytes, out| each::<$bytes, $values>(bytes, out, $decode),
        },)*]
    };
}

/// The supported block types, by number.
///
/// Q8_1 has the length of ggml's C code (`gguf-py` has 40 bytes). Q2_0 is ggml's since July 2026;
/// forks used its number for other blocks.
#[rustfmt::skip]
pub static BLOCK_TYPES: [BlockType; 27] = block_types! {
     2 Q4_0    q4_0     32/18   order::D,         simple::q4_0;
     3 Q4_1    q4_1     32/20   order::D_M,       simple::q4_1;
     6 Q5_0    q5_0     32/22   order::UNDEFINED, simple::q5_0;
     7 Q5_1    q5_1     32/24   order::UNDEFINED, simple::q5_1;
     8 Q8_0    q8_0     32/34   order::D,         simple::q8_0;
     9 Q8_1    q8_1     32/36   order::D_M,       simple::q8_1;
    10 Q2_K    q2_k    256/84   order::Q2_K,      k::q2_k;
    11 Q3_K    q3_k    256/110  order::UNDEFINED, k::q3_k;
    12 Q4_K    q4_k    256/144  order::D_M,       k::q4_k;
    13 Q5_K    q5_k    256/176  order::D_M,       k::q5_k;
    14 Q6_K    q6_k    256/210  order::Q6_K,      k::q6_k;
    15 Q8_K    q8_k    256/292  order::Q8_K,      simple::q8_k;
    16 IQ2_XXS iq2_xxs 256/66   order::UNDEFINED, grid::iq2_xxs;
    17 IQ2_XS  iq2_xs  256/74   order::IQ2_XS,    grid::iq2_xs;
    18 IQ3_XXS iq3_xxs 256/98   order::UNDEFINED, grid::iq3_xxs;
    19 IQ1_S   iq1_s   256/50   order::IQ1_S,     grid::iq1_s;
    20 IQ4_NL  iq4_nl   32/18   order::D,         codebook::iq4_nl;
    21 IQ3_S   iq3_s   256/110  order::D,         grid::iq3_s;
    22 IQ2_S   iq2_s   256/82   order::D,         grid::iq2_s;
    23 IQ4_XS  iq4_xs  256/136  order::D_M,       codebook::iq4_xs;
    29 IQ1_M   iq1_m   256/56   order::UNDEFINED, grid::iq1_m;
    34 TQ1_0   tq1_0   256/54   order::TQ1_0,     simple::tq1_0;
    35 TQ2_0   tq2_0   256/66   order::TQ2_0,     simple::tq2_0;
    39 MXFP4   mxfp4    32/17   order::NONE,      codebook::mxfp4;
    40 NVFP4   nvfp4    64/36   order::NONE,      codebook::nvfp4;
    41 Q1_0    q1_0    128/18   order::D,         simple::q1_0;
    42 Q2_0    q2_0     64/18   order::D,         simple::q2_0;
};

impl BlockType {
    /// The type with this number in GGUF files.
    pub fn from_id(id: u32) -> Option<&'static BlockType> {
        BLOCK_TYPES.iter().find(|known| known.id == id)
    }

    /// The type whose objects have this format, such as `gguf.q4_k/1`.
    pub fn from_format(format: &str) -> Option<&'static BlockType> {
        BLOCK_TYPES.iter().find(|known| known.format == format)
    }

    /// Its number in GGUF files.
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// Its name in ggml, such as `Q4_K`.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The format of its objects, such as `gguf.q4_k/1`.
    pub const fn format(&self) -> &'static str {
        self.format
    }

    /// The number of values in a block.
    pub const fn block_len(&self) -> u64 {
        self.values as u64
    }

    /// The length of a block in bytes.
    pub const fn block_byte_len(&self) -> u64 {
        self.bytes as u64
    }

    /// The length of `count` values in bytes; `None` if they are not whole blocks, or too many.
    pub fn byte_len(&self, count: u64) -> Option<u64> {
        let blocks = count.checked_div(self.block_len())?;
        let is_whole = count.is_multiple_of(self.block_len());
        blocks.checked_mul(self.block_byte_len()).filter(|_| is_whole)
    }

    /// Whether blocks in this byte order are supported. All little-endian ones are.
    pub const fn is_known_in(&self, order: ByteOrder) -> bool {
        matches!(order, ByteOrder::Little) || self.words.is_some()
    }

    /// Whether the byte order matters. Some types consist of bytes only.
    pub fn has_words(&self) -> bool {
        self.words.is_none_or(|words| !words.is_empty())
    }

    /// Converts whole blocks from one byte order to the other. Does nothing if the type has no
    /// defined big-endian form.
    pub fn swap(&self, blocks: &mut [u8]) {
        for block in blocks.chunks_exact_mut(usize::from(self.bytes)) {
            for words in self.words.unwrap_or_default() {
                let fields = block.get_mut(usize::from(words.at)..).unwrap_or_default();
                let fields = fields.chunks_exact_mut(usize::from(words.width));
                fields.take(usize::from(words.count)).for_each(<[u8]>::reverse);
            }
        }
    }

    /// Decodes little-endian `blocks` to little-endian f32, as many whole blocks as `blocks` and
    /// `out` have.
    pub fn dequantize(&self, blocks: &[u8], out: &mut [[u8; 4]]) {
        (self.decode)(blocks, out);
    }
}

/// Quantizing.
impl BlockType {
    /// The types that [`BlockType::quantize`] makes: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0 and IQ4_NL.
    pub fn quantized() -> impl Iterator<Item = &'static BlockType> {
        BLOCK_TYPES.iter().filter(|known| known.quantizer().is_some())
    }

    /// Appends little-endian blocks of `values` to `out`, as many as are whole; none if the type is not of
    /// [`BlockType::quantized`].
    ///
    /// The bytes are those of `gguf-py` 0.19, and for IQ4_NL, which that does not write, of ggml's
    /// `quantize_row_iq4_nl_ref`. The values are finite.
    ///
    /// ```
    /// use zt_ggml::BlockType;
    ///
    /// let q8_0 = BlockType::from_format("gguf.q8_0/1").unwrap();
    /// let mut blocks = Vec::new();
    /// q8_0.quantize(&[127.0; 32], &mut blocks);
    /// assert_eq!((blocks.len(), blocks[2]), (34, 127));
    /// ```
    pub fn quantize(&self, values: &[f32], out: &mut Vec<u8>) {
        if let Some(quantize) = self.quantizer() {
            let (blocks, _) = values.as_chunks();
            blocks.iter().for_each(|block| quantize(block, out));
        }
    }

    fn quantizer(&self) -> Option<Quantize> {
        Some(match self.name {
            "Q4_0" => quantize::q4_0,
            "Q4_1" => quantize::q4_1,
            "Q5_0" => quantize::q5_0,
            "Q5_1" => quantize::q5_1,
            "Q8_0" => quantize::q8_0,
            "IQ4_NL" => quantize::iq4_nl,
            _ => return None,
        })
    }
}

impl PartialEq for BlockType {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for BlockType {}

impl fmt::Debug for BlockType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Display for BlockType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::BLOCK_TYPES;

    #[test]
    fn names_and_formats_are_the_same_words() {
        for block_type in &BLOCK_TYPES {
            let lower = block_type.name.to_ascii_lowercase();
            assert_eq!(block_type.format, format!("gguf.{lower}/1"));
        }
        assert!(BLOCK_TYPES.is_sorted_by_key(|block_type| block_type.id));
    }

    #[test]
    fn words_lie_within_their_block_and_swapping_twice_changes_nothing() {
        for block_type in &BLOCK_TYPES {
            for words in block_type.words.unwrap_or_default() {
                assert!(words.at + words.width * words.count <= block_type.bytes);
            }
            let block: Vec<u8> = (0..=255).cycle().take(usize::from(block_type.bytes)).collect();
            let mut swapped = block.clone();
            block_type.swap(&mut swapped);
            let has_words = block_type.words.is_some_and(|words| !words.is_empty());
            assert_eq!(swapped != block, has_words, "{block_type}");
            block_type.swap(&mut swapped);
            assert!(swapped == block);
        }
    }
}
