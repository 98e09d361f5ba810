//! What is measured: each operation as a contest over a workload.

mod convert;
mod models;
mod open;
mod planes;
mod read;
mod rows;
mod verify;
mod write;

use std::path::Path;

use zt::Verify;

use self::rows::Quarter;
use crate::contest::timed;
use crate::contestants::{limits, ours};
use crate::{Contest, Result, Role, Size, Workload};

/// What an operation is done to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Subject {
    /// `W2a`.
    Small,
    /// `W2b`.
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

/// Where an operation's files are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In the usual folder.
    Memory,
    /// On a disk, if one was named: with a cold cache.
    Disk,
    /// Both, in turn.
    Both,
}

impl Subject {
    /// All of them, in the order of the report.
    pub const ALL: &[Subject] = &[
        Subject::Tiny,
        Subject::Small,
        Subject::Checkpoint,
        Subject::Large,
        Subject::Integers,
        Subject::Sparse,
    ];

    /// The name of the workload.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Subject::Large => "W1",
            Subject::Small => "W2a",
            Subject::Checkpoint => "W2b",
            Subject::Tiny => "W3",
            Subject::Sparse => "W4",
            Subject::Integers => "W5",
        }
    }

    /// The tensors.
    ///
    /// # Errors
    ///
    /// Where there is no memory for them.
    pub fn workload(self, size: Size) -> Result<Workload> {
        match self {
            Subject::Small => Workload::small_checkpoint(size),
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
    /// The workloads.
    pub subjects: &'static [Subject],
    /// Where its files are.
    pub place: Place,
    /// Prepares the files it needs in a folder of its own, which outlives the contest, and names
    /// those who take part.
    pub prepare: for<'a> fn(&'a Workload, &'a Path) -> Result<Contest<'a>>,
}

/// `W2`, of small and of large matrices.
const CHECKPOINTS: &[Subject] = &[Subject::Small, Subject::Checkpoint];

/// All operations, in the order of the report.
pub const OPERATIONS: &[Operation] = &[
    Operation {
        id: "open-find",
        subjects: &[Subject::Tiny],
        place: Place::Memory,
        prepare: open::find,
    },
    Operation {
        id: "write-tiny",
        subjects: &[Subject::Tiny],
        place: Place::Memory,
        prepare: write::tiny,
    },
    Operation {
        id: "read-tiny",
        subjects: &[Subject::Tiny],
        place: Place::Memory,
        prepare: read::tiny,
    },
    Operation { id: "write-raw", subjects: CHECKPOINTS, place: Place::Both, prepare: write::raw },
    Operation {
        id: "write-sha256",
        subjects: CHECKPOINTS,
        place: Place::Memory,
        prepare: write::sha256,
    },
    Operation {
        id: "write-zstd-1",
        subjects: CHECKPOINTS,
        place: Place::Memory,
        prepare: |workload, folder| write::zstd("write-zstd-1", 1, workload, folder),
    },
    Operation {
        id: "write-zstd-3",
        subjects: CHECKPOINTS,
        place: Place::Memory,
        prepare: |workload, folder| write::zstd("write-zstd-3", 3, workload, folder),
    },
    Operation { id: "read-raw", subjects: CHECKPOINTS, place: Place::Memory, prepare: read::raw },
    Operation {
        id: "read-zstd-3",
        subjects: CHECKPOINTS,
        place: Place::Memory,
        prepare: read::zstd,
    },
    Operation {
        id: "read-raw-cold",
        subjects: CHECKPOINTS,
        place: Place::Disk,
        prepare: |workload, folder| cold(read::raw(workload, folder)?, folder),
    },
    Operation {
        id: "plan-raw-cold",
        subjects: CHECKPOINTS,
        place: Place::Disk,
        prepare: |workload, folder| {
            let mut contest = cold(read::plan(workload, folder)?, folder)?;
            contest.owes(0.9, "direct reads, all threads");
            Ok(contest)
        },
    },
    Operation {
        id: "read-zstd-3-cold",
        subjects: CHECKPOINTS,
        place: Place::Disk,
        prepare: |workload, folder| {
            cold_zstd(read::zstd(workload, folder)?, folder, |path| {
                drop(ours::read_all(&ours::open(path, Verify::Never)?)?);
                Ok(())
            })
        },
    },
    Operation {
        id: "read-mapped",
        subjects: CHECKPOINTS,
        place: Place::Memory,
        prepare: read::mapped,
    },
    Operation {
        id: "verify-crc32c",
        subjects: CHECKPOINTS,
        place: Place::Memory,
        prepare: verify::crc32c,
    },
    Operation {
        id: "verify-crc32c-cold",
        subjects: CHECKPOINTS,
        place: Place::Disk,
        prepare: |workload, folder| cold(verify::crc32c(workload, folder)?, folder),
    },
    Operation {
        id: "verify-zstd-3",
        subjects: CHECKPOINTS,
        place: Place::Memory,
        prepare: verify::zstd,
    },
    Operation {
        id: "verify-zstd-3-cold",
        subjects: CHECKPOINTS,
        place: Place::Disk,
        prepare: |workload, folder| {
            cold_zstd(verify::zstd(workload, folder)?, folder, |path| {
                ours::verify(&ours::open(path, Verify::OnRead)?).map(drop)
            })
        },
    },
    Operation {
        id: "verify-sha256",
        subjects: CHECKPOINTS,
        place: Place::Memory,
        prepare: verify::sha256,
    },
    Operation {
        id: "rows-raw",
        subjects: &[Subject::Checkpoint],
        place: Place::Memory,
        prepare: rows::raw,
    },
    Operation {
        id: "rows-quarter-raw",
        subjects: &[Subject::Checkpoint],
        place: Place::Memory,
        prepare: |workload, folder| {
            rows::quarter("rows-quarter-raw", Quarter::Rows, workload, folder)
        },
    },
    Operation {
        id: "columns-quarter-raw",
        subjects: &[Subject::Checkpoint],
        place: Place::Memory,
        prepare: |workload, folder| {
            rows::quarter("columns-quarter-raw", Quarter::Columns, workload, folder)
        },
    },
    Operation {
        id: "rows-zstd-3",
        subjects: &[Subject::Checkpoint],
        place: Place::Memory,
        prepare: rows::zstd,
    },
    Operation {
        id: "rows-each-zstd-3",
        subjects: CHECKPOINTS,
        place: Place::Memory,
        prepare: rows::each,
    },
    Operation {
        id: "rows-many-zstd-3",
        subjects: &[Subject::Large],
        place: Place::Memory,
        prepare: rows::many,
    },
    Operation {
        id: "convert-raw",
        subjects: CHECKPOINTS,
        place: Place::Both,
        prepare: convert::raw,
    },
    Operation {
        id: "convert-zstd-3",
        subjects: CHECKPOINTS,
        place: Place::Memory,
        prepare: convert::zstd,
    },
    Operation {
        id: "planes-write",
        subjects: CHECKPOINTS,
        place: Place::Memory,
        prepare: |workload, folder| planes::write("planes-write", workload, folder),
    },
    Operation {
        id: "planes-read",
        subjects: CHECKPOINTS,
        place: Place::Memory,
        prepare: |workload, folder| planes::read("planes-read", workload, folder),
    },
    Operation {
        id: "stats",
        subjects: &[Subject::Checkpoint],
        place: Place::Memory,
        prepare: models::statistics,
    },
    Operation {
        id: "diff-summary",
        subjects: &[Subject::Checkpoint],
        place: Place::Memory,
        prepare: models::difference,
    },
    Operation {
        id: "delta",
        subjects: &[Subject::Checkpoint],
        place: Place::Memory,
        prepare: models::delta,
    },
    Operation {
        id: "patch",
        subjects: &[Subject::Checkpoint],
        place: Place::Memory,
        prepare: models::patch,
    },
    Operation {
        id: "write-f32-zstd-1",
        subjects: &[Subject::Large],
        place: Place::Memory,
        prepare: |workload, folder| write::zstd("write-f32-zstd-1", 1, workload, folder),
    },
    Operation {
        id: "planes-write-f32",
        subjects: &[Subject::Large],
        place: Place::Memory,
        prepare: |workload, folder| planes::write("planes-write-f32", workload, folder),
    },
    Operation {
        id: "planes-read-f32",
        subjects: &[Subject::Large],
        place: Place::Memory,
        prepare: |workload, folder| planes::read("planes-read-f32", workload, folder),
    },
    Operation {
        id: "write-integers-zstd-3",
        subjects: &[Subject::Integers],
        place: Place::Memory,
        prepare: |workload, folder| write::zstd("write-integers-zstd-3", 3, workload, folder),
    },
    Operation {
        id: "write-csr-zstd-3",
        subjects: &[Subject::Sparse],
        place: Place::Memory,
        prepare: write::sparse,
    },
    Operation {
        id: "read-csr",
        subjects: &[Subject::Sparse],
        place: Place::Memory,
        prepare: read::sparse,
    },
];

/// The same operation on files that are not in the page cache.
fn cold<'a>(mut contest: Contest<'a>, folder: &Path) -> Result<Contest<'a>> {
    contest.title.push_str(", cold cache");
    contest.targets.clear();
    contest.starts_cold(folder);
    contest.remark("Before each turn, its files leave the page cache.");
    Ok(contest)
}

/// As [`cold`], for our compressed file: it owes at most 1.15 times the time of reading it or of decoding
/// it, whichever takes longer. `decode` finds it in the cache.
fn cold_zstd<'a>(
    contest: Contest<'a>,
    folder: &Path,
    decode: fn(&Path) -> Result<()>,
) -> Result<Contest<'a>> {
    let longer = "reading it or decoding it, the longer";
    let mut contest = cold(contest, folder)?;
    let path = folder.join("ours.zt");
    contest.add(Role::Limit, longer, move |_| {
        let (reading, ()) = timed(|| limits::cat(&path))?;
        let (decoding, ()) = timed(|| decode(&path))?;
        Ok(reading.max(decoding))
    });
    contest.owes(0.87, longer);
    Ok(contest)
}
