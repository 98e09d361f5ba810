//! The errors of tasks, by the party that must act.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};

pub(crate) type Result<T> = std::result::Result<T, Error>;

#[derive(Debug)]
pub(crate) enum Error {
    /// The command line is wrong.
    Usage(String),
    /// The machine lacks a tool that the repository does not bring: `ci` skips the step, unless it runs in
    /// continuous integration.
    Unavailable(String),
    /// A program could not be started.
    Start { command: String, source: io::Error },
    /// A program ran and failed; its own output, above ours, has the reason.
    Failed { command: String, status: ExitStatus },
    /// A file of the repository, or of the target directory, could not be used.
    File { path: PathBuf, source: io::Error },
    /// The repository breaks a rule: one line for each place.
    Findings { rule: &'static str, places: Vec<String> },
}

impl Error {
    /// For `map_err` on operations on `path`.
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::File { path, source }
    }

    /// `Ok` if no place breaks the rule.
    pub(crate) fn unless_empty(rule: &'static str, places: Vec<String>) -> Result<()> {
        if places.is_empty() { Ok(()) } else { Err(Self::Findings { rule, places }) }
    }

    /// The exit code of the program that failed, so that a script sees the same code as without us; 2 for a
    /// wrong command line, otherwise 1.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage(_) => ExitCode::from(2),
            Self::Failed { status, .. } => status
                .code()
                .and_then(|code| u8::try_from(code).ok())
                .filter(|&code| code != 0)
                .map_or(ExitCode::FAILURE, ExitCode::from),
            _ => ExitCode::FAILURE,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message) | Self::Unavailable(message) => f.write_str(message),
            Self::Start { command, source } => write!(f, "cannot start `{command}`: {source}"),
            Self::Failed { command, status } => write!(f, "`{command}`: {status}"),
            Self::File { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Findings { rule, places } => {
                f.write_str(rule)?;
                places.iter().try_for_each(|place| write!(f, "\n  {place}"))
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Start { source, .. } | Self::File { source, .. } => Some(source),
            _ => None,
        }
    }
}
