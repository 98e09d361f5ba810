//! The documents of `--json`, with all their keys.

mod common;

use std::fs;

use common::{attributes, bytes, damaged, faulty, keys, of_sizes, of_unknown_format, sample};
use serde_json::json;
use tempfile::tempdir;
use zt::ggml::{BlockType, Blocks};
use zt::{Coo, Dense, Writer};

#[test]
fn ls_lists_everything_that_the_file_says() {
    let dir = tempdir().unwrap();
    let path = sample(dir.path());
    let document = zt!["ls", "--json", path].exits(0).json();
    let expected =
        ["attributes", "file", "file_size", "kind", "layout", "objects", "version", "warnings"];
    assert_eq!(keys(&document), expected);
    assert_eq!(document["kind"], "zt");
    assert_eq!(document["layout"], "1.2");
    assert_eq!(document["version"], "1.2.0");
    assert_eq!(document["file_size"], path.metadata().unwrap().len());
    assert_eq!(document["file"], path.to_str().unwrap());
    assert_eq!(document["warnings"], json!([]));

    let objects = document["objects"].as_array().unwrap();
    let names: Vec<_> = objects.iter().map(|object| object["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["w", "half", "fp8", "complex", "flags", "scalar", "graph"]);
    let w = &objects[0];
    assert_eq!(keys(w), ["attributes", "components", "fault", "format", "name", "shape", "type"]);
    assert_eq!((&w["shape"], &w["format"]), (&json!([2, 3]), &json!("dense")));
    assert_eq!((&w["fault"], &w["attributes"]), (&json!(null), &json!({})));
    let data = &w["components"][0];
    let expected =
        ["decoded_length", "digest", "dtype", "encoding", "length", "offset", "role", "type"];
    assert_eq!(keys(data), expected);
    assert_eq!((&data["role"], &data["dtype"]), (&json!("data"), &json!("f32")));
    assert_eq!((&data["type"], &data["encoding"]), (&json!(null), &json!("raw")));
    assert_eq!((&data["offset"], &data["length"]), (&json!(64), &json!(24)));
    assert_eq!(data["decoded_length"], 24);
    let digest = data["digest"].as_str().unwrap();
    let sum = digest.strip_prefix("crc32c:0x").unwrap();
    assert!(sum.len() == 8 && sum == sum.to_ascii_uppercase(), "{digest}");
    assert_eq!(objects[2]["components"][0]["type"], "f8_e4m3fn");
    assert_eq!(objects[6]["components"].as_array().unwrap().len(), 3);
}

#[test]
fn attributes_of_every_cbor_type_have_json() {
    let dir = tempdir().unwrap();
    let document = zt!["ls", "--json", sample(dir.path())].exits(0).json();
    let expected = json!({
        "text": "größe",
        "large": u64::MAX,
        "bytes": {"$bytes": "AP8="},
        "list": [true, null],
        "map": {"1": "one"},
        "tag": {"$tag": 1, "value": 5},
        "nan": {"$float": "nan"},
        "inf": {"$float": "-inf"},
        "float": 2.0,
        "undefined": null,
        "simple": null,
    });
    let mut found = document["attributes"].clone();
    // serde_json's values do not hold this integer exactly.
    assert!(found.as_object_mut().unwrap().remove("least").unwrap().is_number());
    assert_eq!(found, expected);
    assert_eq!(attributes().len(), expected.as_object().unwrap().len() + 1);
    let text = zt!["ls", "--json", sample(dir.path())].text();
    assert!(text.contains("-18446744073709551616"), "{text}");
}

#[test]
fn ls_lists_the_known_fields_of_a_faulty_object() {
    let dir = tempdir().unwrap();
    let document = zt!["ls", "--json", faulty(dir.path())].exits(0).json();
    let bad = &document["objects"][0];
    assert_eq!(bad["name"], "bad");
    assert_eq!(keys(&bad["fault"]), ["code", "component", "message"]);
    assert_eq!(
        (&bad["fault"]["code"], &bad["fault"]["component"]),
        (&json!("dtype"), &json!("data"))
    );
    assert_eq!((&bad["shape"], &bad["format"]), (&json!([1]), &json!("dense")));
    assert_eq!(bad["components"][0]["dtype"], "f99");
    assert_eq!(bad["components"][0]["offset"], 64);
    assert_eq!(document["objects"][1]["fault"], json!(null));
}

#[test]
fn ls_sums_objects_by_the_parts_of_their_names() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("model.zt");
    let mut writer = Writer::create(&path).unwrap();
    for at in [0usize, 1, 2, 10] {
        let values = vec![0f32; 256 * (at + 1)];
        let dense = Dense::from_slice(&[values.len() as u64], &values).unwrap();
        writer.add(&format!("layers.{at}.weight"), &dense).unwrap();
        writer.add(&format!("layers.{at}.b/ias"), &dense).unwrap();
    }
    let dense = Dense::from_slice(&[2], &[1u8, 2]).unwrap();
    writer.add("embed.\x1b", &dense).unwrap();
    writer.finish().unwrap();

    let text = zt!["ls", "--tree", "--depth=2", path].exits(0).text();
    let expected = "\
NAME          OBJECTS  PARAMETERS      SIZE
embed.\\u{1b}        1           2       2 B
layers              8        8704  34.0 KiB
  0                 2         512   2.0 KiB
  1                 2        1024   4.0 KiB
  2                 2        1536   6.0 KiB
  10                2        5632  22.0 KiB
9 objects, 34.0 KiB logical, ";
    assert!(text.starts_with(expected), "{text}");
    let sorted = zt!["ls", "--tree", "--sort=size", path].exits(0).text();
    let third = sorted.lines().nth(2).unwrap();
    assert!(third.starts_with("  10 "), "{sorted}");

    let document = zt!["ls", "--json", "--tree", path].exits(0).json();
    assert_eq!(document["objects"].as_array().unwrap().len(), 9);
    let expected = json!({
        "name": "layers.2", "depth": 1, "objects": 2, "parameters": 1536,
        "decoded_size": 6144, "stored_size": 6144,
    });
    let branches = document["tree"].as_array().unwrap();
    assert!(branches.contains(&expected), "{branches:?}");
    assert_eq!(branches.len(), 2 + 4 * 3);
    let run = zt!["ls", "--json", "--depth=2", path].exits(2);
    assert_eq!(run.json()["error"]["code"], "misuse");
}

#[test]
fn quantized_values_are_listed_by_their_type() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("packed.zt");
    let mut writer = Writer::create(&path).unwrap();
    let q4_0 = BlockType::from_format("gguf.q4_0/1").unwrap();
    let blocks = Blocks::new(q4_0, [1, 32], &[0; 18][..]).unwrap();
    writer.add("blocks", &blocks).unwrap();
    let dense = Dense::from_slice(&[2], &[1.0f32, 2.0]).unwrap();
    writer.add("dense", &dense).unwrap();
    writer.finish().unwrap();

    let document = zt!["ls", "--json", path].exits(0).json();
    let objects = document["objects"].as_array().unwrap();
    let types: Vec<_> = objects.iter().map(|object| &object["type"]).collect();
    assert_eq!(types, ["q4_0", "f32"]);
    assert_eq!(objects[0]["components"][0]["dtype"], "u8", "as stored");
    let table = zt!["ls", path].exits(0).text();
    let row: Vec<_> = table.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(row[..4], ["blocks", "gguf.q4_0/1", "q4_0", "1×32"]);

    let document = zt!["info", "--json", path].exits(0).json();
    assert_eq!(document["bytes_by_type"], json!({"q4_0": 18, "f32": 8}));
    assert_eq!(document["bytes_by_dtype"], json!({"u8": 18, "f32": 8}));
    let lines = zt!["info", path].exits(0).text();
    assert!(lines.contains("f32 8 B, q4_0 18 B"), "{lines}");
}

