//! `ztensor` 2.1.1: another format of the same name, which hashes (xxh3) always.

use std::path::Path;

use ztensor2::{DType, Source, Writer};

use crate::contest::expect;
use crate::contestants::{Storage, expect_bytes};
use crate::{Result, Tensor};

/// The name in tables.
pub const NAME: &str = "ztensor 2.1.1";

/// Writes all tensors to a new file: raw ones at its defaults, compressed ones with the only
/// encoding it has, zstd of level 3. Not in its canonical form, which wants names in order; and
/// where all tensors are tiny, at the least alignment that it has, because its default of 64 KiB
/// would make 6.5 GB of 16 MB.
///
/// # Errors
///
/// Where the file cannot be written.
pub fn write(path: &Path, tensors: &[Tensor], storage: Storage) -> Result<()> {
    let is_tiny = tensors.iter().all(|tensor| tensor.bytes.len() < 4096);
    let align = if is_tiny { 4096 } else { 65_536 };
    let options = Writer::options().canonical(false).align(align);
    let mut writer = options.create(path)?;
    for tensor in tensors {
        let dtype = dtype(tensor.dtype)?;
        writer.object(&*tensor.name, |object| {
            object.shape(tensor.shape.clone()).part("data", |part| {
                let part = part.dtype(dtype).bytes(&tensor.bytes);
                match storage {
                    Storage::Raw => part,
                    Storage::Zstd(_) => part.encoding("zt.zstd-seekable/1"),
                }
            })
        })?;
    }
    writer.finish()?;
    Ok(())
}

/// Opens a file, mapped, as it does by default.
///
/// # Errors
///
/// Where it is no file of this library.
pub fn open_map(path: &Path) -> Result<Source> {
    Ok(Source::open(path)?)
}

/// Opens a file to be read by position.
///
/// # Errors
///
/// As [`open_map`].
pub fn open(path: &Path) -> Result<Source> {
    Ok(Source::options().map(false).open(path)?)
}

/// Every tensor in memory of its own.
///
/// # Errors
///
/// Where one cannot be read.
pub fn read_all(file: &Source, tensors: &[Tensor]) -> Result<Vec<Vec<u8>>> {
    let read = |tensor: &Tensor| Ok(file.tensor(&tensor.name)?.data()?.bytes()?.into_owned());
    tensors.iter().map(read).collect()
}

/// Compares the digests of all tensors.
///
/// # Errors
///
/// The first that is missing or wrong.
pub fn verify(file: &Source, tensors: &[Tensor]) -> Result<()> {
    tensors.iter().try_for_each(|tensor| {
        let verified = file.tensor(&tensor.name)?.verify()?;
        expect(verified.is_checked(), || format!("{}: no digest", tensor.name))
    })
}

/// Sees that a file has exactly `tensors`: no other library reads it.
///
/// # Errors
///
/// The first tensor that is missing or has other bytes.
pub fn expect_file(path: &Path, tensors: &[Tensor]) -> Result<()> {
    let file = open_map(path)?;
    expect(file.len() == tensors.len(), || format!("{} objects", file.len()))?;
    tensors
        .iter()
        .try_for_each(|tensor| expect_bytes(tensor, &file.tensor(&tensor.name)?.data()?.bytes()?))
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
