//! `zt.open` and `zt.File`.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyList, PyString};
use zt::{FloatType, OpenOptions, Verify};
use zt_convert::{InputOptions, Logical, MlDtype};

use crate::read::open::{Open, is_near, open_with, patched, read_seal};
use crate::read::select::{Selection, none_left};
use crate::read::tensor::Tensor;
use crate::read::{html, load, report, verify};
use crate::share::error::{OrRaise, Result, misuse, no_pickling};
use crate::share::kinds::kinds;
use crate::share::value::{self, each};
use crate::share::warning;
use crate::share::work::PyProgress;

/// Opens a tensor file of any kind. Its bytes decide the kind, not its name.
///
/// Only the list of tensors is read, and nothing is executed: a PyTorch checkpoint is as safe as any
/// other file. The index of a sharded set, or its folder, opens the whole set. A folder with one tensor
/// file opens that.
///
/// Args:
///     source: a path; a URL, such as ``"s3://bucket/model.zt"``; ``"-"`` for stdin; bytes-like content,
///         which is not copied; or an object with ``seek`` and ``read``. With ``base``, also an open :class:`File`.
///     base: the file that the delta ``source`` changes: a :class:`File`, or any source. The call opens the
///         result, which reads what it needs of both. For deltas in a row, a list: the first base, then
///         the earlier deltas in their order. A wrong base is an error.
///     check: whether to compare the identities of the base and of the result with those in the delta. It
///         reads all values of both. Without it, slices read little, and a changed tensor is verified when it is read
///         as a whole; other tensors are not. Calls that take a whole file, such as :func:`convert`, check all the same.
///     mmap: whether arrays are views of a private map of the file, if its bytes fit NumPy. Otherwise
///         all arrays are copies. If another program truncates a mapped file, reading it kills the
///         process (SIGBUS). Putting a new file under the old name, as ``zt`` does, is safe.
///     verify: when digests are compared: ``"on_read"`` (the first full read), ``"always"``, ``"never"``.
///     strict: whether one faulty tensor refuses the whole file.
///     truncated: whether a file of safetensors, GGUF, npz or PyTorch whose end is missing opens with the
///         tensors that are whole. It has a warning of the code ``truncated``. ``file[name]``
///         raises the error of a tensor that is cut, and :func:`convert` needs ``skip_damaged``.
///     logical: whether a quantized checkpoint opens as the weights that its codes and scales mean, with the settings
///         beside it. They are computed when they are read. ``True`` gives the type of the dialect's own code, and
///         ``"f32"``, ``"bf16"`` or ``"f16"`` that type, rounded once.
///     ml_dtype: a type of ``ml_dtypes``, such as ``"bfloat16"`` or ``"int4"``, or a list of them: what
///         opaque elements of NumPy of its length are. NumPy saves such arrays as ``V1`` and ``V2``.
///     seal: a seal of ``zt seal``: a path, a URL or bytes. What is read is compared with it, and a wrong leaf of 1 MiB
///         is an error that names its tensor. ``source`` is then a path or a URL. Arrays are copies.
///     signature: a signature of ``zt sign``: a path, a URL or bytes. The seal must be the one that was signed.
///     key: the public key of the signature, in PEM or OpenSSH form: a path or bytes.
///     storage_options: the settings of the store of a URL, with the option names of the crate
///         ``object_store``:
///         ``{"aws_region": "eu-central-1"}``. Credentials come from the environment by default.
///
/// Returns:
///     A mapping of names to tensors.
///
/// Raises:
///     MissingFileError: there is no such file. It is a ``FileNotFoundError`` too.
///     MalformedError: the bytes are not a tensor file, or it is damaged.
///     WrongBaseError: ``base`` is another file, or a delta does not follow the one before it.
///     Exception: the file object raised it.
///
/// >>> import io, numpy, zt
/// >>> sink = io.BytesIO()
/// >>> with zt.Writer(sink) as writer:
/// ...     writer.add("weight", numpy.arange(6, dtype="f4").reshape(2, 3))
/// >>> file = zt.open(sink.getvalue())
/// >>> file["weight"].shape
/// (2, 3)
/// >>> file["weight"][:, 1]
/// array([1., 4.], dtype=float32)
#[pyfunction]
#[pyo3(signature = (
    source, *, base = None, check = true, mmap = true, verify = "on_read", strict = false,
    truncated = false, logical = None, ml_dtype = None, seal = None, signature = None,
    key = None, storage_options = None
))]
#[expect(clippy::too_many_arguments, reason = "the keywords of Python's call")]
pub(crate) fn open(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    base: Option<&Bound<'_, PyAny>>,
    check: bool,
    mmap: bool,
    verify: &str,
    strict: bool,
    truncated: bool,
    logical: Option<&Bound<'_, PyAny>>,
    ml_dtype: Option<&Bound<'_, PyAny>>,
    seal: Option<&Bound<'_, PyAny>>,
    signature: Option<&Bound<'_, PyAny>>,
    key: Option<&Bound<'_, PyAny>>,
    storage_options: Option<&Bound<'_, PyDict>>,
) -> Result<File> {
    let verify = match verify {
        "on_read" => Verify::OnRead,
        "always" => Verify::Always,
        "never" => Verify::Never,
        _ => {
            let text = format!("verify is {verify:?}: pass \"on_read\", \"always\" or \"never\"");
            return Err(misuse(py, &text));
        }
    };
    let mut options = InputOptions::new()
        .open(OpenOptions::new().verify(verify).strict(strict))
        .truncated(truncated);
    for name in ml_dtype.map(each).transpose()?.unwrap_or_default() {
        let name: String = name.extract()?;
        let known = MlDtype::from_name(&name);
        let unknown = || misuse(py, &format!("ml_dtypes has no {name:?} that files can have"));
        options.ml_dtypes.push(known.ok_or_else(unknown)?);
    }
    let signature = match (seal, signature, key) {
        (_, None, None) => None,
        (Some(_), Some(signature), Some(key)) => Some((signature, key)),
        _ => return Err(misuse(py, "signature, key and seal go together: pass all three")),
    };
    let seal = seal.map(|seal| read_seal(py, seal, signature, storage_options)).transpose()?;
    let logical = logical.map(|logical| logical_of(py, logical)).transpose()?.flatten();
    if let Some(base) = base {
        let delta = match source.cast::<File>() {
            Ok(file) => file.get().open()?.to_input(),
            Err(_) => open_with(py, source, &options, seal, storage_options)?,
        };
        let (mut result, patch) = patched(py, base, delta, check, storage_options)?;
        // A delta is of codes.
        if let Some(logical) = logical {
            result = py.detach(|| kinds().logical(result, logical)).or_raise()?;
        }
        let mut open = Open::new(result, mmap);
        open.patch = patch;
        return Ok(File::new(open));
    }
    options.logical = logical;
    let input = open_with(py, source, &options, seal, storage_options)?;
    let mut open = Open::new(input, mmap);
    open.is_near = is_near(source)?;
    Ok(File::new(open))
}