#[test]
fn only_zt_files_have_a_layout() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("w.safetensors");
    common::of_zeros(&path, 16);
    let document = zt!["ls", "--json", path].exits(0).json();
    assert_eq!(document["kind"], "safetensors");
    assert!(document.get("layout").is_none());
    assert_eq!(document["version"], json!(null));
}

#[test]
fn ls_sorts_and_filters() {
    let dir = tempdir().unwrap();
    let path = sample(dir.path());
    let names = |arguments: &[&str]| -> Vec<String> {
        let fixed = ["ls", "--json", path.to_str().unwrap()];
        let document = common::zt(fixed.iter().chain(arguments)).exits(0).json();
        let objects = document["objects"].as_array().unwrap();
        objects.iter().map(|object| object["name"].as_str().unwrap().to_owned()).collect()
    };
    let by_name = ["complex", "flags", "fp8", "graph", "half", "scalar", "w"];
    assert_eq!(names(&["--sort", "name"]), by_name);
    assert_eq!(names(&["--sort", "size"])[0], "graph");
    assert_eq!(names(&["--sort", "offset"])[0], "w");
    assert_eq!(names(&["--glob", "[fg]*"]), ["fp8", "flags", "graph"]);
    assert_eq!(names(&["--glob", "nothing"]), [""; 0]);
}

