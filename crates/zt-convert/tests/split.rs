//! Sets of shards, written and read back.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]
#![cfg(feature = "safetensors")]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};
use zt::{
    Coo, DType, Dense, File, FileSource, FloatType, HashOptions, OpenOptions, Result, Value, Writer,
};
use zt_convert::{
    ConvertOptions, Input, Kinds, SAFETENSORS, Split, SplitOptions, ZT, parse_size, set_name,
};

/// A `.zt` file in `folder` with tensors of these sizes in bytes; the values count up.
fn file(folder: &Path, sizes: &[u64]) -> PathBuf {
    let path = folder.join("model.zt");
    let mut writer = Writer::create(&path).unwrap();
    for (number, size) in sizes.iter().enumerate() {
        let values: Vec<u8> =
            (0u8..=255).cycle().skip(number).take(usize::try_from(*size).unwrap()).collect();
        let dense = Dense::from_slice(&[*size], &values).unwrap();
        writer.add(&format!("t{number}"), &dense).unwrap();
    }
    writer.set_attributes([("format", "pt"), ("author", "nobody")].into()).unwrap();
    writer.finish().unwrap();
    path
}

fn opened(path: impl AsRef<Path>) -> Input {
    zt_convert::Kinds::builtin().open(path, OpenOptions::new()).unwrap()
}

fn content(file: &File) -> [u8; 32] {
    file.hash(&HashOptions::default()).unwrap().content.unwrap()
}

/// The names in a folder, with hidden names.
fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    names
}

fn split(
    inputs: &[Input],
    folder: impl AsRef<Path>,
    stem: &str,
    limit: u64,
    overwrite: bool,
    options: &ConvertOptions<'_>,
) -> Result<Split> {
    let options = SplitOptions::new(options.clone().overwrite(overwrite));
    let options = options.stem(stem).max_shard_size(limit);
    zt_convert::Kinds::builtin().split(inputs, folder, &options)
}

fn split_to(path: &Path, folder: &Path, limit: u64, options: &ConvertOptions<'_>) -> Result<Split> {
    split(&[opened(path)], folder, "model", limit, false, options)
}

#[test]
fn a_set_equals_the_hubs_and_merges_into_the_original() {
    for (kind, extension) in [(SAFETENSORS, "safetensors"), (ZT, "zt")] {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::create_dir(&from).unwrap();
        fs::create_dir(&to).unwrap();
        let whole = file(&from, &[6, 6, 2, 6, 2, 2]);
        let split = split_to(&whole, &to, 10, &ConvertOptions::new(kind)).unwrap();
        let shard = |number: u8| format!("model-0000{number}-of-00003.{extension}");
        let index = format!("model.{extension}.index.json");
        assert_eq!(names_in(&to), [shard(1), shard(2), shard(3), index.clone()]);
        let index = to.join(index);
        assert_eq!(split.index.as_ref(), Some(&index));
        let written: Vec<_> = split.shards.iter().map(|s| (s.objects, s.bytes)).collect();
        assert_eq!(written, [(1, 6), (2, 8), (3, 10)]);
        assert_eq!(split.shards[1].path, to.join(shard(2)));
        let byte_len = fs::metadata(to.join(shard(2))).unwrap().len();
        assert_eq!(split.shards[1].byte_len, byte_len);

        let json: Json = serde_json::from_str(&fs::read_to_string(&index).unwrap()).unwrap();
        let map = json!({
            "t0": shard(1), "t1": shard(2), "t2": shard(2),
            "t3": shard(3), "t4": shard(3), "t5": shard(3),
        });
        let expected = json!({"metadata": {"total_size": 24}, "weight_map": map});
        assert_eq!(json, expected);

        let source = FileSource::open(&index).unwrap();
        assert_eq!(Kinds::builtin().detect(&source).unwrap(), Some(kind));
        let set = opened(&index);
        assert_eq!((set.file().kind(), set.paths().len()), (kind, 4));
        assert!(set.file().warnings().is_empty());
        assert_eq!(content(set.file()), content(opened(&whole).file()));
        // Opened by the index, and from the shards themselves.
        let shards: Vec<Input> = split.shards.iter().map(|s| opened(&s.path)).collect();
        for inputs in [vec![set], shards] {
            let merged = folder.path().join("merged.zt");
            let options = ConvertOptions::new(ZT);
            Kinds::builtin().convert_to_path(&inputs, &merged, &options.overwrite(true)).unwrap();
            let merged = opened(&merged);
            assert_eq!(content(merged.file()), content(opened(&whole).file()));
            let attributes = merged.file().attributes().unwrap().unwrap();
            let mut keys: Vec<_> = attributes.iter().filter_map(|(key, _)| key.as_str()).collect();
            keys.sort_unstable();
            assert_eq!(keys, ["author", "format"]);
        }
    }
}

