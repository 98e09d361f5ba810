//! The faults of opening and converting files of any kind. The rules of one kind are in its crate.

use std::fs;
use std::path::{Path, PathBuf};

use zt::ErrorKind;
use zt::foreign::Kind;

use crate::faults::{LOSSY, Loss};

/// Why files are not opened or converted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the docs and the texts of the variants explain the fields")]
pub enum Fault {
    /// No kind recognises the file. `start` has its first bytes, and `known` the kinds that were asked.
    #[error("not a tensor file of a known kind: it {}; known: {}", beginning(start), list(known))]
    UnknownKind { start: Vec<u8>, known: Vec<Kind> },
    /// The table has only the kinds in `known`.
    #[error("this build has no kind \"{kind}\"; known: {}", list(known))]
    NoSuchKind { kind: Kind, known: Vec<Kind> },
    /// A kind that is only read. The kinds in `writable` are written.
    #[error("{kind} files cannot be written; writable: {}", list(writable))]
    NotWritable { kind: Kind, writable: Vec<Kind> },
    /// A kind that is not written as sets.
    #[error("{kind} files cannot be written as a set of shards; use gguf, safetensors or zt")]
    NoSets { kind: Kind },
    /// The name of a set is not a file name.
    #[error("the name of a set must be a file name, without a folder and control characters")]
    Stem,
    /// An index was given without a path, so its shards cannot be found.
    #[error("the index of a sharded set must be opened by its path; the shards are beside it")]
    NeedsPath,
    /// A symbolic link to `target`, which does not exist.
    #[error("is a link to {}, which is missing: fetch that file again", .target.display())]
    Dangling { target: PathBuf },
    /// Two inputs, at these paths, have an object of one name.
    #[error("duplicate name: in {} and in {}", path(first), path(second))]
    Repeated { first: Option<PathBuf>, second: Option<PathBuf> },
    /// As [`Fault::Repeated`], for objects that should be the same.
    #[error("duplicate name, and the objects differ: in {} and in {}", path(first), path(second))]
    Different { first: Option<PathBuf>, second: Option<PathBuf> },
    /// The input at the path `by` has an object whose name the file has already.
    #[error("duplicate name: in the file and in {}", path(by))]
    Taken { by: Option<PathBuf> },
    /// The output exists, and was not to be replaced.
    #[error("exists")]
    Exists,
    /// Something else than a regular file is in the place of one.
    #[error("{what}, not a file")]
    NotAFile { what: &'static str },
    /// The output is a folder, a device or a pipe.
    #[error("exists, and is not a file that can be replaced")]
    NoFile,
    /// The output is `input`, one of the files that are read.
    #[error("is also the input {}: choose another output", .input.display())]
    IsInput { input: PathBuf },
    /// The dense value of an object was asked for, and its format has none.
    #[error("format \"{}\" has no dense value", .format.escape_debug())]
    NoDenseValue { format: String },
    /// The target has no attributes of the type `value_type`.
    #[error("the file's kind has no attributes of the type {value_type:?}")]
    NoAttributeType { value_type: String },
    /// A new value of an attribute is not of its type.
    #[error("the attribute {key:?} is of the type {value_type}, and the value is not")]
    AttributeType { key: String, value_type: &'static str },
    /// There is no object that the target, `kind`, can represent, and the target cannot be empty.
    #[error("{kind} files cannot be empty, and there is nothing to write")]
    NothingToWrite { kind: Kind },
    /// The target cannot represent something.
    #[error("{}", loss.text(*target))]
    Lossy { target: Kind, loss: Loss },
    /// The target cannot represent several things: one error for each, with the name of its object.
    #[error("{} losses: {}{}", losses.len(), joined(losses), allowed_by(options))]
    Losses { losses: Vec<zt::Error>, options: Vec<&'static str> },
    /// A loss that the option allows.
    #[error("{fault}{}", allowed_by(&[*option]))]
    Refused { fault: Box<Fault>, option: &'static str },
    /// An object gave `found` bytes, and not those that its shape demands.
    #[error("the shape requires {expected} bytes, the values have {found}")]
    Length { expected: u64, found: u64 },
    /// The list of names is not UTF-8.
    #[error("the list of names is not UTF-8")]
    NamesNotUtf8,
    /// The list of names has more than `limit` bytes.
    #[error("the list of names is longer than {limit} bytes")]
    NamesTooLong { limit: u64 },
    /// The list of names has another length than the file has tensors without a name.
    #[error("the list has {names} names, the file has {tensors} tensors without a name")]
    NameCount { names: u64, tensors: u64 },
}

impl Fault {
    /// The fault of an error, without the option that would allow it; `None` for an error of another
    /// crate.
    pub fn of(error: &zt::Error) -> Option<&Fault> {
        match error.inner()?.downcast_ref()? {
            Fault::Refused { fault, .. } => Some(fault),
            fault => Some(fault),
        }
    }

    /// The fault of the link at `path`, if its target is missing; `None` for every other path.
    pub fn of_link(path: &Path) -> Option<Fault> {
        let target = fs::read_link(path).ok()?;
        let is_missing = path.try_exists().is_ok_and(|exists| !exists);
        is_missing.then_some(Fault::Dangling { target })
    }

    /// The fault of what is at `path` where a regular file should be: a link without a target, a loop of links, a
    /// folder, a pipe. `None` for a file, or if nothing is there.
    pub fn of_place(path: &Path) -> Option<Fault> {
        if let Some(link) = Fault::of_link(path) {
            return Some(link);
        }
        let what = match fs::metadata(path) {
            Ok(found) if found.is_file() => return None,
            Ok(found) if found.is_dir() => "is a folder",
            Ok(_) => "is a pipe or a device",
            Err(_) if fs::symlink_metadata(path).is_ok() => "is a link that leads back to itself",
            Err(_) => return None,
        };
        Some(Fault::NotAFile { what })
    }

    /// The kind and the stable code.
    fn class(&self) -> (ErrorKind, &'static str) {
        use ErrorKind::{Io, Malformed, Misuse, Unsupported};
        match self {
            Fault::Dangling { .. } | Fault::NotAFile { .. } => (Io, "io"),
            Fault::UnknownKind { .. } => (Unsupported, "unknown-kind"),
            Fault::NoSuchKind { .. }
            | Fault::NotWritable { .. }
            | Fault::NoSets { .. }
            | Fault::NeedsPath
            | Fault::NoDenseValue { .. } => (Unsupported, "unsupported"),
            Fault::Lossy { .. } | Fault::Losses { .. } | Fault::NothingToWrite { .. } => {
                (Unsupported, LOSSY)
            }
            Fault::Refused { fault, .. } => fault.class(),
            Fault::Repeated { .. } | Fault::Different { .. } | Fault::Taken { .. } => {
                (Misuse, "duplicate-name")
            }
            Fault::Exists | Fault::NoFile | Fault::IsInput { .. } => (Misuse, "overwrite"),
            Fault::Stem | Fault::NoAttributeType { .. } | Fault::AttributeType { .. } => {
                (Misuse, "misuse")
            }
            Fault::NamesNotUtf8 | Fault::NamesTooLong { .. } | Fault::NameCount { .. } => {
                (Misuse, "names")
            }
            Fault::Length { .. } => (Malformed, "shape-size-mismatch"),
        }
    }
}

impl From<Fault> for zt::Error {
    fn from(fault: Fault) -> Self {
        let (kind, code) = fault.class();
        zt::Error::new(kind, code, fault)
    }
}

fn joined(losses: &[zt::Error]) -> String {
    let texts: Vec<String> = losses.iter().map(ToString::to_string).collect();
    texts.join("; ")
}

/// The options, which have the same names in Rust, in Python and on the command line.
fn allowed_by(options: &[&'static str]) -> String {
    match options {
        [] => String::new(),
        [option] => format!("; the option `{option}` allows it"),
        options => format!("; the options `{}` allow them", options.join("` and `")),
    }
}

fn path(path: &Option<PathBuf>) -> std::path::Display<'_> {
    let path = path.as_deref();
    path.unwrap_or(Path::new("an input without a path")).display()
}

fn beginning(start: &[u8]) -> String {
    match start {
        [] => "is empty".to_owned(),
        _ => format!("begins with \"{}\"", start.escape_ascii()),
    }
}

fn list(kinds: &[Kind]) -> String {
    let names: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
    names.join(", ")
}
