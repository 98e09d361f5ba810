//! The types of pairs, and their values as attributes and as bytes.

use std::fmt;

use zt::manifest::ListBuilder;
use zt::{Result, Value};

use crate::cursor::Cursor;
use crate::violation::Violation;

/// The type of one pair's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueType {
    One(Scalar),
    Array(Scalar),
}

/// The type of a single value. Arrays of arrays are not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scalar {
    Uint8,
    Int8,
    Uint16,
    Int16,
    Uint32,
    Int32,
    Float32,
    Bool,
    String,
    Uint64,
    Int64,
    Float64,
}

const ARRAY: u32 = 9;

/// A type with its number, its name, the name of its arrays, and the bytes of a value; `None` for
/// strings.
type Row = (u32, Scalar, &'static str, &'static str, Option<u64>);

const SCALARS: [Row; 12] = [
    (0, Scalar::Uint8, "uint8", "array[uint8]", Some(1)),
    (1, Scalar::Int8, "int8", "array[int8]", Some(1)),
    (2, Scalar::Uint16, "uint16", "array[uint16]", Some(2)),
    (3, Scalar::Int16, "int16", "array[int16]", Some(2)),
    (4, Scalar::Uint32, "uint32", "array[uint32]", Some(4)),
    (5, Scalar::Int32, "int32", "array[int32]", Some(4)),
    (6, Scalar::Float32, "float32", "array[float32]", Some(4)),
    (7, Scalar::Bool, "bool", "array[bool]", Some(1)),
    (8, Scalar::String, "string", "array[string]", None),
    (10, Scalar::Uint64, "uint64", "array[uint64]", Some(8)),
    (11, Scalar::Int64, "int64", "array[int64]", Some(8)),
    (12, Scalar::Float64, "float64", "array[float64]", Some(8)),
];

const WHAT: &str = "a value";

/// The most values of a file, elements of arrays included. Each takes as little as one byte of the file. The vocabularies of models have less than a million.
pub(super) const VALUES_MAX: u64 = 1 << 24;

impl ValueType {
    pub(super) fn from_name(name: &str) -> Option<Self> {
        SCALARS.iter().find_map(|(_, scalar, one, array, _)| match name {
            name if name == *one => Some(ValueType::One(*scalar)),
            name if name == *array => Some(ValueType::Array(*scalar)),
            _ => None,
        })
    }

    /// As [`ValueType::from_name`], or a single value's type in short: `u32`, `f32`, `str`.
    pub(super) fn from_short_name(name: &str) -> Option<Self> {
        let short = |scalar: &Row| {
            let long = scalar.2;
            let letter = long.get(..1)?;
            let digits = long.trim_start_matches(|c: char| c.is_ascii_alphabetic());
            let is_short = name == format!("{letter}{digits}") && !digits.is_empty();
            (is_short || name == "str" && scalar.1 == Scalar::String)
                .then_some(ValueType::One(scalar.1))
        };
        Self::from_name(name).or_else(|| SCALARS.iter().find_map(short))
    }

