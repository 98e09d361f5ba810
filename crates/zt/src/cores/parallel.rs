//! Equal tasks on all cores, with the results in order.
//!
//! Without the feature `rayon`, and if the system refuses threads, the tasks run on one thread.

#[cfg(feature = "rayon")]
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::error::Result;

/// The number of threads that work is spread over: those of the caller's pool, otherwise those of
/// rayon's global pool, which is started if necessary. One if it cannot be started. Rayon panics if
/// it is used then, so all uses of rayon ask here first.
///
/// One, too, in a process that was forked after the global pool began: no thread survives a fork, and
/// a wait for one never ends.
#[cfg(feature = "rayon")]
pub(crate) fn threads() -> usize {
    use std::error::Error as _;
    use std::sync::OnceLock;
    /// The process that has the pool, if there is one. Rayon tries only once, and does not report the
    /// result later.
    static POOL: OnceLock<Option<u32>> = OnceLock::new();
    let begin = || {
        let is_there = match bounded(0).build_global() {
            Ok(()) => true,
            // An error without a source means that the program has started the pool already.
            Err(error) => error.source().is_none(),
        };
        is_there.then(std::process::id)
    };
    if rayon::current_thread_index().is_some()
        || *POOL.get_or_init(begin) == Some(std::process::id())
    {
        rayon::current_num_threads()
    } else {
        1
    }
}

/// Without rayon, one.
#[cfg(not(feature = "rayon"))]
pub(crate) const fn threads() -> usize {
    1
}

/// A pool of `threads` threads, or with 0 of as many as the environment asks for, but of no more than
/// help: starting many thousands takes minutes, and the system may refuse them.
#[cfg(feature = "rayon")]
pub(crate) fn bounded(threads: usize) -> rayon::ThreadPoolBuilder {
    const MOST: usize = 1024;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = match threads {
        // The variables that rayon reads. Without them it takes 0 as one thread for each core.
        0 => ["RAYON_NUM_THREADS", "RAYON_RS_NUM_CPUS"]
            .iter()
            .find_map(|name| std::env::var(name).ok()?.parse::<usize>().ok())
            .map_or(0, |threads| threads.min(cores.saturating_mul(4))),
        threads => threads.min(MOST.max(cores)),
    };
    rayon::ThreadPoolBuilder::new().num_threads(threads)
}

/// Runs `work` on a pool of `threads` threads; with `None`, on the pool of all cores.
///
/// # Errors
///
/// [`crate::ErrorKind::Io`] if the system refuses that many threads; the errors of `work`.
pub fn on<R: Send>(threads: Option<usize>, work: impl FnOnce() -> Result<R> + Send) -> Result<R> {
    #[cfg(feature = "rayon")]
    if let Some(threads) = threads {
        let pool = bounded(threads).build();
        return pool.map_err(|_| crate::error::Fault::ThreadPool)?.install(work);
    }
    #[cfg(not(feature = "rayon"))]
    let _ = threads;
    work()
}

/// Calls `work` on every item, each as a unit of work. The results are in the order of the items.
/// After an error, no further item is begun.
pub(crate) fn map<T: Sync, R: Send>(
    items: &[T],
    work: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    map_owned(items.iter().collect(), work)
}

/// Calls `work` on every item, each as a unit of work on one of the cores. The results are in the order of
/// the items.
///
/// # Errors
///
/// The first error of `work`. No further item is begun after it.
pub fn map_owned<T: Send, R: Send>(
    items: Vec<T>,
    work: impl Fn(T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    #[cfg(feature = "rayon")]
    if threads() > 1 && items.len() > 1 {
        return spread(items, work);
    }
    items.into_iter().map(work).collect()
}

/// Each item waits in a place of its own, and its result is left in another. Only [`for_each`] knows
/// rayon: what is generic in rayon is compiled once, not for every kind of item.
#[cfg(feature = "rayon")]
#[expect(clippy::indexing_slicing, reason = "numbers below the length")]
fn spread<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> Result<R> + Sync) -> Result<Vec<R>> {
    let places: Vec<_> = items.into_iter().map(|item| Mutex::new((Some(item), None))).collect();
    let lock = |at: usize| places[at].lock().unwrap_or_else(PoisonError::into_inner);
    let failure = OnceLock::new();
    for_each(places.len(), &|at| {
        let item = lock(at).0.take();
        let Some(item) = item.filter(|_| failure.get().is_none()) else {
            return;
        };
        match work(item) {
            Ok(result) => lock(at).1 = Some(result),
            Err(error) => drop(failure.set(error)),
        }
    });
    if let Some(error) = failure.into_inner() {
        return Err(error);
    }
    let places = places.into_iter().map(Mutex::into_inner);
    let results = places.filter_map(|place| place.unwrap_or_else(PoisonError::into_inner).1);
    Ok(results.collect())
}

/// Calls `work` with every number below `count`, each as a unit of work.
#[cfg(feature = "rayon")]
fn for_each(count: usize, work: &(dyn Fn(usize) + Sync)) {
    use rayon::prelude::*;
    (0..count).into_par_iter().with_max_len(1).for_each(work);
}

/// Sorts items that all differ.
pub(crate) fn sort<T: Ord + Send>(items: &mut [T]) {
    #[cfg(feature = "rayon")]
    if threads() > 1 {
        use rayon::prelude::*;
        return items.par_sort_unstable();
    }
    items.sort_unstable();
}

/// Runs both functions, in parallel if a core is free.
pub(crate) fn join<A: Send, B: Send>(
    a: impl FnOnce() -> A + Send,
    b: impl FnOnce() -> B + Send,
) -> (A, B) {
    #[cfg(feature = "rayon")]
    if threads() > 1 {
        return rayon::join(a, b);
    }
    (a(), b())
}

#[cfg(all(test, feature = "rayon"))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::sync::{Condvar, Mutex};
    use std::time::Duration;

    use super::*;

    /// A place where two threads meet, or one gives up.
    #[derive(Default)]
    struct Meeting(Mutex<u32>, Condvar);

    impl Meeting {
        fn has_two(&self) -> bool {
            const LONG: Duration = Duration::from_secs(30);
            let mut here = self.0.lock().unwrap();
            *here = here.strict_add(1);
            self.1.notify_all();
            let waited = self.1.wait_timeout_while(here, LONG, |here| *here < 2);
            !waited.unwrap().1.timed_out()
        }
    }

    #[test]
    fn two_threads_work_at_the_same_time() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2);
        pool.build().unwrap().install(|| {
            let meeting = Meeting::default();
            let both = map(&[(), ()], |()| Ok(meeting.has_two()));
            assert_eq!(both.unwrap(), [true, true]);
            let meeting = Meeting::default();
            let both = map_owned(vec![(), ()], |()| Ok(meeting.has_two()));
            assert_eq!(both.unwrap(), [true, true]);
            let meeting = Meeting::default();
            let both = join(|| meeting.has_two(), || meeting.has_two());
            assert_eq!(both, (true, true));
        });
    }
}
