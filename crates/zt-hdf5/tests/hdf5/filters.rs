//! What each filter makes of the bytes of a chunk.

use crate::checksum::{fletcher32, lookup3};
use crate::draft::{FILTERS, LAYOUT, beside, bytes, code, int, message};

/// The bytes of a dataset of so many, in one chunk that went through this filter; the code of the fault otherwise.
fn decoded(
    filter: u16,
    parameters: &[u32],
    stored: &[u8],
    byte_len: usize,
) -> Result<Vec<u8>, &'static str> {
    let len = byte_len as u64;
    let file = beside(|draft| {
        let address = draft.put(stored);
        let stored_len = stored.len() as u64;
        let chunk = u32::try_from(byte_len).unwrap();
        let layout = bytes!(4u8, 2u8, 2u8, 2u8, 4u8, chunk, 1u32, 1u8, stored_len, 0u32, address);
        let mut messages = draft.dataset(int(1, 0), &[len], &[]);
        messages[2] = message(LAYOUT, layout);
        // Only filters of others have a name.
        let name = if filter < 256 { vec![] } else { bytes!(0u16) };
        let parameters: Vec<u8> = [
            bytes!(0u16, u16::try_from(parameters.len()).unwrap()),
            parameters.iter().flat_map(|it| it.to_le_bytes()).collect(),
        ]
        .concat();
        let filters = [bytes!(2u8, 1u8, filter), name, parameters].concat();
        messages.push(message(FILTERS, filters));
        messages
    });
    match file.tensor("x").and_then(|tensor| tensor.to_vec::<u8>()) {
        Ok(values) => Ok(values),
        Err(_) => Err(code(&file, "x")),
    }
}

const SHUFFLE: u16 = 2;
const SZIP: u16 = 4;
const NBIT: u16 = 5;
const BZIP2: u16 = 307;
const LZF: u16 = 32000;
const LZ4: u16 = 32004;
const BITSHUFFLE: u16 = 32008;

#[test]
fn checksums_have_the_published_values() {
    assert_eq!(lookup3(b""), 0xDEAD_BEEF);
    assert_eq!(lookup3(b"Four score and seven years ago"), 0x1777_0551);
    assert_eq!(fletcher32(&[1, 2, 3]), 0x0504_0402);
    assert_eq!(fletcher32(&[0xFF, 0xFF]), 0xFFFF_FFFF);
    assert_eq!(fletcher32(&[0; 7]), 0);
}

/// Lengths inside a tile, across its edges, and with an incomplete element.
#[test]
fn unshuffled_elements_have_their_bytes_from_all_planes() {
    for element_len in [2, 3, 8, 63, 64, 65, 128, 200, 4096] {
        for (count, rest) in [(2, 0), (63, 1), (64, 0), (65, 1), (700, 1)] {
            let whole = count * element_len;
            let bytes: Vec<u8> = (0..=250).cycle().take(whole + rest).collect();
            let found = decoded(SHUFFLE, &[element_len as u32], &bytes, bytes.len());
            let source = |at: usize| at % element_len * count + at / element_len;
            let expected = (0..whole).map(source).chain(whole..whole + rest);
            let expected: Vec<u8> = expected.map(|at| bytes[at]).collect();
            assert!(found == Ok(expected), "{count} of {element_len} and {rest}");
        }
    }
}

#[test]
fn significant_bits_are_put_to_their_places() {
    // Two elements of two bytes, with five bits from the third one on.
    let nbit = |order, stored: &[u8]| decoded(NBIT, &[8, 0, 2, 1, 2, order, 5, 3], stored, 4);
    let stored = [0b1000_1101, 0b1000_0000];
    assert_eq!(nbit(0, &stored), Ok(vec![0b1000_1000, 0, 0b1011_0000, 0]));
    assert_eq!(nbit(1, &stored), Ok(vec![0, 0b1000_1000, 0, 0b1011_0000]));
    assert_eq!(nbit(0, &[0]), Err("deflate"));
    // Records and invalid parameters have no filter.
    for parameters in [
        &[][..],
        &[8, 0, 2, 3, 8, 2],
        &[8, 0, 2, 1, 9, 0, 5, 3],
        &[8, 0, 2, 1, 2, 0, 0, 0],
        &[8, 0, 2, 1, 2, 0, 14, 3],
    ] {
        assert_eq!(decoded(NBIT, parameters, &[1, 2], 2), Err("unsupported"), "{parameters:?}");
    }
    assert_eq!(decoded(NBIT, &[8, 1, 2, 3, 8, 2], &[1, 2], 2), Ok(vec![1, 2]));
}

