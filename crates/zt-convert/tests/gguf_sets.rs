//! Several GGUF files as one: their pairs are merged.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
#![cfg(feature = "gguf")]

use zt::{File, Memory, Value, Writer};
use zt_convert::{ConvertOptions, GGUF, Input, Kinds, Summary, ZT, convert, convert_to_path};

fn opened(bytes: Vec<u8>) -> File {
    zt_convert::open_source(Memory::new(bytes)).unwrap()
}

fn to(options: &ConvertOptions<'_>, file: &File) -> zt::Result<(Vec<u8>, Summary)> {
    let mut bytes = Vec::new();
    let summary = convert(&[Input::from(file.clone())], &mut bytes, options)?;
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
        let pairs = [
            ("split.no", no),
            ("split.count", 3),
            ("split.tensors.count", 3),
            ("k", 7),
            (key, no),
        ];
        with_pairs(key, pairs)
    };
    let merged = |numbers: &[u32]| {
        let inputs: Vec<Input> = numbers.iter().map(|no| part(*no).into()).collect();
        let (mut bytes, options) = (Vec::new(), ConvertOptions::new(GGUF));
        convert(&inputs, &mut bytes, &options).map(|summary| (opened(bytes), summary))
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
fn folder_of_parts() -> (tempfile::TempDir, [std::path::PathBuf; 3]) {
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
        std::fs::write(path, gguf(names, &pairs[..first])).unwrap();
    }
    (folder, paths)
}

fn open(path: &std::path::Path) -> zt::Result<Input> {
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
        assert_eq!(
            keys.collect::<Vec<_>>(),
            ["llama.block_count", "gguf.types"]
        );
        let out = folder.path().join("whole.gguf");
        let mut options = ConvertOptions::new(GGUF);
        options.overwrite = true;
        convert_to_path(&inputs, &out, &options).unwrap();
        written.push(std::fs::read(&out).unwrap());
        let replaced = convert_to_path(&inputs, &paths[2], &options).unwrap_err();
        assert_eq!(replaced.code(), "overwrite");
    }
    assert!(written.iter().all(|bytes| *bytes == written[0]));
    // Only different parts are one input: what was opened twice was meant twice.
    let twice = [0, 0].map(|at: usize| open(&paths[at]).unwrap());
    let error = convert(&twice, Vec::new(), &ConvertOptions::new(ZT)).unwrap_err();
    assert_eq!(error.code(), "duplicate-name");
}

#[test]
fn a_part_that_is_missing_or_of_another_set_is_named() {
    let (folder, paths) = folder_of_parts();
    let message = |path: &std::path::Path| {
        let error = open(path).unwrap_err();
        (error.code(), error.to_string())
    };
    // Its name says where the others are.
    let renamed = folder.path().join("renamed.gguf");
    std::fs::copy(&paths[1], &renamed).unwrap();
    let alone = open(&renamed).unwrap();
    assert_eq!(alone.file().warnings()[0].code, "split");
    let error = convert(&[alone], Vec::new(), &ConvertOptions::new(ZT)).unwrap_err();
    assert_eq!(error.code(), "lossy");

    std::fs::copy(&paths[0], &paths[1]).unwrap();
    let (code, text) = message(&paths[0]);
    assert!(
        code == "header" && text.contains("m-00002-of-00003.gguf"),
        "{text}"
    );
    std::fs::remove_file(&paths[1]).unwrap();
    for path in [&paths[0], &paths[2]] {
        let (code, text) = message(path);
        assert!(
            code == "path" && text.contains("m-00002-of-00003.gguf"),
            "{text}"
        );
    }
}

#[test]
fn types_of_several_files_are_joined_and_written_to_gguf_and_zt_only() {
    let inputs = [
        with_pairs("v", [("a", 1)]).into(),
        with_pairs("w", [("b", 2), ("a", 1)]).into(),
    ];
    let mut bytes = Vec::new();
    let summary = convert(&inputs, &mut bytes, &ConvertOptions::new(GGUF)).unwrap();
    assert!(summary.warnings.is_empty(), "{:?}", summary.warnings);
    let attributes = opened(bytes).attributes().unwrap().unwrap();
    let types = attributes.get("gguf.types").unwrap().as_array().unwrap();
    assert_eq!(types.len(), 2);
    let mut bytes = Vec::new();
    convert(&inputs, &mut bytes, &ConvertOptions::new(ZT)).unwrap();
    assert_eq!(opened(bytes).attributes().unwrap().unwrap(), attributes);
    #[cfg(feature = "safetensors")]
    {
        let mut ours = Vec::new();
        let mut writer = Writer::new(&mut ours).unwrap();
        writer.set_attributes([("format", "pt")].into());
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
        convert(&parts.collect::<Vec<_>>(), &mut bytes, &options).unwrap();
        let attributes = opened(bytes).attributes().unwrap().unwrap_or_default();
        attributes.get("split.count").and_then(Value::as_u64)
    };
    assert_eq!(count_of(&[0, 1], 2), None);
    assert_eq!(count_of(&[1, 2], 2), None);
    assert_eq!(count_of(&[0], 1), Some(1));
}
