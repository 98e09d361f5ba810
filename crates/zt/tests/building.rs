//! Files of other formats, assembled by their readers.
#![cfg(feature = "zstd")]
#![allow(clippy::unwrap_used, reason = "tests")]

use zt::foreign::{FileBuilder, Kind};
use zt::formats::FormatViolation;
use zt::{
    Attributes, Blob, Component, DType, DigestAlgorithm, Encoding, ErrorKind, Limits, Memory,
    Object, ObjectFormat, OpenOptions, RawObject, Registry, Signature, Slice, Span, VerifyOptions,
    Warning,
};

fn object(shape: &[u64], offset: u64, byte_len: u64) -> Object {
    let blob = Blob::raw(Span::new(offset, byte_len).unwrap());
    Object::new(shape, "dense").with_component("data", Component::new(DType::U8, blob))
}

fn builder(options: OpenOptions) -> (FileBuilder, zt::foreign::SourceId) {
    let mut builder = FileBuilder::new(Kind::new("test"), options);
    let source = builder.source(Memory::new([1u8, 2, 3, 4]));
    (builder, source)
}

#[test]
fn an_object_outside_its_source_is_at_fault_and_its_neighbours_read() {
    let (mut builder, source) = builder(OpenOptions::new());
    builder.object("inside", object(&[2], 1, 2), source);
    builder.object("outside", object(&[2], 3, 2), source);
    builder.object("short", object(&[5], 0, 4), source);
    let file = builder.build().unwrap();
    assert_eq!(*file.tensor("inside").unwrap().values::<u8>().unwrap(), [2, 3]);
    assert_eq!(file.tensor("outside").unwrap_err().code(), "bounds");
    let short = file.tensor("short").unwrap();
    assert_eq!(short.fault().unwrap().code(), "shape-size-mismatch");
    assert_eq!(*short.bytes("data").unwrap(), [1, 2, 3, 4]);
    let entries = file.entries();
    let outside = entries.iter().find(|entry| entry.name() == "outside").unwrap();
    assert_eq!(outside.raw().unwrap().components[0].1.offset, Some(3));
}

#[test]
fn components_lie_in_sources_of_their_own() {
    let (mut builder, bytes) = builder(OpenOptions::new());
    let words = builder.source(Memory::new([0u8, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]));
    let component = |dtype, offset, byte_len| {
        Component::new(dtype, Blob::raw(Span::new(offset, byte_len).unwrap()))
    };
    let sparse = || {
        Object::new([3], "sparse_coo")
            .with_component("values", component(DType::U8, 2, 2))
            .with_component("coords", component(DType::U64, 0, 16))
    };
    builder.object_across("sparse", sparse(), [bytes, words]);
    builder.object_across("homeless", sparse(), [bytes]);
    let file = builder.build().unwrap();
    let sparse = file.tensor("sparse").unwrap();
    let dense = sparse.to_dense().unwrap();
    assert_eq!(*dense.as_slice::<u8>().unwrap(), [3, 0, 4]);
    let error = file.tensor("homeless").unwrap_err();
    assert_eq!((error.code(), error.component()), ("bounds", Some("coords")));
}

#[test]
fn components_are_found_by_role_however_many_they_are() {
    for count in [1, 2, 63, 64, 65, 200] {
        let (mut builder, source) = builder(OpenOptions::new());
        let mut object = Object::new([1], "test.many/1");
        for at in 0..count {
            // In no order that a role has.
            let role = format!("r{}", at * 7919 % 200);
            let blob = Blob::raw(Span::new(at % 4, 1).unwrap());
            object = object.with_component(role, Component::new(DType::U8, blob));
        }
        builder.object("x", object, source);
        let file = builder.build().unwrap();
        let tensor = file.tensor("x").unwrap();
        assert_eq!(tensor.components().count() as u64, count);
        for (role, component) in tensor.components() {
            assert!(std::ptr::eq(tensor.component(role).unwrap(), component));
        }
        for role in ["", "r", "r200", "s"] {
            assert_eq!(tensor.component(role).unwrap_err().code(), "not-found");
        }
    }
}

