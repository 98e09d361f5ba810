//! Objects whose components have a fixed number of bytes for every value, such as `zt.planes/1`, or known
//! bytes for every so many values, such as `zt.planes/2`. They are decoded on all cores, straight into their
//! place.
//!
//! ```text
//! plane0  [frame][frame][frame]...   a tile: one frame of each compressed component, as many raw
//! plane1  [ raw ][ raw ][ raw ]...   bytes, decoded in a core's cache, put together in place
//! ```

use std::borrow::Cow;
use std::ops::Range;

use zt_container::memory::{in_memory, resize};
use zt_container::{Encoding, Span, check_declared};
use zt_formats::{Buffer, Dense, ObjectFormat, Parts, Signature, View};
use zt_manifest::ByteOrder;

use crate::cores::announce::announce_all;
use crate::cores::ledger::Ledger;
use crate::cores::parallel;
use crate::cores::pieces::Pieces;
use crate::cores::scratch::Scratch;
use crate::error::{Error, ErrorKind, Result};
use crate::file::tensor::{BELIEVED_RATIO, Located, Tensor, elements_in};
use crate::read::dense::Value;
use crate::read::dense_reader::Units;
use crate::read::roles::RolesReader;
use crate::read::slice::{per_value, row_unit};

/// Below so many bytes, waking other cores costs more than they save.
///
/// Pays: `zt convert` of 75 MB from planes takes 0.77 of the CPU time of no tiles, and `zt stats` 0.77. With no
/// least length they take as long.
const WORTH_IT: u64 = 1 << 20;

/// Values that are put together at a time, or more where frames are longer.
///
/// Pays: nothing: `zt convert` of 75 MB from planes takes as long with 4 MiB.
const TILE: u64 = 1 << 20;

/// The same where no component is compressed: their bytes stay in the core's cache from being fetched to
/// being summed and decoded.
///
/// Pays: `zt convert` of 75 MB from planes in Huffman codes takes 0.93 of the CPU time that it takes with 4 KiB, and
/// 0.87 of that with 1 MiB.
const RAW_TILE: u64 = 64 << 10;

/// An object with longer tiles is not read in tiles: every core needs memory for one.
const TILE_MAX: u64 = 8 << 20;

/// An object whose values can be put together in tiles.
pub(crate) struct Tiled<'f> {
    value: Value<'f>,
    planes: Vec<Plane<'f>>,
    /// The value behind the last of each tile.
    ends: Vec<u64>,
    byte_len: u64,
}

/// A component.
struct Plane<'f> {
    part: Located<'f>,
    place: Place,
    pieces: Pieces<'f>,
    verify: bool,
}

/// Where values lie in a component.
enum Place {
    /// Each value has so many bytes.
    Each(u64),
    /// So many values have bytes that end here.
    Units(u64, Vec<u64>),
}

impl Place {
    /// The bytes of the first values, which are whole units; `None` if there are none.
    fn end(&self, values: u64) -> Option<u64> {
        match self {
            Place::Each(width) => values.checked_mul(*width),
            Place::Units(unit, ends) => {
                let last = values.div_ceil(*unit).checked_sub(1);
                last.map_or(Some(0), |last| ends.get(usize::try_from(last).ok()?).copied())
            }
        }
    }

    /// As [`Place::end`], for values of the object: the end of all of them is known.
    fn at(&self, values: u64) -> u64 {
        self.end(values).unwrap_or_default()
    }
}

/// The bytes of a value that is made in tiles, by the metadata alone; `None` where there may be no tiles,
/// or where the length is not believed before it is decoded.
pub(crate) fn believed_value_len(tensor: &Tensor<'_>, format: &dyn ObjectFormat) -> Option<u64> {
    if tensor.format() == Dense::FORMAT {
        return None;
    }
    let count = tensor.element_count()?;
    let (dtype, logical_type) = tensor.dense_type()?;
    let value_len = tensor.value_len(dtype, logical_type.as_deref());
    let byte_len = count.checked_mul(value_len as u64)?;
    // Of all components together: a plane of zeros takes next to nothing.
    let stored = if let Some(parts) = per_value(tensor, format) {
        let (mut decoded, mut stored) = (0u64, 0u64);
        for (part, width) in parts {
            let blob = &part.component.blob;
            decoded = decoded.checked_add(blob.decoded_len?)?;
            stored = stored.checked_add(blob.span.byte_len())?;
            if count.checked_mul(width) != blob.decoded_len {
                return None;
            }
        }
        (decoded == byte_len).then_some(stored)?
    } else {
        unit_of(tensor, format, count)?;
        let spans = of_value(tensor, format).map(|part| part.component.blob.span.byte_len());
        spans.fold(0, u64::saturating_add)
    };
    let is_believed = byte_len <= stored.saturating_mul(BELIEVED_RATIO);
    (is_believed && byte_len >= WORTH_IT).then_some(byte_len)
}

