//! The blocks of ggml, compared with the values that `gguf-py` decodes: see `data/README.md`.

// Clippy takes only the tests themselves for tests.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::borrow::Cow;

use zt_formats::{
    Elements, Error, F8E4M3Fn, FormatViolation, ObjectFormat, Parts, Registry, SizeMismatch,
    ToObject, Unsupported,
};
use zt_ggml::{BLOCK_TYPES, BlockFormat, BlockType, Blocks};
use zt_manifest::{Attributes, ByteOrder, DType, Text, Value};

const TABLE: &str = include_str!("data/ggml.txt");
const BLOCKS: u64 = 512;

fn splitmix64(seed: u64) -> impl Iterator<Item = u8> {
    let mut state = seed;
    let next = move || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        Some(z ^ (z >> 31))
    };
    std::iter::from_fn(next).flat_map(u64::to_le_bytes)
}

fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |value, byte| {
        (value ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3)
    })
}

/// The random blocks of a line of the table.
fn blocks_of(block_type: &BlockType, masked: &str) -> Vec<u8> {
    let len = usize::try_from(BLOCKS * block_type.block_byte_len()).unwrap();
    let mut blocks: Vec<u8> = splitmix64(block_type.id().into()).take(len).collect();
    let size = usize::try_from(block_type.block_byte_len()).unwrap();
    for offset in masked.split(',').filter_map(|text| text.parse::<usize>().ok()) {
        blocks.chunks_mut(size).for_each(|block| block[offset] &= 0xBF);
    }
    blocks
}

#[test]
fn every_type_decodes_bit_for_bit_as_gguf_py_does() {
    assert_eq!(TABLE.lines().count(), BLOCK_TYPES.len());
    for line in TABLE.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let block_type = BlockType::from_id(words[1].parse().unwrap()).unwrap();
        assert_eq!(block_type.name(), words[0]);
        let size = format!("{}/{}", block_type.block_len(), block_type.block_byte_len());
        assert_eq!(size, words[2], "{block_type}");
        let bytes = blocks_of(block_type, words[3]);
        let shape = [2, BLOCKS / 2 * block_type.block_len()];
        let dense = Blocks::new(block_type, shape, &bytes[..]).unwrap().to_dense().unwrap();
        let first: Vec<String> = dense.as_slice::<f32>().unwrap()[..8]
            .iter()
            .map(|value| format!("{:08x}", value.to_bits()))
            .collect();
        assert_eq!(first, words[5..], "{block_type}");
        let hash = format!("{:016x}", fnv(&dense.elements().bytes));
        assert_eq!(hash, words[4], "{block_type}");
    }
}

/// The values of E2M1, the type of the four bits, by the table of OCP's Microscaling Formats.
const E2M1: [f64; 16] =
    [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0];

/// Asserts that a group with all sixteen values decodes to these values times the `scale` of its byte.
/// A block has a byte for each group, and then the bits of all groups.
fn assert_scaled(format: &str, codes: std::ops::RangeInclusive<u8>, scale: impl Fn(u8) -> f64) {
    let block_type = BlockType::from_format(format).unwrap();
    let len = |len: u64| usize::try_from(len).unwrap();
    let values = len(block_type.block_len());
    let groups = len(block_type.block_byte_len()) - values / 2;
    let group = values / groups;
    let low_and_high: Vec<u8> = (0..8u8).map(|low| low | (low + 8) << 4).collect();
    for code in codes {
        let mut block = vec![code; groups];
        block.extend(low_and_high.repeat(values / 16));
        let blocks = Blocks::new(block_type, [block_type.block_len()], &block[..]).unwrap();
        let dense = blocks.to_dense().unwrap();
        for (at, value) in dense.as_slice::<f32>().unwrap().iter().enumerate() {
            // The lower halves of a group's bytes come first.
            let half = at % group / (group / 2);
            let expected = E2M1[half * 8 + at % 8] * scale(code);
            let expected = if expected.abs() > f32::MAX.into() {
                f64::INFINITY.copysign(expected)
            } else {
                expected
            };
            assert_eq!(f64::from(*value), expected, "{format} {code:02x} {at}");
        }
    }
}

#[test]
fn every_scale_of_a_byte_is_the_power_or_the_number_that_it_codes() {
    // The halves of the least two are subnormal, and multiples of the largest are beyond f32. 0xff is
    // NaN for OCP, and one more power in ggml.
    assert_scaled("gguf.mxfp4/1", 0..=255, |code| 2f64.powi(i32::from(code) - 127));
    assert_scaled("gguf.nvfp4/1", 0..=0x7e, |code| F8E4M3Fn::from_bits(code).to_f32().into());
    // NaN in E4M3, and 0 in ggml.
    assert_scaled("gguf.nvfp4/1", 0x7f..=0x7f, |_| 0.0);
}

