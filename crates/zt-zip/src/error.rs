//! Why an archive or one of its members is refused, with the numbers in it that are wrong.

use std::{fmt, io};

use zt_container::Span;

/// `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an archive or one of its members could not be read.
///
/// An inflating source wraps it in an [`io::Error`]; `Error::from` gets it back.
#[derive(Debug)]
pub enum Error {
    /// The source could not be read, memory is missing, or a CRC-32 differs.
    Container(zt_container::Error),
    /// The archive breaks a rule or a limit, or needs something unsupported.
    Archive(Violation),
}

/// The rules, limits and unsupported parts of archives. Offsets count from the beginning of the file.
///
/// * `Several` is found in a shard of a distributed checkpoint, for example.
/// * `Before`, `After` and `Comment` are only warnings.
/// * The `offset` in `Bounds` is the offset of the local header.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "its text explains each variant")]
pub enum Violation {
    NoEnd,
    Several { offset: u64 },
    Before { ignored: Span },
    After { ignored: Span },
    Comment { record: Span },
    Volumes,
    Zip64,
    Place { offset: u64, len: u64, end: u64 },
    DirectoryTooLong { found: u64, limit: u64 },
    Record { index: u64 },
    Count { declared: u64 },
    NameTooLong { found: usize, limit: usize },
    Repeated { name: String },
    Extra,
    NoLocalHeader { offset: u64 },
    OtherLocalHeader { offset: u64 },
    Bounds { offset: u64, end: u64, limit: u64 },
    StoredLength { stored: u64, declared: u64 },
    Encrypted,
    Method { method: u16 },
    Ratio { stored: u64, declared: u64 },
    Deflate { fault: Deflate, stored: Span },
}

/// What is wrong with a deflated member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "its text explains each variant")]
pub enum Deflate {
    Damaged { at: u64 },
    Short { declared: u64, found: u64 },
    Unended { declared: u64 },
    Long { declared: u64 },
    After { bytes: u64 },
}

impl Error {
    /// The stable code in kebab-case.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Error::Container(error) => error.code(),
            Error::Archive(violation) => violation.code(),
        }
    }

    pub(crate) fn is_io(&self) -> bool {
        matches!(self, Error::Container(zt_container::Error::Io(_)))
    }
}

impl Violation {
    /// Whether the archive is valid, but larger than the limits.
    #[must_use]
    pub const fn is_limit(&self) -> bool {
        use Violation as V;
        matches!(
            self,
            V::DirectoryTooLong { .. } | V::NameTooLong { .. } | V::Ratio { .. }
        )
    }

    /// Whether the archive is valid, but this crate does not support it.
    #[must_use]
    pub const fn is_unsupported(&self) -> bool {
        use Violation as V;
        matches!(self, V::Volumes | V::Encrypted | V::Method { .. })
    }

