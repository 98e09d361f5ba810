//! Quantized checkpoints of each dialect, with the values that they mean and with faults: `conformance/data/quantized`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use zt::{File, FloatType, Result, VerifyOptions, Warning};
use zt_convert::{ConvertOptions, Input, InputOptions, Kinds, Logical, SAFETENSORS};

fn cases() -> Vec<(PathBuf, Value)> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/quantized");
    let mut folders: Vec<PathBuf> =
        fs::read_dir(data).unwrap().map(|it| it.unwrap().path()).collect();
    folders.retain(|folder| folder.is_dir());
    folders.sort();
    let truth = |folder: PathBuf| {
        let json = fs::read(folder.join("truth.json")).unwrap();
        let json = serde_json::from_slice(&json).unwrap();
        (folder, json)
    };
    folders.into_iter().map(truth).collect()
}

fn open(folder: &Path, float: Option<FloatType>) -> Result<Input> {
    let logical = Logical::new().float(float).checks_scales(true);
    Kinds::builtin().open(folder, InputOptions::new().logical(logical))
}

/// The values of all tensors as f32.
fn values(file: &File, name: &str) -> Vec<f32> {
    let dense = file.tensor(name).unwrap().to_f32().unwrap();
    dense.as_slice::<f32>().unwrap().to_vec()
}

/// How many floats lie between two.
fn ulps(a: f32, b: f32) -> u64 {
    let place = |value: f32| {
        let magnitude = i64::from(value.to_bits() & 0x7fff_ffff);
        if value.is_sign_negative() { -magnitude } else { magnitude }
    };
    if a.is_nan() && b.is_nan() { 0 } else { place(a).abs_diff(place(b)) }
}

