//! An archive of stored members, written in one go.

use std::io::{self, Write};

use crate::{CENTRAL, END, END_64, LOCAL, LOCAL_LEN, LOCATOR_64};

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
        ArchiveWriter {
            sink,
            offset: 0,
            members: Vec::new(),
        }
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
            put(
                &mut extra,
                &[&EXTRA_64.to_le_bytes(), &16u16.to_le_bytes(), &[0; 16]],
            );
        }
        let lens = [LOCAL_LEN, name.len(), extra.len()];
        let end = lens
            .iter()
            .fold(header, |at, len| at.saturating_add(*len as u64));
        let [low, ..] = end.to_le_bytes();
        if low % ALIGNMENT > 0 {
            // The extension has an id, a length and the alignment, 6 bytes, and zeros.
            let zeros = low.wrapping_add(6).wrapping_neg() % ALIGNMENT;
            put(
                &mut extra,
                &[
                    &EXTRA_PADDING.to_le_bytes(),
                    &[zeros.wrapping_add(2), 0, ALIGNMENT, 0],
                    &vec![0; zeros.into()],
                ],
            );
        }
        let lengths = if is_long { [0xFF; 8] } else { [0; 8] };
        let mut record = Vec::new();
        put(
            &mut record,
            &[
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
            ],
        );
        self.write(&record)?;
        self.members.push(Written {
            name,
            crc: 0,
            byte_len,
            header,
        });
        Ok(MemberWriter {
            crc: crc32fast::Hasher::new(),
            left: byte_len,
            archive: self,
        })
    }

    /// Writes the directory and returns the sink.
    pub fn finish(mut self) -> io::Result<&'w mut W> {
        let start = self.offset;
        for member in std::mem::take(&mut self.members) {
            self.write(&entry(&member))?;
            self.members.push(member);
        }
        let end = self.offset;
        let (count, len) = (self.members.len() as u64, end.saturating_sub(start));
        if count >= MAX_16 || len >= MAX_32 || start >= MAX_32 {
            self.write(&end_64(count, len, start, end))?;
        }
        let count = len_16(self.members.len());

        let mut record = Vec::new();
        put(
            &mut record,
            &[
                END,
                &[0; 4],
                &count,
                &count,
                &len_32(len),
                &len_32(start),
                &[0; 2],
            ],
        );
        self.write(&record)?;
        Ok(self.sink)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sink.write_all(bytes)?;
        self.offset = self.offset.saturating_add(bytes.len() as u64);
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
        let short = byte_len.to_le_bytes();
        let len = if byte_len >= MAX_32 {
            &short[..]
        } else {
            &short[..4]
        };
        let mut record = Vec::new();
        put(&mut record, &[b"PK\x07\x08", &crc.to_le_bytes(), len, len]);
        self.archive.write(&record)
    }
}

impl<W: Write> Write for MemberWriter<'_, '_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        let bytes = bytes.get(..left.min(bytes.len())).unwrap_or_default();
        self.archive.write(bytes)?;
        self.crc.update(bytes);
        self.left = self.left.saturating_sub(bytes.len() as u64);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.archive.sink.flush()
    }
}

/// An entry of the directory. APPNOTE.TXT §4.3.12.
fn entry(member: &Written) -> Vec<u8> {
    let Written {
        name,
        crc,
        byte_len,
        header,
    } = member;
    // The extension has only the numbers that do not fit, in this order.
    let mut long = Vec::new();
    for number in [*byte_len, *byte_len, *header] {
        if number >= MAX_32 {
            long.extend(number.to_le_bytes());
        }
    }
    let mut extra = Vec::new();
    if !long.is_empty() {
        put(
            &mut extra,
            &[&EXTRA_64.to_le_bytes(), &len_16(long.len()), &long],
        );
    }
    let version = if long.is_empty() { VERSION } else { VERSION_64 };
    let len = len_32(*byte_len);
    let mut record = Vec::new();
    put(
        &mut record,
        &[
            CENTRAL,
            &(MADE_ON_UNIX | version).to_le_bytes(),
            &version.to_le_bytes(),
            &flags(name).to_le_bytes(),
            &[0; 4], // stored; midnight
            &DATE.to_le_bytes(),
            &crc.to_le_bytes(),
            &len,
            &len,
            &len_16(name.len()),
            &len_16(extra.len()),
            &[0; 6], // no comment; the first disk; no attributes of the content
            &ATTRIBUTES.to_le_bytes(),
            &len_32(*header),
            name.as_bytes(),
            &extra,
        ],
    );
    record
}

