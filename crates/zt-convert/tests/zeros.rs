//! Zeros that a download leaves at the end of a file.
#![allow(clippy::unwrap_used, reason = "tests")]
#![cfg(all(feature = "safetensors", feature = "gguf"))]

use std::fs;

use zt::VerifyOptions;

/// A safetensors file of f32 tensors. Every value is 1, except for the bytes from `zeros_from` of the data on.
fn file_of(tensors: &[(&str, &[u64])], zeros_from: usize) -> Vec<u8> {
    let mut header = serde_json::Map::new();
    let mut end = 0;
    for (name, shape) in tensors {
        let start = end;
        end += shape.iter().product::<u64>() * 4;
        let entry =
            serde_json::json!({"dtype": "F32", "shape": shape, "data_offsets": [start, end]});
        header.insert((*name).to_owned(), entry);
    }
    let mut header = serde_json::Value::from(header).to_string();
    header.push_str(&" ".repeat(504 - header.len()));
    let mut bytes = 504u64.to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    let end = usize::try_from(end).unwrap();
    let ones = std::iter::repeat_n(1.0f32.to_le_bytes(), end / 4);
    let mut data = ones.collect::<Vec<_>>().concat();
    data[zeros_from.min(end)..].fill(0);
    bytes.extend(data);
    bytes
}

/// The objects of the warnings `zero-tail`, with their messages.
fn warnings(bytes: &[u8]) -> Vec<(String, String)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    fs::write(&path, bytes).unwrap();
    let file = zt_convert::open(&path).unwrap();
    let report = file.verify(&VerifyOptions::new()).unwrap();
    assert!(report.is_ok(), "{:?}", report.problems);
    let warnings = report.warnings.into_iter();
    let tails = warnings.filter(|warning| warning.code == "zero-tail");
    tails.map(|it| (it.object.unwrap(), it.message)).collect()
}

#[test]
fn zeros_from_within_a_tensor_to_the_end_of_the_file_are_a_warning() {
    // Each begins 512 bytes before its data, behind the header.
    for (tensors, zeros_from, object) in [
        // To the end of this tensor, or on through others; at a page of the file, or not.
        (&[("a", &[4096][..])][..], 1000, "a"),
        (&[("a", &[4096]), ("b", &[8])], 3584, "a"),
        (&[("a", &[4096]), ("b", &[64, 64])], 16384 + 4, "b"),
        // At the beginning of a row, but at a page, too.
        (&[("a", &[8, 896]), ("b", &[8])], 3584, "a"),
        // Rows of 8 bytes, which no zeros can miss.
        (&[("a", &[2048, 2])], 1000, "a"),
    ] {
        let found = warnings(&file_of(tensors, zeros_from));
        let [(name, message)] = &found[..] else {
            panic!("{tensors:?} from {zeros_from}: {found:?}")
        };
        assert_eq!(name, object);
        let first = format!("from byte {} on", 512 + zeros_from);
        assert!(message.contains(&first), "{message}");
        assert!(message.contains("cut"), "{message}");
    }
}

#[test]
fn tensors_of_zeros_and_rows_of_zeros_are_no_sign_of_damage() {
    for (tensors, zeros_from) in [
        // No zeros; some zeros, as any values may be.
        (&[("w", &[4096][..])][..], usize::MAX),
        (&[("w", &[4096])], 16384 - 508),
        // A new bias, and several.
        (&[("w", &[1024]), ("x", &[1024])], 4096),
        (&[("w", &[1024]), ("x", &[1024]), ("y", &[1024])], 4096),
        // All values of a new model.
        (&[("w", &[4096])], 0),
        // The last rows of a table, which pad the vocabulary.
        (&[("w", &[100, 300])], 97 * 300 * 4),
        (&[("w", &[100, 300]), ("x", &[1024])], 97 * 300 * 4),
        (&[("w", &[100, 5, 60])], 97 * 300 * 4),
    ] {
        let found = warnings(&file_of(tensors, zeros_from));
        assert!(found.is_empty(), "{tensors:?} from {zeros_from}: {found:?}");
    }
}

#[test]
fn files_with_digests_and_archives_end_with_bytes_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.safetensors");
    fs::write(&path, file_of(&[("a", &[4096])], 3584)).unwrap();
    let input = || {
        let opened = zt_convert::Kinds::builtin().open(&path, zt::OpenOptions::new());
        [opened.unwrap()]
    };
    for (kind, expected) in
        [(zt_convert::ZT, 0), (zt_convert::GGUF, 1), (zt_convert::SAFETENSORS, 1)]
    {
        let mut out = Vec::new();
        let options = zt_convert::ConvertOptions::new(kind);
        zt_convert::Kinds::builtin().convert(&input(), &mut out, &options).unwrap();
        assert_eq!(warnings(&out).len(), expected, "{kind}");
    }
}
