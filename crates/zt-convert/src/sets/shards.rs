//! Opens a set of shards of one kind as one [`zt::File`].

use std::collections::hash_map::Entry as Slot;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

use zt::foreign::{FileBuilder, Kind};
use zt::{Entry, Error, File, FileSource, Result, Source, Span, Value, Warning};
use zt_foreign::{Fault, Input, Opening, Probe, beside, display, leads_out};

use super::index::{Index, Listed};
use super::violation::Violation;
use super::{IndexFile, USUAL};
use crate::merge::Union;
use crate::native::ZT;
use crate::table::Kinds;

/// Opens the set that `index` lists. Cost: reads the header of every shard, and keeps every shard open.
pub(super) fn open(index: &Index, opening: Opening<'_>, kinds: &Kinds) -> Result<Input> {
    let path = opening.path.ok_or(Fault::NeedsPath)?;
    let own_name = path.file_name().unwrap_or_default().to_string_lossy();
    if index.shards.iter().any(|name| *name == own_name) {
        let name = own_name.into_owned();
        return Err(Violation::ShardName { name }.into());
    }
    let sources = sources(index, path, opening)?;
    let mut set = Set {
        kinds,
        builder: None,
        opening,
        own_name: &own_name,
        index,
        found: vec![false; index.tensors().len()],
        total: Total { of_each: Some(0), shared_once: Some(0) },
        is_cut: false,
        elsewhere: HashMap::new(),
        unlisted: HashMap::new(),
        metadata: Union::default(),
        extra: Union::default(),
    };
    let mut paths = vec![path.to_owned()];
    for (position, (name, source)) in index.shards.iter().zip(sources).enumerate() {
        let shard = beside(path, name);
        let source = source.map_err(|error| error.with_path(&shard))?;
        set.add_shard(position, name, source, &shard)?;
        paths.push(shard);
    }
    Ok(Input::new(set.finish()?, paths))
}

/// The files of all shards, in order. Files of a store are opened at the same time.
fn sources(
    index: &Index,
    path: &Path,
    opening: Opening<'_>,
) -> Result<Vec<Result<Box<dyn Source>>>> {
    let Some(folder) = opening.folder else {
        return sources_on_disk(index, path, opening);
    };
    let names: Vec<&str> = index.shards.iter().map(String::as_str).collect();
    let found = folder.open(&names);
    let missing = names.iter().zip(&found);
    let missing = missing.filter(|(_, found)| matches!(found, Ok(None)));
    expect_all(index, missing.map(|(name, _)| (*name).to_owned()).collect())?;
    let some = |source: Option<Box<dyn Source>>| source.ok_or_else(|| Fault::NeedsPath.into());
    let found = found.into_iter();
    Ok(found.map(|found| found.and_then(some)).collect())
}

fn sources_on_disk(
    index: &Index,
    path: &Path,
    opening: Opening<'_>,
) -> Result<Vec<Result<Box<dyn Source>>>> {
    let names = index.shards.iter();
    // Only a regular file is opened, or a link to one: opening a pipe would wait for ever.
    let is_there = |name: &&String| {
        let metadata = fs::metadata(path.with_file_name(name));
        metadata.is_ok_and(|metadata| metadata.is_file())
    };
    let missing = names.clone().filter(|name| !is_there(name));
    for name in missing.clone() {
        if let Some(link) = Fault::of_place(&path.with_file_name(name)) {
            let name = name.clone();
            return Err(Violation::LostShard { name, link }.into());
        }
    }
    expect_all(index, missing.cloned().collect())?;
    if !opening.options.follow_links
        && let Some(name) = names.clone().find(|name| leads_out(path, &path.with_file_name(name)))
    {
        let name = name.clone();
        return Err(Violation::ShardLink { name }.into());
    }
    let open = |name| -> Result<Box<dyn Source>> {
        Ok(Box::new(FileSource::open(path.with_file_name(name))?))
    };
    Ok(names.map(open).collect())
}

fn expect_all(index: &Index, missing: Vec<String>) -> Result<()> {
    if missing.is_empty() {
        return Ok(());
    }
    let total = index.shards.len();
    Err(Violation::NoShards { missing, total }.into())
}

/// A set that is being opened.
struct Set<'x> {
    kinds: &'x Kinds,
    /// The kind of the first shard and a builder for it.
    builder: Option<(Kind, FileBuilder)>,
    opening: Opening<'x>,
    /// The name of the index's file.
    own_name: &'x str,
    index: &'x Index,
    /// By place in the index: whether the tensor was found.
    found: Vec<bool>,
    /// The bytes of the tensors that the index lists.
    total: Total,
    /// Whether the end of a shard is missing.
    is_cut: bool,
    /// Tensors of shards that the index does not give them, and the shard that has each.
    elsewhere: HashMap<String, &'x str>,
    /// Tensors that the index does not list, and the shard that has each.
    unlisted: HashMap<String, &'x str>,
    /// The attributes of all shards and of the index.
    metadata: Union,
    /// The unknown fields of all shards.
    extra: Union,
}

