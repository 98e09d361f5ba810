//! Objects that are chosen by patterns and renamed by rules, in every command that reads files.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::collections::BTreeSet;
use std::fs;
#[cfg(unix)]
use std::io::Write as _;
use std::path::Path;

use common::{Run, command, of_sizes, run};
use serde_json::Value;
use tempfile::{TempDir, tempdir};
use zt::{Dense, Writer};

const NAMES: [&str; 5] =
    ["layers.0.bias", "layers.0.weight", "layers.1.weight", "step", "vision.w"];

/// The choice of all tests, and what it leaves.
const CHOICE: [&str; 8] = [
    "--include=layers.*",
    "--include=st[a-z]p",
    "--exclude=*.bias",
    "--exclude=?????1*",
    "--rename",
    r"s/^layers\.([0-9]+)/h\1/",
    "--rename-from",
    "list",
];
const CHOSEN: [&str; 3] = ["h0.weight", "h1.weight", "steps"];

/// A folder with `model.zt`, `other.zt` and a list of new names.
fn folder() -> TempDir {
    let dir = tempdir().unwrap();
    let write = |path: &str, names: &[&str]| {
        let mut writer = Writer::create(dir.path().join(path)).unwrap();
        for (at, name) in (0u16..).zip(names) {
            let values = [at];
            let dense = Dense::from_slice(&[1], &values).unwrap();
            writer.add(name, &dense).unwrap();
        }
        writer.finish().unwrap();
    };
    write("model.zt", &NAMES);
    write("other.zt", &["layers.0.bias"]);
    fs::write(dir.path().join("list"), "step\tsteps\n").unwrap();
    dir
}

/// Runs a command with the choice.
fn chosen(folder: &Path, arguments: &[&str]) -> Run {
    let mut command = command();
    run(command.current_dir(folder).args(arguments).args(CHOICE))
}

fn names(objects: &Value) -> Vec<&str> {
    let objects = objects.as_array().unwrap().iter();
    let names: BTreeSet<&str> = objects.map(|it| it["name"].as_str().unwrap()).collect();
    names.into_iter().collect()
}

#[track_caller]
fn holds(path: &Path, expected: &[&str]) {
    let list = zt!["ls", "--json", path].exits(0).json();
    assert_eq!(names(&list["objects"]), expected);
}

#[test]
fn reading_commands_see_the_chosen_objects() {
    let dir = folder();
    let json = |arguments: &[&str]| chosen(dir.path(), arguments).exits(0).json();
    assert_eq!(names(&json(&["ls", "--json", "model.zt"])["objects"]), CHOSEN);
    assert_eq!(json(&["info", "--json", "model.zt"])["objects"], 3);
    assert_eq!(json(&["verify", "--json", "model.zt"])["objects"], 3);
    let hash = json(&["hash", "--json", "model.zt"]);
    assert_eq!(common::keys(&hash["objects"]), CHOSEN);
    chosen(dir.path(), &["show", "model.zt", "steps"]).exits(0);
    chosen(dir.path(), &["show", "model.zt", "vision.w"]).exits(2);

    // The choice applies to both files, so that one may have the new names already.
    chosen(dir.path(), &["convert", "model.zt", "new.zt"]).exits(0);
    let rule = ["--rename", r"s/^layers\.([0-9]+)/h\1/", "--exclude=vision*"];
    let mut command = command();
    command.current_dir(dir.path()).args(["diff", "--json", "model.zt", "new.zt"]);
    let diff = run(command.args(rule)).exits(1).json();
    assert_eq!(diff["only_a"], serde_json::json!(["h0.bias", "step"]));
    assert_eq!((&diff["only_b"][0], &diff["unchanged"]), (&"steps".into(), &2.into()));
    let hash_of_new = zt!["hash", "--json", dir.path().join("new.zt")].json();
    assert_eq!(hash_of_new["content"], hash["content"]);
}

