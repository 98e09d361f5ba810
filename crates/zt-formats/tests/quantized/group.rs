//! `quantized_group`.

use std::borrow::Cow;

use zt_formats::{
    Elements, Error, F8E4M3Fn, Packing, Parts, Quantization, Quantized4Bit, QuantizedGroup,
    Registry, ToObject, View, ZeroKind, f16,
};
use zt_manifest::{DType, Value};

use crate::four_bit::four_bit;
use crate::{MISMATCH, example, on};

/// The example with one attribute replaced.
fn with_attribute(name: &str, value: impl Into<Value>) -> Parts<'static> {
    let mut parts = example();
    parts.attributes.to_mut().insert(name, value);
    parts
}

/// The example with one component replaced.
fn with(role: &'static str, elements: impl Into<Elements<'static>>) -> Parts<'static> {
    let mut parts = example();
    parts.take_if_any(role);
    parts.elements.push((role.into(), elements.into()));
    parts
}

/// The code and the role of the error that metadata alone gives.
fn refusal(parts: Parts<'_>) -> (&'static str, Option<String>) {
    let registry = Registry::builtin();
    let checked = registry.check("quantized_group", &parts.signature());
    let error = checked.unwrap_err();
    assert_eq!(QuantizedGroup::from_parts(parts).unwrap_err(), error);
    (error.code(), error.role().map(str::to_owned))
}

#[test]
fn the_worked_example_is_right() {
    let registry = Registry::builtin();
    let mut parts = example();
    registry.check("quantized_group", &parts.signature()).unwrap();
    parts.take("zeros").unwrap();
    let group = QuantizedGroup::from_parts(parts).unwrap();
    assert_eq!(group.quantization().bits, 4);
    assert_eq!(group.quantized().count(), 4096);
}

#[test]
fn attributes_are_of_their_type_and_range() {
    let attribute = ("attribute", None);
    let list = || Value::array(vec![Value::from(4u64)]);
    for value in [
        Value::from(0u64),
        Value::from(33u64),
        Value::from(65u64),
        Value::from(u64::MAX),
        Value::from(1u64 << 32 | 4),
        Value::from(-4i64),
        Value::from(true),
        Value::from(4.0),
        Value::from("4"),
        list(),
    ] {
        assert_eq!(refusal(with_attribute("bits", value)), attribute);
    }
    for value in [
        Value::from(0u64),
        Value::from(u64::MAX),
        Value::from(1u64 << 31),
        Value::from(-2i64),
        Value::from(true),
        Value::from(32.5),
    ] {
        assert_eq!(refusal(with_attribute("group_size", value)), attribute);
    }
    for text in [
        "",
        "8",
        "8_per_",
        "_per_i32",
        "8_per_f32",
        "8_per_bool",
        "8_per_int32",
        "08_per_i32",
        "+8_per_i32",
        "-8_per_i32",
        "0_per_i32",
        "8_PER_i32",
        "8_per_i32 ",
        "9_per_i32",
        "4294967304_per_i32",
    ] {
        assert_eq!(refusal(with_attribute("packing", text)), attribute, "{text}");
    }
    assert_eq!(refusal(with_attribute("packing", 8u64)), attribute);
    assert_eq!(refusal(with_attribute("signed", 1u64)), attribute);
    assert_eq!(refusal(with_attribute("zero_kind", "Additive")), attribute);
    assert_eq!(refusal(with_attribute("zero_kind", true)), attribute);
    for name in ["bits", "group_size", "packing"] {
        let mut parts = example();
        parts.attributes.to_mut().remove(name);
        assert_eq!(refusal(parts), attribute);
    }
}

/// GPTQ's -1, as ztensor 1.2.3 wrote it.
#[test]
fn a_group_size_of_minus_one_is_one_group_for_each_row() {
    let mut parts = with_attribute("group_size", Value::Negative(0));
    let groups = 32;
    parts.shape = Cow::Owned(vec![groups, 4096 / groups]);
    let group = QuantizedGroup::from_parts(parts).unwrap();
    assert_eq!(group.quantization().group_size, 4096 / groups);
}

