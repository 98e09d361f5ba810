//! What the writer of archives writes, the reader reads.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed unwrap is the failure of the test"
)]

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use zt_container::{Digest, Limits, Memory, Source, Span};
use zt_zip::{Archive, ArchiveWriter, Content, Deflate, Error, ZipViolation};

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

/// The content of the only member.
fn content_of(archive: &Arc<dyn Source>) -> Content {
    let read = Archive::open(archive, &Limits::default()).unwrap();
    read.members()[0].content(archive).unwrap()
}

#[test]
fn the_digest_of_a_part_is_derived_from_the_whole_digest() {
    let of = |bytes: &[u8]| {
        let archive: Arc<dyn Source> = Arc::new(Memory::new(archive(&[("a", bytes)])));
        content_of(&archive)
    };
    let content = of(b"123456789");
    let between = |content: &Content, head: &[u8], rest: u64| {
        let rest = Span::between(content.span.end() - rest, content.span.end()).unwrap();
        content.digest_between(head, rest).unwrap().unwrap()
    };
    let whole = |bytes: &[u8]| between(&of(bytes), b"", 0);
    let digest = whole(b"123456789");
    // The published check value.
    assert_eq!(digest.to_string(), "crc32:0xCBF43926");
    assert_eq!(between(&content, b"1234", 0), whole(b"56789"));
    assert_eq!(between(&content, b"123456789", 0), whole(b""));
    assert_eq!(between(&content, b"", 4), whole(b"12345"));
    assert_eq!(between(&content, b"12", 4), whole(b"345"));
    assert_eq!(between(&content, b"12345", 4), whole(b""));
    assert_eq!(whole(b"1234").followed_by(&whole(b"56789"), 5), Some(digest.clone()));
    let unknown: Digest = digest.to_string().parse().unwrap();
    assert_eq!(unknown.algorithm(), None);
}

/// Content that does not repeat.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 27) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// An archive of one deflated member with these numbers.
fn zip(stored: &[u8], crc: u32, byte_len: u64) -> Vec<u8> {
    zip_by(8, stored, crc, byte_len)
}

/// An archive of one member that is compressed by this method.
fn zip_by(method: u8, stored: &[u8], crc: u32, byte_len: u64) -> Vec<u8> {
    let [stored_len, byte_len] =
        [stored.len() as u64, byte_len].map(|it| u32::try_from(it).unwrap());
    let numbers = [crc, stored_len, byte_len].map(u32::to_le_bytes).concat();
    let about = [&[20, 0, 0, 0, method, 0, 0, 0, 0, 0][..], &numbers, &[1, 0, 0, 0]].concat();
    let local = [b"PK\x03\x04", &about[..], b"a", stored].concat();
    let entry = [b"PK\x01\x02\x14\0", &about[..], &[0; 14], b"a"].concat();
    let place = [entry.len(), local.len()].map(|it| u32::try_from(it).unwrap().to_le_bytes());
    let end = [b"PK\x05\x06", &[0, 0, 0, 0, 1, 0, 1, 0][..], &place.concat(), &[0; 2]].concat();
    [local, entry, end].concat()
}

fn deflated(content: &[u8]) -> Vec<u8> {
    let stored = miniz_oxide::deflate::compress_to_vec(content, 1);
    zip(&stored, crc32fast::hash(content), content.len() as u64)
}

#[test]
fn every_part_of_a_deflated_member_is_the_same_in_any_order() {
    let whole = noise(10 << 20);
    let archive: Arc<dyn Source> = Arc::new(Memory::new(deflated(&whole)));
    let content = content_of(&archive);
    let mut part = vec![0; 100_000];
    for offset in [9_000_000, 0, 100_000, 4_200_000, 8_388_608, 8_300_000, 10_385_760, 3] {
        content.source.read_at(offset, &mut part).unwrap();
        let at = usize::try_from(offset).unwrap();
        assert_eq!(part, whole[at..at + part.len()], "{offset}");
    }
    assert!(content.source.read_at(10 << 20, &mut [0]).is_err());
}

#[test]
fn a_member_of_bzip2_is_read_in_any_order_and_compared_at_its_end() {
    let whole = noise(3 << 20);
    let mut stored = Vec::new();
    let level = bzip2::Compression::new(1);
    bzip2::read::BzEncoder::new(&whole[..], level).read_to_end(&mut stored).unwrap();
    let crc = crc32fast::hash(&whole);
    let content = |stored: &[u8], crc, byte_len| {
        let archive: Arc<dyn Source> = Arc::new(Memory::new(zip_by(12, stored, crc, byte_len)));
        content_of(&archive)
    };
    let len = whole.len() as u64;
    let sound = content(&stored, crc, len);
    let mut part = vec![0; 100_000];
    for offset in [2_000_000, 0, 100_000, 2_900_000, 3] {
        sound.source.read_at(offset, &mut part).unwrap();
        let at = usize::try_from(offset).unwrap();
        assert_eq!(part, whole[at..at + part.len()], "{offset}");
    }
    let cut = &stored[..stored.len() / 2];
    for (stored, crc, byte_len, code) in [
        (&stored[..], crc ^ 1, len, "digest-mismatch"),
        (&stored[..], crc, len - 1, "deflate"),
        (&stored[..], crc, len + 1, "deflate"),
        (cut, crc, len, "deflate"),
    ] {
        let mut all = vec![0; usize::try_from(byte_len).unwrap()];
        let read = content(stored, crc, byte_len).source.read_at(0, &mut all);
        assert_eq!(Error::from(read.unwrap_err()).code(), code);
    }
}

