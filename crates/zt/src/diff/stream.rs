//! The comparison of two arrays, read side by side, piece by piece.

use zt_formats::{Elements, Registry, check_bools_from};
use zt_manifest::{DType, Text};

use super::Side;
use super::number::Values;
use crate::cores::parallel;
use crate::cores::progress::Gauge;
use crate::cores::scratch::Scratch;
use crate::error::{Error, Result};
use crate::file::tensor::ComponentReader;
use crate::read::dense_reader::DenseReader;
use crate::read::raw_value::{RawValue, Sum};
use zt_container::memory::resize;

/// Bytes of the longer side that are in memory at a time.
const PIECE: usize = 8 << 20;

/// Values that one core compares at a time.
const STRETCH: usize = 64 << 10;

pub(super) enum Reader<'f> {
    Component(ComponentReader<'f>),
    Dense(DenseReader<'f>),
}

impl Reader<'_> {
    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        match self {
            Reader::Component(reader) => reader.read_elements(out),
            Reader::Dense(reader) => reader.read_elements(out),
        }
    }
}

/// What is known of some pairs of values.
pub(super) trait Joined: Default + Send {
    /// Adds what is known of the next pairs.
    fn join(&mut self, next: Self);
}

/// The values of one side.
pub(super) struct Stream<'f> {
    pub(super) reader: Reader<'f>,
    /// The same values, if they can be read in stretches.
    pub(super) raw: Option<RawValue<'f>>,
    pub(super) registry: &'f Registry,
    pub(super) dtype: DType,
    pub(super) logical_type: Option<Text>,
    pub(super) value_len: usize,
    /// The length of all values in bytes; more if it is not known.
    pub(super) byte_len: u64,
}

impl Stream<'_> {
    /// Fills `piece` with whole values. It is full except at the end.
    fn fill(&mut self, piece: &mut [u8]) -> Result<usize> {
        let mut filled = 0;
        while let Some(room) = piece.get_mut(filled..).filter(|room| !room.is_empty()) {
            match self.reader.read(room)? {
                0 => break,
                len => filled += len,
            }
        }
        Ok(filled)
    }

    /// Refuses invalid bools, as reading does. `first` values were read before.
    fn check(&self, first: u64, bytes: &[u8]) -> Result<()> {
        match self.dtype {
            DType::Bool => Ok(check_bools_from(first, bytes)?),
            _ => Ok(()),
        }
    }

    fn values<'v>(&'v self, bytes: &'v [u8]) -> Values<'v> {
        let mut elements = Elements::new(self.dtype, bytes);
        elements.logical_type.clone_from(&self.logical_type);
        Values { elements, value_len: self.value_len, registry: self.registry }
    }
}

/// Compares two arrays to their ends. `compare` gets some pairs of values and the place of the first. An error
/// comes with the side that cannot be read.
pub(super) fn for_pairs<T: Joined>(
    mut a: Stream<'_>,
    mut b: Stream<'_>,
    gauge: &Gauge<'_>,
    compare: impl Fn(&Values<'_>, &Values<'_>, u64) -> Result<T, (Side, Error)> + Sync,
) -> Result<T, (Side, Error)> {
    let longest = a.value_len.max(b.value_len).max(1);
    let count = |stream: &Stream<'_>| stream.byte_len / stream.value_len.max(1) as u64;
    if let (Some(raw_a), Some(raw_b)) = (&a.raw, &b.raw)
        && count(&a) == count(&b)
    {
        return for_raw_pairs([(&a, raw_a), (&b, raw_b)], gauge, &compare);
    }
    // One more than the number of values, so that one read also finds the end.
    let all = count(&a).max(count(&b)).saturating_add(1);
    let most = PIECE / longest;
    let values = usize::try_from(all).map_or(most, |all| all.min(most));
    let values = values.max(1);
    // Small arrays are compared in parallel with others, each on one core.
    let is_alone = values == most;
    let piece = |stream: &Stream<'_>| {
        let mut piece = Vec::new();
        let byte_len = (values * stream.value_len) as u64;
        resize(&mut piece, byte_len).map(|()| piece)
    };
    let mut piece_a = piece(&a).map_err(|error| (Side::A, error.into()))?;
    let mut piece_b = piece(&b).map_err(|error| (Side::B, error.into()))?;
    let (mut found, mut first) = (T::default(), 0u64);
    loop {
        let (len_a, len_b) = if is_alone {
            parallel::join(|| a.fill(&mut piece_a), || b.fill(&mut piece_b))
        } else {
            (a.fill(&mut piece_a), b.fill(&mut piece_b))
        };
        let len_a = len_a.map_err(|error| (Side::A, error))?;
        let len_b = len_b.map_err(|error| (Side::B, error))?;
        let read = len_a as u64 + len_b as u64;
        gauge.report(read).map_err(|error| (Side::A, error))?;
        let bytes_a = piece_a.get(..len_a).unwrap_or_default();
        let bytes_b = piece_b.get(..len_b).unwrap_or_default();
        let checked = a.check(first, bytes_a);
        checked.map_err(|error| (Side::A, error))?;
        let checked = b.check(first, bytes_b);
        checked.map_err(|error| (Side::B, error))?;
        let (of_a, of_b) = (a.values(bytes_a), b.values(bytes_b));
        found.join(if is_alone {
            stretches(&of_a, &of_b, first, &compare)?
        } else {
            compare(&of_a, &of_b, first)?
        });
        if len_a < piece_a.len() && len_b < piece_b.len() {
            return Ok(found);
        }
        first += values as u64;
    }
}

