//! The commands that edit a file in place.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::path::{Path, PathBuf};

use common::{keys, sample};
use tempfile::tempdir;
use zt::{Dense, File, Writer};

/// A file of objects of 5,000 floats each.
fn of_names(path: &Path, names: &[&str]) -> PathBuf {
    let mut writer = Writer::create(path).unwrap();
    for (at, name) in names.iter().enumerate() {
        let values = vec![at as f32 + 1.0; 5000];
        let dense = Dense::from_slice(&[5000], &values).unwrap();
        writer.add(name, &dense).unwrap();
    }
    writer.finish().unwrap();
    path.to_owned()
}

fn names(path: &Path) -> Vec<String> {
    let file = File::open(path).unwrap();
    file.names().map(str::to_owned).collect()
}

/// Runs the command twice, first as a dry run, which changes nothing and prints the same.
#[track_caller]
fn dry_and_done(path: &Path, arguments: &[&str]) -> serde_json::Value {
    let before = std::fs::read(path).unwrap();
    let run = |more: &[&str]| {
        let arguments = arguments.iter().chain(more).chain(&["--json"]);
        common::zt(arguments).exits(0).json()
    };
    let mut dry = run(&["--dry-run"]);
    assert!(std::fs::read(path).unwrap() == before, "{arguments:?}");
    let done = run(&[]);
    assert_eq!(done["file_size"], std::fs::metadata(path).unwrap().len());
    assert_eq!(dry["dry_run"], true);
    dry["dry_run"] = false.into();
    assert_eq!(dry, done);
    done
}

#[test]
fn append_adds_objects_of_any_kind() {
    let dir = tempdir().unwrap();
    let path = of_names(&dir.path().join("a.zt"), &["a"]);
    let other = of_names(&dir.path().join("other.zt"), &["b", "c"]);
    let foreign = dir.path().join("other.safetensors");
    zt!["convert", other, foreign].exits(0);
    let file = path.to_str().unwrap();
    let more = sample(dir.path());
    let done =
        dry_and_done(&path, &["append", file, foreign.to_str().unwrap(), more.to_str().unwrap()]);
    assert_eq!(
        keys(&done),
        [
            "added",
            "bytes",
            "casts",
            "damaged",
            "dry_run",
            "duplicates",
            "excluded",
            "file",
            "file_size",
            "inputs",
            "left_out",
            "objects",
            "shared_bytes",
            "warnings"
        ]
    );
    assert_eq!(done["objects"], 9);
    assert_eq!(done["added"].as_array().unwrap().len(), 9);
    assert_eq!(File::open(&path).unwrap().len(), 10);
    assert_eq!(
        File::open(&path).unwrap().attributes().unwrap(),
        File::open(&more).unwrap().attributes().unwrap()
    );
    zt!["verify", "--strict", path].exits(0);

    let text = zt!["append", path, other, "-n", "--zstd"].exits(2);
    assert!(text.err.contains("error[duplicate-name]"), "{}", text.err);
    assert!(text.err.contains(other.to_str().unwrap()), "{}", text.err);
    assert_eq!(zt!["append", path, other, "--zstd"].exits(2).err, text.err);
    let one = of_names(&dir.path().join("one.zt"), &["x"]);
    let text = zt!["append", path, one, "--zstd"].exits(0).text();
    assert!(text.starts_with(&format!("{file}: 1 object")), "{text}");
    let other = of_names(&dir.path().join("y.zt"), &["y"]);
    zt!["append", path, other, "--zstd", "--no-dedup"].exits(0);
    let data = |name: &str| {
        let file = File::open(&path).unwrap();
        let tensor = file.tensor(name).unwrap();
        tensor.component("data").unwrap().blob.clone()
    };
    // Bytes that the file has are not stored again, whatever --zstd says.
    assert_eq!(data("x").span, data("a").span);
    assert_eq!(data("y").encoding, zt::Encoding::Zstd);
}

