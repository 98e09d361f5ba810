//! The quantized values of one tensor as a source, and their errors.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use zt::container::memory::{end_of_read, in_memory};
use zt::foreign::on_all_cores;
use zt::formats::{Quantization, element_count};
use zt::ggml::BlockType;
use zt::stats::Stats;
use zt::{
    Blob, Component, DType, Elements, FloatType, Object, OwnedTensor, QuantizedGroup, Registry,
    Result, Source, Span, View,
};
use zt_foreign::DATA;

use crate::arithmetic::computed::{floating, object_like, part_of, values};
use crate::arithmetic::fault::Fault;

/// Values of a unit, if groups and words of so many are whole.
const UNIT: u64 = 64 << 10;

/// Values that are read at a time.
const BATCH: u64 = 1 << 20;

/// What values become.
#[derive(Debug, Clone, Copy)]
pub(super) enum To {
    Groups(Quantization),
    Blocks(&'static BlockType),
}

impl To {
    /// Whether values of this tensor can become it.
    pub(super) fn can(&self, tensor: &OwnedTensor) -> bool {
        let of = tensor.tensor();
        let row_len = of.shape().last().copied().unwrap_or(1);
        let types = [FloatType::F64, FloatType::F32, FloatType::F16, FloatType::BF16];
        floating(&of).is_some_and(|float| types.contains(&float))
            && of.element_count().is_some_and(|count| count > 0)
            && match self {
                To::Groups(_) => true,
                To::Blocks(block_type) => row_len.is_multiple_of(block_type.block_len()),
            }
    }

    /// The least number of values that are quantized alone: whole groups and words, or a block.
    fn least(&self) -> u64 {
        match self {
            To::Groups(it) => {
                let per_word = u64::from(it.packing.per_word);
                let divisor = common_divisor(it.group_size, per_word);
                it.group_size.strict_div(divisor).strict_mul(per_word)
            }
            To::Blocks(block_type) => block_type.block_len(),
        }
    }

    /// The components of `count` values, and the length of each.
    fn components(&self, count: u64) -> Vec<(&'static str, DType, u64)> {
        match self {
            To::Groups(it) => {
                let words = count.div_ceil(it.packing.per_word.into());
                let groups = count.div_ceil(it.group_size).strict_mul(4);
                let packed = ("packed_weight", DType::I32, words.strict_mul(4));
                let scales = ("scales", DType::F32, groups);
                let zeros = (!it.signed).then_some(("zeros", DType::F32, groups));
                [packed, scales].into_iter().chain(zeros).collect()
            }
            To::Blocks(it) => {
                let blocks = count.strict_div(it.block_len());
                vec![(DATA, DType::U8, blocks.strict_mul(it.block_byte_len()))]
            }
        }
    }

    /// Quantizes values, and measures their errors.
    fn quantize(&self, values: &[f32]) -> Result<(Unit, Errors)> {
        match self {
            To::Groups(quantization) => {
                let shape = [values.len() as u64];
                let made = QuantizedGroup::quantize(shape, values, *quantization)?;
                let restored = made.to_dense()?;
                let errors = Errors::of(values, restored.as_slice::<f32>()?.iter().copied())?;
                let all = [Some(made.packed()), Some(made.scales()), made.zeros()];
                let parts = all.into_iter().flatten().map(|part| part.bytes.to_vec());
                Ok((parts.collect(), errors))
            }
            To::Blocks(block_type) => {
                let mut blocks = Vec::new();
                block_type.quantize(values, &mut blocks);
                let mut restored = vec![[0; 4]; values.len()];
                block_type.dequantize(&blocks, &mut restored);
                let restored = restored.into_iter().map(f32::from_le_bytes);
                Ok((vec![blocks], Errors::of(values, restored)?))
            }
        }
    }
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a.strict_rem(b)) }
}

/// The bytes that a unit has in each component.
type Unit = Vec<Vec<u8>>;

/// What was quantized last. All tensors of a file share it, so that memory does not grow with the file.
#[derive(Debug, Default)]
pub(super) struct Latest {
    /// By the address of the tensor's [`Units`] and the number of the unit. Scales and zero-points are read after the
    /// packed values, with which they were made.
    units: BTreeMap<(usize, u64), Unit>,
    byte_len: usize,
    /// The units that still have their packed values: a writer looks at the first ones before it reads them all,
    /// and the next piece may begin within the last one.
    packed: Vec<(usize, u64)>,
}

impl Latest {
    /// Bytes of scales and zero-points that are kept of earlier tensors, with which a writer may compare.
    const KEPT: usize = 32 << 20;