#[test]
fn other_attributes_are_free_and_stay_with_the_tensor() {
    let mut parts = with_attribute("desc_act", true);
    parts.attributes.to_mut().insert("signed", true);
    let group = QuantizedGroup::from_parts(parts).unwrap();
    let mut parameters = example().attributes.into_owned();
    parameters.insert("signed", true);
    assert_eq!(group.to_object().unwrap().attributes, Some(parameters));
}

#[test]
fn components_have_exactly_their_lengths() {
    let packed = |len| with("packed_weight", vec![0i32; len]);
    assert_eq!(refusal(packed(511)), on(MISMATCH, "packed_weight"));
    assert_eq!(refusal(packed(513)), on(MISMATCH, "packed_weight"));
    assert_eq!(refusal(packed(0)), on(MISMATCH, "packed_weight"));
    let scales = |len| with("scales", vec![0f32; len]);
    assert_eq!(refusal(scales(31)), on(MISMATCH, "scales"));
    assert_eq!(refusal(scales(64)), on(MISMATCH, "scales"));
    let zeros = |len| with("zeros", vec![0i32; len]);
    assert_eq!(refusal(zeros(0)), on(MISMATCH, "zeros"));
    assert_eq!(refusal(zeros(33)), on(MISMATCH, "zeros"));
    let mut parts = example();
    parts.shape = Cow::Borrowed(&[1 << 32, 1 << 32]);
    assert_eq!(refusal(parts), on(MISMATCH, "packed_weight"));
}

#[test]
fn components_have_types_that_the_arithmetic_knows() {
    let packed = with("packed_weight", vec![0u32; 512]);
    assert_eq!(refusal(packed), on("attribute", "packed_weight"));
    let scales = with("scales", vec![1i32; 32]);
    assert_eq!(refusal(scales), on("dtype", "scales"));
    let zeros = with("zeros", vec![true; 32]);
    assert_eq!(refusal(zeros), on("dtype", "zeros"));
    let scales = with("scales", vec![F8E4M3Fn::MAX; 32]);
    let dense = QuantizedGroup::from_parts(scales).unwrap().to_dense().unwrap();
    assert_eq!(dense.as_slice::<f32>().unwrap()[0], -448.0);
    for role in ["packed_weight", "scales"] {
        let mut parts = example();
        parts.take(role).unwrap();
        assert_eq!(refusal(parts), on("missing-component", role));
    }
}

/// As in a file of the reference implementation 1.2.3: packed values of an unknown type, FP8 scales,
/// and half as many zeros.
#[test]
fn an_unknown_logical_type_makes_lengths_unknowable() {
    let packed = Elements::from(vec![0i32; 7]).with_logical_type("u4x2");
    let mut parts = with("packed_weight", packed);
    parts.take("zeros").unwrap();
    parts.elements.push(("zeros".into(), Elements::from(vec![1f32; 16])));
    let registry = Registry::builtin();
    let signature = parts.signature();
    registry.check("quantized_group", &signature).unwrap();
    let format = registry.format("quantized_group").unwrap();
    assert_eq!(format.dense_type(&signature, &registry), None);
    let error = QuantizedGroup::from_parts(parts).unwrap_err();
    assert_eq!(error.code(), "unsupported");
}

fn values<'a>(
    quantization: Quantization,
    packed: impl Into<Elements<'a>>,
    count: u64,
    scales: &'a [f32],
    zeros: Option<&'a [f32]>,
) -> Vec<f32> {
    let zeros = zeros.map(Elements::from);
    let group = QuantizedGroup::new([count], quantization, packed, scales, zeros).unwrap();
    let dense = group.to_dense().unwrap();
    dense.into_typed().unwrap().into_vec()
}

