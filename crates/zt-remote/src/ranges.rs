//! Parts of an object that are in memory, on their way, or wanted later.
//!
//! ```text
//! object   |      part     |  part  |           |   part   |
//! state     here (64 KiB)    on its way           wanted
//! ```
//!
//! Parts never overlap. A reader that needs the bytes of a part waits for it; if there is no part, it makes
//! one. Parts whose bytes were all read stay for the next reader until the memory is needed: small ones, and
//! the last of the others. Some readers look at the first bytes of a tensor before they read all of it.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use zt::{Error, Result};

use crate::object::Bytes;

/// Bytes of the last parts that stay after they were read.
const KEPT: u64 = 16 << 20;

/// Parts below this length stay after they were read, because metadata is read in many small pieces.
///
/// Pays: not measured.
pub(crate) const SMALL: u64 = 256 << 10;

/// So many small parts count as one of the parts that may come at once. They are headers in many places, and
/// each round of them would take one delay of the store.
///
/// Pays: not measured.
const SMALL_AT_ONCE: usize = 4;

/// The longest range that is fetched because the bytes before it were read.
const LONGEST: u64 = 64 << 20;

/// One part of an object.
#[derive(Debug)]
struct FetchedPart {
    end: u64,
    state: State,
    read: Covered,
    /// When it was last used, counted in uses.
    used: u64,
}

impl FetchedPart {
    /// Whether each of its bytes was read at least once. `start` is its beginning.
    fn is_read(&self, start: u64) -> bool {
        let whole = start..self.end;
        matches!(&self.read.0[..], [only] if *only == whole)
    }
}

/// Ranges in order that do not touch. Readers take pieces in any order, and some bytes twice.
#[derive(Debug, Default)]
struct Covered(Vec<Range<u64>>);

impl Covered {
    fn add(&mut self, mut range: Range<u64>) {
        let first = self.0.partition_point(|known| known.end < range.start);
        let behind = self.0.partition_point(|known| known.start <= range.end);
        for known in self.0.get(first..behind).unwrap_or_default() {
            range = range.start.min(known.start)..range.end.max(known.end);
        }
        self.0.splice(first..behind.max(first), [range]);
    }
}

#[derive(Debug)]
enum State {
    /// No request was sent yet.
    Wanted,
    /// A request was sent.
    Coming,
    Here(Bytes),
    Failed(Error),
}

/// What a reader finds at an offset.
pub(crate) enum Found {
    /// Bytes from the offset on.
    Bytes(Bytes),
    /// A part that is on its way, or that must be requested first.
    Wait,
    /// No part, up to the next one.
    Nothing { until: u64 },
    /// The transfer failed.
    Failed(Error),
}

/// The parts of one object.
#[derive(Debug, Default)]
pub(crate) struct Ranges {
    parts: BTreeMap<u64, FetchedPart>,
    /// Beginnings of the parts that are wanted, in the order in which they will be read.
    wanted: VecDeque<u64>,
    /// Bytes of the parts that are here or coming.
    held: u64,
    /// Requests that were sent: 1 for a small one, [`SMALL_AT_ONCE`] for another.
    coming: usize,
    /// The last range that was requested without an announcement.
    unannounced: Range<u64>,
    uses: u64,
    /// The last failure, and until when nothing else is requested.
    given_up: Option<(Instant, Error)>,
    /// Beginnings of the last parts that were read whole, and their bytes.
    read: VecDeque<u64>,
    read_len: u64,
    /// The memory of parts that were read.
    spare: Vec<BytesMut>,
}

impl Ranges {
    /// Adds a part whose bytes are here.
    pub(crate) fn keep(&mut self, offset: u64, bytes: Bytes) {
        let len = bytes.len() as u64;
        let (Some(end), 1..) = (offset.checked_add(len), len) else {
            return;
        };
        self.held = self.held.strict_add(len);
        let part = FetchedPart {
            end,
            state: State::Here(bytes),
            read: Covered::default(),
            used: self.uses,
        };
        self.parts.insert(offset, part);
    }

    /// Adds wanted parts for the bytes of `range` that are in no part yet, each of at most `part_len` bytes.
    pub(crate) fn want(&mut self, range: Range<u64>, part_len: u64) {
        let mut at = range.start;
        while at < range.end {
            if let Some((_, part)) = self.part_at(at) {
                at = part.end;
                continue;
            }
            let next = self.parts.range(at..).next().map(|(start, _)| *start);
            let until = next.map_or(range.end, |next| next.min(range.end));
            let end = at.saturating_add(part_len).min(until);
            let part = FetchedPart {
                end,
                state: State::Wanted,
                read: Covered::default(),
                used: self.uses,
            };
            self.parts.insert(at, part);
            self.wanted.push_back(at);
            at = end;
        }
    }

