//! Types of less than a byte: their values, and how they are packed. Spec: formats/packed.

use std::fmt;

use zt_manifest::DType;

use crate::base::Layout;

/// A type of 2, 4 or 6 bits. Each has an object format of its own, `zt.<name>/1`.
///
/// Value i has the bits from i × [`bits`](Self::bits) on, where bit 0 is the lowest of the first byte.
/// Rows are not padded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PackedType {
    /// `f4_e2m1fn`: 2 bits of exponent, 1 of mantissa. OCP's FP4.
    F4E2M1Fn,
    /// `f6_e2m3fn`: 2 bits of exponent, 3 of mantissa. OCP's FP6.
    F6E2M3Fn,
    /// `f6_e3m2fn`: 3 bits of exponent, 2 of mantissa. OCP's FP6.
    F6E3M2Fn,
    /// `i4`: two's complement.
    I4,
    /// `u4`.
    U4,
    /// `i2`: two's complement.
    I2,
    /// `u2`.
    U2,
}

use PackedType::{F4E2M1Fn, F6E2M3Fn, F6E3M2Fn, I2, I4, U2, U4};

impl PackedType {
    /// All of them.
    pub const ALL: [PackedType; 7] = [F4E2M1Fn, F6E2M3Fn, F6E3M2Fn, I4, U4, I2, U2];

    /// The type whose objects have this format.
    pub fn from_format(format: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.format() == format)
    }

    /// The manifest's `format` of its objects: `zt.i4/1`.
    pub const fn format(self) -> &'static str {
        match self {
            F4E2M1Fn => "zt.f4_e2m1fn/1",
            F6E2M3Fn => "zt.f6_e2m3fn/1",
            F6E3M2Fn => "zt.f6_e3m2fn/1",
            I4 => "zt.i4/1",
            U4 => "zt.u4/1",
            I2 => "zt.i2/1",
            U2 => "zt.u2/1",
        }
    }

    /// Its name: `i4`.
    pub const fn name(self) -> &'static str {
        match self {
            F4E2M1Fn => "f4_e2m1fn",
            F6E2M3Fn => "f6_e2m3fn",
            F6E3M2Fn => "f6_e3m2fn",
            I4 => "i4",
            U4 => "u4",
            I2 => "i2",
            U2 => "u2",
        }
    }

    /// Bits of one value: 2, 4 or 6.
    pub const fn bits(self) -> u32 {
        match self {
            F6E2M3Fn | F6E3M2Fn => 6,
            F4E2M1Fn | I4 | U4 => 4,
            I2 | U2 => 2,
        }
    }

    /// The dtype of unpacked values, which is exact: f32, i8 or u8.
    pub const fn dtype(self) -> DType {
        match self {
            F4E2M1Fn | F6E2M3Fn | F6E3M2Fn => DType::F32,
            I4 | I2 => DType::I8,
            U4 | U2 => DType::U8,
        }
    }

    /// Bytes of `count` values, the last one perhaps in part.
    pub const fn byte_len(self, count: u64) -> u64 {
        let bits = self.bits() as u64;
        // Eight values are `bits` bytes, so neither product overflows.
        let rest = (count % 8).wrapping_mul(bits).div_ceil(8);
        (count / 8).wrapping_mul(bits).wrapping_add(rest)
    }

    /// Writes the values of `packed` behind the first `skipped` to `out`, little-endian and of
    /// [`dtype`](Self::dtype), until `out` is full.
    ///
    /// ```
    /// use zt_formats::PackedType;
    ///
    /// let mut values = [0; 3];
    /// PackedType::I4.unpack(&[0x21, 0xf7], 1, &mut values);
    /// assert_eq!(values.map(u8::cast_signed), [2, 7, -1]);
    /// ```
    pub fn unpack(self, packed: &[u8], skipped: usize, out: &mut [u8]) {
        let value = |values: &[f32; 64], code: u8| {
            let value = values.get(usize::from(code)).copied();
            value.unwrap_or_default().to_le_bytes()
        };
        // The sign is the highest bit of a code, and of the byte while it is shifted up.
        let signed = |code: u8, unused: u32| {
            let top = code.wrapping_shl(unused).cast_signed();
            [top.wrapping_shr(unused).cast_unsigned()]
        };
        match self {
            F4E2M1Fn => each::<4, 4>(packed, skipped, out, |code| value(&F4_E2M1FN, code)),
            F6E2M3Fn => each::<6, 4>(packed, skipped, out, |code| value(&F6_E2M3FN, code)),
            F6E3M2Fn => each::<6, 4>(packed, skipped, out, |code| value(&F6_E3M2FN, code)),
            I4 => each::<4, 1>(packed, skipped, out, |code| signed(code, 4)),
            U4 => each::<4, 1>(packed, skipped, out, |code| [code]),
            I2 => each::<2, 1>(packed, skipped, out, |code| signed(code, 6)),
            U2 => each::<2, 1>(packed, skipped, out, |code| [code]),
        }
    }

    /// Packs codes, one in the lowest bits of each byte, into `packed`, as many as it has room for. Other
    /// bits of the codes are ignored, and the rest of the last byte is 0.
    pub fn pack(self, codes: &[u8], packed: &mut [u8]) {
        match self.bits() {
            2 => join::<2>(codes, packed),
            4 => join::<4>(codes, packed),
            _ => join::<6>(codes, packed),
        }
    }
}

