//! What can go wrong between files, whatever their kinds.

use std::fmt;
use std::path::PathBuf;

use zt::{DType, ErrorKind, Kind};

use crate::member::{Member, ZT, members};
use crate::overflow::Overflow;

/// Makes the rules of a kind errors: each has a `kind`, a `code` and a text.
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
pub(crate) use is_an_error;

/// Why files are not opened or converted. Faults of a kind's own rules are its module's.
#[derive(Debug)]
pub(crate) enum Fault {
    /// No member recognises the file, which begins so.
    UnknownKind { start: Vec<u8> },
    /// A kind was asked for that this build does not have.
    NoSuchMember { kind: Kind },
    /// A kind that is read only.
    NotWritable { kind: Kind },
    /// A kind of which no sets are written.
    NoSets { kind: Kind },
    /// What the files of a set are to be called is no name of a file.
    Stem,
    /// A set of several files was given without a place to find the others.
    NeedsPath,
    /// Two inputs have an object of one name.
    Repeated {
        first: Option<PathBuf>,
        second: Option<PathBuf>,
    },
    /// An input has an object of a name that the file has which is added to.
    Taken { by: Option<PathBuf> },
    /// The output is there already.
    Exists,
    /// The output has the name of a folder, a device, a pipe.
    NoFile,
    /// The output is one of the files that are read.
    IsInput { input: PathBuf },
    /// A cast to something that is not a floating-point type.
    CastTarget { dtype: DType },
    /// The dense value was asked for, and there is none.
    NoDenseValue { format: String },
    /// Nothing of the inputs can be said, and the target cannot be empty.
    NothingToWrite { kind: Kind },
    /// The target cannot say something.
    Lossy(Loss),
    /// An object gave another number of bytes than its shape demands.
    Length { expected: u64, found: u64 },
    /// The list of names is not text.
    NamesNotUtf8,
    /// The list of names is above the limit.
    NamesTooLong { limit: u64 },
    /// The list of names has another length than the file has tensors.
    NameCount { names: u64, tensors: u64 },
    /// The caller's progress function asked to stop.
    Interrupted,
}

/// Something that a target cannot say. Keys are as [`crate::merge::display`] gives them: quoted, and
/// safe to print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Loss {
    /// A layout other than a plain array.
    Format {
        target: Kind,
        format: String,
        has_dense_value: bool,
    },
    /// Elements of a type that the target does not have.
    Type {
        target: Kind,
        dtype: DType,
        logical_type: Option<String>,
    },
    /// A component beside the values.
    Component { target: Kind, role: String },
    /// An attribute of an object.
    ObjectAttribute { target: Kind, key: String },
    /// An object beside the one that the target holds.
    Objects { target: Kind },
    /// An attribute of the file whose value the target has no words for.
    FileAttribute { target: Kind, key: String },
    /// A field that the specification of `.zt` does not know.
    Field { target: Kind, key: String },
    /// A name that means something else in the target.
    Name { target: Kind },
    /// A name in a target that has none.
    Renamed { target: Kind, becomes: String },
    /// A shape that the target's readers refuse.
    Shape { target: Kind },
    /// A name that readers of the target do not take.
    LongName {
        target: Kind,
        byte_len: usize,
        limit: usize,
    },
    /// More dimensions than the target has.
    Rank {
        target: Kind,
        rank: usize,
        limit: usize,
    },
    /// Big-endian bytes of which nobody knows what they are in little-endian.
    BigEndian { target: Kind, format: String },
    /// So many tensors, or such names and texts, that no header can say them.
    Header {
        target: Kind,
        byte_len: u64,
        limit: u64,
    },
    /// Two inputs, or an input and the file, have one attribute, or one unknown field, with two
    /// values.
    Conflict { key: String },
    /// Finite values that a cast has made infinite.
    Overflow(Overflow),
    /// A tensor or a value that an input has beside another of its name, and that was not read.
    Read { what: String },
}

