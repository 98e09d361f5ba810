//! An open file, and the bytes of its tensors.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayon::prelude::*;
use zt::container::FileSource;
use zt::formats::PackedType;
use zt::{Buffer, DType, Source, Span};
use zt_convert::{InputOptions, SAFETENSORS};
use zt_safetensors::{Dtype, Header};

use super::element::Element;
use super::framework::{Backend, Device, Framework, finish, to_numpy, to_torch, torch_shape};
use super::message::{failed, no_file, refuse};
use crate::read::open::Open;
use crate::read::plan::{self, Plan, Reading, Wanted};
use crate::read::tensor::Tensor;
use crate::share::array::Array;
use crate::share::error::{OrRaise, Result, exception};
use crate::share::index::Index;
use crate::share::kinds::kinds;
use crate::share::memory::{Memory, PrivateMap};
use crate::share::{warning, work};

/// The step that a message names if opening fails.
const OPENING: &str = "Error while deserializing header";

/// An open file, with the framework and the device of its tensors.
pub(crate) struct Opened {
    table: Table,
    pub(crate) framework: Framework,
    pub(crate) device: Device,
    pub(crate) backend: Backend,
}

enum Table {
    /// A safetensors file, by its own header: 100,000 tensors would take as many objects.
    Own(Box<Own>),
    /// A file of another kind, or a set.
    Any(Arc<Open>),
}

struct Own {
    header: Header,
    source: FileSource,
    map: OnceLock<Option<Arc<PrivateMap>>>,
}

/// The type and the shape of a tensor.
pub(crate) struct Info {
    pub(crate) element: Element,
    pub(crate) shape: Vec<u64>,
}

impl Opened {
    pub(crate) fn new(
        py: Python<'_>,
        path: &Path,
        framework: Framework,
        device: Device,
        backend: Backend,
    ) -> Result<Self> {
        // A missing file is reported before a wrong argument.
        let source = py.detach(|| FileSource::open(path).map_err(zt::Error::from));
        let source = source.map_err(|error| missing(path, &error))?;
        let has_devices = matches!(framework, Framework::Torch | Framework::Paddle);
        if device != Device::Cpu && !has_devices {
            return Err(refuse(format!(
                "Device {device} is not supported for framework {framework}"
            )));
        }
        let table = Table::open(py, path, source)?;
        framework.import(py)?;
        Ok(Opened { table, framework, device, backend })
    }