/// The zip64 end record, which begins at `end`, and its locator. §4.3.14, §4.3.15.
fn end_64(count: u64, len: u64, start: u64, end: u64) -> Vec<u8> {
    let mut record = Vec::new();
    let (version, count) = (VERSION_64.to_le_bytes(), count.to_le_bytes());
    put(
        &mut record,
        &[
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
        ],
    );
    record
}

fn flags(name: &str) -> u16 {
    DESCRIPTOR_FOLLOWS | if name.is_ascii() { 0 } else { NAME_IS_UTF8 }
}

fn put(record: &mut Vec<u8>, fields: &[&[u8]]) {
    for field in fields {
        record.extend_from_slice(field);
    }
}

/// A length that fits, or the marker of a number in the zip64 records.
fn len_16(len: usize) -> [u8; 2] {
    u16::try_from(len).unwrap_or(u16::MAX).to_le_bytes()
}

/// A number that fits, or the marker of a number in the extension.
fn len_32(number: u64) -> [u8; 4] {
    u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes()
}

#[cfg(test)]
#[allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "small numbers"
)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use zt::{Limits, Memory, Source};

    use super::*;
    use crate::Archive;

    /// An archive of members with these names and contents.
    fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = ArchiveWriter::new(&mut bytes);
        for (name, content) in members {
            let mut member = writer
                .begin((*name).to_owned(), content.len() as u64)
                .unwrap();
            member.write_all(content).unwrap();
            member.finish().unwrap();
        }
        writer.finish().unwrap();
        bytes
    }

    #[test]
    fn members_read_back_and_are_aligned() {
        let long = "n".repeat(65_535);
        let mut members: Vec<(&str, &[u8])> = vec![("a", b"one"), ("\u{e4}/b", b""), (&long, b"3")];
        let names: Vec<String> = (0..70).map(|len| "x".repeat(len)).collect();
        members.extend(
            names
                .iter()
                .map(|name| (name.as_str(), name.as_bytes()))
                .skip(2),
        );
        let bytes = archive(&members);
        let source: Arc<dyn Source> = Arc::new(Memory::new(bytes));
        let read = Archive::open(&source, &Limits::default()).unwrap();
        assert_eq!(read.members().len(), members.len());
        for (member, (name, content)) in read.members().iter().zip(members) {
            assert_eq!(member.name(), name);
            let found = member.content(&source).unwrap();
            assert!(found.is_stored && found.span.is_aligned(), "{name}");
            assert_eq!(source.slice(found.span), Some(content));
            assert_eq!(
                found.digest_behind(b""),
                Some(crate::crc::crc32(crc32fast::hash(content)))
            );
        }
    }

    /// Otherwise Info-ZIP's `unzip` decodes names that are not ASCII from code page 437.
    #[test]
    fn members_are_marked_as_made_on_unix() {
        let bytes = archive(&[("\u{e4}", b"one")]);
        let entry = bytes.windows(4).rposition(|four| four == CENTRAL).unwrap();
        assert_eq!(bytes[entry + 4..entry + 8], [20, 3, 20, 0]);
        let attributes = (0o100_644u32 << 16).to_le_bytes();
        assert_eq!(bytes[entry + 38..entry + 42], attributes);
    }

    #[test]
    fn archives_of_very_many_members_are_zip64() {
        let names: Vec<String> = (0..65_536).map(|number| number.to_string()).collect();
        let members: Vec<(&str, &[u8])> = names.iter().map(|name| (&**name, &b""[..])).collect();
        let source = Memory::new(archive(&members));
        let read = Archive::open(&source, &Limits::default()).unwrap();
        assert_eq!(read.members().len(), 65_536);
        // 65,535 is the marker of the zip64 records, and is correct without them too.
        let mut bytes = archive(&members[..65_535]);
        let end = bytes.len() - 22;
        bytes.drain(end - 76..end);
        let read = Archive::open(&Memory::new(bytes), &Limits::default()).unwrap();
        assert_eq!(read.members().len(), 65_535);
    }

    #[test]
    fn a_directory_may_be_as_long_as_the_limit() {
        let bytes = archive(&[("a", b"one"), ("b", b"two")]);
        let end = bytes.len() - 22;
        let field = bytes[end + 12..].first_chunk().copied().unwrap();
        let len = u64::from(u32::from_le_bytes(field));
        let open = |manifest_len| {
            let limits = Limits {
                manifest_len,
                ..Limits::default()
            };
            Archive::open(&Memory::new(&bytes), &limits)
        };
        assert_eq!(open(len).unwrap().members().len(), 2);
        let error = open(len - 1).unwrap_err();
        assert_eq!(
            (error.kind(), error.code()),
            (zt::ErrorKind::Limit, "header")
        );
    }

    /// A sink that cannot be flushed.
    struct Stuck;

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::StorageFull.into())
        }
    }

    #[test]
    fn a_member_is_flushed_to_the_sink() {
        let mut sink = Stuck;
        let mut writer = ArchiveWriter::new(&mut sink);
        let mut member = writer.begin("a".to_owned(), 1).unwrap();
        member.write_all(b"1").unwrap();
        let error = member.flush().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }

    /// A sink that keeps no long run of zeros.
    #[derive(Default)]
    struct Holed {
        pieces: BTreeMap<u64, Vec<u8>>,
        byte_len: u64,
    }

    /// A write of so many bytes becomes a hole.
    const HOLE: usize = 1 << 20;

    impl Write for Holed {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if bytes.len() < HOLE {
                self.pieces.insert(self.byte_len, bytes.to_vec());
            }
            self.byte_len += bytes.len() as u64;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Source for Holed {
        fn byte_len(&self) -> u64 {
            self.byte_len
        }

        fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
            buf.fill(0);
            let end = offset + buf.len() as u64;
            for (start, piece) in self.pieces.range(..end) {
                let from = offset.max(*start);
                let to = end.min(start + piece.len() as u64);
                if from < to {
                    let at = |place: u64, from: u64| usize::try_from(place - from).unwrap();
                    let piece = &piece[at(from, *start)..at(to, *start)];
                    buf[at(from, offset)..at(to, offset)].copy_from_slice(piece);
                }
            }
            Ok(())
        }
    }

    /// The length of one and the place of the other, and the directory's place, take 64 bits.
    #[test]
    fn members_beyond_four_gigabytes_are_zip64() {
        let byte_len = MAX_32 + 2 * HOLE as u64;
        let mut holed = Holed::default();
        let mut writer = ArchiveWriter::new(&mut holed);
        let mut long = writer.begin("long".to_owned(), byte_len).unwrap();
        let zeros = vec![0; HOLE];
        for _ in 0..byte_len / HOLE as u64 {
            long.write_all(&zeros).unwrap();
        }
        let rest = usize::try_from(byte_len % HOLE as u64).unwrap();
        long.write_all(&zeros[..rest]).unwrap();
        long.finish().unwrap();
        let mut behind = writer.begin("behind".to_owned(), 3).unwrap();
        behind.write_all(b"end").unwrap();
        behind.finish().unwrap();
        writer.finish().unwrap();

        let source: Arc<dyn Source> = Arc::new(holed);
        let read = Archive::open(&source, &Limits::default()).unwrap();
        let contents: Vec<_> = read
            .members()
            .iter()
            .map(|member| member.content(&source).unwrap().span)
            .collect();
        assert_eq!(contents[0].byte_len(), byte_len);
        assert!(contents[1].offset() > MAX_32 && contents[1].is_aligned());
        let mut end = [0; 3];
        source.read_at(contents[1].offset(), &mut end).unwrap();
        assert_eq!(&end, b"end");
    }

    #[test]
    fn a_member_has_as_many_bytes_as_begin_declares() {
        let mut bytes = Vec::new();
        let mut writer = ArchiveWriter::new(&mut bytes);
        let mut member = writer.begin("a".to_owned(), 2).unwrap();
        member.write_all(b"1").unwrap();
        assert!(member.finish().is_err());
        let mut member = writer.begin("a".to_owned(), 1).unwrap();
        assert!(member.write_all(b"12").is_err());
    }
}
