//! Why a command ends: exit codes, failures, signals.
//!
//! It must not know: arguments, files, and how a failure is printed.

mod exit;
mod reason;
pub(crate) mod signals;

pub(crate) use exit::Exit;
pub(crate) use reason::{Failure, of_findings};
