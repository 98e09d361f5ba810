//! Objects of classes that are not on the list of globals. Only their tensors are read.

use std::cell::OnceCell;

use zt_pickle::Holders;

use crate::fault::TorchFault;
use crate::global::{Global, Numpy};
use crate::numpy;
use crate::pickle::{Heap, Node, Value};
use crate::wrapper::is_tensor;

/// An object of a class that is not on the list.
#[derive(Debug)]
pub(super) struct Unknown {
    pub(super) class: String,
    /// The byte of the pickle where the class is named.
    pub(super) at: Option<u32>,
    /// Lists and dicts that are items of the object.
    pub(super) items: [Option<Value>; 2],
    /// What only the class can interpret: its arguments and its state.
    pub(super) inner: [Option<Value>; 2],
}

/// The limit of a module and of a name, in characters.
const LEN: usize = 120;

/// The name of a class, with its module.
pub(super) fn class_name(heap: &Heap<'_>, class: Value) -> Option<String> {
    if let Value::Global(class) = class {
        return Some(class.to_string());
    }
    let (module, name) = heap.named(class)?;
    let [module, name]: [String; 2] = [module, name].map(|text| text.chars().take(LEN).collect());
    Some(format!("{module}.{name}"))
}

/// The object that a value is, if its class is not on the list. An array of NumPy whose elements are
/// no numbers is one too.
pub(super) fn unknown(heap: &Heap<'_>, value: Value) -> Option<Unknown> {
    match heap.node(value)? {
        Node::StandIn(object) => Some(Unknown {
            class: class_name(heap, object.class)?,
            at: match heap.node(object.class)? {
                Node::Named { at, .. } => Some(*at),
                _ => None,
            },
            items: [object.items, object.pairs],
            inner: [Some(object.arguments), object.state],
        }),
        Node::Made(made) => {
            let Global::Numpy(Numpy::Array | Numpy::FromBuffer | Numpy::Scalar) = made.maker else {
                return None;
            };
            let (code, items) = numpy::opaque(heap, *made)?;
            let code: String = code.chars().take(LEN).collect();
            Some(Unknown {
                class: format!("numpy.ndarray of {code}"),
                at: None,
                items: [items, None],
                inner: [None, None],
            })
        }
        _ => None,
    }
}

/// Which values of a pickle are or hold tensors.
pub(super) struct Tensors<'h> {
    heap: &'h Heap<'h>,
    holders: OnceCell<Holders>,
}

impl<'h> Tensors<'h> {
    pub(super) const fn of(heap: &'h Heap<'h>) -> Self {
        Tensors { heap, holders: OnceCell::new() }
    }

    /// Whether a value is a tensor, a storage or an array, or holds one.
    pub(super) fn are_in(&self, value: Value) -> Result<bool, TorchFault> {
        if !matches!(value, Value::Node(_)) {
            return Ok(false);
        }
        if let Some(holders) = self.holders.get() {
            return Ok(holders.has(value));
        }
        let holders = self.heap.holders(|node| match node {
            Node::Persistent(_) => true,
            Node::Made(made) => is_tensor(made),
            _ => false,
        });
        let holders = holders.map_err(TorchFault::Memory)?;
        Ok(self.holders.get_or_init(|| holders).has(value))
    }
}
