//! Sound folders: nothing is reported.

use std::fs;

use serde_json::json;

use crate::folder::{
    A, B, C, EMBEDDING, HEAD, LAYERS, LORA, Make, Model, config, gguf, lora, pytorch,
};

const SOUND: &[(&str, Make)] = &[
    ("one file", |m| {
        m.weights("model.safetensors", &[EMBEDDING]).json("config.json", config("bfloat16"));
    }),
    ("a set", |m| {
        m.set("model", &[EMBEDDING, HEAD]).json("config.json", config("bfloat16"));
    }),
    ("nothing", |m| {
        m.json("tokenizer.json", json!({}));
    }),
    ("a part of a pipeline of diffusers, with a variant", |m| {
        m.weights("diffusion_pytorch_model.safetensors", &[A]);
        m.weights("diffusion_pytorch_model.fp16.safetensors", &[("a", "F16", &[2])]);
        m.json("config.json", json!({"_class_name": "UNet2DConditionModel"}));
    }),
    ("sets of two variants", |m| {
        m.set("model", &[A, B]).set("model.fp16", &[A, B]);
    }),
    ("a set, and a variant in one file", |m| {
        m.set("model", &[A, B]).weights("model.fp16.safetensors", &[A, B]);
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
        m.weights("model.safetensors", &[A]).bytes("pytorch_model.bin", &pytorch());
        m.bytes("model.gguf", &gguf()).bytes("tf_model.h5", b"").bytes("onnx/model.onnx", b"");
        m.bytes("flax_model.msgpack", b"");
    }),
    ("a set and the index of another kind", |m| {
        m.set("model", &[A, B]).bytes("pytorch_model-00001-of-00001.bin", &pytorch());
        m.index("pytorch_model.bin.index.json", &[("a", "pytorch_model-00001-of-00001.bin")]);
    }),
    ("a checkpoint of a trainer", |m| {
        m.set("model", &[A, B]).bytes("optimizer.pt", &pytorch()).bytes("scheduler.pt", &pytorch());
        m.bytes("training_args.bin", &pytorch()).bytes("rng_state_0.pth", &pytorch());
        m.bytes("optimizer.bin", &pytorch()).json("trainer_state.json", json!({}));
    }),
    ("averaged weights beside a set", |m| {
        m.set("model", &[A, B]).weights("ema.safetensors", &[A, B]);
    }),
    ("the files of Mistral, with other names", |m| {
        let layer = ("model.layers.0.self_attn.q_proj.weight", "BF16", &[2u64, 2][..]);
        m.set("model", &[layer, HEAD]);
        m.weights("consolidated.safetensors", &[("layers.0.attention.wq.weight", "BF16", &[2, 2])]);
    }),
    ("an index of few names beside other weights", |m| {
        m.set("model", &[A, B, C])
            .weights("vae.safetensors", &[("x", "F32", &[2]), ("y", "F32", &[2]), C]);
    }),
    ("many models in one folder", |m| {
        m.weights("one.safetensors", LORA).weights("two.safetensors", LORA);
    }),
    ("GGUF files in several types", |m| {
        m.bytes("m-Q4_K_M.gguf", &gguf()).bytes("m-Q8_0.gguf", &gguf());
        m.bytes("a-00001-of-00002.gguf", &gguf()).bytes("b-00001-of-00003.gguf", &gguf());
    }),
    ("a quantized model", |m| {
        let mut config = config("bfloat16");
        config["quantization_config"] = json!({"quant_method": "fp8"});
        m.weights("model.safetensors", &[A]).json("config.json", config);
    }),
    ("a quantized model with its scales", |m| {
        let quantized = [("w.weight", "F8_E4M3", &[2u64, 2][..]), ("w.weight_scale", "F32", &[1])];
        m.weights("model.safetensors", &quantized);
        m.json("config.json", json!({"quantization_config": {"quant_method": "fp8"}}));
    }),
    ("layers and sizes as config.json gives them", |m| {
        m.weights("model.safetensors", &[EMBEDDING, LAYERS[0], LAYERS[1]]);
        let [rows, columns] = EMBEDDING.2 else { unreachable!() };
        m.json(
            "config.json",
            json!({"vocab_size": rows, "hidden_size": columns, "num_hidden_layers": 2}),
        );
    }),
    ("a layer that predicts several tokens", |m| {
        let extra = ("model.layers.2.eh_proj.weight", "F32", &[2u64, 2][..]);
        m.weights("model.safetensors", &[LAYERS[0], LAYERS[1], extra]);
        m.json("config.json", json!({"num_hidden_layers": 2, "num_nextn_predict_layers": 1}));
    }),
    ("layers of a tower beside", |m| {
        let tower = ("vision.encoder.layers.0.fc.weight", "F32", &[2u64, 2][..]);
        m.weights("model.safetensors", &[LAYERS[0], LAYERS[1], tower]);
        m.json("config.json", json!({"text_config": {"num_hidden_layers": 2}}));
    }),
    ("embeddings of another size than the layers", |m| {
        m.weights("model.safetensors", &[EMBEDDING]);
        m.json("config.json", json!({"hidden_size": 4096, "embedding_size": 2}));
    }),
    ("norms of another type", |m| {
        m.weights("model.safetensors", &[EMBEDDING, HEAD, A])
            .json("config.json", config("bfloat16"));
    }),
    ("a model of text and images with two values of a key", |m| {
        m.weights("model.safetensors", &[EMBEDDING, HEAD]);
        m.json(
            "config.json",
            json!({
                "dtype": "bfloat16",
                "tie_word_embeddings": false,
                "text_config": {"torch_dtype": "float32", "tie_word_embeddings": true},
            }),
        );
    }),
    ("no dtype in config.json", |m| {
        m.weights("model.safetensors", &[A]).json("config.json", json!({"dtype": null}));
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
    ("an adapter whose base is elsewhere", |m| lora(m, "", "meta-llama/Llama-3.2-1B")),
    ("an adapter with its base", |m| {
        lora(m, "", "base");
        m.weights("base/model.safetensors", &[("model.layers.0.q_proj.weight", "BF16", &[16, 8])]);
    }),
    ("an adapter whose base leaves out the first part of its names", |m| {
        lora(m, "", "./base");
        m.set("base/model", &[("layers.0.q_proj.weight", "F32", &[16, 8]), A]);
    }),
    ("an adapter whose base has longer names", |m| {
        lora(m, "", "base");
        let weight = "language.model.layers.0.q_proj.weight";
        m.weights("base/model.safetensors", &[A, (weight, "F32", &[16, 8])]);
    }),
    ("an adapter of an embedding", |m| {
        lora(m, "", "base");
        let name = |factor| format!("base_model.model.embed.lora_embedding_{factor}");
        let (a, b) = (name("A"), name("B"));
        let factors = [(&*a, "F32", &[4, 16][..]), (&*b, "F32", &[8, 4])];
        m.weights("adapter_model.safetensors", &factors);
        m.weights("base/model.safetensors", &[("embed.weight", "F32", &[16, 8])]);
    }),
    ("an adapter with a quantized base", |m| {
        lora(m, "", "base");
        m.weights("base/model.safetensors", &[("model.layers.0.q_proj.weight", "I16", &[64, 1])]);
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
        m.weights("adapter_model.safetensors", &[("prompt_embeddings", "F32", &[2])]);
    }),
    ("an index that cannot be read, which opening it reports", |m| {
        m.set("model", &[A, B]);
        m.index("model.safetensors.index.json", &[("a", "/model-00001-of-00002.safetensors")]);
    }),
    ("two names of one index", |m| {
        m.set("model", &[A, B]);
        fs::copy(m.path("model.safetensors.index.json"), m.path("x.safetensors.index.json"))
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
