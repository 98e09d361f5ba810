//! The header of an array.

use zt::container::memory::in_memory;
use zt::{Result, Source, Span};

use crate::fault::{LEN_MAX, NpyFault};
use crate::literal::{self, Literal};

pub(crate) const MAGIC: &[u8] = b"\x93NUMPY";

/// The most bytes of a header with so many characters.
const BYTES_MAX: u64 = 40_000;

/// The values of a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    /// The dtype; `None` for a structured one.
    pub(super) descr: Option<String>,
    pub(super) fortran_order: bool,
    pub(super) shape: Vec<u64>,
    /// All bytes before the elements.
    pub(super) bytes: Vec<u8>,
}

/// Whether the bytes begin as an array.
pub(super) fn is_array(source: &dyn Source, span: Span) -> Result<bool> {
    Ok(start_of(source, span, MAGIC.len())? == MAGIC)
}

impl Header {
    pub(super) fn read(source: &dyn Source, span: Span) -> Result<Self> {
        // Most headers have 128 bytes, so that one read is enough.
        let mut bytes = start_of(source, span, 128)?;
        let is_array = bytes.starts_with(MAGIC) || MAGIC.starts_with(&bytes);
        is_array.then_some(()).ok_or(NpyFault::Magic)?;
        let (start, len) = extent(&bytes)?;
        let end = start.checked_add(len).ok_or(NpyFault::Short)?;
        if end as u64 > BYTES_MAX.min(span.byte_len()) {
            return Err(if end as u64 > span.byte_len() {
                NpyFault::Short.into()
            } else {
                // Even if every character takes four bytes.
                NpyFault::TooLong { characters: len }.into()
            });
        }
        if bytes.len() < end {
            bytes = start_of(source, span, end)?;
        }
        bytes.truncate(end);
        let text = bytes.get(start..).ok_or(NpyFault::Short)?;
        let text = match bytes.get(6) {
            Some(3) => std::str::from_utf8(text).map_err(|_| NpyFault::NotUtf8)?.to_owned(),
            // Latin-1: every byte is the character with its number.
            _ => text.iter().map(|byte| char::from(*byte)).collect(),
        };
        let characters = text.chars().count();
        if characters > LEN_MAX {
            return Err(NpyFault::TooLong { characters }.into());
        }
        let (descr, fortran_order, shape) = fields(&text)?;
        Ok(Header { descr, fortran_order, shape, bytes })
    }
}

/// The offset and the declared length of the text.
fn extent(bytes: &[u8]) -> Result<(usize, usize), NpyFault> {
    let (prefix, len) = bytes.split_at_checked(8).ok_or(NpyFault::Short)?;
    let (start, len) = match prefix {
        [.., 1, 0] => {
            let len = len.first_chunk().map(|len| u16::from_le_bytes(*len));
            (10, len.map(u32::from))
        }
        [.., 2 | 3, 0] => (12, len.first_chunk().map(|len| u32::from_le_bytes(*len))),
        &[.., major, minor] => return Err(NpyFault::Version { major, minor }),
        _ => return Err(NpyFault::Short),
    };
    let len = len.and_then(|len| usize::try_from(len).ok());
    Ok((start, len.ok_or(NpyFault::Short)?))
}

/// The three values, each exactly once, and no other.
fn fields(text: &str) -> Result<(Option<String>, bool, Vec<u64>), NpyFault> {
    let literal = literal::parse(text).map_err(|at| NpyFault::Literal { at })?;
    let Literal::Dict(pairs) = literal else {
        return Err(NpyFault::Keys);
    };
    let (mut descr, mut order, mut shape) = (None, None, None);
    for (key, value) in pairs {
        let is_new = match key {
            Literal::Text("descr") => descr.replace(descr_of(value)?).is_none(),
            Literal::Text("fortran_order") => order.replace(order_of(&value)?).is_none(),
            Literal::Text("shape") => shape.replace(shape_of(value)?).is_none(),
            _ => false,
        };
        is_new.then_some(()).ok_or(NpyFault::Keys)?;
    }
    let all = descr.zip(order).zip(shape);
    all.map(|((descr, order), shape)| (descr, order, shape)).ok_or(NpyFault::Keys)
}

fn descr_of(value: Literal<'_>) -> Result<Option<String>, NpyFault> {
    match value {
        Literal::Text(text) => Ok(Some(text.to_owned())),
        // Records, or arrays as elements.
        Literal::List(_) | Literal::Tuple(_) => Ok(None),
        _ => Err(NpyFault::Value { key: "descr" }),
    }
}

fn order_of(value: &Literal<'_>) -> Result<bool, NpyFault> {
    match value {
        Literal::Bool(order) => Ok(*order),
        _ => Err(NpyFault::Value { key: "fortran_order" }),
    }
}

fn shape_of(value: Literal<'_>) -> Result<Vec<u64>, NpyFault> {
    let fault = || NpyFault::Value { key: "shape" };
    let Literal::Tuple(dimensions) = value else {
        return Err(fault());
    };
    let dimension = |value| match value {
        Literal::Unsigned(dimension) => Ok(dimension),
        _ => Err(fault()),
    };
    dimensions.into_iter().map(dimension).collect()
}

/// The first bytes of a span, up to `len`.
fn start_of(source: &dyn Source, span: Span, len: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; in_memory(span.byte_len().min(len as u64))];
    source.read_at(span.offset(), &mut bytes)?;
    Ok(bytes)
}

/// The header of row-major elements, as NumPy writes it: version 1.0, padded so that the elements
/// begin at a multiple of 64. `None` if the dimensions need more than 65535 bytes.
pub(super) fn render(descr: &str, shape: &[u64]) -> Option<Vec<u8>> {
    const PREFIX: usize = 10;
    let dimensions: Vec<String> = shape.iter().map(u64::to_string).collect();
    // A tuple with one item has a comma.
    let comma = if shape.len() == 1 { "," } else { "" };
    let dimensions = dimensions.join(", ");
    let text =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({dimensions}{comma}), }}");
    let len = text.len().checked_add(PREFIX)?.checked_add(1)?.next_multiple_of(64);
    let text_len = u16::try_from(len.checked_sub(PREFIX)?).ok()?;
    let mut bytes = [MAGIC, b"\x01\x00", &text_len.to_le_bytes(), text.as_bytes()].concat();
    bytes.resize(len.checked_sub(1)?, b' ');
    bytes.push(b'\n');
    Some(bytes)
}
