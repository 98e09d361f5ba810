//! From decoded bytes to stored blobs: chunks of all components on all cores, written in order.
//!
//! ```text
//! caller:   gather a chunk | hand it out | write finished chunks, oldest first | wait if too many are out
//! workers:  sample, compress, crc32c, sha256 of complete components
//! ```
//!
//! A raw chunk is written at once, from the caller's memory, if no chunk waits before it.

mod component;
mod maker;

use std::collections::VecDeque;
use std::io::Write;
use std::sync::Arc;

use zt_container::codec::{SINGLE_FRAME_MAX, SeekTable};
use zt_container::{
    ALIGNMENT, Blob, ContainerWriter, Digest, DigestAlgorithm, Encoding, Hasher, Misuse, Span,
};

pub(crate) use self::component::Component;
pub(crate) use self::maker::Made;

use crate::cores::work::{Task, Workers};
use crate::error::{Error, Result};
use crate::write::chain::{Chain, Chains};
use crate::write::choice::{Method, choose};
use crate::write::options::{ComponentOptions, Compression};
use crate::write::tools::Tools;

/// Components of at least this many bytes begin on a page.
const LARGE: u64 = 1 << 20;
const PAGE: u64 = 4096;

/// Raw bytes that are hashed and written at a time: they stay in the core's cache.
const PIECE: usize = 256 << 10;

/// From this length on, another thread computes the checksum while the bytes are written.
const SUMMED_ASIDE: usize = 4 << 20;

/// Bytes that are summed at a time. Between them the writing thread can take over.
const STRETCH: usize = 1 << 20;

/// Up to this length, sha256 takes less time than another thread needs to start.
const HASHED_AT_ONCE: usize = 32 << 10;

/// Compresses, hashes and lays out the components of one file, in their order.
pub(crate) struct Encoder<W> {
    pub(crate) container: ContainerWriter<W>,
    alignment: Option<u64>,
    pub(crate) workers: Arc<Workers>,
    tools: Arc<Tools>,
    chains: Chains,
    /// Items that wait to be written, each with its share of the budget.
    queue: VecDeque<(Item, usize)>,
    /// Bytes of content in the queue, and their limit.
    queued: usize,
    budget: usize,
    /// The blob that is being written.
    current: Option<Placing>,
    /// Blobs that were incomplete when their component ended, by ticket.
    placed: Vec<(Blob, Option<Chain>)>,
    tickets: usize,
}

/// The default alignment of a component of `byte_len` decoded bytes.
pub(crate) const fn alignment_of(byte_len: u64) -> u64 {
    if byte_len >= LARGE { PAGE } else { ALIGNMENT }
}

/// The place of a component's blob.
#[derive(Debug, Clone)]
pub(crate) enum Placed {
    At(Blob),
    /// Known once the file is written: [`Encoder::finish`] gives the blobs by their tickets.
    Later {
        ticket: usize,
        decoded_len: u64,
    },
}

impl Placed {
    /// The blob as far as it is known: at least its decoded length.
    pub(crate) fn blob(&self) -> Blob {
        match self {
            Placed::At(blob) => blob.clone(),
            Placed::Later { decoded_len, .. } => Blob {
                decoded_len: Some(*decoded_len),
                ..Blob::raw(Span::default())
            },
        }
    }
}

/// The next item to be written.
enum Item {
    Begin(Begin),
    Raw(Vec<u8>),
    Frame(Task<'static, Result<Stored>>),
    End { decoded_len: u64 },
}

#[derive(Debug, Clone, Copy)]
struct Begin {
    alignment: u64,
    encoding: Encoding,
    digest: Option<DigestAlgorithm>,
    /// Whether a table of frames follows.
    has_table: bool,
    /// Whether the digest comes with the only frame.
    is_alone: bool,
    /// Whether other threads compute the sha256.
    is_long: bool,
}

/// The result of a worker for a chunk.
struct Stored {
    bytes: Vec<u8>,
    encoding: Encoding,
    content_len: usize,
    digest: Option<Digest>,
}

impl Stored {
    fn new(
        bytes: Vec<u8>,
        encoding: Encoding,
        content_len: usize,
        digest: Option<DigestAlgorithm>,
    ) -> Result<Self> {
        let digest = digest
            .map(|algorithm| algorithm.digest(&bytes))
            .transpose()?;
        Ok(Stored {
            bytes,
            encoding,
            content_len,
            digest,
        })
    }

    /// Encodes all of a component: as one frame, unless it does not shrink.
    fn alone(tools: &Tools, content: Vec<u8>, options: ComponentOptions) -> Result<Self> {
        let content_len = content.len();
        if let Method::Frames(effort) = choose(tools, options.compression, content.as_slice())? {
            let frame = tools.compress(effort, &content)?;
            if frame.len() < content_len {
                tools.give_back(content);
                return Stored::new(frame, Encoding::Zstd, content_len, options.digest);
            }
            tools.give_back(frame);
        }
        Stored::new(content, Encoding::Raw, content_len, options.digest)
    }

