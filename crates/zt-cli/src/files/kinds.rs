//! The kinds of files and the object formats of this process.

use std::sync::OnceLock;

use zt_convert::Kinds;

static KINDS: OnceLock<Kinds> = OnceLock::new();

/// Sets the table, before any command runs.
pub(crate) fn set(kinds: Kinds) {
    // A second call in one process is refused by the docs of `main_with`.
    let _ = KINDS.set(kinds);
}

/// The table of [`set`], or the kinds of this build.
pub(crate) fn table() -> &'static Kinds {
    KINDS.get_or_init(Kinds::builtin)
}
