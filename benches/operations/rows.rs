//! Parts of tensors, from opening the file on: few or many rows of a large one, and a quarter of each matrix.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use zt::{Slice, Verify};

use crate::contest::{expect, timed};
use crate::contestants::{
    Digest, Storage, limits, ours, peer_safetensors, peer_ztensor1, peer_ztensor2,
};
use crate::operations::read::publish;
use crate::{Contest, Result, Role, Tensor, Workload};

/// So many that threads gain nothing.
const FEW: u64 = 16;

/// The rows, and where their bytes are in the tensor.
struct Rows<'a> {
    tensor: &'a Tensor,
    rows: std::ops::Range<u64>,
    bytes: std::ops::Range<usize>,
}

impl<'a> Rows<'a> {
    /// `wanted` rows of the largest tensor.
    fn of(workload: &'a Workload, wanted: u64) -> Result<Self> {
        let tensor = workload.largest().ok_or("no tensors")?;
        let count = *tensor.shape.first().ok_or("no rows")?;
        let row_len = tensor.bytes.len() / count as usize;
        // Off the frames' borders, as rows are.
        let first = count / 4 + 5;
        Ok(Rows {
            tensor,
            rows: first..first + wanted,
            bytes: first as usize * row_len..(first + wanted) as usize * row_len,
        })
    }

    fn take(&self, whole: &[u8]) -> Result<Vec<u8>> {
        let rows = whole.get(self.bytes.clone());
        Ok(rows.ok_or("a tensor that is too short")?.to_vec())
    }

    fn add(
        self,
        contest: &mut Contest<'a>,
        role: Role,
        name: &'static str,
        read: impl Fn(&Self) -> Result<Vec<u8>> + 'a,
    ) {
        contest.add(role, name, move |check| {
            let (took, found) = timed(|| read(&self))?;
            let expected = self.tensor.bytes.get(self.bytes.clone());
            expect(!check || expected == Some(&found), || "other rows".into())?;
            Ok(took)
        });
    }
}

pub(super) fn raw<'a>(workload: &'a Workload, folder: &'a Path) -> Result<Contest<'a>> {
    let mut contest = contest("rows-raw", "raw", workload)?;
    let all = &workload.tensors;
    let [ours, second, safe, bare] =
        ["ours.zt", "second.zt", "peer.safetensors", "bare"].map(|name| folder.join(name));
    publish(&ours, workload, Storage::Raw)?;
    peer_ztensor2::write(&second, all, Storage::Raw)?;
    peer_safetensors::write(&safe, all)?;
    std::fs::write(&bare, &*Rows::of(workload, FEW)?.tensor.bytes)?;

    add_ours(&mut contest, "zt", workload, &ours, Verify::OnRead)?;
    add_ours(&mut contest, NOT_VERIFIED, workload, &ours, Verify::Never)?;
    Rows::of(workload, FEW)?.add(&mut contest, Role::Peer, peer_ztensor1::NAME, move |rows| {
        peer_ztensor1::with_mapped(&ours, &rows.tensor.name, |whole| rows.take(whole))
    });
    Rows::of(workload, FEW)?.add(&mut contest, Role::Peer, peer_ztensor2::NAME, move |rows| {
        let file = peer_ztensor2::open_map(&second)?;
        rows.take(file.tensor(&rows.tensor.name)?.data()?.map()?)
    });
    Rows::of(workload, FEW)?.add(&mut contest, Role::Peer, peer_safetensors::NAME, move |rows| {
        let file = peer_safetensors::Mapped::open(&safe)?;
        rows.take(file.parse()?.tensor(&rows.tensor.name)?.data())
    });
    let limit = "pread at a known offset";
    Rows::of(workload, FEW)?.add(&mut contest, Role::Limit, limit, move |rows| {
        let mut found = vec![0; rows.bytes.len()];
        File::open(&bare)?.read_exact_at(&mut found, rows.bytes.start as u64)?;
        Ok(found)
    });
    for (name, len) in [
        ("pread and crc32c of chunks of 64 KiB", 64 << 10),
        ("pread and crc32c of chunks of 256 KiB", 256 << 10),
        (CHUNK, 1 << 20),
    ] {
        let bare = folder.join("bare");
        Rows::of(workload, FEW)?.add(&mut contest, Role::Limit, name, move |rows| {
            limits::read_chunks(&bare, rows.bytes.clone(), len)
        });
    }
    contest.owes(0.6, peer_safetensors::NAME);
    contest.owes(0.9, CHUNK);
    contest.remark(
        "zt reads and verifies whole chunks of 1 MiB, unless the name says otherwise. The peers verify \
         nothing: their digests cover the whole tensor.",
    );
    Ok(contest)
}

