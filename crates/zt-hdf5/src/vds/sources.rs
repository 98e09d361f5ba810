//! The files and datasets that virtual datasets take their values from.
//!
//! libhdf5 looks for a source file in several folders. Here it must be below the folder of the file that
//! names it, because a hostile file could name any file of the system: see [`Neighbours`]. The values of
//! a source that does not exist are the fill value.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use zt::{Error, ErrorKind, Limits, Result, Source};
use zt_foreign::strided::Bands;
use zt_foreign::{Neighbours, Opening, Refusal};

use crate::bytes::budget::Budget;
use crate::bytes::fault::Hdf5Fault;
use crate::bytes::name;
use crate::bytes::store::{self, Store};
use crate::structures::common::Common;
use crate::structures::layout::Layout;
use crate::structures::object_header::ObjectHeader;
use crate::structures::{fill_value, superblock};
use crate::values::dataset::{Dataset, Datasets, Listed, Values};
use crate::vds::assembled::{Assembled, MappedBytes};
use crate::vds::mapping::Mapping;
use crate::vds::paths::Paths;
use crate::vds::selection::{Selection, Slab};

/// The most virtual datasets that are nested in each other.
const DEPTH: usize = 8;

/// The most mappings of all virtual datasets of a file and of their sources. Detectors write some
/// thousands.
const MAPPINGS: usize = 1 << 16;
/// The most rows of irregular selections, because each takes memory.
const ROWS: u64 = 1 << 20;

pub(crate) struct Hdf5File {
    pub(crate) store: Store,
    pub(crate) root: u64,
    path: Option<PathBuf>,
    pub(crate) common: RefCell<Common>,
    pub(crate) paths: RefCell<Paths>,
    pub(crate) datasets: Datasets,
    /// The datasets that are sources, by the addresses of their headers.
    made: RefCell<HashMap<u64, Rc<Found>>>,
}

impl Hdf5File {
    pub(crate) fn new(store: Store, root: u64, path: Option<&Path>, limits: &Limits) -> Self {
        Hdf5File {
            path: path.map(ToOwned::to_owned),
            common: RefCell::default(),
            paths: RefCell::new(Paths::new(root)),
            datasets: Datasets::new(&store, limits),
            made: RefCell::default(),
            store,
            root,
        }
    }
}

/// A dataset whose values are known.
pub(crate) struct Found {
    pub(crate) shape: Vec<u64>,
    pub(crate) values: Values,
    /// The names of missing sources.
    pub(crate) missing: Vec<String>,
    pub(crate) dataset: Dataset,
    source: Arc<dyn Source>,
    /// Of its file.
    decoded: Budget,
    /// How deep virtual datasets are nested below this one: 0 for one that is not virtual.
    level: usize,
}

/// The path of a file, and a name in it.
type Naming = (Option<PathBuf>, String);
/// A file that was opened; `None` for a missing one.
type Opened = Result<Option<Rc<Hdf5File>>>;

/// The files that are sources, and how much of the limits is left.
pub(crate) struct Sources<'o> {
    neighbours: Neighbours<'o>,
    limits: Limits,
    /// By the file that names them, and the name.
    named: HashMap<Naming, Opened>,
    /// By their real paths.
    files: HashMap<PathBuf, Rc<Hdf5File>>,
    mappings: usize,
    rows: u64,
    /// The bytes of all virtual datasets.
    made: u64,
    /// The bands of virtual datasets by their level. Making a band reads those of lower levels, and
    /// must not drop it.
    bands: [Bands; DEPTH],
}

impl<'o> Sources<'o> {
    pub(crate) fn new(limits: &Limits, opening: Opening<'o>) -> Self {
        Sources {
            neighbours: Neighbours::new(opening),
            limits: *limits,
            named: HashMap::new(),
            files: HashMap::new(),
            mappings: MAPPINGS,
            rows: ROWS,
            made: 0,
            bands: Default::default(),
        }
    }

    pub(crate) fn into_paths(self) -> Vec<PathBuf> {
        self.neighbours.into_paths()
    }

    /// The shape and the values of a dataset, whose header is at `address`. Sources outside the
    /// folder are unsupported, and so are sources of other elements.
    pub(crate) fn values(
        &mut self,
        file: &Rc<Hdf5File>,
        address: u64,
        dataset: Dataset,
    ) -> Result<Rc<Found>> {
        self.make(file, address, dataset, DEPTH)
    }

