//! Equal components are stored once, from any kind of file.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use zt::container::ContainerWriter;
use zt::foreign::FileBuilder;
use zt::manifest::Manifest;
use zt::{
    Attributes, Blob, Component, DType, Dense, Elements, ErrorKind, File, FloatType, HashOptions,
    Limits, Memory, Object, OpenOptions, Source, Span, VerifyOptions, WriteOptions,
};
use zt_convert::{ConvertOptions, Input, Kinds, Summary, ZT};

/// Bytes without repetition. Each `seed` gives another byte at `at`.
fn weights(len: usize, at: usize, seed: u8) -> Vec<u8> {
    let random = |at: usize| {
        let mixed = (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed.to_be_bytes()[0] & 0x3f
    };
    let mut bytes: Vec<u8> = (0..len).map(random).collect();
    bytes[at] ^= seed;
    bytes
}

const LEN: usize = 300_000;

/// Two equal tensors, others that differ in one byte, and small ones.
fn model(writing: WriteOptions, dtype: DType) -> File {
    let mut bytes = Vec::new();
    let mut writer = writing.to_writer(&mut bytes).unwrap();
    let mut add = |name: &str, bytes: &[u8]| {
        let elements = Elements::new(dtype, bytes);
        let shape = [(bytes.len() / dtype.byte_len()) as u64];
        let dense = Dense::from_elements(shape, elements).unwrap();
        writer.add(name, &dense).unwrap();
    };
    add("embed", &weights(LEN, 0, 0));
    add("first", &weights(LEN, 0, 1));
    add("last", &weights(LEN, LEN - 1, 1));
    add("middle", &weights(LEN, LEN / 2, 4));
    add("head", &weights(LEN, 0, 0));
    add("shorter", &weights(LEN - 8, 0, 0));
    add("small", &weights(64, 0, 0));
    add("small too", &weights(64, 0, 0));
    writer.finish().unwrap();
    File::from_bytes(bytes).unwrap()
}

fn to(options: &ConvertOptions<'_>, inputs: &[Input]) -> (Summary, Vec<u8>) {
    let mut bytes = Vec::new();
    let summary = Kinds::builtin().convert(inputs, &mut bytes, options).unwrap();
    (summary, bytes)
}

fn reopen(bytes: Vec<u8>) -> File {
    zt_convert::open_source(Memory::new(bytes)).unwrap()
}

fn content(file: &File) -> [u8; 32] {
    file.hash(&HashOptions::default()).unwrap().content.unwrap()
}

fn spans(file: &File, name: &str) -> Vec<Span> {
    let tensor = file.tensor(name).unwrap();
    let components = tensor.components();
    components.map(|(_, it)| it.blob.span).collect()
}

/// Only `embed` and `head` share, and everything verifies.
fn assert_tied(file: &File) {
    let names = ["embed", "first", "last", "middle", "head", "shorter"];
    for (at, a) in names.iter().enumerate() {
        for b in &names[..at] {
            let are_tied = (*b, *a) == ("embed", "head");
            assert_eq!(spans(file, a) == spans(file, b), are_tied, "{a} and {b}");
        }
    }
    let options = VerifyOptions::new().strict(true);
    let report = file.verify(&options).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

/// Converts to `.zt` with every storage: tied, and with the same values.
fn assert_ties(inputs: &[Input], values: &File, shared: usize) {
    for write in [WriteOptions::new(), WriteOptions::new().zstd(1), WriteOptions::new().planes()] {
        let mut options = ConvertOptions::new(ZT);
        options.write = write.clone().threads(1);
        let (summary, bytes) = to(&options, inputs);
        assert_eq!(summary.shared, shared as u64);
        options.write = write.threads(3);
        assert!(to(&options, inputs).1 == bytes, "threads change nothing");
        let file = reopen(bytes);
        assert_tied(&file);
        let (_, back) = to(&as_dense(), &[file.clone().into()]);
        let back = reopen(back);
        assert_tied(&back);
        assert_eq!(content(&back), content(values));

        options.deduplicate = false;
        let (summary, bytes) = to(&options, inputs);
        assert_eq!(summary.shared, 0);
        let apart = reopen(bytes);
        assert_eq!(content(&apart), content(&file));
        assert_ne!(spans(&apart, "embed"), spans(&apart, "head"));
    }
}

fn as_dense() -> ConvertOptions<'static> {
    let mut options = ConvertOptions::new(ZT);
    options.dense = true;
    options
}

#[test]
fn copies_and_ties_of_a_zt_file_are_tied() {
    for write in [WriteOptions::new(), WriteOptions::new().zstd(1)] {
        // Tied tensors stay tied, even small ones.
        for (deduplicate, shared) in [(false, LEN), (true, LEN + 64)] {
            let model = model(write.clone().deduplicate(deduplicate), DType::BF16);
            assert_ties(&[model.clone().into()], &model, shared);
        }
    }
}

#[cfg(any(feature = "npy", feature = "safetensors"))]
fn through(kind: zt::foreign::Kind) {
    let model = model(WriteOptions::new(), DType::F32);
    let (_, foreign) = to(&ConvertOptions::new(kind), &[model.clone().into()]);
    let foreign = reopen(foreign);
    assert_eq!(foreign.kind(), kind);
    assert_ties(&[foreign.into()], &model, LEN);
}

#[test]
#[cfg(feature = "safetensors")]
fn copies_in_safetensors_are_tied() {
    through(zt_convert::SAFETENSORS);
}

#[test]
#[cfg(feature = "npy")]
fn copies_in_npz_are_tied() {
    through(zt_convert::NPZ);
}

#[test]
#[cfg(feature = "pytorch")]
fn tensors_tied_by_torch_stay_tied() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../conformance/corpus/foreign/pt")
        .join("tied.pt");
    let input = zt_convert::Kinds::builtin().open(&path, OpenOptions::new()).unwrap();
    let (summary, bytes) = to(&ConvertOptions::new(ZT), std::slice::from_ref(&input));
    let file = reopen(bytes);
    assert_eq!(content(&file), content(input.file()));
    assert!(summary.shared > 0);
    let mut all: Vec<_> = file.entries().iter().map(|it| spans(&file, it.name())).collect();
    let count = all.len();
    all.sort_by_key(|spans| spans.first().map(|span| span.offset()));
    all.dedup();
    assert!(all.len() < count);
}

