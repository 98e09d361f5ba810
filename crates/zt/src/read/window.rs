//! Parts of a component. Only the frames and bytes of the part are read.

use std::ops::Range;
use std::sync::Arc;

use zt_container::codec::Frame;
use zt_container::memory::{fetch, in_memory, resize};
use zt_container::{CHUNK, Encoding, Source, Span, check_declared, codec};
use zt_formats::Bytes;
use zt_manifest::{ByteOrder, DType};

use crate::cores::announce::announce_all;
use crate::cores::parallel;
use crate::cores::scratch::Scratch;
use crate::error::Result;
use crate::file::chunks::Checked;
use crate::file::tensor::{ComponentReader, Located, Tensor, to_little_endian};
use crate::read::frames::{self, Wanted};

/// Raw bytes that are fetched at a time, at multiples of this from the start: small runs that lie
/// close together, in either direction, share a read.
const WINDOW: u64 = 64 << 10;

/// The same where bytes are made in order: going back costs what lies before, so it has to be rare.
const SEQUENTIAL_WINDOW: u64 = 4 << 20;

/// Frames with more content than this are streamed, not held. The length that a frame declares for itself
/// is never allocated.
const LARGEST_FRAME: u64 = 8 << 20;

/// For fewer chunks, waking other cores costs more than they save.
const MANY: usize = 4;

/// Decoded bytes that a stream holds.
const STREAM_WINDOW: u64 = 256 << 10;

/// The decoded little-endian bytes of a component. A window of them is in memory.
///
/// | stored | what a part costs |
/// | --- | --- |
/// | raw, lent by the source | itself |
/// | raw | the 64 KiB around it; with chunk digests, the chunks that it is in, until they were checked |
/// | frames that can be told apart | the frames that it is in |
/// | one large frame, or frames of unknown lengths | all before it; all, to go back |
/// | zstd of unknown length, from before 1.2 | all |
///
/// Nothing is verified, unless all is decoded, or the component has chunk digests.
pub(crate) struct Window<'f> {
    tensor: Tensor<'f>,
    part: Located<'f>,
    byte_len: u64,
    backing: Backing<'f>,
    /// Whether the component has chunk digests that have yet to be read, with the first part.
    has_table: bool,
    /// The chunk digests, once they were read.
    chunks: Option<Arc<Checked>>,
    /// The place of `scratch.content` in the decoded bytes.
    held: Span,
    scratch: Scratch,
}

