//! Many tensors and slices of tensors, read ahead in the order of the file within a budget of memory.

use std::collections::VecDeque;
use std::{iter, ptr};

use zt_container::{Encoding, Source, Span};
use zt_formats::{Dense, Places, Slice, dense_byte_len};

use crate::cores::announce::announce_all;
use crate::cores::work::{Task, Workers};
use crate::error::{Error, Result};
use crate::file::File;
use crate::file::tensor::{Located, Tensor};
use crate::read::part::PartReader;

/// Values that are read ahead of their use, unless [`Plan::memory`] says otherwise.
const MEMORY: u64 = 256 << 20;

/// For a shorter value, a read past the page cache takes longer than what the system reads ahead.
///
/// Pays: a plan of 2,000 tensors of 24 KB in the page cache takes 0.18 of the time that it takes with no least length,
/// and 0.38 of the CPU time.
const LEAST_PAST_CACHE: u64 = 64 << 10;

/// Tensors and slices that will be read. Made by [`File::plan`], which has an example.
#[must_use = "a plan reads nothing before `for_each`"]
#[derive(Debug)]
pub struct Plan<'f> {
    /// In the order of the files.
    items: Vec<Item<'f>>,
    memory: u64,
    threads: Option<usize>,
    page_cache: bool,
}

#[derive(Debug)]
struct Item<'f> {
    /// The place among the wanted ones.
    at: usize,
    tensor: Tensor<'f>,
    slices: Vec<Slice>,
    /// What is read for certain.
    stored: Vec<Stored<'f>>,
    /// The length of the value.
    byte_len: u64,
}

/// Bytes of a source.
type Stored<'f> = (&'f dyn Source, Span);

impl File {
    /// A plan to read the dense values of many tensors, or slices of them, in bounded memory. A tensor
    /// without slices is read whole. The tensors may belong to several files. Nothing is read yet.
    ///
    /// ```
    /// # use zt::{Dense, File, Slice, Writer};
    /// # let mut bytes = Vec::new();
    /// # let mut writer = Writer::new(&mut bytes)?;
    /// # writer.add("a", &Dense::from_slice(&[3, 2], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?)?;
    /// # writer.add("b", &Dense::from_slice(&[1], &[7.0f32])?)?;
    /// # writer.finish()?;
    /// # let file = File::from_bytes(bytes)?;
    /// let first_rows = vec![Slice::from(..2)];
    /// let wanted = [(file.tensor("b")?, vec![]), (file.tensor("a")?, first_rows)];
    /// file.plan(wanted).memory(64 << 20).for_each(|at, dense| {
    ///     println!("{at}: {:?}", dense?.shape()); // 1: [2, 2], then 0: [1]
    ///     Ok::<(), zt::Error>(())
    /// })?;
    /// # Ok::<(), zt::Error>(())
    /// ```
    pub fn plan<'f>(
        &'f self,
        wanted: impl IntoIterator<Item = (Tensor<'f>, Vec<Slice>)>,
    ) -> Plan<'f> {
        let items = wanted.into_iter().enumerate();
        let mut items: Vec<_> =
            items.map(|(at, (tensor, slices))| Item::new(at, tensor, slices)).collect();
        items.sort_by_key(|item| {
            let first = item.stored.first();
            first.map(|(source, span)| (ptr::from_ref(*source).addr(), span.offset()))
        });
        Plan { items, memory: MEMORY, threads: None, page_cache: true }
    }
}

impl Plan<'_> {
    /// The most bytes of values that are read or being read, and were not taken yet. One value is read
    /// whatever its length. The default is 256 MiB.
    pub const fn memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }

    /// How many threads read and decode, the caller's among them. The default is all cores. A disk or a
    /// store that answers many requests at a time may want more.
    pub fn threads(mut self, threads: impl Into<Option<usize>>) -> Self {
        self.threads = threads.into();
        self
    }

    /// Whether the page cache of the system takes part, as it does by default. With `false`, values of at least
    /// 64 KiB are read from the disk past it, also where it holds them: for files that are read once, beside
    /// others that are used often. Such reads take less of the processor. Has an effect on Linux, on files
    /// that are read by position, where the file system has such reads (`O_DIRECT`).
    pub const fn page_cache(mut self, used: bool) -> Self {
        self.page_cache = used;
        self
    }

    /// Reads all values, and calls `take` with each of them in the order of the file: its place among
    /// the wanted ones, and the value in memory of its own, as [`Tensor::to_dense`] and
    /// [`Tensor::slice`] give it. The next values are read on all cores meanwhile.
    ///
    /// A value that cannot be read is an error in its place, and the others are read.
    ///
    /// # Errors
    ///
    /// Those of `take`, after which no further value is begun.
    pub fn for_each<E: From<Error>>(
        &self,
        mut take: impl FnMut(usize, Result<Dense<'static>>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut stored = self.items.iter().flat_map(|item| &item.stored);
        let is_in_turn = stored.any(|(source, _)| source.is_sequential());
        let workers = Workers::apart(if is_in_turn { Some(1) } else { self.threads });
        let mut take = |begun: Begun<'_, '_>| {
            let value = begun.value.wait().ok_or_else(Error::out_of_order)?;
            take(begun.item.at, value)
        };
        workers.scope(usize::MAX, |scope| {
            let mut ahead = VecDeque::<Begun<'_, '_>>::new();
            let (mut held, mut announced) = (0u64, 0);
            // One for each thread, so that the disk has work while they decode: all at once are slower.
            let next = self.items.iter().skip(workers.threads());
            let next = next.map(Some).chain(iter::repeat(None));
            for (place, (item, next)) in self.items.iter().zip(next).enumerate() {
                while let Some(oldest) = ahead.pop_front() {
                    let has_room = held.saturating_add(item.byte_len) <= self.memory;
                    if has_room && !oldest.value.is_done() {
                        ahead.push_front(oldest);
                        break;
                    }
                    held = held.saturating_sub(oldest.item.byte_len);
                    take(oldest)?;
                }
                if place == announced {
                    announced = self.announce_from(place);
                }
                let value = scope.start(move || {
                    if !self.page_cache && item.byte_len >= LEAST_PAST_CACHE {
                        return item.read(item.tensor.past_cache());
                    }
                    next.inspect(|next| next.announce());
                    item.read(item.tensor)
                });
                ahead.push_back(Begun { item, value });
                held = held.saturating_add(item.byte_len);
            }
            ahead.into_iter().try_for_each(take)
        })
    }
}