/// How quantized checkpoints open: `True`, `False`, or the type of the values.
fn logical_of(py: Python<'_>, logical: &Bound<'_, PyAny>) -> Result<Option<Logical>> {
    if let Ok(is_logical) = logical.extract::<bool>() {
        return Ok(is_logical.then(Logical::new));
    }
    let name: String = logical.extract()?;
    let float = FloatType::from_name(&name);
    let known = |it: &FloatType| [FloatType::F32, FloatType::BF16, FloatType::F16].contains(it);
    match float.filter(known) {
        Some(float) => Ok(Some(Logical::new().float(float))),
        None => {
            let text = format!("logical is {name:?}: pass True, \"f32\", \"bf16\" or \"f16\"");
            Err(misuse(py, &text))
        }
    }
}

/// An open tensor file: a mapping of the names of tensors to :class:`Tensor`. Made by :func:`open`.
///
/// Any number of threads may use it. Tensors and arrays stay valid when it is closed.
#[pyclass(frozen, module = "zt", name = "File", weakref)]
pub(crate) struct File(RwLock<Option<Arc<Open>>>);

impl File {
    pub(crate) fn new(open: Open) -> Self {
        File(RwLock::new(Some(Arc::new(open))))
    }

    /// The open file.
    ///
    /// # Errors
    ///
    /// `ValueError` after `close`.
    pub(crate) fn open(&self) -> Result<Arc<Open>> {
        let open = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let open = open.as_ref().map(Arc::clone);
        open.ok_or_else(|| PyValueError::new_err("the file is closed"))
    }
}

