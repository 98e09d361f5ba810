//! `TensorSpec`, `serialize`, `serialize_file`, `deserialize`.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyByteArray, PyBytes, PyDict};
use zt::foreign::AtomicFile;
use zt::formats::PackedType;
use zt::{Memory, Source};
use zt_convert::SAFETENSORS;
use zt_safetensors::{Dtype, Header, TensorInfo, layout};

use super::element::{Element, from_framework, known};
use super::message::{failed, refuse};
use crate::share::error::Result;
use crate::share::kinds::kinds;
use crate::share::memory::Addressed;

/// A tensor for `serialize` and `serialize_file`.
///
/// Args:
///     dtype: the name of the type in PyTorch, such as ``"float32"``.
///     shape: the dimensions, outermost first. For ``"float4_e2m1fn_x2"``, the last one counts bytes,
///         and is doubled.
///     data_ptr: the address of the elements, in row-major order and little-endian.
///     data_len: how many bytes they are.
///
/// The caller keeps the memory at the address valid until the file is written.
#[pyclass(frozen, module = "zt.safetensors", name = "TensorSpec")]
pub(crate) struct TensorSpec {
    element: Dtype,
    /// The dimensions, outermost first.
    #[pyo3(get)]
    shape: Vec<u64>,
    data: Addressed,
}

#[pymethods]
impl TensorSpec {
    #[new]
    #[pyo3(signature = (*, dtype, shape, data_ptr, data_len))]
    fn new(dtype: &str, mut shape: Vec<u64>, data_ptr: u64, data_len: usize) -> Result<Self> {
        let unknown = || {
            let known = known();
            refuse(format!("Unknown dtype {dtype:?}. Supported dtypes: {known}"))
        };
        let element = from_framework(dtype).ok_or_else(unknown)?;
        if element == Dtype::F4
            && let Some(last) = shape.last_mut()
        {
            let doubled = last.checked_mul(2);
            *last = doubled.ok_or_else(|| refuse("the last dimension overflows"))?;
        }
        Ok(TensorSpec { element, shape, data: Addressed { address: data_ptr, byte_len: data_len } })
    }

    /// The address of the elements.
    #[getter]
    fn data_ptr(&self) -> u64 {
        self.data.address
    }

    /// How many bytes they are.
    #[getter]
    fn data_len(&self) -> usize {
        self.data.byte_len
    }

    /// The type in the spelling of files, such as ``"F32"``.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.element.as_str()
    }

    fn __repr__(&self) -> String {
        format!(
            "TensorSpec(dtype='{}', shape={:?}, data_ptr={}, data_len={})",
            self.element.as_str(),
            self.shape,
            self.data.address,
            self.data.byte_len
        )
    }
}

/// The bytes to write: the header, and the tensors in their order.
fn plan(
    tensors: &HashMap<String, Py<TensorSpec>>,
    metadata: Option<HashMap<String, String>>,
) -> Result<(Vec<u8>, Vec<&[u8]>)> {
    let metadata = metadata.map(|metadata| {
        let mut texts: Vec<(String, String)> = metadata.into_iter().collect();
        // In order: the official library writes them in a random one.
        texts.sort_unstable();
        texts
    });
    let mut entries = Vec::with_capacity(tensors.len());
    for (name, spec) in tensors {
        let spec = spec.get();
        let expected = spec.element.byte_len(&spec.shape);
        if expected.ok() != Some(spec.data.byte_len as u64) {
            return Err(refuse(format!(
                "{WRITING}: invalid shape, data type, or offset for tensor"
            )));
        }
        entries.push(TensorInfo { name, dtype: spec.element, shape: &spec.shape });
    }
    let header = layout(metadata.as_deref(), &mut entries);
    let header = header.map_err(|error| failed(WRITING, &error))?;
    let bytes =
        |entry: &TensorInfo<'_>| tensors.get(entry.name).map(|spec| spec.get().data.bytes());
    Ok((header, entries.iter().filter_map(bytes).collect()))
}

/// The step that a message names if writing fails.
const WRITING: &str = "Error while serializing";

