//! Why a delta does not fit its base, or breaks a rule.

use zt::{Digest, Error, ErrorKind, codes};

/// Why a delta does not fit its base, or breaks a rule.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error(
        "is not the base of the delta: it has the content {found}, and the delta was made from {expected}; {first}"
    )]
    WrongBase { expected: Digest, found: Digest, first: First },
    #[error(
        "is not the next delta: it was made from the content {found}, and the delta before it leads to {expected}"
    )]
    WrongOrder { expected: Digest, found: Digest },
    #[error("the result has the content {found}, and the delta records {expected}")]
    WrongResult { expected: Digest, found: Digest },
    #[error(
        "has no content identity, because an object cannot be read; `zt verify` lists all faults"
    )]
    NoIdentity,
    #[error("changed while the delta was made from it; make it again")]
    Changed,
    #[error("is no delta: it has no attribute `zt.delta`; `zt delta` makes one")]
    NoDelta,
    #[error("is itself a delta; --base gives the file that it belongs to")]
    IsDelta,
    #[error("attribute `zt.delta`: {0}")]
    Header(&'static str),
    #[error(
        "is not the base of the delta: it has {found} objects, and the delta was made from a file of {expected}"
    )]
    Objects { expected: u64, found: u64 },
    #[error("the shape is not the shape of the base's object")]
    Shape,
    #[error("the base has no object {0:?}")]
    NoBase(String),
    #[error("the base's object {0:?} has two successors, or is removed as well")]
    UsedTwice(String),
    #[error("the object of the base has no component of this role")]
    NoRole,
    #[error("the table of stretches does not fit: {0}")]
    Table(&'static str),
}

/// The first object by which a wrong base differs.
#[derive(Debug, thiserror::Error)]
pub(super) enum First {
    #[error("the first object that differs is {0:?}")]
    Object(String),
    #[error("objects after {0:?} are missing")]
    Missing(String),
    #[error("its objects are equal, and their names differ")]
    Names,
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        let (kind, code) = match fault {
            Fault::WrongBase { .. } | Fault::WrongOrder { .. } | Fault::Objects { .. } => {
                (ErrorKind::Misuse, codes::WRONG_BASE)
            }
            Fault::NoIdentity | Fault::IsDelta => (ErrorKind::Unsupported, codes::UNSUPPORTED),
            Fault::Changed => (ErrorKind::Io, codes::CHANGED),
            Fault::NoDelta => (ErrorKind::Misuse, codes::MISUSE),
            _ => (ErrorKind::Malformed, codes::DELTA),
        };
        Error::new(kind, code, fault)
    }
}
