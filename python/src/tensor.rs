//! `zt.Tensor`: one tensor of a file.

use std::ffi::c_int;
use std::sync::Arc;

use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use zt::{Buffer, Bytes, DType, Elements, Encoding, OwnedTensor, Signature, View as _};

use crate::array::{Array, fits};
use crate::component::Component;
use crate::dtype::Row;
use crate::error::{OrRaise, Result, misuse, no_pickling, unsupported};
use crate::file::Open;
use crate::index::Index;
use crate::memory::{self, Memory};
use crate::work::{self, Watch};
use crate::{bulk, dlpack, html, value};

/// One tensor of a file. Nothing of its data is read until it is asked for.
///
/// It is an array in the eyes of ``numpy.asarray``, ``torch.from_dlpack``, ``jax.dlpack.from_dlpack`` and
/// ``memoryview``, if it is dense.
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

    /// Whether it is stored as an array, be it compressed.
    pub(crate) fn is_dense(&self) -> bool {
        let format = self.tensor().format();
        format == "dense"
            || tensor_registry(&self.open)
                .format(format)
                .is_some_and(|format| format.is_for_compression())
    }

    /// The error of the engine as an exception, with the path of the file.
    pub(crate) fn raise<T>(&self, result: zt::Result<T>) -> Result<T> {
        result
            .map_err(|error| self.open.input.blame(error))
            .or_raise()
    }

    /// Short or long work of the engine on this tensor, with the interpreter detached. Ctrl-C ends the
    /// wait for long work.
    fn read<T: Send + 'static>(
        &self,
        py: Python<'_>,
        byte_len: u64,
        work: impl FnOnce(zt::Tensor<'_>) -> zt::Result<T> + Send + 'static,
    ) -> Result<T> {
        /// Fewer bytes are read by the thread that asks: waking others takes longer.
        const SMALL: u64 = 1 << 20;
        let (tensor, open) = (self.tensor.clone(), Arc::clone(&self.open));
        let blamed = move || work(tensor.tensor()).map_err(|error| open.input.blame(error));
        match byte_len <= SMALL && self.tensor().format() == "dense" {
            true => py.detach(blamed).or_raise(),
            false => work::run_apart(py, blamed),
        }
    }

    /// Its array, in a map, in lent memory, or in memory of its own.
    pub(crate) fn array(&self, py: Python<'_>, copy: Option<bool>) -> Result<Array> {
        let tensor = self.tensor();
        if !self.is_dense() {
            let text = format!(
                "{:?} is a tensor of the format {}: `dense()` gives its values, `components` what is stored",
                tensor.name(),
                tensor.format()
            );
            return Err(misuse(py, &text));
        }
        if let Some(fault) = tensor.fault() {
            return self.raise(Err(fault.clone()));
        }
        if copy != Some(true)
            && tensor.format() == "dense"
            && let Some(memory) = self.view(py, "data")?
        {
            let row = self.row("data")?;
            fits(py, row, tensor.shape(), memory.byte_len())?;
            let shape = tensor.shape().to_vec();
            return Ok(Array { memory, row, shape });
        }
        if copy == Some(false) {
            return Err(PyValueError::new_err(format!(
                "{:?} cannot be used where it is: it is compressed, big-endian, not aligned, bool, or the \
                 file is not mapped",
                tensor.name()
            )));
        }
        if tensor.format() != "dense" {
            return self.dense_array(py);
        }
        self.owned("data", py, tensor.shape().to_vec())
    }

    /// The values of a sparse tensor.
    fn values<'py>(&self, py: Python<'py>, values: Elements<'static>) -> Result<Bound<'py, PyAny>> {
        let row = Row::of(values.dtype, values.logical_type());
        if row.is_ml {
            let text = format!(
                "{:?} has values of {}, which SciPy does not have",
                self.name(),
                row.name
            );
            return Err(unsupported(py, &text));
        }
        let count = (values.bytes.len() / row.item_len) as u64;
        Array::of_elements(py, vec![count], values)?.numpy(py)
    }

    /// The dense value, computed.
    pub(crate) fn dense_array(&self, py: Python<'_>) -> Result<Array> {
        let dense = self.read(py, u64::MAX, |tensor| tensor.to_dense())?;
        Array::of_dense(py, dense)
    }

    /// A part of the dense value.
    pub(crate) fn part(&self, py: Python<'_>, index: &Index) -> Result<Array> {
        let len = index
            .shape
            .iter()
            .fold(8u64, |len, dimension| len.saturating_mul(*dimension));
        let slices = index.slices.clone();
        let dense = self.read(py, len, move |tensor| tensor.slice(&slices))?;
        let mut array = Array::of_dense(py, dense)?;
        array.shape.clone_from(&index.shape);
        Ok(array)
    }

    /// The type of the elements of a component.
    pub(crate) fn row(&self, role: &str) -> Result<&'static Row> {
        let component = self.raise(self.tensor().component(role))?;
        let dtype = component.dtype.unwrap_or(DType::U8);
        Ok(Row::of(dtype, component.logical_type.as_deref()))
    }

    /// A component in memory of its own.
    pub(crate) fn owned(&self, role: &str, py: Python<'_>, shape: Vec<u64>) -> Result<Array> {
        let byte_len = self.raise(self.tensor().component(role))?.blob.decoded_len;
        let elements = match byte_len {
            Some(byte_len) if byte_len > LARGE => self.read_large(py, role)?,
            _ => {
                let role = role.to_owned();
                self.read(py, byte_len.unwrap_or(u64::MAX), move |tensor| {
                    let elements = tensor.elements(&role)?;
                    check_bools(&tensor, &elements)?;
                    Ok(elements.into_owned()?)
                })?
            }
        };
        Array::of_elements(py, shape, elements)
    }

    /// A component of many bytes, so that Ctrl-C ends it.
    fn read_large(&self, py: Python<'_>, role: &str) -> Result<Elements<'static>> {
        Watch::default().run(py, |progress| {
            let tensor = self.tensor();
            let read = || {
                let mut buffer = Buffer::try_zeroed(tensor.decoded_len(role)?)?;
                let wanted = vec![(tensor, role, &mut *buffer)];
                for result in self.open.file().read_many_into_with(wanted, progress) {
                    result?;
                }
                let component = tensor.component(role)?;
                let mut elements = Elements::new(component.dtype.unwrap_or(DType::U8), buffer);
                elements.logical_type = component.logical_type.clone();
                check_bools(&tensor, &elements)?;
                Ok(elements)
            };
            read().map_err(|error| self.open.input.blame(error))
        })
    }

    /// The bytes of a component where they are, verified; `None` if only a copy can be used.
    pub(crate) fn view(&self, py: Python<'_>, role: &str) -> Result<Option<Memory>> {
        let tensor = self.tensor();
        let component = self.raise(tensor.component(role))?;
        let dtype = component.dtype.unwrap_or(DType::U8);
        let is_plain = component.blob.encoding == Encoding::Raw
            && component.byte_order == zt::ByteOrder::Little
            // A byte of 2 is no bool, and what NumPy does with one is undefined.
            && dtype != DType::Bool
            && cfg!(target_endian = "little");
        if !is_plain {
            return Ok(None);
        }
        let place = self.raise(tensor.stored_in(role))?;
        let mapped = place.and_then(|(file, span)| self.open.mapped(file, span));
        let memory = match mapped {
            Some(memory) => {
                if !memory.is_aligned_to(dtype.byte_len()) {
                    return Ok(None);
                }
                // By position: pages of the map may have been written to.
                let (byte_len, role) = (component.blob.span.byte_len(), role.to_owned());
                self.read(py, byte_len, move |tensor| tensor.verify(&role))?;
                memory
            }
            None if place.is_some() => return Ok(None),
            None => {
                let (byte_len, role) = (component.blob.span.byte_len(), role.to_owned());
                let open = Arc::clone(&self.open);
                let lent = self.read(py, byte_len, move |tensor| match tensor.bytes(&role)? {
                    Bytes::Borrowed(bytes) => Ok(Ok(Memory::lent(&open, bytes))),
                    Bytes::Owned(buffer) => Ok(Err(buffer)),
                })?;
                match lent {
                    Ok(memory) if memory.is_aligned_to(dtype.byte_len()) => memory,
                    Ok(_) => return Ok(None),
                    Err(buffer) => Memory::of_buffer(buffer),
                }
            }
        };
        Ok(Some(memory))
    }
}

