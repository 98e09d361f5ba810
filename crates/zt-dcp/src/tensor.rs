//! The pickle of an item: one tensor, as `torch.save` writes it.
//!
//! ```text
//! _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks, metadata)
//! _rebuild_tensor_v3(storage, offset, size, stride, requires_grad, hooks, dtype, metadata)
//! storage: ("storage", class, key, location, count)
//! ```

use zt_foreign::strided::View;

use crate::element::Element;
use crate::metadata::dtype_of;
use crate::pickle::{Class, Heap, Node, Value, dict, load, number, object, sizes, wrong};
use crate::violation::{Done, Violation};

const REBUILD_V2: Class = ("torch._utils", "_rebuild_tensor_v2");
const REBUILD_V3: Class = ("torch._utils", "_rebuild_tensor_v3");
const UNTYPED: Class = ("torch.storage", "UntypedStorage");

/// Where the elements of a tensor are in its storage.
#[derive(Debug)]
pub(crate) struct Elements {
    /// The member `data/KEY` of the archive.
    pub(crate) key: String,
    /// The bytes of the storage.
    pub(crate) storage_len: u64,
    /// In elements.
    offset: u64,
    strides: Vec<u64>,
}

impl Elements {
    /// Reads a pickle, which must describe elements of this type and sizes.
    pub(crate) fn read(bytes: &[u8], element: &Element, expected: &[u64]) -> Done<Self> {
        let pickle = load(bytes)?;
        read(&pickle.heap, pickle.root, element, expected)
    }

    /// The elements in a storage that begins at `start`. Every element is in the storage.
    pub(crate) fn view(&self, start: u64, element: &Element, sizes: &[u64]) -> Done<View> {
        let strides = self.strides.iter();
        let strides = strides.map(|stride| stride.checked_mul(element.byte_len));
        let strides = strides.collect::<Option<Vec<u64>>>();
        let offset = self.offset.checked_mul(element.byte_len);
        let offset = offset.and_then(|offset| offset.checked_add(start));
        let view = offset.zip(strides);
        let view = view.and_then(|(at, strides)| View::new(at, element.byte_len, sizes, &strides));
        let end = start.checked_add(self.storage_len);
        view.filter(|view| end.is_some_and(|end| view.end() <= end))
            .ok_or(Violation::OutsideStorage)
    }
}

fn read(heap: &Heap<'_>, root: Value, element: &Element, expected: &[u64]) -> Done<Elements> {
    let Some((class, object)) = object(heap, root) else {
        return Err(wrong(heap, "tensor", root));
    };
    // A subclass of a tensor, for example.
    if class != REBUILD_V2 && class != REBUILD_V3 {
        return Err(Violation::class(class));
    }
    let Some([storage, offset, size, stride, _, _, more @ ..]) = heap.tuple(object.arguments)
    else {
        return Err(wrong(heap, "arguments of a tensor", object.arguments));
    };
    let found = sizes(heap, "size", *size)?;
    if found != expected {
        let expected = expected.to_vec();
        return Err(Violation::Sizes { expected, found });
    }
    let (found, metadata) = match more {
        [dtype, more @ ..] if class == REBUILD_V3 => (Some(dtype_of(heap, *dtype)?), more),
        more => (None, more),
    };
    check_metadata(heap, metadata.first())?;
    let (key, storage_len) = self::storage(heap, *storage, element, found)?;
    Ok(Elements {
        key,
        storage_len,
        offset: number(heap, "storage offset", *offset)?,
        strides: sizes(heap, "stride", *stride)?,
    })
}

/// The key of a storage and its bytes. `found` is the type of its elements if it has only bytes.
fn storage(
    heap: &Heap<'_>,
    value: Value,
    element: &Element,
    found: Option<&Element>,
) -> Done<(String, u64)> {
    let id = match heap.node(value) {
        Some(Node::Persistent(id)) => heap.tuple(*id),
        _ => None,
    };
    let Some([_, class, key, _, count]) = id else {
        return Err(wrong(heap, "storage", value));
    };
    let count = number(heap, "number of elements", *count)?;
    let class = heap.named(*class);
    let class = class.ok_or_else(|| wrong(heap, "class of a storage", value))?;
    let (is_right, len) = match found {
        Some(found) => (class == UNTYPED && found == element, 1),
        None => {
            let ("torch", name) = class else {
                return Err(Violation::class(class));
            };
            let name = name.strip_suffix("Storage");
            (name.is_some() && name == element.storage, element.byte_len)
        }
    };
    if !is_right {
        let expected = element.name;
        let found = found.map_or(class.1, |found| found.name);
        let found = found.chars().take(80).collect();
        return Err(Violation::OtherElement { expected, found });
    }
    let storage_len = count.checked_mul(len).ok_or(Violation::OutsideStorage)?;
    let key = heap.text(*key);
    let key = key.ok_or_else(|| wrong(heap, "key of a storage", value))?;
    Ok((key.to_owned(), storage_len))
}

/// Refuses operations that are deferred until the tensor is loaded: its values are not the stored ones.
fn check_metadata(heap: &Heap<'_>, metadata: Option<&Value>) -> Done<()> {
    let pairs = metadata.and_then(|metadata| dict(heap, *metadata));
    let mut pairs = pairs.into_iter().flatten();
    if pairs.any(|(_, value)| *value == Value::Bool(true)) {
        return Err(Violation::Deferred);
    }
    Ok(())
}