/// The bytes of a safetensors file with these tensors.
///
/// Equal tensors and metadata give equal bytes: the metadata is sorted.
#[pyfunction]
#[pyo3(signature = (tensor_dict, metadata = None))]
pub(crate) fn serialize<'py>(
    py: Python<'py>,
    tensor_dict: HashMap<String, Py<TensorSpec>>,
    metadata: Option<HashMap<String, String>>,
) -> Result<Bound<'py, PyBytes>> {
    let (header, tensors) = plan(&tensor_dict, metadata)?;
    let total: usize = header.len() + tensors.iter().map(|bytes| bytes.len()).sum::<usize>();
    PyBytes::new_with(py, total, |mut out: &mut [u8]| {
        py.detach(|| {
            out.write_all(&header)?;
            tensors.iter().try_for_each(|bytes| out.write_all(bytes))
        })?;
        Ok(())
    })
}

/// Writes a safetensors file with these tensors. The file appears under its name when it is complete.
#[pyfunction]
#[pyo3(signature = (tensor_dict, filename, metadata = None))]
pub(crate) fn serialize_file(
    py: Python<'_>,
    tensor_dict: HashMap<String, Py<TensorSpec>>,
    filename: PathBuf,
    metadata: Option<HashMap<String, String>>,
) -> Result<()> {
    let (header, tensors) = plan(&tensor_dict, metadata)?;
    let write = || {
        let mut file = AtomicFile::create(&filename)?;
        file.write_all(&header)?;
        tensors.iter().try_for_each(|bytes| file.write_all(bytes))?;
        file.publish_unsynced()
    };
    py.detach(write).map_err(|error: zt::Error| {
        match std::error::Error::source(&error)
            .and_then(|source| source.downcast_ref::<io::Error>())
        {
            Some(system) => refuse(format!("{WRITING}: I/O error: {system}")),
            None => failed(WRITING, &error),
        }
    })
}

/// The tensors of a file in memory: names, each with the shape, the type and a copy of the elements.
#[pyfunction]
pub(crate) fn deserialize<'py>(
    py: Python<'py>,
    bytes: PyBackedBytes,
) -> Result<Vec<(String, Bound<'py, PyDict>)>> {
    let fields = |element: Element, shape: &[u64], data: &[u8]| {
        let fields = PyDict::new(py);
        fields.set_item("shape", shape)?;
        fields.set_item("dtype", element.as_str())?;
        fields.set_item("data", PyByteArray::new(py, data))?;
        PyResult::Ok(fields)
    };
    let raise = |error: &zt::Error| failed("Error while deserializing", error);
    let source = Memory::new(bytes);
    let kind = kinds().detect(&source).map_err(|error| raise(&error))?;
    if kind.is_none_or(|kind| kind == SAFETENSORS) {
        let header = Header::read(&source).map_err(|error| raise(&error))?;
        let tensor = |tensor: &zt_safetensors::Tensor| {
            let data = source.slice(tensor.span).unwrap_or_default();
            let fields = fields(Element::Of(tensor.dtype), &tensor.shape, data)?;
            Ok((tensor.name.clone(), fields))
        };
        return header.tensors().iter().map(tensor).collect();
    }
    let file = py.detach(|| zt_convert::open_source(source)).map_err(|error| raise(&error))?;
    let tensor = |entry: zt::Entry<'_>| {
        let tensor = entry.tensor().map_err(|error| raise(&error))?;
        let packed = PackedType::from_format(tensor.format()).and_then(Dtype::from_packed);
        if let Some(dtype) = packed {
            let data = py.detach(|| tensor.bytes("data"));
            let data = data.map_err(|error| raise(&error))?;
            let fields = fields(Element::Of(dtype), tensor.shape(), &data)?;
            return Ok((tensor.name().to_owned(), fields));
        }
        let dense = py.detach(|| tensor.to_dense()).map_err(|error| raise(&error))?;
        let (shape, elements) = dense.into_elements();
        let element = Element::from_types(elements.dtype, elements.logical_type());
        let unknown = || refuse(format!("Dtype not understood: {}", elements.dtype.as_str()));
        let fields = fields(element.ok_or_else(unknown)?, &shape, &elements.bytes)?;
        Ok((tensor.name().to_owned(), fields))
    };
    file.entries().into_iter().map(tensor).collect()
}
