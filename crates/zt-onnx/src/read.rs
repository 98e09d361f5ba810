//! A model as a [`zt::File`].

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use zt::foreign::{FileBuilder, SourceId};
use zt::formats::element_count;
use zt::manifest::Text;
use zt::{
    Blob, Component, DType, Error, Memory, Object, RawComponent, RawObject, Result, Source, Span,
    Warning,
};
use zt_foreign::{
    Input, Meaning, Opening, Packing, repeated as repeated_name,
    strided::{Bands, Strided, View},
};

use crate::coords::Unravelled;
use crate::element::{Element, name_of};
use crate::external::Folder;
use crate::fault::OnnxFault;
use crate::model::{Content, Model, Name, Sparse};
use crate::tensor::{Stored, Tensor};
use crate::typed::{Runs, Typed};
use crate::wire::Window;

/// Opens a model. Cost: reads all of it except the values.
pub(super) fn open(
    source: Box<dyn Source>,
    mut builder: FileBuilder,
    opening: Opening<'_>,
) -> Result<Input> {
    let source: Arc<dyn Source> = source.into();
    let file = Span::new(0, source.byte_len()).ok_or(OnnxFault::Ends)?;
    let model = Model::read(&mut Window::new(&source), file, builder.limits())?;
    let id = builder.source(Arc::clone(&source));
    if let Some(attributes) = model.attributes {
        builder.attributes(attributes);
    }
    for key in model.repeated {
        builder.warning(repeated(None, &key));
    }
    let mut names = Names::new(model.tensors.iter().map(|found| &found.name))?;
    let mut assembler = Assembler {
        builder,
        file: (source, id),
        folder: Folder::of(opening),
        bands: Bands::default(),
    };
    for found in model.tensors {
        let name = names.of(found.name);
        match found.content {
            Content::Dense(tensor) if tensor.is_text() => {
                assembler.builder.not_a_tensor(name, "strings");
            }
            Content::Sparse(sparse) if sparse.fault.is_none() && sparse.values.is_text() => {
                assembler.builder.not_a_tensor(name, "strings");
            }
            Content::Dense(tensor) => assembler.dense(name, *tensor),
            Content::Sparse(sparse) => assembler.sparse(name, *sparse),
        }
    }
    let mut paths = opening.paths();
    paths.extend(assembler.folder.neighbours.into_paths());
    Ok(Input::new(assembler.builder.build()?, paths))
}

fn repeated(object: Option<&str>, key: &str) -> Warning {
    let message = format!("duplicate key {key:?} in the metadata; the first value is kept");
    let mut warning = Warning::new("attribute-conflict", message);
    warning.object = object.map(ToOwned::to_owned);
    warning
}

struct Names {
    taken: HashSet<String>,
    /// By a name that is taken: the next number to append.
    next: HashMap<String, u64>,
}

impl Names {
    /// Reserves the names from the model itself, if there are others.
    fn new<'n>(names: impl Iterator<Item = &'n Name>) -> Result<Self> {
        let mut has_derived = false;
        let own = names.filter_map(|name| match name {
            Name::Own(name) => Some(name.as_str()),
            Name::Derived(_) => {
                has_derived = true;
                None
            }
        });
        let mut own: Vec<&str> = own.collect();
        if let Some(name) = repeated_name(&mut own) {
            return Err(Error::from(OnnxFault::RepeatedName).with_object(name));
        }
        if !has_derived {
            own.clear();
        }
        Ok(Names { taken: own.into_iter().map(ToOwned::to_owned).collect(), next: HashMap::new() })
    }

    /// The name itself. If a derived name is taken, the first free one of `NAME.2`, `NAME.3`, ...
    fn of(&mut self, name: Name) -> String {
        let name = match name {
            Name::Own(name) => return name,
            Name::Derived(name) => name,
        };
        if self.taken.insert(name.clone()) {
            return name;
        }
        let next = self.next.entry(name.clone()).or_insert(2);
        loop {
            let numbered = format!("{name}.{next}");
            *next = next.strict_add(1);
            if self.taken.insert(numbered.clone()) {
                return numbered;
            }
        }
    }
}

/// Adds tensors to the file as objects.
struct Assembler<'p> {
    builder: FileBuilder,
    /// The model.
    file: (Arc<dyn Source>, SourceId),
    folder: Folder<'p>,
    bands: Bands,
}

/// The elements of a tensor, and their source.
struct Located {
    element: Element,
    blob: Blob,
    id: SourceId,
    source: Arc<dyn Source>,
}

