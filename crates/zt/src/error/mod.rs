//! Room `error`: one error for everything, with the object, the component and the bytes it is about.
//!
//! | module | holds |
//! | --- | --- |
//! | this one | [`Error`], [`ErrorKind`], and `Fault`, the faults that this crate finds itself |
//! | [`codes`] | every code of errors and warnings, with an explanation |
//!
//! An error wraps the error of the crate that found the fault: `zt-container`, `zt-manifest`,
//! `zt-formats`, this crate, or a crate for another kind of file.
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
    /// The file is sound, but this build or this operation does not support it.
    Unsupported,
    /// The file needs more than the limits allow.
    Limit,
    /// The call is wrong, whatever the file: an unknown name, a wrong type.
    Misuse,
    /// The caller's progress function asked to stop.
    Interrupted,
}

#[derive(Debug, Clone, Default)]
struct Location {
    path: Option<PathBuf>,
    object: Option<String>,
    component: Option<String>,
    offset: Option<u64>,
    end: Option<u64>,
}

#[derive(Debug, thiserror::Error)]
#[error(transparent)]
enum Cause {
    Container(zt_container::Error),
    Manifest(zt_manifest::Error),
    // The place has the role.
    #[error("{}", _0.message())]
    Format(zt_formats::Error),
    Facade(Fault),
    #[error("{error}")]
    Other {
        kind: ErrorKind,
        code: &'static str,
        error: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// The faults that this crate finds itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    #[error("there is no object of this name")]
    NoSuchObject,
    #[error("there is no component \"{}\"", _0.escape_debug())]
    NoSuchComponent(String),
    #[error("an object of this name exists already")]
    DuplicateName,
    #[error("the object has a component of this role already")]
    DuplicateRole,
    #[error("the name is longer than the limit of {0} bytes")]
    NameTooLong(usize),
    #[error("the shape has more than the limit of {0} dimensions")]
    TooManyDimensions(usize),
    #[error("the dimension {0} is longer than this machine can index")]
    LongDimension(u64),
    #[error("the object's format is {}, expected {expected}", found.escape_debug())]
    WrongFormat { expected: &'static str, found: String },
    #[error("the format \"{}\" is not registered: read the components, not the value", _0.escape_debug())]
    UnknownFormat(String),
    #[error(
        "the object is incomplete: its writer was not finished, or an error ended it; write the file again"
    )]
    UnfinishedObject,
    #[error("a component of the object is incomplete: call its `finish` first")]
    UnfinishedComponent,
    #[error("the name is empty: `WriteOptions::empty_names` allows that")]
    EmptyName,
    #[error("another program is editing the file")]
    Locked,
    #[error(
        "a program that reads the file keeps a lock on it: end that program, or edit a copy and rename it"
    )]
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "not known there"))]
    LockedByReader,
    #[error(
        "the file system has no locks, which keep two edits apart: mount it with locks (Lustre: -o flock), or edit a copy on another disk"
    )]
    #[cfg_attr(windows, expect(dead_code, reason = "a share mode is always there"))]
    NoLocks,
    #[error(
        "another file took this name during the edit: the edit is in the replaced file; edit the new one"
    )]
    Replaced,
    #[error("files of version {0} cannot be edited in place: convert the file to 1.2 first")]
    NotEditable(&'static str),
    #[error(
        "a bool component can only share bytes that were written as bool: others may be neither 0 nor 1"
    )]
    UncheckedBools,
    #[error(
        "truncated: {found}{} bytes are there; fetch the rest from byte {found} on",
        .expected.map_or(String::new(), |expected| format!(" of {expected}"))
    )]
    Truncated { found: u64, expected: Option<u64> },
    #[error("stopped on request")]
    Interrupted,
    #[error("is a folder")]
    IsAFolder,
    #[error("is the name of a device")]
    IsADevice,
    #[error("exists already")]
    Exists,
    #[error("the byte at {0} is between blobs and is not zero")]
    Padding(u64),
    #[error("shares some but not all of its bytes with {}", _0.escape_debug())]
    Overlap(String),
    #[error(
        "components share bytes so often that reading each takes more than the limit of {0} times the file"
    )]
    OverlapLimit(u64),
    #[cfg_attr(not(feature = "rayon"), expect(dead_code, reason = "there are no threads"))]
    #[error("the threads could not be started")]
    ThreadPool,
}

