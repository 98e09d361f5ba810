//! Objects of another file, copied with their storage.

use std::io::Write;

use zt_container::memory::in_memory;
use zt_container::{Blob, BlobReader, Digest, DigestAlgorithm, Encoding, Limits, Span};
use zt_manifest::{
    ByteOrder, Component, DType, Fields, check_attributes_len, check_component_count,
};

use crate::cores::progress::{Progress, report};
use crate::cores::read_ahead::{WORTH_A_THREAD, for_each_piece};
use crate::error::{Error, Result};
use crate::file::tensor::{Located, Tensor};
use crate::write::component::ComponentWriter;
use crate::write::encode::ComponentEncoder;
use crate::write::options::{Compression, DEFAULT_LEVEL, ObjectOptions};
use crate::write::writer::Writer;

/// Stored bytes that are copied at a time, in memory that the next component uses again.
const PIECE: usize = WORTH_A_THREAD;

impl Writer<'_> {
    /// Adds an object of another file under `name`, in bounded memory. Format, attributes, unknown
    /// fields and values are kept. So are encodings and digest algorithms, unless the options of this
    /// writer choose others: see [`ComponentWriter::copy`](crate::ComponentWriter::copy). Components are written in the order of
    /// their data.
    ///
    /// # Errors
    ///
    /// As [`Writer::add`], except faults of contents; as [`ComponentWriter::copy`](crate::ComponentWriter::copy).
    pub fn copy(&mut self, name: &str, tensor: &Tensor<'_>) -> Result<()> {
        self.copy_object(name, tensor, None, None)
    }

    /// As [`Writer::copy`], stored with `options`, with a progress function.
    ///
    /// # Errors
    ///
    /// As [`Writer::copy`]; [`crate::ErrorKind::Interrupted`].
    pub fn copy_with(
        &mut self,
        name: &str,
        tensor: &Tensor<'_>,
        options: &ObjectOptions,
        progress: Option<Progress<'_>>,
    ) -> Result<()> {
        self.copy_object(name, tensor, Some(options), progress)
    }

    /// Waits until every copy so far has its digest, and compares each with the digest in the source file.
    /// [`Writer::finish`] does the same. Call this before it to tell a damaged source from a fault of the sink.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::DigestMismatch`] about the first component that is damaged;
    /// [`crate::ErrorKind::Io`] if the sink fails.
    pub fn check_copied(&mut self) -> Result<()> {
        if self.expected.is_empty() {
            return Ok(());
        }
        self.encoder.wait_for_digests()?;
        for (ticket, expected) in &self.expected {
            if let Some(blob) = self.encoder.blob(*ticket) {
                expected.check(blob)?;
            }
        }
        // Only now: a writer with a damaged copy never finishes.
        self.expected.clear();
        Ok(())
    }

    fn copy_object(
        &mut self,
        name: &str,
        tensor: &Tensor<'_>,
        options: Option<&ObjectOptions>,
        progress: Option<Progress<'_>>,
    ) -> Result<()> {
        let source = tensor.object();
        let limits = Limits::default();
        check_component_count(source.components.len(), &limits)
            .and_then(|()| check_attributes_len(source.attributes_len(), &limits))
            .and_then(|()| Fields::Object.check(source.attributes()))
            .and_then(|()| Fields::ExtraOfObject.check(&source.extra))
            .map_err(|error| Error::from(error).with_object(name))?;
        let mut object = self.begin(name, &source.shape, source.format.clone())?;
        if let Some(options) = options {
            object = object.options(options.clone());
        }
        object.state.is_unchecked = tensor.fault().is_some();
        let attributes = &mut object.state.object.attributes;
        attributes.clone_from(&source.attributes);
        object.state.object.extra.clone_from(&source.extra);
        let mut parts: Vec<_> = tensor.located().collect();
        parts.sort_by_key(|part| part.component.blob.span.offset());
        for part in parts {
            let component = part.component;
            let dtype = tensor.dtype_to_write_of(part)?;
            let logical_type = component.logical_type.clone();
            let mut out = object.component(part.role.clone(), dtype, logical_type)?;
            out.set_extra(component.extra.clone())?;
            out.copy_part(tensor, part, progress)?;
        }
        object.finish()
    }
}

