//! Spans, names of encodings, and fields of records.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use zt_container::fields::{Fields, Record};
use zt_container::{Encoding, Span};

fn span(offset: u64, byte_len: u64) -> Span {
    Span::new(offset, byte_len).unwrap()
}

#[test]
fn refuses_an_end_past_the_last_address() {
    assert!(Span::new(u64::MAX, 1).is_none());
    assert!(Span::new(u64::MAX - 63, 64).is_none());
    assert_eq!(span(u64::MAX, 0).end(), u64::MAX);
}

#[test]
fn contains_what_lies_within_and_nothing_else() {
    let region = span(8, 100);
    assert!(region.contains(span(8, 100)));
    assert!(region.contains(span(108, 0)));
    assert!(!region.contains(span(7, 2)));
    assert!(!region.contains(span(100, 9)));
    assert!(!region.contains(span(109, 0)));
}

#[test]
fn empty_spans_overlap_nothing() {
    assert!(span(64, 10).overlaps(span(73, 1)));
    assert!(!span(64, 10).overlaps(span(74, 1)));
    assert!(!span(74, 1).overlaps(span(64, 10)));
    assert!(!span(64, 10).overlaps(span(70, 0)));
    assert!(!span(70, 0).overlaps(span(64, 10)));
}

#[test]
fn the_grid_has_64_bytes() {
    let aligned = [0, 1, 63, 64, 96, 4096].map(|offset| span(offset, 1).is_aligned());
    assert_eq!(aligned, [true, false, false, true, false, true]);
}

#[test]
fn between_keeps_the_order_of_its_ends() {
    assert_eq!(Span::between(8, 64), Some(span(8, 56)));
    assert_eq!(Span::between(64, 8), None);
}

#[test]
fn an_encoding_has_one_name() {
    for (name, encoding) in [("raw", Encoding::Raw), ("zstd", Encoding::Zstd)] {
        assert_eq!(Encoding::from_name(name), Some(encoding));
        assert_eq!(encoding.as_str(), name);
    }
    for name in ["", "Raw", "zstd ", "lz4"] {
        assert_eq!(Encoding::from_name(name), None, "{name}");
    }
}

#[test]
fn fields_are_little_endian_and_zero_beyond_the_end() {
    let fields = Fields(&[1, 2, 3, 4, 5]);
    assert_eq!((fields.u16(3), fields.u16(4)), (Some(0x0504), None));
    let record = Record(&[1, 2, 3, 4, 5]);
    assert_eq!(record.u16(1), 0x0302);
    assert_eq!(record.u32(1), 0x0504_0302);
    assert_eq!(record.u32(2), 0);
    assert_eq!(record.u64(usize::MAX), 0);
}
