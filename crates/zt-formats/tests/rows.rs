//! Objects whose rows cannot be read without the others.

// Clippy takes only the tests themselves for tests.
#![allow(clippy::unwrap_used)]

use zt_formats::{ComponentSignature, Registry, Signature};
use zt_manifest::{Attributes, DType, Value};

/// Four-bit values in groups of `group_size`, eight in a word.
fn attributes(group_size: u64) -> Attributes {
    let attributes = [
        ("bits", Value::from(4u64)),
        ("group_size", Value::from(group_size)),
        ("packing", Value::from("8_per_u32")),
    ];
    attributes.into_iter().collect()
}

/// The row unit of `quantized_group`, and the length of its words.
fn rows(
    shape: &[u64],
    attributes: &Attributes,
    logical_types: [Option<&str>; 2],
) -> (Option<u64>, Option<u64>) {
    let [packed, scales] = logical_types;
    let component = |role, dtype, logical_type| ComponentSignature {
        role,
        dtype: Some(dtype),
        logical_type,
        byte_len: None,
    };
    let signature = Signature {
        shape,
        attributes,
        components: vec![
            component("packed_weight", DType::U32, packed),
            component("scales", DType::F32, scales),
        ],
    };
    let registry = Registry::builtin();
    let format = registry.format("quantized_group").unwrap();
    let unit = format.row_unit(&signature, &registry);
    let len = format.expected_len("packed_weight", &signature, &registry);
    (unit, len)
}

#[test]
fn values_of_an_unknown_type_have_no_known_rows() {
    let shape = [6, 12];
    let known = rows(&shape, &attributes(8), [None, None]);
    assert_eq!(known, (Some(2), Some(36)));
    for logical_types in [[Some("acme.u4x8"), None], [None, Some("acme.log2")]] {
        let unknown = rows(&shape, &attributes(8), logical_types);
        assert_eq!(unknown, (None, None), "{logical_types:?}");
    }
}

#[test]
fn sizes_that_overflow_have_no_rows() {
    let eights = attributes(8);
    // First the elements of all rows overflow, then the elements of one row.
    for shape in [&[1 << 32, 1 << 32][..], &[2, 1 << 32, 1 << 32]] {
        assert_eq!(rows(shape, &eights, [None, None]), (None, None));
    }
    // No rows, each too long to count: words of no bytes.
    let empty = [0, 1 << 32, 1 << 32];
    assert_eq!(rows(&empty, &eights, [None, None]), (None, Some(0)));
    // The largest group size that is valid for one row, and the first that is not.
    let most = i32::MAX.unsigned_abs().into();
    let unit = |size| rows(&[4, 8], &attributes(size), [None, None]).0;
    assert_eq!((unit(most), unit(most + 1)), (Some(most), None));
}

#[test]
fn rows_whose_rules_are_broken_are_not_cut() {
    for name in ["bits", "group_size", "packing"] {
        let mut attributes = attributes(8);
        attributes.remove(name).unwrap();
        let found = rows(&[4, 8], &attributes, [None, None]);
        assert_eq!(found, (None, None), "without {name}");
    }
    assert_eq!(rows(&[4, 8], &attributes(0), [None, None]), (None, None));
}
