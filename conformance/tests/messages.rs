//! Every message of an error or a warning, in one file: `golden/messages.txt`.
//!
//! Other tests assert codes and fields. This file shows a change of words as one diff. The test
//! collects the messages from the sources, and `UPDATE_GOLDEN=1` writes the file anew.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Where messages begin in a source: the text of a variant, a `Display`, a warning.
const BEGINNINGS: [&str; 3] = ["#[error(", "::Display for ", "Warning::new("];

#[test]
fn the_golden_file_has_every_message() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&root.join("../crates"), &mut files);
    files.sort();
    let mut found = String::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        // Unit tests stand at the end.
        let text = text.split("#[cfg(test)]").next().unwrap();
        let messages = messages(text);
        if messages.is_empty() {
            continue;
        }
        let name = file.strip_prefix(root.join("../crates")).unwrap();
        writeln!(found, "{}", name.display()).unwrap();
        for message in messages {
            writeln!(found, "  {message}").unwrap();
        }
    }
    let golden = root.join("tests/golden/messages.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(golden.parent().unwrap()).unwrap();
        fs::write(&golden, &found).unwrap();
    }
    let known = fs::read_to_string(&golden).unwrap_or_default();
    for (at, (known, found)) in known.lines().zip(found.lines()).enumerate() {
        assert_eq!(known, found, "line {}; UPDATE_GOLDEN=1 writes it anew", at + 1);
    }
    assert_eq!(known.lines().count(), found.lines().count());
}

/// The sources of the crates, without tests and examples.
fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() && !["tests", "examples", "target"].contains(&&*name) {
            sources(&path, files);
        } else if name.ends_with(".rs") {
            files.push(path);
        }
    }
}

/// The string literals with a space in them that follow a beginning, up to the end of its block.
fn messages(text: &str) -> Vec<String> {
    let mut messages = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if !BEGINNINGS.iter().any(|it| line.contains(it)) {
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        // The block ends with a line of the same indentation, or is this line.
        let rest = text.lines().skip(at + 1);
        let ends =
            |line: &&str| !line.trim().is_empty() && line.len() - line.trim_start().len() <= indent;
        let end = rest.clone().position(|line| ends(&line)).unwrap_or(0);
        let length = if line.ends_with('{') {
            end + 1
        } else if line.ends_with('(') {
            end
        } else {
            0
        };
        let block: Vec<&str> = text.lines().skip(at).take(length + 1).collect();
        messages.extend(literals(&block.join("\n")));
    }
    messages
}

/// The string literals of a piece of source, a continued one on one line.
fn literals(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = source.chars().peekable();
    while let Some(char) = rest.next() {
        // A comment, and a quoted character, are no strings.
        if char == '/' && rest.peek() == Some(&'/') {
            rest.by_ref().find(|char| *char == '\n');
        }
        if char != '"' {
            continue;
        }
        let mut literal = String::new();
        while let Some(char) = rest.next() {
            match char {
                '"' => break,
                '\\' if rest.peek() == Some(&'\n') => {
                    while rest.next_if(|char| char.is_whitespace()).is_some() {}
                }
                '\\' => literal.extend(['\\'].into_iter().chain(rest.next())),
                char => literal.push(char),
            }
        }
        if literal.contains(' ') && literal.contains(char::is_alphabetic) {
            found.push(literal);
        }
    }
    found
}
