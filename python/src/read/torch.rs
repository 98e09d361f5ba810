//! The functions of `zt.torch`: tensors of a file as capsules of DLPack.
//!
//! torch has no read-only tensors, so it gets capsules without a version: pages of a private map, or
//! a copy of bytes that belong to another object.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::read::component::Component;
use crate::read::load::{Loaded, Value};
use crate::read::tensor::Tensor;
use crate::share::array::Array;
use crate::share::dlpack;
use crate::share::error::Result;
use crate::share::index::Index;
use crate::share::work::PyProgress;

/// The dense values of a tensor, as a capsule of DLPack.
#[pyfunction]
pub(crate) fn _dlpack<'py>(
    tensor: &Bound<'py, Tensor>,
    copy: Option<bool>,
) -> Result<Bound<'py, PyAny>> {
    let (py, tensor) = (tensor.py(), tensor.get());
    dlpack::export(py, tensor.dense_array(py, copy)?, None, copy)
}

/// The dense values of tensors of one file, as capsules of DLPack. Tensors that are stored dense share
/// one piece of memory. All cores read them.
#[pyfunction]
pub(crate) fn _dlpack_many<'py>(
    py: Python<'py>,
    tensors: Vec<Bound<'py, Tensor>>,
    threads: Option<usize>,
    progress: PyProgress<'py>,
) -> Result<Vec<Bound<'py, PyAny>>> {
    let tensors: Vec<&Tensor> = tensors.iter().map(Bound::get).collect();
    let Loaded { memory, values } = Loaded::read(py, &tensors, threads, progress)?;
    let mut capsules = Vec::with_capacity(tensors.len());
    for (tensor, value) in tensors.into_iter().zip(values) {
        let array = match value {
            Value::Slot(slot) => {
                let part = memory.part(slot.start, slot.byte_len);
                let outside = || PyValueError::new_err("a tensor lies outside its memory");
                Array {
                    memory: part.ok_or_else(outside)?,
                    row: slot.row,
                    shape: tensor.tensor().shape().to_vec(),
                }
            }
            Value::Decoded(array) => array,
            Value::Sparse => tensor.dense_array(py, None)?,
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

/// Checks the contents of a tensor, such as indices, by the rules of its format.
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
