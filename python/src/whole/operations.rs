//! Work on whole files: verify, hash, diff, convert, repair.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use zt::diff::{Change, DiffOptions};
use zt::foreign::Kind;
use zt::repair::{RepairOptions, Verdict};
use zt::{HashOptions, VerifyOptions};
use zt_convert::{ConvertOptions, Input, InputOptions, Kinds};

use crate::read::file::{File, FileWarning, Open, open_any, path_of};
use crate::share::error::{Result, exception, misuse};
use crate::share::remote;
use crate::share::source::Sink;
use crate::share::work::Watch;
use crate::write::writer;

type Progress<'py> = Option<Bound<'py, PyAny>>;

/// An open file, or one to be opened.
pub(crate) fn opened(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    storage_options: Option<&Bound<'_, PyDict>>,
) -> Result<Arc<Open>> {
    match source.cast::<File>() {
        Ok(file) => file.get().open(),
        Err(_) => open_any(py, source, InputOptions::new(), storage_options).map(Arc::new),
    }
}

fn warnings(found: Vec<zt::Warning>) -> Vec<FileWarning> {
    found.into_iter().map(FileWarning).collect()
}

/// What :func:`verify` found. It is true if there are no problems.
#[pyclass(frozen, module = "zt")]
pub(crate) struct Verification {
    report: zt::Report,
}

#[pymethods]
impl Verification {
    /// Whether there are no problems.
    #[getter]
    fn ok(&self) -> bool {
        self.report.is_ok()
    }

    /// Every fault, as an exception that was not raised, in the order of the data.
    #[getter]
    fn problems<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyList>> {
        let problems = self.report.problems.iter();
        PyList::new(py, problems.map(|error| exception(error).into_value(py)))
    }

    /// What is worth knowing and is no fault.
    #[getter]
    fn warnings(&self) -> Vec<FileWarning> {
        warnings(self.report.warnings.clone())
    }

    /// The components without a digest, as pairs of the tensor's name and the role.
    #[getter]
    fn unverified(&self) -> Vec<(String, String)> {
        self.report.unverified.clone()
    }

    /// How many decoded bytes were checked.
    #[getter]
    fn nbytes(&self) -> u64 {
        self.report.bytes
    }

    fn __bool__(&self) -> bool {
        self.ok()
    }

    fn __repr__(&self) -> String {
        format!(
            "<zt.Verification ok={} problems={}>",
            if self.ok() { "True" } else { "False" },
            self.report.problems.len()
        )
    }
}

/// Checks every tensor of a file: its digests, its contents, the rules of its format.
///
/// Args:
///     source: a :class:`File`, a path, bytes, or a file object.
///     strict: whether faults that readers tolerate are problems too.
///     threads: how many threads work; by default all cores, or ``ZT_NUM_THREADS``.
///     progress: called with the decoded bytes since the last call. What it raises ends the work.
///     storage_options: as for :func:`open`.
///
/// Returns:
///     The problems. Damage of the file is no exception, unless the file does not open.
///
/// >>> import zt
/// >>> import numpy, zt.numpy
/// >>> bool(zt.verify(zt.numpy.save({"a": numpy.ones(3)})))
/// True
#[pyfunction]
#[pyo3(signature = (source, *, strict = false, threads = None, progress = None, storage_options = None))]
pub(crate) fn verify<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    strict: bool,
    threads: Option<usize>,
    progress: Progress<'py>,
    storage_options: Option<&Bound<'py, PyDict>>,
) -> Result<Verification> {
    let open = opened(py, source, storage_options)?;
    let report = Watch::new(progress).threads(threads).run(py, |progress| {
        let options = VerifyOptions::new().strict(strict).progress(progress);
        open.file().verify(&options)
    })?;
    Ok(Verification { report })
}

/// The identity of a file's tensors. See :func:`hash`.
#[pyclass(frozen, module = "zt")]
pub(crate) struct ContentHash {
    hash: zt::ContentHash,
}

