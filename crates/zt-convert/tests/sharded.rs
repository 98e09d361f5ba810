//! Sets of safetensors files.
#![allow(clippy::unwrap_used, reason = "tests")]
#![cfg(feature = "safetensors")]

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use zt::{Dense, Error, File, Memory, OpenOptions, Result, VerifyOptions, Writer};
use zt_convert::{ConvertOptions, Input, InputOptions, Kinds, SAFETENSORS};

/// A folder with an index of these `(tensor, shard)`, and shards with these `(tensor, value)`.
fn set(map: &[(&str, &str)], shards: &[(&str, &[(&str, f32)])]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    for (name, tensors) in shards {
        fs::write(folder.path().join(name), shard(tensors, name)).unwrap();
    }
    let map: serde_json::Map<_, _> =
        map.iter().map(|(tensor, shard)| ((*tensor).to_owned(), (*shard).into())).collect();
    let index = serde_json::json!({"metadata": {}, "weight_map": map});
    let path = folder.path().join("model.safetensors.index.json");
    fs::write(&path, index.to_string()).unwrap();
    (folder, path)
}

fn shard(tensors: &[(&str, f32)], name: &str) -> Vec<u8> {
    let mut ours = Vec::new();
    let mut writer = Writer::new(&mut ours).unwrap();
    for (name, value) in tensors {
        writer.add(name, &Dense::from_slice(&[1], &[*value]).unwrap()).unwrap();
    }
    writer.set_attributes([("format", "pt"), ("shard", name)].into()).unwrap();
    writer.finish().unwrap();
    let mut bytes = Vec::new();
    let input = Input::from(File::from_bytes(ours).unwrap());
    Kinds::builtin().convert(&[input], &mut bytes, &ConvertOptions::new(SAFETENSORS)).unwrap();
    bytes
}

fn value(file: &File, name: &str) -> f32 {
    file.tensor(name).unwrap().values::<f32>().unwrap()[0]
}

fn opened(path: &Path) -> Result<File> {
    zt_convert::open(path)
}

fn refused(path: &Path, code: &str) -> Error {
    let error = opened(path).unwrap_err();
    assert_eq!(error.code(), code, "{error}");
    error
}

