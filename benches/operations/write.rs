//! Writing all tensors to a new file, up to where it would be made durable.

use std::fs;
use std::path::Path;

use zt::WriteOptions;
use zt::foreign::AtomicFile;

use crate::contest::{Turn, timed};
use crate::contestants::limits::{self, Space};
use crate::contestants::{
    Digest, Storage, expect_file, expect_sparse, ours, peer_safetensors, peer_ztensor1,
    peer_ztensor2,
};
use crate::{Contest, Result, Role, Tensor, Workload};

const NO_SYNC: &str = "Files are complete and in the page cache, without a sync.";

/// The same without digests of chunks, and the speed that these may leave.
const NO_TABLES: &str = "zt, no chunk digests";
const TABLES: f64 = 0.97;

pub(super) fn raw<'a>(workload: &'a Workload, folder: &'a Path) -> Result<Contest<'a>> {
    let title = format!("write raw with crc32c, {}", workload.id);
    let mut field = Field::new("write-raw", title, workload, folder);
    field.ours("zt, crc32c", Storage::Raw, Digest::Crc32c)?;
    field.ours_without_tables(Digest::Crc32c)?;
    field.each("zt, crc32c, one by one", Storage::Raw, Digest::Crc32c)?;
    field.ours("zt, no digests", Storage::Raw, Digest::None)?;
    field.ztensor1("ztensor 1.2.3, crc32c", Storage::Raw, Digest::Crc32c);
    field.ztensor1("ztensor 1.2.3, no digests", Storage::Raw, Digest::None);
    field.ztensor2("ztensor 2.1.1, xxh3", Storage::Raw);
    field.safetensors("safetensors 0.8, no digests");
    field.limit("pwrite", Space::Grown, Digest::None);
    field.limit("pwrite, preallocated", Space::Preallocated, Digest::None);
    field.limit("pwrite + crc32c", Space::Grown, Digest::Crc32c);
    let preallocated = "pwrite + crc32c, preallocated";
    field.limit(preallocated, Space::Preallocated, Digest::Crc32c);
    let all = "pwrite + crc32c, preallocated, all threads";
    field.limit_on_all(all, Digest::Crc32c);
    let mut contest = field.contest;
    contest.owes(1.3, "ztensor 1.2.3, crc32c");
    contest.owes(0.85, preallocated);
    contest.owes(TABLES, NO_TABLES);
    Ok(contest)
}

pub(super) fn sha256<'a>(workload: &'a Workload, folder: &'a Path) -> Result<Contest<'a>> {
    let title = format!("write raw with sha256, {}", workload.id);
    let mut field = Field::new("write-sha256", title, workload, folder);
    field.ours("zt", Storage::Raw, Digest::Sha256)?;
    field.ours_without_tables(Digest::Sha256)?;
    field.each("zt, one by one", Storage::Raw, Digest::Sha256)?;
    field.ztensor1(peer_ztensor1::NAME, Storage::Raw, Digest::Sha256);
    field.limit("pwrite + sha256, 1 thread", Space::Grown, Digest::Sha256);
    let all = "pwrite + sha256, all threads";
    field.limit_on_all(all, Digest::Sha256);
    let mut contest = field.contest;
    contest.owes(1.7, peer_ztensor1::NAME);
    contest.owes(0.9, all);
    contest.owes(TABLES, NO_TABLES);
    Ok(contest)
}