/// The values whose bytes the format locates, by its metadata and by what it reads.
fn unit_of(tensor: &Tensor<'_>, format: &dyn ObjectFormat, count: u64) -> Option<u64> {
    let is_cut = format.is_flat() && format.is_for_compression();
    row_unit(tensor, format, &[count]).filter(|unit| is_cut && *unit > 1)
}

fn of_value<'f>(
    tensor: &Tensor<'f>,
    format: &dyn ObjectFormat,
) -> impl Iterator<Item = Located<'f>> {
    let signature = Signature::of(tensor.object());
    tensor.located().filter(move |part| format.is_of_value(part.role, &signature))
}

/// The components, and where their values lie, in units of so many values; `None` where the format does not
/// locate them.
fn places<'f>(
    tensor: &Tensor<'f>,
    format: &'f dyn ObjectFormat,
    count: u64,
) -> Option<(u64, Vec<(Located<'f>, Place)>)> {
    if let Some(parts) = per_value(tensor, format) {
        let parts = parts.into_iter().map(|(part, width)| (part, Place::Each(width)));
        return Some((1, parts.collect()));
    }
    let unit = unit_of(tensor, format, count)?;
    let signature = Signature::of(tensor.object());
    let len = |role: &str, count: u64| {
        let (signature, shape) = (signature.clone(), [count]);
        format.expected_len(role, &Signature { shape: &shape, ..signature }, tensor.registry())
    };
    let mut places = Vec::new();
    for part in of_value(tensor, format) {
        if let Some(width) = len(part.role, 1)
            && len(part.role, count) == width.checked_mul(count)
        {
            places.push((part, Place::Each(width)));
            continue;
        }
        // If they break a rule, the whole object is read, which compares the digests first.
        let ends =
            RolesReader::read(tensor, Vec::new(), |parts| format.unit_ends(part.role, parts));
        places.push((part, Place::Units(unit, ends.ok()??)));
    }
    Some((unit, places))
}

impl<'f> Tiled<'f> {
    /// `None` where values have no bytes of their own, are few, or cannot be cut into tiles.
    pub(crate) fn new(tensor: &Tensor<'f>, format: &'f dyn ObjectFormat) -> Result<Option<Self>> {
        let Some(value) = Value::of(tensor, format)? else {
            return Ok(None);
        };
        let count = tensor.element_count();
        let worth_it = |count: &u64| count.checked_mul(value.byte_len) >= Some(WORTH_IT);
        let Some(count) = count.filter(worth_it) else {
            return Ok(None);
        };
        let byte_len = count.strict_mul(value.byte_len);
        let Some((unit, parts)) = places(tensor, format, count) else {
            return Ok(None);
        };
        announce_all(&parts, |(part, _)| (tensor.source(*part), part.component.blob.span));
        let planes = parts.into_iter().map(|(part, place)| Plane::of(tensor, part, place, count));
        let Some(planes) = planes.collect::<Result<Option<Vec<_>>>>()? else {
            return Ok(None);
        };
        let tiled = Tiled { value, ends: tile_ends(&planes, unit, count), planes, byte_len };
        let is_too_long = |at| tiled.tile(at).byte_len() > TILE_MAX;
        Ok((!(0..tiled.ends.len()).any(is_too_long)).then_some(tiled))
    }

    pub(crate) const fn byte_len(&self) -> u64 {
        self.byte_len
    }

    /// The value, in memory of its own.
    pub(crate) fn to_dense(&self) -> Result<Dense<'static>> {
        let mut out = Buffer::try_zeroed(self.byte_len)?;
        self.fill(&mut out)?;
        self.dense(out)
    }

    /// Makes the value in `out`, which has exactly its bytes.
    pub(crate) fn fill(&self, out: &mut [u8]) -> Result<()> {
        let ledgers = self.ledgers();
        // A chain of blocks: one core hashes while the others decode.
        let (hashed, read) = parallel::join(
            || self.compare_chained(),
            || self.read(0..self.ends.len(), &ledgers, out),
        );
        hashed?;
        read?;
        self.compare_sums(ledgers)
    }

    /// The value, whose bytes were made.
    pub(crate) fn dense(&self, bytes: Buffer) -> Result<Dense<'static>> {
        self.value.dense(bytes)
    }

    /// The values of a tile; none of one that does not exist.
    fn tile(&self, at: usize) -> Span {
        let start = at.checked_sub(1).and_then(|before| self.ends.get(before)).unwrap_or(&0);
        let end = self.ends.get(at).unwrap_or(start);
        Span::exact_between(*start, *end)
    }

    /// For all calls of [`Tiled::read`].
    fn ledgers(&self) -> Vec<Ledger<'f>> {
        self.planes.iter().map(Plane::ledger).collect()
    }

    /// Puts some tiles together. `out` has exactly their bytes.
    fn read(&self, tiles: Range<usize>, ledgers: &[Ledger<'_>], out: &mut [u8]) -> Result<()> {
        let mut rest = out;
        let mut work = Vec::with_capacity(tiles.len());
        for tile in tiles.map(|at| self.tile(at)) {
            let len = in_memory(tile.byte_len().strict_mul(self.value.byte_len));
            work.push((tile, take(&mut rest, len)));
        }
        let merge = |(tile, part): (Span, &mut [u8])| {
            let pool = self.value.tensor.pool();
            pool.with(|scratch| self.merge(tile, part, ledgers, scratch))
        };
        parallel::map_owned(work, merge).map(drop)
    }

    /// Puts one tile together.
    fn merge(
        &self,
        tile: Span,
        out: &mut [u8],
        ledgers: &[Ledger<'_>],
        scratch: &mut Scratch,
    ) -> Result<()> {
        let len = |plane: &Plane<'_>| plane.bytes(tile).byte_len();
        let mut contents = std::mem::take(&mut scratch.content);
        resize(&mut contents, self.planes.iter().map(len).fold(0, u64::strict_add))?;
        let mut room = &mut contents[..];
        let mut elements = Vec::with_capacity(self.planes.len());
        for (plane, ledger) in self.planes.iter().zip(ledgers) {
            let place = take(&mut room, in_memory(len(plane)));
            let bytes = plane.pieces.content(plane.stored(tile), place, scratch, ledger);
            let bytes = bytes.map_err(|error| self.blame(error.into(), plane))?;
            elements.push((plane.part.role.clone(), elements_in(plane.part, bytes)));
        }
        let parts = Parts {
            shape: Cow::Owned(vec![tile.byte_len()]),
            attributes: Cow::Borrowed(self.value.tensor.attributes()),
            elements,
        };
        self.value.make(parts, out).map_err(|error| self.explained(error))?;
        scratch.content = contents;
        Ok(())
    }

    /// A wrong digest explains contents that break a rule, so it is reported instead (§6).
    fn explained(&self, error: Error) -> Error {
        let verify = |plane: &Plane<'_>| self.value.tensor.verify(plane.part.role).err();
        let mut planes = self.planes.iter().filter(|plane| plane.verify);
        let digest = planes.find_map(verify).filter(|_| error.kind() == ErrorKind::Malformed);
        digest.unwrap_or(error)
    }

    fn blame(&self, error: Error, plane: &Plane<'_>) -> Error {
        let error = plane.ledger().explained(plane.pieces.source, error);
        self.value.tensor.blame(error, plane.part)
    }

    /// Compares the digests that cannot be combined from digests of pieces.
    fn compare_chained(&self) -> Result<()> {
        let chained = |plane: &Plane<'_>| {
            let hashed = plane.ledger().chain(plane.pieces.source);
            hashed.map_err(|error| self.value.tensor.blame(error, plane.part))
        };
        parallel::map(&self.planes, chained).map(drop)
    }

    /// Compares the digests of what was read, which is all of it, and remembers that they are right.
    fn compare_sums(&self, ledgers: Vec<Ledger<'_>>) -> Result<()> {
        self.planes.iter().zip(ledgers).try_for_each(|(plane, ledger)| {
            let compare = || ledger.compare(plane.pieces.source);
            self.value.tensor.verified(plane.part, plane.verify, compare)
        })
    }
}