enum Backing<'f> {
    /// All of it, lent or decoded.
    Whole(Bytes<'f>),
    /// Raw bytes, fetched so many at a time.
    Raw(u64),
    Frames(Vec<Frame>),
    /// A stream, read up to the end of `held`.
    Stream(Box<ComponentReader<'f>>),
}

impl<'f> Window<'f> {
    pub(crate) fn new(tensor: &Tensor<'f>, part: Located<'f>) -> Result<Self> {
        let component = part.component;
        let blob = &component.blob;
        let source = tensor.source(part);
        let blame = |error| tensor.blame(error, part);
        check_declared(blob, tensor.limits()).map_err(blame)?;
        let is_little = component.byte_order == ByteOrder::Little;
        let backing = match (blob.encoding, blob.decoded_len) {
            (Encoding::Raw, _) => match source.slice(blob.span).filter(|_| is_little) {
                Some(lent) => Backing::Whole(lent.into()),
                None if source.is_sequential() => Backing::Raw(SEQUENTIAL_WINDOW),
                None => Backing::Raw(WINDOW),
            },
            (_, None) => Backing::Whole(tensor.bytes_of(part)?),
            _ => {
                let frames = codec::frames(source, blob).map_err(blame)?;
                // A frame may end within an element, which could not be turned there.
                let is_held = |frame: &Frame| frame.content.byte_len() <= LARGEST_FRAME;
                match frames.filter(|frames| is_little && frames.iter().all(is_held)) {
                    Some(frames) => Backing::Frames(frames),
                    None => Backing::Stream(Box::new(tensor.reader_of(part, false)?)),
                }
            }
        };
        let has_table = blob.chunks.is_some();
        Ok(Window::on(tensor, part, backing, has_table))
    }

    /// All of the component, read and verified.
    pub(crate) fn whole(tensor: &Tensor<'f>, part: Located<'f>) -> Result<Self> {
        let bytes = tensor.bytes_of(part)?;
        Ok(Window::on(tensor, part, Backing::Whole(bytes), false))
    }

    fn on(tensor: &Tensor<'f>, part: Located<'f>, backing: Backing<'f>, has_table: bool) -> Self {
        let blob = &part.component.blob;
        let byte_len = match &backing {
            Backing::Whole(bytes) => bytes.len() as u64,
            _ => blob.decoded_len.unwrap_or(blob.span.byte_len()),
        };
        Window {
            tensor: *tensor,
            part,
            byte_len,
            backing,
            has_table,
            chunks: None,
            held: Span::default(),
            scratch: Scratch::default(),
        }
    }

    pub(crate) fn byte_len(&self) -> u64 {
        self.byte_len
    }

    /// Copies many values, and forgets them. Those in many frames are decoded on all cores.
    pub(crate) fn copy_values(&mut self, wanted: &mut Vec<Wanted<'_>>) -> Result<()> {
        if !self.copy_frames(wanted) {
            for wanted in &mut *wanted {
                for (at, value) in wanted.each_value() {
                    self.copy(at, value)?;
                }
            }
        }
        wanted.clear();
        Ok(())
    }

    /// As [`frames::copy`]; false if the component is not made of frames.
    fn copy_frames(&self, wanted: &mut [Wanted<'_>]) -> bool {
        match &self.backing {
            Backing::Frames(list) if !self.source().is_sequential() => {
                frames::copy(self.source(), list, self.tensor.pool(), wanted)
            }
            _ => false,
        }
    }

    pub(crate) fn copy(&mut self, mut at: u64, mut out: &mut [u8]) -> Result<()> {
        if out.len() >= frames::WORTH_IT && self.copy_frames(&mut [Wanted::bytes(at, out)]) {
            return Ok(());
        }
        if std::mem::take(&mut self.has_table) {
            let end = at.saturating_add(out.len() as u64).min(self.byte_len);
            let blob = self.part.component.blob.span;
            let next = Checked::around(blob, &(at.min(end)..end));
            self.chunks = self.tensor.chunks_of(self.part, next)?;
        }
        self.check_lent(at, out.len())?;
        let mut is_announced = false;
        while !out.is_empty() {
            let unchecked = self.unchecked(at, out.len());
            if let Some(wanted) = &unchecked
                && !is_announced
            {
                is_announced = true;
                // The chunks at both ends are read by themselves: a remote source fetches all at once.
                let (start, end) = (self.stored_at(wanted.start), self.stored_at(wanted.end));
                let stored = Span::exact_between(start, end);
                announce_all(&[stored], |span| (self.source(), *span));
            }
            let whole = self.copy_chunks(at, out)?;
            if whole > 0 {
                at = at.strict_add(whole as u64);
                out = out.get_mut(whole..).unwrap_or_default();
                continue;
            }
            if let Backing::Raw(window) = self.backing
                && unchecked.is_none()
                && self.is_turned_apart(at, out.len())
                && out.len() as u64 >= window
            {
                let read = self.source().read_at(self.stored_at(at), out);
                read.map_err(|error| self.tensor.blame(error, self.part))?;
                to_little_endian(self.part.component, out);
                return Ok(());
            }
            if !(self.held.offset()..self.held.end()).contains(&at) {
                self.load(at)?;
            }
            let held = match &self.backing {
                // Also a stream that had to go back, or a table that lied.
                Backing::Whole(bytes) => from(bytes, at),
                // The window begins behind `at` if no byte there could be read.
                _ => match at.checked_sub(self.held.offset()) {
                    Some(at) => from(&self.scratch.content, at),
                    None => &[],
                },
            };
            let len = held.len().min(out.len());
            let (part, behind) = out.split_at_mut(len);
            part.copy_from_slice(&held[..len]);
            if len == 0 {
                // The component ends before what was asked for.
                let error = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
                return Err(self.tensor.blame(error, self.part));
            }
            (at, out) = (at.strict_add(len as u64), behind);
        }
        Ok(())
    }

    /// Checks the chunks of these bytes, if the source lends them.
    fn check_lent(&self, at: u64, len: usize) -> Result<()> {
        let (Some(chunks), Backing::Whole(bytes)) = (&self.chunks, &self.backing) else {
            return Ok(());
        };
        let end = at.saturating_add(len as u64).min(self.byte_len);
        let of_range = Checked::of(at.min(end)..end);
        let unchecked: Vec<usize> = of_range.filter(|at| !chunks.is_right(*at)).collect();
        self.check(chunks, &unchecked, |at| {
            let range = chunks.range(at);
            let range = in_memory(range.start)..in_memory(range.end);
            bytes.get(range).unwrap_or_default()
        })
    }

    /// Compares the digests of some chunks, on all cores if there are several.
    fn check<'b>(
        &self,
        chunks: &Checked,
        wanted: &[usize],
        bytes: impl Fn(usize) -> &'b [u8] + Sync + Send,
    ) -> Result<()> {
        let check = |at: &usize| chunks.check(*at, bytes(*at));
        let checked = match wanted.len() {
            0..MANY => wanted.iter().try_for_each(check),
            _ => parallel::map(wanted, check).map(drop),
        };
        checked.map_err(|error| self.tensor.blame(error, self.part))
    }

    /// The bytes of the chunks around these, if some of them are fetched and not checked yet.
    fn unchecked(&self, at: u64, len: usize) -> Option<Range<u64>> {
        let chunks = self.chunks.as_deref()?;
        if !matches!(self.backing, Backing::Raw(_)) {
            return None;
        }
        let end = at.checked_add(len as u64)?.min(self.byte_len);
        let mut of_range = Checked::of(at.min(end)..end);
        let (first, last) = (of_range.start, of_range.end.checked_sub(1)?);
        let is_unchecked = of_range.any(|at| !chunks.is_right(at));
        is_unchecked.then(|| chunks.range(first).start..chunks.range(last).end)
    }

    /// Reads the whole chunks that `out` begins with straight into it, and checks them. Returns their
    /// number of bytes: 0 if there are none, or nothing to check.
    fn copy_chunks(&mut self, at: u64, out: &mut [u8]) -> Result<usize> {
        if self.unchecked(at, out.len()).is_none() || !at.is_multiple_of(CHUNK) {
            return Ok(0);
        }
        let Some(chunks) = self.chunks.clone() else {
            return Ok(0);
        };
        let left = self.byte_len.saturating_sub(at);
        let wanted = (out.len() as u64).min(left);
        let ragged = if wanted == left { 0 } else { wanted % CHUNK };
        let len = wanted - ragged;
        let Some(out) = out.get_mut(..in_memory(len)).filter(|out| !out.is_empty()) else {
            return Ok(0);
        };
        let read = self.source().read_at(self.stored_at(at), out);
        read.map_err(|error| self.tensor.blame(error, self.part))?;
        let stored = &*out;
        let of_range: Vec<usize> = Checked::of(at..at.strict_add(len)).collect();
        let first = of_range.first().copied().unwrap_or_default();
        self.check(&chunks, &of_range, |chunk| {
            let mut chunks = stored.chunks(in_memory(CHUNK));
            chunks.nth(chunk.strict_sub(first)).unwrap_or_default()
        })?;
        to_little_endian(self.part.component, out);
        Ok(in_memory(len))
    }

    /// Whether these bytes are whole elements, which can be turned by themselves.
    fn is_turned_apart(&self, at: u64, len: usize) -> bool {
        let component = self.part.component;
        let width = component.dtype.map_or(1, DType::byte_len);
        component.byte_order == ByteOrder::Little
            || (at.is_multiple_of(width as u64) && len.is_multiple_of(width))
    }

    fn source(&self) -> &'f dyn Source {
        self.tensor.source(self.part)
    }

    fn stored_at(&self, at: u64) -> u64 {
        self.part.component.blob.span.offset().saturating_add(at)
    }

    /// Makes the window hold the byte `at`, if there is one.
    fn load(&mut self, at: u64) -> Result<()> {
        let held = std::mem::take(&mut self.held);
        let source = self.source();
        let blame = |error| self.tensor.blame(error, self.part);
        match &mut self.backing {
            Backing::Whole(_) => {}
            Backing::Raw(window) => {
                let chunk = Checked::of(at..at.saturating_add(1)).start;
                let chunks = self.chunks.as_deref();
                let unchecked = chunks.filter(|chunks| !chunks.is_right(chunk));
                let window = unchecked.map_or(*window, |_| CHUNK);
                let start = at - at % window;
                let end = start.saturating_add(window).min(self.byte_len);
                let span = Span::between(start, end).unwrap_or_default();
                let stored = self.part.component.blob.span.offset().checked_add(start);
                let stored = stored.and_then(|offset| Span::new(offset, span.byte_len()));
                let content = &mut self.scratch.content;
                fetch(content, source, stored.unwrap_or_default()).map_err(blame)?;
                if let Some(chunks) = unchecked.filter(|_| !span.is_empty()) {
                    let checked = chunks.check(chunk, content);
                    checked.map_err(|error| self.tensor.blame(error, self.part))?;
                }
                // Windows are whole elements, as far as the component is.
                to_little_endian(self.part.component, content);
                self.held = span;
            }
            Backing::Frames(frames) => {
                let place = frames.partition_point(|frame| frame.content.end() <= at);
                let Some(frame) = frames.get(place) else {
                    return Ok(());
                };
                let mut fetched = std::mem::take(&mut self.scratch.stored);
                let decoded = match source.slice(frame.stored) {
                    Some(stored) => Ok(stored),
                    None => fetch(&mut fetched, source, frame.stored),
                };
                let content_len = frame.content.byte_len();
                let decoded =
                    decoded.and_then(|stored| self.scratch.decode_here(stored, content_len));
                self.scratch.stored = fetched;
                let content = frame.content;
                if decoded.is_err() {
                    // The table lies, or the frame is damaged: a full read finds out by the digest.
                    self.backing = Backing::Whole(self.tensor.bytes_of(self.part)?);
                    return Ok(());
                }
                self.held = content;
            }
            Backing::Stream(reader) => {
                if at < held.offset() {
                    self.backing = Backing::Whole(self.tensor.bytes_of(self.part)?);
                    return Ok(());
                }
                let mut held = held;
                while held.end() <= at {
                    let content = &mut self.scratch.content;
                    resize(content, STREAM_WINDOW).map_err(blame)?;
                    let len = reader.read_elements(content)? as u64;
                    resize(content, len).map_err(blame)?;
                    held = Span::exact(held.end(), len);
                    if len == 0 {
                        return Ok(());
                    }
                }
                self.held = held;
            }
        }
        Ok(())
    }
}

/// The bytes from `at` on; none past the end.
fn from(bytes: &[u8], at: u64) -> &[u8] {
    let start = usize::try_from(at).ok();
    start.and_then(|at| bytes.get(at..)).unwrap_or_default()
}