/// Reading so many bytes takes long enough for somebody to press Ctrl-C.
const LARGE: u64 = 32 << 20;

fn check_bools(tensor: &zt::Tensor<'_>, elements: &Elements<'_>) -> zt::Result<()> {
    if elements.dtype != DType::Bool {
        return Ok(());
    }
    let checked = zt::formats::check_bools(&elements.bytes);
    checked.map_err(|error| zt::Error::from(error).with_object(tensor.name()))
}

/// Indices as the 64-bit integers that SciPy takes.
fn index(indices: &[u64]) -> zt::Result<Array> {
    let elements = Elements::from(indices).into_owned()?;
    Ok(Array {
        shape: vec![indices.len() as u64],
        memory: Memory::of_buffer(elements.bytes.into_owned()?),
        // No index is larger than its dimension, and no dimension in memory than 2^63.
        row: Row::of(DType::I64, None),
    })
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

    /// The type of its values, as files name it: ``"f32"``, ``"bf16"``, ``"f8_e4m3fn"``, ``"complex64"``.
    /// That of its dense values, if it is sparse or quantized; ``None`` if it has none.
    #[getter]
    pub(crate) fn dtype(&self) -> Option<String> {
        let (dtype, logical) = self.dense_type()?;
        Some(logical.unwrap_or_else(|| dtype.as_str().to_owned()))
    }

    /// How its components make up its value: ``"dense"``, ``"sparse_csr"``, ``"quantized_group"``, ...
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

    /// The bytes of its values in memory: those of its dense value, or of all its components if it has
    /// none.
    #[getter]
    pub(crate) fn nbytes(&self) -> Result<u64> {
        let tensor = self.tensor();
        if let Some((dtype, logical)) = self.dense_type() {
            let registry = tensor_registry(&self.open);
            let value_len = registry.value_len(dtype, logical.as_deref());
            let value_len = value_len.ok().flatten().unwrap_or(dtype.byte_len() as u64);
            if let Some(byte_len) = zt::formats::dense_byte_len(tensor.shape(), value_len) {
                return Ok(byte_len);
            }
        }
        let mut sum = 0u64;
        for (role, _) in tensor.components() {
            sum = sum.saturating_add(self.raise(tensor.decoded_len(role))?);
        }
        Ok(sum)
    }

    /// Its values as an array of NumPy.
    ///
    /// Where the file is mapped and has them as they are, the array is a read-only view of the map: pages
    /// are read from the disk when they are touched. Otherwise it is a writable copy. Its digest is
    /// compared at the first call.
    ///
    /// Args:
    ///     copy: ``True`` for a copy, ``False`` for no copy, ``None`` for a copy if needed.
    ///     writable: whether the view of a map is writable. What is written stays in this process: other
    ///         views of the tensor show it, the file and other processes do not.
    ///
    /// Returns:
    ///     An array of the tensor's shape. bf16 and FP8 have dtypes of ``ml_dtypes``.
    ///
    /// Raises:
    ///     MisuseError: the tensor is sparse or quantized: see :meth:`dense`.
    ///     DigestMismatchError: its bytes are not those that were written.
    ///     ValueError: ``copy=False``, and it has to be copied.
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

    /// Its dense values as an array of NumPy: a sparse tensor filled in, a quantized one dequantized to
    /// f32. Of a dense tensor, as :meth:`numpy`.
    ///
    /// Raises:
    ///     UnsupportedError: its format has no dense value.
    fn dense<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        match self.is_dense() {
            true => self.array(py, None)?.numpy(py),
            false => self.dense_array(py)?.numpy(py),
        }
    }

    /// Its values as a tensor of torch: a sparse one in its layout, COO or CSR, a quantized one dequantized.
    ///
    /// Where the file is mapped and has the values as they are, the tensor is a view of a private map.
    /// It may be written to, and neither the file nor another process sees that. Otherwise it is a copy.
    ///
    /// Args:
    ///     device: where it goes. ``"meta"`` reads nothing; to CUDA it is copied through pinned memory.
    ///     copy: as of :meth:`numpy`.
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

    /// A sparse tensor as a sparse array of SciPy: ``csr_array`` or ``coo_array``. Its indices are checked.
    ///
    /// Raises:
    ///     MisuseError: the tensor is not sparse.
    ///     UnsupportedError: its values are bf16 or FP8, which SciPy does not have.
    pub(crate) fn scipy<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let sparse = |name: &str| py.import("scipy.sparse")?.getattr(name);
        let keywords = PyDict::new(py);
        keywords.set_item("shape", self.shape(py)?)?;
        let format = self.tensor().format();
        if format == zt::Csr::FORMAT {
            let csr = self.read(py, u64::MAX, |tensor| {
                let csr = tensor.view::<zt::Csr<'_>>()?;
                Ok((
                    csr.values().clone().into_owned()?,
                    index(csr.indices())?,
                    index(csr.indptr())?,
                ))
            })?;
            let (values, indices, indptr) = csr;
            let parts = (
                self.values(py, values)?,
                indices.numpy(py)?,
                indptr.numpy(py)?,
            );
            return sparse("csr_array")?.call((parts,), Some(&keywords));
        }
        if format != zt::Coo::FORMAT {
            let text = format!("{:?} is not sparse: its format is {format}", self.name());
            return Err(misuse(py, &text));
        }
        let ndim = self.tensor().shape().len();
        let (values, coords) = self.read(py, u64::MAX, move |tensor| {
            let coo = tensor.view::<zt::Coo<'_>>()?;
            let axes = (0..ndim).map(|axis| index(coo.coords(axis).unwrap_or_default()));
            Ok((
                coo.values().clone().into_owned()?,
                axes.collect::<zt::Result<Vec<_>>>()?,
            ))
        })?;
        let axes = coords
            .into_iter()
            .map(|axis| axis.numpy(py))
            .collect::<Result<Vec<_>>>()?;
        let parts = (self.values(py, values)?, PyTuple::new(py, axes)?);
        sparse("coo_array")?.call((parts,), Some(&keywords))
    }

    /// Reads its values into an array that is there: of the same shape and dtype, and writable.
    ///
    /// Args:
    ///     out: an array of NumPy, or anything with a writable buffer of as many bytes.
    ///
    /// Raises:
    ///     ValueError: `out` has another shape or dtype, or is read-only.
    fn read_into(slf: &Bound<'_, Self>, out: &Bound<'_, PyAny>) -> Result<()> {
        let targets = vec![(slf.clone().unbind(), out.clone())];
        bulk::read_into(slf.py(), targets, None, None)
    }

    /// A part of its dense values, by the rules of NumPy's basic indices, in memory of its own.
    ///
    /// Only what the part needs is read and decoded, also of compressed, sparse and quantized tensors. Digests
    /// cover whole components, so they are not compared.
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
        match index.is_scalar {
            true => array.get_item(PyTuple::empty(py)),
            false => Ok(array),
        }
    }

    fn __len__(&self) -> Result<usize> {
        let first = self.tensor().shape().first();
        let first = first.ok_or_else(|| PyTypeError::new_err("len() of unsized object"))?;
        usize::try_from(*first).map_err(|_| PyValueError::new_err("the dimension is too large"))
    }

    fn __bool__(&self) -> bool {
        true
    }

    /// What ``numpy.asarray`` asks for.
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
        // SAFETY: `view` is what the protocol gave, and `__releasebuffer__` ends it.
        unsafe {
            memory::fill(
                view,
                flags,
                slf.into_any(),
                array.memory,
                shape,
                format,
                item_len,
            )
        }
    }

    #[expect(unsafe_code, reason = "the signature of the buffer protocol")]
    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        // SAFETY: `__getbuffer__` filled it.
        unsafe { memory::release(view) };
    }

    /// What ``torch.from_dlpack`` and ``jax.dlpack.from_dlpack`` ask for. Any dtype that DLPack has, bf16
    /// and FP8 too.
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

    fn __repr__(&self) -> String {
        let tensor = self.tensor();
        let shape: Vec<String> = tensor.shape().iter().map(u64::to_string).collect();
        let format = match tensor.format() {
            "dense" => String::new(),
            format => format!(" format={format}"),
        };
        format!(
            "<zt.Tensor {:?} shape=[{}] dtype={}{format}>",
            tensor.name(),
            shape.join(", "),
            self.dtype().as_deref().unwrap_or("none"),
        )
    }

    /// A row of a table, for notebooks.
    fn _repr_html_(&self) -> Result<String> {
        Ok(html::table(&[html::row(self)?], 1))
    }

    fn __reduce__(&self) -> Result<()> {
        Err(no_pickling("a zt.Tensor"))
    }
}
