//! The dense value of an object as a stream.

use std::io::{self, Read};

use zt_container::memory::{in_memory, resize};
use zt_formats::Dense;
use zt_manifest::{DType, Text};

use crate::cores::debug;
use crate::cores::ledger::Ledger;
use crate::cores::read_ahead::for_each_piece;
use crate::error::{Error, Result};
use crate::file::tensor::{ComponentReader, SplitElement, Tensor, whole_elements};
use crate::read::runs::RunReader;
use crate::read::tiles::Tiled;

/// Yields the little-endian bytes of an object's dense value, in row-major order. See
/// [`Tensor::dense_reader`].
///
/// It is a [`Read`], as [`ComponentReader`] is. With memory of many MiB for a `read`, all cores have
/// work.
///
/// ```
/// use std::io::Read;
/// # let mut bytes = Vec::new();
/// # let mut writer = zt::Writer::new(&mut bytes)?;
/// # writer.add("weight", &zt::Dense::from_slice(&[2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?)?;
/// # writer.finish()?;
/// # let file = zt::File::from_bytes(bytes)?;
/// let mut values = Vec::new();
/// file.tensor("weight")?.dense_reader()?.read_to_end(&mut values)?;
/// assert_eq!(values.len(), 24);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DenseReader<'f> {
    progress: Progress<'f>,
    split: SplitElement,
}

enum Progress<'f> {
    /// The object is dense.
    Streamed(Box<ComponentReader<'f>>),
    /// The object is put together in tiles.
    Tiled(Box<TileReader<'f>>, Spill),
    /// The object is cut into runs of rows.
    Cut(Box<RunReader<'f>>, Spill),
    /// The value is in memory, and read so far.
    Whole(Dense<'static>, usize),
}

struct TileReader<'f> {
    tiled: Tiled<'f>,
    next: usize,
    /// `None` once all digests were compared.
    ledgers: Option<Vec<Ledger<'f>>>,
}

impl<'f> Tensor<'f> {
    /// Streams the object's dense value, as [`Tensor::to_dense`] gives it: a dense object in bounded
    /// memory, and an object that its format cuts into rows
    /// ([`ObjectFormat::rows`](crate::ObjectFormat::rows)) some rows at a time and on all cores.
    /// Others are made in memory. Planes with a sha256, which goes from front to back, are read once
    /// before for it alone.
    ///
    /// # Errors
    ///
    /// As [`Tensor::to_dense`].
    pub fn dense_reader(&self) -> Result<DenseReader<'f>> {
        self.expect_meaning()?;
        if self.format() == "dense" {
            return Ok(Progress::Streamed(Box::new(self.reader("data")?)).into());
        }
        let Some(format) = self.registry().format(self.format()) else {
            return Ok(Progress::Whole(self.to_dense()?, 0).into());
        };
        if let Some(tiled) = Tiled::new(self, format)? {
            tiled.compare_chained()?;
            let ledgers = Some(tiled.ledgers());
            let reader = Box::new(TileReader { next: 0, ledgers, tiled });
            return Ok(Progress::Tiled(reader, Spill::default()).into());
        }
        self.check_dense_len_of(self.shape())?;
        let progress = match RunReader::new(self, format)? {
            Some((reader, held)) => {
                Progress::Cut(Box::new(reader), Spill { held, ..Spill::default() })
            }
            None => Progress::Whole(self.to_dense()?, 0),
        };
        Ok(progress.into())
    }
}

impl<'f> Tensor<'f> {
    /// The dtype and the logical type of the dense value. It is made if the format knows them only then.
    pub(crate) fn type_of_value(&self) -> Result<(DType, Option<Text>)> {
        if let Some(known) = self.dense_type() {
            return Ok(known);
        }
        let dense = self.to_dense()?;
        let elements = dense.elements();
        Ok((elements.dtype, elements.logical_type.clone()))
    }
}

impl<'f> From<Progress<'f>> for DenseReader<'f> {
    fn from(progress: Progress<'f>) -> Self {
        let split = SplitElement::default();
        DenseReader { progress, split }
    }
}

impl Progress<'_> {
    fn element_len(&self) -> usize {
        match self {
            Progress::Streamed(reader) => reader.element_len(),
            Progress::Tiled(reader, _) => reader.element_len(),
            Progress::Cut(reader, _) => reader.element_len(),
            Progress::Whole(dense, _) => dense.elements().dtype.byte_len(),
        }
    }

    fn read_elements(&mut self, out: &mut [u8]) -> Result<usize> {
        match self {
            Progress::Streamed(reader) => reader.read_elements(out),
            Progress::Tiled(reader, spill) => spill.read(&mut **reader, out),
            Progress::Cut(reader, spill) => spill.read(&mut **reader, out),
            Progress::Whole(dense, taken) => {
                let elements = dense.elements();
                let out = whole_elements(out, elements.dtype.byte_len())?;
                let len = copy(&elements.bytes, *taken, out);
                *taken = taken.strict_add(len);
                Ok(len)
            }
        }
    }
}

