//! `quantized_4bit`: two values per byte, with a scale and a zero-point per row. Spec: 1.0 §7.3.

use std::borrow::Cow;

use zt_manifest::{Attributes, DType, Text};

use crate::base::{
    Buffer, Dense, Elements, Error, FormatViolation, NewObject, ObjectFormat, Parts, Registry,
    Result, Signature, ToObject, Unsupported, View, element_count,
};
use crate::formats::number::{Numbers, check_numbers, expect_known, to_numbers};

const DATA: &str = "data";
const SCALE: &str = "scale";
const ZERO_POINT: &str = "zero_point";

/// The rules of `quantized_4bit`.
///
/// `data` has two values per byte, the first in the lower half, in row-major order over the whole
/// array. A row of odd length shares its last byte with the next row. `scale` and `zero_point` have
/// a number for each row, which is a place of the first dimension. A scalar is one row.
///
/// The specification defines only the roles and their lengths. Files of layout 1.0 do not give the
/// dtypes of `scale` and `zero_point`: the lengths of these two are then not checked.
#[derive(Debug, Clone, Copy, Default)]
pub struct Quantized4BitFormat;

impl ObjectFormat for Quantized4BitFormat {
    fn id(&self) -> &str {
        Quantized4Bit::FORMAT
    }

    fn check(&self, signature: &Signature<'_>, registry: &Registry) -> Result<()> {
        let data = signature.component(DATA)?;
        let scale = signature.component(SCALE)?;
        let zero_point = signature.component(ZERO_POINT)?;
        if !matches!(data.dtype, None | Some(DType::U8 | DType::I8)) {
            let (expected, found) = ("u8", data.dtype);
            return Err(FormatViolation::DType { expected, found }.of(DATA));
        }
        data.expect_bytes(signature.element_count(DATA)?.div_ceil(2))?;
        let rows = row_count(signature.shape);
        for (component, numbers) in [(scale, Numbers::Floats), (zero_point, Numbers::Reals)] {
            if component.is_understood(registry) {
                check_numbers(component, numbers, registry)?;
                component.expect_values(rows, registry)?;
            }
        }
        Ok(())
    }

    fn data_roles(&self) -> Option<&[&str]> {
        Some(&[])
    }

    fn is_of_value(&self, role: &str, _: &Signature<'_>) -> bool {
        [DATA, SCALE, ZERO_POINT].contains(&role)
    }

    fn dense_type(&self, signature: &Signature<'_>, _: &Registry) -> Option<(DType, Option<Text>)> {
        let builtin = Registry::builtin();
        let roles = [SCALE, ZERO_POINT].map(|role| signature.get(role));
        let mut roles = roles.into_iter();
        let is_known = roles.all(|role| role.is_some_and(|role| role.is_understood(&builtin)));
        is_known.then_some((DType::F32, None))
    }

    fn value_type(&self, _: &Signature<'_>) -> Option<Text> {
        Some(Text::Borrowed("4-bit"))
    }

    fn to_dense(&self, parts: Parts<'_>) -> Result<Dense<'static>> {
        Quantized4Bit::from_parts(parts)?.to_dense()
    }

    fn stored_dtype(&self, role: &str, signature: &Signature<'_>) -> Option<DType> {
        let is_number = [SCALE, ZERO_POINT].contains(&role);
        let byte_len = signature.get(role).filter(|_| is_number)?.byte_len?;
        dtype_of(byte_len, row_count(signature.shape))
    }

    fn row_unit(&self, signature: &Signature<'_>, _: &Registry) -> Option<u64> {
        let (_, row) = signature.shape.split_first()?;
        // Two rows of odd length share a byte.
        let is_even = element_count(row)?.is_multiple_of(2);
        Some(if is_even { 1 } else { 2 })
    }

    fn expected_len(
        &self,
        role: &str,
        signature: &Signature<'_>,
        registry: &Registry,
    ) -> Option<u64> {
        match role {
            DATA => Some(element_count(signature.shape)?.div_ceil(2)),
            SCALE | ZERO_POINT => {
                let value_len = signature.get(role)?.value_len(registry).ok()??;
                row_count(signature.shape).checked_mul(value_len)
            }
            _ => None,
        }
    }
}

/// An array of unsigned 4-bit values, `value = (quantized - zero_point) * scale`.
///
/// Always well-formed: the lengths of the components fit the shape. If a file does not give the
/// dtype of scales or zero-points, four bytes per row are read as f32, and two as f16.
///
/// [`QuantizedGroup`](crate::formats::quantized_group::QuantizedGroup) can hold the same array, with a
/// row as the group, and all readers of 1.2 know it.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantized4Bit<'a> {
    shape: Vec<u64>,
    data: Elements<'a>,
    scale: Elements<'a>,
    zero_point: Elements<'a>,
    /// The product of the shape.
    count: u64,
}

