//! `zt convert`.

mod common;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::iter;
use std::path::Path;

use common::{keys, names_in, of_floats, of_zeros, sample};
use serde_json::json;
use tempfile::tempdir;

#[test]
fn a_safetensors_file_comes_back_bit_for_bit() {
    let dir = tempdir().unwrap();
    let (first, ours) = (dir.path().join("a.safetensors"), dir.path().join("a.zt"));
    of_zeros(&first, 1 << 20);
    let document = zt!["convert", "--json", first, ours, "--zstd"].exits(0).json();
    let expected = [
        "bytes",
        "casts",
        "damaged",
        "duplicates",
        "excluded",
        "file_size",
        "inputs",
        "kind",
        "left_out",
        "objects",
        "output",
        "shared_bytes",
        "warnings",
    ];
    assert_eq!(keys(&document), expected);
    assert_eq!((&document["kind"], &document["objects"]), (&json!("zt"), &json!(1)));
    assert_eq!(document["bytes"], 1 << 20);
    assert_eq!(document["file_size"], ours.metadata().unwrap().len());
    assert!(ours.metadata().unwrap().len() < 1 << 16);

    let back = dir.path().join("b.safetensors");
    zt!["convert", ours, back, "--no-dedup"].exits(2);
    let run = zt!["convert", ours, back].exits(0);
    assert!(run.text().contains("1 object"), "a summary");
    assert_eq!(fs::read(back).unwrap(), fs::read(first).unwrap());
}

#[test]
fn the_digests_of_chunks_are_those_that_the_user_chooses() {
    let dir = tempdir().unwrap();
    let (path, out) = (dir.path().join("a.safetensors"), dir.path().join("a.zt"));
    of_zeros(&path, (1 << 20) + 4);
    for (option, algorithm) in [
        (None, Some("crc32c")),
        (Some("--chunk-digests"), Some("crc32c")),
        (Some("--chunk-digests=sha256"), Some("sha256")),
        (Some("--chunk-digests=none"), None),
        (Some("--digest=none"), None),
    ] {
        let arguments = ["convert", "-f"].into_iter().chain(option);
        let files = [path.as_os_str(), out.as_os_str()];
        common::zt(arguments.map(OsStr::new).chain(files)).exits(0);
        let shown = zt!["show", "--json", out, "w"].exits(0).json();
        assert_eq!(shown["chunk_digests"]["data"].as_str(), algorithm);
        let len = algorithm.map(|_| 1 << 20);
        assert_eq!(shown["chunk_length"].as_u64(), len);
        let listed = zt!["ls", "--json", out].exits(0).json();
        let component = &listed["objects"][0]["components"][0];
        assert_eq!(component["chunk_digests"].as_str(), algorithm);
        let text = zt!["show", out, "w"].exits(0).text();
        let line = algorithm.map(|name| format!("\ndata has a {name} of each 1.0 MiB\n"));
        assert!(line.is_none_or(|line| text.contains(&line)), "{text}");
    }
    zt!["convert", "--chunk-digests", out, path, "-f"].exits(2);
}

#[test]
fn the_same_bytes_come_out_of_one_thread_and_of_two() {
    let dir = tempdir().unwrap();
    let path = sample(dir.path());
    let out = |jobs: &str| {
        let out = dir.path().join(format!("out{jobs}.zt"));
        zt!["convert", path, out, "--zstd=5", "--jobs", jobs].exits(0);
        fs::read(out).unwrap()
    };
    assert_eq!(out("1"), out("2"));
}

