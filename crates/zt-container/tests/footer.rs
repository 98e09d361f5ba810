//! Locating the manifest, and refusing files with a broken framing.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is the failure of the test")]

use zt_container::{
    ALIGNMENT, Error, Footer, FramingViolation, HEADER_LEN, Layout, LimitExceeded, Limits, MAGIC,
    MAGIC_0_1, Memory, Result, SIZE_LEN, Span,
};

fn locate(bytes: &[u8]) -> Result<Footer> {
    Footer::locate(&Memory::new(bytes), &Limits::default())
}

fn file(head: &[u8], manifest: &[u8], size: u64, foot: &[u8]) -> Vec<u8> {
    [head, manifest, &size.to_le_bytes(), foot].concat()
}

#[test]
fn tells_the_layouts_apart_by_bytes() {
    let cases = [
        (file(b"ZTEN0001", b"\x80", 1, b""), Layout::V0_1),
        (file(b"ZTEN1000", b"\xA0", 1, b""), Layout::V1_0),
        (file(b"ZTEN1000", b"\xA0", 1, b"ZTEN1000"), Layout::V1_1),
    ];
    for (bytes, layout) in cases {
        let footer = locate(&bytes).unwrap();
        assert_eq!(footer.layout(), layout);
        assert_eq!(footer.data(), Span::new(8, 0).unwrap());
        assert_eq!(footer.manifest(), Span::new(8, 1).unwrap());
    }
}

#[test]
fn refuses_a_manifest_longer_than_the_file() {
    for size in [0, 2, 9, 1 << 32, u64::MAX, u64::MAX - 7] {
        for foot in [&b""[..], b"ZTEN1000"] {
            let error = locate(&file(b"ZTEN1000", b"\xA0", size, foot)).unwrap_err();
            assert_eq!(error.code(), "manifest-size", "{size}");
        }
    }
}

/// One truncation is left to the manifest's reader: without its last eight bytes, a file of layout 1.1 is
/// framed like one of 1.0. Its manifest then has `objects`, where 1.0 has `tensors`.
#[test]
fn refuses_every_cut_but_that_of_the_footer_magic() {
    let bytes = file(b"ZTEN1000", &[0; 100], 100, b"ZTEN1000");
    let footer = bytes.len() - 8;
    assert_eq!(locate(bytes.get(..footer).unwrap()).unwrap().layout(), Layout::V1_0);
    for len in (0..bytes.len()).filter(|len| *len != footer) {
        let code = locate(bytes.get(..len).unwrap()).unwrap_err().code();
        assert!(["truncated", "not-zt", "manifest-size"].contains(&code), "{len}: {code}");
    }
}

/// A file that is only as long as its framing has no room for a manifest of any declared size.
#[test]
fn a_beginning_of_a_file_is_a_cut_one() {
    for head in [&b"Z"[..], b"ZTEN", b"ZTEN0", b"ZTEN1", b"ZTEN100"] {
        assert_eq!(locate(head).unwrap_err().code(), "truncated", "{head:?}");
    }
    for head in [&b""[..], b"z", b"ZTEN2", b"ZTEN1001"] {
        assert_eq!(locate(head).unwrap_err().code(), "not-zt", "{head:?}");
    }
    for foot in [&b""[..], b"ZTEN1000"] {
        for size in [0, 1] {
            let bytes = file(b"ZTEN1000", b"", size, foot);
            let minimum = bytes.len() as u64 + 1;
            let error = locate(&bytes).unwrap_err();
            assert!(
                matches!(error, Error::Malformed(FramingViolation::Truncated { minimum: told, .. }) if told == minimum),
                "{error}"
            );
        }
    }
}

#[test]
fn says_what_a_foreign_file_begins_with() {
    let error = locate(b"GGUF\x03\0\0\0............................").unwrap_err();
    assert_eq!(error.code(), "not-zt");
    assert!(error.to_string().contains("GGUF\\x03"), "{error}");
}

#[test]
fn holds_the_manifest_against_the_limit() {
    let bytes = file(b"ZTEN1000", &[0; 100], 100, b"ZTEN1000");
    let limits = |manifest_len| Limits::default().with_manifest_len(manifest_len);
    assert!(Footer::locate(&Memory::new(&bytes), &limits(100)).is_ok());
    let error = Footer::locate(&Memory::new(&bytes), &limits(99)).unwrap_err();
    assert!(matches!(error, Error::Limit(LimitExceeded::Manifest { limit: 99, found: 100 })));
}

#[test]
fn only_files_with_a_footer_are_held_to_the_grid() {
    let layouts = [Layout::V0_1, Layout::V1_0, Layout::V1_1];
    let aligned = layouts.map(Layout::requires_alignment);
    assert_eq!(aligned, [false, false, true]);
}

/// Existing files hold these values: a change here makes a new format.
#[test]
fn the_frozen_constants_are_what_files_hold() {
    assert_eq!(MAGIC, [0x5A, 0x54, 0x45, 0x4E, 0x31, 0x30, 0x30, 0x30]);
    assert_eq!(MAGIC_0_1, [0x5A, 0x54, 0x45, 0x4E, 0x30, 0x30, 0x30, 0x31]);
    assert_eq!((HEADER_LEN, SIZE_LEN, ALIGNMENT), (8, 8, 64));
    assert_eq!(zt_container::codec::FRAME_CONTENT, 1_048_576);
    assert_eq!(zt_container::codec::SINGLE_FRAME_MAX, 4_194_304);
}
