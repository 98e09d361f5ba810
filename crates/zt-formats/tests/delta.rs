//! The coding of changes: every array comes back, and no code makes it fail in another way than by an
//! error.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is the failure of the test")]

use proptest::prelude::*;
use zt_formats::{DType, DeltaCodec, DeltaFault};

/// Two arrays of one length: bytes that change often, seldom or not at all.
fn arrays() -> impl Strategy<Value = (DType, Vec<u8>, Vec<u8>)> {
    let dtype = prop::sample::select(DType::ALL.to_vec());
    let bytes = prop::collection::vec(any::<u8>(), 0..400);
    (dtype, bytes, 0..20u8, any::<u64>()).prop_map(|(dtype, mut base, rarity, seed)| {
        base.truncate(base.len() / dtype.byte_len() * dtype.byte_len());
        let mut new = base.clone();
        let mut state = seed | 1;
        for (at, byte) in new.iter_mut().enumerate() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if (state >> 33) % 20 < u64::from(rarity) / (1 + at as u64 % 3) {
                *byte = (state >> 56) as u8;
            }
        }
        (dtype, base, new)
    })
}

proptest! {
    #[test]
    fn gives_the_new_values_back((dtype, base, new) in arrays()) {
        let codec = DeltaCodec::new(dtype);
        let code = codec.encode(&base, &new);
        prop_assert!(code.len() <= new.len() + 1);
        prop_assert_eq!(code.is_empty(), base == new);
        let mut values = base;
        codec.apply(&code, &mut values).unwrap();
        prop_assert_eq!(values, new);
    }

    #[test]
    fn refuses_a_code_that_is_cut_or_has_more_bytes((dtype, base, new) in arrays()) {
        let codec = DeltaCodec::new(dtype);
        let code = codec.encode(&base, &new);
        prop_assume!(!code.is_empty());
        for len in 1..code.len() {
            prop_assert!(codec.apply(&code[..len], &mut base.clone()).is_err());
        }
        let longer = [&code[..], &[0]].concat();
        prop_assert!(codec.apply(&longer, &mut base.clone()).is_err());
    }

    #[test]
    fn any_bytes_are_applied_or_refused(
        (dtype, base, _) in arrays(),
        code in prop::collection::vec(any::<u8>(), 0..300),
        method in 0..4u8,
    ) {
        let mut code = code;
        if let Some(first) = code.first_mut() {
            *first = method;
        }
        let codec = DeltaCodec::new(dtype);
        let _ = codec.apply(&code, &mut base.clone());
    }
}

/// The example of the specification's page.
#[test]
fn the_code_of_the_page() {
    let codec = DeltaCodec::new(DType::U8);
    let code = codec.encode(&[5, 5, 5, 5], &[5, 5, 7, 5]);
    assert_eq!(code, [0x00, 0x11, 0x14, 0x54]);
    let mut values = [5, 5, 5, 5];
    codec.apply(&code, &mut values).unwrap();
    assert_eq!(values, [5, 5, 7, 5]);
}

#[test]
fn each_fault_is_named() {
    let mut values = [5u8; 4];
    let mut apply = |code: &[u8]| DeltaCodec::new(DType::U8).apply(code, &mut values);
    assert_eq!(apply(&[3, 0]), Err(DeltaFault::Method));
    // Integers have no exponents.
    assert_eq!(apply(&[1, 0]), Err(DeltaFault::Method));
    // 5 changes of 4 elements.
    assert_eq!(apply(&[0, 0b101, 0, 0]), Err(DeltaFault::Count));
    // A change, with gaps of 18 bits.
    assert_eq!(apply(&[0, 0b1001_0001, 0, 0]), Err(DeltaFault::Parameter));
    assert_eq!(apply(&[2, 1, 2, 3]), Err(DeltaFault::Length));
    assert_eq!(apply(&[2, 1, 2, 3, 4, 5]), Err(DeltaFault::Length));
    assert_eq!(apply(&[0, 1]), Err(DeltaFault::Length));
    // A change of the first element by 1, with plain codes of no bits, and then a byte too many.
    assert_eq!(apply(&[0, 1, 4, 4, 0]), Err(DeltaFault::Length));
    // A gap of 4 elements, in 3 plain bits.
    assert_eq!(apply(&[0, 0x19, 0x04, 0x24]), Err(DeltaFault::Gap));
    // A step of 2^8, as a quotient of 2 with a parameter of 7.
    assert_eq!(apply(&[0, 0x01, 0x3c, 0x18, 0]), Err(DeltaFault::Size));
}

#[test]
fn codes_of_random_changes_are_near_their_entropy() {
    let count = DeltaCodec::STRETCH;
    for (one_in, most) in [(100, 0.93), (33, 0.93)] {
        let (mut state, mut changed) = (9u64, 0);
        let mut base = Vec::with_capacity(count * 2);
        let mut new = Vec::with_capacity(count * 2);
        for _ in 0..count {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // bf16 of some exponents.
            let old = 0x3c00 + (state >> 40 & 0x1ff) as u16;
            let is_changed = (state >> 33).is_multiple_of(one_in);
            changed += usize::from(is_changed);
            let step = if state >> 63 == 0 { 1 } else { u16::MAX };
            base.extend(old.to_le_bytes());
            let value = old.wrapping_add(step * u16::from(is_changed));
            new.extend(value.to_le_bytes());
        }
        let share = changed as f64 / count as f64;
        let entropy = -share * share.log2() - (1.0 - share) * (1.0 - share).log2();
        let bound = (count as f64 * entropy + 2.0 * changed as f64) / 8.0;
        let code = DeltaCodec::new(DType::BF16).encode(&base, &new);
        let ratio = code.len() as f64 / bound;
        assert!(ratio < most, "{ratio} for one in {one_in}");
    }
}
