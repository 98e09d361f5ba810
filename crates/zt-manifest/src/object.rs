//! Objects and their components after validation.

use zt_container::{Blob, Limits};

use crate::attributes::Attributes;
use crate::dtype::DType;
use crate::error::{LimitExceeded, Result};
use crate::text::Text;
use crate::value::Value;

/// The order of the bytes within a stored element.
///
/// Every `.zt` file from 1.0 on is little-endian (spec: §7.1); big-endian elements
/// come from files of layout 0.1 and from foreign files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ByteOrder {
    /// Least significant byte first.
    #[default]
    Little,
    /// Most significant byte first.
    Big,
}

/// One blob and the type of its elements. Spec: §3.4.
#[derive(Debug, Clone, PartialEq)]
pub struct Component {
    /// Storage type. `None` only in files of layout 1.0, for roles that it does not define.
    pub dtype: Option<DType>,
    /// The meaning of the elements, unless `dtype` alone gives it: `type` in the manifest.
    pub logical_type: Option<Text>,
    /// Byte order of the elements.
    pub byte_order: ByteOrder,
    /// Where the bytes are and how they are stored.
    pub blob: Blob,
    /// Fields that this crate does not know; a rewrite keeps them.
    pub extra: Attributes,
}

impl Component {
    /// A little-endian component without logical type or unknown fields.
    pub const fn new(dtype: DType, blob: Blob) -> Self {
        Component {
            dtype: Some(dtype),
            logical_type: None,
            byte_order: ByteOrder::Little,
            blob,
            extra: Attributes::new(),
        }
    }
}

/// A tensor as the file describes it: a shape, a format, and components by role. Spec: §3.3.
///
/// In an object that was read from a file, every blob lies within the data region. This crate does not
/// compare the blob's length with shape and format: the crates of the formats do.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    /// Dimensions, outermost first. Empty: one element.
    pub shape: Vec<u64>,
    /// The layout, such as `dense`. Any text: formats are an open set.
    pub format: Text,
    /// Parameters of the format, and any others. A rewrite keeps `None` and an empty map apart.
    pub attributes: Option<Attributes>,
    /// By role, in the order of the file. Roles are unique.
    pub components: Vec<(Text, Component)>,
    /// Fields that this crate does not know; a rewrite keeps them.
    pub extra: Attributes,
}

impl Object {
    /// An object without components or attributes.
    pub fn new(shape: impl Into<Vec<u64>>, format: impl Into<Text>) -> Self {
        Object {
            shape: shape.into(),
            format: format.into(),
            attributes: None,
            components: Vec::new(),
            extra: Attributes::new(),
        }
    }

    /// This object with one more component at the end.
    pub fn with_component(mut self, role: impl Into<Text>, component: Component) -> Self {
        // Nearly every object has one component. A list that grows by itself makes room for four.
        if self.components.is_empty() {
            self.components.reserve_exact(1);
        }
        self.components.push((role.into(), component));
        self
    }

    /// The component of `role`.
    pub fn component(&self, role: &str) -> Option<&Component> {
        let mut components = self.components.iter();
        components.find_map(|(name, component)| (name == role).then_some(component))
    }

    /// The attributes; an empty map if there are none.
    pub fn attributes(&self) -> &Attributes {
        static EMPTY: Attributes = Attributes::new();
        self.attributes.as_ref().unwrap_or(&EMPTY)
    }

    /// The encoded length of attributes and unknown fields, those in components included, in bytes.
    /// [`Limits::attributes_len`] limits it for readers.
    #[expect(clippy::arithmetic_side_effects, reason = "lengths of bytes in memory")]
    pub fn attributes_len(&self) -> usize {
        let attributes = self.attributes.as_ref();
        let attributes = attributes.map_or(0, |map| map.compared().len());
        let components = self.components.iter();
        let extra = components.map(|(_, component)| &component.extra);
        // Readers count the same: if the key is a text, only the value.
        let len = |(key, value): (&Value, &Value)| match key {
            Value::Text(_) => value.compared().len(),
            _ => key.compared().len() + value.compared().len(),
        };
        let extra = extra.chain([&self.extra]).flatten();
        attributes + extra.map(len).sum::<usize>()
    }
}

/// Refuses an object with more components than readers accept.
///
/// # Errors
///
/// [`LimitExceeded::Components`].
pub fn check_component_count(found: usize, limits: &Limits) -> Result<()> {
    let limit = limits.components;
    if found > limit {
        return Err(LimitExceeded::Components { limit, found }.into());
    }
    Ok(())
}

/// Refuses `found` bytes of [attributes](Object::attributes_len) if they exceed the limit.
///
/// # Errors
///
/// [`LimitExceeded::Attributes`].
pub fn check_attributes_len(found: usize, limits: &Limits) -> Result<()> {
    let limit = limits.attributes_len;
    if found > limit {
        return Err(LimitExceeded::Attributes { limit, found }.into());
    }
    Ok(())
}
