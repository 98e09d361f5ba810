//! Attributes: values of CBOR as objects of Python, and back.

use pyo3::exceptions::{PyRecursionError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use zt::{Attributes, Value};

use crate::share::error::Result;

/// A new dict with the attributes.
pub(crate) fn to_dict<'py>(py: Python<'py>, map: &Attributes) -> Result<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (key, value) in map.iter() {
        let key = to_python(py, key)?;
        // Python refuses lists and dicts as keys, so their text is the key.
        let key = match key.hash() {
            Ok(_) => key,
            Err(_) => key.repr()?.into_any(),
        };
        dict.set_item(key, to_python(py, value)?)?;
    }
    Ok(dict)
}

fn to_python<'py>(py: Python<'py>, value: &Value) -> Result<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Unsigned(number) => number.into_pyobject(py)?.into_any(),
        Value::Negative(number) => (-1 - i128::from(*number)).into_pyobject(py)?.into_any(),
        Value::Bytes(bytes) => PyBytes::new(py, bytes).into_any(),
        Value::Text(text) => PyString::new(py, text).into_any(),
        Value::Array(items) => {
            let list = PyList::empty(py);
            for item in items.items() {
                list.append(to_python(py, &item)?)?;
            }
            list.into_any()
        }
        Value::Map(map) => to_dict(py, map)?.into_any(),
        Value::Tag(tag, inner) => match (tag, &**inner) {
            (2 | 3, Value::Bytes(bytes)) => {
                let int = py.get_type::<PyInt>();
                let number = int.call_method1("from_bytes", (PyBytes::new(py, bytes), "big"))?;
                match tag {
                    2 => number,
                    _ => number.neg()?.sub(1)?,
                }
            }
            _ => to_python(py, inner)?,
        },
        Value::Bool(truth) => PyBool::new(py, *truth).to_owned().into_any(),
        Value::Null | Value::Undefined => py.None().into_bound(py),
        Value::Simple(number) => number.into_pyobject(py)?.into_any(),
        Value::Float(number) => PyFloat::new(py, *number).into_any(),
    })
}

/// The attributes in a mapping with text keys.
///
/// # Errors
///
/// `TypeError` for a value that no file can hold, `ValueError` for an integer out of range.
pub(crate) fn from_mapping(mapping: &Bound<'_, PyAny>) -> Result<Attributes> {
    map_of(mapping, 0)
}

fn map_of(mapping: &Bound<'_, PyAny>, depth: u32) -> Result<Attributes> {
    let mut map = Attributes::new();
    let dict = PyDict::new(mapping.py());
    dict.update(mapping.cast()?)?;
    for (key, value) in dict {
        map.insert(from_python(&key, depth)?, from_python(&value, depth)?);
    }
    Ok(map)
}

fn from_python(object: &Bound<'_, PyAny>, depth: u32) -> Result<Value> {
    /// Readers refuse deeper values.
    const DEEPEST: u32 = 60;
    if depth > DEEPEST {
        return Err(PyRecursionError::new_err("attributes are nested too deeply"));
    }
    if object.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(truth) = object.cast::<PyBool>() {
        return Ok(Value::Bool(truth.is_true()));
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(Value::Text(text.to_str()?.to_owned()));
    }
    if let Ok(number) = object.cast::<PyFloat>() {
        return Ok(Value::Float(number.value()));
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Value::Bytes(bytes.as_bytes().to_vec()));
    }
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        let items = object.try_iter()?;
        let items = items.map(|item| from_python(&item?, depth + 1));
        return Ok(Value::array(items.collect::<Result<Vec<_>>>()?));
    }
    if object.is_instance_of::<PyDict>() {
        return Ok(Value::Map(map_of(object, depth + 1)?));
    }
    // Integers, also of NumPy.
    if object.hasattr("__index__")? {
        let number: i128 = object.call_method0("__index__")?.extract()?;
        let number = match u64::try_from(number) {
            Ok(number) => Some(Value::Unsigned(number)),
            Err(_) => u64::try_from(-1 - number).ok().map(Value::Negative),
        };
        return number.ok_or_else(|| PyValueError::new_err("an integer has more than 64 bits"));
    }
    if let Ok(number) = object.extract::<f64>() {
        return Ok(Value::Float(number));
    }
    Err(PyTypeError::new_err(format!(
        "attributes hold None, bool, int, float, str, bytes, list and dict, not {}",
        object.get_type().name()?
    )))
}

/// The members of a list or a tuple, or the object alone.
pub(crate) fn each<'py>(object: &Bound<'py, PyAny>) -> Result<Vec<Bound<'py, PyAny>>> {
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        return object.try_iter()?.collect();
    }
    Ok(vec![object.clone()])
}
