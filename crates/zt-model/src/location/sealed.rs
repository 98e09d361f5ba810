//! The files beside a location, and reading with a seal.
#![cfg_attr(not(feature = "remote"), expect(unused_variables, reason = "every URL is refused"))]

use std::path::{Path, PathBuf};
use std::sync::Arc;

#[cfg(feature = "remote")]
use zt::Source;
use zt::{Error, ErrorKind, Result, codes};
use zt_convert::{Input, InputOptions, join_folder};
#[cfg(feature = "remote")]
use zt_foreign::Folder;
use zt_seal::{Fault, Files, Seal, SealedFolder};

use crate::location::place::of_store;
use crate::location::{Location, LocationOptions};

/// The folder of a location, and the file in it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Beside {
    /// The files of the folder.
    pub files: Files,
    /// The path of the file in it; `None` if the location is the folder itself.
    pub name: Option<String>,
    /// Where the file was found, for [`Seal::find`].
    pub found: PathBuf,
}

impl Location {
    /// The folder of the file, to open this file and others by their paths in it. A URL is one of a folder if it
    /// ends with `/`, or if it has no file; then `within` names a file in that folder, which is opened to find out.
    ///
    /// # Errors
    ///
    /// As [`Location::open`]; code `misuse` for stdin, which has no folder.
    pub fn beside(&self, within: Option<&str>, options: &LocationOptions<'_>) -> Result<Beside> {
        let found = if let Some(url) = &self.url {
            of_store!({ beside_url(url, within, options) })
        } else if self.is_stdin() {
            Err(Error::new(ErrorKind::Misuse, codes::MISUSE, "stdin has no folder: use a file"))
        } else if self.path.is_dir() {
            let (files, found) = (Files::local(&self.path), self.path.clone());
            Ok(Beside { files, name: None, found })
        } else {
            let folder = self.path.parent().unwrap_or(Path::new(""));
            let name = self.path.file_name().and_then(|name| name.to_str());
            let name = name.ok_or_else(|| {
                let message = "the name of the file is not Unicode, so no seal has it";
                Error::new(ErrorKind::Misuse, codes::MISUSE, message)
            });
            let (files, found) = (Files::local(folder), self.path.clone());
            name.map(|name| Beside { files, name: Some(name.to_owned()), found })
        };
        found.map_err(|error| self.blame(error))
    }

    /// Opens the file, and compares what is read of it and of its shards with the seal.
    pub(super) fn open_sealed(
        &self,
        seal: &Arc<Seal>,
        input: &InputOptions,
        options: &LocationOptions<'_>,
    ) -> Result<Input> {
        let Beside { files, name, found } = self.beside(seal.top(), options)?;
        let opened = (|| {
            let Some(name) = &name else {
                return open_folder(&files, seal, input, options);
            };
            let file = seal.find(&found)?;
            let path = seal.files.get(file).map_or("", |file| &file.path);
            let sealed = SealedFolder::new(files, Arc::clone(seal), file);
            options.kinds.open_in(sealed.open_as(name, path)?, &self.path, &sealed, input)
        })();
        opened.map_err(|error| self.blame(error))
    }
}

/// Opens the model of a folder: by one file, or all its files of slices.
fn open_folder(
    files: &Files,
    seal: &Arc<Seal>,
    input: &InputOptions,
    options: &LocationOptions<'_>,
) -> Result<Input> {
    let model = seal.only_model()?;
    let opener = seal.position(&model.path);
    let members = opener.map_or_else(|| seal.slices_in(&model.path), |file| vec![file]);
    let Some(first) = members.first() else {
        return Err(Fault::Missing { path: model.path.clone() }.into());
    };
    let folder = match opener {
        Some(_) => model.path.rsplit_once('/').map_or("", |(folder, _)| folder),
        None => &model.path,
    };
    // It has the other files of the model.
    let files = files.below(folder);
    let sealed = SealedFolder::new(files.clone(), Arc::clone(seal), *first);
    let open = |file: usize, input: &InputOptions| {
        let path = seal.files.get(file).map_or("", |file| &*file.path);
        let name = path.rsplit('/').next().unwrap_or_default();
        let shown = files.path_of(name);
        options.kinds.open_in(sealed.open_as(name, path)?, shown, &sealed, input)
    };
    if let Some(file) = opener {
        return open(file, input);
    }
    let stored = input.clone().logical(None);
    let slices = members.iter().map(|file| open(*file, &stored)).collect::<Result<Vec<_>>>()?;
    let joined = join_folder(&slices, files.path())?;
    match input.logical {
        Some(logical) => options.kinds.logical_in(joined, &sealed, logical),
        None => Ok(joined),
    }
}

#[cfg(feature = "remote")]
fn beside_url(url: &str, within: Option<&str>, options: &LocationOptions<'_>) -> Result<Beside> {
    use zt_remote::Remote;

    let stores = options.remote.clone().end_first(options.kinds.read_from_end());
    let (place, query) = url.split_at(url.find('?').unwrap_or(url.len()));
    let (remote, is_folder) = match within {
        Some(name) if place.ends_with('/') => {
            (Remote::open(&format!("{place}{name}{query}"), &stores)?, true)
        }
        Some(name) => {
            let remote = Remote::open_or_within(url, name, &stores)?;
            let last = |url: &str| url.rsplit('/').next().map(str::to_owned);
            let is_folder = last(remote.url()) != last(place);
            (remote, is_folder)
        }
        None => (Remote::open(url, &stores)?, false),
    };
    let found = remote.url().to_owned();
    let (folder, name) = found.rsplit_once('/').unwrap_or(("", &found));
    let name = (!is_folder).then(|| name.to_owned());
    let (folder, found) = (folder.to_owned(), PathBuf::from(&found));
    let first = found.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    let files = Files::new(Arc::new(Opened { remote, first }), folder);
    Ok(Beside { files, name, found })
}

/// The folder of an object that is open, which is not opened again.
#[cfg(feature = "remote")]
#[derive(Debug)]
struct Opened {
    remote: zt_remote::Remote,
    /// The name of that object.
    first: String,
}

#[cfg(feature = "remote")]
impl Folder for Opened {
    fn open(&self, locations: &[&str]) -> Vec<zt_foreign::Opened> {
        let others: Vec<&str> =
            locations.iter().copied().filter(|location| *location != self.first).collect();
        let mut others = self.remote.open(&others).into_iter();
        let opened = locations.iter().map(|location| {
            if *location == self.first {
                return Ok(Some(Box::new(self.remote.clone()) as Box<dyn Source>));
            }
            others.next().unwrap_or(Ok(None))
        });
        opened.collect()
    }
}
