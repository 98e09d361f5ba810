//! Why a command ends early.

use zt::{Error, ErrorKind, codes};

use crate::failure::{Exit, signals};

/// The code of a lack of memory, which is no fault of the file.
const NO_MEMORY: &str = "allocation";

/// Why a command ends early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A file that could not be opened.
    Refused(Error),
    /// Any other error of the library.
    Error(Error),
    /// Arguments that contradict each other or the files.
    Usage { code: &'static str, message: String },
    /// The reader of our output has closed the pipe, which is no error.
    ClosedPipe,
    /// The reader of a file on stdout has closed the pipe before its end.
    CutOff,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Error(error)
    }
}

impl Failure {
    /// Code `misuse`.
    pub(crate) fn misuse(message: impl Into<String>) -> Self {
        Failure::Usage { code: "misuse", message: message.into() }
    }

    /// The same failure, about the file at `path`.
    pub(crate) fn with_path(self, path: &std::path::Path) -> Self {
        match self {
            Failure::Refused(error) => Failure::Refused(error.with_path(path)),
            Failure::Error(error) => Failure::Error(error.with_path(path)),
            other => other,
        }
    }

    /// Code `overwrite`.
    pub(crate) fn overwrite(path: &std::path::Path, why: &str) -> Self {
        Failure::Usage { code: "overwrite", message: format!("{}: {why}", path.display()) }
    }

    /// The result of printing, where a closed pipe does not end the command.
    pub(crate) fn unless_closed(printed: Result<(), Failure>) -> Result<(), Failure> {
        match printed {
            Err(Failure::ClosedPipe) => Ok(()),
            printed => printed,
        }
    }

    /// Whether a command for several files stops here, because the failure is not about one file.
    pub(crate) fn ends_all(&self) -> bool {
        match self {
            Failure::Refused(error) | Failure::Error(error) => {
                error.kind() == ErrorKind::Interrupted
            }
            Failure::Usage { .. } | Failure::ClosedPipe | Failure::CutOff => true,
        }
    }

    pub(crate) fn exit(&self) -> Exit {
        match self {
            Failure::Refused(error) => exit_of(error, Exit::Refused),
            Failure::Error(error) => exit_of(error, Exit::Failed),
            Failure::Usage { .. } => Exit::Usage,
            Failure::ClosedPipe => Exit::Ok,
            Failure::CutOff => Exit::CutOff,
        }
    }
}

/// The exit code of a command that does not stop at the faults of objects.
pub(crate) fn of_findings<'a>(found: impl IntoIterator<Item = &'a Error>) -> Exit {
    let mut exit = Exit::Ok;
    for error in found {
        exit = match (exit, error.kind()) {
            (_, ErrorKind::Io) => Exit::Io,
            _ if error.code() == NO_MEMORY => Exit::Io,
            (Exit::Io, ErrorKind::Unsupported) => Exit::Io,
            // The object may be sound.
            (_, ErrorKind::Unsupported) => Exit::Unsupported,
            _ => return Exit::Failed,
        };
    }
    exit
}

/// The exit code of an error; `of_file` if the file is at fault.
fn exit_of(error: &Error, of_file: Exit) -> Exit {
    match (error.kind(), error.code()) {
        // The output kind cannot represent it: neither the call nor the file is at fault.
        (_, "lossy") => Exit::Unsupported,
        (_, "unknown-kind") => of_file,
        // The machine is at fault, not the file.
        (_, NO_MEMORY) => Exit::Io,
        (_, codes::LOCKED) => Exit::Locked,
        (ErrorKind::Io, _) => Exit::Io,
        (ErrorKind::Malformed | ErrorKind::DigestMismatch | ErrorKind::Limit, _) => of_file,
        (ErrorKind::Misuse, _) => Exit::Usage,
        (ErrorKind::Interrupted, _) => signals::caught().unwrap_or(Exit::Interrupted),
        _ => Exit::Unsupported,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_read_is_no_fault_of_the_file() {
        let error = |kind, code| Error::new(kind, code, "");
        let disk = error(ErrorKind::Io, "io");
        let memory = error(ErrorKind::Limit, "allocation");
        let damage = error(ErrorKind::DigestMismatch, "digest-mismatch");
        assert_eq!(of_findings([]), Exit::Ok);
        assert_eq!(of_findings([&disk, &memory]), Exit::Io);
        assert_eq!(of_findings([&disk, &damage]), Exit::Failed);
        assert_eq!(of_findings([&damage, &disk]), Exit::Failed);
        let unsupported = error(ErrorKind::Unsupported, "unsupported");
        assert_eq!(of_findings([&unsupported]), Exit::Unsupported);
        assert_eq!(of_findings([&disk, &unsupported]), Exit::Io);
        assert_eq!(of_findings([&unsupported, &damage]), Exit::Failed);
    }
}
