//! Dtypes, logical types and the sizes they demand. Spec: §7, §8.

use zt::DType;

use super::{Case, Stage, accepted, bad, valid};
use crate::cbor::text;
use crate::draft::{Draft, Item, Part, le_f32};
use crate::frames::frame;

pub(super) fn cases() -> Vec<Case> {
    [dtypes(), logical(), sizes(), bools()].concat()
}

fn logical_dense(shape: &[u64], dtype: DType, name: &str, bytes: &[u8]) -> Item {
    Item::new(shape, "dense").part(Part::new("data", dtype, bytes).logical(name))
}

fn dtypes() -> Vec<Case> {
    let dtype = |name, about, word: &str| {
        let item = Item::dense(&[1], DType::F32, &[0; 4]);
        let item = item.change("data", |part| part.set("dtype", text(word)));
        bad(name, "§7.1", about, "dtype", item).at("bad", Some("data"))
    };
    let every = |rank: &[u64], bytes: &dyn Fn(usize) -> Vec<u8>| {
        DType::ALL.iter().fold(Draft::v1_2(), |draft, dtype| {
            draft.with(dtype.as_str(), Item::dense(rank, *dtype, &bytes(dtype.byte_len())))
        })
    };
    vec![
        valid(
            "dtype_every_scalar",
            "§8",
            "a scalar of every dtype",
            every(&[], &|width| vec![1; width]),
        ),
        valid("dtype_every_empty", "§8", "no elements of every dtype", every(&[3, 0], &|_| vec![])),
        valid(
            "dtype_every_float_bit",
            "§7.1",
            "quiet and signalling NaNs with payloads, -0.0 and subnormals",
            {
                let f32s = [0x7fc0_0001u32, 0xffa0_0000, 0x8000_0000, 1, 0x7f80_0000];
                let bytes: Vec<u8> = f32s.iter().flat_map(|bits| bits.to_le_bytes()).collect();
                let halves = [0x7e01u16, 0xfd00, 0x8000, 1].map(u16::to_le_bytes).concat();
                Draft::v1_2()
                    .with("f32", Item::dense(&[5], DType::F32, &bytes))
                    .with("f16", Item::dense(&[4], DType::F16, &halves))
                    .with("bf16", Item::dense(&[4], DType::BF16, &halves))
            },
        ),
        dtype("dtype_capital", "\"F32\"", "F32"),
        dtype("dtype_long_in_12", "\"float32\", the spelling of 1.0, in 1.2", "float32"),
        dtype("dtype_u4", "\"u4\"", "u4"),
        dtype("dtype_f8", "\"f8_e4m3fn\", a logical type, as a dtype", "f8_e4m3fn"),
        dtype("dtype_of_no_letters", "\"\"", ""),
    ]
}

