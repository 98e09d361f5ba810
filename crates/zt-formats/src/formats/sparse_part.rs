//! Parts of sparse objects. Only the bytes of the part are read.

use std::ops::Range;

use zt_manifest::memory::in_memory;
use zt_manifest::{DType, Text};

use crate::base::elements::value_len;
use crate::base::signature::overflow;
use crate::base::{
    Buffer, ComponentSignature, Dense, Elements, Error, FormatViolation, IndexBound, Places,
    ReadParts, Result, SizeMismatch, check_bools_from,
};
use crate::formats::index::{indices, violation};
use crate::formats::sparse_coo::{COORDS, Coo, stored_count};
use crate::formats::sparse_csr::{Csr, INDICES, INDPTR, VALUES};

/// Indices that are read at a time.
const PIECE: u64 = 8192;

/// The dense value of the part that `read` reads; `None` if the length of a value is unknown,
/// because a part may have no value to learn it from.
pub(crate) fn slice<'a>(
    places: &[Places],
    reader: &mut dyn ReadParts<'a>,
    read: impl FnOnce(&[Places], &mut dyn ReadParts<'a>) -> Result<Dense<'static>>,
) -> Result<Option<Dense<'static>>> {
    let signature = reader.signature();
    let values = signature.component(VALUES)?;
    if values.value_len(reader.registry())?.is_none() {
        return Ok(None);
    }
    let (_, elements) = read(places, reader)?.into_elements();
    Dense::from_elements(shape_of(places), elements).map(Some)
}

impl Csr<'static> {
    /// The rows and columns at `places` as a matrix. Both dimensions stay, also where an index
    /// selects one row or column. Values keep their order within a row. Columns are renumbered from
    /// 0.
    ///
    /// Reads the pointers of the rows, the columns between the pointers, and the values whose
    /// column is selected. All that is read is checked. Memory: the result, and 16 bytes for each
    /// run of neighbouring values.
    ///
    /// # Errors
    ///
    /// Malformed: a pointer or a column breaks the format's rules (`index-value`), or lengths
    /// contradict each other (`shape-size-mismatch`). The reader's errors. Allocation.
    pub fn read_part(places: &[Places], reader: &mut dyn ReadParts<'_>) -> Result<Self> {
        let [rows, columns] = places else {
            let (expected, found) = (2, places.len() as u64);
            return Err(SizeMismatch::Rank { expected, found }.of_object());
        };
        let mut indices = Indices::new(reader, INDICES)?;
        let values = Values::new(reader, indices.count)?;
        let mut pointers = Pointers {
            indices: Indices::new(reader, INDPTR)?,
            rows: rows.dimension(),
            stored: indices.count,
        };
        let selected = pointers.read(rows, reader)?;

        let mut found = Columns { indptr: vec![0], columns: Vec::new(), runs: Runs::default() };
        let mut lengths = selected.lengths.into_iter();
        let mut left = 0u64;
        for run in selected.runs.0 {
            indices.each(reader, run, columns.dimension(), |position, column| {
                while left == 0 {
                    // Never `None`: the rows together are as long as their runs.
                    let Some(length) = lengths.next() else {
                        return Ok(());
                    };
                    left = length;
                    if left == 0 {
                        found.end_row()?;
                    }
                }
                if let Some(column) = columns.position(column) {
                    push(&mut found.columns, column)?;
                    found.runs.push(position)?;
                }
                left = left.strict_sub(1);
                if left == 0 {
                    found.end_row()?;
                }
                Ok(())
            })?;
        }
        for _ in lengths {
            found.end_row()?;
        }
        let shape = [rows.count(), columns.count()];
        let values = values.gather(reader, &found.runs)?;
        Csr::new(shape, values, found.columns, found.indptr)
    }
}

impl Coo<'static> {
    /// The values at `places` in the order in which they are stored. Coordinates are renumbered
    /// from 0. An index removes its dimension.
    ///
    /// Reads coordinates in bounded pieces, dimension by dimension: only of values that all earlier
    /// dimensions select. Then reads the values that all dimensions select. Memory: the result, and
    /// 16 bytes for each run of neighbouring values that are selected so far.
    ///
    /// # Errors
    ///
    /// Malformed: a coordinate that was read lies outside its dimension (`index-value`), or lengths
    /// contradict each other (`shape-size-mismatch`). The reader's errors. Allocation.
    pub fn read_part(places: &[Places], reader: &mut dyn ReadParts<'_>) -> Result<Self> {
        let mut coords = Indices::new(reader, COORDS)?;
        let stored = match stored_count(places.len(), coords.count)? {
            Some(stored) => stored,
            None => Values::count(reader)?,
        };
        let values = Values::new(reader, stored)?;
        let mut runs = Runs::default();
        runs.extend(0..stored)?;
        let axes = (0u64..)
            .zip(places)
            .map(|(axis, places)| Axis { first: axis.strict_mul(stored), places });
        // A whole dimension selects every value. One that is removed is read all the same: its
        // coordinates are checked here or nowhere.
        let is_read = |axis: &Axis<'_>| !axis.places.is_whole() || axis.places.is_index();
        for axis in axes.clone().filter(is_read) {
            let mut within = Runs::default();
            coords.along(reader, axis, &runs, |position, _| within.push(position))?;
            runs = within;
        }
        let mut found = Vec::new();
        for axis in axes.filter(|axis| !axis.places.is_index()) {
            coords.along(reader, axis, &runs, |_, place| push(&mut found, place))?;
        }
        Coo::new(shape_of(places), values.gather(reader, &runs)?, found)
    }
}

