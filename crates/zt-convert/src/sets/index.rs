//! The index of a sharded set: which tensor is in which file.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fmt, io};

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use zt::container::bytes_of;
use zt::{Error, FileSource, Result, Source, Span};
use zt_foreign::{
    json::{Pairs, Skipped, parse},
    refusal, repeated,
};

use super::violation::Violation;

/// The longest index that is read. The largest models have 100,000 tensors and indices of some ten
/// megabytes.
pub(super) const INDEX_MAX: u64 = 64 << 20;

/// The most levels of groups that a tensor is looked for in. Keras has some ten.
const LEVELS_MAX: usize = 64;

/// The index of a set of shards: unique names of tensors, each with its shard.
///
/// The index of Keras has groups of HDF5 in place of tensors, such as `/layers/dense/vars`. Such a name
/// lists every tensor below it, whose own name has no slash in front. The tensors of a group may be in
/// several shards.
#[derive(Debug)]
pub struct Index {
    /// The files of all tensors, sorted. Every name is plain.
    pub(super) shards: Vec<String>,
    /// Sorted names, each with the position of its shard. A group has a pair for each of its shards.
    owners: Vec<(String, usize)>,
    has_groups: bool,
    /// The `metadata`, except for totals of the set.
    pub(super) metadata: Vec<(String, String)>,
    /// The bytes of all tensors, as the `metadata` counts them.
    pub(super) total_size: Option<u64>,
}

impl Index {
    /// The index in the file at `path`.
    ///
    /// # Errors
    ///
    /// [`zt::ErrorKind::Io`]; code `header` for a file that is no index.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Index::read(&FileSource::open(path)?)
    }

    /// The names of the files that the index lists, sorted. They are in the folder of the index.
    pub fn shards(&self) -> &[String] {
        &self.shards
    }

    /// The JSON of an index as on the Hub. `weight_map` has the name of each tensor with its shard, and
    /// `total_size` counts the bytes of all tensors.
    ///
    /// # Errors
    ///
    /// [`zt::ErrorKind::Io`] if there is not enough memory.
    pub fn to_json(total_size: u64, weight_map: &BTreeMap<&str, &str>) -> Result<Vec<u8>> {
        #[derive(Serialize)]
        struct Written<'n> {
            metadata: Metadata,
            weight_map: &'n BTreeMap<&'n str, &'n str>,
        }

        #[derive(Serialize)]
        struct Metadata {
            total_size: u64,
        }

        let json = Written { metadata: Metadata { total_size }, weight_map };
        let mut json = serde_json::to_vec_pretty(&json).map_err(io::Error::from)?;
        json.push(b'\n');
        Ok(json)
    }

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
        let IndexJson { map, metadata, total_size } = json;
        let mut names: Vec<&str> = map.iter().map(|(name, _)| name.as_str()).collect();
        if let Some(name) = repeated(&mut names) {
            return Err(Error::from(Violation::RepeatedName).with_object(name));
        }
        let shards = map.iter().flat_map(|(_, files)| &files.0);
        let mut shards: Vec<&str> = shards.map(String::as_str).collect();
        shards.sort_unstable();
        shards.dedup();
        if let Some(name) = shards.iter().find(|name| !is_below(name)) {
            let name = (*name).to_owned();
            return Err(Violation::ShardName { name }.into());
        }
        let shards: Vec<String> = shards.into_iter().map(str::to_owned).collect();
        let position =
            |shard: String| shards.binary_search(&shard).expect("every shard is in the list");
        let has_groups = map.iter().any(|(name, _)| name.starts_with('/'));
        let pairs = map.into_iter().flat_map(|(name, Files(files))| {
            files.into_iter().map(move |shard| (name.clone(), shard))
        });
        let pairs = pairs.map(|(name, shard)| (name, position(shard)));
        let mut owners: Vec<(String, usize)> = pairs.collect();
        owners.sort_unstable();
        owners.dedup();
        Ok(Index {
            shards,
            owners,
            has_groups,
            metadata,
            // Groups are of Keras, which counts otherwise.
            total_size: total_size.filter(|_| !has_groups),
        })
    }

    /// Where the index lists a tensor that the shard at a position has.
    pub(super) fn find(&self, tensor: &str, shard: usize) -> Listed {
        let found = self.look_up(tensor, shard);
        if !self.has_groups || found != Listed::Nowhere {
            return found;
        }
        let path = format!("/{tensor}");
        let ends = path.match_indices('/').map(|(end, _)| end).skip(1);
        let ends = ends.take(LEVELS_MAX).chain([path.len()]);
        let ends: Vec<usize> = ends.collect();
        // The innermost group counts.
        let groups = ends.into_iter().rev().filter_map(|end| path.get(..end));
        let mut found = groups.map(|group| self.look_up(group, shard));
        found.find(|found| *found != Listed::Nowhere).unwrap_or(Listed::Nowhere)
    }

    fn look_up(&self, name: &str, shard: usize) -> Listed {
        let order = |(known, owner): &(String, usize)| (known.as_str(), *owner).cmp(&(name, shard));
        match self.owners.binary_search_by(order) {
            Ok(place) => Listed::Here(place),
            // Pairs of one name lie together, on either side of the place where this one would be.
            Err(place) => {
                let beside = [place.checked_sub(1), Some(place)].into_iter().flatten();
                let mut beside = beside.filter_map(|place| self.owners.get(place));
                if beside.any(|(known, _)| known == name) {
                    Listed::Elsewhere
                } else {
                    Listed::Nowhere
                }
            }
        }
    }

    /// Every listed tensor and the name of its shard, by place.
    #[expect(clippy::indexing_slicing, reason = "positions in this list")]
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.owners.iter().map(|(name, position)| (name.as_str(), self.shards[*position].as_str()))
    }
}

