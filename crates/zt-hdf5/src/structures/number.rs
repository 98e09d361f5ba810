//! A number of a file: its type, and its value.

use std::sync::Arc;

use zt::formats::{F8E4M3Fn, F8E5M2, PackedType, f16};
use zt::{Attributes, ByteOrder, DType, Value};
use zt_foreign::{Meaning, MlDtype};

use crate::bytes::bits;
use crate::structures::bit_layout::BitLayout;

/// A number that zt supports.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Number {
    pub(crate) dtype: DType,
    pub(crate) logical_type: Option<&'static str>,
    pub(crate) byte_order: ByteOrder,
    /// The layout of the stored numbers, if no dtype has it.
    pub(crate) bit_layout: Option<BitLayout>,
    /// The values of an enumeration by name.
    pub(crate) names: Option<Arc<Attributes>>,
    /// The type that opaque bytes are read as.
    pub(crate) ml_dtype: Option<MlDtype>,
}

impl Number {
    /// The type, if its values have less than a byte. Each is stored in a byte of its own.
    pub(crate) fn packed(&self) -> Option<PackedType> {
        match self.ml_dtype?.meaning {
            Meaning::Packed(packed) => Some(packed),
            Meaning::Values(..) => None,
        }
    }

    pub(crate) fn new(dtype: DType, byte_order: ByteOrder) -> Self {
        Number {
            dtype,
            logical_type: None,
            byte_order,
            bit_layout: None,
            names: None,
            ml_dtype: None,
        }
    }

    /// Its value; a complex one is a list of two.
    pub(crate) fn value(&self, bytes: &[u8]) -> Value {
        match (self.logical_type, bytes) {
            (Some("f8_e5m2"), [bits]) => return F8E5M2::from_bits(*bits).to_f32().into(),
            (Some("f8_e4m3fn"), [bits]) => return F8E4M3Fn::from_bits(*bits).to_f32().into(),
            _ => {}
        }
        if let Some(layout) = self.bit_layout {
            let mut wide = Vec::new();
            for stored in bytes.chunks_exact(layout.byte_len) {
                layout.widen(stored, self.dtype, &mut wide);
            }
            return Number { bit_layout: None, ..self.clone() }.value(&wide);
        }
        let parts = bytes.chunks_exact(self.dtype.byte_len());
        let mut parts = parts.map(|bytes| scalar(self.dtype, self.byte_order, bytes));
        match (parts.next(), parts.len()) {
            (Some(only), 0) => only,
            (first, _) => Value::array(first.into_iter().chain(parts).collect::<Vec<_>>()),
        }
    }
}

fn scalar(dtype: DType, byte_order: ByteOrder, bytes: &[u8]) -> Value {
    let bits = bits::number(bytes, byte_order);
    let [a, b, c, d, ..] = bits.to_le_bytes();
    match dtype {
        DType::I8 => i8::from_le_bytes([a]).into(),
        DType::I16 => i16::from_le_bytes([a, b]).into(),
        DType::I32 => i32::from_le_bytes([a, b, c, d]).into(),
        DType::I64 => bits.cast_signed().into(),
        DType::Bool => (bits != 0).into(),
        DType::F64 => f64::from_bits(bits).into(),
        DType::F32 => f32::from_le_bytes([a, b, c, d]).into(),
        // bf16 is the upper half of an f32.
        DType::BF16 => f32::from_le_bytes([0, 0, a, b]).into(),
        DType::F16 => f16::from_le_bytes([a, b]).to_f32().into(),
        _ => bits.into(),
    }
}
