//! The tensors of a pickle, from the calls that would rebuild them in Python.

use zt_foreign::sparse::Compressed;

use crate::arguments::{Arguments, wrong};
use crate::deferred::Deferred;
use crate::element::ElementType;
use crate::fault::{Done, TensorFault};
use crate::global::{Global, Rebuild};
use crate::numpy::{self, Array};
use crate::pickle::{Heap, Made, Node, Value};
use crate::quantized::{self, Scale};
use crate::sparse::Sparse;
use crate::unknown::class_name;
use crate::view::{self, View};
use crate::wrapper::unwrapped;

/// The layout of a tensor, as its pickle describes it.
#[derive(Debug)]
pub(super) enum Layout {
    /// One element for every index.
    Strided(View),
    Sparse(Box<Sparse>),
    /// Integers with scales and zero-points.
    Quantized {
        integers: View,
        scale: Scale,
    },
    /// An array of NumPy, whose elements are in the pickle.
    Array(Array),
}

/// Why a tensor is refused, and what a listing shows of it.
pub(super) struct Refused {
    pub(super) fault: TensorFault,
    pub(super) known: Known,
}

impl From<TensorFault> for Refused {
    fn from(fault: TensorFault) -> Self {
        let known = Known::default();
        Refused { fault, known }
    }
}

impl Layout {
    pub(super) fn shape(&self) -> &[u64] {
        match self {
            Layout::Strided(view) | Layout::Quantized { integers: view, .. } => &view.shape,
            Layout::Sparse(sparse) => sparse.shape(),
            Layout::Array(array) => &array.shape,
        }
    }

    /// The type of the values.
    pub(super) fn element(&self) -> &'static ElementType {
        match self {
            Layout::Strided(view) | Layout::Quantized { integers: view, .. } => view.element,
            Layout::Sparse(sparse) => sparse.element(),
            Layout::Array(array) => array.element,
        }
    }
}

pub(super) fn tensor(heap: &Heap<'_>, made: Made) -> Result<Layout, Refused> {
    let mut known = Known::default();
    resolve(heap, made, &mut known).map_err(|fault| Refused { fault, known })
}

/// The shape and element type that were read before a fault.
#[derive(Default)]
pub(super) struct Known {
    pub(super) shape: Option<Vec<u64>>,
    pub(super) element: Option<&'static ElementType>,
}

fn resolve(heap: &Heap<'_>, made: Made, known: &mut Known) -> Done<Layout> {
    let made = unwrapped(heap, made, &mut Vec::new())?;
    match made.maker {
        Global::Rebuild(Rebuild::FromCpu) => {
            let arguments = Arguments::new(heap, made.arguments, "tensor")?;
            let view = view(&arguments, 0, "data")?;
            let dtype = arguments.value(1, "dtype")?;
            let Value::Global(Global::DType(element)) = dtype else {
                return Err(wrong(heap, "dtype", dtype));
            };
            known.shape = Some(view.shape.clone());
            // torch converts a type that the CPU does not have when it saves the tensor.
            if view.element != element {
                return Err(TensorFault::Lazy { bit: "to" });
            }
            Ok(Layout::Strided(view))
        }
        _ => layout(heap, made, known),
    }
}

fn layout(heap: &Heap<'_>, made: Made, known: &mut Known) -> Done<Layout> {
    let arguments = Arguments::new(heap, made.arguments, "tensor")?;
    match made.maker {
        Global::Rebuild(Rebuild::Tensor) => strided(&arguments, None, known).map(Layout::Strided),
        Global::Rebuild(Rebuild::TensorV2) => {
            arguments.value(5, "backward_hooks")?;
            let mut view = strided(&arguments, None, known)?;
            view.deferred = deferred(heap, arguments.optional(6))?;
            Ok(Layout::Strided(view))
        }
        Global::Rebuild(Rebuild::TensorV3) => {
            let dtype = arguments.value(6, "dtype")?;
            let Value::Global(Global::DType(element)) = dtype else {
                return Err(wrong(heap, "dtype", dtype));
            };
            let mut view = strided(&arguments, Some(element), known)?;
            view.deferred = deferred(heap, arguments.optional(7))?;
            Ok(Layout::Strided(view))
        }
        Global::Rebuild(Rebuild::SparseTensor) => sparse(&arguments, known),
        Global::Rebuild(Rebuild::QTensor) => quantized::layout(&arguments, known),
        Global::Rebuild(Rebuild::Meta) => {
            let what = "a tensor of the device \"meta\", which has no elements".to_owned();
            Err(TensorFault::NotTensor { what })
        }
        Global::Rebuild(Rebuild::Subclass) => {
            // `(class, dtype, size, ...)`.
            let class = arguments.value(0, "class")?;
            let class = class_name(heap, class).ok_or_else(|| wrong(heap, "class", class))?;
            let class = class.escape_debug();
            let what = format!("an object of {class}; the tensors in it are listed");
            Err(TensorFault::NotTensor { what })
        }
        Global::Tensor => {
            // Before version 0.1.12: an empty tensor whose state has the elements.
            let why = "its state is missing";
            let state = made.state.ok_or(TensorFault::NoData { why })?;
            let state = Arguments::new(heap, state, "state")?;
            strided(&state, None, known).map(Layout::Strided)
        }
        Global::SparseTensor => coo(&arguments, OF_PYTHON, known),
        Global::Numpy(_) => {
            let array = numpy::array(heap, made)?;
            known.element = Some(array.element);
            known.shape = Some(array.shape.clone());
            Ok(Layout::Array(array))
        }
        Global::Unsupported(unsupported) if unsupported.is_of_distribution() => {
            let what = format!("{unsupported} describes how a tensor is spread over devices");
            Err(TensorFault::NotTensor { what })
        }
        Global::Unsupported(unsupported) => Err(unsupported.into()),
        _ => Err(TensorFault::Argument { name: "tensor", found: "an object of another class" }),
    }
}

