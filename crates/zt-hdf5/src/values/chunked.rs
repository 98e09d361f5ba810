//! The values of a chunked dataset, as a source that gives them in row-major order.
//!
//! The rows are scattered over chunks. So they are gathered in *bands*: as many outermost rows as fit
//! into a few megabytes, from all chunks that overlap them, in one pass. If possible, a band has
//! whole rows of chunks, so that each chunk is decoded once. The index of the chunks is read with the
//! first value.

use std::borrow::Cow;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use zt::container::memory::{bytes_of, end_of_read, zeroed};
use zt::{Error, ErrorKind, Result, Source};
use zt_foreign::strided::{self, Cut, Place, Step};

use crate::bytes::budget::Budget;
use crate::bytes::fault::Hdf5Fault;
use crate::bytes::size::{in_memory, product, sum};
use crate::bytes::store::{self, Store};
use crate::filters::pipeline::Pipeline;
use crate::structures::chunk_index::{Chunk, Chunks};
use crate::structures::grid::Grid;
use crate::structures::layout::Chunking;
use crate::values::constant;

/// The least bytes of a band, if the dataset has as many: several rows of small chunks.
const BAND: u64 = 1 << 20;

/// How often a chunk may be decoded if a row of chunks does not fit into a band.
const PASSES: u64 = 64;

pub(crate) struct Chunked {
    store: Store,
    chunking: Chunking,
    grid: Grid,
    pipeline: Pipeline,
    fill: Vec<u8>,
    byte_len: u64,
    bands: Bands,
    /// The held bands of all datasets, and the bytes that their chunks may be decoded to.
    held: strided::Bands,
    decoded: Budget,
    id: u64,
    chunks: Mutex<Option<Result<Arc<Chunks>>>>,
}

impl Chunked {
    /// The values of a dataset with `byte_len` bytes, at least one. The datasets of a file share
    /// `held`, `decoded` and the budget of `store`. They are unsupported if every chunk would be
    /// decoded many times, or if one has an unsupported filter. If the pipeline has such a filter,
    /// the index is read.
    pub(crate) fn new(
        store: &Store,
        chunking: Chunking,
        grid: Grid,
        pipeline: Pipeline,
        fill: Vec<u8>,
        byte_len: u64,
        (held, decoded): (&strided::Bands, &Budget),
    ) -> Result<Self> {
        let bands = Bands::new(&grid, chunking.element_len);
        if !pipeline.is_empty() {
            let (passes, limit) = (bands.passes, PASSES);
            if passes > limit {
                return Err(Hdf5Fault::Scattered { passes, limit }.into());
            }
        }
        let chunked = Chunked {
            store: store.sharing(),
            chunking,
            grid,
            pipeline,
            fill,
            byte_len,
            bands,
            held: held.clone(),
            decoded: decoded.clone(),
            id: held.next_id(),
            chunks: Mutex::default(),
        };
        chunked.check_filters()?;
        Ok(chunked)
    }

    /// The most bytes that are made for a read of one byte.
    pub(crate) fn read_cost(&self) -> u64 {
        let band = self.bands.cut.rows.strict_mul(self.bands.cut.row);
        band.max(self.grid.chunk_len)
    }

    /// Refuses a dataset with a chunk that an unsupported filter was applied to. Only for such a
    /// pipeline is the index read before the values.
    fn check_filters(&self) -> Result<()> {
        if !self.pipeline.has_unknown() {
            return Ok(());
        }
        let chunks = self.chunks()?;
        for chunk in chunks.in_range(0..=u64::MAX) {
            if !self.is_plain(&self.grid.place(chunk.number)) {
                self.pipeline.check_known(chunk.mask)?;
            }
        }
        Ok(())
    }

    /// Whether the chunk at `place` is stored without filters.
    fn is_plain(&self, place: &[u64]) -> bool {
        let is_plain_edge = || self.chunking.edges_are_plain && self.grid.is_on_edge(place);
        self.pipeline.is_empty() || is_plain_edge()
    }

    /// The index, which is read once, even if it is invalid. All indices of a file share a budget,
    /// because datasets with the same index would each keep it in memory.
    fn chunks(&self) -> Result<Arc<Chunks>> {
        let mut known = self.chunks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(chunks) = &*known {
            return chunks.clone();
        }
        let is_filtered = !self.pipeline.is_empty();
        let store = self.store.afresh();
        let read = Chunks::read(&store, &self.chunking, &self.grid, is_filtered);
        // A read that failed may succeed later, and is not charged.
        if let Err(error) = &read
            && error.kind() == ErrorKind::Io
        {
            return Err(error.clone());
        }
        let charged = self.store.charge(store.budget.spent());
        let charged = charged.and(read).and_then(|chunks| {
            self.charge(&chunks)?;
            Ok(Arc::new(chunks))
        });
        known.insert(charged).clone()
    }

