//! Why an archive or one of its members is refused, with the numbers in it that are wrong.

use std::io;

use zt_container::Span;

/// `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an archive or one of its members could not be read.
///
/// An inflating source wraps it in an [`io::Error`]; `Error::from` gets it back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The source could not be read, memory is missing, or a CRC-32 differs.
    #[error(transparent)]
    Container(zt_container::Error),
    /// The archive breaks a rule or a limit, or needs something unsupported.
    #[error(transparent)]
    Archive(#[from] ZipViolation),
}

/// The rules, limits and unsupported parts of archives. Offsets count from the beginning of the file.
///
/// * `Several` is found in a shard of a distributed checkpoint, for example.
/// * `Before`, `After` and `Comment` are only warnings.
/// * The `offset` in `Bounds` is the offset of the local header.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "its text explains each variant")]
pub enum ZipViolation {
    #[error("truncated: the end record of the zip archive is not in the last 64 KiB")]
    NoEnd,
    #[error("a second zip archive begins at {offset}; only one archive per file is supported")]
    Several { offset: u64 },
    #[error("{} B before the zip archive are ignored", ignored.byte_len())]
    Before { ignored: Span },
    #[error("{} B after the zip archive are ignored", ignored.byte_len())]
    After { ignored: Span },
    #[error("the comment of the zip archive is truncated")]
    Comment { record: Span },
    #[error("the zip archive is split into volumes; join them first")]
    Volumes,
    #[error("the zip64 records are invalid or contradict the end record")]
    Zip64,
    #[error("the directory is declared as {len} bytes at {offset}, but its end record is at {end}")]
    Place { offset: u64, len: u64, end: u64 },
    #[error("the directory has {found} bytes, the limit is {limit}")]
    DirectoryTooLong { found: u64, limit: u64 },
    #[error("entry {index} of the directory is invalid or truncated")]
    Record { index: u64 },
    #[error("the directory does not have the {declared} declared members")]
    Count { declared: u64 },
    #[error("a member's name has {found} bytes, the limit is {limit}")]
    NameTooLong { found: usize, limit: usize },
    #[error("duplicate member name")]
    Repeated { name: String },
    #[error("the member's zip64 fields are missing")]
    Extra,
    #[error("the member's local header is missing at {offset}")]
    NoLocalHeader { offset: u64 },
    #[error("the member's local header contradicts the directory")]
    OtherLocalHeader { offset: u64 },
    #[error("the member ends at {end}, but the next record begins at {limit}")]
    Bounds { offset: u64, end: u64, limit: u64 },
    #[error(
        "truncated: {found}{} bytes of the member are there",
        .declared.map_or(String::new(), |declared| format!(" of {declared}"))
    )]
    Cut { offset: u64, found: u64, declared: Option<u64> },
    #[error("the member is stored in {stored} bytes, but declares {declared}")]
    StoredLength { stored: u64, declared: u64 },
    #[error("the member is encrypted, which is unsupported")]
    Encrypted,
    #[error(
        "compression method {method}{} is unsupported; store or deflate the member, as numpy.savez and savez_compressed do",
        name(*method)
    )]
    Method { method: u16 },
    #[error("{stored} compressed bytes cannot give the {declared} declared bytes")]
    Ratio { stored: u64, declared: u64 },
    #[error("{fault}")]
    Deflate { fault: Deflate, stored: Span },
    #[error(
        "the data compressed with{} is damaged, truncated or longer than declared after byte {at} of the content",
        name(*method)
    )]
    Packed { method: u16, at: u64, stored: Span },
    #[error("the dictionary of LZMA has {found} bytes, the limit is {limit}")]
    Dictionary { found: u32, limit: u32 },
}

/// What is wrong with a deflated member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "its text explains each variant")]
pub enum Deflate {
    #[error("the deflated data is invalid after byte {at} of the content")]
    Damaged { at: u64 },
    #[error("the deflated data inflates to {found} bytes, but {declared} are declared")]
    Short { declared: u64, found: u64 },
    #[error("the deflated data is truncated after the {declared} declared bytes")]
    Unended { declared: u64 },
    #[error("the deflated data inflates to more than the {declared} declared bytes")]
    Long { declared: u64 },
    #[error("{bytes} bytes follow the deflated data")]
    After { bytes: u64 },
}

impl Error {
    /// The stable code in kebab-case.
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

impl ZipViolation {
    /// Whether the archive is valid, but larger than the limits.
    pub const fn is_limit(&self) -> bool {
        use ZipViolation as V;
        matches!(
            self,
            V::DirectoryTooLong { .. }
                | V::NameTooLong { .. }
                | V::Ratio { .. }
                | V::Dictionary { .. }
        )
    }

    /// Whether the archive is valid, but this crate does not support it.
    pub const fn is_unsupported(&self) -> bool {
        use ZipViolation as V;
        matches!(self, V::Volumes | V::Encrypted | V::Method { .. })
    }

    /// The stable code in kebab-case.
    pub const fn code(&self) -> &'static str {
        match self {
            ZipViolation::Bounds { .. } => "bounds",
            ZipViolation::Volumes | ZipViolation::Encrypted | ZipViolation::Method { .. } => {
                "unsupported"
            }
            ZipViolation::NoEnd | ZipViolation::Cut { .. } => "truncated",
            ZipViolation::Ratio { .. } | ZipViolation::Dictionary { .. } => "decompression-limit",
            ZipViolation::Deflate { .. } | ZipViolation::Packed { .. } => "deflate",
            _ => "header",
        }
    }

    /// The offset of the first byte at fault.
    pub fn offset(&self) -> Option<u64> {
        match *self {
            ZipViolation::Several { offset }
            | ZipViolation::NoLocalHeader { offset }
            | ZipViolation::OtherLocalHeader { offset }
            | ZipViolation::Bounds { offset, .. }
            | ZipViolation::Cut { offset, .. } => Some(offset),
            _ => self.span().map(Span::offset),
        }
    }

    /// The bytes at fault, if their end is known.
    pub const fn span(&self) -> Option<Span> {
        match *self {
            ZipViolation::Before { ignored: span }
            | ZipViolation::After { ignored: span }
            | ZipViolation::Comment { record: span }
            | ZipViolation::Deflate { stored: span, .. }
            | ZipViolation::Packed { stored: span, .. } => Some(span),
            _ => None,
        }
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

/// The name of a compression method, after a space; empty for an unknown one.
fn name(method: u16) -> &'static str {
    match method {
        12 => " bzip2",
        14 => " LZMA",
        93 => " zstd",
        _ => "",
    }
}
