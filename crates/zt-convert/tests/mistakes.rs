//! Files that are mistaken for tensor files: each is named, whatever its extension.
#![allow(clippy::unwrap_used, reason = "tests")]
#![cfg(all(feature = "safetensors", feature = "npy", feature = "pytorch"))]

use std::fs;

use zt_convert::{FolderContents, Input, InputOptions, Kinds, NPZ, SAFETENSORS, ZT};

const POINTER: &[u8] =
    b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 1234567\n";

fn tar() -> Vec<u8> {
    let mut tar = vec![0; 1024];
    tar[..9].copy_from_slice(b"model.bin");
    tar[257..262].copy_from_slice(b"ustar");
    tar
}

/// The first bytes of a file, and words of its message.
fn mistakes() -> Vec<(Vec<u8>, [&'static str; 2])> {
    let text = |text: &str| text.as_bytes().to_vec();
    vec![
        (vec![], ["an empty file", "download"]),
        (POINTER.to_vec(), ["a Git LFS pointer", "git lfs pull"]),
        (text("/annex/objects/SHA256E-s8--2c26.gguf\n"), ["a git-annex pointer", "git annex get"]),
        (text("\u{FEFF}\n<!DOCTYPE html><title>404</title>"), ["an HTML page", "download"]),
        (
            text("<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>"),
            ["an XML document", "access rights"],
        ),
        (text("<ir_version: 10, opset_import: [\"\" : 17]>\ng () => () {}"), ["ONNX", "text form"]),
        (b"x^\x9C\x01\0\0\xFF\xFF".to_vec(), ["zlib data", "joblib"]),
        (text("{\"error\":\"Repository not found\"}"), ["Repository not found", "download"]),
        (
            text("{\n  \"architectures\": [\n    \"LlamaForCausalLM\"\n  ]\n}"),
            ["a JSON document", "weights"],
        ),
        (text("Dear all,\nthe weights are"), ["\"Dear all,\"", "path"]),
        (b"\x1F\x8B\x08\0\0\0\0\0".to_vec(), ["gzip", "decompress"]),
        (b"\x28\xB5\x2F\xFD\x04\0\x01\0".to_vec(), ["zstd", "decompress"]),
        (b"\xFD7zXZ\0\0\x04".to_vec(), ["xz", "decompress"]),
        (b"BZh91AY&SY".to_vec(), ["bzip2", "decompress"]),
        (b"7z\xBC\xAF\x27\x1C\0\x04".to_vec(), ["7z", "extract"]),
        (tar(), ["a tar archive", "extract"]),
        (b"PK\x03\x04\x14\0\0\0\0\0notes.txt".to_vec(), ["a zip archive", "extract"]),
        (b"\x1C\0\0\0TFL3\0\0".to_vec(), ["TensorFlow Lite", "save"]),
        (b"\x08\x01\x12\x90\x4E\x0A\x05\x12".to_vec(), ["SavedModel", "save"]),
        (b"\x82\xA6params\x80\xA1x\x01".to_vec(), ["MessagePack", "save"]),
        (vec![0; 64], ["first 64 bytes or more are zero", "download"]),
        (b"tjgg\x03\0\0\0\0\x7D\0\0".to_vec(), ["GGML", "GGUF"]),
    ]
}

#[test]
fn a_mistake_is_named_by_its_bytes_whatever_kind_is_expected() {
    let folder = tempfile::tempdir().unwrap();
    for (bytes, words) in mistakes() {
        for name in ["model", "model.safetensors", "model.zt"] {
            let path = folder.path().join(name);
            fs::write(&path, &bytes).unwrap();
            let kinds = [None, Some(SAFETENSORS), Some(NPZ), Some(ZT)];
            for kind in kinds {
                let mut options = InputOptions::new();
                options.kind = kind;
                let opened = Kinds::builtin().open(&path, options);
                let error = opened.map(Input::into_file).unwrap_err();
                assert_eq!(error.code(), "unknown-kind", "{kind:?}: {error}");
                let message = error.message();
                for word in words {
                    assert!(message.contains(word), "{kind:?}: {message}");
                }
            }
        }
    }
}

#[test]
fn a_folder_of_another_format_is_named() {
    for (name, word) in [
        ("saved_model.pb", "SavedModel"),
        (".zgroup", "Zarr"),
        ("manifest.ocdbt", "Orbax"),
        ("zarr.json", "Zarr"),
        ("_CHECKPOINT_METADATA", "Orbax"),
        ("checkpoint", "TensorFlow"),
        ("flax_model.msgpack", "Flax"),
        ("model_index.json", "diffusers"),
        ("adapter_config.json", "--lora"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let open = || {
            let opened = Kinds::builtin().open(folder.path(), InputOptions::new());
            opened.map(Input::into_file).unwrap_err()
        };
        assert_eq!(open().code(), "misuse");
        fs::write(folder.path().join(name), "").unwrap();
        let error = open();
        assert_eq!(error.code(), "unknown-kind");
        assert!(error.message().contains(word), "{error}");
        // As a command finds it, which looks into folders.
        let found =
            FolderContents::of(&Kinds::builtin(), folder.path()).unwrap().only(folder.path());
        assert!(found.unwrap_err().message().contains(word));
    }
    let folder = tempfile::tempdir().unwrap();
    let part = folder.path().join("m.data-00000-of-00001");
    fs::write(&part, [0; 4]).unwrap();
    let error = Kinds::builtin().open(&part, InputOptions::new());
    let error = error.map(Input::into_file).unwrap_err();
    assert!(error.message().contains("TensorFlow"), "{error}");
}

/// The table is asked only after every kind, and by a kind that is given only if it fails.
#[test]
fn a_tensor_file_that_begins_like_a_mistake_opens() {
    // A safetensors file whose header is as long as the magic of gzip is a number.
    let mut header = b"{\"w\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}".to_vec();
    header.resize(0x08_8B1F, b' ');
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header);
    file.push(7);
    for kind in [None, Some(SAFETENSORS)] {
        let mut options = InputOptions::new();
        options.kind = kind;
        let opened = Kinds::builtin().open_source(zt::Memory::new(file.clone()), options);
        let file = opened.unwrap().into_file();
        assert_eq!(file.names().collect::<Vec<_>>(), ["w"]);
    }
}

/// A short text may be the beginning of any file.
#[test]
fn a_cut_file_is_no_text() {
    for head in [&b"GGU"[..], b"ZTEN100", b"PK"] {
        let source = zt::Memory::new(head.to_vec());
        let opened = Kinds::builtin().open_source(source, InputOptions::new());
        let error = opened.map(Input::into_file).unwrap_err();
        assert!(!error.message().contains("text"), "{error}");
    }
}
