//! An array that Python lends to be written.

use std::io;

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use zt::{Buffer, Elements};

use crate::share::dlpack::Imported;
use crate::share::dtype::{Row, numpy};
use crate::share::error::Result;
use crate::share::memory::Strided;
use crate::share::torch::is_of;

/// The bytes of an array that are copied, hashed and written at a time. They stay in a core's cache.
pub(crate) const PIECE: usize = 1 << 20;

/// An array of Python, of any strides and byte order.
pub(crate) struct LentArray {
    row: &'static Row,
    elements: Strided,
    is_big_endian: bool,
}

impl LentArray {
    /// An array of NumPy, anything with `__dlpack__`, or anything with a buffer.
    ///
    /// # Errors
    ///
    /// `TypeError` for any other object, and for elements that files do not have.
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> Result<Self> {
        match Self::of(object)? {
            Some(array) => Ok(array),
            None => Err(PyTypeError::new_err(format!(
                "expected an array, not {}",
                object.get_type().fully_qualified_name()?
            ))),
        }
    }

    /// An array of NumPy that its buffer describes wholly: it is no subclass, and the protocol has its
    /// type.
    pub(crate) fn of_plain(object: &Bound<'_, PyAny>) -> Option<Self> {
        static ARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let py = object.py();
        // A process without NumPy has no arrays of NumPy.
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
            let elements = tensor.into_array();
            let elements =
                elements.ok_or_else(|| PyTypeError::new_err("the tensor is too large"))?;
            return Ok(Some(LentArray { row, elements, is_big_endian: false }));
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
            // Buffers have no format for elements of `ml_dtypes`, so NumPy lends them as integers.
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
            Some(elements) if elements.item_len() == row.item_len => {
                Ok(LentArray { row, elements, is_big_endian })
            }
            _ => Err(PyTypeError::new_err("the buffer is not an array of numbers")),
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

    /// The address and the length of its memory, if it is written as it is. Two names of one array have
    /// the same.
    pub(crate) fn place(&self) -> Option<(usize, usize)> {
        self.elements.place().filter(|_| !self.is_big_endian)
    }

    /// Copies bytes of an array that has a place, from the byte `offset` on.
    ///
    /// # Errors
    ///
    /// The array is shorter, or has no place.
    pub(crate) fn read_at(&self, offset: usize, buf: &mut [u8]) -> io::Result<()> {
        self.elements.read_at(offset, buf)
    }

    /// Calls `take` with all its bytes in the order of files. Each is copied once. So `take` may hash a
    /// piece and write it, even if Python changes the array meanwhile.
    ///
    /// # Errors
    ///
    /// There is no memory for a copy; the errors of `take`.
    pub(crate) fn pieces(&self, mut take: impl FnMut(&[u8]) -> zt::Result<()>) -> zt::Result<()> {
        if self.place().is_none() {
            return take(&self.elements()?.bytes);
        }
        let mut rest = self.byte_len();
        let mut piece = Buffer::try_zeroed(rest.min(PIECE) as u64)?;
        while rest > 0 {
            let bytes = &mut piece[..rest.min(PIECE)];
            self.read_at(self.byte_len() - rest, bytes)?;
            take(bytes)?;
            rest -= bytes.len();
        }
        Ok(())
    }

    /// A copy of its elements in the order of files.
    pub(crate) fn elements(&self) -> zt::formats::Result<Elements<'static>> {
        let mut bytes = self.elements.to_buffer()?;
        let width = self.row.dtype.byte_len();
        if self.is_big_endian && width > 1 {
            bytes.chunks_exact_mut(width).for_each(<[u8]>::reverse);
        }
        let elements = Elements::new(self.row.dtype, bytes);
        Ok(match self.row.logical_type() {
            Some(name) => elements.with_logical_type(name),
            None => elements,
        })
    }
}
