//! An archive of stored members, written in one go.

use std::io::{self, Write};

use zt_container::memory::in_memory;

use crate::records::{CENTRAL, DESCRIPTOR, END, END_64, LOCAL, LOCAL_LEN, LOCATOR_64};

/// Contents begin at multiples of this, so that a map can lend them.
const ALIGNMENT: u8 = 64;

/// 1 January 1980, the first date: the same members give the same bytes whenever they are written.
const DATE: u16 = 0x0021;

/// The checksum and the lengths follow the content, because the sink cannot seek back.
const DESCRIPTOR_FOLLOWS: u16 = 1 << 3;
const NAME_IS_UTF8: u16 = 1 << 11;

/// Versions of the format that a reader needs: 2.0, and 4.5 for zip64.
const VERSION: u16 = 20;
const VERSION_64: u16 = 45;

/// The system of the writer is Unix, as for numpy. If it is MS-DOS, Info-ZIP's `unzip` decodes names
/// from a code page, whatever the flags are.
const MADE_ON_UNIX: u16 = 3 << 8;

/// The Unix mode of a file that everyone may read.
const ATTRIBUTES: u32 = 0o100_644 << 16;

/// The zip64 extension.
const EXTRA_64: u16 = 1;
/// The padding of Android's `zipalign`.
const EXTRA_PADDING: u16 = 0xD935;

const MAX_16: u64 = 0xFFFF;
const MAX_32: u64 = 0xFFFF_FFFF;

/// Writes an archive to a sink that cannot seek.
pub struct ArchiveWriter<'w, W> {
    sink: &'w mut W,
    offset: u64,
    members: Vec<Written>,
}

/// A member as the directory lists it.
struct Written {
    name: String,
    crc: u32,
    byte_len: u64,
    header: u64,
}

impl<'w, W: Write> ArchiveWriter<'w, W> {
    /// An archive that begins at the sink's current position.
    pub fn new(sink: &'w mut W) -> Self {
        ArchiveWriter { sink, offset: 0, members: Vec::new() }
    }

    /// Whether a member can have that name. Readers in C cut it at a NUL.
    pub fn takes(name: &str) -> bool {
        name.len() as u64 <= MAX_16 && !name.contains('\0')
    }

    /// Begins a member of `byte_len` bytes.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::InvalidFilename`] for a name that [`ArchiveWriter::takes`] refuses; errors
    /// of the sink.
    pub fn begin(&mut self, name: String, byte_len: u64) -> io::Result<MemberWriter<'_, 'w, W>> {
        if !Self::takes(&name) {
            return Err(io::ErrorKind::InvalidFilename.into());
        }
        let is_long = byte_len >= MAX_32;
        let header = self.offset;
        let mut extra = Vec::new();
        if is_long {
            // The lengths that follow the content have 64 bits.
            extra.extend(EXTRA_64.to_le_bytes());
            extra.extend(16u16.to_le_bytes());
            extra.extend([0; 16]);
        }
        let record_len = LOCAL_LEN.strict_add(name.len()).strict_add(extra.len());
        let end = header.strict_add(record_len as u64);
        if !end.is_multiple_of(ALIGNMENT.into()) {
            // The extension has an id, a length and the alignment, 6 bytes, and zeros.
            let least = end.strict_add(6);
            let zeros = in_memory(least.next_multiple_of(ALIGNMENT.into()).strict_sub(least));
            extra.extend(EXTRA_PADDING.to_le_bytes());
            extra.extend(len_16(zeros.strict_add(2)));
            extra.extend([ALIGNMENT, 0]);
            extra.extend(std::iter::repeat_n(0, zeros));
        }
        let lengths = if is_long { [0xFF; 8] } else { [0; 8] };
        let record = [
            LOCAL,
            &if is_long { VERSION_64 } else { VERSION }.to_le_bytes(),
            &flags(&name).to_le_bytes(),
            &[0; 4], // stored; midnight
            &DATE.to_le_bytes(),
            &[0; 4],
            &lengths,
            &len_16(name.len()),
            &len_16(extra.len()),
            name.as_bytes(),
            &extra,
        ];
        self.write(&record.concat())?;
        self.members.push(Written { name, crc: 0, byte_len, header });
        Ok(MemberWriter { crc: crc32fast::Hasher::new(), left: byte_len, archive: self })
    }

