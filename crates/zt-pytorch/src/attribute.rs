//! Converts values that are not tensors to attributes.

use zt::Limits;
use zt::manifest::{Attributes, ListBuilder};

use crate::budget::Budget;
use crate::fault::TorchFault;
use crate::global::{Becomes, Global, Numpy, Plain};
use crate::numpy::{Scalar, scalar};
use crate::pickle::{Heap, Made, Node, PickleFault, Value, encoded};
use crate::unknown::{Unknown, unknown};

/// CBOR's tags of integers beyond 64 bits. RFC 8949 §3.4.3.
const BIGNUM: u64 = 2;
const NEGATIVE_BIGNUM: u64 = 3;

/// The limit of a path, longer than any system allows.
const TEXT_LEN: usize = 1 << 16;

/// How much deeper collections may nest.
#[derive(Clone, Copy)]
struct Depth {
    left: usize,
    limit: usize,
}

impl Depth {
    const fn of(limits: &Limits) -> Self {
        let limit = limits.nesting;
        Depth { left: limit, limit }
    }

    fn further(self) -> Result<Self, TorchFault> {
        let limit = self.limit;
        let left = self.left.checked_sub(1);
        let left = left.ok_or(TorchFault::TooDeep { limit })?;
        Ok(Depth { left, limit })
    }
}

/// A value in CBOR. Tuples, sets and sizes are arrays, a complex number is an array of its two
/// parts, and dtypes and devices are their names in torch.
pub(super) fn attribute(
    heap: &Heap<'_>,
    value: Value,
    limits: &Limits,
    budget: &mut Budget,
) -> Result<zt::manifest::Value, TorchFault> {
    convert(heap, value, Depth::of(limits), budget)
}

fn convert(
    heap: &Heap<'_>,
    value: Value,
    depth: Depth,
    budget: &mut Budget,
) -> Result<zt::manifest::Value, TorchFault> {
    use zt::manifest::Value as Cbor;
    budget.spend(size_of::<Cbor>())?;
    let depth = depth.further()?;
    if let Some(Unknown { class, at, .. }) = unknown(heap, value) {
        return match value_of_numpy(heap, value) {
            Some(text) => Ok(text.into()),
            None => Err(TorchFault::Unknown { class, at }),
        };
    }
    let node = match value {
        Value::None => return Ok(Cbor::Null),
        Value::Bool(value) => return Ok(value.into()),
        Value::Int(value) => return Ok(value.into()),
        Value::Float(value) => return Ok(value.into()),
        Value::Global(global) => return Ok(global.to_string().into()),
        Value::Node(_) => match heap.node(value) {
            Some(node) => node,
            None => return Ok(Cbor::Undefined),
        },
    };
    let list = |items: &[Value], budget: &mut Budget| {
        let mut list = ListBuilder::default();
        for item in items {
            let item = convert(heap, *item, depth, budget)?;
            let byte_len = size_of::<Cbor>() as u64;
            let refused = |_| TorchFault::Memory(PickleFault::Allocation { byte_len });
            list.push(item).map_err(refused)?;
        }
        Ok(Cbor::Array(list.finish()))
    };
    match node {
        Node::Text(text) => {
            budget.spend(text.len())?;
            Ok(text.as_ref().into())
        }
        // CBOR's texts are UTF-8.
        Node::Bytes(bytes) | Node::Halves(bytes) => {
            budget.spend(bytes.len())?;
            Ok(Cbor::Bytes(bytes.to_vec()))
        }
        Node::Elsewhere { offset, byte_len } => Ok(Cbor::Bytes(budget.read(*offset, *byte_len)?)),
        Node::Long(bytes) => {
            budget.spend(bytes.len())?;
            Ok(bignum(bytes))
        }
        Node::Tuple(items) | Node::List(items) | Node::Set(items) | Node::FrozenSet(items) => {
            list(items, budget)
        }
        Node::Dict(pairs) => {
            let pairs = pairs.iter().map(|(key, value)| {
                let key = convert(heap, *key, depth, budget)?;
                Ok((key, convert(heap, *value, depth, budget)?))
            });
            let map: Result<Attributes, TorchFault> = pairs.collect();
            map.map(Cbor::Map)
        }
        Node::Made(made) => object(heap, *made, depth, budget),
        Node::Named { .. } | Node::StandIn(_) | Node::Persistent(_) => {
            let Some((module, name)) = heap.named(value) else {
                let found = heap.describe(value).to_owned();
                return Err(TorchFault::Attribute { found });
            };
            budget.spend(module.len())?;
            budget.spend(name.len())?;
            Ok(format!("{module}.{name}").into())
        }
        _ => Err(TorchFault::Attribute { found: heap.describe(value).to_owned() }),
    }
}

