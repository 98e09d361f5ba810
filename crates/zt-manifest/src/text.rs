//! Texts that borrow the few words that a manifest repeats, such as `dense` and `data`.

use std::borrow::Cow;

use crate::dtype::DType;

/// A text that needs no allocation if it is one of the specification's words.
pub type Text = Cow<'static, str>;

/// The specification's formats, roles, logical types and encodings. A word that is missing here only
/// costs an allocation.
#[rustfmt::skip]
const WORDS: [&str; 22] = [
    "dense", "data", "sparse_csr", "values", "indices", "indptr", "sparse_coo", "coords",
    "quantized_group", "packed_weight", "scales", "zeros", "quantized_4bit", "scale", "zero_point",
    "raw", "zstd", "f8_e4m3fn", "f8_e5m2", "complex64", "complex128", "little",
];

/// `word`, without an allocation if it is a known one.
pub(crate) fn intern(word: &str) -> Text {
    let known = WORDS.iter().find(|known| **known == word);
    if let Some(known) = known {
        return Cow::Borrowed(known);
    }
    let dtype = DType::from_name(word).map(DType::as_str);
    match dtype.or_else(|| DType::from_long_name(word).map(DType::as_long_str)) {
        Some(name) => Cow::Borrowed(name),
        None => Cow::Owned(word.to_owned()),
    }
}
