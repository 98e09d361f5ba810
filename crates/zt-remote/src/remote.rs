//! A remote file as a source of bytes.

use std::io;
use std::ops::Range;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Instant;

use zt::{Error, Result, Source, Span};
use zt_foreign::{Folder, Opened};

use crate::address::Address;
use crate::error::Fault;
use crate::folder::is_missing;
use crate::object::{Bytes, End, Object};
use crate::options::RemoteOptions;
use crate::ranges::{Found, Ranges, SMALL};
use crate::runtime::{self, PAUSE};
use crate::traffic::Traffic;

/// Bytes of the first request. Most manifests and headers fit in.
const FIRST: u64 = 256 << 10;

/// The longest rest of a manifest or of a header that is one request: enough for 100,000 objects.
const REST: u64 = 32 << 20;

/// A small read is extended to the next multiple of this many bytes.
///
/// Pays: not measured.
const BLOCK: u64 = 64 << 10;

/// Ranges with at most this many bytes between them are one request.
///
/// Pays: not measured.
const GAP: u64 = 64 << 10;

/// The room for each object in a shared plan. Stores accept objects of at most 50 TB.
const STRIDE: u64 = 1 << 48;

/// An object of a store, read by position. It serves any number of threads.
///
/// The version of the object is fixed when it is opened. If the object is replaced while it is open,
/// reads fail with the code `changed`, and never return bytes of both.
///
/// Opening takes one request of 256 KiB: of the end of the object if its extension is one of
/// [`RemoteOptions::end_first`], otherwise of its beginning. Reads of more than 8 MiB become several requests at
/// once. Blocking calls work on any thread, also within an asynchronous runtime.
///
/// ```no_run
/// use zt_remote::{Remote, RemoteOptions};
///
/// let options = RemoteOptions::new().end_first(["zt"]);
/// let remote = Remote::open("s3://models/llama/model.zt", &options)?;
/// let file = zt::OpenOptions::new().open_source(remote)?;
/// println!("{} tensors", file.len());
/// # Ok::<(), zt::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Remote {
    object: Arc<Object>,
    /// The offset of the object in the plan that several objects share.
    base: u64,
    /// The range that was fetched when the object was opened.
    first: Range<u64>,
    shared: Arc<Shared>,
}

/// The plan of requests that the files of one set share.
#[derive(Debug)]
struct Shared {
    options: RemoteOptions,
    /// The bytes of all objects: the first object begins at 0, the second at [`STRIDE`], and so on.
    ranges: Mutex<Ranges>,
    objects: RwLock<Vec<Arc<Object>>>,
    /// Some part has arrived.
    arrived: Condvar,
}

impl Remote {
    /// Opens the object at `url`.
    ///
    /// # Errors
    ///
    /// As [`crate::open`].
    pub fn open(url: &str, options: &RemoteOptions) -> Result<Self> {
        let address = Address::new(url, options)?;
        Self::at(address, options)
    }

    /// Opens the object at `url`. If there is none, `url` is a folder, and the object `name` in it is opened: the
    /// file that describes all files of the folder.
    ///
    /// # Errors
    ///
    /// As [`crate::open`]. If both are missing, the error is about `url`.
    pub fn open_or_within(url: &str, name: &str, options: &RemoteOptions) -> Result<Self> {
        let opened = Self::open(url, options);
        let (place, query) = url.split_at(url.find('?').unwrap_or(url.len()));
        match opened {
            Err(error) if place.ends_with('/') || is_missing(&error) => {
                let within = format!("{}/{name}{query}", place.trim_end_matches('/'));
                match Self::open(&within, options) {
                    Err(second) if is_missing(&second) => Err(error),
                    opened => opened,
                }
            }
            opened => opened,
        }
    }

    /// Opens objects below the folder of this one; `None` for a missing one. All of them and this one have
    /// one plan of requests, and share the limits of memory and of requests.
    ///
    /// Errors are as for [`crate::open`]; code `path` for a location that is not a list of plain names with
    /// `/` between them.
    pub fn beside(&self, locations: &[&str]) -> Vec<Result<Option<Self>>> {
        let mut found = Vec::with_capacity(locations.len());
        let mut gave_up: Option<Error> = None;
        for locations in locations.chunks(self.shared.options.in_flight) {
            if let Some(error) = &gave_up {
                found.extend(locations.iter().map(|_| Err(error.clone())));
                continue;
            }
            let begun = Instant::now();
            let ask = |location: &&str| {
                let address = self.object.address().below(location)?;
                Asked::new(address, &self.shared.options)
            };
            let asked: Vec<_> = locations.iter().map(ask).collect();
            for asked in asked {
                let opened = asked.and_then(Asked::opened);
                let opened = opened.and_then(|opened| Self::add(&self.shared, opened));
                found.push(match opened {
                    Ok(remote) => Ok(Some(remote)),
                    Err(error) if is_missing(&error) => Ok(None),
                    Err(error) => {
                        // The server has stopped answering. Each further group would wait as long.
                        let is_silent = begun.elapsed() >= self.shared.options.timeout;
                        gave_up = gave_up.or(is_silent.then(|| error.clone()));
                        Err(error)
                    }
                });
            }
        }
        found
    }