#[test]
fn ls_lists_many_objects_as_it_lists_chosen_ones() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("many.zt");
    let mut writer = Writer::create(&path).unwrap();
    for at in (0..1500u64).rev() {
        // The longest name comes late.
        let name = format!("layer.{}{at}", "x".repeat(usize::from(at == 3)));
        let values = vec![1; at.try_into().unwrap()];
        let dense = Dense::from_elements(vec![at], bytes(&values)).unwrap();
        writer.add(&name, &dense).unwrap();
    }
    writer.finish().unwrap();
    for arguments in [&["ls"][..], &["ls", "--long"], &["ls", "--json"]] {
        let run = |more: &[&str]| {
            let path = [path.to_str().unwrap()];
            common::zt(arguments.iter().chain(more).chain(&path)).exits(0).text()
        };
        let text = run(&[]);
        assert_eq!(text, run(&["--glob", "*"]));
        if arguments == ["ls", "--json"] {
            let document: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(document["objects"].as_array().unwrap().len(), 1500);
        }
    }
}

#[test]
fn info_prints_totals() {
    let dir = tempdir().unwrap();
    let document = zt!["info", "--json", sample(dir.path())].exits(0).json();
    assert_eq!(document["objects"], 7);
    assert_eq!(document["components"], 9);
    assert_eq!(document["parameters"], 6 + 2 + 2 + 1 + 2 + 1 + 6);
    assert_eq!(document["bytes_by_dtype"]["f32"], 24);
    assert_eq!(document["bytes_by_dtype"]["f8_e4m3fn"], 2);
    assert_eq!(document["bytes_by_format"]["sparse_csr"], 8 + 16 + 24);
    assert_eq!(document["stored_size"], document["decoded_size"]);
    assert_eq!(document["digests"], json!({"crc32c": 9, "sha256": 0, "unknown": 0, "none": 0}));
    assert_eq!(document["alignment"], 64);
    assert_eq!((&document["layout"], &document["faulty"]), (&json!("1.2"), &json!(0)));
    assert_eq!(document["attributes"]["text"], "größe");
    assert_eq!(document["warnings"], json!([]));
}

#[test]
fn alignment_ignores_bytes_that_are_no_range_of_the_file() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("a.npy");
    for (order, expected) in [("False", json!(128)), ("True", json!(null))] {
        let header = format!("{{'descr': '<f4', 'fortran_order': {order}, 'shape': (2, 2), }}");
        let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
        bytes.extend(format!("{header:<117}\n").bytes());
        bytes.extend([1.0f32, 2.0, 3.0, 4.0].iter().flat_map(|x| x.to_le_bytes()));
        fs::write(&path, bytes).unwrap();
        let document = zt!["info", "--json", path].exits(0).json();
        assert_eq!(document["parameters"], 4);
        // Elements that were put into row-major order are no range of the file.
        assert_eq!(document["alignment"], expected);
    }
}

