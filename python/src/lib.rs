//! The native module `zt._zt`.
//!
//! | module | holds |
//! | --- | --- |
//! | `error` | errors of the engine, turned into the exceptions of `zt/_errors.py` |
//! | `pool`, `work` | the threads of the engine; progress, and Ctrl-C |
//! | `memory`, `dlpack` | bytes that Python and Rust share: with `safetensors::spec`, the only modules with unsafe code |
//! | `source`, `ranges` | objects of Python as files to read and to write; many ranges at once |
//! | `remote` | URLs where a call takes a path |
//! | `dtype`, `value`, `index` | element types, attributes and indices of Python |
//! | `file`, `tensor`, `component`, `array` | what is read, and its values in memory |
//! | `incoming`, `quantized`, `writer`, `editor` | what is written |
//! | `load`, `save`, `operations` | many tensors in one call; work on whole files |
//! | `html` | tables for notebooks |
//! | `safetensors` | the names of the package safetensors, over files of every kind |
//! | `torch` | tensors of torch, both ways |

mod array;
mod component;
mod dlpack;
mod dtype;
mod editor;
mod error;
mod file;
mod html;
mod incoming;
mod index;
mod load;
mod memory;
mod operations;
mod pool;
mod quantized;
mod ranges;
mod remote;
mod safetensors;
mod save;
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
    use crate::editor::{Editor, edit};
    #[pymodule_export]
    use crate::file::{File, FileWarning, open};
    #[pymodule_export]
    use crate::load::load;
    #[pymodule_export]
    use crate::memory::Memory;
    #[pymodule_export]
    use crate::operations::{
        ContentHash, Conversion, Difference, Recovery, Verification, convert, diff, hash, repair,
        verify,
    };
    #[pymodule_export]
    use crate::quantized::QuantizedGroup;
    #[pymodule_export]
    use crate::remote::{read_object, write_object};
    #[pymodule_export]
    use crate::safetensors::{
        FileHandle, SafeOpen, SafeSlice, TensorSpec, deserialize, serialize, serialize_file,
    };
    #[pymodule_export]
    use crate::save::save;
    #[pymodule_export]
    use crate::tensor::Tensor;
    #[pymodule_export]
    use crate::torch::{
        _check_data, _dlpack, _dlpack_component, _dlpack_many, _dlpack_part, _has_same_blobs,
    };
    #[pymodule_export]
    use crate::writer::{Pieces, Writer};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
