//! Writes any objects as a GGUF file of version 3, little-endian: the header, then the values,
//! streamed.

use std::io::{self, Write};
use zt::foreign::ReadAhead;
use zt::formats::element_count;
use zt::ggml::BlockType;
use zt::{Attributes, ByteOrder, Error, Progress, Result, Warning};
use zt_foreign::{
    Cast, Fault, FileWriter, Incoming, Job, Loss, Merged, Outgoing, SetForm, ShardPlace, Sink,
};

use crate::header::{MAGIC, RANK_MAX};
use crate::metadata::{ALIGNMENT, DEFAULT_ALIGNMENT, Metadata};
use crate::original;
use crate::pairs;
use crate::read::{BYTE_ORDER, GGUF, Gguf};
use crate::tensor_type::TensorType;

const VERSION: u32 = 3;

/// The longest name that llama.cpp accepts: it keeps 64 bytes with a NUL, and refuses a file with a
/// longer name.
const NAME_MAX: usize = 63;

/// The most files of a set: `split.count` is a u16.
const PARTS_MAX: u64 = u16::MAX as u64;

/// The largest alignment that is written. A larger one in a small untrusted file would fill the disk
/// with padding.
const ALIGNMENT_MAX: u64 = 1 << 20;

impl FileWriter for Gguf {
    /// Writes a file as `gguf-py` and llama.cpp do: tensors in the order of their data, the last one
    /// padded too.
    fn write(&self, merged: Merged<'_>, sink: &mut Sink<'_>, job: &mut Job<'_>) -> Result<()> {
        if !merged.objects.is_empty() {
            let warning = unloadable(merged.attributes.as_ref());
            job.summary.warnings.extend(warning);
        }
        let (mut metadata, alignment) = metadata(job, merged.attributes)?;
        job.fields(&merged.extra, None);
        let mut tensors = Vec::with_capacity(merged.objects.len());
        for incoming in &merged.objects {
            let object = Outgoing::new(incoming);
            let tensor = tensor(job, object)?;
            tensors.extend(job.kept(incoming, tensor));
        }
        job.check()?;
        for Tensor { object, stored, .. } in &tensors {
            if let Some((key, value)) = original::pair(object.name(), object.object(), stored) {
                metadata.add(key, value);
            }
        }
        if tensors.iter().any(Tensor::is_changed) {
            let types = tensors.iter().filter(|tensor| tensor.stored.len() > 1);
            let types = types.map(|tensor| {
                let count = element_count(&tensor.stored).unwrap_or(0);
                (tensor.tensor_type.name(), count)
            });
            let types: Vec<(String, u64)> = types.collect();
            let types = types.iter().map(|(name, count)| (name.as_str(), *count));
            if let Some(number) = zt::ggml::file_type(types) {
                metadata.replace(zt::ggml::FILE_TYPE, u64::from(number).into());
            }
        }
        let header = header(&metadata, &tensors, alignment)?;
        sink.write_all(&header)?;
        pad(sink, header.len() as u64, alignment)?;
        let mut ahead = ReadAhead::new(tensors.iter().map(|tensor| tensor.object.tensor));
        for tensor in &tensors {
            ahead.advance();
            let cast = tensor.write(sink, job.options.progress)?;
            job.written(tensor.object.name(), tensor.byte_len, cast)?;
            pad(sink, tensor.byte_len, alignment)?;
        }
        Ok(())
    }

    fn set_form(&self) -> Option<SetForm> {
        Some(SetForm::Numbered)
    }

    fn part_attributes(
        &self,
        set: Option<Attributes>,
        part: ShardPlace,
    ) -> Result<Option<Attributes>> {
        let (count, limit) = (part.count, PARTS_MAX);
        if count > limit {
            let (target, loss) = (GGUF, Loss::Parts { count, limit });
            return Err(Fault::Lossy { target, loss }.into());
        }
        Ok(Some(pairs::of_part(set, part)))
    }

    fn shard_len(&self, incoming: &Incoming<'_>, job: &mut Job<'_>) -> Result<Option<u64>> {
        let object = Outgoing::new(incoming);
        Ok(tensor(job, object)?.map(|tensor| tensor.byte_len))
    }
}

