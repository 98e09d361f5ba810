//! Folders of models, made file by file.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;
use zt_convert::{GGUF, Input, Kinds};
use zt_model::{ExamineOptions, Finding};

/// A folder that is made file by file.
pub(crate) struct Model(pub(crate) TempDir);

/// What makes a folder.
pub(crate) type Make = fn(&Model);

/// A tensor: its name, its dtype and its shape.
pub(crate) type Tensor<'t> = (&'t str, &'t str, &'t [u64]);

pub(crate) const A: Tensor<'_> = ("a", "F32", &[2]);
pub(crate) const B: Tensor<'_> = ("b", "F32", &[2]);
pub(crate) const C: Tensor<'_> = ("c", "F32", &[2]);

/// Two layers of a model.
pub(crate) const LAYERS: [Tensor<'_>; 2] = [
    ("model.layers.0.self_attn.q_proj.weight", "F32", &[2, 2]),
    ("model.layers.1.self_attn.q_proj.weight", "F32", &[2, 2]),
];

impl Model {
    pub(crate) fn new() -> Self {
        Model(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    /// A safetensors file.
    pub(crate) fn weights(&self, name: &str, tensors: &[Tensor<'_>]) -> &Self {
        fs::write(self.path(name), safetensors(tensors)).unwrap();
        self
    }

    /// Shards with one tensor each, and their index.
    pub(crate) fn set(&self, stem: &str, tensors: &[Tensor<'_>]) -> &Self {
        let count = tensors.len();
        let shard = |at: usize| format!("{stem}-{:05}-of-{count:05}.safetensors", at + 1);
        for (at, tensor) in tensors.iter().enumerate() {
            self.weights(&shard(at), &[*tensor]);
        }
        let names = tensors.iter().enumerate();
        let names = names.map(|(at, tensor)| (tensor.0.to_owned(), shard(at).into()));
        let index = json!({"weight_map": names.collect::<serde_json::Map<_, _>>()});
        self.json(&format!("{stem}.safetensors.index.json"), index)
    }

    pub(crate) fn index(&self, name: &str, map: &[(&str, &str)]) -> &Self {
        let map = map.iter().map(|(name, file)| ((*name).to_owned(), (*file).into()));
        let map: serde_json::Map<String, Value> = map.collect();
        self.json(name, json!({ "weight_map": map }))
    }

    pub(crate) fn json(&self, name: &str, value: Value) -> &Self {
        fs::write(self.path(name), value.to_string()).unwrap();
        self
    }

    pub(crate) fn bytes(&self, name: &str, bytes: &[u8]) -> &Self {
        fs::write(self.path(name), bytes).unwrap();
        self
    }

    pub(crate) fn remove(&self, name: &str) -> &Self {
        fs::remove_file(self.path(name)).unwrap();
        self
    }

    /// The findings in a folder below this one: codes and files.
    pub(crate) fn findings(&self, below: &str) -> Vec<Finding> {
        self.findings_with(below, &ExamineOptions::new())
    }

    pub(crate) fn findings_with(&self, below: &str, options: &ExamineOptions<'_>) -> Vec<Finding> {
        let folder = self.0.path().join(below);
        zt_model::examine(&Kinds::builtin(), folder, options).unwrap()
    }
}

pub(crate) fn safetensors(tensors: &[Tensor<'_>]) -> Vec<u8> {
    let mut header = serde_json::Map::new();
    let mut end = 0;
    for (name, dtype, shape) in tensors {
        let width = match *dtype {
            "F32" | "I32" => 4,
            "F8_E4M3" => 1,
            _ => 2,
        };
        let start = end;
        end += shape.iter().product::<u64>() * width;
        let entry = json!({"dtype": dtype, "shape": shape, "data_offsets": [start, end]});
        header.insert((*name).to_owned(), entry);
    }
    let header = Value::from(header).to_string();
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.resize(bytes.len() + usize::try_from(end).unwrap(), 1);
    bytes
}

pub(crate) fn gguf() -> Vec<u8> {
    let mut ours = Vec::new();
    let mut writer = zt::Writer::new(&mut ours).unwrap();
    let values = zt::Dense::from_slice(&[2], &[1.0f32, 2.0]).unwrap();
    writer.add("a", &values).unwrap();
    writer.finish().unwrap();
    let mut bytes = Vec::new();
    let input = Input::from(zt::File::from_bytes(ours).unwrap());
    Kinds::builtin().convert(&[input], &mut bytes, &zt_convert::ConvertOptions::new(GGUF)).unwrap();
    bytes
}

/// A file that torch wrote.
pub(crate) fn pytorch() -> Vec<u8> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/corpus/foreign/pt");
    fs::read(corpus.join("state_dict.pt")).unwrap()
}

pub(crate) const LORA: &[Tensor<'_>] = &[
    ("base_model.model.model.layers.0.q_proj.lora_A.weight", "F32", &[4, 8]),
    ("base_model.model.model.layers.0.q_proj.lora_B.weight", "F32", &[16, 4]),
];

pub(crate) fn lora(model: &Model, folder: &str, base: &str) {
    let config = json!({"peft_type": "LORA", "r": 4, "base_model_name_or_path": base});
    model.json(&format!("{folder}adapter_config.json"), config);
    model.weights(&format!("{folder}adapter_model.safetensors"), LORA);
}

pub(crate) fn config(dtype: &str) -> Value {
    json!({"architectures": ["LlamaForCausalLM"], "torch_dtype": dtype})
}

pub(crate) const EMBEDDING: Tensor<'_> = ("model.embed_tokens.weight", "BF16", &[8, 2]);
pub(crate) const HEAD: Tensor<'_> = ("lm_head.weight", "BF16", &[8, 2]);
