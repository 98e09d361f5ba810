//! A process that is killed while it edits a file with a long manifest.
//!
//! `cargo test --release -p zt-tensor --test edit_kills -- --ignored --nocapture`
//!
//! | variable | |
//! | --- | --- |
//! | `ZT_KILLS_FOLDER` | where the file is: on the file system that is asked about |
//! | `ZT_KILLS_PYTHON` | an interpreter that has the official package, as a second judge |
//! | `ZT_KILLS_MIB` | the length of the manifest, 16 unless given |
//! | `ZT_KILLS_COUNT` | the number of kills, 300 unless given |
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use zt::{Dense, File, Writer};

/// The file that the process of this name edits.
const EDITED: &str = "ZT_KILLS_EDITED";

fn number(variable: &str, or: u64) -> u64 {
    let text = std::env::var(variable).unwrap_or_default();
    text.parse().unwrap_or(or)
}

fn dense(values: &[u64]) -> Dense<'_> {
    Dense::from_slice(&[values.len() as u64], values).unwrap()
}

/// A file of objects with long names.
fn create(path: &Path, manifest_len: u64) {
    const NAME_LEN: u64 = 4000;
    let mut writer = Writer::create(path).unwrap();
    writer.add("old", &dense(&[1])).unwrap();
    for object in 0..manifest_len / NAME_LEN {
        let name = format!("{object}.{}", "x".repeat(NAME_LEN as usize - 200));
        writer.add(&name, &dense(&[object])).unwrap();
    }
    writer.finish().unwrap();
}

/// What the file is by our reader, which reads all of it.
fn ours(path: &Path) -> &'static str {
    let Ok(file) = File::open(path) else {
        return "refused";
    };
    let is_sound = file.verify(&zt::VerifyOptions::default()).unwrap().is_ok();
    let is_warned = !file.warnings().is_empty();
    match (file.get("old").is_some(), file.get("new").is_some()) {
        (true, false) if is_sound && is_warned => "old, with a warning",
        (true, false) if is_sound => "old",
        (false, true) if is_sound && !is_warned => "new",
        _ => "wrong",
    }
}

/// The official package, which is asked about one file after the other.
struct Official(ChildStdin, BufReader<ChildStdout>);

impl Official {
    fn new(python: &str) -> Self {
        const SCRIPT: &str = "
import sys, ztensor
for path in sys.stdin:
    try:
        names = set(ztensor.Reader(path.strip()).keys())
        print('old' if 'old' in names else 'new' if 'new' in names else 'wrong', flush=True)
    except Exception:
        print('refused', flush=True)
";
        let mut python = Command::new(python);
        python.args(["-c", SCRIPT]).stdin(Stdio::piped());
        let mut python = python.stdout(Stdio::piped()).spawn().unwrap();
        let stdout = python.stdout.take().unwrap();
        Official(python.stdin.take().unwrap(), BufReader::new(stdout))
    }

    fn ask(&mut self, path: &Path) -> String {
        writeln!(self.0, "{}", path.display()).unwrap();
        let mut answer = String::new();
        self.1.read_line(&mut answer).unwrap();
        answer.trim().to_owned()
    }
}

/// The process that is killed: it does nothing where it is not asked to edit a file.
#[test]
#[ignore = "started by the other test"]
fn edit() {
    if let Some(path) = std::env::var_os(EDITED) {
        let mut edit = File::edit(PathBuf::from(path)).unwrap();
        edit.rename("old", "new").unwrap();
        edit.commit().unwrap();
    }
}

#[test]
#[ignore = "takes minutes; kills hundreds of processes"]
fn killed_while_the_file_grows_an_edit_leaves_the_old_file_or_the_new_one() {
    let folder = std::env::var("ZT_KILLS_FOLDER");
    let folder = folder.map_or_else(|_| tempfile::tempdir(), tempfile::tempdir_in);
    let folder = folder.unwrap();
    let (fresh, path) = (folder.path().join("fresh.zt"), folder.path().join("x.zt"));
    create(&fresh, number("ZT_KILLS_MIB", 16) << 20);
    let python = std::env::var("ZT_KILLS_PYTHON").ok();
    let mut official = python.map(|python| Official::new(&python));
    let mut tally: BTreeMap<String, u64> = BTreeMap::new();
    for round in 0..number("ZT_KILLS_COUNT", 300) {
        std::fs::copy(&fresh, &path).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        let old_len = file.metadata().unwrap().len();
        let mut process = Command::new(std::env::current_exe().unwrap());
        process.args(["--ignored", "--exact", "edit"]);
        process.env(EDITED, &path).stdout(Stdio::null());
        let mut process = process.spawn().unwrap();
        // From the note on, or from the first byte that makes the file longer on.
        let has_begun = || match round % 3 {
            0 => {
                let mut byte = [0];
                file.read_at(&mut byte, 8).unwrap();
                byte != [0]
            }
            _ => file.metadata().unwrap().len() > old_len,
        };
        while !has_begun() && process.try_wait().unwrap().is_none() {}
        let delay = Duration::from_micros(round * 7919 % 30_000);
        let begun = Instant::now();
        while round % 3 != 1 && begun.elapsed() < delay {}
        process.kill().unwrap();
        process.wait().unwrap();
        let official = official.as_mut().map(|official| official.ask(&path));
        let (ours, official) = (ours(&path), official.unwrap_or_else(|| "-".into()));
        *tally.entry(format!("ours {ours}")).or_default() += 1;
        *tally.entry(format!("official {official}")).or_default() += 1;
        assert!(!["refused", "wrong"].contains(&ours), "{}", path.display());
        assert_ne!(official, "wrong");
        // The next edit needs no other command.
        let mut next = File::edit(&path).unwrap();
        next.attributes_mut().get_or_insert_default();
        next.commit().unwrap();
        assert!(["old", "new"].contains(&self::ours(&path)));
    }
    println!("{}: {tally:?}", folder.path().display());
}
