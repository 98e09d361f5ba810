//! Edits of safetensors and GGUF files, which are written anew.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{command, keys, names_in, run};
use serde_json::{Value, json};
use tempfile::tempdir;
use zt::File;
use zt_convert::{ConvertOptions, Input, Kinds};

/// A file of a kind with tensors of several types and the metadata of a model, in a folder of its own.
fn model(dir: &Path, extension: &str) -> PathBuf {
    let mut ours = Vec::new();
    let mut writer = zt::Writer::new(&mut ours).unwrap();
    let half: Vec<zt::formats::bf16> =
        (0..600_000u32).map(|at| zt::formats::bf16::from_bits((at % 30_000) as u16)).collect();
    writer.add("w.bf16", &zt::Dense::from_slice(&[600, 1000], &half).unwrap()).unwrap();
    writer.add("w.f32", &zt::Dense::from_slice(&[3], &[1.0f32, -2.0, 3.0]).unwrap()).unwrap();
    writer.add("b.i8", &zt::Dense::from_slice(&[2, 2], &[1i8, 2, 3, 4]).unwrap()).unwrap();
    let types = [("general.name", "string"), ("m.layers", "uint16"), ("m.scale", "float32")];
    let types = types.map(|(key, name)| zt::Value::array(vec![key.into(), name.into()]));
    let mut attributes: zt::Attributes = [("general.name", "old")].into();
    if extension == "gguf" {
        attributes.insert("m.layers", 12u64);
        attributes.insert("m.scale", 0.5);
        attributes.insert("gguf.types", zt::Value::array(types.to_vec()));
    }
    writer.set_attributes(attributes).unwrap();
    writer.finish().unwrap();
    let path = dir.join(format!("model.{extension}"));
    let kind = zt_convert::Kinds::builtin().of_extension(&path).unwrap();
    let input = Input::from(File::from_bytes(ours).unwrap());
    let mut bytes = Vec::new();
    Kinds::builtin().convert(&[input], &mut bytes, &ConvertOptions::new(kind)).unwrap();
    fs::write(&path, bytes).unwrap();
    path
}

/// Every tensor: name, shape, stored type and bytes, in the order of the names.
fn tensors(path: &Path) -> Vec<(String, Vec<u64>, String, Vec<u8>)> {
    let file = zt_convert::open(path).unwrap();
    let mut tensors: Vec<_> = file
        .tensors()
        .map(|tensor| {
            let tensor = tensor.unwrap();
            let bytes = tensor.bytes("data").unwrap().to_vec();
            let format = format!("{} {:?}", tensor.format(), tensor.dtype());
            (tensor.name().to_owned(), tensor.shape().to_vec(), format, bytes)
        })
        .collect();
    tensors.sort();
    tensors
}

fn attributes(path: &Path) -> Value {
    zt!["meta", "get", "--json", path].exits(0).json()["attributes"].clone()
}

