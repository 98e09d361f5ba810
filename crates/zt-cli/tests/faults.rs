//! Each fault of a web server, with each command that reads a URL: the same result as without it, or an error with
//! its code and exit code, and no output.
#![cfg(feature = "remote")]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;
#[path = "../../zt-remote/tests/common/mod.rs"]
mod server;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use common::{command, run};
use server::{Fault, Server};

const NAME: &str = "m.safetensors";

/// Commands; `URL` is the file, `OUT` a folder for what is written, and `LOCAL` the same file on this machine.
const COMMANDS: &[&str] = &[
    "show URL a",
    "cat URL b",
    "stats URL",
    "hash URL",
    "verify URL",
    "diff URL LOCAL",
    "extract URL -o OUT/set",
    "convert URL OUT/out.zt",
    "convert URL OUT/out.gguf",
    "merge URL OUT/out.npz",
    "quantize URL OUT/out.zt",
    "split URL -o OUT/set --max-shard-size 300KB",
];

/// What a fault does.
#[derive(Debug, Clone, Copy)]
enum Effect {
    /// Of one request, nothing that shows: the request is made again.
    Same,
    /// Of this request and all later ones, an error with this code.
    Error(&'static str),
    /// The same, except that the first request opens whatever is there.
    ErrorLater(&'static str),
}

const FAULTS: &[(Fault, Effect)] = &[
    (Fault::Status(500), Effect::Same),
    (Fault::Status(503), Effect::Same),
    (Fault::Hangup, Effect::Same),
    (Fault::Lost, Effect::Same),
    (Fault::Chunked, Effect::Same),
    (Fault::Status(403), Effect::Error("io")),
    (Fault::Status(404), Effect::Error("io")),
    (Fault::OtherRange, Effect::Error("io")),
    (Fault::OtherTag, Effect::ErrorLater("changed")),
    (Fault::Replaced, Effect::ErrorLater("changed")),
    (Fault::ReplacedWithoutTag, Effect::ErrorLater("changed")),
    (Fault::Grown, Effect::ErrorLater("changed")),
];

/// All that shows of a run.
struct Result {
    code: Option<i32>,
    out: String,
    files: BTreeMap<String, Vec<u8>>,
    err: String,
}

/// Runs a command on the object of this server.
fn result(server: &Server, arguments: &str, local: &Path) -> Result {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    fs::create_dir(&out).unwrap();
    let (url, out_text) = (server.url(NAME), out.to_str().unwrap());
    let words = arguments.split(' ').map(|word| {
        let word = word.replace("URL", &url).replace("OUT", out_text);
        word.replace("LOCAL", local.to_str().unwrap())
    });
    let run = run(command().args(words).args(["--allow-http", "--timeout", "1"]));
    let plain = |text: &str| text.replace(&url, "URL").replace(out_text, "OUT");
    let mut files = BTreeMap::new();
    let mut folders = vec![out.clone()];
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(&out).unwrap().display().to_string();
                files.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    Result {
        code: run.code,
        out: plain(&String::from_utf8_lossy(&run.out)),
        files,
        err: plain(&run.err),
    }
}

/// Checks an error: its code, its exit code, and that nothing was written.
fn expect_error(what: &str, found: &Result, code: &str) {
    assert_eq!(found.code, Some(4), "{what}: {}", found.err);
    let code = format!("error[{code}]: ");
    assert!(found.err.contains(&code), "{what}: {}", found.err);
    assert!(found.files.is_empty(), "{what}: {:?}", found.files.keys());
}

/// A file whose values need several requests.
fn model(folder: &Path) -> (std::path::PathBuf, Arc<Vec<u8>>) {
    let path = folder.join("values.zt");
    let mut writer = zt::Writer::create(&path).unwrap();
    for (name, from) in [("a", 0u16), ("b", 1), ("c", 2)] {
        let values: Vec<f32> = (0..1 << 16).map(|at| f32::from(from) + at as f32).collect();
        let dense = zt::Dense::from_slice(&[256, 256], &values).unwrap();
        writer.add(name, &dense).unwrap();
    }
    writer.finish().unwrap();
    let local = folder.join(NAME);
    run(command().arg("convert").args([&path, &local])).exits(0);
    let bytes = Arc::new(fs::read(&local).unwrap());
    (local, bytes)
}

/// Runs `check` for each item, some of them at once: they wait for the next attempt most of the time.
fn for_each<T: Sync>(items: &[T], check: impl Fn(&T) + Sync) {
    const AT_ONCE: usize = 8;
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    check(item);
                }
            });
        }
    });
}

