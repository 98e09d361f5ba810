//! Folders with a fault: each fault is named.

use std::fs;

use serde_json::json;
use zt_convert::{InputOptions, Kinds};
use zt_model::ExamineOptions;

use crate::folder::{A, B, C, EMBEDDING, HEAD, LAYERS, LORA, Make, Model, config, gguf, lora};

/// What makes a folder, and the codes of its findings, each with one of the files that it names.
type Case = (&'static str, Make, &'static [(&'static str, &'static str)]);

const FAULTS: &[Case] = &[
    (
        "shards of an older split beside an index",
        |m| {
            m.set("model", &[A, B]).weights("model-00001-of-00003.safetensors", &[A]);
        },
        &[("old-shards", "model-00001-of-00003.safetensors")],
    ),
    (
        "a whole older split beside an index",
        |m| {
            m.set("model", &[A, B, C]).remove("model.safetensors.index.json").set("model", &[A, B]);
        },
        &[("old-shards", "model-00002-of-00003.safetensors")],
    ),
    (
        "two splits and no index",
        |m| {
            m.set("model", &[A, B, C]).set("model", &[A, B]).remove("model.safetensors.index.json");
        },
        &[("old-shards", "model-00002-of-00002.safetensors")],
    ),
    (
        "parts of two splits of GGUF",
        |m| {
            m.bytes("m-00001-of-00002.gguf", &gguf()).bytes("m-00001-of-00003.gguf", &gguf());
        },
        &[("old-shards", "m-00001-of-00003.gguf")],
    ),
    (
        "two splits of .zt",
        |m| {
            m.bytes("m-00001-of-00002.zt", b"").bytes("m-00001-of-00003.zt", b"");
        },
        &[("old-shards", "m-00001-of-00003.zt")],
    ),
    (
        "a shard that the index does not name",
        |m| {
            m.set("model", &[A, B, C]).index(
                "model.safetensors.index.json",
                &[
                    ("a", "model-00001-of-00003.safetensors"),
                    ("b", "model-00002-of-00003.safetensors"),
                ],
            );
        },
        &[("unlisted-shards", "model-00003-of-00003.safetensors")],
    ),
    (
        "an old file beside a set",
        |m| {
            m.set("model", &[A, B]).weights("model.safetensors", &[A, B]);
        },
        &[("stray-file", "model.safetensors")],
    ),
    (
        "a consolidated file beside a set",
        |m| {
            m.set("model", &[A, B]).weights("consolidated.safetensors", &[A, B]);
        },
        &[("stray-file", "consolidated.safetensors")],
    ),
    (
        "a file with a part of the tensors of a set",
        |m| {
            m.set("model", &[A, B, C]).weights("pruned.safetensors", &[A, C]);
        },
        &[("stray-file", "pruned.safetensors")],
    ),
    (
        "an old file of a variant beside a set of that variant",
        |m| {
            m.set("model.fp16", &[A, B]).weights("model.fp16.safetensors", &[A, B]);
        },
        &[("stray-file", "model.fp16.safetensors")],
    ),
    (
        "an old file beside shards without an index",
        |m| {
            m.set("model", &[A, B]).remove("model.safetensors.index.json");
            m.weights("model.safetensors", &[A, B]);
        },
        &[("no-index", "model-00001-of-00002.safetensors"), ("stray-file", "model.safetensors")],
    ),
    (
        "two indexes of two sets",
        |m| {
            m.set("model", &[A, B]).set("other", &[A, B]);
        },
        &[("two-indexes", "other.safetensors.index.json")],
    ),
    (
        "an old index beside the new one",
        |m| {
            m.set("model", &[A, B]).index(
                "model.old.safetensors.index.json",
                &[
                    ("a", "model-00001-of-00002.safetensors"),
                    ("b", "model-00001-of-00002.safetensors"),
                ],
            );
        },
        &[("two-indexes", "model.old.safetensors.index.json")],
    ),
    (
        "two indexes of one variant",
        |m| {
            m.set("model.fp16", &[A, B]).set("x.fp16", &[A, B]);
        },
        &[("two-indexes", "x.fp16.safetensors.index.json")],
    ),
    (
        "a gap in the numbers",
        |m| {
            m.set("model", &[A, B, C]).remove("model.safetensors.index.json");
            m.remove("model-00002-of-00003.safetensors");
        },
        &[("missing-shards", "model-00001-of-00003.safetensors")],
    ),
    (
        "the first shard is missing",
        |m| {
            m.weights("model-00002-of-00002.safetensors", &[A]);
        },
        &[("missing-shards", "model-00002-of-00002.safetensors")],
    ),
    (
        "the last shard is missing",
        |m| {
            m.weights("model-00001-of-00002.safetensors", &[A]);
        },
        &[("missing-shards", "model-00001-of-00002.safetensors")],
    ),
    (
        "a gap in numbers from 0 on",
        |m| {
            m.weights("model-00000-of-00003.safetensors", &[A]);
            m.weights("model-00002-of-00003.safetensors", &[B]);
        },
        &[("missing-shards", "model-00000-of-00003.safetensors")],
    ),
    (
        "one of four thousand million shards",
        |m| {
            m.weights("model-00001-of-4294967295.safetensors", &[A]);
        },
        &[("missing-shards", "model-00001-of-4294967295.safetensors")],
    ),
    (
        "no index",
        |m| {
            m.set("model", &[A, B]).remove("model.safetensors.index.json");
        },
        &[("no-index", "model-00002-of-00002.safetensors")],
    ),
    (
        "no index of one shard",
        |m| {
            m.weights("model-00001-of-00001.safetensors", &[A]);
        },
        &[("no-index", "model-00001-of-00001.safetensors")],
    ),
    (
        "no index of a variant",
        |m| {
            m.set("model", &[A, B])
                .set("model.fp16", &[A, B])
                .remove("model.fp16.safetensors.index.json");
        },
        &[("no-index", "model.fp16-00001-of-00002.safetensors")],
    ),
    (
        "a tensor in two shards",
        |m| {
            m.weights("model-00001-of-00002.safetensors", &[A, B]);
            m.weights("model-00002-of-00002.safetensors", &[B, C]);
        },
        &[
            ("no-index", "model-00001-of-00002.safetensors"),
            ("duplicate-tensor", "model-00002-of-00002.safetensors"),
        ],
    ),
    (
        "a tensor in two shards with two shapes",
        |m| {
            m.weights("model-00001-of-00002.safetensors", &[A, B]);
            m.weights("model-00002-of-00002.safetensors", &[("b", "F32", &[3])]);
        },
        &[
            ("no-index", "model-00001-of-00002.safetensors"),
            ("duplicate-tensor", "model-00001-of-00002.safetensors"),
        ],
    ),
    (
        "config.json has another dtype",
        |m| {
            m.weights("model.safetensors", &[A]).json("config.json", config("bfloat16"));
        },
        &[("config-dtype", "model.safetensors")],
    ),
    (
        "config.json has another dtype than a set",
        |m| {
            m.set("model", &[A, EMBEDDING]).json("config.json", json!({"dtype": "torch.float16"}));
        },
        &[("config-dtype", "model-00002-of-00002.safetensors")],
    ),
    (
        "config.json ties weights that differ",
        |m| {
            m.weights("model.safetensors", &[EMBEDDING, HEAD]);
            m.json("config.json", json!({"tie_word_embeddings": true}));
        },
        &[("tied-weights", "model.safetensors")],
    ),
    (
        "config.json ties no weights, and the head is missing",
        |m| {
            let mut config = config("bfloat16");
            config["tie_word_embeddings"] = false.into();
            m.set("model", &[EMBEDDING, ("a", "BF16", &[2])]).json("config.json", config);
        },
        &[("tied-weights", "config.json")],
    ),
    (
        "config.json gives another dtype for the text model",
        |m| {
            m.weights("model.safetensors", &[A]).json(
                "config.json",
                json!({"dtype": null, "text_config": {"torch_dtype": "bfloat16"}}),
            );
        },
        &[("config-dtype", "model.safetensors")],
    ),
    (
        "config.json ties weights of the text model that differ",
        |m| {
            m.weights("model.safetensors", &[EMBEDDING, HEAD]);
            m.json(
                "config.json",
                json!({"text_config": {"dtype": "bfloat16", "tie_word_embeddings": true}}),
            );
        },
        &[("tied-weights", "config.json")],
    ),
    (
        "config.json is no JSON",
        |m| {
            m.weights("model.safetensors", &[A]).bytes("config.json", b"{\"dtype\": ");
        },
        &[("config-json", "config.json")],
    ),
    (
        "config.json gives another vocabulary",
        |m| {
            m.weights("model.safetensors", &[EMBEDDING]);
            m.json("config.json", json!({"vocab_size": 5, "hidden_size": 2}));
        },
        &[("config-shape", "config.json")],
    ),
    (
        "config.json gives another hidden size",
        |m| {
            m.weights("model.safetensors", &[EMBEDDING]);
            m.json("config.json", json!({"text_config": {"hidden_size": 99}}));
        },
        &[("config-shape", "config.json")],
    ),
    (
        "config.json gives more layers",
        |m| {
            m.weights("model.safetensors", &LAYERS);
            m.json("config.json", json!({"num_hidden_layers": 3}));
        },
        &[("config-layers", "config.json")],
    ),
    (
        "config.json gives fewer layers",
        |m| {
            m.weights("model.safetensors", &LAYERS);
            m.json("config.json", json!({"num_hidden_layers": 1}));
        },
        &[("config-layers", "config.json")],
    ),
    (
        "config.json quantizes weights that are not",
        |m| {
            m.weights("model.safetensors", &LAYERS);
            m.json("config.json", json!({"quantization_config": {"quant_method": "gptq"}}));
        },
        &[("config-quantization", "config.json")],
    ),
    (
        "config.json does not name the quantization of the weights",
        |m| {
            m.weights(
                "model.safetensors",
                &[("w.qweight", "I32", &[2, 2]), ("w.scales", "F16", &[2, 2])],
            );
            m.json("config.json", json!({}));
        },
        &[("config-quantization", "config.json")],
    ),
    (
        "a total that is a text",
        |m| {
            m.set("model", &[A, B]).json(
                "model.safetensors.index.json",
                json!({
                    "metadata": {"total_size": "16"},
                    "weight_map": {
                        "a": "model-00001-of-00002.safetensors",
                        "b": "model-00002-of-00002.safetensors",
                    },
                }),
            );
        },
        &[("total-size", "model.safetensors.index.json")],
    ),
    (
        "an adapter without weights",
        |m| {
            m.json("adapter_config.json", json!({"peft_type": "LORA"}));
        },
        &[("adapter", "adapter_config.json")],
    ),
    (
        "an adapter without its config",
        |m| {
            m.weights("adapter_model.safetensors", LORA);
        },
        &[("adapter", "adapter_model.safetensors")],
    ),
    (
        "an adapter with half of a pair",
        |m| {
            lora(m, "", "");
            m.weights("adapter_model.safetensors", &LORA[..1]);
        },
        &[("adapter", "adapter_model.safetensors")],
    ),
    (
        "an adapter of another rank",
        |m| {
            lora(m, "", "");
            m.json("adapter_config.json", json!({"peft_type": "LORA", "r": 16}));
        },
        &[("adapter", "adapter_config.json")],
    ),
    (
        "an adapter with the weights of a model",
        |m| {
            lora(m, "", "");
            m.weights("adapter_model.safetensors", &[A]);
        },
        &[("adapter", "adapter_model.safetensors")],
    ),
    (
        "an adapter of another base",
        |m| {
            lora(m, "", "base");
            m.set("base/model", &[A, B]);
        },
        &[("adapter-base", "adapter_model.safetensors")],
    ),
    (
        "an adapter of a base with other modules whose names end alike",
        |m| {
            lora(m, "", "base");
            let weight = "supermodel.layers.0.q_proj.weight";
            m.weights("base/model.safetensors", &[(weight, "F32", &[16, 8])]);
        },
        &[("adapter-base", "adapter_model.safetensors")],
    ),
    (
        "an adapter of a larger base",
        |m| {
            lora(m, "", "base");
            m.weights(
                "base/model.safetensors",
                &[("model.layers.0.q_proj.weight", "BF16", &[32, 8])],
            );
        },
        &[("adapter-base", "adapter_config.json")],
    ),
];

