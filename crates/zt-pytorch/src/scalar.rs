//! NumPy's scalars as keys.

use crate::attribute;
use crate::global::Global;
use crate::pickle::{Heap, Made, Node};

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
    /// The limit of a text, in characters.
    const LEN: usize = 1 << 12;

    let Global::Unsupported(unsupported) = made.maker else {
        return None;
    };
    let [dtype, bytes] = heap.tuple(made.arguments)? else {
        return None;
    };
    let Some(Node::Made(dtype)) = heap.node(*dtype) else {
        return None;
    };
    let Global::Unsupported(class) = dtype.maker else {
        return None;
    };
    if !unsupported.is_scalar() || !class.is_dtype() {
        return None;
    }
    let code = heap.text(*heap.tuple(dtype.arguments)?.first()?)?;
    // The state of a dtype is a version, a byte order, and more.
    let state = heap.tuple(dtype.state?)?;
    let is_big = heap.text(*state.get(1)?)? == ">";
    let mut bytes = match heap.node(*bytes)? {
        Node::Bytes(bytes) => bytes.to_vec(),
        Node::Made(made) if made.maker == Global::Encode => attribute::bytes(heap, *made)?,
        _ => return None,
    };
    if let Some(len) = code.strip_prefix('U') {
        let len: usize = len.parse().ok().filter(|len| *len <= LEN)?;
        let (characters, rest) = bytes.as_chunks::<4>();
        let code = if is_big {
            u32::from_be_bytes
        } else {
            u32::from_le_bytes
        };
        let characters = characters.iter().map(|bytes| code(*bytes));
        let text: Option<String> = characters.map(char::from_u32).collect();
        let is_whole = rest.is_empty() && bytes.len() == len.checked_mul(4)?;
        return is_whole.then_some(Scalar::Text(text?.trim_end_matches('\0').to_owned()));
    }
    if is_big {
        bytes.reverse();
    }
    let sign = |is_signed: bool| match bytes.last() {
        Some(top) if is_signed && *top >= 0x80 => 0xff,
        _ => 0,
    };
    let whole = |is_signed| {
        let mut word = [sign(is_signed); 16];
        word.get_mut(..bytes.len())?.copy_from_slice(&bytes);
        Some(Scalar::Int(i128::from_le_bytes(word)))
    };
    match (code, bytes.as_slice()) {
        ("b1", [value]) => Some(Scalar::Bool(*value != 0)),
        ("f8", bytes) => Some(Scalar::Float(f64::from_le_bytes(bytes.try_into().ok()?))),
        ("f4", bytes) => Some(Scalar::Single(f32::from_le_bytes(bytes.try_into().ok()?))),
        ("i1", [_]) | ("i2", [_, _]) | ("i4", [_, _, _, _]) | ("i8", [_, _, _, _, _, _, _, _]) => {
            whole(true)
        }
        ("u1", [_]) | ("u2", [_, _]) | ("u4", [_, _, _, _]) | ("u8", [_, _, _, _, _, _, _, _]) => {
            whole(false)
        }
        _ => None,
    }
}
