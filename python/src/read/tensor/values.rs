//! The values of a tensor in memory: in a map, in lent bytes, or read and decoded.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use zt::{Buffer, Bytes, DType, Elements, Encoding};

use super::Tensor;
use crate::share::array::{Array, fits};
use crate::share::dtype::Row;
use crate::share::error::{OrRaise, Result, misuse, unsupported};
use crate::share::index::Index;
use crate::share::memory::Memory;
use crate::share::work::Watch;

impl Tensor {
    /// Does work of the engine on this tensor, with the interpreter detached. Ctrl-C ends the wait for
    /// long work.
    pub(super) fn read<T: Send + 'static>(
        &self,
        py: Python<'_>,
        byte_len: u64,
        work: impl FnOnce(zt::Tensor<'_>) -> zt::Result<T> + Send + 'static,
    ) -> Result<T> {
        /// The calling thread reads fewer bytes itself: waking others takes longer.
        const SMALL: u64 = 1 << 20;
        let (tensor, open) = (self.tensor.clone(), Arc::clone(&self.open));
        let blamed = move || work(tensor.tensor()).map_err(|error| open.blame(error));
        if byte_len <= SMALL && self.tensor().format() == "dense" {
            return py.detach(blamed).or_raise();
        }
        Watch::default().run_apart(py, |_| blamed())
    }

    /// Its array: in a map, in lent memory, or in memory of its own.
    pub(crate) fn array(&self, py: Python<'_>, copy: Option<bool>) -> Result<Array> {
        let tensor = self.tensor();
        if !self.is_dense() {
            let text = format!(
                "{:?} is a tensor of the format {}: `dense()` gives its values, `components` what is stored",
                tensor.name(),
                tensor.format()
            );
            return Err(misuse(py, &text));
        }
        if let Some(fault) = tensor.fault() {
            return self.raise(Err(fault.clone()));
        }
        if copy != Some(true)
            && tensor.format() == "dense"
            && let Some(memory) = self.view(py, "data")?
        {
            let row = self.row("data")?;
            fits(py, row, tensor.shape(), memory.byte_len())?;
            let shape = tensor.shape().to_vec();
            return Ok(Array { memory, row, shape });
        }
        if copy == Some(false) {
            return Err(PyValueError::new_err(format!(
                "{:?} cannot be used where it is: it is compressed, big-endian, not aligned, bool, or the \
                 file is not mapped",
                tensor.name()
            )));
        }
        if tensor.format() != "dense" {
            return self.decoded(py);
        }
        self.owned("data", py, tensor.shape().to_vec())
    }

