//! Zip archives with other data before or after them, as Python's `zipfile` reads them.
#![cfg(all(feature = "hdf5", feature = "npy", feature = "pytorch", feature = "safetensors"))]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests"
)]

use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use zt::foreign::Kind;
use zt::{ErrorKind, File, Memory, OpenOptions, Source, VerifyOptions};
use zt_convert::{ConvertOptions, HDF5, Input, Kinds, NPZ, PYTORCH, SAFETENSORS, ZT};

/// Archives of each kind: stored, deflated, with zip64 records, with a comment, written to a pipe.
const ARCHIVES: [(&str, Kind); 9] = [
    ("foreign/npz/stored.npz", NPZ),
    ("foreign/npz/compressed.npz", NPZ),
    ("foreign/npz/zip64.npz", NPZ),
    ("foreign/npz/comment.npz", NPZ),
    ("foreign/npz/streamed.npz", NPZ),
    ("foreign/pt/state_dict.pt", PYTORCH),
    ("foreign/pt/deflated.pt", PYTORCH),
    ("torch/script_constants.pt", PYTORCH),
    ("hdf5/keras_archive.keras", HDF5),
];

fn bytes_of(name: &str) -> Vec<u8> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/corpus");
    fs::read(corpus.join(name)).unwrap()
}

fn memory(bytes: &[u8]) -> Memory<Vec<u8>> {
    Memory::new(bytes.to_vec())
}

fn opened(bytes: &[u8]) -> zt::Result<File> {
    zt_convert::open_source(memory(bytes))
}

fn objects(file: &File) -> Vec<(String, Vec<u8>)> {
    let entries = file.entries();
    let objects = entries.iter().map(|entry| {
        let (role, _) = &entry.object().unwrap().components[0];
        let bytes = entry.tensor().unwrap().bytes(role).unwrap().to_vec();
        (entry.name().to_owned(), bytes)
    });
    objects.collect()
}

/// The file reads as the archive alone does, with a warning for each run of other bytes.
#[track_caller]
fn is_told(archive: &[u8], bytes: &[u8], kind: Kind, expected: &[usize]) {
    let (alone, file) = (opened(archive).unwrap(), opened(bytes).unwrap());
    assert_eq!(file.kind(), kind);
    assert_eq!(objects(&alone), objects(&file));
    let said = |file: &File| -> Vec<String> {
        let warnings = file.warnings().into_iter();
        let warnings = warnings.filter(|warning| warning.code == "header");
        warnings.map(|warning| warning.message).collect()
    };
    assert!(said(&alone).is_empty());
    let found = said(&file);
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(&format!("{expected} B ")), "{found}");
    }
    let strict = OpenOptions::new().strict(true);
    let refused = zt_convert::Kinds::builtin()
        .open_source(memory(bytes), &strict)
        .map(zt_convert::Input::into_file)
        .unwrap_err();
    assert_eq!(refused.code(), "header");
    let plain = file.verify(&VerifyOptions::default()).unwrap();
    assert!(plain.is_ok());
    let strict = VerifyOptions::new().strict(true);
    assert_eq!(file.verify(&strict).unwrap().problems.len(), expected.len());
}

#[test]
fn what_lies_behind_an_archive_is_passed_over_and_told() {
    for (name, kind) in ARCHIVES {
        let archive = bytes_of(name);
        for len in [1, 1000, 60_000] {
            let bytes = [&archive[..], &vec![0; len]].concat();
            is_told(&archive, &bytes, kind, &[len]);
        }
    }
    let far = [&bytes_of("foreign/npz/stored.npz")[..], &[0; 1 << 17]].concat();
    assert_eq!(opened(&far).unwrap_err().code(), "truncated");
}

#[test]
fn an_archive_behind_something_else_is_found() {
    for (name, kind) in ARCHIVES {
        let archive = bytes_of(name);
        for before in [&b"#!/bin/sh\nexec unpack \"$0\"\n"[..], b"M", &[0; 70_000]] {
            let bytes = [before, &archive].concat();
            is_told(&archive, &bytes, kind, &[before.len()]);
            let bytes = [&bytes, &b"\n"[..]].concat();
            is_told(&archive, &bytes, kind, &[before.len(), 1]);
        }
    }
}

