//! The elements that a virtual dataset takes from a source, or gives them a place. Spec: "Dataspace
//! Selections" (`H5Shyper.c`, `H5Sall.c`).
//!
//! Selected elements have row-major order, in the source and in the virtual dataset alike: the n-th
//! selected element of one is the n-th of the other.

use zt::Result;

use crate::bytes::cursor::Cursor;
use crate::bytes::fault::Hdf5Fault;
use crate::bytes::size::{product, sum};

/// A selection, before it is compared with a shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Selection {
    None,
    All,
    /// Regular: the same in every dimension.
    Regular(Vec<Slab>),
    /// Blocks: the first element and one past the last, in every dimension of each.
    Blocks(Vec<Vec<(u64, u64)>>),
}

/// The selected indices of a dimension: `count` blocks, every `stride` indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slab {
    start: u64,
    stride: u64,
    block: u64,
    /// Selected indices; more than any dataset has if the selection is unlimited.
    count: u64,
    is_unlimited: bool,
}

impl Slab {
    /// Checks what a regular selection has of a dimension. All ones are unlimited.
    fn new(start: u64, stride: u64, count: u64, block: u64) -> Option<Self> {
        let is_unlimited = count == u64::MAX || block == u64::MAX;
        let total = if is_unlimited { u64::MAX } else { count.checked_mul(block)? };
        let stride = if count <= 1 { block.max(1) } else { stride };
        (stride >= block && stride > 0).then_some(Slab {
            start,
            stride,
            block,
            count: if block == 0 { 0 } else { total },
            is_unlimited,
        })
    }

    /// The index of the selected one with that number.
    fn at(&self, number: u64) -> Option<u64> {
        let whole = number.checked_div(self.block)?.checked_mul(self.stride)?;
        let rest = number.checked_rem(self.block)?;
        self.start.checked_add(whole)?.checked_add(rest)
    }

    /// The number of selected indices before `index`.
    pub(crate) fn before(&self, index: u64) -> u64 {
        let Some(within) = index.checked_sub(self.start).filter(|_| self.count > 0) else {
            return 0;
        };
        // A block has an index, and is at most as long as the stride: this is at most `within`.
        let whole = within.strict_div(self.stride).strict_mul(self.block);
        let rest = within.strict_rem(self.stride).min(self.block);
        whole.strict_add(rest).min(self.count)
    }

    /// Selected indices that follow each other, from the one with that number on, which there is.
    fn run(&self, number: u64) -> u64 {
        let left = self.count.strict_sub(number);
        if self.stride == self.block {
            return left;
        }
        self.block.strict_sub(number.strict_rem(self.block)).min(left)
    }

    /// One past the last selected index; 0 if there is none.
    pub(crate) fn end(&self) -> Option<u64> {
        match self.count.checked_sub(1) {
            Some(last) => self.at(last)?.checked_add(1),
            None => Some(0),
        }
    }
}