#[test]
fn the_first_value_is_in_the_lowest_bits_and_unused_bits_are_ignored() {
    let ten_of_three = Packing { per_word: 10, dtype: DType::U32 };
    let quantization = Quantization::new(3, 4, ten_of_three);
    let word = 0b11_111_110_101_100_011_010_001_000_111_110u32;
    assert_eq!(
        values(quantization, vec![word, 0b001], 11, &[1.0, 2.0, 4.0], None),
        [6.0, 7.0, 0.0, 1.0, 4.0, 6.0, 8.0, 10.0, 24.0, 28.0, 4.0]
    );
}

#[test]
fn signed_values_are_twos_complement() {
    let packing = Packing { per_word: 2, dtype: DType::I8 };
    let mut quantization = Quantization::new(4, 4, packing);
    quantization.signed = true;
    let packed = vec![0x87u8.cast_signed(), 0x1f];
    assert_eq!(values(quantization, packed, 4, &[0.5], None), [3.5, -4.0, -0.5, 0.5]);
    let whole = Packing { per_word: 1, dtype: DType::I64 };
    let mut quantization = Quantization::new(32, 4, whole);
    assert_eq!(values(quantization, vec![-1i64], 1, &[1.0], None), [4_294_967_296.0]);
    quantization.signed = true;
    assert_eq!(values(quantization, vec![-1i64], 1, &[1.0], None), [-1.0]);
}

#[test]
fn zero_points_are_subtracted_before_the_scale_or_added_after_it() {
    let packing = Packing { per_word: 2, dtype: DType::U8 };
    let mut quantization = Quantization::new(4, 2, packing);
    let zeros = Some(&[8.0, 1.0][..]);
    let packed = || vec![0xf0u8, 0x21];
    assert_eq!(values(quantization, packed(), 4, &[0.5, 2.0], zeros), [-4.0, 3.5, 0.0, 2.0]);
    quantization.zero_kind = ZeroKind::Additive;
    assert_eq!(values(quantization, packed(), 4, &[0.5, 2.0], zeros), [8.0, 15.5, 3.0, 5.0]);
    // No fused step: 15 * 0.1 rounds to 1.5 before 1.5 is subtracted.
    let dense = values(quantization, vec![0xffu8], 1, &[0.1], Some(&[-1.5]));
    assert_eq!(dense, [15f32 * 0.1 - 1.5]);
}

#[test]
fn a_group_may_be_larger_than_the_array() {
    let packing = Packing { per_word: 2, dtype: DType::U8 };
    let quantization = Quantization::new(4, 128, packing);
    assert_eq!(values(quantization, vec![0x21u8, 3], 3, &[1.0], None), [1.0, 2.0, 3.0]);
    assert_eq!(values(quantization, Vec::<u8>::new(), 0, &[], None), []);
}

#[test]
fn values_that_are_not_finite_are_refused() {
    let packing = Packing { per_word: 2, dtype: DType::U8 };
    let quantization = Quantization::new(4, 2, packing);
    let quantize = |shape: [u64; 1], values: &[f32], quantization| -> Result<(), Error> {
        QuantizedGroup::quantize(shape, values, quantization).map(drop)
    };
    assert_eq!(quantize([2], &[1.0], quantization).unwrap_err().code(), MISMATCH);
    let error = quantize([2], &[1.0, f32::NAN], quantization).unwrap_err();
    assert_eq!(error.to_string(), "value 1 is not finite and cannot be quantized");
    let mut one_bit = Quantization::new(1, 2, packing);
    assert_eq!(quantize([2], &[0.0, 1.0], one_bit), Ok(()));
    one_bit.signed = true;
    assert_eq!(quantize([2], &[0.0, 1.0], one_bit).unwrap_err().code(), "attribute");
}

