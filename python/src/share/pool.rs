//! The threads of the engine. A forked child makes its own.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::{PyOSError, PyValueError};
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::share::error::Result;

/// A pool, with the process that its threads are in.
struct Shared {
    process: u32,
    threads: usize,
    pool: Arc<ThreadPool>,
}

static SHARED: Mutex<Option<Shared>> = Mutex::new(None);

/// Threads for one piece of work. With `None` it is a pool of [`default_threads`] threads, which all
/// such work shares.
///
/// # Errors
///
/// `ValueError` for 0 threads, or if `ZT_NUM_THREADS` is no number; `OSError` if the system starts no
/// threads.
pub(crate) fn pool(threads: Option<usize>) -> Result<Arc<ThreadPool>> {
    if let Some(threads) = threads {
        return build(threads).map(Arc::new);
    }
    let threads = default_threads()?;
    let process = std::process::id();
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = &*shared
        && known.process == process
        && known.threads == threads
    {
        return Ok(Arc::clone(&known.pool));
    }
    let pool = Arc::new(build(threads)?);
    let new = Shared { process, threads, pool: Arc::clone(&pool) };
    let old = shared.replace(new);
    if let Some(old) = old.filter(|old| old.process != process) {
        // Dropping the parent's pool would wait for its threads, and a fork does not copy threads.
        std::mem::forget(old);
    }
    Ok(pool)
}

/// `ZT_NUM_THREADS`, or the number of cores that this process may use. The standard library respects
/// the affinity of the process and the CFS quota of its control group.
pub(crate) fn default_threads() -> Result<usize> {
    match std::env::var("ZT_NUM_THREADS") {
        Ok(text) => match text.trim().parse() {
            Ok(threads) if threads > 0 => Ok(threads),
            _ => Err(PyValueError::new_err(format!(
                "ZT_NUM_THREADS is {text:?}: set it to a number from 1 on"
            ))),
        },
        Err(_) => Ok(std::thread::available_parallelism().map_or(1, usize::from)),
    }
}

fn build(threads: usize) -> Result<ThreadPool> {
    /// Starting many thousands takes minutes, and the system may refuse them.
    const MOST: usize = 1024;
    if threads == 0 {
        return Err(PyValueError::new_err("threads is 0: pass 1 or more"));
    }
    let builder = ThreadPoolBuilder::new().num_threads(threads.min(MOST));
    let builder = builder.thread_name(|at| format!("zt-{at}"));
    // By default a panic of work that is not joined would end the process.
    let builder = builder.panic_handler(|_| {});
    builder
        .build()
        .map_err(|error| PyOSError::new_err(format!("the threads could not be started: {error}")))
}
