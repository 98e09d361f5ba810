//! Packed values one by one, and the types of 4-bit components.

// Clippy takes only the tests themselves for tests.
#![allow(clippy::unwrap_used)]

use zt_formats::{
    ComponentSignature, Elements, Error, F8E4M3Fn, F8E5M2, Packing, Quantization, Quantized4Bit,
    QuantizedGroup, Registry, Signature, ToObject, View,
};
use zt_manifest::{Attributes, DType};

/// Sixteen values of 3 bits, five in each word of 16 bits. The last word has one.
fn group() -> QuantizedGroup<'static> {
    let packing = Packing { per_word: 5, dtype: DType::U16 };
    let quantization = Quantization::new(3, 16, packing);
    let word = |values: [u16; 5]| values.iter().rev().fold(0, |word, value| word << 3 | value);
    let words = [[0, 1, 2, 3, 4], [5, 6, 7, 0, 1], [2, 3, 4, 5, 6], [7, 0, 0, 0, 0]];
    let words = words.map(word).to_vec();
    QuantizedGroup::new([16], quantization, words, vec![1f32], None).unwrap()
}

#[test]
fn skipping_values_is_the_same_as_taking_them() {
    let group = group();
    let all: Vec<i64> = group.quantized().collect();
    assert_eq!(all, (0..16).map(|at| at % 8).collect::<Vec<_>>());
    // From every position, within a word and across several, to the end and beyond.
    for taken in 0..=16 {
        for skipped in 0..=18 {
            let mut values = group.quantized();
            assert_eq!(values.by_ref().take(taken).count(), taken);
            let expected = all.get(taken + skipped).copied();
            assert_eq!(values.nth(skipped), expected, "{skipped} after {taken}");
            let left = 16usize.saturating_sub(taken + skipped + 1);
            assert_eq!(values.size_hint(), (left, Some(left)));
            assert!(values.eq(all[16 - left..].iter().copied()));
        }
    }
    assert_eq!(group.quantized().nth(usize::MAX), None);
}

/// The result of the check of three rows of four values with these types, and the type of the dense
/// value.
fn four_bit(
    data: Option<DType>,
    scale: (DType, Option<&str>),
    zero_point: (DType, Option<&str>),
) -> (Result<(), Error>, Option<DType>) {
    let component = |role, dtype: Option<DType>, logical_type| ComponentSignature {
        role,
        dtype,
        logical_type,
        byte_len: dtype.map(|dtype| match role {
            "data" => 6,
            _ => 3 * dtype.byte_len() as u64,
        }),
    };
    let signature = Signature {
        shape: &[3, 4],
        attributes: &Attributes::new(),
        components: vec![
            component("data", data, None),
            component("scale", Some(scale.0), scale.1),
            component("zero_point", Some(zero_point.0), zero_point.1),
        ],
    };
    let registry = Registry::builtin();
    let format = registry.format("quantized_4bit").unwrap();
    let dense = format.dense_type(&signature, &registry);
    let checked = registry.check("quantized_4bit", &signature);
    (checked, dense.map(|(dtype, _)| dtype))
}

#[test]
fn four_bits_are_packed_in_bytes_and_nothing_else() {
    let (scale, zero_point) = ((DType::F32, None), (DType::U8, None));
    for data in [None, Some(DType::U8), Some(DType::I8)] {
        let sound = four_bit(data, scale, zero_point);
        assert_eq!(sound, (Ok(()), Some(DType::F32)), "{data:?}");
    }
    for data in [DType::U16, DType::Bool, DType::F16] {
        let (refused, _) = four_bit(Some(data), scale, zero_point);
        let words = format!("component `data`: takes u8, not {data}");
        assert_eq!(refused.unwrap_err().to_string(), words);
    }
}

#[test]
fn scales_of_an_unknown_type_are_kept_and_have_no_dense_value() {
    let plain = (DType::F32, None);
    // A wrong dtype and a wrong number of scales: both pass with an unknown logical type.
    let unknown = (DType::U64, Some("acme.log2x2"));
    assert_eq!(four_bit(None, unknown, plain), (Ok(()), None));
    assert_eq!(four_bit(None, plain, unknown), (Ok(()), None));
    // Without a logical type, they are checked.
    let (refused, _) = four_bit(None, (DType::U64, None), plain);
    assert_eq!(refused.unwrap_err().role(), Some("scale"));
    // A known logical type.
    let fp8 = (DType::U8, Some("f8_e4m3fn"));
    assert_eq!(four_bit(None, fp8, fp8), (Ok(()), Some(DType::F32)));
}

#[test]
fn scales_of_a_byte_are_fp8_only_with_a_logical_type() {
    let scale = [F8E5M2::from_f32(0.5), F8E5M2::from_f32(4.0)];
    let zero_point = [F8E4M3Fn::from_f32(1.0), F8E4M3Fn::from_f32(2.5)];
    let array = Quantized4Bit::new([2, 1], &[0x43], &scale, &zero_point).unwrap();
    let object = array.to_object().unwrap();
    // As many bytes as rows: without a logical type, no dtype of scales has this length.
    let read = Quantized4Bit::from_parts(object.into_parts()).unwrap();
    assert_eq!(read, array);
    let dense = read.to_dense().unwrap();
    assert_eq!(*dense.as_slice::<f32>().unwrap(), [1.0, 6.0]);
    let mut parts = array.to_object().unwrap().into_parts();
    let scale = parts.take("scale").unwrap();
    let bytes = Elements::new(DType::U8, scale.bytes);
    parts.elements.push(("scale".into(), bytes));
    let error = Quantized4Bit::from_parts(parts).unwrap_err();
    assert_eq!((error.code(), error.role()), ("unsupported", Some("scale")));
}
