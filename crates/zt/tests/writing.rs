//! Writing through the facade: what is refused, how it is laid out, what comes out identical.
#![cfg(feature = "zstd")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use std::io::{self, Write};

use common::{sample, span_of};
use zt::foreign::{FileBuilder, Kind};
use zt::{
    Attributes, Blob, Component, ComponentOptions, Compression, DType, Dense, DigestAlgorithm,
    Elements, Encoding, ErrorKind, File, Limits, Memory, NewObject, Object, ObjectOptions,
    OpenOptions, Span, ToObject, Value, WriteOptions, Writer, codes,
};

fn noise(len: usize) -> Vec<u8> {
    let mut state = 1u64;
    let next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

#[test]
fn the_same_calls_give_the_same_bytes_on_any_number_of_threads() {
    // 40 MiB: three batches of frames.
    let ramp: Vec<u32> = (0..10u32 << 20).map(|value| value / 5).collect();
    let write = |options: WriteOptions| {
        let mut bytes = Vec::new();
        let mut writer = options.zstd(1).to_writer(&mut bytes).unwrap();
        writer.add("ramp", &Dense::from_slice(&[10 << 20], &ramp).unwrap()).unwrap();
        writer.finish().unwrap();
        bytes
    };
    let one = write(WriteOptions::new().threads(1));
    assert!(one.len() < 20 << 20, "it compresses");
    assert_eq!(one, write(WriteOptions::new().threads(2)));
    assert_eq!(one, write(WriteOptions::new().threads(5)));
    assert_eq!(one, write(WriteOptions::new()));
    let file = File::from_bytes(one).unwrap();
    assert_eq!(*file.tensor("ramp").unwrap().values::<u32>().unwrap(), ramp);
}

#[test]
fn a_stream_is_stored_like_the_same_bytes_at_once() {
    for len in [0, 1, 4 << 20, (4 << 20) + 1, 16 << 20, (33 << 20) + 7] {
        let content: Vec<u8> = (0..len).map(|at| u8::try_from((at >> 9) % 256).unwrap()).collect();
        for options in [WriteOptions::new(), WriteOptions::new().zstd(1)] {
            let mut at_once = Vec::new();
            let mut writer = options.clone().to_writer(&mut at_once).unwrap();
            let dense = Dense::from_slice(&[len as u64], &content).unwrap();
            writer.add("x", &dense).unwrap();
            writer.finish().unwrap();

            let mut streamed = Vec::new();
            let mut writer = options.to_writer(&mut streamed).unwrap();
            let mut object = writer.begin("x", &[len as u64], "dense").unwrap();
            let mut data = object.component("data", DType::U8, None).unwrap();
            for piece in content.chunks(777_777) {
                data.write_all(piece).unwrap();
            }
            data.finish().unwrap();
            object.finish().unwrap();
            writer.finish().unwrap();
            assert!(at_once == streamed, "{len}");
        }
    }
}

/// Longer than a single one, the last of them full.
#[test]
fn a_stream_of_whole_frames_has_no_empty_one_behind_them() {
    let content = vec![7u8; 5 << 20];
    let dense = Dense::from_slice(&[content.len() as u64], &content).unwrap();
    let mut bytes = Vec::new();
    let mut writer = WriteOptions::new().zstd(1).to_writer(&mut bytes).unwrap();
    writer.add("x", &dense).unwrap();
    writer.finish().unwrap();
    let file = File::from_bytes(bytes.clone()).unwrap();
    let blob = &file.tensor("x").unwrap().component("data").unwrap().blob;
    let frames = zt::container::codec::frames(&Memory::new(bytes), blob).unwrap();
    assert_eq!(frames.unwrap().len(), 5);
}

#[test]
fn components_that_do_not_shrink_are_stored_raw() {
    for len in [100, 5 << 20, 20 << 20] {
        let content = noise(len);
        let mut bytes = Vec::new();
        let mut writer = WriteOptions::new().zstd(1).to_writer(&mut bytes).unwrap();
        writer.add("noise", &Dense::from_slice(&[len as u64], &content).unwrap()).unwrap();
        writer.finish().unwrap();
        let file = File::from_bytes(bytes).unwrap();
        let tensor = file.tensor("noise").unwrap();
        assert_eq!(tensor.component("data").unwrap().blob.encoding, Encoding::Raw);
        assert_eq!(*tensor.values::<u8>().unwrap(), content);
    }
}

#[test]
fn components_begin_at_64_and_large_ones_on_a_page() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    for (name, len) in [("a", 1), ("b", 1 << 20), ("c", 3), ("d", (1 << 20) - 1)] {
        writer.add(name, &Dense::from_slice(&[len as u64], &vec![1u8; len]).unwrap()).unwrap();
    }
    writer.finish().unwrap();
    let file = File::from_bytes(bytes).unwrap();
    let offset = |name| span_of(&file, name, "data").offset();
    assert_eq!((offset("a"), offset("b"), offset("c")), (64, 4096, 4096 + (1 << 20)));
    assert_eq!(offset("d"), offset("c") + 64);
}

