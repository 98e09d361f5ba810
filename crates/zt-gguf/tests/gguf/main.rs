//! GGUF: metadata, the way to `.zt` and back, and what GGUF cannot represent. Sets of GGUF files are in
//! `zt-convert`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "tests"
)]

mod written;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use zt::{
    Attributes, DigestAlgorithm, ErrorKind, File, HashOptions, Memory, OpenOptions, Value, Writer,
};
use zt_foreign::{
    AttributeChange, ConvertOptions, FileKind, FileWriter, InputOptions, Job, Merged, Probe, Sink,
    Summary,
};
use zt_gguf::{GGUF, Gguf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/corpus/foreign/gguf")
}

/// The cases with this verdict: names, expectations and bytes.
fn cases(expect: &str) -> Vec<(String, Json, Vec<u8>)> {
    let mut cases = Vec::new();
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let truth: Json = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            let bytes = fs::read(path.with_extension("gguf")).unwrap();
            if truth["expect"] == expect {
                let name = path.file_stem().unwrap().to_str().unwrap();
                cases.push((name.to_owned(), truth, bytes));
            }
        }
    }
    cases
}

fn open(bytes: Vec<u8>, options: impl Into<InputOptions>) -> zt::Result<File> {
    let source = Box::new(Memory::new(bytes));
    Ok(Gguf.open_source(source, &options.into())?.into_file())
}

fn opened(bytes: Vec<u8>) -> File {
    open(bytes, InputOptions::new()).unwrap()
}

/// The file as one of GGUF.
fn to(options: &ConvertOptions<'_>, file: &File) -> zt::Result<(Vec<u8>, Summary)> {
    let mut bytes = Vec::new();
    let summary = write_to(&mut bytes, options, file)?;
    assert_eq!(summary.byte_len, bytes.len() as u64);
    Ok((bytes, summary))
}

fn write_to(
    out: impl Write + Send,
    options: &ConvertOptions<'_>,
    file: &File,
) -> zt::Result<Summary> {
    let (mut sink, mut job) = (Sink::new(out), Job::new(GGUF, options));
    Gguf.write(Merged::of(file, job.options)?, &mut sink, &mut job)?;
    job.check()?;
    job.end_attributes();
    sink.flush()?;
    job.summary.byte_len = sink.byte_len();
    Ok(job.summary)
}

