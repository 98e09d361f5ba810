//! Objects of `zt.planes/1`: the same bits from every source, whole, streamed and in parts.
#![cfg(feature = "zstd")]
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "tests")]

mod common;

use std::io::{self, Read as _, Write};
use std::sync::atomic::Ordering;
#[cfg(feature = "rayon")]
use std::sync::{Arc, Barrier};

use common::{ByPosition, every_source, span_of};
use zt::foreign::{FileBuilder, Kind};
use zt::formats::{PlaneCodec, View as _};
use zt::{
    Blob, Component, ComponentOptions, Compression, DType, Dense, DigestAlgorithm, Elements,
    Encoding, File, HashOptions, Memory, NewObject, Object, OpenOptions, Planes, Slice, Span,
    ToObject, Value, VerifyOptions, WriteOptions,
};

/// More elements than a single frame of a plane holds, and no multiple of a tile.
const SHAPE: [u64; 2] = [1500, 3001];

/// Rows enough for planes of one frame each.
const FIRST: Slice = Slice::Range { start: None, stop: Some(100), step: 1 };

/// Small exponents, and mantissas and signs without order.
fn dense(dtype: DType, shape: &[u64]) -> Dense<'static> {
    let count = shape.iter().product::<u64>();
    let mut state = 7u64;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 20
    };
    let mut bytes = Vec::new();
    for _ in 0..count {
        let random = next();
        let exponent = 120 + (random as u32).leading_zeros() as u16;
        let upper = (random >> 24) as u16 & 0x807f | exponent << 7;
        let element = u64::from(upper) << 48 | random & 0xffff_ffff_ffff;
        bytes.extend_from_slice(&element.to_be_bytes()[..dtype.byte_len()]);
        let start = bytes.len() - dtype.byte_len();
        bytes[start..].reverse();
    }
    let elements = Elements::new(dtype, &bytes[..]);
    let dense = Dense::from_elements(shape, elements).unwrap();
    dense.into_owned().unwrap()
}

fn file_of(options: WriteOptions, dense: &Dense<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = options.to_writer(&mut bytes).unwrap();
    writer.add("x", &Planes::from_dense(dense).unwrap()).unwrap();
    writer.finish().unwrap();
    bytes
}

fn every_option() -> Vec<(&'static str, WriteOptions)> {
    let new = WriteOptions::new;
    vec![
        ("raw", new().digest(None)),
        ("raw crc32c", new()),
        ("raw sha256", new().digest(Some(DigestAlgorithm::Sha256))),
        ("zstd crc32c", new().zstd(1)),
        ("zstd sha256", new().zstd(1).digest(Some(DigestAlgorithm::Sha256))),
    ]
}

fn streamed(file: &File, piece: usize) -> zt::Result<Vec<u8>> {
    let mut reader = file.tensor("x")?.dense_reader()?;
    let (mut all, mut piece) = (Vec::new(), vec![0; piece]);
    loop {
        match reader.read(&mut piece)? {
            0 => return Ok(all),
            len => all.extend_from_slice(&piece[..len]),
        }
    }
}

#[test]
fn every_source_and_encoding_gives_the_same_bits() {
    let dense = dense(DType::BF16, &SHAPE);
    for (name, options) in every_option() {
        let bytes = file_of(options, &dense);
        for (source, file) in every_source(&bytes, &OpenOptions::new()) {
            let file = file.unwrap();
            let tensor = file.tensor("x").unwrap();
            assert!(tensor.to_dense().unwrap() == dense, "{name}, {source}");
            let can_be = !name.ends_with("raw");
            for role in ["plane0", "plane1"] {
                assert_eq!(tensor.is_verified(role).unwrap(), can_be, "{name}, {source}");
            }
        }
    }
}

