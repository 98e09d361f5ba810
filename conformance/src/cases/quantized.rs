//! `quantized_group` and `quantized_4bit`. Spec: formats/quantized_group, formats/quantized_4bit.

use zt::{DType, Value};

use super::attributes::map;
use super::{Case, accepted, bad, faulty, valid};
use crate::draft::{Draft, Item, Part, le_f32};

const GROUP: &str = "formats/quantized_group";
const FOUR: &str = "formats/quantized_4bit";

pub(super) fn cases() -> Vec<Case> {
    [group(), attributes(), four_bits()].concat()
}

/// `shape` of elements of `bits`, packed into words of `dtype`.
fn item(
    shape: &[u64],
    bits: u64,
    group_size: u64,
    packing: &str,
    words: Part,
    groups: usize,
) -> Item {
    let attributes = map([
        ("bits".into(), bits.into()),
        ("group_size".into(), group_size.into()),
        ("packing".into(), packing.into()),
    ]);
    let scales: Vec<f32> = (0u8..).take(groups).map(|at| 0.5 + f32::from(at)).collect();
    Item::new(shape, "quantized_group").attributes(attributes).part(words).part(Part::new(
        "scales",
        DType::F32,
        &le_f32(&scales),
    ))
}

fn words(dtype: DType, count: usize) -> Part {
    let bytes: Vec<u8> =
        (0..).map(|at: u8| at.wrapping_mul(37)).take(count * dtype.byte_len()).collect();
    Part::new("packed_weight", dtype, &bytes)
}

/// Sixteen elements of four bits in two words, in two groups of eight.
fn small() -> Item {
    item(&[2, 8], 4, 8, "8_per_i32", words(DType::I32, 2), 2)
}

fn zeros(dtype: DType, count: usize) -> Part {
    Part::new("zeros", dtype, &vec![0; count * dtype.byte_len()])
}

/// `small`, with this attribute instead.
fn with(key: &str, value: impl Into<Value>) -> Item {
    let item = small();
    let mut attributes = item.attributes.clone().expect("attributes");
    attributes.insert(key, value);
    item.attributes(attributes)
}

