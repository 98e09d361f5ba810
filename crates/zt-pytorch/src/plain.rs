//! Pickles that `torch.save` did not write: `pickle.dump` of arrays and tensors.
//!
//! The bytes of an array are in the pickle. A tensor has a storage, which is a call of
//! `torch.storage._load_from_bytes` with a whole stream of `torch.save`. The storage takes the place of
//! the call.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use zt::container::bytes_of;
use zt::foreign::FileBuilder;
use zt::{Error, Memory, Result, Source, Span};
use zt_foreign::{Input, Opening, Probe};
use zt_pickle::Use;

use crate::assemble::{Place, assemble_one};
use crate::fault::{TensorFault, TorchFault};
use crate::global::Global;
use crate::legacy::{self, Stream};
use crate::numpy::{self, Data};
use crate::pickle::{Heap, Node, PICKLE_LEN, Record, Value};
use crate::view::{self, StorageId};

/// How pickles of the protocols 0 and 1, which have no magic, begin: with a dict or a list.
const BEGINNINGS: [&[u8]; 4] = [b"(dp", b"(lp", b"}q\0", b"]q\0"];

/// Whether a file is a pickle, but not a stream of `torch.save`.
pub(super) fn recognises(probe: &Probe<'_>) -> Result<bool> {
    let head = probe.head();
    // A safetensors file may begin with any length, followed by a `{`.
    let is_length = matches!(head, [_, _, _, _, 0, 0, 0, 0, b'{', ..]);
    if is_length || legacy::is_stream(head) {
        return Ok(false);
    }
    if matches!(head, [0x80, 2..=5, ..]) {
        return Ok(true);
    }
    let begins = BEGINNINGS.iter().any(|bytes| head.starts_with(bytes)) || begins_with_global(head);
    let mut last = [0];
    if let Some(at) = probe.byte_len().checked_sub(1).filter(|_| begins) {
        probe.source().read_at(at, &mut last)?;
    }
    Ok(last == *b".")
}

/// Whether the first instruction names a global of one of these modules.
fn begins_with_global(head: &[u8]) -> bool {
    const MODULES: [&[u8]; 5] =
        [b"numpy.", b"torch.", b"collections\n", b"copy_reg\n", b"copyreg\n"];
    let module = head.strip_prefix(b"c");
    module.is_some_and(|module| MODULES.iter().any(|name| module.starts_with(name)))
}

pub(super) fn open(
    source: Arc<dyn Source>,
    builder: FileBuilder,
    opening: Opening<'_>,
) -> Result<Input> {
    let whole = legacy::span_before(source.byte_len(), 0, source.byte_len())?;
    let limit = PICKLE_LEN.min(builder.limits().manifest_len);
    let record = Record::read("the pickle", &source, whole, limit)?;
    let is_of_joblib = Cell::new(false);
    let loaded = record.load(|module, name, at| {
        if module.ends_with("joblib.numpy_pickle") {
            is_of_joblib.set(true);
        }
        Global::find_in_pickle(module, name, at)
    });
    // The bytes of its arrays are no instructions, whatever they were read as.
    if is_of_joblib.get() {
        return Err(TorchFault::Joblib.into());
    }
    let mut pickle = loaded?;
    let mut beside = behind(&source, record.end())?;
    // Byte strings that the outline leaves out can be pickles, too.
    for value in pickle.heap.values() {
        if let Some(Node::Elsewhere { offset, byte_len }) = pickle.heap.node(value) {
            beside.extend(uses_in(&source, *offset, *byte_len)?);
        }
    }
    let storages = storages(&mut pickle.heap, &source, &mut beside)?;
    let start = record.start();
    assemble_one(source, pickle, start, &storages, beside, builder, opening)
}

/// What Python would run of the pickles behind the first one.
fn behind(source: &dyn Source, start: u64) -> Result<Vec<Use>> {
    uses_in(source, start, source.byte_len().strict_sub(start))
}

