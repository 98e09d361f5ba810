//! Conversion to planes and back gives the same bytes.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "tests")]

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

use zt::formats::PlaneCoding;
use zt::{
    Attributes, Compression, DType, Dense, Elements, File, FloatType, HashOptions, Value,
    WriteOptions, Writer,
};
use zt_convert::{ConvertOptions, Input, Kinds, ZT};

/// Elements with similar upper bytes, as weights have.
fn weights(dtype: DType, count: usize) -> Vec<u8> {
    let random = |at: usize| (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    let element = |at| {
        let mut element = random(at);
        element[dtype.byte_len() - 1] = 0x3c | element[0] & 0x81;
        element.into_iter().take(dtype.byte_len())
    };
    (0..count).flat_map(element).collect()
}

/// Large and small objects, of every type with planes and of some without.
fn model(options: WriteOptions) -> File {
    let mut bytes = Vec::new();
    let mut writer = options.to_writer(&mut bytes).unwrap();
    let large = [("a.f32", DType::F32, 1_300_000), ("b.bf16", DType::BF16, 5_000_000)];
    let small = [("c.f64", DType::F64, 3000), ("d.f16", DType::F16, 9000)];
    let none = [("e.bf16", DType::BF16, 70), ("f.i32", DType::I32, 9000)];
    for (name, dtype, count) in large.into_iter().chain(small).chain(none) {
        let bytes = weights(dtype, count);
        let elements = Elements::new(dtype, &bytes[..]);
        let dense = Dense::from_elements([count as u64], elements).unwrap();
        writer.add(name, &dense).unwrap();
    }
    let pairs = weights(DType::F32, 8000);
    let pairs = Elements::new(DType::F32, &pairs[..]).with_logical_type("complex64");
    let pairs = Dense::from_elements([4000], pairs).unwrap();
    writer.add("g.complex64", &pairs).unwrap();
    writer.finish().unwrap();
    File::from_bytes(bytes).unwrap()
}

fn to(options: &ConvertOptions<'_>, file: &File) -> Vec<u8> {
    let mut bytes = Vec::new();
    let summary =
        Kinds::builtin().convert(&[Input::from(file.clone())], &mut bytes, options).unwrap();
    assert!(summary.warnings.is_empty());
    let values = file.entries().into_iter().map(|entry| {
        let components = &entry.object().unwrap().components;
        let lens = components.iter().map(|(_, it)| it.blob.decoded_len.unwrap());
        lens.sum::<u64>()
    });
    // Codes are shorter than their values.
    let is_coded = formats(file).iter().any(|format| format == "zt.planes/2");
    if options.dtype.is_none() && !is_coded {
        assert_eq!(summary.bytes, values.sum::<u64>());
    }
    bytes
}

fn to_planes() -> ConvertOptions<'static> {
    let mut options = ConvertOptions::new(ZT);
    options.write = WriteOptions::new().planes();
    options
}

/// Progress does not depend on the number of passes over the values.
#[test]
fn progress_counts_each_value_once() {
    let counted = AtomicU64::new(0);
    let count = |bytes| {
        counted.fetch_add(bytes, Ordering::Relaxed);
        ControlFlow::Continue(())
    };
    let mut options = to_planes();
    options.progress = Some(zt::Progress::new(&count));
    let inputs = [Input::from(model(WriteOptions::new()))];
    let summary = Kinds::builtin().convert(&inputs, std::io::sink(), &options).unwrap();
    assert_eq!(counted.into_inner(), summary.bytes);
}

fn content(file: &File) -> [u8; 32] {
    file.hash(&HashOptions::default()).unwrap().content.unwrap()
}

fn formats(file: &File) -> Vec<String> {
    let mut entries = file.entries();
    entries.sort_by_key(|entry| entry.name().to_owned());
    let format = |entry: &zt::Entry<'_>| entry.object().unwrap().format.to_string();
    entries.iter().map(format).collect()
}

const PLANES: &str = "zt.planes/1";
const SPLIT: [&str; 7] = [PLANES, PLANES, PLANES, PLANES, "dense", "dense", PLANES];

#[test]
fn split_values_come_back_from_any_encoding() {
    let zstd = WriteOptions::new().compression(Compression::Zstd(1));
    for options in [WriteOptions::new(), zstd] {
        let plain = model(options);
        let bytes = to(&to_planes(), &plain);
        assert!(bytes.len() < 14_000_000, "{}", bytes.len());
        let planes = File::from_bytes(bytes.clone()).unwrap();
        assert_eq!(formats(&planes), SPLIT);

        let mut dense = ConvertOptions::new(ZT);
        dense.dense = true;
        let back = File::from_bytes(to(&dense, &planes)).unwrap();
        assert_eq!(content(&back), content(&plain));
        assert_eq!(formats(&back), ["dense"; 7]);

        // Without options, all of them stay as they are stored.
        assert!(to(&ConvertOptions::new(ZT), &planes) == bytes);
        assert!(to(&to_planes(), &planes) == bytes);
    }
}

