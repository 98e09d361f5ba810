//! Bytes that several objects share, and what these say of them.

use std::sync::atomic::Ordering;

use zt::{Blob, DType, Digest, DigestAlgorithm, Encoding, File, HashOptions, Memory, Object, Span};

use super::{PIECE, built, content, counted, dense, hash, noise, stored, verify};
use crate::common;

/// The same bytes, once as bools and once as numbers: of those nothing is wrong.
#[test]
fn a_wrong_bool_is_the_fault_of_what_says_that_it_is_one() {
    let span = Span::new(0, 3).unwrap();
    let objects = [("numbers", DType::U8), ("flags", DType::Bool)];
    let objects = objects.map(|(name, dtype)| (name, dense(dtype, 3, Blob::raw(span))));
    let file = built(Memory::new([1, 0, 2]), objects);
    let problems = verify(&file, 1).problems;
    let faulty = problems.iter().map(|it| (it.code(), it.object()));
    assert_eq!(faulty.collect::<Vec<_>>(), [("bool-value", Some("flags"))]);
    // Whoever hashes bytes does not ask what they mean.
    let hash = file.hash(&HashOptions::default()).unwrap();
    assert!(hash.content.is_some());
}

/// Tied weights, and manifests that want to keep their reader busy.
#[test]
fn bytes_that_many_objects_share_are_looked_at_once() {
    let content = content();
    let content: Vec<u8> = content.iter().flat_map(|value| value.to_le_bytes()).collect();
    for encoding in [Encoding::Raw, Encoding::Zstd] {
        let stored = stored(&content, encoding);
        let byte_len = stored.len() as u64;
        let crc32c = DigestAlgorithm::Crc32c.digest(&stored).unwrap();
        let sha256 = DigestAlgorithm::Sha256.digest(&stored).unwrap();
        let wrong = Digest::Crc32c(7);
        let (source, count) = counted(stored);
        let mut objects = Vec::new();
        let mut add = |name: String, digest: Option<&Digest>, decoded_len: u64| {
            let blob = Blob {
                span: Span::new(0, byte_len).unwrap(),
                encoding,
                decoded_len: Some(decoded_len),
                digest: digest.cloned(),
                chunks: None,
            };
            objects.push((name, dense(DType::U8, decoded_len, blob)));
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
        let file = built(source, objects);
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
        assert_eq!(wrong.count() as i32, expected.iter().map(|(_, count)| count).sum::<i32>());
        let read = count.load(Ordering::Relaxed);
        assert!(read < 12 * byte_len, "{read} bytes read of {byte_len}");
    }
}

/// An object of so many bytes, it says, within compressed ones.
fn of_length(span: Span, len: u64) -> Object {
    let blob = Blob { encoding: Encoding::Zstd, decoded_len: Some(len), ..Blob::raw(span) };
    dense(DType::U8, len, blob)
}

/// A file of objects of the same bytes, each with a digest of its own.
fn of_digests(bytes: Vec<u8>, digests: &[Digest]) -> File {
    let span = Span::new(0, bytes.len() as u64).unwrap();
    let objects = digests.iter().enumerate().map(|(at, digest)| {
        let blob = Blob { digest: Some(digest.clone()), ..Blob::raw(span) };
        (at.to_string(), dense(DType::U8, span.byte_len(), blob))
    });
    built(Memory::new(bytes), objects)
}

#[test]
fn a_digest_that_was_found_right_serves_every_object_with_the_bytes() {
    let bytes = vec![3; 100_000];
    let digest = DigestAlgorithm::Crc32c.digest(&bytes).unwrap();
    let file = of_digests(bytes, &[digest.clone(), digest, Digest::Crc32c(1)]);
    let tensor = |name| file.tensor(name).unwrap();
    assert!(!tensor("1").is_verified("data").unwrap());
    tensor("0").bytes("data").unwrap();
    assert!(tensor("1").is_verified("data").unwrap());
    let error = tensor("2").bytes("data").unwrap_err();
    assert_eq!(error.code(), "digest-mismatch");
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
    let objects = [("a", 0, 5), ("b", 1, 6), ("c", 1, 5), ("d", 1, 4), ("e", 2, 5)];
    let objects = objects.map(|(name, at, len)| (name, of_length(spans[at], len)));
    let file = built(common::ByPosition(all), objects);
    for threads in [1, 3] {
        let report = verify(&file, threads);
        let wrong: Vec<_> = report.problems.iter().map(|it| it.object()).collect();
        assert_eq!(wrong, [Some("b"), Some("d")]);
    }
}

/// Objects may disagree about a stream that holds far more than any of them says.
#[test]
fn a_length_in_dispute_is_looked_for_no_further_than_the_longest() {
    let stored = stored(&noise(4 * PIECE), Encoding::Zstd);
    let span = Span::new(0, stored.len() as u64).unwrap();
    let (source, count) = counted(stored);
    let objects = [("a", 10), ("b", 20)].map(|(name, len)| (name, of_length(span, len)));
    let file = built(source, objects);
    count.store(0, Ordering::Relaxed);
    assert_eq!(verify(&file, 2).problems.len(), 2);
    // The decoder that is told the length takes all that is stored, and finds it too long.
    let (read, byte_len) = (count.load(Ordering::Relaxed), span.byte_len());
    assert!(read < byte_len + byte_len / 2, "{read}");
}

#[test]
fn digests_of_an_algorithm_of_ones_own_are_compared() {
    for (len, checksum) in [
        (100, &common::CHAIN),
        (2 * PIECE, &common::CHAIN),
        (100, &common::ADDED),
        (2 * PIECE, &common::ADDED),
    ] {
        let bytes = vec![7; len];
        let right = DigestAlgorithm::Other(checksum).digest(&bytes).unwrap();
        let file = of_digests(bytes, &[right, checksum.of(1)]);
        let problems = verify(&file, 2).problems;
        let found: Vec<_> = problems.iter().map(|it| (it.object(), it.code())).collect();
        assert_eq!(found, [(Some("1"), "digest-mismatch")]);
    }
}

/// One of them is computed; no file has two.
#[test]
fn a_second_checksum_of_one_range_does_not_pass_in_silence() {
    let right = DigestAlgorithm::Crc32c.digest(&[7; 100]).unwrap();
    let file = of_digests(vec![7; 100], &[right, common::ADDED.of(1)]);
    let problems = verify(&file, 2).problems;
    let found: Vec<_> = problems.iter().map(zt::Error::object).collect();
    assert_eq!(found, [Some("1")]);
}
