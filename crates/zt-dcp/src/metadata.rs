//! The pickle `.metadata`: a `Metadata` of torch.
//!
//! ```text
//! Metadata
//!   state_dict_metadata: {name: TensorStorageMetadata or BytesStorageMetadata}
//!     TensorStorageMetadata: properties (dtype, layout), size, chunks (offsets, sizes)
//!   storage_data: {MetadataIndex (fqn, offset): _StorageInfo (relative_path, offset, length)}
//!   planner_data, storage_meta, version: not read
//! ```

use std::collections::HashMap;

use zt::{Error, Result, Span};
use zt_foreign::Meaning;
use zt_foreign::slices::{Slice, SliceFault, byte_len};
use zt_pickle::Use;

use crate::element::Element;
use crate::pickle::{Class, Fields, Heap, Value, dict, load, object, object_of, wrong};
use crate::violation::{Done, Violation};

/// The module of most classes.
pub(crate) const MODULE: &str = "torch.distributed.checkpoint.metadata";

const METADATA: Class = (MODULE, "Metadata");
const TENSOR: Class = (MODULE, "TensorStorageMetadata");
const BYTES: Class = (MODULE, "BytesStorageMetadata");
const CHUNK: Class = (MODULE, "ChunkStorageMetadata");
const INDEX: Class = (MODULE, "MetadataIndex");
const PROPERTIES: [Class; 2] = [
    (MODULE, "TensorProperties"),
    // torch 2.0 to 2.2.
    ("torch.distributed._shard.sharded_tensor.metadata", "TensorProperties"),
];
const STORED: Class = ("torch.distributed.checkpoint.filesystem", "_StorageInfo");
const LAYOUT: Class = ("torch.serialization", "_get_layout");

/// The bytes of a pickle for each of its chunks, at least: a chunk and its place take more than 100. So
/// the work for chunks that share their bytes of the pickle is limited.
const CHUNK_LEN: usize = 64;

/// The longest path of a file. One text can be the path of any number of items, and errors repeat it.
const PATH_LEN: usize = 4096;

/// All that a checkpoint has.
#[derive(Debug)]
pub(crate) struct Metadata {
    /// The names of the files below the folder, sorted.
    pub(crate) files: Vec<String>,
    pub(crate) entries: Vec<(String, Result<Entry, Refused>)>,
    /// What Python would call or import beside harmless globals.
    pub(crate) uses: Vec<Use>,
}

#[derive(Debug)]
pub(crate) enum Entry {
    Tensor(Tensor),
    /// A pickled value that is not a tensor.
    Value,
}

#[derive(Debug)]
pub(crate) struct Tensor {
    pub(crate) element: &'static Element,
    pub(crate) shape: Vec<u64>,
    pub(crate) byte_len: u64,
    /// The chunks that are not empty.
    pub(crate) chunks: Vec<(Slice, Place)>,
}

impl Tensor {
    /// The dimensions in values. torch's shape counts pairs of packed values.
    pub(crate) fn values_shape(&self) -> Vec<u64> {
        let mut shape = self.shape.clone();
        if let Meaning::Packed(_) = self.element.meaning {
            match shape.last_mut() {
                // A size in a pickle is below 2^63.
                Some(last) => *last = last.strict_mul(2),
                None => shape.push(2),
            }
        }
        shape
    }
}

/// Where an item is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// Its position in [`Metadata::files`].
    pub(crate) file: usize,
    pub(crate) span: Span,
}

/// Why a tensor is refused, and what a listing shows of it.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) fault: Violation,
    pub(crate) shape: Option<Vec<u64>>,
    pub(crate) element: Option<&'static Element>,
}

impl Metadata {
    /// Reads the pickle.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self> {
        let pickle = load(bytes).map_err(Violation::at_byte)?;
        let heap = &pickle.heap;
        let fields = Fields::of(heap, pickle.root, METADATA)?;
        let stored = Stored::read(heap, fields.optional("storage_data"))?;
        let entries = fields.value("state_dict_metadata")?;
        let pairs = dict(heap, entries);
        let pairs = pairs.ok_or_else(|| wrong(heap, "state_dict_metadata", entries))?;
        let mut left = bytes.len() / CHUNK_LEN;
        let mut entries = Vec::with_capacity(pairs.len());
        for (key, value) in pairs {
            let name = heap.text(*key);
            let name = name.ok_or_else(|| wrong(heap, "name", *key))?;
            let entry = entry(heap, name, *value, &stored, &mut left);
            entries.push((name.to_owned(), entry));
        }
        let files = stored.files.into_iter().map(str::to_owned).collect();
        let mut uses = heap.uses();
        uses.extend(zt_pickle::uses(pickle.rest));
        Ok(Metadata { files, entries, uses })
    }
}

/// The places of all items.
struct Stored<'h> {
    files: Vec<&'h str>,
    /// By the name of the tensor and the offsets of the chunk.
    places: HashMap<(&'h str, Vec<u64>), Done<Place>>,
}