/// What Python would run of a range of bytes, if they are a pickle.
fn uses_in(source: &dyn Source, start: u64, byte_len: u64) -> Result<Vec<Use>> {
    /// The longest pickle that is looked into.
    const LOOKED_INTO: u64 = 16 << 20;
    let mut first = [0];
    if byte_len < 2 {
        return Ok(Vec::new());
    }
    source.read_at(start, &mut first)?;
    if !matches!(first, [0x80 | b'c' | b'(']) {
        return Ok(Vec::new());
    }
    let span = Span::new(start, byte_len.min(LOOKED_INTO)).ok_or(TensorFault::Overflow)?;
    Ok(zt_pickle::uses(&bytes_of(source, span)?))
}

/// Puts the storage of every stream in the place of the call that would load it, and returns the
/// storages by their new keys. Several calls may have the same bytes.
fn storages(
    heap: &mut Heap<'_>,
    file: &Arc<dyn Source>,
    uses: &mut Vec<Use>,
) -> Result<HashMap<String, Place>> {
    let calls = heap.values().filter_map(|call| match heap.node(call) {
        Some(Node::Made(made)) if made.maker == Global::LoadFromBytes => {
            match heap.tuple(made.arguments) {
                Some([Value::Node(bytes)]) => Some((call, *bytes)),
                _ => None,
            }
        }
        _ => None,
    });
    let mut places = HashMap::new();
    let mut known = HashMap::new();
    // Bytes that are escaped take memory; a text can be escaped any number of times.
    let limit = file.byte_len();
    let mut left = limit;
    for (call, bytes) in calls.collect::<Vec<_>>() {
        let id = match known.get(&bytes) {
            Some(id) => *id,
            None => {
                let key = places.len().to_string();
                let Some((id, place)) = storage(heap, Value::Node(bytes), &key, file, uses)? else {
                    continue;
                };
                let memory = place.source.as_ref().map_or(0, |memory| memory.byte_len());
                let spent = left.checked_sub(memory);
                left = spent.ok_or(TorchFault::Expanding { limit })?;
                let full = |fault| Error::from(TorchFault::Memory(fault));
                let id = id.id(heap).map_err(full)?;
                places.insert(key, place);
                known.insert(bytes, id);
                id
            }
        };
        if let Some(call) = heap.node_mut(call) {
            *call = Node::Persistent(id);
        }
    }
    Ok(places)
}

/// The storage that the stream in `bytes` has as its object, and its place; `None` for other values.
fn storage(
    heap: &Heap<'_>,
    bytes: Value,
    key: &str,
    file: &Arc<dyn Source>,
    uses: &mut Vec<Use>,
) -> Result<Option<(StorageId, Place)>> {
    let (source, span) = match numpy::data(heap, bytes) {
        None => return Ok(None),
        Some(Data::There(span)) => (None, span),
        Some(Data::Here(bytes)) => {
            let span = Span::new(0, bytes.len() as u64).ok_or(TensorFault::Overflow)?;
            let memory: Arc<dyn Source> = Arc::new(Memory::new(bytes.into_owned()));
            (Some(memory), span)
        }
    };
    let base = source.as_ref().unwrap_or(file);
    let stream = Stream::read(base, span)?;
    let object = stream.object.load(Global::find)?;
    uses.extend(stream.uses()?);
    uses.extend(object.heap.uses());
    let storage = view::storage(&object.heap, object.root)?;
    let (spans, cut) = stream.storages(&object, base)?;
    if let Some(cut) = cut {
        return Err(cut);
    }
    let missing = || TensorFault::NoStorage { key: storage.key.clone() };
    let span = *spans.get(&storage.key).ok_or_else(missing)?;
    let from = if source.is_some() { 0 } else { span.offset() };
    let place = Place { from, source, span, digest: None };
    Ok(Some((storage.renamed(key)?, place)))
}