    /// Counts the bytes that are decoded or copied to read all written chunks once. A chunk is decoded
    /// as a whole, even if only part of it is in the shape, and perhaps again.
    fn charge(&self, chunks: &Chunks) -> Result<(), Hdf5Fault> {
        let all = product([chunks.count(), self.grid.chunk_len])?;
        let byte_len = if self.pipeline.is_empty() {
            all.min(self.byte_len)
        } else {
            product([all, self.bands.passes])?
        };
        self.decoded.decode(byte_len)
    }

    fn gather(&self, band: &strided::Band) -> Result<Vec<u8>> {
        let chunks = self.chunks()?;
        let extents = self.bands.extents(&self.grid, band);
        let mut bytes = self.filled(band.byte_len)?;
        // The overlapping chunks have consecutive numbers: a band has one row of every outer
        // dimension, and all of every inner one.
        let [first, last] = ends(&extents, &self.grid).map(|place| self.grid.number(&place));
        let Some((first, last)) = first.zip(last) else {
            return Ok(bytes);
        };
        // Only written chunks: a few bytes of a file can declare any number of chunks.
        for chunk in chunks.in_range(first..=last) {
            let place = self.grid.place(chunk.number);
            self.scatter(*chunk, &place, &extents, &mut bytes)?;
        }
        Ok(bytes)
    }

    fn filled(&self, byte_len: u64) -> Result<Vec<u8>> {
        let mut bytes = zeroed(byte_len)?;
        constant::fill(&self.fill, 0, &mut bytes);
        Ok(bytes)
    }

    /// Copies the values of a chunk to their places in a band.
    fn scatter(
        &self,
        chunk: Chunk,
        place: &[u64],
        extents: &[(u64, u64)],
        out: &mut [u8],
    ) -> Result<()> {
        let overlap = Overlap::new(&self.grid, place, extents, self.chunking.element_len);
        let Some(overlap) = overlap else {
            return Ok(());
        };
        let (skipped, values) = self.values(chunk, place, &overlap)?;
        let run = in_memory(overlap.run)?;
        let mut at = Place::new(overlap.steps, overlap.from);
        loop {
            let from = at.from.checked_sub(skipped).ok_or(Hdf5Fault::TooFar)?;
            let (from, to) = (in_memory(from)?, in_memory(sum([overlap.to, at.to])?)?);
            let source = values.get(from..).and_then(|values| values.get(..run));
            let target = out.get_mut(to..).and_then(|out| out.get_mut(..run));
            let (source, target) = source.zip(target).ok_or(Hdf5Fault::TooFar)?;
            target.copy_from_slice(source);
            if !at.advance() {
                return Ok(());
            }
        }
    }

    /// The needed values of a chunk, and the number of bytes that are left out before them.
    fn values(
        &self,
        chunk: Chunk,
        place: &[u64],
        overlap: &Overlap,
    ) -> Result<(u64, Cow<'_, [u8]>)> {
        let expected = self.grid.chunk_len;
        let what = "a chunk";
        let span = self.store.span(chunk.address, chunk.byte_len, what)?;
        if self.is_plain(place) {
            if chunk.byte_len != expected {
                let found = chunk.byte_len;
                return Err(Error::from(Hdf5Fault::Length { expected, found }).with_span(span));
            }
            let start = sum([chunk.address, overlap.from])?;
            let span = self.store.span(start, overlap.byte_len, what)?;
            let values = bytes_of(&self.store.source, span)?;
            return Ok((overlap.from, values));
        }
        let stored = store::read(&self.store.source, span)?;
        let values = self.pipeline.decode(stored, chunk.mask, in_memory(expected)?);
        let values = values.map_err(|error| error.with_span(span))?;
        Ok((0, Cow::Owned(values)))
    }
}

impl Source for Chunked {
    fn byte_len(&self) -> u64 {
        self.byte_len
    }

    fn is_sequential(&self) -> bool {
        self.bands.is_sequential
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        end_of_read(self.byte_len, offset, buf)?;
        let make = |band: &strided::Band| Ok(self.gather(band)?);
        self.held.fill(self.id, &self.bands.cut, offset, buf, make)
    }
}

