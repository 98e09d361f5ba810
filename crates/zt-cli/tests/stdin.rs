//! Stdin as an input.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use common::{Run, command, names_in, of_floats, run, sample};
use tempfile::tempdir;

fn spawn(command: &mut Command) -> Child {
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    piped.stderr(Stdio::piped()).spawn().unwrap()
}

/// Runs the program in a folder, with these bytes in the pipe to its stdin.
fn fed(folder: &Path, arguments: &[&str], bytes: &[u8]) -> Run {
    let mut child = spawn(command().current_dir(folder).args(arguments));
    let mut pipe = child.stdin.take().unwrap();
    let bytes = bytes.to_vec();
    // A program that does not read all of it closes the pipe.
    let feeding = thread::spawn(move || pipe.write_all(&bytes));
    let output = child.wait_with_output().unwrap();
    let _ = feeding.join().unwrap();
    Run {
        code: output.status.code(),
        out: output.stdout,
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn every_reading_command_reads_stdin() {
    let dir = tempdir().unwrap();
    let bytes = fs::read(sample(dir.path())).unwrap();
    of_floats(&dir.path().join("other.zt"), &[1.0]);
    zt!["rename", dir.path().join("other.zt"), "w", "other"].exits(0);
    for arguments in [
        &["ls", "-"][..],
        &["info", "-"],
        &["verify", "-"],
        &["hash", "-"],
        &["show", "-", "w"],
        &["cat", "-", "w"],
        &["meta", "get", "-"],
        &["diff", "model.zt", "-"],
        &["diff", "-", "model.zt"],
        &["extract", "-", "w", "-o", "w.npy"],
        &["convert", "-", "out.npz", "--lossy"],
        &["split", "-", "--name", "set", "-o", "set"],
        &["quantize", "-", "4-bit.zt", "--include=half"],
        &["merge", "-", "other.zt", "merged.zt"],
        &["append", "other.zt", "-"],
    ] {
        fed(dir.path(), arguments, &bytes).exits(0);
    }
    let run = fed(dir.path(), &["convert", "-", "-"], &bytes).exits(0);
    assert!(run.out == bytes);
    let document = fed(dir.path(), &["ls", "--json", "-"], &bytes).json();
    assert_eq!(document["file"], "-");
    // The lines of `zt hash` hold for a pipe, too.
    let sums = fed(dir.path(), &["hash", "--sums", "-"], &bytes).exits(0);
    fs::write(dir.path().join("SUMS"), sums.out).unwrap();
    fed(dir.path(), &["hash", "--check", "SUMS"], &bytes).exits(0);
    let sums = zt!["hash", "--sums", dir.path().join("model.zt")].exits(0);
    fed(dir.path(), &["hash", "--check", "-"], &sums.out).exits(0);
}

#[test]
fn errors_name_stdin() {
    let dir = tempdir().unwrap();
    let bytes = fs::read(sample(dir.path())).unwrap();
    for (arguments, bytes, code) in [
        (&["ls", "-"][..], &b"Dear all,"[..], 3),
        (&["verify", "-"], &bytes[..bytes.len() / 2], 3),
        (&["verify", "-"], b"", 3),
        (&["show", "-", "nope"], &bytes, 2),
        (&["ls", "-"], br#"{"weight_map": {"w": "a.zt"}}"#, 5),
    ] {
        let run = fed(dir.path(), arguments, bytes).exits(code);
        assert!(run.err.contains("]: -: "), "{arguments:?} {}", run.err);
    }
    for arguments in [
        &["rm", "-", "w"][..],
        &["repair", "-"],
        &["bench", "-"],
        &["append", "-", "model.zt"],
        &["split", "-"],
        &["diff", "-", "-"],
    ] {
        let run = fed(dir.path(), arguments, &bytes).exits(2);
        assert!(run.err.contains("stdin"), "{arguments:?} {}", run.err);
    }
}

#[test]
fn a_file_that_is_redirected_is_read_from_its_position() {
    let dir = tempdir().unwrap();
    let path = sample(dir.path());
    let folder = dir.path().join("temporary");
    let list = |stdin: File| {
        let mut command = command();
        // Nothing is copied if the file is read itself.
        command.env("TMPDIR", &folder).args(["verify", "-"]);
        run(command.stdin(stdin))
    };
    list(File::open(&path).unwrap()).exits(0);
    let mut file = File::open(&path).unwrap();
    file.read_exact(&mut [0; 8]).unwrap();
    let run = list(file.try_clone().unwrap()).exits(4);
    assert!(run.err.contains("temporary: "), "{}", run.err);
    fs::create_dir(&folder).unwrap();
    file.rewind().unwrap();
    file.read_exact(&mut [0; 8]).unwrap();
    list(file).exits(3);
    assert!(names_in(&folder).is_empty());
}

#[test]
fn nothing_is_left_of_stdin_after_a_signal() {
    let dir = tempdir().unwrap();
    // While the program waits for bytes, and after it has handlers for the work on another file.
    let other = sample(dir.path());
    let other = other.to_str().unwrap();
    for (files, signal) in
        [(&["-"][..], 2), (&["-"], 15), (&["-"], 9), (&[other, "-"], 2), (&[other, "-"], 15)]
    {
        if !common::hears(signal) {
            continue;
        }
        let temporary = tempdir().unwrap();
        let mut command = command();
        command.env("TMPDIR", temporary.path()).arg("verify").args(files);
        let mut child = spawn(&mut command);
        let mut pipe = child.stdin.take().unwrap();
        // More than a pipe holds, so that the program has read some of it.
        pipe.write_all(&vec![0; 4 << 20]).unwrap();
        let mut kill = Command::new("kill");
        kill.arg(format!("-{signal}")).arg(child.id().to_string());
        assert!(kill.status().unwrap().success());
        if files.len() > 1 {
            // The handler asks to stop, and the program looks after each piece.
            while child.try_wait().unwrap().is_none() {
                let _ = pipe.write_all(&[0; 1 << 16]);
            }
        }
        let status = child.wait().unwrap();
        let ended = status.signal().or(status.code().map(|code| code - 128));
        assert_eq!(ended, Some(signal), "{files:?}");
        assert!(names_in(temporary.path()).is_empty());
    }
}
