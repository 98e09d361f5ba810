//! Work of the engine, with the interpreter detached: progress, and Ctrl-C.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use pyo3::prelude::*;
use rayon::ThreadPool;
use zt::Progress;

use crate::error::{OrRaise, Result};
use crate::pool::pool;
use crate::remote::IS_STOPPED;

/// Between two looks for signals, while work runs.
const BEAT: Duration = Duration::from_millis(40);

/// Does short work, or work that cannot be stopped, on the shared threads.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> zt::Result<T> + Send,
) -> Result<T> {
    let pool = pool(None)?;
    py.detach(|| pool.install(work)).or_raise()
}

/// How long work is watched.
#[derive(Default)]
pub(crate) struct Watch<'py> {
    /// The number of threads; `None` for the shared ones.
    pub(crate) threads: Option<usize>,
    /// Threads that are there already, instead.
    pub(crate) pool: Option<Arc<ThreadPool>>,
    /// Python's function of the number of bytes since its last call.
    pub(crate) progress: Option<Bound<'py, PyAny>>,
    /// Set when the work has to stop, for work that looks at it somewhere else than in its progress.
    pub(crate) stop: Arc<AtomicBool>,
}

impl<'py> Watch<'py> {
    /// Work on the shared threads that reports to `progress`.
    pub(crate) fn new(progress: Option<Bound<'py, PyAny>>) -> Self {
        Watch {
            progress,
            ..Watch::default()
        }
    }

    pub(crate) fn threads(mut self, threads: Option<usize>) -> Self {
        self.threads = threads;
        self
    }

    pub(crate) fn on(mut self, pool: &Arc<ThreadPool>) -> Self {
        self.pool = Some(Arc::clone(pool));
        self
    }

    pub(crate) fn stop(mut self, stop: Arc<AtomicBool>) -> Self {
        self.stop = stop;
        self
    }

    /// Does `work` on threads of a pool, while this thread looks for signals and calls the progress
    /// function, both every 40 ms. So the function is called on the thread of the caller alone.
    ///
    /// # Errors
    ///
    /// What the progress function or a signal's handler raises, once the work has stopped; the error of
    /// the work.
    pub(crate) fn run<T: Send>(
        self,
        py: Python<'py>,
        work: impl FnOnce(Progress<'_>) -> zt::Result<T> + Send,
    ) -> Result<T> {
        let pool = match self.pool {
            Some(pool) => pool,
            None => pool(self.threads)?,
        };
        let (bytes, stop) = (AtomicU64::new(0), self.stop);
        stop.store(false, Ordering::Relaxed);
        let report = |more| {
            bytes.fetch_add(more, Ordering::Relaxed);
            match stop.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        let progress = self.progress.map(Bound::unbind);
        let tell = |py: Python<'_>| {
            let bytes = bytes.swap(0, Ordering::Relaxed);
            match &progress {
                Some(progress) if bytes > 0 => progress.call1(py, (bytes,)).map(drop),
                _ => Ok(()),
            }
        };
        let mut raised = None;
        let mut result = None;
        py.detach(|| {
            let (done, is_done) = mpsc::channel::<()>();
            pool.in_place_scope(|scope| {
                let result = &mut result;
                let report = &report;
                scope.spawn(move |_| {
                    *result = Some(work(Progress::new(report)));
                    drop(done);
                });
                while is_done.recv_timeout(BEAT) == Err(mpsc::RecvTimeoutError::Timeout) {
                    if raised.is_some() {
                        continue;
                    }
                    let look = |py: Python<'_>| {
                        py.check_signals()
                            .inspect_err(|_| IS_STOPPED.store(true, Ordering::Relaxed))
                            .and_then(|()| tell(py))
                    };
                    if let Err(error) = Python::attach(look) {
                        raised = Some(error);
                        stop.store(true, Ordering::Relaxed);
                    }
                }
            });
        });
        if let Some(error) = raised {
            IS_STOPPED.store(false, Ordering::Relaxed);
            return Err(error);
        }
        let result = result.unwrap_or_else(|| Err(std::io::Error::other("no result").into()));
        let value = result.or_raise()?;
        tell(py)?;
        Ok(value)
    }
}
