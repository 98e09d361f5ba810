//! Attributes of quantized objects: the values of the tables that are not used as scales.

pub(super) const TENSOR_ID: &str = "squizd.tensor_id";
pub(super) const TENSOR_SCALE: &str = "squizd.tensor_scale";
pub(super) const TENSOR_ZERO: &str = "squizd.tensor_zero";
/// The length of sub-blocks without scales.
pub(super) const SUB_BLOCK_LEN: &str = "squizd.sub_block_len";
