//! Components of the same bytes that share one blob.
#![cfg(feature = "zstd")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::io::Write;

use zt::foreign::{FileBuilder, Kind};
use zt::formats::{PlaneCodec, View as _};
use zt::{
    Blob, ByteOrder, Component, ComponentOptions, Compression, Coo, Csr, DType, Dense,
    DigestAlgorithm, Elements, ErrorKind, File, Memory, Object, OpenOptions, Planes, Span,
    VerifyOptions, WriteOptions, Writer,
};

/// Bytes without repetition, in which only `at` depends on `seed`.
fn weights(len: usize, at: usize, seed: u8) -> Vec<u8> {
    let mut state = 1u64;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005);
        state = state.wrapping_add(1_442_695_040_888_963_407);
        (state >> 57) as u8
    };
    let mut bytes: Vec<u8> = std::iter::repeat_with(next).take(len).collect();
    bytes[at] ^= seed;
    bytes
}

fn dense(bytes: &[u8]) -> Dense<'_> {
    Dense::from_slice(&[bytes.len() as u64], bytes).unwrap()
}

fn span(file: &File, name: &str, role: &str) -> Span {
    let tensor = file.tensor(name).unwrap();
    tensor.component(role).unwrap().blob.span
}

fn assert_verifies(file: &File) {
    let options = VerifyOptions::new().strict(true);
    let report = file.verify(&options).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    assert!(report.warnings.is_empty(), "{:?}", report.warnings);
}

/// Every second component is an earlier one again, some differ in one byte at either end.
fn contents() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for len in [1, 700, 40_000, 1 << 20, (1 << 20) + 1, 5 << 20] {
        for (at, seed) in [(0, 0), (0, 1), (len - 1, 1), (len / 2, 128), (0, 0), (0, 1)] {
            all.push(weights(len, at, seed));
        }
    }
    all
}

fn written(options: WriteOptions, contents: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = options.to_writer(&mut bytes).unwrap();
    for (at, content) in contents.iter().enumerate() {
        writer.add(&at.to_string(), &dense(content)).unwrap();
    }
    writer.finish().unwrap();
    bytes
}

#[test]
fn equal_components_share_a_blob_and_unequal_ones_do_not() {
    let contents = contents();
    for options in [
        WriteOptions::new(),
        WriteOptions::new().zstd(1),
        WriteOptions::new().digest(Some(DigestAlgorithm::Sha256)),
    ] {
        let options = options.deduplicate(true);
        let bytes = written(options.clone().threads(1), &contents);
        for threads in [2, 5] {
            let others = written(options.clone().threads(threads), &contents);
            assert!(bytes == others, "{threads} threads");
        }
        let file = File::from_bytes(bytes).unwrap();
        assert_verifies(&file);
        for (at, content) in contents.iter().enumerate() {
            let tensor = file.tensor(&at.to_string()).unwrap();
            assert!(*tensor.values::<u8>().unwrap() == content[..], "{at}");
            for (before, other) in contents[..at].iter().enumerate() {
                let [this, that] = [at, before].map(|at| span(&file, &at.to_string(), "data"));
                assert_eq!(this == that, content == other, "{at} and {before}");
            }
        }
    }
}

#[test]
fn nothing_is_shared_unless_that_is_asked_for() {
    let contents = [weights(700, 0, 0), weights(700, 0, 0)];
    let file = File::from_bytes(written(WriteOptions::new(), &contents)).unwrap();
    assert_ne!(span(&file, "0", "data"), span(&file, "1", "data"));
}

