//! Whether slices have every element of a tensor exactly once.

use zt::{Error, ErrorKind};

use super::Slice;

/// The most dimensions in which a tensor is cut. Meshes of processes have two or three, and each doubles
/// the work.
const CUT_MAX: usize = 4;

/// Why slices do not make up a tensor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages explain the fields")]
#[non_exhaustive]
pub enum SliceFault {
    #[error("a slice has {found} dimensions, its tensor has {expected}")]
    Rank { expected: usize, found: usize },
    #[error("the slice of {sizes:?} elements from {offsets:?} on exceeds its tensor of {shape:?}")]
    Outside { offsets: Vec<u64>, sizes: Vec<u64>, shape: Vec<u64> },
    #[error("a gap: no slice has the element at {at:?}")]
    Gap { at: Vec<u64> },
    #[error("several slices have the element at {at:?}")]
    Twice { at: Vec<u64> },
    #[error("the elements take more than 2^64 bytes")]
    Overflow,
    #[error("the tensor is cut in {found} dimensions, the limit is {CUT_MAX}")]
    Cuts { found: usize },
    #[error("DCP_SHARDING_INFO is invalid: {message}")]
    Saved { message: String },
    #[error("the slices have different element types")]
    Types,
    #[error("slices of elements that are less than a byte are unsupported")]
    Packed,
}

impl From<SliceFault> for Error {
    fn from(fault: SliceFault) -> Self {
        let (kind, code) = match fault {
            SliceFault::Rank { .. } => (ErrorKind::Malformed, "shape-size-mismatch"),
            SliceFault::Outside { .. } | SliceFault::Overflow => (ErrorKind::Malformed, "bounds"),
            SliceFault::Gap { .. } => (ErrorKind::Malformed, "missing-component"),
            SliceFault::Twice { .. } => (ErrorKind::Malformed, "overlap"),
            SliceFault::Saved { .. } => (ErrorKind::Malformed, "header"),
            SliceFault::Types => (ErrorKind::Malformed, "dtype"),
            SliceFault::Packed | SliceFault::Cuts { .. } => (ErrorKind::Unsupported, "unsupported"),
        };
        Error::new(kind, code, fault)
    }
}

/// Checks that every element of a tensor is in exactly one slice. Empty slices are ignored, but must be in
/// the tensor. Takes at most 16 steps for a slice, and as many logarithms.
///
/// The sum of the slices' indicator functions is determined by its jumps: a slice has one at each of its
/// corners, upwards at those with an even number of ends and downwards at the others. The slices cover
/// the tensor exactly if their jumps are those of the tensor. In lexicographic order, the first jump that
/// differs is at the first index that is wrong: all jumps that act there come before it.
///
/// # Errors
///
/// The first fault; of gaps and overlaps, the one at the first index.
pub fn check<'s>(
    shape: &[u64],
    slices: impl Iterator<Item = &'s Slice> + Clone,
) -> Result<(), SliceFault> {
    for slice in slices.clone() {
        check_bounds(shape, slice)?;
    }
    let slices = slices.filter(|slice| !slice.is_empty());
    if shape.contains(&0) {
        return Ok(());
    }
    let whole = Slice { offsets: vec![0; shape.len()], sizes: shape.to_vec() };
    let is_cut = |axis: &usize| {
        let mut slices = slices.clone();
        slices.any(|slice| slice.sizes.get(*axis) != shape.get(*axis))
    };
    let cut: Vec<usize> = (0..shape.len()).filter(is_cut).collect();
    if cut.len() > CUT_MAX {
        return Err(SliceFault::Cuts { found: cut.len() });
    }
    let mut jumps = Vec::new();
    add_corners(&whole, &cut, -1, &mut jumps);
    for slice in slices {
        add_corners(slice, &cut, 1, &mut jumps);
    }
    jumps.sort_unstable();
    for same in jumps.chunk_by(|(a, _), (b, _)| a == b) {
        let jump: i64 = same.iter().map(|(_, jump)| jump).sum();
        let Some((corner, _)) = same.first().filter(|_| jump != 0) else {
            continue;
        };
        let mut at = vec![0; shape.len()];
        for (axis, index) in cut.iter().zip(corner) {
            if let Some(place) = at.get_mut(*axis) {
                *place = *index;
            }
        }
        return Err(match jump {
            1.. => SliceFault::Twice { at },
            _ => SliceFault::Gap { at },
        });
    }
    Ok(())
}

fn check_bounds(shape: &[u64], slice: &Slice) -> Result<(), SliceFault> {
    for found in [slice.offsets.len(), slice.sizes.len()] {
        if found != shape.len() {
            let expected = shape.len();
            return Err(SliceFault::Rank { expected, found });
        }
    }
    let mut axes = slice.offsets.iter().zip(&slice.sizes).zip(shape);
    let is_within = |((offset, size), count): ((&u64, &u64), &u64)| {
        offset.checked_add(*size).is_some_and(|end| end <= *count)
    };
    if axes.all(is_within) {
        return Ok(());
    }
    Err(SliceFault::Outside {
        offsets: slice.offsets.clone(),
        sizes: slice.sizes.clone(),
        shape: shape.to_vec(),
    })
}

/// A corner in the dimensions that are cut, outermost first. The rest are zeros.
type Corner = [u64; CUT_MAX];

/// Adds the jumps at the corners of a slice: `up` where no coordinate or an even number of them is an end.
fn add_corners(slice: &Slice, cut: &[usize], up: i64, jumps: &mut Vec<(Corner, i64)>) {
    let mut corners = vec![([0; CUT_MAX], up)];
    for (axis, at) in cut.iter().zip(0..CUT_MAX) {
        let Some((offset, _, end)) = slice.axes().nth(*axis) else {
            continue;
        };
        let mut further = corners.clone();
        for ((corner, _), (end_corner, jump)) in corners.iter_mut().zip(&mut further) {
            *jump = jump.strict_neg();
            for (corner, index) in [(corner, offset), (end_corner, end)] {
                if let Some(place) = corner.get_mut(at) {
                    *place = index;
                }
            }
        }
        corners.append(&mut further);
    }
    jumps.append(&mut corners);
}
