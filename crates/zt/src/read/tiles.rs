//! Objects whose components have a fixed number of bytes for every value, such as `zt.planes/1`. They are
//! decoded on all cores, straight into their place.
//!
//! ```text
//! plane0  [frame][frame][frame]...   a tile: one frame of each compressed component, as many raw
//! plane1  [ raw ][ raw ][ raw ]...   bytes, decoded in a core's cache, put together in place
//! ```

use std::borrow::Cow;
use std::ops::Range;

use zt_container::codec::FrameDecompressor;
use zt_container::memory::{in_memory, resize};
use zt_container::{Source, Span, check_declared};
use zt_formats::{Buffer, Dense, Elements, ObjectFormat, Parts, Signature, View};
use zt_manifest::{ByteOrder, DType, Text};

use crate::cores::announce::announce_all;
use crate::cores::ledger::Ledger;
use crate::cores::parallel;
use crate::cores::pieces::{Pieces, lent_or_fetched};
use crate::cores::scratch::{self, Pool, Scratch};
use crate::error::{Error, Result};
use crate::file::tensor::{BELIEVED_RATIO, Located, Tensor, elements_in};
use crate::read::slice::per_value;

/// Below so many bytes, waking other cores costs more than they save.
const WORTH_IT: u64 = 1 << 20;

/// Values that are put together at a time, or more where frames are longer.
const TILE: u64 = 1 << 20;

/// Values that are decoded at a time: their raw bytes stay in the core's cache from being fetched
/// to being summed and decoded.
const STRETCH: u64 = 64 << 10;

/// An object with longer tiles is not read in tiles: every core needs memory for one.
const TILE_MAX: u64 = 8 << 20;

/// An object whose values can be put together in tiles.
pub(crate) struct Tiled<'f> {
    tensor: Tensor<'f>,
    format: &'f dyn ObjectFormat,
    planes: Vec<Plane<'f>>,
    /// Values from the first to behind the last of each tile, one behind the other.
    tiles: Vec<Span>,
    dtype: DType,
    logical_type: Option<Text>,
    value_len: u64,
    byte_len: u64,
    /// The file's: memory that is new has to be cleared by the system, page by page, which takes as
    /// long as decoding into it.
    pool: &'f Pool,
}

/// A component.
struct Plane<'f> {
    part: Located<'f>,
    /// Bytes that it has for each value.
    width: u64,
    pieces: Pieces<'f>,
    verify: bool,
}

/// The dense value of an object in tiles; `None` where there are none.
pub(crate) fn to_dense(
    tensor: &Tensor<'_>,
    format: &dyn ObjectFormat,
) -> Result<Option<Dense<'static>>> {
    let Some(tiled) = Tiled::new(tensor, format)? else {
        return Ok(None);
    };
    let mut out = Buffer::try_zeroed(tiled.byte_len)?;
    tiled.fill(&mut out)?;
    tiled.into_dense(out).map(Some)
}

/// The bytes of a value that is made in tiles, by the metadata alone; `None` where there may be no tiles,
/// or where the length is not believed before it is decoded.
pub(crate) fn believed_value_len(tensor: &Tensor<'_>, format: &dyn ObjectFormat) -> Option<u64> {
    if tensor.format() == Dense::FORMAT {
        return None;
    }
    let count = tensor.element_count()?;
    // Of all components together: a plane of zeros takes next to nothing.
    let (mut byte_len, mut stored) = (0u64, 0u64);
    for (part, width) in per_value(tensor, format)? {
        let blob = &part.component.blob;
        byte_len = byte_len.checked_add(blob.decoded_len?)?;
        stored = stored.checked_add(blob.span.byte_len())?;
        if count.checked_mul(width) != blob.decoded_len {
            return None;
        }
    }
    if byte_len > stored.saturating_mul(BELIEVED_RATIO) {
        return None;
    }
    let (dtype, logical_type) = tensor.dense_type()?;
    let value_len = tensor.value_len(dtype, logical_type.as_deref());
    let is_value = count.checked_mul(value_len as u64) == Some(byte_len);
    (is_value && byte_len >= WORTH_IT).then_some(byte_len)
}

