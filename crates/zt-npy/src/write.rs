//! Plain arrays as NumPy has them: one as a file of its own.

use std::io::Write;

use zt::{DType, Result};
use zt_foreign::{Fault, Incoming, Job, Loss, Merged, Outgoing, Sink};

use crate::NPY;
use crate::array::byte_len;
use crate::descr::descr_of;
use crate::header::render;

/// An object as an array of NumPy.
pub(crate) struct Array<'i> {
    object: Outgoing<'i>,
    header: Vec<u8>,
    byte_len: u64,
}

impl<'i> Array<'i> {
    /// The object as an array; `None` where nothing of it can be said and that is allowed.
    ///
    /// bf16 and FP8 are no types of NumPy. Where job are allowed their values are written as
    /// f32, which holds each of them exactly.
    pub(crate) fn new(incoming: &Incoming<'i>, job: &mut Job<'_>) -> Result<Option<Self>> {
        let mut object = Outgoing::new(incoming, job.options.dtype);
        let name = Some(object.name());
        if !job.make_plain(&mut object)? {
            return Ok(None);
        }
        if widens(&object) {
            let (dtype, logical_type) = object.dense_type().unwrap_or((DType::BF16, None));
            let logical_type = logical_type.map(|name| name.into_owned());
            job.accept(
                Loss::Type {
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
        let Some(descr) = job.typed(&object, descr_of)? else {
            return Ok(None);
        };
        job.rest(&object, &[])?;
        let shape = &object.object().shape;
        let width = descr
            .get(2..)
            .and_then(|width| width.parse().ok())
            .unwrap_or(1);
        let byte_len = byte_len(width, shape);
        let Some((header, byte_len)) = render(&descr, shape).zip(byte_len) else {
            job.accept(Loss::Shape, name)?;
            return Ok(None);
        };
        Ok(Some(Array {
            object,
            header,
            byte_len,
        }))
    }

    pub(crate) fn name(&self) -> &'i str {
        self.object.name()
    }

    /// Bytes of the whole array.
    pub(crate) fn byte_len(&self) -> Option<u64> {
        self.byte_len.checked_add(self.header.len() as u64)
    }

    /// Writes header and elements.
    pub(crate) fn write(&self, out: &mut (dyn Write + Send), job: &mut Job<'_>) -> Result<()> {
        out.write_all(&self.header)?;
        let (object, byte_len) = (&self.object, self.byte_len);
        let overflow = object.write_values(byte_len, out, job.options.progress)?;
        job.written(object.name(), byte_len, overflow)
    }
}

/// NumPy's name of a dtype, and all bytes that an `.npy` file has before row-major elements of it.
///
/// `None` where NumPy has no such dtype, and for a shape that no header has room for.
pub fn npy_header(
    dtype: DType,
    logical_type: Option<&str>,
    shape: &[u64],
) -> Option<(String, Vec<u8>)> {
    let descr = descr_of(dtype, logical_type)?;
    let header = render(&descr, shape)?;
    Some((descr, header))
}

/// Whether the type is one that NumPy does not have, and whose values f32 holds.
fn widens(object: &Outgoing<'_>) -> bool {
    matches!(
        object.dense_type(),
        Some((DType::BF16, None) | (DType::U8, Some(_)))
    )
}

/// Writes the one object there is. Its name is not said: a reader takes the file's.
pub(super) fn write(merged: Merged<'_>, sink: &mut Sink<'_>, job: &mut Job<'_>) -> Result<()> {
    job.refuse_attributes(merged.attributes.as_ref(), &merged.extra)?;
    let mut first = None;
    for incoming in &merged.objects {
        let array = if first.is_some() {
            job.accept(Loss::Objects, Some(incoming.tensor.name()))?;
            None
        } else {
            Array::new(incoming, job)?
        };
        first = job.kept(incoming, array).or(first);
    }
    match first {
        Some(array) => array.write(sink, job),
        None => Err(Fault::NothingToWrite { kind: NPY }.into()),
    }
}
