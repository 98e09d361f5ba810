//! Statistics of some values.
#![expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "counts of values that exist, and lanes of arrays"
)]

use std::fmt;
use std::ops::Sub;

use zt_formats::{Elements, Reals, Registry, Scalar, Vectors, on_vectors};

/// Values that are taken at a time: they stay in the core's cache.
const BLOCK: usize = 1024;

/// Statistics in f64. Complex numbers count by their absolute values.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// The number of values.
    pub count: u64,
    /// Values that are 0 or -0.
    pub zeros: u64,
    /// Values that are NaN.
    pub nan: u64,
    /// Infinities of both signs.
    pub inf: u64,
    /// Of the finite values; `None` if there is none.
    pub finite: Option<Finite>,
}

/// Statistics of finite values.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Finite {
    /// The number of finite values, at least one.
    pub count: u64,
    /// The smallest.
    pub min: Bound,
    /// The greatest.
    pub max: Bound,
    /// Their mean.
    pub mean: f64,
    /// The standard deviation of the population: the divisor is the count, as `numpy.std` has it.
    pub std: f64,
}

/// A minimum or a maximum, which is exact.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// Of signed or unsigned integers of up to 64 bits, and of bools.
    Integer(i128),
    /// Of all others.
    Real(f64),
}

impl Stats {
    /// Statistics of these elements, which are whole values.
    ///
    /// # Errors
    ///
    /// As [`Elements::scalars`].
    pub fn of(elements: &Elements<'_>, registry: &Registry) -> zt_formats::Result<Self> {
        let (mut stats, mut sums) = (Stats::default(), None);
        // Nearly all weights are floats, which are converted much faster together.
        let taken = elements.for_each_real(registry, |values| match values {
            Reals::F32(values) => stats.add_reals(values, &mut sums),
            Reals::F64(values) => stats.add_reals(values, &mut sums),
        });
        if taken.is_ok() {
            sums.iter().for_each(|sums| stats.append(&sums.stats()));
            return Ok(stats);
        }
        let mut integers: Option<(i128, i128)> = None;
        let mut block = Vec::with_capacity(BLOCK);
        elements.scalars(registry)?.for_each(|value| {
            let value = Bound::of(value);
            if let Bound::Integer(value) = value {
                let (min, max) = integers.unwrap_or((value, value));
                integers = Some((min.min(value), max.max(value)));
            }
            block.push(value.as_f64());
            if block.len() == BLOCK {
                stats.append_block(&block);
                block.clear();
            }
        });
        stats.append_block(&block);
        if let (Some(finite), Some((min, max))) = (&mut stats.finite, integers) {
            (finite.min, finite.max) = (Bound::Integer(min), Bound::Integer(max));
        }
        Ok(stats)
    }

    /// Adds the statistics of more values.
    pub fn append(&mut self, more: &Stats) {
        self.count = self.count.strict_add(more.count);
        self.zeros = self.zeros.strict_add(more.zeros);
        self.nan += more.nan;
        self.inf += more.inf;
        self.finite = match (self.finite, more.finite) {
            (Some(finite), Some(more)) => Some(finite.join(more)),
            (finite, more) => finite.or(more),
        };
    }

    /// Whether all values are one finite number.
    pub fn is_constant(&self) -> bool {
        let finite = self.finite.filter(|finite| finite.count == self.count);
        finite.is_some_and(|finite| finite.min == finite.max)
    }

    pub(super) fn has_integers(&self) -> bool {
        matches!(self.finite.map(|it| it.max), Some(Bound::Integer(_)))
    }

    /// Adds this many zeros, of the type of the values that are there.
    pub(super) fn add_zeros(&mut self, count: u64) {
        if count == 0 {
            return;
        }
        let zero = match self.finite.map(|finite| finite.min) {
            Some(Bound::Integer(_)) => Bound::Integer(0),
            _ => Bound::Real(0.0),
        };
        self.append(&Stats {
            count,
            zeros: count,
            finite: Some(Finite { count, min: zero, max: zero, mean: 0.0, std: 0.0 }),
            ..Stats::default()
        });
    }

    /// Adds values to `sums`. They are added to these statistics if one of them is not finite, or is so large or
    /// small that its square is not.
    fn add_reals<T: Real>(&mut self, values: &[T], sums: &mut Option<Moments>) {
        let mean = || values.iter().map(|value| (*value).into()).sum::<f64>() / values.len() as f64;
        let shift = sums.map_or_else(mean, |sums| sums.shift);
        let block = on_vectors(MomentsOf { values, shift });
        match sums {
            _ if !block.is_exact() => self.append_block(values),
            Some(sums) => sums.add(&block),
            None => *sums = Some(block),
        }
    }

