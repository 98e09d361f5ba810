//! Parts of sparse objects. Only the bytes of the part are read.
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use std::ops::Range;

use zt_formats::{
    Buffer, Coo, Csr, Dense, Elements, Error, IndexBound, Places, SizeMismatch, Slice, View,
    Violation, check_bools_from, indices,
};
use zt_manifest::DType;

use crate::error::Result;
use crate::file::tensor::Tensor;
use crate::read::window::Window;

const VALUES: &str = "values";
const INDICES: &str = "indices";
const INDPTR: &str = "indptr";
const COORDS: &str = "coords";

/// Indices that are looked at at a time.
const PIECE: u64 = 8192;

impl<'f> Tensor<'f> {
    /// Rows and columns of a `sparse_csr` object as a matrix of their own, as SciPy's slicing of a
    /// matrix gives it: an index takes one row or column, and both dimensions stay. Values keep
    /// their order within a row, and columns count from the first that was selected.
    ///
    /// Read are the pointers of the rows, the columns between the pointers, and those values whose
    /// column is selected; of compressed components, the frames that those are in. Memory: what is
    /// returned, and 16 bytes for each run of neighbouring values.
    ///
    /// Not verified, as [`Tensor::slice`] says. What is read is checked as a whole matrix would be.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::Misuse`] where the object is of another format or the slices do not fit
    /// its shape; code `index-value` for a pointer or a column that breaks the format's rules; as
    /// [`Tensor::bytes`].
    pub fn slice_csr(&self, slices: &[Slice]) -> Result<Csr<'static>> {
        self.expect_format(Csr::FORMAT)?;
        self.csr(&self.places(slices)?)
    }

    /// The values of a `sparse_coo` object within `slices`, in the order in which they are stored,
    /// with coordinates that count from the first place that was selected. A dimension of which an
    /// index takes one place goes away.
    ///
    /// Coordinates are read in bounded pieces, dimension by dimension, and those of each only where
    /// the ones before are selected; values only where all are. Memory: what is returned, and 16
    /// bytes for each run of neighbouring values that the dimensions so far select.
    ///
    /// Not verified, as [`Tensor::slice`] says.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::Misuse`] where the object is of another format or the slices do not fit
    /// its shape; code `index-value` for a coordinate that was read and lies outside its dimension;
    /// as [`Tensor::bytes`].
    pub fn slice_coo(&self, slices: &[Slice]) -> Result<Coo<'static>> {
        self.expect_format(Coo::FORMAT)?;
        self.coo(&self.places(slices)?)
    }

    /// The dense value of a part.
    pub(crate) fn slice_sparse(&self, places: &[Places]) -> Result<Dense<'static>> {
        let component = self.component(VALUES)?;
        let known = component.dtype.map(|dtype| {
            let logical_type = component.logical_type.as_deref();
            self.registry().value_len(dtype, logical_type)
        });
        if known.transpose()?.flatten().is_none() {
            // How long a zero is only the values tell, and a part may have none.
            return self.slice_whole(places);
        }
        // A few bytes can have any shape, of which elements cannot even be counted.
        let shape = shape_of(places);
        self.check_dense_len_of(&shape)?;
        let dense = match self.format() {
            Csr::FORMAT => self.csr(places)?.to_dense(),
            _ => self.coo(places)?.to_dense(),
        };
        let dense = dense.and_then(|dense| {
            let (_, elements) = dense.into_elements();
            Dense::from_elements(shape, elements)
        });
        dense.map_err(|error| self.blame_format(error))
    }

    fn csr(&self, places: &[Places]) -> Result<Csr<'static>> {
        let [rows, columns] = places else {
            // The format has seen to it that there are two dimensions.
            let (expected, found) = (2, places.len() as u64);
            let mismatch = SizeMismatch::Rank { expected, found };
            return Err(self.blame_format(Violation::from(mismatch).of_object()));
        };
        let mut indices = Indices::new(self, INDICES)?;
        let mut values = Values::new(self, indices.count)?;
        let mut pointers = Pointers {
            indices: Indices::new(self, INDPTR)?,
            rows: rows.dimension(),
            stored: indices.count,
        };
        let selected = pointers.read(rows)?;

        let mut found = Columns {
            indptr: vec![0],
            columns: Vec::new(),
            runs: Runs::default(),
        };
        let mut lengths = selected.lengths.into_iter();
        let mut left = 0u64;
        for run in selected.runs.0 {
            indices.each(run, columns.dimension(), |position, column| {
                while left == 0 {
                    // Rows are as long, together, as their runs.
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
                left = left.saturating_sub(1);
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
        let values = values.gather(&found.runs)?;
        let csr = Csr::new(shape, values, found.columns, found.indptr);
        csr.map_err(|error| self.blame_format(error))
    }

    fn coo(&self, places: &[Places]) -> Result<Coo<'static>> {
        let mut coords = Indices::new(self, COORDS)?;
        let rank = places.len() as u64;
        let stored = match (
            coords.count.checked_rem(rank),
            coords.count.checked_div(rank),
        ) {
            (Some(0), Some(stored)) => stored,
            (Some(_), _) => {
                let expected = coords.count.checked_next_multiple_of(rank);
                let (expected, found) = (expected.unwrap_or(u64::MAX), coords.count);
                return Err(self.mismatch(COORDS, SizeMismatch::Elements { expected, found }));
            }
            // A scalar's values have no coordinates.
            _ => Values::count(self)?,
        };
        let mut values = Values::new(self, stored)?;
        let mut runs = Runs::default();
        runs.extend(0..stored)?;
        let axes = || (0u64..).zip(places);
        // A dimension that goes away is looked at here for the last time.
        let is_looked_at = |places: &Places| !places.is_whole() || places.is_index();
        for (axis, places) in axes().filter(|(_, places)| is_looked_at(places)) {
            let mut within = Runs::default();
            coords.along(axis, stored, places, &runs, |position, place| match place {
                Some(_) => within.push(position),
                None => Ok(()),
            })?;
            runs = within;
        }
        let mut found = Vec::new();
        for (axis, places) in axes().filter(|(_, places)| !places.is_index()) {
            coords.along(axis, stored, places, &runs, |_, place| match place {
                Some(place) => push(&mut found, place),
                None => Ok(()),
            })?;
        }
        let coo = Coo::new(shape_of(places), values.gather(&runs)?, found);
        coo.map_err(|error| self.blame_format(error))
    }

    fn mismatch(&self, role: &'static str, mismatch: SizeMismatch) -> crate::error::Error {
        self.blame_format(Violation::from(mismatch).of(role))
    }
}

/// The shape of a part: an index takes its dimension away.
fn shape_of(places: &[Places]) -> Vec<u64> {
    let kept = places.iter().filter(|places| !places.is_index());
    kept.map(Places::count).collect()
}

/// A component of indices.
struct Indices<'f> {
    tensor: Tensor<'f>,
    role: &'static str,
    window: Window<'f>,
    dtype: DType,
    count: u64,
    piece: Buffer,
}