#[test]
fn sets_of_random_sizes_equal_the_hubs() {
    let hub: Json = serde_json::from_str(include_str!("data/hub_shards.json")).unwrap();
    let cases = hub["cases"].as_array().unwrap().iter();
    let alone = cases.filter(|case| case["storages"].as_array().unwrap().iter().all(Json::is_null));
    for case in alone.take(10) {
        let folder = tempfile::tempdir().unwrap();
        let sizes = case["sizes"].as_array().unwrap().iter();
        let sizes: Vec<u64> = sizes.map(|size| size.as_u64().unwrap()).collect();
        let whole = file(folder.path(), &sizes);
        let to = folder.path().join("to");
        fs::create_dir(&to).unwrap();
        let limit = case["limit"].as_u64().unwrap();
        let split = split_to(&whole, &to, limit, &ConvertOptions::new(SAFETENSORS)).unwrap();
        assert_eq!(case["total_size"], split.total_size);
        for (name, tensors) in case["shards"].as_object().unwrap() {
            let shard = opened(to.join(name));
            let mut found: Vec<u64> =
                shard.file().names().map(|n| n[1..].parse().unwrap()).collect();
            found.sort_unstable();
            assert_eq!(json!(found), *tensors, "{case}");
        }
        let shards = case["shards"].as_object().unwrap().len();
        assert_eq!(names_in(&to).len(), shards + usize::from(shards > 1));
    }
}

#[test]
fn a_single_shard_is_one_file_without_an_index() {
    let folder = tempfile::tempdir().unwrap();
    let whole = file(folder.path(), &[6, 4]);
    let options = ConvertOptions::new(SAFETENSORS);
    let split = split_to(&whole, folder.path(), 10, &options).unwrap();
    assert_eq!(split.index, None);
    assert_eq!(names_in(folder.path()), ["model.safetensors", "model.zt"]);
    assert_eq!(opened(&split.shards[0].path).file().len(), 2);
    // Without objects, too.
    let empty = file(folder.path(), &[]);
    let to = folder.path().join("to");
    fs::create_dir(&to).unwrap();
    split_to(&empty, &to, 10, &options).unwrap();
    assert_eq!(names_in(&to), ["model.safetensors"]);
}

#[test]
fn all_files_appear_or_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let whole = file(path, &[6, 6]);
    let options = ConvertOptions::new(SAFETENSORS);
    // A file in the way of the second shard.
    let second = path.join("model-00002-of-00002.safetensors");
    fs::write(&second, "mine").unwrap();
    let error = split_to(&whole, path, 10, &options).unwrap_err();
    assert_eq!(error.code(), "overwrite");
    let names = ["model-00002-of-00002.safetensors", "model.zt"];
    assert_eq!(names_in(path), names);
    assert_eq!(fs::read(&second).unwrap(), b"mine");
    // With `overwrite` it is replaced.
    let inputs = [opened(&whole)];
    let replaced = split(&inputs, path, "model", 10, true, &options).unwrap();
    assert_eq!(opened(replaced.index.unwrap()).file().len(), 2);
    split(&inputs, path, "model", 10, true, &options).unwrap();
    assert_eq!(names_in(path).len(), 4);
    // A shard that is an input is never replaced.
    let set = opened(path.join("model.safetensors.index.json"));
    let shard = [opened(&set.paths()[1])];
    let error = split(&shard, path, "model", 10, true, &options).unwrap_err();
    assert_eq!(error.code(), "overwrite");
    assert_eq!(names_in(path).len(), 4);

    // An object that safetensors cannot represent, in the last of three shards.
    let other = path.join("sparse.zt");
    let mut writer = Writer::create(&other).unwrap();
    for name in ["a", "b"] {
        let dense = Dense::from_slice(&[2], &[1.0f32, 2.0]).unwrap();
        writer.add(name, &dense).unwrap();
    }
    let sparse = Coo::new([2], &[1.0f32][..], &[0u64][..]);
    writer.add("c", &sparse.unwrap()).unwrap();
    writer.finish().unwrap();
    let to = path.join("to");
    fs::create_dir(&to).unwrap();
    let error = split_to(&other, &to, 8, &options).unwrap_err();
    assert_eq!((error.code(), error.object()), ("lossy", Some("c")));
    assert!(names_in(&to).is_empty());
    split_to(&other, &to, 8, &ConvertOptions::new(ZT)).unwrap();
    let set = opened(to.join("model.zt.index.json"));
    assert_eq!(content(set.file()), content(opened(&other).file()));
}

