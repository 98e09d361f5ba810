//! Elements in another order than row-major, as a source that gives them row-major: arrays of
//! Fortran, transposed and sliced views.
//!
//! Rows of such a view are scattered over its bytes, so it is gathered in *bands*: as many of the
//! outermost rows as fit into a few megabytes are put together in one pass over the bytes, in the
//! order in which these lie. Bands are kept while they are being read, a few at a time, for all
//! views of a file together: memory does not grow with the views, nor with their size.
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use zt::container::BlobReader;
use zt::{Blob, Error, Limits, Result, Source, Span};

/// Bytes of a band where bytes are fetched by position: runs of a column as long as can be.
const BAND: u64 = 32 << 20;
/// Of all bands, as long as they need not be smaller than [`BAND_MIN`].
const BANDS: u64 = 128 << 20;
const BAND_MIN: u64 = 4 << 20;
/// Where bytes are resident, a band need only be so high that no cache line is fetched twice.
const RESIDENT_BAND: u64 = 1 << 20;
const CACHE_LINE: u64 = 64;
/// Where bytes have to be made in order, a band is a pass over all of them.
const SEQUENTIAL_BAND: u64 = 256 << 20;

/// Runs from this length on are read one by one, straight to where they belong.
const LONG_RUN: u64 = 4 << 10;
/// Bytes between two runs that are rather read than skipped, and how many are read at a time then.
const GAP: u64 = 4 << 10;
const WINDOW: u64 = 256 << 10;

/// A view of elements: where the first lies, and how far the others are apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct View {
    offset: u64,
    /// Bytes that lie together: an element, or several that are neighbours in both orders.
    run: u64,
    /// Outermost first; none of them is 1.
    dimensions: Vec<Dimension>,
    byte_len: u64,
    end: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Dimension {
    count: u64,
    /// Bytes from one to the next.
    stride: u64,
}

impl View {
    /// Elements of `element_len` bytes, the first at `offset`, `strides` bytes apart; shape and
    /// strides outermost first. `None` where a byte would lie behind 2^64, or where there are other
    /// than as many strides as dimensions.
    pub(crate) fn new(
        offset: u64,
        element_len: u64,
        shape: &[u64],
        strides: &[u64],
    ) -> Option<Self> {
        let elements = shape
            .iter()
            .try_fold(1u64, |n, count| n.checked_mul(*count))?;
        let byte_len = elements.checked_mul(element_len)?;
        if shape.len() != strides.len() {
            return None;
        }
        let mut end = offset;
        let mut dimensions: Vec<Dimension> = Vec::new();
        for (count, stride) in shape.iter().zip(strides) {
            if elements == 0 || *count == 1 {
                continue;
            }
            end = end.checked_add(stride.checked_mul(count.checked_sub(1)?)?)?;
            let inner = Dimension {
                count: *count,
                stride: *stride,
            };
            match dimensions.last_mut() {
                // The outer one goes on where the inner one ends: they are one.
                Some(outer) if Some(outer.stride) == stride.checked_mul(*count) => {
                    outer.count = outer.count.checked_mul(*count)?;
                    outer.stride = *stride;
                }
                _ => dimensions.push(inner),
            }
        }
        if elements > 0 {
            end = end.checked_add(element_len)?;
        }
        let mut run = element_len;
        if let Some(inner) = dimensions.pop_if(|inner| inner.stride == element_len) {
            run = run.checked_mul(inner.count)?;
        }
        Some(View {
            offset,
            run,
            dimensions,
            byte_len,
            end,
        })
    }

    /// An array of Fortran: the first dimension is the innermost.
    pub(crate) fn fortran(offset: u64, element_len: u64, shape: &[u64]) -> Option<Self> {
        let mut strides = Vec::with_capacity(shape.len());
        let mut stride = element_len;
        for count in shape {
            strides.push(stride);
            stride = stride.checked_mul(*count)?;
        }
        View::new(offset, element_len, shape, &strides)
    }