#[test]
fn an_attribute_is_set_and_removed_and_every_tensor_stays() {
    for extension in ["safetensors", "gguf"] {
        let dir = tempdir().unwrap();
        let path = model(dir.path(), extension);
        let (before, old) = (tensors(&path), fs::read(&path).unwrap());
        let set = ["meta", "set", "--json"].map(std::ffi::OsStr::new);
        let arguments = |rest: &[&str]| {
            let mut command = command();
            command.args(set).arg(&path).args(rest);
            run(&mut command)
        };
        let dry = arguments(&["general.name", "new", "--dry-run"]).exits(0).json();
        assert_eq!(fs::read(&path).unwrap(), old, "{extension}");
        let done = arguments(&["general.name", "new"]).exits(0).json();
        assert_eq!(keys(&done), ["dry_run", "file", "file_size", "key", "new", "old"]);
        assert_eq!((&done["old"], &done["new"]), (&json!("old"), &json!("new")));
        assert_eq!(done["file_size"], fs::metadata(&path).unwrap().len());
        assert_eq!(dry["file_size"], done["file_size"]);
        assert_eq!(attributes(&path)["general.name"], "new");
        assert_eq!(tensors(&path), before, "{extension}");
        // The old value again gives the old file again: nothing else has changed.
        arguments(&["general.name", "old"]).exits(0);
        assert_eq!(fs::read(&path).unwrap(), old, "{extension}");
        // A new attribute from a file, with every byte of it.
        let template = dir.path().join("template.jinja");
        fs::write(&template, "{% for m in messages %}\n").unwrap();
        let of_file = format!("@{}", template.display());
        arguments(&["tokenizer.chat_template", &of_file]).exits(0);
        assert_eq!(attributes(&path)["tokenizer.chat_template"], "{% for m in messages %}\n");
        arguments(&["at", "@@home"]).exits(0);
        assert_eq!(attributes(&path)["at"], "@home");
        arguments(&["at", "@none"]).exits(4);
        zt!["meta", "rm", path, "at"].exits(0);
        zt!["meta", "rm", path, "tokenizer.chat_template"].exits(0);
        assert_eq!(fs::read(&path).unwrap(), old, "{extension}");
        let missing = zt!["meta", "rm", "--json", path, "at"].exits(2);
        assert_eq!(missing.error_code(), "not-found");
        assert_eq!(names_in(dir.path()).len(), 2);
    }
}

#[test]
fn an_attribute_of_gguf_keeps_its_type_or_gets_another() {
    let dir = tempdir().unwrap();
    let path = model(dir.path(), "gguf");
    let types = || {
        let file = zt_convert::open(&path).unwrap();
        let attributes = file.attributes().unwrap().unwrap();
        let types = attributes.get("gguf.types").unwrap().as_array().unwrap().to_vec();
        let text = |value: &zt::Value| value.as_str().unwrap().to_owned();
        let pair = |item: &zt::Value| {
            (text(&item.as_array().unwrap()[0]), text(&item.as_array().unwrap()[1]))
        };
        types.iter().map(pair).collect::<Vec<_>>()
    };
    let set = |rest: &[&str]| {
        let mut command = command();
        command.args(["meta", "set", "--json"]).arg(&path).args(rest);
        run(&mut command)
    };
    set(&["m.layers", "24"]).exits(0);
    set(&["m.scale", "0.1"]).exits(0);
    set(&["general.name", "7"]).exits(0);
    set(&["m.new", "7"]).exits(0);
    set(&["m.typed", "7", "--type", "u8"]).exits(0);
    set(&["m.list", "[1, 2]", "--type", "array[int64]"]).exits(0);
    let pair = |key: &str, name: &str| (key.to_owned(), name.to_owned());
    let expected = [
        pair("general.name", "string"),
        pair("m.layers", "uint16"),
        pair("m.scale", "float32"),
        pair("m.new", "uint32"),
        pair("m.typed", "uint8"),
        pair("m.list", "array[int64]"),
    ];
    assert_eq!(types(), expected);
    let found = attributes(&path);
    assert_eq!((&found["m.layers"], &found["general.name"]), (&json!(24), &json!("7")));
    assert_eq!(found["m.scale"], f64::from(0.1f32));
    set(&["m.layers", "24", "--type", "u64"]).exits(0);
    assert_eq!(types()[1], pair("m.layers", "uint64"));
    let before = fs::read(&path).unwrap();
    for wrong in [
        &["m.scale", "text"][..],
        &["m.typed", "256"],
        &["m.typed", "-1"],
        &["m.new", "{}"],
        &["m.typed", "7", "--type", "u128"],
    ] {
        let error = set(wrong).exits(2);
        assert_eq!(error.error_code(), "misuse", "{wrong:?}");
    }
    assert_eq!(fs::read(&path).unwrap(), before);
    // Other kinds have no types.
    let other = model(dir.path(), "safetensors");
    let mut command = command();
    command.args(["meta", "set"]).arg(other).args(["k", "1", "--type", "u8"]);
    run(&mut command).exits(2);
}

