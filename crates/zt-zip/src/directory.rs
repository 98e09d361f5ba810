//! The end of an archive and its directory: APPNOTE.TXT §4.3.12 to §4.3.16.
//!
//! The parser is our own. `rawzip` 0.5 has no dependency and no unsafe code, but its errors have no
//! offsets, and its user must find overlapping members and duplicate names.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::io;
use zt_container::fields::{Fields, Record};
use zt_container::{Limits, Source, Span, repeated};

use crate::error::{Error, Result, ZipViolation};
use crate::member::{Member, decoded};
use crate::records::{CENTRAL, END, END_64, LOCATOR_64, is_archive};

/// Bytes of the end record before the comment.
const END_LEN: u64 = 22;
/// Bytes at the end of the file that have the end record: the longest comment follows it.
const TAIL_LEN: u64 = END_LEN + 0xFFFF;
const LOCATOR_LEN: u64 = 20;
/// Bytes of the zip64 end record before its extensible part.
const END_64_LEN: u64 = 56;
/// Bytes of a directory entry before the name.
const CENTRAL_LEN: usize = 46;

/// The number of such a field is in the zip64 extension. §4.4.1.4.
const IN_ZIP64_16: u64 = 0xFFFF;
const IN_ZIP64_32: u64 = 0xFFFF_FFFF;

/// Where the directory is, and how many members the end record declares.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) span: Span,
    pub(super) count: u64,
    /// Bytes before the archive, if its offsets do not count them.
    pub(super) before: u64,
    /// The bytes after the archive.
    pub(super) after: Span,
    /// The end record, if the file ends within its comment.
    pub(super) cut: Option<Span>,
}

/// The directory as the end record or the zip64 end record declares it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Claim {
    count: u64,
    len: u64,
    offset: u64,
}

/// Finds the directory from the end of the file. It must end where its end record begins.
///
/// A file that begins with other data, such as a program that unpacks it, may end with an archive.
/// Then all offsets are relative to the archive, as in Python's `zipfile`. In a file that begins
/// like an archive, a directory at another offset means a second archive or a broken one.
///
/// The beginning is read only if an offset does not fit without it, because it may be far away.
pub(super) fn locate(source: &dyn Source) -> Result<Place> {
    let found = directory(source, &|| begins_otherwise(source));
    if let Err(error) = &found
        && !error.is_io()
        && !begins_otherwise(source)?
        && let Ok(second) = directory(source, &|| Ok(true))
        // At 0 it is the same archive, and the first error is more precise.
        && second.before > 0
    {
        let offset = second.before;
        return Err(ZipViolation::Several { offset }.into());
    }
    found
}

/// Whether a file begins with other data than an archive.
pub(super) fn begins_otherwise(source: &dyn Source) -> Result<bool> {
    let mut head = [0; 4];
    Ok(source.byte_len() >= 4 && {
        source.read_at(0, &mut head)?;
        !is_archive(&head)
    })
}

fn directory(source: &dyn Source, is_shifted: &dyn Fn() -> Result<bool>) -> Result<Place> {
    let found = end_record(source)?;
    let record = found.record;
    let (claim, end, named) = match zip64(source, record.offset(), found.claim, is_shifted)? {
        Some(found) => found,
        None => (found.claim, record.offset(), record.offset()),
    };
    let contradicted =
        || Error::from(ZipViolation::Place { offset: claim.offset, len: claim.len, end });
    let start = end.checked_sub(claim.len).ok_or_else(contradicted)?;
    let before = start.checked_sub(claim.offset).ok_or_else(contradicted)?;
    // The offset of the zip64 record is relative to the archive too.
    let is_same = named == end || named.checked_add(before) == Some(end);
    if before > 0 && !(is_same && is_shifted()?) {
        return Err(contradicted());
    }
    Ok(Place {
        span: Span::between(start, end).ok_or_else(contradicted)?,
        count: claim.count,
        before,
        after: Span::between(record.end(), source.byte_len()).ok_or(ZipViolation::NoEnd)?,
        cut: found.is_cut.then_some(record),
    })
}

/// The record at the end of an archive.
struct EndRecord {
    record: Span,
    /// Whether the file ends within the comment.
    is_cut: bool,
    claim: Claim,
}

