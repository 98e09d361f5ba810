//! The rules of zip archives, each with the numbers that break it.

use std::fmt;

use zt::ErrorKind;
use zt_foreign::is_an_error;

/// Why an archive, or one of its members, is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Violation {
    /// No end record at the end of the file.
    NoEnd,
    /// A whole archive lies behind another.
    Several { offset: u64 },
    /// Something lies before the archive.
    Before { bytes: u64 },
    /// Something lies behind it.
    Behind { bytes: u64 },
    /// The archive is one of several volumes.
    Volumes,
    /// The zip64 records are not where they are said to be, or contradict the end record.
    Zip64,
    /// The directory does not end where the end record begins.
    Place { offset: u64, len: u64, end: u64 },
    /// The directory is above the limit.
    DirectoryTooLong { found: u64, limit: u64 },
    /// A record of the directory is not one, or is cut.
    Record { index: u64 },
    /// The directory has another number of members than it is said to have.
    Count { declared: u64 },
    /// A name above the limit.
    NameTooLong { found: usize, limit: usize },
    /// Two members of one name.
    Repeated,
    /// The zip64 fields of a member are missing.
    Extra,
    /// No local header where the directory says that one is.
    NoLocalHeader { offset: u64 },
    /// The local header is of something else.
    OtherLocalHeader,
    /// Data that reaches into what comes next.
    Bounds { end: u64, limit: u64 },
    /// A stored member of two lengths.
    StoredLength { stored: u64, declared: u64 },
    /// Encrypted data.
    Encrypted,
    /// Compressed in a way that tensors never are.
    Method { method: u16 },
    /// More than deflate can make of so few bytes.
    Ratio { stored: u64, declared: u64 },
    /// Deflated data that is damaged, or of another length than declared.
    Deflate(Deflate),
}

/// What is wrong with a deflated member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deflate {
    /// Not deflated data.
    Damaged { at: u64 },
    /// The data ends before the member does.
    Short { declared: u64, found: u64 },
    /// The data gives the member, and is cut before it ends.
    Unended { declared: u64 },
    /// The data goes on after the member has ended.
    Long { declared: u64 },
    /// Bytes behind the end of the data.
    Behind { bytes: u64 },
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
            Violation::Ratio { .. } => "decompression-limit",
            Violation::Deflate(_) => "deflate",
            _ => "header",
        }
    }
}

is_an_error!(Violation);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::NoEnd => f.write_str(
                "a zip archive without its end record in the last 64 KiB: the file was cut \
                     short, or much was written behind it",
            ),
            Violation::Several { offset } => write!(
                f,
                "a second zip archive begins at {offset}: several in a row, as in a shard of a \
                 distributed checkpoint, are not read"
            ),
            Violation::Before { bytes } => {
                write!(f, "{bytes} B before the zip archive are not read")
            }
            Violation::Behind { bytes } => {
                write!(f, "{bytes} B behind the zip archive are not read")
            }
            Violation::Volumes => f.write_str("one volume of a zip archive of several"),
            Violation::Zip64 => {
                f.write_str("the zip64 records are not where, or not what, they are said to be")
            }
            Violation::Place { offset, len, end } => write!(
                f,
                "the directory is said to be {len} bytes at {offset}, and its end record begins at {end}"
            ),
            Violation::DirectoryTooLong { found, limit } => {
                write!(
                    f,
                    "the directory is {found} bytes long, the limit is {limit}"
                )
            }
            Violation::Record { index } => {
                write!(f, "entry {index} of the directory is damaged")
            }
            Violation::Count { declared } => {
                write!(
                    f,
                    "the directory does not have the {declared} members it is said to have"
                )
            }
            Violation::NameTooLong { found, limit } => {
                write!(
                    f,
                    "a member's name is {found} bytes long, the limit is {limit}"
                )
            }
            Violation::Repeated => f.write_str("two members have this name"),
            Violation::Extra => f.write_str("the member's zip64 fields are missing"),
            Violation::NoLocalHeader { offset } => {
                write!(f, "the member is said to begin at {offset}, and does not")
            }
            Violation::OtherLocalHeader => {
                f.write_str("the member's local header and the directory contradict each other")
            }
            Violation::Bounds { end, limit } => write!(
                f,
                "the member is said to end at {end}, and what comes next begins at {limit}"
            ),
            Violation::StoredLength { stored, declared } => write!(
                f,
                "the member is stored in {stored} bytes and said to be {declared} bytes long"
            ),
            Violation::Encrypted => f.write_str("the member is encrypted"),
            Violation::Method { method } => {
                write!(f, "the member is compressed by method {method}")?;
                f.write_str(match method {
                    12 => " (bzip2)",
                    14 => " (lzma)",
                    93 => " (zstd)",
                    _ => "",
                })?;
                f.write_str("; stored and deflated ones are read")
            }
            Violation::Ratio { stored, declared } => write!(
                f,
                "{stored} deflated bytes cannot be the {declared} that are declared"
            ),
            Violation::Deflate(Deflate::Damaged { at }) => {
                write!(
                    f,
                    "the deflated bytes are damaged behind byte {at} of the content"
                )
            }
            Violation::Deflate(Deflate::Short { declared, found }) => write!(
                f,
                "the deflated bytes give {found} bytes, and {declared} are declared"
            ),
            Violation::Deflate(Deflate::Unended { declared }) => write!(
                f,
                "the deflated bytes give the {declared} that are declared, and do not end"
            ),
            Violation::Deflate(Deflate::Long { declared }) => {
                write!(
                    f,
                    "the deflated bytes give more than the {declared} that are declared"
                )
            }
            Violation::Deflate(Deflate::Behind { bytes }) => {
                write!(f, "{bytes} bytes lie behind the end of the deflated ones")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Violation;

    #[test]
    fn methods_that_are_not_read_are_named() {
        for (method, name) in [(12, "(bzip2)"), (14, "(lzma)"), (93, "(zstd)"), (8, "8;")] {
            let said = Violation::Method { method }.to_string();
            assert!(said.contains(name), "{said}");
        }
    }
}
