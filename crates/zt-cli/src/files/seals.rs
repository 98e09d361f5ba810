//! Seals, which options name.

use std::path::Path;
use std::sync::Arc;

use zt::Error;
use zt_model::LocationOptions;
use zt_model::seal::{Fault, Seal};

use crate::failure::Failure;
use crate::files::remote::location;

/// The seal at a path or a URL.
pub(crate) fn read(path: &Path, options: &LocationOptions<'_>) -> Result<Arc<Seal>, Failure> {
    let refused = |error: Error| Failure::Refused(error.with_path(path));
    let byte_len = path.metadata().map_or(0, |metadata| metadata.len());
    if byte_len > Seal::MAX_LEN {
        return Err(refused(Fault::TooLong { byte_len, limit: Seal::MAX_LEN }.into()));
    }
    let bytes = location(path).read(Seal::MAX_LEN, options).map_err(refused)?;
    Ok(Arc::new(Seal::from_bytes(&bytes).map_err(refused)?))
}
