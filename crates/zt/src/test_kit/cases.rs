//! What is done to bytes, and the name of it.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// The most truncations, flipped bits, and places of numbers.
const MOST: usize = 256;

/// Numbers that a parser may take for a length, and their bytes. Each place gets two of them.
const NUMBERS: [(u64, usize); 6] = [
    (u64::MAX, 8),
    (u32::MAX as u64, 4),
    (i64::MAX as u64, 8),
    (1 << 31, 4),
    (1 << 32, 8),
    (1 << 24, 4),
];

/// Something that is done to the bytes of a file or of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Damage {
    /// Only so many bytes are left.
    Truncated(usize),
    /// The bit of this number is flipped, the lowest of the first byte being 0.
    Flipped(usize),
    /// The bytes at this place become this number, which a parser may take for a length.
    Length(usize, u64, usize),
}

impl Damage {
    /// A damaged copy.
    pub fn of(self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        match self {
            Damage::Truncated(len) => bytes.truncate(len),
            Damage::Flipped(bit) => {
                if let Some(byte) = bytes.get_mut(bit / 8) {
                    *byte ^= 1u8 << (bit % 8);
                }
            }
            Damage::Length(at, number, width) => {
                for (byte, new) in bytes.iter_mut().skip(at).zip(number.to_le_bytes()).take(width) {
                    *byte = new;
                }
            }
        }
        bytes
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::Truncated(len) => write!(f, "truncated after {len} bytes"),
            Damage::Flipped(bit) => write!(f, "bit {} of byte {} flipped", bit % 8, bit / 8),
            Damage::Length(at, number, width) => {
                write!(f, "bytes {at}.. set to {number} as {width} bytes")
            }
        }
    }
}

/// Every truncation, every flipped bit and hostile numbers at every place, thinned evenly if `byte_len` is
/// large.
pub fn damages(byte_len: usize) -> impl Iterator<Item = Damage> {
    let cuts = thinned(byte_len).map(Damage::Truncated);
    let bits = thinned(byte_len.saturating_mul(8)).map(Damage::Flipped);
    let numbers = thinned(byte_len).flat_map(|at| {
        let two = NUMBERS.into_iter().skip(at % 3 * 2).take(2);
        two.map(move |(number, width)| Damage::Length(at, number, width))
    });
    cuts.chain(bits).chain(numbers)
}

/// Numbers below `count`, at most [`MOST`] of them. The first ones are all there, because headers are.
fn thinned(count: usize) -> impl Iterator<Item = usize> {
    let dense = count.min(MOST / 2);
    let step = count.saturating_sub(dense).div_ceil(MOST / 2).max(1);
    (0..dense).chain((dense..count).step_by(step))
}

/// Runs a case. A panic in it goes on as one that names the case, and is not printed again: [`check`]
/// prints the names of all cases around it.
pub fn case<T>(name: impl fmt::Display, run: impl FnOnce() -> T) -> T {
    let named =
        |panic: Box<dyn Any + Send>| resume_unwind(Box::new(format!("{name}: {}", text(&*panic))));
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(named)
}

/// Runs the cases of one check.
///
/// # Panics
///
/// As `run`, with the names of the check and of the cases.
#[track_caller]
pub fn check<T>(name: impl fmt::Display, run: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| panic!("{name}: {}", text(&*panic)))
}

/// What must succeed here.
///
/// # Panics
///
/// With what was tried and the error, where it fails.
#[track_caller]
pub fn sound<T>(what: impl fmt::Display, tried: Result<T, impl fmt::Display>) -> T {
    tried.unwrap_or_else(|error| panic!("{what}: {error}"))
}

fn text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic")
}
