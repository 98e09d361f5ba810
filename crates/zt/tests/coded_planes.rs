//! Objects of `zt.planes/2`: the same bits from every source, whole, streamed and in parts.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "tests")]

mod common;

use std::io::{Read as _, Write};

use common::{every_source, span_of};
use zt::formats::{HuffmanEncoder, PlaneCodec, PlaneCoding};
use zt::{
    ComponentOptions, Compression, DType, Dense, DigestAlgorithm, Elements, Encoding, File,
    HashOptions, NewObject, OpenOptions, Planes, Slice, VerifyOptions, WriteOptions,
};

/// Elements of several chunks and of a part of one.
const SHAPE: [u64; 2] = [200, 3001];

/// Small exponents, and mantissas and signs without order.
fn dense(dtype: DType, shape: &[u64]) -> Dense<'static> {
    let count = shape.iter().product::<u64>();
    let element = |at: u64| {
        let random = (at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        let exponent = 120 + (random >> 8).trailing_zeros().min(9) as u16;
        let upper = random as u16 & 0x807f | exponent << 7;
        let element = u64::from(upper) << 48 | random >> 16;
        (element >> (64 - 8 * dtype.byte_len())).to_le_bytes().into_iter().take(dtype.byte_len())
    };
    let bytes: Vec<u8> = (0..count).flat_map(element).collect();
    Dense::from_elements(shape, Elements::new(dtype, bytes)).unwrap()
}

fn new() -> WriteOptions {
    WriteOptions::new().planes_in(PlaneCoding::Huffman)
}

fn file_of(options: WriteOptions, dense: &Dense<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = options.to_writer(&mut bytes).unwrap();
    writer.add("x", dense).unwrap();
    writer.finish().unwrap();
    bytes
}

#[test]
fn every_source_gives_the_same_bits_whole_and_streamed() {
    for (dtype, shape) in [(DType::BF16, SHAPE), (DType::F32, SHAPE), (DType::F16, [90, 100])] {
        let dense = dense(dtype, &shape);
        for options in [new(), new().digest(None), new().digest(Some(DigestAlgorithm::Sha256))] {
            let bytes = file_of(options, &dense);
            assert!(bytes.len() < dense.elements().bytes.len());
            for (source, file) in every_source(&bytes, &OpenOptions::new()) {
                let file = file.unwrap();
                let tensor = file.tensor("x").unwrap();
                assert_eq!(tensor.format(), "zt.planes/2");
                assert!(tensor.to_dense().unwrap() == dense, "{dtype}, {source}");
                let many = file.to_dense_many(&[tensor, tensor]).pop().unwrap();
                assert!(many.unwrap() == dense, "{dtype}, {source}");
                let mut all = Vec::new();
                tensor.dense_reader().unwrap().read_to_end(&mut all).unwrap();
                assert!(all[..] == *dense.elements().bytes, "{dtype}, {source}");
                assert!(file.verify(&VerifyOptions::default()).unwrap().is_ok());
            }
        }
    }
}

#[test]
fn parts_are_those_of_the_whole() {
    let dense = dense(DType::BF16, &SHAPE);
    let bytes = file_of(new(), &dense);
    for (source, file) in every_source(&bytes, &OpenOptions::new()) {
        let file = file.unwrap();
        let tensor = file.tensor("x").unwrap();
        for slices in [
            vec![Slice::from(0..1)],
            vec![Slice::from(80..190), Slice::from(5..7)],
            vec![Slice::from(199..200), Slice::from(3000..3001)],
            vec![Slice::from(10..10)],
            vec![Slice::Range { start: None, stop: None, step: -7 }, Slice::Index(-1)],
        ] {
            let part = tensor.slice(&slices).unwrap();
            assert!(part == dense.slice(&slices).unwrap(), "{source} {slices:?}");
        }
    }
}

#[test]
fn pairs_keep_their_type() {
    let elements = dense(DType::F32, &[600_000]).into_elements().1.with_logical_type("complex64");
    let pairs = Dense::from_elements([300_000], elements).unwrap();
    let file = File::from_bytes(file_of(new(), &pairs)).unwrap();
    let tensor = file.tensor("x").unwrap();
    assert!(tensor.to_dense().unwrap() == pairs);
    let last = [Slice::from(131_000..131_100)];
    assert!(tensor.slice(&last).unwrap() == pairs.slice(&last).unwrap());
}