    /// Writes the directory and returns the sink.
    pub fn finish(mut self) -> io::Result<&'w mut W> {
        let start = self.offset;
        for member in std::mem::take(&mut self.members) {
            self.write(&entry(&member))?;
            self.members.push(member);
        }
        let end = self.offset;
        let (count, len) = (self.members.len() as u64, end.strict_sub(start));
        if count >= MAX_16 || len >= MAX_32 || start >= MAX_32 {
            self.write(&end_64(count, len, start, end))?;
        }
        let count = &len_16(self.members.len());
        let (len, start) = (&len_32(len), &len_32(start));
        self.write(&[END, &[0; 4], count, count, len, start, &[0; 2]].concat())?;
        Ok(self.sink)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sink.write_all(bytes)?;
        self.offset = self.offset.strict_add(bytes.len() as u64);
        Ok(())
    }
}

/// The content of one member.
pub struct MemberWriter<'a, 'w, W> {
    archive: &'a mut ArchiveWriter<'w, W>,
    crc: crc32fast::Hasher,
    left: u64,
}

impl<W: Write> MemberWriter<'_, '_, W> {
    /// Ends the member.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::UnexpectedEof`] for fewer bytes than declared in [`ArchiveWriter::begin`];
    /// errors of the sink.
    pub fn finish(self) -> io::Result<()> {
        let crc = self.crc.finalize();
        let Some(member) = self.archive.members.last_mut().filter(|_| self.left == 0) else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        member.crc = crc;
        let byte_len = member.byte_len;
        let long = byte_len.to_le_bytes();
        let len = if byte_len >= MAX_32 { &long[..] } else { &long[..4] };
        self.archive.write(&[DESCRIPTOR, &crc.to_le_bytes(), len, len].concat())
    }
}

impl<W: Write> Write for MemberWriter<'_, '_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = in_memory(self.left.min(bytes.len() as u64));
        let bytes = bytes.get(..len).unwrap_or_default();
        self.archive.write(bytes)?;
        self.crc.update(bytes);
        self.left = self.left.strict_sub(bytes.len() as u64);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.archive.sink.flush()
    }
}

/// An entry of the directory. APPNOTE.TXT §4.3.12.
fn entry(member: &Written) -> Vec<u8> {
    // The extension has only the numbers that do not fit, in this order.
    let mut long = Vec::new();
    for number in [member.byte_len, member.byte_len, member.header] {
        if number >= MAX_32 {
            long.extend(number.to_le_bytes());
        }
    }
    let (mut version, mut extra) = (VERSION, Vec::new());
    if !long.is_empty() {
        version = VERSION_64;
        extra.extend(EXTRA_64.to_le_bytes());
        extra.extend(len_16(long.len()));
        extra.extend(long);
    }
    let (name, len) = (&member.name, len_32(member.byte_len));
    let record = [
        CENTRAL,
        &(MADE_ON_UNIX | version).to_le_bytes(),
        &version.to_le_bytes(),
        &flags(name).to_le_bytes(),
        &[0; 4], // stored; midnight
        &DATE.to_le_bytes(),
        &member.crc.to_le_bytes(),
        &len,
        &len,
        &len_16(name.len()),
        &len_16(extra.len()),
        &[0; 6], // no comment; the first disk; no attributes of the content
        &ATTRIBUTES.to_le_bytes(),
        &len_32(member.header),
        name.as_bytes(),
        &extra,
    ];
    record.concat()
}

/// The zip64 end record, which begins at `end`, and its locator. §4.3.14, §4.3.15.
fn end_64(count: u64, len: u64, start: u64, end: u64) -> Vec<u8> {
    let (version, count) = (VERSION_64.to_le_bytes(), count.to_le_bytes());
    let record = [
        END_64,
        &44u64.to_le_bytes(),
        &version,
        &version,
        &[0; 8],
        &count,
        &count,
        &len.to_le_bytes(),
        &start.to_le_bytes(),
        LOCATOR_64,
        &[0; 4],
        &end.to_le_bytes(),
        &1u32.to_le_bytes(),
    ];
    record.concat()
}

fn flags(name: &str) -> u16 {
    DESCRIPTOR_FOLLOWS | if name.is_ascii() { 0 } else { NAME_IS_UTF8 }
}

/// A length that fits, or the marker of a number in the zip64 records.
fn len_16(len: usize) -> [u8; 2] {
    u16::try_from(len).unwrap_or(u16::MAX).to_le_bytes()
}

/// A number that fits, or the marker of a number in the extension.
fn len_32(number: u64) -> [u8; 4] {
    u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes()
}
