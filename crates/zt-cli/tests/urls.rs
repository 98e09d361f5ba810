//! URLs where commands take paths.
#![cfg(feature = "remote")]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;
#[path = "../../zt-remote/tests/common/mod.rs"]
mod server;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use common::{Run, command, damaged, hears, run, sample};
use server::{Fault, Server};

fn corpus(name: &str) -> PathBuf {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/corpus/foreign");
    Path::new(corpus).join(name)
}

/// Runs a command that may connect without encryption.
fn zt(arguments: &[&str]) -> Run {
    run(command().args(arguments).arg("--allow-http"))
}

fn url_of(path: &Path) -> String {
    format!("file://{}", path.display())
}

/// The content hash of a path or a URL.
#[track_caller]
fn content(file: &str) -> String {
    let document = zt(&["hash", file, "--json"]).exits(0).json();
    document["content"].as_str().unwrap().to_owned()
}

#[test]
fn every_command_that_reads_takes_a_url() {
    let dir = tempfile::tempdir().unwrap();
    let path = sample(dir.path());
    let local = path.to_str().unwrap();
    let server = Server::with("model.zt", fs::read(&path).unwrap());
    let url = &server.url("model.zt");
    for command in [
        vec!["ls"],
        vec!["info"],
        vec!["verify"],
        vec!["hash"],
        vec!["show", "w"],
        vec!["cat", "w"],
    ] {
        let of = |file| {
            let mut all = vec![command[0], file];
            all.extend(&command[1..]);
            let text = String::from_utf8_lossy(&zt(&all).exits(0).out).into_owned();
            text.replace(file, "FILE")
        };
        assert_eq!(of(url), of(local), "{command:?}");
    }
    zt(&["diff", url, local, "--values"]).exits(0);
    let out = |name: &str| dir.path().join(name).display().to_string();
    for command in ["convert", "merge"] {
        let out = &out(&format!("{command}.zt"));
        zt(&[command, url, out]).exits(0);
        assert_eq!(content(out), content(local), "{command}");
    }
    zt(&["extract", url, "w", "-o", &out("w.npy")]).exits(0);
    zt(&["split", url, "--max-shard-size", "8", "-o", &out("set")]).exits(0);
    assert_eq!(content(&out("set/model.zt.index.json")), content(local));
    // The folder of the input is no folder of this machine.
    zt(&["split", url]).exits(2);
}

#[test]
fn a_file_is_written_to_a_store_complete_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let path = sample(dir.path());
    let store = tempfile::tempdir().unwrap();
    let out = &url_of(&store.path().join("out.zt"));
    let input = &url_of(&path);
    let bad = url_of(&damaged(dir.path()));
    zt(&["convert", &bad, out, "--dtype", "f16"]).exits(1);
    assert_eq!(store.path().read_dir().unwrap().count(), 0);
    zt(&["convert", input, out]).exits(0);
    assert_eq!(content(out), content(input));

    let refused = zt(&["convert", input, out, "--zstd"]).exits(2);
    assert!(refused.err.contains("--force replaces it"), "{}", refused.err);
    zt(&["convert", input, out, "--zstd", "--force"]).exits(0);
    assert_eq!(content(out), content(input));
    zt(&["convert", out, out, "--force"]).exits(2);
    assert_eq!(store.path().read_dir().unwrap().count(), 1);
}

#[test]
fn commands_that_need_a_file_of_this_machine_refuse_urls() {
    let dir = tempfile::tempdir().unwrap();
    let path = sample(dir.path());
    let (url, local) = (&*url_of(&path), path.to_str().unwrap());
    let before = fs::read(&path).unwrap();
    for arguments in [
        &["append", url, local][..],
        &["rm", url, "w"],
        &["rename", url, "w", "v"],
        &["meta", "set", url, "key", "1"],
        &["compact", url],
        &["repair", url],
        &["bench", url],
        &["extract", local, "w", "-o", url],
    ] {
        let mut command = command();
        let refused = run(command.args(arguments));
        assert!(matches!(refused.code, Some(2 | 5)), "{arguments:?} {}", refused.err);
        assert!(refused.err.contains(url), "{arguments:?} {}", refused.err);
    }
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_set_opens_by_the_url_of_its_index() {
    let dir = tempfile::tempdir().unwrap();
    let path = sample(dir.path());
    let folder = dir.path().join("set");
    zt(&["split", path.to_str().unwrap(), "--max-shard-size", "8", "-o", folder.to_str().unwrap()])
        .exits(0);
    let server = Server::new();
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        server.put(name, fs::read(&path).unwrap());
    }
    let index = &server.url("model.zt.index.json");
    assert_eq!(content(index), content(path.to_str().unwrap()));
    // A set with a missing shard says which.
    let text = fs::read_to_string(folder.join("model.zt.index.json")).unwrap();
    server.put("other.json", text.replace("00001-of", "00001-off").into_bytes());
    let missing = zt(&["ls", &server.url("other.json")]).exits(3);
    assert!(missing.err.contains("model-00001-off"), "{}", missing.err);
}