    /// The values of a sparse tensor.
    pub(super) fn values<'py>(
        &self,
        py: Python<'py>,
        values: Elements<'static>,
    ) -> Result<Bound<'py, PyAny>> {
        let row = Row::of(values.dtype, values.logical_type());
        if row.is_ml {
            let text =
                format!("{:?} has values of {}, which SciPy does not have", self.name(), row.name);
            return Err(unsupported(py, &text));
        }
        let count = (values.bytes.len() / row.item_len) as u64;
        Array::of_elements(py, vec![count], values)?.numpy(py)
    }

    /// Its dense value: its array, or the decoded value of a sparse or quantized tensor.
    pub(crate) fn dense_array(&self, py: Python<'_>, copy: Option<bool>) -> Result<Array> {
        if self.is_dense() {
            return self.array(py, copy);
        }
        self.decoded(py)
    }

    /// The bytes of `data`: where they are if they can be used there, or else a copy.
    pub(crate) fn packed(&self, py: Python<'_>, copy: bool) -> Result<Memory> {
        const DATA: &str = "data";
        if !copy && let Some(memory) = self.view(py, DATA)? {
            return Ok(memory);
        }
        let byte_len = self.raise(self.tensor().decoded_len(DATA))?;
        Ok(self.owned(DATA, py, vec![byte_len])?.memory)
    }

    /// The dense value, decoded by the rules of the format.
    fn decoded(&self, py: Python<'_>) -> Result<Array> {
        let dense = self.read(py, u64::MAX, |tensor| tensor.to_dense())?;
        Array::of_dense(py, dense)
    }

    /// A part of the dense value.
    pub(crate) fn part(&self, py: Python<'_>, index: &Index) -> Result<Array> {
        let len = index.shape.iter().fold(8u64, |len, dimension| len.saturating_mul(*dimension));
        let slices = index.slices.clone();
        let dense = self.read(py, len, move |tensor| tensor.slice(&slices))?;
        let mut array = Array::of_dense(py, dense)?;
        array.shape.clone_from(&index.shape);
        Ok(array)
    }

    /// The type of the elements of a component.
    pub(crate) fn row(&self, role: &str) -> Result<&'static Row> {
        let component = self.raise(self.tensor().component(role))?;
        let dtype = component.dtype.unwrap_or(DType::U8);
        Ok(Row::of(dtype, component.logical_type.as_deref()))
    }

    /// A component in memory of its own.
    pub(crate) fn owned(&self, role: &str, py: Python<'_>, shape: Vec<u64>) -> Result<Array> {
        let byte_len = self.raise(self.tensor().component(role))?.blob.decoded_len;
        let elements = match byte_len {
            Some(byte_len) if byte_len > LARGE => self.read_large(py, role)?,
            _ => {
                let role = role.to_owned();
                self.read(py, byte_len.unwrap_or(u64::MAX), move |tensor| {
                    let elements = tensor.elements(&role)?;
                    check_bools(&tensor, &elements)?;
                    Ok(elements.into_owned()?)
                })?
            }
        };
        Array::of_elements(py, shape, elements)
    }

    /// A component of many bytes. Ctrl-C ends the reading.
    fn read_large(&self, py: Python<'_>, role: &str) -> Result<Elements<'static>> {
        Watch::default().run(py, |progress| {
            let tensor = self.tensor();
            let read = || {
                let mut buffer = Buffer::try_zeroed(tensor.decoded_len(role)?)?;
                let wanted = vec![(tensor, role, &mut *buffer)];
                for result in self.open.file().read_many_into_with(wanted, progress) {
                    result?;
                }
                let component = tensor.component(role)?;
                let mut elements = Elements::new(component.dtype.unwrap_or(DType::U8), buffer);
                elements.logical_type = component.logical_type.clone();
                check_bools(&tensor, &elements)?;
                Ok(elements)
            };
            read().map_err(|error| self.open.blame(error))
        })
    }

    /// The verified bytes of a component in a map or in lent memory; `None` if only a copy can be used.
    pub(crate) fn view(&self, py: Python<'_>, role: &str) -> Result<Option<Memory>> {
        let tensor = self.tensor();
        let component = self.raise(tensor.component(role))?;
        let dtype = component.dtype.unwrap_or(DType::U8);
        let is_plain = component.blob.encoding == Encoding::Raw
            && component.byte_order == zt::ByteOrder::Little
            // A byte of 2 is no bool, and NumPy's behaviour with one is undefined.
            && dtype != DType::Bool
            && cfg!(target_endian = "little");
        if !is_plain {
            return Ok(None);
        }
        let place = self.raise(tensor.stored_in(role))?;
        let mapped = place.and_then(|(file, span)| self.open.mapped(file, span));
        let memory = match mapped {
            Some(memory) => {
                if !memory.is_aligned_to(dtype.byte_len()) {
                    return Ok(None);
                }
                // This check is faster than waking a thread that finds nothing to compare.
                if component.blob.digest.is_some() && !self.raise(tensor.is_verified(role))? {
                    // By position: Python may have written to pages of the map.
                    let (byte_len, role) = (component.blob.span.byte_len(), role.to_owned());
                    self.read(py, byte_len, move |tensor| tensor.verify(&role))?;
                }
                memory
            }
            None if place.is_some() => return Ok(None),
            None => {
                let (byte_len, role) = (component.blob.span.byte_len(), role.to_owned());
                let open = Arc::clone(&self.open);
                let lent = self.read(py, byte_len, move |tensor| match tensor.bytes(&role)? {
                    Bytes::Borrowed(bytes) => Ok(Ok(Memory::lent(open, bytes))),
                    Bytes::Owned(buffer) => Ok(Err(buffer)),
                })?;
                match lent {
                    Ok(memory) if memory.is_aligned_to(dtype.byte_len()) => memory,
                    Ok(_) => return Ok(None),
                    Err(buffer) => Memory::of_buffer(buffer),
                }
            }
        };
        Ok(Some(memory))
    }
}

/// Reading more bytes takes long enough to press Ctrl-C.
const LARGE: u64 = 32 << 20;

fn check_bools(tensor: &zt::Tensor<'_>, elements: &Elements<'_>) -> zt::Result<()> {
    if elements.dtype != DType::Bool {
        return Ok(());
    }
    let checked = zt::formats::check_bools(&elements.bytes);
    checked.map_err(|error| zt::Error::from(error).with_object(tensor.name()))
}

/// Indices as the 64-bit integers that SciPy takes.
pub(super) fn index(indices: &[u64]) -> zt::Result<Array> {
    let elements = Elements::from(indices).into_owned()?;
    Ok(Array {
        shape: vec![indices.len() as u64],
        memory: Memory::of_buffer(elements.bytes.into_owned()?),
        // Every index is less than its dimension, and a dimension in memory is less than 2^63.
        row: Row::of(DType::I64, None),
    })
}