    /// The texts among the attributes of the file.
    pub(crate) fn metadata<'py>(&self, py: Python<'py>) -> Result<Option<Bound<'py, PyDict>>> {
        let dict = PyDict::new(py);
        match &self.table {
            Table::Own(own) => {
                let Some(metadata) = own.header.metadata() else {
                    return Ok(None);
                };
                for (key, value) in metadata {
                    dict.set_item(key, value)?;
                }
            }
            Table::Any(open) => {
                let attributes = open.file().attributes();
                let attributes = attributes.map_err(|error| failed(OPENING, &error))?;
                for (key, value) in attributes.unwrap_or_default().iter() {
                    if let (Some(key), Some(value)) = (key.as_str(), value.as_str()) {
                        dict.set_item(key, value)?;
                    }
                }
                if dict.is_empty() {
                    return Ok(None);
                }
            }
        }
        Ok(Some(dict))
    }

    /// The names, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = match &self.table {
            Table::Own(own) => own.header.by_name().map(|it| it.name.clone()).collect(),
            Table::Any(open) => open.file().names().map(str::to_owned).collect(),
        };
        names.sort_unstable();
        names
    }

    /// The names in the order of the data.
    pub(crate) fn names_by_offset(&self) -> Vec<&str> {
        match &self.table {
            Table::Own(own) => own.header.tensors().iter().map(|tensor| &*tensor.name).collect(),
            Table::Any(open) => open.file().entries().iter().map(zt::Entry::name).collect(),
        }
    }

    pub(crate) fn info(&self, name: &str) -> Result<Info> {
        match &self.table {
            Table::Own(own) => own.info(name),
            Table::Any(open) => {
                let tensor = any_tensor(open, name)?;
                self.packed_info(&tensor).map_or_else(|| any_info(&tensor), Ok)
            }
        }
    }

    /// The type and the shape of values of less than a byte, if PyTorch has the type. It keeps them
    /// packed. Other values are unpacked.
    fn packed_info(&self, tensor: &Tensor) -> Option<Info> {
        let tensor = tensor.tensor();
        let dtype = PackedType::from_format(tensor.format()).and_then(Dtype::from_packed)?;
        let element = Element::Of(dtype);
        let is_known = self.framework == Framework::Torch && element.in_framework().is_some();
        is_known.then(|| Info { element, shape: tensor.shape().to_vec() })
    }

    /// A whole tensor, for the framework and on the device.
    pub(crate) fn tensor<'py>(&self, py: Python<'py>, name: &str) -> Result<Bound<'py, PyAny>> {
        finish(self.whole(py, name)?, self.framework, &self.device)
    }

    /// Every tensor, by name, in the order of the data.
    pub(crate) fn tensors<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        if let Table::Own(own) = &self.table
            && self.framework == Framework::Numpy
        {
            let (start, data) = own.all(py)?;
            for tensor in own.header.tensors() {
                let at = tensor.span.offset().saturating_sub(start);
                let part = data.part(at as usize, tensor.span.byte_len() as usize);
                let part = part.ok_or_else(|| refuse("a tensor lies outside of the data"))?;
                let array = to_numpy(py, Element::Of(tensor.dtype), &tensor.shape, part)?;
                dict.set_item(&tensor.name, array)?;
            }
            return Ok(dict);
        }
        for name in self.names_by_offset() {
            dict.set_item(name, self.tensor(py, name)?)?;
        }
        Ok(dict)
    }

    /// A whole tensor on the CPU: of PyTorch, or of NumPy for the other frameworks. It is writable, and
    /// no write reaches the file.
    pub(crate) fn whole<'py>(&self, py: Python<'py>, name: &str) -> Result<Bound<'py, PyAny>> {
        // PyTorch takes over the bytes of a view. The other frameworks copy them at once.
        let is_view = self.backend == Backend::Mmap && self.framework != Framework::Numpy;
        let (info, memory) = match &self.table {
            Table::Own(own) => {
                let info = own.info(name)?;
                let span = own.span(name)?;
                let mapped = is_view.then(|| own.mapped(span)).flatten();
                let memory = match mapped {
                    Some(memory) => memory,
                    None => own.read(py, span)?,
                };
                (info, memory)
            }
            Table::Any(open) => {
                let tensor = any_tensor(open, name)?;
                match self.packed_info(&tensor) {
                    Some(info) => (info, tensor.packed(py, !is_view)?),
                    None => parts_of(tensor.dense_array(py, (!is_view).then_some(true))?)?,
                }
            }
        };
        self.array(py, &info, memory.writable())
    }

    /// Bytes as a tensor of PyTorch, or as an array of NumPy for the other frameworks.
    fn array<'py>(
        &self,
        py: Python<'py>,
        info: &Info,
        memory: Memory,
    ) -> Result<Bound<'py, PyAny>> {
        match self.framework {
            Framework::Torch => {
                let shape = torch_shape(info.element, &info.shape)?;
                to_torch(py, info.element, &shape, memory)
            }
            _ => to_numpy(py, info.element, &info.shape, memory),
        }
    }

    /// Tensors that are read ahead, for the framework and on the device.
    pub(crate) fn prefetch(
        self: Arc<Self>,
        wanted: Option<&Bound<'_, PyAny>>,
        device: Option<Device>,
        threads: usize,
    ) -> Result<Plan> {
        let open = match &self.table {
            Table::Own(own) => Arc::new(own.open()?),
            Table::Any(open) => Arc::clone(open),
        };
        let wanted = Wanted::all_of(&open, wanted)?;
        let indices: Vec<_> = wanted.iter().map(|one| one.index.clone()).collect();
        let device = device.unwrap_or_else(|| self.device.clone());
        let finish = move |py: Python<'_>, at: usize, dense| {
            let (mut info, memory) = parts_of(Array::of_dense(py, dense)?)?;
            if let Some(index) = &indices[at] {
                info.shape.clone_from(&index.shape);
            }
            let array = self.array(py, &info, memory.writable())?;
            finish(array, self.framework, &device).map(Bound::unbind)
        };
        let how = Reading { memory: plan::MEMORY, threads: threads.max(1), page_cache: true };
        Plan::begin(open, wanted, how, Box::new(finish))
    }

    /// A tensor to index: a view of the map, or a copy. `None` if the engine reads its parts.
    pub(crate) fn indexable<'py>(
        &self,
        py: Python<'py>,
        name: &str,
    ) -> Result<Option<Bound<'py, PyAny>>> {
        let own = match &self.table {
            Table::Own(own) => own,
            // An index of PyTorch counts pairs.
            Table::Any(open) => {
                let is_packed = self.packed_info(&any_tensor(open, name)?).is_some();
                return is_packed.then(|| self.whole(py, name)).transpose();
            }
        };
        let span = own.span(name)?;
        let mapped = (self.backend == Backend::Mmap).then(|| own.mapped(span));
        let memory = match mapped.flatten() {
            Some(memory) => memory,
            None => own.read(py, span)?,
        };
        self.array(py, &own.info(name)?, memory.writable()).map(Some)
    }

    /// A part of a tensor in a file of another kind. Only the bytes of the part are read.
    pub(crate) fn part<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        index: &Index,
    ) -> Result<Bound<'py, PyAny>> {
        let Table::Any(open) = &self.table else {
            return Err(refuse("parts of safetensors files are views"));
        };
        let tensor = open.tensor(name).or_raise()?;
        let part = work::run(py, || tensor.tensor().slice(&index.slices))?;
        let (mut info, memory) = parts_of(Array::of_dense(py, part)?)?;
        info.shape.clone_from(&index.shape);
        self.array(py, &info, memory)
    }
}

