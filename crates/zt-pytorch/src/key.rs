//! The names of keys, as Python's `str` writes them. Texts within other keys are quoted.
//!
//! | key | name |
//! | --- | --- |
//! | `"w"` | `w`; `"w"` within a tuple or a duplicate name |
//! | a text with half of a surrogate pair | as Python's `backslashreplace`: `caf\udce9` |
//! | `3`, `True`, `None`, `1e16`, `1-2j` | `3`, `True`, `None`, `1e+16`, `(1-2j)` |
//! | NumPy's `int64(3)`, `str_("w")`; a path | `3`, `w`; its text |
//! | `b"w"` | `b"w"` |
//! | `("w", 1)`, `torch.Size([1])`, `frozenset({1})` | `("w", 1)`, `(1)`, `{1}` |
//! | `torch.float16`, `torch.device("cuda:1")` | `torch.float16`, `cuda:1` |
//! | a class | its module and name: `a.b.Class` |
//! | any other, first of its dict | `<key 0>` |

use std::fmt::{self, Write};

use crate::attribute;
use crate::fault::TorchFault;
use crate::global::Global;
use crate::numpy::{Scalar, scalar};
use crate::pickle::{Heap, Node, Value, encoded, pieces};

/// The limits of tuples in keys. Real checkpoints have no deeper or longer ones.
const DEPTH: usize = 4;
const ITEMS: usize = 64;

/// Appends the name of the key at a place of its dict, and returns whether it has one. A text is
/// quoted if `is_quoted`. A `name` that becomes longer than `limit` is refused.
pub(super) fn append(
    name: &mut String,
    heap: &Heap<'_>,
    (place, key): (usize, Value),
    is_quoted: bool,
    limit: usize,
) -> Result<bool, TorchFault> {
    let start = name.len();
    let mut writer = Bounded { name, limit };
    match write(&mut writer, heap, key, is_quoted, DEPTH) {
        Ok(()) => return Ok(true),
        Err(Stop::Nameless) => writer.name.truncate(start),
        Err(Stop::TooLong) => return Err(TorchFault::NameTooLong { limit }),
    }
    match write!(writer, "<key {place}>") {
        Ok(()) => Ok(false),
        Err(fmt::Error) => Err(TorchFault::NameTooLong { limit }),
    }
}

/// A name with a limit. A tuple that repeats one long text would be far longer than the pickle.
struct Bounded<'n> {
    name: &'n mut String,
    limit: usize,
}

impl Write for Bounded<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let len = self.name.len().checked_add(text.len());
        len.filter(|len| *len <= self.limit).ok_or(fmt::Error)?;
        self.name.push_str(text);
        Ok(())
    }
}

/// Why a key has no name.
enum Stop {
    /// Keys of its type have none.
    Nameless,
    TooLong,
}

impl From<fmt::Error> for Stop {
    fn from(_: fmt::Error) -> Self {
        Stop::TooLong
    }
}

fn write(
    name: &mut Bounded<'_>,
    heap: &Heap<'_>,
    key: Value,
    is_quoted: bool,
    depth: usize,
) -> Result<(), Stop> {
    let node = match key {
        Value::None => return Ok(name.write_str("None")?),
        Value::Bool(value) => return Ok(name.write_str(truth(value))?),
        Value::Int(value) => return Ok(write!(name, "{value}")?),
        Value::Float(value) => return Ok(name.write_str(&float(value))?),
        Value::Global(global) => return Ok(write!(name, "{global}")?),
        Value::Node(_) => heap.node(key).ok_or(Stop::Nameless)?,
    };
    match node {
        Node::Text(text) => write_text(name, text, is_quoted)?,
        Node::Halves(bytes) => write_halves(name, bytes, is_quoted)?,
        Node::Bytes(bytes) => write!(name, "b\"{}\"", bytes.escape_ascii())?,
        Node::Long(bytes) => write_long(name, bytes)?,
        Node::FrozenSet(items) => write_items(name, heap, items, ["{", "}"], depth)?,
        Node::Made(made) => match (made.maker, heap.tuple(made.arguments)) {
            (Global::Encode, _) => {
                let bytes = encoded(heap, *made).ok_or(Stop::Nameless)?;
                write!(name, "b\"{}\"", bytes.escape_ascii())?;
            }
            (Global::Complex, Some([Value::Float(real), Value::Float(imaginary)])) => {
                name.write_str(&complex(*real, *imaginary))?;
            }
            (Global::Device, _) => {
                let device = attribute::device(heap, *made).ok_or(Stop::Nameless)?;
                write_text(name, &device, is_quoted)?;
            }
            (Global::Size, _) => {
                let items = heap.sequence(key).ok_or(Stop::Nameless)?;
                write_items(name, heap, items, ["(", ")"], depth)?;
            }
            (Global::Numpy(_), _) => match scalar(heap, *made).ok_or(Stop::Nameless)? {
                Scalar::Bool(value) => name.write_str(truth(value))?,
                Scalar::Int(value) => write!(name, "{value}")?,
                Scalar::Float(value) => name.write_str(&float(value))?,
                Scalar::Single(value) => name.write_str(&exponent(&format!("{value:?}")))?,
                Scalar::Text(text) => write_text(name, &text, is_quoted)?,
            },
            (Global::Plain(plain), _) => {
                let text = attribute::text(heap, plain, *made, name.limit);
                write_text(name, &text.ok_or(Stop::Nameless)?, is_quoted)?;
            }
            _ => return Err(Stop::Nameless),
        },
        Node::Tuple(items) => write_items(name, heap, items, ["(", ")"], depth)?,
        Node::Named { .. } => {
            let (module, class) = heap.named(key).ok_or(Stop::Nameless)?;
            write!(name, "{module}.{class}")?;
        }
        _ => return Err(Stop::Nameless),
    }
    Ok(())
}