#[test]
fn tensors_are_renamed_and_removed() {
    for extension in ["safetensors", "gguf"] {
        let dir = tempdir().unwrap();
        let path = model(dir.path(), extension);
        let before = tensors(&path);
        let done = zt!["rename", "--json", path, "w.f32", "norm"].exits(0).json();
        assert_eq!(
            keys(&done),
            ["dry_run", "file", "file_size", "indexes", "new", "old", "renamed"]
        );
        let mut expected = before.clone();
        expected.iter_mut().find(|it| it.0 == "w.f32").unwrap().0 = "norm".to_owned();
        expected.sort();
        assert_eq!(tensors(&path), expected, "{extension}");
        zt!["rename", path, "--rule", "s/^(.)\\./model.\\1./"].exits(0);
        let names: Vec<String> = tensors(&path).into_iter().map(|it| it.0).collect();
        assert_eq!(names, ["model.b.i8", "model.w.bf16", "norm"]);
        let taken = zt!["rename", "--json", path, "norm", "model.b.i8"].exits(2);
        assert_eq!(taken.error_code(), "duplicate-name");
        assert_eq!(zt!["rename", "--json", path, "x", "y"].exits(2).error_code(), "not-found");

        let done = zt!["rm", "--json", path, "norm", "--glob", "*.i8"].exits(0).json();
        assert_eq!(done["removed"], json!(["model.b.i8", "norm"]));
        let left = tensors(&path);
        assert_eq!(left.len(), 1, "{extension}");
        assert_eq!(left[0].3, before.iter().find(|it| it.0 == "w.bf16").unwrap().3);
        assert_eq!(attributes(&path)["general.name"], "old");
        assert_eq!(zt!["rm", "--json", path, "x"].exits(2).error_code(), "not-found");
        zt!["verify", "--strict", path].exits(0);
    }
}

#[test]
fn a_conversion_sets_attributes() {
    let dir = tempdir().unwrap();
    let path = model(dir.path(), "gguf");
    for (name, layers) in
        [("out.zt", json!(24)), ("out.gguf", json!(24)), ("out.safetensors", json!("24"))]
    {
        let out = dir.path().join(name);
        zt!["convert", path, out, "--set", "m.layers=24", "--set", "k=a=b"].exits(0);
        let found = attributes(&out);
        assert_eq!((&found["m.layers"], &found["k"]), (&layers, &json!("a=b")), "{name}");
    }
    for wrong in ["k", "=v"] {
        zt!["convert", path, dir.path().join("x.zt"), "--set", wrong].exits(2);
    }
}

