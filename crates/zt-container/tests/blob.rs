//! Decoding blobs: exact lengths, digests over stored bytes, bounded memory.
#![cfg(all(feature = "zstd", feature = "crc32c"))]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use zt_container::codec::{FrameCompressor, SeekTable, decode_into};
use zt_container::{
    Blob, BlobReader, Digest, DigestAlgorithm, Encoding, Error, FramingViolation, Hasher, Limits,
    Memory, Source, Span, check_declared, read_into,
};

fn content() -> Vec<u8> {
    (0..700_000u32).flat_map(|i| (i / 3).to_le_bytes()).collect()
}

/// Bytes that zstd cannot compress: more than one piece, and beyond 8 MiB read in pieces.
fn noise(len: u32) -> Vec<u8> {
    let mix = |at: u32| (at ^ at >> 15).wrapping_mul(0x2C1B_3C6D) ^ 0x9E37_79B9;
    (0..len).map(|at| (mix(mix(at)) >> 24).to_le_bytes()[0]).collect()
}

/// Frames of 1 MiB and their table, as the writer lays them out.
fn frames(content: &[u8]) -> Vec<u8> {
    let mut compressor = FrameCompressor::new(1).unwrap();
    let (mut stored, mut frame, mut table) = (Vec::new(), Vec::new(), SeekTable::default());
    for part in content.chunks(1 << 20) {
        compressor.compress(part, &mut frame).unwrap();
        table.push(frame.len(), part.len()).unwrap();
        stored.extend_from_slice(&frame);
    }
    stored.extend(table.to_frame());
    stored
}

fn crc(bytes: &[u8]) -> Digest {
    let mut hasher = Hasher::new(DigestAlgorithm::Crc32c).unwrap();
    hasher.update(bytes);
    hasher.finish()
}

fn zstd_blob(stored: &[u8], decoded_len: Option<u64>) -> Blob {
    let span = Span::new(0, stored.len() as u64).unwrap();
    Blob { span, encoding: Encoding::Zstd, decoded_len, digest: Some(crc(stored)), chunks: None }
}

fn stream(source: &dyn Source, blob: &Blob, limits: &Limits) -> zt_container::Result<Vec<u8>> {
    let mut reader = BlobReader::new(source, blob, limits)?;
    let (mut all, mut piece) = (Vec::new(), vec![0; 10_007]);
    loop {
        let len = reader.read(&mut piece)?;
        all.extend_from_slice(&piece[..len]);
        if len < piece.len() {
            return Ok(all);
        }
    }
}

/// Hides the bytes of a source, as a file does.
struct ByPosition(Memory<Vec<u8>>);

