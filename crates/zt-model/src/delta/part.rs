//! The bytes of objects that are made when they are read.

use std::io;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use zt::container::memory::{in_memory, zeroed};
use zt::formats::{DeltaCodec, FormatViolation, PlaneCoding};
use zt::{
    Blob, ByteOrder, Bytes, BytesHash, DType, Dense, Digest, Encoding, Error, File, Object,
    OwnedTensor, Result, Slice, Source, Span, Tensor, View,
};
use zt_foreign::DATA;

use crate::arithmetic::{object_like, part_of, values};
use crate::delta::fault::Fault;

/// Bytes of codes that are read at a time.
///
/// Pays: nothing: `zt patch` of 75 MB takes as long with 64 KiB and with 1 MiB.
const PIECE: usize = 256 << 10;

/// The bytes of all components of an object, one after the other.
pub(super) struct Parts {
    pub(super) parts: Vec<Part>,
    pub(super) byte_len: u64,
}

/// A component of an object, or the values of planes.
pub(super) struct Part {
    /// Its place among the others.
    pub(super) span: Span,
    pub(super) tensor: OwnedTensor,
    pub(super) role: String,
    pub(super) dtype: DType,
    pub(super) coded: Option<Arc<Coded>>,
}

/// The changes of a component: the codes of its stretches, and a table of their lengths.
pub(super) struct Coded {
    delta: OwnedTensor,
    role: String,
    codec: DeltaCodec,
    codes_len: u64,
    /// Where each code ends. It is read at the first use.
    ends: OnceLock<Vec<u64>>,
}

impl Coded {
    /// The changes of `role`, whose elements are of `dtype` and take `byte_len` bytes.
    pub(super) fn new(delta: OwnedTensor, role: &str, dtype: DType, byte_len: u64) -> Result<Self> {
        let codec = DeltaCodec::new(dtype);
        if !byte_len.is_multiple_of(dtype.byte_len() as u64) {
            return Err(Fault::Table("the component has no whole elements").into());
        }
        let elements = byte_len.strict_div(dtype.byte_len() as u64);
        let codes_len = DeltaCodec::codes_len(elements, delta.tensor().decoded_len(role)?);
        let codes_len = codes_len.ok_or(Fault::Table("it has fewer entries than stretches"))?;
        Ok(Coded { delta, role: role.to_owned(), codec, codes_len, ends: OnceLock::new() })
    }

    fn ends(&self) -> Result<&[u64]> {
        if let Some(ends) = self.ends.get() {
            return Ok(ends);
        }
        let (tensor, role) = (self.delta.tensor(), &self.role);
        // Codes are small, and a digest is of all of them.
        tensor.verify(role)?;
        let table = self.read(self.codes_len..tensor.decoded_len(role)?)?;
        let ends = DeltaCodec::ends(&table, self.codes_len)
            .ok_or(Fault::Table("the lengths do not add up"))?;
        // A code is in memory as a whole.
        let most = (self.codec.stretch_len() as u64).strict_add(1);
        let mut codes = std::iter::once(&0).chain(&ends).zip(&ends);
        if codes.any(|(start, end)| end.strict_sub(*start) > most) {
            return Err(Fault::Table("a code is longer than the values of a stretch").into());
        }
        Ok(self.ends.get_or_init(|| ends))
    }

    /// Whether a code holds new values, so that the base does not matter. Reads all codes. In a store
    /// they are not read, and the answer is yes.
    pub(super) fn replaces(&self) -> Result<bool> {
        if self.delta.tensor().is_remote() {
            return Ok(true);
        }
        let ends = self.ends()?;
        let codes = std::iter::once(&0).chain(ends).zip(ends);
        let starts = codes.filter(|(start, end)| start < end);
        let mut starts = starts.map(|(start, _)| *start).peekable();
        let (mut at, mut found) = (0, false);
        let mut reader = self.delta.tensor().reader(&self.role)?;
        reader.for_each_piece(PIECE, |piece| {
            let end = u64::strict_add(at, piece.len() as u64);
            while let Some(start) = starts.next_if(|start| *start < end) {
                let code = piece.get(in_memory(start.strict_sub(at))..);
                found |= code.is_some_and(DeltaCodec::replaces);
            }
            at = end;
            Ok::<_, Error>(())
        })?;
        Ok(found)
    }

