//! Progress bars, and work that stops at a signal.

use std::io::IsTerminal;
use std::ops::ControlFlow;

use indicatif::{ProgressBar, ProgressStyle};
use terminal_size::{Width, terminal_size_of};
use zt::{Error, ErrorKind};

use crate::failure::signals;

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
            Some(total) => ProgressBar::new(total).with_style(style(template(width()))),
            None => return Self::of_reading(),
        };
        Progress { bar }
    }

    /// As [`Progress::new`], with a total that is counted if it is shown.
    pub(crate) fn of(total: impl FnOnce() -> Option<u64>) -> Self {
        let is_shown = std::io::stderr().is_terminal();
        Self::new(if is_shown { total() } else { Some(0) })
    }

    /// As without a total, for a read that may wait and leaves nothing behind: no handlers are
    /// installed, so that the first signal ends it.
    pub(crate) fn of_reading() -> Self {
        let bar = ProgressBar::no_length()
            .with_style(style("{spinner} {binary_bytes} {binary_bytes_per_sec}"));
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
    pub(crate) fn advance(&self, bytes: u64) -> zt::Result<()> {
        if self.report(bytes).is_continue() {
            return Ok(());
        }
        let (kind, message) = (ErrorKind::Interrupted, "interrupted by a signal");
        Err(Error::new(kind, "interrupted", message))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The columns of the terminal.
fn width() -> u16 {
    terminal_size_of(std::io::stderr()).map_or(80, |(Width(columns), _)| columns)
}

/// A bar that fits these columns: a longer one would take a new line each time it is drawn.
const fn template(columns: u16) -> &'static str {
    match columns {
        0..10 => "{percent:>3}%",
        // The time that is left may be `584942417355y`.
        10..20 => "{wide_bar} {percent:>3}%",
        20..60 => "{wide_bar} {percent:>3}% {eta}",
        _ => {
            "{wide_bar} {percent:>3}% {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {eta}"
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use indicatif::{ProgressDrawTarget, TermLike};

    use super::*;

    /// A terminal that remembers the longest line.
    #[derive(Debug, Clone)]
    struct Terminal {
        columns: u16,
        longest: Arc<Mutex<usize>>,
    }

    impl TermLike for Terminal {
        fn width(&self) -> u16 {
            self.columns
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, line: &str) -> io::Result<()> {
            self.write_str(line)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            let mut longest = self.longest.lock().unwrap();
            *longest = text.chars().count().max(*longest);
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_bar_fits_its_terminal() {
        for columns in [4, 9, 10, 19, 20, 40, 59, 60, 80, 200] {
            let longest = Arc::default();
            let terminal = Terminal { columns, longest: Arc::clone(&longest) };
            let bar = ProgressBar::new(u64::MAX).with_style(style(template(columns)));
            bar.set_draw_target(ProgressDrawTarget::term_like(Box::new(terminal)));
            for part in [0, 1, 1 << 20, u64::MAX - (1 << 40), u64::MAX] {
                bar.set_position(part);
                // The estimate of the time is made from the position, and drawn.
                bar.tick();
                bar.force_draw();
            }
            let longest = *longest.lock().unwrap();
            assert!((4..=columns.into()).contains(&longest), "{columns}: {longest}");
        }
    }
}
