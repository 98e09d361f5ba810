//! From decoded bytes to stored blobs: chunks of all components on all cores, written in order.
//!
//! ```text
//! caller:   gather a chunk | hand it out | write finished chunks, oldest first | wait if too many are out
//! workers:  sample, compress, crc32c, sha256 of complete components
//! ```
//!
//! A raw chunk is written at once, from the caller's memory, if no chunk waits before it. Components
//! in memory that the caller lends take no copy: see `lent`.

mod component;
mod lent;
mod queue;

use std::borrow::Cow;
use std::io::Write;
use std::sync::Arc;

use zt_container::codec::{SINGLE_FRAME_MAX, SeekTable};
use zt_container::{
    ALIGNMENT, Blob, CHUNK, Chunker, Chunks, ContainerWriter, Digest, DigestAlgorithm, Encoding,
    Hasher, Misuse, Span,
};

pub(crate) use self::component::ComponentEncoder;
pub(crate) use self::lent::{Content, Lending};

use self::queue::{Item, Queue};
use crate::cores::work::Workers;
use crate::error::{Error, Result};
use crate::write::chain::{Chain, Chains};
use crate::write::choice::{Method, choose};
use crate::write::options::{ComponentOptions, Compression};
use crate::write::tools::Tools;

/// Components of at least this many bytes begin on a page.
const LARGE: u64 = 1 << 20;
const PAGE: u64 = 4096;

/// Raw bytes that are hashed and written at a time. They stay in a cache, and Linux takes larger pages
/// for them: on ext4, 64 MB with a crc32c took 14.5 ms of processor time, and 16.9 ms in pieces of
/// 256 KiB.
const PIECE: usize = 1 << 20;

/// From this length on, another thread computes the checksum while the bytes are written.
const SUMMED_ASIDE: usize = 4 << 20;

/// Bytes that are summed at a time: a chunk. Between them the writing thread can take over.
const STRETCH: usize = 1 << 20;

/// Up to this length, sha256 takes less time than another thread needs to start.
const HASHED_AT_ONCE: usize = 32 << 10;

/// Compresses, hashes and lays out the components of one file, in their order.
pub(crate) struct Encoder<W> {
    pub(crate) container: ContainerWriter<W>,
    alignment: Option<u64>,
    /// The algorithm of chunk digests, if there are any.
    chunks: Option<DigestAlgorithm>,
    pub(crate) workers: Arc<Workers>,
    tools: Arc<Tools>,
    chains: Chains,
    queue: Queue<'static>,
    /// The limit of bytes of content in a queue.
    budget: usize,
    /// The blob that is being written.
    current: Option<Placing>,
    /// Blobs that were incomplete when their component ended, by ticket.
    placed: Vec<Ended>,
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

/// A blob whose bytes are written.
struct Ended {
    blob: Blob,
    /// What computes its digest, if other threads do.
    chain: Option<Chain>,
    /// Its chunk digests, which are written behind the last blob.
    table: Option<(DigestAlgorithm, Vec<u8>)>,
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

/// The result of a worker for a chunk. Bytes in lent memory stay there.
struct Stored<'m> {
    bytes: Cow<'m, [u8]>,
    encoding: Encoding,
    content_len: usize,
    digest: Option<Digest>,
    /// The chunk digests of a raw component that is alone.
    chunker: Option<Chunker>,
}

impl<'m> Stored<'m> {
    fn new(
        bytes: Cow<'m, [u8]>,
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
            chunker: None,
        })
    }

    /// All bytes of a raw component, with their chunk digests if there is more than one chunk.
    fn raw(
        bytes: Cow<'m, [u8]>,
        digest: Option<DigestAlgorithm>,
        chunks: Option<DigestAlgorithm>,
    ) -> Result<Self> {
        let content_len = bytes.len();
        let chunks = chunks.filter(|_| digest.is_some() && content_len > STRETCH);
        let Some(algorithm) = chunks else {
            return Stored::new(bytes, Encoding::Raw, content_len, digest);
        };
        let mut chunker = Chunker::new(algorithm)?;
        chunker.update(&bytes);
        let whole = chunker.whole().filter(|_| digest == Some(algorithm));
        let stored = Stored::new(
            bytes,
            Encoding::Raw,
            content_len,
            digest.filter(|_| whole.is_none()),
        )?;
        Ok(Stored {
            digest: stored.digest.or(whole),
            chunker: Some(chunker),
            ..stored
        })
    }

    /// Encodes all of a component: as one frame, unless it does not shrink.
    fn alone(
        tools: &Tools,
        content: Cow<'m, [u8]>,
        options: ComponentOptions,
        chunks: Option<DigestAlgorithm>,
    ) -> Result<Self> {
        let content_len = content.len();
        if let Method::Frames(effort) = choose(tools, options.compression, &*content)? {
            let frame = tools.compress(effort, &content)?;
            if frame.len() < content_len {
                tools.take_back(content);
                return Stored::new(frame.into(), Encoding::Zstd, content_len, options.digest);
            }
            tools.give_back(frame);
        }
        Stored::raw(content, options.digest, chunks)
    }

    /// Encodes a part of a component, by the method that was chosen for all of it.
    fn part(
        tools: &Tools,
        content: Cow<'m, [u8]>,
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
        tools.take_back(content);
        Stored::new(frame.into(), Encoding::Zstd, content_len, digest)
    }
}

