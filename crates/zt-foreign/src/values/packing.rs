//! Values of less than a byte, which a file stores in one byte each, as a source of packed values.

use std::io;
use std::sync::Arc;

use zt::Source;
use zt::container::memory::{end_of_read, in_memory};
use zt::formats::PackedType;

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
            codes.resize(in_memory(count), 0);
            self.base.read_at(self.offset + first, &mut codes)?;
            packed.resize(in_memory(self.packed.byte_len(count)), 0);
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

#[cfg(test)]
mod tests {
    use zt::Memory;

    use super::*;

    #[test]
    fn bytes_are_the_same_wherever_reading_begins() {
        for packed in PackedType::ALL {
            let codes: Vec<u8> = (0..=255).cycle().take(2 * 16384 + 3).collect();
            let mut expected = vec![0; in_memory(packed.byte_len(codes.len() as u64))];
            packed.pack(&codes, &mut expected);
            let stored = [&[0xaa; 5][..], &codes].concat();
            let count = codes.len() as u64;
            let source = Packing::new(Arc::new(Memory::new(stored)), 5, count, packed);
            assert_eq!(source.byte_len(), expected.len() as u64);
            let len = expected.len();
            for start in (0..7).chain([len / 2, len - 1, len]) {
                for end in [start, start + 1, start + 5, len] {
                    let Some(expected) = expected.get(start..end) else {
                        continue;
                    };
                    let mut bytes = vec![0; expected.len()];
                    source.read_at(start as u64, &mut bytes).unwrap();
                    assert_eq!(bytes, expected, "{packed} {start}..{end}");
                }
            }
            assert!(source.read_at(len as u64, &mut [0]).is_err());
        }
    }
}
