//! Parts of sparse objects: the same values as cutting them out of the whole, and less read.
#![cfg(feature = "zstd")]
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "tests")]

mod common;

use std::sync::atomic::Ordering;

use common::{ByPosition, agree, any_slice, counted, files_of, written};
use proptest::prelude::*;
use zt::foreign::{FileBuilder, Kind};
use zt::{
    Blob, Component, Coo, Csr, DType, Elements, File, Memory, NewObject, Object, OpenOptions,
    Slice, Span, ToObject, WriteOptions,
};

/// The object with indices of another dtype.
fn narrowed<'a>(object: &'a NewObject<'a>, roles: &[&str]) -> NewObject<'a> {
    let mut narrow = object.to_object().unwrap();
    for (role, elements) in &mut narrow.components {
        if roles.contains(&&**role) {
            let indices = elements.as_slice::<u64>().unwrap();
            let indices: Vec<i32> = indices.iter().map(|index| *index as i32).collect();
            *elements = indices.into();
        }
    }
    narrow
}

fn any_csr() -> impl Strategy<Value = Csr<'static>> {
    (0usize..9, 1u64..8).prop_flat_map(|(rows, columns)| {
        // Columns in any order, some of them several times.
        let row = prop::collection::vec((0..columns, -9i32..9), 0..6);
        let rows = prop::collection::vec(row, rows);
        rows.prop_map(move |rows| {
            let mut indptr = vec![0u64];
            let (mut indices, mut values) = (Vec::new(), Vec::new());
            for (column, value) in rows
                .iter()
                .inspect(|row| {
                    indptr.push(indptr[indptr.len() - 1] + row.len() as u64);
                })
                .flatten()
            {
                indices.push(*column);
                values.push(*value as f32 / 4.0);
            }
            Csr::new([rows.len() as u64, columns], values, indices, indptr).unwrap()
        })
    })
}

