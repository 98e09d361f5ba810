//! A safetensors file as a [`zt::File`].

use zt::foreign::{FileBuilder, SourceId};
use zt::manifest::Text;
use zt::{
    Attributes, Blob, Component, Error, ErrorKind, Object, RawComponent, RawObject, Result, Source,
};
use zt_foreign::{Input, Opening};

use crate::SAFETENSORS;
use crate::dtype::Dtype;
use crate::header::{Header, Tensor};

/// Opens a single file. Cost: reads the header and no data.
pub(super) fn open(source: Box<dyn Source>, opening: Opening<'_>) -> Result<Input> {
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

/// Adds a tensor as a dense object: a plain range of the file.
pub(super) fn add(builder: &mut FileBuilder, tensor: Tensor, source: SourceId) {
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