#[test]
fn a_flipped_bit_anywhere_is_a_wrong_digest() {
    let dense = dense(DType::BF16, &SHAPE);
    let bytes = file_of(new(), &dense);
    let file = File::from_bytes(bytes.clone()).unwrap();
    for role in ["codes", "lengths", "plane1"] {
        let span = span_of(&file, "x", role);
        for at in [span.offset(), span.offset() + span.byte_len() / 2, span.end() - 1] {
            let mut bytes = bytes.clone();
            bytes[at as usize] ^= 0x40;
            for (source, file) in every_source(&bytes, &OpenOptions::new()) {
                let file = file.unwrap();
                let tensor = file.tensor("x").unwrap();
                let error = tensor.to_dense().unwrap_err();
                assert_eq!(error.code(), "digest-mismatch", "{role} {at} {source}");
                assert_eq!(error.component(), Some(role), "{at} {source}");
                let read = tensor.dense_reader().and_then(|mut reader| {
                    reader.for_each_piece(1 << 20, |_| Ok::<_, zt::Error>(()))
                });
                assert_eq!(read.unwrap_err().code(), "digest-mismatch", "{role} {at} {source}");
            }
        }
    }
}

#[test]
fn wrong_codes_without_a_digest_are_refused() {
    let bytes = file_of(new().digest(None), &dense(DType::BF16, &SHAPE));
    let file = File::from_bytes(bytes.clone()).unwrap();
    let codes = span_of(&file, "x", "codes");
    for (role, at) in [("codes", 0), ("codes", 62), ("codes", codes.byte_len() - 1), ("lengths", 2)]
    {
        let mut bytes = bytes.clone();
        bytes[(span_of(&file, "x", role).offset() + at) as usize] ^= 0x21;
        for (source, file) in every_source(&bytes, &OpenOptions::new()) {
            let file = file.unwrap();
            let tensor = file.tensor("x").unwrap();
            let error = tensor.to_dense().unwrap_err();
            assert_eq!((error.code(), error.component()), ("huffman", Some(role)), "{at} {source}");
            assert!(tensor.slice(&[Slice::from(0..200)]).is_err());
            assert!(!file.verify(&VerifyOptions::default()).unwrap().is_ok());
        }
    }
}

#[test]
fn any_number_of_threads_writes_the_same_bytes() {
    let dense = dense(DType::BF16, &[9, 1 << 18]);
    let small = self::dense(DType::F32, &[5000]);
    let codec = PlaneCodec::new(DType::BF16, None).unwrap();
    let write = |threads: usize, way: u8| {
        let mut bytes = Vec::new();
        let mut writer = new().threads(threads).to_writer(&mut bytes).unwrap();
        match way {
            0 => writer.add_all([("a", &small), ("x", &dense), ("z", &small)]).unwrap(),
            _ => {
                writer.add("a", &small).unwrap();
                if way == 1 {
                    writer.add("x", &dense).unwrap();
                } else {
                    let mut object = writer.begin("x", dense.shape(), "zt.planes/2").unwrap();
                    let pass = |out: &mut (dyn Write + Send)| {
                        dense
                            .elements()
                            .bytes
                            .chunks(99_999)
                            .try_for_each(|it| out.write_all(it))?;
                        Ok(())
                    };
                    object.planes(&codec, pass).unwrap();
                    object.finish().unwrap();
                }
                writer.add("z", &small).unwrap();
            }
        }
        writer.finish().unwrap();
        bytes
    };
    let expected = write(1, 1);
    for threads in [1, 3] {
        for way in 0..3 {
            assert!(write(threads, way) == expected, "{threads} {way}");
        }
    }
}