#[test]
fn big_endian_blocks_have_the_same_values_if_their_form_is_defined() {
    for line in TABLE.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let block_type = BlockType::from_id(words[1].parse().unwrap()).unwrap();
        let mut bytes = blocks_of(block_type, words[3]);
        let shape = [BLOCKS * block_type.block_len()];
        let expected = Blocks::new(block_type, shape, &bytes[..]).unwrap().to_dense().unwrap();
        block_type.swap(&mut bytes);
        let parts = parts(&shape, [("byte_order", "big")].into(), &bytes);
        let blocks = Blocks::from_parts(block_type, parts).unwrap();
        let object = blocks.to_object().unwrap();
        assert_eq!(object.attributes, Some([("byte_order", "big")].into()));
        assert_eq!(Blocks::from_parts(block_type, object.into_parts()).unwrap(), blocks);
        if block_type.is_known_in(ByteOrder::Big) {
            assert_eq!(blocks.to_dense().unwrap(), expected);
        } else {
            let error = Error::Unsupported(Unsupported::BigEndian(block_type.format().into()));
            assert_eq!(blocks.to_dense().unwrap_err(), error);
        }
    }
}

fn parts<'a>(shape: &'a [u64], attributes: Attributes, bytes: &'a [u8]) -> Parts<'a> {
    Parts {
        shape: Cow::Borrowed(shape),
        attributes: Cow::Owned(attributes),
        elements: vec![(Text::Borrowed("data"), Elements::new(DType::U8, bytes))],
    }
}

