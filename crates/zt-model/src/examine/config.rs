//! Weights that contradict `config.json` of transformers.

use std::collections::BTreeMap;

use serde_json::Value;
use zt::DType;

use crate::examine::Finding;
use crate::examine::folder::{Folder, TensorInfo, Weights, variant};

const CONFIG: &str = "config.json";

/// The ends of the names of input and output embeddings.
const EMBEDDINGS: &[&str] =
    &["embed_tokens.weight", "wte.weight", "embed_in.weight", "word_embeddings.weight"];
/// Types that are not quantized.
const FLOATS: [DType; 4] = [DType::F64, DType::F32, DType::F16, DType::BF16];
const HEADS: &[&str] = &["lm_head.weight", "embed_out.weight"];

pub(super) fn examine(folder: &Folder, findings: &mut Vec<Finding>) {
    let files = main_weights(folder);
    if files.is_empty() {
        return;
    }
    let Some(config) = folder.json(CONFIG) else {
        if folder.path.join(CONFIG).is_file() {
            let message = "config.json is no JSON object, or longer than 16 MiB".to_owned();
            let advice = "loaders refuse it: fetch it again";
            findings.push(folder.finding("config-json", [CONFIG], message, advice));
        }
        return;
    };
    let finding = |code, message, advice: &str| {
        let names = files.iter().map(|file| file.name.as_str());
        folder.finding(code, [CONFIG].into_iter().chain(names), message, advice)
    };
    let tensors = || files.iter().flat_map(|file| &file.tensors);
    if let Some((expected, found)) = other_dtype(folder, &config, tensors()) {
        let message = format!("config.json says {expected}, most weights are {found}");
        let advice = "loaders cast them, or use twice the memory: correct the dtype in config.json, or convert the weights";
        findings.push(finding("config-dtype", message, advice));
    }
    let mut contradicts = |code, contradiction: Option<(String, &str)>| {
        if let Some((message, advice)) = contradiction {
            findings.push(finding(code, message, advice));
        }
    };
    contradicts("config-shape", other_shape(&config, tensors()));
    // Shards that are missing have layers, too.
    if folder.is_whole(&files) {
        contradicts("config-layers", other_layers(&config, tensors()));
    }
    contradicts("config-quantization", other_quantization(folder, &config, tensors()));
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
fn other_dtype<'c, 't>(
    folder: &Folder,
    config: &'c Value,
    tensors: impl Iterator<Item = &'t TensorInfo>,
) -> Option<(&'c str, DType)> {
    if values_of(config, "quantization_config").next().is_some() || is_said_elsewhere(folder) {
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
    let mut bytes = [0u128; 4];
    for tensor in tensors {
        let at = FLOATS.iter().position(|dtype| tensor.dtype == Some(*dtype));
        if let Some(sum) = at.and_then(|at| bytes.get_mut(at)) {
            // Fewer than 2^64 tensors cannot overflow it.
            *sum = sum.strict_add(tensor.byte_len.unwrap_or(0).into());
        }
    }
    let (most, found) = bytes.into_iter().zip(FLOATS).max_by_key(|(sum, _)| *sum)?;
    (most > 0 && found != expected).then_some((named, found))
}

/// A vocabulary or a hidden size that no embedding has. Models of several parts have several.
fn other_shape<'t>(
    config: &Value,
    tensors: impl Iterator<Item = &'t TensorInfo>,
) -> Option<(String, &'static str)> {
    let is_embedding = |tensor: &&TensorInfo| {
        let is_float = tensor.dtype.is_some_and(|dtype| FLOATS.contains(&dtype));
        is_float && EMBEDDINGS.iter().any(|end| tensor.name.ends_with(end))
    };
    let found: Vec<(&str, u64, u64)> = tensors
        .filter(is_embedding)
        .filter_map(|tensor| match tensor.shape[..] {
            [rows, columns] => Some((tensor.name.as_str(), rows, columns)),
            _ => None,
        })
        .collect();
    let (name, rows, columns) = *found.first()?;
    let given = |key: &str| values_of(config, key).filter_map(Value::as_u64).collect::<Vec<_>>();
    // Some models have embeddings of another size than their layers.
    let is_factored = ["embedding_size", "word_embed_proj_dim", "embed_dim", "d_embed"];
    let is_factored = is_factored.iter().any(|key| values_of(config, key).next().is_some());
    let hidden = if is_factored { Vec::new() } else { given("hidden_size") };
    for (key, given, actual) in [
        ("vocab_size", given("vocab_size"), found.iter().map(|it| it.1).collect::<Vec<_>>()),
        ("hidden_size", hidden, found.iter().map(|it| it.2).collect()),
    ] {
        let Some(first) = given.first().filter(|_| !given.iter().any(|it| actual.contains(it)))
        else {
            continue;
        };
        let message = format!(
            "config.json says {key} {first}, and {name:?} has the shape [{rows}, {columns}]"
        );
        return Some((
            message,
            "loaders refuse the weights: correct config.json, or fetch the right weights",
        ));
    }
    None
}

/// A number of layers that no part of the model has. A layer for the prediction of several tokens may follow.
fn other_layers<'t>(
    config: &Value,
    tensors: impl Iterator<Item = &'t TensorInfo>,
) -> Option<(String, &'static str)> {
    /// In the names of layers that predict several tokens.
    const EXTRA: [&str; 5] = ["eh_proj", "enorm", "hnorm", "mtp", "shared_head"];
    /// What precedes the number of a layer.
    const WORDS: [&str; 6] = ["layers.", "layer.", "h.", "blocks.", "block.", "resblocks."];
    let expected: Vec<u64> =
        values_of(config, "num_hidden_layers").filter_map(Value::as_u64).collect();
    let first = *expected.first()?;
    // By the text before the number: the numbers, and whether the layer is an extra one.
    let mut groups: BTreeMap<&str, BTreeMap<u64, bool>> = BTreeMap::new();
    for tensor in tensors {
        let name = tensor.name.as_str();
        // The outermost list counts: `block.0.layer.1` is of block 0.
        let mut before = 0usize;
        let words = name.split_inclusive('.').map(|word| {
            before = before.saturating_add(word.len());
            (word, before)
        });
        let mut lists = words.filter(|(word, _)| WORDS.contains(word));
        let Some((prefix, rest)) = lists.next().and_then(|(_, end)| name.split_at_checked(end))
        else {
            continue;
        };
        let Some(number) = rest.split('.').next().and_then(|text| text.parse().ok()) else {
            continue;
        };
        let is_extra = EXTRA.iter().any(|part| rest.contains(part));
        *groups.entry(prefix).or_default().entry(number).or_default() |= is_extra;
    }
    let counts: Vec<u64> = groups
        .values()
        .map(|layers| layers.values().filter(|is_extra| !**is_extra).count() as u64)
        .collect();
    let most = counts.iter().max()?;
    if expected.iter().any(|count| counts.contains(count)) {
        return None;
    }
    let message = format!("config.json says {first} hidden layers, and the weights have {most}");
    let advice = "loaders start missing layers with random values, and leave out further ones: correct config.json, or fetch the right weights";
    Some((message, advice))
}