/// An object that is not a tensor.
fn object(
    heap: &Heap<'_>,
    made: Made,
    depth: Depth,
    budget: &mut Budget,
) -> Result<zt::manifest::Value, TorchFault> {
    use zt::manifest::Value as Cbor;
    let unknown = || TorchFault::Attribute { found: made.maker.to_string() };
    let arguments = heap.tuple(made.arguments).ok_or_else(unknown)?;
    match (made.maker, arguments) {
        (Global::Size, [sizes]) => convert(heap, *sizes, depth, budget),
        (Global::Size, []) => Ok(Cbor::array(Vec::new())),
        (Global::Complex, [_, _]) => convert(heap, made.arguments, depth, budget),
        (Global::Device, _) => Ok(device(heap, made).ok_or_else(unknown)?.into()),
        (Global::Layout, [name]) => convert(heap, *name, depth, budget),
        // Only an empty one: others are walked into.
        (maker, [])
            if maker.has_members() && made.state.is_none_or(|state| is_empty(heap, state)) =>
        {
            Ok(Cbor::Map(Attributes::new()))
        }
        // An Enum.
        (Global::Script, [value]) if made.state.is_none() => convert(heap, *value, depth, budget),
        (Global::Plain(plain), _) => plain_value(heap, plain, made, depth, budget),
        (Global::ScriptTyped, [items, ..]) => convert(heap, *items, depth, budget),
        // The code of a dtype of NumPy.
        (Global::Numpy(Numpy::DType), [code, ..]) => convert(heap, *code, depth, budget),
        (Global::Bytes | Global::ByteArray, []) => Ok(Cbor::Bytes(Vec::new())),
        (Global::ByteArray, [inner]) => convert(heap, *inner, depth, budget),
        (Global::Encode | Global::ByteArray, [_, _]) => {
            let bytes = encoded(heap, made).ok_or_else(unknown)?;
            budget.spend(bytes.len())?;
            Ok(Cbor::Bytes(bytes))
        }
        _ => Err(unknown()),
    }
}

fn value_of_numpy(heap: &Heap<'_>, value: Value) -> Option<String> {
    match heap.node(value) {
        Some(Node::Made(made)) => match scalar(heap, *made)? {
            Scalar::Text(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

/// A value of Python's own library.
fn plain_value(
    heap: &Heap<'_>,
    plain: &Plain,
    made: Made,
    depth: Depth,
    budget: &mut Budget,
) -> Result<zt::manifest::Value, TorchFault> {
    use zt::manifest::Value as Cbor;
    if let Some(text) = text(heap, plain, made, TEXT_LEN) {
        budget.spend(text.len())?;
        return Ok(text.into());
    }
    let arguments = convert(heap, made.arguments, depth, budget)?;
    let mut call = Attributes::new();
    call.insert(made.maker.to_string(), arguments);
    if let Some(state) = made.state {
        call.insert("state", convert(heap, state, depth, budget)?);
    }
    Ok(Cbor::Map(call))
}

/// The text of a version or a path, if it has at most `limit` bytes.
pub(super) fn text(heap: &Heap<'_>, plain: &Plain, made: Made, limit: usize) -> Option<String> {
    let parts = heap.tuple(made.arguments)?;
    let between = match (plain.becomes(), parts) {
        (Becomes::Text, [_]) => '\0',
        (Becomes::Path(between), _) => between,
        _ => return None,
    };
    let mut text = String::new();
    for part in parts {
        let part = heap.text(*part)?;
        text.len().checked_add(part.len()).filter(|len| *len < limit)?;
        // The first part may be the root, which ends with a separator.
        if !text.is_empty() && !text.ends_with(between) {
            text.push(between);
        }
        text.push_str(part);
    }
    // Python's name of the empty path.
    Some(if parts.is_empty() { ".".to_owned() } else { text })
}

/// The name of a device: `cpu`, `cuda:1`.
pub(super) fn device(heap: &Heap<'_>, made: Made) -> Option<String> {
    match heap.tuple(made.arguments)? {
        [kind] => heap.text(*kind).map(str::to_owned),
        [kind, Value::Int(index)] => Some(format!("{}:{index}", heap.text(*kind)?)),
        _ => None,
    }
}

fn is_empty(heap: &Heap<'_>, value: Value) -> bool {
    match heap.node(value) {
        Some(Node::Dict(pairs)) => pairs.is_empty(),
        Some(Node::Tuple(items) | Node::List(items)) => items.is_empty(),
        _ => value == Value::None,
    }
}

/// An integer beyond 64 bits, from little-endian two's complement.
fn bignum(bytes: &[u8]) -> zt::manifest::Value {
    let is_negative = bytes.last().is_some_and(|top| *top >= 0x80);
    let digits = bytes.iter().rev();
    // CBOR stores `-1 - n` of a negative integer, which is its complement.
    let digits = digits.map(|byte| if is_negative { !byte } else { *byte });
    let digits: Vec<u8> = digits.skip_while(|byte| *byte == 0).collect();
    let tag = if is_negative { NEGATIVE_BIGNUM } else { BIGNUM };
    // CBOR's integers have 64 bits and a sign.
    match <[u8; 8]>::try_from(digits.as_slice()) {
        Ok(word) if is_negative => zt::manifest::Value::Negative(u64::from_be_bytes(word)),
        Ok(word) => zt::manifest::Value::Unsigned(u64::from_be_bytes(word)),
        Err(_) => zt::manifest::Value::Tag(tag, Box::new(zt::manifest::Value::Bytes(digits))),
    }
}
