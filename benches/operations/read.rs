//! Reading all tensors: into memory of their own, or touching every byte of a map.

use std::fs;
use std::path::Path;

use zt::Verify;

use crate::contest::{expect, timed};
use crate::contestants::limits::{self, Space, Threads};
use crate::contestants::{
    Digest, Storage, expect_all, ours, peer_safetensors, peer_ztensor1, peer_ztensor2, sum,
};
use crate::{Contest, Result, Role, Workload};

pub(super) const WARM: &str =
    "Files are in the page cache. The time includes opening, but not freeing.";

pub(super) fn raw<'a>(workload: &'a Workload, folder: &'a Path) -> Result<Contest<'a>> {
    let title = format!("read all tensors of a raw file into fresh memory, {}", workload.id);
    let mut contest = Contest::new("read-raw", title, Some(workload.byte_len()));
    let all = &workload.tensors;
    let [ours, second, safe, bare] =
        ["ours.zt", "second.zt", "peer.safetensors", "bare"].map(|name| folder.join(name));
    publish(&ours, workload, Storage::Raw)?;
    peer_ztensor2::write(&second, all, Storage::Raw)?;
    peer_safetensors::write(&safe, all)?;
    limits::write(&bare, all, Space::Grown, Digest::None)?;

    add_ours(&mut contest, "zt", workload, &ours, Verify::Never)?;
    add_ours(&mut contest, "zt, crc32c compared", workload, &ours, Verify::OnRead)?;
    for (name, verify) in [("ztensor 1.2.3", false), ("ztensor 1.2.3, crc32c compared", true)] {
        add_ztensor1(&mut contest, name, workload, &ours, verify);
    }
    add_ztensor2(&mut contest, peer_ztensor2::NAME, workload, &second);
    add_safetensors(&mut contest, workload, &safe);
    contest.add(Role::Limit, "pread, small pages", move |check| {
        let (took, values) = timed(|| limits::read_small_pages(&bare, all))?;
        if check {
            expect_all(all, &values)?;
        }
        Ok(took)
    });
    for (name, threads) in
        [("pread, huge pages", Threads::One), ("pread, huge pages, all threads", Threads::All)]
    {
        // Of the same file: one written before or after it was up to 1.6 times as slow to map.
        let ours = ours.clone();
        contest.add(Role::Limit, name, move |check| {
            let (took, arena) = timed(|| limits::read(&ours, threads))?;
            expect(!check || *arena == *fs::read(&ours)?, || "other bytes".into())?;
            Ok(took)
        });
    }
    contest.add(Role::Limit, "memcpy, huge pages", move |_| Ok(timed(|| limits::copy(all))?.0));
    contest.owes(4.0, peer_safetensors::NAME);
    contest.owes(4.0, peer_ztensor1::NAME);
    contest.one_owes("zt, 1 thread", 1.2, peer_safetensors::NAME);
    contest.one_owes("zt, 1 thread", 1.2, peer_ztensor1::NAME);
    let owed = if workload.id == "W2a" { 0.75 } else { 0.85 };
    contest.owes(owed, "pread, huge pages, all threads");
    contest.takes_memory(workload.byte_len());
    contest.remark(WARM);
    contest.remark("Readers compare digests only if the name says so.");
    Ok(contest)
}