#[test]
fn show_gives_logical_values_in_row_major_order() {
    let dir = tempdir().unwrap();
    let path = sample(dir.path());
    let document = zt!["show", "--json", path, "w"].exits(0).json();
    assert_eq!(keys(&document), ["name", "shape", "type", "values"]);
    let nan = json!({"$float": "nan"});
    let inf = json!({"$float": "inf"});
    assert_eq!(document["values"], json!([1.5, -2.0, 0.0, nan, inf, f64::from(0.1f32)]));
    assert_eq!((&document["shape"], &document["type"]), (&json!([2, 3]), &json!("f32")));

    let values = |name: &str| {
        let document = zt!["show", "--json", path, name].exits(0).json();
        (document["type"].clone(), document["values"].clone())
    };
    assert_eq!(values("half"), (json!("bf16"), json!([1.0, 3.0])));
    assert_eq!(values("fp8"), (json!("f8_e4m3fn"), json!([0.5, -448.0])));
    assert_eq!(values("complex"), (json!("complex64"), json!([[1.0, -2.0]])));
    assert_eq!(values("flags"), (json!("bool"), json!([true, false])));
    assert_eq!(values("scalar"), (json!("i64"), json!([i64::MIN])));
    assert_eq!(values("graph"), (json!("i32"), json!([0, 0, 7, 8, 0, 0])));
}

#[test]
fn show_gives_slices_components_and_statistics() {
    let dir = tempdir().unwrap();
    let path = sample(dir.path());
    let document = zt!["show", "--json", path, "w", "--slice", "-1,::2"].exits(0).json();
    assert_eq!(document["shape"], json!([2]));
    assert_eq!(document["values"][1], f64::from(0.1f32));
    let document = zt!["show", "--json", path, "graph", "--slice", "1,:2"].exits(0).json();
    assert_eq!(document["values"], json!([8, 0]));

    let document = zt!["show", "--json", path, "graph", "--component", "indptr"].exits(0).json();
    assert_eq!((&document["type"], &document["component"]), (&json!("u64"), &json!("indptr")));
    assert_eq!(document["values"], json!([0, 1, 2]));
    let document = zt!["show", "--json", path, "fp8", "--component", "data"].exits(0).json();
    assert_eq!((&document["type"], &document["values"]), (&json!("u8"), &json!([0x30, 0xfe])));

    let document = zt!["show", "--json", path, "w", "--stats"].exits(0).json();
    let stats = &document["stats"];
    let expected = ["count", "histogram", "inf", "max", "mean", "min", "nan", "std", "zeros"];
    assert_eq!(keys(stats), expected);
    assert_eq!((&stats["min"], &stats["max"]), (&json!(-2.0), &json!(1.5)));
    assert_eq!((&stats["nan"], &stats["inf"], &stats["zeros"]), (&json!(1), &json!(1), &json!(1)));
    assert_eq!(keys(&stats["histogram"]), ["counts", "edges"]);
    assert_eq!(document["values"].as_array().unwrap().len(), 6);
}

#[test]
fn verify_counts_what_it_checked() {
    let dir = tempdir().unwrap();
    let path = sample(dir.path());
    let document = zt!["verify", "--json", path].exits(0).json();
    let expected = [
        "bytes",
        "components",
        "file",
        "manifest_digest",
        "objects",
        "ok",
        "problems",
        "unverified",
        "unverified_components",
        "warnings",
    ];
    assert_eq!(keys(&document), expected);
    assert_eq!((&document["ok"], &document["objects"]), (&json!(true), &json!(7)));
    assert_eq!((&document["components"], &document["unverified"]), (&json!(9), &json!([])));
    assert_eq!(document["bytes"], 24 + 4 + 2 + 8 + 2 + 8 + 48);

    let bare = dir.path().join("bare.zt");
    zt!["convert", path, bare, "--digest", "none"].exits(0);
    let document = zt!["verify", "--json", "--jobs", "1", bare].exits(0).json();
    assert_eq!(document["unverified"][0], "w/data");
    assert_eq!(document["unverified_components"][0], json!({"object": "w", "component": "data"}));
}

