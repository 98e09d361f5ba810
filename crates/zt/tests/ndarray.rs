//! Objects as arrays of the crate `ndarray`, and back.
#![cfg(feature = "ndarray")]
#![allow(clippy::unwrap_used, reason = "tests")]

use ndarray::{Array3, array};
use zt::{Coo, File, Planes, ToObject, View, WriteOptions};

fn file_of(options: WriteOptions, object: &dyn ToObject) -> File {
    let mut bytes = Vec::new();
    let mut writer = options.to_writer(&mut bytes).unwrap();
    writer.add("x", object).unwrap();
    writer.finish().unwrap();
    File::from_bytes(bytes).unwrap()
}

#[test]
fn an_array_that_was_written_is_read_and_borrowed_where_it_is_raw() {
    let values = Array3::from_shape_fn((4, 3, 2), |(a, b, c)| (a * 100 + b * 10 + c) as u64);
    for (view, options) in [(true, WriteOptions::new()), (false, WriteOptions::new().zstd(1))] {
        let file = file_of(options, &values.view().reversed_axes());
        let found = file.tensor("x").unwrap().array::<u64>().unwrap();
        assert_eq!(found.shape(), [2, 3, 4]);
        assert_eq!(found.reversed_axes(), values.clone().into_dyn());
        let found = file.tensor("x").unwrap().array::<u64>().unwrap();
        assert_eq!(found.is_view(), view);
    }
}

#[test]
fn the_array_outlives_the_handle() {
    let file = file_of(WriteOptions::new(), &array![1.5f64]);
    let found = {
        let tensor = file.tensor("x").unwrap();
        tensor.array::<f64>().unwrap()
    };
    assert_eq!(found, array![1.5f64].into_dyn());
}

#[test]
fn sparse_and_split_values_arrive_dense() {
    let coo = Coo::new([2, 2], &[7.0f32][..], &[1u64, 0][..]).unwrap();
    let file = file_of(WriteOptions::new(), &coo);
    let found = file.tensor("x").unwrap().array::<f32>().unwrap();
    assert_eq!(found, array![[0.0f32, 0.0], [7.0, 0.0]].into_dyn());

    let values = array![[1.0f32, -2.0], [0.5, 3.0]];
    let object = values.to_object().unwrap();
    let dense = zt::Dense::from_parts(object.into_parts()).unwrap();
    let file = file_of(WriteOptions::new(), &Planes::from_dense(&dense).unwrap());
    let found = file.tensor("x").unwrap().array::<f32>().unwrap();
    assert_eq!(found, values.into_dyn());
}

#[test]
fn scalars_and_empty_arrays_have_their_shapes() {
    let file = file_of(WriteOptions::new(), &ndarray::arr0(3u8));
    assert_eq!(file.tensor("x").unwrap().array::<u8>().unwrap().ndim(), 0);
    let file = file_of(WriteOptions::new(), &Array3::<u8>::zeros((0, 5, 2)));
    let found = file.tensor("x").unwrap();
    assert_eq!(found.array::<u8>().unwrap().shape(), [0, 5, 2]);
}

#[test]
fn another_type_is_the_callers_fault() {
    let file = file_of(WriteOptions::new(), &array![1.5f64]);
    let error = file.tensor("x").unwrap().array::<f32>().unwrap_err();
    assert_eq!((error.code(), error.object()), ("misuse", Some("x")));
}
