//! Checks an object's map. Spec: §3.3 to §5, Appendix A.

use twox_hash::XxHash3_64;
use zt::manifest::Text;
use zt::{Checksum, DType, Digest, Error, RawComponent, Result, Span};

use crate::footer::ALIGNMENT;
use crate::manifest::{Entry, abridged, is_digest};
use crate::violation::Violation;

/// The checksum of parts. Spec: §3.4.
static XXH3: Checksum = Checksum {
    name: "xxh3",
    hasher: || Box::new(XxHash3_64::new()),
    combine: None,
    spell: |sum| format!("{sum:016x}"),
};

/// The layouts that this crate interprets. Spec: §5.1, and the profiles of these names.
pub(super) const DENSE: &str = "dense";
pub(super) const CSR: &str = "zt.sparse_csr/1";
pub(super) const COO: &str = "zt.sparse_coo/1";

/// The encoding that this crate decodes.
const SEEKABLE: &str = "zt.zstd-seekable/1";

/// An exponent in each byte. `.zt` has its values under another name.
const E8M0: &str = "f8_e8m0";
const E8M0_OF_ZT: &str = "f8_e8m0fnu";
/// Two elements in each byte.
pub(super) const F4: &str = "f4_e2m1";

/// A part of a valid object.
#[derive(Debug)]
pub(super) struct StoredPart {
    pub(super) dtype: DType,
    pub(super) logical_type: Option<Text>,
    pub(super) stored: Span,
    /// `None` without an encoding.
    pub(super) decoded_len: Option<u64>,
    /// The digest of the decoded bytes.
    pub(super) digest: Option<Digest>,
}

impl StoredPart {
    pub(super) fn byte_len(&self) -> u64 {
        self.decoded_len.unwrap_or(self.stored.byte_len())
    }

    fn is_plain_index(&self) -> bool {
        self.logical_type.is_none() && matches!(self.dtype, DType::U32 | DType::U64)
    }

    /// Checks the bytes of `count` elements, for types that only this crate knows. The registry checks
    /// the other types.
    fn check_packed(&self, count: u64) -> Result<(), Violation> {
        let expected = match self.logical_type.as_deref() {
            Some(F4) => count.div_ceil(2),
            Some(E8M0_OF_ZT) => count,
            _ => return Ok(()),
        };
        let found = self.byte_len();
        if found != expected {
            return Err(Violation::Size { expected, found });
        }
        Ok(())
    }
}

impl Entry {
    /// The checked parts, in the order of the components. The error is the first rule that the
    /// object breaks. The region of its blobs is checked later.
    pub(super) fn check(&self) -> Result<Vec<StoredPart>> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let shape = self.raw.shape.as_deref().unwrap_or_default();
        // In the order of the dimensions, as in zTensor's own reader: both refuse a product that
        // overflows before it reaches a zero.
        let mut dimensions = shape.iter();
        let count = dimensions.try_fold(1u64, |count, dimension| count.checked_mul(*dimension));
        let count = count.ok_or(Violation::Overflow)?;
        let mut parts = Vec::with_capacity(self.raw.components.len());
        for (role, raw) in &self.raw.components {
            parts.push(part(raw).map_err(|error| error.with_component(role))?);
        }
        let roles = self.raw.components.iter().map(|(role, _)| &**role);
        let named: Vec<(&str, &StoredPart)> = roles.zip(&parts).collect();
        match self.raw.format.as_deref() {
            Some(DENSE) => check_dense(&named, count)?,
            Some(CSR) => check_csr(&named)?,
            Some(COO) => check_coo(&named, shape.len() as u64)?,
            _ => {}
        }
        Ok(parts)
    }
}

