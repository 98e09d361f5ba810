//! A component with its place in its object, and its bytes as elements.

use zt_container::memory::in_memory;
use zt_container::{DigestAlgorithm, Encoding};
use zt_formats::{Bytes, Elements};
use zt_manifest::{ByteOrder, Component, DType, Text};

use crate::cores::read_ahead::WORTH_A_THREAD;

/// A component and its index in its object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Located<'f> {
    pub(crate) at: usize,
    pub(crate) role: &'f Text,
    pub(crate) component: &'f Component,
}

impl Located<'_> {
    /// Bytes of a piece for [`super::ComponentReader::for_each_piece`]: at most as many as the component
    /// has, because most objects are small. Raw bytes only pass through, and stay in a core's cache. A
    /// thread that read them ahead took twice the processor time. To compare a sha256 takes longer than that.
    pub(crate) fn piece_len(&self) -> usize {
        let blob = &self.component.blob;
        let is_slow =
            blob.encoding != Encoding::Raw || blob.algorithm() == Some(DigestAlgorithm::Sha256);
        let most = if is_slow { 1 << 20 } else { WORTH_A_THREAD as u64 };
        // At least one element of any dtype; the end shows in a piece that is not full.
        let declared = blob.decoded_len;
        in_memory(declared.map_or(most, |len| len.min(most.strict_sub(8)).strict_add(8)))
    }
}

pub(crate) fn elements_in<'b>(part: Located<'_>, bytes: impl Into<Bytes<'b>>) -> Elements<'b> {
    Elements {
        // Files of 1.0 record no dtype for some roles: these are bytes.
        dtype: part.component.dtype.unwrap_or(DType::U8),
        logical_type: part.component.logical_type.clone(),
        bytes: bytes.into(),
    }
}

/// Reverses the bytes of every element of a big-endian component. A partial element at the end stays: the
/// format has already refused it.
pub(crate) fn to_little_endian(component: &Component, bytes: &mut [u8]) {
    let width = component.dtype.map_or(1, DType::byte_len);
    if component.byte_order == ByteOrder::Big && width > 1 {
        bytes.chunks_exact_mut(width).for_each(<[u8]>::reverse);
    }
}
