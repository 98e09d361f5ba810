//! Folders of models: `verify` of a folder, and `index`.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::fs;
use std::path::Path;

use common::{command, keys, names_in, of_floats, run, sample};
use serde_json::Value;
use tempfile::tempdir;

/// A set of shards of safetensors with the stem `m`; the number of its shards.
fn set(folder: &Path) -> usize {
    let dir = tempdir().unwrap();
    let model = sample(dir.path());
    let mut command = command();
    let options = ["--max-shard-size=8", "--to=safetensors", "--lossy", "--name=m"];
    run(command.arg("split").arg(model).args(options).arg("-o").arg(folder)).exits(0);
    names_in(folder).len() - 1
}

fn codes(document: &Value) -> Vec<&str> {
    let findings = document["findings"].as_array();
    let findings = findings.into_iter().flatten();
    findings.map(|it| it["code"].as_str().unwrap()).collect()
}

#[test]
fn verify_of_a_folder_reports_what_does_not_fit_together() {
    let dir = tempdir().unwrap();
    set(dir.path());
    let sound = zt!["verify", "--json", dir.path()].exits(0).json();
    assert!(sound.get("findings").is_none(), "{sound}");

    // A consolidated file of the same tensors: a warning, and a problem to --strict.
    let index = dir.path().join("m.safetensors.index.json");
    let stray = dir.path().join("old.safetensors");
    zt!["convert", index, stray].exits(0);
    let list = zt!["verify", "--json", dir.path()].exits(0).json();
    let found: Vec<&Value> = list.as_array().unwrap().iter().collect();
    let with_findings: Vec<_> = found.iter().filter(|it| !codes(it).is_empty()).collect();
    assert_eq!(with_findings.len(), 1, "{list}");
    let document = with_findings[0];
    assert_eq!((codes(document), &document["ok"]), (vec!["stray-file"], &true.into()));
    let finding = &document["findings"][0];
    assert_eq!(keys(finding), ["advice", "code", "files", "message", "problem"]);
    assert_eq!(finding["files"], serde_json::json!([stray.to_str().unwrap()]));
    let text = zt!["verify", dir.path()].exits(0);
    assert!(text.err.contains("warning[stray-file]: "), "{}", text.err);
    let text = zt!["verify", "--strict", dir.path()].exits(1);
    assert!(text.err.contains("error[stray-file]: "), "{}", text.err);
    // A file is not its folder.
    zt!["verify", "--strict", stray].exits(0);

    // A gap is a problem, and folders below are looked at with -r.
    fs::remove_file(&stray).unwrap();
    fs::remove_file(&index).unwrap();
    fs::remove_file(dir.path().join(&names_in(dir.path())[0])).unwrap();
    let parent = tempdir().unwrap();
    fs::rename(dir.path(), parent.path().join("below")).unwrap();
    fs::create_dir(dir.path()).unwrap();
    of_floats(&parent.path().join("a.zt"), &[1.0]);
    let run = zt!["verify", "--json", "-r", parent.path()].exits(1);
    let list = run.json();
    let list = list.as_array().unwrap();
    let all: Vec<&str> = list.iter().flat_map(codes).collect();
    assert_eq!(all, ["missing-shards"], "{list:?}");
    let of_gap = list.iter().find(|it| !codes(it).is_empty()).unwrap();
    assert_eq!(of_gap["ok"], false);
}

#[test]
fn tensors_that_two_shards_have_are_compared() {
    let dir = tempdir().unwrap();
    let shards = [1, 2].map(|at| dir.path().join(format!("m-0000{at}-of-00002.zt")));
    for (shard, value) in shards.iter().zip([1.0, 2.0]) {
        of_floats(shard, &[value]);
    }
    let values = zt!["verify", dir.path()].exits(1).err;
    assert!(values.contains("with other values"), "{values}");
    let headers = zt!["verify", "--headers", dir.path()].exits(1).err;
    assert!(headers.contains("were not compared"), "{headers}");
    fs::copy(&shards[0], &shards[1]).unwrap();
    let values = zt!["verify", dir.path()].exits(1).err;
    assert!(values.contains("with equal values"), "{values}");
}

#[test]
fn headers_are_verified_without_values() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("a.zt");
    of_floats(&path, &[1.0; 2000]);
    let mut bytes = fs::read(&path).unwrap();
    bytes[200] ^= 1;
    fs::write(&path, bytes).unwrap();
    zt!["verify", path].exits(1);
    let document = zt!["verify", "--headers", "--json", path].exits(0).json();
    assert_eq!((&document["bytes"], &document["objects"]), (&0.into(), &1.into()));
    let faulty = common::faulty(dir.path());
    let document = zt!["verify", "--headers", "--json", faulty].exits(1).json();
    assert_eq!(document["problems"][0]["object"], "bad");
}

#[test]
fn index_names_the_shard_of_each_tensor() {
    let dir = tempdir().unwrap();
    let shards = set(dir.path());
    let path = dir.path().join("m.safetensors.index.json");
    let split = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    zt!["verify", "--strict", dir.path()].exits(1);
    let document = zt!["index", "--json", dir.path()].exits(0).json();
    let expected = ["folder", "index", "left_out", "shards", "tensors", "total_size"];
    assert_eq!(keys(&document), expected);
    assert_eq!(
        (&document["shards"], &document["index"]),
        (&shards.into(), &path.to_str().unwrap().into())
    );
    // As `split` wrote it.
    assert_eq!(fs::read(&path).unwrap(), split);
    zt!["verify", "--strict", dir.path()].exits(0);
    let error = zt!["index", "--json", dir.path()].exits(2).error_code();
    assert_eq!(error, "misuse");
    zt!["index", "--force", dir.path()].exits(0);
    zt!["index", dir.path().join("none")].exits(4);
}

#[cfg(unix)]
#[test]
fn the_name_of_a_file_in_a_cache_of_the_hub_is_compared() {
    let dir = tempdir().unwrap();
    let source = dir.path().join("x.safetensors");
    common::of_zeros(&source, 16);
    let bytes = fs::read(&source).unwrap();
    let digest = zt::DigestAlgorithm::Sha256.digest(&bytes).unwrap().to_string();
    let (blobs, snapshot) = (dir.path().join("blobs"), dir.path().join("snapshots/1"));
    fs::create_dir_all(&snapshot).unwrap();
    fs::create_dir(&blobs).unwrap();
    let blob = blobs.join(digest.strip_prefix("sha256:").unwrap());
    fs::write(&blob, &bytes).unwrap();
    let link = snapshot.join("model.safetensors");
    std::os::unix::fs::symlink(&blob, &link).unwrap();
    zt!["verify", "--strict", link].exits(0);
    let mut bytes = bytes;
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&blob, bytes).unwrap();
    let document = zt!["verify", "--json", link].exits(1).json();
    assert_eq!(document["problems"][0]["code"], "digest-mismatch");
    assert_eq!(document["problems"][0]["file"], link.to_str().unwrap());
    zt!["verify", "--headers", link].exits(0);
}
