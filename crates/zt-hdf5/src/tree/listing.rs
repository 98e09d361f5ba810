//! Lists the groups and datasets of a file by their paths.

use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use zt::foreign::{FileBuilder, SourceId};
use zt::{Attributes, Error, ErrorKind, Limits, Object, RawObject, Result, Source, Span, Value};
use zt_foreign::{MlDtype, Opening, Packing};

use crate::bytes::fault::Hdf5Fault;
use crate::bytes::name;
use crate::bytes::store::Store;
use crate::structures::attribute::{self, AllFound};
use crate::structures::group::{Links, Target, is_group};
use crate::structures::object_header::{ObjectHeader, kind};
use crate::tree::warnings::{self, ENUM, Warnings};
use crate::tree::weight;
use crate::values::dataset::{Dataset, Listed, Values};
use crate::values::widened::Widened;
use crate::vds::sources::{Found, Hdf5File, Sources};

/// The most bytes of all paths, in lengths of the file. In valid files, too, hundreds of links may lead
/// to a group with hundreds of members.
const PATHS: u64 = 32;
/// Bytes of a path beside its text.
const PATH: u64 = 64;
/// The bytes of paths that any file may have.
const PATHS_MIN: u64 = 1 << 20;

/// The most files that links lead through, one to the next.
const LINKS: usize = 8;

/// Adds everything below the group at `root` to a file.
pub(crate) struct Tree<'s> {
    /// The source of the structures of `here`.
    file: SourceId,
    /// The file that is being listed: the first one, or one that a link leads to.
    here: Rc<Hdf5File>,
    /// The other files that links led to, by their addresses in memory.
    others: HashMap<*const Hdf5File, (SourceId, HashMap<u64, Known>)>,
    /// How many links from file to file lead to `here`.
    hops: usize,
    sources: Sources<'s>,
    ml_dtypes: &'s [MlDtype],
    /// The objects by the addresses of their headers. Links to one address share an object.
    known: HashMap<u64, Known>,
    /// The attributes of all groups.
    attributes: Vec<(String, Value)>,
    /// Bytes that paths may still take.
    left: u64,
    limit: u64,
    /// By the address in memory of a shared enumeration's names: the first dataset that has them.
    named: HashMap<*const Attributes, String>,
}

/// The object at an address.
enum Known {
    Group(Group),
    Dataset(Object, SourceId),
    /// A named datatype, which is never listed.
    Datatype,
    /// A dataset of other elements than numbers, in words.
    NotTensor(&'static str),
    Fault(Listed, Error),
}

struct Group {
    links: Rc<Links>,
    attributes: GroupAttributes,
}

enum GroupAttributes {
    /// No path to the group has been listed.
    Read(AllFound),
    /// The range of the attributes that the first path to the group has added, and the length of the
    /// prefix of their names.
    Listed(Range<usize>, usize),
}

/// A group that is being listed.
struct Open {
    path: String,
    address: u64,
    links: Rc<Links>,
    next: usize,
}

impl<'s> Tree<'s> {
    /// `file` is the source of the structures.
    pub(crate) fn new(
        store: &Store,
        root: u64,
        file: SourceId,
        opening: Opening<'s>,
        limits: &Limits,
    ) -> Self {
        let limit = store.byte_len().saturating_mul(PATHS).saturating_add(PATHS_MIN);
        Tree {
            file,
            others: HashMap::new(),
            hops: 0,
            here: Rc::new(Hdf5File::new(store.sharing(), root, opening.path, limits)),
            sources: Sources::new(limits, opening),
            ml_dtypes: &opening.options.ml_dtypes,
            known: HashMap::new(),
            attributes: Vec::new(),
            left: limit,
            limit,
            named: HashMap::new(),
        }
    }

    /// Adds every dataset, and every link without a target, under its path. Returns the paths of
    /// the files that virtual datasets take values from. A fault of the root group, or of the tree
    /// as a whole, is an error.
    pub(crate) fn add_to(mut self, builder: &mut FileBuilder) -> Result<Vec<PathBuf>> {
        let (here, root) = (Rc::clone(&self.here), self.here.root);
        let header = ObjectHeader::read(&here.store, root)?;
        if !is_group(&header) {
            return Err(Hdf5Fault::Missing("the root group").into());
        }
        let group = self.group(root, &header)?;
        self.known.insert(root, Known::Group(group));
        if let Some(open) = self.open(builder, String::new(), root)? {
            self.walk(builder, open)?;
        }
        if !self.attributes.is_empty() {
            let attributes = warnings::distinct(builder, &mut Warnings::of(None), self.attributes);
            builder.attributes(attributes);
        }
        Ok(self.sources.into_paths())
    }

