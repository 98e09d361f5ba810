//! The four 8-bit floating-point types of spec §7.2, as newtypes of their codes.
//!
//! | type | exponent, mantissa | bias | largest | infinities | NaN codes | negative zero |
//! | --- | --- | --- | --- | --- | --- | --- |
//! | [`F8E4M3Fn`] | 4, 3 | 7 | 448 | no | `7f`, `ff` | yes |
//! | [`F8E5M2`] | 5, 2 | 15 | 57344 | yes | `7d`-`7f`, `fd`-`ff` | yes |
//! | [`F8E4M3FnUz`] | 4, 3 | 8 | 240 | no | `80` | no |
//! | [`F8E5M2FnUz`] | 5, 2 | 16 | 57344 | no | `80` | no |
//!
//! OCP's 8-bit floating point specification defines the first two (`fn`: finite, no infinities), and AMD the others (`uz`:
//! unsigned zero). Conversions give the same bits as `ml_dtypes`; `tests/fp8.rs` compares them at every tie.
#![expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "a code has 8 bits and a table 256 entries; the layouts, which are constants here, keep every shift below 32"
)]

/// The parameters of a type of 8 bits or less.
pub(crate) struct Layout {
    mantissa_bits: u32,
    bias: i32,
    /// The largest finite magnitude.
    max_code: u32,
    /// The code of infinities and of magnitudes beyond `max_code`.
    overflow: u8,
    /// NaN without its sign.
    nan: u8,
    /// Whether `80` is NaN and zero has no sign.
    unsigned_zero: bool,
}

// The bits of the mantissa, the bias, and the codes: the largest, of an overflow, of NaN.
const E4M3FN: Layout = Layout::of(3, 7, [0x7e, 0x7f, 0x7f]);
const E5M2: Layout = Layout::of(2, 15, [0x7b, 0x7c, 0x7e]);
const E4M3FNUZ: Layout = Layout::of(3, 8, [0x7f, 0x80, 0x80]);
const E5M2FNUZ: Layout = Layout::of(2, 16, [0x7f, 0x80, 0x80]);

impl Layout {
    const fn of(mantissa_bits: u32, bias: i32, [max_code, overflow, nan]: [u8; 3]) -> Self {
        Layout {
            mantissa_bits,
            bias,
            max_code: max_code as u32,
            overflow,
            nan,
            unsigned_zero: nan == 0x80,
        }
    }

    /// A type without infinities and NaN. A code of less than 8 bits is decoded with its sign in the
    /// highest bit of a byte.
    pub(crate) const fn finite(mantissa_bits: u32, bias: i32) -> Self {
        Layout::of(mantissa_bits, bias, [0x7f, 0x7f, 0x7f])
    }

    /// The values of all 256 codes, each exact as an f32.
    const fn table(&self) -> [f32; 256] {
        let mut table = [0.0; 256];
        let mut code = 0;
        while code < 256 {
            table[code as usize] = self.decode(code);
            code += 1;
        }
        table
    }

    pub(crate) const fn decode(&self, code: u32) -> f32 {
        let sign = (code & 0x80) << 24;
        let magnitude = code & 0x7f;
        if self.unsigned_zero && code == 0x80 {
            return f32::from_bits(0xffc0_0000);
        }
        if magnitude > self.max_code {
            let infinite = self.overflow != self.nan && magnitude == self.overflow as u32;
            return f32::from_bits(sign | if infinite { 0x7f80_0000 } else { 0x7fc0_0000 });
        }
        let exponent = (magnitude >> self.mantissa_bits) as i32;
        let mantissa = magnitude & ((1 << self.mantissa_bits) - 1);
        // A subnormal has no implicit one, and the exponent of the first normal code.
        let (significand, exponent) = if exponent == 0 {
            (mantissa, 1)
        } else {
            (mantissa | 1 << self.mantissa_bits, exponent)
        };
        // At least 2^-17: the unit is a normal f32, and a product of two exact f32 of few bits is exact.
        let unit = (exponent - self.bias - self.mantissa_bits as i32 + 127) as u32;
        f32::from_bits((significand as f32 * f32::from_bits(unit << 23)).to_bits() | sign)
    }