#[test]
fn values_are_the_exact_products() {
    let cases = cases();
    assert_eq!(cases.len(), 131);
    for (folder, truth) in cases {
        let expected = zt_convert::open(folder.join("truth.safetensors")).unwrap();
        let model = open(&folder.join("model"), Some(FloatType::F32)).unwrap();
        let file = model.file();
        assert_eq!(file.warnings(), [], "{folder:?}");
        let may_stay: BTreeSet<&str> =
            truth["may_stay"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let names: BTreeSet<&str> = file.names().filter(|name| !may_stay.contains(name)).collect();
        assert_eq!(names, expected.names().collect(), "{folder:?}");
        for name in names {
            let (found, expected) = (values(file, name), values(&expected, name));
            assert_eq!(
                file.tensor(name).unwrap().shape(),
                zt_convert::open(folder.join("truth.safetensors"))
                    .unwrap()
                    .tensor(name)
                    .unwrap()
                    .shape()
            );
            let allowed = truth["tensors"][name]["ulp"].as_u64().unwrap_or(0);
            for (found, expected) in found.iter().zip(&expected) {
                assert!(
                    ulps(*found, *expected) <= allowed,
                    "{folder:?} {name}: {found} {expected}"
                );
            }
        }
    }
}

#[test]
fn a_part_has_the_values_of_the_whole() {
    for (folder, _) in cases() {
        let model = open(&folder.join("model"), None).unwrap();
        for tensor in model.file().tensors() {
            let tensor = tensor.unwrap();
            let whole = tensor.to_dense().unwrap();
            for text in ["0", "-1", "1:3", ":,1:4", "...,::3", "-2:,-1"] {
                let slices = zt::Slice::parse_list(text).unwrap();
                if let Ok(part) = whole.slice(&slices) {
                    assert_eq!(
                        tensor.slice(&slices).unwrap(),
                        part,
                        "{folder:?} {} {text}",
                        tensor.name()
                    );
                }
            }
        }
    }
}

/// Whose own code rounds more than once in its own type: the f32 is rounded to that type instead. MLX is far off near
/// zero, the others by one step.
const ROUNDED: [&str; 5] = ["12-comfy", "13-mlx", "14-hqq", "35-hqq", "36-comfy"];

#[test]
fn values_of_the_dialects_own_type_are_those_of_its_library() {
    let mut compared = 0;
    for (folder, truth) in cases() {
        let Ok(own) = zt_convert::open(folder.join("truth-own.safetensors")) else { continue };
        let exact = zt_convert::open(folder.join("truth.safetensors")).unwrap();
        let model = open(&folder.join("model"), None).unwrap();
        let case = folder.file_name().unwrap().to_str().unwrap();
        let is_rounded = ROUNDED.iter().any(|it| case.starts_with(it));
        for (name, of) in truth["tensors"].as_object().unwrap() {
            // Of int8, bitsandbytes gives f32, and its loaders the type of the model.
            let float = match of["own"].as_str().and_then(FloatType::from_typed) {
                Some(float) if !case.contains("bnb-int8") => float,
                _ => continue,
            };
            let tensor = model.file().tensor(name).unwrap();
            assert_eq!(tensor.value_type().as_deref(), Some(float.as_str()), "{case} {name}");
            let expected = values(if is_rounded { &exact } else { &own }, name);
            let expected = zt::Elements::from(&*expected).cast(float, &zt::Registry::builtin());
            let expected = expected.unwrap().to_f32(&zt::Registry::builtin()).unwrap();
            // ModelOpt has a zero without a sign for the code of a negative one.
            let same = |(a, b): (f32, &f32)| a == *b || (a.is_nan() && b.is_nan());
            let expected = expected.as_slice::<f32>().unwrap();
            let found = values(model.file(), name);
            assert_eq!(found.len(), expected.len(), "{case} {name}");
            assert!(found.into_iter().zip(expected.iter()).all(same), "{case} {name}");
            compared += 1;
        }
    }
    assert!(compared > 120, "{compared}");
}

#[test]
fn sound_folders_have_no_findings() {
    let options = zt_model::ExamineOptions::default();
    for (folder, _) in cases() {
        let findings =
            zt_model::examine(&Kinds::builtin(), folder.join("model"), &options).unwrap();
        assert_eq!(findings, [], "{folder:?}");
    }
}

#[test]
fn faults_are_named() {
    for (folder, truth) in cases() {
        for fault in truth["faults"].as_array().unwrap() {
            let (name, expected) =
                (fault["name"].as_str().unwrap(), fault["expect"].as_str().unwrap());
            let what = format!("{folder:?} {name}");
            let opened = open(&folder.join("faults").join(name), None);
            let mut target = Vec::new();
            let convert = |input: &Input, target: &mut Vec<u8>| {
                let options = ConvertOptions::new(SAFETENSORS).dense(true);
                Kinds::builtin().convert(std::slice::from_ref(input), target, &options)
            };
            let (error, warnings): (_, Vec<Warning>) = match &opened {
                Err(error) => (Some(error.clone()), Vec::new()),
                Ok(input) => {
                    let report = input.file().verify(&VerifyOptions::new()).unwrap();
                    let converted = convert(input, &mut target);
                    let error =
                        report.problems.first().cloned().or(input.file().truncated().cloned());
                    assert_eq!(error.is_some(), converted.is_err(), "{what}: {error:?}");
                    (error, input.file().warnings())
                }
            };
            match expected {
                "error" => {
                    let error = error.unwrap_or_else(|| panic!("{what} has no error"));
                    let object = error.object().unwrap_or_default();
                    let weight = fault["tensor"].as_str().unwrap_or_default();
                    let module = |name: &str| {
                        name.rsplit_once('.').map_or(String::new(), |it| it.0.to_owned())
                    };
                    let (weight, object) = (module(weight), module(object));
                    let is_named = weight.starts_with(&object) || object.starts_with(&weight);
                    assert!(is_named, "{what}: {error}");
                }
                "warning" => assert!(error.is_some() || !warnings.is_empty(), "{what}"),
                _ => assert!(error.is_none(), "{what}: {error:?}"),
            }
        }
    }
}

/// A set of two shards. The second has the name of another split. The index names the tensors that `listed`
/// keeps.
fn with_an_older_shard(listed: impl Fn(&str) -> bool) -> tempfile::TempDir {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/quantized/01-deepseek-fp8/model");
    let folder = tempfile::tempdir().unwrap();
    let copy = |from: &str, to: &str| fs::copy(data.join(from), folder.path().join(to)).unwrap();
    copy("config.json", "config.json");
    copy("model-00001-of-00002.safetensors", "model-00001-of-00002.safetensors");
    copy("model-00002-of-00002.safetensors", "model-00002-of-00003.safetensors");
    let index = fs::read_to_string(data.join("model.safetensors.index.json")).unwrap();
    let index = index.replace("model-00002-of-00002", "model-00002-of-00003");
    let mut index: Value = serde_json::from_str(&index).unwrap();
    let map = index["weight_map"].as_object_mut().unwrap();
    map.retain(|_, shard| listed(shard.as_str().unwrap()));
    fs::write(folder.path().join("model.safetensors.index.json"), index.to_string()).unwrap();
    folder
}

/// What `old-shards` says of a folder.
fn old_shards(folder: &Path) -> String {
    let options = zt_model::ExamineOptions::new();
    let findings = zt_model::examine(&Kinds::builtin(), folder, &options).unwrap();
    findings.into_iter().find(|it| it.code == "old-shards").unwrap().message
}

/// A scale that only a shard of an older set has is missing, and the shard is named.
#[test]
fn a_shard_that_the_index_does_not_name_has_no_scales() {
    let folder = with_an_older_shard(|shard| shard != "model-00002-of-00003.safetensors");
    let model = open(folder.path(), None).unwrap();
    let problems = model.file().verify(&VerifyOptions::new()).unwrap().problems;
    let codes: Vec<_> = problems.iter().map(|it| (it.code(), it.object())).collect();
    let weights = ["model.layers.0.self_attn.q_proj.weight", "model.layers.1.mlp.down_proj.weight"];
    assert_eq!(codes, weights.map(|weight| ("quantization", Some(weight))));
    assert!(problems[0].to_string().contains("weight_scale_inv is missing"));
    let message = old_shards(folder.path());
    assert!(message.contains("model-00002-of-00003.safetensors"), "{message}");
}

/// The index gives scales to a shard of another split.
#[test]
fn an_index_of_two_splits_is_named() {
    let folder = with_an_older_shard(|_| true);
    let message = old_shards(folder.path());
    assert!(message.contains("of 2, of 3"), "{message}");
}

/// Codes are read in parts, and a digest is of all of them.
#[test]
fn a_flipped_bit_in_codes_or_scales_is_found() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/quantized/01-deepseek-fp8/model");
    let input = Kinds::builtin().open(folder, InputOptions::new()).unwrap();
    let mut bytes = Vec::new();
    let options = ConvertOptions::new(zt_convert::ZT);
    Kinds::builtin().convert(&[input], &mut bytes, &options).unwrap();
    let file = zt_convert::Kinds::builtin()
        .open_source(zt::Memory::new(bytes.clone()), InputOptions::new());
    let file = file.unwrap().into_file();
    let name = "model.layers.0.self_attn.q_proj.weight";
    for part in [name.to_owned(), format!("{name}_scale_inv")] {
        let place = file.tensor(&part).unwrap().component("data").unwrap().blob.span.offset();
        let mut damaged = bytes.clone();
        damaged[usize::try_from(place).unwrap()] ^= 1;
        let options = InputOptions::new().logical(Logical::new());
        let model = Kinds::builtin().open_source(zt::Memory::new(damaged), options).unwrap();
        let error = model.file().tensor(name).unwrap().to_dense().unwrap_err();
        assert_eq!(error.code(), "digest-mismatch", "{part}");
    }
}