    /// The value as one of this type: an integer may become a float, and a float is rounded. `None` if the type
    /// does not hold it.
    pub(super) fn cast(self, value: &Value) -> Option<Value> {
        let cast = match (self, value) {
            (ValueType::One(scalar), value) => scalar.cast(value),
            (ValueType::Array(scalar), Value::Array(items)) => {
                let items = items.items().map(|item| scalar.cast(&item));
                Value::array(items.collect())
            }
            _ => return None,
        };
        self.write(&cast, &mut Vec::new()).then_some(cast)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            ValueType::One(scalar) => scalar.row().2,
            ValueType::Array(scalar) => scalar.row().3,
        }
    }

    /// Reads a value with its type. `budget` is the number of values that the file may still have.
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "the count is at most the budget, which is at most VALUES_MAX"
    )]
    pub(super) fn read(cursor: &mut Cursor<'_>, budget: &mut u64) -> Result<(Self, Value)> {
        let id = cursor.u32(WHAT)?;
        if id != ARRAY {
            let scalar = Scalar::from_id(id).ok_or(Violation::ValueType { id });
            let scalar = scalar.map_err(|violation| cursor.error(violation))?;
            return Ok((ValueType::One(scalar), scalar.read(cursor)?));
        }
        let id = cursor.u32(WHAT)?;
        let scalar = match Scalar::from_id(id) {
            Some(scalar) => scalar,
            None if id == ARRAY => return Err(cursor.error(Violation::Nested)),
            None => return Err(cursor.error(Violation::ValueType { id })),
        };
        let least = scalar.row().4.unwrap_or(cursor.length_len());
        let count = cursor.count("values", least, *budget)?;
        *budget -= count;
        let mut items = ListBuilder::default();
        for _ in 0..count {
            items.push(scalar.read(cursor)?)?;
        }
        Ok((ValueType::Array(scalar), Value::Array(items.finish())))
    }

    /// Writes a value with its type, little-endian; writes nothing and returns `false` if the value
    /// is not of this type.
    pub(super) fn write(self, value: &Value, out: &mut Vec<u8>) -> bool {
        let start = out.len();
        let mut write = || match self {
            ValueType::One(scalar) => {
                out.extend(scalar.row().0.to_le_bytes());
                scalar.write(value, out)
            }
            ValueType::Array(scalar) => {
                let Value::Array(items) = value else {
                    return None;
                };
                out.extend(ARRAY.to_le_bytes());
                out.extend(scalar.row().0.to_le_bytes());
                out.extend((items.len() as u64).to_le_bytes());
                let mut items = items.items();
                items.try_for_each(|item| scalar.write(&item, out))
            }
        };
        let is_written = write().is_some();
        if !is_written {
            out.truncate(start);
        }
        is_written
    }

    /// The type for a value that has none yet: the first usual type that holds it.
    pub(super) fn of(value: &Value) -> Option<Self> {
        const USUAL: [Scalar; 8] = [
            Scalar::Uint32,
            Scalar::Int32,
            Scalar::Uint64,
            Scalar::Int64,
            Scalar::Float32,
            Scalar::Float64,
            Scalar::Bool,
            Scalar::String,
        ];
        // Bytes are strings only if the file declares that type.
        match value {
            Value::Bytes(_) => return None,
            Value::Array(items) if items.items().any(|item| item.as_bytes().is_some()) => {
                return None;
            }
            _ => {}
        }
        let mut scratch = Vec::new();
        let mut holds = |value_type: &ValueType| {
            scratch.clear();
            value_type.write(value, &mut scratch)
        };
        let types: [fn(Scalar) -> ValueType; 2] = [ValueType::One, ValueType::Array];
        let mut types = types.iter().flat_map(|wrap| USUAL.map(wrap));
        types.find(|value_type| holds(value_type))
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Scalar {
    fn from_id(id: u32) -> Option<Self> {
        let row = SCALARS.iter().find(|(known, ..)| *known == id);
        row.map(|(_, scalar, ..)| *scalar)
    }

    #[expect(clippy::expect_used, reason = "the table is complete")]
    fn row(self) -> &'static Row {
        let mut rows = SCALARS.iter();
        let row = rows.find(|(_, scalar, ..)| *scalar == self);
        row.expect("every scalar has a row")
    }

    fn read(self, cursor: &mut Cursor<'_>) -> Result<Value> {
        Ok(match self {
            Scalar::Uint8 => cursor.u8(WHAT)?.into(),
            Scalar::Int8 => i64::from(cursor.u8(WHAT)?.cast_signed()).into(),
            Scalar::Uint16 => cursor.u16(WHAT)?.into(),
            Scalar::Int16 => i64::from(cursor.u16(WHAT)?.cast_signed()).into(),
            Scalar::Uint32 => cursor.u32(WHAT)?.into(),
            Scalar::Int32 => cursor.u32(WHAT)?.cast_signed().into(),
            Scalar::Float32 => Value::Float(widened(cursor.u32(WHAT)?)),
            Scalar::Uint64 => cursor.u64(WHAT)?.into(),
            Scalar::Int64 => cursor.u64(WHAT)?.cast_signed().into(),
            Scalar::Float64 => Value::Float(f64::from_bits(cursor.u64(WHAT)?)),
            Scalar::Bool => match cursor.u8(WHAT)? {
                0 => false.into(),
                1 => true.into(),
                value => return Err(cursor.error(Violation::Bool { value })),
            },
            // Tokens of vocabularies are any bytes, although the specification demands UTF-8.
            Scalar::String => {
                let bytes = cursor.string("a string")?;
                let text = str::from_utf8(bytes);
                text.map_or_else(|_| bytes.to_vec().into(), Value::from)
            }
        })
    }

    /// A number as a float of this type. Any other value is left as it is.
    fn cast(self, value: &Value) -> Value {
        #[expect(clippy::cast_precision_loss, reason = "rounded, as any float is")]
        let number = value.as_f64().or_else(|| value.as_i128().map(|it| it as f64));
        match (self, number) {
            (Scalar::Float64, Some(number)) => Value::Float(number),
            (Scalar::Float32, Some(number)) => {
                #[expect(clippy::cast_possible_truncation, reason = "rounded")]
                let narrow = number as f32;
                // A number that becomes infinite is not held.
                let is_held = narrow.is_finite() || !number.is_finite();
                Value::Float(if is_held { narrow.into() } else { number })
            }
            _ => value.clone(),
        }
    }

    /// `None` if the value is of another type, or out of range.
    fn write(self, value: &Value, out: &mut Vec<u8>) -> Option<()> {
        match self {
            Scalar::Uint8 => out.extend(u8::try_from(value.as_u64()?).ok()?.to_le_bytes()),
            Scalar::Int8 => out.extend(i8::try_from(value.as_i64()?).ok()?.to_le_bytes()),
            Scalar::Uint16 => out.extend(u16::try_from(value.as_u64()?).ok()?.to_le_bytes()),
            Scalar::Int16 => out.extend(i16::try_from(value.as_i64()?).ok()?.to_le_bytes()),
            Scalar::Uint32 => out.extend(u32::try_from(value.as_u64()?).ok()?.to_le_bytes()),
            Scalar::Int32 => out.extend(i32::try_from(value.as_i64()?).ok()?.to_le_bytes()),
            Scalar::Uint64 => out.extend(value.as_u64()?.to_le_bytes()),
            Scalar::Int64 => out.extend(value.as_i64()?.to_le_bytes()),
            Scalar::Float32 => out.extend(narrowed(value.as_f64()?)?.to_le_bytes()),
            Scalar::Float64 => out.extend(value.as_f64()?.to_bits().to_le_bytes()),
            Scalar::Bool => out.push(u8::from(value.as_bool()?)),
            Scalar::String => {
                let text = value.as_str().map(str::as_bytes);
                let bytes = text.or(value.as_bytes())?;
                out.extend((bytes.len() as u64).to_le_bytes());
                out.extend(bytes);
            }
        }
        Some(())
    }
}