/// Values are dropped as they come, so that a plan takes no more than its budget.
pub(super) fn plan<'a>(workload: &'a Workload, folder: &'a Path) -> Result<Contest<'a>> {
    let title = format!("read all tensors by a plan of 256 MiB, {}", workload.id);
    let mut contest = Contest::new("plan-raw", title, Some(workload.byte_len()));
    let all = &workload.tensors;
    let ours = folder.join("ours.zt");
    publish(&ours, workload, Storage::Raw)?;
    for (name, verify, page_cache) in [
        ("zt", Verify::Never, true),
        ("zt, past the page cache", Verify::Never, false),
        ("zt, crc32c compared", Verify::OnRead, true),
    ] {
        let ours = ours.clone();
        contest.add(Role::Ours, name, move |check| {
            let read = || {
                let file = ours::open(&ours, verify)?;
                let wanted = all.iter().map(|tensor| file.tensor(&tensor.name));
                let wanted = wanted.map(|tensor| Ok((tensor?, Vec::new())));
                let plan = file.plan(wanted.collect::<Result<Vec<_>>>()?);
                plan.page_cache(page_cache).for_each(|at, dense| {
                    let (dense, tensor) = (dense?, all.get(at).ok_or("no tensor")?);
                    expect(!check || *dense.elements().bytes == *tensor.bytes, || {
                        tensor.name.clone()
                    })
                })
            };
            Ok(timed(read)?.0)
        });
    }
    let cat = |read: fn(&Path) -> Result<()>| {
        let ours = ours.clone();
        move |_| Ok(timed(|| read(&ours))?.0)
    };
    contest.add(Role::Limit, "direct reads, all threads", cat(limits::cat_direct));
    contest.add(Role::Limit, "read in pieces of 1 MiB", cat(limits::cat));
    contest
        .remark("The time includes opening. Each value is dropped before the next one is taken.");
    Ok(contest)
}

pub(super) fn zstd<'a>(workload: &'a Workload, folder: &'a Path) -> Result<Contest<'a>> {
    let title = format!("read all tensors of a zstd-3 file into fresh memory, {}", workload.id);
    let mut contest = Contest::new("read-zstd-3", title, Some(workload.byte_len()));
    let all = &workload.tensors;
    let [ours, theirs, second] =
        ["ours.zt", "theirs.zt", "second.zt"].map(|name| folder.join(name));
    publish(&ours, workload, Storage::Zstd(3))?;
    peer_ztensor1::write(&theirs, all, Storage::Zstd(3), Digest::None)?;
    peer_ztensor2::write(&second, all, Storage::Zstd(3))?;
    let frames = limits::frames(all, 3)?;

    add_ours(&mut contest, "zt", workload, &ours, Verify::Never)?;
    add_ours(&mut contest, "zt, crc32c compared", workload, &ours, Verify::OnRead)?;
    add_ztensor1(&mut contest, peer_ztensor1::NAME, workload, &theirs, false);
    add_ztensor1(&mut contest, "ztensor 1.2.3, our file", workload, &ours, false);
    add_ztensor2(&mut contest, peer_ztensor2::NAME, workload, &second);
    contest.add(Role::Limit, "1 MiB frames in memory, all threads", move |check| {
        let (took, arena) = timed(|| limits::decompress(&frames, all))?;
        if check {
            limits::expect_arena(&arena, all)?;
        }
        Ok(took)
    });
    contest.takes_memory(workload.byte_len());
    contest.owes(3.0, peer_ztensor1::NAME);
    contest.owes(0.95, "1 MiB frames in memory, all threads");
    contest.remark(WARM);
    Ok(contest)
}

pub(super) fn tiny<'a>(workload: &'a Workload, folder: &'a Path) -> Result<Contest<'a>> {
    let title = format!("read all of {} tiny tensors", workload.tensors.len());
    let mut contest = Contest::new("read-tiny", title, None);
    let all = &workload.tensors;
    let [ours, second, safe] =
        ["ours.zt", "second.zt", "peer.safetensors"].map(|name| folder.join(name));
    publish(&ours, workload, Storage::Raw)?;
    peer_ztensor2::write(&second, all, Storage::Raw)?;
    peer_safetensors::write(&safe, all)?;
    add_ours(&mut contest, "zt", workload, &ours, Verify::Never)?;
    add_ours(&mut contest, "zt, crc32c compared", workload, &ours, Verify::OnRead)?;
    add_ztensor1(&mut contest, peer_ztensor1::NAME, workload, &ours, false);
    add_ztensor2(&mut contest, peer_ztensor2::NAME, workload, &second);
    add_safetensors(&mut contest, workload, &safe);
    // Lists of tensors and of results take more than the values.
    contest.takes_memory(8 * workload.byte_len());
    contest.owes(2.5, peer_safetensors::NAME);
    contest.remark(WARM);
    Ok(contest)
}

