//! Verifying and hashing in pieces, on any number of threads.
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "tests"
)]

mod common;

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use common::{every_source, span_of};
use zt::{
    Blob, ByteOrder, Component, DType, Dense, Digest, DigestAlgorithm, Encoding, ErrorKind, File,
    FileBuilder, HashOptions, Kind, Memory, Object, OpenOptions, Source, Span, VerifyOptions,
    WriteOptions,
};

const PIECE: usize = 1 << 20;

/// Compresses a little, and has more than four pieces.
fn content() -> Vec<u32> {
    (0..1_200_000u32).map(|value| value / 7).collect()
}

/// A large object between two small ones.
fn file_of(options: WriteOptions) -> Vec<u8> {
    let content = content();
    let mut bytes = Vec::new();
    let mut writer = options.to_writer(&mut bytes).unwrap();
    let small = Dense::from_slice(&[3], &[1u8, 2, 3]).unwrap();
    writer.add("a", &small).unwrap();
    let large = Dense::from_slice(&[content.len() as u64], &content).unwrap();
    writer.add("large", &large).unwrap();
    writer.add("z", &small).unwrap();
    writer.finish().unwrap();
    bytes
}

fn every_option() -> Vec<(&'static str, WriteOptions)> {
    let sha256 = Some(DigestAlgorithm::Sha256);
    vec![
        ("raw", WriteOptions::new()),
        ("raw sha256", WriteOptions::new().digest(sha256)),
        ("zstd", WriteOptions::new().zstd(1)),
        ("zstd sha256", WriteOptions::new().zstd(1).digest(sha256)),
        ("zstd alone", WriteOptions::new().zstd(1).digest(None)),
    ]
}

fn verify(file: &File, threads: usize) -> zt::Report {
    let options = VerifyOptions {
        threads: Some(threads),
        ..VerifyOptions::default()
    };
    file.verify(&options).unwrap()
}

fn found(report: &zt::Report) -> (u64, u64, Vec<String>) {
    let problems = report.problems.iter().map(ToString::to_string);
    (report.components, report.bytes, problems.collect())
}

fn hash(file: &File, threads: usize) -> Vec<(String, String)> {
    let options = HashOptions {
        threads: Some(threads),
        dense: true,
        ..HashOptions::default()
    };
    let hash = file.hash(&options).unwrap();
    let objects = hash.objects.into_iter();
    let objects = objects.map(|(name, hash)| (name, format!("{hash:?}")));
    objects
        .chain([("content".into(), format!("{:?}", hash.content))])
        .collect()
}

#[test]
fn any_number_of_threads_finds_the_same() {
    let expected = hash(&File::from_bytes(file_of(WriteOptions::new())).unwrap(), 1);
    for (name, options) in every_option() {
        let sound = file_of(options);
        let span = span_of(&File::from_bytes(sound.clone()).unwrap(), "large", "data");
        let (start, len) = (span.offset() as usize, span.byte_len() as usize);
        for (source, file) in every_source(&sound, &OpenOptions::new()) {
            for threads in [1, 2, 5] {
                let file = file.clone().unwrap();
                let report = verify(&file, threads);
                assert!(report.is_ok(), "{name}, {source}: {report:?}");
                assert_eq!(report.bytes, 4_800_006, "{name}, {source}");
                assert_eq!(hash(&file, threads), expected, "{name}, {source}");
            }
        }
        // At the borders of raw pieces, within frames, and in the table of frames.
        for at in [0, PIECE - 1, PIECE, 2 * PIECE, len - 20, len - 1] {
            let mut bytes = sound.clone();
            let Some(byte) = bytes.get_mut(start + at).filter(|_| at < len) else {
                continue;
            };
            *byte ^= 0x10;
            for (source, file) in every_source(&bytes, &OpenOptions::new()) {
                let file = file.unwrap();
                let one = found(&verify(&file, 1));
                let hashed = hash(&file, 1);
                for threads in [2, 5] {
                    assert_eq!(
                        found(&verify(&file, threads)),
                        one,
                        "{name}, {source}, {at}"
                    );
                    assert_eq!(hash(&file, threads), hashed, "{name}, {source}, {at}");
                }
                let codes: Vec<&str> = verify(&file, 2)
                    .problems
                    .iter()
                    .map(zt::Error::code)
                    .collect();
                match name {
                    // A table that is damaged is no table, and without a digest nobody minds.
                    "zstd alone" => assert!(codes == ["zstd"] || codes.is_empty(), "{codes:?}"),
                    _ => assert_eq!(codes, ["digest-mismatch"], "{name}, {source}, {at}"),
                }
            }
        }
    }
}

