//! `zt diff`.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::fs;
use std::path::Path;

use common::*;
use serde_json::{Value, json};
use tempfile::tempdir;
use zt::{Attributes, Csr, Dense, Elements, NewObject, Writer};

#[test]
fn kinds_and_encodings_do_not_differ() {
    let dir = tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let (plain, zstd, theirs) = (path("a.zt"), path("b.zt"), path("c.safetensors"));
    let (planes, arrays) = (path("d.zt"), path("e.npz"));
    let values: Vec<f32> = (0..9000u16).map(|at| f32::from(at).sin()).collect();
    of_floats(&plain, &values);
    zt!["convert", plain, zstd, "--zstd"].exits(0);
    zt!["convert", plain, planes, "--planes"].exits(0);
    zt!["convert", planes, theirs].exits(0);
    zt!["convert", planes, arrays].exits(0);
    let content = |file: &Path| zt!["hash", "--json", file].exits(0).json()["content"].clone();
    for other in [&plain, &zstd, &planes, &theirs, &arrays] {
        let text = zt!["diff", plain, other].exits(0).text();
        assert!(text.contains("1 object"), "{text}");
        assert_eq!(content(other), content(&plain));
    }
    let found = zt!["diff", "--json", plain, planes].exits(0).json();
    assert_eq!(
        keys(&found),
        ["a", "attributes", "b", "changed", "only_a", "only_b", "same", "unchanged"]
    );
    assert_eq!((&found["same"], &found["unchanged"]), (&json!(true), &json!(1)));
}

#[test]
fn only_values_matter_if_only_they_are_compared() {
    let dir = tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let (model, half, quantized) = (path("a.zt"), path("b.safetensors"), path("c.zt"));
    let values: Vec<f32> = (0..512u16).map(|at| f32::from(at).sin()).collect();
    of_floats(&model, &values);
    zt!["meta", "set", model, "author", "\"nobody\""].exits(0);
    zt!["convert", model, half, "--dtype", "bf16"].exits(0);
    zt!["diff", model, half, "--rtol", "0.01"].exits(1);
    let run = zt!["diff", model, half].exits(1);
    assert!(run.err.contains("--only-values"), "{}", run.err);
    zt!["diff", "--only-values", model, half].exits(1);
    let run = zt!["diff", "--only-values", "--rtol", "0.01", model, half].exits(0);
    assert_eq!(run.text(), "no differences in 1 object\n");
    zt!["diff", "--only-values", "--rtol", "0.001", model, half].exits(1);
    let wide = Dense::from_slice(&[8, 64], &values).unwrap();
    let mut writer = Writer::create(&quantized).unwrap();
    writer.add("w", &wide).unwrap();
    writer.finish().unwrap();
    let blocks = path("d.zt");
    zt!["quantize", quantized, blocks, "--bits", "8", "--group-size", "32"].exits(0);
    zt!["diff", "--only-values", "--atol", "0.01", quantized, blocks].exits(0);
    zt!["diff", "--atol", "0.01", quantized, blocks].exits(1);
}

#[test]
fn differences_are_printed_as_text_and_as_json() {
    let dir = tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let (a, b) = (path("a.zt"), path("b.zt"));
    of_floats(&a, &[1.0, 2.0, 0.0]);
    of_floats(&b, &[1.0, 2.5, f32::NAN]);
    let found = zt!["diff", "--json", "--values", a, b].exits(1).json();
    let name = found["changed"][0]["name"].as_str().unwrap().to_owned();
    assert_eq!(
        found["changed"],
        json!([{"name": name, "changes": [{
            "what": "values", "component": null, "count": 3, "different": 2, "first": 1, "nan": 1,
            "max_abs": {"value": 0.5, "at": 1}, "max_rel": {"value": 0.2, "at": 1},
            "max_ulp": {"value": 1 << 21, "at": 1},
        }]}])
    );
    let text = zt!["diff", "--values", a, b].exits(1).text();
    assert!(text.starts_with(&format!(
        "{name}: 2 of 3 values differ, the first at [1], max abs 0.5000 at [1]"
    )));
    assert!(text.contains("1 object changed, 0 only in"), "{text}");

    let half = path("half.zt");
    zt!["convert", a, half, "--dtype", "bf16"].exits(0);
    let found = zt!["diff", "--json", a, half].exits(1).json();
    assert_eq!(
        found["changed"][0]["changes"],
        json!([{"what": "dtype", "component": "data", "a": "f32", "b": "bf16"}])
    );
}

