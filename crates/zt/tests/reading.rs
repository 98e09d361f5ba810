//! Reading through the facade: typed, borrowed, copied, streamed; from every source alike.
#![cfg(feature = "zstd")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use std::cell::Cell;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use common::{every_source, sample, span_of};
use zt::foreign::{FileBuilder, Kind, open_settled};
use zt::{
    Blob, Component, Coo, Csr, DType, Dense, DigestAlgorithm, Encoding, ErrorKind, File, Limits,
    Object, OpenOptions, Seekable, Source, Span, Verify, WriteOptions, Writer, codes,
};
use zt_manifest::ManifestDigest;

#[test]
fn every_source_gives_the_same_values() {
    for (encoding, options) in [("raw", WriteOptions::new()), ("zstd", WriteOptions::new().zstd(1))]
    {
        for (source, file) in every_source(&sample(options), &OpenOptions::new()) {
            let file = file.unwrap();
            let name = format!("{source}, {encoding}");
            let ramp = file.tensor("ramp").unwrap();
            assert_eq!(ramp.shape(), [60, 100], "{name}");
            let values = ramp.values::<f32>().unwrap();
            assert_eq!((values[0], values[5999]), (0.0, 5999.0), "{name}");
            assert_eq!(
                *file.tensor("flags").unwrap().values::<bool>().unwrap(),
                [true, false, true]
            );
            let graph: Csr<'_> = file.tensor("graph").unwrap().view().unwrap();
            assert_eq!(graph.shape(), [2, 3], "{name}");
            let dense = file.tensor("graph").unwrap().to_dense().unwrap();
            assert_eq!(*dense.as_slice::<i32>().unwrap(), [0, 0, 7, 8, 0, 0], "{name}");
            assert!(file.tensor("none").unwrap().values::<u8>().unwrap().is_empty(), "{name}");
        }
    }
}

#[test]
fn raw_elements_are_borrowed_from_memory_and_maps_and_copied_from_files() {
    for (source, file) in every_source(&sample(WriteOptions::new()), &OpenOptions::new()) {
        let file = file.unwrap();
        let values = file.tensor("ramp").unwrap().values::<f32>().unwrap();
        let lends = !["position", "file"].contains(&source);
        // Memory that a test allocates need not be aligned as a map is. Big-endian systems turn the bytes.
        assert!(!values.is_borrowed() || lends, "{source}");
        let is_map = source == "map" && cfg!(target_endian = "little");
        assert!(values.is_borrowed() || !is_map);
    }
}

/// A file that changes between two reads of the same bytes.
struct Changing {
    before: Vec<u8>,
    after: Vec<u8>,
    /// What was read once.
    watched: Span,
    was_read: AtomicBool,
}