/// The bands of a dataset.
#[derive(Debug, Clone)]
struct Bands {
    cut: Cut,
    /// The most bands that overlap a chunk.
    passes: u64,
    is_sequential: bool,
}

impl Bands {
    fn new(grid: &Grid, element_len: u64) -> Self {
        let parallel = Bands::of(grid, element_len, strided::share());
        match parallel.passes {
            1 => parallel,
            // If a row of chunks does not fit, bands are gathered one after the other.
            _ => Bands {
                is_sequential: true,
                ..Bands::of(grid, element_len, strided::SEQUENTIAL_BAND)
            },
        }
    }

    /// Bands of at most `room` bytes, or of one row if that is longer.
    fn of(grid: &Grid, element_len: u64, room: u64) -> Self {
        let cut = Cut::within(&grid.shape, element_len, room);
        let (axis, fits) = (cut.axis, cut.rows);
        // A dataset without dimensions has one element.
        let sizes = grid.shape.get(axis).zip(grid.chunk.get(axis));
        let chunk = sizes.map_or(1, |(count, chunk)| *count.min(chunk).max(&1));
        // Whole rows of chunks, and not more than a band needs.
        let wanted = BAND.div_ceil(cut.row.max(1)).div_ceil(chunk);
        let whole = fits.checked_div(chunk).filter(|whole| *whole > 0);
        let rows = whole.and_then(|whole| whole.min(wanted).checked_mul(chunk));
        let rows = rows.unwrap_or(fits);
        let outer = grid.shape.iter().zip(&grid.chunk).take(axis);
        // At most the elements of a chunk, whose bytes are checked.
        let across: u64 = outer.map(|(count, chunk)| *count.min(chunk)).product();
        Bands {
            cut: cut.with_rows(rows),
            passes: across.strict_mul(chunk.div_ceil(rows.max(1))),
            is_sequential: false,
        }
    }

    /// The elements of a band in every dimension: the first, and one past the last.
    fn extents(&self, grid: &Grid, band: &strided::Band) -> Vec<(u64, u64)> {
        let mut extents: Vec<(u64, u64)> = grid.shape.iter().map(|count| (0, *count)).collect();
        for (axis, (extent, first)) in extents.iter_mut().zip(&band.place).enumerate() {
            let rows = if axis == self.cut.axis { band.rows } else { 1 };
            // A band never ends outside the shape.
            *extent = (*first, first.strict_add(rows));
        }
        extents
    }
}

/// The places of the first and the last chunk that overlap a band.
fn ends(extents: &[(u64, u64)], grid: &Grid) -> [Vec<u64>; 2] {
    let extents = extents.iter().zip(&grid.chunk);
    let ends = extents.map(|((first, end), chunk)| {
        // Neither a chunk nor a band is empty.
        (first.strict_div(*chunk), end.strict_sub(1).strict_div(*chunk))
    });
    let (first, last) = ends.unzip();
    [first, last]
}

/// The common elements of a chunk and a band.
struct Overlap {
    /// Bytes that lie together in both.
    run: u64,
    /// The other dimensions, outermost first.
    steps: Vec<Step>,
    /// The first byte in the chunk, the bytes up to the last one, and the first byte in the band.
    from: u64,
    byte_len: u64,
    to: u64,
}

impl Overlap {
    fn new(grid: &Grid, place: &[u64], extents: &[(u64, u64)], element_len: u64) -> Option<Self> {
        let mut overlap = Overlap {
            run: element_len,
            steps: Vec::with_capacity(grid.rank()),
            from: 0,
            byte_len: element_len,
            to: 0,
        };
        // Bytes from one element of a dimension to the next, in the chunk and in the band.
        let (mut chunk_stride, mut band_stride) = (element_len, element_len);
        let axes = grid.chunk.iter().zip(place).zip(extents).enumerate();
        let axes: Vec<_> = axes.collect();
        for (axis, ((chunk, at), (first, end))) in axes.into_iter().rev() {
            let origin = at.checked_mul(*chunk)?;
            let low = origin.max(*first);
            let high = origin.checked_add(*chunk)?.min(*end);
            let count = high.checked_sub(low).filter(|count| *count > 0)?;
            overlap.from =
                overlap.from.checked_add(low.checked_sub(origin)?.checked_mul(chunk_stride)?)?;
            overlap.to =
                overlap.to.checked_add(low.checked_sub(*first)?.checked_mul(band_stride)?)?;
            let stretch = count.checked_sub(1)?.checked_mul(chunk_stride)?;
            overlap.byte_len = overlap.byte_len.checked_add(stretch)?;
            if axis.checked_add(1) == Some(grid.rank()) {
                overlap.run = count.checked_mul(element_len)?;
            } else {
                overlap.steps.push(Step { count, from: chunk_stride, to: band_stride });
            }
            chunk_stride = chunk_stride.checked_mul(*chunk)?;
            band_stride = band_stride.checked_mul(end.checked_sub(*first)?)?;
        }
        overlap.steps.reverse();
        Some(overlap)
    }
}

