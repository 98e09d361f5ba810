//! Turns the leaves of a pickle into the objects and attributes of a [`zt::File`].

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use zt::foreign::{FileBuilder, SourceId};
use zt::formats::PackedType;
use zt::manifest::{ByteOrder, Text};
use zt::{
    Attributes, Blob, Component, DType, Digest, Error, Memory, Object, RawComponent, RawObject,
    Registry, Result, Source, Span,
};
use zt_foreign::strided::{self, Bands, Strided};
use zt_foreign::{Input, Opening};
use zt_pickle::Use;

use crate::attribute;
use crate::budget::Budget;
use crate::deferred::Changed;
use crate::element::Meaning;
use crate::fault::{TensorFault, TorchFault};
use crate::flatten;
use crate::numpy::{Array, Data};
use crate::others::{LeftOut, Others, warned};
use crate::pickle::{Heap, Node, Pickle, Value};
use crate::tensor::{self, Known, Layout, Refused};
use crate::unknown::{Tensors, unknown};
use crate::view::{self, Storage, View};
use crate::wrapper;

/// The limit of bytes that all views which are not contiguous may take: this, and [`GATHERED`] times
/// the bytes of the file. A stride of 0 repeats an element any number of times, and thousands of
/// tensors may be views of one storage.
const EXPANDED_LEN: u64 = 1 << 30;
const GATHERED: u64 = 8;

/// Finds the bytes of a storage by its key.
pub(super) type Locate<'s> = dyn Fn(&str) -> Result<Option<Place>> + 's;

#[derive(Clone)]
pub(super) struct Place {
    /// `None` for the file itself.
    pub(super) source: Option<Arc<dyn Source>>,
    pub(super) span: Span,
    /// The offset in the file of the bytes, or of their deflated bytes.
    pub(super) from: u64,
    /// Of all bytes.
    pub(super) digest: Option<Digest>,
}

impl Place {
    /// A range of the file itself.
    pub(super) const fn of_file(span: Span) -> Self {
        Place { source: None, span, from: span.offset(), digest: None }
    }
}

/// A pickle and its storages.
pub(super) struct Graph<'c> {
    pub(super) pickle: Pickle<'c>,
    /// Where the pickle begins in the file, if its bytes are there.
    pub(super) start: Option<u64>,
    pub(super) locate: &'c Locate<'c>,
    /// The prefix of all names in the pickle.
    pub(super) prefix: &'static str,
    /// What Python would call or import beside harmless globals in other bytes that belong to the pickle.
    pub(super) beside: Vec<Use>,
}

/// Builds a file with one pickle, which begins at `start`, and little-endian storages beside it.
pub(super) fn assemble_one(
    source: Arc<dyn Source>,
    pickle: Pickle<'_>,
    start: u64,
    storages: &HashMap<String, Place>,
    beside: Vec<Use>,
    builder: FileBuilder,
    opening: Opening<'_>,
) -> Result<Input> {
    let locate = |key: &str| Ok(storages.get(key).cloned());
    let graph = Graph { pickle, start: Some(start), locate: &locate, prefix: "", beside };
    assemble(source, &[graph], ByteOrder::Little, builder, opening)
}

/// Builds the file. A bare tensor is named after the file.
pub(super) fn assemble(
    source: Arc<dyn Source>,
    graphs: &[Graph<'_>],
    byte_order: ByteOrder,
    mut builder: FileBuilder,
    opening: Opening<'_>,
) -> Result<Input> {
    let id = builder.source(Arc::clone(&source));
    let file = (source, id);
    let single = single_name(opening.path);
    let mut others = Others::default();
    let mut budget = Budget::new(Arc::clone(&file.0), builder.limits());
    for graph in graphs {
        let mut assembler = Assembler::new(graph, &file, byte_order, &mut builder, &mut others);
        assembler.add(&single, &mut budget)?;
    }
    let uses = graphs.iter().map(|graph| {
        let of_heap = graph.pickle.heap.uses().into_iter();
        of_heap.chain(graph.beside.iter().cloned())
    });
    let mut uses: Vec<Use> = uses.flatten().collect();
    // The dangerous ones first.
    uses.sort_by_key(|found| !found.is_danger);
    uses.dedup();
    if !others.has_tensors && others.attributes.is_empty() {
        others.refuse(&uses)?;
    }
    for found in &uses {
        builder.tolerated(warned(found));
    }
    for (class, left_out) in &others.left_out {
        builder.warning(left_out.warning(class));
    }
    if !others.attributes.is_empty() {
        builder.attributes(others.attributes.into_iter().collect::<Attributes>());
    }
    opening.build(builder)
}

/// The name of a bare tensor: the name of the file, without its extension.
fn single_name(path: Option<&Path>) -> String {
    let stem = path.and_then(Path::file_stem);
    stem.map_or("tensor".into(), |stem| stem.to_string_lossy()).into_owned()
}

pub(super) struct Assembler<'h> {
    graph: &'h Graph<'h>,
    heap: &'h Heap<'h>,
    byte_order: ByteOrder,
    pub(super) builder: &'h mut FileBuilder,
    others: &'h mut Others,
    tensors: Tensors<'h>,
    file: &'h (Arc<dyn Source>, SourceId),
    limits: zt::Limits,
    storages: BTreeMap<String, Result<Stored>>,
    /// The name of the object that is assembled.
    object: String,
    /// Views whose elements are computed. Tied ones are built once.
    computed: HashMap<View, (SourceId, Span)>,
    /// How many bytes further views may take.
    gathered_left: u64,
    pub(super) bands: Bands,
}

