//! Attributes of the file and of objects: everything that CBOR can say. Spec: §10.

use zt::{Attributes, Value};

use super::{Case, good, valid};
use crate::cbor::{self, uint};
use crate::draft::Draft;

/// A map of those pairs.
pub(super) fn map(pairs: impl IntoIterator<Item = (Value, Value)>) -> Attributes {
    let mut map = Attributes::new();
    for (key, value) in pairs {
        map.insert(key, value);
    }
    map
}

pub(super) fn cases() -> Vec<Case> {
    let of_file = |name, about, value: Value| {
        let attributes = map([(Value::from("k"), value)]);
        valid(name, "§10", about, Draft::v1_2().with("w", good()).attributes(attributes))
    };
    let tag = |number, value| Value::Tag(number, Box::new(value));
    let float = |value| Value::Float(value);
    vec![
        of_file(
            "attributes_integers_at_every_width",
            "the last of each width of an argument, and the next",
            {
                let borders =
                    [23, 24, 0xff, 0x100, 0xffff, 0x1_0000, u64::from(u32::MAX), 1 << 32, u64::MAX];
                Value::array(
                    borders
                        .into_iter()
                        .flat_map(|n| [Value::Unsigned(n), Value::Negative(n)])
                        .collect(),
                )
            },
        ),
        of_file(
            "attributes_floats_by_width",
            "floats that fit two, four and eight bytes, and negative zero",
            {
                let floats =
                    [1.5, 65_504.0, 65_536.0, 5.960_464_477_539_063e-8, 0.1, 1e300, 5e-324, -0.0];
                Value::array(floats.map(float).to_vec())
            },
        ),
        of_file(
            "attributes_not_finite",
            "NaN and both infinities",
            Value::array([f64::NAN, f64::INFINITY, f64::NEG_INFINITY].map(float).to_vec()),
        ),
        of_file(
            "attributes_tags_of_tags",
            "tags up to 2^64 - 1, one around the other",
            tag(u64::MAX, tag(55_799, tag(24, Value::Bytes(vec![0xf6])))),
        ),
        of_file("attributes_bytes_and_text", "no bytes, no text, NUL and newlines", {
            let texts = ["", "\0", "line\nline", "\u{10ffff}"].map(Value::from);
            Value::array(
                [vec![Value::Bytes(vec![]), Value::Bytes((0..=255).collect())], texts.to_vec()]
                    .concat(),
            )
        }),
        of_file("attributes_keys_of_every_kind", "a map whose keys are of every kind", {
            let keys = [
                Value::from("text"),
                Value::Unsigned(0),
                Value::Negative(u64::MAX),
                Value::Bytes(vec![]),
                Value::array(vec![]),
                Value::Map(Attributes::new()),
                tag(2, Value::Bytes(vec![1])),
                Value::Bool(false),
                Value::Null,
                Value::Undefined,
                Value::Simple(255),
                float(f64::NAN),
            ];
            Value::Map(map(keys
                .into_iter()
                .zip(0u64..)
                .map(|(key, at)| (key, Value::Unsigned(at)))))
        }),
        of_file(
            "attributes_like_the_manifest",
            "attributes whose keys are those of the manifest",
            {
                let keys =
                    ["version", "objects", "shape", "offset", "length", "digest"].map(Value::from);
                Value::Map(map(keys.map(|key| (key, Value::Null))))
            },
        ),
        valid("attributes_empty_and_absent", "§10", "an empty map is not an absent one", {
            let empty = good().attributes(Attributes::new());
            Draft::v1_2().with("absent", good()).with("empty", empty).attributes(Attributes::new())
        }),
        valid(
            "attributes_of_a_wide_spelling",
            "§10",
            "a map of attributes in wide arguments reads as the narrow one",
            {
                let content = map([(Value::from("k"), Value::Unsigned(1))]);
                let wide = cbor::map(&[(cbor::text("k"), cbor::head_of_width(0, 1, 8))]);
                let item = good().attributes(content).set("attributes", wide);
                Draft::v1_2().with("w", item.set("note", uint(0)))
            },
        ),
    ]
}