    pub(crate) fn at(address: Address, options: &RemoteOptions) -> Result<Self> {
        let opened = Asked::new(address, options)?.opened()?;
        let shared = Arc::new(Shared {
            options: options.clone(),
            ranges: Mutex::default(),
            objects: RwLock::default(),
            arrived: Condvar::new(),
        });
        Self::add(&shared, opened)
    }

    /// Adds an object to the plan, with the bytes that were fetched when it was opened.
    fn add(shared: &Arc<Shared>, (object, offset, bytes): (Object, u64, Bytes)) -> Result<Self> {
        let object = Arc::new(object);
        let objects = shared.objects.write();
        let mut objects = objects.unwrap_or_else(PoisonError::into_inner);
        let base = (objects.len() as u64).checked_mul(STRIDE);
        let base = base.filter(|_| object.byte_len() < STRIDE);
        let base = base.ok_or_else(|| Error::from(Fault::TooLong))?;
        objects.push(Arc::clone(&object));
        drop(objects);
        let end = offset.strict_add(bytes.len() as u64);
        shared.ranges().keep(base.strict_add(offset), bytes);
        Ok(Remote { object, base, first: offset..end, shared: Arc::clone(shared) })
    }

    /// The URL, without a query and without a password.
    pub fn url(&self) -> &str {
        &self.object.address().text
    }

    /// The file's name, the last part of the path.
    pub(crate) fn name(&self) -> String {
        self.object.address().name().to_owned()
    }

    /// What tells this version of the object from others: its tag or its time.
    pub(crate) fn version(&self) -> Option<String> {
        self.object.version()
    }

    /// Requests and bytes so far.
    pub fn traffic(&self) -> Traffic {
        self.object.meter().traffic()
    }

    /// The bytes from `offset` on, at most `most` and at least one, as one part has them: nothing is copied.
    pub(crate) fn piece(&self, offset: u64, most: u64) -> Result<Bytes> {
        let end = offset.saturating_add(most).min(self.byte_len());
        if end <= offset {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        let limit = self.within(self.byte_len());
        let wanted = self.within(offset)..self.within(end);
        self.shared.next(wanted, limit, self.shared.options.part)
    }

    /// The offset in the plan of an offset in the object.
    fn within(&self, offset: u64) -> u64 {
        self.base.strict_add(offset)
    }
}

impl Shared {
    /// The object that has the byte at `offset` of the plan, and the offset of the object.
    fn object_at(&self, offset: u64) -> Option<(Arc<Object>, u64)> {
        let position = offset.checked_div(STRIDE)?;
        let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        let object = objects.get(usize::try_from(position).ok()?)?;
        Some((Arc::clone(object), position.strict_mul(STRIDE)))
    }

    fn ranges(&self) -> MutexGuard<'_, Ranges> {
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests wanted parts, as many as the limits allow.
    fn fetch_ahead(self: &Arc<Self>, ranges: &mut Ranges) -> io::Result<()> {
        while let Some(range) = ranges.next(self.options.in_flight, self.options.memory) {
            self.fetch(ranges, range)?;
        }
        Ok(())
    }

    fn fetch(self: &Arc<Self>, ranges: &mut Ranges, range: Range<u64>) -> io::Result<()> {
        let shared = Arc::clone(self);
        let start = range.start;
        let (object, base) = self.object_at(start).ok_or(io::ErrorKind::NotFound)?;
        let range = start.strict_sub(base)..range.end.strict_sub(base);
        let len = range.end.strict_sub(range.start);
        let memory = ranges.memory(len, self.options.part);
        let begun = Instant::now();
        let spawned = runtime::spawn(async move {
            let outcome = object.fetch(range, memory).await;
            let mut ranges = shared.ranges();
            ranges.arrive(start, outcome, begun.elapsed());
            // If no thread can be started, a reader that needs the part returns the error.
            let _ = shared.fetch_ahead(&mut ranges);
            drop(ranges);
            shared.arrived.notify_all();
        });
        spawned.map(drop).inspect_err(|error| {
            let error = io::Error::new(error.kind(), error.to_string());
            ranges.arrive(start, Err(error.into()), begun.elapsed());
        })
    }

    /// Fills `buf` from `offset` on, which lies within an object that ends at `limit`. A request is for at
    /// most `part` bytes.
    fn read(self: &Arc<Self>, offset: u64, limit: u64, part: u64, buf: &mut [u8]) -> Result<()> {
        let end = offset.strict_add(buf.len() as u64);
        let (mut at, mut rest) = (offset, buf);
        while !rest.is_empty() {
            let bytes = self.next(at..end, limit, part)?;
            let (now, later) = std::mem::take(&mut rest).split_at_mut(bytes.len());
            rest = later;
            at = at.strict_add(bytes.len() as u64);
            now.copy_from_slice(&bytes);
        }
        Ok(())
    }