fn violation(parts: &Parts<'_>) -> FormatViolation {
    let format = BlockFormat(BlockType::from_format("gguf.q4_0/1").unwrap());
    match format.check(&parts.signature(), &Registry::builtin()) {
        Err(Error::Malformed { violation, .. }) => violation,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_row_is_whole_blocks() {
    let row = SizeMismatch::Row { len: 16, multiple: 32 };
    assert_eq!(violation(&parts(&[2, 16], Attributes::new(), &[0; 18])), row.into());
    // A scalar is a row of one.
    let scalar = SizeMismatch::Row { len: 1, multiple: 32 };
    assert_eq!(violation(&parts(&[], Attributes::new(), &[0; 18])), scalar.into());
    let bytes = SizeMismatch::Bytes { expected: 36, found: 18 };
    assert_eq!(violation(&parts(&[2, 32], Attributes::new(), &[0; 18])), bytes.into());
    let shape = [1 << 62, 32];
    let overflow = SizeMismatch::Overflow { shape: shape.into() };
    assert_eq!(violation(&parts(&shape, Attributes::new(), &[0; 18])), overflow.into());
    let q4_0 = BlockType::from_format("gguf.q4_0/1").unwrap();
    let empty = Blocks::new(q4_0, [0, 32], &[][..]).unwrap();
    assert_eq!(empty.to_dense().unwrap().shape(), [0, 32]);
}

#[test]
fn rows_are_whole_blocks_and_the_only_one_is_cut_between_them() {
    let registry = zt_ggml::register(Registry::builtin());
    let format = registry.format("gguf.q4_0/1").unwrap();
    for (shape, unit, byte_len) in [
        (&[64][..], 32, Some(36)),
        (&[3, 64], 1, Some(108)),
        (&[2, 3, 32], 1, Some(108)),
        (&[3, 16], 1, None),
    ] {
        let parts = parts(shape, Attributes::new(), &[]);
        let signature = parts.signature();
        let len = |role| format.expected_len(role, &signature, &registry);
        assert_eq!((len("data"), len("other")), (byte_len, None), "{shape:?}");
        assert_eq!(format.row_unit(&signature, &registry), Some(unit));
    }
}

#[test]
fn blocks_have_a_type_a_shape_and_bytes() {
    let q4_0 = BlockType::from_format("gguf.q4_0/1").unwrap();
    let blocks = Blocks::new(q4_0, [2, 32], &[0; 36][..]).unwrap();
    assert_eq!(blocks.block_type(), q4_0);
    assert_eq!(blocks.shape(), [2, 32]);
    assert_eq!((blocks.byte_order(), blocks.bytes()), (ByteOrder::Little, &[0; 36][..]));
    assert_eq!(format!("{q4_0:?} {q4_0:>6}"), "Q4_0   Q4_0");
    assert_ne!(q4_0, BlockType::from_format("gguf.q4_1/1").unwrap());
    let format = BlockFormat(q4_0);
    let object = blocks.to_object().unwrap();
    let signature = object.signature();
    assert_eq!(format.value_type(&signature), Some("q4_0".into()));
    // The byte order describes the blocks and not the tensor.
    assert_eq!(format.parameters(), ["byte_order"]);
    assert_eq!(format.data_roles(), Some(&[][..]));
    assert!(format.is_of_value("data", &signature));
    assert!(!format.is_of_value("note", &signature));
}

#[test]
fn the_byte_order_matters_except_for_blocks_of_bytes() {
    for block_type in &BLOCK_TYPES {
        // The scales of these two types have one byte. All others have two or four.
        let is_bytes = block_type.name().ends_with("FP4");
        assert_eq!(block_type.has_words(), !is_bytes, "{block_type}");
    }
    // ggml declares bytes and reads words: the big-endian form is undefined.
    let unsaid = BLOCK_TYPES.iter().filter(|block_type| !block_type.is_known_in(ByteOrder::Big));
    let unsaid: Vec<&str> = unsaid.map(BlockType::name).collect();
    assert_eq!(unsaid, ["Q5_0", "Q5_1", "Q3_K", "IQ2_XXS", "IQ3_XXS", "IQ1_M"]);
}

#[test]
fn data_is_plain_bytes_and_the_byte_order_one_of_two() {
    let mut typed = parts(&[32], Attributes::new(), &[0; 18]);
    typed.elements[0].1.dtype = DType::I8;
    assert!(matches!(violation(&typed), FormatViolation::DType { found: Some(DType::I8), .. }));
    let mut logical = parts(&[32], Attributes::new(), &[0; 18]);
    logical.elements[0].1.logical_type = Some("f8_e5m2".into());
    assert!(matches!(violation(&logical), FormatViolation::LogicalType { .. }));
    let mut none = parts(&[32], Attributes::new(), &[0; 18]);
    none.elements.clear();
    assert_eq!(violation(&none), FormatViolation::MissingComponent);
    let wrong = [
        (Value::from("middle"), "is \"middle\", not little or big"),
        (Value::from(1u64), "is not a text"),
    ];
    for (wrong, words) in wrong {
        let attributes = [("byte_order", wrong)].into();
        let found = violation(&parts(&[32], attributes, &[0; 18]));
        let expected = format!("attribute `byte_order`: {words}");
        assert_eq!(found.to_string(), expected);
    }
    let little = parts(&[32], [("byte_order", "little")].into(), &[0; 18]);
    let registry = zt_ggml::register(Registry::builtin());
    let format = registry.format("gguf.q4_0/1").unwrap();
    format.check(&little.signature(), &registry).unwrap();
}

/// The sets of values of `data/quantize.py`.
#[expect(
    clippy::cast_possible_truncation,
    reason = "between floats, `as` rounds to nearest, ties to even"
)]
fn sets() -> Vec<Vec<f32>> {
    const BLOCKS: usize = 256;
    let bytes: Vec<u8> = splitmix64(7).take(BLOCKS * 64).collect();
    let integers = bytes.as_chunks().0.iter();
    let integers: Vec<i16> = integers.map(|bytes| i16::from_le_bytes(*bytes)).collect();
    let exponents: Vec<i32> = splitmix64(8).take(BLOCKS).map(|it| i32::from(it % 48)).collect();
    let scaled = |add: i32| {
        let blocks = integers.chunks(32).zip(&exponents);
        let blocks = blocks.flat_map(|(block, exponent)| {
            let scale = 2f64.powi(exponent + add);
            block.iter().map(move |it| (f64::from(*it) * scale) as f32)
        });
        blocks.collect()
    };
    let each = |value: &dyn Fn(i16) -> f32| integers.iter().map(|it| value(*it)).collect();
    vec![
        scaled(-40),
        scaled(-160),
        scaled(50),
        each(&|it| f32::from(it.rem_euclid(8)) / 8.0),
        each(&|it| f32::from(it).abs()),
        each(&|it| if it % 4 == 0 { f32::from(it) } else { 0.0 }),
        [[0.0; 32], [-0.0; 32]].concat(),
        vec![-2.5; 32],
        each(&|it| (f64::from(it) * 2f64.powi(-163)) as f32),
    ]
}

#[test]
fn values_are_quantized_bit_for_bit_as_gguf_py_does() {
    let (table, sets) = (include_str!("data/quantize.txt"), sets());
    let names: Vec<&str> = table.lines().filter_map(|line| line.split(' ').next()).collect();
    let quantized: Vec<&str> = BlockType::quantized().map(BlockType::name).collect();
    assert!(quantized.iter().all(|name| names.contains(name)));
    assert_eq!(quantized.len(), names.len());
    for line in table.lines() {
        let mut words = line.split(' ');
        let name = words.next().unwrap();
        let block_type = BLOCK_TYPES.iter().find(|known| known.name() == name).unwrap();
        let hashes: Vec<&str> = words.collect();
        assert_eq!(hashes.len(), sets.len());
        for (at, (values, hash)) in sets.iter().zip(hashes).enumerate() {
            let mut blocks = Vec::new();
            block_type.quantize(values, &mut blocks);
            let count = (values.len() / 32) as u64;
            assert_eq!(blocks.len() as u64, count * block_type.block_byte_len());
            assert_eq!(format!("{:016x}", fnv(&blocks)), hash, "{name}, set {at}");
        }
    }
}
