//! What only the facade can find wrong, from what causes it: the kind, the code, and all that is said
//! of it, names and places included. And texts for debugging, which hold no tensors.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::Path;

use common::{sample, written};
use zt::foreign::{FileBuilder, Kind};
use zt::{
    Blob, Component, DType, Dense, DigestAlgorithm, Error, ErrorKind, File, Limits, Memory, Object,
    OpenOptions, Progress, Slice, Span, VerifyOptions, Warning, WriteOptions, Writer,
};
use zt_manifest::ManifestDigest;

/// The place is what the text has before the message.
fn check(error: &Error, kind: ErrorKind, code: &str, place: &str) {
    assert_eq!((error.kind(), error.code()), (kind, code), "{error}");
    let expected = [place, &error.message()].join(if place.is_empty() { "" } else { ": " });
    assert_eq!(error.to_string(), expected);
}

fn one() -> Dense<'static> {
    Dense::from_slice(&[1], &[1u8]).unwrap().into_owned().unwrap()
}

#[test]
fn of_calls() {
    let file = File::from_bytes(sample(WriteOptions::new())).unwrap();
    let (ramp, graph) = (file.tensor("ramp").unwrap(), file.tensor("graph").unwrap());
    let mut writer = Writer::new(io::sink()).unwrap();
    writer.add("a\nb", &one()).unwrap();
    let twice = writer.add("a\nb", &one()).unwrap_err();
    let long = writer.add(&"n".repeat(65_537), &one()).unwrap_err();
    let deep = writer.begin("deep", &[1; 65], "dense").unwrap_err();
    let mut object = writer.begin("twice", &[1], "example.pair/1").unwrap();
    for at in 0..2u8 {
        let Ok(mut component) = object.component("half", DType::U8, None) else {
            break;
        };
        component.write_all(&[at]).unwrap();
        component.finish().unwrap();
    }
    let role = object.component("half", DType::U8, None).unwrap_err();
    drop(object);
    let unfinished = writer.add("c", &one()).unwrap_err();
    let stop = |_: u64| ControlFlow::Break(());
    let options = VerifyOptions::new().progress(zt::Progress::new(&stop));
    let stopped = file.verify(&options).unwrap_err();
    for (error, kind, code, place) in [
        (file.tensor("nobody").unwrap_err(), ErrorKind::Misuse, "not-found", "nobody"),
        (ramp.bytes("values").unwrap_err(), ErrorKind::Misuse, "not-found", "ramp"),
        (ramp.slice_csr(&[Slice::ALL]).unwrap_err(), ErrorKind::Misuse, "misuse", "ramp"),
        (graph.slice_coo(&[Slice::ALL]).unwrap_err(), ErrorKind::Misuse, "misuse", "graph"),
        (twice, ErrorKind::Misuse, "duplicate-name", "a\\nb"),
        (role, ErrorKind::Misuse, "duplicate-name", "twice/half"),
        (deep, ErrorKind::Misuse, "misuse", "deep"),
        (unfinished, ErrorKind::Misuse, "misuse", "twice"),
        (stopped, ErrorKind::Interrupted, "interrupted", ""),
    ] {
        check(&error, kind, code, place);
    }
    assert_eq!(long.code(), "misuse");
    assert!(long.message().contains("65536"), "{long}");
}

#[test]
fn of_sharing() {
    for (dtype, name, role, code, place) in [
        (DType::Bool, "bytes", "data", "misuse", "bytes/data"),
        (DType::U8, "bytes", "values", "not-found", "bytes/values"),
        (DType::U8, "nobody", "data", "not-found", "nobody/data"),
    ] {
        let mut writer = Writer::new(io::sink()).unwrap();
        writer.add("bytes", &one()).unwrap();
        let mut object = writer.begin("tied", &[1], "dense").unwrap();
        let data = object.component("data", dtype, None).unwrap();
        let error = data.share(name, role).unwrap_err();
        check(&error, ErrorKind::Misuse, code, place);
    }
}

