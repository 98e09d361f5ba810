//! How far long work is, and Ctrl-C and SIGTERM.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Once};

use indicatif::{ProgressBar, ProgressStyle};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_shutdown};
use zt::{Error, ErrorKind};

use crate::failure::Exit;

static INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// A bar on stderr, where that is a terminal, and the reason to stop.
///
/// From the first bar on, Ctrl-C asks the work to stop, so that it removes what it has begun to
/// write; a second one ends the process at once. SIGTERM does as Ctrl-C does. Commands without a bar
/// leave nothing behind and are ended by the first, as by default.
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar that is full after `total` bytes, where that is known.
    pub(crate) fn new(total: Option<u64>) -> Self {
        listen();
        let bar = match total {
            // Too little to watch.
            Some(total) if total < 1 << 22 => ProgressBar::hidden(),
            Some(total) => ProgressBar::new(total).with_style(style(
                "{bar:30} {percent:>3}% {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {eta}",
            )),
            None => ProgressBar::no_length()
                .with_style(style("{spinner} {binary_bytes} {binary_bytes_per_sec}")),
        };
        Progress { bar }
    }

    /// So many bytes more are done.
    pub(crate) fn report(&self, bytes: u64) -> ControlFlow<()> {
        self.bar.inc(bytes);
        if INTERRUPTED.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    /// As [`Progress::report`], for work that stops by returning.
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
                "stopped on request",
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

fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for signal in [SIGINT, SIGTERM] {
            // In this order, so that what ends the process is the second signal. Where no handler
            // can be set, signals do as by default.
            let interrupted = || Arc::clone(&INTERRUPTED);
            let ends =
                register_conditional_shutdown(signal, Exit::Interrupted as i32, interrupted());
            let _ = ends.and_then(|_| register(signal, interrupted()));
        }
        // Beyond the limit on the length of a file, writing fails as on a full disk, and cleans up.
        #[cfg(unix)]
        let _ = register(signal_hook::consts::SIGXFSZ, Arc::default());
    });
}
