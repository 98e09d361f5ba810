//! Why a checkpoint or a tensor of it is refused.

use zt::{Error, ErrorKind};
use zt_foreign::slices::SliceFault;
use zt_pickle::{PickleError, PickleFault};

/// Why a checkpoint or a tensor of it is refused.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Violation {
    #[error("{0}")]
    Pickle(std::sync::Arc<PickleError>),
    #[error("the metadata has {found} bytes, the limit is {limit}")]
    TooLong { found: u64, limit: u64 },
    #[error("its {name} cannot be {found}")]
    Field { name: &'static str, found: &'static str },
    #[error("its {name} is missing")]
    Missing { name: &'static str },
    #[error("its {name} is negative: {found}")]
    Negative { name: &'static str, found: i64 },
    #[error("it has {found} dimensions, the limit is {limit}")]
    Rank { found: usize, limit: usize },
    #[error("more chunks than one for each {limit} bytes of the metadata")]
    Chunks { limit: usize },
    #[error("the path of a file has more than {limit} bytes")]
    Path { limit: usize },
    #[error("items of the file {file:?} share bytes")]
    Overlap { file: String },
    /// An object whose class is not read.
    #[error("objects of {} are unsupported; nothing was run", .name.escape_debug())]
    Class { name: String },
    #[error("zTensor 1.2 has no dtype for elements of torch.{}", .name.escape_debug())]
    Element { name: String },
    #[error("tensors with the layout {} are unsupported", .name.escape_debug())]
    Layout { name: String },
    #[error("the chunk at {offsets:?} is in no file")]
    NoItem { offsets: Vec<u64> },
    #[error(
        "the item is transformed by {}, which is unsupported; save the checkpoint without extensions",
        .name.escape_debug()
    )]
    Transformed { name: String },
    #[error(transparent)]
    Slices(#[from] SliceFault),
    #[error("the file {file:?} is missing; put it beside .metadata")]
    NoFile { file: String },
    #[error("the file {file:?} is not opened: {why}")]
    Location { file: String, why: &'static str },
    #[error("the file {file:?} cannot be found, because .metadata was opened without a path")]
    NeedsPath { file: String },
    #[error("truncated: the file {file:?} has {available} bytes, and the item ends at {needed}")]
    Truncated { file: String, needed: u64, available: u64 },
    /// A fault of the archive, whose offsets are no offsets of the file.
    #[error("the item: {message}")]
    Archive { message: String },
    #[error("the item has no data.pkl")]
    NoPickle,
    #[error("the item is not little-endian")]
    ByteOrder,
    #[error("a record of the item has {found} bytes, the limit is {limit}")]
    RecordTooLong { found: u64, limit: u64 },
    #[error("the item has sizes {found:?}, its chunk has {expected:?}")]
    Sizes { expected: Vec<u64>, found: Vec<u64> },
    #[error("the item has elements of {}, the tensor has {expected}", .found.escape_debug())]
    OtherElement { expected: &'static str, found: String },
    #[error("the item has {found} bytes, but the elements of its chunk take {expected}")]
    ItemLength { expected: u64, found: u64 },
    #[error("an operation was deferred, so the stored values are not those of the tensor")]
    Deferred,
    #[error("the item has no storage, or a compressed one")]
    NoStorage,
    #[error("the storage of the item has {found} bytes, {expected} are expected")]
    StorageLength { expected: u64, found: u64 },
    #[error("elements of the item are outside its storage")]
    OutsideStorage,
}

/// A part of a checkpoint, or its fault.
pub(crate) type Done<T> = Result<T, Violation>;

impl Violation {
    /// The error of a pickle that is the whole file.
    pub(crate) fn at_byte(self) -> Error {
        let at = match &self {
            Violation::Pickle(error) => Some(error.at),
            _ => None,
        };
        let error = Error::from(self);
        match at {
            Some(at) => error.with_offset(at),
            None => error,
        }
    }

    /// A fault of an item's archive, as a fault of the item.
    pub(crate) fn archive(error: &Error) -> Error {
        let message = error.message();
        Error::new(error.kind(), error.code(), Violation::Archive { message })
    }

    /// An object of another class than those that are read.
    pub(crate) fn class((module, name): (&str, &str)) -> Self {
        let name = format!("{module}.{name}").chars().take(120).collect();
        Violation::Class { name }
    }
}

impl From<PickleError> for Violation {
    fn from(error: PickleError) -> Self {
        Violation::Pickle(std::sync::Arc::new(error))
    }
}

impl From<Violation> for Error {
    fn from(violation: Violation) -> Self {
        use ErrorKind::{Limit, Malformed, Unsupported};
        let (kind, code) = match &violation {
            Violation::Slices(fault) => return fault.clone().into(),
            Violation::Pickle(error) => match error.fault {
                PickleFault::Allocation { .. } => (Limit, "allocation"),
                PickleFault::Limit { .. } => (Limit, "pickle"),
                _ => (Malformed, "pickle"),
            },
            Violation::TooLong { .. }
            | Violation::Path { .. }
            | Violation::RecordTooLong { .. }
            | Violation::Chunks { .. } => (Limit, "pickle"),
            Violation::Rank { .. } => (Limit, "schema"),
            Violation::Class { .. } => (Unsupported, "pickle-global"),
            Violation::Element { .. } => (Unsupported, "dtype"),
            Violation::Layout { .. }
            | Violation::Transformed { .. }
            | Violation::NeedsPath { .. }
            | Violation::ByteOrder
            | Violation::Deferred => (Unsupported, "unsupported"),
            Violation::Overlap { .. } => (Malformed, "overlap"),
            Violation::NoItem { .. } | Violation::NoStorage => (Malformed, "missing-component"),
            Violation::NoFile { .. } | Violation::Location { .. } => (Malformed, "path"),
            Violation::Truncated { .. } => (Malformed, "truncated"),
            Violation::Sizes { .. }
            | Violation::StorageLength { .. }
            | Violation::ItemLength { .. } => (Malformed, "shape-size-mismatch"),
            Violation::OtherElement { .. } => (Malformed, "dtype"),
            Violation::OutsideStorage => (Malformed, "bounds"),
            _ => (Malformed, "schema"),
        };
        Error::new(kind, code, violation)
    }
}