/// A `.zt` file that `fill` writes.
fn ours(fill: impl FnOnce(&mut Writer<'_>) -> zt::Result<()>) -> File {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    fill(&mut writer).unwrap();
    writer.finish().unwrap();
    File::from_bytes(bytes).unwrap()
}

fn content(file: &File) -> [u8; 32] {
    file.hash(&HashOptions::default()).unwrap().content.unwrap()
}

/// The bytes of `file` after a copy to `.zt` and back.
fn there_and_back(file: &File, lossy: bool) -> Vec<u8> {
    let ours = ours(|writer| {
        if let Some(attributes) = file.attributes()? {
            writer.set_attributes(attributes).unwrap();
        }
        file.entries().into_iter().try_for_each(|entry| writer.copy(entry.name(), &entry.tensor()?))
    });
    assert_eq!(content(&ours), content(file));
    to(&ConvertOptions::new(GGUF).lossy(lossy), &ours).unwrap().0
}

fn sha256(bytes: &[u8]) -> String {
    let digest = DigestAlgorithm::Sha256.digest(bytes).unwrap().to_string();
    digest.split(':').next_back().unwrap().to_owned()
}

#[test]
fn tensors_have_the_shapes_and_values_of_the_ground_truth() {
    let mut count = 0;
    for (case, truth, bytes) in cases("read") {
        let file = opened(bytes);
        for (name, truth) in truth["objects"].as_object().unwrap() {
            let tensor = file.tensor(name).unwrap();
            let shape: Vec<u64> = serde_json::from_value(truth["shape"].clone()).unwrap();
            assert_eq!(tensor.shape(), shape, "{case}: {name}");
            if let Some(sum) = truth["sha256"].as_str() {
                assert_eq!(sha256(&tensor.bytes("data").unwrap()), sum, "{case}: {name}");
            }
            if let Some(sum) = truth["dense_f32_sha256"].as_str() {
                let dense = tensor.to_dense().unwrap();
                assert_eq!(sha256(&dense.elements().bytes), sum, "{case}: {name}");
            }
            count += 1;
        }
    }
    assert!(count > 100, "{count}");
}

#[test]
fn files_of_gguf_py_come_back_byte_for_byte() {
    let mut others = Vec::new();
    for (name, _, bytes) in cases("read").into_iter().chain(cases("partial")) {
        let back = there_and_back(&opened(bytes.clone()), name == "long_names");
        if back != bytes {
            others.push(name);
        }
    }
    others.sort_unstable();
    // Another version, another byte order, no padding at the end, or names that llama.cpp refuses.
    let expected = [
        "long_names",
        "metadata_big",
        "no_final_padding",
        "no_metadata_no_tensors",
        "quant_big",
        "v1_little",
        "v2_little",
        "v3_big",
    ];
    assert_eq!(others, expected);
}

#[test]
fn files_of_another_layout_come_back_with_equal_values_and_metadata() {
    for (name, truth, bytes) in cases("read") {
        let file = opened(bytes);
        let back = opened(there_and_back(&file, name == "long_names"));
        assert_eq!(back.kind(), GGUF);
        assert_eq!(back.attributes().unwrap(), file.attributes().unwrap());
        let names = truth["objects"].as_object().unwrap().keys();
        for object in names.filter(|name| name.len() < 64) {
            let dense = |file: &File| file.tensor(object).unwrap().to_dense().unwrap();
            assert!(dense(&file) == dense(&back), "{name}: {object}");
            assert!(back.tensor(object).unwrap().attributes().is_empty());
        }
    }
}

#[test]
fn metadata_become_attributes_and_keep_their_types_and_order() {
    for name in ["metadata_little", "metadata_big", "empty_array"] {
        let (_, truth, bytes) = cases("read").into_iter().find(|case| case.0 == name).unwrap();
        let attributes = opened(bytes).attributes().unwrap().unwrap();
        let wanted = truth["attributes"].as_object().unwrap();
        for (key, value) in wanted {
            assert!(is(attributes.get(key).unwrap(), value), "{name}: {key}");
        }
        let types = attributes.get("gguf.types").and_then(Value::as_array).unwrap();
        assert_eq!(types.len() + 1, attributes.len());
        for (item, (key, _)) in types.iter().zip(&attributes) {
            let [listed, value_type] = item.as_array().unwrap() else { panic!("{item:?}") };
            assert_eq!(listed, key);
            if let Some(wanted) = truth["attribute_types"][key.as_str().unwrap()].as_str() {
                assert_eq!(value_type.as_str(), Some(wanted));
            }
        }
    }
}

/// Whether a value is the expected one. NaN and infinities are texts in the JSON.
fn is(value: &Value, truth: &Json) -> bool {
    match (value, truth) {
        (Value::Array(items), Json::Array(truths)) => {
            items.len() == truths.len() && items.iter().zip(truths).all(|(a, b)| is(a, b))
        }
        (Value::Float(float), Json::String(text)) => match text.as_str() {
            "nan" => float.is_nan(),
            "inf" => *float == f64::INFINITY,
            "-inf" => *float == f64::NEG_INFINITY,
            _ => false,
        },
        (Value::Float(float), truth) => truth.as_f64() == Some(*float),
        (Value::Bool(bool), truth) => truth.as_bool() == Some(*bool),
        (Value::Text(text), truth) => truth.as_str() == Some(text),
        (value, truth) => {
            let truth = truth.as_i64().map(i128::from).or(truth.as_u64().map(i128::from));
            truth.is_some() && value.as_i128() == truth
        }
    }
}

#[test]
fn broken_headers_are_refused_with_the_code_of_their_rule() {
    // Faults of one tensor: the file opens, and that object is refused.
    let of_objects = [
        ("bad_align_huge", "bounds"),
        ("bad_cut_all_data", "bounds"),
        ("bad_cut_in_data", "bounds"),
        ("bad_dim_huge", "shape-size-mismatch"),
        ("bad_dims_overflow", "shape-size-mismatch"),
        ("bad_dims_overflow_to_small", "shape-size-mismatch"),
        ("bad_quant_partial_block", "shape-size-mismatch"),
        ("bad_quant_row_partial", "shape-size-mismatch"),
    ];
    for (name, _, bytes) in cases("reject") {
        match open(bytes.clone(), InputOptions::new()) {
            Ok(file) => {
                let expected = of_objects.iter().find(|(case, _)| *case == name);
                let (_, code) = expected.unwrap_or_else(|| panic!("{name} opens"));
                let entries = file.entries();
                let faults = entries.iter().filter_map(|entry| entry.fault());
                assert_eq!(faults.map(zt::Error::code).collect::<Vec<_>>(), [*code], "{name}");
            }
            Err(error) => {
                let expected = match name.as_str() {
                    "bad_version_0" | "bad_version_4" => "version",
                    _ => "header",
                };
                let found = match error.code() {
                    "truncated" => "header",
                    code => code,
                };
                assert_eq!(found, expected, "{name}: {error}");
            }
        }
        let error = open(bytes.clone(), OpenOptions::new().strict(true)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed, "{name}: {error}");
        // Without the magic, another kind may own the file.
        let source = Memory::new(bytes);
        let is_recognised = Gguf.recognise(&Probe::new(&source).unwrap()).unwrap();
        let has_magic = !["bad_magic", "bad_cut_in_magic"].contains(&&*name);
        assert_eq!(is_recognised, has_magic, "{name}");
    }
}

/// A header of version 3 with these counts, followed by `rest`.
fn header(tensors: u64, pairs: u64, rest: &[&[u8]]) -> Vec<u8> {
    let mut bytes = b"GGUF\x03\0\0\0".to_vec();
    bytes.extend(tensors.to_le_bytes());
    bytes.extend(pairs.to_le_bytes());
    rest.iter().for_each(|part| bytes.extend(*part));
    bytes
}

fn string(text: &[u8]) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text].concat()
}

