//! Every error, from a file or call that causes it: its code, its offset, and its message.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::error::Error as _;
use std::io;

use zt_container::{
    Blob, BlobReader, Container, ContainerWriter, DigestAlgorithm, Encoding, Error, Limits, Memory,
    Source, Span, Unsupported, bytes_of, read_into,
};

/// A source that claims the largest length, and has no bytes.
struct Endless;

impl Source for Endless {
    fn byte_len(&self) -> u64 {
        u64::MAX
    }
    fn read_at(&self, _: u64, _: &mut [u8]) -> io::Result<()> {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

fn open(bytes: &[u8]) -> Error {
    Container::open(Memory::new(bytes), &Limits::default()).unwrap_err()
}

fn blob(byte_len: u64, encoding: Encoding, decoded_len: Option<u64>) -> Blob {
    Blob {
        span: Span::new(0, byte_len).unwrap(),
        encoding,
        decoded_len,
        digest: None,
        chunks: None,
    }
}

/// Reads this blob into `len` bytes.
fn read(blob: &Blob, len: usize) -> Error {
    let source = Memory::new([7; 8]);
    let limits = Limits::default().with_decoded_len(1 << 20);
    read_into(&source, blob, true, &limits, &mut vec![0; len]).unwrap_err()
}

fn write(
    offset: u64,
    calls: fn(&mut ContainerWriter<Vec<u8>>) -> zt_container::Result<()>,
) -> Error {
    calls(&mut ContainerWriter::resume(Vec::new(), offset)).unwrap_err()
}

fn check(error: &Error, code: &str, offset: Option<u64>, words: &str) {
    let found = (error.code(), error.offset(), error.to_string());
    assert_eq!(found, (code, offset, words.to_owned()));
    assert_eq!(error.source().is_some(), code == "io", "{words}");
}

#[test]
fn of_framing() {
    let sized =
        |size: u64, footer: &[u8]| [&b"ZTEN1000\xA0"[..], &size.to_le_bytes(), footer].concat();
    for (file, code, offset, words) in [
        (
            b"PK\x03\x04 and more".to_vec(),
            "not-zt",
            Some(0),
            "not a .zt file: it begins with \"PK\\x03\\x04 and\", expected \"ZTEN1000\" or \
             \"ZTEN0001\"",
        ),
        (
            b"\x89ZT2\r\n\x1A\n".to_vec(),
            "not-zt",
            Some(0),
            "a zTensor 2 file, which is not a .zt file of 0.1 to 1.2: open it with zt-convert or \
             the program zt",
        ),
        (
            b"ZTEN1000".to_vec(),
            "truncated",
            Some(8),
            "truncated: the file has 8 bytes, expected at least 17",
        ),
        (
            sized(2, b"ZTEN1000"),
            "manifest-size",
            Some(9),
            "the declared length of the manifest is 2 bytes, the file has room for 1",
        ),
        (
            sized(0, b"ZTEN1000"),
            "manifest-size",
            Some(9),
            "the declared length of the manifest is 0 bytes, expected at least one",
        ),
        (
            sized(2, b""),
            "manifest-size",
            Some(9),
            "the file is truncated, or its writer did not finish: it does not end in \"ZTEN1000\", and \
             its last 8 bytes are not the length of a manifest",
        ),
    ] {
        check(&open(&file), code, offset, words);
    }
    let limits = Limits::default().with_manifest_len(0);
    let error = Container::open(Memory::new(sized(1, b"ZTEN1000")), &limits).unwrap_err();
    let words = "a manifest of 1 bytes is above the limit of 0";
    check(&error, "manifest-size", None, words);
}

#[test]
fn of_blobs() {
    let (raw, zstd) = (Encoding::Raw, Encoding::Zstd);
    for (byte_len, encoding, decoded_len, room, code, words) in [
        (8, raw, Some(9), 9, "shape-size-mismatch", "a raw blob of 8 bytes is declared to have 9"),
        (8, raw, Some(8), 7, "misuse", "the destination has 7 bytes, the blob 8"),
        (8, raw, None, 8, "misuse", "the decoded length is not known: stream it"),
        (0, zstd, Some(1), 1, "decompression-limit", "0 bytes of zstd cannot hold the declared 1"),
        (
            8,
            zstd,
            Some((1 << 20) + 1),
            (1 << 20) + 1,
            "decompression-limit",
            "1048577 decoded bytes are above the limit of 1048576",
        ),
    ] {
        let error = read(&blob(byte_len, encoding, decoded_len), room);
        check(&error, code, None, words);
    }
    let error = bytes_of(&Endless, Span::new(0, 1 << 63).unwrap()).unwrap_err();
    let words = "no memory for 9223372036854775808 bytes";
    check(&error, "allocation", None, words);
    let error = bytes_of(&Memory::new([0; 3]), Span::new(2, 2).unwrap()).unwrap_err();
    check(&error, "io", None, "unexpected end of file");
}

#[cfg(all(feature = "zstd", feature = "crc32c"))]
#[test]
fn of_what_blobs_hold() {
    for decoded_len in [Some(8), None] {
        let blob = blob(8, Encoding::Zstd, decoded_len);
        let source = Memory::new([7; 8]);
        let mut reader = BlobReader::new(&source, &blob, &Limits::default()).unwrap();
        let words = "the zstd frame cannot be decoded: Unknown frame descriptor";
        check(&reader.read(&mut [0; 8]).unwrap_err(), "zstd", None, words);
        let words = "the call is out of order, or an earlier one has failed";
        check(&reader.read(&mut [0; 8]).unwrap_err(), "misuse", None, words);
    }
    let wrong = Blob {
        digest: Some(zt_container::Digest::Crc32c(0xAB)),
        ..blob(8, Encoding::Raw, Some(8))
    };
    let found = DigestAlgorithm::Crc32c.digest(&[7; 8]).unwrap();
    let words = format!("digest mismatch: expected crc32c:0x000000AB, found {found}");
    check(&read(&wrong, 8), "digest-mismatch", None, &words);
}

#[test]
fn of_writing() {
    for (offset, calls, words) in [
        (
            0,
            (|writer| writer.write(b"no blob")) as fn(&mut ContainerWriter<Vec<u8>>) -> _,
            "the call is out of order, or an earlier one has failed",
        ),
        (
            0,
            |writer| writer.begin_blob(96, None),
            "alignment 96 is not a power of two of at least 64",
        ),
        (u64::MAX, |writer| writer.begin_blob(64, None), "more bytes than the format can address"),
        (
            u64::MAX - 63,
            |writer| {
                writer.begin_blob(64, None)?;
                writer.write(&[0; 64])
            },
            "more bytes than the format can address",
        ),
    ] {
        check(&write(offset, calls), "misuse", None, words);
    }
}

/// A feature that is off gives these errors. The test does not know which features are on.
#[test]
fn of_what_is_not_built_in() {
    for (missing, words) in [
        (Unsupported::Zstd, "zstd is not built in (feature `zstd`)"),
        (
            Unsupported::Digest(DigestAlgorithm::Crc32c),
            "the digest crc32c is not built in (feature `crc32c`)",
        ),
        (
            Unsupported::Digest(DigestAlgorithm::Sha256),
            "the digest sha256 is not built in (feature `sha2`)",
        ),
    ] {
        check(&Error::Unsupported(missing), "unsupported", None, words);
    }
}

/// A blob may have gigabytes, but the debug text of its reader is short.
#[test]
fn no_debug_text_holds_the_bytes() {
    struct Megabyte(Vec<u8>);
    impl Source for Megabyte {
        fn byte_len(&self) -> u64 {
            self.0.len() as u64
        }
        fn read_at(&self, _: u64, buf: &mut [u8]) -> io::Result<()> {
            buf.fill(0);
            Ok(())
        }
    }
    let source = Megabyte(vec![0; 1 << 20]);
    let blob = blob(1 << 20, Encoding::Raw, Some(1 << 20));
    let reader = BlobReader::new(&source, &blob, &Limits::default()).unwrap();
    let text = format!("{reader:?}");
    assert!(text.contains("Source { byte_len: 1048576 }"), "{text}");
    assert!(text.len() < 500, "{text}");
}

/// The debug text leaves out zstd's tables, which have megabytes.
#[cfg(feature = "zstd")]
#[test]
fn no_debug_text_holds_the_state_of_a_codec() {
    use zt_container::codec::{FrameCompressor, FrameDecompressor};
    let compressor = FrameCompressor::new(1).unwrap();
    let decompressor = FrameDecompressor::new().unwrap();
    assert_eq!(
        format!("{compressor:?} {decompressor:?}"),
        "FrameCompressor { .. } FrameDecompressor { .. }"
    );
    let unsized_blob = blob(8, Encoding::Zstd, None);
    let source = Memory::new([7; 8]);
    let reader = BlobReader::new(&source, &unsized_blob, &Limits::default()).unwrap();
    let text = format!("{reader:?}");
    assert!(text.contains("Zstd(FrameDecoder { at_boundary: true })"), "{text}");
}
