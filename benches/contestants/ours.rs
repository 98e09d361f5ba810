//! `zt`, through the calls that its users have.

use std::io::Write;
use std::path::Path;

use zt::foreign::AtomicFile;
use zt::formats::PlaneCoding;
use zt::{
    Bytes, Dense, DigestAlgorithm, File, Map, OpenOptions, Slice, Verify, VerifyOptions,
    WriteOptions, Writer,
};
use zt_convert::ConvertOptions;

use crate::contestants::{Digest, Storage};
use crate::workload::Sparse;
use crate::{Result, Tensor};

/// The options for that way of storing components.
pub fn write_options(storage: Storage, digest: Digest) -> WriteOptions {
    let options = WriteOptions::new().digest(match digest {
        Digest::None => None,
        Digest::Crc32c => Some(DigestAlgorithm::Crc32c),
        Digest::Sha256 => Some(DigestAlgorithm::Sha256),
    });
    match storage {
        Storage::Raw => options,
        Storage::Zstd(level) => options.zstd(level),
    }
}

/// Writes all tensors to a file that is complete and has no name yet: what is left to do, and is
/// done outside the time of a contest, is to sync and to rename it.
///
/// # Errors
///
/// Where the file cannot be written; so for the others.
pub fn write(path: &Path, tensors: &[Tensor], options: WriteOptions) -> Result<AtomicFile> {
    write_with(path, options, |writer| {
        let dense = tensors.iter().map(|tensor| Ok((&tensor.name, tensor.dense()?)));
        let dense: Vec<_> = dense.collect::<zt::Result<_>>()?;
        Ok(writer.add_all(dense.iter().map(|(name, dense)| (name, dense)))?)
    })
}

/// As [`write()`], one tensor after the other.
///
/// # Errors
///
/// As [`write()`].
pub fn write_each(path: &Path, tensors: &[Tensor], options: WriteOptions) -> Result<AtomicFile> {
    write_with(path, options, |writer| {
        for tensor in tensors {
            writer.add(&tensor.name, &tensor.dense()?)?;
        }
        Ok(())
    })
}

/// As [`write()`], tensors as `zt.planes/1`, its planes stored as a sample of each advises.
///
/// # Errors
///
/// As [`write()`].
pub fn write_planes(path: &Path, tensors: &[Tensor]) -> Result<AtomicFile> {
    write(path, tensors, WriteOptions::new().planes())
}

/// As [`write_planes`], as `zt.planes/2`.
///
/// # Errors
///
/// As [`write()`].
pub fn write_coded_planes(path: &Path, tensors: &[Tensor]) -> Result<AtomicFile> {
    write(path, tensors, WriteOptions::new().planes_in(PlaneCoding::Huffman))
}

/// As [`write()`], of a sparse matrix.
///
/// # Errors
///
/// As [`write()`].
pub fn write_sparse(path: &Path, matrix: &Sparse, options: WriteOptions) -> Result<AtomicFile> {
    write_with(path, options, |writer| Ok(writer.add("matrix", &matrix.csr()?)?))
}

/// Writes what the file at `from` has, of any kind, as a `.zt` file, complete and without a name
/// yet, as [`write()`] does. Input and output are streamed.
///
/// # Errors
///
/// Where one of the files cannot be read or written.
pub fn convert(from: &Path, to: &Path, write: WriteOptions) -> Result<AtomicFile> {
    let kinds = zt_convert::Kinds::builtin();
    let input = kinds.open(from, OpenOptions::new())?;
    let mut options = ConvertOptions::new(zt_convert::ZT);
    options.write = write;
    let mut file = AtomicFile::create(to)?;
    kinds.convert_to_file(&[input], &mut file, &options)?;
    file.flush()?;
    Ok(file)
}

fn write_with(
    path: &Path,
    options: WriteOptions,
    add: impl FnOnce(&mut Writer<'_>) -> Result<()>,
) -> Result<AtomicFile> {
    let mut file = AtomicFile::create(path)?;
    let mut writer = options.to_writer(&mut file)?;
    add(&mut writer)?;
    writer.finish()?;
    file.flush()?;
    Ok(file)
}

/// Opens a file to be read by position, digests compared or not.
///
/// # Errors
///
/// Where it is no `.zt` file; so for [`open_map`].
pub fn open(path: &Path, verify: Verify) -> Result<File> {
    Ok(OpenOptions::new().verify(verify).open(path)?)
}

/// Opens a file through a map, digests compared or not.
///
/// # Errors
///
/// As [`open`].
pub fn open_map(path: &Path, verify: Verify) -> Result<File> {
    // SAFETY: the file lies in a folder of this process's own, and no other process changes it while it
    // is open. Otherwise reads would see either version, or the process would end.
    let map = unsafe { Map::open(path) }?;
    Ok(OpenOptions::new().verify(verify).open_source(map)?)
}

/// Every tensor in one call, in the order in which they were written: lent where the source lends, in
/// memory of its own otherwise.
///
/// # Errors
///
/// Where one cannot be read.
pub fn read_all(file: &File) -> Result<Vec<Bytes<'_>>> {
    let entries = file.entries();
    let wanted = entries.iter().map(|entry| Ok((entry.tensor()?, "data")));
    let wanted: Vec<_> = wanted.collect::<zt::Result<_>>()?;
    let read = file.read_many(&wanted).into_iter();
    Ok(read.map(|found| Ok(found?.bytes)).collect::<zt::Result<_>>()?)
}

/// The dense value of every object of any format.
///
/// # Errors
///
/// As [`read_all`].
pub fn read_dense(file: &File, tensors: &[Tensor]) -> Result<Vec<Dense<'static>>> {
    let wanted = tensors.iter().map(|tensor| file.tensor(&tensor.name));
    let wanted: Vec<_> = wanted.collect::<zt::Result<_>>()?;
    let read = file.to_dense_many(&wanted).into_iter();
    Ok(read.collect::<zt::Result<_>>()?)
}

/// Some rows of one tensor.
///
/// # Errors
///
/// As [`read_all`].
pub fn read_rows(file: &File, name: &str, rows: std::ops::Range<u64>) -> Result<Dense<'static>> {
    let rows = Slice::Range {
        start: Some(rows.start.cast_signed()),
        stop: Some(rows.end.cast_signed()),
        step: 1,
    };
    Ok(file.tensor(name)?.slice(&[rows])?)
}

/// Checks everything; how many bytes.
///
/// # Errors
///
/// The first problem.
pub fn verify(file: &File) -> Result<u64> {
    let report = file.verify(&VerifyOptions::default())?;
    match report.problems.into_iter().next() {
        Some(problem) => Err(problem.into()),
        None => Ok(report.bytes),
    }
}
