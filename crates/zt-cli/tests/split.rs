//! `zt split` and `zt merge`: sharded sets.

mod common;

use std::fs;

use common::{keys, names_in, sample};
use serde_json::json;
use tempfile::tempdir;
use zt::{Dense, Writer};

#[test]
fn split_and_merge_are_inverse() {
    let dir = tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let (whole, out) = (path("model.safetensors"), path("shards"));
    let ours = path("ours.zt");
    let mut writer = Writer::create(&ours).unwrap();
    for name in ["a", "b", "c"] {
        let dense = Dense::from_slice(&[1000], &[1.0f32; 1000]).unwrap();
        writer.add(name, &dense).unwrap();
    }
    writer.finish().unwrap();
    zt!["convert", ours, whole].exits(0);

    let run = zt!["split", whole, "--max-shard-size", "8KB", "-o", out, "--json"].exits(0);
    let document = run.json();
    let expected = [
        "casts",
        "damaged",
        "excluded",
        "file",
        "index",
        "kind",
        "left_out",
        "removed",
        "shards",
        "total_size",
        "warnings",
    ];
    assert_eq!(keys(&document), expected);
    assert_eq!(document["kind"], "safetensors");
    assert_eq!(document["total_size"], 12_000);
    let index = out.join("model.safetensors.index.json");
    assert_eq!(document["index"], index.to_str().unwrap());
    let shard = &document["shards"][1];
    assert_eq!(keys(shard), ["bytes", "file_size", "objects", "path"]);
    assert_eq!((&shard["objects"], &shard["bytes"]), (&json!(1), &json!(4000)));
    let names = [
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
        "model.safetensors.index.json",
    ];
    assert_eq!(names_in(&out), names);

    // Every command opens the set by its index.
    let listed = zt!["ls", "--json", index].exits(0).json();
    assert_eq!(listed["objects"].as_array().unwrap().len(), 3);
    zt!["verify", index].exits(0);
    let back = path("back.safetensors");
    zt!["merge", index, back].exits(0);
    assert_eq!(fs::read(&back).unwrap(), fs::read(&whole).unwrap());
    let shards = [out.join(names[0]), out.join(names[1])];
    zt!["merge", shards[1], shards[0], back].exits(2);
    zt!["merge", shards[1], shards[0], back, "--force"].exits(0);
    assert_eq!(fs::read(&back).unwrap(), fs::read(&whole).unwrap());
    // A duplicate name is an error.
    let twice = zt!["merge", index, shards[0], path("twice.zt"), "--json"].exits(2);
    assert_eq!(twice.error_code(), "duplicate-name");
}

#[test]
fn a_set_of_zt_files_keeps_every_format_and_attribute() {
    let dir = tempdir().unwrap();
    let whole = sample(dir.path());
    let out = dir.path().join("shards");
    zt!["split", whole, "--max-shard-size", "64B", "--zstd", "-o", out].exits(0);
    let index = out.join(format!("{}.zt.index.json", whole.file_stem().unwrap().to_str().unwrap()));
    let list = |path| {
        let mut document = zt!["ls", "--json", path].exits(0).json();
        assert_eq!(document["kind"], "zt");
        document["attributes"].take()
    };
    assert_eq!(list(&index), list(&whole));
    let content = |path| zt!["hash", "--json", path].exits(0).json()["content"].take();
    assert_eq!(content(&index), content(&whole));
    let info = zt!["info", "--json", index].exits(0).json();
    assert_eq!(info["objects"], zt!["info", "--json", whole].exits(0).json()["objects"]);
}

#[test]
fn a_set_may_have_a_name_of_its_own() {
    let dir = tempdir().unwrap();
    let (whole, out) = (sample(dir.path()), dir.path().join("shards"));
    zt!["split", whole, "--max-shard-size", "64B", "--name", "other.v2", "-o", out].exits(0);
    for name in names_in(&out) {
        assert!(name.starts_with("other.v2"), "{name}");
    }
    zt!["verify", out.join("other.v2.zt.index.json")].exits(0);
    for name in ["", ".", "..", "a/b", "../a", "a\\b", "/a"] {
        let out = dir.path().join("none/at/all");
        let run = zt!["split", whole, "--name", name, "-o", out, "--json"].exits(2);
        assert_eq!(run.error_code(), "misuse", "{name:?}");
        assert!(!dir.path().join("none").exists());
    }
}

