//! Tensors of torch: as values to be written, and as what the module `zt.torch` makes of a file's.
//!
//! Memory goes both ways by DLPack. torch has no read-only tensors, so it gets capsules without a
//! version: pages of a private map, or a copy of what belongs to somebody else.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::read::component::Component;
use crate::read::load::{Loaded, Slot, Value};
use crate::read::tensor::Tensor;
use crate::share::array::Array;
use crate::share::dlpack;
use crate::share::dtype::Row;
use crate::share::error::{Result, misuse};
use crate::share::index::Index;
use crate::write::incoming::{self, Incoming, is_of};

/// Whether an object is a tensor of torch.
pub(crate) fn is_tensor(object: &Bound<'_, PyAny>) -> Result<bool> {
    Ok(is_of(object, "torch")? && object.hasattr("layout")?)
}

/// A tensor on the CPU as an array of NumPy over the same memory.
///
/// # Errors
///
/// `MisuseError` for a tensor on another device, or with elements that files do not have.
pub(crate) fn numpy_of<'py>(tensor: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
    let py = tensor.py();
    let dtype = tensor.getattr("dtype")?.str()?;
    let row = dtype.to_str()?.strip_prefix("torch.").and_then(Row::named);
    let is_cpu = tensor.getattr("is_cpu")?.is_truthy()?;
    let (Some(row), true) = (row, is_cpu) else {
        let text = "a tensor that is read into is on the CPU, and of a dtype that files have";
        return Err(misuse(py, text));
    };
    let tensor = tensor.call_method0("detach")?;
    if !row.is_ml {
        return tensor.call_method0("numpy");
    }
    // NumPy takes elements of `ml_dtypes` from torch as integers alone.
    let plain = ["uint8", "uint16"][row.item_len - 1];
    let plain = tensor.call_method1("view", (py.import("torch")?.getattr(plain)?,))?;
    plain
        .call_method0("numpy")?
        .call_method1("view", (row.numpy_dtype(py)?,))
}

/// A value to be written: dense, or sparse in the layouts COO and CSR.
///
/// Nothing is copied where it is on the CPU. Elements of a strided tensor are put in order later.
///
/// # Errors
///
/// `MisuseError` for a tensor without data of its own, and for other layouts.
pub(crate) fn incoming(tensor: &Bound<'_, PyAny>) -> Result<Incoming> {
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
    let layout = tensor.getattr("layout")?.str()?;
    match layout.to_str()? {
        "torch.strided" => plain(&tensor).map(Incoming::Dense),
        "torch.sparse_coo" => {
            if tensor.call_method0("dense_dim")?.extract::<usize>()? > 0 {
                let text = "a hybrid sparse tensor, whose values are arrays: save to_dense()";
                return Err(misuse(py, text));
            }
            let tensor = tensor.call_method0("coalesce")?;
            Ok(Incoming::Coo {
                shape: tensor.getattr("shape")?.extract()?,
                values: plain(&tensor.call_method0("values")?)?,
                coords: plain(&tensor.call_method0("indices")?)?,
            })
        }
        "torch.sparse_csr" => {
            let shape: Vec<u64> = tensor.getattr("shape")?.extract()?;
            let (&[rows, columns], 0) = (
                shape.as_slice(),
                tensor.call_method0("dense_dim")?.extract()?,
            ) else {
                let text = "a batch of sparse matrices, or one of blocks: save to_sparse_coo()";
                return Err(misuse(py, text));
            };
            Ok(Incoming::Csr {
                shape: [rows, columns],
                values: plain(&tensor.call_method0("values")?)?,
                indices: plain(&tensor.call_method0("col_indices")?)?,
                indptr: plain(&tensor.call_method0("crow_indices")?)?,
            })
        }
        layout => {
            let text = format!("the layout {layout} has no format: save to_sparse_csr()");
            Err(misuse(py, &text))
        }
    }
}

/// The values of a dense tensor, whose conjugation and sign are done.
fn plain(tensor: &Bound<'_, PyAny>) -> Result<incoming::Array> {
    let tensor = tensor.call_method0("resolve_conj")?;
    incoming::Array::new(&tensor.call_method0("resolve_neg")?)
}

/// The dense values of a tensor, as a capsule of DLPack.
#[pyfunction]
pub(crate) fn _dlpack<'py>(
    tensor: &Bound<'py, Tensor>,
    copy: Option<bool>,
) -> Result<Bound<'py, PyAny>> {
    let (py, tensor) = (tensor.py(), tensor.get());
    let array = match tensor.is_dense() {
        true => tensor.array(py, copy)?,
        false => tensor.dense_array(py)?,
    };
    dlpack::export(py, array, None, copy)
}

/// The dense values of tensors of one file, as capsules of DLPack. Those that are stored dense share one
/// piece of memory, and are read on all cores.
#[pyfunction]
pub(crate) fn _dlpack_many<'py>(
    py: Python<'py>,
    tensors: Vec<Bound<'py, Tensor>>,
    threads: Option<usize>,
    progress: Option<Bound<'py, PyAny>>,
) -> Result<Vec<Bound<'py, PyAny>>> {
    let tensors: Vec<&Tensor> = tensors.iter().map(Bound::get).collect();
    let Loaded { memory, values } = Loaded::read(py, &tensors, threads, progress)?;
    let mut capsules = Vec::with_capacity(tensors.len());
    for (tensor, value) in tensors.into_iter().zip(values) {
        let array = match value {
            Value::Slot(Slot {
                row,
                start,
                byte_len,
            }) => {
                let outside = || PyValueError::new_err("a tensor lies outside its memory");
                Array {
                    memory: memory.part(start, byte_len).ok_or_else(outside)?,
                    row,
                    shape: tensor.tensor().shape().to_vec(),
                }
            }
            Value::Decoded(array) => array,
            Value::Sparse => tensor.dense_array(py)?,
        };
        capsules.push(dlpack::export(py, array, None, None)?);
    }
    Ok(capsules)
}

/// A part of the dense values of a tensor, as a capsule of DLPack.
#[pyfunction]
pub(crate) fn _dlpack_part<'py>(
    tensor: &Bound<'py, Tensor>,
    key: &Bound<'py, PyAny>,
) -> Result<Bound<'py, PyAny>> {
    let (py, tensor) = (tensor.py(), tensor.get());
    let index = Index::new(key, tensor.tensor().shape())?;
    dlpack::export(py, tensor.part(py, &index)?, None, None)
}

/// The elements of a component, as a capsule of DLPack.
#[pyfunction]
pub(crate) fn _dlpack_component<'py>(
    component: &Bound<'py, Component>,
) -> Result<Bound<'py, PyAny>> {
    let py = component.py();
    dlpack::export(py, component.get().array(py)?, None, None)
}

/// Checks the contents of a tensor by the rules of its format: indices, above all.
#[pyfunction]
pub(crate) fn _check_data(tensor: &Bound<'_, Tensor>) -> Result<()> {
    let py = tensor.py();
    let tensor = tensor.get();
    let checked = py.detach(|| tensor.tensor().check_data());
    tensor.raise(checked)
}

/// Whether two tensors of one file have the same stored bytes in each component.
#[pyfunction]
pub(crate) fn _has_same_blobs(
    tensor: &Bound<'_, Tensor>,
    other: &Bound<'_, Tensor>,
) -> Result<bool> {
    let (tensor, other) = (tensor.get(), other.get());
    for (role, _) in tensor.tensor().components() {
        if !tensor.raise(tensor.tensor().has_blob_of(role, &other.tensor(), role))? {
            return Ok(false);
        }
    }
    Ok(true)
}