#[test]
fn options_hold_per_component() {
    let mut bytes = Vec::new();
    let mut writer = WriteOptions::new().digest(None).to_writer(&mut bytes).unwrap();
    let packed = ComponentOptions {
        compression: Compression::Zstd(9),
        digest: Some(DigestAlgorithm::Sha256),
    };
    let plain = ComponentOptions { digest: None, ..ComponentOptions::default() };
    let options = ObjectOptions::from(plain).role("indptr", packed);
    let rows = 100u64;
    let indptr = vec![0u64; 101];
    let empty = zt::Csr::new([rows, 3], &[][..] as &[f32], &[][..] as &[u64], &indptr[..]).unwrap();
    writer.add_with("graph", &empty, &options).unwrap();
    writer.finish().unwrap();
    let file = File::from_bytes(bytes).unwrap();
    let graph = file.tensor("graph").unwrap();
    let indptr = &graph.component("indptr").unwrap().blob;
    assert_eq!(indptr.encoding, Encoding::Zstd);
    assert!(matches!(indptr.digest, Some(zt::Digest::Sha256(_))));
    assert_eq!(graph.component("values").unwrap().blob.digest, None);
}

#[test]
fn attributes_and_unknown_fields_survive_a_copy() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    let mut attributes = Attributes::new();
    attributes.insert("licence", "Apache-2.0");
    attributes.insert("epochs", 3u64);
    writer.set_attributes(attributes.clone()).unwrap();
    let mut unknown = Attributes::new();
    unknown.insert("x-note", Value::Null);
    writer.set_extra(unknown.clone()).unwrap();
    let mut object = writer.begin("w", &[2], "dense").unwrap();
    object.set_attributes(attributes.clone()).unwrap();
    object.set_extra(unknown.clone()).unwrap();
    let mut data = object.component("data", DType::U8, None).unwrap();
    data.write_all(&[1, 2]).unwrap();
    data.finish().unwrap();
    object.finish().unwrap();
    writer.finish().unwrap();

    let file = File::from_bytes(bytes.clone()).unwrap();
    let mut copied = Vec::new();
    let mut writer = Writer::new(&mut copied).unwrap();
    assert_eq!(file.extra().unwrap(), unknown);
    writer.set_attributes(file.attributes().unwrap().unwrap()).unwrap();
    writer.set_extra(file.extra().unwrap()).unwrap();
    writer.copy("w", &file.tensor("w").unwrap()).unwrap();
    writer.finish().unwrap();
    assert_eq!(copied, bytes);
    let copy = File::from_bytes(copied).unwrap();
    assert_eq!(copy.tensor("w").unwrap().attributes(), &attributes);
    assert_eq!(copy.tensor("w").unwrap().object().extra, unknown);
}

#[test]
fn refuses_what_its_own_reader_would_refuse() {
    let mut writer = Writer::new(io::sink()).unwrap();
    let one = Dense::from_slice(&[1], &[1u8]).unwrap();
    writer.add("one", &one).unwrap();
    assert_eq!(writer.add("one", &one).unwrap_err().code(), "duplicate-name");
    assert_eq!(writer.add(&"n".repeat(70_000), &one).unwrap_err().code(), "misuse");
    let mut object = writer.begin("short", &[3], "dense").unwrap();
    object.component("other", DType::U8, None).unwrap().finish().unwrap();
    let error = object.finish().unwrap_err();
    assert_eq!((error.code(), error.object()), ("missing-component", Some("short")));
    assert_eq!(
        writer.finish().unwrap_err().kind(),
        ErrorKind::Misuse,
        "no object would refer to its bytes"
    );
}

