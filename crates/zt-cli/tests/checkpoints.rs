//! Folders that trainers leave: checkpoints of torch.distributed.checkpoint.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::fs;
use std::path::Path;

use common::{Run, command, names_in, run};
use tempfile::{TempDir, tempdir};

/// `zt` in a folder.
fn zt_in(folder: &Path, arguments: &[&str]) -> Run {
    run(command().current_dir(folder).args(arguments))
}

/// A copy of a checkpoint of the corpus, as `step` in a folder.
fn step(checkpoint: &str) -> TempDir {
    let dir = tempdir().unwrap();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/corpus/dcp");
    fs::create_dir(dir.path().join("step")).unwrap();
    for name in names_in(&corpus.join(checkpoint)) {
        let from = corpus.join(checkpoint).join(&name);
        fs::copy(from, dir.path().join("step").join(&name)).unwrap();
    }
    dir
}

#[test]
fn a_folder_is_one_checkpoint_and_so_is_its_metadata() {
    let dir = step("rows");
    let list = zt_in(dir.path(), &["ls", "--json", "step"]).exits(0).json();
    assert_eq!(list["kind"], "dcp");
    assert_eq!(list["objects"][0]["shape"], serde_json::json!([4, 2]));
    assert_eq!(list["warnings"][0]["code"], "not-tensor");
    let below = zt_in(dir.path(), &["ls", "--json", "-r", "."]).exits(0);
    assert_eq!(below.json().as_array().unwrap().len(), 1);
    let values: Vec<u8> = (0..8u8).flat_map(|at| f32::from(at).to_le_bytes()).collect();
    for input in ["step", "step/.metadata"] {
        assert_eq!(zt_in(dir.path(), &["cat", input, "w"]).exits(0).out, values);
    }
    zt_in(dir.path(), &["verify", "step"]).exits(0);
    let part = zt_in(dir.path(), &["ls", "step/__1_0.distcp"]).exits(3);
    assert!(part.err.contains("open its folder"), "{}", part.err);
}

#[test]
fn a_checkpoint_becomes_a_set_of_the_same_tensors() {
    let dir = step("mesh");
    let split = ["split", "step", "-o", "model", "--max-shard-size", "4KB", "--to", "safetensors"];
    zt_in(dir.path(), &split).exits(0);
    let index = "model/step.safetensors.index.json";
    assert!(dir.path().join(index).is_file());
    // The set has `format: pt`, as loaders of safetensors ask for.
    zt_in(dir.path(), &["diff", "--only-values", "step", index]).exits(0);
    zt_in(dir.path(), &["convert", "step", "step/whole.zt"]).exits(0);
    zt_in(dir.path(), &["diff", "step/.metadata", "step/whole.zt"]).exits(0);
    // An input is never replaced.
    zt_in(dir.path(), &["convert", "-f", "step/.metadata", "step/__0_0.distcp"]).exits(2);
}

#[test]
fn slices_in_safetensors_files_are_whole_tensors_together() {
    let dir = step("safetensors");
    let [first, second] =
        [1, 2].map(|no| format!("step/shard-0000{no}-model-00001-of-00001.safetensors"));
    let list = zt_in(dir.path(), &["ls", "--json", "-r", "."]).exits(0).json();
    assert_eq!(list.as_array().unwrap().len(), 1);
    let step = std::path::Path::new(".").join("step");
    assert_eq!(list[0]["file"], step.to_str().unwrap());
    assert_eq!(list[0]["objects"][0]["shape"], serde_json::json!([4, 2]));
    // One file alone is a part.
    let part = zt_in(dir.path(), &["ls", "--json", &second]).exits(0).json();
    assert_eq!(part["warnings"][0]["code"], "slices");
    assert_eq!(part["objects"][0]["shape"], serde_json::json!([2, 2]));
    zt_in(dir.path(), &["convert", &first, "part.zt"]).exits(5);
    zt_in(dir.path(), &["merge", &second, &first, "whole.safetensors"]).exits(0);
    zt_in(dir.path(), &["diff", "step", "whole.safetensors"]).exits(0);
    let keys = zt_in(dir.path(), &["meta", "get", "--json", "whole.safetensors"]).exits(0).text();
    assert!(!keys.contains("DCP"), "{keys}");
    zt_in(dir.path(), &["average", &first, "whole.safetensors", &second, "mean.zt"]).exits(0);
    zt_in(dir.path(), &["diff", "--only-values", "mean.zt", "whole.safetensors"]).exits(0);
    zt_in(dir.path(), &["split", "step", "-o", "set", "--to", "zt"]).exits(0);
    zt_in(dir.path(), &["diff", "step", "set/step.zt"]).exits(0);
    // The second file alone has a gap before its rows.
    fs::remove_file(dir.path().join(&first)).unwrap();
    let run = zt_in(dir.path(), &["verify", "step"]).exits(1);
    assert!(run.err.contains("a gap: no slice has the element at [0, 0]"), "{}", run.err);
}

#[test]
fn a_missing_file_is_named_and_the_tensors_of_others_read() {
    let dir = step("fsdp2");
    fs::remove_file(dir.path().join("step/__1_0.distcp")).unwrap();
    let run = zt_in(dir.path(), &["verify", "step"]).exits(1);
    assert!(run.err.contains("__1_0.distcp"), "{}", run.err);
    let list = zt_in(dir.path(), &["ls", "--json", "step"]).json();
    let objects = list["objects"].as_array().unwrap();
    let is_sound = |name: &str| {
        let mut objects = objects.iter();
        let object = objects.find(|object| object["name"] == name).unwrap();
        object["fault"].is_null()
    };
    assert!(!is_sound("model.0.weight"));
    // The only row is of the first process.
    assert!(is_sound("model.1.weight"));
    zt_in(dir.path(), &["convert", "step", "out.zt"]).exits(1);
}

/// A rank whose file is not there is named, where a user looks first.
#[test]
fn ls_names_the_file_of_a_missing_rank() {
    let dir = tempfile::tempdir().unwrap();
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let corpus = corpus.join("../../conformance/corpus/dcp/fsdp2");
    for name in [".metadata", "__0_0.distcp"] {
        std::fs::copy(corpus.join(name), dir.path().join(name)).unwrap();
    }
    let run = zt!["ls", dir.path()].exits(0);
    assert!(run.err.contains("\"__1_0.distcp\" is missing"), "{}", run.err);
}
