//! A digest of bytes that are read in another order, or as other bytes.

use std::sync::OnceLock;

use zt::container::BlobReader;
use zt::{Blob, Limits, Result, Source};

/// A blob whose digest is checked once, if it has one.
pub(crate) struct Check(Blob, OnceLock<()>);

impl Check {
    /// The check of a raw blob.
    pub(crate) const fn new(blob: Blob) -> Self {
        Check(blob, OnceLock::new())
    }

    /// Reads the blob in `base` and compares its digest, unless that was done before.
    pub(crate) fn run(&self, base: &dyn Source) -> Result<()> {
        let Check(blob, is_right) = self;
        if blob.digest.is_none() || is_right.get().is_some() {
            return Ok(());
        }
        // The bytes are raw and exist, so the limits on decoding do not apply.
        let mut reader = BlobReader::new(base, blob, &Limits::default())?;
        let mut piece = vec![0; 256 << 10];
        while reader.read(&mut piece)? > 0 {}
        let _ = is_right.set(()); // Another thread may have set it to the same.
        Ok(())
    }
}
