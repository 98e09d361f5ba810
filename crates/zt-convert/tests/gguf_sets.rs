//! Several GGUF files as one, and one as several.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
#![cfg(feature = "gguf")]

use std::fs;
use std::path::{Path, PathBuf};
use zt::{File, Memory, Value, Writer};

use zt_convert::{ConvertOptions, GGUF, Input, Kinds, Split, SplitOptions, Summary, ZT};

fn opened(bytes: Vec<u8>) -> File {
    zt_convert::open_source(Memory::new(bytes)).unwrap()
}

fn to(options: &ConvertOptions<'_>, file: &File) -> zt::Result<(Vec<u8>, Summary)> {
    let mut bytes = Vec::new();
    let summary = Kinds::builtin().convert(&[Input::from(file.clone())], &mut bytes, options)?;
    Ok((bytes, summary))
}

/// A GGUF file with these pairs, and tensors with these names, of the values 1 and 7.
fn gguf(names: &[&str], pairs: &[(&str, u32)]) -> Vec<u8> {
    let mut file = b"GGUF\x03\0\0\0".to_vec();
    let text = |file: &mut Vec<u8>, text: &str| {
        file.extend((text.len() as u64).to_le_bytes());
        file.extend(text.as_bytes());
    };
    file.extend((names.len() as u64).to_le_bytes());
    file.extend((pairs.len() as u64).to_le_bytes());
    for (key, value) in pairs {
        text(&mut file, key);
        file.extend(4u32.to_le_bytes()); // UINT32
        file.extend(value.to_le_bytes());
    }
    for (at, name) in (0u64..).zip(names) {
        text(&mut file, name);
        file.extend(1u32.to_le_bytes()); // dimensions
        file.extend(2u64.to_le_bytes());
        file.extend(0u32.to_le_bytes()); // F32
        file.extend((at * 32).to_le_bytes());
    }
    for _ in names {
        file.resize(file.len().next_multiple_of(32), 0);
        file.extend([1f32, 7.0].map(f32::to_le_bytes).as_flattened());
    }
    file
}

/// A file with these pairs, and a tensor with this name.
fn with_pairs<const N: usize>(name: &str, pairs: [(&str, u32); N]) -> File {
    opened(gguf(&[name], &pairs))
}

#[test]
fn a_merged_set_is_no_longer_part_of_a_set() {
    let part = |no: u32| {
        let key = ["a", "b", "c"][no as usize];
        let pairs =
            [("split.no", no), ("split.count", 3), ("split.tensors.count", 3), ("k", 7), (key, no)];
        with_pairs(key, pairs)
    };
    let merged = |numbers: &[u32]| {
        let inputs: Vec<Input> = numbers.iter().map(|no| part(*no).into()).collect();
        let (mut bytes, options) = (Vec::new(), ConvertOptions::new(GGUF));
        Kinds::builtin()
            .convert(&inputs, &mut bytes, &options)
            .map(|summary| (opened(bytes), summary))
    };
    let (whole, summary) = merged(&[1, 0, 2]).unwrap();
    assert!(summary.warnings.is_empty(), "{:?}", summary.warnings);
    assert!(whole.warnings().is_empty());
    assert_eq!(whole.len(), 3);
    let attributes = whole.attributes().unwrap().unwrap();
    let keys = attributes.iter().filter_map(|(key, _)| key.as_str());
    assert_eq!(keys.collect::<Vec<_>>(), ["k", "b", "a", "c", "gguf.types"]);
    // Nothing is written from a part of a set.
    assert_eq!(merged(&[0, 2]).unwrap_err().code(), "lossy");
}

/// A set as `gguf-split --no-tensor-first-split` writes it.
fn folder_of_parts() -> (tempfile::TempDir, [PathBuf; 3]) {
    let folder = tempfile::tempdir().unwrap();
    let paths = [1, 2, 3].map(|no| folder.path().join(format!("m-0000{no}-of-00003.gguf")));
    for (no, path) in (0u32..).zip(&paths) {
        let names = [&[][..], &["a"], &["b"]][no as usize];
        let pairs = [
            ("split.no", no),
            ("split.count", 3),
            ("split.tensors.count", 2),
            ("llama.block_count", 9),
        ];
        let first = if no == 0 { 4 } else { 3 };
        fs::write(path, gguf(names, &pairs[..first])).unwrap();
    }
    (folder, paths)
}

