//! Why a seal is refused, and how bytes differ from it.

use zt::{ErrorKind, codes};

use crate::check::Flaw;

/// The error of a seal, or of bytes that differ from it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the docs and the texts of the variants explain the fields")]
pub enum Fault {
    /// The bytes are something else.
    #[error("not a seal of `zt seal`")]
    NoSeal,
    /// A seal of another version.
    #[error("the seal has the format \"{}\", which this build does not know", found.escape_debug())]
    Version { found: String },
    /// More bytes than [`crate::Seal::MAX_LEN`].
    #[error("the seal has {byte_len} bytes, the limit is {limit}")]
    TooLong { byte_len: u64, limit: u64 },
    /// The bytes are no CBOR.
    #[error("the seal is not well-formed: {0}")]
    Cbor(zt::manifest::Error),
    /// A field is missing, of another type, or out of range.
    #[error("the seal's field \"{field}\" is missing or invalid")]
    Field { field: &'static str },
    /// Sound fields in another encoding than the one of a seal, or with fields that a seal has not.
    #[error("the seal is not in the encoding that `zt seal` writes, or has unknown fields")]
    Encoding,
    /// A path is not below the folder.
    #[error("the seal's path \"{}\" is refused: {why}", path.escape_debug())]
    Path { path: String, why: &'static str },
    /// Names are not sorted, or one is there twice.
    #[error("the seal's {what} are not sorted, or one is repeated: \"{}\"", name.escape_debug())]
    Order { what: &'static str, name: String },
    /// The length contradicts the leaves.
    #[error("the seal has {leaves} leaves for the {byte_len} bytes of \"{}\"", path.escape_debug())]
    LeafCount { path: String, byte_len: u64, leaves: u64 },
    /// The leaves give another root.
    #[error("the seal's leaves of \"{}\" do not give its root", path.escape_debug())]
    Root { path: String },
    /// Places of a tensor are not in the files, not sorted, or repeated.
    #[error("the seal's places of the tensor \"{}\" are invalid", name.escape_debug())]
    Places { name: String },
    /// A file has another length.
    #[error(
        "\"{}\" has {found} bytes, the seal says {expected}{}",
        path.escape_debug(),
        if found < expected { ": its end is missing" } else { ": something is behind its end" }
    )]
    Length { path: String, expected: u64, found: u64 },
    /// A leaf has other bytes.
    #[error("{}", flaw.of(path))]
    Leaf { path: String, flaw: Box<Flaw> },
    /// The source of a repair has other bytes as well.
    #[error("the source of the repair is wrong, too: {0}")]
    Source(Box<Fault>),
    /// The seal has no such file.
    #[error("the seal has no file \"{}\"", path.escape_debug())]
    NotSealed { path: String },
    /// The name fits two files of the seal.
    #[error(
        "the name fits two files of the seal, \"{}\" and \"{}\": give more of the path",
        one.escape_debug(),
        other.escape_debug()
    )]
    Ambiguous { one: String, other: String },
    /// A folder was opened, and the seal does not say which file of it.
    #[error("the seal has {count} models: open the file of one of them")]
    Models { count: usize },
    /// A sealed file is not there.
    #[error("\"{}\" is missing", path.escape_debug())]
    Missing { path: String },
    /// A path that a seal cannot hold, because it is not Unicode.
    #[error("the path is not Unicode: a seal cannot name the file")]
    NotUnicode,
    /// The bytes are no parity of this seal.
    #[error("{}", if *is_other {
        "the parity file is of another seal"
    } else {
        "not a parity file of this seal, or no block of it is whole"
    })]
    NoParity { is_other: bool },
    /// The code refuses its blocks. They have the numbers and lengths that it takes, so this is a bug.
    #[error("the code of the parity: {0}")]
    Code(reed_solomon_simd::Error),
    /// An input is read from a file outside the folder.
    #[error("a file of the model is outside its folder: seal the folder that has all of them")]
    Outside,
}

/// The text for the tensors that leaves belong to.
pub(crate) fn in_tensors(tensors: &[String]) -> String {
    const SHOWN: usize = 3;
    let names = tensors.iter().take(SHOWN).map(|name| name.escape_debug().to_string());
    let names = names.collect::<Vec<_>>().join(", ");
    match tensors.len() {
        0 => String::new(),
        1..=SHOWN => format!(", in {names}"),
        count => format!(", in {names} and {} more", count.saturating_sub(SHOWN)),
    }
}

impl From<Fault> for zt::Error {
    fn from(fault: Fault) -> Self {
        let (kind, code) = match &fault {
            Fault::Length { .. }
            | Fault::Leaf { .. }
            | Fault::Source(_)
            | Fault::Missing { .. } => (ErrorKind::DigestMismatch, codes::SEAL_MISMATCH),
            Fault::NotSealed { .. }
            | Fault::Ambiguous { .. }
            | Fault::Models { .. }
            | Fault::NotUnicode
            | Fault::Outside => (ErrorKind::Misuse, codes::MISUSE),
            _ => (ErrorKind::Malformed, codes::SEAL),
        };
        zt::Error::new(kind, code, fault)
    }
}
