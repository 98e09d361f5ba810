//! The index of a sharded set: which tensor is in which file.
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use std::fmt;
use std::path::Path;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;
use zt::container::bytes_of;
use zt::{Error, FileSource, Result, Source, Span};
use zt_foreign::{
    json::{Pairs, Skipped, parse},
    repeated,
};

use super::violation::Violation;

/// The longest index that is read. The largest models have 100,000 tensors and indices of some ten
/// megabytes.
pub(super) const INDEX_MAX: u64 = 64 << 20;

/// The `weight_map`: unique names, each with its shard.
#[derive(Debug)]
pub(super) struct Index {
    /// The files of all tensors, sorted. Every name is plain.
    pub(super) shards: Vec<String>,
    /// Sorted names, each with the position of its shard.
    owners: Vec<(String, usize)>,
    /// The `metadata`, except for totals of the set.
    pub(super) metadata: Vec<(String, String)>,
}

impl Index {
    /// Reads the index in `source`.
    pub(super) fn read(source: &dyn Source) -> Result<Self> {
        let byte_len = source.byte_len();
        let limit = INDEX_MAX;
        let whole = Span::new(0, byte_len).filter(|_| byte_len <= limit);
        let whole = whole.ok_or(Violation::IndexTooLong { byte_len, limit })?;
        Self::from_json(index_json(&bytes_of(source, whole)?)?)
    }

    #[expect(clippy::expect_used, reason = "the list has all shards")]
    fn from_json(json: IndexJson) -> Result<Self> {
        let IndexJson { map, metadata } = json;
        let mut names: Vec<&str> = map.iter().map(|(name, _)| name.as_str()).collect();
        if let Some(name) = repeated(&mut names) {
            return Err(Error::from(Violation::RepeatedName).with_object(name));
        }
        let mut shards: Vec<&str> = map.iter().map(|(_, shard)| shard.as_str()).collect();
        shards.sort_unstable();
        shards.dedup();
        if let Some(name) = shards.iter().find(|name| !is_plain(name)) {
            let name = (*name).to_owned();
            return Err(Violation::ShardName { name }.into());
        }
        let shards: Vec<String> = shards.into_iter().map(str::to_owned).collect();
        let owner = |(name, shard)| {
            let position = shards.binary_search(&shard);
            (name, position.expect("every shard is in the list"))
        };
        let mut owners: Vec<(String, usize)> = map.into_iter().map(owner).collect();
        owners.sort_unstable();
        Ok(Index {
            shards,
            owners,
            metadata,
        })
    }

    /// The place of a tensor in the index and the position of its shard, if the index lists it.
    pub(super) fn find(&self, name: &str) -> Option<(usize, usize)> {
        let place = self
            .owners
            .binary_search_by(|(known, _)| known.as_str().cmp(name))
            .ok()?;
        self.owners.get(place).map(|(_, shard)| (place, *shard))
    }

    /// Every listed tensor and the name of its shard, by place.
    #[expect(clippy::indexing_slicing, reason = "positions in this list")]
    pub(super) fn tensors(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.owners
            .iter()
            .map(|(name, position)| (name.as_str(), self.shards[*position].as_str()))
    }
}

/// The index at `path`.
pub(super) fn index_of(path: &Path) -> Result<Index> {
    Index::read(&FileSource::open(path)?)
}

/// The names of the files that the index at `path` lists.
pub(super) fn shards_of(path: &Path) -> Result<Vec<String>> {
    Ok(index_of(path)?.shards)
}

/// Whether `name` is a file name without a folder, on every system. The file itself may be a link to
/// anywhere: caches are folders of symbolic links.
pub(super) fn is_plain(name: &str) -> bool {
    let separates = |c: char| matches!(c, '/' | '\\' | ':' | '\0');
    !matches!(name, "" | "." | "..") && !name.contains(separates)
}

fn index_json(bytes: &[u8]) -> Result<IndexJson> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| Error::from(Violation::NotUtf8).with_offset(error.valid_up_to() as u64))?;
    parse(text, Fields).map_err(|fault| {
        let position = fault.position as u64;
        Error::from(Violation::Json(fault)).with_offset(position)
    })
}

/// The JSON of an index.
struct IndexJson {
    /// The `weight_map`.
    map: Vec<(String, String)>,
    metadata: Vec<(String, String)>,
}

/// The fields of an index: a `weight_map` and optional `metadata`. No known program writes others.
struct Fields;

