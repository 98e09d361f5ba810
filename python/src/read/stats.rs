//! `zt.stats`: statistics of the values of every tensor.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use zt::stats::{Bound as Figure, ObjectStats, StatsOptions};
use zt_report::{Odd, odd};

use crate::read::open::{opened, warn_of_codes};
use crate::share::error::{Result, exception};
use crate::share::result;
use crate::share::work::{PyProgress, Watch};

/// Statistics of the values of every tensor, as ``zt stats`` prints them, and what is unusual in them.
///
/// Sparse tensors count with their zeros, quantized ones by their decoded values, complex numbers by their
/// absolute values.
///
/// Args:
///     source: a :class:`File`, a path, a URL, bytes, or a file object. ``zt.open(path).select(...)`` is for
///         some of the tensors.
///     threads: how many threads work; by default all cores, or ``ZT_NUM_THREADS``.
///     progress: called with the bytes since the last call. An exception from it ends the work.
///     storage_options: as for :func:`open`.
///
/// Returns:
///     A dict of names and :class:`TensorStats`. ``problems`` has the tensors in which something is unusual, and
///     ``errors`` those that cannot be read. A notebook shows a table.
///
/// >>> import numpy, zt, zt.numpy
/// >>> data = zt.numpy.save({"w": numpy.float32([[1, 3], [0, 0]])})
/// >>> stats = zt.stats(data)
/// >>> stats["w"].max, stats["w"].mean, stats.problems
/// (3.0, 1.0, {'w': ['1 row of zeros']})
#[pyfunction]
#[pyo3(signature = (source, *, threads = None, progress = None, storage_options = None))]
pub(crate) fn stats<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    threads: Option<usize>,
    progress: PyProgress<'py>,
    storage_options: Option<&Bound<'py, PyDict>>,
) -> Result<Bound<'py, PyAny>> {
    let open = opened(py, source, storage_options)?;
    warn_of_codes(py, &open)?;
    let found = Watch::new(progress).threads(threads).run(py, |progress| {
        zt::stats::stats(open.file(), &StatsOptions::new().progress(progress))
    })?;
    let sound: Vec<&ObjectStats> = found.iter().flatten().collect();
    let tensors = PyDict::new(py);
    for (stats, problems) in sound.iter().zip(odd(&sound)) {
        tensors.set_item(&stats.name, of_tensor(py, stats, &problems)?)?;
    }
    let errors = PyDict::new(py);
    for error in found.iter().filter_map(|found| found.as_ref().err()) {
        let error = open.blame(error.clone());
        errors.set_item(error.object(), exception(&error).into_value(py))?;
    }
    result::class(py, "Stats")?.call1((tensors, errors))
}

fn of_tensor<'py>(
    py: Python<'py>,
    stats: &ObjectStats,
    problems: &[Odd],
) -> Result<Bound<'py, PyAny>> {
    let values = &stats.values;
    let figure = |figure: Figure| match figure {
        Figure::Integer(number) => Ok(number.into_pyobject(py)?.into_any()),
        Figure::Real(number) => Ok::<_, PyErr>(number.into_pyobject(py)?.into_any()),
    };
    let finite = values.finite;
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let fields = PyDict::new(py);
    fields.set_item("name", &stats.name)?;
    fields.set_item("dtype", stats.value_type.as_deref())?;
    fields.set_item("shape", PyTuple::new(py, &stats.shape)?)?;
    fields.set_item("count", values.count)?;
    fields.set_item("min", finite.map(|finite| figure(finite.min)).transpose()?)?;
    fields.set_item("max", finite.map(|finite| figure(finite.max)).transpose()?)?;
    fields.set_item("mean", finite.map(|finite| finite.mean))?;
    fields.set_item("std", finite.map(|finite| finite.std))?;
    fields.set_item("zeros", values.zeros)?;
    fields.set_item("nan", values.nan)?;
    fields.set_item("inf", values.inf)?;
    fields.set_item("constant", values.is_constant())?;
    fields.set_item("dead_rows", stats.dead_rows)?;
    fields.set_item("dead_columns", stats.dead_columns)?;
    fields.set_item("problems", problems)?;
    result::class(py, "TensorStats")?.call((), Some(&fields))
}
