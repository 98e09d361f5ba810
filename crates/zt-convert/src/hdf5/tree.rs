//! The groups of a file, and the datasets in them, by their paths.
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use std::collections::HashMap;

use zt::{
    Attributes, Error, FileBuilder, Limits, Object, RawObject, Result, SourceId, Value, Warning,
};

use super::attribute::{self, Found};
use super::dataset::Datasets;
use super::global_heap::GlobalHeaps;
use super::group::{Link, Target, dangling, is_group, links};
use super::object_header::{ObjectHeader, kind};
use super::store::Store;
use super::violation::Violation;

/// Bytes of all paths, in lengths of the file; a path takes some bytes beside its text.
const PATHS: u64 = 16;
const PATH: u64 = 64;
/// And so many in any file.
const PATHS_MIN: u64 = 64 << 10;

/// Soft links that lead to each other, at most: HDF5's own default.
const SOFT_LINKS: usize = 16;

/// Adds everything below the group at `root` to a file.
pub(super) struct Tree<'s> {
    store: &'s Store,
    root: u64,
    datasets: Datasets,
    heaps: GlobalHeaps,
    /// Datasets by their addresses: links that lead to one share it.
    known: HashMap<u64, (Object, SourceId)>,
    /// Groups that soft links were looked up in, by their addresses.
    looked_up: HashMap<u64, HashMap<String, Target>>,
    attributes: Vec<(String, Value)>,
    /// Bytes of paths that there may still be.
    left: u64,
    limit: u64,
}

/// A group that is being listed.
struct Open {
    path: String,
    address: u64,
    links: std::vec::IntoIter<Link>,
}

impl<'s> Tree<'s> {
    pub(super) fn new(store: &'s Store, root: u64, file: SourceId, limits: &Limits) -> Self {
        let limit = store
            .byte_len()
            .saturating_mul(PATHS)
            .saturating_add(PATHS_MIN);
        Tree {
            store,
            root,
            datasets: Datasets::new(file, store, limits),
            heaps: GlobalHeaps::default(),
            known: HashMap::new(),
            looked_up: HashMap::new(),
            attributes: Vec::new(),
            left: limit,
            limit,
        }
    }

    /// Adds every dataset, and every link that leads to none, under its path.
    ///
    /// # Errors
    ///
    /// What is wrong with the root group, or with the tree as a whole.
    pub(super) fn add_to(mut self, builder: &mut FileBuilder) -> Result<()> {
        let header = ObjectHeader::read(self.store, self.root)?;
        if !is_group(&header) {
            return Err(Violation::Missing { what: "root group" }.into());
        }
        let mut open = vec![self.open(builder, String::new(), self.root, &header)?];
        while let Some(group) = open.last_mut() {
            let Some(link) = group.links.next() else {
                open.pop();
                continue;
            };
            let path = match group.path.as_str() {
                "" => link.name,
                parent => format!("{parent}/{}", link.name),
            };
            self.spend(path.len())?;
            let from = group.address;
            let parents = || open.iter().map(|group| group.address);
            let depth = open.len();
            match self.follow(
                builder,
                &path,
                link.target,
                from,
                &parents().collect::<Vec<_>>(),
            ) {
                Ok(Some(_)) if depth >= builder.limits().nesting => {
                    let limit = builder.limits().nesting;
                    builder.fault(
                        path,
                        RawObject::default(),
                        Violation::Depth { limit }.into(),
                    );
                }
                Ok(Some(group)) => open.push(group),
                Ok(None) => {}
                Err(error) if error.kind() == zt::ErrorKind::Io => return Err(error),
                Err(error) => builder.fault(path, RawObject::default(), error),
            }
        }
        if !self.attributes.is_empty() {
            builder.attributes(self.attributes.into_iter().collect());
        }
        Ok(())
    }

    /// Adds what a link leads to, or returns the group that it is.
    fn follow(
        &mut self,
        builder: &mut FileBuilder,
        path: &str,
        target: Target,
        from: u64,
        parents: &[u64],
    ) -> Result<Option<Open>> {
        let address = match target {
            Target::Hard(address) => address,
            Target::Soft(target) => self.resolve(from, &target)?,
            Target::Elsewhere => {
                let what = "a link to another file";
                return Err(Violation::Unsupported { what }.into());
            }
        };
        if let Some((object, source)) = self.known.get(&address) {
            let (object, source) = (object.clone(), *source);
            // Each link has a copy of its own, and takes a few bytes of the file.
            self.spend_bytes(object.attributes.as_ref().map_or(0, weight))?;
            builder.object(path, object, source);
            return Ok(None);
        }
        // A group that holds itself has nothing that is not listed.
        if parents.contains(&address) {
            return Ok(None);
        }
        let header = ObjectHeader::read(self.store, address)?;
        if is_group(&header) {
            return self
                .open(builder, path.to_owned(), address, &header)
                .map(Some);
        }
        // A datatype with a name is no tensor.
        if header.message(kind::LAYOUT).is_none() && header.message(kind::DATASPACE).is_none() {
            return match header.message(kind::DATATYPE) {
                Some(_) => Ok(None),
                None => Err(Violation::Missing { what: "dataset" }.into()),
            };
        }
        let found = attribute::read_all(self.store, &header, &mut self.heaps);
        let attributes: Attributes = said(builder, Some(path), found)?.into_iter().collect();
        let mut listed = RawObject::default();
        listed.format = Some("dense".into());
        let object = self
            .datasets
            .object(builder, self.store, &header, attributes, &mut listed);
        match object {
            Ok((object, source)) => {
                self.known.insert(address, (object.clone(), source));
                builder.object(path, object, source);
            }
            Err(error) if error.kind() == zt::ErrorKind::Io => return Err(error),
            Err(error) => builder.fault(path, listed, error),
        }
        Ok(None)
    }