#[test]
fn any_part_of_a_gguf_set_opens_the_set_by_its_url() {
    let folder = corpus("../../data/gguf-set");
    let server = Server::new();
    let parts = [1, 2, 3].map(|no| format!("m-0000{no}-of-00003.gguf"));
    for part in &parts[..2] {
        server.put(part, fs::read(folder.join(part)).unwrap());
    }
    let missing = zt(&["ls", &server.url(&parts[1])]).exits(3);
    assert!(missing.err.contains(&parts[2]), "{}", missing.err);
    server.put(&parts[2], fs::read(folder.join(&parts[2])).unwrap());
    let local = content(folder.join(&parts[0]).to_str().unwrap());
    for part in &parts {
        assert_eq!(content(&server.url(part)), local, "{part}");
    }
}

#[test]
fn a_checkpoint_opens_by_the_url_of_its_folder_and_of_its_metadata() {
    let folder = corpus("../dcp/rows");
    let server = Server::new();
    for name in [".metadata", "__1_0.distcp"] {
        server.put(name, fs::read(folder.join(name)).unwrap());
    }
    let missing = zt(&["verify", &server.url("step")]).exits(1);
    assert!(missing.err.contains("__0_0.distcp"), "{}", missing.err);
    let items = fs::read(folder.join("__0_0.distcp")).unwrap();
    server.put("__0_0.distcp", items);
    for url in ["step/.metadata", "step", "step/"].map(|name| server.url(name)) {
        assert_eq!(content(&url), content(folder.to_str().unwrap()), "{url}");
    }
    // A folder without one, and no folder at all.
    let empty = Server::new();
    let none = zt(&["ls", &empty.url("")]).exits(2);
    assert!(none.err.contains("ends with a folder"), "{}", none.err);
    let none = zt(&["ls", &empty.url("stop")]).exits(4);
    assert!(!none.err.contains(".metadata"), "{}", none.err);
}

#[test]
fn a_checkpoint_becomes_a_set_of_safetensors_on_a_store() {
    let folder = corpus("../dcp/mesh");
    let server = Server::new();
    for name in common::names_in(&folder) {
        server.put(&name, fs::read(folder.join(&name)).unwrap());
    }
    let local = content(folder.to_str().unwrap());
    // The checkpoint may be on the store, too. The set is named after its folder.
    for (input, stem) in [(folder.to_str().unwrap(), "mesh"), ("s3://models/step/", "step")] {
        let to = ["--to", "safetensors", "--max-shard-size", "4KB"];
        let split = [&["split", input, "-o", "s3://models/set/"][..], &to].concat();
        on_s3(&server, &split).exits(0);
        let names = server.names().into_iter();
        let names: Vec<String> = names.filter(|name| name.starts_with(stem)).collect();
        let index = format!("{stem}.safetensors.index.json");
        assert!(names.len() > 2 && names.contains(&index), "{names:?}");
        let index = format!("s3://models/set/{index}");
        let hash = on_s3(&server, &["hash", &index, "--json"]).exits(0).json();
        assert_eq!(hash["content"], *local);
    }
}

/// A command for which the server is a store of S3.
fn s3_command(server: &Server, arguments: &[&str]) -> Command {
    let endpoint = format!("http://127.0.0.1:{}", server.port);
    let mut command = command();
    command.args(arguments).envs([
        ("AWS_ENDPOINT_URL", &*endpoint),
        ("AWS_ACCESS_KEY_ID", "tests"),
        ("AWS_SECRET_ACCESS_KEY", "tests"),
        ("AWS_REGION", "us-east-1"),
    ]);
    command
}

fn on_s3(server: &Server, arguments: &[&str]) -> Run {
    run(&mut s3_command(server, arguments))
}