impl Fault {
    fn kind(&self) -> ErrorKind {
        match self {
            Fault::UnknownKind { .. }
            | Fault::NoSuchMember { .. }
            | Fault::NotWritable { .. }
            | Fault::NoSets { .. }
            | Fault::NeedsPath
            | Fault::NoDenseValue { .. }
            | Fault::NothingToWrite { .. }
            | Fault::Lossy(_) => ErrorKind::Unsupported,
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
            Fault::Interrupted => ErrorKind::Interrupted,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Fault::UnknownKind { .. } => "unknown-kind",
            Fault::NoSuchMember { .. }
            | Fault::NotWritable { .. }
            | Fault::NoSets { .. }
            | Fault::NeedsPath
            | Fault::NoDenseValue { .. } => "unsupported",
            Fault::Repeated { .. } | Fault::Taken { .. } => "duplicate-name",
            Fault::Exists | Fault::NoFile | Fault::IsInput { .. } => "overwrite",
            Fault::CastTarget { .. } | Fault::Stem => "misuse",
            Fault::Lossy(_) | Fault::NothingToWrite { .. } => LOSSY,
            Fault::Length { .. } => "shape-size-mismatch",
            Fault::NamesNotUtf8 | Fault::NamesTooLong { .. } | Fault::NameCount { .. } => "names",
            Fault::Interrupted => "interrupted",
        }
    }
}

/// Whether an error is that a target cannot say an object's layout, and can its dense value: which is
/// what [`ConvertOptions::dense`](crate::ConvertOptions::dense) writes.
#[must_use]
pub fn has_dense_value(error: &zt::Error) -> bool {
    let fault = error.inner().and_then(|inner| inner.downcast_ref());
    matches!(
        fault,
        Some(Fault::Lossy(Loss::Format {
            has_dense_value: true,
            ..
        }))
    )
}

/// The code of an error about a loss, and of the warning that takes its place.
pub(crate) const LOSSY: &str = "lossy";

