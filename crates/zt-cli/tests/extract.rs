//! `zt extract`: `.npy` files, checked byte for byte without NumPy.

mod common;

use std::fs;
use std::path::Path;

use common::{bytes, keys, names_in, of_sizes, sample};
use serde_json::json;
use tempfile::tempdir;
use zt::{DType, Dense, Elements, WriteOptions, Writer};

/// The header's dict and the elements of an `.npy` file of version 1.0.
#[allow(clippy::unwrap_used, reason = "a failure here is the test's")]
fn npy(path: &Path) -> (String, Vec<u8>) {
    let bytes = fs::read(path).unwrap();
    assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00");
    let len = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let (header, data) = bytes[10..].split_at(len);
    assert_eq!((10 + len) % 64, 0);
    let header = std::str::from_utf8(header).unwrap();
    assert!(header.ends_with('\n'));
    (header.trim_end().to_owned(), data.to_vec())
}

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

#[test]
fn the_output_is_the_last_argument_or_that_of_o() {
    let dir = tempdir().unwrap();
    let (file, out) = (sample(dir.path()), dir.path().join("out"));
    zt!["extract", file, out].exits(0);
    assert!(out.join("w.npy").exists());
    zt!["extract", file, "w", dir.path().join("w.npy")].exits(0);
    assert!(dir.path().join("w.npy").is_file());
    // What looks like an object is no output.
    for name in ["w", "scalr"] {
        let run = zt!["extract", file, name].exits(2);
        assert!(
            run.err.contains("looks like an object, and no output is given: use -o DIR"),
            "{}",
            run.err
        );
    }
    zt!["extract", file].exits(2);
}

#[test]
fn every_dtype_becomes_what_numpy_has() {
    let dir = tempdir().unwrap();
    let out = dir.path().join("out");
    let document = zt!["extract", "--json", sample(dir.path()), "-o", out].exits(0).json();
    assert_eq!(keys(&document), ["errors", "extracted", "file"]);
    assert_eq!(document["errors"], json!([]));
    let first = &document["extracted"][0];
    assert_eq!(keys(first), ["converted_from", "descr", "name", "nbytes", "path", "shape"]);
    assert_eq!((&first["descr"], &first["nbytes"]), (&json!("<f4"), &json!(24)));
    assert_eq!(document["extracted"][1]["converted_from"], "bf16");

    let header = |descr: &str, shape: &str| {
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}")
    };
    let nan = f32::NAN;
    let w = floats(&[1.5, -2.0, 0.0, nan, f32::INFINITY, 0.1]);
    let i32s: Vec<u8> =
        [0i32, 0, 7, 8, 0, 0].iter().flat_map(|value| value.to_le_bytes()).collect();
    for (name, descr, shape, data) in [
        ("w", "<f4", "(2, 3)", w),
        ("half", "<f4", "(2,)", floats(&[1.0, 3.0])),
        ("fp8", "<f4", "(2,)", floats(&[0.5, -448.0])),
        ("complex", "<c8", "(1,)", floats(&[1.0, -2.0])),
        ("flags", "|b1", "(2,)", vec![1, 0]),
        ("scalar", "<i8", "()", i64::MIN.to_le_bytes().to_vec()),
        ("graph", "<i4", "(2, 3)", i32s),
    ] {
        let found = npy(&out.join(format!("{name}.npy")));
        assert_eq!(found, (header(descr, shape), data), "{name}");
    }
    assert_eq!(names_in(&out).len(), 7);
}