/// A storage that has been found.
#[derive(Clone)]
struct Stored {
    source: Arc<dyn Source>,
    id: SourceId,
    span: Span,
    from: u64,
    digest: Option<Digest>,
    /// The objects with elements of the storage.
    objects: Vec<String>,
    /// Whether one of them has all bytes, and their digest.
    is_whole: bool,
}

/// The elements of a view: all of a range.
pub(super) struct Elements {
    pub(super) source: Arc<dyn Source>,
    /// `None` for a source that computes them.
    id: Option<SourceId>,
    pub(super) span: Span,
    /// The offset in the file that a listing shows.
    from: u64,
}

/// An object, and the sources of its components.
pub(super) struct Assembled {
    object: Object,
    sources: Vec<SourceId>,
}

impl<'h> Assembler<'h> {
    fn new(
        graph: &'h Graph<'h>,
        file: &'h (Arc<dyn Source>, SourceId),
        byte_order: ByteOrder,
        builder: &'h mut FileBuilder,
        others: &'h mut Others,
    ) -> Self {
        Assembler {
            graph,
            heap: &graph.pickle.heap,
            others,
            tensors: Tensors::of(&graph.pickle.heap),
            byte_order,
            limits: *builder.limits(),
            builder,
            file,
            storages: BTreeMap::new(),
            object: String::new(),
            computed: HashMap::new(),
            gathered_left: EXPANDED_LEN.saturating_add(times_gathered(file.0.byte_len())),
            bands: Bands::default(),
        }
    }

    /// Adds every tensor of a pickle, and keeps the other values. A bare tensor gets the name `single`.
    fn add(&mut self, single: &str, budget: &mut Budget) -> Result<()> {
        let (heap, limits, root) = (self.heap, self.limits, self.graph.pickle.root);
        let leaves = flatten::leaves(heap, &self.tensors, root, single, &limits, budget)?;
        let is_alone = leaves.len() == 1;
        for (name, value) in leaves.iter() {
            let name = format!("{}{name}", self.graph.prefix);
            let layout = match heap.node(value) {
                Some(Node::Made(made))
                    if wrapper::is_tensor(made) && unknown(heap, value).is_none() =>
                {
                    tensor::tensor(heap, *made)
                }
                Some(Node::Persistent(_)) => view::storage(heap, value)
                    .and_then(Storage::into_view)
                    .map(Layout::Strided)
                    .map_err(Refused::from),
                _ => {
                    match attribute::attribute(heap, value, &limits, budget) {
                        Ok(value) => self.others.attribute(name, value, budget)?,
                        Err(TorchFault::Unknown { class, at }) => {
                            self.left_out(&name, class, at, budget)?;
                        }
                        // An unsupported value is a fault of its own, unless the file holds no other.
                        Err(fault @ TorchFault::Attribute { .. }) if !is_alone => {
                            self.builder.fault(name, RawObject::default(), fault.into());
                        }
                        Err(refused) => return Err(refused.into()),
                    }
                    continue;
                }
            };
            self.tensor(name, value, layout, budget)?;
        }
        let storages = std::mem::take(&mut self.storages).into_values().flatten();
        for Stored { id, span, digest, objects, .. } in storages.filter(|it| !it.is_whole) {
            if digest.is_some() {
                self.builder.sum(objects, id, Blob { digest, ..Blob::raw(span) });
            }
        }
        Ok(())
    }

