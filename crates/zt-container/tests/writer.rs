//! A container finds the blobs and the manifest that a writer wrote; a failed writer stays failed.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::io::{self, Write};

use zt_container::{Blob, Container, ContainerWriter, Limits, Memory, Source};

#[test]
fn an_empty_container_is_magic_manifest_size_magic() {
    let file = ContainerWriter::new(Vec::new()).unwrap().finish(b"\xA0").unwrap();
    assert_eq!(file, b"ZTEN1000\xA0\x01\0\0\0\0\0\0\0ZTEN1000");
}

#[test]
fn the_offset_is_where_the_next_byte_goes() {
    let mut writer = ContainerWriter::new(Vec::new()).unwrap();
    assert_eq!(writer.offset(), 8);
    writer.begin_blob(64, None).unwrap();
    assert_eq!(writer.offset(), 64);
    writer.write(b"bytes").unwrap();
    assert_eq!(writer.offset(), 69);
    let resumed = ContainerWriter::resume(Vec::new(), 4096);
    assert_eq!(resumed.offset(), 4096);
}

#[test]
fn blobs_begin_on_their_alignment_and_gaps_are_zero() {
    let mut writer = ContainerWriter::new(Vec::new()).unwrap();
    let mut spans = Vec::new();
    for (alignment, bytes) in [(64, &b"one"[..]), (4096, b"two"), (64, b""), (64, b"four")] {
        writer.begin_blob(alignment, None).unwrap();
        writer.write(bytes).unwrap();
        let (span, digest) = writer.end_blob().unwrap();
        assert_eq!((span.offset() % alignment, span.byte_len()), (0, bytes.len() as u64));
        assert!(digest.is_none());
        spans.push(span);
    }
    let file = writer.finish(b"manifest").unwrap();
    let offsets: Vec<u64> = spans.iter().map(|span| span.offset()).collect();
    assert_eq!(offsets, [64, 4096, 4160, 4160]);
    let container = Container::open(Memory::new(&file), &Limits::default()).unwrap();
    assert_eq!(&*container.manifest_bytes().unwrap(), b"manifest");
    assert_eq!(container.source().slice(spans[3]), Some(&b"four"[..]));
    for (span, expected) in spans.iter().zip([&b"one"[..], b"two", b"", b"four"]) {
        let blob = Blob::raw(*span);
        let mut out = [0; 8];
        let len = container.read_blob(&blob).unwrap().read(&mut out).unwrap();
        assert_eq!(&out[..len], expected);
    }
    assert!(file[8..64].iter().chain(&file[67..4096]).all(|byte| *byte == 0));
}

#[test]
fn refuses_an_alignment_that_breaks_the_grid() {
    let mut writer = ContainerWriter::new(Vec::new()).unwrap();
    for alignment in [0, 1, 32, 96, 4095] {
        assert_eq!(writer.begin_blob(alignment, None).unwrap_err().code(), "misuse");
    }
}

#[test]
fn calls_out_of_order_are_misuse() {
    let mut writer = ContainerWriter::new(Vec::new()).unwrap();
    assert_eq!(writer.write(b"no blob").unwrap_err().code(), "misuse");
    assert_eq!(writer.end_blob().unwrap_err().code(), "misuse");
    writer.begin_blob(64, None).unwrap();
    assert_eq!(writer.begin_blob(64, None).unwrap_err().code(), "misuse");
    writer.write(b"half").unwrap();
    assert_eq!(writer.finish(b"\xA0").unwrap_err().code(), "misuse");
}

/// Accepts this many bytes and then reports a full disk.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        if taken == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(taken) }
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_an_error_at_every_byte() {
    let write = |room| -> zt_container::Result<()> {
        let mut writer = ContainerWriter::new(Full(room))?;
        writer.begin_blob(64, None)?;
        writer.write(&[1; 100])?;
        writer.end_blob()?;
        writer.finish(b"\xA0").map(drop)
    };
    let whole = 164 + 1 + 16;
    for room in 0..whole {
        assert_eq!(write(room).unwrap_err().code(), "io", "{room}");
    }
    write(whole).unwrap();
}
