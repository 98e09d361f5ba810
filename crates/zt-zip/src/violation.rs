//! The rules of zip archives, and the numbers in an archive that breaks one.

use zt::ErrorKind;

/// Why an archive or one of its members is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Violation {
    #[error("truncated: the end record of the zip archive is not in the last 64 KiB")]
    NoEnd,
    /// As in a shard of a distributed checkpoint.
    #[error("a second zip archive begins at {offset}; only one archive per file is supported")]
    Several { offset: u64 },
    #[error("{bytes} B before the zip archive are ignored")]
    Before { bytes: u64 },
    #[error("{bytes} B after the zip archive are ignored")]
    After { bytes: u64 },
    #[error("the comment of the zip archive is truncated")]
    Comment,
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
    Repeated,
    #[error("the member's zip64 fields are missing")]
    Extra,
    #[error("the member's local header is missing at {offset}")]
    NoLocalHeader { offset: u64 },
    #[error("the member's local header contradicts the directory")]
    OtherLocalHeader,
    #[error("the member ends at {end}, but the next record begins at {limit}")]
    Bounds { end: u64, limit: u64 },
    #[error("the member is stored in {stored} bytes, but declares {declared}")]
    StoredLength { stored: u64, declared: u64 },
    #[error("the member is encrypted, which is unsupported")]
    Encrypted,
    #[error(
        "compression method {method}{} is unsupported; store or deflate the member",
        name(*method)
    )]
    Method { method: u16 },
    #[error("{stored} deflated bytes cannot inflate to the {declared} declared bytes")]
    Ratio { stored: u64, declared: u64 },
    #[error(transparent)]
    Deflate(Deflate),
}

/// What is wrong with a deflated member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Deflate {
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

impl Violation {
    fn kind(&self) -> ErrorKind {
        match self {
            Violation::DirectoryTooLong { .. }
            | Violation::NameTooLong { .. }
            | Violation::Ratio { .. } => ErrorKind::Limit,
            Violation::Volumes | Violation::Encrypted | Violation::Method { .. } => {
                ErrorKind::Unsupported
            }
            _ => ErrorKind::Malformed,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Violation::Bounds { .. } => "bounds",
            Violation::Volumes | Violation::Encrypted | Violation::Method { .. } => "unsupported",
            Violation::NoEnd => "truncated",
            Violation::Ratio { .. } => "decompression-limit",
            Violation::Deflate(_) => "deflate",
            _ => "header",
        }
    }
}

impl From<Violation> for zt::Error {
    fn from(violation: Violation) -> Self {
        zt::Error::new(violation.kind(), violation.code(), violation)
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
