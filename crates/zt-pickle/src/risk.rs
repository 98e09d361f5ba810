//! What a global may do when Python loads the pickle.
//!
//! Harmless ones are what files of tensors need: constructors of data, which run nothing that the file
//! gives them. Dangerous ones run code, load code or another pickle, reach any other global, or read, write
//! or send files. Their list joins those of picklescan 1.0.5, modelscan 0.8.8 and fickling 0.1.12. Every
//! other global is unknown: a class of the user's program, or anything else that is installed.

use std::fmt;

/// How many other uses are named beside one.
const OTHERS: usize = 8;

/// What a global may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Risk {
    Harmless,
    Unknown,
    Danger,
}

impl Risk {
    /// The risk of a global by its module and its name. A name may be a path of attributes, and a module may
    /// be reached through another one that imports it: `torch.serialization.os.system`.
    pub(super) fn of(module: &str, name: &str) -> Self {
        // One module by its other names: of other versions, and of the implementation in C.
        let module = match module {
            "__builtin__" => "builtins",
            "_functools" => "functools",
            "_io" => "io",
            "_operator" => "operator",
            "copy_reg" => "copyreg",
            "numpy._core.multiarray" => "numpy.core.multiarray",
            "numpy._core.numeric" => "numpy.core.numeric",
            "numpy.lib._npyio_impl" => "numpy.lib.npyio",
            "pathlib._local" => "pathlib",
            "torch.tensor" => "torch._tensor",
            module => module,
        };
        if is_harmless(module, name) {
            return Risk::Harmless;
        }
        let mut parts = module.split('.').chain(name.split('.'));
        let top = module.split('.').next().unwrap_or_default();
        let is_dunder = |part: &str| part.starts_with("__") && part.ends_with("__");
        let is_danger = parts.clone().any(|part| MODULES.contains(&part))
            || TOP_MODULES.contains(&top)
            || parts.any(|part| is_dunder(part) && part != "__torch__" && part != "__main__")
            || FUNCTIONS.iter().any(|(of, names)| *of == module && has(names, name));
        if is_danger { Risk::Danger } else { Risk::Unknown }
    }
}

/// A global that is not known to be harmless.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Use {
    /// The module and the name, escaped for a terminal.
    pub global: String,
    /// Whether it can run code, load code or another pickle, or touch files.
    pub is_danger: bool,
    /// The arguments of the first call, shortened and escaped; `None` if the global is only named.
    pub arguments: Option<String>,
}

impl Use {
    /// The code of a warning about it.
    pub const fn code(&self) -> &'static str {
        if self.is_danger { "pickle-danger" } else { "pickle-global" }
    }
}

impl fmt::Display for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Use { global, .. } = self;
        match &self.arguments {
            Some(arguments) => write!(f, "Python would call {global}({arguments})"),
            None => write!(f, "Python would import {global}"),
        }?;
        f.write_str("; nothing was run")
    }
}

/// One of several uses, and the names of the first others, as a text.
#[derive(Debug)]
pub struct Among<'u>(pub &'u Use, pub &'u [Use]);

