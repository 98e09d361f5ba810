//! One component: where it lies, how it is stored, what it decodes to (§4 to §8).

use sha2::{Digest, Sha256};

use super::cbor::Item;
use super::framing::{Framing, Layout};
use super::{Budget, get, types};

/// How many times its stored bytes a zstd component can hold (§5.2).
pub(super) const EXPANSION: u64 = 32_768;

/// Bytes that have one digest in a table (§6.1).
const CHUNK: u64 = 1_048_576;

/// Bytes that the value of `zt.chunks` takes at most (§6.1).
const LONGEST_CHUNKS: usize = 256;

/// What a manifest says of a component, its types checked.
#[derive(Debug, Clone)]
pub(super) struct Component {
    /// Spelled as in 1.2; `None` where 1.0 states none.
    pub(super) dtype: Option<String>,
    /// Not where it repeats the dtype.
    pub(super) logical: Option<String>,
    pub(super) offset: u64,
    pub(super) length: u64,
    pub(super) is_zstd: bool,
    pub(super) uncompressed: Option<u64>,
    pub(super) digest: Option<String>,
    /// Elements of a raw blob are big-endian.
    pub(super) is_big: bool,
    /// The digests of its chunks.
    pub(super) table: Option<Table>,
}

/// What a manifest says of a table of chunk digests.
#[derive(Debug, Clone)]
pub(super) struct Table {
    offset: u64,
    length: u64,
    digest: String,
}

impl Table {
    /// `None` where the three keys are not there, and for a value that is too long.
    pub(super) fn read(value: &Item) -> Option<Self> {
        let fields = match value {
            Item::Map(fields, ..=LONGEST_CHUNKS) => fields,
            _ => return None,
        };
        Some(Table {
            offset: get(fields, "offset")?.as_unsigned()?,
            length: get(fields, "length")?.as_unsigned()?,
            digest: get(fields, "digest")?.as_text()?.to_owned(),
        })
    }
}

impl Component {
    /// The decoded length, where the manifest states it.
    pub(super) fn decoded_len(&self) -> Option<u64> {
        if self.is_zstd { self.uncompressed } else { Some(self.length) }
    }

    /// Bytes of a value; `None` with an unknown logical type or dtype.
    pub(super) fn value_len(&self) -> Option<u64> {
        let width = types::width(self.dtype.as_deref()?)?;
        match &self.logical {
            None => Some(width),
            Some(name) => types::logical(name).map(|(_, count)| width * count),
        }
    }

    /// The number of values, where the length and the type are known.
    pub(super) fn count(&self) -> Option<u64> {
        Some(self.decoded_len()? / self.value_len()?)
    }

    /// Every component's length is a multiple of this.
    pub(super) fn unit(&self) -> u64 {
        let width = self.dtype.as_deref().and_then(types::width);
        self.value_len().or(width).unwrap_or(1)
    }

    /// `None` where the component makes its object faulty, whatever the format.
    pub(super) fn check(&self, framing: &Framing, budget: Budget) -> Option<()> {
        let end = self.offset.checked_add(self.length)?;
        let is_nothing_at_zero = self.offset == 0 && self.length == 0;
        let is_inside = (8..=framing.start).contains(&self.offset) && end <= framing.start;
        let is_aligned = self.offset.is_multiple_of(64) || framing.layout != Layout::V1_1;
        let knows_logical = self.logical.as_deref().and_then(types::logical);
        let lies_right =
            knows_logical.is_none_or(|(dtype, _)| self.dtype.as_deref() == Some(dtype));
        let digest_is_one = self.digest.as_deref().is_none_or(|text| parse_digest(text).is_some());
        if !(is_nothing_at_zero || is_inside) || !is_aligned || !lies_right || !digest_is_one {
            return None;
        }
        if let Some(len) = self.uncompressed {
            if !self.is_zstd && len != self.length {
                return None;
            }
            if self.is_zstd
                && (len > budget.decoded_len || len > self.length.saturating_mul(EXPANSION))
            {
                return None;
            }
        }
        let is_whole = self.decoded_len().is_none_or(|len| len.is_multiple_of(self.unit()));
        is_whole.then_some(())
    }

