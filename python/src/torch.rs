//! Tensors of torch: as values to be written, and as what the module `zt.torch` makes of a file's.
//!
//! Memory goes both ways by DLPack. torch has no read-only tensors, so it gets capsules without a
//! version: pages of a private map, or a copy of what belongs to somebody else.

use std::sync::Arc;

use pyo3::prelude::*;
use zt::{DType, Elements};

use crate::component::Component;
use crate::dlpack;
use crate::error::{Result, misuse};
use crate::incoming::{self, Incoming};
use crate::index::Index;
use crate::pool::pool;
use crate::tensor::{Array, Tensor};

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

/// The dense values of tensors, each in memory of its own, as capsules of DLPack. They are read on all
/// cores.
#[pyfunction]
pub(crate) fn _dlpack_many<'py>(
    py: Python<'py>,
    tensors: Vec<PyRef<'py, Tensor>>,
    threads: Option<usize>,
) -> Result<Vec<Bound<'py, PyAny>>> {
    let Some(first) = tensors.first() else {
        return Ok(Vec::new());
    };
    let open = Arc::clone(first.open());
    let plain: Vec<(zt::Tensor<'_>, &str)> = tensors
        .iter()
        .filter(|tensor| is_plain(tensor))
        .map(|tensor| (tensor.tensor(), "data"))
        .collect();
    let others: Vec<zt::Tensor<'_>> = tensors
        .iter()
        .filter(|tensor| !is_plain(tensor))
        .map(|tensor| tensor.tensor())
        .collect();
    let pool = pool(threads)?;
    let (plain, others) = py.detach(|| {
        pool.install(|| {
            (
                open.file().read_many(&plain),
                open.file().to_dense_many(&others),
            )
        })
    });
    let (mut plain, mut others) = (plain.into_iter(), others.into_iter());
    let mut capsules = Vec::with_capacity(tensors.len());
    for tensor in &tensors {
        let array = if is_plain(tensor) {
            let read = plain.next().unwrap_or_else(|| Err(unread()));
            let elements = tensor.raise(read.and_then(checked))?;
            Array::of_elements(py, tensor.tensor().shape().to_vec(), elements)?
        } else {
            let read = others.next().unwrap_or_else(|| Err(unread()));
            Array::of_dense(py, tensor.raise(read)?)?
        };
        capsules.push(dlpack::export(py, array, None, None)?);
    }
    Ok(capsules)
}

fn is_plain(tensor: &Tensor) -> bool {
    tensor.tensor().format() == "dense"
}

/// For results that are fewer than what was asked for.
fn unread() -> zt::Error {
    std::io::Error::other("a tensor was not read").into()
}

/// Refuses bools other than 0 and 1, which torch takes at their word.
fn checked(elements: Elements<'_>) -> zt::Result<Elements<'static>> {
    if elements.dtype == DType::Bool {
        zt::formats::check_bools(&elements.bytes)?;
    }
    Ok(elements.into_owned()?)
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
