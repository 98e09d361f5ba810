//! The values of a weight as bytes.

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use zt::container::memory::{in_memory, read_whole, zeroed};
use zt::foreign::on_all_cores;
use zt::formats::dense_byte_len;
use zt::{Blob, Component, FloatType, Object, Result, Source, Span};

use crate::fault::Fault;
use crate::values::loaded::Loaded;
use crate::values::weight::Formula;

/// Values whose codes and scales are in memory at a time.
const LOADED: u64 = 4 << 20;

/// Bits of the codes of a transposed weight that are in memory at a time. A part of its rows has few bytes of each stored
/// row, and to read these took more time than to decode them.
const LOADED_BITS: u64 = 64 << 20;

/// Values that one core computes at a time.
const BLOCK: u64 = 64 << 10;

/// The same, before they are cast: they stay in the core's cache.
const CHUNK: u64 = 8 << 10;

/// A source of the values of a weight, in row-major order, of one floating-point type. They are computed when they are
/// read, of the codes and scales of these values alone.
pub(crate) struct Computed {
    formula: Formula,
    float: FloatType,
    byte_len: u64,
    /// Its number in the file, and what was loaded last of a transposed weight of the file.
    number: usize,
    latest: Latest,
}

/// The number of a weight, and what was loaded of it last. All weights of a file share it.
pub(crate) type Latest = Arc<Mutex<Option<(usize, Arc<Loaded>)>>>;

impl Computed {
    /// The object of these values, and its source.
    pub(crate) fn object(
        formula: Formula,
        float: FloatType,
        number: usize,
        latest: Latest,
    ) -> Result<(Object, Arc<dyn Source>)> {
        let byte_len = dense_byte_len(formula.shape(), float.dtype().byte_len() as u64);
        let span = byte_len.and_then(|byte_len| Span::new(0, byte_len)).ok_or(Fault::TooLong)?;
        let component = Component::new(float.dtype(), Blob::raw(span));
        let object = Object::new(formula.shape(), "dense").with_component("data", component);
        let byte_len = span.byte_len();
        let source = Computed { formula, float, byte_len, number, latest };
        Ok((object, Arc::new(source)))
    }

    /// Fills `out` with whole values from the position `first` on.
    fn fill(&self, first: u64, out: &mut [u8]) -> Result<()> {
        let width = self.float.dtype().byte_len();
        let end = first.strict_add(out.len().strict_div(width) as u64);
        let mut rest = out;
        for whole in self.formula.parts(first..end, LOADED) {
            let loaded = self.load(&whole)?;
            let mut parts = Vec::new();
            for part in self.formula.parts(whole, BLOCK) {
                let count = in_memory(part.end.strict_sub(part.start));
                let (bytes, left) = rest.split_at_mut(count.strict_mul(width));
                parts.push((part, bytes));
                rest = left;
            }
            self.compute(&loaded, parts)?;
        }
        Ok(())
    }

    /// What the values of `range` are made of. Of a transposed weight that is read in order, more is loaded than is asked
    /// for: the parts of its stored rows would be read again and again.
    fn load(&self, range: &Range<u64>) -> Result<Arc<Loaded>> {
        let latest = || self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let before = latest().clone().filter(|(number, _)| *number == self.number);
        let before = before.map(|(_, loaded)| loaded);
        if !self.formula.is_transposed() {
            return Ok(Arc::new(self.formula.load(range)?));
        }
        let is_next = before.as_ref().is_some_and(|it| it.range.end == range.start);
        if let Some(loaded) = before
            && loaded.range.start <= range.start
            && range.end <= loaded.range.end
        {
            return Ok(loaded);
        }
        let mut range = range.clone();
        let count = self.byte_len.strict_div(self.float.dtype().byte_len() as u64);
        let bits = self.formula.codes.decoder().map_or(32, |it| it.packing.bits_of_code());
        let most = LOADED_BITS.strict_div(bits.max(1).into());
        let end = count.min(range.start.strict_add(most));
        let ahead = self.formula.parts(range.start..end, most).into_iter().next();
        if let Some(ahead) = ahead.filter(|it| is_next && it.end > range.end) {
            range = ahead;
        }
        let loaded = Arc::new(self.formula.load(&range)?);
        *latest() = Some((self.number, Arc::clone(&loaded)));
        Ok(loaded)
    }

    fn compute(&self, loaded: &Loaded, parts: Vec<(Range<u64>, &mut [u8])>) -> Result<()> {
        let width = self.float.dtype().byte_len();
        on_all_cores(parts, |(part, bytes)| {
            // Neighbouring lines of a transposed weight are made of the same bytes.
            let chunk = if self.formula.is_transposed() { BLOCK } else { CHUNK };
            let mut values: Vec<f32> = zeroed(chunk)?;
            let mut rest = bytes;
            for part in self.formula.parts(part, chunk) {
                let count = in_memory(part.end.strict_sub(part.start));
                let values = values.get_mut(..count).unwrap_or_default();
                loaded.compute(&self.formula, part.start, values);
                let (bytes, left) = rest.split_at_mut(count.strict_mul(width));
                self.float.write(values, bytes);
                rest = left;
            }
            Ok(())
        })?;
        Ok(())
    }
}

impl Source for Computed {
    fn byte_len(&self) -> u64 {
        self.byte_len
    }

    fn is_sequential(&self) -> bool {
        self.sources().any(|source| source.is_sequential())
    }

    fn is_remote(&self) -> bool {
        self.sources().any(|source| source.is_remote())
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let width = self.float.dtype().byte_len();
        Ok(read_whole(self.byte_len, width, offset, out, |first, out| self.fill(first, out))?)
    }
}

impl Computed {
    fn sources(&self) -> impl Iterator<Item = Arc<dyn Source>> {
        let tensors = self.formula.roles();
        tensors.filter_map(|(_, tensor)| Some(tensor.tensor().stored_bytes("data").ok()?.0))
    }
}
