//! The format's check of contents: indices within their dimensions, pointers that do not fall.

use std::collections::HashMap;

use zt_container::{Encoding, Span};
use zt_formats::ObjectFormat;
use zt_manifest::{ByteOrder, DType};

use crate::cores::progress::Gauge;
use crate::error::{Error, Result};
use crate::file::overlap::Allowance;
use crate::file::tensor::Tensor;

impl Tensor<'_> {
    /// Checks the object's contents by the rules of its format: indices within the shape, pointers that
    /// do not fall. An object of an unknown format passes.
    ///
    /// Only the components that the format checks are read, which are the indices. They are in memory
    /// while the check runs. Call this before you pass an object's components on unread.
    ///
    /// # Errors
    ///
    /// Malformed, with the role, the position and the rule; as [`Tensor::bytes`].
    pub fn check_data(&self) -> Result<()> {
        self.expect_meaning()?;
        check_one(self).map_err(|fault| fault.of(self))
    }
}

/// All that the contents of an object depend on. Objects of one key are looked at once: a manifest
/// can give the same bytes to any number of objects.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Key<'f> {
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

/// The fault of each tensor's contents, where it has one. Their digests are known to be right.
/// `allowance` limits the bytes that are checked: many objects can give the same indices other shapes.
/// Fails only if it is interrupted: all attributes that a file has can be encoded.
pub(crate) fn check(
    tensors: &[(usize, Tensor<'_>)],
    mut allowance: Allowance,
    gauge: &Gauge<'_>,
) -> Result<Vec<Option<Error>>> {
    let mut distinct: Vec<(Tensor<'_>, Result<()>)> = Vec::new();
    let mut places: HashMap<Key<'_>, usize> = HashMap::new();
    let mut place_of = Vec::with_capacity(tensors.len());
    for (_, tensor) in tensors {
        place_of.push(*places.entry(key(tensor)?).or_insert_with(|| {
            distinct.push((*tensor, allowance.spend(byte_len(tensor))));
            distinct.len().strict_sub(1)
        }));
    }
    let checked = crate::cores::parallel::map(&distinct, |(tensor, allowed)| {
        gauge.report(0)?;
        Ok(match allowed {
            Ok(()) => check_one(tensor).err(),
            Err(error) => Some(Fault::Unreadable(error.clone().with_object(tensor.name()))),
        })
    })?;
    let verdicts = tensors.iter().zip(place_of).map(|((_, tensor), place)| {
        let fault = checked.get(place)?.as_ref()?;
        Some(fault.of(tensor))
    });
    Ok(verdicts.collect())
}

/// A fault of contents that several objects may share.
pub(crate) enum Fault {
    OfFormat(zt_formats::Error),
    /// Changed since its bytes were found right, or more than the memory holds.
    Unreadable(Error),
}

impl Fault {
    pub(crate) fn of(&self, tensor: &Tensor<'_>) -> Error {
        match self {
            Fault::OfFormat(error) => tensor.blame_format(error.clone()),
            Fault::Unreadable(error) => error.clone(),
        }
    }
}

/// Checks the contents of one object. They are in memory during the check alone.
fn check_one(tensor: &Tensor<'_>) -> std::result::Result<(), Fault> {
    let Some(format) = tensor.registry().format(tensor.format()) else {
        return Ok(());
    };
    if format.data_roles().is_some_and(<[&str]>::is_empty) {
        return Ok(());
    }
    let parts = tensor.parts_of(|role| is_asked(format, role));
    let parts = parts.map_err(Fault::Unreadable)?;
    format.check_data(&parts).map_err(Fault::OfFormat)
}

/// Bytes that are looked at.
fn byte_len(tensor: &Tensor<'_>) -> u64 {
    let Some(format) = tensor.registry().format(tensor.format()) else {
        return 0;
    };
    let parts = tensor.components();
    let parts = parts.filter(|(role, _)| is_asked(format, role));
    let lens = parts.map(|(_, component)| component.blob.decoded_len.unwrap_or(0));
    lens.fold(0, u64::saturating_add)
}

fn is_asked(format: &dyn ObjectFormat, role: &str) -> bool {
    format.data_roles().is_none_or(|roles| roles.contains(&role))
}

pub(crate) fn key<'f>(tensor: &Tensor<'f>) -> Result<Key<'f>> {
    let components = tensor.located().map(|part| ComponentKey {
        role: part.role,
        source: tensor.source_index(part),
        span: part.component.blob.span,
        encoding: part.component.blob.encoding,
        dtype: part.component.dtype,
        logical_type: part.component.logical_type.as_deref(),
        byte_order: part.component.byte_order,
    });
    Ok(Key {
        format: tensor.format(),
        shape: tensor.shape(),
        attributes: tensor.attributes().to_cbor()?,
        components: components.collect(),
    })
}