#[test]
fn dtypes_and_formats_do_not_matter_but_ways_of_storing_do() {
    let mut bytes = Vec::new();
    let options = WriteOptions::new().deduplicate(true);
    let mut writer = options.to_writer(&mut bytes).unwrap();
    let ones = [1u8; 800];
    writer.add("bytes", &dense(&ones)).unwrap();
    let bools = Dense::from_slice(&[800], &[true; 800]).unwrap();
    writer.add("bools", &bools).unwrap();
    let words: [u64; 100] = [0x0101_0101_0101_0101; 100];
    let dense_words = Dense::from_slice(&[10, 10], &words).unwrap();
    writer.add("words", &dense_words).unwrap();
    let zstd =
        ComponentOptions { compression: Compression::Zstd(1), ..ComponentOptions::default() };
    writer.add_with("compressed", &dense(&ones), &zstd.into()).unwrap();
    let csr = Csr::new([2, 3], &[7i32, 8][..], &[2u64, 0][..], &[0u64, 1, 2][..]).unwrap();
    writer.add("sparse", &csr).unwrap();
    let coo = Coo::new([3], &[7i32, 8][..], &[2u64, 0][..]).unwrap();
    writer.add("coordinates", &coo).unwrap();
    writer.finish().unwrap();

    let file = File::from_bytes(bytes).unwrap();
    assert_verifies(&file);
    let first = span(&file, "bytes", "data");
    assert_eq!(span(&file, "bools", "data"), first);
    assert_eq!(span(&file, "words", "data"), first);
    assert_ne!(span(&file, "compressed", "data"), first);
    assert_eq!(span(&file, "coordinates", "values"), span(&file, "sparse", "values"));
    assert_eq!(span(&file, "coordinates", "coords"), span(&file, "sparse", "indices"));
}

#[test]
fn objects_of_planes_share_all_of_them_with_those_of_the_same_type() {
    let values: Vec<u16> = (0..20_000u16).map(|at| 0x3c00 | at.reverse_bits() >> 4).collect();
    let bytes: Vec<u8> = values.iter().flat_map(|it| it.to_le_bytes()).collect();
    let mut out = Vec::new();
    let options = WriteOptions::new().planes().deduplicate(true);
    let mut writer = options.to_writer(&mut out).unwrap();
    for (name, dtype, count) in [
        ("a", DType::BF16, 20_000),
        ("b", DType::F16, 20_000),
        ("c", DType::BF16, 20_000),
        ("d", DType::BF16, 19_999),
    ] {
        let elements = Elements::new(dtype, &bytes[..2 * count]);
        let dense = Dense::from_elements([count as u64], elements).unwrap();
        writer.add(name, &dense).unwrap();
    }
    writer.finish().unwrap();
    let file = File::from_bytes(out).unwrap();
    assert_verifies(&file);
    let planes = |name| -> Vec<_> {
        let tensor = file.tensor(name).unwrap();
        assert_eq!(tensor.format(), "zt.planes/1");
        let dense = tensor.to_dense().unwrap();
        assert!(bytes.starts_with(&dense.elements().bytes), "{name}");
        let components = tensor.components();
        components.map(|(_, it)| it.blob.span).collect()
    };
    let [a, b, c, d] = ["a", "b", "c", "d"].map(planes);
    assert_eq!(a, c);
    assert!(a != b && a != d);
}

#[test]
fn an_object_shares_the_planes_of_one_that_is_named() {
    let values: Vec<f32> = (0..100u8).map(f32::from).collect();
    let dense = Dense::from_slice(&[100], &values).unwrap();
    let codec = PlaneCodec::new(DType::F32, None).unwrap();
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    let planes = Planes::from_dense(&dense).unwrap();
    writer.add("first", &planes).unwrap();
    let mut second = writer.begin("second", &[10, 10], Planes::FORMAT).unwrap();
    second.share_planes(&codec, "first").unwrap();
    second.finish().unwrap();
    writer.finish().unwrap();
    let file = File::from_bytes(bytes).unwrap();
    assert_verifies(&file);
    for role in codec.roles() {
        assert_eq!(span(&file, "first", role), span(&file, "second", role));
    }
    let dense = file.tensor("second").unwrap().to_dense().unwrap();
    assert_eq!(*dense.as_slice::<f32>().unwrap(), values[..]);
}

#[test]
fn empty_components_stay_as_they_are() {
    let contents = [vec![], vec![], vec![1]];
    let options = WriteOptions::new().deduplicate(true);
    let file = File::from_bytes(written(options, &contents)).unwrap();
    assert_verifies(&file);
    assert!(file.tensor("1").unwrap().bytes("data").unwrap().is_empty());
}

/// One component of `dtype` after another, written or shared.
fn stream(
    writer: &mut Writer<'_>,
    name: &str,
    dtype: DType,
    content: Result<&[u8], (&str, &str)>,
    len: u64,
) -> zt::Result<()> {
    let mut object = writer.begin(name, &[len], "dense")?;
    let mut data = object.component("data", dtype, None)?;
    match content {
        Ok(bytes) => {
            data.write_all(bytes).unwrap();
            data.finish()?;
        }
        Err((object, role)) => data.share(object, role)?,
    }
    object.finish()
}

