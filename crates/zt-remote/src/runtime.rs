//! The threads that wait for the network.
//!
//! The runtime belongs to this crate, so blocking calls work on any thread, also on one of another
//! runtime. It starts at the first request, and lives as long as the process.

use std::future::Future;
use std::io;
use std::process;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::runtime::{Builder, Runtime};

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

/// Runs `future` in the background.
///
/// # Errors
///
/// The threads could not be started.
pub(crate) fn spawn(future: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
    runtime()?.spawn(future);
    Ok(())
}

/// Runs `future` and waits for its result.
///
/// # Errors
///
/// The threads could not be started, or the future panicked.
pub(crate) fn wait<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> io::Result<T> {
    let (send, receive) = sync_channel(1);
    spawn(async move {
        // Nobody receives if the caller is gone.
        let _ = send.send(future.await);
    })?;
    receive
        .recv()
        .map_err(|_| io::Error::other("a transfer ended without a result"))
}
