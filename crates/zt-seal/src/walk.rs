//! Files, read leaf by leaf on all cores.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use zt::container::memory::fetch;
use zt::foreign::on_all_cores;
use zt::{Error, Progress, Result, Source, Span};

use crate::tree::{leaf_count, leaf_span};

/// A file that is read.
pub(crate) struct Job<C> {
    /// Its number, for the caller.
    pub(crate) at: usize,
    pub(crate) source: Arc<dyn Source>,
    /// The bytes that are read, from the beginning.
    pub(crate) byte_len: u64,
    /// What takes the leaves in their order, on one core.
    pub(crate) chain: C,
}

/// What takes the bytes of a file in their order.
pub(crate) trait Chain: Send {
    /// Whether it takes any: if not, no leaf is kept for it.
    const TAKES: bool;
    /// The next bytes for one of [`Chain::parts`].
    fn parts(&mut self) -> Vec<&mut dyn Part>;
}

/// A part of a chain, which needs no other part.
pub(crate) trait Part: Send {
    /// The next bytes of the file.
    fn add(&mut self, offset: u64, bytes: &[u8]);
}

/// No chain.
impl Chain for () {
    const TAKES: bool = false;

    fn parts(&mut self) -> Vec<&mut dyn Part> {
        Vec::new()
    }
}

/// How much is read at a time.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    /// Files at a time.
    pub(crate) files: usize,
    /// Leaves at a time, of all files together.
    pub(crate) leaves: usize,
}

impl Shape {
    /// Enough for these threads.
    pub(crate) fn new(threads: Option<usize>, keeps: bool) -> Self {
        let cores = || thread::available_parallelism().map_or(1, usize::from);
        let threads = threads.unwrap_or_else(cores).clamp(1, 1024);
        if keeps {
            // A chain is one core for each file, so several files share the cores. Leaves stay in memory for it.
            return Shape { files: threads.max(4), leaves: threads.max(4).strict_mul(4) };
        }
        Shape { files: 128, leaves: threads.strict_mul(64) }
    }
}

/// A leaf of a file.
pub(crate) struct Leaf<'b> {
    /// The number of the file: [`Job::at`].
    pub(crate) file: usize,
    /// The number of the leaf.
    pub(crate) at: u64,
    /// Whether the file has no other.
    pub(crate) is_only: bool,
    pub(crate) bytes: &'b [u8],
}

/// A file in progress.
struct Active<C, R> {
    job: Job<C>,
    next: u64,
    found: Vec<Result<R>>,
    /// Leaves of the last round, which the chain takes in this one, and where they begin.
    before: Vec<Vec<u8>>,
    before_at: u64,
}

