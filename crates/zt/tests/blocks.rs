//! Quantized blocks of ggml, through a file.
#![allow(clippy::unwrap_used, reason = "tests")]

use zt::formats::ggml::{BLOCK_TYPES, Blocks};
use zt::{Bytes, File, Slice, Writer};

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
        assert!(
            found.elements().bytes == expected.elements().bytes,
            "{name}"
        );
        let last = tensor.slice(&[Slice::Index(-1)]).unwrap();
        assert_eq!(last.shape(), [COLUMNS], "{name}");
        assert!(
            expected.elements().bytes[..].ends_with(&last.elements().bytes),
            "{name}"
        );
    }
}