/// A pair: its key, the number of its type, its value.
fn pair(key: &[u8], id: u32, value: &[u8]) -> Vec<u8> {
    [&string(key)[..], &id.to_le_bytes(), value].concat()
}

/// A tensor: its name, its dimensions fastest first, the number of its type, its offset.
fn tensor(name: &str, dimensions: &[u64], id: u32, offset: u64) -> Vec<u8> {
    let mut bytes = string(name.as_bytes());
    bytes.extend((dimensions.len() as u32).to_le_bytes());
    dimensions.iter().for_each(|dimension| bytes.extend(dimension.to_le_bytes()));
    bytes.extend(id.to_le_bytes());
    bytes.extend(offset.to_le_bytes());
    bytes
}

fn refusal(bytes: Vec<u8>) -> (ErrorKind, &'static str, String) {
    let error = open(bytes, InputOptions::new()).unwrap_err();
    (error.kind(), error.code(), error.to_string())
}

#[test]
fn data_without_tensors_is_refused_and_padding_is_not() {
    let (_, code, message) = refusal(header(0, 0, &[&[0; 48]]));
    assert_eq!(code, "header", "{message}");
    assert_eq!(opened(header(0, 0, &[&[0; 8]])).len(), 0);
}

#[test]
fn strings_may_be_any_bytes_but_keys_and_bools_are_checked() {
    let bytes = header(0, 1, &[&pair(b"token", 8, &string(b"\xFF\xFE"))]);
    let file = opened(bytes.clone());
    let token = file.attributes().unwrap().unwrap().get("token").cloned();
    assert_eq!(token, Some(Value::Bytes(vec![0xFF, 0xFE])));
    let back = there_and_back(&file, false);
    assert!(back.starts_with(&bytes) && back.len().is_multiple_of(32));
    let (kind, code, _) = refusal(header(0, 1, &[&pair(b"\xFF", 0, &[1])]));
    assert_eq!((kind, code), (ErrorKind::Malformed, "header"));
    let (kind, code, _) = refusal(header(0, 1, &[&pair(b"b", 7, &[2])]));
    assert_eq!((kind, code), (ErrorKind::Malformed, "header"));
}

