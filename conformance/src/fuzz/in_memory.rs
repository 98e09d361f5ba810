//! A file in memory that is changed in place.

use std::io;
use std::sync::{Mutex, PoisonError};

use zt::{Memory, Source, Storage};

/// A file in memory whose changes fail from some step on.
pub(super) struct InMemory(Mutex<State>);

struct State {
    bytes: Vec<u8>,
    /// Changes that still succeed.
    fuse: Option<usize>,
}

impl InMemory {
    pub(super) const fn new(bytes: Vec<u8>) -> Self {
        InMemory(Mutex::new(State { bytes, fuse: None }))
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        self.with(|state| state.bytes.clone())
    }

    pub(super) fn set_fuse(&self, fuse: Option<usize>) {
        self.with(|state| state.fuse = fuse);
    }

    /// Whether every change fails by now.
    pub(super) fn is_blown(&self) -> bool {
        self.with(|state| state.fuse == Some(0))
    }

    fn with<T>(&self, call: impl FnOnce(&mut State) -> T) -> T {
        call(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn change(&self, change: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        self.with(|state| match &mut state.fuse {
            Some(0) => Err(io::Error::other("the storage is gone")),
            fuse => {
                if let Some(left) = fuse {
                    *left -= 1;
                }
                change(&mut state.bytes);
                Ok(())
            }
        })
    }
}

impl Storage for InMemory {
    fn byte_len(&self) -> io::Result<u64> {
        Ok(self.with(|state| state.bytes.len() as u64))
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.with(|state| Memory::new(&state.bytes[..]).read_at(offset, buf))
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let (start, end) = (offset as usize, offset as usize + bytes.len());
        self.change(|file| {
            file.resize(file.len().max(end), 0);
            file[start..end].copy_from_slice(bytes);
        })
    }

    fn set_len(&self, byte_len: u64) -> io::Result<()> {
        self.change(|file| file.resize(byte_len as usize, 0))
    }

    fn sync(&self) -> io::Result<()> {
        self.change(|_| {})
    }
}
