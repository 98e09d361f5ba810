//! A part of an array as runs of elements.

use crate::base::error::{Result, SizeMismatch};
use crate::base::places::Places;
use crate::base::shape::element_count;
use crate::base::slice::Slice;

/// A part of an array: places of every dimension, and the shape of the result.
///
/// It holds no bytes: it serves arrays in memory as well as arrays that are read in pieces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    axes: Vec<Axis>,
    shape: Vec<u64>,
}

/// The places of one dimension, and the distance between neighbouring places in elements.
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
    /// Malformed: the shape has 2^64 elements or more.
    pub fn new(slices: &[Slice], shape: &[u64]) -> Result<Self> {
        Self::of(&Places::resolve(slices, shape)?)
    }

    /// These places, one entry for each dimension of the array.
    ///
    /// # Errors
    ///
    /// Malformed: the array has 2^64 elements or more.
    pub fn of(places: &[Places]) -> Result<Self> {
        let shape: Vec<u64> = places.iter().map(Places::dimension).collect();
        if element_count(&shape).is_none() {
            return Err(SizeMismatch::Overflow { shape }.of_object());
        }
        let selected = places.iter().filter(|places| !places.is_index());
        let shape = selected.map(Places::count).collect();
        let (mut axes, mut stride) = (Vec::with_capacity(places.len()), 1u64);
        for places in places.iter().rev().copied() {
            axes.push(Axis { stride, places });
            // Overflows only if another dimension is zero, and then nothing is selected.
            stride = stride.saturating_mul(places.dimension());
        }
        axes.reverse();
        Ok(Selection { axes, shape })
    }

    /// The shape of the result. An index removes its dimension.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The number of elements of the result.
    #[expect(clippy::expect_used, reason = "`of` refuses arrays of 2^64 elements or more")]
    pub fn element_count(&self) -> u64 {
        element_count(&self.shape).expect("no more than the array has")
    }

    /// The elements in order, as runs at even distances: neighbours if the inner dimensions are
    /// taken whole, else the places of one dimension.
    pub fn runs(&self) -> impl Iterator<Item = Run> {
        // One run covers the innermost dimensions that are taken whole, and the one before them if
        // its places are neighbours. The other dimensions count up like an odometer.
        let mut run = Run { first: 0, count: 1, stride: 1 };
        let mut outer = self.axes.as_slice();
        while let Some((axis, rest)) = outer.split_last()
            && (axis.places.step() == 1 || axis.places.count() == 1)
        {
            // Overflows only if another dimension is zero, like the sum of the starts below.
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
    /// The position of the first element in the array.
    pub first: u64,
    /// The number of elements.
    pub count: u64,
    /// The distance to the next element: 1 for neighbours, negative for earlier ones.
    pub stride: i64,
}

struct Odometer<'a> {
    axes: &'a [Axis],
    /// The steps that each axis has gone.
    places: Vec<u64>,
    /// The first element of the run.
    first: u64,
}

impl Odometer<'_> {
    /// Goes to the next run; false if there is none.
    fn advance(&mut self) -> bool {
        for (axis, place) in self.axes.iter().zip(&mut self.places).rev() {
            // In two's complement. Every place lies in the array, so the sums are exact.
            let distance = axis.places.step().cast_unsigned();
            let distance = distance.wrapping_mul(axis.stride);
            let next = place.wrapping_add(1);
            if next < axis.places.count() {
                *place = next;
                self.first = self.first.wrapping_add(distance);
                return true;
            }
            let back = distance.wrapping_mul(*place);
            self.first = self.first.wrapping_sub(back);
            *place = 0;
        }
        false
    }
}