#[test]
fn a_wrong_bool_is_found_on_either_side_of_a_border() {
    for at in [0, PIECE - 1, PIECE, 3 * PIECE - 1] {
        for encoding in [Encoding::Raw, Encoding::Zstd] {
            let mut bools = vec![1u8; 3 * PIECE];
            bools[at] = 2;
            bools[3 * PIECE - 1] |= 2;
            let blob = |span| Blob {
                encoding,
                decoded_len: Some(bools.len() as u64),
                ..Blob::raw(span)
            };
            let stored = stored(&bools, encoding);
            let object = |blob| {
                let component = Component::new(DType::Bool, blob);
                Object::new([bools.len() as u64], "dense").with_component("data", component)
            };
            let span = Span::new(0, stored.len() as u64).unwrap();
            let mut builder = FileBuilder::new(Kind::new("test"), OpenOptions::new());
            let source = builder.source(Memory::new(stored));
            builder.object("flags", object(blob(span)), source);
            let report = verify(&builder.build().unwrap(), 2);
            let [problem] = &report.problems[..] else {
                unreachable!("{report:?}")
            };
            assert_eq!(problem.code(), "bool-value");
            assert!(problem.message().contains(&at.to_string()), "{problem}");
        }
    }
}

/// The same bytes, once as bools and once as numbers: of those nothing is wrong.
#[test]
fn a_wrong_bool_is_the_fault_of_what_says_that_it_is_one() {
    let span = Span::new(0, 3).unwrap();
    let mut builder = FileBuilder::new(Kind::new("test"), OpenOptions::new());
    let source = builder.source(Memory::new([1, 0, 2]));
    for (name, dtype) in [("numbers", DType::U8), ("flags", DType::Bool)] {
        let data = Component::new(dtype, Blob::raw(span));
        let object = Object::new([3], "dense").with_component("data", data);
        builder.object(name, object, source);
    }
    let file = builder.build().unwrap();
    let problems = verify(&file, 1).problems;
    let faulty = problems.iter().map(|it| (it.code(), it.object()));
    assert_eq!(faulty.collect::<Vec<_>>(), [("bool-value", Some("flags"))]);
    // Whoever hashes bytes does not ask what they mean.
    let hash = file.hash(&HashOptions::default()).unwrap();
    assert!(hash.content.is_some());
}

fn stored(content: &[u8], encoding: Encoding) -> Vec<u8> {
    if encoding == Encoding::Raw {
        return content.to_vec();
    }
    let mut compressor = zt::container::codec::FrameCompressor::new(1).unwrap();
    let (mut frame, mut all) = (Vec::new(), Vec::new());
    for content in content.chunks(PIECE - 3) {
        compressor.compress(content, &mut frame).unwrap();
        all.extend_from_slice(&frame);
    }
    all
}

/// Counts what is read of bytes that end early.
struct Counted(Vec<u8>, u64, Arc<AtomicU64>);

impl Source for Counted {
    fn byte_len(&self) -> u64 {
        self.1
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.2.fetch_add(buf.len() as u64, Ordering::Relaxed);
        Memory::new(&self.0[..]).read_at(offset, buf)
    }
}

fn counted(bytes: Vec<u8>) -> (Counted, Arc<AtomicU64>) {
    let count = Arc::new(AtomicU64::new(0));
    let len = bytes.len() as u64;
    (Counted(bytes, len, Arc::clone(&count)), count)
}