#[test]
fn verify_names_the_problem() {
    let dir = tempdir().unwrap();
    let run = zt!["verify", "--json", damaged(dir.path())].exits(1);
    let document = run.json();
    assert_eq!(document["ok"], false);
    let problem = &document["problems"][0];
    assert_eq!(keys(problem), ["code", "component", "file", "message", "object", "offset"]);
    assert_eq!(problem["code"], "digest-mismatch");
    assert_eq!((&problem["object"], &problem["component"]), (&json!("w"), &json!("data")));
    assert_eq!(problem["offset"], 64);
    let path = problem["file"].as_str().unwrap();
    assert!(path.ends_with("damaged.zt"));
    let expected = format!("error[digest-mismatch]: {path}: w/data at 64..76: ");
    assert!(run.err.contains(&expected), "{}", run.err);
}

#[test]
fn verify_of_a_refused_file_has_one_problem() {
    let dir = tempdir().unwrap();
    let path = sample(dir.path());
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let document = zt!["verify", "--json", path].exits(3).json();
    assert_eq!(document["ok"], false);
    assert_eq!(document["problems"].as_array().unwrap().len(), 1);
    assert_eq!((&document["objects"], &document["warnings"]), (&json!(0), &json!([])));
}

#[test]
fn verify_of_several_files_is_a_list_and_the_highest_code() {
    let dir = tempdir().unwrap();
    let (good, bad) = (sample(dir.path()), damaged(dir.path()));
    let document = zt!["verify", "--json", good, bad, "/does/not/exist"].exits(4).json();
    let ok: Vec<_> = document.as_array().unwrap().iter().map(|one| one["ok"].clone()).collect();
    assert_eq!(ok, [json!(true), json!(false), json!(false)]);
    zt!["verify", "--json", good, bad].exits(1);
}

#[test]
fn hash_does_not_depend_on_the_encoding() {
    let dir = tempdir().unwrap();
    let path = sample(dir.path());
    let document = zt!["hash", "--json", path].exits(0).json();
    assert_eq!(keys(&document), ["content", "file", "objects"]);
    assert!(document["content"].as_str().unwrap().starts_with("sha256:"));
    let w = &document["objects"]["w"];
    assert_eq!(keys(w), ["components"]);
    assert_eq!(keys(&w["components"]["data"]), ["nbytes", "sha256"]);
    assert_eq!(w["components"]["data"]["nbytes"], 24);
    assert_eq!(w["components"]["data"]["sha256"].as_str().unwrap().len(), 64);

    let packed = dir.path().join("packed.zt");
    zt!["convert", path, packed, "--zstd=9", "--digest", "sha256", "--align", "4096"].exits(0);
    let again = zt!["hash", "--json", "--jobs", "1", packed].exits(0).json();
    assert_eq!(again["content"], document["content"]);
    assert_eq!(again["objects"], document["objects"]);
}

#[test]
fn hash_without_a_dense_value_is_null() {
    let dir = tempdir().unwrap();
    let document = zt!["hash", "--json", "--dense", sample(dir.path())].exits(0).json();
    let graph = &document["objects"]["graph"]["dense"];
    assert_eq!((&graph["dtype"], &graph["nbytes"]), (&json!("i32"), &json!(24)));
    assert_eq!(document["objects"]["fp8"]["dense"]["type"], "f8_e4m3fn");
    let unknown = of_unknown_format(dir.path());
    let document = zt!["verify", "--json", unknown].exits(0).json();
    assert_eq!(document["unchecked"], json!(["blocks"]));
    let text = zt!["verify", unknown].exits(0).text();
    assert!(text.contains("unknown format"), "{text}");
    let document = zt!["hash", "--json", "--dense", unknown].exits(0).json();
    assert_eq!(document["objects"]["blocks"]["dense"], json!(null));
    assert_eq!(document["objects"]["blocks"]["components"]["cells"]["nbytes"], 3);
}