#[test]
fn planes_are_written_and_joined_again() {
    let dir = tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let (first, ours, back) = (path("a.safetensors"), path("a.zt"), path("b.safetensors"));
    let values: Vec<f32> = (0..9000u16).map(|at| f32::from(at).sin()).collect();
    of_floats(&ours, &values);
    zt!["convert", ours, first].exits(0);
    zt!["convert", first, ours, "--planes", "--force"].exits(0);
    let listed = zt!["ls", "--json", ours].exits(0).json();
    assert_eq!(listed["objects"][0]["format"], "zt.planes/1");
    assert_eq!(listed["objects"][0]["attributes"], json!({"dtype": "f32"}));
    assert!(zt!["ls", ours].exits(0).text().contains("f32"));
    zt!["verify", ours].exits(0);
    zt!["convert", ours, back].exits(0);
    assert_eq!(fs::read(&back).unwrap(), fs::read(&first).unwrap());

    // The dense values are the same, and parts of them are shown alike.
    let name = listed["objects"][0]["name"].as_str().unwrap();
    let dense = |file: &std::path::Path| {
        let document = zt!["hash", "--json", "--dense", file].exits(0).json();
        document["objects"][name]["dense"].clone()
    };
    assert_eq!(dense(&ours), dense(&first));
    let slice = |file: &std::path::Path| {
        zt!["show", "--json", file, name, "--slice", "5:9"].exits(0).json()["values"].clone()
    };
    assert_eq!(slice(&ours), slice(&first));
    zt!["convert", first, path("c.safetensors"), "--planes"].exits(2);
}

#[test]
fn the_level_auto_compresses_zeros() {
    let dir = tempdir().unwrap();
    let (first, ours) = (dir.path().join("a.safetensors"), dir.path().join("a.zt"));
    of_zeros(&first, 1 << 20);
    zt!["convert", first, ours, "--zstd=auto"].exits(0);
    assert!(ours.metadata().unwrap().len() < 1 << 16);
    zt!["verify", ours].exits(0);
    zt!["convert", first, ours, "--force", "--zstd=all"].exits(2);
}

#[test]
fn a_file_is_written_to_stdout() {
    let dir = tempdir().unwrap();
    let path = sample(dir.path());
    let out = dir.path().join("out.zt");
    zt!["convert", path, out].exits(0);
    assert_eq!(zt!["convert", path, "-"].exits(0).out, fs::read(&out).unwrap());
    // Under any name of stdout, nothing else is printed there.
    #[cfg(target_os = "linux")]
    for name in ["/dev/stdout", "/dev/fd/1"] {
        let run = zt!["convert", path, name, "--to", "zt"].exits(0);
        assert_eq!(run.out, fs::read(&out).unwrap());
        zt!["convert", path, name, "--json", "--to", "zt"].exits(2);
        zt!["repair", path, "-o", name, "--force"].exits(2);
    }
    zt!["repair", path, "-o", "-"].exits(2);
    let dense = zt!["convert", out, "-", "--to", "safetensors", "--lossy"].exits(0);
    assert!(dense.err.contains("warning[lossy]"), "{}", dense.err);
    assert!(dense.err.contains("\"large\""), "{}", dense.err);
    assert_eq!(dense.out[8], b'{');
}

#[test]
fn several_inputs_merge_and_no_name_is_lost() {
    let dir = tempdir().unwrap();
    let (a, b) = (sample(dir.path()), dir.path().join("b.safetensors"));
    let out = dir.path().join("out.zt");
    of_zeros(&b, 16);
    let run = zt!["convert", "--json", a, b, out].exits(2);
    assert_eq!(run.error_code(), "duplicate-name");
    assert_eq!(run.json()["error"]["object"], "w");
    assert!(!out.exists());
    let c = common::of_unknown_format(dir.path());
    zt!["convert", a, c, out].exits(0);
    let document = zt!["ls", "--json", out].json();
    assert_eq!(document["objects"].as_array().unwrap().len(), 8);
}

#[test]
fn values_are_cast_and_decoded() {
    let dir = tempdir().unwrap();
    let path = sample(dir.path());
    let out = dir.path().join("out.zt");
    zt!["convert", path, out, "--dtype", "bf16", "--dense"].exits(0);
    let document = zt!["ls", "--json", out].json();
    let object = |name: &str| {
        let objects = document["objects"].as_array().unwrap();
        objects.iter().find(|object| object["name"] == name).unwrap().clone()
    };
    assert_eq!(object("w")["components"][0]["dtype"], "bf16");
    assert_eq!(object("graph")["format"], "dense");
    assert_eq!(object("scalar")["components"][0]["dtype"], "i64");
}

