//! Standard output and standard error, and how an answer looks.
//!
//! [`json`] has the documents of `--json`, and [`value`] the values of attributes in them. [`table`],
//! [`array`] and [`stats`] are for people. [`tree`] sums objects by the parts of their names. [`text`]
//! and [`size`] make names and numbers fit for a terminal. [`progress`] draws bars.
//!
//! It must not know: arguments and files.

pub(crate) mod absent;
pub(crate) mod array;
pub(crate) mod json;
pub(crate) mod progress;
pub(crate) mod size;
pub(crate) mod stats;
pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod tree;
pub(crate) mod value;

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

use clap::ValueEnum;
use serde::Serialize;
use terminal_size::{Width, terminal_size_of};
use zt::{Error, ErrorKind, File, Warning};
use zt_convert::Cast;
use zt_convert::foreign::{Fault, is_url};
use zt_model::is_delta;

use self::json::{ErrorBody, object};
use self::text::printable;
use crate::failure::{Exit, Failure};

/// Warnings that are printed for one file. JSON has all of them.
const WARNINGS: usize = 10;

/// Causes of errors that are printed. JSON has all of them.
const CAUSES: usize = 50;

/// Errors of one cause that are printed.
const OF_ONE_CAUSE: usize = 3;

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
#[value(rename_all = "lower")]
pub(crate) enum Color {
    #[default]
    Auto,
    Always,
    Never,
}

/// Where a command prints: answers to stdout, errors, warnings and notes to stderr.
#[derive(Debug)]
pub(crate) struct Output {
    stdout: BufWriter<io::Stdout>,
    /// Whether to print one JSON document in place of text.
    pub(crate) json: bool,
    /// Whether to colour stdout and stderr.
    colors: [bool; 2],
    /// Notes that follow the error of the command.
    hints: Vec<String>,
}

