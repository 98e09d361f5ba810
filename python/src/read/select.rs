//! The choice of tensors, and their new names.

use std::collections::HashMap;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use zt::{Error, ErrorKind, codes};
use zt_convert::Input;

use crate::share::error::{OrRaise, Result, exception};
use crate::share::value::each;

/// Which tensors of the inputs are taken, and under which names.
pub(crate) struct Selection<'py> {
    include: Option<Vec<Bound<'py, PyString>>>,
    exclude: Vec<Bound<'py, PyString>>,
    rename: Option<Bound<'py, PyAny>>,
}

impl<'py> Selection<'py> {
    /// `include` and `exclude`: patterns, in a list if there are several. `rename`: a dict or a function.
    ///
    /// # Errors
    ///
    /// `TypeError` for a pattern that is no text.
    pub(crate) fn new(
        include: Option<&Bound<'py, PyAny>>,
        exclude: Option<&Bound<'py, PyAny>>,
        rename: Option<&Bound<'py, PyAny>>,
    ) -> Result<Self> {
        let patterns = |given: &Bound<'py, PyAny>| {
            let patterns = each(given)?.into_iter();
            let patterns = patterns.map(|pattern| Ok(pattern.cast_into::<PyString>()?));
            patterns.collect::<Result<Vec<_>>>()
        };
        Ok(Selection {
            include: include.map(patterns).transpose()?,
            exclude: exclude.map(patterns).transpose()?.unwrap_or_default(),
            rename: rename.cloned(),
        })
    }

    /// The inputs with the chosen tensors only, under their new names.
    ///
    /// # Errors
    ///
    /// Code `not-found` if none is left; code `duplicate-name` if two tensors of an input get one name;
    /// the exceptions of the function that renames.
    pub(crate) fn apply(&self, py: Python<'py>, inputs: Vec<Input>) -> Result<Vec<Input>> {
        if self.include.is_none() && self.exclude.is_empty() && self.rename.is_none() {
            return Ok(inputs);
        }
        // Slices of one tensor in several files have one name.
        let joined = zt_convert::join_slices(&inputs).or_raise()?;
        let chosen = joined.iter().map(|input| self.choose(py, input));
        let chosen: Vec<Input> = chosen.collect::<Result<_>>()?;
        if chosen.iter().any(|input| !input.file().is_empty()) {
            return Ok(chosen);
        }
        Err(none_left())
    }

    /// The input with the chosen tensors, perhaps none.
    ///
    /// # Errors
    ///
    /// As [`Selection::apply`], except for `not-found`.
    pub(crate) fn choose(&self, py: Python<'py>, input: &Input) -> Result<Input> {
        let mut names = HashMap::new();
        for name in input.file().names() {
            if let Some(new) = self.new_name(py, name)? {
                names.insert(name, new);
            }
        }
        let select = || input.file().select(|name| names.get(name).cloned());
        let file = py.detach(select).or_raise()?;
        Ok(Input::new(file, input.paths().to_vec()))
    }

    /// The name under which a tensor is taken; `None` if it is left out.
    fn new_name(&self, py: Python<'py>, name: &str) -> Result<Option<String>> {
        let name = PyString::new(py, name);
        let is_in = match &self.include {
            Some(include) => matches(&name, include)?,
            None => true,
        };
        if !is_in || matches(&name, &self.exclude)? {
            return Ok(None);
        }
        let renamed = match &self.rename {
            Some(names) if names.is_instance_of::<PyDict>() => {
                names.call_method1("get", (&name, &name))?
            }
            Some(function) => function.call1((&name,))?,
            None => name.clone().into_any(),
        };
        let new: String = renamed.extract()?;
        if new.is_empty() && name.len()? > 0 {
            let error = Error::new(ErrorKind::Misuse, codes::MISUSE, "the new name is empty");
            return Err(exception(&error.with_object(name.to_str()?)));
        }
        Ok(Some(new))
    }
}

/// The exception for a choice of nothing.
pub(crate) fn none_left() -> PyErr {
    let text = "no tensor matches `include`, or all match `exclude`";
    exception(&Error::new(ErrorKind::Misuse, codes::NOT_FOUND, text))
}

/// The names of the tensors that match a pattern.
///
/// # Errors
///
/// Code `not-found` if there is none.
pub(crate) fn named(pattern: &Bound<'_, PyString>, inputs: &[Input]) -> Result<Vec<String>> {
    let patterns = [pattern.clone()];
    let mut found = Vec::new();
    for name in inputs.iter().flat_map(|input| input.file().names()) {
        if matches(&PyString::new(pattern.py(), name), &patterns)? {
            found.push(name.to_owned());
        }
    }
    if found.is_empty() {
        let text = format!("no tensor matches {:?} of `dtype`", pattern.to_str()?);
        return Err(exception(&Error::new(ErrorKind::Misuse, codes::NOT_FOUND, text)));
    }
    Ok(found)
}

fn matches<'py>(name: &Bound<'py, PyString>, patterns: &[Bound<'py, PyString>]) -> Result<bool> {
    for pattern in patterns {
        let module = name.py().import("fnmatch")?;
        if module.call_method1("fnmatchcase", (name, pattern))?.is_truthy()? {
            return Ok(true);
        }
    }
    Ok(false)
}
