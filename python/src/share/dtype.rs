//! The types of elements, by the names of each library.

use std::ffi::CStr;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use zt::DType;

use crate::share::error::{Result, unsupported};

/// A type of elements.
pub(crate) struct Row {
    /// Its name in files.
    pub(crate) name: &'static str,
    /// How it is stored.
    pub(crate) dtype: DType,
    /// The bytes of a value. A complex value is two elements.
    pub(crate) item_len: usize,
    /// Its name as a dtype of NumPy or, if `is_ml` is true, of `ml_dtypes`.
    pub(crate) numpy: &'static str,
    pub(crate) is_ml: bool,
    /// Its format in the buffer protocol, in native size; `None` if the protocol has none.
    pub(crate) format: Option<&'static CStr>,
    /// Its code in DLPack.
    pub(crate) dlpack: u8,
    /// Its dtype of NumPy, made when it is first needed.
    made: PyOnceLock<Py<PyAny>>,
}

const INT: u8 = 0;
const UINT: u8 = 1;
const FLOAT: u8 = 2;
const BFLOAT: u8 = 4;
const COMPLEX: u8 = 5;
const BOOL: u8 = 6;

const fn native(dtype: DType, numpy: &'static str, format: &'static CStr, dlpack: u8) -> Row {
    Row {
        name: dtype.as_str(),
        dtype,
        item_len: dtype.byte_len(),
        numpy,
        is_ml: false,
        format: Some(format),
        dlpack,
        made: PyOnceLock::new(),
    }
}

const fn ml(name: &'static str, dtype: DType, numpy: &'static str, dlpack: u8) -> Row {
    let mut row = native(dtype, numpy, c"", dlpack);
    row.name = name;
    row.is_ml = true;
    row.format = None;
    row
}

const fn complex(name: &'static str, dtype: DType, format: &'static CStr) -> Row {
    let mut row = native(dtype, name, format, COMPLEX);
    row.name = name;
    row.item_len = 2 * dtype.byte_len();
    row
}

/// Every type that arrays have, with the codes of DLPack 1.1.
static ROWS: [Row; 20] = [
    native(DType::F64, "float64", c"d", FLOAT),
    native(DType::F32, "float32", c"f", FLOAT),
    native(DType::F16, "float16", c"e", FLOAT),
    ml("bf16", DType::BF16, "bfloat16", BFLOAT),
    native(DType::I64, "int64", c"q", INT),
    native(DType::I32, "int32", c"i", INT),
    native(DType::I16, "int16", c"h", INT),
    native(DType::I8, "int8", c"b", INT),
    native(DType::U64, "uint64", c"Q", UINT),
    native(DType::U32, "uint32", c"I", UINT),
    native(DType::U16, "uint16", c"H", UINT),
    native(DType::U8, "uint8", c"B", UINT),
    native(DType::Bool, "bool", c"?", BOOL),
    ml("f8_e4m3fn", DType::U8, "float8_e4m3fn", 10),
    ml("f8_e4m3fnuz", DType::U8, "float8_e4m3fnuz", 11),
    ml("f8_e5m2", DType::U8, "float8_e5m2", 12),
    ml("f8_e5m2fnuz", DType::U8, "float8_e5m2fnuz", 13),
    ml("f8_e8m0fnu", DType::U8, "float8_e8m0fnu", 14),
    complex("complex64", DType::F32, c"Zf"),
    complex("complex128", DType::F64, c"Zd"),
];

impl Row {
    /// The type of the elements of a component. If arrays lack its logical type, it is the stored type.
    pub(crate) fn of(dtype: DType, logical_type: Option<&str>) -> &'static Row {
        let logical = dtype.logical_type(logical_type);
        let known = |name: &str| ROWS.iter().find(|row| row.name == name && row.dtype == dtype);
        let stored = ROWS.iter().find(|row| row.name == dtype.as_str());
        logical.and_then(known).or(stored).unwrap_or(&ROWS[11])
    }

    /// The type with this name in files or in NumPy.
    pub(crate) fn named(name: &str) -> Option<&'static Row> {
        ROWS.iter().find(|row| row.name == name || row.numpy == name)
    }

    /// The type with this code and width in DLPack.
    pub(crate) fn of_dlpack(code: u8, bits: u8, lanes: u16) -> Option<&'static Row> {
        let is_it = |row: &&Row| row.dlpack == code && row.item_len * 8 == usize::from(bits);
        ROWS.iter().find(is_it).filter(|_| lanes == 1)
    }

    /// The type of a buffer with items of this format.
    pub(crate) fn of_format(format: &CStr, item_len: usize) -> Option<&'static Row> {
        let text = format.to_str().ok()?;
        let code = text.trim_start_matches(['@', '=', '<', '>', '!']);
        // The machine decides the sizes of these.
        let kind = match code {
            "l" | "n" | "q" | "i" | "h" | "b" => INT,
            "L" | "N" | "Q" | "I" | "H" | "B" | "c" => UINT,
            "d" | "f" | "e" => FLOAT,
            "Zd" | "Zf" => COMPLEX,
            "?" => BOOL,
            _ => return None,
        };
        ROWS.iter().find(|row| !row.is_ml && row.dlpack == kind && row.item_len == item_len)
    }

    /// The logical type to write.
    pub(crate) fn logical_type(&self) -> Option<&'static str> {
        (self.name != self.dtype.as_str()).then_some(self.name)
    }

    /// The dtype of NumPy, little-endian. Imports NumPy, and `ml_dtypes` for the types of that package.
    ///
    /// # Errors
    ///
    /// `ImportError`; [`unsupported`] for a type that the installed `ml_dtypes` does not have.
    pub(crate) fn numpy_dtype<'py>(&self, py: Python<'py>) -> Result<&Bound<'py, PyAny>> {
        let made = self.made.get_or_try_init(py, || {
            let make = numpy(py)?.getattr("dtype")?;
            let dtype = if self.is_ml {
                let scalar = py.import("ml_dtypes")?.getattr_opt(self.numpy)?;
                let missing =
                    || unsupported(py, &format!("ml_dtypes has no {}: update it", self.numpy));
                make.call1((scalar.ok_or_else(missing)?,))?
            } else {
                make.call1((self.numpy,))?.call_method1("newbyteorder", ("<",))?
            };
            Ok::<_, PyErr>(dtype.unbind())
        })?;
        Ok(made.bind(py))
    }
}

/// The module `numpy`, imported when it is first needed.
pub(crate) fn numpy(py: Python<'_>) -> Result<&Bound<'_, PyModule>> {
    static NUMPY: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = NUMPY.get_or_try_init(py, || py.import("numpy").map(Bound::unbind))?;
    Ok(module.bind(py))
}