#[test]
fn tied_tensors_of_a_zt_file_stay_together_and_count_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tied.zt");
    let mut writer = Writer::create(&path).unwrap();
    let tied = Dense::from_slice(&[1024], &[7.5f32; 1024]).unwrap();
    let other = Dense::from_slice(&[1024], &[1.0f32; 1024]).unwrap();
    for (name, dense) in [("embed", &tied), ("body", &other)] {
        writer.add(name, dense).unwrap();
    }
    writer.finish().unwrap();
    let whole = folder.path().join("whole.zt");
    // A copy under another name, which conversion ties.
    let copy = folder.path().join("copy.zt");
    let mut writer = Writer::create(&copy).unwrap();
    writer.add("head", &tied).unwrap();
    writer.finish().unwrap();
    let inputs = [opened(&path), opened(&copy)];
    Kinds::builtin().convert_to_path(&inputs, &whole, &ConvertOptions::new(ZT)).unwrap();

    let zt = split_to(&whole, folder.path(), 4096, &ConvertOptions::new(ZT)).unwrap();
    let objects: Vec<u64> = zt.shards.iter().map(|shard| shard.objects).collect();
    assert_eq!((objects, zt.total_size), (vec![2, 1], 8192));
    assert!(zt.shards[0].byte_len < 8192);
    // In safetensors and without deduplication, each is stored.
    let mut apart = ConvertOptions::new(ZT);
    apart.deduplicate = false;
    for (number, options) in [ConvertOptions::new(SAFETENSORS), apart].iter().enumerate() {
        let to = folder.path().join(number.to_string());
        fs::create_dir(&to).unwrap();
        let split = split_to(&whole, &to, 4096, options).unwrap();
        assert_eq!((split.shards.len(), split.total_size), (3, 12288));
    }
}

/// Equal spans in two files are different bytes.
#[test]
fn tensors_of_two_files_do_not_share_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let one = |name: &str, value: f32| {
        let path = folder.path().join(format!("{name}.zt"));
        let mut writer = Writer::create(&path).unwrap();
        let values = [value; 1024];
        let dense = Dense::from_slice(&[1024], &values).unwrap();
        writer.add(name, &dense).unwrap();
        writer.finish().unwrap();
        opened(path)
    };
    let inputs = [one("a", 1.0), one("b", 2.0)];
    let options = ConvertOptions::new(ZT);
    let split = split(&inputs, folder.path(), "model", 4096, false, &options).unwrap();
    assert_eq!((split.shards.len(), split.total_size), (2, 8192));
}

/// The size is that of the stored components or of the dense value.
#[test]
fn a_sparse_tensor_counts_as_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sparse.zt");
    let mut writer = Writer::create(&path).unwrap();
    let sparse = Coo::new([100], &[1.0f32][..], &[0u64][..]).unwrap();
    writer.add("a", &sparse).unwrap();
    writer.finish().unwrap();
    for (dense, total) in [(false, 12), (true, 400)] {
        let mut options = ConvertOptions::new(ZT);
        options.dense = dense;
        let stem = format!("dense-{dense}");
        let inputs = [opened(&path)];
        let split = split(&inputs, folder.path(), &stem, 4096, false, &options).unwrap();
        assert_eq!((split.total_size, split.shards[0].bytes), (total, total));
    }
}

