//! Writes any objects as a safetensors file: the header, then the values, streamed.

use std::cmp::Ordering;
use std::io::Write;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use zt::foreign::ReadAhead;
use zt::{Attributes, Error, Result};
use zt_foreign::{
    Fault, FileWriter, Incoming, Job, Loss, Merged, Outgoing, SetForm, Sink, display,
};

use crate::dtype::Dtype;
use crate::header::{HEADER_MAX, METADATA};
use crate::kind::{SAFETENSORS, SafeTensors};
use crate::violation::SafetensorsViolation;

impl FileWriter for SafeTensors {
    /// Writes the same bytes as the official library, except for the order of the metadata: there it is
    /// random, here it is sorted.
    fn write(&self, merged: Merged<'_>, sink: &mut Sink<'_>, job: &mut Job<'_>) -> Result<()> {
        let metadata = metadata(job, merged.attributes)?;
        job.fields(&merged.extra, None);
        let mut tensors = Vec::with_capacity(merged.objects.len());
        for incoming in &merged.objects {
            let object = Outgoing::new(incoming);
            let tensor = tensor(job, object)?;
            tensors.extend(job.kept(incoming, tensor));
        }
        job.check()?;
        tensors.sort_by(|a, b| data_order(a.entry(), b.entry()));
        let mut entries: Vec<TensorInfo<'_>> = tensors.iter().map(Tensor::entry).collect();
        sink.write_all(&layout(metadata.as_deref(), &mut entries)?)?;
        let mut ahead = ReadAhead::new(tensors.iter().map(|tensor| tensor.object.tensor));
        for tensor in &tensors {
            ahead.advance();
            let (object, byte_len) = (&tensor.object, tensor.byte_len);
            let cast = object.write_values(byte_len, sink, job.options.progress)?;
            job.written(tensor.name(), byte_len, cast)?;
        }
        Ok(())
    }

    fn set_form(&self) -> Option<SetForm> {
        Some(SetForm::Indexed)
    }

    fn shard_len(&self, incoming: &Incoming<'_>, job: &mut Job<'_>) -> Result<Option<u64>> {
        let object = Outgoing::new(incoming);
        Ok(tensor(job, object)?.map(|tensor| tensor.byte_len))
    }
}

/// An object as a tensor of safetensors.
struct Tensor<'i> {
    object: Outgoing<'i>,
    dtype: Dtype,
    byte_len: u64,
}

impl<'i> Tensor<'i> {
    fn name(&self) -> &'i str {
        self.object.name()
    }

    fn entry(&self) -> TensorInfo<'_> {
        TensorInfo { name: self.name(), dtype: self.dtype, shape: &self.object.object().shape }
    }
}

/// The object as a tensor; `None` if safetensors cannot represent it and losses are allowed.
fn tensor<'i>(job: &mut Job<'_>, mut object: Outgoing<'i>) -> Result<Option<Tensor<'i>>> {
    let name = object.name();
    if name == METADATA {
        job.accept(Loss::Name, Some(name));
        return Ok(None);
    }
    let packed = object.packed().filter(|_| !job.options.dense);
    let dtype = match packed.and_then(Dtype::from_packed) {
        Some(dtype) => dtype,
        None => {
            if !job.make_plain(&mut object) {
                return Ok(None);
            }
            let Some(dtype) = job.typed(&object, Dtype::from_types) else {
                return Ok(None);
            };
            dtype
        }
    };
    job.rest(&object, &[]);
    match dtype.byte_len(&object.object().shape) {
        Ok(byte_len) => Ok(Some(Tensor { object, dtype, byte_len })),
        Err(violation) => {
            let loss = match violation {
                SafetensorsViolation::PartialByte { .. } => Loss::PartialByte,
                _ => Loss::Shape,
            };
            job.accept(loss, Some(name));
            Ok(None)
        }
    }
}

