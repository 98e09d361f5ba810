//! Values in every field and packing that a tensor may have.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use zt::{ErrorKind, File, Memory, Source};
use zt_foreign::InputOptions;

use super::draft::{
    DOUBLE, FLOAT, INT64, UINT8, code, elements, external, field, found, indices, initializer, int,
    is_strict, left_out, model, one_tensor, opened, opened_with, raw, sparse, tensor, varint,
};

/// Values packed in two pieces, then one by one, are legal, but no writer does that.
#[test]
fn values_are_read_however_they_are_packed() {
    let packed = |values: &[u64]| {
        let values: Vec<u8> = values.iter().flat_map(|value| varint(*value)).collect();
        field(7, values)
    };
    let long: Vec<u64> = (0..200_000u64).map(|i| u64::MAX / (i + 1)).collect();
    let (first, rest) = long.split_at(70_000);
    let (second, third) = rest.split_at(70_000);
    let single: Vec<u8> = third.iter().flat_map(|value| int(7, *value)).collect();
    let values = [packed(first), packed(&[]), packed(second), single];
    let bytes = model(&[field(5, tensor("x", INT64, &[200_000], &values))]);
    let file = opened(bytes).unwrap();
    let tensor = file.tensor("x").unwrap();
    // Backwards, so that every place is searched again.
    for (start, end) in [(199_999, 200_000), (131_071, 131_075), (65_530, 65_540), (0, 3)] {
        let slice = tensor.slice(&[format!("{start}:{end}").parse().unwrap()]).unwrap();
        let expected: Vec<u64> = long[start..end].to_vec();
        let found: Vec<u64> =
            slice.as_slice::<i64>().unwrap().iter().map(|v| v.cast_unsigned()).collect();
        assert_eq!(found, expected);
    }
    let all: Vec<u64> = tensor.values::<i64>().unwrap().iter().map(|v| v.cast_unsigned()).collect();
    assert_eq!(all, long);
}

#[test]
fn numbers_of_eight_bytes_may_each_be_a_field() {
    let single: Vec<u8> = [1.5f64, -2.0]
        .iter()
        .flat_map(|value| [varint(10 << 3 | 1), value.to_le_bytes().to_vec()].concat())
        .collect();
    let doubles = |count: u64| {
        let values = std::slice::from_ref(&single);
        one_tensor(tensor("x", DOUBLE, &[count], values))
    };
    assert_eq!(elements::<f64>(&doubles(2), "x"), [1.5, -2.0]);
    assert_eq!(code(&doubles(3), "x"), "shape-size-mismatch");
}

#[test]
fn another_number_of_values_than_the_shape_requires_is_found() {
    let counted = |count: u64, values: &[u8]| {
        let values = field(5, values);
        one_tensor(tensor("x", UINT8, &[count], &[values]))
    };
    assert!(counted(3, &[1, 2, 3]).tensor("x").is_ok());
    // More values than bytes, and no value.
    assert_eq!(code(&counted(4, &[1, 2, 3]), "x"), "shape-size-mismatch");
    assert_eq!(code(&counted(0, &[1, 2, 3]), "x"), "shape-size-mismatch");
    // A count that is possible is found when the values are read.
    assert_eq!(found(&counted(2, &[1, 2, 3])), "shape-size-mismatch");
    // The third varint is truncated.
    assert_eq!(found(&counted(3, &[1, 2, 0x83])), "header");
    // Neither piece is a whole number of values.
    let pieces = [field(4, [0; 5]), field(4, [0; 3])];
    let cut = one_tensor(tensor("x", FLOAT, &[3], &pieces));
    assert_eq!(code(&cut, "x"), "shape-size-mismatch");
    // 300 is out of range for UINT8.
    let file = counted(2, &[1, 0xAC, 2]);
    assert_eq!(found(&file), "header");
    let error = file.tensor("x").unwrap().bytes("data").unwrap_err();
    let text = error.to_string();
    assert!(text.contains("300") && text.contains("UINT8"), "{text}");

    let raw = one_tensor(tensor("x", UINT8, &[4], &[field(9, [1, 2, 3])]));
    assert_eq!(code(&raw, "x"), "shape-size-mismatch");
    let none = one_tensor(tensor("x", UINT8, &[4], &[]));
    assert_eq!(code(&none, "x"), "shape-size-mismatch");
    let twice = [field(5, [1]), field(9, [1])];
    let twice = one_tensor(tensor("x", UINT8, &[1], &twice));
    assert_eq!(code(&twice, "x"), "header");
    // An empty field is ignored, whatever its type.
    let empty = [field(7, []), field(9, [1]), field(5, [])];
    let empty = one_tensor(tensor("x", UINT8, &[1], &empty));
    assert_eq!(elements::<u8>(&empty, "x"), [1]);
    let others = one_tensor(tensor("x", FLOAT, &[1], &[field(5, [1])]));
    assert_eq!(code(&others, "x"), "header");
    let overflow = tensor("x", UINT8, &[1 << 62, 1 << 62], &[]);
    assert_eq!(code(&one_tensor(overflow), "x"), "shape-size-mismatch");
}