    /// Adds everything below a group.
    fn walk(&mut self, builder: &mut FileBuilder, group: Open) -> Result<()> {
        let mut open = vec![group];
        while let Some(group) = open.last_mut() {
            let links = Rc::clone(&group.links);
            let Some(link) = links.at(group.next) else {
                open.pop();
                continue;
            };
            group.next = group.next.strict_add(1);
            let part = name::part(&link.name);
            let is_renamed = part.as_bytes() != link.name;
            let path = match group.path.as_str() {
                "" => part,
                parent => format!("{parent}/{part}"),
            };
            self.spend(path.len())?;
            let from = group.address;
            let parents: Vec<u64> = open.iter().map(|group| group.address).collect();
            let depth = open.len();
            let followed = self.follow(builder, &path, &link.target, from, &parents);
            if is_renamed {
                let object = (!matches!(followed, Ok(Some(_)))).then_some(path.as_str());
                builder.warning(name::renamed(object, &path));
            }
            match followed {
                Ok(Some(_)) if depth >= builder.limits().nesting => {
                    let limit = builder.limits().nesting;
                    builder.fault(path, RawObject::default(), Hdf5Fault::Depth { limit }.into());
                }
                Ok(Some(group)) => open.push(group),
                Ok(None) => {}
                Err(error) if error.kind() == ErrorKind::Io => return Err(error),
                Err(error) => builder.fault(path, RawObject::default(), error),
            }
        }
        Ok(())
    }

    /// Adds the target of a link, or returns it if it is a group.
    fn follow(
        &mut self,
        builder: &mut FileBuilder,
        path: &str,
        target: &Target,
        from: u64,
        parents: &[u64],
    ) -> Result<Option<Open>> {
        let address = match target {
            Target::Hard(address) => *address,
            Target::Soft(target) => {
                self.spend_bytes(target.len() as u64)?;
                let found = self.here.paths.borrow_mut().find(&self.here.store, from, target)?;
                let Some(address) = found else {
                    warnings::dangling(builder, path, None, target);
                    return Ok(None);
                };
                address
            }
            Target::External { file, path: target } => {
                self.spend_bytes((file.len() as u64).strict_add(target.len() as u64))?;
                self.follow_out(builder, path, file, target)?;
                return Ok(None);
            }
            Target::Unknown => {
                return Err(Hdf5Fault::Unsupported("a link of an unknown kind").into());
            }
        };
        self.add(builder, path, address, parents)
    }