#[pymethods]
impl ContentHash {
    /// ``"sha256:"`` and 64 hexadecimal digits, the same for equal tensors in any kind of file, order and
    /// encoding; ``None`` if a tensor could not be read.
    #[getter]
    fn content(&self) -> Option<String> {
        self.hash.content.map(|_| self.hash.to_string())
    }

    /// By the name of each tensor, a dict of the hash of each of its components by role. A tensor that
    /// cannot be read has its exception there.
    #[getter]
    fn tensors<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        let tensors = PyDict::new(py);
        for (name, object) in &self.hash.objects {
            match object {
                Ok(object) => {
                    let roles = PyDict::new(py);
                    for (role, hash) in &object.components {
                        roles.set_item(role, hash.to_string())?;
                    }
                    tensors.set_item(name, roles)?;
                }
                Err(error) => tensors.set_item(name, exception(error).into_value(py))?,
            }
        }
        Ok(tensors)
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.hash.content.is_some() && self.hash.content == other.hash.content
    }

    fn __hash__(&self) -> u64 {
        let start = self.hash.content.unwrap_or_default();
        start
            .first_chunk()
            .map_or(0, |start| u64::from_le_bytes(*start))
    }

    fn __str__(&self) -> String {
        self.hash.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<zt.ContentHash {}>", self.hash)
    }
}

/// Identifies the tensors of a file: names, shapes, formats, attributes, types and values.
///
/// Args:
///     source: a :class:`File`, a path, bytes, or a file object.
///     threads: how many threads work.
///     progress: called with the decoded bytes since the last call. What it raises ends the work.
///     storage_options: as for :func:`open`.
#[pyfunction]
#[pyo3(signature = (source, *, threads = None, progress = None, storage_options = None))]
pub(crate) fn hash<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    threads: Option<usize>,
    progress: Progress<'py>,
    storage_options: Option<&Bound<'py, PyDict>>,
) -> Result<ContentHash> {
    let open = opened(py, source, storage_options)?;
    let hash = Watch::new(progress).threads(threads).run(py, |progress| {
        open.file().hash(&HashOptions::new().progress(progress))
    })?;
    Ok(ContentHash { hash })
}

/// The differences of two files. See :func:`diff`. It is true if there are any.
#[pyclass(frozen, module = "zt")]
pub(crate) struct Difference {
    diff: zt::diff::Diff,
}

#[pymethods]
impl Difference {
    /// Whether there is no difference.
    #[getter]
    fn same(&self) -> bool {
        self.diff.is_same()
    }

    /// The names of tensors that only the first file has.
    #[getter]
    fn only_a(&self) -> Vec<String> {
        self.diff.only_a.clone()
    }

    /// The names of tensors that only the second file has.
    #[getter]
    fn only_b(&self) -> Vec<String> {
        self.diff.only_b.clone()
    }

    /// By the name of each tensor that differs, what does: ``"shape"``, ``"format"``, ``"attribute"``,
    /// ``"component"``, ``"dtype"``, ``"values"`` or ``"unreadable"``.
    #[getter]
    fn changed<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        let changed = PyDict::new(py);
        for object in &self.diff.changed {
            let mut words: Vec<&str> = Vec::new();
            for change in &object.changes {
                let word = word_of(change);
                if !words.contains(&word) {
                    words.push(word);
                }
            }
            changed.set_item(&object.name, words)?;
        }
        Ok(changed)
    }

    /// Whether the attributes of the files differ.
    #[getter]
    fn attributes_differ(&self) -> bool {
        !self.diff.attributes.is_empty()
    }

    fn __bool__(&self) -> bool {
        !self.same()
    }

    fn __repr__(&self) -> String {
        format!(
            "<zt.Difference only_a={} only_b={} changed={}>",
            self.diff.only_a.len(),
            self.diff.only_b.len(),
            self.diff.changed.len()
        )
    }
}

fn word_of(change: &Change) -> &'static str {
    match change {
        Change::Shape { .. } => "shape",
        Change::Format { .. } => "format",
        Change::Attribute { .. } => "attribute",
        Change::Component { .. } => "component",
        Change::DType { .. } | Change::LogicalType { .. } => "dtype",
        Change::Values { .. } => "values",
        _ => "unreadable",
    }
}

