//! `zt.QuantizedGroup`: packed integers with a scale and a zero-point for each group.

use pyo3::prelude::*;
use zt::{Attributes, Elements, NewObject};

use crate::share::error::Result;
use crate::write::array::LentArray;

/// A quantized tensor to write: packed integers, with a scale and a zero-point for each group of
/// ``group_size`` values in row-major order. Nothing is copied. The writer checks it.
///
/// Args:
///     packed_weight: the packed words, of the integer type that ``packing`` names.
///     scales: a floating-point number for each group.
///     zeros: a zero-point for each group; ``None`` where all are zero.
///     shape: the dimensions of the values.
///     bits: the bits of a value.
///     group_size: how many values share a scale.
///     packing: how many values a word has, and its type: ``"8_per_i32"``, ``"2_per_u8"``.
///     signed: whether values are in two's complement.
///     zero_kind: ``"subtractive"``: (q - zero) * scale; ``"additive"``: q * scale + zero.
#[pyclass(frozen, module = "zt", name = "QuantizedGroup")]
pub(crate) struct QuantizedGroup {
    shape: Vec<u64>,
    attributes: Attributes,
    packed: LentArray,
    scales: LentArray,
    zeros: Option<LentArray>,
}

impl QuantizedGroup {
    pub(crate) fn byte_len(&self) -> usize {
        let zeros = self.zeros.as_ref().map_or(0, LentArray::byte_len);
        self.packed.byte_len() + self.scales.byte_len() + zeros
    }

    pub(crate) fn object(&self) -> zt::Result<NewObject<'_>> {
        let mut components: Vec<(&'static str, Elements<'_>)> =
            vec![("packed_weight", self.packed.elements()?), ("scales", self.scales.elements()?)];
        if let Some(zeros) = &self.zeros {
            components.push(("zeros", zeros.elements()?));
        }
        Ok(NewObject::new(
            &self.shape,
            "quantized_group",
            Some(self.attributes.clone()),
            components,
        ))
    }
}

#[pymethods]
impl QuantizedGroup {
    #[new]
    #[pyo3(signature = (
        *, packed_weight, scales, zeros = None, shape, bits, group_size, packing, signed = false,
        zero_kind = "subtractive"
    ))]
    #[expect(clippy::too_many_arguments, reason = "the keywords of Python's call")]
    fn new(
        packed_weight: &Bound<'_, PyAny>,
        scales: &Bound<'_, PyAny>,
        zeros: Option<&Bound<'_, PyAny>>,
        shape: Vec<u64>,
        bits: u32,
        group_size: u64,
        packing: &str,
        signed: bool,
        zero_kind: &str,
    ) -> Result<Self> {
        let mut attributes = Attributes::new();
        attributes.insert("bits", u64::from(bits));
        attributes.insert("group_size", group_size);
        attributes.insert("packing", packing);
        // Defaults are left out, as the engine does.
        if signed {
            attributes.insert("signed", true);
        }
        if zero_kind != "subtractive" {
            attributes.insert("zero_kind", zero_kind);
        }
        Ok(QuantizedGroup {
            shape,
            attributes,
            packed: LentArray::new(packed_weight)?,
            scales: LentArray::new(scales)?,
            zeros: zeros.map(LentArray::new).transpose()?,
        })
    }

    fn __repr__(&self) -> String {
        format!("<zt.QuantizedGroup shape={:?}>", self.shape)
    }
}
