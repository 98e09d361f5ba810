//! What is no tensor, as an attribute.
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use zt::manifest::Map;
use zt::{Attributes, Limits};

use super::flatten::Budget;
use super::global::Global;
use super::pickle::{Heap, Made, Node, Value};
use super::violation::Violation;

/// CBOR's tags of integers beyond 64 bits. RFC 8949 §3.4.3.
const BIGNUM: u64 = 2;
const NEGATIVE_BIGNUM: u64 = 3;

/// A value as CBOR has it: numbers, texts, bytes and None as they are; tuples, sets and sizes as
/// arrays; a complex number as its two parts; dtypes and devices by their names in torch.
pub(super) fn attribute(
    heap: &Heap<'_>,
    value: Value,
    limits: &Limits,
    budget: &mut Budget,
) -> Result<zt::manifest::Value, Violation> {
    convert(heap, value, limits.nesting, budget)
}

/// The attributes of an object of Python: a dict, or a pair of a dict and one of slots.
pub(super) fn state(
    heap: &Heap<'_>,
    state: Value,
    limits: &Limits,
    budget: &mut Budget,
) -> Result<Attributes, Violation> {
    let dicts = match heap.node(state) {
        Some(Node::Tuple(dicts)) => dicts.as_slice(),
        _ => &[state],
    };
    let mut pairs = Vec::new();
    for dict in dicts {
        let Some(Node::Dict(items)) = heap.node(*dict) else {
            continue;
        };
        for (key, value) in items {
            let key = convert(heap, *key, limits.nesting, budget)?;
            pairs.push((key, convert(heap, *value, limits.nesting, budget)?));
        }
    }
    Ok(pairs.into_iter().collect())
}

fn convert(
    heap: &Heap<'_>,
    value: Value,
    depth: usize,
    budget: &mut Budget,
) -> Result<zt::manifest::Value, Violation> {
    use zt::manifest::Value as Cbor;
    budget.spend(size_of::<Cbor>())?;
    let Some(depth) = depth.checked_sub(1) else {
        let limit = Limits::default().nesting;
        return Err(Violation::TooDeep { limit });
    };
    let node = match value {
        Value::None => return Ok(Cbor::Null),
        Value::Bool(value) => return Ok(value.into()),
        Value::Int(value) => return Ok(value.into()),
        Value::Float(value) => return Ok(value.into()),
        Value::Global(global) => return Ok(name_of(global).into()),
        Value::Node(_) => match heap.node(value) {
            Some(node) => node,
            None => return Ok(Cbor::Undefined),
        },
    };
    let list = |items: &[Value], budget: &mut Budget| {
        let items = items.iter().map(|item| convert(heap, *item, depth, budget));
        items.collect::<Result<Vec<_>, _>>().map(Cbor::Array)
    };
    match node {
        Node::Text(text) => {
            budget.spend(text.len())?;
            Ok(text.as_ref().into())
        }
        Node::Bytes(bytes) => {
            budget.spend(bytes.len())?;
            Ok(Cbor::Bytes(bytes.to_vec()))
        }
        Node::Long(bytes) => {
            budget.spend(bytes.len())?;
            Ok(bignum(bytes))
        }
        Node::Tuple(items) | Node::List(items) | Node::Set(items) => list(items, budget),
        Node::Dict(pairs) => {
            let pairs = pairs.iter().map(|(key, value)| {
                let key = convert(heap, *key, depth, budget)?;
                Ok((key, convert(heap, *value, depth, budget)?))
            });
            let map: Result<Map, Violation> = pairs.collect();
            map.map(Cbor::Map)
        }
        Node::Made(made) => object(heap, *made, depth, budget),
        Node::Persistent(_) => Ok(heap.describe(value).into()),
    }
}

