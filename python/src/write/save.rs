//! A dict of tensors as a file of any kind, in one call.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};
use zt::foreign::FileBuilder;
use zt::{
    Attributes, Blob, Buffer, Component, Object, OpenOptions, Progress, Source, Span, Warning,
    WriteOptions, codes,
};
use zt_convert::{ConvertOptions, Input, Kinds, ZT};

use crate::read::file::File;
use crate::read::open::Open;
use crate::share::error::{OrRaise, Result};
use crate::share::kinds::kinds;
use crate::share::work::{Line, PyProgress, Watch};
use crate::share::{remote, value, warning};
use crate::write::array::LentArray;
use crate::write::incoming::Incoming;
use crate::write::options::{self, kind_of};
use crate::write::writer;
use crate::write::writer::Output;

/// Tensors, and how they are saved.
struct Saving {
    values: Arc<Vec<(String, Incoming)>>,
    attributes: Option<Attributes>,
    write: WriteOptions,
    kind: zt::foreign::Kind,
}

/// Writes a dict of tensors as a file of any kind: to a path, all of it or nothing, or as `bytes`.
#[pyfunction]
#[pyo3(signature = (
    tensors, filename = None, metadata = None, *, kind = None, zstd = None, digest = "crc32c",
    planes = false, sync = true, threads = None, progress = None, storage_options = None
))]
#[expect(clippy::too_many_arguments, reason = "the keywords of Python's call")]
pub(crate) fn save<'py>(
    py: Python<'py>,
    tensors: &Bound<'py, PyAny>,
    filename: Option<PathBuf>,
    metadata: Option<&Bound<'py, PyAny>>,
    kind: Option<&str>,
    zstd: Option<i32>,
    digest: Option<&str>,
    planes: bool,
    sync: bool,
    threads: Option<usize>,
    progress: PyProgress<'py>,
    storage_options: Option<&Bound<'py, PyDict>>,
) -> Result<Option<Bound<'py, PyBytes>>> {
    let kinds = kinds();
    let kind = kind_of(py, &kinds, kind, filename.as_ref())?;
    let digest = options::digest(py, "digest", digest)?;
    let saving = Saving {
        values: Arc::new(values_of(tensors)?),
        attributes: metadata.map(value::from_mapping).transpose()?,
        write: options::write(py, zstd, planes)?.digest(digest),
        kind,
    };
    let line = Arc::new(Line::default());
    let watch = Watch::new(progress).threads(threads).line(&line);
    let Some(path) = filename else {
        let mut bytes = Vec::new();
        let warnings =
            watch.run(py, |progress| saving.write_to(&kinds, &mut bytes, &line, progress))?;
        expect_whole(py, &warnings)?;
        return Ok(Some(PyBytes::new(py, &bytes)));
    };
    let stores = remote::options(storage_options)?;
    let begun = Watch::default().run(py, |_| Output::create(&path, &stores))?;
    let output = Arc::new(Mutex::new(Some(begun)));
    let target = writer::Target { output: Arc::clone(&output), line: Arc::clone(&line) };
    let warnings = watch.run(py, |progress| saving.write_to(&kinds, target, &line, progress))?;
    expect_whole(py, &warnings)?;
    Watch::default().run(py, |_| {
        let output = output.lock().unwrap_or_else(PoisonError::into_inner).take();
        output.map_or(Ok(()), |output| output.publish(sync))
    })?;
    Ok(None)
}

/// Refuses metadata that the kind cannot represent, as safetensors does: nothing is saved in part. Warns of all
/// else.
fn expect_whole(py: Python<'_>, warnings: &[Warning]) -> Result<()> {
    match warnings.iter().find(|warning| warning.code == codes::LOSSY) {
        Some(lost) => Err(PyTypeError::new_err(format!(
            "metadata: {lost}; pass it as a text, or save a .zt file"
        ))),
        None => warning::tell(py, warnings, &[]),
    }
}

/// The tensors of a dict, by name: equal contents give equal bytes, in any order of the dict.
fn values_of(tensors: &Bound<'_, PyAny>) -> Result<Vec<(String, Incoming)>> {
    let mut values = Vec::new();
    let Some(items) = tensors.getattr_opt("items")? else {
        let found = tensors.get_type().name()?.to_string();
        let text =
            format!("expected a dict of names and tensors, not {found}: {{\"name\": tensor}}");
        return Err(PyTypeError::new_err(text));
    };
    for pair in items.call0()?.try_iter()? {
        let pair = pair?;
        let pair = pair.cast::<PyTuple>()?;
        let (name, value) = (pair.get_item(0)?, pair.get_item(1)?);
        let name = name.cast::<PyString>()?.to_str()?.to_owned();
        let value = Incoming::new(&value).inspect_err(|error| {
            // Without the note, the error is only less helpful.
            let _ = error.add_note(tensors.py(), format!("while saving {name:?}"));
        })?;
        values.push((name, value));
    }
    values.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(values)
}

