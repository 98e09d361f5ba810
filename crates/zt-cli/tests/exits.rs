//! Exit codes, and the document of an error.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::path::Path;

use common::{damaged, faulty, of_bools, of_unknown_format, sample};
use tempfile::tempdir;

#[test]
fn misuse_is_2() {
    let dir = tempdir().unwrap();
    let path = sample(dir.path());
    for arguments in [
        vec!["--json"],
        vec!["--json", "frobnicate"],
        vec!["ls", "--json"],
        vec!["ls", "--json", "--sort", "colour", "x"],
        vec!["convert", "--json", "only-one"],
        vec!["convert", "--json", "--zstd=99", "a", "b"],
        vec!["convert", "--json", "--to", "docx", "a", "b"],
        vec!["verify", "--json", "--jobs", "0", "x"],
        vec!["ls", "--json", "--glob", "layers.[0", "x"],
        vec!["rm", "--json", "--glob", "[", "x"],
        vec!["meta", "set", "--json", "x", "key", "18446744073709551616"],
        vec!["convert", "--json", "--jobs", "65535", "a", "b"],
        vec!["convert", "--json", "--align", "100", "a", "b"],
        vec!["convert", "--json", "--align", "2147483648", "a", "b"],
    ] {
        let run = common::zt(&arguments).exits(2);
        assert_eq!(run.json()["error"]["code"], "misuse", "{arguments:?}");
        assert!(!run.err.is_empty());
    }
    let misuses: [&[&str]; 5] = [
        &["show", "w", "--slice", "0:1,0:1,0:1"],
        &["show", "w", "--slice", "x"],
        &["convert", "out.txt"],
        &["convert", "out.safetensors", "--zstd"],
        &["convert", "-"],
    ];
    for arguments in misuses {
        let (command, rest) = arguments.split_first().unwrap();
        let fixed = [*command, "--json", path.to_str().unwrap()];
        let run = common::zt(fixed.iter().chain(rest)).exits(2);
        assert_eq!(run.error_code(), "misuse", "{arguments:?}");
    }
    let file = dir.path().join("file.txt");
    std::fs::write(&file, "text").unwrap();
    for run in [
        zt!["extract", path, "-o", file],
        zt!["split", path, "-o", file, "--max-shard-size", "1KB"],
    ] {
        let run = run.exits(2);
        assert!(run.err.contains("file.txt: "), "{}", run.err);
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"text");
    let run = zt!["explain", "--json", "no-such-code"].exits(2);
    assert!(run.err.contains("digest-mismatch"), "the codes are listed");
    assert_eq!(run.error_code(), "misuse");
}

#[test]
fn what_is_not_found_is_2() {
    let dir = tempdir().unwrap();
    let path = sample(dir.path());
    let run = zt!["show", "--json", path, "nope"].exits(2);
    assert_eq!(run.error_code(), "not-found");
    assert_eq!(run.json()["error"]["object"], "nope");
    let run = zt!["show", "--json", path, "w", "--component", "nope"].exits(2);
    assert_eq!(run.error_code(), "not-found");
    let out = dir.path().join("out");
    let run = zt!["extract", "--json", path, "nope", "-o", out].exits(2);
    assert_eq!(run.error_code(), "not-found");
    assert!(!out.exists());
}

#[test]
fn the_closest_name_is_suggested() {
    let dir = tempdir().unwrap();
    let path = sample(dir.path());
    let file = path.to_str().unwrap();
    for (arguments, hint) in [
        (&["show", file, "grpah"][..], "note: did you mean \"graph\"?"),
        (&["cat", file, "scaler"], "note: did you mean \"scalar\"?"),
        (&["rm", file, "hafl"], "note: did you mean \"half\"?"),
        (&["rename", file, "flag", "x"], "note: did you mean \"flags\"?"),
        (&["meta", "get", file, "lists"], "note: did you mean \"list\"?"),
        (&["extract", file, "complexx", "-o", "-"], "note: did you mean \"complex\"?"),
        (&["rm", file, "f*"], "note: --glob 'f*' takes all 2 that match"),
        (&["extract", file, "f*", "-o", "-"], "note: --include 'f*' takes all 2 that match"),
        (&["show", file, "[wh]*"], "note: 2 names match; `zt ls --glob '[wh]*'` lists them"),
    ] {
        let run = common::zt(arguments).exits(2);
        assert!(run.err.contains(file), "{arguments:?} {}", run.err);
        assert!(run.err.lines().any(|line| line == hint), "{arguments:?} {}", run.err);
    }
    let run = zt!["show", path, "nothing.like.this"].exits(2);
    assert!(!run.err.contains("note: "), "{}", run.err);
}

