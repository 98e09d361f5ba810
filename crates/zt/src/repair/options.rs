//! How a file is repaired.

use zt_container::Limits;

use crate::cores::progress::Progress;

/// How a file is looked at to be repaired.
#[derive(Clone, Copy, Default)]
pub struct RepairOptions<'p> {
    /// What the file may make this process spend.
    pub limits: Limits,
    /// Threads; all cores where `None`.
    pub threads: Option<usize>,
    /// Told of bytes that are searched, read and written: more than the file has.
    pub progress: Option<Progress<'p>>,
    /// Where the manifest begins that is to be the file's, instead of the last one that is found:
    /// [`crate::repair::Generation::manifest`] of one of [`crate::repair::Recovery::others`]. In place only where it
    /// [is mendable](crate::repair::Generation::is_mendable).
    pub manifest: Option<u64>,
}

impl std::fmt::Debug for RepairOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("RepairOptions");
        debug
            .field("limits", &self.limits)
            .field("threads", &self.threads)
            .field("manifest", &self.manifest)
            .finish_non_exhaustive()
    }
}
