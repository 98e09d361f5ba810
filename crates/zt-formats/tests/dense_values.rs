//! The dense value of an object of every format, and the type that the metadata declares.

// Clippy takes only the tests themselves for tests.
#![allow(clippy::unwrap_used)]

use zt_formats::{
    Complex, Coo, Csr, Dense, Elements, Packing, Planes, Quantization, Quantized4Bit,
    QuantizedGroup, Registry, ToObject, bf16,
};
use zt_manifest::DType;

/// Asserts that the format of `object` gives these values, and their type from the metadata alone.
fn assert_dense(object: &dyn ToObject, shape: &[u64], values: Elements<'_>) {
    let object = object.to_object().unwrap();
    let registry = Registry::builtin();
    let format = registry.format(&object.format).unwrap();
    let signature = object.signature();
    registry.check(&object.format, &signature).unwrap();
    let said = format.dense_type(&signature, &registry);
    let logical_type = values.logical_type().map(|name| name.to_owned().into());
    assert_eq!(said, Some((values.dtype, logical_type)), "{}", object.format);
    let id = object.format.clone();
    let parts = object.into_parts();
    format.check_data(&parts).unwrap();
    let dense = format.to_dense(parts).unwrap();
    assert_eq!((dense.shape(), dense.elements()), (shape, &values), "{id}");
}

#[test]
fn every_format_gives_values_of_the_type_that_it_declares() {
    let pairs = [Complex::new(1f32, -2.0), Complex::new(0.0, 0.5)];
    let dense = Dense::from_slice(&[2], &pairs).unwrap();
    assert_dense(&dense, &[2], (&pairs).into());

    // [[0, 5, 0], [7, 0, 8]]
    let expected = [0i16, 5, 0, 7, 0, 8];
    let csr = Csr::new([2, 3], &[5i16, 7, 8], &[1, 0, 2], &[0, 1, 3]).unwrap();
    assert_dense(&csr, &[2, 3], (&expected).into());
    let coo = Coo::new([2, 3], &[5i16, 7, 8], &[0, 1, 1, 1, 0, 2]).unwrap();
    assert_dense(&coo, &[2, 3], (&expected).into());

    let halves = [bf16::from_f32(-0.5), bf16::MAX, bf16::NEG_INFINITY];
    let planes = Planes::from_dense(&Dense::from_slice(&[3, 1], &halves).unwrap()).unwrap();
    assert_dense(&planes, &[3, 1], (&halves).into());

    // 1, 2, 3 with a zero-point of 2 and a scale of a half.
    let expected = [-0.5f32, 0.0, 0.5];
    let packing = Packing { per_word: 2, dtype: DType::U8 };
    let (scales, zeros) = ([0.5f32], Some(Elements::from(&[2f32])));
    let quantization = Quantization::new(4, 3, packing);
    let words = &[0x21u8, 0x03];
    let group = QuantizedGroup::new([3], quantization, words, &scales, zeros).unwrap();
    assert_dense(&group, &[3], (&expected).into());
    let four_bit = Quantized4Bit::new([1, 3], words, &[0.5f32], &[2f32]).unwrap();
    assert_dense(&four_bit, &[1, 3], (&expected).into());
}
