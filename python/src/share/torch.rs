//! Tensors of torch: how they are recognised, and how they become arrays of NumPy.

use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::share::dtype::Row;
use crate::share::error::{Result, misuse};

/// Whether the class of an object, or a base class, is defined in a module or below it.
pub(crate) fn is_of(object: &Bound<'_, PyAny>, module: &str) -> Result<bool> {
    for class in object.get_type().mro() {
        let found = class.cast::<PyType>()?.module()?;
        let found = found.to_str()?;
        if let Some(rest) = found.strip_prefix(module)
            && (rest.is_empty() || rest.starts_with('.'))
        {
            return Ok(true);
        }
    }
    Ok(false)
}

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
    // torch has no `numpy()` for these types, so it gives them as integers.
    let plain = ["uint8", "uint16"][row.item_len - 1];
    let plain = tensor.call_method1("view", (py.import("torch")?.getattr(plain)?,))?;
    plain.call_method0("numpy")?.call_method1("view", (row.numpy_dtype(py)?,))
}
