//! Room `error`: one error for everything, with the object, the component and the bytes it is about.
//!
//! | module | holds |
//! | --- | --- |
//! | this one | [`Error`], [`ErrorKind`], and `Fault`, the faults that this crate finds itself |
//! | [`codes`] | every code of errors and warnings, with an explanation |
//!
//! An error wraps the error of the crate that found the fault (`zt-container`, `zt-manifest`,
//! `zt-formats`), or a fault of this crate, or the error of a crate for other kinds of files.
//!
//! It knows those three crates.
//!
//! It must not know any other room. Each room adds names and offsets with `Error::with_*`.

pub mod codes;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use zt_container::Span;

/// `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, where, and who is at fault.
///
/// Cheap to clone: a faulty object gives the same error each time it is asked for.
///
/// ```
/// let error = zt::File::from_bytes(b"GGUF....".to_vec()).unwrap_err();
/// assert_eq!(error.kind(), zt::ErrorKind::Malformed);
/// assert_eq!(error.code(), "not-zt");
/// ```
#[derive(Clone)]
pub struct Error {
    cause: Arc<Cause>,
    location: Box<Location>,
}

/// Who is at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The system could not read or write.
    Io,
    /// The file breaks a rule of its format.
    Malformed,
    /// The stored bytes are not those that were written.
    DigestMismatch,
    /// The file is sound, and this cannot process it.
    Unsupported,
    /// The file asks for more than the limits grant.
    Limit,
    /// A call that no file can cause: an unknown name, a wrong type.
    Misuse,
    /// The caller's progress function asked to stop.
    Interrupted,
}

/// Where in which file.
#[derive(Debug, Clone, Default)]
struct Location {
    path: Option<PathBuf>,
    object: Option<String>,
    component: Option<String>,
    offset: Option<u64>,
    end: Option<u64>,
}

#[derive(Debug)]
enum Cause {
    Container(zt_container::Error),
    Manifest(zt_manifest::Error),
    Format(zt_formats::Error),
    Facade(Fault),
    Other {
        kind: ErrorKind,
        code: &'static str,
        error: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// What only the facade can find wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    NoSuchObject,
    NoSuchComponent {
        role: String,
    },
    DuplicateName,
    DuplicateRole,
    NameTooLong {
        limit: usize,
    },
    TooManyDimensions {
        limit: usize,
    },
    WrongFormat {
        expected: &'static str,
        found: String,
    },
    UnknownFormat {
        format: String,
    },
    UnfinishedObject,
    Locked,
    NotEditable {
        layout: &'static str,
    },
    UncheckedBools,
    Interrupted,
    IsAFolder,
    Exists,
    Padding {
        offset: u64,
    },
    Overlap {
        other: String,
    },
    OverlapLimit {
        limit: u64,
    },
    #[cfg_attr(
        not(feature = "rayon"),
        expect(dead_code, reason = "there are no threads")
    )]
    ThreadPool,
}

impl Error {
    /// Only a task that was dropped has no result, and only a blob that was begun is written.
    pub(crate) fn out_of_order() -> Self {
        zt_container::Error::Misuse(zt_container::Misuse::Order).into()
    }

    /// An error of another format's reader or writer. `code` is one of `spec/errors.md`; the text
    /// is `error`'s.
    pub fn new(
        kind: ErrorKind,
        code: &'static str,
        error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::from_cause(Cause::Other {
            kind,
            code,
            error: error.into(),
        })
    }

    /// What [`Error::new`] was given, for those who know its type; `None` of all other errors.
    #[must_use]
    pub fn inner(&self) -> Option<&(dyn std::error::Error + Send + Sync + 'static)> {
        match &*self.cause {
            Cause::Other { error, .. } => Some(&**error),
            _ => None,
        }
    }

    fn from_cause(cause: Cause) -> Self {
        let offset = match &cause {
            Cause::Container(error) => error.offset(),
            Cause::Manifest(zt_manifest::Error::Container(error)) => error.offset(),
            Cause::Manifest(error) => error.offset(),
            _ => None,
        };
        let location = Location {
            offset,
            ..Location::default()
        };
        Error {
            cause: Arc::new(cause),
            location: Box::new(location),
        }
    }