    /// Where its bytes are, if they lie in row-major order as they are.
    pub(crate) fn as_span(&self) -> Option<Span> {
        let is_plain = self.byte_len == 0 || self.dimensions.is_empty();
        is_plain
            .then(|| Span::new(self.offset, self.byte_len))
            .flatten()
    }

    /// Bytes of its elements.
    pub(crate) fn byte_len(&self) -> u64 {
        self.byte_len
    }

    /// One past the last byte that it touches.
    #[cfg(test)]
    pub(crate) fn end(&self) -> u64 {
        self.end
    }
}

/// The elements of a view in row-major order.
pub(crate) struct Strided {
    base: Arc<dyn Source>,
    view: View,
    bands: Bands,
    id: u64,
    shape: BandShape,
    check: Option<(Blob, OnceLock<()>)>,
}

/// How a view is cut into bands: each is `rows` of one of the dimensions, and all of those within.
#[derive(Debug, Clone, Copy)]
struct BandShape {
    axis: usize,
    rows: u64,
    /// Bytes of one row.
    row: u64,
    /// Bytes of all rows.
    plane: u64,
}

impl Strided {
    /// The elements of `view`, which lies within `base`. `bands` is shared by the views of a file.
    pub(crate) fn new(base: Arc<dyn Source>, view: View, bands: &Bands) -> Self {
        let shape = BandShape::of(&view, &*base);
        Strided {
            base,
            view,
            bands: bands.clone(),
            id: bands.next_id(),
            shape,
            check: None,
        }
    }

    /// Compares the digest of `blob`, bytes of the base, before the last element is given out: the
    /// elements have none in this order.
    pub(crate) fn checked(mut self, blob: Blob) -> Self {
        self.check = Some((blob, OnceLock::new()));
        self
    }

    fn check(&self) -> Result<()> {
        let Some((blob, is_right)) = &self.check else {
            return Ok(());
        };
        if is_right.get().is_some() {
            return Ok(());
        }
        // The bytes exist, and are only looked at.
        let limits = Limits {
            decoded_len: u64::MAX,
            ..Limits::default()
        };
        let mut reader = BlobReader::new(&self.base, blob, &limits)?;
        let mut piece = vec![0; 256 << 10];
        while reader.read(&mut piece)? > 0 {}
        let _ = is_right.set(()); // Whoever was first found the same.
        Ok(())
    }

    /// Copies from the band that holds `offset`; how many bytes.
    fn copy(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        let band = self.shape.band(&self.view, offset);
        let key = (self.id, band.start);
        let skip = offset.saturating_sub(band.start);
        self.bands
            .copy(key, band.byte_len, skip, out, || self.gather(&band))
    }

    /// The elements of a band, in row-major order.
    fn gather(&self, band: &Band) -> io::Result<Vec<u8>> {
        let len = usize::try_from(band.byte_len).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let mut bytes = Vec::new();
        bytes
            .try_reserve_exact(len)
            .map_err(|_| io::ErrorKind::OutOfMemory)?;
        bytes.resize(len, 0);
        let mut steps = self.steps(band);
        // In the order in which the bytes lie.
        steps.sort_by_key(|step| std::cmp::Reverse(step.from));
        let mut window = Window::new(&*self.base, &steps, self.view.run);
        let inner = steps.pop().unwrap_or(Step::ONE);
        let mut place = Place::new(steps, band.base);
        loop {
            let span = inner.span(place.from, self.view.run);
            let source = window.bytes(span)?;
            let target = usize::try_from(place.to)
                .ok()
                .and_then(|to| bytes.get_mut(to..));
            scatter(source, target.unwrap_or_default(), &inner, self.view.run);
            if !place.advance() {
                return Ok(bytes);
            }
        }
    }