impl Assembler<'_> {
    fn dense(&mut self, name: String, tensor: Tensor) {
        match self.locate(&tensor, &name) {
            Err(error) => self.builder.fault(name, raw(tensor, "dense"), error),
            Ok(located) => {
                if let Some(key) = &tensor.repeated {
                    self.builder.warning(repeated(Some(&name), key));
                }
                let meaning = located.element.meaning;
                let mut object = meaning.object(tensor.shape, located.component());
                object.attributes = tensor.attributes;
                self.builder.object(name, object, located.id);
            }
        }
    }

    fn locate(&mut self, tensor: &Tensor, name: &str) -> Result<Located> {
        if let Some(fault) = tensor.fault.clone() {
            return Err(fault.into());
        }
        let element = Element::from_number(tensor.data_type)?;
        let expected = element.meaning.byte_len(&tensor.shape);
        let expected = expected.ok_or(OnnxFault::Overflow)?;
        let (file, id) = (Arc::clone(&self.file.0), self.file.1);
        let (blob, id, source) = match &tensor.stored {
            Stored::External(external) => {
                let builder = &mut self.builder;
                self.folder.find(external, expected, builder, name)?
            }
            Stored::Raw(span) => (within(*span, expected)?, id, file),
            Stored::Zero => {
                let zero: Arc<dyn Source> = Arc::new(Memory::new([0; 8]));
                let id = self.derived(&zero, tensor.span);
                let one = Span::new(0, element.width()).ok_or(OnnxFault::Overflow)?;
                (within(one, expected)?, id, zero)
            }
            Stored::Typed(runs) if runs.values() != element.values() => {
                return Err(OnnxFault::Fields.into());
            }
            Stored::Typed(runs) => match runs.as_span() {
                Some(span) => (within(span, expected)?, id, file),
                None => {
                    let typed = typed(file, runs.clone(), element, &tensor.shape)?;
                    let id = self.derived(&typed, tensor.span);
                    let all = Span::new(0, expected).ok_or(OnnxFault::Overflow)?;
                    (Blob::raw(all), id, typed)
                }
            },
        };
        Ok(Located { element, blob, id, source })
    }

    /// Adds a source that is made of the message in `span` of the model.
    fn derived(&mut self, source: &Arc<dyn Source>, span: Span) -> SourceId {
        let (made, model) = (Arc::clone(source), self.file.1);
        self.builder.derived_from(made, model, span.offset())
    }

    fn sparse(&mut self, name: String, sparse: Sparse) {
        match self.coo(&sparse, &name) {
            Err(error) => {
                let mut raw = raw(sparse.values, "sparse_coo");
                raw.shape = Some(sparse.shape);
                self.builder.fault(name, raw, error);
            }
            Ok((object, sources)) => self.builder.object_across(name, object, sources),
        }
    }

    /// A sparse tensor as `sparse_coo`, and the sources of its components.
    fn coo(&mut self, sparse: &Sparse, name: &str) -> Result<(Object, [SourceId; 2])> {
        if let Some(fault) = sparse.fault.clone() {
            return Err(fault.into());
        }
        let values = self.locate(&sparse.values, name)?;
        if let Meaning::Packed(_) = values.element.meaning {
            let name = values.element.name;
            return Err(OnnxFault::PackedValues { name }.into());
        }
        let indices = self.locate(&sparse.indices, name)?;
        let rank = sparse.shape.len() as u64;
        let [count] = *sparse.values.shape else {
            return Err(OnnxFault::Indices.into());
        };
        let flat = match *sparse.indices.shape {
            [indices] if indices == count => true,
            [indices, axes] if indices == count && axes == rank => false,
            _ => return Err(OnnxFault::Indices.into()),
        };
        if indices.element.meaning.dtype() != DType::I64 {
            return Err(OnnxFault::Indices.into());
        }
        let (source, offset) = (indices.source, indices.blob.span.offset());
        let coords: Arc<dyn Source> = if flat {
            let coords = Unravelled::new(source, offset, count, &sparse.shape);
            Arc::new(coords.ok_or(OnnxFault::Overflow)?)
        } else {
            let width = indices.element.width();
            let view = View::fortran(offset, width, &[rank, count]).ok_or(OnnxFault::Overflow)?;
            Arc::new(Strided::new(source, view, &self.bands)?)
        };
        let all = Span::new(0, coords.byte_len()).ok_or(OnnxFault::Overflow)?;
        let id = self.derived(&coords, sparse.indices.span);
        let mut object = Object::new(sparse.shape.clone(), "sparse_coo");
        object = object.with_component("values", values.component());
        // The same bits: a negative index is outside every shape, and found there. Decision D10.
        object = object.with_component("coords", Component::new(DType::U64, Blob::raw(all)));
        object.attributes.clone_from(&sparse.values.attributes);
        Ok((object, [values.id, id]))
    }
}

impl Located {
    fn component(&self) -> Component {
        self.element.meaning.component(self.blob.clone())
    }
}

/// The values of a typed field as plain elements.
fn typed(
    file: Arc<dyn Source>,
    runs: Runs,
    element: Element,
    shape: &[u64],
) -> Result<Arc<dyn Source>, OnnxFault> {
    let Some(packed) = element.packed_from_bytes() else {
        let expected = element.meaning.byte_len(shape).ok_or(OnnxFault::Overflow)?;
        return Ok(Arc::new(Typed::new(file, runs, element, expected)?));
    };
    let count = element_count(shape).ok_or(OnnxFault::Overflow)?;
    let codes = Typed::new(file, runs, element, count)?;
    Ok(Arc::new(Packing::new(Arc::new(codes), 0, count, packed)))
}

/// Plain elements, which must have `expected` bytes.
fn within(span: Span, expected: u64) -> Result<Blob, OnnxFault> {
    let found = span.byte_len();
    if found != expected {
        return Err(OnnxFault::Bytes { expected, found });
    }
    Ok(Blob::raw(span))
}

/// A listing shows this of a tensor that cannot be read.
fn raw(tensor: Tensor, format: &'static str) -> RawObject {
    let mut data = RawComponent::default();
    data.dtype = name_of(tensor.data_type).map(Text::Borrowed);
    data.offset = Some(tensor.span.offset());
    data.length = Some(tensor.span.byte_len());
    let mut raw = RawObject::default();
    raw.shape = Some(tensor.shape);
    raw.format = Some(format.into());
    raw.attributes = tensor.attributes;
    let role = if format == "dense" { "data" } else { "values" };
    raw.components = vec![(role.into(), data)];
    raw
}
