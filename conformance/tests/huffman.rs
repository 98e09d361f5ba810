//! Chunks of `zt.planes/2`, read by the decoder that was written from the page alone.

use proptest::prelude::*;
use zt_conformance::fuzz;

proptest! {
    #[test]
    fn the_naive_decoder_reads_our_chunks(
        symbols in prop::collection::vec(prop_oneof![8 => 0..3u8, 3 => 0..20u8, 1 => any::<u8>()], 1..4000),
    ) {
        fuzz::agree_on_chunk(&symbols);
    }

    #[test]
    fn both_decoders_agree_on_any_chunk(
        count in 0..300u16, kind in 0..4u8, rest in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        fuzz::huffman(&[&count.to_le_bytes()[..], &[kind], &rest].concat());
    }

    /// A complete code of four symbols, and streams of any bits.
    #[test]
    fn both_decoders_agree_on_any_streams(
        count in 0..300u16,
        ends in [0..9u8, 0..9, 0..9],
        streams in prop::collection::vec(prop_oneof![any::<u8>(), Just(0)], 0..90),
        zero in prop::bool::weighted(0.9),
    ) {
        let mut lengths = [0u8; 128];
        lengths[1..3].copy_from_slice(&[0x21, 0x33]);
        let mut chunk = [&count.to_le_bytes()[..], &[2], &lengths].concat();
        chunk.extend(ends.iter().flat_map(|len| u32::from(*len).to_le_bytes()));
        chunk.extend(&streams);
        chunk.extend([u8::from(!zero), 0, 0, 0, 0, 0, 0, 0]);
        fuzz::huffman(&chunk);
    }
}
