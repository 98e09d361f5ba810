//! A copy of a file without unused bytes, which replaces the file.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use zt_container::{ContainerWriter, Source};
use zt_manifest::Manifest;

use super::extent::{Extent, Moved, Mover, PIECE, Stored, extents};
use super::storage::{Before, LockedFile, Storage};
use super::trailer_of;
use crate::cores::progress::Progress;
use crate::disk::publish::AtomicFile;
use crate::error::{Error, Result};
use crate::file::File;
use crate::file::open::OpenOptions;
use zt_container::memory::zeroed;

/// The manifest's size and the footer magic.
pub(crate) const FOOTER_LEN: u64 = 16;

/// Writes the `.zt` file at `path` anew without what edits have left in it: the bytes of objects that
/// were removed, room for trailers. Blobs are moved as they are stored, each once and those that
/// overlap together, and their digests are checked on the way; nothing is compressed again.
///
/// The new file takes the name of the old one when it is whole and durable, with its permissions
/// and, where that is allowed, its owner; other names of the old file (hard links) keep the old
/// bytes, and so do those who have it open. `progress` is told of stored bytes. Returns the lengths
/// before and after.
///
/// # Errors
///
/// Codes `locked` and `unsupported` as for [`crate::WriteOptions::edit`]; the fault of any object, and
/// `digest-mismatch`: nothing is moved that could not be read; `overlap` where reading each of the blobs
/// that overlap would take more than eight times the file; [`crate::ErrorKind::Io`];
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
        let mut mover = Mover::new(&source, &file.inner.limits, progress)?;
        let (out, new_len) = rewrite(&file, out, |extent, to| mover.copy(extent, to))?;
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
        let piece = zeroed(PIECE as u64)?;
        let (_, new_len) = rewrite(&file, io::sink(), |extent, to| {
            let mut left = extent.span.byte_len();
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
    mut put: impl FnMut(&Extent<'_>, &mut ContainerWriter<W>) -> Result<()>,
) -> Result<(W, u64)> {
    let mut container = ContainerWriter::new(out)?;
    let entries = file.entries();
    let mut stored = Vec::new();
    for entry in &entries {
        let components = entry.object()?.components.iter();
        stored.extend(components.map(|(role, component)| Stored {
            blob: &component.blob,
            object: entry.name(),
            role,
        }));
    }
    let mut moved = Moved::default();
    for extent in extents(stored) {
        container.begin_blob(extent.alignment, None)?;
        put(&extent, &mut container)?;
        let (span, _) = container.end_blob()?;
        moved.push(extent.span, span);
    }
    let mut manifest = Manifest {
        attributes: file.attributes()?,
        objects: Vec::new(),
        extra: file.extra()?,
    };
    for entry in &entries {
        let mut object = entry.object()?.clone();
        for (_, component) in &mut object.components {
            component.blob.span = moved.place(component.blob.span);
        }
        manifest.objects.push((entry.name().to_owned(), object));
    }
    let cbor = manifest.to_cbor()?;
    let manifest_end = container.offset().saturating_add(cbor.len() as u64);
    let out = container.finish(&cbor)?;
    Ok((out, manifest_end.saturating_add(FOOTER_LEN)))
}
