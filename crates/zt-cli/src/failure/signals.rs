//! Ctrl-C, SIGTERM and SIGHUP: the request to stop.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Once};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_shutdown, register_usize};

use crate::failure::Exit;

/// The exit code of the signal that was caught; 0 for none.
static CAUGHT: LazyLock<Arc<AtomicUsize>> = LazyLock::new(Arc::default);

/// Installs the handlers, once. After that, a signal asks the work to stop and to remove its
/// temporary files; the second signal ends the process at once. Before it, the first signal ends the
/// process.
pub(crate) fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let has_caught = Arc::new(AtomicBool::new(false));
        for (signal, exit) in signals() {
            let has_caught = || Arc::clone(&has_caught);
            let exit = exit as u8;
            // In this order, the second signal ends the process. If no handler can be set, the
            // default stays: the first signal ends it.
            let ends = register_conditional_shutdown(signal, exit.into(), has_caught());
            let _ = ends
                .and_then(|_| register_usize(signal, Arc::clone(&CAUGHT), exit.into()))
                .and_then(|_| register(signal, has_caught()));
        }
        // Without a handler, this signal would end the process at the limit on file sizes. With one,
        // writing fails as on a full disk, and the temporary file is removed.
        #[cfg(unix)]
        let _ = register(signal_hook::consts::SIGXFSZ, Arc::default());
    });
}

/// The exit code that the caught signal asks for.
pub(crate) fn caught() -> Option<Exit> {
    let caught = CAUGHT.load(Ordering::Relaxed);
    let all = [Exit::HungUp, Exit::Interrupted, Exit::Terminated];
    all.into_iter().find(|exit| *exit as usize == caught)
}

/// The signals that end a program, with their exit codes: 128 and the number of the signal.
fn signals() -> Vec<(i32, Exit)> {
    let asked = [(SIGINT, Exit::Interrupted), (SIGTERM, Exit::Terminated)];
    asked.into_iter().chain(hang_up()).collect()
}

#[cfg(unix)]
fn hang_up() -> Option<(i32, Exit)> {
    use std::io::{IsTerminal, stderr};
    let signal = signal_hook::consts::SIGHUP;
    // `nohup` has the signal ignored, and a handler would undo that. It leaves no terminal on stderr.
    let is_ignored = is_ignored(signal).unwrap_or_else(|| !stderr().is_terminal());
    (!is_ignored).then_some((signal, Exit::HungUp))
}

#[cfg(not(unix))]
fn hang_up() -> Option<(i32, Exit)> {
    None
}

/// Whether the parent had the signal ignored; `None` if the system does not tell.
#[cfg(unix)]
fn is_ignored(signal: i32) -> Option<bool> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    let mask = u64::from_str_radix(mask.trim(), 16).ok()?;
    Some(mask >> (signal - 1) & 1 == 1)
}