    /// Encodes a part of a component, by the method that was chosen for all of it.
    fn part(
        tools: &Tools,
        content: Vec<u8>,
        method: Method,
        digest: Option<DigestAlgorithm>,
    ) -> Result<Self> {
        // The sum of a part helps only if sums can be combined.
        let digest = digest.filter(|algorithm| *algorithm == DigestAlgorithm::Crc32c);
        let content_len = content.len();
        let Method::Frames(effort) = method else {
            return Stored::new(content, Encoding::Raw, content_len, digest);
        };
        let frame = tools.compress(effort, &content)?;
        tools.give_back(content);
        Stored::new(frame, Encoding::Zstd, content_len, digest)
    }
}

/// A blob in progress.
struct Placing {
    encoding: Encoding,
    table: Option<SeekTable>,
    digester: Digester,
}

/// How the digest of a blob is computed.
enum Digester {
    Off,
    Here(Hasher),
    Elsewhere(Chain),
    /// The blob's worker computes it.
    Whole(Option<Digest>),
}

impl<W: Write> Encoder<W> {
    pub(crate) fn new(
        container: ContainerWriter<W>,
        alignment: Option<u64>,
        threads: Option<usize>,
    ) -> Result<Self> {
        /// With a larger alignment, padding would be longer than the data.
        const MOST: u64 = 1 << 30;
        if let Some(alignment) = alignment
            && !(alignment.is_power_of_two() && (ALIGNMENT..=MOST).contains(&alignment))
        {
            let misuse = Misuse::Alignment(alignment);
            return Err(zt_container::Error::Misuse(misuse).into());
        }
        let workers = Arc::new(Workers::new(threads)?);
        let threads = workers.threads();
        // Enough for one chunk in work and one waiting for each thread, whatever their size.
        let budget = threads.saturating_add(2).saturating_mul(SINGLE_FRAME_MAX);
        Ok(Encoder {
            container,
            alignment,
            tools: Arc::new(Tools::new(threads)),
            workers,
            chains: Chains::new(),
            queue: VecDeque::new(),
            queued: 0,
            budget,
            current: None,
            placed: Vec::new(),
            tickets: 0,
        })
    }

    /// The alignment of a component of `byte_len` decoded bytes.
    fn alignment_of(&self, byte_len: u64) -> u64 {
        self.alignment.unwrap_or(alignment_of(byte_len))
    }

    /// Stores a component that is in memory.
    pub(crate) fn encode(&mut self, content: &[u8], options: ComponentOptions) -> Result<Placed> {
        let is_raw = options.compression == Compression::None || content.is_empty();
        if is_raw && content.len() <= HASHED_AT_ONCE && self.queue.is_empty() {
            // Most components of most files are small: they take no memory besides their bytes.
            let alignment = self.alignment_of(content.len() as u64);
            self.container.begin_blob(alignment, options.digest)?;
            self.container.write(content)?;
            let (span, digest) = self.container.end_blob()?;
            return Ok(Placed::At(Blob {
                digest,
                ..Blob::raw(span)
            }));
        }
        let mut component = Component::new(options, content.len() as u64);
        component.write(self, content)?;
        component.finish(self)
    }

    /// Writes everything that is left. Returns the sink, and the blobs by their tickets.
    pub(crate) fn finish(mut self) -> Result<(ContainerWriter<W>, Vec<Blob>)> {
        self.write_queue()?;
        let finished = self.placed.into_iter().map(|(blob, chain)| match chain {
            Some(chain) => Blob {
                digest: chain.finish(),
                ..blob
            },
            None => blob,
        });
        Ok((self.container, finished.collect()))
    }

    /// Writes the queue, and waits for the work in progress.
    fn write_queue(&mut self) -> Result<()> {
        while let Some((item, cost)) = self.queue.pop_front() {
            self.queued -= cost;
            self.place(item)?;
        }
        Ok(())
    }

    /// Whether the next bytes can be written without a copy.
    fn writes_at_once(&self) -> bool {
        let hashes_here = |placing: &Placing| !matches!(placing.digester, Digester::Elsewhere(_));
        self.queue.is_empty() && self.current.as_ref().is_none_or(hashes_here)
    }

    /// Writes `item` after the queue; now, if the queue is empty.
    fn submit(&mut self, item: Item, cost: usize) -> Result<()> {
        let is_ready = !matches!(item, Item::Frame(_)) || self.workers.threads() == 1;
        if self.queue.is_empty() && is_ready {
            return self.place(item);
        }
        self.queue.push_back((item, cost));
        self.queued += cost;
        while let Some((item, cost)) = self.queue.pop_front() {
            let can_wait = self.queued <= self.budget;
            if can_wait && matches!(&item, Item::Frame(task) if !task.is_done()) {
                self.queue.push_front((item, cost));
                break;
            }
            self.queued -= cost;
            self.place(item)?;
        }
        Ok(())
    }