/// Chunks of zeros and of noise are in `conformance/corpus/hdf5/szip.h5`.
#[test]
fn invalid_parameters_of_szip_have_no_filter_and_truncated_chunks_no_values() {
    for parameters in [
        &[0, 8, 8][..],
        &[0, 7, 8, 16],
        &[0, 8, 0, 16],
        &[0, 8, 40, 16],
        &[0, 8, 8, 0],
        &[0, 8, 8, 5000],
    ] {
        assert_eq!(decoded(SZIP, parameters, &[0; 9], 4), Err("unsupported"), "{parameters:?}");
    }
    // One block without a code: the option 7, and four samples.
    let chunk = [4, 0, 0, 0, 0xE0, 0x20, 0x40, 0x60, 0x80];
    assert_eq!(decoded(SZIP, &[0, 4, 8, 4], &chunk, 4), Ok(vec![1, 2, 3, 4]));
    assert_eq!(decoded(SZIP, &[0, 4, 8, 4], &chunk[..8], 4), Err("deflate"));
    assert!(decoded(SZIP, &[0, 4, 8, 4], &chunk, 3).is_err());
}

#[test]
fn literals_and_copies_of_lzf_are_decompressed() {
    let lzf = |stored: &[u8], byte_len| decoded(LZF, &[], stored, byte_len);
    assert_eq!(lzf(&[2, 7, 8, 9], 3), Ok(vec![7, 8, 9]));
    // Two bytes, and six more from two bytes before.
    assert_eq!(lzf(&[1, 7, 8, 4 << 5, 1], 8), Ok(vec![7, 8, 7, 8, 7, 8, 7, 8]));
    assert_eq!(lzf(&[0, 7, 7 << 5, 255, 0], 265), Ok(vec![7; 1 + 264]));
    // Nine times 32 bytes, and the first three again: 288 bytes before.
    let bytes: Vec<u8> = (0..=250).cycle().take(288).collect();
    let pieces = bytes.chunks(32).map(|piece| [&[31], piece].concat());
    let stored = [pieces.collect::<Vec<_>>().concat(), vec![1 << 5 | 1, 0x1F]].concat();
    assert_eq!(lzf(&stored, 291), Ok([&bytes[..], &[0, 1, 2]].concat()));
    for (what, stored, byte_len) in [
        ("literals cut", &[2, 7, 8][..], 3),
        ("a copy cut", &[1 << 5], 3),
        ("a long copy cut", &[7 << 5, 1], 9),
        ("before the beginning", &[0, 7, 1 << 5, 1], 4),
    ] {
        assert_eq!(lzf(stored, byte_len), Err("deflate"), "{what}");
    }
    assert!(lzf(&stored, 290).is_err() && lzf(&stored, 292).is_err());
}

/// `bz2.compress(b"banana bandana", 1)` of Python.
const TEXT: &[u8] = &[
    0x42, 0x5A, 0x68, 0x31, 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, 0x7C, 0xD5, 0x83, 0x4B, 0x00, 0x00,
    0x03, 0x91, 0x00, 0x40, 0x00, 0x34, 0x01, 0x20, 0x00, 0x21, 0x29, 0xA6, 0xD0, 0x66, 0x82, 0x3C,
    0xA5, 0x5F, 0x0C, 0x2E, 0xE4, 0x8A, 0x70, 0xA1, 0x20, 0xF9, 0xAB, 0x06, 0x96,
];

#[test]
fn one_stream_of_bzip2_is_decompressed_up_to_the_limit() {
    let bzip2 = |stored: &[u8], byte_len| decoded(BZIP2, &[], stored, byte_len);
    assert_eq!(bzip2(TEXT, 14), Ok(b"banana bandana".to_vec()));
    assert_eq!(bzip2(&[TEXT, TEXT].concat(), 14), Ok(b"banana bandana".to_vec()));
    assert!(bzip2(TEXT, 13).is_err());
    for at in 1..TEXT.len() {
        assert_eq!(bzip2(&TEXT[..at], 14), Err("deflate"), "cut at {at}");
    }
}

