//! A look at some values of a large object.

use zt_formats::{Dense, Slice, dense_byte_len};

use super::sketch::Sketcher;
use super::{ObjectStats, Part, StatsOptions, of_entry};
use crate::cores::parallel;
use crate::cores::progress::Gauge;
use crate::error::{ErrorKind, Result};
use crate::file::{Entry, File};
use crate::read::ahead::ReadAhead;
use crate::read::arrays::Array;

/// Bytes of the dense value that are looked at. A smaller object is read as a whole.
const SAMPLE: u64 = 256 << 10;
/// Places that are looked at, evenly spaced. Each of them is a request to a store.
const PLACES: u64 = 4;

/// The statistics of all objects, of large ones from their parts. A store is asked for many parts at a time.
pub(super) fn stats(
    file: &File,
    entries: &[Entry<'_>],
    options: &StatsOptions<'_>,
    gauge: &Gauge<'_>,
) -> Result<Vec<Result<ObjectStats>>> {
    let (mut samples, mut small, mut wanted, mut places) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (at, entry) in entries.iter().enumerate() {
        match Sample::of(entry, options) {
            Some((sample, parts)) => {
                places.extend(parts.iter().map(|_| samples.len()));
                wanted.extend(parts.into_iter().map(|part| (sample.array.tensor, part)));
                samples.push((at, Ok(sample)));
            }
            None => small.push((at, entry)),
        }
    }
    let mut ahead = ReadAhead::new(small.iter().filter_map(|(_, entry)| entry.tensor().ok()));
    small.iter().for_each(|_| ahead.advance());
    let mut all =
        parallel::map(&small, |(at, entry)| Ok((*at, of_entry(entry, false, options, gauge)?)))?;
    file.plan(wanted).threads(options.threads).for_each(|place, dense| {
        let Some((_, sample)) = places.get(place).and_then(|at| samples.get_mut(*at)) else {
            return Ok(());
        };
        let added = match sample {
            Ok(sample) => dense.and_then(|dense| sample.add(&dense, gauge)),
            Err(_) => Ok(()),
        };
        match added {
            Err(error) if error.kind() == ErrorKind::Interrupted => return Err(error),
            Err(error) => *sample = Err(error),
            Ok(()) => {}
        }
        Ok(())
    })?;
    all.extend(samples.into_iter().map(|(at, sample)| (at, sample.map(Sample::stats))));
    all.sort_by_key(|(at, _)| *at);
    Ok(all.into_iter().map(|(_, found)| found).collect())
}

/// What was found in the parts of a large object.
pub(super) struct Sample<'f> {
    array: Array<'f>,
    sketcher: Option<Sketcher>,
    all: Part,
}

impl<'f> Sample<'f> {
    /// With the parts that are to be added; `None` for an object that is read as a whole.
    fn of(entry: &Entry<'f>, options: &StatsOptions<'_>) -> Option<(Self, Vec<Vec<Slice>>)> {
        let array = super::array(&entry.tensor().ok()?).ok()?;
        let parts = parts(&array)?;
        Some((Sample::new(array, options), parts))
    }

    pub(super) fn new(array: Array<'f>, options: &StatsOptions<'_>) -> Self {
        Sample {
            array,
            sketcher: options.sketches.map(|side| Sketcher::of(None, side)),
            all: Part::default(),
        }
    }

    pub(super) fn add(&mut self, part: &Dense<'_>, gauge: &Gauge<'_>) -> Result<()> {
        let (elements, registry) = (part.elements(), self.array.tensor.registry());
        gauge.report(elements.bytes.len() as u64)?;
        let part = Part::of(elements, registry, self.sketcher.as_ref(), 0)?;
        self.all.append(part);
        Ok(())
    }

    pub(super) fn stats(self) -> ObjectStats {
        let is_integer = self.all.stats.has_integers();
        ObjectStats {
            sketch: self.sketcher.map(|it| it.finish(0, is_integer, &[])),
            ..ObjectStats::of(&self.array.tensor, self.all.stats)
        }
    }
}

/// The parts of an object that stand for all of it; `None` if it is small.
pub(super) fn parts(array: &Array<'_>) -> Option<Vec<Vec<Slice>>> {
    let shape = array.tensor.shape();
    let value_len = array.value_len as u64;
    if dense_byte_len(shape, value_len)? <= SAMPLE {
        return None;
    }
    // Where a row is too long, only the middle one is looked at, in parts.
    let mut above = Vec::new();
    for (axis, extent) in shape.iter().enumerate() {
        let row_len = dense_byte_len(shape.get(axis.strict_add(1)..)?, value_len)?.max(1);
        let rows = (SAMPLE / PLACES).strict_div(row_len).min(*extent);
        if rows == 0 {
            let middle = extent / 2;
            above.push(Slice::from(middle..middle.strict_add(1)));
            continue;
        }
        let places = PLACES.min(extent.div_ceil(rows));
        let part = |place: u64| {
            let start = extent.strict_sub(rows).saturating_mul(place);
            let start = start.strict_div(places.strict_sub(1).max(1));
            let part = above.iter().copied();
            part.chain([Slice::from(start..start.strict_add(rows))]).collect()
        };
        return Some((0..places).map(part).collect());
    }
    None
}
