//! Comparing every digest of a file.

use std::path::Path;

use zt::Verify;

use crate::contest::{expect, timed};
use crate::contestants::limits::{self, Threads};
use crate::contestants::{Digest, Storage, ours, peer_ztensor1, peer_ztensor2};
use crate::operations::read;
use crate::{Contest, Result, Role, Workload};

pub(super) fn crc32c<'a>(workload: &'a Workload, folder: &'a Path) -> Result<Contest<'a>> {
    let mut contest = digests("verify-crc32c", Digest::Crc32c, workload, folder)?;
    // The only digest it has is as cheap as this one.
    let (all, second) = (&workload.tensors, folder.join("second.zt"));
    peer_ztensor2::write(&second, all, Storage::Raw)?;
    contest.add(Role::Peer, "ztensor 2.1.1, xxh3", move |_| {
        let verify = || peer_ztensor2::verify(&peer_ztensor2::open_map(&second)?, all);
        Ok(timed(verify)?.0)
    });
    contest.owes(0.95, "bare kernel over a map, all threads");
    contest.one_owes("zt, mapped, 1 thread", 0.9, "bare kernel over a map, 1 thread");
    contest.owes(4.0, "ztensor 1.2.3, reading with verification");
    contest.owes(1.0, "ztensor 2.1.1, xxh3");
    Ok(contest)
}

pub(super) fn sha256<'a>(workload: &'a Workload, folder: &'a Path) -> Result<Contest<'a>> {
    digests("verify-sha256", Digest::Sha256, workload, folder)
}

pub(super) fn zstd<'a>(workload: &'a Workload, folder: &'a Path) -> Result<Contest<'a>> {
    let title = format!("verify crc32c of a zstd-3 file, {}", workload.id);
    let mut contest = Contest::new("verify-zstd-3", title, Some(workload.byte_len()));
    let ours = folder.join("ours.zt");
    read::publish(&ours, workload, Storage::Zstd(3))?;
    let path = ours.clone();
    contest.add_both(Role::Ours, "zt, by position", move |_| {
        let verify = || ours::verify(&ours::open(&path, Verify::OnRead)?);
        Ok(timed(verify)?.0)
    })?;
    contest.add(Role::Limit, "cat", move |_| Ok(timed(|| limits::cat(&ours))?.0));
    Ok(contest)
}

fn digests<'a>(
    id: &'static str,
    digest: Digest,
    workload: &'a Workload,
    folder: &'a Path,
) -> Result<Contest<'a>> {
    let algorithm = if digest == Digest::Sha256 { "sha256" } else { "crc32c" };
    let title = format!("verify {algorithm} of a raw file, {}", workload.id);
    let mut contest = Contest::new(id, title, Some(workload.byte_len()));
    let all = &workload.tensors;
    let ours = folder.join("ours.zt");
    let options = ours::write_options(Storage::Raw, digest);
    ours::write(&ours, all, options)?.publish()?;

    let byte_len = workload.byte_len();
    for (name, mapped) in [("zt, mapped", true), ("zt, by position", false)] {
        let path = ours.clone();
        contest.add_both(Role::Ours, name, move |check| {
            let verify = || {
                let open = if mapped { ours::open_map } else { ours::open };
                ours::verify(&open(&path, Verify::OnRead)?)
            };
            let (took, found) = timed(verify)?;
            expect(!check || found == byte_len, || format!("{found} bytes"))?;
            Ok(took)
        })?;
    }
    let path = ours.clone();
    contest.add(Role::Peer, "ztensor 1.2.3, reading with verification", move |_| {
        let read = || peer_ztensor1::read_all(&peer_ztensor1::open(&path)?, all, true);
        Ok(timed(read)?.0)
    });
    for (name, threads) in [
        ("bare kernel over a map, 1 thread", Threads::One),
        ("bare kernel over a map, all threads", Threads::All),
    ] {
        // Of the same file: one written before or after it was up to 1.6 times as slow to map.
        let path = ours.clone();
        contest.add(Role::Limit, name, move |_| {
            Ok(timed(|| limits::hash_map(&path, digest, threads))?.0)
        });
    }
    contest.remark("Maps are fresh in every round, so the time includes page faults.");
    Ok(contest)
}
