//! SQUIZD: the values of real files, the codes of broken ones, and files that are written and come back.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "tests"
)]

use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use zt::formats::{Packing, Quantization, ZeroKind};
use zt::{
    Attributes, Buffer, DType, Dense, Elements, ErrorKind, File, HashOptions, Memory, OpenOptions,
    QuantizedGroup, ToObject, Writer,
};
use zt_foreign::{
    ConvertOptions, FileKind, FileWriter, InputOptions, Job, Merged, Names, Sink, Summary,
};
use zt_squizd::{SQUIZD, Squizd};

fn open(bytes: Vec<u8>, options: impl Into<InputOptions>) -> zt::Result<File> {
    let source = Box::new(Memory::new(bytes));
    Ok(Squizd.open_source(source, &options.into())?.into_file())
}

fn opened(bytes: Vec<u8>, strict: bool) -> File {
    open(bytes, OpenOptions::new().strict(strict)).unwrap()
}

/// The file as one of SQUIZD.
fn to(options: &ConvertOptions<'_>, file: &File) -> zt::Result<(Vec<u8>, Summary)> {
    let mut bytes = Vec::new();
    let (mut sink, mut job) = (Sink::new(&mut bytes), Job::new(SQUIZD, options));
    Squizd.write(Merged::of(file, job.options)?, &mut sink, &mut job)?;
    job.check()?;
    job.end_attributes();
    sink.flush()?;
    drop(sink);
    Ok((bytes, job.summary))
}

fn ours(add: impl FnOnce(&mut Writer<'_>)) -> File {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    add(&mut writer);
    writer.finish().unwrap();
    File::from_bytes(bytes).unwrap()
}

fn content(file: &File) -> [u8; 32] {
    file.hash(&HashOptions::default()).unwrap().content.unwrap()
}

/// The bits of an object's values as f32.
fn values(file: &File, name: &str) -> Vec<u32> {
    let dense = file.tensor(name).unwrap().to_dense().unwrap();
    let dense = dense.to_dtype(DType::F32, file.registry()).unwrap();
    let (values, _) = dense.elements().bytes.as_chunks();
    values.iter().copied().map(u32::from_le_bytes).collect()
}

fn singles(values: &[f32]) -> Elements<'static> {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    elements(DType::F32, &bytes)
}

fn bytes(values: &[u8]) -> Elements<'static> {
    elements(DType::U8, values)
}

fn elements(dtype: DType, bytes: &[u8]) -> Elements<'static> {
    let mut buffer = Buffer::try_zeroed(bytes.len() as u64).unwrap();
    buffer.copy_from_slice(bytes);
    Elements { dtype, logical_type: None, bytes: buffer.into() }
}

/// A quantized tensor of SQUIZD: `INT4`, or else `INT2`.
fn layout(is_int4: bool, group_size: u64) -> Quantization {
    let dtype = DType::U8;
    let (bits, per_word) = if is_int4 { (4, 2) } else { (2, 4) };
    let mut quantization = Quantization::new(bits, group_size, Packing { per_word, dtype });
    quantization.signed = is_int4;
    quantization.zero_kind = ZeroKind::Additive;
    quantization
}

/// The files of a folder of the corpus.
fn files(folder: &str) -> Vec<PathBuf> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/corpus/foreign");
    let entries = fs::read_dir(corpus.join("squizd").join(folder)).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|ending| ending == "squizd")).collect()
}

#[test]
fn tensors_have_the_shapes_and_values_of_the_ground_truth() {
    let mut tensors = 0;
    for path in files("valid") {
        let truth = fs::read(path.with_extension("json")).unwrap();
        let truth: Json = serde_json::from_slice(&truth).unwrap();
        let file = opened(fs::read(&path).unwrap(), false);
        assert_eq!(file.kind(), SQUIZD);
        for layer in truth["layers"].as_array().unwrap() {
            for truth in layer["tensors"].as_array().unwrap() {
                let name = format!("layers.{}.{}", layer["layer_idx"], truth["index"]);
                let (Some(tensor), Some(first)) =
                    (file.get(&name), truth["first_values_f32"].as_array())
                else {
                    continue;
                };
                let shape: Vec<u64> = serde_json::from_value(truth["shape"].clone()).unwrap();
                assert_eq!(tensor.unwrap().shape(), shape, "{} {name}", path.display());
                for (value, truth) in values(&file, &name).iter().zip(first) {
                    let truth = truth.as_f64().unwrap() as f32;
                    assert_eq!(f32::from_bits(*value), truth, "{} {name}", path.display());
                }
                tensors += 1;
            }
        }
    }
    assert!(tensors >= 10, "{tensors}");
}

