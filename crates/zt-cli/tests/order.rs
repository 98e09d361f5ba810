//! Options stand before, between and after positional arguments.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::fs;
use std::path::Path;

use common::{of_floats, sample};
use tempfile::tempdir;

/// Every command with several files or names, in a folder with `a.zt`, `b.zt` and `c.zt`.
const CALLS: &[(&[&str], &[&str])] = &[
    (&["convert"], &["a.zt", "b.zt", "new.zt"]),
    (&["merge"], &["a.zt", "b.zt", "new.zt"]),
    (&["append"], &["a.zt", "b.zt", "c.zt"]),
    (&["diff"], &["a.zt", "a.zt"]),
    (&["verify"], &["a.zt", "b.zt", "c.zt"]),
    (&["ls"], &["a.zt", "b.zt"]),
    (&["info"], &["a.zt", "b.zt"]),
    (&["hash"], &["a.zt", "b.zt"]),
    (&["show"], &["a.zt", "half"]),
    (&["rm"], &["a.zt", "half", "fp8"]),
    (&["rename"], &["a.zt", "half", "double"]),
    (&["meta", "get"], &["a.zt", "text"]),
    (&["meta", "set"], &["a.zt", "text", "-1"]),
    (&["meta", "rm"], &["a.zt", "text"]),
    (&["extract"], &["a.zt", "half", "w"]),
];

/// Options of the commands, with and without values.
fn options(command: &str) -> &'static [&'static [&'static str]] {
    match command {
        "convert" | "merge" => &[&["--zstd", "3"], &["--zstd"], &["-f"], &["--jobs", "1"]],
        "append" => &[&["--zstd", "3"], &["--zstd"], &["--dry-run"], &["--lossy"]],
        "diff" => &[&["--values"], &["--atol", "1"]],
        "verify" => &[&["--strict"], &["--jobs", "1"]],
        "ls" => &[&["--tree"], &["--sort", "size"], &["-r"]],
        "info" => &[&["-r"]],
        "hash" => &[&["--dense"], &["--jobs", "1"]],
        "show" => &[&["--stats"], &["--slice", "0:1"]],
        "set" => &[&["--text"], &["-n"]],
        "get" => &[&["--text"]],
        "extract" => &[&["-o", "out"], &["--output=out"]],
        _ => &[&["-n"]],
    }
}

/// Makes `a.zt`, `b.zt` and `c.zt`, without common names.
fn originals(dir: &Path) {
    fs::rename(sample(dir), dir.join("a.zt")).unwrap();
    for name in ["b", "c"] {
        let path = dir.join(format!("{name}.zt"));
        of_floats(&path, &[1.0, 2.0]);
        common::zt([Path::new("rename"), &path, "w".as_ref(), name.as_ref()]).exits(0);
    }
}

#[test]
fn options_stand_anywhere() {
    let from = tempdir().unwrap();
    originals(from.path());
    for (command, places) in CALLS {
        for option in options(command.last().unwrap()) {
            let mut first = None;
            for at in 0..=places.len() {
                let (before, after) = places.split_at(at);
                let arguments = [command, before, option, after, &["--json"]].concat();
                let dir = tempdir().unwrap();
                for name in ["a.zt", "b.zt", "c.zt"] {
                    fs::copy(from.path().join(name), dir.path().join(name)).unwrap();
                }
                let mut call = common::command();
                let run = common::run(call.current_dir(&dir).args(&arguments));
                let out = run.exits(0).text();
                let first = first.get_or_insert_with(|| out.clone());
                assert_eq!(*first, out, "{arguments:?}");
            }
        }
    }
}
