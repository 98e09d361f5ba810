//! Rows of arrays of both formats.

use std::borrow::Cow;

use zt_formats::{
    Elements, Packing, Parts, Quantization, Quantized4Bit, QuantizedGroup, Registry, Signature,
    ToObject,
};
use zt_manifest::DType;

use crate::example;

/// The first rows of an object and the others, as a reader cuts them.
fn cut<'a>(format: &str, parts: &'a Parts<'_>, rows: u64) -> [Parts<'a>; 2] {
    let registry = Registry::builtin();
    let format = registry.format(format).unwrap();
    let all = parts.shape[0];
    [(0, rows), (rows, all - rows)].map(|(start, rows)| {
        let shape = |rows| [&[rows], &parts.shape[1..]].concat();
        let of = |role: &str, rows| {
            let shape = shape(rows);
            let signature = Signature { shape: &shape, ..parts.signature() };
            let len = format.expected_len(role, &signature, &registry).unwrap();
            usize::try_from(len).unwrap()
        };
        let elements = parts.elements.iter().map(|(role, elements)| {
            let bytes = &elements.bytes[of(role, start)..][..of(role, rows)];
            (role.clone(), Elements::new(elements.dtype, bytes))
        });
        Parts {
            shape: Cow::Owned(shape(rows)),
            attributes: parts.attributes.clone(),
            elements: elements.collect(),
        }
    })
}

#[test]
fn rows_that_are_cut_at_the_unit_are_arrays_of_their_own() {
    let registry = Registry::builtin();
    let packing = |per_word, dtype| Packing { per_word, dtype };
    let (bytes, words) = (packing(2, DType::U8), packing(8, DType::I32));
    for (shape, group_size, packing, unit) in [
        (&[12, 4][..], 4, bytes, 1),
        (&[12, 3], 3, bytes, 2),
        (&[12, 4], 4, words, 2),
        (&[12, 4], 6, words, 6),
        (&[12, 2, 2], 16, words, 4),
        (&[12], 3, bytes, 6),
    ] {
        let count = usize::try_from(shape.iter().product::<u64>()).unwrap();
        let values = (0i16..).map(|at| f32::from(at * 37 % 101)).take(count);
        let values: Vec<f32> = values.collect();
        let quantization = Quantization::new(4, group_size, packing);
        let group = QuantizedGroup::quantize(shape, &values, quantization).unwrap();
        let parts = group.to_object().unwrap().into_parts();
        let format = registry.format("quantized_group").unwrap();
        let found = format.row_unit(&parts.signature(), &registry);
        assert_eq!(found, Some(unit), "{shape:?} in groups of {group_size}");
        let halves = cut("quantized_group", &parts, unit);
        let halves = halves.map(|part| format.to_dense(part).unwrap());
        let halves = halves.map(|dense| dense.as_slice::<f32>().unwrap().to_vec());
        let whole = group.to_dense().unwrap();
        assert_eq!(halves.concat(), *whole.as_slice::<f32>().unwrap());
    }
}

#[test]
fn four_bit_rows_of_an_odd_length_are_cut_in_pairs() {
    let registry = Registry::builtin();
    let format = registry.format("quantized_4bit").unwrap();
    for (shape, unit) in [(&[4, 2][..], 1), (&[4, 3], 2), (&[4, 3, 2], 1), (&[4], 2)] {
        let count = usize::try_from(shape.iter().product::<u64>()).unwrap();
        let data = (1u8..).map(|byte| byte.wrapping_mul(41));
        let data: Vec<u8> = data.take(count.div_ceil(2)).collect();
        let (scale, zero_point) = ([1f32, 2.0, 4.0, 8.0], [1f32, 0.0, 2.0, 3.0]);
        let array = Quantized4Bit::new(shape, &data, &scale, &zero_point).unwrap();
        let parts = array.to_object().unwrap().into_parts();
        let found = format.row_unit(&parts.signature(), &registry);
        assert_eq!(found, Some(unit), "{shape:?}");
        let halves = cut("quantized_4bit", &parts, unit);
        let halves = halves.map(|part| format.to_dense(part).unwrap());
        let halves = halves.map(|dense| dense.as_slice::<f32>().unwrap().to_vec());
        let whole = array.to_dense().unwrap();
        assert_eq!(halves.concat(), *whole.as_slice::<f32>().unwrap());
    }
}

#[test]
fn a_scalar_has_no_rows_to_cut_and_rows_of_nothing_fill_no_word() {
    let registry = Registry::builtin();
    let parts = example();
    let unit = |format, shape| {
        let signature = Signature { shape, ..parts.signature() };
        let format = registry.format(format).unwrap();
        format.row_unit(&signature, &registry)
    };
    assert_eq!(unit("quantized_4bit", &[]), None);
    assert_eq!(unit("quantized_group", &[]), None);
    assert_eq!(unit("quantized_group", &[4, 0]), None);
}