/// As [`for_pairs`]. Each core reads and hashes what it compares.
fn for_raw_pairs<T: Joined>(
    [(a, raw_a), (b, raw_b)]: [(&Stream<'_>, &RawValue<'_>); 2],
    gauge: &Gauge<'_>,
    compare: &(impl Fn(&Values<'_>, &Values<'_>, u64) -> Result<T, (Side, Error)> + Sync),
) -> Result<T, (Side, Error)> {
    let len = |stream: &Stream<'_>| STRETCH.saturating_mul(stream.value_len) as u64;
    let one = |at: u64, scratch: &mut Scratch| -> Result<(T, Sum, Sum), (Side, Error)> {
        let first = at * STRETCH as u64;
        let read = raw_a.stretch(at, len(a), &mut scratch.stored);
        let (bytes_a, sum_a) = read.map_err(|error| (Side::A, error))?;
        let read = raw_b.stretch(at, len(b), &mut scratch.content);
        let (bytes_b, sum_b) = read.map_err(|error| (Side::B, error))?;
        let reported = gauge.report(sum_a.1.saturating_add(sum_b.1));
        reported.map_err(|error| (Side::A, error))?;
        let checked = a.check(first, bytes_a);
        checked.map_err(|error| (Side::A, error))?;
        let checked = b.check(first, bytes_b);
        checked.map_err(|error| (Side::B, error))?;
        let found = compare(&a.values(bytes_a), &b.values(bytes_b), first)?;
        Ok((found, sum_a, sum_b))
    };
    let found = parallel::map(&raw_a.places(len(a)), |at| {
        Ok(raw_a.pool().with(|scratch| one(*at, scratch)))
    });
    let (mut joined, mut sums_a, mut sums_b) = (T::default(), Vec::new(), Vec::new());
    for part in found.map_err(|error| (Side::A, error))? {
        let (part, sum_a, sum_b) = part?;
        joined.join(part);
        sums_a.push(sum_a);
        sums_b.push(sum_b);
    }
    raw_a.check(sums_a).map_err(|error| (Side::A, error))?;
    raw_b.check(sums_b).map_err(|error| (Side::B, error))?;
    Ok(joined)
}

/// As `compare`, on all cores.
fn stretches<T: Joined>(
    a: &Values<'_>,
    b: &Values<'_>,
    first: u64,
    compare: &(impl Fn(&Values<'_>, &Values<'_>, u64) -> Result<T, (Side, Error)> + Sync),
) -> Result<T, (Side, Error)> {
    let starts: Vec<usize> = (0..a.count().max(b.count())).step_by(STRETCH).collect();
    let found = parallel::map(&starts, |start| {
        let (a, b) = (a.part(*start, STRETCH), b.part(*start, STRETCH));
        Ok(compare(&a, &b, first + *start as u64))
    });
    let mut joined = T::default();
    for part in found.map_err(|error| (Side::A, error))? {
        joined.join(part?);
    }
    Ok(joined)
}
