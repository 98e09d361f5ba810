//! Numbers that no dtype has, as a source that widens them while they are read.

use std::io;
use std::sync::Arc;

use zt::container::memory::read_whole;
use zt::{DType, Source};

use crate::structures::bit_layout::BitLayout;

/// Stored bytes that are converted at once.
const PIECE: usize = 64 << 10;

/// Stored numbers as the numbers of a dtype, little-endian.
pub(crate) struct Widened {
    stored: Arc<dyn Source>,
    layout: BitLayout,
    dtype: DType,
    byte_len: u64,
}

impl Widened {
    /// `None` if the numbers have too many bytes.
    pub(crate) fn new(stored: Arc<dyn Source>, layout: BitLayout, dtype: DType) -> Option<Self> {
        let count = stored.byte_len().checked_div(layout.byte_len as u64)?;
        let byte_len = count.checked_mul(dtype.byte_len() as u64)?;
        Some(Widened { stored, layout, dtype, byte_len })
    }
}

impl Source for Widened {
    fn byte_len(&self) -> u64 {
        self.byte_len
    }

    fn is_sequential(&self) -> bool {
        self.stored.is_sequential()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let (from, to) = (self.layout.byte_len, self.dtype.byte_len());
        let (mut stored, mut wide) = (Vec::new(), Vec::new());
        read_whole(self.byte_len, to, offset, buf, |first, numbers| {
            // A number is not empty, and all of them are in the stored bytes.
            let mut at = first.strict_mul(from as u64);
            for piece in numbers.chunks_mut(PIECE.strict_div(from).strict_mul(to)) {
                stored.resize(piece.len().strict_div(to).strict_mul(from), 0);
                self.stored.read_at(at, &mut stored)?;
                wide.clear();
                for number in stored.chunks_exact(from) {
                    self.layout.widen(number, self.dtype, &mut wide);
                }
                piece.copy_from_slice(&wide);
                at = at.strict_add(stored.len() as u64);
            }
            Ok(())
        })
    }
}
