//! Averages and LoRA, beside torch: `conformance/data/arithmetic/arithmetic.py`.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "tests"
)]
#![cfg(feature = "default")]

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::{fs, io};

use zt::diff::{DiffOptions, diff};
use zt::{Coo, Dense, File, FloatType, Source, Span, WriteOptions};
use zt_convert::{ConvertOptions, Input, Kinds, SAFETENSORS, ZT};
use zt_model::{Lora, Quantize, average};

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/data/arithmetic")
}

fn open(name: &str) -> Input {
    let path = data().join(name);
    Kinds::builtin().open(path, zt::OpenOptions::new()).unwrap()
}

fn adapter() -> Lora {
    Lora::open(data().join("adapter"), &Kinds::builtin()).unwrap()
}

/// Whether both files have the same names, shapes, types and values, to the last bit.
#[track_caller]
fn is_equal(computed: &File, expected: &str) {
    let diff = diff(computed, open(expected).file(), &DiffOptions::new()).unwrap();
    assert!(diff.is_same() && diff.same == 8, "{diff:?}");
}

/// The file that a conversion of `input` writes.
fn written(input: &Input, options: &ConvertOptions<'_>) -> zt::Result<File> {
    let mut bytes = Vec::new();
    Kinds::builtin().convert(std::slice::from_ref(input), &mut bytes, options)?;
    zt_convert::open_source(zt::Memory::new(bytes))
}

/// A file of dense tensors.
fn file(tensors: &[(&str, &[u64], &[f32])]) -> Input {
    stored(tensors, WriteOptions::new())
}

fn stored(tensors: &[(&str, &[u64], &[f32])], options: WriteOptions) -> Input {
    let mut bytes = Vec::new();
    let mut writer = options.to_writer(&mut bytes).unwrap();
    for (name, shape, values) in tensors {
        let dense = Dense::from_slice(shape, values).unwrap();
        writer.add(name, &dense).unwrap();
    }
    writer.finish().unwrap();
    Input::from(File::from_bytes(bytes).unwrap())
}

/// Values without a pattern.
fn values(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / 8_388_608.0 - 1.0
    };
    std::iter::repeat_with(next).take(count).collect()
}

