//! The index of a sharded set: which tensor is in which file.
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use std::fmt;
use std::path::Path;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};
use zt::container::bytes_of;
use zt::{Error, FileSource, Result, Source, Span};

use super::json::{Skipped, Texts, parse};
use super::violation::Violation;
use crate::names::repeated;

/// The longest index that is read. Those of the largest models, of 100,000 tensors, have some ten
/// megabytes.
pub(super) const INDEX_MAX: u64 = 64 << 20;

/// The `weight_map`: unique names, each with its shard.
#[derive(Debug)]
pub(super) struct Index {
    /// Every file that a tensor is in, sorted. Nothing but plain names.
    pub(super) shards: Vec<String>,
    /// By name, sorted: the position of the shard.
    owners: Vec<(String, usize)>,
}

impl Index {
    /// Reads the index in `source`; `own_name` is the name of its file.
    pub(super) fn read(source: &dyn Source, own_name: &str) -> Result<Self> {
        let byte_len = source.byte_len();
        if byte_len > INDEX_MAX {
            return Err(Violation::IndexTooLong {
                byte_len,
                limit: INDEX_MAX,
            }
            .into());
        }
        // At most INDEX_MAX bytes, which exist.
        let whole = Span::new(0, byte_len).unwrap_or_default();
        Self::from_map(weight_map(&bytes_of(source, whole)?)?, own_name)
    }

    fn from_map(map: Vec<(String, String)>, own_name: &str) -> Result<Self> {
        let mut names: Vec<&str> = map.iter().map(|(name, _)| name.as_str()).collect();
        if let Some(name) = repeated(&mut names) {
            return Err(Error::from(Violation::RepeatedName).with_object(name));
        }
        let mut shards: Vec<&str> = map.iter().map(|(_, shard)| shard.as_str()).collect();
        shards.sort_unstable();
        shards.dedup();
        let is_shard = |name: &str| is_plain(name) && name != own_name;
        if let Some(name) = shards.iter().find(|name| !is_shard(name)) {
            return Err(Violation::ShardName {
                name: (*name).to_owned(),
            }
            .into());
        }
        let shards: Vec<String> = shards.into_iter().map(str::to_owned).collect();
        let owner = |(name, shard)| {
            // Found, because every shard's name is there.
            let position = shards.binary_search(&shard).unwrap_or(usize::MAX);
            (name, position)
        };
        let mut owners: Vec<(String, usize)> = map.into_iter().map(owner).collect();
        owners.sort_unstable();
        Ok(Index { shards, owners })
    }

    /// The place of a tensor in the index, and the position of the shard that it is in; `None`
    /// where the index does not list it.
    pub(super) fn find(&self, name: &str) -> Option<(usize, usize)> {
        let place = self
            .owners
            .binary_search_by(|(known, _)| known.as_str().cmp(name))
            .ok()?;
        self.owners.get(place).map(|(_, shard)| (place, *shard))
    }

    /// Every tensor that is listed and the name of its shard, by place.
    pub(super) fn tensors(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        let shard = |position: &usize| self.shards.get(*position).map_or("", String::as_str);
        self.owners
            .iter()
            .map(move |(name, position)| (name.as_str(), shard(position)))
    }
}

/// The names of the files that the index at `path` lists.
pub(crate) fn shards_of(path: &Path) -> Result<Vec<String>> {
    let source = FileSource::open(path)?;
    Ok(Index::read(&source, "")?.shards)
}

/// Whether `name` is that of a file in the folder of the index, on every system. What it leads to
/// may be anywhere: caches are folders of symbolic links.
pub(crate) fn is_plain(name: &str) -> bool {
    let separates = |c: char| matches!(c, '/' | '\\' | ':' | '\0');
    !matches!(name, "" | "." | "..") && !name.contains(separates)
}

fn weight_map(bytes: &[u8]) -> Result<Vec<(String, String)>> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| Error::from(Violation::NotUtf8).with_offset(error.valid_up_to() as u64))?;
    parse(text, WeightMap).map_err(|fault| {
        Error::from(Violation::Json(fault.error)).with_offset(fault.position as u64)
    })
}

/// The `weight_map` of an index; other fields, `metadata` among them, only repeat what the shards
/// say themselves.
struct WeightMap;

impl<'de> DeserializeSeed<'de> for WeightMap {
    type Value = Vec<(String, String)>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for WeightMap {
    type Value = Vec<(String, String)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with a weight_map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(key) = map.next_key::<String>()? {
            if key != "weight_map" {
                map.next_value::<Skipped>()?;
            } else if found.is_none() {
                let Texts(texts) = map.next_value()?;
                found = Some(texts);
            } else {
                return Err(A::Error::duplicate_field("weight_map"));
            }
        }
        found.ok_or_else(|| A::Error::missing_field("weight_map"))
    }
}

#[cfg(test)]
mod tests {
    use super::{Index, is_plain, weight_map};

    #[test]
    fn shards_lie_in_the_folder_of_their_index() {
        for name in [
            "a.safetensors",
            "..a",
            "a..b",
            "ä b",
            "model-00001-of-00002.safetensors",
        ] {
            assert!(is_plain(name), "{name}");
        }
        for name in [
            "",
            ".",
            "..",
            "/etc/hostname",
            "a/b",
            "../a",
            "a\\b",
            "C:a",
            "a\0",
        ] {
            assert!(!is_plain(name), "{name}");
        }
    }

    #[test]
    fn an_index_is_no_shard_of_its_own() {
        let map = || weight_map(br#"{"weight_map": {"w": "a"}}"#).unwrap();
        assert_eq!(Index::from_map(map(), "a").unwrap_err().code(), "path");
        assert!(Index::from_map(map(), "b").is_ok());
    }

    #[test]
    fn names_that_are_there_twice_are_refused_however_they_are_spelled() {
        let map = weight_map(br#"{"weight_map": {"w": "a", "\u0077": "b"}}"#).unwrap();
        assert_eq!(Index::from_map(map, "").unwrap_err().code(), "header");
        let twice = br#"{"weight_map": {}, "weight_map": {}}"#;
        assert_eq!(weight_map(twice).unwrap_err().code(), "header");
    }

    #[test]
    fn owners_are_found_by_name() {
        let map = weight_map(br#"{"weight_map": {"b": "y", "a": "x", "c": "y"}}"#).unwrap();
        let index = Index::from_map(map, "").unwrap();
        assert_eq!(index.shards, ["x", "y"]);
        assert_eq!(index.find("c"), Some((2, 1)));
        assert_eq!(index.find("d"), None);
        assert_eq!(index.tensors().next(), Some(("a", "x")));
    }
}