fn write_items(
    name: &mut Bounded<'_>,
    heap: &Heap<'_>,
    items: &[Value],
    [start, end]: [&str; 2],
    depth: usize,
) -> Result<(), Stop> {
    let depth = depth.checked_sub(1).ok_or(Stop::Nameless)?;
    if items.len() > ITEMS {
        return Err(Stop::Nameless);
    }
    name.write_str(start)?;
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            name.write_str(", ")?;
        }
        write(name, heap, *item, true, depth)?;
    }
    Ok(name.write_str(end)?)
}

fn write_text(name: &mut Bounded<'_>, text: &str, is_quoted: bool) -> fmt::Result {
    if is_quoted { write!(name, "{text:?}") } else { name.write_str(text) }
}

fn write_halves(name: &mut Bounded<'_>, bytes: &[u8], is_quoted: bool) -> fmt::Result {
    let quote = if is_quoted { "\"" } else { "" };
    name.write_str(quote)?;
    for (text, half) in pieces(bytes).flatten() {
        if is_quoted {
            write!(name, "{}", text.escape_debug())?;
        } else {
            name.write_str(text)?;
        }
        if let Some(half) = half {
            write!(name, "\\u{half:04x}")?;
        }
    }
    name.write_str(quote)
}

/// An integer beyond 64 bits, in decimal. Beyond 128 bits, decimal would take quadratic time, so
/// its two's complement is written in hexadecimal.
fn write_long(name: &mut Bounded<'_>, bytes: &[u8]) -> fmt::Result {
    let sign = match bytes.last() {
        Some(top) if *top >= 0x80 => 0xff,
        _ => 0,
    };
    let mut word = [sign; 16];
    if let Some(low) = word.get_mut(..bytes.len()) {
        low.copy_from_slice(bytes);
        return write!(name, "{}", i128::from_le_bytes(word));
    }
    name.write_str("0x")?;
    bytes.iter().rev().try_for_each(|byte| write!(name, "{byte:02x}"))
}

const fn truth(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}

/// A float as in Python's `repr`. Rust's digits and thresholds are the same.
fn float(value: f64) -> String {
    exponent(&format!("{value:?}"))
}

/// A float of Rust with Python's `nan` and exponent, which has a sign and two digits.
fn exponent(text: &str) -> String {
    match text.split_once('e') {
        None => text.replace("NaN", "nan"),
        Some((digits, exponent)) => match exponent.strip_prefix('-') {
            Some(exponent) => format!("{digits}e-{exponent:0>2}"),
            None => format!("{digits}e+{exponent:0>2}"),
        },
    }
}

/// A complex number as in Python: without `.0`, and without a real part of 0.
fn complex(real: f64, imaginary: f64) -> String {
    let part = |value: f64| {
        let text = float(value);
        text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
    };
    if real == 0.0 && real.is_sign_positive() {
        return format!("{}j", part(imaginary));
    }
    // A negative imaginary part has its own sign.
    let has_sign = imaginary.is_sign_negative() && !imaginary.is_nan();
    let plus = if has_sign { "" } else { "+" };
    format!("({}{plus}{}j)", part(real), part(imaginary))
}
