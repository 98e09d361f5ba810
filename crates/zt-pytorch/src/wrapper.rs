//! Wrappers of tensors, such as parameters and the user's classes, and their attributes.

use crate::arguments::{Arguments, wrong};
use crate::fault::TensorFault;
use crate::global::{Global, Numpy, Rebuild};
use crate::pickle::{Heap, Made, Node, Value};

/// The limit of wrappers within wrappers.
const WRAPPERS: usize = 8;

/// Whether an object is a tensor, or an array of another library.
pub(super) fn is_tensor(made: &Made) -> bool {
    matches!(
        made.maker,
        Global::Tensor
            | Global::SparseTensor
            | Global::Parameter
            | Global::Rebuild(_)
            | Global::Numpy(Numpy::Array | Numpy::FromBuffer | Numpy::Scalar)
            | Global::Unsupported(_)
    )
}

/// The states of a tensor and of its wrappers: dicts of Python attributes, `p.extra = ...`, or what a class of its own
/// keeps.
pub(super) fn states(heap: &Heap<'_>, made: Made) -> Vec<Value> {
    let mut states = Vec::new();
    // A fault of the elements is found where the tensor is read.
    let _ = unwrapped(heap, made, &mut states);
    let parts = states.into_iter().map(|state| match heap.tuple(state) {
        // The attributes in the dict, and those in slots.
        Some([dict, slots]) if is_dict(heap, *dict) || is_dict(heap, *slots) => {
            [Some(*dict), Some(*slots)]
        }
        _ => [Some(state), None],
    });
    parts.flatten().flatten().collect()
}

pub(super) fn is_dict(heap: &Heap<'_>, value: Value) -> bool {
    matches!(heap.node(value), Some(Node::Dict(_)))
}

/// The object within all wrappers. Their states are appended to `states`.
pub(super) fn unwrapped(
    heap: &Heap<'_>,
    mut made: Made,
    states: &mut Vec<Value>,
) -> Result<Made, TensorFault> {
    for _ in 0..WRAPPERS {
        if let (Global::Rebuild(_), Some(state)) = (made.maker, made.state) {
            states.push(state);
        }
        let inner = match made.maker {
            Global::Rebuild(Rebuild::Parameter) => {
                Arguments::new(heap, made.arguments, "parameter")?.value(0, "data")?
            }
            // An array of NumPy.
            Global::Rebuild(Rebuild::FromNumpy) => {
                Arguments::new(heap, made.arguments, "tensor")?.value(0, "data")?
            }
            Global::Rebuild(Rebuild::WithState) => {
                let arguments = Arguments::new(heap, made.arguments, "parameter")?;
                states.push(arguments.value(3, "state")?);
                arguments.value(0, "data")?
            }
            Global::Rebuild(Rebuild::FromType) => {
                let arguments = Arguments::new(heap, made.arguments, "tensor")?;
                let function = arguments.value(0, "function")?;
                let Value::Global(maker @ Global::Rebuild(_)) = function else {
                    return Err(not_called(heap, function));
                };
                states.push(arguments.value(3, "state")?);
                made = Made { maker, arguments: arguments.value(2, "arguments")?, state: None };
                continue;
            }
            Global::Parameter => match made.state {
                Some(state) if is_place(heap, state) => {
                    made.maker = Global::Tensor;
                    continue;
                }
                Some(state) => Arguments::new(heap, state, "state")?.value(0, "data")?,
                None => Arguments::new(heap, made.arguments, "parameter")?.value(0, "data")?,
            },
            _ => return Ok(made),
        };
        match heap.node(inner) {
            Some(Node::Made(inner)) => made = *inner,
            _ => return Err(wrong(heap, "data", inner)),
        }
    }
    let found = "a tensor in too many wrappers";
    Err(TensorFault::Argument { name: "data", found })
}

/// The fault of a tensor whose function is unsupported. The function of a jagged nested tensor is on
/// no list.
fn not_called(heap: &Heap<'_>, function: Value) -> TensorFault {
    /// The limit of a name, in characters.
    const LEN: usize = 100;
    if let Value::Global(Global::Unsupported(unsupported)) = function {
        return unsupported.into();
    }
    match (heap.node(function), heap.named(function)) {
        (Some(Node::Named { at, .. }), Some((module, name))) => {
            let name = [module, ".", name].into_iter().flat_map(str::chars);
            let name = name.take(LEN).collect();
            TensorFault::Global { name, at: *at }
        }
        _ => wrong(heap, "function", function),
    }
}

/// Whether the state of a parameter is `(storage, offset, size, stride)`. Before version 0.4, it
/// began with a tensor, as the state of a variable did.
fn is_place(heap: &Heap<'_>, state: Value) -> bool {
    let first = heap.tuple(state).and_then(|items| items.first());
    first.is_some_and(|first| matches!(heap.node(*first), Some(Node::Persistent(_))))
}