impl ComponentWriter<'_, '_, '_> {
    /// Stores the bytes with the encoding and the digest algorithm of `component`, unless the options
    /// of the file or of the object choose others. A checksum that readers of `.zt` do not know is not kept. Call it
    /// before the first byte.
    pub fn store_as(&mut self, component: &Component) {
        let (keeps, blob) = (self.object.state.keeps, &component.blob);
        let mut options = self.object.options_of(&self.state.role);
        if keeps.encoding {
            options.compression = match blob.encoding {
                Encoding::Zstd => Compression::Zstd(DEFAULT_LEVEL),
                _ => Compression::None,
            };
        }
        if keeps.digest
            && let Some(algorithm) = blob.algorithm()
            && !matches!(algorithm, DigestAlgorithm::Other(_))
        {
            options.digest = Some(algorithm);
        }
        self.state.encoder = ComponentEncoder::new(options, blob.decoded_len.unwrap_or(0));
    }

    /// Ends the component, which must be empty, with the bytes of a component of another file. Returns
    /// their number, before compression.
    ///
    /// Encoding and digest algorithm are kept, unless the options of the file or of the object choose
    /// others. A compressed blob is then copied as it is stored, at the speed of a copy, and its digest
    /// is checked on the way. Without a digest, and for bools, it is decoded once before to find damage.
    /// Bytes are decoded and encoded again if other options were chosen, and if the file does not
    /// record the decoded length. Raw bytes whose digest has the same algorithm are hashed once, as they
    /// are written: if it is wrong, this or [`Writer::check_copied`] says so. `progress` counts decoded bytes.
    ///
    /// # Errors
    ///
    /// As [`Tensor::reader`]; [`crate::ErrorKind::Io`] if the sink fails;
    /// [`crate::ErrorKind::Misuse`] after a byte was written; [`crate::ErrorKind::Interrupted`].
    pub fn copy(
        self,
        tensor: &Tensor<'_>,
        role: &str,
        progress: Option<Progress<'_>>,
    ) -> Result<u64> {
        self.copy_part(tensor, tensor.locate(role)?, progress)
    }

    pub(crate) fn copy_part(
        mut self,
        tensor: &Tensor<'_>,
        part: Located<'_>,
        progress: Option<Progress<'_>>,
    ) -> Result<u64> {
        if self.written() > 0 {
            return Err(Error::out_of_order());
        }
        self.store_as(part.component);
        if self.object.state.keeps.encoding
            && let Some(decoded_len) = stored_len(part.component)
        {
            let has_digest = part.component.blob.algorithm().is_some();
            if !has_digest || self.state.dtype == DType::Bool {
                self.check_content(tensor, part, progress)?;
            }
            return self.copy_stored(tensor, part, decoded_len, progress);
        }
        let is_verified = tensor.must_verify(part);
        let expected = self.expected(tensor, part).filter(|_| is_verified);
        let is_verified = is_verified && expected.is_none();
        let rest = self.copy_by_system(tensor, part, is_verified, progress)?;
        let rest = rest.as_ref().map_or(part, |component| Located { component, ..part });
        let mut reader = tensor.reader_of(rest, is_verified)?;
        reader.for_each_piece(part.piece_len(), |bytes| {
            // Checked here, so that the error names the object.
            let checked = self.check(self.written(), bytes);
            checked.map_err(|error| tensor.blame(error, part))?;
            self.write_all(bytes)?;
            report(progress, bytes.len() as u64)
        })?;
        let byte_len = self.written();
        self.finish_expecting(expected)?;
        Ok(byte_len)
    }

    /// What the written bytes must have, where they are the stored ones and get a digest of the same
    /// algorithm. Then they are hashed once, by the writer. Bools are not among them: a wrong digest comes
    /// before a wrong value.
    fn expected(&self, tensor: &Tensor<'_>, part: Located<'_>) -> Option<Expected> {
        let digest = stored_digest(part.component).filter(|_| self.state.dtype != DType::Bool)?;
        let computed = self.state.encoder.digest_of_given()?;
        (digest.algorithm() == Some(computed)).then(|| Expected {
            digest: digest.clone(),
            object: tensor.name().to_owned(),
            role: part.role.to_string(),
            span: part.component.blob.span,
        })
    }

    /// Decodes a component that is copied as it is stored, as writing its content would check it.
    fn check_content(
        &self,
        tensor: &Tensor<'_>,
        part: Located<'_>,
        progress: Option<Progress<'_>>,
    ) -> Result<()> {
        let mut reader = tensor.reader_of(part, tensor.must_verify(part))?;
        let mut read = 0;
        reader.for_each_piece(part.piece_len(), |bytes| {
            let checked = self.check(read, bytes);
            checked.map_err(|error| tensor.blame(error, part))?;
            read = read.strict_add(bytes.len() as u64);
            report(progress, 0)
        })
    }

    /// Copies the stored bytes of a compressed blob and compares its digest.
    fn copy_stored(
        mut self,
        tensor: &Tensor<'_>,
        part: Located<'_>,
        decoded_len: u64,
        progress: Option<Progress<'_>>,
    ) -> Result<u64> {
        let blob = &part.component.blob;
        self.state.encoder.expect_stored(blob.encoding, decoded_len);
        let stored = Blob::raw(blob.span).with_digest(blob.digest.clone());
        let blame = |error| tensor.blame(error, part);
        let source = tensor.source(part);
        let mut reader = BlobReader::new(source, &stored, tensor.limits()).map_err(blame)?;
        let stored_len = blob.span.byte_len();
        let piece_len = in_memory(stored_len.min(PIECE as u64));
        let (mut copied, mut reported) = (0u64, 0);
        let read = |piece: &mut [u8]| reader.read(piece).map_err(blame);
        for_each_piece(read, piece_len, |bytes| {
            let encoder = &mut self.object.writer.encoder;
            self.state.encoder.write(encoder, bytes)?;
            copied = copied.strict_add(bytes.len() as u64);
            let done = share_of(decoded_len, copied, stored_len);
            report(progress, done.strict_sub(reported))?;
            reported = done;
            Ok::<_, Error>(())
        })?;
        self.finish()?;
        Ok(decoded_len)
    }
}