/// Reads all files. `next` gives the next one to read, until there is none. `leaf` gets each leaf, and
/// `done` what it made of the leaves of a file. A leaf that cannot be read is an error in its place.
///
/// # Errors
///
/// Those of `next` and `done`; an interruption.
pub(crate) fn walk<C: Chain, R: Send>(
    shape: Shape,
    progress: Option<Progress<'_>>,
    mut next: impl FnMut() -> Result<Option<Job<C>>>,
    leaf: impl Fn(Leaf<'_>) -> R + Sync,
    mut done: impl FnMut(Job<C>, Vec<Result<R>>) -> Result<()>,
) -> Result<()> {
    let memory = Memory::default();
    let mut active: Vec<Active<C, R>> = Vec::new();
    loop {
        while active.len() < shape.files {
            let Some(job) = next()? else { break };
            active.push(Active {
                job,
                next: 0,
                found: Vec::new(),
                before: Vec::new(),
                before_at: 0,
            });
        }
        if active.is_empty() {
            return Ok(());
        }
        let share = shape.leaves.div_ceil(active.len()) as u64;
        round(&mut active, share, &memory, progress, &leaf)?;
        let mut going = Vec::with_capacity(active.len());
        for file in active {
            let is_read = file.next >= leaf_count(file.job.byte_len);
            if is_read && file.before.is_empty() {
                done(file.job, file.found)?;
            } else {
                going.push(file);
            }
        }
        active = going;
    }
}

/// The work of one core.
enum Task<'t> {
    Leaf { place: usize, number: usize, source: &'t dyn Source, at: u64, span: Span, is_only: bool },
    Part { part: &'t mut dyn Part, at: u64, leaves: &'t [Vec<u8>] },
}

/// What a task made.
struct Answer<R> {
    place: usize,
    made: Result<R>,
    bytes: Option<Vec<u8>>,
}

/// Reads the next leaves of each file, and gives the leaves of the last round to the chains.
fn round<C: Chain, R: Send>(
    active: &mut [Active<C, R>],
    share: u64,
    memory: &Memory,
    progress: Option<Progress<'_>>,
    leaf: &(impl Fn(Leaf<'_>) -> R + Sync),
) -> Result<()> {
    let mut tasks: Vec<Task<'_>> = Vec::new();
    for (place, active) in active.iter_mut().enumerate() {
        let Job { at: number, source, byte_len, chain } = &mut active.job;
        let (number, is_only) = (*number, leaf_count(*byte_len) == 1);
        let source: &dyn Source = &**source;
        let last = active.next.saturating_add(share).min(leaf_count(*byte_len));
        if source.is_remote() {
            // The next round as well, so that the wait for it begins now.
            let ahead = active.next..last.saturating_add(share);
            let spans: Vec<Span> = ahead.filter_map(|at| leaf_span(*byte_len, at)).collect();
            source.will_read_all(&spans);
        }
        if !active.before.is_empty() {
            let (at, leaves) = (active.before_at, &active.before[..]);
            tasks.extend(chain.parts().into_iter().map(|part| Task::Part { part, at, leaves }));
        }
        let spans = (active.next..last).filter_map(|at| Some((at, leaf_span(*byte_len, at)?)));
        tasks.extend(spans.map(|(at, span)| Task::Leaf {
            place,
            number,
            source,
            at,
            span,
            is_only,
        }));
    }
    let answers = on_all_cores(tasks, |task| match task {
        Task::Part { part, at, leaves } => {
            let mut offset = at.strict_mul(crate::tree::LEAF);
            for bytes in leaves {
                part.add(offset, bytes);
                offset = offset.strict_add(bytes.len() as u64);
            }
            Ok(None)
        }
        Task::Leaf { place, number, source, at, span, is_only } => {
            let mut buffer = memory.take();
            let leaf = |bytes: &[u8]| leaf(Leaf { file: number, at, is_only, bytes });
            let read = match source.slice(span).filter(|_| !C::TAKES) {
                Some(lent) => Ok(leaf(lent)),
                None => fetch(&mut buffer, source, span).map(leaf),
            };
            if let Some(progress) = progress {
                progress.report(span.byte_len())?;
            }
            let made = read.map_err(Error::from);
            let bytes = if C::TAKES { Some(buffer) } else { memory.give_back(buffer) };
            Ok(Some(Answer { place, made, bytes }))
        }
    })?;
    for file in active.iter_mut() {
        file.before.drain(..).for_each(|buffer| drop(memory.give_back(buffer)));
        file.before_at = file.next;
    }
    for answer in answers.into_iter().flatten() {
        let Some(file) = active.get_mut(answer.place) else { continue };
        file.next = file.next.strict_add(1);
        file.found.push(answer.made);
        file.before.extend(answer.bytes);
    }
    Ok(())
}

/// Buffers that are used again: the system clears the pages of new ones, which takes as long as the hash.
#[derive(Default)]
struct Memory(Mutex<Vec<Vec<u8>>>);

impl Memory {
    fn take(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    fn give_back(&self, buffer: Vec<u8>) -> Option<Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
        None
    }
}