impl<'h> Stored<'h> {
    fn read(heap: &'h Heap<'_>, value: Option<Value>) -> Result<Self> {
        let mut stored = Stored { files: Vec::new(), places: HashMap::new() };
        let Some(value) = value else {
            return Ok(stored);
        };
        let pairs = dict(heap, value);
        let pairs = pairs.ok_or_else(|| wrong(heap, "storage_data", value))?;
        let mut items = Vec::with_capacity(pairs.len());
        for (key, value) in pairs {
            let index = Fields::of(heap, *key, INDEX)?;
            if let Some((found, _)) = object(heap, *value).filter(|(found, _)| *found != STORED) {
                return Err(Violation::class(found).into());
            }
            let info = Fields::of(heap, *value, STORED)?;
            let file = info.text("relative_path")?;
            if file.len() > PATH_LEN {
                let limit = PATH_LEN;
                return Err(Violation::Path { limit }.into());
            }
            let (offset, len) = (info.number("offset")?, info.number("length")?);
            let span = Span::new(offset, len).ok_or(SliceFault::Overflow)?;
            stored.files.push(file);
            items.push((file, span, index, transformed(heap, info)));
        }
        stored.files.sort_unstable();
        stored.files.dedup();
        expect_apart(items.iter().map(|(file, span, ..)| (*file, *span)).collect())?;
        for (file, span, index, transformed) in items {
            // A value that is not a tensor has no offset, and is not read.
            let Some(_) = index.optional("offset") else {
                continue;
            };
            let file = stored.files.partition_point(|known| *known < file);
            let place = transformed.map(|()| Place { file, span });
            let key = (index.text("fqn")?, index.sizes("offset")?);
            // As in Python, the last one counts: processes without elements save chunks at one offset.
            stored.places.insert(key, place);
        }
        Ok(stored)
    }
}

/// Refuses an item that an extension of torch has compressed, by the name of the extension.
fn transformed(heap: &Heap<'_>, info: Fields<'_, '_>) -> Done<()> {
    let transforms = info.optional("transform_descriptors");
    let Some(first) = transforms.and_then(|list| heap.sequence(list)?.first()) else {
        return Ok(());
    };
    let name = heap.text(*first).unwrap_or("an extension");
    let name = name.chars().take(80).collect();
    Err(Violation::Transformed { name })
}

/// Refuses items that share bytes. torch writes them one after the other, and without this rule a
/// small file could have any number of elements.
fn expect_apart(mut items: Vec<(&str, Span)>) -> Result<()> {
    items.sort_unstable_by_key(|(file, span)| (*file, span.offset()));
    for pair in items.windows(2) {
        if let [(first, before), (second, after)] = pair
            && first == second
            && before.end() > after.offset()
        {
            let file = (*first).to_owned();
            return Err(Error::from(Violation::Overlap { file }));
        }
    }
    Ok(())
}

fn entry(
    heap: &Heap<'_>,
    name: &str,
    value: Value,
    stored: &Stored<'_>,
    left: &mut usize,
) -> Result<Entry, Refused> {
    let mut refused =
        Refused { fault: Violation::Missing { name: "chunks" }, shape: None, element: None };
    match object(heap, value) {
        Some((class, _)) if class == BYTES => return Ok(Entry::Value),
        Some((class, _)) if class != TENSOR => {
            refused.fault = Violation::class(class);
            return Err(refused);
        }
        _ => {}
    }
    match tensor(heap, name, value, stored, left, &mut refused) {
        Ok(tensor) => Ok(Entry::Tensor(tensor)),
        Err(fault) => Err(Refused { fault, ..refused }),
    }
}

/// A tensor. `known` gets what is read before a fault.
fn tensor(
    heap: &Heap<'_>,
    name: &str,
    value: Value,
    stored: &Stored<'_>,
    left: &mut usize,
    known: &mut Refused,
) -> Done<Tensor> {
    let fields = Fields::of(heap, value, TENSOR)?;
    let shape = fields.sizes("size")?;
    known.shape = Some(shape.clone());
    let element = element(heap, fields.value("properties")?)?;
    known.element = Some(element);
    let byte_len = byte_len(&shape, element.byte_len).ok_or(SliceFault::Overflow)?;
    let list = fields.value("chunks")?;
    let list = heap.sequence(list).ok_or_else(|| wrong(heap, "chunks", list))?;
    let rest = left.checked_sub(list.len());
    *left = rest.ok_or(Violation::Chunks { limit: CHUNK_LEN })?;
    let mut chunks = Vec::with_capacity(list.len());
    for chunk in list {
        let chunk = Fields::of(heap, *chunk, CHUNK)?;
        let (offsets, sizes) = (chunk.sizes("offsets")?, chunk.sizes("sizes")?);
        if sizes.contains(&0) {
            continue;
        }
        let key = (name, offsets);
        let place = stored.places.get(&key).cloned();
        let (_, offsets) = key;
        let Some(place) = place else {
            return Err(Violation::NoItem { offsets });
        };
        chunks.push((Slice { offsets, sizes }, place?));
    }
    Ok(Tensor { element, shape, byte_len, chunks })
}

/// The type of a tensor's elements. Its state is `(dtype, layout, requires_grad, memory_format,
/// pin_memory)`.
fn element(heap: &Heap<'_>, properties: Value) -> Done<&'static Element> {
    let mut classes = PROPERTIES.into_iter();
    let object = classes.find_map(|class| object_of(heap, properties, class));
    let state = object.and_then(|object| heap.tuple(object.state?));
    let Some([dtype, layout, ..]) = state else {
        return Err(wrong(heap, "properties", properties));
    };
    let layout = object_of(heap, *layout, LAYOUT)
        .and_then(|layout| heap.tuple(layout.arguments)?.first())
        .and_then(|layout| heap.text(*layout));
    if let Some(name) = layout.filter(|name| *name != "torch.strided") {
        let name = name.chars().take(80).collect();
        return Err(Violation::Layout { name });
    }
    dtype_of(heap, *dtype)
}

/// The element type that a global such as `torch.float32` names.
pub(crate) fn dtype_of(heap: &Heap<'_>, dtype: Value) -> Done<&'static Element> {
    let Some(("torch", name)) = heap.named(dtype) else {
        return Err(wrong(heap, "dtype", dtype));
    };
    let name_of = || name.chars().take(80).collect();
    Element::from_name(name).ok_or_else(|| Violation::Element { name: name_of() })
}
