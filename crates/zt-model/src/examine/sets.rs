//! Shards, indices and files that do not belong together.

use std::collections::{BTreeMap, BTreeSet};

use zt::diff::{DiffOptions, diff_tensors};
use zt::{ErrorKind, OpenOptions, Result};

use crate::examine::folder::{Folder, TensorInfo, Weights, some_of, variant};
use crate::examine::{ExamineOptions, Finding};
use zt_convert::Kinds;

pub(super) fn examine(
    kinds: &Kinds,
    folder: &Folder,
    options: &ExamineOptions<'_>,
    findings: &mut Vec<Finding>,
) -> Result<()> {
    for ((stem, extension), shards) in folder.numbered() {
        if examine_numbers(folder, stem, extension, &shards, findings) {
            examine_duplicates(kinds, folder, &shards, options, findings)?;
        }
    }
    examine_indices(folder, findings);
    examine_totals(folder, findings);
    examine_strays(folder, findings);
    Ok(())
}

/// Compares the numbers of shards with each other and with the indices. Returns whether they are of one split without
/// an index.
fn examine_numbers(
    folder: &Folder,
    stem: &str,
    extension: &str,
    shards: &[&Weights],
    findings: &mut Vec<Finding>,
) -> bool {
    let counts = |shards: &[&Weights]| -> BTreeSet<u32> {
        let numbers = shards.iter().filter_map(|shard| shard.number);
        numbers.map(|(_, count)| count).collect()
    };
    let (listed, others): (Vec<&Weights>, Vec<&Weights>) =
        shards.iter().partition(|shard| folder.is_listed(&shard.name));
    let names = |shards: &[&Weights]| -> Vec<String> {
        shards.iter().map(|shard| shard.name.clone()).collect()
    };
    if !listed.is_empty() {
        let current = counts(&listed);
        let is_current =
            |shard: &&Weights| shard.number.is_some_and(|(_, count)| current.contains(&count));
        let (mut unlisted, old): (Vec<&Weights>, Vec<&Weights>) =
            others.into_iter().partition(is_current);
        // Nothing of a shard without tensors is left out.
        unlisted.retain(|shard| !shard.tensors.is_empty());
        if !old.is_empty() {
            let message = format!(
                "the folder has shards of another split than the index: {}",
                some_of(names(&old))
            );
            let advice = "remove them: a program that takes all files of a folder loads them, too";
            findings.push(folder.finding("old-shards", names(&old), message, advice));
        }
        // A tensor of the older split may belong to another model.
        for (index, of_index) in &folder.indices {
            let of_one: Vec<&Weights> =
                listed.iter().copied().filter(|it| of_index.shards().contains(&it.name)).collect();
            let splits: Vec<String> = counts(&of_one).iter().map(|it| format!("of {it}")).collect();
            if splits.len() > 1 {
                let message = format!(
                    "the index {index:?} names shards of {} splits: {}",
                    splits.len(),
                    splits.join(", ")
                );
                let advice =
                    "tensors of an older split may be of another model: fetch the set again";
                findings.push(folder.finding("old-shards", names(&of_one), message, advice));
            }
        }
        if !unlisted.is_empty() {
            let message =
                format!("the index does not name these shards: {}", some_of(names(&unlisted)));
            let advice = "loaders leave them out: write the index anew, or remove them";
            findings.push(folder.finding("unlisted-shards", names(&unlisted), message, advice));
        }
        return false;
    }
    let counts: Vec<u32> = counts(shards).into_iter().collect();
    let [count] = counts[..] else {
        let splits: Vec<String> = counts.iter().map(|count| format!("of {count}")).collect();
        let message = format!(
            "shards of {} splits of {stem:?} lie together: {}",
            counts.len(),
            splits.join(", ")
        );
        let advice = "remove those of the older split";
        findings.push(folder.finding("old-shards", names(shards), message, advice));
        return false;
    };
    // A set of GGUF files has no index, and opening any of them finds the missing ones.
    if extension == "gguf" {
        return false;
    }
    let numbers = shards.iter().filter_map(|shard| Some(u64::from(shard.number?.0)));
    let numbers: BTreeSet<u64> = numbers.collect();
    let first = u64::from(!numbers.contains(&0));
    let (count, found) = (u64::from(count), numbers.len() as u64);
    if let Some(missing @ 1..) = count.checked_sub(found) {
        let number = (first..).zip(&numbers).find(|(number, found)| number != *found);
        let number = number.map_or(first.strict_add(numbers.len() as u64), |(number, _)| number);
        let message = format!(
            "{missing} of {count} shards of {stem:?} are missing, the first is number {number}"
        );
        let advice = "fetch the whole set, with its index";
        findings.push(folder.finding("missing-shards", names(shards), message, advice));
    } else if !folder.has_faulty_index {
        let message = format!(
            "{count} shards of {stem:?} have no index, without which most loaders do not find them"
        );
        let advice = "`zt index FOLDER` writes one";
        findings.push(folder.finding("no-index", names(shards), message, advice));
    }
    true
}

