//! The datatype of a dataset or an attribute. Spec: IV.A.2.d.

use std::sync::Arc;

use zt::{ByteOrder, DType, Result, Value};
use zt_foreign::{Meaning, MlDtype};

use crate::bytes::cursor::Cursor;
use crate::bytes::fault::Hdf5Fault;
use crate::bytes::name;
use crate::bytes::size::encoded_len;
use crate::structures::bit_layout::{self, BitLayout, Float, Parts};
use crate::structures::number::Number;

/// The most nested types. Arrays of enumerations of integers have three.
const DEPTH: usize = 8;

/// The most dimensions of an array that HDF5 allows: `H5S_MAX_RANK`.
const RANK_MAX: u8 = 32;
/// The most dimensions of nested arrays together, as an object may have.
const DIMENSIONS_MAX: usize = 64;

/// A datatype.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Datatype {
    /// Bytes of an element.
    pub(crate) byte_len: u64,
    pub(crate) class: Class,
}

/// The class of an element.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Class {
    /// A number that zt supports.
    Number(Number),
    /// An array of numbers, with its dimensions outermost first.
    Array(Vec<u64>, Number),
    /// A string of a fixed length.
    Text(Padding),
    /// A string of variable length, in the global heap.
    LongText,
    /// Opaque bytes.
    Opaque,
    /// Numbers that zt does not support, in words.
    Unsupported(&'static str),
    /// Elements that are not numbers, in words.
    Other(&'static str),
}

/// The padding of a string that is shorter than its field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Padding {
    /// A zero ends the string, and any bytes may follow.
    Terminated,
    /// Zeros at the end; earlier zeros belong to the string.
    Zeros,
    Spaces,
}

/// The head of a datatype, before its properties.
struct Head {
    version: u8,
    bits: u32,
    byte_len: u32,
}

impl Datatype {
    /// Reads the message. An unsupported class is not an error.
    pub(crate) fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        read(cursor, DEPTH)
    }

    /// The datatype in words, for listings and errors.
    pub(crate) fn describe(&self) -> &'static str {
        match &self.class {
            Class::Number(number) | Class::Array(_, number) => {
                number.logical_type.unwrap_or(number.dtype.as_str())
            }
            Class::Text(_) | Class::LongText => "strings",
            Class::Opaque if self.byte_len == 2 => {
                "two opaque bytes; --ml-dtype bfloat16 reads them as bf16"
            }
            Class::Opaque if self.byte_len == 1 => {
                "opaque bytes; --ml-dtype TYPE reads them as a type of ml_dtypes, such as float8_e4m3fn"
            }
            Class::Opaque => "opaque bytes",
            Class::Unsupported(what) | Class::Other(what) => what,
        }
    }

    /// Whether the elements are not numbers. Two opaque bytes may be a bf16.
    pub(crate) fn is_other(&self) -> bool {
        match self.class {
            Class::Number(_) | Class::Array(..) | Class::Unsupported(_) => false,
            Class::Opaque => self.byte_len != 2,
            Class::Text(_) | Class::LongText | Class::Other(_) => true,
        }
    }

    /// Opaque bytes as the first type of as many bytes: h5py writes the types of `ml_dtypes` so.
    pub(crate) fn opaque_as(&self, ml_dtypes: &[MlDtype]) -> Option<Number> {
        if !matches!(self.class, Class::Opaque) {
            return None;
        }
        let mut ml_dtypes = ml_dtypes.iter();
        let ml_dtype = ml_dtypes.find(|it| it.saved_len() == self.byte_len)?;
        let mut number = Number::new(ml_dtype.meaning.dtype(), ByteOrder::Little);
        if let Meaning::Values(_, logical_type) = ml_dtype.meaning {
            number.logical_type = logical_type;
        }
        number.ml_dtype = Some(*ml_dtype);
        Some(number)
    }
}

fn read(cursor: &mut Cursor<'_>, depth: usize) -> Result<Datatype> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(cursor.field("the depth of a datatype", DEPTH as u64));
    };
    let first = cursor.u8()?;
    let head = Head {
        version: first >> 4,
        bits: u32::from(cursor.u16()?) | u32::from(cursor.u8()?) << 16,
        byte_len: cursor.u32()?,
    };
    if !(1..=5).contains(&head.version) {
        return Err(cursor.version(head.version));
    }
    if head.byte_len == 0 {
        return Err(cursor.field("the length of an element", 0));
    }
    let class = match first & 0x0F {
        0 => integer(cursor, &head, true)?,
        1 => float(cursor, &head)?,
        2 => Class::Other("dates"),
        3 => Class::Text(padding(cursor, &head)?),
        // Bit fields. PyTables writes bools so.
        4 => integer(cursor, &head, false)?,
        5 => Class::Opaque,
        6 => compound(cursor, &head, depth)?,
        7 => Class::Other("references"),
        8 => enumeration(cursor, &head, depth)?,
        9 if head.bits & 0x0F == 1 => Class::LongText,
        9 => Class::Other("sequences of variable length"),
        10 => array(cursor, &head, depth)?,
        11 => complex(cursor, &head, depth)?,
        other => return Err(cursor.field("the class of a datatype", other.into())),
    };
    Ok(Datatype { byte_len: head.byte_len.into(), class })
}

