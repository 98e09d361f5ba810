//! Files and models are compared with what was signed.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use crate::seal::{Seal, SealedFile, find_among};
use crate::sign::statement::Statement;
use crate::tree::Sum;

/// How files and models compare with a signed statement.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Comparison {
    /// Each file, by its path in the signature or, if it was not signed, in the folder.
    pub files: Vec<(String, FileState)>,
    /// Each model that was found, and whether its content was signed.
    pub models: Vec<(String, bool)>,
    /// The signed models that a folder does not have.
    pub missing: Vec<String>,
    /// Whether contents were signed.
    pub has_contents: bool,
}

/// How a file compares with the signed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileState {
    /// It has the signed digest.
    Right,
    /// It has another digest.
    Changed,
    /// It is not there.
    Missing,
    /// It was not signed.
    Unsigned,
}

impl FileState {
    /// One word: `right`, `changed`, `missing` or `unsigned`.
    pub const fn as_str(self) -> &'static str {
        match self {
            FileState::Right => "right",
            FileState::Changed => "changed",
            FileState::Missing => "missing",
            FileState::Unsigned => "unsigned",
        }
    }
}

impl Comparison {
    /// Whether all files are there and as they were signed.
    pub fn files_hold(&self) -> bool {
        !self.files.is_empty() && self.files.iter().all(|(_, state)| *state == FileState::Right)
    }

    /// Whether all tensors are as they were signed, in files of any kind.
    pub fn content_holds(&self) -> bool {
        let is_signed = self.models.iter().all(|(_, is_signed)| *is_signed);
        is_signed && !self.models.is_empty() && self.missing.is_empty()
    }
}

impl Statement {
    /// Compares a seal that was made of files now. `file`: the path of the file that was sealed with its shards;
    /// `None` for a folder, which has to have all signed files and models, and no other file.
    pub fn compare(&self, found: &Seal, file: Option<&Path>) -> Comparison {
        let files = match file {
            Some(file) => self.compare_file(found, file),
            None => self.compare_folder(found),
        };
        let contents = || {
            let models = self.facts.iter().flat_map(|facts| &facts.models);
            models.filter_map(|model| Some((&model.path, model.content?)))
        };
        let signed: HashSet<Sum> = contents().map(|(_, content)| content).collect();
        let present: HashSet<Sum> = found.models.iter().filter_map(|it| it.content).collect();
        let models = found.models.iter().map(|model| {
            (model.path.clone(), model.content.is_some_and(|content| signed.contains(&content)))
        });
        let missing =
            contents().filter(|(_, content)| file.is_none() && !present.contains(content));
        Comparison {
            files,
            models: models.collect(),
            missing: missing.map(|(path, _)| path.clone()).collect(),
            has_contents: contents().next().is_some(),
        }
    }

    fn compare_folder(&self, found: &Seal) -> Vec<(String, FileState)> {
        if self.is_alone {
            // It was signed without a name.
            return match (&found.files[..], self.resources.first()) {
                ([only], Some((_, sum))) => vec![(only.path.clone(), self.state(Some(sum), only))],
                (files, _) => {
                    files.iter().map(|it| (it.path.clone(), FileState::Unsigned)).collect()
                }
            };
        }
        let signed = self.resources.iter().map(|(path, sum)| {
            let file = found.file(path);
            (path.clone(), file.map_or(FileState::Missing, |file| self.state(Some(sum), file)))
        });
        let paths: HashSet<&str> = self.paths().collect();
        let is_ignored = |path: &str| {
            self.ignored.iter().any(|ignored| {
                let rest = path.strip_prefix(ignored.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
        };
        let extra = found.files.iter().map(|file| &file.path);
        let extra = extra.filter(|path| !paths.contains(path.as_str()) && !is_ignored(path));
        signed.chain(extra.map(|path| (path.clone(), FileState::Unsigned))).collect()
    }

    fn compare_file(&self, found: &Seal, file: &Path) -> Vec<(String, FileState)> {
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let signed: HashMap<&str, &Sum> =
            self.resources.iter().map(|(path, sum)| (path.as_str(), sum)).collect();
        let paths: Vec<&str> = self.paths().collect();
        let opener = find_among(&paths, file).ok().and_then(|at| paths.get(at).copied());
        let folder = opener.and_then(|path| path.rsplit_once('/')).map(|(folder, _)| folder);
        let compared = found.files.iter().map(|file| {
            let path = match (opener, folder) {
                (Some(opener), _) if file.path == name => opener.to_owned(),
                (_, Some(folder)) => format!("{folder}/{}", file.path),
                _ => file.path.clone(),
            };
            let sum = if self.is_alone { signed.get(".") } else { signed.get(path.as_str()) };
            let state = self.state(sum.copied(), file);
            (path, state)
        });
        compared.collect()
    }

    fn state(&self, signed: Option<&Sum>, file: &SealedFile) -> FileState {
        let found = if self.is_blake3 { &file.blake3 } else { &file.sha256 };
        match signed {
            None => FileState::Unsigned,
            Some(signed) if signed == found => FileState::Right,
            Some(_) => FileState::Changed,
        }
    }
}
