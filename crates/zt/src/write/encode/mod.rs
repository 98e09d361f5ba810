//! From decoded bytes to stored blobs: chunks of all components on all cores, written in order.
//!
//! ```text
//! caller:   gather a chunk | hand it out | write finished chunks, oldest first | wait if too many are out
//! workers:  sample, compress, code and hash
//! ```
//!
//! A raw chunk is written at once, from the caller's memory, if no chunk waits before it. Components
//! in memory that the caller lends take no copy: see `lent`.
//!
//! | stored | length | digest | lent | streamed or copied |
//! | --- | --- | --- | --- | --- |
//! | raw | to 32 KiB | any | writer | writer |
//! | raw | to 256 KiB | crc32c | writer | writer |
//! | raw | more | crc32c | worker | writer |
//! | raw | more than 32 KiB | sha256 | worker | chain |
//! | zstd or raw, by a sample | to 4 MiB | any | worker | worker |
//! | zstd | more | crc32c | writer | writer |
//! | zstd | more | sha256 | chain | chain |
//! | codes of `zt.planes/2` | to 32 KiB of symbols | any | writer | writer |
//! | codes | more | crc32c | writer | writer |
//! | codes | more | sha256 | chain | chain |
//!
//! | hashes | how |
//! | --- | --- |
//! | writer | the writing thread: each MiB just before it is written |
//! | worker | a worker that has all bytes of the blob: while it is written, or after it made the frame |
//! | chain | any thread, one piece after the other, behind the writing: see `chain` |
//!
//! With one thread, the writer hashes all of them. The same thread computes the chunk digests of a
//! raw blob, except beside a chain: then the writer does. [`Encoder::encode`] lends raw bytes of 4 MiB
//! or more with a crc32c, and copies the others.

mod blob;
mod component;
mod lent;
mod queue;
mod stored;
mod sums;

use std::io::Write;
use std::mem;
use std::sync::Arc;

use zt_container::codec::SINGLE_FRAME_MAX;
use zt_container::{
    ALIGNMENT, Blob, CHUNK, Chunks, ContainerWriter, DigestAlgorithm, Encoding, Misuse, Span,
};

pub(crate) use self::blob::Placed;
pub(crate) use self::component::ComponentEncoder;
pub(crate) use self::lent::{Content, Lending};

use self::blob::{Begin, EndedBlob, Hashing, OpenBlob};
use self::queue::{Item, Queue};
use self::sums::Sums;
use crate::cores::work::{Task, Workers};
use crate::error::{Error, Result};
use crate::write::chain::Chains;
use crate::write::choice::Method;
use crate::write::options::{ComponentOptions, Compression};
use crate::write::tools::Tools;

/// Components of at least this many bytes begin on a page.
///
/// Pays: not measured.
const LARGE: u64 = 1 << 20;
const PAGE: u64 = 4096;

/// Up to this length, sha256 takes less time than another thread needs to start.
///
/// Pays: nothing where bytes come in pieces: `zt convert` of 100,000 tensors of 160 bytes, and of 2,000 of 24 KB,
/// takes as long with 0 and without end.
const SHA256_AT_ONCE: usize = 32 << 10;

/// Up to this length, a checksum takes less time than another thread needs to start.
///
/// Pays: `Writer::add_all` of tensors of 2.5 MB takes 0.90 of the time of one core, and as much CPU time. Tensors of
/// 200 KB take 0.91 of the CPU time that they take with 0.
const CRC32C_AT_ONCE: usize = 256 << 10;

/// From this length on, a checksum takes longer than a new thread needs to begin and to end.
///
/// Pays: tensors of W2b that were added one by one took 0.92 of the time on tmpfs, and 0.81 on a disk. Tensors of 2.5
/// MB take 0.48 of the time that they take with no least length.
const WORTH_A_THREAD: usize = 4 << 20;

/// Compresses, hashes and lays out the components of one file, in their order.
pub(crate) struct Encoder<W> {
    pub(crate) container: ContainerWriter<W>,
    alignment: Option<u64>,
    /// The algorithm of chunk digests, if there are any.
    chunks: Option<DigestAlgorithm>,
    pub(crate) workers: Arc<Workers>,
    pub(crate) tools: Arc<Tools>,
    chains: Chains,
    queue: Queue<'static>,
    /// The limit of bytes of content in a queue.
    budget: usize,
    /// The blob that is being written.
    current: Option<OpenBlob>,
    /// The lengths of the codes of the last blob, little-endian, if it had any.
    lengths: Vec<u8>,
    /// Blobs that were incomplete when their component ended, by ticket.
    ended: Vec<EndedBlob>,
    tickets: usize,
}

