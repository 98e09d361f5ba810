//! The result of `get_slice`, and the indices that it accepts.

use std::fmt;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyList, PySlice, PyTuple};
use zt::Slice;

use super::framework::{Backend, Framework, finish};
use super::message::refuse;
use super::opened::{Info, Opened};
use crate::share::error::Result;
use crate::share::index::{self, Index, is_ellipsis};

/// A tensor that is read when it is indexed. Made by ``safe_open.get_slice``.
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
        let within = parts.resolve(shape).map_err(|fault| {
            refuse(format!("Error during slicing {parts} with shape {shape:?}: {fault}"))
        })?;
        let keys = within.into_iter().map(|part| part.to_python(py));
        let key = PyTuple::new(py, keys.collect::<Result<Vec<_>>>()?)?;
        if let Some(whole) = self.opened.indexable(py, &self.name)? {
            let part = whole.get_item(&key)?;
            // A copy, so that the part does not keep the map or the rest of the tensor.
            return match self.opened.framework {
                Framework::Torch => part.call_method0("clone"),
                _ => super::framework::copied(part),
            };
        }
        let index = Index::new(key.as_any(), shape)?;
        if is_whole(&index, shape) {
            return self.opened.whole(py, &self.name);
        }
        self.opened.part(py, &self.name, &index)
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

    /// A part of the tensor. For PyTorch, an index means what it means there. For the other frameworks,
    /// an index is an integer, a slice with a positive step, ``...``, or ``[]`` for no rows. A slice
    /// past the end is an error.
    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        let (py, opened) = (key.py(), &*self.opened);
        let part = match opened.framework {
            Framework::Torch if opened.backend == Backend::Mmap => self.of_torch(py, key)?,
            _ => self.strict(py, key)?,
        };
        finish(part, opened.framework, &opened.device)
    }
}

/// Whether an index takes the whole tensor in its order.
fn is_whole(index: &Index, shape: &[u64]) -> bool {
    let is_forward = |slice: &Slice| matches!(slice, Slice::Range { step: 1, .. });
    index.shape == shape && index.slices.iter().all(is_forward)
}

/// Indices as they were written, by the rules of the official package.
struct Parts(Vec<Part>);

#[derive(Clone, Copy)]
enum Part {
    Select(u64),
    Narrow { start: Option<u64>, stop: Option<u64>, step: u64 },
}

impl Parts {
    fn new(key: &Bound<'_, PyAny>, shape: &[u64]) -> Result<Self> {
        if let Ok(items) = key.cast::<PyList>() {
            if !items.is_empty() {
                return Err(refuse("Non empty lists are not implemented"));
            }
            return Ok(Parts(vec![Part::range(Some(0), Some(0))]));
        }
        let items = index::parts_of(key);
        let ellipses = items.iter().filter(|item| is_ellipsis(item)).count();
        if ellipses > 1 {
            return Err(refuse("Only one ellipsis (...) is allowed in slice index"));
        }
        let left = shape.len().saturating_sub(items.len() - ellipses);
        let mut parts = Vec::with_capacity(shape.len());
        for item in &items {
            if is_ellipsis(item) {
                parts.extend((0..left).map(|_| Part::range(None, None)));
                continue;
            }
            let axis = parts.len();
            let len = shape.get(axis).copied().unwrap_or(0);
            parts.push(Part::new(item, axis, len)?);
        }
        Ok(Parts(parts))
    }

    /// The parts with their bounds in the shape, or the reason why they do not fit. The last dimension
    /// is checked first.
    fn resolve(&self, shape: &[u64]) -> Result<Vec<Part>, String> {
        if self.0.len() > shape.len() {
            return Err("more slicing indexes than dimensions in tensor".to_owned());
        }
        let mut parts = self.0.clone();
        for (axis, (part, &len)) in parts.iter_mut().zip(shape).enumerate().rev() {
            let (first, end) = match part {
                Part::Select(place) => (*place, place.saturating_add(1)),
                Part::Narrow { start, stop, .. } => {
                    (*start.get_or_insert(0), *stop.get_or_insert(len))
                }
            };
            if first >= len || end > len {
                let asked = if first >= len { first } else { end - 1 };
                return Err(format!(
                    "index {asked} out of bounds for tensor dimension #{axis} of size {len}"
                ));
            }
        }
        Ok(parts)
    }
}

impl fmt::Display for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.0.iter().map(Part::to_string).collect();
        write!(f, "[{}]", texts.join(", "))
    }
}

impl Part {
    fn range(start: Option<u64>, stop: Option<u64>) -> Self {
        let step = 1;
        Part::Narrow { start, stop, step }
    }

    fn new(item: &Bound<'_, PyAny>, axis: usize, len: u64) -> Result<Self> {
        if let Ok(slice) = item.cast::<PySlice>() {
            let step = slice.getattr("step")?.extract::<Option<i64>>()?;
            let step = step.unwrap_or(1);
            let positive = u64::try_from(step).ok().filter(|step| *step > 0);
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
        let place = if index < 0 {
            len.checked_add_signed(index.into())
        } else {
            Some(u64::from(index.unsigned_abs()))
        };
        let outside =
            || refuse(format!("Invalid index {index} for dimension {axis} of size {len}"));
        place.map(Part::Select).ok_or_else(outside)
    }

    fn to_python<'py>(self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let signed = |place: u64| isize::try_from(place).unwrap_or(isize::MAX);
        Ok(match self {
            Part::Select(place) => place.into_pyobject(py)?.into_any(),
            Part::Narrow { start, stop, step } => {
                let (start, stop) = (start.unwrap_or(0), stop.unwrap_or(u64::MAX));
                PySlice::new(py, signed(start), signed(stop), signed(step)).into_any()
            }
        })
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bound = |bound: &Option<u64>| bound.map_or(String::new(), |bound| bound.to_string());
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