/// An object for each rule that [`Writer::add`] checks, with the code of its error.
fn refused_objects() -> Vec<(NewObject<'static>, &'static str)> {
    let object = |shape: &'static [u64],
                  format,
                  attributes,
                  components: &[(&'static str, DType, &'static [u8])]| {
        let components = components.iter();
        let components =
            components.map(|(role, dtype, bytes)| (*role, Elements::new(*dtype, *bytes)));
        NewObject::new(shape, format, attributes, components.collect::<Vec<_>>())
    };
    let one = ("data", DType::U8, &[0][..]);
    let dense = |attributes: Attributes| object(&[1], "dense", Some(attributes), &[one]);
    let nested = |levels| (0..levels).fold(Value::from(1u64), |value, _| Value::array(vec![value]));
    let csr = |indices| {
        let parts = [
            ("values", DType::U8, &[1][..]),
            ("indptr", DType::U64, &[0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]),
        ];
        object(&[1, 2], "sparse_csr", None, &[parts[0], ("indices", DType::U64, indices), parts[1]])
    };
    let mut fp8 = object(&[1], "dense", None, &[("data", DType::U16, &[0, 0])]);
    fp8.components[0].1.logical_type = Some("f8_e5m2".into());
    let mut many = object(&[1], "dense", None, &[one]);
    let role = |at: usize| (format!("more{at}").into(), many.components[0].1.clone());
    let more: Vec<_> = (0..Limits::default().components).map(role).collect();
    many.components.extend(more);
    vec![
        (object(&[1], "dense", None, &[one, one]), "duplicate-name"),
        (object(&[1], "example.unknown/1", None, &[one, one]), "duplicate-name"),
        (object(&[1], "dense", None, &[]), "missing-component"),
        (object(&[2], "dense", None, &[one]), "shape-size-mismatch"),
        (object(&[1 << 40, 1 << 40], "dense", None, &[one]), "shape-size-mismatch"),
        (
            object(&[1], "example.unknown/1", None, &[("half", DType::U16, &[0])]),
            "shape-size-mismatch",
        ),
        (object(&[1], "dense", None, &[("data", DType::Bool, &[2])]), "bool-value"),
        (object(&[1; 65], "dense", None, &[one]), "misuse"),
        (object(&[1], "quantized_group", None, &[one]), "missing-component"),
        (csr(&[2, 0, 0, 0, 0, 0, 0, 0]), "index-value"),
        (csr(&[0]), "shape-size-mismatch"),
        (fp8, "logical-type"),
        (many, "schema"),
        (dense(Attributes::from([("k", nested(100))])), "misuse"),
        // Not too deep alone, but in the manifest.
        (dense(Attributes::from([("k", nested(62))])), "misuse"),
        (dense(Attributes::from([("k", Value::Simple(20))])), "misuse"),
        (dense(attributes_of(Limits::default().attributes_len + 1)), "schema"),
    ]
}

#[test]
fn a_refused_object_leaves_the_writer_as_it_was_whichever_rule_it_breaks() {
    let one = Dense::from_slice(&[1], &[1u8]).unwrap();
    let source = File::from_bytes(sample(WriteOptions::new())).unwrap();
    let options = ObjectOptions::from(ComponentOptions::default());
    let refused = refused_objects();
    let all = [
        WriteOptions::new(),
        WriteOptions::new().zstd(1),
        WriteOptions::new().planes(),
        WriteOptions::new().deduplicate(true),
    ];
    for write in all {
        let mut bytes = Vec::new();
        let mut writer = write.to_writer(&mut bytes).unwrap();
        writer.add("one", &one).unwrap();
        for (object, code) in &refused {
            let errors = [
                writer.add("bad", object),
                writer.add_with("bad", object, &options),
                writer.add_all([("bad", object)]),
            ];
            for error in errors {
                let error = error.unwrap_err();
                assert_eq!((error.code(), error.object()), (*code, Some("bad")), "{error}");
            }
        }
        let misuses = [
            writer.add("one", &one),
            writer.add("", &one),
            writer.add(&"n".repeat(70_000), &one),
            writer.add_with("one", &one, &options),
            writer.add_all([("one", &one)]),
            writer.copy("one", &source.tensor("ramp").unwrap()),
            writer.begin("one", &[1], "dense").map(drop),
        ];
        for refused in misuses {
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::Misuse);
        }
        writer.add("two", &one).unwrap();
        writer.finish().unwrap();
        let names = ["one", "two"];
        assert_eq!(File::from_bytes(bytes).unwrap().names().collect::<Vec<_>>(), names);
    }
}

