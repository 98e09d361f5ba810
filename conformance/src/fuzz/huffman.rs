//! Chunks of `zt.planes/2` that a stranger wrote.

use zt::formats::{HuffmanDecoder, HuffmanEncoder};

use crate::naive::decode_chunk;

/// A number of symbols, and a chunk. Our decoder and the naive one agree: the chunk is refused, or gives
/// symbols that our own chunk gives again.
pub fn huffman(bytes: &[u8]) {
    let [low, high, chunk @ ..] = bytes else {
        return;
    };
    let count = usize::from(u16::from_le_bytes([*low, *high]));
    let mut symbols = vec![0xaa; count];
    let decoded = HuffmanDecoder::new().decode(chunk, &mut symbols);
    let expected = decode_chunk(chunk, count);
    assert_eq!(decoded.ok().map(|()| &symbols), expected.as_ref());
    if let Some(symbols) = expected {
        agree(&symbols);
    }
}

/// Codes the symbols, and decodes them with both decoders.
pub fn agree(symbols: &[u8]) {
    if symbols.is_empty() {
        return;
    }
    let mut chunk = Vec::new();
    let len = HuffmanEncoder::new().expect("memory").encode(symbols, &mut chunk);
    assert!(len as usize == chunk.len() && chunk.len() <= symbols.len() + 1);
    let mut again = vec![0xaa; symbols.len()];
    HuffmanDecoder::new().decode(&chunk, &mut again).expect("our own chunk");
    assert_eq!(again, symbols);
    assert_eq!(decode_chunk(&chunk, symbols.len()).as_deref(), Some(symbols));
}
