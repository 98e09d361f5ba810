//! Pickles of Python values, in a file of the older format, which needs no archive.

use zt::{File, Memory, Result, Source};
use zt_foreign::{FileKind, InputOptions};
use zt_pytorch::PyTorch;

/// A value of Python.
#[derive(Clone)]
pub(crate) enum Py {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    Bytes(Vec<u8>),
    Tuple(Vec<Py>),
    List(Vec<Py>),
    Dict(Vec<(Py, Py)>),
    FrozenSet(Vec<Py>),
    /// A module and a name.
    Global(&'static str, &'static str),
    /// A function and its arguments.
    Call(Box<Py>, Vec<Py>),
    /// An object and its state.
    Built(Box<Py>, Box<Py>),
    /// An object outside the pickle, by its persistent id.
    Outside(Box<Py>),
    /// Instructions that leave one value.
    Code(Vec<u8>),
}

impl From<i64> for Py {
    fn from(value: i64) -> Self {
        Py::Int(value)
    }
}

impl From<f64> for Py {
    fn from(value: f64) -> Self {
        Py::Float(value)
    }
}

impl From<&str> for Py {
    fn from(value: &str) -> Self {
        Py::Text(value.to_owned())
    }
}

pub(crate) fn tuple<V: Into<Py>>(items: impl IntoIterator<Item = V>) -> Py {
    Py::Tuple(items.into_iter().map(Into::into).collect())
}

pub(crate) fn list<V: Into<Py>>(items: impl IntoIterator<Item = V>) -> Py {
    Py::List(items.into_iter().map(Into::into).collect())
}

pub(crate) fn call(module: &'static str, name: &'static str, arguments: Vec<Py>) -> Py {
    Py::Call(Box::new(Py::Global(module, name)), arguments)
}

pub(crate) fn built(object: Py, state: Py) -> Py {
    Py::Built(Box::new(object), Box::new(state))
}

/// A call of a function of `torch._utils`, which makes a tensor.
pub(crate) fn rebuilt(name: &'static str, arguments: Vec<Py>) -> Py {
    call("torch._utils", name, arguments)
}

impl Py {
    fn write(&self, out: &mut Vec<u8>) {
        let marked = |out: &mut Vec<u8>, items: &[Py], code: u8| {
            out.push(b'(');
            items.iter().for_each(|item| item.write(out));
            out.push(code);
        };
        let sized = |out: &mut Vec<u8>, code: u8, bytes: &[u8]| {
            out.push(code);
            out.extend(u32::try_from(bytes.len()).unwrap().to_le_bytes());
            out.extend(bytes);
        };
        match self {
            Py::None => out.push(b'N'),
            Py::Bool(value) => out.push(if *value { 0x88 } else { 0x89 }),
            Py::Int(value) => {
                out.extend([0x8a, 8]);
                out.extend(value.to_le_bytes());
            }
            Py::Float(value) => {
                out.push(b'G');
                out.extend(value.to_be_bytes());
            }
            Py::Text(text) => sized(out, b'X', text.as_bytes()),
            Py::Bytes(bytes) => sized(out, b'B', bytes),
            Py::Tuple(items) => marked(out, items, b't'),
            Py::List(items) => marked(out, items, b'l'),
            Py::Dict(pairs) => {
                let pairs: Vec<Py> = pairs.iter().cloned().flat_map(<[Py; 2]>::from).collect();
                marked(out, &pairs, b'd');
            }
            Py::FrozenSet(items) => marked(out, items, 0x91),
            Py::Global(module, name) => out.extend(format!("c{module}\n{name}\n").bytes()),
            Py::Call(function, arguments) => {
                function.write(out);
                marked(out, arguments, b't');
                out.push(b'R');
            }
            Py::Built(object, state) => {
                object.write(out);
                state.write(out);
                out.push(b'b');
            }
            Py::Outside(id) => {
                id.write(out);
                out.push(b'Q');
            }
            Py::Code(code) => out.extend(code),
        }
    }

