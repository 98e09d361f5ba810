//! Sources in memory that behave as a file does.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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

/// The same, which counts the bytes that are read.
#[derive(Debug, Clone)]
pub struct Counted(pub Vec<u8>, pub Arc<AtomicU64>);

impl Source for Counted {
    fn byte_len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.1.fetch_add(buf.len() as u64, Ordering::Relaxed);
        Memory::new(&self.0[..]).read_at(offset, buf)
    }
}
