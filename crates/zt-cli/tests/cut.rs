//! Files that are truncated while the program reads them: an error, and no signal.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::fs::OpenOptions;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use common::command;
use tempfile::tempdir;
use zt::{Dense, Writer};

/// Number of objects, each of 4 MiB: long enough to be truncated in the middle.
const OBJECTS: u32 = 12;
const LEN: u32 = 1 << 20;

fn large(path: &Path) {
    let mut writer = Writer::create(path).unwrap();
    for at in 0..OBJECTS {
        let values: Vec<u32> = (0..LEN).map(|value| value.wrapping_mul(0x9e37_79b9 + at)).collect();
        let dense = Dense::from_slice(&[u64::from(LEN)], &values).unwrap();
        writer.add(&format!("w.{at}"), &dense).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn truncating_a_file_during_a_read_is_an_error_and_no_signal() {
    let dir = tempdir().unwrap();
    let (path, out) = (dir.path().join("x.zt"), dir.path().join("out.safetensors"));
    let (path_text, out_text) = (path.to_str().unwrap(), out.to_str().unwrap());
    let mut failed = 0;
    for arguments in
        [&["verify", path_text][..], &["hash", path_text], &["convert", path_text, out_text]]
    {
        for at in 0..8u64 {
            large(&path);
            let _ = std::fs::remove_file(&out);
            let whole = std::fs::metadata(&path).unwrap().len();
            let child = command()
                .args(arguments)
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            // Some are truncated before the program opens the file, most during the read.
            thread::sleep(Duration::from_millis(5 * at));
            let file = OpenOptions::new().write(true).open(&path).unwrap();
            file.set_len(whole / 3 + at).unwrap();
            let output = child.wait_with_output().unwrap();
            let err = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.signal(), None, "{arguments:?}: {err}");
            assert!(!err.contains("panicked"), "{err}");
            let code = output.status.code().unwrap();
            assert!([0, 1, 3, 4].contains(&code), "{arguments:?} exits {code}: {err}");
            failed += usize::from(code != 0);
            if code == 0 {
                continue;
            }
            assert!(!err.is_empty());
            assert!(!out.exists(), "no partial file");
        }
    }
    assert!(failed > 0, "no file was truncated in time");
}
