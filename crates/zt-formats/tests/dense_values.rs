//! The dense value of an object of every format, and the type that the metadata declares.

// Clippy takes only the tests themselves for tests.
#![allow(clippy::unwrap_used)]

use zt_formats::{
    Buffer, Complex, Coo, Csr, Dense, Elements, FormatViolation, Packing, Planes, Quantization,
    Quantized4Bit, QuantizedGroup, Registry, ToObject, bf16, check_bools,
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

#[test]
fn a_buffer_holds_exactly_its_bytes_at_a_multiple_of_eight() {
    for byte_len in [0usize, 1, 7, 8, 9, 1000] {
        let bytes: Vec<u8> = (0..byte_len).map(|i| i.to_le_bytes()[0]).collect();
        let buffer = Buffer::try_from_slice(&bytes).unwrap();
        assert_eq!(&*buffer, &*bytes);
        assert!(buffer.as_ptr().addr().is_multiple_of(8));
    }
}

#[test]
fn a_vector_at_a_multiple_of_eight_is_not_copied() {
    for byte_len in [0usize, 1, 7, 64, 1000] {
        let bytes: Vec<u8> = (0..byte_len).map(|i| i.to_le_bytes()[0]).collect();
        let (expected, place) = (bytes.clone(), bytes.as_ptr());
        let buffer = Buffer::from(bytes);
        assert_eq!(&*buffer, &*expected);
        assert!(buffer.as_ptr().addr().is_multiple_of(8));
        if place.addr().is_multiple_of(8) {
            assert_eq!(buffer.as_ptr(), place);
        }
    }
}

#[test]
fn parts_lie_in_one_memory_until_one_is_written_to() {
    let mut bytes = Buffer::try_zeroed(300).unwrap();
    for (at, byte) in (0..=u8::MAX).cycle().zip(bytes.iter_mut()) {
        *byte = at;
    }
    let start = bytes.as_ptr();
    let parts = bytes.into_parts([70, 0, 1, 500, 5].into_iter());
    let mut parts = parts.collect::<Vec<_>>();
    let lens: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    assert_eq!(lens, [70, 0, 1, 300 - 192, 0]);
    assert_eq!(parts[0].as_ptr(), start);
    assert_eq!((parts[2][0], parts[3][0]), (128, 192));
    let one = parts.remove(2);
    let mut written = one.clone();
    written[0] = 9;
    parts[0][1] = 9;
    drop(parts);
    assert_eq!((one[0], written[0]), (128, 9));
}

#[test]
fn the_first_byte_that_is_no_bool_is_named() {
    let mut bytes = vec![1; 10_000];
    assert_eq!(check_bools(&bytes), Ok(()));
    bytes[9_001] = 3;
    bytes[9_000] = 255;
    let (position, value) = (9_000, 255);
    let fault = FormatViolation::BoolValue { position, value };
    assert_eq!(check_bools(&bytes), Err(fault.of_object()));
}
