//! The objects of a file that is being written, by name.

use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;
use zt_container::{Blob, Limits};
use zt_manifest::{
    Attributes, EncodedManifest, EncodedObject, ManifestEncoder, Object, check_attributes_len,
};

use crate::error::{Error, Result};

/// The manifest's objects, in the order in which they were added.
///
/// A small object is kept as its bytes in the manifest. Decoded, it would take four times as much
/// memory and five allocations.
#[derive(Default)]
pub(crate) struct Directory {
    objects: Vec<Kept>,
    /// Halves of the hashes of names, and places in `objects`. With the hash kept, the table can grow
    /// without reading the names again.
    by_name: HashTable<(u32, u32)>,
    hasher: RandomState,
    encoder: ManifestEncoder,
}

/// The largest entry of a small object, about as long as one component takes decoded.
///
/// Pays: not measured.
const SMALL: usize = 1 << 10;
const COMPONENT: usize = 64;

enum Kept {
    Encoded(EncodedObject),
    /// Some of its blobs are not known yet.
    Open(Box<(String, Object)>),
    /// A name that is taken, without an object that the manifest can represent.
    Reserved(Box<str>),
    Removed,
}

impl Directory {
    /// The number of objects so far, removed ones included.
    pub(crate) const fn len(&self) -> usize {
        self.objects.len()
    }

    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        let is_it = |(_, at): &(u32, u32)| self.name(*at as usize) == Some(name.as_bytes());
        let found = self.by_name.find(whole(self.half_hash(name)), is_it);
        found.map(|(_, at)| *at as usize)
    }

    fn half_hash(&self, name: &str) -> u32 {
        let [a, b, c, d, ..] = self.hasher.hash_one(name).to_ne_bytes();
        u32::from_ne_bytes([a, b, c, d])
    }

    fn name(&self, at: usize) -> Option<&[u8]> {
        match self.objects.get(at)? {
            Kept::Encoded(object) => Some(self.encoder.name(*object)),
            Kept::Open(object) => Some(object.0.as_bytes()),
            Kept::Reserved(name) => Some(name.as_bytes()),
            Kept::Removed => None,
        }
    }

    /// Adds an object with a new name. All of its blobs are known.
    pub(crate) fn push(&mut self, name: &str, object: &Object) -> Result<()> {
        let encoded = self.encoder.add(name, object);
        let encoded = encoded.map_err(|error| Error::from(error).with_object(name))?;
        self.insert(name, Kept::Encoded(encoded));
        Ok(())
    }

    /// Adds an object with a new name. Some of its blobs are not known yet.
    /// Fails with [`zt_manifest::LimitExceeded::Attributes`] before the end of the file finds it.
    pub(crate) fn push_open(&mut self, name: &str, object: Object) -> Result<()> {
        let checked = check_attributes_len(object.attributes_len(), &Limits::default());
        checked.map_err(|error| Error::from(error).with_object(name))?;
        let object = Kept::Open(Box::new((name.to_owned(), object)));
        self.insert(name, object);
        Ok(())
    }

    /// Reserves a name without an object, until it is removed.
    pub(crate) fn reserve(&mut self, name: &str) {
        self.insert(name, Kept::Reserved(name.into()));
    }

    fn insert(&mut self, name: &str, object: Kept) {
        self.link(name, self.objects.len());
        self.objects.push(object);
    }

    fn link(&mut self, name: &str, at: usize) {
        let half = self.half_hash(name);
        let entry = (half, narrow(at));
        self.by_name.insert_unique(whole(half), entry, |(half, _)| whole(*half));
    }

    fn unlink(&mut self, name: &str) -> Option<usize> {
        let at = self.find(name)?;
        let hash = whole(self.half_hash(name));
        let entry = self.by_name.find_entry(hash, |(_, found)| *found as usize == at);
        entry.ok()?.remove();
        Some(at)
    }

    /// Removes an object, and returns whether it existed. The places of the others stay.
    pub(crate) fn remove(&mut self, name: &str) -> bool {
        let at = self.unlink(name);
        let object = at.and_then(|at| self.objects.get_mut(at));
        object.is_some_and(|object| {
            *object = Kept::Removed;
            true
        })
    }

    /// Renames an object to a free name, and returns whether it existed.
    pub(crate) fn rename(&mut self, from: &str, to: &str) -> bool {
        let Some(at) = self.unlink(from) else {
            return false;
        };
        match self.objects.get_mut(at) {
            Some(Kept::Encoded(object)) => *object = self.encoder.rename(*object, to),
            Some(Kept::Open(object)) => to.clone_into(&mut object.0),
            Some(Kept::Reserved(name)) => *name = to.into(),
            Some(Kept::Removed) | None => {}
        }
        self.link(to, at);
        true
    }

    /// The object at a place, with its blobs as far as they are known.
    /// Never fails: an encoded object was checked as readers check it.
    pub(crate) fn object(&self, at: usize) -> Result<Option<Cow<'_, Object>>> {
        Ok(match self.objects.get(at) {
            Some(Kept::Encoded(object)) => Some(Cow::Owned(self.encoder.object(*object)?)),
            Some(Kept::Open(object)) => Some(Cow::Borrowed(&object.1)),
            Some(Kept::Reserved(_) | Kept::Removed) | None => None,
        })
    }

    /// Whether the object at a place is cheap to decode each time. A cache would cost more than it
    /// saves.
    pub(crate) fn is_small(&self, at: usize) -> bool {
        match self.objects.get(at) {
            Some(Kept::Encoded(object)) => object.byte_len() <= SMALL,
            Some(Kept::Open(object)) => object.1.components.len() <= SMALL / COMPONENT,
            Some(Kept::Reserved(_) | Kept::Removed) | None => true,
        }
    }

    pub(crate) fn set_blob(&mut self, at: usize, component: usize, blob: &Blob) {
        if let Some(Kept::Open(object)) = self.objects.get_mut(at)
            && let Some((_, component)) = object.1.components.get_mut(component)
        {
            component.blob.clone_from(blob);
        }
    }

    pub(crate) fn finish(
        &mut self,
        attributes: Option<&Attributes>,
        extra: &Attributes,
    ) -> Result<EncodedManifest<'_>> {
        for kept in &mut self.objects {
            if let Kept::Open(object) = kept {
                let (name, object) = &**object;
                *kept = Kept::Encoded(self.encoder.add(name, object)?);
            }
        }
        let encoded = self.objects.iter().filter_map(|object| match object {
            Kept::Encoded(object) => Some(object),
            Kept::Open(_) | Kept::Reserved(_) | Kept::Removed => None,
        });
        Ok(self.encoder.finish(encoded, attributes, extra)?)
    }
}

/// A hash of 64 bits for the table, which takes its bits from both ends.
const fn whole(half: u32) -> u64 {
    ((half as u64) << 32) | half as u64
}

#[expect(clippy::expect_used, reason = "a manifest of so many objects has no reader")]
fn narrow(place: usize) -> u32 {
    u32::try_from(place).expect("a manifest of 4 GiB has fewer objects")
}
