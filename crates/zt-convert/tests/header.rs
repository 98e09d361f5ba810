//! The rules of a safetensors header, each broken alone.
#![allow(clippy::unwrap_used, reason = "tests")]
#![cfg(feature = "safetensors")]

use zt::{Error, File, Memory, Result};
use zt_convert::{Kinds, SAFETENSORS};

/// A file with this header and `data` zero bytes of data.
fn file_of(header: &str, data: usize) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    bytes.resize(bytes.len() + data, 0);
    bytes
}

fn open(bytes: Vec<u8>) -> Result<File> {
    assert_eq!(Kinds::builtin().detect(&Memory::new(&bytes))?, Some(SAFETENSORS));
    zt_convert::open_source(Memory::new(bytes))
}

fn refused(header: &str, data: usize) -> Error {
    let error = open(file_of(header, data)).unwrap_err();
    let is_cut = error.message().starts_with("truncated: ");
    let code = if is_cut { "truncated" } else { "header" };
    assert_eq!(error.code(), code, "{header}: {error}");
    error
}

const W: &str = r#"{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#;

#[test]
fn a_sound_header_opens() {
    let file = open(file_of(W, 8)).unwrap();
    assert_eq!(*file.tensor("w").unwrap().values::<f32>().unwrap(), [0.0, 0.0]);
    assert!(file.attributes().unwrap().is_none());
    assert_eq!(open(file_of("{}", 0)).unwrap().len(), 0);
    assert_eq!(open(file_of(&format!("{W}   "), 8)).unwrap().len(), 1);
}

#[test]
fn values_are_borrowed_from_memory() {
    let file = open(file_of(&format!("{W}  "), 8)).unwrap();
    let tensor = file.tensor("w").unwrap();
    assert!(matches!(tensor.bytes("data").unwrap(), zt::Bytes::Borrowed(_)));
}

#[test]
fn every_cut_is_refused() {
    let whole = file_of(W, 8);
    for len in 0..whole.len() {
        let cut = whole[..len].to_vec();
        let code = zt_convert::open_source(Memory::new(cut)).unwrap_err().code();
        assert_eq!(code, if len <= 8 { "unknown-kind" } else { "truncated" }, "{len}");
    }
}

#[test]
fn a_header_longer_than_the_limit_is_refused_before_it_is_read() {
    for declared in [100_000_001u64, 1 << 40, u64::MAX] {
        let mut bytes = file_of(W, 8);
        bytes[..8].copy_from_slice(&declared.to_le_bytes());
        let error = open(bytes).unwrap_err();
        assert_eq!((error.code(), error.offset()), ("header", Some(0)));
        assert!(error.to_string().contains("100000000"), "{error}");
    }
    // A header at the limit is allowed, but this file is too short for it.
    let mut bytes = file_of(W, 8);
    bytes[..8].copy_from_slice(&100_000_000u64.to_le_bytes());
    assert_eq!(open(bytes).unwrap_err().code(), "truncated");
}

#[test]
fn only_white_space_is_around_the_header() {
    for header in [format!(" {W}"), format!("\t\n{W}"), format!("{W} \r\n")] {
        let bytes = file_of(&header, 8);
        let file = open(bytes.clone()).unwrap();
        assert_eq!(file.warnings()[0].code, "header", "{header:?}");
        let strict = zt::OpenOptions::new().strict(true);
        let kinds = zt_convert::Kinds::builtin();
        let error = kinds.open_source(Memory::new(bytes), strict).unwrap_err();
        assert_eq!(error.code(), "header", "{header:?}");
    }
    for padding in ["\0", "x", "{}", "\u{a0}"] {
        let error = refused(&format!("{W}{padding}"), 8);
        assert!(error.offset().unwrap() >= 8 + W.len() as u64, "{padding:?}");
    }
}

#[test]
fn faults_of_the_json_name_their_byte_and_their_tensor() {
    let header = r#"{"v":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},
        "w":{"dtype":"F99","shape":[2],"data_offsets":[8,16]}}"#;
    let error = refused(header, 16);
    assert_eq!(error.object(), Some("w"));
    let at = header.find("F99").unwrap() as u64 + 8;
    // The parser stops at the end of the text.
    assert!((at..at + 4).contains(&error.offset().unwrap()), "{error:?}");
}