#[test]
fn copies_in_several_inputs_are_tied() {
    let of = |name: &str, dtype: DType| {
        let mut bytes = Vec::new();
        let mut writer = zt::Writer::new(&mut bytes).unwrap();
        let content = weights(LEN, 0, 0);
        let elements = Elements::new(dtype, &content[..]);
        let shape = [(LEN / dtype.byte_len()) as u64];
        let dense = Dense::from_elements(shape, elements).unwrap();
        writer.add(name, &dense).unwrap();
        writer.finish().unwrap();
        Input::from(File::from_bytes(bytes).unwrap())
    };
    let shards = [of("a", DType::BF16), of("b", DType::F64), of("c", DType::BF16)];
    let (summary, bytes) = to(&ConvertOptions::new(ZT), &shards);
    assert_eq!(summary.shared, 2 * LEN as u64, "whatever the dtype");
    let file = reopen(bytes);
    assert_eq!(spans(&file, "a"), spans(&file, "b"));

    // Cast values depend on the dtype.
    let mut options = ConvertOptions::new(ZT);
    options.dtype = Some(FloatType::F32);
    let (summary, bytes) = to(&options, &shards);
    assert_eq!(summary.shared, 2 * LEN as u64);
    let file = reopen(bytes);
    assert_eq!(spans(&file, "a"), spans(&file, "c"));
    assert_ne!(spans(&file, "a"), spans(&file, "b"));
    options.deduplicate = false;
    let (_, bytes) = to(&options, &shards);
    assert_eq!(content(&reopen(bytes)), content(&file));
}