#[test]
fn nothing_is_overwritten_without_force() {
    let dir = tempdir().unwrap();
    let path = sample(dir.path());
    let out = dir.path().join("out.zt");
    fs::write(&out, "precious").unwrap();
    assert_eq!(zt!["convert", "--json", path, out].exits(2).error_code(), "overwrite");
    assert_eq!(fs::read(&out).unwrap(), b"precious");
    let shards = dir.path().join("shards");
    zt!["split", path, "-o", shards].exits(0);
    let run = zt!["split", path, "-o", shards].exits(2);
    assert!(run.err.contains("note: --force"), "{}", run.err);
    let run = zt!["convert", path, out].exits(2);
    assert!(run.err.contains("note: --force"), "{}", run.err);
    // --force does not help if OUT is an input.
    for force in ["--force", "--json"] {
        let run = zt!["convert", path, path, force].exits(2);
        assert!(!run.err.contains("note: "), "{}", run.err);
    }
    zt!["convert", path, out, "--force"].exits(0);
    zt!["verify", out].exits(0);
}

#[cfg(unix)]
#[test]
fn an_input_is_never_overwritten_also_through_a_link() {
    let dir = tempdir().unwrap();
    let path = sample(dir.path());
    let before = fs::read(&path).unwrap();
    let (soft, hard) = (dir.path().join("soft.zt"), dir.path().join("hard.zt"));
    std::os::unix::fs::symlink(&path, &soft).unwrap();
    fs::hard_link(&path, &hard).unwrap();
    for out in [&path, &soft, &hard] {
        let run = zt!["convert", "--json", path, out, "--force", "--zstd"].exits(2);
        assert_eq!(run.error_code(), "overwrite");
        assert_eq!(fs::read(&path).unwrap(), before);
    }
    let run = zt!["convert", "--json", soft, path, "--force"].exits(2);
    assert_eq!(run.error_code(), "overwrite");
}

#[test]
fn a_failed_convert_leaves_nothing() {
    let dir = tempdir().unwrap();
    let path = common::damaged(dir.path());
    let before = names_in(dir.path());
    zt!["convert", path, dir.path().join("out.zt")].exits(1);
    zt!["convert", path, dir.path().join("out.safetensors")].exits(1);
    assert_eq!(names_in(dir.path()), before);
    // An existing OUT stays as it was.
    let out = dir.path().join("old.zt");
    of_floats(&out, &[1.0]);
    let old = fs::read(&out).unwrap();
    zt!["convert", path, out, "--force"].exits(1);
    assert_eq!(fs::read(&out).unwrap(), old);
}

#[test]
fn from_forces_the_kind() {
    let dir = tempdir().unwrap();
    let path = sample(dir.path());
    let out = dir.path().join("out.zt");
    zt!["convert", "--from", "safetensors", path, out].exits(3);
    zt!["convert", "--from", "zt", path, out].exits(0);
}

#[test]
fn equal_components_are_stored_once_by_default() {
    let dir = tempdir().unwrap();
    let [first, second, out] = ["a.npy", "b.npy", "c.zt"].map(|name| dir.path().join(name));
    let zeros = dir.path().join("w.safetensors");
    of_zeros(&zeros, 40 << 10);
    zt!["convert", zeros, first].exits(0); // An .npy file stores no name.
    fs::copy(&first, &second).unwrap();
    let run = zt!["convert", first, second, out].exits(0);
    assert!(run.text().contains("40.0 KiB"), "{}", run.text());
    let convert = zt!["convert", "--json", "--force", first, second, out];
    assert_eq!(convert.exits(0).json()["shared_bytes"], 40 << 10);
    let small = out.metadata().unwrap().len();
    let convert = zt!["convert", "--json", "-f", "--no-dedup", first, second, out];
    assert_eq!(convert.exits(0).json()["shared_bytes"], 0);
    assert!(out.metadata().unwrap().len() > small + (39 << 10));
}