impl<'x> Set<'x> {
    fn add_shard(
        &mut self,
        position: usize,
        name: &'x str,
        source: Box<dyn Source>,
        path: &Path,
    ) -> Result<()> {
        let shard = self.open_shard(source, path)?;
        let found = shard.kind();
        let new = || (found, self.opening.builder(found));
        let (kind, mut builder) = self.builder.take().unwrap_or_else(new);
        if found != kind {
            let (name, found) = (name.to_owned(), found.as_str());
            return Err(Violation::ShardKind { name, found }.into());
        }
        let mut shadowed = HashSet::new();
        let mut spans = HashSet::new();
        for entry in shard.entries() {
            let tensor = entry.name();
            match self.index.find(tensor, position) {
                Listed::Here(place) => {
                    self.total.add(&entry, &mut spans);
                    if let Some(found) = self.found.get_mut(place) {
                        *found = true;
                    }
                }
                Listed::Elsewhere => {
                    let message =
                        format!("the copy in {name:?} is not read: the index names another shard");
                    builder.warning(Warning::new("shadowed", message).with_object(tensor));
                    shadowed.insert(tensor.to_owned());
                    self.elsewhere.insert(tensor.to_owned(), name);
                }
                Listed::Nowhere => builder.warning(self.add_unlisted(tensor, name)?),
            }
        }
        self.is_cut |= shard.truncated().is_some();
        builder.from_file(path);
        builder.include(&shard, |tensor| !shadowed.contains(tensor));
        let attributes = shard.attributes()?.unwrap_or_default();
        keep(&mut self.metadata, attributes, name, &mut builder)?;
        keep(&mut self.extra, shard.extra()?, name, &mut builder)?;
        self.builder = Some((kind, builder));
        Ok(())
    }

    /// Opens a shard. The index of another set is refused.
    fn open_shard(&self, source: Box<dyn Source>, path: &Path) -> Result<File> {
        let opening = Opening::new(self.opening.options);
        let open = || {
            let probe = Probe::new(&source)?;
            if let Some(index) = IndexFile::recognise(&probe)? {
                return index.open(opening, self.kinds);
            }
            let kind = self.kinds.recognise(&probe)?;
            let kind = kind.ok_or_else(|| self.kinds.unknown(&probe))?;
            drop(probe);
            kind.open(source, opening)
        };
        let opened = open().map_err(|error| error.with_path(path))?;
        Ok(opened.into_file())
    }

    /// Keeps a tensor that the index does not list. Two such tensors of one name are ambiguous.
    fn add_unlisted(&mut self, tensor: &str, shard: &'x str) -> Result<Warning> {
        match self.unlisted.entry(tensor.to_owned()) {
            Slot::Occupied(first) => {
                let (first, second) = ((*first.get()).to_owned(), shard.to_owned());
                let error = Error::from(Violation::Ambiguous { first, second });
                return Err(error.with_object(tensor));
            }
            Slot::Vacant(place) => place.insert(shard),
        };
        let message = format!("not in the index, but in {shard:?}");
        Ok(Warning::new("unlisted", message).with_object(tensor))
    }

    fn finish(mut self) -> Result<File> {
        let mut listed = self.index.tensors().zip(&self.found);
        if let Some(((name, shard), _)) = listed.find(|(_, found)| !**found) {
            let (shard, other) = (shard.to_owned(), self.elsewhere.get(name));
            let other = other.map(|other| (*other).to_owned());
            return Err(Error::from(Violation::NotInShard { shard, other }).with_object(name));
        }
        // An empty index has the usual kind.
        let empty = || (USUAL, self.opening.builder(USUAL));
        let (kind, mut builder) = self.builder.unwrap_or_else(empty);
        // Components of `.zt` are compressed and shared, which programs count in several ways.
        let total = self.index.total_size.filter(|_| kind != ZT && !self.is_cut);
        let differs = total.and_then(|total_size| self.total.differs_from(total_size));
        if let Some(warning) = differs {
            builder.warning(warning);
        }
        let of_index = self.index.metadata.iter();
        let of_index = of_index.map(|(key, text)| (key.as_str().into(), text.as_str().into()));
        keep(&mut self.metadata, of_index, self.own_name, &mut builder)?;
        let metadata = self.metadata.into_map();
        if !metadata.is_empty() {
            builder.attributes(metadata);
        }
        builder.extra(self.extra.into_map());
        builder.build()
    }
}

/// The bytes of tensors. Programs count bytes that several tensors share once, or for each of them.
/// `None` if one is unknown, or if they are 2^64 or more.
struct Total {
    of_each: Option<u64>,
    shared_once: Option<u64>,
}

impl Total {
    /// Adds a tensor of a shard. `spans` has the bytes of the tensors of that shard so far.
    fn add(&mut self, entry: &Entry<'_>, spans: &mut HashSet<Span>) {
        let components = entry.object().into_iter().flat_map(|object| &object.components);
        for (_, component) in components {
            let blob = &component.blob;
            let plus = |sum: Option<u64>| sum?.checked_add(blob.decoded_len?);
            self.of_each = plus(self.of_each);
            if spans.insert(blob.span) {
                self.shared_once = plus(self.shared_once);
            }
        }
    }

    /// The warning for another `total_size` in the index.
    fn differs_from(&self, total_size: u64) -> Option<Warning> {
        let found = self.of_each?;
        if [found, self.shared_once?].contains(&total_size) {
            return None;
        }
        let message = format!(
            "the index gives a total_size of {total_size} bytes, the tensors have {found}: the shards are others than \
             the index was written for, or its writer counted wrongly"
        );
        Some(Warning::new("total-size", message))
    }
}

/// Keeps the first value of each key, and warns of a different one in `shard`.
fn keep(
    union: &mut Union,
    pairs: impl IntoIterator<Item = (Value, Value)>,
    shard: &str,
    builder: &mut FileBuilder,
) -> Result<()> {
    for (key, value) in pairs {
        if let Some(key) = union.insert(key, value)? {
            let key = display(&key);
            let message = format!("{shard:?} has another value for {key}; the first is kept");
            builder.warning(Warning::new("attribute-conflict", message));
        }
    }
    Ok(())
}