/// The least that verified rows of our files need.
const CHUNK: &str = "pread and crc32c of chunks of 1 MiB";

pub(super) fn zstd<'a>(workload: &'a Workload, folder: &'a Path) -> Result<Contest<'a>> {
    let mut contest = contest("rows-zstd-3", "zstd-3", workload)?;
    let all = &workload.tensors;
    let [ours, theirs, second] =
        ["ours.zt", "theirs.zt", "second.zt"].map(|name| folder.join(name));
    publish(&ours, workload, Storage::Zstd(3))?;
    peer_ztensor1::write(&theirs, all, Storage::Zstd(3), Digest::None)?;
    peer_ztensor2::write(&second, all, Storage::Zstd(3))?;

    add_ours(&mut contest, "zt", workload, &ours, Verify::OnRead)?;
    Rows::of(workload, FEW)?.add(&mut contest, Role::Peer, peer_ztensor1::NAME, move |rows| {
        rows.take(&peer_ztensor1::open(&theirs)?.read(&rows.tensor.name, false)?)
    });
    Rows::of(workload, FEW)?.add(&mut contest, Role::Peer, peer_ztensor2::NAME, move |rows| {
        let file = peer_ztensor2::open_map(&second)?;
        rows.take(&file.tensor(&rows.tensor.name)?.data()?.bytes()?)
    });
    contest.owes(20.0, peer_ztensor1::NAME);
    contest.owes(20.0, peer_ztensor2::NAME);
    contest.remark("The peers can only decode the whole tensor.");
    Ok(contest)
}

/// A quarter of the rows of each matrix, one after the other, beside the frames that they are in.
pub(super) fn each<'a>(workload: &'a Workload, folder: &'a Path) -> Result<Contest<'a>> {
    let path = folder.join("ours.zt");
    publish(&path, workload, Storage::Zstd(3))?;
    let matrices: Vec<&Tensor> =
        workload.tensors.iter().filter(|tensor| tensor.shape.len() == 2).collect();
    let byte_len: usize = matrices.iter().map(|tensor| tensor.bytes.len() / 4).sum();
    let title =
        format!("open, and read a quarter of the rows of each zstd-3 matrix, {}", workload.id);
    let mut contest = Contest::new("rows-each-zstd-3", title, Some(byte_len as u64));
    let frames = limits::frames_of_rows(&path, &matrices)?;
    add_quarters(&mut contest, "zt", Verify::OnRead, Quarter::Rows, matrices, path);
    contest.add(Role::Limit, FRAMES, move |_| Ok(timed(|| limits::decode_rows(&frames))?.0));
    contest.owes(0.95, FRAMES);
    Ok(contest)
}

const FRAMES: &str = "their frames, in memory";

/// 16 MiB of rows, on all cores beside one.
pub(super) fn many<'a>(workload: &'a Workload, folder: &'a Path) -> Result<Contest<'a>> {
    let row_len = Rows::of(workload, 1)?.bytes.len();
    let rows = Rows::of(workload, ((16 << 20) / row_len) as u64)?;
    let [part, whole] = [rows.bytes.len(), rows.tensor.bytes.len()];
    let title = format!(
        "open, and read {} MiB of rows of a zstd-3 tensor of {} MiB",
        part >> 20,
        whole >> 20
    );
    let mut contest = Contest::new("rows-many-zstd-3", title, Some(part as u64));
    let [ours, theirs] = ["ours.zt", "theirs.zt"].map(|name| folder.join(name));
    publish(&ours, workload, Storage::Zstd(3))?;
    peer_ztensor1::write(&theirs, &workload.tensors, Storage::Zstd(3), Digest::None)?;

    let Rows { tensor, rows, bytes } = rows;
    let expected = tensor.bytes.get(bytes.clone());
    contest.add_both(Role::Ours, "zt", move |check| {
        let read = || {
            let file = ours::open(&ours, Verify::OnRead)?;
            ours::read_rows(&file, &tensor.name, rows.clone())
        };
        let (took, found) = timed(read)?;
        let right = || expected == Some(&found.elements().bytes);
        expect(!check || right(), || "other rows".into())?;
        Ok(took)
    })?;
    contest.add(Role::Peer, peer_ztensor1::NAME, move |_| {
        let read =
            || Ok::<_, crate::Error>(peer_ztensor1::open(&theirs)?.read(&tensor.name, false)?);
        Ok(timed(read)?.0)
    });
    contest.owes(1.7, "zt, 1 thread");
    contest.remark("ztensor 1.2.3 can only decode the whole tensor.");
    Ok(contest)
}