#[test]
fn what_is_made_out_of_a_source_is_listed_where_it_lies() {
    let (mut builder, bytes) = builder(OpenOptions::new());
    let made = builder.derived_from(Memory::new([9u8; 2]), bytes, 1);
    builder.object("last", object(&[1], 2, 1), bytes);
    builder.object("made", object(&[1], 1, 1), made);
    builder.object("first", object(&[1], 0, 1), bytes);
    let file = builder.build().unwrap();
    let entries = file.entries();
    let names: Vec<_> = entries.iter().map(|entry| entry.name()).collect();
    assert_eq!(names, ["first", "made", "last"]);
    assert_eq!(*file.tensor("made").unwrap().values::<u8>().unwrap(), [9]);
}

#[test]
fn bytes_that_are_made_have_no_place_in_a_file() {
    let (mut builder, bytes) = builder(OpenOptions::new());
    let made = builder.derived(Memory::new([9u8; 2]));
    let made_of = builder.derived_from(Memory::new([9u8; 2]), bytes, 1);
    builder.object("read", object(&[1], 1, 1), bytes);
    builder.object("made", object(&[1], 1, 1), made);
    builder.object("made of", object(&[1], 1, 1), made_of);
    let part = builder.build().unwrap();
    let mut set = FileBuilder::new(Kind::new("set"), OpenOptions::new());
    set.include(&part, |_| true);
    for file in [part, set.build().unwrap()] {
        let spans = |name: &str| file.tensor(name).unwrap().file_spans().collect::<Vec<_>>();
        assert_eq!(spans("read"), [Span::new(1, 1)]);
        assert_eq!((spans("made"), spans("made of")), (vec![None], vec![None]));
    }
}

#[test]
fn warnings_about_what_is_no_object_are_chosen_by_their_names() {
    let (mut builder, bytes) = builder(OpenOptions::new());
    builder.object("a.x", object(&[1], 0, 1), bytes);
    builder.object("b.x", object(&[1], 1, 1), bytes);
    for name in ["a.text", "b.text"] {
        builder.not_a_tensor(name, "strings");
    }
    builder.warning(warning("b.x"));
    let file = builder.build().unwrap();
    let chosen = file.select(|name| name.strip_prefix("a.").map(str::to_owned)).unwrap();
    let warnings = chosen.warnings();
    let found = warnings.iter().map(|it| (it.code, it.object.as_deref()));
    assert_eq!(found.collect::<Vec<_>>(), [("not-tensor", Some("text"))]);
}

#[test]
fn objects_of_other_files_are_included_as_they_are_there() {
    let part = |name: &str, bytes: [u8; 4]| {
        let mut builder = FileBuilder::new(Kind::new("part"), OpenOptions::new());
        // So that the others are not the first.
        builder.derived(Memory::new([0u8; 2]));
        let source = builder.source(Memory::new(bytes));
        let made = builder.derived_from(Memory::new([9u8; 2]), source, 0);
        builder.object(format!("{name}.made"), object(&[1], 1, 1), made);
        builder.object(format!("{name}.inside"), object(&[2], 1, 2), source);
        builder.object(format!("{name}.outside"), object(&[2], 3, 2), source);
        builder.object("both", object(&[1], 0, 1), source);
        let mut both = warning("both");
        both.message = name.to_owned();
        builder.warning(both);
        builder.build().unwrap()
    };
    let mut builder = FileBuilder::new(Kind::new("set"), OpenOptions::new());
    builder.include(&part("a", [1, 2, 3, 4]), |_| true);
    builder.include(&part("b", [5, 6, 7, 8]), |name| name != "both");
    let file = builder.build().unwrap();
    assert_eq!((file.kind(), file.byte_len()), (Kind::new("set"), 8));
    let entries = file.entries();
    let names: Vec<_> = entries.iter().map(|entry| entry.name()).collect();
    let expected = ["a.made", "both", "a.inside", "a.outside", "b.made", "b.inside", "b.outside"];
    assert_eq!(names, expected);
    let value = |name: &str| file.tensor(name).unwrap().to_vec::<u8>().unwrap();
    assert_eq!(value("both"), [1]);
    assert_eq!((value("a.inside"), value("b.inside")), (vec![2, 3], vec![6, 7]));
    assert_eq!((value("a.made"), value("b.made")), (vec![9], vec![9]));
    for name in ["a.outside", "b.outside"] {
        let error = file.tensor(name).unwrap_err();
        assert_eq!((error.code(), error.object()), ("bounds", Some(name)));
    }
    // What is said of an object comes with it, and only then.
    let warnings = file.warnings();
    assert_eq!((warnings.len(), &*warnings[0].message), (1, "a"));
}

