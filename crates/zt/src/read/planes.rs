//! Objects of `zt.planes/1`, decoded on all cores, straight into their place.
//!
//! ```text
//! plane0  [frame][frame][frame]...   a tile: one frame of each compressed plane, as many raw bytes,
//! plane1  [ raw ][ raw ][ raw ]...   decoded in a core's cache, merged into the destination
//! ```

use std::ops::Range;
use std::slice::ChunksMut;

use zt_container::codec::{Frame, FrameDecompressor, frames};
use zt_container::{
    Digest, DigestAlgorithm, Encoding, Hasher, Source, Span, bytes_of, check_declared,
};
use zt_formats::{Buffer, Dense, Elements, PlaneCodec, Planes, View};

use crate::cores::parallel;
use crate::cores::scratch::{self, Pool, Scratch};
use crate::cores::sums::{compare, explained, hash};
use crate::error::{Error, Result};
use crate::file::tensor::{Located, Tensor};
use zt_container::memory::{fetch, resize};

/// Below so many bytes, waking other cores costs more than they save.
const WORTH_IT: u64 = 1 << 20;

/// Elements that are put together at a time, or more where the frames of planes are longer.
const TILE: u64 = 1 << 20;

/// Elements that are merged at a time: their bytes in raw planes stay in the core's cache from
/// being fetched to being summed and merged.
const STRETCH: u64 = 64 << 10;

/// Where frames are longer than this, all of a plane is decoded at once: what a tile takes is
/// memory that every core needs.
const TILE_MAX: u64 = 8 << 20;

/// An object whose elements can be put together in tiles.
pub(crate) struct Tiled<'f> {
    tensor: Tensor<'f>,
    codec: PlaneCodec,
    planes: Vec<Plane<'f>>,
    /// Elements from the first to behind the last of each tile, one behind the other.
    tiles: Vec<Span>,
    byte_len: u64,
    /// The file's: memory that is new has to be cleared by the system, page by page, which takes as
    /// long as decoding into it.
    pool: &'f Pool,
}

struct Plane<'f> {
    part: Located<'f>,
    source: &'f dyn Source,
    /// `None` where the plane is raw.
    frames: Option<Vec<Frame>>,
    /// Whether its digest is to be compared.
    verify: bool,
}

/// Stored bytes that were read, and their crc32c where it is wanted.
struct Seen {
    span: Span,
    sum: Option<Digest>,
}

/// What has been read of a plane, from its first stored byte on.
pub(crate) struct Tally {
    end: u64,
    sum: Option<Digest>,
}