#[test]
fn an_unknown_extension_lists_those_that_are_known() {
    let dir = tempdir().unwrap();
    let path = sample(dir.path());
    let convert = |name: &str, code| zt!["convert", path, dir.path().join(name)].exits(code).err;
    let err = convert("o.xyz", 2);
    assert!(err.contains("use one of .zt, .gguf, .npy, .npz, "), "{err}");
    for (name, code, hint) in [
        ("o.st", 2, "--to safetensors"),
        ("o.bin", 5, "--to KIND"),
        ("o.pt", 5, "write .safetensors"),
    ] {
        let err = convert(name, code);
        let mut notes = err.lines().filter(|line| line.starts_with("note: "));
        assert!(notes.any(|note| note.contains(hint)), "{name} {err}");
    }
    zt!["convert", path, dir.path().join("o.st"), "--to", "zt"].exits(0);
}

#[test]
fn damage_of_one_object_is_1() {
    let dir = tempdir().unwrap();
    let (damaged, faulty) = (damaged(dir.path()), faulty(dir.path()));
    let out = dir.path().join("out.zt");
    for (path, name, code) in [(&damaged, "w", "digest-mismatch"), (&faulty, "bad", "dtype")] {
        let run = zt!["show", "--json", path, name].exits(1);
        assert_eq!(run.error_code(), code);
        let document = run.json();
        assert_eq!(document["error"]["object"], name);
        assert_eq!(document["error"]["component"], "data");
        assert!(document["error"]["offset"].is_u64());
        assert_eq!(zt!["convert", "--json", path, out].exits(1).error_code(), code);
        assert!(!out.exists());
        zt!["verify", path].exits(1);
    }
    // The object beside it is readable.
    zt!["show", faulty, "good"].exits(0);
    // A fault that only the values show.
    let bools = of_bools(dir.path(), [1, 2]);
    for (option, value) in [("--component", "data"), ("--slice", "1:")] {
        let run = zt!["show", "--json", bools, "flags", option, value].exits(1);
        assert_eq!(run.error_code(), "bool-value");
        assert_eq!(run.json()["error"]["object"], "flags", "{option}");
    }
}

/// Texts, records and other files beside tensors: numpy 2.4.6, SciPy 1.17.1 and onnx 1.23.2 wrote them.
#[test]
fn what_is_no_tensor_is_no_damage() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
    let out = tempdir().unwrap();
    for (name, left_out, kept) in
        [("objects.npz", 6, 1), ("extra.npz", 2, 6), ("sparse.npz", 0, 1), ("graph.onnx", 1, 11)]
    {
        let (path, copy) = (data.join("data/not-tensors").join(name), out.path().join("x.zt"));
        for command in ["ls", "info", "hash", "verify"] {
            zt![command, path].exits(0);
        }
        zt!["verify", "--strict", path].exits(0);
        zt!["diff", path, path].exits(0);
        let list = zt!["ls", "--json", path].exits(0).json();
        let warnings = list["warnings"].as_array().unwrap();
        assert!(warnings.iter().all(|it| it["code"] == "not-tensor"), "{warnings:?}");
        assert_eq!(warnings.len(), left_out, "{name}");
        let run = zt!["convert", "-f", path, copy].exits(0);
        assert_eq!(run.err.matches("warning[not-tensor]").count(), left_out, "{}", run.err);
        assert_eq!(zt::File::open(&copy).unwrap().len(), kept);
        zt!["diff", path, copy].exits(0);
    }
    // Damage is damage still.
    for name in ["member_crc", "member_bad_header", "member_cut"] {
        let path = data.join(format!("corpus/foreign/npz/{name}.npz"));
        zt!["verify", path].exits(1);
    }
}