fn warning(object: &str) -> Warning {
    Warning::new("test", "a remark").with_object(object)
}

/// A source that decodes can say more than that it could not read.
struct Damaged;

impl zt::Source for Damaged {
    fn byte_len(&self) -> u64 {
        8
    }

    fn read_at(&self, _: u64, _: &mut [u8]) -> std::io::Result<()> {
        Err(zt::Error::new(ErrorKind::DigestMismatch, "digest-mismatch", "other bytes").into())
    }
}

#[test]
fn an_error_of_ours_from_a_source_keeps_its_code() {
    let mut builder = FileBuilder::new(Kind::new("test"), OpenOptions::new());
    let source = builder.source(Damaged);
    let data = Component::new(DType::U8, Blob::raw(Span::new(0, 8).unwrap()));
    builder.object("w", Object::new([8], "dense").with_component("data", data), source);
    let error = builder.build().unwrap().tensor("w").unwrap().bytes("data").unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::DigestMismatch, "digest-mismatch"));
    assert_eq!((error.object(), error.component()), (Some("w"), Some("data")));
}

#[test]
fn names_are_unique_and_found_in_any_order() {
    let (mut builder, source) = builder(OpenOptions::new());
    for name in ["m", "a", "z"] {
        builder.object(name, object(&[1], 0, 1), source);
    }
    let file = builder.build().unwrap();
    assert!(["a", "m", "z"].iter().all(|name| file.tensor(name).is_ok()));

    let (mut builder, source) = self::builder(OpenOptions::new());
    builder.object("twice", object(&[1], 0, 1), source);
    builder.object("twice", object(&[1], 1, 1), source);
    assert_eq!(builder.build().unwrap_err().code(), "duplicate-name");
}

#[test]
fn the_limits_hold_for_other_formats_too() {
    let limits =
        Limits::default().with_rank(2).with_components(2).with_name_len(4).with_attributes_len(8);
    let (mut builder, source) = builder(OpenOptions::new().limits(limits));
    builder.object("four", object(&[1, 1], 0, 1), source);
    builder.object("fifth", object(&[1], 0, 1), source);
    builder.object("cube", object(&[1, 1, 1], 0, 1), source);
    let mut said = object(&[1], 0, 1);
    said.attributes = Some([("k", "four")].into_iter().collect());
    let mut more = object(&[1], 0, 1);
    more.attributes = Some([("k", "fives")].into_iter().collect());
    let part = || object(&[1], 0, 1).components.remove(0).1;
    let split = object(&[1], 0, 1).with_component("b", part());
    let spread = split.clone().with_component("c", part());
    builder.object("pair", split, source);
    builder.object("trio", spread, source);
    builder.object("said", said, source);
    builder.object("more", more, source);
    let file = builder.build().unwrap();
    assert!(file.tensor("four").is_ok());
    assert!(file.tensor("said").is_ok());
    assert!(file.tensor("pair").is_ok());
    for name in ["fifth", "cube", "trio", "more"] {
        assert_eq!(file.tensor(name).unwrap_err().kind(), ErrorKind::Limit, "{name}");
    }
}

#[test]
fn a_fault_of_the_importer_is_listed_and_given_each_time() {
    let (mut builder, _) = builder(OpenOptions::new());
    let error = zt::Error::new(ErrorKind::Unsupported, "dtype", "six bits to an element");
    builder.fault("odd", RawObject::default(), error);
    let file = builder.build().unwrap();
    for _ in 0..2 {
        let error = file.tensor("odd").unwrap_err();
        assert_eq!((error.code(), error.object()), ("dtype", Some("odd")));
    }
    assert_eq!(file.verify(&zt::VerifyOptions::default()).unwrap().problems.len(), 1);
}