/// A blob that workers hash while others are written.
struct Hashed<'m> {
    ticket: usize,
    byte_len: usize,
    sums: Task<'m, Result<Sums>>,
}

/// The default alignment of a component of `byte_len` decoded bytes.
pub(crate) const fn alignment_of(byte_len: u64) -> u64 {
    if byte_len >= LARGE { PAGE } else { ALIGNMENT }
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
            Chunks::table_len(*algorithm, CHUNK.strict_add(1)).is_some()
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
            lengths: Vec::new(),
            ended: Vec::new(),
            tickets: 0,
        })
    }

    fn alignment_of(&self, byte_len: u64) -> u64 {
        self.alignment.unwrap_or(alignment_of(byte_len))
    }

    pub(crate) fn encode(&mut self, content: &[u8], options: ComponentOptions) -> Result<Placed> {
        let is_raw = options.compression == Compression::None || content.is_empty();
        if is_raw && self.queue.is_empty() {
            if content.len() <= SHA256_AT_ONCE {
                return self.encode_small(content, options.digest);
            }
            let combines = options.digest.is_some_and(DigestAlgorithm::combines);
            if content.len() >= WORTH_A_THREAD && combines && self.workers.threads() > 1 {
                return self.encode_lent(content, options);
            }
        }
        let mut component = ComponentEncoder::new(options, content.len() as u64);
        component.write(self, content)?;
        component.finish(self)
    }

    /// Stores a small raw component. Most components of most files are small: they take no memory
    /// besides their bytes. 100,000 tensors of 16 bytes with a crc32c took 0.77 of the processor time.
    fn encode_small(&mut self, content: &[u8], digest: Option<DigestAlgorithm>) -> Result<Placed> {
        let alignment = self.alignment_of(content.len() as u64);
        self.container.begin_blob(alignment, digest)?;
        self.container.write(content)?;
        let (span, digest) = self.container.end_blob()?;
        Ok(Placed::At(Blob::raw(span).with_digest(digest)))
    }

    /// Stores a component that is lent for the time of this call.
    fn encode_lent(&mut self, content: &[u8], options: ComponentOptions) -> Result<Placed> {
        let workers = Arc::clone(&self.workers);
        workers.scope(1, |scope| {
            let mut lending = Lending::begin(self, scope)?;
            let placed = lending.store(self, &Content::Bytes(content), options)?;
            lending.finish(self)?;
            Ok(placed)
        })
    }

    /// Stores the lengths of the codes of the component before, which has `symbols` symbols.
    pub(crate) fn encode_lengths(
        &mut self,
        symbols: u64,
        digest: Option<DigestAlgorithm>,
    ) -> Result<Placed> {
        let mut queue = mem::take(&mut self.queue);
        let placed = queue.store_lengths(self, symbols, digest);
        self.queue = queue;
        placed
    }

    /// Writes everything that is left, chunk digests last: they are near the manifest, where a reader of
    /// a remote file begins. Returns the sink, and the blobs by their tickets.
    pub(crate) fn finish(mut self) -> Result<(ContainerWriter<W>, Vec<Blob>)> {
        self.wait_for_digests()?;
        let mut container = self.container;
        let has_tables = self.ended.iter().any(|ended| ended.table.is_some());
        if has_tables {
            container.begin_blob(ALIGNMENT, None)?;
        }
        let mut blobs = Vec::with_capacity(self.ended.len());
        for ended in self.ended {
            let mut blob = ended.blob;
            if let Some(table) = ended.table {
                let span = Span::exact(container.offset(), table.as_bytes().len() as u64);
                let digest = table.algorithm().digest(table.as_bytes())?;
                container.write(table.as_bytes())?;
                blob.chunks = Some(Box::new(Chunks { span, digest }));
            }
            blobs.push(blob);
        }
        if has_tables {
            container.end_blob()?;
        }
        Ok((container, blobs))
    }

    /// Writes the queue, and waits for the digests of all blobs that have a ticket.
    pub(crate) fn wait_for_digests(&mut self) -> Result<()> {
        self.write_queue()?;
        for ended in &mut self.ended {
            if let Some(chain) = ended.chain.take() {
                ended.blob.digest = chain.finish();
            }
        }
        Ok(())
    }

    /// The blob of a ticket, with its digest after [`Encoder::wait_for_digests`].
    pub(crate) fn blob(&self, ticket: usize) -> Option<&Blob> {
        self.ended.get(ticket).map(|ended| &ended.blob)
    }

    /// Waits for digests, and computes those that no worker has begun.
    fn join(&mut self, hashed: Vec<Hashed<'_>>) -> Result<()> {
        hashed.iter().for_each(|hashed| hashed.sums.help());
        for Hashed { ticket, sums, .. } in hashed {
            let sums = sums.wait().ok_or_else(Error::out_of_order)??;
            if let Some(ended) = self.ended.get_mut(ticket) {
                ended.set_sums(sums);
            }
        }
        Ok(())
    }

    /// Writes the queue, and waits for the work in progress.
    fn write_queue(&mut self) -> Result<()> {
        let mut queue = mem::take(&mut self.queue);
        queue.write(self)
    }

    /// Whether the next bytes can be written without a copy.
    fn writes_at_once(&self) -> bool {
        self.queue.is_empty() && !self.current.as_ref().is_some_and(OpenBlob::is_chained)
    }

    /// The beginning of a raw component. `is_long` says whether a chain is worth its start.
    fn begin_raw(&self, byte_len: u64, digest: Option<DigestAlgorithm>, is_long: bool) -> Begin {
        let is_chained = is_long && self.chains(digest);
        Begin {
            alignment: self.alignment_of(byte_len),
            encoding: Encoding::Raw,
            has_table: false,
            has_lengths: false,
            digest,
            hashing: if is_chained { Hashing::Chain } else { Hashing::Writer },
        }
    }

    /// The beginning of a component that is stored in parts.
    fn begin_parts(
        &self,
        method: Method,
        content_len: u64,
        digest: Option<DigestAlgorithm>,
        is_long: bool,
    ) -> Begin {
        Begin {
            has_table: matches!(method, Method::Frames(_)),
            has_lengths: method == Method::Codes,
            ..self.begin_raw(method.expected_len(content_len), digest, is_long)
        }
    }

    /// Whether long components are hashed by a chain.
    fn chains(&self, digest: Option<DigestAlgorithm>) -> bool {
        digest == Some(DigestAlgorithm::Sha256) && self.workers.threads() > 1
    }

    /// Writes `item` after the queue; now, if the queue is empty.
    fn submit(&mut self, item: Item<'static>, cost: usize) -> Result<()> {
        let mut queue = mem::take(&mut self.queue);
        let submitted = queue.submit(self, item, cost);
        self.queue = queue;
        submitted
    }

    fn write_item(&mut self, item: Item<'_>) -> Result<()> {
        match item {
            Item::Begin(begin) => self.begin(begin),
            Item::Raw(bytes) => {
                self.write_raw(&bytes)?;
                self.release(bytes);
                Ok(())
            }
            Item::Frame(task) => {
                let stored = task.wait().ok_or_else(Error::out_of_order)??;
                self.write_stored(stored)
            }
            Item::Lengths(digest) => {
                let lengths = mem::take(&mut self.lengths);
                self.begin(self.begin_raw(lengths.len() as u64, digest, false))?;
                self.write_raw(&lengths)
            }
            Item::End { decoded_len } => {
                let ended = self.end(decoded_len)?;
                self.ended.push(ended);
                Ok(())
            }
        }
    }

    fn end_now(&mut self, decoded_len: Option<u64>) -> Result<Placed> {
        let ended = self.end(decoded_len)?;
        if ended.chain.is_none() && ended.table.is_none() {
            return Ok(Placed::At(ended.blob));
        }
        let placed = self.place_later(decoded_len);
        self.ended.push(ended);
        Ok(placed)
    }

    /// The place of a blob that is incomplete, with the next ticket.
    fn place_later(&mut self, decoded_len: Option<u64>) -> Placed {
        let ticket = self.tickets;
        self.tickets = ticket.strict_add(1);
        Placed::Later { ticket, decoded_len }
    }
}
