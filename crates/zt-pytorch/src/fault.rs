//! Why a tensor, or a whole file, is refused.

use zt::{Error, ErrorKind};
use zt_pickle::{PickleError, PickleFault};

use crate::global::Unsupported;

/// The limit of dimensions, which is torch's. It is checked before sizes are copied, because any
/// number of tensors can share a tuple of sizes.
pub(super) const RANK: usize = 64;

/// What is wrong with a tensor.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(super) enum TensorFault {
    #[error("its {name} cannot be {found}")]
    Argument { name: &'static str, found: &'static str },
    #[error("its {name} is missing")]
    Missing { name: &'static str },
    #[error("its {name} is negative: {found}")]
    Negative { name: &'static str, found: i64 },
    #[error("it has {found} dimensions, the limit is {RANK}")]
    Rank { found: usize },
    #[error("it has {sizes} sizes and {strides} strides")]
    Strides { sizes: usize, strides: usize },
    #[error("its elements take more than 2^64 bytes")]
    Overflow,
    #[error("its elements end at byte {needed} of a storage of {available} bytes")]
    Outside { needed: u64, available: u64 },
    /// The parts of a sparse or quantized tensor contradict each other.
    #[error("its {what}: expected {expected}, found {found}")]
    Parts { what: &'static str, expected: u64, found: u64 },
    #[error("the operation \"{bit}\" was deferred, so the stored values are not its values")]
    Lazy { bit: &'static str },
    #[error("its elements are not in the file: {why}")]
    NoData { why: &'static str },
    /// An object that holds tensors or describes one. The file is sound.
    #[error("{what}")]
    NotTensor { what: String },
    #[error("zTensor 1.2 has no format for {}", .name.escape_debug())]
    Layout { name: String },
    /// An [`Unsupported`] global, or one that the list does not have.
    #[error("it is made by {}, named at byte {at} of the pickle, which is unsupported; nothing was run", .name.escape_debug())]
    Global { name: String, at: u32 },
    #[error("zTensor 1.2 has no dtype for elements of torch.{name}")]
    Element { name: &'static str },
    #[error("the view takes {byte_len} bytes, {left} are left for all views of the file")]
    Expanded { byte_len: u64, left: u64 },
    #[error("its storage \"{}\" is missing", .key.escape_debug())]
    NoStorage { key: String },
    #[error("its storage has {found} bytes, {expected} are expected")]
    StorageLength { expected: u64, found: u64 },
}

/// A part of a tensor, or its fault.
pub(super) type Done<T> = Result<T, TensorFault>;

impl From<TensorFault> for Error {
    fn from(fault: TensorFault) -> Self {
        let (kind, code) = match fault {
            TensorFault::Lazy { .. }
            | TensorFault::NoData { .. }
            | TensorFault::NotTensor { .. }
            | TensorFault::Layout { .. } => (ErrorKind::Unsupported, "unsupported"),
            TensorFault::Global { .. } => (ErrorKind::Unsupported, "pickle-global"),
            TensorFault::Element { .. } => (ErrorKind::Unsupported, "dtype"),
            TensorFault::Rank { .. } => (ErrorKind::Limit, "schema"),
            TensorFault::Expanded { .. } => (ErrorKind::Limit, "decompression-limit"),
            TensorFault::Overflow | TensorFault::Outside { .. } => (ErrorKind::Malformed, "bounds"),
            TensorFault::NoStorage { .. } => (ErrorKind::Malformed, "missing-component"),
            TensorFault::StorageLength { .. } | TensorFault::Parts { .. } => {
                (ErrorKind::Malformed, "shape-size-mismatch")
            }
            _ => (ErrorKind::Malformed, "schema"),
        };
        Error::new(kind, code, fault)
    }
}

impl From<Unsupported> for TensorFault {
    fn from(unsupported: Unsupported) -> Self {
        TensorFault::Global { name: unsupported.to_string(), at: unsupported.at }
    }
}

/// Why a file is refused.
#[derive(Debug, thiserror::Error)]
pub(super) enum TorchFault {
    #[error("the values of the pickle take more than the limit of {limit} bytes")]
    Expanding { limit: u64 },
    #[error("collections nest deeper than the limit of {limit}, or contain themselves")]
    TooDeep { limit: usize },
    #[error("a name is longer than the limit of {limit} bytes")]
    NameTooLong { limit: usize },
    /// An object of a class that is not on the list. Alone, it refuses the file.
    #[error(
        "no tensor and no attribute beside an object of {}, which is unsupported; nothing was run",
        .class.escape_debug()
    )]
    Unknown { class: String, at: Option<u32> },
    #[error("the values of the pickle take too much memory: {0}")]
    Memory(PickleFault),
    #[error("cannot represent {found} as a tensor or an attribute")]
    Attribute { found: String },
    #[error("the record is {found} bytes long, the limit is {limit}")]
    RecordTooLong { found: u64, limit: u64 },
    #[error("the pickle is longer than the limit of {limit} bytes, without long byte strings")]
    PickleTooLong { limit: u64 },
    /// A value in the file cannot be read.
    #[error(transparent)]
    Read(Error),
    #[error("{record}: {error}")]
    Pickle { record: &'static str, error: PickleError },
    /// A record of a truncated archive.
    #[error("truncated: {name} is not there")]
    Cut { name: &'static str },
    #[error("the archive has no data.pkl")]
    NoPickle,
    #[error(
        "archives of {how} are unsupported: load the file with torch and save its state_dict() \
         with torch.save"
    )]
    OtherLayout { how: &'static str },
    #[error("byteorder is \"{}\"; little or big is expected", .found.escape_debug())]
    ByteOrder { found: String },
    #[error("the tar archive has no {name}")]
    NoMember { name: &'static str },
    #[error("the header of a tar archive's member is invalid")]
    Header,
    #[error(
        "storages has no count, key, class or list of parts here, or they contradict each other"
    )]
    Storages,
    #[error("tensors has no count, keys, sizes or strides, or names a missing storage")]
    Tensors,
    #[error("the first pickle is not the magic number of torch.save")]
    Magic,
    /// Their pickles have the bytes of arrays between the instructions.
    #[error(
        "files of joblib are unsupported, nothing was run: load it with joblib, and save its arrays \
         with numpy.savez"
    )]
    Joblib,
    #[error("version {found} is unsupported; 1001 is supported")]
    Version { found: String },
    #[error("the storage \"{}\" belongs to no tensor, so its length is unknown", .key.escape_debug())]
    UnknownStorage { key: String },
    #[error("the storage \"{}\" has {found} elements, its tensors expect {expected}", .key.escape_debug())]
    StorageCount { key: String, expected: u64, found: i64 },
    #[error("truncated: {available} of {needed} bytes of a storage are there")]
    StorageTruncated { needed: u64, available: u64 },
    #[error("the storage keys are not a list of texts")]
    Keys,
}

impl From<TorchFault> for Error {
    fn from(fault: TorchFault) -> Self {
        let (kind, code) = match &fault {
            TorchFault::Read(error) => return error.clone(),
            TorchFault::Expanding { .. }
            | TorchFault::PickleTooLong { .. }
            | TorchFault::TooDeep { .. }
            | TorchFault::NameTooLong { .. }
            | TorchFault::RecordTooLong { .. } => (ErrorKind::Limit, "pickle"),
            TorchFault::Memory(_) => (ErrorKind::Limit, "allocation"),
            TorchFault::Unknown { .. } => (ErrorKind::Unsupported, "pickle-global"),
            TorchFault::OtherLayout { .. } | TorchFault::Version { .. } | TorchFault::Joblib => {
                (ErrorKind::Unsupported, "unsupported")
            }
            TorchFault::Pickle { error, .. } => of_pickle(&error.fault),
            TorchFault::Attribute { .. } => (ErrorKind::Malformed, "pickle"),
            TorchFault::Cut { .. } => (ErrorKind::Malformed, "truncated"),
            _ => (ErrorKind::Malformed, "header"),
        };
        Error::new(kind, code, fault)
    }
}

fn of_pickle(fault: &PickleFault) -> (ErrorKind, &'static str) {
    match fault {
        PickleFault::Global { .. } => (ErrorKind::Unsupported, "pickle-global"),
        PickleFault::Allocation { .. } => (ErrorKind::Limit, "allocation"),
        PickleFault::Limit { .. } => (ErrorKind::Limit, "pickle"),
        _ => (ErrorKind::Malformed, "pickle"),
    }
}

#[cfg(test)]
mod tests {
    use super::{ErrorKind, PickleFault, of_pickle};

    #[test]
    fn refused_memory_is_a_limit() {
        let fault = PickleFault::Allocation { byte_len: 1 << 40 };
        assert_eq!(of_pickle(&fault), (ErrorKind::Limit, "allocation"));
    }
}
