//! The members of an archive whose end, and so its directory, is missing: APPNOTE.TXT §4.3.7 and §4.3.9.
//!
//! Members follow each other without gaps, each after a local header. Where the writer could not seek, the
//! header has no lengths, and a descriptor with them follows the data. Then the end of the data is found
//! as the first descriptor whose length is that of the bytes before it, and behind which another record
//! begins or the file ends.

use zt_container::fields::Record;
use zt_container::memory::in_memory;
use zt_container::{Limits, Source, Span, repeated};

use crate::directory::{numbers, read};
use crate::error::{Result, ZipViolation};
use crate::member::{Member, decoded};
use crate::records::{CENTRAL, DESCRIPTOR, END, END_64, LOCAL, LOCAL_LEN};

/// The lengths and the checksum of a member follow its data. §4.4.4.
const DESCRIPTOR_FOLLOWS: u16 = 1 << 3;

/// Bytes of a descriptor, with lengths of 4 and of 8 bytes.
const SHORT: u64 = 16;
const LONG: u64 = 24;

/// The bytes that are searched at once.
const PIECE: u64 = 1 << 20;

/// The most bytes of a signature at the end of a piece that does not have all of it.
const BORDER: u64 = 3;

/// Every member whose local header is whole, in the order of the data. The last one may be cut.
pub(super) fn members(source: &dyn Source, limits: &Limits) -> Result<Vec<Member>> {
    let end = source.byte_len();
    let mut members: Vec<Member> = Vec::new();
    let (mut at, mut taken) = (0, 0u64);
    while let Some(fixed) = Span::new(at, LOCAL_LEN as u64).filter(|span| span.end() <= end) {
        let header = read(source, at, fixed.byte_len())?;
        let Some(fields) = header.strip_prefix(LOCAL).map(Record) else {
            let is_directory = [CENTRAL, END, END_64].iter().any(|it| header.starts_with(it));
            if is_directory {
                break;
            }
            return Err(ZipViolation::NoLocalHeader { offset: at }.into());
        };
        let (name_len, extra_len) = (u64::from(fields.u16(22)), u64::from(fields.u16(24)));
        let rest = name_len.strict_add(extra_len);
        let Some(data) = fixed.end().checked_add(rest).filter(|data| *data <= end) else {
            break;
        };
        if in_memory(name_len) > limits.name_len {
            let (found, limit) = (in_memory(name_len), limits.name_len);
            return Err(ZipViolation::NameTooLong { found, limit }.into());
        }
        // The directory would have so much about each member, too.
        taken = taken.strict_add(fixed.byte_len()).strict_add(rest);
        if taken > limits.manifest_len {
            let (found, limit) = (taken, limits.manifest_len);
            return Err(ZipViolation::DirectoryTooLong { found, limit }.into());
        }
        let names = read(source, fixed.end(), rest)?;
        let (name, extra) = names.split_at(in_memory(name_len));
        let flags = fields.u16(2);
        let mut member = Member {
            name: decoded(name, flags),
            raw_name: name.into(),
            flags,
            method: fields.u16(4),
            crc: fields.u32(10),
            stored_len: 0,
            byte_len: 0,
            header: at,
            limit: end,
            is_whole: true,
            cut: None,
        };
        let next = if flags & DESCRIPTOR_FOLLOWS == 0 {
            let (lengths, is_whole) = numbers([fields.u32(18), fields.u32(14)], extra);
            ([member.byte_len, member.stored_len], member.is_whole) = (lengths, is_whole);
            let next = data.checked_add(member.stored_len);
            next.filter(|next| *next <= end)
        } else {
            let found = descriptor(source, data)?;
            found.map(|(descriptor, next)| {
                (member.crc, member.stored_len, member.byte_len) = descriptor;
                next
            })
        };
        match next {
            Some(next) => (member.limit, at) = (next, next),
            None => {
                member.cut = Some(end.strict_sub(data));
                members.push(member);
                break;
            }
        }
        members.push(member);
    }
    let mut names: Vec<&str> = members.iter().map(Member::name).collect();
    if let Some(name) = repeated(&mut names) {
        let name = name.to_owned();
        return Err(ZipViolation::Repeated { name }.into());
    }
    Ok(members)
}

/// Checksum, stored length, length.
type Descriptor = (u32, u64, u64);

/// The descriptor of the data that begins at `data`, and where the next record begins. `None` if the file
/// ends before.
fn descriptor(source: &dyn Source, data: u64) -> Result<Option<(Descriptor, u64)>> {
    let end = source.byte_len();
    let mut start = data;
    while start < end {
        let len = PIECE.min(end.strict_sub(start));
        let piece = read(source, start, len)?;
        let signatures = piece.windows(DESCRIPTOR.len()).enumerate();
        for (at, _) in signatures.filter(|(_, bytes)| *bytes == DESCRIPTOR) {
            let at = start.strict_add(at as u64);
            if let Some(found) = descriptor_at(source, data, at)? {
                return Ok(Some(found));
            }
        }
        if len < PIECE {
            break;
        }
        // A signature on the border of two pieces is whole in the second.
        start = start.strict_add(PIECE).strict_sub(BORDER);
    }
    Ok(None)
}

/// The descriptor at `at`, if it belongs to the data that begins at `data`.
fn descriptor_at(source: &dyn Source, data: u64, at: u64) -> Result<Option<(Descriptor, u64)>> {
    let end = source.byte_len();
    let found = at.strict_sub(data);
    let record = read(source, at, LONG.strict_add(4).min(end.strict_sub(at)))?;
    let is_next = |next: usize| match record.get(next..) {
        Some([]) => true,
        Some(next) => next.starts_with(LOCAL) || next.starts_with(CENTRAL),
        None => false,
    };
    let fields = Record(record.get(DESCRIPTOR.len()..).unwrap_or_default());
    let crc = fields.u32(0);
    let long = (fields.u64(4), fields.u64(12), LONG);
    let short = (u64::from(fields.u32(4)), u64::from(fields.u32(8)), SHORT);
    let mut forms = [long, short].into_iter();
    let form = forms.find(|(stored, _, len)| *stored == found && is_next(in_memory(*len)));
    Ok(form.map(|(stored, byte_len, len)| ((crc, stored, byte_len), at.strict_add(len))))
}
