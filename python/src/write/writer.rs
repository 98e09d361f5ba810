//! `zt.Writer`: writes a `.zt` file, all of it or nothing.

mod output;
mod pieces;

use std::collections::HashMap;
use std::hash::Hasher;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use rayon::ThreadPool;
use twox_hash::XxHash3_64;
use zt::{Attributes, ComponentOptions, Compression, ErrorKind, ObjectOptions, Progress, codes};

pub(crate) use output::{Output, Target};
pub(crate) use pieces::Pieces;
use pieces::Rest;

use crate::share::error::{OrRaise, Result, is_raised, no_pickling};
use crate::share::pool::pool;
use crate::share::source::{Sink, path_of};
use crate::share::work::{Line, Watch};
use crate::share::{remote, value};
use crate::write::array::{LentArray, PIECE};
use crate::write::incoming::Incoming;
use crate::write::options::{self, DEFAULT, Level, check_level, row_of};

/// The state of the engine's writer.
enum State {
    Ready(Box<zt::Writer<'static>>),
    /// This tensor waits for more pieces.
    Streaming(Box<zt::Writer<'static>>, String),
    /// It has finished, or an error has ended it.
    Ended,
}

/// The memory of an added array: its address, its length, and its type.
type Place = (usize, usize, &'static str);

/// Writes a ``.zt`` file, all of it or nothing. If the ``with`` block ends without an exception, the
/// file appears under its name, complete and on the disk. Otherwise the old file stays.
///
/// Args:
///     target: a path, a URL, or an object with ``write``, which gets the bytes in order.
///     zstd: the level, -7 to 22, at which all tensors are compressed; ``None`` for raw bytes, which can
///         be mapped without a copy.
///     digest: ``"crc32c"``, ``"sha256"`` or ``None``, for each component.
///     chunk_digests: the digest of each MiB of a raw component with a digest. It verifies slices.
///         ``None`` writes none.
///     planes: whether floating-point tensors are stored in byte planes. Without loss, bf16 takes two
///         thirds of its bytes.
///     attributes: a dict of text, numbers, lists and dicts for the file.
///     threads: how many threads compress; by default all cores, or ``ZT_NUM_THREADS``.
///     progress: called with the bytes of values since the last call. An exception from it ends the
///         writer.
///     storage_options: as for :func:`open`, if the target is a URL.
///
/// >>> import io, numpy, zt
/// >>> sink = io.BytesIO()
/// >>> with zt.Writer(sink, zstd=3, attributes={"step": 7}) as writer:
/// ...     writer.add("weight", numpy.zeros((2, 3), dtype="f4"))
/// >>> zt.open(sink.getvalue()).attributes
/// {'step': 7}
#[pyclass(frozen, module = "zt", name = "Writer")]
pub(crate) struct Writer {
    state: Mutex<State>,
    /// `None` for an object with `write`.
    output: Option<Arc<Mutex<Option<Output>>>>,
    path: Option<PathBuf>,
    line: Arc<Line>,
    /// The threads that do all its work.
    pool: Option<Arc<ThreadPool>>,
    progress: Option<Py<PyAny>>,
    defaults: ComponentOptions,
    planes: bool,
    /// Added arrays, each with a hash of its bytes and its name. An array under two names is stored
    /// once, unless its bytes changed in between.
    known: Mutex<HashMap<Place, (u64, String)>>,
    /// The process that made it: a forked child has neither the threads nor the file.
    process: u32,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Writer {
    /// Does work with the writer. An error of the system or an exception ends the writer. After another
    /// error the engine decides: it goes on unless it has written a part of an object.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        byte_len: u64,
        work: impl FnOnce(&mut zt::Writer<'static>, Progress<'_>) -> zt::Result<T> + Send,
    ) -> Result<T> {
        /// Fewer bytes are written too fast for Ctrl-C.
        const SMALL: u64 = 8 << 20;
        let pool = self.pool()?;
        let work = |progress: Progress<'_>| {
            let mut state = lock(&self.state);
            let done = match &mut *state {
                State::Ready(writer) => work(writer, progress),
                other => Err(refused(other)),
            };
            match done {
                Err(error) if error.kind() != ErrorKind::Io => Ok(Err(error)),
                done => done.map(Ok),
            }
        };
        let done = if byte_len < SMALL && self.progress.is_none() && !self.is_remote() {
            let go_on = |_| std::ops::ControlFlow::Continue(());
            py.detach(|| pool.install(|| work(Progress::new(&go_on)))).or_raise()
        } else {
            let progress = self.progress.as_ref().map(|progress| progress.bind(py).clone());
            let watch = Watch::new(progress).on(pool);
            watch.line(&self.line).run(py, work)
        };
        match done {
            Ok(done) => done.or_raise(),
            Err(error) => {
                py.detach(|| self.end(&mut lock(&self.state)));
                Err(error)
            }
        }
    }

    /// Drops the engine's writer, and the unpublished file.
    fn end(&self, state: &mut State) {
        *state = State::Ended;
        if let Some(output) = &self.output {
            *lock(output) = None;
        }
    }

    /// The threads, in the process that made the writer.
    fn pool(&self) -> Result<&Arc<ThreadPool>> {
        let pool = self.pool.as_ref().filter(|_| self.is_here());
        pool.ok_or_else(|| {
            let text = "the writer belongs to the process that this one was forked from";
            PyValueError::new_err(text)
        })
    }

    /// Whether a store gets the bytes: it may be slow with few of them.
    fn is_remote(&self) -> bool {
        self.path.as_deref().and_then(remote::url_of).is_some()
    }

    fn is_here(&self) -> bool {
        self.process == std::process::id()
    }

    fn options_of(
        &self,
        py: Python<'_>,
        zstd: &Level,
        digest: Option<&str>,
    ) -> Result<Option<ObjectOptions>> {
        if matches!(zstd, Level::Default) && digest == Some(DEFAULT) {
            return Ok(None);
        }
        let mut options = self.defaults;
        if let Level::Own(level) = zstd {
            options.compression = level.map_or(Compression::None, Compression::Zstd);
            level.map_or(Ok(()), |level| check_level(py, level))?;
        }
        if digest != Some(DEFAULT) {
            options.digest = options::digest(py, "digest", digest)?;
        }
        Ok(Some(options.into()))
    }
}

/// The memory of an array, and a hash of its bytes; `None` if a name for it saves too little.
fn placed(array: &LentArray) -> zt::Result<Option<(Place, u64)>> {
    /// A smaller array takes less than its entry in the table.
    const WORTH_IT: usize = 4 << 10;
    let Some((start, byte_len)) = array.place().filter(|(_, len)| *len >= WORTH_IT) else {
        return Ok(None);
    };
    let mut hasher = XxHash3_64::new();
    array.pieces(|piece| {
        hasher.write(piece);
        Ok(())
    })?;
    Ok(Some(((start, byte_len, array.row().name), hasher.finish())))
}

/// Writes an object that shares the data of an earlier one.
pub(crate) fn share(
    writer: &mut zt::Writer<'_>,
    name: &str,
    array: &LentArray,
    other: &str,
) -> zt::Result<()> {
    let mut object = writer.begin(name, &array.shape(), "dense")?;
    let logical_type = array.row().logical_type().map(Into::into);
    let data = object.component("data", array.row().dtype, logical_type)?;
    data.share(other, "data")?;
    object.finish()
}

/// Adds a value, and reports its bytes. If the target counts them, it reports them while they are
/// written.
pub(crate) fn add(
    writer: &mut zt::Writer<'_>,
    name: &str,
    value: &Incoming,
    attributes: Option<Attributes>,
    options: Option<ObjectOptions>,
    line: &Line,
    progress: Progress<'_>,
) -> zt::Result<()> {
    if let Incoming::Tensor(tensor) = value {
        let tensor = tensor.get().tensor();
        return match options {
            Some(options) => writer.copy_with(name, &tensor, &options, Some(progress)),
            None => writer.copy(name, &tensor),
        };
    }
    line.begin(value.byte_len());
    match value {
        Incoming::Dense(array) if array.byte_len() > PIECE && writer.planes().is_none() => {
            let mut object = writer.begin(name, &array.shape(), "dense")?;
            if let Some(options) = options {
                object = object.options(options);
            }
            if let Some(attributes) = attributes {
                object.set_attributes(attributes)?;
            }
            let logical_type = array.row().logical_type().map(Into::into);
            let mut data = object.component("data", array.row().dtype, logical_type)?;
            array.pieces(|piece| Ok(data.write_all(piece)?))?;
            data.finish()?;
            object.finish()?;
        }
        _ => {
            value.with_object(attributes, |object| match &options {
                Some(options) => writer.add_with(name, object, options),
                None => writer.add(name, object),
            })?;
        }
    }
    progress.report(line.end())
}

fn refused(state: &State) -> zt::Error {
    let message = match state {
        State::Streaming(_, name) => {
            format!("{name:?} is not complete: write the rest of its bytes first")
        }
        _ => "the writer has ended".to_owned(),
    };
    zt::Error::new(ErrorKind::Misuse, codes::MISUSE, message)
}

#[pymethods]
impl Writer {
    #[new]
    #[pyo3(signature = (
        target, *, zstd = None, digest = "crc32c", chunk_digests = "crc32c",
        planes = false, attributes = None, threads = None, progress = None, storage_options = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "the keywords of Python's call")]
    fn new(
        py: Python<'_>,
        target: &Bound<'_, PyAny>,
        zstd: Option<i32>,
        digest: Option<&str>,
        chunk_digests: Option<&str>,
        planes: bool,
        attributes: Option<&Bound<'_, PyAny>>,
        threads: Option<usize>,
        progress: Option<Py<PyAny>>,
        storage_options: Option<&Bound<'_, PyDict>>,
    ) -> Result<Self> {
        let digest = options::digest(py, "digest", digest)?;
        let chunk_digests = options::digest(py, "chunk_digests", chunk_digests)?;
        let options = options::write(py, zstd, planes)?.digest(digest).chunk_digests(chunk_digests);
        let compression = match (zstd, planes) {
            (Some(level), _) => Compression::Zstd(level),
            (None, true) => Compression::Auto,
            (None, false) => Compression::None,
        };
        let defaults = ComponentOptions { compression, digest };
        let attributes = attributes.map(value::from_mapping).transpose()?;
        let stores = remote::options(storage_options)?;
        let line = Arc::new(Line::default());
        let path = path_of(target)?;
        let mut output = None;
        let pool = pool(threads)?;
        let writer = if let Some(path) = &path {
            let begun = Watch::default().on(&pool).run(py, |_| Output::create(path, &stores))?;
            let begun = Arc::new(Mutex::new(Some(begun)));
            output = Some(Arc::clone(&begun));
            let target = Target { output: begun, line: Arc::clone(&line) };
            py.detach(|| pool.install(|| options.to_buffered_writer(target)))
        } else if target.hasattr("write")? {
            let sink = Sink::new(target);
            py.detach(|| pool.install(|| options.to_writer(sink)))
        } else {
            return Err(PyTypeError::new_err(format!(
                "expected a path or an object with write, not {}",
                target.get_type().name()?
            )));
        };
        let mut writer = writer.or_raise()?;
        if let Some(attributes) = attributes {
            writer.set_attributes(attributes).or_raise()?;
        }
        Ok(Writer {
            state: Mutex::new(State::Ready(Box::new(writer))),
            output,
            path,
            line,
            pool: Some(pool),
            progress,
            defaults,
            planes,
            known: Mutex::default(),
            process: std::process::id(),
        })
    }