pub(super) fn zstd<'a>(
    id: &'static str,
    level: i32,
    workload: &'a Workload,
    folder: &'a Path,
) -> Result<Contest<'a>> {
    let title = format!("write zstd level {level}, {}", workload.id);
    let mut field = Field::new(id, title, workload, folder);
    let tensors = field.tensors;
    field.ours("zt", Storage::Zstd(level), Digest::Crc32c)?;
    field.each("zt, one by one", Storage::Zstd(level), Digest::Crc32c)?;
    field.ztensor1(peer_ztensor1::NAME, Storage::Zstd(level), Digest::Crc32c);
    // The only level it has.
    if level == 3 {
        field.ztensor2("ztensor 2.1.1, xxh3", Storage::Zstd(level));
    }
    let kernel = "1 MiB frames + pwrite";
    field.kernel(kernel, move |path| limits::write_frames(path, tensors, level))?;
    let mut contest = field.contest;
    // What is owed is owed on weights.
    if workload.id.starts_with("W2") {
        contest.owes(if level == 1 { 1.4 } else { 1.8 }, peer_ztensor1::NAME);
        contest.owes(0.92, kernel);
        contest.one_owes("zt, 1 thread", 1.0, peer_ztensor1::NAME);
        if level == 3 {
            contest.owes(4.0, "ztensor 2.1.1, xxh3");
        }
    }
    contest.remark("With crc32c, unless the name says otherwise.");
    Ok(contest)
}

pub(super) fn tiny<'a>(workload: &'a Workload, folder: &'a Path) -> Result<Contest<'a>> {
    let title = format!("write {} tiny tensors", workload.tensors.len());
    let mut field = Field::new("write-tiny", title, workload, folder);
    field.contest.byte_len = None;
    // Nothing is compressed, and the objects need not be in memory together.
    field.each("zt, one by one, no digests", Storage::Raw, Digest::None)?;
    field.ours("zt, no digests", Storage::Raw, Digest::None)?;
    field.ours("zt, crc32c", Storage::Raw, Digest::Crc32c)?;
    field.ztensor1("ztensor 1.2.3, no digests", Storage::Raw, Digest::None);
    field.ztensor1("ztensor 1.2.3, crc32c", Storage::Raw, Digest::Crc32c);
    field.ztensor2("ztensor 2.1.1, xxh3", Storage::Raw);
    let safetensors = "safetensors 0.8, no digests";
    field.safetensors(safetensors);
    let mut contest = field.contest;
    contest.owes(1.0, safetensors);
    Ok(contest)
}

pub(super) fn sparse<'a>(workload: &'a Workload, folder: &'a Path) -> Result<Contest<'a>> {
    let matrix = workload.matrix.as_ref().ok_or("no matrix")?;
    let title = format!("write a sparse matrix with zstd level 3, {}", workload.id);
    let mut field = Field::new("write-csr-zstd-3", title, workload, folder);
    let (storage, digest) = (Storage::Zstd(3), Digest::Crc32c);
    field.writes_ours(
        "zt",
        move |path| ours::write_sparse(path, matrix, ours::write_options(storage, digest)),
        move |path| expect_sparse(path, matrix),
    )?;
    field.writes(
        Role::Peer,
        peer_ztensor1::NAME,
        move |path| peer_ztensor1::write_sparse(path, matrix, storage, digest),
        move |path| expect_sparse(path, matrix),
    );
    Ok(field.contest)
}

/// A contest of writers, and what all of them write.
pub(super) struct Field<'a> {
    pub(super) contest: Contest<'a>,
    folder: &'a Path,
    pub(super) tensors: &'a [Tensor],
}

impl<'a> Field<'a> {
    pub(super) fn new(
        id: &'static str,
        title: String,
        workload: &'a Workload,
        folder: &'a Path,
    ) -> Self {
        let mut contest = Contest::new(id, title, Some(workload.byte_len()));
        contest.remark(NO_SYNC);
        contest.takes_memory(workload.byte_len());
        Field { contest, folder, tensors: &workload.tensors }
    }

    pub(super) fn ours(
        &mut self,
        name: &'static str,
        storage: Storage,
        digest: Digest,
    ) -> Result<()> {
        self.ours_as(name, ours::write_options(storage, digest))
    }

    pub(super) fn ours_as(&mut self, name: &'static str, options: WriteOptions) -> Result<()> {
        let tensors = self.tensors;
        self.writes_ours(
            name,
            move |path| ours::write(path, tensors, options.clone()),
            move |path| expect_file(path, tensors),
        )
    }

