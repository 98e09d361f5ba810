//! Base64 with padding: RFC 4648 §4.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at: usize| group.get(at).copied().unwrap_or(0);
        let bits = u32::from_be_bytes([0, byte(0), byte(1), byte(2)]);
        for at in 0..4 {
            let digit = (bits >> (18 - 6 * at)) as usize & 63;
            let is_padding = at > group.len();
            text.push(if is_padding { '=' } else { DIGITS[digit].into() });
        }
    }
    text
}

/// `None` for a text that is not base64 with padding.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    if !text.len().is_multiple_of(4) || text.len() - digits.len() > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for group in digits.as_bytes().chunks(4) {
        let mut bits = 0u32;
        for at in 0..4 {
            let digit = group.get(at).unwrap_or(&b'A');
            let value = DIGITS.iter().position(|known| known == digit)?;
            bits = bits << 6 | u32::try_from(value).ok()?;
        }
        let [_, three @ ..] = bits.to_be_bytes();
        bytes.extend(three.iter().take(group.len() - 1));
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};

    #[test]
    fn bytes_are_encoded_and_decoded() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"f", "Zg=="),
            (b"fo", "Zm8="),
            (b"foobar", "Zm9vYmFy"),
            (b"\xfb\xff\xfe", "+//+"),
        ] {
            assert_eq!(encode(bytes), text);
            assert_eq!(decode(text).as_deref(), Some(bytes));
        }
        for text in ["Zg", "Zg=", "=", "====", "Z===", "Zm9=v", "Zm9*"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
