//! Kinds of files and object formats that are written in Python.

use std::fs;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use zt::container::memory;
use zt::foreign::{FileBuilder, Kind};
use zt::formats::{Error, Result as FormatResult, Unsupported};
use zt::manifest::Text;
use zt::{
    Blob, Component, DType, Dense, Memory, Object, ObjectFormat, Parts, Registry, Signature,
    Source, Span,
};
use zt_convert::foreign::{Opening, Probe};
use zt_convert::{FileKind, Input};

use crate::share::array::Array;
use crate::share::error::{Result, misuse};
use crate::share::kinds;
use crate::share::value;
use crate::write::array::LentArray;
use crate::write::incoming::Incoming;

/// Adds a kind of file that Python reads. From then on every call, and the program that
/// ``zt.__main__`` runs, opens such files.
///
/// ``kind`` has:
///
/// * ``name``: what :attr:`File.kind` gives;
/// * ``extensions``: the extensions of its files in lower case, without the dot;
/// * ``detect(head: bytes) -> bool``: whether a file that begins with these bytes, at most 512, is of this
///   kind;
/// * ``open(file) -> dict``: the arrays of a file by name. ``file`` is a binary file at its beginning. Any
///   array that :func:`save` takes is allowed; its values are copied.
///
/// An exception of ``open`` is raised by the call that opens the file. A kind of the same name is replaced.
///
/// >>> import io, numpy, zt
/// >>> class Vec:
/// ...     name, extensions = "vec", ["vec"]
/// ...     def detect(self, head):
/// ...         return head.startswith(b"VEC!")
/// ...     def open(self, file):
/// ...         return {"values": numpy.frombuffer(file.read()[4:], "<f4")}
/// >>> zt.register_kind(Vec())
/// >>> zt.open(b"VEC!" + numpy.float32([1, 2]).tobytes())["values"].numpy()
/// array([1., 2.], dtype=float32)
#[pyfunction]
pub(crate) fn register_kind(kind: &Bound<'_, PyAny>) -> Result<()> {
    let name: String = kind.getattr("name")?.extract()?;
    let extensions: Vec<String> = kind.getattr("extensions")?.extract()?;
    for method in ["detect", "open"] {
        if !kind.getattr(method)?.is_callable() {
            return Err(misuse(kind.py(), &format!("`{method}` of the kind is not callable")));
        }
    }
    // A kind lives as long as the process, and its names with it.
    let extensions = extensions.into_iter().map(|it| &*it.leak()).collect::<Vec<&'static str>>();
    let kind = OwnKind {
        kind: Kind::new(name.leak()),
        extensions: extensions.leak(),
        object: kind.clone().unbind(),
    };
    kinds::change(|kinds| kinds.with(kind));
    Ok(())
}

/// Adds an object format that Python decodes: ``to_dense`` gives the dense value of an object.
///
/// ``to_dense(components, shape, attributes)`` gets a dict of one-dimensional arrays by role, a tuple and a
/// dict, and returns an array of that shape. ``dtype`` is the type of its elements, such as ``"f32"``; by default
/// that of the component ``data``, else ``values``, else of the first. Files that are open already do not
/// know the format.
///
/// >>> import numpy, zt
/// >>> def outer(components, shape, attributes):
/// ...     return numpy.outer(components["a"], components["b"])
/// >>> zt.register_format("acme.outer/1", outer)
#[pyfunction]
#[pyo3(signature = (name, to_dense, *, dtype = None))]
pub(crate) fn register_format(
    py: Python<'_>,
    name: String,
    to_dense: Py<PyAny>,
    dtype: Option<&str>,
) -> Result<()> {
    let known = |name: &str| DType::ALL.into_iter().find(|dtype| dtype.as_str() == name);
    let dtype = match dtype {
        Some(name) => match known(name) {
            Some(dtype) => Some(dtype),
            None => return Err(misuse(py, &format!("there is no dtype {name:?}"))),
        },
        None => None,
    };
    let format = OwnFormat { name, to_dense, dtype };
    kinds::change(|kinds| {
        let registry = kinds.formats().clone().with_format(format);
        kinds.registry(registry)
    });
    Ok(())
}

struct OwnKind {
    kind: Kind,
    extensions: &'static [&'static str],
    object: Py<PyAny>,
}

impl FileKind for OwnKind {
    fn kind(&self) -> Kind {
        self.kind
    }

