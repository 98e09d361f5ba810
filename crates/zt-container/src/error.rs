//! The errors of this crate, by the party at fault.

use std::{fmt, io};

use crate::digest::{Digest, DigestAlgorithm};
use crate::span::Span;

/// `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why bytes could not be located, read, decoded or written.
///
/// Each variant has one party at fault: the system ([`Error::Io`]), the file ([`Error::Malformed`],
/// [`Error::DigestMismatch`]), this build ([`Error::Unsupported`]), the caller's limits
/// ([`Error::Limit`]) or the caller ([`Error::Misuse`], never caused by a file's bytes).
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The system could not read or write.
    Io(io::Error),
    /// The file breaks a rule of the format.
    Malformed(FramingViolation),
    /// The file is valid, but this build cannot process it.
    Unsupported(Unsupported),
    /// The file asks for more than [`crate::Limits`] grants.
    Limit(LimitExceeded),
    /// A call that no file can cause.
    Misuse(Misuse),
    /// The stored bytes were changed after they were written.
    DigestMismatch {
        /// The digest in the manifest.
        expected: Digest,
        /// The digest of the bytes.
        found: Digest,
    },
}

/// The rules of the framing, with the numbers that break them. Offsets are absolute, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FramingViolation {
    /// The file does not begin with a magic of this format. Spec: §2.
    NotZt {
        /// Its first bytes, at most eight.
        found: Vec<u8>,
    },
    /// The file is shorter than a header and a trailer. Spec: §2.
    Truncated {
        /// Bytes of the file.
        byte_len: u64,
        /// The length of the shortest file of this layout.
        minimum: u64,
    },
    /// Header and footer leave no room for a manifest of the declared size. Spec: §2.
    ManifestSize {
        /// Where the size is stored.
        offset: u64,
        /// The declared size.
        declared: u64,
        /// The largest size that the file has room for.
        available: u64,
        /// Whether the file has the footer magic. Without it, the file is of layout 1.0 or truncated.
        has_footer: bool,
    },
    /// A blob lies outside the data region. Spec: §4.
    Bounds {
        /// Where it begins.
        offset: u64,
        /// Its stored length.
        byte_len: u64,
        /// The data region.
        region: Span,
    },
    /// A blob off the 64-byte grid. Spec: §4.
    Alignment {
        /// Where it begins.
        offset: u64,
    },
    /// A digest that is not `algorithm:hex`. Spec: §6.
    DigestFormat {
        /// The text, abridged.
        text: String,
    },
    /// Invalid compressed bytes. Spec: §5.
    Zstd(ZstdFault),
    /// A raw blob whose declared length is not its stored length. Spec: §5.
    RawLength {
        /// Bytes stored.
        stored: u64,
        /// Bytes declared.
        declared: u64,
    },
    /// A compressed blob that is too short for its declared decoded length. Spec: §5.
    Ratio {
        /// Bytes stored.
        stored: u64,
        /// Bytes declared.
        declared: u64,
    },
}

/// What is wrong with a zstd blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ZstdFault {
    /// The decoder refuses the bytes, with its reason.
    Refused(&'static str),
    /// The last frame is truncated.
    Cut,
    /// The frames decode to fewer bytes than declared.
    Short {
        /// Bytes declared.
        expected: u64,
        /// Bytes decoded.
        found: u64,
    },
    /// The frames decode to more bytes than declared.
    Long {
        /// Bytes declared.
        expected: u64,
    },
}

/// What this build cannot do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unsupported {
    /// The feature `zstd` is off.
    Zstd,
    /// The feature of this digest is off.
    Digest(DigestAlgorithm),
    /// The file is a pipe or a device, which have no length. (A folder is [`Error::Io`].)
    NotARegularFile,
}

/// A limit and what exceeds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitExceeded {
    /// [`crate::Limits::manifest_len`], in bytes.
    Manifest {
        /// The limit.
        limit: u64,
        /// The declared size.
        found: u64,
    },
    /// [`crate::Limits::decoded_len`], in bytes.
    Decoded {
        /// The limit.
        limit: u64,
        /// The declared length, or the bytes decoded so far.
        found: u64,
    },
    /// The system has no memory for bytes that are in the file.
    Allocation {
        /// Bytes requested; 0 if zstd does not report the number.
        byte_len: u64,
    },
}

