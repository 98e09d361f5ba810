//! An object in memory: [`Parts`] for reading, [`NewObject`] for writing.

use std::borrow::Cow;

use zt_manifest::{Attributes, Text};

use crate::base::elements::Elements;
use crate::base::error::{Error, FormatViolation, Result};
use crate::base::signature::{ComponentSignature, Signature};

/// An object as it was read: metadata and the elements of its components.
///
/// Only the components that were asked for are here; see
/// [`ObjectFormat::data_roles`](crate::base::format::ObjectFormat::data_roles).
///
/// The crate `zt` makes them of files. Without it:
///
/// ```
/// use std::borrow::Cow;
/// use std::io::Read;
/// use zt_container::{Container, FileSource, Limits};
/// use zt_formats::{DType, Dense, Elements, Parts, View};
/// use zt_manifest::{Index, Placement};
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/corpus/valid/dense_i32.zt");
/// let limits = Limits::default();
/// let container = Container::open(FileSource::open(path)?, &limits)?;
/// let (layout, data) = (container.layout(), container.footer().data());
/// let index = Index::parse(container.manifest_bytes()?, layout, &limits)?;
/// let placement = Placement::new(layout, data, limits);
/// let object = index.object(0).validate(&placement, &mut Vec::new())?;
/// let mut elements = Vec::new();
/// for (role, component) in &object.components {
///     let mut bytes = Vec::new();
///     container.read_blob(&component.blob)?.read_to_end(&mut bytes)?;
///     let mut of_role = Elements::new(component.dtype.unwrap_or(DType::U8), bytes);
///     of_role.logical_type = component.logical_type.clone();
///     elements.push((role.clone(), of_role));
/// }
/// let (shape, attributes) = (object.shape[..].into(), Cow::Borrowed(object.attributes()));
/// let dense = Dense::from_parts(Parts { shape, attributes, elements })?;
/// assert_eq!(dense.shape(), [2, 3]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Parts<'a> {
    /// The dimensions.
    pub shape: Cow<'a, [u64]>,
    /// The object's attributes.
    pub attributes: Cow<'a, Attributes>,
    /// Roles and elements, each role once.
    pub elements: Vec<(Text, Elements<'a>)>,
}

/// An object about to be written: what [`ToObject`](crate::base::format::ToObject) gives.
#[derive(Debug, Clone)]
pub struct NewObject<'a> {
    /// The dimensions.
    pub shape: Cow<'a, [u64]>,
    /// The manifest's `format`.
    pub format: Text,
    /// The object's attributes, if it has any.
    pub attributes: Option<Attributes>,
    /// Roles and elements, each role once, in the order of the file.
    pub components: Vec<(Text, Elements<'a>)>,
}

impl<'a> Parts<'a> {
    /// The elements with this role.
    pub fn get(&self, role: &str) -> Option<&Elements<'a>> {
        let mut elements = self.elements.iter();
        elements.find_map(|(name, elements)| (name == role).then_some(elements))
    }

    /// The elements with this role, which the format requires.
    ///
    /// # Errors
    ///
    /// Malformed: there are none (`missing-component`).
    pub fn component(&self, role: &'static str) -> Result<&Elements<'a>> {
        self.get(role).ok_or_else(|| missing(role))
    }

    /// Removes and returns the elements with this role, which the format requires.
    ///
    /// # Errors
    ///
    /// Malformed: there are none (`missing-component`).
    pub fn take(&mut self, role: &'static str) -> Result<Elements<'a>> {
        self.take_if_any(role).ok_or_else(|| missing(role))
    }

    /// Removes and returns the elements with this role, if there are any.
    pub fn take_if_any(&mut self, role: &str) -> Option<Elements<'a>> {
        let position = self.elements.iter().position(|(name, _)| name == role)?;
        Some(self.elements.swap_remove(position).1)
    }

    /// The same object, owned. Copies borrowed elements.
    ///
    /// # Errors
    ///
    /// [`Error::Allocation`] if there is no memory for the copies.
    pub fn into_owned(self) -> Result<Parts<'static>> {
        let elements = self.elements.into_iter();
        let elements = elements.map(|(role, elements)| Ok((role, elements.into_owned()?)));
        Ok(Parts {
            shape: Cow::Owned(self.shape.into_owned()),
            attributes: Cow::Owned(self.attributes.into_owned()),
            elements: elements.collect::<Result<_>>()?,
        })
    }

    /// The metadata of these parts.
    pub fn signature(&self) -> Signature<'_> {
        signature(&self.shape, &self.attributes, &self.elements)
    }
}

impl<'a> NewObject<'a> {
    /// An object whose shape is borrowed, with these components in their order.
    pub fn new(
        shape: &'a [u64],
        format: &'static str,
        attributes: Option<Attributes>,
        components: impl IntoIterator<Item = (&'static str, Elements<'a>)>,
    ) -> Self {
        let components = components.into_iter();
        NewObject {
            shape: Cow::Borrowed(shape),
            format: Text::Borrowed(format),
            attributes,
            components: components
                .map(|(role, elements)| (Text::Borrowed(role), elements))
                .collect(),
        }
    }

    /// The metadata of this object.
    pub fn signature(&self) -> Signature<'_> {
        static NONE: Attributes = Attributes::new();
        let attributes = self.attributes.as_ref().unwrap_or(&NONE);
        signature(&self.shape, attributes, &self.components)
    }

    /// The parts that a reader of the written object would get.
    pub fn into_parts(self) -> Parts<'a> {
        Parts {
            shape: self.shape,
            attributes: Cow::Owned(self.attributes.unwrap_or_default()),
            elements: self.components,
        }
    }
}

fn signature<'s>(
    shape: &'s [u64],
    attributes: &'s Attributes,
    elements: &'s [(Text, Elements<'_>)],
) -> Signature<'s> {
    let components = elements.iter().map(|(role, elements)| ComponentSignature {
        role,
        dtype: Some(elements.dtype),
        logical_type: elements.logical_type.as_deref(),
        byte_len: Some(elements.bytes.len() as u64),
    });
    Signature { shape, attributes, components: components.collect() }
}

fn missing(role: &'static str) -> Error {
    FormatViolation::MissingComponent.of(role)
}
