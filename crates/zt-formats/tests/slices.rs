//! Slices of dense arrays, compared with the indices of Python's `range`.

// Clippy takes only the tests themselves for tests.
#![allow(clippy::unwrap_used)]

use std::fmt::Debug;

use proptest::prelude::*;
use zt_formats::{
    Complex, Dense, Element, Elements, F8E5M2, Misuse, Places, Selection, Slice, SliceFault, bf16,
    dense_byte_len, element_count,
};

/// The places of `start:stop:step` in a dimension, found one by one.
fn walk(start: Option<i64>, stop: Option<i64>, step: i64, dimension: i64) -> Vec<i64> {
    let from_end = |bound: i64| if bound < 0 { bound + dimension } else { bound };
    let mut places = Vec::new();
    if step > 0 {
        let mut place = start.map_or(0, from_end).max(0);
        let stop = stop.map_or(dimension, from_end).min(dimension);
        while place < stop {
            places.push(place);
            place += step;
        }
    } else {
        let mut place = start.map_or(dimension - 1, from_end).min(dimension - 1);
        let stop = stop.map_or(-1, |stop| from_end(stop).max(-1));
        while place > stop {
            places.push(place);
            place += step;
        }
    }
    places
}

/// The values and the shape that the slices, one for each dimension, select from 0, 1, 2, ...
fn naive(shape: &[u64], slices: &[Slice]) -> (Vec<u64>, Vec<u32>) {
    let mut selected = vec![0u64];
    let mut out = Vec::new();
    for (&dimension, slice) in shape.iter().zip(slices) {
        let places = match *slice {
            Slice::Index(index) if index < 0 => vec![index + dimension.cast_signed()],
            Slice::Index(index) => vec![index],
            Slice::Range { start, stop, step } => walk(start, stop, step, dimension.cast_signed()),
            Slice::Ellipsis => unreachable!("not made here"),
        };
        if !matches!(slice, Slice::Index(_)) {
            out.push(places.len() as u64);
        }
        selected = selected
            .iter()
            .flat_map(|at| places.iter().map(move |place| at * dimension + place.cast_unsigned()))
            .collect();
    }
    let values = selected.iter().map(|at| u32::try_from(*at).unwrap());
    (out, values.collect())
}

fn slice_of(dimension: u64) -> BoxedStrategy<Slice> {
    let bound = prop::option::of(prop_oneof![-8i64..8, Just(i64::MIN), Just(i64::MAX)]);
    let step = prop_oneof![-4i64..0, 1i64..4];
    let range = (bound.clone(), bound, step).prop_map(|(start, stop, step)| Slice::Range {
        start,
        stop,
        step,
    });
    if dimension == 0 {
        return range.boxed();
    }
    let end = dimension.cast_signed();
    prop_oneof![4 => range, 1 => (-end..end).prop_map(Slice::Index)].boxed()
}

fn shape_and_slices() -> impl Strategy<Value = (Vec<u64>, Vec<Slice>)> {
    prop::collection::vec(0u64..6, 0..5).prop_flat_map(|shape| {
        let slices: Vec<_> = shape.iter().map(|dimension| slice_of(*dimension)).collect();
        (Just(shape), slices)
    })
}

proptest! {
    #[test]
    fn slices_equal_a_walk_of_the_indices((shape, slices) in shape_and_slices()) {
        // Bounds at the ends of i64 would overflow in this test only.
        let near = |bound: Option<i64>| bound.map(|bound| bound.clamp(-100, 100));
        let tame: Vec<_> = slices.iter().map(|slice| match *slice {
            Slice::Range { start, stop, step } => {
                Slice::Range { start: near(start), stop: near(stop), step }
            }
            other => other,
        }).collect();
        let (expected_shape, expected) = naive(&shape, &tame);
        let count = shape.iter().product();
        let values: Vec<u32> = (0..count).map(|at: u64| u32::try_from(at).unwrap()).collect();
        let dense = Dense::from_slice(&shape, &values).unwrap();
        let slice = dense.slice(&slices).unwrap();
        prop_assert_eq!(slice.shape(), &expected_shape[..]);
        prop_assert_eq!(&slice.as_slice::<u32>().unwrap()[..], &expected[..]);

        let selection = Selection::new(&slices, &shape).unwrap();
        let runs: Vec<u32> = selection
            .runs()
            .flat_map(|run| {
                let places = (0..run.count.cast_signed()).map(move |at| at * run.stride);
                places.map(move |place| run.first.wrapping_add_signed(place))
            })
            .map(|at| u32::try_from(at).unwrap())
            .collect();
        prop_assert_eq!(runs, expected);
    }

    #[test]
    fn any_text_is_a_list_of_slices_or_an_error(text in "[-0-9:., ]{0,12}") {
        if let Ok(slices) = Slice::parse_list(&text) {
            let _ = Selection::new(&slices, &[3, u64::MAX, 0]);
            let _ = Selection::new(&slices, &[1 << 20, 1 << 20, 1 << 20]);
        }
    }
}

