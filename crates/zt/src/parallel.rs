//! Work on all cores, results in order. Without the feature `rayon`, the same work on one.

use crate::error::Result;

/// Runs `work` on a pool of `threads` threads, or where `None` on the pool of all cores.
pub(crate) fn on<R: Send>(
    threads: Option<usize>,
    work: impl FnOnce() -> Result<R> + Send,
) -> Result<R> {
    #[cfg(feature = "rayon")]
    if let Some(threads) = threads {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        return pool
            .map_err(|_| crate::error::Fault::ThreadPool)?
            .install(work);
    }
    #[cfg(not(feature = "rayon"))]
    let _ = threads;
    work()
}

/// `work` on every item, each its own unit of work; the results in the order of the items,
/// whatever the order of the work. After an error no more is begun.
pub(crate) fn map<T: Sync, R: Send>(
    items: &[T],
    work: impl Fn(&T) -> Result<R> + Sync + Send,
) -> Result<Vec<R>> {
    #[cfg(feature = "rayon")]
    {
        use rayon::prelude::*;
        items.par_iter().with_max_len(1).map(&work).collect()
    }
    #[cfg(not(feature = "rayon"))]
    {
        items.iter().map(work).collect()
    }
}

/// As [`map`], for items that `work` consumes.
pub(crate) fn map_owned<T: Send, R: Send>(
    items: Vec<T>,
    work: impl Fn(T) -> Result<R> + Sync + Send,
) -> Result<Vec<R>> {
    #[cfg(feature = "rayon")]
    {
        use rayon::prelude::*;
        items.into_par_iter().with_max_len(1).map(&work).collect()
    }
    #[cfg(not(feature = "rayon"))]
    {
        items.into_iter().map(work).collect()
    }
}

/// Both, side by side where a core is free.
pub(crate) fn join<A: Send, B: Send>(
    a: impl FnOnce() -> A + Send,
    b: impl FnOnce() -> B + Send,
) -> (A, B) {
    #[cfg(feature = "rayon")]
    {
        rayon::join(a, b)
    }
    #[cfg(not(feature = "rayon"))]
    {
        (a(), b())
    }
}
