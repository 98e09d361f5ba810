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
    /// `collections.OrderedDict`.
    OrderedDict,
    /// `collections.Counter`.
    Counter,
    /// `collections.defaultdict`, as a dict.
    DefaultDict,
    /// `collections.deque`, as a list.
    Deque,
    Set,
    FrozenSet,
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
    /// A class of the code of a TorchScript archive.
    Script,
    /// `build_intlist`, `restore_type_tag` and similar: a collection with its type.
    ScriptTyped,
    /// `argparse.Namespace`, as its members.
    Namespace,
    /// A value of Python's own library, or a class that a `defaultdict` names.
    Plain(&'static Plain),
    QuantizationScheme(Scheme),
    /// A harmless global of real checkpoints that is unsupported: NumPy's arrays and scalars, nested
    /// tensors, parameters without a shape, the distribution of a tensor over devices. Only its
    /// objects are refused, by its name.
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

/// The globals of [`Global::Unsupported`]. NumPy 2 moved its own.
const UNSUPPORTED: &[(&str, &str)] = &[
    ("numpy", "dtype"),
    ("numpy", "ndarray"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy.core.multiarray", "scalar"),
    ("numpy._core.multiarray", "scalar"),
    ("numpy.core.numeric", "_frombuffer"),
    ("numpy._core.numeric", "_frombuffer"),
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
    ParameterWithState,
    SparseTensor,
    QTensor,
    MetaTensor,
    WrapperSubclass,
    FromCpuTensor,
    FromNumpy,
    FromType,
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
        match module {
            "torch" | "torch.cuda" => Self::of_torch(module, name),
            "torch.sparse" | "torch.cuda.sparse" => {
                is_tensor_class(name).then_some(Global::SparseTensor)
            }
            "torch._utils" => rebuild(name).map(Global::Rebuild),
            "torch._tensor" | "torch.tensor" if name == "_rebuild_from_type_v2" => {
                Some(Global::Rebuild(Rebuild::FromType))
            }
            "torch.storage" => match name {
                "UntypedStorage" => Some(Global::Storage(Some(&BYTES))),
                "TypedStorage" => Some(Global::Storage(None)),
                _ => None,
            },
            "torch.serialization" => (name == "_get_layout").then_some(Global::Layout),
            "torch.nn.parameter" => (name == "Parameter").then_some(Global::Parameter),
            "collections" => match name {
                "OrderedDict" => Some(Global::OrderedDict),
                "Counter" => Some(Global::Counter),
                "defaultdict" => Some(Global::DefaultDict),
                "deque" => Some(Global::Deque),
                _ => None,
            },
            "argparse" => (name == "Namespace").then_some(Global::Namespace),
            "_codecs" => (name == "encode").then_some(Global::Encode),
            "builtins" => match name {
                "set" => Some(Global::Set),
                "frozenset" => Some(Global::FrozenSet),
                "bytes" => Some(Global::Bytes),
                "bytearray" => Some(Global::ByteArray),
                "complex" => Some(Global::Complex),
                _ => None,
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

    fn of_torch(module: &str, name: &str) -> Option<Self> {
        if let Some(element) = ElementType::from_storage(name) {
            return Some(Global::Storage(Some(element)));
        }
        if is_tensor_class(name) {
            return Some(Global::Tensor);
        }
        if module != "torch" {
            return None;
        }
        Some(match name {
            "Size" => Global::Size,
            "device" => Global::Device,
            "Tensor" => Global::Tensor,
            "per_tensor_affine" => Global::QuantizationScheme(Scheme::PerTensor),
            "per_channel_affine" => Global::QuantizationScheme(Scheme::PerChannel),
            "per_channel_affine_float_qparams" => {
                Global::QuantizationScheme(Scheme::PerChannelFloat)
            }
            "per_tensor_symmetric" | "per_channel_symmetric" => {
                Global::QuantizationScheme(Scheme::Symmetric)
            }
            _ => Global::DType(ElementType::from_name(name)?),
        })
    }

    /// Whether its objects have named members, which are walked into.
    pub(super) const fn has_members(self) -> bool {
        matches!(self, Global::Script | Global::Namespace)
    }
}

impl zt_pickle::Global for Global {
    fn makes(self) -> Makes {
        match self {
            Global::OrderedDict => Makes::Collection(Collection::OrderedDict),
            Global::Counter => Makes::Collection(Collection::Counter),
            Global::DefaultDict => Makes::Collection(Collection::DefaultDict),
            Global::Deque => Makes::Collection(Collection::Deque),
            Global::Set => Makes::Collection(Collection::Set),
            Global::FrozenSet => Makes::Collection(Collection::FrozenSet),
            Global::Storage(_) | Global::DType(_) | Global::QuantizationScheme(_) => Makes::Nothing,
            _ => Makes::Object,
        }
    }

    fn is_class(self) -> bool {
        matches!(
            self,
            Global::OrderedDict
                | Global::Counter
                | Global::DefaultDict
                | Global::Deque
                | Global::Set
                | Global::FrozenSet
                | Global::Size
                | Global::Tensor
                | Global::SparseTensor
                | Global::Parameter
                | Global::Script
                | Global::Namespace
                | Global::Plain(_)
                | Global::Unsupported(_)
        )
    }

    fn has_state(self) -> bool {
        matches!(
            self,
            Global::Tensor
                | Global::SparseTensor
                | Global::Parameter
                | Global::Script
                | Global::Namespace
                | Global::Plain(_)
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

    // Older streams name the class of a module together with its source.
    fn class_of(heap: &Heap<'_, Self>, id: Value<Self>) -> Option<Value<Self>> {
        match heap.tuple(id)? {
            [kind, class, ..] if heap.text(*kind) == Some("module") => Some(*class),
            _ => None,
        }
    }
}

/// The name in Python. Classes that are one global have one name.
impl fmt::Display for Global {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Global::OrderedDict => "collections.OrderedDict",
            Global::Counter => "collections.Counter",
            Global::DefaultDict => "collections.defaultdict",
            Global::Deque => "collections.deque",
            Global::Set => "set",
            Global::FrozenSet => "frozenset",
            Global::Bytes => "bytes",
            Global::ByteArray => "bytearray",
            Global::Complex => "complex",
            Global::Encode => "_codecs.encode",
            Global::Size => "torch.Size",
            Global::Device => "torch.device",
            Global::Layout => "torch.layout",
            Global::Tensor => "torch.Tensor",
            Global::SparseTensor => "torch.sparse.Tensor",
            Global::Parameter => "torch.nn.parameter.Parameter",
            Global::Script => "a class of TorchScript",
            Global::ScriptTyped => "a typed collection of TorchScript",
            Global::Namespace => "argparse.Namespace",
            Global::QuantizationScheme(Scheme::PerTensor) => "torch.per_tensor_affine",
            Global::QuantizationScheme(Scheme::PerChannel) => "torch.per_channel_affine",
            Global::QuantizationScheme(Scheme::PerChannelFloat) => {
                "torch.per_channel_affine_float_qparams"
            }
            Global::QuantizationScheme(Scheme::Symmetric) => "torch.per_tensor_symmetric",
            Global::Storage(None) => "torch.storage.TypedStorage",
            Global::Storage(Some(element)) => match element.storage {
                Some(class) => return write!(f, "torch.{class}"),
                None => "torch.storage.UntypedStorage",
            },
            Global::DType(element) => return write!(f, "torch.{}", element.name),
            Global::Rebuild(rebuild) => {
                let mut rows = REBUILDS.iter().filter(|(_, row)| row == rebuild);
                let (name, _) = rows.next().unwrap_or(&("", Rebuild::Tensor));
                return write!(f, "torch._utils._rebuild_{name}");
            }
            Global::Plain(plain) => return plain.fmt(f),
            Global::Unsupported(unsupported) => return unsupported.fmt(f),
        })
    }
}

impl Plain {
    pub(super) const fn becomes(&self) -> Becomes {
        self.2
    }
}

impl fmt::Display for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Plain("builtins", name, _) => f.write_str(name),
            Plain(module, name, _) => write!(f, "{module}.{name}"),
        }
    }
}

