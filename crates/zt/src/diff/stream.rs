//! The comparison of two arrays, read side by side.

use zt_formats::{Elements, check_bools_from};
use zt_manifest::DType;

use super::Side;
use super::number::Values;
use crate::cores::progress::Gauge;
use crate::error::Error;
use crate::read::arrays::{Array, for_each};

/// Arrays of fewer values are compared in parallel with others, each on one core.
///
/// Pays: nothing on two cores: `zt diff` of matrices of 8 MiB in zstd takes 1.45 of the CPU time of one core for each,
/// and of one of 192 MiB 1.17. Neither is faster.
const ALONE: u64 = 1 << 20;

/// What is known of some pairs of values.
pub(super) trait Joined: Default + Send {
    /// Adds what is known of the next pairs.
    fn join(&mut self, next: Self);
}

/// Compares two arrays to their ends. `compare` gets some pairs of values and the place of the first. An error
/// comes with the side that cannot be read. Invalid bools are refused, as reading does.
pub(super) fn for_pairs<T: Joined>(
    a: Array<'_>,
    b: Array<'_>,
    gauge: &Gauge<'_>,
    compare: impl Fn(&Values<'_>, &Values<'_>, u64) -> Result<T, (Side, Error)> + Sync,
) -> Result<T, (Side, Error)> {
    let is_alone = a.count().max(b.count()) >= ALONE;
    let arrays = [a, b];
    let mut all = T::default();
    let look = |first: u64, elements: [Elements<'_>; 2]| {
        for (at, elements) in elements.iter().enumerate() {
            if elements.dtype == DType::Bool {
                check_bools_from(first, &elements.bytes).map_err(|error| (at, error.into()))?;
            }
        }
        let [a, b] = elements;
        let found = compare(&values(&arrays[0], a), &values(&arrays[1], b), first);
        found.map_err(|(side, error)| (usize::from(side == Side::B), error))
    };
    let compared = for_each(&arrays, is_alone, gauge, look, |found| all.join(found));
    compared.map_err(|(at, error)| (if at == 0 { Side::A } else { Side::B }, error))?;
    Ok(all)
}

fn values<'v>(array: &Array<'v>, elements: Elements<'v>) -> Values<'v> {
    Values { elements, value_len: array.value_len, registry: array.tensor.registry() }
}