/// Tied weights, and manifests that want to keep their reader busy.
#[test]
fn bytes_that_many_objects_share_are_looked_at_once() {
    let content = content();
    let content: Vec<u8> = content
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    for encoding in [Encoding::Raw, Encoding::Zstd] {
        let stored = stored(&content, encoding);
        let byte_len = stored.len() as u64;
        let crc32c = DigestAlgorithm::Crc32c.digest(&stored).unwrap();
        let sha256 = DigestAlgorithm::Sha256.digest(&stored).unwrap();
        let wrong = Digest::Crc32c(7);
        let (source, count) = counted(stored);
        let mut builder = FileBuilder::new(Kind::new("test"), OpenOptions::new());
        let source = builder.source(source);
        let mut add = |name: String, digest: Option<&Digest>, decoded_len: u64| {
            let blob = Blob {
                span: Span::new(0, byte_len).unwrap(),
                encoding,
                decoded_len: Some(decoded_len),
                digest: digest.cloned(),
            };
            let object = Object::new([decoded_len], "dense")
                .with_component("data", Component::new(DType::U8, blob));
            builder.object(name, object, source);
        };
        let whole = content.len() as u64;
        for at in 0..300 {
            let digests = [None, Some(&crc32c), Some(&sha256), Some(&wrong)];
            add(format!("{at:03}"), digests[at % 4], whole);
        }
        if encoding == Encoding::Zstd {
            (1..100).for_each(|at| add(format!("short {at:03}"), None, whole - at));
            (1..100).for_each(|at| add(format!("long {at:03}"), None, whole + at));
        }
        let file = builder.build().unwrap();
        count.store(0, Ordering::Relaxed);
        let report = verify(&file, 2);
        let mut codes = std::collections::BTreeMap::new();
        for problem in &report.problems {
            *codes.entry(problem.code()).or_insert(0) += 1;
        }
        let expected: &[(&str, i32)] = match encoding {
            Encoding::Raw => &[("digest-mismatch", 75)],
            _ => &[("digest-mismatch", 75), ("zstd", 198)],
        };
        assert_eq!(codes.into_iter().collect::<Vec<_>>(), expected);
        let hashed = hash(&file, 2);
        let wrong = hashed.iter().filter(|(_, hash)| hash.contains("Err("));
        assert_eq!(
            wrong.count() as i32,
            expected.iter().map(|(_, count)| count).sum::<i32>()
        );
        let read = count.load(Ordering::Relaxed);
        assert!(read < 12 * byte_len, "{read} bytes read of {byte_len}");
    }
}

#[test]
fn a_digest_that_was_found_right_serves_every_object_with_the_bytes() {
    let bytes = vec![3; 100_000];
    let digest = DigestAlgorithm::Crc32c.digest(&bytes).unwrap();
    let mut builder = FileBuilder::new(Kind::new("test"), OpenOptions::new());
    let span = Span::new(0, bytes.len() as u64).unwrap();
    let source = builder.source(Memory::new(bytes));
    for (name, digest) in [("a", &digest), ("b", &digest), ("c", &Digest::Crc32c(1))] {
        let blob = Blob {
            digest: Some(digest.clone()),
            ..Blob::raw(span)
        };
        let object = Object::new([span.byte_len()], "dense")
            .with_component("data", Component::new(DType::U8, blob));
        builder.object(name, object, source);
    }
    let file = builder.build().unwrap();
    let tensor = |name| file.tensor(name).unwrap();
    assert!(!tensor("b").is_verified("data").unwrap());
    tensor("a").bytes("data").unwrap();
    assert!(tensor("b").is_verified("data").unwrap());
    let error = tensor("c").bytes("data").unwrap_err();
    assert_eq!(error.code(), "digest-mismatch");
}

#[test]
fn what_a_cut_file_lacks_is_an_error_of_its_objects_alone() {
    for (name, options) in every_option() {
        let bytes = file_of(options);
        let large = span_of(&File::from_bytes(bytes.clone()).unwrap(), "large", "data");
        // In the midst of the frames, and within the table behind them.
        for missing in [large.byte_len() / 3, 1] {
            let (mut source, _) = counted(bytes.clone());
            // The source still says its old length, as a file does that is cut while it is open.
            let manifest = source.0.split_off((large.end() - missing) as usize);
            let source = Cut(source, manifest, Arc::new(AtomicU64::new(0)));
            let is_cut = Arc::clone(&source.2);
            let file = OpenOptions::new().open_source(source).unwrap();
            let sound = file.tensor("a").unwrap().object().clone();
            file.names().for_each(|name| drop(file.tensor(name)));
            is_cut.store(1, Ordering::Relaxed);
            let problems = verify(&file, 2).problems;
            let objects: Vec<_> = problems.iter().map(|p| (p.object(), p.kind())).collect();
            let expected = [(Some("large"), ErrorKind::Io), (Some("z"), ErrorKind::Io)];
            assert_eq!(objects, expected, "{name}");
            assert_eq!(file.tensor("a").unwrap().object(), &sound);
        }
    }
}