fn group() -> Vec<Case> {
    let right = |name, about, item| valid(name, GROUP, about, Draft::v1_2().with("w", item));
    let size = |name, about, item: Item, role| {
        bad(name, GROUP, about, "shape_size_mismatch", item).at("bad", role)
    };
    let wrong = |name, about, code, item: Item| bad(name, GROUP, about, code, item);
    vec![
        right("group_small", "two groups of eight, eight to a word", small()),
        right("group_zeros_u8", "zeros of u8", small().part(zeros(DType::U8, 2))),
        right("group_zeros_f16", "zeros of f16", small().part(zeros(DType::F16, 2))),
        right(
            "group_3_bits",
            "ten elements of three bits to a word, the last word part empty",
            item(&[33], 3, 11, "10_per_u32", words(DType::U32, 4), 3),
        ),
        right(
            "group_1_bit",
            "eight to a byte",
            item(&[17], 1, 32, "8_per_u8", words(DType::U8, 3), 1),
        ),
        right(
            "group_last_one_short",
            "a last group of one element",
            item(&[17], 8, 8, "1_per_i8", words(DType::I8, 17), 3),
        ),
        right(
            "group_larger_than_the_tensor",
            "one group that the tensor does not fill",
            item(&[3], 4, 128, "2_per_u8", words(DType::U8, 2), 1),
        ),
        right(
            "group_across_rows",
            "groups of six over rows of four",
            item(&[3, 4], 4, 6, "2_per_u8", words(DType::U8, 6), 2),
        ),
        right(
            "group_of_no_elements",
            "no elements, no words, no groups",
            item(&[0, 8], 4, 8, "8_per_i32", words(DType::I32, 0), 0),
        ),
        right(
            "group_scalar",
            "a scalar: one word, one group",
            item(&[], 4, 8, "8_per_i32", words(DType::I32, 1), 1),
        ),
        right(
            "group_16_per_u64",
            "sixteen to a word of eight bytes",
            item(&[32], 4, 32, "16_per_u64", words(DType::U64, 2), 1),
        ),
        right(
            "group_fewer_than_fit",
            "four elements of four bits to a word of 32",
            item(&[8], 4, 8, "4_per_i32", words(DType::I32, 2), 1),
        ),
        size(
            "group_one_word_more",
            "three words for sixteen elements",
            item(&[2, 8], 4, 8, "8_per_i32", words(DType::I32, 3), 2),
            Some("packed_weight"),
        ),
        size(
            "group_one_word_less",
            "one word for sixteen elements",
            item(&[2, 8], 4, 8, "8_per_i32", words(DType::I32, 1), 2),
            Some("packed_weight"),
        ),
        size(
            "group_one_scale_less",
            "one scale for two groups",
            item(&[2, 8], 4, 8, "8_per_i32", words(DType::I32, 2), 1),
            Some("scales"),
        ),
        size(
            "group_one_zero_more",
            "three zeros for two groups",
            small().part(zeros(DType::U8, 3)),
            Some("zeros"),
        ),
        size(
            "group_overflow",
            "2^64 elements",
            item(&[1 << 32, 1 << 32], 4, 8, "8_per_i32", words(DType::I32, 0), 0),
            Some("packed_weight"),
        ),
        wrong("group_without_scales", "no `scales`", "missing_component", {
            let mut item = small();
            item.parts.truncate(1);
            item
        }),
        wrong("group_without_packed_weight", "no `packed_weight`", "missing_component", {
            let mut item = small();
            item.parts.remove(0);
            item
        }),
        wrong(
            "group_scales_i32",
            "scales of i32",
            "dtype",
            small().replace(Part::new("scales", DType::I32, &[0; 8])),
        ),
        wrong(
            "group_words_of_another_dtype",
            "the packing says i32, the words are u32",
            "attribute",
            small().replace(words(DType::U32, 2)),
        )
        .also(&["dtype"]),
    ]
}

fn attributes() -> Vec<Case> {
    let right = |name, about, item| valid(name, GROUP, about, Draft::v1_2().with("w", item));
    let wrong = |name, about, item: Item| bad(name, GROUP, about, "attribute", item);
    let without = |key: &str| {
        let item = small();
        let mut attributes = item.attributes.clone().expect("attributes");
        attributes.remove(key);
        item.attributes(attributes)
    };
    vec![
        right("group_signed", "`signed` is true", with("signed", true)),
        right(
            "group_additive",
            "`zero_kind` is additive",
            with("zero_kind", "additive").part(zeros(DType::F32, 2)),
        ),
        right(
            "group_subtractive",
            "`zero_kind` is subtractive, the default",
            with("zero_kind", "subtractive"),
        ),
        right(
            "group_unknown_attribute",
            "an attribute that the format does not know",
            with("method", "gptq"),
        ),
        wrong("group_no_attributes", "no attributes at all", {
            let mut item = small();
            item.attributes = None;
            item
        }),
        wrong("group_no_bits", "no `bits`", without("bits")),
        wrong("group_no_packing", "no `packing`", without("packing")),
        wrong("group_bits_0", "`bits` is 0", with("bits", 0u64)),
        wrong("group_bits_33", "`bits` is 33", with("bits", 33u64)),
        wrong("group_bits_float", "`bits` is 4.0", with("bits", 4.0)),
        wrong("group_bits_text", "`bits` is a text", with("bits", "4")),
        wrong("group_size_0", "`group_size` is 0", with("group_size", 0u64)),
        wrong("group_size_minus_2", "`group_size` is -2", with("group_size", -2i64)),
        accepted(
            "group_size_minus_1",
            GROUP,
            "`group_size` is -1",
            "GPTQ means one group for each row, and ztensor 1.2.3 wrote it",
            Draft::v1_2().with("w", with("group_size", -1i64)),
        ),
        wrong(
            "group_packing_too_many",
            "nine elements of four bits to a word of 32",
            with("packing", "9_per_i32"),
        ),
        wrong("group_packing_0", "no elements to a word", with("packing", "0_per_i32")),
        wrong("group_packing_leading_zero", "\"08_per_i32\"", with("packing", "08_per_i32")),
        wrong("group_packing_float", "words of f32", with("packing", "8_per_f32")),
        wrong("group_packing_bool", "words of bool", with("packing", "1_per_bool")),
        wrong("group_packing_capital", "\"8_PER_i32\"", with("packing", "8_PER_i32")),
        wrong("group_packing_number", "`packing` is a number", with("packing", 8u64)),
        wrong("group_signed_number", "`signed` is 1", with("signed", 1u64)),
        wrong(
            "group_zero_kind_unknown",
            "`zero_kind` is a word that nobody defined",
            with("zero_kind", "multiplicative"),
        ),
        wrong("group_zero_kind_bool", "`zero_kind` is true", with("zero_kind", true)),
    ]
}

