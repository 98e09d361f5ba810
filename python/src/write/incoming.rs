//! Values that are written: arrays of any library, sparse arrays, quantized groups, tensors of files.

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use zt::{Attributes, Coo, Csr, NewObject, ToObject};

use crate::read::tensor::Tensor;
use crate::share::dtype::numpy;
use crate::share::error::{Result, misuse};
use crate::share::torch;
use crate::write::array::LentArray;
use crate::write::packed::PackedArray;
use crate::write::quantized::QuantizedGroup;

/// A value to be written.
pub(crate) enum Incoming {
    Dense(LentArray),
    /// The shape; values, indices and index pointers.
    Csr([u64; 2], [LentArray; 3]),
    /// The shape; values and coordinates.
    Coo(Vec<u64>, [LentArray; 2]),
    Group(Py<QuantizedGroup>),
    /// Values of less than a byte.
    Packed(PackedArray),
    Tensor(Py<Tensor>),
}

impl Incoming {
    /// Takes any value that can be written.
    ///
    /// # Errors
    ///
    /// `TypeError` for an object that is no array.
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> Result<Self> {
        if let Some(array) = LentArray::of_plain(object) {
            return Ok(Incoming::Dense(array));
        }
        if let Some(packed) = PackedArray::of_numpy(object)? {
            return Ok(Incoming::Packed(packed));
        }
        if let Ok(tensor) = object.cast::<Tensor>() {
            return Ok(Incoming::Tensor(tensor.clone().unbind()));
        }
        if let Ok(group) = object.cast::<QuantizedGroup>() {
            return Ok(Incoming::Group(group.clone().unbind()));
        }
        if torch::is_tensor(object)? {
            return Self::of_torch(object);
        }
        if torch::is_of(object, "scipy.sparse")? {
            return Self::of_scipy(object);
        }
        LentArray::new(object).map(Incoming::Dense)
    }

    /// A tensor of torch: dense, or sparse in the layout COO or CSR.
    ///
    /// A tensor on the CPU is not copied. The elements of a strided tensor are put in order later.
    ///
    /// # Errors
    ///
    /// `MisuseError` for a tensor without data of its own, and for any other layout.
    fn of_torch(tensor: &Bound<'_, PyAny>) -> Result<Self> {
        let py = tensor.py();
        if tensor.hasattr("to_local")? {
            let text = "a DTensor is spread over ranks: save it with zt.torch.checkpoint, or save \
                        full_tensor()";
            return Err(misuse(py, text));
        }
        if tensor.getattr("is_meta")?.is_truthy()? {
            let text = "a tensor on the device 'meta' has no data to save";
            return Err(misuse(py, text));
        }
        if tensor.getattr("is_quantized")?.is_truthy()? {
            let text = "a quantized tensor of torch: save dequantize(), or a zt.QuantizedGroup";
            return Err(misuse(py, text));
        }
        let tensor = tensor.call_method0("detach")?.call_method0("cpu")?;
        if let Some(packed) = PackedArray::of_torch(&tensor)? {
            return Ok(Incoming::Packed(packed));
        }
        let layout = tensor.getattr("layout")?.str()?;
        match layout.to_str()? {
            "torch.strided" => plain(&tensor).map(Incoming::Dense),
            "torch.sparse_coo" => {
                if tensor.call_method0("dense_dim")?.extract::<usize>()? > 0 {
                    let text = "a hybrid sparse tensor, whose values are arrays: save to_dense()";
                    return Err(misuse(py, text));
                }
                let tensor = tensor.call_method0("coalesce")?;
                let values = plain(&tensor.call_method0("values")?)?;
                let coords = plain(&tensor.call_method0("indices")?)?;
                let shape = tensor.getattr("shape")?.extract()?;
                Ok(Incoming::Coo(shape, [values, coords]))
            }
            "torch.sparse_csr" => {
                let shape: Vec<u64> = tensor.getattr("shape")?.extract()?;
                let (&[rows, columns], 0) =
                    (shape.as_slice(), tensor.call_method0("dense_dim")?.extract()?)
                else {
                    let text = "a batch of sparse matrices, or one of blocks: save to_sparse_coo()";
                    return Err(misuse(py, text));
                };
                let values = plain(&tensor.call_method0("values")?)?;
                let indices = plain(&tensor.call_method0("col_indices")?)?;
                let indptr = plain(&tensor.call_method0("crow_indices")?)?;
                Ok(Incoming::Csr([rows, columns], [values, indices, indptr]))
            }
            layout => {
                let text = format!("the layout {layout} has no format: save to_sparse_csr()");
                Err(misuse(py, &text))
            }
        }
    }

