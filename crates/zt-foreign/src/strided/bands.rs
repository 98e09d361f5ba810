//! The bands that are held while they are read.

use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, ThreadId};

use zt::container::memory::in_memory;

use super::cut::{BANDS, Band, Cut};

/// Bands that a thread keeps whatever their length, because it may compare two views. With one band,
/// every piece would be gathered again.
const PER_THREAD: usize = 2;

/// The bands that are being read, of all views of a file.
#[derive(Clone, Default)]
pub struct Bands(Arc<Mutex<Held>>);

#[derive(Default)]
struct Held {
    ids: u64,
    /// From the least to the most recently used.
    slots: Vec<Entry>,
}

struct Entry {
    key: Key,
    byte_len: u64,
    /// The thread that used it last.
    thread: ThreadId,
    slot: Arc<Slot>,
}

/// A view, and the first byte of the band.
pub(super) type Key = (u64, u64);

#[derive(Default)]
struct Slot {
    bytes: Mutex<Option<Vec<u8>>>,
    /// All bytes before this one have been read, in order.
    read_to: Mutex<u64>,
}

/// The most bands that are held at a time: one for every thread that may read.
pub(super) fn slots() -> usize {
    // Asked once, because the answer reads several files.
    static THREADS: OnceLock<usize> = OnceLock::new();
    let ask = || std::thread::available_parallelism().map_or(4, |threads| threads.get().max(4));
    *THREADS.get_or_init(ask)
}

impl Bands {
    /// A number that no other view of the file has, for the keys of a view's bands.
    pub fn next_id(&self) -> u64 {
        let mut held = lock(&self.0);
        held.ids = held.ids.strict_add(1);
        held.ids
    }

    /// Fills `out` with the bytes from `offset` on, band by band. `id` is the [number](Bands::next_id)
    /// of the elements, and `make` gathers a band of them that is not held.
    ///
    /// # Errors
    ///
    /// Those of `make`; [`io::ErrorKind::UnexpectedEof`] if a band is too short.
    pub fn fill(
        &self,
        id: u64,
        cut: &Cut,
        mut offset: u64,
        mut out: &mut [u8],
        make: impl Fn(&Band) -> io::Result<Vec<u8>>,
    ) -> io::Result<()> {
        while !out.is_empty() {
            let band = cut.locate(offset);
            let (key, skip) = ((id, band.start), offset.strict_sub(band.start));
            let len = self.copy(key, band.byte_len, skip, out, || make(&band))?;
            if len == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            offset = offset.strict_add(len as u64);
            out = out.get_mut(len..).unwrap_or_default();
        }
        Ok(())
    }

    /// Copies bytes from `skip` on out of a band of `byte_len` bytes. The first caller makes the band
    /// with `make`. Returns the number of bytes, up to all of `out`.
    pub fn copy(
        &self,
        key: Key,
        byte_len: u64,
        skip: u64,
        out: &mut [u8],
        make: impl FnOnce() -> io::Result<Vec<u8>>,
    ) -> io::Result<usize> {
        let slot = self.slot(key, byte_len);
        // Others wait until the first caller has made the bytes.
        let mut bytes = lock(&slot.bytes);
        let made = match bytes.take() {
            Some(made) => made,
            None => make()?,
        };
        let held = bytes.insert(made).get(in_memory(skip)..);
        let held = held.unwrap_or_default();
        let copied = held.len().min(out.len());
        for (to, from) in out.iter_mut().zip(held) {
            *to = *from;
        }
        drop(bytes);
        if slot.read_to_after(skip, copied as u64) >= byte_len {
            self.remove(key);
        }
        Ok(copied)
    }

    fn slot(&self, key: Key, byte_len: u64) -> Arc<Slot> {
        let held = &mut lock(&self.0).slots;
        let thread = thread::current().id();
        let slot = match held.iter().position(|entry| entry.key == key) {
            Some(at) => held.remove(at).slot,
            None => {
                make_room(held, byte_len, thread);
                Arc::default()
            }
        };
        held.push(Entry { key, byte_len, thread, slot: Arc::clone(&slot) });
        slot
    }

    /// Whether none is held.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        lock(&self.0).slots.is_empty()
    }

    fn remove(&self, key: Key) {
        lock(&self.0).slots.retain(|entry| entry.key != key);
    }
}

impl Slot {
    /// How far the band has been read in order, including these `len` bytes from `skip` on.
    fn read_to_after(&self, skip: u64, len: u64) -> u64 {
        let mut read_to = lock(&self.read_to);
        if skip <= *read_to {
            *read_to = skip.strict_add(len).max(*read_to);
        }
        *read_to
    }
}

/// Drops the bands that were not used for longest, before a thread begins one. The thread's own go
/// first, because other threads still read theirs.
fn make_room(held: &mut Vec<Entry>, byte_len: u64, thread: ThreadId) {
    loop {
        let own = || held.iter().filter(|entry| entry.thread == thread);
        // Saturates: what is not read yet is only declared.
        let bytes = own().map(|entry| entry.byte_len).fold(byte_len, u64::saturating_add);
        let is_full = own().count() >= PER_THREAD && bytes > BANDS;
        let oldest = held.iter().position(|entry| entry.thread == thread);
        match oldest.filter(|_| is_full) {
            Some(oldest) => drop(held.remove(oldest)),
            None => break,
        }
    }
    if held.len() >= slots() {
        held.remove(0);
    }
}

/// A panic leaves a whole value, because values are only ever replaced.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// A search for equal values reads the first of them twice.
    #[test]
    fn a_band_is_made_once_for_a_sample_and_all_of_it() {
        let (bands, made) = (Bands::default(), Cell::new(0));
        let make = || {
            made.set(made.get() + 1);
            Ok(vec![7; 8])
        };
        for (skip, len) in [(0, 3), (0, 4), (4, 3), (7, 1)] {
            assert!(made.get() == 0 || !bands.is_empty());
            let mut out = vec![0; len];
            assert_eq!(bands.copy((1, 0), 8, skip, &mut out, make).unwrap(), len);
        }
        assert_eq!(made.get(), 1);
        assert!(bands.is_empty());
    }

    /// Otherwise each thread would make its band again for every piece.
    #[test]
    fn a_thread_keeps_two_large_bands_and_drops_none_of_other_threads() {
        let bands = Bands::default();
        let begin = |id, byte_len| {
            let make = || Ok(vec![7; 8]);
            bands.copy((id, 0), byte_len, 0, &mut [0], make).unwrap();
        };
        let held = || -> Vec<u64> {
            let held = lock(&bands.0);
            held.slots.iter().map(|entry| entry.key.0).collect()
        };
        thread::scope(|scope| {
            scope.spawn(|| begin(9, BANDS)).join().unwrap();
        });
        for id in 1..=4 {
            begin(id, BANDS);
        }
        assert_eq!(held(), [9, 3, 4]);
        begin(5, 8);
        begin(6, 8);
        assert_eq!(held(), [9, 5, 6]);
        // Together they have exactly as many bytes as are allowed.
        begin(7, BANDS - 16);
        assert_eq!(held(), [9, 5, 6, 7]);
    }
}