fn part(raw: &RawComponent) -> Result<StoredPart> {
    let stored = raw.dtype.as_deref().unwrap_or_default();
    // In zTensor 2, `bool` is a logical type and no dtype. Spec: §4.1.
    let known = |dtype: &&DType| dtype.as_str() == stored && **dtype != DType::Bool;
    let unknown = || Violation::DType { found: abridged(stored) };
    let mut dtype = *DType::ALL.iter().find(known).ok_or_else(unknown)?;
    let mut logical_type = raw.logical_type.clone();
    if let Some(name) = raw.logical_type.as_deref() {
        // The registry checks the other types. Spec: Appendix A.
        if matches!(name, "bool" | E8M0 | F4) && dtype != DType::U8 {
            let (name, found) = (name.to_owned(), dtype);
            return Err(Violation::LogicalType { name, found }.into());
        }
        if name == "bool" {
            dtype = DType::Bool;
            logical_type = None;
        }
        if name == E8M0 {
            logical_type = Some(E8M0_OF_ZT.into());
        }
    }
    let (Some(offset), Some(length)) = (raw.offset, raw.length) else {
        return Err(Violation::Missing { field: "blob" }.into());
    };
    if !offset.is_multiple_of(ALIGNMENT) || offset < ALIGNMENT {
        let what = "the blob";
        return Err(Error::from(Violation::Alignment { what, offset }).with_offset(offset));
    }
    let stored =
        Span::new(offset, length).ok_or_else(|| outside(offset, length, Span::default()))?;
    match (raw.encoding.as_deref(), raw.decoded_len) {
        (None, Some(_)) => return Err(Violation::DecodedLen.into()),
        (Some(_), None) => return Err(Violation::NoDecodedLen.into()),
        (Some(found), _) if found != SEEKABLE => {
            let found = abridged(found);
            return Err(Violation::Encoding { found }.into());
        }
        _ => {}
    }
    Ok(StoredPart {
        dtype,
        logical_type,
        stored,
        decoded_len: raw.decoded_len,
        digest: raw.digest.as_deref().map(digest).transpose()?,
    })
}

/// The error for a blob that leaves the region of blobs.
pub(super) fn outside(offset: u64, byte_len: u64, region: Span) -> Error {
    let violation = zt::container::FramingViolation::Bounds { offset, byte_len, region };
    zt::container::Error::Malformed(violation).into()
}

/// Parses a digest. An unknown algorithm is no error, because the field is open. Spec: §3.4.
fn digest(text: &str) -> Result<Digest> {
    let malformed = || Violation::Digest { text: abridged(text) };
    let (algorithm, digits) = text.split_once(':').ok_or_else(malformed)?;
    if !is_digest(text) {
        return Err(malformed().into());
    }
    match algorithm {
        "xxh3" => {
            let sum = u64::from_str_radix(digits, 16).ok();
            let sum = sum.filter(|_| digits.len() == 16);
            Ok(XXH3.of(sum.ok_or_else(malformed)?))
        }
        "sha256" => Ok(text.parse()?),
        _ => Ok(Digest::Unknown { algorithm: algorithm.to_owned(), value: digits.to_owned() }),
    }
}

fn other_parts(layout: &'static str, expected: &'static str) -> Error {
    Violation::Parts { layout, expected }.into()
}

fn check_dense(parts: &[(&str, &StoredPart)], count: u64) -> Result<()> {
    let [("data", data)] = parts else {
        return Err(other_parts(DENSE, "data"));
    };
    Ok(data.check_packed(count)?)
}

/// `zt.sparse_csr-1.md`, "Validation".
fn check_csr(parts: &[(&str, &StoredPart)]) -> Result<()> {
    // In the order of the manifest's keys: shorter names first.
    let [("indptr", indptr), ("values", values), ("indices", indices)] = parts else {
        return Err(other_parts(CSR, "values, indices and indptr"));
    };
    if !indices.is_plain_index() || !indptr.is_plain_index() || indices.dtype != indptr.dtype {
        return Err(Violation::IndexType.into());
    }
    let width = indices.dtype.byte_len() as u64;
    let stored = indices.byte_len().checked_div(width);
    Ok(values.check_packed(stored.ok_or(Violation::IndexType)?)?)
}

/// `zt.sparse_coo-1.md`, "Validation".
fn check_coo(parts: &[(&str, &StoredPart)], rank: u64) -> Result<()> {
    let [("coords", coords), ("values", values)] = parts else {
        return Err(other_parts(COO, "values and coords"));
    };
    if !coords.is_plain_index() {
        return Err(Violation::IndexType.into());
    }
    let byte_len = coords.byte_len();
    let row = rank.checked_mul(coords.dtype.byte_len() as u64);
    let row = row.filter(|row| byte_len.is_multiple_of(*row));
    let stored = row.and_then(|row| byte_len.checked_div(row));
    Ok(values.check_packed(stored.ok_or(Violation::Coords { rank, byte_len })?)?)
}