#[test]
fn weights_and_an_adapter_are_those_of_torch() {
    let base = open("base.safetensors");
    let options = ConvertOptions::new(SAFETENSORS);
    let merged = adapter().merge(&base, &options).unwrap();
    is_equal(merged.file(), "merged.safetensors");
    is_equal(&written(&merged, &options).unwrap(), "merged.safetensors");
    let scaled = adapter().scale(0.3).merge(&base, &options).unwrap();
    is_equal(scaled.file(), "scaled.safetensors");
    // The order of the data is kept, and no input can be overwritten.
    let names = |input: &Input| {
        let entries = input.file().entries().into_iter();
        let names = entries.map(|entry| entry.name().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(&merged), names(&base));
    assert_eq!(merged.paths().len(), 2);
}

#[test]
fn averages_are_those_of_torch() {
    let inputs = ["base", "second", "third"].map(|name| open(&format!("{name}.safetensors")));
    let options = ConvertOptions::new(ZT);
    let mean = average(&inputs, &[], &options).unwrap();
    is_equal(mean.file(), "mean.safetensors");
    let weighted = average(&inputs, &[1.0, 2.0, 0.5], &options).unwrap();
    is_equal(&written(&weighted, &options).unwrap(), "weighted.safetensors");
    assert_eq!(weighted.paths().len(), 3);
}

/// How the inputs are stored does not matter, nor how the values are read.
#[test]
fn values_beyond_a_block_are_right_in_any_storage() {
    const SHAPE: [u64; 2] = [300, 701];
    const COUNT: usize = 300 * 701;
    let (w, other) = (values(COUNT, 1), values(COUNT, 2));
    let (a, b) = (values(2 * 701, 3), values(300 * 2, 4));
    let sum = |at: usize| {
        let (row, column) = (at / 701, at % 701);
        let product = |k: usize| f64::from(b[row * 2 + k]) * f64::from(a[k * 701 + column]);
        (f64::from(w[at]) + 0.5 * (product(0) + product(1))) as f32
    };
    let mean = |at: usize| ((f64::from(w[at]) + f64::from(other[at])) / 2.0) as f32;
    let expected: [Vec<f32>; 2] = [(0..COUNT).map(sum).collect(), (0..COUNT).map(mean).collect()];
    let factors = file(&[("w.lora_A.weight", &[2, 701], &a), ("w.lora_B.weight", &[300, 2], &b)]);
    let lora = Lora::from(factors).scale(0.5);
    for storage in [WriteOptions::new(), WriteOptions::new().planes(), WriteOptions::new().zstd(1)]
    {
        let input = |values: &[f32]| {
            stored(&[("w", &[1], &values[..1]), ("w.weight", &SHAPE, values)], storage.clone())
        };
        let inputs = [input(&w), input(&other)];
        let options = ConvertOptions::new(ZT);
        let computed =
            [lora.merge(&inputs[0], &options).unwrap(), average(&inputs, &[], &options).unwrap()];
        for (computed, expected) in computed.iter().zip(&expected) {
            let tensor = computed.file().tensor("w.weight").unwrap();
            assert!(*tensor.values::<f32>().unwrap() == expected[..]);
            let row = tensor.slice(&[7i64.into()]).unwrap();
            assert!(*row.as_slice::<f32>().unwrap() == expected[7 * 701..8 * 701]);
            let file = written(computed, &options).unwrap();
            let tensor = file.tensor("w.weight").unwrap();
            assert!(*tensor.values::<f32>().unwrap() == expected[..]);
            assert_eq!(tensor.format(), "dense");
        }
    }
}

#[test]
fn a_value_is_rounded_once_to_the_wished_dtype() {
    let inputs = [file(&[("w", &[1], &[1.0])]), file(&[("w", &[1], &[1.0 + 2f32.powi(-23)])])];
    // The mean has no f32.
    let options = ConvertOptions::new(ZT).dtype(FloatType::F64);
    let mean = average(&inputs, &[], &options).unwrap();
    let wide = written(&mean, &options).unwrap();
    let tensor = wide.tensor("w").unwrap();
    assert_eq!(*tensor.values::<f64>().unwrap(), [1.0 + 2f64.powi(-24)]);

    // 8.5 is halfway between two values of FP8.
    let inputs = [file(&[("w", &[2], &[1.0, 9.0])]), file(&[("w", &[2], &[3.0, 8.0])])];
    let options = ConvertOptions::new(ZT).dtype(FloatType::F8E4M3Fn);
    let mean = average(&inputs, &[], &options).unwrap();
    let narrow = Input::from(written(&mean, &options).unwrap());
    let mean = average(&[narrow.clone(), narrow], &[], &ConvertOptions::new(ZT)).unwrap();
    let tensor = mean.file().tensor("w").unwrap();
    assert_eq!(tensor.value_type().as_deref(), Some("f8_e4m3fn"));
    let values = tensor.to_dense().unwrap().to_f32().unwrap();
    assert_eq!(*values.as_slice::<f32>().unwrap(), [2.0, 8.0]);
}

#[test]
fn an_infinite_value_is_refused_unless_it_is_allowed() {
    let inputs = [file(&[("w", &[2], &[1.0, 3e38])]), file(&[("w", &[2], &[1.0, -3e38])])];
    let mut options = ConvertOptions::new(ZT);
    let far = average(&inputs, &[2.0, -1.0], &options).unwrap();
    let error = written(&far, &options).unwrap_err();
    assert_eq!((error.code(), error.object()), ("lossy", Some("w")));
    options.allow_inf = true;
    let far = average(&inputs, &[2.0, -1.0], &options).unwrap();
    let file = written(&far, &options).unwrap();
    assert_eq!(*file.tensor("w").unwrap().values::<f32>().unwrap(), [1.0, f32::INFINITY]);
}

/// A digest of a whole component is compared before a part of it is used.
#[test]
fn damage_is_found() {
    let mut bytes = Vec::new();
    let count = 1 << 20;
    let options = WriteOptions::new().chunk_digests(None);
    let mut writer = options.to_writer(&mut bytes).unwrap();
    let of_ones = vec![1f32; count];
    let dense = Dense::from_slice(&[count as u64], &of_ones).unwrap();
    writer.add("w", &dense).unwrap();
    writer.finish().unwrap();
    bytes[2 << 20] ^= 1;
    let damaged = Input::from(File::from_bytes(bytes).unwrap());
    let options = ConvertOptions::new(ZT);
    let mean = average(&[damaged], &[], &options).unwrap();
    let mut first = [0; 4];
    let read = mean.file().tensor("w").unwrap().reader("data").unwrap();
    let error = std::io::Read::read_exact(&mut { read }, &mut first).unwrap_err();
    assert_eq!(zt::Error::from(error).code(), "digest-mismatch");
}

#[test]
fn inputs_that_do_not_fit_are_refused_before_a_value_is_read() {
    let options = ConvertOptions::new(ZT);
    let code = |inputs: &[Input], weights: &[f64]| {
        let error = average(inputs, weights, &options).unwrap_err();
        (error.code(), error.object().unwrap_or_default().to_owned())
    };
    let of = |code, object: &str| (code, object.to_owned());
    let one = || file(&[("w", &[2], &[1.0, 2.0])]);
    let two = file(&[("w", &[2], &[1.0, 2.0]), ("v", &[1], &[1.0])]);
    assert_eq!(code(&[], &[]), of("misuse", ""));
    assert_eq!(code(&[one(), one()], &[1.0]), of("misuse", ""));
    for weights in [[1.0, -1.0], [f64::NAN, 1.0], [f64::INFINITY, 1.0]] {
        assert_eq!(code(&[one(), one()], &weights), of("misuse", ""));
    }
    assert_eq!(code(&[one(), two.clone()], &[]), of("not-found", "v"));
    assert_eq!(code(&[two, one()], &[]), of("not-found", "v"));
    let row = file(&[("w", &[1, 2], &[1.0, 2.0])]);
    assert_eq!(code(&[one(), row], &[]), of("misuse", "w"));
    let sparse = |value: f32| {
        let mut bytes = Vec::new();
        let mut writer = zt::Writer::new(&mut bytes).unwrap();
        let values = [value];
        let coo = Coo::new([2], &values[..], &[1u64][..]).unwrap();
        writer.add("s", &coo).unwrap();
        writer.finish().unwrap();
        Input::from(File::from_bytes(bytes).unwrap())
    };
    assert_eq!(code(&[sparse(1.0), sparse(2.0)], &[]), of("unsupported", "s"));
    assert!(average(&[sparse(1.0), sparse(1.0)], &[], &options).is_ok());
}

#[test]
fn adapters_that_do_not_fit_are_refused_before_a_value_is_read() {
    let base = file(&[("l.weight", &[2, 3], &[0.0; 6]), ("norm.weight", &[2], &[1.0; 2])]);
    let options = ConvertOptions::new(ZT);
    let error = |tensors: &[(&str, &[u64], &[f32])]| {
        let lora = Lora::from(file(tensors)).scale(1.0);
        lora.merge(&base, &options).unwrap_err()
    };
    let a: (&str, &[u64], &[f32]) = ("l.lora_A.weight", &[1, 3], &[1.0; 3]);
    let b: (&str, &[u64], &[f32]) = ("l.lora_B.weight", &[2, 1], &[1.0; 2]);
    for (tensors, code, object) in [
        (&[a][..], "misuse", "l.lora_A.weight"),
        (&[b], "misuse", "l.lora_B.weight"),
        (
            &[a, b, ("l.lora_magnitude_vector", &[1], &[1.0])],
            "unsupported",
            "l.lora_magnitude_vector",
        ),
        (&[a, b, ("l.lora_A.x.weight", &[1], &[1.0])], "unsupported", "l.lora_A.x.weight"),
        (
            &[("x.lora_A.weight", a.1, a.2), ("x.lora_B.weight", b.1, b.2)],
            "not-found",
            "x.lora_A.weight",
        ),
        (&[("l.lora_A.weight", &[1, 2], &[1.0; 2]), b], "misuse", "l.lora_A.weight"),
        (&[a, ("l.lora_B.weight", &[2, 2], &[1.0; 4])], "misuse", "l.lora_A.weight"),
        (
            &[("norm.lora_A.weight", &[2], &[1.0; 2]), ("norm.lora_B.weight", &[2], &[1.0; 2])],
            "misuse",
            "norm.lora_A.weight",
        ),
        (&[], "not-found", ""),
    ] {
        let error = error(tensors);
        let found = (error.code(), error.object().unwrap_or_default());
        assert_eq!(found, (code, object), "{error}");
    }
    // Without a configuration the scale is unknown.
    let lora = Lora::from(file(&[a, b]));
    assert_eq!(lora.merge(&base, &options).unwrap_err().code(), "misuse");
    assert!(lora.scale(0.0).merge(&base, &options).is_ok());
}

#[test]
fn the_configuration_gives_the_scale_and_the_orientation() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    let options = ConvertOptions::new(SAFETENSORS);
    // Weights of GPT-2 are stored with a row for each input.
    let base = file(&[("l.weight", &[3, 2], &[0.0; 6])]);
    let factors = file(&[
        ("base_model.model.l.lora_A.default.weight", &[1, 3], &[1.0, 2.0, 3.0]),
        ("base_model.model.l.lora_B.default.weight", &[2, 1], &[1.0, 10.0]),
    ]);
    let model = folder.join("adapter_model.safetensors");
    let error = Lora::open(folder, &Kinds::builtin()).unwrap_err();
    assert_eq!(error.code(), "not-found");
    zt_convert::Kinds::builtin().convert_to_path(&[factors], &model, &options).unwrap();
    let merged = |config: &str| {
        fs::write(folder.join("adapter_config.json"), config).unwrap();
        Lora::open(&model, &Kinds::builtin())?.merge(&base, &options)
    };
    let file =
        merged(r#"{"lora_alpha": 2, "fan_in_fan_out": true, "r": 1, "alpha_pattern": null}"#);
    let file = file.unwrap();
    let tensor = file.file().tensor("l.weight").unwrap();
    let expected = [2.0, 20.0, 4.0, 40.0, 6.0, 60.0];
    assert_eq!(*tensor.values::<f32>().unwrap(), expected);
    for (config, code) in [
        (r#"{"lora_alpha": 2}"#, "misuse"),
        (r#"{"fan_in_fan_out": true}"#, "misuse"),
        (
            r#"{"lora_alpha": 2, "fan_in_fan_out": true, "alpha_pattern": {"l(?=x)": 4}}"#,
            "unsupported",
        ),
        (r#"{"lora_alpha": 2, "fan_in_fan_out": true, "r": 2}"#, "misuse"),
        (
            r#"{"lora_alpha": 2, "fan_in_fan_out": true, "r": 1, "rank_pattern": {"l": 2}}"#,
            "misuse",
        ),
        ("[", "header"),
    ] {
        assert_eq!(merged(config).unwrap_err().code(), code, "{config}");
    }
}

/// The numbers are those of `scaling` and `merge_and_unload` of peft 0.21.2: a pattern is a regular expression of the
/// end of a name, and the first one counts.
#[test]
fn patterns_and_saved_modules_are_those_of_peft() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    let base = file(&[
        ("m.0.q.weight", &[2, 2], &[0.0; 4]),
        ("m.1.q.weight", &[2, 2], &[0.0; 4]),
        ("m.10.q.weight", &[2, 2], &[0.0; 4]),
        ("m.embed.weight", &[2, 1], &[1.0, 2.0]),
    ]);
    let one = [1.0f32; 4];
    let mut tensors = Vec::new();
    for (layer, rank) in [("0", 1u64), ("1", 2), ("10", 1)] {
        for (factor, shape) in [("A", [rank, 2]), ("B", [2, rank])] {
            let name = format!("base_model.model.m.{layer}.q.lora_{factor}.weight");
            tensors.push((name, shape, &one[..2 * rank as usize]));
        }
    }
    tensors.push(("base_model.model.m.embed.weight".to_owned(), [2, 1], &[5.0, 6.0]));
    let merged = |config: &str, count: usize, scale: Option<f64>| {
        let tensors = tensors.iter().take(count);
        let tensors: Vec<(&str, &[u64], &[f32])> =
            tensors.map(|(name, shape, values)| (&**name, &shape[..], *values)).collect();
        let options = ConvertOptions::new(SAFETENSORS).overwrite(true);
        let model = folder.join("adapter_model.safetensors");
        Kinds::builtin().convert_to_path(&[file(&tensors)], &model, &options).unwrap();
        fs::write(folder.join("adapter_config.json"), config).unwrap();
        let lora = Lora::open(folder, &Kinds::builtin())?.scale(scale);
        let merged = written(&lora.merge(&base, &options)?, &options)?;
        let first = |name: &str| merged.tensor(name)?.values::<f32>().map(|values| values[0]);
        let names = ["m.0.q.weight", "m.1.q.weight", "m.10.q.weight", "m.embed.weight"];
        names.into_iter().map(first).collect::<zt::Result<Vec<f32>>>()
    };
    let config = r#"{"r": 1, "lora_alpha": 4, "rank_pattern": {"1.q": 2},
        "alpha_pattern": {"m.10.q": 8, "m\\.\\d+\\.q": 16, "0.q": 32}, "modules_to_save": ["embed"]}"#;
    // The scales are 16 / 1, 16 / 2 for the rank 2, and 8 / 1.
    assert_eq!(merged(config, 7, None).unwrap(), [16.0, 16.0, 8.0, 5.0]);
    // A dot is any character, but `1.q` is no end of `10.q`: something else must be before it, or a dot.
    let config = r#"{"r": 1, "lora_alpha": 4, "rank_pattern": {"1.q": 2}}"#;
    assert_eq!(merged(config, 6, None).unwrap(), [4.0, 4.0, 4.0, 1.0]);
    let rslora = r#"{"r": 1, "lora_alpha": 4, "use_rslora": true, "rank_pattern": {"1.q": 2}}"#;
    let expected = (4.0 / 2f64.sqrt() * 2.0) as f32;
    assert_eq!(merged(rslora, 6, None).unwrap(), [4.0, expected, 4.0, 1.0]);
    // The module is not on the list, and the rank is not that of the configuration.
    let error = merged(config, 7, None).unwrap_err();
    assert_eq!(
        (error.code(), error.object()),
        ("unsupported", Some("base_model.model.m.embed.weight"))
    );
    let wrong = r#"{"r": 2, "lora_alpha": 4}"#;
    let error = merged(wrong, 6, None).unwrap_err();
    assert_eq!(
        (error.code(), error.object()),
        ("misuse", Some("base_model.model.m.0.q.lora_A.weight"))
    );
    assert_eq!(merged(wrong, 6, Some(1.0)).unwrap(), [1.0, 2.0, 1.0, 1.0]);
    // Other methods have other sums.
    for other in [r#""peft_type": "LOHA""#, r#""use_dora": true"#] {
        let config = format!(r#"{{"r": 1, "lora_alpha": 4, {other}}}"#);
        assert_eq!(merged(&config, 6, Some(1.0)).unwrap_err().code(), "unsupported");
    }
}

#[test]
fn counters_are_those_of_the_first_input() {
    let counted = |count: i64| {
        let mut bytes = Vec::new();
        let mut writer = zt::Writer::new(&mut bytes).unwrap();
        writer.add("w", &Dense::from_slice(&[1], &[count as f32]).unwrap()).unwrap();
        writer.add("steps", &Dense::from_slice(&[], &[count]).unwrap()).unwrap();
        writer.finish().unwrap();
        Input::from(File::from_bytes(bytes).unwrap())
    };
    let options = ConvertOptions::new(ZT);
    let mean = average(&[counted(2), counted(4)], &[], &options).unwrap();
    let file = written(&mean, &options).unwrap();
    assert_eq!(*file.tensor("w").unwrap().values::<f32>().unwrap(), [3.0]);
    assert_eq!(*file.tensor("steps").unwrap().values::<i64>().unwrap(), [2]);
    let found = mean.file().warnings();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].code, found[0].object.as_deref()), ("first-kept", Some("steps")));
    assert!(
        average(&[counted(2), counted(2)], &[], &options).unwrap().file().warnings().is_empty()
    );
}

