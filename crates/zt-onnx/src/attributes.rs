//! The metadata of a model and its tensors, as attributes.
//!
//! Pairs of `metadata_props` keep their keys. The key of an ONNX field is `onnx.` and its name.

use std::collections::HashSet;
use zt::{Attributes, Result, Span, Value};

use crate::fault::OnnxFault;
use crate::wire::{Fields, Window};

/// The attribute with the documentation of a model or of a tensor.
pub(super) const DOC_STRING: &str = "onnx.doc_string";

/// The key and the value of a `StringStringEntryProto`.
const KEY: u32 = 1;
const VALUE: u32 = 2;

/// Bytes that a pair takes in a manifest, beside its strings.
const OVERHEAD: u64 = 18;

pub(super) struct Pairs {
    keys: HashSet<String>,
    pairs: Vec<(String, Value)>,
    byte_len: u64,
    limit: u64,
    /// A duplicate key; the first value is kept.
    repeated: Option<String>,
}

impl Pairs {
    /// No pairs yet, and at most `limit` bytes.
    pub(super) fn new(limit: u64) -> Self {
        Pairs { keys: HashSet::new(), pairs: Vec::new(), byte_len: 0, limit, repeated: None }
    }

    pub(super) fn add(&mut self, key: &str, value: Value) {
        if self.keys.insert(key.to_owned()) {
            self.pairs.push((key.to_owned(), value));
        } else {
            self.repeated.get_or_insert_with(|| key.to_owned());
        }
    }

    /// Adds a string field of ONNX, unless it is empty.
    pub(super) fn text(&mut self, window: &mut Window<'_>, key: &str, text: Span) -> Result<()> {
        if text.is_empty() || !self.has_room(text.byte_len()) {
            return Ok(());
        }
        let text = window.text(text, "a string", self.limit)?;
        self.add(key, text.into());
        Ok(())
    }

    /// Adds a pair of `metadata_props`.
    pub(super) fn pair(&mut self, window: &mut Window<'_>, pair: Span) -> Result<()> {
        let (key, value) = pair_of(window, pair)?;
        if self.has_room(key.byte_len().strict_add(value.byte_len())) {
            let key = window.text(key, "a key", self.limit)?;
            let value = window.text(value, "a string", self.limit)?;
            self.add(&key, value.into());
        }
        Ok(())
    }

    /// Counts a pair, and returns whether all pairs are within the limit. The count stops at 2^64.
    pub(super) fn has_room(&mut self, byte_len: u64) -> bool {
        let byte_len = byte_len.saturating_add(OVERHEAD);
        self.byte_len = self.byte_len.saturating_add(byte_len);
        self.byte_len <= self.limit
    }

    pub(super) fn repeated(&self) -> Option<&str> {
        self.repeated.as_deref()
    }

    /// The attributes; `None` if there are no pairs. More bytes than the limit are an error.
    pub(super) fn finish(self) -> Result<Option<Attributes>, OnnxFault> {
        if self.byte_len > self.limit {
            return Err(OnnxFault::TooLong {
                what: "metadata",
                byte_len: self.byte_len,
                limit: self.limit,
            });
        }
        let has_pairs = !self.pairs.is_empty();
        Ok(has_pairs.then(|| self.pairs.into_iter().collect()))
    }
}

/// The spans of a pair's key and value.
pub(super) fn pair_of(window: &mut Window<'_>, pair: Span) -> Result<(Span, Span)> {
    let (mut key, mut value) = (Span::default(), Span::default());
    let mut fields = Fields::of(pair);
    while let Some(field) = fields.next(window)? {
        match field.number {
            KEY => key = field.bytes()?,
            VALUE => value = field.bytes()?,
            _ => {}
        }
    }
    Ok((key, value))
}