/// The exception for a file that does not open.
fn missing(path: &Path, error: &zt::Error) -> PyErr {
    if path.is_dir() {
        return exception(error);
    }
    let text = format!("No such file or directory: {}", path.display());
    no_file(&text, error)
}

impl Table {
    fn open(py: Python<'_>, path: &Path, source: FileSource) -> Result<Self> {
        let found = py.detach(|| {
            let kind = kinds().detect(&source)?;
            Ok((kind, Header::read(&source)))
        });
        let (kind, header) = found.map_err(|error: zt::Error| failed(OPENING, &error))?;
        let is_other = kind.is_some_and(|kind| kind != SAFETENSORS);
        let error = match header {
            Ok(header) if !is_other => {
                return Ok(Table::Own(Box::new(Own { header, source, map: OnceLock::new() })));
            }
            Ok(_) => None,
            Err(error) => Some(error.with_path(path)),
        };
        let opened = py.detach(|| kinds().open(path, InputOptions::new()));
        match (opened, error) {
            (Ok(input), _) => {
                warning::tell(py, &input.file().warnings(), &[])?;
                Ok(Table::Any(Arc::new(Open::new(input, true))))
            }
            (Err(_), Some(error)) if !is_other => Err(failed(OPENING, &error)),
            (Err(error), _) => Err(exception(&error)),
        }
    }
}

impl Own {
    fn find(&self, name: &str) -> Result<&zt_safetensors::Tensor> {
        self.header.tensor(name).ok_or_else(|| no_tensor(name))
    }