#[test]
fn writing_commands_write_the_chosen_objects() {
    let dir = folder();
    let at = |name: &str| dir.path().join(name);
    for out in ["out.zt", "out.safetensors", "out.npz", "out.gguf"] {
        chosen(dir.path(), &["convert", "model.zt", out, "--lossy"]).exits(0);
        if !out.ends_with("gguf") {
            holds(&at(out), &CHOSEN);
        }
    }
    // Objects that are left out may have a common name.
    chosen(dir.path(), &["merge", "other.zt", "model.zt", "merged.zt"]).exits(0);
    holds(&at("merged.zt"), &CHOSEN);
    chosen(dir.path(), &["split", "model.zt", "-o", "set", "--max-shard-size=1"]).exits(0);
    holds(&at("set/model.zt.index.json"), &CHOSEN);
    chosen(dir.path(), &["extract", "model.zt", "-o", "arrays"]).exits(0);
    assert_eq!(common::names_in(&at("arrays")), CHOSEN.map(|name| format!("{name}.npy")));
    // The file that is appended to keeps all of its objects.
    chosen(dir.path(), &["append", "other.zt", "model.zt"]).exits(0);
    holds(&at("other.zt"), &["h0.weight", "h1.weight", "layers.0.bias", "steps"]);
}

#[test]
fn patterns_that_choose_nothing_are_named() {
    let dir = folder();
    let zt = |arguments: &[&str]| run(command().current_dir(dir.path()).args(arguments));
    for command in [
        &["ls", "model.zt"][..],
        &["info", "model.zt"],
        &["verify", "model.zt"],
        &["hash", "model.zt"],
        &["show", "model.zt", "step"],
        &["diff", "model.zt", "model.zt"],
        &["extract", "model.zt", "-o", "arrays"],
        &["convert", "model.zt", "out.zt"],
        &["merge", "model.zt", "other.zt", "out.zt"],
        &["append", "other.zt", "model.zt"],
        &["split", "model.zt", "-o", "set"],
        // Of several files too.
        &["ls", "model.zt", "other.zt"],
        &["hash", "."],
    ] {
        for (options, message) in [
            (
                &["--include=layer.*", "--include=x"][..],
                r#"no object matches --include "layer.*" or "x""#,
            ),
            (&["--exclude=*"], r#"every object matches --exclude "*""#),
            (&["--include=s*", "--exclude=*p"], r#"matches --include "s*" matches --exclude "*p""#),
        ] {
            let run = zt(&[command, options].concat()).exits(2);
            assert!(run.err.contains("error[not-found]: "), "{}", run.err);
            assert!(run.err.contains(message), "{command:?} {}", run.err);
        }
        let run = zt(&[command, &["--rename=s/(/x/"]].concat()).exits(2);
        assert!(run.err.contains("s/(/x/"), "{}", run.err);
        let run = zt(&[command, &["--include=[a"]].concat()).exits(2);
        assert!(run.err.contains("[a"), "{}", run.err);
    }
    assert_eq!(common::names_in(dir.path()), ["list", "model.zt", "other.zt"]);
}

#[test]
fn a_file_without_a_chosen_object_is_passed_over_among_others() {
    let dir = folder();
    let zt = |arguments: &[&str]| run(command().current_dir(dir.path()).args(arguments));
    for command in ["ls", "info", "hash", "verify"] {
        let list = zt(&[command, "--json", ".", "--include=step"]).exits(0).json();
        assert_eq!(list.as_array().unwrap().len(), 1, "{command}");
        assert_eq!(Path::new(list[0]["file"].as_str().unwrap()), "./model.zt");
    }
    let merge = ["merge", "model.zt", "other.zt", "out.zt", "--include=step"];
    zt(&merge).exits(0);
    holds(&dir.path().join("out.zt"), &["step"]);
}

#[test]
fn two_objects_with_one_new_name_are_refused() {
    let dir = folder();
    let zt = |arguments: &[&str]| run(command().current_dir(dir.path()).args(arguments));
    for command in
        [&["ls", "model.zt"][..], &["hash", "model.zt"], &["convert", "model.zt", "out.zt"]]
    {
        let run = zt(&[command, &[r"--rename=s/^layers\.[0-9]/h/"]].concat()).exits(2);
        let expected = "error[duplicate-name]: model.zt: h.weight: ";
        assert!(run.err.contains(expected), "{}", run.err);
    }
}

#[test]
fn a_list_of_new_names_is_text_of_limited_length() {
    let dir = folder();
    let list = |bytes: &[u8]| {
        fs::write(dir.path().join("list"), bytes).unwrap();
        let arguments = ["ls", "model.zt", "--rename-from", "list", "--json"];
        run(command().args(arguments).current_dir(dir.path()))
    };
    let listed = list(b"\xef\xbb\xbfstep\tsteps\n").exits(0);
    assert!(String::from_utf8(listed.out).unwrap().contains("\"steps\""));
    for wrong in [&b"step\ta\tb\n"[..], b"step\t\xff\n", &[b'\n'; (64 << 20) + 1]] {
        assert_eq!(list(wrong).exits(2).error_code(), "names");
    }
}

#[test]
fn a_list_with_names_that_no_input_has_is_refused() {
    let dir = folder();
    fs::write(dir.path().join("list"), "layers.0.bias\tb\nlayer.9\tc\nlayer.8\td\n").unwrap();
    let zt = |arguments: &[&str]| run(command().args(arguments).current_dir(dir.path())).exits(2);
    for arguments in [
        &["ls", "model.zt"][..],
        &["convert", "model.zt", "out.zt"],
        &["merge", "model.zt", "other.zt", "out.zt"],
        &["diff", "model.zt", "model.zt"],
    ] {
        let run = zt(&[arguments, &["--rename-from=list"]].concat());
        let expected = "error[names]: list: no input has the object \"layer.8\" (and 1 other)";
        assert!(run.err.contains(expected), "{}", run.err);
        assert!(!dir.path().join("out.zt").exists());
    }
    // A file that does not open may have them. Its own error is told.
    fs::write(dir.path().join("cut.zt"), b"ZTEN").unwrap();
    let ls = ["ls", "model.zt", "cut.zt", "--rename-from=list"];
    let run_of_two = run(command().args(ls).current_dir(dir.path()));
    assert!(run_of_two.err.contains("cut.zt") && !run_of_two.err.contains("error[names]"));
    assert_ne!(run_of_two.code, Some(0));
    // One input has each of these.
    fs::write(dir.path().join("list"), "layers.0.bias\tb\nvision.w\tv\n").unwrap();
    let merge = ["merge", "model.zt", "other.zt", "out.zt", "--rename-from=list"];
    run(command().args(merge).args(["--exclude=1:*.bias"]).current_dir(dir.path())).exits(0);
}

#[cfg(unix)]
#[test]
fn a_list_of_new_names_in_a_pipe_is_for_every_input() {
    let dir = folder();
    let (list, mut pipe) = std::io::pipe().unwrap();
    pipe.write_all(b"step\tsteps\nlayers.0.bias\tb\n").unwrap();
    drop(pipe);
    let merge = ["merge", "model.zt", "other.zt", "out.zt"];
    let options = ["--exclude=1:*.bias", "--rename-from=/dev/stdin"];
    let mut command = command();
    let command = command.current_dir(dir.path()).args(merge).args(options);
    run(command.stdin(list)).exits(0);
    let expected = ["b", "layers.0.weight", "layers.1.weight", "steps", "vision.w"];
    holds(&dir.path().join("out.zt"), &expected);
}

/// A file of empty objects with these names.
fn of_names(dir: &TempDir, names: &[&str]) -> String {
    let path = dir.path().join("names.safetensors");
    let objects: Vec<(&str, u64)> = names.iter().map(|name| (*name, 0)).collect();
    of_sizes(&path, &objects);
    path.to_str().unwrap().to_owned()
}

#[test]
fn stars_questions_and_sets_match_as_in_a_shell() {
    let dir = tempdir().unwrap();
    let takes = |pattern: &str, name: &str| {
        let path = of_names(&dir, &[name]);
        let list = zt!["ls", "--json", format!("--glob={pattern}"), path].exits(0).json();
        names(&list["objects"]) == [name]
    };
    for (pattern, name) in [
        ("*", ""),
        ("*", "a.b/c"),
        ("layers.*.weight", "layers.10.q_proj.weight"),
        ("layers.?.w", "layers.é.w"),
        ("[a-c]x[!0-9]", "bxz"),
        ("[]]", "]"),
        ("[[]", "["),
        ("*a*b*c", "xxaxxbxxabcxc"),
        ("[a-]", "-"),
    ] {
        assert!(takes(pattern, name), "{pattern} {name}");
    }
    for (pattern, name) in [
        ("", "a"),
        ("?", ""),
        ("a", "A"),
        ("[a-c]", "d"),
        ("[!a]", "a"),
        ("*.weight", "w.weights"),
        ("a*a", "a"),
    ] {
        assert!(!takes(pattern, name), "{pattern} {name}");
    }
    // Many stars are not slow.
    assert!(!takes(&"*a".repeat(200), &"a".repeat(199)));
    assert!(!takes(&format!("{}b", "a*".repeat(511)), &"a".repeat(10_000)));
}

#[test]
fn patterns_without_an_end_and_those_that_would_take_minutes_are_refused() {
    let dir = tempdir().unwrap();
    let path = of_names(&dir, &["a"]);
    let code = |pattern: &str| zt!["ls", format!("--include={pattern}"), path].code;
    let long = format!("*{}b", "a".repeat(60_000));
    for pattern in ["[", "a[b", "[!", "[]", "[a]*[!]", "[é", &long] {
        assert_eq!(code(pattern), Some(2), "{pattern}");
    }
    // Those that take nothing are answered in the same way, and not with the usage.
    for pattern in ["", "[[]", "[]]", "[!]]", "]", "a[é-z]?", &"a".repeat(60_000)] {
        let run = zt!["ls", format!("--include={pattern}"), path];
        assert!(!run.err.contains("For more information"), "{}", run.err);
    }
    let all = |count| {
        let patterns = std::iter::repeat_n("--include=*a*b*c".to_owned(), count);
        common::zt(["ls", &*path].map(str::to_owned).into_iter().chain(patterns))
    };
    let (few, many) = (all(256), all(257));
    assert!(!few.err.contains("257 patterns with *"), "{}", few.err);
    assert!(many.exits(2).err.contains("257 patterns with *"));
}

/// The name of the only object of a file by this rule; the code of the exit if it is refused.
fn renamed(dir: &TempDir, name: &str, rule: &str) -> Result<String, Option<i32>> {
    let path = of_names(dir, &[name]);
    let run = zt!["ls", "--json", format!("--rename={rule}"), path];
    match run.code {
        Some(0) => Ok(names(&run.json()["objects"])[0].to_owned()),
        code => Err(code),
    }
}

#[test]
fn a_rule_replaces_as_sed_does() {
    let dir = tempdir().unwrap();
    for (rule, name, expected) in [
        (r"s/^model\.//", "model.model.w", "model.w"),
        ("s/a/b/", "aaa", "baa"),
        ("s/a/b/g", "aaa", "bbb"),
        (r"s/^h\.([0-9]+)\./layers.\1./", "h.12.w", "layers.12.w"),
        ("s|a/b|c|", "a/b/a/b", "c/a/b"),
        (r"s/a\/b/c/", "a/b", "c"),
        ("s/w/[&]/", "w", "[w]"),
        (r"s/w/\&$1/", "w", "&$1"),
        ("s/x/y/", "w", "w"),
        (r"s/^(model|transformer)\.layers\.([0-9]{1,4})\./\2./", "model.layers.7.w", "7.w"),
    ] {
        assert_eq!(renamed(&dir, name, rule).as_deref(), Ok(expected), "{rule}");
    }
    for rule in [
        "",
        "s",
        "s/",
        "s/a",
        "s/a/b",
        "s/a/b/c/",
        "s/a/b/i",
        "y/a/b/",
        "sxaxbx",
        "s/(/b/",
        r"s/a/\1/",
        "sé",
        r"s\a\b\",
        r"s/\w{5000}//",
        "s/.*//",
    ] {
        assert_eq!(renamed(&dir, "w", rule), Err(Some(2)), "{rule}");
    }
    // Names and rules have a largest size.
    assert_eq!(renamed(&dir, "w", &format!("s/w/{}/", "&".repeat(65))), Err(Some(2)));
    let long = "w".repeat(32 << 10);
    assert_eq!(renamed(&dir, &long, "s/./&&/g").map(|name| name.len()), Ok(64 << 10));
    assert_eq!(renamed(&dir, &(long + "w"), "s/./&&/g"), Err(Some(2)));
}
