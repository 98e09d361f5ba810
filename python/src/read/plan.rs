//! `zt.plan`: values that a thread reads ahead of their use.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use zt::{Dense, Slice};

use crate::read::open::{Open, opened};
use crate::share::array::Array;
use crate::share::error::{OrRaise, Result, misuse};
use crate::share::index::Index;
use crate::share::pool::default_threads;

/// The time between two checks for signals, while a value is awaited.
const BEAT: Duration = Duration::from_millis(40);

/// Values that are read ahead unless the caller says otherwise.
pub(crate) const MEMORY: u64 = 256 << 20;

/// The options of [`zt::Plan`].
pub(crate) struct Reading {
    pub(crate) memory: u64,
    pub(crate) threads: usize,
    pub(crate) page_cache: bool,
}

/// Reads tensors ahead of their use: all of them, or those parts that ``wanted`` names.
///
/// A thread begins at once to read the values in the order of the file and on all cores, and waits when
/// the budget is spent. Tensors of a set are read shard by shard. Sparse and quantized ones are made dense.
///
/// Args:
///     source: a :class:`File`, or what :func:`open` takes.
///     wanted: names, or a dict of names to indices as ``file[name][index]`` takes them; ``None`` as an
///         index is the whole tensor. By default all tensors.
///     memory: the most bytes of values that are held and were not taken. One value is held whatever
///         its length, and so are those that :meth:`Plan.take` passes over.
///     threads: how many threads read; by default all cores, or ``ZT_NUM_THREADS``.
///     page_cache: whether the page cache of the system takes part. With ``False``, values of
///         at least 64 KiB are read past it, for files that are read once (Linux, local files, where the file
///         system has ``O_DIRECT``).
///     storage_options: as for :func:`open`.
///
/// Raises:
///     TensorNotFoundError: the file has no tensor of that name.
///     IndexError: an index does not fit its tensor.
///
/// >>> import io, numpy, zt
/// >>> sink = io.BytesIO()
/// >>> with zt.Writer(sink) as writer:
/// ...     writer.add("weight", numpy.arange(6, dtype="f4").reshape(2, 3))
/// >>> for name, array in zt.plan(sink.getvalue(), {"weight": slice(0, 1)}):
/// ...     print(name, array)
/// weight [[0. 1. 2.]]
#[pyfunction]
#[pyo3(signature = (source, wanted = None, *, memory = 268_435_456, threads = None, page_cache = true, storage_options = None))]
pub(crate) fn plan(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    wanted: Option<&Bound<'_, PyAny>>,
    memory: u64,
    threads: Option<usize>,
    page_cache: bool,
    storage_options: Option<&Bound<'_, PyDict>>,
) -> Result<Plan> {
    let open = opened(py, source, storage_options)?;
    let wanted = Wanted::all_of(&open, wanted)?;
    let indices: Vec<_> = wanted.iter().map(|one| one.index.clone()).collect();
    let finish = move |py: Python<'_>, at: usize, dense: Dense<'static>| {
        let mut array = Array::of_dense(py, dense)?;
        let Some(index) = &indices[at] else {
            return Ok(array.numpy(py)?.unbind());
        };
        array.shape.clone_from(&index.shape);
        let mut array = array.numpy(py)?;
        if index.is_scalar {
            array = array.get_item(PyTuple::empty(py))?;
        }
        Ok(array.unbind())
    };
    let threads = threads.map_or_else(default_threads, Ok)?.max(1);
    let how = Reading { memory, threads, page_cache };
    Plan::begin(open, wanted, how, Box::new(finish))
}

/// A tensor, or a part of it, that will be read.
pub(crate) struct Wanted {
    pub(crate) name: String,
    /// `None` for all of it.
    pub(crate) index: Option<Index>,
}

