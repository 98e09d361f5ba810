//! Text for people, closed pipes, and Ctrl-C.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::io::Read;
use std::process::Stdio;

use common::{command, names_in, of_zeros, sample};
use tempfile::tempdir;
use zt::{Dense, WriteOptions, Writer};

#[test]
fn ls_is_a_table_with_totals() {
    let dir = tempdir().unwrap();
    let text = zt!["ls", sample(dir.path())].exits(0).text();
    let lines: Vec<&str> = text.lines().collect();
    let words =
        |line: &str| -> Vec<String> { line.split_whitespace().map(str::to_owned).collect() };
    assert_eq!(words(lines[0]), ["NAME", "FORMAT", "TYPE", "SHAPE", "SIZE", "STORED", "DIGEST"]);
    assert_eq!(words(lines[1]), ["w", "dense", "f32", "2×3", "24", "B", "raw", "crc32c"]);
    assert_eq!(words(lines[3]), ["fp8", "dense", "f8_e4m3fn", "2", "2", "B", "raw", "crc32c"]);
    assert!(lines[8].starts_with("7 objects, 96 B logical, "), "{}", lines[8]);
    assert!(lines.iter().all(|line| !line.ends_with(' ') && !line.contains('\x1b')));

    let text = zt!["ls", "--long", sample(dir.path())].exits(0).text();
    assert!(text.contains("indptr") && text.contains("crc32c:0x"), "{text}");
    let text = zt!["ls", common::faulty(dir.path())].exits(0).text();
    assert!(text.contains("error[dtype]"), "{text}");
}

#[test]
fn names_of_objects_cannot_control_the_terminal() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("evil.zt");
    let options = WriteOptions::new().empty_names(true);
    let mut writer = options.create(&path).unwrap();
    let dense = Dense::from_slice(&[1], &[1u8]).unwrap();
    for name in ["\x1b[2Jgone", "two\nlines", "right\u{202e}left", ""] {
        writer.add(name, &dense).unwrap();
    }
    writer.finish().unwrap();
    for command in [&["ls"][..], &["ls", "--long"], &["hash"], &["verify"], &["info"]] {
        let run = common::zt(command.iter().copied().chain([path.to_str().unwrap()])).exits(0);
        assert!(!run.text().contains(['\x1b', '\u{202e}']), "{command:?}");
    }
    assert_eq!(zt!["ls", path].text().lines().count(), 6);
}

#[test]
fn arrays_print_as_in_numpy() {
    let dir = tempdir().unwrap();
    let path = sample(dir.path());
    let text = zt!["show", path, "w"].exits(0).text();
    assert_eq!(text, "w: dense f32 2×3\n[[ 1.5 -2.0  0.0]\n [ nan  inf  0.1]]\n");
    let text = zt!["show", path, "flags"].exits(0).text();
    assert!(text.ends_with("[ True False]\n"), "{text}");
    let text = zt!["show", path, "complex", "--stats"].exits(0).text();
    assert!(text.contains("[1.0-2.0j]") && text.contains("mean"), "{text}");
}

#[test]
fn colour_follows_the_flag_and_no_color() {
    let dir = tempdir().unwrap();
    let path = sample(dir.path());
    assert!(zt!["ls", "--color", "always", path].text().contains('\x1b'));
    assert!(!zt!["ls", "--color=never", path].text().contains('\x1b'));
    assert!(!zt!["ls", path].text().contains('\x1b'), "stdout is no terminal here");
    assert!(zt!["ls", "--color=always", "/does/not/exist"].exits(4).err.contains('\x1b'));
    assert!(zt!["--color=always", "--help"].text().contains('\x1b'));
}

#[test]
fn without_a_terminal_there_is_no_progress_bar() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("w.safetensors");
    of_zeros(&path, 8 << 20);
    assert_eq!(zt!["verify", path].exits(0).err, "");
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("many.zt");
    let mut writer = Writer::create(&path).unwrap();
    let large = vec![1u8; 1 << 20];
    let dense = Dense::from_slice(&[1 << 20], &large).unwrap();
    for at in 0..2_000 {
        let one = Dense::from_slice(&[1], &[1u8]).unwrap();
        writer.add(&format!("layers.{at}.weight"), &one).unwrap();
    }
    writer.add("large", &dense).unwrap();
    writer.finish().unwrap();
    let path = path.to_str().unwrap();
    let commands: [(&[&str], &[i32]); 8] = [
        (&["ls", path], &[0]),
        (&["ls", path, "--json"], &[0]),
        (&["hash", path, "--json"], &[0]),
        (&["show", path, "large", "--json"], &[0]),
        (&["completions", "bash"], &[0]),
        // The reader does not have the whole file.
        (&["convert", path, "-"], &[141]),
        (&["cat", path, "large"], &[141]),
        (&["extract", path, "large", "-o", "-"], &[141]),
    ];
    for (arguments, codes) in commands {
        let mut child = command()
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = [0; 1];
        child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(err, "", "{arguments:?}");
        assert!(
            codes.contains(&output.status.code().unwrap()),
            "{arguments:?} {:?}",
            output.status
        );
    }
}

