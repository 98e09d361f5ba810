//! Parts of a component. Only the pieces of the part are read.

use std::ops::Range;
use std::sync::Arc;

use zt_container::codec::{Frame, table_span};
use zt_container::memory::{in_memory, resize};
use zt_container::{CHUNK, Encoding, Source, Span, Stretches, check_declared};
use zt_formats::Bytes;
use zt_manifest::{ByteOrder, DType};

use crate::cores::announce::announce_all;
use crate::cores::ledger::Ledger;
use crate::cores::parallel;
use crate::cores::pieces::Pieces;
use crate::cores::scratch::Scratch;
use crate::error::Result;
use crate::file::chunks::Checked;
use crate::file::tensor::{ComponentReader, Located, Tensor, copy_some, to_little_endian};
use crate::read::strided::Strided;

/// Raw bytes that are fetched at a time, at multiples of this from the start: small runs that lie
/// close together, in either direction, share a read.
///
/// Pays: single rows of 2.5 KB take 0.43 of the CPU time that they take with 64 KiB, and rows of 18 KB 0.68. Columns
/// take 1.05 of it, and 0.76 of that with 4 KiB.
const WINDOW: u64 = 16 << 10;

/// The same where bytes are made in order: going back costs what lies before, so it has to be rare.
///
/// Pays: not measured.
const SEQUENTIAL_WINDOW: u64 = 4 << 20;

/// Frames with more content than this are streamed, not held. The length that a frame declares for itself
/// is never allocated.
const LARGEST_FRAME: u64 = 8 << 20;

/// Frames with more stored bytes are not decoded on several cores, which would hold them all at once.
const LARGEST_STORED: u64 = 16 << 20;

/// For fewer pieces, or less content, waking other cores costs more than they save.
///
/// Pays: nothing: slices of 4.7 MB in zstd take as long with 0 and with 30. The last of few pieces is kept for the next
/// part.
const MANY: usize = 3;
const WORTH_IT: usize = 1 << 20;

/// Decoded bytes that a stream holds.
const STREAM_WINDOW: u64 = 256 << 10;

/// The decoded little-endian bytes of a component, in any order. One piece of them is in memory.
///
/// | stored | what a part costs |
/// | --- | --- |
/// | raw, lent by the source | itself |
/// | raw | the 16 KiB around it; with chunk digests, the chunks that it is in, until they were checked |
/// | frames that can be told apart | the frames that it is in |
/// | one large frame, or frames of unknown lengths | all before it; all, to go back |
/// | zstd of unknown length, from before 1.2 | all |
///
/// Nothing is verified, unless all is decoded, or the component has chunk digests.
pub(crate) struct PartReader<'f> {
    cut: Cut<'f>,
    byte_len: u64,
    backing: Backing<'f>,
    /// Whether the component has chunk digests that have yet to be read, with the first part.
    has_table: bool,
    /// The place of `scratch.content` in the decoded bytes.
    held: Span,
    scratch: Scratch,
}

/// A component, and the decoded bytes of it that a part of its object needs.
pub(crate) struct Need<'f> {
    pub(crate) tensor: Tensor<'f>,
    pub(crate) part: Located<'f>,
    pub(crate) ranges: Vec<Range<u64>>,
}

enum Backing<'f> {
    /// All of it, lent or decoded.
    Whole(Bytes<'f>),
    /// Pieces, each read when it is needed.
    Pieces,
    /// A stream, read up to the end of `held`. Bytes before are read again, by another reader, which this
    /// function opens.
    Stream(Box<ComponentReader<'f>>, Open<'f>, Option<Box<PartReader<'f>>>),
}

/// How a component is opened.
pub(crate) type Open<'f> = fn(&Tensor<'f>, Located<'f>) -> Result<PartReader<'f>>;

/// The pieces of a component, which any core can read.
struct Cut<'f> {
    tensor: Tensor<'f>,
    part: Located<'f>,
    pieces: Pieces<'f>,
    /// Raw bytes that are fetched at a time.
    window: u64,
    /// The chunk digests, once they were read.
    chunks: Option<Arc<Checked>>,
}

