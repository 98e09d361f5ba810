//! The shapes of tensors that a file stores in another shape, as the converter of ComfyUI-GGUF records them:
//! for rows that are no whole blocks, and for more than four dimensions.
//!
//! ```text
//! comfy.gguf.orig_shape.patch.weight   array[int32]   [2, 3, 1, 2, 2]     the tensor is stored as 6 x 4
//! ```
//!
//! The recorded shape is the object's. Its attribute `gguf.shape` has the stored one, and the pair is made
//! anew from both when a GGUF file is written.

use std::collections::{HashMap, HashSet};

use zt::formats::element_count;
use zt::{Attributes, Error, ErrorKind, Object, Value};
use zt_foreign::STORED_SHAPE;

use crate::header::Tensor;
use crate::pairs;
use crate::violation::Violation;

/// The prefix of the keys. The name of a tensor follows.
const PREFIX: &str = "comfy.gguf.orig_shape.";

/// Gives the tensors their recorded shapes, and removes the pairs.
pub(super) fn take(attributes: &mut Attributes, tensors: &mut [Tensor]) {
    // One pass over the pairs: a file may have 10^5 of them, and as many tensors.
    let name = |key: &Value| key.as_str()?.strip_prefix(PREFIX).map(str::to_owned);
    let recorded = attributes.iter().filter_map(|(key, value)| Some((name(key)?, value.clone())));
    let recorded: HashMap<String, Value> = recorded.collect();
    if recorded.is_empty() {
        return;
    }
    let mut taken = HashSet::new();
    for tensor in tensors {
        let Some(recorded) = recorded.get(&*tensor.name) else {
            continue;
        };
        let Some(shape) = numbers(recorded).filter(|shape| is_same_count(shape, &tensor.shape))
        else {
            let stored = tensor.shape.clone();
            tensor.fault = Some(Violation::OriginalShape { stored }.into());
            continue;
        };
        if tensor.tensor_type.byte_len(&shape) != Some(tensor.span.byte_len()) {
            // Its values are quantized, and the format has whole blocks in each row.
            let stored = tensor.shape.clone();
            let violation = Violation::OriginalRows { shape, stored };
            let error = Error::new(ErrorKind::Unsupported, "unsupported", violation);
            tensor.remark = Some(error.with_object(&tensor.name));
            continue;
        }
        tensor.stored = Some(std::mem::replace(&mut tensor.shape, shape));
        taken.insert(tensor.name.clone());
    }
    let is_taken = |key: &Value| name(key).is_some_and(|name| taken.contains(&*name));
    pairs::remove(attributes, is_taken);
}

/// The shape in which an object is stored.
pub(super) fn stored(object: &Object) -> Vec<u64> {
    let stored = object.attributes().get(STORED_SHAPE).and_then(numbers);
    let stored = stored.filter(|stored| is_same_count(stored, &object.shape));
    stored.unwrap_or_else(|| object.shape.to_vec())
}

/// The pair that records the shape of an object which is stored as `stored`.
pub(super) fn pair(name: &str, object: &Object, stored: &[u64]) -> Option<(String, Value)> {
    let is_other = *object.shape != *stored;
    is_other.then(|| (format!("{PREFIX}{name}"), value(&object.shape)))
}

pub(super) fn value(shape: &[u64]) -> Value {
    Value::array(shape.iter().copied().map(Value::Unsigned).collect())
}

fn numbers(value: &Value) -> Option<Vec<u64>> {
    value.as_array()?.iter().map(Value::as_u64).collect()
}

fn is_same_count(shape: &[u64], stored: &[u64]) -> bool {
    element_count(shape).is_some_and(|count| Some(count) == element_count(stored))
}
