//! What is measured: each operation as a contest over a workload.

mod convert;
mod open;
mod planes;
mod read;
mod rows;
mod verify;
mod write;

use std::path::Path;

use crate::{Contest, Result, Size, Workload};

/// What an operation is done to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Subject {
    /// `W2`.
    Checkpoint,
    /// `W3`.
    Tiny,
    /// `W1`.
    Large,
    /// `W5`.
    Integers,
    /// `W4`.
    Sparse,
}

impl Subject {
    /// The tensors.
    ///
    /// # Errors
    ///
    /// Where there is no memory for them.
    pub fn workload(self, size: Size) -> Result<Workload> {
        match self {
            Subject::Checkpoint => Workload::checkpoint(size),
            Subject::Tiny => Workload::tiny(size.of(100_000)),
            Subject::Large => Workload::one_large(size),
            Subject::Integers => Workload::integers(size),
            Subject::Sparse => Ok(Workload::sparse(size)),
        }
    }
}

/// An operation that can be asked for by name.
pub struct Operation {
    /// The name.
    pub id: &'static str,
    /// The workload.
    pub subject: Subject,
    /// Prepares the files it needs in a folder of its own, which outlives the contest, and names
    /// those who take part.
    pub prepare: for<'a> fn(&'a Workload, &'a Path) -> Result<Contest<'a>>,
}

/// All operations, in the order of the report.
pub const OPERATIONS: &[Operation] = &[
    Operation {
        id: "open-find",
        subject: Subject::Tiny,
        prepare: open::find,
    },
    Operation {
        id: "write-tiny",
        subject: Subject::Tiny,
        prepare: write::tiny,
    },
    Operation {
        id: "read-tiny",
        subject: Subject::Tiny,
        prepare: read::tiny,
    },
    Operation {
        id: "write-raw",
        subject: Subject::Checkpoint,
        prepare: write::raw,
    },
    Operation {
        id: "write-sha256",
        subject: Subject::Checkpoint,
        prepare: write::sha256,
    },
    Operation {
        id: "write-zstd-1",
        subject: Subject::Checkpoint,
        prepare: |workload, folder| write::zstd("write-zstd-1", 1, workload, folder),
    },
    Operation {
        id: "write-zstd-3",
        subject: Subject::Checkpoint,
        prepare: |workload, folder| write::zstd("write-zstd-3", 3, workload, folder),
    },
    Operation {
        id: "read-raw",
        subject: Subject::Checkpoint,
        prepare: read::raw,
    },
    Operation {
        id: "read-zstd-3",
        subject: Subject::Checkpoint,
        prepare: read::zstd,
    },
    Operation {
        id: "read-mapped",
        subject: Subject::Checkpoint,
        prepare: read::mapped,
    },
    Operation {
        id: "verify-crc32c",
        subject: Subject::Checkpoint,
        prepare: verify::crc32c,
    },
    Operation {
        id: "verify-sha256",
        subject: Subject::Checkpoint,
        prepare: verify::sha256,
    },
    Operation {
        id: "rows-raw",
        subject: Subject::Checkpoint,
        prepare: rows::raw,
    },
    Operation {
        id: "rows-zstd-3",
        subject: Subject::Checkpoint,
        prepare: rows::zstd,
    },
    Operation {
        id: "convert-raw",
        subject: Subject::Checkpoint,
        prepare: convert::raw,
    },
    Operation {
        id: "convert-zstd-3",
        subject: Subject::Checkpoint,
        prepare: convert::zstd,
    },
    Operation {
        id: "planes-write",
        subject: Subject::Checkpoint,
        prepare: |workload, folder| planes::write("planes-write", workload, folder),
    },
    Operation {
        id: "planes-read",
        subject: Subject::Checkpoint,
        prepare: |workload, folder| planes::read("planes-read", workload, folder),
    },
    Operation {
        id: "write-f32-zstd-1",
        subject: Subject::Large,
        prepare: |workload, folder| write::zstd("write-f32-zstd-1", 1, workload, folder),
    },
    Operation {
        id: "planes-write-f32",
        subject: Subject::Large,
        prepare: |workload, folder| planes::write("planes-write-f32", workload, folder),
    },
    Operation {
        id: "planes-read-f32",
        subject: Subject::Large,
        prepare: |workload, folder| planes::read("planes-read-f32", workload, folder),
    },
    Operation {
        id: "write-integers-zstd-3",
        subject: Subject::Integers,
        prepare: |workload, folder| write::zstd("write-integers-zstd-3", 3, workload, folder),
    },
    Operation {
        id: "write-csr-zstd-3",
        subject: Subject::Sparse,
        prepare: write::sparse,
    },
    Operation {
        id: "read-csr",
        subject: Subject::Sparse,
        prepare: read::sparse,
    },
];
