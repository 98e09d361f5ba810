//! What is written has the same bytes on every system: digests are compared with stored ones, from x86-64
//! Linux. A new version of zstd may change them. `cargo xtask platforms` runs this on 32 bits, on big-endian systems and on Windows.
#![allow(clippy::unwrap_used, reason = "tests")]
#![cfg(all(feature = "gguf", feature = "npy", feature = "safetensors", feature = "zstd"))]

use zt::{
    Attributes, DType, Dense, DigestAlgorithm, Elements, File, FloatType, HashOptions, Value,
    WriteOptions,
};
use zt_convert::{ConvertOptions, GGUF, Input, Kinds, NPZ, SAFETENSORS, ZT};

/// Elements with similar upper bytes, as weights have: numbers, and no NaN.
fn weights(dtype: DType, count: u64) -> Vec<u8> {
    let width = dtype.byte_len();
    let element = |at: u64| {
        let mut element = at.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
        element[width - 1] = 0x3c | element[width - 1] & 0x81;
        element.into_iter().take(width)
    };
    (1..=count).flat_map(element).collect()
}

/// Objects of every width. The first is long enough for several frames, and for planes in pieces.
fn model() -> File {
    let mut bytes = Vec::new();
    let mut writer = WriteOptions::new().to_writer(&mut bytes).unwrap();
    writer
        .set_attributes(Attributes::from([
            ("general.architecture", Value::from("none")),
            ("rate", Value::Float(3e-4)),
            ("steps", Value::Unsigned(20_000)),
        ]))
        .unwrap();
    for (name, dtype, shape) in [
        ("a.f32", DType::F32, [1200, 1000]),
        ("b.bf16", DType::BF16, [500, 1000]),
        ("c.f16", DType::F16, [9, 64]),
        ("d.f64", DType::F64, [9, 7]),
        ("e.i16", DType::I16, [9, 7]),
        ("f.i64", DType::I64, [0, 7]),
        ("g.i8", DType::I8, [1, 1]),
    ] {
        let bytes = weights(dtype, shape.iter().product());
        let dense = Dense::from_elements(shape, Elements::new(dtype, bytes)).unwrap();
        writer.add(name, &dense).unwrap();
    }
    writer.finish().unwrap();
    File::from_bytes(bytes).unwrap()
}

#[test]
fn files_have_the_bytes_of_other_systems() {
    let plain = WriteOptions::new;
    let sha256 = Some(DigestAlgorithm::Sha256);
    let outputs = [
        (ZT, plain(), None),
        (ZT, plain().zstd(3), None),
        (ZT, plain().planes(), None),
        (ZT, plain().digest(sha256).chunk_digests(sha256), None),
        (ZT, plain(), Some(FloatType::BF16)),
        (SAFETENSORS, plain(), None),
        (GGUF, plain(), None),
        (NPZ, plain(), None),
    ];
    let digests = [
        "sha256:0bed7b645c00ea656aa11c999f16ef5b5292cbb251277e8d29026a862c459070",
        "sha256:f4a842183c487728b87846226b79a9936e5c4131d6038845844fc01a86ec27fd",
        "sha256:d8f9ef470b9f3b7eb68ad83c7c7d649fb02cf171f3775dd304fb200b2e40cd3b",
        "sha256:8ec8550f82113c0be89c77b615473a9948bc1df7a97267b13969a092b4b1c9ca",
        "sha256:38b73023234bb64ffea5ab0bb2e6cbb204557fed559d9bb1f55d19fce493f14f",
        "sha256:244fa1abbd9c058785ce49e295f690f2cde169f8c64a1d1e46ee52d035633ff4",
        "sha256:f3203f7b09a859afab7082aa5feba725cfc5e46e7b51c9a1275558dfd1e51e8c",
        "sha256:1dee7f275fb998375007325f53bcb2393045e6bb0ad8b99ee077007fc7c81655",
    ];
    let model = model();
    let written = outputs.map(|(kind, write, dtype)| {
        let mut options = ConvertOptions::new(kind);
        options.write = write;
        options.dtype = dtype;
        let mut bytes = Vec::new();
        Kinds::builtin().convert(&[Input::from(model.clone())], &mut bytes, &options).unwrap();
        DigestAlgorithm::Sha256.digest(&bytes).unwrap().to_string()
    });
    assert_eq!(written, digests);
}

#[test]
fn content_has_the_hash_of_other_systems() {
    let content = model().hash(&HashOptions::default()).unwrap().content;
    let hex = content.unwrap().map(|byte| format!("{byte:02x}")).concat();
    assert_eq!(hex, "5924aabc0604f05b07b61aa3de1de215e3bd1482cf8705dbfcad67eca9dd5d88");
}