#[test]
fn a_pass_writes_as_many_values_as_the_shape_has() {
    let codec = PlaneCodec::new(DType::BF16, None).unwrap();
    for (counts, role) in [
        ([0usize, 1000], "codes"),
        ([999, 1000], "codes"),
        ([1001, 1000], "codes"),
        ([300_000, 1000], "codes"),
        ([999, 999], "plane1"),
        ([1000, 999], "plane1"),
        ([1001, 1001], "plane1"),
    ] {
        let mut bytes = Vec::new();
        let mut writer = new().to_writer(&mut bytes).unwrap();
        let mut object = writer.begin("x", &[1000], "zt.planes/2").unwrap();
        let mut passes = counts.into_iter();
        let passed =
            object.planes(&codec, |out| Ok(out.write_all(&vec![0; 2 * passes.next().unwrap()])?));
        let error = passed.and_then(|()| object.finish()).unwrap_err();
        let found = (error.code(), error.object(), error.component());
        assert_eq!(found, ("shape-size-mismatch", Some("x"), Some(role)), "{counts:?}");
    }
}

#[test]
fn values_of_an_unknown_type_are_as_many_in_each_pass() {
    let codec = PlaneCodec::new(DType::BF16, Some("acme.pair")).unwrap();
    let write = |counts: [usize; 2]| {
        let mut bytes = Vec::new();
        let mut writer = new().to_writer(&mut bytes)?;
        let mut object = writer.begin("x", &[500], "zt.planes/2")?;
        let mut passes = counts.into_iter();
        object.planes(&codec, |out| {
            Ok(out.write_all(&[0x80, 0x3f].repeat(passes.next().unwrap()))?)
        })?;
        object.finish()?;
        writer.finish()?;
        File::from_bytes(bytes)
    };
    let file = write([1000, 1000]).unwrap();
    let tensor = file.tensor("x").unwrap();
    assert_eq!(tensor.bytes("plane1").unwrap().len(), 1000);
    let error = write([1000, 999]).unwrap_err();
    assert_eq!((error.code(), error.component()), ("shape-size-mismatch", Some("codes")));
}

#[test]
fn equal_objects_share_all_components() {
    let dense = dense(DType::BF16, &SHAPE);
    let mut bytes = Vec::new();
    let mut writer = new().deduplicate(true).to_writer(&mut bytes).unwrap();
    writer.add_all([("a", &dense), ("b", &dense)]).unwrap();
    writer.finish().unwrap();
    let file = File::from_bytes(bytes).unwrap();
    for role in ["codes", "lengths", "plane1"] {
        assert_eq!(span_of(&file, "a", role), span_of(&file, "b", role));
    }
    assert!(file.tensor("b").unwrap().to_dense().unwrap() == dense);
}

#[test]
fn planes_have_the_identity_of_the_dense_object_that_they_stand_for() {
    let dense = dense(DType::BF16, &SHAPE);
    let content = |options| {
        let file = File::from_bytes(file_of(options, &dense)).unwrap();
        file.hash(&HashOptions::default()).unwrap().content.unwrap()
    };
    assert_eq!(content(new()), content(WriteOptions::new()));
    assert_eq!(content(new()), content(WriteOptions::new().planes()));
}

/// Another writer may compress them.
#[cfg(feature = "zstd")]
#[test]
fn compressed_codes_and_lengths_are_read() {
    let count = 24 * HuffmanEncoder::CHUNK;
    let ones = [0x80, 0x3f].repeat(count);
    let ones = Dense::from_elements([count as u64], Elements::new(DType::BF16, ones)).unwrap();
    let planes = Planes::from_dense(&ones).unwrap();
    let object: NewObject<'_> = planes.to_object_in(PlaneCoding::Huffman).unwrap();
    let mut bytes = Vec::new();
    let mut writer = WriteOptions::new().to_writer(&mut bytes).unwrap();
    let zstd = ComponentOptions { compression: Compression::Zstd(1), ..Default::default() };
    writer.add_with("x", &object, &zstd.into()).unwrap();
    writer.finish().unwrap();
    for (source, file) in every_source(&bytes, &OpenOptions::new()) {
        let file = file.unwrap();
        let tensor = file.tensor("x").unwrap();
        for role in ["codes", "lengths"] {
            assert_eq!(tensor.component(role).unwrap().blob.encoding, Encoding::Zstd);
        }
        assert!(tensor.to_dense().unwrap() == ones, "{source}");
        let part = tensor.slice(&[Slice::from(300_000..300_005)]).unwrap();
        assert_eq!(*part.elements().bytes, [0x80, 0x3f].repeat(5));
        let mut all = Vec::new();
        tensor.dense_reader().unwrap().read_to_end(&mut all).unwrap();
        assert!(all[..] == *ones.elements().bytes, "{source}");
    }
}