#[cfg(unix)]
#[test]
fn a_file_that_cannot_be_replaced_is_refused() {
    let dir = tempdir().unwrap();
    let path = model(dir.path(), "safetensors");
    // A set, by its index.
    let set = dir.path().join("set");
    zt!["split", path, "-o", set, "--max-shard-size", "100", "--to", "safetensors"].exits(0);
    let error =
        zt!["meta", "set", "--json", set.join("model.safetensors.index.json"), "k", "v"].exits(5);
    assert_eq!(error.error_code(), "unsupported");
    // A file of a cache of the Hub, by a link to it.
    let blobs = dir.path().join("blobs");
    fs::create_dir(&blobs).unwrap();
    let blob = blobs.join("0".repeat(64));
    fs::rename(&path, &blob).unwrap();
    std::os::unix::fs::symlink(&blob, &path).unwrap();
    let error = zt!["meta", "set", "--json", path, "k", "v"].exits(5);
    assert_eq!(error.error_code(), "unsupported");
    zt!["rm", path, "w.f32"].exits(5);
    // A link to any other file stays, and the file gets the rights of the old one.
    use std::os::unix::fs::PermissionsExt;
    let other = dir.path().join("other.safetensors");
    fs::remove_file(&path).unwrap();
    fs::rename(&blob, &other).unwrap();
    fs::set_permissions(&other, fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(&other, &path).unwrap();
    zt!["meta", "set", path, "k", "v"].exits(0);
    assert!(fs::symlink_metadata(&path).unwrap().is_symlink());
    assert_eq!(attributes(&other)["k"], "v");
    assert_eq!(fs::metadata(&other).unwrap().permissions().mode() & 0o777, 0o640);
}

/// A set of four tensors of 4000 bytes in two shards.
fn set_of(dir: &Path, extension: &str) -> PathBuf {
    let whole = dir.join("whole.zt");
    let mut writer = zt::Writer::create(&whole).unwrap();
    for name in ["a", "b", "c", "d"] {
        let dense = zt::Dense::from_slice(&[1000], &[1.0f32; 1000]).unwrap();
        writer.add(name, &dense).unwrap();
    }
    writer.finish().unwrap();
    let set = dir.join(extension);
    zt!["split", whole, "--to", extension, "--max-shard-size", "9KB", "--name", "model", "-o", set]
        .exits(0);
    set
}

fn names_of(index: &Path) -> Vec<String> {
    let listed = zt!["ls", "--json", index].exits(0).json();
    let objects = listed["objects"].as_array().unwrap().iter();
    objects.map(|object| object["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_index_of_a_set_changes_with_its_shards() {
    for extension in ["safetensors", "zt"] {
        let dir = tempdir().unwrap();
        let set = set_of(dir.path(), extension);
        let index = set.join(format!("model.{extension}.index.json"));
        let second = set.join(format!("model-00002-of-00002.{extension}"));
        let map = || -> Value { serde_json::from_slice(&fs::read(&index).unwrap()).unwrap() };
        // A shard alone.
        let old = fs::read(&index).unwrap();
        zt!["rm", second, "d", "--dry-run"].exits(0);
        assert_eq!(fs::read(&index).unwrap(), old);
        let done = zt!["rm", second, "d", "--json"].exits(0).json();
        assert_eq!(done["indexes"], json!([index.to_str().unwrap()]));
        assert_eq!(map()["metadata"]["total_size"], 12_000);
        zt!["rename", second, "c", "x"].exits(0);
        assert_eq!(names_of(&index), ["a", "b", "x"]);
        if extension == "zt" {
            let other = dir.path().join("other.zt");
            zt!["convert", dir.path().join("whole.zt"), other, "--rename", "s/^/o./"].exits(0);
            let run = zt!["append", second, other, "--json"].exits(5);
            assert!(run.err.contains("is a shard of"), "{}", run.err);
        }
        // The set, by its folder and by its index.
        let done = zt!["rename", set, "--rule", "s/^/m./", "--json"].exits(0).json();
        assert_eq!(done["renamed"].as_array().unwrap().len(), 3);
        assert_eq!(done["indexes"].as_array().unwrap().len(), 1);
        let done = zt!["rm", index, "--glob", "m.[bx]", "--json"].exits(0).json();
        assert_eq!(done["removed"], json!(["m.b", "m.x"]));
        assert_eq!(names_of(&index), ["m.a"]);
        assert_eq!(map()["metadata"]["total_size"], 4000);
        zt!["verify", set].exits(0);
        zt!["rm", set, "nothing"].exits(2);
    }
}

/// Nothing is written if the index cannot follow.
#[test]
fn a_name_of_another_shard_is_no_new_name() {
    let dir = tempdir().unwrap();
    let set = set_of(dir.path(), "safetensors");
    let first = set.join("model-00001-of-00002.safetensors");
    let old = fs::read(&first).unwrap();
    let run = zt!["rename", first, "a", "d", "--json"].exits(2);
    assert_eq!(run.error_code(), "duplicate-name");
    assert_eq!(fs::read(&first).unwrap(), old);
}