#[test]
fn a_file_that_is_refused_as_a_whole_is_3() {
    let dir = tempdir().unwrap();
    let letter = dir.path().join("letter.txt");
    std::fs::write(&letter, "Dear all,").unwrap();
    let named = dir.path().join("letter.zt");
    std::fs::write(&named, "Dear all,").unwrap();
    let other = dir.path().join("other.zt");
    std::fs::write(&other, b"\x01\x02\x03").unwrap();
    let empty = dir.path().join("empty");
    std::fs::write(&empty, "").unwrap();
    let cut = sample(dir.path());
    let bytes = std::fs::read(&cut).unwrap();
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    for (path, code) in [
        (&letter, "unknown-kind"),
        (&named, "unknown-kind"),
        (&other, "not-zt"),
        (&empty, "unknown-kind"),
        (&cut, "truncated"),
    ] {
        for command in ["ls", "info", "hash"] {
            let run = zt![command, "--json", path].exits(3);
            let path = path.display();
            assert!(run.err.contains(&format!("]: {path}: ")), "{}", run.err);
            let found = run.error_code();
            // Without its end, a file of layout 1.1 looks like one of 1.0.
            assert!(found == code || found == "manifest-size" && code == "truncated", "{found}");
        }
        let run = zt!["verify", "--json", path].exits(3);
        assert_eq!(run.json()["problems"].as_array().unwrap().len(), 1);
        zt!["convert", path, dir.path().join("out.zt")].exits(3);
    }
}

#[test]
fn what_the_system_refuses_is_4() {
    let dir = tempdir().unwrap();
    let path = sample(dir.path());
    assert_eq!(zt!["ls", "--json", "/does/not/exist.zt"].exits(4).error_code(), "io");
    let run = zt!["ls", "--json", "/does/not/exist.zt"].exits(4);
    assert_eq!(run.json()["error"]["file"], "/does/not/exist.zt");
    let out = dir.path().join("no/such/folder/out.zt");
    assert_eq!(zt!["convert", "--json", path, out].exits(4).error_code(), "io");
}

#[test]
fn what_is_sound_and_cannot_be_done_is_5() {
    let dir = tempdir().unwrap();
    let unknown = of_unknown_format(dir.path());
    let run = zt!["show", "--json", unknown, "blocks"].exits(5);
    assert_eq!(run.error_code(), "unsupported");
    assert_eq!(run.json()["error"]["object"], "blocks");
    // Its bytes are readable.
    zt!["show", unknown, "blocks", "--component", "cells"].exits(0);

    let out = dir.path().join("out.safetensors");
    let run = zt!["convert", "--json", sample(dir.path()), out].exits(5);
    assert_eq!(run.error_code(), "lossy");
    assert!(!out.exists());
}

#[test]
fn help_and_version_are_0_and_have_examples() {
    for command in [
        "ls",
        "info",
        "show",
        "verify",
        "hash",
        "convert",
        "extract",
        "explain",
        "completions",
        "man",
    ] {
        let run = zt![command, "--help"].exits(0);
        assert!(run.text().contains("Examples:"), "{command}");
        assert!(run.text().contains("--json"), "{command}");
    }
    let version = env!("CARGO_PKG_VERSION");
    let short = zt!["-V"].exits(0).text();
    assert_eq!(short, format!("zt {version}\n"));
    let long = zt!["--version"].exits(0).text();
    assert!(long.starts_with(&format!("zt {version} (")), "{long}");
    assert!(long.contains("zstd") && long.contains("safetensors"), "{long}");
    let (_, build) = long.split_once("\nbuild: ").unwrap();
    assert!(build.contains(std::env::consts::OS), "{build}");
}

#[test]
fn completions_and_manual_pages_exist() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(zt!["completions", shell].exits(0).text().contains("verify"), "{shell}");
    }
    assert!(zt!["completions", "--json", "bash"].exits(0).json()["script"].is_string());
    assert!(zt!["man"].exits(0).text().contains(".TH zt 1"));
    let document = zt!["man", "--json"].exits(0).json();
    assert!(document["page"].as_str().unwrap().contains(".TH zt 1"));
    let dir = tempdir().unwrap();
    let pages = dir.path().join("man1");
    let document = zt!["man", "--json", "--dir", pages].exits(0).json();
    assert!(document["written"].as_array().unwrap().len() >= 10);
    assert!(pages.join("zt.1").exists() && pages.join("zt-verify.1").exists());
    assert_eq!(zt!["man", "--json", "--dir", pages].exits(2).error_code(), "overwrite");
    zt!["man", "--dir", pages, "--force"].exits(0);
    // A folder that cannot be made leaves none around it.
    let (made, name) = (dir.path().join("man2"), "x".repeat(300));
    zt!["man", "--dir", made.join("man3").join(name)].exits(4);
    assert!(!made.exists());
    zt!["man", "--dir", pages.join("zt.1")].exits(2);
    zt!["man", "--dir", pages.join("zt.1").join("within")].exits(2);
}