pub(super) fn mapped<'a>(workload: &'a Workload, folder: &'a Path) -> Result<Contest<'a>> {
    let title = format!("sum every byte of a mapped raw file, {}", workload.id);
    let mut contest = Contest::new("read-mapped", title, Some(workload.byte_len()));
    let all = &workload.tensors;
    let expected = all.iter().map(|tensor| sum(&tensor.bytes));
    let expected = expected.fold(0, u64::wrapping_add);
    let [ours, second, safe, bare] =
        ["ours.zt", "second.zt", "peer.safetensors", "bare"].map(|name| folder.join(name));
    publish(&ours, workload, Storage::Raw)?;
    peer_ztensor2::write(&second, all, Storage::Raw)?;
    peer_safetensors::write(&safe, all)?;
    limits::write(&bare, all, Space::Grown, Digest::None)?;

    let mut add = |role, name, read: Box<dyn Fn() -> Result<u64> + 'a>| {
        contest.add(role, name, move |check| {
            let (took, found) = timed(&read)?;
            expect(!check || found == expected, || "another sum".into())?;
            Ok(took)
        });
    };
    for (name, verify) in [("zt", Verify::Never), ("zt, crc32c compared", Verify::OnRead)] {
        let ours = ours.clone();
        let read = move || {
            let file = ours::open_map(&ours, verify)?;
            let values = ours::read_all(&file)?;
            let sums = values.iter().map(|bytes| sum(bytes));
            Ok(sums.fold(0, u64::wrapping_add))
        };
        add(Role::Ours, name, Box::new(read));
    }
    let read = {
        let ours = ours.clone();
        move || peer_ztensor1::sum_mapped(&ours, all)
    };
    add(Role::Peer, peer_ztensor1::NAME, Box::new(read));
    let read = move || {
        let file = peer_ztensor2::open_map(&second)?;
        all.iter().try_fold(0u64, |total, tensor| {
            let bytes = file.tensor(&tensor.name)?.data()?.map()?;
            Ok(total.wrapping_add(sum(bytes)))
        })
    };
    add(Role::Peer, peer_ztensor2::NAME, Box::new(read));
    let read = move || {
        let file = peer_safetensors::Mapped::open(&safe)?;
        let file = file.parse()?;
        all.iter().try_fold(0u64, |total, tensor| {
            Ok(total.wrapping_add(sum(file.tensor(&tensor.name)?.data())))
        })
    };
    add(Role::Peer, peer_safetensors::NAME, Box::new(read));
    add(
        Role::Limit,
        "bare map of a file of nothing else",
        Box::new(move || limits::sum_map(&bare, Threads::One)),
    );
    // Of the manifest too, and the zeros between tensors.
    let whole = sum(&fs::read(&ours)?);
    contest.add(Role::Limit, "bare map", move |check| {
        let (took, found) = timed(|| limits::sum_map(&ours, Threads::One))?;
        expect(!check || found == whole, || "another sum".into())?;
        Ok(took)
    });
    contest.owes(0.95, "bare map");
    contest.remark(
        "Maps are fresh in every round, so the time includes page faults. One thread. zt and ztensor 1.2.3 map the same file, \
         written in pieces of 256 KiB. The other files were written in larger pieces, and tmpfs keeps those in larger pages.",
    );
    Ok(contest)
}

