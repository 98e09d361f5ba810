//! The kinds of files and the object formats of this process: those of the build, and those of Python.

use std::sync::{LazyLock, PoisonError, RwLock};

use zt_convert::Kinds;

static KINDS: LazyLock<RwLock<Kinds>> = LazyLock::new(|| RwLock::new(Kinds::builtin()));

/// The table as it is now.
pub(crate) fn kinds() -> Kinds {
    KINDS.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Changes the table for all later calls. Files that are open keep the table that they have.
pub(crate) fn change(change: impl FnOnce(Kinds) -> Kinds) {
    let mut kinds = KINDS.write().unwrap_or_else(PoisonError::into_inner);
    *kinds = change(kinds.clone());
}
