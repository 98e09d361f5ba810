//! Several files and folders, and the problems that name them.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{Run, command, damaged, keys, of_floats, of_unknown_format, run, sample};
use serde_json::Value;
use tempfile::{TempDir, tempdir};

/// `zt` in a folder.
fn zt_in(folder: &Path, arguments: &[&str]) -> Run {
    run(command().current_dir(folder).args(arguments))
}

/// Splits [`sample`] into a set of safetensors files in this folder.
fn set(folder: &Path) {
    let dir = tempdir().unwrap();
    let model = sample(dir.path());
    let split = ["--max-shard-size=8", "--to=safetensors", "--lossy", "--exclude=complex", "-o"];
    let mut command = command();
    run(command.arg("split").arg(model).args(split).arg(folder)).exits(0);
    assert!(common::names_in(folder).len() > 3);
}

/// A folder with `a.zt`, `b.safetensors`, files of other kinds, and `below/deep/c.zt`.
fn folder() -> TempDir {
    let dir = tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    of_floats(&at("a.zt"), &[1.0]);
    common::of_zeros(&at("b.safetensors"), 16);
    for name in ["config.json", "README.md", "notes.bin", ".hidden.zt"] {
        fs::write(at(name), "{}").unwrap();
    }
    fs::create_dir_all(at("below/deep")).unwrap();
    of_floats(&at("below/deep/c.zt"), &[2.0]);
    dir
}

/// The path of a document. Paths compare by their parts: Windows has another separator.
fn file(document: &Value) -> &Path {
    Path::new(document["file"].as_str().unwrap())
}

fn files(list: &Value) -> Vec<&Path> {
    list.as_array().unwrap().iter().map(file).collect()
}

/// A text with the separator of Linux in its paths.
fn with_slashes(text: &str) -> String {
    text.replace(std::path::MAIN_SEPARATOR, "/")
}

#[test]
fn a_folder_stands_for_its_tensor_files() {
    let dir = folder();
    for command in ["ls", "info", "hash", "verify"] {
        let list = zt_in(dir.path(), &[command, "--json", "."]).exits(0).json();
        assert_eq!(files(&list), ["./a.zt", "./b.safetensors"], "{command}");
        let list = zt_in(dir.path(), &[command, "--json", "-r", "."]).exits(0);
        let all = ["./a.zt", "./b.safetensors", "./below/deep/c.zt"];
        assert_eq!(files(&list.json()), all, "{command}");
        let list = zt_in(dir.path(), &[command, "--json", "-r", "a.zt"]).exits(0);
        assert_eq!(files(&list.json()), ["a.zt"], "-r always prints a list");
        let one = zt_in(dir.path(), &[command, "--json", "a.zt"]).exits(0);
        assert_eq!(one.json()["file"], "a.zt");
    }
    let text = zt_in(dir.path(), &["ls", "b.safetensors", "a.zt"]).exits(0);
    let text = text.text();
    let headings: Vec<&str> = text.lines().filter(|line| line.ends_with(':')).collect();
    assert_eq!(headings, ["b.safetensors:", "a.zt:"]);
    assert!(text.contains("\n\na.zt:\nNAME"), "{text}");
}

#[test]
fn a_folder_with_an_index_stands_for_the_set() {
    let dir = tempdir().unwrap();
    set(dir.path());
    let index = dir.path().join("model.safetensors.index.json");
    let by_index = zt!["hash", "--json", index].exits(0).json();
    for command in ["ls", "info", "hash", "verify"] {
        let document = zt![command, "--json", dir.path()].exits(0).json();
        assert_eq!(file(&document), index, "{command}");
    }
    let found = zt!["hash", "--json", dir.path()].json();
    assert_eq!(found["content"], by_index["content"]);
    // Other commands open the set, too.
    let (out, other) = (tempdir().unwrap(), tempdir().unwrap());
    zt!["show", dir.path(), "w"].exits(0);
    zt!["diff", dir.path(), index].exits(0);
    zt!["extract", dir.path(), "w", "-o", out.path()].exits(0);
    let merged = out.path().join("merged.zt");
    zt!["convert", dir.path(), merged].exits(0);
    zt!["split", dir.path(), "-o", other.path()].exits(0);
    assert_eq!(common::names_in(other.path()), ["model.safetensors"]);

    // A tensor file beside the set is not left out.
    of_floats(&dir.path().join("adapter.zt"), &[1.0]);
    let list = zt!["verify", "--json", dir.path()].exits(0).json();
    let adapter = dir.path().join("adapter.zt");
    assert_eq!(files(&list), [&adapter, &index]);
    zt!["show", dir.path(), "scalar"].exits(0);

    // A broken index is a problem, and so is a missing shard.
    let names = common::names_in(dir.path());
    let shard = names.iter().find(|name| name.contains("-00002-of-"));
    fs::remove_file(dir.path().join(shard.unwrap())).unwrap();
    zt!["verify", dir.path()].exits(3);
    fs::write(&index, "").unwrap();
    let run = zt!["ls", dir.path()].exits(3);
    assert!(run.err.contains("index.json: "), "{}", run.err);
}

