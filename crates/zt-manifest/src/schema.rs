//! Decoding the fields of objects and components in every generation, without validating them. Spec:
//! §3.3, §3.4; legacy, "Layout 0.1" and "Layout 1.0".

use std::borrow::Cow;

use zt_container::{Layout, Limits};

use crate::attributes::Attributes;
use crate::cbor::{Cursor, Flaw, Head};
use crate::error::{Error, LimitExceeded};
use crate::object::ByteOrder;
use crate::own_digest;
use crate::raw::{RawComponent, RawObject};
use crate::text::{Text, intern};
use crate::value::Value;

/// The keys that 1.2 defines, for each map.
pub(crate) const ROOT_KEYS: [&str; 4] = ["version", "attributes", "objects", own_digest::KEY];
pub(crate) const OBJECT_KEYS: [&str; 4] = ["shape", "format", "attributes", "components"];
pub(crate) const COMPONENT_KEYS: [&str; 8] =
    ["dtype", "type", "offset", "length", "uncompressed_length", "encoding", "digest", CHUNKS];

/// The key of a component's chunk digests. Spec: §6.1.
pub(crate) const CHUNKS: &str = "zt.chunks";

/// A longer value, in bytes, is not decoded. A valid one with a SHA-256 takes 106 at most.
const LONGEST_CHUNKS: usize = 256;

/// Decodes the object at `at` of a scanned manifest: at most `limits.rank` extents, and at most
/// `limits.attributes_len` bytes of attributes and unknown fields.
pub(crate) fn object(bytes: &[u8], at: usize, layout: Layout, limits: &Limits) -> RawObject {
    let mut reader = Reader {
        cursor: Cursor::at(bytes, at),
        layout,
        limits: *limits,
        decoded: 0,
        raw: RawObject { at: Some(at as u64), ..RawObject::default() },
    };
    let read = match layout {
        Layout::V0_1 => reader.tensor(),
        _ => reader.object(),
    };
    if let Err(flaw) = read {
        reader.raw.note(None, flaw.into_error(bytes));
    }
    reader.raw
}

/// The type of the item under the cursor, in words.
pub(crate) fn describe(mut cursor: Cursor<'_>) -> &'static str {
    match cursor.head() {
        Ok(Head::Unsigned(_)) => "an unsigned integer",
        Ok(Head::Negative(_)) => "a negative integer",
        Ok(Head::Bytes(_)) => "a byte string",
        Ok(Head::Text(_)) => "text",
        Ok(Head::Array(_)) => "an array",
        Ok(Head::Map(_)) => "a map",
        Ok(Head::Tag(2 | 3)) => "a bignum",
        Ok(Head::Tag(_)) => "a tagged value",
        Ok(Head::Simple(20 | 21)) => "a bool",
        Ok(Head::Simple(22)) => "null",
        Ok(Head::Simple(23)) => "undefined",
        Ok(Head::Simple(_)) => "a simple value",
        Ok(Head::Float(_)) => "a float",
        Ok(Head::Break) | Err(_) => "no value",
    }
}

/// Unknown fields, for a rewrite as 1.2. A key that is unknown in its own layout, and that 1.2 defines,
/// gets the layout as a prefix: `format` of a 0.1 tensor becomes `0.1.format`.
pub(crate) fn extra(
    mut pairs: Vec<(Value, Value)>,
    reserved: &[&str],
    layout: Layout,
) -> Attributes {
    let prefix = match layout {
        Layout::V0_1 => "0.1.",
        Layout::V1_0 => "1.0.",
        _ => return Attributes::from_unique(pairs),
    };
    for key in reserved {
        let place_of = |key: &str| {
            let mut names = pairs.iter().map(|(name, _)| name.as_str());
            names.position(|name| name == Some(key))
        };
        let Some(place) = place_of(key) else { continue };
        let mut renamed = format!("{prefix}{key}");
        while place_of(&renamed).is_some() {
            renamed.insert_str(0, prefix);
        }
        if let Some((name, _)) = pairs.get_mut(place) {
            *name = Value::Text(renamed);
        }
    }
    Attributes::from_unique(pairs)
}

struct Reader<'a> {
    cursor: Cursor<'a>,
    layout: Layout,
    limits: Limits,
    /// Bytes of attributes and unknown fields so far.
    decoded: usize,
    raw: RawObject,
}

