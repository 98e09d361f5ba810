//! The help of every command is in `tests/golden/help.txt`.

mod common;

use std::fs;
use std::path::Path;

/// The help of a command, and of all commands below it.
fn help(path: &[&str]) -> String {
    let mut command = common::command();
    command.env_remove("COLUMNS").args(path).arg("--help");
    let text = common::run(&mut command).exits(0).text();
    let mut all = format!("$ zt {}\n{text}\n", [path, &["--help"]].concat().join(" "));
    let (_, list) = text.split_once("\nCommands:\n").unwrap_or_default();
    for line in list.lines().take_while(|line| !line.is_empty()) {
        // A continued line begins with more spaces.
        let name = line.strip_prefix("  ").and_then(|line| line.split(' ').next());
        match name {
            None | Some("" | "help") => {}
            Some(name) => all.push_str(&help(&[path, &[name]].concat())),
        }
    }
    all
}

#[test]
fn help_equals_the_golden_file() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/help.txt");
    let found = help(&[]);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&golden, &found).unwrap();
    }
    let expected = fs::read_to_string(&golden).unwrap();
    let differing = found.lines().zip(expected.lines()).find(|(a, b)| a != b);
    assert!(
        found == expected,
        "update tests/golden/help.txt with UPDATE_GOLDEN=1; first difference: {differing:?}"
    );
}

#[test]
fn every_exit_code_is_listed() {
    let text = common::zt(["--help"]).exits(0).text();
    let (_, listed) = text.split_once("Exit: ").unwrap();
    for code in ["0", "1", "2", "3", "4", "5", "6", "129", "130", "141", "143"] {
        assert!(listed.split([',', ' ', '\n']).any(|word| word == code), "{code}");
    }
}

/// clap breaks longer lines in the middle of a sentence.
#[test]
fn lines_of_help_fit_its_width() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/help.txt");
    for line in fs::read_to_string(golden).unwrap().lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
}

/// `-h` shows the options that most people need, and `--help` all.
#[test]
fn short_help_of_convert_is_short() {
    let lines = |option: &str| {
        let text = common::zt(["convert", option]).exits(0).text();
        text.lines().filter(|line| line.trim_start().starts_with('-')).count()
    };
    assert!(lines("-h") <= 18, "{}", lines("-h"));
    assert!(lines("--help") > 30);
}