#[test]
fn every_width_of_numbers_is_kept() {
    let dir = tempdir().unwrap();
    let (path, out) = (dir.path().join("a.zt"), dir.path().join("out"));
    let mut writer = Writer::create(&path).unwrap();
    let types = [
        (DType::F64, None, "<f8"),
        (DType::F16, None, "<f2"),
        (DType::I32, None, "<i4"),
        (DType::I16, None, "<i2"),
        (DType::I8, None, "|i1"),
        (DType::U64, None, "<u8"),
        (DType::U32, None, "<u4"),
        (DType::U16, None, "<u2"),
        (DType::U8, None, "|u1"),
        (DType::F64, Some("complex128"), "<c16"),
    ];
    let data: Vec<u8> = (1..=16).collect();
    for (dtype, logical_type, descr) in types {
        let mut elements = Elements::new(dtype, &data[..]);
        elements.logical_type = logical_type.map(Into::into);
        let value_len = if logical_type.is_some() { 16 } else { dtype.byte_len() };
        let dense = Dense::from_elements(vec![16 / value_len as u64], elements).unwrap();
        writer.add(&descr[1..], &dense).unwrap();
    }
    writer.finish().unwrap();
    zt!["extract", path, "-o", out].exits(0);
    for (_, _, descr) in types {
        let (header, found) = npy(&out.join(format!("{}.npy", &descr[1..])));
        assert!(header.starts_with(&format!("{{'descr': '{descr}', ")), "{header}");
        assert_eq!(found, data, "{descr}");
    }
}

#[test]
fn a_type_unknown_to_numpy_is_reported_and_the_rest_extracted() {
    let dir = tempdir().unwrap();
    let (path, out) = (dir.path().join("a.zt"), dir.path().join("out"));
    let mut writer = Writer::create(&path).unwrap();
    let elements = bytes(&[1, 2]).with_logical_type("acme.nibbles");
    writer.add("odd", &Dense::from_elements(vec![2], elements).unwrap()).unwrap();
    writer.add("even", &Dense::from_slice(&[1], &[1u8]).unwrap()).unwrap();
    writer.finish().unwrap();
    let document = zt!["extract", "--json", path, "-o", out].exits(5).json();
    let error = &document["errors"][0];
    assert_eq!((&error["code"], &error["object"]), (&json!("unsupported"), &json!("odd")));
    assert_eq!(names_in(&out), ["even.npy"]);
}

#[test]
fn one_object_is_written_to_one_file_and_may_be_sliced() {
    let dir = tempdir().unwrap();
    let (path, out) = (sample(dir.path()), dir.path().join("w.npy"));
    zt!["extract", path, "w", "-o", out, "--slice", ":,1"].exits(0);
    assert_eq!(npy(&out).1, floats(&[-2.0, f32::INFINITY]));
    let sparse = dir.path().join("graph.npy");
    zt!["extract", path, "graph", "-o", sparse, "--slice", "::-1,2"].exits(0);
    assert_eq!(npy(&sparse).1, [0i32, 7].map(i32::to_le_bytes).concat());
    assert_eq!(zt!["extract", "--json", path, "w", "-o", out].exits(2).error_code(), "overwrite");
    zt!["extract", path, "w", "-o", out, "--force"].exits(0);
    assert_eq!(npy(&out).1.len(), 24);
    let two = dir.path().join("two.npy");
    let run = zt!["extract", "--json", path, "w", "half", "-o", two].exits(2);
    assert_eq!(run.error_code(), "misuse");
    assert!(!two.exists());
}

#[test]
fn compressed_values_are_extracted_like_raw_ones() {
    let dir = tempdir().unwrap();
    let (plain, packed) = (dir.path().join("a.safetensors"), dir.path().join("a.zt"));
    common::of_zeros(&plain, 5 << 20);
    zt!["convert", plain, packed, "--zstd"].exits(0);
    let out = dir.path().join("w.npy");
    zt!["extract", packed, "-o", out].exits(0);
    let (header, data) = npy(&out);
    assert!(header.contains("(1310720,)"), "{header}");
    assert!(data.len() == 5 << 20 && data.iter().all(|byte| *byte == 0));
}

#[test]
fn a_name_is_never_a_path() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("evil.zt");
    let options = WriteOptions::new().empty_names(true);
    let mut writer = options.create(&path).unwrap();
    let names = ["../up", "/abs", "a/b", "..", ".", "", "nul\0", "con", "a%2Fb", "-x"];
    for name in names {
        writer.add(name, &Dense::from_elements([1], bytes(&[1])).unwrap()).unwrap();
    }
    writer.finish().unwrap();
    let before = names_in(dir.path());
    let out = dir.path().join("deep/out");
    zt!["extract", path, "-o", out].exits(0);
    let files = names_in(&out);
    assert_eq!(files.len(), names.len(), "{files:?}");
    assert!(files.iter().all(|file| !file.starts_with(['.', '-']) && file.ends_with(".npy")));
    assert!(files.contains(&"a%2Fb.npy".to_owned()) && files.contains(&"a%252Fb.npy".to_owned()));
    let mut after = names_in(dir.path());
    after.retain(|name| name != "deep");
    assert_eq!(after, before, "nothing outside the folder");
}

