//! Quantized blocks of ggml, decoded to floats on all cores.

use zt_formats::{Buffer, Dense, Elements};
use zt_ggml::{BlockType, Blocks};
use zt_manifest::{ByteOrder, DType};

use crate::cores::parallel;
use crate::error::Result;
use crate::file::tensor::Tensor;

/// Values that are made at a time, about: 1 MiB of floats, which take a core some 100 µs.
const PIECE: u64 = 1 << 18;

/// The dense value of an object of blocks; `None` where the general way is as good.
pub(crate) fn to_dense(tensor: &Tensor<'_>) -> Result<Option<Dense<'static>>> {
    let Some(block_type) = BlockType::from_format(tensor.format()) else {
        return Ok(None);
    };
    let blame = |error| tensor.blame_format(error);
    let blocks = Blocks::from_parts(block_type, tensor.parts()?).map_err(blame)?;
    let (block_len, byte_len) = (block_type.block_len(), block_type.block_byte_len());
    let per_piece = (PIECE / block_len).max(1);
    let piece = |len: u64| usize::try_from(per_piece * len).unwrap_or(usize::MAX);
    // Big-endian blocks are turned one by one, and rare.
    if blocks.byte_order() == ByteOrder::Big || blocks.bytes().len() <= piece(byte_len) {
        return blocks.to_dense().map(Some).map_err(blame);
    }
    let count = blocks.bytes().len() as u64 / byte_len * block_len;
    let mut out = Buffer::try_zeroed(count.saturating_mul(4))?;
    let (places, _) = out.as_chunks_mut::<4>();
    let bytes = blocks.bytes().chunks(piece(byte_len));
    let pieces = bytes.zip(places.chunks_mut(piece(block_len))).collect();
    parallel::map_owned(pieces, |(bytes, places)| {
        block_type.dequantize(bytes, places);
        Ok(())
    })?;
    let elements = Elements::new(DType::F32, out);
    let dense = Dense::from_elements(tensor.shape(), elements);
    dense.map(Some).map_err(blame)
}