#[test]
fn exponents_are_compressed_and_the_rest_is_not() {
    let dense = dense(DType::BF16, &SHAPE);
    // Also without the option: the object was split into planes for that.
    let small = self::dense(DType::BF16, &[300, 1000]);
    for (options, dense) in [(WriteOptions::new().zstd(1), &dense), (WriteOptions::new(), &small)] {
        let bytes = file_of(options, dense);
        let file = File::from_bytes(bytes.clone()).unwrap();
        let tensor = file.tensor("x").unwrap();
        let encoding = |role| tensor.component(role).unwrap().blob.encoding;
        assert_eq!(encoding("plane0"), Encoding::Zstd);
        assert_eq!(encoding("plane1"), Encoding::Raw);
        assert!(bytes.len() < dense.elements().bytes.len() * 3 / 4);
    }
}

#[test]
fn values_of_every_type_are_streamed_in_pieces_of_any_size() {
    for dtype in [DType::F64, DType::F32, DType::F16] {
        let dense = dense(dtype, &[1_100_000]);
        for options in [WriteOptions::new(), WriteOptions::new().zstd(1)] {
            let file = File::from_bytes(file_of(options, &dense)).unwrap();
            for piece in [9 << 20, 1 << 20, 999_999] {
                let all = streamed(&file, piece).unwrap();
                assert!(all[..] == *dense.elements().bytes, "{dtype}, {piece}");
            }
        }
    }
    let small = dense(DType::F32, &[3, 5]);
    let file = File::from_bytes(file_of(WriteOptions::new(), &small)).unwrap();
    assert_eq!(streamed(&file, 9).unwrap(), *small.elements().bytes);
}

#[test]
fn a_flipped_bit_anywhere_is_a_wrong_digest() {
    let dense = dense(DType::BF16, &SHAPE);
    for (name, options) in every_option().into_iter().skip(1) {
        let bytes = file_of(options, &dense);
        let file = File::from_bytes(bytes.clone()).unwrap();
        for role in ["plane0", "plane1"] {
            let span = span_of(&file, "x", role);
            let (start, len) = (span.offset() as usize, span.byte_len() as usize);
            for at in [5, len / 2, len - 1] {
                let mut flipped = bytes.clone();
                flipped[start + at] ^= 4;
                let open = OpenOptions::new();
                let lent = open.open_bytes(flipped.clone()).unwrap();
                let error = lent.tensor("x").unwrap().to_dense().unwrap_err();
                assert_eq!(error.code(), "digest-mismatch", "{name}, {at}");
                assert_eq!(error.component(), Some(role), "{name}, {at}");
                // The last bytes are the table of the frames, which are found without it, too.
                let by_position = open.open_source(ByPosition(flipped)).unwrap();
                let error = streamed(&by_position, 3 << 20).unwrap_err();
                assert_eq!(error.code(), "digest-mismatch", "{name}, {at}");
                assert_eq!(error.component(), Some(role), "{name}, {at}");
                let tensor = by_position.tensor("x").unwrap();
                let mut all = vec![0; dense.elements().bytes.len() + 2];
                // Where sha256 is compared before anything is read, there is no reader.
                if let Ok(mut reader) = tensor.dense_reader() {
                    while reader.read(&mut all).is_ok_and(|len| len > 0) {}
                    let error = reader.read(&mut all).unwrap_err();
                    assert_eq!(zt::Error::from(error).code(), "misuse", "no end after an error");
                }
            }
        }
    }
}

#[test]
fn parts_are_those_of_the_whole() {
    let dense = dense(DType::BF16, &SHAPE);
    let texts = ["", "0", "-1", "3:7", "::300,5", "...,-7:", "700:900,::-50", "5:5"];
    for (name, options) in every_option() {
        let bytes = file_of(options, &dense);
        for (source, file) in every_source(&bytes, &OpenOptions::new()) {
            let file = file.unwrap();
            for text in texts {
                let slices = Slice::parse_list(text).unwrap();
                let part = file.tensor("x").unwrap().slice(&slices).unwrap();
                let expected = dense.slice(&slices).unwrap();
                assert!(part == expected, "{name}, {source}: {text}");
            }
        }
    }
}

