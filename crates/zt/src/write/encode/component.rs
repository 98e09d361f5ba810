//! One component that is being written, gathered into chunks.

use std::io::{self, Write};
use std::sync::Arc;

use zt_container::codec::{FRAME_CONTENT, SINGLE_FRAME_MAX};
use zt_container::{DigestAlgorithm, Encoding};

use super::{Begin, Encoder, HASHED_AT_ONCE, Item, Placed, Stored};
use crate::error::Result;
use crate::write::choice::{Method, choose};
use crate::write::options::{ComponentOptions, Compression};
use crate::write::tools::Effort;

/// A component in progress: the decisions so far, and the bytes that are not a chunk yet.
pub(crate) struct ComponentEncoder {
    options: ComponentOptions,
    /// The decoded length if it is known; used only for the placement.
    expected_len: u64,
    /// Bytes that were given: decoded, unless they are stored as they are given.
    given_len: u64,
    stage: Stage,
    /// The encoding and the decoded length of bytes that are stored as they are given.
    stored: Option<(Encoding, u64)>,
    /// Content that is not in a chunk yet.
    gathered: Vec<u8>,
    is_begun: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Undecided: it may be compressed, and into one frame.
    Undecided,
    Raw,
    Frames(Effort),
}

impl ComponentEncoder {
    pub(crate) fn new(options: ComponentOptions, expected_len: u64) -> Self {
        let stage = match options.compression {
            Compression::None => Stage::Raw,
            _ => Stage::Undecided,
        };
        ComponentEncoder {
            options,
            expected_len,
            given_len: 0,
            stage,
            stored: None,
            gathered: Vec::new(),
            is_begun: false,
        }
    }

    /// The bytes that follow are encoded already.
    pub(crate) fn expect_stored(&mut self, encoding: Encoding, decoded_len: u64) {
        self.stage = Stage::Raw;
        self.stored = Some((encoding, decoded_len));
        self.expected_len = decoded_len;
    }

    /// Sets the decoded length, if the caller knows better than the shape.
    pub(crate) fn expect_len(&mut self, byte_len: u64) {
        self.expected_len = byte_len;
    }

    /// The number of decoded bytes so far.
    pub(crate) fn decoded_len(&self) -> u64 {
        self.stored.map_or(self.given_len, |(_, len)| len)
    }

    /// Stores the next bytes. After an error they do not count.
    pub(crate) fn write<W: Write>(
        &mut self,
        encoder: &mut Encoder<W>,
        content: &[u8],
    ) -> Result<()> {
        let before = self.given_len;
        self.given_len += content.len() as u64;
        let written = self.write_next(encoder, content);
        written.inspect_err(|_| self.given_len = before)
    }

    fn write_next<W: Write>(&mut self, encoder: &mut Encoder<W>, mut content: &[u8]) -> Result<()> {
        if self.stage == Stage::Undecided {
            content = self.decide(encoder, content)?;
        }
        match self.stage {
            Stage::Undecided => Ok(()),
            Stage::Raw => self.write_raw(encoder, content),
            Stage::Frames(effort) => self.write_pieces(encoder, content, Some(effort)),
        }
    }