/// Objects that each differ from the other side in one way, after which they are named.
fn of_side(path: &Path, is_a: bool) {
    let object = |shape: &[u64], format: &str, components| NewObject {
        shape: shape.to_vec().into(),
        format: format.to_owned().into(),
        attributes: None,
        components,
    };
    let dense = |shape, elements| object(shape, "dense", vec![("data".into(), elements)]);
    let two = || bytes(&[1, 2]);
    let attributes = |key: &str, value: &str| Attributes::from([(key, zt::Value::from(value))]);
    let mut writer = Writer::create(path).unwrap();
    let mut add = |name: &str, object: &NewObject<'_>| writer.add(name, object).unwrap();
    add("shape", &dense(if is_a { &[2] } else { &[1, 2] }, two()));
    let mut noted = dense(&[2], two());
    let key = if is_a { "left" } else { "right" };
    noted.attributes = Some(attributes(key, "on"));
    add("attribute", &noted);
    let of_type = if is_a { two() } else { two().with_logical_type("f8_e5m2") };
    add("type", &dense(&[2], of_type));
    let one = [if is_a { 1 } else { 3 }];
    let mut parts = vec![("both".into(), bytes(&one))];
    parts.push((key.into(), two()));
    add("component", &object(&[2], "acme.parts/1", parts));
    let halves = [if is_a { 1.0 } else { 3.0 }, 2.0f32];
    add("value", &dense(&[1, 2], Elements::from(&halves[..])));
    add("same", &dense(&[2], two()));
    add(key, &dense(&[2], two()));
    let filled = Dense::from_slice(&[2, 3], &[0i32, 0, 7, 8, 0, 0]).unwrap();
    let sparse = Csr::new([2, 3], &[7i32, 8], &[2, 0], &[0, 1, 2]).unwrap();
    if is_a {
        writer.add("format", &filled).unwrap()
    } else {
        writer.add("format", &sparse).unwrap()
    }
    writer.set_attributes(attributes("side", if is_a { "a" } else { "b" })).unwrap();
    writer.finish().unwrap();
}

#[test]
fn every_kind_of_difference_has_a_line_and_a_document() {
    let dir = tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let (a, b) = (path("a.zt"), path("b.zt"));
    of_side(&a, true);
    of_side(&b, false);
    let found = zt!["diff", "--json", a, b].exits(1).json();
    let values = |component: &str, count: u64| {
        json!({
            "what": "values", "component": component, "count": count, "different": 1, "first": 0,
            "nan": 0, "max_abs": null, "max_rel": null, "max_ulp": null,
        })
    };
    let expected = [
        ("shape", json!([{"what": "shape", "a": [2], "b": [1, 2]}])),
        (
            "attribute",
            // A missing attribute has no key, because null is a value.
            json!([
                {"what": "attribute", "key": "left", "a": "on"},
                {"what": "attribute", "key": "right", "b": "on"},
            ]),
        ),
        ("type", json!([{"what": "type", "component": "data", "a": null, "b": "f8_e5m2"}])),
        (
            "component",
            json!([
                values("both", 1),
                {"what": "component", "component": "left", "in": "a"},
                {"what": "component", "component": "right", "in": "b"},
            ]),
        ),
        ("value", json!([values("data", 2)])),
        ("format", json!([{"what": "format", "a": "dense", "b": "sparse_csr"}])),
    ];
    let expected = expected.map(|(name, changes)| json!({"name": name, "changes": changes}));
    assert_eq!(found["changed"], json!(expected));
    assert_eq!(
        found["attributes"],
        json!([{"what": "attribute", "key": "side", "a": "a", "b": "b"}])
    );
    assert_eq!((&found["only_a"], &found["only_b"]), (&json!(["left"]), &json!(["right"])));

    let lines = |arguments: &[&str]| {
        let paths = [a.as_os_str(), b.as_os_str()];
        let arguments = arguments.iter().map(std::ffi::OsStr::new);
        let text = zt(["diff".as_ref()].into_iter().chain(arguments).chain(paths)).exits(1).text();
        let text = text.replace(&*a.to_string_lossy(), "A");
        text.replace(&*b.to_string_lossy(), "B")
    };
    let expected = "\
file: attribute \"side\" \"a\" -> \"b\"
shape: shape 2 -> 1×2
attribute: attribute \"left\" \"on\" -> none
attribute: attribute \"right\" none -> \"on\"
type/data: type none -> f8_e5m2
component/both: 1 of 1 value differs, the first at [0]
component/left: only in A
component/right: only in B
value/data: 1 of 2 values differ, the first at [0, 0]
format: format dense -> sparse_csr
left: only in A
right: only in B
6 objects changed, 1 only in A, 1 only in B, 1 the same
";
    assert_eq!(lines(&[]), expected);
    let measured = "value: 1 of 2 values differ, the first at [0, 0], max abs 2.000 at [0, 0], ";
    assert!(lines(&["--values"]).contains(measured));
}

