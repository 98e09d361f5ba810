//! `zt report`. What the page does in a browser is tested by `cargo xtask test-page`.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::path::{Path, PathBuf};

use common::zt;
use serde_json::{Value, json};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/data").join(name)
}

/// The page of these files and options, and its data.
fn report(arguments: &[&Path]) -> (String, Value) {
    let run = zt(["report", "-o", "-"].iter().map(Path::new).chain(arguments.iter().copied()));
    assert_eq!(run.code, Some(0), "{}", run.err);
    let page = String::from_utf8(run.out).unwrap();
    let (_, rest) = page.split_once("id=\"data\">").unwrap();
    let (data, _) = rest.split_once("</script>").unwrap();
    let data = serde_json::from_str(data).unwrap();
    (page, data)
}

/// An integer that a script would round is text.
fn exact(value: &Value) -> Value {
    match value.as_i64().filter(|it| it.abs() > 1 << 53) {
        Some(integer) => integer.to_string().into(),
        None => value.clone(),
    }
}

#[test]
fn figures_are_those_of_stats() {
    let model = data("stats.safetensors");
    let (_, page) = report(&[&model]);
    let run = zt(["stats".as_ref(), "--json".as_ref(), model.as_os_str()]);
    let stats = run.json();
    let objects = stats["objects"].as_array().unwrap();
    assert!(!objects.is_empty());
    let columns = &page["objects"];
    assert_eq!(columns["name"].as_array().unwrap().len(), objects.len());
    for (at, object) in objects.iter().enumerate() {
        for key in ["name", "type", "shape", "problems"] {
            assert_eq!(columns[key][at], object[key], "{key}");
        }
        let counts = ["count", "zeros", "nan", "inf", "dead_rows", "dead_columns"];
        let counts = counts.map(|key| object[key].clone());
        assert_eq!(columns["counts"][at], json!(counts), "{}", object["name"]);
        let finite = ["min", "max", "mean", "std"].map(|key| exact(&object[key]));
        let finite = if finite[0].is_null() { Value::Null } else { json!(finite) };
        assert_eq!(columns["finite"][at], finite, "{}", object["name"]);
    }
    for histogram in page["histograms"].as_array().unwrap() {
        let [at, bins] = [&histogram[0], &histogram[1]];
        let object = &objects[usize::try_from(at.as_u64().unwrap()).unwrap()];
        let bins = bins[2].as_array().unwrap();
        let sum: u64 = bins.iter().map(|count| count.as_u64().unwrap()).sum();
        let [count, nan, inf] = ["count", "nan", "inf"].map(|key| object[key].as_u64().unwrap());
        assert_eq!(sum, count - nan - inf, "{}", object["name"]);
    }
}

#[test]
fn two_files_have_the_distances_of_diff() {
    let (a, b) = (data("summary-a.safetensors"), data("summary-b.safetensors"));
    let (_, page) = report(&[&a, &b]);
    let flags = ["diff", "--summary", "--json"].map(AsRef::as_ref);
    let run = zt(flags.into_iter().chain([a.as_os_str(), b.as_os_str()]));
    let diff = run.json();
    let columns = &page["objects"];
    let names = columns["name"].as_array().unwrap();
    let change = |name: &Value| &columns["change"][names.iter().position(|it| it == name).unwrap()];
    let mut compared = 0;
    for object in diff["objects"].as_array().unwrap() {
        let change = change(&object["name"]);
        if change[0] != "incomparable" {
            compared += 1;
            let cosine = &object["cosine"];
            assert_eq!((&change[2], &change[3]), (&object["max_abs"], cosine), "{object}");
        }
    }
    assert!(compared > 2, "{diff}");
    for (key, status) in [("only_a", "removed"), ("only_b", "added")] {
        for name in diff[key].as_array().unwrap() {
            assert_eq!(change(name)[0], status);
        }
    }
}

#[test]
fn a_page_is_replaced_only_by_force() {
    let folder = tempfile::tempdir().unwrap();
    let (model, page) = (data("two-moons.safetensors"), folder.path().join("page.html"));
    let write = |force: &[&str]| {
        let arguments = ["report", "--json"].iter().chain(force).map(AsRef::as_ref);
        zt(arguments.chain([model.as_os_str(), "-o".as_ref(), page.as_os_str()]))
    };
    let run = write(&[]).exits(0);
    let bytes = std::fs::metadata(&page).unwrap().len();
    assert_eq!(run.json()["bytes"], bytes);
    assert_eq!(write(&[]).exits(2).error_code(), "overwrite");
    write(&["--force"]).exits(0);
}

