//! The index that is written for shards without one.

use std::fs;

use serde_json::{Value, json};
use zt_convert::Kinds;

use crate::folder::{A, B, EMBEDDING, Make, Model, gguf, safetensors};

#[test]
fn an_index_is_written_after_which_the_set_opens() {
    let model = Model::new();
    model.weights("model-00001-of-00002.safetensors", &[B, A]);
    model.weights("model-00002-of-00002.safetensors", &[EMBEDDING]);
    let kinds = Kinds::builtin();
    let written = zt_model::write_index(&kinds, model.0.path(), false).unwrap();
    assert_eq!((written.shards, written.tensors, written.total_size), (2, 3, 48));
    assert_eq!(written.path, model.path("model.safetensors.index.json"));
    let expected = json!({
        "metadata": {"total_size": 48},
        "weight_map": {
            "a": "model-00001-of-00002.safetensors",
            "b": "model-00001-of-00002.safetensors",
            "model.embed_tokens.weight": "model-00002-of-00002.safetensors",
        },
    });
    let found: Value = serde_json::from_slice(&fs::read(&written.path).unwrap()).unwrap();
    assert_eq!(found, expected);
    let file = zt_convert::open(&written.path).unwrap();
    assert_eq!((file.len(), file.warnings().len()), (3, 0));
    assert!(model.findings("").is_empty());
    // Only with `overwrite` is it written again.
    assert_eq!(zt_model::write_index(&kinds, model.0.path(), false).unwrap_err().code(), "misuse");
    assert!(zt_model::write_index(&kinds, model.0.path(), true).is_ok());
}

#[test]
fn the_extension_before_the_number_is_not_doubled_and_files_left_out_are_named() {
    let model = Model::new();
    model.weights("model.safetensors-00001-of-00002.safetensors", &[B, A]);
    model.weights("model.safetensors-00002-of-00002.safetensors", &[EMBEDDING]);
    model.weights("model-mtp-of-00002.safetensors", &[A]);
    let written = zt_model::write_index(&Kinds::builtin(), model.0.path(), false).unwrap();
    assert_eq!(written.path, model.path("model.safetensors.index.json"));
    assert_eq!(written.left_out, [model.path("model-mtp-of-00002.safetensors")]);
}

#[test]
fn an_index_that_would_be_wrong_is_not_written() {
    let cases: &[(&str, &str, Make)] = &[
        ("no shards", "misuse", |m| {
            m.weights("model.safetensors", &[A]);
        }),
        ("GGUF", "misuse", |m| {
            m.bytes("m-00001-of-00001.gguf", &gguf());
        }),
        ("two sets", "misuse", |m| {
            m.weights("a-00001-of-00001.safetensors", &[A])
                .weights("b-00001-of-00001.safetensors", &[A]);
        }),
        ("two splits", "misuse", |m| {
            m.weights("a-00001-of-00001.safetensors", &[A])
                .weights("a-00001-of-00002.safetensors", &[A]);
        }),
        ("a gap", "path", |m| {
            m.weights("a-00002-of-00002.safetensors", &[A]);
        }),
        ("a name in two shards", "duplicate-name", |m| {
            m.weights("a-00001-of-00002.safetensors", &[A])
                .weights("a-00002-of-00002.safetensors", &[A]);
        }),
        ("a damaged shard", "truncated", |m| {
            let bytes = safetensors(&[B]);
            m.weights("a-00001-of-00002.safetensors", &[A]);
            m.bytes("a-00002-of-00002.safetensors", &bytes[..bytes.len() - 1]);
        }),
        ("another index of that name", "overwrite", |m| {
            m.weights("a-00001-of-00001.safetensors", &[A]);
            m.index("a.safetensors.index.json", &[]);
        }),
    ];
    for (what, code, make) in cases {
        let model = Model::new();
        make(&model);
        let list = || {
            let entries = fs::read_dir(model.0.path()).unwrap();
            entries.map(|it| it.unwrap().file_name()).collect::<std::collections::BTreeSet<_>>()
        };
        let before = list();
        let error = zt_model::write_index(&Kinds::builtin(), model.0.path(), false).unwrap_err();
        assert_eq!(error.code(), *code, "{what}: {error}");
        assert_eq!(list(), before, "{what}");
    }
}
