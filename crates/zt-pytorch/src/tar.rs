//! Tar archives, which `torch.save` wrote before version 0.1.10.
//!
//! ```text
//! storages  pickles, with elements among them: a count; for each storage (key, location, class), its
//!           elements as in the stream after it; at last a list of (key, key of the whole, offset, count)
//! tensors   a count; for each tensor a pickle (key, key of its storage, class), behind it in binary
//!           the rank (i32), 4 bytes, sizes and strides (i64), offset in the storage (i64)
//! pickle    the object, whose persistent ids are keys of tensors and storages
//! ```
//!
//! The ids of the object become the calls and ids that newer files have.

use std::collections::HashMap;
use std::sync::Arc;

use zt::container::bytes_of;
use zt::foreign::FileBuilder;
use zt::{Error, Result, Source, Span};
use zt_foreign::{Input, Opening};

use crate::assemble::{Place, assemble_one};
use crate::fault::{RANK, TorchFault};
use crate::global::{Global, Rebuild};
use crate::legacy::span_before;
use crate::pickle::{self, Heap, Node, PICKLE_LEN, Pickle, PickleFault, Record, Value};
use crate::view::StorageId;

/// Headers and contents of members begin at multiples of this.
const BLOCK: u64 = 512;

/// The limit of a key, which is an address.
const KEY_LEN: usize = 64;

/// The members that tell these archives from others, at their beginning.
const NAMES: [&[u8]; 4] = [b"storages\0", b"tensors\0", b"pickle\0", b"sys_info\0"];

/// Whether this is a tar archive that begins with a file of torch before 0.1.10.
pub(super) fn is_tar(head: &[u8]) -> bool {
    const MAGIC: usize = 257;
    let magic = head.get(MAGIC..);
    magic.is_some_and(|magic| magic.starts_with(b"ustar"))
        && NAMES.iter().any(|name| head.starts_with(name))
}

pub(super) fn open(
    source: Arc<dyn Source>,
    builder: FileBuilder,
    opening: Opening<'_>,
) -> Result<Input> {
    let members = members(&source)?;
    let member = |name| members.get(name).copied().ok_or(TorchFault::NoMember { name });
    let storages = Storages::read(&source, member("storages")?)?;
    let span = member("tensors")?;
    let tensors = bytes_of(&source, bounded(span)?)?;
    let tensors =
        tensors_of(&tensors, &storages.ids).map_err(|fault| Error::from(fault).with_span(span))?;
    let span = member("pickle")?;
    let record = Record::read("pickle", &source, span, PICKLE_LEN)?;
    let mut pickle = record.load(Global::find)?;
    let full = |error| Error::from(TorchFault::Memory(error));
    // Any number of ids can name one tensor.
    let mut known: HashMap<String, Option<Known>> = HashMap::new();
    for id in pickle.heap.persistent().collect::<Vec<_>>() {
        let heap = &mut pickle.heap;
        let key = match heap.node(id) {
            Some(Node::Persistent(key)) => key_of(heap, *key),
            _ => None,
        };
        let Some(key) = key else {
            continue;
        };
        if !known.contains_key(&key) {
            let new = match (tensors.get(&key), storages.ids.get(&key)) {
                (Some(tensor), _) => Some(Known::Tensor(tensor.call(heap).map_err(full)?)),
                (None, Some(storage)) => Some(Known::Storage(storage.id(heap).map_err(full)?)),
                (None, None) => None,
            };
            known.insert(key.clone(), new);
        }
        let node = known.get(&key).copied().flatten().map(|known| match known {
            Known::Tensor(made) => Node::Made(made),
            Known::Storage(id) => Node::Persistent(id),
        });
        if let (Some(node), Some(target)) = (node, heap.node_mut(id)) {
            *target = node;
        }
    }
    let start = span.offset();
    let places = &storages.places;
    assemble_one(source, pickle, start, places, Vec::new(), builder, opening)
}

/// What an id of the object stands for.
#[derive(Clone, Copy)]
enum Known {
    Tensor(pickle::Made),
    /// The persistent id of newer files.
    Storage(Value),
}

