//! Several GGUF files as one: their pairs are merged.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
#![cfg(feature = "gguf")]

use zt::{Dense, File, Memory, Value, Writer};
use zt_convert::{ConvertOptions, GGUF, Input, Summary, ZT, convert};

fn opened(bytes: Vec<u8>) -> File {
    zt_convert::open_source(Memory::new(bytes)).unwrap()
}

fn to(options: &ConvertOptions<'_>, file: &File) -> zt::Result<(Vec<u8>, Summary)> {
    let mut bytes = Vec::new();
    let summary = convert(&[Input::from(file.clone())], &mut bytes, options)?;
    Ok((bytes, summary))
}

/// A file with these pairs, and a tensor with this name.
fn with_pairs<const N: usize>(name: &str, pairs: [(&str, u32); N]) -> File {
    let mut ours = Vec::new();
    let mut writer = Writer::new(&mut ours).unwrap();
    let dense = Dense::from_slice(&[1], &[1.0f32]).unwrap();
    writer.add(name, &dense).unwrap();
    writer.set_attributes(pairs.into());
    writer.finish().unwrap();
    opened(to(&ConvertOptions::new(GGUF), &opened(ours)).unwrap().0)
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
    assert_eq!(keys.collect::<Vec<_>>(), ["b", "k", "a", "c", "gguf.types"]);
    // An incomplete set remains a part of its set.
    let (_, summary) = merged(&[0, 2]).unwrap();
    let codes = summary.warnings.iter().map(|it| it.code);
    assert_eq!(codes.filter(|code| *code == "split").count(), 2);
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
    for (count, codes) in [(3u64, &["split"][..]), (1, &[])] {
        let mut ours = Vec::new();
        let mut writer = Writer::new(&mut ours).unwrap();
        let dense = Dense::from_slice(&[1], &[1.0f32]).unwrap();
        writer.add("w", &dense).unwrap();
        writer.set_attributes([("split.count", Value::from(count))].into());
        writer.finish().unwrap();
        let part = opened(to(&ConvertOptions::new(GGUF), &opened(ours)).unwrap().0);
        let codes_of = |found: Vec<zt::Warning>| found.iter().map(|it| it.code).collect::<Vec<_>>();
        assert_eq!(codes_of(part.warnings()), codes);
        // The warning is repeated for the output.
        let (_, summary) = to(&ConvertOptions::new(GGUF), &part).unwrap();
        assert_eq!(codes_of(summary.warnings), codes);
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
    assert_eq!(count_of(&[1, 2], 2), Some(2));
    assert_eq!(count_of(&[0], 1), Some(1));
}
