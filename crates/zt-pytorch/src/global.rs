//! The globals that a pickle may name. They say what data means, and none is ever run.

use std::fmt;
use std::hash::{Hash, Hasher};

use zt_pickle::{Collection, Heap, Makes, Value};

use crate::element::{BYTES, ElementType};

/// A function or class of Python that checkpoints name.
///
/// The list has the default globals of `torch.load(weights_only=True)` in torch 2.15, `bytes`, which
/// protocol 2 calls for empty bytes, Python's own collections and values, and
/// [`Global::Unsupported`]. Additions by modules or users of torch are not on it, except those of
/// `torch.distributed.tensor`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Global {
    /// A `defaultdict` is a dict, and a `deque` a list.
    Collection(Collection),
    Bytes,
    ByteArray,
    Complex,
    /// `_codecs.encode`: protocol 2 writes bytes as a call of it.
    Encode,
    Size,
    Device,
    /// `torch.serialization._get_layout`.
    Layout,
    /// `torch.Tensor`, and old classes such as `torch.FloatTensor`.
    Tensor,
    /// `torch.sparse.FloatTensor` and similar classes.
    SparseTensor,
    Parameter,
    Rebuild(Rebuild),
    /// A class of storages; `None` if it names no element type.
    Storage(Option<&'static ElementType>),
    DType(&'static ElementType),
    /// `torch.storage._load_from_bytes`: the storage in a whole stream of `torch.save`.
    LoadFromBytes,
    /// A class of the code of a TorchScript archive.
    Script,
    /// `build_intlist`, `restore_type_tag` and similar: a collection with its type.
    ScriptTyped,
    /// `argparse.Namespace`, as its members.
    Namespace,
    /// A value of Python's own library, or a class that a `defaultdict` names.
    Plain(&'static Plain),
    QuantizationScheme(Scheme),
    Numpy(Numpy),
    /// A harmless global of tensors that are unsupported, such as nested tensors and parameters without a
    /// shape: its objects are refused, by its name. What describes the distribution of a tensor over
    /// devices is no tensor.
    Unsupported(Unsupported),
}

/// A row of [`UNSUPPORTED`], and the byte of the pickle where it is named.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unsupported {
    /// Its place, because a reference would make every value of a pickle larger.
    place: u8,
    pub(super) at: u32,
}

/// Equal wherever it is named.
impl PartialEq for Unsupported {
    fn eq(&self, other: &Self) -> bool {
        self.place == other.place
    }
}

impl Eq for Unsupported {}

impl Hash for Unsupported {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.place.hash(state);
    }
}

/// The globals of [`Global::Unsupported`].
const UNSUPPORTED: &[(&str, &str)] = &[
    ("torch._utils", "_rebuild_nested_tensor"),
    ("torch.nn.parameter", "UninitializedParameter"),
    ("torch.nn.parameter", "UninitializedBuffer"),
    // These describe which part of a `DTensor` its local tensor is.
    ("torch.distributed.tensor._dtensor_spec", "TensorMeta"),
    ("torch.distributed.tensor._dtensor_spec", "DTensorSpec"),
    ("torch.distributed.tensor._dtensor_spec", "ShardOrderEntry"),
    ("torch.distributed.tensor.placement_types", "Partial"),
    ("torch.distributed.tensor.placement_types", "Replicate"),
    ("torch.distributed.tensor.placement_types", "Shard"),
    ("torch.distributed.tensor.placement_types", "_StridedShard"),
    ("torch.distributed.device_mesh", "DeviceMesh"),
    ("torch.distributed._mesh_layout", "_FlatLayout"),
    ("torch.distributed._mesh_layout", "_MeshLayout"),
];

/// A class of Python's library, or torch's version: its module, its name, its objects as attributes.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Plain(&'static str, &'static str, Becomes);

/// A value of Python's library as an attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Becomes {
    /// The text of its one argument.
    Text,
    /// The parts of a path, with a separator.
    Path(char),
    /// Its name and its arguments.
    Call,
}

