//! The end of an archive and its directory: APPNOTE.TXT §4.3.12 to §4.3.16.

use std::borrow::Cow;

use zt::{Error, Limits, Result, Source, Span};
use zt_foreign::{fields::Fields, repeated};

use crate::member::Member;
use crate::{CENTRAL, END, END_64, LOCATOR_64, Violation, is_archive};

/// Bytes of the end record before the comment.
const END_LEN: u64 = 22;
/// Bytes of a comment, at most.
const COMMENT_MAX: u64 = 0xFFFF;
const LOCATOR_LEN: u64 = 20;
/// Bytes of the zip64 end record before what may extend it.
const END_64_LEN: u64 = 56;
/// Bytes of a directory entry before the name.
const CENTRAL_LEN: usize = 46;

/// A field of this value has its number in the zip64 extension. §4.4.1.4.
const IN_ZIP64_16: u64 = 0xFFFF;
const IN_ZIP64_32: u64 = 0xFFFF_FFFF;

/// Where the directory is, and how many members it is said to have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) span: Span,
    pub(super) count: u64,
    /// Bytes before the archive, which its offsets do not count.
    pub(super) before: u64,
    /// The file does not begin like an archive.
    pub(super) begins_otherwise: bool,
    /// The bytes behind it.
    pub(super) behind: Span,
}

/// What the end record, or its zip64 form, says of the directory.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Claim {
    count: u64,
    len: u64,
    offset: u64,
}

/// Finds the directory from the end of the file. It has to end where its end record begins.
///
/// A file that does not begin like an archive may have one behind something else, such as the
/// program that unpacks it: then all offsets are off by as much, as Python's `zipfile` takes it.
/// One that does begin so and whose directory is further on is two archives, or lies.
pub(super) fn locate(source: &dyn Source) -> Result<Place> {
    let mut head = [0; 4];
    let is_shifted = source.byte_len() >= 4 && {
        source.read_at(0, &mut head)?;
        !is_archive(&head)
    };
    let found = directory(source, is_shifted);
    if let Err(error) = &found
        && !is_shifted
        && error.kind() != zt::ErrorKind::Io
        && let Ok(second) = directory(source, true)
        // Else it is this one, and what is broken says more.
        && second.before > 0
    {
        let offset = second.before;
        return Err(Error::from(Violation::Several { offset }).with_offset(offset));
    }
    found
}

fn directory(source: &dyn Source, is_shifted: bool) -> Result<Place> {
    let (record, claim) = end_record(source)?;
    let (claim, end, named) = match zip64(source, record.offset(), claim, is_shifted)? {
        Some(found) => found,
        None => (claim, record.offset(), record.offset()),
    };
    let contradicted = || {
        Error::from(Violation::Place {
            offset: claim.offset,
            len: claim.len,
            end,
        })
    };
    let place = Span::new(claim.offset, claim.len).ok_or_else(contradicted)?;
    let before = end.checked_sub(place.end()).ok_or_else(contradicted)?;
    // The zip64 record is said to be as far from where it is.
    let is_same = named == end || named.checked_add(before) == Some(end);
    if before > 0 && !(is_shifted && is_same) {
        return Err(contradicted());
    }
    let start = claim.offset.saturating_add(before);
    Ok(Place {
        span: Span::new(start, claim.len).ok_or_else(contradicted)?,
        count: claim.count,
        before,
        begins_otherwise: is_shifted,
        behind: Span::between(record.end(), source.byte_len()).unwrap_or_default(),
    })
}

/// The last end record whose comment reaches exactly to the end of the file; where there is none, the
/// last whose comment is there.
fn end_record(source: &dyn Source) -> Result<(Span, Claim)> {
    let file_len = source.byte_len();
    let tail_len = file_len.min(END_LEN.saturating_add(COMMENT_MAX));
    let start = file_len.saturating_sub(tail_len);
    let tail = read(source, start, tail_len)?;
    let mut records = (0..tail.len()).rev().filter_map(|at| {
        let record = tail.get(at..)?;
        let fields = Fields(record.strip_prefix(END)?);
        let len = END_LEN.saturating_add(fields.u16(16)?.into());
        let behind = (record.len() as u64).checked_sub(len)?;
        Some((start.saturating_add(at as u64), len, behind, fields))
    });
    let last = records.next().ok_or(Violation::NoEnd)?;
    let exact = match last {
        (.., 0, _) => None,
        _ => records.find(|(.., behind, _)| *behind == 0),
    };
    let (offset, len, _, fields) = exact.unwrap_or(last);
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
    let (disks, on_this_disk, claim) = numbers().ok_or(Violation::NoEnd)?;
    let is_one_volume = matches!(disks, (0, 0) | (0xFFFF, 0xFFFF)) && on_this_disk == claim.count;
    if !is_one_volume {
        return Err(Violation::Volumes.into());
    }
    let record = Span::new(offset, len).ok_or(Violation::NoEnd)?;
    Ok((record, claim))
}

