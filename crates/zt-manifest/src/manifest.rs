//! A manifest in memory, for writers and editors.

use crate::error::Result;
use crate::manifest_encoder::ManifestEncoder;
use crate::map::Map;
use crate::object::Object;

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
    /// extra key that the format defines, attributes nested beyond the default limit, a key with
    /// parts beyond [`MAX_KEY_LEN`](crate::MAX_KEY_LEN), components that 1.2 cannot describe.
    /// [`crate::LimitExceeded::Attributes`]: an object with more of them than readers decode by default.
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
