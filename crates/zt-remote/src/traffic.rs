//! How much was asked of a store.

use std::sync::atomic::{AtomicU64, Ordering};

/// Requests and bytes since a file was opened.
///
/// A request that is tried again, or redirected, counts once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Requests that were sent.
    pub requests: u64,
    /// Bytes of the bodies that came back.
    pub bytes: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Meter {
    requests: AtomicU64,
    bytes: AtomicU64,
}

impl Meter {
    pub(crate) fn begin(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn receive(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Traffic {
        Traffic {
            requests: self.requests.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }
}
