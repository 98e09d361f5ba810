//! The tree of digests: BLAKE3's own, cut at subtrees of 1 MiB. Spec: seal.md §3.

use blake3::hazmat::{
    ChainingValue, HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root,
};
use zt::Span;
use zt::container::Stretches;

/// A digest of 32 bytes.
pub type Sum = [u8; 32];

/// Bytes of a leaf; the last leaf of a file may be shorter. Decision D35.
pub const LEAF: u64 = 1 << 20;

/// The leaves of a file that have bytes.
pub(crate) fn leaves(byte_len: u64) -> Stretches {
    Stretches::new(Span::new(0, byte_len).unwrap_or_default(), LEAF)
}

/// The number of leaves of a file. An empty file has one, which is empty.
pub(crate) fn leaf_count(byte_len: u64) -> u64 {
    leaves(byte_len).count().max(1)
}

/// The bytes of a leaf; `None` if the file has none of that number.
pub(crate) fn leaf_span(byte_len: u64, at: u64) -> Option<Span> {
    leaves(byte_len).get(at).or_else(|| (byte_len == 0 && at == 0).then(Span::default))
}

/// The digest of leaf `at`. The only leaf of a file is the whole tree, so its digest is the root.
pub(crate) fn digest(bytes: &[u8], at: u64, is_only: bool) -> Sum {
    if is_only {
        return *blake3::hash(bytes).as_bytes();
    }
    piece(bytes, at.strict_mul(LEAF))
}

/// The chaining value of a subtree: of some bytes of a file from `offset` on. They are a power of two of at least
/// 1 KiB and begin at a multiple of that, or they are the last ones of a leaf.
pub(crate) fn piece(bytes: &[u8], offset: u64) -> Sum {
    let mut hasher = blake3::Hasher::new();
    hasher.set_input_offset(offset).update(bytes);
    hasher.finalize_non_root()
}

/// The digest of a leaf of these pieces, which are at least two and all but the last equally long.
pub(crate) fn joined(pieces: &[Sum], is_only: bool) -> Sum {
    if is_only { root(pieces) } else { subtree(pieces) }
}

/// The root of a file with these leaves: what `b3sum` prints for it.
pub(crate) fn root(leaves: &[Sum]) -> Sum {
    match split(leaves) {
        None => leaves.first().copied().unwrap_or_default(),
        Some((left, right)) => {
            *merge_subtrees_root(&subtree(left), &subtree(right), Mode::Hash).as_bytes()
        }
    }
}

fn subtree(leaves: &[Sum]) -> ChainingValue {
    match split(leaves) {
        None => leaves.first().copied().unwrap_or_default(),
        Some((left, right)) => merge_subtrees_non_root(&subtree(left), &subtree(right), Mode::Hash),
    }
}

/// The two subtrees; `None` for a single leaf. The left one is the largest power of two that leaves something.
fn split(leaves: &[Sum]) -> Option<(&[Sum], &[Sum])> {
    let left = leaves.len().checked_next_power_of_two()? >> 1;
    leaves.split_at_checked(left).filter(|(left, _)| !left.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(
        clippy::cast_possible_truncation,
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing
    )]
    fn the_root_is_the_plain_hash_of_the_file() {
        let leaf = LEAF as usize;
        let bytes: Vec<u8> = (0..8 * leaf + 5).map(|at| (at / 7 % 251) as u8).collect();
        let lens = [0, 1, leaf - 1, leaf, leaf + 1, 2 * leaf, 3 * leaf, 5 * leaf + 9, 8 * leaf + 5];
        for byte_len in lens {
            let bytes = &bytes[..byte_len];
            let count = leaf_count(byte_len as u64);
            let leaves = (0..count).map(|at| {
                let span = leaf_span(byte_len as u64, at).unwrap();
                let bytes = &bytes[span.offset() as usize..span.end() as usize];
                digest(bytes, at, count == 1)
            });
            let leaves: Vec<Sum> = leaves.collect();
            assert_eq!(root(&leaves), *blake3::hash(bytes).as_bytes(), "{byte_len}");
            assert_eq!(leaf_span(byte_len as u64, count), None);
            for len in [1 << 10, 64 << 10] {
                for at in 0..count {
                    let span = leaf_span(byte_len as u64, at).unwrap();
                    let bytes = &bytes[span.offset() as usize..span.end() as usize];
                    if bytes.len() <= len {
                        continue;
                    }
                    let pieces = (span.offset()..).step_by(len).zip(bytes.chunks(len));
                    let pieces: Vec<Sum> = pieces.map(|(at, bytes)| piece(bytes, at)).collect();
                    assert_eq!(joined(&pieces, count == 1), leaves[at as usize]);
                }
            }
        }
    }
}