    /// The dimensions of a band, as steps in the base and in the band.
    fn steps(&self, band: &Band) -> Vec<Step> {
        let mut to = self.view.run;
        let mut steps = Vec::new();
        let inner = self
            .view
            .dimensions
            .iter()
            .enumerate()
            .skip(self.shape.axis)
            .rev();
        for (axis, dimension) in inner {
            let count = if axis == self.shape.axis {
                band.rows
            } else {
                dimension.count
            };
            steps.push(Step {
                count,
                from: dimension.stride,
                to,
            });
            to = to.saturating_mul(count);
        }
        steps.reverse();
        steps
    }

    fn fill(&self, mut offset: u64, mut out: &mut [u8]) -> io::Result<()> {
        while !out.is_empty() {
            let len = if self.view.run >= LONG_RUN || self.view.dimensions.is_empty() {
                let within = offset.checked_rem(self.view.run).unwrap_or(0);
                let rest = self.view.run.saturating_sub(within);
                let len = usize::try_from(rest).unwrap_or(usize::MAX).min(out.len());
                let from = self.run_at(offset).saturating_add(within);
                self.base
                    .read_at(from, out.get_mut(..len).unwrap_or_default())?;
                len
            } else {
                self.copy(offset, out)?
            };
            if len == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            offset = offset.saturating_add(len as u64);
            out = out.get_mut(len..).unwrap_or_default();
        }
        Ok(())
    }

    /// Where in the base the run begins that holds the element byte `offset`.
    fn run_at(&self, offset: u64) -> u64 {
        let mut index = offset.checked_div(self.view.run).unwrap_or(0);
        let mut at = self.view.offset;
        for dimension in self.view.dimensions.iter().rev() {
            let position = index.checked_rem(dimension.count).unwrap_or(0);
            index = index.checked_div(dimension.count).unwrap_or(0);
            at = at.saturating_add(position.saturating_mul(dimension.stride));
        }
        at
    }
}

impl Source for Strided {
    fn byte_len(&self) -> u64 {
        self.view.byte_len
    }

    fn is_sequential(&self) -> bool {
        self.base.is_sequential()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(buf.len() as u64);
        if end.is_none_or(|end| end > self.view.byte_len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.fill(offset, buf)?;
        if end == Some(self.view.byte_len) {
            self.check()?;
        }
        Ok(())
    }
}

/// A part of a view.
#[derive(Debug, Clone, Copy)]
struct Band {
    /// Its first byte, of those of the view.
    start: u64,
    byte_len: u64,
    rows: u64,
    /// Where in the base its first element is.
    base: u64,
}

impl BandShape {
    fn of(view: &View, base: &dyn Source) -> Self {
        let room = if base.is_sequential() {
            SEQUENTIAL_BAND
        } else if base
            .slice(Span::new(view.offset, 1).unwrap_or_default())
            .is_some()
        {
            RESIDENT_BAND
        } else {
            let share = BANDS.checked_div(slots() as u64);
            share.unwrap_or(BAND).clamp(BAND_MIN, BAND)
        };
        // From the innermost dimension outwards, as long as all of it fits.
        let mut row = view.run;
        let mut axis = view.dimensions.len().saturating_sub(1);
        let mut inner = view.dimensions.iter().enumerate().skip(1).rev();
        while let Some((at, dimension)) = inner.next()
            && let Some(all) = row.checked_mul(dimension.count).filter(|all| *all <= room)
        {
            row = all;
            axis = at.saturating_sub(1);
        }
        let count = view
            .dimensions
            .get(axis)
            .map_or(1, |dimension| dimension.count);
        let line = CACHE_LINE.checked_div(view.run).unwrap_or(1);
        let high = row.checked_mul(line).is_some_and(|bytes| bytes <= BAND);
        let fits = room.checked_div(row).unwrap_or(1);
        let rows = fits.max(if high { line } else { 1 }).clamp(1, count.max(1));
        BandShape {
            axis,
            rows,
            row,
            plane: row.saturating_mul(count),
        }
    }

