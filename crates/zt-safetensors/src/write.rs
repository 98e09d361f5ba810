//! Writes any objects as a safetensors file: the header, then the values, streamed.

use std::io::Write;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use zt::{Attributes, Error, Result};
use zt_foreign::{Fault, FileWriter, Incoming, Job, Loss, Merged, Outgoing, Sink, display};

use crate::dtype::Dtype;
use crate::header::HEADER_MAX;
use crate::{METADATA, SAFETENSORS, SafeTensors};

impl FileWriter for SafeTensors {
    /// Writes the same bytes as the official library, except for the order of the metadata: there it is
    /// random, here it is sorted.
    fn write(&self, merged: Merged<'_>, sink: &mut Sink<'_>, job: &mut Job<'_>) -> Result<()> {
        let metadata = metadata(job, merged.attributes)?;
        job.fields(&merged.extra, None);
        let mut tensors = Vec::with_capacity(merged.objects.len());
        for incoming in &merged.objects {
            let object = Outgoing::new(incoming, job.options.dtype);
            let tensor = tensor(job, object)?;
            tensors.extend(job.kept(incoming, tensor));
        }
        job.check()?;
        // By alignment, so that every tensor's data is aligned; then by name.
        tensors.sort_by(|a, b| b.dtype.cmp(&a.dtype).then_with(|| a.name().cmp(b.name())));
        let header = header(metadata.as_deref(), &tensors)?;
        sink.write_all(&declared(header.len() as u64)?)?;
        sink.write_all(&header)?;
        for tensor in &tensors {
            let (object, byte_len) = (&tensor.object, tensor.byte_len);
            let overflow = object.write_values(byte_len, sink, job.options.progress)?;
            job.written(tensor.name(), byte_len, overflow)?;
        }
        Ok(())
    }

    fn has_sets(&self) -> bool {
        true
    }

    fn shard_len(&self, incoming: &Incoming<'_>, job: &mut Job<'_>) -> Result<Option<u64>> {
        let object = Outgoing::new(incoming, job.options.dtype);
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
}

/// The object as a tensor; `None` if safetensors cannot represent it and losses are allowed.
fn tensor<'i>(job: &mut Job<'_>, mut object: Outgoing<'i>) -> Result<Option<Tensor<'i>>> {
    let name = object.name();
    if name == METADATA {
        job.accept(Loss::Name, Some(name));
        return Ok(None);
    }
    if !job.make_plain(&mut object) {
        return Ok(None);
    }
    let Some(dtype) = job.typed(&object, Dtype::from_types) else {
        return Ok(None);
    };
    job.rest(&object, &[]);
    match dtype.byte_len(&object.object().shape) {
        Ok(byte_len) => Ok(Some(Tensor {
            object,
            dtype,
            byte_len,
        })),
        Err(_) => {
            job.accept(Loss::Shape, Some(name));
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

/// The header, padded with spaces so that the data begins at a multiple of 8.
fn header(metadata: Option<&[(String, String)]>, tensors: &[Tensor<'_>]) -> Result<Vec<u8>> {
    let mut entries = Vec::with_capacity(tensors.len());
    let mut start = 0u64;
    for tensor in tensors {
        let end = start
            .checked_add(tensor.byte_len)
            .ok_or_else(|| Error::from(lossy(Loss::Shape)).with_object(tensor.name()))?;
        let (dtype, shape) = (
            tensor.dtype.as_str(),
            tensor.object.object().shape.as_slice(),
        );
        entries.push((
            tensor.name(),
            Entry {
                dtype,
                shape,
                data_offsets: [start, end],
            },
        ));
        start = end;
    }
    let header = HeaderJson { metadata, entries };
    let mut bytes = serde_json::to_vec(&header).map_err(std::io::Error::from)?;
    bytes.resize(bytes.len().next_multiple_of(8), b' ');
    Ok(bytes)
}

/// The length of a header as its bytes in the file, if readers accept that length.
fn declared(byte_len: u64) -> Result<[u8; 8]> {
    if byte_len > HEADER_MAX {
        let limit = HEADER_MAX;
        return Err(lossy(Loss::Header { byte_len, limit }).into());
    }
    Ok(byte_len.to_le_bytes())
}

fn lossy(loss: Loss) -> Fault {
    let target = SAFETENSORS;
    Fault::Lossy { target, loss }
}

struct HeaderJson<'h> {
    metadata: Option<&'h [(String, String)]>,
    entries: Vec<(&'h str, Entry<'h>)>,
}

/// The fields in the order of the official writer.
#[derive(Serialize)]
struct Entry<'h> {
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
        for (name, entry) in &self.entries {
            map.serialize_entry(name, entry)?;
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