/// The dense value of an object of planes; `None` where the general way is as good.
pub(crate) fn to_dense(tensor: &Tensor<'_>) -> Result<Option<Dense<'static>>> {
    let Some(tiled) = Tiled::new(tensor)? else {
        return Ok(None);
    };
    let mut out = Buffer::try_zeroed(tiled.byte_len)?;
    let mut tallies = tiled.tallies();
    // A chain of blocks: one core hashes while the others decode.
    let (hashed, read) = parallel::join(
        || tiled.compare_chained(),
        || tiled.read(0..tiled.tiles.len(), &mut tallies, &mut out),
    );
    hashed?;
    read?;
    tiled.compare_sums(tallies)?;
    let mut elements = Elements::new(tiled.codec.dtype(), out);
    if let Some(name) = tiled.codec.logical_type() {
        elements = elements.with_logical_type(name.to_owned());
    }
    let dense = Dense::from_elements(tensor.shape(), elements);
    dense.map(Some).map_err(|error| tensor.blame_format(error))
}

impl<'f> Tiled<'f> {
    /// `None` where the object is none of planes, is small, or cannot be cut into tiles.
    pub(crate) fn new(tensor: &Tensor<'f>) -> Result<Option<Self>> {
        if tensor.format() != Planes::FORMAT {
            return Ok(None);
        }
        let codec = PlaneCodec::from_attributes(tensor.attributes())
            .map_err(|error| tensor.blame_format(error))?;
        let width = codec.plane_count() as u64;
        let mut planes = Vec::with_capacity(codec.plane_count());
        let mut len = None;
        for role in codec.roles() {
            let part = tensor.locate(role)?;
            let blob = &part.component.blob;
            let blame = |error| tensor.blame(error, part);
            check_declared(blob, tensor.limits()).map_err(blame)?;
            // The format has seen to it that planes are of one length, where that is said.
            let plane_len = tensor.decoded_len_of(part)?;
            if blob.decoded_len.is_none() || len.is_some_and(|len| len != plane_len) {
                return Ok(None);
            }
            len = Some(plane_len);
            let source = tensor.source(part);
            let frames = match blob.encoding {
                Encoding::Raw => None,
                _ => match frames(source, blob).map_err(blame)? {
                    Some(frames) => Some(frames),
                    None => return Ok(None),
                },
            };
            planes.push(Plane {
                part,
                source,
                frames,
                verify: tensor.must_verify(part),
            });
        }
        let byte_len = len.and_then(|len| len.checked_mul(width));
        let Some((len, byte_len)) = len.zip(byte_len).filter(|(_, len)| *len >= WORTH_IT) else {
            return Ok(None);
        };
        let tiles = tiles(&planes, len);
        let is_too_long = |tile: &Span| tile.byte_len() > TILE_MAX;
        Ok((!tiles.iter().any(is_too_long)).then(|| Tiled {
            tensor: *tensor,
            codec,
            planes,
            tiles,
            byte_len,
            pool: tensor.pool(),
        }))
    }

    /// Bytes of one element.
    pub(crate) fn element_len(&self) -> usize {
        self.codec.plane_count()
    }

    pub(crate) fn tile_count(&self) -> usize {
        self.tiles.len()
    }

    /// Bytes of the dense value that these tiles make up; tiles that do not exist have none.
    pub(crate) fn byte_len_of(&self, tiles: Range<usize>) -> u64 {
        let width = self.codec.plane_count() as u64;
        let tiles = self.tiles.get(tiles).unwrap_or_default();
        let elements = tiles
            .iter()
            .map(|tile| tile.byte_len())
            .fold(0, u64::saturating_add);
        elements.saturating_mul(width)
    }

    /// For the first call of [`Tiled::read`].
    pub(crate) fn tallies(&self) -> Vec<Tally> {
        let tally = |plane: &Plane<'_>| Tally {
            end: plane.part.component.blob.span.offset(),
            sum: Some(Digest::Crc32c(0)), // The crc32c of no bytes.
        };
        self.planes.iter().map(tally).collect()
    }

    /// Puts tiles together that follow those of the call before. `out` has exactly their bytes.
    pub(crate) fn read(
        &self,
        tiles: Range<usize>,
        tallies: &mut [Tally],
        out: &mut [u8],
    ) -> Result<()> {
        let mut rest = out;
        let mut work = Vec::with_capacity(tiles.len());
        for at in tiles {
            let len = self.byte_len_of(at..at.saturating_add(1));
            let len = usize::try_from(len).unwrap_or(usize::MAX).min(rest.len());
            let (part, behind) = std::mem::take(&mut rest).split_at_mut(len);
            work.push((self.tiles.get(at).copied().unwrap_or_default(), part));
            rest = behind;
        }
        let seen = parallel::map_owned(work, |(tile, part)| {
            self.pool.with(|scratch| self.merge(tile, part, scratch))
        })?;
        for of_tile in seen {
            for (tally, seen) in tallies.iter_mut().zip(of_tile) {
                tally.follow(seen);
            }
        }
        Ok(())
    }

    /// Puts one tile together; what was seen of every plane.
    ///
    /// Frames are decoded as wholes; raw planes are fetched as they are merged, stretch by stretch,
    /// and take next to no memory.
    fn merge(&self, tile: Span, out: &mut [u8], scratch: &mut Scratch) -> Result<Vec<Seen>> {
        let framed = self.planes.iter().filter(|plane| plane.frames.is_some());
        let (framed, count) = (framed.count() as u64, self.planes.len() as u64);
        let stretch = STRETCH.min(tile.byte_len());
        let byte_len = framed.saturating_mul(tile.byte_len());
        let rooms = count.saturating_sub(framed).saturating_mul(stretch);
        resize(&mut scratch.content, byte_len.saturating_add(rooms))?;
        let Scratch {
            stored,
            content,
            decompressor,
        } = scratch;
        let size = |len: u64| usize::try_from(len).unwrap_or(usize::MAX);
        let framed = size(byte_len).min(content.len());
        let (contents, rooms) = content.split_at_mut(framed);
        let mut contents = contents.chunks_mut(size(tile.byte_len()).max(1));
        let mut parts = Vec::with_capacity(self.planes.len());
        for plane in &self.planes {
            let content = plane.frames.as_ref().and_then(|_| contents.next());
            let part = plane.begin(tile, content, stored, decompressor);
            parts.push(part.map_err(|error| self.blame(error, plane))?);
        }
        let stretch = size(stretch).max(1);
        let stretches = out.chunks_mut(stretch.saturating_mul(self.planes.len()));
        for (at, out) in stretches.enumerate() {
            let start = at.saturating_mul(stretch);
            let len = out.len() / self.planes.len();
            let mut rooms = rooms.chunks_mut(stretch);
            let mut lent: [&[u8]; 8] = [&[]; 8];
            for ((plane, part), lent) in self.planes.iter().zip(&mut parts).zip(&mut lent) {
                let bytes = part.stretch(plane.source, start, len, &mut rooms);
                *lent = bytes.map_err(|error| self.blame(error, plane))?;
            }
            let lent = lent.get(..self.planes.len()).unwrap_or_default();
            self.codec.merge(lent, out);
        }
        Ok(parts.into_iter().map(Part::seen).collect())
    }

    fn blame(&self, error: Error, plane: &Plane<'_>) -> Error {
        let blob = &plane.part.component.blob;
        let error = match plane.verify {
            true => explained(plane.source, blob, error),
            false => error,
        };
        self.tensor.blame(error, plane.part)
    }

    /// Compares the digests that do not come together from those of pieces.
    pub(crate) fn compare_chained(&self) -> Result<()> {
        let chained = |plane: &Plane<'_>| {
            let algorithm = plane.algorithm();
            if algorithm.is_none_or(|algorithm| algorithm == DigestAlgorithm::Crc32c) {
                return Ok(());
            }
            let blob = &plane.part.component.blob;
            let hashed = hash(plane.source, blob);
            hashed.map_err(|error| self.tensor.blame(error, plane.part))
        };
        parallel::map(&self.planes, chained).map(drop)
    }

    /// Compares the digests of what was read, which is all of it, and remembers that they are right.
    pub(crate) fn compare_sums(&self, tallies: Vec<Tally>) -> Result<()> {
        for (plane, tally) in self.planes.iter().zip(tallies) {
            let sum = || match (plane.algorithm(), &plane.part.component.blob.digest) {
                (Some(DigestAlgorithm::Crc32c), Some(expected)) => {
                    compare(expected, tally.complete(plane)?)
                }
                _ => Ok(()),
            };
            sum().map_err(|error| self.tensor.blame(error, plane.part))?;
            if plane.verify {
                self.tensor.set_verified(plane.part);
            }
        }
        Ok(())
    }
}