impl<'f> Plane<'f> {
    /// `None` if its bytes are not those of `count` values as they are stored, piece by piece.
    fn of(
        tensor: &Tensor<'f>,
        part: Located<'f>,
        place: Place,
        count: u64,
    ) -> Result<Option<Self>> {
        let blob = &part.component.blob;
        let blame = |error| tensor.blame(error, part);
        check_declared(blob, tensor.limits()).map_err(blame)?;
        let is_wide = part.component.dtype.is_some_and(|dtype| dtype.byte_len() > 1);
        let is_turned = is_wide && part.component.byte_order == ByteOrder::Big;
        // The format has checked the length, if the file declares it.
        let len = tensor.decoded_len_of(part)?;
        let is_whole = blob.decoded_len.is_some() && place.end(count) == Some(len);
        // A frame may end within a unit.
        let is_apart = matches!(place, Place::Each(_)) || blob.encoding == Encoding::Raw;
        if is_turned || !is_whole || !is_apart {
            return Ok(None);
        }
        let pieces = Pieces::of(tensor.source(part), blob).map_err(blame)?;
        let verify = tensor.must_verify(part);
        Ok(pieces.map(|pieces| Plane { part, place, pieces, verify }))
    }

    fn ledger(&self) -> Ledger<'f> {
        Ledger::of(&self.part.component.blob, self.verify)
    }

    /// The decoded bytes of a tile.
    fn bytes(&self, tile: Span) -> Span {
        Span::exact_between(self.place.at(tile.offset()), self.place.at(tile.end()))
    }

    fn stored(&self, tile: Span) -> Span {
        let blob = self.part.component.blob.span;
        let tile = self.bytes(tile);
        let Some(frames) = self.pieces.frames() else {
            let start = blob.offset().strict_add(tile.offset());
            return Span::exact(start, tile.byte_len());
        };
        // Skippable frames are empty, and belong to the next frame.
        let first = frames.partition_point(|frame| frame.content.offset() < tile.offset());
        let behind = frames.partition_point(|frame| frame.content.offset() < tile.end());
        match frames.get(first..behind).unwrap_or_default() {
            [] => Span::default(),
            [first, .., last] => Span::exact_between(first.stored.offset(), last.stored.end()),
            [only] => only.stored,
        }
    }
}