/// Whether a process has a file of that folder open, also one without a name. Never true without
/// `/proc`.
#[cfg(unix)]
fn has_open(process: u32, folder: &std::path::Path) -> bool {
    let files = std::fs::read_dir(format!("/proc/{process}/fd"));
    let files = files.into_iter().flatten().flatten();
    let mut targets = files.filter_map(|file| file.path().read_link().ok());
    targets.any(|target| target.starts_with(folder))
}

#[cfg(target_os = "linux")]
#[test]
fn an_ignored_hang_up_does_not_end_the_program() {
    let (dir, out) = (tempdir().unwrap(), tempdir().unwrap());
    let path = dir.path().join("w.safetensors");
    of_zeros(&path, 64 << 30);
    // As `nohup` starts it.
    let mut child = std::process::Command::new("sh")
        .args(["-c", "trap '' HUP; exec \"$0\" convert \"$@\" --zstd=19"])
        .arg(env!("CARGO_BIN_EXE_zt"))
        .args([path, out.path().join("out.zt")])
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let since = std::time::Instant::now();
    while !has_open(child.id(), out.path()) && since.elapsed().as_secs() < 60 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let pid = child.id().to_string();
    for signal in ["-HUP", "-TERM"] {
        let mut kill = std::process::Command::new("kill");
        kill.args([signal, &pid]).status().unwrap();
    }
    assert_eq!(child.wait().unwrap().code(), Some(143), "SIGTERM");
    assert_eq!(names_in(out.path()), [""; 0]);
}

#[cfg(unix)]
#[test]
fn an_interrupted_command_leaves_nothing() {
    use std::time::{Duration, Instant};

    let dir = tempdir().unwrap();
    let path = dir.path().join("w.safetensors");
    // A sparse file that takes minutes to read.
    of_zeros(&path, 64 << 30);
    let path = path.to_str().unwrap();
    let out = tempdir().unwrap();
    let target = out.path().join("out.zt");
    let target = target.to_str().unwrap();
    let slice = out.path().join("out.npy");
    let slice = slice.to_str().unwrap();
    let folder = out.path().to_str().unwrap();
    let convert = &["convert", "--json", path, target, "--zstd=19"][..];
    let split = ["--to=zt", "--zstd=19"];
    let split = ["split", "--json", path, "-o", folder, split[0], split[1]];
    for (signal, exit, arguments) in [
        ("-INT", 130, convert),
        ("-INT", 130, &split),
        ("-INT", 130, &["extract", "--json", path, "-o", slice]),
        ("-TERM", 143, convert),
        #[cfg(target_os = "linux")]
        ("-HUP", 129, convert),
        #[cfg(target_os = "linux")]
        ("-HUP", 129, &split),
    ] {
        if signal == "-HUP" && !common::hears(1) {
            continue;
        }
        let mut child = command()
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The handler is installed before the temporary file is made.
        let since = Instant::now();
        let has_begun = || has_open(child.id(), out.path()) || !names_in(out.path()).is_empty();
        while !has_begun() && since.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let pid = child.id().to_string();
        std::process::Command::new("kill").args([signal, &pid]).status().unwrap();
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(exit), "{signal} {arguments:?}");
        let mut text = String::new();
        child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(document["error"]["code"], "interrupted");
        assert_eq!(names_in(out.path()), [""; 0], "{arguments:?}");
    }
}

#[test]
fn a_closed_pipe_does_not_stop_extract() {
    let dir = tempdir().unwrap();
    let (path, out) = (dir.path().join("many.zt"), dir.path().join("out"));
    let mut writer = Writer::create(&path).unwrap();
    let one = Dense::from_slice(&[1], &[1u8]).unwrap();
    // More lines than a pipe and the program buffer.
    for at in 0..800 {
        let name = format!("{}.{at}", "layers".repeat(30));
        writer.add(&name, &one).unwrap();
    }
    writer.finish().unwrap();
    let mut child = command()
        .args(["extract".as_ref(), path.as_os_str(), "-o".as_ref()])
        .arg(&out)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(names_in(&out).len(), 800);
}
