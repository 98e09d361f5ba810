//! Values of less than a byte. Spec: formats/packed.

use zt::DType;

use super::{Case, bad, valid};
use crate::draft::{Draft, Item, Part};
use crate::frames::repeated_frame;

const PACKED: &str = "formats/packed";

/// The types and their bits, as the page lists them.
const TYPES: [(&str, &str, u64); 7] = [
    ("packed_f4_e2m1fn", "zt.f4_e2m1fn/1", 4),
    ("packed_f6_e2m3fn", "zt.f6_e2m3fn/1", 6),
    ("packed_f6_e3m2fn", "zt.f6_e3m2fn/1", 6),
    ("packed_i4", "zt.i4/1", 4),
    ("packed_u4", "zt.u4/1", 4),
    ("packed_i2", "zt.i2/1", 2),
    ("packed_u2", "zt.u2/1", 2),
];

pub(super) fn cases() -> Vec<Case> {
    [right(), sizes(), data()].concat()
}

fn item(shape: &[u64], format: &str, bytes: &[u8]) -> Item {
    Item::new(shape, format).part(Part::new("data", DType::U8, bytes))
}

fn right() -> Vec<Case> {
    let right = |name, about, item| valid(name, PACKED, about, Draft::v1_2().with("w", item));
    let mut cases: Vec<Case> = TYPES
        .into_iter()
        .map(|(name, format, bits)| {
            // Every code once, from the lowest bits on.
            let mut bytes = vec![0; (1 << bits) * bits as usize / 8];
            for at in 0..(1usize << bits) * bits as usize {
                let (code, bit) = (at / bits as usize, at % bits as usize);
                bytes[at / 8] |= ((code >> bit & 1) as u8) << (at % 8);
            }
            right(name, "every code", item(&[1 << bits], format, &bytes))
        })
        .collect();
    let format = "zt.i4/1";
    cases.extend([
        right(
            "packed_rows_within_bytes",
            "rows of three values of four bits",
            item(&[2, 3], format, &[0x21, 0xf7, 0x98]),
        ),
        right(
            "packed_last_byte_in_part",
            "an odd number of values",
            item(&[3], format, &[0x21, 0x07]),
        ),
        right(
            "packed_unused_bits",
            "unused bits that are not 0",
            item(&[3], format, &[0x21, 0xf7]),
        ),
        right("packed_scalar", "one value", item(&[], format, &[0x0f])),
        right("packed_of_no_values", "no values, no bytes", item(&[0, 3], format, &[])),
        right(
            "packed_zstd",
            "compressed",
            Item::new(&[600], format)
                .part(Part::new("data", DType::U8, &[0x21; 300]).frames(repeated_frame(0x21, 300))),
        ),
        right(
            "packed_more_than_needed",
            "a role that the page does not name",
            item(&[2], format, &[0x21]).part(Part::new("note", DType::U8, b"mine")),
        ),
    ]);
    cases
}

fn sizes() -> Vec<Case> {
    let size = |name, about, item| {
        bad(name, PACKED, about, "shape_size_mismatch", item).at("bad", Some("data"))
    };
    vec![
        size(
            "packed_a_byte_for_each_value",
            "values that are not packed",
            item(&[4], "zt.u4/1", &[1, 2, 3, 4]),
        ),
        size(
            "packed_a_byte_too_few",
            "five values of four bits in two bytes",
            item(&[5], "zt.i4/1", &[0x21, 0x43]),
        ),
        size(
            "packed_rows_padded",
            "rows of three values in two bytes each",
            item(&[2, 3], "zt.i4/1", &[0x21, 0x07, 0x8f, 0x09]),
        ),
        size(
            "packed_more_values_than_64_bits",
            "2^64 values",
            item(&[1 << 32, 1 << 32], "zt.u2/1", &[]),
        ),
    ]
}

fn data() -> Vec<Case> {
    let wrong = |name, about, code, item| bad(name, PACKED, about, code, item);
    let part = Part::new("data", DType::U8, &[0x21]);
    vec![
        wrong(
            "packed_without_data",
            "no component",
            "missing_component",
            Item::new(&[2], "zt.f4_e2m1fn/1"),
        ),
        wrong(
            "packed_in_i8",
            "bytes as i8",
            "dtype",
            Item::new(&[2], "zt.i4/1").part(Part::new("data", DType::I8, &[0x21])),
        )
        .at("bad", Some("data")),
        wrong(
            "packed_with_a_logical_type",
            "bytes of FP8",
            "logical_type",
            Item::new(&[2], "zt.f4_e2m1fn/1").part(part.logical("f8_e5m2")),
        )
        .at("bad", Some("data")),
    ]
}