/// Cuts off the first bytes, `len` of them or all.
fn take<'b>(rest: &mut &'b mut [u8], len: usize) -> &'b mut [u8] {
    let len = len.min(rest.len());
    rest.split_off_mut(..len).unwrap_or_default()
}

/// The ends of the tiles of `count` values, which are whole units: every compressed component has the end of a
/// frame where one ends.
fn tile_ends(planes: &[Plane<'_>], unit: u64, count: u64) -> Vec<u64> {
    let framed = planes.iter();
    let mut framed = framed.filter_map(|plane| match plane.place {
        Place::Each(width) => Some((width, plane.pieces.frames()?)),
        Place::Units(..) => None,
    });
    let Some((width, frames)) = framed.next() else {
        let len = RAW_TILE.checked_next_multiple_of(unit).unwrap_or(count);
        let tiles = 1..=count.div_ceil(len);
        return tiles.map(|tile| tile.saturating_mul(len).min(count)).collect();
    };
    let ends = frames.iter().map(|frame| frame.content.end());
    let ends = ends.filter(|end| end.is_multiple_of(width));
    let mut ends: Vec<u64> = ends.filter_map(|end| end.checked_div(width)).collect();
    for (width, frames) in framed {
        let is_end = |end: u64| {
            let end = end.strict_mul(width);
            let at = frames.partition_point(|frame| frame.content.end() < end);
            frames.get(at).is_some_and(|frame| frame.content.end() == end)
        };
        ends.retain(|end| is_end(*end));
    }
    ends.retain(|end| end.is_multiple_of(unit) || *end == count);
    let mut start = 0u64;
    // Shorter ones are not worth the bookkeeping; the frames of every component end at `count`.
    ends.retain(|end| {
        let len = end.strict_sub(start);
        let is_end = len >= TILE || (*end == count && len > 0);
        if is_end {
            start = *end;
        }
        is_end
    });
    ends
}

/// Makes the value of an object tile by tile.
pub(crate) struct TileReader<'f> {
    tiled: Tiled<'f>,
    next: usize,
    /// `None` once all digests were compared.
    ledgers: Option<Vec<Ledger<'f>>>,
}

impl<'f> TileReader<'f> {
    /// Digests that cannot be combined are compared before anything is made.
    pub(crate) fn new(tiled: Tiled<'f>) -> Result<Self> {
        tiled.compare_chained()?;
        Ok(TileReader { next: 0, ledgers: Some(tiled.ledgers()), tiled })
    }

    /// The tiles from the next one on that end within these bytes.
    fn within(&self, byte_len: u64) -> Range<usize> {
        let values = byte_len.strict_div(self.tiled.value.byte_len);
        let end = self.tiled.tile(self.next).offset().saturating_add(values);
        self.next..self.tiled.ends.partition_point(|known| *known <= end)
    }
}

impl Units for TileReader<'_> {
    fn element_len(&self) -> usize {
        self.tiled.value.dtype.byte_len()
    }

    fn next(&self, room: u64) -> u64 {
        let last = self.within(room).last().unwrap_or(self.next);
        let (first, last) = (self.tiled.tile(self.next), self.tiled.tile(last));
        last.end().strict_sub(first.offset()).strict_mul(self.tiled.value.byte_len)
    }

    fn make(&mut self, out: &mut [u8]) -> Result<()> {
        let tiles = self.within(out.len() as u64);
        self.next = tiles.end;
        let ledgers = self.ledgers.as_deref().unwrap_or_default();
        self.tiled.read(tiles, ledgers, out)
    }

    fn finish(&mut self) -> Result<()> {
        self.ledgers.take().map_or(Ok(()), |ledgers| self.tiled.compare_sums(ledgers))
    }
}
