//! What can be said of many values at once.

use serde::Serialize;
use serde::ser::SerializeStruct;
use zt::formats::{Scalar, Scalars};

use crate::json::Float;

/// Bars of the histogram.
const BINS: usize = 10;

/// Statistics of values in f64; of complex ones, of their absolute values. Minimum, maximum, mean,
/// standard deviation and histogram are of the finite values alone.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stats {
    pub(crate) count: u64,
    pub(crate) zeros: u64,
    pub(crate) nan: u64,
    pub(crate) inf: u64,
    /// `None` where no value is finite.
    pub(crate) finite: Option<Finite>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Finite {
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) mean: f64,
    /// Of the population: divided by the count.
    pub(crate) std: f64,
    /// Values from one edge to the next; the last edge belongs to the last bar.
    pub(crate) counts: [u64; BINS],
    pub(crate) edges: [f64; BINS + 1],
}

impl Stats {
    pub(crate) fn of(values: &Scalars<'_>) -> Self {
        let values = || values.clone().map(magnitude);
        let mut stats = Stats {
            count: 0,
            zeros: 0,
            nan: 0,
            inf: 0,
            finite: None,
        };
        let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
        // Welford's update: sums of squares would lose all digits of values far from zero.
        let (mut finite, mut mean, mut squares) = (0u64, 0f64, 0f64);
        for value in values() {
            stats.count += 1;
            stats.zeros += u64::from(value == 0.0);
            stats.nan += u64::from(value.is_nan());
            stats.inf += u64::from(value.is_infinite());
            if value.is_finite() {
                finite += 1;
                (min, max) = (min.min(value), max.max(value));
                let delta = value - mean;
                mean += delta / finite as f64;
                squares += delta * (value - mean);
            }
        }
        if finite > 0 {
            let edges = edges(min, max);
            let mut counts = [0; BINS];
            for value in values().filter(|value| value.is_finite()) {
                let bin = edges
                    .iter()
                    .skip(1)
                    .take(BINS - 1)
                    .filter(|edge| value >= **edge)
                    .count();
                if let Some(count) = counts.get_mut(bin) {
                    *count += 1;
                }
            }
            let std = (squares / finite as f64).sqrt();
            stats.finite = Some(Finite {
                min,
                max,
                mean,
                std,
                counts,
                edges,
            });
        }
        stats
    }

    /// Lines for people.
    pub(crate) fn render(&self) -> String {
        let Stats {
            count,
            zeros,
            nan,
            inf,
            ..
        } = self;
        let mut text = format!("count {count}, zeros {zeros}, NaN {nan}, inf {inf}");
        let Some(Finite {
            min,
            max,
            mean,
            std,
            counts,
            edges,
        }) = &self.finite
        else {
            return text;
        };
        text.push_str(&format!(
            "\nmin {min:?}, max {max:?}, mean {mean:?}, std {std:?}"
        ));
        let most = counts.iter().copied().max().unwrap_or(1).max(1);
        let labels = edges.map(|edge| format!("{edge:.4e}"));
        let width = labels.iter().map(String::len).max().unwrap_or(0);
        for (count, edges) in counts.iter().zip(labels.windows(2)) {
            let [from, to] = edges else { continue };
            // Rounded up: a single value among millions is to be seen.
            let len = (u128::from(*count) * 40).div_ceil(most.into());
            let bar = "█".repeat(usize::try_from(len).unwrap_or(40));
            text.push_str(&format!("\n{from:>width$} .. {to:>width$}  {bar} {count}"));
        }
        text
    }
}

/// Evenly spaced from the least to the greatest value; around a single value, half to each side.
fn edges(min: f64, max: f64) -> [f64; BINS + 1] {
    let (min, max) = if min == max {
        (min - 0.5, max + 0.5)
    } else {
        (min, max)
    };
    // Of the halves, because the range of f64 is wider than f64.
    std::array::from_fn(|at| {
        let part = at as f64 / BINS as f64;
        match at {
            0 => min,
            BINS => max,
            _ => min * (1.0 - part) + max * part,
        }
    })
}

fn magnitude(value: Scalar) -> f64 {
    match value {
        Scalar::Complex64(value) => f64::from(value.re).hypot(value.im.into()),
        Scalar::Complex128(value) => value.re.hypot(value.im),
        value => value.as_f64().unwrap_or(f64::NAN),
    }
}

impl Serialize for Stats {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Histogram<'a> {
            edges: Vec<Float>,
            counts: &'a [u64],
        }
        let finite = self.finite.as_ref();
        let number = |of: fn(&Finite) -> f64| finite.map(|finite| Float(of(finite)));
        let histogram = finite.map(|finite| Histogram {
            edges: finite.edges.iter().copied().map(Float).collect(),
            counts: &finite.counts,
        });
        let mut map = serializer.serialize_struct("Stats", 9)?;
        map.serialize_field("count", &self.count)?;
        map.serialize_field("min", &number(|finite| finite.min))?;
        map.serialize_field("max", &number(|finite| finite.max))?;
        map.serialize_field("mean", &number(|finite| finite.mean))?;
        map.serialize_field("std", &number(|finite| finite.std))?;
        map.serialize_field("zeros", &self.zeros)?;
        map.serialize_field("nan", &self.nan)?;
        map.serialize_field("inf", &self.inf)?;
        map.serialize_field("histogram", &histogram)?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zt::{Elements, Registry};

    fn stats(values: &[f64]) -> Stats {
        let elements = Elements::from(values);
        Stats::of(&elements.scalars(&Registry::builtin()).unwrap())
    }

    #[test]
    fn what_is_not_finite_is_counted_and_left_out() {
        let stats = stats(&[1.0, f64::NAN, 3.0, f64::INFINITY, -f64::INFINITY, 0.0, -0.0]);
        assert_eq!(
            (stats.count, stats.zeros, stats.nan, stats.inf),
            (7, 2, 1, 2)
        );
        let finite = stats.finite.unwrap();
        assert_eq!((finite.min, finite.max, finite.mean), (0.0, 3.0, 1.0));
        assert!((finite.std - 1.5f64.sqrt()).abs() < 1e-12);
        assert_eq!(finite.counts, [2, 0, 0, 1, 0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn one_value_and_none_have_statistics_too() {
        assert_eq!(stats(&[]).finite, None);
        let finite = stats(&[5.0; 4]).finite.unwrap();
        assert_eq!(
            (finite.edges[0], finite.edges[BINS], finite.std),
            (4.5, 5.5, 0.0)
        );
        assert_eq!(finite.counts.iter().sum::<u64>(), 4);
    }

    #[test]
    fn the_widest_range_does_not_overflow() {
        let finite = stats(&[f64::MAX, f64::MIN, 0.0]).finite.unwrap();
        assert!(finite.edges.iter().all(|edge| edge.is_finite()));
        assert_eq!(finite.counts.iter().sum::<u64>(), 3);
    }
}