impl DenseReader<'_> {
    /// Reads whole elements into `out`, as many as fit; how many bytes, 0 at the end. Digests have
    /// been checked when the end is reported.
    /// Where not one element fits, and after an error, it fails as [`crate::ErrorKind::Misuse`].
    pub(crate) fn read_elements(&mut self, out: &mut [u8]) -> Result<usize> {
        self.progress.read_elements(out)
    }

    /// Calls `take` with all that is left, `piece_len` bytes at a time. If pieces have more than
    /// 256 KiB and the first is full, a thread reads the next ones while `take` runs. Digests have been
    /// checked when this returns `Ok`.
    ///
    /// # Errors
    ///
    /// As [`Tensor::to_dense`], after `take` has had every piece before; [`crate::ErrorKind::Misuse`]
    /// where a piece has no room for an element, and after an error; the error of `take`, which ends the
    /// loop. `E` may be [`Error`], [`std::io::Error`] or your own.
    pub fn for_each_piece<E: From<Error>>(
        &mut self,
        piece_len: usize,
        take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let DenseReader { progress, split } = self;
        let read = |piece: &mut [u8]| split.read(piece, |piece| progress.read_elements(piece));
        for_each_piece(read, piece_len, take)
    }
}

impl Read for DenseReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let DenseReader { progress, split } = self;
        let width = progress.element_len();
        Ok(split.read_bytes(out, width, |elements| progress.read_elements(elements))?)
    }
}

/// Makes values some units at a time, from the first to the last.
pub(super) trait Units {
    fn element_len(&self) -> usize;

    /// The units to make next, for memory with `room`; 0 at the end.
    fn next(&self, room: u64) -> Next;

    /// Makes the next units in `out`, which has exactly their bytes.
    fn make(&mut self, count: u64, out: &mut [u8]) -> Result<()>;

    /// Compares what is left of the digests.
    fn finish(&mut self) -> Result<()>;
}

/// Some units.
pub(super) struct Next {
    pub(super) count: u64,
    pub(super) byte_len: u64,
    /// Whether they are made where they are wanted, and there is room for them.
    pub(super) is_straight: bool,
}

/// Units that did not fit where they were wanted.
#[derive(Default)]
struct Spill {
    held: Vec<u8>,
    taken: usize,
    /// After an error nothing is read any more, and no end is reported.
    has_failed: bool,
}

impl Spill {
    fn read(&mut self, units: &mut impl Units, out: &mut [u8]) -> Result<usize> {
        let out = whole_elements(out, units.element_len())?;
        if self.has_failed {
            return Err(Error::out_of_order());
        }
        let read = self.fill(units, out);
        self.has_failed = read.is_err();
        read
    }

    fn fill(&mut self, units: &mut impl Units, out: &mut [u8]) -> Result<usize> {
        let mut filled = 0;
        while let Some(room) = out.get_mut(filled..).filter(|room| !room.is_empty()) {
            if self.taken < self.held.len() {
                let len = copy(&self.held, self.taken, room);
                self.taken = self.taken.strict_add(len);
                filled = filled.strict_add(len);
                continue;
            }
            let next = units.next(room.len() as u64);
            if next.count == 0 {
                break;
            }
            if next.is_straight {
                let len = in_memory(next.byte_len);
                units.make(next.count, room.get_mut(..len).unwrap_or_default())?;
                filled = filled.strict_add(len);
            } else {
                resize(&mut self.held, next.byte_len)?;
                units.make(next.count, &mut self.held)?;
                self.taken = 0;
            }
        }
        // The end is reported once the digests were found right.
        if filled == 0 {
            units.finish()?;
        }
        Ok(filled)
    }
}

/// A unit is a tile.
impl Units for TileReader<'_> {
    fn element_len(&self) -> usize {
        self.tiled.element_len()
    }

    fn next(&self, room: u64) -> Next {
        let byte_len =
            |count: usize| self.tiled.byte_len_of(self.next..self.next.strict_add(count));
        let left = self.tiled.tile_count().strict_sub(self.next);
        let fit = (1..=left).take_while(|count| byte_len(*count) <= room).last();
        let count = fit.unwrap_or(1).min(left);
        Next { count: count as u64, byte_len: byte_len(count), is_straight: fit.is_some() }
    }

    fn make(&mut self, count: u64, out: &mut [u8]) -> Result<()> {
        let tiles = self.next..self.next.strict_add(in_memory(count));
        self.next = tiles.end;
        let ledgers = self.ledgers.as_deref().unwrap_or_default();
        self.tiled.read(tiles, ledgers, out)
    }

    fn finish(&mut self) -> Result<()> {
        self.ledgers.take().map_or(Ok(()), |ledgers| self.tiled.compare_sums(ledgers))
    }
}

/// Copies `bytes` from `start` on, as many as fit. Returns their number.
fn copy(bytes: &[u8], start: usize, out: &mut [u8]) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    let len = rest.len().min(out.len());
    out[..len].copy_from_slice(&rest[..len]);
    len
}

debug::fields!(DenseReader<'_>, |_this|);
