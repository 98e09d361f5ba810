//! The files that a command reads and writes: paths, folders, stdin and stdout, URLs.
//!
//! It must not know: the arguments of a command.

pub(crate) mod folder;
pub(crate) mod kinds;
pub(crate) mod limit;
pub(crate) mod name;
pub(crate) mod npy;
pub(crate) mod path;
pub(crate) mod remote;
pub(crate) mod seals;
pub(crate) mod stdin;
pub(crate) mod stdout;
pub(crate) mod sums;