/// The texts among the file's attributes, sorted.
fn metadata(
    job: &mut Job<'_>,
    attributes: Option<Attributes>,
) -> Result<Option<Vec<(String, String)>>> {
    let Some(attributes) = attributes else {
        return Ok(None);
    };
    let mut texts = Vec::with_capacity(attributes.len());
    for (key, value) in &attributes {
        match (key.as_str(), value.as_str()) {
            (Some(key), Some(value)) => texts.push((key.to_owned(), value.to_owned())),
            _ => {
                let key = display(key);
                job.lose_attribute(key);
            }
        }
    }
    texts.sort_unstable();
    Ok(Some(texts))
}

/// A tensor that a file will have.
#[derive(Debug, Clone, Copy)]
pub struct TensorInfo<'t> {
    /// Its name.
    pub name: &'t str,
    /// The type of its elements.
    pub dtype: Dtype,
    /// Its dimensions, outermost first.
    pub shape: &'t [u64],
}

/// What precedes the data of `tensors` in a file: the length of the header, and the header. It sorts
/// `tensors` into the order of their data, which follows without gaps.
///
/// # Errors
///
/// [`zt::ErrorKind::Unsupported`], code `lossy`: the format cannot represent a tensor of this shape,
/// a tensor named `__metadata__`, or so long a header.
pub fn layout(
    metadata: Option<&[(String, String)]>,
    tensors: &mut [TensorInfo<'_>],
) -> Result<Vec<u8>> {
    tensors.sort_by(|a, b| data_order(*a, *b));
    let mut entries = Vec::with_capacity(tensors.len());
    let mut start = 0u64;
    for &mut TensorInfo { name, dtype, shape } in tensors {
        let refuse = |loss| Error::from(lossy(loss)).with_object(name);
        if name == METADATA {
            return Err(refuse(Loss::Name));
        }
        let byte_len = dtype.byte_len(shape).ok();
        let end = byte_len.and_then(|byte_len| start.checked_add(byte_len));
        let end = end.ok_or_else(|| refuse(Loss::Shape))?;
        let fields = Fields { dtype: dtype.as_str(), shape, data_offsets: [start, end] };
        entries.push((name, fields));
        start = end;
    }
    let json = HeaderJson { metadata, entries };
    let mut bytes = vec![0; 8];
    serde_json::to_writer(&mut bytes, &json).map_err(std::io::Error::from)?;
    // The data begins at a multiple of 8.
    bytes.resize(bytes.len().next_multiple_of(8), b' ');
    let (len, header) = bytes.split_at_mut(8);
    len.copy_from_slice(&declared(header.len() as u64)?);
    Ok(bytes)
}

/// By alignment, so that every tensor's data is aligned; then by name.
fn data_order(a: TensorInfo<'_>, b: TensorInfo<'_>) -> Ordering {
    b.dtype.cmp(&a.dtype).then_with(|| a.name.cmp(b.name))
}

/// The length of a header as its bytes in the file, if readers accept that length.
fn declared(byte_len: u64) -> Result<[u8; 8]> {
    if byte_len > HEADER_MAX {
        let limit = HEADER_MAX;
        return Err(lossy(Loss::Header { byte_len, limit }).into());
    }
    Ok(byte_len.to_le_bytes())
}

pub(crate) fn lossy(loss: Loss) -> Fault {
    let target = SAFETENSORS;
    Fault::Lossy { target, loss }
}

struct HeaderJson<'h> {
    metadata: Option<&'h [(String, String)]>,
    entries: Vec<(&'h str, Fields<'h>)>,
}

/// The fields in the order of the official writer.
#[derive(Serialize)]
struct Fields<'h> {
    dtype: &'static str,
    shape: &'h [u64],
    data_offsets: [u64; 2],
}

impl Serialize for HeaderJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Texts<'h>(&'h [(String, String)]);

        impl Serialize for Texts<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
            }
        }

        let mut map = serializer.serialize_map(None)?;
        if let Some(metadata) = self.metadata {
            map.serialize_entry(METADATA, &Texts(metadata))?;
        }
        for (name, fields) in &self.entries {
            map.serialize_entry(name, fields)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::{HEADER_MAX, declared};

    #[test]
    fn a_header_is_no_longer_than_readers_accept() {
        assert_eq!(declared(HEADER_MAX).unwrap(), HEADER_MAX.to_le_bytes());
        assert_eq!(declared(HEADER_MAX + 1).unwrap_err().code(), "lossy");
    }
}
