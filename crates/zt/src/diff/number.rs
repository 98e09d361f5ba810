//! The comparison of two values: equality, tolerance and distance.
#![expect(
    clippy::arithmetic_side_effects,
    reason = "counts of values that exist, and numbers of at most 64 bits as 128"
)]

use zt_formats::{Elements, LogicalType, Registry, Scalar};
use zt_manifest::DType;

use super::stream::Joined;
use super::{Extreme, Side, Tolerance, ValueDiff};
use crate::error::{Error, Result};

/// The number of values per block, which stays in the core's cache. Only blocks with different
/// bytes are compared one value at a time.
const BLOCK: usize = 1024;

/// How pairs of values are compared.
#[derive(Clone, Copy)]
pub(super) struct Rule {
    pub(super) measure: bool,
    pub(super) tolerance: Option<Tolerance>,
}

/// Elements of one side, and the bytes of one value.
pub(super) struct Values<'v> {
    pub(super) elements: Elements<'v>,
    pub(super) value_len: usize,
    pub(super) registry: &'v Registry,
}

impl Values<'_> {
    pub(super) fn count(&self) -> usize {
        self.elements.bytes.len() / self.value_len
    }

    /// `len` values from `start` on, or fewer at the end.
    pub(super) fn part(&self, start: usize, len: usize) -> Values<'_> {
        let bytes = &self.elements.bytes;
        let at = |value: usize| value.saturating_mul(self.value_len).min(bytes.len());
        let (start, end) = (at(start), at(start.saturating_add(len)));
        Values {
            elements: (self.elements).of_same_type(bytes.get(start..end).unwrap_or_default()),
            value_len: self.value_len,
            registry: self.registry,
        }
    }

    fn numbers(&self) -> Result<Vec<Number>> {
        // Nearly all weights are floats, which are converted much faster together.
        if let Ok(wide) = self.elements.to_dtype(DType::F64, self.registry) {
            let wide = wide.as_slice::<f64>()?;
            return Ok(wide.iter().map(|value| Number::Real(*value)).collect());
        }
        let scalars = self.elements.scalars(self.registry)?;
        Ok(scalars.map(Number::from).collect())
    }
}

/// Compares values in pairs; the first pair has the number `first`. Surplus values of one side are
/// different. An error comes with the side of the invalid value.
pub(super) fn compare(
    a: &Values<'_>,
    b: &Values<'_>,
    rule: Rule,
    first: u64,
) -> Result<ValueDiff, (Side, Error)> {
    let is_one_type = a.elements.dtype == b.elements.dtype
        && a.elements.logical_type() == b.elements.logical_type();
    let (count, longest) = (a.count().min(b.count()), a.count().max(b.count()));
    let mut diff = ValueDiff::default();
    for start in (0..count).step_by(BLOCK) {
        let len = BLOCK.min(count - start);
        let (a, b) = (a.part(start, len), b.part(start, len));
        if is_one_type && a.elements.bytes[..] == b.elements.bytes[..] {
            diff.count += len as u64;
            continue;
        }
        let at = first + start as u64;
        let block = if is_one_type && !rule.measure && rule.tolerance.is_none() {
            bits(&a, &b, at)
        } else {
            block(&a, &b, is_one_type, rule, at)?
        };
        diff.join(block);
    }
    if longest > count {
        let more = (longest - count) as u64;
        diff.join(ValueDiff {
            count: more,
            different: more,
            first: Some(first + count as u64),
            ..ValueDiff::default()
        });
    }
    Ok(diff)
}

/// Compares values of one type by their bits.
fn bits(a: &Values<'_>, b: &Values<'_>, first: u64) -> ValueDiff {
    let mut diff = ValueDiff::default();
    let pairs = bytes_of(a).zip(bytes_of(b));
    for (at, (a, b)) in (first..).zip(pairs) {
        diff.add(at, a != b);
    }
    diff
}