    fn keep(&mut self, made: Vec<((usize, u64), Unit)>) {
        for place in std::mem::take(&mut self.packed) {
            self.units.entry(place).and_modify(|unit| drop(unit.first_mut().map(std::mem::take)));
        }
        for (place, unit) in made {
            let lens = unit.iter().skip(1).map(Vec::len);
            self.byte_len = lens.fold(self.byte_len, usize::strict_add);
            self.units.insert(place, unit);
            self.packed.push(place);
        }
        if let Some((address, _)) = self.packed.last().filter(|_| self.byte_len > Self::KEPT) {
            self.units.retain(|(of, _), _| of == address);
            self.byte_len = 0;
        }
    }
}

/// The quantized values of one tensor, one component after the other.
#[derive(Debug)]
pub(super) struct Units {
    tensor: OwnedTensor,
    to: To,
    /// Values of the tensor, and of a unit.
    count: u64,
    unit: u64,
    parts: Vec<Part>,
    measured: Mutex<Measured>,
    latest: Arc<Mutex<Latest>>,
}

/// The place of a component in the source.
#[derive(Debug)]
struct Part {
    role: &'static str,
    dtype: DType,
    span: Span,
    /// Its bytes in a whole unit.
    unit_len: u64,
}

impl Units {
    /// # Errors
    ///
    /// Code `unsupported` for more than 2^63 bytes.
    pub(super) fn new(tensor: OwnedTensor, to: To, latest: &Arc<Mutex<Latest>>) -> Result<Self> {
        let count = element_count(tensor.tensor().shape()).ok_or(Fault::TooLong)?;
        // No component of it is longer than f64, so none of these products overflows.
        let of_values = count.checked_mul(8).and_then(|byte_len| Span::new(0, byte_len));
        of_values.ok_or(Fault::TooLong)?;
        let least = to.least();
        let unit = least.strict_mul(UNIT.strict_div(least).max(1));
        let (mut parts, mut offset) = (Vec::new(), 0);
        let of_unit = to.components(unit).into_iter();
        for ((role, dtype, byte_len), (_, _, unit_len)) in
            to.components(count).into_iter().zip(of_unit)
        {
            let span = Span::new(offset, byte_len).ok_or(Fault::TooLong)?;
            offset = span.end();
            parts.push(Part { role, dtype, span, unit_len });
        }
        let (measured, latest) = (Mutex::default(), Arc::clone(latest));
        Ok(Units { tensor, to, count, unit, parts, measured, latest })
    }

    /// The object with these values in the place of `tensor`.
    pub(super) fn object(&self, tensor: &OwnedTensor) -> Object {
        let mut object = match self.to {
            To::Groups(_) => object_like(tensor, QuantizedGroup::FORMAT),
            To::Blocks(block_type) => object_like(tensor, block_type.format()),
        };
        let attributes = object.attributes.get_or_insert_default();
        if let To::Groups(quantization) = &self.to {
            for (key, value) in quantization.to_attributes() {
                attributes.insert(key, value);
            }
        }
        object.attributes.take_if(|attributes| attributes.is_empty());
        for part in &self.parts {
            let component = Component::new(part.dtype, Blob::raw(part.span));
            object = object.with_component(part.role, component);
        }
        object
    }

    /// The errors of all values that were read, from the first one on without a gap.
    pub(super) fn errors(&self) -> Errors {
        lock(&self.measured).all.clone()
    }

    /// Fills `out` with bytes of a component.
    fn fill(&self, at: usize, part: &Part, offset: u64, out: &mut [u8]) -> Result<()> {
        let end = offset.strict_add(out.len() as u64);
        let all = offset.strict_div(part.unit_len)..end.div_ceil(part.unit_len);
        let batch = BATCH.strict_div(self.unit).max(1);
        let mut first = all.start;
        while first < all.end {
            let units = first..all.end.min(first.strict_add(batch));
            let mut found = self.known(at, units.clone());
            if found.is_empty() {
                found = self.make(at, units)?;
            }
            for bytes in found {
                let start = first.strict_mul(part.unit_len);
                let (from, to) = (offset.max(start), end.min(start.strict_add(bytes.len() as u64)));
                let target = within(out, from.strict_sub(offset), to.strict_sub(offset))?;
                let from = in_memory(from.strict_sub(start));
                target.copy_from_slice(part_of(&bytes, from, target.len())?);
                first = first.strict_add(1);
            }
        }
        Ok(())
    }

    /// The bytes of a component in the first of these units, as many as are known.
    fn known(&self, at: usize, units: Range<u64>) -> Vec<Vec<u8>> {
        let latest = lock(&self.latest);
        let known = units.map_while(|number| {
            let unit = latest.units.get(&(self.address(), number))?;
            unit.get(at).filter(|bytes| !bytes.is_empty()).cloned()
        });
        known.collect()
    }