/// A blob in progress.
struct Placing {
    encoding: Encoding,
    table: Option<SeekTable>,
    digester: Digester,
    /// What computes the chunk digests of a raw blob.
    chunker: Option<Chunker>,
}

/// How the digest of a blob is computed.
enum Digester {
    Off,
    Here(Hasher),
    Elsewhere(Chain),
    /// The blob's worker computes it.
    Whole(Option<Digest>),
    /// It is combined from the digests of chunks.
    OfChunks,
}

/// What takes in the bytes of a blob as they are written.
struct Sums<'s> {
    hasher: Option<&'s mut Hasher>,
    chunker: Option<&'s mut Chunker>,
}

impl Sums<'_> {
    /// The algorithm, if there is only one and its sums can be computed elsewhere.
    fn aside(&self) -> Option<DigestAlgorithm> {
        let hasher = self.hasher.as_ref().map(|hasher| hasher.algorithm());
        let chunker = self.chunker.as_ref().map(|chunker| chunker.algorithm());
        let only = match (hasher, chunker) {
            (Some(a), Some(b)) => (a == b).then_some(a),
            (a, b) => a.or(b),
        };
        only.filter(|algorithm| algorithm.combines())
    }

    /// Bytes up to the end of the chunk.
    fn room(&self) -> usize {
        let room = self
            .chunker
            .as_ref()
            .map_or(CHUNK, |chunker| chunker.room());
        usize::try_from(room).unwrap_or(STRETCH)
    }

    fn update(&mut self, bytes: &[u8]) {
        if let Some(hasher) = &mut self.hasher {
            hasher.update(bytes);
        }
        if let Some(chunker) = &mut self.chunker {
            chunker.update(bytes);
        }
    }

    /// The next bytes, whose digest may be known.
    fn take(&mut self, bytes: &[u8], digest: Option<&Digest>) {
        let byte_len = bytes.len() as u64;
        if let Some(hasher) = &mut self.hasher
            && !digest.is_some_and(|digest| hasher.append(digest, byte_len))
        {
            hasher.update(bytes);
        }
        if let Some(chunker) = &mut self.chunker
            && !digest.is_some_and(|digest| chunker.append(digest, byte_len))
        {
            chunker.update(bytes);
        }
    }
}

impl Placing {
    fn sums(&mut self) -> Sums<'_> {
        let hasher = match &mut self.digester {
            Digester::Here(hasher) => Some(hasher),
            _ => None,
        };
        Sums {
            hasher,
            chunker: self.chunker.as_mut(),
        }
    }
}