#[test]
fn of_paths() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.zt");
    let at = |path: &Path| path.display().to_string();
    let error = Writer::create(folder.path()).unwrap_err();
    let place = at(&folder.path().canonicalize().unwrap());
    check(&error, ErrorKind::Io, "io", &place);

    // The system's error is the source, so that its number can be found.
    let error = File::open(&path).unwrap_err();
    let source = std::error::Error::source(&error).unwrap();
    let system: &io::Error = source.downcast_ref().unwrap();
    assert_eq!(system.kind(), io::ErrorKind::NotFound);
    assert_eq!(error.message(), system.to_string());
    check(&error, ErrorKind::Io, "io", &at(&path));

    std::fs::write(&path, sample(WriteOptions::new())).unwrap();
    let edit = File::edit(&path).unwrap();
    let error = File::edit(&path).unwrap_err();
    check(&error, ErrorKind::Io, "locked", &at(&path));
    drop(edit);

    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/corpus");
    std::fs::copy(corpus.join("writers/1.0.0/sparse.zt"), &path).unwrap();
    let error = File::edit(&path).unwrap_err();
    check(&error, ErrorKind::Unsupported, "unsupported", &at(&path));
}

/// A dense object of bytes.
fn object(offset: u64, byte_len: u64) -> Object {
    let blob = Blob::raw(Span::new(offset, byte_len).unwrap());
    Object::new([byte_len], "dense").with_component("data", Component::new(DType::U8, blob))
}

#[test]
fn of_files() {
    let mut bytes = written(&one(), WriteOptions::new());
    bytes[20] = 7;
    let strict = VerifyOptions::new().strict(true);
    let problems = |bytes: &[u8]| {
        let file = File::from_bytes(bytes.to_vec()).unwrap();
        file.verify(&strict).unwrap().problems
    };
    let [padding] = &problems(&bytes)[..] else { unreachable!() };
    check(padding, ErrorKind::Malformed, "padding", "at 20");
    bytes[20] = 0;
    // The places of faults in the manifest are offsets in the file.
    let version = bytes.windows(6).position(|text| text == b"\x651.2.0");
    let at = version.unwrap();
    bytes[at + 1] = b'7';
    let error = File::from_bytes(bytes.clone()).unwrap_err();
    assert_eq!((error.code(), error.offset()), ("version", Some(at as u64)));
    bytes[at + 1] = b'1';
    bytes[64] ^= 4;
    let [digest] = &problems(&bytes)[..] else { unreachable!() };
    let [was, is] = [1, 5].map(|byte| DigestAlgorithm::Crc32c.digest(&[byte]).unwrap());
    let kind = ErrorKind::DigestMismatch;
    check(digest, kind, "digest-mismatch", "x/data at 64..65");
    let text = digest.message();
    assert!([was, is].iter().all(|sum| text.contains(&sum.to_string())));

    let limits = Limits::default().with_name_len(1).with_rank(2);
    let options = OpenOptions::new().limits(limits);
    let mut builder = FileBuilder::new(Kind::new("test"), options);
    let source = builder.source(Memory::new([1, 2, 3, 4]));
    builder.object("long", object(0, 1), source);
    let mut other = object(0, 1);
    other.format = "example.pair/1".into();
    builder.object("x", other, source);
    let mut deep = object(0, 1);
    deep.shape = vec![1; 3];
    builder.object("d", deep, source);
    builder.object("o", object(3, 2), source);
    let file = builder.build().unwrap();
    for (error, kind, code, place) in [
        (
            file.tensor("x").unwrap().to_dense().unwrap_err(),
            ErrorKind::Unsupported,
            "unsupported",
            "x",
        ),
        (file.tensor("long").unwrap_err(), ErrorKind::Limit, "schema", "long"),
        (file.tensor("d").unwrap_err(), ErrorKind::Limit, "schema", "d"),
        (file.tensor("o").unwrap_err(), ErrorKind::Malformed, "bounds", "o/data at 3"),
    ] {
        check(&error, kind, code, place);
    }
}

