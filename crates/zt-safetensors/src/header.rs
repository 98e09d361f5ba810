//! The header of a safetensors file: JSON of its schema, checked against every rule.
//!
//! The visitors are written by hand because serde's own accept more than the format has: an array
//! for a struct, the last of two equal fields.

use std::fmt;

use serde::Deserialize;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Unexpected, Visitor,
};
use zt::container::bytes_of;
use zt::{Error, Result, Source, Span};
use zt_foreign::json::{self, JsonFault, Pairs, Skipped};
use zt_foreign::repeated;

use crate::dtype::Dtype;
use crate::violation::SafetensorsViolation;

/// The key in a header that holds the file's attributes.
pub(super) const METADATA: &str = "__metadata__";

/// The longest header, as in the official library.
pub(super) const HEADER_MAX: u64 = 100_000_000;

/// Bytes of the header's length.
const LEN: u64 = 8;

/// A checked header: every tensor lies in the data and is as long as its shape requires.
///
/// It serves callers who need the format's own dtypes. [`SafeTensors`](crate::kind::SafeTensors) opens the
/// same file as a [`zt::File`].
#[derive(Debug)]
pub struct Header {
    /// In the order of their data.
    pub(super) tensors: Vec<Tensor>,
    /// In the order of the header. Keys are unique.
    pub(super) metadata: Option<Vec<(String, String)>>,
    /// Indices of `tensors`, sorted by their names, which are unique.
    by_name: Vec<u32>,
    /// White space around the JSON, which the format forbids and the official reader skips.
    pub(super) tolerated: Option<Error>,
}

/// One tensor of a [`Header`].
#[derive(Debug)]
pub struct Tensor {
    /// Its name.
    pub name: String,
    /// The type of its elements.
    pub dtype: Dtype,
    /// Its dimensions, outermost first.
    pub shape: Vec<u64>,
    /// The bytes of its elements in the file.
    pub span: Span,
}

impl Header {
    /// Reads and checks the header of the file in `source`. Reads no data.
    ///
    /// # Errors
    ///
    /// Malformed: code `truncated` or `header`, with a [`SafetensorsViolation`] inside ([`Error::inner`]);
    /// [`zt::ErrorKind::Io`].
    pub fn read(source: &dyn Source) -> Result<Self> {
        Self::read_with(source, false)
    }

    /// As [`Header::read`], but if the file `may_be_cut`, tensors may lie beyond its end.
    pub(super) fn read_with(source: &dyn Source, may_be_cut: bool) -> Result<Self> {
        let byte_len = source.byte_len();
        if byte_len < LEN {
            return Err(SafetensorsViolation::TooShort { byte_len }.into());
        }
        let mut declared = [0; 8];
        source.read_at(0, &mut declared)?;
        let declared = u64::from_le_bytes(declared);
        if declared > HEADER_MAX {
            let limit = HEADER_MAX;
            return Err(at(SafetensorsViolation::HeaderTooLong { declared, limit }, 0));
        }
        let header = Span::new(LEN, declared);
        let data = header.and_then(|header| Span::between(header.end(), byte_len));
        let (Some(header), Some(data)) = (header, data) else {
            let available = byte_len.strict_sub(LEN);
            return Err(at(SafetensorsViolation::HeaderPastEnd { declared, available }, 0));
        };
        let (json, tolerated) = parse(&bytes_of(source, header)?)?;
        let header = check(json, data, may_be_cut)?;
        Ok(Header { tolerated, ..header })
    }

    /// The tensors in the order of their data.
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// The tensors in the order of their names.
    pub fn by_name(&self) -> impl Iterator<Item = &Tensor> {
        self.by_name.iter().filter_map(|at| self.at(*at))
    }

    /// The tensor of that name.
    pub fn tensor(&self, name: &str) -> Option<&Tensor> {
        let found = self.by_name.binary_search_by(|at| {
            let known = self.at(*at).map_or("", |tensor| tensor.name.as_str());
            known.cmp(name)
        });
        self.at(*self.by_name.get(found.ok()?)?)
    }

    /// The metadata in the order of the header; `None` without `__metadata__`. Keys are unique.
    pub fn metadata(&self) -> Option<&[(String, String)]> {
        self.metadata.as_deref()
    }

    fn at(&self, at: u32) -> Option<&Tensor> {
        self.tensors.get(at as usize)
    }
}

fn at(violation: SafetensorsViolation, offset: u64) -> Error {
    Error::from(violation).with_offset(offset)
}

/// A violation at a byte of the header.
#[expect(clippy::arithmetic_side_effects, reason = "a header is at most HEADER_MAX bytes")]
fn within(violation: SafetensorsViolation, position: usize) -> Error {
    at(violation, LEN + position as u64)
}