#[test]
fn hash_prints_a_line_per_dense_value() {
    let dir = tempdir().unwrap();
    let path = sample(dir.path());
    let document = zt!["hash", "--json", "--dense", path].exits(0).json();
    let text = zt!["hash", "--dense", path].exits(0).text();
    for name in ["w", "graph"] {
        let dense = &document["objects"][name]["dense"];
        let (sum, dtype) = (dense["sha256"].as_str().unwrap(), dense["dtype"].as_str().unwrap());
        let line = format!("{sum}  {name} (dense {dtype})\n");
        assert!(text.contains(&line), "{text}");
    }
    assert!(!zt!["hash", path].exits(0).text().contains("(dense "));
}

#[test]
fn values_of_an_unknown_type_are_shown_as_stored() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("odd.zt");
    let mut writer = zt::Writer::create(&path).unwrap();
    let pairs = bytes(&[1, 2, 3, 4]).with_logical_type("acme.pairs");
    let dense = zt::Dense::from_elements(vec![2], pairs).unwrap();
    writer.add("x", &dense).unwrap();
    writer.finish().unwrap();
    let run = zt!["show", "--json", path, "x"].exits(0);
    let document = run.json();
    assert_eq!(
        (&document["type"], &document["shape"], &document["values"]),
        (&json!("acme.pairs"), &json!([4]), &json!([1, 2, 3, 4]))
    );
    assert!(run.err.contains("note: "), "{}", run.err);
    assert!(run.err.contains("acme.pairs"), "{}", run.err);
    let path = sample(dir.path());
    let document = zt!["show", "--json", path, "graph", "--component", "indptr", "--slice", "::2"];
    assert_eq!(document.exits(0).json()["values"], json!([0, 2]));
}

#[test]
fn hash_names_the_object_that_cannot_be_read() {
    let dir = tempdir().unwrap();
    for (path, name, code) in
        [(damaged(dir.path()), "w", "digest-mismatch"), (faulty(dir.path()), "bad", "dtype")]
    {
        let document = zt!["hash", "--json", path].exits(1).json();
        assert_eq!(document["content"], json!(null));
        let object = &document["objects"][name];
        assert_eq!(keys(object), ["error"]);
        assert_eq!(object["error"]["code"], code);
        assert!(object["error"]["message"].is_string());
    }
}

#[test]
fn explain_knows_every_code_of_the_library() {
    let document = zt!["explain", "--json", "digest-mismatch"].exits(0).json();
    let expected = ["code", "fault", "meaning", "remedy", "severity"];
    assert_eq!(keys(&document), expected);
    for info in zt::codes::ALL {
        assert!(zt!["explain", info.code].exits(0).text().contains(info.meaning));
    }
    zt!["explain", "error[index_value]:"].exits(0);
    let list = zt!["explain", "--json"].exits(0).json();
    let known = zt::codes::ALL.len() + zt::codes::WARNINGS.len();
    assert_eq!(list.as_array().unwrap().len(), known);
}

#[test]
fn explain_knows_warnings_too() {
    for asked in ["ambiguous", "warning[ambiguous]", "warning[ambiguous]:"] {
        let text = zt!["explain", asked].exits(0).text();
        assert!(text.contains("warning[ambiguous]"), "{text}");
    }
    // A code of errors and of warnings.
    for (asked, severity) in [
        ("alignment", "error"),
        ("error[alignment]", "error"),
        ("warning[alignment]", "warning"),
        ("warning[header]", "warning"),
    ] {
        let document = zt!["explain", "--json", asked].exits(0).json();
        assert_eq!(document["severity"], severity, "{asked}");
        assert_eq!(document["fault"].is_null(), severity == "warning");
    }
    let list = zt!["explain"].exits(0).text();
    assert!(list.contains("warning[lossy]"), "{list}");
    zt!["explain", "error[ambiguous]x"].exits(2);
}

