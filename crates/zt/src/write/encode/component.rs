//! One component that is being written, gathered into chunks.

use std::io::{self, Write};
use std::sync::Arc;

use zt_container::codec::SINGLE_FRAME_MAX;
use zt_container::{DigestAlgorithm, Encoding};

use super::blob::{Begin, Hashing};
use super::queue::Item;
use super::stored::Stored;
use super::{Encoder, Placed, SHA256_AT_ONCE};
use crate::error::Result;
use crate::write::choice::{Method, choose};
use crate::write::options::{ComponentOptions, Compression};

/// A component in progress: the decisions so far, and the bytes that are not a chunk yet.
pub(crate) struct ComponentEncoder {
    options: ComponentOptions,
    /// The decoded length if it is known; used only for the placement.
    expected_len: u64,
    /// Bytes that were given: decoded, unless they are stored as they are given.
    given_len: u64,
    /// How it is stored; `None` until its first bytes decide.
    method: Option<Method>,
    /// The encoding and the decoded length of bytes that are stored as they are given.
    stored: Option<(Encoding, u64)>,
    /// Content that is not in a chunk yet.
    gathered: Vec<u8>,
    is_begun: bool,
}

impl ComponentEncoder {
    pub(crate) fn new(options: ComponentOptions, expected_len: u64) -> Self {
        let is_raw = options.compression == Compression::None;
        ComponentEncoder {
            options,
            expected_len,
            given_len: 0,
            method: is_raw.then_some(Method::Raw),
            stored: None,
            gathered: Vec::new(),
            is_begun: false,
        }
    }

    /// The bytes that follow are encoded already.
    pub(crate) fn expect_stored(&mut self, encoding: Encoding, decoded_len: u64) {
        self.method = Some(Method::Raw);
        self.stored = Some((encoding, decoded_len));
        self.expected_len = decoded_len;
    }

    /// The digest that the stored bytes get, if they are stored as they are given.
    pub(crate) fn digest_of_given(&self) -> Option<DigestAlgorithm> {
        let is_raw = self.options.compression == Compression::None;
        self.options.digest.filter(|_| is_raw)
    }

    /// The bytes that follow are symbols, which are stored as codes.
    pub(crate) fn expect_symbols(&mut self) {
        self.method = Some(Method::Codes);
    }

    /// Sets the decoded length, if the caller knows better than the shape.
    pub(crate) fn expect_len(&mut self, byte_len: u64) {
        self.expected_len = byte_len;
    }

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
        self.given_len = self.given_len.strict_add(content.len() as u64);
        let written = self.write_next(encoder, content);
        written.inspect_err(|_| self.given_len = before)
    }

    fn write_next<W: Write>(&mut self, encoder: &mut Encoder<W>, mut content: &[u8]) -> Result<()> {
        if self.method.is_none() {
            content = self.decide(encoder, content)?;
        }
        match self.method {
            None => Ok(()),
            Some(method) => self.write_chunks(encoder, content, method),
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
        let Some((head, rest)) =
            content.split_at_checked(room).filter(|(_, rest)| !rest.is_empty())
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
        let method = choose(&encoder.tools, self.options.compression, decisive)?;
        self.method = Some(method);
        self.write_chunks(encoder, &gathered, method)?;
        encoder.tools.give_back(gathered);
        Ok(if is_at_once { content } else { rest })
    }

    /// Stores raw bytes that `put` gives to the sink itself, if they get no digest: nothing has to see them
    /// then. Returns how many.
    pub(crate) fn put<W: Write>(
        &mut self,
        encoder: &mut Encoder<W>,
        put: impl FnOnce(&mut W) -> io::Result<u64>,
    ) -> Result<u64> {
        let can_put = self.method == Some(Method::Raw)
            && self.options.digest.is_none()
            && self.gathered.is_empty()
            && encoder.writes_at_once();
        if !can_put {
            return Ok(0);
        }
        self.begin(encoder, false)?;
        let len = encoder.container.write_with(put)?;
        self.given_len = self.given_len.strict_add(len);
        Ok(len)
    }

    /// Writes raw bytes at once if possible. Otherwise submits whole chunks, and gathers the rest.
    fn write_chunks<W: Write>(
        &mut self,
        encoder: &mut Encoder<W>,
        mut content: &[u8],
        method: Method,
    ) -> Result<()> {
        let is_chained = encoder.chains(self.options.digest);
        let is_at_once = self.gathered.is_empty() && encoder.writes_at_once() && !is_chained;
        if method == Method::Raw && is_at_once {
            self.begin(encoder, false)?;
            return encoder.write_raw(content);
        }
        while !content.is_empty() {
            let room = method.part_len().strict_sub(self.gathered.len());
            let (head, rest) = content.split_at_checked(room).unwrap_or((content, &[]));
            self.gather(encoder, head, method.part_len())?;
            content = rest;
            if self.gathered.len() == method.part_len() {
                self.submit_chunk(encoder, method)?;
            }
        }
        Ok(())
    }

    /// Submits the gathered bytes, raw or to be encoded as a part.
    fn submit_chunk<W: Write>(&mut self, encoder: &mut Encoder<W>, method: Method) -> Result<()> {
        self.begin(encoder, false)?;
        let content = std::mem::take(&mut self.gathered);
        let cost = content.capacity();
        if method == Method::Raw {
            return encoder.submit(Item::Raw(content.into()), cost);
        }
        let tools = Arc::clone(&encoder.tools);
        let start = move || Stored::part(&tools, content.into(), method);
        let task = encoder.workers.start(start);
        encoder.submit(Item::Frame(task), cost)
    }

    /// Makes all of the component one frame, unless it does not shrink.
    fn submit_alone<W: Write>(&mut self, encoder: &mut Encoder<W>) -> Result<()> {
        self.begin(encoder, true)?;
        let content = std::mem::take(&mut self.gathered);
        let cost = content.capacity().max(SHA256_AT_ONCE);
        let tools = Arc::clone(&encoder.tools);
        let (options, chunks) = (self.options, encoder.chunks);
        let start = move || Stored::alone(&tools, content.into(), options, chunks);
        let task = encoder.workers.start(start);
        encoder.submit(Item::Frame(task), cost)
    }

    pub(crate) fn finish<W: Write>(&mut self, encoder: &mut Encoder<W>) -> Result<Placed> {
        match self.method {
            _ if self.gathered.is_empty() => self.begin(encoder, false)?,
            None => self.submit_alone(encoder)?,
            Some(method) => self.submit_chunk(encoder, method)?,
        }
        let len = self.decoded_len();
        let decoded_len = self.method.map_or(Some(len), |method| method.decoded_len(len));
        let mut queue = std::mem::take(&mut encoder.queue);
        let placed = queue.end(encoder, decoded_len);
        encoder.queue = queue;
        placed
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

    fn begin<W: Write>(&mut self, encoder: &mut Encoder<W>, by_worker: bool) -> Result<()> {
        if std::mem::replace(&mut self.is_begun, true) {
            return Ok(());
        }
        let is_long = self.given_len > SHA256_AT_ONCE as u64;
        let method = self.method.unwrap_or(Method::Raw);
        let parts = encoder.begin_parts(method, self.expected_len, self.options.digest, is_long);
        let begin = Begin {
            encoding: self.stored.map_or(Encoding::Raw, |(encoding, _)| encoding),
            hashing: if by_worker { Hashing::Worker } else { parts.hashing },
            ..parts
        };
        encoder.submit(Item::Begin(begin), 0)
    }
}