#[test]
fn a_streamed_component_shares_a_named_one() {
    let content = weights(9 << 20, 0, 0);
    let len = content.len() as u64;
    for options in [
        WriteOptions::new(),
        WriteOptions::new().zstd(1), // Under way when it is shared.
        WriteOptions::new().digest(Some(DigestAlgorithm::Sha256)),
    ] {
        let mut bytes = Vec::new();
        let mut writer = options.threads(3).to_writer(&mut bytes).unwrap();
        stream(&mut writer, "before", DType::U8, Ok(&[1]), 1).unwrap();
        stream(&mut writer, "first", DType::U8, Ok(&content), len).unwrap();
        let tied = Err(("first", "data"));
        stream(&mut writer, "second", DType::I8, tied, len).unwrap();
        let tied = Err(("second", "data"));
        stream(&mut writer, "third", DType::F16, tied, len / 2).unwrap();
        stream(&mut writer, "after", DType::U8, Ok(&[2]), 1).unwrap();
        writer.finish().unwrap();
        let file = File::from_bytes(bytes).unwrap();
        assert_verifies(&file);
        let first = file.tensor("first").unwrap().component("data").unwrap();
        for name in ["second", "third"] {
            let tensor = file.tensor(name).unwrap();
            assert_eq!(tensor.component("data").unwrap().blob, first.blob);
            assert!(*tensor.bytes("data").unwrap() == content[..], "{name}");
        }
    }
}

/// Of a large object what is shared is found once and kept.
#[test]
fn large_objects_are_shared_with_as_small_ones_are() {
    let content = |at: u8| weights(3 << 19, 0, at);
    let roles = ["values", "zero", "data", "b", "a"];
    for options in [WriteOptions::new(), WriteOptions::new().zstd(1)] {
        let mut bytes = Vec::new();
        let mut writer = options.threads(2).to_writer(&mut bytes).unwrap();
        for (name, attributes) in [("small", 1), ("large", 5000)] {
            let mut object = writer.begin(name, &[1], "x.several/1").unwrap();
            object.set_attributes([("k", vec![7u8; attributes])].into_iter().collect()).unwrap();
            for (at, role) in (0..).zip(roles) {
                let mut data = object.component(role, DType::U8, None).unwrap();
                data.write_all(&content(at)).unwrap();
                data.finish().unwrap();
                // Of the object that is being written, too.
                let mut again = format!("{role}.again");
                for of in [role.to_owned(), again.clone()] {
                    let data = object.component(again.clone(), DType::U8, None).unwrap();
                    data.share(name, &of).unwrap();
                    again.push('.');
                }
            }
            object.finish().unwrap();
        }
        let mut from = Vec::new();
        for name in ["small", "large", "small", "large"] {
            for role in roles {
                let tied = format!("{}", from.len());
                let len = 3 << 19;
                stream(&mut writer, &tied, DType::U8, Err((name, role)), len).unwrap();
                from.push((tied, name, role));
            }
        }
        writer.finish().unwrap();
        let file = File::from_bytes(bytes).unwrap();
        for (tied, name, role) in from {
            let origin = file.tensor(name).unwrap();
            let blob = &origin.component(role).unwrap().blob;
            let data = file.tensor(&tied).unwrap();
            assert_eq!(data.component("data").unwrap().blob, *blob);
            let at = roles.iter().position(|it| *it == role).unwrap();
            let content = content(u8::try_from(at).unwrap());
            assert!(*data.bytes("data").unwrap() == content[..], "{name}, {role}");
            for again in ["again", "again."] {
                let again = format!("{role}.{again}");
                assert_eq!(origin.component(&again).unwrap().blob, *blob);
            }
        }
    }
}

#[test]
fn sharing_is_held_to_the_rules_of_the_object_that_shares() {
    let begun = |at: usize| {
        let mut writer = Writer::new(std::io::sink()).unwrap();
        stream(&mut writer, "two", DType::U8, Ok(&[2; 8]), 8).unwrap();
        let attempts = [
            ("longer", DType::U8, ("two", "data"), 9),
            ("bools", DType::Bool, ("two", "data"), 8),
            ("unknown object", DType::U8, ("one", "data"), 8),
            ("unknown role", DType::U8, ("two", "values"), 8),
            ("itself", DType::U8, ("itself", "data"), 8),
        ];
        let (name, dtype, tied, len) = *attempts.get(at)?;
        let error = stream(&mut writer, name, dtype, Err(tied), len).unwrap_err();
        assert_eq!(writer.finish().unwrap_err().kind(), ErrorKind::Misuse);
        Some(error.code())
    };
    let codes: Vec<_> = (0..).map_while(begun).collect();
    let expected = ["shape-size-mismatch", "misuse", "not-found", "not-found", "not-found"];
    assert_eq!(codes, expected);
}