#[test]
fn finite_values_stay_finite() {
    let packing = Packing { per_word: 2, dtype: DType::U8 };
    let extremes = [f32::MAX, f32::MIN, 1e-45, f32::MAX];
    for (bits, signed, zero_kind) in [
        (4, true, ZeroKind::Subtractive),
        (1, false, ZeroKind::Subtractive),
        (4, false, ZeroKind::Subtractive),
        (1, false, ZeroKind::Additive),
        (4, false, ZeroKind::Additive),
    ] {
        let quantization =
            Quantization { signed, zero_kind, ..Quantization::new(bits, 2, packing) };
        let array = QuantizedGroup::quantize([4], &extremes, quantization).unwrap();
        let dense = array.to_dense().unwrap();
        let values = dense.as_slice::<f32>().unwrap();
        let is_finite = values.iter().all(|value| value.is_finite());
        assert!(is_finite, "{quantization:?}: {values:?}");
        // Values are clipped to the range of the levels, not more.
        if bits == 4 && zero_kind == ZeroKind::Subtractive {
            let far = values[0].min(-values[1]);
            assert!(far > 0.8 * f32::MAX, "{quantization:?}: {values:?}");
        }
    }
}

#[test]
fn the_scale_is_the_distance_of_two_levels() {
    let packing = Packing { per_word: 2, dtype: DType::U8 };
    let plain = Quantization::new(4, 2, packing);
    let signed = Quantization { signed: true, ..plain };
    let additive = Quantization { zero_kind: ZeroKind::Additive, ..plain };
    for (quantization, values, scales, zeros) in [
        (signed, [7.0, -3.0, 0.0, 14.0], [1.0, 2.0], None),
        (plain, [-5.0, 10.0, 0.0, 30.0], [1.0, 2.0], Some([5.0, 0.0])),
        (additive, [10.0, 25.0, 30.0, 60.0], [1.0, 2.0], Some([10.0, 30.0])),
        // Zeros may have any scale except zero.
        (signed, [0.0; 4], [1.0; 2], None),
    ] {
        let array = QuantizedGroup::quantize([4], &values, quantization).unwrap();
        assert_eq!(*array.scales().as_slice::<f32>().unwrap(), scales);
        if let Some(zeros) = zeros {
            let found = array.zeros().unwrap().as_slice::<f32>().unwrap();
            assert_eq!(*found, zeros, "{quantization:?}");
        }
        let dense = array.to_dense().unwrap();
        assert_eq!(*dense.as_slice::<f32>().unwrap(), values);
    }
}

/// The examples of `spec/formats/quantized_group.md`.
#[test]
fn the_examples_of_the_page_are_right() {
    let packing = "8_per_u32".parse().unwrap();
    let quantization = Quantization::new(4, 8, packing);
    let words = [0x7654_3210u32, 0xfedc_ba98];
    let scales = [f16::from_f32(0.5), f16::from_f32(0.25)];
    let zeros = [8u8, 8];
    let zeros = Some(Elements::from(&zeros));
    let group = QuantizedGroup::new([2, 8], quantization, &words, &scales, zeros).unwrap();
    let expected: Vec<f32> =
        (-8i8..8).map(|q| f32::from(q) * if q < 0 { 0.5 } else { 0.25 }).collect();
    assert_eq!(*group.to_dense().unwrap().as_slice::<f32>().unwrap(), expected);

    let mut quantization = Quantization::new(4, 3, "2_per_u8".parse().unwrap());
    quantization.signed = true;
    quantization.zero_kind = ZeroKind::Additive;
    assert_eq!(values(quantization, &[0x8fu8, 1], 3, &[0.5], Some(&[1.0])), [0.5, -3.0, 1.5]);
}

#[test]
fn scales_of_f64_are_rounded_only_with_the_value() {
    let packing = Packing { per_word: 1, dtype: DType::U8 };
    let mut quantization = Quantization::new(8, 2, packing);
    for (zero_kind, expected) in [(ZeroKind::Subtractive, 12.4f32), (ZeroKind::Additive, 15.7)] {
        quantization.zero_kind = zero_kind;
        let zeros = Elements::from(vec![3i64]);
        let wide =
            QuantizedGroup::new([1], quantization, &[127u8], &[0.1f64], Some(zeros)).unwrap();
        assert_eq!(*wide.to_dense().unwrap().as_slice::<f32>().unwrap(), [expected]);
    }
}

