//! How long work tells how far it is, and is told to stop.

use std::ops::ControlFlow;

use crate::error::{Fault, Result};

/// Called with the number of bytes done since the last call, from any thread. [`ControlFlow::Break`]
/// ends the work with an error of the kind [`crate::ErrorKind::Interrupted`]; nothing is published.
pub type Progress<'p> = &'p (dyn Fn(u64) -> ControlFlow<()> + Sync);

/// Reports `bytes` where somebody listens.
pub(crate) fn report(progress: Option<Progress<'_>>, bytes: u64) -> Result<()> {
    match progress.map(|progress| progress(bytes)) {
        Some(ControlFlow::Break(())) => Err(Fault::Interrupted.into()),
        _ => Ok(()),
    }
}
