//! Damaged objects of an input, which a conversion may leave out.

use std::collections::HashMap;
use std::ops::ControlFlow;

use zt::{Error, ErrorKind, File, Result, Tensor, VerifyOptions};
use zt_foreign::ConvertOptions;

/// Faults of objects that their metadata does not show.
pub(crate) enum Damage {
    /// All faults, by name: a fault found while an object is written comes too late to skip it.
    Known(HashMap<String, Error>),
    /// Bytes are checked while they are written, and the first fault ends the conversion. Indices are
    /// checked before, because they are written unchecked.
    Met,
}

impl Damage {
    /// Verifies `file` if damaged objects are skipped.
    pub(crate) fn of(file: &File, options: &ConvertOptions<'_>) -> Result<Self> {
        if !options.skip_damaged {
            return Ok(Damage::Met);
        }
        // Bytes are counted when they are written.
        let proceed = |_| match options.progress.map(|progress| progress.report(0)) {
            Some(Err(_)) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        };
        let verify = VerifyOptions::new()
            .threads(options.write.thread_count())
            .progress(zt::Progress::new(&proceed));
        let mut faults = HashMap::new();
        for problem in file.verify(&verify)?.problems {
            if problem.kind() == ErrorKind::Io || problem.code() == "allocation" {
                return Err(problem); // The object need not be faulty.
            }
            let Some(name) = problem.object().map(str::to_owned) else {
                continue;
            };
            // A fault of the format leaves the components as good as they are.
            let tensor = file.tensor(&name).ok();
            let fault = tensor.and_then(|tensor| tensor.fault());
            if fault.is_none_or(|fault| fault.to_string() != problem.to_string()) {
                faults.entry(name).or_insert(problem);
            }
        }
        Ok(Damage::Known(faults))
    }

    /// The object, if it is not damaged as far as that is known.
    pub(crate) fn check<'i>(&mut self, tensor: Tensor<'i>) -> Result<Tensor<'i>> {
        match self {
            Damage::Known(faults) => faults.remove(tensor.name()).map_or(Ok(tensor), Err),
            // Without a meaning there is nothing to check but the bytes.
            Damage::Met if tensor.fault().is_some() => Ok(tensor),
            Damage::Met => tensor.check_data().map(|()| tensor),
        }
    }
}