#[test]
fn bools_share_only_bytes_written_as_bools() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    stream(&mut writer, "first", DType::Bool, Ok(&[1, 0, 1]), 3).unwrap();
    let tied = Err(("first", "data"));
    stream(&mut writer, "second", DType::Bool, tied, 3).unwrap();
    writer.finish().unwrap();
    let file = File::from_bytes(bytes).unwrap();
    assert_verifies(&file);
    assert_eq!(span(&file, "first", "data"), span(&file, "second", "data"));
    let second = file.tensor("second").unwrap().to_vec::<bool>().unwrap();
    assert_eq!(second, [true, false, true]);
}

#[test]
fn a_component_that_was_begun_is_not_shared() {
    let mut writer = Writer::new(std::io::sink()).unwrap();
    stream(&mut writer, "first", DType::U8, Ok(&[2; 8]), 8).unwrap();
    let mut object = writer.begin("second", &[8], "dense").unwrap();
    let mut data = object.component("data", DType::U8, None).unwrap();
    data.write_all(&[2]).unwrap();
    let error = data.share("first", "data").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);
}

#[test]
fn one_blob_is_told_from_two_of_the_same_bytes() {
    let contents = [weights(700, 0, 0), weights(700, 0, 0), weights(700, 0, 1)];
    let open = |deduplicate| {
        let options = WriteOptions::new().deduplicate(deduplicate);
        File::from_bytes(written(options, &contents)).unwrap()
    };
    let (shared, apart) = (open(true), open(false));
    let is_same = |file: &File, a: &str, other: &File, b: &str| {
        let (a, b) = (file.tensor(a).unwrap(), other.tensor(b).unwrap());
        a.has_blob_of("data", &b, "data").unwrap()
    };
    assert!(is_same(&shared, "0", &shared, "1"));
    assert!(is_same(&shared, "0", &shared.clone(), "0"));
    assert!(!is_same(&shared, "0", &shared, "2"));
    assert!(!is_same(&apart, "0", &apart, "1"));
    assert!(!is_same(&apart, "0", &shared, "0"), "of two files");
    let first = shared.tensor("0").unwrap();
    let error = first.has_blob_of("data", &first, "values").unwrap_err();
    assert_eq!(error.code(), "not-found");
}

/// The same bytes, turned in another way, are other values.
#[test]
fn one_blob_of_another_byte_order_or_width_is_not_the_same() {
    let mut builder = FileBuilder::new(Kind::new("test"), OpenOptions::new());
    let source = builder.source(Memory::new([1u8, 2, 3, 4, 5, 6, 7, 8]));
    for (name, dtype, byte_order) in [
        ("little", DType::U16, ByteOrder::Little),
        ("big", DType::U16, ByteOrder::Big),
        ("tied", DType::U16, ByteOrder::Big),
        ("wide", DType::U32, ByteOrder::Big),
    ] {
        let blob = Blob::raw(Span::new(0, 8).unwrap());
        let component = Component { byte_order, ..Component::new(dtype, blob) };
        let len = 8 / dtype.byte_len() as u64;
        let object = Object::new([len], "dense").with_component("data", component);
        builder.object(name, object, source);
    }
    let file = builder.build().unwrap();
    let is_same = |a: &str, b: &str| {
        let (a, b) = (file.tensor(a).unwrap(), file.tensor(b).unwrap());
        let is_same = a.has_blob_of("data", &b, "data").unwrap();
        assert_eq!(is_same, b.has_blob_of("data", &a, "data").unwrap());
        let bytes = |tensor: &zt::Tensor<'_>| tensor.bytes("data").unwrap().to_vec();
        assert_eq!(is_same, bytes(&a) == bytes(&b));
        is_same
    };
    assert!(is_same("big", "tied"));
    assert!(!is_same("little", "big"));
    assert!(!is_same("big", "wide"));
}
