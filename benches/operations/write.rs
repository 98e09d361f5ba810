//! Writing all tensors to a new file, up to where it would be made durable.

use std::fs;
use std::path::Path;

use crate::contest::timed;
use crate::contestants::limits::{self, Space};
use crate::contestants::{
    Digest, Storage, expect_file, ours, peer_safetensors, peer_ztensor1, peer_ztensor2,
};
use crate::{Contest, Result, Role, Tensor, Workload};

const NO_SYNC: &str = "Files are complete and in the page cache; nobody syncs.";

pub(super) fn raw<'a>(workload: &'a Workload, folder: &'a Path) -> Result<Contest<'a>> {
    let title = format!("write raw with crc32c, {}", workload.id);
    let mut contest = Contest::new("write-raw", title, Some(workload.byte_len()));
    let all = &workload.tensors;
    add_ours(
        &mut contest,
        "zt, crc32c",
        folder,
        all,
        Storage::Raw,
        Digest::Crc32c,
    );
    add_ours(
        &mut contest,
        "zt, no digests",
        folder,
        all,
        Storage::Raw,
        Digest::None,
    );
    add_ztensor1(
        &mut contest,
        "ztensor 1.2.3, crc32c",
        folder,
        all,
        Storage::Raw,
        Digest::Crc32c,
    );
    add_ztensor1(
        &mut contest,
        "ztensor 1.2.3, no digests",
        folder,
        all,
        Storage::Raw,
        Digest::None,
    );
    add_ztensor2(
        &mut contest,
        "ztensor 2.1.1, xxh3",
        folder,
        all,
        Storage::Raw,
    );
    add_safetensors(&mut contest, "safetensors 0.8, no digests", folder, all);
    for (name, space, digest) in [
        ("pwrite", Space::Grown, Digest::None),
        ("pwrite, preallocated", Space::Preallocated, Digest::None),
        ("pwrite + crc32c", Space::Grown, Digest::Crc32c),
        (
            "pwrite + crc32c, preallocated",
            Space::Preallocated,
            Digest::Crc32c,
        ),
    ] {
        add_limit(&mut contest, name, folder, all, space, digest);
    }
    contest.owes(1.3, "ztensor 1.2.3, crc32c");
    contest.owes(0.85, "pwrite + crc32c, preallocated");
    contest.remark(NO_SYNC);
    Ok(contest)
}

pub(super) fn sha256<'a>(workload: &'a Workload, folder: &'a Path) -> Result<Contest<'a>> {
    let title = format!("write raw with sha256, {}", workload.id);
    let mut contest = Contest::new("write-sha256", title, Some(workload.byte_len()));
    let all = &workload.tensors;
    add_ours(
        &mut contest,
        "zt",
        folder,
        all,
        Storage::Raw,
        Digest::Sha256,
    );
    add_ztensor1(
        &mut contest,
        "ztensor 1.2.3",
        folder,
        all,
        Storage::Raw,
        Digest::Sha256,
    );
    let name = "pwrite + sha256, 1 thread";
    add_limit(
        &mut contest,
        name,
        folder,
        all,
        Space::Grown,
        Digest::Sha256,
    );
    contest.owes(1.7, "ztensor 1.2.3");
    contest.remark(NO_SYNC);
    Ok(contest)
}

pub(super) fn zstd<'a>(
    id: &'static str,
    level: i32,
    workload: &'a Workload,
    folder: &'a Path,
) -> Result<Contest<'a>> {
    let title = format!("write zstd level {level}, {}", workload.id);
    let mut contest = Contest::new(id, title, Some(workload.byte_len()));
    let all = &workload.tensors;
    add_ours(
        &mut contest,
        "zt",
        folder,
        all,
        Storage::Zstd(level),
        Digest::Crc32c,
    );
    add_ztensor1(
        &mut contest,
        "ztensor 1.2.3",
        folder,
        all,
        Storage::Zstd(level),
        Digest::Crc32c,
    );
    contest.owes(if level == 1 { 1.4 } else { 1.8 }, "ztensor 1.2.3");
    // The only level it has.
    if level == 3 {
        add_ztensor2(
            &mut contest,
            "ztensor 2.1.1",
            folder,
            all,
            Storage::Zstd(level),
        );
        contest.owes(4.0, "ztensor 2.1.1");
    }
    let kernel = "1 MiB frames, all threads, not written";
    contest.add(Role::Limit, kernel, move |_| {
        Ok(timed(|| limits::compress(all, level))?.0)
    });
    contest.owes(0.9, kernel);
    contest.remark(NO_SYNC);
    contest.remark("With crc32c; ztensor 2.1.1 with xxh3.");
    Ok(contest)
}