#[test]
fn a_chunk_of_lz4_is_a_list_of_blocks() {
    let head =
        |byte_len: u8, block_len: u8| vec![0, 0, 0, 0, 0, 0, 0, byte_len, 0, 0, 0, block_len];
    let sized = |block: &[u8]| [&[0, 0, 0, block.len() as u8], block].concat();
    let lz4 = |stored: &[u8], byte_len| decoded(LZ4, &[], stored, byte_len);
    // A literal, a copy of 4 bytes from 1 byte before, and the end.
    let block = [0x10, 7, 1, 0, 0x00];
    let one = |byte_len, block: &[u8]| [head(byte_len, byte_len), sized(block)].concat();
    // A block as long as its content is not compressed.
    assert_eq!(lz4(&one(5, &block), 5), Ok(block.to_vec()));
    let long = [&[0x1F, 7, 1, 0, 0], &block[4..]].concat();
    assert_eq!(lz4(&one(20, &long), 20), Ok(vec![7; 20]));
    for len in [19, 21] {
        assert_eq!(lz4(&one(len, &long), len.into()), Err("deflate"), "{len}");
    }
    assert_eq!(lz4(&one(20, &long[..5]), 20), Err("deflate"));
    // An uncompressed block, and one of LZ4 that has a byte too many.
    let blocks = [0, 0, 0, 3, 1, 2, 3, 0, 0, 0, 6, 0x10, 7, 1, 0, 0, 9];
    let mut bytes = [head(4, 3), blocks[..7].to_vec(), vec![0, 0, 0, 1, 4]].concat();
    assert_eq!(lz4(&bytes, 4), Ok(vec![1, 2, 3, 4]));
    assert!(lz4(&bytes, 3).is_err());
    bytes.pop();
    assert_eq!(lz4(&bytes, 4), Err("deflate"), "cut");
    assert_eq!(lz4(&[head(8, 3), blocks.to_vec()].concat(), 8), Err("deflate"), "a block too long");
    assert_eq!(lz4(&head(4, 0), 4), Err("deflate"), "blocks of no bytes");
}

/// Bit by bit, as the format is described.
fn shuffled(bytes: &[u8], element_len: usize) -> Vec<u8> {
    let count = bytes.len() / element_len;
    let mut out = vec![0; bytes.len()];
    for (at, byte) in bytes.iter().enumerate() {
        let (element, place) = (at / element_len, at % element_len);
        for bit in 0..8 {
            let row = place * 8 + bit;
            out[row * count / 8 + element / 8] |= (byte >> bit & 1) << (element % 8);
        }
    }
    out
}

#[test]
fn shuffled_bits_come_back_to_their_elements() {
    for (element_len, count) in [(1, 8), (1, 64), (2, 16), (3, 8), (4, 128), (8, 40)] {
        let noise = (0..element_len * count).map(|at| (at * at * 37 + at * 11) as u8);
        let bytes: Vec<u8> = noise.collect();
        let stored = shuffled(&bytes, element_len);
        let parameters = [0, 5, element_len as u32, count as u32, 0];
        let found = decoded(BITSHUFFLE, &parameters, &stored, bytes.len());
        assert_eq!(found, Ok(bytes), "{count} of {element_len}");
    }
}

#[test]
fn blocks_of_bitshuffle_are_followed_by_less_than_eight_elements() {
    let bytes: Vec<u8> = (0..=250).cycle().take(2 * (16 + 8 + 3)).collect();
    let blocks = [shuffled(&bytes[..32], 2), shuffled(&bytes[32..48], 2), bytes[48..].to_vec()];
    let plain = |len| decoded(BITSHUFFLE, &[0, 5, 2, 16, 0], &blocks.concat(), len);
    assert_eq!(plain(54), Ok(bytes.clone()));
    assert!(plain(53).is_err());
    // LZ4 of literals alone.
    let sized = |block: &[u8]| {
        let stored = [&[0xF0, block.len() as u8 - 15], block].concat();
        [&[0, 0, 0, stored.len() as u8], &stored[..]].concat()
    };
    let head = [0, 0, 0, 0, 0, 0, 0, 54, 0, 0, 0, 32].to_vec();
    let stored = [head, sized(&blocks[0]), sized(&blocks[1]), blocks[2].clone()].concat();
    let lz4 = |stored: &[u8]| decoded(BITSHUFFLE, &[0, 5, 2, 0, 2], stored, 54);
    assert_eq!(lz4(&stored), Ok(bytes));
    assert_eq!(lz4(&stored[..stored.len() - 1]), Err("deflate"));
    for parameters in [&[0, 5, 0][..], &[0, 5, 4, 12], &[0, 5, 4, 0, 9]] {
        let found = decoded(BITSHUFFLE, parameters, &stored, 54);
        assert_eq!(found, Err("unsupported"), "{parameters:?}");
    }
    let huge = [0, 5, u32::MAX, u32::MAX - 7, 2];
    assert!(decoded(BITSHUFFLE, &huge, &[0; 12], 100).is_err());
}
