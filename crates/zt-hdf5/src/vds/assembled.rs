//! The values of a virtual dataset, as a source that takes them from other datasets.
//!
//! The elements of a mapping have the same order in the source and in the virtual dataset. So any range
//! of the virtual dataset is a range of every source, and a reader from the first byte to the last
//! reads every source from its first byte to its last.

use std::io;
use std::sync::Arc;

use zt::container::memory::{end_of_read, zeroed};
use zt::{Error, Result, Source};
use zt_foreign::strided::{self, Cut};

use crate::bytes::budget::Budget;
use crate::bytes::fault::Hdf5Fault;
use crate::bytes::size::in_memory;
use crate::values::constant;
use crate::vds::selection::Runs;

/// Bytes of a source that are read at once if short runs lie close to each other.
///
/// Pays: a virtual dataset of 64 MB whose runs have 4 KiB takes 0.94 of the CPU time that it takes with 4 KiB, and as
/// much as with 1 MiB.
const WINDOW: u64 = 64 << 10;
/// Runs lie close if a window has at least one selected byte of so many.
///
/// Pays: not measured.
const CLOSE: u64 = 16;

/// A mapping, in bytes.
pub(crate) struct MappedBytes {
    pub(crate) source: Arc<dyn Source>,
    pub(crate) from: Runs,
    pub(crate) to: Runs,
    /// The most bytes that the source makes for a read of one byte.
    pub(crate) read_cost: u64,
    /// The bytes that the file of the source may make.
    pub(crate) decoded: Budget,
    /// The level of the source.
    pub(crate) level: usize,
}

impl MappedBytes {
    /// The first byte of the virtual dataset, and one past the last; `None` if there is none.
    fn ends(&self) -> Option<(u64, u64)> {
        let last = self.to.total().checked_sub(1)?;
        let (first, _) = self.to.at(0)?;
        let (last, _) = self.to.at(last)?;
        Some((first, last.checked_add(1)?))
    }

    /// Copies the bytes from `offset` of the virtual dataset on.
    fn copy(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let end = offset.strict_add(out.len() as u64);
        let (mut number, last) = (self.to.before(offset), self.to.before(end));
        let mut window = (0u64, Vec::new());
        while number < last {
            let runs = self.from.at(number).zip(self.to.at(number));
            let ((from, source_run), (to, run)) = runs.ok_or(io::ErrorKind::UnexpectedEof)?;
            let len = source_run.min(run).min(last.abs_diff(number));
            let at = in_memory(to.abs_diff(offset)).map_err(Error::from)?;
            let len_ = in_memory(len).map_err(Error::from)?;
            let target = out.get_mut(at..).and_then(|out| out.get_mut(..len_));
            let target = target.ok_or(io::ErrorKind::UnexpectedEof)?;
            if len >= WINDOW {
                self.source.read_at(from, target)?;
            } else {
                self.copy_short(&mut window, (number, last), from, target)?;
            }
            // Runs have at least one byte.
            number = number.strict_add(len.max(1));
        }
        Ok(())
    }