#[test]
fn damaged_objects_stop_a_conversion_or_are_skipped() {
    let dir = tempdir().unwrap();
    let path = common::faulty(dir.path());
    for kind in ["zt", "safetensors", "npz", "npy"] {
        let out = dir.path().join(format!("out.{kind}"));
        let run = zt!["convert", path, out, "--json"].exits(1);
        assert_eq!(run.json()["error"]["object"], "bad");
        assert!(run.err.contains("note: ") && run.err.contains("--skip-damaged"));
        assert!(!out.exists());
        zt!["convert", path, out, "--drop-unsupported"].exits(1);
        assert!(!out.exists(), "damage is no loss of the kind");

        let run = zt!["convert", path, out, "--json", "--skip-damaged"].exits(1);
        let document = run.json();
        assert_eq!((&document["left_out"], &document["objects"]), (&json!(["bad"]), &json!(1)));
        assert_eq!(document["damaged"], document["left_out"]);
        let warning = &document["warnings"][0];
        assert_eq!((&warning["code"], &warning["object"]), (&json!("lossy"), &json!("bad")));
        let fault = zt!["ls", "--json", path].json()["objects"][0]["fault"]["code"].clone();
        assert!(warning["message"].as_str().unwrap().contains(fault.as_str().unwrap()));
        assert!(run.err.contains("warning[lossy]: bad"), "{}", run.err);
        zt!["verify", out].exits(0);
    }
    // The same for append.
    let other = dir.path().join("other.zt");
    of_floats(&other, &[1.0]);
    let run = zt!["append", other, path].exits(1);
    assert!(run.err.contains("--skip-damaged"), "{}", run.err);
    let document = zt!["append", other, path, "--skip-damaged", "--json"].exits(1).json();
    assert_eq!(document["added"], json!(["good"]));
    assert_eq!(document["left_out"], json!(["bad"]));
    let damaged = common::damaged(dir.path());
    let fourth = dir.path().join("fourth.zt");
    zt::Writer::create(&fourth).unwrap().finish().unwrap();
    let append = zt!["append", fourth, damaged, "--lossy", "--json", "-n"].exits(1);
    assert_eq!(
        append.json()["added"],
        json!([]),
        "only its bytes are damaged, and a dry run reads them"
    );
    let run = zt!["append", fourth, damaged, "--lossy"].exits(1);
    assert!(run.text().ends_with(": w\n"), "{}", run.text());
    // The flag does not help if the edited file itself is damaged.
    let third = dir.path().join("third.zt");
    of_floats(&third, &[1.0]);
    let run = zt!["append", path, third].exits(1);
    assert!(!run.err.contains("--skip-damaged"), "{}", run.err);
    // Damage is found only when values are read.
    let damaged = common::damaged(dir.path());
    let out = dir.path().join("d.zt");
    let run = zt!["convert", damaged, out].exits(1);
    assert!(run.err.contains("note: --skip-damaged"), "{}", run.err);
    let run = zt!["convert", damaged, out, "--skip-damaged", "--json"].exits(1);
    assert_eq!(run.json()["left_out"].as_array().unwrap().len(), 1);
    assert_eq!(run.json()["objects"], json!(0));
}

