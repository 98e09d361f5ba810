//! `zt.<type>/1`: values against tables made by `ml_dtypes`, packing against a naive reader, slices
//! against slices of the whole, and the rules.

// Clippy takes only the tests themselves for tests.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use zt_formats::{
    ComponentSignature, Elements, F8E8M0Fnu, ObjectFormat, Packed, PackedFormat, PackedType,
    Places, Registry, Scalar, Signature, Slice, ToObject,
};
use zt_manifest::{Attributes, DType};

/// See `data/README.md`.
const TABLE: &str = include_str!("data/packed.txt");

/// The words of the line of a type.
fn line(name: &str) -> impl Iterator<Item = &'static str> {
    let mut lines = TABLE.lines().map(|line| line.split(' '));
    lines.find_map(|mut words| (words.next() == Some(name)).then_some(words)).unwrap()
}

/// The bytes of the values of all codes, little-endian.
fn values_of_all_codes(packed: PackedType) -> Vec<Vec<u8>> {
    let words = line(packed.name());
    let values = words.map(|word| match packed.dtype() {
        DType::F32 => u32::from_str_radix(word, 16).unwrap().to_le_bytes().to_vec(),
        _ => {
            let number: i16 = word.parse().unwrap();
            vec![number.to_le_bytes()[0]]
        }
    });
    values.collect()
}

/// Bit by bit, as the page says and not as our code does it.
fn naive_pack(packed: PackedType, codes: &[u8]) -> Vec<u8> {
    let bits = packed.bits() as usize;
    let mut bytes = vec![0; (codes.len() * bits).div_ceil(8)];
    for (value, code) in codes.iter().enumerate() {
        for bit in 0..bits {
            let at = value * bits + bit;
            bytes[at / 8] |= (code >> bit & 1) << (at % 8);
        }
    }
    bytes
}

#[test]
fn every_code_has_the_value_that_ml_dtypes_gives_it() {
    for packed in PackedType::ALL {
        let expected = values_of_all_codes(packed);
        assert_eq!(expected.len(), 1 << packed.bits());
        let codes: Vec<u8> = (0u8..).take(expected.len()).collect();
        let shape = [codes.len() as u64];
        let bytes = naive_pack(packed, &codes);
        let array = Packed::new(packed, shape, &bytes[..]).unwrap();
        let dense = array.to_dense().unwrap();
        assert_eq!(dense.elements().dtype, packed.dtype());
        assert_eq!(dense.elements().bytes[..], expected.concat(), "{packed}");
    }
}

#[test]
fn every_e8m0_has_the_value_that_ml_dtypes_gives_it() {
    let codes: Vec<F8E8M0Fnu> = (0..=255).map(F8E8M0Fnu::from_bits).collect();
    let elements = Elements::from(&codes);
    let registry = Registry::builtin();
    let mut scalars = elements.scalars(&registry).unwrap();
    for word in line("f8_e8m0fnu") {
        let bits = u32::from_str_radix(word, 16).unwrap();
        assert_eq!(f32_of(scalars.next().unwrap()).to_bits(), bits);
    }
    assert_eq!(scalars.next(), None);
}

#[test]
fn an_f32_is_rounded_to_e8m0_as_ml_dtypes_does_it() {
    let mut count = 0;
    for pair in line("encode") {
        let (bits, code) = pair.split_once('=').unwrap();
        let [bits, code] = [bits, code].map(|word| u32::from_str_radix(word, 16).unwrap());
        let found = F8E8M0Fnu::from_f32(f32::from_bits(bits)).to_bits();
        assert_eq!(u32::from(found), code, "{bits:08x}");
        count += 1;
    }
    assert_eq!(count, 3 * 254 + 9);
}

fn f32_of(scalar: Scalar) -> f32 {
    scalar.as_f32().unwrap()
}

fn any_packed() -> impl Strategy<Value = PackedType> {
    prop::sample::select(&PackedType::ALL)
}

/// An array of up to three dimensions, and slices of it.
fn array_and_slices() -> impl Strategy<Value = (PackedType, Vec<u64>, Vec<u8>, Vec<Slice>)> {
    let shape = prop::collection::vec(0u64..12, 0..4);
    (any_packed(), shape).prop_flat_map(|(packed, shape)| {
        let count: u64 = shape.iter().product();
        let byte_len = usize::try_from(packed.byte_len(count)).unwrap();
        let bytes = prop::collection::vec(any::<u8>(), byte_len);
        let slices: Vec<_> = shape.iter().map(|dimension| slice(*dimension)).collect();
        (Just(packed), Just(shape), bytes, slices)
    })
}

fn slice(dimension: u64) -> BoxedStrategy<Slice> {
    let dimension = i64::try_from(dimension).unwrap();
    let place = || prop::option::of(-dimension - 2..dimension + 3);
    let step = prop::sample::select(&[1i64, 1, 1, 2, 3, -1, -2]);
    let range = (place(), place(), step);
    let range = range.prop_map(|(start, stop, step)| Slice::Range { start, stop, step });
    match dimension {
        0 => range.boxed(),
        _ => prop_oneof![3 => range, 1 => (-dimension..dimension).prop_map(Slice::Index)].boxed(),
    }
}