    /// The band that holds the byte at `offset`.
    fn band(&self, view: &View, offset: u64) -> Band {
        let plane = offset.checked_div(self.plane).unwrap_or(0);
        let within = offset.checked_rem(self.plane).unwrap_or(0);
        let row = within.checked_div(self.row).unwrap_or(0);
        let first = row.saturating_sub(row.checked_rem(self.rows).unwrap_or(0));
        let outer = view.dimensions.get(..self.axis).unwrap_or_default();
        let here = view.dimensions.get(self.axis);
        let (count, stride) = here.map_or((1, 0), |axis| (axis.count, axis.stride));
        let rows = self.rows.min(count.saturating_sub(first));
        let mut base = view.offset.saturating_add(first.saturating_mul(stride));
        let mut index = plane;
        for dimension in outer.iter().rev() {
            let position = index.checked_rem(dimension.count).unwrap_or(0);
            index = index.checked_div(dimension.count).unwrap_or(0);
            base = base.saturating_add(position.saturating_mul(dimension.stride));
        }
        let start = plane.saturating_mul(self.plane);
        Band {
            start: start.saturating_add(first.saturating_mul(self.row)),
            byte_len: rows.saturating_mul(self.row),
            rows,
            base,
        }
    }
}

/// `count` times on: by `from` bytes in the base, by `to` in the band.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    pub(crate) count: u64,
    pub(crate) from: u64,
    pub(crate) to: u64,
}

impl Step {
    const ONE: Step = Step {
        count: 1,
        from: 0,
        to: 0,
    };

    /// What all of it touches in the base, from `offset` on.
    fn span(&self, offset: u64, run: u64) -> Span {
        let reach = self.from.saturating_mul(self.count.saturating_sub(1));
        Span::new(offset, reach.saturating_add(run)).unwrap_or_default()
    }
}

/// Counts through steps, the last the fastest.
pub(crate) struct Place {
    steps: Vec<Step>,
    at: Vec<u64>,
    pub(crate) from: u64,
    pub(crate) to: u64,
}

impl Place {
    pub(crate) fn new(steps: Vec<Step>, from: u64) -> Self {
        Place {
            at: vec![0; steps.len()],
            steps,
            from,
            to: 0,
        }
    }

    /// Goes on to the next place; false behind the last.
    pub(crate) fn advance(&mut self) -> bool {
        for (step, at) in self.steps.iter().zip(&mut self.at).rev() {
            *at = at.saturating_add(1);
            self.from = self.from.saturating_add(step.from);
            self.to = self.to.saturating_add(step.to);
            if *at < step.count {
                return true;
            }
            self.from = self
                .from
                .saturating_sub(step.from.saturating_mul(step.count));
            self.to = self.to.saturating_sub(step.to.saturating_mul(step.count));
            *at = 0;
        }
        false
    }
}

/// Copies runs that lie `inner.from` apart to places that lie `inner.to` apart.
fn scatter(source: &[u8], target: &mut [u8], inner: &Step, run: u64) {
    let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let (from, run) = (size(inner.from), size(run));
    let targets = target
        .chunks_mut(size(inner.to).max(1))
        .take(size(inner.count));
    match run {
        1 => scatter_fixed::<1>(source, targets, from),
        2 => scatter_fixed::<2>(source, targets, from),
        4 => scatter_fixed::<4>(source, targets, from),
        8 => scatter_fixed::<8>(source, targets, from),
        16 => scatter_fixed::<16>(source, targets, from),
        _ => {
            for (at, target) in targets.enumerate() {
                let source = source.get(at.saturating_mul(from)..);
                let source = source.and_then(|source| source.get(..run));
                if let (Some(source), Some(target)) = (source, target.get_mut(..run)) {
                    target.copy_from_slice(source);
                }
            }
        }
    }
}

