//! `zt.planes/1`. Spec: formats/zt.planes.

use zt::{Attributes, DType, Value};

use super::attributes::map;
use super::{Case, bad, valid};
use crate::draft::{Draft, Item, Part};
use crate::frames::repeated_frame;

const PLANES: &str = "formats/zt.planes";
pub(super) const PLANES_2: &str = "formats/zt.planes-2";
const FORMAT: &str = "zt.planes/1";

pub(super) fn cases() -> Vec<Case> {
    [right(), attributes(), planes()].concat()
}

pub(super) fn typed(dtype: &str, logical_type: Option<&str>) -> Attributes {
    let pairs = [("dtype", Some(dtype)), ("type", logical_type)];
    map(pairs.into_iter().filter_map(|(key, value)| Some((key.into(), value?.into()))))
}

pub(super) fn plane(at: usize, bytes: &[u8]) -> Part {
    Part::new(&format!("plane{at}"), DType::U8, bytes)
}

/// The elements with these bits, of `width` bytes each, split as the page says and not as our code
/// does it: bit by bit.
pub(super) fn split(width: usize, elements: &[u64]) -> Vec<Vec<u8>> {
    let bits = 8 * width;
    let byte = |element: u64, plane: usize| {
        let of_plane = (0..8).map(|at| {
            // Counted from the top of the rotated element; the bit was one place lower.
            let from_top = 8 * plane + at;
            (element >> ((2 * bits - 2 - from_top) % bits)) & 1
        });
        of_plane.fold(0u8, |byte, bit| (byte << 1) | u8::from(bit == 1))
    };
    let of = |plane| elements.iter().map(|element| byte(*element, plane)).collect();
    (0..width).map(of).collect()
}

fn item(shape: &[u64], attributes: Attributes, width: usize, elements: &[u64]) -> Item {
    let item = Item::new(shape, FORMAT).attributes(attributes);
    let planes = split(width, elements).into_iter().enumerate();
    planes.fold(item, |item, (at, bytes)| item.part(plane(at, &bytes)))
}

/// Ones, zeros of both signs, the smallest and largest numbers, infinities, and NaNs whose sign and
/// payload have to arrive.
const F16: [u64; 10] =
    [0x3c00, 0xbc00, 0x0000, 0x8000, 0x0001, 0x83ff, 0x7bff, 0xfc00, 0x7e01, 0xfdab];
pub(super) const BF16: [u64; 10] =
    [0x3f80, 0xbf80, 0x0000, 0x8000, 0x0001, 0x807f, 0x7f7f, 0xff80, 0x7fc1, 0xffab];
pub(super) const F32: [u64; 10] = [
    0x3f80_0000,
    0xbf80_0000,
    0,
    0x8000_0000,
    1,
    0x807f_ffff,
    0x7f7f_ffff,
    0xff80_0000,
    0x7fc0_1234,
    0xffab_cdef,
];
const F64: [u64; 10] = [
    0x3ff0_0000_0000_0000,
    0xbff0_0000_0000_0000,
    0,
    0x8000_0000_0000_0000,
    1,
    0x800f_ffff_ffff_ffff,
    0x7fef_ffff_ffff_ffff,
    0xfff0_0000_0000_0000,
    0x7ff8_0123_4567_89ab,
    0xfffa_bcde_f012_3456,
];

fn right() -> Vec<Case> {
    let right = |name, about, item| valid(name, PLANES, about, Draft::v1_2().with("w", item));
    let of = |dtype, width, elements: &[u64]| item(&[2, 5], typed(dtype, None), width, elements);
    let rest: Vec<u8> = (0..300u32).map(|at| ((at * at) >> 3).to_le_bytes()[0]).collect();
    vec![
        right("planes_f16", "every kind of f16", of("f16", 2, &F16)),
        right("planes_bf16", "every kind of bf16", of("bf16", 2, &BF16)),
        right("planes_f32", "every kind of f32", of("f32", 4, &F32)),
        right("planes_f64", "every kind of f64", of("f64", 8, &F64)),
        right(
            "planes_complex64",
            "five pairs of f32",
            item(&[5], typed("f32", Some("complex64")), 4, &F32),
        ),
        right(
            "planes_complex128",
            "five pairs of f64",
            item(&[5], typed("f64", Some("complex128")), 8, &F64),
        ),
        right(
            "planes_type_repeats_the_dtype",
            "a type that says no more than the dtype",
            item(&[10], typed("f32", Some("f32")), 4, &F32),
        ),
        right(
            "planes_unknown_type",
            "a type that nobody knows: as many bytes as in the first plane",
            item(&[3], typed("f32", Some("example.fixed")), 4, &F32),
        ),
        right(
            "planes_of_no_elements",
            "no elements, no bytes",
            item(&[0, 4], typed("bf16", None), 2, &[]),
        ),
        right("planes_scalar", "a scalar", item(&[], typed("f64", None), 8, &F64[9..])),
        right(
            "planes_zstd_and_raw",
            "exponents compressed, the rest raw",
            Item::new(&[300], FORMAT)
                .attributes(typed("bf16", None))
                .part(plane(0, &[0x7f; 300]).frames(repeated_frame(0x7f, 300)))
                .part(plane(1, &rest)),
        ),
        right(
            "planes_more_than_needed",
            "a role and an attribute that the page does not name",
            item(&[10], typed("bf16", None), 2, &BF16)
                .part(plane(2, b"other"))
                .attributes(map([("dtype".into(), "bf16".into()), ("note".into(), "mine".into())])),
        ),
    ]
}

