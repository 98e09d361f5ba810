//! Statistics of the values of all objects: [`stats()`].
//!
//! | module | holds |
//! | --- | --- |
//! | `values` | the statistics of some values, and how two parts are joined |
//! | `dead` | rows and columns of zeros |
//! | `quantized` | levels and scales of quantized objects |
//! | `sample` | which values of a large object are looked at |
//! | `sketch` | histograms, and matrices in blocks |
//!
//! This room knows the rooms `error`, `cores`, `file` and `read`.
//!
//! It must not know how statistics are shown, or which of them are a problem.

mod dead;
mod quantized;
mod sample;
mod sketch;
mod values;

use zt_formats::{Coo, Csr, Elements, Registry, View, dense_byte_len, element_count};
use zt_manifest::Text;

pub use quantized::Quantized;
pub use sketch::{BlockKind, Blocks, Histogram, Sketch};
pub use values::{Bound, Finite, Stats};

use sample::Sample;
use sketch::{SketchPart, Sketcher};

use crate::cores::parallel;
use crate::cores::progress::{Gauge, Progress, work_options};
use crate::error::{ErrorKind, Result};
use crate::file::batches::Batches;
use crate::file::tensor::Tensor;
use crate::file::{Entry, File};
use crate::read::ahead::ReadAhead;
use crate::read::arrays::{Array, for_each};

/// How statistics are computed.
#[must_use]
#[derive(Debug, Clone, Copy, Default)]
pub struct StatsOptions<'p> {
    sketches: Option<u16>,
    sample: bool,
    threads: Option<usize>,
    progress: Option<Progress<'p>>,
}

impl StatsOptions<'_> {
    /// The defaults: all cores, no progress.
    pub fn new() -> Self {
        Self::default()
    }

    /// Also makes a [`Sketch`] of each object, while its values are in the cache, with at most `side`×`side` blocks
    /// of a matrix.
    pub const fn sketches(mut self, side: u16) -> Self {
        self.sketches = Some(side);
        self
    }

    /// Reads at most 256 KiB of each object's values, in four places, and checks no digest of a whole component.
    /// The figures are of these values. Rows and columns of zeros are not sought in larger objects, and the
    /// sketch of one has no blocks.
    pub const fn sample(mut self, sample: bool) -> Self {
        self.sample = sample;
        self
    }
}

work_options!(StatsOptions, "Reports bytes of values that were read.");

/// The statistics of one object.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ObjectStats {
    /// Its name.
    pub name: String,
    /// [`Tensor::value_type`].
    pub value_type: Option<Text>,
    /// Its dimensions.
    pub shape: Vec<u64>,
    /// Of all values of its dense value.
    pub values: Stats,
    /// Rows of zeros of a matrix with other values. A tensor of more dimensions is a matrix with as
    /// many rows as its first one is long.
    pub dead_rows: u64,
    /// Columns of zeros of that matrix.
    pub dead_columns: u64,
    /// With [`StatsOptions::sketches`], a histogram and the matrix in blocks.
    pub sketch: Option<Sketch>,
}

