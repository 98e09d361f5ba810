//! Folders of the tests.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use std::fs;
use std::path::Path;

use zt_convert::Kinds;
use zt_seal::{Contents, Files, Made, SealOptions, seal};

/// The bytes of the vectors: spec/seal.md §5.
pub fn pattern(byte_len: usize) -> Vec<u8> {
    (0..byte_len).map(|at| (at / 7 % 251) as u8).collect()
}

/// A safetensors file with tensors of bytes: their names and lengths.
pub fn safetensors(tensors: &[(&str, usize)]) -> Vec<u8> {
    let (mut entries, mut at) = (Vec::new(), 0);
    for (name, len) in tensors {
        let end = at + len;
        entries.push(format!(
            r#""{name}":{{"dtype":"U8","shape":[{len}],"data_offsets":[{at},{end}]}}"#
        ));
        at = end;
    }
    let mut header = format!("{{{}}}", entries.join(","));
    while header.len() % 8 != 0 {
        header.push(' ');
    }
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(pattern(at));
    bytes
}

/// Two shards with their index, and files that are no tensors.
pub fn model(folder: &Path) {
    let write = |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).unwrap();
    write("model-00001-of-00002.safetensors", &safetensors(&[("a", 3 << 20), ("b", 100)]));
    write("model-00002-of-00002.safetensors", &safetensors(&[("c", 5_000_000)]));
    let map = r#"{"weight_map":{"a":"model-00001-of-00002.safetensors","b":"model-00001-of-00002.safetensors","c":"model-00002-of-00002.safetensors"}}"#;
    write("model.safetensors.index.json", map.as_bytes());
    write("config.json", b"{}");
    write(".hidden", b"not sealed");
    write("old.seal", b"not sealed");
    write("empty.txt", b"");
    fs::create_dir(folder.join("tokenizer")).unwrap();
    write("tokenizer/vocab.txt", b"zero\none\n");
}

/// The seal of all files of a folder.
pub fn sealed(folder: &Path) -> Made {
    let kinds = Kinds::builtin();
    let contents = Contents::of_folder(&kinds, folder, None).unwrap();
    seal(&kinds, &Files::local(folder), &contents, &SealOptions::new()).unwrap()
}
