//! The meaning of elements.

use zt::formats::{LogicalType, PackedType, View, dense_byte_len, element_count};
use zt::manifest::Text;
use zt::{Blob, Component, DType, Dense, Object};

/// The meaning of the elements of an array in a foreign file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Meaning {
    /// Values of a dtype and, if any, a logical type.
    Values(DType, Option<&'static str>),
    /// Values of less than a byte, packed as the formats of zt pack them.
    Packed(PackedType),
}

impl Meaning {
    /// Bytes of an array of this shape; `None` if it is 2^64 or more.
    pub fn byte_len(self, shape: &[u64]) -> Option<u64> {
        match self {
            Meaning::Values(dtype, logical_type) => {
                let logical_type = logical_type.and_then(LogicalType::builtin);
                let value_len = logical_type.map(LogicalType::value_len);
                dense_byte_len(shape, value_len.unwrap_or(dtype.byte_len() as u64))
            }
            Meaning::Packed(packed) => Some(packed.byte_len(element_count(shape)?)),
        }
    }

    /// The dtype of the stored elements: u8 of packed values.
    pub const fn dtype(self) -> DType {
        match self {
            Meaning::Values(dtype, _) => dtype,
            Meaning::Packed(_) => DType::U8,
        }
    }

    /// Elements of this meaning.
    pub fn component(self, blob: Blob) -> Component {
        let mut component = Component::new(self.dtype(), blob);
        if let Meaning::Values(_, logical_type) = self {
            component.logical_type = logical_type.map(Text::Borrowed);
        }
        component
    }

    /// A plain array of these elements.
    pub fn object(self, shape: Vec<u64>, elements: Component) -> Object {
        let format = match self {
            Meaning::Values(..) => Dense::FORMAT,
            Meaning::Packed(packed) => packed.format(),
        };
        Object::new(shape, format).with_component("data", elements)
    }
}
