//! The objects of a file that is being written, by name.
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;
use zt_container::{Blob, Limits};
use zt_manifest::{
    EncodedManifest, EncodedObject, ManifestEncoder, Map, Object, check_attributes_len,
};

use crate::error::{Error, Result};

/// What the manifest will say, in the order in which it came.
///
/// Of many small objects the manifest's own bytes are kept and little else: decoded, each is four
/// times as long and five allocations.
#[derive(Default)]
pub(crate) struct Directory {
    objects: Vec<Kept>,
    /// Hashes of names, so that the table grows without any name being looked at again, and places
    /// in `objects`.
    by_name: HashTable<(u64, usize)>,
    hasher: RandomState,
    encoder: ManifestEncoder,
}

/// Bytes of an object that is small, and about as many as one of its components takes.
const SMALL: usize = 1 << 10;
const COMPONENT: usize = 64;

enum Kept {
    Encoded(EncodedObject),
    /// Some of its blobs are not known yet.
    Open(Box<(String, Object)>),
    /// A name that is taken, and by no object that the manifest can be told.
    Reserved(Box<str>),
    Removed,
}

impl Directory {
    /// How many objects there were, those counted that were removed.
    pub(crate) const fn len(&self) -> usize {
        self.objects.len()
    }

    /// The place of the object of that name.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        let hash = self.hasher.hash_one(name);
        let is_it = |(_, at): &(u64, usize)| self.name(*at) == Some(name.as_bytes());
        self.by_name.find(hash, is_it).map(|(_, at)| *at)
    }

    fn name(&self, at: usize) -> Option<&[u8]> {
        match self.objects.get(at)? {
            Kept::Encoded(object) => Some(self.encoder.name(*object)),
            Kept::Open(object) => Some(object.0.as_bytes()),
            Kept::Reserved(name) => Some(name.as_bytes()),
            Kept::Removed => None,
        }
    }

    /// Adds an object of a new name, all of whose blobs are known.
    ///
    /// # Errors
    ///
    /// What the manifest cannot say.
    pub(crate) fn push(&mut self, name: &str, object: &Object) -> Result<()> {
        let encoded = self.encoder.add(name, object);
        let encoded = encoded.map_err(|error| Error::from(error).with_object(name))?;
        self.insert(name, Kept::Encoded(encoded));
        Ok(())
    }

    /// Adds an object of a new name, some of whose blobs are to come.
    ///
    /// # Errors
    ///
    /// [`zt_manifest::LimitExceeded::Attributes`], which is not left for the end of the file to find.
    pub(crate) fn push_open(&mut self, name: &str, object: Object) -> Result<()> {
        let checked = check_attributes_len(object.attributes_len(), &Limits::default());
        checked.map_err(|error| Error::from(error).with_object(name))?;
        let object = Kept::Open(Box::new((name.to_owned(), object)));
        self.insert(name, object);
        Ok(())
    }

    /// Takes a new name for an object that is never told, until it is removed.
    pub(crate) fn reserve(&mut self, name: &str) {
        self.insert(name, Kept::Reserved(name.into()));
    }

    fn insert(&mut self, name: &str, object: Kept) {
        self.link(name, self.objects.len());
        self.objects.push(object);
    }

    fn link(&mut self, name: &str, at: usize) {
        let hash = self.hasher.hash_one(name);
        self.by_name
            .insert_unique(hash, (hash, at), |(hash, _)| *hash);
    }

    fn unlink(&mut self, name: &str) -> Option<usize> {
        let at = self.find(name)?;
        let hash = self.hasher.hash_one(name);
        let entry = self.by_name.find_entry(hash, |(_, found)| *found == at);
        entry.ok()?.remove();
        Some(at)
    }

    /// Takes an object out; whether it was there. The places of the others stay.
    pub(crate) fn remove(&mut self, name: &str) -> bool {
        let at = self.unlink(name);
        let object = at.and_then(|at| self.objects.get_mut(at));
        object.is_some_and(|object| {
            *object = Kept::Removed;
            true
        })
    }

    /// Gives an object a name that no other has; whether it was there.
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

    /// The object at a place, as far as its blobs are known.
    ///
    /// # Errors
    ///
    /// As [`ManifestEncoder::object`]: none, since what is encoded was held to what readers take.
    pub(crate) fn object(&self, at: usize) -> Result<Option<Cow<'_, Object>>> {
        Ok(match self.objects.get(at) {
            Some(Kept::Encoded(object)) => Some(Cow::Owned(self.encoder.object(*object)?)),
            Some(Kept::Open(object)) => Some(Cow::Borrowed(&object.1)),
            Some(Kept::Reserved(_) | Kept::Removed) | None => None,
        })
    }

    /// Whether the object at a place is found in no time, each time anew: to keep more of it than this
    /// does would take more memory than it is worth.
    pub(crate) fn is_small(&self, at: usize) -> bool {
        match self.objects.get(at) {
            Some(Kept::Encoded(object)) => object.byte_len() <= SMALL,
            Some(Kept::Open(object)) => object.1.components.len() <= SMALL / COMPONENT,
            Some(Kept::Reserved(_) | Kept::Removed) | None => true,
        }
    }

    /// Tells the blob of a component of an open object.
    pub(crate) fn set_blob(&mut self, at: usize, component: usize, blob: &Blob) {
        if let Some(Kept::Open(object)) = self.objects.get_mut(at)
            && let Some((_, component)) = object.1.components.get_mut(component)
        {
            component.blob.clone_from(blob);
        }
    }

    /// The manifest.
    ///
    /// # Errors
    ///
    /// What it cannot say.
    pub(crate) fn finish(
        &mut self,
        attributes: Option<&Map>,
        extra: &Map,
    ) -> Result<EncodedManifest<'_>> {
        for kept in &mut self.objects {
            if let Kept::Open(object) = kept {
                let (name, object) = &**object;
                *kept = Kept::Encoded(self.encoder.add(name, object)?);
            }
        }
        let encoded = self.objects.iter().filter_map(|object| match object {
            Kept::Encoded(object) => Some(*object),
            Kept::Open(_) | Kept::Reserved(_) | Kept::Removed => None,
        });
        Ok(self.encoder.finish(encoded, attributes, extra)?)
    }
}
