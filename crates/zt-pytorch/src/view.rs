//! Elements of a storage, in any order, and whether they are there.

use crate::arguments::{Arguments, wrong};
use crate::element::{ElementType, Meaning};
use crate::global::Global;
use crate::pickle::{Heap, Node, Value};
use crate::violation::TensorFault;

/// Keys are numbers or addresses.
const KEY_LEN: usize = 64;

type Done<T> = Result<T, TensorFault>;

/// Elements of a storage, some or all, in some order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct View {
    pub(super) storage: Storage,
    /// In elements of this view.
    pub(super) offset: u64,
    pub(super) shape: Vec<u64>,
    /// In elements of this view, one per dimension.
    pub(super) strides: Vec<u64>,
    element: &'static ElementType,
}

/// A run of elements outside the pickle.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Storage {
    pub(super) key: String,
    /// Bytes, as the pickle counts them.
    pub(super) byte_len: u64,
    /// Of the storage that this is a part of, in bytes: what the oldest files have.
    pub(super) offset: u64,
    /// Of the whole storage, in bytes.
    pub(super) whole_len: u64,
    element: &'static ElementType,
}

impl View {
    /// `(storage, offset, size, stride, ...)`, of a storage that has been looked at. A type
    /// overrides that of the storage.
    pub(super) fn new(
        storage: Storage,
        arguments: &Arguments<'_, '_>,
        element: Option<&'static ElementType>,
    ) -> Done<Self> {
        let (shape, strides) = (arguments.sizes(2, "size")?, arguments.sizes(3, "stride")?);
        if shape.len() != strides.len() {
            return Err(TensorFault::Strides {
                sizes: shape.len(),
                strides: strides.len(),
            });
        }
        let view = View {
            offset: arguments.unsigned(1, "storage offset")?,
            element: element.unwrap_or(storage.element),
            storage,
            shape,
            strides,
        };
        view.check()
    }

    pub(super) fn element(&self) -> &'static ElementType {
        self.element
    }

    /// How many elements; no more than 2^64, as has been checked.
    pub(super) fn count(&self) -> u64 {
        product(&self.shape).unwrap_or(u64::MAX)
    }

    /// Bytes of the elements, packed ones as they are packed.
    pub(super) fn byte_len(&self) -> u64 {
        match self.element.meaning {
            Meaning::Quantized { per_word, .. } if per_word > 1 => {
                self.count().div_ceil(per_word.into())
            }
            _ => self.count().saturating_mul(self.element.byte_len),
        }
    }

    /// The first `count` of a view of one dimension, again for every index of `outer`.
    pub(super) fn repeated(mut self, outer: &[u64], count: u64) -> Self {
        let stride = self.strides.first().copied().unwrap_or(1);
        self.shape = outer.iter().copied().chain([count]).collect();
        self.strides = outer.iter().map(|_| 0).chain([stride]).collect();
        self
    }

    /// Whether the elements lie one after another, the last dimension fastest.
    pub(super) fn is_contiguous(&self) -> bool {
        let mut expected = 1u64;
        let mut dimensions = self.shape.iter().zip(&self.strides).rev();
        self.count() == 0
            || dimensions.all(|(size, stride)| {
                let fits = *size == 1 || *stride == expected;
                expected = expected.saturating_mul(*size);
                fits
            })
    }

    /// Checks that every element lies in the storage.
    fn check(self) -> Done<Self> {
        let count = product(&self.shape).ok_or(TensorFault::Overflow)?;
        let element_len = self.element.byte_len;
        count
            .checked_mul(element_len)
            .ok_or(TensorFault::Overflow)?;
        if let Meaning::Quantized { per_word, .. } = self.element.meaning
            && per_word > 1
        {
            return self.check_packed(count, per_word.into());
        }
        let needed = self.reach(count).ok_or(TensorFault::Overflow)?;
        let available = self.storage.byte_len;
        if needed > available {
            return Err(TensorFault::Outside { needed, available });
        }
        Ok(self)
    }

    /// Elements of less than a byte lie one after another from the first byte of the storage.
    fn check_packed(self, count: u64, per_byte: u64) -> Done<Self> {
        let needed = count.div_ceil(per_byte);
        let available = self.storage.byte_len;
        if needed > available {
            return Err(TensorFault::Outside { needed, available });
        }
        if self.offset != 0 || !self.is_contiguous() {
            let name = "a view of packed integers".to_owned();
            return Err(TensorFault::Layout { name });
        }
        Ok(self)
    }

    /// Bytes up to the end of the last element; none where there are no elements.
    fn reach(&self, count: u64) -> Option<u64> {
        if count == 0 {
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
    pub(super) fn element(&self) -> &'static ElementType {
        self.element
    }

    /// The storage as a tensor of one dimension.
    pub(super) fn into_view(self) -> View {
        let element = self.element;
        let count = self.byte_len.checked_div(element.byte_len);
        View {
            storage: self,
            offset: 0,
            shape: vec![count.unwrap_or(0)],
            strides: vec![1],
            element,
        }
    }
}

/// The storage behind the id of something outside the pickle.
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
    // The older files have addresses for keys; they are texts all the same.
    let key = arguments.text(2, "storage key")?;
    // Copied for every tensor, and one text can be the key of all.
    if key.len() > KEY_LEN {
        let key = key.chars().take(40).collect();
        return Err(TensorFault::NoStorage { key });
    }
    let key = key.to_owned();
    let count = arguments.unsigned(4, "number of elements")?;
    let whole_len = byte_len(count, element)?;
    let mut storage = Storage {
        key,
        byte_len: whole_len,
        offset: 0,
        whole_len,
        element,
    };
    // A part of another storage: its key, offset and length.
    if let Some(part) = arguments.optional(5).filter(|part| *part != Value::None) {
        let part = Arguments::new(heap, part, "part of a storage")?;
        storage.offset = byte_len(part.unsigned(1, "offset of a part")?, element)?;
        storage.byte_len = byte_len(part.unsigned(2, "length of a part")?, element)?;
        let needed = storage.offset.saturating_add(storage.byte_len);
        if needed > whole_len {
            return Err(TensorFault::Outside {
                needed,
                available: whole_len,
            });
        }
    }
    Ok(storage)
}

fn byte_len(count: u64, element: &ElementType) -> Done<u64> {
    count
        .checked_mul(element.byte_len)
        .ok_or(TensorFault::Overflow)
}

fn product(sizes: &[u64]) -> Option<u64> {
    if sizes.contains(&0) {
        return Some(0);
    }
    sizes
        .iter()
        .try_fold(1u64, |count, size| count.checked_mul(*size))
}
