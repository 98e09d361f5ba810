//! An open file of any kind.

use std::ffi::{CStr, CString};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use zt::{Error, File, HashOptions, Result, Source, VerifyOptions};
use zt_convert::{Input, InputOptions, Kinds};
use zt_model::{Location, LocationOptions};

use crate::error::{c_text, zt_error};
use crate::json;
use crate::maps::Maps;
use crate::report::zt_report;
use crate::tensor::zt_tensor;

/// An open file, and the handles of its tensors that were asked for.
pub struct zt_file {
    file: File,
    path: Option<Arc<Path>>,
    kind: CString,
    attributes: OnceLock<CString>,
    tensors: Box<[OnceLock<Box<zt_tensor>>]>,
    /// `None` if the caller wants no map.
    maps: Option<Arc<Maps>>,
}

/// How a file is opened.
#[derive(Debug, Default)]
pub(crate) struct Opening {
    pub(crate) input: InputOptions,
    pub(crate) map: bool,
}

/// What the caller means by a path. A library never reads stdin for a `-`.
pub(crate) fn location(typed: &Path) -> Location {
    if typed.as_os_str() == "-" {
        return Location::new("./-");
    }
    Location::new(typed)
}

pub(crate) fn blame(error: Error, path: Option<&Path>) -> Error {
    match path {
        Some(path) => error.with_path(path),
        None => error,
    }
}

impl zt_file {
    pub(crate) fn open(typed: &Path, opening: Opening) -> Result<Self> {
        let options = LocationOptions::new().input(opening.input);
        let input = location(typed).open(&options)?;
        Ok(Self::new(input, opening.map))
    }

    pub(crate) fn from_source(source: impl Source + 'static, opening: Opening) -> Result<Self> {
        let input = Kinds::builtin().open_source(source, opening.input)?;
        Ok(Self::new(input, opening.map))
    }

    fn new(input: Input, map: bool) -> Self {
        let path = input.path().map(Arc::from);
        let file = input.into_file();
        let tensors = (0..file.len()).map(|_| OnceLock::new()).collect();
        zt_file {
            kind: c_text(file.kind().as_str()),
            file,
            path,
            attributes: OnceLock::new(),
            tensors,
            maps: map.then(Arc::default),
        }
    }

    /// `error` with the path of the file, if it was opened by one.
    pub(crate) fn blame(&self, error: Error) -> Error {
        blame(error, self.path.as_deref())
    }

    pub(crate) fn kind(&self) -> &CStr {
        &self.kind
    }

    pub(crate) fn len(&self) -> usize {
        self.tensors.len()
    }

    pub(crate) fn tensor_at(&self, at: usize) -> Option<&zt_tensor> {
        let place = self.tensors.get(at)?;
        if let Some(made) = place.get() {
            return Some(made);
        }
        let made = zt_tensor::new(&self.file, at, self.path.as_ref(), self.maps.as_ref())?;
        Some(place.get_or_init(|| Box::new(made)))
    }

    pub(crate) fn tensor(&self, name: &str) -> Option<&zt_tensor> {
        self.tensor_at(self.file.position(name)?)
    }

    /// As JSON; `{}` if there are none.
    pub(crate) fn attributes(&self) -> Result<&CStr> {
        if let Some(text) = self.attributes.get() {
            return Ok(text);
        }
        let attributes = self.file.attributes()?.unwrap_or_default();
        let text = json::text_of(&attributes);
        Ok(self.attributes.get_or_init(|| text))
    }

    pub(crate) fn verify(&self, strict: bool) -> Result<zt_report> {
        let report = self.file.verify(&VerifyOptions::new().strict(strict))?;
        let problems = report.problems.into_iter().map(|error| zt_error::of(&self.blame(error)));
        Ok(zt_report(problems.collect()))
    }

    pub(crate) fn warnings(&self) -> zt_report {
        zt_report(self.file.warnings().iter().map(zt_error::of_warning).collect())
    }

    /// The identity of its tensors, as `zt hash` prints it.
    ///
    /// # Errors
    ///
    /// The error of the first object that cannot be read: without it there is no identity.
    pub(crate) fn hash(&self) -> Result<String> {
        let hash = self.file.hash(&HashOptions::new())?;
        match hash.errors().next() {
            Some(error) if hash.content.is_none() => Err(error.clone()),
            _ => Ok(hash.to_string()),
        }
    }
}
