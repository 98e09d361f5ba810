//! Many tensors of a file in one call: into existing arrays, or into new ones.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayon::prelude::*;
use zt::{Buffer, DType, Dense, Encoding};

use crate::read::open::opened;
use crate::read::tensor::Tensor;
use crate::share::array::{Array, fits, view};
use crate::share::dtype::{Row, numpy};
use crate::share::error::{OrRaise, Result};
use crate::share::memory::{Lent, Memory};
use crate::share::torch;
use crate::share::work::{PyProgress, Watch};

/// Reads each tensor into its array.
pub(crate) fn read_into<'py>(
    py: Python<'py>,
    targets: Vec<(Py<Tensor>, Bound<'py, PyAny>)>,
    threads: Option<usize>,
    progress: PyProgress<'py>,
) -> Result<()> {
    // Read straight into the array, and read elsewhere and copied.
    let (mut direct, mut copied) = (Vec::new(), Vec::new());
    for (tensor, out) in targets {
        let this = tensor.get();
        let out = if torch::is_tensor(&out)? { torch::numpy_of(&out)? } else { out };
        match target_of(this, &out)? {
            Some(lent) if this.tensor().format() == "dense" => direct.push((tensor, lent)),
            _ => copied.push((tensor, out)),
        }
    }
    expect_apart(&direct)?;
    let mut wanted = Vec::with_capacity(direct.len());
    for (tensor, lent) in &direct {
        wanted.push((tensor.get(), lent.bytes_mut()?));
    }
    read_all(py, wanted, threads, progress)?;
    for (tensor, out) in copied {
        let array = tensor.get().dense_array(py, None)?;
        numpy(py)?.call_method1("copyto", (out, array.numpy(py)?))?;
    }
    Ok(())
}

/// Refuses arrays that share memory: two threads would write to it at a time.
fn expect_apart(targets: &[(Py<Tensor>, Lent)]) -> Result<()> {
    let mut places: Vec<(usize, usize)> = targets.iter().map(|(_, lent)| lent.place()).collect();
    places.sort_unstable();
    let overlap = places.windows(2).any(|pair| match pair {
        [(_, end), (start, _)] => end > start,
        _ => false,
    });
    if overlap {
        return Err(PyValueError::new_err("two of the arrays share memory"));
    }
    Ok(())
}

/// The memory of an array, if bytes of the file can be read into it as they are.
///
/// # Errors
///
/// `ValueError` if the array does not fit the tensor.
fn target_of(tensor: &Tensor, out: &Bound<'_, PyAny>) -> Result<Option<Lent>> {
    let name = tensor.name();
    let mismatch = |what: String| Err(PyValueError::new_err(format!("{name:?}: {what}")));
    let Some((dtype, logical)) = tensor.dense_type() else {
        return mismatch("its format has no dense value".to_owned());
    };
    let row = Row::of(dtype, logical.as_deref());
    if !out.hasattr("dtype")? {
        // Bytes: a bytearray, a memoryview.
        let lent = Lent::new(out)?;
        let found = lent.bytes().len() as u64;
        let expected = tensor.dense_nbytes().unwrap_or(u64::MAX);
        if found != expected {
            return mismatch(format!("the tensor has {expected} bytes, the buffer {found}"));
        }
        lent.bytes_mut()?;
        return Ok(Some(lent));
    }
    let dtype = out.getattr("dtype")?;
    let shape: Vec<u64> = out.getattr("shape")?.extract()?;
    let found: String = dtype.getattr("name")?.extract()?;
    if found != row.numpy {
        return mismatch(format!("the tensor is of {}, the array of {found}", row.numpy));
    }
    if shape != tensor.tensor().shape() {
        let expected = tensor.tensor().shape();
        return mismatch(format!("the tensor has the shape {expected:?}, the array {shape:?}"));
    }
    if !out.getattr("flags")?.getattr("writeable")?.is_truthy()? {
        return mismatch("the array is read-only".to_owned());
    }
    let is_native = dtype.getattr("isnative")?.is_truthy()? && cfg!(target_endian = "little");
    let is_contiguous = out.getattr("flags")?.getattr("c_contiguous")?.is_truthy()?;
    if !is_native || !is_contiguous {
        return Ok(None);
    }
    let bytes = out.call_method1("reshape", (-1,))?;
    match bytes.getattr("size")?.extract::<u64>()? {
        0 => Ok(None),
        _ => Lent::new(&bytes.call_method1("view", ("uint8",))?).map(Some),
    }
}

/// Reads the data of dense tensors, on all cores and in the order of the file.
pub(crate) fn read_all<'py>(
    py: Python<'py>,
    wanted: Vec<(&Tensor, &mut [u8])>,
    threads: Option<usize>,
    progress: PyProgress<'py>,
) -> Result<()> {
    let Some((first, _)) = wanted.first() else {
        return Ok(());
    };
    let open = Arc::clone(first.open());
    Watch::new(progress).threads(threads).run(py, |progress| {
        let mut targets = Vec::with_capacity(wanted.len());
        for (tensor, out) in wanted {
            if let Some(fault) = tensor.tensor().fault() {
                return Err(open.blame(fault.clone()));
            }
            targets.push((tensor.tensor(), "data", out));
        }
        // Borrowed again, so that bools are checked afterwards.
        let lent = targets.iter_mut().map(|(tensor, role, out)| (*tensor, *role, &mut **out));
        for result in open.file().read_many_into_with(lent.collect(), progress) {
            result.map_err(|error| open.blame(error))?;
        }
        for (tensor, role, out) in &targets {
            if tensor.component(role)?.dtype == Some(DType::Bool) {
                zt::formats::check_bools(out)
                    .map_err(|error| zt::Error::from(error).with_object(tensor.name()))?;
            }
        }
        Ok(())
    })
}

