//! The native module `zt._zt`, in five rooms. A room uses itself and the rooms above it.
//!
//! | room | holds |
//! | --- | --- |
//! | `share` | bytes, values, threads and errors that Python and the engine share |
//! | `read` | open files, their tensors, and values in memory |
//! | `write` | values of Python, and the files that they are written to |
//! | `whole` | work on whole files |
//! | `safetensors` | the names of the package safetensors, over files of every kind |

mod read;
mod safetensors;
mod share;
mod whole;
mod write;

/// The native half of the package `zt`, which re-exports its names.
#[pyo3::pymodule]
mod _zt {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::read::component::Component;
    #[pymodule_export]
    use crate::read::file::{File, open};
    #[pymodule_export]
    use crate::read::load::load;
    #[pymodule_export]
    use crate::read::tensor::Tensor;
    #[pymodule_export]
    use crate::read::torch::{
        _check_data, _dlpack, _dlpack_component, _dlpack_many, _dlpack_part, _has_same_blobs,
    };
    #[pymodule_export]
    use crate::read::verify::{Verification, verify};
    #[pymodule_export]
    use crate::read::warning::FileWarning;
    #[pymodule_export]
    use crate::safetensors::{
        FileHandle, SafeOpen, SafeSlice, TensorSpec, deserialize, serialize, serialize_file,
    };
    #[pymodule_export]
    use crate::share::memory::Memory;
    #[pymodule_export]
    use crate::share::remote::{read_object, write_object};
    #[pymodule_export]
    use crate::whole::convert::{Conversion, convert};
    #[pymodule_export]
    use crate::whole::diff::{Difference, diff};
    #[pymodule_export]
    use crate::whole::hash::{ContentHash, hash};
    #[pymodule_export]
    use crate::whole::repair::{Recovery, repair};
    #[pymodule_export]
    use crate::write::editor::{Editor, edit};
    #[pymodule_export]
    use crate::write::quantized::QuantizedGroup;
    #[pymodule_export]
    use crate::write::save::save;
    #[pymodule_export]
    use crate::write::writer::{Pieces, Writer};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