    fn make(
        &mut self,
        file: &Rc<Hdf5File>,
        address: u64,
        dataset: Dataset,
        depth: usize,
    ) -> Result<Rc<Found>> {
        if let Some(known) = file.made.borrow().get(&address) {
            return Ok(Rc::clone(known));
        }
        let store = &file.store;
        let (shape, values, level, missing) = match dataset.layout(store)? {
            Layout::Virtual(place, index) => {
                let limit = DEPTH;
                let depth = depth.checked_sub(1).ok_or(Hdf5Fault::Nested { limit })?;
                let mappings = match place {
                    Some(address) => mappings_at(file, address, index)?,
                    None => Vec::new(),
                };
                let dimension = |declared| Dimension { declared, least: 0, unlimited: None };
                let mut resolver = Resolver {
                    sources: self,
                    file,
                    dataset: &dataset,
                    depth,
                    dimensions: dataset.shape().iter().copied().map(dimension).collect(),
                    found: Vec::new(),
                    missing: Vec::new(),
                };
                for mapping in &mappings {
                    resolver.add(mapping)?;
                }
                resolver.finish()?
            }
            layout => {
                let values = file.datasets.values(store, &dataset, layout)?;
                (dataset.shape().to_vec(), values, 0, Vec::new())
            }
        };
        let target = Rc::new(Found {
            source: values.source(store),
            shape,
            values,
            missing,
            dataset,
            decoded: file.datasets.decoded.clone(),
            level,
        });
        file.made.borrow_mut().insert(address, Rc::clone(&target));
        Ok(target)
    }

    /// Counts a virtual dataset of `file`. All of them together have what the bytes of the file and of its sources can be
    /// decoded to, and the most bytes of one dataset: any number of datasets may take any values of one source.
    fn charge(&mut self, file: &Hdf5File, byte_len: u64) -> Result<(), Hdf5Fault> {
        let of_sources = self.files.values().map(|source| source.datasets.decoded.limit);
        let limit = of_sources.fold(file.datasets.made.limit, u64::saturating_add);
        let left = limit.saturating_sub(self.made);
        if byte_len > left {
            return Err(Hdf5Fault::Sparse { byte_len, left, limit });
        }
        self.made = self.made.strict_add(byte_len);
        Ok(())
    }

    fn spend(&mut self) -> Result<(), Hdf5Fault> {
        self.mappings = self.mappings.checked_sub(1).ok_or(Hdf5Fault::Mappings)?;
        Ok(())
    }

    fn find_in(
        &mut self,
        file: &Rc<Hdf5File>,
        file_name: &[u8],
        path: &[u8],
        wanted: &Dataset,
        depth: usize,
    ) -> Result<Option<Rc<Found>>> {
        let other = match file_name {
            b"." => Rc::clone(file),
            _ => match self.open(file, file_name)? {
                Some(other) => other,
                None => return Ok(None),
            },
        };
        let (store, root) = (&other.store, other.root);
        let address = other.paths.borrow_mut().find(store, root, path)?;
        let Some(address) = address else {
            return Ok(None);
        };
        let known = other.made.borrow().get(&address).cloned();
        let target = match known {
            Some(known) => known,
            None => {
                let header = ObjectHeader::read(store, address)?;
                let ml_dtypes = wanted.number.ml_dtype.as_slice();
                let mut listed = Listed::default();
                let dataset = {
                    let common = &mut other.common.borrow_mut();
                    Dataset::read(store, header, common, ml_dtypes, &mut listed)?
                };
                let dataset = dataset.ok_or(Hdf5Fault::Elements)?;
                self.make(&other, address, dataset, depth)?
            }
        };
        if !target.dataset.has_elements_of(wanted) {
            return Err(Hdf5Fault::Elements.into());
        }
        Ok(Some(target))
    }

    /// The file with that name; `None` if it is missing.
    pub(crate) fn open(&mut self, from: &Hdf5File, location: &[u8]) -> Opened {
        let refused = |why| {
            let location = name::text(location);
            Error::from(Hdf5Fault::Location { location, why })
        };
        let location = str::from_utf8(location).map_err(|_| refused("its name is not UTF-8"))?;
        let key = (from.path.clone(), location.to_owned());
        if let Some(known) = self.named.get(&key) {
            return known.clone();
        }
        let opened = match self.neighbours.open(from.path.as_deref(), location) {
            Ok((source, path)) => self.open_at(source, path).map(Some),
            Err(Refusal::Missing) => Ok(None),
            Err(Refusal::NeedsPath) => Err(refused("the file was opened without a path")),
            Err(Refusal::Location(why)) => Err(refused(why)),
            Err(Refusal::Failed(error)) => Err(error),
        };
        if !matches!(&opened, Err(error) if error.kind() == ErrorKind::Io) {
            self.named.insert(key, opened.clone());
        }
        opened
    }

