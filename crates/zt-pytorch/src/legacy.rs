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

use zt::container::bytes_of;
use zt::foreign::FileBuilder;
use zt::{Error, Result, Source, Span};
use zt_foreign::{Input, Opening};

use crate::assemble::assemble_one;
use crate::global::Global;
use crate::pickle::{Heap, Node, PICKLE_LEN, Pickle, PickleFault, Value, load_record};
use crate::view::{self, Storage};
use crate::violation::Violation;

/// `0x1950a86a20f9469cfc6c`, little-endian.
const MAGIC: &[u8] = &[0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19];
const PROTOCOL: i64 = 1001;

/// The first bytes that are read for the pickles. Their length is unknown, and most of the file is
/// storages.
const WINDOW: u64 = 1 << 20;

/// Whether a file begins with a pickle of protocol 1 to 5, or with the magic number in protocol 0.
pub(super) fn is_pickle(head: &[u8]) -> bool {
    // A safetensors file may begin with any length, followed by a `{`.
    let is_length = matches!(head, [_, _, _, _, 0, 0, 0, 0, b'{', ..]);
    let is_pickle = matches!(head, [0x80, 1..=5, ..]) || head.starts_with(ASCII_MAGIC);
    is_pickle && !is_length
}

/// The magic number in the protocols that write it in decimal.
const ASCII_MAGIC: &[u8] = b"L119547037146038801333356L\n.";

pub(super) fn open(
    source: Arc<dyn Source>,
    builder: FileBuilder,
    opening: Opening<'_>,
) -> Result<Input> {
    let available = source.byte_len();
    let too_long = || Violation::RecordTooLong {
        found: available,
        limit: PICKLE_LEN,
    };
    let mut window = WINDOW;
    loop {
        let span = Span::new(0, window.min(available).min(PICKLE_LEN)).ok_or_else(too_long)?;
        let bytes = bytes_of(&source, span)?;
        let fault = match Pickles::read(&bytes) {
            Ok(pickles) => {
                let storages = pickles.storages(&source)?;
                let Pickles { object, start, .. } = pickles;
                let source = Arc::clone(&source);
                return assemble_one(source, object, start, &storages, builder, opening);
            }
            Err(fault) => fault,
        };
        // A truncated pickle may continue after the window.
        if !is_truncated(&fault) || span.byte_len() == available {
            return Err(fault);
        }
        if window >= PICKLE_LEN {
            return Err(too_long().into());
        }
        // Not above four times the limit.
        window = window.checked_mul(4).ok_or_else(too_long)?;
    }
}

/// The pickles at the beginning of a file.
struct Pickles<'p> {
    object: Pickle<'p>,
    /// Where the object begins.
    start: u64,
    /// Keys of the storages, in their order.
    keys: Vec<String>,
    /// Where the storages begin.
    byte_len: u64,
}

fn is_truncated(error: &Error) -> bool {
    let violation = error.inner().and_then(|inner| inner.downcast_ref());
    match violation {
        Some(Violation::Pickle { error, .. }) => {
            matches!(error.fault, PickleFault::Truncated { .. })
        }
        _ => false,
    }
}

impl<'p> Pickles<'p> {
    fn read(bytes: &'p [u8]) -> Result<Self> {
        let mut rest = bytes;
        let mut next = |record| {
            let start = bytes.len().abs_diff(rest.len());
            let pickle = load_record(record, rest, Some(start as u64), Global::find)?;
            rest = rest.get(pickle.byte_len..).unwrap_or_default();
            Ok::<_, Error>((pickle, start))
        };
        let (magic, _) = next("the first pickle")?;
        if !is_magic(&magic) {
            return Err(Violation::Magic.into());
        }
        let (protocol, _) = next("the protocol")?;
        if protocol.root != Value::Int(PROTOCOL) {
            let found = match protocol.root {
                Value::Int(version) => version.to_string(),
                other => protocol.heap.describe(other).to_owned(),
            };
            return Err(Violation::Version { found }.into());
        }
        // The byte order and type sizes of the writing machine. They have no effect.
        next("the system")?;
        let (object, start) = next("the object")?;
        let (keys, _) = next("the storage keys")?;
        Ok(Pickles {
            object,
            start: start as u64,
            keys: texts(&keys).ok_or(Violation::Keys)?,
            byte_len: bytes.len().abs_diff(rest.len()) as u64,
        })
    }

    /// The span of each storage. After a wrong count, the next storage cannot be found.
    fn storages(&self, source: &dyn Source) -> Result<HashMap<String, Span>> {
        let known = storages_of(&self.object.heap);
        let mut storages = HashMap::new();
        let mut offset = self.byte_len;
        for key in &self.keys {
            let Some(storage) = known.get(key) else {
                let key = key.clone();
                return Err(Violation::UnknownStorage { key }.into());
            };
            let mut count = [0; 8];
            let place = span_at(source, offset, count.len() as u64)?;
            source.read_at(place.offset(), &mut count)?;
            let found = i64::from_le_bytes(count);
            if u64::try_from(found) != Ok(storage.whole_count) {
                let count = Violation::StorageCount {
                    key: key.clone(),
                    expected: storage.whole_count,
                    found,
                };
                return Err(Error::from(count).with_offset(offset));
            }
            let span = span_at(source, place.end(), storage.whole_len)?;
            offset = span.end();
            storages.insert(key.clone(), span);
        }
        Ok(storages)
    }
}

/// The next `needed` bytes of a file.
pub(super) fn span_at(source: &dyn Source, offset: u64, needed: u64) -> Result<Span> {
    let end = source.byte_len();
    let span = Span::new(offset, needed).filter(|span| span.end() <= end);
    span.ok_or_else(|| {
        let available = end.saturating_sub(offset);
        Error::from(Violation::StorageTruncated { needed, available }).with_offset(offset)
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