    #[expect(clippy::eq_op, reason = "an infinity less itself is NaN")]
    fn append_block<T: Real>(&mut self, values: &[T]) {
        if values.is_empty() {
            return;
        }
        let zeros = count(values, |value| value == T::default());
        let not_finite = count(values, |value| value - value != T::default());
        let mut block =
            Stats { count: values.len() as u64, zeros: zeros.into(), ..Stats::default() };
        if not_finite == 0 {
            block.finite = Some(Finite::of(values));
        } else {
            block.nan = count(values, |value| value.partial_cmp(&value).is_none()).into();
            block.inf = u64::from(not_finite) - block.nan;
            let finite = values.iter().copied();
            let finite: Vec<T> = finite.filter(|value| (*value).into().is_finite()).collect();
            block.finite = (!finite.is_empty()).then(|| Finite::of(&finite));
        }
        self.append(&block);
    }
}

/// An f32 or an f64. Twice as many f32 fit a register.
pub(super) trait Real: Copy + Default + PartialOrd + Into<f64> + Sub<Output = Self> {}

impl Real for f32 {}
impl Real for f64 {}

/// Sums over values in one pass, and their least and greatest.
///
/// The squares are of distances from a number near the mean: without that, digits of the deviation cancel
/// out if the mean is far from 0.
#[derive(Clone, Copy)]
struct Moments {
    shift: f64,
    count: u64,
    zeros: u64,
    min: f64,
    max: f64,
    sum: f64,
    squares: f64,
}

/// The moments of these values about `shift`.
struct MomentsOf<'v, T> {
    values: &'v [T],
    shift: f64,
}

impl<T: Real> Vectors for MomentsOf<'_, T> {
    type Output = Moments;

    #[inline(always)]
    fn run(self) -> Moments {
        let MomentsOf { values, shift } = self;
        /// Sums side by side. The compiler makes vectors of the loop over them, if several rows of values
        /// are added at once.
        const LANES: usize = 32;
        const ROWS: usize = 4;
        let first = values.first().copied().unwrap_or_default();
        let (mut min, mut max, mut zeros) = ([first; LANES], [first; LANES], [0u32; LANES]);
        let (mut sum, mut squares) = ([0.0; LANES], [0.0; LANES]);
        let (blocks, rest) = values.as_chunks::<{ LANES * ROWS }>();
        for block in blocks {
            let (rows, _) = block.as_chunks::<LANES>();
            for at in 0..LANES {
                for row in rows {
                    let value = row[at];
                    min[at] = if value < min[at] { value } else { min[at] };
                    max[at] = if value > max[at] { value } else { max[at] };
                    zeros[at] = zeros[at].wrapping_add((value == T::default()).into());
                    let distance = value.into() - shift;
                    sum[at] += distance;
                    squares[at] += distance * distance;
                }
            }
        }
        for value in rest.iter().copied() {
            min[0] = if value < min[0] { value } else { min[0] };
            max[0] = if value > max[0] { value } else { max[0] };
            zeros[0] = zeros[0].wrapping_add((value == T::default()).into());
            let distance = value.into() - shift;
            sum[0] += distance;
            squares[0] += distance * distance;
        }
        let least = |least: f64, value: T| least.min(value.into());
        let most = |most: f64, value: T| most.max(value.into());
        Moments {
            shift,
            count: values.len() as u64,
            zeros: zeros.into_iter().map(u64::from).sum(),
            min: min.into_iter().fold(first.into(), least),
            max: max.into_iter().fold(first.into(), most),
            sum: sum.into_iter().sum(),
            squares: squares.into_iter().sum(),
        }
    }
}

impl Moments {
    /// Whether all values are finite, and no square is infinite or vanishes.
    fn is_exact(&self) -> bool {
        self.squares.is_finite() && scale_of(self.min.abs().max(self.max.abs())) == 1.0
    }

    /// Adds sums of distances from the same number.
    fn add(&mut self, more: &Moments) {
        self.count += more.count;
        self.zeros += more.zeros;
        self.min = self.min.min(more.min);
        self.max = self.max.max(more.max);
        self.sum += more.sum;
        self.squares += more.squares;
    }

    fn stats(&self) -> Stats {
        let count = self.count as f64;
        let mean = self.sum / count;
        let variance = self.squares / count - mean * mean;
        Stats {
            count: self.count,
            zeros: self.zeros,
            finite: Some(Finite {
                count: self.count,
                min: Bound::Real(self.min),
                max: Bound::Real(self.max),
                // Rounding could carry them beyond what is possible.
                mean: (self.shift + mean).clamp(self.min, self.max),
                std: variance.max(0.0).sqrt(),
            }),
            ..Stats::default()
        }
    }
}

