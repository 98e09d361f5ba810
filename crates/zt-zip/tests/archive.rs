//! What the writer of archives writes, the reader reads.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed unwrap is the failure of the test"
)]

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use zt_container::{Limits, Memory, Source, Span};
use zt_zip::{Archive, ArchiveWriter, Error};

/// An archive of members with these names and contents.
fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = ArchiveWriter::new(&mut bytes);
    for (name, content) in members {
        let mut member = writer.begin((*name).to_owned(), content.len() as u64).unwrap();
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
    members.extend(names.iter().map(|name| (name.as_str(), name.as_bytes())).skip(2));
    let bytes = archive(&members);
    let source: Arc<dyn Source> = Arc::new(Memory::new(bytes));
    let read = Archive::open(&source, &Limits::default()).unwrap();
    assert_eq!(read.members().len(), members.len());
    for (member, (name, content)) in read.members().iter().zip(members) {
        assert_eq!(member.name(), name);
        let found = member.content(&source).unwrap();
        assert!(found.is_stored && found.span.is_aligned(), "{name}");
        assert_eq!(source.slice(found.span), Some(content));
        let end = Span::new(found.span.end(), 0).unwrap();
        let digest = found.digest_between(b"", end).unwrap();
        let digest = digest.map(|digest| digest.to_string());
        let expected = format!("crc32:0x{:08X}", crc32fast::hash(content));
        assert_eq!(digest, Some(expected));
    }
}

/// Otherwise Info-ZIP's `unzip` decodes names that are not ASCII from code page 437.
#[test]
fn members_are_marked_as_made_on_unix() {
    let bytes = archive(&[("\u{e4}", b"one")]);
    let entry = bytes.windows(4).rposition(|four| four == b"PK\x01\x02").unwrap();
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
        let limits = Limits::default().with_manifest_len(manifest_len);
        Archive::open(&Memory::new(&bytes), &limits)
    };
    assert_eq!(open(len).unwrap().members().len(), 2);
    let error = open(len - 1).unwrap_err();
    assert_eq!(error.code(), "header");
    assert!(matches!(error, Error::Archive(violation) if violation.is_limit()));
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
    let byte_len = u64::from(u32::MAX) + 2 * HOLE as u64;
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
    let contents: Vec<_> =
        read.members().iter().map(|member| member.content(&source).unwrap().span).collect();
    assert_eq!(contents[0].byte_len(), byte_len);
    assert!(contents[1].offset() > u64::from(u32::MAX) && contents[1].is_aligned());
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