/// How two tensors of one name differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Difference {
    None,
    Values,
    Types,
    /// The types and shapes are equal, and the values were not read.
    Unknown,
}

/// Tensors that two shards have, where no index decides: for each pair of shards, one finding for each kind of
/// difference.
fn examine_duplicates(
    kinds: &Kinds,
    folder: &Folder,
    shards: &[&Weights],
    options: &ExamineOptions<'_>,
    findings: &mut Vec<Finding>,
) -> Result<()> {
    let mut owners: BTreeMap<&str, (&Weights, &TensorInfo)> = BTreeMap::new();
    let mut pairs: BTreeMap<[&str; 2], (Vec<&str>, Vec<&str>)> = BTreeMap::new();
    for shard in shards {
        for tensor in &shard.tensors {
            let Some((first, other)) = owners.insert(&tensor.name, (shard, tensor)) else {
                continue;
            };
            let is_alike = (tensor.dtype, &tensor.shape) == (other.dtype, &other.shape);
            let (alike, unlike) = pairs.entry([&first.name, &shard.name]).or_default();
            (if is_alike { alike } else { unlike }).push(&tensor.name);
        }
    }
    for ([first, second], (alike, unlike)) in pairs {
        let mut groups: BTreeMap<Difference, Vec<&str>> = BTreeMap::new();
        if !unlike.is_empty() {
            groups.insert(Difference::Types, unlike);
        }
        if options.values && !alike.is_empty() {
            for (name, is_equal) in compare(kinds, folder, [first, second], alike, options)? {
                let difference = if is_equal { Difference::None } else { Difference::Values };
                groups.entry(difference).or_default().push(name);
            }
        } else if !alike.is_empty() {
            groups.insert(Difference::Unknown, alike);
        }
        for (difference, names) in groups {
            let how = match difference {
                Difference::None => "with equal values",
                Difference::Values => "with other values",
                Difference::Types => "with other types or shapes",
                Difference::Unknown => "with one type and shape; their values were not compared",
            };
            let advice = match difference {
                Difference::None => "remove one of the two",
                _ => {
                    "the loader decides which one counts: remove one, or name the right shard in an index"
                }
            };
            let names = some_of(names);
            let message = format!("{first:?} and {second:?} both have {names}, {how}");
            findings.push(folder.finding("duplicate-tensor", [first, second], message, advice));
        }
    }
    Ok(())
}

/// Whether each of these tensors has the same value in two shards. What cannot be read is not equal: reading it gives
/// the error.
fn compare<'n>(
    kinds: &Kinds,
    folder: &Folder,
    shards: [&str; 2],
    names: Vec<&'n str>,
    options: &ExamineOptions<'_>,
) -> Result<Vec<(&'n str, bool)>> {
    let opened = shards.map(|shard| kinds.open(folder.path.join(shard), OpenOptions::new()));
    let [Ok(first), Ok(second)] = opened else {
        return Ok(names.into_iter().map(|name| (name, false)).collect());
    };
    let mut diff_options = DiffOptions::new();
    if let Some(progress) = options.progress {
        diff_options = diff_options.progress(progress);
    }
    let is_equal = |name: &str| -> Result<bool> {
        let (a, b) = (first.file().tensor(name)?, second.file().tensor(name)?);
        Ok(diff_tensors(&a, &b, &diff_options)?.is_empty())
    };
    let compared = names.into_iter().map(|name| match is_equal(name) {
        Err(error) if error.kind() == ErrorKind::Interrupted => Err(error),
        compared => Ok((name, compared.unwrap_or(false))),
    });
    compared.collect()
}

