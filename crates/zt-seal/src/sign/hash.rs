//! SHA-256 of bytes, and digests as hexadecimal text.

use std::fmt::Write;

use zt::container::Hasher;
use zt::{Digest, DigestAlgorithm, Result};

use crate::tree::Sum;

/// The SHA-256 of all parts, one behind the other.
pub(super) fn sha256(parts: &[&[u8]]) -> Result<Sum> {
    let mut hasher = Hasher::new(DigestAlgorithm::Sha256)?;
    for part in parts {
        hasher.update(part);
    }
    match hasher.finish() {
        Digest::Sha256(sum) => Ok(sum),
        _ => Ok([0; 32]), // Unreachable: the hasher was made for SHA-256.
    }
}

/// In lower case.
pub(super) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// 64 digits in lower case.
pub(super) fn from_hex(text: &str) -> Option<Sum> {
    let is_hex = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if text.len() != 64 || !text.as_bytes().iter().all(is_hex) {
        return None;
    }
    let mut sum = [0; 32];
    for (byte, digits) in sum.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(sum)
}

/// A digest in JSON.
pub(super) mod hex {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::tree::Sum;

    pub(in crate::sign) fn serialize<S: Serializer>(sum: &Sum, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&super::to_hex(sum))
    }

    pub(in crate::sign) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Sum, D::Error> {
        let text = String::deserialize(from)?;
        super::from_hex(&text).ok_or_else(|| D::Error::custom("not 64 hexadecimal digits"))
    }
}

/// A digest in JSON, which may be absent.
pub(super) mod hex_option {
    use serde::{Deserializer, Serializer};

    use crate::tree::Sum;

    #[expect(clippy::ref_option, reason = "serde calls it so")]
    pub(in crate::sign) fn serialize<S: Serializer>(
        sum: &Option<Sum>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match sum {
            Some(sum) => super::hex::serialize(sum, to),
            None => to.serialize_none(),
        }
    }

    pub(in crate::sign) fn deserialize<'d, D: Deserializer<'d>>(
        from: D,
    ) -> Result<Option<Sum>, D::Error> {
        super::hex::deserialize(from).map(Some)
    }
}
