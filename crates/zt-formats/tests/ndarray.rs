//! Dense values as arrays of the crate `ndarray`, and its arrays as objects.
#![cfg(feature = "ndarray")]
#![allow(clippy::unwrap_used, reason = "tests")]

use ndarray::{Array, Array2, ArrayD, ArrayView, Axis, arr0, array};
use zt_formats::{Complex, DType, Dense, Element, Elements, F8E4M3Fn, ToObject, View, bf16, f16};

/// The array that is read from the object of `array`.
fn read_back<T: Element>(array: &impl ToObject) -> ArrayD<T> {
    let object = array.to_object().unwrap();
    let dense = Dense::from_parts(object.into_parts()).unwrap();
    dense.to_array().unwrap()
}

#[test]
fn every_element_type_goes_through_an_object_and_back() {
    fn check<T: Element>(values: [T; 6]) {
        let array = Array::from_shape_vec([2, 3], values.to_vec()).unwrap();
        assert_eq!(read_back::<T>(&array), array.clone().into_dyn());
        assert_eq!(read_back::<T>(&array.t()), array.t().into_dyn());
        let column = array.index_axis(Axis(1), 2);
        assert_eq!(read_back::<T>(&column), column.into_dyn());
    }
    let numbers = [0u8, 1, 2, 3, 100, 127];
    check(numbers);
    check(numbers.map(u16::from));
    check(numbers.map(u32::from));
    check(numbers.map(u64::from));
    check(numbers.map(u8::cast_signed));
    check(numbers.map(i16::from));
    check(numbers.map(i32::from));
    check(numbers.map(i64::from));
    check(numbers.map(f32::from));
    check(numbers.map(f64::from));
    check(numbers.map(f16::from));
    check(numbers.map(bf16::from));
    check(numbers.map(F8E4M3Fn::from_bits));
    check(numbers.map(|number| Complex::new(f32::from(number), -1.0)));
    check(numbers.map(|number| Complex::new(f64::from(number), -1.0)));
    check([true, false, true, true, false, false]);
}

#[test]
fn aligned_elements_are_viewed_and_unaligned_ones_are_copied() {
    let bytes: Vec<u8> = [1.5f32, 2.5].iter().flat_map(|it| it.to_le_bytes()).collect();
    let owned = Elements::new(DType::F32, bytes.clone());
    let owned = Dense::from_elements([2], owned).unwrap();
    assert!(owned.array::<f32>().unwrap().is_view());

    let memory = [&bytes[..], &bytes[..]].concat();
    let unaligned = (1..4).map(|at| &memory[at..at + 8]);
    for bytes in unaligned {
        let dense = Dense::from_elements([2], Elements::new(DType::F32, bytes)).unwrap();
        assert_eq!(dense.array::<f32>().unwrap(), dense.to_array().unwrap());
    }
    let copies = (0..4).map(|at| Elements::new(DType::F32, &memory[at..at + 8]));
    let copies = copies.map(|it| Dense::from_elements([2], it).unwrap());
    let views = copies.filter(|it| it.array::<f32>().unwrap().is_view());
    assert_eq!(views.count(), 1);
}

#[test]
fn an_array_in_standard_layout_is_borrowed() {
    let array = array![[1i16, 2], [3, 4]];
    let borrows = |object: &dyn ToObject| {
        let object = object.to_object().unwrap();
        object.components[0].1.bytes.is_borrowed()
    };
    assert!(borrows(&array));
    assert!(!borrows(&array.t()));
    assert!(borrows(&ArrayView::from(&[1u8, 2])));
}

#[test]
fn scalars_and_empty_arrays_keep_their_shape() {
    assert_eq!(read_back::<f64>(&arr0(2.5)), arr0(2.5).into_dyn());
    let empty = Array2::<u8>::default([0, 7]);
    assert_eq!(read_back::<u8>(&empty).shape(), [0, 7]);
}

#[test]
fn refuses_another_type_and_shapes_that_ndarray_does_not_have() {
    let dense = Dense::from_slice(&[2], &[1u8, 2]).unwrap();
    assert_eq!(dense.array::<i8>().unwrap_err().code(), "misuse");
    // No element, but the other dimension is beyond the limit of `ndarray`.
    let dense = Dense::from_slice::<u8>(&[0, u64::MAX], &[]).unwrap();
    assert_eq!(dense.array::<u8>().unwrap_err().code(), "shape-size-mismatch");
    // Two elements for each value of an unknown type.
    let elements = Elements::from(&[1u8, 2, 3, 4]).with_logical_type("acme.pair");
    let dense = Dense::from_elements([2], elements).unwrap();
    assert_eq!(dense.to_array::<u8>().unwrap_err().code(), "shape-size-mismatch");
}