    /// Some bytes of the codes.
    fn read(&self, bytes: Range<u64>) -> Result<Bytes<'_>> {
        let tensor = self.delta.tensor();
        let (_, read) = tensor.slice_component(&self.role, &[Slice::from(bytes)])?.into_elements();
        Ok(read.bytes)
    }

    /// Applies the changes of a stretch.
    fn apply(&self, stretch: u64, values: &mut [u8]) -> Result<()> {
        let (ends, role) = (self.ends()?, &self.role);
        let at = in_memory(stretch);
        let start = at.checked_sub(1).map_or(Some(0), |before| ends.get(before).copied());
        let place = start.zip(ends.get(at).copied());
        let (start, end) = place.ok_or(Fault::Table("it has fewer entries than stretches"))?;
        if start == end {
            return Ok(());
        }
        let applied = self.codec.apply(&self.read(start..end)?, values);
        let applied =
            applied.map_err(|fault| FormatViolation::Delta { stretch, fault }.of(role.clone()));
        applied.map_err(|error| Error::from(error).with_object(self.delta.tensor().name()))
    }
}

impl Part {
    /// Reads the bytes from `offset` on.
    fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let Some(coded) = &self.coded else {
            return self.read_base(offset, out);
        };
        let stretch_len = coded.codec.stretch_len() as u64;
        let (mut rest, mut at) = (out, offset);
        while !rest.is_empty() {
            let stretch = at.strict_div(stretch_len);
            let start = stretch.strict_mul(stretch_len);
            let whole = stretch_len.min(self.span.byte_len().strict_sub(start));
            let from = at.strict_sub(start);
            let len = in_memory(whole.strict_sub(from)).min(rest.len());
            let (piece, after) = rest.split_at_mut(len);
            if len as u64 == whole {
                self.read_base(start, piece)?;
                coded.apply(stretch, piece)?;
            } else {
                let mut values = zeroed(whole)?;
                self.read_base(start, &mut values)?;
                coded.apply(stretch, &mut values)?;
                piece.copy_from_slice(part_of(&values, in_memory(from), len)?);
            }
            at = at.strict_add(len as u64);
            rest = after;
        }
        Ok(())
    }

    /// Reads the bytes of the old component.
    fn read_base(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let tensor = self.tensor.tensor();
        read_content(&tensor, &self.role, self.dtype, offset, out)
    }

    fn sources(&self) -> impl Iterator<Item = Arc<dyn Source>> {
        let tensors = [Some(&self.tensor), self.coded.as_deref().map(|it| &it.delta)];
        let tensors = tensors.into_iter().flatten().map(OwnedTensor::tensor);
        let roles = tensors.flat_map(|it| it.components().map(move |(role, _)| (it, role)));
        roles.filter_map(|(tensor, role)| Some(tensor.stored_bytes(role).ok()?.0))
    }
}

impl Source for Parts {
    fn byte_len(&self) -> u64 {
        self.byte_len
    }

    fn is_sequential(&self) -> bool {
        let mut sources = self.parts.iter().flat_map(Part::sources);
        sources.any(|source| source.is_sequential())
    }