/// As Python's `zipfile` appends an archive to another file.
#[test]
fn offsets_may_count_what_is_before_the_archive() {
    let archive = bytes_of("foreign/npz/stored.npz");
    let mut bytes = [&[b'#'; 300][..], &archive].concat();
    let add = |bytes: &mut [u8], at: usize| {
        let field: &mut [u8; 4] = (&mut bytes[at..at + 4]).try_into().unwrap();
        let offset = u32::from_le_bytes(*field) + 300;
        *field = offset.to_le_bytes();
        usize::try_from(offset).unwrap()
    };
    let is_entry = |four: &[u8]| four == b"PK\x01\x02";
    let end = bytes.len() - 22;
    let directory = add(&mut bytes, end + 16);
    for at in directory..end {
        if is_entry(&bytes[at..at + 4]) {
            add(&mut bytes, at + 42);
        }
    }
    is_told(&archive, &bytes, NPZ, &[300]);
}

/// The first member of a Keras archive holds no weights.
#[test]
fn a_truncated_archive_of_keras_is_recognised() {
    let archive = bytes_of("hdf5/keras_archive.keras");
    let cut = &archive[..archive.len() - 30];
    assert_eq!(zt_convert::Kinds::builtin().detect(&memory(cut)).unwrap(), Some(HDF5));
    let error = opened(cut).unwrap_err();
    assert_eq!(error.code(), "truncated", "{error}");
}

/// The choice between two archives would be a guess.
#[test]
fn two_archives_in_a_row_are_refused() {
    for (name, _) in ARCHIVES {
        let archive = bytes_of(name);
        let error = opened(&[&archive[..], &archive].concat()).unwrap_err();
        let at = (error.code(), error.offset());
        assert_eq!(at, ("header", Some(archive.len() as u64)), "{name}: {error}");
    }
}

/// As in Python's `zipfile`: the archive's record is the last one that ends with the file, even in a
/// comment.
#[test]
fn an_end_record_in_a_comment_counts_if_it_ends_the_file() {
    let archive = bytes_of("foreign/npz/stored.npz");
    let commented = |comment: &[u8]| {
        let len = u16::try_from(comment.len()).unwrap().to_le_bytes();
        [&archive[..archive.len() - 2], &len, comment].concat()
    };
    let record = [&b"PK\x05\x06"[..], &[0; 18]].concat();
    let file = opened(&commented(&[&record[..], b"x"].concat())).unwrap();
    assert_eq!(objects(&file), objects(&opened(&archive).unwrap()));
    let error = opened(&commented(&record)).unwrap_err();
    assert_eq!(error.code(), "header");
}

/// As in Python's `zipfile`: an earlier record does not count for that.
#[test]
fn the_last_end_record_counts_where_its_comment_is_cut() {
    let other = bytes_of("foreign/npz/compressed.npz");
    let archive = bytes_of("foreign/npz/comment.npz");
    let cut = &archive[..archive.len() - 1];
    let file = opened(cut).unwrap();
    assert_eq!(objects(&file), objects(&opened(&archive).unwrap()));
    let warnings = file.warnings();
    assert!(warnings[0].to_string().contains("comment"), "{warnings:?}");
    // The last record does not fit the archive before it, which has one of its own. Its comment has 300
    // bytes.
    let end = &cut[cut.len() - 321..];
    let error = opened(&[&other[..], end].concat()).unwrap_err();
    assert_eq!(error.code(), "header");
}

/// The array's own CRC-32 follows from the member's and from the bytes behind the array.
#[test]
fn an_array_that_a_damaged_header_shortens_is_compared_with_the_checksum_of_its_member() {
    let mut bytes = bytes_of("foreign/npz/stored.npz");
    let shape = bytes.windows(6).position(|found| found == b"(5, 5)");
    bytes[shape.unwrap()..][..6].copy_from_slice(b"(1, 5)");
    let file = opened(&bytes).unwrap();
    let problems = file.verify(&VerifyOptions::default()).unwrap().problems;
    let codes: Vec<_> = problems.iter().map(zt::Error::code).collect();
    assert_eq!(codes, ["digest-mismatch"]);
}

