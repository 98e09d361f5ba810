//! Values in typed fields, as a source of plain elements.
//!
//! `float_data` and `double_data` in one piece are plain elements already. All other values are
//! decoded when they are read. Varints have no fixed length, so the position of every 65,536th value
//! is kept once it has been read.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use zt::container::memory::{end_of_read, in_memory};
use zt::{Error, Result, Source, Span};

use crate::element::{Element, Values};
use crate::fault::OnnxFault;
use crate::wire::{Field, VARINT_MAX, Window, Wire};

/// The most pieces of one tensor's values. Writers make one.
pub(super) const RUNS_MAX: usize = 4096;

/// Values between two kept positions.
const STEP: u64 = 64 << 10;

/// The pieces of a tensor's values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Runs {
    values: Values,
    runs: Vec<Run>,
}

/// Values that lie together: packed, or each after its tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    span: Span,
    /// Bytes of the tag before every value; 0 if the values are packed.
    tag: u64,
}

impl Runs {
    pub(super) const fn new(values: Values) -> Self {
        let runs = Vec::new();
        Runs { values, runs }
    }

    pub(super) const fn values(&self) -> Values {
        self.values
    }

    /// Adds a field: packed values, or one value. Returns `false` if there are too many pieces.
    pub(super) fn push(&mut self, field: &Field) -> Result<bool> {
        let run = if field.wire == self.values.wire() {
            Run {
                span: Span::between(field.tag, field.span.end()).ok_or(OnnxFault::Ends)?,
                tag: field.span.offset().strict_sub(field.tag),
            }
        } else {
            let span = field.bytes()?;
            Run { span, tag: 0 }
        };
        if run.span.is_empty() {
            return Ok(true);
        }
        // Never true of packed values, because a tag and a length are before them.
        let is_next = |last: &&mut Run| run.tag == last.tag && run.span.offset() == last.span.end();
        if let Some(last) = self.runs.last_mut().filter(is_next) {
            let span = Span::between(last.span.offset(), run.span.end());
            last.span = span.ok_or(OnnxFault::Ends)?;
            return Ok(true);
        }
        let has_room = self.runs.len() < RUNS_MAX;
        if has_room {
            self.runs.push(run);
        }
        Ok(has_room)
    }

    /// The span of the values, if they are plain elements.
    pub(super) fn as_span(&self) -> Option<Span> {
        match (self.values.wire(), &*self.runs) {
            (_, []) => Some(Span::default()),
            (Wire::Fixed32 | Wire::Fixed64, [run]) if run.tag == 0 => Some(run.span),
            _ => None,
        }
    }

    /// Refuses a count of values that the bytes cannot have. The exact number of varints is found
    /// when they are read.
    pub(super) fn expect(&self, count: u64) -> Result<(), OnnxFault> {
        let (least, most) = match self.values.wire() {
            Wire::Fixed32 => (4, 4),
            Wire::Fixed64 => (8, 8),
            Wire::Varint | Wire::Bytes => (1, VARINT_MAX),
        };
        // Runs are distinct parts of one file.
        let runs = self.runs.iter().map(|run| (run.span.byte_len(), run.tag));
        let fewest = runs.clone().map(|(len, tag)| len.div_ceil(tag.strict_add(most))).sum();
        let highest = runs.map(|(len, tag)| len.strict_div(tag.strict_add(least))).sum();
        if (fewest..=highest).contains(&count) {
            return Ok(());
        }
        Err(OnnxFault::Count { expected: count, is_more: count < fewest })
    }
}

impl Values {
    pub(super) const fn wire(self) -> Wire {
        match self {
            Values::Float => Wire::Fixed32,
            Values::Double => Wire::Fixed64,
            Values::Int32 | Values::Int64 | Values::Uint64 => Wire::Varint,
        }
    }
}

/// Values that are decoded to plain elements when they are read.
pub(super) struct Typed {
    base: Arc<dyn Source>,
    runs: Runs,
    element: Element,
    count: u64,
    kept: Mutex<Kept>,
}

/// Kept positions.
#[derive(Debug, Default)]
struct Kept {
    /// The positions of the values `STEP`, `2 * STEP`, ..., as far as values have been read.
    steps: Vec<Position>,
    /// The position after the last read, and the number of the value there. A caller that reads
    /// short pieces in order decodes no value twice.
    last: (Position, u64),
}

/// The position of a value.
#[derive(Debug, Clone, Copy, Default)]
struct Position {
    run: usize,
    /// Offset in the run.
    at: u64,
}