#[test]
fn made_bytes_are_no_part_of_the_file() {
    let (mut builder, _) = builder(OpenOptions::new());
    let made = builder.derived(Memory::new([7u8, 8]));
    builder.object("made", object(&[2], 0, 2), made);
    let file = builder.build().unwrap();
    assert_eq!(file.byte_len(), 4);
    let made = file.tensor("made").unwrap();
    assert_eq!(*made.values::<u8>().unwrap(), [7, 8]);
}

#[test]
fn what_is_tolerated_is_a_warning_and_a_problem_to_strict_readers() {
    let build = |options| {
        let (mut builder, source) = builder(options);
        builder.object("sound", object(&[1], 0, 1), source);
        builder.tolerated(zt::Error::new(ErrorKind::Malformed, "header", "untidy"));
        builder.build()
    };
    let file = build(OpenOptions::new()).unwrap();
    let warnings = file.warnings();
    assert_eq!((warnings.len(), warnings[0].code), (1, "header"));
    let mut options = zt::VerifyOptions::default();
    assert!(file.verify(&options).unwrap().is_ok());
    options = options.strict(true);
    let report = file.verify(&options).unwrap();
    let codes = report.problems.iter().map(zt::Error::code);
    assert_eq!(codes.collect::<Vec<_>>(), ["header"]);
    let refused = build(OpenOptions::new().strict(true)).unwrap_err();
    assert_eq!(refused.code(), "header");
}

#[test]
fn strict_verification_looks_at_values_that_have_a_rule() {
    use zt::foreign::ValueRule::{Finite, Positive};
    let numbers = [1.0f32, -0.0, f32::NAN, f32::INFINITY];
    let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
    for (count, rule, first) in
        [(2, Finite, None), (3, Finite, Some(2)), (1, Positive, None), (4, Positive, Some(1))]
    {
        let mut builder = FileBuilder::new(Kind::new("test"), OpenOptions::new());
        let source = builder.source(Memory::new(bytes.clone()));
        let blob = Blob::raw(Span::new(0, 4 * count).unwrap());
        let data = Component::new(DType::F32, blob);
        builder.object("w", Object::new([count], "dense").with_component("data", data), source);
        builder.strict_values("w", "data", rule);
        builder.strict_values("absent", "data", rule);
        let file = builder.build().unwrap();
        let mut options = zt::VerifyOptions::default();
        assert!(file.verify(&options).unwrap().is_ok());
        options = options.strict(true);
        let problems = file.verify(&options).unwrap().problems;
        assert_eq!(problems.len(), usize::from(first.is_some()), "{rule:?}");
        for problem in problems {
            assert_eq!(problem.code(), "value");
            let place = format!("value {} is", first.unwrap());
            assert!(problem.message().starts_with(&place), "{problem}");
        }
    }
}

/// A format of one kind of file, whose objects need a component that ours do not.
struct Scaled;

impl ObjectFormat for Scaled {
    fn id(&self) -> &str {
        "test.scaled/1"
    }
    fn check(&self, _: &Signature<'_>, _: &Registry) -> zt::formats::Result<()> {
        Err(FormatViolation::MissingComponent.of("scales"))
    }
}

#[test]
fn objects_are_held_to_a_format_of_the_file() {
    let (mut builder, source) = builder(OpenOptions::new());
    builder.format(Scaled);
    let mut scaled = object(&[1], 0, 1);
    scaled.format = "test.scaled/1".into();
    builder.object("w", scaled, source);
    let file = builder.build().unwrap();
    let error = file.tensor("w").unwrap().fault().unwrap();
    assert_eq!((error.code(), error.component()), ("missing-component", Some("scales")));
    assert!(file.registry().format("test.scaled/1").is_some());
    assert!(file.registry().format("dense").is_some());
}

