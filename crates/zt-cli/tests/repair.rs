//! `zt repair`: truncated and damaged files.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{keys, names_in};
use serde_json::{Value, json};
use tempfile::tempdir;
use zt::{Dense, File, Writer};

fn add(writer: &mut Writer<'_>) {
    for (name, value) in [("a", 1.0_f32), ("b", 2.0)] {
        let values = [value; 100];
        writer.add(name, &Dense::from_slice(&[100], &values).unwrap()).unwrap();
    }
}

/// A file of two objects.
fn written(dir: &Path) -> (PathBuf, Vec<u8>) {
    let path = dir.join("model.zt");
    let mut writer = Writer::create(&path).unwrap();
    add(&mut writer);
    writer.finish().unwrap();
    let bytes = fs::read(&path).unwrap();
    (path, bytes)
}

/// The file with a byte of the object `b` changed.
fn damaged(dir: &Path) -> (PathBuf, Vec<u8>) {
    let (path, mut bytes) = written(dir);
    let file = File::open(&path).unwrap();
    let span = file.tensor("b").unwrap().component("data").unwrap().blob.span;
    bytes[usize::try_from(span.offset()).unwrap()] ^= 1;
    fs::write(&path, &bytes).unwrap();
    (path, bytes)
}

fn fates(document: &Value) -> Vec<(&str, &str)> {
    let objects = document["objects"].as_array().unwrap().iter();
    objects
        .map(|object| (object["name"].as_str().unwrap(), object["fate"].as_str().unwrap()))
        .collect()
}

#[test]
fn a_sound_file_is_not_changed() {
    let dir = tempdir().unwrap();
    let (path, bytes) = written(dir.path());
    let run = zt!["repair", path].exits(0);
    assert!(run.text().contains("sound"), "{}", run.text());
    assert_eq!(fs::read(&path).unwrap(), bytes);
    assert_eq!(names_in(dir.path()), ["model.zt"]);
}

