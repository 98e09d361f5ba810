//! The attributes of `quantized_group`.

use std::fmt;
use std::str::FromStr;

use zt_manifest::{Attributes, DType, Value};

use crate::base::attribute::{self, missing, other_text, out_of_range};
use crate::base::{Error, Result, element_count};
use crate::formats::index::is_integer;

const BITS: &str = "bits";
const GROUP_SIZE: &str = "group_size";
const PACKING: &str = "packing";
const SIGNED: &str = "signed";
const ZERO_KIND: &str = "zero_kind";

/// How the values of a `quantized_group` object were quantized and packed: its attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantization {
    /// Bits of one quantized value, 1 to 32. Attribute `bits`.
    pub bits: u32,
    /// The number of consecutive values, in row-major order over the whole array, that share a
    /// scale. The last group may be shorter. Attribute `group_size`.
    pub group_size: u64,
    /// The layout of the packed words. Attribute `packing`.
    pub packing: Packing,
    /// Whether quantized values are two's complement of `bits` bits. Attribute `signed`; false if
    /// absent.
    pub signed: bool,
    /// The use of zero-points. Attribute `zero_kind`; subtractive if absent.
    pub zero_kind: ZeroKind,
}

/// The use of zero-points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ZeroKind {
    /// `value = (quantized - zero) * scale`.
    #[default]
    Subtractive,
    /// `value = quantized * scale + zero`.
    Additive,
}

/// The number of quantized values in a word, and the word's dtype: `8_per_i32`. The first value is
/// in the lowest bits. Unused bits are at the top, and are ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packing {
    /// Quantized values in one word.
    pub per_word: u32,
    /// The word's dtype, an integer. Its sign is ignored.
    pub dtype: DType,
}

impl Quantization {
    /// Unsigned values and subtractive zero-points.
    pub const fn new(bits: u32, group_size: u64, packing: Packing) -> Self {
        Quantization { bits, group_size, packing, signed: false, zero_kind: ZeroKind::Subtractive }
    }

    /// The quantization that the attributes of an object of this shape describe. Other attributes
    /// are permitted. A `group_size` of -1 means a row, as in GPTQ: the last dimension.
    ///
    /// # Errors
    ///
    /// Malformed: an attribute is missing, has another type, or is outside its range (`attribute`).
    pub fn from_attributes(attributes: &Attributes, shape: &[u64]) -> Result<Self> {
        let row = shape.last().copied().unwrap_or(1).max(1);
        let quantization = Quantization {
            bits: Self::bits_of(attributes)?,
            group_size: if Self::has_group_for_each_row(attributes) {
                row
            } else {
                unsigned(attributes, GROUP_SIZE)?
            },
            packing: attribute::text(attributes, PACKING)?
                .ok_or_else(|| missing(PACKING))?
                .parse()?,
            signed: attribute::bool(attributes, SIGNED)?.unwrap_or(false),
            zero_kind: match attribute::text(attributes, ZERO_KIND)? {
                None | Some("subtractive") => ZeroKind::Subtractive,
                Some("additive") => ZeroKind::Additive,
                Some(other) => {
                    return Err(other_text(ZERO_KIND, other, "subtractive or additive"));
                }
            },
        };
        // A shape of too many elements is refused elsewhere.
        quantization.check(element_count(shape).unwrap_or(u64::MAX))?;
        Ok(quantization)
    }

    /// Whether `group_size` is -1: then groups depend on the shape.
    pub(crate) fn has_group_for_each_row(attributes: &Attributes) -> bool {
        attributes.get(GROUP_SIZE).and_then(Value::as_i64) == Some(-1)
    }

    /// The attribute `bits`.
    pub(crate) fn bits_of(attributes: &Attributes) -> Result<u32> {
        let bits = unsigned(attributes, BITS)?;
        u32::try_from(bits).map_err(|_| out_of_range(BITS, bits, 1, MAX_BITS))
    }

    /// Checks the numbers for an object of `element_count` values.
    ///
    /// A group may be larger than the array: then it is the only one. But a `group_size` beyond
    /// both the array and 2^31 - 1 is refused. It is GPTQ's -1, written as an unsigned number.
    ///
    /// # Errors
    ///
    /// Malformed: a number outside its range (`attribute`).
    pub fn check(&self, element_count: u64) -> Result<()> {
        let Packing { per_word, dtype } = self.packing;
        if !(1..=MAX_BITS).contains(&u64::from(self.bits)) {
            return Err(out_of_range(BITS, self.bits.into(), 1, MAX_BITS));
        }
        let largest = element_count.max(i32::MAX.unsigned_abs().into());
        if !(1..=largest).contains(&self.group_size) {
            return Err(out_of_range(GROUP_SIZE, self.group_size, 1, largest));
        }
        if !is_integer(dtype) {
            return Err(Packing::refused(&self.packing.to_string()));
        }
        let width = (dtype.byte_len() as u64).strict_mul(8);
        let Some(most @ 1..) = width.checked_div(self.bits.into()) else {
            return Err(out_of_range(BITS, self.bits.into(), 1, width));
        };
        if !(1..=most).contains(&u64::from(per_word)) {
            return Err(out_of_range(PACKING, per_word.into(), 1, most));
        }
        Ok(())
    }

    /// The attributes of an object. Optional ones are absent if they have their default.
    pub fn to_attributes(&self) -> Attributes {
        let mut attributes = Attributes::new();
        attributes.insert(BITS, u64::from(self.bits));
        attributes.insert(GROUP_SIZE, self.group_size);
        attributes.insert(PACKING, self.packing.to_string());
        if self.signed {
            attributes.insert(SIGNED, true);
        }
        if self.zero_kind == ZeroKind::Additive {
            attributes.insert(ZERO_KIND, "additive");
        }
        attributes
    }

    /// The number of words that hold `element_count` values.
    pub const fn word_count(&self, element_count: u64) -> u64 {
        match self.packing.per_word {
            0 => 0,
            per_word => element_count.div_ceil(per_word as u64),
        }
    }

    /// The number of groups of `element_count` values.
    pub const fn group_count(&self, element_count: u64) -> u64 {
        match self.group_size {
            0 => 0,
            group_size => element_count.div_ceil(group_size),
        }
    }
}

/// More than any scheme uses.
const MAX_BITS: u64 = 32;

impl Packing {
    fn refused(text: &str) -> Error {
        other_text(PACKING, text, "<n>_per_<integer dtype>, such as 8_per_i32")
    }
}

impl FromStr for Packing {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parse = || {
            let (number, dtype) = text.split_once("_per_")?;
            // As `Display` writes it: no sign, no leading zeros.
            let is_plain = number.starts_with(|first: char| matches!(first, '1'..='9'));
            let per_word = number.parse().ok().filter(|_| is_plain)?;
            let dtype = DType::from_name(dtype).filter(|dtype| is_integer(*dtype))?;
            Some(Packing { per_word, dtype })
        };
        parse().ok_or_else(|| Packing::refused(text))
    }
}

impl fmt::Display for Packing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_per_{}", self.per_word, self.dtype)
    }
}

fn unsigned(attributes: &Attributes, name: &'static str) -> Result<u64> {
    attribute::unsigned(attributes, name)?.ok_or_else(|| missing(name))
}