#[test]
fn an_index_lists_its_shards_and_another_file_lists_none() {
    let (folder, path) = set(&[("v", "b"), ("w", "a"), ("x", "b")], &[("a", &[("w", 1.0)])]);
    let expected = ["a", "b"].map(|name| folder.path().join(name));
    assert_eq!(zt_convert::shards_of(&path).unwrap().unwrap(), expected);
    assert_eq!(zt_convert::shards_of(&expected[0]).unwrap(), None);
    fs::write(&path, r#"{"weight_map": {"w": "../a"}}"#).unwrap();
    let error = zt_convert::shards_of(&path).unwrap_err();
    assert_eq!((error.code(), error.path()), ("path", Some(&*path)));
}

#[test]
fn a_set_opens_as_one_file() {
    let (_folder, path) = set(
        &[("a", "1.safetensors"), ("b", "2.safetensors")],
        &[("1.safetensors", &[("a", 1.0)]), ("2.safetensors", &[("b", 2.0)])],
    );
    let input = zt_convert::Kinds::builtin().open(&path, OpenOptions::new()).unwrap();
    let file = input.file();
    assert_eq!((file.kind(), file.len()), (SAFETENSORS, 2));
    assert_eq!((value(file, "a"), value(file, "b")), (1.0, 2.0));
    assert_eq!(input.path(), Some(path.as_path()));
    assert_eq!(input.paths().len(), 3);
    // The first value of an attribute is kept, with a warning.
    let attributes = file.attributes().unwrap().unwrap();
    assert_eq!(attributes.get("shard").unwrap().as_str(), Some("1.safetensors"));
    let codes: Vec<_> = file.warnings().iter().map(|warning| warning.code).collect();
    assert_eq!(codes, ["attribute-conflict"]);
}

#[test]
fn a_tensor_missing_from_the_index_is_kept_with_a_warning() {
    let (_folder, path) =
        set(&[("a", "1.safetensors")], &[("1.safetensors", &[("a", 1.0), ("b", 2.0)])]);
    let file = opened(&path).unwrap();
    assert_eq!(value(&file, "b"), 2.0);
    let warnings = file.warnings();
    assert_eq!((warnings[0].code, warnings[0].object.as_deref()), ("unlisted", Some("b")));
}

#[test]
fn of_two_tensors_of_one_name_the_index_decides() {
    let shards: &[(&str, &[(&str, f32)])] =
        &[("1.safetensors", &[("a", 1.0)]), ("2.safetensors", &[("a", 2.0), ("b", 3.0)])];
    let (_folder, path) = set(&[("a", "2.safetensors"), ("b", "2.safetensors")], shards);
    // The index does not name the first shard, so it is no part of the set.
    assert_eq!(value(&opened(&path).unwrap(), "a"), 2.0);

    let shards: &[(&str, &[(&str, f32)])] =
        &[("1.safetensors", &[("a", 1.0), ("c", 4.0)]), ("2.safetensors", &[("a", 2.0)])];
    let (_folder, path) = set(&[("a", "2.safetensors"), ("c", "1.safetensors")], shards);
    let file = opened(&path).unwrap();
    assert_eq!((value(&file, "a"), file.len()), (2.0, 2));
    assert!(file.warnings().iter().any(|warning| warning.code == "shadowed"));
}

/// An overlay that supersedes tensors of older shards is sound.
#[test]
fn a_conversion_follows_the_index_too() {
    let listed = [("a", "2.safetensors"), ("c", "1.safetensors")];
    let first: &[(&str, f32)] = &[("a", 1.0), ("c", 4.0), ("d", 5.0)];
    let shards = [("1.safetensors", first), ("2.safetensors", &[("a", 2.0)])];
    let (_folder, path) = set(&listed, &shards);
    let input = zt_convert::Kinds::builtin().open(&path, OpenOptions::new()).unwrap();
    let (mut bytes, options) = (Vec::new(), ConvertOptions::new(SAFETENSORS));
    let summary = Kinds::builtin().convert(&[input], &mut bytes, &options).unwrap();
    let written = zt_convert::open_source(Memory::new(bytes)).unwrap();
    assert_eq!(value(&written, "a"), 2.0);
    let warnings = summary.warnings.into_iter();
    let mut warnings: Vec<_> = warnings.map(|it| (it.code, it.object)).collect();
    warnings.sort_unstable();
    let named = |code, name: &str| (code, Some(name.to_owned()));
    let expected = [("attribute-conflict", None), named("shadowed", "a"), named("unlisted", "d")];
    assert_eq!(warnings, expected);
}

#[test]
fn attributes_of_the_index_are_kept_unless_a_shard_has_other_values() {
    let (_folder, path) = set(&[("a", "1.safetensors")], &[("1.safetensors", &[("a", 1.0)])]);
    let index = fs::read_to_string(&path).unwrap();
    let metadata = r#"{"mergekit_version": "0.0.5", "format": "pt", "total_size": 4}"#;
    fs::write(&path, index.replace(r#"{"metadata":{}"#, &format!(r#"{{"metadata":{metadata}"#)))
        .unwrap();
    let file = opened(&path).unwrap();
    let attributes = file.attributes().unwrap().unwrap();
    let keys: Vec<_> = attributes.iter().filter_map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["format", "shard", "mergekit_version"]);
    assert!(file.warnings().is_empty());

    let other = metadata.replace("pt", "tf");
    fs::write(&path, index.replace(r#"{"metadata":{}"#, &format!(r#"{{"metadata":{other}"#)))
        .unwrap();
    let file = opened(&path).unwrap();
    let attributes = file.attributes().unwrap().unwrap();
    assert_eq!(attributes.get("format").unwrap().as_str(), Some("pt"));
    assert_eq!(file.warnings()[0].code, "attribute-conflict");
}

#[test]
fn a_total_size_other_than_the_bytes_of_the_tensors_is_a_warning() {
    let (_folder, path) = set(
        &[("a", "1.safetensors"), ("b", "2.safetensors")],
        &[
            ("1.safetensors", &[("a", 1.0)]),
            // The copy of `a` is not of this set.
            ("2.safetensors", &[("a", 3.0), ("b", 2.0)]),
        ],
    );
    let index = fs::read_to_string(&path).unwrap();
    for (total, warns) in [
        ("8", false),
        ("8.0", false),
        ("12", true),
        ("0", true),
        ("null", false),
        ("\"8 B\"", false),
    ] {
        let metadata = format!(r#"{{"metadata":{{"total_size":{total}}}"#);
        fs::write(&path, index.replace(r#"{"metadata":{}"#, &metadata)).unwrap();
        let warnings = opened(&path).unwrap().warnings();
        let found = warnings.iter().find(|it| it.code == "total-size");
        assert_eq!(found.is_some(), warns, "{total}: {warnings:?}");
        let message = found.map(|it| it.message.as_str());
        assert!(message.is_none_or(|it| it.contains(total) && it.contains("have 8")));
    }
}

#[test]
fn two_unlisted_tensors_of_one_name_are_refused() {
    let (_folder, path) = set(
        &[("a", "1.safetensors"), ("b", "2.safetensors")],
        &[
            ("1.safetensors", &[("a", 1.0), ("x", 1.0)]),
            ("2.safetensors", &[("b", 2.0), ("x", 2.0)]),
        ],
    );
    assert_eq!(refused(&path, "header").object(), Some("x"));
}

#[test]
fn a_listed_tensor_or_shard_that_is_missing_is_refused() {
    let (folder, path) =
        set(&[("a", "1.safetensors"), ("b", "1.safetensors")], &[("1.safetensors", &[("a", 1.0)])]);
    assert_eq!(refused(&path, "header").object(), Some("b"));
    fs::remove_file(folder.path().join("1.safetensors")).unwrap();
    refused(&path, "path");
    fs::create_dir(folder.path().join("1.safetensors")).unwrap();
    refused(&path, "path");
}

#[test]
fn all_missing_shards_are_counted_and_the_first_are_named() {
    let map = ["1", "2", "3", "4", "5"].map(|name| (name, name));
    let (_folder, path) = set(&map, &[("2", &[("2", 1.0)])]);
    let message = refused(&path, "path").message();
    assert_eq!(
        message,
        r#"4 of 5 shards are missing: "1", "3", "4", ...; put them beside the index"#
    );
}

#[test]
fn a_broken_shard_is_named() {
    let (folder, path) = set(&[("a", "1.safetensors")], &[]);
    let shard = folder.path().join("1.safetensors");
    fs::write(&shard, b"12345678{").unwrap();
    assert_eq!(refused(&path, "header").path(), Some(shard.as_path()));
}

/// Of every fault: a cut end, an object that is cut, bytes that changed, a wrong place in the index.
#[test]
fn a_fault_of_a_set_names_the_shard() {
    let map = [("v", "a"), ("w", "b")];
    let (folder, path) = set(&map, &[("a", &[("v", 1.0)]), ("b", &[("w", 2.0)])]);
    let b = folder.path().join("b");
    let whole = fs::read(&b).unwrap();
    fs::write(&b, &whole[..whole.len() - 1]).unwrap();
    let options = InputOptions::new().truncated(true);
    let cut = Kinds::builtin().open(&path, options).unwrap();
    let report = cut.file().verify(&VerifyOptions::new()).unwrap();
    let codes: Vec<&str> = report.problems.iter().map(Error::code).collect();
    assert_eq!(codes, ["truncated", "bounds"]);
    assert!(report.problems.iter().all(|problem| problem.path() == Some(&b)));
    assert!(cut.file().warnings()[0].message.starts_with("b: truncated"));

    fs::write(&b, &whole).unwrap();
    fs::write(&path, r#"{"weight_map": {"v": "a", "w": "a", "x": "b"}}"#).unwrap();
    assert!(refused(&path, "header").to_string().ends_with("; it is in \"b\""));

    let zt = |value: f32| {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes).unwrap();
        writer.add("w", &Dense::from_slice(&[1], &[value]).unwrap()).unwrap();
        writer.finish().unwrap();
        bytes
    };
    let mut changed = zt(2.0);
    changed[64] ^= 1;
    fs::write(&b, changed).unwrap();
    fs::write(&path, r#"{"weight_map": {"w": "b"}}"#).unwrap();
    let error = opened(&path).unwrap().tensor("w").unwrap().to_vec::<f32>().unwrap_err();
    assert_eq!((error.code(), error.path()), ("digest-mismatch", Some(&*b)));
}

#[test]
fn no_shard_lies_outside_the_folder() {
    let (folder, _) = set(&[], &[("1.safetensors", &[("a", 1.0)])]);
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let absolute = folder.path().join("1.safetensors");
    let names = [
        "../1.safetensors",
        "..",
        ".",
        "",
        "..\\1.safetensors",
        "C:1",
        "x/../1",
        "./a",
        "a//b",
        "/a",
        "a\0",
        "a/",
    ];
    for name in names.into_iter().chain(absolute.to_str()) {
        let path = inner.join("model.safetensors.index.json");
        fs::write(&path, serde_json::json!({"weight_map": {"a": name}}).to_string()).unwrap();
        refused(&path, "path");
    }
}

#[cfg(unix)]
#[test]
fn shards_may_lie_in_folders_below_the_index() {
    let (folder, path) = set(&[("v", "weights/b"), ("w", "a/b/c")], &[]);
    for (name, tensor) in [("weights/b", ("v", 2.0)), ("a/b/c", ("w", 1.0))] {
        let file = folder.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, shard(&[tensor], name)).unwrap();
    }
    let file = opened(&path).unwrap();
    assert_eq!((value(&file, "v"), value(&file, "w")), (2.0, 1.0));
}

#[test]
fn links_within_the_folder_are_followed() {
    let (folder, path) = set(&[("a", "1.safetensors")], &[("blob", &[("a", 1.0)])]);
    std::os::unix::fs::symlink("blob", folder.path().join("1.safetensors")).unwrap();
    assert_eq!(value(&opened(&path).unwrap(), "a"), 1.0);
    // The folder of the link counts, not the folder of its target.
    let other = tempfile::tempdir().unwrap();
    let link = other.path().join("model.safetensors.index.json");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    refused(&link, "path");
}

/// As in a cache whose blobs were removed.
#[cfg(unix)]
#[test]
fn a_link_whose_target_is_missing_is_named_with_its_target() {
    let (folder, path) = set(&[("a", "1.safetensors")], &[]);
    let shard = folder.path().join("1.safetensors");
    std::os::unix::fs::symlink("../blobs/0123", &shard).unwrap();
    let said = |error: Error| assert!(error.to_string().contains("../blobs/0123"), "{error}");
    said(refused(&path, "path"));
    said(refused(&shard, "io"));
    let missing = refused(&folder.path().join("none"), "io");
    assert!(!missing.to_string().contains("link"), "{missing}");
}

#[cfg(unix)]
#[test]
fn a_link_that_leads_out_of_the_folder_is_followed_only_on_request() {
    let outside: &[(&str, &[(&str, f32)])] = &[("secret", &[("a", 1.0)])];
    let (outside, _) = set(&[], outside);
    let (folder, path) = set(&[("a", "1.safetensors")], &[]);
    let secret = outside.path().join("secret");
    std::os::unix::fs::symlink(secret, folder.path().join("1.safetensors")).unwrap();
    refused(&path, "path");
    let options = zt_convert::InputOptions::new().follow_links(true);
    let followed = zt_convert::Kinds::builtin().open(&path, options).unwrap();
    assert_eq!(value(followed.file(), "a"), 1.0);
}

/// As `huggingface_hub` lays out a cache: every file of a snapshot is a link into one folder.
#[cfg(unix)]
#[test]
fn a_snapshot_in_a_cache_of_the_hub_opens() {
    let (blobs, path) = set(&[("a", "1.safetensors")], &[("0123", &[("a", 1.0)])]);
    let cache = tempfile::tempdir().unwrap();
    let snapshot = cache.path().join("snapshots/main");
    fs::create_dir_all(&snapshot).unwrap();
    fs::rename(blobs.path(), cache.path().join("blobs")).unwrap();
    let index = path.file_name().unwrap();
    let to = std::path::Path::new("../../blobs");
    std::os::unix::fs::symlink(to.join(index), snapshot.join(index)).unwrap();
    std::os::unix::fs::symlink(to.join("0123"), snapshot.join("1.safetensors")).unwrap();
    assert_eq!(value(&opened(&snapshot.join(index)).unwrap(), "a"), 1.0);
}

#[test]
fn an_index_is_one_valid_document() {
    let (_folder, path) = set(&[], &[]);
    let documents = [
        r#"{"weight_map": {"a": 1}}"#,
        r#"{"weight_map": ["a"]}"#,
        r#"{"weight_map": {"a": "x", "a": "y"}}"#,
        r#"{"weight_map": {"w": "a", "\u0077": "b"}}"#,
        r#"{"weight_map": {}, "weight_map": {}}"#,
        r#"{"weight_map": {}} {}"#,
        r#"{"metadata": {"weight_map": {}}}"#,
        "{\"weight_map\": {\"\u{1}\": \"x\"}}",
        r#"{"weight_map": {"#,
    ];
    for document in documents {
        fs::write(&path, document).unwrap();
        refused(&path, "header");
    }
    fs::write(&path, "[]").unwrap();
    assert_eq!(zt_convert::Index::open(&path).unwrap_err().code(), "header");
    fs::write(&path, r#" {"other": [1, {}], "weight_map": {}} "#).unwrap();
    assert!(opened(&path).unwrap().is_empty());
}

#[test]
fn an_index_without_a_path_is_refused() {
    let index = Memory::new(&br#"{"weight_map": {}}"#[..]);
    assert_eq!(zt_convert::open_source(index).unwrap_err().code(), "unsupported");
}

/// The index and the shards as Keras 3.10 lays them out: h5py 3.16 wrote the files by the code of
/// `ShardedH5IOStore`.
#[cfg(feature = "hdf5")]
#[test]
fn the_index_of_keras_names_groups() {
    let of = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/data/keras-set");
    let contents = zt_convert::FolderContents::of(&zt_convert::Kinds::builtin(), &of).unwrap();
    assert_eq!(contents.files, [of.join("model.weights.json")]);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/data/keras-set");
    let file = opened(&folder.join("model.weights.json")).unwrap();
    assert!(file.warnings().is_empty(), "{:?}", file.warnings());
    for (name, first) in [("layers/dense_0/vars/0", 0.0), ("layers/dense_1/vars/0", 1.0)] {
        let tensor = file.tensor(name).unwrap();
        assert_eq!(tensor.shape(), [2, 3]);
        let expected: Vec<f32> = (0u8..6).map(|at| first + f32::from(at)).collect();
        assert_eq!(*tensor.values::<f32>().unwrap(), *expected);
    }
    assert_eq!(file.len(), 2);
}

#[test]
fn the_tensors_of_a_group_may_be_in_several_shards() {
    let shards: [(&str, &[(&str, f32)]); 2] =
        [("a", &[("g/vars/0", 1.0)]), ("b", &[("g/vars/1", 2.0), ("h/vars/0", 3.0)])];
    let (folder, path) = set(&[("/h/vars", "b")], &shards);
    let write = |map: serde_json::Value| {
        let index = serde_json::json!({"weight_map": map});
        fs::write(&path, index.to_string()).unwrap();
    };
    write(serde_json::json!({"/g/vars": ["a", "b"], "/h/vars": "b"}));
    let file = opened(&path).unwrap();
    let mut warnings = file.warnings().into_iter();
    assert!(warnings.all(|warning| warning.code == "attribute-conflict"));
    let values = ["g/vars/0", "g/vars/1", "h/vars/0"].map(|name| value(&file, name));
    assert_eq!(values, [1.0, 2.0, 3.0]);
    // A group that its file lacks, and a file that is missing, are named.
    write(serde_json::json!({"/g/vars": ["a", "b"], "/k/vars": "b"}));
    assert_eq!(refused(&path, "header").object(), Some("/k/vars"));
    write(serde_json::json!({"/g/vars": ["a", "c"]}));
    assert!(refused(&path, "path").to_string().contains("\"c\""));
    drop(folder);
}