impl Selection {
    /// Reads a selection. Points are unsupported.
    pub(crate) fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        match cursor.u32()? {
            kind @ (0 | 3) => {
                // The version, reserved bytes and the length of nothing.
                cursor.skip(4 + 4 + 4)?;
                Ok(if kind == 0 { Selection::None } else { Selection::All })
            }
            1 => Err(cursor.error(Hdf5Fault::Unsupported("a virtual dataset that selects points"))),
            2 => hyperslab(cursor),
            kind => Err(cursor.field("the kind of a selection", kind.into())),
        }
    }

    pub(crate) fn unlimited(&self) -> Option<usize> {
        let Selection::Regular(slabs) = self else {
            return None;
        };
        slabs.iter().position(|slab| slab.is_unlimited)
    }

    /// The selected indices of a dimension of a regular selection.
    pub(crate) fn slab(&self, axis: usize) -> Option<&Slab> {
        match self {
            Selection::Regular(slabs) => slabs.get(axis),
            _ => None,
        }
    }

    /// The same with the first `count` indices of a dimension.
    pub(crate) fn limited(&self, axis: usize, count: u64) -> Self {
        let mut limited = self.clone();
        if let Selection::Regular(slabs) = &mut limited
            && let Some(slab) = slabs.get_mut(axis)
        {
            slab.count = slab.count.min(count);
            slab.is_unlimited = false;
        }
        limited
    }

    /// The same with one block of a dimension, by its number; `None` if there are not so many.
    pub(crate) fn of_block(&self, axis: usize, number: u64) -> Option<Self> {
        let mut one = self.clone();
        let Selection::Regular(slabs) = &mut one else {
            return None;
        };
        let slab = slabs.get_mut(axis)?;
        let start = number.checked_mul(slab.stride)?.checked_add(slab.start)?;
        let block = Slab::new(start, 1, 1, slab.block)?;
        *slab = Some(block).filter(|block| !block.is_unlimited)?;
        Some(one)
    }

    /// One past the last selected index of every dimension; `None` for a selection without any.
    pub(crate) fn ends(&self) -> Option<Vec<u64>> {
        match self {
            Selection::None | Selection::All => None,
            Selection::Regular(slabs) => slabs.iter().map(Slab::end).collect(),
            Selection::Blocks(blocks) => {
                let mut ends: Vec<u64> = Vec::new();
                for block in blocks {
                    ends.resize(block.len(), 0);
                    for (end, (_, own)) in ends.iter_mut().zip(block) {
                        *end = (*end).max(*own);
                    }
                }
                Some(ends)
            }
        }
    }

    /// The selected bytes of a dataset with that shape. `rows` is the number of rows of blocks that
    /// may still be kept in memory. A selection outside the shape is refused.
    pub(crate) fn runs(&self, shape: &[u64], element_len: u64, rows: &mut u64) -> Result<Runs> {
        let whole = |count: &u64| Slab::new(0, 1, 1, *count).ok_or(Hdf5Fault::Overflow);
        let mut slabs: Vec<Slab> = match self {
            Selection::None => return Ok(Runs::Listed(Vec::new())),
            Selection::All => shape.iter().map(whole).collect::<Result<_, _>>()?,
            Selection::Regular(slabs) => slabs.clone(),
            Selection::Blocks(blocks) => return listed(blocks, shape, element_len, rows),
        };
        let ends: Option<Vec<u64>> = slabs.iter().map(Slab::end).collect();
        check_ends(&ends.ok_or(Hdf5Fault::Selection)?, shape)?;
        // The bytes of an element are the innermost dimension.
        slabs.push(whole(&element_len)?);
        let mut axes: Vec<Axis> = Vec::new();
        let counts = shape.iter().copied().chain([element_len]);
        let (mut unit, mut inner) = (1u64, 1u64);
        for (mut slab, count) in slabs.into_iter().zip(counts.collect::<Vec<_>>()).rev() {
            match axes.last_mut() {
                // A dimension that is selected as a whole is a part of the one before it.
                Some(last) if last.slab.start == 0 && last.slab.count == last.extent => {
                    let within = last.extent;
                    let times = |number: u64| match number {
                        u64::MAX => Ok(u64::MAX),
                        number => product([number, within]),
                    };
                    slab.start = times(slab.start)?;
                    slab.stride = times(slab.stride)?;
                    slab.block = times(slab.block)?;
                    slab.count = times(slab.count)?;
                    last.extent = times(count)?;
                    last.slab = slab;
                }
                _ => axes.push(Axis { slab, extent: count, unit: 1, inner: 1 }),
            }
        }
        for axis in &mut axes {
            (axis.unit, axis.inner) = (unit, inner);
            unit = product([unit, axis.extent])?;
            inner = product([inner, axis.slab.count])?;
        }
        axes.reverse();
        Ok(Runs::Regular { axes, total: inner })
    }
}

