//! Values of attributes: every value of CBOR.

use crate::attributes::Attributes;
use crate::list::List;

/// One CBOR data item, owned: the value of an attribute or of an unknown field.
///
/// A `Value` holds everything that the file holds except its spelling: chunked strings are joined, and
/// every float is an `f64` (narrower ones convert exactly). Tags are kept and not interpreted, so a
/// bignum is a [`Value::Tag`].
///
/// Floats compare by their bits: `-0.0` and `0.0` differ, and a NaN equals itself. So a value that was
/// written and read again is equal to the first.
#[derive(Debug, Clone)]
pub enum Value {
    /// An integer from 0 to 2^64 - 1.
    Unsigned(u64),
    /// The integer `-1 - n`, from -1 to -2^64.
    Negative(u64),
    /// Bytes.
    Bytes(Vec<u8>),
    /// Text.
    Text(String),
    /// A list.
    Array(List),
    /// A map.
    Map(Attributes),
    /// A tagged value.
    Tag(u64, Box<Value>),
    /// A truth value.
    Bool(bool),
    /// CBOR's `null`.
    Null,
    /// CBOR's `undefined`.
    Undefined,
    /// A simple value without a meaning: 0 to 19 or 32 to 255.
    Simple(u8),
    /// A floating-point number.
    Float(f64),
}

/// Methods that give the content of one variant.
macro_rules! contents {
    ($($(#[$doc:meta])* $method:ident: $variant:ident($content:ident) => $type:ty = $result:expr;)*) => {
        impl Value {$(
            $(#[$doc])*
            pub const fn $method(&self) -> Option<$type> {
                match self {
                    Value::$variant($content) => Some($result),
                    _ => None,
                }
            }
        )*}
    };
}

contents! {
    /// The text, if this is one.
    as_str: Text(text) => &str = text.as_str();
    /// The bytes, if this is a byte string.
    as_bytes: Bytes(bytes) => &[u8] = bytes.as_slice();
    /// The integer, if this is one and not negative. Floats are never converted.
    as_u64: Unsigned(value) => u64 = *value;
    /// The truth value, if this is one.
    as_bool: Bool(value) => bool = *value;
    /// The number, if this is a float. Integers are not converted, because not all of them fit.
    as_f64: Float(value) => f64 = *value;
    /// The map, if this is one.
    as_map: Map(map) => &Attributes = map;
}

impl Value {
    /// The integer, if this is one from -2^63 to 2^63 - 1.
    pub fn as_i64(&self) -> Option<i64> {
        self.as_i128().and_then(|value| i64::try_from(value).ok())
    }

    /// The integer, if this is one. Bignums (tags 2 and 3) are not converted.
    pub const fn as_i128(&self) -> Option<i128> {
        match self {
            Value::Unsigned(value) => Some(*value as i128),
            Value::Negative(value) => Some(!(*value as i128)),
            _ => None,
        }
    }

    /// A list of these values.
    pub fn array(values: Vec<Value>) -> Self {
        Value::Array(values.into())
    }

    /// The items, if this is an array. This call decodes a [long list](List).
    pub fn as_array(&self) -> Option<&[Value]> {
        match self {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    /// Whether this is [`Value::Null`].
    pub const fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// Whether both are equal; `maps` compares the maps within them.
    pub(crate) fn is_equal(
        &self,
        other: &Value,
        maps: fn(&Attributes, &Attributes) -> bool,
    ) -> bool {
        match (self, other) {
            (Value::Unsigned(a), Value::Unsigned(b)) | (Value::Negative(a), Value::Negative(b)) => {
                a == b
            }
            (Value::Bytes(a), Value::Bytes(b)) => a == b,
            (Value::Text(a), Value::Text(b)) => a == b,
            (Value::Array(a), Value::Array(b)) => {
                if let Some((a, b)) = a.encoded().zip(b.encoded()) {
                    return a == b;
                }
                let mut pairs = a.items().zip(b.items());
                a.len() == b.len() && pairs.all(|(a, b)| a.is_equal(&b, maps))
            }
            (Value::Map(a), Value::Map(b)) => maps(a, b),
            (Value::Tag(a, left), Value::Tag(b, right)) => a == b && left.is_equal(right, maps),
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Null, Value::Null) | (Value::Undefined, Value::Undefined) => true,
            (Value::Simple(a), Value::Simple(b)) => a == b,
            (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
            _ => false,
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.is_equal(other, Attributes::eq)
    }
}

impl Eq for Value {}

macro_rules! from {
    ($($source:ty => |$value:ident| $result:expr),* $(,)?) => {
        $(impl From<$source> for Value {
            fn from($value: $source) -> Self {
                $result
            }
        })*
    };
}

from! {
    u8 => |value| Value::Unsigned(value.into()),
    u16 => |value| Value::Unsigned(value.into()),
    u32 => |value| Value::Unsigned(value.into()),
    u64 => |value| Value::Unsigned(value),
    usize => |value| Value::Unsigned(value as u64),
    i8 => |value| i64::from(value).into(),
    i16 => |value| i64::from(value).into(),
    i32 => |value| i64::from(value).into(),
    // The complement of a negative number is `-1 - value`, and not negative.
    i64 => |value| match u64::try_from(value) {
        Ok(value) => Value::Unsigned(value),
        Err(_) => Value::Negative((!value).unsigned_abs()),
    },
    f32 => |value| Value::Float(value.into()),
    f64 => |value| Value::Float(value),
    bool => |value| Value::Bool(value),
    &str => |value| Value::Text(value.to_owned()),
    String => |value| Value::Text(value),
    Vec<u8> => |value| Value::Bytes(value),
    Vec<Value> => |value| Value::array(value),
    List => |value| Value::Array(value),
    Attributes => |value| Value::Map(value),
}
