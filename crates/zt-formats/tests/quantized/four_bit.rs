//! `quantized_4bit`.

use std::borrow::Cow;

use zt_formats::{Elements, Error, Parts, Quantized4Bit, Registry, ToObject, View};
use zt_manifest::{Attributes, DType};

use crate::{MISMATCH, on};

/// The parts of a 1.0 object, whose scales and zero-points come without a dtype.
pub(crate) fn four_bit(scale: &'static [u8], zero_point: &'static [u8]) -> Parts<'static> {
    let untyped = |bytes: &'static [u8]| Elements::new(DType::U8, bytes);
    Parts {
        shape: Cow::Borrowed(&[2, 3]),
        attributes: Cow::Owned(Attributes::new()),
        elements: vec![
            ("data".into(), untyped(&[0x21, 0x43, 0x65])),
            ("scale".into(), untyped(scale)),
            ("zero_point".into(), untyped(zero_point)),
        ],
    }
}

#[test]
fn four_bit_values_are_packed_across_rows_with_a_scale_for_each() {
    // 1.0 and 0.5 as f32, 1 and 2 as f16.
    let parts = four_bit(&[0, 0, 0x80, 0x3f, 0, 0, 0, 0x3f], &[0, 0x3c, 0, 0x40]);
    let view = Quantized4Bit::from_parts(parts).unwrap();
    assert_eq!(view.quantized().collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    assert_eq!(view.scale().dtype, DType::F32);
    assert_eq!(view.zero_point().dtype, DType::F16);
    let object = view.to_object().unwrap();
    assert_eq!(Quantized4Bit::from_parts(object.into_parts()).unwrap(), view);
    let dense = view.to_dense().unwrap();
    assert_eq!(*dense.as_slice::<f32>().unwrap(), [0.0, 1.0, 2.0, 1.0, 1.5, 2.0]);
}

#[test]
fn a_missing_dtype_is_no_fault() {
    let parts = four_bit(&[0; 5], &[0; 8]);
    let registry = Registry::builtin();
    let mut signature = parts.signature();
    for component in &mut signature.components {
        component.dtype = None;
    }
    registry.check("quantized_4bit", &signature).unwrap();
    let error = Quantized4Bit::from_parts(parts).unwrap_err();
    assert_eq!((error.code(), error.role()), ("unsupported", Some("scale")));
}

#[test]
fn four_bit_components_have_the_lengths_of_the_shape() {
    let code = |parts: Parts<'_>| {
        let error = Quantized4Bit::from_parts(parts).unwrap_err();
        (error.code(), error.role().map(str::to_owned))
    };
    let mut parts = four_bit(&[0; 8], &[0; 8]);
    parts.shape = Cow::Borrowed(&[2, 4]);
    assert_eq!(code(parts), on(MISMATCH, "data"));
    let mut parts = four_bit(&[0; 8], &[0; 8]);
    parts.take("scale").unwrap();
    assert_eq!(code(parts), on("missing-component", "scale"));
    let mut parts = four_bit(&[0; 8], &[0; 8]);
    parts.take("scale").unwrap();
    parts.elements.push(("scale".into(), Elements::from(vec![1f32; 3])));
    assert_eq!(code(parts), on(MISMATCH, "scale"));
}

/// The example of `spec/formats/quantized_4bit.md`, with zero-points of a byte each.
#[test]
fn zero_points_of_one_byte_are_u8() {
    let mut parts = four_bit(&[0, 0, 0, 0x3f, 0, 0, 0x80, 0x3f], &[8, 0]);
    parts.elements[0].1 = Elements::from(vec![0x08u8, 0xf7, 0x21]);
    let dense = Quantized4Bit::from_parts(parts).unwrap().to_dense().unwrap();
    let expected = [0.0, -4.0, -0.5, 15.0, 1.0, 2.0];
    assert_eq!(*dense.as_slice::<f32>().unwrap(), expected);
}

#[test]
fn a_4_bit_array_is_made_of_its_parts_and_held_to_their_lengths() {
    let array = Quantized4Bit::new([2, 3], &[0x21, 0x43, 0x65], &[1.0f32, 0.5], &[1.0f32, 2.0]);
    let array = array.unwrap();
    let dense = array.to_dense().unwrap();
    assert_eq!(*dense.as_slice::<f32>().unwrap(), [0.0, 1.0, 2.0, 1.0, 1.5, 2.0]);
    let object = array.to_object().unwrap();
    assert_eq!(Quantized4Bit::from_parts(object.into_parts()).unwrap(), array);
    let short = Quantized4Bit::new([2, 3], &[0x21, 0x43], &[1.0f32, 0.5], &[1.0f32, 2.0]);
    assert_eq!(short.unwrap_err().code(), "shape-size-mismatch");
    let one_row = Quantized4Bit::new([2, 3], &[0, 0, 0], &[1.0f32], &[1.0f32, 2.0]);
    assert_eq!(one_row.unwrap_err().code(), "shape-size-mismatch");
    let blame = |made: Result<Quantized4Bit<'_>, Error>| {
        let error = made.unwrap_err();
        (error.code(), error.role().map(str::to_owned))
    };
    // `new` takes u8 as u8: these are four zero-points, and not two of f16.
    let bytes = Quantized4Bit::new([2, 3], &[0; 3], &[1.0f32, 0.5], &[0u8, 60, 0, 64]);
    assert_eq!(blame(bytes), on(MISMATCH, "zero_point"));
    let integers = Quantized4Bit::new([2, 3], &[0; 3], &[0u8; 8], &[1u8, 2]);
    assert_eq!(blame(integers), on("dtype", "scale"));
    let few = Quantized4Bit::new([2, 3], &[0; 3], &[1.0f32, 0.5], &[1u8, 2]).unwrap();
    assert_eq!(few.zero_point().dtype, DType::U8);
}
