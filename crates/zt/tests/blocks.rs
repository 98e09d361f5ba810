//! Quantized blocks of ggml, through a file.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::borrow::Cow;

use zt::formats::{Elements, Parts};
use zt::ggml::{BLOCK_TYPES, BlockType, Blocks};
use zt::{Bytes, DType, File, Slice, Writer};

/// Larger than what one core takes at a time, and no multiple of it.
const ROWS: u64 = 1030;
const COLUMNS: u64 = 256;

#[test]
fn many_blocks_have_the_values_that_they_have_one_by_one() {
    for block_type in &BLOCK_TYPES {
        let byte_len = block_type.byte_len(ROWS * COLUMNS).unwrap();
        // Every byte below 64: no scale of half precision is infinite.
        let bytes: Vec<u8> = (0..byte_len).map(|at| (at * 37 % 61) as u8).collect();
        let shape = vec![ROWS, COLUMNS];
        let blocks = Blocks::new(block_type, shape, Bytes::Borrowed(&bytes)).unwrap();
        let mut file = Vec::new();
        let mut writer = Writer::new(&mut file).unwrap();
        writer.add("w", &blocks).unwrap();
        writer.finish().unwrap();
        let file = File::from_bytes(file).unwrap();
        let tensor = file.tensor("w").unwrap();
        let (expected, found) = (blocks.to_dense(), tensor.to_dense().unwrap());
        // Compared by their bytes: NaN is a value like others.
        let expected = expected.unwrap();
        let name = block_type.name();
        assert_eq!(found.shape(), [ROWS, COLUMNS], "{name}");
        assert!(found.elements().bytes == expected.elements().bytes, "{name}");
        let last = tensor.slice(&[Slice::Index(-1)]).unwrap();
        assert_eq!(last.shape(), [COLUMNS], "{name}");
        assert!(expected.elements().bytes[..].ends_with(&last.elements().bytes), "{name}");
    }
}

/// Those that are turned go another way.
#[test]
fn blocks_of_either_byte_order_have_their_values() {
    // One more than a core takes at a time.
    let shape = [(1 << 13) + 1, 32];
    let block_type = BlockType::from_format("gguf.q8_0/1").unwrap();
    let byte_len = block_type.byte_len(shape[0] * shape[1]).unwrap();
    let bytes: Vec<u8> = (0..byte_len).map(|at| (at * 37 % 61) as u8).collect();
    for order in ["little", "big"] {
        let parts = Parts {
            shape: Cow::Borrowed(&shape),
            attributes: Cow::Owned([("byte_order", order)].into()),
            elements: vec![("data".into(), Elements::new(DType::U8, Bytes::Borrowed(&bytes)))],
        };
        let blocks = Blocks::from_parts(block_type, parts).unwrap();
        let mut file = Vec::new();
        let mut writer = Writer::new(&mut file).unwrap();
        writer.add("w", &blocks).unwrap();
        writer.finish().unwrap();
        let file = File::from_bytes(file).unwrap();
        let found = file.tensor("w").unwrap().to_dense().unwrap();
        assert!(found == blocks.to_dense().unwrap(), "{order}");
    }
}
