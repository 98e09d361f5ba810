//! What `get_slice` gives, and the indices that it accepts.

use std::fmt;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyEllipsis, PyList, PySlice, PyTuple};
use zt::Slice;

use super::framework::{Backend, Framework, finish};
use super::message::refuse;
use super::opened::{Info, Opened};
use crate::share::error::Result;
use crate::share::index::Index;

/// A tensor of which nothing is read before it is indexed. Made by ``safe_open.get_slice``.
#[pyclass(frozen, module = "zt.safetensors", name = "PySafeSlice")]
pub(crate) struct SafeSlice {
    opened: Arc<Opened>,
    name: String,
    info: Info,
}

impl SafeSlice {
    pub(crate) fn new(opened: Arc<Opened>, name: &str) -> Result<Self> {
        let info = opened.info(name)?;
        let name = name.to_owned();
        Ok(SafeSlice { opened, name, info })
    }
}

#[pymethods]
impl SafeSlice {
    /// The dimensions, outermost first.
    fn get_shape(&self) -> Vec<u64> {
        self.info.shape.clone()
    }

    /// The type of the elements in the spelling of safetensors files, such as ``"F32"``.
    fn get_dtype(&self) -> &'static str {
        self.info.element.as_str()
    }

    /// A part of the tensor. For PyTorch, indices mean what they mean there. For the other frameworks
    /// they are integers, slices with positive steps, ``...``, and ``[]`` for no rows; a slice past
    /// the end is an error.
    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        let (py, opened) = (key.py(), &*self.opened);
        let part = match opened.framework {
            Framework::Torch if opened.backend == Backend::Mmap => self.of_torch(py, key)?,
            _ => self.strict(py, key)?,
        };
        finish(part, opened.framework, &opened.device)
    }
}

impl SafeSlice {
    fn of_torch<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        if let Some(whole) = self.opened.indexable(py, &self.name)? {
            return whole.get_item(key);
        }
        match Index::new(key, &self.info.shape) {
            Ok(index) if !is_whole(&index, &self.info.shape) => {
                self.opened.part(py, &self.name, &index)
            }
            // PyTorch has more kinds of indices, and messages of its own.
            _ => self.opened.whole(py, &self.name)?.get_item(key),
        }
    }

    fn strict<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        let shape = &self.info.shape;
        let parts = Parts::new(key, shape)?;
        let ranges = parts.resolve(shape).map_err(|fault| {
            refuse(format!(
                "Error during slicing {parts} with shape {shape:?}: {fault}"
            ))
        })?;
        let keys = ranges.iter().map(|range| range.to_python(py));
        let key = PyTuple::new(py, keys.collect::<Result<Vec<_>>>()?)?;
        if let Some(whole) = self.opened.indexable(py, &self.name)? {
            let part = whole.get_item(&key)?;
            // A copy of its own: the map and the rest of the tensor are not kept for it.
            return match self.opened.framework {
                Framework::Torch => part.call_method0("clone"),
                _ => super::framework::copied(part),
            };
        }
        let index = Index::new(key.as_any(), shape)?;
        match is_whole(&index, shape) {
            true => self.opened.whole(py, &self.name),
            false => self.opened.part(py, &self.name, &index),
        }
    }
}

/// Whether an index takes everything in its order.
fn is_whole(index: &Index, shape: &[u64]) -> bool {
    let is_forward = |slice: &Slice| matches!(slice, Slice::Range { step: 1, .. });
    index.shape == shape && index.slices.iter().all(is_forward)
}

/// Indices as they were written.
struct Parts(Vec<Part>);

enum Part {
    Select(u64),
    Narrow {
        start: Option<usize>,
        stop: Option<usize>,
        step: usize,
    },
}

/// A part that fits its dimension.
enum Range {
    Index(u64),
    Slice { start: u64, stop: u64, step: usize },
}

impl Range {
    fn to_python<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let signed = |place: u64| isize::try_from(place).unwrap_or(isize::MAX);
        Ok(match *self {
            Range::Index(place) => place.into_pyobject(py)?.into_any(),
            Range::Slice { start, stop, step } => {
                let step = isize::try_from(step).unwrap_or(isize::MAX);
                PySlice::new(py, signed(start), signed(stop), step).into_any()
            }
        })
    }
}

/// Why indices do not fit a shape.
enum Fault {
    TooMany,
    Outside { axis: usize, asked: u64, len: u64 },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::TooMany => f.write_str("more slicing indexes than dimensions in tensor"),
            Fault::Outside { axis, asked, len } => write!(
                f,
                "index {asked} out of bounds for tensor dimension #{axis} of size {len}"
            ),
        }
    }
}

