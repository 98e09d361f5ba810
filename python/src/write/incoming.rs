//! Values that Python gives to be written: arrays of any library, sparse ones, quantized groups.

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;
use zt::{Attributes, Buffer, Bytes, Coo, Csr, Elements, NewObject, ToObject};

use crate::read::tensor::Tensor;
use crate::share::dlpack::Imported;
use crate::share::dtype::{Row, numpy};
use crate::share::error::{Result, misuse};
use crate::share::memory::Strided;
use crate::write::quantized::QuantizedGroup;

/// An array of Python, of any strides and byte order.
pub(crate) struct Array {
    row: &'static Row,
    elements: Strided,
    is_big_endian: bool,
}

impl Array {
    /// An array of NumPy, anything with `__dlpack__`, or anything with a buffer.
    ///
    /// # Errors
    ///
    /// `TypeError` for all else, and for elements that files do not have.
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> Result<Self> {
        match Self::of(object)? {
            Some(array) => Ok(array),
            None => Err(PyTypeError::new_err(format!(
                "expected an array, not {}",
                object.get_type().fully_qualified_name()?
            ))),
        }
    }

    /// An array of NumPy whose buffer says all: of its own class, and of a type that buffers have.
    fn of_plain(object: &Bound<'_, PyAny>) -> Option<Self> {
        static ARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let py = object.py();
        // A process that has not imported NumPy has no array of it.
        let class = match ARRAY.get(py) {
            Some(class) => class,
            None if is_of(object, "numpy").ok()? => {
                let class = numpy(py).ok()?.getattr("ndarray").ok()?;
                ARRAY.get_or_init(py, || class.unbind())
            }
            None => return None,
        };
        if !object.get_type().is(class) {
            return None;
        }
        let buffer = PyUntypedBuffer::get(object).ok()?;
        let format = buffer.format();
        // PyO3 takes no buffer without dimensions.
        let row = Row::of_format(format, buffer.item_size()).filter(|_| buffer.dimensions() > 0)?;
        let is_big_endian = format.to_bytes().starts_with(b">");
        Self::of_buffer(buffer, row, is_big_endian).ok()
    }

    fn of(object: &Bound<'_, PyAny>) -> Result<Option<Self>> {
        if is_of(object, "numpy")? && object.hasattr("dtype")? {
            return Self::of_numpy(object).map(Some);
        }
        if object.hasattr("__dlpack__")? && object.hasattr("__dlpack_device__")? {
            let tensor = Imported::new(object)?;
            let row = tensor.row();
            let elements = Strided::of_dlpack(tensor);
            let elements =
                elements.ok_or_else(|| PyTypeError::new_err("the tensor is too large"))?;
            return Ok(Some(Array {
                row,
                elements,
                is_big_endian: false,
            }));
        }
        let Ok(buffer) = PyUntypedBuffer::get(object) else {
            return Ok(None);
        };
        let format = buffer.format().to_owned();
        let row = Row::of_format(&format, buffer.item_size());
        let row = row.ok_or_else(|| {
            PyTypeError::new_err(format!("no file has elements of the format {format:?}"))
        })?;
        Self::of_buffer(buffer, row, format.to_bytes().starts_with(b">")).map(Some)
    }

    fn of_numpy(array: &Bound<'_, PyAny>) -> Result<Self> {
        let dtype = array.getattr("dtype")?;
        let name: String = dtype.getattr("name")?.extract()?;
        let row = Row::named(&name).filter(|row| row.numpy == name);
        let row = row.ok_or_else(|| {
            PyTypeError::new_err(format!("no file has elements of the dtype {name}"))
        })?;
        if array.hasattr("mask")? && is_of(array, "numpy.ma")? {
            let text = "a masked array: pass its `data`, or `filled()`";
            return Err(PyTypeError::new_err(text));
        }
        let byte_order: String = dtype.getattr("byteorder")?.extract()?;
        let is_scalar = array.getattr("ndim")?.extract::<usize>()? == 0;
        let mut array = array.clone();
        if is_scalar {
            // PyO3 takes no buffer without dimensions.
            array = array.call_method1("reshape", (1,))?;
        }
        if row.is_ml {
            // NumPy lends elements of `ml_dtypes` under no format, so they are lent as integers.
            array = array.call_method1("view", (["uint8", "uint16"][row.item_len - 1],))?;
        }
        let mut taken = Self::of_buffer(PyUntypedBuffer::get(&array)?, row, byte_order == ">")?;
        if is_scalar {
            taken.elements.make_scalar();
        }
        Ok(taken)
    }