/// An object that is no tensor.
fn object(
    heap: &Heap<'_>,
    made: Made,
    depth: usize,
    budget: &mut Budget,
) -> Result<zt::manifest::Value, Violation> {
    use zt::manifest::Value as Cbor;
    let unknown = || Violation::Attribute {
        found: name_of(made.maker),
    };
    let arguments = heap.tuple(made.arguments).unwrap_or_default();
    match (made.maker, arguments) {
        (Global::Size, [sizes]) => convert(heap, *sizes, depth, budget),
        (Global::Size, []) => Ok(Cbor::Array(Vec::new())),
        (Global::Complex, [_, _]) => convert(heap, made.arguments, depth, budget),
        (Global::Device, [kind]) => convert(heap, *kind, depth, budget),
        (Global::Device, [kind, Value::Int(index)]) => match heap.text(*kind) {
            Some(kind) => Ok(format!("{kind}:{index}").into()),
            None => Err(unknown()),
        },
        (Global::Layout, [name]) => convert(heap, *name, depth, budget),
        // One that holds nothing; others are walked into.
        (Global::Script, _) if made.state.is_none_or(|state| is_empty(heap, state)) => {
            Ok(Cbor::Map(Map::new()))
        }
        (Global::ScriptTyped, [items, ..]) => convert(heap, *items, depth, budget),
        (Global::Bytes | Global::ByteArray, []) => Ok(Cbor::Bytes(Vec::new())),
        (Global::ByteArray, [inner]) => convert(heap, *inner, depth, budget),
        (Global::Encode | Global::ByteArray, [_, _]) => {
            let bytes = bytes(heap, made).ok_or_else(unknown)?;
            budget.spend(bytes.len())?;
            Ok(Cbor::Bytes(bytes))
        }
        _ => Err(unknown()),
    }
}

/// Bytes that are made of a text and an encoding. Protocol 2 has no bytes: Python writes them as
/// Latin-1.
pub(super) fn bytes(heap: &Heap<'_>, made: Made) -> Option<Vec<u8>> {
    let [text, encoding] = heap.tuple(made.arguments)? else {
        return None;
    };
    if !is_latin_1(heap.text(*encoding)) {
        return None;
    }
    let bytes = heap.text(*text)?.chars();
    bytes.map(|c| u8::try_from(u32::from(c)).ok()).collect()
}

fn is_empty(heap: &Heap<'_>, value: Value) -> bool {
    match heap.node(value) {
        Some(Node::Dict(pairs)) => pairs.is_empty(),
        Some(Node::Tuple(items) | Node::List(items)) => items.is_empty(),
        _ => value == Value::None,
    }
}

/// Python's names of the encoding by which protocol 2 writes bytes.
fn is_latin_1(name: Option<&str>) -> bool {
    matches!(name, Some("latin1" | "latin-1" | "iso-8859-1"))
}

/// An integer beyond 64 bits, from two's complement, the lowest byte first.
fn bignum(bytes: &[u8]) -> zt::manifest::Value {
    let is_negative = bytes.last().is_some_and(|top| *top >= 0x80);
    let digits = bytes.iter().rev();
    // A negative bignum is that of `-1 - n`, which is the complement.
    let digits = digits.map(|byte| if is_negative { !byte } else { *byte });
    let digits: Vec<u8> = digits.skip_while(|byte| *byte == 0).collect();
    let tag = if is_negative { NEGATIVE_BIGNUM } else { BIGNUM };
    // Integers that do fit are written as integers; here CBOR's 65th bit is.
    match <[u8; 8]>::try_from(digits.as_slice()) {
        Ok(word) if is_negative => zt::manifest::Value::Negative(u64::from_be_bytes(word)),
        Ok(word) => zt::manifest::Value::Unsigned(u64::from_be_bytes(word)),
        Err(_) => zt::manifest::Value::Tag(tag, Box::new(zt::manifest::Value::Bytes(digits))),
    }
}

/// A global that is a value of its own.
pub(super) fn name_of(global: Global) -> String {
    match global {
        Global::DType(element) => format!("torch.{}", element.name),
        Global::Storage(Some(element)) => match element.storage {
            Some(class) => format!("torch.{class}"),
            None => "torch.UntypedStorage".to_owned(),
        },
        Global::Storage(None) => "torch.TypedStorage".to_owned(),
        Global::Unread(unread) => unread.to_string(),
        other => format!("{other:?}"),
    }
}
