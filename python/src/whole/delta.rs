//! `zt.delta`: a file as the difference from another.

use std::path::PathBuf;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use zt::{Bytes, DType, Elements, File, Warning};
use zt_model::{NewValues, delta, delta_to_path, patch_in_place};

use crate::read::open::opened;
use crate::read::tensor::Tensor;
use crate::share::array::Array;
use crate::share::error::Result;
use crate::share::source::{Sink, path_of};
use crate::share::value::each;
use crate::share::work::{self, PyProgress, Watch};
use crate::share::{dlpack, remote, warning};

/// What a delta says about the tensors of the new file. See :func:`make`.
#[pyclass(frozen, module = "zt.delta")]
pub(crate) struct Changes(zt_model::Changes);

#[pymethods]
impl Changes {
    /// Tensors that are equal in both.
    #[getter]
    fn same(&self) -> u64 {
        self.0.same
    }

    /// Tensors that are written as changes.
    #[getter]
    fn changed(&self) -> u64 {
        self.0.changed
    }

    /// Tensors that are written whole: new ones, and those whose changes take more.
    #[getter]
    fn whole(&self) -> u64 {
        self.0.whole
    }

    /// Tensors that only the base has.
    #[getter]
    fn removed(&self) -> u64 {
        self.0.removed
    }

    /// Bytes of values of the new file.
    #[getter]
    fn nbytes(&self) -> u64 {
        self.0.bytes
    }

    fn __repr__(&self) -> String {
        let zt_model::Changes { same, changed, whole, removed, .. } = self.0;
        format!("<zt.delta.Changes same={same} changed={changed} whole={whole} removed={removed}>")
    }
}

/// Writes how `new` differs from `base`: see `zt.delta.make`.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the keywords of Python's call")]
pub(crate) fn _delta<'py>(
    py: Python<'py>,
    base: &Bound<'py, PyAny>,
    new: &Bound<'py, PyAny>,
    target: &Bound<'py, PyAny>,
    overwrite: bool,
    threads: Option<usize>,
    progress: PyProgress<'py>,
    storage_options: Option<&Bound<'py, PyDict>>,
) -> Result<Changes> {
    let base = opened(py, base, storage_options)?.to_input();
    let new = opened(py, new, storage_options)?.to_input();
    let path = path_of(target)?;
    if path.is_none() && !target.hasattr("write")? {
        let text = "expected a path or an object with write as the target";
        return Err(PyTypeError::new_err(text));
    }
    let stores = remote::options(storage_options)?;
    let sink = Sink::new(target);
    let watch = Watch::new(progress).threads(threads);
    let changes = watch.run(py, |progress| {
        let progress = Some(progress);
        let Some(path) = &path else {
            return delta(&base, &new, sink, progress);
        };
        if let Some(url) = remote::url_of(path) {
            let mut upload = remote::create(url, &stores, overwrite)?;
            let changes = delta(&base, &new, &mut upload, progress)?;
            return upload.finish().map(|()| changes);
        }
        delta_to_path(&base, &new, path, overwrite, progress)
    })?;
    Ok(Changes(changes))
}

/// Applies deltas to the `.zt` file at `path`, in its place: see `zt.delta.patch`.
#[pyfunction]
pub(crate) fn _patch_in_place<'py>(
    py: Python<'py>,
    path: PathBuf,
    deltas: &Bound<'py, PyAny>,
    threads: Option<usize>,
    progress: PyProgress<'py>,
    storage_options: Option<&Bound<'py, PyDict>>,
) -> Result<()> {
    let mut inputs = Vec::new();
    for delta in each(deltas)? {
        inputs.push(opened(py, &delta, storage_options)?.to_input());
    }
    let watch = Watch::new(progress).threads(threads);
    let changed = watch.run(py, |progress| {
        let mut edit = File::edit(&path)?;
        let changed = patch_in_place(&mut edit, &inputs, Some(progress))?;
        // Without a change, the edit is dropped and the file stays as it is.
        if changed.is_some() {
            edit.commit()?;
        }
        Ok(changed)
    })?;
    if changed.is_some() {
        return Ok(());
    }
    let message = "the file is the result of the deltas already, so nothing was applied";
    warning::tell(py, &[Warning::new("is-result", message)], &[])
}

/// Where two dense tensors differ, and the new values there: two arrays of NumPy, or two capsules of
/// DLPack. `None` if all values of `new` take fewer bytes, or are needed. See `zt.delta.patches`.
#[pyfunction]
pub(crate) fn _new_values<'py>(
    py: Python<'py>,
    base: &Bound<'py, Tensor>,
    new: &Bound<'py, Tensor>,
    capsules: bool,
) -> Result<Option<[Bound<'py, PyAny>; 2]>> {
    let (base, tensor) = (base.get(), new.get());
    let (old, new) = (base.handle(), tensor.handle());
    let found = work::run(py, move || zt_model::new_values(&old, &new));
    let Some(NewValues { positions, values }) = found? else {
        return Ok(None);
    };
    let (dtype, logical) = tensor.dense_type().unwrap_or((DType::U8, None));
    let count = positions.len() as u64;
    let bytes = positions.iter().flat_map(|at| at.to_le_bytes());
    let positions = Elements::new(DType::I32, Bytes::from(bytes.collect::<Vec<u8>>()));
    let mut values = Elements::new(dtype, Bytes::from(values));
    values.logical_type = logical.map(Into::into);
    let array = |elements: Elements<'static>| {
        let array = Array::of_elements(py, vec![count], elements)?;
        if capsules {
            return dlpack::export(py, array, None, None);
        }
        array.numpy(py)
    };
    Ok(Some([array(positions)?, array(values)?]))
}