#[test]
fn a_tensor_that_cannot_be_read_does_not_hide_its_neighbours() {
    let strange = |data_type: u64| tensor("strange", data_type, &[2], &[field(9, [1, 2])]);
    let negative = tensor("strange", UINT8, &[u64::MAX], &[]);
    let segment = tensor("strange", UINT8, &[1], &[field(3, int(1, 0)), field(9, [1])]);
    for (bad, expected) in [
        (strange(0), "dtype"),
        (strange(99), "dtype"),
        (negative, "header"),
        (segment, "unsupported"),
        (tensor("strange", UINT8, &[1; 65], &[field(9, [1])]), "header"),
    ] {
        let file = opened(model(&[field(5, bad), initializer("w", &[1.0])])).unwrap();
        assert_eq!(code(&file, "strange"), expected);
        let kind = file.tensor("strange").unwrap_err().kind();
        let is_unsupported = ["dtype", "unsupported"].contains(&expected);
        assert_eq!(kind == ErrorKind::Unsupported, is_unsupported, "{expected}");
        assert_eq!(elements::<f32>(&file, "w"), [1.0]);
    }
}

#[test]
fn texts_are_left_out_of_a_sound_file() {
    let text = tensor("text", 8, &[2], &[field(6, "a"), field(6, "b")]);
    let coo = sparse(&tensor("coo", 8, &[1], &[]), &indices(&[1], &[1]), &[2]);
    let fields = [field(5, text), field(15, coo), initializer("w", &[1.0])];
    let file = opened(model(&fields)).unwrap();
    assert_eq!(file.names().collect::<Vec<_>>(), ["w"]);
    assert_eq!(left_out(&file), ["text", "coo"]);
    assert!(file.verify(&zt::VerifyOptions::default()).unwrap().is_ok());
    // A text with an invalid shape is damaged.
    let negative = tensor("x", 8, &[u64::MAX], &[]);
    assert_eq!(code(&one_tensor(negative), "x"), "header");
}

#[test]
fn a_tensor_that_cannot_be_read_is_listed_with_its_known_fields() {
    let known = |number: u64, broken: &[u8], sparse: &[u8]| {
        let content = if sparse.is_empty() { broken } else { sparse };
        let bytes = model(&[field(number, content)]);
        let at = bytes.windows(broken.len()).position(|it| it == broken);
        let file = opened(bytes).unwrap();
        let entries = file.entries();
        let raw = entries[0].raw().unwrap();
        let (role, data) = &raw.components[0];
        assert_eq!(data.offset, at.map(|at| at as u64));
        assert_eq!(data.length, Some(broken.len() as u64));
        let dtype = data.dtype.as_deref().map(str::to_owned);
        let format = raw.format.as_deref().unwrap().to_owned();
        (role.to_string(), dtype, format, raw.shape.clone().unwrap())
    };
    let listed = |role: &str, dtype: Option<&str>, format: &str, shape: &[u64]| {
        let dtype = dtype.map(str::to_owned);
        (role.to_owned(), dtype, format.to_owned(), shape.to_vec())
    };
    for (data_type, dtype) in [(22, Some("INT4")), (FLOAT, Some("FLOAT")), (99, None)] {
        let x = tensor("x", data_type, &[3], &[field(9, [1])]);
        assert_eq!(known(5, &x, &[]), listed("data", dtype, "dense", &[3]));
    }
    let values = tensor("s", FLOAT, &[2], &[raw(&[1.0, 2.0])]);
    let coo = sparse(&values, &indices(&[1], &[1]), &[2, 3]);
    let expected = listed("values", Some("FLOAT"), "sparse_coo", &[2, 3]);
    assert_eq!(known(15, &values, &coo), expected);
}

