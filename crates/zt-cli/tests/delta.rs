//! `zt delta`, `zt patch` and `--base`.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod common;

use std::fs;
use std::path::PathBuf;

use common::{names_in, of_floats, zt};
use tempfile::{TempDir, tempdir};

/// Three files, and the deltas between them.
struct Steps(TempDir);

impl Steps {
    fn new() -> Self {
        let steps = Steps(tempdir().unwrap());
        let mut values: Vec<f32> = (0u8..200).map(f32::from).collect();
        for at in 0u8..3 {
            values[usize::from(at)] += 0.5;
            of_floats(&steps.at(&format!("{at}.zt")), &values);
        }
        for (from, to) in [("0.zt", "1.zt"), ("1.zt", "2.zt")] {
            let delta = steps.at(&format!("to-{to}"));
            let (from, to) = (steps.at(from), steps.at(to));
            zt(["delta".into(), from, to, "-o".into(), delta]).exits(0);
        }
        steps
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The program with paths in the place of names of files.
    fn zt(&self, arguments: &[&str]) -> common::Run {
        let path = |argument: &&str| {
            if argument.ends_with(".zt") || argument.ends_with(".safetensors") {
                self.at(argument)
            } else {
                PathBuf::from(argument)
            }
        };
        zt(arguments.iter().map(path))
    }

    fn content(&self, arguments: &[&str]) -> String {
        let hash = self.zt(&[&["hash", "--json"], arguments].concat());
        hash.exits(0).json()["content"].as_str().unwrap().to_owned()
    }
}

#[test]
fn deltas_make_the_file_again() {
    let steps = Steps::new();
    let run = steps.zt(&["delta", "0.zt", "2.zt", "-o", "d.zt", "--json"]);
    let json = run.exits(0).json();
    assert_eq!((&json["changed"], &json["same"]), (&1.into(), &0.into()));
    assert_eq!(json["bytes"], 800);
    let two = ["patch", "0.zt", "to-1.zt", "to-2.zt", "-o"];
    steps.zt(&[&two[..], &["new.safetensors"]].concat()).exits(0);
    steps.zt(&["patch", "0.zt", "d.zt", "-o", "new.zt"]).exits(0);
    for new in ["new.safetensors", "new.zt"] {
        assert_eq!(steps.content(&[new]), steps.content(&["2.zt"]));
    }
}

/// Of a delta, `info` shows what it applies to, and not bytes in base64.
#[test]
fn info_describes_a_delta() {
    let steps = Steps::new();
    let run = steps.zt(&["info", "to-1.zt"]).exits(0);
    let text = run.text();
    let [base, result] = ["0.zt", "1.zt"].map(|file| steps.content(&[file]));
    for line in [
        "delta       1 changed, 0 whole, 0 removed".to_owned(),
        format!("of base     {base}, 1 object"),
        format!("to result   {result}"),
    ] {
        assert!(text.contains(&line), "{text}");
    }
    assert!(!text.contains("$bytes"), "{text}");
    let json = steps.zt(&["info", "--json", "to-1.zt"]).exits(0).json();
    assert_eq!(json["delta"]["base"], base);
    assert_eq!(json["delta"]["changed"], 1);
}

#[test]
fn the_description_of_a_delta_is_no_attribute_to_edit() {
    let steps = Steps::new();
    let before = fs::read(steps.at("to-1.zt")).unwrap();
    for edit in [&["set", "0.zt", "zt.delta", "{}"][..], &["rm", "to-1.zt", "zt.delta"]] {
        let run = steps.zt(&[&["meta"], edit].concat()).exits(2);
        assert!(run.err.contains("`zt delta` and `zt patch` change it"), "{}", run.err);
    }
    assert_eq!(fs::read(steps.at("to-1.zt")).unwrap(), before);
}

#[test]
fn a_wrong_base_writes_nothing() {
    let steps = Steps::new();
    let before = names_in(steps.0.path());
    let run = steps.zt(&["patch", "2.zt", "to-1.zt", "-o", "new.zt", "--json"]);
    let run = run.exits(2);
    assert_eq!(run.error_code(), "wrong-base");
    assert!(!run.err.contains("--skip-damaged"), "{}", run.err);
    let run = steps.zt(&["patch", "0.zt", "to-2.zt", "to-1.zt", "-o", "new.zt", "--json"]);
    assert_eq!(run.exits(2).error_code(), "wrong-base");
    let run = steps.zt(&["convert", "to-1.zt", "--base", "2.zt", "new.zt", "--json"]);
    assert_eq!(run.exits(2).error_code(), "wrong-base");
    assert_eq!(names_in(steps.0.path()), before);
    let old = fs::read(steps.at("1.zt")).unwrap();
    let run = steps.zt(&["patch", "0.zt", "to-1.zt", "-o", "1.zt", "--json"]);
    assert_eq!(run.exits(2).error_code(), "overwrite");
    assert_eq!(fs::read(steps.at("1.zt")).unwrap(), old);
}

#[test]
fn base_reads_a_delta_as_its_result() {
    let steps = Steps::new();
    let one = ["to-1.zt", "--base", "0.zt"];
    let two = ["to-2.zt", "--base", "0.zt", "--base", "to-1.zt"];
    assert_eq!(steps.content(&one), steps.content(&["1.zt"]));
    assert_eq!(steps.content(&two), steps.content(&["2.zt"]));
    for command in [&["verify"][..], &["ls"], &["info"]] {
        steps.zt(&[command, &two].concat()).exits(0);
    }
    for command in ["ls", "info"] {
        let is_noted = |arguments: &[&str]| {
            let run = steps.zt(&[&[command], arguments].concat()).exits(0);
            run.err.contains("to-2.zt is a delta: --base BASE reads")
        };
        assert!(is_noted(&two[..1]));
        assert!(!is_noted(&two));
    }
    steps.zt(&[&["diff", "2.zt"], &two[..]].concat()).exits(0);
    let show = |arguments: &[&str]| steps.zt(&[&["show"], arguments, &["--slice", "1:3"]].concat());
    let expected = show(&["2.zt", "w"]).exits(0).text();
    let found = show(&[&two[..1], &["w"], &two[1..]].concat()).exits(0).text();
    assert_eq!(found, expected);
    // Two deltas become one.
    let joined = [&["delta", "0.zt"], &two[..], &["-o", "d.zt"]].concat();
    steps.zt(&joined).exits(0);
    steps.zt(&["patch", "0.zt", "d.zt", "-o", "new.zt"]).exits(0);
    assert_eq!(steps.content(&["new.zt"]), steps.content(&["2.zt"]));
}

#[test]
fn a_third_file_that_does_not_exist_is_the_output() {
    let steps = Steps::new();
    let base = fs::read(steps.at("0.zt")).unwrap();
    steps.zt(&["patch", "0.zt", "to-1.zt", "new.zt"]).exits(0);
    assert_eq!(fs::read(steps.at("0.zt")).unwrap(), base);
    assert_eq!(steps.content(&["new.zt"]), steps.content(&["1.zt"]));
}

#[test]
fn patch_without_an_output_changes_the_base() {
    let steps = Steps::new();
    let content = steps.content(&["2.zt"]);
    let old = fs::read(steps.at("0.zt")).unwrap();
    // Not the base: nothing is written.
    let run = steps.zt(&["patch", "0.zt", "to-2.zt", "--json"]);
    assert_eq!(run.exits(2).error_code(), "wrong-base");
    assert_eq!(fs::read(steps.at("0.zt")).unwrap(), old);
    let run = steps.zt(&["patch", "0.zt", "to-1.zt", "--planes", "--json"]);
    assert_eq!(run.exits(2).error_code(), "misuse");
    let run = steps.zt(&["patch", "0.zt", "to-1.zt", "to-2.zt", "--json"]);
    assert_eq!(run.exits(0).json()["written"], 1);
    assert_eq!(steps.content(&["0.zt"]), content);
    steps.zt(&["verify", "0.zt"]).exits(0);
    // A kind that cannot be edited.
    steps.zt(&["convert", "1.zt", "1.safetensors"]).exits(0);
    let run = steps.zt(&["patch", "1.safetensors", "to-2.zt", "--json"]);
    assert_eq!(run.exits(5).error_code(), "unsupported");
    let run = steps.zt(&["patch", "1.safetensors", "to-2.zt"]).exits(5);
    assert!(run.err.contains("note: -o NEW writes the result"), "{}", run.err);
    // A delta has no values of its own.
    let run = steps.zt(&["stats", "to-2.zt"]).exits(5);
    assert!(run.err.contains("is a delta: --base BASE reads"), "{}", run.err);
}

/// `same` is no part of the delta, so nothing but the identity of the base tells its values apart.
#[test]
fn a_wrong_base_is_refused_by_every_command_that_reads_it_all() {
    let dir = tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let write = |name: &str, same: f32, changed: f32| {
        let mut writer = zt::Writer::create(at(name)).unwrap();
        for (name, value) in [("same", same), ("changed", changed)] {
            writer.add(name, &zt::Dense::from_slice(&[1], &[value]).unwrap()).unwrap();
        }
        writer.finish().unwrap();
    };
    write("base.zt", 1.0, 2.0);
    write("new.zt", 1.0, 3.0);
    write("wrong.zt", 9.0, 2.0);
    let [base, new, wrong, d] = ["base.zt", "new.zt", "wrong.zt", "d.zt"].map(at);
    zt!["delta", base, new, "-o", d].exits(0);
    let (out, page) = (at("out"), at("page.html"));
    let is_refused = |run: common::Run| assert_eq!(run.exits(2).error_code(), "wrong-base");
    for command in ["hash", "verify", "stats"] {
        let run = zt![command, d, "--base", wrong];
        assert!(run.code != Some(0) && run.err.contains("wrong-base"), "{command}: {}", run.err);
        zt![command, d, "--base", base].exits(0);
    }
    assert!(zt!["cat", d, "same", "--base", wrong].exits(2).out.is_empty());
    is_refused(zt!["extract", d, "same", "--base", wrong, "-o", out, "--json"]);
    is_refused(zt!["diff", d, new, "--base", wrong, "--json"]);
    is_refused(zt!["delta", base, d, "--base", wrong, "-o", at("e.zt"), "--json"]);
    is_refused(zt!["report", d, "--base", wrong, "-o", page, "--json"]);
    assert!(!out.exists() && !page.exists() && !at("e.zt").exists());
    is_refused(zt!["show", d, "same", "--base", wrong, "--json"]);
    is_refused(zt!["meta", "get", d, "--base", wrong, "--json"]);
    is_refused(zt!["bench", d, "--base", wrong, "--json"]);
    // These show no values, and say what they did not compare.
    for command in ["ls", "info"] {
        let run = zt![command, d, "--base", wrong].exits(0);
        assert!(run.err.contains("warning[base-unchecked]"), "{command}: {}", run.err);
    }
    let empty = at("empty.zt");
    zt::Writer::create(&empty).unwrap().finish().unwrap();
    is_refused(zt!["ls", d, "--base", empty, "--json"]);
}

#[test]
fn a_base_without_a_delta_is_no_use() {
    let steps = Steps::new();
    let files: [&[&str]; 5] = [
        &["ls", "1.zt"],
        &["show", "1.zt", "w"],
        &["convert", "1.zt", "o.zt"],
        &["hash", "1.zt"],
        &["diff", "0.zt", "1.zt"],
    ];
    for command in files {
        let run = steps.zt(&[command, &["--base", "0.zt", "--json"]].concat());
        assert!(run.exits(2).err.contains("no file is"), "{command:?}");
    }
    assert!(!steps.at("o.zt").exists());
    // Of several files, one is enough.
    let run = steps.zt(&["info", "1.zt", "to-1.zt", "--base", "0.zt"]).exits(0);
    assert!(run.err.contains("1.zt: the file is no delta"), "{}", run.err);
}

/// A program that follows a training may ask for the same step again.
#[test]
fn a_delta_that_is_applied_already_is_no_error() {
    let steps = Steps::new();
    let run = steps.zt(&["patch", "1.zt", "to-1.zt", "-o", "new.zt"]).exits(0);
    assert!(run.err.contains("is-result"), "{}", run.err);
    assert_eq!(steps.content(&["new.zt"]), steps.content(&["1.zt"]));
    let before = fs::read(steps.at("2.zt")).unwrap();
    let run = steps.zt(&["patch", "2.zt", "to-2.zt"]).exits(0);
    assert!(run.err.contains("is the result of the deltas already"), "{}", run.err);
    assert_eq!(fs::read(steps.at("2.zt")).unwrap(), before);
    let run = steps.zt(&["patch", "2.zt", "to-1.zt", "to-2.zt"]).exits(0);
    assert!(run.text().contains("0 objects written"), "{}", run.text());
}
