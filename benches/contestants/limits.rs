//! What the machine can do with the same bytes: bare calls and kernels.
//!
//! All threads are those of rayon's pool, which ours run on as well.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rayon::prelude::*;
use rustix::fs::{FallocateFlags, fallocate};
use sha2::{Digest as _, Sha256};
use zstd::bulk::{Compressor, Decompressor};
use zt::{Buffer, Map, Source, Span};

use crate::contestants::{Digest, sum};
use crate::{Result, Tensor};

/// Bytes that are handled at a time.
const PIECE: usize = 1 << 20;

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Space {
    /// As it grows.
    Grown,
    /// Its blocks are asked for before the first byte.
    Preallocated,
}

/// Writes all bytes to a new file, a piece at a time, hashed before it is written.
///
/// # Errors
///
/// Where the file cannot be written.
pub fn write(path: &Path, tensors: &[Tensor], space: Space, digest: Digest) -> Result<()> {
    let mut file = File::create(path)?;
    if space == Space::Preallocated {
        let byte_len = tensors.iter().map(|t| t.bytes.len() as u64).sum();
        fallocate(&file, FallocateFlags::empty(), 0, byte_len)?;
    }
    for tensor in tensors {
        let mut crc = 0;
        let mut sha = Sha256::new();
        for piece in tensor.bytes.chunks(PIECE) {
            match digest {
                Digest::None => {}
                Digest::Crc32c => crc = crc32c::crc32c_append(crc, piece),
                Digest::Sha256 => sha.update(piece),
            }
            file.write_all(piece)?;
        }
        std::hint::black_box((crc, sha.finalize()));
    }
    Ok(())
}

/// Sees that the file at `path` has the bytes of `tensors`, one after the other.
///
/// # Errors
///
/// The first tensor that has other bytes.
pub fn expect_file(path: &Path, tensors: &[Tensor]) -> Result<()> {
    let file = File::open(path)?;
    let mut offset = 0;
    for tensor in tensors {
        let mut found = Buffer::try_zeroed(tensor.bytes.len() as u64)?;
        file.read_exact_at(&mut found, offset)?;
        crate::contestants::expect_bytes(tensor, &found)?;
        offset += tensor.bytes.len() as u64;
    }
    Ok(())
}

/// Compresses all bytes in independent frames of 1 MiB on all threads and drops them; how many
/// bytes they have.
///
/// # Errors
///
/// What zstd says.
pub fn compress(tensors: &[Tensor], level: i32) -> Result<u64> {
    let pieces = pieces(tensors);
    let lengths = pieces.par_iter().map_init(
        || Compressor::new(level).map(|compressor| (compressor, Vec::with_capacity(2 * PIECE))),
        |state, piece| {
            let (compressor, frame) = state.as_mut().map_err(|error| error.to_string())?;
            frame.clear();
            let len = compressor.compress_to_buffer(piece, frame);
            len.map(|len| len as u64).map_err(|error| error.to_string())
        },
    );
    Ok(lengths.try_reduce(|| 0, |one, other| Ok(one + other))?)
}

/// Frames of 1 MiB, made once, for [`decompress`].
///
/// # Errors
///
/// What zstd says.
pub fn frames(tensors: &[Tensor], level: i32) -> Result<Vec<Vec<u8>>> {
    let frames = pieces(tensors)
        .par_iter()
        .map_init(
            || Compressor::new(level),
            |compressor, piece| match compressor {
                Ok(compressor) => compressor
                    .compress(piece)
                    .map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            },
        )
        .collect::<Result<Vec<_>, _>>();
    Ok(frames?)
}

/// Decodes frames on all threads into fresh memory in large pages, as one stretch.
///
/// # Errors
///
/// What zstd says.
pub fn decompress(frames: &[Vec<u8>], tensors: &[Tensor]) -> Result<Vec<Buffer>> {
    let mut buffers = buffers(tensors)?;
    let targets: Vec<&mut [u8]> = buffers
        .iter_mut()
        .flat_map(|buffer| buffer.chunks_mut(PIECE))
        .collect();
    targets.into_par_iter().zip(frames).try_for_each_init(
        Decompressor::new,
        |decompressor, (target, frame)| match decompressor {
            Ok(decompressor) => decompressor
                .decompress_to_buffer(frame, target)
                .map(drop)
                .map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        },
    )?;
    Ok(buffers)
}

