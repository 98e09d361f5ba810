//! Objects and their components after validation.

use zt_container::{Blob, Limits};

use crate::dtype::DType;
use crate::error::{LimitExceeded, Result};
use crate::map::Map;
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

/// One blob and how to see its bytes. Spec: §3.4.
#[derive(Debug, Clone, PartialEq)]
pub struct Component {
    /// Storage type. `None` only in files of layout 1.0, for roles that it does not define.
    pub dtype: Option<DType>,
    /// What the elements mean, where that is more than `dtype` says: `type` in the manifest.
    pub logical_type: Option<Text>,
    /// Byte order of the elements.
    pub byte_order: ByteOrder,
    /// Where the bytes are and how they are stored.
    pub blob: Blob,
    /// Fields that this crate does not know, kept for a rewrite.
    pub extra: Map,
}

impl Component {
    /// A little-endian component without logical type or unknown fields.
    #[must_use]
    pub const fn new(dtype: DType, blob: Blob) -> Self {
        Component {
            dtype: Some(dtype),
            logical_type: None,
            byte_order: ByteOrder::Little,
            blob,
            extra: Map::new(),
        }
    }
}

/// A tensor as the file describes it: a shape, a format, and components by role. Spec: §3.3.
///
/// Read from a file, every blob is known to lie within the data region. That its length agrees with
/// shape and format is for the format to say, not for this crate.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    /// Dimensions, outermost first. Empty: one element.
    pub shape: Vec<u64>,
    /// The layout, such as `dense`. Any text: formats are an open set.
    pub format: Text,
    /// Parameters of the format, and anything else. `None` and empty are kept apart for a rewrite.
    pub attributes: Option<Map>,
    /// By role, in the order of the file. Roles are unique.
    pub components: Vec<(Text, Component)>,
    /// Fields that this crate does not know, kept for a rewrite.
    pub extra: Map,
}

impl Object {
    /// An object without components or attributes.
    #[must_use]
    pub fn new(shape: impl Into<Vec<u64>>, format: impl Into<Text>) -> Self {
        Object {
            shape: shape.into(),
            format: format.into(),
            attributes: None,
            components: Vec::new(),
            extra: Map::new(),
        }
    }

    /// This object with one more component, the last.
    #[must_use]
    pub fn with_component(mut self, role: impl Into<Text>, component: Component) -> Self {
        // Nearly every object has one, and a list that grows has room for four.
        if self.components.is_empty() {
            self.components.reserve_exact(1);
        }
        self.components.push((role.into(), component));
        self
    }

    /// The component of `role`.
    #[must_use]
    pub fn component(&self, role: &str) -> Option<&Component> {
        let mut components = self.components.iter();
        components.find_map(|(name, component)| (name == role).then_some(component))
    }

    /// The attributes; an empty map where there are none.
    #[must_use]
    pub fn attributes(&self) -> &Map {
        static EMPTY: Map = Map::new();
        self.attributes.as_ref().unwrap_or(&EMPTY)
    }

    /// Bytes that the manifest takes for attributes and unknown fields, of the object and of its
    /// components. Readers limit them by [`Limits::attributes_len`].
    #[must_use]
    pub fn attributes_len(&self) -> usize {
        let attributes = self.attributes.as_ref();
        let attributes = attributes.map_or(0, |map| map.compared().len());
        let components = self.components.iter();
        let extra = components.map(|(_, component)| &component.extra);
        // As readers count: of a field whose key is a text, its value alone.
        let len = |(key, value): (&Value, &Value)| match key {
            Value::Text(_) => value.compared().len(),
            _ => key.compared().len() + value.compared().len(),
        };
        let extra = extra.chain([&self.extra]).flatten();
        attributes + extra.map(len).sum::<usize>()
    }
}

/// Refuses an object of so many bytes of [attributes](Object::attributes_len).
///
/// # Errors
///
/// [`LimitExceeded::Attributes`].
pub fn check_attributes_len(found: usize, limits: &Limits) -> Result<()> {
    let limit = limits.attributes_len;
    match found > limit {
        true => Err(LimitExceeded::Attributes { limit, found }.into()),
        false => Ok(()),
    }
}
