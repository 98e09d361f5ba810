//! An allocator that counts, for the tests of what a file may cost.
//!
//! Resident memory would not do: memory that is reserved and never touched is not in it, and a
//! reservation of 30 GiB is what ends a process.
#![allow(dead_code, unreachable_pub, reason = "each test uses some of it")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use zt::{File, HashOptions, Memory, Source, VerifyOptions};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static CURRENT: AtomicU64 = AtomicU64::new(0);
static PEAK: AtomicU64 = AtomicU64::new(0);
static LARGEST: AtomicU64 = AtomicU64::new(0);
static TOTAL: AtomicU64 = AtomicU64::new(0);

/// No file of these tests justifies more at once: what asks for it is told that there is none.
const NEVER: u64 = 4 << 30;

struct Counting;

fn add(byte_len: usize) {
    let byte_len = byte_len as u64;
    let current = CURRENT.fetch_add(byte_len, Ordering::Relaxed) + byte_len;
    PEAK.fetch_max(current, Ordering::Relaxed);
    TOTAL.fetch_add(byte_len, Ordering::Relaxed);
}

fn remove(byte_len: usize) {
    CURRENT.fetch_sub(byte_len as u64, Ordering::Relaxed);
}

/// Notes what is asked for, whether it is there or not.
fn is_refused(byte_len: usize) -> bool {
    LARGEST.fetch_max(byte_len as u64, Ordering::Relaxed);
    byte_len as u64 >= NEVER
}

// SAFETY: every call is handed on to the system's allocator as it came, or answered with null, which
// says that there is no memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_refused(layout.size()) {
            return std::ptr::null_mut();
        }
        add(layout.size());
        // SAFETY: the caller's promise about `layout` is the one that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_refused(layout.size()) {
            return std::ptr::null_mut();
        }
        add(layout.size());
        // SAFETY: as in `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        remove(layout.size());
        // SAFETY: `pointer` came from `System` with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if is_refused(new_size) {
            return std::ptr::null_mut();
        }
        // Both may exist for a moment, as they do where bytes have to be moved.
        add(new_size);
        remove(layout.size());
        // SAFETY: as in `dealloc`; the caller vouches for `new_size`.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

/// What some work took of the heap, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// The most at once, beyond what there was before.
    pub peak: u64,
    /// The largest single reservation, granted or not.
    pub largest: u64,
    /// All reservations together.
    pub total: u64,
}

/// Counts for one test at a time: what others allocate meanwhile would count as well.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does the work and counts; what it gives is dropped uncounted.
pub fn cost<T>(_: &MutexGuard<'static, ()>, work: impl FnOnce() -> T) -> (Cost, T) {
    let (before, total) = (CURRENT.load(Ordering::Relaxed), TOTAL.load(Ordering::Relaxed));
    PEAK.store(before, Ordering::Relaxed);
    LARGEST.store(0, Ordering::Relaxed);
    let outcome = work();
    let cost = Cost {
        peak: PEAK.load(Ordering::Relaxed).saturating_sub(before),
        largest: LARGEST.load(Ordering::Relaxed),
        total: TOTAL.load(Ordering::Relaxed) - total,
    };
    (cost, outcome)
}

pub const MIB: u64 = 1 << 20;

/// A source that lends nothing, so that whatever is looked at has to be read into memory.
#[derive(Clone)]
pub struct ByPosition(pub Arc<[u8]>);

impl Source for ByPosition {
    fn byte_len(&self) -> u64 {
        self.0.len() as u64
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        Memory::new(&self.0[..]).read_at(offset, buf)
    }
}

/// A line of the table: what was done to a file, and what it took.
pub fn row(case: &str, file: usize, work: &str, cost: Cost) {
    let Cost { peak, largest, .. } = cost;
    println!("| {case} | {file} | {work} | {peak} | {largest} |");
}

/// All that can be asked of a tensor at once. Each answer is dropped before the next question.
pub fn read_all(file: &File) -> Vec<zt::Error> {
    let mut errors = Vec::new();
    for entry in file.entries() {
        let tensor = match entry.tensor() {
            Ok(tensor) => tensor,
            Err(error) => {
                errors.push(error);
                continue;
            }
        };
        for (role, _) in tensor.components() {
            errors.extend(tensor.bytes(role).err());
            errors.extend(tensor.elements(role).err());
        }
        errors.extend(tensor.to_dense().err());
        errors.extend(tensor.slice(&[zt::Slice::ALL]).err());
    }
    errors.extend(file.hash(&HashOptions::default()).err());
    errors.extend(file.verify(&VerifyOptions::default()).err());
    errors
}