/// The shape of a part: an index removes its dimension.
fn shape_of(places: &[Places]) -> Vec<u64> {
    let kept = places.iter().filter(|places| !places.is_index());
    kept.map(Places::count).collect()
}

struct Indices {
    role: &'static str,
    dtype: DType,
    count: u64,
    piece: Buffer,
}

/// The coordinates of all values along one dimension.
#[derive(Clone, Copy)]
struct Axis<'p> {
    /// The position of the first value's coordinate.
    first: u64,
    places: &'p Places,
}

impl Indices {
    fn new(reader: &mut dyn ReadParts<'_>, role: &'static str) -> Result<Self> {
        let signature = reader.signature();
        let Some(dtype) = signature.component(role)?.dtype else {
            let found = None;
            return Err(FormatViolation::IndexDType { found }.of(role));
        };
        let width = dtype.byte_len() as u64;
        Ok(Indices {
            role,
            dtype,
            count: reader.byte_len(role)?.strict_div(width),
            piece: Buffer::try_zeroed(PIECE.strict_mul(width))?,
        })
    }

    /// Calls `found` with the position and the value of each index of a range.
    fn each(
        &mut self,
        reader: &mut dyn ReadParts<'_>,
        range: Range<u64>,
        limit: u64,
        mut found: impl FnMut(u64, u64) -> Result<()>,
    ) -> Result<()> {
        let width = self.dtype.byte_len();
        let mut position = range.start;
        while position < range.end {
            let len = range.end.strict_sub(position).min(PIECE);
            let len = in_memory(len);
            let piece = self.piece.get_mut(..len.strict_mul(width));
            let piece = piece.unwrap_or_default();
            reader.copy(self.role, position.strict_mul(width as u64), piece)?;
            let elements = Elements::new(self.dtype, &*piece);
            let piece = indices(self.role, elements, position, limit)?;
            for index in piece.iter() {
                found(position, *index)?;
                position = position.strict_add(1);
            }
        }
        Ok(())
    }

    /// Calls `found` for each value in `runs` that `axis` selects: its position, and the number of
    /// its coordinate among the places.
    fn along(
        &mut self,
        reader: &mut dyn ReadParts<'_>,
        Axis { first, places }: Axis<'_>,
        runs: &Runs,
        mut found: impl FnMut(u64, u64) -> Result<()>,
    ) -> Result<()> {
        for run in &runs.0 {
            let range = first.strict_add(run.start)..first.strict_add(run.end);
            let limit = places.dimension();
            self.each(reader, range, limit, |position, coord| match places.position(coord) {
                Some(place) => found(position.strict_sub(first), place),
                None => Ok(()),
            })?;
        }
        Ok(())
    }
}

struct Pointers {
    indices: Indices,
    rows: u64,
    stored: u64,
}

struct Rows {
    lengths: Vec<u64>,
    /// The positions of all their values, in the order of the rows.
    runs: Runs,
}

impl Pointers {
    fn read(&mut self, rows: &Places, reader: &mut dyn ReadParts<'_>) -> Result<Rows> {
        let found = self.indices.count;
        let expected = self.rows.checked_add(1).ok_or_else(|| overflow(&[self.rows], INDPTR))?;
        if found != expected {
            return Err(SizeMismatch::Elements { expected, found }.of(INDPTR));
        }
        let mut selected = Rows { lengths: Vec::new(), runs: Runs::default() };
        // The previous row that was read, and the range of its values.
        let mut before: Option<(u64, Range<u64>)> = None;
        let is_contiguous = rows.step() == 1;
        let mut at = 0;
        while let Some(row) = rows.get(at) {
            let count = if is_contiguous { rows.count() } else { 1 };
            let pointers = row..row.strict_add(count).strict_add(1);
            let mut start = None;
            let stored = self.stored;
            let limit = stored.saturating_add(1); // An upper bound is enough.
            let fault = |position, value: u64, bound| {
                Err(violation(position, value.into(), bound).of(INDPTR))
            };
            let last = self.rows;
            self.indices.each(reader, pointers, limit, |position, pointer| {
                let only = match position {
                    0 => Some(0),
                    _ if position == last => Some(stored),
                    _ => None,
                };
                if let Some(only) = only.filter(|only| *only != pointer) {
                    return fault(position, pointer, IndexBound::Exactly(only));
                }
                let Some(begin) = start.replace(pointer) else {
                    // The rows in between were not read, but pointers must not decrease there.
                    return match &before {
                        Some((other, range)) if *other < position && pointer < range.end => {
                            fault(position, pointer, IndexBound::AtLeast(range.end))
                        }
                        _ => Ok(()),
                    };
                };
                if pointer < begin {
                    return fault(position, pointer, IndexBound::AtLeast(begin));
                }
                let row = position.strict_sub(1);
                if let Some((other, range)) = &before
                    && *other > row
                    && pointer > range.start
                {
                    return fault(*other, range.start, IndexBound::AtLeast(pointer));
                }
                push(&mut selected.lengths, pointer.strict_sub(begin))?;
                selected.runs.extend(begin..pointer)?;
                before = Some((row, begin..pointer));
                Ok(())
            })?;
            at = at.strict_add(count);
        }
        Ok(selected)
    }
}