impl Unsupported {
    pub(super) fn is_scalar(self) -> bool {
        self.row().1 == "scalar"
    }

    pub(super) fn is_dtype(self) -> bool {
        self.row() == ("numpy", "dtype")
    }

    fn row(self) -> (&'static str, &'static str) {
        let row = UNSUPPORTED.get(usize::from(self.place));
        row.copied().unwrap_or(("", ""))
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (module, name) = self.row();
        write!(f, "{module}.{name}")
    }
}

/// The functions of `torch._utils`, without their `_rebuild_`. The first name of each is the current one.
const REBUILDS: &[(&str, Rebuild)] = &[
    ("tensor", Rebuild::Tensor),
    ("tensor_v2", Rebuild::TensorV2),
    ("tensor_v3", Rebuild::TensorV3),
    ("parameter", Rebuild::Parameter),
    ("parameter_with_state", Rebuild::ParameterWithState),
    ("sparse_tensor", Rebuild::SparseTensor),
    // CSR in torch 1.9 to 1.12.
    ("sparse_csr_tensor", Rebuild::SparseTensor),
    ("qtensor", Rebuild::QTensor),
    ("meta_tensor_no_storage", Rebuild::MetaTensor),
    ("wrapper_subclass", Rebuild::WrapperSubclass),
    ("device_tensor_from_cpu_tensor", Rebuild::FromCpuTensor),
    ("device_tensor_from_numpy", Rebuild::FromNumpy),
    // A tensor with attributes. This function is in `torch._tensor`.
    ("from_type_v2", Rebuild::FromType),
];

