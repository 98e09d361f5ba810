//! The kind `safetensors`.

use zt::foreign::{FileBuilder, Kind, SourceId};
use zt::manifest::Text;
use zt::{
    Attributes, Blob, Component, Error, ErrorKind, Object, RawComponent, RawObject, Result, Source,
    Span,
};
use zt_foreign::{FileKind, FileWriter, Input, Opening, Probe};

use crate::dtype::Dtype;
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
        let header = Header::read(&source)?;
        let mut builder = opening.builder(SAFETENSORS);
        let source = builder.source(source);
        for tensor in header.tensors {
            add(&mut builder, tensor, source);
        }
        if let Some(metadata) = header.metadata {
            builder.attributes(metadata.into_iter().collect::<Attributes>());
        }
        opening.build(builder)
    }

    fn writer(&self) -> Option<&dyn FileWriter> {
        Some(self)
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

/// Adds a tensor as a dense object: a plain range of the file.
fn add(builder: &mut FileBuilder, tensor: Tensor, source: SourceId) {
    let Tensor {
        name,
        dtype,
        shape,
        span,
    } = tensor;
    let Some((storage, logical)) = dtype.to_types() else {
        let mut data = RawComponent::default();
        data.dtype = Some(dtype.as_str().into());
        data.offset = Some(span.offset());
        data.length = Some(span.byte_len());
        let mut raw = RawObject::default();
        raw.shape = Some(shape);
        raw.format = Some("dense".into());
        raw.components = vec![("data".into(), data)];
        let error = Error::new(ErrorKind::Unsupported, "dtype", NoSuchElements(dtype));
        builder.fault(name, raw, error.with_component("data").with_span(span));
        return;
    };
    let mut data = Component::new(storage, Blob::raw(span));
    data.logical_type = logical.map(Text::Borrowed);
    builder.object(
        name,
        Object::new(shape, "dense").with_component("data", data),
        source,
    );
}

#[derive(Debug, thiserror::Error)]
#[error("zTensor 1.2 has no dtype for elements of {0}")]
struct NoSuchElements(Dtype);
