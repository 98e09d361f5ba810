//! Integers of a file that are indices.

use std::io;
use std::sync::Arc;

use zt::container::memory::zeroed;
use zt::{Blob, ByteOrder, DType, Error, Source};

use super::{Axis, SparseFault};
use crate::strided::Check;

/// Integers of a file, as u64. The bits of a negative one become a number that is beyond every dimension.
pub struct Indices {
    source: Arc<dyn Source>,
    check: Check,
    start: u64,
    count: u64,
    dtype: DType,
    byte_order: ByteOrder,
}

impl Indices {
    /// The integers in a raw `blob` that lies in `source`. A digest of the blob is checked before the last
    /// index is read.
    ///
    /// # Errors
    ///
    /// [`SparseFault`]: `dtype` has no integers, or the last one is cut.
    pub fn new(
        source: Arc<dyn Source>,
        blob: Blob,
        dtype: DType,
        byte_order: ByteOrder,
    ) -> Result<Self, SparseFault> {
        let is_integer = !dtype.is_float() && dtype != DType::Bool;
        if !is_integer {
            return Err(SparseFault::NotIntegers { dtype });
        }
        let (start, byte_len) = (blob.span.offset(), blob.span.byte_len());
        let width = dtype.byte_len() as u64;
        if !byte_len.is_multiple_of(width) {
            return Err(SparseFault::Partial { byte_len, dtype });
        }
        Ok(Indices {
            source,
            check: Check::new(blob),
            start,
            count: byte_len.strict_div(width),
            dtype,
            byte_order,
        })
    }

    /// The number of indices.
    pub const fn count(&self) -> u64 {
        self.count
    }
}

impl Axis for Indices {
    fn fill(&self, first: u64, out: &mut [u64]) -> io::Result<()> {
        let width = self.dtype.byte_len();
        let offset = self.start.strict_add(first.strict_mul(width as u64));
        let mut stored = zeroed(out.len().strict_mul(width) as u64).map_err(Error::from)?;
        self.source.read_at(offset, &mut stored)?;
        let stored = stored.chunks_exact(width);
        for (index, stored) in out.iter_mut().zip(stored) {
            *index = as_u64(stored, self.dtype, self.byte_order);
        }
        if first.strict_add(out.len() as u64) == self.count {
            self.check.run(&*self.source)?;
        }
        Ok(())
    }

    fn is_sequential(&self) -> bool {
        self.source.is_sequential()
    }
}

/// A stored integer of at most 8 bytes. A negative one keeps its sign.
fn as_u64(stored: &[u8], dtype: DType, byte_order: ByteOrder) -> u64 {
    let is_signed = matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64);
    let highest = match byte_order {
        ByteOrder::Little => stored.last(),
        ByteOrder::Big => stored.first(),
    };
    let is_negative = is_signed && highest.is_some_and(|byte| *byte >= 0x80);
    let mut word = [if is_negative { 0xFF } else { 0 }; 8];
    let len = stored.len();
    for (at, byte) in stored.iter().enumerate() {
        let at = match byte_order {
            ByteOrder::Little => at,
            ByteOrder::Big => len.strict_sub(at).strict_sub(1),
        };
        if let Some(to) = word.get_mut(at) {
            *to = *byte;
        }
    }
    u64::from_le_bytes(word)
}