#[test]
fn bools_are_not_tied_to_bytes_that_may_be_invalid_bools() {
    let mut bytes = Vec::new();
    let mut writer = zt::Writer::new(&mut bytes).unwrap();
    let ones = Dense::from_slice(&[9000], &[1u8; 9000][..]).unwrap();
    let truths = Dense::from_slice(&[9000], &[true; 9000][..]).unwrap();
    writer.add("bytes", &ones).unwrap();
    writer.add("bools", &truths).unwrap();
    writer.add("more bools", &truths).unwrap();
    writer.finish().unwrap();
    let input = Input::from(File::from_bytes(bytes).unwrap());
    let (summary, bytes) = to(&ConvertOptions::new(ZT), &[input]);
    assert_eq!(summary.shared, 9000);
    let file = reopen(bytes);
    assert_eq!(spans(&file, "bools"), spans(&file, "more bools"));
}

#[test]
fn a_damaged_copy_is_an_error_and_not_a_tie() {
    let mut bytes = Vec::new();
    let mut writer = zt::Writer::new(&mut bytes).unwrap();
    let content = weights(LEN, 0, 0);
    let dense = Dense::from_slice(&[LEN as u64], &content).unwrap();
    writer.add("embed", &dense).unwrap();
    writer.add("head", &dense).unwrap();
    writer.finish().unwrap();
    let copy = spans(&File::from_bytes(bytes.clone()).unwrap(), "head")[0];
    let last = usize::try_from(copy.end()).unwrap() - 1;
    bytes[last] ^= 1;
    let input = Input::from(File::from_bytes(bytes).unwrap());
    let error =
        Kinds::builtin().convert(&[input], std::io::sink(), &ConvertOptions::new(ZT)).unwrap_err();
    assert_eq!(error.code(), "digest-mismatch");
    assert_eq!(error.object(), Some("head"));
}

/// A file in memory that notes where it is read.
struct Noted(Memory<Vec<u8>>, Arc<Mutex<Vec<u64>>>);

impl Source for Noted {
    fn byte_len(&self) -> u64 {
        self.0.byte_len()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.1.lock().unwrap().push(offset);
        self.0.read_at(offset, buf)
    }
}

/// In a store, the first one may be gone from memory.
#[test]
fn a_copy_of_few_compressed_bytes_is_found_without_reading_the_first_again() {
    let mut bytes = Vec::new();
    let options = WriteOptions::new().zstd(1).deduplicate(false);
    let mut writer = options.to_writer(&mut bytes).unwrap();
    for name in ["a", "b"] {
        let values = Dense::from_slice(&[LEN as u64], &[1u8; LEN]).unwrap();
        writer.add(name, &values).unwrap();
    }
    writer.finish().unwrap();
    let notes = Arc::default();
    let source = Noted(Memory::new(bytes), Arc::clone(&notes));
    let file = zt_convert::open_source(source).unwrap();
    let ([a], [b]) = (&spans(&file, "a")[..], &spans(&file, "b")[..]) else {
        unreachable!();
    };
    assert_ne!(a, b);
    notes.lock().unwrap().clear();
    let (summary, _) = to(&ConvertOptions::new(ZT), &[file.clone().into()]);
    assert_eq!(summary.shared, LEN as u64);
    let notes = notes.lock().unwrap();
    let first_of_b = notes.iter().position(|at| *at >= b.offset()).unwrap();
    assert!(notes[first_of_b..].iter().all(|at| *at >= b.offset()));
}

#[test]
fn progress_counts_shared_bytes() {
    let model = model(WriteOptions::new(), DType::U8);
    let counted = AtomicU64::new(0);
    let progress = |bytes| {
        counted.fetch_add(bytes, Ordering::Relaxed);
        ControlFlow::Continue(())
    };
    let mut options = ConvertOptions::new(ZT);
    options.progress = Some(zt::Progress::new(&progress));
    let (summary, _) = to(&options, &[model.into()]);
    assert_eq!(counted.into_inner(), summary.bytes);
}

/// 128 ranges of 1 MiB, each 64 bytes behind the last, in a file of about 1 MiB.
fn shingles() -> Vec<u8> {
    const LEN: u64 = 1 << 20;
    let data = weights(128 * 64 + (1 << 20), 0, 0);
    let mut container = ContainerWriter::new(Vec::new()).unwrap();
    container.begin_blob(64, None).unwrap();
    container.write(&data).unwrap();
    container.end_blob().unwrap();
    let object = |at: u64| {
        let blob = Blob::raw(Span::new(64 + at * 64, LEN).unwrap());
        let data = Component::new(DType::U8, blob);
        Object::new([LEN], "dense").with_component("data", data)
    };
    let objects = (0..128).map(|at| (format!("w{at}"), object(at)));
    let manifest =
        Manifest { attributes: None, objects: objects.collect(), extra: Attributes::new() };
    container.finish(&manifest.to_cbor().unwrap()).unwrap()
}

