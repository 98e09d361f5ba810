//! The stream of pickles that `torch.save` wrote before version 1.6, and still writes on request.
//!
//! ```text
//! +--------------+----------+-----------+------------+-------------+-------+---------------+-----
//! | magic number | protocol | system    | the object | keys of the | count | elements of   | ...
//! | 0x1950...9c6c| 1001     |           |            | storages    | i64   | the first one |
//! +--------------+----------+-----------+------------+-------------+-------+---------------+-----
//!   five pickles, one after another                                  the storages, by their keys
//! ```
//!
//! A count is a number of elements, and their type is in the object. Everything is little-endian, on
//! every machine.

use std::collections::HashMap;
use std::sync::Arc;

use zt::foreign::FileBuilder;
use zt::{Error, Result, Source, Span};
use zt_foreign::{Input, Opening};
use zt_pickle::Use;

use crate::assemble::{Place, assemble_one};
use crate::fault::TorchFault;
use crate::global::Global;
use crate::pickle::{Heap, Node, PICKLE_LEN, Pickle, Record, Value};
use crate::view::{self, Storage};

/// `0x1950a86a20f9469cfc6c`, little-endian.
const MAGIC: &[u8] = &[0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19];
const PROTOCOL: i64 = 1001;

/// The magic number in the protocols that write it in decimal.
const ASCII_MAGIC: &[u8] = b"L119547037146038801333356L\n.";

/// The first pickle has the magic number within its first bytes.
const FIRST: usize = 32;

/// Whether a file begins with the magic number in a pickle.
pub(super) fn is_stream(head: &[u8]) -> bool {
    let first = head.get(..FIRST).unwrap_or(head);
    let is_binary = matches!(first, [0x80, 1..=5, ..]);
    let has_magic = first.windows(MAGIC.len()).any(|bytes| bytes == MAGIC);
    is_binary && has_magic || head.starts_with(ASCII_MAGIC)
}

pub(super) fn open(
    source: Arc<dyn Source>,
    mut builder: FileBuilder,
    opening: Opening<'_>,
) -> Result<Input> {
    let byte_len = source.byte_len();
    let whole = span_before(byte_len, 0, byte_len)?;
    let stream = Stream::read(&source, whole)?;
    let object = stream.object.load(Global::find)?;
    let (places, cut) = stream.storages(&object, &source)?;
    match cut {
        Some(cut) if !opening.options.truncated => return Err(cut),
        Some(_) => builder.truncated(byte_len, None),
        None => {}
    }
    let places = places.into_iter();
    let places = places.map(|(key, span)| (key, Place::of_file(span)));
    let start = stream.object.start();
    let places = places.collect();
    let beside = stream.uses()?;
    assemble_one(source, object, start, &places, beside, builder, opening)
}

/// The pickles of a stream.
pub(super) struct Stream {
    pub(super) object: Record,
    /// The keys of the storages, in their order.
    keys: Record,
    /// Where the stream ends.
    end: u64,
    /// What Python would call or import beside harmless globals in the pickles before the object.
    before: Vec<Use>,
}

impl Stream {
    /// The stream that `span` of a source holds.
    pub(super) fn read(source: &dyn Source, span: Span) -> Result<Self> {
        let (mut at, end) = (span.offset(), span.end());
        let mut next = |name| {
            let rest = span_before(end, at, end.strict_sub(at))?;
            let record = Record::read(name, source, rest, PICKLE_LEN)?;
            at = record.end();
            Ok::<_, Error>(record)
        };
        let mut uses = Vec::new();
        let first = next("the first pickle")?;
        let first = first.load(Global::find)?;
        uses.extend(first.heap.uses());
        if !is_magic(&first) {
            return Err(TorchFault::Magic.into());
        }
        let protocol = next("the protocol")?;
        let protocol = protocol.load(Global::find)?;
        uses.extend(protocol.heap.uses());
        if protocol.root != Value::Int(PROTOCOL) {
            let found = match protocol.root {
                Value::Int(version) => version.to_string(),
                other => protocol.heap.describe(other).to_owned(),
            };
            return Err(TorchFault::Version { found }.into());
        }
        // The byte order and type sizes of the writing machine. They have no effect.
        uses.extend(next("the system")?.load(Global::find)?.heap.uses());
        let (object, keys) = (next("the object")?, next("the storage keys")?);
        Ok(Stream { object, keys, end, before: uses })
    }

    /// What Python would call or import beside harmless globals in the pickles around the object.
    pub(super) fn uses(&self) -> Result<Vec<Use>> {
        let behind = self.keys.load(Global::find)?.heap.uses();
        Ok([self.before.clone(), behind].concat())
    }

    /// The span of each storage of the object, and the error of the first one that is cut, if one is. After a
    /// wrong count, the next storage cannot be found.
    pub(super) fn storages(
        &self,
        object: &Pickle<'_>,
        source: &dyn Source,
    ) -> Result<(HashMap<String, Span>, Option<Error>)> {
        let keys = texts(&self.keys.load(Global::find)?).ok_or(TorchFault::Keys)?;
        let known = storages_of(&object.heap);
        let mut storages = HashMap::new();
        let mut offset = self.keys.end();
        for key in keys {
            let Some(storage) = known.get(&key) else {
                return Err(TorchFault::UnknownStorage { key }.into());
            };
            let mut count = [0; 8];
            let place = match span_before(self.end, offset, count.len() as u64) {
                Ok(place) => place,
                Err(cut) => return Ok((storages, Some(cut))),
            };
            source.read_at(place.offset(), &mut count)?;
            let found = i64::from_le_bytes(count);
            if u64::try_from(found) != Ok(storage.whole_count) {
                let expected = storage.whole_count;
                let count = TorchFault::StorageCount { key, expected, found };
                return Err(Error::from(count).with_offset(offset));
            }
            let span = match span_before(self.end, place.end(), storage.whole_len) {
                Ok(span) => span,
                Err(cut) => return Ok((storages, Some(cut))),
            };
            offset = span.end();
            storages.insert(key, span);
        }
        Ok((storages, None))
    }
}

/// The next `needed` bytes of a file or a stream, which ends at `end`.
pub(super) fn span_before(end: u64, offset: u64, needed: u64) -> Result<Span> {
    let span = Span::new(offset, needed).filter(|span| span.end() <= end);
    span.ok_or_else(|| {
        // Behind the end nothing is there.
        let available = end.saturating_sub(offset);
        Error::from(TorchFault::StorageTruncated { needed, available }).with_offset(offset)
    })
}

/// The storages of the object by their keys. An invalid one is a fault of the tensor that uses it.
fn storages_of(heap: &Heap<'_>) -> HashMap<String, Storage> {
    let mut known = HashMap::new();
    let storages = heap.persistent().flat_map(|id| view::storage(heap, id));
    for storage in storages {
        known.entry(storage.key.clone()).or_insert(storage);
    }
    known
}

fn is_magic(pickle: &Pickle<'_>) -> bool {
    // A long integer has no redundant bytes.
    matches!(pickle.heap.node(pickle.root), Some(Node::Long(bytes)) if **bytes == *MAGIC)
}

fn texts(pickle: &Pickle<'_>) -> Option<Vec<String>> {
    let items = pickle.heap.sequence(pickle.root)?;
    let texts = items.iter().map(|item| pickle.heap.text(*item));
    texts.map(|text| text.map(str::to_owned)).collect()
}
