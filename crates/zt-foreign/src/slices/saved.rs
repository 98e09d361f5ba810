//! Where the slices of a safetensors file lie in their tensors, as DCP's `HuggingFaceStorageWriter` notes it.

use std::marker::PhantomData;

use serde::Deserialize;

use super::SliceFault;
use crate::tools::json::{self, Pairs};

/// The key of the metadata: JSON, `{"NAME": {"saved_offsets": [2, 0]}}`. The size of the whole tensor is not
/// in it.
pub const SHARDING_INFO: &str = "DCP_SHARDING_INFO";

#[derive(Deserialize)]
struct Saved {
    saved_offsets: Vec<u64>,
}

/// The offsets of each tensor that the text of [`SHARDING_INFO`] names, in its order.
///
/// # Errors
///
/// [`SliceFault::Saved`] if the text is not such JSON.
pub fn saved_offsets(text: &str) -> Result<Vec<(String, Vec<u64>)>, SliceFault> {
    let parsed = json::parse(text, PhantomData);
    let Pairs::<Saved>(pairs) =
        parsed.map_err(|fault| SliceFault::Saved { message: fault.message() })?;
    let pairs = pairs.into_iter();
    Ok(pairs.map(|(name, saved)| (name, saved.saved_offsets)).collect())
}
