//! Copying the bytes of a part of an array.

use crate::base::buffer::Buffer;
use crate::base::dense::Dense;
use crate::base::error::Result;
use crate::base::selection::{Run, Selection};
use crate::base::shape::element_count;

/// See [`Dense::select`].
pub(crate) fn select(dense: &Dense<'_>, selection: &Selection) -> Result<Dense<'static>> {
    let elements = dense.elements();
    let value_len = value_len(dense)?;
    let mut out = Buffer::try_zeroed_values(selection.element_count(), value_len as u64)?;
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
        // Never taken: the selection lies within the shape, and the bytes fit the shape.
        let Some(target) = len.and_then(|len| rest.split_off_mut(..len)) else {
            break;
        };
        copy(&elements.bytes, value_len, run, target);
    }
    let shape = selection.shape().to_vec();
    Ok(Dense::from_checked(shape, elements.of_same_type(out)))
}

/// Copies the values of a run, of `N` bytes each.
fn copy_run<const N: usize>(bytes: &[u8], _: usize, run: Run, target: &mut [u8]) {
    let (values, _) = bytes.as_chunks::<N>();
    let (target, _) = target.as_chunks_mut::<N>();
    let Ok(mut at) = usize::try_from(run.first) else {
        return;
    };
    if run.stride == 1 {
        let run = values.get(at..);
        if let Some(run) = run.and_then(|run| run.get(..target.len())) {
            target.copy_from_slice(run);
        }
        return;
    }
    // A stride beyond the address space leads behind the end, as it should.
    let stride = isize::try_from(run.stride).unwrap_or(isize::MAX);
    for target in target {
        if let Some(value) = values.get(at) {
            *target = *value;
        }
        // Outside the array only after the last value.
        at = at.wrapping_add_signed(stride);
    }
}

/// Copies the values of a run, of `value_len` bytes each.
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

/// Bytes of one value, as many for each, also of an unknown logical type.
fn value_len(dense: &Dense<'_>) -> Result<usize> {
    match element_count(dense.shape()) {
        Some(count @ 1..) => dense.elements().value_len(count),
        // No values: arrays of 2^64 elements have no `Selection`.
        _ => Ok(0),
    }
}
