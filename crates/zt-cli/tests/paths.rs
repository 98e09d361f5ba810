//! Paths that are not UTF-8, in the documents of `--json`.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use common::{command, of_floats, run, zt};
use serde_json::Value;
use tempfile::tempdir;

/// All texts of a document that are URIs of files, as paths.
fn paths(document: &Value) -> Vec<PathBuf> {
    match document {
        Value::String(text) => {
            let path = text.strip_prefix("file://").map(decoded);
            path.into_iter().collect()
        }
        Value::Array(values) => values.iter().flat_map(paths).collect(),
        Value::Object(map) => map.values().flat_map(paths).collect(),
        _ => Vec::new(),
    }
}

fn decoded(text: &str) -> PathBuf {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at(2);
        bytes.push(u8::from_str_radix(digits, 16).unwrap());
        bytes.extend(rest.bytes());
    }
    OsString::from_vec(bytes).into()
}

#[test]
fn a_path_that_is_not_utf_8_can_be_opened_again() {
    let dir = tempdir().unwrap();
    let folder = dir.path().join(OsStr::from_bytes(b"caf\xe9 %41"));
    fs::create_dir(&folder).unwrap();
    of_floats(&folder.join("a.zt"), &[1.0]);
    of_floats(&folder.join("b.zt"), &[1.0]);
    fs::write(folder.join("SUMS"), zt!["hash", "--sums", folder].exits(0).out).unwrap();
    let at = |name: &str| folder.join(name).into_os_string();
    let rename = "--rename=s/w/v/";
    // A `@` stands for the folder.
    for (arguments, count) in [
        (&["ls", "@a.zt"][..], 1),
        (&["ls", "@a.zt", "@b.zt"], 2),
        (&["info", "@a.zt"], 1),
        (&["verify", "@a.zt"], 1),
        (&["hash", "@a.zt"], 1),
        (&["hash", "--check", "@SUMS"], 2),
        (&["bench", "@a.zt"], 1),
        (&["diff", "@a.zt", "@b.zt"], 2),
        (&["convert", "@a.zt", "@c.safetensors"], 2),
        (&["split", "@a.zt", "-o", "@set"], 2),
        (&["extract", "@a.zt", "w", "-o", "@w.npy"], 2),
        (&["quantize", "@a.zt", "@q.zt", "--include=w"], 3),
        (&["append", "@b.zt", "@a.zt", rename], 2),
        (&["rename", "@b.zt", "v", "x"], 1),
        (&["rm", "@b.zt", "x"], 1),
        (&["meta", "set", "@b.zt", "k", "v"], 1),
        (&["meta", "get", "@b.zt"], 1),
        (&["compact", "@b.zt"], 1),
        (&["repair", "@b.zt"], 1),
        (&["repair", "@b.zt", "-o", "@saved.zt"], 2),
    ] {
        let arguments = arguments.iter().map(|text| match text.strip_prefix('@') {
            Some(name) => at(name),
            None => OsString::from(text),
        });
        let arguments: Vec<OsString> = arguments.chain(["--json".into()]).collect();
        let document = zt(&arguments).exits(0).json();
        let paths = paths(&document);
        assert_eq!(paths.len(), count, "{arguments:?} {document}");
        for path in paths {
            assert!(path.starts_with(&folder) && path.is_file(), "{document}");
        }
    }
    // An error, and a relative path.
    let missing = OsStr::from_bytes(b"\xff.zt");
    let mut command = command();
    let command = command.current_dir(&folder).args(["ls", "--json"]);
    let document = run(command.arg(missing)).exits(4).json();
    assert_eq!(paths(&document), [folder.join(missing)]);
}

#[test]
fn only_a_uri_begins_as_one() {
    let dir = tempdir().unwrap();
    of_floats(&dir.path().join("file:é.zt"), &[1.0]);
    let document = run(command().current_dir(&dir).args(["ls", "--json", "file:é.zt"]));
    let document = document.exits(0).json();
    assert_eq!(paths(&document), [dir.path().join("file:é.zt")]);
    let document = zt!["ls", "--json", dir.path().join("file:é.zt")].json();
    assert!(document["file"].as_str().unwrap().ends_with("/file:é.zt"));
}