impl Error {
    /// For calls out of order: the result of a dropped task, a write to a blob that was not begun.
    pub(crate) fn out_of_order() -> Self {
        zt_container::Error::Misuse(zt_container::Misuse::Order).into()
    }

    /// An error of a reader or writer of another kind of file, with the text of `error`.
    ///
    /// `code` is one of [`codes::ALL`] where one fits. A code of your own is allowed. It begins with the
    /// name of your kind and a hyphen, such as `vec1-header`, so that no later version of this crate
    /// gives it another meaning.
    pub fn new(
        kind: ErrorKind,
        code: &'static str,
        error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::from_cause(Cause::Other { kind, code, error: error.into() })
    }

    /// The error that [`Error::new`] was given, to be downcast; `None` for all other errors.
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
        let location = Location { offset, ..Location::default() };
        Error { cause: Arc::new(cause), location: Box::new(location) }
    }

    /// Who is at fault.
    pub fn kind(&self) -> ErrorKind {
        match &*self.cause {
            Cause::Container(error) => container_kind(error),
            Cause::Manifest(error) => manifest_kind(error),
            Cause::Format(error) => format_kind(error),
            Cause::Facade(fault) => fault.kind_and_code().0,
            Cause::Other { kind, .. } => *kind,
        }
    }

    /// The stable code in kebab-case, one of [`codes::ALL`] unless a kind of file from elsewhere has
    /// [its own](Error::new). Match on this, never on the text.
    pub fn code(&self) -> &'static str {
        match &*self.cause {
            Cause::Container(error) => error.code(),
            Cause::Manifest(error) => error.code(),
            Cause::Format(error) => error.code(),
            Cause::Facade(fault) => fault.kind_and_code().1,
            Cause::Other { code, .. } => code,
        }
    }

    /// The path of the file, if it has one.
    pub fn path(&self) -> Option<&Path> {
        self.location.path.as_deref()
    }

    /// The name of the faulty object, if only one is faulty.
    pub fn object(&self) -> Option<&str> {
        self.location.object.as_deref()
    }

    /// The role of the faulty component, if only one is faulty.
    pub fn component(&self) -> Option<&str> {
        self.location.component.as_deref()
    }

    /// The absolute offset of the first byte at fault.
    pub fn offset(&self) -> Option<u64> {
        self.location.offset
    }

    /// The absolute offset one past the last byte at fault.
    pub fn end(&self) -> Option<u64> {
        self.location.end
    }

    /// What is wrong, without the place.
    pub fn message(&self) -> String {
        self.cause.to_string()
    }

    /// Names the object, unless the error names one already.
    pub fn with_object(mut self, name: &str) -> Self {
        self.location.object.get_or_insert_with(|| name.to_owned());
        self
    }

    /// The same error for another object.
    pub(crate) fn of_object(mut self, name: &str) -> Self {
        self.location.object = Some(name.to_owned());
        self
    }

    /// Names the component, unless the error names one already.
    pub fn with_component(mut self, role: &str) -> Self {
        self.location.component.get_or_insert_with(|| role.to_owned());
        self
    }

    /// Names the file, unless the error names one already.
    pub fn with_path(mut self, path: &Path) -> Self {
        self.location.path.get_or_insert_with(|| path.to_owned());
        self
    }

    /// Adds the place of the faulty bytes, unless the error has a place already.
    pub fn with_span(mut self, span: Span) -> Self {
        if self.location.offset.is_none() {
            self.location.offset = Some(span.offset());
            self.location.end = Some(span.end());
        }
        self
    }

    /// Adds the offset where the fault begins, unless the error has one already.
    pub fn with_offset(mut self, offset: u64) -> Self {
        self.location.offset.get_or_insert(offset);
        self
    }

    /// The manifest's reader counts offsets from the manifest's first byte. These are turned into
    /// offsets in the file.
    pub(crate) fn in_manifest(error: zt_manifest::Error, manifest: Span) -> Self {
        let within_manifest = !matches!(error, zt_manifest::Error::Container(_));
        let mut error = Self::from_cause(Cause::Manifest(error));
        if within_manifest && let Some(offset) = &mut error.location.offset {
            *offset = offset.strict_add(manifest.offset());
        }
        error
    }
}