#[test]
fn a_set_is_written_to_a_store_with_its_index_last() {
    let dir = tempfile::tempdir().unwrap();
    let path = sample(dir.path());
    let local = path.to_str().unwrap();
    let server = Server::new();
    let split = |more: &[&str]| {
        let all = ["split", local, "-o", "s3://models/set/", "--max-shard-size"];
        on_s3(&server, &[&all, more].concat())
    };
    let index = "s3://models/set/model.zt.index.json";
    let content_there = || {
        let document = on_s3(&server, &["hash", index, "--json"]).exits(0).json();
        document["content"].as_str().unwrap().to_owned()
    };
    let document = split(&["30", "--json"]).exits(0).json();
    assert_eq!(document["index"], index);
    let shards = document["shards"].as_array().unwrap().len();
    let first = server.names();
    assert!(shards > 2 && first.len() == shards + 1, "{first:?}");
    assert_eq!(server.puts().last().unwrap(), "model.zt.index.json");
    assert_eq!(content_there(), content(local));

    let refused = split(&["30"]).exits(2);
    assert!(refused.err.contains("error[overwrite]"), "{}", refused.err);
    assert!(refused.err.contains("--force"), "{}", refused.err);
    assert_eq!(server.names(), first);

    let document = split(&["30", "--force", "--json"]).exits(0).json();
    assert_eq!(document["removed"].as_array().unwrap().len(), shards);
    assert!(server.names()[0].starts_with("model-g2-00001-of-"), "{:?}", server.names());
    assert_eq!(server.names().len(), first.len());
    assert_eq!(content_there(), content(local));

    // The set replaces itself by one of other shards, and then by a file.
    let again = ["split", index, "-o", "s3://models/set", "--name", "model"];
    on_s3(&server, &[&again[..], &["--max-shard-size", "60"]].concat()).exits(2);
    let forced = [&again[..], &["--max-shard-size", "60", "--force"]].concat();
    on_s3(&server, &forced).exits(0);
    assert_eq!(content_there(), content(local));
    let fewer = [&again[..], &["--force", "--exclude", "w"]].concat();
    on_s3(&server, &fewer).exits(2);
    on_s3(&server, &[&again[..], &["--force"]].concat()).exits(0);
    assert_eq!(server.names(), ["model.zt"]);
    assert_eq!(server.uploads(), 0);
}

#[test]
fn a_set_that_cannot_be_written_leaves_nothing_at_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let path = sample(dir.path());
    let local = path.to_str().unwrap();
    let split = |server: &Server, file: &str| {
        let all = ["split", file, "-o", "s3://models/set", "--max-shard-size", "30"];
        on_s3(server, &all)
    };
    let server = Server::new();
    split(&server, local).exits(0);
    let (requests, all) = (server.requests().len(), server.names());
    for number in 0..requests {
        let server = Server::new();
        server.fail(number, Fault::Status(403));
        split(&server, local).exits(4);
        assert!(server.names().is_empty(), "{number}: {:?}", server.names());
        // The answer is lost, and the request had its effect.
        let server = Server::new();
        server.fail(number, Fault::Lost);
        split(&server, local).exits(0);
        assert_eq!(server.names(), all, "{number}");
    }
    // Some shards are written before the damaged one is read.
    let server = Server::new();
    split(&server, damaged(dir.path()).to_str().unwrap()).exits(1);
    assert!(server.names().is_empty(), "{:?}", server.names());
    assert_eq!(server.uploads(), 0);
    let web = server.url("");
    zt(&["split", local, "-o", &web]).exits(5);
}

#[test]
fn external_data_of_onnx_is_below_the_url_of_the_model() {
    let server = Server::new();
    for name in ["external.onnx", "external.bin"] {
        server.put(name, fs::read(corpus("onnx").join(name)).unwrap());
    }
    let local = corpus("onnx/external.onnx");
    assert_eq!(content(&server.url("external.onnx")), content(local.to_str().unwrap()));
}