#[test]
fn parts_of_complex_values_are_pairs() {
    let values: Vec<f32> = (0..24u8).map(f32::from).collect();
    let elements = Elements::from(&values).with_logical_type("complex64");
    let dense = Dense::from_elements([3, 4], elements).unwrap();
    let file = File::from_bytes(file_of(WriteOptions::new(), &dense)).unwrap();
    let slices = Slice::parse_list("1:,::2").unwrap();
    let part = file.tensor("x").unwrap().slice(&slices).unwrap();
    assert_eq!(part, dense.slice(&slices).unwrap());
}

#[test]
fn planes_are_verified_and_their_dense_value_is_hashed() {
    let dense = dense(DType::F32, &[600, 700]);
    let planes = File::from_bytes(file_of(WriteOptions::new().zstd(1), &dense)).unwrap();
    let report = planes.verify(&VerifyOptions::default()).unwrap();
    assert!(report.is_ok(), "{report:?}");
    assert_eq!((report.components, report.bytes), (4, 600 * 700 * 4));

    let mut plain = Vec::new();
    let mut writer = WriteOptions::new().to_writer(&mut plain).unwrap();
    writer.add("x", &dense).unwrap();
    writer.finish().unwrap();
    let plain = File::from_bytes(plain).unwrap();
    let options = HashOptions::new().dense(true);
    let [planes, plain] = [planes, plain].map(|file| file.hash(&options).unwrap());
    assert_eq!(planes.content, plain.content);
    let [planes, plain] = [planes, plain].map(|hash| hash.objects[0].1.clone().unwrap());
    assert_eq!((planes.components.len(), plain.components.len()), (4, 1));
    assert!(planes.dense.is_some() && planes.dense == plain.dense);
}

fn content(file: &File) -> Option<[u8; 32]> {
    let hash = file.hash(&HashOptions::default()).unwrap();
    let mut objects = hash.objects.iter().map(|(_, hash)| hash.as_ref().unwrap());
    assert!(objects.all(|hash| hash.dense.is_none()), "it was not asked for");
    hash.content
}

/// In every storage, with an attribute of its own, and with an unknown logical type.
#[test]
fn planes_have_the_identity_of_the_dense_object_that_they_stand_for() {
    let pairs = |logical_type: &'static str| {
        let dense = dense(DType::F32, &[6000]);
        let elements = dense.elements().clone().with_logical_type(logical_type);
        Dense::from_elements([3000], elements).unwrap()
    };
    for dense in [
        dense(DType::F64, &[7]),
        dense(DType::F32, &[0, 3]),
        dense(DType::F16, &[8192]),
        dense(DType::BF16, &SHAPE),
        pairs("complex64"),
        pairs("example.pair"),
    ] {
        let planes = Planes::from_dense(&dense).unwrap();
        let mut objects = [dense.to_object().unwrap(), planes.to_object().unwrap()];
        for object in &mut objects {
            let attributes = object.attributes.get_or_insert_default();
            attributes.insert("unit", "m");
        }
        let [plain, split] = objects;
        let expected = content(&written(WriteOptions::new(), &[("x", plain)]));
        assert!(expected.is_some());
        for (name, options) in every_option() {
            let file = written(options, &[("x", split.clone())]);
            assert_eq!(content(&file), expected, "{name}");
        }
    }
}

/// One file, byte for byte: what is written today is read, and written, for ever.
#[test]
fn the_bytes_of_a_file_are_settled() {
    let values = [1.0f32, -2.0, f32::from_bits(0x7fc0_1234), -0.0];
    let dense = Dense::from_slice(&[2, 2], &values).unwrap();
    let bytes = file_of(WriteOptions::new(), &dense);
    let data = [
        [0x7f, 0x80, 0xff, 0x00],
        [0x00, 0x00, 0x80, 0x00],
        [0x00, 0x00, 0x24, 0x00],
        [0x00, 0x01, 0x68, 0x01],
    ];
    for (at, plane) in data.iter().enumerate() {
        assert_eq!(bytes[64 * (at + 1)..][..4], plane[..], "plane {at}");
    }
    let golden = include_bytes!("data/planes_f32.zt");
    assert_eq!(bytes, golden);
    let read = File::from_bytes(golden.to_vec()).unwrap();
    let read = read.tensor("x").unwrap().to_dense().unwrap();
    assert_eq!(read.elements().bytes, dense.elements().bytes);
}

