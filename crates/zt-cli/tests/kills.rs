//! Processes that are killed at any moment, and full disks.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::names_in;
use tempfile::tempdir;
use zt::{Dense, File, VerifyOptions, Writer};

/// Objects of an input, and floats of each.
const OBJECTS: usize = 4;
const LEN: usize = 1 << 18;

/// A file of objects `{name}.0` to `{name}.3`, filled with noise.
fn of_noise(path: &Path, name: &str, len: usize) {
    let mut writer = Writer::create(path).unwrap();
    let mut state = name.bytes().fold(1u64, |sum, byte| sum * 31 + u64::from(byte));
    for at in 0..OBJECTS {
        let values: Vec<u64> = (0..len / 2)
            .map(|_| {
                // SplitMix64.
                state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
                mixed ^ mixed >> 31
            })
            .collect();
        let dense = Dense::from_slice(&[values.len() as u64], &values).unwrap();
        writer.add(&format!("{name}.{at}"), &dense).unwrap();
    }
    writer.finish().unwrap();
}

/// The inputs that are in the file. Checks that each is complete and that nothing is damaged.
#[track_caller]
fn rounds_in(path: &Path) -> Vec<String> {
    let file = File::open(path).unwrap();
    assert!(file.verify(&VerifyOptions::default()).unwrap().is_ok());
    let names: Vec<&str> = file.names().collect();
    let mut rounds: Vec<&str> = names.iter().filter_map(|it| it.strip_suffix(".0")).collect();
    rounds.sort_by_key(|round| round.len());
    assert_eq!(names.len(), rounds.len() * OBJECTS, "{names:?}");
    rounds.into_iter().map(str::to_owned).collect()
}

#[test]
fn killed_twenty_times_append_loses_nothing() {
    let dir = tempdir().unwrap();
    let (path, input) = (dir.path().join("big.zt"), dir.path().join("in.zt"));
    of_noise(&path, "old", LEN);
    let mut expected = vec!["old".to_owned()];
    let (mut killed, mut round, mut took) = (0, 0u32, Duration::from_millis(200));
    while killed < 20 {
        round += 1;
        assert!(round < 400, "no process is slow enough to be killed");
        let name = format!("round{round}");
        of_noise(&input, &name, LEN);
        let start = Instant::now();
        let mut child = common::command()
            .args(["append".as_ref(), path.as_os_str(), input.as_os_str()])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // At another moment of the run each time.
        let moment = took.mul_f64(f64::from(round) * 0.618_034 % 1.0);
        while start.elapsed() < moment && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_micros(100));
        }
        child.kill().unwrap();
        let status = child.wait().unwrap();
        match status.signal() {
            Some(_) => killed += 1,
            // The run is shorter than assumed.
            None => took = start.elapsed().mul_f64(0.9),
        }
        let found = rounds_in(&path);
        let is_new = found.contains(&name);
        assert!(is_new || status.code().is_none(), "{status}");
        if is_new {
            expected.push(name);
        }
        expected.sort_by_key(String::len);
        assert_eq!(found.len(), expected.len());
        assert!(found.iter().all(|it| expected.contains(it)));
        assert_eq!(names_in(dir.path()), ["big.zt", "in.zt"]);
    }

    // Nothing is left of the killed runs: the file is as long as one without kills.
    of_noise(&input, "last", LEN);
    zt!["append", path, input].exits(0);
    expected.push("last".to_owned());
    let unkilled = dir.path().join("unkilled.zt");
    let in_order = File::open(&path).unwrap();
    let mut in_order: Vec<_> = in_order.entries().iter().map(|it| it.name().to_owned()).collect();
    in_order.retain(|name| name.ends_with(".0"));
    for name in &in_order {
        let name = name.trim_end_matches(".0");
        if name == "old" {
            of_noise(&unkilled, name, LEN);
        } else {
            of_noise(&input, name, LEN);
            zt!["append", unkilled, input].exits(0);
        }
    }
    assert_eq!(rounds_in(&unkilled).len(), expected.len());
    let len = |path: &Path| std::fs::metadata(path).unwrap().len();
    assert_eq!(len(&path), len(&unkilled));
}

