//! Feature `safetensors`: tensors for the writers of the official crate.

use std::borrow::Cow;

use safetensors::{Dtype as OfficialDtype, View};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error as NoDtype, StrDeserializer};
use zt::formats::PackedType;
use zt::{Dense, Elements, Error, Result};
use zt_foreign::{DATA, Loss};

use crate::dtype::Dtype;
use crate::write::lossy;

/// A tensor as the official crate's [`View`], for `safetensors::serialize` and its other writers.
/// Feature `safetensors`.
///
/// ```
/// use zt_safetensors::TensorView;
///
/// # let mut bytes = Vec::new();
/// # let mut writer = zt::Writer::new(&mut bytes)?;
/// # writer.add("bias", &zt::Dense::from_slice(&[2], &[0.5f32, 1.0])?)?;
/// # writer.finish()?;
/// # let file = zt::File::from_bytes(bytes)?;
/// let bias = TensorView::new(&file.tensor("bias")?)?;
/// let bytes = safetensors::serialize([("bias", bias)], None)?;
/// let read = safetensors::SafeTensors::deserialize(&bytes)?;
/// assert_eq!(read.tensor("bias")?.shape(), [2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct TensorView<'f> {
    dtype: OfficialDtype,
    shape: Vec<usize>,
    elements: Elements<'f>,
}

impl<'f> TensorView<'f> {
    /// Reads and verifies the tensor: borrowed from the file if it is dense, raw and lent, else in
    /// memory. Sparse and quantized tensors have their dense values.
    ///
    /// # Errors
    ///
    /// [`zt::ErrorKind::Unsupported`], code `lossy`, where safetensors has no dtype for the values; as
    /// [`zt::Tensor::to_dense`].
    pub fn new(tensor: &zt::Tensor<'f>) -> Result<Self> {
        let packed = PackedType::from_format(tensor.format()).and_then(Dtype::from_packed);
        let elements = match (packed, tensor.format()) {
            (Some(_), _) => tensor.elements(DATA)?,
            (None, "dense") => tensor.view::<Dense<'f>>()?.into_elements().1,
            (None, _) => tensor.to_dense()?.into_elements().1,
        };
        let logical_type = elements.logical_type();
        let dtype = packed.or_else(|| Dtype::from_types(elements.dtype, logical_type));
        let dtype = dtype.and_then(official).ok_or_else(|| {
            let loss =
                Loss::Type { dtype: elements.dtype, logical_type: logical_type.map(str::to_owned) };
            Error::from(lossy(loss)).with_object(tensor.name())
        })?;
        let shape = tensor.usize_shape()?;
        Ok(TensorView { dtype, shape, elements })
    }
}

impl View for TensorView<'_> {
    fn dtype(&self) -> OfficialDtype {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.elements.bytes)
    }

    fn data_len(&self) -> usize {
        self.elements.bytes.len()
    }
}

/// The official crate reads its dtypes by their spelling in headers.
fn official(dtype: Dtype) -> Option<OfficialDtype> {
    let name: StrDeserializer<'_, NoDtype> = dtype.as_str().into_deserializer();
    OfficialDtype::deserialize(name).ok()
}

#[cfg(test)]
mod tests {
    use super::{Dtype, official};

    #[test]
    fn every_dtype_is_one_of_the_official_crate() {
        for name in ["BOOL", "F4", "F6_E2M3", "F8_E4M3FNUZ", "BF16", "C64", "U64"] {
            let dtype = Dtype::from_name(name).and_then(official);
            assert_eq!(dtype.map(|dtype| dtype.to_string()).as_deref(), Some(name));
        }
    }
}