/// The error has the offset, so the parser's line and column are left out.
#[test]
fn faults_of_the_json_have_no_line_numbers() {
    let entry = |dtype: &str, shape: &str, offsets: &str| {
        format!(r#"{{"w":{{"dtype":{dtype},"shape":{shape},"data_offsets":{offsets}}}}}"#)
    };
    for header in [
        r#"{"__metadata__":[]}"#.to_owned(),
        r#"{"w":[]}"#.to_owned(),
        entry(r#""F99""#, "[]", "[0,4]"),
        entry(r#""F32""#, "4", "[0,4]"),
        entry(r#""F32""#, "[]", "4"),
    ] {
        let text = refused(&header, 4).to_string();
        assert!(!text.contains("line"), "{text}");
    }
}

/// As the official library reads it.
#[test]
fn null_metadata_means_none() {
    let header = W.replacen('{', r#"{"__metadata__":null,"#, 1);
    let file = open(file_of(&header, 8)).unwrap();
    assert_eq!(file.tensor("w").unwrap().bytes("data").unwrap().len(), 8);
    assert!(file.attributes().unwrap().is_none_or(|it| it.is_empty()));
    let twice = header.replacen('{', r#"{"__metadata__":{},"#, 1);
    refused(&twice, 8);
}

#[test]
fn entries_are_objects_of_their_three_fields() {
    let entries = [
        r#"["F32",[2],[0,8]]"#,
        r#"{"dtype":{"F32":null},"shape":[2],"data_offsets":[0,8]}"#,
        r#"{"dtype":"F32","shape":[2]}"#,
        r#"{"dtype":"F32","data_offsets":[0,8]}"#,
        r#"{"shape":[2],"data_offsets":[0,8]}"#,
        r#"{"dtype":"F32","shape":2,"data_offsets":[0,8]}"#,
        r#"{"dtype":"F32","shape":[2],"data_offsets":[0]}"#,
        r#"{"dtype":"F32","shape":[2],"data_offsets":[]}"#,
        r#"{"dtype":"F32","shape":[2],"data_offsets":[0,8,8]}"#,
        r#"{"dtype":"F32","shape":[2],"data_offsets":{"start":0,"end":8}}"#,
        r#"{"dtype":"F32","shape":[2e0],"data_offsets":[0,8]}"#,
        r#"{"dtype":"F32","shape":[-0],"data_offsets":[0,0]}"#,
        r#"{"dtype":"F32","shape":[18446744073709551616],"data_offsets":[0,8]}"#,
        r#"{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}"#,
        r#"{"dtype":"F32","shape":[2],"data_offsets":[0,8],"data_offsets":[0,8]}"#,
        r#"{"dtype":"F32","shape":[2],"\u0073hape":[2],"data_offsets":[0,8]}"#,
        "null",
    ];
    for entry in entries {
        let error = refused(&format!(r#"{{"w":{entry}}}"#), 8);
        assert_eq!(error.object(), Some("w"), "{entry}");
    }
}

#[test]
fn unknown_fields_are_skipped_within_bounds() {
    let with = |value: &str| {
        format!(r#"{{"w":{{"dtype":"F32","note":{value},"shape":[2],"data_offsets":[0,8]}}}}"#)
    };
    let values = r#"[null,true,-1,1,1.5,"ä",{"k":[]},"\ud83d\ude00"]"#;
    assert!(open(file_of(&with(values), 8)).is_ok());
    refused(&with(r#""\ud800""#), 8);
    refused(&with(&"[".repeat(100_000)), 8);
    let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
    refused(&with(&deep), 8);
}

#[test]
fn metadata_are_unique_texts() {
    let with = |metadata: &str| format!(r#"{{"__metadata__":{metadata}}}"#);
    let file = open(file_of(&with(r#"{"b":"1","a":""}"#), 0)).unwrap();
    let attributes = file.attributes().unwrap().unwrap();
    let keys: Vec<_> = attributes.iter().map(|(key, _)| key.as_str().unwrap()).collect();
    assert_eq!(keys, ["b", "a"]);
    assert!(open(file_of(&with("{}"), 0)).unwrap().attributes().unwrap().unwrap().is_empty());
    for metadata in ["[]", r#"{"k":1}"#, r#"{"k":null}"#, r#"{"k":"1","\u006b":"1"}"#] {
        refused(&with(metadata), 0);
    }
    refused(r#"{"__metadata__":{},"__metadata\u005f_":{}}"#, 0);
}

#[test]
fn data_have_no_gaps_and_no_overlaps() {
    let two = |first: [u64; 2], second: [u64; 2]| {
        format!(
            r#"{{"a":{{"dtype":"U8","shape":[{}],"data_offsets":{first:?}}},
                "b":{{"dtype":"U8","shape":[{}],"data_offsets":{second:?}}}}}"#,
            first[1].wrapping_sub(first[0]),
            second[1].wrapping_sub(second[0]),
        )
    };
    assert!(open(file_of(&two([4, 8], [0, 4]), 8)).is_ok());
    assert!(open(file_of(&two([0, 8], [0, 0]), 8)).is_ok());
    let gap = refused(&two([0, 4], [5, 8]), 8);
    assert_eq!(gap.object(), Some("b"));
    refused(&two([0, 4], [3, 8]), 8);
    refused(&two([0, 8], [0, 8]), 8);
    refused(&two([0, 8], [4, 4]), 8);
    refused(&two([1, 4], [4, 8]), 8);
    refused(&two([0, 4], [4, 7]), 8);
    refused(&two([0, 4], [4, 9]), 8);
    refused(&two([0, 4], [u64::MAX - 4, u64::MAX]), 8);
    // A fault of the data is reported at its byte in the file.
    let header = two([0, 4], [5, 8]);
    assert_eq!(refused(&header, 8).offset(), Some(8 + header.len() as u64 + 5));
}

#[test]
fn a_hundred_thousand_tensors_open() {
    use std::fmt::Write;
    let mut header = String::from("{");
    for at in 0..100_000 {
        let (start, end) = (at * 4, at * 4 + 4);
        write!(
            header,
            r#""layer.{at}":{{"dtype":"F32","shape":[1],"data_offsets":[{start},{end}]}},"#
        )
        .unwrap();
    }
    header.replace_range(header.len() - 1.., "}");
    let file = open(file_of(&header, 400_000)).unwrap();
    assert_eq!(file.len(), 100_000);
    assert_eq!(file.tensor("layer.99999").unwrap().shape(), [1]);
}

#[test]
fn a_file_with_one_changed_byte_reads_or_is_refused() {
    let header = format!(r#"{{"__metadata__":{{"k":"v"}},{}"#, &W[1..]);
    let whole = file_of(&header, 8);
    for at in 0..whole.len() - 8 {
        for byte in [0, b' ', b'"', b'0', b'9', b'[', b'}', b',', b'\\', 0x7f, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            match zt_convert::open_source(Memory::new(bytes)) {
                Ok(file) => assert!(file.verify(&zt::VerifyOptions::default()).unwrap().is_ok()),
                Err(error) => assert!(
                    matches!(error.code(), "header" | "truncated" | "unknown-kind"),
                    "{error}"
                ),
            }
        }
    }
}

/// The length 0x180 looked like a pickle's first bytes.
#[test]
fn a_header_of_any_length_is_recognised() {
    let header = br#"{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}"#;
    let mut bytes = [&[0; 8], &header[..], &[b' '; 600]].concat();
    for len in (2..=0x1_0000u64).chain((1..27).map(|bit| (1 << bit) + 0x180)) {
        bytes[..8].copy_from_slice(&len.to_le_bytes());
        let kind = zt_convert::Kinds::builtin().detect(&Memory::new(&bytes[..])).unwrap();
        assert_eq!(kind, Some(SAFETENSORS), "{len:#x}");
    }
}
