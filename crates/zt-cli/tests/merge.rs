//! Several inputs in one file: nothing is lost without a word.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::path::Path;

use common::{Run, command, run};
use serde_json::json;
use tempfile::{TempDir, tempdir};
use zt::{Dense, File, Writer};

fn write(path: &Path, objects: &[(&str, f32)]) {
    let mut writer = Writer::create(path).unwrap();
    for (name, value) in objects {
        let values = [*value];
        let dense = Dense::from_slice(&[1], &values).unwrap();
        writer.add(name, &dense).unwrap();
    }
    writer.finish().unwrap();
}

/// A folder with three files. `bias` is equal in the first two.
fn folder() -> TempDir {
    let dir = tempdir().unwrap();
    let write = |name: &str, objects: &[(&str, f32)]| write(&dir.path().join(name), objects);
    write("base.zt", &[("w", 1.0), ("bias", 2.0)]);
    write("adapter.zt", &[("a", 3.0), ("bias", 2.0)]);
    write("tuned.zt", &[("w", 4.0)]);
    dir
}

fn zt(folder: &TempDir, arguments: &str) -> Run {
    run(command().current_dir(folder.path()).args(arguments.split(' ')))
}

/// The names of a file, each with its value.
fn objects(folder: &TempDir, file: &str) -> Vec<(String, f32)> {
    let file = File::open(folder.path().join(file)).unwrap();
    let entries = file.entries().into_iter();
    let objects = entries.map(|entry| {
        let values = entry.tensor().unwrap().to_vec::<f32>().unwrap();
        (entry.name().to_owned(), values.first().copied().unwrap())
    });
    objects.collect()
}

#[track_caller]
fn has(folder: &TempDir, file: &str, expected: &[(&str, f32)]) {
    let found = objects(folder, file);
    let found: Vec<_> = found.iter().map(|(name, it)| (name.as_str(), *it)).collect();
    assert_eq!(found, expected);
}

#[test]
fn what_was_excluded_is_said_of_each_input() {
    let dir = folder();
    let both = "merge base.zt adapter.zt out.zt --force --exclude bias";
    let text = zt(&dir, both).exits(0).text();
    let expected = "; excluded: 1 of base.zt (bias), 1 of adapter.zt (bias)\n";
    assert!(text.ends_with(expected), "{text}");
    let document = zt(&dir, &format!("{both} --json")).exits(0).json();
    let excluded = json!([
        {"input": "base.zt", "names": ["bias"]},
        {"input": "adapter.zt", "names": ["bias"]},
    ]);
    assert_eq!(document["excluded"], excluded);
    let stdout = zt(&dir, "convert base.zt - --include w").exits(0);
    let expected = "note: excluded: 1 of base.zt (bias)";
    assert!(stdout.err.contains(expected), "{}", stdout.err);
    let split = zt(&dir, "split base.zt -o shards --exclude w --json");
    let excluded = json!([{"input": "base.zt", "names": ["w"]}]);
    assert_eq!(split.exits(0).json()["excluded"], excluded);
}

#[test]
fn patterns_and_rules_can_be_for_one_input() {
    let dir = folder();
    zt(&dir, "merge base.zt adapter.zt out.zt --exclude 2:bi*").exits(0);
    has(&dir, "out.zt", &[("w", 1.0), ("bias", 2.0), ("a", 3.0)]);
    zt(&dir, "merge base.zt adapter.zt in.zt --include 1:w").exits(0);
    has(&dir, "in.zt", &[("w", 1.0), ("a", 3.0), ("bias", 2.0)]);
    zt(&dir, "merge base.zt tuned.zt re.zt --rename 2:s/^/tuned./").exits(0);
    has(&dir, "re.zt", &[("w", 1.0), ("bias", 2.0), ("tuned.w", 4.0)]);
    zt(&dir, "append base.zt adapter.zt --exclude 1:bias").exits(0);
    has(&dir, "base.zt", &[("w", 1.0), ("bias", 2.0), ("a", 3.0)]);

    for number in ["0:w", "3:w"] {
        let arguments = format!("merge base.zt adapter.zt no.zt --exclude {number}");
        let refused = zt(&dir, &arguments).exits(2);
        assert!(refused.err.contains("number of inputs is 2"), "{}", refused.err);
    }
    // Other commands have patterns only.
    write(&dir.path().join("numbered.zt"), &[("0:w", 1.0), ("b", 1.0)]);
    let listed = zt(&dir, "ls numbered.zt --include 0:* --json").exits(0).json();
    assert_eq!(listed["objects"].as_array().unwrap().len(), 1);
    zt(&dir, "convert numbered.zt one.zt --include [0]:*").exits(0);
    has(&dir, "one.zt", &[("0:w", 1.0)]);
    zt(&dir, "ls numbered.zt --rename 1:s/b/c/").exits(2);
}