fn open(path: &Path) -> zt::Result<Input> {
    Kinds::builtin().open(path, zt::OpenOptions::new())
}

#[test]
fn any_part_opens_the_whole_set() {
    let (folder, paths) = folder_of_parts();
    let mut written = Vec::new();
    for inputs in [&paths[..1], &paths[1..2], &paths[2..], &paths[..]] {
        let inputs: Vec<Input> = inputs.iter().map(|path| open(path).unwrap()).collect();
        let input = &inputs[0];
        assert_eq!(input.paths().len(), 3);
        let file = input.file();
        assert_eq!(file.names().collect::<Vec<_>>(), ["a", "b"]);
        assert!(file.warnings().is_empty(), "{:?}", file.warnings());
        let b = file.tensor("b").unwrap().to_vec::<f32>().unwrap();
        assert_eq!(b, [1.0, 7.0]);
        let attributes = file.attributes().unwrap().unwrap();
        let keys = attributes.iter().filter_map(|(key, _)| key.as_str());
        assert_eq!(keys.collect::<Vec<_>>(), ["llama.block_count", "gguf.types"]);
        let out = folder.path().join("whole.gguf");
        let mut options = ConvertOptions::new(GGUF);
        options.overwrite = true;
        Kinds::builtin().convert_to_path(&inputs, &out, &options).unwrap();
        written.push(fs::read(&out).unwrap());
        let replaced = Kinds::builtin().convert_to_path(&inputs, &paths[2], &options).unwrap_err();
        assert_eq!(replaced.code(), "overwrite");
    }
    assert!(written.iter().all(|bytes| *bytes == written[0]));
    // Only different parts are one input: what was opened twice was meant twice.
    let twice = [0, 0].map(|at: usize| open(&paths[at]).unwrap());
    let error = Kinds::builtin().convert(&twice, Vec::new(), &ConvertOptions::new(ZT)).unwrap_err();
    assert_eq!(error.code(), "duplicate-name");
}

#[test]
fn a_part_that_is_missing_or_of_another_set_is_named() {
    let (folder, paths) = folder_of_parts();
    let message = |path: &Path| {
        let error = open(path).unwrap_err();
        (error.code(), error.to_string())
    };
    // Its name says where the others are.
    let renamed = folder.path().join("renamed.gguf");
    fs::copy(&paths[1], &renamed).unwrap();
    let alone = open(&renamed).unwrap();
    assert_eq!(alone.file().warnings()[0].code, "split");
    let error =
        Kinds::builtin().convert(&[alone], Vec::new(), &ConvertOptions::new(ZT)).unwrap_err();
    assert_eq!(error.code(), "lossy");

    fs::copy(&paths[0], &paths[1]).unwrap();
    let (code, text) = message(&paths[0]);
    assert!(code == "header" && text.contains("m-00002-of-00003.gguf"), "{text}");
    fs::remove_file(&paths[1]).unwrap();
    for path in [&paths[0], &paths[2]] {
        let (code, text) = message(path);
        assert!(code == "path" && text.contains("m-00002-of-00003.gguf"), "{text}");
    }
}

#[test]
fn a_tensor_that_is_cut_off_names_its_part() {
    let (_folder, paths) = folder_of_parts();
    let bytes = fs::read(&paths[2]).unwrap();
    fs::write(&paths[2], &bytes[..bytes.len() - 4]).unwrap();
    let input = open(&paths[0]).unwrap();
    let error = input.file().tensor("b").unwrap_err();
    assert_eq!((error.code(), error.path()), ("bounds", Some(&*paths[2])));
}

#[test]
fn types_of_several_files_are_joined_and_written_to_gguf_and_zt_only() {
    let inputs = [with_pairs("v", [("a", 1)]).into(), with_pairs("w", [("b", 2), ("a", 1)]).into()];
    let mut bytes = Vec::new();
    let summary =
        Kinds::builtin().convert(&inputs, &mut bytes, &ConvertOptions::new(GGUF)).unwrap();
    assert!(summary.warnings.is_empty(), "{:?}", summary.warnings);
    let attributes = opened(bytes).attributes().unwrap().unwrap();
    let types = attributes.get("gguf.types").unwrap().as_array().unwrap();
    assert_eq!(types.len(), 2);
    let mut bytes = Vec::new();
    Kinds::builtin().convert(&inputs, &mut bytes, &ConvertOptions::new(ZT)).unwrap();
    assert_eq!(opened(bytes).attributes().unwrap().unwrap(), attributes);
    #[cfg(feature = "safetensors")]
    {
        let mut ours = Vec::new();
        let mut writer = Writer::new(&mut ours).unwrap();
        writer.set_attributes([("format", "pt")].into()).unwrap();
        writer.finish().unwrap();
        let (gguf, _) = to(&ConvertOptions::new(GGUF), &opened(ours)).unwrap();
        let options = ConvertOptions::new(zt_convert::SAFETENSORS);
        let (_, summary) = to(&options, &opened(gguf)).unwrap();
        assert!(summary.warnings.is_empty(), "{:?}", summary.warnings);
    }
}