impl Source for ByPosition {
    fn byte_len(&self) -> u64 {
        self.0.byte_len()
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> std::io::Result<()> {
        self.0.read_at(offset, buf)
    }
}

#[test]
fn frames_decode_alike_at_once_and_in_pieces_lent_and_read() {
    let content = content();
    let stored = frames(&content);
    let blob = zstd_blob(&stored, Some(content.len() as u64));
    let sources: [&dyn Source; 2] =
        [&Memory::new(stored.clone()), &ByPosition(Memory::new(stored))];
    for source in sources {
        assert_eq!(stream(source, &blob, &Limits::default()).unwrap(), content);
        let mut out = vec![0; content.len()];
        read_into(source, &blob, true, &Limits::default(), &mut out).unwrap();
        assert_eq!(out, content);
    }
}

#[test]
fn a_blob_without_a_declared_length_streams_up_to_the_limit() {
    let content = content();
    let stored = frames(&content);
    let blob = zstd_blob(&stored, None);
    let limits = |decoded_len| Limits::default().with_decoded_len(decoded_len);
    let source = Memory::new(stored);
    assert_eq!(stream(&source, &blob, &limits(content.len() as u64)).unwrap(), content);
    let error = stream(&source, &blob, &limits(content.len() as u64 - 1)).unwrap_err();
    assert_eq!(error.code(), "decompression-limit");
}

#[test]
fn refuses_lengths_that_the_frames_do_not_have() {
    let content = content();
    let stored = frames(&content);
    for wrong in [content.len() as u64 - 1, content.len() as u64 + 1, 0] {
        let blob = Blob { digest: None, ..zstd_blob(&stored, Some(wrong)) };
        let source = Memory::new(stored.clone());
        assert_eq!(
            stream(&source, &blob, &Limits::default()).unwrap_err().code(),
            "zstd",
            "{wrong}"
        );
        let mut out = vec![0; usize::try_from(wrong).unwrap()];
        let error = read_into(&source, &blob, true, &Limits::default(), &mut out).unwrap_err();
        assert_eq!(error.code(), "zstd", "{wrong}");
    }
}

#[test]
fn blobs_beyond_8_mib_are_decoded_alike_lent_and_read_checked_and_not() {
    let content = noise((8 << 20) + 4096);
    let stored = frames(&content);
    let len = content.len() as u64;
    assert!(stored.len() > content.len(), "noise");
    let sound = zstd_blob(&stored, Some(len));
    let wrong_digest = Blob { digest: Some(Digest::Crc32c(1)), ..sound.clone() };
    let sources: [&dyn Source; 2] =
        [&Memory::new(stored.clone()), &ByPosition(Memory::new(stored))];
    let mut out = vec![0; content.len()];
    for source in sources {
        for (blob, verify) in [(&sound, true), (&sound, false), (&wrong_digest, false)] {
            out.fill(0);
            read_into(source, blob, verify, &Limits::default(), &mut out).unwrap();
            assert!(out == content, "{verify}");
        }
        let error = read_into(source, &wrong_digest, true, &Limits::default(), &mut out);
        assert_eq!(error.unwrap_err().code(), "digest-mismatch");
        for (wrong, message) in [
            (len - 1, format!("more than the expected {} bytes", len - 1)),
            (len + 1, format!("hold {len} bytes, expected {}", len + 1)),
        ] {
            let blob = Blob { decoded_len: Some(wrong), digest: None, ..sound.clone() };
            let error = stream(source, &blob, &Limits::default()).unwrap_err();
            assert!(error.to_string().contains(&message), "{error}");
        }
    }
}

#[test]
fn a_frame_that_breaks_off_is_explained_by_what_lies_behind_it() {
    let mut stored = frames(&noise(1 << 20));
    let digest = Some(crc(&stored));
    stored[0] ^= 1;
    let stored_len = stored.len() as u64;
    let source = ByPosition(Memory::new(stored));
    for (digest, byte_len, code) in [
        (None, stored_len, "zstd"),
        // All pieces are hashed, although zstd refuses the first.
        (digest.clone(), stored_len, "digest-mismatch"),
        // The last byte is missing.
        (digest, stored_len + 1, "io"),
    ] {
        let blob = Blob {
            span: Span::new(0, byte_len).unwrap(),
            encoding: Encoding::Zstd,
            decoded_len: None,
            digest,
            chunks: None,
        };
        let error = stream(&source, &blob, &Limits::default()).unwrap_err();
        assert_eq!(error.code(), code, "{error}");
    }
}

/// A length equal to the limit is accepted.
#[test]
fn a_declared_length_may_be_the_limit() {
    let declared = |decoded_len, limit| {
        let limits = Limits::default().with_decoded_len(limit);
        let blob = Blob {
            encoding: Encoding::Zstd,
            decoded_len: Some(decoded_len),
            ..Blob::raw(Span::new(64, 100).unwrap())
        };
        check_declared(&blob, &limits)
    };
    assert!(declared(1000, 1000).is_ok());
    assert!(matches!(declared(1001, 1000), Err(Error::Limit(_))));
    // The most that zstd can make of a byte.
    assert!(declared(100 * 32_768, u64::MAX).is_ok());
    let beyond = declared(100 * 32_768 + 1, u64::MAX);
    assert!(matches!(beyond, Err(Error::Malformed(FramingViolation::Ratio { .. }))));
}

#[test]
fn a_reader_counts_what_it_has_given() {
    let content = content();
    let stored = frames(&content);
    let blob = zstd_blob(&stored, Some(content.len() as u64));
    let source = Memory::new(stored);
    let mut reader = BlobReader::new(&source, &blob, &Limits::default()).unwrap();
    assert_eq!(reader.produced(), 0);
    let mut piece = vec![0; 1000];
    reader.read(&mut piece).unwrap();
    assert_eq!(reader.produced(), 1000);
    reader.read(&mut vec![0; content.len()]).unwrap();
    assert_eq!(reader.produced(), content.len() as u64);
}

#[test]
fn a_reader_is_one_of_std_and_its_errors_keep_their_cause() {
    let content = content();
    let stored = frames(&content);
    let source = Memory::new(stored.clone());
    let read = |declared: u64| {
        let blob = zstd_blob(&stored, Some(declared));
        let mut all = Vec::new();
        std::io::copy(&mut BlobReader::new(&source, &blob, &Limits::default()).unwrap(), &mut all)?;
        Ok::<_, std::io::Error>(all)
    };
    assert!(read(content.len() as u64).unwrap() == content);
    let error = read(content.len() as u64 + 1).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
    assert!(error.get_ref().is_some_and(|cause| cause.is::<Error>()));
}

#[test]
fn refuses_a_declared_length_beyond_what_zstd_can_reach() {
    let stored = frames(&[0; 64]);
    let blob = zstd_blob(&stored, Some(3 << 30));
    let error = BlobReader::new(&Memory::new(stored), &blob, &Limits::default()).unwrap_err();
    assert_eq!(error.code(), "decompression-limit");
}

#[test]
fn every_flipped_bit_of_a_raw_blob_is_a_wrong_digest() {
    let bytes = b"stored bytes".to_vec();
    let blob = Blob { digest: Some(crc(&bytes)), ..Blob::raw(Span::new(0, 12).unwrap()) };
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        for source in
            [&Memory::new(flipped.clone()) as &dyn Source, &ByPosition(Memory::new(flipped))]
        {
            let mut out = [0; 12];
            let error = read_into(source, &blob, true, &Limits::default(), &mut out).unwrap_err();
            assert_eq!(error.code(), "digest-mismatch");
            read_into(source, &blob, false, &Limits::default(), &mut out).unwrap();
        }
    }
}

