//! The cost of reading a sequential base, such as a deflated one, in another order. The counts are
//! only compared with a limit, so they saturate.

use zt::Error;

/// The most bytes of such a base that a view may read again.
const REORDER_MAX: u64 = 4 << 30;

/// Why a view of such a base is not read.
#[derive(Debug, thiserror::Error)]
#[error(
    "the elements are not row-major, so {byte_len} compressed bytes would be read {restarts} times \
     again; the limit is {REORDER_MAX} bytes in all"
)]
pub struct TooLongToReorder {
    byte_len: u64,
    restarts: u64,
}

impl From<TooLongToReorder> for Error {
    fn from(fault: TooLongToReorder) -> Self {
        Error::new(zt::ErrorKind::Unsupported, "unsupported", fault)
    }
}

/// Refuses a view that goes back `within` times in each of its bands, in a base of `byte_len` bytes.
///
/// One pass per band is expected: it counts once, so that only the length of the base is limited.
pub(super) fn allow(byte_len: u64, bands: u64, within: u64) -> Result<(), TooLongToReorder> {
    let within = within.saturating_mul(bands);
    let counted = within.max(u64::from(bands > 1));
    if counted.saturating_mul(byte_len) <= REORDER_MAX {
        return Ok(());
    }
    let restarts = within.saturating_add(bands.saturating_sub(1));
    Err(TooLongToReorder { byte_len, restarts })
}

/// How often steps lead back to bytes before the last ones read. A step is a count and a distance in
/// bytes, outermost first; `reach` is the number of bytes read at a place.
pub(super) fn restarts<I>(steps: I, mut reach: u64) -> u64
where
    I: DoubleEndedIterator<Item = (u64, u64)> + Clone,
{
    let mut restarts = 0u64;
    let mut outer = steps.clone().fold(1, |all: u64, (count, _)| all.saturating_mul(count));
    for (count, from) in steps.rev() {
        outer = outer.checked_div(count).unwrap_or(0);
        let more = count.saturating_sub(1);
        if from < reach {
            restarts = restarts.saturating_add(more.saturating_mul(outer));
        }
        reach = reach.saturating_add(from.saturating_mul(more));
    }
    restarts
}

#[cfg(test)]
mod tests {
    use super::restarts;

    #[test]
    fn a_step_that_is_as_far_as_its_inner_steps_reach_does_not_go_back() {
        // Three runs of 8 bytes that lie 10 apart reach 28 bytes.
        for (from, expected) in [(29, 0), (28, 0), (27, 4)] {
            assert_eq!(restarts([(5, from), (3, 10)].into_iter(), 8), expected);
        }
    }
}