/// The last end record whose comment ends with the file; else the last one. The file may go on behind
/// its comment, or end within it: then Python's `zipfile` takes the last one too.
fn end_record(source: &dyn Source) -> Result<EndRecord> {
    let len = source.byte_len().min(TAIL_LEN);
    let start = source.byte_len().strict_sub(len);
    let tail = read(source, start, len)?;
    let mut records = (0..tail.len()).rev().filter_map(|at| {
        let record = tail.get(at..)?;
        let fields = Fields(record.strip_prefix(END)?);
        let found = record.len() as u64;
        let declared = END_LEN.checked_add(fields.u16(16)?.into())?;
        let span = Span::new(start.checked_add(at as u64)?, declared.min(found))?;
        Some((span, declared.cmp(&found), fields))
    });
    let last = records.next().ok_or(ZipViolation::NoEnd)?;
    let exact = match last.1 {
        Ordering::Equal => None,
        _ => records.find(|(_, length, _)| length.is_eq()),
    };
    let (record, length, fields) = exact.unwrap_or(last);
    let numbers = || {
        let disks = (fields.u16(0)?, fields.u16(2)?);
        let on_this_disk = fields.u16(4)?;
        let claim = Claim {
            count: u64::from(fields.u16(6)?),
            len: u64::from(fields.u32(8)?),
            offset: u64::from(fields.u32(12)?),
        };
        Some((disks, u64::from(on_this_disk), claim))
    };
    let (disks, on_this_disk, claim) = numbers().ok_or(ZipViolation::NoEnd)?;
    let is_one_volume = matches!(disks, (0, 0) | (0xFFFF, 0xFFFF)) && on_this_disk == claim.count;
    if !is_one_volume {
        return Err(ZipViolation::Volumes.into());
    }
    Ok(EndRecord { record, is_cut: length.is_gt(), claim })
}

/// The zip64 end record that belongs to the end record at `end`: its numbers, its offset and the
/// declared offset. In an archive that `is_shifted` the record is assumed to have no extensible
/// part, as in Python's `zipfile`.
fn zip64(
    source: &dyn Source,
    end: u64,
    short: Claim,
    is_shifted: &dyn Fn() -> Result<bool>,
) -> Result<Option<(Claim, u64, u64)>> {
    let needs_it =
        short.count == IN_ZIP64_16 || short.len == IN_ZIP64_32 || short.offset == IN_ZIP64_32;
    let locator = match end.checked_sub(LOCATOR_LEN) {
        Some(at) => Some((at, read(source, at, LOCATOR_LEN)?)),
        None => None,
    };
    let found = locator.as_ref().and_then(|(at, bytes)| {
        let fields = Fields(bytes.strip_prefix(LOCATOR_64)?);
        Some((*at, fields))
    });
    let Some((locator_at, locator)) = found else {
        // A number may have the value of the marker itself.
        let is_sound = !needs_it || short.len.checked_add(short.offset) == Some(end);
        return if is_sound { Ok(None) } else { Err(ZipViolation::Zip64.into()) };
    };
    let broken = || Error::from(ZipViolation::Zip64);
    let named = locator.u64(4).ok_or_else(broken)?;
    let is_close = named.checked_add(END_64_LEN) == Some(locator_at);
    let at = if !is_close && is_shifted()? {
        locator_at.checked_sub(END_64_LEN).ok_or_else(broken)?
    } else {
        named
    };
    if (locator.u32(0), locator.u32(12)) != (Some(0), Some(1)) {
        return Err(ZipViolation::Volumes.into());
    }
    let is_inside = at.checked_add(END_64_LEN).is_some_and(|end| end <= locator_at);
    is_inside.then_some(()).ok_or_else(broken)?;
    let record = read(source, at, END_64_LEN)?;
    let fields = Fields(record.strip_prefix(END_64).ok_or_else(broken)?);
    let numbers = || {
        let len = fields.u64(0)?;
        // The record's own length does not count these 12 bytes.
        let record_end = at.checked_add(12)?.checked_add(len)?;
        let volumes = (fields.u32(12)?, fields.u32(16)?);
        let on_this_disk = fields.u64(20)?;
        let claim = Claim { count: fields.u64(28)?, len: fields.u64(36)?, offset: fields.u64(44)? };
        let is_sound = record_end == locator_at && volumes == (0, 0) && on_this_disk == claim.count;
        is_sound.then_some(claim)
    };
    let claim = numbers().ok_or_else(broken)?;
    // A reader without zip64 must find the same directory.
    let agrees = |short: u64, long: u64, marker: u64| short == marker || short == long;
    let is_same = agrees(short.count, claim.count, IN_ZIP64_16)
        && agrees(short.len, claim.len, IN_ZIP64_32)
        && agrees(short.offset, claim.offset, IN_ZIP64_32);
    is_same.then_some(Some((claim, at, named))).ok_or_else(broken)
}