/// Compares two files of any kinds: names, shapes, formats, attributes, types and values. How values are
/// stored does not matter.
///
/// Args:
///     a, b: each a :class:`File`, a path, bytes, or a file object.
///     dense: whether sparse and quantized tensors are compared by their dense values.
///     threads: how many threads work.
///     progress: called with the bytes since the last call, of both files.
///     storage_options: as for :func:`open`, for both.
#[pyfunction]
#[pyo3(signature = (a, b, *, dense = false, threads = None, progress = None, storage_options = None))]
pub(crate) fn diff<'py>(
    py: Python<'py>,
    a: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
    dense: bool,
    threads: Option<usize>,
    progress: Progress<'py>,
    storage_options: Option<&Bound<'py, PyDict>>,
) -> Result<Difference> {
    let (a, b) = (
        opened(py, a, storage_options)?,
        opened(py, b, storage_options)?,
    );
    let diff = Watch::new(progress).threads(threads).run(py, |progress| {
        let options = DiffOptions::new().dense(dense).progress(progress);
        zt::diff::diff(a.file(), b.file(), &options)
    })?;
    Ok(Difference { diff })
}

/// What :func:`convert` did.
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

    /// The names of tensors that were left out, with ``lossy=True`` alone.
    #[getter]
    fn left_out(&self) -> Vec<String> {
        self.summary.left_out.clone()
    }

    /// Warnings of the source, and one for each loss.
    #[getter]
    fn warnings(&self) -> Vec<FileWarning> {
        warnings(self.summary.warnings.clone())
    }

    fn __repr__(&self) -> String {
        let summary = &self.summary;
        format!(
            "<zt.Conversion tensors={} nbytes={}>",
            summary.objects, summary.byte_len
        )
    }
}

/// The kind to write: the one that is named, otherwise that of the extension.
pub(crate) fn kind_of(
    py: Python<'_>,
    kinds: &Kinds,
    kind: Option<&str>,
    path: Option<&PathBuf>,
) -> Result<Kind> {
    if let Some(name) = kind {
        let known = kinds.get(name).map(zt_convert::FileKind::kind);
        return known.ok_or_else(|| misuse(py, &format!("there is no kind {name:?}")));
    }
    let Some(path) = path else {
        return Ok(zt_convert::ZT);
    };
    let text = || format!("{}: pass `kind`, the extension is of none", path.display());
    kinds.of_extension(path).ok_or_else(|| misuse(py, &text()))
}

/// Writes the tensors of files as one file of any kind that can be written, all of it or nothing.
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
///     dtype: ``"f64"``, ``"f32"``, ``"f16"`` or ``"bf16"``: to what floating-point values are rounded.
///     lossy: whether what the kind cannot represent is left out, with a warning for each loss.
///     overwrite: whether a file that is there is replaced.
///     threads: how many threads work.
///     progress: called with the bytes since the last call. What it raises ends the work.
///     storage_options: as for :func:`open`, for the sources and the target.
///
/// Raises:
///     MisuseError: the file is there, code ``overwrite``; the kind cannot represent a tensor, code
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
    progress: Progress<'py>,
    storage_options: Option<&Bound<'py, PyDict>>,
) -> Result<Conversion> {
    let sources: Vec<Bound<'py, PyAny>> =
        match source.is_instance_of::<PyList>() || source.is_instance_of::<PyTuple>() {
            true => source.try_iter()?.collect::<Result<_>>()?,
            false => vec![source.clone()],
        };
    let mut inputs: Vec<Input> = Vec::new();
    for source in &sources {
        inputs.push(opened(py, source, storage_options)?.input.clone());
    }
    let kinds = Kinds::builtin();
    let path = path_of(target)?;
    let stores = remote::options(storage_options)?;
    let kind = kind_of(py, &kinds, kind, path.as_ref())?;
    let chunk_digests = writer::digest(py, "chunk_digests", chunk_digests)?;
    let write = writer::options(zstd, planes).chunk_digests(chunk_digests);
    let dtype = dtype.map(|name| {
        let known = zt::DType::from_name(name).or(zt::DType::from_long_name(name));
        known.ok_or_else(|| misuse(py, &format!("there is no dtype {name:?}")))
    });
    let options = ConvertOptions::new(kind)
        .write(write)
        .dense(dense)
        .lossy(lossy);
    let options = options.dtype(dtype.transpose()?);
    let mut sink = match &path {
        Some(_) => None,
        None if target.hasattr("write")? => Some(Sink::new(target)),
        None => {
            let text = "expected a path or an object with write as the target";
            return Err(PyTypeError::new_err(text));
        }
    };
    let summary = Watch::new(progress).threads(threads).run(py, |progress| {
        let options = options.progress(progress);
        if let Some(url) = path.as_deref().and_then(remote::url_of) {
            let mut upload = remote::create(url, &stores, overwrite)?;
            let summary = kinds.convert(&inputs, &mut upload, &options)?;
            return upload.finish().map(|()| summary);
        }
        match (&path, &mut sink) {
            (Some(path), _) => kinds.convert_to_path(&inputs, path, overwrite, &options),
            (None, Some(sink)) => kinds.convert(&inputs, sink, &options),
            (None, None) => kinds.convert(&inputs, std::io::sink(), &options),
        }
    })?;
    Ok(Conversion { summary })
}