impl<'f> Tiled<'f> {
    /// `None` where values have no bytes of their own, are few, or cannot be cut into tiles.
    pub(crate) fn new(tensor: &Tensor<'f>, format: &'f dyn ObjectFormat) -> Result<Option<Self>> {
        // A dense object is its value.
        let parts = match tensor.format() {
            Dense::FORMAT => None,
            _ => per_value(tensor, format),
        };
        let signature = Signature::of(tensor.object());
        let dense_type = format.dense_type(&signature, tensor.registry());
        let count = tensor.element_count();
        let Some(((parts, count), (dtype, logical_type))) = parts.zip(count).zip(dense_type) else {
            return Ok(None);
        };
        let registry = tensor.registry();
        let Some(value_len) = registry.value_len(dtype, logical_type.as_deref())? else {
            return Ok(None);
        };
        announce_all(&parts, |(part, _)| (tensor.source(*part), part.component.blob.span));
        let mut planes = Vec::with_capacity(parts.len());
        for (part, width) in parts {
            let blob = &part.component.blob;
            let blame = |error| tensor.blame(error, part);
            check_declared(blob, tensor.limits()).map_err(blame)?;
            let is_wide = part.component.dtype.is_some_and(|dtype| dtype.byte_len() > 1);
            let is_turned = is_wide && part.component.byte_order == ByteOrder::Big;
            // The format has checked the length, if the file declares it.
            let len = tensor.decoded_len_of(part)?;
            let is_whole = blob.decoded_len.is_some() && count.checked_mul(width) == Some(len);
            if is_turned || !is_whole {
                return Ok(None);
            }
            let Some(pieces) = Pieces::of(tensor.source(part), blob).map_err(blame)? else {
                return Ok(None);
            };
            planes.push(Plane { part, width, pieces, verify: tensor.must_verify(part) });
        }
        let byte_len = count.checked_mul(value_len);
        let Some(byte_len) = byte_len.filter(|len| *len >= WORTH_IT) else {
            return Ok(None);
        };
        let tiles = tiles(&planes, count);
        let is_too_long = |tile: &Span| tile.byte_len() > TILE_MAX;
        Ok((!tiles.iter().any(is_too_long)).then(|| Tiled {
            tensor: *tensor,
            format,
            planes,
            tiles,
            dtype,
            logical_type,
            value_len,
            byte_len,
            pool: tensor.pool(),
        }))
    }

    pub(crate) const fn byte_len(&self) -> u64 {
        self.byte_len
    }

    /// Makes the value in `out`, which has exactly its bytes.
    pub(crate) fn fill(&self, out: &mut [u8]) -> Result<()> {
        let ledgers = self.ledgers();
        // A chain of blocks: one core hashes while the others decode.
        let (hashed, read) = parallel::join(
            || self.compare_chained(),
            || self.read(0..self.tiles.len(), &ledgers, out),
        );
        hashed?;
        read?;
        self.compare_sums(ledgers)
    }