#[test]
fn a_broken_file_is_refused_by_the_code_of_its_rule() {
    for (name, code) in [
        ("header_255_bytes", "truncated"),
        ("magic_sqze", "header"),
        ("version_2", "version"),
        ("layer_count_0", "header"),
        ("layers_duplicate", "header"),
        ("layers_overlap", "overlap"),
        ("weight_in_header", "bounds"),
        ("weight_length_past_end", "bounds"),
        ("sparsity_crc_wrong", "digest-mismatch"),
        ("npcl_dtype_3", "dtype"),
        ("npcl_shape_too_big", "shape-size-mismatch"),
    ] {
        let mut paths = files("invalid").into_iter();
        let path = paths.rfind(|path| path.file_stem().unwrap() == name);
        let bytes = fs::read(path.unwrap()).unwrap();
        let error = open(bytes, OpenOptions::new().strict(true)).unwrap_err();
        assert_eq!(error.code(), code, "{name}: {error}");
    }
}

#[test]
fn plain_and_quantized_tensors_come_back_with_their_bytes_and_attributes() {
    let mut kept = 0;
    for path in files("valid") {
        let file = opened(fs::read(&path).unwrap(), false);
        let can_be_written = file.entries().iter().all(|entry| {
            let format = entry.tensor().unwrap().format().to_owned();
            ["dense", "quantized_group"].contains(&&*format)
        });
        let has_names = |entry: &zt::Entry<'_>| !entry.name().starts_with("layers.");
        let loses_names = file.entries().iter().any(has_names);
        let stored = ours(|writer| {
            if let Some(attributes) = file.attributes().unwrap() {
                writer.set_attributes(attributes).unwrap();
            }
            for tensor in file.entries().iter().map(|entry| entry.tensor().unwrap()) {
                writer.copy(tensor.name(), &tensor).unwrap();
            }
        });
        let back = to(&ConvertOptions::new(SQUIZD), &stored);
        if !can_be_written {
            assert_eq!(back.unwrap_err().code(), "lossy", "{}", path.display());
            continue;
        }
        let (back, summary) = back.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let codes: Vec<&str> = summary.warnings.iter().map(|w| w.code).collect();
        if loses_names {
            assert!(codes.contains(&"lossy"), "{}", path.display());
            continue;
        }
        assert_eq!(codes, ["experimental"]);
        let back = opened(back, true);
        assert_eq!(content(&back), content(&file), "{}", path.display());
        kept += 1;
    }
    assert!(kept >= 10, "{kept} files");
}

/// An attribute of one quantization does not change another.
#[test]
fn invalid_lengths_of_sub_blocks_are_only_a_loss() {
    for (group_size, len) in [(2, 3u64), (2, 1), (4, 0)] {
        let scales: &[f32] = if group_size == 2 { &[1.0, 10.0] } else { &[3.0] };
        let quantization = layout(false, group_size);
        let packed = bytes(&[0b11_10_01_00]);
        let group = QuantizedGroup::new([1, 4], quantization, packed, singles(scales), None);
        let group = group.unwrap();
        let file = ours(|writer| {
            let mut object = group.to_object().unwrap();
            let attributes = object.attributes.as_mut().unwrap();
            attributes.insert("squizd.sub_block_len", len);
            writer.add("layers.0.0", &object).unwrap();
        });
        let (back, summary) = to(&ConvertOptions::new(SQUIZD), &file).unwrap();
        assert!(summary.warnings.iter().any(|it| it.code == "lossy"));
        let back = opened(back, true);
        assert_eq!(values(&back, "layers.0.0"), values(&file, "layers.0.0"));
    }
}

