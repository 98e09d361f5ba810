//! Any objects as a GGUF file of version 3, little-endian: the header first, then the values,
//! streamed.

use std::io::{self, Write};

use zt::formats::element_count;
use zt::ggml::BlockType;
use zt::{Attributes, ByteOrder, Error, Progress, Result};
use zt_foreign::{Fault, Job, Loss, Merged, Outgoing, Overflow, Sink};

use crate::GGUF;
use crate::header::padded;
use crate::metadata::Metadata;
use crate::read::BYTE_ORDER;
use crate::tensor_type::TensorType;
use crate::{ALIGNMENT, MAGIC, RANK_MAX};

const VERSION: u32 = 3;

/// The longest name that llama.cpp takes: it keeps 64 bytes with a NUL, and refuses a file with a
/// longer one.
const NAME_MAX: usize = 63;

/// The largest alignment that is obeyed: with more, the padding of a file of a few bytes, which
/// may come from anybody, fills a disk.
const ALIGNMENT_MAX: u64 = 1 << 20;

/// Writes a file as `gguf-py` and llama.cpp do, tensors in the order of their data, the last one
/// padded too.
pub(super) fn write(merged: Merged<'_>, sink: &mut Sink<'_>, job: &mut Job<'_>) -> Result<()> {
    let (metadata, alignment) = pairs(job, merged.attributes)?;
    job.fields(&merged.extra, None)?;
    let mut tensors = Vec::with_capacity(merged.objects.len());
    for incoming in &merged.objects {
        let object = Outgoing::new(incoming, job.options.dtype);
        let tensor = tensor(job, object)?;
        tensors.extend(job.kept(incoming, tensor));
    }
    let header = header(&metadata, &tensors, alignment)?;
    sink.write_all(&header)?;
    pad(sink, header.len() as u64, alignment)?;
    for tensor in &tensors {
        let overflow = tensor.write(sink, job.options.progress)?;
        job.written(tensor.object.name(), tensor.byte_len, overflow)?;
        pad(sink, tensor.byte_len, alignment)?;
    }
    Ok(())
}

/// An object as GGUF has it.
struct Tensor<'i> {
    object: Outgoing<'i>,
    tensor_type: TensorType,
    byte_len: u64,
    /// Blocks that have to become little-endian on the way.
    swapped: Option<&'static BlockType>,
}

impl Tensor<'_> {
    fn write(
        &self,
        sink: &mut Sink<'_>,
        progress: Option<Progress<'_>>,
    ) -> Result<Option<Overflow>> {
        let Some(block_type) = self.swapped else {
            return self.object.write_values(self.byte_len, sink, progress);
        };
        let mut out = Swapped {
            out: sink,
            block_type,
            pending: Vec::new(),
        };
        self.object.write_values(self.byte_len, &mut out, progress)
    }
}

/// The pairs of the metadata, and what they say the alignment is.
fn pairs(job: &mut Job<'_>, attributes: Option<Attributes>) -> Result<(Metadata, u64)> {
    let (mut metadata, lost) = Metadata::from_attributes(attributes.unwrap_or_default());
    for key in lost {
        job.accept(Loss::FileAttribute { key }, None)?;
    }
    // One that no reader takes would spoil the file.
    let alignment = metadata.alignment().ok();
    if let Some(alignment) = alignment.filter(|alignment| *alignment <= ALIGNMENT_MAX) {
        return Ok((metadata, alignment));
    }
    let key = format!("{ALIGNMENT:?}");
    job.accept(Loss::FileAttribute { key }, None)?;
    metadata.remove(ALIGNMENT);
    Ok((metadata, super::DEFAULT_ALIGNMENT))
}

/// The object as a tensor; `None` where nothing of it can be said and that is allowed.
fn tensor<'i>(job: &mut Job<'_>, mut object: Outgoing<'i>) -> Result<Option<Tensor<'i>>> {
    let name = object.name();
    let (byte_len, limit) = (name.len(), NAME_MAX);
    if byte_len > limit {
        let loss = Loss::LongName { byte_len, limit };
        job.accept(loss, Some(name))?;
        // One such name, and llama.cpp opens nothing of the file.
        return Ok(None);
    }
    let shape = &object.object().shape;
    let (rank, limit) = (shape.len(), RANK_MAX as usize);
    if rank > limit {
        let loss = Loss::Rank { rank, limit };
        job.accept(loss, Some(name))?;
        return Ok(None);
    }
    // Dimensions and their product are signed in ggml.
    let is_signed = |number: &u64| i64::try_from(*number).is_ok();
    if !element_count(shape).is_some_and(|count| is_signed(&count)) || !shape.iter().all(is_signed)
    {
        job.accept(Loss::Shape, Some(name))?;
        return Ok(None);
    }
    match TensorType::from_format(&object.object().format) {
        Some(tensor_type) if !job.options.dense || !object.has_dense_value() => {
            blocks(job, object, tensor_type)
        }
        _ => {
            if !job.make_plain(&mut object)? {
                return Ok(None);
            }
            let Some(tensor_type) = job.typed(&object, TensorType::from_types)? else {
                return Ok(None);
            };
            job.rest(&object, &[])?;
            let byte_len = tensor_type.byte_len(&object.object().shape);
            let Some(byte_len) = byte_len else {
                job.accept(Loss::Shape, Some(name))?;
                return Ok(None);
            };
            Ok(Some(Tensor {
                object,
                tensor_type,
                byte_len,
                swapped: None,
            }))
        }
    }
}

