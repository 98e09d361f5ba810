//! `zt bench`: operations and bytes, but no times.

mod common;

use common::{damaged, keys, sample};
use serde_json::Value;
use tempfile::tempdir;

#[test]
fn every_operation_counts_all_bytes() {
    let dir = tempdir().unwrap();
    let path = sample(dir.path());
    let document = zt!["bench", "--json", path, "--rounds", "1", "--jobs", "1"].exits(0).json();
    let expected =
        ["decoded_size", "file", "file_size", "jobs", "kind", "objects", "operations", "rounds"];
    assert_eq!(keys(&document), expected);
    assert_eq!(document["file_size"], path.metadata().unwrap().len());
    let operations = document["operations"].as_array().unwrap();
    let names = operations.iter().map(|operation| operation["operation"].as_str().unwrap());
    let expected = [
        "file",
        "memory",
        "open",
        "stream",
        "own",
        "verify",
        "raw",
        "zstd-1",
        "zstd-3",
        "zstd-auto",
    ];
    assert_eq!(names.collect::<Vec<_>>(), expected);
    for operation in operations {
        let bytes = match operation["operation"].as_str().unwrap() {
            "file" => &document["file_size"],
            "open" => &Value::Null,
            "memory" => {
                let copied = operation["bytes"].as_u64().unwrap();
                assert_eq!(copied, 64 << 20, "more than a cache holds, also for a small file");
                continue;
            }
            _ => &document["decoded_size"],
        };
        assert_eq!(&operation["bytes"], bytes, "{operation}");
    }
    let raw = &operations[6]["output_size"];
    assert!(raw.as_u64() > document["decoded_size"].as_u64());
}

#[test]
fn text_has_a_line_for_each_operation() {
    let dir = tempdir().unwrap();
    let text = zt!["bench", sample(dir.path()), "--rounds", "2"].exits(0).text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 12, "{text}");
    assert!(lines[0].starts_with("OPERATION"), "{text}");
    assert!(lines[10].starts_with("zstd-auto"), "{text}");
    assert!(lines[11].contains("2 rounds"), "{text}");
}

#[test]
fn a_damaged_file_is_not_measured() {
    let dir = tempdir().unwrap();
    let run = zt!["bench", "--json", damaged(dir.path())].exits(1);
    assert_eq!(run.error_code(), "digest-mismatch");
    let text = dir.path().join("text");
    std::fs::write(&text, "no tensors").unwrap();
    zt!["bench", text].exits(3);
}
