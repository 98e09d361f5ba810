//! Bytes of a source that are read once for many elements.

use std::io;

use zt::container::memory::{in_memory, resize};
use zt::{Source, Span};

use super::step::Step;

/// Runs that are at most so far apart are read together. Others are read one by one, because the
/// bytes between them can be the whole base.
///
/// Pays: nothing for a Fortran array of 75 MB in npy, which takes as long with 0 and without end. Views with steps are
/// not measured.
const GAP: u64 = 4 << 10;
/// Bytes that are read at a time if runs are read together.
///
/// Pays: nothing for a Fortran array of 75 MB in npy, which takes as long with 16 KiB and with 4 MiB.
const WINDOW: u64 = 256 << 10;

/// The bytes of a base that were read last.
pub(super) struct Window<'s> {
    base: &'s dyn Source,
    /// Bytes of a run.
    run: u64,
    /// The least bytes of a read; 0 if runs are read one by one.
    ahead: u64,
    span: Span,
    bytes: Vec<u8>,
}

impl<'s> Window<'s> {
    /// A window for the spans of `steps`, in their order.
    pub(super) fn new(base: &'s dyn Source, steps: &[Step], run: u64) -> Self {
        let inner = steps.last().unwrap_or(&Step::ONE);
        let next = steps.len().checked_sub(2).and_then(|at| steps.get(at));
        let reach = inner.span(0, run).map(Span::byte_len);
        let reads_on = base.is_sequential()
            || is_near(inner.from, run)
                && next.zip(reach).is_some_and(|(next, reach)| is_near(next.from, reach));
        Window {
            base,
            run,
            ahead: if reads_on { WINDOW } else { 0 },
            span: Span::default(),
            bytes: Vec::new(),
        }
    }

    /// How many elements of the innermost step are read together from `offset` on: all of them if
    /// they are resident, else as many as a window holds.
    pub(super) fn at_once(&self, offset: u64, inner: &Step) -> u64 {
        let span = inner.span(offset, self.run);
        match span.and_then(|span| self.base.slice(span)) {
            Some(_) => inner.count,
            None => at_once(inner, self.run),
        }
    }

    pub(super) fn bytes(&mut self, span: Span) -> io::Result<&[u8]> {
        if let Some(bytes) = self.base.slice(span) {
            return Ok(bytes);
        }
        if !self.span.contains(span) {
            let left = self.base.byte_len().checked_sub(span.offset());
            let left = left.ok_or(io::ErrorKind::UnexpectedEof)?;
            let len = span.byte_len().max(self.ahead.min(left));
            self.span = Span::default();
            resize(&mut self.bytes, len).map_err(|_| io::ErrorKind::OutOfMemory)?;
            self.base.read_at(span.offset(), &mut self.bytes)?;
            self.span = Span::new(span.offset(), len).ok_or(io::ErrorKind::UnexpectedEof)?;
        }
        let skip = in_memory(span.offset().strict_sub(self.span.offset()));
        let end = skip.strict_add(in_memory(span.byte_len()));
        Ok(self.bytes.get(skip..end).unwrap_or_default())
    }
}

/// How many elements of a step are read together if they are not resident.
pub(super) fn at_once(inner: &Step, run: u64) -> u64 {
    if is_near(inner.from, run) { WINDOW.checked_div(inner.from).unwrap_or(inner.count) } else { 1 }
}

/// Whether runs of `len` bytes that are `distance` apart are near each other.
fn is_near(distance: u64, len: u64) -> bool {
    distance.checked_sub(len).is_none_or(|gap| gap <= GAP)
}