/// The contents of torch's members, by their names. Other members are passed over.
fn members(source: &dyn Source) -> Result<HashMap<&'static str, Span>> {
    let (mut found, mut offset) = (HashMap::new(), 0);
    // Two empty blocks end an archive; some writers leave them out.
    while offset < source.byte_len() {
        let mut header = [0; 512];
        let place = span_before(source.byte_len(), offset, BLOCK)?;
        source.read_at(offset, &mut header)?;
        if header.iter().all(|byte| *byte == 0) {
            break;
        }
        let digits = &header[124..136];
        let digits = digits.split(|byte| matches!(byte, 0 | b' '));
        let digits = digits.into_iter().find(|digits| !digits.is_empty());
        let len = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let len = len.and_then(|digits| u64::from_str_radix(digits, 8).ok());
        let at = |fault| Error::from(fault).with_offset(offset);
        let len = len.ok_or_else(|| at(TorchFault::Header))?;
        let span = span_before(source.byte_len(), place.end(), len)?;
        let name = ["storages", "tensors", "pickle"].into_iter().find(|name| {
            let rest = header.strip_prefix(name.as_bytes());
            rest.is_some_and(|rest| rest.first() == Some(&0))
        });
        if let Some(name) = name {
            found.insert(name, span);
        }
        let next = span.end().checked_next_multiple_of(BLOCK);
        offset = next.ok_or_else(|| at(TorchFault::Header))?;
    }
    Ok(found)
}

/// A member that is read as a whole.
fn bounded(span: Span) -> Result<Span, TorchFault> {
    let (found, limit) = (span.byte_len(), PICKLE_LEN);
    if found > limit {
        return Err(TorchFault::RecordTooLong { found, limit });
    }
    Ok(span)
}

/// A key, which is an address, as an integer or its text.
fn key_of(heap: &Heap<'_>, value: Value) -> Option<String> {
    match value {
        Value::Int(key) => Some(key.to_string()),
        _ => {
            let key = heap.text(value).filter(|key| key.len() <= KEY_LEN);
            key.map(str::to_owned)
        }
    }
}

/// The storages, as the persistent ids of newer files name them.
struct Storages {
    ids: HashMap<String, StorageId>,
    places: HashMap<String, Place>,
}

impl Storages {
    fn read(source: &Arc<dyn Source>, member: Span) -> Result<Self> {
        let mut all = Storages { ids: HashMap::new(), places: HashMap::new() };
        let wrong = |offset| Error::from(TorchFault::Storages).with_offset(offset);
        let mut offset = member.offset();
        let (count, next) = small(source, member, offset, |pickle| match pickle.root {
            Value::Int(count) => Some(count),
            _ => None,
        })?;
        let count = count.ok_or_else(|| wrong(offset))?;
        offset = next;
        for _ in 0..count {
            let (found, next) = small(source, member, offset, |pickle| {
                let heap = &pickle.heap;
                match heap.sequence(pickle.root)? {
                    [key, _, Value::Global(Global::Storage(Some(element)))] => {
                        Some((key_of(heap, *key)?, *element))
                    }
                    _ => None,
                }
            })?;
            let (key, element) = found.ok_or_else(|| wrong(offset))?;
            let place = span_before(source.byte_len(), next, 8)?;
            let mut count = [0; 8];
            source.read_at(next, &mut count)?;
            let count = i64::from_le_bytes(count);
            let byte_len = u64::try_from(count).ok();
            let byte_len = byte_len.and_then(|count| count.checked_mul(element.byte_len));
            let byte_len = byte_len.ok_or_else(|| wrong(next))?;
            let span = span_before(source.byte_len(), place.end(), byte_len)?;
            offset = span.end();
            all.places.insert(key.clone(), Place::of_file(span));
            let id = StorageId { key: key.clone(), element, count, part: None };
            all.ids.insert(key, id);
        }
        let (parts, _) = small(source, member, offset, |pickle| {
            let heap = &pickle.heap;
            let parts = heap.sequence(pickle.root)?.iter();
            let parts = parts.map(|part| match heap.sequence(*part)? {
                [key, whole, Value::Int(first), Value::Int(count)] => {
                    Some((key_of(heap, *key)?, key_of(heap, *whole)?, (*first, *count)))
                }
                _ => None,
            });
            parts.collect::<Option<Vec<_>>>()
        })?;
        for (key, whole, part) in parts.ok_or_else(|| wrong(offset))? {
            let id = all.ids.get(&whole).cloned().ok_or_else(|| wrong(offset))?;
            let part = Some(part);
            all.ids.insert(key, StorageId { part, ..id });
        }
        Ok(all)
    }
}

