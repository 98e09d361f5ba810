//! The native module `zt._zt`.
//!
//! | module | holds |
//! | --- | --- |
//! | `error` | errors of the engine, turned into the exceptions of `zt/_errors.py` |

mod error;

/// The native half of the package `zt`, which re-exports its names.
#[pyo3::pymodule]
mod _zt {
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