fn contest<'a>(id: &'static str, stored: &str, workload: &Workload) -> Result<Contest<'a>> {
    let Rows { tensor, .. } = Rows::of(workload, FEW)?;
    let mib = tensor.bytes.len() >> 20;
    let title = format!("open, and read 16 rows of a {stored} tensor of {mib} MiB");
    Ok(Contest::new(id, title, None))
}

fn add_ours<'a>(
    contest: &mut Contest<'a>,
    name: &'static str,
    workload: &'a Workload,
    path: &Path,
    verify: Verify,
) -> Result<()> {
    let path = path.to_owned();
    Rows::of(workload, FEW)?.add(contest, Role::Ours, name, move |rows| {
        let file = ours::open(&path, verify)?;
        let found = ours::read_rows(&file, &rows.tensor.name, rows.rows.clone())?;
        Ok(found.elements().bytes.to_vec())
    });
    Ok(())
}

const NOT_VERIFIED: &str = "zt, not verified";

/// Which quarter of a matrix is read: of its rows, or of its columns.
#[derive(Debug, Clone, Copy)]
pub(super) enum Quarter {
    Rows,
    Columns,
}

impl Quarter {
    /// The slices of the quarter.
    fn slices(self, tensor: &Tensor) -> Vec<Slice> {
        let all = Slice::from(..);
        let second = |len: Option<&u64>| {
            let len = len.copied().unwrap_or_default();
            Slice::from(len / 4..len / 2)
        };
        match self {
            Quarter::Rows => vec![second(tensor.shape.first())],
            Quarter::Columns => vec![all, second(tensor.shape.get(1))],
        }
    }
}

/// A quarter of each matrix, as one of four ranks reads it, with and without a digest of each chunk.
pub(super) fn quarter<'a>(
    id: &'static str,
    quarter: Quarter,
    workload: &'a Workload,
    folder: &'a Path,
) -> Result<Contest<'a>> {
    let which = match quarter {
        Quarter::Rows => "rows",
        Quarter::Columns => "columns",
    };
    let path = folder.join("ours.zt");
    publish(&path, workload, Storage::Raw)?;
    let matrices: Vec<&Tensor> =
        workload.tensors.iter().filter(|tensor| tensor.shape.len() == 2).collect();
    let byte_len: usize = matrices.iter().map(|tensor| tensor.bytes.len() / 4).sum();
    let title = format!("open, and read a quarter of the {which} of each raw matrix");
    let mut contest = Contest::new(id, title, Some(byte_len as u64));
    for (name, verify) in
        [("zt, verified by chunks", Verify::OnRead), (NOT_VERIFIED, Verify::Never)]
    {
        add_quarters(&mut contest, name, verify, quarter, matrices.clone(), path.clone());
    }
    contest.remark("A verified part takes whole chunks of 1 MiB from the file.");
    Ok(contest)
}

fn add_quarters<'a>(
    contest: &mut Contest<'a>,
    name: &'static str,
    verify: Verify,
    quarter: Quarter,
    matrices: Vec<&'a Tensor>,
    path: PathBuf,
) {
    contest.add(Role::Ours, name, move |check| {
        let (took, found) = timed(|| {
            let file = ours::open(&path, verify)?;
            let parts = matrices.iter().map(|tensor| {
                let slices = quarter.slices(tensor);
                Ok(file.tensor(&tensor.name)?.slice(&slices)?)
            });
            parts.collect::<Result<Vec<_>>>()
        })?;
        for (tensor, found) in matrices.iter().zip(&found).filter(|_| check) {
            let expected = tensor.dense()?.slice(&quarter.slices(tensor))?;
            expect(*found == expected, || format!("{}: another part", tensor.name))?;
        }
        Ok(took)
    });
}