impl<'f> PartReader<'f> {
    /// Readers of parts of components. Remote sources fetch the tables of frames of all of them at once, and
    /// then all pieces.
    pub(crate) fn announced(needs: &[Need<'f>]) -> Result<Vec<Self>> {
        let table = |need: &Need<'f>| {
            let span = table_span(&need.part.component.blob)?;
            Some((need.tensor.source(need.part), span))
        };
        announce_in_order(needs.iter().filter_map(table).collect());
        let readers = needs.iter().map(|need| Self::new(&need.tensor, need.part));
        let readers = readers.collect::<Result<Vec<_>>>()?;
        let places = readers.iter().zip(needs).filter(|(reader, _)| reader.is_remote());
        let places = places
            .flat_map(|(reader, need)| need.ranges.iter().flat_map(|range| reader.stored(range)));
        announce_in_order(places.collect());
        Ok(readers)
    }

    pub(crate) fn new(tensor: &Tensor<'f>, part: Located<'f>) -> Result<Self> {
        let component = part.component;
        let blob = &component.blob;
        let source = tensor.source(part);
        let blame = |error| tensor.blame(error, part);
        check_declared(blob, tensor.limits()).map_err(blame)?;
        let is_little = component.byte_order == ByteOrder::Little;
        let mut pieces = Pieces::stretches(source, blob.span, CHUNK);
        let backing = match (blob.encoding, blob.decoded_len) {
            (Encoding::Raw, _) => match source.slice(blob.span).filter(|_| is_little) {
                Some(lent) => Backing::Whole(lent.into()),
                None => Backing::Pieces,
            },
            (_, None) => Backing::Whole(tensor.bytes_of(part)?),
            _ => {
                // A frame may end within an element, which could not be turned there.
                let is_held = |frame: &Frame| frame.content.byte_len() <= LARGEST_FRAME;
                let is_held =
                    |pieces: &Pieces<'_>| pieces.frames().iter().copied().flatten().all(is_held);
                match Pieces::of(source, blob).map_err(blame)?.filter(|it| is_little && is_held(it))
                {
                    Some(frames) => {
                        pieces = frames;
                        Backing::Pieces
                    }
                    None => {
                        let reader = Box::new(tensor.reader_of(part, false)?);
                        Backing::Stream(reader, PartReader::whole, None)
                    }
                }
            }
        };
        let mut reader = Self::on(tensor, part, pieces, backing);
        (reader.cut.chunks, reader.has_table) = tensor.known_chunks(part);
        Ok(reader)
    }

    /// All of the component, read and verified.
    pub(crate) fn whole(tensor: &Tensor<'f>, part: Located<'f>) -> Result<Self> {
        let backing = Backing::Whole(tensor.bytes_of(part)?);
        let pieces = Pieces::stretches(tensor.source(part), part.component.blob.span, CHUNK);
        Ok(Self::on(tensor, part, pieces, backing))
    }

    /// The component from front to back, and verified at its end: see [`PartReader::finish`].
    pub(crate) fn in_order(tensor: &Tensor<'f>, part: Located<'f>) -> Result<Self> {
        let reader = tensor.reader_of(part, tensor.must_verify(part))?;
        let pieces = Pieces::stretches(tensor.source(part), part.component.blob.span, CHUNK);
        Ok(Self::on(tensor, part, pieces, Backing::Stream(Box::new(reader), Self::new, None)))
    }

    fn on(
        tensor: &Tensor<'f>,
        part: Located<'f>,
        pieces: Pieces<'f>,
        backing: Backing<'f>,
    ) -> Self {
        let blob = &part.component.blob;
        let byte_len = match &backing {
            Backing::Whole(bytes) => bytes.len() as u64,
            _ => blob.decoded_len.unwrap_or(blob.span.byte_len()),
        };
        let window = if pieces.source.is_sequential() { SEQUENTIAL_WINDOW } else { WINDOW };
        PartReader {
            cut: Cut { tensor: *tensor, part, pieces, window, chunks: None },
            byte_len,
            backing,
            has_table: false,
            held: Span::default(),
            scratch: tensor.pool().take(),
        }
    }

    pub(crate) fn byte_len(&self) -> u64 {
        self.byte_len
    }

