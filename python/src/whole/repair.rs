//! `zt.repair`: a damaged `.zt` file, mended or saved.

use std::path::PathBuf;

use pyo3::prelude::*;
use zt::Warning;
use zt::repair::{RepairOptions, Verdict};
use zt_convert::foreign::LOSSY;

use crate::share::error::Result;
use crate::share::warning;
use crate::share::work::{PyProgress, Watch};

/// The result of :func:`repair`.
#[pyclass(frozen, module = "zt")]
pub(crate) struct Recovery {
    verdict: Verdict,
    is_complete: bool,
    tensors: Vec<String>,
    nbytes: Option<u64>,
    warnings: Vec<Warning>,
}

#[pymethods]
impl Recovery {
    /// ``"sound"``, ``"mendable"``, ``"damaged"``, ``"doubtful"`` or ``"lost"``. Without a new file, a
    /// mendable file has been mended.
    #[getter]
    fn verdict(&self) -> &'static str {
        match self.verdict {
            Verdict::Sound => "sound",
            Verdict::Mendable => "mendable",
            Verdict::Damaged => "damaged",
            Verdict::Doubtful => "doubtful",
            _ => "lost",
        }
    }

    /// Whether every tensor is complete.
    #[getter]
    fn complete(&self) -> bool {
        self.is_complete
    }

    /// The names of the file's tensors, complete or not.
    #[getter]
    fn tensors(&self) -> Vec<String> {
        self.tensors.clone()
    }

    /// The length of the new file in bytes; ``None`` if none was written.
    #[getter]
    fn nbytes(&self) -> Option<u64> {
        self.nbytes
    }

    /// Warnings of the file, and one for each tensor, or component of a tensor, that is lost.
    #[getter]
    fn warnings<'py>(&self, py: Python<'py>) -> Result<Vec<Bound<'py, PyAny>>> {
        warning::all(py, &self.warnings)
    }

    fn __repr__(&self) -> String {
        format!("<zt.Recovery {} tensors={}>", self.verdict(), self.tensors.len())
    }
}

/// Mends a ``.zt`` file in place, if its last generation is whole but readers do not find it. With a
/// ``target``, it writes the sound tensors of a damaged file to a new file.
///
/// Args:
///     path: the file.
///     target: the new file; ``None`` to mend in place.
///     overwrite: whether an existing file at ``target`` is replaced.
///     threads: how many threads work.
///     progress: called with the bytes since the last call. Their sum is more than the length of the
///         file.
#[pyfunction]
#[pyo3(signature = (path, target = None, *, overwrite = false, threads = None, progress = None))]
pub(crate) fn repair<'py>(
    py: Python<'py>,
    path: PathBuf,
    target: Option<PathBuf>,
    overwrite: bool,
    threads: Option<usize>,
    progress: PyProgress<'py>,
) -> Result<Recovery> {
    let found = Watch::new(progress).threads(threads).run(py, |progress| {
        let options = RepairOptions::new().progress(progress);
        let (recovery, nbytes) = match &target {
            None => (zt::repair::repair(&path, &options)?, None),
            Some(target) => {
                let source = zt::FileSource::open(&path)
                    .map_err(|error| zt::Error::from(error).with_path(&path))?;
                let recovery = zt::repair::examine(source, &options)?;
                let nbytes = recovery.save(target, overwrite, Some(progress))?;
                (recovery, Some(nbytes))
            }
        };
        let names = recovery.objects().iter().map(|object| object.name.clone());
        Ok(Recovery {
            verdict: recovery.verdict(),
            is_complete: recovery.is_complete(),
            tensors: names.collect(),
            nbytes,
            warnings: warnings(&recovery),
        })
    })?;
    warning::tell(py, &found.warnings, &[])?;
    Ok(found)
}

fn warnings(recovery: &zt::repair::Recovery) -> Vec<Warning> {
    let mut warnings = recovery.file().map_or_else(Vec::new, zt::File::warnings);
    for object in recovery.objects() {
        let components = object.components.iter();
        let components = components.map(|it| (it.error.as_ref(), Some(it.role.clone())));
        for (error, component) in [(object.error.as_ref(), None)].into_iter().chain(components) {
            let Some(error) = error else { continue };
            let message = format!("left out, {}: {}", error.code(), error.message());
            let mut warning = Warning::new(LOSSY, message).with_object(&object.name);
            warning.component = component;
            warnings.push(warning);
        }
    }
    warnings
}
