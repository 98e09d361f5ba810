//! Encoding a manifest object by object. Spec: §3.5.
#![expect(clippy::arithmetic_side_effects, reason = "lengths of bytes in memory")]

use std::borrow::Borrow;
use std::collections::BTreeMap;

use zt_container::{Encoding, Layout, Limits, Span, repeated};

use crate::attributes::Attributes;
use crate::cbor::{Encoder, Head, Pairs};
use crate::error::{Error, Misuse, Result};
use crate::object::{ByteOrder, Component, Object, check_attributes_len, check_component_count};
use crate::own_digest;
use crate::schema::{self, COMPONENT_KEYS, OBJECT_KEYS, ROOT_KEYS};
use crate::text::Text;
use crate::validate::Placement;
use crate::version::VERSION;

/// Encodes a manifest object by object. Only the encoded bytes take memory, so a million small objects
/// are cheap.
#[derive(Debug, Default)]
pub struct ManifestEncoder {
    /// Names and objects, one behind the other.
    pairs: Encoder,
}

/// The place of an object in its [`ManifestEncoder`].
#[derive(Debug, Clone, Copy)]
pub struct EncodedObject {
    /// Its name's head, its name, the object.
    start: usize,
    name: usize,
    object: usize,
    end: usize,
}

impl EncodedObject {
    /// Bytes of the object without its name.
    pub const fn byte_len(&self) -> usize {
        self.end - self.object
    }
}

impl ManifestEncoder {
    /// Encodes an object.
    ///
    /// # Errors
    ///
    /// As [`Manifest::to_cbor`](crate::Manifest::to_cbor), for faults within the object.
    pub fn add(&mut self, name: &str, object: &Object) -> Result<EncodedObject> {
        let limits = Limits::default();
        check_component_count(object.components.len(), &limits)?;
        let start = self.pairs.out.len();
        self.pairs.text(name);
        let value = self.pairs.out.len();
        let written = write_object(&mut self.pairs, name, object).map_err(Error::from);
        // A whole object below the limit cannot have attributes above it.
        let is_long = self.pairs.out.len() - value > limits.attributes_len;
        let checked = written.and_then(|()| {
            if is_long { check_attributes_len(object.attributes_len(), &limits) } else { Ok(()) }
        });
        if let Err(error) = checked {
            self.pairs.truncate(start);
            return Err(error);
        }
        Ok(EncodedObject {
            start,
            name: value - name.len(),
            object: value,
            end: self.pairs.out.len(),
        })
    }

    /// A copy of the object under another name. The old one stays.
    pub fn rename(&mut self, object: EncodedObject, name: &str) -> EncodedObject {
        let start = self.pairs.out.len();
        self.pairs.text(name);
        let value = self.pairs.out.len();
        self.pairs.out.extend_from_within(object.object..object.end);
        EncodedObject { start, name: value - name.len(), object: value, end: self.pairs.out.len() }
    }

    /// The bytes of an object's name.
    pub fn name(&self, object: EncodedObject) -> &[u8] {
        self.bytes(object.name, object.object)
    }

    /// An object of this encoder, decoded again. Fields that were not written have their default.
    ///
    /// # Errors
    ///
    /// The fault that a reader would find; offsets count from the object's first byte.
    pub fn object(&self, object: EncodedObject) -> Result<Object> {
        let placement = Placement {
            layout: Layout::V1_1,
            data: Span::exact(0, u64::MAX),
            limits: Limits::default(),
        };
        let cbor = self.bytes(object.object, object.end);
        let raw = schema::object(cbor, 0, placement.layout, &placement.limits);
        let valid = raw.validate(&placement, &mut Vec::new());
        valid.map_err(|fault| fault.error)
    }

    /// The manifest with these objects of this encoder, given in any order.
    ///
    /// # Errors
    ///
    /// As [`Manifest::to_cbor`](crate::Manifest::to_cbor), for faults of names and outside the objects.
    pub fn finish<O: Borrow<EncodedObject>>(
        &self,
        objects: impl IntoIterator<Item = O>,
        attributes: Option<&Attributes>,
        extra: &Attributes,
    ) -> Result<EncodedManifest<'_>> {
        // Encoded, shorter names come first. Names of one length are often in order already.
        let mut lengths: BTreeMap<usize, Vec<O>> = BTreeMap::new();
        let mut count = 0;
        for object in objects {
            let EncodedObject { name, object: end, .. } = *object.borrow();
            lengths.entry(end - name).or_default().push(object);
            count += 1;
        }
        let name = |object: &O| self.name(*object.borrow());
        for alike in lengths.values_mut() {
            if alike.is_sorted_by(|a, b| name(a) < name(b)) {
                continue;
            }
            alike.sort_by(|a, b| name(a).cmp(name(b)));
            let mut neighbours = alike.iter().zip(alike.iter().skip(1));
            let repeated = neighbours.find(|(a, b)| name(a) == name(b));
            if let Some((object, _)) = repeated {
                let name = String::from_utf8_lossy(name(object));
                return Err(Misuse::DuplicateName(name.into_owned()).into());
            }
        }