/// The f32 of these bits as an f64. Keeps every bit of a NaN; a processor's conversion sets one.
fn widened(bits: u32) -> f64 {
    let value = f32::from_bits(bits);
    if !value.is_nan() {
        return value.into();
    }
    let (sign, payload) = (bits >> 31, bits & 0x007F_FFFF);
    f64::from_bits(u64::from(sign) << 63 | 0x7FF << 52 | u64::from(payload) << 29)
}

/// The bits of the f32 that is the same number or the same NaN, if there is one.
fn narrowed(value: f64) -> Option<u32> {
    let bits = if value.is_nan() {
        let upper = u32::try_from(value.to_bits() >> 32).ok()?;
        let payload = u32::try_from(value.to_bits() >> 29 & 0x007F_FFFF).ok()?;
        upper & 0x8000_0000 | 0x7F80_0000 | payload
    } else {
        #[expect(clippy::cast_possible_truncation, reason = "compared below")]
        let narrow = value as f32;
        narrow.to_bits()
    };
    (widened(bits).to_bits() == value.to_bits()).then_some(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_of_an_f32_survives_and_no_other_f64_becomes_one() {
        for bits in [0, 0x8000_0000, 1, 0x3F80_0000, 0x7F80_0000, 0xFF80_0001, 0x7FC1_2345] {
            assert_eq!(narrowed(widened(bits)), Some(bits), "{bits:08x}");
        }
        assert!(widened(0x7F80_0001).is_nan());
        for value in [0.1, 1e300, f64::from_bits(0x7FF8_0000_0000_0001), f64::MIN_POSITIVE] {
            assert_eq!(narrowed(value), None, "{value}");
        }
    }
}
