//! Statistics of the values of a tensor, with a histogram.

use serde::{Serialize, Serializer};
use zt::stats::{Bound, Finite, Stats};
use zt::{Elements, Registry};

use crate::output::json::object;
use crate::output::value::Float;

/// Bars of the histogram.
const BINS: usize = 10;

/// Statistics as keys of JSON.
#[derive(Debug, Clone, Default)]
pub(crate) struct Figures(pub(crate) Stats);

/// What `zt show --stats` prints.
#[derive(Debug, Serialize)]
pub(crate) struct Shown {
    #[serde(flatten)]
    stats: Figures,
    /// `None` if no value is finite.
    histogram: Option<Histogram>,
}

impl Shown {
    /// Statistics of the values that `for_each` hands on, piece by piece. It is called twice: the
    /// histogram needs the minimum and the maximum first.
    pub(crate) fn of<E: From<zt::formats::Error>>(
        registry: &Registry,
        mut for_each: impl FnMut(
            &mut dyn FnMut(&Elements<'_>) -> zt::formats::Result<()>,
        ) -> Result<(), E>,
    ) -> Result<Self, E> {
        let mut stats = Stats::default();
        for_each(&mut |elements| {
            stats.append(&Stats::of(elements, registry)?);
            Ok(())
        })?;
        let mut histogram = stats.finite.map(|finite| Histogram::new(&finite));
        if let Some(histogram) = &mut histogram {
            for_each(&mut |elements| {
                let values = elements.scalars(registry)?;
                let values = values.map(|value| Bound::of(value).as_f64());
                values.filter(|value| value.is_finite()).for_each(|value| histogram.add(value));
                Ok(())
            })?;
        }
        Ok(Shown { stats: Figures(stats), histogram })
    }

    /// Lines for people.
    pub(crate) fn render(&self) -> String {
        let Stats { count, zeros, nan, inf, finite, .. } = &self.stats.0;
        let mut text = format!("count {count}, zeros {zeros}, NaN {nan}, inf {inf}");
        let (Some(finite), Some(histogram)) = (finite, &self.histogram) else {
            return text;
        };
        let Finite { min, max, mean, std, .. } = finite;
        text.push_str(&format!("\nmin {min}, max {max}, mean {mean:?}, std {std:?}"));
        let most = histogram.counts.iter().copied().max().unwrap_or(1).max(1);
        let labels = histogram.edges.map(|edge| format!("{edge:.4e}"));
        let width = labels.iter().map(String::len).max().unwrap_or(0);
        for (count, edges) in histogram.counts.iter().zip(labels.windows(2)) {
            let [from, to] = edges else { continue };
            // Rounded up, so that one value among millions has a bar.
            let len = (u128::from(*count) * 40).div_ceil(most.into());
            let bar = "█".repeat(usize::try_from(len).unwrap_or(40));
            text.push_str(&format!("\n{from:>width$} .. {to:>width$}  {bar} {count}"));
        }
        text
    }
}

#[derive(Debug, PartialEq, Serialize)]
struct Histogram {
    #[serde(serialize_with = "floats")]
    edges: [f64; BINS + 1],
    /// Values from one edge up to the next. The last edge belongs to the last bar.
    counts: [u64; BINS],
}

impl Histogram {
    fn new(finite: &Finite) -> Self {
        Histogram { edges: edges(finite.min.as_f64(), finite.max.as_f64()), counts: [0; BINS] }
    }

    fn add(&mut self, value: f64) {
        let inner = self.edges.iter().skip(1).take(BINS - 1);
        let bin = inner.filter(|edge| value >= **edge).count();
        self.counts[bin] += 1;
    }
}

/// Evenly spaced from the minimum to the maximum. A single value gets 0.5 to each side.
fn edges(min: f64, max: f64) -> [f64; BINS + 1] {
    let (min, max) = if min == max { (min - 0.5, max + 0.5) } else { (min, max) };
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

fn floats<S: Serializer>(values: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(values.iter().copied().map(Float))
}

impl Serialize for Figures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Stats { count, zeros, nan, inf, finite, .. } = &self.0;
        let document = object! {
            count,
            min: finite.map(|finite| Number(finite.min)),
            max: finite.map(|finite| Number(finite.max)),
            mean: finite.map(|finite| Float(finite.mean)),
            std: finite.map(|finite| Float(finite.std)),
            zeros,
            nan,
            inf,
        };
        document.serialize(serializer)
    }
}

struct Number(Bound);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Bound::Integer(value) => serializer.serialize_i128(value),
            Bound::Real(value) => Float(value).serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(elements: &Elements<'_>) -> Shown {
        let registry = Registry::builtin();
        let shown = Shown::of(&registry, |take| take(elements));
        shown.unwrap()
    }

    #[test]
    fn bars_count_finite_values() {
        let values = [1.0, f64::NAN, 3.0, f64::INFINITY, 0.0, -0.0];
        let histogram = shown(&Elements::from(&values)).histogram.unwrap();
        assert_eq!(histogram.counts, [2, 0, 0, 1, 0, 0, 0, 0, 0, 1]);
        assert_eq!(shown(&Elements::from(&[0f64; 0])).histogram, None);
        let histogram = shown(&Elements::from(&[5.0; 4])).histogram.unwrap();
        assert_eq!((histogram.edges[0], histogram.edges[BINS]), (4.5, 5.5));
        let histogram = shown(&Elements::from(&[f64::MAX, f64::MIN, 0.0])).histogram;
        assert!(histogram.unwrap().edges.iter().all(|edge| edge.is_finite()));
    }

    #[test]
    fn minimum_and_maximum_of_integers_are_exact() {
        let text = |elements: Elements<'_>| serde_json::to_string(&shown(&elements)).unwrap();
        let odd = 9_007_199_254_740_993i64;
        let bounds = r#""min":-9007199254740993,"max":9007199254740993,"#;
        assert!(text(Elements::from(&[odd, -odd])).contains(bounds));
        assert!(text(Elements::from(&[0.5f32])).contains(r#""min":0.5,"max":0.5,"#));
    }
}
