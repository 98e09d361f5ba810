//! A copy of a file without unused bytes, which replaces the file.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use zt_container::{ALIGNMENT, Blob, ContainerWriter, Source, Span, memory::zeroed};
use zt_manifest::Manifest;

use super::extent::{Extent, Moved, Mover, PIECE, Stored, extents, runs};
use super::storage::{Before, LockedFile, Storage};
use super::trailer_of;
use crate::cores::progress::Progress;
use crate::disk::publish::AtomicFile;
use crate::error::{Error, Result};
use crate::file::File;
use crate::file::open::OpenOptions;

/// The manifest's size and the footer magic.
pub(crate) const FOOTER_LEN: u64 = 16;

/// Rewrites the `.zt` file at `path` without the bytes that edits left unused: removed objects, and
/// room for trailers. Returns the lengths before and after.
///
/// Each blob is copied once, as it is stored, and its digest is checked. Blobs that overlap move
/// together. Nothing is compressed again. `progress` counts stored bytes.
///
/// The new file replaces the old one when it is complete and durable. It has the permissions of the
/// old file and, if the system allows it, the owner. Other names of the old file (hard links) and
/// open readers keep the old bytes.
///
/// # Errors
///
/// After an error the old file is there.
///
/// * Codes `locked` and `unsupported`, as for [`crate::WriteOptions::edit`].
/// * The fault of any object, and `digest-mismatch`: only sound bytes are copied.
/// * Code `overlap` if the reads of blobs that overlap would exceed eight times the file.
/// * [`crate::ErrorKind::Io`] and [`crate::ErrorKind::Interrupted`].
pub fn compact(path: impl AsRef<Path>, progress: Option<Progress<'_>>) -> Result<(u64, u64)> {
    let path = path.as_ref();
    let write = || {
        // The lock holds until the new file has the name.
        let storage = Arc::new(LockedFile::open(path)?);
        let byte_len = storage.byte_len()?;
        let source: Arc<dyn Source> =
            Arc::new(Before { storage: Arc::clone(&storage) as Arc<dyn Storage>, byte_len });
        let file = OpenOptions::new().open_source(Arc::clone(&source))?;
        trailer_of(&file)?;
        let out = AtomicFile::replace_locked(path)?;
        let mut mover = Mover::new(&source, &file.inner.limits, progress)?;
        let (out, new_len) = rewrite(&file, out, |extent, to| mover.copy(extent, to))?;
        if cfg!(not(unix)) {
            // Some systems refuse to replace an open file.
            drop(mover);
            drop((file, source, storage));
        }
        out.publish()?;
        Ok((byte_len, new_len))
    };
    write().map_err(|error: Error| error.with_path(path))
}

/// The lengths that [`compact`] would return for the `.zt` file at `path`, before and after. Nothing is
/// locked or changed, and no blob is read.
///
/// # Errors
///
/// As [`compact`], except `locked` and faults of the blobs' bytes.
pub fn compacted_len(path: impl AsRef<Path>) -> Result<(u64, u64)> {
    let path = path.as_ref();
    let plan = || {
        let file = OpenOptions::new().open(path)?;
        trailer_of(&file)?;
        let piece = zeroed(PIECE as u64)?;
        let (_, new_len) = rewrite(&file, io::sink(), |extent, to| {
            let mut left = extent.span.byte_len();
            while left > 0 {
                let len = usize::try_from(left).map_or(piece.len(), |left| left.min(piece.len()));
                to.write(piece.get(..len).unwrap_or_default())?;
                left = left.strict_sub(len as u64);
            }
            Ok(())
        })?;
        Ok((file.byte_len(), new_len))
    };
    plan().map_err(|error: Error| error.with_path(path))
}

/// Writes the objects of `file`; `put` writes each blob once. Returns the length of the new file.
fn rewrite<W: Write>(
    file: &File,
    out: W,
    mut put: impl FnMut(&Extent<'_>, &mut ContainerWriter<W>) -> Result<()>,
) -> Result<(W, u64)> {
    let mut container = ContainerWriter::new(out)?;
    let entries = file.entries();
    let (mut stored, mut tables) = (Vec::new(), Vec::new());
    for entry in &entries {
        for (role, component) in &entry.object()?.components {
            let blob = &component.blob;
            stored.push(Stored { blob, object: entry.name(), role });
            tables.extend(blob.chunks.as_deref().map(|chunks| {
                let table = Blob::raw(chunks.span).with_digest(Some(chunks.digest.clone()));
                (table, entry.name(), role)
            }));
        }
    }
    let mut moved = Moved::extents();
    for extent in extents(stored) {
        container.begin_blob(extent.alignment, None)?;
        put(&extent, &mut container)?;
        let (span, _) = container.end_blob()?;
        moved.push(extent.span, span);
    }
    let tables = tables.iter();
    let tables = tables.map(|(blob, object, role)| Stored { blob, object, role });
    let runs = runs(tables.collect());
    let mut moved_runs = Moved::runs();
    if !runs.is_empty() {
        container.begin_blob(ALIGNMENT, None)?;
        for run in runs {
            let to = Span::exact(container.offset(), run.span.byte_len());
            put(&run, &mut container)?;
            moved_runs.push(run.span, to);
        }
        container.end_blob()?;
    }
    let mut manifest =
        Manifest { attributes: file.attributes()?, objects: Vec::new(), extra: file.extra()? };
    for entry in &entries {
        let mut object = entry.object()?.clone();
        for (_, component) in &mut object.components {
            component.blob.span = moved.place(component.blob.span)?;
            if let Some(chunks) = &mut component.blob.chunks {
                chunks.span = moved_runs.place(chunks.span)?;
            }
        }
        manifest.objects.push((entry.name().to_owned(), object));
    }
    let cbor = manifest.to_cbor()?;
    let manifest_end = container.offset().strict_add(cbor.len() as u64);
    let out = container.finish(&cbor)?;
    Ok((out, manifest_end.strict_add(FOOTER_LEN)))
}