#[pymethods]
impl File {
    /// The kind of the file, such as ``"zt"``, ``"safetensors"`` or ``"gguf"``.
    #[getter]
    fn kind(&self) -> Result<&'static str> {
        Ok(self.open()?.file().kind().as_str())
    }

    /// The attributes of the file, in a new dict.
    #[getter]
    fn attributes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        let attributes = self.open()?.file().attributes().or_raise()?;
        value::to_dict(py, &attributes.unwrap_or_default())
    }

    /// Facts that are worth knowing and are no errors. Looks at the description of every tensor.
    #[getter]
    fn warnings<'py>(&self, py: Python<'py>) -> Result<Vec<Bound<'py, PyAny>>> {
        let open = self.open()?;
        let warnings = py.detach(|| open.file().warnings());
        warning::all(py, &warnings)
    }

    /// The path by which the file was opened; ``None`` for bytes and file objects.
    #[getter]
    fn path(&self) -> Result<Option<PathBuf>> {
        Ok(self.open()?.path().map(Path::to_owned))
    }

    /// The sum of the ``nbytes`` of all tensors, as ``zt ls`` shows it. Looks at the description of every
    /// tensor.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> Result<u64> {
        let open = self.open()?;
        Ok(py.detach(|| open.file().decoded_len()))
    }

    /// The length of the file in bytes; of a set, the sum of all its files.
    #[getter]
    fn stored_nbytes(&self) -> Result<u64> {
        Ok(self.open()?.file().byte_len())
    }

    /// Whether :meth:`close` was called.
    #[getter]
    fn closed(&self) -> bool {
        self.open().is_err()
    }

    /// Ends the use of the file. Its tensors and arrays stay valid. The system's file is closed with
    /// the last of them.
    fn close(&self) {
        let mut open = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *open = None;
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyAny>) {
        self.close();
    }

    fn __len__(&self) -> Result<usize> {
        Ok(self.open()?.file().len())
    }

    fn __bool__(&self) -> Result<bool> {
        Ok(!self.open()?.file().is_empty())
    }

    fn __contains__(&self, name: &Bound<'_, PyAny>) -> Result<bool> {
        let open = self.open()?;
        match name.cast::<PyString>() {
            Ok(name) => Ok(open.file().get(name.to_str()?).is_some()),
            Err(_) => Ok(false),
        }
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyIterator>> {
        let open = self.open()?;
        let names: Vec<&str> = open.file().names().collect();
        PyList::new(py, names)?.try_iter()
    }

    fn __getitem__(&self, name: &str) -> Result<Tensor> {
        let open = self.open()?;
        let tensor = open.tensor(name).or_raise()?;
        Ok(Tensor::new(open, tensor))
    }

    /// The tensor of that name, or ``default``.
    #[pyo3(signature = (name, default = None))]
    fn get(&self, py: Python<'_>, name: &str, default: Option<Py<PyAny>>) -> Result<Py<PyAny>> {
        match self.open()?.file().get(name) {
            Some(_) => Ok(Py::new(py, self.__getitem__(name)?)?.into_any()),
            None => Ok(default.unwrap_or_else(|| py.None())),
        }
    }

    /// The names, as a view.
    fn keys<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyAny>> {
        view(slf, "KeysView")
    }

    /// Pairs of names and tensors, as a view.
    fn items<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyAny>> {
        view(slf, "ItemsView")
    }

    /// The tensors, as a view.
    fn values<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyAny>> {
        view(slf, "ValuesView")
    }

    /// The file with a choice of its tensors, under new names. It reads nothing. ``zt.convert`` takes it as a
    /// source, so that a choice is for one source of several:
    /// ``zt.merge([base, zt.open(adapter).select(exclude="pooler.*")], target)``.
    ///
    /// Args:
    ///     include: a pattern, or a list of patterns: only tensors whose name matches one are taken. As in
    ///         ``fnmatch``, ``*`` is any text, ``?`` one character, and ``[a-z]`` a set.
    ///     exclude: as ``include``, for tensors to leave out.
    ///     rename: a dict of old names to new ones, or a function of the old name that returns the new one.
    ///
    /// Raises:
    ///     MisuseError: two tensors get one name, code ``duplicate-name``.
    ///     TensorNotFoundError: no tensor is left.
    #[pyo3(signature = (*, include = None, exclude = None, rename = None))]
    fn select(
        &self,
        py: Python<'_>,
        include: Option<&Bound<'_, PyAny>>,
        exclude: Option<&Bound<'_, PyAny>>,
        rename: Option<&Bound<'_, PyAny>>,
    ) -> Result<Self> {
        let open = self.open()?;
        let chosen = Selection::new(include, exclude, rename)?.choose(py, &open.to_input())?;
        if chosen.file().is_empty() {
            return Err(none_left());
        }
        Ok(File::new(open.with(chosen)))
    }

    /// Reads many tensors into existing arrays, on all cores, in the order of the file.
    ///
    /// Args:
    ///     out: a dict of names to writable arrays. Each has the shape and the dtype of its tensor.
    ///     threads: how many threads read; by default all cores, or ``ZT_NUM_THREADS``.
    ///     progress: called with the stored bytes since the last call. An exception from it ends the
    ///         work.
    ///
    /// Raises:
    ///     ValueError: an array has another shape or dtype, or is read-only. Then nothing is read.
    #[pyo3(signature = (out, *, threads = None, progress = None))]
    fn read_into<'py>(
        &self,
        py: Python<'py>,
        out: &Bound<'py, PyDict>,
        threads: Option<usize>,
        progress: PyProgress<'py>,
    ) -> Result<()> {
        let mut targets = Vec::with_capacity(out.len());
        for (name, array) in out {
            let tensor = self.__getitem__(name.cast::<PyString>()?.to_str()?)?;
            targets.push((Py::new(py, tensor)?, array));
        }
        load::read_into(py, targets, threads, progress)
    }

    /// Checks every tensor: :func:`verify`.
    #[pyo3(signature = (*, strict = false, threads = None, progress = None))]
    fn verify<'py>(
        slf: &Bound<'py, Self>,
        strict: bool,
        threads: Option<usize>,
        progress: PyProgress<'py>,
    ) -> Result<verify::Verification> {
        verify::verify(slf.py(), slf, strict, threads, progress, None)
    }

    /// Writes one HTML page that shows the model: :func:`report`.
    #[pyo3(signature = (path, *, detail = false, overwrite = false))]
    fn report(slf: &Bound<'_, Self>, path: PathBuf, detail: bool, overwrite: bool) -> Result<()> {
        let (py, file) = (slf.py(), slf.as_any());
        report::report(py, file, path, None, detail, false, overwrite, None, None, None)
    }

    /// A table of the first 50 tensors, for notebooks.
    fn _repr_html_(&self) -> Result<String> {
        let open = self.open()?;
        let mut rows = Vec::new();
        for name in open.file().names().take(html::MOST) {
            rows.push(match open.tensor(name) {
                Ok(tensor) => html::row(&Tensor::new(Arc::clone(&open), tensor))?,
                Err(error) => html::faulty(name, &error),
            });
        }
        let totals = html::totals(open.file());
        Ok(totals + &html::table(&rows, open.file().len()))
    }

    fn __repr__(&self) -> Result<String> {
        let Ok(open) = self.open() else {
            return Ok("<closed zt.File>".to_owned());
        };
        let path = open.path().map(|path| format!(" {:?}", path.display().to_string()));
        Ok(format!(
            "<zt.File{} kind={} tensors={} {}>",
            path.unwrap_or_default(),
            open.file().kind(),
            open.file().len(),
            html::human(open.file().byte_len()),
        ))
    }

    fn __reduce__(&self) -> Result<()> {
        Err(no_pickling("an open zt.File"))
    }
}

/// A view of the mapping, of a class of `collections.abc`.
fn view<'py>(file: &Bound<'py, File>, class: &str) -> Result<Bound<'py, PyAny>> {
    let module = file.py().import("collections.abc")?;
    module.getattr(class)?.call1((file,))
}