#[test]
fn other_dtypes_and_unreadable_objects_have_lines() {
    let dir = tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let (a, half) = (path("a.zt"), path("half.zt"));
    of_floats(&a, &[1.0, 2.0, 3.0]);
    zt!["convert", a, half, "--dtype", "bf16"].exits(0);
    let text = zt!["diff", a, half].exits(1).text();
    assert!(text.starts_with("w/data: dtype f32 -> bf16\n"), "{text}");
    let damaged = damaged(dir.path());
    for (one, other) in [(&a, &damaged), (&damaged, &a)] {
        let text = zt!["diff", one, other].exits(1).text();
        let line = format!("w: cannot be read in {}: [digest-mismatch] ", damaged.display());
        assert!(text.starts_with(&line), "{text}");
    }
}

#[test]
fn a_tolerance_is_a_number_of_0_or_more() {
    let dir = tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let (a, b) = (path("a.zt"), path("b.zt"));
    of_floats(&a, &[1.0, 2.0]);
    of_floats(&b, &[1.0, 2.5]);
    zt!["diff", a, b, "--atol", "0.5"].exits(0);
    zt!["diff", a, b, "--rtol", "0.2"].exits(0);
    zt!["diff", a, b, "--rtol", "0.1", "--atol", "0.2"].exits(1);
    zt!["diff", a, b, "--atol=-1"].exits(2);
    zt!["diff", a, b, "--rtol", "nan"].exits(2);
}

#[test]
fn an_unreadable_object_is_an_error() {
    let dir = tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let (a, b) = (path("a.zt"), path("b.zt"));
    of_floats(&a, &[1.0, 2.0]);
    let mut bytes = fs::read(&a).unwrap();
    bytes[64] ^= 1;
    fs::write(&b, bytes).unwrap();
    let run = zt!["diff", "--json", a, b].exits(1);
    assert!(run.err.starts_with("error[digest-mismatch]"), "{}", run.err);
    let change = &run.json()["changed"][0]["changes"][0];
    assert_eq!((&change["what"], &change["in"]), (&json!("unreadable"), &json!("b")));
    assert_eq!(change["error"]["code"], "digest-mismatch");
    fs::write(&b, "none").unwrap();
    zt!["diff", a, b].exits(3);
    zt!["diff", a, path("none")].exits(4);
}

#[test]
fn arrays_of_two_files_without_names_are_compared() {
    let dir = tempdir().unwrap();
    let [a, b, c] = ["before.npy", "after.npy", "other.npy"].map(|name| dir.path().join(name));
    let x = dir.path().join("x.zt");
    for (values, out) in [([1.0, 2.0], &a), ([1.0, 2.0], &b), ([1.0, 3.0], &c)] {
        of_floats(&x, &values);
        zt!["convert", x, out, "--lossy"].exits(0);
    }
    zt!["diff", a, b].exits(0);
    let document = zt!["diff", "--json", a, c].exits(1).json();
    assert_eq!(document["changed"][0]["name"], "before");
    assert_eq!(document["changed"][0]["changes"][0]["what"], "values");
    // Names are compared if one file stores them.
    let document = zt!["diff", "--json", a, x].exits(1).json();
    assert_eq!(document["only_a"], serde_json::json!(["before"]));
}

/// Two versions of a model, and what NumPy says of their distances: `conformance/data/summary.py`.
fn data(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/data").join(name)
}