impl Source for Changing {
    fn byte_len(&self) -> u64 {
        self.before.len() as u64
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> std::io::Result<()> {
        let is_watched =
            offset <= self.watched.offset() && offset + buf.len() as u64 >= self.watched.end();
        let bytes = match is_watched && self.was_read.swap(true, Ordering::Relaxed) {
            true => &self.after,
            false => &self.before,
        };
        zt::Memory::new(&bytes[..]).read_at(offset, buf)
    }
}

/// Where the file does not say how long a value is, its bytes are read to be counted, and once more
/// to be returned: those have to be right.
#[test]
fn what_is_returned_was_verified_and_not_what_was_read_before() {
    let mut bytes = Vec::new();
    let mut writer = WriteOptions::new().zstd(1).to_writer(&mut bytes).unwrap();
    let values: Vec<u8> = (0..4000u32).flat_map(|at| (at % 1000).to_le_bytes()).collect();
    let mut object = writer.begin("w", &[4000], "of_nobody").unwrap();
    let mut data = object.component("data", DType::U8, None).unwrap();
    data.write_all(&values).unwrap();
    data.finish().unwrap();
    object.finish().unwrap();
    writer.finish().unwrap();
    let span = span_of(&File::from_bytes(bytes.clone()).unwrap(), "w", "data");
    // 1.1 has no such field, and nothing else of this file is any different.
    for (new, old) in
        [(&b"\x651.2.0"[..], &b"\x651.1.0"[..]), (b"uncompressed_length", b"uncompressed_lengte")]
    {
        let found = bytes.windows(new.len()).position(|part| part == new);
        let at = found.unwrap();
        bytes[at..at + new.len()].copy_from_slice(old);
    }
    ManifestDigest::renew(&mut bytes);
    let mut after = bytes.clone();
    let middle = usize::try_from(span.offset() + span.byte_len() / 2).unwrap();
    after[middle] ^= 1;
    let source = Changing { before: bytes, after, watched: span, was_read: AtomicBool::new(false) };
    let file = OpenOptions::new().open_source(source).unwrap();
    let tensor = file.tensor("w").unwrap();
    let error = tensor.read_into("data", &mut [0; 16_000]).unwrap_err();
    assert_eq!(error.code(), "digest-mismatch");
}

#[test]
fn the_version_is_told_as_it_stands_in_the_file() {
    for (version, layout, warnings) in
        [("1.1.0", "1.1", &[][..]), ("1.2.0", "1.2", &[]), ("1.3.7", "1.2", &["newer-minor"])]
    {
        let mut bytes = sample(WriteOptions::new());
        let at = bytes.windows(5).position(|text| text == b"1.2.0").unwrap();
        bytes[at..at + 5].copy_from_slice(version.as_bytes());
        ManifestDigest::renew(&mut bytes);
        let file = File::from_bytes(bytes).unwrap();
        assert_eq!((file.layout(), file.version()), (Some(layout), Some(version)));
        let found: Vec<_> = file.warnings().iter().map(|it| it.code).collect();
        assert_eq!(found, warnings, "{version}");
        assert!(!file.is_empty());
    }
}

#[test]
fn what_is_borrowed_outlives_the_handle() {
    let file = File::from_bytes(sample(WriteOptions::new())).unwrap();
    let values = {
        let tensor = file.tensor("ramp").unwrap();
        tensor.values::<f32>().unwrap()
    };
    assert_eq!(values[1], 1.0);
}

#[test]
fn reads_into_the_callers_memory_and_refuses_another_length() {
    let file = File::from_bytes(sample(WriteOptions::new().zstd(1))).unwrap();
    let ramp = file.tensor("ramp").unwrap();
    let mut out = vec![0; 24_000];
    ramp.read_into("data", &mut out).unwrap();
    assert_eq!(out[4..8], 1f32.to_le_bytes());
    let error = ramp.read_into("data", &mut out[1..]).unwrap_err();
    assert_eq!((error.kind(), error.component()), (ErrorKind::Misuse, Some("data")));
}

#[test]
fn streams_a_component_in_pieces_of_whole_elements() {
    let file = File::from_bytes(sample(WriteOptions::new().zstd(1))).unwrap();
    let ramp = file.tensor("ramp").unwrap();
    let mut reader = ramp.reader("data").unwrap();
    let (mut all, mut piece) = (Vec::new(), [0; 1001]);
    loop {
        match reader.read(&mut piece).unwrap() {
            0 => break,
            len => {
                assert!(!ramp.is_verified("data").unwrap());
                assert_eq!(len % 4, 0);
                all.extend_from_slice(&piece[..len]);
            }
        }
    }
    assert_eq!(all.len(), 24_000);
    assert!(ramp.is_verified("data").unwrap());
    assert_eq!(reader.read(&mut [0; 3]).unwrap(), 0);
    let none = reader.for_each_piece(3, |_| Ok::<(), zt::Error>(()));
    assert_eq!(none.unwrap_err().kind(), ErrorKind::Misuse);
}

#[test]
fn a_shape_is_the_same_as_lengths_in_memory() {
    let file = File::from_bytes(sample(WriteOptions::new())).unwrap();
    for name in file.names() {
        let tensor = file.tensor(name).unwrap();
        let shape = tensor.usize_shape().unwrap();
        assert!(shape.iter().map(|len| *len as u64).eq(tensor.shape().iter().copied()));
    }
}

#[test]
fn a_reader_that_seeks_is_opened_as_any_source() {
    let bytes = sample(WriteOptions::new());
    let source = Seekable::new(std::io::Cursor::new(bytes.clone())).unwrap();
    let file = OpenOptions::new().open_source(source).unwrap();
    let expected = File::from_bytes(bytes).unwrap();
    for name in expected.names() {
        let dense = |file: &File| file.tensor(name).unwrap().to_dense().unwrap();
        assert_eq!(dense(&file), dense(&expected), "{name}");
    }
}

#[test]
fn bytes_are_the_same_for_memory_of_any_length() {
    let file = File::from_bytes(sample(WriteOptions::new().zstd(1))).unwrap();
    let ramp = file.tensor("ramp").unwrap();
    let expected = ramp.bytes("data").unwrap();
    for len in 0..11 {
        let readers: [Box<dyn Read>; 2] =
            [Box::new(ramp.reader("data").unwrap()), Box::new(ramp.dense_reader().unwrap())];
        for mut reader in readers {
            let (mut head, mut all) = (vec![0; len], Vec::new());
            reader.read_exact(&mut head).unwrap();
            assert_eq!(reader.read(&mut []).unwrap(), 0);
            reader.read_to_end(&mut all).unwrap();
            assert!([head, all].concat() == *expected, "{len} bytes first");
        }
    }
}

#[test]
fn pieces_begin_where_a_read_has_ended() {
    let file = File::from_bytes(sample(WriteOptions::new())).unwrap();
    let ramp = file.tensor("ramp").unwrap();
    let expected = ramp.bytes("data").unwrap();
    let mut all = vec![0; 5];
    let mut reader = ramp.reader("data").unwrap();
    reader.read_exact(&mut all).unwrap();
    let add = |piece: &[u8]| {
        all.extend_from_slice(piece);
        Ok::<(), zt::Error>(())
    };
    reader.for_each_piece(1000, add).unwrap();
    assert!(all == *expected);
}

#[test]
fn an_error_passes_through_the_loops_of_std_unchanged() {
    let mut bytes = sample(WriteOptions::new());
    let file = File::from_bytes(bytes.clone()).unwrap();
    let span = common::span_of(&file, "ramp", "data");
    bytes[usize::try_from(span.end()).unwrap() - 1] ^= 1;
    let file = File::from_bytes(bytes).unwrap();
    let mut reader = file.tensor("ramp").unwrap().reader("data").unwrap();
    let error = std::io::copy(&mut reader, &mut std::io::sink()).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
    let error = zt::Error::from(error);
    assert_eq!(error.code(), "digest-mismatch");
    assert_eq!((error.object(), error.component()), (Some("ramp"), Some("data")));
}

/// A source that was interrupted is not asked again and again.
#[test]
fn an_interrupted_source_ends_a_copy() {
    let error = std::io::Error::from(std::io::ErrorKind::Interrupted);
    let error = std::io::Error::from(zt::Error::from(error));
    assert_eq!(error.kind(), std::io::ErrorKind::Other);
    assert_eq!(zt::Error::from(error).code(), "io");
}

/// A reader has checked the digest at the end, and not before.
#[test]
fn a_component_that_was_read_in_part_is_not_taken_for_verified() {
    let mut bytes = sample(WriteOptions::new());
    let file = File::from_bytes(bytes.clone()).unwrap();
    let span = common::span_of(&file, "ramp", "data");
    bytes[usize::try_from(span.end()).unwrap() - 1] ^= 1;
    let file = File::from_bytes(bytes).unwrap();
    let ramp = file.tensor("ramp").unwrap();
    let mut reader = ramp.reader("data").unwrap();
    assert_eq!(reader.read(&mut [0; 1000]).unwrap(), 1000);
    assert_eq!(ramp.bytes("data").unwrap_err().code(), "digest-mismatch");
}

#[test]
fn wrong_types_and_names_are_the_callers_fault() {
    let file = File::from_bytes(sample(WriteOptions::new())).unwrap();
    let ramp = file.tensor("ramp").unwrap();
    assert_eq!(ramp.values::<i32>().unwrap_err().code(), "misuse");
    assert_eq!(ramp.view::<Csr<'_>>().unwrap_err().code(), "misuse");
    assert_eq!(ramp.bytes("values").unwrap_err().code(), "not-found");
    assert_eq!(file.tensor("nobody").unwrap_err().code(), "not-found");
    assert!(file.get("nobody").is_none());
}

#[test]
fn a_digest_is_checked_on_the_first_read_and_then_trusted() {
    let mut bytes = sample(WriteOptions::new());
    let file = File::from_bytes(bytes.clone()).unwrap();
    let at = usize::try_from(span_of(&file, "ramp", "data").offset()).unwrap();
    bytes[at] ^= 1;

    for (source, damaged) in every_source(&bytes, &OpenOptions::new()) {
        let damaged = damaged.unwrap();
        let ramp = damaged.tensor("ramp").unwrap();
        let error = ramp.values::<f32>().unwrap_err();
        assert_eq!(error.code(), "digest-mismatch", "{source}");
        assert_eq!((error.object(), error.component()), (Some("ramp"), Some("data")));
        assert_eq!(error.offset(), Some(at as u64));
        assert_eq!(
            ramp.bytes("data").unwrap_err().code(),
            "digest-mismatch",
            "a failure is not trusted"
        );
        assert!(damaged.tensor("flags").unwrap().values::<bool>().is_ok(), "its neighbours read");
    }
    let never = OpenOptions::new().verify(Verify::Never);
    for (source, damaged) in every_source(&bytes, &never) {
        let damaged = damaged.unwrap();
        let values = damaged.tensor("ramp").unwrap().values::<f32>().unwrap();
        assert_ne!(values[0], 0.0, "{source}");
    }
}

#[test]
fn verifying_always_sees_what_changes_after_the_first_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.zt");
    let bytes = sample(WriteOptions::new());
    std::fs::write(&path, &bytes).unwrap();
    for (verify, second) in [(Verify::OnRead, true), (Verify::Always, false)] {
        std::fs::write(&path, &bytes).unwrap();
        let file = OpenOptions::new().verify(verify).open(&path).unwrap();
        let flags = file.tensor("flags").unwrap();
        assert!(flags.bytes("data").is_ok());
        let mut changed = bytes.clone();
        let at = usize::try_from(span_of(&file, "flags", "data").offset()).unwrap();
        changed[at] ^= 1;
        std::fs::write(&path, &changed).unwrap();
        assert_eq!(flags.bytes("data").is_ok(), second, "{verify:?}");
    }
}

#[test]
fn a_limit_refuses_before_anything_is_decoded() {
    let bytes = sample(WriteOptions::new().zstd(1));
    let limits = Limits::default().with_decoded_len(23_999);
    let file = OpenOptions::new().limits(limits).open_bytes(bytes).unwrap();
    assert_eq!(file.tensor("ramp").unwrap_err().code(), "decompression-limit");
    assert!(file.tensor("flags").is_ok());
}

#[test]
fn a_small_sparse_object_of_a_huge_shape_has_no_dense_value_within_the_limits() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    let indptr = [0u64, 1];
    let wide = Csr::new([1, 1 << 50], &[1f32][..], &[5u64][..], &indptr[..]).unwrap();
    writer.add("wide", &wide).unwrap();
    writer.finish().unwrap();
    let file = File::from_bytes(bytes).unwrap();
    let error = file.tensor("wide").unwrap().to_dense().unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Limit, "decompression-limit"));
}

