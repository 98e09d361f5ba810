//! Progress bars, and work that stops at a signal.

use std::ops::ControlFlow;

use indicatif::{ProgressBar, ProgressStyle};
use zt::{Error, ErrorKind};

use crate::signals;

/// A bar on stderr if that is a terminal, and the request to stop.
///
/// The first bar installs the handlers of signals. A command without a bar leaves no files behind, so
/// the first signal ends it.
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar that is full after `total` bytes, if the number is known.
    pub(crate) fn new(total: Option<u64>) -> Self {
        signals::listen();
        let bar = match total {
            // Too short to be seen.
            Some(total) if total < 1 << 22 => ProgressBar::hidden(),
            Some(total) => ProgressBar::new(total).with_style(style(
                "{bar:30} {percent:>3}% {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {eta}",
            )),
            None => ProgressBar::no_length()
                .with_style(style("{spinner} {binary_bytes} {binary_bytes_per_sec}")),
        };
        Progress { bar }
    }

    /// Adds `bytes` to the bar; breaks if the work shall stop.
    pub(crate) fn report(&self, bytes: u64) -> ControlFlow<()> {
        self.bar.inc(bytes);
        match signals::caught() {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        }
    }

    /// As [`Progress::report`], with an error in place of a break.
    ///
    /// # Errors
    ///
    /// Code `interrupted`.
    pub(crate) fn advance(&self, bytes: u64) -> zt::Result<()> {
        match self.report(bytes) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::new(
                ErrorKind::Interrupted,
                "interrupted",
                "interrupted by a signal",
            )),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