/// An object as a tensor of GGUF.
struct Tensor<'i> {
    object: Outgoing<'i>,
    tensor_type: TensorType,
    byte_len: u64,
    /// The shape in the header.
    stored: Vec<u64>,
    /// The type of big-endian blocks, which are written little-endian.
    swapped: Option<&'static BlockType>,
}

impl Tensor<'_> {
    /// Whether its type in the file is not the one that it has in its input.
    fn is_changed(&self) -> bool {
        let of = &self.object.tensor;
        let before = TensorType::from_format(of.format()).map(TensorType::name);
        before.or_else(|| Some(of.dtype()?.to_string())) != Some(self.tensor_type.name())
    }

    fn write(&self, sink: &mut Sink<'_>, progress: Option<Progress<'_>>) -> Result<Option<Cast>> {
        let Some(block_type) = self.swapped else {
            return self.object.write_values(self.byte_len, sink, progress);
        };
        let mut out = Swapped { out: sink, block_type, pending: Vec::new() };
        self.object.write_values(self.byte_len, &mut out, progress)
    }
}

/// A warning if llama.cpp will not load the file. A copy of a GGUF file is what that file is, and files of a
/// set after the first have no architecture.
fn unloadable(attributes: Option<&Attributes>) -> Option<Warning> {
    const ARCHITECTURE: &str = "general.architecture";
    let has = |key| attributes.is_some_and(|attributes| attributes.get(key).is_some());
    let number = attributes.and_then(|attributes| attributes.get(pairs::SPLIT_NO)?.as_u64());
    let is_later = number.is_some_and(|number| number > 0);
    if has(ARCHITECTURE) || has(pairs::TYPES) || is_later {
        return None;
    }
    let message = format!(
        "the file has no {ARCHITECTURE}, and llama.cpp does not load it: convert_hf_to_gguf.py of llama.cpp \
         writes a model with the metadata and the names that it needs"
    );
    Some(Warning::new("architecture", message))
}

/// The pairs of the metadata, and the alignment that they declare.
fn metadata(job: &mut Job<'_>, attributes: Option<Attributes>) -> Result<(Metadata, u64)> {
    let (mut metadata, lost) = Metadata::from_attributes(attributes.unwrap_or_default());
    for key in lost {
        job.lose_attribute(key);
    }
    // Readers refuse a file with an invalid alignment.
    let alignment = metadata.alignment().ok();
    if let Some(alignment) = alignment.filter(|alignment| *alignment <= ALIGNMENT_MAX) {
        return Ok((metadata, alignment));
    }
    let key = format!("{ALIGNMENT:?}");
    job.lose_attribute(key);
    metadata.remove(ALIGNMENT);
    Ok((metadata, DEFAULT_ALIGNMENT))
}

/// The object as a tensor; `None` if GGUF cannot represent it and losses are allowed.
fn tensor<'i>(job: &mut Job<'_>, mut object: Outgoing<'i>) -> Result<Option<Tensor<'i>>> {
    let name = object.name();
    let (byte_len, limit) = (name.len(), NAME_MAX);
    if byte_len > limit {
        let loss = Loss::LongName { byte_len, limit };
        job.accept(loss, Some(name));
        // llama.cpp refuses a file with one such name.
        return Ok(None);
    }
    let stored = original::stored(object.object());
    let shape = &stored;
    let (rank, limit) = (shape.len(), RANK_MAX as usize);
    if rank > limit {
        let loss = Loss::Rank { rank, limit };
        job.accept(loss, Some(name));
        return Ok(None);
    }
    // Dimensions and their product are signed in ggml.
    let is_signed = |number: &u64| i64::try_from(*number).is_ok();
    if !element_count(shape).is_some_and(|count| is_signed(&count)) || !shape.iter().all(is_signed)
    {
        job.accept(Loss::Shape, Some(name));
        return Ok(None);
    }
    match TensorType::from_format(&object.object().format) {
        Some(tensor_type) if !job.options.dense || !object.has_dense_value() => {
            blocks(job, object, tensor_type, stored)
        }
        _ => {
            if !job.make_plain(&mut object) {
                return Ok(None);
            }
            // A bool is a byte of 0 or 1.
            let (from, to) = (zt::DType::Bool, zt::DType::I8);
            let is_bool = object.dense_type() == Some((from, None));
            if is_bool {
                let from = from.to_string();
                job.accept(Loss::Widened { from, to }, Some(name));
            }
            let from_types = |dtype, logical_type: Option<&str>| {
                TensorType::from_types(if is_bool { to } else { dtype }, logical_type)
            };
            let Some(tensor_type) = job.typed(&object, from_types) else {
                return Ok(None);
            };
            job.rest(&object, &[]);
            let byte_len = tensor_type.byte_len(&stored);
            let Some(byte_len) = byte_len else {
                job.accept(Loss::Shape, Some(name));
                return Ok(None);
            };
            Ok(Some(Tensor { object, tensor_type, byte_len, stored, swapped: None }))
        }
    }
}