    /// Counts an object of an unknown class.
    fn left_out(
        &mut self,
        name: &str,
        class: String,
        at: Option<u32>,
        budget: &mut Budget,
    ) -> Result<(), TorchFault> {
        if let Some(known) = self.others.left_out.get_mut(&class) {
            known.count = known.count.strict_add(1);
            return Ok(());
        }
        budget.spend(flatten::TENSOR)?;
        let place = self.graph.start.zip(at);
        let offset = place.and_then(|(start, at)| start.checked_add(at.into()));
        let first = LeftOut { first: name.to_owned(), count: 1, offset };
        self.others.left_out.insert(class, first);
        Ok(())
    }

    fn tensor(
        &mut self,
        name: String,
        value: Value,
        layout: Result<Layout, Refused>,
        budget: &mut Budget,
    ) -> Result<()> {
        budget.spend(flatten::TENSOR)?;
        self.others.has_tensors = true;
        let layout = match layout {
            Ok(layout) => layout,
            Err(refused) => {
                match refused.fault {
                    TensorFault::NotTensor { what } => self.builder.not_a_tensor(name, &what),
                    fault => self.builder.fault(name, raw(refused.known), fault.into()),
                }
                return Ok(());
            }
        };
        let known = Known { shape: Some(layout.shape().to_vec()), element: Some(layout.element()) };
        self.object.clone_from(&name);
        match self.parts(&name, value, layout, budget) {
            Ok(parts) => self.builder.object_across(name, parts.object, parts.sources),
            Err(error) => self.builder.fault(name, raw(known), error),
        }
        Ok(())
    }

    fn parts(
        &mut self,
        name: &str,
        value: Value,
        layout: Layout,
        budget: &mut Budget,
    ) -> Result<Assembled> {
        let mut parts = match layout {
            Layout::Strided(view) => self.dense(view)?,
            Layout::Sparse(layout) => self.sparse(*layout)?,
            Layout::Quantized { integers, scale } => self.quantized(integers, scale)?,
            Layout::Array(array) => self.array(&array, budget)?,
        };
        let mut given = Vec::new();
        for (key, value) in flatten::members(self.heap, &self.tensors, value, false, budget)? {
            let mut convert = |value| attribute::attribute(self.heap, value, &self.limits, budget);
            match convert(key).and_then(|key| Ok((key, convert(value)?))) {
                Ok(pair) => given.push(pair),
                Err(TorchFault::Unknown { class, at }) => self.left_out(name, class, at, budget)?,
                Err(refused) => return Err(refused.into()),
            }
        }
        parts.given(given.into_iter().collect());
        Ok(parts)
    }

    /// An array of NumPy, whose elements are in the pickle.
    fn array(&mut self, array: &Array, budget: &mut Budget) -> Result<Assembled> {
        let Meaning::Values(dtype, logical_type) = array.element.meaning else {
            let name = array.element.name;
            return Err(TensorFault::Element { name }.into());
        };
        let (base, id, mut span) = match array.data(self.heap)? {
            Data::There(span) => (Arc::clone(&self.file.0), Some(self.file.1), span),
            Data::Here(bytes) => {
                // Any number of arrays can share their bytes.
                budget.spend(bytes.len())?;
                let span = Span::new(0, bytes.len() as u64).ok_or(TensorFault::Overflow)?;
                let memory: Arc<dyn Source> = Arc::new(Memory::new(bytes.into_owned()));
                (memory, None, span)
            }
        };
        let id = if array.is_fortran {
            let (from, element_len) = (span.offset(), array.element.byte_len);
            let view = strided::View::fortran(from, element_len, &array.shape);
            let view = view.ok_or(TensorFault::Overflow)?;
            span = Span::new(0, span.byte_len()).ok_or(TensorFault::Overflow)?;
            let source = Strided::new(base, view, &self.bands)?;
            match id {
                Some(file) => self.builder.derived_from(source, file, from),
                None => self.builder.derived(source),
            }
        } else {
            id.unwrap_or_else(|| self.builder.derived(base))
        };
        let mut component = Component::new(dtype, Blob::raw(span));
        component.logical_type = logical_type.map(Text::Borrowed);
        component.byte_order = match dtype.byte_len() {
            1 => ByteOrder::Little,
            _ => array.byte_order,
        };
        let mut parts = Assembled::new(array.shape.clone(), "dense");
        parts.push("data", (component, id));
        Ok(parts)
    }