/// Bytes of an archive, or of chunks that are put together: each step back makes all of them again.
#[test]
fn what_is_made_in_order_is_looked_at_in_order() {
    let content: Vec<u8> = content().iter().flat_map(|it| it.to_le_bytes()).collect();
    // Too much in one frame for it to be a piece.
    let (long, mut alone) = (content.repeat(2), Vec::new());
    let mut compressor = zt::container::codec::FrameCompressor::new(1).unwrap();
    compressor.compress(&long, &mut alone).unwrap();
    let frames = stored(&content, Encoding::Zstd);
    for (stored, content_len, encoding, passes) in [
        (content.clone(), content.len(), Encoding::Raw, 1),
        // To look for a table, to find the frames, to decode them, and to hash one that is alone.
        (frames, content.len(), Encoding::Zstd, 3),
        (alone, long.len(), Encoding::Zstd, 4),
    ] {
        let byte_len = stored.len() as u64;
        let digests = [DigestAlgorithm::Crc32c, DigestAlgorithm::Sha256];
        let digests = digests.map(|algorithm| algorithm.digest(&stored).ok());
        let mut damaged = stored.clone();
        damaged[stored.len() / 2] ^= 4;
        for digest in [None].into_iter().chain(digests) {
            for stored in [&stored, &damaged] {
                let blob = Blob {
                    span: Span::new(0, byte_len).unwrap(),
                    encoding,
                    decoded_len: Some(content_len as u64),
                    digest: digest.clone(),
                };
                let data = Component::new(DType::U8, blob);
                let object = Object::new([content_len as u64], "dense");
                let object = object.with_component("data", data);
                let (in_order, made) = common::InOrder::new(stored.clone());
                let builder = || FileBuilder::new(Kind::new("test"), OpenOptions::new());
                let (mut file, mut plain) = (builder(), builder());
                let source = file.derived(in_order);
                file.object("x", object.clone(), source);
                let source = plain.derived(Memory::new(stored.clone()));
                plain.object("x", object, source);
                let (file, plain) = (file.build().unwrap(), plain.build().unwrap());
                assert_eq!(found(&verify(&file, 3)), found(&verify(&plain, 3)));
                let verified = made.swap(0, Ordering::Relaxed);
                assert_eq!(hash(&file, 3), hash(&plain, 3));
                let hashed = made.swap(0, Ordering::Relaxed);
                let most = passes * byte_len;
                assert!(verified <= most && hashed <= most, "{verified}, {hashed}");
            }
        }
    }
}

/// Bytes of which those in `1` are gone once `2` is not zero.
struct Cut(Counted, Vec<u8>, Arc<AtomicU64>);

impl Source for Cut {
    fn byte_len(&self) -> u64 {
        self.0.byte_len()
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        if self.2.load(Ordering::Relaxed) != 0 {
            return self.0.read_at(offset, buf);
        }
        let all = [&self.0.0[..], &self.1].concat();
        Memory::new(all).read_at(offset, buf)
    }
}

#[test]
fn big_endian_content_is_hashed_as_little_endian() {
    let values = content();
    let little: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    let big: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_be_bytes())
        .collect();
    let mut sums = Vec::new();
    for (content, order) in [(&little, ByteOrder::Little), (&big, ByteOrder::Big)] {
        for encoding in [Encoding::Raw, Encoding::Zstd] {
            // Frames end within elements.
            let stored = stored(content, encoding);
            let blob = Blob {
                encoding,
                decoded_len: Some(content.len() as u64),
                ..Blob::raw(Span::new(0, stored.len() as u64).unwrap())
            };
            let mut component = Component::new(DType::U32, blob);
            component.byte_order = order;
            let object =
                Object::new([values.len() as u64], "dense").with_component("data", component);
            let mut builder = FileBuilder::new(Kind::new("test"), OpenOptions::new());
            let source = builder.source(Memory::new(stored));
            builder.object("x", object, source);
            sums.push(hash(&builder.build().unwrap(), 2));
        }
    }
    assert!(sums.iter().all(|sum| *sum == sums[0]), "{sums:?}");
}