    /// Who is at fault.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match &*self.cause {
            Cause::Container(error) => container_kind(error),
            Cause::Manifest(error) => manifest_kind(error),
            Cause::Format(error) => format_kind(error),
            Cause::Facade(fault) => fault.kind(),
            Cause::Other { kind, .. } => *kind,
        }
    }

    /// The stable kebab-case code, one of `spec/errors.md`. Match on this, never on the text.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match &*self.cause {
            Cause::Container(error) => error.code(),
            Cause::Manifest(error) => error.code(),
            Cause::Format(error) => error.code(),
            Cause::Facade(fault) => fault.code(),
            Cause::Other { code, .. } => code,
        }
    }

    /// The file, where it has a path.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.location.path.as_deref()
    }

    /// The object's name, where the fault is one object's.
    #[must_use]
    pub fn object(&self) -> Option<&str> {
        self.location.object.as_deref()
    }

    /// The component's role, where the fault is one component's.
    #[must_use]
    pub fn component(&self) -> Option<&str> {
        self.location.component.as_deref()
    }

    /// The absolute offset of the first byte at fault.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        self.location.offset
    }

    /// The absolute offset one past the last byte at fault.
    #[must_use]
    pub fn end(&self) -> Option<u64> {
        self.location.end
    }

    /// What is wrong, without where.
    #[must_use]
    pub fn message(&self) -> String {
        self.cause.to_string()
    }

    /// Names the object, unless a deeper layer has.
    #[must_use]
    pub fn with_object(mut self, name: &str) -> Self {
        self.location.object.get_or_insert_with(|| name.to_owned());
        self
    }

    /// Names another object that has the same fault.
    pub(crate) fn of_object(mut self, name: &str) -> Self {
        self.location.object = Some(name.to_owned());
        self
    }

    /// Names the component, unless a deeper layer has.
    #[must_use]
    pub fn with_component(mut self, role: &str) -> Self {
        self.location
            .component
            .get_or_insert_with(|| role.to_owned());
        self
    }

    /// Names the file, unless a deeper layer has.
    #[must_use]
    pub fn with_path(mut self, path: &Path) -> Self {
        self.location.path.get_or_insert_with(|| path.to_owned());
        self
    }

    /// Says which bytes are at fault, unless a deeper layer has.
    #[must_use]
    pub fn with_span(mut self, span: Span) -> Self {
        if self.location.offset.is_none() {
            self.location.offset = Some(span.offset());
            self.location.end = Some(span.end());
        }
        self
    }

    /// Says where the fault begins, unless a deeper layer has.
    #[must_use]
    pub fn with_offset(mut self, offset: u64) -> Self {
        self.location.offset.get_or_insert(offset);
        self
    }

    /// Offsets of the manifest's reader count from its first byte; these are the file's.
    pub(crate) fn in_manifest(error: zt_manifest::Error, manifest: Span) -> Self {
        let within_manifest = !matches!(error, zt_manifest::Error::Container(_));
        let mut error = Self::from_cause(Cause::Manifest(error));
        if within_manifest && let Some(offset) = &mut error.location.offset {
            *offset = offset.saturating_add(manifest.offset());
        }
        error
    }
}

impl Fault {
    fn kind(&self) -> ErrorKind {
        match self {
            Fault::Interrupted => ErrorKind::Interrupted,
            Fault::UnknownFormat { .. } | Fault::NotEditable { .. } => ErrorKind::Unsupported,
            Fault::IsAFolder | Fault::Locked | Fault::ThreadPool => ErrorKind::Io,
            Fault::Padding { .. } | Fault::Overlap { .. } => ErrorKind::Malformed,
            Fault::OverlapLimit { .. } => ErrorKind::Limit,
            _ => ErrorKind::Misuse,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Fault::NoSuchObject | Fault::NoSuchComponent { .. } => "not-found",
            Fault::DuplicateName | Fault::DuplicateRole => "duplicate-name",
            Fault::UnknownFormat { .. } | Fault::NotEditable { .. } => "unsupported",
            Fault::Locked => "locked",
            Fault::Interrupted => "interrupted",
            Fault::IsAFolder | Fault::ThreadPool => "io",
            Fault::Exists => "overwrite",
            Fault::Padding { .. } => "padding",
            Fault::Overlap { .. } | Fault::OverlapLimit { .. } => "overlap",
            Fault::NameTooLong { .. }
            | Fault::TooManyDimensions { .. }
            | Fault::WrongFormat { .. }
            | Fault::UnfinishedObject
            | Fault::UncheckedBools => "misuse",
        }
    }
}