#[test]
fn the_sources_of_hdf5_and_the_shards_of_ztensor_2_are_below_the_url_of_the_file() {
    for (file, beside) in [
        ("../hdf5/latest_virtual.h5", Some("../hdf5/parts")),
        ("../hdf5/earliest_virtual.h5", Some("../hdf5/parts")),
        ("../hdf5/paged_file.h5", None),
        ("h5/latest_groups.h5", None),
        ("zt2/encoded.zt2", None),
        ("zt2/sharded.zt2", Some("zt2")),
    ] {
        let local = corpus(file);
        let name = local.file_name().unwrap().to_str().unwrap();
        let bytes = fs::read(&local).unwrap();
        let server = Server::with(name, bytes);
        let url = &server.url(name);
        // The hashes of all objects, and the faults of some.
        let objects = |file: &str| zt(&["hash", file, "--json"]).json()["objects"].clone();
        let without = objects(url);
        if let Some(beside) = beside {
            for entry in corpus(beside).read_dir().unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_str().unwrap();
                server.put(name, fs::read(&path).unwrap());
            }
        }
        let found = objects(url);
        assert_eq!(found, objects(local.to_str().unwrap()), "{file}");
        assert_eq!(found == without, beside.is_none(), "{file}");
        // The first request has all of a file this short.
        let before = server.requests().len();
        zt(&["ls", url]).exits(0);
        let requests = server.requests().len() - before;
        assert!(requests == 1 || beside.is_some(), "{file}: {requests}");
    }
}

#[test]
fn a_file_of_a_stranger_names_no_other_address() {
    let elsewhere = Server::with("x.zt", Vec::new());
    let server = Server::new();
    let urls = [
        elsewhere.url("x.zt"),
        "../x.zt".into(),
        "/models/x.zt".into(),
        "..%2Fx.zt".into(),
        "x.zt?y".into(),
        "file:///etc/passwd".into(),
        "\\\\host\\x.zt".into(),
    ];
    for name in urls {
        let index = serde_json::json!({ "weight_map": { "w": name } }).to_string();
        server.put("i.json", index.into_bytes());
        let code = zt(&["ls", &server.url("i.json")]).code;
        assert_eq!(code, Some(3), "{name}");
    }
    for name in ["bad_external_absolute", "bad_external_traversal"] {
        let bytes = fs::read(corpus("onnx").join(format!("{name}.onnx"))).unwrap();
        server.put("m.onnx", bytes);
        let refused = zt(&["verify", &server.url("m.onnx")]).exits(1);
        assert!(refused.err.contains("error[path]"), "{}", refused.err);
    }
    assert!(elsewhere.requests().is_empty());
}

#[test]
fn secrets_are_in_no_message() {
    let dir = tempfile::tempdir().unwrap();
    let path = sample(dir.path());
    let server = Server::with("model.zt", fs::read(&path).unwrap());
    let out = dir.path().join("out.zt").display().to_string();
    let with_secrets = |name: &str| {
        let url = server.url(name).replace("://", "://user:SECRET@");
        format!("{url}?signature=SECRET")
    };
    let (good, missing) = (&with_secrets("model.zt"), &with_secrets("missing.zt"));
    let s3 = "s3://AKIASECRET:SECRET@bucket/model.zt?token=SECRET";
    for arguments in [
        &["ls", good][..],
        &["info", good],
        &["verify", good],
        &["hash", good, "--sums"],
        &["diff", good, path.to_str().unwrap()],
        &["convert", good, &out, "--force"],
        &["convert", good, good],
        &["convert", "--to", "zt", good, missing],
        &["ls", missing],
        &["rm", good, "w"],
        &["extract", good, "w", &format!("--output={s3}")],
        &["ls", good, "--no-such-option"],
        &["show", good, "no-such-name"],
        &["split", s3, "--to"],
        // A slash that is not encoded, and URLs without their slashes.
        &["ls", "s3://AKIASECRET:ab/SECRET@b/x"],
        &["append", "s3://AKIASECRET:ab/SECRET@b/x", good],
        &["repair", "gs://AKIASECRET:SECRET/SECRET@b/x"],
        &["ls", "s3:/user:SECRET@b/x"],
        &["verify", "https:user:SECRET@h/x"],
        &["bench", s3],
    ] {
        for json in [None, Some("--json")] {
            let result = run(command().args(arguments).args(json).arg("--allow-http"));
            let text = String::from_utf8_lossy(&result.out);
            assert!(!text.contains("SECRET"), "{arguments:?}: {text}");
            assert!(!result.err.contains("SECRET"), "{arguments:?}: {}", result.err);
        }
    }
    zt(&["ls", good]).exits(0);
}