#[test]
fn a_file_serves_many_threads() {
    fn shared<T: Send + Sync>(value: T) -> T {
        value
    }
    let file = shared(File::from_bytes(sample(WriteOptions::new().zstd(1))).unwrap());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for name in ["ramp", "flags", "graph", "none"] {
                    file.tensor(name).unwrap().to_dense().unwrap();
                }
            });
        }
    });
}

#[test]
fn entries_come_in_the_order_of_their_data() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    for name in ["zebra", "ant", "mole"] {
        writer.add(name, &Dense::from_slice(&[1], &[1u8]).unwrap()).unwrap();
    }
    writer.finish().unwrap();
    let file = File::from_bytes(bytes).unwrap();
    let names: Vec<&str> = file.entries().iter().map(|entry| entry.name()).collect();
    assert_eq!(names, ["zebra", "ant", "mole"]);
}

#[test]
fn a_fault_belongs_to_its_object_unless_strictness_is_asked_for() {
    let bytes = sample(WriteOptions::new());
    for (_, file) in every_source(&bytes, &OpenOptions::new().strict(true)) {
        assert_eq!(file.unwrap().entries().len(), 4);
    }
    // The shape of `ramp` loses a row: [60, 100] becomes [59, 100].
    let at = bytes.windows(4).rposition(|window| window == [0x82, 0x18, 60, 0x18]).unwrap();
    let mut bytes = bytes;
    bytes[at + 2] = 59;
    ManifestDigest::renew(&mut bytes);
    for (source, file) in every_source(&bytes, &OpenOptions::new()) {
        let file = file.unwrap();
        let error = file.tensor("ramp").unwrap().to_dense().unwrap_err();
        assert_eq!(error.code(), "shape-size-mismatch", "{source}");
        assert_eq!(error.object(), Some("ramp"));
        let entries = file.entries();
        let faulty = entries.iter().find(|entry| entry.name() == "ramp").unwrap();
        assert_eq!(faulty.object().unwrap().shape, [59, 100]);
        let fault = faulty.fault().unwrap();
        assert_eq!(fault.code(), "shape-size-mismatch", "{source}");
        let sound = entries.iter().filter(|entry| entry.fault().is_none());
        assert_eq!(sound.count(), 3, "{source}");
        assert!(file.tensor("graph").is_ok());
    }
    for (_, file) in every_source(&bytes, &OpenOptions::new().strict(true)) {
        assert_eq!(file.unwrap_err().code(), "shape-size-mismatch");
    }
}