/// Refuses a selection outside a shape, or of another rank.
fn check_ends(ends: &[u64], shape: &[u64]) -> Result<(), Hdf5Fault> {
    let mut pairs = ends.iter().zip(shape);
    let is_outside = pairs.any(|(end, count)| end > count);
    if is_outside || ends.len() != shape.len() {
        return Err(Hdf5Fault::Selection);
    }
    Ok(())
}

/// The rows of blocks, sorted and joined.
fn listed(
    blocks: &[Vec<(u64, u64)>],
    shape: &[u64],
    element_len: u64,
    rows: &mut u64,
) -> Result<Runs> {
    let mut runs: Vec<Run> = Vec::new();
    for block in blocks {
        let ends: Vec<u64> = block.iter().map(|(_, end)| *end).collect();
        check_ends(&ends, shape)?;
        let Some(((first, end), outer)) = block.split_last() else {
            return Err(Hdf5Fault::Selection.into());
        };
        let mut counts = outer.iter().map(|(first, end)| end.abs_diff(*first));
        let count = counts.try_fold(1u64, u64::checked_mul).ok_or(Hdf5Fault::Mappings)?;
        *rows = rows.checked_sub(count).ok_or(Hdf5Fault::Mappings)?;
        let byte_len = product([end.abs_diff(*first), element_len])?;
        let mut place: Vec<u64> = outer.iter().map(|(first, _)| *first).collect();
        for _ in 0..count {
            let mut at = 0u64;
            let axes = place.iter().chain([first]).zip(shape);
            for (index, count) in axes {
                at = sum([product([at, *count])?, *index])?;
            }
            let offset = product([at, element_len])?;
            sum([offset, byte_len])?;
            runs.push(Run { offset, byte_len, number: 0 });
            for (at, (first, end)) in place.iter_mut().zip(outer).rev() {
                *at = at.strict_add(1);
                if *at < *end {
                    break;
                }
                *at = *first;
            }
        }
    }
    runs.sort_unstable_by_key(|run| run.offset);
    let mut number = 0u64;
    let mut joined: Vec<Run> = Vec::new();
    for run in runs {
        match joined.last_mut() {
            Some(last) if last.end() == run.offset => {
                last.byte_len = last.byte_len.strict_add(run.byte_len);
            }
            Some(last) if last.end() > run.offset => return Err(Hdf5Fault::Selection.into()),
            _ => joined.push(Run { number, ..run }),
        }
        number = number.checked_add(run.byte_len).ok_or(Hdf5Fault::Overflow)?;
    }
    Ok(Runs::Listed(joined))
}

/// A number of 2, 4 or 8 bytes. All ones are unlimited.
fn number(cursor: &mut Cursor<'_>, len: u64) -> Result<u64> {
    Ok(match (len, cursor.uint(len)?) {
        (2, 0xFFFF) | (4, 0xFFFF_FFFF) => u64::MAX,
        (_, number) => number,
    })
}

fn hyperslab(cursor: &mut Cursor<'_>) -> Result<Selection> {
    const REGULAR: u8 = 1;
    let version = cursor.u32()?;
    let (is_regular, width) = match version {
        1 => {
            cursor.skip(4 + 4)?;
            (false, 4)
        }
        2 => {
            let flags = cursor.u8()?;
            cursor.skip(4)?;
            (flags & REGULAR != 0, 8)
        }
        3 => {
            let flags = cursor.u8()?;
            (flags & REGULAR != 0, cursor.u8()?.into())
        }
        other => return Err(cursor.field("the version of a selection", other.into())),
    };
    if !matches!(width, 2 | 4 | 8) {
        return Err(cursor.field("the width of a selection's numbers", width));
    }
    let rank = cursor.u32()?;
    if !(1..=32).contains(&rank) {
        return Err(cursor.field("the rank of a selection", rank.into()));
    }
    if is_regular {
        let mut slabs = Vec::new();
        for _ in 0..rank {
            let (start, stride) = (cursor.uint(width)?, cursor.uint(width)?);
            let (count, block) = (number(cursor, width)?, number(cursor, width)?);
            let slab = Slab::new(start, stride, count, block);
            slabs.push(slab.ok_or_else(|| cursor.field("the stride of a selection", stride))?);
        }
        if slabs.iter().filter(|slab| slab.is_unlimited).count() > 1 {
            return Err(cursor.error(Hdf5Fault::Selection));
        }
        return Ok(Selection::Regular(slabs));
    }
    let mut blocks = Vec::new();
    for _ in 0..cursor.uint(width)? {
        let starts: Result<Vec<u64>> = (0..rank).map(|_| cursor.uint(width)).collect();
        let mut block = Vec::new();
        for start in starts? {
            let last = cursor.uint(width)?;
            let end = last.checked_add(1).filter(|_| last >= start);
            block.push((start, end.ok_or_else(|| cursor.error(Hdf5Fault::Selection))?));
        }
        blocks.push(block);
    }
    Ok(Selection::Blocks(blocks))
}

