//! `ztensor` 1.2.3, whose files are ours too: one thread, a zstd context for each component.

use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::Path;

use safetensors::tensor::Dtype;
use ztensor::reader::Reader;
use ztensor::writer::{Compression, Writer};
use ztensor::{Checksum, CsrTensor, DType};

use crate::contestants::peer_safetensors::Mapped;
use crate::contestants::{Digest, Storage, sum};
use crate::workload::Sparse;
use crate::{Result, Tensor};

/// The name in tables.
pub const NAME: &str = "ztensor 1.2.3";

/// Writes all tensors to a new file.
///
/// # Errors
///
/// Where the file cannot be written.
pub fn write(path: &Path, tensors: &[Tensor], storage: Storage, digest: Digest) -> Result<()> {
    let mut writer = Writer::create(path)?;
    for tensor in tensors {
        writer.add_bytes(
            &tensor.name,
            tensor.shape.clone(),
            dtype(tensor.dtype)?,
            compression(storage),
            &tensor.bytes,
            checksum(digest),
        )?;
    }
    writer.finish()?;
    Ok(())
}

/// As [`write()`], of a sparse matrix.
///
/// # Errors
///
/// As [`write()`].
pub fn write_sparse(path: &Path, matrix: &Sparse, storage: Storage, digest: Digest) -> Result<()> {
    let mut writer = Writer::create(path)?;
    writer.add_csr(
        "matrix",
        matrix.shape.to_vec(),
        DType::F32,
        &matrix.values,
        &matrix.indices,
        &matrix.indptr,
        compression(storage),
        checksum(digest),
    )?;
    writer.finish()?;
    Ok(())
}

/// Opens a file to be read through a buffer.
///
/// # Errors
///
/// Where it is no file of this library.
pub fn open(path: &Path) -> Result<Reader<BufReader<File>>> {
    Ok(Reader::open(path)?)
}

/// Maps a file, the quicker of its two ways, and sums every byte of all tensors.
///
/// # Errors
///
/// As [`open`].
pub fn sum_mapped(path: &Path, tensors: &[Tensor]) -> Result<u64> {
    let file = Reader::open_mmap_shared(path)?;
    tensors
        .iter()
        .try_fold(0u64, |total, tensor| Ok(total.wrapping_add(sum(file.view(&tensor.name)?))))
}

/// Maps a file and lends the bytes of one raw tensor.
///
/// # Errors
///
/// As [`open`]; the errors of `look`.
pub fn with_mapped<T>(path: &Path, name: &str, look: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
    look(Reader::open_mmap_shared(path)?.view(name)?)
}

/// Writes what a safetensors file has, out of a map, one tensor after the other.
///
/// # Errors
///
/// Where one of the files cannot be read or written.
pub fn convert(from: &Path, to: &Path, storage: Storage, digest: Digest) -> Result<()> {
    let file = Mapped::open(from)?;
    let mut writer = Writer::create(to)?;
    for (name, tensor) in file.parse()?.iter() {
        let dtype = match tensor.dtype() {
            Dtype::BF16 => DType::BF16,
            Dtype::F32 => DType::F32,
            other => return Err(format!("no file has {other:?}").into()),
        };
        let shape = tensor.shape().iter().map(|&length| length as u64).collect();
        let (compression, checksum) = (compression(storage), checksum(digest));
        writer.add_bytes(name, shape, dtype, compression, tensor.data(), checksum)?;
    }
    writer.finish()?;
    Ok(())
}

/// Every tensor in memory of its own, digests compared or not.
///
/// # Errors
///
/// Where one cannot be read.
pub fn read_all<R: Read + Seek>(
    file: &Reader<R>,
    tensors: &[Tensor],
    verify: bool,
) -> Result<Vec<Vec<u8>>> {
    let names: Vec<&str> = tensors.iter().map(|tensor| &*tensor.name).collect();
    Ok(file.read_many(&names, verify)?)
}

/// Reads the sparse matrix that [`write_sparse`] has written.
///
/// # Errors
///
/// As [`open`].
pub fn read_sparse(path: &Path) -> Result<CsrTensor<f32>> {
    Ok(open(path)?.read_csr("matrix")?)
}

fn compression(storage: Storage) -> Compression {
    match storage {
        Storage::Raw => Compression::Raw,
        Storage::Zstd(level) => Compression::Zstd(level),
    }
}

fn checksum(digest: Digest) -> Checksum {
    match digest {
        Digest::None => Checksum::None,
        Digest::Crc32c => Checksum::Crc32c,
        Digest::Sha256 => Checksum::Sha256,
    }
}

fn dtype(dtype: zt::DType) -> Result<DType> {
    Ok(match dtype {
        zt::DType::BF16 => DType::BF16,
        zt::DType::F32 => DType::F32,
        zt::DType::I32 => DType::I32,
        zt::DType::I64 => DType::I64,
        other => return Err(format!("no workload has {other:?}").into()),
    })
}
