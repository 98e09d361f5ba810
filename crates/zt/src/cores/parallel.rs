//! Equal tasks on all cores, with the results in order.
//!
//! Without the feature `rayon`, and if the system refuses threads, the tasks run on one thread.

use crate::error::Result;

/// How many threads work is spread over here: those of the pool that the caller is in, else those of
/// rayon's own, which is begun if need be. One where that cannot be had; rayon panics if it is used
/// then, so whatever uses it asks here first.
#[cfg(feature = "rayon")]
pub(crate) fn threads() -> usize {
    use std::error::Error as _;
    use std::sync::OnceLock;
    /// Rayon tries once, and does not say later how that went.
    static IS_THERE: OnceLock<bool> = OnceLock::new();
    let begin = || match rayon::ThreadPoolBuilder::new().build_global() {
        Ok(()) => true,
        // Without a cause it is there already: begun by the program, perhaps of another size.
        Err(error) => error.source().is_none(),
    };
    if rayon::current_thread_index().is_some() || *IS_THERE.get_or_init(begin) {
        rayon::current_num_threads()
    } else {
        1
    }
}

/// Runs `work` on a pool of `threads` threads, or where `None` on the pool of all cores.
///
/// # Errors
///
/// [`crate::error::Fault::ThreadPool`] where so many were asked for and cannot be had.
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
    if threads() > 1 {
        use rayon::prelude::*;
        return items.par_iter().with_max_len(1).map(&work).collect();
    }
    items.iter().map(work).collect()
}

/// As [`map`], for items that `work` consumes.
pub(crate) fn map_owned<T: Send, R: Send>(
    items: Vec<T>,
    work: impl Fn(T) -> Result<R> + Sync + Send,
) -> Result<Vec<R>> {
    #[cfg(feature = "rayon")]
    if threads() > 1 {
        use rayon::prelude::*;
        return items.into_par_iter().with_max_len(1).map(&work).collect();
    }
    items.into_iter().map(work).collect()
}

/// Both, side by side where a core is free.
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

    /// Where two meet, or one gives up.
    #[derive(Default)]
    struct Meeting(Mutex<u32>, Condvar);

    impl Meeting {
        fn has_two(&self) -> bool {
            const LONG: Duration = Duration::from_secs(30);
            let mut here = self.0.lock().unwrap();
            *here += 1;
            self.1.notify_all();
            let waited = self.1.wait_timeout_while(here, LONG, |here| *here < 2);
            !waited.unwrap().1.timed_out()
        }
    }

    #[test]
    fn what_two_threads_can_do_is_done_at_once() {
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
