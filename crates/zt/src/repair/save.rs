//! What is left of a file, in a file of its own.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use zt_container::{Blob, ContainerWriter, Digest, Source, Span};
use zt_manifest::{ByteOrder, Component, Manifest, Object, Value};

use super::fate::{Fate, Recovered};
use super::recovery::Recovery;
use crate::edit::{FOOTER_LEN, PIECE, move_blob};
use crate::encode::alignment_of;
use crate::error::{Error, ErrorKind, Result};
use crate::file::Entry;
use crate::progress::{Progress, report};
use crate::publish::AtomicFile;
use crate::tensor::{Located, Tensor};

/// What some components of an object are: no value of its format, and nothing that passes for one.
const PARTIAL: &str = "zt.partial/1";

/// The attribute of such an object that says what it was part of.
const PART_OF: &str = "zt.format";

impl Recovery {
    /// Writes what is left of the file to `path`, which appears when it is whole and durable. A file
    /// that has the name is replaced if `replace`, and is an error if not. Returns the length.
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
        let sink = match replace {
            true => AtomicFile::create(path)?,
            false => AtomicFile::create_new(path)?,
        };
        let (sink, byte_len) = self.save_to(sink, progress)?;
        sink.publish()?;
        Ok(byte_len)
    }

    /// Writes what is left of the file, whatever the verdict is, as a file of version 1.2.0, and
    /// gives its length: every object but those that are lost, as it is stored, its digests checked
    /// once more on the way. Of an object that is there in part, its components become an object of
    /// that name and of the format `zt.partial/1`, which no reader takes for the whole.
    ///
    /// # Errors
    ///
    /// Why readers refuse the file, where no manifest is known to be its own; what a component
    /// shows that was right before; [`crate::ErrorKind::Io`]; [`crate::ErrorKind::Interrupted`].
    pub fn save_to<W: Write>(&self, sink: W, progress: Option<Progress<'_>>) -> Result<(W, u64)> {
        let Some(chosen) = &self.chosen else {
            let text = "no manifest is known to be the file's own";
            let unknown = || Error::new(ErrorKind::Misuse, "misuse", text);
            return Err(self.refusal.clone().unwrap_or_else(unknown));
        };
        let file = &chosen.file;
        let mut mover = Mover {
            source: file.inner.sources.first(),
            container: ContainerWriter::new(sink)?,
            moved: HashMap::new(),
            piece: vec![0; PIECE],
            progress,
        };
        let mut manifest = Manifest {
            attributes: file.attributes()?,
            objects: Vec::new(),
            extra: file.extra()?,
        };
        for (entry, recovered) in file.entries().iter().zip(&chosen.objects) {
            if recovered.fate != Fate::Lost {
                let object = mover.object(entry, recovered)?;
                manifest.objects.push((entry.name().to_owned(), object));
            }
        }
        let cbor = manifest.to_cbor()?;
        let manifest_end = mover.container.offset().saturating_add(cbor.len() as u64);
        let sink = mover.container.finish(&cbor)?;
        Ok((sink, manifest_end.saturating_add(FOOTER_LEN)))
    }
}

struct Mover<'m, W> {
    source: Option<&'m Arc<dyn Source>>,
    container: ContainerWriter<W>,
    /// Ranges that several components share stay one.
    moved: HashMap<Span, Span>,
    piece: Vec<u8>,
    progress: Option<Progress<'m>>,
}

impl<W: Write> Mover<'_, W> {
    fn object(&mut self, entry: &Entry<'_>, recovered: &Recovered) -> Result<Object> {
        let mut object = entry.object()?.clone();
        let fates = recovered.components.iter().map(|component| component.fate);
        let kept = std::mem::take(&mut object.components);
        let tensor = entry.tensor()?;
        for (((role, mut component), part), fate) in
            kept.into_iter().zip(tensor.located()).zip(fates)
        {
            if fate != Fate::Lost {
                let moved = self.component(&tensor, part, &mut component);
                moved.map_err(|error| error.with_object(entry.name()).with_component(&role))?;
                object.components.push((role, component));
            }
        }
        if recovered.fate == Fate::Partial {
            let format = std::mem::replace(&mut object.format, PARTIAL.into());
            let attributes = object.attributes.get_or_insert_default();
            attributes.insert(PART_OF, Value::from(format.into_owned()));
        }
        Ok(object)
    }

    fn component<'f>(
        &mut self,
        tensor: &Tensor<'f>,
        part: Located<'f>,
        component: &mut Component,
    ) -> Result<()> {
        let Some(source) = self.source else {
            return Ok(());
        };
        // What files before 1.2 leave out, later ones have to say.
        component.dtype = Some(tensor.dtype_to_write_of(part)?);
        component.blob.decoded_len = Some(tensor.decoded_len_of(part)?);
        if component.byte_order == ByteOrder::Big {
            return self.swapped(tensor, part, component);
        }
        let blob = &mut component.blob;
        blob.span = match self.moved.get(&blob.span) {
            Some(span) => *span,
            None => {
                let byte_len = blob.decoded_len.unwrap_or(blob.span.byte_len());
                let (to, piece) = (&mut self.container, &mut self.piece);
                to.begin_blob(alignment_of(byte_len), None)?;
                move_blob(source, blob, to, piece, self.progress)?;
                let (span, _) = to.end_blob()?;
                self.moved.insert(blob.span, span);
                span
            }
        };
        Ok(())
    }

    /// Elements of layout 0.1 that are big-endian: their digest, checked while they are read, is one
    /// of other bytes than those that are written.
    fn swapped<'f>(
        &mut self,
        tensor: &Tensor<'f>,
        part: Located<'f>,
        component: &mut Component,
    ) -> Result<()> {
        let byte_len = component.blob.span.byte_len();
        let algorithm = component.blob.digest.as_ref().and_then(Digest::algorithm);
        let mut reader = tensor.reader_of(part, tensor.must_verify(part))?;
        self.container
            .begin_blob(alignment_of(byte_len), algorithm)?;
        loop {
            let len = reader.read(&mut self.piece)?;
            let bytes = self.piece.get(..len).unwrap_or_default();
            if bytes.is_empty() {
                break;
            }
            self.container.write(bytes)?;
            report(self.progress, len as u64)?;
        }
        let (span, digest) = self.container.end_blob()?;
        component.byte_order = ByteOrder::Little;
        component.blob = Blob {
            digest,
            ..Blob::raw(span)
        };
        Ok(())
    }
}