#[test]
fn casts_of_stored_codes_keep_them() {
    for (folder, truth) in cases() {
        let input = Kinds::builtin().open(folder.join("model"), InputOptions::new()).unwrap();
        if input.file().kind().as_str() == "gguf" {
            continue;
        }
        let options = ConvertOptions::new(SAFETENSORS).dtype(FloatType::BF16);
        let mut bytes = Vec::new();
        let summary =
            Kinds::builtin().convert(std::slice::from_ref(&input), &mut bytes, &options).unwrap();
        let mut warnings = summary.warnings.iter();
        assert!(warnings.any(|warning| warning.code == "quantized"), "{folder:?}");
        let written =
            Kinds::builtin().open_source(zt::Memory::new(bytes), InputOptions::new()).unwrap();
        for of in truth["tensors"].as_object().unwrap().values() {
            for part in of["consumed"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                let bytes = |input: &Input| {
                    let tensor = input.file().tensor(part).unwrap();
                    (tensor.value_type(), tensor.bytes("data").unwrap().to_vec())
                };
                assert_eq!(bytes(&input), bytes(&written), "{folder:?} {part}");
            }
        }
    }
}

/// What nothing but a name or the settings tells, and these models lack: the order of scales of MXFP8, and a scale of a
/// model without settings.
const UNKNOWABLE: [&str; 2] = ["25-comfy-mxfp8", "26-scaled-convolution"];