/// The factors would lie beside the weights that they change.
#[test]
fn an_adapter_is_not_merged_as_if_it_were_weights() {
    let base = file(&[("l.weight", &[2, 2], &[0.0; 4])]);
    let options = ConvertOptions::new(ZT);
    let convert = |inputs: &[Input]| Kinds::builtin().convert(inputs, Vec::new(), &options);
    let names = [
        ["base_model.model.l.lora_A.weight", "base_model.model.l.lora_B.weight"],
        ["lora_unet_l.lora_down.weight", "lora_unet_l.lora_up.weight"],
        ["unet.l.lora.down.weight", "unet.l.lora.up.weight"],
    ];
    for [a, b] in names {
        let alpha = "lora_unet_l.alpha";
        let adapter =
            file(&[(a, &[1, 2], &[1.0; 2]), (b, &[2, 1], &[1.0; 2]), (alpha, &[], &[1.0])]);
        for inputs in [[base.clone(), adapter.clone()], [adapter.clone(), base.clone()]] {
            let error = convert(&inputs).unwrap_err();
            assert!(error.code() == "misuse" && error.message().contains("--lora"), "{error}");
        }
        assert!(convert(&[adapter]).is_ok());
    }
}

/// A file over a network, and how many spans each announcement has.
struct Remote(Vec<u8>, Arc<Mutex<Vec<usize>>>);