    /// The bytes of a component in these units, which are quantized on all cores.
    fn make(&self, at: usize, units: Range<u64>) -> Result<Vec<Vec<u8>>> {
        let first = units.start.strict_mul(self.unit);
        let end = self.count.min(units.end.strict_mul(self.unit));
        let elements = values(&self.tensor.tensor(), first, end.strict_sub(first))?;
        let registry = self.tensor.file().registry();
        let unit_len = in_memory(self.unit).strict_mul(elements.dtype.byte_len());
        let pieces = units.zip(elements.bytes.chunks(unit_len)).collect();
        let made = on_all_cores(pieces, |(number, bytes)| {
            let values = Elements::new(elements.dtype, bytes).to_dtype(DType::F32, registry)?;
            let values = values.as_slice::<f32>()?;
            if let Some(at) = values.iter().position(|value| !value.is_finite()) {
                let position = number.strict_mul(self.unit).strict_add(at as u64);
                return Err(Fault::NotFinite { position }.into());
            }
            let (unit, errors) = self.to.quantize(&values)?;
            Ok::<_, zt::Error>((number, unit, errors))
        })?;
        let mut measured = lock(&self.measured);
        let (mut found, mut kept) = (Vec::with_capacity(made.len()), Vec::new());
        for (number, unit, errors) in made {
            measured.add(number, errors);
            found.extend(unit.get(at).cloned());
            kept.push(((self.address(), number), unit));
        }
        // Scales alone are made for a look at an earlier tensor, which must not take the place of the latest one.
        if at == 0 {
            lock(&self.latest).keep(kept);
        }
        Ok(found)
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn sources(&self) -> Vec<(Arc<dyn Source>, Span)> {
        let tensor = self.tensor.tensor();
        let roles = tensor.components().map(|(role, _)| tensor.stored_bytes(role));
        roles.filter_map(Result::ok).collect()
    }
}

impl Source for Units {
    fn byte_len(&self) -> u64 {
        self.parts.last().map_or(0, |last| last.span.end())
    }

    fn is_sequential(&self) -> bool {
        self.sources().iter().any(|(source, _)| source.is_sequential())
    }

    fn is_remote(&self) -> bool {
        self.tensor.tensor().is_remote()
    }

    fn will_read_all(&self, spans: &[Span]) {
        for (source, span) in spans.iter().flat_map(|span| self.made_of(*span)).flatten() {
            source.will_read_all(&[span]);
        }
    }

    fn made_of(&self, span: Span) -> Option<Vec<(Arc<dyn Source>, Span)>> {
        // Scales and zero-points are made with the packed values, which are read first.
        let is_first = span.offset() == 0 && !span.is_empty();
        Some(if is_first { self.sources() } else { Vec::new() })
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let end = end_of_read(self.byte_len(), offset, out)?;
        for (at, part) in self.parts.iter().enumerate() {
            let start = part.span.offset();
            let (from, to) = (offset.max(start), end.min(part.span.end()));
            if from < to {
                let out = within(out, from.strict_sub(offset), to.strict_sub(offset))?;
                self.fill(at, part, from.strict_sub(start), out)?;
            }
        }
        Ok(())
    }
}

/// A part of what is filled.
fn within(out: &mut [u8], from: u64, to: u64) -> io::Result<&mut [u8]> {
    let part = out.get_mut(in_memory(from)..in_memory(to));
    part.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The errors of the units that were made, each counted once.
#[derive(Debug, Default)]
struct Measured {
    /// Of all units before `next`.
    all: Errors,
    next: u64,
    later: BTreeMap<u64, Errors>,
}

impl Measured {
    fn add(&mut self, number: u64, errors: Errors) {
        if number >= self.next {
            self.later.insert(number, errors);
        }
        while let Some(errors) = self.later.remove(&self.next) {
            self.all.append(&errors);
            self.next = self.next.strict_add(1);
        }
    }
}

/// The absolute errors of quantized values.
#[derive(Debug, Clone, Default)]
pub(super) struct Errors {
    pub(super) max: f64,
    sum: f64,
    squares: f64,
    /// Of the values.
    stats: Stats,
}

impl Errors {
    fn of(values: &[f32], restored: impl Iterator<Item = f32>) -> Result<Self> {
        let mut errors = Errors::default();
        for (value, restored) in values.iter().zip(restored) {
            let error = (f64::from(*value) - f64::from(restored)).abs();
            errors.max = errors.max.max(error);
            errors.sum += error;
            errors.squares += error * error;
        }
        errors.stats = Stats::of(&Elements::from(values), &Registry::builtin())?;
        Ok(errors)
    }

    fn append(&mut self, more: &Errors) {
        self.max = self.max.max(more.max);
        self.sum += more.sum;
        self.squares += more.squares;
        self.stats.append(&more.stats);
    }

    pub(super) fn mean(&self) -> f64 {
        self.sum / self.stats.count as f64
    }

    /// The root of the mean square over the deviation of the values; `None` if all are equal.
    pub(super) fn of_std(&self) -> Option<f64> {
        let std = self.stats.finite.map(|finite| finite.std);
        let std = std.filter(|std| *std > 0.0)?;
        Some((self.squares / self.stats.count as f64).sqrt() / std)
    }
}