#[test]
fn requests_and_bytes_are_printed_on_request() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = fs::read(sample(dir.path())).unwrap();
    let len = bytes.len();
    let server = Server::with("model.zt", bytes);
    let listed = zt(&["ls", &server.url("model.zt"), "--requests"]).exits(0);
    let size = format!("{:.1} KiB received", len as f64 / 1024.0);
    assert!(listed.err.contains("1 request; "), "{}", listed.err);
    assert!(listed.err.contains(&size), "{size}: {}", listed.err);
}

/// Writes 16 MiB of f32 in four tensors as safetensors.
fn sixteen_mebibytes(path: &Path) {
    let zt = path.with_extension("raw.zt");
    let mut writer = zt::Writer::create(&zt).unwrap();
    let mut state = 1u32;
    for name in ["a", "b", "c", "d"] {
        let values = (0..1 << 20).map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f32::from_bits(0x3f80_0000 | state >> 9)
        });
        let values: Vec<f32> = values.collect();
        let dense = zt::Dense::from_slice(&[1024, 1024], &values).unwrap();
        writer.add(name, &dense).unwrap();
    }
    writer.finish().unwrap();
    zt_ok(&["convert", zt.to_str().unwrap(), path.to_str().unwrap()]);
}

#[track_caller]
fn zt_ok(arguments: &[&str]) {
    run(command().args(arguments)).exits(0);
}

#[test]
fn every_command_reads_each_byte_once_and_in_long_requests() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let plain = at("m.safetensors");
    sixteen_mebibytes(Path::new(&plain));
    for (name, option) in [
        ("m.gguf", None),
        ("m.npz", None),
        ("raw.zt", None),
        ("zstd.zt", Some("--zstd")),
        ("planes.zt", Some("--planes")),
    ] {
        let out = at(name);
        zt_ok(&[&["convert", &plain, &*out][..], option.as_slice()].concat());
    }
    let server = Server::new();
    let mut lens = std::collections::HashMap::new();
    for name in ["m.safetensors", "m.gguf", "m.npz", "raw.zt", "zstd.zt", "planes.zt"] {
        let bytes = fs::read(at(name)).unwrap();
        lens.insert(name, bytes.len() as u64);
        server.put(name, bytes);
    }
    let out = |name: &str| at(&format!("out.{name}"));
    let folder = out("folder");
    for (name, command, rest) in [
        ("m.safetensors", "hash", vec![]),
        ("m.safetensors", "verify", vec![]),
        ("m.safetensors", "stats", vec![]),
        ("m.safetensors", "extract", vec!["-o", &folder]),
        ("m.safetensors", "diff", vec![&*plain, "--values"]),
        ("m.safetensors", "quantize", vec![&out("zt"), "-f"]),
        ("m.safetensors", "convert", vec![&out("zt"), "-f"]),
        ("m.safetensors", "convert", vec![&out("gguf"), "-f"]),
        ("m.safetensors", "convert", vec![&out("npz"), "-f"]),
        ("m.safetensors", "convert", vec![&out("safetensors"), "-f"]),
        ("m.safetensors", "convert", vec![&out("zt"), "-f", "--planes"]),
        ("m.safetensors", "convert", vec![&out("zt"), "-f", "--zstd"]),
        ("m.safetensors", "convert", vec![&out("zt"), "-f", "--dtype", "f16"]),
        ("m.safetensors", "merge", vec![&out("zt"), "-f"]),
        ("m.safetensors", "split", vec!["-o", &out("set"), "--max-shard-size", "8MiB"]),
        ("m.gguf", "convert", vec![&out("zt"), "-f"]),
        ("m.npz", "convert", vec![&out("zt"), "-f"]),
        ("raw.zt", "convert", vec![&out("zt"), "-f"]),
        ("zstd.zt", "convert", vec![&out("zt"), "-f"]),
        ("zstd.zt", "convert", vec![&out("npz"), "-f"]),
        ("planes.zt", "hash", vec![]),
        ("planes.zt", "convert", vec![&out("zt"), "-f"]),
        ("planes.zt", "convert", vec![&out("safetensors"), "-f"]),
    ] {
        let (requests, bytes) = (server.requests().len(), server.bytes());
        let url = server.url(name);
        zt(&[&[command, &*url], &rest[..]].concat()).exits(0);
        let requests = server.requests().len() - requests;
        let bytes = server.bytes() - bytes;
        let what = format!("{command} {name} {rest:?}: {requests} requests, {bytes} bytes");
        // In an archive, each array has a header of its own.
        let most = if name == "m.npz" { 9 } else { 6 };
        assert!(requests <= most, "{what}");
        // A `.zt` file is known by its end, and the page before its first component is not read.
        let unread = if name.ends_with(".zt") { 4096 } else { 0 };
        assert_eq!(bytes + unread, lens[name], "{what}");
    }
}

