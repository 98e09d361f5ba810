//! The native module `zt._zt`.
//!
//! | module | holds |
//! | --- | --- |
//! | `error` | errors of the engine, turned into the exceptions of `zt/_errors.py` |
//! | `pool`, `work` | the threads of the engine; progress, and Ctrl-C |
//! | `memory`, `dlpack` | bytes that Python and Rust share: the only modules with unsafe code |
//! | `source` | objects of Python as files to read and to write |
//! | `dtype`, `value`, `index` | element types, attributes and indices of Python |
//! | `file`, `tensor`, `component` | what is read |
//! | `incoming`, `quantized`, `writer` | what is written |
//! | `torch` | tensors of torch, both ways |

mod component;
mod dlpack;
mod dtype;
mod error;
mod file;
mod incoming;
mod index;
mod memory;
mod pool;
mod quantized;
mod source;
mod tensor;
mod torch;
mod value;
mod work;
mod writer;

/// The native half of the package `zt`, which re-exports its names.
#[pyo3::pymodule]
mod _zt {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::component::Component;
    #[pymodule_export]
    use crate::file::{File, FileWarning, open};
    #[pymodule_export]
    use crate::memory::Memory;
    #[pymodule_export]
    use crate::quantized::QuantizedGroup;
    #[pymodule_export]
    use crate::tensor::Tensor;
    #[pymodule_export]
    use crate::torch::{_check_data, _dlpack, _dlpack_component, _dlpack_many, _dlpack_part};
    #[pymodule_export]
    use crate::writer::{Pieces, Writer};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
