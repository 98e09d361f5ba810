//! The rules of `gguf.<type>/1`.

use zt_formats::{
    Dense, ObjectFormat, Parts, Registry, Result, Signature, SizeMismatch, attribute,
};
use zt_manifest::{Attributes, ByteOrder, DType, Text};

use crate::blocks::Blocks;
use crate::types::BlockType;

pub(super) const DATA: &str = "data";
pub(super) const BYTE_ORDER: &str = "byte_order";

/// The rules of the format of one [`BlockType`].
///
/// * `data` is `u8`, and its length fits the shape.
/// * A row, along the last dimension, is whole blocks.
/// * The attribute `byte_order` is the order of fields that are wider than a byte: `little` if
///   absent.
#[derive(Debug, Clone, Copy)]
pub struct BlockFormat(pub &'static BlockType);

impl ObjectFormat for BlockFormat {
    fn id(&self) -> &str {
        self.0.format()
    }

    fn check(&self, signature: &Signature<'_>, _: &Registry) -> Result<()> {
        let data = signature.component(DATA)?;
        data.expect_plain(DType::U8)?;
        byte_order(signature.attributes)?;
        data.expect_bytes(self.byte_len(signature)?)
    }

    fn data_roles(&self) -> Option<&[&str]> {
        Some(&[])
    }

    fn is_of_value(&self, role: &str, _: &Signature<'_>) -> bool {
        role == DATA
    }

    fn dense_type(&self, signature: &Signature<'_>, _: &Registry) -> Option<(DType, Option<Text>)> {
        let order = byte_order(signature.attributes).ok()?;
        self.0.is_known_in(order).then_some((DType::F32, None))
    }

    fn value_type(&self, _: &Signature<'_>) -> Option<Text> {
        Some(Text::Owned(self.0.name().to_ascii_lowercase()))
    }

    fn parameters(&self) -> &[&str] {
        &[BYTE_ORDER]
    }

    fn to_dense(&self, parts: Parts<'_>) -> Result<Dense<'static>> {
        Blocks::from_parts(self.0, parts)?.to_dense()
    }

    fn decode_into(&self, parts: Parts<'_>, out: &mut [u8]) -> Result<()> {
        Blocks::from_parts(self.0, parts)?.decode_into(out)
    }

    fn is_flat(&self) -> bool {
        true
    }

    fn row_unit(&self, signature: &Signature<'_>, _: &Registry) -> Option<u64> {
        // Blocks lie along the last dimension. If that is the only one, its places are no whole
        // blocks.
        Some(match signature.shape.len() {
            1 => self.0.block_len(),
            _ => 1,
        })
    }

    fn expected_len(&self, role: &str, signature: &Signature<'_>, _: &Registry) -> Option<u64> {
        self.byte_len(signature).ok().filter(|_| role == DATA)
    }
}

impl BlockFormat {
    /// The length of the blocks of this shape.
    fn byte_len(&self, signature: &Signature<'_>) -> Result<u64> {
        let len = signature.shape.last().copied().unwrap_or(1);
        let multiple = self.0.block_len();
        if !len.is_multiple_of(multiple) {
            return Err(SizeMismatch::Row { len, multiple }.of(DATA));
        }
        let count = signature.element_count(DATA)?;
        // Rows are whole blocks, so only an overflow is left.
        self.0.byte_len(count).ok_or_else(|| {
            let shape = signature.shape.to_vec();
            SizeMismatch::Overflow { shape }.of(DATA)
        })
    }
}

/// The byte order of the blocks' fields.
pub(super) fn byte_order(attributes: &Attributes) -> Result<ByteOrder> {
    match attribute::text(attributes, BYTE_ORDER)? {
        None | Some("little") => Ok(ByteOrder::Little),
        Some("big") => Ok(ByteOrder::Big),
        Some(other) => Err(attribute::other_text(BYTE_ORDER, other, "little or big")),
    }
}
