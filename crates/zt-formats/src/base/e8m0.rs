//! `f8_e8m0fnu` of spec §7.2: a power of two, the scale of a block in OCP's microscaling formats.

/// `f8_e8m0fnu`: 8 bits of exponent, and nothing else. The value is 2^(code - 127), and the code 255 is NaN.
///
/// There is no sign, no zero and no infinity. Equality compares codes: NaN equals itself. Spec: §7.2.
#[derive(Clone, Copy, PartialEq, Eq, Hash, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct F8E8M0Fnu(u8);

impl F8E8M0Fnu {
    /// The value with this code.
    pub const fn from_bits(code: u8) -> Self {
        Self(code)
    }

    /// The code.
    pub const fn to_bits(self) -> u8 {
        self.0
    }

    /// The nearest value, ties to the larger one. NaN for zero, negative values, and
    /// values that round to more than the largest one. Other positive values below the least one become it.
    pub const fn from_f32(value: f32) -> Self {
        /// The mantissa of 1.5, and the bits of 1.5 times the least value.
        const HALF: u32 = 1 << 22;
        const LEAST_TIE: u32 = HALF | 1 << 21;
        let bits = value.to_bits();
        Self(match bits {
            1..0x80_0000 => (bits >= LEAST_TIE) as u8,
            0x80_0000..0x7f80_0000 => (bits.strict_add(HALF) >> 23).to_le_bytes()[0],
            _ => 255,
        })
    }

    /// The value, exactly. The least one is subnormal in an f32.
    pub const fn to_f32(self) -> f32 {
        match self.0 {
            0 => f32::from_bits(1 << 22),
            255 => f32::NAN,
            exponent => f32::from_bits((exponent as u32) << 23),
        }
    }

    /// Whether this is the code of NaN.
    pub const fn is_nan(self) -> bool {
        self.0 == 255
    }
}

impl From<F8E8M0Fnu> for f32 {
    fn from(value: F8E8M0Fnu) -> f32 {
        value.to_f32()
    }
}

impl std::fmt::Debug for F8E8M0Fnu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(&self.to_f32(), f)
    }
}

impl std::fmt::Display for F8E8M0Fnu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(&self.to_f32(), f)
    }
}
