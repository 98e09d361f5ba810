//! Merges the inputs of a conversion.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::PathBuf;

use zt::foreign::WarningKind;
use zt::{Error, ErrorKind, Result, Warning, codes};
use zt_foreign::{Incoming, Input, Job, Loss, Merged};
use zt_quantized::unscaled_blocks;

use crate::merge::damage::Damage;
use crate::merge::duplicate::replaces;
use crate::merge::union::Union;
use crate::native::ZT;
use crate::table::Kinds;

/// The kinds of files that PyTorch writes. A safetensors file of such tensors has `format: pt`, as the converters of
/// transformers and safetensors write it: transformers before 4.46 does not load one without.
const OF_TORCH: [&str; 3] = ["pytorch", "pickle", "dcp"];

/// Merges all inputs: checks their objects, joins their attributes, repeats their warnings.
///
/// If damaged objects are skipped, the inputs are verified to find them before anything is written.
///
/// # Errors
///
/// The fault of an object, unless damaged ones are skipped. Code `overlap` for blobs that would be
/// written many times; `duplicate-name` for two objects of one name, unless the options choose one; `lossy`
/// for data that the reader of an input skipped, unless that is allowed.
pub(crate) fn merge<'i>(
    kinds: &Kinds,
    inputs: &'i [Input],
    job: &mut Job<'_>,
) -> Result<Merged<'i>> {
    let inputs = distinct(inputs);
    expect_no_adapter(&inputs)?;
    let mut attributes_of = Vec::with_capacity(inputs.len());
    let mut has_attributes = false;
    for input in &inputs {
        let attributes = input.file().attributes();
        let attributes = attributes.map_err(|error| input.blame(error))?;
        has_attributes |= attributes.is_some();
        attributes_of.push(attributes.unwrap_or_default());
    }
    let mut is_whole_set = false;
    for kind in kinds.iter() {
        is_whole_set |= kind.merge_attributes(&mut attributes_of);
    }
    repeat_warnings(&inputs, is_whole_set, job)?;

    let mut objects = Vec::new();
    let mut places = HashMap::new();
    let (mut attributes, mut extra) = (Union::default(), Union::default());
    for (input, map) in inputs.iter().copied().zip(attributes_of) {
        let blame = |error| input.blame(error);
        add_objects(kinds, input, &mut objects, &mut places, inputs.len() > 1, job)?;
        attributes.add(map, job).map_err(blame)?;
        let map = input.file().extra().map_err(blame)?;
        extra.add(map, job).map_err(blame)?;
    }
    for Incoming { tensor, .. } in &objects {
        if let Some(fault) = tensor.fault() {
            let message = format!("kept as it is: {}", fault.message());
            let warning = Warning::new(fault.code(), message).with_object(tensor.name());
            job.summary.warnings.push(warning);
        }
    }
    let mut attributes = attributes.into_map();
    for kind in kinds.iter().filter(|kind| ![ZT, kind.kind()].contains(&job.target)) {
        for key in kind.own_attributes() {
            attributes.remove(key);
        }
    }
    let is_of_torch = |input: &&Input| OF_TORCH.contains(&input.file().kind().as_str());
    if job.target.as_str() == "safetensors" && inputs.iter().any(is_of_torch) {
        has_attributes = true;
        if attributes.get("format").is_none() {
            attributes.insert("format", "pt");
        }
    }
    for change in &job.options.attributes {
        has_attributes = true;
        if change.values.is_empty() {
            attributes.remove(&change.key);
        } else if let Some(kind) = kinds.get(job.target.as_str()) {
            kind.set_attribute(&mut attributes, change)?;
        }
    }
    Ok(Merged {
        objects,
        attributes: has_attributes.then_some(attributes),
        extra: extra.into_map(),
    })
}

/// The inputs, except those that are a set which another one is already. Each part of a set without an index
/// opens all of it, so a list of its parts has it several times.
fn distinct(inputs: &[Input]) -> Vec<&Input> {
    let mut sets: Vec<(BTreeSet<PathBuf>, &Input)> = Vec::new();
    let mut distinct = Vec::with_capacity(inputs.len());
    for input in inputs {
        if inputs.len() > 1 && input.paths().len() > 1 {
            let real = |path: &PathBuf| fs::canonicalize(path).unwrap_or_else(|_| path.clone());
            let paths: BTreeSet<PathBuf> = input.paths().iter().map(real).collect();
            let is_known = |(known, first): &(BTreeSet<PathBuf>, &Input)| {
                *known == paths
                    && first.path() != input.path()
                    && first.file().names().eq(input.file().names())
            };
            if sets.iter().any(is_known) {
                continue;
            }
            sets.push((paths, input));
        }
        distinct.push(input);
    }
    distinct
}

