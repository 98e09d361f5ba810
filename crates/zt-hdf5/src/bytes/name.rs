//! Names as text. By its specification HDF5 has names in ASCII or UTF-8, but it writes any bytes
//! except zero.
//!
//! A byte that is not UTF-8 becomes an escape such as `\xE9`. So does a backslash that looks like the
//! beginning of one, so that different names never become the same text.

use std::fmt::Write as _;

use zt::Warning;

/// A name in which only such bytes are escaped.
pub(crate) fn text(name: &[u8]) -> String {
    escaped(name, |_| false)
}

/// A name that is part of a path. A slash is escaped; the HDF5 library writes none.
pub(crate) fn part(name: &[u8]) -> String {
    escaped(name, |char| char == '/')
}

fn escaped(name: &[u8], is_special: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(name.len());
    let escape = |out: &mut String, byte: u8| {
        // Writing to a string does not fail.
        let _ = write!(out, "\\x{byte:02X}");
    };
    for chunk in name.utf8_chunks() {
        let valid = chunk.valid();
        for (at, char) in valid.char_indices() {
            let (_, rest) = valid.as_bytes().split_at(at);
            match u8::try_from(char) {
                Ok(byte) if is_special(char) || is_escape(rest) => escape(&mut out, byte),
                _ => out.push(char),
            }
        }
        for byte in chunk.invalid() {
            escape(&mut out, *byte);
        }
    }
    out
}

/// Whether text begins like an escape.
fn is_escape(text: &[u8]) -> bool {
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'A'..=b'F');
    match text {
        [b'\\', b'x', high, low, ..] => is_digit(high) && is_digit(low),
        _ => false,
    }
}

/// The code of warnings about escaped names.
pub(crate) const CODE: &str = "name";

pub(crate) fn escaped_message(name: &str) -> String {
    format!("the name \"{name}\" is escaped: it is not UTF-8, or looks like an escape")
}

/// The warning about an escaped name.
pub(crate) fn renamed(object: Option<&str>, name: &str) -> Warning {
    let mut warning = Warning::new(CODE, escaped_message(name));
    warning.object = object.map(ToOwned::to_owned);
    warning
}