    /// Gathers until there is more than a single frame holds. Then the first bytes decide how all
    /// are stored. Returns the rest of `content`.
    fn decide<'c, W: Write>(
        &mut self,
        encoder: &mut Encoder<W>,
        content: &'c [u8],
    ) -> Result<&'c [u8]> {
        let room = SINGLE_FRAME_MAX.strict_sub(self.gathered.len());
        let Some((head, rest)) = content
            .split_at_checked(room)
            .filter(|(_, rest)| !rest.is_empty())
        else {
            self.gather(encoder, content, SINGLE_FRAME_MAX)?;
            return Ok(&[]);
        };
        let is_at_once = self.gathered.is_empty();
        if !is_at_once {
            self.gather(encoder, head, SINGLE_FRAME_MAX)?;
        }
        let gathered = std::mem::take(&mut self.gathered);
        let decisive = if is_at_once { head } else { &gathered };
        self.stage = match choose(&encoder.tools, self.options.compression, decisive)? {
            Method::Raw => Stage::Raw,
            Method::Frames(effort) => Stage::Frames(effort),
        };
        match self.stage {
            Stage::Frames(effort) => self.write_pieces(encoder, &gathered, Some(effort))?,
            _ => self.write_raw(encoder, &gathered)?,
        }
        encoder.tools.give_back(gathered);
        Ok(if is_at_once { content } else { rest })
    }

    /// Stores raw bytes that `put` gives to the sink itself, if nothing has to see them. Returns how many.
    pub(crate) fn put<W: Write>(
        &mut self,
        encoder: &mut Encoder<W>,
        put: impl FnOnce(&mut W) -> io::Result<u64>,
    ) -> Result<u64> {
        let is_plain = self.stage == Stage::Raw && self.options.digest.is_none();
        if !is_plain || !self.gathered.is_empty() || !encoder.writes_at_once() {
            return Ok(0);
        }
        self.begin(encoder, false)?;
        let len = encoder.container.write_with(put)?;
        self.given_len += len;
        Ok(len)
    }

    fn write_raw<W: Write>(&mut self, encoder: &mut Encoder<W>, content: &[u8]) -> Result<()> {
        let is_chained =
            encoder.workers.threads() > 1 && self.options.digest == Some(DigestAlgorithm::Sha256);
        if self.gathered.is_empty() && encoder.writes_at_once() && !is_chained {
            self.begin(encoder, false)?;
            return encoder.write_raw(content);
        }
        self.write_pieces(encoder, content, None)
    }

    fn submit_raw<W: Write>(&mut self, encoder: &mut Encoder<W>) -> Result<()> {
        let bytes = std::mem::take(&mut self.gathered);
        let cost = bytes.capacity();
        encoder.submit(Item::Raw(bytes), cost)
    }

    /// Submits whole pieces, raw or as frames. The rest is gathered.
    fn write_pieces<W: Write>(
        &mut self,
        encoder: &mut Encoder<W>,
        mut content: &[u8],
        frames: Option<Effort>,
    ) -> Result<()> {
        while !content.is_empty() {
            let room = FRAME_CONTENT.strict_sub(self.gathered.len());
            let (head, rest) = content.split_at_checked(room).unwrap_or((content, &[]));
            self.gather(encoder, head, FRAME_CONTENT)?;
            content = rest;
            if self.gathered.len() == FRAME_CONTENT {
                match frames {
                    Some(effort) => self.submit_frame(encoder, effort)?,
                    None => {
                        self.begin(encoder, false)?;
                        self.submit_raw(encoder)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Makes the gathered bytes one of several frames.
    fn submit_frame<W: Write>(&mut self, encoder: &mut Encoder<W>, effort: Effort) -> Result<()> {
        self.begin(encoder, false)?;
        let content = std::mem::take(&mut self.gathered);
        let cost = content.capacity();
        let tools = Arc::clone(&encoder.tools);
        let digest = self.options.digest;
        let method = Method::Frames(effort);
        let start = move || Stored::part(&tools, content.into(), method, digest);
        let task = encoder.workers.start(start);
        encoder.submit(Item::Frame(task), cost)
    }

    /// Makes all of the component one frame, unless it does not shrink.
    fn submit_alone<W: Write>(&mut self, encoder: &mut Encoder<W>) -> Result<()> {
        self.begin(encoder, true)?;
        let content = std::mem::take(&mut self.gathered);
        let cost = content.capacity().max(HASHED_AT_ONCE);
        let tools = Arc::clone(&encoder.tools);
        let (options, chunks) = (self.options, encoder.chunks);
        let start = move || Stored::alone(&tools, content.into(), options, chunks);
        let task = encoder.workers.start(start);
        encoder.submit(Item::Frame(task), cost)
    }

    /// Ends the component.
    pub(crate) fn finish<W: Write>(&mut self, encoder: &mut Encoder<W>) -> Result<Placed> {
        match self.stage {
            _ if self.gathered.is_empty() => self.begin(encoder, false)?,
            Stage::Undecided => self.submit_alone(encoder)?,
            Stage::Frames(effort) => self.submit_frame(encoder, effort)?,
            Stage::Raw => {
                self.begin(encoder, false)?;
                self.submit_raw(encoder)?;
            }
        }
        let decoded_len = self.decoded_len();
        if encoder.writes_at_once() {
            return encoder.end_placed(decoded_len);
        }
        let ticket = encoder.tickets;
        encoder.tickets = ticket + 1;
        encoder.submit(Item::End { decoded_len }, 0)?;
        Ok(Placed::Later {
            ticket,
            decoded_len,
        })
    }

    fn gather<W: Write>(
        &mut self,
        encoder: &Encoder<W>,
        content: &[u8],
        most: usize,
    ) -> Result<()> {
        if content.is_empty() {
            return Ok(());
        }
        let len = self.gathered.len().strict_add(content.len());
        if self.gathered.capacity() < len {
            // The expected length may be wrong: then the memory grows with the content.
            let expected = usize::try_from(self.expected_len).unwrap_or(most);
            let wanted = expected.max(len.strict_mul(2)).min(most).max(len);
            let mut larger = encoder.tools.buffer(wanted)?;
            larger.extend_from_slice(&self.gathered);
            let smaller = std::mem::replace(&mut self.gathered, larger);
            encoder.tools.give_back(smaller);
        }
        self.gathered.extend_from_slice(content);
        Ok(())
    }

    fn begin<W: Write>(&mut self, encoder: &mut Encoder<W>, is_alone: bool) -> Result<()> {
        if std::mem::replace(&mut self.is_begun, true) {
            return Ok(());
        }
        let begin = Begin {
            alignment: encoder.alignment_of(self.expected_len),
            encoding: self.stored.map_or(Encoding::Raw, |(encoding, _)| encoding),
            digest: self.options.digest,
            has_table: matches!(self.stage, Stage::Frames(_)),
            is_alone,
            is_long: self.given_len > HASHED_AT_ONCE as u64,
        };
        encoder.submit(Item::Begin(begin), 0)
    }
}
