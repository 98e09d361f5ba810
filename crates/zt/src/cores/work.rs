//! Tasks for other threads, and the wait for their results.
//!
//! The wait never depends on a free thread: if none has begun the task, the caller does it.

use std::cell::Cell;
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
    /// Threads of their own if `threads` is given, otherwise all threads of rayon. If there is only
    /// one, it is the caller's.
    pub(crate) fn new(threads: Option<usize>) -> Result<Self> {
        #[cfg(feature = "rayon")]
        {
            let build = |threads| crate::cores::parallel::bounded(threads).build();
            let own = threads.filter(|threads| *threads > 1);
            let pool = own.map(build).transpose();
            let pool = pool.map_err(|_| crate::error::Fault::ThreadPool)?;
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

    /// As [`Workers::new`], for work in a [`Scope`] alone: no pool is made.
    pub(crate) fn apart(threads: Option<usize>) -> Self {
        Workers {
            #[cfg(feature = "rayon")]
            pool: None,
            threads: threads.unwrap_or_else(crate::cores::parallel::threads),
        }
    }

    /// The number of threads. With one, work is done when its result is awaited.
    pub(crate) const fn threads(&self) -> usize {
        self.threads
    }

    /// Lets a free thread do `work` at some time. The work must not wait for other work.
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

    /// Does `work`, which may use all threads, and waits for it.
    pub(crate) fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        #[cfg(feature = "rayon")]
        if let Some(pool) = &self.pool {
            return pool.install(work);
        }
        work()
    }

    /// Starts work whose result is awaited later.
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

    /// Calls `begin`, which may start work on borrowed data, and waits until all of that work has
    /// ended. At most `most` threads do it, beside the caller's.
    ///
    /// These are new threads. The threads of a pool may all be waiting for this caller, and then
    /// the work on borrowed data would never end.
    pub(crate) fn scope<'t, R>(&self, most: usize, begin: impl FnOnce(&Scope<'_, 't>) -> R) -> R {
        if self.threads <= 1 {
            return begin(&Scope(None));
        }
        let (send, receive) = channel::<Job<'t>>();
        let receive = Mutex::new(receive);
        let next = || lock(&receive).recv();
        let work = || {
            while let Ok(job) = next() {
                job();
            }
        };
        thread::scope(|threads| {
            // Without a thread, the caller does the work when it waits for the result.
            let spawn = || drop(thread::Builder::new().spawn_scoped(threads, work));
            // The sender is dropped here, so that the threads end.
            begin(&Scope(Some(Crew {
                jobs: send,
                spawn: &spawn,
                unborn: Cell::new(self.threads.strict_sub(1).min(most)),
            })))
        })
    }
}

type Job<'t> = Box<dyn FnOnce() + Send + 't>;

/// A scope for work that ends before the data that it borrows is dropped.
pub(crate) struct Scope<'s, 't>(Option<Crew<'s, 't>>);

/// The threads of a scope. Each begins with a job, because many scopes have none.
struct Crew<'s, 't> {
    jobs: Sender<Job<'t>>,
    spawn: &'s dyn Fn(),
    unborn: Cell<usize>,
}

impl<'t> Scope<'_, 't> {
    /// As [`Workers::start`].
    pub(crate) fn start<T: Send + 't>(&self, work: impl FnOnce() -> T + Send + 't) -> Task<'t, T> {
        let task = Task::new(work);
        if let Some(crew) = &self.0 {
            let slot = Arc::clone(&task.0);
            let _ = crew.jobs.send(Box::new(move || slot.run()));
            if let Some(left) = crew.unborn.get().checked_sub(1) {
                crew.unborn.set(left);
                (crew.spawn)();
            }
        }
        task
    }
}

/// The result of work that was started.
///
/// If no thread has begun the work, the thread that waits for it does the work. So busy threads cannot
/// delay it forever, and a caller on a thread of the same pool cannot wait for itself.
pub(crate) struct Task<'t, T>(Arc<Slot<'t, T>>);

struct Slot<'t, T> {
    state: Mutex<State<'t, T>>,
    done: Condvar,
}

enum State<'t, T> {
    Waiting(Box<dyn FnOnce() -> T + Send + 't>),
    Running,
    Done(T),
    /// The result is not wanted any more, or the work panicked.
    Gone,
}

impl<T> Slot<'_, T> {
    /// Does the work unless another thread has begun it.
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
        // The waiting thread is woken even after a panic.
        let ends = Ends(self);
        let result = work();
        *lock(&self.state) = State::Done(result);
        drop(ends);
    }
}

/// Work in progress. When this is dropped, the work has a result or has panicked.
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

    pub(crate) fn is_done(&self) -> bool {
        matches!(*lock(&self.0.state), State::Done(_))
    }

    /// Does the work, unless another thread has begun it.
    pub(crate) fn help(&self) {
        self.0.run();
    }

    /// Waits for the result. `None` if the work panicked in another thread.
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
    /// Work whose result is not wanted is not begun.
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        if matches!(*state, State::Waiting(_)) {
            *state = State::Gone;
        }
    }
}

/// Locks the value. A panic elsewhere does not matter, because no critical section leaves it half
/// changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn wait<'m, T>(changed: &Condvar, guard: MutexGuard<'m, T>) -> MutexGuard<'m, T> {
    changed.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

#[cfg(all(test, feature = "rayon"))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    /// A panic in another thread ends the wait for its work.
    #[test]
    fn a_panic_ends_the_wait() {
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
