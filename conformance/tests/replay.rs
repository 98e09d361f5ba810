//! What the fuzz targets have found, and the corpus, through the targets' bodies.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking, and its files are small"
)]

use std::fs;
use std::panic;
use std::path::PathBuf;

use zt_conformance::fuzz::{BODIES, Body, assert_same};
use zt_conformance::{corpus, foreign, inputs};

fn replay(named: &[(String, Vec<u8>)], (target, body): Body) {
    for (name, bytes) in named {
        let result = panic::catch_unwind(|| body(bytes));
        assert!(result.is_ok(), "{target} fails on {name}");
    }
}

#[test]
fn every_find_stays_found() {
    let finds = corpus::files_below(&corpus::folder().join("fuzz-regressions"));
    let finds: Vec<_> = finds
        .into_iter()
        .filter(|path| path.extension().is_none_or(|ending| ending != "md"))
        .map(|path| (path.display().to_string(), fs::read(&path).unwrap()))
        .collect();
    assert!(!finds.is_empty());
    for body in BODIES {
        replay(&finds, body);
    }
}

/// Each reaches something that no other does.
#[test]
fn every_input_that_was_kept_goes_through_its_target() {
    let mut count = 0;
    for body in BODIES {
        let kept = inputs::of(body.0);
        replay(&kept, body);
        count += kept.len();
    }
    assert!(count >= 2000, "{count}");
}

#[test]
fn every_file_of_the_corpus_goes_through_every_target() {
    let samples = corpus::samples();
    let files: Vec<_> = samples.into_iter().map(|sample| (sample.name, sample.bytes)).collect();
    for body in BODIES {
        replay(&files, body);
    }
}

/// Under the limits that users have: files of the corpus are made for those.
#[test]
fn the_naive_reader_agrees_about_every_file_of_the_corpus() {
    let mut wrong = Vec::new();
    for sample in corpus::samples() {
        let same = || assert_same(&sample.bytes, zt::Limits::default());
        if panic::catch_unwind(same).is_err() {
            wrong.push(sample.name);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Manifests are what the target `manifest` is for; files hold them.
#[test]
fn every_manifest_of_the_corpus_goes_through_the_manifest_target() {
    let manifests: Vec<_> = corpus::samples()
        .into_iter()
        .filter_map(|sample| {
            let source = zt::Memory::new(&sample.bytes);
            let footer = zt::container::Footer::locate(&source, &zt::Limits::default()).ok()?;
            let span = footer.manifest();
            let manifest = sample.bytes.get(span.offset() as usize..span.end() as usize)?;
            Some((sample.name, manifest.to_vec()))
        })
        .collect();
    assert!(manifests.len() > 300);
    let body = BODIES.into_iter().find(|(name, _)| *name == "manifest");
    replay(&manifests, body.unwrap());
}

/// The files of the corpus torn, cut, damaged, and within another one.
#[test]
fn what_was_a_file_goes_through_the_repair_target() {
    let mut files = Vec::new();
    for sample in corpus::samples() {
        let (name, bytes) = (sample.name, sample.bytes);
        if bytes.len() > 1 << 16 {
            continue;
        }
        let torn = [&bytes[..], &[0; 40], &bytes[bytes.len() / 2..]].concat();
        files.push((format!("{name} torn"), torn));
        let within = [&bytes[..bytes.len().min(64)], &bytes].concat();
        files.push((format!("{name} within"), within));
        for at in (0..bytes.len()).rev().step_by(97).take(20) {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            files.push((format!("{name} changed at {at}"), changed));
            files.push((format!("{name} cut at {at}"), bytes[..at].to_vec()));
        }
    }
    assert!(files.len() > 5000);
    let body = BODIES.into_iter().find(|(name, _)| *name == "repair");
    replay(&files, body.unwrap());
}

/// Every file of the kinds that have a target of their own, broken ones included.
#[test]
fn every_foreign_file_goes_through_the_target_of_its_kind() {
    for (kind, target) in
        [("gguf", "gguf"), ("pt", "pytorch"), ("safetensors", "safetensors"), ("zt2", "zt2")]
    {
        let files = foreign::files(kind);
        assert!(files.len() > 13);
        for target in [target, "views"] {
            let body = BODIES.into_iter().find(|(name, _)| *name == target);
            replay(&files, body.unwrap());
        }
    }
}

/// Every file of a kind, the broken ones included, and each of them cut or with a byte changed.
#[test]
fn cut_and_changed_files_go_through_the_targets_of_their_kinds() {
    let kinds = [
        ("hdf5", "h5", "h5"),
        ("npy", "npy", "npy"),
        ("npz", "npz", "npz"),
        ("onnx", "onnx", "onnx"),
        ("slm1", "slm1", "slm"),
        ("squizd", "squizd", "squizd"),
    ];
    for (kind, folder, extension) in kinds {
        let body = BODIES.into_iter().find(|(name, _)| *name == kind).unwrap();
        let views = BODIES.into_iter().find(|(name, _)| *name == "views");
        let mut paths = corpus::files_below(&foreign::folder().join(folder));
        if kind == "hdf5" {
            // Those that are small: more of them is the work of the fuzzer.
            let more = corpus::files_below(&corpus::folder().join("corpus/hdf5")).into_iter();
            paths.extend(more.filter(|path| fs::metadata(path).unwrap().len() < 6 << 10));
        }
        let is_file = |path: &PathBuf| path.extension().is_some_and(|e| e == extension);
        let named = |path: PathBuf| (path.display().to_string(), fs::read(&path).unwrap());
        let mut files: Vec<_> = paths.into_iter().filter(is_file).map(named).collect();
        replay(&files, views.unwrap());
        for (name, bytes) in files.clone() {
            // A step that shares no factor with the records' lengths meets every field in some file.
            for at in (0..bytes.len()).step_by(211) {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << (at % 8);
                files.push((format!("{name} changed at {at}"), changed));
                files.push((format!("{name} cut at {at}"), bytes[..at].to_vec()));
            }
        }
        assert!(files.len() > 150, "{kind}: {}", files.len());
        replay(&files, body);
    }
}

/// Every checkpoint, whole, cut and with a byte changed. One file has the items of all processes.
#[test]
fn cut_and_changed_checkpoints_go_through_their_target() {
    let body = BODIES.into_iter().find(|(name, _)| *name == "dcp").unwrap();
    let mut files = Vec::new();
    for path in corpus::files_below(&corpus::folder().join("corpus/dcp")) {
        if !path.ends_with(".metadata") {
            continue;
        }
        let metadata = fs::read(&path).unwrap();
        let items = fs::read(path.with_file_name("__0_0.distcp")).unwrap();
        let len = (metadata.len() as u32).to_le_bytes();
        let whole = [&len[..], &metadata, &items].concat();
        let name = path.display();
        for at in (4..whole.len()).step_by(211) {
            let mut changed = whole.clone();
            changed[at] ^= 1 << (at % 8);
            files.push((format!("{name} changed at {at}"), changed));
            files.push((format!("{name} cut at {at}"), whole[..at].to_vec()));
        }
        files.push((name.to_string(), whole));
    }
    assert!(files.len() > 1000, "{}", files.len());
    replay(&files, body);
}
