//! Floating-point tensors as `zt.planes/1` and `zt.planes/2`, beside our own zstd and the peers'.

use std::path::Path;

use zt::{Compression, Verify, WriteOptions};

use crate::contest::timed;
use crate::contestants::{
    Digest, Storage, expect_bytes, expect_file, limits, ours, peer_ztensor1, peer_ztensor2,
};
use crate::operations::read;
use crate::operations::write::Field;
use crate::{Contest, Result, Role, Workload};

const CODED: &str = "zt, coded planes";
const ZSTD: &str = "zt, zstd-1";

pub(super) fn write<'a>(
    id: &'static str,
    workload: &'a Workload,
    folder: &'a Path,
) -> Result<Contest<'a>> {
    let title = format!("write as byte planes, {}", workload.id);
    let mut field = Field::new(id, title, workload, folder);
    let tensors = field.tensors;
    field.writes_ours(
        "zt, planes",
        move |path| ours::write_planes(path, tensors),
        move |path| expect_file(path, tensors),
    )?;
    field.writes_ours(
        CODED,
        move |path| ours::write_coded_planes(path, tensors),
        move |path| expect_file(path, tensors),
    )?;
    field.ours(ZSTD, Storage::Zstd(1), Digest::Crc32c)?;
    let auto = WriteOptions::new().compression(Compression::Auto);
    field.ours_as("zt, zstd-auto", auto)?;
    field.ztensor1("ztensor 1.2.3, zstd-1", Storage::Zstd(1), Digest::Crc32c);
    field.ztensor2("ztensor 2.1.1, zstd-3, xxh3", Storage::Zstd(3));
    let kernel = "planes + pwrite";
    field.kernel(kernel, move |path| limits::write_planes(path, tensors))?;
    let mut contest = field.contest;
    contest.owes(1.5, ZSTD);
    contest.owes(0.9, kernel);
    if workload.id.starts_with("W2") {
        contest.owes_size(0.67);
    }
    contest.remark("With crc32c, unless the name says otherwise.");
    Ok(contest)
}

pub(super) fn read<'a>(
    id: &'static str,
    workload: &'a Workload,
    folder: &'a Path,
) -> Result<Contest<'a>> {
    let title = format!("read all tensors from byte planes, {}", workload.id);
    let mut contest = Contest::new(id, title, Some(workload.byte_len()));
    let all = &workload.tensors;
    let [planes, coded, zstd, theirs, second] =
        ["planes.zt", "coded.zt", "zstd.zt", "theirs.zt", "second.zt"]
            .map(|name| folder.join(name));
    ours::write_planes(&planes, all)?.publish()?;
    ours::write_coded_planes(&coded, all)?.publish()?;
    read::publish(&zstd, workload, Storage::Zstd(1))?;
    peer_ztensor1::write(&theirs, all, Storage::Zstd(1), Digest::Crc32c)?;
    peer_ztensor2::write(&second, all, Storage::Zstd(3))?;
    for (name, path) in [("zt, planes", planes), (CODED, coded)] {
        contest.add_both(Role::Ours, name, move |check| {
            let (opening, file) = timed(|| ours::open(&path, Verify::OnRead))?;
            let (reading, values) = timed(|| ours::read_dense(&file, all))?;
            if check {
                let mut found = all.iter().zip(&values);
                found.try_for_each(|(tensor, found)| {
                    expect_bytes(tensor, &found.elements().bytes)
                })?;
            }
            Ok(opening + reading)
        })?;
    }
    read::add_ours(&mut contest, ZSTD, workload, &zstd, Verify::OnRead)?;
    read::add_ztensor1(&mut contest, "ztensor 1.2.3, zstd-1", workload, &theirs, true);
    read::add_ztensor2(&mut contest, "ztensor 2.1.1, zstd-3", workload, &second);
    let kernel = "planes in memory, all threads";
    let planes = limits::planes(all)?;
    contest.add(Role::Limit, kernel, move |check| {
        let (took, arena) = timed(|| limits::merge_planes(&planes, all))?;
        if check {
            limits::expect_arena(&arena, all)?;
        }
        Ok(took)
    });
    contest.owes(2.0, ZSTD);
    contest.owes(0.8, kernel);
    contest.takes_memory(workload.byte_len());
    contest.remark(read::WARM);
    contest.remark("Readers compare crc32c, but ztensor 2.1.1 does not compare its xxh3.");
    Ok(contest)
}