    pub(crate) fn role(&self) -> &'f str {
        self.cut.part.role
    }

    pub(crate) fn is_remote(&self) -> bool {
        self.cut.pieces.source.is_remote()
    }

    /// The stored bytes that a part is read from, as far as they are known.
    pub(crate) fn stored(&self, range: &Range<u64>) -> Vec<(&'f dyn Source, Span)> {
        let (source, blob) = (self.cut.pieces.source, &self.cut.part.component.blob);
        let range = range.start.min(self.byte_len)..range.end.min(self.byte_len);
        let mut spans = Vec::new();
        if range.is_empty() || !matches!(self.backing, Backing::Pieces) {
            return spans;
        }
        if let Some(frames) = self.cut.pieces.frames() {
            let first = frames.partition_point(|frame| frame.content.end() <= range.start);
            let frames = frames.iter().skip(first);
            let frames = frames.take_while(|frame| frame.content.offset() < range.end);
            spans.extend(frames.map(|frame| (source, frame.stored)));
        } else if self.has_table || self.cut.unchecked_in(&range).next().is_some() {
            let table = blob.chunks.as_ref().filter(|_| self.has_table);
            let chunks = Stretches::new(blob.span, CHUNK);
            spans.push((source, chunks.around(self.cut.stored(&range))));
            spans.extend(table.map(|table| (source, table.span)));
        } else {
            spans.push((source, self.cut.stored(&range)));
        }
        spans
    }

    /// Copies many values, and forgets them. Those in many pieces are read on all cores.
    pub(crate) fn copy_values(&mut self, wanted: &mut Vec<Strided<'_>>) -> Result<()> {
        if !self.copy_on_all_cores(wanted)? {
            for wanted in &mut *wanted {
                for (at, value) in wanted.each_value() {
                    self.copy_here(at, value)?;
                }
            }
        }
        wanted.clear();
        Ok(())
    }

    pub(crate) fn copy(&mut self, at: u64, out: &mut [u8]) -> Result<()> {
        if self.is_remote() {
            let end = at.saturating_add(out.len() as u64);
            announce_in_order(self.stored(&(at..end)));
        }
        if out.len() >= WORTH_IT && self.copy_on_all_cores(&mut [Strided::bytes(at, out)])? {
            return Ok(());
        }
        self.copy_here(at, out)
    }

    /// Reads the table of chunk digests before the first part.
    fn read_table(&mut self) -> Result<()> {
        if std::mem::take(&mut self.has_table) {
            self.cut.chunks = self.cut.tensor.chunks_of(self.cut.part)?;
        }
        Ok(())
    }

    /// False if the values lie in few pieces, or if a piece cannot be read. The memory then has unspecified
    /// contents, and this core reads again, which finds the error.
    fn copy_on_all_cores(&mut self, wanted: &mut [Strided<'_>]) -> Result<bool> {
        self.read_table()?;
        let cut = &self.cut;
        let is_apart = cut.pieces.frames().is_some() || cut.chunks.is_some();
        if !is_apart
            || !matches!(self.backing, Backing::Pieces)
            || cut.pieces.source.is_sequential()
        {
            return Ok(false);
        }
        let piece_at = |at| {
            let piece = cut.piece_at(at);
            piece.filter(|piece| piece.stored.byte_len() <= LARGEST_STORED)
        };
        let Some(mut tasks) = Strided::by_piece(wanted, piece_at) else {
            return Ok(false);
        };
        let content = tasks.iter().map(|(piece, _)| piece.content.byte_len());
        if tasks.len() < MANY || content.fold(0, u64::strict_add) < WORTH_IT as u64 {
            return Ok(false);
        }
        tasks.sort_by_key(|(piece, _)| piece.stored.offset());
        announce_all(&tasks, |(piece, _)| (cut.pieces.source, piece.stored));
        let copied = parallel::map_owned(tasks, |(piece, parts)| {
            cut.tensor.pool().with(|scratch| cut.copy(piece, parts, scratch))
        });
        Ok(copied.is_ok())
    }

    fn copy_here(&mut self, mut at: u64, mut out: &mut [u8]) -> Result<()> {
        self.read_table()?;
        if let (Backing::Whole(bytes), Some(chunks)) = (&self.backing, &self.cut.chunks) {
            let end = at.saturating_add(out.len() as u64).min(self.byte_len);
            self.cut.check_lent(chunks, bytes, at.min(end)..end)?;
        }
        while !out.is_empty() {
            if !(self.held.offset()..self.held.end()).contains(&at) {
                let len = self.load(at, out)?;
                if len > 0 {
                    at = at.strict_add(len as u64);
                    out = out.get_mut(len..).unwrap_or_default();
                    continue;
                }
            }
            let held = match &self.backing {
                // Also a table that lied.
                Backing::Whole(bytes) => from(bytes, at),
                _ if (self.held.offset()..self.held.end()).contains(&at) => {
                    from(&self.scratch.content, at.strict_sub(self.held.offset()))
                }
                // No byte there could be read.
                _ => &[],
            };
            let len = copy_some(held, out);
            if len == 0 {
                // The component ends before what was asked for.
                let error = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
                return Err(self.cut.tensor.blame(error, self.cut.part));
            }
            at = at.strict_add(len as u64);
            out = out.get_mut(len..).unwrap_or_default();
        }
        Ok(())
    }

    /// Makes the window hold the byte `at`, if there is one; or fills the beginning of `out` with the bytes
    /// from `at` on, if these are a piece, and returns their number.
    fn load(&mut self, at: u64, out: &mut [u8]) -> Result<usize> {
        let held = std::mem::take(&mut self.held);
        let cut = &self.cut;
        match &mut self.backing {
            Backing::Whole(_) => {}
            Backing::Pieces => {
                let Some(piece) = cut.straight(at, out.len()).or_else(|| cut.piece_at(at)) else {
                    return Ok(0);
                };
                let byte_len = piece.content.byte_len();
                let place = out.get_mut(..in_memory(byte_len));
                let place = place.filter(|_| piece.content.offset() == at && byte_len > 0);
                let mut content = std::mem::take(&mut self.scratch.content);
                let (place, straight) = match place {
                    Some(place) => (place, in_memory(byte_len)),
                    None => {
                        resize(&mut content, byte_len)
                            .map_err(|error| cut.tensor.blame(error, cut.part))?;
                        (&mut content[..], 0)
                    }
                };
                let read = cut.read(piece, place, &mut self.scratch);
                self.scratch.content = content;
                match read {
                    Ok(()) if straight > 0 => return Ok(straight),
                    Ok(()) => self.held = piece.content,
                    // The table lies, or the frame is damaged: a full read finds out by the digest.
                    Err(_) if cut.pieces.frames().is_some() => {
                        self.backing = Backing::Whole(cut.tensor.bytes_of(cut.part)?);
                    }
                    Err(error) => return Err(error),
                }
            }
            Backing::Stream(_, open, again) if at < held.offset() => {
                self.held = held;
                let again = match again {
                    Some(again) => again,
                    None => again.insert(Box::new(open(&cut.tensor, cut.part)?)),
                };
                let len = in_memory((held.offset().strict_sub(at)).min(out.len() as u64));
                again.copy(at, out.get_mut(..len).unwrap_or_default())?;
                return Ok(len);
            }
            Backing::Stream(reader, ..) => {
                let mut held = held;
                while held.end() <= at {
                    held = next_of(reader, held, &mut self.scratch.content)?;
                    if held.is_empty() {
                        break;
                    }
                }
                self.held = held;
            }
        }
        Ok(0)
    }

    /// Reads what is left of a component that is read in order, so that its digest is compared.
    pub(crate) fn finish(&mut self) -> Result<()> {
        if let Backing::Stream(reader, ..) = &mut self.backing {
            loop {
                self.held = next_of(reader, self.held, &mut self.scratch.content)?;
                if self.held.is_empty() {
                    break;
                }
            }
        }
        Ok(())
    }
}