/// Pieces are for sources that can be read anywhere at once, and for more than one core.
#[test]
fn a_large_component_is_the_same_from_one_core_and_from_bytes_made_in_order() {
    let values: Vec<u32> = (0..1_400_001u32).map(|at| at.wrapping_mul(at)).collect();
    let dense = Dense::from_slice(&[1_400_001], &values).unwrap();
    for options in [WriteOptions::new(), WriteOptions::new().zstd(1)] {
        let bytes = common::written(&dense, options);
        let mut damaged = bytes.clone();
        damaged[3_000_000] ^= 1;
        let read = |bytes: &[u8], is_whole: bool| {
            let (in_order, _) = common::InOrder::new(bytes.to_vec());
            let in_order = OpenOptions::new().open_source(in_order);
            let files = every_source(bytes, &OpenOptions::new());
            for (source, file) in files.into_iter().chain([("in order", in_order)]) {
                let file = file.unwrap();
                let found = file.tensor("x").unwrap().to_vec::<u32>();
                match found {
                    Ok(found) => assert!(is_whole && found == values, "{source}"),
                    Err(error) => {
                        assert!(!is_whole, "{source}");
                        assert_eq!(error.code(), "digest-mismatch", "{source}");
                    }
                }
            }
        };
        let read_both = || {
            read(&bytes, true);
            read(&damaged, false);
        };
        read_both();
        #[cfg(feature = "rayon")]
        {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1);
            pool.build().unwrap().install(read_both);
        }
    }
}