fn logical() -> Vec<Case> {
    let codes: Vec<u8> = (0..=255).collect();
    let f8 = |name, about, kind| {
        let item = logical_dense(&[16, 16], DType::U8, kind, &codes);
        valid(name, "§7.2", about, Draft::v1_2().with("w", item))
    };
    let over = |name, about, dtype: DType, kind| {
        let bytes = vec![0; 16];
        let shape = [(16 / dtype.byte_len()) as u64];
        bad(name, "§7.2", about, "logical_type", logical_dense(&shape, dtype, kind, &bytes))
            .at("bad", Some("data"))
    };
    let tolerated = |name, about, item| {
        accepted(
            name,
            "§7.2",
            about,
            "an unknown logical type hides sizes, not bytes",
            Draft::v1_2().with("w", item),
        )
    };
    let pairs = le_f32(&[1.0, 2.0, 0.0, -1.0]);
    vec![
        f8("logical_f8_e4m3fn", "all 256 codes", "f8_e4m3fn"),
        f8("logical_f8_e5m2", "all 256 codes", "f8_e5m2"),
        f8("logical_f8_e4m3fnuz", "all 256 codes", "f8_e4m3fnuz"),
        f8("logical_f8_e5m2fnuz", "all 256 codes", "f8_e5m2fnuz"),
        f8("logical_f8_e8m0fnu", "all 256 codes", "f8_e8m0fnu"),
        valid(
            "logical_complex32",
            "§8",
            "two values of two f16",
            Draft::v1_2().with("w", logical_dense(&[2], DType::F16, "complex32", &pairs[..8])),
        ),
        valid(
            "logical_bcomplex32",
            "§8",
            "two values of two bf16",
            Draft::v1_2().with("w", logical_dense(&[2], DType::BF16, "bcomplex32", &pairs[..8])),
        ),
        valid(
            "logical_complex64",
            "§8",
            "two values of two elements",
            Draft::v1_2().with("w", logical_dense(&[2], DType::F32, "complex64", &pairs)),
        ),
        valid(
            "logical_complex128_scalar",
            "§8",
            "one value of two elements",
            Draft::v1_2().with("w", logical_dense(&[], DType::F64, "complex128", &[0; 16])),
        ),
        valid(
            "logical_complex64_none",
            "§8",
            "no values",
            Draft::v1_2().with("w", logical_dense(&[0, 7], DType::F32, "complex64", &[])),
        ),
        bad(
            "logical_complex64_elements_for_values",
            "§8",
            "a shape that counts elements, not values",
            "shape_size_mismatch",
            logical_dense(&[4], DType::F32, "complex64", &pairs),
        ),
        bad(
            "logical_complex64_half_a_value",
            "§8",
            "three elements of values of two",
            "shape_size_mismatch",
            logical_dense(&[2], DType::F32, "complex64", &pairs[..12]),
        ),
        over("logical_f8_over_i8", "f8_e4m3fn over i8", DType::I8, "f8_e4m3fn"),
        over("logical_f8_over_bool", "f8_e5m2 over bool", DType::Bool, "f8_e5m2"),
        over("logical_f8_over_f16", "f8_e5m2fnuz over f16", DType::F16, "f8_e5m2fnuz"),
        over("logical_f8_e8m0fnu_over_i8", "f8_e8m0fnu over i8", DType::I8, "f8_e8m0fnu"),
        over("logical_complex32_over_bf16", "complex32 over bf16", DType::BF16, "complex32"),
        over("logical_complex64_over_f64", "complex64 over f64", DType::F64, "complex64"),
        over("logical_complex128_over_f32", "complex128 over f32", DType::F32, "complex128"),
        accepted(
            "logical_is_the_dtype",
            "§7.2",
            "`type` equals `dtype`",
            "it says nothing",
            Draft::v1_2().with("w", logical_dense(&[4], DType::F32, "f32", &pairs)),
        ),
        tolerated(
            "logical_is_another_dtype",
            "`type` is a dtype, and not this one",
            logical_dense(&[4], DType::F32, "i32", &pairs),
        ),
        tolerated(
            "logical_of_no_letters",
            "`type` is the empty text",
            logical_dense(&[4], DType::F32, "", &pairs),
        ),
        tolerated(
            "logical_of_another_case",
            "`type` is \"Complex64\"",
            logical_dense(&[4], DType::F32, "Complex64", &pairs),
        ),
        tolerated(
            "logical_unknown_two_in_one",
            "an unknown type that packs two values into an element",
            logical_dense(&[4], DType::U8, "u4x2", &[0x21, 0x43]),
        ),
        tolerated(
            "logical_unknown_three_for_one",
            "an unknown type that takes three elements for a value",
            logical_dense(&[2], DType::U8, "rgb", &[0; 6]),
        ),
        bad(
            "logical_unknown_half_an_element",
            "§8",
            "an unknown type, and three bytes of elements of two",
            "shape_size_mismatch",
            logical_dense(&[1], DType::U16, "rgb", &[0; 3]),
        ),
    ]
}