/// Values of Python's library in checkpoints, torch's version, and classes that only name a type.
static PLAIN: &[Plain] = &[
    Plain("torch.torch_version", "TorchVersion", Becomes::Text),
    Plain("pathlib", "PosixPath", Becomes::Path('/')),
    Plain("pathlib", "PurePosixPath", Becomes::Path('/')),
    Plain("pathlib", "Path", Becomes::Path('/')),
    Plain("pathlib", "WindowsPath", Becomes::Path('\\')),
    Plain("pathlib", "PureWindowsPath", Becomes::Path('\\')),
    Plain("datetime", "datetime", Becomes::Call),
    Plain("datetime", "date", Becomes::Call),
    Plain("datetime", "time", Becomes::Call),
    Plain("datetime", "timedelta", Becomes::Call),
    Plain("datetime", "timezone", Becomes::Call),
    Plain("decimal", "Decimal", Becomes::Call),
    Plain("fractions", "Fraction", Becomes::Call),
    Plain("builtins", "range", Becomes::Call),
    Plain("builtins", "slice", Becomes::Call),
    Plain("builtins", "int", Becomes::Call),
    Plain("builtins", "float", Becomes::Call),
    Plain("builtins", "bool", Becomes::Call),
    Plain("builtins", "str", Becomes::Call),
    Plain("builtins", "list", Becomes::Call),
    Plain("builtins", "dict", Becomes::Call),
    Plain("builtins", "tuple", Becomes::Call),
    Plain("builtins", "object", Becomes::Call),
];

/// The functions of `torch._utils` that rebuild tensors, without their `_rebuild_`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Rebuild {
    Tensor,
    TensorV2,
    TensorV3,
    Parameter,
    WithState,
    SparseTensor,
    QTensor,
    Meta,
    Subclass,
    FromCpu,
    FromNumpy,
    FromType,
}

/// The globals of NumPy's arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Numpy {
    DType,
    /// The class of arrays, which only names a type.
    Class,
    /// `_reconstruct`: an array by its state.
    Array,
    FromBuffer,
    Scalar,
}

/// How quantized integers become values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Scheme {
    PerTensor,
    PerChannel,
    /// Zero-points are floats.
    PerChannelFloat,
    /// torch writes no such tensors.
    Symmetric,
}

/// The other globals with a name of their own. The first name of each is in messages. NumPy 2 renamed
/// its modules.
#[rustfmt::skip]
static KNOWN: &[(&str, &str, Global)] = &[
    ("collections", "OrderedDict", collection(Collection::OrderedDict)),
    ("collections", "Counter", collection(Collection::Counter)),
    ("collections", "defaultdict", collection(Collection::DefaultDict)),
    ("collections", "deque", collection(Collection::Deque)),
    ("builtins", "set", collection(Collection::Set)),
    ("builtins", "frozenset", collection(Collection::FrozenSet)),
    ("builtins", "bytes", Global::Bytes),
    ("builtins", "bytearray", Global::ByteArray),
    ("builtins", "complex", Global::Complex),
    ("_codecs", "encode", Global::Encode),
    ("argparse", "Namespace", Global::Namespace),
    ("torch", "Size", Global::Size),
    ("torch", "device", Global::Device),
    ("torch", "Tensor", Global::Tensor),
    ("torch", "per_tensor_affine", scheme(Scheme::PerTensor)),
    ("torch", "per_channel_affine", scheme(Scheme::PerChannel)),
    ("torch", "per_channel_affine_float_qparams", scheme(Scheme::PerChannelFloat)),
    ("torch", "per_tensor_symmetric", scheme(Scheme::Symmetric)),
    ("torch", "per_channel_symmetric", scheme(Scheme::Symmetric)),
    ("torch.serialization", "_get_layout", Global::Layout),
    ("torch.nn.parameter", "Parameter", Global::Parameter),
    ("numpy", "dtype", Global::Numpy(Numpy::DType)),
    ("numpy", "ndarray", Global::Numpy(Numpy::Class)),
    ("numpy._core.multiarray", "_reconstruct", Global::Numpy(Numpy::Array)),
    ("numpy._core.multiarray", "scalar", Global::Numpy(Numpy::Scalar)),
    ("numpy.core.multiarray", "_reconstruct", Global::Numpy(Numpy::Array)),
    ("numpy.core.multiarray", "scalar", Global::Numpy(Numpy::Scalar)),
    ("numpy._core.numeric", "_frombuffer", Global::Numpy(Numpy::FromBuffer)),
    ("numpy.core.numeric", "_frombuffer", Global::Numpy(Numpy::FromBuffer)),
    ("torch.storage", "TypedStorage", Global::Storage(None)),
    ("torch.storage", "UntypedStorage", Global::Storage(Some(&BYTES))),
    ("torch._utils", "_rebuild_tensor", rebuild(Rebuild::Tensor)),
    ("torch._utils", "_rebuild_tensor_v2", rebuild(Rebuild::TensorV2)),
    ("torch._utils", "_rebuild_tensor_v3", rebuild(Rebuild::TensorV3)),
    ("torch._utils", "_rebuild_parameter", rebuild(Rebuild::Parameter)),
    ("torch._utils", "_rebuild_parameter_with_state", rebuild(Rebuild::WithState)),
    ("torch._utils", "_rebuild_sparse_tensor", rebuild(Rebuild::SparseTensor)),
    // CSR in torch 1.9 to 1.12.
    ("torch._utils", "_rebuild_sparse_csr_tensor", rebuild(Rebuild::SparseTensor)),
    ("torch._utils", "_rebuild_qtensor", rebuild(Rebuild::QTensor)),
    ("torch._utils", "_rebuild_meta_tensor_no_storage", rebuild(Rebuild::Meta)),
    ("torch._utils", "_rebuild_wrapper_subclass", rebuild(Rebuild::Subclass)),
    ("torch._utils", "_rebuild_device_tensor_from_cpu_tensor", rebuild(Rebuild::FromCpu)),
    ("torch._utils", "_rebuild_device_tensor_from_numpy", rebuild(Rebuild::FromNumpy)),
    // A tensor with attributes.
    ("torch._tensor", "_rebuild_from_type_v2", rebuild(Rebuild::FromType)),
    ("torch.tensor", "_rebuild_from_type_v2", rebuild(Rebuild::FromType)),
];

