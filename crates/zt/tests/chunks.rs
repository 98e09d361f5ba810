//! Chunk digests: slices of raw components are verified. Spec: §6.1.
#![allow(
    clippy::cast_possible_truncation,
    clippy::unwrap_used,
    reason = "lengths of a test; a test fails by panicking"
)]

use std::io::{self, Write as _};
use std::sync::{Arc, Mutex};

use zt::{
    Dense, DigestAlgorithm, File, OpenOptions, Slice, Source, Span, Verify, VerifyOptions,
    WriteOptions, codes,
};
use zt_manifest::ManifestDigest;

const CHUNK: usize = 1 << 20;
const ROWS: usize = 3 * 1024 + 1;

/// A matrix of u8 with rows of 1 KiB: three chunks and a row.
fn matrix() -> Vec<u8> {
    (0..ROWS * 1024).map(|at| ((at * 31) >> 7) as u8).collect()
}

fn written(options: WriteOptions) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = options.to_writer(&mut bytes).unwrap();
    let shape = [ROWS as u64, 1024];
    let matrix = matrix();
    let tensor = Dense::from_slice(&shape, &matrix).unwrap();
    writer.add("w", &tensor).unwrap();
    let small = Dense::from_slice(&[2], &[1.0f32, 2.0]).unwrap();
    writer.add("small", &small).unwrap();
    writer.finish().unwrap();
    bytes
}

fn table(file: &File) -> zt::Span {
    let tensor = file.tensor("w").unwrap();
    let blob = &tensor.component("data").unwrap().blob;
    blob.chunks.as_ref().unwrap().span
}

fn blob(file: &File) -> zt::Span {
    let tensor = file.tensor("w").unwrap();
    tensor.component("data").unwrap().blob.span
}

/// The same bytes from memory, which lends them, and from a file, which does not.
fn opened(bytes: &[u8], verify: Verify) -> [File; 2] {
    let mut on_disk = tempfile::NamedTempFile::new().unwrap();
    on_disk.write_all(bytes).unwrap();
    let options = || OpenOptions::new().verify(verify);
    [options().open_bytes(bytes.to_vec()).unwrap(), options().open(on_disk.path()).unwrap()]
}

fn rows(file: &File, from: i64, to: i64) -> zt::Result<Vec<u8>> {
    let slice = Slice::Range { start: Some(from), stop: Some(to), step: 1 };
    let part = file.tensor("w")?.slice(&[slice])?;
    Ok(part.elements().bytes.to_vec())
}

#[test]
fn the_writer_puts_one_table_behind_the_last_blob() {
    let file = File::from_bytes(written(WriteOptions::new())).unwrap();
    let span = table(&file);
    assert_eq!(span.byte_len(), 4 * 4);
    let small = file.tensor("small").unwrap();
    let small = &small.component("data").unwrap().blob;
    assert_eq!(small.chunks, None);
    assert_eq!(span.offset(), small.span.end().next_multiple_of(64));
    assert_eq!(file.data_region().unwrap().end(), span.end());
    let report = file.verify(&VerifyOptions::new().strict(true)).unwrap();
    assert!(report.is_ok(), "{:?}", report.problems);
}

#[test]
fn the_table_has_the_digest_of_each_chunk() {
    for algorithm in [DigestAlgorithm::Crc32c, DigestAlgorithm::Sha256] {
        let options = WriteOptions::new().chunk_digests(Some(algorithm));
        let bytes = written(options);
        let file = File::from_bytes(bytes.clone()).unwrap();
        let mut expected = Vec::new();
        for chunk in matrix().chunks(CHUNK) {
            match algorithm.digest(chunk).unwrap() {
                zt::Digest::Crc32c(sum) => expected.extend(sum.to_le_bytes()),
                zt::Digest::Sha256(sum) => expected.extend(sum),
                other => panic!("{other}"),
            }
        }
        let span = table(&file);
        let (start, end) = (span.offset() as usize, span.end() as usize);
        assert_eq!(bytes[start..end], expected, "{algorithm:?}");
        let report = file.verify(&VerifyOptions::new().strict(true)).unwrap();
        assert!(report.is_ok(), "{:?}", report.problems);
    }
}

