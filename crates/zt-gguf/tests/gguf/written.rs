//! GGUF files written from other kinds: what GGUF can represent and what it cannot.

use std::io::Write;

use zt::ggml::{BlockType, Blocks};
use zt::{Attributes, ByteOrder, DType, Dense, ErrorKind, File, Value};
use zt_foreign::ConvertOptions;
use zt_gguf::GGUF;

use super::{cases, content, header, opened, ours, pair, string, to, write_to};

/// Refused because of the object; with losses allowed, `left` tensors are written.
fn lossy(input: &File, object: Option<&str>, left: usize) {
    let mut options = ConvertOptions::new(GGUF);
    let error = to(&options, input).unwrap_err();
    assert_eq!((error.code(), error.object()), ("lossy", object), "{error}");
    options = options.lossy(true);
    warned(input, &options, object, left);
}

/// Written with warnings about the object alone, as are `left` tensors.
fn warned(input: &File, options: &ConvertOptions<'_>, object: Option<&str>, left: usize) {
    let (bytes, mut summary) = to(options, input).unwrap();
    assert_eq!(opened(bytes).len(), left);
    summary.warnings.retain(|warning| warning.code != "architecture");
    let warnings = &summary.warnings;
    assert!(warnings.iter().all(|warning| warning.object.as_deref() == object));
    assert!(!warnings.is_empty());
}

#[test]
fn a_file_that_llama_cpp_cannot_load_is_a_warning() {
    let input = |attributes: &[(&str, &str)]| {
        ours(|w| {
            if !attributes.is_empty() {
                w.set_attributes(attributes.iter().copied().collect()).unwrap();
            }
            w.add("t", &Dense::from_slice(&[1], &[1f32])?)
        })
    };
    let codes = |input: &File| {
        let (_, summary) = to(&ConvertOptions::new(GGUF), input).unwrap();
        let codes = summary.warnings.iter().map(|warning| warning.code);
        codes.collect::<Vec<_>>()
    };
    assert_eq!(codes(&input(&[])), ["architecture"]);
    assert_eq!(codes(&input(&[("format", "pt")])), ["architecture"]);
    assert!(codes(&input(&[("general.architecture", "llama")])).is_empty());
}

#[test]
fn what_gguf_cannot_represent_is_a_loss() {
    let long = "n".repeat(64);
    lossy(&ours(|w| w.add(&long, &Dense::from_slice(&[1], &[1f32])?)), Some(&long), 0);
    lossy(&ours(|w| w.add("r", &Dense::from_slice(&[1; 5], &[1f32])?)), Some("r"), 0);
    // ggml's dimensions are signed, also where there are no elements.
    lossy(&ours(|w| w.add("d", &Dense::from_slice(&[0, 1 << 63], &[0f32; 0])?)), Some("d"), 0);
    lossy(&ours(|w| w.add("u", &Dense::from_slice(&[1], &[1u8])?)), Some("u"), 0);
    let complex = [zt::formats::Complex::new(1f32, 2.0)];
    lossy(&ours(|w| w.add("c", &Dense::from_slice(&[1], &complex)?)), Some("c"), 0);
    let sparse = zt::Csr::new([2, 3], &[7i32, 8], vec![2, 0], vec![0, 1, 2]).unwrap();
    lossy(&ours(|w| w.add("s", &sparse)), Some("s"), 1);
}

/// Bools become numbers, and metadata are lost.
#[test]
fn what_loses_no_value_is_a_warning() {
    let options = ConvertOptions::new(GGUF);
    let bools = ours(|w| w.add("b", &Dense::from_slice(&[2], &[true, false])?));
    warned(&bools, &options, Some("b"), 1);
    let written = opened(to(&options, &bools).unwrap().0);
    let values = written.tensor("b").unwrap().to_vec::<i8>().unwrap();
    assert_eq!(values, [1, 0]);
    for value in [Value::Null, Value::Map(Attributes::new()), vec![1u8].into()] {
        let with = ours(|w| {
            w.set_attributes([("k", value)].into()).unwrap();
            Ok(())
        });
        warned(&with, &options, None, 0);
    }
    // No power of two, and an alignment with 2 GiB of padding for every tensor.
    for alignment in [3u64, 1 << 31] {
        let input = ours(|w| {
            w.set_attributes([("general.alignment", alignment)].into()).unwrap();
            w.add("t", &Dense::from_slice(&[1], &[1f32])?)
        });
        warned(&input, &options, None, 1);
    }
}

#[test]
fn names_that_llama_cpp_accepts_are_written() {
    let name = "n".repeat(63);
    let input = ours(|w| w.add(&name, &Dense::from_slice(&[1, 1, 1, 1], &[1i64])?));
    let (bytes, summary) = to(&ConvertOptions::new(GGUF), &input).unwrap();
    assert!(summary.left_out.is_empty());
    assert_eq!(content(&opened(bytes)), content(&input));
}

