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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scalar_has_one_element() {
        assert_eq!(element_count(&[]), Some(1));
        assert_eq!(dense_byte_len(&[], 8), Some(8));
    }

    #[test]
    fn a_zero_dimension_wins_over_an_overflow() {
        assert_eq!(element_count(&[1 << 40, 1 << 40, 0]), Some(0));
        assert_eq!(element_count(&[0, u64::MAX, u64::MAX]), Some(0));
    }

    #[test]
    fn products_that_wrap_are_refused() {
        assert_eq!(element_count(&[1 << 32, 1 << 32]), None);
        assert_eq!(dense_byte_len(&[(1 << 62) + 4], 4), None);
        assert_eq!(dense_byte_len(&[1 << 61], 4), Some(1 << 63));
    }
}
