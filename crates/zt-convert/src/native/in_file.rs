//! Components that an edited file has already, which equal ones of the inputs can share.
//!
//! Candidates have the same length. If both are raw with digests of one algorithm, different digests
//! exclude them without a read. The digest of a short component is computed. The first bytes
//! of all other candidates are compared, as between inputs. Each candidate is read once for that.

use std::collections::HashMap;

use zt::manifest::ByteOrder;
use zt::{Component, Digest, DigestAlgorithm, Encoding, Tensor};
use zt_foreign::{Treatment, Written};

use crate::native::shares::{MOST_COMPARED, SAMPLE, Seen, Unit};

/// The components by their decoded length.
#[derive(Default)]
pub(crate) struct InFile<'i> {
    groups: HashMap<u64, Vec<Group<'i>>>,
}

/// Components of one length, with digests of one algorithm.
struct Group<'i> {
    /// `None` if the components have no digests of their contents.
    algorithm: Option<DigestAlgorithm>,
    by_digest: HashMap<Digest, Vec<Seen<'i>>>,
    /// All of them, until their first bytes are needed.
    unsampled: Vec<Seen<'i>>,
}

impl<'i> InFile<'i> {
    /// Adds the components of an object. Those that are empty or of unknown length are not shared.
    pub(crate) fn add(&mut self, tensor: Tensor<'i>) {
        for (role, component) in tensor.components() {
            let Some(byte_len @ 1..) = component.blob.decoded_len else {
                continue;
            };
            let digest = content_digest(component);
            let algorithm = digest.and_then(Digest::algorithm);
            let seen = Seen {
                unit: Unit { tensor, role, treatment: Treatment::Keep, is_split: false },
                written: Written { byte_len, cast: None },
            };
            let groups = self.groups.entry(byte_len).or_default();
            let at = groups.iter().position(|it| it.algorithm == algorithm);
            let at = at.unwrap_or(groups.len());
            if at == groups.len() {
                groups.push(Group { algorithm, by_digest: HashMap::new(), unsampled: Vec::new() });
            }
            let Some(group) = groups.get_mut(at) else {
                continue;
            };
            group.unsampled.push(seen);
            if let Some(digest) = digest {
                let alike = group.by_digest.entry(digest.clone()).or_default();
                if alike.len() < MOST_COMPARED {
                    alike.push(seen);
                }
            }
        }
    }

    /// Whether there is a component of this length.
    pub(crate) fn has(&self, byte_len: u64) -> bool {
        self.groups.contains_key(&byte_len)
    }

    /// The components with the digest of the unit's content, and those whose first bytes have to be
    /// compared with the unit's. The latter are returned once.
    pub(crate) fn candidates(&mut self, unit: &Unit<'i>) -> (Vec<Seen<'i>>, Vec<Seen<'i>>) {
        let (mut alike, mut unsampled) = (Vec::new(), Vec::new());
        let component = unit.component().filter(|_| unit.is_copied());
        let Some((component, groups)) = component.and_then(|component| {
            let byte_len = component.blob.decoded_len?;
            Some((component, self.groups.get_mut(&byte_len)?))
        }) else {
            return (alike, unsampled);
        };
        for group in groups {
            let digest = group.algorithm.and_then(|algorithm| {
                let known = content_digest(component).cloned();
                let known = known.filter(|it| it.algorithm() == Some(algorithm));
                known.or_else(|| computed(unit, component, algorithm))
            });
            match digest {
                Some(digest) => alike.extend(group.by_digest.get(&digest).into_iter().flatten()),
                None => unsampled.append(&mut group.unsampled),
            }
        }
        (alike, unsampled)
    }
}

/// The digest of a component's content, if it is the one of its stored bytes.
fn content_digest(component: &Component) -> Option<&Digest> {
    let is_raw = component.blob.encoding == Encoding::Raw;
    let is_plain = is_raw && component.byte_order == ByteOrder::Little;
    component.blob.digest.as_ref().filter(|_| is_plain)
}

/// The digest of the content of a short component; `None` if it is long or cannot be read.
fn computed(unit: &Unit<'_>, component: &Component, algorithm: DigestAlgorithm) -> Option<Digest> {
    let byte_len = component.blob.decoded_len?;
    if byte_len > SAMPLE {
        return None;
    }
    let content = unit.tensor.bytes(unit.role).ok()?;
    algorithm.digest(&content).ok()
}
