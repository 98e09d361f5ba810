//! The values of one tensor, computed when they are read.

use std::io;
use std::sync::Arc;

use zt::container::memory::read_whole;
use zt::foreign::on_all_cores;
use zt::formats::{PlaneCoding, dense_byte_len, element_count};
use zt::{
    Blob, Bytes, Component, Dense, Elements, FloatType, Object, OwnedTensor, Registry, Result,
    Slice, Source, Span, Tensor, View,
};
use zt_convert::Kinds;
use zt_foreign::{Cast, ConvertOptions, DATA, Input};

use crate::arithmetic::fault::Fault;

/// Values that one core computes at a time.
const BLOCK: usize = 64 << 10;

/// How values are computed from those of tensors of one shape, at the same positions.
pub(super) trait Formula: Send + Sync {
    /// What is needed before values are computed.
    type Prepared: Sync;

    /// Called once for some MiB of values.
    fn prepare(&self) -> Result<Self::Prepared>;

    /// Computes in place. `values` has the values of the first tensor from the position `first` on.
    /// `others` has the values of the other tensors.
    fn compute(&self, with: &Self::Prepared, first: u64, values: &mut [f64], others: &[Vec<f64>]);
}

/// A source of computed values in row-major order. They are computed as f64, and rounded once.
pub(super) struct Computed<F> {
    tensors: Vec<OwnedTensor>,
    formula: F,
    float: FloatType,
    byte_len: u64,
    allow_inf: bool,
}

impl<F: Formula + 'static> Computed<F> {
    /// The object that stands for the first of `tensors`, and its source. The values get the dtype of the
    /// options, or of the first tensor.
    ///
    /// # Errors
    ///
    /// Code `unsupported` if the first tensor is not [`floating`], and for more than 2^63 bytes.
    pub(super) fn object(
        tensors: Vec<OwnedTensor>,
        formula: F,
        options: &ConvertOptions<'_>,
    ) -> Result<(Object, Arc<dyn Source>)> {
        let first = tensors.first().ok_or(Fault::NotFloating)?;
        let float = options.dtype_of(first.tensor().name()).or(floating(&first.tensor()));
        let float = float.ok_or(Fault::NotFloating)?;
        let byte_len = dense_byte_len(first.tensor().shape(), float.dtype().byte_len() as u64);
        let span = byte_len.and_then(|byte_len| Span::new(0, byte_len));
        let span = span.ok_or(Fault::TooLong)?;
        let mut component = Component::new(float.dtype(), Blob::raw(span));
        component.logical_type = float.logical_type().map(Into::into);
        let object = object_like(first, Dense::FORMAT).with_component(DATA, component);
        let computed = Computed {
            tensors,
            formula,
            float,
            byte_len: span.byte_len(),
            allow_inf: options.allow_inf,
        };
        Ok((object, Arc::new(computed)))
    }

    /// Fills `out` with whole values from the position `first` on.
    fn fill(&self, first: u64, out: &mut [u8]) -> Result<()> {
        let width = self.float.dtype().byte_len();
        let count = out.len().strict_div(width) as u64;
        if count == 0 {
            return Ok(());
        }
        let with = self.formula.prepare()?;
        let read = |tensor| {
            let tensor: &OwnedTensor = tensor;
            Ok((values(&tensor.tensor(), first, count)?, tensor.file().registry()))
        };
        let read: Vec<_> = self.tensors.iter().map(read).collect::<Result<_>>()?;
        let Some((_, registry)) = read.first() else {
            return Ok(());
        };
        let blocks = out.chunks_mut(BLOCK.strict_mul(width));
        let blocks: Vec<_> = (0..).step_by(BLOCK).zip(blocks).collect();
        on_all_cores(blocks, |(at, bytes)| {
            let count = bytes.len().strict_div(width);
            let mut inputs = Vec::with_capacity(read.len());
            for (elements, registry) in &read {
                inputs.push(wide(elements, at, count, registry)?);
            }
            let (mut values, others) = (inputs.remove(0), inputs);
            let first = first.strict_add(at as u64);
            self.formula.compute(&with, first, &mut values, &others);
            self.round(&values, registry, bytes)
        })?;
        Ok(())
    }

    /// Writes values in the type of the result.
    fn round(&self, values: &[f64], registry: &Registry, out: &mut [u8]) -> Result<()> {
        let shape = [values.len() as u64];
        let (_, wide) = Dense::from_slice(&shape, values)?.into_elements();
        let cast = wide.cast(self.float, registry)?;
        let mut lost = Cast::to(self.float);
        lost.add(&wide, &cast.bytes, registry)?;
        if lost.out_of_range > 0 && !self.allow_inf {
            let float = self.float.as_str();
            return Err(Fault::OutOfRange { float }.into());
        }
        out.copy_from_slice(&cast.bytes);
        Ok(())
    }

    fn sources(&self) -> impl Iterator<Item = (Arc<dyn Source>, Span)> {
        let tensors = self.tensors.iter().map(OwnedTensor::tensor);
        let roles = tensors.flat_map(|it| it.components().map(move |(role, _)| (it, role)));
        roles.filter_map(|(tensor, role)| tensor.stored_bytes(role).ok())
    }
}