/// `(storage, offset, size, stride, ...)`. `element` overrides the element type of the storage.
pub(super) fn strided(
    arguments: &Arguments<'_, '_>,
    element: Option<&'static ElementType>,
    known: &mut Known,
) -> Done<View> {
    known.element = element;
    known.shape = Some(arguments.sizes(2, "size")?);
    let storage = view::storage(arguments.heap, arguments.value(0, "storage")?)?;
    known.element = Some(element.unwrap_or(storage.element));
    View::new(storage, arguments, element)
}

/// The last argument of a tensor, which lists deferred operations.
fn deferred(heap: &Heap<'_>, metadata: Option<Value>) -> Done<Deferred> {
    let mut deferred = Deferred::default();
    let pairs = match metadata {
        None | Some(Value::None) => return Ok(deferred),
        Some(value) => match heap.node(untyped(heap, value)) {
            Some(Node::Dict(pairs)) => pairs,
            _ => return Err(wrong(heap, "metadata", value)),
        },
    };
    for (key, value) in pairs {
        let is_deferred = *value == Value::Bool(true);
        match heap.text(*key) {
            Some("conj") => deferred.is_conjugated = is_deferred,
            Some("neg") => deferred.is_negated = is_deferred,
            _ => {}
        }
    }
    Ok(deferred)
}

/// The collection within a call of libtorch: `restore_type_tag(dict, "Dict[str, bool]")`.
fn untyped(heap: &Heap<'_>, value: Value) -> Value {
    match heap.node(value) {
        Some(Node::Made(made)) if made.maker == Global::ScriptTyped => {
            let items = heap.tuple(made.arguments).and_then(<[_]>::first);
            items.copied().unwrap_or(value)
        }
        _ => value,
    }
}

/// `(layout, (..., size, ...))` in Python, `(layout, size, requires_grad, ...)` with a number as
/// layout in libtorch.
fn sparse(arguments: &Arguments<'_, '_>, known: &mut Known) -> Done<Layout> {
    /// The numbers of `c10::Layout` that libtorch writes.
    const COO: i64 = 1;
    const CSR: i64 = 2;
    let heap = arguments.heap;
    let layout = arguments.value(0, "layout")?;
    if let Value::Int(layout) = layout {
        return match layout {
            COO => coo(arguments, [3, 4, 1], known),
            CSR => csr(arguments, [3, 4, 5, 1], known),
            _ => {
                known.shape = arguments.sizes(1, "size").ok();
                let name = format!("layout {layout} of torch");
                Err(TensorFault::Layout { name })
            }
        };
    }
    let name = match heap.node(layout) {
        Some(Node::Made(made)) if made.maker == Global::Layout => {
            Arguments::new(heap, made.arguments, "layout")?.text(0, "layout")?
        }
        _ => return Err(wrong(heap, "layout", layout)),
    };
    let parts = Arguments::new(heap, arguments.value(1, "data")?, "data")?;
    match name {
        "torch.sparse_coo" => coo(&parts, OF_PYTHON, known),
        "torch.sparse_csr" => csr(&parts, [0, 1, 2, 3], known),
        "torch.sparse_csc" => compressed(&parts, name, Compressed::Columns, known),
        "torch.sparse_bsr" => compressed(&parts, name, Compressed::Rows, known),
        "torch.sparse_bsc" => compressed(&parts, name, Compressed::Columns, known),
        _ => {
            known.shape = parts.sizes(3, "size").ok();
            let name = name.chars().take(40).collect();
            Err(TensorFault::Layout { name })
        }
    }
}

/// `(indices, values, size, is_coalesced)`; `is_coalesced` since version 2.1.
const OF_PYTHON: [usize; 3] = [0, 1, 2];

