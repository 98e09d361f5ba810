//! `adapter_config.json`, which peft writes beside an adapter.

use std::io::Read as _;
use std::path::Path;
use std::{fmt, fs};

use regex_lite::RegexBuilder;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use zt::Error;

use crate::arithmetic::fault::Fault;

const NAME: &str = "adapter_config.json";

/// The longest configuration, in bytes.
const LEN_MAX: u64 = 1 << 20;

/// The most memory of a compiled pattern.
const PATTERN_MAX: usize = 1 << 20;

/// What the scale and the orientation of the factors depend on.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Config {
    peft_type: Option<String>,
    use_dora: Option<bool>,
    r: Option<f64>,
    lora_alpha: Option<f64>,
    use_rslora: Option<bool>,
    fan_in_fan_out: Option<bool>,
    rank_pattern: Option<Patterns>,
    alpha_pattern: Option<Patterns>,
    modules_to_save: Option<Vec<String>>,
}

impl Config {
    /// The configuration beside the file at `path`; an empty one if there is none.
    pub(super) fn beside(path: &Path) -> zt::Result<Self> {
        let path = path.with_file_name(NAME);
        let file = match fs::File::open(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Config::default());
            }
            file => file,
        };
        let read = || {
            let mut text = Vec::new();
            file?.take(LEN_MAX + 1).read_to_end(&mut text)?;
            let (byte_len, limit) = (text.len() as u64, LEN_MAX);
            if byte_len > limit {
                return Err(Fault::ConfigLen { byte_len, limit }.into());
            }
            let config: Config = serde_json::from_slice(&text).map_err(Fault::Config)?;
            match config.peft_type.as_deref() {
                Some("LORA") | None if config.use_dora != Some(true) => Ok(config),
                Some("LORA") | None => Err(Fault::Method("use_dora".into()).into()),
                Some(other) => Err(Fault::Method(format!("peft_type {other:?}")).into()),
            }
        };
        read().map_err(|error: Error| error.with_path(&path))
    }

    /// The factor of B·A of a module for factors of this rank, as peft computes it: `lora_alpha / r`, or
    /// `lora_alpha / sqrt(r)` with `use_rslora`. `rank_pattern` and `alpha_pattern` replace the two for some modules.
    ///
    /// # Errors
    ///
    /// Code `misuse` if `lora_alpha` is unknown, and for another rank than the configuration gives; `unsupported` for a
    /// pattern that is no regular expression of ours.
    pub(super) fn scale(&self, module: &str, rank: u64) -> zt::Result<f64> {
        let of_pattern = matching(self.rank_pattern.as_ref(), module)?;
        let rank = rank as f64;
        let expected = of_pattern.or(self.r);
        if let Some(expected) = expected.filter(|expected| *expected != rank) {
            let key = if of_pattern.is_some() { "rank_pattern" } else { "r" };
            return Err(Fault::Rank { rank, expected, key }.into());
        }
        let of_pattern = matching(self.alpha_pattern.as_ref(), module)?;
        let alpha = of_pattern.or(self.lora_alpha).ok_or(Fault::NoScale)?;
        Ok(match self.use_rslora {
            Some(true) => alpha / rank.sqrt(),
            _ => alpha / rank,
        })
    }

    /// Whether `modules_to_save` has the module of this tensor: the adapter has its values.
    pub(super) fn saves(&self, tensor: &str) -> bool {
        let saved = self.modules_to_save.iter().flatten();
        let modules = || tensor.match_indices('.').map(|(end, _)| tensor.split_at(end).0);
        saved.into_iter().any(|saved| modules().any(|module| module.ends_with(saved)))
    }

    /// Whether weights of linear layers are stored transposed.
    pub(super) fn is_transposed(&self) -> bool {
        self.fan_in_fan_out == Some(true)
    }
}

/// Patterns of modules, each with a number, in their order: the first that matches counts.
#[derive(Debug, Clone)]
struct Patterns(Vec<(String, f64)>);

impl<'de> Deserialize<'de> for Patterns {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;

        impl<'de> Visitor<'de> for Pairs {
            type Value = Patterns;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of patterns to numbers")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Patterns, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Patterns(pairs))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

/// The number of the first pattern that matches the end of a module's name, as `get_pattern_key` of peft has it.
fn matching(patterns: Option<&Patterns>, module: &str) -> zt::Result<Option<f64>> {
    for (pattern, value) in patterns.iter().flat_map(|patterns| &patterns.0) {
        let mut regex = RegexBuilder::new(&format!(r"^(.*\.)?({pattern})$"));
        let regex = regex.size_limit(PATTERN_MAX).build();
        let regex = regex.map_err(|error| Fault::Pattern { pattern: pattern.clone(), error })?;
        if regex.is_match(module) {
            return Ok(Some(*value));
        }
    }
    Ok(None)
}
