//! `zt.planes/2`. Spec: formats/zt.planes-2.

use zt::DType;

use super::planes::{BF16, F32, PLANES_2, plane, split, typed};
use super::{Case, Stage, bad, valid};
use crate::draft::{Draft, Item, Part};

const FORMAT: &str = "zt.planes/2";

pub(super) fn cases() -> Vec<Case> {
    [right(), components(), chunks()].concat()
}

fn codes(bytes: &[u8]) -> Part {
    Part::new("codes", DType::U8, bytes)
}

fn lengths(lengths: &[u32]) -> Part {
    let bytes: Vec<u8> = lengths.iter().flat_map(|len| len.to_le_bytes()).collect();
    Part::new("lengths", DType::U32, &bytes)
}

/// An object of one chunk, or of none, and of the bytes of the other planes.
fn item(shape: &[u64], chunk: &[u8], others: &[Vec<u8>]) -> Item {
    let dtype = if others.len() == 1 { "bf16" } else { "f32" };
    let of_chunk = Some(chunk.len() as u32).filter(|len| *len > 0);
    let item = Item::new(shape, FORMAT).attributes(typed(dtype, None));
    let item = item.part(codes(chunk)).part(lengths(of_chunk.as_slice()));
    let others = others.iter().enumerate();
    others.fold(item, |item, (at, bytes)| item.part(plane(at + 1, bytes)))
}

/// The elements, with plane 0 as it is.
fn raw(shape: &[u64], width: usize, elements: &[u64]) -> Item {
    let planes = split(width, elements);
    item(shape, &[&[0], &planes[0][..]].concat(), &planes[1..])
}

/// The chunk of the page's example.
fn streams() -> Vec<u8> {
    let mut chunk = [0; 141];
    (chunk[0], chunk[0x3f], chunk[0x40]) = (2, 0x20, 0x12);
    for at in [129, 133, 137] {
        chunk[at] = 12;
    }
    [&chunk[..], &[0x1c, 0xc7, 0x71].repeat(16), &[0; 8]].concat()
}

fn mantissas(count: u64) -> Vec<u8> {
    (0..count).map(|at| ((at * at) >> 3).to_le_bytes()[0]).collect()
}

fn right() -> Vec<Case> {
    let right = |name, about, item| valid(name, PLANES_2, about, Draft::v1_2().with("w", item));
    let one = |count: u64| item(&[count], &[1, 0x7f], &[mantissas(count)]);
    vec![
        right("coded_planes_raw_bf16", "symbols that are not coded", raw(&[2, 5], 2, &BF16)),
        right("coded_planes_raw_f32", "the same for four planes", raw(&[10], 4, &F32)),
        right("coded_planes_one_symbol", "all exponents are equal", one(300)),
        right(
            "coded_planes_streams",
            "four streams of codes",
            item(&[4, 64], &streams(), &[mantissas(256)]),
        ),
        right("coded_planes_of_no_elements", "no chunk", item(&[0, 4], &[], &[vec![]])),
        right(
            "coded_planes_complex64",
            "five pairs of f32",
            raw(&[5], 4, &F32).attributes(typed("f32", Some("complex64"))),
        ),
        right(
            "coded_planes_unknown_type",
            "an unknown type: as many bytes as in `plane1`",
            raw(&[3], 4, &F32).attributes(typed("f32", Some("example.fixed"))),
        ),
    ]
}

fn components() -> Vec<Case> {
    let wrong = |name, about, code, item: Item, role: &str| {
        bad(name, PLANES_2, about, code, item).at("bad", Some(role))
    };
    let small = || raw(&[10], 2, &BF16);
    let without = |role: &str| {
        let mut item = small();
        item.parts.retain(|part| part.role != role);
        item
    };
    let missing = |name, role: &str| {
        wrong(name, "a role is missing", "missing_component", without(role), role)
    };
    vec![
        missing("coded_planes_without_codes", "codes"),
        missing("coded_planes_without_lengths", "lengths"),
        missing("coded_planes_without_the_last", "plane1"),
        wrong(
            "coded_planes_codes_of_u32",
            "codes of wider elements",
            "dtype",
            small().change("codes", |mut part| {
                part.dtype = Some(DType::I8);
                part
            }),
            "codes",
        ),
        wrong(
            "coded_planes_lengths_of_i32",
            "lengths with a sign",
            "dtype",
            small().change("lengths", |mut part| {
                part.dtype = Some(DType::I32);
                part
            }),
            "lengths",
        ),
        wrong(
            "coded_planes_two_lengths",
            "two lengths for one chunk",
            "shape_size_mismatch",
            without("lengths").part(lengths(&[2, 9])),
            "lengths",
        ),
        wrong(
            "coded_planes_shorter_than_the_shape",
            "ten elements for a shape of eleven",
            "shape_size_mismatch",
            raw(&[11], 2, &BF16),
            "plane1",
        ),
    ]
}

fn chunks() -> Vec<Case> {
    let wrong = |name, about, code, item: Item, role: &str| {
        let case = bad(name, PLANES_2, about, code, item).at("bad", Some(role));
        case.stage(Stage::Verify)
    };
    let with = |name, about, chunk: &[u8]| {
        wrong(name, about, "huffman", item(&[256], chunk, &[mantissas(256)]), "codes")
    };
    let changed = |at: usize, byte: u8| {
        let mut chunk = streams();
        chunk[at] = byte;
        chunk
    };
    let end = streams().len() - 1;
    let raw = [&[0][..], &[0x7f; 255]].concat();
    let long = [&streams()[..], &[0; 61]].concat();
    vec![
        with("coded_planes_kind_3", "an unknown kind", &changed(0, 3)),
        with("coded_planes_raw_too_short", "a symbol is missing", &raw),
        with("coded_planes_code_not_complete", "bits that begin no code", &changed(0x40, 0x02)),
        with("coded_planes_codes_too_many", "bits that begin two codes", &changed(0x40, 0x11)),
        with("coded_planes_code_of_12_bits", "a code that is too long", &changed(0x40, 0xc2)),
        with("coded_planes_stream_too_short", "a stream of a byte less", &changed(129, 11)),
        with("coded_planes_streams_too_long", "streams beyond the chunk", &changed(131, 1)),
        with("coded_planes_padding", "padding that is not zero", &changed(end, 1)),
        wrong(
            "coded_planes_chunk_too_long",
            "a chunk that is longer than its symbols",
            "huffman",
            item(&[256], &long, &[mantissas(256)]),
            "lengths",
        ),
        wrong(
            "coded_planes_more_codes_than_lengths",
            "a byte behind the last chunk",
            "shape_size_mismatch",
            item(&[256], &[1, 7], &[mantissas(256)]).change("codes", |_| codes(&[1, 7, 0])),
            "codes",
        ),
    ]
}