impl Finite {
    /// Of at least one value, all of them finite.
    fn of<T: Real>(values: &[T]) -> Self {
        let first = values.first().copied().unwrap_or_default();
        let least = |least: T, value: T| if value < least { value } else { least };
        let most = |most: T, value: T| if value > most { value } else { most };
        let min: f64 = fold(values, first, least).into_iter().fold(first, least).into();
        let max: f64 = fold(values, first, most).into_iter().fold(first, most).into();
        let (count, magnitude) = (values.len() as f64, min.abs().max(max.abs()));
        let scale = scale_of(magnitude);
        let sum = fold(values, 0.0, |sum, value| sum + value.into() * scale);
        let mean = sum.into_iter().sum::<f64>() / count;
        let squares = fold(values, 0.0, |sum, value| {
            let distance = value.into() * scale - mean;
            sum + distance * distance
        });
        let squares = squares.into_iter().sum::<f64>();
        Finite {
            count: values.len() as u64,
            min: Bound::Real(min),
            max: Bound::Real(max),
            // Rounding could carry it beyond the values, and to infinity.
            mean: (mean / scale).clamp(min, max),
            std: ((squares / count).sqrt() / scale).min(magnitude),
        }
    }

    /// T. F. Chan, G. H. Golub, R. J. LeVeque, "Updating formulae and a pairwise algorithm for computing
    /// sample variances", 1979. With deviations in place of sums of squares, and half of the distance,
    /// nothing overflows.
    fn join(self, other: Self) -> Self {
        if self.count < other.count {
            return other.join(self);
        }
        let count = self.count.strict_add(other.count);
        let part = |finite: &Self| finite.count as f64 / count as f64;
        let (a, b) = (part(&self), part(&other));
        let half = other.mean / 2.0 - self.mean / 2.0;
        let between = half * (2.0 * (a * b).sqrt());
        let within = (self.std * a.sqrt()).hypot(other.std * b.sqrt());
        let (min, max) = (self.min.min(other.min), self.max.max(other.max));
        let (least, most) = (min.as_f64(), max.as_f64());
        Finite {
            count,
            min,
            max,
            mean: (self.mean + half * b * 2.0).clamp(least, most),
            std: within.hypot(between).min(least.abs().max(most.abs())),
        }
    }
}

#[inline]
fn count<T: Copy>(values: &[T], is: impl Fn(T) -> bool) -> u32 {
    let counts = fold(values, 0, |count, value| count + u32::from(is(value)));
    counts.into_iter().sum()
}

/// Folds eight sequences of values, which the processor does side by side.
#[inline]
pub(super) fn fold<T: Copy, S: Copy>(values: &[T], start: S, add: impl Fn(S, T) -> S) -> [S; 8] {
    let (lanes, rest) = values.as_chunks::<8>();
    let mut sums = [start; 8];
    for lane in lanes {
        for (sum, value) in sums.iter_mut().zip(lane) {
            *sum = add(*sum, *value);
        }
    }
    for (sum, value) in sums.iter_mut().zip(rest) {
        *sum = add(*sum, *value);
    }
    sums
}

/// 1, or for values whose squares may overflow or vanish the power of two that scales this magnitude to
/// between 1 and 2, without rounding.
fn scale_of(magnitude: f64) -> f64 {
    if magnitude == 0.0 || (1e-100..1e100).contains(&magnitude) {
        return 1.0;
    }
    // The exponent of subnormal values is 0, and the greatest power is close enough.
    let exponent = i32::try_from(magnitude.to_bits() >> 52).unwrap_or(0) - 1023;
    2f64.powi(-exponent)
}

impl Bound {
    /// The number that a value counts as.
    pub fn of(value: Scalar) -> Self {
        match value {
            Scalar::Int(value) => Bound::Integer(value.into()),
            Scalar::UInt(value) => Bound::Integer(value.into()),
            Scalar::Bool(value) => Bound::Integer(value.into()),
            Scalar::Complex64(value) => Bound::Real(f64::from(value.re).hypot(value.im.into())),
            Scalar::Complex128(value) => Bound::Real(value.re.hypot(value.im)),
            value => Bound::Real(value.as_f64().unwrap_or(f64::NAN)),
        }
    }

    /// The nearest f64.
    pub const fn as_f64(self) -> f64 {
        match self {
            Bound::Integer(value) => value as f64,
            Bound::Real(value) => value,
        }
    }

    fn min(self, other: Self) -> Self {
        match (self, other) {
            (Bound::Integer(a), Bound::Integer(b)) => Bound::Integer(a.min(b)),
            _ => Bound::Real(self.as_f64().min(other.as_f64())),
        }
    }

    fn max(self, other: Self) -> Self {
        match (self, other) {
            (Bound::Integer(a), Bound::Integer(b)) => Bound::Integer(a.max(b)),
            _ => Bound::Real(self.as_f64().max(other.as_f64())),
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::Integer(value) => value.fmt(f),
            Bound::Real(value) => write!(f, "{value:?}"),
        }
    }
}
