//! A tensor that is written in pieces.

use std::io::Write;
use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use zt::{SuspendedComponent, SuspendedObject};

use super::{State, Writer, lock};
use crate::share::dtype::Row;
use crate::share::error::{OrRaise, Result, is_raised, misuse, no_pickling};
use crate::write::array::LentArray;

/// A tensor that is written in pieces. Made by :meth:`Writer.begin`.
#[pyclass(frozen, module = "zt", name = "Pieces")]
pub(crate) struct Pieces {
    pub(super) writer: Py<Writer>,
    pub(super) row: &'static Row,
    pub(super) rest: Mutex<Rest>,
}

/// The part that is not written yet.
pub(super) struct Rest {
    /// `None` once it is complete, or failed.
    pub(super) begun: Option<(SuspendedObject, SuspendedComponent)>,
    pub(super) byte_len: u64,
}

impl Pieces {
    /// Writes the next elements, if any.
    pub(super) fn take(&self, py: Python<'_>, array: Option<&LentArray>) -> Result<()> {
        let byte_len = array.map_or(0, LentArray::byte_len);
        let writer = self.writer.get();
        let pool = writer.pool()?;
        let work = || {
            let (mut state, mut rest) = (lock(&writer.state), lock(&self.rest));
            let State::Streaming(engine, _) = &mut *state else {
                return Ok(Err("the writer has ended"));
            };
            if rest.byte_len < byte_len as u64 {
                return Ok(Err("the piece has more bytes than the tensor has left"));
            }
            let Some((object, component)) = rest.begun.take() else {
                return Ok(Err("the tensor is complete"));
            };
            rest.byte_len -= byte_len as u64;
            let mut object = engine.resume_object(object);
            let mut component = object.resume_component(component);
            if let Some(array) = array {
                array.pieces(|piece| Ok(component.write_all(piece)?))?;
            }
            if rest.byte_len > 0 {
                let component = component.suspend();
                rest.begun = Some((object.suspend(), component));
                return Ok(Ok(()));
            }
            component.finish()?;
            object.finish()?;
            *state = match std::mem::replace(&mut *state, State::Ended) {
                State::Streaming(engine, _) => State::Ready(engine),
                other => other,
            };
            Ok(Ok(()))
        };
        match py.detach(|| pool.install(work)).or_raise() {
            Ok(Ok(())) => {}
            Ok(Err(text)) => return Err(misuse(py, text)),
            Err(error) => {
                py.detach(|| writer.end(&mut lock(&writer.state)));
                return Err(error);
            }
        }
        py.check_signals()?;
        match &writer.progress {
            Some(progress) if byte_len > 0 => progress.call1(py, (byte_len,)).map(drop),
            _ => Ok(()),
        }
    }
}

#[pymethods]
impl Pieces {
    /// Takes the next elements: an array of the tensor's dtype, of any shape, or their bytes,
    /// little-endian.
    ///
    /// Raises:
    ///     MisuseError: the piece has another dtype, or more bytes than the tensor has left.
    fn write(&self, py: Python<'_>, piece: &Bound<'_, PyAny>) -> Result<()> {
        let array = LentArray::new(piece)?;
        if array.row().name != self.row.name && array.row().name != "u8" {
            let text = format!(
                "the tensor has elements of {}, the piece of {}",
                self.row.name,
                array.row().name
            );
            return Err(misuse(py, &text));
        }
        self.take(py, Some(&array))
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, PyTuple>) -> Result<()> {
        let left = py.detach(|| lock(&self.rest).byte_len);
        if left == 0 || is_raised(exception) {
            return Ok(());
        }
        let text = format!("{left} bytes of the tensor are missing");
        Err(misuse(py, &text))
    }

    fn __reduce__(&self) -> Result<()> {
        Err(no_pickling("a zt.Pieces"))
    }
}