fn block(
    a: &Values<'_>,
    b: &Values<'_>,
    is_one_type: bool,
    rule: Rule,
    first: u64,
) -> Result<ValueDiff, (Side, Error)> {
    let mut diff = ValueDiff::default();
    let part_len = float_len(&a.elements).filter(|_| is_one_type);
    let of_a = a.numbers().map_err(|error| (Side::A, error))?;
    let of_b = b.numbers().map_err(|error| (Side::B, error))?;
    let numbers = of_a.into_iter().zip(of_b);
    let bytes = bytes_of(a).zip(bytes_of(b));
    for ((at, (x, y)), (a, b)) in (first..).zip(numbers).zip(bytes) {
        if is_one_type && a == b {
            diff.add(at, false);
            continue;
        }
        let gap = Gap::between(x, y);
        let is_same = match rule.tolerance {
            Some(tolerance) => gap.is_within(tolerance),
            None => !is_one_type && gap.is_equal,
        };
        diff.add(at, !is_same);
        if gap.is_nan {
            diff.nan += 1;
        } else if rule.measure && !(gap.is_equal && is_same) {
            diff.max_abs = larger(diff.max_abs, gap.abs, at);
            diff.max_rel = larger(diff.max_rel, gap.rel, at);
            let ulps = part_len.filter(|_| !gap.are_nan);
            if let Some(ulps) = ulps.map(|part_len| steps(a, b, part_len)) {
                diff.max_ulp = larger(diff.max_ulp, ulps, at);
            }
        }
    }
    Ok(diff)
}

fn bytes_of<'v>(values: &'v Values<'_>) -> std::slice::ChunksExact<'v, u8> {
    values.elements.bytes.chunks_exact(values.value_len)
}

impl ValueDiff {
    fn add(&mut self, at: u64, is_different: bool) {
        self.count += 1;
        if is_different {
            self.different += 1;
            self.first.get_or_insert(at);
        }
    }
}

impl Joined for ValueDiff {
    fn join(&mut self, next: Self) {
        self.count += next.count;
        self.different += next.different;
        self.first = self.first.or(next.first);
        self.nan += next.nan;
        let more = |extreme: Option<Extreme<f64>>, next: Option<Extreme<f64>>| match next {
            Some(Extreme { value, at }) => larger(extreme, value, at),
            None => extreme,
        };
        self.max_abs = more(self.max_abs, next.max_abs);
        self.max_rel = more(self.max_rel, next.max_rel);
        if let Some(Extreme { value, at }) = next.max_ulp {
            self.max_ulp = larger(self.max_ulp, value, at);
        }
    }
}

/// The larger of both; of equal ones, the earlier.
fn larger<T: PartialOrd>(known: Option<Extreme<T>>, value: T, at: u64) -> Option<Extreme<T>> {
    match known {
        Some(known) if known.value >= value => Some(known),
        _ => Some(Extreme { value, at }),
    }
}

/// An exact value.
#[derive(Debug, Clone, Copy)]
enum Number {
    Real(f64),
    Int(i128),
    Complex(f64, f64),
}

impl From<Scalar> for Number {
    fn from(scalar: Scalar) -> Self {
        match scalar {
            Scalar::Int(value) => Number::Int(value.into()),
            Scalar::UInt(value) => Number::Int(value.into()),
            Scalar::Bool(value) => Number::Int(value.into()),
            Scalar::Complex64(value) => Number::Complex(value.re.into(), value.im.into()),
            Scalar::Complex128(value) => Number::Complex(value.re, value.im),
            // Exact: f64 holds every value of the remaining types.
            scalar => Number::Real(scalar.as_f64().unwrap_or(f64::NAN)),
        }
    }
}

/// The distance of two values.
#[derive(Debug, Clone, Copy)]
struct Gap {
    abs: f64,
    rel: f64,
    /// The magnitude of the second value.
    magnitude: f64,
    is_equal: bool,
    /// Whether only one is NaN.
    is_nan: bool,
    /// Whether both are NaN.
    are_nan: bool,
    is_finite: bool,
}

impl Gap {
    fn between(a: Number, b: Number) -> Self {
        match (a, b) {
            (Number::Real(a), Number::Real(b)) => Gap::real(a, b),
            (Number::Int(a), Number::Int(b)) => Gap::integers(a, b),
            (Number::Int(a), Number::Real(b)) => match integral(b) {
                Some(b) => Gap::integers(a, b),
                None => Gap::real(a as f64, b),
            },
            (Number::Real(a), Number::Int(b)) => match integral(a) {
                Some(a) => Gap::integers(a, b),
                None => Gap::real(a, b as f64),
            },
            (a, b) => Gap::complex(a.parts(), b.parts()),
        }
    }

