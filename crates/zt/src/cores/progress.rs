//! How long work tells how far it is, and is told to stop.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Fault, Result};

/// Called with the number of bytes done since the last call, from any thread. [`ControlFlow::Break`]
/// ends the work with an error of the kind [`crate::ErrorKind::Interrupted`]; nothing is published.
pub type Progress<'p> = &'p (dyn Fn(u64) -> ControlFlow<()> + Sync);

/// Reports `bytes` where somebody listens.
pub(crate) fn report(progress: Option<Progress<'_>>, bytes: u64) -> Result<()> {
    match progress.map(|progress| progress(bytes)) {
        Some(ControlFlow::Break(())) => Err(Fault::Interrupted.into()),
        _ => Ok(()),
    }
}

/// The progress of several threads: once one of them was told to stop, all do.
pub(crate) struct Gauge<'p> {
    progress: Option<Progress<'p>>,
    stopped: AtomicBool,
}

impl<'p> Gauge<'p> {
    pub(crate) const fn new(progress: Option<Progress<'p>>) -> Self {
        Gauge {
            progress,
            stopped: AtomicBool::new(false),
        }
    }

    /// Reports `bytes` more, and tells whether to go on.
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
    fn nobody_is_asked_again_once_work_was_told_to_stop() {
        let calls = AtomicU64::new(0);
        let third = |_| match calls.fetch_add(1, Ordering::Relaxed) {
            2 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        };
        let gauge = Gauge::new(Some(&third));
        let goes_on: Vec<bool> = (0..6).map(|bytes| gauge.report(bytes).is_ok()).collect();
        assert_eq!(goes_on, [true, true, false, false, false, false]);
        assert_eq!(calls.into_inner(), 3);
    }
}