impl<'a> Quantized4Bit<'a> {
    /// An array of `shape` with the values `data`, and a scale and a zero-point for each row. Each
    /// byte has two values, the first in its lower half.
    ///
    /// # Errors
    ///
    /// Malformed: a rule of [`Quantized4BitFormat`]. Unsupported: a logical type outside the
    /// specification.
    pub fn new(
        shape: impl Into<Vec<u64>>,
        data: &'a [u8],
        scale: impl Into<Elements<'a>>,
        zero_point: impl Into<Elements<'a>>,
    ) -> Result<Self> {
        Self::from_typed(Parts {
            shape: Cow::Owned(shape.into()),
            attributes: Cow::Owned(Attributes::new()),
            elements: vec![
                (Text::Borrowed(DATA), data.into()),
                (Text::Borrowed(SCALE), scale.into()),
                (Text::Borrowed(ZERO_POINT), zero_point.into()),
            ],
        })
    }

    /// The view of parts whose dtypes are all known.
    fn from_typed(mut parts: Parts<'a>) -> Result<Self> {
        let registry = Registry::builtin();
        for role in [SCALE, ZERO_POINT] {
            expect_known(parts.component(role)?, &registry)?;
        }
        registry.check(Self::FORMAT, &parts.signature())?;
        let count = parts.signature().element_count(DATA)?;
        Ok(Quantized4Bit {
            data: parts.take(DATA)?,
            scale: parts.take(SCALE)?,
            zero_point: parts.take(ZERO_POINT)?,
            count,
            shape: parts.shape.into_owned(),
        })
    }

    /// The dimensions.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The packed values.
    pub fn data(&self) -> &[u8] {
        &self.data.bytes
    }

    /// The scale of each row.
    pub const fn scale(&self) -> &Elements<'a> {
        &self.scale
    }

    /// The zero-point of each row.
    pub const fn zero_point(&self) -> &Elements<'a> {
        &self.zero_point
    }

    /// The quantized values in row-major order, as many as the shape has; each is 0 to 15.
    pub fn quantized(&self) -> impl Iterator<Item = u8> {
        let pairs = self.data().iter().flat_map(|byte| [byte & 15, byte >> 4]);
        pairs.take(usize::try_from(self.count).unwrap_or(usize::MAX))
    }

    /// The values as f32: `(quantized - zero_point) * scale`, each step rounded to f32.
    ///
    /// # Errors
    ///
    /// Allocation.
    pub fn to_dense(&self) -> Result<Dense<'static>> {
        let scale: Vec<f32> = to_numbers(SCALE, &self.scale)?;
        let zero_point: Vec<f32> = to_numbers(ZERO_POINT, &self.zero_point)?;
        let mut out = Buffer::try_zeroed_values(self.count, 4)?;
        let (values, _) = out.as_chunks_mut::<4>();
        let row_len = values.len().checked_div(scale.len()).unwrap_or(0);
        let rows = values.chunks_mut(row_len.max(1)).zip(scale).zip(zero_point);
        let mut quantized = self.quantized();
        for ((row, scale), zero_point) in rows {
            for (value, quantized) in row.iter_mut().zip(quantized.by_ref()) {
                *value = ((f32::from(quantized) - zero_point) * scale).to_le_bytes();
            }
        }
        let elements = Elements::new(DType::F32, out);
        Ok(Dense::from_checked(self.shape.clone(), elements))
    }
}

impl<'a> View<'a> for Quantized4Bit<'a> {
    const FORMAT: &'static str = "quantized_4bit";

    /// A reader gives scales or zero-points as u8 if the file does not give their dtype. Their
    /// length then determines it.
    fn from_parts(mut parts: Parts<'a>) -> Result<Self> {
        let rows = row_count(&parts.shape);
        for role in [SCALE, ZERO_POINT] {
            let elements = parts.take(role)?;
            let elements = with_dtype(role, elements, rows)?;
            parts.elements.push((Text::Borrowed(role), elements));
        }
        Self::from_typed(parts)
    }
}

/// As 1.2 writes it, with every dtype.
impl ToObject for Quantized4Bit<'_> {
    fn to_object(&self) -> Result<NewObject<'_>> {
        let components = [
            (DATA, self.data.borrow()),
            (SCALE, self.scale.borrow()),
            (ZERO_POINT, self.zero_point.borrow()),
        ];
        Ok(NewObject::new(&self.shape, Self::FORMAT, None, components))
    }
}

/// The number of places of the first dimension.
fn row_count(shape: &[u64]) -> u64 {
    shape.first().copied().unwrap_or(1)
}

/// The elements with the dtype that their length determines, if the file does not give it: then
/// they are u8 here.
fn with_dtype<'a>(role: &'static str, elements: Elements<'a>, rows: u64) -> Result<Elements<'a>> {
    let byte_len = elements.bytes.len() as u64;
    let is_given = elements.dtype != DType::U8
        || elements.logical_type().is_some()
        || (byte_len == rows && role == ZERO_POINT);
    if is_given {
        return Ok(elements);
    }
    let Some(dtype) = dtype_of(byte_len, rows) else {
        let role = Text::Borrowed(role);
        return Err(Error::Unsupported(Unsupported::Untyped { role }));
    };
    Ok(Elements { dtype, ..elements })
}

fn dtype_of(byte_len: u64, rows: u64) -> Option<DType> {
    let numbers_of = |width: u64| rows.checked_mul(width) == Some(byte_len);
    if numbers_of(4) { Some(DType::F32) } else { numbers_of(2).then_some(DType::F16) }
}
