//! A manifest in memory, for writers and editors.

use crate::attributes::Attributes;
use crate::error::Result;
use crate::manifest_encoder::ManifestEncoder;
use crate::object::Object;

/// A whole manifest, owned and decoded.
///
/// Readers use [`crate::Index`], which decodes objects on request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Manifest {
    /// Attributes of the file. `None` and an empty map are kept apart.
    pub attributes: Option<Attributes>,
    /// Objects and their names. The file has its own order.
    pub objects: Vec<(String, Object)>,
    /// Fields of the root that this crate does not know.
    pub extra: Attributes,
}

impl Manifest {
    /// The bytes of a manifest of version 1.2.0, in the deterministic encoding of RFC 8949 §4.2.1: equal
    /// manifests give equal bytes.
    ///
    /// Redundant fields are left out: `encoding` unless it is `zstd`, `uncompressed_length` of raw
    /// components, `type` if it is not set or repeats the dtype.
    ///
    /// # Errors
    ///
    /// Always the caller's fault.
    ///
    /// [`crate::Error::Misuse`]: duplicate names or roles, an extra key that the format defines, attributes
    /// nested beyond the default limit, a key with parts beyond [`MAX_KEY_LEN`](crate::MAX_KEY_LEN), or
    /// components that 1.2 cannot represent.
    /// [`crate::LimitExceeded::Attributes`], [`crate::LimitExceeded::Components`]: an object with more than
    /// readers accept by default.
    ///
    /// Spec: §3.5.
    pub fn to_cbor(&self) -> Result<Vec<u8>> {
        let mut encoder = ManifestEncoder::default();
        let objects = self.objects.iter();
        let objects = objects.map(|(name, object)| encoder.add(name, object));
        let objects = objects.collect::<Result<Vec<_>>>()?;
        let manifest = encoder.finish(objects, self.attributes.as_ref(), &self.extra)?;
        Ok(manifest.pieces().flatten().copied().collect())
    }
}
