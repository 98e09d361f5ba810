//! What can be recovered of each object.

use std::collections::HashMap;

use zt_container::{Blob, Span};
use zt_manifest::{ManifestDigest, Object};

use super::ledger::{Ledger, Proof};
use crate::error::{Error, Result};
use crate::file::{Entry, File};

/// What is left of an object or a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fate {
    /// Every component has the digest that the manifest records.
    Proved,
    /// Every component is there, and at least one has no digest that can be checked; or the manifest was
    /// changed, so that names, shapes and types may be wrong.
    Unproved,
    /// Some components are there, and some are lost.
    Partial,
    /// Nothing can be read.
    Lost,
}

/// An object of a manifest, and what is left of it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Recovered {
    /// Its name.
    pub name: String,
    /// What is left.
    pub fate: Fate,
    /// Why the object as a whole is lost.
    pub error: Option<Error>,
    /// Its components, in the order of the file; empty if the manifest's entry cannot be read.
    pub components: Vec<RecoveredComponent>,
}

/// A component, and what is left of it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RecoveredComponent {
    /// Its role.
    pub role: String,
    /// [`Fate::Proved`], [`Fate::Unproved`] or [`Fate::Lost`].
    pub fate: Fate,
    /// Why it is lost.
    pub error: Option<Error>,
}

/// The evidence in the file's bytes about one manifest.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    pub(super) objects: Vec<Recovered>,
    /// The numbers of components that are not empty, by their proofs.
    pub(super) proved: u64,
    pub(super) unproved: u64,
    /// Includes objects whose entries cannot be read, or whose blobs lie elsewhere, and a manifest that does
    /// not have its digest.
    pub(super) refuted: u64,
    /// Blobs that are not empty and have a digest that can be checked, the smallest first. Each
    /// blob comes once, with the number of its components: many places are searched for it, so
    /// naming it twice must not cost more.
    pub(super) digested: Vec<(Blob, u64)>,
    /// The end of the last blob; of the header, if there are no blobs.
    pub(super) blobs_end: u64,
}

impl Evidence {
    /// Compares all components of `file`, a view of the ledger's source, with the bytes.
    /// Fails only if it is interrupted.
    pub(super) fn of(file: &File, ledger: &mut Ledger<'_>) -> Result<Self> {
        let entries = file.entries();
        let objects = || entries.iter().filter_map(|entry| entry.object().ok());
        let components = objects().flat_map(|object| &object.components);
        let blobs = components.map(|(_, component)| component.blob.clone());
        let blobs: Vec<Blob> = blobs.collect();
        let mut evidence = Evidence { blobs_end: zt_container::HEADER_LEN, ..Evidence::default() };
        let proofs = ledger.prove(&blobs)?;
        for blob in &blobs {
            evidence.blobs_end = evidence.blobs_end.max(blob.end());
        }
        for (blob, proof) in blobs.iter().zip(&proofs) {
            let count = match proof {
                // Empty blobs fit everywhere, so they are no evidence.
                Some(Proof::Digest | Proof::Nothing) if blob.span.is_empty() => continue,
                Some(Proof::Digest) => &mut evidence.proved,
                Some(Proof::Nothing) => &mut evidence.unproved,
                _ => &mut evidence.refuted,
            };
            *count = count.strict_add(1);
        }
        evidence.digested = digested(&blobs);
        let is_changed = matches!(file.manifest_digest(), Some(ManifestDigest::Wrong { .. }));
        evidence.refuted = evidence.refuted.strict_add(is_changed.into());

        let unread = ledger.exceeded();
        let mut proofs = proofs.into_iter();
        for entry in &entries {
            let mut object = match entry.object() {
                Ok(object) => recovered(entry, object, &mut proofs, &unread),
                Err(error) => {
                    evidence.refuted = evidence.refuted.strict_add(1);
                    Recovered {
                        name: entry.name().to_owned(),
                        fate: Fate::Lost,
                        error: Some(error),
                        components: Vec::new(),
                    }
                }
            };
            if is_changed && object.fate == Fate::Proved {
                object.fate = Fate::Unproved;
            }
            evidence.objects.push(object);
        }
        Ok(evidence)
    }

    /// The number of right digests if all offsets count from `base`. `None` if the budget does not
    /// suffice.
    pub(super) fn proved_at(&self, base: u64, ledger: &mut Ledger<'_>) -> Result<Option<u64>> {
        /// Blobs that are tested first, because most bases are wrong.
        const FEW: usize = 3;
        let moved = |(blob, count): &(Blob, u64)| {
            let offset = base.checked_add(blob.span.offset())?;
            let mut blob = blob.clone();
            blob.span = Span::new(offset, blob.span.byte_len())?;
            Some((blob, *count))
        };
        match ledger.count_right(self.digested.iter().take(FEW).filter_map(moved))? {
            Some(right) if right > 0 => ledger.count_right(self.digested.iter().filter_map(moved)),
            few => Ok(few),
        }
    }
}

/// See [`Evidence::digested`].
fn digested(blobs: &[Blob]) -> Vec<(Blob, u64)> {
    let has_digest = |blob: &&Blob| !blob.span.is_empty() && blob.algorithm().is_some();
    let mut places = HashMap::new();
    let mut digested: Vec<(Blob, u64)> = Vec::new();
    for blob in blobs.iter().filter(has_digest) {
        let at = *places.entry(blob).or_insert(digested.len());
        match digested.get_mut(at) {
            Some((_, count)) => *count = count.strict_add(1),
            None => digested.push((blob.clone(), 1)),
        }
    }
    digested.sort_by_key(|(blob, _)| blob.span.byte_len());
    digested
}

fn recovered(
    entry: &Entry<'_>,
    object: &Object,
    proofs: &mut impl Iterator<Item = Option<Proof>>,
    unread: &Error,
) -> Recovered {
    let mut components = Vec::with_capacity(object.components.len());
    for ((role, component), proof) in object.components.iter().zip(proofs) {
        let (fate, error) = match proof {
            Some(Proof::Digest) => (Fate::Proved, None),
            Some(Proof::Nothing) => (Fate::Unproved, None),
            Some(Proof::Refuted(error)) => (Fate::Lost, Some(error)),
            None => (Fate::Lost, Some(unread.clone())),
        };
        let blame = |error: Error| {
            let error = error.with_object(entry.name()).with_component(role);
            error.with_span(component.blob.span)
        };
        components.push(RecoveredComponent {
            role: role.to_string(),
            fate,
            error: error.map(blame),
        });
    }
    let lost = components.iter().filter(|c| c.fate == Fate::Lost).count();
    let fate = match lost {
        0 if components.iter().all(|c| c.fate == Fate::Proved) => Fate::Proved,
        0 => Fate::Unproved,
        lost if lost < components.len() => Fate::Partial,
        _ => Fate::Lost,
    };
    Recovered { name: entry.name().to_owned(), fate, error: None, components }
}
