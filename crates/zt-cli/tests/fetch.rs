//! `zt fetch`: the file, or nothing under its name.
#![cfg(feature = "remote")]
#![allow(clippy::unwrap_used, reason = "a failed unwrap is the failure of the test")]

mod common;
#[path = "../../zt-remote/tests/common/mod.rs"]
mod server;

use std::fs;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use common::{command, names_in, zt};
use server::Server;

fn content(len: usize) -> Arc<Vec<u8>> {
    let byte = |at: usize| u8::try_from((at * at / 7 + at) % 251).unwrap();
    Arc::new((0..len).map(byte).collect())
}

#[test]
fn a_file_is_fetched_and_what_was_checked_is_told() {
    let bytes = content(300_000);
    let server = Server::with("m.bin", Arc::clone(&bytes));
    let url = server.url("m.bin");
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("new/");
    let out_text = format!("{}/", out.to_str().unwrap());
    let fetched = zt(["fetch", &url, "-o", &out_text, "--allow-http", "--json"]).exits(0);
    let file = &fetched.json()["files"][0];
    assert_eq!((&file["checked"], &file["byte_len"]), (&"none".into(), &300_000.into()));
    assert!(fetched.err.contains("only its length was checked"), "{}", fetched.err);
    assert_eq!(fs::read(out.join("m.bin")).unwrap(), **bytes);

    zt(["fetch", &url, &out_text, "--allow-http"]).exits(2);
    let same = file["sha256"].as_str().unwrap();
    let wrong = "0".repeat(64);
    for (sum, code) in [(same, 0), (&*wrong, 1)] {
        let options = ["--allow-http", "--force", "--sha256", sum];
        let run = zt(["fetch", &url, &out_text].into_iter().chain(options)).exits(code);
        assert_eq!(run.err.contains("digest-mismatch"), code == 1, "{}", run.err);
    }
    assert_eq!(fs::read(out.join("m.bin")).unwrap(), **bytes);
    assert_eq!(names_in(&out), ["m.bin"]);
    zt(["fetch", "m.bin"]).exits(2);
}

#[test]
fn a_fetch_that_is_killed_leaves_no_file_and_the_last_one_is_right() {
    let bytes = content(2_000_000);
    let server = Server::with("m.bin", Arc::clone(&bytes));
    let url = server.url("m.bin");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.bin");
    let text = path.to_str().unwrap();
    let arguments = ["fetch", &url, text, "--allow-http", "--limit-rate", "4MB"];
    let mut killed = 0;
    for millis in (20..600).step_by(30) {
        let mut child = command();
        let child = child.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = child.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(millis));
        child.kill().unwrap();
        child.wait().unwrap();
        match fs::read(&path) {
            // It was faster.
            Ok(found) => {
                assert!(found == **bytes);
                fs::remove_file(&path).unwrap();
            }
            Err(_) => killed += 1,
        }
    }
    assert!(killed > 0);
    zt(["fetch", &url, text, "--allow-http"]).exits(0);
    assert!(fs::read(&path).unwrap() == **bytes);
    assert_eq!(names_in(dir.path()), ["m.bin"]);
}

#[test]
fn a_seal_decides_which_files_come_and_what_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (model, seal) = (at("model"), at("m.seal"));
    fs::create_dir(&model).unwrap();
    let weights = content(5000);
    fs::write(dir.path().join("model/m.bin"), &**weights).unwrap();
    fs::write(dir.path().join("model/config.json"), "{}").unwrap();
    zt(["seal", &model, "-o", &seal]).exits(0);

    // A folder of a web server, which lists nothing.
    let site = Server::with("m.bin", Arc::clone(&weights));
    site.put("config.json", b"{}".to_vec());
    let options = ["--seal", &seal, "--allow-http"];
    zt(["fetch", &site.url(""), &at("got")].into_iter().chain(options)).exits(0);
    zt(["verify", &at("got"), "--seal", &seal]).exits(0);
    let mut wrong = weights.to_vec();
    wrong[1234] ^= 1;
    site.put("m.bin", wrong);
    let run = zt(["fetch", &site.url("m.bin"), &at("one")].into_iter().chain(options)).exits(1);
    assert!(run.err.contains("error[seal-mismatch]"), "{}", run.err);
    assert!(run.err.contains("leaf 0 of m.bin: bytes 0..5000 differ"), "{}", run.err);
    site.put("m.bin", vec![0; 4999]);
    let run = zt(["fetch", &site.url("m.bin"), &at("one")].into_iter().chain(options)).exits(1);
    assert!(run.err.contains("has 4999 bytes, and the seal has 5000"), "{}", run.err);
    assert!(!dir.path().join("one").exists());
    let run = zt(["fetch", &site.url("x.bin"), &at("one")].into_iter().chain(options)).exits(2);
    assert!(run.err.contains("the seal has no file x.bin"), "{}", run.err);

    // A repository that has lost a file.
    let hub = Server::redirecting(&site);
    let commit = "ab".repeat(20);
    let listed = r#"{"rfilename": "config.json"}, {"rfilename": "README.md"}"#;
    hub.put("main", format!(r#"{{"sha": "{commit}", "siblings": [{listed}]}}"#).into_bytes());
    let mut command = command();
    command.env("HF_ENDPOINT", format!("http://127.0.0.1:{}", hub.port));
    let run = common::run(command.args(["fetch", "hf:o/m", &at("hub")]).args(options)).exits(1);
    assert!(run.err.contains("has no file m.bin, and the seal has it"), "{}", run.err);
    assert!(!dir.path().join("hub").exists());
}
