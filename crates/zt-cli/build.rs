//! What `zt --version` says of a build: its target, and the revision in a release build from a clone or from
//! crates.io.

use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let mut build = env::var("TARGET").unwrap_or_default();
    // A development build is not made again for each commit.
    if env::var("PROFILE").is_ok_and(|profile| profile == "release")
        && let Some(revision) = published().or_else(cloned)
    {
        build.push_str(&format!(", revision {revision}"));
    }
    println!("cargo::rustc-env=ZT_BUILD={build}");
}

/// What `cargo package` wrote.
fn published() -> Option<String> {
    let info = fs::read_to_string(".cargo_vcs_info.json").ok()?;
    let (_, rest) = info.split_once("\"sha1\": \"")?;
    Some(rest.get(..12)?.to_owned())
}

fn cloned() -> Option<String> {
    // `HEAD` of a worktree is elsewhere. Its log changes with each commit.
    let question = "rev-parse --show-prefix --git-path logs/HEAD --short=12 HEAD";
    let git = Command::new("git").args(question.split(' ')).output().ok()?;
    let answer = String::from_utf8(git.stdout).ok()?;
    let [folder, log, revision] = answer.lines().collect::<Vec<_>>().try_into().ok()?;
    // The repository may be another, with a copy of these sources.
    if !git.status.success() || folder != "crates/zt-cli/" {
        return None;
    }
    println!("cargo::rerun-if-changed={log}");
    Some(revision.to_owned())
}