impl Wanted {
    /// What `wanted` names in the file: names, or a dict of names and indices.
    pub(crate) fn all_of(open: &Open, wanted: Option<&Bound<'_, PyAny>>) -> Result<Vec<Self>> {
        let whole = |name: String| Wanted { name, index: None };
        let Some(wanted) = wanted else {
            return Ok(open.file().names().map(str::to_owned).map(whole).collect());
        };
        let Ok(indices) = wanted.cast::<PyDict>() else {
            let names = wanted.try_iter()?.map(|name| Ok(whole(name?.extract()?)));
            return names.collect();
        };
        let one = |(name, key): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            let name: String = name.extract()?;
            let tensor = open.tensor(&name).or_raise()?;
            let shape = tensor.tensor().shape();
            let index = (!key.is_none()).then(|| Index::new(&key, shape)).transpose()?;
            Ok(Wanted { name, index })
        };
        indices.iter().map(one).collect()
    }
}

/// Makes the value that the caller gets of what was read: an array, a tensor of a framework.
type Finish = Box<dyn Fn(Python<'_>, usize, Dense<'static>) -> Result<Py<PyAny>> + Send + Sync>;

/// Tensors that are read ahead of their use: an iterator of pairs of a name and an array, in the order of
/// the file. Made by :func:`plan` and ``safe_open.prefetch``.
///
/// Each value is handed out once, by iterating or by :meth:`take`. Any number of threads may take.
#[pyclass(frozen, module = "zt", name = "Plan")]
pub(crate) struct Plan {
    names: Vec<String>,
    line: Arc<Line>,
    finish: Finish,
    process: u32,
}

impl Plan {
    /// Starts the thread that reads.
    ///
    /// # Errors
    ///
    /// `TensorNotFoundError`; `OSError` if the system starts no thread.
    pub(crate) fn begin(
        open: Arc<Open>,
        wanted: Vec<Wanted>,
        how: Reading,
        finish: Finish,
    ) -> Result<Self> {
        for one in &wanted {
            open.tensor(&one.name).or_raise()?;
        }
        let slices = |one: &Wanted| match &one.index {
            Some(index) => index.slices.clone(),
            None => Vec::new(),
        };
        let slices: Vec<Vec<Slice>> = wanted.iter().map(slices).collect();
        let names: Vec<String> = wanted.into_iter().map(|one| one.name).collect();
        let line = Arc::new(Line::new(&names));
        let (read, named) = (Arc::clone(&line), names.clone());
        let reader = move || {
            // However it ends, no thread waits for more.
            let _end = End(&read);
            let tensors = named.iter().map(|name| open.file().tensor(name));
            // They were there when the plan began.
            let wanted = tensors.flatten().zip(slices);
            let plan = open.file().plan(wanted).memory(how.memory);
            let plan = plan.threads(how.threads).page_cache(how.page_cache);
            let deliver = |at, value: zt::Result<_>| {
                read.deliver(at, value.map_err(|error| open.blame(error)))
            };
            // Only `deliver` fails, when nothing is wanted any more.
            drop(plan.for_each(deliver));
        };
        thread::Builder::new().name("zt-plan".to_owned()).spawn(reader)?;
        Ok(Plan { names, line, finish, process: std::process::id() })
    }

    fn expect_here(&self) -> Result<()> {
        if self.process == std::process::id() {
            return Ok(());
        }
        let text = "a plan reads in the process that began it: begin one after the fork";
        Err(PyRuntimeError::new_err(text))
    }

    /// The value of place `wanted`, or the next one; `None` if there is none.
    fn next_of(&self, py: Python<'_>, wanted: Option<usize>) -> Result<Option<(usize, Py<PyAny>)>> {
        self.expect_here()?;
        let next = py.detach(|| self.line.take(wanted))?;
        let Some((at, value)) = next else {
            return Ok(None);
        };
        Ok(Some((at, (self.finish)(py, at, value.or_raise()?)?)))
    }
}

#[pymethods]
impl Plan {
    /// The names, in the order in which they were asked for.
    fn names<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyList>> {
        PyList::new(py, &self.names)
    }

