//! A manifest in memory, for writers and editors.

use ciborium_ll::Header;
use zt_container::{Encoding, Limits};

use crate::cbor::Encoder;
use crate::error::Misuse;
use crate::schema::{COMPONENT_KEYS, OBJECT_KEYS, ROOT_KEYS};
use crate::{ByteOrder, Component, Map, Object, Result, Text, VERSION};

/// Everything that a file's manifest says, owned.
///
/// Readers use [`crate::Index`], which decodes only what it is asked for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Manifest {
    /// About the file. `None` and empty are kept apart.
    pub attributes: Option<Map>,
    /// By name. Their order is not written.
    pub objects: Vec<(String, Object)>,
    /// Fields of the root that this crate does not know.
    pub extra: Map,
}

impl Manifest {
    /// The bytes of a manifest of version 1.2.0, in the deterministic encoding of RFC 8949 §4.2.1:
    /// manifests that say the same give the same bytes.
    ///
    /// Fields that say nothing are left out: `encoding` unless it is `zstd`, `uncompressed_length`
    /// of raw components, `type` where it is not set or repeats the dtype.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Misuse`], always the caller's fault: names or roles that are there twice, an
    /// extra key that the format defines, attributes nested beyond the default limit, components
    /// that 1.2 cannot describe.
    ///
    /// Spec: §3.5.
    pub fn to_cbor(&self) -> Result<Vec<u8>> {
        let mut encoder = Encoder::default();
        root(&mut encoder, self)?;
        Ok(encoder.out)
    }
}

/// How many maps are around the fields of the root, of an object and of a component.
const IN_ROOT: usize = 1;
const IN_OBJECT: usize = 3;
const IN_COMPONENT: usize = 5;

fn root(encoder: &mut Encoder, manifest: &Manifest) -> Result<(), Misuse> {
    let Manifest {
        attributes,
        objects,
        extra,
    } = manifest;
    // In the order of the encoded names, so that the largest map is written in place.
    let mut objects: Vec<_> = objects.iter().collect();
    objects.sort_by(|(a, _), (b, _)| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
    let mut neighbours = objects.iter().zip(objects.iter().skip(1));
    if let Some(((name, _), _)) = neighbours.find(|((a, _), (b, _))| a == b) {
        return Err(Misuse::DuplicateName(name.clone()));
    }

    let known = 2 + usize::from(attributes.is_some());
    let fields = encoder.begin_map(known + extra.len());
    encoder.key("objects");
    let pairs = encoder.begin_map(objects.len());
    for (name, object) in objects {
        encoder.key(name);
        write_object(encoder, name, object)?;
    }
    encoder.end_map(pairs);
    encoder.key("version");
    encoder.text(VERSION);
    if let Some(attributes) = attributes {
        encoder.key("attributes");
        encoder.map(attributes, IN_ROOT, nesting())?;
    }
    write_extra(encoder, extra, &ROOT_KEYS, IN_ROOT)?;
    encoder.end_map(fields);
    Ok(())
}

fn write_object(encoder: &mut Encoder, name: &str, object: &Object) -> Result<(), Misuse> {
    let Object {
        shape,
        format,
        attributes,
        components,
        extra,
    } = object;
    let known = 3 + usize::from(attributes.is_some());
    let fields = encoder.begin_map(known + extra.len());
    encoder.key("shape");
    encoder.head(Header::Array(Some(shape.len())));
    for extent in shape {
        encoder.head(Header::Positive(*extent));
    }
    encoder.key("format");
    encoder.text(format);
    if let Some(attributes) = attributes {
        encoder.key("attributes");
        encoder.map(attributes, IN_OBJECT, nesting())?;
    }
    encoder.key("components");
    let pairs = encoder.begin_map(components.len());
    let mut roles: Vec<&Text> = components.iter().map(|(role, _)| role).collect();
    roles.sort_unstable();
    let mut neighbours = roles.iter().zip(roles.iter().skip(1));
    if let Some((role, _)) = neighbours.find(|(role, next)| role == next) {
        return Err(Misuse::DuplicateRole {
            name: name.to_owned(),
            role: role.to_string(),
        });
    }
    for (role, component) in components {
        encoder.key(role);
        write_component(encoder, name, role, component)?;
    }
    encoder.end_map(pairs);
    write_extra(encoder, extra, &OBJECT_KEYS, IN_OBJECT)?;
    encoder.end_map(fields);
    Ok(())
}

fn write_component(
    encoder: &mut Encoder,
    name: &str,
    role: &Text,
    component: &Component,
) -> Result<(), Misuse> {
    let Component {
        dtype,
        logical_type,
        byte_order,
        blob,
        extra,
    } = component;
    let (name, role) = (|| name.to_owned(), || role.clone().into_owned());
    let (Some(dtype), ByteOrder::Little) = (dtype, byte_order) else {
        return Err(Misuse::Legacy {
            name: name(),
            role: role(),
        });
    };
    let logical_type = logical_type.as_deref();
    let logical_type = logical_type.filter(|logical_type| *logical_type != dtype.as_str());
    let decoded_len = match (blob.encoding, blob.decoded_len) {
        (Encoding::Raw, _) => None,
        (_, None) => {
            return Err(Misuse::UnknownLength {
                name: name(),
                role: role(),
            });
        }
        (_, decoded_len) => decoded_len,
    };

    let compressed = 2 * usize::from(decoded_len.is_some());
    let optional = usize::from(logical_type.is_some()) + usize::from(blob.digest.is_some());
    let fields = encoder.begin_map(3 + compressed + optional + extra.len());
    // In the order of the encoded keys, so that nothing has to be sorted.
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
    encoder.head(Header::Positive(blob.span.byte_len()));
    encoder.key("offset");
    encoder.head(Header::Positive(blob.span.offset()));
    if let Some(decoded_len) = decoded_len {
        encoder.key("encoding");
        encoder.text(blob.encoding.as_str());
        encoder.key("uncompressed_length");
        encoder.head(Header::Positive(decoded_len));
    }
    write_extra(encoder, extra, &COMPONENT_KEYS, IN_COMPONENT)?;
    encoder.end_map(fields);
    Ok(())
}

/// Unknown fields, which must not pass for known ones.
fn write_extra(
    encoder: &mut Encoder,
    extra: &Map,
    reserved: &[&str],
    depth: usize,
) -> Result<(), Misuse> {
    let mut keys = extra.iter().filter_map(|(key, _)| key.as_str());
    if let Some(key) = keys.find(|key| reserved.contains(key)) {
        return Err(Misuse::ReservedKey(key.to_owned()));
    }
    encoder.values(extra, depth, nesting())
}

/// As deep as a reader goes by default, so that everything we write can be read.
fn nesting() -> usize {
    Limits::default().nesting
}