fn attributes() -> Vec<Case> {
    let with = |attributes| item(&[10], attributes, 4, &F32);
    let wrong = |name, about, code, attributes| bad(name, PLANES, about, code, with(attributes));
    let pair = |key: &str, value: Value| map([(key.into(), value)]);
    vec![
        wrong("planes_no_dtype", "no attribute `dtype`", "attribute", pair("note", "mine".into())),
        wrong(
            "planes_dtype_is_a_number",
            "a `dtype` that is no text",
            "attribute",
            pair("dtype", 32u64.into()),
        ),
        wrong(
            "planes_dtype_of_integers",
            "integers have no exponent",
            "attribute",
            typed("i32", None),
        ),
        wrong("planes_dtype_unknown", "a dtype that is none", "attribute", typed("float32", None)),
        wrong(
            "planes_dtype_fp8",
            "a logical type for a dtype",
            "attribute",
            typed("f8_e4m3fn", None),
        ),
        wrong(
            "planes_type_is_a_number",
            "a `type` that is no text",
            "attribute",
            map([("dtype".into(), "f32".into()), ("type".into(), 64u64.into())]),
        ),
        wrong(
            "planes_type_over_another_dtype",
            "complex128 over f32",
            "logical_type",
            typed("f32", Some("complex128")),
        ),
    ]
}

fn planes() -> Vec<Case> {
    let wrong =
        |name, about, code, item: Item, role| bad(name, PLANES, about, code, item).at("bad", role);
    let small = |shape: &[u64]| item(shape, typed("bf16", None), 2, &BF16);
    let only = |at: usize| {
        let planes = split(2, &BF16);
        Item::new(&[10], FORMAT).attributes(typed("bf16", None)).part(plane(at, &planes[at]))
    };
    vec![
        wrong(
            "planes_without_the_first",
            "no `plane0`",
            "missing_component",
            only(1),
            Some("plane0"),
        ),
        wrong(
            "planes_without_the_last",
            "no `plane1`",
            "missing_component",
            only(0),
            Some("plane1"),
        ),
        wrong(
            "planes_of_i8",
            "a plane of signed bytes",
            "dtype",
            small(&[10]).change("plane1", |mut part| {
                part.dtype = Some(DType::I8);
                part
            }),
            Some("plane1"),
        ),
        wrong(
            "planes_of_u16",
            "a plane of wider elements",
            "dtype",
            small(&[10]).change("plane0", |mut part| {
                part.dtype = Some(DType::U16);
                part
            }),
            Some("plane0"),
        ),
        wrong(
            "planes_of_fp8",
            "a plane of numbers",
            "logical_type",
            small(&[10]).change("plane1", |part| part.logical("f8_e5m2")),
            Some("plane1"),
        ),
        wrong(
            "planes_shorter_than_the_shape",
            "ten elements for a shape of eleven",
            "shape_size_mismatch",
            small(&[11]),
            Some("plane0"),
        ),
        wrong(
            "planes_of_two_lengths",
            "a second plane of nine bytes",
            "shape_size_mismatch",
            only(0).part(plane(1, &[0; 9])),
            Some("plane1"),
        ),
        wrong(
            "planes_half_a_pair",
            "ten elements for ten complex values",
            "shape_size_mismatch",
            item(&[10], typed("f32", Some("complex64")), 4, &F32),
            Some("plane0"),
        ),
        wrong(
            "planes_unknown_type_two_lengths",
            "planes that disagree where the shape does not tell",
            "shape_size_mismatch",
            Item::new(&[3], FORMAT)
                .attributes(typed("bf16", Some("example.fixed")))
                .part(plane(0, &[0; 6]))
                .part(plane(1, &[0; 5])),
            Some("plane1"),
        ),
        wrong(
            "planes_shape_overflows",
            "more elements than 64 bits count",
            "shape_size_mismatch",
            small(&[1 << 32, 1 << 33]),
            Some("plane0"),
        ),
    ]
}