#[test]
fn objects_that_the_output_kind_cannot_represent_are_named() {
    let dir = tempdir().unwrap();
    let path = common::of_unknown_format(dir.path());
    for kind in ["safetensors", "gguf", "npz"] {
        let out = dir.path().join(format!("out.{kind}"));
        let run = zt!["convert", path, out, "--to", kind, "--json"].exits(5);
        let note = "note: --drop-unsupported";
        assert!(run.err.contains(note), "it has no dense value");
        assert!(!run.err.contains("--dense"), "{}", run.err);
        let run = zt!["convert", path, out, "--to", kind, "--json", "--lossy"].exits(0);
        assert_eq!(run.json()["left_out"], json!(["blocks"]), "{kind}");
        assert!(run.err.contains("warning[lossy]"), "{}", run.err);
        let run = zt!["convert", "-f", path, out, "--to", kind, "--lossy"].exits(0);
        assert!(run.text().ends_with(": blocks\n"), "{}", run.text());
        let run = zt!["convert", path, "-", "--to", kind, "--lossy"].exits(0);
        assert!(run.err.contains("note: ") && run.err.contains(": blocks\n"), "{}", run.err);
    }
    // Without any object left there is an error, and no hint at the option that was given.
    let run = zt!["convert", path, dir.path().join("w.npy"), "--lossy"].exits(5);
    assert!(!run.err.contains("note: "), "{}", run.err);
}

/// The attributes of the file are one warning, however many they are.
#[test]
fn warnings_about_objects_come_before_that_about_the_file() {
    let dir = tempdir().unwrap();
    let (path, out) = (common::sample(dir.path()), dir.path().join("out.safetensors"));
    let run = zt!["convert", path, out, "--drop-unsupported"].exits(0);
    let lines: Vec<&str> = run.err.lines().collect();
    assert!(lines[0].starts_with("warning[lossy]: graph: "), "{}", run.err);
    assert!(lines[1].contains("11 attributes of the file"), "{}", run.err);
    assert_eq!(lines.len(), 2, "{}", run.err);
}

#[test]
fn a_hint_at_dense_appears_only_if_it_helps() {
    let dir = tempdir().unwrap();
    let (path, out) = (common::sample(dir.path()), dir.path().join("out.npz"));
    let run = zt!["convert", path, out].exits(5);
    assert!(run.err.contains("note: --dense"), "{}", run.err);
    zt!["convert", path, out, "--dense"].exits(0);
    let unknown = common::of_unknown_format(dir.path());
    let run = zt!["convert", unknown, dir.path().join("b.npz")].exits(5);
    assert!(!run.err.contains("note: --dense"), "{}", run.err);
}

/// The commonest conversions of all: no flag that could also drop a tensor is needed for them.
#[test]
fn metadata_are_dropped_with_a_warning_and_without_a_flag() {
    let dir = tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/corpus");

    let (plain, hub) = (path("plain.zt"), path("hub.safetensors"));
    of_floats(&plain, &[1.0, 2.0]);
    zt!["meta", "set", plain, "format", "pt"].exits(0);
    zt!["convert", plain, hub].exits(0);
    let bytes = fs::read(&hub).unwrap();
    let metadata = br#""__metadata__":{"format":"pt"}"#;
    assert!(bytes.windows(metadata.len()).any(|it| it == metadata));
    let arrays = path("hub.npz");
    let run = zt!["convert", hub, arrays].exits(0);
    assert!(run.err.starts_with("warning[lossy]: "), "{}", run.err);
    assert!(run.err.contains("\"format\""), "{}", run.err);
    assert_eq!(zt!["ls", arrays, "--json"].json()["objects"][0]["name"], "w");

    let lightning = corpus.join("torch/lightning.pt");
    let tensors = path("lightning.safetensors");
    let run = zt!["convert", lightning, tensors, "--json"].exits(0);
    let document = run.json();
    assert_eq!(document["left_out"], json!([]));
    assert!(run.err.contains("\"epoch\""), "{}", run.err);
    let before = zt!["ls", lightning, "--json"].json();
    assert_eq!(document["objects"], before["objects"].as_array().unwrap().len());

    let flags = path("flags.zt");
    let mut writer = zt::Writer::create(&flags).unwrap();
    let dense = zt::Dense::from_slice(&[2], &[true, false]).unwrap();
    writer.add("flags", &dense).unwrap();
    writer.finish().unwrap();
    let run = zt!["convert", flags, path("flags.gguf")].exits(0);
    assert!(run.err.starts_with("warning[lossy]: flags: "), "{}", run.err);
}