#[test]
fn attributes_that_cannot_be_written_are_refused_when_they_are_given() {
    let nested = (0..100).fold(Value::from(1u64), |value, _| Value::array(vec![value]));
    let deep = || Attributes::from([("history", nested.clone())]);
    let refused = |given: zt::Result<()>, key: &str| {
        let error = given.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse);
        assert!(error.message().contains(key), "{error}");
    };
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    writer.set_attributes([("step", 7u64)].into()).unwrap();
    refused(writer.set_attributes(deep()), "\"history\" cannot be written: values are nested");
    refused(writer.set_extra(deep()), "history");
    refused(writer.set_extra([("objects", 7u64)].into()), "objects");
    let mut object = writer.begin("w", &[1], "dense").unwrap();
    refused(object.set_attributes(deep()), "history");
    refused(object.set_extra([("shape", 7u64)].into()), "shape");
    let mut data = object.component("data", DType::U8, None).unwrap();
    refused(data.set_extra([("dtype", 7u64)].into()), "dtype");
    data.write_all(&[1]).unwrap();
    data.finish().unwrap();
    object.finish().unwrap();
    writer.finish().unwrap();

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.zt");
    std::fs::write(&path, bytes).unwrap();
    let mut edit = File::edit(&path).unwrap();
    refused(edit.set_attributes(deep()), "history");
    refused(edit.writer().set_extra(deep()), "history");
    edit.commit().unwrap();
    let step = Attributes::from([("step", 7u64)]);
    assert_eq!(File::open(&path).unwrap().attributes().unwrap(), Some(step));
}

/// Attributes of so many bytes, a map of one pair.
fn attributes_of(byte_len: usize) -> Attributes {
    // The heads of the map, the key and the value, and the key.
    let value = Value::from(vec![7u8; byte_len - 8]);
    Attributes::from_iter([("k", value)])
}

#[test]
fn attributes_beyond_what_readers_decode_are_not_written() {
    let limit = Limits::default().attributes_len;
    let refused = |error: zt::Error, name: &str| {
        assert_eq!(
            (error.code(), error.kind(), error.object()),
            ("schema", ErrorKind::Limit, Some(name))
        );
    };
    let content = vec![7u8; 1 << 20];
    let dense = Dense::from_slice(&[1 << 20], &content).unwrap();
    let with = |byte_len| {
        let mut object = dense.to_object().unwrap();
        object.attributes = Some(attributes_of(byte_len));
        object
    };
    // Components that are compressed are not placed yet when their object ends.
    for options in [WriteOptions::new(), WriteOptions::new().zstd(1)] {
        let mut bytes = Vec::new();
        let mut writer = options.clone().to_writer(&mut bytes).unwrap();
        refused(writer.add("more", &with(limit + 1)).unwrap_err(), "more");
        writer.add("most", &with(limit)).unwrap();
        writer.finish().unwrap();
        let file = File::from_bytes(bytes).unwrap();
        assert_eq!(file.names().collect::<Vec<_>>(), ["most"]);
        assert_eq!(*file.tensor("most").unwrap().bytes("data").unwrap(), *content);

        // No object would refer to the bytes that are already in the file.
        let mut writer = options.to_writer(io::sink()).unwrap();
        let mut object = writer.begin("more", &[1 << 20], "dense").unwrap();
        object.set_attributes(attributes_of(limit)).unwrap();
        let mut data = object.component("data", DType::U8, None).unwrap();
        data.set_extra([("x", 1u64)].into_iter().collect()).unwrap();
        data.write_all(&content).unwrap();
        data.finish().unwrap();
        refused(object.finish().unwrap_err(), "more");
        assert_eq!(writer.finish().unwrap_err().kind(), ErrorKind::Misuse);
    }
}