#[test]
fn losses_are_reported_once_for_the_file_and_for_every_object() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("whole.zt");
    let mut writer = Writer::create(&path).unwrap();
    for name in ["a", "b"] {
        let mut object = writer.begin(name, &[4], "dense").unwrap();
        object.set_attributes([("k", 1u64)].into()).unwrap();
        let mut data = object.component("data", DType::U8, None).unwrap();
        std::io::Write::write_all(&mut data, &[7; 4]).unwrap();
        data.finish().unwrap();
        object.finish().unwrap();
    }
    writer.set_attributes([("k", 1u64)].into()).unwrap();
    writer.finish().unwrap();
    let mut options = ConvertOptions::new(SAFETENSORS);
    options = options.lossy(true);
    let split = split_to(&path, folder.path(), 4, &options).unwrap();
    assert_eq!(split.shards.len(), 2);
    let warned = split.warnings.iter().map(|it| it.object.as_deref());
    assert_eq!(warned.collect::<Vec<_>>(), [Some("a"), None, Some("b")]);
}

/// A file without the name of a shard stays, even if an index lists it.
#[test]
fn files_without_two_numbers_are_no_shards() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("to");
    fs::create_dir(&to).unwrap();
    let whole = file(folder.path(), &[6, 6]);
    let options = ConvertOptions::new(SAFETENSORS);
    let index = split_to(&whole, &to, 6, &options).unwrap().index.unwrap();
    let mut json = fs::read_to_string(&index).unwrap();
    let others = ["model-00001-of-many.safetensors", "model-last-of-00002.safetensors"];
    for (number, other) in (1..).zip(others) {
        let shard = format!("model-0000{number}-of-00002.safetensors");
        fs::rename(to.join(&shard), to.join(other)).unwrap();
        json = json.replace(&shard, other);
    }
    fs::write(&index, json).unwrap();
    let inputs = [opened(&whole)];
    let one = split(&inputs, &to, "model", 12, true, &options).unwrap();
    assert_eq!(one.removed, [index]);
    assert_eq!(names_in(&to), [others[0], others[1], "model.safetensors"]);
}

#[test]
fn a_cast_counts_as_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f32.zt");
    let mut writer = Writer::create(&path).unwrap();
    for name in ["a", "b", "c"] {
        let dense = Dense::from_slice(&[4], &[1.0f32; 4]).unwrap();
        writer.add(name, &dense).unwrap();
    }
    writer.finish().unwrap();
    let mut options = ConvertOptions::new(ZT);
    options.dtype = Some(FloatType::F16);
    let split = split_to(&path, folder.path(), 16, &options).unwrap();
    assert_eq!((split.shards.len(), split.total_size), (2, 24));
}

#[test]
fn a_fault_in_a_zt_shard_is_a_fault_of_its_object() {
    let folder = tempfile::tempdir().unwrap();
    let whole = file(folder.path(), &[5000, 5000, 5000]);
    let options = ConvertOptions::new(ZT);
    let split = split_to(&whole, folder.path(), 10_000, &options).unwrap();
    // Changes a byte of the first tensor.
    let shard = &split.shards[0].path;
    let mut bytes = fs::read(shard).unwrap();
    let set = opened(split.index.as_ref().unwrap());
    let span = set.file().tensor("t0").unwrap().object().component("data").unwrap().blob.span;
    bytes[usize::try_from(span.offset()).unwrap()] ^= 1;
    fs::write(shard, bytes).unwrap();
    let set = opened(split.index.as_ref().unwrap());
    let report = set.file().verify(&zt::VerifyOptions::default()).unwrap();
    let problems: Vec<_> = report.problems.iter().map(|p| (p.code(), p.object())).collect();
    assert_eq!(problems, [("digest-mismatch", Some("t0"))]);
    assert!(set.file().tensor("t1").unwrap().bytes("data").is_ok());
}