#[test]
fn any_part_of_a_gguf_set_is_the_set() {
    let dir = tempdir().unwrap();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/data/gguf-set");
    let parts = [1, 2, 3].map(|no| format!("m-0000{no}-of-00003.gguf"));
    for part in &parts {
        fs::copy(data.join(part), dir.path().join(part)).unwrap();
    }
    let list = zt_in(dir.path(), &["ls", "--json", "."]).exits(0).json();
    assert_eq!(file(&list), "./m-00001-of-00003.gguf");
    let shown = |part: &str| zt_in(dir.path(), &["cat", part, "b"]).exits(0).out;
    let [first, second, third] = [&parts[0], &parts[1], &parts[2]];
    let b = [3f32, 4.0, 5.0].map(f32::to_le_bytes);
    for part in &parts {
        assert_eq!(shown(part), b.as_flattened());
    }
    zt_in(dir.path(), &["merge", first, second, third, "whole.gguf"]).exits(0);
    let whole = zt_in(dir.path(), &["meta", "get", "whole.gguf"]).exits(0);
    assert!(!whole.text().contains("split."), "{}", whole.text());
    zt_in(dir.path(), &["diff", third, "whole.gguf"]).exits(0);
    // The last argument is the output. It is a part of the input.
    let before = fs::read(dir.path().join(third)).unwrap();
    zt_in(dir.path(), &["merge", "-f", first, second, third]).exits(2);
    assert_eq!(fs::read(dir.path().join(third)).unwrap(), before);
    fs::remove_file(dir.path().join(second)).unwrap();
    for command in ["ls", "convert"] {
        let arguments = [command, first, "out.zt"];
        let count = if command == "ls" { 2 } else { 3 };
        let run = zt_in(dir.path(), &arguments[..count]).exits(3);
        assert!(run.err.contains(second.as_str()), "{}", run.err);
    }
    assert!(!dir.path().join("out.zt").exists());
}

#[test]
fn a_folder_with_several_files_or_none_is_explained() {
    let dir = folder();
    let out = dir.path().join("out");
    for arguments in [
        vec!["show", ".", "w"],
        vec!["convert", ".", "out"],
        vec!["diff", "a.zt", "."],
        vec!["extract", ".", "-o", "out"],
        vec!["split", "."],
        vec!["bench", "."],
    ] {
        let run = zt_in(dir.path(), &[&arguments[..], &["--json"]].concat());
        if arguments[0] != "convert" {
            assert_eq!(run.error_code(), "misuse");
            let has_all = "2 tensor files: a.zt, b.safetensors; give one of them";
            assert!(run.err.contains(has_all), "{arguments:?} {}", run.err);
        }
        run.exits(2);
    }
    assert!(!out.exists());
    for command in ["ls", "verify"] {
        let run = zt_in(dir.path(), &[command, "below"]).exits(2);
        assert!(run.err.contains("below: the folder has no"), "{}", run.err);
        assert!(run.err.contains("-r looks into"), "{}", run.err);
    }
    let run = zt_in(dir.path(), &["show", "below", "w"]).exits(2);
    assert!(run.err.contains("its folders: deep"), "{}", run.err);
    let empty = tempdir().unwrap();
    for arguments in [&["ls", "."][..], &["ls", "-r", "."], &["show", ".", "w"]] {
        let run = zt_in(empty.path(), arguments).exits(2);
        assert!(run.err.contains("tensor file"), "{}", run.err);
    }
    // The only tensor file of a folder.
    zt_in(dir.path(), &["show", "below/deep", "w"]).exits(0);
    let cat = zt_in(dir.path(), &["cat", "below/deep", "w"]).exits(0);
    assert_eq!(cat.out, 2.0f32.to_le_bytes());
    let split = zt_in(dir.path(), &["split", "below/deep"]).exits(0);
    let split = with_slashes(&split.text());
    assert!(split.starts_with("below/deep/c.zt: fits"), "{split}");
    // A folder is not edited.
    let run = zt_in(dir.path(), &["rm", "below/deep", "w"]).exits(4);
    assert!(run.err.contains("below/deep: "), "{}", run.err);
}

