//! The filter bzip2: one stream. What follows it is ignored, as the filter's own reader does.
//!
//! Reference: `H5Zbzip2.c` of PyTables.

use bzip2::{Decompress, Status};

/// The decompressed bytes; `None` if `bytes` are invalid, or give more than `limit` bytes.
pub(super) fn decompress(bytes: &[u8], limit: usize) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    // One call decodes all, unless the input ends before the stream or the space is filled.
    out.try_reserve_exact(limit.checked_add(1)?).ok()?;
    let status = Decompress::new(false).decompress_vec(bytes, &mut out);
    (status == Ok(Status::StreamEnd) && out.len() <= limit).then_some(out)
}
