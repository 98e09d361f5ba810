//! The filters of a dataset's chunks, and decoding. Spec: IV.A.2.l.

use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use zt::{Error, Result};

use crate::bytes::checksum::fletcher32;
use crate::bytes::cursor::Cursor;
use crate::bytes::fault::Hdf5Fault;
use crate::bytes::size::{in_memory, product, sum};
use crate::filters::bitshuffle::Bitshuffle;
use crate::filters::nbit::Nbit;
use crate::filters::scale_offset::ScaleOffset;
use crate::filters::shuffle::unshuffle;
use crate::filters::szip::{self, Szip};
use crate::filters::{blosc, blosc2, bzip2, lz4, lzf, zstd};

/// The filters that a writer applied, in its order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pipeline {
    filters: Vec<Filter>,
}

#[derive(Debug, Clone, PartialEq)]
enum Filter {
    Deflate,
    /// Bytes of an element.
    Shuffle(usize),
    Fletcher32,
    Lzf,
    Szip(Szip),
    Nbit(Nbit),
    ScaleOffset(ScaleOffset),
    Blosc,
    Blosc2,
    Bzip2,
    Lz4,
    Bitshuffle(Bitshuffle),
    Zstd,
    /// An unsupported filter. Chunks may skip it.
    Unknown {
        id: u16,
        name: &'static str,
    },
}

/// A decoded chunk of up to `LARGE` bytes may have any ratio that deflate allows. Each further stored
/// byte gives at most `LARGE_RATIO` bytes. A chunk is decoded as a whole, and real ones have some
/// megabytes.
const LARGE: u64 = 64 << 20;
const LARGE_RATIO: u64 = 64;

/// The most bytes that one byte of deflate can give. Two compressing filters in a row would multiply
/// it, but no writer applies two.
pub(crate) const MAX_RATIO: u64 = 1032;

/// The most filters that HDF5 allows: `H5Z_MAX_NFILTERS`.
const FILTERS_MAX: u8 = 32;

/// The names of filters in real files, supported or not.
const NAMES: [(u16, &str); 14] = [
    (1, "deflate"),
    (2, "shuffle"),
    (3, "fletcher32"),
    (4, "szip"),
    (5, "nbit"),
    (6, "scaleoffset"),
    (307, "bzip2"),
    (32000, "lzf"),
    (32001, "blosc"),
    (32004, "lz4"),
    (32008, "bitshuffle"),
    (32013, "zfp"),
    (32015, "zstd"),
    (32026, "blosc2"),
];

impl Pipeline {
    /// Reads the message. An unknown filter that is not optional is unsupported, and so is a filter
    /// that is applied twice.
    pub(crate) fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let version = cursor.u8()?;
        let count = cursor.u8()?;
        match version {
            1 => cursor.skip(6)?,
            2 => {}
            other => return Err(cursor.version(other)),
        }
        if count > FILTERS_MAX {
            return Err(cursor.field("the number of filters", count.into()));
        }
        let (mut ids, mut filters) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let (id, filter) = filter(cursor, version)?;
            // Writers apply each once, and each costs a pass over the whole chunk.
            if ids.contains(&id) {
                let name = name(id);
                return Err(Hdf5Fault::RepeatedFilter { id, name }.into());
            }
            ids.push(id);
            filters.push(filter);
        }
        Ok(Pipeline { filters })
    }

    /// Whether stored chunks are plain values.
    pub(crate) fn is_empty(&self) -> bool {
        self.filters.is_empty()
    }

    /// The most bytes of a decoded chunk that has `stored` bytes in the file.
    pub(crate) fn chunk_max(&self, stored: u64) -> u64 {
        let ratios = self.filters.iter().map(|filter| match filter {
            Filter::Szip(_) => szip::MAX_RATIO,
            // A number says how often a value is repeated.
            Filter::Blosc
            | Filter::Blosc2
            | Filter::Bzip2
            | Filter::Bitshuffle(_)
            | Filter::Zstd => u64::MAX,
            _ => MAX_RATIO,
        });
        let ratio = ratios.max().unwrap_or(MAX_RATIO);
        // Limits may saturate.
        let large = stored.saturating_mul(LARGE_RATIO).saturating_add(LARGE);
        stored.saturating_mul(ratio).min(large)
    }

    pub(crate) fn has_unknown(&self) -> bool {
        let mut filters = self.filters.iter();
        filters.any(|filter| matches!(filter, Filter::Unknown { .. }))
    }

    /// Refuses a chunk with an unsupported filter. The filters in `mask` were skipped.
    pub(crate) fn check_known(&self, mask: u32) -> Result<()> {
        self.applied(mask).try_for_each(|filter| match filter {
            Filter::Unknown { id, name } => Err(unknown(*id, name)),
            _ => Ok(()),
        })
    }

    /// The filters to undo, in the order of decoding: the last one that was applied comes first. The
    /// lowest bit of `mask` is set if the first filter was skipped, and so on.
    fn applied(&self, mask: u32) -> impl Iterator<Item = &Filter> {
        let is_left_out = move |at: usize| {
            let mask = u32::try_from(at).ok().and_then(|at| mask.checked_shr(at));
            mask.is_some_and(|mask| mask & 1 == 1)
        };
        let filters = self.filters.iter().enumerate().rev();
        filters.filter_map(move |(at, filter)| (!is_left_out(at)).then_some(filter))
    }

    /// Decodes a chunk of `byte_len` bytes. The filters in `mask` were skipped, the first in the
    /// lowest bit. It is refused if the stored bytes cannot give as many.
    pub(crate) fn decode(&self, stored: Vec<u8>, mask: u32, byte_len: usize) -> Result<Vec<u8>> {
        let most = self.chunk_max(stored.len() as u64);
        if byte_len as u64 > most {
            let (byte_len, limit) = (byte_len as u64, most);
            return Err(Hdf5Fault::ChunkSize { byte_len, limit }.into());
        }
        // A filter adds few bytes to data that it cannot compress.
        let limit = sum([byte_len as u64, byte_len as u64 / 8, 4 << 10])?;
        let limit = in_memory(limit.min(most))?;
        let mut bytes = stored;
        for filter in self.applied(mask) {
            bytes = filter.undo(bytes, limit, byte_len)?;
        }
        if bytes.len() != byte_len {
            let (expected, found) = (byte_len as u64, bytes.len() as u64);
            return Err(Hdf5Fault::Length { expected, found }.into());
        }
        Ok(bytes)
    }
}

