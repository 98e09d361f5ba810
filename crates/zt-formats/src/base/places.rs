//! The places of one dimension that a slice selects.

use crate::base::error::{Result, SliceFault};
use crate::base::slice::Slice;

/// `count` places of one dimension: `start`, `start + step`, ... All lie within it.
///
/// [`Places::resolve`] makes them of slices and a shape. They are enough for arrays without strides,
/// such as sparse ones. For others there is [`Selection`](crate::base::selection::Selection).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Places {
    dimension: u64,
    start: u64,
    step: i64,
    count: u64,
    is_index: bool,
}

impl Places {
    /// Resolves `slices` against `shape`: one result for each dimension. Dimensions without a slice
    /// are taken whole.
    ///
    /// # Errors
    ///
    /// Misuse: too many slices, two ellipses, a zero step, or an index outside its dimension.
    pub fn resolve(slices: &[Slice], shape: &[u64]) -> Result<Vec<Places>> {
        let is_ellipsis = |part: &&Slice| **part == Slice::Ellipsis;
        let ellipses = slices.iter().filter(is_ellipsis).count();
        let found = slices.len().strict_sub(ellipses);
        let rank = shape.len();
        if ellipses > 1 {
            return Err(SliceFault::TwoEllipses.into());
        }
        let Some(whole) = rank.checked_sub(found) else {
            return Err(SliceFault::TooMany { found, rank }.into());
        };
        // Without an ellipsis, one at the end is implied.
        let mut parts = slices.splitn(2, |part| *part == Slice::Ellipsis);
        let before = parts.next().unwrap_or_default();
        let after = parts.next().unwrap_or_default();
        let expanded = before.iter().chain(std::iter::repeat_n(&Slice::ALL, whole)).chain(after);
        let axes = shape.iter().enumerate().zip(expanded);
        axes.map(|((axis, &dimension), part)| match *part {
            Slice::Index(index) => Places::index(index, dimension, axis),
            Slice::Range { start, stop, step } => Places::range(start, stop, step, dimension),
            // Removed above.
            Slice::Ellipsis => Places::range(None, None, 1, dimension),
        })
        .collect()
    }

    /// All places of a dimension, in order.
    pub(crate) const fn all(dimension: u64) -> Self {
        Places { dimension, start: 0, step: 1, count: dimension, is_index: false }
    }

    fn index(index: i64, dimension: u64, axis: usize) -> Result<Self> {
        let place = if index < 0 {
            dimension.checked_sub(index.unsigned_abs())
        } else {
            Some(index.unsigned_abs())
        };
        let within = place.filter(|place| *place < dimension);
        let start = within.ok_or(SliceFault::OutOfRange { axis, index, dimension })?;
        Ok(Places { start, count: 1, is_index: true, ..Places::all(dimension) })
    }

    /// `start:stop:step`.
    #[expect(clippy::expect_used, reason = "there are no more places than the dimension has")]
    fn range(start: Option<i64>, stop: Option<i64>, step: i64, dimension: u64) -> Result<Self> {
        if step == 0 {
            return Err(SliceFault::ZeroStep.into());
        }
        // As Python's `slice.indices`, in i128, where nothing here overflows. Bounds are clamped to
        // the dimension, plus the place beyond its end in the direction of the step.
        let extent = i128::from(dimension);
        let forward = step > 0;
        let lowest = if forward { 0 } else { -1 };
        let highest = extent.strict_add(lowest);
        let clamp = |bound: i64| {
            let from = if bound < 0 { extent } else { 0 };
            from.strict_add(bound.into()).clamp(lowest, highest)
        };
        let (first, last) = if forward { (lowest, highest) } else { (highest, lowest) };
        let start = start.map_or(first, clamp);
        let stop = stop.map_or(last, clamp);
        let distance = stop.strict_sub(start).strict_mul(step.signum().into());
        let magnitude = u128::from(step.unsigned_abs());
        let count = distance.max(0).unsigned_abs().div_ceil(magnitude);
        Ok(Places {
            // Negative only if there are no places.
            start: u64::try_from(start).unwrap_or(0),
            step,
            count: u64::try_from(count).expect("at most the dimension"),
            ..Places::all(dimension)
        })
    }

    /// The length of the dimension.
    pub const fn dimension(&self) -> u64 {
        self.dimension
    }

    /// The first place, if there are any.
    pub const fn start(&self) -> u64 {
        self.start
    }

    /// The distance to the next place; negative if places decrease.
    pub const fn step(&self) -> i64 {
        self.step
    }

    /// The number of places.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Whether this is one place taken by an index, which removes the dimension.
    pub const fn is_index(&self) -> bool {
        self.is_index
    }

    /// Whether these are all places of the dimension, in order.
    pub const fn is_whole(&self) -> bool {
        self.count == self.dimension && (self.step == 1 || self.count <= 1)
    }

    /// Place number `at`, counted from 0; `None` after the last one.
    pub fn get(&self, at: u64) -> Option<u64> {
        let distance = at.checked_mul(self.step.unsigned_abs());
        let distance = distance.filter(|_| at < self.count)?;
        if self.step > 0 {
            self.start.checked_add(distance)
        } else {
            self.start.checked_sub(distance)
        }
    }

    /// The number of `place` among these, counted from 0; `None` if it is not one of them.
    pub fn position(&self, place: u64) -> Option<u64> {
        let distance = if self.step > 0 {
            place.checked_sub(self.start)?
        } else {
            self.start.checked_sub(place)?
        };
        let magnitude = self.step.unsigned_abs();
        let position = match magnitude {
            1 => Some(distance),
            _ if distance.is_multiple_of(magnitude) => distance.checked_div(magnitude),
            _ => None,
        };
        position.filter(|position| *position < self.count)
    }

    /// The range from the lowest place to the highest; empty if there are none.
    pub fn hull(&self) -> std::ops::Range<u64> {
        let last = self.count.checked_sub(1).and_then(|at| self.get(at));
        match last {
            Some(last) => self.start.min(last)..self.start.max(last).strict_add(1),
            None => 0..0,
        }
    }

    /// The same places, counted from the start of `hull`, which contains them all and is the
    /// dimension of the result.
    pub fn within(&self, hull: std::ops::Range<u64>) -> Places {
        Places {
            dimension: hull.end.strict_sub(hull.start),
            // Below the hull only if there are no places.
            start: self.start.saturating_sub(hull.start),
            ..*self
        }
    }
}