    fn is_remote(&self) -> bool {
        let mut sources = self.parts.iter().flat_map(Part::sources);
        sources.any(|source| source.is_remote())
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(out.len() as u64);
        let end = end.filter(|end| *end <= self.byte_len);
        end.ok_or(io::ErrorKind::UnexpectedEof)?;
        let (mut rest, mut at) = (out, offset);
        let first = self.parts.partition_point(|part| part.span.end() <= offset);
        for part in self.parts.iter().skip(first) {
            let left = in_memory(part.span.end().strict_sub(at)).min(rest.len());
            let (piece, after) = rest.split_at_mut(left);
            part.read(at.strict_sub(part.span.offset()), piece)?;
            at = at.strict_add(left as u64);
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        Ok(())
    }
}

/// Reads the little-endian bytes of a component of `dtype` from `offset` on. Nothing is verified.
pub(super) fn read_content(
    tensor: &Tensor<'_>,
    role: &str,
    dtype: DType,
    offset: u64,
    out: &mut [u8],
) -> Result<()> {
    let is_of_planes = PlaneCoding::from_format(tensor.format()).is_some() && role == DATA;
    if !is_of_planes {
        let component = tensor.component(role)?;
        let is_stored = component.blob.encoding == Encoding::Raw;
        if is_stored && component.byte_order == ByteOrder::Little {
            let (source, span) = tensor.stored_bytes(role)?;
            let at = span.offset().checked_add(offset);
            let end = at.and_then(|at| at.checked_add(out.len() as u64));
            if let (Some(at), Some(..)) = (at, end.filter(|end| *end <= span.end())) {
                let read = source.read_at(at, out);
                return read.map_err(|error| {
                    let error = Error::from(error).with_object(tensor.name());
                    error.with_component(role)
                });
            }
        }
    }
    let width = dtype.byte_len() as u64;
    let end = offset.strict_add(out.len() as u64);
    let (first, last) = (offset.strict_div(width), end.div_ceil(width));
    let read = if is_of_planes {
        values(tensor, first, last.strict_sub(first))?
    } else {
        let elements = tensor.slice_component(role, &[Slice::from(first..last)])?;
        elements.into_elements().1
    };
    let before = in_memory(offset.strict_rem(width));
    out.copy_from_slice(part_of(&read.bytes, before, out.len())?);
    Ok(())
}

/// The object with these SHA-256 of its components, so that whatever reads a whole one compares it.
pub(super) fn with_sums(
    tensor: OwnedTensor,
    sums: &[(String, BytesHash)],
) -> Result<(Object, Arc<dyn Source>)> {
    let of = tensor.tensor();
    let mut object = Object::new(of.shape(), of.format().to_owned());
    object.attributes.clone_from(&of.object().attributes);
    object.extra.clone_from(&of.object().extra);
    let (mut parts, mut byte_len) = (Vec::new(), 0);
    for (role, sum) in sums {
        let dtype = of.dtype_to_write(role)?;
        let too_long = || Error::from(Fault::Table("the object has 2^63 bytes or more"));
        let span = Span::new(byte_len, sum.byte_len).ok_or_else(too_long)?;
        byte_len = span.end();
        let blob = Blob::raw(span).with_digest(Some(Digest::Sha256(sum.sha256)));
        let mut component = zt::Component::new(dtype, blob);
        component.logical_type.clone_from(&of.component(role)?.logical_type);
        object.components.push((role.clone().into(), component));
        parts.push(Part { span, tensor: tensor.clone(), role: role.clone(), dtype, coded: None });
    }
    Ok((object, Arc::new(Parts { parts, byte_len })))
}

/// The file with dense objects in the place of planes, which are compared and changed by their values.
pub(super) fn without_planes(file: &File) -> Result<File> {
    file.replace(|name, _| dense_for_planes(file.owned_tensor(name).ok()?).map(Ok))
}

fn dense_for_planes(tensor: OwnedTensor) -> Option<(Object, Arc<dyn Source>)> {
    let (planes, registry) = (tensor.tensor(), tensor.file().registry());
    let coding = PlaneCoding::from_format(planes.format()).filter(|_| planes.fault().is_none())?;
    let (format, signature) =
        (registry.format(coding.format())?, zt::Signature::of(planes.object()));
    let (dtype, logical_type) = format.dense_type(&signature, registry)?;
    if planes.components().any(|(role, _)| !format.is_of_value(role, &signature)) {
        return None;
    }
    let value_len = registry.value_len(dtype, logical_type.as_deref()).ok()??;
    let byte_len = zt::formats::dense_byte_len(planes.shape(), value_len)?;
    let span = Span::new(0, byte_len)?;
    let mut component = zt::Component::new(dtype, zt::Blob::raw(span));
    component.logical_type = logical_type;
    let object = object_like(&tensor, Dense::FORMAT).with_component(DATA, component);
    let part = Part { span, role: DATA.to_owned(), dtype, coded: None, tensor };
    let parts = vec![part];
    Some((object, Arc::new(Parts { parts, byte_len })))
}