#[cfg(unix)]
#[test]
fn a_link_in_the_folder_is_not_followed() {
    let dir = tempdir().unwrap();
    let (path, out) = (sample(dir.path()), dir.path().join("out"));
    let victim = dir.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    fs::create_dir(&out).unwrap();
    std::os::unix::fs::symlink(&victim, out.join("half.npy")).unwrap();
    let run = zt!["extract", "--json", path, "-o", out, "--force"].exits(2);
    assert_eq!(run.error_code(), "overwrite");
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    assert_eq!(names_in(&out), ["half.npy"], "nothing is written before every path is free");
}

#[cfg(unix)]
#[test]
fn a_pipe_in_the_folder_does_not_block() {
    let dir = tempdir().unwrap();
    let (path, out) = (sample(dir.path()), dir.path().join("out"));
    fs::create_dir(&out).unwrap();
    let made = std::process::Command::new("mkfifo").arg(out.join("half.npy")).status();
    assert!(made.unwrap().success());
    let run = zt!["extract", "--json", path, "-o", out].exits(2);
    assert_eq!(run.error_code(), "overwrite");
    let run = zt!["extract", "--json", path, "-o", out, "--force"].exits(2);
    assert_eq!(run.error_code(), "overwrite");
}

#[cfg(unix)]
#[test]
fn the_input_is_never_overwritten() {
    let dir = tempdir().unwrap();
    let path = sample(dir.path());
    let before = fs::read(&path).unwrap();
    let link = dir.path().join("w.npy");
    fs::hard_link(&path, &link).unwrap();
    let run = zt!["extract", "--json", path, "w", "-o", link, "--force"].exits(2);
    assert_eq!(run.error_code(), "overwrite");
    assert_eq!(fs::read(&link).unwrap(), before);
}

#[test]
fn readable_objects_are_extracted_and_the_rest_reported() {
    let dir = tempdir().unwrap();
    let out = dir.path().join("out");
    let document = zt!["extract", "--json", common::faulty(dir.path()), "-o", out].exits(1).json();
    assert_eq!(document["errors"][0]["code"], "dtype");
    assert_eq!(document["extracted"][0]["name"], "good");
    assert_eq!(names_in(&out), ["good.npy"]);

    let out = dir.path().join("out2");
    zt!["extract", common::damaged(dir.path()), "-o", out].exits(1);
    assert!(!out.exists(), "an empty folder is removed");
    zt!["extract", common::of_unknown_format(dir.path()), "-o", out].exits(5);
    assert!(!out.exists());
    // Its parents are removed too if this run made them.
    let kept = dir.path().join("kept");
    std::fs::create_dir(&kept).unwrap();
    let within = kept.join("a/../b/c");
    zt!["extract", common::damaged(dir.path()), "-o", within].exits(1);
    assert!(names_in(&kept).is_empty());
}

#[test]
fn one_object_is_written_to_stdout() {
    let dir = tempdir().unwrap();
    let (path, out) = (sample(dir.path()), dir.path().join("half.npy"));
    zt!["extract", path, "half", "-o", out].exits(0);
    let file = fs::read(&out).unwrap();
    let run = zt!["extract", path, "half", "-o", "-"].exits(0);
    assert_eq!((run.out, run.err.as_str()), (file.clone(), ""));
    assert_eq!(zt!["cat", path, "half", "--npy"].exits(0).out, file);

    let run = zt!["extract", path, "-o", "-"].exits(2);
    assert!(run.err.contains("one .npy file, not 7"), "{}", run.err);
    let run = zt!["extract", path, "half", "-o", "-", "--json"].exits(2);
    assert_eq!(run.error_code(), "misuse");
    assert!(!Path::new("-").exists());
}

