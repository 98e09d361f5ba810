//! `safetensors` 0.8.0: no digests, no compression, one header of JSON.

use std::path::Path;

use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use zt::{DType, Map, Source, Span};

use crate::{Result, Tensor};

/// The name in tables.
pub const NAME: &str = "safetensors 0.8";

/// Writes all tensors to a new file.
///
/// # Errors
///
/// Where the file cannot be written.
pub fn write(path: &Path, tensors: &[Tensor]) -> Result<()> {
    let views = tensors.iter().map(|tensor| {
        let shape = tensor.shape.iter().map(|&length| length as usize);
        let view = TensorView::new(dtype(tensor.dtype)?, shape.collect(), &tensor.bytes)?;
        Ok((&*tensor.name, view))
    });
    let views: Vec<_> = views.collect::<Result<_>>()?;
    Ok(safetensors::serialize_to_file(views, None, path)?)
}

/// A file in a map, as its users open it from Rust.
pub struct Mapped(Map);

impl Mapped {
    /// Maps the file at `path`.
    ///
    /// # Errors
    ///
    /// Where it cannot be mapped.
    pub fn open(path: &Path) -> Result<Self> {
        // SAFETY: as in `ours::open_map`.
        Ok(Mapped(unsafe { Map::open(path) }?))
    }

    /// Parses the header.
    ///
    /// # Errors
    ///
    /// Where it is damaged.
    pub fn parse(&self) -> Result<SafeTensors<'_>> {
        let whole = Span::new(0, self.0.byte_len()).and_then(|span| self.0.slice(span));
        Ok(SafeTensors::deserialize(whole.unwrap_or_default())?)
    }
}

/// Every tensor, copied out of the map, as its users have it from `load_file`.
///
/// # Errors
///
/// Where one is missing.
pub fn read_all(file: &SafeTensors<'_>, tensors: &[Tensor]) -> Result<Vec<Vec<u8>>> {
    let read = |tensor: &Tensor| Ok(file.tensor(&tensor.name)?.data().to_vec());
    tensors.iter().map(read).collect()
}

fn dtype(dtype: DType) -> Result<Dtype> {
    Ok(match dtype {
        DType::BF16 => Dtype::BF16,
        DType::F32 => Dtype::F32,
        DType::I32 => Dtype::I32,
        DType::I64 => Dtype::I64,
        other => return Err(format!("no workload has {other:?}").into()),
    })
}
