//! Whole models: their statistics, how two of them differ, and deltas.

use std::fs;
use std::path::{Path, PathBuf};

use zt::diff::{DiffOptions, ObjectDistance, summary};
use zt::foreign::AtomicFile;
use zt::stats::{StatsOptions, stats};
use zt::{File, HashOptions, OpenOptions, Verify};
use zt_convert::{ConvertOptions, Input, Kinds};
use zt_model::{Check, Patch, delta_to_path};

use crate::contest::{expect, timed};
use crate::contestants::limits::{self, Threads};
use crate::contestants::{Digest, Storage, ours};
use crate::operations::read::publish;
use crate::{Contest, Error, Result, Role, Tensor, Workload};

/// Of so many values, one is another in the second model.
const EVERY: usize = 100;

pub(super) fn statistics<'a>(workload: &'a Workload, folder: &'a Path) -> Result<Contest<'a>> {
    let title = format!("statistics of every tensor of a raw file, {}", workload.id);
    let mut contest = Contest::new("stats", title, Some(workload.byte_len()));
    let path = folder.join("ours.zt");
    publish(&path, workload, Storage::Raw)?;
    let count = workload.tensors.len();
    let from = path.clone();
    contest.add(Role::Ours, "zt", move |check| {
        let (took, found) = timed(|| Ok::<_, Error>(stats(&open(&from)?, &StatsOptions::new())?))?;
        let sound = found.iter().filter(|object| object.is_ok()).count();
        expect(!check || sound == count, || format!("{sound} objects"))?;
        Ok(took)
    });
    contest.add(Role::Ours, VERIFY, move |_| Ok(timed(|| ours::verify(&open(&path)?))?.0));
    contest.owes(0.8, VERIFY);
    contest.remark("Both read the file once and compare each crc32c.");
    Ok(contest)
}

pub(super) fn difference<'a>(workload: &'a Workload, folder: &'a Path) -> Result<Contest<'a>> {
    let title = format!("how far two models are apart, 1 % of the values changed, {}", workload.id);
    let mut contest = Contest::new("diff-summary", title, Some(2 * workload.byte_len()));
    let both = two_models(workload, folder)?;
    let [a, b] = both.clone();
    contest.add(Role::Ours, "zt", move |check| {
        let compare = || Ok::<_, Error>(summary(&open(&a)?, &open(&b)?, &DiffOptions::new())?);
        let (took, found) = timed(compare)?;
        let is_other =
            |object: &ObjectDistance| object.distance.as_ref().is_ok_and(|it| it.different > 0);
        expect(!check || found.objects.iter().all(is_other), || "no difference".into())?;
        Ok(took)
    });
    contest.add(Role::Ours, VERIFY, move |_| {
        let verify = || both.iter().try_for_each(|path| ours::verify(&open(path)?).map(drop));
        Ok(timed(verify)?.0)
    });
    contest.owes(0.8, VERIFY);
    Ok(contest)
}

pub(super) fn delta<'a>(workload: &'a Workload, folder: &'a Path) -> Result<Contest<'a>> {
    let title = format!("a delta with 1 % of the values changed, {}", workload.id);
    let mut contest = Contest::new("delta", title, Some(workload.byte_len()));
    let both = two_models(workload, folder)?;
    let ([base, new], out) = (both.clone(), folder.join("delta.zt"));
    contest.add(Role::Ours, "zt", move |_| {
        let make = || delta_to_path(&input(&base)?, &input(&new)?, &out, true, None);
        Ok(timed(make)?.0)
    });
    let hashes = "sha256 of both files over maps, all threads";
    contest.add(Role::Limit, hashes, move |_| {
        let hash = |path: &PathBuf| limits::hash_map(path, Digest::Sha256, Threads::All);
        Ok(timed(|| both.iter().try_for_each(hash))?.0)
    });
    contest.owes(0.9, hashes);
    contest.remark(
        "A delta names both models by the SHA-256 of their values. The time includes syncing it.",
    );
    Ok(contest)
}

pub(super) fn patch<'a>(workload: &'a Workload, folder: &'a Path) -> Result<Contest<'a>> {
    let title = format!("apply a delta with 1 % of the values changed, {}", workload.id);
    let mut contest = Contest::new("patch", title, Some(workload.byte_len()));
    let [base, new] = two_models(workload, folder)?;
    let [from, copy] = [new.clone(), folder.join("copy")];
    let change = folder.join("delta.zt");
    delta_to_path(&input(&base)?, &input(&new)?, &change, false, None)?;
    let to = folder.join("result.zt");
    contest.add(Role::Ours, "zt", move |check| {
        let apply = || {
            let (base, deltas) = (input(&base)?, [input(&change)?]);
            let result = Patch::new(&base, &deltas).check(Check::Copy).open()?;
            let mut file = AtomicFile::create(&to)?;
            let options = ConvertOptions::new(zt_convert::ZT);
            Kinds::builtin().convert_to_file(&[result], &mut file, &options)?;
            Ok::<_, Error>(file.publish()?)
        };
        let (took, ()) = timed(apply)?;
        if check {
            let found = open(&to)?.hash(&HashOptions::new())?.content;
            expect(found == open(&new)?.hash(&HashOptions::new())?.content, || {
                "another model".into()
            })?;
        }
        fs::remove_file(&to)?;
        Ok(took)
    });
    contest.add(Role::Limit, "cp (copy_file_range)", move |_| {
        let (took, _) = timed(|| fs::copy(&from, &copy))?;
        fs::remove_file(&copy)?;
        Ok(took)
    });
    contest.owes(0.8, "cp (copy_file_range)");
    contest.remark("The result is compared with the SHA-256 that the delta records, and synced; the copy is neither.");
    Ok(contest)
}

const VERIFY: &str = "zt, verify";

fn open(path: &Path) -> Result<File> {
    ours::open(path, Verify::OnRead)
}

fn input(path: &Path) -> zt::Result<Input> {
    Kinds::builtin().open(path, OpenOptions::new())
}

/// Files of the workload, and of the workload with other values in some places.
fn two_models(workload: &Workload, folder: &Path) -> Result<[PathBuf; 2]> {
    let both = ["base.zt", "new.zt"].map(|name| folder.join(name));
    publish(&both[0], workload, Storage::Raw)?;
    let tensors: Vec<Tensor> = workload.tensors.iter().map(changed).collect::<Result<_>>()?;
    ours::write(&both[1], &tensors, ours::write_options(Storage::Raw, Digest::Crc32c))?
        .publish()?;
    Ok(both)
}

/// The tensor with a bit of the mantissa turned in some of its values.
fn changed(tensor: &Tensor) -> Result<Tensor> {
    let mut bytes = zt::Buffer::try_zeroed(tensor.bytes.len() as u64)?;
    bytes.copy_from_slice(&tensor.bytes);
    for value in bytes.chunks_mut(tensor.dtype.byte_len()).step_by(EVERY) {
        value[0] ^= 1;
    }
    Ok(Tensor {
        name: tensor.name.clone(),
        shape: tensor.shape.clone(),
        dtype: tensor.dtype,
        bytes,
    })
}
