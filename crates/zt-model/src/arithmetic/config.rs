//! `adapter_config.json`, which peft writes beside an adapter.

use std::collections::HashMap;
use std::fs;
use std::io::Read as _;
use std::path::Path;

use serde::Deserialize;
use zt::{Error, Result};

use crate::arithmetic::fault::Fault;

const NAME: &str = "adapter_config.json";

/// The longest configuration, in bytes.
const LEN_MAX: u64 = 1 << 20;

/// What the scale and the orientation of the factors depend on.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Config {
    lora_alpha: Option<f64>,
    use_rslora: Option<bool>,
    fan_in_fan_out: Option<bool>,
    alpha_pattern: Option<HashMap<String, f64>>,
}

impl Config {
    /// The configuration beside the file at `path`; an empty one if there is none.
    pub(super) fn beside(path: &Path) -> Result<Self> {
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
            serde_json::from_slice(&text).map_err(|error| Error::from(Fault::Config(error)))
        };
        read().map_err(|error: Error| error.with_path(&path))
    }

    /// The factor of B·A for factors of this rank, as peft computes it: `lora_alpha / r`, or
    /// `lora_alpha / sqrt(r)` with `use_rslora`.
    ///
    /// # Errors
    ///
    /// Code `misuse` if `lora_alpha` is unknown; `unsupported` for `alpha_pattern`.
    pub(super) fn scale(&self, rank: u64) -> Result<f64> {
        let patterns = self.alpha_pattern.as_ref();
        if patterns.is_some_and(|patterns| !patterns.is_empty()) {
            return Err(Fault::AlphaPattern.into());
        }
        let alpha = self.lora_alpha.ok_or(Fault::NoScale)?;
        let rank = rank as f64;
        Ok(match self.use_rslora {
            Some(true) => alpha / rank.sqrt(),
            _ => alpha / rank,
        })
    }

    /// Whether weights of linear layers are stored transposed.
    pub(super) fn is_transposed(&self) -> bool {
        self.fan_in_fan_out == Some(true)
    }
}
