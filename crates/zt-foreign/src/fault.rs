//! What can go wrong between files, whatever their kinds. The rules of a kind are faults of its own
//! crate.

use std::fmt;
use std::path::PathBuf;

use zt::foreign::Kind;
use zt::{DType, ErrorKind};

use crate::outgoing::{LOSSY, Loss};

/// Makes the faults of a crate errors: each has a `kind`, a `code` and a text.
#[macro_export]
macro_rules! is_an_error {
    ($fault:ty) => {
        impl From<$fault> for zt::Error {
            fn from(fault: $fault) -> Self {
                zt::Error::new(fault.kind(), fault.code(), fault)
            }
        }

        impl std::error::Error for $fault {}
    };
}

/// Why files are not opened or converted.
#[derive(Debug)]
#[non_exhaustive]
pub enum Fault {
    /// No kind recognises the file.
    UnknownKind {
        /// The first bytes of the file.
        start: Vec<u8>,
        /// The kinds that were asked.
        known: Vec<Kind>,
    },
    /// The table has no such kind.
    NoSuchKind {
        /// The kind that was asked for.
        kind: Kind,
        /// The kinds of the table.
        known: Vec<Kind>,
    },
    /// A kind that is only read.
    NotWritable {
        /// The kind that was asked for.
        kind: Kind,
        /// The kinds that are written.
        writable: Vec<Kind>,
    },
    /// A kind that is not written as sets.
    NoSets {
        /// The kind that was asked for.
        kind: Kind,
    },
    /// The name of a set is no name of a file.
    Stem,
    /// An index was given without a path, so its shards cannot be found.
    NeedsPath,
    /// Two inputs have an object of one name.
    Repeated {
        /// The input that has it first.
        first: Option<PathBuf>,
        /// The other one.
        second: Option<PathBuf>,
    },
    /// An input has an object whose name the file has already.
    Taken {
        /// The path of the input.
        by: Option<PathBuf>,
    },
    /// The output exists already.
    Exists,
    /// The output is a folder, a device or a pipe.
    NoFile,
    /// The output is one of the files that are read.
    IsInput {
        /// That file.
        input: PathBuf,
    },
    /// A cast to something other than a floating-point type.
    CastTarget {
        /// The type that was asked for.
        dtype: DType,
    },
    /// The dense value was asked for, and the format has none.
    NoDenseValue {
        /// The object's format.
        format: String,
    },
    /// There is no object that the target can represent, and the target cannot be empty.
    NothingToWrite {
        /// The target.
        kind: Kind,
    },
    /// The target cannot represent something.
    Lossy {
        /// The target.
        target: Kind,
        /// What it cannot represent.
        loss: Loss,
    },
    /// An object gave another number of bytes than its shape demands.
    Length {
        /// The bytes that the shape demands.
        expected: u64,
        /// The bytes that the object gave.
        found: u64,
    },
    /// The list of names is not UTF-8.
    NamesNotUtf8,
    /// The list of names is above the limit.
    NamesTooLong {
        /// The most bytes of a list.
        limit: u64,
    },
    /// The list of names has another length than the file has tensors.
    NameCount {
        /// Names in the list.
        names: u64,
        /// Tensors without a name in the file.
        tensors: u64,
    },
}

impl Fault {
    /// The fault that an error stands for; `None` for an error of another crate.
    #[must_use]
    pub fn of(error: &zt::Error) -> Option<&Fault> {
        error.inner()?.downcast_ref()
    }