#[test]
fn a_failed_split_leaves_nothing() {
    let dir = tempdir().unwrap();
    let whole = sample(dir.path());
    let out = dir.path().join("shards");
    // Formats that safetensors cannot represent.
    let run = zt!["split", whole, "--to", "safetensors", "-o", out, "--json"].exits(5);
    assert_eq!(run.error_code(), "lossy");
    assert!(!out.exists());
    for size in ["0", "5 apples", "-1"] {
        zt!["split", whole, format!("--max-shard-size={size}"), "-o", out].exits(2);
    }
    let run = zt!["split", whole, "--max-shard-size", "-5GB"].exits(2);
    assert!(run.err.contains("-5GB"), "{}", run.err);
    zt!["split", whole, "--to", "safetensors", "--zstd", "-o", out].exits(2);
    zt!["split", whole, "--to", "npz", "-o", out].exits(2);
    let npy = dir.path().join("w.npy");
    zt!["extract", whole, "w", "-o", npy].exits(0);
    // For a kind without sets the error names the options.
    let run = zt!["split", npy, "-o", out].exits(2);
    assert!(run.err.contains("--to zt"), "{}", run.err);
    zt!["split", npy, "--to", "zt", "-o", out].exits(0);
    assert_eq!(names_in(&out), ["w.zt"]);
}

#[test]
fn split_takes_the_options_of_convert() {
    let dir = tempdir().unwrap();
    let (whole, out) = (sample(dir.path()), dir.path().join("shards"));
    let run =
        zt!["split", whole, "-o", out, "--dtype", "f16", "--dense", "--digest", "sha256", "--json"];
    let document = run.exits(0).json();
    let made = document["shards"][0]["path"].as_str().unwrap();
    let info = zt!["info", "--json", made].exits(0).json();
    assert_eq!(info["digests"]["sha256"], 7);
    assert_eq!(info["bytes_by_dtype"]["f16"], 12 + 4 + 4);
    assert_eq!(keys(&info["bytes_by_format"]), ["dense"]);
    for flag in ["--digest=none", "--align=128", "--no-dedup", "--planes"] {
        zt!["split", whole, "--to", "safetensors", "--dense", flag, "-o", out].exits(2);
    }
}

#[test]
fn lossy_skips_objects_that_cannot_be_represented() {
    let dir = tempdir().unwrap();
    let (whole, out) = (common::of_unknown_format(dir.path()), dir.path().join("shards"));
    let run = zt!["split", whole, "--to", "safetensors", "-o", out, "--json"].exits(5);
    assert!(run.err.contains("--drop-unsupported"), "{}", run.err);
    let run = zt!["split", whole, "--to", "safetensors", "-o", out, "--lossy", "--json"];
    let document = run.exits(0).json();
    assert_eq!(document["left_out"], json!(["blocks"]));
    assert_eq!(document["warnings"][0]["object"], "blocks");
    let run = zt!["split", whole, "--to", "safetensors", "-o", out, "--lossy", "-f"];
    let text = run.exits(0).text();
    assert!(text.ends_with(": blocks\n"), "{text}");
}

#[test]
fn a_set_is_split_again_to_another_folder_or_replaced() {
    let dir = tempdir().unwrap();
    let (whole, out) = (sample(dir.path()), dir.path().join("shards"));
    zt!["split", whole, "--max-shard-size", "64B", "-o", out].exits(0);
    let index = out.join("model.zt.index.json");
    let before = names_in(&out);
    let run = zt!["split", index, "--json"].exits(2);
    assert_eq!(run.error_code(), "overwrite");
    assert!(run.err.contains("-o DIR"), "{}", run.err);
    // A set does not replace itself with less than all of it.
    let run = zt!["split", index, "--include", "w", "--force", "--json"].exits(2);
    assert_eq!(run.error_code(), "overwrite");
    assert_eq!(names_in(&out), before);
    let content = |path| zt!["hash", "--json", path].exits(0).json()["content"].take();
    let whole_content = content(&whole);
    zt!["split", index, "--max-shard-size", "48B", "--force"].exits(0);
    assert_eq!(content(&index), whole_content);
    let again = dir.path().join("again");
    zt!["split", index, "-o", again].exits(0);
    assert_eq!(names_in(&again), ["model.zt"]);
    let before = names_in(&out);
    let run = zt!["split", whole, "-o", out, "--force", "--json"].exits(0);
    assert_eq!(run.json()["removed"].as_array().unwrap().len(), before.len());
    assert_eq!(names_in(&out), ["model.zt"]);
}