impl<F: Formula + 'static> Source for Computed<F> {
    fn byte_len(&self) -> u64 {
        self.byte_len
    }

    fn is_sequential(&self) -> bool {
        self.sources().any(|(source, _)| source.is_sequential())
    }

    fn is_remote(&self) -> bool {
        self.sources().any(|(source, _)| source.is_remote())
    }

    fn will_read_all(&self, spans: &[Span]) {
        for (source, span) in spans.iter().flat_map(|span| self.made_of(*span)).flatten() {
            source.will_read_all(&[span]);
        }
    }

    fn made_of(&self, span: Span) -> Option<Vec<(Arc<dyn Source>, Span)>> {
        Some(if span.is_empty() { Vec::new() } else { self.sources().collect() })
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let width = self.float.dtype().byte_len();
        Ok(read_whole(self.byte_len, width, offset, out, |first, out| self.fill(first, out))?)
    }
}

/// An object of this format in the place of `tensor`, without components: the attributes that are no parameters of
/// the old format are kept.
pub(crate) fn object_like(tensor: &OwnedTensor, format: &'static str) -> Object {
    let of = tensor.tensor();
    let mut object = Object::new(of.shape(), format);
    object.attributes.clone_from(&of.object().attributes);
    object.extra.clone_from(&of.object().extra);
    let old = tensor.file().registry().format(of.format());
    if let (Some(old), Some(attributes)) = (old, &mut object.attributes) {
        for parameter in old.parameters() {
            attributes.remove(parameter);
        }
    }
    object
}

/// Refuses to compute with codes: the quantized weights of an input of which `takes` has a part.
///
/// # Errors
///
/// Code `unsupported`; as [`Kinds::quantized`].
pub(super) fn expect_no_codes(input: &Input, takes: impl Fn(&str) -> bool) -> Result<()> {
    let found = Kinds::builtin().quantized(input)?;
    let mut taken =
        found.weights().iter().filter(|weight| weight.parts.iter().any(|part| takes(part)));
    match taken.next() {
        Some(first) => {
            let (count, name) = (taken.count().strict_add(1), first.name.clone());
            Err(input
                .blame(Fault::Codes { count, dialect: first.dialect.to_string(), name }.into()))
        }
        None => Ok(()),
    }
}

/// The type of a sound and plain array of real floating-point numbers.
pub(super) fn floating(tensor: &Tensor<'_>) -> Option<FloatType> {
    let format = tensor.format();
    let is_array = format == Dense::FORMAT || PlaneCoding::from_format(format).is_some();
    if !is_array || tensor.fault().is_some() {
        return None;
    }
    FloatType::from_name(&tensor.value_type()?)
}

/// All values of a floating-point tensor as f64.
pub(super) fn all_values(tensor: &OwnedTensor) -> Result<Vec<f64>> {
    let (of, count) = (tensor.tensor(), element_count(tensor.tensor().shape()));
    let elements = values(&of, 0, count.ok_or(Fault::TooLong)?)?;
    let count = elements.bytes.len().strict_div(elements.dtype.byte_len());
    wide(&elements, 0, count, tensor.file().registry())
}

/// `count` values from the position `first` on, as they are stored. The whole tensor is verified the first
/// time: a digest may be of all of it.
pub(crate) fn values(tensor: &Tensor<'_>, first: u64, count: u64) -> Result<Elements<'static>> {
    for (role, _) in tensor.components() {
        tensor.verify(role)?;
    }
    let end = first.checked_add(count).ok_or(Fault::TooLong)?;
    if tensor.format() == Dense::FORMAT {
        let part = tensor.slice_component(DATA, &[Slice::from(first..end)])?;
        let (_, mut elements) = part.into_elements();
        elements.logical_type.clone_from(&tensor.component(DATA)?.logical_type);
        return Ok(elements);
    }
    // Planes are sliced by rows.
    let [rows, ..] = *tensor.shape() else {
        return Ok(tensor.to_dense()?.into_elements().1);
    };
    let all = element_count(tensor.shape()).ok_or(Fault::TooLong)?;
    let row = all.checked_div(rows).map_or(1, |row| row.max(1));
    let whole = first.strict_div(row)..end.div_ceil(row).min(rows);
    let before = first.strict_rem(row);
    let (_, rows) = tensor.slice(&[Slice::from(whole)])?.into_elements();
    let flat = Dense::from_elements([rows.element_count()], rows)?;
    let part = flat.slice(&[Slice::from(before..before.strict_add(count))])?;
    Ok(part.into_elements().1)
}

/// `count` values as f64, which represents all of them.
fn wide(
    elements: &Elements<'_>,
    first: usize,
    count: usize,
    registry: &Registry,
) -> Result<Vec<f64>> {
    let width = elements.dtype.byte_len();
    let bytes = part_of(&elements.bytes, first.strict_mul(width), count.strict_mul(width))?;
    let part = elements.of_same_type(Bytes::Borrowed(bytes));
    let wide = part.cast(FloatType::F64, registry)?;
    Ok(wide.as_slice::<f64>()?.to_vec())
}

/// `len` bytes from `from` on. A reader that gives fewer values than it was asked for has broken its contract.
pub(crate) fn part_of(bytes: &[u8], from: usize, len: usize) -> io::Result<&[u8]> {
    let part = bytes.get(from..from.strict_add(len));
    part.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}