#[test]
fn a_part_of_a_split_model_has_a_warning() {
    for (count, codes) in [(3u32, &["split"][..]), (1, &[])] {
        let part = with_pairs("w", [("split.count", count)]);
        let codes_of = |found: Vec<zt::Warning>| found.iter().map(|it| it.code).collect::<Vec<_>>();
        assert_eq!(codes_of(part.warnings()), codes);
        // Nothing is written from a part, unless that is asked for.
        let written = to(&ConvertOptions::new(GGUF), &part);
        assert_eq!(written.is_err(), count == 3);
        let (bytes, _) = to(&ConvertOptions::new(GGUF).lossy(true), &part).unwrap();
        assert!(opened(bytes).warnings().is_empty());
    }
}

#[test]
fn a_set_has_two_files_or_more_numbered_from_zero() {
    let count_of = |numbers: &[u32], count: u32| {
        let parts = numbers.iter().map(|no| {
            let pairs = [("split.count", count), ("split.no", *no)];
            Input::from(with_pairs(&no.to_string(), pairs))
        });
        let mut options = ConvertOptions::new(GGUF);
        options = options.lossy(true);
        let mut bytes = Vec::new();
        Kinds::builtin().convert(&parts.collect::<Vec<_>>(), &mut bytes, &options).unwrap();
        let attributes = opened(bytes).attributes().unwrap().unwrap_or_default();
        attributes.get("split.count").and_then(Value::as_u64)
    };
    assert_eq!(count_of(&[0, 1], 2), None);
    assert_eq!(count_of(&[1, 2], 2), None);
    assert_eq!(count_of(&[0], 1), Some(1));
}

/// A GGUF file as we write it: five tensors of 8 bytes, not in the order of their names, and a pair.
fn whole(folder: &Path) -> PathBuf {
    let path = folder.join("m.gguf");
    let source = opened(gguf(&["d", "a", "e", "c", "b"], &[("llama.block_count", 9)]));
    let (file, _) = to(&ConvertOptions::new(GGUF), &source).unwrap();
    fs::write(&path, file).unwrap();
    path
}

fn parts_of(whole: &Path, to: &Path, tensors: u64, overwrite: bool) -> zt::Result<Split> {
    let convert = ConvertOptions::new(GGUF).overwrite(overwrite);
    let options = SplitOptions::new(convert).stem("m").max_tensors(tensors);
    Kinds::builtin().split(&[open(whole)?], to, &options)
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    names
}

/// The names of a set of `count` files.
fn numbered(count: u32) -> Vec<String> {
    let name = |number| format!("m-{number:05}-of-{count:05}.gguf");
    (1..=count).map(name).collect()
}

/// Writes a set as one file again.
fn merged(part: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    Kinds::builtin()
        .convert(&[open(part).unwrap()], &mut bytes, &ConvertOptions::new(GGUF))
        .unwrap();
    bytes
}