/// A `.zt` knows no CRC-32, so a component that has one gets the digest of the writer.
#[test]
fn a_zt_made_of_an_archive_has_digests_that_its_readers_know() {
    for (name, _) in ARCHIVES {
        let input = Input::new(opened(&bytes_of(name)).unwrap(), Vec::new());
        let mut bytes = Vec::new();
        Kinds::builtin().convert(&[input], &mut bytes, &ConvertOptions::new(ZT)).unwrap();
        let file = opened(&bytes).unwrap();
        let report = file.verify(&VerifyOptions::default()).unwrap();
        assert!(report.is_ok() && report.unverified.is_empty(), "{name}: {report:?}");
    }
}

/// `archive` with these bytes of its end record changed, by their offset in it.
fn ended(archive: &[u8], fields: &[(usize, &[u8])]) -> Vec<u8> {
    let mut bytes = archive.to_vec();
    let end = bytes.len() - 22;
    for (at, field) in fields {
        bytes[end + at..][..field.len()].copy_from_slice(field);
    }
    bytes
}

#[test]
fn one_volume_of_several_is_refused() {
    let archive = bytes_of("foreign/npz/stored.npz");
    // Its number, the number of the first, and its count of members.
    for at in [4, 6, 8] {
        let error = opened(&ended(&archive, &[(at, &[1])])).unwrap_err();
        assert_eq!(error.code(), "unsupported", "{at}: {error}");
    }
}

/// Numbers that refer to zip64 records, in an archive without these.
#[test]
fn missing_zip64_records_are_refused() {
    let archive = bytes_of("foreign/npz/stored.npz");
    let (short, long, one): (&[u8], &[u8], &[u8]) = (&[0xFF; 2], &[0xFF; 4], &[1, 0, 0, 0]);
    for fields in [
        // A length of 1 leaves a gap before the record.
        &[(8, short), (10, short), (12, one)][..],
        &[(12, long)],
        &[(16, long)],
    ] {
        let error = opened(&ended(&archive, fields)).unwrap_err();
        assert_eq!(error.code(), "header");
    }
}

/// A reader without zip64 would see another directory.
#[test]
fn contradicting_end_records_are_refused() {
    let archive = bytes_of("foreign/npz/zip64.npz");
    assert!(opened(&archive).is_ok());
    let (short, long): (&[u8], &[u8]) = (&[99, 0], &[99, 0, 0, 0]);
    for fields in [&[(8, short), (10, short)][..], &[(12, long)], &[(16, long)]] {
        let error = opened(&ended(&archive, fields)).unwrap_err();
        assert_eq!(error.code(), "header", "{error}");
    }
}

/// The record lies where it would be if other data preceded the archive.
#[test]
fn a_broken_locator_makes_no_second_archive() {
    let error = opened(&bytes_of("foreign/npz/bad_zip64_locator.npz")).unwrap_err();
    assert_eq!(error.code(), "header");
    assert_eq!(error.offset(), None, "{error}");
}

#[test]
fn an_archive_among_the_values_of_a_file_does_not_change_its_kind() {
    let archive = bytes_of("foreign/npz/stored.npz");
    let len = archive.len();
    let header = format!(r#"{{"w":{{"dtype":"U8","shape":[{len}],"data_offsets":[0,{len}]}}}}"#);
    let start = (header.len() as u64).to_le_bytes();
    let file = opened(&[&start[..], header.as_bytes(), &archive].concat()).unwrap();
    assert_eq!(file.kind(), SAFETENSORS);
    assert_eq!(objects(&file), [("w".to_owned(), archive)]);
}

/// A source with one failing read.
struct Failing<'r> {
    bytes: Vec<u8>,
    reads: &'r AtomicUsize,
    fails_at: usize,
}

impl Source for Failing<'_> {
    fn byte_len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        match self.reads.fetch_add(1, Ordering::Relaxed) == self.fails_at {
            true => Err(io::Error::other("the disk is gone")),
            false => Memory::new(&self.bytes[..]).read_at(offset, buf),
        }
    }
}