impl Source for Remote {
    fn byte_len(&self) -> u64 {
        self.0.len() as u64
    }
    fn is_remote(&self) -> bool {
        true
    }
    fn will_read_all(&self, spans: &[Span]) {
        self.1.lock().unwrap().push(spans.len());
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        zt::Memory::new(&self.0).read_at(offset, buf)
    }
}

/// A request for each of a thousand tensors takes minutes.
#[test]
fn what_computed_values_are_made_of_is_announced_together() {
    let mut bytes = Vec::new();
    let mut writer = WriteOptions::new().to_writer(&mut bytes).unwrap();
    for at in 0..8u8 {
        let values = [f32::from(at); 64];
        let dense = Dense::from_slice(&[2, 32], &values).unwrap();
        writer.add(&at.to_string(), &dense).unwrap();
    }
    writer.finish().unwrap();
    let announced = Arc::default();
    let remote = Remote(bytes, Arc::clone(&announced));
    let input = Input::from(zt_convert::open_source(remote).unwrap());
    let options = ConvertOptions::new(ZT);
    let quantized = Quantize::groups(8, 32, false).unwrap().of(&input, |_| true).unwrap();
    let mean = average(&[input.clone(), input], &[], &options).unwrap();
    for (made, spans) in [(quantized.input(), 8), (&mean, 16)] {
        announced.lock().unwrap().clear();
        written(made, &options).unwrap();
        assert!(announced.lock().unwrap().contains(&spans), "{announced:?}");
    }
}