    fn dense(&mut self, view: View) -> Result<Assembled> {
        if let Meaning::Pairs(packed) = view.element.meaning {
            return self.pairs(view, packed);
        }
        let mut parts = Assembled::new(view.shape.clone(), "dense");
        parts.push("data", self.component(view)?);
        Ok(parts)
    }

    /// Bytes of two values each. torch's shape counts bytes, and zt's counts values.
    fn pairs(&mut self, view: View, packed: PackedType) -> Result<Assembled> {
        let mut shape = view.shape.clone();
        match shape.last_mut() {
            Some(last) => *last = last.checked_mul(2).ok_or(TensorFault::Overflow)?,
            None => shape.push(2),
        }
        let (id, blob) = self.place(view)?;
        let mut parts = Assembled::new(shape, packed.format());
        parts.push("data", (Component::new(DType::U8, blob), id));
        Ok(parts)
    }

    /// Plain elements as a component.
    pub(super) fn component(&mut self, view: View) -> Result<(Component, SourceId)> {
        let element = view.element;
        let Meaning::Values(dtype, logical_type) = element.meaning else {
            return Err(TensorFault::Element { name: element.name }.into());
        };
        let (id, blob) = self.place(view)?;
        let mut component = Component::new(dtype, blob);
        component.logical_type = logical_type.map(Text::Borrowed);
        component.byte_order = self.order_of(dtype);
        Ok((component, id))
    }

    pub(super) fn order_of(&self, dtype: DType) -> ByteOrder {
        match dtype.byte_len() {
            1 => ByteOrder::Little,
            _ => self.byte_order,
        }
    }

    /// The elements of a view in row-major order: a range of the file, or a source that computes them as
    /// it is read.
    pub(super) fn place(&mut self, view: View) -> Result<(SourceId, Blob)> {
        if let Some((id, span)) = self.computed.get(&view) {
            return Ok((*id, Blob::raw(*span)));
        }
        let elements = self.elements(&view)?;
        if let Some(id) = elements.id {
            let mut blob = Blob::raw(elements.span);
            if let Some(Ok(stored)) = self.storages.get_mut(&view.storage.key)
                && stored.span == blob.span
            {
                stored.is_whole = true;
                blob.digest.clone_from(&stored.digest);
            }
            return Ok((id, blob));
        }
        let Elements { source, span, from, .. } = elements;
        let id = self.builder.derived_from(source, self.file.1, from);
        self.computed.insert(view, (id, span));
        Ok((id, Blob::raw(span)))
    }

    /// As [`Assembler::place`], before a computing source is a source of the file.
    pub(super) fn elements(&mut self, view: &View) -> Result<Elements> {
        let stored = self.stored(&view.storage)?;
        let element_len = view.element.byte_len;
        let start = view
            .offset
            .checked_mul(element_len)
            .and_then(|offset| offset.checked_add(view.storage.offset))
            .and_then(|offset| offset.checked_add(stored.span.offset()))
            .ok_or(TensorFault::Overflow)?;
        // A listing shows the offset of the first element.
        let from = if stored.id == self.file.1 { start } else { stored.from };
        let mut elements = if view.is_contiguous() {
            // The offset of an empty view may be anything.
            let start = match view.byte_len {
                0 => stored.span.offset(),
                _ => start,
            };
            Elements {
                source: stored.source,
                id: Some(stored.id),
                span: Span::new(start, view.byte_len).ok_or(TensorFault::Overflow)?,
                from,
            }
        } else {
            let (source, span) = self.gather(view, stored.source, start)?;
            Elements { source, id: None, span, from }
        };
        if let Some(bit) = view.deferred.name() {
            let change = view.deferred.change(view.element, self.byte_order);
            let change = change.ok_or(TensorFault::Lazy { bit })?;
            let (source, span) = (elements.source, elements.span);
            elements.source = Arc::new(Changed::new(source, span, change));
            elements.span = Span::new(0, span.byte_len()).ok_or(TensorFault::Overflow)?;
            elements.id = None;
        }
        Ok(elements)
    }

