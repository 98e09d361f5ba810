//! A new file with everything that could be recovered.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

use zt_container::{Blob, ContainerWriter, Limits, memory::zeroed};
use zt_manifest::{Attributes, ByteOrder, Component, DType, Manifest, Object, Value};

use super::fate::{Fate, Recovered};
use super::recovery::Recovery;
use crate::cores::progress::{Progress, report};
use crate::disk::publish::AtomicFile;
use crate::edit::{FOOTER_LEN, Moved, Mover, Stored, extents};
use crate::error::{Error, ErrorKind, Result};
use crate::file::Entry;
use crate::file::tensor::{Located, Tensor};
use crate::write::encode::alignment_of;

/// The format of an object that has only some of its components. No reader takes it for the whole.
const PARTIAL: &str = "zt.partial/1";

/// The attribute of such an object with its original format.
const PART_OF: &str = "zt.format";

impl Recovery {
    /// Writes what is left of the file to `path`, which appears when it is complete and durable. An
    /// existing file is replaced if `replace` is true, and an error otherwise. Returns the length.
    ///
    /// # Errors
    ///
    /// As [`Recovery::save_to`]; [`crate::ErrorKind::Io`].
    pub fn save(
        &self,
        path: impl AsRef<Path>,
        replace: bool,
        progress: Option<Progress<'_>>,
    ) -> Result<u64> {
        let sink = if replace { AtomicFile::create(path)? } else { AtomicFile::create_new(path)? };
        let (sink, byte_len) = self.save_to(sink, progress)?;
        sink.publish()?;
        Ok(byte_len)
    }

    /// Writes what is left of the file as a file of version 1.2.0, whatever the verdict is, and
    /// returns its length. Objects are copied as they are stored, except lost ones, and their
    /// digests are checked again. The components of an incomplete object become an object of that
    /// name in the format `zt.partial/1`, which no reader takes for the whole.
    ///
    /// # Errors
    ///
    /// Why readers refuse the file, if no manifest is known to be its own; the fault of a component
    /// that was sound before; [`crate::ErrorKind::Io`]; [`crate::ErrorKind::Interrupted`].
    pub fn save_to<W: Write>(&self, sink: W, progress: Option<Progress<'_>>) -> Result<(W, u64)> {
        let Some(chosen) = &self.chosen else {
            let text = "no manifest is known to be the file's own";
            let unknown = || Error::new(ErrorKind::Misuse, "misuse", text);
            return Err(self.refusal.clone().unwrap_or_else(unknown));
        };
        let file = &chosen.file;
        let entries = file.entries();
        let kept = || entries.iter().zip(&chosen.objects);
        let mut saving = Saving {
            container: ContainerWriter::new(sink)?,
            moved: Moved::extents(),
            placed: HashMap::new(),
            progress,
        };
        let stored = kept().flat_map(|(entry, recovered)| stored(entry, recovered));
        if let Some(source) = file.inner.sources.first() {
            let mut mover = Mover::new(source, &file.inner.limits, progress)?;
            for extent in extents(stored.collect()) {
                let to = &mut saving.container;
                to.begin_blob(extent.alignment, None)?;
                mover.copy(&extent, to)?;
                let (span, _) = to.end_blob()?;
                saving.moved.push(extent.span, span);
            }
        }
        let mut manifest =
            Manifest { attributes: file.attributes()?, objects: Vec::new(), extra: file.extra()? };
        for (entry, recovered) in kept() {
            if recovered.fate != Fate::Lost {
                let object = saving.object(entry, recovered)?;
                manifest.objects.push((entry.name().to_owned(), object));
            }
        }
        let cbor = manifest.to_cbor()?;
        let manifest_end = saving.container.offset().strict_add(cbor.len() as u64);
        let sink = saving.container.finish(&cbor)?;
        Ok((sink, manifest_end.strict_add(FOOTER_LEN)))
    }
}