/// The scale of the tensor is then unused.
#[test]
fn a_group_of_a_whole_int2_tensor_is_a_sub_block() {
    let file = ours(|writer| {
        let (packed, scales) = (bytes(&[0b11_10_01_00]), singles(&[3.0]));
        let group = QuantizedGroup::new([1, 4], layout(false, 4), packed, scales, None);
        writer.add("layers.0.0", &group.unwrap()).unwrap();
    });
    let (back, _) = to(&ConvertOptions::new(SQUIZD), &file).unwrap();
    let back = opened(back, true);
    assert_eq!(values(&back, "layers.0.0"), values(&file, "layers.0.0"));
    let attributes = back.tensor("layers.0.0").unwrap().attributes().clone();
    let scale = attributes.get("squizd.tensor_scale").unwrap().as_f64();
    assert_eq!(scale, Some(1.0));
    assert!(back.warnings().is_empty());
}

#[test]
fn groups_of_any_length_come_back_bit_for_bit() {
    for is_int4 in [true, false] {
        for (rows, columns) in [(1, 1), (3, 5), (4, 6), (2, 64), (0, 7)] {
            let count: u64 = rows * columns;
            for group_size in 1..=count + 1 {
                // For INT4, the number of entries alone gives the length of a group.
                if is_int4 && count > 0 && !count.is_multiple_of(group_size.min(count)) {
                    continue;
                }
                let quantization = layout(is_int4, group_size);
                let groups = quantization.group_count(count) as usize;
                let words = quantization.word_count(count) as usize;
                let packed: Vec<u8> = (0..words).map(|word| (word * 37 + 11) as u8).collect();
                let scales: Vec<f32> = (0..groups).map(|group| group as f32 - 0.3).collect();
                let zeros: Vec<f32> = (0..groups).map(|group| 0.1 * group as f32).collect();
                for zeros in [None, Some(singles(&zeros))] {
                    let file = ours(|writer| {
                        let group = QuantizedGroup::new(
                            [rows, columns],
                            quantization,
                            bytes(&packed),
                            singles(&scales),
                            zeros,
                        );
                        writer.add("layers.0.0", &group.unwrap()).unwrap();
                    });
                    let (back, _) = to(&ConvertOptions::new(SQUIZD), &file).unwrap();
                    let back = opened(back, true);
                    assert_eq!(values(&back, "layers.0.0"), values(&file, "layers.0.0"));
                }
            }
        }
    }
}

#[test]
fn a_negative_zero_survives_without_zeros() {
    let mut quantization = layout(true, 1);
    let packed = bytes(&[0x10]);
    let scales = singles(&[-2.0, -2.0]);
    for (zero_kind, zero) in [(ZeroKind::Subtractive, -0.0f32), (ZeroKind::Additive, 0.0)] {
        quantization.zero_kind = zero_kind;
        let file = ours(|writer| {
            let (packed, scales) = (packed.clone(), scales.clone());
            let group = QuantizedGroup::new([1, 2], quantization, packed, scales, None);
            writer.add("layers.0.0", &group.unwrap()).unwrap();
        });
        let expected = [zero.to_bits(), (-2.0f32).to_bits()];
        assert_eq!(values(&file, "layers.0.0"), expected);
        let (back, _) = to(&ConvertOptions::new(SQUIZD), &file).unwrap();
        assert_eq!(values(&opened(back, true), "layers.0.0"), expected);
    }
}

#[test]
fn lost_names_are_restored_by_a_list() {
    let names = [
        "model.layers.0.mlp.up.weight",
        "model.layers.0.norm.weight",
        "model.layers.1.mlp.up.weight",
        "model.norm.weight",
    ];
    let file = ours(|writer| {
        for (number, name) in names.iter().enumerate() {
            let values = [number as f32; 6];
            let dense = Dense::from_slice(&[2, 3], &values).unwrap();
            writer.add(name, &dense).unwrap();
        }
    });
    let (squizd, summary) = to(&ConvertOptions::new(SQUIZD), &file).unwrap();
    let renamed = summary.warnings.iter();
    let renamed = renamed.filter_map(|it| it.object.as_deref());
    let mut renamed: Vec<&str> = renamed.collect();
    renamed.sort_unstable();
    assert_eq!(renamed, names);
    assert_eq!(summary.warnings.len(), 1 + names.len());
    let nameless = opened(squizd.clone(), true);
    let found: Vec<&str> = nameless.entries().iter().map(|e| e.name()).collect();
    // An object without a layer goes to the first one.
    let places = ["layers.0.0", "layers.0.1", "layers.0.2", "layers.1.0"];
    assert_eq!(found, places);

    let [a, b, c, d] = names;
    let list = InputOptions::new().names(Names::from_iter([a, b, d, c]));
    let named = open(squizd, list).unwrap();
    for name in names {
        assert_eq!(values(&named, name), values(&file, name), "{name}");
    }
}

