//! JSON of headers and indices: well-formed, in order, with duplicate keys visible.
//!
//! The visitors are written by hand, because serde's own accept more than the formats allow, and keep
//! the last of two equal keys.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

/// What is wrong with a JSON text, and where.
#[derive(Debug)]
pub struct JsonFault {
    /// The parser's error.
    pub error: serde_json::Error,
    /// Bytes from the beginning of the text.
    pub position: usize,
    /// The entry with the fault.
    pub name: Option<String>,
}

/// Parses one JSON document with `seed`. Only white space may follow it.
pub fn parse<'t, S: DeserializeSeed<'t>>(text: &'t str, seed: S) -> Result<S::Value, JsonFault> {
    let mut parser = serde_json::Deserializer::from_str(text);
    let value = seed.deserialize(&mut parser);
    value.and_then(|value| parser.end().map(|()| value)).map_err(|error| {
        let position = position(text, &error);
        JsonFault { error, position, name: None }
    })
}

/// The offset in `text` at which the parser stopped. Its lines and columns count from 1, or are 0 if it does not know.
fn position(text: &str, error: &serde_json::Error) -> usize {
    let lines = text.split_inclusive('\n').map(str::len);
    let before: usize = lines.take(error.line().saturating_sub(1)).sum();
    before.strict_add(error.column().saturating_sub(1)).min(text.len())
}

/// The entries of an object in order, with duplicate keys.
pub struct Pairs<V = String>(pub Vec<(String, V)>);

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Pairs<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairsVisitor<V>(PhantomData<V>);

        impl<'de, V: Deserialize<'de>> Visitor<'de> for PairsVisitor<V> {
            type Value = Pairs<V>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of strings")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs<V>, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }

        deserializer.deserialize_map(PairsVisitor(PhantomData))
    }
}

/// Any value, checked and dropped. Unlike [`serde::de::IgnoredAny`], it obeys the parser's limit on
/// depth, 128, and checks strings.
pub struct Skipped;

impl<'de> Deserialize<'de> for Skipped {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SkippedVisitor;

        impl<'de> Visitor<'de> for SkippedVisitor {
            type Value = Skipped;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }

            fn visit_bool<E>(self, _: bool) -> Result<Skipped, E> {
                Ok(Skipped)
            }

            fn visit_i64<E>(self, _: i64) -> Result<Skipped, E> {
                Ok(Skipped)
            }

            fn visit_u64<E>(self, _: u64) -> Result<Skipped, E> {
                Ok(Skipped)
            }

            fn visit_f64<E>(self, _: f64) -> Result<Skipped, E> {
                Ok(Skipped)
            }

            fn visit_str<E>(self, _: &str) -> Result<Skipped, E> {
                Ok(Skipped)
            }

            fn visit_unit<E>(self) -> Result<Skipped, E> {
                Ok(Skipped)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Skipped, A::Error> {
                while seq.next_element::<Skipped>()?.is_some() {}
                Ok(Skipped)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Skipped, A::Error> {
                while map.next_entry::<Skipped, Skipped>()?.is_some() {}
                Ok(Skipped)
            }
        }

        deserializer.deserialize_any(SkippedVisitor)
    }
}

impl JsonFault {
    /// The parser's message without line and column, because the error has the offset.
    pub fn message(&self) -> String {
        let text = self.error.to_string();
        let position = format!(" at line {} column {}", self.error.line(), self.error.column());
        text.strip_suffix(&position).unwrap_or(&text).to_owned()
    }
}