#[test]
fn the_bytes_do_not_depend_on_threads_or_pieces() {
    for digest in [DigestAlgorithm::Crc32c, DigestAlgorithm::Sha256] {
        let options = || WriteOptions::new().digest(Some(digest));
        let expected = written(options().threads(1));
        assert_eq!(written(options().threads(3)), expected);
        for piece in [1000, 700_001, CHUNK, 5 * CHUNK] {
            let mut bytes = Vec::new();
            let mut writer = options().threads(2).to_writer(&mut bytes).unwrap();
            let shape = [ROWS as u64, 1024];
            let mut object = writer.begin("w", &shape, "dense").unwrap();
            let mut data = object.component("data", zt::DType::U8, None).unwrap();
            for piece in matrix().chunks(piece) {
                data.write_all(piece).unwrap();
            }
            data.finish().unwrap();
            object.finish().unwrap();
            let small = Dense::from_slice(&[2], &[1.0f32, 2.0]).unwrap();
            writer.add("small", &small).unwrap();
            writer.finish().unwrap();
            assert!(bytes == expected, "{digest:?} in pieces of {piece}");
        }
    }
}

#[test]
fn a_component_that_does_not_shrink_has_a_table() {
    let mut state = 1u64;
    let noise: Vec<u8> = (0..3 * CHUNK)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        })
        .collect();
    let write = |threads: usize, len: usize| {
        let mut bytes = Vec::new();
        let options = WriteOptions::new().zstd(1).threads(threads);
        let mut writer = options.to_writer(&mut bytes).unwrap();
        let tensor = Dense::from_slice(&[len as u64], &noise[..len]).unwrap();
        writer.add("w", &tensor).unwrap();
        writer.finish().unwrap();
        bytes
    };
    for len in [CHUNK + 1, 3 * CHUNK] {
        let bytes = write(1, len);
        assert!(bytes == write(3, len));
        let file = File::from_bytes(bytes).unwrap();
        assert_eq!(table(&file).byte_len(), 4 * len.div_ceil(CHUNK) as u64);
        let report = file.verify(&VerifyOptions::new().strict(true)).unwrap();
        assert!(report.is_ok(), "{:?}", report.problems);
    }
    let exact = File::from_bytes(write(2, CHUNK)).unwrap();
    let exact = exact.tensor("w").unwrap();
    assert_eq!(exact.component("data").unwrap().blob.chunks, None);
}

#[test]
fn without_them_the_file_is_as_it_was() {
    let without = written(WriteOptions::new().chunk_digests(None));
    let with = written(WriteOptions::new());
    let file = File::from_bytes(without.clone()).unwrap();
    let end = file.data_region().unwrap().end() as usize;
    assert_eq!(with[..end], without[..end]);
    let no_digest = WriteOptions::new().digest(None);
    let expected = WriteOptions::new().digest(None).chunk_digests(None);
    assert_eq!(written(no_digest), written(expected));
}

#[test]
fn a_slice_finds_damage_in_its_chunks_and_no_other() {
    let mut bytes = written(WriteOptions::new());
    let file = File::from_bytes(bytes.clone()).unwrap();
    let start = blob(&file).offset();
    bytes[start as usize + CHUNK + 5] ^= 1; // In the second chunk.
    for verify in [Verify::OnRead, Verify::Always] {
        for file in opened(&bytes, verify) {
            assert_eq!(rows(&file, 0, 1024).unwrap(), matrix()[..CHUNK]);
            assert_eq!(rows(&file, 2048, 3073).unwrap(), matrix()[2 * CHUNK..]);
            for (from, to) in [(1024, 1025), (2047, 2048), (0, 3073), (1000, 1030)] {
                let error = rows(&file, from, to).unwrap_err();
                assert_eq!(error.code(), codes::DIGEST_MISMATCH, "{from}..{to}");
                assert_eq!((error.object(), error.component()), (Some("w"), Some("data")));
                assert_eq!(error.offset(), Some(start + CHUNK as u64));
            }
        }
    }
    for file in opened(&bytes, Verify::Never) {
        assert_eq!(rows(&file, 1024, 1025).unwrap()[5], matrix()[CHUNK + 5] ^ 1);
    }
}

#[test]
fn a_slice_is_right_wherever_it_begins() {
    let bytes = written(WriteOptions::new());
    for file in opened(&bytes, Verify::OnRead) {
        // Of each file anew, so that no chunk is known.
        for (from, to) in [(1, 2), (1023, 1025), (5, 3000), (2047, 3073), (3072, 3073)] {
            let expected = &matrix()[from * 1024..to * 1024];
            assert_eq!(rows(&file, from as i64, to as i64).unwrap(), expected);
        }
    }
    for (from, to) in [(1, 2), (1023, 1025), (5, 3000), (2047, 3073), (0, 3073)] {
        for file in opened(&bytes, Verify::Always) {
            let expected = &matrix()[from * 1024..to * 1024];
            assert_eq!(rows(&file, from as i64, to as i64).unwrap(), expected);
        }
    }
}

