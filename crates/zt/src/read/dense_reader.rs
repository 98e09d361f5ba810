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
    Tiled(Box<TileReader<'f>>),
    /// The object is cut into runs of rows.
    Cut(Box<RunReader<'f>>),
    /// The value is in memory, and read so far.
    Whole(Dense<'static>, usize),
}

struct TileReader<'f> {
    tiled: Tiled<'f>,
    next: usize,
    /// `None` once all digests were compared.
    ledgers: Option<Vec<Ledger<'f>>>,
    /// After an error nothing is read any more, and no end is reported.
    has_failed: bool,
    /// A tile that did not fit where it was wanted, and how much of it was taken.
    held: Vec<u8>,
    taken: usize,
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
            let reader = TileReader {
                next: 0,
                ledgers: Some(tiled.ledgers()),
                tiled,
                has_failed: false,
                held: Vec::new(),
                taken: 0,
            };
            return Ok(Progress::Tiled(Box::new(reader)).into());
        }
        self.check_dense_len_of(self.shape())?;
        let progress = match RunReader::new(self, format)? {
            Some(reader) => Progress::Cut(Box::new(reader)),
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
            Progress::Tiled(reader) => reader.tiled.element_len(),
            Progress::Cut(reader) => reader.element_len(),
            Progress::Whole(dense, _) => dense.elements().dtype.byte_len(),
        }
    }

    fn read_elements(&mut self, out: &mut [u8]) -> Result<usize> {
        match self {
            Progress::Streamed(reader) => reader.read_elements(out),
            Progress::Tiled(reader) => reader.read(out),
            Progress::Cut(reader) => reader.read(out),
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

impl TileReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        let out = whole_elements(out, self.tiled.element_len())?;
        if self.has_failed {
            return Err(Error::out_of_order());
        }
        let read = self.read_tiles(out);
        self.has_failed = read.is_err();
        read
    }

    fn read_tiles(&mut self, out: &mut [u8]) -> Result<usize> {
        let mut filled = 0;
        while let Some(room) = out.get_mut(filled..).filter(|room| !room.is_empty()) {
            if self.taken < self.held.len() {
                let len = copy(&self.held, self.taken, room);
                self.taken = self.taken.strict_add(len);
                filled = filled.strict_add(len);
                continue;
            }
            let fits = |count: &usize| {
                let tiles = self.next..self.next.strict_add(*count);
                self.tiled.byte_len_of(tiles) <= room.len() as u64
            };
            let left = self.tiled.tile_count().strict_sub(self.next);
            let count = (1..=left).take_while(fits).last().unwrap_or(0);
            let Some(ledgers) = self.ledgers.as_ref().filter(|_| left > 0) else {
                break;
            };
            let next = self.next.strict_add(count.max(1));
            let len = self.tiled.byte_len_of(self.next..next);
            if count > 0 {
                let len = in_memory(len);
                self.tiled.read(self.next..next, ledgers, &mut room[..len])?;
                filled = filled.strict_add(len);
            } else {
                resize(&mut self.held, len)?;
                self.tiled.read(self.next..next, ledgers, &mut self.held)?;
                self.taken = 0;
            }
            self.next = next;
        }
        // The end is reported once the digests were found right.
        if filled == 0
            && let Some(ledgers) = self.ledgers.take()
        {
            self.tiled.compare_sums(ledgers)?;
        }
        Ok(filled)
    }
}

/// Copies `bytes` from `start` on, as many as fit. Returns their number.
pub(super) fn copy(bytes: &[u8], start: usize, out: &mut [u8]) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    let len = rest.len().min(out.len());
    out[..len].copy_from_slice(&rest[..len]);
    len
}

debug::fields!(DenseReader<'_>, |_this|);