is_an_error!(Fault);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::UnknownKind { start } => {
                f.write_str("not a tensor file of a known kind; ")?;
                match start.as_slice() {
                    [] => f.write_str("it is empty")?,
                    start => write!(f, "it begins with \"{}\"", start.escape_ascii())?,
                }
                f.write_str("; known: ")?;
                write_names(f, |_| true)
            }
            Fault::NoSuchMember { kind } => {
                write!(f, "this build knows no kind \"{kind}\"; known: ")?;
                write_names(f, |_| true)
            }
            Fault::NotWritable { kind } => {
                write!(f, "{kind} files are read, not written; written are: ")?;
                write_names(f, Member::is_writable)
            }
            Fault::NoSets { kind } => {
                write!(
                    f,
                    "sets of files are of safetensors or zt files, not of {kind}"
                )
            }
            Fault::Stem => f.write_str("a set is called by a plain name, without a folder"),
            Fault::NeedsPath => f.write_str(
                "the index of a sharded set: open it by its path, its shards lie beside it",
            ),
            Fault::Repeated {
                first: Some(first),
                second: Some(second),
            } => {
                write!(f, "in both {} and {}", first.display(), second.display())
            }
            Fault::Repeated { .. } => f.write_str("in two inputs"),
            Fault::Taken { by: Some(by) } => {
                write!(f, "is in the file already, and in {}", by.display())
            }
            Fault::Taken { by: None } => f.write_str("is in the file already"),
            Fault::Exists => f.write_str("exists"),
            Fault::NoFile => f.write_str("exists, and is no file that could be replaced"),
            Fault::IsInput { input } => {
                write!(
                    f,
                    "is the input {}, which is never overwritten",
                    input.display()
                )
            }
            Fault::CastTarget { dtype } => {
                write!(
                    f,
                    "values are cast to f64, f32, f16 or bf16, not to {dtype}"
                )
            }
            Fault::NoDenseValue { format } => {
                write!(
                    f,
                    "format \"{}\" has no dense value here",
                    format.escape_debug()
                )
            }
            Fault::NothingToWrite { kind } => {
                write!(f, "{kind} cannot be empty, and there is nothing to write")
            }
            Fault::Lossy(loss) => loss.fmt(f),
            Fault::Length { expected, found } => {
                write!(
                    f,
                    "the shape demands {expected} bytes, the values are {found}"
                )
            }
            Fault::NamesNotUtf8 => f.write_str("the list of names is not UTF-8"),
            Fault::NamesTooLong { limit } => {
                write!(f, "the list of names is longer than {limit} bytes")
            }
            Fault::NameCount { names, tensors } => {
                write!(
                    f,
                    "the list has {names} names, the file has {tensors} tensors without a name"
                )
            }
            Fault::Interrupted => f.write_str("stopped on request"),
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Loss::Format {
                target,
                format,
                has_dense_value,
            } => {
                write!(f, "{target} cannot say {}", format.escape_debug())?;
                f.write_str(if *has_dense_value {
                    ", only its dense value"
                } else {
                    ""
                })
            }
            Loss::Type {
                target,
                dtype,
                logical_type: Some(name),
            } => {
                write!(
                    f,
                    "{target} cannot say {} over {dtype}",
                    name.escape_debug()
                )
            }
            Loss::Type {
                target,
                dtype,
                logical_type: None,
            } => {
                write!(f, "{target} cannot say {dtype}")
            }
            Loss::Component { target, role } => {
                write!(
                    f,
                    "{} cannot say the component \"{}\"",
                    speaker(*target),
                    role.escape_debug()
                )
            }
            Loss::ObjectAttribute { target, key } => {
                write!(f, "{target} cannot say the object's attribute {key}")
            }
            Loss::FileAttribute { target, key } => {
                write!(f, "{target} cannot say the file's attribute {key}")
            }
            Loss::Field { target, key } => {
                write!(f, "{} cannot say the unknown field {key}", speaker(*target))
            }
            Loss::Objects { target } => {
                write!(
                    f,
                    "{target} cannot say this object beside another: it holds one"
                )
            }
            Loss::Name { target } => write!(f, "{target} cannot have a tensor of this name"),
            Loss::Renamed { target, becomes } => {
                write!(f, "{target} stores no names: it becomes \"{becomes}\"")
            }
            Loss::Shape { target } => {
                write!(f, "{target} cannot have this shape: it is too large")
            }
            Loss::LongName {
                target,
                byte_len,
                limit,
            } => write!(
                f,
                "{target} has names of at most {limit} bytes, this one has {byte_len}"
            ),
            Loss::Rank {
                target,
                rank,
                limit,
            } => write!(
                f,
                "{target} has at most {limit} dimensions, this shape has {rank}"
            ),
            Loss::BigEndian { target, format } => write!(
                f,
                "{target} is written in little-endian, which nobody knows of big-endian {}",
                format.escape_debug()
            ),
            Loss::Header {
                target,
                byte_len,
                limit,
            } => {
                write!(
                    f,
                    "{target} cannot have a header of {byte_len} bytes, the limit is {limit}"
                )
            }
            Loss::Conflict { key } => write!(f, "there are different values of {key}"),
            Loss::Overflow(Overflow {
                dtype,
                infinite,
                values,
            }) => write!(
                f,
                "{infinite} of {values} values are too large for {dtype}, and become infinite"
            ),
            Loss::Read { what } => f.write_str(what),
        }
    }
}

/// Who cannot say a component or a field: `.zt` can, but a dense value in it cannot.
fn speaker(target: Kind) -> &'static str {
    match target {
        ZT => "a dense value",
        other => other.as_str(),
    }
}

fn write_names(f: &mut fmt::Formatter<'_>, wanted: fn(&Member) -> bool) -> fmt::Result {
    let names = members().iter().filter(|member| wanted(member));
    let names: Vec<&str> = names.map(|member| member.kind().as_str()).collect();
    f.write_str(&names.join(", "))
}