#[test]
fn codings_turn_into_each_other() {
    let plain = model(WriteOptions::new());
    let mut to_coded = ConvertOptions::new(ZT);
    to_coded.write = WriteOptions::new().planes_in(PlaneCoding::Huffman);
    let coded = to(&to_coded, &plain);
    let planes = to(&to_planes(), &plain);
    let open = |bytes: &[u8]| File::from_bytes(bytes.to_vec()).unwrap();
    let formats_of_coded = SPLIT.map(|it| if it == PLANES { "zt.planes/2" } else { it });
    assert_eq!(formats(&open(&coded)), formats_of_coded);
    assert_eq!(content(&open(&coded)), content(&plain));
    assert!(coded.len() < 14_000_000, "{}", coded.len());
    assert!(to(&to_planes(), &open(&coded)) == planes);
    assert!(to(&to_coded, &open(&planes)) == coded);
    // Without options, and with the same, they stay as they are stored.
    assert!(to(&ConvertOptions::new(ZT), &open(&coded)) == coded);
    assert!(to(&to_coded, &open(&coded)) == coded);
    let mut cast = ConvertOptions::new(ZT);
    cast.dtype = Some(FloatType::F16);
    let [a, b] = [&planes, &coded].map(|it| File::from_bytes(to(&cast, &open(it))).unwrap());
    assert_eq!(content(&a), content(&b));
    assert_eq!(formats(&b)[..2], ["zt.planes/2"; 2]);
}

#[test]
fn attributes_are_kept_both_ways() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    let values = weights(DType::F32, 8000);
    for (name, key) in [("split", "note"), ("kept", "dtype")] {
        let mut object = writer.begin(name, &[8000], "dense").unwrap();
        let attributes: Attributes = [(key, Value::from("mine"))].into_iter().collect();
        object.set_attributes(attributes).unwrap();
        let mut data = object.component("data", DType::F32, None).unwrap();
        std::io::Write::write_all(&mut data, &values).unwrap();
        data.finish().unwrap();
        object.finish().unwrap();
    }
    writer.finish().unwrap();
    let plain = File::from_bytes(bytes).unwrap();
    let planes = File::from_bytes(to(&to_planes(), &plain)).unwrap();
    assert_eq!(formats(&planes), ["dense", PLANES]);
    let mut dense = ConvertOptions::new(ZT);
    dense.dense = true;
    let back = File::from_bytes(to(&dense, &planes)).unwrap();
    assert_eq!(content(&back), content(&plain));
}

/// Values of planes are cast like the values of dense objects.
#[test]
fn planes_are_cast() {
    let plain = model(WriteOptions::new());
    let planes = File::from_bytes(to(&to_planes(), &plain)).unwrap();
    let cast = |mut options: ConvertOptions<'static>, file: &File| {
        options.dtype = Some(FloatType::F16);
        File::from_bytes(to(&options, file)).unwrap()
    };
    let expected = cast(ConvertOptions::new(ZT), &plain);
    let found = cast(ConvertOptions::new(ZT), &planes);
    for entry in expected.entries() {
        let [a, b] = [&expected, &found].map(|file| file.tensor(entry.name()).unwrap().to_dense());
        assert!(a.unwrap() == b.unwrap(), "{}", entry.name());
    }
    // Small objects are not split after the cast.
    let split = formats(&cast(to_planes(), &planes));
    assert_eq!(split[..4], [PLANES, PLANES, "dense", PLANES]);
}

#[cfg(feature = "safetensors")]
#[test]
fn safetensors_come_back_byte_for_byte() {
    use zt_convert::SAFETENSORS;

    let mut plain = Vec::new();
    let mut writer = Writer::new(&mut plain).unwrap();
    for (name, dtype, count) in [("a", DType::F32, 1_100_000), ("b", DType::BF16, 9000)] {
        let bytes = weights(dtype, count);
        let elements = Elements::new(dtype, &bytes[..]);
        let dense = Dense::from_elements([count as u64], elements).unwrap();
        writer.add(name, &dense).unwrap();
    }
    writer.finish().unwrap();
    let plain = File::from_bytes(plain).unwrap();
    let theirs = to(&ConvertOptions::new(SAFETENSORS), &plain);
    let opened = zt_convert::open_source(zt::Memory::new(theirs.clone())).unwrap();
    let planes = File::from_bytes(to(&to_planes(), &opened)).unwrap();
    assert_eq!(formats(&planes), [PLANES; 2]);
    // Safetensors holds the values, so neither `lossy` nor `dense` is needed.
    let back = to(&ConvertOptions::new(SAFETENSORS), &planes);
    assert!(back == theirs);
}