impl Plan<'_> {
    /// Announces the next values to remote sources, which hold what they have fetched until it is read: half
    /// of the budget, but at least one value. Returns the place behind them.
    fn announce_from(&self, place: usize) -> usize {
        let mut left = (self.memory / 2).max(1);
        let next = self.items.iter().skip(place).take_while(|item| {
            let is_next = left > 0;
            left = left.saturating_sub(item.byte_len);
            is_next
        });
        let next: Vec<_> = next.collect();
        let stored: Vec<_> = next.iter().flat_map(|item| &item.stored).collect();
        announce_all(&stored, |stored| **stored);
        let parts = next.iter().filter(|item| !item.slices.is_empty() && item.tensor.is_remote());
        let needs = parts.filter_map(|item| {
            item.tensor.needs(&Places::resolve(&item.slices, item.tensor.shape()).ok()?)
        });
        // An error is the error of the read that follows.
        let _ = PartReader::announced(&needs.flatten().collect::<Vec<_>>());
        place.strict_add(next.len())
    }
}

/// A value that is read.
struct Begun<'i, 'f> {
    item: &'i Item<'f>,
    value: Task<'i, Result<Dense<'static>>>,
}

impl<'f> Item<'f> {
    fn new(at: usize, tensor: Tensor<'f>, slices: Vec<Slice>) -> Self {
        // Slices that do not fit are an error when they are read.
        let places = Places::resolve(&slices, tensor.shape()).unwrap_or_default();
        let counts: Vec<u64> = places.iter().map(Places::count).collect();
        let value_len = tensor.dense_type().map_or(0, |(dtype, logical_type)| {
            tensor.value_len(dtype, logical_type.as_deref()) as u64
        });
        Item {
            at,
            byte_len: dense_byte_len(&counts, value_len).unwrap_or(u64::MAX),
            stored: stored(&tensor, &places),
            tensor,
            slices,
        }
    }

    /// Asks the system to fetch what will be read.
    fn announce(&self) {
        for (source, span) in &self.stored {
            source.will_read(*span);
        }
    }

    fn read(&self, tensor: Tensor<'_>) -> Result<Dense<'static>> {
        if self.slices.is_empty() {
            return tensor.to_dense();
        }
        tensor.slice(&self.slices)
    }
}

/// All components of a whole tensor, or the rows around a part of raw values. For any other part only the
/// beginnings of its components: what is read of them is not known before.
fn stored<'f>(tensor: &Tensor<'f>, places: &[Places]) -> Vec<Stored<'f>> {
    let is_whole = |places: &Places| places.hull() == (0..places.dimension());
    let is_whole = places.iter().all(is_whole);
    let is_one = tensor.located().count() == 1;
    let of_part = |part: Located<'f>| {
        let blob = &part.component.blob;
        let is_raw = is_one && blob.encoding == Encoding::Raw;
        let rows = is_raw.then(|| rows_of(blob.span, places)).flatten();
        let begin = Span::new(blob.span.offset(), 0);
        let wanted = Some(blob.span).filter(|_| is_whole).or(rows).or(begin)?;
        Some((tensor.source(part), wanted))
    };
    tensor.located().filter_map(of_part).collect()
}

/// The rows of the first dimension around a part, if all rows are equally long.
fn rows_of(span: Span, places: &[Places]) -> Option<Span> {
    let first = places.first()?;
    let row_len = span.byte_len().checked_div(first.dimension())?;
    if row_len.checked_mul(first.dimension())? != span.byte_len() {
        return None;
    }
    let rows = first.hull();
    let start = span.offset().checked_add(rows.start.checked_mul(row_len)?)?;
    let end = span.offset().checked_add(rows.end.checked_mul(row_len)?)?;
    Span::between(start, end)
}