    /// The stable code in kebab-case.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Violation::Bounds { .. } => "bounds",
            Violation::Volumes | Violation::Encrypted | Violation::Method { .. } => "unsupported",
            Violation::NoEnd => "truncated",
            Violation::Ratio { .. } => "decompression-limit",
            Violation::Deflate { .. } => "deflate",
            _ => "header",
        }
    }

    /// The offset of the first byte at fault.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        match *self {
            Violation::Several { offset }
            | Violation::NoLocalHeader { offset }
            | Violation::OtherLocalHeader { offset }
            | Violation::Bounds { offset, .. } => Some(offset),
            _ => self.span().map(Span::offset),
        }
    }

    /// The bytes at fault, if their end is known.
    #[must_use]
    pub const fn span(&self) -> Option<Span> {
        match *self {
            Violation::Before { ignored: span }
            | Violation::After { ignored: span }
            | Violation::Comment { record: span }
            | Violation::Deflate { stored: span, .. } => Some(span),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Container(error) => error.fmt(f),
            Error::Archive(violation) => violation.fmt(f),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Violation as V;
        match self {
            V::NoEnd => f.write_str(
                "truncated: the end record of the zip archive is not in the last 64 KiB",
            ),
            V::Several { offset } => write!(
                f,
                "a second zip archive begins at {offset}; only one archive per file is supported"
            ),
            V::Before { ignored } => {
                let bytes = ignored.byte_len();
                write!(f, "{bytes} B before the zip archive are ignored")
            }
            V::After { ignored } => {
                let bytes = ignored.byte_len();
                write!(f, "{bytes} B after the zip archive are ignored")
            }
            V::Comment { .. } => f.write_str("the comment of the zip archive is truncated"),
            V::Volumes => f.write_str("the zip archive is split into volumes; join them first"),
            V::Zip64 => f.write_str("the zip64 records are invalid or contradict the end record"),
            V::Place { offset, len, end } => write!(
                f,
                "the directory is declared as {len} bytes at {offset}, but its end record is at {end}"
            ),
            V::DirectoryTooLong { found, limit } => {
                write!(f, "the directory has {found} bytes, the limit is {limit}")
            }
            V::Record { index } => {
                write!(f, "entry {index} of the directory is invalid or truncated")
            }
            V::Count { declared } => {
                write!(
                    f,
                    "the directory does not have the {declared} declared members"
                )
            }
            V::NameTooLong { found, limit } => {
                write!(f, "a member's name has {found} bytes, the limit is {limit}")
            }
            V::Repeated { .. } => f.write_str("duplicate member name"),
            V::Extra => f.write_str("the member's zip64 fields are missing"),
            V::NoLocalHeader { offset } => {
                write!(f, "the member's local header is missing at {offset}")
            }
            V::OtherLocalHeader { .. } => {
                f.write_str("the member's local header contradicts the directory")
            }
            V::Bounds { end, limit, .. } => {
                write!(
                    f,
                    "the member ends at {end}, but the next record begins at {limit}"
                )
            }
            V::StoredLength { stored, declared } => {
                write!(
                    f,
                    "the member is stored in {stored} bytes, but declares {declared}"
                )
            }
            V::Encrypted => f.write_str("the member is encrypted, which is unsupported"),
            V::Method { method } => {
                let name = name(*method);
                write!(
                    f,
                    "compression method {method}{name} is unsupported; store or deflate the member"
                )
            }
            V::Ratio { stored, declared } => write!(
                f,
                "{stored} deflated bytes cannot inflate to the {declared} declared bytes"
            ),
            V::Deflate { fault, .. } => fault.fmt(f),
        }
    }
}

impl fmt::Display for Deflate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Deflate::Damaged { at } => {
                write!(
                    f,
                    "the deflated data is invalid after byte {at} of the content"
                )
            }
            Deflate::Short { declared, found } => write!(
                f,
                "the deflated data inflates to {found} bytes, but {declared} are declared"
            ),
            Deflate::Unended { declared } => write!(
                f,
                "the deflated data is truncated after the {declared} declared bytes"
            ),
            Deflate::Long { declared } => write!(
                f,
                "the deflated data inflates to more than the {declared} declared bytes"
            ),
            Deflate::After { bytes } => write!(f, "{bytes} bytes follow the deflated data"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Container(error) => error.source(),
            Error::Archive(_) => None,
        }
    }
}

impl std::error::Error for Violation {}

impl From<Violation> for Error {
    fn from(violation: Violation) -> Self {
        Error::Archive(violation)
    }
}

impl From<zt_container::Error> for Error {
    fn from(error: zt_container::Error) -> Self {
        match error {
            zt_container::Error::Io(error) => error.into(),
            error => Error::Container(error),
        }
    }
}

/// An [`Error`] that a source wrapped comes back unchanged.
impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        match error.downcast::<Error>() {
            Ok(error) => error,
            Err(error) => Error::Container(error.into()),
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Container(zt_container::Error::Io(error)) => error,
            error => io::Error::other(error),
        }
    }
}

/// The name of a compression method that other programs write.
fn name(method: u16) -> &'static str {
    match method {
        12 => " (bzip2)",
        14 => " (lzma)",
        93 => " (zstd)",
        _ => "",
    }
}