#[test]
fn what_only_a_larger_limit_reads_is_not_copied_and_not_added_to_a_file() {
    let limit = Limits::default().attributes_len;
    let limits = Limits::default().with_attributes_len(2 * limit);
    let mut builder = FileBuilder::new(Kind::new("test"), OpenOptions::new().limits(limits));
    let source = builder.source(Memory::new([1u8]));
    let blob = Blob::raw(Span::new(0, 1).unwrap());
    let object = Object::new([1], "dense").with_component("data", Component::new(DType::U8, blob));
    let mut more = object.clone();
    more.attributes = Some(attributes_of(limit + 1));
    builder.object("one", object, source);
    builder.object("more", more, source);
    let from = builder.build().unwrap();
    let [one, more] = ["one", "more"].map(|name| from.tensor(name).unwrap());

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.zt");
    let mut writer = Writer::create(&path).unwrap();
    assert_eq!(writer.copy("more", &more).unwrap_err().code(), "schema");
    writer.copy("one", &one).unwrap();
    writer.finish().unwrap();
    let mut edit = File::edit(&path).unwrap();
    let error = edit.writer().copy("more", &more).unwrap_err();
    assert_eq!((error.code(), error.object()), ("schema", Some("more")));
    edit.writer().copy("two", &one).unwrap();
    edit.commit().unwrap();
    let file = File::open(&path).unwrap();
    assert_eq!(file.names().collect::<Vec<_>>(), ["one", "two"]);
    assert!(file.entries().iter().all(|entry| entry.object().is_ok()));
}

/// Takes so many bytes and then reports a full disk.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        if taken == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(taken) }
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_sink_that_fails_at_any_byte_gives_an_io_error() {
    let write = |room: usize| -> zt::Result<()> {
        let mut writer = Writer::new(Full(room))?;
        writer.add("x", &Dense::from_slice(&[100], &[3u8; 100])?)?;
        writer.finish()
    };
    let mut whole = Vec::new();
    let mut writer = Writer::new(&mut whole).unwrap();
    writer.add("x", &Dense::from_slice(&[100], &[3u8; 100]).unwrap()).unwrap();
    writer.finish().unwrap();
    for room in 0..whole.len() {
        assert_eq!(write(room).unwrap_err().code(), "io", "{room}");
    }
    write(whole.len()).unwrap();
}

/// A copy returns the error of the sink, or of the writer that refuses the bytes, without wrapping it.
#[test]
fn a_copy_tells_what_was_wrong_with_the_sink_or_the_bytes() {
    let mut source = sample(WriteOptions::new().digest(None));
    let file = File::from_bytes(source.clone()).unwrap();
    for options in [WriteOptions::new(), WriteOptions::new().zstd(1)] {
        let mut writer = options.threads(1).to_writer(Full(8)).unwrap();
        let copied = writer.copy("ramp", &file.tensor("ramp").unwrap());
        let error = copied.and_then(|()| writer.finish()).unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::Io, "io"));
        let error = io::Error::from(error);
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
    let flags = span_of(&file, "flags", "data");
    source[usize::try_from(flags.offset()).unwrap() + 1] = 7;
    let file = File::from_bytes(source).unwrap();
    let mut writer = Writer::new(io::sink()).unwrap();
    let error = writer.copy("flags", &file.tensor("flags").unwrap());
    let error = error.unwrap_err();
    assert_eq!((error.code(), error.component()), ("bool-value", Some("data")));
    assert_eq!(writer.finish().unwrap_err().kind(), ErrorKind::Misuse);
}

/// The digest of a long component may be known only behind the copy.
#[test]
fn a_damaged_copy_is_found_at_the_latest_when_the_file_is_finished() {
    let mut source = Vec::new();
    let options = WriteOptions::new().digest(Some(DigestAlgorithm::Sha256));
    let mut writer = options.to_writer(&mut source).unwrap();
    let bytes = vec![7; 3 << 20];
    let values = Dense::from_slice(&[3 << 20], &bytes).unwrap();
    writer.add("x", &values).unwrap();
    writer.finish().unwrap();
    let span = span_of(&File::from_bytes(source.clone()).unwrap(), "x", "data");
    source[usize::try_from(span.end()).unwrap() - 1] = 8;
    let file = File::from_bytes(source).unwrap();
    for checks in [false, true] {
        let mut writer = WriteOptions::new().threads(2).to_writer(io::sink()).unwrap();
        writer.copy("x", &file.tensor("x").unwrap()).unwrap();
        assert!(!checks || writer.check_copied().is_err());
        // A caller who goes on after that error gets no file, either.
        let error = writer.finish().unwrap_err();
        let found = (error.code(), error.object(), error.component());
        assert_eq!(found, ("digest-mismatch", Some("x"), Some("data")));
    }
}