    /// The first bytes of `wanted`, which is not empty: those that one part has.
    fn next(self: &Arc<Self>, wanted: Range<u64>, limit: u64, part: u64) -> Result<Bytes> {
        let Range { start: at, end } = wanted;
        let mut ranges = self.ranges();
        loop {
            match ranges.take(at, end.strict_sub(at)) {
                Found::Bytes(bytes) => {
                    self.fetch_ahead(&mut ranges)?;
                    return Ok(bytes);
                }
                Found::Failed(error) => return Err(error),
                Found::Nothing { until } => {
                    let wanted = at..end.min(until);
                    let range = rounded(wanted, until.min(limit));
                    let range = ranges.continued(range, until.min(limit));
                    ranges.want(range, part);
                    self.fetch_ahead(&mut ranges)?;
                }
                Found::Wait => {
                    if let Some(range) = ranges.demand(at, self.options.memory) {
                        self.fetch(&mut ranges, range)?;
                    }
                    if self.options.interrupt.is_some_and(|is_due| is_due()) {
                        return Err(Fault::Interrupted.into());
                    }
                    let waited = self.arrived.wait_timeout(ranges, PAUSE);
                    (ranges, _) = waited.unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

/// A small range, rounded up to the end of its block but not beyond `until`, so that the next small read
/// needs no request. A large range is returned unchanged.
fn rounded(wanted: Range<u64>, until: u64) -> Range<u64> {
    if wanted.end.strict_sub(wanted.start) >= SMALL.min(BLOCK) {
        return wanted;
    }
    let end = wanted.end.checked_next_multiple_of(BLOCK);
    wanted.start..end.map_or(until, |end| end.min(until))
}

/// An object that is being opened.
struct Asked {
    text: String,
    interrupt: Option<fn() -> bool>,
    answer: Receiver<Result<(Object, u64, Bytes)>>,
}

impl Asked {
    /// Sends the request.
    fn new(address: Address, options: &RemoteOptions) -> Result<Self> {
        let extension = address.name().rsplit_once('.').map(|(_, last)| last);
        let is_last = extension
            .is_some_and(|it| options.end_first.iter().any(|end| it.eq_ignore_ascii_case(end)));
        let end = if is_last { End::Last } else { End::First };
        let text = address.text.clone();
        let meter = options.meter.clone();
        let (_, answer) = runtime::begin(Object::open(address, end, FIRST, meter))?;
        Ok(Asked { text, interrupt: options.interrupt, answer })
    }

    /// Waits for the answer: the object, the offset of the bytes that came with it, and those bytes.
    fn opened(self) -> Result<(Object, u64, Bytes)> {
        let opened = runtime::receive(&self.answer, self.interrupt);
        let opened = opened.and_then(|opened| opened);
        opened.map_err(|error| error.with_path(self.text.as_ref()))
    }
}

impl Folder for Remote {
    fn open(&self, locations: &[&str]) -> Vec<Opened> {
        let boxed = |remote: Self| Box::new(remote) as Box<dyn Source>;
        let found = self.beside(locations).into_iter();
        found.map(|found| Ok(found?.map(boxed))).collect()
    }
}

impl Source for Remote {
    fn byte_len(&self) -> u64 {
        self.object.byte_len()
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn will_read(&self, span: Span) {
        self.will_read_all(&[span]);
    }

    fn will_read_all(&self, spans: &[Span]) {
        let mut ranges = self.shared.ranges();
        let (mut joined, mut gaps) = (None::<Range<u64>>, Vec::new());
        let (part, limit) = (self.shared.options.part, self.within(self.byte_len()));
        for span in spans {
            let within = |offset: u64| self.within(offset.min(self.byte_len()));
            let span = within(span.offset())..within(span.end());
            let joins = |whole: &Range<u64>| {
                let gap = span.start.checked_sub(whole.end);
                span.start >= whole.start && gap.is_none_or(|gap| gap <= GAP)
            };
            match &mut joined {
                Some(whole) if joins(whole) => {
                    gaps.push(whole.end..span.start);
                    whole.end = whole.end.max(span.end);
                }
                _ => {
                    let before = joined.replace(span);
                    ranges.want(before.unwrap_or_default(), part);
                }
            }
        }
        // The table of their chunk digests lies behind the values, beside the tables of others.
        let last = joined.filter(|last| !last.is_empty());
        ranges.want(last.map(|last| rounded(last, limit)).unwrap_or_default(), part);
        gaps.into_iter().for_each(|gap| ranges.skip(gap));
        // An error is ignored: the read that follows returns it.
        let _ = self.shared.fetch_ahead(&mut ranges);
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let span = Span::new(offset, buf.len() as u64);
        let span = span.filter(|span| span.end() <= self.byte_len());
        let span = span.ok_or(io::ErrorKind::UnexpectedEof)?;
        let limit = self.within(self.byte_len());
        // A read that overlaps the first bytes is of a manifest or a header. Values are announced.
        let goes_on = span.offset() < self.first.end && self.first.start < span.end();
        let part =
            if goes_on { self.shared.options.part.max(REST) } else { self.shared.options.part };
        let read = self.shared.read(self.within(offset), limit, part, buf);
        read.map_err(io::Error::from)
    }
}
