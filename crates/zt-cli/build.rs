//! What `zt --version` says of a build: its target, and the revision in a release build from a clone or from
//! crates.io.

use std::path::Path;
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
    // It changes with each commit.
    let log = "../../.git/logs/HEAD";
    if !Path::new(log).exists() {
        return None;
    }
    println!("cargo::rerun-if-changed={log}");
    let git = Command::new("git")
        .args(["rev-parse", "--short=12", "HEAD"])
        .output()
        .ok()?;
    let revision = String::from_utf8(git.stdout).ok()?;
    git.status.success().then(|| revision.trim().to_owned())
}
