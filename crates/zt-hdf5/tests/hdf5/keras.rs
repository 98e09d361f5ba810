//! Archives of Keras, and files that look like one.

use zt::{ErrorKind, File, Memory, OpenOptions};
use zt_foreign::{FileKind, Probe};
use zt_hdf5::Hdf5;

use crate::draft::{Draft, bytes, int, link, opened, opened_with, strike_every_read};

const WEIGHTS: &str = "model.weights.h5";

/// A file with one value, `t`.
fn hdf5(value: u8) -> Vec<u8> {
    let mut draft = Draft::new();
    let messages = draft.dataset(int(1, 0), &[1], &[value]);
    let dataset = draft.object(&messages);
    draft.finish(&[link("t", dataset)])
}

/// A zip archive of one stored member.
fn archive(name: &str, content: &[u8]) -> Vec<u8> {
    let (name_len, len) = (name.len() as u16, content.len() as u32);
    let sum = crc32fast::hash(content);
    // A version, flags, the method, a time; the checksum and lengths.
    let fields = bytes!(20u16, 0u16, 0u16, 0u32, sum, len, len, name_len, 0u16);
    let local = [b"PK\x03\x04", &fields[..], name.as_bytes()].concat();
    let more = bytes!(0u16, 0u16, 0u16, 0u32, 0u32);
    let entry = [b"PK\x01\x02", &bytes!(20u16)[..], &fields, &more].concat();
    let entry = [&entry[..], name.as_bytes()].concat();
    let (at, entry_len) = ((local.len() + content.len()) as u32, entry.len() as u32);
    let end = bytes!(0u16, 0u16, 1u16, 1u16, entry_len, at, 0u16);
    [&local[..], content, &entry, b"PK\x05\x06", &end].concat()
}

fn value(file: &File) -> u8 {
    file.tensor("t").unwrap().to_vec::<u8>().unwrap()[0]
}

/// Opens bytes as HDF5, even if they are not recognised.
fn forced(bytes: Vec<u8>) -> zt::Result<File> {
    opened(bytes)
}

#[test]
fn a_file_before_or_after_an_archive_is_read() {
    let (alone, other) = (hdf5(1), archive(WEIGHTS, &hdf5(2)));
    assert_eq!(value(&opened(other.clone()).unwrap()), 2);
    let behind = [&alone[..], &other].concat();
    assert_eq!(value(&opened(behind).unwrap()), 1);
    // A user block that only begins like an archive.
    let mut block = vec![0; 512];
    block[..4].copy_from_slice(b"PK\x03\x04");
    let within = [&block[..], &alone].concat();
    assert_eq!(value(&forced(within).unwrap()), 1);
}

#[test]
fn a_few_bytes_are_not_an_archive_of_keras() {
    let error = forced(b"PK\x03".to_vec()).unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Malformed, "header"));
    // Four bytes are a truncated archive.
    let error = forced(b"PK\x03\x04".to_vec()).unwrap_err();
    assert_eq!(error.code(), "truncated", "{error}");
}

#[test]
fn a_truncated_archive_is_recognised_by_its_first_member() {
    for (name, expected) in [(WEIGHTS, true), ("notes.txt", false)] {
        let mut cut = archive(name, &hdf5(1));
        cut.truncate(cut.len() - 22);
        let source = Memory::new(cut);
        let probe = Probe::new(&source).unwrap();
        assert_eq!(Hdf5.recognise(&probe).unwrap(), expected, "{name}");
    }
}

#[test]
fn an_archive_that_cannot_be_read_is_not_truncated() {
    let archive = archive(WEIGHTS, &hdf5(1));
    strike_every_read(&archive, |source| Hdf5.recognise(&Probe::new(&source)?).map(drop));
    let options = OpenOptions::new();
    strike_every_read(&archive, |source| opened_with(source, &options).map(drop));
}
