//! Adapters of PEFT: incomplete ones, and ones of another base.

use std::collections::BTreeMap;
use std::fs;
use std::iter;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use crate::arithmetic::Factor;
use crate::examine::Finding;
use crate::examine::folder::{Folder, TensorInfo, Weights, some_of};
use zt_convert::Kinds;

const CONFIG: &str = "adapter_config.json";
const STEM: &str = "adapter_model";

/// What to do if the files are of two adapters.
const OF_ONE: &str = "fetch both files of one adapter";

pub(super) fn examine(kinds: &Kinds, folder: &Folder, findings: &mut Vec<Finding>) {
    let mut files = folder.files.iter().filter(|file| file.stem == STEM);
    let (config, weights) = match (folder.json(CONFIG), files.next()) {
        (Some(config), Some(weights)) => (config, weights),
        (config, weights) => return findings.extend(missing(folder, config.is_some(), weights)),
    };
    let is_lora = config.get("peft_type").and_then(Value::as_str) == Some("LORA");
    // Opening a file that cannot be opened gives the error.
    if !is_lora || weights.tensors.is_empty() {
        return;
    }
    let pairs = pairs(&weights.tensors);
    let found = if pairs.is_empty() {
        let message = "adapter_config.json is of a LoRA, and the weights have no lora_A or lora_B";
        vec![("adapter", message.to_owned(), OF_ONE)]
    } else {
        let base = base_of(folder, &config).and_then(|path| Folder::read(kinds, &path, &[]).ok());
        let of_base = base.and_then(|base| of_another_base(&pairs, &base));
        [unpaired(&pairs), of_another_rank(&pairs, &config), of_base]
            .into_iter()
            .flatten()
            .collect()
    };
    findings.extend(found.into_iter().map(|(code, message, advice)| {
        folder.finding(code, [CONFIG, &weights.name], message, advice)
    }));
}

/// A finding about both files: its code, message and advice.
type Found = (&'static str, String, &'static str);

/// One of two files is missing.
fn missing(folder: &Folder, has_config: bool, weights: Option<&Weights>) -> Option<Finding> {
    match weights {
        None if has_config => {
            let message = "adapter_config.json is there, and no adapter_model".to_owned();
            let advice = "fetch adapter_model.safetensors of the same adapter";
            Some(folder.finding("adapter", [CONFIG], message, advice))
        }
        None => None,
        Some(file) => {
            let message = format!("{:?} has no adapter_config.json beside it", file.name);
            let advice =
                "fetch it: without it no loader knows the base and the scale of the adapter";
            Some(folder.finding("adapter", [&file.name], message, advice))
        }
    }
}

fn unpaired(pairs: &Pairs<'_>) -> Option<Found> {
    let single = modules(pairs, |_, a, b| a.is_some() != b.is_some());
    let names = (!single.is_empty()).then(|| some_of(single))?;
    let message = format!("these modules have one of lora_A and lora_B only: {names}");
    Some(("adapter", message, "fetch or save the adapter again"))
}

fn of_another_rank(pairs: &Pairs<'_>, config: &Value) -> Option<Found> {
    let patterns = config.get("rank_pattern").and_then(Value::as_object);
    let rank = config.get("r").and_then(Value::as_u64);
    let rank = rank.filter(|_| patterns.is_none_or(|patterns| patterns.is_empty()))?;
    let other = modules(pairs, |_, a, _| a.is_some_and(|a| a.shape.first() != Some(&rank)));
    let names = (!other.is_empty()).then(|| some_of(other))?;
    let message =
        format!("adapter_config.json gives the rank {rank}, these modules have another: {names}");
    Some(("adapter", message, OF_ONE))
}

fn of_another_base(pairs: &Pairs<'_>, base: &Folder) -> Option<Found> {
    let tensors = base.files.iter().filter(|file| file.stem != STEM);
    let tensors: Vec<&TensorInfo> = tensors.flat_map(|file| &file.tensors).collect();
    let unfit = if tensors.is_empty() { Vec::new() } else { unfit(pairs, &tensors) };
    let (count, all) = (unfit.len(), pairs.len());
    let names = (!unfit.is_empty()).then(|| some_of(unfit))?;
    let message = format!(
        "{count} of {all} modules are not in the base, or have another shape there: {names}"
    );
    Some(("adapter-base", message, "use the base that the adapter was trained on"))
}

