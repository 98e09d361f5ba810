//! Numbers that are random enough for compressors, and the same on every machine.

/// A xorshift generator (Marsaglia 2003, with the multiplication of xorshift64*). Cheap, and its
/// upper bits, which are all that is used of it, have no pattern that zstd could find.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// A generator whose numbers depend on `seed` and `stream` alone.
    #[must_use]
    pub fn new(seed: u64, stream: u64) -> Self {
        // SplitMix64, so that neighbouring seeds have nothing in common.
        let mut mixed = seed
            .wrapping_add(stream.wrapping_mul(0x9E37_79B9_7F4A_7C15))
            .wrapping_add(0x9E37_79B9_7F4A_7C15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        Random((mixed ^ (mixed >> 31)) | 1)
    }

    /// 64 bits. Only the upper 32 are random enough.
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number in `0..bound`; `bound` is at most 2^32.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((self.bits() >> 32) * bound) >> 32
    }

    /// A number in (0, 1], in steps of 2^-24.
    pub fn unit(&mut self) -> f32 {
        ((self.bits() >> 40) + 1) as f32 / (1u32 << 24) as f32
    }

    /// Two independent numbers with mean 0 and standard deviation 1 (Box and Muller 1958).
    pub fn normal(&mut self) -> [f32; 2] {
        let radius = (-2.0 * self.unit().ln()).sqrt();
        let (sin, cos) = (self.unit() * std::f32::consts::TAU).sin_cos();
        [radius * cos, radius * sin]
    }
}