proptest! {
    #[test]
    fn packing_agrees_with_a_naive_reader(
        packed in any_packed(),
        codes in prop::collection::vec(any::<u8>(), 0..40),
        skipped in 0usize..12,
    ) {
        let expected = naive_pack(packed, &codes);
        prop_assert_eq!(expected.len() as u64, packed.byte_len(codes.len() as u64));
        let mut bytes = vec![0xff; expected.len()];
        packed.pack(&codes, &mut bytes);
        prop_assert_eq!(&bytes, &expected);

        let table = values_of_all_codes(packed);
        let mask = (1 << packed.bits()) - 1;
        let values = codes.iter().map(|code| &table[usize::from(code & mask)][..]);
        let values: Vec<u8> = values.skip(skipped).collect::<Vec<_>>().concat();
        let mut unpacked = vec![0xff; values.len()];
        packed.unpack(&bytes, skipped, &mut unpacked);
        prop_assert_eq!(unpacked, values);
    }

    #[test]
    fn a_slice_is_the_slice_of_the_whole((packed, shape, bytes, slices) in array_and_slices()) {
        let array = Packed::new(packed, shape.clone(), &bytes[..]).unwrap();
        let expected = array.to_dense().unwrap().slice(&slices).unwrap();
        let parts = array.to_object().unwrap().into_parts();
        let registry = Registry::builtin();
        let places = Places::resolve(&slices, &shape).unwrap();
        let part = PackedFormat(packed).slice(&places, &mut parts.reader(&registry));
        prop_assert_eq!(part.unwrap().unwrap(), expected);
    }
}

#[test]
fn rows_are_cut_where_a_byte_ends() {
    for packed in PackedType::ALL {
        let count = 22;
        let codes: Vec<u8> = (0..count).collect();
        let bytes = naive_pack(packed, &codes);
        let array = Packed::new(packed, [2, 11], &bytes[..]).unwrap();
        let parts = array.to_object().unwrap().into_parts();
        let (registry, format) = (Registry::builtin(), PackedFormat(packed));
        let unit = format.row_unit(&parts.signature(), &registry).unwrap();
        let whole = array.to_dense().unwrap();
        let values = whole.elements().bytes.chunks(packed.dtype().byte_len());
        for (start, expected) in (0..22).zip(values).step_by(usize::try_from(unit).unwrap()) {
            let rows = format.rows(start..22, &mut parts.reader(&registry));
            let rows = format.to_dense(rows.unwrap().unwrap()).unwrap();
            assert_eq!(rows.shape(), [22 - start]);
            assert!(rows.elements().bytes.starts_with(expected));
            assert!(whole.elements().bytes.ends_with(&rows.elements().bytes));
        }
    }
}

/// The code of the error about `data`, if there is one.
fn fault(packed: PackedType, shape: &[u64], data: &[(DType, Option<&str>, u64)]) -> Option<String> {
    let attributes = Attributes::new();
    let components = data.iter().map(|(dtype, logical_type, byte_len)| ComponentSignature {
        role: "data",
        dtype: Some(*dtype),
        logical_type: *logical_type,
        byte_len: Some(*byte_len),
    });
    let signature = Signature { shape, attributes: &attributes, components: components.collect() };
    let checked = Registry::builtin().check(packed.format(), &signature);
    checked.err().map(|error| {
        assert_eq!(error.role(), Some("data"));
        error.code().to_owned()
    })
}

#[test]
fn data_is_bytes_and_as_long_as_the_shape_demands() {
    let f4 = |shape: &[u64], data: &[(DType, Option<&str>, u64)]| {
        fault(PackedType::F4E2M1Fn, shape, data)
    };
    let plain = |byte_len| [(DType::U8, None, byte_len)];
    for (shape, byte_len) in [(&[3, 3][..], 5), (&[2, 8], 8), (&[], 1), (&[0, 7], 0)] {
        assert_eq!(f4(shape, &plain(byte_len)), None);
        let wrong = f4(shape, &plain(byte_len + 1));
        assert_eq!(wrong.as_deref(), Some("shape-size-mismatch"));
    }
    let codes = [
        (f4(&[2], &[]), "missing-component"),
        (f4(&[2], &[(DType::I8, None, 1)]), "dtype"),
        (f4(&[2], &[(DType::U8, Some("f8_e5m2"), 1)]), "logical-type"),
        (f4(&[1 << 32, 1 << 32], &plain(1 << 63)), "shape-size-mismatch"),
    ];
    for (found, expected) in codes {
        assert_eq!(found.as_deref(), Some(expected));
    }
}

#[test]
fn lengths_do_not_overflow() {
    for packed in PackedType::ALL {
        let bits = u128::from(packed.bits());
        for count in [0, 1, 2, 3, 7, 8, 9, u64::MAX - 1, u64::MAX] {
            let expected = (u128::from(count) * bits).div_ceil(8);
            assert_eq!(u128::from(packed.byte_len(count)), expected, "{packed} {count}");
        }
    }
}

#[test]
fn formats_are_named_after_their_types() {
    for packed in PackedType::ALL {
        assert_eq!(packed.format(), format!("zt.{packed}/1"));
        assert_eq!(PackedType::from_format(packed.format()), Some(packed));
    }
    assert_eq!(PackedType::from_format("zt.planes/1"), None);
}