/// As [`scatter`], of elements whose width the compiler knows.
fn scatter_fixed<'t, const N: usize>(
    source: &[u8],
    targets: impl Iterator<Item = &'t mut [u8]>,
    from: usize,
) {
    for (at, target) in targets.enumerate() {
        let source = source.get(at.saturating_mul(from)..);
        let source = source.and_then(|source| source.first_chunk::<N>());
        if let (Some(source), Some(target)) = (source, target.first_chunk_mut::<N>()) {
            *target = *source;
        }
    }
}

/// The bytes of a base that are at hand.
struct Window<'s> {
    base: &'s dyn Source,
    /// How much is fetched where little lies between what is wanted.
    ahead: u64,
    span: Span,
    bytes: Vec<u8>,
}

impl<'s> Window<'s> {
    /// For spans that `steps` lead to, in their order.
    fn new(base: &'s dyn Source, steps: &[Step], run: u64) -> Self {
        let inner = steps
            .last()
            .map_or(run, |inner| inner.span(0, run).byte_len());
        let next = steps.len().checked_sub(2).and_then(|at| steps.get(at));
        let gap = next.map_or(u64::MAX, |next| next.from.saturating_sub(inner));
        let reads_on = gap <= GAP || base.is_sequential();
        Window {
            base,
            ahead: if reads_on { WINDOW } else { 0 },
            span: Span::default(),
            bytes: Vec::new(),
        }
    }

    fn bytes(&mut self, span: Span) -> io::Result<&[u8]> {
        if let Some(bytes) = self.base.slice(span) {
            return Ok(bytes);
        }
        if !self.span.contains(span) {
            let left = self.base.byte_len().saturating_sub(span.offset());
            let len = span.byte_len().max(self.ahead.min(left));
            self.span = Span::default();
            let len = usize::try_from(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
            let more = len.saturating_sub(self.bytes.len());
            self.bytes
                .try_reserve(more)
                .map_err(|_| io::ErrorKind::OutOfMemory)?;
            self.bytes.resize(len, 0);
            self.base.read_at(span.offset(), &mut self.bytes)?;
            self.span = Span::new(span.offset(), len as u64).unwrap_or_default();
        }
        let skip = span.offset().saturating_sub(self.span.offset());
        let part = usize::try_from(skip)
            .ok()
            .zip(usize::try_from(span.byte_len()).ok());
        let part = part.and_then(|(skip, len)| self.bytes.get(skip..)?.get(..len));
        Ok(part.unwrap_or_default())
    }
}

/// The bands of a file's views that are being read.
#[derive(Clone, Default)]
pub(crate) struct Bands(Arc<Mutex<Held>>);

#[derive(Default)]
struct Held {
    ids: u64,
    /// The last one used at the end.
    slots: Vec<(Key, Arc<Slot>)>,
}

/// A view, and the first byte of the band.
pub(crate) type Key = (u64, u64);

struct Slot {
    bytes: Mutex<Option<Vec<u8>>>,
    /// Bytes that nobody has read yet, if each is read once.
    left: Mutex<u64>,
}

/// Bands that are held at a time: one for every thread that may read.
pub(crate) fn slots() -> usize {
    // Asked once: the answer takes a look at several files.
    static THREADS: OnceLock<usize> = OnceLock::new();
    let ask = || std::thread::available_parallelism().map_or(4, |threads| threads.get().max(4));
    *THREADS.get_or_init(ask)
}

impl Bands {
    /// A number that no other view of the file has: the first half of the keys of its bands.
    pub(crate) fn next_id(&self) -> u64 {
        let mut held = lock(&self.0);
        held.ids = held.ids.saturating_add(1);
        held.ids
    }