impl fmt::Display for PackedType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Values that are whole bytes, whatever their type: 1, 2 or 3.
pub(crate) const GROUP_LEN: usize = 4;

/// Decodes each code after the first `skipped`.
#[expect(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "`skipped` is less than a group, whose codes have at most 24 bits"
)]
fn each<const BITS: u32, const N: usize>(
    packed: &[u8],
    skipped: usize,
    out: &mut [u8],
    value: impl Fn(u8) -> [u8; N],
) {
    let groups = packed.chunks(BITS as usize / 2).skip(skipped / GROUP_LEN);
    let (mut out, _) = out.as_chunks_mut::<N>();
    let mut skipped = skipped % GROUP_LEN;
    for group in groups {
        let mut word = little_endian(group) >> (BITS * skipped as u32);
        let len = (GROUP_LEN - skipped).min(out.len());
        for out in out.split_off_mut(..len).unwrap_or_default() {
            let [lowest, ..] = word.to_le_bytes();
            *out = value(lowest & ((1 << BITS) - 1));
            word >>= BITS;
        }
        skipped = 0;
    }
}

/// The inverse of [`each`], from codes.
#[expect(clippy::arithmetic_side_effects, reason = "shifts by 2, 4 or 6 bits of 32")]
fn join<const BITS: u32>(codes: &[u8], packed: &mut [u8]) {
    let groups = packed.chunks_mut(BITS as usize / 2);
    for (codes, packed) in codes.chunks(GROUP_LEN).zip(groups) {
        let codes = codes.iter().rev();
        let word =
            codes.fold(0u32, |word, code| word << BITS | u32::from(*code) & ((1 << BITS) - 1));
        for (packed, byte) in packed.iter_mut().zip(word.to_le_bytes()) {
            *packed = byte;
        }
    }
}

/// Up to three bytes as a number.
fn little_endian(group: &[u8]) -> u32 {
    let bytes = group.iter().rev();
    bytes.fold(0, |word, byte| word << 8 | u32::from(*byte))
}

/// The values of all codes. A type of 4 bits has 16.
static F4_E2M1FN: [f32; 64] = values(4, &Layout::finite(1, 1));
static F6_E2M3FN: [f32; 64] = values(6, &Layout::finite(3, 1));
static F6_E3M2FN: [f32; 64] = values(6, &Layout::finite(2, 3));

#[expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "the compiler runs it"
)]
const fn values(bits: u32, layout: &Layout) -> [f32; 64] {
    let mut values = [0.0; 64];
    let sign = 1 << (bits - 1);
    let mut code = 0;
    while code < 2 * sign {
        // As a byte: its sign is the highest bit.
        let byte = (code & sign) << (8 - bits) | (code & (sign - 1));
        values[code as usize] = layout.decode(byte);
        code += 1;
    }
    values
}
