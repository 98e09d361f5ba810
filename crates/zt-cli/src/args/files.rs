//! Several files and folders, as the arguments of a command.

use std::path::{Path, PathBuf};

use clap::Args;
use zt::{Error, ErrorKind, codes};
use zt_convert::{FolderContents, Input};

use crate::args::input::{InputArgs, Truncated};
use crate::failure::Failure;
use crate::files::kinds;
use crate::files::remote::is_url;
use crate::files::stdin::is_stdin;

/// The files of a command that takes several.
#[derive(Debug, Args)]
pub(crate) struct FilesArgs {
    /// Files of any kind or their URLs, indexes of sharded sets, or folders; `-` is stdin
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Also take the tensor files in the folders of a folder; links to folders are not followed
    #[arg(short, long)]
    recursive: bool,
}

/// A file that was given or found.
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    /// The reason why a folder gives no file.
    problem: Option<Failure>,
}

impl FilesArgs {
    /// The paths as they were given.
    pub(crate) fn given(&self) -> &[PathBuf] {
        &self.files
    }

    /// Whether the answer is a list even if one file is found: a script can rely on it.
    pub(crate) fn is_list(&self) -> bool {
        self.recursive || self.files.len() > 1
    }

    /// The files in the order of the arguments. A folder stands for its tensor files.
    pub(crate) fn found(&self) -> Vec<Found> {
        let mut found = Vec::new();
        for path in &self.files {
            if path.is_dir() && !is_stdin(path) && !is_url(path) {
                self.look_into(path, &mut found);
            } else {
                found.push(Found::new(path.clone(), None));
            }
        }
        found
    }

    fn look_into(&self, folder: &Path, found: &mut Vec<Found>) {
        let before = found.len();
        // A stack, because folders may be nested deeper than calls.
        let mut folders = vec![folder.to_owned()];
        let mut top = None;
        while let Some(folder) = folders.pop() {
            let contents = match FolderContents::of(kinds::table(), &folder) {
                Ok(contents) => contents,
                Err(error) => {
                    found.push(Found::new(folder, Some(Failure::Refused(error))));
                    continue;
                }
            };
            let files = contents.files.iter().cloned();
            found.extend(files.map(|path| Found::new(path, None)));
            if self.recursive {
                folders.extend(contents.folders.iter().rev().cloned());
            }
            top.get_or_insert(contents);
        }
        if found.len() > before {
            return;
        }
        let contents = top.unwrap_or_default();
        let mut error = contents.has_none(folder);
        let has_folders = !contents.folders.is_empty();
        if error.code() == codes::MISUSE && (self.recursive || has_folders) {
            let advice = if self.recursive {
                "no folder below it has a tensor file"
            } else {
                "the folder has no tensor file; -r looks into its folders, too"
            };
            error = Error::new(ErrorKind::Misuse, codes::MISUSE, advice).with_path(folder);
        }
        found.push(Found::new(folder.to_owned(), Some(Failure::Refused(error))));
    }
}

impl Found {
    const fn new(path: PathBuf, problem: Option<Failure>) -> Self {
        Found { path, problem }
    }

    /// Opens the file. It has the chosen objects only, and may have none.
    pub(crate) fn open(self, input: &InputArgs, truncated: Truncated) -> Result<Input, Failure> {
        match self.problem {
            Some(failure) => Err(failure),
            None => input.open_input(&self.path, truncated),
        }
    }
}
