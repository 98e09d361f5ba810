//! The map of an object before it is validated.

use crate::attributes::Attributes;
use crate::error::Error;
use crate::object::ByteOrder;
use crate::text::Text;
use crate::value::Value;

/// The fields of an object's map, in the file's spelling; every field is optional.
///
/// It can describe an invalid object. [`RawObject::validate`] makes an [`crate::Object`] of a valid one. A
/// field of the wrong type is left out, and the first such fault is kept.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct RawObject {
    /// Dimensions; `None` if there are more than [`Limits::rank`](crate::Limits::rank).
    pub shape: Option<Vec<u64>>,
    /// The layout.
    pub format: Option<Text>,
    /// Attributes; `None` if the file has `null`.
    pub attributes: Option<Attributes>,
    /// By role, in the order of the file.
    pub components: Vec<(Text, RawComponent)>,
    /// Fields that this crate does not know.
    pub extra: Attributes,
    /// `dtype` of the object as a whole. Spec: 1.0 §4.2.
    pub(crate) dtype: Option<Text>,
    /// The offset of the map in the manifest.
    pub(crate) at: Option<u64>,
    /// The manifest is of version 1.2 or newer, in which zstd components must have a decoded length.
    pub(crate) demands_decoded_len: bool,
    pub(crate) fault: Option<Fault>,
}

/// The fields of a component's map, in the file's spelling; every field is optional.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct RawComponent {
    /// Storage type, such as `f32`, or `float32` in 0.1 and 1.0.
    pub dtype: Option<Text>,
    /// Logical type.
    pub logical_type: Option<Text>,
    /// Absolute offset of the blob, in bytes.
    pub offset: Option<u64>,
    /// Stored bytes.
    pub length: Option<u64>,
    /// `raw` or `zstd`.
    pub encoding: Option<Text>,
    /// Bytes after decoding: `uncompressed_length` in the manifest.
    pub decoded_len: Option<u64>,
    /// Checksum of the stored bytes.
    pub digest: Option<Text>,
    /// The table of chunk digests: `zt.chunks` in the manifest.
    pub chunks: Option<Value>,
    /// Byte order of the elements.
    pub byte_order: ByteOrder,
    /// Fields that this crate does not know.
    pub extra: Attributes,
    /// The offset of the map in the manifest.
    pub(crate) at: Option<u64>,
}

/// The fault of one object, or of one of its components. The rest of the file can be read. Spec: §3.4,
/// "Faults of one object".
#[derive(Debug)]
pub struct Fault {
    /// The component at fault, if it is one.
    pub role: Option<String>,
    /// The fault.
    pub error: Error,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.role {
            Some(role) => write!(f, "{role}: {}", self.error),
            None => self.error.fmt(f),
        }
    }
}

impl std::error::Error for Fault {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&self.error)
    }
}

impl RawObject {
    /// The first field of the wrong type, if there is one. [`RawObject::validate`] may find more faults.
    pub const fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    /// Keeps the first fault.
    pub(crate) fn note(&mut self, role: Option<&str>, error: Error) {
        self.fault.get_or_insert_with(|| Fault { role: role.map(str::to_owned), error });
    }
}
