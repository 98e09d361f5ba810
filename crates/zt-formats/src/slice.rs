//! NumPy's basic slicing, as text and as byte runs.
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use std::str::FromStr;

use crate::error::abridged;
use crate::{
    Buffer, Dense, Elements, Error, Places, Result, SizeMismatch, SliceFault, element_count,
};

/// One part of an index, for one dimension (an ellipsis: for as many as are left).
///
/// Negative numbers count from the end, as in NumPy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slice {
    /// One place; the dimension goes away.
    Index(i64),
    /// `start:stop:step`. What is outside the dimension is left out, without an error.
    Range {
        /// The first place; by default the first in the direction of the step.
        start: Option<i64>,
        /// The place before which to stop; by default none.
        stop: Option<i64>,
        /// Not zero.
        step: i64,
    },
    /// `...`: all of as many dimensions as the other parts leave.
    Ellipsis,
}

impl Slice {
    /// All of a dimension: `:`.
    pub const ALL: Slice = Slice::Range {
        start: None,
        stop: None,
        step: 1,
    };

    /// The parts of a text like `0:4,:,::2,-1`. Spaces around parts and numbers are ignored, an empty
    /// text has no parts.
    ///
    /// # Errors
    ///
    /// Misuse: a part that is none.
    pub fn parse_list(text: &str) -> Result<Vec<Slice>> {
        if text.trim().is_empty() {
            return Ok(Vec::new());
        }
        text.split(',').map(str::parse).collect()
    }
}

impl FromStr for Slice {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let syntax = || {
            let part = abridged(text);
            Error::from(SliceFault::Syntax { part })
        };
        let number = |text: &str| text.trim().parse::<i64>().map_err(|_| syntax());
        let text = text.trim();
        if text == "..." {
            return Ok(Slice::Ellipsis);
        }
        if !text.contains(':') {
            return number(text).map(Slice::Index);
        }
        let mut bounds = text.split(':').map(|bound| match bound.trim() {
            "" => Ok(None),
            bound => number(bound).map(Some),
        });
        let start = bounds.next().transpose()?.flatten();
        let stop = bounds.next().transpose()?.flatten();
        let step = bounds.next().transpose()?.flatten().unwrap_or(1);
        if bounds.next().is_some() {
            return Err(syntax());
        }
        if step == 0 {
            return Err(SliceFault::ZeroStep.into());
        }
        Ok(Slice::Range { start, stop, step })
    }
}

/// A part of an array: which places of every dimension, and the shape that comes out.
///
/// Knows no bytes, so that it serves arrays in memory and arrays that are read piece by piece alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    axes: Vec<Axis>,
    shape: Vec<u64>,
}

/// The places of one dimension, and the elements of the array from each place to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Axis {
    stride: u64,
    places: Places,
}

impl Selection {
    /// Resolves `slices` against `shape`. Dimensions without a slice are taken whole.
    ///
    /// # Errors
    ///
    /// Misuse: too many slices, two ellipses, a zero step, or an index outside its dimension.
    /// Malformed: the shape has more than 2^64 elements.
    pub fn new(slices: &[Slice], shape: &[u64]) -> Result<Self> {
        Self::of(&Places::resolve(slices, shape)?)
    }

    /// These places of an array that has the dimensions they are of.
    ///
    /// # Errors
    ///
    /// Malformed: the array has more than 2^64 elements.
    pub fn of(places: &[Places]) -> Result<Self> {
        let shape: Vec<u64> = places.iter().map(Places::dimension).collect();
        if element_count(&shape).is_none() {
            let mismatch = SizeMismatch::Overflow { shape };
            return Err(crate::Violation::from(mismatch).of_object());
        }
        let axis = |places: &Places| Axis {
            stride: 1,
            places: *places,
        };
        let mut axes: Vec<Axis> = places.iter().map(axis).collect();
        let selected = places.iter().filter(|places| !places.is_index());
        let shape = selected.map(Places::count).collect();
        let mut stride = 1u64;
        for axis in axes.iter_mut().rev() {
            axis.stride = stride;
            // Overflows only where another dimension is zero, and then nothing is selected.
            stride = stride.saturating_mul(axis.places.dimension());
        }
        Ok(Selection { axes, shape })
    }

    /// The shape that comes out: without the dimensions that an index took one place of.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The number of elements that come out.
    #[must_use]
    pub fn element_count(&self) -> u64 {
        // No more than the array has, which is representable.
        element_count(&self.shape).unwrap_or(0)
    }

    /// The elements in order, as runs at even distances: neighbours wherever whole inner dimensions
    /// allow it, else the places of one dimension.
    pub fn runs(&self) -> impl Iterator<Item = Run> {
        // The innermost dimensions that are taken whole, and the one before them if its places are
        // neighbours, make one run; the others count up like an odometer.
        let mut run = Run {
            first: 0,
            count: 1,
            stride: 1,
        };
        let mut outer = self.axes.as_slice();
        while let Some((axis, rest)) = outer.split_last()
            && (axis.places.step() == 1 || axis.places.count() == 1)
        {
            run.count = run.count.saturating_mul(axis.places.count());
            outer = rest;
            if axis.places.count() != axis.places.dimension() {
                break;
            }
        }
        if run.count == 1
            && let Some((axis, rest)) = outer.split_last()
            && let Some(stride) = i64::try_from(axis.stride).ok()
            && let Some(stride) = stride.checked_mul(axis.places.step())
        {
            run.count = axis.places.count();
            run.stride = stride;
            outer = rest;
        }
        let starts = self.axes.iter().fold(0u64, |at, axis| {
            at.saturating_add(axis.places.start().saturating_mul(axis.stride))
        });
        let is_empty = self.element_count() == 0;
        let mut odometer = (!is_empty).then(|| Odometer {
            axes: outer,
            places: vec![0; outer.len()],
            first: starts,
        });
        std::iter::from_fn(move || {
            let state = odometer.as_mut()?;
            run.first = state.first;
            if !state.advance() {
                odometer = None;
            }
            Some(run)
        })
    }
}

