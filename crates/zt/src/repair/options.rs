//! How a file is repaired.

use zt_container::Limits;

use crate::cores::progress::{Progress, work_options};

/// How a file is searched and repaired.
#[must_use]
#[derive(Debug, Clone, Copy, Default)]
pub struct RepairOptions<'p> {
    pub(super) limits: Limits,
    pub(super) manifest: Option<u64>,
    pub(super) threads: Option<usize>,
    pub(super) progress: Option<Progress<'p>>,
}

impl RepairOptions<'_> {
    /// The defaults: the last manifest that is found, every limit, all cores.
    pub fn new() -> Self {
        Self::default()
    }

    /// The limits of memory and of objects.
    pub const fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The offset of the manifest to use instead of the last one:
    /// [`manifest`](crate::repair::Generation::manifest) of one of
    /// [`Recovery::others`](crate::repair::Recovery::others). A file is mended in place only if that
    /// generation [is mendable](crate::repair::Generation::is_mendable).
    pub const fn manifest(mut self, manifest: u64) -> Self {
        self.manifest = Some(manifest);
        self
    }
}

work_options!(
    RepairOptions,
    "Reports bytes that are searched, read and written. Their sum is larger than the file."
);