#[cfg(unix)]
#[test]
fn a_name_that_is_not_utf_8_is_refused_before_a_folder_is_made() {
    use std::os::unix::ffi::OsStrExt;
    let dir = tempdir().unwrap();
    let path = dir.path().join(std::ffi::OsStr::from_bytes(b"\xff.zt"));
    fs::rename(sample(dir.path()), &path).unwrap();
    let out = dir.path().join("shards");
    zt!["split", path, "-o", out].exits(2);
    assert!(!out.exists());
    zt!["ls", path].exits(0);
}

#[test]
fn a_file_that_fits_one_shard_stays_as_it_is() {
    let dir = tempdir().unwrap();
    let path = sample(dir.path());
    let before = fs::read(&path).unwrap();
    let run = zt!["split", path].exits(0);
    assert!(run.text().contains("fits in one shard: nothing to do"));
    let document = zt!["split", path, "--json", "--force"].exits(0).json();
    assert_eq!(document["index"], serde_json::Value::Null);
    assert_eq!(document["shards"][0]["path"], path.to_str().unwrap());
    assert_eq!(document["shards"][0]["objects"], 7);
    assert_eq!(document["shards"][0]["file_size"], before.len());
    assert_eq!(names_in(dir.path()), ["model.zt"]);
    assert!(fs::read(&path).unwrap() == before);
    // What would be another file is refused, and another place is taken.
    zt!["split", path, "--zstd"].exits(2);
    zt!["split", path, "--include", "w"].exits(2);
    let out = dir.path().join("out");
    zt!["split", path, "-o", out].exits(0);
    assert_eq!(names_in(&out), ["model.zt"]);
}

#[test]
fn a_gguf_file_becomes_a_numbered_set_without_an_index() {
    let dir = tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let (ours, whole, out) = (path("ours.zt"), path("m.gguf"), path("parts"));
    let mut writer = Writer::create(&ours).unwrap();
    for name in ["c", "a", "b"] {
        let dense = Dense::from_slice(&[1000], &[1.0f32; 1000]).unwrap();
        writer.add(name, &dense).unwrap();
    }
    writer.finish().unwrap();
    zt!["convert", ours, whole].exits(0);
    let document = zt!["split", whole, "--max-shard-size", "8KB", "-o", out, "--json"];
    let document = document.exits(0).json();
    assert_eq!((&document["kind"], &document["index"]), (&json!("gguf"), &json!(null)));
    let names = ["m-00001-of-00002.gguf", "m-00002-of-00002.gguf"];
    assert_eq!(names_in(&out), names);
    let back = path("back.gguf");
    for inputs in [&names[..1], &names[1..], &names[..]] {
        let inputs = inputs.iter().map(|name| out.join(name));
        let mut command = common::command();
        let command = command.args(["merge", "-f"]).args(inputs).arg(&back);
        common::run(command).exits(0);
        assert_eq!(fs::read(&back).unwrap(), fs::read(&whole).unwrap());
    }
    // The parts of the parts are named after the set.
    let second = out.join(names[1]);
    let run = zt!["split", second, "--max-tensors", "1"].exits(0);
    assert!(run.text().contains("m-00003-of-00003.gguf: 1 object"), "{}", run.text());
    assert!(
        run.text().ends_with("m-00001-of-00003.gguf: gguf; 3 shards, 11.7 KiB\n"),
        "{}",
        run.text()
    );
    let run = zt!["split", second, "--max-shard-size", "8KB", "--json", "-f"].exits(2);
    assert_eq!(run.error_code(), "overwrite");
    zt!["split", whole, "--max-tensors", "0"].exits(2);
}
