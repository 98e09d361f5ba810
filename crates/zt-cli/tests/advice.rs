//! Messages that say what to do, and outputs that fit a terminal.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::sample;
use tempfile::tempdir;
use zt::{Dense, Value, Writer};

/// A file with an object of this name.
fn with_name(dir: &Path, name: &str) -> PathBuf {
    let path = dir.join("named.zt");
    let mut writer = Writer::create(&path).unwrap();
    let value = Dense::from_slice(&[1], &[1f32]).unwrap();
    writer.add(name, &value).unwrap();
    writer.finish().unwrap();
    path
}

#[test]
fn a_remedy_that_keeps_all_values_comes_first() {
    let dir = tempdir().unwrap();
    let out = dir.path().join("out.gguf");
    let path = with_name(dir.path(), &"n".repeat(64));
    let run = zt!["convert", path, out].exits(5);
    let (rename, drop) = (run.err.find("--rename"), run.err.find("--drop-unsupported"));
    assert!(rename.unwrap() < drop.unwrap(), "{}", run.err);
    let run = zt!["convert", path, out, "--rename", "s/n{60}//"].exits(0);
    assert!(run.err.contains("warning[architecture]"), "{}", run.err);

    let complex = dir.path().join("complex.zt");
    let mut writer = Writer::create(&complex).unwrap();
    let values = [zt::formats::Complex::new(1f32, 2.0)];
    writer.add("c", &Dense::from_slice(&[1], &values).unwrap()).unwrap();
    writer.finish().unwrap();
    let run = zt!["convert", complex, out, "-f"].exits(5);
    assert!(!run.err.contains("--dtype"), "no cast of complex: {}", run.err);
}

/// NumPy has no complex numbers with parts of 16 bits.
#[test]
fn halves_of_complex_numbers_are_kept_by_zt_alone() {
    use zt::formats::{Complex, f16};

    let dir = tempdir().unwrap();
    let path = dir.path().join("halves.zt");
    let mut writer = Writer::create(&path).unwrap();
    let values = [Complex::new(f16::ONE, f16::MAX)];
    writer.add("c", &Dense::from_slice(&[1], &values).unwrap()).unwrap();
    writer.add("w", &Dense::from_slice(&[1], &[1f32]).unwrap()).unwrap();
    writer.finish().unwrap();
    for out in ["out.npz", "out.npy", "out.safetensors", "out.gguf"] {
        let out = dir.path().join(out);
        let run = zt!["convert", path, out].exits(5);
        assert!(run.err.contains("complex32"), "{}", run.err);
        assert!(run.err.contains("only .zt keeps"), "{}", run.err);
        zt!["convert", path, out, "--exclude", "c"].exits(0);
    }
}

#[test]
fn a_type_that_can_be_cast_is_not_dropped() {
    let dir = tempdir().unwrap();
    let fp8 = sample(dir.path());
    let out = dir.path().join("out.gguf");
    let run = zt!["convert", fp8, out, "--include", "fp8"].exits(5);
    let (cast, drop) = (run.err.find("--dtype f32"), run.err.find("--drop-unsupported"));
    assert!(cast.unwrap() < drop.unwrap(), "{}", run.err);
    zt!["convert", fp8, out, "--include", "fp8", "--dtype", "f32"].exits(0);
}

#[test]
fn long_lists_of_attributes_are_shortened_for_people() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("tokens.zt");
    let mut writer = Writer::create(&path).unwrap();
    let tokens = (0..1000).map(|at| Value::from(format!("<{at}>"))).collect();
    writer.set_attributes([("tokens", Value::array(tokens))].into()).unwrap();
    writer.finish().unwrap();
    for key in [None, Some("tokens")] {
        let get = ["meta", "get", path.to_str().unwrap()].into_iter().chain(key);
        let short = common::zt(get.clone()).exits(0).text();
        assert!(short.contains("<3>") && !short.contains("<4>"), "{short}");
        assert!(short.contains("996 of 1000 values more: --full"), "{short}");
        let all = common::zt(get.clone().chain(["--full"])).exits(0).text();
        assert!(all.contains("<999>"));
        let json = common::zt(get.chain(["--json"])).exits(0).text();
        assert!(json.contains("<999>"));
    }
}