#[test]
fn a_dictionary_of_lzma_has_a_limit_and_a_failure_of_the_archive_stays_one() {
    let stored = [9, 4, 5, 0, 0x5D, 0, 0, 0, 0xFF, 0, 0, 0, 0, 0];
    let archive: Arc<dyn Source> = Arc::new(Memory::new(zip_by(14, &stored, 1, 5)));
    let error = Error::from(content_of(&archive).source.read_at(0, &mut [0; 5]).unwrap_err());
    assert_eq!(error.code(), "decompression-limit");
    for method in [12, 14] {
        let disk = Arc::new(Disk(zip_by(method, &stored, 1, 5), AtomicBool::new(false)));
        let content = content_of(&(Arc::clone(&disk) as Arc<dyn Source>));
        disk.1.store(true, Ordering::Relaxed);
        let error = content.source.read_at(0, &mut [0; 5]).unwrap_err();
        assert_eq!(error.to_string(), "the disk is gone");
    }
}

/// A disk that can be taken away.
struct Disk(Vec<u8>, AtomicBool);

impl Source for Disk {
    fn byte_len(&self) -> u64 {
        self.0.len() as u64
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        if self.1.load(Ordering::Relaxed) {
            return Err(io::Error::other("the disk is gone"));
        }
        Memory::new(&self.0[..]).read_at(offset, buf)
    }
}

/// An archive over a network. It notes what is announced of it, and counts the bytes that are read.
struct Noted {
    bytes: Vec<u8>,
    announced: Mutex<Vec<Span>>,
    read: AtomicU64,
}

impl Source for Noted {
    fn byte_len(&self) -> u64 {
        self.bytes.len() as u64
    }
    fn is_remote(&self) -> bool {
        true
    }
    fn will_read_all(&self, spans: &[Span]) {
        self.announced.lock().unwrap().extend(spans);
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.read.fetch_add(buf.len() as u64, Ordering::Relaxed);
        Memory::new(&self.bytes[..]).read_at(offset, buf)
    }
}

/// A deflated member of so many bytes, and the archive that it is in.
fn noted(len: usize) -> (Content, Arc<Noted>) {
    let bytes = deflated(&noise(len));
    let noted = Noted { bytes, announced: Mutex::default(), read: AtomicU64::new(0) };
    let noted = Arc::new(noted);
    let archive: Arc<dyn Source> = Arc::clone(&noted) as _;
    let content = content_of(&archive);
    noted.announced.lock().unwrap().clear();
    (content, noted)
}

#[test]
fn what_is_inflated_next_is_announced_of_the_archive() {
    let (content, archive) = noted(10 << 20);
    assert!(content.source.is_remote());
    let announced = |offset, len| {
        content.source.will_read_all(&[Span::new(offset, len).unwrap()]);
        std::mem::take(&mut *archive.announced.lock().unwrap())
    };
    let [stored] = announced(0, 10 << 20)[..] else {
        panic!("one range");
    };
    assert_eq!((stored.offset(), stored.end()), (31, archive.byte_len() - 47 - 22));
    let half = Span::new(stored.offset(), stored.byte_len() / 2).unwrap();
    assert_eq!(announced(4 << 20, 1 << 20), [half]);
    // Not again what was inflated.
    content.source.read_at(4 << 20, &mut [0; 10]).unwrap();
    let [rest] = announced(5 << 20, 5 << 20)[..] else {
        panic!("one range");
    };
    assert!(rest.offset() > stored.byte_len() / 3 && rest.end() == stored.end());
}

#[test]
fn lengths_and_the_checksum_are_compared_at_the_end() {
    let whole = noise(5000);
    let (len, crc) = (whole.len() as u64, crc32fast::hash(&whole));
    let refusal = |change: fn(&mut Vec<u8>), crc, byte_len| {
        let mut stored = miniz_oxide::deflate::compress_to_vec(&whole, 1);
        change(&mut stored);
        let archive: Arc<dyn Source> = Arc::new(Memory::new(zip(&stored, crc, byte_len)));
        let mut all = vec![0; usize::try_from(byte_len).unwrap()];
        Error::from(content_of(&archive).source.read_at(0, &mut all).unwrap_err())
    };
    for (change, byte_len, expected) in [
        ((|_| {}) as fn(&mut Vec<u8>), len - 1, Deflate::Long { declared: len - 1 }),
        (|_| {}, len + 1, Deflate::Short { declared: len + 1, found: len }),
        (|stored| stored.push(0), len, Deflate::After { bytes: 1 }),
        (|stored| stored.truncate(stored.len() - 1), len, Deflate::Unended { declared: len }),
        (|stored| stored[0] = 7, len, Deflate::Damaged { at: 0 }),
    ] {
        let error = refusal(change, crc, byte_len);
        assert_eq!(error.code(), "deflate");
        let Error::Archive(ZipViolation::Deflate { fault, .. }) = error else {
            panic!("{error}");
        };
        assert_eq!(fault, expected);
    }
    assert_eq!(refusal(|_| {}, crc ^ 1, len).code(), "digest-mismatch");
}

/// Kept states and the end of the last read both count.
#[test]
fn a_read_begins_at_the_nearest_state() {
    let len = 16 << 20;
    let (content, archive) = noted(len);
    assert!(content.source.is_sequential());
    let read = |offset: u64| {
        let before = archive.read.load(Ordering::Relaxed);
        content.source.read_at(offset, &mut [0; 1000]).unwrap();
        archive.read.load(Ordering::Relaxed) - before
    };
    let last = len as u64 - (1 << 20);
    let all = read(last);
    // Forwards from the end of the last read, and back to a kept state.
    assert!(read(last + 1000) < all / 8);
    let half = read(len as u64 / 2);
    assert!(half < all * 3 / 8, "{half} of {all}");
    // A kept state is nearer than the end of that read.
    let forth = read(last);
    assert!(forth < all * 3 / 8, "{forth} of {all}");
}