#[test]
fn bytes_after_the_last_generation_are_removed_in_place() {
    let dir = tempdir().unwrap();
    let (path, bytes) = written(dir.path());
    let torn = [&bytes[..], b"torn"].concat();
    fs::write(&path, &torn).unwrap();
    zt!["ls", path].exits(3);

    let plan = zt!["repair", "--dry-run", "--json", path].exits(0).json();
    let expected = [
        "changed",
        "dry_run",
        "error",
        "exhaustive",
        "file",
        "file_size",
        "generation",
        "layout",
        "objects",
        "old_file_size",
        "others",
        "output",
        "remains",
        "saved_size",
        "surplus",
        "verdict",
    ];
    assert_eq!(keys(&plan), expected);
    assert_eq!(plan["verdict"], "mendable");
    let sizes =
        |of: &Value| ["old_file_size", "file_size", "saved_size"].map(|key| of[key].clone());
    let expected = [json!(torn.len()), json!(bytes.len()), json!(null)];
    assert_eq!(sizes(&plan), expected, "the sizes after the repair");
    assert_eq!((&plan["changed"], &plan["dry_run"]), (&json!(false), &json!(true)));
    assert_eq!(plan["surplus"], json!({"offset": bytes.len(), "length": 4}));
    assert_eq!(plan["layout"], "1.2");
    assert!(plan["error"]["code"].is_string());
    assert_eq!(fates(&plan), [("a", "proved"), ("b", "proved")]);
    let component = &plan["objects"][0]["components"][0];
    assert_eq!(*component, json!({"role": "data", "fate": "proved", "error": null}));
    let generation = &plan["generation"];
    let expected = [
        "copies",
        "end",
        "has_trailer",
        "manifest",
        "nested_at",
        "objects",
        "proved",
        "refuted",
        "standing",
        "unproved",
    ];
    assert_eq!(keys(generation), expected);
    assert_eq!(generation["end"], bytes.len());
    assert_eq!(generation["standing"], "whole");
    assert_eq!((&generation["proved"], &generation["refuted"]), (&json!(2), &json!(0)));
    assert_eq!(fs::read(&path).unwrap(), torn, "a dry run changes nothing");
    let run = zt!["repair", "-n", path].exits(0);
    assert!(run.text().contains("would be repaired"), "{}", run.text());

    let run = zt!["repair", path].exits(0);
    assert!(run.text().contains("repaired; 2 objects, 4 B removed"), "{}", run.text());
    assert_eq!(fs::read(&path).unwrap(), bytes);
    zt!["verify", "--strict", path].exits(0);
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let done = zt!["repair", "--json", path].exits(0).json();
    assert_eq!((&done["changed"], &done["surplus"]), (&json!(true), &json!(null)));
    let expected = [json!(bytes.len() - 1), json!(bytes.len()), json!(null)];
    assert_eq!(sizes(&done), expected);
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[test]
fn intact_objects_of_a_damaged_file_are_saved_to_another() {
    let dir = tempdir().unwrap();
    let (path, bytes) = damaged(dir.path());
    let run = zt!["repair", path].exits(1);
    assert!(run.err.contains("error[digest-mismatch]"), "{}", run.err);
    assert!(run.err.contains("model.zt"), "{}", run.err);
    assert!(run.text().contains("would save 1 of 2 objects"), "{}", run.text());
    assert_eq!(fs::read(&path).unwrap(), bytes);

    let out = dir.path().join("saved.zt");
    let run = zt!["repair", path, "-o", out, "--dry-run"].exits(1);
    assert!(run.text().contains("would save 1 of 2 objects"), "{}", run.text());
    assert!(!out.exists());
    let done = zt!["repair", path, "-o", out, "--json"].exits(1).json();
    assert_eq!(done["output"], out.to_str().unwrap());
    assert_eq!((&done["verdict"], &done["changed"]), (&json!("damaged"), &json!(false)));
    assert_eq!(fates(&done), [("a", "proved"), ("b", "lost")]);
    let lost = &done["objects"][1]["components"][0]["error"];
    assert_eq!(lost["code"], "digest-mismatch");
    assert_eq!(fs::read(&path).unwrap(), bytes);
    assert_eq!(done["saved_size"], out.metadata().unwrap().len());
    for key in ["old_file_size", "file_size"] {
        assert_eq!(done[key], bytes.len(), "{key}: FILE is unchanged");
    }
    zt!["verify", "--strict", out].exits(0);
    let saved = File::open(&out).unwrap();
    assert_eq!(saved.names().collect::<Vec<_>>(), ["a"]);

    // Only --force replaces a file, and nothing replaces the input.
    let again = zt!["repair", path, "-o", out, "--json"].exits(2);
    assert_eq!(again.error_code(), "overwrite");
    zt!["repair", path, "-o", out, "--force"].exits(1);
    let itself = zt!["repair", path, "-o", path, "--force", "--json"].exits(2);
    assert_eq!(itself.error_code(), "overwrite");
    assert_eq!(names_in(dir.path()), ["model.zt", "saved.zt"]);
}

/// A component of one object is damaged, and the other object has no digest.
#[test]
fn partial_and_unproved_objects_are_counted() {
    let dir = tempdir().unwrap();
    let (path, out) = (dir.path().join("model.zt"), dir.path().join("saved.zt"));
    let mut writer = Writer::create(&path).unwrap();
    let graph = zt::Csr::new([2, 3], &[7i32, 8], &[2, 0], &[0, 1, 2]).unwrap();
    writer.add("graph", &graph).unwrap();
    let plain = zt::ComponentOptions { digest: None, ..zt::ComponentOptions::default() };
    let ones = Dense::from_slice(&[100], &[1u8; 100]).unwrap();
    writer.add_with("plain", &ones, &plain.into()).unwrap();
    writer.finish().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let file = File::open(&path).unwrap();
    let values = file.tensor("graph").unwrap().component("values").unwrap();
    bytes[usize::try_from(values.blob.span.offset()).unwrap()] ^= 1;
    fs::write(&path, &bytes).unwrap();

    let run = zt!["repair", path].exits(1);
    let left = "would save 2 objects, 1 unproved, 1 in part";
    assert!(run.text().contains(left), "{}", run.text());
    let done = zt!["repair", path, "-o", out, "--json"].exits(1).json();
    assert_eq!(fates(&done), [("graph", "partial"), ("plain", "unproved")]);
    let saved = File::open(&out).unwrap();
    assert_eq!(saved.tensor("graph").unwrap().format(), "zt.partial/1");
    assert_eq!(saved.tensor("plain").unwrap().to_vec::<u8>().unwrap(), [1; 100]);
}

#[test]
fn a_file_inside_a_damaged_one_is_reported_and_not_used() {
    let dir = tempdir().unwrap();
    let (path, inner) = written(dir.path());
    let outer = dir.path().join("outer.zt");
    let mut writer = Writer::create(&outer).unwrap();
    let noise = [6u8; 500];
    let len = inner.len() as u64;
    for (name, bytes, len) in [("first", &noise[..], 500), ("inner", &inner, len)] {
        writer.add(name, &Dense::from_slice(&[len], bytes).unwrap()).unwrap();
    }
    writer.finish().unwrap();
    let offset = {
        let file = File::open(&outer).unwrap();
        let inner = file.tensor("inner").unwrap();
        inner.component("data").unwrap().blob.span.offset()
    };
    let bytes = fs::read(&outer).unwrap();
    let cut = &bytes[..bytes.len() - 60];
    fs::write(&outer, cut).unwrap();
    let run = zt!["repair", outer].exits(3);
    assert!(run.err.contains(&format!(" {offset}: ")), "{}", run.err);
    let out = dir.path().join("saved.zt");
    zt!["repair", outer, "-o", out].exits(3);
    let found = zt!["repair", outer, "--dry-run", "--json"].exits(3).json();
    let other = &found["others"][0];
    assert_eq!((&other["standing"], &other["nested_at"]), (&json!("nested"), &json!(offset)));
    // Chosen by its offset, it is saved, and the outer file is not changed.
    let at = other["manifest"]["offset"].to_string();
    let note = format!("-o OUT --manifest {at} ");
    assert!(run.err.contains(&note), "{}", run.err);
    let run = zt!["repair", outer, "--manifest", at].exits(1);
    assert!(run.text().contains("2 objects"), "{}", run.text());
    assert!(fs::read(&outer).unwrap() == cut && path.exists());
    zt!["repair", outer, "-o", out, "--manifest", at].exits(0);
    zt!["diff", path, out].exits(0);
    assert!(fs::read(&outer).unwrap() == cut);
}

#[test]
fn a_file_without_a_manifest_is_lost() {
    let dir = tempdir().unwrap();
    let (path, bytes) = written(dir.path());
    let out = dir.path().join("saved.zt");
    fs::write(&path, &bytes[..500]).unwrap();
    let run = zt!["repair", path].exits(3);
    let found = "no manifest was found; the file is truncated";
    assert!(run.text().contains(found), "{}", run.text());
    assert!(run.err.contains("fetch the rest from byte 500 on"), "{}", run.err);
    let done = zt!["repair", path, "-o", out, "--json"].exits(3).json();
    assert_eq!((&done["verdict"], &done["generation"]), (&json!("lost"), &json!(null)));
    assert!(!out.exists());
    assert_eq!(fs::read(&path).unwrap(), &bytes[..500]);

    fs::write(&path, b"nothing that anybody knows").unwrap();
    let run = zt!["repair", path].exits(3);
    assert!(run.text().contains("not a .zt file"), "{}", run.text());
    zt!["repair", dir.path().join("none.zt")].exits(4);
}

/// A download of a compressed file that stopped: its manifest never arrived.
#[test]
fn compressed_components_are_seen_without_a_manifest() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("cut.zt");
    let mut options = zt::WriteOptions::new();
    options = options.compression(zt::Compression::Zstd(3));
    let mut writer = options.create(&path).unwrap();
    // Components of more than 4 MiB have a seek table.
    for (name, len) in [("a", 6 << 20), ("small", 100), ("b", 9 << 20)] {
        let values = vec![7u8; len];
        let dense = Dense::from_slice(&[len as u64], &values).unwrap();
        writer.add(name, &dense).unwrap();
    }
    writer.finish().unwrap();
    let file = File::open(&path).unwrap();
    let span = |name| file.tensor(name).unwrap().component("data").unwrap().blob.span;
    let (a, b) = (span("a"), span("b"));
    let bytes = fs::read(&path).unwrap();
    for (len, expected) in [
        (b.end(), vec![(a, 6 << 20), (b, 9 << 20)]),
        (b.end() - 1, vec![(a, 6 << 20)]),
        (a.end() - 1, vec![]),
    ] {
        fs::write(&path, &bytes[..usize::try_from(len).unwrap()]).unwrap();
        let done = zt!["repair", path, "--json"].exits(3).json();
        let expected: Vec<Value> = expected
            .into_iter()
            .map(|(span, decoded)| {
                json!({
                    "offset": span.offset(),
                    "length": span.byte_len(),
                    "decoded_length": decoded,
                })
            })
            .collect();
        assert_eq!(done["remains"], Value::from(expected), "{len}");
        let run = zt!["repair", path].exits(3);
        assert!(run.err.contains("names, shapes and types are unknown"), "{}", run.err);
        assert_eq!(run.err.contains("by their tables"), len >= a.end(), "{}", run.err);
    }
}

