//! Weights that contradict `config.json` of transformers.

use serde_json::Value;
use zt::DType;

use crate::examine::Finding;
use crate::examine::folder::{Folder, TensorInfo, Weights, variant};

const CONFIG: &str = "config.json";

/// The ends of the names of input and output embeddings.
const EMBEDDINGS: &[&str] =
    &["embed_tokens.weight", "wte.weight", "embed_in.weight", "word_embeddings.weight"];
const HEADS: &[&str] = &["lm_head.weight", "embed_out.weight"];

pub(super) fn examine(folder: &Folder, findings: &mut Vec<Finding>) {
    let Some(config) = folder.json(CONFIG) else {
        return;
    };
    let files = main_weights(folder);
    if files.is_empty() {
        return;
    }
    let finding = |code, message, advice: &str| {
        let names = files.iter().map(|file| file.name.as_str());
        folder.finding(code, [CONFIG].into_iter().chain(names), message, advice)
    };
    let tensors = || files.iter().flat_map(|file| &file.tensors);
    if let Some((expected, found)) = other_dtype(&config, tensors()) {
        let message = format!("config.json says {expected}, most weights are {found}");
        let advice = "loaders cast them, or use twice the memory: correct the dtype in config.json, or convert the weights";
        findings.push(finding("config-dtype", message, advice));
    }
    let find = |ends: &[&str]| {
        files.iter().find_map(|file| {
            let mut tensors = file.tensors.iter();
            let found = tensors.find(|it| ends.iter().any(|end| it.name.ends_with(end)));
            Some((&file.name, found?))
        })
    };
    // Versions of transformers differ in which of two values counts.
    let mut ties = values_of(&config, "tie_word_embeddings").filter_map(Value::as_bool);
    let is_tied = ties.next().filter(|first| ties.all(|other| other == *first));
    match (is_tied, find(HEADS), find(EMBEDDINGS)) {
        // PyTorch files may have one tensor under both names.
        (Some(true), Some((file, head)), Some((other, embedding)))
            if file != other || head.span != embedding.span =>
        {
            let message = format!(
                "config.json ties the embeddings, but the weights have {:?} and {:?}",
                head.name, embedding.name
            );
            let advice = "loaders use the second for both: set tie_word_embeddings to false if the first counts, or remove the first";
            findings.push(finding("tied-weights", message, advice));
        }
        (Some(false), None, Some(_)) if is_causal(&config) => {
            let message =
                "config.json does not tie the embeddings, but the weights have no output embedding"
                    .to_owned();
            let advice = "loaders start it with random values: set tie_word_embeddings to true, or fetch the missing weights";
            findings.push(finding("tied-weights", message, advice));
        }
        _ => {}
    }
}

/// The files that transformers loads: one file before a set, safetensors before PyTorch. Variants are left out.
fn main_weights(folder: &Folder) -> Vec<&Weights> {
    for (extension, stem) in [("safetensors", "model"), ("bin", "pytorch_model")] {
        let of_kind = || folder.files.iter().filter(|it| it.extension == extension);
        let mut single = of_kind().filter(|file| file.stem == stem && file.number.is_none());
        if let Some(file) = single.next() {
            return vec![file];
        }
        let mut indices = folder.indices.iter().filter(|(name, _)| {
            name.starts_with(stem) && name.contains(extension) && variant(name).is_none()
        });
        if let Some((_, index)) = indices.next() {
            let shards = index.shards().iter();
            return shards.filter_map(|name| folder.file(name)).collect();
        }
        let numbered = of_kind().filter(|file| file.stem == stem && file.number.is_some());
        let numbered: Vec<&Weights> = numbered.collect();
        if !numbered.is_empty() {
            return numbered;
        }
    }
    Vec::new()
}

/// The dtype that `config.json` gives, and the one of most floating-point weights, if they differ. Quantized models
/// keep their scales in other types.
fn other_dtype<'t>(
    config: &Value,
    tensors: impl Iterator<Item = &'t TensorInfo>,
) -> Option<(&str, DType)> {
    if values_of(config, "quantization_config").next().is_some() {
        return None;
    }
    // `torch_dtype` is its older name.
    let mut named = values_of(config, "dtype").chain(values_of(config, "torch_dtype"));
    let named = named.next()?.as_str()?;
    let expected = match named.strip_prefix("torch.").unwrap_or(named) {
        "float32" => DType::F32,
        "float16" => DType::F16,
        "bfloat16" => DType::BF16,
        _ => return None,
    };
    let types = [DType::F64, DType::F32, DType::F16, DType::BF16];
    let mut bytes = [0u128; 4];
    for tensor in tensors {
        let at = types.iter().position(|dtype| tensor.dtype == Some(*dtype));
        if let Some(sum) = at.and_then(|at| bytes.get_mut(at)) {
            // Fewer than 2^64 tensors cannot overflow it.
            *sum = sum.strict_add(tensor.byte_len.unwrap_or(0).into());
        }
    }
    let (most, found) = bytes.into_iter().zip(types).max_by_key(|(sum, _)| *sum)?;
    (most > 0 && found != expected).then_some((named, found))
}

/// The values of a key, except `null`: the model's own, then the one of its text model. Models of text and images
/// have the configuration of their text model as an object within theirs.
fn values_of<'c>(config: &'c Value, key: &str) -> impl Iterator<Item = &'c Value> {
    let configs = [Some(config), config.get("text_config")];
    let values = configs.into_iter().flatten().filter_map(move |it| it.get(key));
    values.filter(|value| !value.is_null())
}

fn is_causal(config: &Value) -> bool {
    let architectures = config.get("architectures").and_then(Value::as_array);
    let mut names = architectures.into_iter().flatten().filter_map(Value::as_str);
    names.any(|name| name.ends_with("ForCausalLM"))
}
