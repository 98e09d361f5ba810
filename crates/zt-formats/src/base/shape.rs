//! Sizes of shapes, in checked arithmetic.

/// The number of elements of `shape`; `None` if it is 2^64 or more.
///
/// The empty shape is a scalar, with one element. A zero dimension gives zero, even if the product
/// of the others overflows: whether a reader accepts an array must not depend on the order of
/// dimensions.
pub fn element_count(shape: &[u64]) -> Option<u64> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1u64, |count, &dimension| count.checked_mul(dimension))
}

/// The length in bytes of a dense array of `shape` with `value_len` bytes for each value; `None` if
/// it is 2^64 or more. Spec: §8.
pub fn dense_byte_len(shape: &[u64], value_len: u64) -> Option<u64> {
    element_count(shape)?.checked_mul(value_len)
}
