//! The chunks of `zt.planes/2`, and objects of them.

// Clippy takes only the tests themselves for tests, and the numbers are small.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]

use std::borrow::Cow;

use proptest::collection::vec;
use proptest::prelude::*;
use zt_formats::{
    DType, Dense, Elements, Error, FormatViolation, HuffmanDecoder, HuffmanEncoder, HuffmanFault,
    Parts, PlaneCoding, Planes, Registry,
};

const CHUNK: usize = HuffmanEncoder::CHUNK;

fn encode(symbols: &[u8]) -> Vec<u8> {
    let mut chunk = vec![9];
    let len = HuffmanEncoder::new().unwrap().encode(symbols, &mut chunk);
    assert_eq!(len as usize + 1, chunk.len());
    assert!(len as usize <= symbols.len() + 1);
    chunk.split_off(1)
}

fn decode(chunk: &[u8], count: usize) -> Result<Vec<u8>, HuffmanFault> {
    let mut symbols = vec![0xaa; count];
    HuffmanDecoder::new().decode(chunk, &mut symbols)?;
    Ok(symbols)
}

/// The chunk of the specification's page.
fn example() -> (Vec<u8>, Vec<u8>) {
    let mut chunk = vec![2];
    let mut lengths = [0; 128];
    lengths[0x3e..0x40].copy_from_slice(&[0x20, 0x12]);
    chunk.extend(lengths);
    chunk.extend([12, 0, 0, 0].repeat(3));
    chunk.extend([0x1c, 0xc7, 0x71].repeat(16));
    chunk.extend([0; 8]);
    (chunk, [0x7f, 0x7f, 0x7e, 0x7d].repeat(64))
}

#[test]
fn the_chunk_of_the_page() {
    let (chunk, symbols) = example();
    assert_eq!(encode(&symbols), chunk);
    assert_eq!(decode(&chunk, 256), Ok(symbols));
    assert_eq!(encode(&[7; 100]), [1, 7]);
    assert_eq!(encode(&[7, 8, 7]), [0, 7, 8, 7]);
}

#[test]
fn each_fault_is_named() {
    use HuffmanFault::{Code, Kind, Length, Padding, Stream};
    let fault = |chunk: &[u8], count| decode(chunk, count).unwrap_err();
    assert_eq!(fault(&[], 1), Length);
    assert_eq!(fault(&[3, 0], 1), Kind);
    assert_eq!(fault(&[0, 1, 2], 1), Length);
    assert_eq!(fault(&[1], 1), Length);
    assert_eq!(fault(&[1, 2, 3], 2), Length);
    let (chunk, _) = example();
    let with = |at: usize, byte: u8| {
        let mut chunk = chunk.clone();
        chunk[at] = byte;
        fault(&chunk, 256)
    };
    // A code that is not complete, one with too many codes, and one with 12 bits.
    assert_eq!(with(0x3f, 0), Code);
    assert_eq!(with(0x40, 0x11), Code);
    assert_eq!(with(0x40, 0xc2), Code);
    assert_eq!(with(129, 11), Stream);
    assert_eq!(with(129, 13), Stream);
    assert_eq!(with(131, 1), Stream);
    assert_eq!(with(chunk.len() - 1, 1), Padding);
    for len in 1..149 {
        assert_eq!(fault(&chunk[..len], 256), Length);
    }
    // Of 257 symbols, streams have 128.
    assert_eq!(fault(&chunk, 257), Stream);
    // 255 symbols leave the bits of the last one in the last byte.
    assert_eq!(fault(&chunk, 255), Padding);
}

#[test]
fn codes_of_more_than_11_bits_are_shortened() {
    // Counts of Fibonacci have a code of a bit more for each.
    let mut counts = vec![1, 1];
    while counts.len() < 22 {
        counts.push(counts[counts.len() - 1] + counts[counts.len() - 2]);
    }
    let symbols: Vec<u8> = (0u8..).zip(counts).flat_map(|(s, count)| vec![s; count]).collect();
    let chunk = encode(&symbols);
    let lengths = chunk[1..129].iter().flat_map(|two| [two & 15, two >> 4]);
    assert_eq!(lengths.max(), Some(11));
    assert_eq!(decode(&chunk, symbols.len()), Ok(symbols));
}

/// Symbols whose chance falls by half, of several places.
fn skewed(bits: u32, count: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let symbols = (0..count).map(|_| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let low = (state >> 33) as u8 & ((1u16 << bits) - 1) as u8;
        (((state >> 16) as u32 | (1 << 20)).trailing_zeros() as u8 * 8) | low
    });
    symbols.collect()
}

#[test]
fn chunks_of_every_length_come_back() {
    for count in (1..600).chain([4096, 10_000, 65_537, CHUNK - 1, CHUNK]) {
        for bits in [0, 3, 8] {
            let symbols = skewed(bits, count, count as u64);
            assert_eq!(decode(&encode(&symbols), count), Ok(symbols), "{count} {bits}");
        }
    }
}