    /// The links of a group. Its attributes become attributes of the file: those of the root under
    /// their names, others as `path@name`.
    fn open(
        &mut self,
        builder: &mut FileBuilder,
        path: String,
        address: u64,
        header: &ObjectHeader,
    ) -> Result<Open> {
        let links = links(self.store, header)?.into_iter();
        let found = attribute::read_all(self.store, header, &mut self.heaps);
        for (name, value) in said(builder, None, found)? {
            self.spend(path.len().saturating_add(name.len()))?;
            let key = match path.as_str() {
                "" => name,
                path => format!("{path}@{name}"),
            };
            self.attributes.push((key, value));
        }
        Ok(Open {
            path,
            address,
            links,
        })
    }

    /// Counts a path.
    fn spend(&mut self, len: usize) -> Result<()> {
        self.spend_bytes(PATH.saturating_add(len as u64))
    }

    fn spend_bytes(&mut self, byte_len: u64) -> Result<()> {
        let limit = self.limit;
        let left = self.left.checked_sub(byte_len);
        self.left = left.ok_or(Violation::Paths { limit })?;
        Ok(())
    }

    /// The object that a path leads to, from a group on.
    fn resolve(&mut self, from: u64, path: &str) -> Result<u64> {
        let mut at = from;
        let mut hops = SOFT_LINKS;
        // What is left to go, the next part last.
        let mut parts: Vec<String> = Vec::new();
        let go = |at: &mut u64, path: &str, parts: &mut Vec<String>| {
            if path.starts_with('/') {
                *at = self.root;
            }
            let named = path.split('/').filter(|part| !matches!(*part, "" | "."));
            parts.extend(named.rev().map(ToOwned::to_owned));
        };
        go(&mut at, path, &mut parts);
        while let Some(part) = parts.pop() {
            let target = Self::look_up(self.store, &mut self.looked_up, at, &part)?;
            match target {
                Some(Target::Hard(address)) => at = address,
                Some(Target::Soft(further)) => {
                    hops = hops.checked_sub(1).ok_or_else(|| dangling(path))?;
                    self.store.charge(further.len() as u64)?;
                    go(&mut at, &further, &mut parts);
                }
                Some(Target::Elsewhere) | None => return Err(dangling(path)),
            }
        }
        Ok(at)
    }

    /// What a name in the group at `address` leads to.
    fn look_up(
        store: &Store,
        known: &mut HashMap<u64, HashMap<String, Target>>,
        address: u64,
        name: &str,
    ) -> Result<Option<Target>> {
        if let Some(group) = known.get(&address) {
            return Ok(group.get(name).cloned());
        }
        let header = ObjectHeader::read(store, address)?;
        let links = match is_group(&header) {
            true => links(store, &header)?,
            false => Vec::new(),
        };
        let group: HashMap<String, Target> = links
            .into_iter()
            .map(|link| (link.name, link.target))
            .collect();
        let target = group.get(name).cloned();
        known.insert(address, group);
        Ok(target)
    }
}

/// The attributes that have a value; of the others a warning.
///
/// # Errors
///
/// [`zt::ErrorKind::Io`]: what could not be read now is not left out as if it could never be.
fn said(
    builder: &mut FileBuilder,
    object: Option<&str>,
    found: Found,
) -> Result<Vec<(String, Value)>> {
    let mut values = Vec::with_capacity(found.len());
    for (name, value) in found {
        match value {
            Ok(value) => values.push((name, value)),
            Err(error) if error.kind() == zt::ErrorKind::Io => return Err(error),
            Err(error) => builder.warning(warning(object, &name, &error)),
        }
    }
    Ok(values)
}

fn warning(object: Option<&str>, name: &str, error: &Error) -> Warning {
    Warning {
        object: object.map(ToOwned::to_owned),
        component: None,
        code: "attribute",
        message: format!(
            "the attribute \"{}\" is left out: {}",
            name.escape_debug(),
            error.message()
        ),
    }
}

/// About what attributes take in memory.
fn weight(attributes: &Attributes) -> u64 {
    let pairs = attributes.iter().map(|(key, value)| {
        let (key, value) = (weight_of(key), weight_of(value));
        key.saturating_add(value)
    });
    pairs.fold(0, u64::saturating_add)
}

fn weight_of(value: &Value) -> u64 {
    let own = size_of::<Value>() as u64;
    let held = match value {
        Value::Text(text) => text.len() as u64,
        Value::Bytes(bytes) => bytes.len() as u64,
        Value::Array(items) => items.iter().map(weight_of).fold(0, u64::saturating_add),
        Value::Map(map) => weight(map),
        Value::Tag(_, value) => weight_of(value),
        _ => 0,
    };
    own.saturating_add(held)
}