/// Elements of an array at even distances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The place of the first one, in elements.
    pub first: u64,
    /// How many.
    pub count: u64,
    /// From each to the next, in elements: 1 for neighbours, negative for those that come before.
    pub stride: i64,
}

struct Odometer<'a> {
    axes: &'a [Axis],
    /// How many steps each axis has gone.
    places: Vec<u64>,
    /// Where the run begins.
    first: u64,
}

impl Odometer<'_> {
    /// Goes to the next run; false where there is none.
    fn advance(&mut self) -> bool {
        for (axis, place) in self.axes.iter().zip(&mut self.places).rev() {
            let step = axis.places.step();
            let distance = step.unsigned_abs().wrapping_mul(axis.stride);
            // Every place lies in the array, so the sums are exact; wrapping spares a panic path.
            let next = place.wrapping_add(1);
            if next < axis.places.count() {
                *place = next;
                self.first = if step > 0 {
                    self.first.wrapping_add(distance)
                } else {
                    self.first.wrapping_sub(distance)
                };
                return true;
            }
            let back = distance.wrapping_mul(*place);
            self.first = if step > 0 {
                self.first.wrapping_sub(back)
            } else {
                self.first.wrapping_add(back)
            };
            *place = 0;
        }
        false
    }
}

/// See [`Dense::select`].
pub(crate) fn select(dense: &Dense<'_>, selection: &Selection) -> Result<Dense<'static>> {
    let elements = dense.elements();
    let value_len = value_len(dense)?;
    let byte_len = selection.element_count().saturating_mul(value_len as u64);
    let mut out = Buffer::try_zeroed(byte_len)?;
    let copy = match value_len {
        1 => copy_run::<1>,
        2 => copy_run::<2>,
        4 => copy_run::<4>,
        8 => copy_run::<8>,
        16 => copy_run::<16>,
        _ => copy_odd_run,
    };
    let mut rest = &mut out[..];
    for run in selection.runs() {
        let len = usize::try_from(run.count).ok();
        let len = len.and_then(|count| count.checked_mul(value_len));
        // The selection lies within the shape, and the bytes are those of the shape: none of this
        // fails.
        let Some((target, tail)) = len.and_then(|len| rest.split_at_mut_checked(len)) else {
            break;
        };
        copy(&elements.bytes, value_len, run, target);
        rest = tail;
    }
    Ok(Dense::from_checked(
        selection.shape.clone(),
        Elements {
            dtype: elements.dtype,
            logical_type: elements.logical_type.clone(),
            bytes: out.into(),
        },
    ))
}

/// Copies the values of a run, which have `N` bytes each.
fn copy_run<const N: usize>(bytes: &[u8], _: usize, run: Run, target: &mut [u8]) {
    let (values, _) = bytes.as_chunks::<N>();
    let (target, _) = target.as_chunks_mut::<N>();
    let Ok(mut at) = usize::try_from(run.first) else {
        return;
    };
    if run.stride == 1 {
        let run = values
            .get(at..)
            .and_then(|values| values.get(..target.len()));
        if let Some(run) = run {
            target.copy_from_slice(run);
        }
        return;
    }
    let stride = isize::try_from(run.stride).unwrap_or(isize::MAX);
    for target in target {
        if let Some(value) = values.get(at) {
            *target = *value;
        }
        // Beyond the array only after the last one.
        at = at.wrapping_add_signed(stride);
    }
}

/// Copies the values of a run, of any length.
fn copy_odd_run(bytes: &[u8], value_len: usize, run: Run, target: &mut [u8]) {
    let mut at = i128::from(run.first);
    for target in target.chunks_exact_mut(value_len.max(1)) {
        let start = usize::try_from(at).ok();
        let start = start.and_then(|at| at.checked_mul(value_len));
        let value = start.and_then(|start| bytes.get(start..)?.get(..value_len));
        if let Some(value) = value {
            target.copy_from_slice(value);
        }
        at = at.wrapping_add(run.stride.into());
    }
}

/// Bytes of one value. Under an unknown logical type, what the length says, if it divides.
fn value_len(dense: &Dense<'_>) -> Result<usize> {
    let byte_len = dense.elements().bytes.len();
    let count = element_count(dense.shape()).and_then(|count| usize::try_from(count).ok());
    let value_len = match count {
        Some(0) => Some(0),
        Some(count) if byte_len.checked_rem(count) == Some(0) => byte_len.checked_div(count),
        _ => None,
    };
    value_len.ok_or_else(|| {
        SizeMismatch::Partial {
            byte_len: byte_len as u64,
            value_len: count.map_or(u64::MAX, |count| count as u64),
        }
        .of("data")
    })
}
