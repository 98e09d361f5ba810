//! How inputs are split.

use std::path::Path;

use zt_foreign::{ConvertOptions, without_query};

use crate::table::unnumbered;

/// How inputs are split into a set.
///
/// ```
/// use zt_convert::{ConvertOptions, SplitOptions, ZT};
///
/// let options = SplitOptions::new(ConvertOptions::new(ZT).overwrite(true));
/// let options = options.stem("llama").max_shard_size(2 << 30);
/// assert_eq!(options.stem, "llama");
/// ```
#[must_use]
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SplitOptions<'p> {
    /// The kind of the shards, how they are written, and whether an existing set is replaced.
    pub convert: ConvertOptions<'p>,
    /// The name of the set, as in `model-00001-of-00003.safetensors`; `model` by default.
    pub stem: String,
    /// The most bytes of values in a shard, before compression; 5 GB by default, as on the Hub.
    pub max_shard_size: u64,
    /// The most objects in a shard; no limit by default. Objects that share their bytes count once.
    pub max_tensors: u64,
}

impl<'p> SplitOptions<'p> {
    /// A set with the name and the size of shards that the Hub uses.
    pub fn new(convert: ConvertOptions<'p>) -> Self {
        SplitOptions {
            convert,
            stem: "model".to_owned(),
            max_shard_size: 5_000_000_000,
            max_tensors: u64::MAX,
        }
    }

    /// Sets [`stem`](field@Self::stem).
    pub fn stem(mut self, stem: impl Into<String>) -> Self {
        self.stem = stem.into();
        self
    }

    /// Sets [`max_shard_size`](field@Self::max_shard_size).
    pub fn max_shard_size(mut self, max_shard_size: u64) -> Self {
        self.max_shard_size = max_shard_size;
        self
    }

    /// Sets [`max_tensors`](field@Self::max_tensors).
    pub fn max_tensors(mut self, max_tensors: u64) -> Self {
        self.max_tensors = max_tensors;
        self
    }
}

/// The usual name of a set: the name of the input without its extension, and without the number of a shard if the path
/// `opens_set`. A checkpoint has the name of its folder. `None` for a name that is not UTF-8.
pub fn set_name(path: &Path, opens_set: bool) -> Option<String> {
    let path = without_query(path);
    let folder = path.parent().filter(|_| path.ends_with(".metadata"));
    let path = folder.unwrap_or(path);
    let name = path.file_name()?.to_str()?;
    let name = name.strip_suffix(".index.json").unwrap_or(name);
    let stem = Path::new(name).file_stem()?.to_str()?;
    let stem = if opens_set { unnumbered(stem) } else { stem };
    Some(stem.to_owned())
}

/// The bytes of a size as people write it: `5GB`, `1.5 GiB` or `4096`; `None` for a size of 0 and for other texts. Units
/// are decimal as on the Hub, and binary with an `i`.
pub fn parse_size(text: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 10] = [
        ("", 1),
        ("B", 1),
        ("KB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        ("KIB", 1 << 10),
        ("MIB", 1 << 20),
        ("GIB", 1 << 30),
        ("TIB", 1 << 40),
    ];
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let unit = unit.trim_start().to_ascii_uppercase();
    let (_, factor) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
    let bytes = match number.parse::<u64>() {
        Ok(number) => number.checked_mul(factor),
        Err(_) => number.parse().ok().and_then(|number| scaled(number, factor)),
    };
    bytes.filter(|bytes| *bytes > 0)
}

/// Rounded down, as `huggingface_hub` does.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range was checked"
)]
fn scaled(number: f64, factor: u64) -> Option<u64> {
    let bytes = number * factor as f64;
    (0.0..u64::MAX as f64).contains(&bytes).then_some(bytes as u64)
}
