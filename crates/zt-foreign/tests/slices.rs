//! Tensors that are put together from slices.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "small numbers")]

use std::io;
use std::sync::{Arc, Mutex};

use zt::{Memory, Source};
use zt_foreign::slices::{Assembled, Slice, SliceFault, check};

/// The offsets and the sizes of a slice.
type Cut<'c> = (&'c [u64], &'c [u64]);

/// The slice of a tensor whose bytes are 0, 1, 2, ...
fn cut(shape: &[u64], element_len: u64, slice: &Slice) -> Memory<Vec<u8>> {
    let mut bytes = Vec::new();
    let total: u64 = shape.iter().product();
    for number in 0..total {
        let mut rest = number;
        let axes = slice.offsets.iter().zip(&slice.sizes).zip(shape).rev();
        let is_in = axes.fold(true, |is_in, ((offset, size), count)| {
            let index = rest % count;
            rest /= count;
            is_in && (*offset..offset + size).contains(&index)
        });
        if is_in {
            let from = number * element_len;
            bytes.extend((from..from + element_len).map(|byte| byte as u8));
        }
    }
    Memory::new(bytes)
}

fn slices(cuts: &[Cut<'_>]) -> Vec<Slice> {
    let slice =
        |(offsets, sizes): &Cut<'_>| Slice { offsets: offsets.to_vec(), sizes: sizes.to_vec() };
    cuts.iter().map(slice).collect()
}

#[test]
fn every_range_of_a_tensor_is_put_together() {
    let shapes: [(&[u64], u64, &[Cut<'_>]); 5] = [
        (&[], 4, &[(&[], &[])]),
        (&[4, 2], 4, &[(&[2, 0], &[2, 2]), (&[0, 0], &[2, 2])]),
        (
            &[3, 5],
            2,
            &[(&[0, 0], &[3, 2]), (&[0, 2], &[1, 3]), (&[1, 2], &[2, 3]), (&[3, 0], &[0, 5])],
        ),
        (
            &[2, 3, 4],
            1,
            &[(&[0, 0, 0], &[2, 2, 4]), (&[0, 2, 0], &[1, 1, 4]), (&[1, 2, 0], &[1, 1, 4])],
        ),
        (&[2, 4, 2], 8, &[(&[0, 0, 0], &[2, 1, 2]), (&[0, 1, 0], &[2, 3, 2])]),
    ];
    for (shape, element_len, cuts) in shapes {
        let parts = slices(cuts).into_iter().map(|slice| {
            let source = cut(shape, element_len, &slice);
            (slice, Arc::new(source) as Arc<dyn Source>)
        });
        let tensor = Assembled::new(shape, element_len, parts.collect()).unwrap();
        let len = tensor.byte_len();
        for start in 0..len {
            for end in start..=len {
                let mut out = vec![0; (end - start) as usize];
                tensor.read_at(start, &mut out).unwrap();
                let expected: Vec<u8> = (start..end).map(|byte| byte as u8).collect();
                assert_eq!(out, expected, "{shape:?} {start}..{end}");
            }
        }
        assert!(tensor.read_at(len, &mut [0]).is_err());
    }
}

/// A source that notes what is read.
struct Noted(u64, Mutex<Vec<(u64, usize)>>);

impl Source for Noted {
    fn byte_len(&self) -> u64 {
        self.0
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.1.lock().unwrap().push((offset, out.len()));
        Ok(())
    }
}

#[test]
fn a_read_meets_few_slices_and_reads_short_rows_together() {
    let noted = |len| Arc::new(Noted(len, Mutex::default()));
    let (rows, left, right) = (noted(1 << 20), noted(1 << 20), noted(1 << 20));
    let reads = |of: &Noted| std::mem::take(&mut *of.1.lock().unwrap());
    // Two columns of 1 KiB below 512 rows of 2 KiB.
    let cuts = [
        (&[0, 0][..], &[512, 2048][..]),
        (&[512, 0], &[1024, 1024]),
        (&[512, 1024], &[1024, 1024]),
    ];
    let sources = [&rows, &left, &right].map(|noted| Arc::clone(noted) as Arc<dyn Source>);
    let parts = slices(&cuts).into_iter().zip(sources).collect();
    let tensor = Assembled::new(&[1536, 2048], 1, parts).unwrap();
    let mut out = vec![0; 1 << 20];
    tensor.read_at(0, &mut out).unwrap();
    assert_eq!(reads(&rows), [(0, 1 << 20)]);
    assert_eq!(reads(&left), []);
    tensor.read_at(1 << 20, &mut out).unwrap();
    assert_eq!(reads(&rows), []);
    assert_eq!(reads(&left), [(0, 256 << 10), (256 << 10, 256 << 10)]);
    assert_eq!(reads(&right).len(), 2);
    // Part of one row in one column.
    tensor.read_at((1 << 20) + 2048 + 100, &mut out[..50]).unwrap();
    assert_eq!(reads(&left), [(1124, 50)]);
    assert_eq!(reads(&right), []);
}

fn checked(shape: &[u64], cuts: &[Cut<'_>]) -> Result<(), SliceFault> {
    let slices = slices(cuts);
    check(shape, slices.iter())
}

#[test]
fn slices_that_have_each_element_once_are_accepted_in_any_order() {
    let accepted = |shape: &[u64], slices: &[Cut<'_>]| {
        assert_eq!(checked(shape, slices), Ok(()), "{shape:?} {slices:?}");
    };
    accepted(&[], &[(&[], &[])]);
    accepted(&[4, 2], &[(&[2, 0], &[2, 2]), (&[0, 0], &[2, 2])]);
    // No line through the tensor parts these.
    let wheel: &[Cut<'_>] = &[
        (&[0, 0], &[1, 2]),
        (&[0, 2], &[2, 1]),
        (&[2, 1], &[1, 2]),
        (&[1, 0], &[2, 1]),
        (&[1, 1], &[1, 1]),
    ];
    accepted(&[3, 3], wheel);
    // Processes that have nothing save empty slices at the end, and some at the same place.
    accepted(&[2], &[(&[0], &[1]), (&[1], &[1]), (&[2], &[0]), (&[2], &[0])]);
    accepted(&[0, 3], &[(&[0, 0], &[0, 3])]);
    accepted(&[0, 3], &[]);
    accepted(&[u64::MAX, 1], &[(&[0, 0], &[u64::MAX, 1])]);
}

#[test]
fn the_first_index_that_no_slice_or_several_have_is_found() {
    let gap = |at: &[u64]| Err(SliceFault::Gap { at: at.to_vec() });
    let twice = |at: &[u64]| Err(SliceFault::Twice { at: at.to_vec() });
    assert_eq!(checked(&[], &[]), gap(&[]));
    assert_eq!(checked(&[], &[(&[], &[]), (&[], &[])]), twice(&[]));
    assert_eq!(checked(&[4], &[(&[0], &[1]), (&[2], &[2])]), gap(&[1]));
    assert_eq!(checked(&[4], &[(&[0], &[3])]), gap(&[3]));
    assert_eq!(checked(&[4], &[(&[0], &[3]), (&[2], &[2])]), twice(&[2]));
    // As many elements as the tensor has.
    let shifted: &[Cut<'_>] = &[(&[0, 0], &[2, 2]), (&[1, 2], &[2, 2])];
    assert_eq!(checked(&[4, 2], &[(&[0, 0], &[2, 2]), (&[1, 0], &[2, 2])]), twice(&[1, 0]));
    assert_eq!(checked(&[3, 4], shifted), gap(&[0, 2]));
    // A dimension that is not cut.
    let planes: &[Cut<'_>] = &[(&[0, 0, 0], &[5, 1, 2]), (&[0, 2, 0], &[5, 1, 2])];
    assert_eq!(checked(&[5, 3, 2], planes), gap(&[0, 1, 0]));
}

#[test]
fn a_slice_is_in_its_tensor_and_has_its_rank() {
    for slice in [(&[2u64][..], &[3u64][..]), (&[5], &[0]), (&[u64::MAX], &[2])] {
        let outside = matches!(checked(&[4], &[slice]), Err(SliceFault::Outside { .. }));
        assert!(outside, "{slice:?}");
    }
    for slice in [(&[0u64][..], &[4u64][..]), (&[0, 0], &[4])] {
        let fault = SliceFault::Rank { expected: 2, found: 1 };
        assert_eq!(checked(&[4, 1], &[slice]), Err(fault));
    }
}

#[test]
fn a_tensor_is_cut_in_few_dimensions() {
    let halves = |rank: usize| {
        let half = |at: usize| Slice {
            offsets: (0..rank).map(|axis| (at >> axis & 1) as u64).collect(),
            sizes: vec![1; rank],
        };
        let slices: Vec<Slice> = (0..1 << rank).map(half).collect();
        check(&vec![2; rank], slices.iter())
    };
    assert_eq!(halves(4), Ok(()));
    assert_eq!(halves(5), Err(SliceFault::Cuts { found: 5 }));
}

#[cfg(feature = "json")]
#[test]
fn offsets_are_read_in_order() {
    use zt_foreign::slices::saved_offsets;
    let text = r#"{"w": {"saved_offsets": [2, 0], "more": 1}, "b": {"saved_offsets": []}}"#;
    let expected = vec![("w".to_owned(), vec![2, 0]), ("b".to_owned(), vec![])];
    assert_eq!(saved_offsets(text).unwrap(), expected);
    for text in ["", "[]", "{\"w\": 1}", r#"{"w": {"saved_offsets": [-1]}}"#] {
        assert!(saved_offsets(text).is_err(), "{text}");
    }
}
