//! The program, run by a user with few rights. Only the administrator can run it so: for anyone else
//! these tests check nothing.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{of_floats, run};
use tempfile::{TempDir, tempdir};
use zt::{Dense, Writer};

/// The number of the user who runs the program; no other user has it.
const USER: u32 = 61_234;

/// A folder that every user may write to, with the program in it.
struct Shared(TempDir);

impl Shared {
    /// `None` if the program cannot be run by another user.
    fn new() -> Option<Self> {
        let shared = Shared(tempdir().unwrap());
        fs::set_permissions(shared.0.path(), Permissions::from_mode(0o777)).unwrap();
        fs::copy(env!("CARGO_BIN_EXE_zt"), shared.at("zt")).unwrap();
        fs::set_permissions(shared.at("zt"), Permissions::from_mode(0o755)).unwrap();
        let mut command = shared.command(USER);
        let is_run = command.arg("--version").output().is_ok();
        is_run.then_some(shared)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The program, run by [`USER`], who is in this group alone.
    fn command(&self, group: u32) -> Command {
        as_user(self.at("zt"), group)
    }
}

fn as_user(program: impl AsRef<OsStr>, group: u32) -> Command {
    let mut command = Command::new(program);
    command.uid(USER).gid(group);
    command
}

fn set(path: &Path, uid: u32, gid: u32, mode: u32) {
    chown(path, Some(uid), Some(gid)).unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_file_replaced_by_another_user_is_open_to_no_new_group() {
    const OWNER: u32 = 61_001;
    const GROUP: u32 = 62_000;
    let Some(shared) = Shared::new() else {
        return;
    };
    let (input, out) = (shared.at("in.zt"), shared.at("out.zt"));
    of_floats(&input, &[1.0]);
    set(&input, USER, USER, 0o600);
    let replaced = |mode, group| {
        fs::write(&out, "").unwrap();
        set(&out, OWNER, GROUP, mode);
        let mut command = shared.command(group);
        command.arg("convert").args([&input, &out]).arg("--force");
        run(&mut command).exits(0);
        let found = fs::metadata(&out).unwrap();
        assert_eq!(found.uid(), USER);
        (found.gid(), found.mode() & 0o7777)
    };
    for (before, after) in [(0o640, 0o600), (0o664, 0o644), (0o4755, 0o755)] {
        assert_eq!(replaced(before, USER), (USER, after));
    }
    // New files belong to a third group, and the user may give them to their own group.
    set(shared.0.path(), 0, 63_000, 0o2777);
    for (before, after) in [(0o640, 0o640), (0o664, 0o664), (0o4750, 0o750)] {
        assert_eq!(replaced(before, GROUP), (GROUP, after));
    }
    assert_eq!(replaced(0o640, USER), (63_000, 0o600));
}

#[test]
fn replaced_shards_keep_their_owner_or_exclude_others() {
    const OWNER: u32 = 61_001;
    let Some(shared) = Shared::new() else {
        return;
    };
    let (input, out) = (shared.at("in.zt"), shared.at("shards"));
    of_floats(&input, &[1.0]);
    let split = |command: &mut Command| {
        command.arg("split").arg(&input).arg("-o").arg(&out);
        run(command.arg("--force")).exits(0);
    };
    split(&mut Command::new(shared.at("zt")));
    fs::set_permissions(&out, Permissions::from_mode(0o777)).unwrap();
    let files = || fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path());
    for (by_user, expected) in [(false, (OWNER, 0o640)), (true, (USER, 0o600))] {
        files().for_each(|file| set(&file, OWNER, OWNER, 0o640));
        split(&mut if by_user { shared.command(USER) } else { Command::new(shared.at("zt")) });
        for file in files() {
            let found = fs::metadata(&file).unwrap();
            assert_eq!((found.uid(), found.mode() & 0o7777), expected);
        }
    }
}

/// Runs its arguments at a limit of one process, so that no thread can start. The option differs
/// between shells.
const ALONE: &str =
    r#"if (ulimit -u 1) 2>&-; then ulimit -u 1; else ulimit -p 1; fi; exec "$0" "$@""#;

#[test]
fn without_more_threads_one_does_all_the_work() {
    let Some(shared) = Shared::new() else {
        return;
    };
    let input = shared.at("in.zt");
    let mut writer = Writer::create(&input).unwrap();
    for (first, name) in (0u32..).zip(["a", "b", "c"]) {
        let values = first..first + 1_500_000;
        let values: Vec<f32> = values.map(|at| (at % 1000) as f32).collect();
        let dense = Dense::from_slice(&[values.len() as u64], &values).unwrap();
        writer.add(name, &dense).unwrap();
    }
    writer.finish().unwrap();
    of_floats(&shared.at("other.zt"), &[1.0]);
    for name in ["in.zt", "other.zt"] {
        set(&shared.at(name), USER, USER, 0o600);
    }
    let alone = |arguments: &str| {
        let mut command = as_user("sh", USER);
        command.args(["-c", ALONE]).arg(shared.at("zt"));
        command.args(arguments.split(' ')).current_dir(shared.0.path());
        run(&mut command)
    };
    // Two threads are refused, so the limit works here.
    alone("verify in.zt --jobs 2").exits(4);
    for arguments in [
        "verify in.zt",
        "hash in.zt",
        "show in.zt a --stats",
        "extract in.zt -o folder",
        "convert in.zt zstd.zt --zstd",
        "convert in.zt planes.zt --planes",
        "convert zstd.zt out.safetensors",
        "convert planes.zt out.npz",
        "diff in.zt zstd.zt",
        "verify zstd.zt",
        "repair --dry-run zstd.zt",
        "append in.zt other.zt",
        "compact in.zt",
    ] {
        alone(arguments).exits(0);
    }
}