#[test]
fn each_fault_of_a_folder_is_named() {
    assert!(FAULTS.len() >= 30);
    for (what, make, expected) in FAULTS {
        let model = Model::new();
        make(&model);
        let findings = model.findings("");
        let codes: Vec<&str> = findings.iter().map(|it| it.code).collect();
        let wanted: Vec<&str> = expected.iter().map(|(code, _)| *code).collect();
        assert_eq!(codes, wanted, "{what}: {findings:?}");
        for (finding, (_, file)) in findings.iter().zip(*expected) {
            let path = model.0.path().join(file);
            assert!(finding.files.contains(&path), "{what}: {finding:?}");
            assert!(zt::codes::explain_warning(finding.code).is_some(), "{what}");
            assert!(!finding.advice.is_empty() && !finding.message.is_empty());
        }
    }
}

/// Tensors of two shards, by what is known of their values.
#[test]
fn tensors_of_two_shards_are_compared_by_their_values() {
    let m = Model::new();
    m.weights("model-00001-of-00002.safetensors", &[A, B, C]);
    m.weights("model-00002-of-00002.safetensors", &[("a", "F32", &[3]), B, C]);
    // The last value of `c`.
    let second = m.path("model-00002-of-00002.safetensors");
    let mut bytes = fs::read(&second).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&second, bytes).unwrap();
    let messages = |values| {
        let findings = m.findings_with("", &ExamineOptions::new().values(values));
        let found = findings.into_iter().filter(|it| it.code == "duplicate-tensor");
        found
            .map(|it| it.message.split_once("both have ").unwrap().1.to_owned())
            .collect::<Vec<_>>()
    };
    let types = "\"a\", with other types or shapes";
    assert_eq!(messages(true), ["\"b\", with equal values", "\"c\", with other values", types]);
    let unknown = "\"b\", \"c\", with one type and shape; their values were not compared";
    assert_eq!(messages(false), [types, unknown]);
}