/// A call that the caller should not have made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Misuse {
    /// The destination has another length than the blob.
    Destination {
        /// Bytes of the blob, decoded.
        expected: u64,
        /// Bytes of the destination.
        found: u64,
    },
    /// The blob's decoded length is unknown: it can only be streamed.
    UnknownLength,
    /// A writer is called in the wrong order, or a reader or writer is called again after an error.
    Order,
    /// An empty manifest, which every reader refuses.
    NoManifest,
    /// An alignment that is not a power of two of at least 64.
    Alignment(u64),
    /// More than 2^64 bytes are written, or more frames than fit a seek table.
    TooLong,
}

impl Error {
    /// The stable code, as `spec/errors.md` lists it.
    pub const fn code(&self) -> &'static str {
        match self {
            Error::Io(_) => "io",
            Error::Malformed(violation) => violation.code(),
            Error::Unsupported(_) => "unsupported",
            Error::Limit(LimitExceeded::Manifest { .. }) => "manifest-size",
            Error::Limit(LimitExceeded::Decoded { .. }) => "decompression-limit",
            Error::Limit(LimitExceeded::Allocation { .. }) => "allocation",
            Error::Misuse(_) => "misuse",
            Error::DigestMismatch { .. } => "digest-mismatch",
        }
    }

    /// The absolute offset of the bytes at fault, if it is known.
    pub const fn offset(&self) -> Option<u64> {
        match self {
            Error::Malformed(violation) => violation.offset(),
            _ => None,
        }
    }
}

impl FramingViolation {
    /// The stable code, as `spec/errors.md` lists it.
    pub const fn code(&self) -> &'static str {
        match self {
            FramingViolation::NotZt { .. } => "not-zt",
            FramingViolation::Truncated { .. } => "truncated",
            FramingViolation::ManifestSize { .. } => "manifest-size",
            FramingViolation::Bounds { .. } => "bounds",
            FramingViolation::Alignment { .. } => "alignment",
            FramingViolation::DigestFormat { .. } => "digest-format",
            FramingViolation::Zstd(_) => "zstd",
            FramingViolation::RawLength { .. } => "shape-size-mismatch",
            FramingViolation::Ratio { .. } => "decompression-limit",
        }
    }

    const fn offset(&self) -> Option<u64> {
        match *self {
            FramingViolation::NotZt { .. } => Some(0),
            FramingViolation::Truncated { byte_len, .. } => Some(byte_len),
            FramingViolation::ManifestSize { offset, .. }
            | FramingViolation::Bounds { offset, .. }
            | FramingViolation::Alignment { offset } => Some(offset),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io(error) => error.fmt(f),
            Error::Malformed(violation) => violation.fmt(f),
            Error::Unsupported(unsupported) => unsupported.fmt(f),
            Error::Limit(limit) => limit.fmt(f),
            Error::Misuse(misuse) => misuse.fmt(f),
            Error::DigestMismatch { expected, found } => {
                f.write_str(&format!("digest mismatch: expected {expected}, found {found}"))
            }
        }
    }
}