impl Output {
    pub(crate) fn new(json: bool, color: Color) -> Self {
        let (stdout, stderr) = (io::stdout(), io::stderr());
        let refused = refuses_color(std::env::var_os("NO_COLOR"), std::env::var_os("TERM"));
        let colored = |terminal: bool| match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => terminal && !refused,
        };
        let colors = [colored(stdout.is_terminal()), colored(stderr.is_terminal())];
        Output {
            stdout: BufWriter::with_capacity(1 << 16, stdout),
            json,
            colors,
            hints: Vec::new(),
        }
    }

    /// Whether to colour text on stdout.
    pub(crate) const fn colored(&self) -> bool {
        self.colors[0]
    }

    /// The columns of stdout, if it is a terminal.
    pub(crate) fn columns() -> Option<usize> {
        let (Width(columns), _) = terminal_size_of(io::stdout())?;
        Some(columns.into())
    }

    /// Prints one or several lines.
    pub(crate) fn line(&mut self, text: &str) -> Result<(), Failure> {
        let written = self.stdout.write_all(text.as_bytes());
        written.and_then(|()| self.stdout.write_all(b"\n")).map_err(failure)
    }

    /// As [`Output::line`], for a command that goes on if the reader has closed the pipe.
    pub(crate) fn report(&mut self, text: &str) -> Result<(), Failure> {
        Failure::unless_closed(self.line(text))
    }

    /// Prints bytes unchanged.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.stdout.write_all(bytes).map_err(failure)
    }

    /// Prints a JSON document.
    pub(crate) fn document(&mut self, document: &impl Serialize) -> Result<(), Failure> {
        self.document_with(|out| json::write(document, out))
    }

    /// Prints a JSON document that `write` writes.
    pub(crate) fn document_with(
        &mut self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let written = write(&mut self.stdout);
        written.and_then(|()| self.stdout.write_all(b"\n")).map_err(failure)
    }

    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.stdout.flush().map_err(failure)
    }

    /// `error[code]: where: what`, on stderr.
    pub(crate) fn error(&self, error: &Error) {
        self.problem(error.code(), &error.to_string());
    }

    /// Prints a failure on stderr.
    pub(crate) fn failure(&self, failure: &Failure) {
        match failure {
            Failure::Refused(error) | Failure::Error(error) => match Fault::of(error) {
                Some(Fault::Losses { losses, .. }) => self.losses(error, losses),
                _ => self.error(error),
            },
            Failure::Usage { code, message } => self.problem(code, message),
            Failure::ClosedPipe | Failure::CutOff => {}
        }
    }

    fn losses(&self, all: &Error, losses: &[Error]) {
        let located = losses.iter().map(|loss| match all.path() {
            Some(path) => loss.clone().with_path(path),
            None => loss.clone(),
        });
        self.errors(&located.collect::<Vec<_>>());
    }

    /// Prints the first errors of each cause, and how many others have it. Causes are equal but for numbers.
    pub(crate) fn errors(&self, errors: &[Error]) {
        let causes = by_cause(errors, |error| (error.code(), error.message()));
        let (causes, more) = causes.split_at(causes.len().min(CAUSES));
        for like in causes {
            let (shown, others) = like.split_at(like.len().min(OF_ONE_CAUSE));
            shown.iter().for_each(|error| self.error(error));
            if let Some(other) = others.first() {
                let others = text::count(others.len() as u64, "other object", "other objects");
                let message = format!("and {others}, for the same reason; --json lists all");
                self.problem(other.code(), &message);
            }
        }
        if let Some(first) = more.first().and_then(|like| like.first()) {
            let more = more.iter().map(|like| like.len() as u64).sum();
            let objects = text::count(more, "more object", "more objects");
            let message = format!("{objects}, for other reasons; --json lists all");
            self.problem(first.code(), &message);
        }
    }

    /// Prints the failure of a command, if it failed, and gives the exit code.
    pub(crate) fn conclude(&mut self, result: Result<Exit, Failure>) -> Exit {
        // The exit code of a command stands even if its output is not read to the end.
        let flushed = result.and_then(|exit| Failure::unless_closed(self.flush()).map(|()| exit));
        let failure = match flushed {
            Ok(exit) => return exit,
            Err(failure) => failure,
        };
        self.failure(&failure);
        if let Failure::Refused(error) | Failure::Error(error) = &failure {
            self.hints.extend(missing_folder(error));
            self.hints.extend(pattern(error));
            self.hints.extend(without_ranges(error));
        }
        for hint in std::mem::take(&mut self.hints) {
            self.note(&hint);
        }
        if let Some(error) = ErrorBody::of(&failure)
            && self.json
        {
            let _ = self.document(&object! { error }); // The exit code shows the failure too.
            let _ = self.flush();
        }
        failure.exit()
    }

    /// `error[code]: message`, on stderr. Names of files are as untrusted as their contents.
    pub(crate) fn problem(&self, code: &str, message: &str) {
        self.stderr("31", &format!("error[{code}]"), &printable(message));
    }

    /// `warning[code]: where: what`, on stderr, for the first few. Warnings about objects come first,
    /// because a file may have hundreds of its own.
    pub(crate) fn warnings(&self, warnings: &[Warning]) {
        self.warn("", warnings);
    }

    /// As [`Output::warnings`], each with the file that it is about.
    pub(crate) fn warnings_about(&self, path: &Path, warnings: &[Warning]) {
        self.warn(&format!("{}: ", path.display()), warnings);
    }

    /// The warning that the file is read as it was before an edit, for commands that show no others.
    pub(crate) fn unfinished_edit(&self, path: &Path, file: &File) {
        let mut warnings = file.warnings();
        warnings.retain(|warning| warning.code == "unfinished-edit");
        self.warnings_about(path, &warnings);
    }

    /// Says that `file` is a delta, whose objects are changes.
    pub(crate) fn delta(&self, path: &Path, file: &File) {
        if is_delta(file) {
            let path = text::path(path);
            self.note(&format!(
                "{path} is a delta: --base BASE reads the file that it makes of BASE"
            ));
        }
    }

    /// The warning that the end of the file is missing, for commands that show no others.
    pub(crate) fn truncated(&self, path: &Path, file: &File) {
        let warning = file.truncated().map(Warning::from);
        self.warnings_about(path, warning.as_slice());
    }

    fn warn(&self, place: &str, warnings: &[Warning]) {
        let (of_objects, of_file): (Vec<&Warning>, Vec<&Warning>) =
            warnings.iter().partition(|warning| warning.object.is_some());
        let warnings = of_objects.into_iter().chain(of_file);
        let causes = by_cause(warnings, |warning| (warning.code, warning.message.clone()));
        let tell = |code: &str, message: &str| {
            self.stderr(
                "33",
                &format!("warning[{code}]"),
                &printable(&format!("{place}{message}")),
            );
        };
        let (causes, more) = causes.split_at(causes.len().min(WARNINGS));
        for like in causes {
            let (shown, others) = like.split_at(like.len().min(OF_ONE_CAUSE));
            shown.iter().for_each(|warning| tell(warning.code, &warning.to_string()));
            if let Some(other) = others.first() {
                let others = text::count(others.len() as u64, "other warning", "other warnings");
                tell(other.code, &format!("and {others}, for the same reason; --json lists all"));
            }
        }
        let more: usize = more.iter().map(Vec::len).sum();
        if more > 0 {
            self.stderr(
                "33",
                "warning",
                &printable(&format!("{place}{more} more are not shown; --json lists all")),
            );
        }
    }

    /// `note: message`, on stderr, after the error of the command.
    pub(crate) fn hint(&mut self, message: impl Into<String>) {
        self.hints.push(message.into());
    }

    /// Drops the hints so far, for an error that takes the place of the one they explain.
    pub(crate) fn forget_hints(&mut self) {
        self.hints.clear();
    }

    /// `note: message`, on stderr.
    pub(crate) fn note(&self, message: &str) {
        self.stderr("36", "note", message);
    }

    /// Says in one line what casts have lost.
    pub(crate) fn casts(&self, casts: &[Cast]) {
        let notable = casts.iter().filter(|cast| cast.is_notable()).map(Cast::to_string);
        let notable = notable.collect::<Vec<_>>().join("; ");
        if !self.json && !notable.is_empty() {
            self.note(&notable);
        }
    }

    fn stderr(&self, color: &str, label: &str, message: &str) {
        let [_, colored] = self.colors;
        // An error of stderr cannot be reported.
        let _ = if colored {
            writeln!(io::stderr(), "\x1b[1;{color}m{label}\x1b[0m: {message}")
        } else {
            writeln!(io::stderr(), "{label}: {message}")
        };
    }
}