/// Statistics of every object that has a dense value, in the order of the data: dense ones, sparse ones
/// with their zeros, quantized ones decoded. Each object has a result of its own. A place that a sparse object
/// stores twice counts as two values.
///
/// The values are read once, on all cores, in pieces; objects with many zeros are read once more, to find
/// the rows and columns that have no other value. The figures do not depend on the number of threads. Of a
/// `.zt` file, some thousand objects are in memory at a time.
///
/// ```
/// use zt::stats::{StatsOptions, stats};
/// use zt::{Dense, File, Writer};
///
/// let mut bytes = Vec::new();
/// let mut writer = Writer::new(&mut bytes)?;
/// writer.add("w", &Dense::from_slice(&[2, 2], &[1.0f32, f32::NAN, 3.0, 0.0])?)?;
/// writer.finish()?;
///
/// let all = stats(&File::from_bytes(bytes)?, &StatsOptions::new())?;
/// let of_w = &all[0].as_ref().unwrap().values;
/// assert_eq!((of_w.count, of_w.nan, of_w.zeros), (4, 1, 1));
/// let finite = of_w.finite.unwrap();
/// assert_eq!((finite.max.as_f64(), finite.mean), (3.0, 4.0 / 3.0));
/// # Ok::<(), zt::Error>(())
/// ```
///
/// # Errors
///
/// [`ErrorKind::Interrupted`]. An object that cannot be read, or that has no dense value, has its error
/// in its place.
pub fn stats(file: &File, options: &StatsOptions<'_>) -> Result<Vec<Result<ObjectStats>>> {
    parallel::on(options.threads, || {
        let gauge = Gauge::new(options.progress);
        let mut all = Vec::with_capacity(file.len());
        for batch in Batches::of(file) {
            let entries = Batches::entries(file, &batch);
            all.extend(if options.sample {
                sample::stats(file, &entries, options, &gauge)?
            } else {
                of_entries(&entries, options, &gauge)?
            });
        }
        Ok(all)
    })
}