impl<'a> Reader<'a> {
    /// An object of 1.0 and later.
    fn object(&mut self) -> Result<(), Flaw> {
        let Some(mut left) = self.map_head(None, "object")? else {
            return Ok(());
        };
        let mut unknown = Vec::new();
        let mut has_components = false;
        while self.cursor.more(&mut left) {
            match self.key(&mut unknown)?.as_deref() {
                None => {}
                Some("shape") => self.raw.shape = self.shape()?,
                Some("format") => self.raw.format = self.text(None, "format", false)?,
                Some("attributes") => self.raw.attributes = self.attributes()?,
                Some("components") => {
                    has_components = true;
                    self.components()?;
                }
                Some("dtype") if self.layout == Layout::V1_0 => {
                    self.raw.dtype = self.text(None, "dtype", false)?;
                }
                Some(key) => self.unknown(key, &mut unknown)?,
            }
        }
        self.raw.extra = extra(unknown, &OBJECT_KEYS, self.layout);
        if !has_components {
            let error = Error::missing(self.raw.at, "components");
            self.raw.note(None, error);
        }
        if self.layout == Layout::V1_0 {
            inherit_dtype(&mut self.raw);
        }
        Ok(())
    }

    fn components(&mut self) -> Result<(), Flaw> {
        let Some(mut left) = self.map_head(None, "components")? else {
            return Ok(());
        };
        let (mut found, limit) = (0usize, self.limits.components);
        while self.cursor.more(&mut left) {
            let key = self.cursor;
            found = found.strict_add(1);
            if found > limit {
                self.cursor.skip()?;
                self.cursor.skip()?;
                continue;
            }
            match self.cursor.text()? {
                Some(role) => {
                    let component = self.component(&role)?;
                    let components = &mut self.raw.components;
                    let reserved = components.try_reserve(1);
                    reserved.map_err(|_| Flaw::allocation::<RawComponent>(components.len()))?;
                    components.push((intern(&role), component));
                }
                None => {
                    self.cursor.skip()?;
                    self.cursor.skip()?;
                    self.wrong_at(key, None, "role", "text");
                }
            }
        }
        if found > limit {
            self.raw.components = Vec::new();
            let exceeded = LimitExceeded::Components { limit, found };
            self.raw.note(None, exceeded.into());
        }
        Ok(())
    }

    fn component(&mut self, role: &str) -> Result<RawComponent, Flaw> {
        let mut component =
            RawComponent { at: Some(self.cursor.offset() as u64), ..RawComponent::default() };
        let role = Some(role);
        let Some(mut left) = self.map_head(role, "component")? else {
            return Ok(component);
        };
        let typed = self.layout != Layout::V1_0;
        let mut unknown = Vec::new();
        while self.cursor.more(&mut left) {
            match self.key(&mut unknown)?.as_deref() {
                None => {}
                Some("offset") => component.offset = self.unsigned(role, "offset", false)?,
                Some("length") => component.length = self.unsigned(role, "length", false)?,
                Some("encoding") => component.encoding = self.text(role, "encoding", true)?,
                Some("digest") => component.digest = self.text(role, "digest", true)?,
                Some("dtype") if typed => component.dtype = self.text(role, "dtype", false)?,
                Some("type") if typed => component.logical_type = self.text(role, "type", true)?,
                Some("uncompressed_length") if typed => {
                    component.decoded_len = self.unsigned(role, "uncompressed_length", true)?;
                }
                Some(CHUNKS) if typed && self.layout != Layout::V0_1 => {
                    component.chunks = self.chunks()?;
                }
                Some(key) => self.unknown(key, &mut unknown)?,
            }
        }
        component.extra = extra(unknown, &COMPONENT_KEYS, self.layout);
        Ok(component)
    }

