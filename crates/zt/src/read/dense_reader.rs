//! The dense value of an object as a stream.

use std::io::{self, Read};
use std::ops::Range;

use zt_container::memory::in_memory;
use zt_formats::{Buffer, Dense, View};
use zt_manifest::{DType, Text};

use crate::cores::debug;
use crate::cores::read_ahead::for_each_piece;
use crate::error::{Error, Result};
use crate::file::tensor::{ComponentReader, SplitElement, Tensor, copy_some, whole_elements};
use crate::read::compressed::DATA;
use crate::read::runs::RunReader;
use crate::read::tiles::{TileReader, Tiled};

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
            let reader = TileReader::new(tiled)?;
            return Ok(Some(Made::by(Box::new(reader), Buffer::default())));
        }
        self.check_dense_len_of(self.shape())?;
        let runs = RunReader::new(self, format)?;
        Ok(runs.map(|(reader, held)| Made::by(Box::new(reader), held)))
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

/// How values are made, some units at a time.
pub(super) trait Units {
    fn element_len(&self) -> usize;

    /// The bytes of the units to make next: as many as fill `room`, or more if that is too few; 0 at the end.
    fn next(&self, room: u64) -> u64;

    /// Makes the next units in `out`, which has exactly their bytes.
    fn make(&mut self, out: &mut [u8]) -> Result<()>;

    /// Compares what is left of the digests.
    fn finish(&mut self) -> Result<()>;
}

impl<'f> Made<'f> {
    fn by(units: Box<MadeBy<'f>>, held: Buffer) -> Self {
        let (element_len, left) = (units.element_len(), 0..held.len());
        Made { element_len, units: Some(units), held, left, has_failed: false }
    }

    /// Values that are in memory.
    fn whole(dense: Dense<'static>) -> Result<Self> {
        let (_, elements) = dense.into_elements();
        let (element_len, held) = (elements.dtype.byte_len(), elements.bytes.into_owned()?);
        Ok(Made { element_len, units: None, left: 0..held.len(), held, has_failed: false })
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
            let byte_len = units.next(room.len() as u64);
            let len = in_memory(byte_len);
            if let Some(room) = room.get_mut(..len) {
                if room.is_empty() {
                    break;
                }
                units.make(room)?;
                filled = filled.strict_add(len);
                continue;
            }
            if self.held.len() < len {
                self.held = Buffer::try_zeroed(byte_len)?;
            }
            units.make(self.held.get_mut(..len).unwrap_or_default())?;
            self.left = 0..len;
        }
        // The end is reported once the digests were found right.
        if filled == 0 {
            self.units.as_mut().map_or(Ok(()), |units| units.finish())?;
        }
        Ok(filled)
    }
}

debug::fields!(DenseReader<'_>, |_this|);
