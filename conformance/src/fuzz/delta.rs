//! Codes of `zt.delta/1` that a stranger wrote.

use zt::DType;
use zt::formats::DeltaCodec;

/// A dtype, a length, old values and a code. The code is refused, or its result has a code of its own that
/// gives the same values.
pub fn delta(bytes: &[u8]) {
    let [dtype, len, rest @ ..] = bytes else {
        return;
    };
    let dtype = DType::ALL[usize::from(*dtype) % DType::ALL.len()];
    let len = usize::from(*len) * dtype.byte_len();
    let Some((old, code)) = rest.split_at_checked(len) else {
        return;
    };
    let codec = DeltaCodec::new(dtype);
    let mut new = old.to_vec();
    if codec.apply(code, &mut new).is_err() {
        return;
    }
    let mut again = old.to_vec();
    let ours = codec.encode(old, &new);
    codec.apply(&ours, &mut again).expect("our own code");
    assert_eq!(again, new);
    assert!(ours.len() <= new.len() + 1);
}