/// A signal that comes at any moment of a split leaves the old set or the new one.
#[test]
fn a_split_that_is_told_to_stop_leaves_a_whole_set() {
    let dir = tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let (old, new, out) = (at("x.zt"), at("y.zt"), at("out"));
    of_noise(&old, "old", LEN);
    of_noise(&new, "new", LEN);
    let mut stopped = 0;
    for (round, signal) in ["HUP", "INT", "TERM"].iter().cycle().take(9).enumerate() {
        zt!["split", old, "--name", "x", "--max-shard-size", "2MB", "-o", out, "-f"].exits(0);
        let before = names_in(&out);
        let mut command = common::command();
        command.arg("split").arg(&new).arg("-o").arg(&out);
        command.args(["--name", "x", "--max-shard-size", "2MB", "-f", "--zstd=19"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(30 * round as u64));
        let id = child.id().to_string();
        let _ = Command::new("kill").args(["-s", signal, &id]).status();
        let status = child.wait().unwrap();
        stopped += u32::from(!status.success());
        let index = out.join("x.zt.index.json");
        zt!["verify", index].exits(0);
        if !status.success() {
            assert_eq!(names_in(&out), before, "{signal}: {status}");
        }
    }
    assert!(stopped > 0);
}

/// A small disk, if the user may mount one.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn new() -> Option<Self> {
        let dir = tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"]);
        let mounted = mount.arg(dir.path()).stderr(Stdio::null()).status();
        mounted.is_ok_and(|it| it.success()).then_some(SmallDisk(dir))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn on_a_full_disk_nothing_is_changed() {
    let Some(disk) = SmallDisk::new() else {
        eprintln!("skipped: no file system can be mounted here; edit_races.rs simulates one");
        return;
    };
    let elsewhere = tempdir().unwrap();
    let path = disk.0.path().join("x.zt");
    // Two thirds of the disk.
    of_noise(&path, "old", LEN * 5 / 8);
    let input = elsewhere.path().join("in.zt");
    of_noise(&input, "new", LEN);
    let long = "x".repeat(100_000);
    let before = std::fs::read(&path).unwrap();
    let [file, input] = [&path, &input].map(|path| path.to_str().unwrap());
    let out = disk.0.path().join("out.zt");
    for arguments in [
        // The error comes at once, in the middle (a compressed length is unknown), or while a copy is
        // written.
        &["append", file, input][..],
        &["append", file, input, "--zstd"],
        &["compact", file],
        &["convert", input, out.to_str().unwrap()],
        &["convert", input, file, "--force"],
    ] {
        let run = common::zt(arguments.iter().chain(&["--json"])).exits(4);
        assert_eq!(run.error_code(), "io", "{arguments:?}");
        assert!(std::fs::read(&path).unwrap() == before, "{arguments:?}");
        assert_eq!(names_in(disk.0.path()), ["x.zt"], "{arguments:?}");
    }
    // Edits that fit succeed, up to the last bytes.
    for at in 0.. {
        let before = std::fs::read(&path).unwrap();
        let run = zt!["meta", "set", path, format!("k{at}"), long];
        if run.code != Some(0) {
            assert!(at > 0);
            run.exits(4);
            assert!(std::fs::read(&path).unwrap() == before);
            break;
        }
        let file = File::open(&path).unwrap();
        assert_eq!(file.attributes().unwrap().unwrap().len(), at + 1);
    }
    assert_eq!(rounds_in(&path), ["old"]);
}

/// At the limit on file sizes the system sends a signal that ends a process without a handler.
#[test]
fn at_the_limit_on_file_sizes_nothing_is_changed() {
    /// A mebibyte, or half of one: shells differ in the blocks that they count.
    const LIMITED: &str = r#"ulimit -f 1024; exec "$0" "$@""#;
    let folder = tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    of_noise(&at("long.zt"), "new", LEN);
    of_noise(&at("short.zt"), "old", 1000);
    let before = std::fs::read(at("short.zt")).unwrap();
    let there = names_in(folder.path());
    for arguments in [
        "convert long.zt out.zt",
        "convert long.zt out.safetensors",
        "convert long.zt short.zt --force",
        "append short.zt long.zt",
        "append short.zt long.zt --zstd",
        "extract long.zt new.0 -o out.npy",
    ] {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", LIMITED, env!("CARGO_BIN_EXE_zt")]);
        command.args(arguments.split(' '));
        let run = common::run(command.current_dir(folder.path())).exits(4);
        assert!(run.err.contains("error[io]: "), "{arguments}: {}", run.err);
        assert!(std::fs::read(at("short.zt")).unwrap() == before, "{arguments}");
        assert_eq!(names_in(folder.path()), there, "{arguments}");
    }
}