fn four_bits() -> Vec<Case> {
    let data = |len: usize| Part::new("data", DType::U8, &vec![0x21; len]);
    let floats = |role: &str, rows: usize| Part::new(role, DType::F32, &le_f32(&vec![0.5; rows]));
    let item = |shape: &[u64], bytes: usize, rows: usize| {
        let parts = [data(bytes), floats("scale", rows), floats("zero_point", rows)];
        parts.into_iter().fold(Item::new(shape, "quantized_4bit"), Item::part)
    };
    // 1.0 has no dtype for the roles that it does not define.
    let old = |item: Item| {
        let untyped = |part: Part| part.untyped();
        item.change("scale", untyped).change("zero_point", untyped)
    };
    let size = |name, about, item: Item, role| {
        bad(name, FOUR, about, "shape_size_mismatch", item).at("bad", Some(role))
    };
    vec![
        valid(
            "four_bits_12",
            FOUR,
            "two rows of three elements, in 1.2",
            Draft::v1_2().with("w", item(&[2, 3], 3, 2)),
        ),
        valid(
            "four_bits_10",
            FOUR,
            "two rows of three elements, in 1.0: scales and zeros have no dtype",
            Draft::v1_0().with("w", old(item(&[2, 3], 3, 2))),
        ),
        valid(
            "four_bits_odd",
            FOUR,
            "seven elements in four bytes",
            Draft::v1_2().with("w", item(&[1, 7], 4, 1)),
        ),
        valid("four_bits_zero_points_u8", FOUR, "zero points of u8", {
            Draft::v1_2()
                .with("w", item(&[2, 3], 3, 2).replace(Part::new("zero_point", DType::U8, &[8, 8])))
        }),
        size("four_bits_one_byte_more", "four bytes for six elements", item(&[2, 3], 4, 2), "data"),
        size(
            "four_bits_one_byte_less",
            "three bytes for seven elements",
            item(&[1, 7], 3, 1),
            "data",
        ),
        size(
            "four_bits_one_scale_more",
            "three scales for two rows",
            item(&[2, 3], 3, 2).replace(floats("scale", 3)),
            "scale",
        ),
        bad("four_bits_without_zero_point", FOUR, "no `zero_point`", "missing_component", {
            let mut item = item(&[2, 3], 3, 2);
            item.parts.truncate(2);
            item
        }),
        faulty(
            "four_bits_10_one_byte_less",
            FOUR,
            "three bytes for seven elements, in 1.0",
            "shape_size_mismatch",
            Draft::v1_0().with("bad", old(item(&[1, 7], 3, 1))),
        )
        .at("bad", Some("data")),
    ]
}