proptest! {
    #[test]
    fn any_symbols_come_back(symbols in vec(prop_oneof![4 => 0u8..3, 2 => 0..20u8, 1 => any::<u8>()], 1..3000)) {
        prop_assert_eq!(decode(&encode(&symbols), symbols.len()), Ok(symbols));
    }

    /// A chunk has one form for each way of storing it: what decodes, has no bit that means nothing.
    #[test]
    fn a_damaged_chunk_is_refused_or_has_other_symbols(
        seed in any::<u64>(), count in 500..3000usize, at in any::<prop::sample::Index>(), bit in 0..8u32,
    ) {
        let symbols = skewed(2, count, seed);
        let mut chunk = encode(&symbols);
        let at = at.index(chunk.len());
        chunk[at] ^= 1 << bit;
        prop_assert_ne!(decode(&chunk, count), Ok(symbols));
    }

    #[test]
    fn any_bytes_are_decoded_or_refused(
        lengths in vec(0..4u8, 128), rest in vec(any::<u8>(), 0..400), count in 0..1000usize,
    ) {
        let chunk = [&[2][..], &lengths, &rest].concat();
        let _ = decode(&chunk, count);
    }
}

fn object(dtype: DType, count: usize) -> (Dense<'static>, Parts<'static>) {
    let width = dtype.byte_len();
    let bytes: Vec<u8> = skewed(2, count * width, 1);
    let dense = Dense::from_elements([count as u64], Elements::new(dtype, bytes)).unwrap();
    let planes = Planes::from_dense(&dense).unwrap();
    let parts = planes.to_object_in(PlaneCoding::Huffman).unwrap().into_parts();
    (dense, parts.into_owned().unwrap())
}

#[test]
fn values_of_each_type_come_back_whole_and_in_parts() {
    let registry = Registry::builtin();
    let format = registry.format("zt.planes/2").unwrap();
    for dtype in [DType::BF16, DType::F16, DType::F32, DType::F64] {
        for count in [0, 1, 5000, CHUNK, CHUNK + 1, 2 * CHUNK + 5000] {
            let (dense, parts) = object(dtype, count);
            format.check(&parts.signature(), &registry).unwrap();
            format.check_data(&parts).unwrap();
            assert_eq!(format.to_dense(parts.clone()).unwrap(), dense, "{dtype} {count}");
            let unit = format.row_unit(&parts.signature(), &registry);
            assert_eq!(unit, Some(CHUNK as u64));
            for start in (0..count).step_by(CHUNK) {
                let rows = start as u64..count as u64;
                let part = format.rows(rows, &mut parts.reader(&registry)).unwrap().unwrap();
                let part = format.to_dense(part).unwrap();
                assert!(
                    part.elements().bytes[..] == dense.elements().bytes[start * dtype.byte_len()..]
                );
            }
        }
    }
}

#[test]
fn wrong_components_are_named() {
    let registry = Registry::builtin();
    let format = registry.format("zt.planes/2").unwrap();
    let refusal = |change: &dyn Fn(&mut Parts<'static>)| {
        let (_, mut parts) = object(DType::BF16, CHUNK + 5000);
        change(&mut parts);
        let checked = registry.check("zt.planes/2", &parts.signature());
        let checked = checked.and_then(|()| format.check_data(&parts)).unwrap_err();
        assert_eq!(format.to_dense(parts).unwrap_err(), checked);
        (checked.code(), checked.role().unwrap().to_owned())
    };
    let on = |code, role: &str| (code, role.to_owned());
    let set = |role: &'static str, elements: Elements<'static>| {
        move |parts: &mut Parts<'static>| {
            parts.take(role).unwrap();
            parts.elements.push((role.into(), elements.clone()));
        }
    };
    let bytes = |parts: &Parts<'_>, role: &str| parts.get(role).unwrap().bytes.to_vec();
    for role in ["codes", "lengths", "plane1"] {
        let remove = |parts: &mut Parts<'static>| drop(parts.take_if_any(role));
        assert_eq!(refusal(&remove), on("missing-component", role));
    }
    let lengths = || Elements::new(DType::U32, vec![0; 4]);
    assert_eq!(refusal(&set("lengths", lengths())), on("shape-size-mismatch", "lengths"));
    assert_eq!(refusal(&set("lengths", Elements::from(vec![0u8; 8]))), on("dtype", "lengths"));
    assert_eq!(refusal(&set("codes", Elements::from(vec![0u32; 8]))), on("dtype", "codes"));
    assert_eq!(
        refusal(&set("plane1", Elements::from(vec![0u8; 8]))),
        on("shape-size-mismatch", "plane1")
    );
    let longer = |parts: &mut Parts<'static>| {
        let codes = [bytes(parts, "codes"), vec![0]].concat();
        set("codes", Elements::from(codes))(parts);
    };
    assert_eq!(refusal(&longer), on("shape-size-mismatch", "codes"));
    for len in [0, 1, CHUNK as u32 + 2, u32::MAX] {
        let length = |parts: &mut Parts<'static>| {
            let mut lengths = bytes(parts, "lengths");
            lengths[..4].copy_from_slice(&len.to_le_bytes());
            set("lengths", Elements::new(DType::U32, lengths))(parts);
        };
        assert_eq!(refusal(&length), on("huffman", "lengths"));
    }
    let kind = |parts: &mut Parts<'static>| {
        let mut codes = bytes(parts, "codes");
        codes[0] = 3;
        set("codes", Elements::from(codes))(parts);
    };
    assert_eq!(refusal(&kind), on("huffman", "codes"));
    let (_, mut parts) = object(DType::BF16, 5000);
    parts.shape = Cow::Owned(vec![5001]);
    let fault = registry.check("zt.planes/2", &parts.signature()).unwrap_err();
    assert!(matches!(
        fault,
        Error::Malformed { violation: FormatViolation::ShapeSizeMismatch(_), .. }
    ));
}