impl<'f> Plane<'f> {
    /// How its digest is to be compared; `None` where it is not.
    fn algorithm(&self) -> Option<DigestAlgorithm> {
        let digest = self.part.component.blob.digest.as_ref();
        digest.filter(|_| self.verify)?.algorithm()
    }

    /// Where the elements of a tile are stored.
    fn stored(&self, tile: Span) -> Span {
        let blob = self.part.component.blob.span;
        let Some(frames) = &self.frames else {
            let start = blob.offset().saturating_add(tile.offset());
            return Span::new(start, tile.byte_len()).unwrap_or_default();
        };
        // Skippable frames, which are empty, go with what is behind them.
        let first = frames.partition_point(|frame| frame.content.offset() < tile.offset());
        let behind = frames.partition_point(|frame| frame.content.offset() < tile.end());
        let frames = frames.get(first..behind).unwrap_or_default();
        let (first, last) = (frames.first(), frames.last());
        let span = first
            .zip(last)
            .and_then(|(first, last)| Span::between(first.stored.offset(), last.stored.end()));
        span.unwrap_or_default()
    }

    /// The part of this plane that is in a tile; decoded into `content`, which is as long, where the
    /// plane is framed.
    fn begin<'t>(
        &self,
        tile: Span,
        content: Option<&'t mut [u8]>,
        stored: &mut Vec<u8>,
        decompressor: &mut Option<FrameDecompressor>,
    ) -> Result<Part<'t>> {
        let span = self.stored(tile);
        let wants_sum = self.algorithm() == Some(DigestAlgorithm::Crc32c);
        let sum = wants_sum.then(|| Hasher::new(DigestAlgorithm::Crc32c));
        let mut sum = sum.transpose()?;
        let Some(content) = content else {
            let content = None;
            return Ok(Part { span, content, sum });
        };
        let bytes = match self.source.slice(span) {
            Some(bytes) => bytes,
            None => fetch(stored, self.source, span)?,
        };
        if let Some(sum) = &mut sum {
            sum.update(bytes);
        }
        scratch::decompressor(decompressor)?.decode_into(bytes, content)?;
        let content = Some(&*content);
        Ok(Part { span, content, sum })
    }
}