#[cfg(test)]
mod tests {
    use zt::{Memory, Span};

    use super::*;
    use crate::bytes::size::Sizes;
    use crate::structures::layout::Index;

    /// Each chunk is decoded once if a row of chunks fits.
    #[test]
    fn bands_are_whole_rows_of_chunks() {
        for room in [2, 3, 5, 7, 8, 99] {
            let grid = Grid::new(vec![100], &[Some(100)], vec![2], 1).unwrap();
            let bands = Bands::of(&grid, 1, room);
            assert_eq!(bands.passes, 1, "{room}");
            let mut at = 0;
            while at < 100 {
                let band = bands.cut.locate(at);
                assert_eq!((band.start, band.start % 2), (at, 0), "{room}");
                at += band.byte_len;
            }
        }
    }

    /// Bands are long then, and reading them in another order would gather them again.
    #[test]
    fn values_whose_chunks_are_decoded_again_are_read_in_order() {
        const COLUMNS: u64 = 64 << 10;
        for (chunks, is_sequential) in [(1, false), (64, true)] {
            let sizes = Sizes { offset: 8, length: 8 };
            let file = Arc::new(Memory::new(vec![0u8; 8]));
            let store = Store::new(file, Span::new(0, 8).unwrap(), 0, sizes);
            let (shape, chunk) = (vec![16, chunks * COLUMNS], vec![16, COLUMNS]);
            let byte_len = shape.iter().product();
            let limits = [None, None];
            let grid = Grid::new(shape, &limits, chunk.clone(), 1).unwrap();
            let chunking = Chunking {
                shape: chunk,
                element_len: 1,
                edges_are_plain: false,
                index: Index::Implicit,
                address: None,
                length_len: 8,
            };
            let (pipeline, held) = (Pipeline::default(), strided::Bands::default());
            let shared = (&held, &Budget::new(0));
            let chunked =
                Chunked::new(&store, chunking, grid, pipeline, vec![], byte_len, shared).unwrap();
            assert_eq!(chunked.is_sequential(), is_sequential, "{chunks}");
        }
    }

    /// With any room and any chunks, bands cover a dataset from its first byte to its last, and the
    /// extents of each give its bytes.
    #[test]
    fn bands_follow_each_other_without_a_gap() {
        const ELEMENT: u64 = 4;
        for (shape, chunk) in [
            (&[7][..], &[3][..]),
            (&[5, 9], &[2, 4]),
            (&[3, 4, 5], &[2, 3, 2]),
            (&[3, 4, 5], &[7, 1, 9]),
        ] {
            let limits: Vec<_> = shape.iter().copied().map(Some).collect();
            let grid = Grid::new(shape.to_vec(), &limits, chunk.to_vec(), ELEMENT).unwrap();
            let all = shape.iter().product::<u64>() * ELEMENT;
            for room in [ELEMENT, 9, 20, 64, 100, all] {
                let bands = Bands::of(&grid, ELEMENT, room);
                let (mut at, mut seen) = (0, Vec::new());
                while at < all {
                    let band = bands.cut.locate(at);
                    assert_eq!(band.start, at, "{shape:?} {chunk:?} {room}");
                    assert!((1..=room.max(ELEMENT)).contains(&band.byte_len));
                    let extents = bands.extents(&grid, &band);
                    let counts = extents.iter().map(|(first, end)| end - first);
                    assert_eq!(counts.product::<u64>() * ELEMENT, band.byte_len);
                    // Any byte of a band leads to it.
                    let last = bands.cut.locate(at + band.byte_len - 1);
                    assert_eq!((last.start, last.place), (at, band.place));
                    at += band.byte_len;
                    seen.push(extents);
                }
                assert_eq!(at, all);
                assert!(seen.iter().is_sorted(), "{seen:?}");
            }
        }
    }
}
