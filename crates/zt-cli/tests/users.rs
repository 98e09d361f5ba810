//! The program run by users who may less than the administrator, who alone can run it as them:
//! where the tests are run by anybody else, these see nothing.
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

/// The user who runs the program, and nobody else's number.
const USER: u32 = 61_234;

/// A folder that everybody may write to, and the program in it.
struct Shared(TempDir);

impl Shared {
    /// `None` where the program cannot be run by another user.
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

    /// The program run by [`USER`], who is in this group and in no other.
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
fn a_file_that_is_replaced_by_another_user_is_open_to_no_other_group() {
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
    // What is made here is of a third group at first, and may be given to that of the user.
    set(shared.0.path(), 0, 63_000, 0o2777);
    for (before, after) in [(0o640, 0o640), (0o664, 0o664), (0o4750, 0o750)] {
        assert_eq!(replaced(before, GROUP), (GROUP, after));
    }
    assert_eq!(replaced(0o640, USER), (63_000, 0o600));
}
