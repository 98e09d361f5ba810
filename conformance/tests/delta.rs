//! Codes of `zt.delta/1`, read by the decoder that was written from the page alone.

use proptest::prelude::*;
use zt::DType;
use zt_conformance::fuzz;

proptest! {
    #[test]
    fn the_naive_decoder_reads_our_codes(
        dtype in prop::sample::select(DType::ALL.to_vec()),
        old in prop::collection::vec(any::<u8>(), 0..3000),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..300),
    ) {
        let old = &old[..old.len() / dtype.byte_len() * dtype.byte_len()];
        let mut new = old.to_vec();
        for (place, value) in changes {
            if !new.is_empty() {
                let place = place.index(new.len());
                // Steps are more frequent than other values.
                new[place] = if value < 200 { new[place] ^ 1 } else { value };
            }
        }
        fuzz::agree_on_delta(dtype, old, &new);
    }

    #[test]
    fn both_decoders_agree_on_any_code(
        head in (any::<u8>(), 0..40u8, 0..4u8),
        values in prop::collection::vec(any::<u8>(), 320),
        code in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let (dtype, len, method) = head;
        let width = DType::ALL[usize::from(dtype) % DType::ALL.len()].byte_len();
        let old = &values[..usize::from(len) * width];
        let input = [&[dtype, len], old, &[method], &code].concat();
        fuzz::delta(&input);
    }
}