impl Typed {
    /// The `expected` bytes of elements in `runs` of `base`, if they can have as many values.
    pub(super) fn new(
        base: Arc<dyn Source>,
        runs: Runs,
        element: Element,
        expected: u64,
    ) -> Result<Self, OnnxFault> {
        let count = expected.strict_div(element.width());
        runs.expect(count)?;
        Ok(Typed { base, runs, element, count, kept: Mutex::default() })
    }

    /// A panic leaves complete positions.
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The nearest kept position at or before the value `number`, and the number of the value there.
    fn nearest(&self, number: u64) -> (Position, u64) {
        let kept = self.kept();
        let steps = (number / STEP).min(kept.steps.len() as u64);
        let last = steps.checked_sub(1).and_then(|last| kept.steps.get(in_memory(last)));
        let nearest = match last {
            Some(last) => (*last, steps.strict_mul(STEP)),
            None => (Position::default(), 0),
        };
        match kept.last {
            last if (nearest.1..=number).contains(&last.1) => last,
            _ => nearest,
        }
    }

    /// Keeps the position of the value `number`, a multiple of `STEP`, if it is the next one.
    fn keep(&self, position: Position, number: u64) {
        let mut kept = self.kept();
        let known = kept.steps.len() as u64;
        if (number / STEP).checked_sub(1) == Some(known) {
            kept.steps.push(position);
        }
    }

    /// The little-endian bytes of the value at `position`, which advances.
    fn value(
        &self,
        window: &mut Window<'_>,
        position: &mut Position,
        number: u64,
    ) -> Result<[u8; 8]> {
        let run = self.run(position).ok_or_else(|| self.miscounted(false))?;
        let (start, end) = (run.span.offset(), run.span.end());
        let mut at = start.strict_add(position.at).strict_add(run.tag);
        let bytes = match self.runs.values.wire() {
            Wire::Varint | Wire::Bytes => {
                let varint = window.varint(&mut at, end)?;
                self.element.bytes_of(varint).map_err(|value| {
                    Error::from(OnnxFault::Range {
                        at: number,
                        value,
                        data_type: self.element.name,
                    })
                })?
            }
            Wire::Fixed32 | Wire::Fixed64 => {
                let span = Span::new(at, self.element.width());
                let span = span.filter(|span| span.end() <= end);
                let span = span.ok_or(OnnxFault::Ends)?;
                at = span.end();
                window.fixed(span)?
            }
        };
        position.at = at.strict_sub(start);
        Ok(bytes)
    }

    /// The run of the next value; `None` after the last.
    fn run(&self, position: &mut Position) -> Option<Run> {
        let run = *self.runs.runs.get(position.run)?;
        if position.at < run.span.byte_len() {
            return Some(run);
        }
        *position = Position { run: position.run.strict_add(1), at: 0 };
        self.runs.runs.get(position.run).copied()
    }

    fn miscounted(&self, is_more: bool) -> Error {
        let expected = self.count;
        OnnxFault::Count { expected, is_more }.into()
    }
}

impl Source for Typed {
    fn byte_len(&self) -> u64 {
        self.count.strict_mul(self.element.width())
    }

    fn is_sequential(&self) -> bool {
        true
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let end = end_of_read(self.byte_len(), offset, buf)?;
        let width = self.element.width();
        let first = offset.strict_div(width);
        let (mut position, mut number) = self.nearest(first);
        // The bytes of the first value before the offset are skipped.
        let mut skip = in_memory(offset.strict_rem(width));
        let mut window = Window::new(&*self.base);
        let mut out = buf;
        let mut last = (position, number);
        while !out.is_empty() {
            last = (position, number);
            let value = self.value(&mut window, &mut position, number)?;
            if number >= first {
                let (_, value) = value.split_at(in_memory(width)).0.split_at(skip);
                let (here, rest) = out.split_at_mut(value.len().min(out.len()));
                here.copy_from_slice(value.split_at(here.len()).0);
                (out, skip) = (rest, 0);
            }
            number = number.strict_add(1);
            if number.is_multiple_of(STEP) {
                self.keep(position, number);
            }
        }
        // A value that this piece ends within is decoded again for the next.
        let is_whole = end.is_multiple_of(width);
        self.kept().last = if is_whole { (position, number) } else { last };
        if number == self.count && self.run(&mut position).is_some() {
            return Err(self.miscounted(true).into());
        }
        Ok(())
    }
}
