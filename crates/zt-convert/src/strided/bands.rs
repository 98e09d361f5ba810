//! Bands that are held while they are being read.
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The bands of a file's views that are being read.
#[derive(Clone, Default)]
pub(crate) struct Bands(Arc<Mutex<Held>>);

#[derive(Default)]
struct Held {
    ids: u64,
    /// The last one used at the end.
    slots: Vec<(Key, Arc<Slot>)>,
}

/// A view, and the first byte of the band.
pub(crate) type Key = (u64, u64);

struct Slot {
    bytes: Mutex<Option<Vec<u8>>>,
    /// Bytes that nobody has read yet, if each is read once.
    left: Mutex<u64>,
}

/// Bands that are held at a time: one for every thread that may read.
pub(super) fn slots() -> usize {
    // Asked once: the answer takes a look at several files.
    static THREADS: OnceLock<usize> = OnceLock::new();
    let ask = || std::thread::available_parallelism().map_or(4, |threads| threads.get().max(4));
    *THREADS.get_or_init(ask)
}

impl Bands {
    /// A number that no other view of the file has: the first half of the keys of its bands.
    pub(crate) fn next_id(&self) -> u64 {
        let mut held = lock(&self.0);
        held.ids = held.ids.saturating_add(1);
        held.ids
    }

    /// Copies the bytes from `skip` on out of a band of `byte_len` bytes, which whoever comes first
    /// has to `make`; how many there were, up to all of `out`.
    pub(crate) fn copy(
        &self,
        key: Key,
        byte_len: u64,
        skip: u64,
        out: &mut [u8],
        make: impl FnOnce() -> io::Result<Vec<u8>>,
    ) -> io::Result<usize> {
        let slot = self.slot(key, byte_len);
        let copied = slot.with(make, |bytes| {
            let skip = usize::try_from(skip).unwrap_or(usize::MAX);
            let held = bytes.get(skip..).unwrap_or_default();
            let len = held.len().min(out.len());
            for (to, from) in out.iter_mut().zip(held) {
                *to = *from;
            }
            len
        })?;
        if slot.is_used_up(copied as u64) {
            self.remove(key);
        }
        Ok(copied)
    }

    fn slot(&self, key: Key, byte_len: u64) -> Arc<Slot> {
        let held = &mut lock(&self.0).slots;
        let slot = match held.iter().position(|(known, _)| *known == key) {
            Some(at) => held.remove(at).1,
            None => Arc::new(Slot {
                bytes: Mutex::default(),
                left: Mutex::new(byte_len),
            }),
        };
        if held.len() >= slots() {
            held.remove(0);
        }
        held.push((key, Arc::clone(&slot)));
        slot
    }

    /// Whether none is held.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        lock(&self.0).slots.is_empty()
    }

    fn remove(&self, key: Key) {
        lock(&self.0).slots.retain(|(known, _)| *known != key);
    }
}

impl Slot {
    /// Looks at the bytes, which whoever comes first has to `make`; others wait for them.
    fn with<T>(
        &self,
        make: impl FnOnce() -> io::Result<Vec<u8>>,
        look: impl FnOnce(&[u8]) -> T,
    ) -> io::Result<T> {
        let mut bytes = lock(&self.bytes);
        let made = match bytes.take() {
            Some(made) => made,
            None => make()?,
        };
        Ok(look(bytes.insert(made)))
    }

    fn is_used_up(&self, read: u64) -> bool {
        let mut left = lock(&self.left);
        *left = left.saturating_sub(read);
        *left == 0
    }
}

/// What a panic left behind is whole: it is only ever replaced.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