/// The digest of a component that was copied, and where it comes from.
pub(crate) struct Expected {
    digest: Digest,
    object: String,
    role: String,
    span: Span,
}

impl Expected {
    /// Refuses another digest.
    pub(crate) fn check(&self, written: &Blob) -> Result<()> {
        let (expected, found) = match &written.digest {
            Some(found) if *found != self.digest => (self.digest.clone(), found.clone()),
            _ => return Ok(()),
        };
        let error = Error::from(zt_container::Error::DigestMismatch { expected, found });
        let error = error.with_object(&self.object).with_component(&self.role);
        Err(error.with_span(self.span))
    }
}

/// The decoded length of a compressed blob that can be copied as it is stored.
fn stored_len(component: &Component) -> Option<u64> {
    let blob = &component.blob;
    let is_little = component.byte_order == ByteOrder::Little;
    let decoded_len = blob.decoded_len?;
    (blob.encoding == Encoding::Zstd && is_little).then_some(decoded_len)
}

/// The digest of a blob that holds just the bytes that a reader gives.
fn stored_digest(component: &Component) -> Option<&Digest> {
    let is_raw = component.blob.encoding == Encoding::Raw;
    let is_little = component.byte_order == ByteOrder::Little;
    component.blob.digest.as_ref().filter(|_| is_raw && is_little)
}

/// `part / whole` of `byte_len`.
fn share_of(byte_len: u64, part: u64, whole: u64) -> u64 {
    let share = u128::from(byte_len).strict_mul(part.into()).strict_div(whole.max(1).into());
    u64::try_from(share).unwrap_or(byte_len) // A part is at most the whole.
}