#[test]
fn an_archive_opens_with_its_end_and_then_all_headers_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let mut writer = zt::Writer::create(at("m.zt")).unwrap();
    for layer in 0..32 {
        let values = zt::Dense::from_slice(&[32, 1024], &[0.5f32; 32 << 10]).unwrap();
        writer.add(&format!("layers.{layer}"), &values).unwrap();
    }
    writer.finish().unwrap();
    zt_ok(&["convert", &at("m.zt"), &at("m.npz")]);
    let server = Server::with("m.npz", fs::read(at("m.npz")).unwrap());
    let url = server.url("m.npz");
    let remote = zt_remote::Remote::open(&url, &server::options().end_first(["npz"])).unwrap();
    // The first request has the end of the archive, and the last array.
    server.hold(31);
    let folder = remote.clone();
    let options = zt_convert::InputOptions::new();
    let opened = zt_convert::Kinds::builtin().open_in(remote, &url, &folder, options);
    assert_eq!(opened.unwrap().file().len(), 32);
    assert!(server.is_released(), "{:?}", server.requests());
    assert_eq!(server.requests().len(), 32);
}

#[test]
fn a_sample_of_a_large_object_takes_four_requests() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("large.safetensors");
    sixteen_mebibytes(&path);
    let server = Server::with("large.safetensors", fs::read(&path).unwrap());
    let url = server.url("large.safetensors");
    let objects = zt(&["ls", &url, "--json"]).exits(0).json();
    let objects = objects["objects"].as_array().unwrap().len();
    let (requests, bytes) = (server.requests().len(), server.bytes());
    let page = dir.path().join("page.html").display().to_string();
    zt(&["report", "--sample", &url, "-o", &page]).exits(0);
    let requests = server.requests().len() - requests;
    assert!(requests <= 1 + 4 * objects, "{requests} for {objects}");
    let sampled = objects as u64 * (256 << 10);
    assert!(server.bytes() - bytes <= bytes + sampled);
}

#[test]
fn a_list_of_hashes_may_lie_at_a_url_and_name_urls() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::with("model.zt", fs::read(sample(dir.path())).unwrap());
    let list = zt(&["hash", "--sums", &server.url("model.zt")]).exits(0).out;
    server.put("SUMS", [b"\xef\xbb\xbf".as_slice(), &list].concat());
    let checked = zt(&["hash", "--check", &server.url("SUMS")]).exits(0);
    assert!(String::from_utf8(checked.out).unwrap().ends_with("model.zt: OK\n"));
    let missing = zt(&["hash", "--check", &server.url("OTHERS")]).exits(4);
    assert!(missing.err.contains("OTHERS"), "{}", missing.err);
}

#[test]
fn connections_are_encrypted_unless_the_user_allows_others() {
    let server = Server::with("model.zt", Vec::new());
    let refused = run(command().args(["ls", &server.url("model.zt"), "--json"])).exits(2);
    assert_eq!(refused.error_code(), "path");
    assert!(server.requests().is_empty());
}

const SIGINT: i32 = 2;

/// Sends the signal of Ctrl-C, and says when.
fn interrupt(child: &Child) -> Instant {
    let since = Instant::now();
    let id = child.id().to_string();
    let mut kill = Command::new("kill");
    kill.args(["-s", "INT", &id]).status().unwrap();
    since
}

#[test]
fn a_signal_ends_a_transfer_at_once() {
    if !cfg!(unix) || !hears(SIGINT) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("large.zt");
    common::of_floats(&path, &vec![1.0; 4 << 20]);
    let store = tempfile::tempdir().unwrap();
    let server = Server::with("large.zt", fs::read(&path).unwrap());
    // Two requests open the file. The values would come in a minute.
    for number in 2..20 {
        server.fail(number, Fault::Late(60_000));
    }
    let out = url_of(&store.path().join("out.zt"));
    let mut command = command();
    command.args(["convert", "--allow-http", &server.url("large.zt"), &out]);
    let mut child = command.spawn().unwrap();
    while server.requests().len() < 3 {
        std::thread::sleep(Duration::from_millis(10));
    }
    let since = interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(since.elapsed() < Duration::from_secs(20));
    assert_eq!(store.path().read_dir().unwrap().count(), 0);
}