/// Reads a file of the tensors' bytes by position into fresh memory, in large pages where
/// `zt::Buffer` has them, or as `Vec`s of small pages.
///
/// # Errors
///
/// Where it cannot be read.
pub fn read(path: &Path, tensors: &[Tensor], threads: Threads) -> Result<Vec<Buffer>> {
    let file = File::open(path)?;
    let mut buffers = buffers(tensors)?;
    let mut targets = Vec::new();
    let mut offset = 0;
    for buffer in &mut buffers {
        for piece in buffer.chunks_mut(PIECE) {
            let len = piece.len() as u64;
            targets.push((offset, piece));
            offset += len;
        }
    }
    let read = |(offset, piece): (u64, &mut [u8])| file.read_exact_at(piece, offset);
    match threads {
        Threads::One => targets.into_iter().try_for_each(read)?,
        Threads::All => targets.into_par_iter().try_for_each(read)?,
    }
    Ok(buffers)
}

/// As [`read`] on one thread, into ordinary memory.
///
/// # Errors
///
/// As [`read`].
pub fn read_small_pages(path: &Path, tensors: &[Tensor]) -> Result<Vec<Vec<u8>>> {
    let file = File::open(path)?;
    let mut offset = 0;
    let read = |tensor: &Tensor| {
        let mut bytes = vec![0; tensor.bytes.len()];
        file.read_exact_at(&mut bytes, offset)?;
        offset += bytes.len() as u64;
        Ok(bytes)
    };
    tensors.iter().map(read).collect()
}

/// How many threads work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    /// The caller's.
    One,
    /// All of rayon's.
    All,
}

/// Maps a file and hashes it a piece at a time; nothing is combined, because only the time is
/// wanted.
///
/// # Errors
///
/// Where it cannot be mapped.
pub fn hash_map(path: &Path, digest: Digest, threads: Threads) -> Result<()> {
    let hash: fn(&[u8]) -> u64 = match digest {
        Digest::None => |_| 0,
        Digest::Crc32c => |piece| crc32c::crc32c(piece).into(),
        Digest::Sha256 => |piece| Sha256::digest(piece)[0].into(),
    };
    std::hint::black_box(over_map(path, threads, hash)?);
    Ok(())
}

/// Maps a file and sums all its bytes.
///
/// # Errors
///
/// Where it cannot be mapped.
pub fn sum_map(path: &Path, threads: Threads) -> Result<u64> {
    over_map(path, threads, sum)
}

/// `work` on every piece of a fresh map, the results added.
fn over_map(path: &Path, threads: Threads, work: fn(&[u8]) -> u64) -> Result<u64> {
    // SAFETY: as in `ours::open_map`.
    let map = unsafe { Map::open(path) }?;
    let whole = Span::new(0, map.byte_len()).and_then(|span| map.slice(span));
    let bytes = whole.unwrap_or_default();
    Ok(match threads {
        Threads::One => bytes.chunks(PIECE).map(work).fold(0, u64::wrapping_add),
        Threads::All => bytes
            .par_chunks(PIECE)
            .map(work)
            .reduce(|| 0, u64::wrapping_add),
    })
}

/// Copies all bytes into fresh memory in large pages, on one thread.
///
/// # Errors
///
/// Where there is no memory.
pub fn copy(tensors: &[Tensor]) -> Result<Vec<Buffer>> {
    let mut copies = buffers(tensors)?;
    for (copy, tensor) in copies.iter_mut().zip(tensors) {
        copy.copy_from_slice(&tensor.bytes);
    }
    Ok(copies)
}

fn buffers(tensors: &[Tensor]) -> Result<Vec<Buffer>> {
    let fresh = |tensor: &Tensor| Buffer::try_zeroed(tensor.bytes.len() as u64);
    Ok(tensors.iter().map(fresh).collect::<Result<_, _>>()?)
}

fn pieces(tensors: &[Tensor]) -> Vec<&[u8]> {
    tensors
        .iter()
        .flat_map(|tensor| tensor.bytes.chunks(PIECE))
        .collect()
}