/// They are plain elements already.
#[test]
fn packed_floats_lie_in_the_model() {
    let values = [1.0f32, 2.0].map(f32::to_le_bytes).concat();
    let bytes = model(&[field(5, tensor("x", FLOAT, &[2], &[field(4, &values)]))]);
    let file = opened(bytes.clone()).unwrap();
    let entries = file.entries();
    let data = entries[0].object().unwrap().component("data").unwrap();
    let begins = usize::try_from(data.blob.span.offset()).unwrap();
    assert_eq!(bytes[begins..begins + 8], *values);
}

#[test]
fn dimensions_may_be_packed() {
    let dimensions = field(1, [2, 0x80, 1, 0]);
    let parts = [dimensions, int(2, FLOAT), field(8, "x")];
    let file = one_tensor(parts.concat());
    assert_eq!(file.tensor("x").unwrap().shape(), [2, 128, 0]);
}

/// As exponents from PyTorch do.
#[test]
fn exponents_of_8_bits_keep_their_bytes() {
    const FLOAT8E8M0: u64 = 24;
    let typed = field(5, [126, 0xFF, 1, 0]);
    for values in [field(9, [126, 255, 0]), typed] {
        let x = tensor("x", FLOAT8E8M0, &[3], &[values]);
        let file = one_tensor(x);
        let tensor = file.tensor("x").unwrap();
        let data = tensor.component("data").unwrap();
        assert_eq!(
            (data.dtype, data.logical_type.as_deref()),
            (Some(zt::DType::U8), Some("f8_e8m0fnu"))
        );
        assert_eq!(*tensor.bytes("data").unwrap(), [126, 255, 0]);
        let report = file.verify(&zt::VerifyOptions::default()).unwrap();
        assert!(report.problems.is_empty());
    }
}

#[test]
fn sparse_tensors_have_the_coordinates_of_either_kind_of_indices() {
    let values = tensor("s", FLOAT, &[2], &[raw(&[1.0, 2.0])]);
    let model = |values: &[u8], indices: &[u8], shape: &[u64]| {
        opened(model(&[field(15, sparse(values, indices, shape))])).unwrap()
    };
    let found_at = |found: &[u64], shape: &[u64]| model(&values, &indices(found, shape), &[2, 3]);
    for file in [found_at(&[1, 5], &[2]), found_at(&[0, 1, 1, 2], &[2, 2])] {
        let dense = file.tensor("s").unwrap().to_dense().unwrap();
        assert_eq!(*dense.as_slice::<f32>().unwrap(), [0.0, 1.0, 0.0, 0.0, 0.0, 2.0]);
        // The indices have the dtype of the format, and are equal for both kinds.
        assert!(is_strict(&file));
        let tensor = file.tensor("s").unwrap();
        let coords: Vec<u8> = [0u64, 1, 1, 2].iter().flat_map(|it| it.to_le_bytes()).collect();
        assert_eq!(*tensor.bytes("coords").unwrap(), coords);
    }
    for file in [
        found_at(&[1, 6], &[2]),
        found_at(&[1, u64::MAX], &[2]),
        found_at(&[0, 3, 1, 2], &[2, 2]),
        found_at(&[0, u64::MAX, 1, 2], &[2, 2]),
    ] {
        assert_eq!(found(&file), "index-value");
    }
    let two = indices(&[1, 5], &[2]);
    let matrix = tensor("s", FLOAT, &[2, 1], &[raw(&[1.0, 2.0])]);
    let floats = tensor("", FLOAT, &[2], &[raw(&[1.0, 5.0])]);
    for (file, expected) in [
        (found_at(&[1, 5, 5], &[3]), "header"),
        // One index per value, in a matrix.
        (found_at(&[1, 5], &[2, 1]), "header"),
        (found_at(&[1, 5], &[1, 2]), "header"),
        (found_at(&[1, 5], &[2, 1, 1]), "header"),
        (model(&matrix, &two, &[2, 3]), "header"),
        (model(&values, &floats, &[2, 3]), "header"),
        (model(&values, &two, &[2, u64::MAX]), "header"),
        (model(&values, &two, &[]), "shape-size-mismatch"),
    ] {
        assert_eq!(code(&file, "s"), expected);
    }
}

