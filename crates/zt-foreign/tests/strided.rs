//! Views of any strides, read in row-major order.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "small numbers")]

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use zt::{Blob, Source, Span};
use zt_foreign::strided::{Bands, Strided, View};

/// Bytes that are not resident.
struct Positioned(Vec<u8>);

impl Source for Positioned {
    fn byte_len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        zt::Memory::new(&self.0).read_at(offset, buf)
    }
}

/// Bytes that are not resident, the longest read, and the number of reads.
struct Recorded {
    bytes: Positioned,
    longest: AtomicUsize,
    reads: AtomicUsize,
    is_sequential: bool,
}

impl Recorded {
    fn new(bytes: Vec<u8>, is_sequential: bool) -> Self {
        Recorded {
            bytes: Positioned(bytes),
            longest: AtomicUsize::new(0),
            reads: AtomicUsize::new(0),
            is_sequential,
        }
    }
}

impl Source for Recorded {
    fn byte_len(&self) -> u64 {
        self.bytes.byte_len()
    }

    fn is_sequential(&self) -> bool {
        self.is_sequential
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.longest.fetch_max(buf.len(), Ordering::Relaxed);
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.bytes.read_at(offset, buf)
    }
}

fn bytes(len: u64) -> Vec<u8> {
    (0..len).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// The offset after the last element.
fn end(offset: u64, len: u64, shape: &[u64], strides: &[u64]) -> u64 {
    if shape.contains(&0) {
        return offset;
    }
    let steps = shape.iter().zip(strides);
    offset + len + steps.map(|(count, stride)| (count - 1) * stride).sum::<u64>()
}

/// The elements, copied one by one.
fn expected(bytes: &[u8], offset: u64, len: u64, shape: &[u64], strides: &[u64]) -> Vec<u8> {
    let count: u64 = shape.iter().product();
    let mut out = Vec::new();
    for element in 0..count {
        let (mut index, mut at) = (element, offset);
        for (count, stride) in shape.iter().zip(strides).rev() {
            at += index % count * stride;
            index /= count;
        }
        out.extend_from_slice(&bytes[at as usize..(at + len) as usize]);
    }
    out
}

fn check(offset: u64, len: u64, shape: &[u64], strides: &[u64]) {
    let view = View::new(offset, len, shape, strides).unwrap();
    let bytes = bytes(end(offset, len, shape, strides));
    let expected = expected(&bytes, offset, len, shape, strides);
    assert_eq!(view.byte_len(), expected.len() as u64);
    if let Some(span) = view.as_span() {
        assert_eq!(&bytes[span.offset() as usize..span.end() as usize], expected);
    }
    let sources: [Arc<dyn Source>; 3] = [
        Arc::new(zt::Memory::new(bytes.clone())),
        Arc::new(Positioned(bytes.clone())),
        Arc::new(Recorded::new(bytes, true)),
    ];
    for source in sources {
        let is_sequential = source.is_sequential();
        let strided = Strided::new(source, view.clone(), &Bands::default()).unwrap();
        assert_eq!(strided.is_sequential(), is_sequential);
        for piece in [expected.len().max(1), 700, 4096] {
            let mut found = vec![0; expected.len()];
            for (at, part) in found.chunks_mut(piece).enumerate() {
                strided.read_at((at * piece) as u64, part).unwrap();
            }
            assert!(found == expected, "{shape:?} {strides:?} by {piece}");
        }
    }
}

#[test]
fn views_of_any_strides_are_row_major() {
    check(0, 4, &[3, 5], &[4, 12]);
    check(8, 2, &[4, 3, 2], &[2, 8, 24]);
    check(0, 8, &[2, 3, 4], &[8, 64, 16]);
    check(3, 1, &[7, 1, 5], &[1, 9, 7]);
    check(0, 4, &[], &[]);
    check(0, 4, &[3, 0, 2], &[4, 4, 4]);
    check(5, 3, &[4, 4], &[48, 6]);
    check(0, 4, &[3, 4], &[0, 4]);
    check(0, 2, &[2, 3, 4, 5], &[2, 40, 8, 4000]);
    check(0, 4, &[3, 5, 2000], &[8000, 24000, 4]);
    check(0, 16, &[300, 700], &[16, 4800]);
    check(0, 4, &[3, 400_000], &[4, 12]);
}

/// A column is scattered over its base, and one read has a bound.
#[test]
fn reading_a_column_does_not_read_the_whole_base() {
    const WINDOW: usize = 256 << 10;
    for (shape, strides, is_sequential, most) in [
        (&[100][..], &[32 << 10][..], false, 8),
        (&[100], &[32 << 10], true, WINDOW),
        (&[3, 100], &[8, 32 << 10], false, 24),
        (&[100, 3], &[32 << 10, 16 << 10], false, 8),
        (&[1000], &[2 << 10], false, WINDOW),
        (&[1000], &[2 << 10], true, WINDOW),
        (&[2, 1000], &[16, 2 << 10], false, WINDOW),
    ] {
        let view = View::new(16, 8, shape, strides).unwrap();
        let bytes = bytes(end(16, 8, shape, strides));
        let expected = expected(&bytes, 16, 8, shape, strides);
        let base = Arc::new(Recorded::new(bytes, is_sequential));
        let source = Arc::clone(&base) as Arc<dyn Source>;
        let strided = Strided::new(source, view, &Bands::default()).unwrap();
        let mut found = vec![0; expected.len()];
        strided.read_at(0, &mut found).unwrap();
        assert!(found == expected, "{strides:?}");
        let longest = base.longest.load(Ordering::Relaxed);
        assert!(longest <= most, "{strides:?}: {longest}");
    }
}

/// Three columns that are far from each other, with elements that are near.
#[test]
fn a_column_of_near_elements_is_one_read() {
    let (shape, strides) = ([1000, 3], [256, 264 << 10]);
    let view = View::new(0, 8, &shape, &strides).unwrap();
    let base = Arc::new(Recorded::new(bytes(end(0, 8, &shape, &strides)), false));
    let source = Arc::clone(&base) as Arc<dyn Source>;
    let strided = Strided::new(source, view, &Bands::default()).unwrap();
    let mut found = vec![0; 24_000];
    strided.read_at(0, &mut found).unwrap();
    assert_eq!(base.reads.load(Ordering::Relaxed), 3);
}

/// A source that has a length but cannot be read.
struct Made {
    byte_len: u64,
    is_sequential: bool,
}

impl Source for Made {
    fn byte_len(&self) -> u64 {
        self.byte_len
    }

    fn is_sequential(&self) -> bool {
        self.is_sequential
    }

    fn read_at(&self, _: u64, _: &mut [u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// A deflated base is inflated again from its beginning wherever a view goes back.
#[test]
fn a_sequential_base_that_would_be_read_again_too_often_is_refused() {
    const GIB: u64 = 1 << 30;
    let fortran = |rows: u64| View::fortran(0, 4, &[rows, 1 << 14]).unwrap();
    let apart = |count: u64| {
        let strides = [300_008, 300_004, 300_000];
        View::new(0, 4, &[count, count, 700], &strides).unwrap()
    };
    let swapped = View::new(0, 8192, &[1000, 200], &[8192, 8_192_000]).unwrap();
    for (view, byte_len, is_allowed) in [
        (fortran(1 << 15), 2 * GIB, true),
        (fortran(1 << 17), 8 * GIB, false),
        (apart(2), GIB / 4, true),
        (apart(12), GIB / 4, false),
        (swapped, 2 * GIB, true),
        // One pass.
        (View::new(0, 4, &[1000], &[5 << 20]).unwrap(), 8 * GIB, true),
        // Columns that overlap, each read at once.
        (View::new(0, 4, &[1 << 16, 100], &[24, 16]).unwrap(), 2 * GIB, true),
        (View::new(0, 8192, &[1 << 20], &[16384]).unwrap(), 16 * GIB, true),
    ] {
        for is_sequential in [true, false] {
            let base = Arc::new(Made { byte_len, is_sequential });
            let strided = Strided::new(base, view.clone(), &Bands::default());
            let error = strided.err();
            let is_refused = is_sequential && !is_allowed;
            let code = error.as_ref().map(zt::Error::code);
            assert_eq!(code, is_refused.then_some("unsupported"), "{view:?}");
        }
    }
}

#[test]
fn a_view_that_is_row_major_is_a_span() {
    let plain = View::new(8, 4, &[2, 1, 3], &[12, 99, 4]).unwrap();
    assert_eq!(plain.as_span(), Span::new(8, 24));
    assert_eq!(View::fortran(0, 4, &[1, 6]).unwrap().as_span(), Span::new(0, 24));
    assert_eq!(View::fortran(0, 4, &[2, 0]).unwrap().as_span(), Span::new(0, 0));
    assert_eq!(View::fortran(0, 4, &[2, 3]).unwrap().as_span(), None);
}

#[test]
fn a_view_beyond_the_last_address_is_refused() {
    assert_eq!(View::new(0, 4, &[1 << 62, 2], &[4, 4]), None);
    assert_eq!(View::new(0, 4, &[2], &[u64::MAX]), None);
    assert_eq!(View::new(u64::MAX, 1, &[2], &[1]), None);
    assert_eq!(View::new(0, 1, &[2], &[]), None);
    assert_eq!(View::fortran(0, 8, &[1 << 61, 0]), None);
}

#[test]
fn the_digest_of_the_base_is_compared_at_the_end() {
    // The second is longer than a piece.
    for columns in [3, 100_000] {
        let len = columns * 8;
        let base = bytes(len);
        let digest = zt::DigestAlgorithm::Crc32c.digest(&base).unwrap();
        for (right, change) in [(true, 0), (false, 1)] {
            let mut base = base.clone();
            base[len as usize - 17] ^= change;
            let blob =
                Blob { digest: Some(digest.clone()), ..Blob::raw(Span::new(0, len).unwrap()) };
            let view = View::fortran(0, 4, &[2, columns]).unwrap();
            let base = Arc::new(zt::Memory::new(base));
            let strided = Strided::new(base, view, &Bands::default()).unwrap();
            let strided = strided.checked(blob);
            strided.read_at(0, &mut [0; 8]).unwrap();
            assert_eq!(strided.read_at(len - 8, &mut [0; 8]).is_ok(), right);
        }
    }
}
