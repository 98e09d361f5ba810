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
use crate::bytes::name;
use crate::bytes::store::{self, Store};
use crate::bytes::violation::Violation;
use crate::structures::common::Common;
use crate::structures::layout::Layout;
use crate::structures::object_header::ObjectHeader;
use crate::structures::{fill_value, superblock};
use crate::values::dataset::{Dataset, Datasets, Listed, Values};
use crate::vds::assembled::{Assembled, Part};
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
        let mut missing = Vec::new();
        let (shape, values, level) = match dataset.layout(store)? {
            Layout::Virtual(place, index) => {
                let limit = DEPTH;
                let depth = depth.checked_sub(1).ok_or(Violation::Nested { limit })?;
                self.assemble(file, &dataset, place.map(|at| (at, index)), depth, &mut missing)?
            }
            layout => {
                let values = file.datasets.values(store, &dataset, layout)?;
                (dataset.shape().to_vec(), values, 0)
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

    /// The shape, the values and the level of a virtual dataset.
    fn assemble(
        &mut self,
        file: &Rc<Hdf5File>,
        dataset: &Dataset,
        place: Option<(u64, u32)>,
        depth: usize,
        missing: &mut Vec<String>,
    ) -> Result<(Vec<u64>, Values, usize)> {
        let mappings = match place {
            Some((address, index)) => {
                let mut common = file.common.borrow_mut();
                let mut mappings = common.heaps.object(&file.store, address, index)?;
                // Any number of datasets may name one list of mappings.
                file.store.charge(mappings.remaining())?;
                Mapping::read_all(&mut mappings)?
            }
            None => Vec::new(),
        };
        let mut shape = dataset.shape().to_vec();
        let mut found = Vec::new();
        // The least size of every dimension, and the size of unlimited ones.
        let mut least = vec![0u64; shape.len()];
        let mut sizes: Vec<Option<u64>> = vec![None; shape.len()];
        for mapping in &mappings {
            let (unlimited, unlimited_source) = (mapping.to.unlimited(), mapping.from.unlimited());
            let ends = mapping.to.ends();
            for (axis, (least, end)) in least.iter_mut().zip(ends.iter().flatten()).enumerate() {
                if unlimited != Some(axis) {
                    *least = (*least).max(*end);
                }
            }
            let end = match (unlimited, unlimited_source, mapping.is_numbered()) {
                (None, None, false) => {
                    match self.find(file, mapping, 0, dataset, depth, missing)? {
                        Some(target) => {
                            found.push((mapping.from.clone(), mapping.to.clone(), target))
                        }
                        None => self.spend()?,
                    }
                    continue;
                }
                (Some(axis), Some(of_source), false) => {
                    let target = self.find(file, mapping, 0, dataset, depth, missing)?;
                    let Some(target) = target else {
                        set_most(&mut sizes, axis, 0);
                        continue;
                    };
                    let extent = target.shape.get(of_source).ok_or(Violation::Selection)?;
                    let count = mapping.from.slab(of_source).map_or(0, |slab| slab.before(*extent));
                    let to = mapping.to.limited(axis, count);
                    let end = to.slab(axis).and_then(Slab::end).ok_or(Violation::Selection)?;
                    found.push((mapping.from.limited(of_source, count), to, target));
                    (axis, end)
                }
                (Some(axis), None, true) => {
                    let end = self.numbered(file, mapping, axis, dataset, depth, &mut found)?;
                    (axis, end)
                }
                _ => return Err(Violation::Selection.into()),
            };
            set_most(&mut sizes, end.0, end.1);
        }
        for ((count, size), least) in shape.iter_mut().zip(&sizes).zip(&least) {
            *count = size.map_or(*count, |size| size.max(*least));
        }
        let byte_len = dataset.byte_len_of(&shape)?;
        if byte_len == 0 {
            return Ok((shape, Values::Stored(zt::Span::default()), 0));
        }
        file.datasets.check_len(byte_len)?;
        let mut parts = Vec::new();
        for (from, to, target) in &found {
            parts.push(self.part(from, to, target, &shape, dataset)?);
        }
        let element_len = dataset.element_len();
        let fill = fill_value::read(&file.store, &dataset.header, element_len)?;
        let allow = |at: usize, byte_len: u64| {
            let budget = found.get(at).map(|(.., source)| &source.decoded);
            let spend = |budget: &Budget| {
                let limit = budget.limit;
                let spent = budget.spend(byte_len);
                spent.map_err(|left| Violation::Sparse { byte_len, left, limit })
            };
            Ok(budget.map_or(Ok(()), spend)?)
        };
        // Sources may have been made before this dataset, with a depth of their own.
        let levels = found.iter().map(|(.., source)| source.level);
        let below = levels.max().unwrap_or(0);
        let limit = DEPTH;
        let bands = self.bands.get(below).ok_or(Violation::Nested { limit })?;
        let assembled = Assembled::new(fill, byte_len, parts, bands, allow)?;
        let values = Values::made(assembled.read_cost(), Arc::new(assembled), None);
        Ok((shape, values, below.saturating_add(1)))
    }

    /// Adds the sources with the numbers 0, 1, ... up to the first that is missing. Returns the size of
    /// the unlimited dimension.
    fn numbered(
        &mut self,
        file: &Rc<Hdf5File>,
        mapping: &Mapping,
        axis: usize,
        dataset: &Dataset,
        depth: usize,
        found: &mut Vec<(Selection, Selection, Rc<Found>)>,
    ) -> Result<u64> {
        let mut end = 0;
        for number in 0u64.. {
            let mut missing = Vec::new();
            let target = self.find(file, mapping, number, dataset, depth, &mut missing)?;
            let Some(target) = target else {
                break;
            };
            let to = mapping.to.of_block(axis, number);
            let to = to.ok_or(Violation::Selection)?;
            end = to.slab(axis).and_then(Slab::end).ok_or(Violation::Selection)?;
            found.push((mapping.from.clone(), to, target));
        }
        Ok(end)
    }

    fn part(
        &mut self,
        from: &Selection,
        to: &Selection,
        target: &Found,
        shape: &[u64],
        dataset: &Dataset,
    ) -> Result<Part> {
        let element_len = dataset.element_len();
        let from = from.runs(&target.shape, element_len, &mut self.rows)?;
        let to = to.runs(shape, element_len, &mut self.rows)?;
        if from.total() != to.total() {
            return Err(Violation::Selection.into());
        }
        Ok(Part {
            source: Arc::clone(&target.source),
            from,
            to,
            read_cost: target.values.read_cost(),
        })
    }

    fn spend(&mut self) -> Result<(), Violation> {
        self.mappings = self.mappings.checked_sub(1).ok_or(Violation::Mappings)?;
        Ok(())
    }

    /// The source of a mapping with that number; `None` if the file or the dataset is missing.
    fn find(
        &mut self,
        file: &Rc<Hdf5File>,
        mapping: &Mapping,
        number: u64,
        wanted: &Dataset,
        depth: usize,
        missing: &mut Vec<String>,
    ) -> Result<Option<Rc<Found>>> {
        self.spend()?;
        let (file_name, path) = (mapping.file.of(number), mapping.dataset.of(number));
        let of_source = || format!("{}:{}", name::text(&file_name), name::text(&path));
        let found = self.find_in(file, &file_name, &path, wanted, depth);
        match found {
            Ok(None) => missing.push(of_source()),
            Ok(Some(_)) => {}
            Err(error) if error.kind() == ErrorKind::Io => return Err(error),
            Err(error) => {
                let name = of_source();
                return Err(Violation::Source { name, error }.into());
            }
        }
        found
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
                let dataset = dataset.ok_or(Violation::Elements)?;
                self.make(&other, address, dataset, depth)?
            }
        };
        if !target.dataset.has_elements_of(wanted) {
            return Err(Violation::Elements.into());
        }
        Ok(Some(target))
    }

    /// The file with that name; `None` if it is missing.
    fn open(&mut self, from: &Hdf5File, location: &[u8]) -> Opened {
        let refused = |why| {
            let location = name::text(location);
            Error::from(Violation::Location { location, why })
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

/// Grows the size of an unlimited dimension.
fn set_most(sizes: &mut [Option<u64>], axis: usize, end: u64) {
    if let Some(size) = sizes.get_mut(axis) {
        *size = Some(size.unwrap_or(0).max(end));
    }
}