impl fmt::Display for FramingViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            FramingViolation::NotZt { found } if *found == *b"\x89ZT2\r\n\x1A\n" => {
                "a zTensor 2 file, which is not a .zt file of 0.1 to 1.2: open it with \
                 zt-convert or the program zt"
                    .to_owned()
            }
            FramingViolation::NotZt { found } => format!(
                "not a .zt file: it begins with \"{}\", expected \"ZTEN1000\" or \"ZTEN0001\"",
                found.escape_ascii()
            ),
            FramingViolation::Truncated { byte_len, minimum } => {
                format!("truncated: the file has {byte_len} bytes, expected at least {minimum}")
            }
            // In a truncated file the last eight bytes are not a length, so the message leaves it out.
            FramingViolation::ManifestSize { has_footer: false, .. } => {
                "the file is truncated, or its writer did not finish: it does not end in \
                 \"ZTEN1000\", and its last 8 bytes are not the length of a manifest"
                    .to_owned()
            }
            FramingViolation::ManifestSize { declared: 0, .. } => {
                "the declared length of the manifest is 0 bytes, expected at least one".to_owned()
            }
            FramingViolation::ManifestSize { declared, available, .. } => format!(
                "the declared length of the manifest is {declared} bytes, \
                 the file has room for {available}"
            ),
            FramingViolation::Bounds { offset, byte_len, region } => match region.offset() {
                // In files of other kinds the whole file may hold data, so the file ends too early.
                0 => {
                    // Nothing of what begins behind the end.
                    let there = region.end().saturating_sub(*offset);
                    format!("truncated: {there} of {byte_len} bytes are in the file")
                }
                start => {
                    let end = region.end();
                    format!("{byte_len} bytes at {offset} leave the data region {start}..{end}")
                }
            },
            FramingViolation::Alignment { offset } => {
                format!("offset {offset} is not a multiple of 64")
            }
            FramingViolation::DigestFormat { text } => format!(
                "\"{}\" is not a digest, expected \
                 `crc32c:` and 8 or `sha256:` and 64 hexadecimal digits",
                text.escape_debug()
            ),
            FramingViolation::Zstd(fault) => fault.to_string(),
            FramingViolation::RawLength { stored, declared } => {
                format!("a raw blob of {stored} bytes is declared to have {declared}")
            }
            FramingViolation::Ratio { stored, declared } => {
                format!("{stored} bytes of zstd cannot hold the declared {declared}")
            }
        };
        f.write_str(&text)
    }
}

impl fmt::Display for ZstdFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            ZstdFault::Refused(why) => format!("the zstd frame cannot be decoded: {why}"),
            ZstdFault::Cut => "the zstd frame is truncated".to_owned(),
            ZstdFault::Short { expected, found } => {
                format!("the zstd frames hold {found} bytes, expected {expected}")
            }
            ZstdFault::Long { expected } => {
                format!("the zstd frames hold more than the expected {expected} bytes")
            }
        };
        f.write_str(&text)
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unsupported::Zstd => f.write_str("zstd is not built in (feature `zstd`)"),
            Unsupported::Digest(algorithm) => {
                let (name, feature) = (algorithm.as_str(), algorithm.feature());
                write!(f, "the digest {name} is not built in (feature `{feature}`)")
            }
            Unsupported::NotARegularFile => f.write_str("not a regular file"),
        }
    }
}

impl fmt::Display for LimitExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            LimitExceeded::Manifest { limit, found } => {
                format!("a manifest of {found} bytes is above the limit of {limit}")
            }
            LimitExceeded::Decoded { limit, found } => {
                format!("{found} decoded bytes are above the limit of {limit}")
            }
            LimitExceeded::Allocation { byte_len: 0 } => "no memory for zstd".to_owned(),
            LimitExceeded::Allocation { byte_len } => format!("no memory for {byte_len} bytes"),
        };
        f.write_str(&text)
    }
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Misuse::Destination { expected, found } => {
                return write!(f, "the destination has {found} bytes, the blob {expected}");
            }
            Misuse::Alignment(found) => {
                return write!(f, "alignment {found} is not a power of two of at least 64");
            }
            Misuse::UnknownLength => "the decoded length is not known: stream it",
            Misuse::Order => "the call is out of order, or an earlier one has failed",
            Misuse::NoManifest => "the manifest has no bytes",
            Misuse::TooLong => "more bytes than the format can address",
        })
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io(error) => Some(error),
            _ => None,
        }
    }
}

/// The system's own error; else one with this error inside.
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match error {
            Error::Io(error) => return error,
            Error::Malformed(_) | Error::DigestMismatch { .. } => io::ErrorKind::InvalidData,
            Error::Unsupported(_) => io::ErrorKind::Unsupported,
            Error::Misuse(_) => io::ErrorKind::InvalidInput,
            Error::Limit(_) => io::ErrorKind::Other,
        };
        io::Error::new(kind, error)
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Error::Io(error)
    }
}

impl From<FramingViolation> for Error {
    fn from(violation: FramingViolation) -> Self {
        Error::Malformed(violation)
    }
}

impl From<ZstdFault> for Error {
    fn from(fault: ZstdFault) -> Self {
        Error::Malformed(FramingViolation::Zstd(fault))
    }
}