/// The first place that is known stays.
#[test]
fn of_places_in_zt_files() {
    let mut bytes = written(&one(), WriteOptions::new());
    let offset = b"offset\x18\x40";
    let at = bytes.windows(8).position(|found| found == offset).unwrap();
    bytes[at + 7] = 72;
    ManifestDigest::renew(&mut bytes);
    let error = File::from_bytes(bytes).unwrap().tensor("x").unwrap_err();
    assert_eq!((error.code(), error.offset()), ("bounds", Some(72)));
    check(&error, ErrorKind::Malformed, "bounds", "x/data at 72");
}

#[test]
fn the_first_place_that_is_named_stays() {
    let error = || Error::new(ErrorKind::Malformed, "header", "odd");
    let span = |offset| Span::new(offset, 4).unwrap();
    let named = error().with_object("w").with_component("data");
    for (error, place) in [
        (error(), ""),
        (error().with_offset(3), "at 3"),
        (error().with_span(span(3)), "at 3..7"),
        (error().with_offset(3).with_span(span(9)), "at 3"),
        (error().with_span(span(3)).with_offset(9), "at 3..7"),
        (named.clone(), "w/data"),
        (named.clone().with_object("v").with_component("values"), "w/data"),
        (named.clone().with_span(span(3)), "w/data at 3..7"),
        (error().with_path(Path::new("a.zt")).with_path(Path::new("b.zt")), "a.zt"),
        (named.with_path(Path::new("a.zt")).with_offset(3), "a.zt: w/data at 3"),
        (error().with_component("data"), "component data"),
    ] {
        check(&error, ErrorKind::Malformed, "header", place);
        assert_eq!(error.message(), "odd");
    }
    let error = error().with_span(span(3));
    assert_eq!((error.offset(), error.end()), (Some(3), Some(7)));
}

#[test]
fn an_error_of_another_kind_of_file_is_kept() {
    let system = io::Error::from(io::ErrorKind::BrokenPipe);
    let error = Error::new(ErrorKind::Io, "io", Error::from(system));
    let inner: &Error = error.inner().unwrap().downcast_ref().unwrap();
    assert_eq!(inner.code(), "io");
    assert!(inner.inner().is_none());
    // The text is the inner error's, and the source is its cause.
    let source = std::error::Error::source(&error).unwrap();
    let system: &io::Error = source.downcast_ref().unwrap();
    assert_eq!(system.kind(), io::ErrorKind::BrokenPipe);
}

#[test]
fn warnings_name_their_object_and_component() {
    for (object, component, words) in [
        (None, None, "a remark"),
        (Some("w"), None, "w: a remark"),
        (Some("w"), Some("data"), "w/data: a remark"),
    ] {
        let mut warning = Warning::new("test", "a remark");
        warning.object = object.map(str::to_owned);
        warning.component = component.map(str::to_owned);
        assert_eq!(warning.to_string(), words);
    }
}