/// The part of one plane that is in one tile.
struct Part<'t> {
    /// Where it is stored.
    span: Span,
    /// All of it; `None` where it is raw, and comes in stretches.
    content: Option<&'t [u8]>,
    /// Of the stored bytes, where it is wanted: of raw ones as they come.
    sum: Option<Hasher>,
}

impl Part<'_> {
    /// `len` bytes from `start` on, the stretch behind the one before. Raw ones that the source does
    /// not lend are in the next one of `rooms`.
    fn stretch<'b>(
        &mut self,
        source: &'b dyn Source,
        start: usize,
        len: usize,
        rooms: &mut ChunksMut<'b, u8>,
    ) -> Result<&'b [u8]>
    where
        Self: 'b,
    {
        if let Some(content) = self.content {
            return Ok(content
                .get(start..start.saturating_add(len))
                .unwrap_or_default());
        }
        let offset = self.span.offset().saturating_add(start as u64);
        let span = Span::new(offset, len as u64).unwrap_or_default();
        let bytes = match source.slice(span) {
            Some(bytes) => bytes,
            None => {
                let room = rooms.next().and_then(|room| room.get_mut(..len));
                let room = room.unwrap_or_default();
                source.read_at(offset, room)?;
                room
            }
        };
        if let Some(sum) = &mut self.sum {
            sum.update(bytes);
        }
        Ok(bytes)
    }

    fn seen(self) -> Seen {
        let sum = self.sum.map(Hasher::finish);
        Seen {
            span: self.span,
            sum,
        }
    }
}

impl Tally {
    fn follow(&mut self, seen: Seen) {
        self.end = seen.span.end();
        let total = self.sum.take().zip(seen.sum);
        self.sum = total.and_then(|(total, sum)| total.followed_by(&sum, seen.span.byte_len()));
    }

    /// The crc32c of all of the blob: of what is behind the last tile, too, which is the table of
    /// its frames.
    fn complete(mut self, plane: &Plane<'_>) -> Result<Option<Digest>> {
        let span = Span::between(self.end, plane.part.component.blob.span.end());
        let span = span.unwrap_or_default();
        if !span.is_empty() {
            let sum = DigestAlgorithm::Crc32c.digest(&bytes_of(plane.source, span)?)?;
            self.follow(Seen {
                span,
                sum: Some(sum),
            });
        }
        Ok(self.sum)
    }
}

/// The tiles of `len` elements: every compressed plane has the end of a frame where one ends.
fn tiles(planes: &[Plane<'_>], len: u64) -> Vec<Span> {
    let mut framed = planes.iter().filter_map(|plane| plane.frames.as_ref());
    let mut ends: Vec<u64> = match framed.next() {
        Some(frames) => frames.iter().map(|frame| frame.content.end()).collect(),
        None => (1..=len.div_ceil(TILE))
            .map(|tile| tile.saturating_mul(TILE).min(len))
            .collect(),
    };
    for frames in framed {
        let is_end = |end: u64| {
            let at = frames.partition_point(|frame| frame.content.end() < end);
            frames
                .get(at)
                .is_some_and(|frame| frame.content.end() == end)
        };
        ends.retain(|end| is_end(*end));
    }
    let mut tiles = Vec::new();
    let mut start = 0u64;
    for end in ends {
        let byte_len = end.saturating_sub(start);
        // Shorter ones are not worth the bookkeeping; the frames of every plane end at `len`.
        if byte_len >= TILE || (end == len && byte_len > 0) {
            tiles.extend(Span::between(start, end));
            start = end;
        }
    }
    tiles
}
