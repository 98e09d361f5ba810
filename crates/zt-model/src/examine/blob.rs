//! Files in a cache of the Hugging Face Hub, whose names are the digests of their bytes.

use std::fs;
use std::path::Path;

use zt::container::Hasher;
use zt::container::memory::resize;
use zt::{Digest, DigestAlgorithm, Error, ErrorKind, FileSource, Progress, Result, Source};

/// Compares the bytes of a file in a cache of the Hub with its name: `blobs/SHA256`, to which the file at `path` is a
/// link. Returns whether the name is a digest; the bytes of any other file are not read.
///
/// Cost: reads the whole file once. `progress` is asked only whether to go on.
///
/// # Errors
///
/// Code `digest-mismatch`; [`ErrorKind::Io`]; [`ErrorKind::Interrupted`].
pub fn verify_blob(path: impl AsRef<Path>, progress: Option<Progress<'_>>) -> Result<bool> {
    let path = path.as_ref();
    let of_path = |error: Error| error.with_path(path);
    let Some(expected) = promised(path) else {
        return Ok(false);
    };
    let found = sha256(path, progress).map_err(of_path)?;
    if found != expected {
        let message = format!(
            "the bytes have the SHA-256 {found}, the name of the file in the cache is {expected}: download it again"
        );
        let error = Error::new(ErrorKind::DigestMismatch, "digest-mismatch", message);
        return Err(of_path(error));
    }
    Ok(true)
}

/// Whether the file at `path` is in a cache of the Hub, or a link to one there, and has its digest as its name.
/// Such a file must not be changed.
pub fn is_blob(path: impl AsRef<Path>) -> bool {
    promised(path.as_ref()).is_some()
}

/// The digest that the real name of the file is.
fn promised(path: &Path) -> Option<String> {
    let real = fs::canonicalize(path).ok()?;
    let is_blob = real.parent()?.file_name()? == "blobs";
    let name = real.file_name()?.to_str()?;
    let is_digest =
        name.len() == 64 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (is_blob && is_digest).then(|| name.to_owned())
}

fn sha256(path: &Path, progress: Option<Progress<'_>>) -> Result<String> {
    const PIECE: u64 = 1 << 20;
    let source = FileSource::open(path)?;
    let mut hasher = Hasher::new(DigestAlgorithm::Sha256)?;
    let (mut offset, end) = (0u64, source.byte_len());
    let mut piece = Vec::new();
    while offset < end {
        let len = PIECE.min(end.strict_sub(offset));
        resize(&mut piece, len)?;
        source.read_at(offset, &mut piece)?;
        hasher.update(&piece);
        offset = offset.strict_add(len);
        progress.map_or(Ok(()), |progress| progress.report(0))?;
    }
    let digest: Digest = hasher.finish();
    let text = digest.to_string();
    Ok(text.strip_prefix("sha256:").unwrap_or(&text).to_owned())
}
