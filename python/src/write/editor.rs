//! `zt.edit`: changes a file of `.zt`, safetensors or GGUF.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use zt::foreign::expect_unlocked;
use zt::{Attributes, Error, ErrorKind, File, Progress, Warning, codes};
use zt_convert::foreign::AttributeChange;
use zt_convert::{InputOptions, ZT};
use zt_model::{EditedIndex, Rewrite, edited_indexes, indexes_of};

use crate::share::error::{OrRaise, Result, is_raised, misuse, no_pickling};
use crate::share::kinds::kinds;
use crate::share::work::{self, Line, Watch};
use crate::share::{remote, value, warning};
use crate::write::incoming::Incoming;
use crate::write::writer;

/// Changes a file: removes and renames tensors, and changes attributes; also appends tensors to a ``.zt`` file.
///
/// In a ``.zt`` file no other byte moves. A file of safetensors or GGUF is written anew and replaces the old one;
/// an attribute of GGUF keeps its type. Readers see the old file until the ``with`` block ends without an exception,
/// and the new one after that. The index of a set changes with its shard.
///
/// Raises:
///     FileError: another editor has the file, code ``locked``.
///     UnsupportedError: the file is a set, of another kind, or too old: convert it.
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
    let begun = || {
        let rewrite = || {
            expect_unlocked(&path)?;
            Rewrite::new(&path, kinds().open(&path, InputOptions::new())?)
        };
        if remote::url_of(&path).is_none()
            && zt::File::open(&path).is_err()
            && let Some(rewrite) = rewrite()?
        {
            return Ok(Edit::Anew(rewrite));
        }
        let editor = zt::File::edit(&path);
        editor
            .map(|it| Edit::InPlace(Box::new(it)))
            .map_err(|error| uneditable(&path).unwrap_or(error))
    };
    let edit = work::run(py, begun)?;
    let attributes = edit.before().attributes().or_raise()?;
    let attributes = value::to_dict(py, &attributes.unwrap_or_default())?;
    Ok(Editor {
        path,
        before: value::from_mapping(&attributes)?,
        attributes: attributes.unbind(),
        names: Mutex::default(),
        edit: Mutex::new(Some(edit)),
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

enum Edit {
    InPlace(Box<zt::Editor>),
    Anew(Rewrite),
}

impl Edit {
    /// The file before the edit.
    fn before(&self) -> &File {
        match self {
            Edit::InPlace(editor) => editor.before(),
            Edit::Anew(rewrite) => rewrite.file(),
        }
    }
}

/// By the name before the edit, the name of each tensor that has another one or, as `None`, is removed.
type Names = HashMap<String, Option<String>>;

/// The tensor of the file before the edit that has this name now.
fn old_name(names: &Names, file: &File, now: &str) -> Option<String> {
    let renamed = names.iter().find(|(_, new)| new.as_deref() == Some(now));
    let kept = || file.get(now).is_some() && !names.contains_key(now);
    renamed.map(|(old, _)| old.clone()).or_else(|| kept().then(|| now.to_owned()))
}

/// An edit of a file. Made by :func:`edit`.
#[pyclass(frozen, module = "zt", name = "Editor")]
pub(crate) struct Editor {
    path: PathBuf,
    edit: Mutex<Option<Edit>>,
    names: Mutex<Names>,
    attributes: Py<PyDict>,
    /// The attributes before the edit, as the dict gives them back.
    before: Attributes,
    progress: Option<Py<PyAny>>,
    process: u32,
}

impl Editor {
    fn lock(&self) -> MutexGuard<'_, Option<Edit>> {
        self.edit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Edit, Progress<'_>) -> zt::Result<T> + Send,
    ) -> Result<T> {
        let progress = self.progress.as_ref().map(|progress| progress.bind(py).clone());
        let done = Watch::new(progress).run(py, |progress| match &mut *self.lock() {
            Some(edit) => work(edit, progress).map(Some),
            None => Ok(None),
        })?;
        done.ok_or_else(|| misuse(py, "the edit has ended"))
    }

    /// Gives a tensor another name, or with `None` removes it.
    fn change(&self, py: Python<'_>, name: &str, new: Option<&str>) -> Result<()> {
        self.with(py, |edit, _| {
            let mut names = self.names();
            let old = old_name(&names, edit.before(), name);
            match (&mut *edit, new) {
                (Edit::InPlace(editor), Some(new)) => editor.rename(name, new)?,
                (Edit::InPlace(editor), None) => editor.remove(name)?,
                (Edit::Anew(rewrite), _) => {
                    let file = rewrite.file();
                    let refuse = |code, text: String| {
                        Err(Error::new(ErrorKind::Misuse, code, text).with_object(name))
                    };
                    if old.is_none() {
                        let near = zt::nearest(name, file.names());
                        let near = near.map(|near| format!("; did you mean {near:?}?"));
                        let near = near.unwrap_or_default();
                        return refuse(codes::NOT_FOUND, format!("there is no such tensor{near}"));
                    }
                    if new == Some("") {
                        return refuse(codes::MISUSE, "the new name is empty".to_owned());
                    }
                    if let Some(new) = new.filter(|new| *new != name)
                        && old_name(&names, file, new).is_some()
                    {
                        let text = format!("another tensor has the name {new:?}");
                        return refuse(codes::DUPLICATE_NAME, text);
                    }
                }
            }
            if let Some(old) = old {
                names.insert(old, new.map(str::to_owned));
            }
            Ok(())
        })
    }

    /// Writes the file anew, or ends the edit in place.
    fn write(
        &self,
        edit: Edit,
        attributes: Attributes,
        progress: Progress<'_>,
    ) -> zt::Result<Vec<Warning>> {
        let names = self.names();
        let new = |name: &str| match names.get(name) {
            Some(new) => new.clone(),
            None => Some(name.to_owned()),
        };
        let indexes = match names.is_empty() {
            true => Vec::new(),
            false => edited_indexes(&self.path, edit.before(), new)?,
        };
        let warnings = match edit {
            Edit::InPlace(mut editor) => {
                if attributes != self.before {
                    editor.set_attributes(attributes)?;
                }
                editor.commit()?;
                Vec::new()
            }
            Edit::Anew(rewrite) => {
                let changes = changes(&self.before, &attributes);
                rewrite.commit(new, changes, &kinds(), false, progress)?.warnings
            }
        };
        indexes.into_iter().try_for_each(|index| EditedIndex::publish(index).map(drop))?;
        Ok(warnings)
    }
}

/// What changes the attributes `before` to those `after`. The keys of a dict are texts.
fn changes(before: &Attributes, after: &Attributes) -> Vec<AttributeChange> {
    let change =
        |key: &str, values| AttributeChange { key: key.to_owned(), values, value_type: None };
    let set = after
        .iter()
        .filter(|(key, value)| key.as_str().is_some_and(|key| before.get(key) != Some(*value)));
    let set = set.filter_map(|(key, value)| Some(change(key.as_str()?, vec![value.clone()])));
    let removed = before.iter().filter_map(|(key, _)| key.as_str());
    let removed = removed.filter(|key| after.get(key).is_none());
    set.chain(removed.map(|key| change(key, Vec::new()))).collect()
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
        self.with(py, |edit, progress| {
            let what = match edit {
                Edit::Anew(_) => {
                    "tensors are added to a .zt file alone: write the others by `zt.merge`"
                }
                Edit::InPlace(_) if !indexes_of(&self.path)?.is_empty() => {
                    "the index of the set would not have the new tensor: write a new set"
                }
                Edit::InPlace(editor) => {
                    // The editor's file does not count bytes.
                    let line = Line::default();
                    let writer = editor.writer();
                    return writer::add(writer, name, &value, attributes, None, &line, progress);
                }
            };
            let error = Error::new(ErrorKind::Unsupported, codes::UNSUPPORTED, what);
            Err(error.with_path(&self.path))
        })
    }

    /// Removes a tensor. In a ``.zt`` file its bytes stay until the file is converted or compacted.
    fn remove(&self, py: Python<'_>, name: &str) -> Result<()> {
        self.change(py, name, None)
    }

    /// Gives a tensor another name.
    fn rename(&self, py: Python<'_>, old: &str, new: &str) -> Result<()> {
        self.change(py, old, Some(new))
    }

    /// Makes the changes durable, and visible to all readers. A ``with`` block does it.
    fn commit(&self, py: Python<'_>) -> Result<()> {
        let attributes = value::from_mapping(self.attributes.bind(py))?;
        let Some(edit) = py.detach(|| self.lock().take()) else {
            return Err(misuse(py, "the edit has ended"));
        };
        let told = edit.before().warnings();
        let progress = self.progress.as_ref().map(|progress| progress.bind(py).clone());
        let write = |progress: Progress<'_>| self.write(edit, attributes, progress);
        let warnings = Watch::new(progress).run(py, write)?;
        warning::tell(py, &warnings, &told)
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