/// Each step back makes all that lies before it again.
#[test]
fn a_large_component_made_in_order_is_made_once() {
    let content = (0..5u32 << 20).map(|at| at.wrapping_mul(2_654_435_761) >> 28);
    let content: Vec<u8> = content.map(|it| it.to_le_bytes()[0]).collect();
    let (mut frame, mut stored) = (Vec::new(), Vec::new());
    let mut compressor = zt::container::codec::FrameCompressor::new(1).unwrap();
    for content in content.chunks(1 << 20) {
        compressor.compress(content, &mut frame).unwrap();
        stored.extend_from_slice(&frame);
    }
    let byte_len = stored.len() as u64;
    let blob = Blob {
        encoding: Encoding::Zstd,
        decoded_len: Some(content.len() as u64),
        digest: Some(DigestAlgorithm::Crc32c.digest(&stored).unwrap()),
        ..Blob::raw(Span::new(0, byte_len).unwrap())
    };
    let object = Object::new([content.len() as u64], "dense")
        .with_component("data", Component::new(DType::U8, blob));
    let (in_order, made) = common::InOrder::new(stored);
    let mut builder = FileBuilder::new(Kind::new("test"), OpenOptions::new());
    let source = builder.source(in_order);
    builder.object("x", object, source);
    let file = builder.build().unwrap();
    assert!(*file.tensor("x").unwrap().bytes("data").unwrap() == content[..]);
    assert_eq!(made.load(Ordering::Relaxed), byte_len);
}