/// Each part of each weight is taken away, or the codes and another part. Either something is said, or no value changes.
#[test]
fn a_part_that_is_gone_is_named() {
    let logical = |input: Input| {
        let logical = Logical::new().checks_scales(true).float(Some(FloatType::F32));
        Kinds::builtin().logical(input, logical).ok().map(Input::into_file)
    };
    let (mut named, mut same) = (0, 0);
    for (folder, _) in cases() {
        let case = folder.file_name().unwrap().to_str().unwrap();
        let input = Kinds::builtin().open(folder.join("model"), InputOptions::new()).unwrap();
        let quantized = Kinds::builtin().quantized(&input).unwrap();
        let whole = logical(input.clone()).unwrap();
        let mut losses: BTreeSet<Vec<&str>> = BTreeSet::new();
        for weight in quantized.weights() {
            let [codes, others @ ..] = &*weight.parts else { continue };
            losses.extend(weight.parts.iter().map(|part| vec![&**part]));
            // Of two parts nothing is left, and a mark is of the whole model.
            if others.iter().filter(|part| !part.ends_with("scaled_fp8")).count() > 1 {
                losses.extend(others.iter().map(|part| vec![&**codes, &**part]));
            }
        }
        for gone in losses {
            let keep = |name: &str| (!gone.contains(&name)).then(|| name.to_owned());
            let Ok(file) = input.file().select(keep) else { continue };
            let Some(file) = logical(input.clone().with_file(file)) else {
                named += 1;
                continue;
            };
            let report = file.verify(&VerifyOptions::new()).unwrap();
            if !report.problems.is_empty() || !file.warnings().is_empty() {
                named += 1;
            } else if !UNKNOWABLE.contains(&case) {
                assert_eq!(file.names().collect::<Vec<_>>(), whole.names().collect::<Vec<_>>());
                for name in whole.names() {
                    let is_same = values(&file, name) == values(&whole, name);
                    assert!(is_same, "{case} {name} without {gone:?}");
                }
                same += 1;
            }
        }
    }
    assert!(named > 500 && same > 50, "{named} {same}");
}

/// Stacked experts and others whose codes are gone, without settings.
#[test]
fn scales_whose_codes_are_gone_are_named() {
    let losses = [
        ("32-modelopt-fp8-experts", "down_proj"),
        ("32-modelopt-nvfp4-experts", "gate_up_proj"),
        ("38-deepseek-experts", "down_proj"),
        ("38-deepseek-fp4", "weight"),
        ("37-gpt-oss-three", "down_proj_blocks"),
        ("33-mlx-nvfp4", "weight"),
        ("10-awq", "qweight"),
        ("14-quanto-qint8", "_data"),
    ];
    for (case, end) in losses {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/quantized");
        let input = Kinds::builtin()
            .open(data.join(case).join("model/model.safetensors"), InputOptions::new())
            .unwrap();
        let keep = |name: &str| (!name.ends_with(end)).then(|| name.to_owned());
        let file = input.file().select(keep).unwrap();
        // No path, so no settings beside it.
        let input = Kinds::builtin().logical(Input::from(file), Logical::new()).unwrap();
        let codes: Vec<&str> = input.file().warnings().iter().map(|warning| warning.code).collect();
        assert!(codes.contains(&"quantized-scale"), "{case}: {codes:?}");
    }
}

