//! Values of less than a byte, which a file stores in one byte each, as a source of packed values.

use std::io;
use std::sync::Arc;

use zt::container::memory::{end_of_read, in_memory, resize};
use zt::formats::PackedType;
use zt::{Error, Source};

/// Values that are packed at a time.
const PIECE: u64 = 16 << 10;

/// Values that are whole bytes, whatever their type.
const GROUP: u64 = 4;

/// Packs values when they are read. Bits beside a value in its byte are ignored, as `ml_dtypes` does.
pub struct Packing {
    base: Arc<dyn Source>,
    offset: u64,
    packed: PackedType,
    count: u64,
}

impl Packing {
    /// The values of `count` bytes of `base` from `offset` on. The base has them.
    pub fn new(base: Arc<dyn Source>, offset: u64, count: u64, packed: PackedType) -> Self {
        Packing { base, offset, packed, count }
    }
}

impl Source for Packing {
    fn byte_len(&self) -> u64 {
        self.packed.byte_len(self.count)
    }

    fn is_sequential(&self) -> bool {
        self.base.is_sequential()
    }

    fn is_remote(&self) -> bool {
        self.base.is_remote()
    }

    #[expect(clippy::arithmetic_side_effects, reason = "all positions are within the source")]
    fn read_at(&self, mut offset: u64, mut buf: &mut [u8]) -> io::Result<()> {
        end_of_read(self.byte_len(), offset, buf)?;
        let group_len = self.packed.byte_len(GROUP);
        let (mut codes, mut packed) = (Vec::new(), Vec::new());
        while !buf.is_empty() {
            // From the group that has the first byte, as many groups as are wanted.
            let skipped = offset % group_len;
            let first = offset / group_len * GROUP;
            let wanted = (skipped + buf.len() as u64).div_ceil(group_len) * GROUP;
            let count = wanted.min(PIECE).min(self.count - first);
            resize(&mut codes, count).map_err(Error::from)?;
            self.base.read_at(self.offset + first, &mut codes)?;
            resize(&mut packed, self.packed.byte_len(count)).map_err(Error::from)?;
            self.packed.pack(&codes, &mut packed);
            let packed = packed.get(in_memory(skipped)..).unwrap_or_default();
            let len = packed.len().min(buf.len());
            let (here, rest) = buf.split_at_mut(len);
            here.copy_from_slice(packed.get(..len).unwrap_or_default());
            (offset, buf) = (offset + len as u64, rest);
        }
        Ok(())
    }
}