/// Two indices of the same tensors, except for variants of a model.
fn examine_indices(folder: &Folder, findings: &mut Vec<Finding>) {
    for (at, (name, index)) in folder.indices.iter().enumerate() {
        for (other_name, other) in folder.indices.iter().skip(at).skip(1) {
            let extension = |shards: &[String]| {
                let first = shards.first()?;
                Some(first.rsplit_once('.')?.1.to_owned())
            };
            let is_of_one_kind = extension(index.shards()) == extension(other.shards());
            let is_equal = || index.tensors().eq(other.tensors());
            if !is_of_one_kind || variant(name) != variant(other_name) || is_equal() {
                continue;
            }
            let names = index.tensors().map(|(tensor, _)| tensor).collect();
            let others = other.tensors().map(|(tensor, _)| tensor).collect();
            if overlap(&names, &others) {
                let message = format!(
                    "two indices have tensors of the same names: {name:?} and {other_name:?}"
                );
                let advice = "remove the older one and its shards";
                findings.push(folder.finding("two-indexes", [name, other_name], message, advice));
            }
        }
    }
}

/// Totals of an index that count nothing. The number of bytes is compared where the set is opened.
fn examine_totals(folder: &Folder, findings: &mut Vec<Finding>) {
    for (name, _) in &folder.indices {
        let index = folder.json(name);
        let metadata = index.as_ref().and_then(|index| index.get("metadata")?.as_object());
        let mut totals = metadata.into_iter().flatten();
        // Some writers give a whole number as a float.
        let counts = |value: &serde_json::Value| {
            value.as_f64().is_some_and(|it| it >= 0.0 && it.fract() == 0.0)
        };
        let odd = totals.find(|(key, value)| key.starts_with("total_") && !counts(value));
        if let Some((key, value)) = odd {
            let is =
                if value.is_number() { "is negative or has a fraction" } else { "is no number" };
            let message = format!("{key} in {name:?} {is}");
            let advice =
                "programs that add it up fail: `zt index FOLDER --force` writes the index again";
            findings.push(folder.finding("total-size", [name], message, advice));
        }
    }
}

/// Files beside a set that have tensors of the same names.
fn examine_strays(folder: &Folder, findings: &mut Vec<Finding>) {
    let mut sets: Vec<(&str, Option<&str>, BTreeSet<&str>)> = Vec::new();
    for (name, index) in &folder.indices {
        let extension = index.shards().first().and_then(|shard| shard.rsplit_once('.'));
        let extension = extension.map_or("", |(_, extension)| extension);
        let names = index.tensors().map(|(tensor, _)| tensor).collect();
        sets.push((extension, variant(name), names));
    }
    for ((stem, extension), shards) in folder.numbered() {
        if !shards.iter().any(|shard| folder.is_listed(&shard.name)) {
            let names = shards.iter().flat_map(|shard| shard.names()).collect();
            sets.push((extension, variant(stem), names));
        }
    }
    let strays = folder.files.iter().filter(|file| {
        let is_state = file.stem.contains("optim") || file.stem.contains("ema");
        file.number.is_none() && !is_state && !folder.is_listed(&file.name)
    });
    for file in strays {
        let names = file.names();
        let mut sets = sets.iter().filter(|(extension, of_set, _)| {
            *extension == file.extension && *of_set == variant(&file.stem)
        });
        if sets.any(|(.., of_set)| overlap(&names, of_set)) {
            let message = format!(
                "{:?} has tensors of the same names as the shards beside it; their values were not compared",
                file.name
            );
            let advice =
                "some loaders take this file, some the shards: remove the older of the two";
            findings.push(folder.finding("stray-file", [&file.name], message, advice));
        }
    }
}

/// Whether at least half of the smaller set of names is in the other.
fn overlap(a: &BTreeSet<&str>, b: &BTreeSet<&str>) -> bool {
    let common = a.intersection(b).count();
    common > 0 && common >= a.len().min(b.len()).div_ceil(2)
}