#[test]
fn an_attribute_needs_a_name() {
    let dir = tempdir().unwrap();
    let path = sample(dir.path());
    let before = fs::read(&path).unwrap();
    zt!["meta", "set", path, "", "v"].exits(2);
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_missing_folder_and_a_folder_as_output_are_named() {
    let dir = tempdir().unwrap();
    let path = sample(dir.path());
    let nowhere = dir.path().join("nodir/out.zt");
    let run = zt!["convert", path, nowhere].exits(4);
    assert!(run.err.contains("nodir does not exist"), "{}", run.err);
    let run = zt!["convert", path, dir.path()].exits(2);
    assert!(run.err.contains("is a folder"), "{}", run.err);
}

#[test]
fn the_beginning_of_a_name_leads_to_the_names() {
    let dir = tempdir().unwrap();
    let path = with_name(dir.path(), "pooler.dense.bias");
    let run = zt!["show", path, "pooler"].exits(2);
    assert!(run.err.contains("did you mean \"pooler.dense.bias\"?"), "{}", run.err);
    let other = sample(dir.path());
    zt!["append", path, other].exits(0);
    let run = zt!["show", path, "pooler.dens.bias"].exits(2);
    assert!(run.err.contains("pooler.dense.bias"), "{}", run.err);
}

#[test]
fn swapped_arguments_are_noticed() {
    let dir = tempdir().unwrap();
    let path = sample(dir.path());
    let out = dir.path().join("out");
    for run in [zt!["show", "w", path], zt!["cat", "w", path], zt!["extract", "w", path, "-o", out]]
    {
        assert!(run.err.contains("the file comes first"), "{}", run.err);
    }
}

#[test]
fn a_mistyped_option_gets_no_tip_about_values() {
    let run = zt!["ls", "--statistics", "x.zt"].exits(2);
    assert!(!run.err.contains("as a value"), "{}", run.err);
    let run = zt!["ls", "--sorted", "x.zt"].exits(2);
    assert!(run.err.contains("--sort"), "{}", run.err);
}

#[cfg(unix)]
#[test]
fn a_uri_of_json_opens_again() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let dir = tempdir().unwrap();
    let path = dir.path().join(OsStr::from_bytes(b"caf\xe9 %41.zt"));
    if fs::copy(sample(dir.path()), &path).is_err() {
        return; // Not every file system has such names.
    }
    let uri = zt!["ls", "--json", path].exits(0).json()["file"].clone();
    let uri = uri.as_str().unwrap();
    assert!(uri.contains("caf%E9%20%2541.zt"), "{uri}");
    zt!["ls", uri].exits(0);
    zt!["meta", "set", uri, "k", "v"].exits(0);
    let again = zt!["meta", "get", "--json", path].exits(0).json();
    assert_eq!(again["attributes"]["k"], "v");
}

/// What the shell asks: the word at `at` of a command line is completed.
fn completed(words: &[&str]) -> Vec<String> {
    let at = (words.len() - 1).to_string();
    let mut shell = common::command();
    shell.env("COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", at);
    shell.env("_CLAP_COMPLETE_COMP_TYPE", "9").env("_CLAP_IFS", "\n");
    let run = common::run(shell.arg("--").args(words)).exits(0);
    run.text().lines().map(str::to_owned).collect()
}

#[test]
fn a_shell_completes_names_of_objects() {
    let dir = tempdir().unwrap();
    let path = with_name(dir.path(), "pooler.dense.bias");
    zt!["append", path, sample(dir.path())].exits(0);
    let path = path.to_str().unwrap();
    for command in ["show", "cat", "extract", "rm", "rename"] {
        let found = completed(&["zt", command, path, "pool"]);
        assert_eq!(found, ["pooler.dense.bias"], "{command}");
    }
    let all = completed(&["zt", "show", path, ""]);
    assert!(all.iter().any(|name| name == "fp8"), "{all:?}");
    assert!(completed(&["zt", "show", "missing.zt", "pool"]).is_empty());
    assert!(completed(&["zt", "verif"]).contains(&"verify".to_owned()));
}

#[test]
fn shape_and_type_of_blocks_give_their_length() {
    let conformance = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
    let path = conformance.join("corpus/foreign/gguf/quant_q8_0.gguf");
    let long = zt!["ls", "-l", path].exits(0).text();
    assert!(long.contains("q8_0: 34 B/32"), "{long}");
}

/// A server like `python -m http.server`, which sends whole files only.
#[cfg(feature = "remote")]
#[test]
fn a_server_without_ranges_is_explained() {
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/m.zt", server.local_addr().unwrap());
    // It ends with the test.
    std::thread::spawn(move || {
        for stream in server.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let head = lines.next().is_some_and(|line| line.unwrap().starts_with("HEAD"));
            for line in lines {
                if line.unwrap().is_empty() {
                    break;
                }
            }
            let body = vec![b'x'; if head { 0 } else { 1000 }];
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nConnection: close\r\n\r\n";
            let _ = stream.write_all(&[answer.as_bytes(), &body].concat());
        }
    });
    let run = zt!["ls", "--allow-http", url].exits(4);
    assert!(run.err.contains("| zt ls -`"), "{}", run.err);
}