#[test]
fn errors_of_attributes_give_the_allowed_range() {
    let long = "8_per_i32 and what a file may say after that, for as long as it likes";
    for (name, value, words) in [
        ("bits", Value::from(0u64), "is 0, not in 1..=32"),
        ("bits", Value::from(1u64 << 32 | 4), "is 4294967300, not in 1..=32"),
        ("bits", Value::from("4"), "is not an unsigned integer"),
        ("group_size", Value::from(0u64), "is 0, not in 1..=2147483647"),
        ("packing", Value::from("9_per_i32"), "is 9, not in 1..=8"),
        (
            "packing",
            Value::from("8_per_f32"),
            "is \"8_per_f32\", not <n>_per_<integer dtype>, such as 8_per_i32",
        ),
        (
            "packing",
            Value::from(long),
            "is \"8_per_i32 and what a file may say after …\", not <n>_per_<integer dtype>, \
             such as 8_per_i32",
        ),
        ("packing", Value::from(8u64), "is not a text"),
        ("signed", Value::from(1u64), "is not a bool"),
        ("zero_kind", Value::from("Additive"), "is \"Additive\", not subtractive or additive"),
    ] {
        let error = QuantizedGroup::from_parts(with_attribute(name, value)).unwrap_err();
        assert_eq!(error.to_string(), format!("attribute `{name}`: {words}"));
    }
}

#[test]
fn parameters_must_fit_the_word() {
    let of = |bits, group_size, per_word, dtype| {
        Quantization::new(bits, group_size, Packing { per_word, dtype })
    };
    for (quantization, words) in [
        (
            of(4, 8, 8, DType::F32),
            "attribute `packing`: is \"8_per_f32\", not <n>_per_<integer dtype>, such as 8_per_i32",
        ),
        (of(16, 8, 1, DType::U8), "attribute `bits`: is 16, not in 1..=8"),
        (of(4, 8, 0, DType::U8), "attribute `packing`: is 0, not in 1..=2"),
        (of(4, 0, 2, DType::U8), "attribute `group_size`: is 0, not in 1..=2147483647"),
    ] {
        let error = quantization.check(8).unwrap_err();
        assert_eq!((error.code(), &error.to_string()[..]), ("attribute", words));
        let made = QuantizedGroup::quantize([8], &[0.0; 8], quantization);
        assert_eq!(made.unwrap_err(), error);
    }
    // Unchecked numbers give a count of 0, and no division by 0.
    let unchecked = of(4, 0, 0, DType::U8);
    assert_eq!((unchecked.word_count(9), unchecked.group_count(9)), (0, 0));
    let sound = of(4, 4, 2, DType::U8);
    assert_eq!((sound.word_count(9), sound.group_count(9)), (5, 3));
    let overflow = QuantizedGroup::quantize([1 << 32, 1 << 32], &[], sound).unwrap_err();
    assert_eq!(
        overflow.to_string(),
        "the size of shape [4294967296, 4294967296] is not representable"
    );
}

#[test]
fn views_borrow_the_elements_of_the_object() {
    let group = QuantizedGroup::from_parts(example()).unwrap();
    assert_eq!(group.shape(), [64, 64]);
    assert_eq!(*group.packed().as_slice::<i32>().unwrap(), [0; 512]);
    assert_eq!(*group.scales().as_slice::<f16>().unwrap(), [f16::ONE; 32]);
    let zeros = group.zeros().unwrap();
    assert_eq!(*zeros.as_slice::<f16>().unwrap(), [f16::ONE; 32]);
    let mut parts = example();
    parts.take("zeros").unwrap();
    assert_eq!(QuantizedGroup::from_parts(parts).unwrap().zeros(), None);

    let array = Quantized4Bit::from_parts(four_bit(&[0; 8], &[0; 8])).unwrap();
    assert_eq!(array.shape(), [2, 3]);
    assert_eq!(array.data(), [0x21, 0x43, 0x65]);
}
