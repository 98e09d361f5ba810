//! Why a tensor, or a whole file, is refused.

use std::fmt;

use zt::ErrorKind;
use zt_foreign::is_an_error;

use crate::global::Unread;
use crate::pickle::{PickleError, PickleFault};

/// Dimensions beyond this are refused before their sizes are copied: a tuple of sizes can be
/// shared by any number of tensors. torch has at most 64.
pub(super) const RANK: usize = 64;

/// What is wrong with a tensor.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TensorFault {
    /// A call has other arguments than its function takes.
    Argument {
        name: &'static str,
        found: &'static str,
    },
    /// A call has too few arguments.
    Missing { name: &'static str },
    /// A number that counts something is negative.
    Negative { name: &'static str, found: i64 },
    /// More dimensions than torch has.
    Rank { found: usize },
    /// As many strides as sizes are needed.
    Strides { sizes: usize, strides: usize },
    /// Sizes, strides or counts that no address reaches.
    Overflow,
    /// The elements lead outside the storage.
    Outside { needed: u64, available: u64 },
    /// Parts of a sparse or quantized tensor do not fit together.
    Parts {
        what: &'static str,
        expected: u64,
        found: u64,
    },
    /// The stored values are not those of the tensor.
    Lazy { bit: &'static str },
    /// There are no elements in the file.
    NoData { why: &'static str },
    /// A layout that zTensor 1.2 has no format for.
    Layout { name: String },
    /// Made by a function or class of [`Global::Unread`](super::global::Global::Unread).
    Unread(Unread),
    /// Made by a function that is only a name, given to one that would call it.
    Function { name: String, at: u32 },
    /// Elements that zTensor 1.2 has no type for.
    Element { name: &'static str },
    /// A view that makes more of a storage than is left for all views of the file.
    Expanded { byte_len: u64, left: u64 },
    /// The archive has no such storage.
    NoStorage { key: String },
    /// The storage is shorter than the pickle says.
    StorageLength { expected: u64, found: u64 },
}

impl TensorFault {
    fn kind(&self) -> ErrorKind {
        match self {
            TensorFault::Lazy { .. }
            | TensorFault::NoData { .. }
            | TensorFault::Layout { .. }
            | TensorFault::Unread(_)
            | TensorFault::Function { .. }
            | TensorFault::Element { .. } => ErrorKind::Unsupported,
            TensorFault::Rank { .. } | TensorFault::Expanded { .. } => ErrorKind::Limit,
            _ => ErrorKind::Malformed,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            TensorFault::Lazy { .. } | TensorFault::NoData { .. } | TensorFault::Layout { .. } => {
                "unsupported"
            }
            TensorFault::Unread(_) | TensorFault::Function { .. } => "pickle-global",
            TensorFault::Element { .. } => "dtype",
            TensorFault::Expanded { .. } => "decompression-limit",
            TensorFault::Overflow | TensorFault::Outside { .. } => "bounds",
            TensorFault::NoStorage { .. } => "missing-component",
            TensorFault::StorageLength { .. } | TensorFault::Parts { .. } => "shape-size-mismatch",
            _ => "schema",
        }
    }
}

is_an_error!(TensorFault);

impl fmt::Display for TensorFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TensorFault::Argument { name, found } => {
                write!(f, "its {name} cannot be {found}")
            }
            TensorFault::Missing { name } => write!(f, "it has no {name}"),
            TensorFault::Negative { name, found } => write!(f, "its {name} is {found}"),
            TensorFault::Rank { found } => {
                write!(f, "it has {found} dimensions, the limit is {RANK}")
            }
            TensorFault::Strides { sizes, strides } => {
                write!(f, "it has {sizes} sizes and {strides} strides")
            }
            TensorFault::Overflow => f.write_str("its elements pass 2^64 bytes"),
            TensorFault::Outside { needed, available } => write!(
                f,
                "its elements reach to byte {needed} of a storage of {available}"
            ),
            TensorFault::Parts {
                what,
                expected,
                found,
            } => write!(f, "its {what} should be of {expected}, and are of {found}"),
            TensorFault::Lazy { bit } => write!(
                f,
                "the stored values are not its values: the \"{bit}\" operation was put off"
            ),
            TensorFault::NoData { why } => write!(f, "the file has no elements of it: {why}"),
            TensorFault::Layout { name } => {
                write!(f, "{} has no format in zTensor 1.2", name.escape_debug())
            }
            TensorFault::Unread(unread) => made_by(f, unread, unread.at),
            TensorFault::Function { name, at } => made_by(f, &name.escape_debug(), *at),
            TensorFault::Element { name } => {
                write!(f, "elements of torch.{name} have no dtype in zTensor 1.2")
            }
            TensorFault::Expanded { byte_len, left } => write!(
                f,
                "the view makes {byte_len} bytes, where {left} are left for all views of the file"
            ),
            TensorFault::NoStorage { key } => {
                write!(f, "the file has no storage \"{}\"", key.escape_debug())
            }
            TensorFault::StorageLength { expected, found } => write!(
                f,
                "its storage should have {expected} bytes, and has {found}"
            ),
        }
    }
}

fn made_by(f: &mut fmt::Formatter<'_>, maker: &dyn fmt::Display, at: u32) -> fmt::Result {
    write!(
        f,
        "it is made by {maker}, named at byte {at} of the pickle, which is not read; nothing was run"
    )
}

/// Why a file is refused as a whole.
#[derive(Debug)]
pub(super) enum Violation {
    /// Leaves without end, or more of them than the file is long for.
    Expanding { limit: u64 },
    /// Collections within collections, or within themselves.
    TooDeep { limit: usize },
    /// Keys that make too long a name.
    NameTooLong { limit: usize },
    /// A value that is neither a tensor nor an attribute.
    Attribute { found: String },
    /// A pickle, or another record, is longer than any that was ever written.
    RecordTooLong { found: u64, limit: u64 },
    /// An instruction of a pickle.
    Pickle {
        record: &'static str,
        error: PickleError,
    },
    /// An archive without a pickle.
    NoPickle,
    /// An archive of torch's that is not of `torch.save`.
    OtherLayout { how: &'static str },
    /// `byteorder` is neither `little` nor `big`.
    ByteOrder { found: String },
    /// The layout from before version 0.1.10.
    Tar,
    /// A legacy file whose first pickle is another number.
    Magic,
    /// A legacy file of another version.
    Version { found: String },
    /// A storage that no tensor has told the type of.
    UnknownStorage { key: String },
    /// A storage of a legacy file that has another length than its tensors say.
    StorageCount {
        key: String,
        expected: u64,
        found: i64,
    },
    /// A storage of a legacy file that ends after the file.
    StorageCut { needed: u64, available: u64 },
    /// The keys of a legacy file's storages are no list of texts.
    Keys,
}

impl Violation {
    fn kind(&self) -> ErrorKind {
        match self {
            Violation::Expanding { .. }
            | Violation::TooDeep { .. }
            | Violation::NameTooLong { .. }
            | Violation::RecordTooLong { .. } => ErrorKind::Limit,
            Violation::Tar | Violation::OtherLayout { .. } | Violation::Version { .. } => {
                ErrorKind::Unsupported
            }
            Violation::Pickle { error, .. } => match error.fault {
                PickleFault::Global { .. } => ErrorKind::Unsupported,
                PickleFault::Limit { .. } | PickleFault::Allocation { .. } => ErrorKind::Limit,
                _ => ErrorKind::Malformed,
            },
            _ => ErrorKind::Malformed,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Violation::Tar | Violation::OtherLayout { .. } | Violation::Version { .. } => {
                "unsupported"
            }
            Violation::Pickle { error, .. } => match error.fault {
                PickleFault::Global { .. } => "pickle-global",
                PickleFault::Allocation { .. } => "allocation",
                _ => "pickle",
            },
            Violation::Expanding { .. }
            | Violation::TooDeep { .. }
            | Violation::NameTooLong { .. }
            | Violation::RecordTooLong { .. }
            | Violation::Attribute { .. } => "pickle",
            _ => "header",
        }
    }
}

is_an_error!(Violation);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Expanding { limit } => write!(
                f,
                "what the pickle unfolds to takes more than {limit} bytes, the limit for a file of \
                 that length"
            ),
            Violation::TooDeep { limit } => write!(
                f,
                "collections nest deeper than the limit of {limit}, or hold themselves"
            ),
            Violation::NameTooLong { limit } => {
                write!(f, "a name is longer than the limit of {limit} bytes")
            }
            Violation::Attribute { found } => {
                write!(
                    f,
                    "a value made by {found} is neither a tensor nor an attribute"
                )
            }
            Violation::RecordTooLong { found, limit } => {
                write!(f, "the record is {found} bytes long, the limit is {limit}")
            }
            Violation::Pickle { record, error } => write!(f, "{record}: {error}"),
            Violation::NoPickle => f.write_str("the archive has no data.pkl"),
            Violation::OtherLayout { how } => write!(
                f,
                "an archive of {how}, which is not read: load it with torch and save its \
                 state_dict() with torch.save"
            ),
            Violation::ByteOrder { found } => write!(
                f,
                "the archive's byteorder is \"{}\", neither little nor big",
                found.escape_debug()
            ),
            Violation::Tar => f.write_str(
                "a tar archive as torch wrote them before version 0.1.10: load it with torch and \
                 save it anew",
            ),
            Violation::Magic => f.write_str(
                "a pickle of Python that torch.save did not write: load it where it came \
                     from, and save its tensors with torch.save",
            ),
            Violation::Version { found } => {
                write!(f, "the file is of version {found}; 1001 is known")
            }
            Violation::UnknownStorage { key } => write!(
                f,
                "the storage \"{}\" belongs to no tensor, so its length is unknown",
                key.escape_debug()
            ),
            Violation::StorageCount {
                key,
                expected,
                found,
            } => write!(
                f,
                "the storage \"{}\" has {found} elements, its tensors say {expected}",
                key.escape_debug()
            ),
            Violation::StorageCut { needed, available } => write!(
                f,
                "a storage of {needed} bytes begins {available} bytes before the file ends: it \
                 was cut short"
            ),
            Violation::Keys => f.write_str("the keys of the storages are no list of texts"),
        }
    }
}

#[cfg(test)]
mod tests {
    use zt::{Error, ErrorKind};

    use super::{PickleError, PickleFault, Violation};

    #[test]
    fn memory_that_is_not_to_be_had_is_no_fault_of_the_pickle() {
        let byte_len = 1 << 40;
        let fault = PickleFault::Allocation { byte_len };
        let error = Error::from(Violation::Pickle {
            record: "data.pkl",
            error: PickleError { at: 0, fault },
        });
        let found = (error.kind(), error.code());
        assert_eq!(found, (ErrorKind::Limit, "allocation"));
    }
}