#[test]
fn unknown_fields_of_shards_become_fields_of_the_set() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("extra.zt");
    let mut writer = Writer::create(&path).unwrap();
    for name in ["a", "b"] {
        writer.add(name, &Dense::from_slice(&[1], &[1u8]).unwrap()).unwrap();
    }
    writer.set_extra([("x-tool", Value::from("other"))].into()).unwrap();
    writer.finish().unwrap();
    let split = split_to(&path, folder.path(), 1, &ConvertOptions::new(ZT)).unwrap();
    let set = opened(split.index.unwrap());
    assert_eq!(set.file().extra().unwrap(), opened(&path).file().extra().unwrap());
}

#[test]
fn sets_have_plain_names_and_a_kind_that_has_sets() {
    let folder = tempfile::tempdir().unwrap();
    let inputs = [opened(file(folder.path(), &[1]))];
    for stem in ["", "..", "a/b", "a:b"] {
        let options = ConvertOptions::new(ZT);
        let error = split(&inputs, folder.path(), stem, 1, false, &options).unwrap_err();
        assert_eq!(error.code(), "misuse");
    }
    for member in zt_convert::Kinds::builtin().iter() {
        let kind = member.kind();
        // GGUF has no u8.
        let options = ConvertOptions::new(kind).lossy(true);
        let split = split(&inputs, folder.path(), "m", 1, false, &options);
        if ["zt", "safetensors", "gguf"].contains(&kind.as_str()) {
            assert!(split.is_ok(), "{kind}");
        } else {
            assert_eq!(split.unwrap_err().code(), "unsupported", "{kind}");
        }
    }
}

/// All files of a folder.
fn content_of(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let names = names_in(folder).into_iter();
    names.map(|name| (name.clone(), fs::read(folder.join(name)).unwrap())).collect()
}

#[test]
fn a_folder_in_the_way_is_refused_before_anything_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("to");
    fs::create_dir(&to).unwrap();
    let whole = file(folder.path(), &[6, 6, 6]);
    let options = ConvertOptions::new(SAFETENSORS);
    split_to(&whole, &to, 6, &options).unwrap();
    let index = "model.safetensors.index.json";
    for name in ["model-00002-of-00002.safetensors", index] {
        let path = to.join(name);
        let old = fs::read(&path).ok();
        fs::remove_file(&path).ok();
        fs::create_dir(&path).unwrap();
        for overwrite in [false, true] {
            let inputs = [opened(&whole)];
            let error = split(&inputs, &to, "model", 12, overwrite, &options).unwrap_err();
            assert_eq!(error.code(), "overwrite");
            assert_eq!(names_in(&to).len(), 4 + usize::from(name != index));
        }
        fs::remove_dir(&path).unwrap();
        if let Some(old) = old {
            fs::write(&path, old).unwrap();
        }
    }
    assert_eq!(opened(to.join(index)).file().len(), 3);
}

#[test]
fn a_set_replaces_the_whole_existing_set_and_no_other_file() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("to");
    fs::create_dir(&to).unwrap();
    let whole = file(folder.path(), &[6, 6, 6]);
    let index = to.join("model.safetensors.index.json");
    let options = ConvertOptions::new(SAFETENSORS);
    let again = |limit, overwrite| {
        let inputs = [opened(&whole)];
        split(&inputs, &to, "model", limit, overwrite, &options)
    };
    again(6, false).unwrap();
    // Shards of another set stay, and files that only the index calls shards.
    fs::write(to.join("other-00001-of-00003.safetensors"), "other").unwrap();
    fs::write(to.join("model-1-of-3.safetensors"), "no shard").unwrap();
    let others = content_of(&to).len() - 4;

    let two = again(12, true).unwrap();
    let shard = |number: u8, count: u8| format!("model-0000{number}-of-0000{count}.safetensors");
    assert_eq!(two.removed, [1, 2, 3].map(|number| to.join(shard(number, 3))));
    assert_eq!(names_in(&to).len(), 3 + others);
    assert_eq!(opened(&index).file().len(), 3);

    // An index beside a single file would describe missing files.
    assert_eq!(again(18, false).unwrap_err().code(), "overwrite");
    let json = fs::read_to_string(&index).unwrap();
    fs::write(&index, json.replace(&shard(1, 2), "model-1-of-3.safetensors")).unwrap();
    let one = again(18, true).unwrap();
    assert_eq!(one.removed, [index.clone(), to.join(shard(2, 2))]);
    let names = names_in(&to);
    let left =
        ["model-1-of-3.safetensors", "model.safetensors", "other-00001-of-00003.safetensors"];
    assert!(left.iter().all(|left| names.iter().any(|name| name == left)));
    assert!(!index.exists());
    assert!(again(18, true).unwrap().removed.is_empty());

    // An unreadable index is replaced, but its shards are unknown and stay.
    fs::write(&index, "{\"weight_map\": 1}").unwrap();
    let three = again(6, true).unwrap();
    assert!(three.removed.is_empty());
    assert_eq!(opened(&index).file().len(), 3);
}