impl<'f> Indices<'f> {
    fn new(tensor: &Tensor<'f>, role: &'static str) -> Result<Self> {
        let part = tensor.locate(role)?;
        let Some(dtype) = part.component.dtype else {
            let found = None;
            let violation = Violation::IndexDType { found };
            return Err(tensor.blame_format(violation.of(role)));
        };
        let window = Window::new(tensor, part)?;
        let width = dtype.byte_len() as u64;
        Ok(Indices {
            tensor: *tensor,
            role,
            dtype,
            count: window.byte_len().checked_div(width).unwrap_or(0),
            window,
            piece: Buffer::try_zeroed(PIECE.saturating_mul(width))?,
        })
    }

    /// Every index of a range, with its position.
    fn each(
        &mut self,
        range: Range<u64>,
        limit: u64,
        mut found: impl FnMut(u64, u64) -> Result<()>,
    ) -> Result<()> {
        let width = self.dtype.byte_len();
        let mut position = range.start;
        while position < range.end {
            let len = range.end.saturating_sub(position).min(PIECE);
            let len = usize::try_from(len).unwrap_or(0);
            let piece = self.piece.get_mut(..len.saturating_mul(width));
            let piece = piece.unwrap_or_default();
            self.window
                .copy(position.saturating_mul(width as u64), piece)?;
            let elements = Elements::new(self.dtype, &*piece);
            let piece = indices(self.role, elements, position, limit);
            let piece = piece.map_err(|error| self.tensor.blame_format(error))?;
            for index in piece.iter() {
                found(position, *index)?;
                position = position.saturating_add(1);
            }
        }
        Ok(())
    }

    /// The coordinates along one dimension of the values in `runs`, as which of `places` they are.
    fn along(
        &mut self,
        axis: u64,
        stored: u64,
        places: &Places,
        runs: &Runs,
        mut found: impl FnMut(u64, Option<u64>) -> Result<()>,
    ) -> Result<()> {
        let first = axis.saturating_mul(stored);
        for run in &runs.0 {
            let range = first.saturating_add(run.start)..first.saturating_add(run.end);
            self.each(range, places.dimension(), |position, coord| {
                found(position.saturating_sub(first), places.position(coord))
            })?;
        }
        Ok(())
    }
}

/// The pointers of a matrix.
struct Pointers<'f> {
    indices: Indices<'f>,
    rows: u64,
    stored: u64,
}

/// Where rows are.
struct Rows {
    /// How many values each of them has.
    lengths: Vec<u64>,
    /// All of them, in the order of the rows.
    runs: Runs,
}