    fn kind(&self) -> ErrorKind {
        match self {
            Fault::UnknownKind { .. }
            | Fault::NoSuchKind { .. }
            | Fault::NotWritable { .. }
            | Fault::NoSets { .. }
            | Fault::NeedsPath
            | Fault::NoDenseValue { .. }
            | Fault::NothingToWrite { .. }
            | Fault::Lossy { .. } => ErrorKind::Unsupported,
            Fault::Repeated { .. }
            | Fault::Taken { .. }
            | Fault::Exists
            | Fault::NoFile
            | Fault::IsInput { .. }
            | Fault::CastTarget { .. }
            | Fault::Stem
            | Fault::NamesNotUtf8
            | Fault::NamesTooLong { .. }
            | Fault::NameCount { .. } => ErrorKind::Misuse,
            Fault::Length { .. } => ErrorKind::Malformed,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Fault::UnknownKind { .. } => "unknown-kind",
            Fault::NoSuchKind { .. }
            | Fault::NotWritable { .. }
            | Fault::NoSets { .. }
            | Fault::NeedsPath
            | Fault::NoDenseValue { .. } => "unsupported",
            Fault::Repeated { .. } | Fault::Taken { .. } => "duplicate-name",
            Fault::Exists | Fault::NoFile | Fault::IsInput { .. } => "overwrite",
            Fault::CastTarget { .. } | Fault::Stem => "misuse",
            Fault::Lossy { .. } | Fault::NothingToWrite { .. } => LOSSY,
            Fault::Length { .. } => "shape-size-mismatch",
            Fault::NamesNotUtf8 | Fault::NamesTooLong { .. } | Fault::NameCount { .. } => "names",
        }
    }
}

is_an_error!(Fault);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::UnknownKind { start, known } => {
                f.write_str("not a tensor file of a known kind; ")?;
                match start.as_slice() {
                    [] => f.write_str("it is empty")?,
                    start => write!(f, "it begins with \"{}\"", start.escape_ascii())?,
                }
                write!(f, "; known: {}", list(known))
            }
            Fault::NoSuchKind { kind, known } => write!(
                f,
                "this build knows no kind \"{kind}\"; known: {}",
                list(known)
            ),
            Fault::NotWritable { kind, writable } => write!(
                f,
                "{kind} files are read, not written; written are: {}",
                list(writable)
            ),
            Fault::NoSets { kind } => write!(
                f,
                "sets of files are of safetensors or zt files, not of {kind}"
            ),
            Fault::Stem => f.write_str("a set is called by a plain name, without a folder"),
            Fault::NeedsPath => f.write_str(
                "the index of a sharded set: open it by its path, its shards lie beside it",
            ),
            Fault::Repeated {
                first: Some(first),
                second: Some(second),
            } => write!(f, "in both {} and {}", first.display(), second.display()),
            Fault::Repeated { .. } => f.write_str("in two inputs"),
            Fault::Taken { by: Some(by) } => {
                write!(f, "is in the file already, and in {}", by.display())
            }
            Fault::Taken { by: None } => f.write_str("is in the file already"),
            Fault::Exists => f.write_str("exists"),
            Fault::NoFile => f.write_str("exists, and is no file that could be replaced"),
            Fault::IsInput { input } => write!(
                f,
                "is the input {}, which is never overwritten",
                input.display()
            ),
            Fault::CastTarget { dtype } => write!(
                f,
                "values are cast to f64, f32, f16 or bf16, not to {dtype}"
            ),
            Fault::NoDenseValue { format } => write!(
                f,
                "format \"{}\" has no dense value here",
                format.escape_debug()
            ),
            Fault::NothingToWrite { kind } => {
                write!(f, "{kind} cannot be empty, and there is nothing to write")
            }
            Fault::Lossy { target, loss } => loss.describe(*target, f),
            Fault::Length { expected, found } => write!(
                f,
                "the shape demands {expected} bytes, the values are {found}"
            ),
            Fault::NamesNotUtf8 => f.write_str("the list of names is not UTF-8"),
            Fault::NamesTooLong { limit } => {
                write!(f, "the list of names is longer than {limit} bytes")
            }
            Fault::NameCount { names, tensors } => write!(
                f,
                "the list has {names} names, the file has {tensors} tensors without a name"
            ),
        }
    }
}

fn list(kinds: &[Kind]) -> String {
    let names: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
    names.join(", ")
}
