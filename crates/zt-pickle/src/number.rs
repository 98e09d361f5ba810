//! Numbers and texts, including those of the older protocols: decimal, quoted, escaped.

use std::borrow::Cow;

use crate::fault::PickleFault;
use crate::heap::{Node, Value};

/// A little-endian integer in two's complement: small if it fits.
pub(super) fn long<G>(bytes: &[u8]) -> Result<Value<G>, Node<'_, G>> {
    let (bytes, sign) = shortest(bytes);
    let mut word = [sign; 8];
    match word.get_mut(..bytes.len()) {
        Some(low) => {
            low.copy_from_slice(bytes);
            Ok(Value::Int(i64::from_le_bytes(word)))
        }
        None => Err(Node::Long(Cow::Borrowed(bytes))),
    }
}

/// The shortest bytes of the same number, and the byte that extends its sign.
fn shortest(mut bytes: &[u8]) -> (&[u8], u8) {
    let sign = match bytes.last() {
        Some(top) if *top >= 0x80 => 0xff,
        _ => 0,
    };
    while let [fewer @ .., top] = bytes
        && *top == sign
        && fewer.last().is_some_and(|below| (*below >= 0x80) == (sign != 0))
    {
        bytes = fewer;
    }
    (bytes, sign)
}

/// A decimal integer of at most 128 bits. Longer ones take quadratic time, and only protocols 0
/// and 1 write them.
pub(super) fn decimal<G>(text: &str) -> Result<Result<Value<G>, Node<'static, G>>, PickleFault> {
    // Python 2 appends an L to a long integer.
    let text = text.strip_suffix('L').unwrap_or(text);
    if let Ok(value) = text.parse() {
        return Ok(Ok(Value::Int(value)));
    }
    let value: i128 = text.parse().map_err(|_| PickleFault::Number)?;
    let bytes = value.to_le_bytes();
    Ok(Err(Node::Long(Cow::Owned(shortest(&bytes).0.to_vec()))))
}

/// A float in decimal, as Python writes it.
pub(super) fn float<G>(text: &str) -> Result<Value<G>, PickleFault> {
    let value = text.trim().parse().map_err(|_| PickleFault::Number)?;
    Ok(Value::Float(value))
}

/// A text. Python writes a lone surrogate in three bytes (`surrogatepass`): a file name that is not
/// UTF-8 has some.
pub(super) fn text<G>(bytes: Cow<'_, [u8]>) -> Result<Node<'_, G>, PickleFault> {
    let bytes = match utf_8(bytes) {
        Ok(text) => return Ok(Node::Text(text)),
        Err(bytes) => bytes,
    };
    let is_whole = pieces(&bytes).all(|piece| piece.is_ok());
    is_whole.then_some(()).ok_or(PickleFault::NotUtf8)?;
    Ok(Node::Halves(bytes))
}

/// The parts of [`Node::Halves`]: texts, each with the lone surrogate that follows it, if any.
/// An error holds the bytes that are neither.
pub fn pieces(bytes: &[u8]) -> impl Iterator<Item = Result<(&str, Option<u16>), &[u8]>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let valid = match std::str::from_utf8(rest) {
            Ok(text) => {
                rest = &[];
                return Some(Ok((text, None)));
            }
            Err(error) => error.valid_up_to(),
        };
        let (text, behind) = rest.split_at_checked(valid)?;
        let [0xED, high @ 0xA0..=0xBF, low @ 0x80..=0xBF, behind @ ..] = behind else {
            let broken = rest;
            rest = &[];
            return Some(Err(broken));
        };
        // Six bits of each byte, below the four bits of the first.
        let half = 0xD000 | u16::from(high & 0x3F).wrapping_shl(6) | u16::from(low & 0x3F);
        rest = behind;
        #[expect(clippy::expect_used, reason = "`valid_up_to` ends it")]
        let text = std::str::from_utf8(text).expect("valid up to here");
        Some(Ok((text, Some(half))))
    })
}

/// A `str` of Python 2: a text if it is UTF-8, as torch decodes it, and bytes otherwise.
pub(super) fn text_or_bytes<G>(bytes: Cow<'_, [u8]>) -> Node<'_, G> {
    utf_8(bytes).map_or_else(Node::Bytes, Node::Text)
}

/// The text, or the same bytes if they are not UTF-8.
fn utf_8(bytes: Cow<'_, [u8]>) -> Result<Cow<'_, str>, Cow<'_, [u8]>> {
    match bytes {
        Cow::Borrowed(bytes) => str::from_utf8(bytes).map(Cow::Borrowed).map_err(|_| bytes.into()),
        Cow::Owned(bytes) => {
            let text = String::from_utf8(bytes);
            text.map(Cow::Owned).map_err(|error| error.into_bytes().into())
        }
    }
}

/// The quoted operand of `STRING`, without its escapes.
pub(super) fn quoted(line: &[u8]) -> Result<Vec<u8>, PickleFault> {
    let inner = match line {
        [b'\'', inner @ .., b'\''] | [b'"', inner @ .., b'"'] => inner,
        _ => return Err(PickleFault::Number),
    };
    let mut bytes = Vec::new();
    let mut rest = inner.iter().copied();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next().ok_or(PickleFault::Number)? {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'x' => {
                let code = hexadecimal(&mut rest, 2)?;
                u8::try_from(code).map_err(|_| PickleFault::Number)?
            }
            same @ (b'\\' | b'\'' | b'"') => same,
            _ => return Err(PickleFault::Number),
        });
    }
    Ok(bytes)
}

/// The operand of `UNICODE` in UTF-8: Latin-1, with `\u` and `\U` for other characters.
pub(super) fn raw_unicode(line: &[u8]) -> Result<Vec<u8>, PickleFault> {
    let mut text = Vec::new();
    let push = |text: &mut Vec<u8>, character: char| {
        text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    };
    let mut rest = line.iter().copied();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            push(&mut text, char::from(byte));
            continue;
        }
        let mut ahead = rest.clone();
        let digits = match ahead.next() {
            Some(b'u') => 4,
            Some(b'U') => 8,
            // No other escape exists here.
            _ => {
                text.push(b'\\');
                continue;
            }
        };
        rest = ahead;
        let code = hexadecimal(&mut rest, digits)?;
        match (char::from_u32(code), code) {
            (Some(character), _) => push(&mut text, character),
            (None, 0xD800..=0xDFFF) => {
                let [_, _, high, low] = code.to_be_bytes();
                let middle = high.wrapping_shl(2) & 0x3F | low.wrapping_shr(6);
                text.extend_from_slice(&[0xED, 0x80 | middle, 0x80 | low & 0x3F]);
            }
            (None, _) => return Err(PickleFault::NotUtf8),
        }
    }
    Ok(text)
}

fn hexadecimal(bytes: &mut impl Iterator<Item = u8>, digits: usize) -> Result<u32, PickleFault> {
    let mut code = 0u32;
    for _ in 0..digits {
        let digit = bytes.next().and_then(|byte| char::from(byte).to_digit(16));
        // At most eight digits of four bits.
        code = code.wrapping_shl(4) | digit.ok_or(PickleFault::Number)?;
    }
    Ok(code)
}