        // Fields of the root are sorted by their keys, so unknown fields may come before `objects`.
        let mut before = Vec::new();
        let mut behind = Vec::new();
        check_extra(extra, &ROOT_KEYS)?;
        for (key, value) in extra {
            if *key.to_cbor()? < *OBJECTS {
                before.push((key, value));
            } else {
                behind.push((key, value));
            }
        }
        let mut head = Encoder::default();
        let known = 2 + usize::from(attributes.is_some());
        let hasher = own_digest::hasher();
        let fields = head.begin_map(known + extra.len() + usize::from(hasher.is_some()));
        head.values(before, IN_ROOT, nesting())?;
        head.end_map(fields);
        head.out.extend_from_slice(OBJECTS);
        head.head(Head::Map(Some(count)));

        let mut tail = Encoder::default();
        let fields = tail.begin_pairs();
        tail.key("version");
        tail.text(VERSION);
        if let Some(attributes) = attributes {
            tail.key("attributes");
            tail.map(attributes, IN_ROOT, nesting())?;
        }
        tail.values(behind, IN_ROOT, nesting())?;
        tail.end_map(fields);

        // Objects that are neighbours in both orders become one piece.
        let mut runs: Vec<(usize, usize)> = Vec::new();
        for object in lengths.into_values().flatten() {
            let object = object.borrow();
            match runs.last_mut() {
                Some((_, end)) if *end == object.start => *end = object.end,
                _ => runs.push((object.start, object.end)),
            }
        }
        let runs = runs.into_iter().map(|(start, end)| self.bytes(start, end));
        let mut manifest =
            EncodedManifest { head: head.out, objects: runs.collect(), tail: tail.out };
        if let Some(hasher) = hasher {
            own_digest::append(hasher, &mut manifest);
        }
        Ok(manifest)
    }

    fn bytes(&self, start: usize, end: usize) -> &[u8] {
        self.pairs.out.get(start..end).unwrap_or_default()
    }
}

/// A whole manifest, in pieces.
#[derive(Debug)]
pub struct EncodedManifest<'e> {
    head: Vec<u8>,
    objects: Vec<&'e [u8]>,
    pub(crate) tail: Vec<u8>,
}

impl EncodedManifest<'_> {
    /// The manifest's bytes, front to back.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let (head, tail) = ([&*self.head], [&*self.tail]);
        head.into_iter().chain(self.objects.iter().copied()).chain(tail)
    }
}

/// A map that a writer takes from its caller.
///
/// ```
/// use zt_manifest::{Fields, Attributes};
///
/// Fields::File.check(&Attributes::from([("step", 7u64)]))?;
/// let fault = Fields::ExtraOfObject.check(&Attributes::from([("shape", 7u64)])).unwrap_err();
/// assert_eq!(fault.code(), "misuse");
/// # Ok::<(), zt_manifest::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fields {
    /// The attributes of the file.
    File,
    /// The attributes of an object.
    Object,
    /// Unknown fields of the root.
    ExtraOfFile,
    /// Unknown fields of an object.
    ExtraOfObject,
    /// Unknown fields of a component.
    ExtraOfComponent,
}

impl Fields {
    /// Refuses a map that [`ManifestEncoder`] refuses in this place, before anything is written.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Misuse`] names the key. [`crate::LimitExceeded::Attributes`]: the attributes of an
    /// object are longer than readers accept by default.
    pub fn check(self, map: &Attributes) -> Result<()> {
        let (depth, reserved) = match self {
            Fields::File => (IN_ROOT + 1, &[][..]),
            Fields::Object => (IN_OBJECT + 1, &[][..]),
            Fields::ExtraOfFile => (IN_ROOT, &ROOT_KEYS[..]),
            Fields::ExtraOfObject => (IN_OBJECT, &OBJECT_KEYS[..]),
            Fields::ExtraOfComponent => (IN_COMPONENT, &COMPONENT_KEYS[..]),
        };
        check_extra(map, reserved)?;
        let mut encoder = Encoder::default();
        encoder.head(Head::Map(Some(map.len())));
        for (key, value) in map {
            let written = encoder.values([(key, value)], depth, nesting());
            written.map_err(|fault| {
                let key = match key.as_str() {
                    Some(key) => format!("{key:?}"),
                    None => format!("{key:?}"),
                };
                let key = key.chars().take(KEY_SHOWN).collect();
                Misuse::Field { key, fault: Box::new(fault) }
            })?;
        }
        match self {
            Fields::Object => check_attributes_len(encoder.out.len(), &Limits::default()),
            _ => Ok(()),
        }
    }
}

/// Characters of a key that a message has.
const KEY_SHOWN: usize = 64;

/// The encoded key of the root's largest field.
const OBJECTS: &[u8] = b"\x67objects";