#[test]
fn a_command_has_the_same_result_or_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let (local, bytes) = model(dir.path());
    for_each(COMMANDS, |arguments| {
        let calm = Server::with(NAME, Arc::clone(&bytes));
        let expected = result(&calm, arguments, &local);
        assert_eq!(expected.code, Some(0), "{arguments}: {}", expected.err);
        let requests = calm.requests().len();
        for (fault, effect) in FAULTS {
            // The first request, and the last one: it is for values.
            for number in [0, requests - 1] {
                let server = Server::with(NAME, Arc::clone(&bytes));
                let again = if matches!(effect, Effect::Same) { 1 } else { 20 };
                for number in number..number + again {
                    server.fail(number, *fault);
                }
                let found = result(&server, arguments, &local);
                let what = format!("{arguments}: {fault:?} at {number}");
                match effect {
                    Effect::Same => {
                        let same = (&found.code, &found.out, &found.files);
                        assert!(
                            same == (&expected.code, &expected.out, &expected.files),
                            "{what}: {}",
                            found.err
                        );
                    }
                    Effect::ErrorLater(_) if number == 0 => {}
                    Effect::Error(code) | Effect::ErrorLater(code) => {
                        expect_error(&what, &found, code)
                    }
                }
            }
        }
    });
}

/// A body that ends early is asked for again, and an answer that stays cut is an error.
#[test]
fn a_cut_answer_is_never_a_value() {
    let dir = tempfile::tempdir().unwrap();
    let (local, bytes) = model(dir.path());
    for_each(COMMANDS, |arguments| {
        let calm = Server::with(NAME, Arc::clone(&bytes));
        let expected = result(&calm, arguments, &local);
        for (fault, number) in
            [(Fault::Cut, 0), (Fault::Cut, 1), (Fault::Short, 0), (Fault::Short, 1)]
        {
            let server = Server::with(NAME, Arc::clone(&bytes));
            server.fail(number, fault);
            let found = result(&server, arguments, &local);
            let what = format!("{arguments}: {fault:?} at {number}");
            if found.code == Some(0) {
                assert!((&found.out, &found.files) == (&expected.out, &expected.files), "{what}");
            } else {
                expect_error(&what, &found, "io");
            }
        }
    });
}

#[test]
fn a_command_follows_a_redirect_and_does_not_wait_for_a_silent_server() {
    let dir = tempfile::tempdir().unwrap();
    let (local, bytes) = model(dir.path());
    for_each(COMMANDS, |arguments| {
        let there = Server::with(NAME, Arc::clone(&bytes));
        let expected = result(&there, arguments, &local);
        let here = Server::new();
        for number in 0..20 {
            here.fail(number, Fault::Redirect(there.port));
        }
        let found = result(&here, arguments, &local);
        assert_eq!(
            (found.code, &found.out),
            (Some(0), &expected.out),
            "{arguments}: {}",
            found.err
        );
        assert!(found.files == expected.files, "{arguments}");

        let silent = Server::with(NAME, Arc::clone(&bytes));
        for number in 1..20 {
            silent.fail(number, Fault::Silent);
        }
        let found = result(&silent, arguments, &local);
        expect_error(arguments, &found, "io");
        assert!(found.err.contains("no answer within"), "{arguments}: {}", found.err);
    });
}