    /// The value, whose bytes were made.
    pub(crate) fn into_dense(self, bytes: Buffer) -> Result<Dense<'static>> {
        let mut elements = Elements::new(self.dtype, bytes);
        elements.logical_type = self.logical_type;
        let dense = Dense::from_elements(self.tensor.shape(), elements);
        dense.map_err(|error| self.tensor.blame_format(error))
    }

    pub(crate) fn element_len(&self) -> usize {
        self.dtype.byte_len()
    }

    pub(crate) fn tile_count(&self) -> usize {
        self.tiles.len()
    }

    /// Bytes of the dense value that these tiles make up; tiles that do not exist have none.
    pub(crate) fn byte_len_of(&self, tiles: Range<usize>) -> u64 {
        let tiles = self.tiles.get(tiles).unwrap_or_default();
        let values = tiles.iter().map(|tile| tile.byte_len());
        values.fold(0, u64::strict_add).strict_mul(self.value_len)
    }

    /// For all calls of [`Tiled::read`].
    pub(crate) fn ledgers(&self) -> Vec<Ledger<'f>> {
        self.planes.iter().map(Plane::ledger).collect()
    }

    /// Puts some tiles together. `out` has exactly their bytes.
    pub(crate) fn read(
        &self,
        tiles: Range<usize>,
        ledgers: &[Ledger<'_>],
        out: &mut [u8],
    ) -> Result<()> {
        let mut rest = out;
        let mut work = Vec::with_capacity(tiles.len());
        for at in tiles {
            let len = in_memory(self.byte_len_of(at..at.strict_add(1)));
            let tile = self.tiles.get(at).copied().unwrap_or_default();
            work.push((tile, take(&mut rest, len)));
        }
        let merge = |(tile, part): (Span, &mut [u8])| {
            self.pool.with(|scratch| self.merge(tile, part, ledgers, scratch))
        };
        parallel::map_owned(work, merge).map(drop)
    }

    /// Puts one tile together.
    ///
    /// Frames are decoded whole. Raw bytes are fetched stretch by stretch as they are decoded, and take
    /// little memory.
    fn merge(
        &self,
        tile: Span,
        out: &mut [u8],
        ledgers: &[Ledger<'_>],
        scratch: &mut Scratch,
    ) -> Result<()> {
        let width = |is_framed: bool| {
            let planes = self.planes.iter();
            let planes = planes.filter(|plane| plane.is_framed() == is_framed);
            planes.map(|plane| plane.width).fold(0, u64::strict_add)
        };
        let stretch = STRETCH.min(tile.byte_len());
        let byte_len = width(true).strict_mul(tile.byte_len());
        let room = width(false).strict_mul(stretch);
        resize(&mut scratch.content, byte_len.strict_add(room))?;
        let (stored, decompressor) = (&mut scratch.stored, &mut scratch.decompressor);
        let (mut contents, room) = scratch.content.split_at_mut(in_memory(byte_len));
        let mut parts = Vec::with_capacity(self.planes.len());
        for (plane, ledger) in self.planes.iter().zip(ledgers) {
            let len = in_memory(plane.width.strict_mul(tile.byte_len()));
            let content = plane.is_framed().then(|| take(&mut contents, len));
            let part = plane.begin(tile, content, ledger, stored, decompressor);
            parts.push((ledger, part.map_err(|error| self.blame(error, plane))?));
        }
        let values = in_memory(stretch).max(1);
        let value_len = in_memory(self.value_len).max(1);
        let stretches = out.chunks_mut(values.strict_mul(value_len));
        for (at, out) in stretches.enumerate() {
            let count = out.len().strict_div(value_len);
            let mut room = &mut *room;
            let mut elements = Vec::with_capacity(self.planes.len());
            for (plane, (ledger, part)) in self.planes.iter().zip(&parts) {
                let width = in_memory(plane.width);
                let start = at.strict_mul(values).strict_mul(width);
                let len = count.strict_mul(width);
                let bytes = part.stretch(plane.pieces.source, start, len, ledger, &mut room);
                let bytes = bytes.map_err(|error| self.blame(error, plane))?;
                elements.push((plane.part.role.clone(), elements_in(plane.part, bytes)));
            }
            let parts = Parts {
                shape: Cow::Owned(vec![count as u64]),
                attributes: Cow::Borrowed(self.tensor.attributes()),
                elements,
            };
            let made = self.format.decode_into(parts, out);
            made.map_err(|error| self.tensor.blame_format(error))?;
        }
        Ok(())
    }

    fn blame(&self, error: Error, plane: &Plane<'_>) -> Error {
        self.tensor.blame(plane.ledger().explained(plane.pieces.source, error), plane.part)
    }

    /// Compares the digests that cannot be combined from digests of pieces.
    pub(crate) fn compare_chained(&self) -> Result<()> {
        let chained = |plane: &Plane<'_>| {
            let hashed = plane.ledger().chain(plane.pieces.source);
            hashed.map_err(|error| self.tensor.blame(error, plane.part))
        };
        parallel::map(&self.planes, chained).map(drop)
    }

    /// Compares the digests of what was read, which is all of it, and remembers that they are right.
    pub(crate) fn compare_sums(&self, ledgers: Vec<Ledger<'_>>) -> Result<()> {
        self.planes.iter().zip(ledgers).try_for_each(|(plane, ledger)| {
            let compare = || ledger.compare(plane.pieces.source);
            self.tensor.verified(plane.part, plane.verify, compare)
        })
    }
}

