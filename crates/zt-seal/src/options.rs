//! Threads and progress of all work on a seal.

use zt::{Progress, Result};

/// How files are sealed, compared and repaired.
#[must_use]
#[derive(Debug, Clone, Copy, Default)]
pub struct SealOptions<'p> {
    pub(crate) threads: Option<usize>,
    pub(crate) progress: Option<Progress<'p>>,
}

impl<'p> SealOptions<'p> {
    /// The defaults: all cores.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of threads. The default is all cores.
    pub fn threads(mut self, threads: impl Into<Option<usize>>) -> Self {
        self.threads = threads.into();
        self
    }

    /// Reports bytes of the files.
    pub const fn progress(mut self, progress: Progress<'p>) -> Self {
        self.progress = Some(progress);
        self
    }

    pub(crate) fn report(&self, bytes: u64) -> Result<()> {
        self.progress.map_or(Ok(()), |progress| progress.report(bytes))
    }
}