#[test]
fn a_duplicate_is_refused_with_the_remedies_and_taken_as_the_option_says() {
    let dir = folder();
    let all = "merge base.zt adapter.zt tuned.zt out.zt --force";
    let refused = zt(&dir, all).exits(2);
    for part in [
        "error[duplicate-name]: out.zt: bias: ",
        "in base.zt and in adapter.zt",
        "--on-duplicate",
        "--exclude N:NAME",
    ] {
        assert!(refused.err.contains(part), "{}", refused.err);
    }
    let run = zt(&dir, &format!("{all} --on-duplicate last --json")).exits(0);
    let duplicates = json!([{"input": "base.zt", "names": ["bias", "w"]}]);
    assert_eq!(run.json()["duplicates"], duplicates);
    has(&dir, "out.zt", &[("w", 4.0), ("bias", 2.0), ("a", 3.0)]);
    let text = zt(&dir, &format!("{all} --on-duplicate first")).exits(0).text();
    let expected = "; duplicates left out: 1 of adapter.zt (bias), 1 of tuned.zt (w)\n";
    assert!(text.ends_with(expected), "{text}");
    has(&dir, "out.zt", &[("w", 1.0), ("bias", 2.0), ("a", 3.0)]);
    zt(&dir, "merge base.zt adapter.zt same.zt --on-duplicate same").exits(0);
    let refused = zt(&dir, &format!("{all} --on-duplicate same")).exits(2);
    assert!(refused.err.contains("objects differ: in base.zt"), "{}", refused.err);
}

#[test]
fn append_takes_or_replaces_the_object_of_the_file() {
    let dir = folder();
    let append = "append base.zt tuned.zt adapter.zt --json --on-duplicate";
    let run = zt(&dir, &format!("{append} first")).exits(0).json();
    assert_eq!(run["added"], json!(["a"]));
    let duplicates = json!([
        {"input": "tuned.zt", "names": ["w"]},
        {"input": "adapter.zt", "names": ["bias"]},
    ]);
    assert_eq!(run["duplicates"], duplicates);
    let run = zt(&dir, &format!("{append} last")).exits(0).json();
    assert_eq!(run["added"], json!(["w", "a", "bias"]));
    let replaced = json!([{"input": "base.zt", "names": ["w", "a", "bias"]}]);
    assert_eq!(run["duplicates"], replaced);
    has(&dir, "base.zt", &[("w", 4.0), ("a", 3.0), ("bias", 2.0)]);
}

#[test]
fn append_names_what_it_adds_of_a_file_that_is_given_twice() {
    let dir = folder();
    let run = zt(&dir, "append base.zt tuned.zt tuned.zt --json --on-duplicate last");
    assert_eq!(run.exits(0).json()["added"], json!(["w"]));
}

#[test]
fn two_objects_with_one_new_name_are_both_named() {
    let dir = folder();
    for command in [
        "convert base.zt out.zt --rename s/.*/same/",
        "rename base.zt --rule s/.*/same/",
        "rename base.zt --rule s/^w/bias/",
    ] {
        let refused = zt(&dir, command).exits(2);
        for part in ["both \"", "\"w\"", "\"bias\"", "get this name"] {
            assert!(refused.err.contains(part), "{}", refused.err);
        }
    }
}

