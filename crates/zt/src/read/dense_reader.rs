//! The dense value of an object as a stream.

use std::io::{self, Read};
use std::ops::Range;

use zt_container::memory::in_memory;
use zt_formats::{Buffer, Dense, View};
use zt_manifest::{DType, Text};

use crate::cores::debug;
use crate::cores::ledger::Ledger;
use crate::cores::read_ahead::for_each_piece;
use crate::error::{Error, Result};
use crate::file::tensor::{ComponentReader, SplitElement, Tensor, copy_some, whole_elements};
use crate::read::compressed::DATA;
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
    values: Values<'f>,
    split: SplitElement,
}

pub(super) enum Values<'f> {
    /// Those of a component.
    Stored(Box<ComponentReader<'f>>),
    Made(Made<'f>),
}

/// Values that are made some units at a time, from the first to the last.
pub(super) struct Made<'f> {
    element_len: usize,
    /// `None` where all values are held.
    units: Option<Box<MadeBy<'f>>>,
    /// Values that did not fit where they were wanted, and which of them are left.
    held: Buffer,
    left: Range<usize>,
    /// After an error nothing is read any more, and no end is reported.
    has_failed: bool,
}

type MadeBy<'f> = dyn Units + Send + Sync + 'f;

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
        if self.format() == Dense::FORMAT {
            return Ok(Values::Stored(Box::new(self.reader(DATA)?)).into());
        }
        let made = self.made()?.map_or_else(|| Made::whole(self.to_dense()?), Ok)?;
        Ok(Values::Made(made).into())
    }

    /// The values some at a time; `None` if they are made all at once.
    fn made(&self) -> Result<Option<Made<'f>>> {
        let Some(format) = self.registry().format(self.format()) else {
            return Ok(None);
        };
        if let Some(tiled) = Tiled::new(self, format)? {
            tiled.compare_chained()?;
            let (element_len, ledgers) = (tiled.element_len(), Some(tiled.ledgers()));
            let units = Box::new(TileReader { next: 0, ledgers, tiled });
            return Ok(Some(Made::new(Some(units), element_len, Buffer::default())));
        }
        self.check_dense_len_of(self.shape())?;
        Ok(RunReader::new(self, format)?.map(|(reader, held)| {
            let element_len = reader.element_len();
            Made::new(Some(Box::new(reader)), element_len, held)
        }))
    }

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

impl<'f> From<Values<'f>> for DenseReader<'f> {
    fn from(values: Values<'f>) -> Self {
        DenseReader { values, split: SplitElement::default() }
    }
}

impl Values<'_> {
    fn element_len(&self) -> usize {
        match self {
            Values::Stored(reader) => reader.element_len(),
            Values::Made(made) => made.element_len,
        }
    }

    fn read_elements(&mut self, out: &mut [u8]) -> Result<usize> {
        match self {
            Values::Stored(reader) => reader.read_elements(out),
            Values::Made(made) => made.read(out),
        }
    }
}

impl DenseReader<'_> {
    /// Reads whole elements into `out`, as many as fit; how many bytes, 0 at the end. Digests have
    /// been checked when the end is reported.
    /// Where not one element fits, and after an error, it fails as [`crate::ErrorKind::Misuse`].
    pub(crate) fn read_elements(&mut self, out: &mut [u8]) -> Result<usize> {
        self.values.read_elements(out)
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
        let DenseReader { values, split } = self;
        let read = |piece: &mut [u8]| split.read(piece, |piece| values.read_elements(piece));
        for_each_piece(read, piece_len, take)
    }
}

impl Read for DenseReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let DenseReader { values, split } = self;
        let width = values.element_len();
        Ok(split.read_bytes(out, width, |elements| values.read_elements(elements))?)
    }
}

/// How values are made.
pub(super) trait Units {
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

impl<'f> Made<'f> {
    fn new(units: Option<Box<MadeBy<'f>>>, element_len: usize, held: Buffer) -> Self {
        let left = 0..held.len();
        Made { element_len, units, held, left, has_failed: false }
    }

    /// Values that are in memory.
    fn whole(dense: Dense<'static>) -> Result<Self> {
        let (_, elements) = dense.into_elements();
        Ok(Self::new(None, elements.dtype.byte_len(), elements.bytes.into_owned()?))
    }

    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        let out = whole_elements(out, self.element_len)?;
        if self.has_failed {
            return Err(Error::out_of_order());
        }
        let read = self.fill(out);
        self.has_failed = read.is_err();
        read
    }

    fn fill(&mut self, out: &mut [u8]) -> Result<usize> {
        let mut filled = 0;
        while let Some(room) = out.get_mut(filled..).filter(|room| !room.is_empty()) {
            let held = self.held.get(self.left.clone()).unwrap_or_default();
            if !held.is_empty() {
                let len = copy_some(held, room);
                self.left.start = self.left.start.strict_add(len);
                filled = filled.strict_add(len);
                continue;
            }
            let Some(units) = &mut self.units else { break };
            let next = units.next(room.len() as u64);
            let len = in_memory(next.byte_len);
            if next.count == 0 {
                break;
            }
            if next.is_straight {
                units.make(next.count, room.get_mut(..len).unwrap_or_default())?;
                filled = filled.strict_add(len);
            } else {
                if self.held.len() < len {
                    self.held = Buffer::try_zeroed(next.byte_len)?;
                }
                units.make(next.count, self.held.get_mut(..len).unwrap_or_default())?;
                self.left = 0..len;
            }
        }
        // The end is reported once the digests were found right.
        if filled == 0 {
            self.units.as_mut().map_or(Ok(()), |units| units.finish())?;
        }
        Ok(filled)
    }
}

/// A unit is a tile.
impl Units for TileReader<'_> {
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

debug::fields!(DenseReader<'_>, |_this|);