fn sizes() -> Vec<Case> {
    let size = |name, about, shape: &[u64], len: usize| {
        let item = Item::dense(shape, DType::U16, &vec![0; len]);
        bad(name, "§8", about, "shape_size_mismatch", item).at("bad", Some("data"))
    };
    let empty = |name, about, shape: &[u64]| {
        valid(name, "§8", about, Draft::v1_2().with("w", Item::dense(shape, DType::U16, &[])))
    };
    vec![
        size("size_one_element_less", "five elements for a shape of six", &[2, 3], 10),
        size("size_one_element_more", "seven elements for a shape of six", &[2, 3], 14),
        size("size_half_an_element_more", "six elements and a half", &[2, 3], 13),
        size("size_none_of_six", "no bytes for a shape of six", &[2, 3], 0),
        size("size_two_of_none", "two bytes for a shape of none", &[2, 0], 2),
        size("size_scalar_of_none", "no bytes for a scalar", &[], 0),
        size(
            "size_2_63_elements",
            "2^63 elements of two bytes: 2^64 wraps to the 0 that are stored",
            &[1 << 63],
            0,
        ),
        size(
            "size_product_wraps_to_6",
            "a product that wraps to the six that are stored",
            &[u64::MAX, u64::MAX - 5],
            12,
        ),
        empty(
            "size_zero_extent_first",
            "an extent of 0 before a product beyond 2^64",
            &[0, 1 << 40, 1 << 40],
        ),
        empty(
            "size_zero_extent_last",
            "an extent of 0 after a product beyond 2^64",
            &[1 << 40, 1 << 40, 0],
        ),
        empty("size_zero_extent_between", "an extent of 0 between", &[u64::MAX, 0, u64::MAX]),
        bad(
            "size_of_an_unknown_format",
            "§8",
            "an unknown format, and three bytes of elements of two",
            "shape_size_mismatch",
            Item::new(&[1], "example.odd/1").part(Part::new("x", DType::U16, &[0; 3])),
        )
        .at("bad", Some("x")),
        bad(
            "size_of_an_unknown_role",
            "§8",
            "a second component of dense, of three bytes of elements of two",
            "shape_size_mismatch",
            Item::dense(&[1], DType::U8, &[0]).part(Part::new("x", DType::U16, &[0; 3])),
        )
        .at("bad", Some("x")),
    ]
}

fn bools() -> Vec<Case> {
    let value = |name, about, item: Item, role| {
        bad(name, "§7.1", about, "bool_value", item).stage(Stage::Verify).at("bad", Some(role))
    };
    let bool_part = |role: &str, bytes: &[u8]| Part::new(role, DType::Bool, bytes);
    vec![
        valid(
            "bool_0_and_1",
            "§7.1",
            "0 and 1",
            Draft::v1_2().with("w", Item::dense(&[2, 2], DType::Bool, &[0, 1, 1, 0])),
        ),
        value(
            "bool_255",
            "the last byte is 255",
            Item::dense(&[4], DType::Bool, &[0, 1, 1, 255]),
            "data",
        ),
        value(
            "bool_2_zstd",
            "a byte of 2 in a zstd component",
            {
                let content = [0, 2, 1];
                Item::new(&[3], "dense").part(bool_part("data", &content).frames(frame(&content)))
            },
            "data",
        ),
        value(
            "bool_2_of_csr_values",
            "a value of 2 in a sparse object",
            Item::csr(&[1, 2], &[2], &[0], &[0, 1]).replace(bool_part("values", &[2])),
            "values",
        ),
        value(
            "bool_2_of_an_unknown_format",
            "a byte of 2 in an unknown format",
            Item::new(&[1], "example.mask/1").part(bool_part("mask", &[2])),
            "mask",
        ),
        valid("bool_values_of_csr", "§7.1", "values of 0 and 1 in a sparse object", {
            let item = Item::csr(&[1, 3], &[0, 1], &[0, 2], &[0, 2]);
            Draft::v1_2().with("w", item.replace(bool_part("values", &[0, 1])))
        }),
    ]
}