/// The modules with their `lora_A` and `lora_B`.
type Pairs<'t> = BTreeMap<&'t str, (Option<&'t TensorInfo>, Option<&'t TensorInfo>)>;

fn pairs(tensors: &[TensorInfo]) -> Pairs<'_> {
    let mut pairs = Pairs::new();
    for tensor in tensors {
        if let Some(factor) = Factor::of(&tensor.name) {
            let (a, b) = pairs.entry(factor.module).or_default();
            *(if factor.is_b { b } else { a }) = Some(tensor);
        }
    }
    pairs
}

/// The modules whose pair has a fault.
fn modules<'t>(
    pairs: &Pairs<'t>,
    is_faulty: impl Fn(&str, Option<&TensorInfo>, Option<&TensorInfo>) -> bool,
) -> Vec<&'t str> {
    let faulty = pairs.iter().filter(|(module, (a, b))| is_faulty(module, *a, *b));
    faulty.map(|(module, _)| *module).collect()
}

/// The folder of the base, if it is below the adapter's or a repository in the same cache of the Hub. No other path is
/// looked at: the name comes from a stranger, and a path of Windows may lead to a stranger's server. Only headers are
/// read there, and no name of it appears in a finding.
fn base_of(folder: &Folder, config: &Value) -> Option<PathBuf> {
    let name = config.get("base_model_name_or_path").and_then(Value::as_str)?;
    let mut parts = Path::new(name).components();
    let is_below = parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    let below = folder.path.join(name);
    if !name.is_empty() && is_below && below.is_dir() {
        return Some(below);
    }
    // hub/models--OWNER--NAME/snapshots/REVISION
    let hub = folder.path.ancestors().nth(3)?;
    let is_plain =
        |part: &str| !part.is_empty() && part != "." && part != ".." && !part.contains(['\\', ':']);
    let parts: Vec<&str> = name.split('/').collect();
    if parts.len() > 2 || !parts.iter().all(|part| is_plain(part)) {
        return None;
    }
    let snapshots = hub.join(format!("models--{}", parts.join("--"))).join("snapshots");
    let entries = fs::read_dir(snapshots).ok()?.flatten();
    let newest = entries.max_by_key(|entry| entry.metadata().and_then(|it| it.modified()).ok());
    newest.map(|entry| entry.path())
}

/// The modules that no tensor of the base fits. Checkpoints may leave out the first parts of the names of modules.
fn unfit<'t>(pairs: &Pairs<'t>, base: &[&TensorInfo]) -> Vec<&'t str> {
    // Backwards, the names that end alike are neighbours.
    let backwards = |module: &str| module.chars().rev().collect::<String>();
    let weights = base.iter().filter_map(|tensor| {
        let module = tensor.name.strip_suffix(".weight")?;
        Some((backwards(module), *tensor))
    });
    let weights: BTreeMap<String, &TensorInfo> = weights.collect();
    let find = |module: &str| {
        let module = backwards(module);
        let mut ends = iter::successors(Some(&*module), |name| Some(name.rsplit_once('.')?.0));
        let longer = || {
            let begin = format!("{module}.");
            let (name, weight) = weights.range(begin.clone()..).next()?;
            name.starts_with(&begin).then_some(weight)
        };
        ends.find_map(|end| weights.get(end)).or_else(longer)
    };
    let fits = |module: &str, a: Option<&TensorInfo>, b: Option<&TensorInfo>| {
        let Some(weight) = find(module) else {
            return false;
        };
        let (Some([_, input]), Some([output, _])) =
            (a.map(|it| &it.shape[..]), b.map(|it| &it.shape[..]))
        else {
            return true;
        };
        // Packed weights have other shapes. Embeddings and Conv1D of GPT-2 have them transposed.
        !weight.dtype.is_some_and(zt::DType::is_float)
            || weight.shape.len() != 2
            || weight.shape == [*output, *input]
            || weight.shape == [*input, *output]
    };
    modules(pairs, |module, a, b| !fits(module, a, b))
}
