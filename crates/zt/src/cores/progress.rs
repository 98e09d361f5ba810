//! Progress functions, which can also stop the work.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Fault, Result};

/// A function that is called with the number of bytes done since its last call, from any thread.
///
/// If it returns [`ControlFlow::Break`], the work ends with an error of the kind
/// [`crate::ErrorKind::Interrupted`], and nothing is published.
#[derive(Clone, Copy)]
pub struct Progress<'p>(&'p (dyn Fn(u64) -> ControlFlow<()> + Sync));

impl<'p> Progress<'p> {
    /// Progress that is reported to `function`.
    pub const fn new(function: &'p (dyn Fn(u64) -> ControlFlow<()> + Sync)) -> Self {
        Progress(function)
    }

    /// Reports that `bytes` more are done.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::Interrupted`] if the function asks to stop.
    pub fn report(self, bytes: u64) -> Result<()> {
        match self.0(bytes) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Fault::Interrupted.into()),
        }
    }
}

impl std::fmt::Debug for Progress<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Progress")
    }
}

/// The setters that the options of all work on a file have.
macro_rules! work_options {
    ($options:ident, $reports:literal) => {
        impl<'p> $options<'p> {
            /// The number of threads. The default is all cores.
            pub fn threads(mut self, threads: impl Into<Option<usize>>) -> Self {
                self.threads = threads.into();
                self
            }

            #[doc = $reports]
            pub const fn progress(mut self, progress: Progress<'p>) -> Self {
                self.progress = Some(progress);
                self
            }
        }
    };
}
pub(crate) use work_options;

/// Reports `bytes` if there is a progress function.
pub(crate) fn report(progress: Option<Progress<'_>>, bytes: u64) -> Result<()> {
    progress.map_or(Ok(()), |progress| progress.report(bytes))
}

/// The progress of several threads: once one of them is told to stop, all stop.
pub(crate) struct Gauge<'p> {
    progress: Option<Progress<'p>>,
    stopped: AtomicBool,
}

impl<'p> Gauge<'p> {
    pub(crate) const fn new(progress: Option<Progress<'p>>) -> Self {
        Gauge { progress, stopped: AtomicBool::new(false) }
    }

    /// Reports `bytes` more, and returns whether to go on.
    pub(crate) fn report(&self, bytes: u64) -> Result<()> {
        if self.stopped.load(Ordering::Relaxed) {
            return Err(Fault::Interrupted.into());
        }
        report(self.progress, bytes).inspect_err(|_| self.stopped.store(true, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn progress_is_not_reported_after_a_stop() {
        let calls = AtomicU64::new(0);
        let third = |_| match calls.fetch_add(1, Ordering::Relaxed) {
            2 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        };
        let gauge = Gauge::new(Some(Progress::new(&third)));
        let goes_on: Vec<bool> = (0..6).map(|bytes| gauge.report(bytes).is_ok()).collect();
        assert_eq!(goes_on, [true, true, false, false, false, false]);
        assert_eq!(calls.into_inner(), 3);
    }
}