#[test]
fn a_split_file_is_a_set_of_gguf_split_and_merges_into_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, to) = (whole(folder.path()), folder.path().join("to"));
    fs::create_dir(&to).unwrap();
    let split = parts_of(&whole, &to, 2, false).unwrap();
    assert_eq!(names_in(&to), numbered(3));
    assert_eq!((split.index, split.total_size), (None, 40));
    let expected = [&["d", "a"][..], &["e", "c"], &["b"]];
    for ((no, shard), expected) in (0u64..).zip(&split.shards).zip(expected) {
        // Under another name it is opened alone.
        let alone = folder.path().join("alone.gguf");
        fs::copy(&shard.path, &alone).unwrap();
        let alone = open(&alone).unwrap();
        let file = alone.file();
        let entries = file.entries();
        let in_order: Vec<&str> = entries.iter().map(|entry| entry.name()).collect();
        assert_eq!((in_order, shard.objects), (expected.to_vec(), expected.len() as u64));
        let attributes = file.attributes().unwrap().unwrap();
        let number = |key: &str| attributes.get(key).and_then(Value::as_u64);
        assert_eq!(number("split.no"), Some(no));
        assert_eq!(number("split.count"), Some(3));
        assert_eq!(number("split.tensors.count"), Some(5));
        assert_eq!(number("llama.block_count"), (no == 0).then_some(9));
        let types = attributes.get("gguf.types").unwrap().as_array().unwrap();
        let types = types.iter().rev().take(3).map(|pair| pair.as_array().unwrap()[1].as_str());
        let types: Vec<_> = types.map(Option::unwrap).collect();
        assert_eq!(types, ["int32", "uint16", "uint16"]);
        assert_eq!(merged(&shard.path), fs::read(&whole).unwrap());
    }
    // A set is split again, and a set of one file is an ordinary file.
    let (first, again) = (&split.shards[0].path, folder.path().join("again"));
    fs::create_dir(&again).unwrap();
    parts_of(first, &again, 1, false).unwrap();
    assert_eq!(names_in(&again), numbered(5));
    parts_of(first, &again, 5, false).unwrap();
    assert_eq!(fs::read(again.join("m.gguf")).unwrap(), fs::read(&whole).unwrap());
}

#[test]
fn no_half_of_a_gguf_set_is_published() {
    let folder = tempfile::tempdir().unwrap();
    let (path, to) = (whole(folder.path()), folder.path().join("to"));
    fs::create_dir(&to).unwrap();
    let code = |result: zt::Result<Split>| result.unwrap_err().code();
    // A file is in the way of the last part.
    let names = numbered(3);
    fs::write(to.join(&names[2]), "mine").unwrap();
    assert_eq!(code(parts_of(&path, &to, 2, false)), "overwrite");
    assert_eq!(names_in(&to), [names[2].clone()]);
    parts_of(&path, &to, 2, true).unwrap();
    assert_eq!(names_in(&to), names);
    // An input is never replaced, and another set of the same name stays.
    let first = to.join(&names[0]);
    assert_eq!(code(parts_of(&first, &to, 2, true)), "overwrite");
    parts_of(&first, &to, 3, true).unwrap();
    assert_eq!(names_in(&to).len(), 5);
    assert_eq!(merged(&first), fs::read(&path).unwrap());
}

/// The files that a kill leaves: the list of the parts, and some parts without the first.
#[test]
fn what_a_kill_leaves_of_a_gguf_set_is_removed_by_the_next_split() {
    let folder = tempfile::tempdir().unwrap();
    let (path, to) = (whole(folder.path()), folder.path().join("to"));
    fs::create_dir(&to).unwrap();
    parts_of(&path, &to, 2, false).unwrap();
    let names = numbered(3);
    let map = names.iter().map(|name| format!("{name:?}: {name:?}"));
    let map: Vec<String> = map.collect();
    let list = format!("{{\"weight_map\": {{{}}}}}", map.join(", "));
    let hidden = to.join(".m.gguf.index.json.zt-new");
    // Before the list is removed, the set is whole and stays.
    fs::write(&hidden, &list).unwrap();
    let error = parts_of(&path, &to, 2, false).unwrap_err();
    assert_eq!((error.code(), names_in(&to)), ("overwrite", names.clone()));
    // Before the first part has its name, no set is there.
    fs::write(&hidden, &list).unwrap();
    fs::remove_file(to.join(&names[0])).unwrap();
    assert!(open(&to.join(&names[1])).is_err());
    parts_of(&path, &to, 2, false).unwrap();
    assert_eq!(names_in(&to), names);
    assert_eq!(merged(&to.join(&names[2])), fs::read(&path).unwrap());
}

#[test]
fn a_gguf_set_has_at_most_65535_files() {
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..=u16::MAX).map(|number| number.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let path = folder.path().join("many.gguf");
    fs::write(&path, gguf(&names, &[])).unwrap();
    let error = parts_of(&path, folder.path(), 1, false).unwrap_err();
    assert_eq!(error.code(), "lossy");
    assert_eq!(names_in(folder.path()), ["many.gguf"]);
}
