//! Counting requests and bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Requests and bytes.
///
/// A request that is tried again, or redirected, counts once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Traffic {
    /// Requests that were sent.
    pub requests: u64,
    /// Bytes of the bodies that were received.
    pub bytes: u64,
    /// Bytes of the bodies that were sent.
    pub sent: u64,
}

/// Counts the traffic of any number of files. A clone shares the counts.
#[derive(Debug, Clone, Default)]
pub struct Meter(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    requests: AtomicU64,
    bytes: AtomicU64,
    sent: AtomicU64,
}

impl Meter {
    /// The traffic so far.
    pub fn traffic(&self) -> Traffic {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Traffic {
            requests: read(&self.0.requests),
            bytes: read(&self.0.bytes),
            sent: read(&self.0.sent),
        }
    }

    pub(crate) fn begin(&self) {
        self.0.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn receive(&self, bytes: u64) {
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn send(&self, bytes: u64) {
        self.0.sent.fetch_add(bytes, Ordering::Relaxed);
    }
}