/// Refuses an adapter of LoRA beside weights: its factors would lie beside the weights that they change.
///
/// # Errors
///
/// Code `misuse`.
fn expect_no_adapter(inputs: &[&Input]) -> Result<()> {
    // Of peft, of kohya and of diffusers.
    const FACTORS: [&str; 8] = [
        ".lora_A",
        ".lora_B",
        ".lora_embedding_A",
        ".lora_embedding_B",
        ".lora_down",
        ".lora_up",
        ".lora.down",
        ".lora.up",
    ];
    let is_factor = |name: &str| {
        let ends = FACTORS.iter().filter_map(|factor| name.rsplit_once(factor));
        ends.into_iter().any(|(_, end)| end.is_empty() || end.starts_with('.'))
    };
    // kohya has the scale of each module beside its factors.
    let is_part = |name: &str| is_factor(name) || name.ends_with(".alpha");
    let is_adapter = |input: &&&Input| {
        let has_config = || {
            let config = input.path().map(|path| path.with_file_name("adapter_config.json"));
            config.is_some_and(|config| config.is_file())
        };
        let names = || input.file().names();
        names().any(is_factor) && (names().all(is_part) || has_config())
    };
    let mut adapters = inputs.iter().filter(is_adapter);
    match adapters.next() {
        Some(first) if adapters.count().strict_add(1) < inputs.len() => {
            let message = "is an adapter of LoRA: --lora ADAPTER adds its weights to those of the base (`Lora` in Rust), \
                           and `zt append` adds its tensors as they are";
            Err(first.blame(Error::new(ErrorKind::Misuse, codes::MISUSE, message)))
        }
        _ => Ok(()),
    }
}

/// Adds the objects of an input. `places` has the position of each name in `objects`, if the input
/// `is_one_of_several`.
fn add_objects<'i>(
    kinds: &Kinds,
    input: &'i Input,
    objects: &mut Vec<Incoming<'i>>,
    places: &mut HashMap<&'i str, usize>,
    is_one_of_several: bool,
    job: &mut Job<'_>,
) -> Result<()> {
    let blame = |error| input.blame(error);
    let (file, path) = (input.file(), input.path());
    file.check_overlap().map_err(blame)?;
    if let Some(truncated) = file.truncated().filter(|_| !job.options.skip_damaged) {
        return Err(blame(truncated.clone()));
    }
    let mut damage = Damage::of(file, job.options).map_err(blame)?;
    let codes = codes(kinds, input, job)?;
    if objects.is_empty() {
        objects.reserve_exact(file.len());
    }
    for entry in file.entries() {
        let checked = entry.tensor().and_then(|tensor| match tensor.fault() {
            // Another kind of file cannot hold components without a meaning.
            Some(fault) if job.target != ZT => Err(fault.clone()),
            _ => damage.check(tensor),
        });
        let tensor = match checked {
            Ok(tensor) => tensor,
            Err(fault) => {
                job.leave_out(fault, entry.name()).map_err(blame)?;
                continue;
            }
        };
        let dtype = job.options.dtype_of(entry.name()).filter(|_| !codes.contains(entry.name()));
        let incoming = Incoming { path, dtype, ..Incoming::new(tensor, file.registry()) };
        // The names of one file are unique.
        let place = match places.entry(entry.name()) {
            Entry::Occupied(place) => Some(*place.get()),
            Entry::Vacant(place) if is_one_of_several => {
                place.insert(objects.len());
                None
            }
            Entry::Vacant(_) => None,
        };
        match place.and_then(|place| objects.get_mut(place)) {
            Some(first) if replaces(first, &incoming, job)? => *first = incoming,
            Some(_) => {}
            None => objects.push(incoming),
        }
    }
    Ok(())
}

/// The tensors that a cast would make meaningless: codes of quantized weights, and their scales. They are kept as they
/// are, with a warning for each way to store them. Blocks of GGUF whose weight has a scale beside them are such codes,
/// too, and their dense values lack that scale.
fn codes(kinds: &Kinds, input: &Input, job: &mut Job<'_>) -> Result<HashSet<String>> {
    let is_cast = job.options.casts();
    if job.options.dense && !is_cast {
        job.summary.warnings.extend(unscaled_blocks(input.file())?);
    }
    if !is_cast || !input.logical().is_empty() {
        return Ok(HashSet::new());
    }
    let found = kinds.quantized(input)?;
    let parts = found.parts().into_iter().filter(|part| job.options.dtype_of(part).is_some());
    let parts: HashSet<String> = parts.map(str::to_owned).collect();
    let warnings = found.warnings().into_iter().filter(|_| !parts.is_empty());
    let warnings = warnings.map(|mut warning| {
        warning.message = format!("not cast: {}", warning.message);
        warning
    });
    job.summary.warnings.extend(warnings);
    Ok(parts)
}

/// Repeats the warnings about the inputs. Data that other parts of a set have is a loss.
fn repeat_warnings(inputs: &[&Input], is_whole_set: bool, job: &mut Job<'_>) -> Result<()> {
    for input in inputs {
        for mut warning in input.file().warnings() {
            match warning.kind {
                WarningKind::Part if is_whole_set => continue,
                WarningKind::Part => {
                    let what = warning.message;
                    job.accept(Loss::Read { what }, warning.object.as_deref());
                    job.check().map_err(|error| input.blame(error))?;
                    continue;
                }
                _ => {}
            }
            // With several inputs, the message has to name the file.
            if let (Some(path), None, [_, _, ..]) = (input.path(), &warning.object, inputs) {
                warning.message = format!("{}: {}", path.display(), warning.message);
            }
            job.summary.warnings.push(warning);
        }
    }
    Ok(())
}