/// One run tells all that has to be decided, and writes nothing.
#[test]
fn every_value_that_would_be_lost_is_listed_at_once() {
    let dir = tempdir().unwrap();
    let (path, out) = (common::sample(dir.path()), dir.path().join("out.gguf"));
    let run = zt!["convert", path, out, "--json"].exits(5);
    assert!(!out.exists());
    let error = &run.json()["error"];
    assert_eq!(error["code"], "lossy");
    for name in ["complex", "fp8", "graph"] {
        assert!(run.err.contains(&format!("{name}: gguf cannot")), "{}", run.err);
    }
    let dropped = zt!["convert", path, out, "--json", "--drop-unsupported"].exits(0);
    let left_out = dropped.json()["left_out"].clone();
    assert_eq!(left_out, json!(["fp8", "complex"]));
}

#[test]
fn a_folder_is_not_replaced_and_force_is_not_hinted_at() {
    let dir = tempdir().unwrap();
    let path = common::sample(dir.path());
    for force in [&[][..], &["--force"]] {
        let arguments = ["convert", path.to_str().unwrap(), dir.path().to_str().unwrap()];
        let arguments = arguments.iter().chain(&["--to", "zt"]).chain(force);
        let run = common::zt(arguments).exits(2);
        assert!(run.err.contains("error[overwrite]"), "{}", run.err);
        assert!(!run.err.contains("note: "), "{}", run.err);
    }
    let run = zt!["convert", path, path, "--dtype", "f16"].exits(2);
    assert!(!run.err.contains("--force"), "{}", run.err);
}

#[test]
fn a_level_may_follow_zstd_after_a_space() {
    let dir = tempdir().unwrap();
    let [first, one, other] = ["a.safetensors", "b.zt", "c.zt"].map(|name| dir.path().join(name));
    of_zeros(&first, 1 << 20);
    for level in ["9", "-3", "auto"] {
        zt!["convert", "-f", first, format!("--zstd={level}"), one].exits(0);
        zt!["convert", "-f", first, "--zstd", level, other].exits(0);
        assert_eq!(fs::read(&one).unwrap(), fs::read(&other).unwrap());
        zt!["merge", "-f", "--zstd", level, first, other].exits(0);
        assert_eq!(fs::read(&one).unwrap(), fs::read(&other).unwrap());
    }
    // A number is a level, also out of range.
    for level in ["23", "-8", "+99", "99999999999"] {
        let run = zt!["convert", "-f", first, other, "--zstd", level].exits(2);
        assert!(run.err.contains("from -7 to 22"), "{}", run.err);
    }
    // Anything else is a file, and so is everything after `--`.
    zt!["convert", "-f", first, "--zstd", other].exits(0);
    let run = zt!["convert", "-f", first, "--zstd", "--", "9", other].exits(4);
    assert!(run.err.contains("9: "), "{}", run.err);
    zt!["convert", first].exits(2);
}

/// ml_dtypes gives the same figures.
#[test]
fn a_cast_says_what_it_loses() {
    let dir = tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    common::of_floats(&path("a.zt"), &[0.0, 1e-4, -3e-4, 1.0, 1.05, -500.0, 7e-9]);
    let casts = |dtype: &str, more: &[&str]| {
        let files = [path("a.zt").into_os_string(), path("b.zt").into_os_string()];
        let more = ["-f", "--dtype", dtype].into_iter().chain(more.iter().copied());
        let all = || {
            iter::once("convert".into())
                .chain(files.clone())
                .chain(more.clone().map(OsString::from))
        };
        let json = common::zt(all().chain(["--json".into()])).exits(0).json();
        (common::zt(all()).exits(0).err, json["casts"].clone())
    };
    let (err, found) = casts("f8_e4m3fn", &["--allow-inf"]);
    let said = "note: cast to f8_e4m3fn: 3 of 7 values became 0, 1 became 448 or -448; relative error 10.400 %\n";
    assert!(err.contains(said), "{err}");
    assert_eq!(
        (&found[0]["values"], &found[0]["to_zero"], &found[0]["out_of_range"]),
        (&json!(7), &json!(3), &json!(1))
    );
    // Values become 0 in f16 only below 2^-25, and in bf16 never.
    let (err, found) = casts("f16", &[]);
    assert!(err.contains("cast to f16: 1 of 7 values became 0; relative error 0.000 %\n"), "{err}");
    assert!(found[0]["relative_error"].as_f64().unwrap() < 1e-5, "{found}");
    let (err, found) = casts("bf16", &[]);
    assert_eq!(
        (err.as_str(), &found[0]["to_zero"], &found[0]["relative_error"]),
        ("", &json!(0), &json!(null))
    );
    // Means are rounded once, when they are written.
    let run =
        zt!["average", path("a.zt"), path("a.zt"), path("c.zt"), "--dtype", "f8_e5m2"].exits(0);
    assert!(run.err.contains("cast to f8_e5m2: 1 of 7 values became 0"), "{}", run.err);
    let run =
        zt!["split", path("a.zt"), "-o", path("set"), "--dtype", "f8_e5m2", "--json"].exits(0);
    assert_eq!(run.json()["casts"][0]["to_zero"], 1);
}