    fn of_buffer(buffer: PyUntypedBuffer, row: &'static Row, is_big_endian: bool) -> Result<Self> {
        match Strided::of_buffer(buffer) {
            Some(elements) if elements.item_len() == row.item_len => Ok(Array {
                row,
                elements,
                is_big_endian,
            }),
            _ => Err(PyTypeError::new_err(
                "the buffer is not an array of numbers",
            )),
        }
    }

    pub(crate) fn row(&self) -> &'static Row {
        self.row
    }

    pub(crate) fn shape(&self) -> Vec<u64> {
        self.elements.shape()
    }

    pub(crate) fn byte_len(&self) -> usize {
        self.elements.byte_len()
    }

    /// What two names of one array have in common: the memory, where it is written as it lies there.
    pub(crate) fn place(&self) -> Option<(usize, usize)> {
        self.elements.place().filter(|_| !self.is_big_endian)
    }

    /// Its bytes, where they lie in memory as files have them.
    pub(crate) fn lent(&self) -> Option<&[u8]> {
        self.place()?;
        match self.elements.bytes() {
            Ok(Bytes::Borrowed(bytes)) => Some(bytes),
            _ => None,
        }
    }

    /// Its elements as files have them: lent, or copied into order.
    pub(crate) fn elements(&self) -> zt::formats::Result<Elements<'_>> {
        let mut bytes = self.elements.bytes()?;
        let width = self.row.dtype.byte_len();
        if self.is_big_endian && width > 1 {
            let mut buffer = Buffer::try_from_slice(&bytes)?;
            buffer.chunks_exact_mut(width).for_each(<[u8]>::reverse);
            bytes = Bytes::Owned(buffer);
        }
        let elements = Elements::new(self.row.dtype, bytes);
        Ok(match self.row.logical_type() {
            Some(name) => elements.with_logical_type(name),
            None => elements,
        })
    }
}

/// A dense value.
impl ToObject for Array {
    fn to_object(&self) -> zt::formats::Result<NewObject<'_>> {
        Ok(NewObject {
            shape: self.shape().into(),
            format: "dense".into(),
            attributes: None,
            components: vec![("data".into(), self.elements()?)],
        })
    }
}

