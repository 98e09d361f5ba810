//! Arrays and scalars of NumPy: a dtype, a shape, and bytes in the pickle.
//!
//! ```text
//! scalar(dtype, bytes)
//! _frombuffer(bytes, dtype, shape, "C" or "F")
//! _reconstruct(class, ...), with the state (version, shape, dtype, is_fortran, bytes or objects)
//! dtype("f4", ...), with the state (version, "<" or ">" or "|", ...)
//! ```

use std::borrow::Cow;

use zt::{ByteOrder, Span};

use crate::arguments::{Arguments, wrong};
use crate::element::{ElementType, Meaning};
use crate::fault::{Done, TensorFault};
use crate::global::{Global, Numpy};
use crate::pickle::{Heap, Made, Node, Value, encoded};
use crate::view::product;

/// NumPy's codes of dtypes, and torch's names of them.
const CODES: [(&str, &str); 14] = [
    ("b1", "bool"),
    ("i1", "int8"),
    ("u1", "uint8"),
    ("i2", "int16"),
    ("u2", "uint16"),
    ("f2", "float16"),
    ("i4", "int32"),
    ("u4", "uint32"),
    ("f4", "float32"),
    ("i8", "int64"),
    ("u8", "uint64"),
    ("f8", "float64"),
    ("c8", "complex64"),
    ("c16", "complex128"),
];

/// An array, or a scalar, which has no dimensions.
#[derive(Debug)]
pub(super) struct Array {
    pub(super) element: &'static ElementType,
    pub(super) byte_order: ByteOrder,
    pub(super) shape: Vec<u64>,
    pub(super) is_fortran: bool,
    byte_len: u64,
    data: Value,
}

/// The elements of an array, or other bytes of a pickle.
pub(super) enum Data<'h> {
    Here(Cow<'h, [u8]>),
    /// In the file.
    There(Span),
}

impl Array {
    pub(super) fn data<'h>(&self, heap: &'h Heap<'_>) -> Done<Data<'h>> {
        let data = data(heap, self.data).ok_or_else(|| wrong(heap, "data", self.data))?;
        let found = match &data {
            Data::Here(bytes) => bytes.len() as u64,
            Data::There(span) => span.byte_len(),
        };
        if found == self.byte_len {
            return Ok(data);
        }
        Err(TensorFault::Parts { what: "bytes", expected: self.byte_len, found })
    }
}

pub(super) fn array(heap: &Heap<'_>, made: Made) -> Done<Array> {
    let parts = ArrayParts::of(heap, made)?;
    let unsupported = || TensorFault::Layout { name: format!("an array of {}", parts.dtype.code) };
    let element = parts.dtype.element().ok_or_else(unsupported)?;
    let count = product(&parts.shape).ok_or(TensorFault::Overflow)?;
    Ok(Array {
        element,
        byte_order: parts.dtype.byte_order,
        is_fortran: parts.is_fortran,
        byte_len: count.checked_mul(element.byte_len).ok_or(TensorFault::Overflow)?,
        shape: parts.shape,
        data: parts.data,
    })
}

/// The dtype of an array whose elements are no numbers, and its list if they are objects.
pub(super) fn opaque<'h>(heap: &'h Heap<'_>, made: Made) -> Option<(&'h str, Option<Value>)> {
    let parts = ArrayParts::of(heap, made).ok()?;
    if parts.dtype.element().is_some() {
        return None;
    }
    let is_list = matches!(heap.node(parts.data), Some(Node::List(_)));
    Some((parts.dtype.code, is_list.then_some(parts.data)))
}

struct DType<'h> {
    code: &'h str,
    byte_order: ByteOrder,
}

impl<'h> DType<'h> {
    fn of(heap: &'h Heap<'_>, value: Value) -> Option<Self> {
        let Some(Node::Made(made)) = heap.node(value) else {
            return None;
        };
        let code = *heap.tuple(made.arguments)?.first()?;
        let order = *heap.tuple(made.state?)?.get(1)?;
        let of_extension = || match heap.named(code)? {
            ("ml_dtypes", name) => Some(name),
            _ => None,
        };
        (made.maker == Global::Numpy(Numpy::DType)).then_some(DType {
            code: heap.text(code).or_else(of_extension)?,
            byte_order: match heap.text(order)? {
                ">" => ByteOrder::Big,
                _ => ByteOrder::Little,
            },
        })
    }

    fn element(&self) -> Option<&'static ElementType> {
        let row = CODES.iter().find(|(code, _)| *code == self.code);
        // ml_dtypes has torch's names. Its smaller types have a byte per element, too.
        let is_float = self.code == "bfloat16" || self.code.starts_with("float8_");
        let name = row.map(|(_, name)| *name);
        ElementType::from_name(name.or_else(|| is_float.then_some(self.code))?)
    }
}

struct ArrayParts<'h> {
    dtype: DType<'h>,
    shape: Vec<u64>,
    is_fortran: bool,
    data: Value,
}

