//! Folders of models: thirty faults, each named, and sound folders without a word.
#![allow(clippy::unwrap_used, reason = "tests")]
#![cfg(all(feature = "safetensors", feature = "gguf", feature = "pytorch"))]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;
use zt_convert::{Finding, GGUF, Input, Kinds, convert};

/// A folder that is made file by file.
struct Model(TempDir);

/// What makes a folder.
type Make = fn(&Model);

/// A tensor: its name, its dtype and its shape.
type Tensor<'t> = (&'t str, &'t str, &'t [u64]);

const A: Tensor<'_> = ("a", "F32", &[2]);
const B: Tensor<'_> = ("b", "F32", &[2]);
const C: Tensor<'_> = ("c", "F32", &[2]);

impl Model {
    fn new() -> Self {
        Model(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    /// A safetensors file.
    fn weights(&self, name: &str, tensors: &[Tensor<'_>]) -> &Self {
        fs::write(self.path(name), safetensors(tensors)).unwrap();
        self
    }

    /// Shards with one tensor each, and their index.
    fn set(&self, stem: &str, tensors: &[Tensor<'_>]) -> &Self {
        let count = tensors.len();
        let shard = |at: usize| format!("{stem}-{:05}-of-{count:05}.safetensors", at + 1);
        for (at, tensor) in tensors.iter().enumerate() {
            self.weights(&shard(at), &[*tensor]);
        }
        let names = tensors.iter().enumerate();
        let names = names.map(|(at, tensor)| (tensor.0.to_owned(), shard(at).into()));
        let index = json!({"weight_map": names.collect::<serde_json::Map<_, _>>()});
        self.json(&format!("{stem}.safetensors.index.json"), index)
    }

    fn index(&self, name: &str, map: &[(&str, &str)]) -> &Self {
        let map = map
            .iter()
            .map(|(name, file)| ((*name).to_owned(), (*file).into()));
        let map: serde_json::Map<String, Value> = map.collect();
        self.json(name, json!({ "weight_map": map }))
    }

    fn json(&self, name: &str, value: Value) -> &Self {
        fs::write(self.path(name), value.to_string()).unwrap();
        self
    }

    fn bytes(&self, name: &str, bytes: &[u8]) -> &Self {
        fs::write(self.path(name), bytes).unwrap();
        self
    }

    fn remove(&self, name: &str) -> &Self {
        fs::remove_file(self.path(name)).unwrap();
        self
    }

    /// The findings in a folder below this one: codes and files.
    fn findings(&self, below: &str) -> Vec<Finding> {
        Kinds::builtin().examine(self.0.path().join(below)).unwrap()
    }
}

fn safetensors(tensors: &[Tensor<'_>]) -> Vec<u8> {
    let mut header = serde_json::Map::new();
    let mut end = 0;
    for (name, dtype, shape) in tensors {
        let width = if *dtype == "F32" { 4 } else { 2 };
        let start = end;
        end += shape.iter().product::<u64>() * width;
        let entry = json!({"dtype": dtype, "shape": shape, "data_offsets": [start, end]});
        header.insert((*name).to_owned(), entry);
    }
    let header = Value::from(header).to_string();
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.resize(bytes.len() + usize::try_from(end).unwrap(), 1);
    bytes
}

fn gguf() -> Vec<u8> {
    let mut ours = Vec::new();
    let mut writer = zt::Writer::new(&mut ours).unwrap();
    let values = zt::Dense::from_slice(&[2], &[1.0f32, 2.0]).unwrap();
    writer.add("a", &values).unwrap();
    writer.finish().unwrap();
    let mut bytes = Vec::new();
    let input = Input::from(zt::File::from_bytes(ours).unwrap());
    convert(&[input], &mut bytes, &zt_convert::ConvertOptions::new(GGUF)).unwrap();
    bytes
}

/// A file that torch wrote.
fn pytorch() -> Vec<u8> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/corpus/foreign/pt");
    fs::read(corpus.join("state_dict.pt")).unwrap()
}

const LORA: &[Tensor<'_>] = &[
    (
        "base_model.model.model.layers.0.q_proj.lora_A.weight",
        "F32",
        &[4, 8],
    ),
    (
        "base_model.model.model.layers.0.q_proj.lora_B.weight",
        "F32",
        &[16, 4],
    ),
];

fn lora(model: &Model, folder: &str, base: &str) {
    let config = json!({"peft_type": "LORA", "r": 4, "base_model_name_or_path": base});
    model.json(&format!("{folder}adapter_config.json"), config);
    model.weights(&format!("{folder}adapter_model.safetensors"), LORA);
}

fn config(dtype: &str) -> Value {
    json!({"architectures": ["LlamaForCausalLM"], "torch_dtype": dtype})
}

const EMBEDDING: Tensor<'_> = ("model.embed_tokens.weight", "BF16", &[8, 2]);
const HEAD: Tensor<'_> = ("lm_head.weight", "BF16", &[8, 2]);

/// What makes a folder, and the codes of its findings, each with one of the files that it names.
type Case = (&'static str, Make, &'static [(&'static str, &'static str)]);

const FAULTS: &[Case] = &[
    (
        "shards of an older split beside an index",
        |m| {
            m.set("model", &[A, B])
                .weights("model-00001-of-00003.safetensors", &[A]);
        },
        &[("old-shards", "model-00001-of-00003.safetensors")],
    ),
    (
        "a whole older split beside an index",
        |m| {
            m.set("model", &[A, B, C])
                .remove("model.safetensors.index.json")
                .set("model", &[A, B]);
        },
        &[("old-shards", "model-00002-of-00003.safetensors")],
    ),
    (
        "two splits and no index",
        |m| {
            m.set("model", &[A, B, C])
                .set("model", &[A, B])
                .remove("model.safetensors.index.json");
        },
        &[("old-shards", "model-00002-of-00002.safetensors")],
    ),
    (
        "parts of two splits of GGUF",
        |m| {
            m.bytes("m-00001-of-00002.gguf", &gguf())
                .bytes("m-00001-of-00003.gguf", &gguf());
        },
        &[("old-shards", "m-00001-of-00003.gguf")],
    ),
    (
        "two splits of .zt",
        |m| {
            m.bytes("m-00001-of-00002.zt", b"")
                .bytes("m-00001-of-00003.zt", b"");
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
            m.set("model", &[A, B])
                .weights("model.safetensors", &[A, B]);
        },
        &[("stray-file", "model.safetensors")],
    ),
    (
        "a consolidated file beside a set",
        |m| {
            m.set("model", &[A, B])
                .weights("consolidated.safetensors", &[A, B]);
        },
        &[("stray-file", "consolidated.safetensors")],
    ),
    (
        "a file with a part of the tensors of a set",
        |m| {
            m.set("model", &[A, B, C])
                .weights("pruned.safetensors", &[A, C]);
        },
        &[("stray-file", "pruned.safetensors")],
    ),
    (
        "an old file of a variant beside a set of that variant",
        |m| {
            m.set("model.fp16", &[A, B])
                .weights("model.fp16.safetensors", &[A, B]);
        },
        &[("stray-file", "model.fp16.safetensors")],
    ),
    (
        "an old file beside shards without an index",
        |m| {
            m.set("model", &[A, B])
                .remove("model.safetensors.index.json");
            m.weights("model.safetensors", &[A, B]);
        },
        &[
            ("no-index", "model-00001-of-00002.safetensors"),
            ("stray-file", "model.safetensors"),
        ],
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
            m.set("model", &[A, B, C])
                .remove("model.safetensors.index.json");
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
            m.set("model", &[A, B])
                .remove("model.safetensors.index.json");
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
            m.weights("model.safetensors", &[A])
                .json("config.json", config("bfloat16"));
        },
        &[("config-dtype", "model.safetensors")],
    ),
    (
        "config.json has another dtype than a set",
        |m| {
            m.set("model", &[A, EMBEDDING])
                .json("config.json", json!({"dtype": "torch.float16"}));
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
            m.set("model", &[EMBEDDING, ("a", "BF16", &[2])])
                .json("config.json", config);
        },
        &[("tied-weights", "config.json")],
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

const SOUND: &[(&str, Make)] = &[
    ("one file", |m| {
        m.weights("model.safetensors", &[EMBEDDING])
            .json("config.json", config("bfloat16"));
    }),
    ("a set", |m| {
        m.set("model", &[EMBEDDING, HEAD])
            .json("config.json", config("bfloat16"));
    }),
    ("nothing", |m| {
        m.json("tokenizer.json", json!({}));
    }),
    ("a part of a pipeline of diffusers, with a variant", |m| {
        m.weights("diffusion_pytorch_model.safetensors", &[A]);
        m.weights(
            "diffusion_pytorch_model.fp16.safetensors",
            &[("a", "F16", &[2])],
        );
        m.json(
            "config.json",
            json!({"_class_name": "UNet2DConditionModel"}),
        );
    }),
    ("sets of two variants", |m| {
        m.set("model", &[A, B]).set("model.fp16", &[A, B]);
    }),
    ("a set, and a variant in one file", |m| {
        m.set("model", &[A, B])
            .weights("model.fp16.safetensors", &[A, B]);
    }),
    ("sets of two variants, as diffusers names the index", |m| {
        m.set("model", &[A, B]).index(
            "model.safetensors.index.fp16.json",
            &[
                ("a", "model-00001-of-00002.fp16.safetensors"),
                ("b", "model-00002-of-00002.fp16.safetensors"),
            ],
        );
        m.weights("model-00001-of-00002.fp16.safetensors", &[A]);
        m.weights("model-00002-of-00002.fp16.safetensors", &[B]);
    }),
    ("one model in several kinds of file", |m| {
        m.weights("model.safetensors", &[A])
            .bytes("pytorch_model.bin", &pytorch());
        m.bytes("model.gguf", &gguf())
            .bytes("tf_model.h5", b"")
            .bytes("onnx/model.onnx", b"");
        m.bytes("flax_model.msgpack", b"");
    }),
    ("a set and the index of another kind", |m| {
        m.set("model", &[A, B])
            .bytes("pytorch_model-00001-of-00001.bin", &pytorch());
        m.index(
            "pytorch_model.bin.index.json",
            &[("a", "pytorch_model-00001-of-00001.bin")],
        );
    }),
    ("a checkpoint of a trainer", |m| {
        m.set("model", &[A, B])
            .bytes("optimizer.pt", &pytorch())
            .bytes("scheduler.pt", &pytorch());
        m.bytes("training_args.bin", &pytorch())
            .bytes("rng_state_0.pth", &pytorch());
        m.bytes("optimizer.bin", &pytorch())
            .json("trainer_state.json", json!({}));
    }),
    ("averaged weights beside a set", |m| {
        m.set("model", &[A, B]).weights("ema.safetensors", &[A, B]);
    }),
    ("the files of Mistral, with other names", |m| {
        let layer = (
            "model.layers.0.self_attn.q_proj.weight",
            "BF16",
            &[2u64, 2][..],
        );
        m.set("model", &[layer, HEAD]);
        m.weights(
            "consolidated.safetensors",
            &[("layers.0.attention.wq.weight", "BF16", &[2, 2])],
        );
    }),
    ("an index of few names beside other weights", |m| {
        m.set("model", &[A, B, C]).weights(
            "vae.safetensors",
            &[("x", "F32", &[2]), ("y", "F32", &[2]), C],
        );
    }),
    ("many models in one folder", |m| {
        m.weights("one.safetensors", LORA)
            .weights("two.safetensors", LORA);
    }),
    ("GGUF files in several types", |m| {
        m.bytes("m-Q4_K_M.gguf", &gguf())
            .bytes("m-Q8_0.gguf", &gguf());
        m.bytes("a-00001-of-00002.gguf", &gguf())
            .bytes("b-00001-of-00003.gguf", &gguf());
    }),
    ("a quantized model", |m| {
        let mut config = config("bfloat16");
        config["quantization_config"] = json!({"quant_method": "fp8"});
        m.weights("model.safetensors", &[A])
            .json("config.json", config);
    }),
    ("norms of another type", |m| {
        m.weights("model.safetensors", &[EMBEDDING, HEAD, A])
            .json("config.json", config("bfloat16"));
    }),
    ("no dtype in config.json", |m| {
        m.weights("model.safetensors", &[A])
            .json("config.json", json!({"dtype": null}));
    }),
    ("tied weights that are left out", |m| {
        m.weights("model.safetensors", &[EMBEDDING]);
        m.json("config.json", json!({"tie_word_embeddings": true}));
    }),
    ("weights that are not tied", |m| {
        m.weights("model.safetensors", &[EMBEDDING, HEAD]);
        m.json("config.json", json!({"tie_word_embeddings": false}));
    }),
    ("an encoder without an output embedding", |m| {
        m.weights("model.safetensors", &[EMBEDDING]);
        m.json(
            "config.json",
            json!({"architectures": ["BertModel"], "tie_word_embeddings": false}),
        );
    }),
    ("an adapter whose base is elsewhere", |m| {
        lora(m, "", "meta-llama/Llama-3.2-1B")
    }),
    ("an adapter with its base", |m| {
        lora(m, "", "base");
        m.weights(
            "base/model.safetensors",
            &[("model.layers.0.q_proj.weight", "BF16", &[16, 8])],
        );
    }),
    (
        "an adapter whose base leaves out the first part of its names",
        |m| {
            lora(m, "", "./base");
            m.set(
                "base/model",
                &[("layers.0.q_proj.weight", "F32", &[16, 8]), A],
            );
        },
    ),
    ("an adapter with a quantized base", |m| {
        lora(m, "", "base");
        m.weights(
            "base/model.safetensors",
            &[("model.layers.0.q_proj.weight", "I16", &[64, 1])],
        );
    }),
    ("an adapter with ranks of its own", |m| {
        lora(m, "", "");
        m.json(
            "adapter_config.json",
            json!({"peft_type": "LORA", "r": 8, "rank_pattern": {"q_proj": 4}}),
        );
    }),
    ("another method of PEFT", |m| {
        m.json("adapter_config.json", json!({"peft_type": "PROMPT_TUNING"}));
        m.weights(
            "adapter_model.safetensors",
            &[("prompt_embeddings", "F32", &[2])],
        );
    }),
    (
        "an index that cannot be read, which opening it reports",
        |m| {
            m.set("model", &[A, B]);
            m.index(
                "model.safetensors.index.json",
                &[("a", "/model-00001-of-00002.safetensors")],
            );
        },
    ),
    ("two names of one index", |m| {
        m.set("model", &[A, B]);
        fs::copy(
            m.path("model.safetensors.index.json"),
            m.path("x.safetensors.index.json"),
        )
        .unwrap();
    }),
];

#[test]
fn a_sound_folder_raises_no_alarm() {
    assert!(SOUND.len() >= 20);
    for (what, make) in SOUND {
        let model = Model::new();
        make(&model);
        let findings = model.findings("");
        assert!(findings.is_empty(), "{what}: {findings:?}");
    }
}

/// A cache of the Hub with one snapshot of each repository; every file is a link to a blob.
#[cfg(unix)]
fn cache(repositories: &[(&str, Make)]) -> Model {
    let cache = Model::new();
    for (name, make) in repositories {
        let source = Model::new();
        make(&source);
        for entry in fs::read_dir(source.0.path()).unwrap() {
            let entry = entry.unwrap();
            let bytes = fs::read(entry.path()).unwrap();
            let digest = zt::DigestAlgorithm::Sha256
                .digest(&bytes)
                .unwrap()
                .to_string();
            let digest = digest.strip_prefix("sha256:").unwrap().to_owned();
            let root = format!("models--{}", name.replace('/', "--"));
            cache.bytes(&format!("{root}/blobs/{digest}"), &bytes);
            let file = entry.file_name().into_string().unwrap();
            let link = cache.path(&format!("{root}/snapshots/0123abc/{file}"));
            std::os::unix::fs::symlink(format!("../../blobs/{digest}"), link).unwrap();
        }
    }
    cache
}

#[cfg(unix)]
#[test]
fn a_cache_of_the_hub_is_sound_and_knows_the_base_of_an_adapter() {
    let right: Make = |m| {
        m.set(
            "model",
            &[("model.layers.0.q_proj.weight", "BF16", &[16, 8]), A],
        );
    };
    let wrong: Make = |m| {
        m.set("model", &[A, B]);
    };
    for (base, expected) in [(right, &[][..]), (wrong, &["adapter-base"])] {
        let cache = cache(&[
            ("own/lora", |m| lora(m, "", "meta/base")),
            ("meta/base", base),
        ]);
        let codes = |below| {
            let findings = cache.findings(below).into_iter();
            findings.map(|it| it.code).collect::<Vec<_>>()
        };
        assert_eq!(codes("models--own--lora/snapshots/0123abc"), expected);
        assert!(codes("models--meta--base/snapshots/0123abc").is_empty());
    }
}

#[cfg(unix)]
#[test]
fn the_name_of_a_blob_is_the_digest_of_its_bytes() {
    let cache = cache(&[("a/b", |m| {
        m.weights("model.safetensors", &[A]);
    })]);
    let path = cache.path("models--a--b/snapshots/0123abc/model.safetensors");
    assert!(zt_convert::verify_blob(&path, None).unwrap());
    let mut bytes = fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&path, &bytes).unwrap();
    let error = zt_convert::verify_blob(&path, None).unwrap_err();
    assert_eq!(error.code(), "digest-mismatch");
    assert_eq!(error.path(), Some(&*path));
    // Any other file has no such name.
    let other = cache.path("model.safetensors");
    fs::write(&other, &bytes).unwrap();
    assert!(!zt_convert::verify_blob(&other, None).unwrap());
}

#[test]
fn an_index_is_written_after_which_the_set_opens() {
    let model = Model::new();
    model.weights("model-00001-of-00002.safetensors", &[B, A]);
    model.weights("model-00002-of-00002.safetensors", &[EMBEDDING]);
    let kinds = Kinds::builtin();
    let written = kinds.write_index(model.0.path(), false).unwrap();
    assert_eq!(
        (written.shards, written.tensors, written.total_size),
        (2, 3, 48)
    );
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
    assert_eq!(
        kinds.write_index(model.0.path(), false).unwrap_err().code(),
        "misuse"
    );
    assert!(kinds.write_index(model.0.path(), true).is_ok());
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
            entries
                .map(|it| it.unwrap().file_name())
                .collect::<std::collections::BTreeSet<_>>()
        };
        let before = list();
        let error = Kinds::builtin()
            .write_index(model.0.path(), false)
            .unwrap_err();
        assert_eq!(error.code(), *code, "{what}: {error}");
        assert_eq!(list(), before, "{what}");
    }
}