fn padding(cursor: &Cursor<'_>, head: &Head) -> Result<Padding> {
    match head.bits & 0x0F {
        0 => Ok(Padding::Terminated),
        1 => Ok(Padding::Zeros),
        2 => Ok(Padding::Spaces),
        other => Err(cursor.field("the padding of a string", other.into())),
    }
}

/// The byte order, from the first bit.
fn byte_order(head: &Head) -> ByteOrder {
    match head.bits & 1 {
        1 if head.byte_len > 1 => ByteOrder::Big,
        _ => ByteOrder::Little,
    }
}

fn integer(cursor: &mut Cursor<'_>, head: &Head, may_be_signed: bool) -> Result<Class> {
    const SIGNED: u32 = 1 << 3;
    let (offset, precision) = (cursor.u16()?, cursor.u16()?);
    let is_signed = may_be_signed && head.bits & SIGNED != 0;
    let is_whole = offset == 0 && Some(precision.into()) == head.byte_len.checked_mul(8);
    let dtype = match head.byte_len {
        len @ (1 | 2 | 4 | 8) if is_whole => bit_layout::integer(len as usize, is_signed),
        _ => None,
    };
    let parts = Parts::Integer { offset: offset.into(), precision: precision.into(), is_signed };
    Ok(match dtype {
        Some(dtype) => Class::Number(Number::new(dtype, byte_order(head))),
        None => widened(head, parts, "integers with an unknown width"),
    })
}

/// The floats that zt supports: the bytes, the bits of the exponent and of the mantissa, and the bias
/// of the exponent.
const FLOATS: [([u32; 4], DType, Option<&str>); 6] = [
    ([2, 5, 10, 15], DType::F16, None),
    ([2, 8, 7, 127], DType::BF16, None),
    ([4, 8, 23, 127], DType::F32, None),
    ([8, 11, 52, 1023], DType::F64, None),
    ([1, 5, 2, 15], DType::U8, Some("f8_e5m2")),
    ([1, 4, 3, 7], DType::U8, Some("f8_e4m3fn")),
];

fn float(cursor: &mut Cursor<'_>, head: &Head) -> Result<Class> {
    const VAX: u32 = 1 << 6 | 1;
    const NORMALIZATION: u32 = 3 << 4;
    const IMPLIED: u32 = 2 << 4;
    let (offset, precision) = (cursor.u16()?, u32::from(cursor.u16()?));
    let float = Float {
        sign: head.bits >> 8 & 0xFF,
        exponent_at: cursor.u8()?.into(),
        exponent: cursor.u8()?.into(),
        mantissa_at: cursor.u8()?.into(),
        mantissa: cursor.u8()?.into(),
        bias: cursor.u32()?,
        is_implied: head.bits & NORMALIZATION == IMPLIED,
    };
    let unknown = "floats with an unknown format";
    if head.bits & VAX == VAX {
        return Ok(Class::Unsupported(unknown));
    }
    // The parts are the sign, the exponent and the mantissa, without gaps.
    let is_ieee = offset == 0
        && Some(precision) == head.byte_len.checked_mul(8)
        && precision.checked_sub(1) == Some(float.sign)
        && float.mantissa_at == 0
        && float.exponent_at == float.mantissa
        && float.is_implied;
    let format = [head.byte_len, float.exponent, float.mantissa, float.bias];
    let mut known = FLOATS.iter().filter(|row| is_ieee && row.0 == format);
    Ok(match known.next() {
        Some((_, dtype, logical_type)) => Class::Number(Number {
            logical_type: *logical_type,
            ..Number::new(*dtype, byte_order(head))
        }),
        None => widened(head, Parts::Float(float), unknown),
    })
}

/// Numbers that become wider ones, or `unknown` ones in words.
fn widened(head: &Head, parts: Parts, unknown: &'static str) -> Class {
    let stored = usize::try_from(head.byte_len).ok().map(|byte_len| BitLayout {
        byte_len,
        byte_order: byte_order(head),
        parts,
    });
    let widened = stored.and_then(|layout| Some((layout, layout.widened()?)));
    match widened {
        Some((stored, (dtype, _))) => Class::Number(Number {
            bit_layout: Some(stored),
            ..Number::new(dtype, ByteOrder::Little)
        }),
        None => Class::Unsupported(unknown),
    }
}

/// Names of the two parts of a complex number, in h5py and other writers.
const COMPLEX: [(&[u8], &[u8]); 3] = [(b"r", b"i"), (b"re", b"im"), (b"real", b"imag")];