/// The selected bytes of a dataset, numbered in row-major order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Runs {
    /// From the outermost dimension on.
    Regular {
        axes: Vec<Axis>,
        total: u64,
    },
    Listed(Vec<Run>),
}

/// A dimension of selected bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Axis {
    slab: Slab,
    extent: u64,
    /// Bytes from one index to the next: all of them, and the selected ones.
    unit: u64,
    inner: u64,
}

/// Selected bytes that follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    offset: u64,
    byte_len: u64,
    /// The number of selected bytes before.
    number: u64,
}

impl Run {
    fn end(&self) -> u64 {
        self.offset.strict_add(self.byte_len)
    }
}

impl Runs {
    pub(crate) fn total(&self) -> u64 {
        match self {
            Runs::Regular { total, .. } => *total,
            Runs::Listed(runs) => {
                let last = runs.last();
                last.map_or(0, |run| run.number.strict_add(run.byte_len))
            }
        }
    }

    /// The number of selected bytes before the byte at `offset`.
    pub(crate) fn before(&self, offset: u64) -> u64 {
        match self {
            Runs::Regular { axes, .. } => {
                let (mut rest, mut number) = (offset, 0u64);
                for axis in axes {
                    // An inner dimension without indices has no bytes.
                    let Some(index) = rest.checked_div(axis.unit) else {
                        break;
                    };
                    rest = rest.strict_rem(axis.unit);
                    let before = axis.slab.before(index);
                    // At most all selected bytes.
                    number = number.strict_add(before.strict_mul(axis.inner));
                    // Within an index that is not selected there is nothing.
                    if axis.slab.before(index.strict_add(1)) == before {
                        break;
                    }
                }
                number
            }
            Runs::Listed(runs) => {
                let at = runs.partition_point(|run| run.offset < offset);
                let run = at.checked_sub(1).and_then(|at| runs.get(at));
                run.map_or(0, |run| {
                    let within = offset.strict_sub(run.offset).min(run.byte_len);
                    run.number.strict_add(within)
                })
            }
        }
    }