#[test]
fn a_shard_that_is_an_input_is_not_removed() {
    let folder = tempfile::tempdir().unwrap();
    let whole = file(folder.path(), &[6, 6, 6]);
    let options = ConvertOptions::new(SAFETENSORS);
    let three = split_to(&whole, folder.path(), 6, &options).unwrap();
    let before = content_of(folder.path());
    let inputs = [opened(&three.shards[2].path)];
    let error = split(&inputs, folder.path(), "model", 6, true, &options).unwrap_err();
    assert_eq!(error.code(), "overwrite");
    assert_eq!(content_of(folder.path()), before);
}

#[test]
fn skipped_objects_are_neither_listed_nor_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("whole.zt");
    let mut writer = Writer::create(&path).unwrap();
    let dense = Dense::from_slice(&[2], &[1.0f32, 2.0]).unwrap();
    for name in ["a", "__metadata__", "b"] {
        writer.add(name, &dense).unwrap();
    }
    let mut object = writer.begin("c", &[2], "acme.blocks/1").unwrap();
    let mut cells = object.component("cells", DType::U8, None).unwrap();
    std::io::Write::write_all(&mut cells, &[0; 64]).unwrap();
    cells.finish().unwrap();
    object.finish().unwrap();
    // This object is lost in part: it is written, with one warning.
    let sparse = Coo::new([2], &[1.0f32][..], &[0u64][..]);
    writer.add("d", &sparse.unwrap()).unwrap();
    writer.finish().unwrap();

    let mut options = ConvertOptions::new(SAFETENSORS);
    options = options.lossy(true);
    let split = split_to(&path, folder.path(), 8, &options).unwrap();
    assert_eq!(split.left_out, ["__metadata__", "c"]);
    let warned: Vec<_> = split.warnings.iter().map(|w| w.object.as_deref()).collect();
    assert_eq!(warned, [Some("__metadata__"), Some("c"), Some("d")]);
    assert_eq!((split.shards.len(), split.total_size), (3, 24));
    let set = opened(split.index.unwrap());
    let mut names: Vec<_> = set.file().names().collect();
    names.sort_unstable();
    assert_eq!(names, ["a", "b", "d"]);
}

/// The names of the shards that an index lists; all of them are there, and no other file is.
fn shards_in(folder: &Path, extension: &str) -> Vec<String> {
    let index = format!("model.{extension}.index.json");
    let json = fs::read_to_string(folder.join(&index)).unwrap();
    let json: Json = serde_json::from_str(&json).unwrap();
    let map = json["weight_map"].as_object().unwrap().values();
    let mut names: Vec<String> = map.map(|name| name.as_str().unwrap().to_owned()).collect();
    names.sort_unstable();
    names.dedup();
    let found = names_in(folder).into_iter().filter(|name| *name != index);
    assert_eq!(found.collect::<Vec<_>>(), names);
    names
}