#[test]
fn a_list_has_a_name_for_every_tensor() {
    let (packed, scales) = (bytes(&[0x21]), singles(&[0.5]));
    let group = QuantizedGroup::new([1, 2], layout(true, 2), packed, scales, None).unwrap();
    let known = ["layers.0.up", "layers.0.down"];
    let file = ours(|writer| {
        for name in known {
            writer.add(name, &group).unwrap();
        }
    });
    let mut options = ConvertOptions::new(SQUIZD);
    options = options.lossy(true);
    let (squizd, _) = to(&options, &file).unwrap();
    let named = |names: &[&str]| {
        let names: Names = names.iter().copied().collect();
        open(squizd.clone(), InputOptions::new().names(names))
    };
    for names in [&known[..1], &["a", "b", "c"]] {
        let error = named(names).unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::Misuse, "names"));
    }
    let warned = |names: &[&str]| -> Vec<Option<String>> {
        let warnings = named(names).unwrap().warnings().into_iter();
        let of_names = warnings.filter(|warning| warning.code == "name");
        of_names.map(|warning| warning.object).collect()
    };
    assert_eq!(warned(&known), []);
    // The first name matches its hash, so the second has to match, too.
    assert_eq!(warned(&[known[0], "stranger"]), [Some("stranger".to_owned())]);
    // If no name matches, the hash function is unknown.
    assert_eq!(warned(&["strange", "stranger"]), []);
}

#[test]
fn names_hash_to_the_written_ids() {
    let name = "model.layers.0.self_attn.q_proj.weight";
    let file = ours(|writer| {
        let (packed, scales) = (bytes(&[0x21]), singles(&[0.5]));
        let group = QuantizedGroup::new([1, 2], layout(true, 2), packed, scales, None).unwrap();
        writer.add(name, &group).unwrap();
        writer.add("twin.layers.0.self_attn.q_proj.weight", &group).unwrap();
    });
    let mut options = ConvertOptions::new(SQUIZD);
    options = options.lossy(true);
    let (squizd, _) = to(&options, &file).unwrap();
    let file = opened(squizd, true);
    let id = |name| {
        let attributes = file.tensor(name).unwrap().object().attributes().clone();
        attributes.get("squizd.tensor_id").unwrap().as_u64().unwrap()
    };
    assert_eq!(id("layers.0.0"), 0x7066_26E0_4079_B68A);
    // Ids differ even if hashes collide, because sub-blocks are found by them.
    assert_eq!(id("layers.0.1"), 0x7066_26E0_4079_B68B);
}

#[test]
fn many_tensors_of_one_hash_do_not_take_quadratic_time() {
    let group = QuantizedGroup::new([1, 2], layout(true, 2), bytes(&[0x21]), singles(&[0.5]), None);
    let group = group.unwrap();
    let file = ours(|writer| {
        for model in 0..20_000 {
            // The names have no model part, so all hash alike.
            writer.add(&format!("m{model}.layers.0.q"), &group).unwrap();
        }
    });
    let mut options = ConvertOptions::new(SQUIZD);
    options = options.lossy(true);
    let (squizd, _) = to(&options, &file).unwrap();
    let file = opened(squizd, true);
    let ids = file.entries().into_iter().map(|entry| {
        let attributes = entry.tensor().unwrap().object().attributes();
        attributes.get("squizd.tensor_id").unwrap().as_u64()
    });
    assert_eq!(ids.collect::<HashSet<_>>().len(), 20_000);
}