#[test]
fn cat_writes_the_decoded_bytes() {
    let dir = tempdir().unwrap();
    let path = sample(dir.path());
    let halves = [0x80, 0x3f, 0x40, 0x40];
    assert_eq!(zt!["cat", path, "half"].exits(0).out, halves);
    assert_eq!(zt!["cat", path, "half", "--slice", "1"].exits(0).out, halves[2..]);
    let graph = [0i32, 0, 7, 8, 0, 0].map(i32::to_le_bytes).concat();
    assert_eq!(zt!["cat", path, "graph"].exits(0).out, graph);
    let values = [7i32, 8].map(i32::to_le_bytes).concat();
    let run = zt!["cat", path, "graph", "--component", "values"].exits(0);
    assert_eq!(run.out, values);

    let zstd = dir.path().join("zstd.zt");
    zt!["convert", path, zstd, "--zstd"].exits(0);
    assert_eq!(zt!["cat", zstd, "w"].exits(0).out, zt!["cat", path, "w"].out);

    for (arguments, code) in [
        (&["nope"][..], 2),
        (&["w", "--json"], 2),
        (&["w", "--slice", "x"], 2),
        (&["graph", "--component", "nope"], 2),
        (&["w", "--npy", "--component", "data"], 2),
    ] {
        let fixed = ["cat", path.to_str().unwrap()];
        let run = common::zt(fixed.iter().chain(arguments)).exits(code);
        let is_empty = run.out.is_empty() || arguments.contains(&"--json");
        assert!(is_empty, "{arguments:?}");
    }
    zt!["cat", common::damaged(dir.path()), "w"].exits(1);
    let bools = common::of_bools(dir.path(), [1, 2]);
    zt!["cat", bools, "flags"].exits(1);
    let unknown = common::of_unknown_format(dir.path());
    zt!["cat", unknown, "blocks"].exits(5);
    let run = zt!["cat", unknown, "blocks", "--component", "cells"].exits(0);
    assert_eq!(run.out, [1, 2, 3]);
}

/// The names of the files that objects of these names become, without `.npy`.
#[allow(clippy::unwrap_used, reason = "a failure here is the test's")]
fn file_names(names: &[&str]) -> Vec<String> {
    let dir = tempdir().unwrap();
    let (path, out) = (dir.path().join("x.safetensors"), dir.path().join("out"));
    let objects: Vec<(&str, u64)> = names.iter().map(|name| (*name, 1)).collect();
    of_sizes(&path, &objects);
    let document = zt!["extract", "--json", path, "-o", out].exits(0).json();
    let files = document["extracted"].as_array().unwrap().iter();
    let files = files.map(|file| Path::new(file["path"].as_str().unwrap()));
    let files: Vec<String> =
        files.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    assert_eq!(names_in(&out).len(), names.len(), "all are files of the folder");
    files
}

#[test]
fn plain_names_stay_and_no_name_is_a_path() {
    let plain = ["layer.0.w", "a b", "größe", "console", "COM10", "x-y~z"];
    assert_eq!(file_names(&plain), plain);
    for (name, file) in [
        ("../../etc/passwd", "%2E.%2F..%2Fetc%2Fpasswd"),
        ("/abs", "%2Fabs"),
        (r"C:\x", "C%3A%5Cx"),
        ("..", "%2E."),
        (".hidden", "%2Ehidden"),
        ("-rf", "%2Drf"),
        ("a\0b\n", "a%00b%0A"),
        ("nul.weight", "%6Eul.weight"),
        ("com1", "%63om1"),
        ("CONIN$", "%43ONIN$"),
        ("", "%"),
    ] {
        assert_eq!(file_names(&[name]), [file]);
    }
    // Different names are different files.
    assert_eq!(file_names(&["a/b", "a%2Fb"]), ["a%2Fb", "a%252Fb"]);
    // A long name is shortened and stays unique.
    let (a, b) = ("é".repeat(3000), format!("{}x", "é".repeat(3000)));
    let files = file_names(&[&a, &b, &"a".repeat(251)]);
    assert!(files[0].len() <= 251 && files[0] != files[1]);
    assert_eq!(files[2], "a".repeat(251));
}
