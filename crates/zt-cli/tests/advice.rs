//! Messages that say what to do, and outputs that fit a terminal.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::sample;
use tempfile::tempdir;
use zt::{Dense, Value, Writer};

/// A file with an object of this name.
fn with_name(dir: &Path, name: &str) -> PathBuf {
    let path = dir.join("named.zt");
    let mut writer = Writer::create(&path).unwrap();
    let value = Dense::from_slice(&[1], &[1f32]).unwrap();
    writer.add(name, &value).unwrap();
    writer.finish().unwrap();
    path
}

#[test]
fn a_remedy_that_keeps_all_values_comes_first() {
    let dir = tempdir().unwrap();
    let out = dir.path().join("out.gguf");
    let path = with_name(dir.path(), &"n".repeat(64));
    let run = zt!["convert", path, out].exits(5);
    let (rename, drop) = (run.err.find("--rename"), run.err.find("--drop-unsupported"));
    assert!(rename.unwrap() < drop.unwrap(), "{}", run.err);
    let run = zt!["convert", path, out, "--rename", "s/n{60}//"].exits(0);
    assert!(run.err.contains("warning[architecture]"), "{}", run.err);

    let complex = dir.path().join("complex.zt");
    let mut writer = Writer::create(&complex).unwrap();
    let values = [zt::formats::Complex::new(1f32, 2.0)];
    writer
        .add("c", &Dense::from_slice(&[1], &values).unwrap())
        .unwrap();
    writer.finish().unwrap();
    let run = zt!["convert", complex, out, "-f"].exits(5);
    assert!(
        !run.err.contains("--dtype"),
        "no cast of complex: {}",
        run.err
    );
}

#[test]
fn a_type_that_can_be_cast_is_not_dropped() {
    let dir = tempdir().unwrap();
    let fp8 = sample(dir.path());
    let out = dir.path().join("out.gguf");
    let run = zt!["convert", fp8, out, "--include", "fp8"].exits(5);
    let (cast, drop) = (
        run.err.find("--dtype f32"),
        run.err.find("--drop-unsupported"),
    );
    assert!(cast.unwrap() < drop.unwrap(), "{}", run.err);
    zt!["convert", fp8, out, "--include", "fp8", "--dtype", "f32"].exits(0);
}

#[test]
fn long_lists_of_attributes_are_shortened_for_people() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("tokens.zt");
    let mut writer = Writer::create(&path).unwrap();
    let tokens = (0..1000).map(|at| Value::from(format!("<{at}>"))).collect();
    writer.set_attributes([("tokens", Value::array(tokens))].into());
    writer.finish().unwrap();
    for key in [None, Some("tokens")] {
        let get = ["meta", "get", path.to_str().unwrap()]
            .into_iter()
            .chain(key);
        let short = common::zt(get.clone()).exits(0).text();
        assert!(short.contains("<3>") && !short.contains("<4>"), "{short}");
        assert!(short.contains("996 of 1000 values more: --full"), "{short}");
        let all = common::zt(get.clone().chain(["--full"])).exits(0).text();
        assert!(all.contains("<999>"));
        let json = common::zt(get.chain(["--json"])).exits(0).text();
        assert!(json.contains("<999>"));
    }
}

#[test]
fn an_attribute_needs_a_name() {
    let dir = tempdir().unwrap();
    let path = sample(dir.path());
    let before = fs::read(&path).unwrap();
    zt!["meta", "set", path, "", "v"].exits(2);
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_missing_folder_and_a_folder_as_output_are_named() {
    let dir = tempdir().unwrap();
    let path = sample(dir.path());
    let nowhere = dir.path().join("nodir/out.zt");
    let run = zt!["convert", path, nowhere].exits(4);
    assert!(run.err.contains("nodir does not exist"), "{}", run.err);
    let run = zt!["convert", path, dir.path()].exits(2);
    assert!(run.err.contains("is a folder"), "{}", run.err);
}

#[test]
fn the_beginning_of_a_name_leads_to_the_names() {
    let dir = tempdir().unwrap();
    let path = with_name(dir.path(), "pooler.dense.bias");
    let run = zt!["show", path, "pooler"].exits(2);
    assert!(
        run.err.contains("did you mean \"pooler.dense.bias\"?"),
        "{}",
        run.err
    );
    let other = sample(dir.path());
    zt!["append", path, other].exits(0);
    let run = zt!["show", path, "pooler.dens.bias"].exits(2);
    assert!(run.err.contains("pooler.dense.bias"), "{}", run.err);
}

#[test]
fn swapped_arguments_are_noticed() {
    let dir = tempdir().unwrap();
    let path = sample(dir.path());
    let out = dir.path().join("out");
    for run in [
        zt!["show", "w", path],
        zt!["cat", "w", path],
        zt!["extract", "w", path, "-o", out],
    ] {
        assert!(run.err.contains("the file comes first"), "{}", run.err);
    }
}

#[test]
fn a_mistyped_option_gets_no_tip_about_values() {
    let run = zt!["ls", "--statistics", "x.zt"].exits(2);
    assert!(!run.err.contains("as a value"), "{}", run.err);
    let run = zt!["ls", "--sorted", "x.zt"].exits(2);
    assert!(run.err.contains("--sort"), "{}", run.err);
}

#[test]
fn two_objects_of_one_new_name_are_both_named() {
    let dir = tempdir().unwrap();
    let path = with_name(dir.path(), "first");
    let other = sample(dir.path());
    zt!["append", path, other].exits(0);
    let run = zt!["ls", path, "--rename", "s/.*/same/"].exits(2);
    assert!(run.err.contains("same: both \""), "{}", run.err);
    assert!(run.err.contains("get this name"), "{}", run.err);
}

#[cfg(unix)]
#[test]
fn a_uri_of_json_opens_again() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let dir = tempdir().unwrap();
    let path = dir.path().join(OsStr::from_bytes(b"caf\xe9 %41.zt"));
    if fs::copy(sample(dir.path()), &path).is_err() {
        return; // Not every file system has such names.
    }
    let uri = zt!["ls", "--json", path].exits(0).json()["file"].clone();
    let uri = uri.as_str().unwrap();
    assert!(uri.contains("caf%E9%20%2541.zt"), "{uri}");
    zt!["ls", uri].exits(0);
    zt!["meta", "set", uri, "k", "v"].exits(0);
    let again = zt!["meta", "get", "--json", path].exits(0).json();
    assert_eq!(again["attributes"]["k"], "v");
}