fn written(options: WriteOptions, objects: &[(&str, NewObject<'_>)]) -> File {
    let mut bytes = Vec::new();
    let mut writer = options.to_writer(&mut bytes).unwrap();
    for (name, object) in objects {
        writer.add(name, object).unwrap();
    }
    writer.finish().unwrap();
    File::from_bytes(bytes).unwrap()
}

#[test]
fn floating_point_objects_are_written_as_planes_where_asked() {
    for (dtype, count) in [(DType::F64, 2048), (DType::F32, 5000), (DType::F16, 8192)] {
        let dense = dense(dtype, &[count]);
        let new = dense.to_object().unwrap();
        let plain = written(WriteOptions::new(), &[("x", new.clone())]);
        assert_eq!(plain.tensor("x").unwrap().format(), "dense");
        let split = written(WriteOptions::new().planes(), &[("x", new.clone())]);
        let tensor = split.tensor("x").unwrap();
        assert_eq!(tensor.format(), "zt.planes/1");
        assert!(tensor.to_dense().unwrap() == dense);
        assert!(split.byte_len() < plain.byte_len(), "{dtype}");
        // As if it had been split before.
        let planes = Planes::from_dense(&dense).unwrap();
        let auto = WriteOptions::new().compression(Compression::Auto);
        let before = written(auto, &[("x", planes.to_object().unwrap())]);
        let components = |file: &File| format!("{:?}", file.tensor("x").unwrap().object());
        assert_eq!(components(&split), components(&before));
    }
}

#[test]
fn objects_without_planes_stay_dense() {
    let floats = dense(DType::F32, &[5000]);
    let small = dense(DType::F32, &[4095]);
    let integers = vec![7i32; 5000];
    let codes = Elements::new(DType::U8, &[7; 20_000][..]).with_logical_type("f8_e4m3fn");
    let codes = Dense::from_elements([20_000], codes).unwrap();
    let integers = Dense::from_slice(&[5000], &integers).unwrap();
    let mut named = floats.to_object().unwrap();
    named.attributes = Some([("type", Value::from("mine"))].into_iter().collect());
    let mut more = floats.to_object().unwrap();
    let note = Elements::from(vec![1u8]);
    more.components.push(("note".into(), note));
    let mut kept = floats.to_object().unwrap();
    kept.attributes = Some([("note", Value::from("mine"))].into_iter().collect());
    let objects = [
        ("small", small.to_object().unwrap()),
        ("integers", integers.to_object().unwrap()),
        ("codes", codes.to_object().unwrap()),
        ("named", named),
        ("more", more),
        ("kept", kept),
    ];
    let file = written(WriteOptions::new().planes(), &objects);
    for (name, object) in &objects {
        let tensor = file.tensor(name).unwrap();
        let is_split = tensor.format() == "zt.planes/1";
        assert_eq!(is_split, *name == "kept", "{name}");
        let data = &object.components[0].1.bytes;
        assert!(tensor.to_dense().unwrap().elements().bytes == *data, "{name}");
        assert_eq!(tensor.attributes().get("note").is_some(), *name == "kept");
    }
    // Floats in `data`, without a known meaning.
    let mut alien = floats.to_object().unwrap();
    alien.format = "test.alien/1".into();
    let file = written(WriteOptions::new().planes(), &[("x", alien)]);
    assert_eq!(file.tensor("x").unwrap().format(), "test.alien/1");
}

#[test]
fn any_number_of_threads_writes_the_same_bytes() {
    let dense = dense(DType::BF16, &SHAPE);
    let first = dense.slice(&[FIRST]).unwrap();
    let codec = PlaneCodec::new(DType::BF16, None).unwrap();
    let sha256 = Some(DigestAlgorithm::Sha256);
    let new = || WriteOptions::new().planes();
    for options in [new(), new().digest(sha256), new().zstd(1).digest(None)] {
        let together = |threads| {
            let mut bytes = Vec::new();
            let options = options.clone().threads(threads);
            let mut writer = options.to_writer(&mut bytes).unwrap();
            let names = ["before", "x", "after"].into_iter();
            writer.add_all(names.zip([&first, &dense, &first])).unwrap();
            writer.finish().unwrap();
            bytes
        };
        let write = |threads, is_streamed| {
            let mut bytes = Vec::new();
            let options = options.clone().threads(threads);
            let mut writer = options.to_writer(&mut bytes).unwrap();
            // What is before it is not there yet when it comes.
            writer.add("before", &first).unwrap();
            if is_streamed {
                let mut object = writer.begin("x", &SHAPE, Planes::FORMAT).unwrap();
                let elements = &dense.elements().bytes;
                let pass = |out: &mut (dyn Write + Send)| Ok(out.write_all(elements)?);
                object.planes(&codec, pass).unwrap();
                object.finish().unwrap();
            } else {
                writer.add("x", &dense).unwrap();
            }
            writer.add("after", &first).unwrap();
            writer.finish().unwrap();
            bytes
        };
        let expected = write(1, true);
        for threads in [1, 3] {
            assert!(write(threads, false) == expected, "{threads} threads");
            assert!(together(threads) == expected, "{threads} threads");
        }
    }
}

#[test]
fn a_failing_sink_is_an_error_and_ends_every_wait() {
    /// Takes so many bytes.
    struct Full(usize);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let left = self.0.checked_sub(bytes.len());
            self.0 = left.ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let dense = dense(DType::F32, &SHAPE);
    for room in [100, 1 << 20, 9 << 20] {
        let options = WriteOptions::new().planes().threads(3);
        let mut writer = options.to_writer(Full(room)).unwrap();
        let error = writer.add("x", &dense).unwrap_err();
        assert_eq!((error.kind(), error.code()), (zt::ErrorKind::Io, "io"));
        writer.finish().unwrap_err();
    }
}

/// Threads of the pool may wait for the writer themselves: it does not wait for them.
#[cfg(feature = "rayon")]
#[test]
fn a_pool_that_is_busy_for_good_keeps_no_writer_waiting() {
    let dense = dense(DType::BF16, &SHAPE);
    let threads = rayon::current_num_threads();
    let [busy, free] = [(); 2].map(|()| Arc::new(Barrier::new(threads + 1)));
    for _ in 0..threads {
        let (busy, free) = (Arc::clone(&busy), Arc::clone(&free));
        rayon::spawn(move || {
            busy.wait();
            free.wait();
        });
    }
    busy.wait();
    let mut bytes = Vec::new();
    let options = WriteOptions::new().planes();
    let mut writer = options.to_writer(&mut bytes).unwrap();
    writer.add("x", &dense).unwrap();
    writer.finish().unwrap();
    free.wait();
    let file = File::from_bytes(bytes).unwrap();
    assert!(file.tensor("x").unwrap().to_dense().unwrap() == dense);
}

#[test]
fn complex_values_keep_their_type_through_tiles_and_pieces() {
    let plain = dense(DType::F32, &[600, 1400]);
    let bytes = &plain.elements().bytes;
    let elements = Elements::new(DType::F32, &bytes[..]).with_logical_type("complex64");
    let pairs = Dense::from_elements([600, 700], elements).unwrap();
    for options in [WriteOptions::new(), WriteOptions::new().zstd(1)] {
        let file = File::from_bytes(file_of(options, &pairs)).unwrap();
        let tensor = file.tensor("x").unwrap();
        assert!(tensor.to_dense().unwrap() == pairs);

        let (mut reader, mut found) = (tensor.dense_reader().unwrap(), Vec::new());
        let take = |piece: &[u8]| -> zt::Result<()> {
            found.extend_from_slice(piece);
            Ok(())
        };
        reader.for_each_piece(300 << 10, take).unwrap();
        assert!(found == **bytes);
        // The end stays the end.
        assert_eq!(reader.read(&mut [0; 8]).unwrap(), 0);
        assert_eq!(reader.read(&mut [0; 8]).unwrap(), 0);
    }
}

/// Whoever writes elements does not have to hand them on whole.
#[test]
fn planes_of_elements_that_come_in_any_pieces_are_the_same() {
    let dense = dense(DType::F32, &[30, 40]);
    let bytes = &dense.elements().bytes;
    let codec = PlaneCodec::new(DType::F32, None).unwrap();
    let file_of_pieces = |piece_len: usize| {
        let mut file = Vec::new();
        let mut writer = WriteOptions::new().to_writer(&mut file).unwrap();
        let mut object = writer.begin("x", &[30, 40], Planes::FORMAT).unwrap();
        let pass = |out: &mut (dyn Write + Send)| {
            for piece in bytes.chunks(piece_len) {
                out.write_all(piece)?;
                out.flush()?;
            }
            Ok(())
        };
        object.planes(&codec, pass).unwrap();
        object.finish().unwrap();
        writer.finish().unwrap();
        file
    };
    let expected = file_of_pieces(bytes.len());
    let file = File::from_bytes(expected.clone()).unwrap();
    assert!(file.tensor("x").unwrap().to_dense().unwrap() == dense);
    for piece_len in [1, 2, 3, 5, 7, 4001] {
        assert!(file_of_pieces(piece_len) == expected, "{piece_len}");
    }
}

/// It would be in no plane, and the planes would be as long as the shape demands.
#[test]
fn a_part_of_an_element_behind_the_last_is_refused() {
    let codec = PlaneCodec::new(DType::F32, None).unwrap();
    let mut writer = WriteOptions::new().to_writer(io::sink()).unwrap();
    let mut object = writer.begin("x", &[10], Planes::FORMAT).unwrap();
    let pass = |out: &mut (dyn Write + Send)| Ok(out.write_all(&[1; 43])?);
    let error = object.planes(&codec, pass).unwrap_err();
    assert_eq!(error.code(), "shape-size-mismatch");
    assert_eq!(error.component(), Some("plane0"));
    drop(object);
    assert!(writer.finish().is_err());
}

/// Shorter than a tile, which is several of them, and not cut alike in both.
#[test]
fn planes_in_short_frames_are_merged_like_others() {
    let dense = dense(DType::F16, &[2500, 1000]);
    let codec = PlaneCodec::new(DType::F16, None).unwrap();
    let mut compressor = zt::container::codec::FrameCompressor::new(1).unwrap();
    let (mut bytes, mut object) = (Vec::new(), Object::new([2500, 1000], Planes::FORMAT));
    for (at, (role, frame_len)) in codec.roles().iter().zip([300_000, 600_000]).enumerate() {
        let mut plane = vec![0; 2_500_000];
        codec.split(at, &dense.elements().bytes, &mut plane);
        let start = bytes.len() as u64;
        for content in plane.chunks(frame_len) {
            let mut frame = Vec::new();
            compressor.compress(content, &mut frame).unwrap();
            bytes.extend_from_slice(&frame);
        }
        let blob = Blob {
            encoding: Encoding::Zstd,
            decoded_len: Some(2_500_000),
            ..Blob::raw(Span::between(start, bytes.len() as u64).unwrap())
        };
        object = object.with_component(*role, Component::new(DType::U8, blob));
    }
    object.attributes = Some(codec.to_attributes());
    let mut builder = FileBuilder::new(Kind::new("test"), OpenOptions::new());
    let source = builder.source(Memory::new(bytes));
    builder.object("x", object, source);
    let file = builder.build().unwrap();
    assert!(file.tensor("x").unwrap().to_dense().unwrap() == dense);
    assert!(streamed(&file, 70_001).unwrap() == dense.elements().bytes.to_vec());
}

/// Behind a last frame that has nothing in it, too.
#[test]
fn planes_that_end_with_an_empty_frame_are_whole() {
    let dense = dense(DType::F16, &[600_000]);
    let codec = PlaneCodec::new(DType::F16, None).unwrap();
    let mut compressor = zt::container::codec::FrameCompressor::new(1).unwrap();
    let (mut bytes, mut object) = (Vec::new(), Object::new([600_000], Planes::FORMAT));
    for (at, role) in codec.roles().iter().enumerate() {
        let mut plane = vec![0; 600_000];
        codec.split(at, &dense.elements().bytes, &mut plane);
        let start = bytes.len();
        for content in [&plane[..], &[]] {
            let mut frame = Vec::new();
            compressor.compress(content, &mut frame).unwrap();
            bytes.extend_from_slice(&frame);
        }
        let blob = Blob {
            encoding: Encoding::Zstd,
            decoded_len: Some(600_000),
            digest: Some(DigestAlgorithm::Crc32c.digest(&bytes[start..]).unwrap()),
            ..Blob::raw(Span::between(start as u64, bytes.len() as u64).unwrap())
        };
        object = object.with_component(*role, Component::new(DType::U8, blob));
    }
    object.attributes = Some(codec.to_attributes());
    let mut builder = FileBuilder::new(Kind::new("test"), OpenOptions::new());
    let source = builder.source(Memory::new(bytes));
    builder.object("x", object, source);
    let file = builder.build().unwrap();
    assert!(file.tensor("x").unwrap().to_dense().unwrap() == dense);
    assert!(streamed(&file, 70_001).unwrap() == dense.elements().bytes.to_vec());
}

#[test]
fn elements_are_streamed_whole() {
    let dense = dense(DType::F32, &[300_000]);
    let file = File::from_bytes(file_of(WriteOptions::new(), &dense)).unwrap();
    let mut reader = file.tensor("x").unwrap().dense_reader().unwrap();
    assert_eq!(reader.read(&mut [0; 11]).unwrap(), 8);
    // An element that does not fit comes in parts.
    let mut found = [0; 12];
    assert_eq!(reader.read(&mut found[..3]).unwrap(), 3);
    assert_eq!(reader.read(&mut found[3..]).unwrap(), 1);
    assert_eq!(reader.read(&mut found[4..]).unwrap(), 8);
    assert_eq!(found, dense.elements().bytes[8..20]);
}

#[test]
fn only_what_a_part_of_planes_needs_is_read() {
    let dense = dense(DType::F32, &[1000, 300]);
    let (mut bytes, planes) = (Vec::new(), Planes::from_dense(&dense).unwrap());
    let mut writer = WriteOptions::new().to_writer(&mut bytes).unwrap();
    let raw = ComponentOptions::default().into();
    writer.add_with("x", &planes, &raw).unwrap();
    writer.finish().unwrap();
    let (file, count) = common::counted(bytes);
    let slices = [Slice::Index(500)];
    let part = file.tensor("x").unwrap().slice(&slices).unwrap();
    assert!(part == dense.slice(&slices).unwrap());
    // Of each plane the window around it.
    let read = count.load(Ordering::Relaxed);
    assert!(read <= 4 * (64 << 10), "{read}");
}

/// As large as a single frame may be, however they come.
#[test]
fn planes_of_one_frame_are_the_same_from_memory() {
    let zeros = vec![0; 3 << 20];
    let elements = Elements::new(DType::F16, &zeros[..]);
    let dense = Dense::from_elements([3 << 19], elements).unwrap();
    let planes = file_of(WriteOptions::new().zstd(1), &dense);
    let split = common::written(&dense, WriteOptions::new().planes().zstd(1));
    assert!(split == planes);
}
