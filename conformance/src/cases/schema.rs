//! Fields of objects and components: missing, of another type, out of range. Spec: §3.3, §3.4.

use zt::DType;

use super::{Case, accepted, bad, faulty, good, valid, warned};
use crate::cbor::{Cbor, array, bytes, float, map, null, tag, text, uint, uints};
use crate::draft::{Draft, Item, Part};

pub(super) fn cases() -> Vec<Case> {
    [objects(), components(), ranks(), tolerated()].concat()
}

/// `good`, its component changed.
fn with(key: &str, value: Cbor) -> Item {
    good().change("data", |part| part.set(key, value))
}

fn objects() -> Vec<Case> {
    let schema = |name, about, item| bad(name, "§3.3", about, "schema", item);
    vec![
        schema("schema_no_shape", "no `shape`", good().unset("shape")),
        schema("schema_no_format", "no `format`", good().unset("format")),
        schema("schema_no_components", "no `components`", good().unset("components")),
        schema("schema_shape_null", "`shape` is null", good().set("shape", null())),
        schema("schema_shape_bytes", "`shape` is a byte string", good().set("shape", bytes(&[3]))),
        schema(
            "schema_extent_float",
            "an extent of 3.0",
            good().set("shape", array(&[float(3.0)])),
        ),
        schema(
            "schema_extent_tagged",
            "an extent that is tagged",
            good().set("shape", array(&[tag(0, &uint(3))])),
        ),
        schema(
            "schema_extent_minus_1",
            "an extent of -1",
            good().set("shape", array(&[vec![0x20]])),
        ),
        schema(
            "schema_components_array",
            "`components` is an array",
            good().set("components", array(&[])),
        ),
        schema(
            "schema_role_number",
            "a role is a number",
            good().set("components", map(&[(uint(0), map(&[]))])),
        ),
        schema(
            "schema_attributes_array",
            "`attributes` of an object is an array",
            good().set("attributes", array(&[])),
        ),
        faulty("schema_object_array", "§3.2", "an object is an array", "schema", {
            let objects = map(&[(text("bad"), array(&[]))]);
            Draft::v1_2().set("objects", objects)
        }),
    ]
}

fn components() -> Vec<Case> {
    let schema =
        |name, about, item| bad(name, "§3.4", about, "schema", item).at("bad", Some("data"));
    let without = |key: &str| good().change("data", |part| part.unset(key));
    vec![
        schema("schema_no_dtype", "no `dtype`", without("dtype")),
        schema("schema_no_offset", "no `offset`", without("offset")),
        schema("schema_no_length", "no `length`", without("length")),
        schema("schema_dtype_null", "`dtype` is null", with("dtype", null())),
        schema("schema_offset_float", "`offset` is 64.0", with("offset", float(64.0))),
        schema("schema_offset_tagged", "`offset` is tagged", with("offset", tag(0, &uint(64)))),
        schema("schema_length_negative", "`length` is -4", with("length", vec![0x23])),
        schema("schema_length_null", "`length` is null", with("length", null())),
        schema("schema_type_number", "`type` is a number", with("type", uint(1))),
        schema("schema_encoding_number", "`encoding` is a number", with("encoding", uint(0))),
        schema("schema_digest_number", "`digest` is a number", with("digest", uint(0))),
        schema(
            "schema_raw_uncompressed_length_more",
            "raw, and `uncompressed_length` is one more than `length`",
            with("uncompressed_length", uint(4)),
        ),
        schema(
            "schema_raw_uncompressed_length_text",
            "raw, and `uncompressed_length` is a text",
            with("uncompressed_length", text("3")),
        ),
    ]
}

fn ranks() -> Vec<Case> {
    let ones = |rank: usize| Item::dense(&vec![1; rank], DType::U8, &[7]);
    vec![
        valid("rank_64", "§12", "64 dimensions", Draft::v1_2().with("w", ones(64))),
        bad("rank_65", "§12", "65 dimensions", "schema", ones(65)),
        bad(
            "rank_5000",
            "§12",
            "5,000 dimensions",
            "schema",
            good().set("shape", uints(&[1; 5000])),
        ),
    ]
}

fn tolerated() -> Vec<Case> {
    let why = "null in place of an optional value means that it is absent";
    let kept = "unknown keys are kept and ignored";
    let nulls = ["type", "encoding", "digest", "uncompressed_length"];
    vec![
        accepted(
            "null_for_every_optional",
            "§3.4",
            "every optional field of a component and an object is null",
            why,
            {
                let part = |part: Part| nulls.iter().fold(part, |part, key| part.set(key, null()));
                Draft::v1_2().with("w", good().change("data", part).set("attributes", null()))
            },
        ),
        accepted(
            "unknown_fields_like_known_ones",
            "§3.1",
            "fields of one map in another: `dtype` of an object, `shape` of a component, `offset` of the root",
            kept,
            {
                let item = with("shape", uint(1)).set("dtype", uint(2)).set("data", uint(3));
                Draft::v1_2().with("w", item).set("offset", uint(4)).set("dtype", uint(5))
            },
        ),
        accepted("fields_of_another_case", "§1", "`Offset` and `OFFSET` beside `offset`", kept, {
            Draft::v1_2().with(
                "w",
                with("Offset", uint(0)).change("data", |part| part.set("OFFSET", text("x"))),
            )
        }),
        valid(
            "role_without_a_name",
            "§9",
            "a dense object with a second component whose role is the empty text",
            Draft::v1_2().with("w", good().part(Part::new("", DType::I16, &[1, 0]))),
        ),
        valid(
            "format_unknown_without_components",
            "§9",
            "an unknown format, no components",
            Draft::v1_2().with("w", Item::new(&[1, 2, 3], "example.nothing/1")),
        ),
        valid(
            "format_of_another_case",
            "§1",
            "`Dense` is not `dense`: an unknown format, whose sizes nobody checks",
            {
                Draft::v1_2()
                    .with("w", Item::new(&[9], "Dense").part(Part::new("data", DType::U8, b"abc")))
            },
        ),
        warned(
            "unknown_digest_of_two_roles",
            "§6",
            "digests of unknown algorithms in both components of an unknown format",
            "they cannot be checked",
            {
                let part = |role| Part::new(role, DType::U8, b"abc").digest_text("blake3:00ff");
                Draft::v1_2()
                    .with("w", Item::new(&[3], "example.two/1").part(part("a")).part(part("b")))
            },
        ),
    ]
}
