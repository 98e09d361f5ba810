//! The kind `safetensors`.

use std::path::Path;

use zt::foreign::{FileBuilder, Kind, SourceId, WarningKind};
use zt::{Attributes, Blob, Result, Source, Span, Warning};
use zt_foreign::slices::{SHARDING_INFO, saved_offsets};
use zt_foreign::{AttributeChange, Fault, FileKind, FileWriter, Input, Opening, Probe};

use crate::header::{HEADER_MAX, Header, Tensor};

/// The kind of safetensors files.
pub const SAFETENSORS: Kind = Kind::new("safetensors");

/// Recognises, opens and writes safetensors files.
#[derive(Debug, Clone, Copy, Default)]
pub struct SafeTensors;

impl FileKind for SafeTensors {
    fn kind(&self) -> Kind {
        SAFETENSORS
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["safetensors"]
    }

    fn recognise(&self, probe: &Probe<'_>) -> Result<bool> {
        Ok(is_safetensors(probe))
    }

    fn open(&self, source: Box<dyn Source>, opening: Opening<'_>) -> Result<Input> {
        let header = Header::read_with(&source, opening.options.truncated)?;
        let mut builder = opening.builder(SAFETENSORS);
        let found = source.byte_len();
        let end = header.tensors.last().map(|tensor| tensor.span.end());
        if end.is_some_and(|end| end > found) {
            builder.truncated(found, end);
        }
        let source = builder.source(source);
        for tensor in header.tensors {
            add(&mut builder, tensor, source);
        }
        if let Some(blank) = header.tolerated {
            builder.tolerated(blank);
        }
        if let Some(metadata) = header.metadata {
            note_slices(&metadata, opening.path, &mut builder);
            builder.attributes(metadata.into_iter().collect::<Attributes>());
        }
        opening.build(builder)
    }

    /// Metadata are texts.
    fn set_attribute(&self, attributes: &mut Attributes, change: &AttributeChange) -> Result<()> {
        if let Some(value_type) = &change.value_type {
            let value_type = value_type.clone();
            return Err(Fault::NoAttributeType { value_type }.into());
        }
        let text = change.values.iter().find(|value| value.as_str().is_some());
        let text = text
            .ok_or_else(|| Fault::AttributeType { key: change.key.clone(), value_type: "text" })?;
        attributes.insert(change.key.as_str(), text.clone());
        Ok(())
    }

    fn writer(&self) -> Option<&dyn FileWriter> {
        Some(self)
    }
}

/// Warns of slices of tensors, as DCP's `HuggingFaceStorageWriter` leaves them. It notes the offsets of whole
/// tensors, too, which are all 0. The first slices have such offsets as well, and are known by the name of
/// their file.
fn note_slices(metadata: &[(String, String)], path: Option<&Path>, builder: &mut FileBuilder) {
    let mut metadata = metadata.iter();
    let Some((_, text)) = metadata.find(|(key, _)| key == SHARDING_INFO) else {
        return;
    };
    let offsets = match saved_offsets(text) {
        Ok(offsets) => offsets,
        Err(fault) => return builder.tolerated(fault.into()),
    };
    let name = path.and_then(Path::file_name).unwrap_or_default();
    let is_shard = name.as_encoded_bytes().starts_with(b"shard-");
    let mut offsets = offsets.iter().flat_map(|(_, offsets)| offsets);
    if is_shard || offsets.any(|offset| *offset > 0) {
        let message = "the file has slices of tensors; open it together with the files of the other \
                       processes: their folder, or all of them as inputs";
        builder.warning(Warning::new("slices", message).with_kind(WarningKind::Part));
    }
}

/// Recognises a length and JSON, because there is no magic. A broken header is recognised too
/// where no other kind of file begins so.
fn is_safetensors(probe: &Probe<'_>) -> bool {
    let Some((len, header)) = probe.head().split_first_chunk() else {
        return false;
    };
    let len = u64::from_le_bytes(*len);
    match header {
        // With any length.
        [b'{', ..] => true,
        [] => len == 0,
        // Other JSON, a byte order mark or white space, if the length is possible.
        [b'[' | b'"' | b' ' | b'\t' | b'\n' | b'\r' | 0xEF, ..] => {
            let fits = Span::new(8, len).is_some_and(|header| header.end() <= probe.byte_len());
            fits && (2..=HEADER_MAX).contains(&len)
        }
        _ => false,
    }
}

/// Adds a tensor as an object: a plain range of the file.
fn add(builder: &mut FileBuilder, tensor: Tensor, source: SourceId) {
    let Tensor { name, dtype, shape, span } = tensor;
    let elements = dtype.meaning().component(Blob::raw(span));
    builder.object(name, dtype.meaning().object(shape, elements), source);
}