/// The name is a stranger's, so only a folder below is looked at.
#[test]
fn the_base_of_an_adapter_is_below_its_folder() {
    let m = Model::new();
    m.set("base/model", &[A, B]);
    let codes = |base: &str| {
        lora(&m, "lora/", base);
        let found = m.findings("lora").into_iter().map(|it| it.code);
        found.collect::<Vec<_>>()
    };
    let absolute = m.path("base").to_str().unwrap().to_owned();
    for elsewhere in ["../base", "./../base", &absolute] {
        assert!(codes(elsewhere).is_empty(), "{elsewhere}");
    }
    m.set("lora/base/model", &[A, B]);
    assert_eq!(codes("./base"), ["adapter-base"]);
}

/// As for files that were not opened.
#[test]
fn open_files_are_not_read_again() {
    let m = Model::new();
    m.set("model", &[A, EMBEDDING, HEAD])
        .weights("old.safetensors", &[A, EMBEDDING])
        .json("config.json", json!({"tie_word_embeddings": true, "dtype": "float16"}));
    let open = |name| Kinds::builtin().open(m.path(name), InputOptions::new()).unwrap();
    let opened = [open("model.safetensors.index.json"), open("old.safetensors")];
    let expected = m.findings("");
    assert_eq!(expected.len(), 3, "{expected:?}");
    // Nothing is left to be read.
    for name in ["model-00002-of-00003.safetensors", "old.safetensors"] {
        m.bytes(name, b"");
    }
    let options = ExamineOptions::new().opened(&opened);
    assert_eq!(m.findings_with("", &options), expected);
}
