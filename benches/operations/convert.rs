//! From a safetensors file to a `.zt` one, file to file.

use std::fs;
use std::path::Path;

use crate::contest::timed;
use crate::contestants::{Digest, Storage, expect_file, ours, peer_safetensors, peer_ztensor1};
use crate::{Contest, Result, Role, Workload};

pub(super) fn raw<'a>(workload: &'a Workload, folder: &'a Path) -> Result<Contest<'a>> {
    let mut contest = contest("convert-raw", Storage::Raw, workload, folder)?;
    let [from, to] = [folder.join("peer.safetensors"), folder.join("copy")];
    let cp = "cp (copy_file_range)";
    contest.add(Role::Limit, cp, move |_| {
        let (took, _) = timed(|| fs::copy(&from, &to))?;
        fs::remove_file(&to)?;
        Ok(took)
    });
    contest.owes(1.5, "ztensor 1.2.3, crc32c");
    let bare = "zt, no digests";
    contest.one_owes(bare, 1.0, "ztensor 1.2.3, no digests");
    contest.one_owes(bare, 0.95, cp);
    Ok(contest)
}

pub(super) fn zstd<'a>(workload: &'a Workload, folder: &'a Path) -> Result<Contest<'a>> {
    contest("convert-zstd-3", Storage::Zstd(3), workload, folder)
}

fn contest<'a>(
    id: &'static str,
    storage: Storage,
    workload: &'a Workload,
    folder: &'a Path,
) -> Result<Contest<'a>> {
    let stored = match storage {
        Storage::Raw => "raw".to_owned(),
        Storage::Zstd(level) => format!("zstd level {level}"),
    };
    let title = format!("convert safetensors to .zt, {stored}, {}", workload.id);
    let mut contest = Contest::new(id, title, Some(workload.byte_len()));
    let all = &workload.tensors;
    let from = folder.join("peer.safetensors");
    peer_safetensors::write(&from, all)?;

    for digest in [Digest::Crc32c, Digest::None] {
        let name = if digest == Digest::None { "no digests" } else { "crc32c" };
        let [source, to] = [from.clone(), folder.join("ours.zt")];
        contest.add_both(Role::Ours, &format!("zt, {name}"), move |check| {
            let options = ours::write_options(storage, digest);
            let (took, file) = timed(|| ours::convert(&source, &to, options))?;
            if check {
                file.publish()?;
                expect_file(&to, all)?;
                fs::remove_file(&to)?;
            }
            Ok(took)
        })?;
        let [from, to] = [from.clone(), folder.join("theirs.zt")];
        let name = format!("ztensor 1.2.3, {name}");
        contest.add(Role::Peer, name, move |check| {
            let convert = || peer_ztensor1::convert(&from, &to, storage, digest);
            let (took, ()) = timed(convert)?;
            if check {
                expect_file(&to, all)?;
            }
            fs::remove_file(&to)?;
            Ok(took)
        });
    }
    contest.takes_memory(workload.byte_len());
    contest.remark("The input is in the page cache; the output is not synced.");
    Ok(contest)
}