const ALL: Part = Part::Narrow {
    start: None,
    stop: None,
    step: 1,
};

impl Parts {
    fn new(key: &Bound<'_, PyAny>, shape: &[u64]) -> Result<Self> {
        let items: Vec<Bound<'_, PyAny>> = if let Ok(items) = key.cast::<PyTuple>() {
            items.iter().collect()
        } else if let Ok(items) = key.cast::<PyList>() {
            if !items.is_empty() {
                return Err(refuse("Non empty lists are not implemented"));
            }
            return Ok(Parts(vec![Part::Narrow {
                start: Some(0),
                stop: Some(0),
                step: 1,
            }]));
        } else {
            vec![key.clone()]
        };
        let is_ellipsis = |item: &Bound<'_, PyAny>| item.is_instance_of::<PyEllipsis>();
        let ellipses = items.iter().filter(|item| is_ellipsis(item)).count();
        if ellipses > 1 {
            return Err(refuse("Only one ellipsis (...) is allowed in slice index"));
        }
        let left = shape.len().saturating_sub(items.len() - ellipses);
        let mut parts = Vec::with_capacity(shape.len());
        for item in &items {
            match is_ellipsis(item) {
                true => parts.extend((0..left).map(|_| ALL)),
                false => {
                    let axis = parts.len();
                    let len = shape.get(axis).copied().unwrap_or(0);
                    parts.push(Part::new(item, axis, len)?);
                }
            }
        }
        Ok(Parts(parts))
    }

    /// The parts within the shape. The last dimension is looked at first.
    fn resolve(&self, shape: &[u64]) -> Result<Vec<Range>, Fault> {
        if self.0.len() > shape.len() {
            return Err(Fault::TooMany);
        }
        let mut ranges = Vec::with_capacity(self.0.len());
        for (axis, (part, &len)) in self.0.iter().zip(shape).enumerate().rev() {
            let (start, stop) = match *part {
                Part::Select(place) => (place, place.saturating_add(1)),
                Part::Narrow { start, stop, .. } => (
                    start.map_or(0, |start| start as u64),
                    stop.map_or(len, |stop| stop as u64),
                ),
            };
            if start >= len || stop > len {
                let asked = match start >= len {
                    true => start,
                    false => stop.saturating_sub(1),
                };
                return Err(Fault::Outside { axis, asked, len });
            }
            ranges.push(match *part {
                Part::Select(place) => Range::Index(place),
                Part::Narrow { step, .. } => Range::Slice { start, stop, step },
            });
        }
        ranges.reverse();
        Ok(ranges)
    }
}

impl fmt::Display for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.0.iter().map(Part::to_string).collect();
        write!(f, "[{}]", texts.join(", "))
    }
}

impl Part {
    fn new(item: &Bound<'_, PyAny>, axis: usize, len: u64) -> Result<Self> {
        if let Ok(slice) = item.cast::<PySlice>() {
            let step = slice
                .getattr("step")?
                .extract::<Option<i64>>()?
                .unwrap_or(1);
            let positive = usize::try_from(step).ok().filter(|step| *step > 0);
            return Ok(Part::Narrow {
                start: slice.getattr("start")?.extract()?,
                stop: slice.getattr("stop")?.extract()?,
                step: positive.ok_or_else(|| {
                    refuse(format!("Slice step must be a positive integer, got {step}"))
                })?,
            });
        }
        let Ok(index) = item.extract::<i32>() else {
            return Err(refuse(format!(
                "Unsupported slice index at position {axis}: expected slice, int, or ellipsis"
            )));
        };
        let place = match index < 0 {
            true => len.checked_add_signed(index.into()),
            false => Some(u64::from(index.unsigned_abs())),
        };
        let outside = || {
            refuse(format!(
                "Invalid index {index} for dimension {axis} of size {len}"
            ))
        };
        place.map(Part::Select).ok_or_else(outside)
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bound = |bound: &Option<usize>| bound.map_or(String::new(), |bound| bound.to_string());
        match self {
            Part::Select(place) => write!(f, "{place}"),
            Part::Narrow { start, stop, step } => {
                write!(f, "{}:{}", bound(start), bound(stop))?;
                match step {
                    1 => Ok(()),
                    step => write!(f, ":{step}"),
                }
            }
        }
    }
}