#[test]
fn text_is_parsed_as_numpy_does() {
    let range = |start, stop, step| Slice::Range { start, stop, step };
    assert_eq!(
        Slice::parse_list("0:4, :, ::2, -1, ..., 3:, :-1, 5:0:-2").unwrap(),
        [
            range(Some(0), Some(4), 1),
            Slice::ALL,
            range(None, None, 2),
            Slice::Index(-1),
            Slice::Ellipsis,
            range(Some(3), None, 1),
            range(None, Some(-1), 1),
            range(Some(5), Some(0), -2),
        ]
    );
    assert_eq!(Slice::parse_list(" ").unwrap(), []);
    for text in ["x", "1:2:3:4", "1,,2", "1.5", "0x1", ",", "99999999999999999999"] {
        assert_eq!(Slice::parse_list(text).unwrap_err().code(), "misuse", "{text}");
    }
    let zero = Misuse::Slice(SliceFault::ZeroStep);
    assert_eq!(Slice::parse_list("::0"), Err(zero.into()));
}

#[test]
fn an_ellipsis_stands_for_the_dimensions_that_are_left() {
    let shape = [2, 3, 4];
    let shape_of = |text| {
        let slices = Slice::parse_list(text).unwrap();
        Selection::new(&slices, &shape).map(|selection| selection.shape().to_vec())
    };
    assert_eq!(shape_of("...,0").unwrap(), [2, 3]);
    assert_eq!(shape_of("0,...").unwrap(), [3, 4]);
    assert_eq!(shape_of("0,...,0").unwrap(), [3]);
    assert_eq!(shape_of("0,0,...,0").unwrap(), [0u64; 0]);
    assert_eq!(shape_of("...").unwrap(), shape);
    assert_eq!(shape_of("0").unwrap(), [3, 4]);
    let fault = |text| match shape_of(text) {
        Err(zt_formats::Error::Misuse(Misuse::Slice(fault))) => fault,
        other => unreachable!("{other:?}"),
    };
    assert_eq!(fault("...,..."), SliceFault::TwoEllipses);
    assert_eq!(fault("0,0,0,0"), SliceFault::TooMany { found: 4, rank: 3 });
    let outside = |axis, index, dimension| SliceFault::OutOfRange { axis, index, dimension };
    assert_eq!(fault("2"), outside(0, 2, 2));
    assert_eq!(fault(":,-4"), outside(1, -4, 3));
}

#[test]
fn whole_rows_are_one_run() {
    let runs = |text, shape: &[u64]| {
        let selection = Selection::new(&Slice::parse_list(text).unwrap(), shape).unwrap();
        let runs = selection.runs();
        runs.map(|run| (run.first, run.count, run.stride)).collect::<Vec<_>>()
    };
    assert_eq!(runs("", &[5, 6, 7]), [(0, 210, 1)]);
    assert_eq!(runs("1:3", &[5, 6, 7]), [(42, 84, 1)]);
    assert_eq!(runs("1:3,2", &[5, 6, 7]), [(56, 7, 1), (98, 7, 1)]);
    assert_eq!(runs("::2,1:3", &[3, 4]), [(1, 2, 1), (9, 2, 1)]);
    assert_eq!(runs("::-1", &[3]), [(2, 3, -1)]);
    assert_eq!(runs("1:,0", &[3, 4]), [(4, 2, 4)]);
    assert_eq!(runs("::-2,:,3", &[3, 2, 4]), [(19, 2, 4), (3, 2, 4)]);
    assert_eq!(runs("2:1", &[3]), []);
    // Steps beyond an i64 are runs of one.
    let far = 1 << 63;
    assert_eq!(runs("::2,0", &[3, 1 << 62]), [(0, 1, 1), (far, 1, 1)]);
    assert_eq!(runs("::-1,0", &[1, far + 5]), [(0, 1, 1)]);
    assert_eq!(runs("", &[]), [(0, 1, 1)]);
}

