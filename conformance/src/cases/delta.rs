//! `zt.delta/1`. Spec: formats/zt.delta.

use zt::{Attributes, DType, Value};

use super::attributes::map;
use super::{Case, bad, valid};
use crate::draft::{Draft, Item, Part};

const DELTA: &str = "formats/zt.delta";
const FORMAT: &str = "zt.delta/1";

/// The code of the page's example, and the table of its length.
const CODE: [u8; 8] = [0x00, 0x11, 0x14, 0x54, 0x04, 0x00, 0x00, 0x00];

pub(super) fn cases() -> Vec<Case> {
    [right(), attributes(), components()].concat()
}

fn pair(key: &str, value: impl Into<Value>) -> Attributes {
    map([(key.into(), value.into())])
}

/// The attribute `sha256` with sums of so many bytes.
fn sums(roles: &[&str], len: usize) -> Attributes {
    let sum = |role: &&str| (Value::from(*role), Value::Bytes(vec![7; len]));
    pair("sha256", Value::Map(roles.iter().map(sum).collect()))
}

fn item(attributes: Attributes) -> Item {
    Item::new(&[4], FORMAT).attributes(attributes)
}

fn code() -> Part {
    Part::new("data", DType::U8, &CODE)
}

fn right() -> Vec<Case> {
    let right = |name, about, item| valid(name, DELTA, about, Draft::v1_2().with("w", item));
    vec![
        right(
            "delta_of_bytes",
            "one change of four bytes, as on the page",
            item(sums(&["data"], 32)).part(code()),
        ),
        right("delta_of_a_name", "an object that was renamed", item(pair("base", "v"))),
        right(
            "delta_of_attributes",
            "an object with other attributes",
            item(pair("attributes", Value::Map(pair("unit", "m")))),
        ),
        right(
            "delta_with_another_attribute",
            "an attribute that the format does not know",
            item(pair("note", 1u64)),
        ),
    ]
}

fn attributes() -> Vec<Case> {
    let wrong = |name, about, attributes| {
        let item = item(attributes).part(code());
        bad(name, DELTA, about, "attribute", item)
    };
    vec![
        wrong(
            "delta_base_is_a_number",
            "a `base` that is no text",
            map([("base".into(), 1u64.into()), ("sha256".into(), sums_of_data())]),
        ),
        wrong(
            "delta_attributes_is_a_text",
            "`attributes` that are no map",
            map([("attributes".into(), "none".into()), ("sha256".into(), sums_of_data())]),
        ),
        wrong("delta_sha256_is_a_text", "sums that are no map", pair("sha256", "none")),
        wrong("delta_sum_of_31_bytes", "a sum that is too short", sums(&["data"], 31)),
    ]
}

fn sums_of_data() -> Value {
    let sums = sums(&["data"], 32);
    sums.get("sha256").cloned().unwrap_or(Value::Null)
}

fn components() -> Vec<Case> {
    let wrong =
        |name, about, code, item: Item, role| bad(name, DELTA, about, code, item).at("bad", role);
    vec![
        wrong(
            "delta_without_a_sum",
            "a component without a sum",
            "attribute",
            item(Attributes::new()).part(code()),
            Some("data"),
        ),
        wrong(
            "delta_without_a_component",
            "a sum without a component",
            "missing_component",
            item(sums(&["data", "scales"], 32)).part(code()),
            Some("scales"),
        ),
        wrong(
            "delta_of_i8",
            "a code of signed bytes",
            "dtype",
            item(sums(&["data"], 32)).part(Part::new("data", DType::I8, &CODE)),
            Some("data"),
        ),
    ]
}