#[test]
fn attributes_and_fields_of_the_file_are_those_that_were_set() {
    let file = builder(OpenOptions::new()).0.build().unwrap();
    assert_eq!(file.attributes().unwrap(), None);
    assert_eq!(file.extra().unwrap(), Attributes::new());
    assert_eq!((file.layout(), file.version()), (None, None));
    assert!(file.is_empty());

    let map = |key: &str| [(key, 1u64)].into_iter().collect::<Attributes>();
    let (mut builder, _) = builder(OpenOptions::new());
    builder.attributes(map("epochs"));
    builder.extra(map("x-part"));
    let file = builder.build().unwrap();
    assert_eq!(file.attributes().unwrap(), Some(map("epochs")));
    assert_eq!(file.extra().unwrap(), map("x-part"));
}

#[test]
fn a_file_says_of_which_kind_it_is() {
    let (builder, _) = builder(OpenOptions::new());
    let kind = builder.build().unwrap().kind();
    assert_eq!(kind, Kind::new("test"));
    assert_eq!((kind.as_str(), &*kind.to_string()), ("test", "test"));
    assert_eq!(Kind::ZT.to_string(), "zt");
}

#[test]
fn a_value_that_breaks_its_rule_is_named_by_its_place_in_the_component() {
    let mut numbers = vec![1.0f32; 20_000];
    numbers[19_990] = f32::NAN;
    let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
    let mut builder = FileBuilder::new(Kind::new("test"), OpenOptions::new());
    let source = builder.source(Memory::new(bytes));
    let data = Component::new(DType::F32, Blob::raw(Span::new(0, 80_000).unwrap()));
    let object = Object::new([20_000], "dense").with_component("data", data);
    builder.object("w", object, source);
    builder.strict_values("w", "data", zt::foreign::ValueRule::Finite);
    let options = VerifyOptions::new().strict(true);
    let problems = builder.build().unwrap().verify(&options).unwrap().problems;
    assert!(problems[0].message().starts_with("value 19990 is"));
}

#[test]
fn right_bytes_of_one_source_do_not_vouch_for_those_of_another() {
    let (right, mut wrong) = (vec![7; 5000], vec![7; 5000]);
    wrong[4000] = 8;
    let blob = Blob {
        digest: Some(DigestAlgorithm::Crc32c.digest(&right).unwrap()),
        ..Blob::raw(Span::new(0, 5000).unwrap())
    };
    let object =
        Object::new([5000], "dense").with_component("data", Component::new(DType::U8, blob));
    let mut builder = FileBuilder::new(Kind::new("test"), OpenOptions::new());
    for (name, bytes) in [("right", right), ("wrong", wrong)] {
        let source = builder.source(Memory::new(bytes));
        builder.object(name, object.clone(), source);
    }
    let file = builder.build().unwrap();
    file.tensor("right").unwrap().bytes("data").unwrap();
    let tensor = file.tensor("wrong").unwrap();
    assert!(!tensor.is_verified("data").unwrap());
    let error = tensor.bytes("data").unwrap_err();
    assert_eq!(error.code(), "digest-mismatch");
}

#[test]
fn what_is_included_is_held_to_the_limits_of_the_whole() {
    let mut frame = Vec::new();
    let mut compressor = zt::container::codec::FrameCompressor::new(1).unwrap();
    compressor.compress(&[7; 4000], &mut frame).unwrap();
    let blob = Blob {
        encoding: Encoding::Zstd,
        decoded_len: Some(4000),
        ..Blob::raw(Span::new(0, frame.len() as u64).unwrap())
    };
    let object =
        Object::new([4000], "dense").with_component("data", Component::new(DType::U8, blob));
    let mut part = FileBuilder::new(Kind::new("part"), OpenOptions::new());
    let source = part.source(Memory::new(frame));
    part.object("x", object, source);
    let part = part.build().unwrap();
    let limits = Limits::default().with_decoded_len(3999);
    let mut set = FileBuilder::new(Kind::new("set"), OpenOptions::new().limits(limits));
    set.include(&part, |_| true);
    let set = set.build().unwrap();
    let error = set.tensor("x").unwrap().slice(&[Slice::Index(0)]);
    assert_eq!(error.unwrap_err().code(), "decompression-limit");
    let problems = set.verify(&VerifyOptions::default()).unwrap().problems;
    let codes: Vec<_> = problems.iter().map(zt::Error::code).collect();
    assert_eq!(codes, ["decompression-limit"]);
}
