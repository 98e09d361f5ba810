//! Codes of `zt.delta/1` that a stranger wrote.

use zt::DType;
use zt::formats::DeltaCodec;

use crate::naive::apply_delta;

/// A dtype, a length, old values and a code. Our decoder and the naive one agree: the code is refused, or
/// gives values that our own code gives again.
pub fn delta(bytes: &[u8]) {
    let [dtype, len, rest @ ..] = bytes else {
        return;
    };
    let dtype = DType::ALL[usize::from(*dtype) % DType::ALL.len()];
    let len = usize::from(*len) * dtype.byte_len();
    let Some((old, code)) = rest.split_at_checked(len) else {
        return;
    };
    let mut new = old.to_vec();
    let applied = DeltaCodec::new(dtype).apply(code, &mut new);
    let expected = naive(dtype, old, code);
    assert_eq!(applied.ok().map(|()| &new), expected.as_ref());
    if let Some(new) = expected {
        agree(dtype, old, &new);
    }
}

/// Codes the change from `old` to `new`, and applies it with both decoders.
pub fn agree(dtype: DType, old: &[u8], new: &[u8]) {
    let codec = DeltaCodec::new(dtype);
    let code = codec.encode(old, new);
    assert!(code.len() <= new.len() + 1);
    let mut again = old.to_vec();
    codec.apply(&code, &mut again).expect("our own code");
    assert_eq!(again, new);
    assert_eq!(naive(dtype, old, &code).as_deref(), Some(new));
}

fn naive(dtype: DType, old: &[u8], code: &[u8]) -> Option<Vec<u8>> {
    let width = dtype.byte_len();
    let mantissa = match dtype {
        DType::F64 => Some(52),
        DType::F32 => Some(23),
        DType::F16 => Some(10),
        DType::BF16 => Some(7),
        _ => None,
    };
    let words = old.chunks(width).map(|bytes| {
        let mut word = [0; 8];
        word[..width].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    });
    let words: Vec<u64> = words.collect();
    let new = apply_delta(u32::try_from(width).expect("small"), mantissa, &words, code)?;
    let bytes = new.iter().flat_map(|word| word.to_le_bytes().into_iter().take(width));
    Some(bytes.collect())
}