/// The zip64 form of the end record that begins at `end`, where that form begins and where it is said
/// to begin; `None` where there is none. In an archive that `is_shifted` it is where the shortest
/// would be, as Python's `zipfile` takes it.
fn zip64(
    source: &dyn Source,
    end: u64,
    short: Claim,
    is_shifted: bool,
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
        // Numbers of exactly these values need no extension, if they are true.
        let may_be_true = !needs_it || short.len.checked_add(short.offset) == Some(end);
        return if may_be_true {
            Ok(None)
        } else {
            Err(Violation::Zip64.into())
        };
    };
    let broken = || Error::from(Violation::Zip64);
    let named = locator.u64(4).ok_or_else(broken)?;
    let at = match is_shifted {
        true => locator_at.checked_sub(END_64_LEN).ok_or_else(broken)?,
        false => named,
    };
    if (locator.u32(0), locator.u32(12)) != (Some(0), Some(1)) {
        return Err(Violation::Volumes.into());
    }
    let is_inside = at
        .checked_add(END_64_LEN)
        .is_some_and(|end| end <= locator_at);
    is_inside.then_some(()).ok_or_else(broken)?;
    let record = read(source, at, END_64_LEN)?;
    let fields = Fields(record.strip_prefix(END_64).ok_or_else(broken)?);
    let numbers = || {
        let len = fields.u64(0)?;
        // The record's own length does not count these 12 bytes.
        let record_end = at.checked_add(12)?.checked_add(len)?;
        let volumes = (fields.u32(12)?, fields.u32(16)?);
        let on_this_disk = fields.u64(20)?;
        let claim = Claim {
            count: fields.u64(28)?,
            len: fields.u64(36)?,
            offset: fields.u64(44)?,
        };
        let is_sound = record_end == locator_at && volumes == (0, 0) && on_this_disk == claim.count;
        is_sound.then_some(claim)
    };
    let claim = numbers().ok_or_else(broken)?;
    // Readers that know no zip64 must not see another directory.
    let agrees = |short: u64, long: u64, marker: u64| short == marker || short == long;
    let is_same = agrees(short.count, claim.count, IN_ZIP64_16)
        && agrees(short.len, claim.len, IN_ZIP64_32)
        && agrees(short.offset, claim.offset, IN_ZIP64_32);
    is_same
        .then_some(Some((claim, at, named)))
        .ok_or_else(broken)
}

/// Every member, in the order of the directory, which has to hold them and nothing else.
pub(super) fn members(source: &dyn Source, place: Place, limits: &Limits) -> Result<Vec<Member>> {
    let (found, limit) = (place.span.byte_len(), limits.manifest_len);
    if found > limit {
        return Err(Violation::DirectoryTooLong { found, limit }.into());
    }
    let declared = place.count;
    let count = Violation::Count { declared };
    // Before anything is reserved for them: every member takes some bytes.
    if declared.saturating_mul(CENTRAL_LEN as u64) > found {
        return Err(count.into());
    }
    let directory = read(source, place.span.offset(), found)?;
    let mut rest: &[u8] = &directory;
    let mut members = Vec::new();
    while !rest.is_empty() {
        let index = members.len() as u64;
        let damaged = || Error::from(Violation::Record { index });
        let entry = Entry::parse(rest).ok_or_else(damaged)?;
        if entry.name.len() > limits.name_len {
            let (found, limit) = (entry.name.len(), limits.name_len);
            return Err(Violation::NameTooLong { found, limit }.into());
        }
        members.push(entry.member(place.before));
        rest = entry.rest;
    }
    // One name can be written in two encodings.
    let mut names: Vec<&str> = members.iter().map(Member::name).collect();
    if let Some(name) = repeated(&mut names) {
        return Err(Error::from(Violation::Repeated).with_object(name));
    }
    if members.len() as u64 != declared {
        return Err(count.into());
    }
    Ok(members)
}

/// One entry of the directory. §4.3.12.
struct Entry<'b> {
    fields: Fields<'b>,
    name: &'b [u8],
    extra: &'b [u8],
    rest: &'b [u8],
}

impl<'b> Entry<'b> {
    fn parse(bytes: &'b [u8]) -> Option<Self> {
        let fields = Fields(bytes.strip_prefix(CENTRAL)?);
        let len = |at| fields.u16(at).map(usize::from);
        let (name, rest) = bytes.get(CENTRAL_LEN..)?.split_at_checked(len(24)?)?;
        let (extra, rest) = rest.split_at_checked(len(26)?)?;
        let (_comment, rest) = rest.split_at_checked(len(28)?)?;
        Some(Entry {
            fields,
            name,
            extra,
            rest,
        })
    }

    /// The member, in an archive that has so many bytes before it.
    fn member(&self, before: u64) -> Member {
        // The fixed part is there: `parse` has seen what comes behind it.
        let short = |at| u64::from(self.fields.u32(at).unwrap_or_default());
        let mut zip64 = Fields(self.extension(1).unwrap_or_default());
        let mut is_whole = true;
        let mut long = |value: u64| {
            if value != IN_ZIP64_32 {
                return value;
            }
            match zip64.u64(0) {
                Some(number) => {
                    zip64 = Fields(zip64.0.get(8..).unwrap_or_default());
                    number
                }
                // Without the extension the number may be meant; what it leads to is checked.
                None => {
                    is_whole = false;
                    value
                }
            }
        };
        // In this order, whichever of them are there. §4.5.3.
        let byte_len = long(short(20));
        let stored_len = long(short(16));
        let header = long(short(38));
        Member::new(super::member::Parts {
            name: self.name,
            flags: self.fields.u16(4).unwrap_or_default(),
            method: self.fields.u16(6).unwrap_or_default(),
            crc: self.fields.u32(12).unwrap_or_default(),
            stored_len,
            byte_len,
            header: header.saturating_add(before),
            is_whole,
        })
    }

    /// The extension of that id. Padding that is no extension ends the list.
    fn extension(&self, id: u16) -> Option<&'b [u8]> {
        let mut rest = self.extra;
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
}

/// Bytes that are known to exist, or that reading says do not.
fn read(source: &dyn Source, offset: u64, len: u64) -> Result<Cow<'_, [u8]>> {
    let span = Span::new(offset, len).unwrap_or_default();
    Ok(zt::container::bytes_of(source, span)?)
}
