//! Tasks for other threads, and the wait for their results.
//!
//! The wait never depends on a free thread: if none has begun the task, the caller does it.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::error::Result;

/// The threads that work for one writer.
pub(crate) struct Workers {
    #[cfg(feature = "rayon")]
    pool: Option<rayon::ThreadPool>,
    threads: usize,
}

impl Workers {
    /// So many threads of their own, or all those that rayon has. One is the caller's, and then no
    /// other works; so it is where rayon cannot have any.
    pub(crate) fn new(threads: Option<usize>) -> Result<Self> {
        #[cfg(feature = "rayon")]
        {
            let build = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            let own = threads.filter(|threads| *threads > 1);
            let pool = own
                .map(build)
                .transpose()
                .map_err(|_| crate::error::Fault::ThreadPool)?;
            let threads = match (&pool, threads) {
                (Some(pool), _) => pool.current_num_threads(),
                (None, Some(_)) => 1,
                (None, None) => crate::cores::parallel::threads(),
            };
            Ok(Workers { pool, threads })
        }
        #[cfg(not(feature = "rayon"))]
        {
            let _ = threads;
            Ok(Workers { threads: 1 })
        }
    }

    /// How many threads there are; with one, work is done where it is waited for.
    pub(crate) const fn threads(&self) -> usize {
        self.threads
    }

    /// Has `work` done by a thread that is free, some time. It must not wait for other work.
    pub(crate) fn spawn(&self, work: impl FnOnce() + Send + 'static) {
        #[cfg(feature = "rayon")]
        if self.threads > 1 {
            match &self.pool {
                Some(pool) => pool.spawn_fifo(work),
                None => rayon::spawn_fifo(work),
            }
            return;
        }
        drop(work);
    }

    /// Does `work` where it may use all threads, and waits for it.
    pub(crate) fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        #[cfg(feature = "rayon")]
        if let Some(pool) = &self.pool {
            return pool.install(work);
        }
        work()
    }

    /// Begins work whose result is asked for later.
    pub(crate) fn start<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Task<'static, T> {
        let task = Task::new(work);
        if self.threads > 1 {
            let slot = Arc::clone(&task.0);
            self.spawn(move || slot.run());
        }
        task
    }

    /// Calls `begin`, which may begin work on what is lent to it, and waits until all of it has ended.
    /// No more than `most` threads do that work.
    ///
    /// On threads of its own: those of a pool may be waiting for this very caller, and while they do,
    /// nothing that is lent to them could be taken back.
    pub(crate) fn scope<'t, R>(&self, most: usize, begin: impl FnOnce(&Scope<'t>) -> R) -> R {
        if self.threads <= 1 {
            return begin(&Scope(None));
        }
        let (send, receive) = channel::<Job<'t>>();
        let receive = Mutex::new(receive);
        let next = || lock(&receive).recv();
        thread::scope(|threads| {
            for _ in 0..self.threads.min(most) {
                let work = || {
                    while let Ok(job) = next() {
                        job();
                    }
                };
                // Without a thread, who waits for the work does it.
                let _ = thread::Builder::new().spawn_scoped(threads, work);
            }
            // Its end is that of the threads.
            begin(&Scope(Some(send)))
        })
    }
}

type Job<'t> = Box<dyn FnOnce() + Send + 't>;

/// Where work begins that has ended before what it borrows goes.
pub(crate) struct Scope<'t>(Option<Sender<Job<'t>>>);

impl<'t> Scope<'t> {
    /// As [`Workers::start`].
    pub(crate) fn start<T: Send + 't>(&self, work: impl FnOnce() -> T + Send + 't) -> Task<'t, T> {
        let task = Task::new(work);
        if let Some(jobs) = &self.0 {
            let slot = Arc::clone(&task.0);
            let _ = jobs.send(Box::new(move || slot.run()));
        }
        task
    }
}

/// The result of work that was started.
///
/// Who waits for work that no thread has begun does it: so nothing is lost where the threads are
/// busy for good, and a caller that is a thread of the same pool cannot wait for itself.
pub(crate) struct Task<'t, T>(Arc<Slot<'t, T>>);

struct Slot<'t, T> {
    state: Mutex<State<'t, T>>,
    done: Condvar,
}

enum State<'t, T> {
    Waiting(Box<dyn FnOnce() -> T + Send + 't>),
    Running,
    Done(T),
    /// Nobody asks any more, or there was a panic.
    Gone,
}

impl<T> Slot<'_, T> {
    /// Does the work, unless somebody has begun to.
    fn run(&self) {
        let work = {
            let mut state = lock(&self.state);
            match std::mem::replace(&mut *state, State::Running) {
                State::Waiting(work) => work,
                other => {
                    *state = other;
                    return;
                }
            }
        };
        // Whoever waits is told, however it ends.
        let ends = Ends(self);
        let result = work();
        *lock(&self.state) = State::Done(result);
        drop(ends);
    }
}

/// Work that is being done, and has a result or has panicked when this goes.
struct Ends<'s, 't, T>(&'s Slot<'t, T>);

impl<T> Drop for Ends<'_, '_, T> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        if matches!(*state, State::Running) {
            *state = State::Gone;
        }
        drop(state);
        self.0.done.notify_all();
    }
}

impl<'t, T> Task<'t, T> {
    fn new(work: impl FnOnce() -> T + Send + 't) -> Self {
        Task(Arc::new(Slot {
            state: Mutex::new(State::Waiting(Box::new(work))),
            done: Condvar::new(),
        }))
    }

    /// Whether the result is there.
    pub(crate) fn is_done(&self) -> bool {
        matches!(*lock(&self.0.state), State::Done(_))
    }

    /// The result, as soon as there is one. `None` where the work has panicked in another thread.
    pub(crate) fn wait(self) -> Option<T> {
        self.0.run();
        let mut state = lock(&self.0.state);
        loop {
            match std::mem::replace(&mut *state, State::Gone) {
                State::Done(result) => return Some(result),
                State::Running => {
                    *state = State::Running;
                    state = wait(&self.0.done, state);
                }
                State::Waiting(_) | State::Gone => return None,
            }
        }
    }
}

impl<T> Drop for Task<'_, T> {
    /// Work that nobody waits for is not begun.
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        if matches!(*state, State::Waiting(_)) {
            *state = State::Gone;
        }
    }
}

/// The value within; nothing here leaves one half changed, so a panic elsewhere does not matter.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until `changed` is notified.
pub(crate) fn wait<'m, T>(changed: &Condvar, guard: MutexGuard<'m, T>) -> MutexGuard<'m, T> {
    changed.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

#[cfg(all(test, feature = "rayon"))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    /// Who waits for work that panics in another thread waits no longer than that.
    #[test]
    fn a_panic_keeps_nobody_waiting() {
        let workers = Workers::new(Some(2)).unwrap();
        let mut waited = None;
        let ended = catch_unwind(AssertUnwindSafe(|| {
            workers.scope(1, |scope| {
                let (begins, has_begun) = channel();
                let task = scope.start(move || {
                    let _ = begins.send(());
                    std::panic::panic_any("as a bug would");
                });
                let _ = has_begun.recv();
                waited = Some(task.wait());
            });
        }));
        assert_eq!(waited, Some(None::<()>));
        assert!(ended.is_err(), "the panic goes on where the work was begun");
    }
}
