//! `zt.Tensor`: one tensor of a file.

mod values;

use std::ffi::c_int;
use std::sync::Arc;

use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use values::index;
use zt::stats::{self, StatsOptions};
use zt::{DType, OwnedTensor, Signature, View as _};

use crate::read::component::Component;
use crate::read::open::Open;
use crate::read::{html, load};
use crate::share::error::{OrRaise, Result, misuse, no_pickling};
use crate::share::index::Index;
use crate::share::memory;
use crate::share::work::run;
use crate::share::{dlpack, value};

/// One tensor of a file. Its data is read when it is first needed.
///
/// ``numpy.asarray``, ``torch.from_dlpack``, ``jax.dlpack.from_dlpack`` and ``memoryview`` take a dense
/// one for an array.
#[pyclass(frozen, module = "zt", name = "Tensor", weakref)]
pub(crate) struct Tensor {
    open: Arc<Open>,
    tensor: OwnedTensor,
}

impl Tensor {
    pub(crate) fn new(open: Arc<Open>, tensor: OwnedTensor) -> Self {
        Tensor { open, tensor }
    }

    pub(crate) fn tensor(&self) -> zt::Tensor<'_> {
        self.tensor.tensor()
    }

    /// The engine's handle, for work on other threads.
    pub(crate) fn handle(&self) -> OwnedTensor {
        self.tensor.clone()
    }

    pub(crate) fn open(&self) -> &Arc<Open> {
        &self.open
    }

    /// Whether SciPy has arrays of its format.
    pub(crate) fn is_sparse(&self) -> bool {
        [zt::Csr::FORMAT, zt::Coo::FORMAT].contains(&self.tensor().format())
    }

    /// The type of its dense values; `None` if it has none.
    pub(crate) fn dense_type(&self) -> Option<(DType, Option<String>)> {
        let tensor = self.tensor();
        let registry = tensor_registry(&self.open);
        let format = registry.format(tensor.format())?;
        let (dtype, logical) = format.dense_type(&Signature::of(tensor.object()), registry)?;
        let logical = dtype.logical_type(logical.as_deref()).map(str::to_owned);
        Some((dtype, logical))
    }

    /// The number of bytes of its dense value in memory; `None` if it has none.
    pub(crate) fn dense_nbytes(&self) -> Option<u64> {
        let (dtype, logical) = self.dense_type()?;
        let value_len = tensor_registry(&self.open).value_len(dtype, logical.as_deref());
        let value_len = value_len.ok()??;
        zt::formats::dense_byte_len(self.tensor().shape(), value_len)
    }

    /// Whether a part of its values takes a short read: from a local file or memory, that has its bytes
    /// as they are stored.
    fn is_read_by_parts(&self) -> bool {
        self.open.is_near && self.tensor().file_spans().all(|span| span.is_some())
    }

    /// Whether it is stored as an array, compressed or not.
    pub(crate) fn is_dense(&self) -> bool {
        let format = self.tensor().format();
        format == "dense"
            || tensor_registry(&self.open)
                .format(format)
                .is_some_and(|format| format.is_for_compression())
    }

    /// The error of the engine as an exception, with the path of the file.
    pub(crate) fn raise<T>(&self, result: zt::Result<T>) -> Result<T> {
        result.map_err(|error| self.open.blame(error)).or_raise()
    }
}

fn tensor_registry(open: &Open) -> &zt::Registry {
    open.file().registry()
}

#[pymethods]
impl Tensor {
    /// Its name.
    #[getter]
    pub(crate) fn name(&self) -> &str {
        self.tensor.tensor().name()
    }