impl<'de> DeserializeSeed<'de> for Fields {
    type Value = IndexJson;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Fields {
    type Value = IndexJson;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with a weight_map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        let mut metadata = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            if key == "metadata" {
                metadata.extend(texts(map.next_value()?).map_err(A::Error::custom)?);
            } else if key != "weight_map" {
                map.next_value::<Skipped>()?;
            } else if found.is_none() {
                let Pairs(texts) = map.next_value()?;
                found = Some(texts);
            } else {
                return Err(A::Error::duplicate_field("weight_map"));
            }
        }
        let map = found.ok_or_else(|| A::Error::missing_field("weight_map"))?;
        Ok(IndexJson { map, metadata })
    }
}

/// The `metadata` as texts, like the attributes of safetensors. Another value than a text becomes its
/// JSON. Totals (`total_size`, `total_parameters`) are left out, because they describe this set only.
fn texts(metadata: &RawValue) -> serde_json::Result<Vec<(String, String)>> {
    let json = metadata.get();
    // Checks the depth, as for other fields.
    serde_json::from_str::<Skipped>(json)?;
    // Other values than an object have no keys, and are ignored.
    if !json.starts_with('{') {
        return Ok(Vec::new());
    }
    let Pairs::<&RawValue>(pairs) = serde_json::from_str(json)?;
    let kept = pairs
        .into_iter()
        .filter(|(key, _)| !key.starts_with("total_"));
    let as_text = |(key, value): (String, &RawValue)| {
        let text = serde_json::from_str(value.get());
        (key, text.unwrap_or_else(|_| value.get().to_owned()))
    };
    Ok(kept.map(as_text).collect())
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::{INDEX_MAX, Index, Source, index_json, is_plain};

    /// A source of this length that cannot be read.
    struct Unreadable(u64);

    impl Source for Unreadable {
        fn byte_len(&self) -> u64 {
            self.0
        }

        fn read_at(&self, _: u64, _: &mut [u8]) -> io::Result<()> {
            Err(io::ErrorKind::TimedOut.into())
        }
    }

    #[test]
    fn an_index_longer_than_the_limit_is_refused_before_it_is_read() {
        let code = |byte_len| Index::read(&Unreadable(byte_len)).map_err(|error| error.code());
        assert_eq!(code(INDEX_MAX).unwrap_err(), "io");
        for byte_len in [INDEX_MAX + 1, u64::MAX] {
            assert_eq!(code(byte_len).unwrap_err(), "header");
        }
    }

    #[test]
    fn an_index_is_an_object() {
        assert_eq!(index_json(b"[]").map(drop).unwrap_err().code(), "header");
    }

    #[test]
    fn shards_lie_in_the_folder_of_their_index() {
        for name in ["a-1.zt", "..a", "a..b", "ä b"] {
            assert!(is_plain(name), "{name}");
        }
        for name in ["", ".", "..", "/a", "a/b", "../a", "a\\b", "C:a", "a\0"] {
            assert!(!is_plain(name), "{name}");
        }
    }

    #[test]
    fn duplicate_names_are_refused_in_any_spelling() {
        let map = index_json(br#"{"weight_map": {"w": "a", "\u0077": "b"}}"#).unwrap();
        assert_eq!(Index::from_json(map).unwrap_err().code(), "header");
        let twice = br#"{"weight_map": {}, "weight_map": {}}"#;
        assert_eq!(index_json(twice).map(drop).unwrap_err().code(), "header");
    }

    #[test]
    fn metadata_is_kept_except_for_totals() {
        let json =
            br#"{"metadata": {"total_size": 9, "total_parameters": 3, "a": "b", "c": [1, null]},
            "weight_map": {}, "other": {}}"#;
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let expected = [pair("a", "b"), pair("c", "[1, null]")];
        assert_eq!(index_json(json).unwrap().metadata, expected);
        for none in ["null", "[]", "1e999"] {
            let json = format!(r#"{{"metadata": {none}, "weight_map": {{}}}}"#);
            let metadata = index_json(json.as_bytes()).map(|index| index.metadata);
            assert_eq!(metadata.unwrap_or_default(), [], "{none}");
        }
    }

    #[test]
    fn owners_are_found_by_name() {
        let map = index_json(br#"{"weight_map": {"b": "y", "a": "x", "c": "y"}}"#).unwrap();
        let index = Index::from_json(map).unwrap();
        assert_eq!(index.shards, ["x", "y"]);
        assert_eq!(index.find("c"), Some((2, 1)));
        assert_eq!(index.find("d"), None);
        assert_eq!(index.tensors().next(), Some(("a", "x")));
    }
}
