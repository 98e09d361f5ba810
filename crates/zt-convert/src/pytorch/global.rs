//! The globals that a pickle may name. Nothing behind these names is ever run: they say how data is
//! to be understood.

use std::fmt;

use super::element::{BYTES, ElementType};

/// A function or class of Python that checkpoints name.
///
/// The list is that of `torch.load(weights_only=True)` in torch 2.15, `bytes`, by which protocol 2
/// says that there are none, and [`Global::Unread`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Global {
    /// `collections.OrderedDict`.
    OrderedDict,
    /// `collections.Counter`.
    Counter,
    Set,
    Bytes,
    ByteArray,
    Complex,
    /// `_codecs.encode`: how protocol 2 says bytes.
    Encode,
    Size,
    Device,
    /// `torch.serialization._get_layout`.
    Layout,
    /// `torch.Tensor` and the classes of old, `torch.FloatTensor` and its like.
    Tensor,
    /// `torch.sparse.FloatTensor` and its like.
    SparseTensor,
    Parameter,
    Rebuild(Rebuild),
    /// A class of storages; `None` where it does not say of what.
    Storage(Option<&'static ElementType>),
    DType(&'static ElementType),
    /// A class of an archive's own code.
    Script,
    /// `build_intlist`, `restore_type_tag` and their like: a collection, and of what.
    ScriptTyped,
    QuantizationScheme(Scheme),
    /// What is harmless, in real checkpoints, and not on torch's list: an array or scalar of NumPy,
    /// a nested tensor. What is made of it is refused by that name, and all else is read.
    Unread(Unread),
}

/// A global by which an object is refused, and where the pickle names it: its byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unread {
    /// Its place in [`UNREAD`]: values of pickles are small.
    place: u8,
    pub(super) at: u32,
}

/// The globals of [`Global::Unread`]. NumPy 2 moved its own.
const UNREAD: &[(&str, &str)] = &[
    ("numpy", "dtype"),
    ("numpy", "ndarray"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy.core.multiarray", "scalar"),
    ("numpy._core.multiarray", "scalar"),
    ("numpy.core.numeric", "_frombuffer"),
    ("numpy._core.numeric", "_frombuffer"),
    ("torch._utils", "_rebuild_nested_tensor"),
];

/// The functions of `torch._utils` by which tensors are rebuilt, without their `_rebuild_`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheme {
    PerTensor,
    PerChannel,
    /// Zero-points are real numbers.
    PerChannelFloat,
    /// torch itself writes no such tensors.
    Symmetric,
}

impl Global {
    /// The global of that module and name; `None` where it is not on the list.
    pub(super) fn find(module: &str, name: &str) -> Option<Self> {
        let mut unread = (0..).zip(UNREAD);
        if let Some((place, _)) = unread.find(|(_, known)| **known == (module, name)) {
            return Some(Global::Unread(Unread { place, at: 0 }));
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
                _ => None,
            },
            "_codecs" => (name == "encode").then_some(Global::Encode),
            // Python 2's name, which protocol 2 uses, and Python 3's.
            "__builtin__" | "builtins" => match name {
                "set" => Some(Global::Set),
                "bytes" => Some(Global::Bytes),
                "bytearray" => Some(Global::ByteArray),
                "complex" => Some(Global::Complex),
                _ => None,
            },
            _ => None,
        }
    }

    /// As [`Global::find`], of an archive of TorchScript: its objects are of classes whose code it
    /// has beside them. What they hold is data; the code is not looked at.
    pub(super) fn find_in_script(module: &str, name: &str) -> Option<Self> {
        if module == "__torch__" || module.starts_with("__torch__.") {
            return Some(Global::Script);
        }
        match (module, name) {
            (
                "torch.jit._pickle",
                "build_intlist" | "build_tensorlist" | "build_doublelist" | "build_boollist"
                | "restore_type_tag",
            ) => Some(Global::ScriptTyped),
            _ => Self::find(module, name),
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

    /// Whether it is a class that objects are made of without a call, by `NEWOBJ`.
    pub(super) const fn is_class(self) -> bool {
        matches!(
            self,
            Global::OrderedDict
                | Global::Counter
                | Global::Set
                | Global::Size
                | Global::Tensor
                | Global::SparseTensor
                | Global::Parameter
                | Global::Script
        )
    }

    /// Whether its objects can be given a state, by `BUILD`.
    pub(super) const fn has_state(self) -> bool {
        matches!(
            self,
            Global::Tensor
                | Global::SparseTensor
                | Global::Parameter
                | Global::Script
                | Global::Unread(_)
        )
    }
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (module, name) = UNREAD.get(usize::from(self.place)).unwrap_or(&("", ""));
        write!(f, "{module}.{name}")
    }
}

fn rebuild(name: &str) -> Option<Rebuild> {
    Some(match name.strip_prefix("_rebuild_")? {
        "tensor" => Rebuild::Tensor,
        "tensor_v2" => Rebuild::TensorV2,
        "tensor_v3" => Rebuild::TensorV3,
        "parameter" => Rebuild::Parameter,
        "parameter_with_state" => Rebuild::ParameterWithState,
        "sparse_tensor" => Rebuild::SparseTensor,
        "qtensor" => Rebuild::QTensor,
        "meta_tensor_no_storage" => Rebuild::MetaTensor,
        "wrapper_subclass" => Rebuild::WrapperSubclass,
        "device_tensor_from_cpu_tensor" => Rebuild::FromCpuTensor,
        "device_tensor_from_numpy" => Rebuild::FromNumpy,
        _ => return None,
    })
}

/// `FloatTensor` for `FloatStorage`, and so on.
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
    fn names_are_looked_up_whole() {
        let rebuild = Some(Global::Rebuild(Rebuild::TensorV2));
        assert_eq!(Global::find("torch._utils", "_rebuild_tensor_v2"), rebuild);
        for (module, name) in [
            ("torch._utils", "_rebuild_tensor_v2.__globals__"),
            ("torch._utils", "_import_dotted_name"),
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
            assert_eq!(Global::find(module, name), None, "{module}.{name}");
        }
    }
}