    /// The nearest code, ties to the even one. An f32 and an 8-bit float have the same order of fields, so rounding up carries
    /// from the mantissa into the exponent.
    const fn encode(&self, value: f32) -> u8 {
        let bits = value.to_bits();
        let sign = if bits >> 31 == 0 { 0 } else { 0x80 };
        let magnitude = bits & 0x7fff_ffff;
        if magnitude > 0x7f80_0000 {
            return self.nan | sign;
        }
        let exponent = (magnitude >> 23) as i32 - 127 + self.bias;
        let mantissa = magnitude & 0x7f_ffff;
        let shift = 23 - self.mantissa_bits;
        let rounded = if exponent >= 1 {
            round_off((exponent as u32) << 23 | mantissa, shift)
        } else {
            round_off(1 << 23 | mantissa, shift + (1 - exponent) as u32)
        };
        let code = if rounded > self.max_code { self.overflow } else { rounded.to_le_bytes()[0] };
        if self.unsigned_zero && code == 0 { 0 } else { code | sign }
    }
}

/// `bits / 2^shift`, to nearest, ties to even. A subnormal has 24 bits: shifted by more, it is less than half.
const fn round_off(bits: u32, shift: u32) -> u32 {
    if shift > 24 {
        return 0;
    }
    let quotient = bits >> shift;
    let rest = bits & ((1 << shift) - 1);
    let half = 1 << (shift - 1);
    if rest > half || (rest == half && quotient & 1 == 1) { quotient + 1 } else { quotient }
}

macro_rules! fp8 {
    ($(#[$doc:meta])* $name:ident, $layout:ident) => {
        $(#[$doc])*
        ///
        /// Equality compares codes: NaN equals itself, and the two zeros differ. Spec: §7.2.
        #[derive(Clone, Copy, Default, PartialEq, Eq, Hash, bytemuck::Pod, bytemuck::Zeroable)]
        #[repr(transparent)]
        pub struct $name(u8);

        impl $name {
            /// The largest finite value.
            pub const MAX: Self = Self($layout.max_code.to_le_bytes()[0]);

            /// The value with this code.
            pub const fn from_bits(code: u8) -> Self {
                Self(code)
            }

            /// The code.
            pub const fn to_bits(self) -> u8 {
                self.0
            }

            /// The nearest value, ties to the even code. Infinities, and magnitudes that round to more than the largest
            /// finite one, become infinite if the type has infinities, else NaN. A NaN keeps its sign if the type has both.
            pub const fn from_f32(value: f32) -> Self {
                Self($layout.encode(value))
            }

            /// The value, exactly.
            pub const fn to_f32(self) -> f32 {
                const TABLE: &[f32; 256] = &$layout.table();
                TABLE[self.0 as usize]
            }

            /// Whether this is one of the NaN codes.
            pub const fn is_nan(self) -> bool {
                self.to_f32().is_nan()
            }
        }

        impl From<$name> for f32 {
            fn from(value: $name) -> f32 {
                value.to_f32()
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(&self.to_f32(), f)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(&self.to_f32(), f)
            }
        }
    };
}

fp8!(
    /// `f8_e4m3fn`: 4 bits of exponent, 3 of mantissa, no infinities.
    F8E4M3Fn, E4M3FN
);
fp8!(
    /// `f8_e5m2`: 5 bits of exponent, 2 of mantissa, IEEE 754's rules.
    F8E5M2, E5M2
);
fp8!(
    /// `f8_e4m3fnuz`: 4 bits of exponent, 3 of mantissa, one NaN, one zero.
    F8E4M3FnUz, E4M3FNUZ
);
fp8!(
    /// `f8_e5m2fnuz`: 5 bits of exponent, 2 of mantissa, one NaN, one zero.
    F8E5M2FnUz, E5M2FNUZ
);
