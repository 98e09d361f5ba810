//! Files of zTensor 2 laid out by hand: what its own writer would not write.
//!
//! Nothing here is shared with the reader under test, and nothing is checked.

use twox_hash::XxHash3_64;

use crate::cbor::{Cbor, map, text, uint, uints};

/// The first and the last eight bytes of a file.
pub const MAGIC: [u8; 8] = *b"\x89ZT2\r\n\x1A\n";

/// Where the first blob begins, and how far the others are apart at least.
pub const GRID: usize = 4096;

/// A file of some blobs, each at the next multiple of [`GRID`], and a manifest behind them.
#[must_use]
pub fn framed(blobs: &[&[u8]], manifest: &[u8]) -> Vec<u8> {
    let mut file = MAGIC.to_vec();
    for blob in blobs.iter().chain([&manifest]) {
        file.resize(file.len().next_multiple_of(GRID), 0);
        file.extend(*blob);
    }
    let offset = file.len() - manifest.len();
    let hash = XxHash3_64::oneshot(manifest);
    for field in [offset as u64, manifest.len() as u64, hash, 2] {
        file.extend(field.to_le_bytes());
    }
    file.extend(MAGIC);
    file
}

/// A map of text keys in the one order that is allowed.
#[must_use]
pub fn sorted(pairs: &[(&str, Cbor)]) -> Cbor {
    let pairs = pairs.iter().map(|(key, value)| (text(key), value.clone()));
    let mut pairs: Vec<_> = pairs.collect();
    pairs.sort();
    map(&pairs)
}

/// A manifest of these objects.
#[must_use]
pub fn manifest(objects: &[(&str, Cbor)]) -> Cbor {
    sorted(&[("objects", sorted(objects))])
}

/// An object.
#[must_use]
pub fn object(shape: &[u64], layout: &str, parts: &[(&str, Cbor)]) -> Cbor {
    sorted(&[("shape", uints(shape)), ("layout", text(layout)), ("parts", sorted(parts))])
}

/// A dense object.
#[must_use]
pub fn dense(shape: &[u64], data: Cbor) -> Cbor {
    object(shape, "dense", &[("data", data)])
}

/// A part, and further fields of it.
#[must_use]
pub fn part(dtype: &str, offset: u64, length: u64, more: &[(&str, Cbor)]) -> Cbor {
    let blob = uints(&[offset, length]);
    let fields = [("dtype", text(dtype)), ("blob", blob)];
    sorted(&[&fields[..], more].concat())
}

/// The fields of a part in seekable zstd.
#[must_use]
pub fn seekable(decoded_len: u64) -> [(&'static str, Cbor); 2] {
    [("encoding", text("zt.zstd-seekable/1")), ("decoded_length", uint(decoded_len))]
}

/// The table at the end of a seekable stream, of stored and content lengths.
#[must_use]
pub fn seek_table(frames: &[(u32, u32)]) -> Vec<u8> {
    let count = u32::try_from(frames.len()).unwrap_or(u32::MAX);
    let payload = count.saturating_mul(8).saturating_add(9);
    let mut table = [0x184D_2A5Eu32, payload].map(u32::to_le_bytes).concat();
    for (stored, content) in frames {
        table.extend(stored.to_le_bytes());
        table.extend(content.to_le_bytes());
    }
    table.extend(count.to_le_bytes());
    table.push(0);
    table.extend(0x8F92_EAB1u32.to_le_bytes());
    table
}