/// Findings of one code and one text, but for its numbers, together, in the order of the first of each.
fn by_cause<T: Copy>(
    findings: impl IntoIterator<Item = T>,
    cause: impl Fn(T) -> (&'static str, String),
) -> Vec<Vec<T>> {
    let mut causes: Vec<Vec<T>> = Vec::new();
    let mut places = HashMap::new();
    for finding in findings {
        let (code, text) = cause(finding);
        let text = text.replace(|letter: char| letter.is_ascii_digit(), "");
        let place = *places.entry((code, text)).or_insert(causes.len());
        match causes.get_mut(place) {
            Some(like) => like.push(finding),
            None => causes.push(vec![finding]),
        }
    }
    causes
}

/// The folder of a file that was not found, if that does not exist either.
fn missing_folder(error: &Error) -> Option<String> {
    let folder = error.path().filter(|_| error.kind() == ErrorKind::Io)?.parent()?;
    let is_local = !folder.to_str().is_some_and(is_url);
    let is_missing = is_local && folder != Path::new("") && !folder.exists();
    is_missing.then(|| format!("the folder {} does not exist", text::path(folder)))
}

/// What to do instead of `*.zt`, which the shells of Windows do not replace by names.
fn pattern(error: &Error) -> Option<String> {
    let path = error.path()?.to_str().filter(|path| !is_url(path))?;
    let is_pattern = cfg!(windows) && path.contains(['*', '?']) && !path.starts_with(r"\\?\");
    is_pattern.then(|| {
        "Windows does not replace * and ? by names: give the files, or their folder".to_owned()
    })
}

/// What to do if a server sends whole files only.
fn without_ranges(error: &Error) -> Option<String> {
    let url = error.path()?.to_str().filter(|path| is_url(path))?;
    // The text of `object_store`, which has no variant for it.
    let has_none = error.to_string().contains("Range request not supported");
    has_none.then(|| {
        let url = printable(url);
        format!("the server sends whole files only: `curl -L '{url}' | zt ls -` reads all of it")
    })
}

fn failure(error: io::Error) -> Failure {
    if is_closed_pipe(&error) {
        Failure::ClosedPipe
    } else {
        Failure::Error(of_stdout(&error).into())
    }
}

/// Whether the reader of a pipe has closed it.
pub(crate) fn is_closed_pipe(error: &io::Error) -> bool {
    /// `ERROR_PIPE_NOT_CONNECTED`, for which the standard library has no kind.
    const NOT_CONNECTED: i32 = 233;
    error.kind() == io::ErrorKind::BrokenPipe
        || cfg!(windows) && error.raw_os_error() == Some(NOT_CONNECTED)
}

/// The error with "stdout" in its message: a full disk may not be the one of the files.
pub(crate) fn of_stdout(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("stdout: {error}"))
}

/// Whether the environment forbids colours on a terminal.
fn refuses_color(no_color: Option<OsString>, term: Option<OsString>) -> bool {
    // https://no-color.org: set and not empty.
    no_color.is_some_and(|value| !value.is_empty()) || term.is_some_and(|name| name == "dumb")
}

#[cfg(test)]
mod tests {
    use super::refuses_color;

    #[test]
    fn no_color_and_a_dumb_terminal_refuse_colours() {
        for (no_color, term, refused) in [
            (None, None, false),
            (Some(""), Some("xterm"), false),
            (Some("1"), Some("xterm"), true),
            (None, Some("dumb"), true),
        ] {
            let [no_color_, term_] = [no_color, term].map(|it| it.map(Into::into));
            assert_eq!(refuses_color(no_color_, term_), refused, "{no_color:?} {term:?}");
        }
    }
}
