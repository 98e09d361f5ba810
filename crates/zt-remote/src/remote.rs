//! A remote file as a source of bytes.
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use std::io;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use zt::{Error, Result, Source, Span};

use crate::address::Address;
use crate::object::{End, Object};
use crate::options::RemoteOptions;
use crate::ranges::{Found, Ranges, SMALL};
use crate::runtime;
use crate::traffic::Traffic;

/// What the first request fetches. Most manifests and headers fit in.
const FIRST: u64 = 256 << 10;

/// Where a small read falls, this many bytes are fetched, from a multiple of this many on.
const BLOCK: u64 = 64 << 10;

/// Ranges with at most this many bytes between them are one request.
const GAP: u64 = 64 << 10;

/// Kinds whose readers begin at the end, by the extension of a name.
const FROM_THE_END: &[&str] = &["zt", "npz", "pt", "pth", "bin", "ckpt", "keras", "zip"];

/// An object of a store, read by position. It serves any number of threads.
///
/// The version of the object is fixed when it is opened. If the object is replaced while it is open,
/// reads fail with the code `changed`, and never return bytes of both.
///
/// Opening takes one request, which fetches 256 KiB of the end where the manifest is expected by the
/// name. Reads of more than 8 MiB go out as several requests at once. Blocking calls work on any
/// thread, also within an asynchronous runtime.
///
/// ```no_run
/// let remote = zt_remote::open("s3://models/llama/model.zt")?;
/// let file = zt::OpenOptions::new().open_source(remote)?;
/// println!("{} tensors", file.len());
/// # Ok::<(), zt::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Remote(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    object: Object,
    options: RemoteOptions,
    ranges: Mutex<Ranges>,
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

    /// Opens the object `name` in the folder of this one.
    ///
    /// # Errors
    ///
    /// As [`crate::open`]; code `path` if `name` is no plain file name: a file must not make its reader
    /// fetch another address.
    pub fn beside(&self, name: &str) -> Result<Self> {
        let is_plain = !matches!(name, "" | "." | "..") && !name.contains(['/', '\\', ':', '\0']);
        if !is_plain {
            return Err(crate::error::Fault::NoFile.into());
        }
        let address = self.0.object.address().beside(name);
        Self::at(address, &self.0.options)
    }

    fn at(address: Address, options: &RemoteOptions) -> Result<Self> {
        let text = address.text.clone();
        let extension = address.name().rsplit_once('.').map(|(_, last)| last);
        let extension = extension.unwrap_or_default().to_ascii_lowercase();
        let end = match FROM_THE_END.contains(&&*extension) {
            true => End::Last,
            false => End::First,
        };
        let opened = runtime::wait(Object::open(address, end, FIRST));
        let opened = opened.map_err(Error::from).and_then(|opened| opened);
        let (object, offset, bytes) = opened.map_err(|error| error.with_path(text.as_ref()))?;
        let mut ranges = Ranges::default();
        ranges.keep(offset, bytes);
        Ok(Remote(Arc::new(Shared {
            object,
            options: options.clone(),
            ranges: Mutex::new(ranges),
            arrived: Condvar::new(),
        })))
    }

    /// The URL, without a query and without a password.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.0.object.address().text
    }

    /// Requests and bytes so far.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        self.0.object.meter().read()
    }
}

impl Shared {
    fn ranges(&self) -> MutexGuard<'_, Ranges> {
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for wanted parts, as many as may be under way.
    fn fetch_ahead(self: &Arc<Self>, ranges: &mut Ranges) -> io::Result<()> {
        while let Some(range) = ranges.next(self.options.in_flight, self.options.memory) {
            self.fetch(ranges, range)?;
        }
        Ok(())
    }

    fn fetch(self: &Arc<Self>, ranges: &mut Ranges, range: Range<u64>) -> io::Result<()> {
        let shared = Arc::clone(self);
        let start = range.start;
        let spawned = runtime::spawn(async move {
            let outcome = shared.object.fetch(range).await;
            let mut ranges = shared.ranges();
            ranges.arrive(start, outcome);
            // If no thread can be started, a reader that needs the part says so.
            let _ = shared.fetch_ahead(&mut ranges);
            drop(ranges);
            shared.arrived.notify_all();
        });
        spawned.inspect_err(|error| {
            let error = io::Error::new(error.kind(), error.to_string());
            ranges.arrive(start, Err(error.into()));
        })
    }

    /// Fills `buf`, which lies within the object.
    fn read(self: &Arc<Self>, offset: u64, buf: &mut [u8]) -> Result<()> {
        let end = offset.saturating_add(buf.len() as u64);
        let (mut at, mut rest) = (offset, buf);
        let mut ranges = self.ranges();
        while !rest.is_empty() {
            match ranges.take(at, rest.len() as u64) {
                Found::Bytes(bytes) => {
                    let (now, later) = std::mem::take(&mut rest).split_at_mut(bytes.len());
                    rest = later;
                    at = at.saturating_add(bytes.len() as u64);
                    self.fetch_ahead(&mut ranges)?;
                    drop(ranges);
                    now.copy_from_slice(&bytes);
                    ranges = self.ranges();
                }
                Found::Failed(error) => return Err(error),
                Found::Nothing { until } => {
                    let wanted = at..end.min(until);
                    let range = self.rounded(wanted, until);
                    ranges.want(range, self.options.part);
                    self.fetch_ahead(&mut ranges)?;
                }
                Found::Wait => {
                    if let Some(range) = ranges.demand(at, self.options.memory) {
                        self.fetch(&mut ranges, range)?;
                    }
                    let waited = self.arrived.wait(ranges);
                    ranges = waited.unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
        Ok(())
    }

    /// A small range becomes the blocks around it, so that the next small read needs no request. A
    /// large one is exactly what its reader needs.
    fn rounded(&self, wanted: Range<u64>, until: u64) -> Range<u64> {
        if wanted.end.saturating_sub(wanted.start) >= SMALL.min(BLOCK) {
            return wanted;
        }
        let blocks = wanted.end.div_ceil(BLOCK);
        let end = blocks.saturating_mul(BLOCK);
        wanted.start..end.min(until).min(self.object.byte_len())
    }
}

impl Source for Remote {
    fn byte_len(&self) -> u64 {
        self.0.object.byte_len()
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn will_read(&self, span: Span) {
        self.will_read_all(&[span]);
    }

    fn will_read_all(&self, spans: &[Span]) {
        let mut ranges = self.0.ranges();
        let mut joined: Option<Range<u64>> = None;
        let part = self.0.options.part;
        for span in spans {
            let span = span.offset()..span.end().min(self.byte_len());
            let joins = |whole: &Range<u64>| {
                let gap = span.start.checked_sub(whole.end);
                span.start >= whole.start && gap.is_none_or(|gap| gap <= GAP)
            };
            match &mut joined {
                Some(whole) if joins(whole) => whole.end = whole.end.max(span.end),
                _ => {
                    let before = joined.replace(span);
                    ranges.want(before.unwrap_or_default(), part);
                }
            }
        }
        ranges.want(joined.unwrap_or_default(), part);
        // A hint that fails changes nothing: the read that follows has the error.
        let _ = self.0.fetch_ahead(&mut ranges);
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let span = Span::new(offset, buf.len() as u64);
        if span.is_none_or(|span| span.end() > self.byte_len()) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.0.read(offset, buf).map_err(io::Error::from)
    }
}
