//! Why the parts of a sparse tensor do not belong together.

use zt::{DType, ErrorKind};

/// Why the parts of a sparse tensor do not belong together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the texts of the variants explain the fields")]
pub enum SparseFault {
    #[error("the indices are {dtype}, and not integers")]
    NotIntegers { dtype: DType },
    #[error("{byte_len} bytes of indices are no whole number of {dtype}")]
    Partial { byte_len: u64, dtype: DType },
    #[error("the number of {what} is {found}, expected {expected}")]
    Count { what: &'static str, expected: u64, found: u64 },
    #[error("blocks of {block} do not fill a dimension of {dimension}")]
    Block { dimension: u64, block: u64 },
    #[error("the pointer at {at} is {}, expected {expected}", found.cast_signed())]
    Pointer { at: u64, found: u64, expected: u64 },
    #[error("the pointer at {at} is {}, less than the {before} before it", found.cast_signed())]
    Decreases { at: u64, found: u64, before: u64 },
    #[error("two diagonals have the offset {offset}")]
    Diagonal { offset: i64 },
    #[error("the matrix has {found} diagonals, the limit is {limit}")]
    Diagonals { found: u64, limit: u64 },
    #[error("the coordinates take more than 2^64 bytes")]
    Overflow,
}

impl From<SparseFault> for zt::Error {
    fn from(fault: SparseFault) -> Self {
        let (kind, code) = match fault {
            SparseFault::NotIntegers { .. } => (ErrorKind::Malformed, "index-dtype"),
            SparseFault::Pointer { .. }
            | SparseFault::Decreases { .. }
            | SparseFault::Diagonal { .. } => (ErrorKind::Malformed, "index-value"),
            SparseFault::Diagonals { .. } => (ErrorKind::Limit, "structure-limit"),
            _ => (ErrorKind::Malformed, "shape-size-mismatch"),
        };
        zt::Error::new(kind, code, fault)
    }
}