    /// A tensor of 0.1: an object and its one component in one map.
    fn tensor(&mut self) -> Result<(), Flaw> {
        let Some(mut left) = self.map_head(None, "object")? else {
            return Ok(());
        };
        let role = Some("data");
        let mut data = RawComponent { at: self.raw.at, ..RawComponent::default() };
        let mut unknown = Vec::new();
        while self.cursor.more(&mut left) {
            match self.key(&mut unknown)?.as_deref() {
                None => {}
                Some("name") => self.cursor.skip()?,
                Some("shape") => self.raw.shape = self.shape()?,
                Some("layout") => self.raw.format = self.text(None, "layout", false)?,
                Some("offset") => data.offset = self.unsigned(role, "offset", false)?,
                Some("size") => data.length = self.unsigned(role, "size", false)?,
                Some("dtype") => data.dtype = self.text(role, "dtype", false)?,
                Some("encoding") => data.encoding = self.text(role, "encoding", false)?,
                Some("checksum") => data.digest = self.text(role, "checksum", true)?,
                Some("data_endianness") => data.byte_order = self.byte_order()?,
                Some(key) => self.unknown(key, &mut unknown)?,
            }
        }
        // Compressed elements are always little-endian, and the field is ignored.
        if data.encoding.as_deref() == Some("zstd") {
            data.byte_order = ByteOrder::Little;
        }
        self.raw.components.push((intern("data"), data));
        self.raw.extra = extra(unknown, &OBJECT_KEYS, self.layout);
        Ok(())
    }