/// A violation at a byte of the data.
fn in_data(violation: SafetensorsViolation, data: Span, start: u64) -> Error {
    match data.offset().checked_add(start) {
        Some(offset) => at(violation, offset),
        None => violation.into(),
    }
}

/// The JSON of a header: UTF-8 from `{` to `}`, followed by nothing but spaces. Other white space of JSON
/// around it is the second value: the official reader skips it.
fn parse(bytes: &[u8]) -> Result<(HeaderJson, Option<Error>)> {
    if bytes.is_empty() {
        return Err(within(SafetensorsViolation::NoHeader, 0));
    }
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    let start = bytes.iter().position(|byte| !is_blank(byte)).unwrap_or(0);
    let mut tolerated = match (bytes.get(start), bytes.first()) {
        (Some(b'{'), Some(b'{')) => None,
        (Some(b'{'), Some(&found)) => Some(within(SafetensorsViolation::Start { found }, 0)),
        (found, _) => {
            let found = found.copied().unwrap_or_default();
            return Err(within(SafetensorsViolation::Start { found }, start));
        }
    };
    let text = std::str::from_utf8(bytes)
        .map_err(|error| within(SafetensorsViolation::NotUtf8, error.valid_up_to()))?;
    let text = text.trim_end_matches(' ');
    let json = text.trim_end_matches(['\t', '\n', '\r', ' ']);
    let padding = |of: &str| {
        let (&found, before) = of.as_bytes().split_last()?;
        Some(within(SafetensorsViolation::Padding { found }, before.len()))
    };
    if json.len() < text.len() {
        tolerated = tolerated.or_else(|| padding(text));
    }
    if !json.ends_with('}')
        && let Some(error) = padding(json)
    {
        return Err(error);
    }
    let json = HeaderJson::parse(json).map_err(|fault| {
        let (name, position) = (fault.name.clone(), fault.position);
        let error = within(SafetensorsViolation::Json(fault), position);
        match name {
            Some(name) => error.with_object(&name),
            None => error,
        }
    })?;
    Ok((json, tolerated))
}

fn check(mut json: HeaderJson, data: Span, may_be_cut: bool) -> Result<Header> {
    // The sort is stable: empty tensors at one offset stay in the order of the header.
    json.tensors.sort_by_key(|(_, entry)| entry.offsets);
    let by_name = check_names(&json)?;
    let mut tensors = Vec::with_capacity(json.tensors.len());
    let mut expected = 0;
    let end = json.tensors.iter().map(|(_, entry)| entry.offsets.1).max();
    let end = end.unwrap_or(0);
    for (name, entry) in json.tensors {
        let cut = SafetensorsViolation::Cut { tensors: end, data: data.byte_len() };
        let span = place(&entry, expected, data)
            .and_then(|span| {
                let span = span.filter(|span| may_be_cut || data.contains(*span));
                span.ok_or(cut)
            })
            .map_err(|violation| in_data(violation, data, entry.offsets.0).with_object(&name))?;
        expected = entry.offsets.1;
        tensors.push(Tensor { name, dtype: entry.dtype, shape: entry.shape, span });
    }
    let is_cut = may_be_cut && expected > data.byte_len();
    if expected != data.byte_len() && !is_cut {
        let violation = SafetensorsViolation::End { tensors: expected, data: data.byte_len() };
        return Err(in_data(violation, data, expected));
    }
    Ok(Header { tensors, metadata: json.metadata, by_name, tolerated: None })
}

/// The indices of the tensors, sorted by name. A header has at most `HEADER_MAX` of them.
fn check_names(json: &HeaderJson) -> Result<Vec<u32>> {
    let names = json.tensors.iter().map(|(name, _)| name.as_str()).zip(0..);
    let mut names: Vec<(&str, u32)> = names.collect();
    // Quick where they are sorted already: files of one dtype are.
    names.sort_unstable();
    let repeated_name = names.windows(2).find_map(|pair| match pair {
        [a, b] if a.0 == b.0 => Some(a.0),
        _ => None,
    });
    if let Some(name) = repeated_name {
        return Err(Error::from(SafetensorsViolation::RepeatedName).with_object(name));
    }
    let metadata = json.metadata.iter().flatten();
    let mut keys: Vec<&str> = metadata.map(|(key, _)| key.as_str()).collect();
    if let Some(key) = repeated(&mut keys) {
        let key = key.to_owned();
        return Err(SafetensorsViolation::RepeatedKey { key }.into());
    }
    Ok(names.into_iter().map(|(_, at)| at).collect())
}

