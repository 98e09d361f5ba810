//! A set of safetensors files and its index, as one [`zt::File`].

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::fs;
use std::path::Path;

use zt::{Attributes, Error, FileBuilder, FileSource, Result, Source, Warning};

use super::header::{Header, Tensor};
use super::index::Index;
use super::read::add;
use super::violation::Violation;
use crate::fault::Fault;
use crate::input::{Input, Origin};
use crate::member::SAFETENSORS;

/// Opens the set that the index in `source` lists. Cost: the index and every shard's header are
/// read; one file stays open per shard.
pub(super) fn open(source: &dyn Source, origin: Origin<'_>) -> Result<Input> {
    let path = origin.path.ok_or(Fault::NeedsPath)?;
    let own_name = path.file_name().unwrap_or_default().to_string_lossy();
    let index = Index::read(source, &own_name)?;
    let mut set = Set {
        builder: FileBuilder::new(SAFETENSORS, origin.options.clone()),
        index: &index,
        found: vec![false; index.tensors().len()],
        unlisted: HashMap::new(),
        metadata: Metadata::default(),
    };
    let mut paths = vec![path.to_owned()];
    for (position, name) in index.shards.iter().enumerate() {
        let shard = path.with_file_name(name);
        set.add_shard(position, name, &shard)?;
        paths.push(shard);
    }
    Ok(Input::new(set.finish()?, paths))
}

/// A set on its way to becoming a file.
struct Set<'x> {
    builder: FileBuilder,
    index: &'x Index,
    /// By place in the index: whether the tensor has been met.
    found: Vec<bool>,
    /// Tensors that the index does not list, and the shard that has each.
    unlisted: HashMap<String, &'x str>,
    metadata: Metadata,
}

impl<'x> Set<'x> {
    fn add_shard(&mut self, position: usize, name: &'x str, path: &Path) -> Result<()> {
        let source = open_shard(name, path)?;
        let header = Header::read(&source).map_err(|error| error.with_path(path))?;
        let source = self.builder.source(source);
        for tensor in header.tensors {
            match self.index.find(&tensor.name) {
                Some((place, owner)) if owner == position => {
                    self.found
                        .get_mut(place)
                        .into_iter()
                        .for_each(|found| *found = true);
                }
                Some(_) => {
                    let message = format!("also in {name:?}, where the index does not look for it");
                    self.warn_of(&tensor, "shadowed", message);
                    continue;
                }
                None => self.add_unlisted(&tensor, name)?,
            }
            add(&mut self.builder, tensor, source);
        }
        for (key, value) in header.metadata.into_iter().flatten() {
            self.metadata.add(key, value, name, &mut self.builder);
        }
        Ok(())
    }

    /// Nothing is lost, but of two tensors nothing says which is meant.
    fn add_unlisted(&mut self, tensor: &Tensor, shard: &'x str) -> Result<()> {
        match self.unlisted.entry(tensor.name.clone()) {
            Slot::Occupied(first) => {
                let (first, second) = ((*first.get()).to_owned(), shard.to_owned());
                let error = Error::from(Violation::Ambiguous { first, second });
                return Err(error.with_object(&tensor.name));
            }
            Slot::Vacant(place) => place.insert(shard),
        };
        self.warn_of(
            tensor,
            "unlisted",
            format!("in {shard:?}, and not in the index"),
        );
        Ok(())
    }

    fn warn_of(&mut self, tensor: &Tensor, code: &'static str, message: String) {
        let object = Some(tensor.name.clone());
        self.builder.warning(Warning {
            object,
            component: None,
            code,
            message,
        });
    }

    fn finish(mut self) -> Result<zt::File> {
        let mut listed = self.index.tensors().zip(&self.found);
        if let Some(((name, shard), _)) = listed.find(|(_, found)| !**found) {
            let shard = shard.to_owned();
            return Err(Error::from(Violation::NotInShard { shard }).with_object(name));
        }
        if !self.metadata.pairs.is_empty() {
            self.builder
                .attributes(self.metadata.pairs.into_iter().collect::<Attributes>());
        }
        self.builder.build()
    }
}

/// A shard is a regular file, or a link to one: opening a pipe would wait for ever.
fn open_shard(name: &str, path: &Path) -> Result<FileSource> {
    if !fs::metadata(path).is_ok_and(|metadata| metadata.is_file()) {
        return Err(Violation::NoShard {
            name: name.to_owned(),
        }
        .into());
    }
    let source = FileSource::open(path).map_err(Error::from);
    source.map_err(|error| error.with_path(path))
}

/// The metadata of all shards.
#[derive(Default)]
struct Metadata {
    pairs: Vec<(String, String)>,
    places: HashMap<String, usize>,
}

impl Metadata {
    /// Of two values the first is kept.
    fn add(&mut self, key: String, value: String, shard: &str, builder: &mut FileBuilder) {
        match self.places.entry(key) {
            Slot::Vacant(place) => {
                self.pairs.push((place.key().clone(), value));
                place.insert(self.pairs.len() - 1);
            }
            Slot::Occupied(place) => {
                if self
                    .pairs
                    .get(*place.get())
                    .is_some_and(|(_, first)| *first != value)
                {
                    let key = place.key();
                    builder.warning(Warning {
                        object: None,
                        component: None,
                        code: "attribute-conflict",
                        message: format!(
                            "{shard:?} has another value of {key:?}: the first is kept"
                        ),
                    });
                }
            }
        }
    }
}
