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
    use crate::read::{
        component::Component,
        file::{File, open},
        load::load,
        plan::{Plan, plan},
        report::report,
        stats::stats,
        tensor::Tensor,
        torch::{
            _check_data, _dlpack, _dlpack_component, _dlpack_many, _dlpack_part, _has_same_blobs,
        },
        verify::{Verification, verify},
    };
    #[pymodule_export]
    use crate::safetensors::{
        FileHandle, SafeOpen, SafeSlice, TensorSpec, deserialize, serialize, serialize_file,
    };
    #[pymodule_export]
    use crate::share::{
        memory::Memory,
        remote::{read_object, write_object},
    };
    #[pymodule_export]
    use crate::whole::{
        combine::{_average, _lora},
        convert::{Conversion, convert},
        delta::{_delta, _new_values, _patch_in_place, Changes},
        diff::{Difference, diff},
        examine::{Finding, examine},
        hash::{ContentHash, hash},
        program::_program,
        quantize::{Quantization, quantize},
        register::{register_format, register_kind},
        repair::{Recovery, repair},
        split::split,
    };
    #[pymodule_export]
    use crate::write::{
        editor::{Editor, edit},
        quantized::QuantizedGroup,
        save::{_file_of, save},
        writer::{Pieces, Writer},
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