fn container_kind(error: &zt_container::Error) -> ErrorKind {
    use zt_container::Error as E;
    match error {
        E::Io(_) => ErrorKind::Io,
        E::Unsupported(_) => ErrorKind::Unsupported,
        E::Limit(_) => ErrorKind::Limit,
        E::Misuse(_) => ErrorKind::Misuse,
        E::DigestMismatch { .. } => ErrorKind::DigestMismatch,
        _ => ErrorKind::Malformed,
    }
}

fn manifest_kind(error: &zt_manifest::Error) -> ErrorKind {
    use zt_manifest::Error as E;
    match error {
        E::Container(error) => container_kind(error),
        E::Limit { .. } => ErrorKind::Limit,
        E::Misuse { .. } => ErrorKind::Misuse,
        _ => ErrorKind::Malformed,
    }
}

fn format_kind(error: &zt_formats::Error) -> ErrorKind {
    use zt_formats::Error as E;
    match error {
        E::Unsupported { .. } => ErrorKind::Unsupported,
        E::Misuse { .. } => ErrorKind::Misuse,
        E::Allocation { .. } => ErrorKind::Limit,
        E::Unread => ErrorKind::Io,
        _ => ErrorKind::Malformed,
    }
}

impl fmt::Display for Error {
    /// `model.zt: layers.0.weight/data at 64..4160: what is wrong`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Location {
            path,
            object,
            component,
            offset,
            end,
        } = &*self.location;
        if let Some(path) = path {
            write!(f, "{}: ", path.display())?;
        }
        if let Some(object) = object {
            write!(f, "{}", object.escape_debug())?;
            if let Some(component) = component {
                write!(f, "/{}", component.escape_debug())?;
            }
        }
        let separator = if object.is_some() { " " } else { "" };
        match (offset, end) {
            (Some(offset), Some(end)) => write!(f, "{separator}at {offset}..{end}: ")?,
            (Some(offset), None) => write!(f, "{separator}at {offset}: ")?,
            _ if object.is_some() => f.write_str(": ")?,
            _ => {}
        }
        self.cause.fmt(f)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Container(error) => error.fmt(f),
            Cause::Manifest(error) => error.fmt(f),
            Cause::Format(error) => error.fmt(f),
            Cause::Facade(fault) => fault.fmt(f),
            Cause::Other { error, .. } => error.fmt(f),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::NoSuchObject => f.write_str("there is no object of this name"),
            Fault::NoSuchComponent { role } => {
                write!(f, "there is no component \"{}\"", role.escape_debug())
            }
            Fault::DuplicateName => f.write_str("an object of this name is there already"),
            Fault::DuplicateRole => f.write_str("the object has a component of this role already"),
            Fault::NameTooLong { limit } => {
                write!(f, "the name is longer than the limit of {limit} bytes")
            }
            Fault::TooManyDimensions { limit } => {
                write!(f, "the shape has more than the limit of {limit} dimensions")
            }
            Fault::WrongFormat { expected, found } => {
                write!(f, "the object is {}, not {expected}", found.escape_debug())
            }
            Fault::UnknownFormat { format } => {
                write!(
                    f,
                    "the format \"{}\" is not registered: ",
                    format.escape_debug()
                )?;
                f.write_str("its components can be read, its value cannot")
            }
            Fault::Locked => f.write_str("another program is editing the file"),
            Fault::NotEditable { layout } => write!(
                f,
                "files of version {layout} are not edited in place, only those of 1.1 and 1.2 are: \
                 convert it first"
            ),
            Fault::UnfinishedObject => f.write_str(
                "an object was begun and not finished: the file would hold its bytes alone",
            ),
            Fault::UncheckedBools => f.write_str(
                "bools share only what was written as bools: other bytes may be neither 0 nor 1",
            ),
            Fault::Interrupted => f.write_str("stopped on request"),
            Fault::IsAFolder => f.write_str("is a folder"),
            Fault::Exists => f.write_str("exists"),
            Fault::Padding { offset } => {
                write!(f, "the byte at {offset} lies between blobs and is not zero")
            }
            Fault::Overlap { other } => {
                write!(
                    f,
                    "shares some but not all of its bytes with {}",
                    other.escape_debug()
                )
            }
            Fault::OverlapLimit { limit } => write!(
                f,
                "components share bytes so often that reading each takes more than the limit of \
                 {limit} times the file"
            ),
            Fault::ThreadPool => f.write_str("the threads could not be started"),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Error");
        debug
            .field("code", &self.code())
            .field("location", &self.location);
        debug.field("cause", &self.cause).finish()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &*self.cause {
            Cause::Container(error) => error.source(),
            Cause::Other { error, .. } => error.source(),
            _ => None,
        }
    }
}