    /// A sparse array of SciPy: `csr` and `coo` as they are, other formats converted to `csr`.
    fn of_scipy(object: &Bound<'_, PyAny>) -> Result<Self> {
        let format: String = object.getattr("format")?.extract()?;
        let shape: Vec<u64> = object.getattr("shape")?.extract()?;
        if format == "coo" {
            let coords = if object.hasattr("coords")? {
                object.getattr("coords")?
            } else {
                let axes = [object.getattr("row")?, object.getattr("col")?];
                PyTuple::new(object.py(), axes)?.into_any()
            };
            let values = LentArray::new(&object.getattr("data")?)?;
            let coords = numpy(object.py())?.call_method1("stack", (coords,))?;
            return Ok(Incoming::Coo(shape, [values, LentArray::new(&coords)?]));
        }
        let mut csr = object.call_method0("tocsr")?;
        if !csr.getattr("has_canonical_format")?.is_truthy()? {
            // The format takes indices in order, each once. The caller's array stays as it is.
            csr = csr.call_method0("copy")?;
            csr.call_method0("sum_duplicates")?;
        }
        let [rows, columns] = shape[..] else {
            let text = "a sparse array of one dimension: pass it as `coo`";
            return Err(misuse(object.py(), text));
        };
        let part = |name: &str| LentArray::new(&csr.getattr(name)?);
        let parts = [part("data")?, part("indices")?, part("indptr")?];
        Ok(Incoming::Csr([rows, columns], parts))
    }

    /// The bytes to write, for progress.
    pub(crate) fn byte_len(&self) -> u64 {
        let byte_len = match self {
            Incoming::Dense(array) => array.byte_len(),
            Incoming::Csr(_, parts) => parts.iter().map(LentArray::byte_len).sum(),
            Incoming::Coo(_, parts) => parts.iter().map(LentArray::byte_len).sum(),
            Incoming::Group(group) => group.get().byte_len(),
            Incoming::Packed(packed) => packed.byte_len(),
            // The copy reports its own.
            Incoming::Tensor(_) => 0,
        };
        byte_len as u64
    }

    /// Calls `write` with a copy of the object. `None` for a tensor of a file: the writer copies that.
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
            Incoming::Dense(array) => {
                let data = vec![("data", array.elements()?)];
                merged(NewObject::new(&array.shape(), "dense", None, data))
            }
            Incoming::Csr(shape, [values, indices, indptr]) => {
                let (values, indices) = (values.elements()?, indices.elements()?);
                let csr = Csr::from_indices(*shape, values, indices, indptr.elements()?)?;
                merged(csr.to_object()?)
            }
            Incoming::Coo(shape, [values, coords]) => {
                let (values, coords) = (values.elements()?, coords.elements()?);
                merged(Coo::from_coords(shape.as_slice(), values, coords)?.to_object()?)
            }
            Incoming::Group(group) => merged(group.get().object()?),
            Incoming::Packed(packed) => merged(packed.object()?),
            Incoming::Tensor(_) => Ok(None),
        }
    }
}

/// The values of a dense tensor. A lazy conjugation or sign is applied.
fn plain(tensor: &Bound<'_, PyAny>) -> Result<LentArray> {
    let tensor = tensor.call_method0("resolve_conj")?;
    LentArray::new(&tensor.call_method0("resolve_neg")?)
}