impl<'h> ArrayParts<'h> {
    fn of(heap: &'h Heap<'_>, made: Made) -> Done<Self> {
        let arguments = Arguments::new(heap, made.arguments, "arguments")?;
        let dtype = |arguments: &Arguments<'h, '_>, at| {
            let value = arguments.value(at, "dtype")?;
            DType::of(heap, value).ok_or_else(|| wrong(heap, "dtype", value))
        };
        match made.maker {
            Global::Numpy(Numpy::Scalar) => Ok(ArrayParts {
                dtype: dtype(&arguments, 0)?,
                shape: Vec::new(),
                is_fortran: false,
                data: arguments.value(1, "data")?,
            }),
            Global::Numpy(Numpy::FromBuffer) => Ok(ArrayParts {
                dtype: dtype(&arguments, 1)?,
                shape: arguments.sizes(2, "shape")?,
                is_fortran: arguments.text(3, "order")? == "F",
                data: arguments.value(0, "data")?,
            }),
            _ => {
                let why = "its state is missing";
                let state = made.state.ok_or(TensorFault::NoData { why })?;
                let state = Arguments::new(heap, state, "state")?;
                Ok(ArrayParts {
                    dtype: dtype(&state, 2)?,
                    shape: state.sizes(1, "shape")?,
                    is_fortran: state.value(3, "order")? == Value::Bool(true),
                    data: state.value(4, "data")?,
                })
            }
        }
    }
}

/// Bytes in any spelling. Python 2 has no type for them: its texts are bytes.
pub(super) fn data<'h>(heap: &'h Heap<'_>, value: Value) -> Option<Data<'h>> {
    match heap.node(value)? {
        Node::Elsewhere { offset, byte_len } => Span::new(*offset, *byte_len).map(Data::There),
        Node::Bytes(bytes) => Some(Data::Here(Cow::Borrowed(bytes))),
        Node::Text(text) => Some(Data::Here(Cow::Borrowed(text.as_bytes()))),
        Node::Made(made) => {
            let bytes = match (made.maker, heap.tuple(made.arguments)?) {
                (Global::Bytes | Global::ByteArray, []) => Vec::new(),
                (Global::Encode | Global::ByteArray, _) => encoded(heap, *made)?,
                _ => return None,
            };
            Some(Data::Here(Cow::Owned(bytes)))
        }
        _ => None,
    }
}

/// A value of NumPy that Python has too.
#[derive(Debug, PartialEq)]
pub(super) enum Scalar {
    Bool(bool),
    Int(i128),
    Float(f64),
    Single(f32),
    Text(String),
}

/// The scalar of a call such as `scalar(dtype("<i8"), b"...")`; `None` for other objects.
pub(super) fn scalar(heap: &Heap<'_>, made: Made) -> Option<Scalar> {
    if made.maker != Global::Numpy(Numpy::Scalar) {
        return None;
    }
    let parts = ArrayParts::of(heap, made).ok()?;
    let is_big = parts.dtype.byte_order == ByteOrder::Big;
    let Data::Here(bytes) = data(heap, parts.data)? else {
        return None;
    };
    let mut bytes = bytes.into_owned();
    if let Some(len) = parts.dtype.code.strip_prefix('U') {
        return text(&bytes, len, is_big).map(Scalar::Text);
    }
    let element = parts.dtype.element()?;
    if bytes.len() as u64 != element.byte_len || !matches!(element.meaning, Meaning::Values(..)) {
        return None;
    }
    if is_big {
        bytes.reverse();
    }
    let whole = |sign: u8| {
        let mut word = [sign; 16];
        word.get_mut(..bytes.len())?.copy_from_slice(&bytes);
        Some(Scalar::Int(i128::from_le_bytes(word)))
    };
    match (element.name, bytes.as_slice()) {
        ("bool", [value]) => Some(Scalar::Bool(*value != 0)),
        ("float64", bytes) => Some(Scalar::Float(f64::from_le_bytes(bytes.try_into().ok()?))),
        ("float32", bytes) => Some(Scalar::Single(f32::from_le_bytes(bytes.try_into().ok()?))),
        (name, [.., 0x80..=0xff]) if name.starts_with("int") => whole(0xff),
        (name, _) if name.starts_with("int") || name.starts_with("uint") => whole(0),
        _ => None,
    }
}

/// A text of `len` characters of four bytes each. NumPy pads it with zeros.
fn text(bytes: &[u8], len: &str, is_big: bool) -> Option<String> {
    /// The limit of a text, in characters.
    const LEN: usize = 1 << 12;

    let len: usize = len.parse().ok().filter(|len| *len <= LEN)?;
    let (characters, rest) = bytes.as_chunks::<4>();
    let code = if is_big { u32::from_be_bytes } else { u32::from_le_bytes };
    let characters = characters.iter().map(|bytes| code(*bytes));
    let text: Option<String> = characters.map(char::from_u32).collect();
    let is_whole = rest.is_empty() && bytes.len() == len.checked_mul(4)?;
    is_whole.then_some(text?.trim_end_matches('\0').to_owned())
}
