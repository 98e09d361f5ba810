//! Arithmetic on lengths and offsets that were checked where they came in.

/// Sums, differences and products that fit, because something checked holds their operands: bytes
/// in memory, a [`Span`](crate::Span) that lies within its source, or a shape whose size was
/// computed.
///
/// What a file declares and nobody has checked yet is for `checked_add` and its kin. Here a result
/// that does not fit is a fault of the program. It panics, because a wrong number would go unnoticed.
pub trait Exact: Sized {
    /// `self + other`.
    #[must_use]
    fn plus(self, other: Self) -> Self;
    /// `self - other`.
    #[must_use]
    fn minus(self, other: Self) -> Self;
    /// `self * other`.
    #[must_use]
    fn times(self, other: Self) -> Self;
}

macro_rules! exact {
    ($($int:ty)*) => {$(
        impl Exact for $int {
            #[inline]
            #[track_caller]
            fn plus(self, other: Self) -> Self {
                self.checked_add(other).expect("the sum of checked numbers fits")
            }

            #[inline]
            #[track_caller]
            fn minus(self, other: Self) -> Self {
                self.checked_sub(other).expect("a part is not longer than the whole")
            }

            #[inline]
            #[track_caller]
            fn times(self, other: Self) -> Self {
                self.checked_mul(other).expect("the product of checked numbers fits")
            }
        }
    )*};
}

exact!(u32 u64 usize i128);

/// The length of something that is in memory, or its place there.
///
/// # Panics
///
/// If it does not fit the address space, so that it cannot be in memory.
#[inline]
#[must_use]
#[track_caller]
#[expect(clippy::expect_used, reason = "memory has no longer parts")]
pub fn in_memory(len: u64) -> usize {
    usize::try_from(len).expect("what is in memory fits the address space")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_fit_are_exact() {
        assert_eq!((7u64.plus(2), 7u64.minus(2), 7u64.times(2)), (9, 5, 14));
        assert_eq!(in_memory(1 << 20), 1 << 20);
    }

    #[test]
    #[should_panic(expected = "a part is not longer than the whole")]
    fn a_wrong_number_does_not_go_unnoticed() {
        let _ = 2usize.minus(7);
    }
}