#[test]
fn progress_counts_every_byte_and_stops_every_thread() {
    for (name, options) in every_option() {
        let file = File::from_bytes(file_of(options)).unwrap();
        let done = AtomicU64::new(0);
        let count = |bytes| {
            done.fetch_add(bytes, Ordering::Relaxed);
            ControlFlow::Continue(())
        };
        let options = VerifyOptions {
            progress: Some(&count),
            ..VerifyOptions::default()
        };
        let report = file.verify(&options).unwrap();
        assert_eq!(done.swap(0, Ordering::Relaxed), report.bytes, "{name}");
        let options = HashOptions {
            progress: Some(&count),
            ..HashOptions::default()
        };
        file.hash(&options).unwrap();
        assert_eq!(done.load(Ordering::Relaxed), report.bytes, "{name}");

        let calls = AtomicU64::new(0);
        let stop = |_| {
            calls.fetch_add(1, Ordering::Relaxed);
            ControlFlow::Break(())
        };
        let options = VerifyOptions {
            progress: Some(&stop),
            threads: Some(3),
            ..VerifyOptions::default()
        };
        let error = file.verify(&options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Interrupted, "{name}");
        // Those that were already asking when the first was told.
        assert!(calls.load(Ordering::Relaxed) <= 3, "{name}");
    }
}

/// Larger than a piece, and than the memory that is kept between them.
#[test]
fn frames_longer_than_pieces_are_looked_at_as_they_are() {
    let content: Vec<u8> = (0..11_000_000u32).map(|at| (at >> 10) as u8).collect();
    let mut compressor = zt::container::codec::FrameCompressor::new(1).unwrap();
    let mut frames = Vec::new();
    for content in content.chunks(5 << 20) {
        let mut frame = Vec::new();
        compressor.compress(content, &mut frame).unwrap();
        frames.extend_from_slice(&frame);
    }
    let file = |stored: Vec<u8>, encoding| {
        let blob = Blob {
            encoding,
            decoded_len: Some(content.len() as u64),
            digest: Some(DigestAlgorithm::Crc32c.digest(&stored).unwrap()),
            ..Blob::raw(Span::new(0, stored.len() as u64).unwrap())
        };
        let component = Component::new(DType::U8, blob);
        let object = Object::new([content.len() as u64], "dense").with_component("data", component);
        let mut builder = FileBuilder::new(Kind::new("test"), OpenOptions::new());
        let source = builder.source(Memory::new(stored));
        builder.object("x", object, source);
        builder.build().unwrap()
    };
    let (framed, raw) = (
        file(frames, Encoding::Zstd),
        file(content.clone(), Encoding::Raw),
    );
    for threads in [1, 3] {
        assert!(verify(&framed, threads).is_ok());
        assert_eq!(hash(&framed, threads), hash(&raw, threads));
    }
}

/// The length that its objects disagree about is looked for beside neighbours that are read with it.
#[test]
fn a_length_in_dispute_is_the_fault_of_the_object_that_is_wrong() {
    let mut compressor = zt::container::codec::FrameCompressor::new(1).unwrap();
    let (mut frame, mut all, mut spans) = (Vec::new(), Vec::new(), Vec::new());
    for content in [[1u8; 5], [2; 5], [3; 5]] {
        compressor.compress(&content, &mut frame).unwrap();
        spans.push(Span::new(all.len() as u64, frame.len() as u64).unwrap());
        all.extend_from_slice(&frame);
    }
    let mut builder = FileBuilder::new(Kind::new("test"), OpenOptions::new());
    let source = builder.source(common::ByPosition(all));
    for (name, at, len) in [
        ("a", 0, 5),
        ("b", 1, 6),
        ("c", 1, 5),
        ("d", 1, 4),
        ("e", 2, 5),
    ] {
        let blob = Blob {
            encoding: Encoding::Zstd,
            decoded_len: Some(len),
            ..Blob::raw(spans[at])
        };
        let component = Component::new(DType::U8, blob);
        let object = Object::new([len], "dense").with_component("data", component);
        builder.object(name, object, source);
    }
    let file = builder.build().unwrap();
    for threads in [1, 3] {
        let report = verify(&file, threads);
        let wrong: Vec<_> = report.problems.iter().map(|it| it.object()).collect();
        assert_eq!(wrong, [Some("b"), Some("d")]);
    }
}

