//! The types of tensors, by number.

use zt::DType;
use zt::ggml::BlockType;

/// The type of a tensor's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TensorType {
    /// A dtype of zTensor.
    Plain(DType),
    /// Quantized blocks.
    Blocks(&'static BlockType),
    /// An unknown or retired number. Its bytes are kept.
    Unknown(u32),
}

/// The numbers of the plain types.
const PLAIN: [(u32, DType); 8] = [
    (0, DType::F32),
    (1, DType::F16),
    (24, DType::I8),
    (25, DType::I16),
    (26, DType::I32),
    (27, DType::I64),
    (28, DType::F64),
    (30, DType::BF16),
];

/// Prefix and suffix of the number of an unknown type, in the format of its objects.
const UNKNOWN: (&str, &str) = ("gguf.type_", "/1");

impl TensorType {
    pub(super) fn from_id(id: u32) -> Self {
        if let Some((_, dtype)) = PLAIN.iter().find(|(known, _)| *known == id) {
            return TensorType::Plain(*dtype);
        }
        BlockType::from_id(id).map_or(TensorType::Unknown(id), TensorType::Blocks)
    }

    /// The type of a dense object, if there is one.
    pub(super) fn from_types(dtype: DType, logical_type: Option<&str>) -> Option<Self> {
        let is_known = logical_type.is_none() && PLAIN.iter().any(|(_, known)| *known == dtype);
        is_known.then_some(TensorType::Plain(dtype))
    }

    /// The type of an object of this format, if the format keeps the bytes of a tensor.
    pub(super) fn from_format(format: &str) -> Option<Self> {
        if let Some(block_type) = BlockType::from_format(format) {
            return Some(TensorType::Blocks(block_type));
        }
        let number = format.strip_prefix(UNKNOWN.0)?.strip_suffix(UNKNOWN.1)?;
        let id = number.parse().ok().filter(|id: &u32| id.to_string() == number)?;
        let unknown = TensorType::Unknown(id);
        (TensorType::from_id(id) == unknown).then_some(unknown)
    }

    #[expect(clippy::expect_used, reason = "`Plain` is made from the table only")]
    pub(super) fn id(self) -> u32 {
        match self {
            TensorType::Plain(dtype) => {
                let row = PLAIN.iter().find(|(_, known)| *known == dtype);
                row.expect("every plain type has a row").0
            }
            TensorType::Blocks(block_type) => block_type.id(),
            TensorType::Unknown(id) => id,
        }
    }

    /// The dtype, or the format of the blocks.
    pub(super) fn name(self) -> String {
        match self {
            TensorType::Plain(dtype) => dtype.to_string(),
            other => other.format(),
        }
    }

    pub(super) fn format(self) -> String {
        match self {
            TensorType::Plain(_) => "dense".to_owned(),
            TensorType::Blocks(block_type) => block_type.format().to_owned(),
            TensorType::Unknown(id) => format!("{}{id}{}", UNKNOWN.0, UNKNOWN.1),
        }
    }

    /// Whether the byte order matters. `true` for unknown types, `false` for plain types, whose dtype
    /// covers it.
    pub(super) fn has_words(self) -> bool {
        match self {
            TensorType::Plain(_) => false,
            TensorType::Blocks(block_type) => block_type.has_words(),
            TensorType::Unknown(_) => true,
        }
    }

    /// The bytes of `shape`, row-major; `None` for an unknown type, for a row that is no whole number
    /// of blocks, and beyond 2^64.
    pub(super) fn byte_len(self, shape: &[u64]) -> Option<u64> {
        let count = zt::formats::element_count(shape)?;
        match self {
            TensorType::Plain(dtype) => count.checked_mul(dtype.byte_len() as u64),
            TensorType::Blocks(block_type) => {
                let row = shape.last().copied().unwrap_or(1);
                let is_whole = row.is_multiple_of(block_type.block_len());
                block_type.byte_len(count).filter(|_| is_whole)
            }
            TensorType::Unknown(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::TensorType;

    #[test]
    fn numbers_and_formats_identify_their_type() {
        for id in 0..300 {
            let tensor_type = TensorType::from_id(id);
            assert_eq!(tensor_type.id(), id);
            if !matches!(tensor_type, TensorType::Plain(_)) {
                assert_eq!(TensorType::from_format(&tensor_type.format()), Some(tensor_type));
            }
        }
        for wrong in ["gguf.type_2/1", "gguf.type_04/1", "gguf.type_/1", "gguf.q4_0/2", "dense"] {
            assert_eq!(TensorType::from_format(wrong), None);
        }
    }
}
