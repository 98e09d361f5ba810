//! Which digests have to be compared, and which were found right. No other module decides it.

use std::sync::Arc;

use super::{Located, Tensor};
use crate::cores::pieces;
use crate::error::Result;
use crate::file::catalog::FLAGS;
use crate::file::chunks::Checked;
use crate::file::inner::Verify;
use crate::file::verified_blobs::is_worth_it;

impl<'f> Tensor<'f> {
    /// Compares the digest of one component, unless an earlier read did, or the file is opened under
    /// [`Verify::Never`]. The stored bytes are read, on all cores, and neither decoded nor kept.
    ///
    /// # Errors
    ///
    /// Code `not-found`; a wrong digest; [`crate::ErrorKind::Io`].
    pub fn verify(&self, role: &str) -> Result<()> {
        let part = self.locate(role)?;
        let blob = &part.component.blob;
        if blob.digest.is_none() || !self.must_verify(part) {
            return Ok(());
        }
        self.verified(part, true, || pieces::verify(self.source(part), blob))
    }

    /// Whether an earlier full read through this file, or a clone of it, compared the digest of one
    /// component. Slices compare digests of chunks at most. Reads under `Verify::Never` compare none.
    ///
    /// # Errors
    ///
    /// Code `not-found`.
    pub fn is_verified(&self, role: &str) -> Result<bool> {
        let part = self.locate(role)?;
        let can_be = part.component.blob.algorithm().is_some();
        Ok(can_be && self.is_verified_part(part))
    }

    pub(crate) fn must_verify(&self, part: Located<'_>) -> bool {
        match self.file.verify {
            Verify::Always => true,
            Verify::OnRead => !self.is_verified_part(part),
            Verify::Never => false,
        }
    }

    /// Whether the digest of this component, or of another with the same bytes, was found right.
    fn is_verified_part(&self, part: Located<'_>) -> bool {
        let (source, blob) = (self.source_index(part), &part.component.blob);
        let is_kept = || is_kept_by_blob(part) && self.file.verified.has(source, blob);
        self.resolved.is_verified(part.at) || is_kept()
    }

    /// The chunk digests that verify parts of the component, if they are known; and whether they have yet to be
    /// read.
    pub(crate) fn known_chunks(&self, part: Located<'_>) -> (Option<Arc<Checked>>, bool) {
        let blob = &part.component.blob;
        if blob.chunks.is_none() || !self.must_verify(part) {
            return (None, false);
        }
        let known = match self.file.verify {
            Verify::Always => None,
            _ => self.file.chunks.known(self.source_index(part), blob),
        };
        let is_unknown = known.is_none();
        (known, is_unknown)
    }

    /// The chunk digests that verify parts of the component; `None` if there are none, or none is needed.
    /// Fails if the table is damaged.
    pub(crate) fn chunks_of(&self, part: Located<'_>) -> Result<Option<Arc<Checked>>> {
        let blob = &part.component.blob;
        if blob.chunks.is_none() || !self.must_verify(part) {
            return Ok(None);
        }
        let source = self.source(part);
        let at = self.source_index(part);
        let checked = match self.file.verify {
            Verify::Always => Checked::read(source, blob, true).map(|it| it.map(Arc::new)),
            _ => self.file.chunks.of(at, source, blob),
        };
        checked.map_err(|error| self.blame(error, part))
    }

    /// The result of `read`, which compares the digest of all stored bytes of a component if `verify` is true.
    /// That the digest was right is remembered. Errors get the place of the component.
    pub(crate) fn verified<R>(
        &self,
        part: Located<'_>,
        verify: bool,
        read: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        let read = read().map_err(|error| self.blame(error, part))?;
        if verify {
            self.set_verified(part);
        }
        Ok(read)
    }

    fn set_verified(&self, part: Located<'_>) {
        self.resolved.set_verified(part.at);
        if is_kept_by_blob(part) {
            let (source, blob) = (self.source_index(part), &part.component.blob);
            self.file.verified.insert(source, blob);
        }
    }
}

/// Whether the result for its digest is kept by blob, beside the flag of the component or without one.
fn is_kept_by_blob(part: Located<'_>) -> bool {
    part.at >= FLAGS || is_worth_it(&part.component.blob)
}