    /// Counts the bytes of `range` as read: they come only because both sides of them are wanted. Otherwise
    /// their parts would never be read whole, and would stay.
    pub(crate) fn skip(&mut self, range: Range<u64>) {
        let mut at = range.start;
        while at < range.end
            && let Some((start, part)) = self.part_at(at)
        {
            let end = part.end.min(range.end);
            if let Some(part) = self.parts.get_mut(&start) {
                part.read.add(at..end);
            }
            at = end;
        }
    }

    /// A range that no caller has announced, and that ends at most at `until`. If it begins where the last
    /// one ended, it becomes twice as long: some readers do not know how much they need.
    pub(crate) fn continued(&mut self, mut range: Range<u64>, until: u64) -> Range<u64> {
        let last = &self.unannounced;
        if range.start == last.end {
            let twice = last.end.strict_sub(last.start).min(LONGEST / 2).strict_mul(2);
            let end = range.start.saturating_add(twice).min(until);
            range.end = range.end.max(end);
        }
        self.unannounced = range.clone();
        range
    }

    /// The next part to request, if fewer than `most` are coming and it fits into `memory`. Its state
    /// becomes [`State::Coming`].
    pub(crate) fn next(&mut self, most: usize, memory: u64) -> Option<Range<u64>> {
        while self.gave_up().is_none() {
            let start = *self.wanted.front()?;
            let part = self.parts.get(&start);
            let Some(part) = part.filter(|part| matches!(part.state, State::Wanted)) else {
                self.wanted.pop_front();
                continue;
            };
            let len = part.end.strict_sub(start);
            // A limit may be the largest number.
            let is_full = self.coming.strict_add(weight(len)) > most.saturating_mul(SMALL_AT_ONCE);
            if is_full || self.held.strict_add(len) > memory && self.coming > 0 {
                return None;
            }
            self.make_room(len, memory, u64::MAX);
            if self.held.strict_add(len) > memory && self.held > 0 {
                return None;
            }
            return self.ask(start);
        }
        None
    }

    /// Why nothing is requested now: a request failed, and the time that it took has not passed again. A
    /// server that has stopped answering would hold each further reader as long as the first.
    fn gave_up(&self) -> Option<&Error> {
        let (until, error) = self.given_up.as_ref()?;
        (Instant::now() < *until).then_some(error)
    }

    /// The part at `offset`, if it was not requested yet. A reader waits for it, so it may exceed `memory`.
    pub(crate) fn demand(&mut self, offset: u64, memory: u64) -> Option<Range<u64>> {
        let (start, part) = self.part_at(offset)?;
        if !matches!(part.state, State::Wanted) {
            return None;
        }
        let len = part.end.strict_sub(start);
        // Readers in several places may together hold twice as much.
        self.make_room(len, memory, memory.saturating_mul(2));
        self.ask(start)
    }

    fn ask(&mut self, start: u64) -> Option<Range<u64>> {
        let part = self.parts.get_mut(&start)?;
        part.state = State::Coming;
        let range = start..part.end;
        let len = range.end.strict_sub(start);
        self.coming = self.coming.strict_add(weight(len));
        self.held = self.held.strict_add(len);
        Some(range)
    }

    /// Drops parts, the least recently used first, until `len` more bytes fit into `memory`. Parts that were
    /// not read yet are dropped only if the bytes would otherwise exceed `most`.
    fn make_room(&mut self, len: u64, memory: u64, most: u64) {
        while self.held.strict_add(len) > memory {
            let parts = self.parts.iter();
            let here = parts.filter(|(_, part)| matches!(part.state, State::Here(_)));
            let oldest = here.min_by_key(|(start, part)| (!part.is_read(**start), part.used));
            let Some((&start, part)) = oldest else { return };
            if !part.is_read(start) && self.held.strict_add(len) <= most {
                return;
            }
            self.remove(start);
        }
    }

    /// Sets the outcome of the request for the part that begins at `start`, which took this time.
    pub(crate) fn arrive(&mut self, start: u64, outcome: Result<Bytes>, took: Duration) {
        let Some(part) = self.parts.get_mut(&start) else {
            return;
        };
        let len = part.end.strict_sub(start);
        self.coming = self.coming.strict_sub(weight(len));
        match outcome {
            Ok(bytes) => part.state = State::Here(bytes),
            Err(error) => {
                self.held = self.held.strict_sub(len);
                let until = Instant::now().checked_add(took);
                self.given_up = until.map(|until| (until, error.clone()));
                part.state = State::Failed(error);
            }
        }
    }

