//! The rules of sets.

use zt::ErrorKind;
use zt_foreign::json::JsonFault;

/// Why a set of files is refused.
#[derive(Debug, thiserror::Error)]
pub(super) enum Violation {
    #[error("the index is not UTF-8")]
    NotUtf8,
    #[error("{}", .0.message())]
    Json(JsonFault),
    #[error("duplicate name")]
    RepeatedName,
    #[error("the index has {byte_len} bytes, the limit is {limit}")]
    IndexTooLong { byte_len: u64, limit: u64 },
    #[error("missing from the shard {shard:?}, where the index lists it")]
    NotInShard { shard: String },
    #[error("duplicate name: in both {first:?} and {second:?}, and not in the index")]
    Ambiguous { first: String, second: String },
    #[error("{name:?} is not the name of a file in the folder of the index")]
    ShardName { name: String },
    #[error("the shard {name:?} is a file of the kind {found}, the first shard is not")]
    ShardKind { name: String, found: &'static str },
    #[error("the shard {name:?} is missing; put it beside the index")]
    NoShard { name: String },
}

impl From<Violation> for zt::Error {
    fn from(violation: Violation) -> Self {
        let code = match violation {
            Violation::ShardName { .. } | Violation::NoShard { .. } => "path",
            _ => "header",
        };
        zt::Error::new(ErrorKind::Malformed, code, violation)
    }
}
