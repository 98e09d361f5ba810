//! The result of a delta as a file.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use zt::foreign::FileBuilder;
use zt::formats::Delta;
use zt::{
    Blob, ByteOrder, Component, Digest, Error, Object, OpenOptions, OwnedTensor, Result, Source,
    Span,
};
use zt_foreign::Input;

use crate::delta::fault::Fault;
use crate::delta::header::{Header, is_delta};
use crate::delta::part::{Coded, Part, Parts, without_planes};

/// What deltas make of a base.
pub(super) struct Made {
    /// The file. Values are made when they are read.
    pub(super) input: Input,
    /// The names of objects whose every component the last delta changes.
    pub(super) changed: HashSet<String>,
    /// The changes of all components.
    coded: Vec<Arc<Coded>>,
    /// Whether a delta drops objects of the base, or their attributes.
    drops: bool,
}

impl Made {
    /// The base, without deltas.
    pub(super) fn unchanged(base: &Input) -> Self {
        Made { input: base.clone(), changed: HashSet::new(), coded: Vec::new(), drops: false }
    }

    /// Whether every value of the base counts, so that another base leads to another result. Reads the codes.
    ///
    /// There is one exception: values that change their exponent can lead from two bases to one result. No file
    /// gets there by chance, and the result is right.
    pub(super) fn needs_all(&self) -> bool {
        let replaces = |coded: &Arc<Coded>| coded.replaces().unwrap_or(true);
        !self.drops && !self.coded.iter().any(replaces)
    }

    /// What the next delta makes of it.
    ///
    /// # Errors
    ///
    /// Code `delta` for an object that the base does not have, and for changes that do not fit it; the fault of
    /// an object of the delta.
    pub(super) fn then(mut self, delta: &Input, header: &Header) -> Result<Self> {
        let base = &self.input;
        if is_delta(base.file()) {
            return Err(base.blame(Fault::IsDelta.into()));
        }
        let (expected, found) = (header.base_objects(), base.file().entries().len() as u64);
        if expected != found {
            return Err(base.blame(Fault::Objects { expected, found }.into()));
        }
        let old = without_planes(base.file())?;
        let blame = |error: Error| delta.blame(error);
        let mut names = HashMap::new();
        let mut made = Vec::new();
        let mut whole = HashSet::new();
        for entry in delta.file().entries() {
            let tensor = entry.tensor().map_err(blame)?;
            if let Some(fault) = tensor.fault() {
                return Err(blame(fault.clone()));
            }
            if tensor.format() != Delta::FORMAT {
                whole.insert(tensor.name());
                continue;
            }
            let fault = |fault: Fault| blame(Error::from(fault).with_object(tensor.name()));
            let attributes =
                Delta::from_attributes(tensor.attributes()).map_err(|error| blame(error.into()))?;
            let name = attributes.base.unwrap_or(tensor.name());
            let Ok(of_base) = old.tensor(name) else {
                return Err(fault(Fault::NoBase(name.to_owned())));
            };
            if of_base.shape() != tensor.shape() {
                return Err(fault(Fault::Shape));
            }
            if names.insert(name, tensor.name()).is_some() || header.removed.contains(name) {
                return Err(fault(Fault::UsedTwice(name.to_owned())));
            }
            if attributes.attributes.is_some() || !attributes.sha256.is_empty() {
                self.drops |= attributes.attributes.is_some();
                made.push((tensor.name(), name, attributes));
            }
        }
        if let Some(name) = header.removed.iter().find(|name| old.get(name).is_none()) {
            return Err(blame(Fault::NoBase(name.clone()).into()));
        }
        self.changed.clear();
        let mut objects = HashMap::new();
        for (name, of_base, attributes) in &made {
            let of_base = old.owned_tensor(of_base).map_err(|error| base.blame(error))?;
            let changes = delta.file().owned_tensor(name).map_err(blame)?;
            let is_all = of_base.tensor().components().count() == attributes.sha256.len();
            let object = object_of(of_base, &changes, attributes, &mut self.coded);
            objects.insert(*name, object.map_err(|error| blame(error.with_object(name)))?);
            if is_all {
                self.changed.insert((*name).to_owned());
            }
        }
        let kept = base.file().select(|name| match names.get(name) {
            Some(new) => Some((*new).to_owned()),
            None => {
                let is_kept = !whole.contains(name) && !header.removed.contains(name);
                is_kept.then(|| name.to_owned())
            }
        })?;
        let kept = kept.replace(|name, _| objects.remove(name).map(Ok))?;
        let mut builder = FileBuilder::new(base.file().kind(), OpenOptions::new());
        builder.include(&kept, |_| true);
        builder.include(delta.file(), |name| whole.contains(name));
        if let Some(attributes) =
            header.attributes.clone().map_or_else(|| old.attributes(), |it| Ok(Some(it)))?
        {
            builder.attributes(attributes);
        }
        builder.extra(old.extra()?);
        let paths = base.paths().iter().chain(delta.paths());
        self.drops |=
            !header.removed.is_empty() || whole.iter().any(|name| old.get(name).is_some());
        self.input = Input::new(builder.build().map_err(blame)?, paths.cloned().collect());
        Ok(self)
    }
}

/// The object of the base with its changes, which are added to `all`.
fn object_of(
    base: OwnedTensor,
    changes: &OwnedTensor,
    attributes: &Delta<'_>,
    all: &mut Vec<Arc<Coded>>,
) -> Result<(Object, Arc<dyn Source>)> {
    let tensor = base.tensor();
    if let Some((role, _)) =
        attributes.sha256.iter().find(|(role, _)| tensor.component(role).is_err())
    {
        return Err(Error::from(Fault::NoRole).with_component(role));
    }
    let mut object = Object::new(tensor.shape(), tensor.format().to_owned());
    object.attributes.clone_from(&tensor.object().attributes);
    if let Some(new) = attributes.attributes {
        object.attributes = Some(new.clone());
    }
    object.extra.clone_from(&tensor.object().extra);
    let mut parts = Vec::new();
    let mut byte_len = 0u64;
    for (role, component) in tensor.components() {
        let too_long = || Error::from(Fault::Table("the object has 2^63 bytes or more"));
        let span = Span::new(byte_len, tensor.decoded_len(role)?).ok_or_else(too_long)?;
        byte_len = span.end();
        let dtype = tensor.dtype_to_write(role)?;
        let sum = attributes.sha256_of(role);
        let coded = sum.map(|_| Coded::new(changes.clone(), role, dtype, span.byte_len()));
        let coded = coded.transpose();
        let coded = coded.map_err(|error| error.with_component(role))?.map(Arc::new);
        all.extend(coded.clone());
        let blob = Blob::raw(span).with_digest(sum.map(Digest::Sha256));
        object.components.push((
            role.to_owned().into(),
            Component {
                dtype: Some(dtype),
                logical_type: component.logical_type.clone(),
                byte_order: ByteOrder::Little,
                blob,
                extra: component.extra.clone(),
            },
        ));
        parts.push(Part { span, role: role.to_owned(), dtype, coded, tensor: base.clone() });
    }
    Ok((object, Arc::new(Parts { parts, byte_len })))
}