const fn collection(collection: Collection) -> Global {
    Global::Collection(collection)
}

const fn scheme(scheme: Scheme) -> Global {
    Global::QuantizationScheme(scheme)
}

const fn rebuild(rebuild: Rebuild) -> Global {
    Global::Rebuild(rebuild)
}

impl Global {
    /// The global of a module and a name; `None` if it is not on the list.
    pub(super) fn find(module: &str, name: &str, at: u32) -> Option<Self> {
        let mut unsupported = (0..).zip(UNSUPPORTED);
        if let Some((place, _)) = unsupported.find(|(_, known)| **known == (module, name)) {
            return Some(Global::Unsupported(Unsupported { place, at }));
        }
        // Protocol 2 has Python 2's names; Python 3.13 moved the paths.
        let (module, name) = match (module, name) {
            ("__builtin__", "xrange") => ("builtins", "range"),
            ("__builtin__", "unicode") => ("builtins", "str"),
            ("__builtin__", "long") => ("builtins", "int"),
            ("__builtin__", name) => ("builtins", name),
            ("pathlib._local", name) => ("pathlib", name),
            named => named,
        };
        let mut plain = PLAIN.iter();
        if let Some(plain) = plain.find(|plain| (plain.0, plain.1) == (module, name)) {
            return Some(Global::Plain(plain));
        }
        let mut known = KNOWN.iter();
        if let Some((.., global)) = known.find(|known| (known.0, known.1) == (module, name)) {
            return Some(*global);
        }
        let sparse = matches!(module, "torch.sparse" | "torch.cuda.sparse");
        match module {
            "torch" | "torch.cuda" if is_tensor_class(name) => Some(Global::Tensor),
            _ if sparse && is_tensor_class(name) => Some(Global::SparseTensor),
            "torch" | "torch.cuda" => match ElementType::from_storage(name) {
                Some(element) => Some(Global::Storage(Some(element))),
                None if module == "torch" => ElementType::from_name(name).map(Global::DType),
                None => None,
            },
            _ => None,
        }
    }

    /// [`Global::find`] for an archive of TorchScript, which has classes of its own. Their objects
    /// hold data, and their code is not read.
    pub(super) fn find_in_script(module: &str, name: &str, at: u32) -> Option<Self> {
        if module == "__torch__" || module.starts_with("__torch__.") {
            return Some(Global::Script);
        }
        match (module, name) {
            (
                "torch.jit._pickle",
                "build_intlist" | "build_tensorlist" | "build_doublelist" | "build_boollist"
                | "restore_type_tag",
            ) => Some(Global::ScriptTyped),
            _ => Self::find(module, name, at),
        }
    }