#[test]
fn a_wrong_digest_is_reported_before_what_the_decoder_makes_of_it() {
    let stored = frames(&content());
    let blob = zstd_blob(&stored, Some(content().len() as u64));
    for at in [0, 4, 5, stored.len() / 2, stored.len() - 1] {
        let mut flipped = stored.clone();
        flipped[at] ^= 1;
        let sources: [&dyn Source; 2] =
            [&Memory::new(flipped.clone()), &ByPosition(Memory::new(flipped))];
        for source in sources {
            let error = stream(source, &blob, &Limits::default()).unwrap_err();
            assert_eq!(error.code(), "digest-mismatch", "{at}");
        }
    }
}

#[test]
fn no_end_is_reported_after_an_error() {
    let blob = Blob { digest: Some(Digest::Crc32c(1)), ..Blob::raw(Span::new(0, 3).unwrap()) };
    let source = Memory::new([1, 2, 3]);
    let mut reader = BlobReader::new(&source, &blob, &Limits::default()).unwrap();
    assert_eq!(reader.read(&mut [0; 8]).unwrap_err().code(), "digest-mismatch");
    assert_eq!(reader.read(&mut [0; 8]).unwrap_err().code(), "misuse");
}

#[test]
fn every_cut_of_a_compressed_blob_is_refused() {
    let stored = frames(b"some content that is compressed");
    for len in 0..stored.len() {
        let cut = stored[..len].to_vec();
        let blob = Blob { digest: None, ..zstd_blob(&cut, Some(31)) };
        let result = stream(&Memory::new(cut), &blob, &Limits::default());
        // The seek table is optional, so without it the stream is complete.
        let frames_only = stored.len() - 25;
        assert_eq!(result.is_err(), len != frames_only, "{len}");
    }
}

#[test]
fn a_raw_blob_has_the_length_that_it_is_declared_to_have() {
    let limits = Limits::default().with_decoded_len(2);
    let source = Memory::new([1, 2, 3, 4, 5, 6, 7, 8]);
    let raw = Blob::raw(Span::new(0, 4).unwrap());
    // Raw bytes are in the file: the limit is on decoded bytes.
    read_into(&source, &raw, true, &limits, &mut [0; 4]).unwrap();
    for wrong in [3, 8] {
        let blob = Blob { decoded_len: Some(wrong), ..raw.clone() };
        for source in [&source as &dyn Source, &ByPosition(Memory::new(vec![0; 8]))] {
            let mut out = vec![0; usize::try_from(wrong).unwrap()];
            let error = read_into(source, &blob, true, &Limits::default(), &mut out).unwrap_err();
            assert_eq!(error.code(), "shape-size-mismatch", "{wrong}");
        }
    }
}

#[test]
fn a_compressed_block_of_no_bytes_is_passed_over() {
    // Alone and last, and before a raw block of one byte.
    for (frame, content) in [
        (&b"\x28\xB5\x2F\xFD\x20\x00\x05\x00\x00"[..], &b""[..]),
        (b"\x28\xB5\x2F\xFD\x20\x01\x04\x00\x00\x09\x00\x00A", b"A"),
    ] {
        let blob = zstd_blob(frame, Some(content.len() as u64));
        let streamed = stream(&Memory::new(frame), &blob, &Limits::default());
        assert_eq!(streamed.unwrap(), content);
        let mut whole = vec![0; content.len()];
        decode_into(frame, &mut whole).unwrap();
        assert_eq!(whole, content);
        let cut = &frame[..frame.len() - 1];
        assert!(decode_into(cut, &mut whole).is_err());
        assert!(decode_into(frame, &mut [0; 2]).is_err());
    }
}