/// The span of a tensor, if it begins at `expected` and is as long as its shape requires; `None` for one
/// that ends beyond 2^64.
fn place(entry: &Entry, expected: u64, data: Span) -> Result<Option<Span>, SafetensorsViolation> {
    let (start, end) = entry.offsets;
    let Some(found) = end.checked_sub(start) else {
        return Err(SafetensorsViolation::Backwards { start, end });
    };
    if start != expected {
        return Err(SafetensorsViolation::Misplaced { expected, found: start });
    }
    let expected = entry.dtype.byte_len(&entry.shape)?;
    if expected != found {
        return Err(SafetensorsViolation::Size { expected, found });
    }
    let offset = data.offset().checked_add(start);
    Ok(offset.and_then(|offset| Span::new(offset, found)))
}

/// The parsed JSON of a header. Names may be duplicates and offsets may be invalid.
#[derive(Default)]
struct HeaderJson {
    /// In the order of the header.
    tensors: Vec<(String, Entry)>,
    metadata: Option<Vec<(String, String)>>,
    /// The name of the entry that is being read, for the error.
    current: Option<String>,
}

struct Entry {
    dtype: Dtype,
    shape: Vec<u64>,
    offsets: (u64, u64),
}

impl HeaderJson {
    fn parse(text: &str) -> Result<Self, JsonFault> {
        let mut header = HeaderJson::default();
        match json::parse(text, &mut header) {
            Ok(()) => Ok(header),
            Err(fault) => Err(JsonFault { name: header.current, ..fault }),
        }
    }
}

impl<'de> DeserializeSeed<'de> for &mut HeaderJson {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut HeaderJson {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut has_metadata = false;
        while let Some(name) = map.next_key::<String>()? {
            let name = self.current.insert(name);
            if name != METADATA {
                let entry = map.next_value::<Entry>()?;
                self.tensors.extend(self.current.take().map(|name| (name, entry)));
            } else if std::mem::replace(&mut has_metadata, true) {
                return Err(A::Error::custom("duplicate __metadata__"));
            } else {
                // `null` means none: the official library reads an `Option`.
                let pairs = map.next_value::<Option<Pairs<_>>>()?;
                self.metadata = pairs.map(|Pairs(texts)| texts);
            }
        }
        self.current = None;
        Ok(())
    }
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Field {
    Dtype,
    Shape,
    DataOffsets,
    #[serde(other)]
    Unknown,
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EntryVisitor;

        impl<'de> Visitor<'de> for EntryVisitor {
            type Value = Entry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with dtype, shape and data_offsets")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entry, A::Error> {
                let (mut dtype, mut shape, mut offsets) = (None, None, None);
                while let Some(field) = map.next_key()? {
                    let (name, is_repeated) = match field {
                        Field::Dtype => {
                            let name: String = map.next_value()?;
                            let unknown = Unexpected::Str(&name);
                            let known = Dtype::from_name(&name)
                                .ok_or_else(|| A::Error::invalid_value(unknown, &"a dtype"))?;
                            ("dtype", dtype.replace(known).is_some())
                        }
                        Field::Shape => {
                            let Numbers(extents) = map.next_value()?;
                            ("shape", shape.replace(extents).is_some())
                        }
                        Field::DataOffsets => {
                            let Numbers(pair) = map.next_value()?;
                            let [start, end] = *pair else {
                                return Err(A::Error::invalid_length(pair.len(), &"two offsets"));
                            };
                            ("data_offsets", offsets.replace((start, end)).is_some())
                        }
                        Field::Unknown => {
                            map.next_value::<Skipped>()?;
                            continue;
                        }
                    };
                    if is_repeated {
                        return Err(A::Error::duplicate_field(name));
                    }
                }
                Ok(Entry {
                    dtype: dtype.ok_or_else(|| A::Error::missing_field("dtype"))?,
                    shape: shape.ok_or_else(|| A::Error::missing_field("shape"))?,
                    offsets: offsets.ok_or_else(|| A::Error::missing_field("data_offsets"))?,
                })
            }
        }

        deserializer.deserialize_map(EntryVisitor)
    }
}

/// The most dimensions of a shape, above every configurable limit. An extent takes two bytes of JSON
/// and eight of memory, so a header that is one long shape would take many times its length.
const RANK_MAX: usize = 1 << 12;

/// A shape or offsets.
struct Numbers(Vec<u64>);

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumbersVisitor;

        impl<'de> Visitor<'de> for NumbersVisitor {
            type Value = Numbers;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a list of at most {RANK_MAX} numbers")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Numbers, A::Error> {
                let mut numbers = Vec::new();
                while let Some(number) = seq.next_element()? {
                    if numbers.len() == RANK_MAX {
                        return Err(A::Error::invalid_length(RANK_MAX + 1, &self));
                    }
                    numbers.push(number);
                }
                Ok(Numbers(numbers))
            }
        }

        deserializer.deserialize_seq(NumbersVisitor)
    }
}