#[test]
fn rm_takes_names_and_patterns() {
    let dir = tempdir().unwrap();
    let path = of_names(&dir.path().join("a.zt"), &["a.1", "a.2", "b", "c", "d"]);
    let file = path.to_str().unwrap();
    let done = dry_and_done(&path, &["rm", file, "c", "a.1", "c", "--glob", "a.*"]);
    assert_eq!(keys(&done), ["dry_run", "file", "file_size", "indexes", "removed", "unused_bytes"]);
    assert_eq!(done["removed"], serde_json::json!(["a.1", "a.2", "c"]));
    assert_eq!(done["unused_bytes"], 60_000);
    assert_eq!(names(&path), ["b", "d"]);

    let before = std::fs::read(&path).unwrap();
    for arguments in [&["x"][..], &["b", "x"], &["--glob", "x*"]] {
        let run = common::zt(["rm", "--json", file].iter().chain(arguments)).exits(2);
        assert_eq!(run.error_code(), "not-found", "{arguments:?}");
    }
    zt!["rm", path].exits(2);
    assert!(std::fs::read(&path).unwrap() == before);

    // A faulty object stops an edit until it is removed.
    let faulty = common::faulty(dir.path());
    let run = zt!["rename", "--json", faulty, "good", "better"].exits(1);
    assert_eq!(run.error_code(), "dtype");
    zt!["rm", faulty, "bad"].exits(0);
    zt!["rename", faulty, "good", "better"].exits(0);
    assert_eq!(names(&faulty), ["better"]);
}

#[test]
fn rename_refuses_a_name_in_use() {
    let dir = tempdir().unwrap();
    let path = of_names(&dir.path().join("a.zt"), &["a", "b"]);
    let file = path.to_str().unwrap();
    let done = dry_and_done(&path, &["rename", file, "a", "z"]);
    assert_eq!(keys(&done), ["dry_run", "file", "file_size", "indexes", "new", "old", "renamed"]);
    assert_eq!(names(&path), ["b", "z"]);
    for (old, new, code) in [("a", "x", "not-found"), ("b", "z", "duplicate-name")] {
        let run = zt!["rename", "--json", path, old, new].exits(2);
        assert_eq!(run.error_code(), code);
    }
    let text = zt!["rename", path, "z", "\x1b[2J"].exits(0).text();
    assert!(!text.contains('\x1b'));
}

#[test]
fn no_object_gets_an_empty_name() {
    let dir = tempdir().unwrap();
    let path = of_names(&dir.path().join("a.zt"), &["a", "b"]);
    let other = of_names(&dir.path().join("other.zt"), &["c"]);
    let [file, other] = [&path, &other].map(|path| path.to_str().unwrap());
    let out = dir.path().join("out.safetensors");
    let out = out.to_str().unwrap();
    for arguments in [
        &["rename", file, "a", ""][..],
        &["rename", file, "--rule", "s/a//"],
        &["append", file, other, "--rename", "s/c//"],
        &["convert", other, out, "--rename", "s/c//"],
        &["merge", file, other, out, "--rename", "s/c//"],
        &["split", other, "-o", out, "--rename", "s/c//"],
    ] {
        let run = common::zt(arguments).exits(2);
        assert!(run.err.contains("is empty"), "{arguments:?} {}", run.err);
        assert_eq!(names(&path), ["a", "b"], "{arguments:?}");
        assert!(!Path::new(out).exists(), "{arguments:?}");
    }
}

