//! `zt.edit`: changes a `.zt` file in place.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use zt::{ErrorKind, Progress};
use zt_convert::{InputOptions, ZT};

use crate::share::error::{OrRaise, Result, is_raised, misuse, no_pickling};
use crate::share::kinds::kinds;
use crate::share::work::{self, Line, Watch};
use crate::share::{remote, value};
use crate::write::incoming::Incoming;
use crate::write::writer;

/// Changes a ``.zt`` file in place: appends, removes and renames tensors. No other byte moves.
///
/// Readers see the old file until the ``with`` block ends without an exception, and the new one after
/// that.
///
/// Raises:
///     FileError: another editor has the file, code ``locked``.
///     UnsupportedError: the file is of another kind, or too old: convert it.
///
/// >>> import numpy, tempfile, zt
/// >>> path = tempfile.mkdtemp() + "/model.zt"
/// >>> with zt.Writer(path) as writer:
/// ...     writer.add("a", numpy.zeros(2))
/// >>> with zt.edit(path) as edit:
/// ...     edit.rename("a", "first")
/// ...     edit.add("second", numpy.ones(3))
/// ...     edit.attributes["step"] = 7
/// >>> list(zt.open(path)), zt.open(path).attributes
/// (['first', 'second'], {'step': 7})
#[pyfunction]
#[pyo3(signature = (path, *, progress = None))]
pub(crate) fn edit(py: Python<'_>, path: PathBuf, progress: Option<Py<PyAny>>) -> Result<Editor> {
    let begun = || zt::File::edit(&path).map_err(|error| uneditable(&path).unwrap_or(error));
    let editor = work::run(py, begun)?;
    let attributes = editor.before().attributes().or_raise()?;
    Ok(Editor {
        attributes: value::to_dict(py, &attributes.unwrap_or_default())?.unbind(),
        editor: Mutex::new(Some(editor)),
        progress,
        process: std::process::id(),
    })
}

/// The error of what is a tensor file, but no single `.zt` file.
fn uneditable(path: &Path) -> Option<zt::Error> {
    let what = if remote::url_of(path).is_some() {
        "a remote file".to_owned()
    } else {
        let input = kinds().open(path, InputOptions::new()).ok()?;
        match input.file().kind() {
            ZT if input.paths().len() == 1 => return None,
            ZT => "a sharded set".to_owned(),
            kind => format!("a {kind} file"),
        }
    };
    let message = format!("{what} cannot be edited in place: convert it first to one .zt file");
    let error = zt::Error::new(ErrorKind::Unsupported, "unsupported", message);
    Some(error.with_path(path))
}

/// An edit of a ``.zt`` file. Made by :func:`edit`.
#[pyclass(frozen, module = "zt", name = "Editor")]
pub(crate) struct Editor {
    editor: Mutex<Option<zt::Editor>>,
    attributes: Py<PyDict>,
    progress: Option<Py<PyAny>>,
    process: u32,
}

impl Editor {
    fn lock(&self) -> MutexGuard<'_, Option<zt::Editor>> {
        self.editor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut zt::Editor, Progress<'_>) -> zt::Result<T> + Send,
    ) -> Result<T> {
        let progress = self.progress.as_ref().map(|progress| progress.bind(py).clone());
        let done = Watch::new(progress).run(py, |progress| match &mut *self.lock() {
            Some(editor) => work(editor, progress).map(Some),
            None => Ok(None),
        })?;
        done.ok_or_else(|| misuse(py, "the edit has ended"))
    }
}

#[pymethods]
impl Editor {
    /// The attributes of the file. Change this dict: it is written when the edit ends.
    #[getter]
    fn attributes(&self, py: Python<'_>) -> Py<PyDict> {
        self.attributes.clone_ref(py)
    }

    /// Adds a tensor, as :meth:`Writer.add`.
    #[pyo3(signature = (name, value, *, attributes = None))]
    fn add(
        &self,
        py: Python<'_>,
        name: &str,
        value: &Bound<'_, PyAny>,
        attributes: Option<&Bound<'_, PyAny>>,
    ) -> Result<()> {
        let value = Incoming::new(value)?;
        let attributes = attributes.map(value::from_mapping).transpose()?;
        self.with(py, |editor, progress| {
            // The editor's file does not count bytes.
            let line = Line::default();
            let writer = editor.writer();
            writer::add(writer, name, &value, attributes, None, &line, progress)
        })
    }

    /// Removes a tensor. Its bytes stay in the file until it is converted or compacted.
    fn remove(&self, py: Python<'_>, name: &str) -> Result<()> {
        self.with(py, |editor, _| editor.remove(name))
    }

    /// Gives a tensor another name.
    fn rename(&self, py: Python<'_>, old: &str, new: &str) -> Result<()> {
        self.with(py, |editor, _| editor.rename(old, new))
    }

    /// Makes the changes durable, and visible to all readers. A ``with`` block does it.
    fn commit(&self, py: Python<'_>) -> Result<()> {
        let attributes = value::from_mapping(self.attributes.bind(py))?;
        self.with(py, |editor, _| {
            if editor.attributes().is_some() || !attributes.is_empty() {
                editor.set_attributes(attributes)?;
            }
            Ok(())
        })?;
        work::run(py, || {
            let editor = self.lock().take();
            editor.map_or(Ok(()), zt::Editor::commit)
        })
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, PyTuple>) -> Result<()> {
        if !is_raised(exception) {
            return self.commit(py);
        }
        py.detach(|| drop(self.lock().take()));
        Ok(())
    }

    fn __reduce__(&self) -> Result<()> {
        Err(no_pickling("a zt.Editor"))
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            // In a forked child: the parent undoes the appended bytes.
            std::mem::forget(self.lock().take());
        }
    }
}