#[test]
fn a_damaged_table_prevents_slices_alone_and_verification_finds_it() {
    let bytes = written(WriteOptions::new());
    let file = File::from_bytes(bytes.clone()).unwrap();
    let span = table(&file);
    for at in (span.offset()..span.end()).step_by(7) {
        let mut bytes = bytes.clone();
        bytes[at as usize] ^= 0x10;
        for file in opened(&bytes, Verify::OnRead) {
            let error = rows(&file, 0, 1).unwrap_err();
            assert_eq!(error.code(), codes::DIGEST_MISMATCH);
            assert_eq!(error.offset(), Some(span.offset()));
            let report = file.verify(&VerifyOptions::new()).unwrap();
            let [problem] = &report.problems[..] else {
                panic!("{report:?}");
            };
            assert_eq!(problem.code(), codes::DIGEST_MISMATCH);
            assert_eq!(problem.offset(), Some(span.offset()));
            let whole = file.tensor("w").unwrap().bytes("data").unwrap();
            assert_eq!(whole[..], matrix());
            // The whole digest was right, so the table is not needed any more.
            assert_eq!(rows(&file, 0, 1).unwrap(), matrix()[..1024]);
        }
    }
}

#[test]
fn a_copy_has_a_table_of_its_own_and_the_same_identity() {
    let file = File::from_bytes(written(WriteOptions::new())).unwrap();
    let mut bytes = Vec::new();
    let mut writer = WriteOptions::new().to_writer(&mut bytes).unwrap();
    writer.copy("small", &file.tensor("small").unwrap()).unwrap();
    writer.copy("w", &file.tensor("w").unwrap()).unwrap();
    writer.finish().unwrap();
    let copy = File::from_bytes(bytes).unwrap();
    assert_ne!(table(&copy), table(&file));
    let report = copy.verify(&VerifyOptions::new().strict(true)).unwrap();
    assert!(report.is_ok(), "{:?}", report.problems);
    let plain = written(WriteOptions::new().chunk_digests(None));
    let plain = File::from_bytes(plain).unwrap();
    let identity = |file: &File| file.hash(&zt::HashOptions::new()).unwrap().content;
    assert_eq!(identity(&copy), identity(&plain));
}

#[test]
fn editing_and_compacting_keep_the_tables() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.zt");
    std::fs::write(&path, written(WriteOptions::new())).unwrap();
    let before = std::fs::metadata(&path).unwrap().len();
    assert_eq!(zt::compact(&path, None).unwrap(), (before, before));
    let mut editor = WriteOptions::new().edit(&path).unwrap();
    let sevens = vec![7u8; 2 * CHUNK];
    let more = Dense::from_slice(&[2 * CHUNK as u64], &sevens).unwrap();
    editor.writer().add("more", &more).unwrap();
    editor.remove("small").unwrap();
    editor.commit().unwrap();
    zt::compact(&path, None).unwrap();
    let file = File::open(&path).unwrap();
    let report = file.verify(&VerifyOptions::new().strict(true)).unwrap();
    assert!(report.is_ok(), "{:?}", report.problems);
    assert_eq!(rows(&file, 1, 2).unwrap(), matrix()[1024..2048]);
    let more = file.tensor("more").unwrap();
    let more = more.component("data").unwrap().blob.chunks.clone().unwrap();
    // Both tables stand side by side again.
    assert_eq!(more.span.offset(), table(&file).end());
    assert_eq!(file.data_region().unwrap().end(), more.span.end());
}

#[test]
fn components_that_share_a_blob_share_its_table() {
    let mut bytes = Vec::new();
    let options = WriteOptions::new().deduplicate(true);
    let mut writer = options.to_writer(&mut bytes).unwrap();
    let matrix = matrix();
    let tensor = Dense::from_slice(&[ROWS as u64, 1024], &matrix).unwrap();
    writer.add("w", &tensor).unwrap();
    writer.add("tied", &tensor).unwrap();
    writer.finish().unwrap();
    let file = File::from_bytes(bytes).unwrap();
    let blob = |name| file.tensor(name).unwrap().component("data").unwrap().blob.clone();
    assert_eq!(blob("w"), blob("tied"));
    assert_eq!(file.data_region().unwrap().end(), table(&file).end());
}

