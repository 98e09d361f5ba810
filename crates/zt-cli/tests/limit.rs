//! Sets with more shards than files may be open.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::{of_floats, run};
use tempfile::tempdir;
use zt::{Dense, Writer};

/// A set of 150 shards.
fn many_shards(folder: &Path) {
    let model = folder.join("model.zt");
    let mut writer = Writer::create(&model).unwrap();
    for at in 0..150 {
        let values = [at, at];
        let dense = Dense::from_slice(&[2], &values).unwrap();
        writer.add(&format!("w{at}"), &dense).unwrap();
    }
    writer.finish().unwrap();
    zt!["split", model, "--max-shard-size=8"].exits(0);
    fs::remove_file(model).unwrap();
}

#[test]
fn a_set_has_more_shards_than_files_may_be_open() {
    let dir = tempdir().unwrap();
    many_shards(dir.path());
    let limited = |limit: &str, arguments: &str| {
        let mut command = Command::new("sh");
        let script = format!(r#"ulimit {limit}; exec "$0" "$@""#);
        command.args(["-c", &script, env!("CARGO_BIN_EXE_zt")]);
        run(command.args(arguments.split(' ')).current_dir(dir.path()))
    };
    for arguments in ["ls .", "verify .", "diff . ."] {
        limited("-S -n 60", arguments).exits(0);
    }
    let run = limited("-n 60", "ls .").exits(4);
    let advice = "the limit is 60; raise it with `ulimit -n`";
    assert!(run.err.contains(advice), "{}", run.err);
    assert!(run.err.contains("-of-00150.zt: "), "{}", run.err);
    of_floats(&dir.path().join("one.zt"), &[1.0]);
    limited("-n 60", "ls one.zt").exits(0);
}
