//! Work of the engine, with the interpreter detached: progress, and Ctrl-C.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use pyo3::prelude::*;
use rayon::ThreadPool;
use zt::Progress;

use crate::share::error::{OrRaise, Result};
use crate::share::pool::pool;

/// Whether the handler of a signal has raised. Transfers then end at once.
pub(crate) static IS_STOPPED: AtomicBool = AtomicBool::new(false);

/// The time between two checks for signals, while work runs.
const BEAT: Duration = Duration::from_millis(40);

/// Does short work, or work that cannot be stopped, on the shared threads.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> zt::Result<T> + Send,
) -> Result<T> {
    let pool = pool(None)?;
    py.detach(|| pool.install(work)).or_raise()
}

/// The state that a watcher shares with the file that is written.
#[derive(Default)]
pub(crate) struct Line {
    /// Whether the work has to stop.
    stop: AtomicBool,
    /// Bytes since the last call of the progress function.
    bytes: AtomicU64,
    /// Bytes of the current value that are not counted yet.
    left: AtomicU64,
}

impl Line {
    /// Whether the work has to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Counts bytes. `Break` if the work has to stop.
    fn report(&self, more: u64) -> ControlFlow<()> {
        self.bytes.fetch_add(more, Ordering::Relaxed);
        if self.is_stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Calls Python's function with the number of bytes since its last call.
    fn tell(&self, py: Python<'_>, progress: Option<&Py<PyAny>>) -> Result<()> {
        let bytes = self.bytes.swap(0, Ordering::Relaxed);
        match progress {
            Some(progress) if bytes > 0 => progress.call1(py, (bytes,)).map(drop),
            _ => Ok(()),
        }
    }

    /// Begins a value of `byte_len` bytes.
    pub(crate) fn begin(&self, byte_len: u64) {
        self.left.store(byte_len, Ordering::Relaxed);
    }

    /// Counts written bytes as bytes of the value. Compression makes them fewer, and padding makes them
    /// more: [`Line::end`] returns the rest.
    pub(crate) fn written(&self, byte_len: u64) {
        let left = self.left.load(Ordering::Relaxed);
        let counted = left.min(byte_len);
        // One thread writes.
        self.left.store(left - counted, Ordering::Relaxed);
        self.bytes.fetch_add(counted, Ordering::Relaxed);
    }

    /// Ends the value, and returns how many of its bytes were not counted.
    pub(crate) fn end(&self) -> u64 {
        self.left.swap(0, Ordering::Relaxed)
    }
}

/// A function of Python that is called with the number of bytes since its last call.
pub(crate) type PyProgress<'py> = Option<Bound<'py, PyAny>>;

/// Which threads do work, and how its progress is reported.
#[derive(Default)]
pub(crate) struct Watch<'py> {
    /// The number of threads; `None` for the shared ones.
    pub(crate) threads: Option<usize>,
    /// Existing threads, in place of `threads`.
    pub(crate) pool: Option<Arc<ThreadPool>>,
    /// The function that reports progress.
    pub(crate) progress: PyProgress<'py>,
    /// The state of the work, which the target of a writer may read too.
    pub(crate) line: Arc<Line>,
}

impl<'py> Watch<'py> {
    /// Work on the shared threads that reports to `progress`.
    pub(crate) fn new(progress: PyProgress<'py>) -> Self {
        Watch { progress, ..Watch::default() }
    }

    pub(crate) fn threads(mut self, threads: Option<usize>) -> Self {
        self.threads = threads;
        self
    }

    pub(crate) fn on(mut self, pool: &Arc<ThreadPool>) -> Self {
        self.pool = Some(Arc::clone(pool));
        self
    }

    pub(crate) fn line(mut self, line: &Arc<Line>) -> Self {
        self.line = Arc::clone(line);
        self
    }

    /// Does `work` on threads of a pool. Every 40 ms, this thread checks for signals and calls the
    /// progress function. So only the caller's thread calls that function.
    ///
    /// # Errors
    ///
    /// An exception of the progress function or of a signal's handler, once the work has stopped; the
    /// error of the work.
    pub(crate) fn run<T: Send>(
        self,
        py: Python<'py>,
        work: impl FnOnce(Progress<'_>) -> zt::Result<T> + Send,
    ) -> Result<T> {
        let (pool, line) = self.begin()?;
        let report = |more| line.report(more);
        let progress = self.progress.map(Bound::unbind);
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
                            .and_then(|()| line.tell(py, progress.as_ref()))
                    };
                    if let Err(error) = Python::attach(look) {
                        raised = Some(error);
                        line.stop.store(true, Ordering::Relaxed);
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
        line.tell(py, progress.as_ref())?;
        Ok(value)
    }

    /// As [`Watch::run`], for work that cannot stop at every point, such as decoding a dense value. An
    /// exception ends the wait at once. The work then runs on until it can stop, and its result is
    /// dropped.
    ///
    /// # Errors
    ///
    /// As [`Watch::run`].
    pub(crate) fn run_apart<T: Send + 'static>(
        self,
        py: Python<'py>,
        work: impl FnOnce(Progress<'_>) -> zt::Result<T> + Send + 'static,
    ) -> Result<T> {
        let (pool, line) = self.begin()?;
        let (done, is_done) = mpsc::channel();
        let reported = Arc::clone(&line);
        pool.spawn(move || {
            let report = |more| reported.report(more);
            // The receiver may have gone.
            drop(done.send(work(Progress::new(&report))));
        });
        let progress = self.progress.map(Bound::unbind);
        let look = |py: Python<'_>| {
            let looked = py.check_signals();
            let looked = looked.and_then(|()| line.tell(py, progress.as_ref()));
            looked.inspect_err(|_| line.stop.store(true, Ordering::Relaxed))
        };
        let look = &look;
        let result = py.detach(move || {
            loop {
                match is_done.recv_timeout(BEAT) {
                    Ok(result) => return Ok::<_, PyErr>(result),
                    Err(mpsc::RecvTimeoutError::Timeout) => {
                        Python::attach(look)?;
                    }
                    Err(mpsc::RecvTimeoutError::Disconnected) => {
                        return Ok(Err(std::io::Error::other("no result").into()));
                    }
                }
            }
        })?;
        let value = result.or_raise()?;
        line.tell(py, progress.as_ref())?;
        Ok(value)
    }

    /// The threads, and the line, reset.
    fn begin(&self) -> Result<(Arc<ThreadPool>, Arc<Line>)> {
        let pool = match &self.pool {
            Some(pool) => Arc::clone(pool),
            None => pool(self.threads)?,
        };
        self.line.stop.store(false, Ordering::Relaxed);
        Ok((pool, Arc::clone(&self.line)))
    }
}