#[test]
fn damage_in_one_of_several_files_is_a_problem_of_that_file() {
    let dir = folder();
    fs::write(dir.path().join("broken.gguf"), [0x80; 16]).unwrap();
    fs::write(dir.path().join("empty.safetensors"), "").unwrap();
    let (_, _) = (damaged(dir.path()), of_unknown_format(dir.path()));
    let cut = fs::read(dir.path().join("a.zt")).unwrap();
    fs::write(dir.path().join("weights"), &cut[..cut.len() / 2]).unwrap();
    for (command, expected) in [("ls", 3), ("info", 3), ("hash", 3), ("verify", 3)] {
        let run = zt_in(dir.path(), &[command, ".", "--json"]).exits(expected);
        let list = run.json();
        let names = [
            "./a.zt",
            "./b.safetensors",
            "./broken.gguf",
            "./damaged.zt",
            "./empty.safetensors",
            "./unknown.zt",
            "./weights",
        ];
        assert_eq!(files(&list), names, "{command}");
        for (at, code) in [(2, "header"), (4, "unknown-kind"), (6, "manifest-size")] {
            let error = &list[at]["error"];
            assert_eq!(error["code"], code, "{command} {}", names[at]);
            assert_eq!(file(error), names[at]);
        }
        if command == "ls" {
            assert_eq!(keys(&list[2]), ["error", "file"]);
        }
        for line in with_slashes(&run.err).lines() {
            assert!(line.contains(": ./"), "{line}");
        }
    }
    // A clone without Git LFS.
    let clone = tempdir().unwrap();
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n";
    fs::write(clone.path().join("pytorch_model.bin"), pointer).unwrap();
    let run = zt_in(clone.path(), &["ls", "."]).exits(3);
    assert!(run.err.contains("git lfs pull"), "{}", run.err);
    let run = zt_in(dir.path(), &["verify", "a.zt", "damaged.zt"]).exits(1);
    let expected = "error[digest-mismatch]: damaged.zt: w/data at ";
    assert!(run.err.contains(expected), "{}", run.err);
    // The highest exit code: a missing file.
    zt_in(dir.path(), &["ls", "broken.gguf", "missing.zt", "a.zt"]).exits(4);
}

#[test]
fn the_error_of_a_command_names_the_file() {
    let dir = tempdir().unwrap();
    let (sound, bad) = (sample(dir.path()), damaged(dir.path()));
    let (sound, bad) = (sound.to_str().unwrap(), bad.to_str().unwrap());
    let other = dir.path().join("other.zt");
    of_floats(&other, &[1.0, 2.0, 3.0]);
    let other = other.to_str().unwrap();
    let out = dir.path().join("out");
    let out = out.to_str().unwrap();
    for (file, arguments) in [
        (sound, vec!["show", sound, "nope"]),
        (sound, vec!["cat", sound, "nope"]),
        (bad, vec!["cat", bad, "w"]),
        (sound, vec!["show", sound, "w", "--component", "nope"]),
        (sound, vec!["extract", sound, "nope", "-o", out]),
        (sound, vec!["meta", "get", sound, "nope"]),
        (bad, vec!["show", bad, "w"]),
        (bad, vec!["extract", bad, "w", "-o", out]),
        (bad, vec!["hash", bad]),
        (bad, vec!["diff", other, bad]),
        (bad, vec!["bench", bad]),
        (sound, vec!["ls", sound, "--include", "nope*"]),
    ] {
        let run = common::zt(&arguments);
        let line = run.err.lines().find(|line| line.starts_with("error["));
        let line = line.unwrap_or_else(|| panic!("{arguments:?} {}", run.err));
        let (_, place) = line.split_once("]: ").unwrap();
        assert!(place.starts_with(&format!("{file}: ")), "{line}");
    }
}