/// Many layers of one empty block each, followed by empty tables.
#[test]
fn many_layers_and_tables_do_not_take_quadratic_time() {
    const COUNT: u16 = 30_000;
    let table = 256 + 32 * u64::from(COUNT);
    let block = [&b"NPCL"[..], &[0; 8], &1f32.to_le_bytes()].concat();
    let end = table + u64::from(COUNT) * 16;
    let mut file = [&b"SQZD\x01\0\0\0\0\0"[..], &COUNT.to_le_bytes()].concat();
    file.resize(256, 0);
    for layer in 0..COUNT {
        let layer = u64::from(layer);
        file.extend((layer as u32).to_le_bytes());
        file.extend([table + layer * 16, 16, end + layer * 8].map(u64::to_le_bytes).concat());
        file.extend([0; 4]);
    }
    file.extend(block.repeat(COUNT.into()));
    file.extend(b"SCZT\0\0\0\0".repeat(COUNT.into()));
    // More layers than strict readers accept.
    let file = opened(file, false);
    assert_eq!(file.entries().len(), usize::from(COUNT));
}

#[test]
fn what_squizd_cannot_represent_is_an_error_that_names_the_object() {
    let unsigned = {
        let mut quantization = layout(true, 4);
        quantization.signed = false;
        QuantizedGroup::new([2, 2], quantization, bytes(&[1, 2]), singles(&[1.0]), None).unwrap()
    };
    let subtractive = {
        let mut quantization = layout(true, 4);
        quantization.zero_kind = ZeroKind::Subtractive;
        let zeros = Some(singles(&[1.0]));
        QuantizedGroup::new([2, 2], quantization, bytes(&[1, 2]), singles(&[1.0]), zeros).unwrap()
    };
    let uneven = QuantizedGroup::new(
        [1, 5],
        layout(true, 2),
        bytes(&[1, 2, 3]),
        singles(&[1.0, 2.0, 3.0]),
        None,
    );
    let uneven = uneven.unwrap();
    let vector =
        QuantizedGroup::new([4], layout(true, 4), bytes(&[1, 2]), singles(&[1.0]), None).unwrap();
    let half = elements(DType::F16, &0x3C00u16.to_le_bytes());
    let halves = QuantizedGroup::new([2, 2], layout(true, 4), bytes(&[1, 2]), half, None).unwrap();
    for group in [unsigned, subtractive, uneven, vector, halves] {
        let file = ours(|writer| writer.add("layers.0.0", &group).unwrap());
        let mut options = ConvertOptions::new(SQUIZD);
        let error = to(&options, &file).unwrap_err();
        assert_eq!((error.code(), error.object()), ("lossy", Some("layers.0.0")));
        options.dense = true;
        let (dense, _) = to(&options, &file).unwrap();
        let dense = opened(dense, true);
        assert_eq!(dense.tensor("layers.0.0").unwrap().format(), "dense");
        assert_eq!(values(&dense, "layers.0.0"), values(&file, "layers.0.0"));
    }
    let file = ours(|writer| {
        let dense = Dense::from_slice(&[2], &[1i32, 2]).unwrap();
        writer.add("layers.0.0", &dense).unwrap();
    });
    let mut options = ConvertOptions::new(SQUIZD);
    assert_eq!(to(&options, &file).unwrap_err().object(), Some("layers.0.0"));
    // Nothing is left, and a file without tensors is invalid.
    options = options.lossy(true);
    assert_eq!(to(&options, &file).unwrap_err().code(), "lossy");
}

#[test]
fn attributes_are_lost_with_a_warning_except_for_the_architecture() {
    let file = |attributes: Attributes| {
        ours(|writer| {
            writer.set_attributes(attributes).unwrap();
            let dense = Dense::from_slice(&[1], &[1.0f32]).unwrap();
            writer.add("layers.3.0", &dense).unwrap();
        })
    };
    let header = Attributes::from([("arch_id", 3u64), ("version", 1)]);
    let named = file(Attributes::from([("squizd", header)]));
    let (squizd, _) = to(&ConvertOptions::new(SQUIZD), &named).unwrap();
    // Layers keep their numbers. A strict reader refuses the gap.
    let back = opened(squizd, false);
    assert_eq!(back.entries()[0].name(), "layers.3.0");
    let attributes = back.attributes().unwrap().unwrap();
    let header = attributes.get("squizd").unwrap().as_map().unwrap();
    assert_eq!(header.get("arch").unwrap().as_str(), Some("qwen"));

    for attributes in [
        Attributes::from([("author", "x")]),
        Attributes::from([("squizd", Attributes::from([("sparsity", "x")]))]),
    ] {
        let (_, summary) = to(&ConvertOptions::new(SQUIZD), &file(attributes)).unwrap();
        assert!(summary.warnings.iter().any(|it| it.code == "lossy"));
    }
}