/// A dict of tensors as an open file, with a copy of the metadata. It reads contiguous arrays where they
/// are, each time anew, and copies others now.
#[pyfunction]
#[pyo3(signature = (tensors, metadata = None))]
pub(crate) fn _file_of(
    py: Python<'_>,
    tensors: &Bound<'_, PyAny>,
    metadata: Option<&Bound<'_, PyAny>>,
) -> Result<File> {
    let saving = Saving {
        values: Arc::new(values_of(tensors)?),
        attributes: metadata.map(value::from_mapping).transpose()?,
        write: WriteOptions::new(),
        kind: ZT,
    };
    let file = py.detach(|| saving.as_file()).or_raise()?;
    Ok(File::new(Open::new(Input::from(file), false)))
}

impl Saving {
    fn write_to(
        &self,
        kinds: &Kinds,
        sink: impl std::io::Write + Send,
        line: &Line,
        progress: Progress<'_>,
    ) -> zt::Result<Vec<Warning>> {
        if self.kind != ZT {
            let input = [Input::from(self.as_file()?)];
            let options = ConvertOptions::new(self.kind).progress(progress);
            return kinds.convert(&input, sink, &options).map(|summary| summary.warnings);
        }
        let mut writer = self.write.clone().to_buffered_writer(sink)?;
        if let Some(attributes) = &self.attributes {
            writer.set_attributes(attributes.clone())?;
        }
        // Equal places are one array under two names.
        let mut known: HashMap<(usize, usize, &str), &str> = HashMap::new();
        for (name, value) in &*self.values {
            if let Incoming::Dense(array) = value
                && let Some((start, byte_len)) = array.place().filter(|(_, len)| *len > 0)
            {
                let key = (start, byte_len, array.row().name);
                if let Some(other) = known.get(&key) {
                    writer::share(&mut writer, name, array, other)?;
                    progress.report(byte_len as u64)?;
                    continue;
                }
                known.insert(key, name);
            }
            writer::add(&mut writer, name, value, None, None, line, progress)?;
        }
        writer.finish().map(|()| Vec::new())
    }

    /// The tensors as an open file, for writers of other kinds. Dense arrays are lent, others copied.
    fn as_file(&self) -> zt::Result<zt::File> {
        let mut builder = FileBuilder::new(ZT, OpenOptions::new());
        // The new names of tensors of each file. A tensor has one in each entry.
        let mut taken: Vec<(&Arc<Open>, HashMap<&str, &str>)> = Vec::new();
        for (at, (name, value)) in self.values.iter().enumerate() {
            if let Incoming::Tensor(tensor) = value {
                let (open, old) = (tensor.get().open(), tensor.get().name());
                let of_file = taken
                    .iter_mut()
                    .find(|(file, names)| Arc::ptr_eq(file, open) && !names.contains_key(old));
                match of_file {
                    Some((_, names)) => drop(names.insert(old, name)),
                    None => taken.push((open, HashMap::from([(old, name.as_str())]))),
                }
                continue;
            }
            if let Incoming::Dense(array) = value
                && array.place().is_some()
            {
                let span = Span::new(0, array.byte_len() as u64).unwrap_or_default();
                let mut data = Component::new(array.row().dtype, Blob::raw(span));
                data.logical_type = array.row().logical_type().map(Into::into);
                let mut object = Object::new(array.shape(), "dense");
                object.components.push(("data".into(), data));
                let source = builder.derived(Held { values: Arc::clone(&self.values), at });
                builder.object_across(name, object, vec![source]);
                continue;
            }
            value.with_object(None, |new| {
                let mut object = Object::new(new.shape.to_vec(), new.format.clone());
                object.attributes = new.attributes.clone();
                let mut sources = Vec::new();
                for (role, elements) in &new.components {
                    let span = Span::new(0, elements.bytes.len() as u64).unwrap_or_default();
                    let mut component = Component::new(elements.dtype, Blob::raw(span));
                    component.logical_type = elements.logical_type.clone();
                    object.components.push((role.clone(), component));
                    let bytes = Buffer::try_from_slice(&elements.bytes)?;
                    sources.push(builder.derived(zt::Memory::new(bytes)));
                }
                builder.object_across(name, object, sources);
                Ok(())
            })?;
        }
        for (open, names) in taken {
            builder.include_as(open.file(), |old| Some((*names.get(old)?).to_owned()));
        }
        if let Some(attributes) = &self.attributes {
            builder.attributes(attributes.clone());
        }
        builder.build()
    }
}

/// A dense array that has a place. Reads copy its bytes: it lends none.
struct Held {
    values: Arc<Vec<(String, Incoming)>>,
    at: usize,
}

impl Held {
    fn array(&self) -> Option<&LentArray> {
        match self.values.get(self.at) {
            Some((_, Incoming::Dense(array))) => Some(array),
            _ => None,
        }
    }
}

impl Source for Held {
    fn byte_len(&self) -> u64 {
        self.array().map_or(0, |array| array.byte_len() as u64)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let place = self.array().zip(usize::try_from(offset).ok());
        let (array, offset) = place.ok_or(io::ErrorKind::UnexpectedEof)?;
        array.read_at(offset, buf)
    }
}
