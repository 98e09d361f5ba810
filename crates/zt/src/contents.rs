//! What formats check of contents: indices within their dimensions, pointers that do not fall.

use std::collections::HashMap;

use zt_container::{Encoding, Span};
use zt_manifest::{ByteOrder, DType, Value};

use crate::error::{Error, Result};
use crate::progress::Gauge;
use crate::tensor::Tensor;

/// All that the contents of an object depend on. Objects of one key are checked once: a manifest
/// can give the same indices to any number of objects.
#[derive(PartialEq, Eq, Hash)]
struct Key<'f> {
    format: &'f str,
    shape: &'f [u64],
    /// CBOR.
    attributes: Vec<u8>,
    components: Vec<ComponentKey<'f>>,
}

#[derive(PartialEq, Eq, Hash)]
struct ComponentKey<'f> {
    role: &'f str,
    source: usize,
    span: Span,
    encoding: Encoding,
    dtype: Option<DType>,
    logical_type: Option<&'f str>,
    byte_order: ByteOrder,
}

/// The fault of each tensor's contents, where it has one. Their bytes are known to be right.
///
/// # Errors
///
/// Interruption alone.
pub(crate) fn check(
    tensors: &[(usize, Tensor<'_>)],
    gauge: &Gauge<'_>,
) -> Result<Vec<Option<Error>>> {
    let mut distinct: Vec<Tensor<'_>> = Vec::new();
    let mut places: HashMap<Key<'_>, usize> = HashMap::new();
    let mut place_of = Vec::with_capacity(tensors.len());
    for (_, tensor) in tensors {
        place_of.push(*places.entry(key(tensor)).or_insert_with(|| {
            distinct.push(*tensor);
            distinct.len() - 1
        }));
    }
    let checked = crate::parallel::map(&distinct, |tensor| {
        gauge.report(0)?;
        Ok(check_one(tensor))
    })?;
    let verdicts = tensors.iter().zip(place_of).map(|((_, tensor), place)| {
        let fault = checked.get(place)?.as_ref()?;
        Some(match fault {
            Fault::OfFormat(error) => tensor.blame_format(error.clone()),
            Fault::Unreadable(error) => error.clone(),
        })
    });
    Ok(verdicts.collect())
}

enum Fault {
    OfFormat(zt_formats::Error),
    /// Changed since its bytes were found right, or more than the memory holds.
    Unreadable(Error),
}

fn check_one(tensor: &Tensor<'_>) -> Option<Fault> {
    let format = tensor.registry().format(tensor.format())?;
    let roles = format.data_roles();
    match tensor.parts_of(|role| roles.is_none_or(|roles| roles.contains(&role))) {
        Ok(parts) => format.check_data(&parts).err().map(Fault::OfFormat),
        Err(error) => Some(Fault::Unreadable(error)),
    }
}

fn key<'f>(tensor: &Tensor<'f>) -> Key<'f> {
    let components = tensor.located().map(|part| ComponentKey {
        role: part.role,
        source: tensor.source_index(part),
        span: part.component.blob.span,
        encoding: part.component.blob.encoding,
        dtype: part.component.dtype,
        logical_type: part.component.logical_type.as_deref(),
        byte_order: part.component.byte_order,
    });
    let attributes = Value::Map(tensor.attributes().clone()).to_cbor();
    Key {
        format: tensor.format(),
        shape: tensor.shape(),
        attributes: attributes.unwrap_or_default(),
        components: components.collect(),
    }
}
