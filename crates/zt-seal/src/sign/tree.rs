//! Trees with some known leaves. The sums of the other subtrees lead to the root.
//!
//! Both trees have one shape: of `n` leaves, the left subtree has the largest power of two below `n`. The tree of
//! tensors is that of RFC 6962 §2.1; the tree of a file is BLAKE3's, cut at leaves of 1 MiB.

use std::ops::Range;

use blake3::hazmat::{Mode, merge_subtrees_non_root, merge_subtrees_root};
use zt::{Result, Value};

use crate::sign::hash::sha256;
use crate::tree::Sum;

/// The sum of two subtrees; the flag is set for the root.
pub(super) type Merge = fn(&Sum, &Sum, bool) -> Result<Sum>;

/// The leaf of a tensor: RFC 6962's hash of the CBOR of its name and its identity.
pub(super) fn tensor_leaf(name: &str, identity: &Sum) -> Result<Sum> {
    let item = Value::array(vec![Value::from(name), Value::from(identity.to_vec())]);
    sha256(&[&[0], &item.to_cbor()?])
}

/// RFC 6962's hash of a node.
pub(super) fn merge_tensors(left: &Sum, right: &Sum, _: bool) -> Result<Sum> {
    sha256(&[&[1], left, right])
}

/// BLAKE3's parent of two subtrees.
pub(super) fn merge_leaves(left: &Sum, right: &Sum, is_root: bool) -> Result<Sum> {
    Ok(if is_root {
        *merge_subtrees_root(left, right, Mode::Hash).as_bytes()
    } else {
        merge_subtrees_non_root(left, right, Mode::Hash)
    })
}

/// The two halves of at least two leaves.
fn halves(leaves: &Range<u64>) -> Option<(Range<u64>, Range<u64>)> {
    let count = leaves.end.checked_sub(leaves.start).filter(|count| *count > 1)?;
    let left = count.checked_next_power_of_two().map_or(1 << 63, |it| it >> 1);
    let middle = leaves.start.checked_add(left)?;
    Some((leaves.start..middle, middle..leaves.end))
}

/// Which leaves are known: ranges that are sorted and apart from each other.
#[derive(Clone, Copy)]
pub(super) struct Known<'k>(pub(super) &'k [Range<u64>]);

impl Known<'_> {
    fn any_in(&self, leaves: &Range<u64>) -> bool {
        let at = self.0.partition_point(|known| known.end <= leaves.start);
        self.0.get(at).is_some_and(|known| known.start < leaves.end)
    }
}

/// The sum of all `leaves`, made of their own sums.
pub(super) fn sum_of(
    leaves: &Range<u64>,
    is_root: bool,
    leaf: &dyn Fn(u64) -> Result<Sum>,
    merge: Merge,
) -> Result<Sum> {
    match halves(leaves) {
        None => leaf(leaves.start),
        Some((left, right)) => {
            let (left, right) =
                (sum_of(&left, false, leaf, merge)?, sum_of(&right, false, leaf, merge)?);
            merge(&left, &right, is_root)
        }
    }
}

/// The sums that lead from the known leaves to the root: of the largest subtrees without one, from left to right.
pub(super) fn others(
    leaves: &Range<u64>,
    known: Known<'_>,
    leaf: &dyn Fn(u64) -> Result<Sum>,
    merge: Merge,
    sums: &mut Vec<Sum>,
) -> Result<()> {
    if !known.any_in(leaves) {
        sums.push(sum_of(leaves, false, leaf, merge)?);
    } else if let Some((left, right)) = halves(leaves) {
        others(&left, known, leaf, merge, sums)?;
        others(&right, known, leaf, merge, sums)?;
    }
    Ok(())
}

/// The root that known leaves and the `sums` of [`others`] give; `None` if there are too few sums.
pub(super) fn root(
    leaves: &Range<u64>,
    is_root: bool,
    known: Known<'_>,
    leaf: &mut dyn FnMut(u64) -> Result<Sum>,
    sums: &mut dyn Iterator<Item = Sum>,
    merge: Merge,
) -> Result<Option<Sum>> {
    if !known.any_in(leaves) {
        return Ok(sums.next());
    }
    let Some((left, right)) = halves(leaves) else { return leaf(leaves.start).map(Some) };
    let left = root(&left, false, known, leaf, sums, merge)?;
    let Some(left) = left else { return Ok(None) };
    let Some(right) = root(&right, false, known, leaf, sums, merge)? else { return Ok(None) };
    merge(&left, &right, is_root).map(Some)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::single_range_in_vec_init, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_header_and_rows_in_64_gib_need_at_most_56_sums() {
        let count = 1 << 16;
        let leaf = |_| Ok([0; 32]);
        for known in
            [&[0..1, (1 << 15) - 1..(1 << 15) + 1, count - 1..count][..], &[0..2, 55_555..55_557]]
        {
            let mut sums = Vec::new();
            others(&(0..count), Known(known), &leaf, |a, _, _| Ok(*a), &mut sums).unwrap();
            assert!(sums.len() <= 56, "{}", sums.len());
            let mut given = sums.into_iter();
            let found = root(
                &(0..count),
                true,
                Known(known),
                &mut |_| Ok([0; 32]),
                &mut given,
                |a, _, _| Ok(*a),
            );
            assert_eq!(found.unwrap(), Some([0; 32]));
            assert_eq!(given.next(), None);
        }
    }

    #[test]
    fn known_leaves_and_the_other_sums_give_the_root() {
        let leaf = |at: u64| sha256(&[&at.to_be_bytes()]);
        for count in 1..20 {
            let whole = sum_of(&(0..count), true, &leaf, merge_tensors).unwrap();
            for start in 0..count {
                for end in start + 1..=count {
                    let known = [start..end];
                    let mut sums = Vec::new();
                    others(&(0..count), Known(&known), &leaf, merge_tensors, &mut sums).unwrap();
                    let mut given = sums.iter().copied();
                    let found = root(
                        &(0..count),
                        true,
                        Known(&known),
                        &mut |at| leaf(at),
                        &mut given,
                        merge_tensors,
                    );
                    assert_eq!(found.unwrap(), Some(whole));
                    assert_eq!(given.next(), None);
                    // One sum fewer gives none.
                    let mut fewer = sums.iter().copied().skip(1);
                    let found = root(
                        &(0..count),
                        true,
                        Known(&known),
                        &mut |at| leaf(at),
                        &mut fewer,
                        merge_tensors,
                    );
                    assert!(sums.is_empty() || found.unwrap() != Some(whole));
                }
            }
        }
    }
}
