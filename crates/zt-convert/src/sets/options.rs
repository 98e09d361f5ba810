//! How inputs are split.

use zt_foreign::ConvertOptions;

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