#[test]
fn no_bytes_cause_a_panic() {
    let dir = tempdir().unwrap();
    let bytes = std::fs::read(sample(dir.path())).unwrap();
    let path = dir.path().join("case.zt");
    // The last third is manifest and footer.
    for at in (bytes.len() * 2 / 3..bytes.len()).step_by(7) {
        let mut bytes = bytes.clone();
        bytes[at] ^= 0x41;
        std::fs::write(&path, &bytes).unwrap();
        for arguments in [&["ls", "--long"][..], &["verify", "--strict"], &["info"]] {
            let run = common::zt(arguments.iter().copied().chain([path.to_str().unwrap()]));
            assert!(matches!(run.code, Some(0 | 1 | 3)), "{at}: {:?} {}", run.code, run.err);
            assert!(!run.err.contains("panicked"), "{at}: {}", run.err);
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_stdout_is_4() {
    let dir = tempdir().unwrap();
    let path = sample(dir.path());
    let path = path.to_str().unwrap();
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["help", "convert"],
        &["man"],
        &["completions", "fish"],
        &["explain"],
        &["ls", path],
        &["verify", path],
        &["meta", "get", path],
        &["convert", path, "-"],
    ] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
        let run = common::run(common::command().args(arguments).stdout(full.unwrap()));
        let run = run.exits(4);
        assert_eq!(run.out, b"", "{arguments:?}");
        let is_reported = run.err.starts_with("error[io]: ") && run.err.contains("stdout: ");
        assert!(is_reported, "{arguments:?} {}", run.err);
    }
}

/// Sends a signal to a conversion that takes minutes, once it has begun; the exit code.
#[cfg(target_os = "linux")]
fn stopped_by(signal: &str) -> i32 {
    let (dir, out) = (tempdir().unwrap(), tempdir().unwrap());
    let path = dir.path().join("w.safetensors");
    common::of_zeros(&path, 64 << 30);
    let mut command = common::command();
    command.arg("convert").arg(path).arg(out.path().join("out.zt"));
    command.arg("--zstd=19").stderr(std::process::Stdio::null());
    let mut child = command.spawn().unwrap();
    let pid = child.id().to_string();
    let since = std::time::Instant::now();
    let has_begun = || {
        let files = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
        let mut targets = files.filter_map(|file| file.ok()?.path().read_link().ok());
        targets.any(|target| target.starts_with(out.path()))
    };
    while !has_begun() && since.elapsed().as_secs() < 60 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let mut kill = std::process::Command::new("kill");
    kill.args([signal, &pid]).status().unwrap();
    let code = child.wait().unwrap().code().unwrap();
    assert_eq!(common::names_in(out.path()), [""; 0], "{signal}");
    code
}

/// Reads one byte of a file on stdout and closes it; the exit code.
#[cfg(target_os = "linux")]
fn cut_off(path: &Path) -> i32 {
    let mut command = common::command();
    command.arg("cat").arg(path).arg("w");
    command.stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut first = [0];
    let mut stdout = child.stdout.take().unwrap();
    std::io::Read::read_exact(&mut stdout, &mut first).unwrap();
    drop(stdout);
    child.wait().unwrap().code().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn every_exit_code_of_the_help_occurs() {
    let dir = tempdir().unwrap();
    let path = sample(dir.path());
    let rubbish = dir.path().join("rubbish");
    std::fs::write(&rubbish, "no tensors").unwrap();
    let large = dir.path().join("large.safetensors");
    common::of_zeros(&large, 8 << 20);
    zt!["ls", path].exits(0);
    zt!["verify", damaged(dir.path())].exits(1);
    zt!["ls", "--no-such-option"].exits(2);
    zt!["ls", rubbish].exits(3);
    zt!["ls", dir.path().join("nothing.zt")].exits(4);
    zt!["show", of_unknown_format(dir.path()), "blocks"].exits(5);
    let edit = zt::File::edit(&path).unwrap();
    zt!["rm", path, "w"].exits(6);
    drop(edit);
    if common::hears(1) {
        assert_eq!(stopped_by("-HUP"), 129);
    }
    assert_eq!(stopped_by("-INT"), 130);
    assert_eq!(cut_off(&large), 141);
    assert_eq!(stopped_by("-TERM"), 143);

    let help = zt!["--help"].exits(0).text();
    let (_, table) = help.split_once("Exit: ").unwrap();
    let codes = table.split([' ', ',', '\n']).filter_map(|word| word.parse().ok());
    let mut codes: Vec<i32> = codes.collect();
    codes.sort_unstable();
    assert_eq!(codes, [0, 1, 2, 3, 4, 5, 6, 129, 130, 141, 143]);
}
