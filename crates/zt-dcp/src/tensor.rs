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

    /// The elements in a storage that begins at `start`. Every element is in the storage, which has at least
    /// as many: torch saves no expanded tensors, and a few bytes could be any number of elements.
    pub(crate) fn view(&self, start: u64, element: &Element, sizes: &[u64]) -> Done<View> {
        let strides = self.strides.iter();
        let strides = strides.map(|stride| stride.checked_mul(element.byte_len));
        let strides = strides.collect::<Option<Vec<u64>>>();
        let offset = self.offset.checked_mul(element.byte_len);
        let offset = offset.and_then(|offset| offset.checked_add(start));
        let view = offset.zip(strides);
        let view = view.and_then(|(at, strides)| View::new(at, element.byte_len, sizes, &strides));
        let end = start.checked_add(self.storage_len);
        let view = view.filter(|view| view.byte_len() <= self.storage_len);
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

#[cfg(test)]
mod tests {
    use zt::Error;

    use super::*;

    /// The pickle of a tensor: a call of `rebuild` with a storage of this class and `count`, and then
    /// `place`: offset, size, stride, `requires_grad`, hooks, and more.
    fn pickle(rebuild: &str, class: &str, count: u8, place: &[u8]) -> Vec<u8> {
        let mut bytes = format!("ctorch._utils\n{rebuild}\n").into_bytes();
        bytes.extend(b"((X\x07\0\0\0storage");
        bytes.extend(format!("c{class}\n").into_bytes());
        bytes.extend(b"X\x01\0\0\x000X\x03\0\0\0cpuK");
        bytes.push(count);
        bytes.extend(b"tQ");
        bytes.extend(place);
        bytes.extend(b"tR.");
        bytes
    }

    /// Two floats from the beginning of the storage.
    const TWO: &[u8] = b"K\0K\x02\x85K\x01\x85\x89}";
    const FLOATS: &str = "torch\nFloatStorage";
    const V2: &str = "_rebuild_tensor_v2";

    fn code(bytes: &[u8], name: &str) -> Result<(), &'static str> {
        let element = Element::from_name(name).unwrap();
        let read = Elements::read(bytes, element, &[2]);
        let view = read.and_then(|elements| elements.view(100, element, &[2]));
        view.map(drop).map_err(|fault| Error::from(fault).code())
    }

    #[test]
    fn a_tensor_has_the_type_and_the_sizes_of_its_chunk() {
        let two = |class| pickle(V2, class, 2, TWO);
        assert_eq!(code(&two(FLOATS), "float32"), Ok(()));
        assert_eq!(code(&two(FLOATS), "int32"), Err("dtype"));
        assert_eq!(code(&two("torch\nIntStorage"), "float32"), Err("dtype"));
        assert_eq!(code(&two("os\nsystem"), "float32"), Err("pickle-global"));
        let three = pickle(V2, FLOATS, 3, b"K\0K\x03\x85K\x01\x85\x89}");
        assert_eq!(code(&three, "float32"), Err("shape-size-mismatch"));
        let bytes = [TWO, b"ctorch\nuint16\n"].concat();
        let newer = |class, count| pickle("_rebuild_tensor_v3", class, count, &bytes);
        let untyped = "torch.storage\nUntypedStorage";
        assert_eq!(code(&newer(untyped, 4), "uint16"), Ok(()));
        assert_eq!(code(&newer(untyped, 4), "int16"), Err("dtype"));
        assert_eq!(code(&newer(FLOATS, 4), "uint16"), Err("dtype"));
    }

    #[test]
    fn every_element_is_in_the_storage() {
        let at = |count, place: &[u8]| code(&pickle(V2, FLOATS, count, place), "float32");
        assert_eq!(at(1, TWO), Err("bounds"));
        assert_eq!(at(3, b"K\x02K\x02\x85K\x01\x85\x89}"), Err("bounds"));
        assert_eq!(at(1, b"K\0K\x02\x85K\0\x85\x89}"), Err("bounds"));
        assert_eq!(at(4, b"K\0K\x02\x85K\x03\x85\x89}"), Ok(()));
        assert_eq!(at(3, b"K\0K\x02\x85K\x03\x85\x89}"), Err("bounds"));
        assert_eq!(at(2, b"K\0K\x02\x85)\x89}"), Err("bounds"));
        let most = b"K\0K\x02\x85\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x85\x89}";
        assert_eq!(at(2, most), Err("bounds"));
        assert_eq!(at(2, b"J\xff\xff\xff\xffK\x02\x85K\x01\x85\x89}"), Err("schema"));
    }

    #[test]
    fn other_objects_and_deferred_operations_are_refused() {
        let negative = [TWO, b"}X\x03\0\0\0neg\x88s"].concat();
        assert_eq!(code(&pickle(V2, FLOATS, 2, &negative), "float32"), Err("unsupported"));
        let none = [TWO, b"}X\x03\0\0\0neg\x89s"].concat();
        assert_eq!(code(&pickle(V2, FLOATS, 2, &none), "float32"), Ok(()));
        let subclass = pickle("_rebuild_wrapper_subclass", FLOATS, 2, TWO);
        assert_eq!(code(&subclass, "float32"), Err("pickle-global"));
        assert_eq!(code(b"\x80\x02}.", "float32"), Err("schema"));
        assert_eq!(code(b"\x80\x02", "float32"), Err("pickle"));
    }
}
