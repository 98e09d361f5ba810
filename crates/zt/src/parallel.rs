//! Independent work on all cores, results in order.

use crate::error::Result;

/// `work` on every item, on `threads` threads or on all cores; the results in the order of the
/// items, whatever the order of the work.
pub(crate) fn map<T: Sync, R: Send>(
    threads: Option<usize>,
    items: &[T],
    work: impl Fn(&T) -> R + Sync + Send,
) -> Result<Vec<R>> {
    #[cfg(feature = "rayon")]
    {
        use rayon::prelude::*;
        let run = || items.par_iter().with_max_len(1).map(&work).collect();
        match threads {
            Some(threads) => {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
                Ok(pool
                    .map_err(|_| crate::error::Fault::ThreadPool)?
                    .install(run))
            }
            None => Ok(run()),
        }
    }
    #[cfg(not(feature = "rayon"))]
    {
        let _ = threads;
        Ok(items.iter().map(work).collect())
    }
}
