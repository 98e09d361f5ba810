//! Statistics of the values of a tensor, with a histogram.

use serde::{Serialize, Serializer};
use zt::stats::{Bound, Finite, Histogram, Stats};

use crate::output::json::object;
use crate::output::value::Float;

/// The most bars of the histogram that people see.
const BARS: usize = 16;

/// Statistics as keys of JSON.
#[derive(Debug, Clone, Default)]
pub(crate) struct Figures(pub(crate) Stats);

/// What `zt show --stats` prints.
#[derive(Debug, Serialize)]
pub(crate) struct Shown {
    #[serde(flatten)]
    stats: Figures,
    /// `None` if no value is finite.
    #[serde(serialize_with = "bins")]
    histogram: Option<Histogram>,
}

impl Shown {
    pub(crate) fn new((stats, histogram): (Stats, Option<Histogram>)) -> Self {
        Shown { stats: Figures(stats), histogram }
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
        let (all, edges) = (&histogram.counts, histogram.edges());
        let together = all.len().div_ceil(BARS).max(1);
        let counts: Vec<u64> = all.chunks(together).map(|bins| bins.iter().sum()).collect();
        let edges = edges.iter().step_by(together).chain(edges.last());
        let labels: Vec<String> = edges.map(|edge| format!("{edge:.4e}")).collect();
        let most = counts.iter().copied().max().unwrap_or(1).max(1);
        let width = labels.iter().map(String::len).max().unwrap_or(0);
        for (count, edges) in counts.iter().zip(labels.windows(2)) {
            let [from, to] = edges else { continue };
            // Rounded up, so that one value among millions has a bar.
            let len = (u128::from(*count) * 40).div_ceil(most.into());
            let bar = "█".repeat(usize::try_from(len).unwrap_or(40));
            text.push_str(&format!("\n{from:>width$} .. {to:>width$}  {bar} {count}"));
        }
        text
    }
}

fn bins<S: Serializer>(histogram: &Option<Histogram>, to: S) -> Result<S::Ok, S::Error> {
    let document = histogram.as_ref().map(|histogram| {
        let edges = histogram.edges().into_iter().map(Float);
        object! { edges: edges.collect::<Vec<_>>(), counts: &histogram.counts }
    });
    document.serialize(to)
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
