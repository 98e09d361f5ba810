//! Many small items on all cores, in bounded memory.

use std::ops::Range;

use crate::cores::parallel;

/// Items that one core takes at a time.
///
/// Pays: `zt ls` of 100,000 objects takes 0.88 of the time on one core, and 0.94 of the CPU time with 32. To verify
/// them takes as long on one core.
const STRETCH: usize = 512;

/// Stretches for each core whose results wait until all of these are there.
///
/// Pays: 100,000 tensors are verified in 0.95 of the time with 1, and as fast with 64.
const AHEAD: usize = 8;

/// Adds up the items of each stretch on some core, and hands over the sums in the order of the items.
pub(crate) fn fold<T: Default + Send>(
    items: Range<usize>,
    add: impl Fn(&mut T, usize) + Sync,
    mut take: impl FnMut(T),
) {
    let starts: Vec<usize> = items.clone().step_by(STRETCH).collect();
    let at_a_time = match starts.len() {
        0 | 1 => 1,
        _ => parallel::threads().saturating_mul(AHEAD),
    };
    for starts in starts.chunks(at_a_time) {
        let sums = parallel::map(starts, |start| {
            let mut sum = T::default();
            let stretch = (*start..items.end).take(STRETCH);
            stretch.for_each(|at| add(&mut sum, at));
            Ok(sum)
        });
        // No stretch fails.
        sums.unwrap_or_default().into_iter().for_each(&mut take);
    }
}