#[test]
fn a_signal_ends_an_upload_at_once_and_leaves_nothing() {
    /// Parts of 8 MiB that are under way.
    const PARTS: usize = 3;
    if !cfg!(unix) || !hears(SIGINT) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("large.zt");
    common::of_floats(&path, &vec![1.0; PARTS << 21]);
    let set = &["-o", "s3://models/set", "--max-shard-size", "1GB"];
    let path = path.to_str().unwrap();
    for arguments in
        [&["convert", path, "s3://models/out.zt"][..], &[&["split", path][..], set].concat()]
    {
        // Another program may take the time of the first attempt.
        let took = (0..3).map(|_| {
            let server = Server::new();
            // Two requests begin the upload. The answers to its parts would come in a minute.
            let first = 2 + usize::from(arguments[0] == "split") * 2;
            for number in first..first + PARTS {
                server.fail(number, Fault::Late(60_000));
            }
            let mut child = s3_command(&server, arguments).spawn().unwrap();
            while server.requests().len() < first + PARTS {
                std::thread::sleep(Duration::from_millis(10));
            }
            assert_eq!(server.uploads(), 1);
            let since = interrupt(&child);
            assert_eq!(child.wait().unwrap().code(), Some(130));
            let took = since.elapsed();
            assert!(server.names().is_empty(), "{:?}", server.names());
            assert_eq!(server.uploads(), 0);
            took
        });
        let mut took = took;
        assert!(took.any(|took| took < Duration::from_secs(1)));
    }
}

/// A program that waits for the answer to the request of this number gets a signal, and then the answer.
fn interrupted_at(server: &Server, number: usize, arguments: &[&str]) -> Option<i32> {
    server.pause_at(number);
    let mut child = s3_command(server, arguments);
    child.stdout(std::process::Stdio::null());
    child.stderr(std::process::Stdio::null());
    let mut child = child.spawn().unwrap();
    while !server.is_paused() {
        std::thread::sleep(Duration::from_millis(2));
    }
    let since = interrupt(&child);
    // The program looks for a signal 20 times a second.
    while since.elapsed() < Duration::from_millis(120) {
        std::thread::sleep(Duration::from_millis(10));
    }
    server.resume();
    child.wait().unwrap().code()
}

#[test]
fn a_signal_at_any_request_leaves_all_or_nothing() {
    if !cfg!(unix) || !hears(SIGINT) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let small = sample(dir.path());
    let large = dir.path().join("large.zt");
    common::of_floats(&large, &vec![1.0; 3 << 20]);
    let (small, large) = (small.to_str().unwrap(), large.to_str().unwrap());
    let set = ["-o", "s3://models/set", "--max-shard-size", "30"];
    for arguments in [
        &["convert", small, "s3://models/out.zt"][..],
        &["convert", large, "s3://models/out.zt"],
        &["merge", small, "s3://models/out.zt"],
        &[&["split", small][..], &set].concat(),
    ] {
        let calm = Server::new();
        on_s3(&calm, arguments).exits(0);
        let (requests, all) = (calm.requests().len(), calm.names());
        for number in 0..requests {
            let server = Server::new();
            let code = interrupted_at(&server, number, arguments);
            let what = format!("{arguments:?}, request {number}: {code:?} {:?}", server.names());
            match code {
                // The last request of all was under way, or no other could be stopped.
                Some(0) => assert_eq!(server.names(), all, "{what}"),
                Some(130) => assert!(server.names().is_empty(), "{what}"),
                _ => panic!("{what}"),
            }
            assert_eq!(server.uploads(), 0, "{what}");
        }
    }
}