/// A tensor may have gigabytes and a file a million tensors, so both print as one line.
#[test]
fn no_debug_text_holds_tensors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.zt");
    std::fs::write(&path, sample(WriteOptions::new())).unwrap();
    let file = File::open(&path).unwrap();
    let error = file.tensor("nobody").unwrap_err();
    let entries = file.entries();
    let ramp = file.tensor("ramp").unwrap();
    let (mut edit, mut sink) = (File::edit(&path).unwrap(), Vec::new());
    edit.writer().add("more", &one()).unwrap();
    let mut writer = Writer::new(&mut sink).unwrap();
    let writer_text = format!("{writer:?}");
    let mut object = writer.begin("w", &[3], "dense").unwrap();
    let object_text = format!("{object:?}");
    let mut data = object.component("data", DType::U8, None).unwrap();
    data.write_all(&[1, 2]).unwrap();
    let file_text = "File { kind: Kind(\"zt\"), objects: 4, .. }";
    let edit_text = format!(
        "Editor {{ before: {file_text}, writer: Writer {{ objects: 5, offset: 24961, .. }}, .. }}"
    );
    let builder = FileBuilder::new(Kind::new("test"), OpenOptions::new());
    let go_on = |_| ControlFlow::Continue(());
    for (text, words) in [
        (format!("{file:?}"), file_text),
        (format!("{:?}", entries[0]), "Entry { name: \"ramp\", fault: None, .. }"),
        (format!("{:?}", ramp.dense_reader().unwrap()), "DenseReader { .. }"),
        (
            format!("{:?}", file.tensor("none").unwrap()),
            "Tensor { name: \"none\", object: Object { shape: [0, 7], format: \"dense\", \
             attributes: None, components: [(\"data\", Component { dtype: Some(U8), logical_type: \
             None, byte_order: Little, blob: Blob { span: Span { offset: 24320, byte_len: 0 }, \
             encoding: Raw, decoded_len: Some(0), digest: Some(Crc32c(0)), chunks: None }, extra: {} })], extra: \
             {} } }",
        ),
        (format!("{edit:?}"), &edit_text),
        (writer_text, "Writer { objects: 0, offset: 8, .. }"),
        (
            object_text,
            "ObjectWriter { name: \"w\", object: Object { shape: [3], format: \"dense\", \
             attributes: None, components: [], extra: {} }, .. }",
        ),
        (format!("{data:?}"), "ComponentWriter { role: \"data\", written: 2, .. }"),
        (format!("{builder:?}"), "FileBuilder { kind: Kind(\"test\"), objects: 0, .. }"),
        (
            format!("{:?}", VerifyOptions::new().progress(Progress::new(&go_on))),
            "VerifyOptions { strict: false, threads: None, progress: Some(Progress) }",
        ),
        (
            format!("{error:?}"),
            "Error { code: \"not-found\", location: Location { path: None, object: \
             Some(\"nobody\"), component: None, offset: None, end: None }, cause: \
             Facade(NoSuchObject) }",
        ),
    ] {
        assert_eq!(text, words);
    }
}

#[test]
fn errors_of_every_layer_have_their_kind() {
    let io = || zt::container::Error::Io(std::io::ErrorKind::NotFound.into());
    let misuse = zt::manifest::Misuse::DuplicateName("w".into());
    for (error, kind) in [
        (Error::from(io()), ErrorKind::Io),
        (
            zt::container::Error::Unsupported(zt::container::Unsupported::NotARegularFile).into(),
            ErrorKind::Unsupported,
        ),
        (
            zt::container::Error::Limit(zt::container::LimitExceeded::Manifest {
                limit: 1,
                found: 2,
            })
            .into(),
            ErrorKind::Limit,
        ),
        (zt::container::Error::Misuse(zt::container::Misuse::Order).into(), ErrorKind::Misuse),
        (zt::manifest::Error::from(io()).into(), ErrorKind::Io),
        (zt::manifest::Error::Misuse(misuse).into(), ErrorKind::Misuse),
        (zt::manifest::Error::FooterMissing.into(), ErrorKind::Malformed),
        (
            zt::formats::Error::Unsupported(zt::formats::Unsupported::Format("x".into())).into(),
            ErrorKind::Unsupported,
        ),
        (
            zt::formats::Error::Misuse(zt::formats::Misuse::NotFinite { position: 0 }).into(),
            ErrorKind::Misuse,
        ),
        (zt::formats::Error::Allocation { byte_len: 1 }.into(), ErrorKind::Limit),
        (zt::formats::FormatViolation::MissingComponent.of("data").into(), ErrorKind::Malformed),
    ] {
        assert_eq!(error.kind(), kind, "{error}");
    }
}

#[test]
fn the_closest_name_is_found() {
    let names = ["layers.0.bias", "layers.0.weight", "layers.1.weight", "größe"];
    for (asked, expected) in [
        ("layers.0.wieght", Some("layers.0.weight")),
        ("layers.1.wight", Some("layers.1.weight")),
        ("layer.0.bias", Some("layers.0.bias")),
        ("layers.0.weights", Some("layers.0.weight")),
        ("grösse", Some("größe")),
        ("größer", Some("größe")),
        ("nope", None),
        ("", None),
        ("embed.weight", None),
    ] {
        assert_eq!(zt::nearest(asked, names.into_iter()), expected, "{asked}");
    }
    let long = "x".repeat(257);
    assert_eq!(zt::nearest(&long, [long.as_str()].into_iter()), None);
}
