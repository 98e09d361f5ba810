//! Frameworks, their devices, and their tensors.

use std::convert::Infallible;
use std::fmt;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use super::element::Element;
use super::message::refuse;
use crate::share::dtype::{Row, numpy};
use crate::share::error::Result;
use crate::share::memory::Memory;

/// The library whose tensors are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framework {
    Torch,
    Numpy,
    TensorFlow,
    Flax,
    Mlx,
    Paddle,
}

impl<'py> FromPyObject<'_, 'py> for Framework {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> Result<Self> {
        let name: String = object.extract()?;
        Ok(match name.as_str() {
            "pt" | "torch" | "pytorch" => Framework::Torch,
            "np" | "numpy" => Framework::Numpy,
            "tf" | "tensorflow" => Framework::TensorFlow,
            "jax" | "flax" => Framework::Flax,
            "mlx" => Framework::Mlx,
            "paddle" => Framework::Paddle,
            _ => return Err(refuse(format!("framework {name} is invalid"))),
        })
    }
}

impl fmt::Display for Framework {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Framework::Torch => "pytorch",
            Framework::Numpy => "numpy",
            Framework::TensorFlow => "tensorflow",
            Framework::Flax => "flax",
            Framework::Mlx => "mlx",
            Framework::Paddle => "paddle",
        })
    }
}

impl Framework {
    /// Imports the packages that opening a file needs, so that a missing one raises at once.
    pub(crate) fn import(self, py: Python<'_>) -> Result<()> {
        match self {
            Framework::Torch => torch(py).map(drop),
            Framework::Paddle => py.import("paddle").map(drop),
            _ => numpy(py).map(drop),
        }
    }
}

/// How the bytes of tensors are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backend {
    Mmap,
    Pread,
}

impl<'py> FromPyObject<'_, 'py> for Backend {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> Result<Self> {
        let name: String = object.extract()?;
        match name.as_str() {
            "mmap" => Ok(Backend::Mmap),
            "pread" => Ok(Backend::Pread),
            _ => Err(refuse(format!(
                "backend {name:?} is invalid (expected one of: \"mmap\", \"pread\")"
            ))),
        }
    }
}

/// The device of the tensors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Device {
    Cpu,
    Named(String),
    /// A number alone: PyTorch chooses the kind of accelerator.
    Index(usize),
}

/// Devices with a number, 0 by default. `mps` has number 0 alone.
static ACCELERATORS: [&str; 8] = ["cuda", "musa", "mps", "npu", "xpu", "xla", "mlu", "hpu"];

impl<'py> FromPyObject<'_, 'py> for Device {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> Result<Self> {
        let Ok(name) = object.extract::<String>() else {
            let index = object.extract::<usize>();
            return index
                .map(Device::Index)
                .map_err(|_| refuse(format!("device {object:?} is invalid")));
        };
        if name == "cpu" {
            return Ok(Device::Cpu);
        }
        let (kind, index) = match name.split_once(':') {
            Some((kind, index)) => (kind, index.parse::<usize>()?),
            None => (name.as_str(), 0),
        };
        if !ACCELERATORS.contains(&kind) {
            return Err(refuse(format!("device {name} is invalid")));
        }
        if kind != "mps" {
            return Ok(Device::Named(format!("{kind}:{index}")));
        }
        match index {
            0 => Ok(Device::Named("mps".to_owned())),
            _ => Err(refuse(format!("device {name} is invalid: only mps or mps:0 is supported"))),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Cpu => f.write_str("cpu"),
            Device::Named(name) => f.write_str(name),
            Device::Index(index) => write!(f, "{index}"),
        }
    }
}

impl<'py> IntoPyObject<'py> for &Device {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = Infallible;