    /// Its dimensions, outermost first; ``()`` for a scalar.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.tensor().shape())
    }

    /// The number of its dimensions.
    #[getter]
    fn ndim(&self) -> usize {
        self.tensor().shape().len()
    }

    /// The number of its elements.
    #[getter]
    fn size(&self) -> Result<u64> {
        let count = self.tensor().element_count();
        count.ok_or_else(|| PyValueError::new_err("there are more than 2^64 elements"))
    }

    /// The type of its values, as ``zt ls`` names it: ``"f32"``, ``"bf16"``, ``"f8_e4m3fn"``,
    /// ``"complex64"``; ``"q4_1"`` or ``"4-bit"`` for quantized values. ``None`` if the file does not
    /// record it.
    #[getter]
    pub(crate) fn dtype(&self) -> Option<String> {
        self.tensor().value_type().map(String::from)
    }

    /// The type of its dense values: ``"f32"`` for quantized ones. Values of less than a byte are
    /// ``"f32"``, ``"i8"`` or ``"u8"``. ``None`` if it has no dense value.
    #[getter]
    fn dense_dtype(&self) -> Option<String> {
        let (dtype, logical) = self.dense_type()?;
        Some(logical.unwrap_or_else(|| dtype.as_str().to_owned()))
    }

    /// How its components make its value: ``"dense"``, ``"sparse_csr"``, ``"quantized_group"``, ...
    #[getter]
    fn format(&self) -> &str {
        self.tensor.tensor().format()
    }

    /// The attributes of the tensor, in a new dict.
    #[getter]
    fn attributes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        value::to_dict(py, self.tensor().attributes())
    }

    /// Its stored parts by role, such as ``"data"``, or ``"values"`` and ``"indices"``, in a new dict.
    #[getter]
    fn components<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyDict>> {
        let dict = PyDict::new(slf.py());
        for (role, _) in slf.get().tensor().components() {
            dict.set_item(role, Component::new(slf.clone().unbind(), role))?;
        }
        Ok(dict)
    }

    /// The number of bytes of its components, decoded, as ``zt ls`` shows it. A quantized tensor has fewer
    /// than its dense value. The bytes in the file may be compressed:
    /// :attr:`Component.stored_nbytes`.
    #[getter]
    pub(crate) fn nbytes(&self) -> Result<u64> {
        let mut sum = 0u64;
        for (role, _) in self.tensor().components() {
            sum = sum.saturating_add(self.raise(self.tensor().decoded_len(role))?);
        }
        Ok(sum)
    }

    /// Its values as an array of NumPy.
    ///
    /// If the file is mapped and has the values as NumPy needs them, the array is a read-only view of
    /// the map. Pages are then read from the disk when they are touched. Otherwise it is a writable
    /// copy. The first call compares the digest.
    ///
    /// Args:
    ///     copy: ``True`` for a copy, ``False`` for no copy, ``None`` for a copy if needed.
    ///     writable: whether the view of a map is writable. Writes stay in this process: other views of
    ///         the tensor show them, the file and other processes do not.
    ///
    /// Returns:
    ///     An array of the tensor's shape. bf16 and FP8 have dtypes of ``ml_dtypes``.
    ///
    /// Raises:
    ///     MisuseError: the tensor is sparse or quantized: see :meth:`dense`.
    ///     DigestMismatchError: its bytes have changed since they were written.
    ///     ValueError: ``copy=False``, but a copy is needed.
    #[pyo3(signature = (*, copy = None, writable = false))]
    fn numpy<'py>(
        &self,
        py: Python<'py>,
        copy: Option<bool>,
        writable: bool,
    ) -> Result<Bound<'py, PyAny>> {
        let mut array = self.array(py, copy)?;
        if writable {
            array.memory = array.memory.writable();
            if array.memory.is_readonly() {
                if copy == Some(false) {
                    let text = "the bytes are read-only: a writable array is a copy";
                    return Err(PyValueError::new_err(text));
                }
                array.memory = py.detach(|| array.memory.to_own()).or_raise()?;
            }
        }
        array.numpy(py)
    }

    /// Its dense values as an array of NumPy. A sparse tensor is filled in, and a quantized one is
    /// dequantized to f32. FP4 and FP6 are unpacked to f32, and integers of 4 and 2 bits to i8 or u8. A
    /// dense tensor gives the array of :meth:`numpy`.
    ///
    /// Raises:
    ///     UnsupportedError: its format has no dense value.
    fn dense<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        self.dense_array(py, None)?.numpy(py)
    }

    /// Its values as a tensor of torch. A sparse one keeps its layout, COO or CSR. A quantized one is
    /// dequantized.
    ///
    /// If the file is mapped and has the values as torch needs them, the tensor is a view of a private
    /// map. You may write to it: neither the file nor another process sees that. Otherwise it is a
    /// copy.
    ///
    /// Args:
    ///     device: its device. ``"meta"`` reads nothing. A copy to CUDA goes through pinned memory.
    ///     copy: as for :meth:`numpy`.
    ///
    /// Raises:
    ///     TypeError: torch has no dtype for the values.
    #[pyo3(signature = (device = None, copy = None))]
    fn torch<'py>(
        slf: &Bound<'py, Self>,
        device: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> Result<Bound<'py, PyAny>> {
        let module = slf.py().import("zt.torch._memory")?;
        module.getattr("to_torch")?.call1((slf, device, copy))
    }

    /// A sparse tensor as a ``csr_array`` or ``coo_array`` of SciPy. Its indices are checked.
    ///
    /// Raises:
    ///     MisuseError: the tensor is not sparse.
    ///     UnsupportedError: its values are bf16 or FP8, which SciPy does not have.
    pub(crate) fn scipy<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let format = self.tensor().format();
        let is_csr = format == zt::Csr::FORMAT;
        if !self.is_sparse() {
            let text = format!("{:?} is not sparse: its format is {format}", self.name());
            return Err(misuse(py, &text));
        }
        let (values, indices) = self.read(py, u64::MAX, move |tensor| {
            if is_csr {
                let csr = tensor.view::<zt::Csr<'_>>()?;
                let indices = vec![index(csr.indices())?, index(csr.indptr())?];
                return Ok((csr.values().clone().into_owned()?, indices));
            }
            let coo = tensor.view::<zt::Coo<'_>>()?;
            let axes = 0..tensor.shape().len();
            let axes = axes.map(|axis| index(coo.coords(axis).unwrap_or_default()));
            let axes = axes.collect::<zt::Result<Vec<_>>>()?;
            Ok((coo.values().clone().into_owned()?, axes))
        })?;
        let values = self.values(py, values)?;
        let indices = indices.into_iter().map(|array| array.numpy(py));
        let indices = indices.collect::<Result<Vec<_>>>()?;
        let keywords = PyDict::new(py);
        keywords.set_item("shape", self.shape(py)?)?;
        let sparse = py.import("scipy.sparse")?;
        if is_csr {
            let parts = PyTuple::new(py, [vec![values], indices].concat())?;
            return sparse.call_method("csr_array", (parts,), Some(&keywords));
        }
        let parts = (values, PyTuple::new(py, indices)?);
        sparse.call_method("coo_array", (parts,), Some(&keywords))
    }

    /// Reads its values into a writable array of the same shape and dtype.
    ///
    /// Args:
    ///     out: an array of NumPy, or anything with a writable buffer of as many bytes.
    ///
    /// Raises:
    ///     ValueError: `out` has another shape or dtype, or is read-only.
    fn read_into(slf: &Bound<'_, Self>, out: &Bound<'_, PyAny>) -> Result<()> {
        let targets = vec![(slf.clone().unbind(), out.clone())];
        load::read_into(slf.py(), targets, None, None)
    }

    /// A part of its dense values in memory of its own. The index obeys the rules of NumPy's basic
    /// indices.
    ///
    /// Only the bytes that the part needs are read and decoded, also of compressed, sparse and
    /// quantized tensors. Chunk digests verify a part of raw bytes: see :class:`Writer`. Without them
    /// it is not verified.
    ///
    /// Raises:
    ///     IndexError: the index does not fit the shape, or is no basic index.
    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyAny>> {
        let index = Index::new(key, self.tensor().shape())?;
        let array = self.part(py, &index)?.numpy(py)?;
        if index.is_scalar {
            return array.get_item(PyTuple::empty(py));
        }
        Ok(array)
    }

    fn __len__(&self) -> Result<usize> {
        let first = self.tensor().shape().first();
        let first = first.ok_or_else(|| PyTypeError::new_err("len() of unsized object"))?;
        usize::try_from(*first).map_err(|_| PyValueError::new_err("the dimension is too large"))
    }

    fn __bool__(&self) -> bool {
        true
    }

    /// For ``numpy.asarray``.
    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> Result<Bound<'py, PyAny>> {
        let array = self.array(py, copy)?.numpy(py)?;
        let Some(dtype) = dtype.filter(|dtype| !dtype.is_none()) else {
            return Ok(array);
        };
        if array.getattr("dtype")?.eq(dtype)? {
            return Ok(array);
        }
        if copy == Some(false) {
            return Err(PyValueError::new_err("another dtype takes a copy"));
        }
        array.call_method1("astype", (dtype,))
    }

    #[expect(unsafe_code, reason = "the signature of the buffer protocol")]
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> Result<()> {
        let array = slf.get().array(slf.py(), None);
        let array = array.map_err(|error| {
            let raised = PyBufferError::new_err(error.to_string());
            raised.set_cause(slf.py(), Some(error));
            raised
        })?;
        let Some(format) = array.row.format else {
            return Err(PyBufferError::new_err(format!(
                "the buffer protocol has no {}: use `numpy()`, or `components[\"data\"].numpy()` for bytes",
                array.row.name
            )));
        };
        let shape = array.shape.iter().map(|len| isize::try_from(*len));
        let shape = shape.collect::<std::result::Result<_, _>>();
        let shape = shape.map_err(|_| PyBufferError::new_err("the tensor is too large"))?;
        let item_len = array.row.item_len;
        // SAFETY: `view` comes from the protocol, and `__releasebuffer__` ends it.
        unsafe { memory::fill(view, flags, slf.into_any(), array.memory, shape, format, item_len) }
    }

    #[expect(unsafe_code, reason = "the signature of the buffer protocol")]
    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        // SAFETY: `__getbuffer__` filled it.
        unsafe { memory::release(view) };
    }

    /// For ``torch.from_dlpack`` and ``jax.dlpack.from_dlpack``. It has any dtype of DLPack, also bf16
    /// and FP8.
    #[pyo3(signature = (*, stream = None, max_version = None, dl_device = None, copy = None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> Result<Bound<'py, PyAny>> {
        if stream.is_some_and(|stream| !stream.is_none()) {
            return Err(PyBufferError::new_err("memory of the CPU has no streams"));
        }
        if dl_device.is_some_and(|device| device != dlpack::CPU) {
            return Err(PyBufferError::new_err("the tensor is in memory of the CPU"));
        }
        let array = self.array(py, copy).map_err(|error| match copy {
            Some(false) => PyBufferError::new_err(error.to_string()),
            _ => error,
        })?;
        dlpack::export(py, array, max_version, copy)
    }

    /// The device of DLPack: the CPU.
    fn __dlpack_device__(&self) -> (i32, i32) {
        dlpack::CPU
    }

    /// Its description, and its values if that takes a few short reads of a local file. The values of a
    /// large tensor are shortened, as NumPy does it.
    fn __repr__(slf: &Bound<'_, Self>) -> String {
        let this = slf.get();
        let tensor = this.tensor();
        let shape: Vec<String> = tensor.shape().iter().map(u64::to_string).collect();
        let format = match tensor.format() {
            "dense" => String::new(),
            format => format!(" format={format}"),
        };
        // A repr never raises.
        let values = || {
            if !this.is_read_by_parts() {
                return None;
            }
            let module = slf.py().import("zt._repr").ok()?;
            let values = module.call_method1("values", (slf,)).ok()?;
            values.extract::<Option<String>>().ok()?
        };
        let values = values().map_or(String::new(), |values| format!("\n{values}"));
        format!(
            "<zt.Tensor {:?} shape=[{}] dtype={}{format}{values}>",
            tensor.name(),
            shape.join(", "),
            this.dtype().as_deref().unwrap_or("none"),
        )
    }

    /// A row of a table, the figures of at most 256 KiB of the values and their histogram, for notebooks.
    fn _repr_html_(&self, py: Python<'_>) -> Result<String> {
        let table = html::table(&[html::row(self)?], 1);
        if !self.is_read_by_parts() {
            return Ok(table);
        }
        let tensor = self.tensor();
        let options = StatsOptions::new().sketches(1).sample(true);
        // A repr never raises.
        let figures =
            run(py, || stats::of_tensor(&tensor, &options)).map_or(String::new(), |found| {
                let is_sample = tensor.element_count() != Some(found.values.count);
                html::figures(&found, is_sample)
            });
        Ok(table + &figures)
    }

    fn __reduce__(&self) -> Result<()> {
        Err(no_pickling("a zt.Tensor"))
    }
}