#[test]
fn a_slice_of_complex_values_keeps_their_parts_together() {
    let bytes: Vec<f32> = (0u16..8).map(f32::from).collect();
    let elements = Elements::from(&bytes).with_logical_type("complex64");
    let dense = Dense::from_elements([2, 2], elements).unwrap();
    let slice = dense.slice(&[Slice::ALL, Slice::Index(1)]).unwrap();
    let values = slice.as_slice::<zt_formats::Complex<f32>>().unwrap();
    assert_eq!((values[0].re, values[0].im, values[1].im), (2.0, 3.0, 7.0));
}

/// Column 1 of two rows of 0, 1, 2, and the last row backwards.
fn column_and_row<T: Element + PartialEq + Debug>(of: impl Fn(u8) -> T) {
    let values: Vec<T> = (0..6).map(&of).collect();
    let dense = Dense::from_slice(&[2, 3], &values).unwrap();
    for (text, places) in [(":,1", &[1, 4][..]), ("-1,::-1", &[5, 4, 3]), ("1", &[3, 4, 5])] {
        let slice = dense.slice(&Slice::parse_list(text).unwrap()).unwrap();
        let expected: Vec<T> = places.iter().map(|place| of(*place)).collect();
        assert_eq!(*slice.as_slice::<T>().unwrap(), expected[..], "{text}");
    }
}

#[test]
fn values_of_every_width_are_taken_whole() {
    column_and_row(|at| at);
    column_and_row(|at| at % 2 == 1);
    column_and_row(F8E5M2::from_bits);
    column_and_row(|at| u16::from(at) << 8 | 0x5a);
    column_and_row(|at| bf16::from_f32(at.into()));
    column_and_row(|at| i32::from(at) - 3);
    column_and_row(|at| f64::from(at) / 3.0);
    column_and_row(|at| Complex::new(f32::from(at), -1.0));
    column_and_row(|at| Complex::new(-1.0, f64::from(at) / 3.0));
}

#[test]
fn a_slice_of_an_empty_array_is_empty() {
    let dense = Dense::from_slice(&[3, 0], &[0u16; 0]).unwrap();
    for (text, shape) in [("::2", &[2, 0][..]), ("1", &[0]), (":,::-1", &[3, 0])] {
        let slice = dense.slice(&Slice::parse_list(text).unwrap()).unwrap();
        let expected = Dense::from_slice(shape, &[0u16; 0]).unwrap();
        assert_eq!(slice, expected, "{text}");
    }
}

#[test]
fn values_of_any_length_are_taken_whole() {
    let bytes: Vec<u8> = (0..54).collect();
    for (text, value_len) in [("::2", 3), ("::-1,1", 3), ("1:", 3), (":,::-2", 3), ("::2", 9)] {
        let rows = bytes.len() as u64 / 3 / value_len;
        let elements = Elements::from(&bytes[..]).with_logical_type("acme.pixel");
        let dense = Dense::from_elements([rows, 3], elements).unwrap();
        let slices = Slice::parse_list(text).unwrap();
        let slice = dense.slice(&slices).unwrap();
        let all: Vec<u32> = (0..54 / u32::try_from(value_len).unwrap()).collect();
        let places = Dense::from_slice(&[rows, 3], &all).unwrap();
        let places = places.slice(&slices).unwrap();
        assert_eq!(slice.shape(), places.shape());
        let expected: Vec<u8> = places
            .as_slice::<u32>()
            .unwrap()
            .iter()
            .flat_map(|place| {
                let first = usize::try_from(u64::from(*place) * value_len).unwrap();
                bytes[first..][..usize::try_from(value_len).unwrap()].to_vec()
            })
            .collect();
        assert_eq!(&*slice.elements().bytes, &expected[..], "{text}");
    }
    let elements = Elements::from(&bytes[..]).with_logical_type("acme.pixel");
    let dense = Dense::from_elements([5], elements).unwrap();
    assert_eq!(dense.slice(&[Slice::ALL]).unwrap_err().code(), "unsupported");
}