    /// Takes at most `len` bytes at `offset`, which count as read.
    pub(crate) fn take(&mut self, offset: u64, len: u64) -> Found {
        self.uses = self.uses.strict_add(1);
        let uses = self.uses;
        let Some(start) = self.part_at(offset).map(|(start, _)| start) else {
            let next = self.parts.range(offset..).next();
            let until = next.map_or(u64::MAX, |(start, _)| *start);
            let gave_up = self.gave_up().cloned().map(Found::Failed);
            return gave_up.unwrap_or(Found::Nothing { until });
        };
        let gave_up = self.gave_up().cloned();
        let Some(part) = self.parts.get_mut(&start) else {
            return Found::Wait;
        };
        part.used = uses;
        match &part.state {
            State::Wanted => gave_up.map_or(Found::Wait, Found::Failed),
            State::Coming => Found::Wait,
            State::Failed(error) => {
                let error = error.clone();
                self.parts.remove(&start);
                Found::Failed(error)
            }
            State::Here(bytes) => {
                let from = offset.strict_sub(start);
                let to = from.strict_add(len).min(bytes.len() as u64);
                let taken = match (usize::try_from(from), usize::try_from(to)) {
                    (Ok(from), Ok(to)) if from <= to => bytes.slice(from..to),
                    _ => Bytes::new(),
                };
                let was_read = part.is_read(start);
                part.read.add(offset..offset.strict_add(taken.len() as u64));
                let len = part.end.strict_sub(start);
                if part.is_read(start) && !was_read && len >= SMALL {
                    self.retire(start, len);
                }
                Found::Bytes(taken)
            }
        }
    }

    /// An empty buffer for a part of this length. It may have held another before, if both are nearly as long as
    /// `usual`. For a short part, the memory of another is freed, so that both together are not more.
    pub(crate) fn memory(&mut self, len: u64, usual: u64) -> BytesMut {
        let mut memory = self.spare.pop().unwrap_or_default();
        if len > usual || len < usual.strict_sub(usual / 8) {
            return BytesMut::new();
        }
        memory.reserve(usize::try_from(usual).unwrap_or_default());
        memory
    }

    /// Drops parts that were read before the one at `start`, which was read now.
    fn retire(&mut self, start: u64, len: u64) {
        self.read.push_back(start);
        self.read_len = self.read_len.strict_add(len);
        while self.read_len > KEPT
            && let Some(oldest) = self.read.front()
        {
            self.remove(*oldest);
        }
    }

    /// Drops a part that is here. Its memory is kept while a reader goes on, which announces more parts before
    /// it has read all: to touch fresh memory would take as long as to copy the bytes.
    fn remove(&mut self, start: u64) {
        let Some(part) = self.parts.remove(&start) else {
            return;
        };
        let len = part.end.strict_sub(start);
        self.held = self.held.strict_sub(len);
        if let Some(at) = self.read.iter().position(|read| *read == start) {
            self.read.remove(at);
            self.read_len = self.read_len.strict_sub(len);
        }
        if self.held.strict_sub(self.read_len) < KEPT {
            self.spare.clear();
        } else if let State::Here(bytes) = part.state
            && let Ok(mut memory) = bytes.try_into_mut()
        {
            memory.clear();
            self.spare.push(memory);
        }
    }

    /// The part that holds the byte at `offset`, and its beginning.
    fn part_at(&self, offset: u64) -> Option<(u64, &FetchedPart)> {
        let (start, part) = self.parts.range(..=offset).next_back()?;
        (offset < part.end).then_some((*start, part))
    }
}

/// How much of the limit of requests a part of this length takes.
const fn weight(len: u64) -> usize {
    if len < SMALL { 1 } else { SMALL_AT_ONCE }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, reason = "tests")]
mod tests {
    use std::time::Duration;

    use super::{Bytes, Covered, Found, KEPT, Ranges, SMALL};

    #[test]
    fn ranges_that_touch_become_one() {
        let mut covered = Covered::default();
        for range in [4..6, 0..1, 8..9, 1..2, 5..8] {
            covered.add(range);
        }
        assert_eq!(covered.0, [0..2, 4..9]);
        covered.add(2..4);
        assert_eq!(covered.0.first(), Some(&(0..9)));
    }

