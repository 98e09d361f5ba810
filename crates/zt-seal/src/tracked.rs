//! Sources that tell the files and the bytes of a model's tensors.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use zt::{Error, Result, Source, Span};
use zt_convert::{Input, InputOptions, Kinds, join_folder};
use zt_foreign::{Folder, Opened};

use crate::contents::Model;
use crate::fault::Fault;
use crate::files::Files;

/// The path of a file, and its source.
type Known = (String, Arc<dyn Source>);

/// Files that are opened below a folder, each with its path.
#[derive(Clone)]
pub(crate) struct Tracked {
    files: Files,
    /// The folder of the model, with a `/` behind it.
    prefix: String,
    opened: Arc<Mutex<Vec<Known>>>,
}

impl Tracked {
    pub(crate) fn new(files: &Files) -> Self {
        Tracked { files: files.clone(), prefix: String::new(), opened: Arc::default() }
    }

    /// The file that has this source, which [`Source::made_of`] gave.
    pub(crate) fn path_of(&self, source: &Arc<dyn Source>) -> Option<String> {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let found =
            opened.iter().find(|(_, it)| std::ptr::addr_eq(Arc::as_ptr(it), Arc::as_ptr(source)));
        found.map(|(path, _)| path.clone())
    }

    /// The source of a file that was opened before.
    pub(crate) fn source(&self, path: &str) -> Option<Arc<dyn Source>> {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.iter().find(|(name, _)| name == path).map(|(_, source)| Arc::clone(source))
    }

    /// Opens a model, whose files are tracked.
    pub(crate) fn model(&self, kinds: &Kinds, model: &Model) -> Result<Input> {
        if model.parts.is_empty() {
            return self.file(kinds, &model.path);
        }
        let parts = model.parts.iter().map(|part| self.file(kinds, part));
        join_folder(&parts.collect::<Result<Vec<_>>>()?, self.files.path_of(&model.path))
    }

    fn file(&self, kinds: &Kinds, path: &str) -> Result<Input> {
        let (prefix, name) = path.split_at(path.rfind('/').map_or(0, |at| at.strict_add(1)));
        let within = Tracked { prefix: prefix.to_owned(), ..self.clone() };
        let opened = within.open(&[name]).pop().unwrap_or(Ok(None))?;
        let shown = self.files.path_of(path);
        let missing = || Error::from(Fault::Missing { path: path.to_owned() }).with_path(&shown);
        kinds.open_in(opened.ok_or_else(missing)?, &shown, &within, InputOptions::new())
    }

    fn keep(&self, path: &str, source: Box<dyn Source>) -> Box<dyn Source> {
        let source: Arc<dyn Source> = source.into();
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.push((path.to_owned(), Arc::clone(&source)));
        Box::new(Shown(source))
    }
}

impl std::fmt::Debug for Tracked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Tracked").field(&self.files).finish()
    }
}

impl Folder for Tracked {
    fn open(&self, locations: &[&str]) -> Vec<Opened> {
        let paths: Vec<String> =
            locations.iter().map(|location| format!("{}{location}", self.prefix)).collect();
        let names: Vec<&str> = paths.iter().map(String::as_str).collect();
        let opened = self.files.open(&names).into_iter().zip(&names);
        opened.map(|(opened, path)| Ok(opened?.map(|source| self.keep(path, source)))).collect()
    }
}

/// A source that shows itself: see [`Source::made_of`].
struct Shown(Arc<dyn Source>);

impl Source for Shown {
    fn byte_len(&self) -> u64 {
        self.0.byte_len()
    }

    fn slice(&self, span: Span) -> Option<&[u8]> {
        self.0.slice(span)
    }

    fn will_read_all(&self, spans: &[Span]) {
        self.0.will_read_all(spans);
    }

    fn made_of(&self, span: Span) -> Option<Vec<(Arc<dyn Source>, Span)>> {
        Some(vec![(Arc::clone(&self.0), span)])
    }

    fn is_remote(&self) -> bool {
        self.0.is_remote()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.0.read_at(offset, buf)
    }
}
