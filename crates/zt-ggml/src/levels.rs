//! The levels of blocks: their values before scales and minima.

use zt_manifest::ByteOrder;
use zt_manifest::memory::in_memory;

use crate::blocks::Blocks;
use crate::kernel::{half, single};
use crate::types::BlockType;

/// A field of a block, and the bytes with which it scales nothing.
type Neutral = (usize, &'static [u8]);

const ONE: &[u8] = &[0x00, 0x3c];
const ZERO: &[u8] = &[0, 0];
/// Eight scales of 1 and eight minima of 0, as K-quants pack them.
const SCALES_OF_K: &[u8] = &[1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1];

/// Where the scale of a whole block is.
#[derive(Clone, Copy)]
enum Scale {
    Half(usize),
    Single(usize),
    /// A power of two: half of E8M0.
    Exponent(usize),
}

impl BlockType {
    /// The scale, and what makes a block's values its levels. `None` for the types whose codes are places of a grid,
    /// which are several values at once, and for NVFP4, whose parts have no common scale.
    fn scaling(&self) -> Option<(Scale, &'static [Neutral])> {
        use Scale::{Exponent, Half, Single};
        Some(match self.name() {
            "Q4_0" | "Q5_0" | "Q8_0" | "Q8_1" | "Q1_0" | "Q2_0" | "IQ4_NL" => {
                (Half(0), &[(0, ONE)])
            }
            "Q4_1" | "Q5_1" => (Half(0), &[(0, ONE), (2, ZERO)]),
            "Q2_K" => (Half(80), &[(0, &[1; 16]), (80, ONE), (82, ZERO)]),
            // 33, less 32: the lower 4 bits are 1, the upper 2 are 2.
            "Q3_K" => (Half(108), &[(96, &[0x11; 8]), (104, &[0xaa; 4]), (108, ONE)]),
            "Q4_K" | "Q5_K" => (Half(0), &[(0, ONE), (2, ZERO), (4, SCALES_OF_K)]),
            "Q6_K" => (Half(208), &[(192, &[1; 16]), (208, ONE)]),
            "Q8_K" => (Single(0), &[(0, &[0, 0, 0x80, 0x3f])]),
            "IQ4_XS" => (Half(0), &[(0, ONE), (2, &[0xaa; 2]), (4, &[0x11; 4])]),
            "TQ1_0" => (Half(52), &[(52, ONE)]),
            "TQ2_0" => (Half(64), &[(64, ONE)]),
            "MXFP4" => (Exponent(0), &[(0, &[128])]),
            _ => return None,
        })
    }
}

impl Blocks<'_> {
    /// Calls `take` with the levels of each block as little-endian f32, and with its scale. Levels are integers: the
    /// values of a block whose scales are 1 and whose minima are 0. Without the scales of a block's parts, a scale is the
    /// one that all of the block shares.
    ///
    /// False, without a call, if the type has no levels, or if big-endian blocks of it are unsupported.
    ///
    /// ```
    /// use zt_ggml::{BlockType, Blocks};
    ///
    /// let mut block = vec![0x00, 0x38]; // The scale 0.5.
    /// block.extend(0..32);
    /// let q8_0 = BlockType::from_format("gguf.q8_0/1").unwrap();
    /// let blocks = Blocks::new(q8_0, [1, 32], &block[..])?;
    /// let has_levels = blocks.for_each_levels(|levels, scale| {
    ///     assert_eq!((f32::from_le_bytes(levels[31]), scale), (31.0, 0.5));
    /// });
    /// assert!(has_levels);
    /// # Ok::<(), zt_formats::Error>(())
    /// ```
    pub fn for_each_levels(&self, mut take: impl FnMut(&[[u8; 4]], f32)) -> bool {
        let (block_type, order) = (self.block_type(), self.byte_order());
        let Some((scale, neutral)) = block_type.scaling() else {
            return false;
        };
        if !block_type.is_known_in(order) {
            return false;
        }
        let block_len = in_memory(block_type.block_len());
        let mut levels = vec![[0; 4]; block_len];
        let mut block = Vec::new();
        for bytes in self.bytes().chunks_exact(in_memory(block_type.block_byte_len())) {
            block.clear();
            block.extend_from_slice(bytes);
            if order == ByteOrder::Big {
                block_type.swap(&mut block);
            }
            let scale = scale.of(&block).unwrap_or_default();
            for (at, bytes) in neutral {
                let field = block.get_mut(*at..).unwrap_or_default();
                field.iter_mut().zip(*bytes).for_each(|(into, byte)| *into = *byte);
            }
            block_type.dequantize(&block, &mut levels);
            take(&levels, scale);
        }
        true
    }
}

impl Scale {
    fn of(self, block: &[u8]) -> Option<f32> {
        Some(match self {
            Scale::Half(at) => half(*block.get(at..)?.first_chunk()?),
            Scale::Single(at) => single(*block.get(at..)?.first_chunk()?),
            Scale::Exponent(at) => (f32::from(*block.get(at)?) - 128.0).exp2(),
        })
    }
}