#[test]
fn a_table_that_cannot_be_used_is_a_warning_and_slices_read_without_it() {
    let bytes = written(WriteOptions::new());
    let find = |text: &[u8], from: usize| {
        let mut windows = bytes[from..].windows(text.len());
        from + windows.position(|window| window == text).unwrap()
    };
    let start = find(b"zt.chunks", 0);
    let (digest, length) = (find(b"crc32c", start), find(b"length", start) + 6);
    let offset = find(b"offset", start) + 6;
    assert_eq!((bytes[length], bytes[offset]), (16, 0x1a));
    let cases = [
        (digest, b'x', "unknown"),
        (digest + 9, b'x', "malformed"),
        (length, 15, "length does not fit"),
        (offset + 1, 0x7f, "leaves the data region"),
        (offset - 2, b'z', "lacks an offset"),
        (start + 9, 0xa2, ""), // Another number of pairs: the manifest is damaged.
    ];
    for (at, byte, reason) in cases {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        ManifestDigest::renew(&mut bytes);
        if reason.is_empty() {
            assert!(File::from_bytes(bytes).is_err());
            continue;
        }
        for file in opened(&bytes, Verify::OnRead) {
            let warnings = file.warnings();
            let [warning] = &warnings[..] else {
                panic!("{reason}: {warnings:?}");
            };
            assert_eq!(warning.code, codes::CHUNK_DIGESTS);
            assert_eq!(warning.component.as_deref(), Some("data"));
            assert!(warning.message.contains(reason), "{}", warning.message);
            assert_eq!(rows(&file, 3, 4).unwrap(), matrix()[3072..4096]);
            let lenient = file.verify(&VerifyOptions::new()).unwrap();
            assert!(lenient.is_ok(), "{:?}", lenient.problems);
            let strict = file.verify(&VerifyOptions::new().strict(true)).unwrap();
            let code = |code| strict.problems.iter().any(|problem| problem.code() == code);
            assert!(code(codes::CHUNK_DIGESTS) && code(codes::PADDING));
        }
    }
}

#[test]
fn entries_that_differ_from_their_chunks_are_a_problem() {
    let bytes = written(WriteOptions::new());
    let file = File::from_bytes(bytes.clone()).unwrap();
    let span = table(&file);
    let (start, end) = (span.offset() as usize, span.end() as usize);
    let mut forged = bytes.clone();
    forged[start + 4] ^= 1;
    // With a digest of its own that is right.
    let sum = |bytes: &[u8]| DigestAlgorithm::Crc32c.digest(bytes).unwrap().to_string();
    let (old, new) = (sum(&bytes[start..end]), sum(&forged[start..end]));
    let mut windows = forged.windows(old.len());
    let at = windows.position(|window| window == old.as_bytes()).unwrap();
    forged[at..at + new.len()].copy_from_slice(new.as_bytes());
    ManifestDigest::renew(&mut forged);
    let file = File::from_bytes(forged).unwrap();
    let report = file.verify(&VerifyOptions::new()).unwrap();
    let [problem] = &report.problems[..] else {
        panic!("{report:?}");
    };
    assert_eq!(problem.code(), codes::DIGEST_MISMATCH);
    assert_eq!(problem.offset(), Some(blob(&file).offset() + CHUNK as u64));
}

/// A remote source that notes what is announced of it.
struct Remote(Vec<u8>, Arc<Mutex<Vec<Vec<Span>>>>);

impl Source for Remote {
    fn byte_len(&self) -> u64 {
        self.0.len() as u64
    }
    fn is_remote(&self) -> bool {
        true
    }
    fn will_read_all(&self, spans: &[Span]) {
        self.1.lock().unwrap().push(spans.to_vec());
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        zt::Memory::new(&self.0[..]).read_at(offset, buf)
    }
}

#[test]
fn a_remote_source_fetches_a_table_at_once_with_the_first_chunks() {
    let announced = Arc::default();
    let source = Remote(written(WriteOptions::new()), Arc::clone(&announced));
    let file = OpenOptions::new().open_source(source).unwrap();
    announced.lock().unwrap().clear();
    assert_eq!(rows(&file, 1030, 1031).unwrap().len(), 1024);
    let second = Span::new(blob(&file).offset() + CHUNK as u64, CHUNK as u64).unwrap();
    assert_eq!(*announced.lock().unwrap(), [vec![second, table(&file)]]);
    // The chunk is right, and the table is known: the row alone is fetched.
    announced.lock().unwrap().clear();
    assert_eq!(rows(&file, 1030, 1031).unwrap().len(), 1024);
    let row = Span::new(blob(&file).offset() + 1030 * 1024, 1024).unwrap();
    assert_eq!(*announced.lock().unwrap(), [vec![row]]);
}