#[test]
fn one_of_two_manifests_can_be_chosen() {
    let dir = tempdir().unwrap();
    let (path, inner) = written(dir.path());
    let outer = dir.path().join("outer.zt");
    let mut writer = Writer::create(&outer).unwrap();
    add(&mut writer);
    let len = inner.len() as u64;
    writer.add("backup", &Dense::from_slice(&[len], &inner).unwrap()).unwrap();
    writer.finish().unwrap();
    let bytes = fs::read(&outer).unwrap();
    fs::write(&outer, &bytes[..bytes.len() - 40]).unwrap();

    let run = zt!["repair", outer].exits(3);
    assert!(run.err.contains("--manifest"), "{}", run.err);
    let found = zt!["repair", outer, "--dry-run", "--json"].exits(3).json();
    assert_eq!(found["verdict"], "doubtful");
    let other = &found["others"][0];
    assert_eq!(other["standing"], "doubtful");
    let offset = other["manifest"]["offset"].to_string();
    let out = dir.path().join("chosen.zt");
    zt!["repair", outer, "-o", out, "--manifest", offset].exits(0);
    zt!["diff", path, out].exits(0);
    zt!["repair", outer, "-o", out, "--force", "--manifest", "9"].exits(2);
}

#[test]
fn another_kind_of_file_is_refused_by_name() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("model.gguf");
    fs::write(&path, [&b"GGUF\x03\0\0\0"[..], &[0; 64]].concat()).unwrap();
    let run = zt!["repair", "-n", path].exits(5);
    assert!(run.err.contains("a gguf file cannot be repaired in place"), "{}", run.err);
}

/// 8 TiB of holes, which take no place on the disk and no time to search.
#[test]
#[cfg(target_os = "linux")]
fn a_sparse_file_is_searched_at_once() {
    let dir = tempdir().unwrap();
    let (path, bytes) = written(dir.path());
    let file = fs::File::options().write(true).open(&path).unwrap();
    if file.set_len(8 << 40).is_err() {
        return;
    }
    zt!["repair", path].exits(0);
    assert!(fs::read(&path).unwrap() == bytes);
}

/// A terabyte of holes behind the tensors of other kinds.
#[test]
#[cfg(target_os = "linux")]
fn holes_behind_tensors_are_not_read() {
    let dir = tempdir().unwrap();
    let (ours, _) = written(dir.path());
    for extension in ["gguf", "npz", "safetensors"] {
        let path = dir.path().join(format!("holes.{extension}"));
        zt!["convert", ours, path, "--drop-unsupported"].exits(0);
        let file = fs::File::options().write(true).open(&path).unwrap();
        if file.set_len(1 << 40).is_err() {
            return;
        }
        let run = zt!["verify", path];
        assert!(extension != "gguf" || run.code == Some(0), "{}", run.err);
        zt!["repair", path, "-o", dir.path().join("out.zt"), "--force"];
    }
}