impl fmt::Display for Among<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Among(one, all) = self;
        write!(f, "{one}")?;
        let mut others = all.iter().filter(|it| it.global != one.global);
        for (at, other) in others.by_ref().take(OTHERS).enumerate() {
            let before = if at == 0 { "; the pickle also names" } else { "," };
            write!(f, "{before} {}", other.global)?;
        }
        match others.count() {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// Whether one of the names is `name`, or the beginning of its path.
fn has(names: &[&str], name: &str) -> bool {
    let mut names = names.iter().copied();
    names.any(|known| {
        let rest = name.strip_prefix(known);
        known == "*" || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

fn is_harmless(module: &str, name: &str) -> bool {
    if HARMLESS.iter().any(|(of, names)| *of == module && names.contains(&name)) {
        return true;
    }
    let is_class = |ending: &str| {
        let kind = name.strip_suffix(ending);
        kind.is_some_and(|kind| {
            !kind.is_empty() && kind.bytes().all(|it| it.is_ascii_alphanumeric())
        })
    };
    match module {
        "torch" | "torch.cuda" | "torch.sparse" | "torch.cuda.sparse" => {
            is_class("Storage") || is_class("Tensor")
        }
        "torch._utils" => name.starts_with("_rebuild_") && !name.contains('.'),
        // Dataclasses, whose constructors keep what they get.
        "torch.distributed.checkpoint.metadata" => !name.contains('.'),
        _ => false,
    }
}

/// Constructors of data, by their modules.
#[rustfmt::skip]
const HARMLESS: &[(&str, &[&str])] = &[
    ("collections", &["OrderedDict", "Counter", "defaultdict", "deque"]),
    ("builtins", &[
        "bool", "bytearray", "bytes", "complex", "dict", "float", "frozenset", "int", "list",
        "long", "object", "range", "set", "slice", "str", "tuple", "unicode", "xrange",
    ]),
    // Protocol 2 writes bytes as a call of it.
    ("_codecs", &["encode"]),
    // Makes an object of a class, which is named by itself.
    ("copyreg", &["_reconstructor", "__newobj__"]),
    ("argparse", &["Namespace"]),
    ("datetime", &["date", "datetime", "time", "timedelta", "timezone"]),
    ("decimal", &["Decimal"]),
    ("fractions", &["Fraction"]),
    ("pathlib", &["Path", "PosixPath", "PurePosixPath", "PureWindowsPath", "WindowsPath"]),
    ("numpy", &["dtype", "ndarray"]),
    ("numpy.core.multiarray", &["_reconstruct", "scalar"]),
    ("numpy.core.numeric", &["_frombuffer"]),
    ("ml_dtypes", &[
        "bfloat16", "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3",
        "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
        "float8_e8m0fnu", "int2", "int4", "uint2", "uint4",
    ]),
    ("torch", &[
        "Size", "Tensor", "bfloat16", "bits16", "bits1x8", "bits2x4", "bits4x2", "bits8", "bool",
        "complex128", "complex32", "complex64", "device", "float16", "float32", "float4_e2m1fn_x2",
        "float64", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
        "float8_e8m0fnu", "int16", "int32", "int64", "int8", "per_channel_affine",
        "per_channel_affine_float_qparams", "per_channel_symmetric", "per_tensor_affine",
        "per_tensor_symmetric", "qint32", "qint8", "quint2x4", "quint4x2", "quint8", "uint16",
        "uint32", "uint64", "uint8",
    ]),
    ("torch._tensor", &["_rebuild_from_type_v2"]),
    ("torch.nn.parameter", &["Parameter", "UninitializedBuffer", "UninitializedParameter"]),
    // The stream of the second is looked into.
    ("torch.storage", &["TypedStorage", "UntypedStorage", "_load_from_bytes"]),
    ("torch.serialization", &["_get_layout"]),
    // Collections of TorchScript, with their types.
    ("torch.jit._pickle", &[
        "build_boollist", "build_doublelist", "build_intlist", "build_tensorlist",
        "restore_type_tag",
    ]),
    ("torch.torch_version", &["TorchVersion"]),
    ("torch.distributed.tensor", &["DTensor"]),
    ("torch.distributed._shard.sharded_tensor.metadata", &[
        "MEM_FORMAT_ENCODING", "TensorProperties",
    ]),
    ("torch.distributed.checkpoint.filesystem", &["_StorageInfo", "_StoragePrefix"]),
    ("torch.distributed.checkpoint.planner", &["SavePlan", "WriteItem", "WriteItemType"]),
];

/// Modules that are dangerous wherever they are named, also as an attribute of another module.
#[rustfmt::skip]
const MODULES: &[&str] = &[
    "_aix_support", "_osx_support", "_pickle", "_posixsubprocess", "_pyrepl", "_winapi", "aiohttp",
    "asyncio", "bdb", "builtins", "__builtin__", "cProfile", "cloudpickle", "commands", "copyreg",
    "ctypes", "dill", "ensurepip", "fickling", "gc", "httplib", "idlelib", "imp", "importlib",
    "inspect", "jsonpickle", "lib2to3", "linecache", "marshal", "modelscan", "multiprocessing",
    "nt", "os", "pdb", "picklescan", "pip", "pkgutil", "popen2", "posix", "posixpath", "pty",
    "pydoc", "runpy", "shelve", "shutil", "socket", "socketserver", "ssl", "subprocess", "sys",
    "tempfile", "urllib", "urllib2", "webbrowser", "winreg", "xmlrpc",
];

/// Modules that are dangerous as the first part of a name. Other modules have parts of these names.
#[rustfmt::skip]
const TOP_MODULES: &[&str] = &[
    "code", "codeop", "distutils", "doctest", "ftplib", "glob", "http", "imaplib", "nntplib",
    "pickle", "poplib", "profile", "requests", "smtplib", "telnetlib", "test", "threading",
    "timeit", "trace", "uuid", "venv", "zipimport",
];

/// Dangerous functions and classes of other modules; `*` is all of them.
#[rustfmt::skip]
const FUNCTIONS: &[(&str, &[&str])] = &[
    ("builtins", &[
        "apply", "breakpoint", "compile", "delattr", "dir", "eval", "exec", "execfile", "file",
        "getattr", "globals", "help", "input", "locals", "map", "filter", "memoryview", "open",
        "print", "reload", "setattr", "type", "vars",
    ]),
    ("io", &["FileIO", "open", "open_code"]),
    ("operator", &["attrgetter", "call", "itemgetter", "methodcaller"]),
    ("functools", &["partial", "partialmethod", "reduce"]),
    ("itertools", &["starmap"]),
    ("logging", &["FileHandler", "config"]),
    ("logging.config", &["*"]),
    ("types", &["CodeType", "FunctionType", "LambdaType", "MethodType", "ModuleType"]),
    ("numpy", &["f2py", "load", "loadtxt", "fromfile", "memmap", "save", "savetxt", "genfromtxt"]),
    ("numpy.f2py", &["*"]),
    ("numpy.distutils", &["*"]),
    ("numpy.testing._private.utils", &["*"]),
    ("numpy.lib.npyio", &["load", "loadtxt", "genfromtxt", "save", "savetxt"]),
    ("joblib", &["load"]),
    ("joblib.numpy_pickle", &["load"]),
    ("pandas", &["eval", "read_pickle"]),
    ("torch", &["compile", "hub", "load", "save", "jit", "classes", "ops"]),
    ("torch.hub", &["*"]),
    ("torch.jit", &["*"]),
    ("torch.jit.unsupported_tensor_ops", &["*"]),
    ("torch.serialization", &["load", "_load", "_legacy_load", "save"]),
    ("torch._dynamo.guards", &["*"]),
    ("torch._inductor.codecache", &["*"]),
    ("torch.fx.experimental.symbolic_shapes", &["ShapeEnv"]),
    ("torch.fx.graph_module", &["reduce_graph_module", "reduce_package_graph_module"]),
    ("torch.utils._config_module", &["*"]),
    ("torch.utils.bottleneck.__main__", &["*"]),
    ("torch.utils.collect_env", &["*"]),
    ("torch.utils.cpp_extension", &["*"]),
    ("torch.utils.data.datapipes.utils.decoder", &["basichandlers"]),
    ("torch.distributed.elastic.rendezvous.api", &["*"]),
];