/// A part of the bytes of a component, decoded from its first one on.
fn part(file: &File, name: &str, role: &str, start: u64, end: u64) -> io::Result<Vec<u8>> {
    let (source, span) = file.tensor(name).unwrap().stored_bytes(role).unwrap();
    let mut bytes = vec![0; usize::try_from(end - start).unwrap()];
    source.read_at(span.offset() + start, &mut bytes).map(|()| bytes)
}

/// Values between two positions that are kept.
const STEP: u64 = 64 << 10;

/// A model that counts the bytes that are read of it.
struct Counted(Memory<Vec<u8>>, Arc<AtomicU64>);

impl Source for Counted {
    fn byte_len(&self) -> u64 {
        self.0.byte_len()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.1.fetch_add(buf.len() as u64, Ordering::Relaxed);
        self.0.read_at(offset, buf)
    }
}

/// `count` integers of ten bytes each, and the bytes that were read of them.
fn counted(count: u64) -> (File, Arc<AtomicU64>) {
    let values = varint(u64::MAX).repeat(usize::try_from(count).unwrap());
    let bytes = model(&[field(5, tensor("x", INT64, &[count], &[field(7, values)]))]);
    let read = Arc::new(AtomicU64::new(0));
    let source = Counted(Memory::new(bytes), Arc::clone(&read));
    let file = opened_with(source, InputOptions::new()).unwrap();
    read.store(0, Ordering::Relaxed);
    (file, read)
}

#[test]
fn positions_that_were_passed_are_kept() {
    let count = 3 * STEP + 5;
    let (file, read) = counted(count);
    part(&file, "x", "data", count * 8 - 8, count * 8).unwrap();
    for number in [2 * STEP, STEP + 3, 3 * STEP] {
        let before = read.load(Ordering::Relaxed);
        assert_eq!(part(&file, "x", "data", number * 8, number * 8 + 8).unwrap(), [0xFF; 8]);
        assert!(read.load(Ordering::Relaxed) - before < STEP, "{number}");
    }
}

/// Coordinates are made of indices in this way.
#[test]
fn reading_on_in_short_pieces_decodes_nothing_twice() {
    let (file, read) = counted(60_000);
    // Pieces that end within values.
    for offset in (0..60_000 * 8 - 8004).step_by(8004) {
        assert_eq!(part(&file, "x", "data", offset, offset + 8004).unwrap(), [0xFF; 8004]);
    }
    assert!(read.load(Ordering::Relaxed) < 3 * 600_000);
}

#[test]
fn values_are_found_wherever_reading_begins() {
    let values: Vec<u64> = (0..3 * STEP + 5).map(|at| u64::MAX / (at + 1)).collect();
    let (first, second) = values.split_at(100_000);
    let packed =
        |values: &[u64]| field(7, values.iter().flat_map(|it| varint(*it)).collect::<Vec<_>>());
    let fields = [packed(first), packed(second)];
    let file = one_tensor(tensor("x", INT64, &[values.len() as u64], &fields));
    let expected: Vec<u8> = values.iter().flat_map(|it| it.to_le_bytes()).collect();
    let (len, step) = (expected.len() as u64, STEP * 8);
    // After all kept positions first, then at them, and within values.
    for (start, end) in [
        (len - 11, len),
        (step, step + 9),
        (2 * step - 3, 2 * step + 3),
        (800_000 - 8, 800_000 + 8),
        (5, 6),
        (len, len),
    ] {
        let [from, to] = [start, end].map(|at| usize::try_from(at).unwrap());
        assert_eq!(part(&file, "x", "data", start, end).unwrap(), expected[from..to], "{start}");
    }
    let error = part(&file, "x", "data", len - 1, len + 1).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
}

#[test]
fn every_data_type_up_to_28_is_known() {
    for number in 1..=28 {
        let file = one_tensor(tensor("x", number, &[0], &[]));
        let is_text = number == 8;
        assert_eq!(file.tensor("x").is_ok(), !is_text, "{number}");
        assert_eq!(left_out(&file).is_empty(), !is_text, "{number}");
    }
    for number in [u64::MAX, 0, 29] {
        assert_eq!(code(&one_tensor(tensor("x", number, &[0], &[])), "x"), "dtype");
    }
    // Complex numbers have two values, and short ones share bytes.
    for (number, byte_len) in [(14, 40), (15, 80), (17, 5), (22, 3)] {
        let of = |len: usize| one_tensor(tensor("x", number, &[5], &[field(9, vec![0; len])]));
        assert!(of(byte_len).tensor("x").is_ok());
        assert_eq!(code(&of(byte_len - 1), "x"), "shape-size-mismatch");
    }
}