/// Whether the class of an object is defined in a module, or in one below it.
pub(crate) fn is_of(object: &Bound<'_, PyAny>, module: &str) -> Result<bool> {
    for class in object.get_type().mro() {
        let found = class.cast::<pyo3::types::PyType>()?.module()?;
        let found = found.to_str()?;
        if let Some(rest) = found.strip_prefix(module)
            && (rest.is_empty() || rest.starts_with('.'))
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A value to be written.
pub(crate) enum Incoming {
    Dense(Array),
    Csr {
        shape: [u64; 2],
        values: Array,
        indices: Array,
        indptr: Array,
    },
    Coo {
        shape: Vec<u64>,
        values: Array,
        coords: Array,
    },
    Group(Py<QuantizedGroup>),
    Tensor(Py<Tensor>),
}

impl Incoming {
    /// Takes whatever can be written.
    ///
    /// # Errors
    ///
    /// `TypeError` for what is no array.
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> Result<Self> {
        if let Some(array) = Array::of_plain(object) {
            return Ok(Incoming::Dense(array));
        }
        if let Ok(tensor) = object.cast::<Tensor>() {
            return Ok(Incoming::Tensor(tensor.clone().unbind()));
        }
        if let Ok(group) = object.cast::<QuantizedGroup>() {
            return Ok(Incoming::Group(group.clone().unbind()));
        }
        if crate::whole::torch::is_tensor(object)? {
            return crate::whole::torch::incoming(object);
        }
        if is_of(object, "scipy.sparse")? {
            return Self::of_scipy(object);
        }
        Array::new(object).map(Incoming::Dense)
    }

    /// `csr` and `coo` as they are, other formats as `csr`, which all of two dimensions turn into.
    fn of_scipy(object: &Bound<'_, PyAny>) -> Result<Self> {
        let format: String = object.getattr("format")?.extract()?;
        let shape: Vec<u64> = object.getattr("shape")?.extract()?;
        if format == "coo" {
            let coords = match object.hasattr("coords")? {
                true => object.getattr("coords")?,
                false => PyTuple::new(
                    object.py(),
                    [object.getattr("row")?, object.getattr("col")?],
                )?
                .into_any(),
            };
            return Ok(Incoming::Coo {
                shape,
                values: Array::new(&object.getattr("data")?)?,
                coords: Array::new(&numpy(object.py())?.call_method1("stack", (coords,))?)?,
            });
        }
        let csr = object.call_method0("tocsr")?;
        let csr = match csr.getattr("has_canonical_format")?.is_truthy()? {
            true => csr,
            false => {
                // In order, and each place once, as the format asks: in a copy.
                let copy = csr.call_method0("copy")?;
                copy.call_method0("sum_duplicates")?;
                copy
            }
        };
        let [rows, columns] = shape[..] else {
            let text = "a sparse array of one dimension: pass it as `coo`";
            return Err(misuse(object.py(), text));
        };
        Ok(Incoming::Csr {
            shape: [rows, columns],
            values: Array::new(&csr.getattr("data")?)?,
            indices: Array::new(&csr.getattr("indices")?)?,
            indptr: Array::new(&csr.getattr("indptr")?)?,
        })
    }

    /// The bytes that are to be written, for progress.
    pub(crate) fn byte_len(&self) -> u64 {
        let byte_len = match self {
            Incoming::Dense(array) => array.byte_len(),
            Incoming::Csr {
                values,
                indices,
                indptr,
                ..
            } => values.byte_len() + indices.byte_len() + indptr.byte_len(),
            Incoming::Coo { values, coords, .. } => values.byte_len() + coords.byte_len(),
            Incoming::Group(group) => group.get().byte_len(),
            // Its copy reports them.
            Incoming::Tensor(_) => 0,
        };
        byte_len as u64
    }

    /// Calls `write` with the object; `None` for a tensor of a file, which is copied otherwise.
    pub(crate) fn with_object<T>(
        &self,
        attributes: Option<Attributes>,
        write: impl FnOnce(&NewObject<'_>) -> zt::Result<T>,
    ) -> zt::Result<Option<T>> {
        let merged = |mut object: NewObject<'_>| {
            if let Some(attributes) = attributes {
                let all = object.attributes.get_or_insert_default();
                for (key, value) in attributes.iter() {
                    all.insert(key.clone(), value.clone());
                }
            }
            write(&object).map(Some)
        };
        match self {
            Incoming::Dense(array) => merged(array.to_object()?),
            Incoming::Csr {
                shape,
                values,
                indices,
                indptr,
            } => {
                let (values, indices) = (values.elements()?, indices.elements()?);
                let csr = Csr::from_indices(*shape, values, indices, indptr.elements()?)?;
                merged(csr.to_object()?)
            }
            Incoming::Coo {
                shape,
                values,
                coords,
            } => {
                let coo =
                    Coo::from_coords(shape.as_slice(), values.elements()?, coords.elements()?)?;
                merged(coo.to_object()?)
            }
            Incoming::Group(group) => merged(group.get().object()?),
            Incoming::Tensor(_) => Ok(None),
        }
    }
}
