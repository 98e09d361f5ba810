//! Numbers that no dtype has, as a source that widens them while they are read.

use std::io;
use std::sync::Arc;

use zt::container::memory::{end_of_read, in_memory};
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

    fn read_at(&self, offset: u64, mut buf: &mut [u8]) -> io::Result<()> {
        end_of_read(self.byte_len, offset, buf)?;
        let ended = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let width = self.dtype.byte_len();
        let mut skipped = in_memory(offset.strict_rem(width as u64));
        // A number is not empty, and all of them are in the stored bytes.
        let mut at = offset.strict_div(width as u64).strict_mul(self.layout.byte_len as u64);
        let per_piece = PIECE.strict_div(self.layout.byte_len);
        let (mut stored, mut wide) = (Vec::new(), Vec::new());
        while !buf.is_empty() {
            let wanted = buf.len().strict_add(skipped).div_ceil(width);
            stored.resize(wanted.min(per_piece).strict_mul(self.layout.byte_len), 0);
            self.stored.read_at(at, &mut stored)?;
            wide.clear();
            for number in stored.chunks_exact(self.layout.byte_len) {
                self.layout.widen(number, self.dtype, &mut wide);
            }
            let made = wide.get(skipped..).ok_or_else(ended)?;
            let len = made.len().min(buf.len());
            let (target, rest) = buf.split_at_mut_checked(len).ok_or_else(ended)?;
            target.copy_from_slice(made.get(..len).ok_or_else(ended)?);
            buf = rest;
            skipped = 0;
            at = at.strict_add(stored.len() as u64);
        }
        Ok(())
    }
}
