//! Plain arrays as NumPy has them: one as a file of its own.

use std::io::Write;

use zt::{DType, Result};

use super::array::byte_len;
use super::descr::descr_of;
use super::header::render;
use crate::convert::Sink;
use crate::fault::Loss;
use crate::losses::Losses;
use crate::member::NPY;
use crate::merge::{Incoming, Merged, display};
use crate::object::Outgoing;
use crate::{ConvertOptions, Summary};

/// An object as an array of NumPy.
pub(crate) struct Array<'i> {
    object: Outgoing<'i>,
    header: Vec<u8>,
    byte_len: u64,
}

impl<'i> Array<'i> {
    /// The object as an array; `None` where nothing of it can be said and that is allowed.
    ///
    /// bf16 and FP8 are no types of NumPy. Where losses are allowed their values are written as
    /// f32, which holds each of them exactly.
    pub(crate) fn new(
        incoming: &Incoming<'i>,
        losses: &mut Losses<'_, '_>,
        options: &ConvertOptions<'_>,
    ) -> Result<Option<Self>> {
        let mut object = Outgoing::new(incoming, options.dtype);
        let name = Some(object.name());
        let target = losses.target;
        if !losses.make_plain(&mut object)? {
            return Ok(None);
        }
        if widens(&object) {
            let (dtype, logical_type) = object.dense_type().unwrap_or((DType::BF16, None));
            let logical_type = logical_type.map(|name| name.into_owned());
            losses.accept(
                Loss::Type {
                    target,
                    dtype,
                    logical_type,
                },
                name,
            )?;
            object = Outgoing::new(incoming, Some(DType::F32));
            if !object.is_dense() {
                object.decode(Some(DType::F32));
            }
        }
        let Some(descr) = losses.typed(&object, descr_of)? else {
            return Ok(None);
        };
        losses.rest(&object, &[])?;
        let shape = &object.object().shape;
        let width = descr
            .get(2..)
            .and_then(|width| width.parse().ok())
            .unwrap_or(1);
        let byte_len = byte_len(width, shape);
        let Some((header, byte_len)) = render(&descr, shape).zip(byte_len) else {
            losses.accept(Loss::Shape { target }, name)?;
            return Ok(None);
        };
        Ok(Some(Array {
            object,
            header,
            byte_len,
        }))
    }

    #[cfg(feature = "npz")]
    pub(crate) fn name(&self) -> &'i str {
        self.object.name()
    }

    /// Bytes of the whole array.
    #[cfg(feature = "npz")]
    pub(crate) fn byte_len(&self) -> Option<u64> {
        self.byte_len.checked_add(self.header.len() as u64)
    }

    /// Writes header and elements.
    pub(crate) fn write(
        &self,
        out: &mut (dyn Write + Send),
        options: &ConvertOptions<'_>,
        summary: &mut Summary,
    ) -> Result<()> {
        out.write_all(&self.header)?;
        let (object, byte_len) = (&self.object, self.byte_len);
        let overflow = object.write_values(byte_len, out, options.progress)?;
        options.accept_overflow(overflow, object.name(), summary)?;
        summary.bytes = summary.bytes.saturating_add(self.byte_len);
        summary.objects = summary.objects.saturating_add(1);
        Ok(())
    }
}

/// Whether the type is one that NumPy does not have, and whose values f32 holds.
fn widens(object: &Outgoing<'_>) -> bool {
    matches!(
        object.dense_type(),
        Some((DType::BF16, None) | (DType::U8, Some(_)))
    )
}

/// What is said of the file itself, which arrays have no room for.
pub(crate) fn refuse_attributes(merged: &Merged<'_>, losses: &mut Losses<'_, '_>) -> Result<()> {
    let target = losses.target;
    for (key, _) in merged.attributes.iter().flatten() {
        let key = display(key);
        losses.accept(Loss::FileAttribute { target, key }, None)?;
    }
    losses.fields(&merged.extra, None)
}

/// Writes the one object there is. Its name is not said: a reader takes the file's.
pub(super) fn write(
    merged: Merged<'_>,
    sink: &mut Sink<'_>,
    options: &ConvertOptions<'_>,
    summary: &mut Summary,
) -> Result<()> {
    let mut losses = Losses::new(NPY, options, summary);
    refuse_attributes(&merged, &mut losses)?;
    let mut first = None;
    for incoming in &merged.objects {
        let array = if first.is_some() {
            let loss = Loss::Objects { target: NPY };
            losses.accept(loss, Some(incoming.tensor.name()))?;
            None
        } else {
            Array::new(incoming, &mut losses, options)?
        };
        first = losses.kept(incoming, array).or(first);
    }
    match first {
        Some(array) => array.write(sink, options, summary),
        None => Err(crate::fault::Fault::NothingToWrite { kind: NPY }.into()),
    }
}