/// An object whose bytes are a tensor's.
fn blocks<'i>(
    job: &mut Job<'_>,
    object: Outgoing<'i>,
    tensor_type: TensorType,
) -> Result<Option<Tensor<'i>>> {
    let source = object.object();
    let name = Some(object.name());
    job.rest(&object, &[BYTE_ORDER])?;
    let is_big = source
        .attributes()
        .get(BYTE_ORDER)
        .is_some_and(|order| order.as_str() == Some("big"));
    let swapped = match tensor_type {
        TensorType::Blocks(block_type) if block_type.is_known_in(ByteOrder::Big) => {
            Some(block_type).filter(|_| is_big)
        }
        _ if is_big => {
            let format = source.format.to_string();
            job.accept(Loss::BigEndian { format }, name)?;
            return Ok(None);
        }
        _ => None,
    };
    let data = source.component("data");
    let byte_len = data.and_then(|data| data.blob.decoded_len);
    let Some(byte_len) = byte_len else {
        // A format that nobody checks may lack its data.
        let role = "data".to_owned();
        job.accept(Loss::Component { role }, name)?;
        return Ok(None);
    };
    Ok(Some(Tensor {
        object,
        tensor_type,
        byte_len,
        swapped,
    }))
}

/// Everything before the data, without its padding.
fn header(metadata: &Metadata, tensors: &[Tensor<'_>], alignment: u64) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    out.extend(MAGIC);
    out.extend(VERSION.to_le_bytes());
    out.extend((tensors.len() as u64).to_le_bytes());
    out.extend((metadata.len() as u64).to_le_bytes());
    metadata.write(&mut out);
    let mut offset = 0u64;
    for tensor in tensors {
        let (name, shape) = (tensor.object.name(), &tensor.object.object().shape);
        out.extend((name.len() as u64).to_le_bytes());
        out.extend(name.as_bytes());
        out.extend(u32::try_from(shape.len()).unwrap_or(RANK_MAX).to_le_bytes());
        out.extend(
            shape
                .iter()
                .rev()
                .flat_map(|dimension| dimension.to_le_bytes()),
        );
        out.extend(tensor.tensor_type.id().to_le_bytes());
        out.extend(offset.to_le_bytes());
        let end = offset.checked_add(tensor.byte_len);
        let end = end.and_then(|end| padded(end, alignment));
        offset = end.ok_or_else(|| {
            let (target, loss) = (GGUF, Loss::Shape);
            Error::from(Fault::Lossy { target, loss }).with_object(name)
        })?;
    }
    Ok(out)
}

/// Zeros up to the next multiple of `alignment` behind `byte_len` bytes.
fn pad(sink: &mut Sink<'_>, byte_len: u64, alignment: u64) -> io::Result<()> {
    let end = padded(byte_len, alignment).unwrap_or(byte_len);
    let zeros = io::Read::take(io::repeat(0), end.saturating_sub(byte_len));
    io::copy(&mut { zeros }, sink).map(drop)
}

/// Turns blocks that pass into little-endian ones.
struct Swapped<'o, 's> {
    out: &'o mut Sink<'s>,
    block_type: &'static BlockType,
    /// The beginning of a block that is not whole yet.
    pending: Vec<u8>,
}

impl Write for Swapped<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = usize::try_from(self.block_type.block_byte_len()).unwrap_or(1);
        self.pending.extend_from_slice(bytes);
        let partial = self.pending.chunks_exact(len).remainder().len();
        let whole = self.pending.len().saturating_sub(partial);
        let blocks = self.pending.get_mut(..whole).unwrap_or_default();
        self.block_type.swap(blocks);
        self.out.write_all(blocks)?;
        self.pending.drain(..whole);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
