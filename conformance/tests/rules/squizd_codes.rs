//! Errors and warnings of SQUIZD files that break a rule or are ambiguous.

use zt::ErrorKind;
use zt_conformance::squizd::{Layer, Squizd, block, flag, fnv1a, plain};

use super::{SUB_BLOCK, open, patched, smallest};

/// A file that declares its draft head at this offset.
fn with_draft_at(file: &Squizd, offset: u64) -> Vec<u8> {
    let mut bytes = patched(file.to_bytes(), 160, &offset.to_le_bytes());
    let hash = fnv1a(&bytes[160..192]);
    bytes[18..26].copy_from_slice(&hash.to_le_bytes());
    bytes
}

fn draft() -> Squizd {
    Squizd { draft: Some((1, vec![plain(&[1], &[5.0])])), ..smallest() }
}

fn sparse(version: u32, layers: u32, mean: f32) -> Squizd {
    Squizd { sparsity: Some((version, 16, layers, mean)), ..smallest() }
}

/// Eight values, or none, with an entry of their own and so many of sub-blocks.
fn int4(rows: u32, whole: (f32, f32), parts: usize) -> Squizd {
    let values = vec![0x98; 2 * rows as usize];
    Squizd {
        tables: vec![vec![(7, whole.0, whole.1)], vec![(7 | SUB_BLOCK, 2.0, 0.0); parts]],
        ..Squizd::one(flag::INT4, vec![block(b"INT4", &[rows, 4], &values)])
    }
}

/// Five values.
fn int2(sub_block_len: u32, parts: usize) -> Squizd {
    let fields = [1, 5, sub_block_len];
    Squizd {
        tables: int4(0, (1.0, 0.0), parts).tables,
        ..Squizd::one(flag::INT2, vec![block(b"INT2", &fields, &[0b11_10_01_00, 3])])
    }
}

#[test]
fn a_broken_file_is_refused_by_the_code_of_its_rule() {
    let (malformed, mismatch) = (ErrorKind::Malformed, ErrorKind::DigestMismatch);
    let mut no_layers = smallest().to_bytes();
    no_layers.truncate(256);
    no_layers[10] = 0;
    let mut two = smallest();
    two.layers.push(Layer { idx: 1, ..two.layers[0].clone() });
    let first = 320u64.to_le_bytes();
    for (about, bytes, kind, code) in [
        ("header", smallest().to_bytes()[..255].to_vec(), malformed, "truncated"),
        ("no layers", no_layers, malformed, "header"),
        ("index", smallest().to_bytes()[..287].to_vec(), malformed, "truncated"),
        ("weights", smallest().to_bytes()[..288].to_vec(), malformed, "bounds"),
        ("version", patched(smallest().to_bytes(), 4, &[2]), malformed, "version"),
        ("flags", patched(smallest().to_bytes(), 6, &[0x80]), malformed, "header"),
        (
            "over the index",
            patched(smallest().to_bytes(), 260, &256u64.to_le_bytes()),
            malformed,
            "bounds",
        ),
        ("layers", patched(two.to_bytes(), 292, &first), malformed, "overlap"),
        ("sparsity", sparse(2, 0, 0.5).to_bytes(), malformed, "version"),
        ("its sum", patched(sparse(1, 0, 0.5).to_bytes(), 128, &[9]), mismatch, "digest-mismatch"),
        ("draft", patched(draft().to_bytes(), 160, &[9]), mismatch, "digest-mismatch"),
    ] {
        let error = open(&bytes, false).unwrap_err();
        assert_eq!((error.kind(), error.code()), (kind, code), "{about}");
    }
}

#[test]
fn reserved_flags_with_an_old_meaning_are_named() {
    for (bits, expected) in [
        (1u32 << 7, [true, false]),
        (1 << 8, [false, true]),
        (3 << 7, [true, true]),
        (1 << 9, [false, false]),
    ] {
        let file = patched(smallest().to_bytes(), 6, &bits.to_le_bytes());
        let message = open(&file, false).unwrap_err().message();
        let named = ["MXFP4", "INT3"].map(|old| message.contains(old));
        assert_eq!(named, expected, "{message}");
    }
}