/// Sparse objects without a value may have any shape.
#[test]
fn a_sum_that_no_number_holds_is_null() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("x.zt");
    let mut writer = Writer::create(&path).unwrap();
    for name in ["a.w", "a.v"] {
        let none = Coo::new([1 << 40, 1 << 23], &[] as &[f32], &[] as &[u64]).unwrap();
        writer.add(name, &none).unwrap();
    }
    writer.finish().unwrap();
    let path = path.to_str().unwrap();
    assert_eq!(zt!["info", "--json", path].exits(0).json()["parameters"], json!(null));
    let tree = zt!["ls", "--json", "--tree", path].exits(0).json()["tree"].clone();
    let sums = |at: usize| (tree[at]["parameters"].clone(), tree[at]["decoded_size"].clone());
    assert_eq!([sums(0), sums(1)], [(json!(null), json!(0)), (json!(1u64 << 63), json!(0))]);
    assert!(zt!["ls", "--tree", path].exits(0).text().contains("2^64 or more"));
}

/// The tree of objects with these sizes, in lines of depth, name and size.
#[allow(clippy::unwrap_used, reason = "a failure here is the test's")]
fn tree(objects: &[(&str, u64)], options: &[&str]) -> Vec<String> {
    let dir = tempdir().unwrap();
    let path = dir.path().join("x.safetensors");
    of_sizes(&path, objects);
    let path = path.to_str().unwrap();
    let run = common::zt(["ls", "--json", "--tree", path].iter().chain(options)).exits(0);
    let line = |it: &serde_json::Value| {
        format!("{} {} {}", it["depth"], it["name"].as_str().unwrap(), it["decoded_size"])
    };
    run.json()["tree"].as_array().unwrap().iter().map(line).collect()
}

#[test]
fn names_part_at_dots_and_slashes() {
    let objects = [
        ("model.layers.10.w", 8),
        ("model.layers.2.w", 1),
        ("model.layers.2.b", 2),
        ("model.embed.w", 4),
        ("head/w", 16),
        ("head.w", 32),
        ("step", 64),
    ];
    let all = [
        "0 head 48",
        "1 head.w 32",
        "1 head/w 16",
        "0 model 15",
        "1 model.embed.w 4",
        "1 model.layers 11",
        "2 model.layers.2 3",
        "3 model.layers.2.b 2",
        "3 model.layers.2.w 1",
        "2 model.layers.10.w 8",
        "0 step 64",
    ];
    assert_eq!(tree(&objects, &[]), all);
    let top = ["0 step 64", "0 head 48", "0 model 15"];
    assert_eq!(tree(&objects, &["--sort=size", "--depth=1"]), top);
    let given = ["0 model 15", "1 model.layers 11", "1 model.embed.w 4"];
    assert_eq!(tree(&objects, &["--sort=offset", "--depth=2"])[..3], given);
    // An object may be the prefix of others.
    let objects = [("a.b.c", 1), ("a", 2), ("a.b", 4), ("ab", 8), ("", 16)];
    let expected = ["0  16", "0 a 7", "1 a.b 5", "2 a.b.c 1", "0 ab 8"];
    assert_eq!(tree(&objects, &[]), expected);
}

#[test]
fn odd_names_have_a_place_in_a_tree() {
    for names in [
        &["", ".", "..", "...", "/", "./", "a.", "a..", ".a", "é.é/é"][..],
        &["x.01", "x.1", "x.001", "x.99999999999999999999999999999999"],
    ] {
        let objects: Vec<_> = names.iter().map(|name| (*name, 1)).collect();
        let lines = tree(&objects, &[]);
        for name in names {
            assert!(lines.iter().any(|line| line.contains(name)), "{name}");
        }
        let tops = lines.iter().filter(|line| line.starts_with("0 "));
        let sum = tops.map(|line| line.rsplit_once(' ').unwrap().1.parse::<usize>().unwrap());
        assert_eq!(sum.sum::<usize>(), names.len());
    }
    let deep: Vec<String> = (1..500).map(|len| vec!["a"; len].join(".")).collect();
    let objects: Vec<_> = deep.iter().map(|name| (name.as_str(), 1)).collect();
    let lines = tree(&objects, &["--sort=size"]);
    assert_eq!((lines.len(), &*lines[0]), (499, "0 a 499"));
    assert!(lines[498].starts_with("498 "));
}
