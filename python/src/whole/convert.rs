//! `zt.convert`: the tensors of files as one file of any kind.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use zt_convert::{ConvertOptions, Input, Kinds};

use crate::read::open::opened;
use crate::read::warning::FileWarning;
use crate::share::error::{Result, misuse};
use crate::share::remote;
use crate::share::source::{Sink, path_of};
use crate::share::work::{PyProgress, Watch};
use crate::write::options::{self, kind_of};

/// The result of :func:`convert`.
#[pyclass(frozen, module = "zt")]
pub(crate) struct Conversion {
    summary: zt_convert::Summary,
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

    /// The names of tensors that were left out. Only ``lossy=True`` leaves tensors out.
    #[getter]
    fn left_out(&self) -> Vec<String> {
        self.summary.left_out.clone()
    }

    /// Warnings of the source, and one for each loss.
    #[getter]
    fn warnings(&self) -> Vec<FileWarning> {
        FileWarning::all(self.summary.warnings.clone())
    }

    fn __repr__(&self) -> String {
        let summary = &self.summary;
        format!(
            "<zt.Conversion tensors={} nbytes={}>",
            summary.objects, summary.byte_len
        )
    }
}

/// Writes the tensors of files as one file of any writable kind, all of it or nothing.
///
/// Args:
///     source: a :class:`File`, a path, a URL, bytes or a file object, or a list of these.
///     target: a path, a URL, or an object with ``write``.
///     kind: the kind of the new file, such as ``"zt"`` or ``"safetensors"``; by default its extension
///         decides.
///     zstd: the level at which a ``.zt`` is compressed.
///     chunk_digests: as for :class:`Writer`.
///     planes: whether a ``.zt`` has floating-point tensors in byte planes.
///     dense: whether sparse and quantized tensors become dense.
///     dtype: ``"f64"``, ``"f32"``, ``"f16"``, ``"bf16"``, ``"f8_e4m3fn"`` or ``"f8_e5m2"``: floating-point values are
///         rounded to it.
///     lossy: whether to leave out what the kind cannot represent, with a warning for each loss.
///     overwrite: whether an existing file is replaced.
///     threads: how many threads work.
///     progress: called with the bytes since the last call. An exception from it ends the work.
///     storage_options: as for :func:`open`, for the sources and the target.
///
/// Raises:
///     MisuseError: the file exists, code ``overwrite``; the kind cannot represent a tensor, code
///         ``lossy``.
#[pyfunction]
#[pyo3(signature = (
    source, target, *, kind = None, zstd = None, chunk_digests = Some("crc32c"), planes = false,
    dense = false, dtype = None, lossy = false, overwrite = false, threads = None, progress = None,
    storage_options = None
))]
#[expect(clippy::too_many_arguments, reason = "the keywords of Python's call")]
pub(crate) fn convert<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    target: &Bound<'py, PyAny>,
    kind: Option<&str>,
    zstd: Option<i32>,
    chunk_digests: Option<&str>,
    planes: bool,
    dense: bool,
    dtype: Option<&str>,
    lossy: bool,
    overwrite: bool,
    threads: Option<usize>,
    progress: PyProgress<'py>,
    storage_options: Option<&Bound<'py, PyDict>>,
) -> Result<Conversion> {
    let sources: Vec<Bound<'py, PyAny>> =
        if source.is_instance_of::<PyList>() || source.is_instance_of::<PyTuple>() {
            source.try_iter()?.collect::<Result<_>>()?
        } else {
            vec![source.clone()]
        };
    let mut inputs: Vec<Input> = Vec::new();
    for source in &sources {
        inputs.push(opened(py, source, storage_options)?.to_input());
    }
    let kinds = Kinds::builtin();
    let path = path_of(target)?;
    let stores = remote::options(storage_options)?;
    let kind = kind_of(py, &kinds, kind, path.as_ref())?;
    let chunk_digests = options::digest(py, "chunk_digests", chunk_digests)?;
    let write = options::write(zstd, planes).chunk_digests(chunk_digests);
    let dtype = dtype.map(|name| {
        let long = || zt::FloatType::of_dtype(zt::DType::from_long_name(name)?);
        let known = zt::FloatType::from_name(name).or_else(long);
        known.ok_or_else(|| misuse(py, &format!("values are not cast to {name:?}")))
    });
    let options = ConvertOptions::new(kind)
        .write(write)
        .dense(dense)
        .lossy(lossy)
        .overwrite(overwrite);
    let options = options.dtype(dtype.transpose()?);
    if path.is_none() && !target.hasattr("write")? {
        let text = "expected a path or an object with write as the target";
        return Err(PyTypeError::new_err(text));
    }
    let sink = Sink::new(target);
    let summary = Watch::new(progress).threads(threads).run(py, |progress| {
        let options = options.progress(progress);
        let Some(path) = &path else {
            return kinds.convert(&inputs, sink, &options);
        };
        if let Some(url) = remote::url_of(path) {
            let mut upload = remote::create(url, &stores, overwrite)?;
            let summary = kinds.convert(&inputs, &mut upload, &options)?;
            return upload.finish().map(|()| summary);
        }
        kinds.convert_to_path(&inputs, path, &options)
    })?;
    Ok(Conversion { summary })
}