#[test]
fn some_objects_get_another_type() {
    let dir = tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    common::of_floats(&path("a.zt"), &[1.0, 2.0]);
    zt!["rename", path("a.zt"), "w", "b.norm"].exits(0);
    common::of_floats(&path("b.zt"), &[3.0]);
    let types = |run: common::Run| {
        run.exits(0);
        let listed = zt!["ls", "--json", path("o.zt")].exits(0).json();
        let objects = listed["objects"].as_array().unwrap().clone();
        objects.iter().map(|it| it["type"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let both = |args: &[&str]| {
        let files = ["a.zt", "b.zt", "o.zt"].map(|name| path(name).into_os_string());
        let args = args.iter().map(OsString::from);
        common::zt(iter::once("merge".into()).chain(files).chain(["-f".into()]).chain(args))
    };
    assert_eq!(types(both(&["--dtype", "bf16", "--dtype", "*.norm=f64"])), ["f64", "bf16"]);
    assert_eq!(types(both(&["--dtype", "w=fp16"])), ["f32", "f16"]);
    // The last pattern that matches counts. It is compared with the names of the output.
    let renamed = ["--rename", "s/w/x=y/", "--dtype", "*=f16", "--dtype", "x=y=bf16"];
    assert_eq!(types(both(&renamed)), ["f16", "bf16"]);
    let run = both(&["--dtype", "w=f16", "--dtype", "none.*=f16"]).exits(2);
    assert!(
        run.err.contains("error[not-found]: no object matches --dtype \"none.*\""),
        "{}",
        run.err
    );
    both(&["--dtype", "w=f17"]).exits(2);
    both(&["--dtype", "f16", "--dtype", "f32"]).exits(2);
    both(&["--logical", "--dtype", "w=f16"]).exits(2);
}

/// What NumPy, torch, ml_dtypes and safetensors call a type.
#[test]
fn types_have_other_names() {
    let dir = tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    common::of_floats(&path("a.zt"), &[1.0, 2.0]);
    for (typed, expected) in [
        ("bfloat16", "bf16"),
        ("torch.float16", "f16"),
        ("half", "f16"),
        ("BF16", "bf16"),
        ("float8_e4m3fn", "f8_e4m3fn"),
        ("F8_E5M2", "f8_e5m2"),
        ("double", "f64"),
    ] {
        zt!["convert", path("a.zt"), path("b.zt"), "--dtype", typed, "--force"].exits(0);
        let listed = zt!["ls", "--json", path("b.zt")].exits(0).json();
        assert_eq!(listed["objects"][0]["type"], expected, "{typed}");
    }
    zt!["convert", path("a.zt"), path("c.zt"), "--dtype", "fp9"].exits(2);
    let run = zt!["quantize", path("a.zt"), path("c.zt"), "--type", "Q4_K_M"].exits(2);
    assert!(run.err.contains("makes K-quants"), "{}", run.err);
}