    fn open_at(&mut self, source: Box<dyn Source>, path: PathBuf) -> Result<Rc<Hdf5File>> {
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        if let Some(known) = self.files.get(&real) {
            return Ok(Rc::clone(known));
        }
        let source: Arc<dyn Source> = source.into();
        let all = store::whole(&*source)?;
        let (store, root) = superblock::open(source, all)?;
        let file = Rc::new(Hdf5File::new(store, root, Some(&path), &self.limits));
        self.files.insert(real, Rc::clone(&file));
        Ok(file)
    }
}

/// The mappings of a virtual dataset, which are an object of a heap.
fn mappings_at(file: &Hdf5File, address: u64, index: u32) -> Result<Vec<Mapping>> {
    let mut common = file.common.borrow_mut();
    let mut mappings = common.heaps.object(&file.store, address, index)?;
    // Any number of datasets may name one list of mappings.
    file.store.charge(mappings.remaining())?;
    Mapping::read_all(&mut mappings)
}

/// A dimension of a virtual dataset.
struct Dimension {
    /// Its size in the dataspace.
    declared: u64,
    /// The least size that holds every limited mapping.
    least: u64,
    /// Where the longest of its unlimited mappings ends, if it has some.
    unlimited: Option<u64>,
}

/// Finds the source of every mapping of one virtual dataset.
struct Resolver<'r, 'o> {
    sources: &'r mut Sources<'o>,
    file: &'r Rc<Hdf5File>,
    dataset: &'r Dataset,
    depth: usize,
    dimensions: Vec<Dimension>,
    /// Selected elements of a source, and their places.
    found: Vec<(Selection, Selection, Rc<Found>)>,
    /// The names of missing sources.
    missing: Vec<String>,
}

impl Resolver<'_, '_> {
    fn add(&mut self, mapping: &Mapping) -> Result<()> {
        let unlimited = mapping.to.unlimited();
        let ends = mapping.to.ends();
        for (axis, (dimension, end)) in
            self.dimensions.iter_mut().zip(ends.iter().flatten()).enumerate()
        {
            if unlimited != Some(axis) {
                dimension.least = dimension.least.max(*end);
            }
        }
        match (unlimited, mapping.from.unlimited(), mapping.is_numbered()) {
            (None, None, false) => self.limited(mapping),
            (Some(axis), Some(of_source), false) => self.unlimited(mapping, axis, of_source),
            (Some(axis), None, true) => self.numbered(mapping, axis),
            _ => Err(Hdf5Fault::Selection.into()),
        }
    }

    /// A mapping of fixed selections.
    fn limited(&mut self, mapping: &Mapping) -> Result<()> {
        match self.named_source(mapping)? {
            Some(target) => self.found.push((mapping.from.clone(), mapping.to.clone(), target)),
            None => self.sources.spend()?,
        }
        Ok(())
    }

    /// A mapping whose dimension `axis` is as long as the dimension `of_source` of its source.
    fn unlimited(&mut self, mapping: &Mapping, axis: usize, of_source: usize) -> Result<()> {
        let Some(target) = self.named_source(mapping)? else {
            return self.grow(axis, 0);
        };
        let extent = target.shape.get(of_source).ok_or(Hdf5Fault::Selection)?;
        let slab = mapping.from.slab(of_source).ok_or(Hdf5Fault::Selection)?;
        let count = slab.before(*extent);
        let to = mapping.to.limited(axis, count);
        let end = to.slab(axis).and_then(Slab::end).ok_or(Hdf5Fault::Selection)?;
        self.found.push((mapping.from.limited(of_source, count), to, target));
        self.grow(axis, end)
    }

    /// A mapping of the sources with the numbers 0, 1, ... up to the first that is missing.
    fn numbered(&mut self, mapping: &Mapping, axis: usize) -> Result<()> {
        let mut end = 0;
        for number in 0u64.. {
            let Ok(target) = self.source(mapping, number)? else {
                break;
            };
            let to = mapping.to.of_block(axis, number).ok_or(Hdf5Fault::Selection)?;
            end = to.slab(axis).and_then(Slab::end).ok_or(Hdf5Fault::Selection)?;
            self.found.push((mapping.from.clone(), to, target));
        }
        self.grow(axis, end)
    }