impl<'f> Plane<'f> {
    fn ledger(&self) -> Ledger<'f> {
        Ledger::of(&self.part.component.blob, self.verify)
    }

    fn is_framed(&self) -> bool {
        self.pieces.frames().is_some()
    }

    fn stored(&self, tile: Span) -> Span {
        let blob = self.part.component.blob.span;
        let at = |value: u64| value.strict_mul(self.width);
        let tile = Span::exact_between(at(tile.offset()), at(tile.end()));
        let Some(frames) = self.pieces.frames() else {
            let start = blob.offset().strict_add(tile.offset());
            return Span::exact(start, tile.byte_len());
        };
        // Skippable frames are empty, and belong to the next frame.
        let first = frames.partition_point(|frame| frame.content.offset() < tile.offset());
        let behind = frames.partition_point(|frame| frame.content.offset() < tile.end());
        let frames = frames.get(first..behind).unwrap_or_default();
        match frames {
            [] => Span::default(),
            [first, .., last] => Span::exact_between(first.stored.offset(), last.stored.end()),
            [only] => only.stored,
        }
    }

    /// The part of this component that is in a tile; decoded into `content`, which is as long, where
    /// it is framed.
    fn begin<'t>(
        &self,
        tile: Span,
        content: Option<&'t mut [u8]>,
        ledger: &Ledger<'_>,
        stored: &mut Vec<u8>,
        decompressor: &mut Option<FrameDecompressor>,
    ) -> Result<Part<'t>> {
        let span = self.stored(tile);
        let Some(content) = content else {
            return Ok(Part { span, content: None });
        };
        let bytes = lent_or_fetched(self.pieces.source, span, stored)?;
        ledger.add(span, bytes)?;
        scratch::decompressor(decompressor)?.decode_into(bytes, content)?;
        Ok(Part { span, content: Some(&*content) })
    }
}

/// The part of one component that is in one tile.
struct Part<'t> {
    span: Span,
    /// All of it; `None` where it is raw, and comes in stretches.
    content: Option<&'t [u8]>,
}

impl Part<'_> {
    /// `len` bytes from `start` on. Raw ones that the source does not lend are read into `room`, which has
    /// less of it then.
    fn stretch<'b>(
        &self,
        source: &'b dyn Source,
        start: usize,
        len: usize,
        ledger: &Ledger<'_>,
        room: &mut &'b mut [u8],
    ) -> Result<&'b [u8]>
    where
        Self: 'b,
    {
        if let Some(content) = self.content {
            let stretch = content.get(start..start.strict_add(len));
            return Ok(stretch.unwrap_or_default());
        }
        let offset = self.span.offset().strict_add(start as u64);
        let span = Span::exact(offset, len as u64);
        let bytes = match source.slice(span) {
            Some(bytes) => bytes,
            None => {
                let place = take(room, len);
                source.read_at(offset, place)?;
                place
            }
        };
        ledger.add(span, bytes)?;
        Ok(bytes)
    }
}

/// Cuts off the first bytes, `len` of them or all.
fn take<'b>(rest: &mut &'b mut [u8], len: usize) -> &'b mut [u8] {
    let len = len.min(rest.len());
    rest.split_off_mut(..len).unwrap_or_default()
}

/// The tiles of `count` values: every compressed component has the end of a frame where one ends.
fn tiles(planes: &[Plane<'_>], count: u64) -> Vec<Span> {
    let framed = planes.iter();
    let mut framed = framed.filter_map(|plane| Some((plane.width, plane.pieces.frames()?)));
    let mut ends: Vec<u64> = match framed.next() {
        Some((width, frames)) => {
            let ends = frames.iter().map(|frame| frame.content.end());
            let ends = ends.filter(|end| end.is_multiple_of(width));
            ends.filter_map(|end| end.checked_div(width)).collect()
        }
        None => {
            let tiles = 1..=count.div_ceil(TILE);
            tiles.map(|tile| tile.strict_mul(TILE).min(count)).collect()
        }
    };
    for (width, frames) in framed {
        let is_end = |end: u64| {
            let end = end.strict_mul(width);
            let at = frames.partition_point(|frame| frame.content.end() < end);
            let frame = frames.get(at);
            frame.is_some_and(|frame| frame.content.end() == end)
        };
        ends.retain(|end| is_end(*end));
    }
    let mut tiles = Vec::new();
    let mut start = 0u64;
    for end in ends {
        let len = end.strict_sub(start);
        // Shorter ones are not worth the bookkeeping; the frames of every component end at `count`.
        if len >= TILE || (end == count && len > 0) {
            tiles.extend(Span::between(start, end));
            start = end;
        }
    }
    tiles
}