#[test]
fn a_small_size_without_a_unit_is_noted() {
    let dir = folder();
    let split = |size: &str| {
        let arguments = format!("split base.zt --force -o shards --max-shard-size {size}");
        zt(&dir, &arguments).exits(0).err
    };
    let note = split("10");
    assert!(note.contains("10 is a number of bytes"), "{note}");
    for size in ["10B", "1000000", "1KB"] {
        let err = split(size);
        assert!(!err.contains("note"), "{err}");
    }
}

/// A model, an adapter of peft, and what torch makes of them: `conformance/data/arithmetic/arithmetic.py`.
fn arithmetic(name: &str) -> String {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/data/arithmetic");
    data.join(name).to_str().unwrap().to_owned()
}

#[test]
fn an_adapter_is_merged_as_torch_does_it() {
    let dir = tempdir().unwrap();
    let [base, adapter] = ["base.safetensors", "adapter"].map(arithmetic);
    for (scale, expected) in [("", "merged.safetensors"), (" --scale 0.3", "scaled.safetensors")] {
        let merge = format!("merge {base} out.safetensors --force --lora {adapter}{scale}");
        zt(&dir, &merge).exits(0);
        zt(&dir, &format!("diff out.safetensors {}", arithmetic(expected))).exits(0);
    }
    let file = format!("{adapter}/adapter_model.safetensors");
    let merge = format!("merge {base} planes.zt --planes --lora {file}");
    zt(&dir, &merge).exits(0);
    zt(&dir, &format!("diff planes.zt {}", arithmetic("merged.safetensors"))).exits(0);

    let excluded = format!("merge {base} no.zt --lora {adapter} --exclude conv.weight");
    let refused = zt(&dir, &excluded).exits(2);
    assert!(refused.err.contains("error[not-found]"), "{}", refused.err);
    assert!(refused.err.contains("conv.lora_A.weight"), "{}", refused.err);
    zt(&dir, &format!("merge {base} no.zt --lora {base} --scale 1")).exits(5);
    zt(&dir, &format!("merge {base} {file} no.zt --lora {adapter}")).exits(2);
    zt(&dir, &format!("merge {base} no.zt --scale 1")).exits(2);
    zt(&dir, &format!("merge {base} {file} --force --lora {file}")).exits(2);
    assert!(!dir.path().join("no.zt").exists());
}

#[test]
fn checkpoints_are_averaged_as_torch_does_it() {
    let dir = tempdir().unwrap();
    let inputs = ["base", "second", "third"].map(|name| arithmetic(&format!("{name}.safetensors")));
    let inputs = inputs.join(" ");
    zt(&dir, &format!("average {inputs} mean.zt --json")).exits(0).json();
    zt(&dir, &format!("diff mean.zt {}", arithmetic("mean.safetensors"))).exits(0);
    zt(&dir, &format!("average {inputs} weighted.zt --weights 1,2,0.5")).exits(0);
    zt(&dir, &format!("diff weighted.zt {}", arithmetic("weighted.safetensors"))).exits(0);
    for weights in ["1,2", "1,-2,1", "1,nan,1", "1,a,1"] {
        zt(&dir, &format!("average {inputs} no.zt --weights {weights}")).exits(2);
    }
    let refused = zt(&dir, &format!("average {inputs} no.zt --exclude 2:step")).exits(2);
    assert!(refused.err.contains("second.safetensors: step: missing"), "{}", refused.err);
    assert!(!dir.path().join("no.zt").exists());
}

#[test]
fn an_adapter_beside_weights_names_the_option_that_adds_it() {
    let dir = tempdir().unwrap();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/data/arithmetic");
    let [base, adapter] = ["base.safetensors", "adapter"].map(|name| data.join(name));
    let out = dir.path().join("out.safetensors");
    for command in ["merge", "convert"] {
        let refused = zt![command, base, adapter, out].exits(2).err;
        assert!(refused.contains("--lora ADAPTER") && !out.exists(), "{refused}");
    }
}