/// A COO tensor with its parts at these places.
fn coo(
    parts: &Arguments<'_, '_>,
    [indices, values, size]: [usize; 3],
    known: &mut Known,
) -> Done<Layout> {
    let shape = parts.sizes(size, "size")?;
    known.shape = Some(shape.clone());
    let coords = view(parts, indices, "indices")?;
    let values = view(parts, values, "values")?;
    known.element = Some(values.element);
    // The values of a hybrid tensor are arrays of its last dimensions.
    let rank = |expected: usize| {
        let (expected, found) = (expected as u64, values.shape.len() as u64);
        TensorFault::Parts { what: "values", expected, found }
    };
    let (count, inner) = values.shape.split_first().ok_or_else(|| rank(1))?;
    let sparse = shape.len().checked_sub(inner.len());
    let sparse = sparse.ok_or_else(|| rank(shape.len().strict_add(1)))?;
    let (outer, dense) = shape.split_at(sparse);
    check_shape("values", &[&[*count], dense].concat(), &values)?;
    check_shape("indices", &[outer.len() as u64, *count], &coords)?;
    let is_coalesced = match parts.optional(3) {
        Some(Value::Bool(is_coalesced)) => Some(is_coalesced),
        _ => None,
    };
    Ok(Layout::Sparse(Box::new(Sparse::Coo { shape, coords, values, is_coalesced })))
}

/// A CSR tensor with its `crow_indices`, `col_indices`, values and size at these places.
fn csr(
    parts: &Arguments<'_, '_>,
    [rows, columns, values, size]: [usize; 4],
    known: &mut Known,
) -> Done<Layout> {
    let shape = parts.sizes(size, "size")?;
    known.shape = Some(shape.clone());
    let indptr = view(parts, rows, "crow_indices")?;
    let indices = view(parts, columns, "col_indices")?;
    let values = view(parts, values, "values")?;
    known.element = Some(values.element);
    let [rows, _] = *shape.as_slice() else {
        let name = "torch.sparse_csr without exactly two dimensions".to_owned();
        return Err(TensorFault::Layout { name });
    };
    if values.shape.len() != 1 {
        let name = "torch.sparse_csr with dense dimensions".to_owned();
        return Err(TensorFault::Layout { name });
    }
    let pointers = rows.checked_add(1).ok_or(TensorFault::Overflow)?;
    check_shape("crow_indices", &[pointers], &indptr)?;
    check_shape("col_indices", &[values.count], &indices)?;
    Ok(Layout::Sparse(Box::new(Sparse::Csr { shape, indptr, indices, values })))
}

/// `(pointers, indices, values, size)`. The values of blocks have three dimensions, which end with the
/// rows and the columns of a block.
fn compressed(
    parts: &Arguments<'_, '_>,
    layout: &str,
    by: Compressed,
    known: &mut Known,
) -> Done<Layout> {
    let shape = parts.sizes(3, "size")?;
    known.shape = Some(shape.clone());
    let values = view(parts, 2, "values")?;
    known.element = Some(values.element);
    let block = match *values.shape.as_slice() {
        [_] if layout == "torch.sparse_csc" => Some([1, 1]),
        [_, rows, columns] if layout != "torch.sparse_csc" => Some([rows, columns]),
        _ => None,
    };
    // There may be dimensions of a batch, and dense ones.
    let matrix = <[u64; 2]>::try_from(shape).ok();
    let (shape, block) = matrix.zip(block).ok_or_else(|| TensorFault::Layout {
        name: format!("{layout} of other than two dimensions"),
    })?;
    Ok(Layout::Sparse(Box::new(Sparse::Compressed {
        by,
        shape,
        block,
        pointers: view(parts, 0, "pointers")?,
        indices: view(parts, 1, "indices")?,
        values,
    })))
}

pub(super) fn check_shape(what: &'static str, expected: &[u64], view: &View) -> Done<()> {
    if view.shape.len() != expected.len() {
        return Err(TensorFault::Parts {
            what,
            expected: expected.len() as u64,
            found: view.shape.len() as u64,
        });
    }
    for (expected, found) in expected.iter().zip(&view.shape) {
        if expected != found {
            return Err(TensorFault::Parts { what, expected: *expected, found: *found });
        }
    }
    Ok(())
}

/// A tensor as an argument, which must be strided.
pub(super) fn view(arguments: &Arguments<'_, '_>, at: usize, name: &'static str) -> Done<View> {
    let (heap, value) = (arguments.heap, arguments.value(at, name)?);
    let Some(Node::Made(made)) = heap.node(value) else {
        return Err(wrong(heap, name, value));
    };
    let is_plain = matches!(
        made.maker,
        Global::Tensor | Global::Rebuild(Rebuild::Tensor | Rebuild::TensorV2 | Rebuild::TensorV3)
    );
    if !is_plain {
        return Err(wrong(heap, name, value));
    }
    match layout(heap, *made, &mut Known::default())? {
        Layout::Strided(view) => Ok(view),
        _ => Err(wrong(heap, name, value)),
    }
}