    fn extensions(&self) -> &'static [&'static str] {
        self.extensions
    }

    fn recognise(&self, probe: &Probe<'_>) -> zt::Result<bool> {
        Python::attach(|py| {
            let head = PyBytes::new(py, probe.head());
            self.object.bind(py).call_method1("detect", (head,))?.is_truthy()
        })
        .map_err(raised)
    }

    fn open(&self, source: Box<dyn Source>, opening: Opening<'_>) -> zt::Result<Input> {
        let mut builder = opening.builder(self.kind);
        let path = opening.path.filter(|_| opening.folder.is_none());
        let path = path.filter(|path| fs::metadata(path).is_ok_and(|it| it.is_file()));
        let mut bytes = Vec::new();
        if path.is_none() {
            memory::fetch(&mut bytes, &source, Span::exact(0, source.byte_len()))?;
        }
        Python::attach(|py| -> Result<zt::Result<()>> {
            let io = py.import("io")?;
            let file = match path {
                Some(path) => io.call_method1("open", (path, "rb"))?,
                None => io.call_method1("BytesIO", (PyBytes::new(py, &bytes),))?,
            };
            let arrays = self.object.bind(py).call_method1("open", (&file,))?;
            for pair in arrays.call_method0("items")?.try_iter()? {
                let (name, array): (String, Bound<'_, PyAny>) = pair?.extract()?;
                let added = Incoming::new(&array)?.with_object(None, |object| {
                    add(&mut builder, name, object);
                    Ok(())
                });
                match added {
                    Ok(Some(())) => {}
                    Ok(None) => {
                        return Err(misuse(py, "a kind gives arrays, not tensors of files"));
                    }
                    Err(error) => return Ok(Err(error)),
                }
            }
            file.call_method0("close")?;
            Ok(Ok(()))
        })
        .map_err(raised)??;
        opening.build(builder)
    }
}

/// Adds an object whose components are copied into memory.
fn add(builder: &mut FileBuilder, name: String, new: &zt::NewObject<'_>) {
    let mut object = Object::new(&*new.shape, new.format.clone());
    object.attributes.clone_from(&new.attributes);
    let mut sources = Vec::new();
    for (role, elements) in &new.components {
        let bytes = elements.bytes.to_vec();
        let blob = Blob::raw(Span::exact(0, bytes.len() as u64));
        let mut component = Component::new(elements.dtype, blob);
        component.logical_type.clone_from(&elements.logical_type);
        object = object.with_component(role.clone(), component);
        sources.push(builder.derived(Memory::new(bytes)));
    }
    builder.object_across(name, object, sources);
}

/// The exception comes out of the call as it was raised.
fn raised(exception: PyErr) -> zt::Error {
    std::io::Error::from(exception).into()
}

struct OwnFormat {
    name: String,
    to_dense: Py<PyAny>,
    dtype: Option<DType>,
}

impl ObjectFormat for OwnFormat {
    fn id(&self) -> &str {
        &self.name
    }

    fn check(&self, _: &Signature<'_>, _: &Registry) -> FormatResult<()> {
        Ok(())
    }

    fn data_roles(&self) -> Option<&[&str]> {
        Some(&[])
    }

    fn dense_type(&self, signature: &Signature<'_>, _: &Registry) -> Option<(DType, Option<Text>)> {
        let values = signature.get("data").or_else(|| signature.get("values"));
        let values = values.or_else(|| signature.components.first());
        Some((self.dtype.or_else(|| values?.dtype)?, None))
    }

    fn to_dense(&self, parts: Parts<'_>) -> FormatResult<Dense<'static>> {
        let declared = self.dense_type(&parts.signature(), &Registry::empty());
        let shape = parts.shape.to_vec();
        let called = Python::attach(|py| -> Result<FormatResult<Dense<'static>>> {
            let components = PyDict::new(py);
            for (role, elements) in parts.elements {
                let Ok(elements) = elements.into_owned() else {
                    return Err(pyo3::exceptions::PyMemoryError::new_err(
                        "no memory for a component",
                    ));
                };
                let len = elements.element_count();
                components
                    .set_item(&*role, Array::of_elements(py, vec![len], elements)?.numpy(py)?)?;
            }
            let attributes = value::to_dict(py, &parts.attributes)?;
            let shape_given = PyTuple::new(py, &shape)?;
            let array = self.to_dense.bind(py).call1((components, shape_given, attributes))?;
            let array = LentArray::new(&array)?;
            let found = array.row().dtype;
            if array.shape() != shape || declared.as_ref().is_none_or(|(dtype, _)| *dtype != found)
            {
                let text = format!(
                    "the function gave {found} {:?}, expected {} {shape:?}",
                    array.shape(),
                    declared.map_or("an array", |(dtype, _)| dtype.as_str()),
                );
                return Err(misuse(py, &text));
            }
            Ok(array.elements().and_then(|elements| Dense::from_elements(shape, elements)))
        });
        called.unwrap_or_else(|exception| {
            let (format, reason) = (Text::Owned(self.name.clone()), exception.to_string());
            Err(Error::Unsupported(Unsupported::Decode { format, reason }))
        })
    }
}