/// The components that are copied as they are stored.
fn stored<'e>(entry: &'e Entry<'_>, recovered: &'e Recovered) -> impl Iterator<Item = Stored<'e>> {
    let object = entry.object().ok().filter(|_| recovered.fate != Fate::Lost);
    let components = object.into_iter().flat_map(|object| &object.components);
    let kept = components.zip(&recovered.components);
    let kept = kept.filter(|((_, component), kept)| {
        kept.fate != Fate::Lost && component.byte_order == ByteOrder::Little
    });
    kept.map(|((role, component), _)| Stored { blob: &component.blob, object: entry.name(), role })
}

struct Saving<'m, W> {
    container: ContainerWriter<W>,
    moved: Moved,
    /// The new place of each blob, with the element width by which it was reversed. A manifest may
    /// name the same bytes many times; they are decoded and written once.
    placed: HashMap<(Blob, usize), Blob>,
    progress: Option<Progress<'m>>,
}

impl<W: Write> Saving<'_, W> {
    fn object(&mut self, entry: &Entry<'_>, recovered: &Recovered) -> Result<Object> {
        let mut object = entry.object()?.clone();
        let fates = recovered.components.iter().map(|component| component.fate);
        let kept = std::mem::take(&mut object.components);
        let tensor = entry.tensor()?;
        for (((role, mut component), part), fate) in
            kept.into_iter().zip(tensor.located()).zip(fates)
        {
            if fate != Fate::Lost {
                let placed = self.component(&tensor, part, &mut component);
                placed.map_err(|error| error.with_object(entry.name()).with_component(&role))?;
                object.components.push((role, component));
            }
        }
        if recovered.fate == Fate::Partial {
            let format = std::mem::replace(&mut object.format, PARTIAL.into());
            let format = Value::from(format.into_owned());
            let attributes = object.attributes.get_or_insert_default();
            attributes.insert(PART_OF, format.clone());
            // If this attribute exceeds a reader's limit, the components are kept and the other
            // attributes dropped.
            if object.attributes_len() > Limits::default().attributes_len {
                object.attributes = Some(Attributes::from([(PART_OF, format)]));
            }
        }
        Ok(object)
    }

    fn component<'f>(
        &mut self,
        tensor: &Tensor<'f>,
        part: Located<'f>,
        component: &mut Component,
    ) -> Result<()> {
        // Files of 1.2 need fields that older files may omit.
        component.dtype = Some(tensor.dtype_to_write_of(part)?);
        let reversed = match component.byte_order {
            ByteOrder::Little => 1,
            ByteOrder::Big => part.component.dtype.map_or(1, DType::byte_len),
        };
        let blob = &part.component.blob;
        let place = (blob.clone(), reversed);
        let placed = match self.placed.get(&place) {
            Some(placed) => placed.clone(),
            None if component.byte_order == ByteOrder::Big => self.swapped(tensor, part)?,
            None => Blob {
                span: self.moved.place(blob.span)?,
                decoded_len: Some(tensor.decoded_len_of(part)?),
                // The table was not checked, and may be damaged.
                chunks: None,
                ..blob.clone()
            },
        };
        component.byte_order = ByteOrder::Little;
        component.blob = placed.clone();
        self.placed.insert(place, placed);
        Ok(())
    }

    /// Elements of layout 0.1 that are big-endian are reversed. Their digest is checked on the
    /// bytes as read, and a new one is written.
    fn swapped<'f>(&mut self, tensor: &Tensor<'f>, part: Located<'f>) -> Result<Blob> {
        let blob = &part.component.blob;
        let mut reader = tensor.reader_of(part, tensor.must_verify(part))?;
        let alignment = alignment_of(blob.span.byte_len());
        self.container.begin_blob(alignment, blob.algorithm())?;
        let mut piece = zeroed(part.piece_len() as u64)?;
        loop {
            let len = reader.read_elements(&mut piece)?;
            let bytes = piece.get(..len).unwrap_or_default();
            if bytes.is_empty() {
                break;
            }
            self.container.write(bytes)?;
            report(self.progress, len as u64)?;
        }
        let (span, digest) = self.container.end_blob()?;
        Ok(Blob::raw(span).with_digest(digest))
    }
}