    /// The next key, if it is a text. Otherwise the pair goes into `unknown`.
    fn key(&mut self, unknown: &mut Vec<(Value, Value)>) -> Result<Option<Cow<'a, str>>, Flaw> {
        let start = self.cursor;
        let key = self.cursor.text()?;
        if key.is_none() {
            self.cursor = start;
            if let (Some(key), Some(value)) = (self.value()?, self.value()?) {
                unknown.push((key, value));
            }
        }
        Ok(key)
    }

    fn unknown(&mut self, key: &str, unknown: &mut Vec<(Value, Value)>) -> Result<(), Flaw> {
        if let Some(value) = self.value()? {
            unknown.push((Value::from(key), value));
        }
        Ok(())
    }

    /// The next item, decoded. `None`, and the item is passed over, if the object's attributes exceed the
    /// limit.
    fn value(&mut self) -> Result<Option<Value>, Flaw> {
        let start = self.cursor;
        self.cursor.skip()?;
        let byte_len = self.cursor.offset().strict_sub(start.offset());
        self.decoded = self.decoded.strict_add(byte_len);
        let (found, limit) = (self.decoded, self.limits.attributes_len);
        if found > limit {
            let exceeded = LimitExceeded::Attributes { limit, found };
            self.raw.note(None, exceeded.into());
            return Ok(None);
        }
        self.cursor = start;
        self.cursor.value().map(Some)
    }

    /// The value of [`CHUNKS`]. A wrong one is not a fault of the object. `false` stands for one that is
    /// too long.
    fn chunks(&mut self) -> Result<Option<Value>, Flaw> {
        let start = self.cursor;
        self.cursor.skip()?;
        if self.cursor.offset().strict_sub(start.offset()) > LONGEST_CHUNKS {
            return Ok(Some(Value::Bool(false)));
        }
        self.cursor = start;
        let value = self.cursor.value()?;
        Ok(Some(value).filter(|value| *value != Value::Null))
    }

    fn shape(&mut self) -> Result<Option<Vec<u64>>, Flaw> {
        let start = self.cursor;
        let Head::Array(mut left) = self.cursor.head()? else {
            return self.wrong(start, None, "shape", "an array of unsigned integers");
        };
        let (mut shape, mut found) = (Vec::new(), 0usize);
        let limit = self.limits.rank;
        while self.cursor.more(&mut left) {
            let item = self.cursor;
            match self.cursor.head()? {
                Head::Unsigned(extent) => {
                    found = found.strict_add(1);
                    if found <= limit {
                        let reserved = shape.try_reserve(1);
                        reserved.map_err(|_| Flaw::allocation::<u64>(found))?;
                        shape.push(extent);
                    }
                }
                _ => {
                    self.wrong_at(item, None, "shape", "unsigned integers only");
                    self.cursor = start;
                    self.cursor.skip()?;
                    return Ok(None);
                }
            }
        }
        if found > limit {
            self.raw.note(None, LimitExceeded::Rank { limit, found }.into());
            return Ok(None);
        }
        Ok(Some(shape))
    }

    fn attributes(&mut self) -> Result<Option<Attributes>, Flaw> {
        let start = self.cursor;
        match start.peek_head()? {
            Head::Map(_) => match self.value()? {
                Some(Value::Map(map)) => Ok(Some(map)),
                _ => Ok(None), // Above the limit, and `value` has noted the fault.
            },
            Head::Simple(22) => self.cursor.skip().map(|()| None),
            _ => {
                self.cursor.head()?;
                self.wrong(start, None, "attributes", "a map")
            }
        }
    }

    fn byte_order(&mut self) -> Result<ByteOrder, Flaw> {
        let start = self.cursor;
        let text = self.text(Some("data"), "data_endianness", true)?;
        Ok(match text.as_deref() {
            None | Some("little") => ByteOrder::Little,
            Some("big") => ByteOrder::Big,
            Some(_) => {
                self.wrong_at(start, Some("data"), "data_endianness", "`little` or `big`");
                ByteOrder::Little
            }
        })
    }

    fn text(
        &mut self,
        role: Option<&str>,
        field: &'static str,
        optional: bool,
    ) -> Result<Option<Text>, Flaw> {
        if let Some(text) = self.cursor.text()? {
            return Ok(Some(intern(&text)));
        }
        let start = self.cursor;
        match self.cursor.head()? {
            Head::Simple(22) if optional => Ok(None),
            _ => self.wrong(start, role, field, "text"),
        }
    }

    fn unsigned(
        &mut self,
        role: Option<&str>,
        field: &'static str,
        optional: bool,
    ) -> Result<Option<u64>, Flaw> {
        let start = self.cursor;
        match self.cursor.head()? {
            Head::Unsigned(value) => Ok(Some(value)),
            Head::Simple(22) if optional => Ok(None),
            _ => self.wrong(start, role, field, "an unsigned integer"),
        }
    }

    /// The length of the next item, a map. If it is not a map, notes a fault and passes over it.
    fn map_head(
        &mut self,
        role: Option<&str>,
        field: &'static str,
    ) -> Result<Option<Option<usize>>, Flaw> {
        let start = self.cursor;
        match self.cursor.head()? {
            Head::Map(left) => Ok(Some(left)),
            _ => self.wrong(start, role, field, "a map"),
        }
    }

    /// Notes that the item at `start` has the wrong type, and passes over it.
    fn wrong<T>(
        &mut self,
        start: Cursor<'a>,
        role: Option<&str>,
        field: &'static str,
        expected: &'static str,
    ) -> Result<Option<T>, Flaw> {
        self.wrong_at(start, role, field, expected);
        self.cursor = start;
        self.cursor.skip()?;
        Ok(None)
    }

    fn wrong_at(
        &mut self,
        item: Cursor<'_>,
        role: Option<&str>,
        field: &'static str,
        expected: &'static str,
    ) {
        let error = Error::schema(item.offset() as u64, field, describe(item), expected);
        self.raw.note(role, error);
    }
}

/// In 1.0 the dtype of the object is the type of its elements, and indices are u64. Spec: 1.0 §5.
fn inherit_dtype(raw: &mut RawObject) {
    for (role, component) in &mut raw.components {
        component.dtype = match role.as_ref() {
            "data" | "values" => raw.dtype.clone(),
            "indices" | "indptr" | "coords" => Some(Cow::Borrowed("uint64")),
            _ => None,
        };
    }
}