#[test]
fn a_handle_says_how_many_elements_there_are_and_of_which_type() {
    let file = File::from_bytes(sample(WriteOptions::new())).unwrap();
    for (name, count, dtype) in [
        ("ramp", 6000, DType::F32),
        ("flags", 3, DType::Bool),
        ("graph", 6, DType::I32),
        ("none", 0, DType::U8),
    ] {
        let tensor = file.tensor(name).unwrap();
        assert_eq!(tensor.element_count(), Some(count), "{name}");
        assert_eq!(tensor.dtype(), Some(dtype), "{name}");
        assert_eq!(tensor.value_type().as_deref(), Some(dtype.as_str()));
    }
    let vast = Coo::new([1 << 40, 1 << 40], &[7u8][..], &[1u64, 2][..]).unwrap();
    let file = File::from_bytes(common::written(&vast, WriteOptions::new())).unwrap();
    assert_eq!(file.tensor("x").unwrap().element_count(), None);
}

#[test]
fn a_file_that_nobody_edits_is_opened_once() {
    let file = tempfile::NamedTempFile::new().unwrap();
    for is_ok in [true, false] {
        let calls = Cell::new(0);
        let opened = open_settled(file.path(), |_| {
            calls.set(calls.get() + 1);
            match is_ok {
                true => Ok(()),
                false => Err(zt::Error::new(ErrorKind::Malformed, "header", "untidy")),
            }
        });
        assert_eq!((opened.is_ok(), calls.get()), (is_ok, 1));
    }
}

#[test]
fn an_owned_handle_keeps_its_file_open() {
    let bytes = sample(WriteOptions::new());
    let missing = File::from_bytes(bytes.clone()).unwrap();
    let error = missing.owned_tensor("nope").unwrap_err();
    assert_eq!((error.code(), error.object()), (codes::NOT_FOUND, Some("nope")));
    let ramp = File::from_bytes(bytes).unwrap().owned_tensor("ramp").unwrap();
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let ramp = ramp.clone();
            std::thread::spawn(move || ramp.tensor().values::<f32>().unwrap()[5999])
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), 5999.0);
    }
    assert_eq!(ramp.tensor().name(), "ramp");
    assert!(ramp.file().names().any(|name| name == "ramp"));
}

#[test]
fn another_float_type_is_refused_with_the_way_to_it() {
    let values = [half::bf16::ONE];
    let bytes = common::written(&Dense::from_slice(&[1], &values).unwrap(), WriteOptions::new());
    let file = File::from_bytes(bytes).unwrap();
    let tensor = file.tensor("x").unwrap();
    let error = tensor.to_vec::<f32>().unwrap_err();
    assert_eq!(error.code(), codes::MISUSE);
    assert!(error.message().contains("to_dense()?.to_f32()"), "{error}");
    let dense = tensor.to_dense().unwrap().to_f32().unwrap();
    assert_eq!(*dense.as_slice::<f32>().unwrap(), [1.0]);
}