fn any_coo() -> impl Strategy<Value = Coo<'static>> {
    prop::collection::vec(1u64..6, 0..4).prop_flat_map(|shape| {
        let coord: Vec<_> = shape.iter().map(|dimension| 0..*dimension).collect();
        let values = prop::collection::vec((coord, -9i16..9), 0..12);
        values.prop_map(move |stored| {
            let axes = 0..shape.len();
            let coords = axes.flat_map(|axis| stored.iter().map(move |(coord, _)| coord[axis]));
            let coords: Vec<u64> = coords.collect();
            let values: Vec<i16> = stored.iter().map(|(_, value)| *value).collect();
            Coo::new(shape.clone(), values, coords).unwrap()
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn parts_of_matrices_are_those_of_the_dense_value(
        csr in any_csr(),
        slices in prop::collection::vec(any_slice(7), 0..=2),
    ) {
        agree(&files_of(&csr), &slices)?;
        agree(&files_of(&narrowed(&csr.to_object().unwrap(), &["indices", "indptr"])), &slices)?;
    }

    #[test]
    fn parts_of_coordinate_lists_are_those_of_the_dense_value(
        coo in any_coo(),
        slices in prop::collection::vec(any_slice(5), 0..=3),
    ) {
        agree(&files_of(&coo), &slices)?;
        agree(&files_of(&narrowed(&coo.to_object().unwrap(), &["coords"])), &slices)?;
    }

    #[test]
    fn no_bytes_of_a_matrix_make_a_part_panic(
        indptr in prop::collection::vec(0u64..7, 4),
        indices in prop::collection::vec(0u64..5, 5),
        slices in prop::collection::vec(any_slice(4), 0..=2),
    ) {
        for file in hostile(&[&indptr, &indices]) {
            let tensor = file.tensor("x").unwrap();
            match (tensor.slice_csr(&slices), tensor.to_dense()) {
                // An index takes a dimension of the dense value away.
                (Ok(part), Ok(whole)) => {
                    let (part, whole) = (part.to_dense().unwrap(), whole.slice(&slices).unwrap());
                    prop_assert_eq!(part.elements(), whole.elements());
                }
                // A fault that lies elsewhere.
                (Ok(_), Err(_)) => {}
                (Err(error), whole) => {
                    let is_fault = error.code() == "index-value" && whole.is_err();
                    prop_assert!(is_fault || error.code() == "misuse", "{}", error);
                }
            }
        }
    }
}

/// A matrix of 3 by 4 with five values, made of these pointers and columns.
fn hostile(indptr_and_indices: &[&[u64]; 2]) -> [File; 2] {
    let [indptr, indices] = indptr_and_indices;
    let words = [*indptr, *indices, &[1, 2, 3, 4, 5]].concat();
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let component = |start: u64, count: u64| {
        let span = Span::new(start * 8, count * 8).unwrap();
        Component::new(DType::U64, Blob::raw(span))
    };
    let build = |lends: bool| {
        let mut builder = FileBuilder::new(Kind::new("words"), OpenOptions::new());
        let source = match lends {
            true => builder.source(Memory::new(bytes.clone())),
            false => builder.source(ByPosition(bytes.clone())),
        };
        let object = Object::new([3, 4], "sparse_csr")
            .with_component("indptr", component(0, 4))
            .with_component("indices", component(4, 5))
            .with_component("values", component(9, 5));
        builder.object("x", object, source);
        builder.build().unwrap()
    };
    [build(true), build(false)]
}

#[test]
fn a_fault_within_the_part_is_named_and_one_outside_is_not_seen() {
    let slices = |text: &str| Slice::parse_list(text).unwrap();
    for (indptr, indices, text) in [
        ([0, 2, 3, 5], [0, 1, 9, 3, 0], "1"),
        ([1, 2, 3, 5], [0, 1, 2, 3, 0], "0"),
        ([0, 2, 1, 5], [0, 1, 2, 3, 0], "1"),
        ([0, 2, 3, 4], [0, 1, 2, 3, 0], "2"),
        ([0, 3, 2, 5], [0, 1, 2, 3, 0], "::2"),
        ([0, 3, 2, 5], [0, 1, 2, 3, 0], "::-2"),
        ([0, 2, 9, 5], [0, 1, 2, 3, 0], "1"),
    ] {
        for file in hostile(&[&indptr, &indices]) {
            let tensor = file.tensor("x").unwrap();
            let error = tensor.slice_csr(&slices(text)).unwrap_err();
            assert_eq!(error.code(), "index-value", "{text}: {error}");
        }
    }
    for file in hostile(&[&[0, 2, 3, 5], &[0, 1, 9, 3, 0]]) {
        let tensor = file.tensor("x").unwrap();
        let part = tensor.slice_csr(&slices("::2,1:")).unwrap();
        assert_eq!(part.shape(), [2, 3]);
        assert_eq!(part.indptr(), [0, 1, 2]);
        assert_eq!(part.indices(), [0, 2]);
        assert_eq!(*part.values().as_slice::<u64>().unwrap(), [2, 4]);
    }
}

#[test]
fn rows_between_those_of_a_part_may_be_empty() {
    let csr = Csr::new([3, 2], &[7i32, 8][..], &[0u64, 1][..], &[0u64, 1, 1, 2][..]).unwrap();
    let files = files_of(&csr);
    for text in ["::2", "::-2"] {
        agree(&files, &Slice::parse_list(text).unwrap()).unwrap();
    }
}

/// 100,000 rows of 20 values each.
fn large() -> Csr<'static> {
    let rows = 100_000u64;
    let indptr: Vec<u64> = (0..=rows).map(|row| row * 20).collect();
    let indices: Vec<u64> = (0..rows * 20).map(|at| at % 20 * 50 + at % 7).collect();
    let values: Vec<f32> = (0..rows * 20).map(|at| at as f32).collect();
    Csr::new([rows, 1000], values, indices, indptr).unwrap()
}

#[test]
fn only_what_the_rows_need_is_read() {
    let csr = large();
    let slices = Slice::parse_list("50000:50010,100:200").unwrap();
    // Chunk digests cost the whole chunks around what is read.
    for (options, most) in [
        (WriteOptions::new().chunk_digests(None), 4 * (64 << 10)),
        (WriteOptions::new(), 3 << 20),
        (WriteOptions::new().zstd(1), 2 << 20),
    ] {
        let (file, count) = counted(written(&csr, options));
        let part = file.tensor("x").unwrap().slice_csr(&slices).unwrap();
        assert_eq!(part.shape(), [10, 100]);
        assert_eq!(part.stored_count(), 20);
        let places: Vec<u64> =
            (1_000_000..1_000_200).filter(|at| (2..4).contains(&(at % 20))).collect();
        let columns = places.iter().map(|at| at % 20 * 50 + at % 7 - 100);
        assert!(part.indices().iter().copied().eq(columns));
        let values = part.values().as_slice::<f32>().unwrap();
        assert!(values.iter().copied().eq(places.iter().map(|at| *at as f32)));
        let read = count.load(Ordering::Relaxed);
        assert!(read < most, "{read} bytes of 24 MB");
    }
}

#[test]
fn values_are_read_only_where_all_coordinates_match() {
    let count = 1_000_000u64;
    let coords: Vec<u64> = (0..count).chain((0..count).map(|at| at % 10)).collect();
    let values: Vec<f64> = (0..count).map(|at| at as f64).collect();
    let coo = Coo::new([count, 10], values, coords).unwrap();
    let options = WriteOptions::new().chunk_digests(None);
    let (file, read) = counted(written(&coo, options));
    let slices = Slice::parse_list("700000:700100,3").unwrap();
    let part = file.tensor("x").unwrap().slice_coo(&slices).unwrap();
    assert_eq!(part.shape(), [100]);
    assert_eq!(part.coords(0).unwrap(), [3, 13, 23, 33, 43, 53, 63, 73, 83, 93]);
    assert_eq!(part.values().as_slice::<f64>().unwrap()[9], 700_093.0);
    // The first coordinates of all values, and a window or two of the rest.
    let read = read.load(Ordering::Relaxed);
    assert!(read < 8 * count + 5 * (64 << 10), "{read}");
}

#[test]
fn shapes_that_have_no_dense_value_still_have_parts() {
    let side = 1u64 << 40;
    let coo = Coo::new([side, side], vec![1i8, 2], vec![5, side - 1, side - 2, side - 1]).unwrap();
    let file = File::from_bytes(written(&coo, WriteOptions::new())).unwrap();
    let tensor = file.tensor("x").unwrap();
    assert!(tensor.to_dense().is_err());
    let slices = Slice::parse_list("-2:,-1").unwrap();
    let part = tensor.slice_coo(&slices).unwrap();
    assert_eq!(part.shape(), [2]);
    assert_eq!(part.coords(0).unwrap(), [1]);
    assert_eq!(*part.values().as_slice::<i8>().unwrap(), [2]);
    let part = tensor.slice(&slices).unwrap();
    assert_eq!(*part.as_slice::<i8>().unwrap(), [0, 2]);
}

#[test]
fn parts_that_do_not_fit_are_the_callers_fault() {
    let file = File::from_bytes(written(&common::graph(), WriteOptions::new())).unwrap();
    let tensor = file.tensor("x").unwrap();
    let slices = |text: &str| Slice::parse_list(text).unwrap();
    assert_eq!(tensor.slice_csr(&slices("2")).unwrap_err().code(), "misuse");
    assert_eq!(tensor.slice_coo(&slices("")).unwrap_err().code(), "misuse");
}

#[test]
fn bools_that_are_none_are_named_by_their_place_in_the_component() {
    let mut bytes: Vec<u8> = [0u64, 1, 2].iter().flat_map(|it| it.to_le_bytes()).collect();
    bytes.extend([0, 0, 1, 7]); // Two columns, two values.
    let component =
        |dtype, start, len| Component::new(dtype, Blob::raw(Span::new(start, len).unwrap()));
    let mut builder = FileBuilder::new(Kind::new("bytes"), OpenOptions::new());
    let source = builder.source(Memory::new(bytes));
    let object = Object::new([2, 1], "sparse_csr")
        .with_component("indptr", component(DType::U64, 0, 24))
        .with_component("indices", component(DType::U8, 24, 2))
        .with_component("values", component(DType::Bool, 26, 2));
    builder.object("x", object, source);
    let file = builder.build().unwrap();
    let tensor = file.tensor("x").unwrap();
    assert!(tensor.slice_csr(&[Slice::Index(0)]).is_ok());
    let error = tensor.slice(&[Slice::Index(1)]).unwrap_err();
    assert_eq!(error.code(), "bool-value");
    assert!(error.to_string().contains('1'), "{error}");
}

#[test]
fn zeros_of_an_unknown_type_are_as_long_as_its_values() {
    let elements = Elements::new(DType::U16, &[1u8, 2, 3, 4][..]).with_logical_type("example.pair");
    let coo = Coo::new([4], elements, vec![1]).unwrap();
    let file = File::from_bytes(written(&coo, WriteOptions::new())).unwrap();
    let tensor = file.tensor("x").unwrap();
    let part = tensor.slice(&[Slice::Index(2)]).unwrap();
    assert_eq!(*part.elements().bytes, [0; 4]);
    let part = tensor.slice_coo(&[Slice::ALL]).unwrap();
    assert_eq!(*part.values().bytes, [1, 2, 3, 4]);
    assert_eq!(part.values().logical_type.as_deref(), Some("example.pair"));
}