/// The selected columns, and the positions of their values.
struct Columns {
    indptr: Vec<u64>,
    columns: Vec<u64>,
    runs: Runs,
}

impl Columns {
    fn end_row(&mut self) -> Result<()> {
        push(&mut self.indptr, self.columns.len() as u64)
    }
}

struct Values {
    dtype: DType,
    logical_type: Option<Text>,
    value_len: u64,
}

impl Values {
    /// `stored` values.
    fn new(reader: &mut dyn ReadParts<'_>, stored: u64) -> Result<Self> {
        let signature = reader.signature();
        let component = signature.component(VALUES)?;
        let byte_len = reader.byte_len(VALUES)?;
        // Layout 1.0 may not give it: those are bytes.
        let dtype = component.dtype.unwrap_or(DType::U8);
        let value_len = match component.value_len(reader.registry())? {
            Some(value_len) => value_len,
            None if byte_len == 0 && stored == 0 => 0,
            None => {
                let name = component.logical_type.unwrap_or(dtype.as_str());
                value_len(dtype, name, byte_len, stored)?
            }
        };
        let component = ComponentSignature { byte_len: Some(byte_len), ..*component };
        component.expect_values(stored, reader.registry())?;
        let logical_type = component.logical_type.map(str::to_owned);
        Ok(Values { dtype, logical_type: logical_type.map(Text::Owned), value_len })
    }

    /// The number of values of a scalar. If their type is unknown, one.
    fn count(reader: &mut dyn ReadParts<'_>) -> Result<u64> {
        let signature = reader.signature();
        let value_len = signature.component(VALUES)?.value_len(reader.registry())?;
        let byte_len = reader.byte_len(VALUES)?;
        let count = value_len.and_then(|value_len| byte_len.checked_div(value_len));
        Ok(count.unwrap_or(1))
    }

    fn gather(&self, reader: &mut dyn ReadParts<'_>, runs: &Runs) -> Result<Elements<'static>> {
        let mut out = Buffer::try_zeroed_values(runs.count(), self.value_len)?;
        let mut rest = &mut out[..];
        for run in &runs.0 {
            let len = (run.end.strict_sub(run.start)).strict_mul(self.value_len);
            let Some(place) = rest.split_off_mut(..in_memory(len)) else {
                break; // Never taken: `out` has room for all runs.
            };
            let start = run.start.strict_mul(self.value_len);
            reader.copy(VALUES, start, place)?;
            if self.dtype == DType::Bool {
                check_bools_from(start, place).map_err(|error| error.with_role(VALUES))?;
            }
        }
        let mut elements = Elements::new(self.dtype, out);
        elements.logical_type.clone_from(&self.logical_type);
        Ok(elements)
    }
}

/// Positions of values, as ranges of neighbours.
#[derive(Default)]
struct Runs(Vec<Range<u64>>);

impl Runs {
    fn push(&mut self, position: u64) -> Result<()> {
        self.extend(position..position.strict_add(1))
    }

    fn extend(&mut self, range: Range<u64>) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        match self.0.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => push(&mut self.0, range)?,
        }
        Ok(())
    }

    fn count(&self) -> u64 {
        let lengths = self.0.iter().map(|run| run.end.strict_sub(run.start));
        lengths.fold(0, u64::strict_add)
    }
}

/// Adds an item to a list whose length a file decides: missing memory is an error.
fn push<T>(items: &mut Vec<T>, item: T) -> Result<()> {
    if items.len() == items.capacity() {
        let more = items.len().max(64);
        let byte_len = (items.len() as u64).strict_add(more as u64);
        let byte_len = byte_len.strict_mul(size_of::<T>() as u64);
        let reserved = items.try_reserve(more);
        reserved.map_err(|_| Error::Allocation { byte_len })?;
    }
    items.push(item);
    Ok(())
}
