//! Many ranges of a file in one request: the `cat_ranges` of fsspec's file systems.

use std::collections::{BTreeMap, VecDeque};

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyDict, PyString};
use zt::Span;

use crate::share::error::Result;

/// The most bytes that one call asks for, and that are held.
const BATCH: u64 = 64 << 20;

/// The most bytes of one range: a file system fetches several ranges at a time.
const PIECE: u64 = 8 << 20;

/// Ranges with at most this many bytes between them become one.
const GAP: u64 = 64 << 10;

/// Ranges of a file that will be read, and bytes of ranges that were fetched.
pub(crate) struct Ranges {
    file_system: Py<PyAny>,
    path: Py<PyString>,
    /// In the order of reading, none longer than `PIECE`.
    planned: VecDeque<Span>,
    /// By their offsets.
    kept: BTreeMap<u64, Kept>,
}

struct Kept {
    bytes: PyBackedBytes,
    /// How many bytes were not read yet.
    unread: u64,
}

impl Ranges {
    /// The ranges of a file object of fsspec; `None` for other objects.
    ///
    /// # Errors
    ///
    /// Exceptions of the object's attributes.
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> Result<Option<Self>> {
        let (Some(file_system), Some(path)) =
            (object.getattr_opt("fs")?, object.getattr_opt("path")?)
        else {
            return Ok(None);
        };
        let Ok(path) = path.cast_into::<PyString>() else {
            return Ok(None);
        };
        Ok(file_system.hasattr("cat_ranges")?.then(|| Ranges {
            file_system: file_system.unbind(),
            path: path.unbind(),
            planned: VecDeque::new(),
            kept: BTreeMap::new(),
        }))
    }

    /// Remembers what will be read. Nothing is read yet.
    pub(crate) fn plan(&mut self, spans: &[Span], byte_len: u64) {
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for span in spans {
            let (start, end) = (span.offset(), span.end().min(byte_len));
            match joined.last_mut() {
                Some((first, last)) if start >= *first && start <= last.saturating_add(GAP) => {
                    *last = end.max(*last);
                }
                _ => joined.push((start, end)),
            }
        }
        self.planned.clear();
        for (mut start, end) in joined {
            while start < end {
                let piece = end.min(start.saturating_add(PIECE));
                self.planned.extend(Span::between(start, piece));
                start = piece;
            }
        }
    }

    /// Fills `buf` with fetched bytes, after it has fetched the next planned ranges if necessary.
    /// `false` if the bytes are not planned: read them from the file.
    ///
    /// # Errors
    ///
    /// Exceptions of `cat_ranges`.
    pub(crate) fn read(&mut self, offset: u64, buf: &mut [u8]) -> Result<bool> {
        let mut at = offset;
        let mut rest = buf;
        while !rest.is_empty() {
            let taken = match self.take(at, rest) {
                0 if self.fetch(at)? => self.take(at, rest),
                taken => taken,
            };
            if taken == 0 {
                return Ok(false);
            }
            at = at.saturating_add(taken as u64);
            rest = &mut rest[taken..];
        }
        Ok(true)
    }

    /// Copies the kept bytes from `at` on, and returns their number.
    fn take(&mut self, at: u64, out: &mut [u8]) -> usize {
        let Some((start, kept)) = self.kept.range_mut(..=at).next_back() else {
            return 0;
        };
        let start = *start;
        let found = usize::try_from(at - start)
            .ok()
            .and_then(|from| kept.bytes.get(from..))
            .unwrap_or_default();
        let len = found.len().min(out.len());
        out[..len].copy_from_slice(&found[..len]);
        kept.unread = kept.unread.saturating_sub(len as u64);
        if kept.unread == 0 {
            self.kept.remove(&start);
        }
        len
    }

    /// Fetches the planned range at `at` and the next ones; `false` if none is planned there.
    fn fetch(&mut self, at: u64) -> Result<bool> {
        let holds = |span: &Span| span.offset() <= at && at < span.end();
        let Some(first) = self.planned.iter().position(holds) else {
            return Ok(false);
        };
        let held: u64 = self.kept.values().map(|kept| kept.bytes.len() as u64).sum();
        if held > BATCH {
            // These ranges were not read to their ends.
            self.kept.clear();
        }
        let mut sum = 0u64;
        let mut count = 0;
        for span in self.planned.range(first..) {
            sum = sum.saturating_add(span.byte_len());
            if count > 0 && sum > BATCH {
                break;
            }
            count += 1;
        }
        let wanted: Vec<Span> = self.planned.drain(first..first + count).collect();
        let (file_system, path) = (&self.file_system, &self.path);
        let found = Python::attach(|py| -> Result<Vec<PyBackedBytes>> {
            let starts: Vec<u64> = wanted.iter().map(|span| span.offset()).collect();
            let ends: Vec<u64> = wanted.iter().map(|span| span.end()).collect();
            let options = PyDict::new(py);
            options.set_item("on_error", "raise")?;
            let paths = vec![path.bind(py); wanted.len()];
            let arguments = (paths, starts, ends);
            let found =
                file_system.bind(py).call_method("cat_ranges", arguments, Some(&options))?;
            found.extract()
        })?;
        for (span, bytes) in wanted.iter().zip(found) {
            // A short answer is dropped: the read from the file then gives the error.
            if bytes.len() as u64 == span.byte_len() {
                let unread = span.byte_len();
                self.kept.insert(span.offset(), Kept { bytes, unread });
            }
        }
        Ok(true)
    }
}