    /// The offset of the selected byte with a number, and the selected bytes from there on that follow
    /// each other.
    pub(crate) fn at(&self, number: u64) -> Option<(u64, u64)> {
        match self {
            Runs::Regular { axes, total } => {
                let (mut rest, mut offset, mut run) = (number, 0u64, 0);
                if number >= *total {
                    return None;
                }
                for axis in axes {
                    let index = rest.checked_div(axis.inner)?;
                    rest = rest.checked_rem(axis.inner)?;
                    offset = offset.checked_add(axis.slab.at(index)?.checked_mul(axis.unit)?)?;
                    run = axis.slab.run(index);
                }
                Some((offset, run))
            }
            Runs::Listed(runs) => {
                let at = runs.partition_point(|run| run.number <= number);
                let run = runs.get(at.checked_sub(1)?)?;
                let within = number.checked_sub(run.number)?;
                let left = run.byte_len.checked_sub(within).filter(|left| *left > 0)?;
                Some((run.offset.checked_add(within)?, left))
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "small numbers")]
mod tests {
    use super::*;

    /// The offsets of all selected bytes, run by run.
    fn offsets(runs: &Runs) -> Vec<u64> {
        let (mut number, mut found) = (0, Vec::new());
        while let Some((offset, run)) = runs.at(number) {
            found.extend(offset..offset + run);
            number += run;
        }
        assert_eq!(found.len() as u64, runs.total());
        found
    }

    fn check(selection: &Selection, shape: &[u64], is_selected: impl Fn(&[u64]) -> bool) {
        let len: u64 = shape.iter().product();
        let expected: Vec<u64> = (0..len)
            .filter(|at| {
                let mut rest = *at;
                let mut place: Vec<u64> = Vec::new();
                for count in shape.iter().rev() {
                    place.insert(0, rest % count);
                    rest /= count;
                }
                is_selected(&place)
            })
            .flat_map(|at| [2 * at, 2 * at + 1])
            .collect();
        let runs = selection.runs(shape, 2, &mut 100).unwrap();
        assert_eq!(offsets(&runs), expected, "{selection:?}");
        for offset in 0..=2 * len {
            let before = expected.iter().filter(|at| **at < offset).count() as u64;
            assert_eq!(runs.before(offset), before, "{selection:?} {offset}");
        }
    }

    fn slab(start: u64, stride: u64, count: u64, block: u64) -> Slab {
        Slab::new(start, stride, count, block).unwrap()
    }

    #[test]
    fn selected_bytes_are_numbered_in_row_major_order() {
        let shape = [4, 7, 3];
        check(&Selection::All, &shape, |_| true);
        check(&Selection::None, &shape, |_| false);
        let rows = Selection::Regular(vec![slab(1, 2, 2, 1), slab(0, 7, 1, 7), slab(0, 1, 3, 1)]);
        check(&rows, &shape, |at| at[0] % 2 == 1);
        let odd = Selection::Regular(vec![slab(0, 1, 4, 1), slab(1, 3, 2, 2), slab(2, 1, 1, 1)]);
        check(&odd, &shape, |at| [1, 2, 4, 5].contains(&at[1]) && at[2] == 2);
        let blocks =
            Selection::Blocks(vec![vec![(0, 2), (2, 4), (0, 3)], vec![(1, 4), (5, 7), (1, 2)]]);
        check(&blocks, &shape, |at| {
            at[0] < 2 && (2..4).contains(&at[1]) || at[0] > 0 && at[1] > 4 && at[2] == 1
        });
    }

    #[test]
    fn unlimited_selections_end_with_their_source() {
        let unlimited = slab(1, 3, u64::MAX, 2);
        assert_eq!([0, 2, 3, 4, 6].map(|index| unlimited.before(index)), [0, 1, 2, 2, 4]);
        let selection = Selection::Regular(vec![unlimited]);
        assert_eq!(selection.unlimited(), Some(0));
        check(&selection.limited(0, 3), &[9], |at| [1, 2, 4].contains(&at[0]));
        check(&selection.of_block(0, 1).unwrap(), &[9], |at| [4, 5].contains(&at[0]));
    }

    #[test]
    fn selections_outside_the_shape_are_refused() {
        for selection in [
            Selection::Regular(vec![slab(2, 1, 1, 3)]),
            Selection::Regular(vec![slab(0, 1, u64::MAX, 1)]),
            Selection::Regular(vec![slab(0, 1, 1, 1); 2]),
            Selection::Blocks(vec![vec![(3, 5)]]),
            Selection::Blocks(vec![vec![(0, 3)], vec![(2, 4)]]),
        ] {
            assert!(selection.runs(&[4], 1, &mut 100).is_err(), "{selection:?}");
        }
        assert_eq!(Slab::new(0, 1, 2, 3), None);
    }
}
