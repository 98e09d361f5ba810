//! A file without the bytes that belong to nobody.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use zt_container::{Blob, BlobReader, ContainerWriter, Limits, Source, Span};
use zt_manifest::Manifest;

use super::storage::{Before, LockedFile, Storage};
use super::trailer_of;
use crate::encode::alignment_of;
use crate::error::{Error, Result};
use crate::file::File;
use crate::open::OpenOptions;
use crate::progress::{Progress, report};
use crate::publish::AtomicFile;

/// Stored bytes are moved in pieces of this size.
pub(crate) const PIECE: usize = 1 << 20;

/// The manifest's size and the footer magic.
pub(crate) const FOOTER_LEN: u64 = 16;

/// Writes the `.zt` file at `path` anew without what edits have left in it: the bytes of objects that
/// were removed, room for trailers. Blobs are moved as they are stored, each once, and their digests
/// are checked on the way; nothing is compressed again.
///
/// The new file takes the name of the old one when it is whole and durable, with its permissions
/// and, where that is allowed, its owner; other names of the old file (hard links) keep the old
/// bytes, and so do those who have it open. `progress` is told of stored bytes. Returns the lengths
/// before and after.
///
/// # Errors
///
/// Codes `locked` and `unsupported` as for [`crate::WriteOptions::edit`]; the fault of any object, and
/// `digest-mismatch`: nothing is moved that could not be read; [`crate::ErrorKind::Io`];
/// [`crate::ErrorKind::Interrupted`]. The old file is there then.
pub fn compact(path: impl AsRef<Path>, progress: Option<Progress<'_>>) -> Result<(u64, u64)> {
    let path = path.as_ref();
    let write = || {
        // Locked until the new file has the name.
        let storage = Arc::new(LockedFile::open(path)?);
        let byte_len = storage.byte_len()?;
        let source: Arc<dyn Source> = Arc::new(Before {
            storage: Arc::clone(&storage) as Arc<dyn Storage>,
            byte_len,
        });
        let file = OpenOptions::new().open_source(Arc::clone(&source))?;
        trailer_of(&file)?;
        let out = AtomicFile::create(path)?;
        let mut piece = vec![0; PIECE];
        let (out, new_len) = rewrite(&file, out, |blob, to| {
            move_blob(&source, blob, to, &mut piece, progress)
        })?;
        out.publish()?;
        Ok((byte_len, new_len))
    };
    write().map_err(|error: Error| error.with_path(path))
}

/// The lengths that [`compact`] would return for the `.zt` file at `path`: as it is, and as it would
/// be. Nothing is locked or changed, and no blob is read.
///
/// # Errors
///
/// As [`compact`], but for `locked` and what only reading the blobs shows.
pub fn compacted_len(path: impl AsRef<Path>) -> Result<(u64, u64)> {
    let path = path.as_ref();
    let plan = || {
        let file = OpenOptions::new().open(path)?;
        trailer_of(&file)?;
        let piece = vec![0; PIECE];
        let (_, new_len) = rewrite(&file, io::sink(), |blob, to| {
            let mut left = blob.span.byte_len();
            while left > 0 {
                let len = left.min(piece.len() as u64);
                to.write(
                    piece
                        .get(..usize::try_from(len).unwrap_or(0))
                        .unwrap_or(&piece),
                )?;
                left -= len;
            }
            Ok(())
        })?;
        Ok((file.byte_len(), new_len))
    };
    plan().map_err(|error: Error| error.with_path(path))
}

/// Writes the objects of `file` with their blobs, which `put` writes, each once; the length of it
/// all.
fn rewrite<W: Write>(
    file: &File,
    out: W,
    mut put: impl FnMut(&Blob, &mut ContainerWriter<W>) -> Result<()>,
) -> Result<(W, u64)> {
    let mut container = ContainerWriter::new(out)?;
    let mut manifest = Manifest {
        attributes: file.attributes()?,
        objects: Vec::new(),
        extra: file.extra()?,
    };
    let mut moved: HashMap<Span, Span> = HashMap::new();
    for entry in file.entries() {
        let mut object = entry.object()?.clone();
        let mut order: Vec<usize> = (0..object.components.len()).collect();
        order.sort_by_key(|at| {
            let component = object.components.get(*at);
            component.map(|(_, component)| component.blob.span.offset())
        });
        for at in order {
            let Some((role, component)) = object.components.get_mut(at) else {
                continue;
            };
            let blob = &mut component.blob;
            let span = match moved.get(&blob.span) {
                Some(span) => *span,
                None => {
                    let byte_len = blob.decoded_len.unwrap_or(blob.span.byte_len());
                    container.begin_blob(alignment_of(byte_len), None)?;
                    let put = put(blob, &mut container);
                    put.map_err(|error| error.with_object(entry.name()).with_component(role))?;
                    let (span, _) = container.end_blob()?;
                    moved.insert(blob.span, span);
                    span
                }
            };
            blob.span = span;
        }
        manifest.objects.push((entry.name().to_owned(), object));
    }
    let cbor = manifest.to_cbor()?;
    let manifest_end = container.offset().saturating_add(cbor.len() as u64);
    let out = container.finish(&cbor)?;
    Ok((out, manifest_end.saturating_add(FOOTER_LEN)))
}

/// Stored bytes as they are: to their reader they are raw. The digest is theirs.
pub(crate) fn move_blob<W: Write>(
    from: &Arc<dyn Source>,
    blob: &Blob,
    to: &mut ContainerWriter<W>,
    piece: &mut [u8],
    progress: Option<Progress<'_>>,
) -> Result<()> {
    let stored = Blob {
        digest: blob.digest.clone(),
        ..Blob::raw(blob.span)
    };
    let mut reader = BlobReader::new(from, &stored, &Limits::default())?;
    loop {
        let len = reader.read(piece)?;
        let bytes = piece.get(..len).unwrap_or_default();
        if bytes.is_empty() {
            return Ok(());
        }
        to.write(bytes)?;
        report(progress, len as u64)?;
    }
}
