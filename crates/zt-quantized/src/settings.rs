//! What the JSON files beside the weights say of their quantization.

use std::sync::OnceLock;

use serde_json::{Map, Value};
use zt::Result;

use crate::fault::Fault;
use crate::targets::Targets;

/// The keys of `config.json` that say how weights are quantized.
const QUANTIZATION: [&str; 3] = ["quantization_config", "compression_config", "quantization"];

/// What the JSON files beside the weights say of their quantization.
///
/// ```
/// use zt_quantized::Settings;
///
/// let mut settings = Settings::default();
/// let json = br#"{"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}"#;
/// settings.add("config.json", json)?;
/// assert_eq!(settings.method(), Some("fp8"));
/// # Ok::<(), zt::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The object that says how, from the first file that has one.
    quantization: Map<String, Value>,
    /// Whether it was in a file of ModelOpt.
    is_modelopt: bool,
    /// Which of its groups a module is of, once someone asked.
    targets: OnceLock<Targets>,
    dtype: Option<String>,
    /// The modules that quanto names.
    quanto: Map<String, Value>,
    is_shard: bool,
}

impl Settings {
    /// The names of the files that are understood.
    pub const FILES: [&str; 5] = [
        "config.json",
        "hf_quant_config.json",
        "quantize_config.json",
        "quant_config.json",
        "quanto_qmap.json",
    ];

    /// The longest file, in bytes.
    pub const LEN_MAX: u64 = 16 << 20;

    /// The same settings, for a file that is one of several shards: what its weights lack may be in another one.
    pub fn shard(mut self, is_shard: bool) -> Self {
        self.is_shard = is_shard;
        self
    }

    /// Whether the file is one of several shards, which is open alone.
    pub const fn is_shard(&self) -> bool {
        self.is_shard
    }

    /// Adds the file of this name. Files of other names are ignored.
    ///
    /// # Errors
    ///
    /// Code `quantization` if it is no JSON object.
    pub fn add(&mut self, file: &str, json: &[u8]) -> Result<()> {
        let json: Map<String, Value> = serde_json::from_slice(json)
            .map_err(|error| Fault::Settings { file: file.to_owned(), what: error.to_string() })?;
        match file {
            "config.json" => {
                let text = json.get("text_config").and_then(Value::as_object);
                let configs = [Some(&json), text].into_iter().flatten();
                for config in configs {
                    for key in QUANTIZATION {
                        self.take(config.get(key));
                    }
                    let dtype = config.get("dtype").or(config.get("torch_dtype"));
                    let dtype = dtype.and_then(Value::as_str).map(str::to_owned);
                    self.dtype = self.dtype.take().or(dtype);
                }
            }
            "hf_quant_config.json" => {
                self.is_modelopt |= self.take(json.get("quantization"));
            }
            "quantize_config.json" | "quant_config.json" => {
                // Files of AutoGPTQ, and of AutoAWQ, which once named no method.
                let (key, method) = match file {
                    "quant_config.json" => ("w_bit", "awq"),
                    _ => ("bits", "gptq"),
                };
                let mut json = json;
                if json.contains_key(key) {
                    json.entry("quant_method").or_insert_with(|| method.into());
                }
                self.take(Some(&Value::Object(json)));
            }
            "quanto_qmap.json" => self.quanto = json,
            _ => {}
        }
        Ok(())
    }

    /// A `config.json` with these settings of quantization in the place of its own: without any, for plain weights.
    ///
    /// # Errors
    ///
    /// Code `quantization` if it is no JSON object.
    pub fn config_with(json: &[u8], quantization: Option<Value>) -> Result<Vec<u8>> {
        let fault = |error: serde_json::Error| Fault::Settings {
            file: "config.json".to_owned(),
            what: error.to_string(),
        };
        let mut config: Map<String, Value> = serde_json::from_slice(json).map_err(fault)?;
        for key in QUANTIZATION {
            config.remove(key);
            if let Some(Value::Object(text)) = config.get_mut("text_config") {
                text.remove(key);
            }
        }
        if let Some(quantization) = quantization {
            config.insert("quantization_config".to_owned(), quantization);
        }
        let mut json = serde_json::to_vec_pretty(&config).map_err(fault)?;
        json.push(b'\n');
        Ok(json)
    }

    fn take(&mut self, found: Option<&Value>) -> bool {
        match found.and_then(Value::as_object) {
            Some(found) if self.quantization.is_empty() => {
                self.quantization = found.clone();
                self.targets = OnceLock::new();
                true
            }
            _ => false,
        }
    }

    /// A key of the settings of quantization.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.quantization.get(key).filter(|value| !value.is_null())
    }

    /// A key of the settings of quantization as a number.
    pub fn number(&self, key: &str) -> Option<u64> {
        self.get(key)?.as_u64()
    }

    /// A key of the settings of quantization as a text.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }

    /// The method: `quant_method`, or `modelopt` for the settings of ModelOpt. `auto-round` once was `intel/auto-round`.
    pub fn method(&self) -> Option<&str> {
        if self.is_modelopt || self.get("quant_algo").is_some() {
            return Some("modelopt");
        }
        let method = self.text("quant_method")?;
        Some(method.strip_prefix("intel/").unwrap_or(method))
    }

    /// How auto-round packed the codes: `packing_format`, or the `backend` of its first releases.
    pub(crate) fn packing_format(&self) -> Option<&str> {
        let backend = || self.text("backend").filter(|_| self.method() == Some("auto-round"));
        self.text("packing_format").or_else(backend)
    }

    /// The weights of the groups of compressed-tensors that a module may be of. `None` without groups.
    pub(crate) fn groups(&self, module: &str) -> Option<Vec<&Value>> {
        let groups = self.get("config_groups")?.as_object()?;
        let targets = self.targets.get_or_init(|| Targets::new(groups));
        let named = targets.groups_of(module).iter().filter_map(|group| groups.get(group));
        Some(named.filter_map(|group| group.get("weights")).collect())
    }

    /// The type that the model is loaded in, without `torch.`.
    pub fn dtype(&self) -> Option<&str> {
        self.dtype.as_deref().map(|name| name.strip_prefix("torch.").unwrap_or(name))
    }

    /// What quanto says of a module.
    pub(crate) fn quanto(&self, module: &str) -> Option<&Value> {
        self.quanto.get(module)
    }

    /// The modules that quanto names.
    pub(crate) fn quanto_modules(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.quanto.iter().map(|(module, value)| (&**module, value))
    }
}
