//! Statistics of the values of a tensor.

use std::fmt;

use serde::Serialize;
use zt::formats::{Scalar, Scalars};

use crate::output::json::object;
use crate::output::value::Float;

/// Bars of the histogram.
const BINS: usize = 10;

/// Statistics in f64. Complex numbers count by their absolute values. The minimum and maximum of
/// integers are exact. All but the counts ignore NaN and infinities.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Stats {
    count: u64,
    zeros: u64,
    nan: u64,
    inf: u64,
    /// `None` if no value is finite.
    finite: Option<Finite>,
}

/// A minimum or a maximum.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Bound {
    /// Of signed or unsigned integers of up to 64 bits.
    Integer(i128),
    Real(f64),
}

impl Stats {
    /// Statistics of the values that `for_each` hands on, piece by piece. It is called twice: the
    /// histogram needs the minimum and the maximum first.
    pub(crate) fn of<E>(
        mut for_each: impl FnMut(&mut dyn FnMut(Scalars<'_>)) -> Result<(), E>,
    ) -> Result<Self, E> {
        let mut stats = Stats::default();
        let mut bounds: Option<(Bound, Bound)> = None;
        for_each(&mut |values| {
            for bound in values.map(Bound::of) {
                let value = bound.as_f64();
                stats.count += 1;
                stats.zeros += u64::from(value == 0.0);
                stats.nan += u64::from(value.is_nan());
                stats.inf += u64::from(value.is_infinite());
                if value.is_finite() {
                    bounds = Some(match bounds {
                        Some((min, max)) => (min.min(bound), max.max(bound)),
                        None => (bound, bound),
                    });
                }
            }
        })?;
        if let Some((min, max)) = bounds {
            let mut finite = Finite::new(min, max);
            for_each(&mut |values| {
                let values = values.map(|value| Bound::of(value).as_f64());
                values
                    .filter(|value| value.is_finite())
                    .for_each(|value| finite.add(value));
            })?;
            stats.finite = Some(finite);
        }
        Ok(stats)
    }

    /// Lines for people.
    pub(crate) fn render(&self) -> String {
        let (count, zeros, nan, inf) = (self.count, self.zeros, self.nan, self.inf);
        let mut text = format!("count {count}, zeros {zeros}, NaN {nan}, inf {inf}");
        let Some(finite) = &self.finite else {
            return text;
        };
        let Finite { min, max, .. } = finite;
        let (mean, std) = (finite.mean(), finite.std());
        text.push_str(&format!(
            "\nmin {min}, max {max}, mean {mean:?}, std {std:?}"
        ));
        let most = finite.counts.iter().copied().max().unwrap_or(1).max(1);
        let labels = finite.edges.map(|edge| format!("{edge:.4e}"));
        let width = labels.iter().map(String::len).max().unwrap_or(0);
        for (count, edges) in finite.counts.iter().zip(labels.windows(2)) {
            let [from, to] = edges else { continue };
            // Rounded up, so that one value among millions has a bar.
            let len = (u128::from(*count) * 40).div_ceil(most.into());
            let bar = "█".repeat(usize::try_from(len).unwrap_or(40));
            text.push_str(&format!("\n{from:>width$} .. {to:>width$}  {bar} {count}"));
        }
        text
    }
}

/// The finite values, added one by one after their bounds are known.
#[derive(Debug, Clone, PartialEq)]
struct Finite {
    min: Bound,
    max: Bound,
    edges: [f64; BINS + 1],
    /// Values from one edge up to the next. The last edge belongs to the last bar.
    counts: [u64; BINS],
    scale: f64,
    count: u64,
    /// The mean and the sum of squared deviations of the scaled values.
    scaled_mean: f64,
    scaled_squares: f64,
}

impl Finite {
    fn new(min: Bound, max: Bound) -> Self {
        let (least, greatest) = (min.as_f64(), max.as_f64());
        Finite {
            min,
            max,
            edges: edges(least, greatest),
            counts: [0; BINS],
            scale: scale_of(greatest.abs().max(least.abs())),
            count: 0,
            scaled_mean: 0.0,
            scaled_squares: 0.0,
        }
    }

    /// Welford's update. Sums of squares would lose the digits of values far from zero.
    fn add(&mut self, value: f64) {
        let inner = self.edges.iter().skip(1).take(BINS - 1);
        let bin = inner.filter(|edge| value >= **edge).count();
        self.counts[bin] += 1;
        let scaled = value * self.scale;
        self.count += 1;
        let delta = scaled - self.scaled_mean;
        self.scaled_mean += delta / self.count as f64;
        self.scaled_squares += delta * (scaled - self.scaled_mean);
    }

    /// Rounding could carry it beyond the values, and to infinity.
    fn mean(&self) -> f64 {
        let (least, greatest) = (self.min.as_f64(), self.max.as_f64());
        (self.scaled_mean / self.scale).clamp(least, greatest)
    }

    /// Of the population: the divisor is the count. It is bounded as the mean is.
    fn std(&self) -> f64 {
        let scaled = (self.scaled_squares / self.count as f64).sqrt();
        let most = self.max.as_f64().abs().max(self.min.as_f64().abs());
        (scaled / self.scale).min(most)
    }
}

/// The power of two that scales this magnitude to between 1 and 2, without rounding. Without it, the
/// distance of two f64 and its square may overflow.
fn scale_of(magnitude: f64) -> f64 {
    // The exponent of zero and of subnormal values is 0, and the greatest power is close enough.
    let biased = magnitude.to_bits() >> 52;
    let exponent = i32::try_from(biased).unwrap_or(0) - 1023;
    2f64.powi(-exponent)
}

/// Evenly spaced from the minimum to the maximum. A single value gets 0.5 to each side.
fn edges(min: f64, max: f64) -> [f64; BINS + 1] {
    let (min, max) = if min == max {
        (min - 0.5, max + 0.5)
    } else {
        (min, max)
    };
    // Two products, because `max - min` may overflow.
    std::array::from_fn(|at| {
        let part = at as f64 / BINS as f64;
        match at {
            0 => min,
            BINS => max,
            _ => min * (1.0 - part) + max * part,
        }
    })
}

impl Bound {
    fn of(value: Scalar) -> Self {
        match value {
            Scalar::Int(value) => Bound::Integer(value.into()),
            Scalar::UInt(value) => Bound::Integer(value.into()),
            Scalar::Complex64(value) => Bound::Real(f64::from(value.re).hypot(value.im.into())),
            Scalar::Complex128(value) => Bound::Real(value.re.hypot(value.im)),
            value => Bound::Real(value.as_f64().unwrap_or(f64::NAN)),
        }
    }

    fn as_f64(self) -> f64 {
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

impl Serialize for Bound {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Bound::Integer(value) => serializer.serialize_i128(*value),
            Bound::Real(value) => Float(*value).serialize(serializer),
        }
    }
}

impl Serialize for Stats {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let finite = self.finite.as_ref();
        let histogram = finite.map(|finite| {
            object! { edges: finite.edges.map(Float), counts: finite.counts }
        });
        let document = object! {
            count: self.count,
            min: finite.map(|finite| finite.min),
            max: finite.map(|finite| finite.max),
            mean: finite.map(|finite| Float(finite.mean())),
            std: finite.map(|finite| Float(finite.std())),
            zeros: self.zeros,
            nan: self.nan,
            inf: self.inf,
            histogram,
        };
        document.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zt::{Elements, Registry};

    /// In pieces of one value and of the rest.
    fn of(elements: &Elements<'_>) -> Stats {
        let registry = Registry::builtin();
        let width = elements.dtype.byte_len();
        let (first, rest) = elements.bytes.split_at(width.min(elements.bytes.len()));
        let of_pieces = Stats::of(|take| {
            for bytes in [first, rest] {
                take(Elements::new(elements.dtype, bytes).scalars(&registry)?);
            }
            Ok::<(), zt::formats::Error>(())
        });
        of_pieces.unwrap()
    }

    fn stats(values: &[f64]) -> Stats {
        of(&Elements::from(values))
    }

    #[test]
    fn nan_and_infinities_are_counted_and_left_out() {
        let stats = stats(&[1.0, f64::NAN, 3.0, f64::INFINITY, -f64::INFINITY, 0.0, -0.0]);
        assert_eq!(
            (stats.count, stats.zeros, stats.nan, stats.inf),
            (7, 2, 1, 2)
        );
        let finite = stats.finite.unwrap();
        let (min, max) = (Bound::Real(0.0), Bound::Real(3.0));
        assert_eq!((finite.min, finite.max, finite.mean()), (min, max, 1.0));
        assert!((finite.std() - 1.5f64.sqrt()).abs() < 1e-12);
        assert_eq!(finite.counts, [2, 0, 0, 1, 0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn one_value_and_none_have_statistics_too() {
        assert_eq!(stats(&[]).finite, None);
        let finite = stats(&[5.0; 4]).finite.unwrap();
        assert_eq!(
            (finite.edges[0], finite.edges[BINS], finite.std()),
            (4.5, 5.5, 0.0)
        );
        assert_eq!(finite.counts.iter().sum::<u64>(), 4);
    }

    #[test]
    fn the_widest_range_does_not_overflow() {
        let finite = stats(&[f64::MAX, f64::MIN, 0.0]).finite.unwrap();
        assert!(finite.edges.iter().all(|edge| edge.is_finite()));
        assert_eq!(finite.counts.iter().sum::<u64>(), 3);
        assert_eq!(finite.mean(), 0.0);
        assert!((finite.std() / f64::MAX - (2f64 / 3.0).sqrt()).abs() < 1e-12);
        let finite = stats(&[f64::MAX, f64::MIN]).finite.unwrap();
        assert_eq!((finite.mean(), finite.std()), (0.0, f64::MAX));
    }

    #[test]
    fn deviations_are_right_if_their_squares_overflow() {
        for unit in [1e200, 1e-200, f64::MIN_POSITIVE / 4.0] {
            let finite = stats(&[unit, 3.0 * unit]).finite.unwrap();
            assert!((finite.mean() / unit - 2.0).abs() < 1e-12, "{unit}");
            assert!((finite.std() / unit - 1.0).abs() < 1e-12, "{unit}");
        }
    }

    #[test]
    fn minimum_and_maximum_of_integers_are_exact() {
        let text = |elements: Elements<'_>| {
            let stats = of(&elements);
            let json = serde_json::to_string(&stats).unwrap();
            assert!(stats.render().contains("\nmin "));
            let Finite { min, max, .. } = stats.finite.unwrap();
            assert!(
                json.contains(&format!(r#""min":{min},"max":{max},"#)),
                "{json}"
            );
            format!("{min} {max}")
        };
        let odd = 9_007_199_254_740_993i64;
        assert_eq!(text(Elements::from(&[odd, -odd])), format!("-{odd} {odd}"));
        let unsigned = [u64::MAX, u64::MAX - 1];
        let expected = "18446744073709551614 18446744073709551615";
        assert_eq!(text(Elements::from(&unsigned)), expected);
        assert_eq!(text(Elements::from(&[0.5f32])), "0.5 0.5");
    }
}
