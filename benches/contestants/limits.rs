//! What the machine can do with the same bytes: bare calls and kernels.
//!
//! All threads are in rayon's pool, which our code uses as well.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use crc_fast::{CrcAlgorithm, checksum};
use rayon::prelude::*;
use rustix::fs::{FallocateFlags, fallocate};
use sha2::{Digest as _, Sha256};
use zstd::bulk::{Compressor, Decompressor};
use zt::container::codec::FrameCompressor;
use zt::formats::PlaneCodec;
use zt::{Buffer, DType, Map, Source, Span};

use crate::contest::expect;
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
                // Nothing is combined, because only the time is wanted.
                Digest::Crc32c => crc ^= crc32c(piece),
                Digest::Sha256 => sha.update(piece),
            }
            file.write_all(piece)?;
        }
        std::hint::black_box((crc, sha.finalize()));
    }
    Ok(())
}

/// Hashes and writes all tensors on all threads to a new file of their length, each tensor by one thread
/// with SHA-256, or a piece at a time with CRC-32C.
///
/// # Errors
///
/// As [`write()`].
pub fn write_on_all(path: &Path, tensors: &[Tensor], digest: Digest) -> Result<()> {
    let file = File::create(path)?;
    let byte_len = tensors.iter().map(|t| t.bytes.len() as u64).sum();
    fallocate(&file, FallocateFlags::empty(), 0, byte_len)?;
    let mut offset = 0;
    let mut parts = Vec::new();
    for tensor in tensors {
        let part_len = match digest {
            Digest::Sha256 => tensor.bytes.len(),
            _ => PIECE,
        };
        for part in tensor.bytes.chunks(part_len.max(1)) {
            parts.push((offset, part));
            offset += part.len() as u64;
        }
    }
    let write = |(offset, part): (u64, &[u8])| -> std::io::Result<()> {
        let mut sha = Sha256::new();
        for (at, piece) in (0..).zip(part.chunks(PIECE)) {
            match digest {
                Digest::None => {}
                Digest::Crc32c => drop(std::hint::black_box(crc32c(piece))),
                Digest::Sha256 => sha.update(piece),
            }
            file.write_all_at(piece, offset + at * PIECE as u64)?;
        }
        std::hint::black_box(sha.finalize());
        Ok(())
    };
    Ok(parts.into_par_iter().with_max_len(1).try_for_each(write)?)
}

