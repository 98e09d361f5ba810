//! An answer for each of several files.

use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use zt_convert::Input;

use crate::args::files::{FilesArgs, Found};
use crate::args::input::{InputArgs, Truncated};
use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::output::json::{self, ErrorBody, object, path_text};
use crate::output::text::printable;

/// Where the answer about one file is printed.
pub(crate) struct Answer<'o> {
    pub(crate) output: &'o mut Output,
    /// The file, which is a heading above the answer.
    heading: Option<String>,
    is_first: bool,
    /// The documents of `--json`, if it prints a list.
    documents: Option<Vec<Vec<u8>>>,
}

/// Lets `answer` print something about each file. An error in one of several files does not keep it
/// from the others, and the exit code is the highest. Among several files, those without any chosen
/// object are passed over.
pub(crate) fn each(
    files: &FilesArgs,
    input: &InputArgs,
    truncated: Truncated,
    output: &mut Output,
    answer: impl FnMut(&Path, Result<Input, Failure>, &mut Answer<'_>) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let open = |found: Found| found.open(input, truncated);
    each_of(files.found(), files, input, open, output, answer)
}

/// As [`each`], for these files, which `open` opens.
pub(crate) fn each_of(
    found: Vec<Found>,
    files: &FilesArgs,
    input: &InputArgs,
    mut open: impl FnMut(Found) -> Result<Input, Failure>,
    output: &mut Output,
    mut answer: impl FnMut(&Path, Result<Input, Failure>, &mut Answer<'_>) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let is_list = files.is_list() || found.len() > 1;
    let mut to =
        Answer { output, heading: None, is_first: true, documents: is_list.then(Vec::new) };
    let mut exit = Exit::Ok;
    let (mut is_answered, mut all_open) = (false, true);
    for found in found {
        let path = found.path.clone();
        let mut opened = open(found);
        if let Ok(file) = &opened
            && let Err(failure) = input.select.expect_some([file.file()])
        {
            if is_list {
                continue;
            }
            opened = Err(failure.with_path(&path));
        }
        if opened.is_ok() && !is_list {
            input.expect_all_used()?;
        }
        is_answered = true;
        all_open &= opened.is_ok();
        to.heading = is_list.then(|| path.display().to_string());
        match answer(&path, opened, &mut to) {
            Ok(of_file) => {
                exit = exit.max(of_file);
                // The answer is seen before the problems of the next file.
                Failure::unless_closed(to.output.flush())?;
            }
            Err(failure) if !is_list || failure.ends_all() => return Err(failure),
            Err(failure) => {
                to.refuse(&path, &failure)?;
                exit = exit.max(failure.exit());
            }
        }
    }
    if !is_answered {
        input.select.expect_some([])?;
    }
    // A file that did not open may be the delta, or have the names.
    if all_open {
        input.expect_all_used()?;
    }
    if to.output.json
        && let Some(documents) = &to.documents
    {
        // The exit code is an answer even if nothing reads the output.
        let list = [b"[", &*documents.join(&b','), b"]\n"].concat();
        Failure::unless_closed(to.output.bytes(&list))?;
    }
    Ok(exit)
}

impl Answer<'_> {
    /// Whether there may be answers about other files.
    pub(crate) const fn is_one_of_several(&self) -> bool {
        self.documents.is_some()
    }

    /// Prints text below the name of the file.
    pub(crate) fn text(&mut self, text: &str) -> Result<(), Failure> {
        if let Some(heading) = self.heading.take() {
            let gap = if self.is_first { "" } else { "\n" };
            self.output.line(&format!("{gap}{}:", printable(&heading)))?;
            self.is_first = false;
        }
        self.output.line(text)
    }

    /// Prints the document of the file, or keeps it for the list.
    pub(crate) fn document(&mut self, document: &impl Serialize) -> Result<(), Failure> {
        self.document_with(|out| json::write(document, out))
    }

    /// As [`Answer::document`], for one that `write` writes.
    pub(crate) fn document_with(
        &mut self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let Some(documents) = &mut self.documents else {
            return self.output.document_with(write);
        };
        let mut text = Vec::new();
        write(&mut text).map_err(zt::Error::from)?;
        documents.push(text);
        Ok(())
    }

    fn refuse(&mut self, path: &Path, failure: &Failure) -> Result<(), Failure> {
        self.output.failure(failure);
        let Some(error) = ErrorBody::of(failure) else {
            return Ok(());
        };
        self.document(&object! {
            file: path_text(path),
            error,
        })
    }
}
