//! Attributes of groups and datasets. Spec: IV.A.2.m.

use zt::manifest::ListBuilder;
use zt::{Error, ErrorKind, Result, Value};

use crate::bytes::cursor::Cursor;
use crate::bytes::fault::Hdf5Fault;
use crate::bytes::name;
use crate::bytes::size::{in_memory, product};
use crate::bytes::store::Store;
use crate::structures::btree2;
use crate::structures::common::Common;
use crate::structures::dataspace::Dataspace;
use crate::structures::datatype::{Class, Datatype, Padding};
use crate::structures::fractal_heap::FractalHeap;
use crate::structures::number::Number;
use crate::structures::object_header::{Body, ObjectHeader, SHARED, kind};
use crate::structures::shared::{self, Place};

/// The most nested lists. In a manifest the attributes of an object are four levels down.
const NESTING: usize = 60;

/// The most warnings of one kind per object, because a few bytes can have any number of them.
pub(crate) const REPORTED: usize = 8;

pub(crate) struct Found {
    /// Empty if it cannot be read.
    pub(crate) name: String,
    /// Whether the name is escaped.
    pub(crate) is_renamed: bool,
    /// The value, or the reason that there is none.
    pub(crate) value: Result<Value>,
}

/// The attributes of an object.
#[derive(Default)]
pub(crate) struct AllFound {
    /// Those with a value, and the first [`REPORTED`] of the others.
    pub(crate) found: Vec<Found>,
    /// The number of attributes without a value.
    pub(crate) faulty: usize,
}

impl AllFound {
    /// Whether an attribute is that text.
    pub(crate) fn has_text(&self, name: &str, text: &str) -> bool {
        let has = |value: &Value| value.as_str() == Some(text);
        let mut found = self.found.iter();
        found.any(|one| one.name == name && one.value.as_ref().is_ok_and(has))
    }

    /// Keeps an attribute. [`ErrorKind::Io`] is an error, because a later read may succeed.
    fn push(&mut self, found: Found) -> Result<()> {
        match found.value {
            Err(error) if error.kind() == ErrorKind::Io => return Err(error),
            Err(_) => self.faulty = self.faulty.strict_add(1),
            Ok(_) => {}
        }
        if found.value.is_ok() || self.faulty <= REPORTED {
            self.found.push(found);
        }
        Ok(())
    }
}

/// The attributes of an object: numbers, strings and arrays of them. The value of any other is an
/// error.
pub(crate) fn read_all(
    store: &Store,
    header: &ObjectHeader,
    common: &mut Common,
) -> Result<AllFound> {
    let mut all = AllFound::default();
    for mut body in header.messages(kind::ATTRIBUTE) {
        all.push(if body.is_shared {
            let place = Place::read(&mut body.cursor);
            place.map_or_else(nameless, |place| shared_attribute(store, place, common))
        } else {
            attribute(store, body.cursor, common)
        })?;
    }
    if let Some(message) = header.message(kind::ATTRIBUTE_INFO)
        && let Err(error) = dense(store, message.cursor, common, &mut all)
    {
        all.push(nameless(error))?;
    }
    Ok(all)
}

/// An attribute in the file's heap of shared messages.
fn shared_attribute(store: &Store, place: Place, common: &mut Common) -> Found {
    let read = |cursor: &mut Cursor<'_>| Ok(attribute(store, cursor.clone(), common));
    shared::read(store, place, kind::ATTRIBUTE, read).unwrap_or_else(nameless)
}

fn nameless(error: Error) -> Found {
    Found { name: String::new(), is_renamed: false, value: Err(error) }
}

/// The attributes in a fractal heap, if the object has one. Spec: IV.A.2.v.
fn dense(
    store: &Store,
    mut message: Cursor<'_>,
    common: &mut Common,
    all: &mut AllFound,
) -> Result<()> {
    const ORDER: u8 = 1;
    /// The type of records of attributes by the hash of the name.
    const BY_NAME: u8 = 8;
    const ID_LEN: u64 = 8;
    message.expect_version(0)?;
    let flags = message.u8()?;
    message.skip(if flags & ORDER != 0 { 2 } else { 0 })?;
    let (heap, names) = (message.address()?, message.address()?);
    let Some((heap, names)) = heap.zip(names) else {
        return Ok(());
    };
    let heap = FractalHeap::open(store, heap)?;
    btree2::visit(store, names, BY_NAME, "a tree of attributes", |mut record| {
        let mut id = record.part(ID_LEN, "an ID of a heap")?;
        if record.u8()? & SHARED != 0 {
            let place = shared::id(&mut id)?;
            return all.push(shared_attribute(store, place, common));
        }
        let id = id.rest();
        all.push(match heap.object(id) {
            Ok(block) => attribute(store, block.cursor(), common),
            Err(error) => nameless(error),
        })
    })
}

fn attribute(store: &Store, cursor: Cursor<'_>, common: &mut Common) -> Found {
    let mut stored: &[u8] = &[];
    let value = content(store, cursor, common, &mut stored);
    let name = name::text(stored);
    Found { is_renamed: name.as_bytes() != stored, name, value }
}

