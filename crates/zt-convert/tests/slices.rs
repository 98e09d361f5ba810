//! safetensors files with slices of tensors, joined.
#![cfg(feature = "safetensors")]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::borrow::Cow;

use zt::Memory;
use zt_convert::{ConvertOptions, Input, InputOptions, Kinds, ZT, join_slices};

/// A file with one tensor `w` of zeros, whose slice begins at `offsets`.
fn file(dtype: &str, shape: &str, len: usize, info: &str) -> Input {
    let info = info.replace('"', "\\\"");
    let header = format!(
        r#"{{"__metadata__":{{"DCP_VERSION":"1.0","DCP_SHARDING_INFO":"{info}","k":"v"}},"w":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[0,{len}]}}}}"#
    );
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.bytes());
    bytes.resize(bytes.len() + len, 0);
    let opened = Kinds::builtin().open_source(Memory::new(bytes), InputOptions::new());
    opened.unwrap()
}

fn at(shape: &str, len: usize, offsets: &str) -> Input {
    file("U8", shape, len, &format!(r#"{{"w": {{"saved_offsets": {offsets}}}}}"#))
}

/// The code of the fault of `w`, if it has one; its shape.
fn joined(inputs: &[Input]) -> Result<Vec<u64>, &'static str> {
    let joined = join_slices(inputs).unwrap();
    assert_eq!(joined.len(), 1);
    let tensor = joined[0].file().tensor("w");
    tensor.map(|tensor| tensor.shape().to_vec()).map_err(|error| error.code())
}

#[test]
fn slices_are_joined_in_any_order() {
    let files = [at("[1, 3]", 3, "[2, 0]"), at("[2, 1]", 2, "[0, 2]"), at("[2, 2]", 4, "[0, 0]")];
    assert_eq!(joined(&files), Ok(vec![3, 3]));
    let joined = join_slices(&files).unwrap();
    let attributes = joined[0].file().attributes().unwrap().unwrap();
    let keys: Vec<_> = attributes.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, [Some("k")]);
}

#[test]
fn gaps_and_overlaps_are_faults_and_are_never_filled() {
    let first = || at("[2, 2]", 4, "[0, 0]");
    assert_eq!(joined(&[first(), at("[1, 2]", 2, "[3, 0]")]), Err("missing-component"));
    assert_eq!(joined(&[first(), at("[2, 2]", 4, "[1, 0]")]), Err("overlap"));
    assert_eq!(joined(&[first(), first()]), Err("overlap"));
    assert_eq!(joined(&[first(), at("[2]", 2, "[2]")]), Err("shape-size-mismatch"));
    assert_eq!(joined(&[first(), at("[2, 2]", 4, "[2]")]), Err("shape-size-mismatch"));
    let info = r#"{"w": {"saved_offsets": [2, 0]}}"#;
    assert_eq!(joined(&[first(), file("I8", "[2, 2]", 4, info)]), Err("dtype"));
    let far = at("[1, 2]", 2, "[18446744073709551615, 0]");
    assert_eq!(joined(&[first(), far]), Err("bounds"));
    // The fault of a tensor ends a conversion.
    let mut sink = Vec::new();
    let inputs = [first(), first()];
    let options = ConvertOptions::new(ZT);
    let error = zt_convert::Kinds::builtin().convert(&inputs, &mut sink, &options).unwrap_err();
    assert_eq!((error.code(), error.object()), ("overlap", Some("w")));
}

#[test]
fn one_file_is_a_part_and_stays_as_it_is() {
    let inputs = [at("[2, 2]", 4, "[2, 0]")];
    assert!(matches!(join_slices(&inputs).unwrap(), Cow::Borrowed(_)));
    assert_eq!(inputs[0].file().warnings()[0].code, "slices");
    let options = ConvertOptions::new(ZT);
    let error = zt_convert::Kinds::builtin().convert(&inputs, Vec::new(), &options).unwrap_err();
    assert_eq!(error.code(), "lossy");
    // Offsets of whole tensors are noted, too.
    assert!(at("[2, 2]", 4, "[0, 0]").file().warnings().is_empty());
}

#[test]
fn other_inputs_keep_their_places() {
    let other = |name: &str| {
        let mut bytes = Vec::new();
        let mut writer = zt::Writer::new(&mut bytes).unwrap();
        let dense = zt::Dense::from_slice(&[1], &[1u8]).unwrap();
        writer.add(name, &dense).unwrap();
        writer.finish().unwrap();
        Input::from(zt::File::from_bytes(bytes).unwrap())
    };
    let inputs = [other("a"), at("[1]", 1, "[1]"), other("b"), at("[1]", 1, "[0]")];
    let joined = join_slices(&inputs).unwrap();
    let names: Vec<&str> = joined.iter().flat_map(|input| input.file().names()).collect();
    assert_eq!(names, ["a", "w", "b"]);
}

#[test]
fn invalid_offsets_are_a_tolerated_fault_of_one_file() {
    let broken = || file("U8", "[2]", 2, "{");
    assert_eq!(broken().file().warnings()[0].code, "header");
    let error = join_slices(&[broken(), broken()]).unwrap_err();
    assert_eq!(error.code(), "header");
}