/// The nesting depth of the fields of the root, of an object and of a component.
const IN_ROOT: usize = 1;
const IN_OBJECT: usize = 3;
const IN_COMPONENT: usize = 5;

fn write_object(encoder: &mut Encoder, name: &str, object: &Object) -> Result<(), Misuse> {
    let Object { shape, format, attributes, components, extra } = object;
    let known = 3 + usize::from(attributes.is_some());
    let fields = encoder.begin_map(known + extra.len());
    encoder.key("shape");
    encoder.head(Head::Array(Some(shape.len())));
    for extent in shape {
        encoder.head(Head::Unsigned(*extent));
    }
    encoder.key("format");
    encoder.text(format);
    if let Some(attributes) = attributes {
        encoder.key("attributes");
        encoder.map(attributes, IN_OBJECT, nesting())?;
    }
    encoder.key("components");
    let pairs = encoder.begin_map(components.len());
    let mut roles: Vec<&str> = Vec::new();
    if components.len() > 1 {
        roles.extend(components.iter().map(|(role, _)| &**role));
    }
    if let Some(role) = repeated(&mut roles) {
        let (name, role) = (name.to_owned(), role.to_owned());
        return Err(Misuse::DuplicateRole { name, role });
    }
    for (role, component) in components {
        encoder.key(role);
        write_component(encoder, name, role, component)?;
    }
    encoder.end_map(pairs);
    end_fields(encoder, fields, extra, &OBJECT_KEYS, IN_OBJECT)
}

fn write_component(
    encoder: &mut Encoder,
    name: &str,
    role: &Text,
    component: &Component,
) -> Result<(), Misuse> {
    let Component { dtype, logical_type, byte_order, blob, extra } = component;
    let named = || (name.to_owned(), role.to_string());
    let (Some(dtype), ByteOrder::Little) = (dtype, byte_order) else {
        let (name, role) = named();
        return Err(Misuse::Legacy { name, role });
    };
    let logical_type = dtype.logical_type(logical_type.as_deref());
    let decoded_len = match (blob.encoding, blob.decoded_len) {
        (Encoding::Raw, _) => None,
        (_, None) => {
            let (name, role) = named();
            return Err(Misuse::UnknownLength { name, role });
        }
        (_, decoded_len) => decoded_len,
    };

    let compressed = 2 * usize::from(decoded_len.is_some());
    let chunks = blob.chunks.as_deref().filter(|_| decoded_len.is_none());
    let optional = [logical_type.is_some(), blob.digest.is_some(), chunks.is_some()];
    let optional = optional.into_iter().map(usize::from).sum::<usize>();
    let fields = encoder.begin_map(3 + compressed + optional + extra.len());
    if let Some(logical_type) = logical_type {
        encoder.key("type");
        encoder.text(logical_type);
    }
    encoder.key("dtype");
    encoder.text(dtype.as_str());
    if let Some(digest) = &blob.digest {
        encoder.key("digest");
        encoder.display(digest);
    }
    encoder.key("length");
    encoder.head(Head::Unsigned(blob.span.byte_len()));
    encoder.key("offset");
    encoder.head(Head::Unsigned(blob.span.offset()));
    if let Some(decoded_len) = decoded_len {
        encoder.key("encoding");
        encoder.text(blob.encoding.as_str());
        encoder.key("uncompressed_length");
        encoder.head(Head::Unsigned(decoded_len));
    }
    if let Some(chunks) = chunks {
        encoder.key(schema::CHUNKS);
        let fields = encoder.begin_map(3);
        encoder.key("digest");
        encoder.display(&chunks.digest);
        encoder.key("length");
        encoder.head(Head::Unsigned(chunks.span.byte_len()));
        encoder.key("offset");
        encoder.head(Head::Unsigned(chunks.span.offset()));
        encoder.end_sorted(fields);
    }
    end_fields(encoder, fields, extra, &COMPONENT_KEYS, IN_COMPONENT)
}

/// Ends a map of known fields, which were written in the order of their encoded keys, and adds the
/// unknown fields. An unknown field must not have the key of a known one.
fn end_fields(
    encoder: &mut Encoder,
    fields: Pairs,
    extra: &Attributes,
    reserved: &[&str],
    depth: usize,
) -> Result<(), Misuse> {
    if extra.is_empty() {
        encoder.end_sorted(fields);
        return Ok(());
    }
    check_extra(extra, reserved)?;
    encoder.values(extra, depth, nesting())?;
    encoder.end_map(fields);
    Ok(())
}

fn check_extra(extra: &Attributes, reserved: &[&str]) -> Result<(), Misuse> {
    let mut keys = extra.iter().filter_map(|(key, _)| key.as_str());
    match keys.find(|key| reserved.contains(key)) {
        Some(key) => Err(Misuse::ReservedKey(key.to_owned())),
        None => Ok(()),
    }
}

/// A reader's default limit, so that it can read everything that we write.
fn nesting() -> usize {
    Limits::default().nesting
}