    /// Adds what is at `target` in another file, under `path`.
    fn follow_out(
        &mut self,
        builder: &mut FileBuilder,
        path: &str,
        file: &[u8],
        target: &[u8],
    ) -> Result<()> {
        let here = Rc::clone(&self.here);
        let other = self.sources.open(&here, file)?;
        let address = match &other {
            Some(other) => other.paths.borrow_mut().find(&other.store, other.root, target)?,
            None => None,
        };
        let (Some(other), Some(address)) = (other, address) else {
            warnings::dangling(builder, path, Some(file), target);
            return Ok(());
        };
        let limit = LINKS;
        let hops = self.hops.checked_add(1).filter(|hops| *hops <= limit);
        let hops = hops.ok_or(Hdf5Fault::Links { limit })?;
        let before = self.enter(builder, other, hops);
        let added = match self.add(builder, path, address, &[]) {
            Ok(Some(group)) => self.walk(builder, group),
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        self.enter(builder, here, before);
        added
    }

    /// Goes on in another file, and gives the number of links that led to the one before.
    fn enter(&mut self, builder: &mut FileBuilder, file: Rc<Hdf5File>, hops: usize) -> usize {
        let source = &file.store.source;
        let known = self.others.remove(&Rc::as_ptr(&file));
        let (source, known) =
            known.unwrap_or_else(|| (builder.source(Arc::clone(source)), HashMap::new()));
        let source = std::mem::replace(&mut self.file, source);
        let known = std::mem::replace(&mut self.known, known);
        let before = std::mem::replace(&mut self.here, file);
        self.others.insert(Rc::as_ptr(&before), (source, known));
        std::mem::replace(&mut self.hops, hops)
    }

    /// Adds the object at an address, or returns it if it is a group.
    fn add(
        &mut self,
        builder: &mut FileBuilder,
        path: &str,
        address: u64,
        parents: &[u64],
    ) -> Result<Option<Open>> {
        let is_first = !self.known.contains_key(&address);
        if is_first {
            let known = match self.read(builder, path, address) {
                Err(error) if error.kind() == ErrorKind::Io => return Err(error),
                Err(error) => Known::Fault(Listed::default(), error),
                Ok(known) => known,
            };
            self.known.insert(address, known);
        }
        match self.known.get(&address) {
            // A group that contains itself: all of it is listed already.
            Some(Known::Group(_)) if parents.contains(&address) => {}
            Some(Known::Group(_)) => return self.open(builder, path.to_owned(), address),
            Some(Known::Dataset(object, source)) => {
                let (object, source) = (object.clone(), *source);
                if !is_first {
                    // A link takes a few bytes of the file, and copies the attributes.
                    self.spend_bytes(object.attributes.as_ref().map_or(0, weight::of_all))?;
                }
                builder.object(path, object, source);
            }
            Some(Known::Fault(listed, error)) => {
                builder.fault(path, listed.clone().raw(), error.clone());
            }
            Some(Known::NotTensor(what)) => builder.not_a_tensor(path, what),
            Some(Known::Datatype) | None => {}
        }
        Ok(None)
    }

    /// Reads the object at an address. `path` is the first path to it.
    fn read(&mut self, builder: &mut FileBuilder, path: &str, address: u64) -> Result<Known> {
        let header = ObjectHeader::read(&self.here.store, address)?;
        if is_group(&header) {
            return self.group(address, &header).map(Known::Group);
        }
        if header.message(kind::LAYOUT).is_none() && header.message(kind::DATASPACE).is_none() {
            return match header.message(kind::DATATYPE) {
                Some(_) => Ok(Known::Datatype),
                None => Err(Hdf5Fault::Missing("the dataset").into()),
            };
        }
        let mut listed = Listed::default();
        match self.dataset(builder, (path, address), header, &mut listed) {
            Ok(Some((object, source))) => Ok(Known::Dataset(object, source)),
            Ok(None) => Ok(Known::NotTensor(listed.what())),
            Err(error) if error.kind() == ErrorKind::Io => Err(error),
            Err(error) => Ok(Known::Fault(listed, error)),
        }
    }

    fn group(&mut self, address: u64, header: &ObjectHeader) -> Result<Group> {
        let links = self.here.paths.borrow_mut().links(&self.here.store, address, header)?;
        let found =
            attribute::read_all(&self.here.store, header, &mut self.here.common.borrow_mut())?;
        let attributes = GroupAttributes::Read(found);
        Ok(Group { links, attributes })
    }

    /// The object of a dataset; `None` if it is not a tensor.
    fn dataset(
        &mut self,
        builder: &mut FileBuilder,
        (path, address): (&str, u64),
        header: ObjectHeader,
        listed: &mut Listed,
    ) -> Result<Option<(Object, SourceId)>> {
        let found =
            attribute::read_all(&self.here.store, &header, &mut self.here.common.borrow_mut())?;
        // Keras declares bf16 in this way, because h5py has no type for it.
        let ml_dtypes =
            if found.has_text("dtype", "bfloat16") { &[MlDtype::BFLOAT16] } else { self.ml_dtypes };
        let dataset = {
            let common = &mut self.here.common.borrow_mut();
            Dataset::read(&self.here.store, header, common, ml_dtypes, listed)?
        };
        let Some(dataset) = dataset else {
            return Ok(None);
        };
        let mut report = Warnings::of(Some(path));
        let mut pairs = warnings::values(builder, &mut report, "", found);
        let enumeration = dataset.names();
        let values = self.sources.values(&self.here, address, dataset)?;
        let (mut object, source) = self.object(builder, &values)?;
        warnings::missing(builder, &mut report, &values.missing);
        warnings::rounded(builder, &mut report, &values.dataset.number);
        if let Some((names, is_shared)) = enumeration {
            pairs.push((ENUM.to_owned(), self.names(path, &names, is_shared)?));
        }
        let attributes = warnings::distinct(builder, &mut report, pairs);
        self.spend_bytes(report.byte_len)?;
        object.attributes = Some(attributes).filter(|attributes| !attributes.is_empty());
        Ok(Some((object, source)))
    }

    /// The object of a dataset, without attributes, and the source of its values.
    fn object(&self, builder: &mut FileBuilder, found: &Found) -> Result<(Object, SourceId)> {
        let number = &found.dataset.number;
        let is_made = number.bit_layout.is_some() || number.packed().is_some();
        let (source, place) = match &found.values {
            Values::Stored(span) if !is_made => {
                return Ok((found.dataset.object(&found.shape, *span), self.file));
            }
            Values::Stored(span) => (found.values.source(&self.here.store), Some(span.offset())),
            Values::Made { source, place, .. } => (Arc::clone(source), *place),
        };
        let source: Arc<dyn Source> = if let Some(layout) = number.bit_layout {
            let wide = Widened::new(source, layout, number.dtype);
            Arc::new(wide.ok_or(Hdf5Fault::Overflow)?)
        } else if let Some(packed) = number.packed() {
            let count = source.byte_len();
            Arc::new(Packing::new(source, 0, count, packed))
        } else {
            source
        };
        let span = Span::new(0, source.byte_len()).ok_or(Hdf5Fault::Overflow)?;
        let source = match place {
            Some(place) => builder.derived_from(source, self.file, place),
            None => builder.derived(source),
        };
        Ok((found.dataset.object(&found.shape, span), source))
    }

    /// The names of an enumeration. If datasets share it, only the first has them, and the others have
    /// the first one's name. Otherwise a small file could cause any number of copies.
    fn names(&mut self, path: &str, names: &Arc<Attributes>, is_shared: bool) -> Result<Value> {
        if is_shared {
            if let Some(first) = self.named.get(&Arc::as_ptr(names)) {
                let first = first.clone();
                self.spend_bytes(first.len() as u64)?;
                return Ok(first.into());
            }
            self.named.insert(Arc::as_ptr(names), path.to_owned());
        }
        Ok(Value::Map(names.as_ref().clone()))
    }

    /// Opens the group at an address. The attributes of the root become attributes of the file, and
    /// attributes of other groups become `path@name`.
    fn open(
        &mut self,
        builder: &mut FileBuilder,
        path: String,
        address: u64,
    ) -> Result<Option<Open>> {
        let Some(Known::Group(group)) = self.known.get_mut(&address) else {
            return Ok(None);
        };
        let links = Rc::clone(&group.links);
        let prefix = match path.as_str() {
            "" => String::new(),
            path => format!("{path}@"),
        };
        let start = self.attributes.len();
        let none = GroupAttributes::Read(AllFound::default());
        let listed = match std::mem::replace(&mut group.attributes, none) {
            GroupAttributes::Read(found) => {
                let mut report = Warnings::of(None);
                let values = warnings::values(builder, &mut report, &prefix, found);
                self.spend_bytes(report.byte_len)?;
                for (name, value) in values {
                    self.spend(prefix.len().strict_add(name.len()))?;
                    self.attributes.push((format!("{prefix}{name}"), value));
                }
                GroupAttributes::Listed(start..self.attributes.len(), prefix.len())
            }
            GroupAttributes::Listed(range, skipped) => {
                for at in range.clone() {
                    let Some((key, value)) = self.attributes.get(at) else {
                        continue;
                    };
                    let (_, name) = key.split_at(skipped);
                    let (key, value) = (format!("{prefix}{name}"), value.clone());
                    self.spend(key.len())?;
                    self.spend_bytes(weight::of(&value))?;
                    self.attributes.push((key, value));
                }
                GroupAttributes::Listed(range, skipped)
            }
        };
        if let Some(Known::Group(group)) = self.known.get_mut(&address) {
            group.attributes = listed;
        }
        Ok(Some(Open { path, address, links, next: 0 }))
    }

    /// Counts a path.
    fn spend(&mut self, len: usize) -> Result<()> {
        self.spend_bytes(PATH.strict_add(len as u64))
    }

    fn spend_bytes(&mut self, byte_len: u64) -> Result<()> {
        let limit = self.limit;
        let left = self.left.checked_sub(byte_len);
        self.left = left.ok_or(Hdf5Fault::Paths { limit })?;
        Ok(())
    }
}