/// Weights that are quantized where `config.json` says that they are not, or the other way round.
fn other_quantization<'t>(
    folder: &Folder,
    config: &Value,
    tensors: impl Iterator<Item = &'t TensorInfo> + Clone,
) -> Option<(String, &'static str)> {
    /// The ends of names that quantized weights have.
    const ENDS: [&str; 6] =
        [".qweight", ".absmax", ".weight_scale", ".weight_scale_inv", ".scale_weight", "_blocks"];
    let mut named =
        values_of(config, "quantization_config").chain(values_of(config, "compression_config"));
    let sign = |tensor: &&TensorInfo| ENDS.iter().any(|end| tensor.name.ends_with(end));
    let matrices = tensors.clone().filter(|tensor| tensor.shape.len() > 1);
    let Some(named) = named.next() else {
        let sign = tensors.clone().find(sign)?;
        let narrow = matrices.filter(|it| it.dtype.is_none_or(|dtype| !FLOATS.contains(&dtype)));
        (narrow.count() > 0 && !is_said_elsewhere(folder)).then_some(())?;
        let message = format!(
            "the weights are quantized ({:?}), and config.json has no quantization_config",
            sign.name
        );
        return Some((message, "loaders take the codes for weights: fetch the right config.json"));
    };
    // Of a cache alone, no weight is.
    if named.get("kv_cache_scheme").is_some_and(|it| !it.is_null()) {
        return None;
    }
    let mut matrices = matrices.peekable();
    matrices.peek()?;
    let is_plain = |tensor: &TensorInfo| tensor.dtype.is_some_and(|dtype| FLOATS.contains(&dtype));
    if tensors.clone().any(|tensor| sign(&tensor)) || !matrices.all(is_plain) {
        return None;
    }
    let method = named.get("quant_method").and_then(Value::as_str).unwrap_or("no method");
    let message =
        format!("config.json has a quantization_config ({method}), and no weight is quantized");
    Some((
        message,
        "loaders look for scales that are not there: remove quantization_config, or fetch the quantized weights",
    ))
}

/// Whether a file of another program says that the weights are quantized.
fn is_said_elsewhere(folder: &Folder) -> bool {
    const OTHERS: [&str; 4] =
        ["quantize_config.json", "quant_config.json", "hf_quant_config.json", "quanto_qmap.json"];
    OTHERS.iter().any(|name| folder.path.join(name).is_file())
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
