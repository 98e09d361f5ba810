//! `safe_open` and `_safe_open_handle`.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::framework::{Backend, Device, Framework};
use super::message::refuse;
use super::opened::Opened;
use super::slice::SafeSlice;
use crate::read::plan::Plan;
use crate::share::error::Result;

/// Opens a tensor file of any kind, without reading its tensors.
///
/// Args:
///     filename: the path. The bytes of the file decide its kind, not its name.
///     framework: ``"pt"``, ``"np"``, ``"flax"``, ``"tf"``, ``"mlx"``, ``"paddle"``, or their long names.
///     device: the device of the tensors. Only PyTorch and Paddle have others than ``"cpu"``.
///     backend: ``"mmap"``, or ``"pread"`` to read every tensor into memory of its own.
///
/// PyTorch tensors are views of a private map: writes stay in this process, and the file does not
/// change. Arrays of the other frameworks are copies.
///
/// Raises:
///     FileNotFoundError: there is no such file.
///     SafetensorError: the file is damaged, or an argument is wrong.
#[pyclass(frozen, subclass, module = "zt.safetensors", name = "safe_open")]
pub(crate) struct SafeOpen(RwLock<Option<Arc<Opened>>>);

impl SafeOpen {
    fn opened(&self) -> Result<Arc<Opened>> {
        let opened = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let opened = opened.as_ref().map(Arc::clone);
        opened.ok_or_else(|| refuse("File is closed"))
    }
}

#[pymethods]
impl SafeOpen {
    #[new]
    #[pyo3(
        signature = (filename, framework, device = Some(Device::Cpu), *, backend = Backend::Mmap),
        text_signature = "(filename, framework, device='cpu', *, backend='mmap')"
    )]
    fn new(
        py: Python<'_>,
        filename: PathBuf,
        framework: Framework,
        device: Option<Device>,
        backend: Backend,
    ) -> Result<Self> {
        let device = device.unwrap_or(Device::Cpu);
        let opened = Opened::new(py, &filename, framework, device, backend)?;
        Ok(SafeOpen(RwLock::new(Some(Arc::new(opened)))))
    }

    /// The metadata of the file: a dict of texts, or ``None``. For another kind of file, the attributes
    /// that are texts.
    fn metadata<'py>(&self, py: Python<'py>) -> Result<Option<Bound<'py, PyDict>>> {
        self.opened()?.metadata(py)
    }

    /// The names of the tensors, sorted, in a new list.
    fn keys(&self) -> Result<Vec<String>> {
        Ok(self.opened()?.names())
    }

    /// The names of the tensors in the order of their data, in a new list.
    fn offset_keys(&self) -> Result<Vec<String>> {
        let opened = self.opened()?;
        let names = opened.names_by_offset().into_iter();
        Ok(names.map(str::to_owned).collect())
    }

    /// A whole tensor.
    fn get_tensor<'py>(&self, py: Python<'py>, name: &str) -> Result<Bound<'py, PyAny>> {
        self.opened()?.tensor(py, name)
    }

    /// All tensors by name, in the order of their data.
    fn get_tensors<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        self.opened()?.tensors(py)
    }

    /// A tensor to index. Only the indexed part is read.
    fn get_slice(&self, name: &str) -> Result<SafeSlice> {
        SafeSlice::new(self.opened()?, name)
    }

    /// Tensors that a thread reads ahead of their use, as safetensors 0.9 has it: pairs of a name and a
    /// tensor in the order of the data, or one by ``take(name)``. At most 256 MiB of them wait to be taken.
    /// The handle can be used meanwhile, and asked for more of these.
    ///
    /// Args:
    ///     plan: a dict of names to indices; ``None`` as an index is the whole tensor. By default all.
    ///     device: the device of the tensors; by default that of the handle.
    ///     threads: how many threads read.
    #[pyo3(signature = (plan = None, *, device = None, threads = 8))]
    fn prefetch(
        &self,
        plan: Option<&Bound<'_, PyAny>>,
        device: Option<Device>,
        threads: usize,
    ) -> Result<Plan> {
        self.opened()?.prefetch(plan, device, threads)
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        _class: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) {
        let mut opened = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *opened = None;
    }

    fn __reduce__(&self) -> Result<()> {
        Err(crate::share::error::no_pickling("safe_open"))
    }
}

/// As ``safe_open``, for a file object with ``fileno`` and ``name``.
#[pyclass(frozen, extends = SafeOpen, module = "zt.safetensors", name = "_safe_open_handle")]
pub(crate) struct FileHandle;

#[pymethods]
impl FileHandle {
    #[new]
    #[pyo3(
        signature = (f, framework, device = Some(Device::Cpu), *, backend = Backend::Mmap),
        text_signature = "(f, framework, device='cpu', *, backend='mmap')"
    )]
    fn new(
        f: &Bound<'_, PyAny>,
        framework: Framework,
        device: Option<Device>,
        backend: Backend,
    ) -> Result<PyClassInitializer<Self>> {
        f.getattr("fileno")?;
        let filename = f.getattr("name")?.extract()?;
        let opened = SafeOpen::new(f.py(), filename, framework, device, backend)?;
        Ok(PyClassInitializer::from(opened).add_subclass(FileHandle))
    }
}