    fn real(a: f64, b: f64) -> Self {
        let are_finite = a.is_finite() && b.is_finite();
        let nan = [a.is_nan(), b.is_nan()];
        Gap::new((a - b).abs(), b.abs(), a == b, nan, are_finite)
    }

    fn integers(a: i128, b: i128) -> Self {
        // 64-bit integers: no difference overflows, and only 0 is rounded to 0.
        let abs = (a - b).unsigned_abs() as f64;
        Gap::new(abs, b.unsigned_abs() as f64, a == b, [false; 2], true)
    }

    fn complex(a: (f64, f64), b: (f64, f64)) -> Self {
        let is_nan = |(re, im): (f64, f64)| re.is_nan() || im.is_nan();
        let is_finite = |(re, im): (f64, f64)| re.is_finite() && im.is_finite();
        let apart = |a: f64, b: f64| if a == b { 0.0 } else { a - b };
        let abs = apart(a.0, b.0).hypot(apart(a.1, b.1));
        let are_finite = is_finite(a) && is_finite(b);
        let nan = [is_nan(a), is_nan(b)];
        Gap::new(abs, b.0.hypot(b.1), a == b, nan, are_finite)
    }

    fn new(abs: f64, magnitude: f64, is_same: bool, nan: [bool; 2], is_finite: bool) -> Self {
        let are_nan = nan == [true; 2];
        let is_equal = is_same || are_nan;
        let abs = if is_equal { 0.0 } else { abs };
        let rel = match abs / magnitude {
            _ if is_equal => 0.0,
            // A finite value is infinitely far from an infinity.
            rel if rel.is_nan() => f64::INFINITY,
            rel => rel,
        };
        Gap { abs, rel, magnitude, is_equal, is_nan: nan[0] != nan[1], are_nan, is_finite }
    }

    fn is_within(&self, tolerance: Tolerance) -> bool {
        let allowed = tolerance.atol + tolerance.rtol * self.magnitude;
        self.is_equal || (self.is_finite && self.abs <= allowed)
    }
}

impl Number {
    fn parts(self) -> (f64, f64) {
        match self {
            Number::Real(value) => (value, 0.0),
            Number::Int(value) => (value as f64, 0.0),
            Number::Complex(re, im) => (re, im),
        }
    }
}

/// `value` as an integer, if an integer type can hold it.
#[expect(clippy::cast_possible_truncation, reason = "an integer below 2^64 fits an i128")]
fn integral(value: f64) -> Option<i128> {
    const END: f64 = 18_446_744_073_709_551_616.0; // 2^64
    (value.fract() == 0.0 && value.abs() <= END).then_some(value as i128)
}

/// The length of each float in a value; `None` for other values.
fn float_len(elements: &Elements<'_>) -> Option<usize> {
    let is_float = match elements.logical_type() {
        // FP8 and complex numbers. E8M0 has no sign.
        Some(name) => name != "f8_e8m0fnu" && LogicalType::builtin(name).is_some(),
        None => elements.dtype.is_float(),
    };
    is_float.then(|| elements.dtype.byte_len())
}

/// The number of steps between two floating-point values of one type, the larger of their parts.
fn steps(a: &[u8], b: &[u8], part_len: usize) -> u64 {
    let parts = a.chunks_exact(part_len).zip(b.chunks_exact(part_len));
    let steps = parts.map(|(a, b)| ordered(a).abs_diff(ordered(b)));
    u64::try_from(steps.max().unwrap_or(0)).unwrap_or(u64::MAX)
}

/// A number that grows by one from each value to the next, from sign and magnitude.
fn ordered(bytes: &[u8]) -> i128 {
    let from_end = bytes.iter().rev();
    let bits = from_end.fold(0u64, |bits, byte| bits << 8 | u64::from(*byte));
    let sign = 1u64 << (8 * bytes.len().clamp(1, 8) - 1);
    let magnitude = i128::from(bits & (sign - 1));
    if bits & sign == 0 { magnitude } else { -magnitude }
}