#[test]
fn every_bit_of_a_float_survives() {
    let nan = 0x7F80_0001u32.to_le_bytes();
    let wide = 0xFFF0_0000_0000_0001u64.to_le_bytes();
    let pairs = [pair(b"f", 6, &nan), pair(b"d", 12, &wide)].concat();
    let bytes = header(0, 2, &[&pairs]);
    let back = there_and_back(&opened(bytes.clone()), false);
    assert!(back.starts_with(&bytes));
}

#[test]
fn the_reserved_key_is_refused() {
    let (kind, code, _) = refusal(header(0, 1, &[&pair(b"gguf.types", 0, &[1])]));
    assert_eq!((kind, code), (ErrorKind::Unsupported, "unsupported"));
}

#[test]
fn more_values_than_the_limit_are_refused() {
    let count = (1u64 << 24) + 1;
    let mut value = 7u32.to_le_bytes().to_vec();
    value.extend(count.to_le_bytes());
    value.resize(value.len() + count as usize, 0);
    let (kind, code, _) = refusal(header(0, 1, &[&pair(b"many", 9, &value)]));
    assert_eq!((kind, code), (ErrorKind::Limit, "header"));
}

#[test]
fn values_that_exceed_the_file_are_refused_by_their_number() {
    // Four values in twelve bytes: of 4, of 8 and of at least 8 each.
    for id in [5u32, 10, 8] {
        let value = [&id.to_le_bytes()[..], &4u64.to_le_bytes(), &[0; 12]].concat();
        let (kind, code, message) = refusal(header(0, 1, &[&pair(b"k", 9, &value)]));
        assert_eq!((kind, code), (ErrorKind::Malformed, "header"));
        assert!(message.contains("4 values"), "{message}");
    }
}