/// What :func:`repair` found and did.
#[pyclass(frozen, module = "zt")]
pub(crate) struct Recovery {
    verdict: Verdict,
    is_complete: bool,
    tensors: Vec<String>,
    nbytes: Option<u64>,
}

#[pymethods]
impl Recovery {
    /// ``"sound"``, ``"mendable"`` (and mended, if no new file was asked for), ``"damaged"``, ``"doubtful"``
    /// or ``"lost"``.
    #[getter]
    fn verdict(&self) -> &'static str {
        match self.verdict {
            Verdict::Sound => "sound",
            Verdict::Mendable => "mendable",
            Verdict::Damaged => "damaged",
            Verdict::Doubtful => "doubtful",
            _ => "lost",
        }
    }

    /// Whether every tensor is complete.
    #[getter]
    fn complete(&self) -> bool {
        self.is_complete
    }

    /// The names of the file's tensors, complete or not.
    #[getter]
    fn tensors(&self) -> Vec<String> {
        self.tensors.clone()
    }

    /// The length of the new file in bytes; ``None`` if none was written.
    #[getter]
    fn nbytes(&self) -> Option<u64> {
        self.nbytes
    }

    fn __repr__(&self) -> String {
        format!(
            "<zt.Recovery {} tensors={}>",
            self.verdict(),
            self.tensors.len()
        )
    }
}

/// Mends a ``.zt`` file in place, if its last generation is whole and readers do not find it; or writes
/// what is left of a damaged one to a new file.
///
/// Args:
///     path: the file.
///     target: the new file; ``None`` to mend in place.
///     overwrite: whether a file at ``target`` is replaced.
///     threads: how many threads work.
///     progress: called with the bytes since the last call. Their sum is larger than the file.
#[pyfunction]
#[pyo3(signature = (path, target = None, *, overwrite = false, threads = None, progress = None))]
pub(crate) fn repair<'py>(
    py: Python<'py>,
    path: PathBuf,
    target: Option<PathBuf>,
    overwrite: bool,
    threads: Option<usize>,
    progress: Progress<'py>,
) -> Result<Recovery> {
    Watch::new(progress).threads(threads).run(py, |progress| {
        let options = RepairOptions::new().progress(progress);
        let (recovery, nbytes) = match &target {
            None => (zt::repair::repair(&path, &options)?, None),
            Some(target) => {
                let source = zt::FileSource::open(&path)
                    .map_err(|error| zt::Error::from(error).with_path(&path))?;
                let recovery = zt::repair::examine(source, &options)?;
                let nbytes = recovery.save(target, overwrite, Some(progress))?;
                (recovery, Some(nbytes))
            }
        };
        let names = recovery.objects().iter().map(|object| object.name.clone());
        Ok(Recovery {
            verdict: recovery.verdict(),
            is_complete: recovery.is_complete(),
            tensors: names.collect(),
            nbytes,
        })
    })
}
