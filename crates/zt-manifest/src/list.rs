//! Lists of attributes.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::OnceLock;

use crate::cbor::{Cursor, Encoder, MAX_NESTING};
use crate::error::{Error, Result};
use crate::value::Value;

/// The values of a list.
///
/// It derefs to a slice of values. A long list that was read from a file keeps the CBOR of its items (1 to
/// 9 bytes for a number, instead of 32), and decodes them when the slice is first used.
/// [`List::items`] decodes one at a time, and [`List::len`] none.
///
/// ```
/// use zt_manifest::{List, Value};
///
/// let list = List::from(vec![Value::from(1u64), Value::from("a")]);
/// assert_eq!(list[1].as_str(), Some("a"));
/// assert_eq!(list.items().count(), 2);
/// ```
pub struct List(Items);

enum Items {
    Values(Vec<Value>),
    // Boxed, so that a `List` is no larger than a `Vec`.
    Encoded(Box<Encoded>),
}

struct Encoded {
    len: usize,
    /// The items one after the other, in their deterministic encoding. None has items within.
    bytes: Vec<u8>,
    /// The items, once a caller has asked for a slice.
    values: OnceLock<Vec<Value>>,
}

/// Shorter lists are kept as values.
const LONG: usize = 16;

impl List {
    /// The number of values.
    pub fn len(&self) -> usize {
        match &self.0 {
            Items::Values(values) => values.len(),
            Items::Encoded(encoded) => encoded.len,
        }
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values in order. Encoded items are decoded one at a time and not kept.
    pub fn items(&self) -> impl Iterator<Item = Cow<'_, Value>> {
        let (values, bytes) = match &self.0 {
            Items::Values(values) => (values.as_slice(), &[][..]),
            Items::Encoded(encoded) => match encoded.values.get() {
                Some(values) => (values.as_slice(), &[][..]),
                None => (&[][..], encoded.bytes.as_slice()),
            },
        };
        let decoded = decoded(bytes).map(Cow::Owned);
        values.iter().map(Cow::Borrowed).chain(decoded)
    }

    /// The bytes of all items, if the list keeps them encoded.
    pub(crate) fn encoded(&self) -> Option<&[u8]> {
        match &self.0 {
            Items::Values(_) => None,
            Items::Encoded(encoded) => Some(&encoded.bytes),
        }
    }
}

/// The values in bytes that [`ListBuilder`] has written.
fn decoded(bytes: &[u8]) -> impl Iterator<Item = Value> {
    let mut cursor = Cursor::new(bytes);
    std::iter::from_fn(move || {
        let is_more = cursor.offset() < bytes.len();
        is_more.then(|| cursor.value().ok()).flatten()
    })
}

impl Deref for List {
    type Target = [Value];

    /// The values. The first call decodes the items of a long list: 32 bytes for each.
    fn deref(&self) -> &[Value] {
        match &self.0 {
            Items::Values(values) => values,
            Items::Encoded(encoded) => {
                let values = || decoded(&encoded.bytes).collect();
                encoded.values.get_or_init(values)
            }
        }
    }
}

impl Clone for List {
    fn clone(&self) -> Self {
        List(match &self.0 {
            Items::Values(values) => Items::Values(values.clone()),
            Items::Encoded(encoded) => Items::Encoded(Box::new(Encoded {
                len: encoded.len,
                bytes: encoded.bytes.clone(),
                values: OnceLock::new(),
            })),
        })
    }
}

impl From<Vec<Value>> for List {
    fn from(values: Vec<Value>) -> Self {
        List(Items::Values(values))
    }
}

impl From<List> for Vec<Value> {
    fn from(list: List) -> Self {
        match list.0 {
            Items::Values(values) => values,
            Items::Encoded(encoded) => match encoded.values.into_inner() {
                Some(values) => values,
                None => decoded(&encoded.bytes).collect(),
            },
        }
    }
}

impl fmt::Debug for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.items()).finish()
    }
}

/// Builds a list item by item. It keeps items encoded, so a list takes no more memory than in a file.
///
/// ```
/// use zt_manifest::ListBuilder;
///
/// let mut builder = ListBuilder::default();
/// for token in 0..1000u64 {
///     builder.push(token.into())?;
/// }
/// let list = builder.finish();
/// assert_eq!((list.len(), list[999].as_u64()), (1000, Some(999)));
/// # Ok::<(), zt_manifest::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct ListBuilder {
    /// All items, encoded, as long as none has items within.
    encoder: Encoder,
    len: usize,
    /// All items, once one of them has items within.
    values: Option<Vec<Value>>,
}

impl ListBuilder {
    /// Adds a value at the end.
    ///
    /// # Errors
    ///
    /// Code `allocation` if there is no memory for it. The list is unchanged then.
    pub fn push(&mut self, value: Value) -> Result<()> {
        if let Some(values) = &mut self.values {
            reserve(values, 1)?;
            values.push(value);
            return Ok(());
        }
        let payload = match &value {
            Value::Text(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            _ => 0,
        };
        if has_parts(&value) {
            let mut values = Vec::new();
            reserve(&mut values, self.len.strict_add(1))?;
            values.extend(decoded(&self.encoder.out));
            values.push(value);
            self.encoder = Encoder::default();
            self.values = Some(values);
            return Ok(());
        }
        // A head has at most nine bytes.
        reserve(&mut self.encoder.out, payload.strict_add(9))?;
        // The encoder refuses only values with parts.
        let _ = self.encoder.value(&value, 0, MAX_NESTING);
        self.len = self.len.strict_add(1);
        Ok(())
    }

    /// The list.
    pub fn finish(self) -> List {
        let mut bytes = self.encoder.out;
        List(match self.values {
            Some(values) => Items::Values(values),
            None if self.len < LONG => Items::Values(decoded(&bytes).collect()),
            None => {
                bytes.shrink_to_fit();
                Items::Encoded(Box::new(Encoded { len: self.len, bytes, values: OnceLock::new() }))
            }
        })
    }
}

fn reserve<T>(items: &mut Vec<T>, more: usize) -> Result<()> {
    // Saturates on purpose: the length of a failed allocation may exceed the address space.
    let byte_len = more.saturating_mul(size_of::<T>()) as u64;
    let reserved = items.try_reserve(more);
    reserved.map_err(|_| Error::allocation(byte_len))
}

/// Whether a value cannot be kept encoded: it has values within, or has no encoding.
const fn has_parts(value: &Value) -> bool {
    matches!(value, Value::Array(_) | Value::Map(_) | Value::Tag(..) | Value::Simple(20..=31))
}