#[test]
fn unknown_and_nested_types_of_values_are_refused() {
    let of_array = |id: u32| [&id.to_le_bytes()[..], &[0; 8]].concat();
    for (pair, part) in [
        (pair(b"k", 9, &of_array(9)), "array"),
        (pair(b"k", 9, &of_array(13)), "13"),
        (pair(b"k", 13, &[0; 8]), "13"),
        (pair(b"general.alignment", 10, &[0; 8]), "uint64"),
    ] {
        let (kind, code, message) = refusal(header(0, 1, &[&pair]));
        assert_eq!((kind, code), (ErrorKind::Malformed, "header"));
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn scalars_and_empty_tensors_are_read() {
    let infos = [
        tensor("scalar", &[], 0, 0),
        tensor("empty", &[0], 0, 32),
        tensor("blocks", &[32, 0], 8, 32),
    ];
    let mut bytes = header(3, 0, &[&infos.concat()]);
    bytes.resize(bytes.len().next_multiple_of(32), 0);
    bytes.extend(1.5f32.to_le_bytes());
    let file = opened(bytes);
    assert_eq!(file.tensor("scalar").unwrap().to_vec::<f32>().unwrap(), [1.5]);
    assert_eq!(file.tensor("empty").unwrap().shape(), [0]);
    assert_eq!(file.tensor("blocks").unwrap().to_dense().unwrap().shape(), [0, 32]);
    let back = opened(there_and_back(&file, false));
    assert_eq!(content(&back), content(&file));
}

/// As ComfyUI-GGUF writes them: the shape of `name`, as an array of int32.
fn original(name: &str, shape: &[u32]) -> Vec<u8> {
    let numbers = shape.iter().flat_map(|size| size.to_le_bytes());
    let head = [&5u32.to_le_bytes()[..], &(shape.len() as u64).to_le_bytes()].concat();
    let value: Vec<u8> = head.into_iter().chain(numbers).collect();
    pair(format!("comfy.gguf.orig_shape.{name}").as_bytes(), 9, &value)
}

#[test]
fn a_recorded_shape_is_the_shape_and_one_that_does_not_fit_is_a_fault() {
    let pairs = [
        original("five", &[2, 3, 1, 2, 2]),
        original("rows", &[24, 4]),
        original("other", &[5]),
        original("blocks", &[4, 16]),
    ];
    let infos = [
        tensor("five", &[4, 6], 0, 0),
        tensor("rows", &[8, 12], 0, 96),
        tensor("other", &[2, 2], 0, 480),
        tensor("blocks", &[32, 2], 8, 512),
    ];
    let mut bytes = header(4, 4, &[&pairs.concat(), &infos.concat()]);
    bytes.resize(bytes.len().next_multiple_of(32), 0);
    bytes.extend([1; 608]);
    let file = opened(bytes);
    let shape = |name: &str| file.tensor(name).map(|tensor| tensor.shape().to_vec());
    assert_eq!(shape("five").unwrap(), [2, 3, 1, 2, 2]);
    assert_eq!(shape("rows").unwrap(), [24, 4]);
    assert_eq!(shape("other").unwrap_err().code(), "header");
    // The rows of quantized values are whole blocks.
    assert_eq!(shape("blocks").unwrap(), [2, 32]);
    assert!(file.warnings().iter().any(|it| it.object.as_deref() == Some("blocks")));
}

#[test]
fn a_recorded_shape_comes_back_with_the_stored_one() {
    let pairs = [original("five", &[2, 3, 1, 2, 2]), original("rows", &[24, 4])];
    let infos = [tensor("five", &[4, 6], 0, 0), tensor("rows", &[8, 12], 0, 96)];
    let mut bytes = header(2, 2, &[&pairs.concat(), &infos.concat()]);
    bytes.resize(bytes.len().next_multiple_of(32), 0);
    bytes.extend([1; 480]);
    let file = opened(bytes.clone());
    assert_eq!(there_and_back(&file, false), bytes);
}

#[test]
fn a_tensor_after_one_of_unknown_length_begins_at_its_offset() {
    let file = |second: u64| {
        let infos = [tensor("a", &[4], 99, 0), tensor("b", &[1], 24, second)];
        let mut bytes = header(2, 0, &[&infos.concat()]);
        bytes.resize(bytes.len().next_multiple_of(32) + 96, 7);
        bytes
    };
    let opened = opened(file(64));
    let data = opened.tensor("a").unwrap().bytes("data").unwrap();
    assert_eq!((data.len(), opened.warnings().len()), (64, 1));
    assert_eq!(opened.warnings()[0].code, "unknown-type");
    for misplaced in [63, 65] {
        assert_eq!(refusal(file(misplaced)).1, "header");
    }
    // Both leave the file, so both are faulty.
    let cut = self::opened(file(1 << 40));
    let faults = cut.entries().iter().filter(|entry| entry.fault().is_some()).count();
    assert_eq!(faults, 2);
}

#[test]
fn a_file_that_is_cut_keeps_the_tensors_before_the_cut() {
    let (_, truth, bytes) = cases("read").into_iter().find(|case| case.0 == "quant_mixed").unwrap();
    let count = truth["objects"].as_object().unwrap().len();
    let file = opened(bytes[..bytes.len() - 600].to_vec());
    let entries = file.entries();
    let faults: Vec<_> = entries.iter().filter_map(|entry| entry.fault()).collect();
    assert!(faults.iter().all(|fault| fault.code() == "bounds"));
    assert!(!faults.is_empty() && faults.len() < count && entries.len() == count);
}

/// The type and the value that an attribute gets.
fn set(value_type: Option<&str>, value: impl Into<Value>) -> Option<(String, Value)> {
    let mut attributes = Attributes::new();
    let value_type = value_type.map(str::to_owned);
    let change = AttributeChange { key: "k".to_owned(), values: vec![value.into()], value_type };
    Gguf.set_attribute(&mut attributes, &change).ok()?;
    let types = attributes.get("gguf.types").and_then(Value::as_array).unwrap();
    let [_, value_type] = types[0].as_array().unwrap() else { panic!("{types:?}") };
    let value_type = value_type.as_str().unwrap().to_owned();
    Some((value_type, attributes.get("k").unwrap().clone()))
}

#[test]
fn types_have_short_names() {
    for (short, long) in [
        ("u8", "uint8"),
        ("i64", "int64"),
        ("f32", "float32"),
        ("uint16", "uint16"),
        ("array[int32]", "array[int32]"),
    ] {
        let value: Value =
            if short.starts_with('a') { vec![Value::from(1u64)].into() } else { 1u64.into() };
        assert_eq!(set(Some(short), value).unwrap().0, long);
    }
    assert_eq!(set(Some("str"), "a").unwrap().0, "string");
    assert_eq!(set(Some("bool"), true).unwrap().0, "bool");
    for none in ["", "u", "s", "b", "u128", "f16", "U8", "array[u8]"] {
        assert_eq!(set(Some(none), 1u64), None, "{none}");
    }
}

#[test]
fn a_cast_rounds_floats_and_refuses_what_is_out_of_range() {
    let cast = |name, value: Value| set(Some(name), value).map(|(_, value)| value);
    assert_eq!(cast("float32", 0.1.into()), Some(Value::Float(0.1f32.into())));
    assert_eq!(cast("float32", 3u64.into()), Some(Value::Float(3.0)));
    assert_eq!(cast("float64", (-3i64).into()), Some(Value::Float(-3.0)));
    assert_eq!(cast("float32", 1e300.into()), None);
    assert_eq!(cast("uint8", 256u64.into()), None);
    assert_eq!(cast("uint8", 1.0.into()), None);
    assert_eq!(cast("string", 1u64.into()), None);
    let pair = Value::from(vec![Value::from(1u64), 0.5.into()]);
    let floats = Value::from(vec![Value::Float(1.0), 0.5.into()]);
    assert_eq!(cast("array[float32]", pair.clone()), Some(floats));
    assert_eq!(cast("array[uint32]", pair), None);
}

#[test]
fn values_without_a_type_get_the_first_usual_one_that_holds_them() {
    let of = |value: Value| set(None, value).map(|(value_type, _)| value_type);
    for (value, expected) in [
        (Value::from(1u64), Some("uint32")),
        ((1u64 << 32).into(), Some("uint64")),
        ((-1i64).into(), Some("int32")),
        (i64::MIN.into(), Some("int64")),
        (0.5.into(), Some("float32")),
        (0.1.into(), Some("float64")),
        ("text".into(), Some("string")),
        (true.into(), Some("bool")),
        (vec![Value::from(1u64), (-1i64).into()].into(), Some("array[int32]")),
        (vec![Value::from(1u64), (-1i64).into(), (1u64 << 40).into()].into(), Some("array[int64]")),
        (vec![Value::from("a"), 1u64.into()].into(), None),
        (vec![1u8].into(), None),
        (Value::Null, None),
    ] {
        assert_eq!(of(value.clone()).as_deref(), expected, "{value:?}");
    }
}