    fn grow(&mut self, axis: usize, end: u64) -> Result<()> {
        let dimension = self.dimensions.get_mut(axis).ok_or(Hdf5Fault::Selection)?;
        dimension.unlimited = dimension.unlimited.max(Some(end));
        Ok(())
    }

    /// The source of a mapping without numbers. The name of a missing one is kept.
    fn named_source(&mut self, mapping: &Mapping) -> Result<Option<Rc<Found>>> {
        let source = self.source(mapping, 0)?;
        Ok(source.map_err(|name| self.missing.push(name)).ok())
    }

    /// The source of a mapping with that number, or its name if the file or the dataset is missing.
    fn source(&mut self, mapping: &Mapping, number: u64) -> Result<Result<Rc<Found>, String>> {
        self.sources.spend()?;
        let (file_name, path) = (mapping.file.of(number), mapping.dataset.of(number));
        let found = self.sources.find_in(self.file, &file_name, &path, self.dataset, self.depth);
        let name = || format!("{}:{}", name::text(&file_name), name::text(&path));
        match found {
            Ok(target) => Ok(target.ok_or_else(name)),
            Err(error) if error.kind() == ErrorKind::Io => Err(error),
            Err(error) => Err(Hdf5Fault::Source { name: name(), error }.into()),
        }
    }

    /// The shape, the values and the level of the dataset, and the names of missing sources.
    fn finish(self) -> Result<(Vec<u64>, Values, usize, Vec<String>)> {
        let size = |it: &Dimension| it.unlimited.map_or(it.declared, |end| end.max(it.least));
        let shape: Vec<u64> = self.dimensions.iter().map(size).collect();
        let byte_len = self.dataset.byte_len_of(&shape)?;
        if byte_len == 0 {
            return Ok((shape, Values::Stored(zt::Span::default()), 0, self.missing));
        }
        self.file.datasets.check_len(byte_len)?;
        self.sources.charge(self.file, byte_len)?;
        let (element_len, rows) = (self.dataset.element_len(), &mut self.sources.rows);
        let mut parts = Vec::new();
        for (from, to, target) in self.found {
            let from = from.runs(&target.shape, element_len, rows)?;
            let to = to.runs(&shape, element_len, rows)?;
            if from.total() != to.total() {
                return Err(Hdf5Fault::Selection.into());
            }
            let (source, decoded) = (Arc::clone(&target.source), target.decoded.clone());
            let (read_cost, level) = (target.values.read_cost(), target.level);
            parts.push(MappedBytes { source, from, to, read_cost, decoded, level });
        }
        let fill = fill_value::read(&self.file.store, &self.dataset.header, element_len)?;
        // Sources may have been made before this dataset, with a depth of their own.
        let below = parts.iter().map(|part| part.level).fold(0, usize::max);
        let limit = DEPTH;
        let bands = self.sources.bands.get(below).ok_or(Hdf5Fault::Nested { limit })?;
        let assembled = Assembled::new(fill, byte_len, parts, bands)?;
        let values = Values::made(assembled.read_cost(), Arc::new(assembled), None);
        // A level is below `DEPTH`.
        Ok((shape, values, below.strict_add(1), self.missing))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::size::Sizes;

    fn file(byte_len: u64) -> Rc<Hdf5File> {
        let sizes = Sizes { offset: 8, length: 8 };
        let bytes = Arc::new(zt::Memory::new(vec![0u8; usize::try_from(byte_len).unwrap()]));
        let store = Store::new(bytes, zt::Span::new(0, byte_len).unwrap(), 0, sizes);
        Rc::new(Hdf5File::new(store, 0, None, &Limits::default()))
    }

    /// 1,000 virtual datasets of 60 GiB in a file of 488 KB would make a reader busy for ever. The files of their
    /// sources have real values.
    #[test]
    fn virtual_datasets_are_limited_for_a_file_and_its_sources() {
        let (own, len) = (file(8), 60 << 30);
        let options = zt_foreign::InputOptions::default();
        let mut sources = Sources::new(&Limits::default(), Opening::new(&options));
        assert!(sources.charge(&own, len).is_ok());
        let refused = sources.charge(&own, len);
        assert!(matches!(refused, Err(Hdf5Fault::Sparse { .. })), "{refused:?}");
        sources.files.insert(PathBuf::from("source.h5"), file(60 << 20));
        assert!(sources.charge(&own, len).is_ok());
        assert!(sources.charge(&own, len).is_err());
    }
}