#[test]
fn meta_get_prints_what_meta_set_stored() {
    let dir = tempdir().unwrap();
    let path = of_names(&dir.path().join("a.zt"), &["a"]);
    let file = path.to_str().unwrap();
    assert_eq!(zt!["meta", "get", path].exits(0).text(), "{}\n");
    let done = dry_and_done(&path, &["meta", "set", file, "heads", "32"]);
    assert_eq!(keys(&done), ["dry_run", "file", "file_size", "key", "new", "old"]);
    assert_eq!((&done["old"], &done["new"]), (&().into(), &32.into()));
    for (value, text, shown) in [
        ("Ada", false, r#""Ada""#),
        ("true", false, "true"),
        ("true", true, r#""true""#),
        ("-1.5", false, "-1.5"),
        (r#"{"$bytes":"AP8="}"#, false, "{\n  \"$bytes\": \"AP8=\"\n}"),
    ] {
        let flag = if text { &["--text"][..] } else { &[] };
        common::zt(["meta", "set", file, "k", value].iter().chain(flag)).exits(0);
        assert_eq!(zt!["meta", "get", path, "k"].exits(0).text(), format!("{shown}\n"));
    }
    zt!["meta", "set", path, "k", "Ada"].exits(0);
    assert_eq!(zt!["meta", "get", path, "k", "--text"].exits(0).text(), "Ada\n");
    let document = zt!["meta", "get", path, "k", "--json"].exits(0).json();
    assert_eq!(document, serde_json::json!({"file": file, "key": "k", "value": "Ada"}));
    let document = zt!["meta", "get", path, "--json"].exits(0).json();
    assert_eq!(document["attributes"], serde_json::json!({"heads": 32, "k": "Ada"}));

    let done = dry_and_done(&path, &["meta", "rm", file, "k"]);
    assert_eq!(keys(&done), ["dry_run", "file", "file_size", "key", "old"]);
    assert_eq!(done["old"], "Ada");
    for arguments in [["meta", "get", file, "k"], ["meta", "rm", file, "k"]] {
        let run = common::zt(arguments.iter().chain(&["--json"])).exits(2);
        assert_eq!(run.error_code(), "not-found");
    }
    zt!["meta", "rm", path, "heads"].exits(0);
    assert_eq!(File::open(&path).unwrap().attributes().unwrap(), None);
    let run = zt!["meta", "set", "--json", path, "k", r#"{"$x":1}"#].exits(2);
    assert_eq!(run.error_code(), "misuse");

    // What one file shows can be set in another.
    let sample = sample(dir.path());
    for key in ["map", "nan", "tag", "bytes", "large", "float"] {
        let value = zt!["meta", "get", sample, key].exits(0).text();
        zt!["meta", "set", path, key, value.trim()].exits(0);
        assert_eq!(zt!["meta", "get", path, key].exits(0).text(), value);
    }
}

#[test]
fn compact_removes_unused_bytes() {
    let dir = tempdir().unwrap();
    let path = of_names(&dir.path().join("a.zt"), &["a", "b"]);
    let file = path.to_str().unwrap();
    zt!["rm", path, "a"].exits(0);
    zt!["verify", "--strict", path].exits(1);
    let old = std::fs::metadata(&path).unwrap().len();
    let done = dry_and_done(&path, &["compact", file]);
    assert_eq!(keys(&done), ["dry_run", "file", "file_size", "old_file_size", "warnings"]);
    assert_eq!(done["old_file_size"], old);
    assert!(done["file_size"].as_u64().unwrap() < 21_000);
    zt!["verify", "--strict", path].exits(0);
    assert_eq!(names(&path), ["b"]);
    let text = zt!["compact", path].exits(0).text();
    assert!(text.contains("no unused bytes"), "{text}");

    let damaged = common::damaged(dir.path());
    let before = std::fs::read(&damaged).unwrap();
    let run = zt!["compact", "--json", damaged].exits(1);
    assert_eq!(run.error_code(), "digest-mismatch");
    assert!(std::fs::read(&damaged).unwrap() == before);
}

#[test]
fn old_layouts_other_kinds_and_sets_are_not_edited() {
    let dir = tempdir().unwrap();
    let other = of_names(&dir.path().join("other.zt"), &["b"]);
    let foreign = dir.path().join("a.npz");
    zt!["convert", other, foreign].exits(0);
    let set = dir.path().join("set");
    let two = of_names(&dir.path().join("two.zt"), &["a", "b"]);
    zt!["split", two, "--max-shard-size", "20KB", "-o", set].exits(0);
    let index = set.join("two.zt.index.json");
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/corpus");
    let old = ["writers/0.1.4/dense_dtypes.zt", "valid/v10_shapes.zt"].map(|name| {
        let path = dir.path().join(name.replace('/', "-"));
        std::fs::copy(corpus.join(name), &path).unwrap();
        path
    });
    for path in old.iter().chain([&foreign, &index]) {
        let file = path.to_str().unwrap();
        let before = std::fs::read(path).unwrap();
        let inputs = other.to_str().unwrap();
        let is_set = *path == index;
        for arguments in [
            &["append", file, inputs][..],
            &["rm", file, "--glob", "*"],
            &["rename", file, "a", "b"],
            &["meta", "set", file, "k", "1"],
            &["meta", "rm", file, "k"],
            &["compact", file],
        ] {
            // These change the shards and their index.
            if is_set && matches!(arguments[0], "rm" | "rename") {
                continue;
            }
            for more in [&["--json"][..], &["--json", "--dry-run"]] {
                let run = common::zt(arguments.iter().chain(more)).exits(5);
                assert_eq!(run.error_code(), "unsupported", "{arguments:?}");
                assert!(run.err.contains("convert"), "{}", run.err);
            }
        }
        assert!(std::fs::read(path).unwrap() == before);
    }
    let nothing = dir.path().join("nothing.zt");
    let run = zt!["append", "--json", nothing, other].exits(4);
    assert_eq!(run.error_code(), "io");
    assert!(!nothing.exists());
}

#[test]
fn a_file_is_not_added_to_itself() {
    let dir = tempdir().unwrap();
    let path = of_names(&dir.path().join("a.zt"), &["a"]);
    let other = of_names(&dir.path().join("other.zt"), &["b"]);
    let before = std::fs::read(&path).unwrap();
    let link = dir.path().join("link.zt");
    #[cfg(unix)]
    std::os::unix::fs::symlink(&path, &link).unwrap();
    #[cfg(not(unix))]
    std::fs::hard_link(&path, &link).unwrap();
    for input in [&path, &link] {
        for flag in ["--lossy", "--dry-run"] {
            let run = zt!["append", "--json", path, other, input, flag].exits(2);
            assert_eq!(run.error_code(), "overwrite");
        }
    }
    assert!(std::fs::read(&path).unwrap() == before);
}

#[test]
fn an_edit_locks_out_editors_but_not_readers() {
    let dir = tempdir().unwrap();
    let path = of_names(&dir.path().join("a.zt"), &["a"]);
    let other = of_names(&dir.path().join("other.zt"), &["b"]);
    let edit = File::edit(&path).unwrap();
    let (file, other) = (path.to_str().unwrap(), other.to_str().unwrap());
    for arguments in [
        &["append", file, other][..],
        &["rm", file, "a"],
        &["rename", file, "a", "b"],
        &["meta", "set", file, "k", "1"],
        &["compact", file],
    ] {
        let run = common::zt(arguments.iter().chain(&["--json"])).exits(6);
        assert_eq!(run.error_code(), "locked", "{arguments:?}");
        common::zt(arguments.iter().chain(&["--wait=0"])).exits(6);
        common::zt(arguments.iter().chain(&["--dry-run"])).exits(0);
    }
    // A command that would replace the file is refused, too.
    for arguments in
        [&["convert", other, file][..], &["merge", other, file], &["repair", other, "-o", file]]
    {
        let run = common::zt(arguments.iter().chain(&["--force", "--json"])).exits(6);
        assert_eq!(run.error_code(), "locked", "{arguments:?}");
    }
    zt!["verify", path].exits(0);
    drop(edit);
    zt!["append", file, other].exits(0);
}

#[test]
fn racing_appends_lose_no_committed_object() {
    let dir = tempdir().unwrap();
    let path = of_names(&dir.path().join("a.zt"), &["a"]);
    let inputs: Vec<PathBuf> = (0..8)
        .map(|at| of_names(&dir.path().join(format!("{at}.zt")), &[&format!("{at}")]))
        .collect();
    let children: Vec<_> = inputs
        .iter()
        .map(|input| {
            let mut command = common::command();
            command.arg("append").arg(&path).arg(input);
            command.stdout(std::process::Stdio::null());
            command.stderr(std::process::Stdio::null()).spawn().unwrap()
        })
        .collect();
    let mut expected = vec!["a".to_owned()];
    for (at, mut child) in children.into_iter().enumerate() {
        match child.wait().unwrap().code() {
            Some(0) => expected.push(at.to_string()),
            code => assert_eq!(code, Some(6), "locked"),
        }
    }
    assert!(expected.len() > 1);
    let mut found = names(&path);
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
    zt!["verify", "--strict", path].exits(0);
}

/// What is waited for may replace the file, and is read then. Wine does not rename over an open file.
#[cfg(unix)]
#[test]
fn a_file_that_is_written_anew_is_read_after_the_wait() {
    let dir = tempdir().unwrap();
    let [one, two] = ["one", "two"].map(|name| of_names(&dir.path().join(name), &[name]));
    let path = dir.path().join("a.safetensors");
    zt!["convert", one, path].exits(0);
    let locked = zt::foreign::open_locked(&path).unwrap();
    let mut command = common::command();
    command.args(["meta", "set"]).arg(&path);
    command.args(["key", "1", "--wait"]).stdout(std::process::Stdio::null());
    let mut waiting = command.spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(waiting.try_wait().unwrap(), None, "it waits");
    let new = dir.path().join("new.safetensors");
    zt!["convert", two, new].exits(0);
    std::fs::rename(new, &path).unwrap();
    drop(locked);
    assert_eq!(waiting.wait().unwrap().code(), Some(0));
    let document = zt!["ls", path, "--json"].exits(0).json();
    assert_eq!(document["objects"][0]["name"], "two");
}

#[test]
fn wait_tries_until_the_file_is_free() {
    let dir = tempdir().unwrap();
    let path = of_names(&dir.path().join("a.zt"), &["a"]);
    let set = |key: &str| {
        let mut command = common::command();
        command.args(["meta", "set"]).arg(&path);
        command.args([key, "1", "--wait"]).stdout(std::process::Stdio::null());
        command.spawn().unwrap()
    };
    let edit = File::edit(&path).unwrap();
    let keys: Vec<String> = (0..8).map(|at| format!("k{at}")).collect();
    let mut children: Vec<_> = keys.iter().map(|key| set(key)).collect();
    zt!["meta", "set", path, "late", "1", "--wait=1"].exits(6);
    for child in &mut children {
        assert_eq!(child.try_wait().unwrap(), None, "it waits");
    }
    #[cfg(unix)]
    {
        let mut stopped = set("stopped");
        // Its handler may not be installed yet: the signal ends it in either case.
        let mut kill = std::process::Command::new("kill");
        kill.args(["-TERM", &stopped.id().to_string()]);
        kill.status().unwrap();
        assert_ne!(stopped.wait().unwrap().code(), Some(0));
    }
    drop(edit);
    for mut child in children {
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
    let document = zt!["meta", "get", path, "--json"].exits(0).json();
    assert_eq!(common::keys(&document["attributes"]), keys);
}

#[cfg(unix)]
#[test]
fn an_interrupted_append_leaves_the_file_unchanged() {
    use std::time::{Duration, Instant};

    let dir = tempdir().unwrap();
    let path = of_names(&dir.path().join("a.zt"), &["a"]);
    let input = dir.path().join("w.safetensors");
    // The file grows to its full length first, and the copy takes seconds.
    common::of_zeros(&input, 1 << 30);
    let before = std::fs::read(&path).unwrap();
    let mut child = common::command()
        .args(["append", "--json"])
        .args([&path, &input])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    // The handler is installed before the file grows.
    let since = Instant::now();
    let len = || std::fs::metadata(&path).unwrap().len();
    while len() == before.len() as u64 && since.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(len() > before.len() as u64);
    let pid = child.id().to_string();
    let mut kill = std::process::Command::new("kill");
    kill.args(["-INT", &pid]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(std::fs::read(&path).unwrap() == before);
    assert_eq!(common::names_in(dir.path()), ["a.zt", "w.safetensors"]);
}

/// As a kill leaves it that comes when the copy of the trailer has begun.
#[test]
fn a_file_whose_edit_was_cut_short_is_read_as_it_was_before() {
    let dir = tempdir().unwrap();
    let path = of_names(&dir.path().join("a.zt"), &["a"]);
    let hash = zt!["hash", "--json", path].exits(0).json();
    let old = std::fs::read(&path).unwrap();
    let mut killed = old.clone();
    killed[8..16].copy_from_slice(b"ZT-EDIT\0");
    killed[16..24].copy_from_slice(&(old.len() as u64).to_le_bytes());
    killed.resize(killed.len() + 5000, 0);
    std::fs::write(&path, &killed).unwrap();
    for command in ["ls", "info", "verify", "hash"] {
        let found = zt![command, path].exits(0);
        let warning = format!("warning[unfinished-edit]: {}: ", path.display());
        assert!(found.err.contains(&warning), "{command}: {}", found.err);
    }
    assert_eq!(zt!["hash", "--json", path].exits(0).json(), hash);
    assert!(std::fs::read(&path).unwrap() == killed, "reading changes nothing");
    zt!["repair", path].exits(0);
    assert!(std::fs::read(&path).unwrap() == old);
    std::fs::write(&path, &killed).unwrap();
    zt!["rename", path, "a", "b"].exits(0);
    assert_eq!(names(&path), ["b"]);
    let edited = zt!["ls", path].exits(0);
    assert!(!edited.err.contains("warning"), "{}", edited.err);
}

/// Stores a value that is given as this text, and prints it; `None` if it is refused.
fn again(path: &Path, text: &str) -> Option<String> {
    let file = path.to_str().unwrap();
    let set = common::zt(["meta", "set", "--", file, "k", text]);
    if set.code == Some(2) {
        return None;
    }
    set.exits(0);
    let document = zt!["meta", "get", "--json", path, "k"].exits(0).text();
    let value = document.split_once("\"value\":").unwrap().1;
    Some(value.trim_end().strip_suffix('}').unwrap().trim().to_owned())
}

#[test]
fn printed_values_are_read_as_the_same() {
    let dir = tempdir().unwrap();
    let path = of_names(&dir.path().join("a.zt"), &["a"]);
    for text in [
        "null",
        "true",
        "0",
        "18446744073709551615",
        "-9223372036854775808",
        "-9223372036854775809",
        "-18446744073709551616",
        "-1",
        "1.0",
        "0.1",
        "1.7976931348623157e+308",
        "123456789.12345679",
        "\"größe\"",
        "[]",
        "{}",
        r#"{"a":[1,{"b":null}]}"#,
        r#"{"$bytes":"AP8="}"#,
        r#"{"$bytes":""}"#,
        r#"{"$float":"nan"}"#,
        r#"{"$float":"-inf"}"#,
        "-0.0",
        r#"{"$tag":1,"value":{"$tag":2,"value":[]}}"#,
    ] {
        assert_eq!(again(&path, text).as_deref(), Some(text));
    }
    // A point or an exponent makes a float.
    for (text, printed) in [
        ("18446744073709551616.0", "1.8446744073709552e+19"),
        ("1e20", "1e+20"),
        ("-0", "-0.0"),
        (r#""18446744073709551616""#, r#""18446744073709551616""#),
        (r#"["\\\"",1,"-99999999999999999999"]"#, r#"["\\\"",1,"-99999999999999999999"]"#),
    ] {
        assert_eq!(again(&path, text).as_deref(), Some(printed));
    }
    // Other texts are texts.
    for text in ["", "Ada", "1.2.3", "{", "'x'", "nan", "[1,]"] {
        assert_eq!(again(&path, text), Some(format!("\"{text}\"")));
    }
}

#[test]
fn an_unknown_spelling_and_json_that_no_value_holds_are_refused() {
    let dir = tempdir().unwrap();
    let path = of_names(&dir.path().join("a.zt"), &["a"]);
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    for text in [
        r#"{"$bytes":"A"}"#,
        r#"{"$bytes":"A==="}"#,
        r#"{"$bytes":"A*=="}"#,
        r#"{"$bytes":1}"#,
        r#"{"$bytes":"AP8=","x":1}"#,
        r#"{"$float":"1"}"#,
        r#"{"$float":"fff8000000000001"}"#,
        r#"{"$simple":23}"#,
        r#"{"$map":[[1,2]]}"#,
        r#"{"$tag":-1,"value":0}"#,
        r#"{"$x":1}"#,
        r#"{"a":{"$x":1}}"#,
        "1e400",
        r#""\ud800""#,
        "[-1e999]",
        &deep,
        r#"{"a":1,"a":2}"#,
        r#"[{"b":{"a":1,"\u0061":1}}]"#,
        "18446744073709551616",
        "-18446744073709551617",
        r#"["\"",-9223372036854775809]"#,
        r#"{"a":18446744073709551616}"#,
    ] {
        assert_eq!(again(&path, text), None, "{text}");
    }
}

#[test]
fn every_kind_of_cbor_has_a_spelling() {
    use zt::{Attributes, Value};
    let dir = tempdir().unwrap();
    let path = dir.path().join("a.zt");
    let one = |key: Value, value: Value| Value::Map([(key, value)].into_iter().collect());
    for (value, spelled) in [
        (Value::Unsigned(u64::MAX), "18446744073709551615"),
        (Value::Negative(u64::MAX), "-18446744073709551616"),
        (Value::Bytes(vec![1]), r#"{"$bytes":"AQ=="}"#),
        (Value::Undefined, "null"),
        (Value::Simple(99), "null"),
        (Value::Float(f64::NEG_INFINITY), r#"{"$float":"-inf"}"#),
        (Value::Float(f64::from_bits(0xfff8_0000_0000_0001)), r#"{"$float":"nan"}"#),
        (Value::Float(1.0), "1.0"),
        (Value::Tag(32, Box::new(Value::Null)), r#"{"$tag":32,"value":null}"#),
        (one(1u64.into(), true.into()), r#"{"1":true}"#),
        (one("$bytes".into(), "x".into()), r#"{"$bytes":"x"}"#),
    ] {
        let mut writer = Writer::create(&path).unwrap();
        let attributes: Attributes = [(Value::from("k"), value)].into_iter().collect();
        writer.set_attributes(attributes).unwrap();
        writer.finish().unwrap();
        let document = zt!["meta", "get", "--json", path, "k"].exits(0).text();
        let shown = document.split_once("\"value\":").unwrap().1.trim_end();
        assert_eq!(shown, format!("{spelled}}}"));
    }
}