#[test]
fn attributes_of_other_kinds_get_types_and_the_alignment_is_used() {
    let input = ours(|w| {
        let pairs: [(&str, Value); 4] = [
            ("general.alignment", 256u64.into()),
            ("text", "v".into()),
            ("scale", 0.1.into()),
            ("list", vec![Value::from(1u64), (-1i64).into()].into()),
        ];
        w.set_attributes(pairs.into()).unwrap();
        w.add("a", &Dense::from_slice(&[1], &[1f32])?)?;
        w.add("b", &Dense::from_slice(&[1], &[2f32])?)
    });
    let (bytes, _) = to(&ConvertOptions::new(GGUF), &input).unwrap();
    assert!(bytes.len().is_multiple_of(256));
    let output = opened(bytes);
    let data = output.tensor("b").unwrap().component("data").unwrap();
    assert!(data.blob.span.offset().is_multiple_of(256));
    let attributes = output.attributes().unwrap().unwrap();
    for (key, value) in &input.attributes().unwrap().unwrap() {
        assert_eq!(attributes.get(key.as_str().unwrap()), Some(value));
    }
}

#[test]
fn a_changed_value_gets_a_type_that_holds_it() {
    let bytes = header(0, 2, &[&pair(b"b", 0, &[7]), &pair(b"a", 0, &[8])]);
    let mut attributes = opened(bytes).attributes().unwrap().unwrap();
    attributes.insert("b", 300u64);
    attributes.insert("new", "text");
    let changed = ours(|w| {
        w.set_attributes(attributes).unwrap();
        Ok(())
    });
    let (bytes, summary) = to(&ConvertOptions::new(GGUF), &changed).unwrap();
    assert!(summary.warnings.is_empty());
    let pairs = [
        pair(b"b", 4, &300u32.to_le_bytes()),
        pair(b"a", 0, &[8]),
        pair(b"new", 8, &string(b"text")),
    ];
    assert!(bytes.starts_with(&header(0, 3, &[&pairs.concat()])));
}

#[test]
fn blocks_are_written_unchanged_or_as_dense_values() {
    let q8_0 = BlockType::from_format("gguf.q8_0/1").unwrap();
    let block: Vec<u8> = [0x00, 0x38].into_iter().chain(0..32).collect();
    let blocks = Blocks::new(q8_0, [1, 32], &block[..]).unwrap();
    let input = ours(|w| w.add("q", &blocks));
    let mut options = ConvertOptions::new(GGUF);
    let (bytes, _) = to(&options, &input).unwrap();
    assert!(bytes.windows(34).any(|window| window == block));
    assert_eq!(content(&opened(bytes)), content(&input));
    (options.dense, options.dtype) = (true, Some(zt::FloatType::F16));
    let (bytes, _) = to(&options, &input).unwrap();
    let output = opened(bytes);
    let data = output.tensor("q").unwrap().component("data").unwrap();
    assert_eq!((data.dtype, data.blob.span.byte_len()), (Some(DType::F16), 64));
}

#[test]
fn big_endian_blocks_of_unknown_structure_are_read_but_not_written() {
    let mut bytes = b"GGUF\0\0\0\x03".to_vec();
    bytes.extend(1u64.to_be_bytes());
    bytes.extend(0u64.to_be_bytes());
    bytes.extend(1u64.to_be_bytes());
    bytes.extend(b"q");
    bytes.extend(1u32.to_be_bytes());
    bytes.extend(32u64.to_be_bytes());
    bytes.extend(6u32.to_be_bytes());
    bytes.extend(0u64.to_be_bytes());
    bytes.resize(bytes.len().next_multiple_of(32) + 32, 1);
    let file = opened(bytes);
    let tensor = file.tensor("q").unwrap();
    assert_eq!(tensor.bytes("data").unwrap().len(), 22);
    // Single bytes have no byte order, and can be lent.
    let data = tensor.component("data").unwrap();
    assert_eq!(data.byte_order, ByteOrder::Little);
    assert_eq!(tensor.to_dense().unwrap_err().kind(), ErrorKind::Unsupported);
    assert!(!BlockType::from_id(6).unwrap().is_known_in(ByteOrder::Big));
    lossy(&file, Some("q"), 0);
}

/// The pieces that are read at a time end within blocks of 34 bytes.
#[test]
fn many_big_endian_blocks_become_little_endian_ones() {
    const ROWS: u64 = 40_000;
    let q8_0 = BlockType::from_format("gguf.q8_0/1").unwrap();
    let mut blocks: Vec<u8> = (0..ROWS * 34).map(|at| (at * 7 / 8) as u8).collect();
    let input = ours(|w| {
        let mut object = w.begin("q", &[ROWS, 32], "gguf.q8_0/1")?;
        object.set_attributes([("byte_order", "big")].into()).unwrap();
        let mut data = object.component("data", DType::U8, None)?;
        data.write_all(&blocks).unwrap();
        data.finish()?;
        object.finish()
    });
    let (bytes, _) = to(&ConvertOptions::new(GGUF), &input).unwrap();
    q8_0.swap(&mut blocks);
    assert!(*opened(bytes).tensor("q").unwrap().bytes("data").unwrap() == blocks);
}

#[test]
fn writing_is_streamed_in_pieces_of_any_length() {
    // Blocks of 18 bytes never end where a piece of a power of two does.
    let (_, _, bytes) = cases("read").into_iter().find(|case| case.0 == "quant_big").unwrap();
    let file = opened(bytes);
    struct Trickle<'o>(&'o mut Vec<u8>);
    impl Write for Trickle<'_> {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let len = bytes.len().min(5);
            self.0.extend(&bytes[..len]);
            Ok(len)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut slow = Vec::new();
    write_to(Trickle(&mut slow), &ConvertOptions::new(GGUF), &file).unwrap();
    assert!(slow == to(&ConvertOptions::new(GGUF), &file).unwrap().0);
}
