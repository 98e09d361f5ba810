//! CBOR as bytes that are put together by hand, so that a case can say what no encoder would.
//!
//! Nothing here is shared with the reader or the writer under test, and nothing is checked: a
//! duplicate key, a chunk of another type or a length that lies is a matter of one argument.

use zt::{Attributes, Value};

/// One encoded data item, or whatever a case puts in the place of one.
pub type Cbor = Vec<u8>;

/// Ends an item of indefinite length.
pub const BREAK: u8 = 0xff;

/// The head of an item in its shortest form: major type 0 to 7 and an argument.
#[must_use]
pub fn head(major: u8, argument: u64) -> Cbor {
    let width = match argument {
        0..=23 => 0,
        24..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        _ => 8,
    };
    head_of_width(major, argument, width)
}

/// The head of an item whose argument takes `width` bytes (0, 1, 2, 4 or 8), needed or not.
#[must_use]
pub fn head_of_width(major: u8, argument: u64, width: usize) -> Cbor {
    let information = match width {
        0 => argument as u8,
        1 => 24,
        2 => 25,
        4 => 26,
        _ => 27,
    };
    let mut bytes = vec![major << 5 | information];
    bytes.extend(&argument.to_be_bytes()[8 - width..]);
    bytes
}

/// An unsigned integer.
#[must_use]
pub fn uint(value: u64) -> Cbor {
    head(0, value)
}

/// The integer `-1 - value`.
#[must_use]
pub fn negative(value: u64) -> Cbor {
    head(1, value)
}

/// A byte string.
#[must_use]
pub fn bytes(value: &[u8]) -> Cbor {
    [head(2, value.len() as u64), value.to_vec()].concat()
}

/// A text, which need not be UTF-8.
#[must_use]
pub fn text(value: impl AsRef<[u8]>) -> Cbor {
    let value = value.as_ref();
    [head(3, value.len() as u64), value.to_vec()].concat()
}

/// A text in chunks.
#[must_use]
pub fn chunked(chunks: &[impl AsRef<[u8]>]) -> Cbor {
    let chunks: Vec<Cbor> = chunks.iter().map(text).collect();
    [vec![0x7f], chunks.concat(), vec![BREAK]].concat()
}

/// A list.
#[must_use]
pub fn array(items: &[Cbor]) -> Cbor {
    [head(4, items.len() as u64), items.concat()].concat()
}

/// A list of unsigned integers.
#[must_use]
pub fn uints(items: &[u64]) -> Cbor {
    let items: Vec<Cbor> = items.iter().copied().map(uint).collect();
    array(&items)
}

/// A map, in the order given.
#[must_use]
pub fn map(pairs: &[(Cbor, Cbor)]) -> Cbor {
    [head(5, pairs.len() as u64), pairs_of(pairs)].concat()
}

/// A map of indefinite length.
#[must_use]
pub fn indefinite_map(pairs: &[(Cbor, Cbor)]) -> Cbor {
    [vec![0xbf], pairs_of(pairs), vec![BREAK]].concat()
}

fn pairs_of(pairs: &[(Cbor, Cbor)]) -> Vec<u8> {
    let pair = |(key, value): &(Cbor, Cbor)| [&key[..], value].concat();
    pairs.iter().flat_map(pair).collect()
}

/// A tagged item.
#[must_use]
pub fn tag(number: u64, item: &[u8]) -> Cbor {
    [head(6, number), item.to_vec()].concat()
}

/// `false` or `true`.
#[must_use]
pub fn boolean(value: bool) -> Cbor {
    vec![0xf4 | u8::from(value)]
}

/// `null`.
#[must_use]
pub fn null() -> Cbor {
    vec![0xf6]
}

/// A float of eight bytes.
#[must_use]
pub fn float(value: f64) -> Cbor {
    [vec![0xfb], value.to_be_bytes().to_vec()].concat()
}

/// An array within an array within an array, `depth` of them, the innermost empty.
#[must_use]
pub fn nested_arrays(depth: usize) -> Cbor {
    match depth.checked_sub(1) {
        None => null(),
        Some(around) => [vec![0x81; around], vec![0x80]].concat(),
    }
}

/// Any value, in the order of its maps.
#[must_use]
pub fn value(value: &Value) -> Cbor {
    match value {
        Value::Unsigned(number) => uint(*number),
        Value::Negative(number) => negative(*number),
        Value::Bytes(content) => bytes(content),
        Value::Text(content) => text(content),
        Value::Array(items) => {
            let items = items.items().map(|item| self::value(&item));
            array(&items.collect::<Vec<_>>())
        }
        Value::Map(content) => attributes(content),
        Value::Tag(number, item) => tag(*number, &self::value(item)),
        Value::Bool(content) => boolean(*content),
        Value::Null => null(),
        Value::Undefined => vec![0xf7],
        Value::Simple(number @ 0..=19) => vec![0xe0 | number],
        Value::Simple(number) => vec![0xf8, *number],
        Value::Float(number) => float(*number),
    }
}

/// A map of attributes, in its order.
#[must_use]
pub fn attributes(content: &Attributes) -> Cbor {
    let pairs = content.iter().map(|(key, item)| (value(key), value(item)));
    map(&pairs.collect::<Vec<_>>())
}

/// Pairs in the order they are written. Keys are unique unless [`Fields::push`] is used.
#[derive(Debug, Clone, Default)]
pub struct Fields(Vec<(Cbor, Cbor)>);

impl Fields {
    /// Puts `value` under the text `key`, in its old place or last.
    pub fn set(&mut self, key: &str, value: Cbor) {
        let key = text(key);
        match self.0.iter_mut().find(|(known, _)| *known == key) {
            Some((_, place)) => *place = value,
            None => self.0.push((key, value)),
        }
    }

    /// Takes out the text `key`.
    pub fn unset(&mut self, key: &str) {
        let key = text(key);
        self.0.retain(|(known, _)| *known != key);
    }

    /// Adds a pair, whatever is there already.
    pub fn push(&mut self, key: Cbor, value: Cbor) {
        self.0.push((key, value));
    }

    /// The pairs.
    #[must_use]
    pub fn pairs(&self) -> &[(Cbor, Cbor)] {
        &self.0
    }

    /// The map.
    #[must_use]
    pub fn encode(&self) -> Cbor {
        map(&self.0)
    }
}

/// Edits of [`Fields`] that a case makes after everything else is known.
#[derive(Debug, Clone, Default)]
pub struct Edits(Vec<Edit>);

#[derive(Debug, Clone)]
enum Edit {
    Set(String, Cbor),
    Unset(String),
    Push(Cbor, Cbor),
}

impl Edits {
    /// Later [`Fields::set`].
    pub fn set(&mut self, key: &str, value: Cbor) {
        self.0.push(Edit::Set(key.to_owned(), value));
    }

    /// Later [`Fields::unset`].
    pub fn unset(&mut self, key: &str) {
        self.0.push(Edit::Unset(key.to_owned()));
    }

    /// Later [`Fields::push`].
    pub fn push(&mut self, key: Cbor, value: Cbor) {
        self.0.push(Edit::Push(key, value));
    }

    /// Makes the edits, in order.
    pub fn apply(&self, fields: &mut Fields) {
        for edit in &self.0 {
            match edit {
                Edit::Set(key, value) => fields.set(key, value.clone()),
                Edit::Unset(key) => fields.unset(key),
                Edit::Push(key, value) => fields.push(key.clone(), value.clone()),
            }
        }
    }
}