    /// Copies a short run with the bytes that follow, which are kept for the next one.
    fn copy_short(
        &self,
        (start, held): &mut (u64, Vec<u8>),
        (number, last): (u64, u64),
        from: u64,
        target: &mut [u8],
    ) -> io::Result<()> {
        fn part(held: &[u8], at: Option<u64>, len: usize) -> Option<&[u8]> {
            let at = usize::try_from(at?).ok()?;
            held.get(at..)?.get(..len)
        }
        if part(held, from.checked_sub(*start), target.len()).is_none() {
            // A byte of the run is selected, so that the window has one at least.
            let end = from.strict_add(WINDOW).min(self.source.byte_len());
            let selected = self.from.before(end).min(last).strict_sub(number);
            let end = match self.from.at(number.strict_add(selected).strict_sub(1)) {
                Some((last, _)) => last.strict_add(1).min(end),
                None => end,
            };
            let len = end.strict_sub(from);
            if selected.strict_mul(CLOSE) < len {
                return self.source.read_at(from, target);
            }
            let len = usize::try_from(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
            held.clear();
            held.resize(len.max(target.len()), 0);
            *start = from;
            self.source.read_at(from, held)?;
        }
        let source = part(held, from.checked_sub(*start), target.len());
        target.copy_from_slice(source.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// A virtual dataset.
pub(crate) struct Assembled {
    fill: Vec<u8>,
    byte_len: u64,
    /// With the first byte and one past the last of each.
    parts: Vec<(MappedBytes, (u64, u64))>,
    is_sequential: bool,
    /// The bands in which it is made if its sources would be decoded again and again; and its number.
    bands: Option<(strided::Bands, u64, Cut)>,
}

impl Assembled {
    /// The values of a dataset with `byte_len` bytes, at least one. Where mappings overlap, the
    /// last one counts. Mappings of more than twice the bytes of the dataset are refused.
    pub(crate) fn new(
        fill: Vec<u8>,
        byte_len: u64,
        parts: Vec<MappedBytes>,
        bands: &strided::Bands,
    ) -> Result<Self> {
        let mut totals = parts.iter().map(|part| part.to.total());
        let total = totals.try_fold(0u64, u64::checked_add);
        if total.is_none_or(|total| total / 2 > byte_len) {
            return Err(Hdf5Fault::Selection.into());
        }
        // A part without bytes is left out.
        let parts = parts.into_iter().filter_map(|part| part.ends().map(|ends| (part, ends)));
        let parts: Vec<(MappedBytes, (u64, u64))> = parts.collect();
        let made = parts.iter().filter(|(part, _)| part.read_cost > 0);
        let mut ends: Vec<(u64, u64)> = made.map(|(_, ends)| *ends).collect();
        ends.sort_unstable();
        // One after the other, no source is decoded again. Two of them keep their bands.
        let mut triples = ends.windows(3);
        let is_mixed = triples.any(|triple| match triple {
            [(_, first), (_, second), (third, _)] => third < first.max(second),
            _ => false,
        });
        let mut assembled = Assembled {
            fill,
            byte_len,
            is_sequential: is_mixed || parts.iter().any(|(part, _)| part.source.is_sequential()),
            parts,
            bands: None,
        };
        if is_mixed {
            let cut = Cut::within(&[byte_len], 1, strided::SEQUENTIAL_BAND);
            let pieces = byte_len.div_ceil(cut.rows.max(1));
            for (part, _) in &assembled.parts {
                // No limit reaches 2^64.
                part.decoded.decode(part.read_cost.saturating_mul(pieces))?;
            }
            assembled.bands = Some((bands.clone(), bands.next_id(), cut));
        }
        Ok(assembled)
    }

    /// The most bytes that are made for a read of one byte. It saturates, because no limit reaches 2^64.
    pub(crate) fn read_cost(&self) -> u64 {
        let parts = self.parts.iter().map(|(part, _)| part.read_cost);
        let sources = parts.fold(self.parts.len() as u64, u64::saturating_add);
        match &self.bands {
            Some((.., cut)) => sources.saturating_add(cut.rows),
            None => sources,
        }
    }

    fn make(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        constant::fill(&self.fill, offset, out);
        let end = offset.strict_add(out.len() as u64);
        // A dataset may have thousands of parts, and a read touches few of them.
        let parts = self.parts.iter();
        let mut touched = parts.filter(|(_, (first, last))| *first < end && offset < *last);
        touched.try_for_each(|(part, _)| part.copy(offset, out))
    }
}

impl Source for Assembled {
    fn byte_len(&self) -> u64 {
        self.byte_len
    }

    fn is_sequential(&self) -> bool {
        self.is_sequential
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        end_of_read(self.byte_len, offset, out)?;
        let Some((bands, id, cut)) = &self.bands else {
            return self.make(offset, out);
        };
        bands.fill(*id, cut, offset, out, |band| {
            let mut bytes = zeroed(band.byte_len).map_err(Error::from)?;
            self.make(band.start, &mut bytes)?;
            Ok(bytes)
        })
    }
}
