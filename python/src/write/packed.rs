//! Arrays of values of less than a byte: of `ml_dtypes`, and pairs of FP4 of torch.

use pyo3::prelude::*;
use zt::formats::PackedType;
use zt::{Buffer, DType, Elements, NewObject};
use zt_convert::MlDtype;
use zt_convert::foreign::Meaning;

use crate::share::error::Result;
use crate::share::torch::is_of;
use crate::write::array::LentArray;

/// An array of values of less than a byte.
pub(crate) struct PackedArray {
    packed: PackedType,
    shape: Vec<u64>,
    array: LentArray,
    /// Whether a byte of the array has two values. `ml_dtypes` has a byte for each.
    is_pairs: bool,
}

impl PackedArray {
    /// An array of NumPy with such a type of `ml_dtypes`; `None` for any other object.
    pub(crate) fn of_numpy(object: &Bound<'_, PyAny>) -> Result<Option<Self>> {
        if !is_of(object, "numpy")? || !object.hasattr("dtype")? {
            return Ok(None);
        }
        let name: String = object.getattr("dtype")?.getattr("name")?.extract()?;
        let known = MlDtype::from_name(&name);
        let Some(Meaning::Packed(packed)) = known.map(|known| known.meaning) else {
            return Ok(None);
        };
        let array = LentArray::new(&object.call_method1("view", ("uint8",))?)?;
        Ok(Some(PackedArray { packed, shape: array.shape(), array, is_pairs: false }))
    }

    /// A tensor of torch on the CPU with the type `float4_e2m1fn_x2`; `None` for any other.
    pub(crate) fn of_torch(tensor: &Bound<'_, PyAny>) -> Result<Option<Self>> {
        let dtype = tensor.getattr("dtype")?.str()?;
        if dtype.to_str()? != "torch.float4_e2m1fn_x2" {
            return Ok(None);
        }
        let bytes = tensor.py().import("torch")?.getattr("uint8")?;
        let array = LentArray::new(&tensor.call_method1("view", (bytes,))?)?;
        let mut shape = array.shape();
        // A scalar is a pair, too.
        match shape.last_mut() {
            Some(last) => *last = last.saturating_mul(2),
            None => shape.push(2),
        }
        Ok(Some(PackedArray { packed: PackedType::F4E2M1Fn, shape, array, is_pairs: true }))
    }

    /// The bytes that are read.
    pub(crate) fn byte_len(&self) -> usize {
        self.array.byte_len()
    }

    /// The object, with the values packed.
    pub(crate) fn object(&self) -> zt::Result<NewObject<'_>> {
        let mut bytes = self.array.elements()?.bytes;
        if !self.is_pairs {
            let byte_len = self.packed.byte_len(bytes.len() as u64);
            let mut packed = Buffer::try_zeroed(byte_len)?;
            self.packed.pack(&bytes, &mut packed);
            bytes = packed.into();
        }
        let data = ("data", Elements::new(DType::U8, bytes));
        Ok(NewObject::new(&self.shape, self.packed.format(), None, [data]))
    }
}