    fn info(&self, name: &str) -> Result<Info> {
        let tensor = self.find(name)?;
        Ok(Info { element: Element::Of(tensor.dtype), shape: tensor.shape.clone() })
    }

    /// The same file for the engine.
    fn open(&self) -> Result<Open> {
        let file = self.source.file().map(std::fs::File::try_clone).transpose()?;
        let file = file.ok_or_else(|| refuse("the file cannot be opened again"))?;
        let source = FileSource::from_file(file).map_err(zt::Error::from);
        let input = kinds().open_source(source.or_raise()?, InputOptions::new());
        Ok(Open::new(input.or_raise()?, false))
    }

    fn span(&self, name: &str) -> Result<Span> {
        Ok(self.find(name)?.span)
    }

    /// The bytes in a private map; `None` if the file cannot be mapped.
    fn mapped(&self, span: Span) -> Option<Memory> {
        let map = self.map.get_or_init(|| {
            let map = PrivateMap::new(self.source.file()?).ok()?;
            Some(Arc::new(map))
        });
        Memory::of_map(map.as_ref()?, span)
    }

    /// Reads the bytes into memory of their own.
    fn read(&self, py: Python<'_>, span: Span) -> Result<Memory> {
        /// The bytes that one thread reads at a time.
        const PIECE: usize = 8 << 20;
        let fill = |mut buffer: Buffer, is_parallel: bool| {
            let read = |(at, piece): (usize, &mut [u8])| {
                let offset = span.offset() + (at * PIECE) as u64;
                self.source.read_at(offset, piece)
            };
            if is_parallel {
                let pieces = buffer.par_chunks_mut(PIECE);
                pieces.enumerate().try_for_each(read)?;
            } else {
                read((0, &mut buffer))?;
            }
            Ok(buffer)
        };
        let buffer = Buffer::try_zeroed(span.byte_len()).map_err(zt::Error::from);
        let buffer = buffer.or_raise()?;
        let buffer = if buffer.len() > PIECE {
            work::run(py, || fill(buffer, true))?
        } else {
            py.detach(|| fill(buffer, false)).or_raise()?
        };
        Ok(Memory::of_buffer(buffer))
    }

    /// All data, in one piece of memory, and its offset in the file.
    fn all(&self, py: Python<'_>) -> Result<(u64, Memory)> {
        let tensors = self.header.tensors();
        let start = tensors.first().map_or(0, |tensor| tensor.span.offset());
        let end = tensors.last().map_or(0, |tensor| tensor.span.end());
        let span =
            Span::between(start, end).ok_or_else(|| refuse("the data ends before it begins"))?;
        Ok((start, self.read(py, span)?))
    }
}

fn no_tensor(name: &str) -> PyErr {
    refuse(format!("File does not contain tensor {name}"))
}

fn any_tensor(open: &Arc<Open>, name: &str) -> Result<Tensor> {
    if open.file().get(name).is_none() {
        return Err(no_tensor(name));
    }
    let tensor = open.tensor(name).or_raise()?;
    Ok(Tensor::new(Arc::clone(open), tensor))
}

fn any_info(tensor: &Tensor) -> Result<Info> {
    let (dtype, logical) = tensor.dense_type().ok_or_else(|| {
        let name = tensor.tensor().name();
        refuse(format!("{name}: its format has no dense value"))
    })?;
    Ok(Info {
        element: element(dtype, logical.as_deref())?,
        shape: tensor.tensor().shape().to_vec(),
    })
}

fn parts_of(array: Array) -> Result<(Info, Memory)> {
    let info =
        Info { element: element(array.row.dtype, array.row.logical_type())?, shape: array.shape };
    Ok((info, array.memory))
}

fn element(dtype: DType, logical: Option<&str>) -> Result<Element> {
    let unknown = || refuse(format!("Dtype not understood: {}", logical.unwrap_or(dtype.as_str())));
    Element::from_types(dtype, logical).ok_or_else(unknown)
}