#[test]
fn values_must_fit_their_elements() {
    /// The number of the type, a varint, and the stored bytes or the value out of range.
    type Case = (u64, u64, Result<&'static [u8], i128>);
    let minus = |value: i64| value.cast_unsigned();
    let cases: [Case; 21] = [
        (2, 255, Ok(&[255])),
        (2, 256, Err(256)),
        (2, minus(-1), Ok(&[255])),
        (2, minus(-129), Err(-129)),
        (3, minus(-128), Ok(&[0x80])),
        (3, 128, Ok(&[0x80])),
        (3, 255, Ok(&[255])),
        (3, 256, Err(256)),
        // Some encoders write 32 bits that are not extended to 64.
        (3, 0xFFFF_FF80, Ok(&[0x80])),
        (5, minus(-32768), Ok(&[0, 0x80])),
        (6, minus(-1), Ok(&[255; 4])),
        (6, 1 << 32, Ok(&[0; 4])),
        (7, minus(i64::MIN), Ok(&[0, 0, 0, 0, 0, 0, 0, 0x80])),
        (9, 1, Ok(&[1])),
        (10, 0xFC00, Ok(&[0, 0xFC])),
        (10, 0x1_0000, Err(0x1_0000)),
        (10, minus(-17408), Ok(&[0, 0xBC])),
        (12, 0xFFFF_FFFF, Ok(&[255; 4])),
        (12, 1 << 32, Err(1 << 32)),
        (12, u64::MAX, Err(u64::MAX.into())),
        (13, u64::MAX, Ok(&[255; 8])),
    ];
    for (number, value, stored) in cases {
        let values = match number {
            7 => 7,
            12 | 13 => 11,
            _ => 5,
        };
        let file = one_tensor(tensor("x", number, &[1], &[field(values, varint(value))]));
        let found = file.tensor("x").unwrap().bytes("data").map(|bytes| bytes.to_vec());
        match (found, stored) {
            (Ok(found), Ok(stored)) => assert_eq!(found, stored, "{number} {value:#x}"),
            (Err(error), Err(value)) => {
                let text = error.to_string();
                assert!(text.contains(&format!("element 0 is {value}, ")), "{text}");
            }
            (found, _) => panic!("{number} {value:#x}: {found:?}"),
        }
    }
}

#[test]
fn indices_become_coordinates_wherever_reading_begins() {
    let of = |found: &[i64], shape: &[u64]| {
        let count = found.len() as u64;
        let values = tensor("s", FLOAT, &[count], &[raw(&vec![1.0; found.len()])]);
        let found: Vec<u64> = found.iter().map(|index| index.cast_unsigned()).collect();
        opened(model(&[field(15, sparse(&values, &indices(&found, &[count]), shape))])).unwrap()
    };
    let file = of(&[0, 5, 23], &[2, 3, 4]);
    let expected = [0u64, 0, 1, 0, 1, 2, 0, 1, 3].map(u64::to_le_bytes).concat();
    for start in 0..expected.len() {
        for end in start..=expected.len() {
            let found = part(&file, "s", "coords", start as u64, end as u64).unwrap();
            assert_eq!(found, expected[start..end]);
        }
    }
    for index in [-1, 24, i64::MAX] {
        let file = of(&[0, index], &[2, 3, 4]);
        assert_eq!(file.tensor("s").unwrap().bytes("coords").unwrap_err().code(), "index-value");
    }
    assert!(of(&[], &[u64::MAX >> 1, 4]).tensor("s").is_err());
}

#[test]
fn numbers_of_external_data_are_decimal_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("w"), [0; 16]).unwrap();
    let path = folder.path().join("model.onnx");
    let of = |offset: &str| {
        let pairs = [("location", "w"), ("offset", offset), ("length", "4")];
        let tensor = tensor("x", UINT8, &[4], &[external(&pairs)]);
        std::fs::write(&path, model(&[field(5, tensor)])).unwrap();
        super::draft::opened_at(&path).unwrap()
    };
    assert!(of("007").tensor("x").is_ok());
    // 2^64 is too large.
    for text in ["", "-4", "+4", " 4", "4 ", "x", "4_0", "0x4", "18446744073709551616"] {
        assert_eq!(code(&of(text), "x"), "header", "{text}");
    }
}
