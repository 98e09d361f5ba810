//! Progress bars, Ctrl-C and SIGTERM.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Once};

use indicatif::{ProgressBar, ProgressStyle};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_shutdown};
use zt::{Error, ErrorKind};

use crate::failure::Exit;

static INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// A bar on stderr if that is a terminal, and the request to stop.
///
/// The first bar installs the handlers. After that, Ctrl-C or SIGTERM asks the work to stop and to
/// remove its temporary files; the second signal ends the process at once. A command without a bar
/// leaves no files behind, so the first signal ends it.
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar that is full after `total` bytes, if the number is known.
    pub(crate) fn new(total: Option<u64>) -> Self {
        listen();
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
        if INTERRUPTED.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
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

fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for signal in [SIGINT, SIGTERM] {
            // In this order, the second signal ends the process. If no handler can be set, the
            // default stays: the first signal ends it.
            let interrupted = || Arc::clone(&INTERRUPTED);
            let ends =
                register_conditional_shutdown(signal, Exit::Interrupted as i32, interrupted());
            let _ = ends.and_then(|_| register(signal, interrupted()));
        }
        // Without a handler, this signal would end the process at the limit on file sizes. With one,
        // writing fails as on a full disk, and the temporary file is removed.
        #[cfg(unix)]
        let _ = register(signal_hook::consts::SIGXFSZ, Arc::default());
    });
}