#[test]
fn a_component_can_be_written_through_a_buffer() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    let mut object = writer.begin("x", &[1000], "dense").unwrap();
    let mut data = object.component("data", DType::U16, None).unwrap();
    let mut buffered = io::BufWriter::with_capacity(100, &mut data);
    for value in 0..1000u16 {
        buffered.write_all(&value.to_le_bytes()).unwrap();
    }
    buffered.flush().unwrap();
    drop(buffered);
    data.finish().unwrap();
    object.finish().unwrap();
    writer.finish().unwrap();
    let file = File::from_bytes(bytes).unwrap();
    let values = file.tensor("x").unwrap().to_vec::<u16>().unwrap();
    assert!(values.into_iter().eq(0..1000));
}

#[test]
fn streams_are_held_to_what_can_be_checked_as_they_pass() {
    let mut writer = Writer::new(io::sink()).unwrap();
    let mut object = writer.begin("flags", &[3], "dense").unwrap();
    let mut data = object.component("data", DType::Bool, None).unwrap();
    data.write_all(&[0, 1]).unwrap();
    let error = data.write_all(&[2]).unwrap_err();
    let error = error.get_ref().unwrap().downcast_ref::<zt::Error>().unwrap();
    assert_eq!(error.code(), "bool-value");
    drop(data);
    assert_eq!(object.component("data", DType::U8, None).unwrap_err().code(), "misuse");
    drop(object);
    let deep = vec![1u64; 65];
    let mut writer = Writer::new(io::sink()).unwrap();
    assert_eq!(writer.begin("deep", &deep, "dense").unwrap_err().code(), "misuse");
    for alignment in [0, 3, 32, 1 << 40] {
        let options = WriteOptions::new().alignment(alignment);
        assert_eq!(options.to_writer(io::sink()).unwrap_err().code(), "misuse", "{alignment}");
    }
}

#[test]
fn a_copied_sparse_object_is_laid_out_like_a_written_one() {
    let bytes = sample(WriteOptions::new());
    let file = File::from_bytes(bytes.clone()).unwrap();
    let mut copied = Vec::new();
    let mut writer = Writer::new(&mut copied).unwrap();
    for entry in file.entries() {
        writer.copy(entry.name(), &entry.tensor().unwrap()).unwrap();
    }
    writer.finish().unwrap();
    assert_eq!(copied, bytes);
}

#[test]
fn an_io_error_keeps_its_kind() {
    let error: io::Error = zt::Error::from(io::Error::from(io::ErrorKind::StorageFull)).into();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
}

#[test]
fn objects_list_as_they_were_written_those_without_bytes_too() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    for (name, len) in [("c", 3), ("z", 0), ("a", 2), ("b", 0)] {
        let values = vec![1u8; len];
        let dense = Dense::from_slice(&[len as u64], &values).unwrap();
        writer.add(name, &dense).unwrap();
    }
    writer.finish().unwrap();
    let file = File::from_bytes(bytes).unwrap();
    let names: Vec<_> = file.entries().iter().map(|it| it.name()).collect();
    assert_eq!(names, ["c", "z", "a", "b"]);
}

#[test]
fn options_of_a_file_hold_for_all_of_it() {
    let options = WriteOptions::new().digest(None);
    assert_eq!(options.thread_count(), None);
    let options = options.threads(3).compression(Compression::EntropyOnly);
    assert_eq!(options.thread_count(), Some(3));
    let zeros = Dense::from_slice(&[1000], &[0u8; 1000]).unwrap();
    let file = File::from_bytes(common::written(&zeros, options)).unwrap();
    let blob = &file.tensor("x").unwrap().component("data").unwrap().blob;
    assert_eq!((blob.encoding, &blob.digest), (Encoding::Zstd, &None));
}