/// Where an index lists a tensor of a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Listed {
    /// At this place, for this shard.
    Here(usize),
    /// For another shard.
    Elsewhere,
    Nowhere,
}

/// Whether `name` is the path of a file below a folder, on every system, and has one spelling.
fn is_below(name: &str) -> bool {
    let is_step = |step: &str| !matches!(step, "" | ".");
    refusal(name).is_none() && !name.contains(':') && name.split('/').all(is_step)
}

/// Whether `name` is a file name without a folder, on every system. The file itself may be a link to
/// anywhere: caches are folders of symbolic links.
pub(super) fn is_plain(name: &str) -> bool {
    let separates = |c: char| matches!(c, '/' | '\\' | ':' | '\0');
    !matches!(name, "" | "." | "..") && !name.contains(separates)
}

/// The names of the files that the index at `path` lists.
pub(super) fn shards_of(path: &Path) -> Result<Vec<String>> {
    Ok(Index::open(path)?.shards)
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
    map: Vec<(String, Files)>,
    metadata: Vec<(String, String)>,
    total_size: Option<u64>,
}

/// The file of a tensor, or the files of a group.
#[derive(Debug)]
struct Files(Vec<String>);

impl<'de> Deserialize<'de> for Files {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FilesVisitor;

        impl<'de> Visitor<'de> for FilesVisitor {
            type Value = Files;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a file, or a list of names")
            }

            fn visit_str<E>(self, file: &str) -> Result<Files, E> {
                Ok(Files(vec![file.to_owned()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Files, A::Error> {
                let mut files = Vec::new();
                while let Some(file) = seq.next_element()? {
                    files.push(file);
                }
                if files.is_empty() {
                    return Err(A::Error::invalid_length(0, &self));
                }
                Ok(Files(files))
            }
        }

        deserializer.deserialize_any(FilesVisitor)
    }
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
        let (mut metadata, mut total) = (Vec::new(), None);
        while let Some(key) = map.next_key::<String>()? {
            if key == "metadata" {
                let pairs = pairs(map.next_value()?).map_err(A::Error::custom)?;
                total = total_size(&pairs).or(total);
                metadata.extend(texts(pairs));
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
        Ok(IndexJson { map, metadata, total_size: total })
    }
}

/// The pairs of the `metadata`.
fn pairs(metadata: &RawValue) -> serde_json::Result<Vec<(String, &RawValue)>> {
    let json = metadata.get();
    // Checks the depth, as for other fields.
    serde_json::from_str::<Skipped>(json)?;
    // Other values than an object have no keys, and are ignored.
    if !json.starts_with('{') {
        return Ok(Vec::new());
    }
    let Pairs(pairs) = serde_json::from_str(json)?;
    Ok(pairs)
}

/// The pairs as texts, like the attributes of safetensors. Another value than a text becomes its
/// JSON. Totals (`total_size`, `total_parameters`) are left out, because they describe this set only.
fn texts(pairs: Vec<(String, &RawValue)>) -> impl Iterator<Item = (String, String)> {
    let kept = pairs.into_iter().filter(|(key, _)| !key.starts_with("total_"));
    kept.map(|(key, value)| {
        let text = serde_json::from_str(value.get());
        (key, text.unwrap_or_else(|_| value.get().to_owned()))
    })
}

/// The bytes of all tensors. Some programs write a float.
fn total_size(pairs: &[(String, &RawValue)]) -> Option<u64> {
    let (_, value) = pairs.iter().find(|(key, _)| key == "total_size")?;
    let number = value.get();
    number.strip_suffix(".0").unwrap_or(number).parse().ok()
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::{INDEX_MAX, Index, Listed, Source, index_json, is_plain};

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
    fn the_name_of_a_set_has_no_folder() {
        for name in ["a-1.zt", "..a", "a..b", "ä b"] {
            assert!(is_plain(name), "{name}");
        }
        for name in ["", ".", "..", "/a", "a/b", "../a", "a\\b", "C:a", "a\0"] {
            assert!(!is_plain(name), "{name}");
        }
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
        assert_eq!(index.find("c", 1), Listed::Here(2));
        assert_eq!(index.find("c", 0), Listed::Elsewhere);
        assert_eq!(index.find("d", 1), Listed::Nowhere);
        assert_eq!(index.tensors().next(), Some(("a", "x")));
    }

    #[test]
    fn a_group_lists_the_tensors_below_it_in_all_of_its_shards() {
        let json = br#"{"weight_map": {"/g": ["y", "x", "y"], "/g/h": "z"}}"#;
        let index = Index::from_json(index_json(json).unwrap()).unwrap();
        assert_eq!(index.shards, ["x", "y", "z"]);
        assert_eq!(index.find("g/0", 0), Listed::Here(0));
        assert_eq!(index.find("g/0", 1), Listed::Here(1));
        assert_eq!(index.find("g/0", 2), Listed::Elsewhere);
        assert_eq!(index.find("g", 1), Listed::Here(1));
        // The innermost group counts.
        assert_eq!(index.find("g/h/k/0", 2), Listed::Here(2));
        assert_eq!(index.find("g/h/k/0", 0), Listed::Elsewhere);
        for other in ["gg/0", "x/g/0", ""] {
            assert_eq!(index.find(other, 0), Listed::Nowhere, "{other}");
        }
        for wrong in ["[]", "[1]", "1", "null", "{}"] {
            let json = format!(r#"{{"weight_map": {{"/g": {wrong}}}}}"#);
            assert_eq!(index_json(json.as_bytes()).map(drop).unwrap_err().code(), "header");
        }
    }
}
