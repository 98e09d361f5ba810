//! Storages, and views of their elements that are checked to lie in them.

use std::borrow::Cow;

use crate::arguments::{Arguments, wrong};
use crate::deferred::Deferred;
use crate::element::{ElementType, Meaning};
use crate::fault::{Done, TensorFault};
use crate::global::Global;
use crate::pickle::{Heap, Node, PickleFault, Value};

/// The limit of a key, which is a number or an address.
const KEY_LEN: usize = 64;

/// Elements of a storage, by offset, shape and strides.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct View {
    pub(super) storage: Storage,
    /// In elements.
    pub(super) offset: u64,
    pub(super) shape: Vec<u64>,
    /// In elements, one per dimension.
    pub(super) strides: Vec<u64>,
    pub(super) element: &'static ElementType,
    pub(super) deferred: Deferred,
    /// How many elements, and their bytes after packing.
    pub(super) count: u64,
    pub(super) byte_len: u64,
}

/// A storage, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Storage {
    pub(super) key: String,
    /// How many elements, as the pickle counts them, and their bytes.
    count: u64,
    byte_len: u64,
    /// The byte of the whole storage where this part begins. Only the oldest files have parts.
    pub(super) offset: u64,
    /// The elements of the whole storage, and their bytes.
    pub(super) whole_count: u64,
    pub(super) whole_len: u64,
    pub(super) element: &'static ElementType,
}

impl View {
    /// `(storage, offset, size, stride, ...)` with the storage resolved. `element` overrides the
    /// element type of the storage.
    pub(super) fn new(
        storage: Storage,
        arguments: &Arguments<'_, '_>,
        element: Option<&'static ElementType>,
    ) -> Done<Self> {
        let (shape, strides) = (arguments.sizes(2, "size")?, arguments.sizes(3, "stride")?);
        if shape.len() != strides.len() {
            return Err(TensorFault::Strides { sizes: shape.len(), strides: strides.len() });
        }
        let offset = arguments.unsigned(1, "storage offset")?;
        let element = element.unwrap_or(storage.element);
        View::unchecked(storage, offset, shape, strides, element)?.check()
    }

    /// A view that may reach beyond its storage.
    fn unchecked(
        storage: Storage,
        offset: u64,
        shape: Vec<u64>,
        strides: Vec<u64>,
        element: &'static ElementType,
    ) -> Done<Self> {
        let count = product(&shape).ok_or(TensorFault::Overflow)?;
        Ok(View {
            byte_len: match element.meaning {
                Meaning::Quantized { per_word, .. } if per_word > 1 => {
                    count.div_ceil(per_word.into())
                }
                _ => byte_len(count, element)?,
            },
            storage,
            offset,
            shape,
            strides,
            element,
            deferred: Deferred::default(),
            count,
        })
    }

    /// The first `count` elements of a view of one dimension, once for every index of `outer`.
    pub(super) fn repeated(self, outer: &[u64], count: u64) -> Done<Self> {
        let shape = outer.iter().copied().chain([count]).collect();
        let strides = outer.iter().map(|_| 0).chain(self.strides).collect();
        let view = View::unchecked(self.storage, self.offset, shape, strides, self.element)?;
        Ok(View { deferred: self.deferred, ..view })
    }

    /// One index of the first dimension.
    pub(super) fn row(&self, index: u64) -> Done<Self> {
        let (mut shape, mut strides) = (self.shape.clone(), self.strides.clone());
        if shape.is_empty() {
            return Ok(self.clone());
        }
        shape.remove(0);
        let offset = strides.remove(0).checked_mul(index);
        let offset = offset.and_then(|offset| offset.checked_add(self.offset));
        let offset = offset.ok_or(TensorFault::Overflow)?;
        let row = View::unchecked(self.storage.clone(), offset, shape, strides, self.element)?;
        Ok(View { deferred: self.deferred, ..row })
    }

    /// Whether the elements are contiguous in row-major order.
    pub(super) fn is_contiguous(&self) -> bool {
        let mut dimensions = self.shape.iter().zip(&self.strides).rev();
        let end = dimensions.try_fold(1u64, |expected, (size, stride)| {
            let fits = *size == 1 || *stride == expected;
            fits.then_some(expected)?.checked_mul(*size)
        });
        self.count == 0 || end.is_some()
    }

    /// Checks that every element lies in the storage.
    fn check(self) -> Done<Self> {
        let is_packed =
            matches!(self.element.meaning, Meaning::Quantized { per_word, .. } if per_word > 1);
        let needed =
            if is_packed { self.byte_len } else { self.reach().ok_or(TensorFault::Overflow)? };
        let available = self.storage.byte_len;
        if needed > available {
            return Err(TensorFault::Outside { needed, available });
        }
        // Packed elements fill the storage from its first byte.
        if is_packed && (self.offset != 0 || !self.is_contiguous()) {
            let name = "a view of packed integers".to_owned();
            return Err(TensorFault::Layout { name });
        }
        Ok(self)
    }