impl Fault {
    /// Who is at fault, and the stable code.
    fn kind_and_code(&self) -> (ErrorKind, &'static str) {
        use ErrorKind::{Io, Limit, Malformed, Misuse, Unsupported};
        match self {
            Fault::NoSuchObject | Fault::NoSuchComponent(_) => (Misuse, "not-found"),
            Fault::DuplicateName | Fault::DuplicateRole => (Misuse, "duplicate-name"),
            Fault::Exists => (Misuse, "overwrite"),
            Fault::UnknownFormat(_) | Fault::NotEditable(_) | Fault::LongDimension(_) => {
                (Unsupported, "unsupported")
            }
            Fault::Locked | Fault::LockedByReader => (Io, "locked"),
            Fault::NoLocks => (Io, "no-locks"),
            Fault::Replaced => (Io, "replaced"),
            Fault::IsAFolder | Fault::IsADevice | Fault::ThreadPool => (Io, "io"),
            Fault::Interrupted => (ErrorKind::Interrupted, "interrupted"),
            Fault::Truncated { .. } => (Malformed, "truncated"),
            Fault::Padding(_) => (Malformed, "padding"),
            Fault::Overlap(_) => (Malformed, "overlap"),
            Fault::OverlapLimit(_) => (Limit, "overlap"),
            Fault::NameTooLong(_)
            | Fault::TooManyDimensions(_)
            | Fault::WrongFormat { .. }
            | Fault::UnfinishedObject
            | Fault::UnfinishedComponent
            | Fault::EmptyName
            | Fault::UncheckedBools => (Misuse, "misuse"),
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
        E::Digest { .. } => ErrorKind::DigestMismatch,
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
        if let Some(path) = self.path() {
            write!(f, "{}: ", path.display())?;
        }
        let mut separator = "";
        if let Some(object) = self.object() {
            separator = " ";
            write!(f, "{}", object.escape_debug())?;
            if let Some(component) = self.component() {
                write!(f, "/{}", component.escape_debug())?;
            }
        } else if let Some(component) = self.component() {
            separator = " ";
            write!(f, "component {}", component.escape_debug())?;
        }
        match (self.offset(), self.end()) {
            (Some(offset), Some(end)) => write!(f, "{separator}at {offset}..{end}: ")?,
            (Some(offset), None) => write!(f, "{separator}at {offset}: ")?,
            _ if self.object().or(self.component()).is_some() => f.write_str(": ")?,
            _ => {}
        }
        self.cause.fmt(f)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Error");
        debug.field("code", &self.code());
        debug.field("location", &self.location);
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
            // A source that decodes wraps an error of this type in an `io::Error`.
            zt_container::Error::Io(error) => error.into(),
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

/// An [`Error`] that passed through an [`io::Write`](std::io::Write) comes back unchanged.
impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        match error.downcast::<Error>() {
            Ok(error) => error,
            Err(error) => Self::from_cause(Cause::Container(error.into())),
        }
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        Self::from_cause(Cause::Facade(fault))
    }
}

/// For [`Read`](std::io::Read) and [`Write`](std::io::Write): the `io::Error` carries this error, and
/// its kind is the system's where the system failed.
impl From<Error> for std::io::Error {
    fn from(error: Error) -> Self {
        use std::io::ErrorKind as Io;
        let kind = match (&*error.cause, error.kind()) {
            (Cause::Container(zt_container::Error::Io(error)), _) => error.kind(),
            (_, ErrorKind::Malformed | ErrorKind::DigestMismatch) => Io::InvalidData,
            (_, ErrorKind::Unsupported) => Io::Unsupported,
            (_, ErrorKind::Misuse) => Io::InvalidInput,
            _ => Io::Other,
        };
        // Loops of std try again after that kind. A reader or writer of this crate has failed for good.
        let is_final = kind != Io::Interrupted;
        std::io::Error::new(if is_final { kind } else { Io::Other }, error)
    }
}