#[cfg(unix)]
#[test]
fn a_cache_of_the_hub_is_read_through_its_links() {
    use std::os::unix::fs::symlink;
    let dir = tempdir().unwrap();
    let repo = dir.path().join("models--a--b");
    let (blobs, snapshot) = (repo.join("blobs"), repo.join("snapshots/0123"));
    fs::create_dir_all(&snapshot).unwrap();
    fs::create_dir_all(repo.join("refs")).unwrap();
    set(&blobs);
    for (at, name) in common::names_in(&blobs).iter().enumerate() {
        fs::rename(blobs.join(name), blobs.join(at.to_string())).unwrap();
        let target = format!("../../blobs/{at}");
        symlink(target, snapshot.join(name)).unwrap();
    }
    symlink("..", snapshot.join("circle")).unwrap();
    let index = "snapshots/0123/model.safetensors.index.json";
    let list = zt_in(&repo, &["verify", "-r", "--json", "."]).exits(0);
    assert_eq!(files(&list.json()), [Path::new(".").join(index)]);
    zt!["show", snapshot, "w"].exits(0);
    let run = zt!["ls", repo].exits(2);
    assert!(run.err.contains("-r"), "{}", run.err);
    // A link to a file that was deleted.
    fs::remove_file(snapshot.join("model.safetensors.index.json")).unwrap();
    symlink("../../blobs/none", snapshot.join("lost.zt")).unwrap();
    let run = zt!["ls", snapshot].exits(4);
    assert!(run.err.contains("lost.zt: "), "{}", run.err);
}

fn sums(folder: &Path, arguments: &[&str]) -> PathBuf {
    let run = zt_in(folder, &[&["hash"][..], arguments].concat()).exits(0);
    let path = folder.join("SUMS");
    fs::write(&path, run.out).unwrap();
    path
}

#[test]
fn a_list_of_hashes_is_checked() {
    let dir = folder();
    for (arguments, count) in [(&["--sums", "a.zt"][..], 1), (&["-r", "."], 3)] {
        let list = fs::read_to_string(sums(dir.path(), arguments)).unwrap();
        assert_eq!(list.lines().count(), count);
        let content = zt_in(dir.path(), &["hash", "--json", "a.zt"]).json();
        let content = content["content"].as_str().unwrap().to_owned();
        assert!(list.starts_with(&content), "{list}");
        let run = zt_in(dir.path(), &["hash", "--check", "SUMS"]).exits(0);
        assert_eq!(run.text().matches(": OK\n").count(), count);
        assert_eq!(run.err, "");
    }
    let dense = zt_in(dir.path(), &["hash", "--dense", "a.zt", "b.safetensors"]).exits(0);
    let text = dense.text();
    assert!(text.starts_with("a.zt:\n") && text.contains("\n\nb.safetensors:\n"), "{text}");
    assert_eq!(text.matches(" w (dense f32)\n").count(), 2);
    // A conversion does not change the hash, and another value does.
    zt_in(dir.path(), &["convert", "a.zt", "a.npz"]).exits(0);
    fs::rename(dir.path().join("a.npz"), dir.path().join("a.zt")).unwrap();
    of_floats(&dir.path().join("below/deep/c.zt"), &[3.0]);
    fs::remove_file(dir.path().join("b.safetensors")).unwrap();
    let run = zt_in(dir.path(), &["hash", "-c", "SUMS"]).exits(4);
    let expected = "./a.zt: OK\n./b.safetensors: FAILED open or read\n./below/deep/c.zt: FAILED\n";
    assert_eq!(run.text(), expected);
    assert!(run.err.contains("2 of 3 files failed"), "{}", run.err);
    let list = zt_in(dir.path(), &["hash", "-c", "SUMS", "--json"]).exits(4);
    let list = list.json();
    let expected = ["content", "error", "expected", "file", "ok"];
    assert_eq!(keys(&list[2]), expected);
    assert_eq!((&list[0]["ok"], &list[2]["ok"]), (&true.into(), &false.into()));
    of_floats(&dir.path().join("b.safetensors"), &[1.0]);
    zt_in(dir.path(), &["hash", "-c", "SUMS"]).exits(1);
    let run = zt_in(dir.path(), &["hash", "-c", "config.json"]).exits(2);
    assert!(run.err.contains("config.json: line 1: "), "{}", run.err);
}