fn compound(cursor: &mut Cursor<'_>, head: &Head, depth: usize) -> Result<Class> {
    let other = Class::Other("records");
    if head.bits & 0xFFFF != 2 || depth == 0 {
        return Ok(other);
    }
    let half = u64::from(head.byte_len / 2);
    let (first_name, first_at, first) = member(cursor, head, depth)?;
    // Other classes have more bytes, which are not read.
    if !matches!(first.class, Class::Number(_)) {
        return Ok(other);
    }
    let (second_name, second_at, second) = member(cursor, head, depth)?;
    let is_complex = first_at == 0
        && second_at == half
        && first == second
        && first.byte_len == half
        && head.byte_len.is_multiple_of(2)
        && COMPLEX.iter().any(|(real, imaginary)| {
            first_name.eq_ignore_ascii_case(real) && second_name.eq_ignore_ascii_case(imaginary)
        });
    Ok(if is_complex { pair(first).unwrap_or(other) } else { other })
}

/// The name, the offset and the type of a field.
fn member<'b>(
    cursor: &mut Cursor<'b>,
    head: &Head,
    depth: usize,
) -> Result<(&'b [u8], u64, Datatype)> {
    let start = cursor.position();
    let name = cursor.c_string()?;
    let at = match head.version {
        1 | 2 => {
            cursor.align_8(start)?;
            cursor.uint(4)?
        }
        _ => cursor.uint(encoded_len(head.byte_len.into()))?,
    };
    if head.version == 1 {
        // Dimensions, which only version 1 has.
        cursor.skip(1 + 3 + 4 + 4 + 16)?;
    }
    Ok((name, at, read(cursor, depth)?))
}

/// The complex number with two such parts.
fn pair(part: Datatype) -> Option<Class> {
    let Class::Number(mut number) = part.class else {
        return None;
    };
    number.logical_type = match (number.dtype, number.logical_type) {
        (DType::F32, None) => Some("complex64"),
        (DType::F64, None) => Some("complex128"),
        _ => return None,
    };
    Some(Class::Number(number))
}

/// Complex numbers since HDF5 2.0.
fn complex(cursor: &mut Cursor<'_>, head: &Head, depth: usize) -> Result<Class> {
    let part = read(cursor, depth)?;
    let is_pair = part.byte_len.checked_mul(2) == Some(head.byte_len.into());
    let class = Some(part).filter(|_| is_pair).and_then(pair);
    Ok(class.unwrap_or(Class::Unsupported("complex numbers with an unknown format")))
}

fn enumeration(cursor: &mut Cursor<'_>, head: &Head, depth: usize) -> Result<Class> {
    let base = read(cursor, depth)?;
    let count = (head.bits & 0xFFFF) as usize;
    let mut number = match base.class {
        Class::Number(number) => number,
        Class::Unsupported(what) => return Ok(Class::Unsupported(what)),
        _ => return Ok(Class::Other("names")),
    };
    if base.byte_len != u64::from(head.byte_len) {
        return Err(cursor.field("the length of an enumeration", head.byte_len.into()));
    }
    let mut names = Vec::new();
    for _ in 0..count {
        let start = cursor.position();
        names.push(name::text(cursor.c_string()?));
        if head.version < 3 {
            cursor.align_8(start)?;
        }
    }
    let mut values = Vec::new();
    for _ in 0..count {
        let bytes = cursor.take(base.byte_len)?;
        values.push(number.value(bytes));
    }
    let named: Vec<(String, Value)> = names.into_iter().zip(values).collect();
    if base.byte_len == 1 && number.bit_layout.is_none() && is_bool(&named) {
        number.dtype = DType::Bool;
    } else {
        number.names = Some(Arc::new(named.into_iter().collect()));
    }
    Ok(Class::Number(number))
}

/// Whether an enumeration is a bool of h5py. The names may be in either order.
fn is_bool(named: &[(String, Value)]) -> bool {
    let has = |name: &str, number: u64| {
        let mut named = named.iter();
        named.any(|(found, value)| found == name && *value == Value::Unsigned(number))
    };
    named.len() == 2 && has("FALSE", 0) && has("TRUE", 1)
}

fn array(cursor: &mut Cursor<'_>, head: &Head, depth: usize) -> Result<Class> {
    let rank = cursor.u8()?;
    if rank > RANK_MAX {
        return Err(cursor.field("the rank of an array", rank.into()));
    }
    if head.version < 3 {
        cursor.skip(3)?;
    }
    let dimensions: Result<Vec<u64>> = (0..rank).map(|_| cursor.uint(4)).collect();
    let dimensions = dimensions?;
    if head.version < 3 {
        (0..rank).try_for_each(|_| cursor.skip(4))?;
    }
    let base = read(cursor, depth)?;
    let mut counts = dimensions.iter();
    let byte_len = counts.try_fold(base.byte_len, |len, count| len.checked_mul(*count));
    if byte_len != Some(head.byte_len.into()) {
        return Err(cursor.field("the length of an array", head.byte_len.into()));
    }
    Ok(match base.class {
        Class::Number(number) => Class::Array(dimensions, number),
        Class::Array(inner, number) => {
            let dimensions: Vec<u64> = dimensions.into_iter().chain(inner).collect();
            let (levels, limit) = (dimensions.len(), DIMENSIONS_MAX);
            if levels > limit {
                return Err(cursor.error(Hdf5Fault::Dimensions { levels, limit }));
            }
            Class::Array(dimensions, number)
        }
        Class::Unsupported(what) => Class::Unsupported(what),
        _ => Class::Other("arrays of other elements than numbers"),
    })
}