    #[test]
    fn the_last_large_parts_stay_when_all_of_them_was_read() {
        let mut ranges = Ranges::default();
        let part = usize::try_from(KEPT / 2).unwrap();
        for start in [0, KEPT / 2, KEPT] {
            ranges.keep(start, Bytes::from(vec![1; part]));
        }
        // The end first, and twice: so does a reader of a table at the end.
        for start in [0, KEPT / 2, KEPT] {
            for (offset, len) in [(SMALL, KEPT), (SMALL, 10), (0, SMALL)] {
                assert!(matches!(ranges.take(start + offset, len), Found::Bytes(_)));
            }
        }
        let first = ranges.take(0, 1);
        assert!(matches!(first, Found::Nothing { until } if until == KEPT / 2));
        assert!(matches!(ranges.take(KEPT / 2, 1), Found::Bytes(_)));
        assert_eq!((ranges.held, ranges.read_len), (KEPT, KEPT));
        // They go when the memory is needed.
        ranges.want(2 * KEPT..3 * KEPT, KEPT);
        assert_eq!(ranges.next(1, KEPT), Some(2 * KEPT..3 * KEPT));
        assert_eq!((ranges.held, ranges.read_len), (KEPT, 0));
    }

    #[test]
    fn a_range_that_goes_on_becomes_longer() {
        let mut ranges = Ranges::default();
        assert_eq!(ranges.continued(100..110, 1000), 100..110);
        assert_eq!(ranges.continued(110..115, 1000), 110..130);
        assert_eq!(ranges.continued(130..140, 150), 130..150);
        assert_eq!(ranges.continued(200..210, 1000), 200..210);
    }

    #[test]
    fn wanted_parts_fill_the_gaps_and_come_in_order() {
        let mut ranges = Ranges::default();
        ranges.keep(20, Bytes::from_static(&[0; 10]));
        ranges.want(0..50, 15);
        let mut coming = Vec::new();
        while let Some(range) = ranges.next(9, 1000) {
            coming.push(range);
        }
        assert_eq!(coming, [0..15, 15..20, 30..45, 45..50]);
    }

    /// Between two tensors of a `.zt` there is padding, which nobody reads.
    #[test]
    fn a_part_goes_when_all_but_its_gaps_were_read() {
        let len = 2 * KEPT;
        let mut ranges = Ranges::default();
        ranges.want(0..len, KEPT);
        ranges.skip(KEPT - 10..KEPT + 10);
        while let Some(range) = ranges.next(9, len) {
            let bytes = Bytes::from(vec![1; usize::try_from(KEPT).unwrap()]);
            ranges.arrive(range.start, Ok(bytes), Duration::ZERO);
        }
        ranges.take(0, KEPT - 10);
        ranges.take(KEPT + 10, KEPT);
        assert_eq!((ranges.held, ranges.read_len), (KEPT, KEPT));
    }

    #[test]
    fn four_small_requests_count_as_one() {
        let mut ranges = Ranges::default();
        for at in 0..9 {
            ranges.want(at * SMALL..at * SMALL + 1, 1);
        }
        let all = KEPT;
        let small = std::iter::from_fn(|| ranges.next(2, all)).count();
        assert_eq!(small, 8);
        ranges.arrive(0, Ok(Bytes::from_static(&[0])), Duration::ZERO);
        assert_eq!(ranges.next(2, all), Some(8 * SMALL..8 * SMALL + 1));
        ranges.want(10 * SMALL..11 * SMALL, SMALL);
        assert_eq!(ranges.next(2, all), None);
        assert_eq!(ranges.next(3, all), Some(10 * SMALL..11 * SMALL));
    }

    #[test]
    fn memory_is_kept_while_parts_that_came_are_not_read() {
        let mut ranges = Ranges::default();
        ranges.want(0..3 * KEPT, KEPT);
        while let Some(range) = ranges.next(9, 3 * KEPT) {
            let bytes = Bytes::from(vec![1; usize::try_from(KEPT).unwrap()]);
            ranges.arrive(range.start, Ok(bytes), Duration::ZERO);
        }
        for (part, kept) in [(0, 0), (1, 1), (2, 0)] {
            ranges.take(part * KEPT, KEPT);
            assert_eq!(ranges.spare.len(), kept);
        }
    }

    #[test]
    fn memory_bounds_what_comes_ahead_and_not_what_is_demanded() {
        let mut ranges = Ranges::default();
        ranges.want(0..100, 10);
        assert_eq!(ranges.next(9, 25), Some(0..10));
        assert_eq!(ranges.next(9, 25), Some(10..20));
        assert_eq!(ranges.next(9, 25), None);
        assert_eq!(ranges.demand(95, 25), Some(90..100));
        assert_eq!(ranges.demand(95, 25), None);
    }
}
