//! Tools of kinds: packed values, addresses that are shown, hashes.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use zt::formats::PackedType;
use zt::{Memory, Source};
use zt_foreign::{Packing, fnv1a, refusal, without_secrets};

#[test]
fn bytes_are_the_same_wherever_reading_begins() {
    for packed in PackedType::ALL {
        let codes: Vec<u8> = (0..=255).cycle().take(2 * 16384 + 3).collect();
        let mut expected = vec![0; usize::try_from(packed.byte_len(codes.len() as u64)).unwrap()];
        packed.pack(&codes, &mut expected);
        let stored = [&[0xaa; 5][..], &codes].concat();
        let count = codes.len() as u64;
        let source = Packing::new(Arc::new(Memory::new(stored)), 5, count, packed);
        assert_eq!(source.byte_len(), expected.len() as u64);
        let len = expected.len();
        for start in (0..7).chain([len / 2, len - 1, len]) {
            for end in [start, start + 1, start + 5, len] {
                let Some(expected) = expected.get(start..end) else {
                    continue;
                };
                let mut bytes = vec![0; expected.len()];
                source.read_at(start as u64, &mut bytes).unwrap();
                assert_eq!(bytes, expected, "{packed} {start}..{end}");
            }
        }
        assert!(source.read_at(len as u64, &mut [0]).is_err());
    }
}

#[test]
fn signatures_and_passwords_are_not_shown() {
    for (text, clean) in [
        ("no address", "no address"),
        ("GET https://a.b/c?sig=x&y failed", "GET https://a.b/c?… failed"),
        ("(s3://k:secret@b/x)", "(s3://…@b/x)"),
        ("https://token@host/x", "https://…@host/x"),
        ("az://box@acc.net/x", "az://box@acc.net/x"),
        ("abfss://box:key@acc.net/x", "abfss://…@acc.net/x"),
        ("hf://o/r@main/x", "hf://o/r@main/x"),
        ("https://a/b#t https://c/d?e", "https://a/b?… https://c/d?…"),
        ("s3://k:ab/cd@b/x: no", "s3://…@b/x: no"),
        ("s3://k:a?b#c/d@b/x", "s3://…@b/x"),
        ("s3:/u:secret@b/x", "s3:/…@b/x"),
        ("(https:u:secret@h/x?y)", "(https:…@h/x?…)"),
        ("abfs:/box:se/cret@acc/x", "abfs:/…@acc/x"),
        ("https://h:80/a?mail=b@c", "https://h:80/a?…"),
        ("error: http: a@b", "error: http: a@b"),
        ("data:x@y and a::b", "data:x@y and a::b"),
    ] {
        assert_eq!(without_secrets(text), clean);
    }
}

#[test]
fn hashes_as_published() {
    assert_eq!(fnv1a([]), 0xCBF2_9CE4_8422_2325);
    assert_eq!(fnv1a(*b"a"), 0xAF63_DC4C_8601_EC8C);
    assert_eq!(fnv1a(*b"tok_embeddings.weight"), 0x771E_F68A_9B91_C762);
    assert_eq!(fnv1a([0; 32]), 0x0C82_1078_4D8A_F5A5);
}

#[test]
fn locations_must_be_below_the_folder() {
    for location in ["a", "./a", "a/b.bin", "..a", "a..b", "ä b", "a/./b", "a//b"] {
        assert_eq!(refusal(location), None, "{location}");
    }
    for location in
        ["", ".", "./", "..", "../a", "a/../b", "a/..", "/a", "//a", "a\\b", "..\\a", "a\0"]
    {
        assert!(refusal(location).is_some(), "{location}");
    }
    assert_eq!(refusal("a:b").is_some(), cfg!(windows));
}