#[test]
fn a_set_replaces_a_set_also_itself() {
    for (kind, extension) in [(SAFETENSORS, "safetensors"), (ZT, "zt")] {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("to");
        fs::create_dir(&to).unwrap();
        let whole = file(folder.path(), &[6, 6, 6]);
        let expected = content(opened(&whole).file());
        let index = to.join(format!("model.{extension}.index.json"));
        let options = ConvertOptions::new(kind);
        split_to(&whole, &to, 6, &options).unwrap();
        let of_hub = shards_in(&to, extension);
        for (limit, generation) in [(6, "-g2"), (6, ""), (12, ""), (12, "-g2"), (6, "")] {
            for input in [&whole, &index] {
                let kept = opened(&index);
                let made = split(&[opened(input)], &to, "model", limit, true, &options).unwrap();
                let shards = shards_in(&to, extension);
                assert_eq!(made.shards.len(), shards.len());
                assert_eq!(content(opened(&index).file()), expected);
                // Open readers keep the old set.
                assert_eq!(content(kept.file()), expected);
                if input == &whole {
                    assert!(
                        shards[0].starts_with(&format!("model{generation}-00001")),
                        "{shards:?}"
                    );
                    continue;
                }
                // Back to the names before.
                split(&[opened(&whole)], &to, "model", limit, true, &options).unwrap();
            }
        }
        assert_eq!(shards_in(&to, extension), of_hub);
        // To one file, without an index.
        let set = [opened(&index)];
        let one = split(&set, &to, "model", 100, true, &options).unwrap();
        assert_eq!((one.index, one.removed.len()), (None, 4));
        let name = format!("model.{extension}");
        assert_eq!(names_in(&to), std::slice::from_ref(&name));
        assert_eq!(content(opened(to.join(name)).file()), expected);
    }
}

#[test]
fn a_set_that_is_edited_or_written_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("to");
    fs::create_dir(&to).unwrap();
    let whole = file(folder.path(), &[6, 6]);
    let options = ConvertOptions::new(ZT);
    split_to(&whole, &to, 6, &options).unwrap();
    let before = names_in(&to);
    let again = || split(&[opened(&whole)], &to, "model", 6, true, &options);
    let edit = File::edit(to.join(&before[0])).unwrap();
    assert_eq!(again().unwrap_err().code(), "locked");
    drop(edit);
    let hidden = to.join(".model.zt.index.json.zt-new");
    fs::write(&hidden, "").unwrap();
    let other = zt::foreign::open_locked(&hidden).unwrap();
    assert_eq!(again().unwrap_err().code(), "locked");
    drop(other);
    assert_eq!(names_in(&to).len(), before.len() + 1);
    again().unwrap();
    assert_eq!(shards_in(&to, "zt").len(), 2);
}

#[test]
fn a_file_that_appears_meanwhile_undoes_the_new_set() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("to");
    fs::create_dir(&to).unwrap();
    let whole = file(folder.path(), &[6, 6, 6]);
    split_to(&whole, &to, 6, &ConvertOptions::new(ZT)).unwrap();
    let before = names_in(&to);
    let theirs = to.join("model-00002-of-00002.zt");
    let appear = |_| {
        fs::write(&theirs, "theirs").unwrap();
        std::ops::ControlFlow::Continue(())
    };
    let mut options = ConvertOptions::new(ZT);
    options.progress = Some(zt::Progress::new(&appear));
    let error = split(&[opened(&whole)], &to, "model", 12, true, &options).unwrap_err();
    assert_eq!((error.code(), error.path()), ("overwrite", Some(&*theirs)));
    assert_eq!(fs::read(&theirs).unwrap(), b"theirs");
    fs::remove_file(&theirs).unwrap();
    assert_eq!(names_in(&to), before);
    let index = opened(to.join("model.zt.index.json"));
    assert_eq!(content(index.file()), content(opened(&whole).file()));
}

