//! `zt.quantized/1`. Spec: formats/zt.quantized.

use zt::{Attributes, DType, Value};

use super::attributes::map;
use super::{Case, bad, valid};
use crate::draft::{Draft, Item, Part};

const PAGE: &str = "formats/zt.quantized";
const FORMAT: &str = "zt.quantized/1";

/// A weight of 2 rows and 3 columns: codes of a byte, and a scale for each row.
fn item(attributes: Attributes) -> Item {
    Item::new(&[2, 3], FORMAT)
        .attributes(attributes)
        .part(Part::new("codes", DType::I8, &[1, 2, 3, 0xff, 0xfe, 0xfd]))
        .part(Part::new("scales", DType::F32, &[0, 0, 0, 63, 0, 0, 128, 62]))
}

fn part(name: &str, shape: &[u64]) -> Value {
    let shape = Value::array(shape.iter().map(|len| Value::from(*len)).collect());
    Value::Map(map([("name".into(), name.into()), ("shape".into(), shape)]))
}

fn parts() -> Value {
    let parts =
        [("codes".into(), part("w.codes", &[2, 3])), ("scales".into(), part("w.scales", &[2, 1]))];
    Value::Map(map(parts))
}

fn value() -> Value {
    let matrix = |part: &str, columns: u64| {
        let shape = [1u64, 2, columns].map(Value::from).to_vec();
        map([("part".into(), part.into()), ("shape".into(), Value::array(shape))])
    };
    let block = Value::array(vec![1u64.into(), 0u64.into()]);
    Value::Map(map([
        ("codes".into(), Value::Map(matrix("codes", 3))),
        ("block".into(), block),
        ("scales".into(), Value::Map(matrix("scales", 1))),
    ]))
}

pub(super) fn cases() -> Vec<Case> {
    let both = |parts, value| map([("parts".into(), parts), ("value".into(), value)]);
    let wrong = |name, about, code, item| bad(name, PAGE, about, code, item);
    let part_of = |pairs: [(Value, Value); 2]| Value::Map(map(pairs));
    let whole = || both(parts(), value());
    vec![
        valid(
            "quantized_weight",
            PAGE,
            "codes and scales of a weight, with what they were",
            Draft::v1_2().with("w", item(whole())),
        ),
        wrong(
            "quantized_weight_without_value",
            "no attribute `value`",
            "attribute",
            item(map([("parts".into(), parts())])),
        ),
        wrong(
            "quantized_weight_without_parts",
            "no attribute `parts`",
            "attribute",
            item(map([("value".into(), value())])),
        ),
        wrong(
            "quantized_weight_part_not_listed",
            "a component that `parts` does not have",
            "attribute",
            item(both(Value::Map(map([("codes".into(), part("w.codes", &[2, 3]))])), value())),
        ),
        wrong(
            "quantized_weight_part_without_shape",
            "a part that has no shape",
            "attribute",
            item(both(
                part_of([
                    ("codes".into(), Value::Map(map([("name".into(), "w.codes".into())]))),
                    ("scales".into(), part("w.scales", &[2, 1])),
                ]),
                value(),
            )),
        ),
        wrong(
            "quantized_weight_part_of_another_shape",
            "a part whose shape has more values than the component",
            "shape_size_mismatch",
            item(both(
                part_of([
                    ("codes".into(), part("w.codes", &[2, 3])),
                    ("scales".into(), part("w.scales", &[2, 3])),
                ]),
                value(),
            )),
        )
        .at("bad", Some("scales")),
        wrong(
            "quantized_weight_without_codes",
            "no `codes`",
            "missing_component",
            Item::new(&[2, 1], FORMAT).attributes(whole()).part(Part::new(
                "scales",
                DType::F32,
                &[0, 0, 0, 63, 0, 0, 128, 62],
            )),
        )
        .at("bad", Some("codes")),
    ]
}