/// Names and dimensions: as long, and as many, as readers take by default.
#[test]
fn refuses_names_and_shapes_that_readers_refuse() {
    let limits = Limits::default();
    let dense = |rank: usize| Dense::from_slice(&vec![1; rank], &[1u8]).unwrap();
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    let [long, longer] = [0, 1].map(|more| "n".repeat(limits.name_len + more));
    writer.add(&long, &dense(limits.rank)).unwrap();
    for (name, rank) in [(&*longer, 1), ("x", limits.rank + 1)] {
        let error = writer.add(name, &dense(rank)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse);
    }
    writer.finish().unwrap();
    let file = File::from_bytes(bytes).unwrap();
    assert!(file.names().eq([long.as_str()]));
}

/// Objects are put together by hand, too.
#[test]
fn contents_that_readers_refuse_are_not_written() {
    let (numbers, graph) = (Dense::from_slice(&[2], &[0u8, 2]).unwrap(), common::graph());
    let mut bools = numbers.to_object().unwrap();
    bools.components[0].1.dtype = DType::Bool;
    let mut graph = graph.to_object().unwrap();
    let mut components = graph.components.iter_mut();
    let (_, columns) = components.find(|(role, _)| role == "indices").unwrap();
    *columns = Elements::from(vec![u64::MAX; columns.bytes.len() / columns.dtype.byte_len()]);
    let mut writer = Writer::new(io::sink()).unwrap();
    for (object, role, code) in [(bools, "data", "bool-value"), (graph, "indices", "index-value")] {
        let error = writer.add("x", &object).unwrap_err();
        assert_eq!((error.code(), error.component()), (code, Some(role)));
    }
}

#[test]
fn an_empty_name_is_refused_unless_it_is_asked_for_or_copied() {
    let object = Dense::from_slice(&[1], &[7u8]).unwrap();
    let mut writer = Writer::new(Vec::new()).unwrap();
    assert_eq!(writer.add("", &object).unwrap_err().code(), codes::MISUSE);
    writer.add("other", &object).unwrap();
    writer.finish().unwrap();

    let mut bytes = Vec::new();
    let mut writer = WriteOptions::new().empty_names(true).to_writer(&mut bytes).unwrap();
    writer.add("", &object).unwrap();
    writer.finish().unwrap();
    let file = File::from_bytes(bytes).unwrap();
    let mut copy = Vec::new();
    let mut writer = Writer::new(&mut copy).unwrap();
    writer.copy("", &file.tensor("").unwrap()).unwrap();
    writer.finish().unwrap();
    let copy = File::from_bytes(copy).unwrap();
    assert_eq!(*copy.tensor("").unwrap().values::<u8>().unwrap(), [7]);
}

#[test]
fn a_component_that_is_too_short_is_refused_where_it_ends() {
    for len in [0, 2] {
        let mut writer = Writer::new(Vec::new()).unwrap();
        let mut object = writer.begin("w", &[3], "dense").unwrap();
        let mut data = object.component("data", DType::U8, None).unwrap();
        data.write_all(&vec![1; len]).unwrap();
        let error = data.finish().unwrap_err();
        assert_eq!(
            (error.code(), error.object(), error.component()),
            (codes::SHAPE_SIZE_MISMATCH, Some("w"), Some("data"))
        );
        drop(object);
        let error = writer.finish().unwrap_err();
        assert_eq!((error.code(), error.object()), (codes::MISUSE, Some("w")));
    }
    // What comes before decides, too: there is a column for each value.
    let mut writer = Writer::new(Vec::new()).unwrap();
    let mut object = writer.begin("m", &[2, 3], "sparse_csr").unwrap();
    let mut values = object.component("values", DType::F32, None).unwrap();
    values.write_all(&[0; 8]).unwrap();
    values.finish().unwrap();
    let mut indices = object.component("indices", DType::U64, None).unwrap();
    indices.write_all(&[0; 8]).unwrap();
    let error = indices.finish().unwrap_err();
    assert_eq!(error.code(), codes::SHAPE_SIZE_MISMATCH);
    assert_eq!(error.component(), Some("indices"));
}