    /// Copies the bytes from `skip` on out of a band of `byte_len` bytes, which whoever comes first
    /// has to `make`; how many there were, up to all of `out`.
    pub(crate) fn copy(
        &self,
        key: Key,
        byte_len: u64,
        skip: u64,
        out: &mut [u8],
        make: impl FnOnce() -> io::Result<Vec<u8>>,
    ) -> io::Result<usize> {
        let slot = self.slot(key, byte_len);
        let copied = slot.with(make, |bytes| {
            let skip = usize::try_from(skip).unwrap_or(usize::MAX);
            let held = bytes.get(skip..).unwrap_or_default();
            let len = held.len().min(out.len());
            for (to, from) in out.iter_mut().zip(held) {
                *to = *from;
            }
            len
        })?;
        if slot.is_used_up(copied as u64) {
            self.remove(key);
        }
        Ok(copied)
    }

    fn slot(&self, key: Key, byte_len: u64) -> Arc<Slot> {
        let held = &mut lock(&self.0).slots;
        let slot = match held.iter().position(|(known, _)| *known == key) {
            Some(at) => held.remove(at).1,
            None => Arc::new(Slot {
                bytes: Mutex::default(),
                left: Mutex::new(byte_len),
            }),
        };
        if held.len() >= slots() {
            held.remove(0);
        }
        held.push((key, Arc::clone(&slot)));
        slot
    }

    fn remove(&self, key: Key) {
        lock(&self.0).slots.retain(|(known, _)| *known != key);
    }
}

impl Slot {
    /// Looks at the bytes, which whoever comes first has to `make`; others wait for them.
    fn with<T>(
        &self,
        make: impl FnOnce() -> io::Result<Vec<u8>>,
        look: impl FnOnce(&[u8]) -> T,
    ) -> io::Result<T> {
        let mut bytes = lock(&self.bytes);
        let made = match bytes.take() {
            Some(made) => made,
            None => make()?,
        };
        Ok(look(bytes.insert(made)))
    }

    fn is_used_up(&self, read: u64) -> bool {
        let mut left = lock(&self.left);
        *left = left.saturating_sub(read);
        *left == 0
    }
}

/// What a panic left behind is whole: it is only ever replaced.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why a view cannot be read.
#[derive(Debug)]
pub(crate) struct TooLongToReorder {
    pub(crate) byte_len: u64,
}

/// Elements of a compressed stream that lie in another order are gathered in several passes over
/// it. Beyond this there would be too many.
pub(crate) const REORDER_MAX: u64 = 4 << 30;

impl std::error::Error for TooLongToReorder {}

impl std::fmt::Display for TooLongToReorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} compressed bytes in another order than row-major; up to {REORDER_MAX} are put in order",
            self.byte_len
        )
    }
}

impl From<TooLongToReorder> for Error {
    fn from(fault: TooLongToReorder) -> Self {
        Error::new(zt::ErrorKind::Unsupported, "unsupported", fault)
    }
}

#[cfg(test)]
#[allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "small numbers"
)]
mod tests {
    use super::*;

    /// Bytes that are not resident.
    struct Positioned(Vec<u8>);

    impl Source for Positioned {
        fn byte_len(&self) -> u64 {
            self.0.len() as u64
        }

        fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
            zt::Memory::new(&self.0).read_at(offset, buf)
        }
    }

    fn bytes(len: u64) -> Vec<u8> {
        (0..len)
            .map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect()
    }

    /// Element by element.
    fn expected(bytes: &[u8], offset: u64, len: u64, shape: &[u64], strides: &[u64]) -> Vec<u8> {
        let count: u64 = shape.iter().product();
        let mut out = Vec::new();
        for element in 0..count {
            let (mut index, mut at) = (element, offset);
            for (count, stride) in shape.iter().zip(strides).rev() {
                at += index % count * stride;
                index /= count;
            }
            out.extend_from_slice(&bytes[at as usize..(at + len) as usize]);
        }
        out
    }

    fn check(offset: u64, len: u64, shape: &[u64], strides: &[u64]) {
        let view = View::new(offset, len, shape, strides).unwrap();
        let bytes = bytes(view.end());
        let expected = expected(&bytes, offset, len, shape, strides);
        assert_eq!(view.byte_len(), expected.len() as u64);
        if let Some(span) = view.as_span() {
            assert_eq!(
                &bytes[span.offset() as usize..span.end() as usize],
                expected
            );
        }
        let sources: [Arc<dyn Source>; 2] = [
            Arc::new(zt::Memory::new(bytes.clone())),
            Arc::new(Positioned(bytes)),
        ];
        for source in sources {
            let bands = Bands::default();
            let strided = Strided::new(source, view.clone(), &bands);
            for piece in [expected.len().max(1), 700, 4096] {
                let mut found = vec![0; expected.len()];
                for (at, part) in found.chunks_mut(piece).enumerate() {
                    strided.read_at((at * piece) as u64, part).unwrap();
                }
                assert!(found == expected, "{shape:?} {strides:?} by {piece}");
            }
            assert!(lock(&bands.0).slots.is_empty(), "what is read is not kept");
        }
    }

    #[test]
    fn views_of_any_strides_are_row_major() {
        check(0, 4, &[3, 5], &[4, 12]);
        check(8, 2, &[4, 3, 2], &[2, 8, 24]);
        check(0, 8, &[2, 3, 4], &[8, 64, 16]);
        check(3, 1, &[7, 1, 5], &[1, 9, 7]);
        check(0, 4, &[], &[]);
        check(0, 4, &[3, 0, 2], &[4, 4, 4]);
        check(5, 3, &[4, 4], &[48, 6]);
        check(0, 4, &[3, 4], &[0, 4]);
        check(0, 2, &[2, 3, 4, 5], &[2, 40, 8, 4000]);
        check(0, 4, &[3, 5, 2000], &[8000, 24000, 4]);
        check(0, 16, &[300, 700], &[16, 4800]);
        check(0, 4, &[3, 400_000], &[4, 12]);
    }

    #[test]
    fn what_lies_in_order_is_a_span() {
        let plain = View::new(8, 4, &[2, 1, 3], &[12, 99, 4]).unwrap();
        assert_eq!(plain.as_span(), Span::new(8, 24));
        assert_eq!(
            View::fortran(0, 4, &[1, 6]).unwrap().as_span(),
            Span::new(0, 24)
        );
        assert_eq!(
            View::fortran(0, 4, &[2, 0]).unwrap().as_span(),
            Span::new(0, 0)
        );
        assert_eq!(View::fortran(0, 4, &[2, 3]).unwrap().as_span(), None);
    }

    #[test]
    fn what_passes_the_last_address_is_no_view() {
        assert_eq!(View::new(0, 4, &[1 << 62, 2], &[4, 4]), None);
        assert_eq!(View::new(0, 4, &[2], &[u64::MAX]), None);
        assert_eq!(View::new(u64::MAX, 1, &[2], &[1]), None);
        assert_eq!(View::new(0, 1, &[2], &[]), None);
        assert_eq!(View::fortran(0, 8, &[1 << 61, 0]), None);
    }

    #[test]
    fn the_digest_of_the_base_is_compared_at_the_end() {
        let base = bytes(24);
        let digest = zt::DigestAlgorithm::Crc32c.digest(&base).unwrap();
        for (right, change) in [(true, 0), (false, 1)] {
            let mut base = base.clone();
            base[7] ^= change;
            let blob = Blob {
                digest: Some(digest.clone()),
                ..Blob::raw(Span::new(0, 24).unwrap())
            };
            let view = View::fortran(0, 4, &[2, 3]).unwrap();
            let base = Arc::new(zt::Memory::new(base));
            let strided = Strided::new(base, view, &Bands::default()).checked(blob);
            strided.read_at(0, &mut [0; 8]).unwrap();
            assert_eq!(strided.read_at(16, &mut [0; 8]).is_ok(), right);
        }
    }
}