#[cfg(unix)]
#[test]
fn a_list_of_hashes_has_every_path() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let dir = tempdir().unwrap();
    for name in [&b"a\nb\\.zt"[..], b"\xff.zt", " \u{202e}.zt".as_bytes()] {
        of_floats(&dir.path().join(OsStr::from_bytes(name)), &[1.0]);
    }
    sums(dir.path(), &["."]);
    let run = zt_in(dir.path(), &["hash", "--check", "SUMS"]).exits(0);
    assert_eq!(run.text().matches(": OK\n").count(), 3);
}

#[test]
fn a_folder_of_another_program_is_named() {
    let dir = tempdir().unwrap();
    fs::create_dir(dir.path().join("c")).unwrap();
    fs::write(dir.path().join("zarr.json"), "{}").unwrap();
    for arguments in [&["ls", "."][..], &["ls", "-r", "."], &["convert", ".", "x.zt"]] {
        let run = zt_in(dir.path(), arguments);
        assert!(run.err.contains("error[unknown-kind]") && run.err.contains("Zarr"), "{}", run.err);
    }
}

#[cfg(windows)]
#[test]
fn a_pattern_is_not_replaced_by_names() {
    let run = common::zt(["ls", "*.zt"]).exits(4);
    assert!(run.err.contains("note: Windows does not replace * and ? by names"), "{}", run.err);
}

#[test]
fn a_list_of_hashes_has_lines_of_its_own_form_alone() {
    let dir = tempdir().unwrap();
    let digits = "0".repeat(64);
    for line in [
        format!("{digits}  a"),
        format!("sha256:{digits}"),
        format!("sha256:{digits}  "),
        format!("sha256:{digits} *a"),
        format!("sha256:{}g  a", &digits[1..]),
        format!("\\sha256:{digits}  a\\"),
        format!("\\sha256:{digits}  a\\x1"),
        format!("\\sha256:{digits}  a\\y"),
    ] {
        fs::write(dir.path().join("SUMS"), format!("{line}\n")).unwrap();
        let run = zt_in(dir.path(), &["hash", "--check", "SUMS"]).exits(2);
        assert!(run.err.contains("SUMS: line 1: expected a line"), "{line}: {}", run.err);
    }
}

#[test]
fn out_is_a_position_or_an_option() {
    let dir = tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    common::of_floats(&at("a.zt"), &[1.0, 2.0]);
    common::of_floats(&at("b.zt"), &[1.0, 3.0]);
    let [a, b] = ["a.zt", "b.zt"].map(at);
    for (command, name) in [("convert", "c"), ("average", "m")] {
        let (first, second) = (at(&format!("{name}1.zt")), at(&format!("{name}2.zt")));
        zt![command, a, first].exits(0);
        zt![command, a, "-o", second].exits(0);
        assert_eq!(fs::read(first).unwrap(), fs::read(second).unwrap());
    }
    let (first, second) = (at("d1.zt"), at("d2.zt"));
    zt!["delta", a, b, first].exits(0);
    zt!["delta", a, b, "-o", second].exits(0);
    assert_eq!(fs::read(first).unwrap(), fs::read(second).unwrap());
    zt!["delta", a, b].exits(2);
    zt!["report", a, b, at("page.html")].exits(0);
    zt!["report", a, b].exits(2);
    zt!["split", a, at("set")].exits(0);
    zt!["repair", a, at("saved.zt")].exits(0);
    zt!["repair", a, "--force"].exits(2);
    assert!(at("page.html").exists() && at("set").exists() && at("saved.zt").exists());
    zt!["patch", a, at("d1.zt"), at("new.zt")].exits(0);
    zt!["diff", b, at("new.zt")].exits(0);
    // A name like that of a file is a delta that was mistyped, and the only delta is no file to write.
    let run = zt!["patch", a, at("d1.zt"), at("d3.zt")].exits(2);
    assert!(run.err.contains("did you mean"), "{}", run.err);
    assert!(!at("d3.zt").exists());
    zt!["patch", a, at("missing.zt")].exits(4);
}

#[test]
fn a_missing_file_gives_a_suggestion() {
    let dir = tempdir().unwrap();
    common::of_floats(&dir.path().join("minilm.zt"), &[1.0]);
    let run = zt!["ls", dir.path().join("minlm.zt")].exits(4);
    assert!(run.err.contains("did you mean") && run.err.contains("minilm.zt"), "{}", run.err);
    let run = zt!["ls", dir.path().join("other.gguf")].exits(4);
    assert!(!run.err.contains("did you mean"), "{}", run.err);
}