    /// Whether the table and every chunk have their digests. A table that cannot be used is passed over.
    pub(super) fn chunks_are_right(&self, file: &[u8], framing: &Framing) -> bool {
        let Some(table) = self.table.as_ref().filter(|_| !self.is_zstd) else {
            return true;
        };
        let sum = parse_digest(&table.digest);
        let width = match &sum {
            Some(Sum::Crc32c(_)) => 4,
            Some(Sum::Sha256(_)) => 32,
            Some(Sum::Unknown) | None => return true,
        };
        let fits = table.length == width * self.length.div_ceil(CHUNK);
        let end = table.offset.checked_add(table.length);
        let is_inside = table.offset >= 8 && end.is_some_and(|end| end <= framing.start);
        if self.length <= CHUNK || !fits || !is_inside {
            return true;
        }
        let range = |offset: u64, length: u64| &file[offset as usize..][..length as usize];
        let entries = range(table.offset, table.length);
        let chunks = range(self.offset, self.length).chunks(CHUNK as usize);
        let is_right = |(chunk, entry): (&[u8], &[u8])| match width {
            4 => crc32c(chunk).to_le_bytes() == entry,
            _ => Sha256::digest(chunk)[..] == *entry,
        };
        sum.is_some_and(|sum| sum.is_of(entries))
            && chunks.zip(entries.chunks(width as usize)).all(is_right)
    }

    /// The decoded little-endian bytes; `None` where they cannot be had. `demanded` is the length
    /// that the format asks for, which only matters where the manifest states none.
    pub(super) fn content(
        &self,
        file: &[u8],
        demanded: Option<u64>,
        budget: Budget,
    ) -> Option<Vec<u8>> {
        let stored = match self.length {
            0 => &[],
            len => &file[self.offset as usize..][..len as usize],
        };
        if let Some(digest) = self.digest.as_deref().and_then(parse_digest)
            && !digest.is_of(stored)
        {
            return None;
        }
        if !self.is_zstd {
            let mut content = stored.to_vec();
            if self.is_big {
                let width = self.unit() as usize;
                content.chunks_exact_mut(width).for_each(<[u8]>::reverse);
            }
            return Some(content);
        }
        let expected = self.uncompressed.or(demanded);
        let most = budget.decoded_len.min(expected.unwrap_or(u64::MAX));
        let content = decompress(stored, most)?;
        let is_right = expected.is_none_or(|expected| expected == content.len() as u64);
        is_right.then_some(content)
    }
}

/// All frames, skippable ones left out; `None` for anything else, and for more than `most` bytes.
fn decompress(stored: &[u8], most: u64) -> Option<Vec<u8>> {
    if stored.is_empty() {
        return Some(Vec::new());
    }
    // What no stream exceeds (§5.2) need not be provided for.
    let most = most.min(EXPANSION.saturating_mul(stored.len() as u64));
    let mut decompressor = zstd::bulk::Decompressor::new().ok()?;
    decompressor.decompress(stored, usize::try_from(most).ok()?).ok()
}

enum Sum {
    Crc32c(u32),
    Sha256(Vec<u8>),
    Unknown,
}

impl Sum {
    fn is_of(&self, stored: &[u8]) -> bool {
        match self {
            Sum::Crc32c(sum) => *sum == crc32c(stored),
            Sum::Sha256(sum) => Sha256::digest(stored)[..] == sum[..],
            Sum::Unknown => true,
        }
    }
}

/// `None` for what is no digest.
fn parse_digest(text: &str) -> Option<Sum> {
    let (algorithm, value) = text.split_once(':')?;
    if algorithm.is_empty() {
        return None;
    }
    let digits = value.strip_prefix("0x").or(value.strip_prefix("0X")).unwrap_or(value);
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    match algorithm.to_ascii_lowercase().as_str() {
        "crc32c" if is_hex && (1..=8).contains(&digits.len()) => {
            u32::from_str_radix(digits, 16).ok().map(Sum::Crc32c)
        }
        "sha256" if is_hex && digits.len() == 64 => {
            let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).ok();
            let bytes = (0..64).step_by(2).map(byte).collect::<Option<Vec<u8>>>();
            bytes.map(Sum::Sha256)
        }
        "crc32c" | "sha256" => None,
        _ => Some(Sum::Unknown),
    }
}

/// Whether a manifest has the digest that it carries of itself (§3.6), or carries none.
pub(super) fn has_own_digest(manifest: &[u8]) -> bool {
    let fixed = b"\x72zt.manifest_digest\x71crc32c:0x";
    let Some(start) = manifest.len().checked_sub(fixed.len() + 8) else {
        return true;
    };
    let (covered, digits) = manifest.split_at(start + fixed.len());
    let same = covered[start..].iter().zip(fixed).filter(|(found, right)| found == right).count();
    let right = format!("{:08X}", crc32c(covered));
    same + 8 < fixed.len() || same == fixed.len() && digits == right.as_bytes()
}

/// Castagnoli's checksum, bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let bit = |sum: u32| match sum & 1 {
        1 => sum >> 1 ^ 0x82f6_3b78,
        _ => sum >> 1,
    };
    let byte = |sum: u32, byte: &u8| (0..8).fold(sum ^ u32::from(*byte), |sum, _| bit(sum));
    !bytes.iter().fold(u32::MAX, byte)
}

#[test]
fn the_check_value_of_the_specification() {
    assert_eq!(crc32c(b"123456789"), 0xe306_9283);
}
