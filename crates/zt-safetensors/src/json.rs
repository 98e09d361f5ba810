//! The JSON of headers: well-formed, of its schema, without duplicate fields.
//!
//! The visitors are written by hand because serde's own accept more than the format has: an array
//! for a struct, the last of two equal fields.

use std::fmt;

use serde::Deserialize;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Unexpected, Visitor,
};
use zt_foreign::json::{JsonFault, Pairs, Skipped, parse};

use crate::METADATA;
use crate::dtype::Dtype;

/// The parsed JSON of a header. Names may be duplicates and offsets may be invalid.
#[derive(Default)]
pub(super) struct HeaderJson {
    /// In the order of the header.
    pub(super) tensors: Vec<(String, Entry)>,
    pub(super) metadata: Option<Vec<(String, String)>>,
    /// The name of the entry that is being read, for the error.
    current: Option<String>,
}

/// The entry of one tensor.
pub(super) struct Entry {
    pub(super) dtype: Dtype,
    pub(super) shape: Vec<u64>,
    pub(super) offsets: (u64, u64),
}

impl HeaderJson {
    pub(super) fn parse(text: &str) -> Result<Self, JsonFault> {
        let mut header = HeaderJson::default();
        match parse(text, &mut header) {
            Ok(()) => Ok(header),
            Err(fault) => Err(JsonFault {
                name: header.current,
                ..fault
            }),
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
                self.tensors
                    .extend(self.current.take().map(|name| (name, entry)));
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