/// Small objects are read in parallel, and each large one on all cores.
fn of_entries(
    mut rest: &[Entry<'_>],
    options: &StatsOptions<'_>,
    gauge: &Gauge<'_>,
) -> Result<Vec<Result<ObjectStats>>> {
    let mut all = Vec::with_capacity(rest.len());
    let mut ahead = ReadAhead::new(rest.iter().filter_map(|entry| entry.tensor().ok()));
    while let Some((first, behind)) = rest.split_first() {
        let small = rest.iter().take_while(|entry| !is_large(entry)).count();
        (0..small.max(1)).for_each(|_| ahead.advance());
        if small == 0 {
            all.push(of_entry(first, true, options, gauge)?);
            rest = behind;
            continue;
        }
        let (together, behind) = rest.split_at(small);
        all.extend(parallel::map(together, |entry| of_entry(entry, false, options, gauge))?);
        rest = behind;
    }
    Ok(all)
}

fn is_large(entry: &Entry<'_>) -> bool {
    /// Bytes of the dense value.
    ///
    /// Pays: `zt stats` of matrices of 2.5 MB in zstd takes 0.63 of the CPU time of all cores for each. Matrices of
    /// 64 MiB take as long either way.
    const LARGE: u64 = 16 << 20;
    let tensor = entry.tensor().ok();
    let byte_len = tensor.and_then(|tensor| {
        let (dtype, logical_type) = tensor.dense_type()?;
        let value_len = tensor.value_len(dtype, logical_type.as_deref());
        dense_byte_len(tensor.shape(), value_len as u64)
    });
    byte_len.is_none_or(|byte_len| byte_len >= LARGE)
}

/// As [`stats()`], of one object.
///
/// # Errors
///
/// As [`Tensor::to_dense`]; [`ErrorKind::Interrupted`].
pub fn of_tensor(tensor: &Tensor<'_>, options: &StatsOptions<'_>) -> Result<ObjectStats> {
    parallel::on(options.threads, || of(tensor, true, options, &Gauge::new(options.progress)))
}

/// Statistics of values that `for_each` hands on piece by piece, and their histogram: of a part of an object, or of
/// what a component stores.
///
/// # Errors
///
/// Those of `for_each`, and as [`Elements::scalars`].
pub fn of_pieces(
    registry: &Registry,
    for_each: impl FnOnce(&mut dyn FnMut(&Elements<'_>) -> Result<()>) -> Result<()>,
) -> Result<(Stats, Option<Histogram>)> {
    let (sketcher, mut stats) = (Sketcher::of(None, 0), Stats::default());
    for_each(&mut |elements| {
        stats.append(&Part::of(elements, registry, Some(&sketcher), 0)?.stats);
        Ok(())
    })?;
    let histogram = sketcher.finish(0, stats.has_integers(), &[]).histogram;
    Ok((stats, histogram))
}

fn of_entry(
    entry: &Entry<'_>,
    is_alone: bool,
    options: &StatsOptions<'_>,
    gauge: &Gauge<'_>,
) -> Result<Result<ObjectStats>> {
    let tensor = entry.fault().map_or_else(|| entry.tensor(), |fault| Err(fault.clone()));
    match tensor.and_then(|tensor| of(&tensor, is_alone, options, gauge)) {
        Err(error) if error.kind() == ErrorKind::Interrupted => Err(error),
        found => Ok(found.map_err(|error| error.with_object(entry.name()))),
    }
}

fn of(
    tensor: &Tensor<'_>,
    is_alone: bool,
    options: &StatsOptions<'_>,
    gauge: &Gauge<'_>,
) -> Result<ObjectStats> {
    let array = array(tensor)?;
    if let Some(parts) = sample::parts(&array).filter(|_| options.sample) {
        let mut sample = Sample::new(array, options);
        for part in parts {
            sample.add(&tensor.slice(&part)?, gauge)?;
        }
        return Ok(sample.stats());
    }
    let sketcher = options.sketches.map(|side| Sketcher::of(dead::matrix(&array), side));
    let mut all = Part::default();
    let look = |start: u64, [elements]: [Elements<'_>; 1]| {
        let part = Part::of(&elements, tensor.registry(), sketcher.as_ref(), start);
        part.map_err(|error| (0, error))
    };
    let arrays = [array];
    let found = for_each(&arrays, is_alone, gauge, look, |part| all.append(part));
    found.map_err(|(_, error)| error)?;
    let [array] = &arrays;
    let mut values = all.stats;
    let absent = absent(array, values.count);
    values.add_zeros(absent);
    let is_integer = values.has_integers();
    let (dead_rows, dead_columns) = dead::rows_and_columns(array, &values, gauge)?;
    let mut sketch = sketcher.map(|it| it.finish(absent, is_integer, &all.sums));
    if let (Some(sketch), Some(side)) = (&mut sketch, options.sketches) {
        if array.part.is_some() {
            sketch.blocks = sketch::pattern(tensor, side)?;
        }
        sketch.quantized = quantized::quantized(tensor)?;
    }
    Ok(ObjectStats { dead_rows, dead_columns, sketch, ..ObjectStats::of(tensor, values) })
}

impl ObjectStats {
    fn of(tensor: &Tensor<'_>, values: Stats) -> Self {
        ObjectStats {
            name: tensor.name().to_owned(),
            value_type: tensor.value_type(),
            shape: tensor.shape().to_vec(),
            values,
            dead_rows: 0,
            dead_columns: 0,
            sketch: None,
        }
    }
}

/// What was found in some values.
#[derive(Default)]
struct Part {
    stats: Stats,
    /// For the sketch, if there is one.
    sums: Vec<SketchPart>,
}

impl Part {
    /// The values begin at the place `start`.
    fn of(
        elements: &Elements<'_>,
        registry: &Registry,
        sketcher: Option<&Sketcher>,
        start: u64,
    ) -> Result<Self> {
        let sums = sketcher.map(|it| it.add(elements, registry, start));
        Ok(Part {
            stats: Stats::of(elements, registry)?,
            sums: sums.transpose()?.into_iter().collect(),
        })
    }

    fn append(&mut self, more: Part) {
        self.stats.append(&more.stats);
        self.sums.extend(more.sums);
    }
}

/// The values of an object: its dense value, or what a sparse object stores.
fn array<'f>(tensor: &Tensor<'f>) -> Result<Array<'f>> {
    let array = Array::of_value(tensor)?;
    let is_sparse = matches!(tensor.format(), Csr::FORMAT | Coo::FORMAT);
    let part = is_sparse.then(|| tensor.locate("values")).transpose()?;
    Ok(Array { part, ..array })
}

/// Zeros that a sparse object does not store, beside this many values.
fn absent(array: &Array<'_>, stored: u64) -> u64 {
    let all = element_count(array.tensor.shape()).filter(|_| array.part.is_some());
    all.map_or(0, |all| all.saturating_sub(stored))
}
