//! Deterministic CBOR. Spec: RFC 8949 §4.2.1: shortest heads, definite lengths, and every map
//! sorted by the bytes of its encoded keys. Floats take the shortest width that keeps value and,
//! for a NaN, payload.

use std::fmt::{self, Write};

use super::cursor::Head;
use super::float::push_float;
use super::{MAX_KEY_LEN, MAX_NESTING};
use crate::attributes::Attributes;
use crate::error::Misuse;
use crate::value::Value;

/// Writes CBOR items to `out`.
#[derive(Debug, Default)]
pub(crate) struct Encoder {
    pub(crate) out: Vec<u8>,
    /// The pairs of every open map, those in the innermost map last.
    pairs: Vec<Pair>,
    /// A buffer for [`Encoder::display`].
    displayed: String,
}

/// Where a key begins, and where its value does.
pub(super) type Pair = (usize, usize);

/// An open map: the position of its first pair among the encoder's pairs. A map within it must end before
/// its next key.
#[derive(Debug)]
pub(crate) struct Pairs(usize);

/// The limit on nesting for bytes that are only compared: none, so that every value can be compared.
const NONE: usize = usize::MAX;

impl Encoder {
    #[inline]
    pub(crate) fn head(&mut self, head: Head) {
        push(&mut self.out, head);
    }

    #[inline]
    pub(crate) fn text(&mut self, text: &str) {
        self.head(Head::Text(Some(text.len())));
        self.out.extend_from_slice(text.as_bytes());
    }

    pub(crate) fn display(&mut self, value: &impl fmt::Display) {
        let mut text = std::mem::take(&mut self.displayed);
        text.clear();
        // A string takes every write.
        let _ = write!(text, "{value}");
        self.text(&text);
        self.displayed = text;
    }

    /// Begins a map of `len` pairs in any order. A pair is an [`Encoder::key`] and a value.
    pub(crate) fn begin_map(&mut self, len: usize) -> Pairs {
        self.head(Head::Map(Some(len)));
        self.begin_pairs()
    }

    /// Begins further pairs of a map whose head was written elsewhere.
    pub(crate) fn begin_pairs(&self) -> Pairs {
        Pairs(self.pairs.len())
    }

    /// Writes a text as the next key.
    #[inline]
    pub(crate) fn key(&mut self, key: &str) {
        let start = self.out.len();
        self.text(key);
        self.pairs.push((start, self.out.len()));
    }

    /// Writes pairs of values.
    pub(crate) fn values<'v>(
        &mut self,
        pairs: impl IntoIterator<Item = (&'v Value, &'v Value)>,
        depth: usize,
        limit: usize,
    ) -> Result<(), Misuse> {
        for (key, value) in pairs {
            let start = self.out.len();
            self.value(key, depth, limit)?;
            let value_start = self.out.len();
            let has_parts = matches!(key, Value::Array(_) | Value::Map(_) | Value::Tag(..));
            let is_long = value_start.strict_sub(start) > MAX_KEY_LEN;
            if has_parts && is_long && limit != NONE {
                return Err(Misuse::Key { limit: MAX_KEY_LEN });
            }
            self.pairs.push((start, value_start));
            self.value(value, depth, limit)?;
        }
        Ok(())
    }

    /// Ends a map and sorts its pairs.
    pub(crate) fn end_map(&mut self, Pairs(first): Pairs) {
        let pairs = self.pairs.get(first..).unwrap_or_default();
        sort_pairs(&mut self.out, pairs);
        self.pairs.truncate(first);
    }

    /// Ends a map whose keys were written in order.
    pub(crate) fn end_sorted(&mut self, Pairs(first): Pairs) {
        self.pairs.truncate(first);
    }

    /// Drops everything behind the first `len` bytes, which are whole items, and all open maps.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.out.truncate(len);
        self.pairs.clear();
    }

    /// Writes a map that lies within `depth` other items.
    pub(crate) fn map(
        &mut self,
        map: &Attributes,
        depth: usize,
        limit: usize,
    ) -> Result<(), Misuse> {
        let depth = enter(depth, limit)?;
        let pairs = self.begin_map(map.len());
        self.values(map, depth, limit)?;
        self.end_map(pairs);
        Ok(())
    }

    /// Writes a value that lies within `depth` other items. Refuses nesting beyond `limit`.
    pub(crate) fn value(
        &mut self,
        value: &Value,
        depth: usize,
        limit: usize,
    ) -> Result<(), Misuse> {
        match value {
            Value::Unsigned(value) => self.head(Head::Unsigned(*value)),
            Value::Negative(value) => self.head(Head::Negative(*value)),
            Value::Bytes(bytes) => {
                self.head(Head::Bytes(Some(bytes.len())));
                self.out.extend_from_slice(bytes);
            }
            Value::Text(text) => self.text(text),
            Value::Array(items) => {
                let depth = enter(depth, limit)?;
                self.head(Head::Array(Some(items.len())));
                match items.encoded() {
                    Some(bytes) => self.out.extend_from_slice(bytes),
                    None => (items.iter()).try_for_each(|item| self.value(item, depth, limit))?,
                }
            }
            Value::Map(map) => self.map(map, depth, limit)?,
            Value::Tag(tag, value) => {
                let depth = enter(depth, limit)?;
                self.head(Head::Tag(*tag));
                self.value(value, depth, limit)?;
            }
            Value::Bool(false) => self.head(Head::Simple(20)),
            Value::Bool(true) => self.head(Head::Simple(21)),
            Value::Null => self.head(Head::Simple(22)),
            Value::Undefined => self.head(Head::Simple(23)),
            // No other value has these bytes, because they are not well-formed.
            Value::Simple(value @ 20..=31) if limit == NONE => self.out.extend([0xF8, *value]),
            Value::Simple(value @ 20..=31) => return Err(Misuse::Simple(*value)),
            Value::Simple(value) => self.head(Head::Simple(*value)),
            Value::Float(value) => self.head(Head::Float(*value)),
        }
        Ok(())
    }
}