/// The fastest kernel known for it.
fn crc32c(bytes: &[u8]) -> u64 {
    checksum(CrcAlgorithm::Crc32Iscsi, bytes)
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

/// Compresses all bytes in independent frames of 1 MiB on all threads and writes them to a new file as
/// they come; how many bytes they have.
///
/// # Errors
///
/// What zstd says, and where the file cannot be written.
pub fn write_frames(path: &Path, tensors: &[Tensor], level: i32) -> Result<u64> {
    let (file, end) = (File::create(path)?, AtomicU64::new(0));
    pieces(tensors).into_par_iter().try_for_each_init(
        || Compressor::new(level).map(|compressor| (compressor, Vec::with_capacity(2 * PIECE))),
        |state, piece| {
            let (compressor, frame) = state.as_mut().map_err(|error| error.to_string())?;
            frame.clear();
            let compressed = compressor.compress_to_buffer(piece, frame);
            compressed.map_err(|error| error.to_string())?;
            append(&file, &end, frame)
        },
    )?;
    Ok(end.into_inner())
}

/// Splits all bytes into the planes of bf16 or f32 on all threads, codes the first by frequency, and
/// writes both to a new file as they come; how many bytes they have.
///
/// # Errors
///
/// As [`write_frames`].
pub fn write_planes(path: &Path, tensors: &[Tensor]) -> Result<u64> {
    let (file, end) = (File::create(path)?, AtomicU64::new(0));
    let write = |piece| code_planes(piece, |coded| append(&file, &end, coded));
    plane_pieces(tensors).into_par_iter().with_max_len(1).try_for_each(write)?;
    Ok(end.into_inner())
}

/// Pieces whose planes have 1 MiB.
fn plane_pieces(tensors: &[Tensor]) -> Vec<(DType, &[u8])> {
    let pieces = tensors.iter().flat_map(|tensor| {
        let pieces = tensor.bytes.chunks(PIECE * tensor.dtype.byte_len());
        pieces.map(|piece| (tensor.dtype, piece))
    });
    pieces.collect()
}

/// Hands out each plane of a piece: a frame of the first, the others as they are.
fn code_planes(
    (dtype, piece): (DType, &[u8]),
    mut each: impl FnMut(&[u8]) -> Result<(), String>,
) -> Result<(), String> {
    let codec = PlaneCodec::new(dtype, None).map_err(|error| error.to_string())?;
    let mut plane = vec![0; piece.len() / codec.plane_count()];
    let mut frame = Vec::new();
    let mut compressor = FrameCompressor::entropy_only().map_err(|error| error.to_string())?;
    for at in 0..codec.plane_count() {
        codec.split(at, piece, &mut plane);
        if at > 0 {
            each(&plane)?;
            continue;
        }
        let compressed = compressor.compress(&plane, &mut frame);
        compressed.map_err(|error| error.to_string())?;
        each(&frame)?;
    }
    Ok(())
}

/// The planes of each piece, made once, for [`merge_planes`].
///
/// # Errors
///
/// What zstd says.
pub fn planes(tensors: &[Tensor]) -> Result<Vec<Vec<Vec<u8>>>> {
    let code = |piece| {
        let mut planes = Vec::new();
        code_planes(piece, |coded| {
            planes.push(coded.to_vec());
            Ok(())
        })?;
        Ok::<_, String>(planes)
    };
    Ok(plane_pieces(tensors).into_par_iter().map(code).collect::<Result<_, _>>()?)
}

/// Decodes the first planes and merges all on all threads into fresh memory in large pages, as one
/// stretch.
///
/// # Errors
///
/// What zstd says.
pub fn merge_planes(planes: &[Vec<Vec<u8>>], tensors: &[Tensor]) -> Result<Buffer> {
    let byte_len = tensors.iter().map(|tensor| tensor.bytes.len() as u64).sum();
    let mut arena = Buffer::try_zeroed(byte_len)?;
    let mut rest: &mut [u8] = &mut arena;
    let mut targets = Vec::new();
    for (dtype, piece) in plane_pieces(tensors) {
        let target = rest.split_off_mut(..piece.len()).unwrap_or_default();
        targets.push((dtype, target));
    }
    targets.into_par_iter().zip(planes).try_for_each_init(
        || Decompressor::new().map(|decompressor| (decompressor, vec![0; PIECE])),
        |state, ((dtype, target), planes)| {
            let (decompressor, first) = state.as_mut().map_err(|error| error.to_string())?;
            let codec = PlaneCodec::new(dtype, None).map_err(|error| error.to_string())?;
            let (frame, others) = planes.split_first().ok_or("no planes")?;
            let decoded = decompressor.decompress_to_buffer(frame, first.as_mut_slice());
            let len = decoded.map_err(|error| error.to_string())?;
            let first = first.get(..len).unwrap_or_default();
            let all: Vec<&[u8]> =
                std::iter::once(first).chain(others.iter().map(Vec::as_slice)).collect();
            codec.merge(&all, target);
            Ok::<_, String>(())
        },
    )?;
    Ok(arena)
}

fn append(file: &File, end: &AtomicU64, bytes: &[u8]) -> Result<(), String> {
    let offset = end.fetch_add(bytes.len() as u64, Ordering::Relaxed);
    let written = file.write_all_at(bytes, offset);
    written.map_err(|error| error.to_string())
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
                Ok(compressor) => compressor.compress(piece).map_err(|error| error.to_string()),
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
pub fn decompress(frames: &[Vec<u8>], tensors: &[Tensor]) -> Result<Buffer> {
    let byte_len = tensors.iter().map(|tensor| tensor.bytes.len() as u64).sum();
    let mut arena = Buffer::try_zeroed(byte_len)?;
    let mut rest: &mut [u8] = &mut arena;
    let mut targets = Vec::new();
    for piece in pieces(tensors) {
        targets.push(rest.split_off_mut(..piece.len()).unwrap_or_default());
    }
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
    Ok(arena)
}

/// Reads a file of the tensors' bytes by position into fresh memory: one stretch, in large pages.
///
/// # Errors
///
/// Where it cannot be read.
pub fn read(path: &Path, threads: Threads) -> Result<Buffer> {
    let file = File::open(path)?;
    let mut arena = Buffer::try_zeroed(file.metadata()?.len())?;
    let read = |(at, piece): (usize, &mut [u8])| file.read_exact_at(piece, (at * PIECE) as u64);
    match threads {
        Threads::One => arena.chunks_mut(PIECE).enumerate().try_for_each(read)?,
        Threads::All => arena.par_chunks_mut(PIECE).enumerate().try_for_each(read)?,
    }
    Ok(arena)
}

/// Sees that `arena` has the bytes of `tensors`, one after the other.
///
/// # Errors
///
/// The first tensor that has other bytes.
pub fn expect_arena(arena: &[u8], tensors: &[Tensor]) -> Result<()> {
    let mut rest = arena;
    for tensor in tensors {
        let found = rest.split_off(..tensor.bytes.len()).unwrap_or_default();
        crate::contestants::expect_bytes(tensor, found)?;
    }
    Ok(())
}

/// Reads a file from its beginning to its end, and keeps nothing.
///
/// # Errors
///
/// Where it cannot be read.
pub fn cat(path: &Path) -> Result<()> {
    let (mut file, mut piece) = (File::open(path)?, vec![0; PIECE]);
    while file.read(&mut piece)? > 0 {}
    Ok(())
}

/// Reads a file past the page cache on all threads, 8 MiB at a time into large pages, and keeps nothing.
///
/// # Errors
///
/// Where the file system does not take `O_DIRECT`.
pub fn cat_direct(path: &Path) -> Result<()> {
    /// What `O_DIRECT` asks of offsets, of lengths and of memory.
    const BLOCK: usize = 4096;
    let file = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path)?;
    let step = 8 * PIECE;
    let byte_len = file.metadata()?.len();
    let offsets: Vec<u64> = (0..byte_len).step_by(step).collect();
    let memory = || Buffer::try_zeroed((step + BLOCK) as u64);
    offsets.into_par_iter().with_max_len(1).try_for_each_init(
        memory,
        |memory, offset| -> Result<()> {
            let memory = memory.as_mut().map_err(|error| error.to_string())?;
            let start = memory.as_ptr().align_offset(BLOCK);
            let out = memory.get_mut(start..).and_then(|it| it.get_mut(..step));
            let read = file.read_at(out.ok_or("no room")?, offset)?;
            // The last piece is shorter.
            let is_whole = read == step || offset + read as u64 == byte_len;
            expect(is_whole, || "a short read".into())
        },
    )
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
        Digest::Crc32c => crc32c,
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
        Threads::All => bytes.par_chunks(PIECE).map(work).reduce(|| 0, u64::wrapping_add),
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
    tensors.iter().flat_map(|tensor| tensor.bytes.chunks(PIECE)).collect()
}

/// The frames of one tensor that hold some of its rows.
pub struct FramesOfRows {
    frames: Vec<(Vec<u8>, usize)>,
    /// The bytes of the rows, counted from the first byte of the first frame.
    rows: Range<usize>,
}

/// The frames that hold the second quarter of the rows of each of `tensors`, in the file at `path`.
///
/// # Errors
///
/// Where the file cannot be read, or a tensor is not of frames.
pub fn frames_of_rows(path: &Path, tensors: &[&Tensor]) -> Result<Vec<FramesOfRows>> {
    let file = zt::File::open(path)?;
    let of = |tensor: &&Tensor| {
        let handle = file.tensor(&tensor.name)?;
        let (source, _) = handle.stored_bytes("data")?;
        let blob = &handle.component("data")?.blob;
        let all = zt::container::codec::frames(&*source, blob)?.ok_or("no frames")?;
        let rows = tensor.shape.first().copied().unwrap_or(1);
        let row_len = tensor.bytes.len() as u64 / rows;
        let (start, end) = (rows / 4 * row_len, rows / 2 * row_len);
        let is_in = |frame: &zt::container::codec::Frame| {
            frame.content.offset() < end && frame.content.end() > start
        };
        let held: Vec<_> = all.into_iter().filter(is_in).collect();
        let first = held.first().map_or(0, |frame| frame.content.offset());
        let frames = held.iter().map(|frame| {
            let bytes = zt::container::bytes_of(&*source, frame.stored)?;
            Ok((bytes.to_vec(), frame.content.byte_len() as usize))
        });
        let frames = frames.collect::<Result<_>>()?;
        Ok(FramesOfRows { frames, rows: (start - first) as usize..(end - first) as usize })
    };
    tensors.iter().map(of).collect()
}

/// Decodes the frames of one tensor after the other, each on a thread of its own if there are several, and copies the rows.
///
/// # Errors
///
/// What zstd says.
pub fn decode_rows(tensors: &[FramesOfRows]) -> Result<Vec<Vec<u8>>> {
    let (mut decompressor, mut content) = (Decompressor::new()?, Vec::new());
    let rows = tensors.iter().map(|FramesOfRows { frames, rows }| {
        content.resize(frames.iter().map(|(_, len)| len).sum(), 0);
        if let [(frame, _)] = &frames[..] {
            decompressor.decompress_to_buffer(frame, &mut content[..])?;
        } else {
            let mut rest = &mut content[..];
            let targets = frames
                .iter()
                .map(|(frame, len)| (frame, rest.split_off_mut(..*len).unwrap_or_default()));
            let targets: Vec<_> = targets.collect();
            targets.into_par_iter().try_for_each_init(
                Decompressor::new,
                |state, (frame, target)| {
                    let state = state.as_mut().map_err(|error| error.to_string())?;
                    state
                        .decompress_to_buffer(frame, target)
                        .map(drop)
                        .map_err(|error| error.to_string())
                },
            )?;
        }
        Ok(content.get(rows.clone()).unwrap_or_default().to_vec())
    });
    rows.collect()
}

/// Opens a file, reads the chunks of `len` bytes that hold these bytes, hashes each, and copies the bytes.
///
/// # Errors
///
/// Where the file cannot be read.
pub fn read_chunks(path: &Path, bytes: Range<usize>, len: usize) -> Result<Vec<u8>> {
    let file = File::open(path)?;
    let end = bytes.end.next_multiple_of(len).min(file.metadata()?.len() as usize);
    let (mut chunk, mut found) = (vec![0; len], Vec::with_capacity(bytes.len()));
    for start in (bytes.start / len * len..end).step_by(len) {
        let chunk = &mut chunk[..len.min(end - start)];
        file.read_exact_at(chunk, start as u64)?;
        std::hint::black_box(crc32c(chunk));
        let part = bytes.start.max(start) - start..bytes.end.min(start + chunk.len()) - start;
        found.extend_from_slice(&chunk[part]);
    }
    Ok(found)
}