pub(super) fn sparse<'a>(workload: &'a Workload, folder: &'a Path) -> Result<Contest<'a>> {
    let matrix = workload.matrix.as_ref().ok_or("no matrix")?;
    let title = format!("read a raw sparse matrix, checked, {}", workload.id);
    let mut contest = Contest::new("read-csr", title, Some(workload.byte_len()));
    let path = folder.join("ours.zt");
    let options = ours::write_options(Storage::Raw, Digest::Crc32c);
    ours::write_sparse(&path, matrix, options)?.publish()?;

    let ours = path.clone();
    contest.add(Role::Ours, "zt, by position", move |_| {
        let (opening, file) = timed(|| ours::open(&ours, Verify::OnRead))?;
        let (reading, found) = timed(|| file.tensor("matrix")?.view::<zt::Csr<'_>>())?;
        expect(found.indices().len() == matrix.indices.len(), || "another matrix".into())?;
        Ok(opening + reading)
    });
    let ours = path.clone();
    contest.add(Role::Ours, "zt, mapped", move |_| {
        let (opening, file) = timed(|| ours::open_map(&ours, Verify::OnRead))?;
        let (reading, found) = timed(|| file.tensor("matrix")?.view::<zt::Csr<'_>>())?;
        expect(found.indices().len() == matrix.indices.len(), || "another matrix".into())?;
        Ok(opening + reading)
    });
    contest.add(Role::Peer, peer_ztensor1::NAME, move |_| {
        let (took, found) = timed(|| peer_ztensor1::read_sparse(&path))?;
        expect(found.indices.len() == matrix.indices.len(), || "another matrix".into())?;
        Ok(took)
    });
    contest.remark(WARM);
    contest.remark("zt compares crc32c and checks every index; ztensor 1.2.3 does neither.");
    Ok(contest)
}

/// Writes our file for contests of reading. The default digests, which readers compare or not.
pub(super) fn publish(path: &Path, workload: &Workload, storage: Storage) -> Result<()> {
    let options = ours::write_options(storage, Digest::Crc32c);
    Ok(ours::write(path, &workload.tensors, options)?.publish()?)
}

pub(super) fn add_ours<'a>(
    contest: &mut Contest<'a>,
    name: &'static str,
    workload: &'a Workload,
    path: &Path,
    verify: Verify,
) -> Result<()> {
    let path = path.to_owned();
    contest.add_both(Role::Ours, name, move |check| {
        let (opening, file) = timed(|| ours::open(&path, verify))?;
        let (reading, values) = timed(|| ours::read_all(&file))?;
        if check {
            expect_all(&workload.tensors, &values)?;
        }
        Ok(opening + reading)
    })
}

pub(super) fn add_ztensor1<'a>(
    contest: &mut Contest<'a>,
    name: &'static str,
    workload: &'a Workload,
    path: &Path,
    verify: bool,
) {
    let path = path.to_owned();
    contest.add(Role::Peer, name, move |check| {
        let read = || {
            let file = peer_ztensor1::open(&path)?;
            peer_ztensor1::read_all(&file, &workload.tensors, verify)
        };
        let (took, values) = timed(read)?;
        if check {
            expect_all(&workload.tensors, &values)?;
        }
        Ok(took)
    });
}

pub(super) fn add_ztensor2<'a>(
    contest: &mut Contest<'a>,
    name: &'static str,
    workload: &'a Workload,
    path: &Path,
) {
    let (path, all) = (path.to_owned(), &workload.tensors);
    contest.add(Role::Peer, name, move |check| {
        let read = || peer_ztensor2::read_all(&peer_ztensor2::open_map(&path)?, all);
        let (took, values) = timed(read)?;
        if check {
            expect_all(all, &values)?;
        }
        Ok(took)
    });
}

fn add_safetensors<'a>(contest: &mut Contest<'a>, workload: &'a Workload, path: &Path) {
    let (path, all) = (path.to_owned(), &workload.tensors);
    contest.add(Role::Peer, peer_safetensors::NAME, move |check| {
        let read = || {
            let file = peer_safetensors::Mapped::open(&path)?;
            peer_safetensors::read_all(&file.parse()?, all)
        };
        let (took, values) = timed(read)?;
        if check {
            expect_all(all, &values)?;
        }
        Ok(took)
    });
}
