//! The rules of sets.

use zt::ErrorKind;
use zt_foreign::json::JsonFault;
use zt_foreign::{Fault, LEADS_OUT};

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
    #[error(
        "missing from the shard {shard:?}, where the index lists it{}",
        other.as_ref().map(|other| format!("; it is in {other:?}")).unwrap_or_default()
    )]
    NotInShard { shard: String, other: Option<String> },
    #[error("duplicate name: in both {first:?} and {second:?}, and not in the index")]
    Ambiguous { first: String, second: String },
    #[error("{name:?} is not the path of a file below the folder of the index")]
    ShardName { name: String },
    #[error("the shard {name:?} is not opened: {LEADS_OUT}")]
    ShardLink { name: String },
    #[error("the shard {name:?} {link}")]
    LostShard { name: String, link: Fault },
    #[error("the shard {name:?} is a file of the kind {found}, the first shard is not")]
    ShardKind { name: String, found: &'static str },
    #[error(
        "{} of {total} shards are missing: {}; put them beside the index",
        missing.len(),
        first_of(missing)
    )]
    NoShards { missing: Vec<String>, total: usize },
}

impl From<Violation> for zt::Error {
    fn from(violation: Violation) -> Self {
        let code = match violation {
            Violation::ShardName { .. }
            | Violation::ShardLink { .. }
            | Violation::LostShard { .. }
            | Violation::NoShards { .. } => "path",
            _ => "header",
        };
        zt::Error::new(ErrorKind::Malformed, code, violation)
    }
}

/// The first names of a list, escaped.
fn first_of(names: &[String]) -> String {
    const SHOWN: usize = 3;
    let first = names.iter().take(SHOWN).map(|name| format!("{name:?}"));
    let first: Vec<String> = first.collect();
    let rest = if names.len() > SHOWN { ", ..." } else { "" };
    format!("{}{rest}", first.join(", "))
}