/// The states that a kill leaves, as `cargo xtask kill-points` finds them.
#[test]
fn what_a_killed_split_left_is_removed_by_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("to");
    fs::create_dir(&to).unwrap();
    let whole = file(folder.path(), &[6, 6, 6]);
    let options = ConvertOptions::new(ZT);
    let at = |name: &str| to.join(name);
    let index = at("model.zt.index.json");
    let (new, old) = (at(".model.zt.index.json.zt-new"), at(".model.zt.index.json.zt-old"));
    let of_two = |name: &str| format!("model-0000{name}-of-00002.zt");
    split_to(&whole, &to, 12, &options).unwrap();
    let json = fs::read(&index).unwrap();

    // Before any index: the shards have names.
    fs::rename(&index, &new).unwrap();
    split_to(&whole, &to, 6, &options).unwrap();
    assert_eq!(shards_in(&to, "zt").len(), 3);

    // Before the commit over a set.
    fs::write(&new, &json).unwrap();
    fs::hard_link(&index, &old).unwrap();
    fs::write(at(&of_two("1")), "left").unwrap();
    split(&[opened(&index)], &to, "model", 6, true, &options).unwrap();
    assert_eq!(shards_in(&to, "zt").len(), 3);

    // After the commit.
    fs::write(&old, &json).unwrap();
    fs::write(at(&of_two("2")), "left").unwrap();
    split(&[opened(&index)], &to, "model", 6, true, &options).unwrap();
    assert_eq!(shards_in(&to, "zt").len(), 3);

    // A file that no hidden index lists is not ours to remove, nor is an input.
    fs::write(&new, &json).unwrap();
    fs::write(at("model-00001-of-00009.zt"), "mine").unwrap();
    fs::copy(&whole, at(&of_two("1"))).unwrap();
    let inputs = [opened(at(&of_two("1")))];
    split(&inputs, &to, "model", 6, true, &options).unwrap();
    assert_eq!(fs::read(at("model-00001-of-00009.zt")).unwrap(), b"mine");
    assert!(at(&of_two("1")).exists() && !new.exists() && !old.exists());
}

#[cfg(unix)]
#[test]
fn a_new_set_gives_no_more_rights_than_the_old() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("to");
    fs::create_dir(&to).unwrap();
    let whole = file(folder.path(), &[6, 6]);
    let options = ConvertOptions::new(ZT);
    let made = split_to(&whole, &to, 6, &options).unwrap();
    let shard = &made.shards[1].path;
    fs::set_permissions(shard, fs::Permissions::from_mode(0o600)).unwrap();
    split(&[opened(&whole)], &to, "model", 6, true, &options).unwrap();
    for name in names_in(&to) {
        let mode = fs::metadata(to.join(&name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[test]
fn decimal_and_binary_sizes_are_parsed() {
    for (text, bytes) in [
        ("5GB", 5_000_000_000),
        ("500MB", 500_000_000),
        ("1.5KB", 1_500),
        ("2TB", 2_000_000_000_000),
        ("0.001 GB", 1_000_000),
        ("7kb", 7_000),
        ("2GiB", 2 << 30),
        ("0.5 MiB", 1 << 19),
        (" 4096 ", 4096),
        ("18446744073709551615", u64::MAX),
        ("1B", 1),
    ] {
        assert_eq!(parse_size(text), Some(bytes), "{text}");
    }
    for text in ["", "0", "0GB", "0.1", "GB", "-5GB", "5 G", "5PB", "1e9", "nan", "1.5.0MB"] {
        assert!(parse_size(text).is_none(), "{text}");
    }
    assert!(parse_size("20000000TB").is_none());
}

#[test]
fn a_set_is_named_after_its_file() {
    let stem = |path: &str| set_name(path.as_ref(), false);
    for path in ["a/model.safetensors", "model.zt", "model.safetensors.index.json", "model"] {
        assert_eq!(stem(path).as_deref(), Some("model"), "{path}");
    }
    assert_eq!(stem("s3://b/step-10/.metadata").as_deref(), Some("step-10"));
    assert_eq!(stem("v1.5.gguf").as_deref(), Some("v1.5"));
    assert_eq!(stem(".."), None);
    assert_eq!(stem("m-00002-of-00003.gguf").as_deref(), Some("m-00002-of-00003"));
    let stem = |path: &str| set_name(path.as_ref(), true);
    assert_eq!(stem("a/m-00002-of-00003.gguf").as_deref(), Some("m"));
    assert_eq!(stem("a-1-of-3.gguf").as_deref(), Some("a-1-of-3"));
}
