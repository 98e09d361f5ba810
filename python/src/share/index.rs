//! Basic indices, by the rules of NumPy.

use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PySlice, PyTuple};
use zt::Slice;

use crate::share::error::Result;

/// The indices of a key: those in a tuple, or the key itself.
pub(crate) fn parts_of<'py>(key: &Bound<'py, PyAny>) -> Vec<Bound<'py, PyAny>> {
    match key.cast::<PyTuple>() {
        Ok(parts) => parts.iter().collect(),
        Err(_) => vec![key.clone()],
    }
}

pub(crate) fn is_ellipsis(part: &Bound<'_, PyAny>) -> bool {
    part.is_instance_of::<PyEllipsis>()
}

/// An index that fits a shape.
#[derive(Clone)]
pub(crate) struct Index {
    /// A part for each dimension.
    pub(crate) slices: Vec<Slice>,
    /// The shape of the part, with new axes.
    pub(crate) shape: Vec<u64>,
    /// Whether NumPy gives a scalar and no array: the index has an integer for each dimension, and no
    /// other part.
    pub(crate) is_scalar: bool,
}

impl Index {
    /// Reads `key` as an index of an array of `shape`.
    ///
    /// # Errors
    ///
    /// `IndexError` for an index out of range, for too many indices, and for an index that is not
    /// basic; `ValueError` for a step of 0.
    pub(crate) fn new(key: &Bound<'_, PyAny>, shape: &[u64]) -> Result<Self> {
        let mut parts = parts_of(key);
        let taken = parts.iter().filter(|part| !part.is_none() && !is_ellipsis(part)).count();
        let Some(left) = shape.len().checked_sub(taken) else {
            return Err(PyIndexError::new_err(format!(
                "too many indices: the tensor has {} dimensions, but {taken} were indexed",
                shape.len()
            )));
        };
        if parts.iter().filter(|part| is_ellipsis(part)).count() > 1 {
            let text = "an index can only have a single ellipsis ('...')";
            return Err(PyIndexError::new_err(text));
        }
        let mut index = Index {
            slices: Vec::new(),
            shape: Vec::new(),
            is_scalar: left == 0 && !parts.iter().any(|part| part.is_none() || is_ellipsis(part)),
        };
        if !parts.iter().any(is_ellipsis) {
            parts.push(PyEllipsis::get(key.py()).to_owned().into_any());
        }
        let mut dimensions = shape.iter().copied();
        for part in &parts {
            if part.is_none() {
                index.shape.push(1);
            } else if is_ellipsis(part) {
                index.shape.extend(dimensions.by_ref().take(left));
                index.slices.extend((0..left).map(|_| Slice::ALL));
            } else {
                let axis = index.slices.len();
                // There is a dimension for each part: they were counted above.
                let len = dimensions.next().unwrap_or(0);
                index.take(part, axis, len)?;
            }
        }
        Ok(index)
    }

    fn take(&mut self, part: &Bound<'_, PyAny>, axis: usize, len: u64) -> Result<()> {
        if let Ok(slice) = part.cast::<PySlice>() {
            let len_here = isize::try_from(len)
                .map_err(|_| PyIndexError::new_err("the dimension is too large to be sliced"))?;
            if slice.getattr("step")?.extract::<Option<isize>>().is_ok_and(|step| step == Some(0)) {
                return Err(PyValueError::new_err("slice step cannot be zero"));
            }
            let taken = slice.indices(len_here)?;
            self.shape.push(taken.slicelength as u64);
            let stop = (taken.stop >= 0).then_some(taken.stop as i64);
            self.slices.push(match taken.slicelength {
                0 => Slice::from(0..0),
                _ => {
                    Slice::Range { start: Some(taken.start as i64), stop, step: taken.step as i64 }
                }
            });
            return Ok(());
        }
        if part.is_instance_of::<PyBool>() || !part.hasattr("__index__")? {
            return Err(PyIndexError::new_err(
                "only integers, slices (`:`), ellipsis (`...`) and numpy.newaxis (`None`) are valid \
                 indices: index the array of `numpy()` for more",
            ));
        }
        // Arrays have `__index__` too. It raises a `TypeError` unless they hold one integer.
        let index: i128 = part.call_method0("__index__")?.extract().unwrap_or(i128::MAX);
        let place = if index < 0 { index + i128::from(len) } else { index };
        match i64::try_from(place) {
            Ok(place) if place >= 0 && (place as u64) < len => {
                self.slices.push(Slice::Index(place));
                Ok(())
            }
            _ => Err(PyIndexError::new_err(format!(
                "index {index} is out of bounds for axis {axis} with size {len}"
            ))),
        }
    }
}