impl Value {
    /// The deterministic encoding (RFC 8949 §4.2.1): equal values give equal bytes.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Misuse`]: nesting beyond [`MAX_NESTING`], a key with parts beyond [`MAX_KEY_LEN`], or
    /// an invalid simple value.
    pub fn to_cbor(&self) -> crate::error::Result<Vec<u8>> {
        let mut encoder = Encoder::default();
        encoder.value(self, 0, MAX_NESTING)?;
        Ok(encoder.out)
    }

    /// Bytes that are equal if and only if the values are. For a value that [`Value::to_cbor`] can encode,
    /// they are its bytes.
    pub(crate) fn compared(&self) -> Vec<u8> {
        let mut encoder = Encoder::default();
        // Without a limit, the encoder refuses nothing.
        let _ = encoder.value(self, 0, NONE);
        encoder.out
    }
}

impl Attributes {
    /// The deterministic encoding, as [`Value::to_cbor`].
    ///
    /// # Errors
    ///
    /// As [`Value::to_cbor`].
    pub fn to_cbor(&self) -> crate::error::Result<Vec<u8>> {
        let mut encoder = Encoder::default();
        encoder.map(self, 0, MAX_NESTING)?;
        Ok(encoder.out)
    }

    /// As [`Value::compared`].
    pub(crate) fn compared(&self) -> Vec<u8> {
        let mut encoder = Encoder::default();
        let _ = encoder.map(self, 0, NONE);
        encoder.out
    }
}

fn enter(depth: usize, limit: usize) -> Result<usize, Misuse> {
    if depth < limit { Ok(depth.strict_add(1)) } else { Err(Misuse::Nesting { limit }) }
}

/// Sorts pairs by the bytes of their keys. Returns the position of a pair whose key is a duplicate of an
/// earlier one, if there is one. Pairs that are sorted already are not moved.
pub(super) fn sort_pairs(out: &mut Vec<u8>, pairs: &[Pair]) -> Option<usize> {
    let bytes = |start: usize, end: usize| out.get(start..end).unwrap_or_default();
    let &(first, _) = pairs.first()?;
    if pairs.is_sorted_by(|a, b| bytes(a.0, a.1) < bytes(b.0, b.1)) {
        return None;
    }
    // A pair ends where the next one begins.
    let ends = pairs.iter().skip(1).map(|&(next, _)| next);
    let whole = pairs.iter().zip(ends.chain([out.len()])).zip(0..);
    let whole =
        whole.map(|((&(key, value), end), place)| (bytes(key, value), bytes(key, end), place));
    let mut whole: Vec<_> = whole.collect();
    whole.sort_by_key(|&(key, ..)| key);
    let repeated = whole.windows(2).find_map(|pair| match pair {
        [(a, ..), (b, _, place)] if a == b => Some(*place),
        _ => None,
    });
    let mut sorted = Vec::with_capacity(out.len().strict_sub(first));
    for (_, pair, _) in whole {
        sorted.extend_from_slice(pair);
    }
    out.truncate(first);
    out.append(&mut sorted);
    repeated
}

/// Writes a head in its shortest form. Spec: RFC 8949 §3.
#[inline]
pub(super) fn push(out: &mut Vec<u8>, head: Head) {
    match head {
        Head::Unsigned(value) => argument(out, 0x00, value),
        Head::Negative(value) => argument(out, 0x20, value),
        Head::Bytes(len) => length(out, 0x40, len),
        Head::Text(len) => length(out, 0x60, len),
        Head::Array(len) => length(out, 0x80, len),
        Head::Map(len) => length(out, 0xA0, len),
        Head::Tag(tag) => argument(out, 0xC0, tag),
        Head::Simple(value) => argument(out, 0xE0, value.into()),
        Head::Float(value) => push_float(out, value),
        Head::Break => out.push(0xFF),
    }
}

#[inline]
fn length(out: &mut Vec<u8>, major: u8, len: Option<usize>) {
    match len {
        Some(len) => argument(out, major, len as u64),
        None => out.push(major | 31),
    }
}

#[inline]
fn argument(out: &mut Vec<u8>, major: u8, value: u64) {
    // Most heads are one byte long, and most of these are known when this is compiled.
    if let Ok(short @ 0..=23) = u8::try_from(value) {
        return out.push(major | short);
    }
    match value.to_be_bytes() {
        [0, 0, 0, 0, 0, 0, 0, a] => out.extend_from_slice(&[major | 24, a]),
        [0, 0, 0, 0, 0, 0, a, b] => out.extend_from_slice(&[major | 25, a, b]),
        [0, 0, 0, 0, a, b, c, d] => out.extend_from_slice(&[major | 26, a, b, c, d]),
        [a, b, c, d, e, f, g, h] => out.extend_from_slice(&[major | 27, a, b, c, d, e, f, g, h]),
    }
}