impl Drop for PartReader<'_> {
    /// The memory is used again: with memory of its own, each slice of small tensors spent half of its time on
    /// page faults.
    fn drop(&mut self) {
        self.cut.tensor.pool().give(std::mem::take(&mut self.scratch));
    }
}

/// Puts the bytes behind `held` into `content`, and returns their place; empty at the end.
fn next_of(reader: &mut ComponentReader<'_>, held: Span, content: &mut Vec<u8>) -> Result<Span> {
    resize(content, STREAM_WINDOW)?;
    let len = reader.read_elements(content)?;
    content.truncate(len);
    Ok(Span::exact(held.end(), len as u64))
}

impl Cut<'_> {
    /// The piece that holds the byte `at`, if there is one.
    fn piece_at(&self, at: u64) -> Option<Frame> {
        if let Some(frames) = self.pieces.frames() {
            let place = frames.partition_point(|frame| frame.content.end() <= at);
            return frames.get(place).copied();
        }
        let len = if self.unchecked(at).is_some() { CHUNK } else { self.window };
        let span = self.part.component.blob.span;
        let stretches = Pieces::stretches(self.pieces.source, span, len);
        stretches.get(in_memory(at.strict_div(len))).filter(|piece| !piece.content.is_empty())
    }

    /// Many raw bytes from `at` on, which need no check and are read where they are wanted.
    fn straight(&self, at: u64, len: usize) -> Option<Frame> {
        let len = len as u64;
        let component = self.part.component;
        let width = component.dtype.map_or(1, DType::byte_len) as u64;
        // Whole elements can be turned by themselves.
        let is_apart = component.byte_order == ByteOrder::Little
            || (at.is_multiple_of(width) && len.is_multiple_of(width));
        if self.pieces.frames().is_some() || len < self.window || !is_apart {
            return None;
        }
        let len = match &self.chunks {
            Some(_) if self.unchecked(at).is_some() => return None,
            Some(_) => len.min(CHUNK.strict_sub(at % CHUNK)),
            None => len,
        };
        let start = component.blob.span.offset().checked_add(at)?;
        Some(Frame { stored: Span::new(start, len)?, content: Span::new(at, len)? })
    }

    /// The place of bytes of a raw component in its file.
    fn stored(&self, range: &Range<u64>) -> Span {
        let at = |within: u64| self.part.component.blob.span.offset().strict_add(within);
        Span::exact_between(at(range.start), at(range.end))
    }

    /// The number of the chunk with the byte `at`, if it has to be checked.
    fn unchecked(&self, at: u64) -> Option<(&Checked, u64)> {
        let chunks = self.chunks.as_deref()?;
        let at = at / CHUNK;
        (!chunks.is_right(at)).then_some((chunks, at))
    }

    /// The numbers of the chunks with these bytes that have to be checked.
    fn unchecked_in(&self, range: &Range<u64>) -> impl Iterator<Item = u64> {
        let stored = self.stored(range);
        let chunks = self.chunks.iter();
        chunks.flat_map(move |it| it.chunks.touched(stored).filter(|at| !it.is_right(*at)))
    }

    /// Reads a piece into `out`, which has exactly its content.
    fn read(&self, piece: Frame, out: &mut [u8], scratch: &mut Scratch) -> Result<()> {
        let blame = |error| self.tensor.blame(error, self.part);
        let read = self.pieces.read(piece.stored, out, scratch, &Ledger::default());
        read.map_err(|error| blame(error.into()))?;
        if self.pieces.frames().is_none()
            && let Some((chunks, at)) = self.unchecked(piece.content.offset())
        {
            chunks.check(at, out).map_err(blame)?;
        }
        to_little_endian(self.part.component, out);
        Ok(())
    }

    /// Reads a piece, and copies values out of it.
    fn copy(&self, piece: Frame, mut parts: Vec<Strided<'_>>, scratch: &mut Scratch) -> Result<()> {
        if let [part] = &mut parts[..]
            && let Some(out) =
                part.as_bytes().filter(|out| out.len() as u64 == piece.content.byte_len())
        {
            return self.read(piece, out, scratch);
        }
        let mut content = std::mem::take(&mut scratch.content);
        resize(&mut content, piece.content.byte_len())?;
        self.read(piece, &mut content, scratch)?;
        for part in &mut parts {
            for (at, value) in part.each_value() {
                let held = from(&content, at.strict_sub(piece.content.offset()));
                value.copy_from_slice(held.get(..value.len()).unwrap_or_default());
            }
        }
        scratch.content = content;
        Ok(())
    }

    /// Compares the digests of the chunks of these bytes, which the source lends.
    fn check_lent(&self, chunks: &Checked, bytes: &[u8], range: Range<u64>) -> Result<()> {
        let unchecked: Vec<u64> = self.unchecked_in(&range).collect();
        let check = |at: &u64| {
            let place = Stretches::new(Span::exact(0, bytes.len() as u64), CHUNK).get(*at);
            let place = place.unwrap_or_default();
            let bytes = bytes.get(in_memory(place.offset())..in_memory(place.end()));
            chunks.check(*at, bytes.unwrap_or_default())
        };
        let checked = if unchecked.len() < MANY {
            unchecked.iter().try_for_each(check)
        } else {
            parallel::map(&unchecked, check).map(drop)
        };
        checked.map_err(|error| self.tensor.blame(error, self.part))
    }
}

/// Announces places to remote sources, each source in the order of its offsets.
pub(crate) fn announce_in_order(mut places: Vec<(&dyn Source, Span)>) {
    places.retain(|(source, _)| source.is_remote());
    places.sort_by_key(|(source, span)| (std::ptr::from_ref(*source).addr(), span.offset()));
    announce_all(&places, |place| *place);
}

/// The bytes from `at` on; none past the end.
fn from(bytes: &[u8], at: u64) -> &[u8] {
    let start = usize::try_from(at).ok();
    start.and_then(|at| bytes.get(at..)).unwrap_or_default()
}
