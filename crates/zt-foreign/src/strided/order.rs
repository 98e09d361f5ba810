//! Bases whose bytes are made in order, such as deflated ones: what it takes to read them in another.
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use zt::Error;

/// Bytes of such a base that are gone through again because elements lie in another order, at most.
const REORDER_MAX: u64 = 4 << 30;

/// Why a view of such a base cannot be read.
#[derive(Debug)]
pub struct TooLongToReorder {
    byte_len: u64,
    restarts: u64,
}

impl std::error::Error for TooLongToReorder {}

impl std::fmt::Display for TooLongToReorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} compressed bytes hold elements in another order than row-major, begun again {} times; up to \
             {REORDER_MAX} bytes are gone through again",
            self.byte_len, self.restarts
        )
    }
}

impl From<TooLongToReorder> for Error {
    fn from(fault: TooLongToReorder) -> Self {
        Error::new(zt::ErrorKind::Unsupported, "unsupported", fault)
    }
}

/// Refuses a view of a base of `byte_len` bytes that goes back so often within each of its bands.
///
/// One pass for each band is what the band is for, and only has to be of bytes that are not too many.
pub(super) fn allow(byte_len: u64, bands: u64, within: u64) -> Result<(), TooLongToReorder> {
    let within = within.saturating_mul(bands);
    let counted = within.max(u64::from(bands > 1));
    if counted.saturating_mul(byte_len) <= REORDER_MAX {
        return Ok(());
    }
    let restarts = within.saturating_add(bands.saturating_sub(1));
    Err(TooLongToReorder { byte_len, restarts })
}

/// How often steps lead to a place before the one that is behind the last: counts and bytes from one to
/// the next, outermost first; `reach` is how far that place is behind the beginning of the innermost.
pub(super) fn restarts<I>(steps: I, mut reach: u64) -> u64
where
    I: DoubleEndedIterator<Item = (u64, u64)> + Clone,
{
    let mut restarts = 0u64;
    let mut outer = steps
        .clone()
        .fold(1, |all: u64, (count, _)| all.saturating_mul(count));
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
    fn what_goes_on_where_the_last_ended_goes_not_back() {
        // Three runs of 8 bytes that lie 10 apart reach 28 bytes.
        for (from, expected) in [(29, 0), (28, 0), (27, 4)] {
            assert_eq!(restarts([(5, from), (3, 10)].into_iter(), 8), expected);
        }
    }
}