/// Tensors of a file in memory.
pub(crate) struct Loaded {
    /// The bytes of all tensors that are stored dense. It stays as long as any of them.
    pub(crate) memory: Memory,
    /// One for each tensor.
    pub(crate) values: Vec<Value>,
}

pub(crate) enum Value {
    Slot(Slot),
    /// Decoded into memory of its own.
    Decoded(Array),
    /// Not read yet.
    Sparse,
}

/// The place of a dense tensor in that memory. It starts at a multiple of 64.
pub(crate) struct Slot {
    pub(crate) row: &'static Row,
    pub(crate) start: usize,
    pub(crate) byte_len: usize,
}

impl Loaded {
    /// Reads `tensors` on all cores, and decodes those that are not stored dense.
    pub(crate) fn read<'py>(
        py: Python<'py>,
        tensors: &[&Tensor],
        threads: Option<usize>,
        progress: PyProgress<'py>,
    ) -> Result<Self> {
        const APART: usize = 64;
        let (mut values, mut end) = (Vec::with_capacity(tensors.len()), 0usize);
        let mut encoded = Vec::new();
        for tensor in tensors {
            if tensor.tensor().format() != "dense" {
                if !tensor.is_sparse() {
                    encoded.push((values.len(), *tensor));
                }
                values.push(Value::Sparse);
                continue;
            }
            let component = tensor.raise(tensor.tensor().component("data"))?;
            let byte_len = if component.blob.encoding == Encoding::Raw {
                tensor.tensor().decoded_len("data")
            } else {
                // The length may take decoding.
                py.detach(|| tensor.tensor().decoded_len("data"))
            };
            let byte_len = tensor.raise(byte_len)?;
            let byte_len = usize::try_from(byte_len).unwrap_or(usize::MAX);
            let row = tensor.row("data")?;
            fits(py, row, tensor.tensor().shape(), byte_len)?;
            let start = end;
            end = end
                .checked_add(byte_len)
                .and_then(|end| end.checked_next_multiple_of(APART))
                .ok_or_else(|| PyValueError::new_err("the tensors are larger than the memory"))?;
            values.push(Value::Slot(Slot { row, start, byte_len }));
        }
        let mut memory = Buffer::try_zeroed(end as u64).map_err(zt::Error::from).or_raise()?;
        let mut rest: &mut [u8] = &mut memory;
        let mut wanted = Vec::with_capacity(tensors.len());
        for (tensor, value) in tensors.iter().zip(&values) {
            let Value::Slot(slot) = value else {
                continue;
            };
            let padded = slot.byte_len.next_multiple_of(APART);
            // Never: the memory is as long as all slots.
            let Some((place, behind)) = std::mem::take(&mut rest).split_at_mut_checked(padded)
            else {
                break;
            };
            rest = behind;
            if slot.byte_len > 0 {
                wanted.push((*tensor, &mut place[..slot.byte_len]));
            }
        }
        read_all(py, wanted, threads, progress.clone())?;
        for (at, dense) in decode(py, encoded, threads, progress)? {
            values[at] = Value::Decoded(Array::of_dense(py, dense)?);
        }
        let memory = Memory::of_buffer(memory);
        Ok(Loaded { memory, values })
    }
}

/// The dense values of tensors, each on a core.
fn decode<'py>(
    py: Python<'py>,
    tensors: Vec<(usize, &Tensor)>,
    threads: Option<usize>,
    progress: PyProgress<'py>,
) -> Result<Vec<(usize, Dense<'static>)>> {
    if tensors.is_empty() {
        return Ok(Vec::new());
    }
    let tensors: Vec<_> = tensors
        .into_iter()
        .map(|(at, tensor)| (at, tensor.handle(), Arc::clone(tensor.open())))
        .collect();
    let watch = Watch::new(progress).threads(threads);
    watch.run_apart(py, move |progress| {
        let tensors = tensors.into_par_iter().with_max_len(1);
        let decoded = tensors.map(|(at, tensor, open)| {
            let dense = tensor.tensor().to_dense();
            let dense = dense.map_err(|error| open.blame(error))?;
            let components = tensor.tensor().components();
            progress.report(components.map(|(_, part)| part.blob.span.byte_len()).sum())?;
            Ok((at, dense))
        });
        decoded.collect()
    })
}

/// All tensors of a file as new arrays in a dict, in the order of the file's index.
///
/// Dense ones are in one piece of memory, which stays as long as any of them. Sparse ones are arrays of
/// SciPy. Quantized ones are dequantized.
#[pyfunction]
#[pyo3(signature = (source, *, threads = None, progress = None, storage_options = None))]
pub(crate) fn load<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    threads: Option<usize>,
    progress: PyProgress<'py>,
    storage_options: Option<&Bound<'py, PyDict>>,
) -> Result<Bound<'py, PyDict>> {
    let open = opened(py, source, storage_options)?;
    let mut tensors = Vec::with_capacity(open.file().len());
    for name in open.file().names() {
        tensors.push(Tensor::new(Arc::clone(&open), open.tensor(name).or_raise()?));
    }
    let all: Vec<&Tensor> = tensors.iter().collect();
    let Loaded { memory, values } = Loaded::read(py, &all, threads, progress)?;
    let memory = Bound::new(py, memory)?;
    let arrays = PyDict::new(py);
    for (tensor, value) in all.into_iter().zip(values) {
        let array = match value {
            // The slots are within the memory.
            Value::Slot(slot) => view(&memory, slot.start, slot.row, tensor.tensor().shape())?,
            Value::Decoded(array) => array.numpy(py)?,
            Value::Sparse => tensor.scipy(py)?,
        };
        arrays.set_item(tensor.name(), array)?;
    }
    Ok(arrays)
}
