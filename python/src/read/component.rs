//! `zt.Component`: a stored part of a tensor.

use pyo3::prelude::*;

use crate::read::tensor::Tensor;
use crate::share::array::{Array, fits};
use crate::share::error::{OrRaise, Result, no_pickling};

/// A typed range of bytes of a tensor, such as the ``data`` of a dense one or the ``scales`` of a
/// quantized one.
#[pyclass(frozen, module = "zt", name = "Component")]
pub(crate) struct Component {
    tensor: Py<Tensor>,
    role: String,
}

impl Component {
    pub(crate) fn new(tensor: Py<Tensor>, role: &str) -> Self {
        Component { tensor, role: role.to_owned() }
    }

    fn stored(&self) -> Result<&zt::Component> {
        self.tensor.get().tensor().component(&self.role).or_raise()
    }

    /// Its elements: in a map, in lent memory, or in memory of their own.
    pub(crate) fn array(&self, py: Python<'_>) -> Result<Array> {
        let tensor = self.tensor.get();
        let row = tensor.row(&self.role)?;
        let shape = |byte_len: usize| {
            let shape = tensor.tensor().shape();
            if tensor.tensor().format() == "dense" && fits(py, row, shape, byte_len).is_ok() {
                return shape.to_vec();
            }
            vec![(byte_len / row.item_len) as u64]
        };
        if let Some(memory) = tensor.view(py, &self.role)? {
            let shape = shape(memory.byte_len());
            return Ok(Array { memory, row, shape });
        }
        let byte_len = self.nbytes(py)?;
        let shape = shape(usize::try_from(byte_len).unwrap_or(usize::MAX));
        tensor.owned(&self.role, py, shape)
    }
}

#[pymethods]
impl Component {
    /// Its role in the tensor.
    #[getter]
    fn role(&self) -> &str {
        &self.role
    }

    /// The type of its elements.
    #[getter]
    fn dtype(&self) -> Result<String> {
        let component = self.stored()?;
        let dtype = component.dtype.unwrap_or(zt::DType::U8);
        let logical = dtype.logical_type(component.logical_type.as_deref());
        Ok(logical.unwrap_or(dtype.as_str()).to_owned())
    }

    /// How its bytes are stored: ``"raw"`` or ``"zstd"``.
    #[getter]
    fn encoding(&self) -> Result<String> {
        Ok(self.stored()?.blob.encoding.as_str().to_owned())
    }

    /// The offset of its stored bytes in the file. ``None`` if the file does not have them, as in a
    /// deflated archive.
    #[getter]
    fn offset(&self) -> Option<u64> {
        let tensor = self.tensor.get().tensor();
        let mut places = tensor.components().zip(tensor.file_spans());
        let found = places.find(|((role, _), _)| *role == self.role);
        found.and_then(|(_, span)| Some(span?.offset()))
    }

    /// The number of its bytes, decoded.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> Result<u64> {
        let tensor = self.tensor.get();
        let len = py.detach(|| tensor.tensor().decoded_len(&self.role));
        tensor.raise(len)
    }

    /// The number of its bytes in the file.
    #[getter]
    fn stored_nbytes(&self) -> Result<u64> {
        Ok(self.stored()?.blob.span.byte_len())
    }

    /// The digest of its stored bytes, such as ``"crc32c:0x1a2b3c4d"``, or ``None``.
    #[getter]
    fn digest(&self) -> Result<Option<String>> {
        Ok(self.stored()?.blob.digest.as_ref().map(ToString::to_string))
    }

    /// Its elements as an array of one dimension. The ``data`` of a dense tensor has the tensor's
    /// shape. The array is a read-only view if the file is mapped and has the elements as NumPy needs
    /// them. Otherwise it is a writable copy.
    fn numpy<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        self.array(py)?.numpy(py)
    }

    fn __repr__(&self) -> Result<String> {
        let blob = &self.stored()?.blob;
        Ok(format!(
            "<zt.Component {:?} dtype={} encoding={} stored_nbytes={}>",
            self.role,
            self.dtype()?,
            blob.encoding.as_str(),
            blob.span.byte_len(),
        ))
    }

    fn __reduce__(&self) -> Result<()> {
        Err(no_pickling("a zt.Component"))
    }
}