/// A shard that is open alone.
#[test]
fn a_shard_is_told_from_a_model_that_lacks_parts() {
    let shard = |case: &str, keep: fn(&str) -> bool| {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/quantized").join(case);
        let input = Kinds::builtin().open(data.join("model"), InputOptions::new()).unwrap();
        let kept = input.file().select(|name| keep(name).then(|| name.to_owned())).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model-00002-of-00003.safetensors");
        let options = ConvertOptions::new(SAFETENSORS);
        let input = Input::from(kept);
        Kinds::builtin().convert(&[input], fs::File::create(&path).unwrap(), &options).unwrap();
        let settings = data.join("model/config.json");
        if settings.exists() {
            fs::copy(settings, folder.path().join("config.json")).unwrap();
        }
        open(&path, None).unwrap().into_file()
    };
    // Scales without their codes, and nothing is said.
    for case in ["02-ct-fp8", "05-ct-nvfp4", "09-gptq", "13-mlx", "38-deepseek-experts"] {
        let file = shard(case, |name| name.contains("scale") && !name.contains("input"));
        assert_eq!(file.warnings(), [], "{case}");
    }
    // Codes without their scales have no values.
    for case in ["01-deepseek-fp8", "05-ct-nvfp4", "09-gptq", "13-mlx"] {
        let file = shard(case, |name| !name.contains("scale"));
        assert_eq!(file.warnings(), [], "{case}");
        let problems = file.verify(&VerifyOptions::new()).unwrap().problems;
        assert!(!problems.is_empty(), "{case}");
        for problem in problems {
            assert!(problem.to_string().contains("in this shard"), "{case}: {problem}");
        }
    }
}

/// Each shard of torchao lists its own tensors.
#[test]
fn shards_of_torchao_are_one_model() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/quantized/29-torchao-fp8-row");
    let whole = Kinds::builtin().open(data.join("model"), InputOptions::new()).unwrap();
    let attributes = whole.file().attributes().unwrap().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let weight = "model.layers.0.mlp.down_proj.weight";
    let mut index = serde_json::Map::new();
    for (number, listed) in [(1, weight), (2, "norm.weight")] {
        let is_here = |name: &str| name.starts_with("norm") == (listed == "norm.weight");
        let file = whole.file().select(|name| is_here(name).then(|| name.to_owned())).unwrap();
        let pairs = attributes.iter().filter(|(key, _)| key.as_str() != Some("tensor_names"));
        let pairs = pairs.filter(|(key, _)| {
            key.as_str() == Some(listed) || !key.as_str().is_some_and(|key| key.contains("weight"))
        });
        let list = ("tensor_names".into(), format!("[{listed:?}]").into());
        let pairs = pairs.map(|(key, value)| (key.clone(), value.clone())).chain([list]);
        let name = format!("model-0000{number}-of-00002.safetensors");
        index.extend(file.names().map(|tensor| (tensor.to_owned(), name.clone().into())));
        let input = Input::from(file.with_attributes(pairs.collect()).unwrap());
        let target = fs::File::create(folder.path().join(&name)).unwrap();
        let options = ConvertOptions::new(SAFETENSORS);
        Kinds::builtin().convert(&[input], target, &options).unwrap();
    }
    let index = serde_json::json!({ "metadata": {}, "weight_map": index });
    fs::write(folder.path().join("model.safetensors.index.json"), index.to_string()).unwrap();
    let (set, model) =
        (open(folder.path(), None).unwrap(), open(&data.join("model"), None).unwrap());
    assert_eq!(set.file().warnings(), []);
    assert_eq!(values(set.file(), weight), values(model.file(), weight));
    let stored = Kinds::builtin().open(folder.path(), InputOptions::new()).unwrap();
    let attributes = stored.file().attributes().unwrap().unwrap();
    let listed: Vec<String> =
        serde_json::from_str(attributes.get("tensor_names").unwrap().as_str().unwrap()).unwrap();
    assert_eq!(listed, [weight, "norm.weight"]);
}