    /// The end of the last element in the storage, in bytes; 0 without elements.
    fn reach(&self) -> Option<u64> {
        if self.count == 0 {
            return Some(0);
        }
        let mut last = self.offset;
        for (size, stride) in self.shape.iter().zip(&self.strides) {
            last = last.checked_add(size.checked_sub(1)?.checked_mul(*stride)?)?;
        }
        last.checked_add(1)?.checked_mul(self.element.byte_len)
    }
}

impl Storage {
    /// The same storage as a whole, with another key.
    pub(super) fn renamed(&self, key: &str) -> Done<StorageId> {
        Ok(StorageId {
            key: key.to_owned(),
            element: self.element,
            count: i64::try_from(self.whole_count).map_err(|_| TensorFault::Overflow)?,
            part: None,
        })
    }

    /// The storage as a tensor of one dimension.
    pub(super) fn into_view(self) -> Done<View> {
        let (count, element) = (self.count, self.element);
        View::unchecked(self, 0, vec![count], vec![1], element)
    }
}

/// A storage as the persistent ids of newer files name it, for files that name it otherwise.
#[derive(Clone)]
pub(super) struct StorageId {
    pub(super) key: String,
    pub(super) element: &'static ElementType,
    pub(super) count: i64,
    /// The first element and the number of a part.
    pub(super) part: Option<(i64, i64)>,
}

impl StorageId {
    /// `("storage", class, key, location, count, part)`.
    pub(super) fn id(&self, heap: &mut Heap<'_>) -> Result<Value, PickleFault> {
        let text = |text: &str| Node::Text(Cow::Owned(text.to_owned()));
        let part = match self.part {
            None => Value::None,
            Some((first, count)) => {
                let part = vec![Value::None, Value::Int(first), Value::Int(count)];
                heap.add(Node::Tuple(part))?
            }
        };
        let class = Value::Global(Global::Storage(Some(self.element)));
        let items = vec![
            heap.add(text("storage"))?,
            class,
            heap.add(text(&self.key))?,
            Value::None,
            Value::Int(self.count),
            part,
        ];
        heap.add(Node::Tuple(items))
    }
}

pub(super) fn storage(heap: &Heap<'_>, value: Value) -> Done<Storage> {
    let Some(Node::Persistent(id)) = heap.node(value) else {
        return Err(wrong(heap, "storage", value));
    };
    let arguments = Arguments::new(heap, *id, "storage")?;
    if arguments.text(0, "storage")? != "storage" {
        return Err(wrong(heap, "storage", *id));
    }
    let class = arguments.value(1, "storage type")?;
    let Value::Global(Global::Storage(Some(element))) = class else {
        return Err(wrong(heap, "storage type", class));
    };
    // The keys of older files are addresses, written as texts.
    let key = arguments.text(2, "storage key")?;
    // The key is copied for every tensor, and one text can be the key of all.
    if key.len() > KEY_LEN {
        let key = key.chars().take(40).collect();
        return Err(TensorFault::NoStorage { key });
    }
    let key = key.to_owned();
    let count = arguments.unsigned(4, "number of elements")?;
    let whole_len = byte_len(count, element)?;
    let mut storage = Storage {
        key,
        count,
        byte_len: whole_len,
        offset: 0,
        whole_count: count,
        whole_len,
        element,
    };
    // A part of another storage: its key, offset and length.
    if let Some(part) = arguments.optional(5).filter(|part| *part != Value::None) {
        let part = Arguments::new(heap, part, "part of a storage")?;
        storage.offset = byte_len(part.unsigned(1, "offset of a part")?, element)?;
        storage.count = part.unsigned(2, "length of a part")?;
        storage.byte_len = byte_len(storage.count, element)?;
        let needed = storage.offset.checked_add(storage.byte_len);
        let needed = needed.ok_or(TensorFault::Overflow)?;
        if needed > whole_len {
            return Err(TensorFault::Outside { needed, available: whole_len });
        }
    }
    Ok(storage)
}

fn byte_len(count: u64, element: &ElementType) -> Done<u64> {
    count.checked_mul(element.byte_len).ok_or(TensorFault::Overflow)
}

/// The product of sizes; `None` beyond 2^64.
pub(super) fn product(sizes: &[u64]) -> Option<u64> {
    if sizes.contains(&0) {
        return Some(0);
    }
    sizes.iter().try_fold(1u64, |count, size| count.checked_mul(*size))
}