fn name(id: u16) -> &'static str {
    let known = NAMES.iter().find(|(known, _)| *known == id);
    known.map_or("", |(_, name)| name)
}

fn unknown(id: u16, name: &'static str) -> Error {
    Hdf5Fault::Filter { id, name }.into()
}

fn filter(cursor: &mut Cursor<'_>, version: u8) -> Result<(u16, Filter)> {
    /// Below this id are the library's own filters, which have no names since version 2.
    const OWN: u16 = 256;
    /// A chunk may skip the filter if it cannot be applied.
    const OPTIONAL: u16 = 1;
    let id = cursor.u16()?;
    let name_len = match version {
        1 => cursor.u16()?,
        _ if id >= OWN => cursor.u16()?,
        _ => 0,
    };
    let flags = cursor.u16()?;
    let count = u64::from(cursor.u16()?);
    let start = cursor.position();
    cursor.skip(name_len.into())?;
    if version == 1 {
        cursor.align_8(start)?;
    }
    let mut values = cursor.part(product([count, 4])?, "a filter")?;
    if version == 1 && count % 2 == 1 {
        cursor.skip(4)?;
    }
    let mut all = values.clone();
    let mut parameters = || -> Result<Vec<u32>> { (0..count).map(|_| all.u32()).collect() };
    let name = name(id);
    let other = Filter::Unknown { id, name };
    let filter = match id {
        1 => Filter::Deflate,
        2 => Filter::Shuffle(in_memory(values.u32()?.into())?),
        3 => Filter::Fletcher32,
        4 => Szip::new(&parameters()?).map_or(other, Filter::Szip),
        5 => Nbit::new(&parameters()?).map_or(other, Filter::Nbit),
        6 => ScaleOffset::new(&parameters()?).map_or(other, Filter::ScaleOffset),
        307 => Filter::Bzip2,
        32000 => Filter::Lzf,
        32001 => Filter::Blosc,
        32004 => Filter::Lz4,
        32008 => Bitshuffle::new(&parameters()?).map_or(other, Filter::Bitshuffle),
        32015 => Filter::Zstd,
        32026 => Filter::Blosc2,
        _ => other,
    };
    match filter {
        Filter::Unknown { .. } if flags & OPTIONAL == 0 => Err(unknown(id, name)),
        filter => Ok((id, filter)),
    }
}

impl Filter {
    fn undo(&self, bytes: Vec<u8>, limit: usize, byte_len: usize) -> Result<Vec<u8>> {
        let invalid = |filter| Error::from(Hdf5Fault::Chunk { filter });
        match self {
            Filter::Deflate => {
                decompress_to_vec_zlib_with_limit(&bytes, limit).map_err(|_| invalid("deflate"))
            }
            Filter::Shuffle(element_len) => unshuffle(bytes, *element_len),
            Filter::Fletcher32 => check(bytes),
            Filter::Lzf => lzf::decompress(&bytes, limit).ok_or_else(|| invalid("lzf")),
            Filter::Szip(szip) => szip.decode(&bytes, limit).ok_or_else(|| invalid("szip")),
            Filter::Nbit(nbit) => nbit.decode(bytes, byte_len).ok_or_else(|| invalid("n-bit")),
            Filter::ScaleOffset(filter) => {
                let decoded = filter.decode(bytes, byte_len);
                decoded.ok_or_else(|| invalid("scale-offset"))
            }
            Filter::Blosc => blosc::decode(&bytes, limit),
            Filter::Blosc2 => blosc2::decode(&bytes, limit),
            Filter::Bzip2 => bzip2::decompress(&bytes, limit).ok_or_else(|| invalid("bzip2")),
            Filter::Lz4 => lz4::decompress(&bytes, limit).ok_or_else(|| invalid("lz4")),
            Filter::Bitshuffle(filter) => filter.decode(&bytes, limit),
            Filter::Zstd => zstd::decode(&bytes, limit, byte_len),
            Filter::Unknown { id, name } => Err(unknown(*id, name)),
        }
    }
}

/// Checks the checksum at the end and removes it. On some machines HDF5 before 1.6.3 swapped the bytes
/// of each half, and the library accepts both.
fn check(mut bytes: Vec<u8>) -> Result<Vec<u8>> {
    let filter = "fletcher32";
    let split = bytes.split_last_chunk::<4>();
    let (content, stored) = split.ok_or(Hdf5Fault::Chunk { filter })?;
    let expected = u32::from_le_bytes(*stored);
    let found = fletcher32(content);
    let swapped = (found & 0x00FF_00FF) << 8 | found >> 8 & 0x00FF_00FF;
    if found != expected && swapped != expected {
        return Err(Hdf5Fault::ChunkChecksum { expected, found }.into());
    }
    bytes.truncate(content.len());
    Ok(bytes)
}