impl From<zt_container::Error> for Error {
    fn from(error: zt_container::Error) -> Self {
        match error {
            // A source that decodes says what is wrong with its bytes in an error of ours.
            zt_container::Error::Io(error) => match error.downcast::<Error>() {
                Ok(error) => error,
                Err(error) => Self::from_cause(Cause::Container(error.into())),
            },
            error => Self::from_cause(Cause::Container(error)),
        }
    }
}

impl From<zt_manifest::Error> for Error {
    fn from(error: zt_manifest::Error) -> Self {
        Self::from_cause(Cause::Manifest(error))
    }
}

impl From<zt_formats::Error> for Error {
    fn from(error: zt_formats::Error) -> Self {
        let role = error.role().map(str::to_owned);
        let error = Self::from_cause(Cause::Format(error));
        match role {
            Some(role) => error.with_component(&role),
            None => error,
        }
    }
}

/// An error of ours that passed through an [`io::Write`](std::io::Write) comes back as it was.
impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        match error.downcast::<Error>() {
            Ok(error) => error,
            Err(error) => Self::from(zt_container::Error::Io(error)),
        }
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        Self::from_cause(Cause::Facade(fault))
    }
}

/// For sinks that must speak `io::Error`: the error itself is inside, the system's kind outside.
impl From<Error> for std::io::Error {
    fn from(error: Error) -> Self {
        let kind = match &*error.cause {
            Cause::Container(zt_container::Error::Io(error)) => error.kind(),
            _ => std::io::ErrorKind::Other,
        };
        std::io::Error::new(kind, error)
    }
}

#[cfg(test)]
mod tests {
    use zt_container::{LimitExceeded, Misuse, Unsupported};
    use zt_formats::{Misuse as OfValues, Unsupported as OfFormats};

    use super::*;

    #[test]
    fn who_is_at_fault_is_known_of_every_layer() {
        let io = || zt_container::Error::Io(std::io::ErrorKind::NotFound.into());
        let misuse = zt_manifest::Misuse::DuplicateName("w".into());
        for (error, kind) in [
            (Error::from(io()), ErrorKind::Io),
            (
                zt_container::Error::Unsupported(Unsupported::NotARegularFile).into(),
                ErrorKind::Unsupported,
            ),
            (
                zt_container::Error::Limit(LimitExceeded::Manifest { limit: 1, found: 2 }).into(),
                ErrorKind::Limit,
            ),
            (
                zt_container::Error::Misuse(Misuse::Order).into(),
                ErrorKind::Misuse,
            ),
            (zt_manifest::Error::from(io()).into(), ErrorKind::Io),
            (zt_manifest::Error::Misuse(misuse).into(), ErrorKind::Misuse),
            (
                zt_manifest::Error::FooterMissing.into(),
                ErrorKind::Malformed,
            ),
            (
                zt_formats::Error::Unsupported(OfFormats::Format("x".into())).into(),
                ErrorKind::Unsupported,
            ),
            (
                zt_formats::Error::Misuse(OfValues::NotFinite { position: 0 }).into(),
                ErrorKind::Misuse,
            ),
            (
                zt_formats::Error::Allocation { byte_len: 1 }.into(),
                ErrorKind::Limit,
            ),
            (
                zt_formats::Violation::MissingComponent.of("data").into(),
                ErrorKind::Malformed,
            ),
        ] {
            assert_eq!(error.kind(), kind, "{error}");
        }
    }
}
