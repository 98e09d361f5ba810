//! `zt diff`.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::fs;

use common::*;
use serde_json::json;
use tempfile::tempdir;

#[test]
fn nothing_differs_between_kinds_and_encodings() {
    let dir = tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let (plain, zstd, theirs) = (path("a.zt"), path("b.zt"), path("c.safetensors"));
    let values: Vec<f32> = (0..9000u16).map(|at| f32::from(at).sin()).collect();
    of_floats(&plain, &values);
    zt!["convert", plain, zstd, "--zstd"].exits(0);
    zt!["convert", plain, theirs].exits(0);
    for other in [&plain, &zstd, &theirs] {
        let text = zt!["diff", plain, other].exits(0).text();
        assert_eq!(text, "nothing differs; 1 object the same\n");
    }
    let planes = path("planes.zt");
    zt!["convert", plain, planes, "--planes"].exits(0);
    zt!["diff", plain, planes].exits(1);
    let found = zt!["diff", "--json", "--dense", plain, planes]
        .exits(0)
        .json();
    assert_eq!(
        keys(&found),
        [
            "a",
            "attributes",
            "b",
            "changed",
            "only_a",
            "only_b",
            "same",
            "unchanged"
        ]
    );
    assert_eq!(
        (&found["same"], &found["unchanged"]),
        (&json!(true), &json!(1))
    );
}

#[test]
fn differences_are_told_to_people_and_to_programs() {
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
        "{name}: 2 of 3 values differ, the first at [1], max abs 5e-1 at [1]"
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
fn what_cannot_be_read_is_told_as_an_error() {
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
    assert_eq!(
        (&change["what"], &change["in"]),
        (&json!("unreadable"), &json!("b"))
    );
    assert_eq!(change["error"]["code"], "digest-mismatch");
    fs::write(&b, "none").unwrap();
    zt!["diff", a, b].exits(3);
    zt!["diff", a, path("none")].exits(4);
}
