//! A source in memory that behaves as a file does.

use std::io;

use zt::{Memory, Source};

/// Bytes that are copied where they are asked for and never lent.
#[derive(Debug, Clone)]
pub struct ByPosition(pub Vec<u8>);

impl Source for ByPosition {
    fn byte_len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        Memory::new(&self.0[..]).read_at(offset, buf)
    }
}