/// Every member, in the order of the directory, which holds nothing else.
pub(super) fn members(source: &dyn Source, place: Place, limits: &Limits) -> Result<Vec<Member>> {
    let (found, limit) = (place.span.byte_len(), limits.manifest_len);
    if found > limit {
        return Err(ZipViolation::DirectoryTooLong { found, limit }.into());
    }
    let declared = place.count;
    let count = ZipViolation::Count { declared };
    // Compared before memory is reserved: an entry takes at least so many bytes.
    let least = declared.checked_mul(CENTRAL_LEN as u64);
    if least.is_none_or(|least| least > found) {
        return Err(count.into());
    }
    let directory = read(source, place.span.offset(), found)?;
    let mut rest: &[u8] = &directory;
    let mut members = Vec::new();
    while !rest.is_empty() {
        let index = members.len() as u64;
        let damaged = || Error::from(ZipViolation::Record { index });
        let entry = Entry::parse(rest).ok_or_else(damaged)?;
        if entry.name.len() > limits.name_len {
            let (found, limit) = (entry.name.len(), limits.name_len);
            return Err(ZipViolation::NameTooLong { found, limit }.into());
        }
        members.push(entry.member(place.before));
        rest = entry.rest;
    }
    // The decoded names: two encodings of one name differ in bytes.
    let mut names: Vec<&str> = members.iter().map(Member::name).collect();
    if let Some(name) = repeated(&mut names) {
        let name = name.to_owned();
        return Err(ZipViolation::Repeated { name }.into());
    }
    if members.len() as u64 != declared {
        return Err(count.into());
    }
    Ok(members)
}

/// One entry of the directory. §4.3.12.
struct Entry<'b> {
    fields: Record<'b>,
    name: &'b [u8],
    extra: &'b [u8],
    rest: &'b [u8],
}

impl<'b> Entry<'b> {
    fn parse(bytes: &'b [u8]) -> Option<Self> {
        let (fixed, rest) = bytes.split_at_checked(CENTRAL_LEN)?;
        let fields = Record(fixed.strip_prefix(CENTRAL)?);
        let len = |at| usize::from(fields.u16(at));
        let (name, rest) = rest.split_at_checked(len(24))?;
        let (extra, rest) = rest.split_at_checked(len(26))?;
        let (_comment, rest) = rest.split_at_checked(len(28))?;
        Some(Entry { fields, name, extra, rest })
    }

    /// The member of an archive that begins after `before` bytes.
    fn member(&self, before: u64) -> Member {
        let short = [20, 16, 38].map(|at| self.fields.u32(at));
        let ([byte_len, stored_len, header], is_whole) = numbers(short, self.extra);
        let flags = self.fields.u16(4);
        Member {
            name: decoded(self.name, flags),
            raw_name: self.name.into(),
            flags,
            method: self.fields.u16(6),
            crc: self.fields.u32(12),
            stored_len,
            byte_len,
            // Saturates on purpose: 2^64 - 1 is above the limit of every member.
            header: header.saturating_add(before),
            limit: 0,
            is_whole,
            cut: None,
        }
    }
}

/// The numbers of a record. The zip64 extension has those that the record lacks, in this order. §4.5.3. And
/// whether it has all of them.
pub(super) fn numbers<const N: usize>(short: [u32; N], extra: &[u8]) -> ([u64; N], bool) {
    let mut zip64 = Fields(extension(extra, 1).unwrap_or_default());
    let mut is_whole = true;
    let numbers = short.map(|short| {
        let short = u64::from(short);
        if short != IN_ZIP64_32 {
            return short;
        }
        match zip64.u64(0) {
            Some(number) => {
                zip64 = Fields(zip64.0.get(8..).unwrap_or_default());
                number
            }
            None => {
                is_whole = false;
                short
            }
        }
    });
    (numbers, is_whole)
}

/// The extension with that id. Padding ends the list.
fn extension(extra: &[u8], id: u16) -> Option<&[u8]> {
    let mut rest = extra;
    loop {
        let fields = Fields(rest);
        let (found, len) = (fields.u16(0)?, usize::from(fields.u16(2)?));
        let content = rest.get(4..)?.get(..len)?;
        if found == id {
            return Some(content);
        }
        rest = rest.get(4..)?.get(len..)?;
    }
}

/// The bytes of a range; [`zt_container::Error::Io`] for one outside the file.
pub(super) fn read(source: &dyn Source, offset: u64, len: u64) -> Result<Cow<'_, [u8]>> {
    let span = Span::new(offset, len).ok_or(io::Error::from(io::ErrorKind::UnexpectedEof))?;
    Ok(zt_container::bytes_of(source, span)?)
}