/// The value of an attribute message. `name` is set even if the value is an error.
fn content<'b>(
    store: &Store,
    mut cursor: Cursor<'b>,
    common: &mut Common,
    name: &mut &'b [u8],
) -> Result<Value> {
    const SHARED_TYPE: u8 = 1;
    const SHARED_SPACE: u8 = 2;
    let version = cursor.u8()?;
    let flags = cursor.u8()?;
    let lens = [cursor.u16()?, cursor.u16()?, cursor.u16()?];
    match version {
        1 | 2 => {}
        3 => cursor.skip(1)?,
        other => return Err(cursor.version(other)),
    }
    let mut part = |len: u16, what| {
        let start = cursor.position();
        let part = cursor.part(len.into(), what)?;
        if version == 1 {
            cursor.align_8(start)?;
        }
        Ok::<_, zt::Error>(part)
    };
    let [name_len, type_len, space_len] = lens;
    let text = part(name_len, "the name of an attribute")?.rest();
    *name = until_zero(text);
    let datatype = Body {
        cursor: part(type_len, "a datatype")?,
        is_shared: version > 1 && flags & SHARED_TYPE != 0,
    };
    let mut dataspace = part(space_len, "a dataspace")?;
    let datatype = common.datatype(store, datatype)?;
    let dataspace = if version > 1 && flags & SHARED_SPACE != 0 {
        let place = Place::read(&mut dataspace)?;
        shared::read(store, place, kind::DATASPACE, Dataspace::read)?
    } else {
        Dataspace::read(&mut dataspace)?
    };
    value(store, cursor, &datatype, dataspace, common)
}

/// The value of an attribute. The cursor is at its bytes.
fn value(
    store: &Store,
    mut cursor: Cursor<'_>,
    datatype: &Datatype,
    dataspace: Dataspace,
    common: &mut Common,
) -> Result<Value> {
    let elements = dataspace.elements().ok_or(Hdf5Fault::Overflow)?;
    let Some(mut shape) = dataspace.shape else {
        return Ok(Value::Null);
    };
    let needed = product([elements, datatype.byte_len])?;
    if let Class::Array(dimensions, _) = &datatype.class {
        shape.extend(dimensions);
    }
    let has_pairs = match &datatype.class {
        Class::Number(number) | Class::Array(_, number) => is_complex(number),
        _ => false,
    };
    let (levels, limit) = (shape.len(), NESTING);
    if levels > limit || levels == limit && has_pairs {
        return Err(Hdf5Fault::Dimensions { levels, limit }.into());
    }
    let mut bytes = cursor.part(needed, "the value of an attribute")?;
    common.charge_lists(store, lists(&shape))?;
    match &datatype.class {
        Class::Number(kind) | Class::Array(_, kind) => {
            let mut numbers = bytes.rest().chunks_exact(element_len(kind));
            nested(&shape, &mut || Ok(kind.value(numbers.next().ok_or(Hdf5Fault::TooFar)?)))
        }
        Class::Text(padding) => {
            let mut texts = bytes.rest().chunks_exact(in_memory(datatype.byte_len)?);
            nested(&shape, &mut || Ok(text(padding.strip(texts.next().ok_or(Hdf5Fault::TooFar)?))))
        }
        Class::LongText => nested(&shape, &mut || {
            let mut reference = bytes.part(datatype.byte_len, "a reference to a string")?;
            let bytes = common.heaps.text(store, &mut reference)?;
            Ok(text(until_zero(&bytes)))
        }),
        Class::Opaque | Class::Unsupported(_) | Class::Other(_) => {
            let what = datatype.describe();
            Err(Hdf5Fault::Element { what }.into())
        }
    }
}

/// The number of lists of a shape. A shape with many ones or a zero has lists without bytes. The number
/// saturates, because no limit reaches 2^64.
fn lists(shape: &[u64]) -> u64 {
    let mut lists = 0u64;
    let mut inner = 1u64;
    for count in shape {
        lists = lists.saturating_add(inner);
        inner = inner.saturating_mul(*count);
    }
    lists
}

/// The next values as nested lists, by the dimensions of a shape, outermost first. The value itself
/// if there are no dimensions.
fn nested(shape: &[u64], next: &mut impl FnMut() -> Result<Value>) -> Result<Value> {
    let Some((count, inner)) = shape.split_first() else {
        return next();
    };
    let mut list = ListBuilder::default();
    for _ in 0..*count {
        list.push(nested(inner, next)?)?;
    }
    Ok(list.finish().into())
}

/// A string, or bytes if they are not UTF-8.
fn text(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => bytes.to_vec().into(),
    }
}

impl Padding {
    /// The bytes of a field without its padding.
    fn strip(self, bytes: &[u8]) -> &[u8] {
        let padding = match self {
            Padding::Terminated => return until_zero(bytes),
            Padding::Zeros => 0,
            Padding::Spaces => b' ',
        };
        let end = bytes.iter().rposition(|byte| *byte != padding);
        bytes.split_at(end.map_or(0, |last| last.strict_add(1))).0
    }
}

fn until_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Bytes of a number; a complex one has two parts.
pub(crate) fn element_len(number: &Number) -> usize {
    let parts = if is_complex(number) { 2 } else { 1 };
    let one = number.bit_layout.map_or(number.dtype.byte_len(), |layout| layout.byte_len);
    one.strict_mul(parts)
}

fn is_complex(number: &Number) -> bool {
    matches!(number.logical_type, Some("complex64" | "complex128"))
}
