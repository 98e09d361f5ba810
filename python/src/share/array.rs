//! An array in memory, on its way to Python.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;
use zt::{Dense, Elements};

use crate::share::dtype::{Row, numpy};
use crate::share::error::{OrRaise, Result, unsupported};
use crate::share::memory::Memory;

/// An array in memory: its bytes, the type of its elements, its shape.
pub(crate) struct Array {
    pub(crate) memory: Memory,
    pub(crate) row: &'static Row,
    pub(crate) shape: Vec<u64>,
}

impl Array {
    /// As an array of NumPy, without a copy.
    pub(crate) fn numpy<'py>(self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let memory = Bound::new(py, self.memory)?;
        view(&memory, 0, self.row, &self.shape)
    }

    /// An array that owns the memory of a dense value.
    pub(crate) fn of_dense(py: Python<'_>, dense: Dense<'static>) -> Result<Self> {
        let (shape, elements) = dense.into_elements();
        Self::of_elements(py, shape, elements)
    }

    pub(crate) fn of_elements(
        py: Python<'_>,
        shape: Vec<u64>,
        elements: Elements<'static>,
    ) -> Result<Self> {
        let row = Row::of(elements.dtype, elements.logical_type());
        let buffer = elements.bytes.into_owned().map_err(zt::Error::from).or_raise()?;
        let memory = Memory::of_buffer(buffer);
        fits(py, row, &shape, memory.byte_len())?;
        Ok(Array { memory, row, shape })
    }
}

/// The array of NumPy whose elements lie in `memory` from `offset` on.
pub(crate) fn view<'py>(
    memory: &Bound<'py, Memory>,
    offset: usize,
    row: &Row,
    shape: &[u64],
) -> Result<Bound<'py, PyAny>> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = memory.py();
    let class = CLASS.get_or_try_init(py, || numpy(py)?.getattr("ndarray").map(Bound::unbind))?;
    let shape = PyTuple::new(py, shape)?;
    let dtype = row.numpy_dtype(py)?;
    class.bind(py).call1((shape, dtype, memory, offset))
}

/// Checks that `byte_len` bytes are an array of this shape. Where arrays lack a logical type, a value
/// may be several elements, or half an element.
pub(crate) fn fits(py: Python<'_>, row: &Row, shape: &[u64], byte_len: usize) -> Result<()> {
    match zt::formats::dense_byte_len(shape, row.item_len as u64) {
        Some(expected) if expected == byte_len as u64 => Ok(()),
        _ => Err(unsupported(
            py,
            "arrays have no elements of this type: `components` gives them as they are stored",
        )),
    }
}