    /// Adds a tensor.
    ///
    /// Args:
    ///     name: its name, which no other tensor of the file has.
    ///     value: an array of NumPy, a tensor of torch, jax or any library with DLPack, a sparse array
    ///         of SciPy, a :class:`Tensor` of a file, a :class:`QuantizedGroup`, or an object with a
    ///         buffer. Strides and byte order may be any. Each byte is read once: if another thread
    ///         changes the array meanwhile, the file has old and new values, and is sound.
    ///     attributes: a dict for the tensor.
    ///     zstd: the level for this tensor, or ``None`` for raw bytes; by default the writer's.
    ///     digest: the digest for this tensor; by default the writer's.
    ///
    /// An array that is added under two names, such as tied weights of a model, is stored once.
    ///
    /// Raises:
    ///     TypeError: the value is no array, or has elements that files do not have.
    ///     MisuseError: the name is taken or empty, or the writer has ended.
    ///     DigestMismatchError: a tensor of a file is damaged. Where it can be told only later, ``finish`` says so.
    #[pyo3(
        signature = (name, value, *, attributes = None, zstd = Level::Default, digest = "default"),
        text_signature = "($self, name, value, *, attributes=None, zstd='default', digest='default')"
    )]
    fn add(
        &self,
        py: Python<'_>,
        name: &str,
        value: &Bound<'_, PyAny>,
        attributes: Option<&Bound<'_, PyAny>>,
        zstd: Level,
        digest: Option<&str>,
    ) -> Result<()> {
        let value = Incoming::new(value)?;
        let attributes = attributes.map(value::from_mapping).transpose()?;
        let options = self.options_of(py, &zstd, digest)?;
        let byte_len = value.byte_len();
        let is_default = options.is_none() && attributes.is_none() && !self.planes;
        self.with(py, byte_len, |writer, progress| {
            let placed = match &value {
                Incoming::Dense(array) if is_default => placed(array)?,
                _ => None,
            };
            let mut known = lock(&self.known);
            if let Incoming::Dense(array) = &value
                && let Some((place, hash)) = &placed
                && let Some((found, other)) = known.get(place)
                && found == hash
            {
                share(writer, name, array, other)?;
                return progress.report(byte_len);
            }
            let line = &self.line;
            add(writer, name, &value, attributes, options, line, progress)?;
            if let Some((place, hash)) = placed {
                known.insert(place, (hash, name.to_owned()));
            }
            Ok(())
        })
    }

    /// Begins a tensor that is written in pieces. It may be larger than memory.
    ///
    /// Args:
    ///     shape: its dimensions.
    ///     dtype: the type of its elements: ``"f32"``, ``"float32"`` or a dtype.
    ///
    /// Returns:
    ///     An object whose ``write`` takes arrays or bytes in row-major order. The tensor is complete
    ///     when all its bytes are written. Until then the writer takes no other tensor.
    #[pyo3(
        signature = (name, shape, dtype, *, zstd = Level::Default, digest = "default"),
        text_signature = "($self, name, shape, dtype, *, zstd='default', digest='default')"
    )]
    fn begin(
        slf: &Bound<'_, Self>,
        name: &str,
        shape: Vec<u64>,
        dtype: &Bound<'_, PyAny>,
        zstd: Level,
        digest: Option<&str>,
    ) -> Result<Pieces> {
        let (py, this) = (slf.py(), slf.get());
        let row = row_of(dtype)?;
        let options = this.options_of(py, &zstd, digest)?;
        let expected = zt::formats::dense_byte_len(&shape, row.item_len as u64);
        let expected = expected.ok_or_else(|| PyValueError::new_err("the tensor is too large"))?;
        let begun = this.with(py, 0, |writer, _| {
            let mut object = writer.begin(name, &shape, "dense")?;
            if let Some(options) = options {
                object = object.options(options);
            }
            let logical_type = row.logical_type().map(Into::into);
            let component = object.component("data", row.dtype, logical_type)?.suspend();
            Ok((object.suspend(), component))
        })?;
        py.detach(|| {
            let mut state = lock(&this.state);
            *state = match std::mem::replace(&mut *state, State::Ended) {
                State::Ready(writer) => State::Streaming(writer, name.to_owned()),
                other => other,
            };
        });
        let pieces = Pieces {
            writer: slf.clone().unbind(),
            row,
            rest: Mutex::new(Rest { begun: Some(begun), byte_len: expected }),
        };
        if expected == 0 {
            pieces.take(py, None)?;
        }
        Ok(pieces)
    }

    /// Writes the list of tensors, and makes the file appear. A ``with`` block calls it.
    fn finish(&self, py: Python<'_>) -> Result<()> {
        // Fails if the writer has ended, or waits for pieces.
        self.with(py, 0, |_, _| Ok(()))?;
        let finish = |_: Progress<'_>| {
            let mut state = lock(&self.state);
            let finished = match std::mem::replace(&mut *state, State::Ended) {
                State::Ready(writer) => writer.finish(),
                _ => Ok(()),
            };
            // Taken in any case: a dropped output leaves no file.
            let output = self.output.as_ref().and_then(|output| lock(output).take());
            finished?;
            output.map_or(Ok(()), |output| output.publish(true))
        };
        let watch = Watch::default().on(self.pool()?);
        watch.line(&self.line).run(py, finish)
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, PyTuple>) -> Result<()> {
        if !is_raised(exception) {
            return self.finish(py);
        }
        if self.is_here() {
            py.detach(|| self.end(&mut lock(&self.state)));
        }
        Ok(())
    }

    fn __repr__(&self) -> String {
        match &self.path {
            Some(path) => format!("<zt.Writer {:?}>", path.display().to_string()),
            None => "<zt.Writer>".to_owned(),
        }
    }

    fn __reduce__(&self) -> Result<()> {
        Err(no_pickling("a zt.Writer"))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.is_here() {
            return;
        }
        // In a forked child: the parent removes the file, and there are no threads to wait for.
        std::mem::forget(std::mem::replace(&mut *lock(&self.state), State::Ended));
        if let Some(output) = &self.output {
            std::mem::forget(lock(output).take());
        }
        std::mem::forget(self.pool.take());
    }
}