fn noise(len: usize) -> Vec<u8> {
    let mut state = 1u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

/// Of a format that nobody knows, which does not say how long its components are.
#[test]
fn a_stream_of_unknown_length_is_decoded_and_summed() {
    let content = noise(PIECE + 9);
    let frames = stored(&content, Encoding::Zstd);
    let [crc32c, sha256] = [DigestAlgorithm::Crc32c, DigestAlgorithm::Sha256]
        .map(|algorithm| algorithm.digest(&frames).unwrap());
    for (dtype, digest, code) in [
        (DType::U8, crc32c.clone(), None),
        (DType::U8, sha256, None),
        (DType::U8, Digest::Crc32c(1), Some("digest-mismatch")),
        (DType::Bool, crc32c, Some("bool-value")),
    ] {
        let blob = Blob {
            encoding: Encoding::Zstd,
            decoded_len: None,
            digest: Some(digest),
            ..Blob::raw(Span::new(0, frames.len() as u64).unwrap())
        };
        let component = Component::new(dtype, blob);
        let object = Object::new([3], "test.alien/1").with_component("data", component);
        let mut builder = FileBuilder::new(Kind::new("test"), OpenOptions::new());
        let source = builder.source(Memory::new(frames.clone()));
        builder.object("x", object, source);
        let done = AtomicU64::new(0);
        let count = |bytes| {
            done.fetch_add(bytes, Ordering::Relaxed);
            ControlFlow::Continue(())
        };
        let options = VerifyOptions {
            progress: Some(&count),
            ..VerifyOptions::default()
        };
        let report = builder.build().unwrap().verify(&options).unwrap();
        let codes: Vec<_> = report.problems.iter().map(zt::Error::code).collect();
        assert_eq!(codes, Vec::from_iter(code));
        assert_eq!(done.load(Ordering::Relaxed), content.len() as u64);
    }
}

/// Objects may disagree about a stream that holds far more than any of them says.
#[test]
fn a_length_in_dispute_is_looked_for_no_further_than_the_longest() {
    let stored = stored(&noise(4 * PIECE), Encoding::Zstd);
    let span = Span::new(0, stored.len() as u64).unwrap();
    let (source, count) = counted(stored);
    let mut builder = FileBuilder::new(Kind::new("test"), OpenOptions::new());
    let source = builder.source(source);
    for (name, len) in [("a", 10), ("b", 20)] {
        let blob = Blob {
            encoding: Encoding::Zstd,
            decoded_len: Some(len),
            ..Blob::raw(span)
        };
        let component = Component::new(DType::U8, blob);
        let object = Object::new([len], "dense").with_component("data", component);
        builder.object(name, object, source);
    }
    let file = builder.build().unwrap();
    count.store(0, Ordering::Relaxed);
    assert_eq!(verify(&file, 2).problems.len(), 2);
    // The decoder that is told the length takes all that is stored, and finds it too long.
    let (read, byte_len) = (count.load(Ordering::Relaxed), span.byte_len());
    assert!(read < byte_len + byte_len / 2, "{read}");
}

/// A file of objects of the same bytes, each with a digest of its own.
#[cfg(any(feature = "crc32", feature = "xxh3"))]
fn of_digests(bytes: Vec<u8>, digests: &[Digest]) -> File {
    let span = Span::new(0, bytes.len() as u64).unwrap();
    let mut builder = FileBuilder::new(Kind::new("test"), OpenOptions::new());
    let source = builder.source(Memory::new(bytes));
    for (at, digest) in digests.iter().enumerate() {
        let blob = Blob {
            digest: Some(digest.clone()),
            ..Blob::raw(span)
        };
        let object = Object::new([span.byte_len()], "dense")
            .with_component("data", Component::new(DType::U8, blob));
        builder.object(at.to_string(), object, source);
    }
    builder.build().unwrap()
}

#[cfg(feature = "xxh3")]
#[test]
fn digests_of_xxh3_are_compared() {
    for len in [100, 2 * PIECE] {
        let bytes = vec![7; len];
        let right = DigestAlgorithm::Xxh3.digest(&bytes).unwrap();
        let file = of_digests(bytes, &[right, Digest::Xxh3(1)]);
        let problems = verify(&file, 2).problems;
        let found: Vec<_> = problems.iter().map(|it| (it.object(), it.code())).collect();
        assert_eq!(found, [(Some("1"), "digest-mismatch")]);
    }
}

/// One of them is computed; no file has two.
#[cfg(feature = "crc32")]
#[test]
fn a_second_checksum_of_one_range_does_not_pass_in_silence() {
    let right = DigestAlgorithm::Crc32c.digest(&[7; 100]).unwrap();
    let file = of_digests(vec![7; 100], &[right, Digest::Crc32(1)]);
    let problems = verify(&file, 2).problems;
    let found: Vec<_> = problems.iter().map(zt::Error::object).collect();
    assert_eq!(found, [Some("1")]);
}
