//! An index of NumPy's basic slicing, and its text.

use std::ops::{Range, RangeFrom, RangeFull, RangeTo};
use std::str::FromStr;

use crate::base::error::{Error, Result, SliceFault, abridged};

/// An index of NumPy's basic slicing for one dimension, or an ellipsis for several.
///
/// Negative numbers count from the end.
///
/// ```
/// use zt_formats::{Dense, Slice};
///
/// let dense = Dense::from_slice(&[2, 3], &[1u8, 2, 3, 4, 5, 6])?;
/// let part = |slices: &[Slice]| dense.slice(slices)?.into_typed::<u8>();
/// assert_eq!(*part(&[Slice::from(..), (0..2).into()])?, [1, 2, 4, 5]);
/// assert_eq!(*part(&[Slice::from(-1), (1..).into()])?, [5, 6]);
/// # Ok::<(), zt_formats::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slice {
    /// One place. The dimension is removed.
    Index(i64),
    /// `start:stop:step`. Places outside the dimension are skipped, without an error.
    Range {
        /// The first place; by default the first one in the direction of the step.
        start: Option<i64>,
        /// The place before which to stop; by default the end.
        stop: Option<i64>,
        /// Not zero.
        step: i64,
    },
    /// `...`: all places of the dimensions that have no other index.
    Ellipsis,
}

impl Slice {
    /// All of a dimension: `:`.
    pub const ALL: Slice = Slice::Range { start: None, stop: None, step: 1 };

    /// Parses a text like `0:4,:,::2,-1`. Spaces are ignored around parts and numbers. An empty
    /// text has no parts.
    ///
    /// # Errors
    ///
    /// Misuse: invalid syntax, or a step of zero.
    pub fn parse_list(text: &str) -> Result<Vec<Slice>> {
        if text.trim().is_empty() {
            return Ok(Vec::new());
        }
        text.split(',').map(str::parse).collect()
    }
}

/// One place; a negative one counts from the end.
impl From<i64> for Slice {
    fn from(index: i64) -> Self {
        Slice::Index(index)
    }
}

/// All of a dimension.
impl From<RangeFull> for Slice {
    fn from(_: RangeFull) -> Self {
        Slice::ALL
    }
}

/// The places of a range. Numbers above [`i64::MAX`] become that.
impl From<Range<u64>> for Slice {
    fn from(range: Range<u64>) -> Self {
        between(Some(range.start), Some(range.end))
    }
}

/// The places from one on. Numbers above [`i64::MAX`] become that.
impl From<RangeFrom<u64>> for Slice {
    fn from(range: RangeFrom<u64>) -> Self {
        between(Some(range.start), None)
    }
}

/// The places before one. Numbers above [`i64::MAX`] become that.
impl From<RangeTo<u64>> for Slice {
    fn from(range: RangeTo<u64>) -> Self {
        between(None, Some(range.end))
    }
}

fn between(start: Option<u64>, stop: Option<u64>) -> Slice {
    let place = |place: u64| i64::try_from(place).unwrap_or(i64::MAX);
    Slice::Range { start: start.map(place), stop: stop.map(place), step: 1 }
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
