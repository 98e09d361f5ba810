//! `zt.convert`: the tensors of files as one file of any kind.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use zt::Warning;
use zt_convert::{Cast, ConvertOptions, Duplicate, Input, OnDuplicate, Summary};
use zt_model::{Location, LocationOptions};

use crate::read::open::opened;
use crate::read::select::Selection;
use crate::share::error::{Result, misuse};
use crate::share::kinds::kinds;
use crate::share::source::{Sink, path_of};
use crate::share::value::each;
use crate::share::work::{PyProgress, Watch};
use crate::share::{remote, warning};
use crate::write::options::{Stored, kind_of};

/// The result of :func:`convert`.
#[pyclass(frozen, module = "zt")]
pub(crate) struct Conversion {
    summary: Summary,
}

#[pymethods]
impl Conversion {
    /// How many tensors were written.
    #[getter]
    fn tensors(&self) -> u64 {
        self.summary.objects
    }

    /// The length of the new file in bytes.
    #[getter]
    fn nbytes(&self) -> u64 {
        self.summary.byte_len
    }

    /// The names of tensors that were left out: the kind cannot represent them, or they are damaged.
    #[getter]
    fn left_out(&self) -> Vec<String> {
        self.summary.left_out.clone()
    }

    /// Those of :attr:`left_out` that are damaged: ``skip_damaged`` allows it.
    #[getter]
    fn damaged(&self) -> Vec<String> {
        self.summary.damaged.clone()
    }

    /// The tensors that ``on_duplicate`` left out, as pairs of a name and the path of the source. The path
    /// is ``None`` if the source was opened without one.
    #[getter]
    fn duplicates(&self) -> Vec<(String, Option<PathBuf>)> {
        let duplicates = self.summary.duplicates.iter();
        let pair = |found: &Duplicate| (found.name.clone(), found.path.clone());
        duplicates.map(pair).collect()
    }

    /// What casts have lost: for each type the number of values that were cast, of those that became 0, and of those
    /// that were out of range; and the norm of the errors over the norm of the values. The last is ``None`` for
    /// ``"bf16"`` and types of more than 16 bits.
    #[getter]
    fn casts(&self) -> Lost {
        lost(&self.summary.casts)
    }

    /// Warnings of the source, and one for each loss.
    #[getter]
    fn warnings<'py>(&self, py: Python<'py>) -> Result<Vec<Bound<'py, PyAny>>> {
        warning::all(py, &self.summary.warnings)
    }

    fn __repr__(&self) -> String {
        let summary = &self.summary;
        format!("<zt.Conversion tensors={} nbytes={}>", summary.objects, summary.byte_len)
    }
}