pub(super) fn tiny<'a>(workload: &'a Workload, folder: &'a Path) -> Result<Contest<'a>> {
    let title = format!("write {} tiny tensors", workload.tensors.len());
    let mut contest = Contest::new("write-tiny", title, None);
    let all = &workload.tensors;
    add_ours(
        &mut contest,
        "zt, no digests",
        folder,
        all,
        Storage::Raw,
        Digest::None,
    );
    add_ours(
        &mut contest,
        "zt, crc32c",
        folder,
        all,
        Storage::Raw,
        Digest::Crc32c,
    );
    add_ztensor1(
        &mut contest,
        "ztensor 1.2.3, no digests",
        folder,
        all,
        Storage::Raw,
        Digest::None,
    );
    add_ztensor1(
        &mut contest,
        "ztensor 1.2.3, crc32c",
        folder,
        all,
        Storage::Raw,
        Digest::Crc32c,
    );
    add_ztensor2(
        &mut contest,
        "ztensor 2.1.1, xxh3",
        folder,
        all,
        Storage::Raw,
    );
    add_safetensors(&mut contest, "safetensors 0.8, no digests", folder, all);
    contest.owes(1.0, "safetensors 0.8, no digests");
    contest.remark(NO_SYNC);
    Ok(contest)
}

fn add_ours<'a>(
    contest: &mut Contest<'a>,
    name: &'static str,
    folder: &'a Path,
    tensors: &'a [Tensor],
    storage: Storage,
    digest: Digest,
) {
    let path = folder.join("ours.zt");
    contest.add(Role::Ours, name, move |check| {
        let options = ours::write_options(storage, digest);
        let (took, file) = timed(|| ours::write(&path, tensors, options))?;
        // Dropped unpublished, it leaves nothing.
        if check {
            file.publish()?;
            expect_file(&path, tensors)?;
            fs::remove_file(&path)?;
        }
        Ok(took)
    });
}

fn add_ztensor1<'a>(
    contest: &mut Contest<'a>,
    name: &'static str,
    folder: &'a Path,
    tensors: &'a [Tensor],
    storage: Storage,
    digest: Digest,
) {
    let write = move |path: &Path| peer_ztensor1::write(path, tensors, storage, digest);
    let expect = move |path: &Path| expect_file(path, tensors);
    add(contest, Role::Peer, name, folder, write, expect);
}

fn add_ztensor2<'a>(
    contest: &mut Contest<'a>,
    name: &'static str,
    folder: &'a Path,
    tensors: &'a [Tensor],
    storage: Storage,
) {
    let write = move |path: &Path| peer_ztensor2::write(path, tensors, storage);
    let expect = move |path: &Path| peer_ztensor2::expect_file(path, tensors);
    add(contest, Role::Peer, name, folder, write, expect);
}

fn add_safetensors<'a>(
    contest: &mut Contest<'a>,
    name: &'static str,
    folder: &'a Path,
    tensors: &'a [Tensor],
) {
    let write = move |path: &Path| peer_safetensors::write(path, tensors);
    let expect = move |path: &Path| expect_file(path, tensors);
    add(contest, Role::Peer, name, folder, write, expect);
}

fn add_limit<'a>(
    contest: &mut Contest<'a>,
    name: &'static str,
    folder: &'a Path,
    tensors: &'a [Tensor],
    space: Space,
    digest: Digest,
) {
    let write = move |path: &Path| limits::write(path, tensors, space, digest);
    let expect = move |path: &Path| limits::expect_file(path, tensors);
    add(contest, Role::Limit, name, folder, write, expect);
}

/// One who writes a new file, which is removed before the next turn, so that its pages are free
/// again and none is written to the disk meanwhile.
fn add<'a>(
    contest: &mut Contest<'a>,
    role: Role,
    name: &'static str,
    folder: &'a Path,
    write: impl Fn(&Path) -> Result<()> + 'a,
    expect: impl Fn(&Path) -> Result<()> + 'a,
) {
    let path = folder.join("written");
    contest.add(role, name, move |check| {
        let (took, ()) = timed(|| write(&path))?;
        if check {
            expect(&path)?;
        }
        fs::remove_file(&path)?;
        Ok(took)
    });
}