#[test]
fn a_broken_tensor_is_refused_by_the_code_of_its_rule() {
    let shape = "shape-size-mismatch";
    let flags = flag::INT4 | flag::ASTC | flag::TCA_TBE;
    let second = |block: Vec<u8>| Squizd::one(flags, vec![plain(&[1], &[1.0]), block]).to_bytes();
    let most = u32::MAX;
    for (bytes, name, code) in [
        (second(block(b"NPCL", &[3, 1, 1], &[0; 4])), "layers.0.1", "dtype"),
        (second(block(b"NPCL", &[0, 3, most, most, most], &[])), "layers.0.1", shape),
        (second(block(b"INT4", &[most, most], &[])), "layers.0.1", shape),
        (second(block(b"TCAW", &[2, 65], &[1; 31])), "layers.0.1", shape),
        (second(block(b"ASTW", &[16, 5, 6], &[7; 32])), "layers.0.1", "unsupported"),
        (second(b"XXXX0000".to_vec()), "layers.0.1", "header"),
        (int2(2, 2).to_bytes(), "layers.0.0", shape),
        (with_draft_at(&draft(), 256), "draft.0", "overlap"),
    ] {
        let error = open(&bytes, false).unwrap().tensor(name).unwrap_err();
        let kind = match code {
            "unsupported" => ErrorKind::Unsupported,
            _ => ErrorKind::Malformed,
        };
        assert_eq!((error.kind(), error.code()), (kind, code));
    }
    let refused = |file: &Squizd| {
        let file = open(&file.to_bytes(), false).unwrap();
        let error = file.tensor("layers.0.0").unwrap_err();
        error.code()
    };
    let mut none = int4(2, (0.5, 1.0), 0);
    none.tables.clear();
    assert_eq!(refused(&none), "missing-component");
    for (rows, parts) in [(2, 3), (0, 1)] {
        assert_eq!(refused(&int4(rows, (0.5, 1.0), parts)), shape);
    }
}

#[test]
fn faults_that_only_strict_readers_refuse_have_a_code() {
    let layers = |count: u32| {
        let mut file = smallest();
        let layer = file.layers.remove(0);
        file.layers = (0..count).map(|idx| Layer { idx, ..layer.clone() }).collect();
        file
    };
    assert!(open(&layers(512).to_bytes(), true).is_ok());
    for (file, code) in [
        (layers(513), "header"),
        (sparse(1, 0, -0.5), "value"),
        (int4(2, (f32::INFINITY, 0.0), 0), "value"),
    ] {
        let bytes = file.to_bytes();
        assert!(open(&bytes, false).is_ok());
        assert_eq!(open(&bytes, true).unwrap_err().code(), code);
    }
}

#[test]
fn ambiguous_parts_have_a_warning() {
    let warned = |file: &Squizd| {
        let warnings = open(&file.to_bytes(), true).unwrap().warnings();
        assert!(warnings.iter().all(|warning| warning.code == "ambiguous"));
        let objects = warnings.into_iter().map(|warning| warning.object);
        objects.collect::<Vec<_>>()
    };
    let tensor = Some("layers.0.0".to_owned());
    assert!(warned(&sparse(1, 0, 0.5)).is_empty());
    assert_eq!(warned(&sparse(1, 1, 0.5)), [None]);
    for (whole, expected) in [((0.5, 1.0), vec![tensor.clone()]), ((1.0, 0.0), vec![])] {
        let file = int4(2, whole, 2);
        assert_eq!(warned(&file), expected);
        let file = open(&file.to_bytes(), true).unwrap();
        let attributes = file.tensor("layers.0.0").unwrap().attributes().clone();
        let number = |key: &str| attributes.get(key).and_then(zt::Value::as_f64);
        assert_eq!(number("squizd.tensor_scale"), Some(f64::from(whole.0)));
        assert_eq!(number("squizd.tensor_zero"), Some(f64::from(whole.1)));
    }
    assert_eq!(warned(&int2(2, 0)), [tensor]);
}

#[test]
fn an_appendix_after_a_broken_part_is_a_fault() {
    let mut file = draft();
    let nowhere = with_draft_at(&file, u64::MAX);
    let nowhere = open(&nowhere, false).unwrap();
    assert_eq!(nowhere.tensor("draft.0").unwrap_err().code(), "bounds");
    assert_eq!(nowhere.tensor("coreml").unwrap_err().code(), "not-found");
    file.appendix = Some(b"PK".to_vec());
    let lost = open(&with_draft_at(&file, u64::MAX), false).unwrap();
    let error = lost.tensor("coreml").unwrap_err();
    assert_eq!(error.code(), "header");
    assert!(error.message().contains("CoreML"), "{error}");
}

#[test]
fn draft_heads_of_earlier_tools_are_named() {
    let begins = draft().to_bytes().len() - 28;
    for (magic, expected) in [(b"ANML", true), (b"EAGL", true), (b"XXXX", false)] {
        let file = open(&patched(draft().to_bytes(), begins, magic), false).unwrap();
        let message = file.tensor("draft.0").unwrap_err().message();
        let found = String::from_utf8_lossy(magic);
        assert!(message.contains(&*found), "{message}");
        assert_eq!(message.contains("earlier tool"), expected, "{message}");
    }
}