    fn place(&mut self, item: Item) -> Result<()> {
        match item {
            Item::Begin(begin) => {
                self.container.begin_blob(begin.alignment, None)?;
                let digester = self.digester(begin)?;
                self.current = Some(Placing {
                    encoding: begin.encoding,
                    table: begin.has_table.then(SeekTable::default),
                    digester,
                });
            }
            Item::Raw(bytes) => {
                self.write_raw(&bytes)?;
                self.release(bytes);
            }
            Item::Frame(task) => {
                let stored = task.wait().ok_or_else(Error::out_of_order)??;
                self.write_frame(stored)?;
            }
            Item::End { decoded_len } => {
                let ended = self.end(decoded_len)?;
                self.placed.push(ended);
            }
        }
        Ok(())
    }

    fn digester(&mut self, begin: Begin) -> Result<Digester> {
        Ok(match begin.digest {
            None => Digester::Off,
            Some(_) if begin.is_alone => Digester::Whole(None),
            Some(algorithm @ DigestAlgorithm::Sha256)
                if begin.is_long && self.workers.threads() > 1 =>
            {
                Digester::Elsewhere(self.chains.begin(algorithm, &self.tools)?)
            }
            Some(algorithm) => Digester::Here(Hasher::new(algorithm)?),
        })
    }

    fn write_raw(&mut self, bytes: &[u8]) -> Result<()> {
        let placing = self.current.as_mut().ok_or_else(Error::out_of_order)?;
        let Digester::Here(hasher) = &mut placing.digester else {
            return Ok(self.container.write(bytes)?);
        };
        if bytes.len() >= SUMMED_ASIDE
            && hasher.algorithm().combines()
            && self.workers.threads() > 1
        {
            return write_and_sum(&mut self.container, hasher, &self.workers, bytes);
        }
        for piece in bytes.chunks(PIECE) {
            hasher.update(piece);
            self.container.write(piece)?;
        }
        Ok(())
    }

    fn write_frame(&mut self, stored: Stored) -> Result<()> {
        let placing = self.current.as_mut().ok_or_else(Error::out_of_order)?;
        placing.encoding = stored.encoding;
        if let Some(table) = &mut placing.table {
            table.push(stored.bytes.len(), stored.content_len)?;
        }
        match (&mut placing.digester, stored.digest) {
            (Digester::Here(hasher), Some(digest)) => {
                if !hasher.append(&digest, stored.bytes.len() as u64) {
                    hasher.update(&stored.bytes);
                }
            }
            (Digester::Here(hasher), None) => hasher.update(&stored.bytes),
            (Digester::Whole(whole), digest) => *whole = digest,
            (Digester::Off | Digester::Elsewhere(_), _) => {}
        }
        self.container.write(&stored.bytes)?;
        self.release(stored.bytes);
        Ok(())
    }

    /// Passes on written memory, to be hashed or to be used again.
    fn release(&mut self, written: Vec<u8>) {
        match &self.current {
            Some(Placing {
                digester: Digester::Elsewhere(chain),
                ..
            }) => self.chains.push(chain, &self.workers, written),
            _ => self.tools.give_back(written),
        }
    }

    /// Ends the blob. Its digest may come later.
    fn end_placed(&mut self, decoded_len: u64) -> Result<Placed> {
        let (blob, chain) = self.end(decoded_len)?;
        if chain.is_none() {
            return Ok(Placed::At(blob));
        }
        let ticket = self.tickets;
        self.tickets = ticket + 1;
        self.placed.push((blob, chain));
        Ok(Placed::Later {
            ticket,
            decoded_len,
        })
    }

    fn end(&mut self, decoded_len: u64) -> Result<(Blob, Option<Chain>)> {
        if let Some(table) = self
            .current
            .as_mut()
            .and_then(|placing| placing.table.take())
        {
            let table = table.to_frame();
            self.write_raw(&table)?;
            self.release(table);
        }
        let placing = self.current.take().ok_or_else(Error::out_of_order)?;
        let (span, _) = self.container.end_blob()?;
        let (digest, chain) = match placing.digester {
            Digester::Off => (None, None),
            Digester::Here(hasher) => (Some(hasher.finish()), None),
            Digester::Elsewhere(chain) => (None, Some(chain)),
            Digester::Whole(digest) => (digest, None),
        };
        let blob = Blob {
            span,
            encoding: placing.encoding,
            decoded_len: Some(decoded_len),
            digest,
            chunks: None,
        };
        Ok((blob, chain))
    }
}

/// Writes raw bytes while another thread computes their checksum, which takes a fraction of the
/// time. The caller sums the bytes that the thread has not begun.
fn write_and_sum<W: Write>(
    container: &mut ContainerWriter<W>,
    hasher: &mut Hasher,
    workers: &Workers,
    bytes: &[u8],
) -> Result<()> {
    let algorithm = hasher.algorithm();
    workers.scope(1, |scope| {
        let sum = |piece| scope.start(move || algorithm.digest(piece));
        let sums: Vec<_> = bytes.chunks(STRETCH).map(sum).collect();
        container.write(bytes)?;
        for (piece, sum) in bytes.chunks(STRETCH).zip(sums) {
            let sum = sum.wait().ok_or_else(Error::out_of_order)??;
            if !hasher.append(&sum, piece.len() as u64) {
                hasher.update(piece);
            }
        }
        Ok(())
    })
}
