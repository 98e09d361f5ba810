//! The rules of sets, each with the numbers that break it.

use std::fmt;

use zt::ErrorKind;
use zt_foreign::{is_an_error, json::JsonFault};

/// Why a set of files is refused.
#[derive(Debug)]
pub(super) enum Violation {
    /// The index is not UTF-8.
    NotUtf8,
    /// JSON that is not well-formed, or not of the schema of an index.
    Json(JsonFault),
    /// The index lists a tensor twice.
    RepeatedName,
    /// The index is above the limit.
    IndexTooLong { byte_len: u64, limit: u64 },
    /// A shard lacks a tensor that the index says it has.
    NotInShard { shard: String },
    /// Two shards have a tensor that the index does not list.
    Ambiguous { first: String, second: String },
    /// The index names something other than a file of its own folder.
    ShardName { name: String },
    /// A shard is of another kind than those before it.
    ShardKind { name: String, found: &'static str },
    /// The index names a file that is not there, or is no file.
    NoShard { name: String },
}

impl Violation {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Malformed
    }

    fn code(&self) -> &'static str {
        match self {
            Violation::ShardName { .. } | Violation::NoShard { .. } => "path",
            _ => "header",
        }
    }
}

is_an_error!(Violation);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::NotUtf8 => f.write_str("the header is not UTF-8"),
            Violation::Json(fault) => f.write_str(&fault.message()),
            Violation::RepeatedName => f.write_str("two tensors have this name"),
            Violation::IndexTooLong { byte_len, limit } => write!(
                f,
                "the index is {byte_len} bytes long, the limit is {limit}"
            ),
            Violation::NotInShard { shard } => write!(
                f,
                "the index says it is in {shard:?}, which does not have it"
            ),
            Violation::Ambiguous { first, second } => {
                write!(f, "in both {first:?} and {second:?}, and not in the index")
            }
            Violation::ShardName { name } => write!(
                f,
                "{name:?} is not the name of a file in the folder of the index"
            ),
            Violation::ShardKind { name, found } => write!(
                f,
                "the shard {name:?} is a file of {found}, and others are not"
            ),
            Violation::NoShard { name } => write!(f, "the shard {name:?} is not there"),
        }
    }
}