    fn ours_without_tables(&mut self, digest: Digest) -> Result<()> {
        let options = ours::write_options(Storage::Raw, digest);
        self.ours_as(NO_TABLES, options.chunk_digests(None))
    }

    pub(super) fn ztensor1(&mut self, name: &'static str, storage: Storage, digest: Digest) {
        let tensors = self.tensors;
        self.writes(
            Role::Peer,
            name,
            move |path| peer_ztensor1::write(path, tensors, storage, digest),
            move |path| expect_file(path, tensors),
        );
    }

    pub(super) fn ztensor2(&mut self, name: &'static str, storage: Storage) {
        let tensors = self.tensors;
        self.writes(
            Role::Peer,
            name,
            move |path| peer_ztensor2::write(path, tensors, storage),
            move |path| peer_ztensor2::expect_file(path, tensors),
        );
    }

    /// Ours, one tensor after the other.
    fn each(&mut self, name: &'static str, storage: Storage, digest: Digest) -> Result<()> {
        let (tensors, options) = (self.tensors, ours::write_options(storage, digest));
        self.writes_ours(
            name,
            move |path| ours::write_each(path, tensors, options.clone()),
            move |path| expect_file(path, tensors),
        )
    }

    fn safetensors(&mut self, name: &'static str) {
        let tensors = self.tensors;
        self.writes(
            Role::Peer,
            name,
            move |path| peer_safetensors::write(path, tensors),
            move |path| expect_file(path, tensors),
        );
    }

    fn limit(&mut self, name: &'static str, space: Space, digest: Digest) {
        let tensors = self.tensors;
        self.writes(
            Role::Limit,
            name,
            move |path| limits::write(path, tensors, space, digest),
            move |path| limits::expect_file(path, tensors),
        );
    }

    fn limit_on_all(&mut self, name: &'static str, digest: Digest) {
        let tensors = self.tensors;
        self.writes(
            Role::Limit,
            name,
            move |path| limits::write_on_all(path, tensors, digest),
            move |path| limits::expect_file(path, tensors),
        );
    }

    /// A limit that writes what it makes, in any order, and says how much that is.
    pub(super) fn kernel(
        &mut self,
        name: &'static str,
        write: impl Fn(&Path) -> Result<u64> + Send + Sync + 'a,
    ) -> Result<()> {
        let path = self.folder.join("written");
        self.contest.add_both(Role::Limit, name, move |_| {
            let (took, stored) = timed(|| write(&path))?;
            fs::remove_file(&path)?;
            Ok(Turn::stored(took, stored))
        })
    }

    /// One who writes a new file, which is removed before the next turn, so that its pages are
    /// free again and none is written to the disk meanwhile.
    fn writes(
        &mut self,
        role: Role,
        name: &'static str,
        write: impl Fn(&Path) -> Result<()> + 'a,
        expect: impl Fn(&Path) -> Result<()> + 'a,
    ) {
        let path = self.folder.join("written");
        self.contest.add(role, name, move |check| {
            let (took, ()) = timed(|| write(&path))?;
            let stored = fs::metadata(&path)?.len();
            if check {
                expect(&path)?;
            }
            fs::remove_file(&path)?;
            Ok(Turn::stored(took, stored))
        });
    }

    /// We, who write a file that has no name until it is published, which syncs: outside the time,
    /// and only where the file is looked at. Dropped before that, it leaves nothing.
    pub(super) fn writes_ours(
        &mut self,
        name: &'static str,
        write: impl Fn(&Path) -> Result<AtomicFile> + Send + Sync + 'a,
        expect: impl Fn(&Path) -> Result<()> + Send + Sync + 'a,
    ) -> Result<()> {
        let path = self.folder.join("ours.zt");
        self.contest.add_both(Role::Ours, name, move |check| {
            let (took, file) = timed(|| write(&path))?;
            if !check {
                return Ok(Turn::from(took));
            }
            file.publish()?;
            let stored = fs::metadata(&path)?.len();
            expect(&path)?;
            fs::remove_file(&path)?;
            Ok(Turn::stored(took, stored))
        })
    }
}
