//! Digests of blobs that are read in pieces.

use zt_container::{Blob, BlobReader, Digest, Error, Limits, Misuse, Source};

use crate::error::Result;

/// Compares the digest of all stored bytes, on this core.
pub(crate) fn hash(source: &dyn Source, blob: &Blob) -> Result<()> {
    let stored = Blob::raw(blob.span).with_digest(blob.digest.clone());
    let mut reader = BlobReader::new(source, &stored, &Limits::default())?;
    let mut piece = vec![0; 64 << 10];
    while reader.read(&mut piece)? > 0 {}
    Ok(())
}

/// A wrong digest explains every error of a decoder, so it is reported instead.
pub(crate) fn explained(
    source: &dyn Source,
    blob: &Blob,
    error: crate::error::Error,
) -> crate::error::Error {
    if error.code() != "zstd" {
        return error;
    }
    hash(source, blob).err().unwrap_or(error)
}

/// Compares the combined checksum of pieces with the recorded one. `None` means that a piece was
/// too long.
pub(crate) fn compare(expected: &Digest, found: Option<Digest>) -> Result<()> {
    match found {
        Some(found) if found == *expected => Ok(()),
        Some(found) => {
            let expected = expected.clone();
            Err(Error::DigestMismatch { expected, found }.into())
        }
        // A piece that is longer than this machine can address must not pass as verified.
        None => Err(Error::Misuse(Misuse::TooLong).into()),
    }
}