    fn into_pyobject(self, py: Python<'py>) -> Result<Bound<'py, PyAny>, Infallible> {
        match self {
            Device::Index(index) => index.into_pyobject(py).map(Bound::into_any),
            named => named.to_string().into_pyobject(py).map(Bound::into_any),
        }
    }
}

/// The module `torch`.
pub(crate) fn torch(py: Python<'_>) -> Result<&Bound<'_, PyModule>> {
    static TORCH: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = TORCH.get_or_try_init(py, || py.import("torch").map(Bound::unbind))?;
    Ok(module.bind(py))
}

/// The shape of a PyTorch tensor: two elements of F4 are one element in PyTorch.
pub(crate) fn torch_shape(element: Element, shape: &[u64]) -> Result<Vec<u64>> {
    let mut packed = shape.to_vec();
    if element == Element::Of(zt_safetensors::Dtype::F4) {
        match packed.last_mut() {
            Some(last) if last.is_multiple_of(2) => *last /= 2,
            _ => {
                return Err(refuse(format!(
                    "f4_x2 dtype requires that the last dim be divisible by 2 in torch: got {shape:?}"
                )));
            }
        }
    }
    Ok(packed)
}

/// The name of the type in the framework.
fn name_of(element: Element) -> Result<&'static str> {
    let missing = || refuse(format!("Dtype not understood: {}", element.as_str()));
    element.in_framework().ok_or_else(missing)
}

/// A view of writable memory as a PyTorch tensor on the CPU. `shape` is PyTorch's.
pub(crate) fn to_torch<'py>(
    py: Python<'py>,
    element: Element,
    shape: &[u64],
    memory: Memory,
) -> Result<Bound<'py, PyAny>> {
    let torch = torch(py)?;
    let dtype = torch.getattr(name_of(element)?)?;
    let options = PyDict::new(py);
    options.set_item(intern!(py, "dtype"), dtype)?;
    if memory.byte_len() == 0 {
        // `frombuffer` refuses an empty buffer.
        options.set_item(intern!(py, "device"), intern!(py, "cpu"))?;
        return torch.call_method(intern!(py, "empty"), (shape,), Some(&options));
    }
    let flat = torch.call_method(intern!(py, "frombuffer"), (memory,), Some(&options))?;
    match shape.len() {
        1 => Ok(flat),
        _ => flat.call_method1(intern!(py, "reshape"), (shape,)),
    }
}

/// A view of writable memory as an array of NumPy.
pub(crate) fn to_numpy<'py>(
    py: Python<'py>,
    element: Element,
    shape: &[u64],
    memory: Memory,
) -> Result<Bound<'py, PyAny>> {
    let name = name_of(element)?;
    let unknown = || refuse(format!("Dtype not understood: {}", element.as_str()));
    let dtype = Row::named(name).ok_or_else(unknown)?.numpy_dtype(py)?;
    let shape = pyo3::types::PyTuple::new(py, shape)?;
    numpy(py)?.getattr(intern!(py, "ndarray"))?.call1((shape, dtype, memory))
}

/// Turns an array of NumPy or a PyTorch tensor into a tensor of the framework on the device.
pub(crate) fn finish<'py>(
    array: Bound<'py, PyAny>,
    framework: Framework,
    device: &Device,
) -> Result<Bound<'py, PyAny>> {
    let py = array.py();
    match framework {
        Framework::Numpy => Ok(array),
        Framework::Torch if *device == Device::Cpu => Ok(array),
        Framework::Torch => array.call_method1(intern!(py, "to"), (device,)),
        Framework::Flax => {
            py.import(intern!(py, "jax.numpy"))?.call_method1(intern!(py, "array"), (array,))
        }
        Framework::TensorFlow => py
            .import(intern!(py, "tensorflow"))?
            .call_method1(intern!(py, "convert_to_tensor"), (array,)),
        Framework::Mlx => {
            py.import(intern!(py, "mlx.core"))?.call_method1(intern!(py, "array"), (array,))
        }
        Framework::Paddle => to_paddle(array, device),
    }
}

/// Paddle takes bf16 as `uint16`, and no FP8.
fn to_paddle<'py>(array: Bound<'py, PyAny>, device: &Device) -> Result<Bound<'py, PyAny>> {
    let py = array.py();
    let place = match device {
        Device::Named(name) => name.replace("cuda", "gpu"),
        other => other.to_string(),
    };
    let options = PyDict::new(py);
    options.set_item(intern!(py, "place"), place)?;
    let make = |array: Bound<'py, PyAny>| {
        py.import(intern!(py, "paddle"))?.call_method(
            intern!(py, "to_tensor"),
            (array,),
            Some(&options),
        )
    };
    let dtype = array.getattr(intern!(py, "dtype"))?;
    if dtype.getattr(intern!(py, "kind"))?.extract::<char>()? != 'V' {
        return make(array);
    }
    let itemsize: usize = dtype.getattr(intern!(py, "itemsize"))?.extract()?;
    let bits = array.call_method1(intern!(py, "view"), (format!("u{itemsize}"),))?;
    match itemsize {
        2 => make(bits),
        _ => make(bits)?.call_method1(intern!(py, "view"), (dtype.getattr(intern!(py, "name"))?,)),
    }
}

/// A copy of an array of NumPy in row-major order. A scalar becomes an array without dimensions.
pub(crate) fn copied(array: Bound<'_, PyAny>) -> Result<Bound<'_, PyAny>> {
    let py = array.py();
    let options = PyDict::new(py);
    options.set_item(intern!(py, "order"), intern!(py, "C"))?;
    numpy(py)?.call_method(intern!(py, "array"), (array,), Some(&options))
}