#[test]
fn the_page_does_not_depend_on_the_number_of_threads() {
    let model = data("stats.safetensors");
    let one = report(&["-j".as_ref(), "1".as_ref(), &model]);
    assert_eq!(one, report(&["-j".as_ref(), "3".as_ref(), &model]));
}

#[test]
fn damage_is_on_the_page_and_the_rest_has_figures() {
    let folder = tempfile::tempdir().unwrap();
    let (_, page) = report(&[&common::damaged(folder.path())]);
    assert!(page["files"][0]["problems"]["count"].as_u64() > Some(0), "{page}");
    let problems = page["objects"]["problems"].as_array().unwrap();
    let of_digest = problems.iter().filter(|it| it.to_string().contains("digest"));
    assert_eq!(of_digest.count(), 1, "{problems:?}");
}

#[test]
fn a_sample_looks_at_some_values_of_large_objects() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.zt");
    // 4 MiB, whose values are their places.
    let values: Vec<f32> = (0..1u16 << 10).flat_map(|row| [f32::from(row); 1 << 10]).collect();
    common::of_floats(&path, &values);
    let (_, whole) = report(&[&path]);
    let (_, sample) = report(&["--sample".as_ref(), &path]);
    assert_eq!(whole["files"][0]["is_verified"], true);
    assert_eq!(sample["files"][0]["is_verified"], false);
    assert_eq!(sample["is_sample"], true);
    let counts = &sample["objects"]["counts"][0];
    assert_eq!(counts[0], 1 << 16, "256 KiB");
    // The first place and the last are among them.
    let bounds = |page: &Value| [0, 1].map(|at| page["objects"]["finite"][0][at].clone());
    assert_eq!(bounds(&sample), bounds(&whole));
}

#[test]
fn a_delta_has_what_it_changes_and_with_its_base_how_far() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let [base, new, delta] = ["base.safetensors", "new.safetensors", "delta.zt"].map(path);
    // Two stretches, and the second changes.
    let long = vec![1f32; 200_000];
    let mut moved = long.clone();
    moved[150_000] = 1.5;
    safetensors(&base, &[("gone", &[1.0]), ("long", &long), ("same", &[2.0, 3.0])]);
    safetensors(&new, &[("long", &moved), ("new", &[4.0]), ("same", &[2.0, 3.0])]);
    let made = ["delta".as_ref(), "-o".as_ref(), delta.as_os_str()];
    zt(made.into_iter().chain([base.as_os_str(), new.as_os_str()])).exits(0);

    let (_, page) = report(&[&delta]);
    let counts = json!({ "base": 3, "changed": 1, "whole": 1, "removed": 1 });
    assert_eq!(page["files"][0]["delta"], counts);
    assert_eq!(page["objects"]["name"], json!(["long", "new"]));
    assert_eq!(page["objects"]["problems"], json!([[], []]));
    let change =
        json!({ "base": null, "attributes": false, "roles": ["data"], "stretches": [1, 2] });
    assert_eq!(page["deltas"], json!([[0, change]]));

    let (_, page) = report(&["--base".as_ref(), &base, &base, &delta]);
    let names = page["objects"]["name"].as_array().unwrap();
    let changes = page["objects"]["change"].as_array().unwrap();
    let mut changes: Vec<_> =
        names.iter().zip(changes).map(|(name, it)| (name, &it[0], &it[2])).collect();
    changes.sort_by_key(|(name, ..)| name.to_string());
    let found: Vec<Value> =
        changes.iter().map(|(name, status, most)| json!([name, status, most])).collect();
    let expected = json!([
        ["gone", "removed", null],
        ["long", "changed", 0.5],
        ["new", "added", null],
        ["same", "same", 0.0]
    ]);
    assert_eq!(json!(found), expected);
}

/// A file of vectors of f32.
fn safetensors(path: &Path, tensors: &[(&str, &[f32])]) {
    let (mut header, mut body) = (serde_json::Map::new(), Vec::new());
    for (name, values) in tensors {
        let start = body.len();
        body.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        let offsets = [start, body.len()];
        let entry = json!({ "dtype": "F32", "shape": [values.len()], "data_offsets": offsets });
        header.insert((*name).to_owned(), entry);
    }
    let header = serde_json::to_vec(&header).unwrap();
    let len = (header.len() as u64).to_le_bytes();
    std::fs::write(path, [&len[..], &header, &body].concat()).unwrap();
}