    fn __len__(&self) -> usize {
        self.names.len()
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> Result<Option<(String, Py<PyAny>)>> {
        let next = self.next_of(py, None)?;
        Ok(next.map(|(at, value)| (self.names[at].clone(), value)))
    }

    /// The value of that name, once it is read. Those before it in the file wait in memory.
    ///
    /// Raises:
    ///     MisuseError: the name is not in the plan, or its value was taken.
    fn take(&self, py: Python<'_>, name: &str) -> Result<Py<PyAny>> {
        let at = self.line.place(name);
        let value = match at {
            Some(at) => self.next_of(py, Some(at))?,
            None => return Err(misuse(py, &format!("{name:?} is not in the plan"))),
        };
        let Some((_, value)) = value else {
            return Err(misuse(py, &format!("{name:?} was taken, or the plan is closed")));
        };
        Ok(value)
    }

    /// Ends the reading and drops what was not taken.
    fn close(&self) {
        // A fork may have copied the lock while the reader held it.
        if self.expect_here().is_ok() {
            self.line.close();
        }
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyAny>) {
        self.close();
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        self.close();
    }
}

/// Where the reader leaves values, and waits until they are taken.
struct Line {
    places: BTreeMap<String, usize>,
    queue: Mutex<Queue>,
    /// A value came or went, or no more come: those who take wait for it.
    filled: Condvar,
    /// A value is wanted, or none is: the reader waits for it. Were it the same as `filled`, two who take
    /// would wake each other without end.
    wanted: Condvar,
}

#[derive(Default)]
struct Queue {
    ready: VecDeque<(usize, zt::Result<Dense<'static>>)>,
    /// What the caller has not taken, read or not.
    left: Vec<bool>,
    /// How many wait for what is not ready.
    waiting: usize,
    is_over: bool,
}

impl Line {
    fn new(names: &[String]) -> Self {
        let places = names.iter().enumerate();
        let queue = Queue { left: vec![true; names.len()], ..Queue::default() };
        Line {
            places: places.map(|(at, name)| (name.clone(), at)).collect(),
            queue: Mutex::new(queue),
            filled: Condvar::new(),
            wanted: Condvar::new(),
        }
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves a value. Waits until all are taken, or somebody waits for one that is not here: what the
    /// engine holds ahead of these is the budget.
    fn deliver(&self, at: usize, value: zt::Result<Dense<'static>>) -> zt::Result<()> {
        let mut queue = self.lock();
        queue.ready.push_back((at, value));
        self.filled.notify_all();
        while !queue.is_over && queue.waiting == 0 && !queue.ready.is_empty() {
            queue = self.wanted.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        if queue.is_over {
            return Err(std::io::Error::from(std::io::ErrorKind::Interrupted).into());
        }
        Ok(())
    }

    /// The value of place `wanted`, or the next one; `None` if it was taken, or no more come. Called
    /// without the interpreter.
    fn take(&self, wanted: Option<usize>) -> Result<Option<(usize, zt::Result<Dense<'static>>)>> {
        let mut checked = Instant::now();
        let mut queue = self.lock();
        loop {
            let found = match wanted {
                Some(wanted) => queue.ready.iter().position(|(at, _)| *at == wanted),
                None => (!queue.ready.is_empty()).then_some(0),
            };
            if let Some((at, value)) = found.and_then(|found| queue.ready.remove(found)) {
                queue.left[at] = false;
                self.notify();
                return Ok(Some((at, value)));
            }
            let is_left = wanted.is_none_or(|wanted| queue.left[wanted]);
            if queue.is_over || !is_left {
                return Ok(None);
            }
            queue.waiting += 1;
            self.wanted.notify_one();
            let waited = self.filled.wait_timeout(queue, BEAT);
            (queue, _) = waited.unwrap_or_else(PoisonError::into_inner);
            queue.waiting -= 1;
            // Values that this call passes over may come faster than the wait ends.
            if checked.elapsed() >= BEAT {
                drop(queue);
                Python::attach(|py| py.check_signals())?;
                checked = Instant::now();
                queue = self.lock();
            }
        }
    }

    fn close(&self) {
        let mut queue = self.lock();
        queue.is_over = true;
        queue.ready.clear();
        drop(queue);
        self.notify();
    }

    fn notify(&self) {
        self.filled.notify_all();
        self.wanted.notify_one();
    }
}

/// The end of the reader.
struct End<'l>(&'l Line);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.0.notify();
    }
}