impl Pointers<'_> {
    fn read(&mut self, rows: &Places) -> Result<Rows> {
        let expected = self.rows.saturating_add(1);
        let found = self.indices.count;
        if found != expected {
            let mismatch = SizeMismatch::Elements { expected, found };
            return Err(self.indices.tensor.mismatch(INDPTR, mismatch));
        }
        let mut selected = Rows {
            lengths: Vec::new(),
            runs: Runs::default(),
        };
        // The row before, and where it begins and ends.
        let mut before: Option<(u64, Range<u64>)> = None;
        let is_contiguous = rows.step() == 1;
        let mut at = 0;
        while let Some(row) = rows.get(at) {
            let count = if is_contiguous { rows.count() } else { 1 };
            let pointers = row..row.saturating_add(count).saturating_add(1);
            let mut start = None;
            let stored = self.stored;
            let limit = stored.saturating_add(1);
            let tensor = self.indices.tensor;
            let fault = |position, value: u64, bound| {
                let value = value.into();
                let violation = Violation::IndexValue {
                    position,
                    value,
                    bound,
                };
                Err(tensor.blame_format(violation.of(INDPTR)))
            };
            let last = self.rows;
            self.indices.each(pointers, limit, |position, pointer| {
                let only = match position {
                    0 => Some(0),
                    _ if position == last => Some(stored),
                    _ => None,
                };
                if let Some(only) = only.filter(|only| *only != pointer) {
                    return fault(position, pointer, IndexBound::Exactly(only));
                }
                let Some(begin) = start.replace(pointer) else {
                    // Rows in between were not read, and pointers do not fall there either.
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
                let row = position.saturating_sub(1);
                if let Some((other, range)) = &before
                    && *other > row
                    && pointer > range.start
                {
                    return fault(*other, range.start, IndexBound::AtLeast(pointer));
                }
                push(&mut selected.lengths, pointer.saturating_sub(begin))?;
                selected.runs.extend(begin..pointer)?;
                before = Some((row, begin..pointer));
                Ok(())
            })?;
            at = at.saturating_add(count);
        }
        Ok(selected)
    }
}

/// The columns that were selected, and where their values are.
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

/// The values of a sparse object.
struct Values<'f> {
    window: Window<'f>,
    dtype: DType,
    value_len: u64,
}

impl<'f> Values<'f> {
    /// `stored` values.
    fn new(tensor: &Tensor<'f>, stored: u64) -> Result<Self> {
        let part = tensor.locate(VALUES)?;
        let window = Window::new(tensor, part)?;
        let byte_len = window.byte_len();
        // Of an unknown type, nobody knows better than the length.
        let value_len = match window.value_len()? {
            Some(value_len) => value_len,
            None => byte_len.checked_div(stored).unwrap_or(0),
        };
        if stored.checked_mul(value_len) != Some(byte_len) {
            let mismatch = SizeMismatch::Elements {
                expected: stored,
                found: byte_len.checked_div(value_len).unwrap_or(0),
            };
            return Err(tensor.mismatch(VALUES, mismatch));
        }
        Ok(Values {
            window,
            // Files of 1.0 may not say it: those are bytes.
            dtype: part.component.dtype.unwrap_or(DType::U8),
            value_len,
        })
    }

    /// How many values a scalar has; of an unknown type, one.
    fn count(tensor: &Tensor<'f>) -> Result<u64> {
        let window = Window::new(tensor, tensor.locate(VALUES)?)?;
        let value_len = window.value_len()?;
        let count = value_len.and_then(|value_len| window.byte_len().checked_div(value_len));
        Ok(count.unwrap_or(1))
    }

    fn gather(&mut self, runs: &Runs) -> Result<Elements<'static>> {
        let byte_len = runs.count().saturating_mul(self.value_len);
        let mut out = Buffer::try_zeroed(byte_len)?;
        let mut rest = &mut out[..];
        let part = self.window.part();
        for run in &runs.0 {
            let len = (run.end.saturating_sub(run.start)).saturating_mul(self.value_len);
            let len = usize::try_from(len).unwrap_or(usize::MAX);
            let Some((place, behind)) = std::mem::take(&mut rest).split_at_mut_checked(len) else {
                break; // They are as long as their count says.
            };
            let start = run.start.saturating_mul(self.value_len);
            self.window.copy(start, place)?;
            if self.dtype == DType::Bool {
                let checked = check_bools_from(start, place);
                let tensor = self.window.tensor();
                checked.map_err(|error| tensor.blame_format(error.with_role(VALUES)))?;
            }
            rest = behind;
        }
        Ok(Elements {
            dtype: self.dtype,
            logical_type: part.component.logical_type.clone(),
            bytes: out.into(),
        })
    }
}

/// Positions of values, neighbours together.
#[derive(Default)]
struct Runs(Vec<Range<u64>>);

impl Runs {
    fn push(&mut self, position: u64) -> Result<()> {
        self.extend(position..position.saturating_add(1))
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
        let lengths = self.0.iter().map(|run| run.end.saturating_sub(run.start));
        lengths.fold(0, u64::saturating_add)
    }
}

/// Adds to what grows with what a file was seen to hold: memory that is not there is an error.
fn push<T>(items: &mut Vec<T>, item: T) -> Result<()> {
    if items.len() == items.capacity() {
        let more = items.len().max(64);
        let byte_len = (items.len() as u64).saturating_add(more as u64);
        let byte_len = byte_len.saturating_mul(size_of::<T>() as u64);
        let reserved = items.try_reserve(more);
        reserved.map_err(|_| Error::Allocation { byte_len })?;
    }
    items.push(item);
    Ok(())
}