/// Written one by one, they would take a hundred times the bytes of the file.
#[test]
fn ranges_that_overlap_beyond_the_limit_are_not_written() {
    let input = Input::from(File::from_bytes(shingles()).unwrap());
    let mut written = Vec::new();
    let error =
        Kinds::builtin().convert(&[input], &mut written, &ConvertOptions::new(ZT)).unwrap_err();
    assert_eq!((error.code(), error.kind()), ("overlap", ErrorKind::Limit));
    assert!(written.is_empty());

    let limits = Limits::default().with_overlap(128);
    let file = OpenOptions::new().limits(limits).open_bytes(shingles());
    let content = content(file.as_ref().unwrap());
    let (summary, written) = to(&ConvertOptions::new(ZT), &[Input::from(file.unwrap())]);
    assert_eq!(summary.objects, 128);
    assert_eq!(self::content(&reopen(written)), content);
}

/// A component: role, type, offset and length.
type Part = (&'static str, DType, u64, u64);

/// Objects with components at these places of `bytes`: name, format, shape and components.
fn laid(bytes: Vec<u8>, objects: &[(&str, &'static str, [u64; 2], &[Part])]) -> Input {
    let mut builder = FileBuilder::new(ZT, OpenOptions::new());
    let source = builder.source(Memory::new(bytes));
    for (name, format, shape, components) in objects {
        let mut object = Object::new(*shape, *format);
        for (role, dtype, offset, len) in *components {
            let blob = Blob::raw(Span::new(*offset, *len).unwrap());
            object = object.with_component(*role, Component::new(*dtype, blob));
        }
        builder.object(*name, object, source);
    }
    Input::from(builder.build().unwrap())
}

/// Every object keeps its dense value. Returns the number of shared bytes.
fn decoded(input: &Input) -> (File, u64) {
    let (summary, bytes) = to(&as_dense(), std::slice::from_ref(input));
    let file = reopen(bytes);
    for entry in input.file().entries() {
        let expected = entry.tensor().unwrap().to_dense().unwrap();
        let found = file.tensor(entry.name()).unwrap().to_dense().unwrap();
        assert!(found == expected, "{}", entry.name());
    }
    (file, summary.shared)
}

/// A dense value depends on all components, their roles, and the shape.
#[test]
fn dense_values_are_tied_if_components_and_shape_are_equal() {
    let values = [1.0f32, 2.0, 3.0].map(f32::to_le_bytes).concat();
    let mut bytes = vec![0; 256];
    bytes[..12].copy_from_slice(&values);
    for (at, numbers) in [(64, [0u64, 1, 3]), (128, [0, 2, 3]), (192, [0, 1, 4])] {
        bytes[at..at + 24].copy_from_slice(&numbers.map(u64::to_le_bytes).concat());
    }
    let values = ("values", DType::F32, 0, 12);
    let indices = |at| ("indices", DType::U64, at, 24);
    let indptr = |at| ("indptr", DType::U64, at, 24);
    let one = [values, indices(64), indptr(128)];
    let other = [values, indices(192), indptr(128)];
    let swapped = [values, indptr(64), indices(128)];
    let input = laid(
        bytes,
        &[
            ("one", "sparse_csr", [2, 5], &one),
            ("other", "sparse_csr", [2, 5], &other),
            ("swapped", "sparse_csr", [2, 5], &swapped),
            ("wider", "sparse_csr", [2, 6], &one),
            ("same", "sparse_csr", [2, 5], &one),
        ],
    );
    let (file, shared) = decoded(&input);
    assert_eq!(shared, 40);
    assert_eq!(spans(&file, "one"), spans(&file, "same"));
}

/// The same bits have other values in another type.
#[test]
fn values_cast_from_two_types_are_not_tied() {
    let mut bytes = vec![0; 192];
    bytes[..6].copy_from_slice(&[0x3C00u16, 0x4000, 0x4200].map(u16::to_le_bytes).concat());
    for (at, numbers) in [(64, [0u64, 1, 3]), (128, [0, 2, 3])] {
        bytes[at..at + 24].copy_from_slice(&numbers.map(u64::to_le_bytes).concat());
    }
    let of = |dtype| {
        let (indices, indptr) = (DType::U64, DType::U64);
        [("values", dtype, 0, 6), ("indices", indices, 64, 24), ("indptr", indptr, 128, 24)]
    };
    let [half, brain] = [DType::F16, DType::BF16].map(of);
    let input = laid(
        bytes,
        &[
            ("half", "sparse_csr", [2, 5], &half),
            ("brain", "sparse_csr", [2, 5], &brain),
            ("half too", "sparse_csr", [2, 5], &half),
        ],
    );
    let mut options = as_dense();
    options.dtype = Some(FloatType::F32);
    let (summary, bytes) = to(&options, &[input]);
    assert_eq!(summary.shared, 40);
    let file = reopen(bytes);
    let first = |name| file.tensor(name).unwrap().to_vec::<f32>().unwrap()[0];
    assert_eq!(first("half"), 1.0);
    assert_eq!(first("half too"), 1.0);
    assert_eq!(first("brain"), 0.007_812_5);
}

/// The same blocks have other values in another format.
#[test]
fn dense_values_of_two_formats_are_not_tied() {
    let blocks: Vec<u8> = [0, 60].into_iter().chain(2..36).collect();
    let data: &[Part] = &[("data", DType::U8, 0, 36)];
    let input = laid(
        blocks,
        &[
            ("q4", "gguf.q4_0/1", [2, 32], data),
            ("iq4", "gguf.iq4_nl/1", [2, 32], data),
            ("q4 too", "gguf.q4_0/1", [2, 32], data),
        ],
    );
    let (file, shared) = decoded(&input);
    assert_eq!(shared, 256);
    assert_eq!(spans(&file, "q4"), spans(&file, "q4 too"));
}

/// A component that holds no values is not cast, so it differs from cast values.
#[test]
fn a_component_beside_the_data_is_not_tied_to_what_is_cast() {
    let values: Vec<u8> = (0..2048u16).flat_map(|at| f32::from(at).to_le_bytes()).collect();
    let mut bytes = Vec::new();
    let mut writer = zt::Writer::new(&mut bytes).unwrap();
    for (name, roles) in [("a", &["data"][..]), ("b", &["data", "note"])] {
        let mut object = writer.begin(name, &[2048], "dense").unwrap();
        for role in roles {
            let mut data = object.component(*role, DType::F32, None).unwrap();
            std::io::Write::write_all(&mut data, &values).unwrap();
            data.finish().unwrap();
        }
        object.finish().unwrap();
    }
    writer.finish().unwrap();
    let mut options = ConvertOptions::new(ZT);
    options.dtype = Some(FloatType::F16);
    let input = Input::from(File::from_bytes(bytes).unwrap());
    let (summary, bytes) = to(&options, &[input]);
    assert_eq!(summary.shared, 4096);
    let file = reopen(bytes);
    assert_eq!(*file.tensor("b").unwrap().bytes("note").unwrap(), values);
}

/// The work is bounded for a file with many components that begin alike and end differently.
#[test]
fn a_component_is_compared_with_the_first_four_that_begin_alike() {
    const LEN: usize = 70_000;
    for (copy, shared) in [(3, LEN as u64), (4, 0)] {
        let mut bytes = Vec::new();
        let writing = WriteOptions::new().deduplicate(false);
        let mut writer = writing.to_writer(&mut bytes).unwrap();
        for (name, seed) in [0, 1, 2, 3, 4, copy].into_iter().enumerate() {
            let weights = weights(LEN, LEN - 1, seed);
            let dense = Dense::from_slice(&[LEN as u64], &weights).unwrap();
            writer.add(&name.to_string(), &dense).unwrap();
        }
        writer.finish().unwrap();
        let input = Input::from(File::from_bytes(bytes).unwrap());
        assert_eq!(to(&ConvertOptions::new(ZT), &[input]).0.shared, shared);
    }
}