/// What `read` finds in the pickle at `offset`, and the byte behind the pickle.
fn small<T>(
    source: &Arc<dyn Source>,
    member: Span,
    offset: u64,
    read: impl Fn(&Pickle<'_>) -> Option<T>,
) -> Result<(Option<T>, u64)> {
    let rest = Span::between(offset, member.end()).ok_or(TorchFault::Storages)?;
    let record = Record::read("storages", source, rest, PICKLE_LEN)?;
    let pickle = record.load(Global::find)?;
    Ok((read(&pickle), record.end()))
}

/// A tensor: a storage, an offset in it, sizes and strides.
struct Tensor {
    storage: StorageId,
    offset: i64,
    sizes: Vec<i64>,
    strides: Vec<i64>,
}

fn tensors_of(
    bytes: &[u8],
    storages: &HashMap<String, StorageId>,
) -> Result<HashMap<String, Tensor>, TorchFault> {
    let record = "tensors";
    let mut rest = bytes;
    let next = |rest: &mut &[u8]| {
        let at = *rest;
        let pickle = pickle::load(at, Global::find);
        let pickle = pickle.map_err(|error| TorchFault::Pickle { record, error })?;
        *rest = pickle.rest;
        let heap = &pickle.heap;
        Ok::<_, TorchFault>(match (pickle.root, heap.sequence(pickle.root)) {
            (Value::Int(count), _) => (Some(count), None),
            (_, Some([key, storage, _])) => (None, key_of(heap, *key).zip(key_of(heap, *storage))),
            _ => (None, None),
        })
    };
    let (count, _) = next(&mut rest)?;
    let mut tensors = HashMap::new();
    for _ in 0..count.ok_or(TorchFault::Tensors)? {
        let (_, keys) = next(&mut rest)?;
        let (key, storage) = keys.ok_or(TorchFault::Tensors)?;
        let storage = storages.get(&storage).cloned().ok_or(TorchFault::Tensors)?;
        let (rank, behind) = rest.split_first_chunk().ok_or(TorchFault::Tensors)?;
        let rank = usize::try_from(i32::from_le_bytes(*rank)).ok();
        let rank = rank.filter(|rank| *rank <= RANK).ok_or(TorchFault::Tensors)?;
        // The rank once had eight bytes.
        let (_, behind) = behind.split_at_checked(4).ok_or(TorchFault::Tensors)?;
        // The sizes, the strides and the offset.
        let byte_len = rank.strict_mul(2).strict_add(1).strict_mul(8);
        let (words, behind) = behind.split_at_checked(byte_len).ok_or(TorchFault::Tensors)?;
        let mut words = words.as_chunks().0.iter().map(|word| i64::from_le_bytes(*word));
        let sizes: Vec<i64> = words.by_ref().take(rank).collect();
        let strides: Vec<i64> = words.by_ref().take(rank).collect();
        let offset = words.next().ok_or(TorchFault::Tensors)?;
        rest = behind;
        let tensor = Tensor { storage, offset, sizes, strides };
        tensors.insert(key, tensor);
    }
    Ok(tensors)
}

impl Tensor {
    /// The call `_rebuild_tensor(storage, offset, sizes, strides)`.
    fn call(&self, heap: &mut Heap<'_>) -> Result<pickle::Made, PickleFault> {
        let storage = self.storage.id(heap)?;
        let storage = heap.add(Node::Persistent(storage))?;
        let mut numbers = |numbers: &[i64]| {
            heap.add(Node::Tuple(numbers.iter().copied().map(Value::Int).collect()))
        };
        let (sizes, strides) = (numbers(&self.sizes)?, numbers(&self.strides)?);
        let arguments = vec![storage, Value::Int(self.offset), sizes, strides];
        Ok(pickle::Made {
            maker: Global::Rebuild(Rebuild::Tensor),
            arguments: heap.add(Node::Tuple(arguments))?,
            state: None,
        })
    }
}