impl<W: Write> Encoder<W> {
    pub(crate) fn new(
        container: ContainerWriter<W>,
        alignment: Option<u64>,
        chunks: Option<DigestAlgorithm>,
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
        // Tables have no digests of other algorithms.
        let has_table = |algorithm: &DigestAlgorithm| {
            Chunks::table_len(*algorithm, CHUNK.saturating_add(1)).is_some()
        };
        Ok(Encoder {
            container,
            alignment,
            chunks: chunks.filter(has_table),
            tools: Arc::new(Tools::new(threads)),
            workers,
            chains: Chains::new(),
            queue: Queue::default(),
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
        let mut component = ComponentEncoder::new(options, content.len() as u64);
        component.write(self, content)?;
        component.finish(self)
    }

    /// Writes everything that is left, chunk digests last: they are near the manifest, where a reader of
    /// a remote file begins. Returns the sink, and the blobs by their tickets.
    pub(crate) fn finish(mut self) -> Result<(ContainerWriter<W>, Vec<Blob>)> {
        self.write_queue()?;
        let mut container = self.container;
        let has_tables = self.placed.iter().any(|ended| ended.table.is_some());
        if has_tables {
            container.begin_blob(ALIGNMENT, None)?;
        }
        let mut blobs = Vec::with_capacity(self.placed.len());
        for ended in self.placed {
            let mut blob = ended.blob;
            if let Some(chain) = ended.chain {
                blob.digest = chain.finish();
            }
            if let Some((algorithm, table)) = ended.table {
                let span = Span::exact(container.offset(), table.len() as u64);
                let digest = algorithm.digest(&table)?;
                container.write(&table)?;
                blob.chunks = Some(Box::new(Chunks { span, digest }));
            }
            blobs.push(blob);
        }
        if has_tables {
            container.end_blob()?;
        }
        Ok((container, blobs))
    }

    /// Writes the queue, and waits for the work in progress.
    fn write_queue(&mut self) -> Result<()> {
        let mut queue = std::mem::take(&mut self.queue);
        queue.write(self)
    }

    /// Whether the next bytes can be written without a copy.
    fn writes_at_once(&self) -> bool {
        let hashes_here = |placing: &Placing| !matches!(placing.digester, Digester::Elsewhere(_));
        self.queue.is_empty() && self.current.as_ref().is_none_or(hashes_here)
    }

    /// Writes `item` after the queue; now, if the queue is empty.
    fn submit(&mut self, item: Item<'static>, cost: usize) -> Result<()> {
        let mut queue = std::mem::take(&mut self.queue);
        let submitted = queue.submit(self, item, cost);
        self.queue = queue;
        submitted
    }

    fn place(&mut self, item: Item<'_>) -> Result<()> {
        match item {
            Item::Begin(begin) => {
                self.container.begin_blob(begin.alignment, None)?;
                let chunker = self.chunker(begin)?;
                let digester = match &chunker {
                    Some(chunker)
                        if chunker.algorithm().combines()
                            && begin.digest == Some(chunker.algorithm()) =>
                    {
                        Digester::OfChunks
                    }
                    _ => self.digester(begin)?,
                };
                self.current = Some(Placing {
                    encoding: begin.encoding,
                    table: begin.has_table.then(SeekTable::default),
                    digester,
                    chunker,
                });
            }
            Item::Raw(bytes) => {
                self.write_raw(&bytes)?;
                self.release(bytes);
            }
            Item::Lent(bytes) => self.write_raw(bytes)?,
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

    /// What computes the chunk digests of a blob that is raw for certain. Other threads compute those of
    /// a blob that is alone.
    fn chunker(&self, begin: Begin) -> Result<Option<Chunker>> {
        let is_raw = begin.encoding == Encoding::Raw && !begin.has_table && !begin.is_alone;
        let algorithm = self.chunks.filter(|_| is_raw && begin.digest.is_some());
        Ok(algorithm.map(Chunker::new).transpose()?)
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
        let mut sums = placing.sums();
        if bytes.len() >= SUMMED_ASIDE
            && let Some(algorithm) = sums.aside()
            && self.workers.threads() > 1
        {
            return write_and_sum(&mut self.container, sums, algorithm, &self.workers, bytes);
        }
        if sums.hasher.is_none() && sums.chunker.is_none() {
            return Ok(self.container.write(bytes)?);
        }
        for piece in bytes.chunks(PIECE) {
            sums.update(piece);
            self.container.write(piece)?;
        }
        Ok(())
    }

    fn write_frame(&mut self, stored: Stored<'_>) -> Result<()> {
        let placing = self.current.as_mut().ok_or_else(Error::out_of_order)?;
        placing.encoding = stored.encoding;
        if let Some(table) = &mut placing.table {
            table.push(stored.bytes.len(), stored.content_len)?;
        }
        if let Digester::Whole(whole) = &mut placing.digester {
            *whole = stored.digest;
            placing.chunker = stored.chunker;
        } else {
            placing.sums().take(&stored.bytes, stored.digest.as_ref());
        }
        self.container.write(&stored.bytes)?;
        if let Cow::Owned(bytes) = stored.bytes {
            self.release(bytes);
        }
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

    /// Ends the blob. Its digest may come later, and its chunk digests do.
    fn end_placed(&mut self, decoded_len: u64) -> Result<Placed> {
        let ended = self.end(decoded_len)?;
        if ended.chain.is_none() && ended.table.is_none() {
            return Ok(Placed::At(ended.blob));
        }
        let ticket = self.tickets;
        self.tickets = ticket + 1;
        self.placed.push(ended);
        Ok(Placed::Later {
            ticket,
            decoded_len,
        })
    }

    fn end(&mut self, decoded_len: u64) -> Result<Ended> {
        if let Some(table) = self
            .current
            .as_mut()
            .and_then(|placing| placing.table.take())
        {
            let table = table.to_frame();
            self.write_raw(&table)?;
            self.release(table);
        }
        let mut placing = self.current.take().ok_or_else(Error::out_of_order)?;
        let (span, _) = self.container.end_blob()?;
        let (digest, chain) = match placing.digester {
            Digester::Off => (None, None),
            Digester::OfChunks => (placing.chunker.as_mut().and_then(Chunker::whole), None),
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
        let chunker = placing.chunker.filter(|_| span.byte_len() > CHUNK);
        let table = chunker.map(|chunker| (chunker.algorithm(), chunker.finish()));
        Ok(Ended { blob, chain, table })
    }
}

/// Writes raw bytes while another thread computes their checksum, which takes a fraction of the
/// time. The caller sums the bytes that the thread has not begun.
fn write_and_sum<W: Write>(
    container: &mut ContainerWriter<W>,
    mut sums: Sums<'_>,
    algorithm: DigestAlgorithm,
    workers: &Workers,
    bytes: &[u8],
) -> Result<()> {
    // No piece reaches into another chunk.
    let (head, rest) = bytes.split_at(sums.room().min(bytes.len()));
    let pieces = || std::iter::once(head).chain(rest.chunks(STRETCH));
    workers.scope(1, |scope| {
        let sum = |piece| scope.start(move || algorithm.digest(piece));
        let computed: Vec<_> = pieces().map(sum).collect();
        container.write(bytes)?;
        for (piece, sum) in pieces().zip(computed) {
            let sum = sum.wait().ok_or_else(Error::out_of_order)??;
            sums.take(piece, Some(&sum));
        }
        Ok(())
    })
}
