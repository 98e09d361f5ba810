//! Objects of `zt.quantized/1` whose value is nearly right: an error or values, and never a panic.
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::cell::Cell;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use zt::formats::StoredPart;
use zt::{Attributes, DType, Elements, File, FloatType, NewObject, Value, Writer};
use zt_quantized::{Dialects, Settings, TARGETS, find, stored};

const HOSTILE: &[u64] = &[0, 1, 2, 3, 5, 7, 8, 16, 17, 64, 128, 1 << 31, 1 << 40, u64::MAX];

fn map(pairs: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    Value::Map(pairs.into_iter().map(|(key, value)| (Value::from(key), value)).collect())
}

fn list(numbers: impl IntoIterator<Item = u64>) -> Value {
    Value::array(numbers.into_iter().map(Value::from).collect())
}

/// A weight of whole bytes of codes: its value, and the type and the number of elements of each part.
fn weight(
    [rows, columns]: [u64; 2],
    bits: u64,
    along: u8,
    options: u8,
) -> (Value, Vec<(&'static str, DType, u64)>) {
    let has = |bit: u8| options & 1 << bit != 0;
    let matrix =
        |part: &str, columns| vec![("part", part.into()), ("shape", list([1, rows, columns]))];
    let codes_of_byte = 8 / bits;
    let packing = vec![
        ("bits", bits.into()),
        ("unit", 1u64.into()),
        ("shifts", list((0..codes_of_byte).map(|at| at * bits))),
    ];
    let along = match along {
        0 => None,
        1 => Some(map([("columns", 1u64.into())])),
        _ => Some(Value::from("parts")),
    };
    let packing = map(packing.into_iter().chain(along.map(|along| ("along", along))));
    let codes = matrix("codes", columns).into_iter();
    let codes = codes.chain([("packing", packing), ("first", Value::Float(-1.0))]);
    let mut value =
        vec![("codes", map(codes)), ("block", list([1, 4])), ("transposed", Value::Bool(has(0)))];
    let mut parts = vec![("codes", DType::U8, rows * columns / codes_of_byte)];
    let groups = rows * columns / 4;
    for (bit, key) in [(1, "scales"), (2, "zeros"), (3, "biases")] {
        if has(bit) {
            value.push((key, map(matrix(key, columns / 4))));
            parts.push((key, DType::F32, groups));
        }
    }
    if has(4) {
        value.push(("global", map([("part", "global".into()), ("divides", Value::Bool(has(1)))])));
        parts.push(("global", DType::F32, 1));
    }
    if has(5) && has(1) {
        let nested =
            [("part", "absmax".into()), ("block", 2u64.into()), ("offset", Value::Float(0.5))];
        value.push(("absmax", map(nested)));
        parts.push(("absmax", DType::F32, groups.div_ceil(2)));
    }
    if has(6) {
        value.push(("groups", "groups".into()));
        parts.push(("groups", DType::I32, if has(0) { rows } else { columns }));
    }
    (map(value), parts)
}

/// Replaces the leaf at `at`, counted from the first. Returns what is left to count.
fn replace(value: &mut Value, at: usize, with: &Value) -> Option<usize> {
    let mut left = at;
    match value {
        Value::Map(pairs) => {
            let mut changed: Vec<(Value, Value)> =
                pairs.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
            let mut done = false;
            for (_, value) in &mut changed {
                match replace(value, left, with) {
                    Some(rest) => left = rest,
                    None => {
                        done = true;
                        break;
                    }
                }
            }
            *value = Value::Map(changed.into_iter().collect());
            (!done).then_some(left)
        }
        Value::Array(_) => {
            let mut items = value.as_array().unwrap_or_default().to_vec();
            let mut done = false;
            for item in &mut items {
                match replace(item, left, with) {
                    Some(rest) => left = rest,
                    None => {
                        done = true;
                        break;
                    }
                }
            }
            *value = Value::array(items);
            (!done).then_some(left)
        }
        _ if left == 0 => {
            *value = with.clone();
            None
        }
        _ => Some(left - 1),
    }
}

/// A file of one object. Parts have this byte, and groups are the first. Returns the number of parts, too.
fn file_of(
    shape: [u64; 2],
    options: u8,
    value: Value,
    parts: Vec<(&'static str, DType, u64)>,
    byte: u8,
) -> (File, usize) {
    let (mut components, mut stored_parts) = (Vec::new(), Vec::new());
    for (role, dtype, count) in parts {
        let byte = if role == "groups" { 0 } else { byte };
        let data = vec![byte; usize::try_from(count).unwrap() * dtype.byte_len()];
        components.push((role, Elements::new(dtype, data)));
        let (role, name) = (role.to_owned(), format!("w.{role}"));
        let attributes = Attributes::new();
        stored_parts.push(StoredPart { role, name, shape: vec![count], attributes });
    }
    let mut attributes = Attributes::new();
    let (key, described) = StoredPart::to_attribute(&stored_parts);
    attributes.insert(key, described);
    attributes.insert("value", value);
    let shape = if options & 1 == 1 { [shape[1], shape[0]] } else { shape };
    let object = NewObject::new(&shape, "zt.quantized/1", Some(attributes), components);
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    writer.add("w", &object).unwrap();
    writer.finish().unwrap();
    (File::from_bytes(bytes).unwrap(), stored_parts.len())
}

/// Another key may change values.
#[test]
fn a_key_that_nobody_knows_is_an_error_of_the_weight_alone() {
    let (mut value, parts) = weight([4, 8], 4, 0, 0b10);
    let found = |value: &Value| {
        let (file, _) = file_of([4, 8], 0b10, value.clone(), parts.clone(), 1);
        assert_eq!(*file.tensor("w").unwrap().bytes("codes").unwrap(), [1; 16]);
        find(&file, &Settings::default(), &Dialects::builtin()).unwrap()
    };
    assert!(found(&value).weights()[0].formula.is_ok());
    if let Value::Map(pairs) = &mut value {
        pairs.insert("power", 2u64);
    }
    assert_eq!(found(&value).weights()[0].formula.as_ref().unwrap_err().code(), "quantization");
}

#[test]
fn is_an_error_or_has_values() {
    let (right, wrong) = (Cell::new(0u32), Cell::new(0u32));
    let sides = select(vec![[4u64, 8], [8, 4], [16, 32], [0, 8], [8, 16]]);
    let weights = (sides, select(vec![1u64, 2, 4, 8]), 0..3u8, any::<u8>());
    let changes = vec((0..40usize, select(HOSTILE), any::<bool>()), 0..3);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 4000,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let run = runner.run(
        &(weights, changes, any::<u8>()),
        |((shape, bits, along, options), changes, byte)| {
            let (mut value, parts) = weight(shape, bits, along, options);
            for (at, number, is_text) in changes {
                let with = if is_text { Value::from("codes") } else { Value::from(number) };
                replace(&mut value, at, &with);
            }
            let (file, stored_parts) = file_of(shape, options, value, parts, byte & 3);
            prop_assert_eq!(stored(&file).unwrap().unwrap().len(), stored_parts);
            let found = || find(&file, &Settings::default(), &Dialects::builtin()).unwrap();
            for target in TARGETS {
                found().in_dialect(target).ok();
            }
            found().check_scales().ok();
            let count = if found().weights()[0].formula.is_ok() { &right } else { &wrong };
            count.set(count.get() + 1);
            for tensor in
                found().logical(Some(FloatType::F32)).unwrap().tensors().filter_map(Result::ok)
            {
                tensor.to_dense().ok();
            }
            Ok(())
        },
    );
    run.unwrap();
    // Both happened, and often.
    assert!(right.get() > 400 && wrong.get() > 400, "{right:?} {wrong:?}");
}