#[test]
fn the_distances_of_a_summary_are_numpys() {
    let dir = tempdir().unwrap();
    let (a, b) = (data("summary-a.safetensors"), data("summary-b.safetensors"));
    let planes = dir.path().join("planes.zt");
    zt!["convert", b, planes, "--planes"].exits(0);
    let truth: Value = serde_json::from_slice(&fs::read(data("summary.json")).unwrap()).unwrap();
    let truth = truth.as_object().unwrap();
    for b in [&b, &planes] {
        for jobs in ["1", "3"] {
            let found = zt!["diff", "--summary", "--json", "-j", jobs, a, b];
            let found = found.exits(1).json();
            let objects = found["objects"].as_array().unwrap();
            assert_eq!(objects.len(), truth.len());
            for object in objects {
                let name = object["name"].as_str().unwrap();
                for (key, expected) in truth[name].as_object().unwrap() {
                    let found = &object[key];
                    let is_near = match (found.as_f64(), expected.as_f64()) {
                        (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * b.abs(),
                        (None, None) if key == "relative" => *found == json!({"$float": "inf"}),
                        _ => found == expected,
                    };
                    assert!(is_near, "{name} {key}: {found} and {expected}");
                }
            }
            let names = objects.iter().map(|object| object["name"].as_str().unwrap());
            let names: Vec<_> = names.take(5).collect();
            // First what has no distance, then by the change.
            assert_eq!(names, ["odd", "zero", "signal", "step", "layers.2.w"]);
            assert_eq!((&found["only_a"], &found["only_b"]), (&json!(["old"]), &json!(["new"])));
            assert_eq!(
                (&found["changed"][0]["name"], &found["unchanged"]),
                (&json!("wide"), &json!(1))
            );
        }
    }
}

#[test]
fn a_summary_adds_up_modules() {
    let (a, b) = (data("summary-a.safetensors"), data("summary-b.safetensors"));
    let run = zt!["diff", "--summary", "--tree", "--json", a, b].exits(1);
    let found = run.json();
    let branch = |name: &str| {
        let tree = found["tree"].as_array().unwrap();
        tree.iter().find(|branch| branch["name"] == name).unwrap()
    };
    let (one, two) = (branch("layers.1.w"), branch("layers.2.w"));
    let all = branch("layers");
    assert_eq!(all["count"], 3 * 2800);
    assert_eq!(all["max_abs"], two["max_abs"]);
    let relative = |branch: &Value| branch["relative"].as_f64().unwrap();
    assert!(relative(one) < relative(all) && relative(all) < relative(two));
    let text = zt!["diff", "--summary", "--tree", "--depth", "1", a, b].exits(1);
    assert!(text.text().contains("layers "), "{}", text.text());
    assert!(!text.text().contains("layers.1"), "{}", text.text());
}

#[test]
fn a_summary_says_which_types_change() {
    let dir = tempdir().unwrap();
    let (a, b) = (data("summary-a.safetensors"), dir.path().join("b.safetensors"));
    zt!["convert", a, b, "--dtype", "f64"].exits(0);
    let text = zt!["diff", "--summary", a, b].exits(0).text();
    assert!(text.contains("4 objects: dtype f32 -> f64"), "{text}");
    let types = zt!["diff", "--summary", "--json", a, b].exits(0).json()["types"].clone();
    assert_eq!(types[2], json!({ "a": "f32", "b": "f64", "objects": 4 }));
    let same = zt!["diff", "--summary", "--json", a, a].exits(0).json();
    assert_eq!(same["types"], json!([]));
}

#[test]
fn a_summary_is_a_table_with_four_digits() {
    let (a, b) = (data("summary-a.safetensors"), data("summary-b.safetensors"));
    let text = zt!["diff", "--summary", a, b].exits(1).text();
    let [head, odd, zero, signal, ..] = text.lines().collect::<Vec<_>>()[..] else {
        panic!("{text}");
    };
    assert!(head.starts_with("NAME"), "{text}");
    assert!(odd.starts_with("odd ") && odd.ends_with(" 2"), "{text}");
    assert!(zero.contains(" inf "), "{text}");
    assert!(signal.contains(" 0.5000 "), "{text}");
    assert!(!text.contains("layers.0.w"), "equal objects are counted: {text}");
    let last = text.lines().last().unwrap();
    assert!(last.starts_with("9 objects changed, 1 only in "), "{last}");
    assert!(last.ends_with(", 1 the same"), "{last}");
    assert!(text.contains("wide: shape 3 -> 4"), "{text}");
    let same = zt!["diff", "--summary", a, a].exits(0).text();
    assert!(same.starts_with("no differences in 11 objects"), "{same}");
    zt!["diff", "--summary", "--rtol", "1", a, b].exits(2);
    zt!["diff", "--tree", a, b].exits(2);
}