/// One flipped byte costs the request that opens the URL, and a range of one leaf.
#[test]
fn a_repair_by_url_fetches_the_wrong_leaf_alone() {
    let dir = tempfile::tempdir().unwrap();
    let out = |name: &str| dir.path().join(name).display().to_string();
    let (path, seal) = (out("w.bin"), out("w.seal"));
    let right: Vec<u8> = (0..5_000_000u32).map(|at| (at / 7 % 251) as u8).collect();
    fs::write(&path, &right).unwrap();
    zt(&["seal", &path, &seal]).exits(0);
    let mut wrong = right.clone();
    wrong[3_500_000] ^= 1;
    for (place, requests) in [("w.bin", 2), ("", 2)] {
        fs::write(&path, &wrong).unwrap();
        let server = Server::with("w.bin", right.clone());
        let url = server.url(place);
        let document =
            zt(&["repair", &path, "--seal", &seal, "--from", &url, "--json"]).exits(0).json();
        assert_eq!((&document["changed"], &document["fetched"]), (&true.into(), &(1 << 20).into()));
        assert!(fs::read(&path).unwrap() == right);
        assert_eq!(server.requests().len(), requests, "{place}");
        assert_eq!(server.bytes(), (256 << 10) + (1 << 20), "{place}");
    }
    // The server has the wrong byte, too; it has another length; it has no such file.
    for served in [wrong.clone(), right[..4_000_000].to_vec(), Vec::new()] {
        fs::write(&path, &wrong).unwrap();
        let server = Server::with("w.bin", served.clone());
        let run = zt(&["repair", &path, "--seal", &seal, "--from", &server.url("w.bin")]).exits(1);
        assert!(run.err.contains("the source of the repair is wrong, too"), "{}", run.err);
        assert!(fs::read(&path).unwrap() == wrong);
        let none = Server::with("other.bin", served);
        zt(&["repair", &path, "--seal", &seal, "--from", &none.url("w.bin")]).exits(4);
        let verified = zt(&["verify", &server.url("w.bin"), "--seal", &seal]).exits(1);
        assert!(verified.err.contains("seal-mismatch"), "{}", verified.err);
    }
    let server = Server::with("w.bin", right.clone());
    zt(&["verify", &server.url("w.bin"), "--seal", &seal]).exits(0);
    zt(&["verify", &server.url(""), "--seal", &seal]).exits(0);
    // A URL and the file have the same seal.
    zt(&["seal", &server.url("w.bin"), &out("url.seal")]).exits(0);
    assert_eq!(fs::read(out("url.seal")).unwrap(), fs::read(&seal).unwrap());
}

/// A tensor, or rows of one, are proved by a few bytes of a URL.
#[test]
fn a_proof_by_url_reads_the_tensor_or_the_leaves_of_the_rows() {
    let keys = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/data/signature");
    let (secret, public) = (format!("{keys}/ed25519.ssh"), format!("{keys}/ed25519.pub"));
    let dir = tempfile::tempdir().unwrap();
    let out = |name: &str| dir.path().join(name).display().to_string();
    let (path, seal, signature) = (out("m.safetensors"), out("m.seal"), out("m.sig"));
    common::of_sizes(&dir.path().join("m.safetensors"), &[("b", 100), ("c", 20 << 20)]);
    let mut right = fs::read(&path).unwrap();
    for (at, byte) in (0u32..).zip(&mut right).skip(1000) {
        *byte = (at / 7 % 251) as u8;
    }
    fs::write(&path, &right).unwrap();
    zt(&["seal", &path, &seal]).exits(0);
    zt(&["sign", &seal, &signature, "--key", &secret]).exits(0);
    let (b, rows) = (out("b.proof"), out("rows.proof"));
    zt(&["prove", &seal, "b", &b]).exits(0);
    zt(&["prove", &seal, "c", &rows, "--rows", "9000000:9000010", "--of", &path]).exits(0);
    let verify = |bytes: &[u8], place: &str, proof: &str| {
        let server = Server::with("m.safetensors", bytes.to_vec());
        let url = server.url(place);
        let arguments =
            ["verify", &url, "--signature", &signature, "--key", &public, "--proof", proof];
        (zt(&arguments), server.bytes())
    };
    for (proof, most) in [(&b, 256 << 10), (&rows, (3 << 20) + (256 << 10))] {
        assert!(fs::metadata(proof).unwrap().len() <= 2048);
        let (run, bytes) = verify(&right, "m.safetensors", proof);
        run.exits(0);
        assert!(bytes <= most, "{bytes}");
    }
    verify(&right, "", &rows).0.exits(0);
    let in_b = right.len() - (20 << 20) - 50;
    for (at, proof, code) in [(in_b, &b, 1), (9_000_500, &b, 0), (9_000_500, &rows, 1)] {
        let mut wrong = right.clone();
        wrong[at] ^= 1;
        let run = verify(&wrong, "m.safetensors", proof).0.exits(code);
        assert!(code == 0 || run.err.contains("error[signature-mismatch]"), "{}", run.err);
    }
}
