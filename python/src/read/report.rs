//! `zt.report`: a page that shows a model.

use std::io::Write;
use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use zt::foreign::AtomicFile;
use zt_report::{Report, ReportOptions};

use crate::read::open::{Open, opened, warn_of_codes};
use crate::share::error::{OrRaise, Result, misuse};
use crate::share::work::{PyProgress, Watch};

/// Writes one HTML page that shows a model, or what changed between two: a map of the modules, all tensors
/// with their statistics, histograms and matrices, and what :func:`verify` finds. It opens from disk in any
/// browser and sends nothing. The page appears complete or not at all.
///
/// Args:
///     source: a :class:`File`, a path, bytes, or a file object.
///     path: the page to write.
///     other: a second file, as ``source``: the page shows what changed from ``source`` to it.
///     detail: keep the histograms and the matrices of all tensors; a page has at most 1 MiB and 250 bytes
///         a tensor otherwise.
///     sample: look at the headers and at 256 KiB of each tensor, and verify nothing.
///     overwrite: whether an existing page is replaced.
///     threads: how many threads work.
///     progress: called with the bytes since the last call. Each file is read twice.
///     storage_options: as for :func:`open`.
///
/// Raises:
///     MisuseError: the page exists, code ``overwrite``; or a sample of two files is asked for.
///
/// >>> import numpy, tempfile, zt
/// >>> folder = tempfile.mkdtemp()
/// >>> zt.numpy.save_file({"weight": numpy.ones((2, 3), "f4")}, folder + "/model.zt")
/// >>> zt.report(folder + "/model.zt", folder + "/model.html")
#[pyfunction]
#[pyo3(signature = (
    source, path, other = None, *, detail = false, sample = false, overwrite = false, threads = None,
    progress = None, storage_options = None
))]
#[expect(clippy::too_many_arguments, reason = "the keywords of Python's call")]
pub(crate) fn report<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    path: PathBuf,
    other: Option<&Bound<'py, PyAny>>,
    detail: bool,
    sample: bool,
    overwrite: bool,
    threads: Option<usize>,
    progress: PyProgress<'py>,
    storage_options: Option<&Bound<'py, PyDict>>,
) -> Result<()> {
    if sample && other.is_some() {
        return Err(misuse(py, "a sample is of one file: two are compared as a whole"));
    }
    let create = if overwrite { AtomicFile::create } else { AtomicFile::create_new };
    let mut file = create(&path).or_raise()?;
    let source = opened(py, source, storage_options)?;
    warn_of_codes(py, &source)?;
    let other = other.map(|other| opened(py, other, storage_options));
    let other = other.transpose()?;
    let options = ReportOptions::new().detail(detail).sample(sample);
    let report = Watch::new(progress).threads(threads).run(py, |progress| {
        let options = options.progress(progress);
        match &other {
            Some(other) => Report::compare(
                [source.file(), other.file()],
                [&name_of(&source), &name_of(other)],
                &options,
            ),
            None => Report::of(source.file(), &name_of(&source), &options),
        }
    })?;
    let page = report.to_html(options.limit());
    file.write_all(page.as_bytes())?;
    file.publish().or_raise()
}

/// What the page calls the file.
fn name_of(open: &Open) -> String {
    let path = open.path().unwrap_or(Path::new("in memory"));
    path.display().to_string()
}