fn rebuild(name: &str) -> Option<Rebuild> {
    let name = name.strip_prefix("_rebuild_")?;
    let row = REBUILDS.iter().find(|(known, _)| *known == name);
    row.map(|(_, rebuild)| *rebuild)
        .filter(|rebuild| *rebuild != Rebuild::FromType)
}

/// Whether this is a class such as `FloatTensor`.
fn is_tensor_class(name: &str) -> bool {
    matches!(
        name.strip_suffix("Tensor"),
        Some(
            "Double"
                | "Float"
                | "Half"
                | "BFloat16"
                | "Long"
                | "Int"
                | "Short"
                | "Char"
                | "Byte"
                | "Bool"
        )
    )
}

#[cfg(test)]
mod tests {
    use super::{Global, Rebuild};

    #[test]
    fn finds_whole_names_only() {
        let rebuild = Some(Global::Rebuild(Rebuild::TensorV2));
        assert_eq!(
            Global::find("torch._utils", "_rebuild_tensor_v2", 0),
            rebuild
        );
        let typed = Some(Global::Storage(None));
        assert_eq!(Global::find("torch.storage", "TypedStorage", 0), typed);
        for (module, name) in [
            ("torch._utils", "_rebuild_tensor_v2.__globals__"),
            ("torch._utils", "_import_dotted_name"),
            ("torch._tensor", "_rebuild_parameter"),
            ("torch", "load"),
            ("torch", "NoSuchStorage"),
            ("torch.cuda", "Size"),
            ("torch.storage", "FloatStorage"),
            ("builtins", "eval"),
            ("__builtin__", "getattr"),
            ("os", "system"),
            ("numpy.core.multiarray", "array"),
            ("numpy", "core.multiarray.scalar"),
            ("torch.nn.modules.linear", "Linear"),
            ("", ""),
        ] {
            assert_eq!(Global::find(module, name, 0), None, "{module}.{name}");
        }
    }
}
