//! The threads that wait for the network.
//!
//! The runtime belongs to this crate, so blocking calls work on any thread, also on one of another
//! runtime. It starts at the first request, and lives as long as the process.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::process;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::task::AbortHandle;
use zt::Result;

use crate::error::Fault;

/// Threads of the runtime. They move bytes and compute nothing.
const THREADS: usize = 2;

/// The runtime and the process that started it.
static RUNTIME: Mutex<Option<(u32, Arc<Runtime>)>> = Mutex::new(None);

/// The runtime of this process. The threads of a parent do not exist in a forked child, which starts its
/// own.
fn runtime() -> io::Result<Arc<Runtime>> {
    let mut kept = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    let here = process::id();
    match kept.take() {
        Some((owner, runtime)) if owner == here => {
            *kept = Some((owner, Arc::clone(&runtime)));
            return Ok(runtime);
        }
        // Dropping it would wait for threads that do not exist.
        Some(inherited) => std::mem::forget(inherited),
        None => {}
    }
    let runtime = Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name("zt-remote")
        .enable_all()
        .build()?;
    let runtime = Arc::new(runtime);
    *kept = Some((here, Arc::clone(&runtime)));
    Ok(runtime)
}

/// The time between two calls of `interrupt` while a call waits.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);

/// Runs `future` in the background.
///
/// # Errors
///
/// The threads could not be started.
pub(crate) fn spawn(future: impl Future<Output = ()> + Send + 'static) -> io::Result<AbortHandle> {
    Ok(runtime()?.spawn(future).abort_handle())
}

/// Runs `work`, which may block, on a thread of its own.
///
/// # Errors
///
/// The threads could not be started, or `work` panicked.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let done = runtime()?.spawn_blocking(work).await;
    done.map_err(|_| io::Error::other("a call ended without a result"))
}

/// Runs `future` and waits for its result, or until `interrupt` returns `true`.
///
/// # Errors
///
/// The threads could not be started, or the future panicked; [`zt::ErrorKind::Interrupted`].
pub(crate) fn wait<T: Send + 'static>(
    interrupt: Option<fn() -> bool>,
    future: impl Future<Output = T> + Send + 'static,
) -> Result<T> {
    let (task, answer) = begin(future)?;
    receive(&answer, interrupt).inspect_err(|_| task.abort())
}

/// Runs `future` in the background, and sends its result.
pub(crate) fn begin<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> io::Result<(AbortHandle, Receiver<T>)> {
    let (send, answer) = sync_channel(1);
    let task = spawn(async move {
        // Sending fails if the caller has stopped waiting.
        let _ = send.send(future.await);
    })?;
    Ok((task, answer))
}

/// As [`wait`], for the result that a task sends.
pub(crate) fn receive<T>(answer: &Receiver<T>, interrupt: Option<fn() -> bool>) -> Result<T> {
    loop {
        match answer.recv_timeout(PAUSE) {
            Ok(result) => return Ok(result),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(io::Error::other("a transfer ended without a result").into());
            }
            Err(RecvTimeoutError::Timeout) if interrupt.is_some_and(|is_due| is_due()) => {
                return Err(Fault::Interrupted.into());
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// The result of `future`, which changes a store: what it has changed is known only by its answer. So a signal
/// does not end it at once, but after this time. `None` then.
pub(crate) async fn patient<F: Future>(
    interrupt: Option<fn() -> bool>,
    patience: Duration,
    future: F,
) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut since: Option<Instant> = None;
    loop {
        if let Ok(done) = tokio::time::timeout(PAUSE, future.as_mut()).await {
            return Some(done);
        }
        if since.is_none() && interrupt.is_some_and(|is_due| is_due()) {
            since = Some(Instant::now());
        }
        if since.is_some_and(|since| since.elapsed() >= patience) {
            return None;
        }
    }
}

/// As [`wait`], for at most this time, and without stopping at a signal. `None` if there is no result by
/// then.
pub(crate) fn wait_for<T: Send + 'static>(
    time: Duration,
    future: impl Future<Output = T> + Send + 'static,
) -> Option<T> {
    let (task, answer) = begin(future).ok()?;
    let received = answer.recv_timeout(time);
    received.inspect_err(|_| task.abort()).ok()
}