/// A failing read is neither an unknown kind nor a broken file.
#[test]
fn a_failing_read_is_an_io_error_and_not_an_unknown_kind() {
    for (name, kind) in ARCHIVES {
        let archive = bytes_of(name);
        let behind = [&b"#!/bin/sh\n"[..], &archive].concat();
        for bytes in [archive, behind] {
            for fails_at in 0.. {
                let reads = AtomicUsize::new(0);
                let source = Failing { bytes: bytes.clone(), reads: &reads, fails_at };
                let found = Kinds::builtin().detect(&source);
                if reads.load(Ordering::Relaxed) <= fails_at {
                    assert_eq!(found.unwrap(), Some(kind), "{name}");
                    break;
                }
                let found = found.map_err(|error| error.kind());
                assert_eq!(found, Err(ErrorKind::Io), "{name}, read {fails_at}");
            }
        }
    }
}

/// A failing read is no fault of a member.
#[test]
fn a_failing_read_of_an_archive_refuses_the_file() {
    static READS: AtomicUsize = AtomicUsize::new(0);
    for name in ["foreign/npz/stored.npz", "foreign/npz/compressed.npz"] {
        for fails_at in 0.. {
            READS.store(0, Ordering::Relaxed);
            let source = Failing { bytes: bytes_of(name), reads: &READS, fails_at };
            let opened = zt_convert::open_source(source);
            if READS.load(Ordering::Relaxed) <= fails_at {
                assert!(opened.is_ok());
                break;
            }
            let error = opened.map(|file| file.len()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Io, "{name}, read {fails_at}");
        }
    }
}

/// A file that does not begin like an archive is one only if an archive follows other data.
#[test]
fn an_archive_with_broken_first_bytes_has_no_kind() {
    for (name, _) in ARCHIVES {
        let mut bytes = bytes_of(name);
        bytes[0] ^= 1;
        assert_eq!(Kinds::builtin().detect(&memory(&bytes)).unwrap(), None, "{name}");
    }
}

/// The first position of these bytes, from `from` on.
fn place(bytes: &[u8], magic: &[u8; 4], from: usize) -> usize {
    let found = bytes[from..].windows(4).position(|window| window == magic);
    from + found.unwrap()
}

/// Invalid fields of the first member's two headers, by their offsets in the headers.
#[test]
fn a_fault_of_a_member_is_a_fault_of_its_object() {
    let (malformed, unsupported) = (ErrorKind::Malformed, ErrorKind::Unsupported);
    let large = u32::MAX.wrapping_sub(1).to_le_bytes();
    type Fields<'f> = &'f [(usize, &'f [u8])];
    let cases: [(&str, Fields<'_>, Fields<'_>, ErrorKind, &str); 9] = [
        ("compressed", &[(8, &[1])], &[], unsupported, "unsupported"),
        ("compressed", &[(10, &[9])], &[(8, &[9])], unsupported, "unsupported"),
        ("compressed", &[], &[(8, &[0])], malformed, "header"),
        ("compressed", &[], &[(26, &[1])], malformed, "header"),
        ("compressed", &[], &[(30, b"/")], malformed, "header"),
        ("compressed", &[(20, &large)], &[], malformed, "bounds"),
        ("compressed", &[(24, &large)], &[], ErrorKind::Limit, "decompression-limit"),
        ("stored", &[(24, &[1, 0, 0, 0])], &[], malformed, "header"),
        ("compressed", &[(42, &[1])], &[], malformed, "header"),
    ];
    for (name, central, local, kind, code) in cases {
        let mut bytes = bytes_of(&format!("foreign/npz/{name}.npz"));
        let at = [place(&bytes, b"PK\x01\x02", 0), place(&bytes, b"PK\x03\x04", 0)];
        for (header, fields) in at.into_iter().zip([central, local]) {
            for (field, value) in fields {
                bytes[header + field..][..value.len()].copy_from_slice(value);
            }
        }
        let file = opened(&bytes).unwrap();
        let faults = file.entries().into_iter();
        let faults: Vec<_> = faults
            .filter_map(|entry| Some((entry.fault()?.kind(), entry.fault()?.code())))
            .collect();
        assert_eq!(faults, [(kind, code)], "{name} {central:?} {local:?}");
        assert!(file.len() > 1);
    }
}