/// A tensor with the object's bytes.
fn blocks<'i>(
    job: &mut Job<'_>,
    object: Outgoing<'i>,
    tensor_type: TensorType,
    stored: Vec<u64>,
) -> Result<Option<Tensor<'i>>> {
    let source = object.object();
    let name = Some(object.name());
    job.rest(&object, &[BYTE_ORDER]);
    let is_big =
        source.attributes().get(BYTE_ORDER).is_some_and(|order| order.as_str() == Some("big"));
    let swapped = match tensor_type {
        TensorType::Blocks(block_type) if block_type.is_known_in(ByteOrder::Big) => {
            Some(block_type).filter(|_| is_big)
        }
        _ if is_big => {
            let format = source.format.to_string();
            job.accept(Loss::BigEndian { format }, name);
            return Ok(None);
        }
        _ => None,
    };
    let data = source.component("data");
    let byte_len = data.and_then(|data| data.blob.decoded_len);
    let Some(byte_len) = byte_len else {
        // The format of an unknown type is not checked, so its data may be missing.
        let role = "data".to_owned();
        job.accept(Loss::Component { role }, name);
        return Ok(None);
    };
    Ok(Some(Tensor { object, tensor_type, byte_len, stored, swapped }))
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
        let (name, shape) = (tensor.object.name(), &tensor.stored);
        out.extend((name.len() as u64).to_le_bytes());
        out.extend(name.as_bytes());
        #[expect(clippy::cast_possible_truncation, reason = "at most RANK_MAX")]
        let rank = shape.len() as u32;
        out.extend(rank.to_le_bytes());
        out.extend(shape.iter().rev().flat_map(|dimension| dimension.to_le_bytes()));
        out.extend(tensor.tensor_type.id().to_le_bytes());
        out.extend(offset.to_le_bytes());
        let end = offset.checked_add(tensor.byte_len);
        let end = end.and_then(|end| end.checked_next_multiple_of(alignment));
        offset = end.ok_or_else(|| {
            let (target, loss) = (GGUF, Loss::Shape);
            Error::from(Fault::Lossy { target, loss }).with_object(name)
        })?;
    }
    Ok(out)
}

/// Writes zeros up to the next multiple of `alignment`, a power of two, after `byte_len` bytes.
fn pad(sink: &mut Sink<'_>, byte_len: u64, alignment: u64) -> io::Result<()> {
    let padding = byte_len.next_multiple_of(alignment).strict_sub(byte_len);
    io::copy(&mut io::Read::take(io::repeat(0), padding), sink).map(drop)
}

/// Writes big-endian blocks as little-endian ones.
struct Swapped<'o, 's> {
    out: &'o mut Sink<'s>,
    block_type: &'static BlockType,
    /// The first bytes of an incomplete block.
    pending: Vec<u8>,
}

impl Write for Swapped<'_, '_> {
    #[expect(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        clippy::indexing_slicing,
        reason = "a block has some hundred bytes, and the rest is shorter than the whole"
    )]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = self.block_type.block_byte_len() as usize;
        self.pending.extend_from_slice(bytes);
        let partial = self.pending.chunks_exact(len).remainder().len();
        let whole = self.pending.len() - partial;
        let blocks = &mut self.pending[..whole];
        self.block_type.swap(blocks);
        self.out.write_all(blocks)?;
        self.pending.drain(..whole);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
