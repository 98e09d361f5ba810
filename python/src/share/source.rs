//! Objects of Python as the engine's sources and sinks.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use zt::{Source, Span};

use crate::share::error::{Result, missing};
use crate::share::memory::Lent;
use crate::share::ranges::Ranges;

/// A file object with `seek` and `read`. Its readers take turns.
///
/// A file object of fsspec also has a file system and a path. So it fetches several ranges at once, of
/// those that the engine announces.
///
/// The lock is taken before the interpreter is attached, never after. So a thread that waits for the
/// lock lets other threads run Python.
pub(crate) struct Reader {
    state: Mutex<State>,
    byte_len: u64,
    is_remote: bool,
}

struct State {
    object: Py<PyAny>,
    ranges: Option<Ranges>,
}

impl Reader {
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> Result<Self> {
        let byte_len = object.call_method1("seek", (0, 2))?;
        // `seek` of some objects returns nothing.
        let byte_len = if byte_len.is_none() { object.call_method0("tell")? } else { byte_len };
        let ranges = Ranges::new(object)?;
        Ok(Reader {
            is_remote: ranges.is_some(),
            state: Mutex::new(State { object: object.clone().unbind(), ranges }),
            byte_len: byte_len.extract()?,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Source for Reader {
    fn byte_len(&self) -> u64 {
        self.byte_len
    }

    fn is_remote(&self) -> bool {
        self.is_remote
    }

    fn will_read_all(&self, spans: &[Span]) {
        if let Some(ranges) = &mut self.state().ranges {
            ranges.plan(spans, self.byte_len);
        }
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let mut state = self.state();
        if let Some(ranges) = &mut state.ranges
            && ranges.read(offset, buf)?
        {
            return Ok(());
        }
        let read = |py: Python<'_>| -> Result<bool> {
            let object = state.object.bind(py);
            object.call_method1("seek", (offset,))?;
            let mut rest = buf;
            while !rest.is_empty() {
                let piece = object.call_method1("read", (rest.len(),))?;
                let piece = Lent::new(&piece)?;
                let bytes = piece.bytes();
                let (Some(place), false) = (rest.get_mut(..bytes.len()), bytes.is_empty()) else {
                    return Ok(false);
                };
                place.copy_from_slice(bytes);
                rest = &mut rest[bytes.len()..];
            }
            Ok(true)
        };
        if !Python::attach(read)? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }
}

/// An object with `write`.
pub(crate) struct Sink(Py<PyAny>);

impl Sink {
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> Self {
        Sink(object.clone().unbind())
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Python::attach(|py| {
            let piece = PyBytes::new(py, bytes);
            let written = self.0.bind(py).call_method1("write", (piece,))?;
            // An object that writes all bytes may return nothing.
            if written.is_none() {
                return Ok(bytes.len());
            }
            Ok(written.extract::<usize>()?.min(bytes.len()))
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Python::attach(|py| {
            let object = self.0.bind(py);
            if object.hasattr("flush")? {
                object.call_method0("flush")?;
            }
            Ok(())
        })
    }
}

/// Whether the object lends its bytes.
pub(crate) fn has_buffer(object: &Bound<'_, PyAny>) -> bool {
    PyUntypedBuffer::get(object).is_ok()
}

/// The object as a path, if it is a `str` or an `os.PathLike`.
pub(crate) fn path_of(object: &Bound<'_, PyAny>) -> Result<Option<PathBuf>> {
    if object.is_instance_of::<PyString>() || object.hasattr("__fspath__")? {
        let path: PathBuf = object.extract()?;
        if path.as_os_str().is_empty() {
            return Err(missing(object.py(), "the path is empty: pass the path of a file"));
        }
        return Ok(Some(path));
    }
    Ok(None)
}
