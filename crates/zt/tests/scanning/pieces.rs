//! What is looked at in pieces, and what cannot be.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use zt::foreign::{FileBuilder, Kind};
use zt::{
    Blob, ByteOrder, Component, DType, Dense, Digest, DigestAlgorithm, Encoding, ErrorKind, File,
    HashOptions, Memory, Object, OpenOptions, Source, Span, VerifyOptions, WriteOptions,
};

use super::{Counted, PIECE, built, content, counted, dense, hash, noise, stored, verify};
use crate::common::{self, every_source, span_of};

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

fn found(report: &zt::Report) -> (u64, u64, Vec<String>) {
    let problems = report.problems.iter().map(ToString::to_string);
    (report.components, report.bytes, problems.collect())
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
                    assert_eq!(found(&verify(&file, threads)), one, "{name}, {source}, {at}");
                    assert_eq!(hash(&file, threads), hashed, "{name}, {source}, {at}");
                }
                let codes: Vec<&str> =
                    verify(&file, 2).problems.iter().map(zt::Error::code).collect();
                match name {
                    // A damaged table is ignored, and without a digest it is no fault.
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
            let blob =
                |span| Blob { encoding, decoded_len: Some(bools.len() as u64), ..Blob::raw(span) };
            let stored = stored(&bools, encoding);
            let span = Span::new(0, stored.len() as u64).unwrap();
            let object = dense(DType::Bool, bools.len() as u64, blob(span));
            let report = verify(&built(Memory::new(stored), [("flags", object)]), 2);
            let [problem] = &report.problems[..] else { unreachable!("{report:?}") };
            assert_eq!(problem.code(), "bool-value");
            assert!(problem.message().contains(&at.to_string()), "{problem}");
        }
    }
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
                    chunks: None,
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

/// Bytes. The range `1` cannot be read once `2` is not zero.
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
    let little: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let big: Vec<u8> = values.iter().flat_map(|value| value.to_be_bytes()).collect();
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
            sums.push(hash(&built(Memory::new(stored), [("x", object)]), 2));
        }
    }
    assert!(sums.iter().all(|sum| *sum == sums[0]), "{sums:?}");
}

/// What is found, and how many bytes were told to be done.
fn verified(file: &File) -> (zt::Report, u64) {
    let done = AtomicU64::new(0);
    let count = |bytes| {
        done.fetch_add(bytes, Ordering::Relaxed);
        ControlFlow::Continue(())
    };
    let options = VerifyOptions::new().progress(zt::Progress::new(&count));
    let report = file.verify(&options).unwrap();
    (report, done.into_inner())
}

#[test]
fn progress_counts_every_byte_and_stops_every_thread() {
    for (name, options) in every_option() {
        let file = File::from_bytes(file_of(options)).unwrap();
        let (report, done) = verified(&file);
        assert_eq!(done, report.bytes, "{name}");
        let done = AtomicU64::new(0);
        let count = |bytes| {
            done.fetch_add(bytes, Ordering::Relaxed);
            ControlFlow::Continue(())
        };
        let options = HashOptions::new().progress(zt::Progress::new(&count));
        file.hash(&options).unwrap();
        assert_eq!(done.load(Ordering::Relaxed), report.bytes, "{name}");

        let calls = AtomicU64::new(0);
        let stop = |_| {
            calls.fetch_add(1, Ordering::Relaxed);
            ControlFlow::Break(())
        };
        let options = VerifyOptions::new().progress(zt::Progress::new(&stop)).threads(3);
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
        let object = dense(DType::U8, content.len() as u64, blob);
        built(Memory::new(stored), [("x", object)])
    };
    let (framed, raw) = (file(frames, Encoding::Zstd), file(content.clone(), Encoding::Raw));
    for threads in [1, 3] {
        assert!(verify(&framed, threads).is_ok());
        assert_eq!(hash(&framed, threads), hash(&raw, threads));
    }
}

/// An unknown format does not give the lengths of its components.
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
        let file = built(Memory::new(frames.clone()), [("x", object)]);
        let (report, done) = verified(&file);
        let codes: Vec<_> = report.problems.iter().map(zt::Error::code).collect();
        assert_eq!(codes, Vec::from_iter(code));
        assert_eq!(done, content.len() as u64);
    }
}