    /// [`Global::find`] for a pickle that `torch.save` did not write.
    pub(super) fn find_in_pickle(module: &str, name: &str, at: u32) -> Option<Self> {
        match (module, name) {
            ("torch.storage", "_load_from_bytes") => Some(Global::LoadFromBytes),
            _ => Self::find(module, name, at),
        }
    }

    /// Whether its objects have named members, which are walked into.
    pub(super) const fn has_members(self) -> bool {
        matches!(self, Global::Script | Global::Namespace)
    }
}

impl zt_pickle::Global for Global {
    fn makes(self) -> Makes {
        match self {
            Global::Collection(collection) => Makes::Collection(collection),
            Global::Storage(_) | Global::DType(_) | Global::QuantizationScheme(_) => Makes::Nothing,
            _ => Makes::Object,
        }
    }

    fn is_class(self) -> bool {
        matches!(
            self,
            Global::Collection(_)
                | Global::Size
                | Global::Tensor
                | Global::SparseTensor
                | Global::Parameter
                | Global::Script
                | Global::Namespace
                | Global::Plain(_)
                | Global::Numpy(Numpy::DType | Numpy::Class)
                | Global::Unsupported(_)
        )
    }

    fn has_state(self) -> bool {
        matches!(
            self,
            Global::Tensor
                | Global::SparseTensor
                | Global::Parameter
                | Global::Rebuild(_)
                | Global::Script
                | Global::Namespace
                | Global::Plain(_)
                | Global::Numpy(_)
                | Global::Unsupported(_)
        )
    }

    fn is_sequence(self) -> bool {
        self == Global::Size
    }

    // libtorch writes an Enum as its class and its value, without a tuple.
    fn takes_bare_argument(self) -> bool {
        self == Global::Script
    }

    // Older streams name the class of a module together with its source. The oldest do so without
    // the word.
    fn class_of(heap: &Heap<'_, Self>, id: Value<Self>) -> Option<Value<Self>> {
        match heap.tuple(id)? {
            [kind, class, ..] if heap.text(*kind) == Some("module") => Some(*class),
            [class, _, _] if matches!(class, Value::Global(_)) || heap.named(*class).is_some() => {
                Some(*class)
            }
            _ => None,
        }
    }
}

/// The name in Python. Classes that are one global have one name.
impl fmt::Display for Global {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((module, name, _)) = KNOWN.iter().find(|known| known.2 == *self) {
            return write_name(f, module, name);
        }
        match self {
            Global::LoadFromBytes => f.write_str("torch.storage._load_from_bytes"),
            Global::Script => f.write_str("a class of TorchScript"),
            Global::ScriptTyped => f.write_str("a typed collection of TorchScript"),
            Global::SparseTensor => f.write_str("torch.sparse.Tensor"),
            Global::Storage(Some(element)) => write!(f, "torch.{}Storage", element.storage),
            Global::DType(element) => write!(f, "torch.{}", element.name),
            Global::Plain(Plain(module, name, _)) => write_name(f, module, name),
            Global::Unsupported(unsupported) => unsupported.fmt(f),
            // Every other one has a row.
            other => write!(f, "{other:?}"),
        }
    }
}

/// Names of Python's own need no module.
fn write_name(f: &mut fmt::Formatter<'_>, module: &str, name: &str) -> fmt::Result {
    match module {
        "builtins" => f.write_str(name),
        _ => write!(f, "{module}.{name}"),
    }
}

impl Plain {
    pub(super) const fn becomes(&self) -> Becomes {
        self.2
    }
}

impl Unsupported {
    #[expect(clippy::expect_used, reason = "places are those of rows")]
    fn row(self) -> (&'static str, &'static str) {
        let row = UNSUPPORTED.get(usize::from(self.place));
        *row.expect("the place of a row")
    }

    /// Whether it describes the distribution of a tensor over devices.
    pub(super) fn is_of_distribution(self) -> bool {
        self.row().0.starts_with("torch.distributed.")
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (module, name) = self.row();
        write!(f, "{module}.{name}")
    }
}

/// Whether this is a class such as `FloatTensor`.
fn is_tensor_class(name: &str) -> bool {
    const ELEMENTS: [&str; 10] =
        ["Double", "Float", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte", "Bool"];
    let element = name.strip_suffix("Tensor");
    element.is_some_and(|element| ELEMENTS.contains(&element))
}
