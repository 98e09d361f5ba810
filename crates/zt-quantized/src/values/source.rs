//! The values of a weight as bytes.

use std::io;
use std::sync::Arc;

use zt::container::memory::end_of_read;
use zt::foreign::on_all_cores;
use zt::formats::dense_byte_len;
use zt::{Blob, Component, Elements, FloatType, Object, Registry, Result, Source, Span};

use crate::fault::Fault;
use crate::values::weight::Formula;

/// A source of the values of a weight, in row-major order, of one floating-point type. They are computed when they are
/// read, of the codes and scales of these values alone.
pub(crate) struct Computed {
    formula: Formula,
    float: FloatType,
    byte_len: u64,
    registry: Registry,
}

impl Computed {
    /// The object of these values, and its source.
    pub(crate) fn object(formula: Formula, float: FloatType) -> Result<(Object, Arc<dyn Source>)> {
        let byte_len = dense_byte_len(formula.shape(), float.dtype().byte_len() as u64);
        let span = byte_len.and_then(|byte_len| Span::new(0, byte_len)).ok_or(Fault::TooLong)?;
        let component = Component::new(float.dtype(), Blob::raw(span));
        let object = Object::new(formula.shape(), "dense").with_component("data", component);
        let byte_len = span.byte_len();
        let source = Computed { formula, float, byte_len, registry: Registry::builtin() };
        Ok((object, Arc::new(source)))
    }

    /// Fills `out` with whole values from the position `first` on.
    fn fill(&self, first: u64, out: &mut [u8]) -> Result<()> {
        let width = self.float.dtype().byte_len();
        let end = first.strict_add(out.len().strict_div(width) as u64);
        let mut parts = Vec::new();
        let mut rest = out;
        for part in self.formula.parts(first..end) {
            let count = usize::try_from(part.end.strict_sub(part.start)).unwrap_or(usize::MAX);
            let (bytes, left) = rest.split_at_mut(count.strict_mul(width));
            parts.push((part, bytes));
            rest = left;
        }
        on_all_cores(parts, |(part, bytes)| {
            let loaded = self.formula.load(&part)?;
            let mut values = vec![0f32; bytes.len().strict_div(width)];
            loaded.compute(part.start, &mut values);
            let cast = Elements::from(&*values).cast(self.float, &self.registry)?;
            bytes.copy_from_slice(&cast.bytes);
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
        let end = end_of_read(self.byte_len, offset, out)?;
        let width = self.float.dtype().byte_len();
        let wide = width as u64;
        let (first, before) = (offset.strict_div(wide), offset.strict_rem(wide));
        if before == 0 && end.is_multiple_of(wide) {
            return Ok(self.fill(first, out)?);
        }
        // Readers ask for parts of a value only at the ends of their pieces.
        let count = end.div_ceil(wide).strict_sub(first);
        let mut whole =
            vec![0; usize::try_from(count).map_err(|_| Fault::TooLong)?.strict_mul(width)];
        self.fill(first, &mut whole)?;
        let part =
            whole.get(usize::try_from(before).map_err(|_| Fault::TooLong)?..).unwrap_or_default();
        out.iter_mut().zip(part).for_each(|(out, byte)| *out = *byte);
        Ok(())
    }
}

impl Computed {
    fn sources(&self) -> impl Iterator<Item = Arc<dyn Source>> {
        let tensors = self.formula.tensors();
        tensors.filter_map(|tensor| Some(tensor.tensor().stored_bytes("data").ok()?.0))
    }
}