    /// The elements of a view that is not contiguous, and the range of all of them.
    fn gather(
        &mut self,
        view: &View,
        base: Arc<dyn Source>,
        start: u64,
    ) -> Result<(Arc<dyn Source>, Span)> {
        let (byte_len, left) = (view.byte_len, self.gathered_left);
        let spent = left.checked_sub(byte_len);
        self.gathered_left = spent.ok_or(TensorFault::Expanded { byte_len, left })?;
        let element_len = view.element.byte_len;
        let strides = view.strides.iter().map(|stride| stride.checked_mul(element_len));
        let strides: Option<Vec<u64>> = strides.collect();
        let elements = strides
            .and_then(|strides| strided::View::new(start, element_len, &view.shape, &strides))
            .ok_or(TensorFault::Overflow)?;
        let span = Span::new(0, elements.byte_len()).ok_or(TensorFault::Overflow)?;
        let source = Strided::new(base, elements, &self.bands)?;
        Ok((Arc::new(source), span))
    }

    /// The bytes of a storage, at least as many as its tensors expect.
    fn stored(&mut self, storage: &Storage) -> Result<Stored> {
        if !self.storages.contains_key(&storage.key) {
            let found = self.find(&storage.key);
            self.storages.insert(storage.key.clone(), found);
        }
        let missing = || TensorFault::NoStorage { key: storage.key.clone() };
        let stored = match self.storages.get_mut(&storage.key) {
            Some(Ok(stored)) => {
                if stored.digest.is_some() && stored.objects.last() != Some(&self.object) {
                    stored.objects.push(self.object.clone());
                }
                stored.clone()
            }
            Some(Err(error)) => return Err(error.clone()),
            None => return Err(missing().into()),
        };
        let (expected, found) = (storage.whole_len, stored.span.byte_len());
        if found < expected {
            let error = Error::from(TensorFault::StorageLength { expected, found });
            return Err(if stored.id == self.file.1 {
                error.with_span(stored.span)
            } else {
                error
            });
        }
        Ok(stored)
    }

    fn find(&mut self, key: &str) -> Result<Stored> {
        let place = (self.graph.locate)(key)?
            .ok_or_else(|| TensorFault::NoStorage { key: key.to_owned() })?;
        let (source, id) = match place.source {
            None => self.file.clone(),
            Some(source) => {
                let base = self.file.1;
                // The inflated bytes are more than the bytes of the file.
                let more = times_gathered(place.span.byte_len());
                self.gathered_left = self.gathered_left.saturating_add(more);
                let id = self.builder.derived_from(Arc::clone(&source), base, place.from);
                (source, id)
            }
        };
        let Place { span, from, digest, .. } = place;
        Ok(Stored { source, id, span, from, digest, objects: Vec::new(), is_whole: false })
    }
}

impl Assembled {
    pub(super) fn new(shape: Vec<u64>, format: &'static str) -> Self {
        Assembled { object: Object::new(shape, format), sources: Vec::new() }
    }

    pub(super) fn push(&mut self, role: &'static str, (component, source): (Component, SourceId)) {
        self.object.components.push((role.into(), component));
        self.sources.push(source);
    }

    /// Adds the Python attributes of a tensor. A name that is a parameter of the format gets the
    /// prefix `torch.`.
    fn given(&mut self, members: Attributes) {
        let registry = Registry::builtin();
        let format = registry.format(&self.object.format);
        let parameters = format.map_or(&[][..], |format| format.parameters());
        let members = members.into_iter().map(|(key, value)| match key.as_str() {
            Some(name) if parameters.contains(&name) => (format!("torch.{name}").into(), value),
            _ => (key, value),
        });
        let own = self.object.attributes.take().unwrap_or_default();
        let all: Attributes = own.into_iter().chain(members).collect();
        self.object.attributes = (!all.is_empty()).then_some(all);
    }

    pub(super) fn attribute(
        &mut self,
        key: impl Into<zt::manifest::Value>,
        value: zt::manifest::Value,
    ) {
        let attributes = self.object.attributes.get_or_insert_default();
        attributes.insert(key, value);
    }
}

/// A limit may saturate.
const fn times_gathered(byte_len: u64) -> u64 {
    byte_len.saturating_mul(GATHERED)
}

/// A listing shows this of a tensor that is refused.
fn raw(known: Known) -> RawObject {
    let mut raw = RawObject::default();
    raw.shape = known.shape;
    if let Some(element) = known.element {
        let mut data = RawComponent::default();
        data.dtype = Some(match element.meaning {
            Meaning::Values(dtype, _) => dtype.as_str().into(),
            _ => element.name.into(),
        });
        raw.components = vec![("data".into(), data)];
    }
    raw
}