#[test]
fn invalid_slices_have_plain_texts() {
    let dense = Dense::from_slice(&[2, 3], &[0u8; 6]).unwrap();
    for (text, words) in [
        ("1:x", "\"1:x\" is not an index, start:stop:step or ..."),
        ("::0", "a slice's step is zero"),
        ("0,0,0", "3 indices for 2 dimensions"),
        ("...,...", "a slice has more than one ellipsis"),
        ("0,3", "index 3 is outside dimension 1 of 3"),
        ("-3", "index -3 is outside dimension 0 of 2"),
    ] {
        let slice = Slice::parse_list(text).and_then(|slices| dense.slice(&slices));
        let error = slice.unwrap_err();
        assert_eq!((error.code(), &error.to_string()[..]), ("misuse", words));
        assert_eq!(error.role(), None, "{text}");
    }
    for shape in [&[2][..], &[3, 2], &[2, 3, 1]] {
        let places = Places::resolve(&[], shape).unwrap();
        let error = dense.select(&places).unwrap_err();
        assert_eq!(error.to_string(), "the places are those of another shape");
    }
    // No text has a step of zero, but a caller's slice may.
    let step = Slice::Range { start: None, stop: None, step: 0 };
    let zero = Misuse::Slice(SliceFault::ZeroStep);
    assert_eq!(dense.slice(&[step]), Err(zero.into()));
    let places = Places::resolve(&[], &[1 << 32, 1 << 32]).unwrap();
    let error = Selection::of(&places).unwrap_err();
    assert_eq!(
        (error.code(), &error.to_string()[..]),
        ("shape-size-mismatch", "the size of shape [4294967296, 4294967296] is not representable")
    );
}

#[test]
fn ranges_and_indices_are_slices() {
    let parsed = |text: &str| text.parse::<Slice>().unwrap();
    assert_eq!(Slice::from(..), parsed(":"));
    assert_eq!(Slice::from(1..4), parsed("1:4"));
    assert_eq!(Slice::from(1..), parsed("1:"));
    assert_eq!(Slice::from(..4), parsed(":4"));
    assert_eq!(Slice::from(-2), parsed("-2"));
    // No place is after the last one that a slice can name.
    let places = Places::resolve(&[Slice::from(u64::MAX..)], &[10]).unwrap();
    assert_eq!(places[0].count(), 0);
}

#[test]
fn places_and_positions_are_each_others_inverse() {
    for dimension in 0..7 {
        let texts = ["", "1", "-1", "::2", "::-1", "4:1:-2", "-3:", "2:2", "9::-3"];
        for text in texts {
            let slices = Slice::parse_list(text).unwrap();
            let Ok(places) = Places::resolve(&slices, &[dimension]) else {
                continue; // An index outside.
            };
            let places = places.first().unwrap();
            let taken: Vec<u64> = (0..).map_while(|at| places.get(at)).collect();
            assert_eq!(taken.len() as u64, places.count(), "{text} of {dimension}");
            let is_whole = taken.iter().copied().eq(0..dimension);
            assert_eq!(places.is_whole(), is_whole, "{text} of {dimension}");
            for place in 0..dimension {
                let position = taken.iter().position(|taken| *taken == place);
                let position = position.map(|position| position as u64);
                assert_eq!(places.position(place), position, "{text} of {dimension}");
            }
            let hull = places.hull();
            assert!(taken.iter().all(|place| hull.contains(place)));
            let inner = places.within(hull.clone());
            assert_eq!(inner.dimension(), hull.end - hull.start);
            let moved = (0..).map_while(|at| inner.get(at));
            assert!(moved.eq(taken.iter().map(|place| place - hull.start)));
        }
    }
}

#[test]
fn a_scalar_has_one_element() {
    assert_eq!(element_count(&[]), Some(1));
    assert_eq!(dense_byte_len(&[], 8), Some(8));
}

#[test]
fn a_zero_dimension_wins_over_an_overflow() {
    assert_eq!(element_count(&[1 << 40, 1 << 40, 0]), Some(0));
    assert_eq!(element_count(&[0, u64::MAX, u64::MAX]), Some(0));
}

#[test]
fn products_that_wrap_are_refused() {
    assert_eq!(element_count(&[1 << 32, 1 << 32]), None);
    assert_eq!(dense_byte_len(&[(1 << 62) + 4], 4), None);
    assert_eq!(dense_byte_len(&[1 << 61], 4), Some(1 << 63));
}