    /// The instructions of the value, of further ones, and the last instructions.
    pub(crate) fn then(&self, code: &[u8], items: &[Py]) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        items.iter().for_each(|item| item.write(&mut out));
        out.extend(code);
        out
    }

    pub(crate) fn pickled(&self) -> Vec<u8> {
        let mut out = vec![0x80, 3];
        self.write(&mut out);
        out.push(b'.');
        out
    }
}

/// A storage of `count` elements, of a class of `torch`.
pub(crate) fn storage(class: &'static str, key: &str, count: i64) -> Py {
    part(class, key, count, Py::None)
}

/// A storage and its part: a key, the first element and their number.
pub(crate) fn part(class: &'static str, key: &str, count: i64, part: Py) -> Py {
    let class = Py::Global("torch", class);
    let id = ["storage".into(), class, key.into(), "cpu".into(), count.into(), part];
    Py::Outside(Box::new(tuple(id)))
}

/// The arguments of a tensor: a storage, an offset, a shape, strides and hooks.
pub(crate) fn strided(storage: Py, offset: i64, sizes: &[i64], strides: &[i64]) -> Vec<Py> {
    let [sizes, strides] = [sizes, strides].map(|counts| tuple(counts.iter().copied()));
    let hooks = call("collections", "OrderedDict", Vec::new());
    vec![storage, offset.into(), sizes, strides, Py::Bool(false), hooks]
}

/// The elements of a storage, in one dimension.
pub(crate) fn vector(class: &'static str, key: &str, count: i64) -> Py {
    let storage = storage(class, key, count);
    rebuilt("_rebuild_tensor_v2", strided(storage, 0, &[count], &[1]))
}

/// A file of the older format: its object, and its storages by key, count and bytes.
pub(crate) fn file(object: &Py, storages: &[(&str, i64, Vec<u8>)]) -> Vec<u8> {
    let keys = list(storages.iter().map(|(key, ..)| *key));
    let mut bytes = with_keys(object, &keys);
    for (_, count, values) in storages {
        bytes.extend(count.to_le_bytes());
        bytes.extend(values);
    }
    bytes
}

/// Everything before the storages.
pub(crate) fn with_keys(object: &Py, keys: &Py) -> Vec<u8> {
    let magic = b"\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19".to_vec();
    let system = Py::Dict(Vec::new());
    let pickles = [&Py::Code(magic), &Py::Int(1001), &system, object, keys];
    pickles.map(Py::pickled).concat()
}

pub(crate) fn f32s(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

pub(crate) fn opened(bytes: Vec<u8>) -> Result<File> {
    opened_with(Memory::new(bytes), InputOptions::new())
}

pub(crate) fn opened_with(
    source: impl Source + 'static,
    options: impl Into<InputOptions>,
) -> Result<File> {
    let input = PyTorch.open_source(Box::new(source), &options.into())?;
    Ok(input.into_file())
}

/// A file with these items and a valid tensor `w`, which must read. It has two storages: `f` of four
/// `f32`, and `q` of four bytes.
pub(crate) fn beside(items: Vec<(Py, Py)>) -> Result<File> {
    let mut items = items;
    items.push(("w".into(), vector("FloatStorage", "f", 4)));
    // The storage is used with any items.
    items.push(("bytes".into(), vector("ByteStorage", "q", 4)));
    let storages = [("f", 4, f32s(&[1.0, 2.0, 3.0, 4.0])), ("q", 4, vec![1, 2, 3, 4])];
    let file = opened(file(&Py::Dict(items), &storages))?;
    let values = file.tensor("w").unwrap().to_vec::<f32>().unwrap();
    assert_eq!(values, [1.0, 2.0, 3.0, 4.0]);
    Ok(file)
}

/// A file of [`beside`] with one item `x`.
pub(crate) fn with(x: Py) -> File {
    beside(vec![("x".into(), x)]).unwrap()
}

/// The code of the error of the item `x`.
pub(crate) fn code(x: Py) -> &'static str {
    let error = with(x).tensor("x").unwrap_err();
    assert_eq!(error.object(), Some("x"));
    assert!(error.to_string().contains('x'));
    error.code()
}