/// Writes the tensors of files as one file of any writable kind, all of it or nothing. Several sources
/// are merged: see :func:`merge`. ``include``, ``exclude`` and ``rename`` are for all sources;
/// :meth:`File.select` is for one of them.
///
/// Args:
///     source: a :class:`File`, a path, a URL, bytes or a file object, or a list of these.
///     target: a path, a URL, or an object with ``write``.
///     kind: the kind of the new file, such as ``"zt"`` or ``"safetensors"``; by default its extension
///         decides.
///     include: a pattern, or a list of patterns: only tensors whose name matches one are taken. As in
///         ``fnmatch``, ``*`` is any text, ``?`` one character, and ``[a-z]`` a set.
///     exclude: as ``include``, for tensors to leave out.
///     rename: a dict of old names to new ones, or a function of the old name that returns the new one.
///     on_duplicate: which tensor is taken if several sources have one of the same name: ``"first"``,
///         ``"last"``, or ``"same"`` for the first one if all are equal. By default it is an error.
///     zstd: the level at which a ``.zt`` is compressed, -7 to 22. Without it and ``planes``, each
///         component stays compressed or raw.
///     digest: as for :class:`Writer`. By default a component keeps its digest, or gets
///         ``"crc32c"``.
///     chunk_digests: as for :class:`Writer`.
///     planes: whether a ``.zt`` has floating-point tensors in byte planes.
///     dense: whether sparse and quantized tensors become dense.
///     dtype: ``"f64"``, ``"f32"``, ``"f16"``, ``"bf16"``, ``"f8_e4m3fn"`` or ``"f8_e5m2"``:
///         floating-point values are rounded to it. A dict gives patterns their types, as
///         ``{"*": "bf16", "*.norm.weight": "f32"}``: the last one that matches the new name counts.
///     dialect: quantized weights are written in it, without quantizing them anew: ``"zt"`` (objects of a
///         ``.zt``), ``"gguf"``, ``"compressed-tensors"`` or ``"deepseek"``.
///     drop_unsupported: whether to leave out what the kind cannot represent, with a warning for each.
///     skip_damaged: whether to leave out damaged tensors, with a warning for each. The sources are
///         verified first.
///     allow_inf: whether ``dtype`` may make finite values infinite, with a warning for each tensor.
///     lossy: the same as ``drop_unsupported`` and ``allow_inf``. A damaged tensor stays an error.
///     overwrite: whether an existing file is replaced.
///     threads: how many threads work.
///     progress: called with the bytes since the last call. An exception from it ends the work.
///     storage_options: as for :func:`open`, for the sources and the target.
///
/// Raises:
///     MisuseError: the file exists, code ``overwrite``; the kind cannot represent a tensor, code
///         ``lossy``; two tensors have one name, code ``duplicate-name``.
///     TensorNotFoundError: no tensor is left to write.
///
/// >>> import io, numpy, zt, zt.numpy
/// >>> data = zt.numpy.save({"model.weight": numpy.zeros(2), "step": numpy.int64(7)})
/// >>> sink = io.BytesIO()
/// >>> zt.convert(data, sink, include="model.*", rename=lambda name: name.removeprefix("model."))
/// <zt.Conversion tensors=1 nbytes=384>
/// >>> list(zt.open(sink.getvalue()))
/// ['weight']
#[pyfunction]
#[pyo3(signature = (
    source, target, *, kind = None, include = None, exclude = None, rename = None,
    on_duplicate = "error", zstd = None, digest = "default", chunk_digests = "crc32c", planes = false,
    dense = false, dtype = None, dialect = None, drop_unsupported = false, skip_damaged = false, allow_inf = false,
    lossy = false, overwrite = false, threads = None, progress = None, storage_options = None
))]
#[expect(clippy::too_many_arguments, reason = "the keywords of Python's call")]
pub(crate) fn convert<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    target: &Bound<'py, PyAny>,
    kind: Option<&str>,
    include: Option<&Bound<'py, PyAny>>,
    exclude: Option<&Bound<'py, PyAny>>,
    rename: Option<&Bound<'py, PyAny>>,
    on_duplicate: &str,
    zstd: Option<i32>,
    digest: Option<&str>,
    chunk_digests: Option<&str>,
    planes: bool,
    dense: bool,
    dtype: Option<&Bound<'py, PyAny>>,
    dialect: Option<String>,
    drop_unsupported: bool,
    skip_damaged: bool,
    allow_inf: bool,
    lossy: bool,
    overwrite: bool,
    threads: Option<usize>,
    progress: PyProgress<'py>,
    storage_options: Option<&Bound<'py, PyDict>>,
) -> Result<Conversion> {
    let selection = Selection::new(include, exclude, rename)?;
    let mut inputs: Vec<Input> = Vec::new();
    for source in each(source)? {
        inputs.push(opened(py, &source, storage_options)?.to_input());
    }
    let inputs = selection.apply(py, inputs)?;
    let kinds = kinds();
    let path = path_of(target)?;
    let places =
        LocationOptions::new().remote(remote::options(storage_options)?).kinds(kinds.clone());
    let kind = kind_of(py, &kinds, kind, path.as_ref())?;
    let stored = Stored { zstd, digest, chunk_digests, planes, dtype };
    let options = stored.options(py, kind, &inputs)?;
    let on_duplicate = match on_duplicate {
        "error" => OnDuplicate::Error,
        "first" => OnDuplicate::First,
        "last" => OnDuplicate::Last,
        "same" => OnDuplicate::Same,
        _ => {
            let text = format!(
                "on_duplicate is {on_duplicate:?}: pass \"error\", \"first\", \"last\" or \"same\""
            );
            return Err(misuse(py, &text));
        }
    };
    let options = options
        .on_duplicate(on_duplicate)
        .dense(dense)
        .dialect(dialect)
        .drop_unsupported(drop_unsupported || lossy)
        .skip_damaged(skip_damaged)
        .allow_inf(allow_inf || lossy)
        .overwrite(overwrite);
    let watch = Watch::new(progress).threads(threads);
    let summary = write_to(py, target, &inputs, options, &places, watch)?;
    Ok(Conversion { summary })
}

/// What casts to each type have lost.
pub(crate) type Lost = BTreeMap<&'static str, (u64, u64, u64, Option<f64>)>;

pub(crate) fn lost(casts: &[Cast]) -> Lost {
    let lost = |it: &Cast| (it.values, it.to_zero, it.out_of_range, it.relative_error());
    casts.iter().map(|it| (it.to.as_str(), lost(it))).collect()
}

/// Writes `inputs` to a path, a URL, or an object with `write`.
pub(crate) fn write_to<'py>(
    py: Python<'py>,
    target: &Bound<'py, PyAny>,
    inputs: &[Input],
    options: ConvertOptions<'_>,
    places: &LocationOptions<'_>,
    watch: Watch<'py>,
) -> Result<Summary> {
    let path = path_of(target)?;
    if path.is_none() && !target.hasattr("write")? {
        let text = "expected a path or an object with write as the target";
        return Err(PyTypeError::new_err(text));
    }
    let sink = Sink::new(target);
    let summary = watch.run(py, |progress| {
        let options = options.progress(progress);
        match &path {
            Some(path) => Location::new(path).convert(inputs, &options, places),
            None => kinds().convert(inputs, sink, &options),
        }
    })?;
    let told: Vec<Warning> = inputs.iter().flat_map(|input| input.file().warnings()).collect();
    warning::tell(py, &summary.warnings, &told)?;
    Ok(summary)
}
