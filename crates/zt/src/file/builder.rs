//! The builder that crates for other kinds of files use to make a [`File`].

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use zt_container::{Blob, Limits, Source, Span, check_declared};
use zt_formats::ObjectFormat;
use zt_manifest::{
    Attributes, LimitExceeded, Object, RawComponent, RawObject, Text, check_attributes_len,
    check_component_count,
};

use crate::cores::debug;
use crate::error::{Error, Fault, Result};
use crate::file::File;
use crate::file::catalog::{Catalog, Faulty, Home, Resolved, SourceOrigin, blame_blob, check};
use crate::file::kind::Kind;
use crate::file::open::OpenOptions;
use crate::file::value_rule::{Sum, ValueRule};
use crate::file::{Origin, Warning, WarningKind, warning_of};

/// Builds a [`File`] from objects whose components lie in other files.
///
/// A component's span is a range of a source. So a plain little-endian range of any file is read, lent,
/// streamed and verified like a blob of a `.zt` file. Objects are checked by their formats, as the
/// objects of a manifest are.
///
/// ```
/// use zt::foreign::{FileBuilder, Kind};
/// use zt::{Blob, Component, DType, Memory, Object, OpenOptions, Span};
///
/// let mut builder = FileBuilder::new(Kind::new("two-floats"), OpenOptions::new());
/// let source = builder.source(Memory::new([0, 0, 128, 63, 0, 0, 0, 64]));
/// let blob = Blob::raw(Span::new(0, 8).unwrap());
/// let object = Object::new([2], "dense").with_component("data", Component::new(DType::F32, blob));
/// builder.object("pair", object, source);
/// let file = builder.build()?;
/// assert_eq!(*file.tensor("pair")?.values::<f32>()?, [1.0, 2.0]);
/// # Ok::<(), zt::Error>(())
/// ```
pub struct FileBuilder {
    kind: Kind,
    options: OpenOptions,
    registry: zt_formats::Registry,
    /// All but the catalog.
    origin: Origin,
    /// By source.
    places: Vec<SourceOrigin>,
    /// Of the file that is being added, if it is one of several.
    path: Option<Arc<Path>>,
    /// Boxed, as the catalog keeps them: while it is made, no object exists twice.
    objects: Vec<(String, Box<Resolved>)>,
    attributes: Option<Attributes>,
    extra: Attributes,
}

/// An object that is made of components of a file's objects. See [`File::regroup`].
#[derive(Debug, Clone)]
pub struct Regrouped {
    /// Its name.
    pub name: String,
    /// Its shape.
    pub shape: Vec<u64>,
    /// Its format.
    pub format: Text,
    /// Its attributes.
    pub attributes: Attributes,
    /// Its components: the role of each, and the object and the role that it has in the file.
    pub components: Vec<(Text, String, Text)>,
}

/// One source of a file's bytes. See [`FileBuilder::source`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceId(usize);

impl FileBuilder {
    /// A file of `kind` without objects.
    pub fn new(kind: Kind, options: OpenOptions) -> Self {
        FileBuilder {
            kind,
            registry: options.registry_or_builtin(),
            options,
            origin: Origin::default(),
            places: Vec::new(),
            path: None,
            objects: Vec::new(),
            attributes: None,
            extra: Attributes::new(),
        }
    }

    /// The limits that apply to the file.
    pub const fn limits(&self) -> &Limits {
        &self.options.limits
    }

    /// Adds a file that holds data of objects.
    pub fn source(&mut self, source: impl Source + 'static) -> SourceId {
        // Saturates on purpose: the sum is only for people, and a source may claim any length.
        let byte_len = &mut self.origin.byte_len;
        *byte_len = byte_len.saturating_add(source.byte_len());
        self.place(Arc::new(source), SourceOrigin::File)
    }

    /// Adds bytes that hold data of objects and that no file holds: they are in memory, or made on
    /// demand. They do not count in [`File::byte_len`], and errors give no offset in them.
    pub fn derived(&mut self, source: impl Source + 'static) -> SourceId {
        self.place(Arc::new(source), SourceOrigin::Made)
    }

    /// As [`FileBuilder::derived`], for bytes that are made from the bytes of `from` at `offset`: for
    /// example, inflated or put into row-major order. Objects are listed in the order of their data, and
    /// this is the place of these objects.
    pub fn derived_from(
        &mut self,
        source: impl Source + 'static,
        from: SourceId,
        offset: u64,
    ) -> SourceId {
        self.place(Arc::new(source), SourceOrigin::MadeOf(from.0, offset))
    }

    /// Sources and files that are added from now on are of the file at `path`, one of several. Errors about
    /// their bytes name it.
    pub fn from_file(&mut self, path: &Path) {
        self.path = Some(path.into());
    }

    fn place(&mut self, source: Arc<dyn Source>, place: SourceOrigin) -> SourceId {
        self.origin.sources.push(source);
        self.origin.paths.push(self.path.clone());
        self.places.push(place);
        SourceId(self.origin.sources.len().strict_sub(1))
    }

    /// Adds an object format for this file alone, or replaces the format of the same id. A kind of file
    /// may have stricter rules for a format's contents than `.zt` has.
    pub fn format(&mut self, format: impl ObjectFormat + 'static) {
        self.registry = self.registry.clone().with_format(format);
        self.options.registry = Some(self.registry.clone());
    }

    /// Sets the file's attributes.
    pub fn attributes(&mut self, attributes: Attributes) {
        self.attributes = Some(attributes);
    }

    /// Sets the fields that [`File::extra`] gives.
    pub fn extra(&mut self, extra: Attributes) {
        self.extra = extra;
    }

    /// Adds a warning that is no error.
    pub fn warning(&mut self, warning: Warning) {
        self.origin.remarks.push(warning);
    }

    /// Adds a fault that the file's format forbids and its reader tolerates. It is a warning, and an
    /// error for [`OpenOptions::strict`] and for strict verification.
    pub fn tolerated(&mut self, problem: Error) {
        self.origin.tolerated.problems.push(problem);
    }

    /// Notes that `found` bytes of the file are there, of `expected` ones if that is known. The file opens
    /// all the same, except for [`OpenOptions::strict`]: see [`File::truncated`].
    pub fn truncated(&mut self, found: u64, expected: Option<u64>) {
        let error = Error::from(Fault::Truncated { found, expected });
        self.origin.truncated = Some(self.located(error.with_offset(found)));
    }

    /// Sets a rule for the values of an f32 component. Only strict verification checks it. A component
    /// that cannot be read is skipped.
    pub fn strict_values(&mut self, name: impl Into<String>, role: &'static str, rule: ValueRule) {
        let values = &mut self.origin.tolerated.values;
        values.push((name.into(), role, rule));
    }

    /// Adds an object whose components lie in `source`. A span outside the source, or a violation of
    /// the object's format, becomes the fault of the object.
    pub fn object(&mut self, name: impl Into<String>, object: Object, source: SourceId) {
        self.add(name.into(), object, Home::One(source.0));
    }

    /// As [`FileBuilder::object`], with one source for each component, in the order of the components.
    /// A component without a source is a fault: its span lies outside.
    pub fn object_across(
        &mut self,
        name: impl Into<String>,
        object: Object,
        sources: impl IntoIterator<Item = SourceId>,
    ) {
        let sources = sources.into_iter().map(|source| source.0).collect();
        self.add(name.into(), object, Home::Each(sources));
    }

    fn add(&mut self, name: String, object: Object, home: Home) {
        let resolved = self.resolved(&name, object, home);
        self.objects.push((name, Box::new(resolved)));
    }

    fn resolved(&self, name: &str, mut object: Object, home: Home) -> Resolved {
        let unreadable = self.beyond_limits(name, &object);
        let unreadable = unreadable.or(self.outside(&object, &home));
        match unreadable {
            None => {
                let fault = check(&mut object, &self.registry);
                let fault = fault.map(|fault| self.located(fault.with_object(name)));
                Resolved::new(Ok(object), home).with_fault(fault)
            }
            Some(error) => {
                let error = self.located(blame_blob(error, &object).with_object(name));
                let raw = Arc::new(raw_of(object));
                Resolved::new(Err(Arc::new(Faulty { error, raw })), home)
            }
        }
    }

    /// Adds a digest of stored bytes that `objects` share; without names, all objects of the file share them. Reading an
    /// object does not compare it, because it covers more than the object. [`File::verify`] does: a difference is a
    /// fault of the first object.
    pub fn sum(&mut self, objects: Vec<String>, source: SourceId, blob: Blob) {
        self.origin.tolerated.sums.push(Sum { objects, source: source.0, blob });
    }

    /// Adds the objects of another file whose names `keep` accepts, with their sources, faults and
    /// warnings. Warnings about that file as a whole are added too, and its attributes are not.
    pub fn include(&mut self, file: &File, mut keep: impl FnMut(&str) -> bool) {
        self.include_as(file, |name| keep(name).then(|| name.to_owned()));
    }

    /// As [`FileBuilder::include`], for the objects that `choose` gives a name, under that name.
    pub fn include_as(&mut self, file: &File, mut choose: impl FnMut(&str) -> Option<String>) {
        let (inner, base) = (&file.inner, self.origin.sources.len());
        let path = self.path.clone();
        let located = |error: Error| match &path {
            Some(path) => error.with_path(path),
            None => error,
        };
        let byte_len = &mut self.origin.byte_len;
        *byte_len = byte_len.saturating_add(file.byte_len());
        for (at, source) in inner.sources.iter().enumerate() {
            let place = match inner.catalog.place(at) {
                SourceOrigin::MadeOf(from, offset) => {
                    SourceOrigin::MadeOf(base.strict_add(from), offset)
                }
                place => place,
            };
            self.place(Arc::clone(source), place);
            if let (Some(known), Some(path)) = (inner.path_of(at), self.origin.paths.last_mut()) {
                *path = Some(known.into());
            }
        }
        let mut chosen = HashMap::new();
        for at in 0..inner.catalog.len() {
            let name = inner.catalog.name(at);
            if let Some(new) = choose(name)
                && let Some(resolved) = inner.catalog.resolve(at, &inner.registry)
            {
                let moved = resolved.moved(base).with_errors(|error| {
                    located(if new == name { error } else { error.of_object(&new) })
                });
                chosen.insert(name, new.clone());
                self.objects.push((new, Box::new(moved)));
            }
        }
        let new_name = |name: &str| chosen.get(name).cloned();
        for mut warning in inner.remarks.iter().cloned() {
            if let Some(name) = warning.object {
                // What is left out of a file has a name that no object has.
                warning.object = match inner.catalog.find(&name) {
                    Some(_) => new_name(&name),
                    None => choose(&name),
                };
                if warning.object.is_none() {
                    continue;
                }
            }
            self.origin.remarks.push(warning);
        }
        let truncated = &mut self.origin.truncated;
        *truncated = truncated.take().or_else(|| inner.truncated.clone().map(&located));
        let tolerated = &mut self.origin.tolerated;
        for problem in &inner.tolerated.problems {
            match problem.object().map(new_name) {
                None => tolerated.problems.push(located(problem.clone())),
                Some(Some(name)) => {
                    tolerated.problems.push(located(problem.clone().of_object(&name)));
                }
                Some(None) => {}
            }
        }
        let values = inner.tolerated.values.iter();
        let values = values.filter_map(|(name, role, rule)| Some((new_name(name)?, *role, *rule)));
        tolerated.values.extend(values);
        for Sum { objects, source, blob } in &inner.tolerated.sums {
            let some: Vec<String> = match objects[..] {
                [] => chosen.values().cloned().collect(),
                _ => objects.iter().filter_map(|name| new_name(name)).collect(),
            };
            if !some.is_empty() {
                let (source, blob) = (base.strict_add(*source), blob.clone());
                tolerated.sums.push(Sum { objects: some, source, blob });
            }
        }
    }

    fn located(&self, error: Error) -> Error {
        match &self.path {
            Some(path) => error.with_path(path),
            None => error,
        }
    }

    /// Adds an object that cannot be read. It is listed with its metadata, and each attempt to read it
    /// gives `error`.
    pub fn fault(&mut self, name: impl Into<String>, raw: RawObject, error: Error) {
        let name = name.into();
        let (error, raw) = (self.located(error.with_object(&name)), Arc::new(raw));
        let faulty = Err(Arc::new(Faulty { error, raw }));
        let resolved = Resolved::new(faulty, Home::One(0));
        self.objects.push((name, Box::new(resolved)));
    }

    /// Leaves out something that the file names and that is not a tensor; `what` describes it, such as
    /// `strings`. It becomes a warning of code `not-tensor`, and not an object. So the file is sound, and
    /// a conversion warns and goes on.
    ///
    /// ```
    /// use zt::OpenOptions;
    /// use zt::foreign::{FileBuilder, Kind};
    ///
    /// let mut builder = FileBuilder::new(Kind::new("labels"), OpenOptions::new());
    /// builder.not_a_tensor("names", "strings");
    /// let file = builder.build()?;
    /// assert!(file.is_empty() && file.verify(&Default::default())?.is_ok());
    /// assert_eq!(file.warnings()[0].to_string(), "names: not a tensor, left out: strings");
    /// # Ok::<(), zt::Error>(())
    /// ```
    pub fn not_a_tensor(&mut self, name: impl Into<String>, what: &str) {
        let message = format!("not a tensor, left out: {what}");
        let warning = Warning::new("not-tensor", message).with_object(name);
        self.warning(warning.with_kind(WarningKind::NotTensor));
    }

    /// The file.
    ///
    /// # Errors
    ///
    /// Code `duplicate-name` if two objects have one name. With [`OpenOptions::strict`], also the first
    /// fault of an object, and the first [tolerated](FileBuilder::tolerated) fault.
    pub fn build(self) -> Result<File> {
        let (objects, places) = (self.objects, self.places);
        let catalog = Catalog::from_objects(objects, places, self.attributes, self.extra)?;
        File::from_catalog(self.kind, catalog, self.origin, &self.options)
    }

    /// The limits that the manifest's reader applies to our own files.
    fn beyond_limits(&self, name: &str, object: &Object) -> Option<Error> {
        let limits = &self.options.limits;
        let checked = || -> zt_manifest::Result<()> {
            let (limit, found) = (limits.name_len, name.len());
            if found > limit {
                return Err(LimitExceeded::Name { limit, found }.into());
            }
            let (limit, found) = (limits.rank, object.shape.len());
            if found > limit {
                return Err(LimitExceeded::Rank { limit, found }.into());
            }
            check_component_count(object.components.len(), limits)?;
            check_attributes_len(object.attributes_len(), limits)
        };
        checked().err().map(Error::from)
    }

    /// What cannot be read: spans outside the source, lengths that the stored bytes do not have.
    fn outside(&self, object: &Object, home: &Home) -> Option<Error> {
        let mut components = object.components.iter().enumerate();
        components.find_map(|(at, (role, component))| {
            let source = self.origin.sources.get(home.of(at));
            let region = Span::between(0, source.map_or(0, |source| source.byte_len()))?;
            let (blob, span) = (&component.blob, component.blob.span);
            let error = if region.contains(span) {
                check_declared(blob, &self.options.limits).err()?
            } else {
                let (offset, byte_len) = (span.offset(), span.byte_len());
                let violation = zt_container::FramingViolation::Bounds { offset, byte_len, region };
                zt_container::Error::Malformed(violation)
            };
            Some(Error::from(error).with_component(role))
        })
    }
}

impl File {
    /// The objects that `choose` gives a name, under that name, as a file. Attributes and warnings of
    /// the file are kept. Nothing is copied or read.
    ///
    /// ```
    /// # use zt::{Dense, File, Writer};
    /// # let mut bytes = Vec::new();
    /// # let mut writer = Writer::new(&mut bytes)?;
    /// # writer.add("model.bias", &Dense::from_slice(&[1], &[0.5f32])?)?;
    /// # writer.add("optimizer.step", &Dense::from_slice(&[1], &[7u64])?)?;
    /// # writer.finish()?;
    /// let file = File::from_bytes(bytes)?;
    /// let model = file.select(|name| name.strip_prefix("model.").map(str::to_owned))?;
    /// assert_eq!(model.names().collect::<Vec<_>>(), ["bias"]);
    /// # Ok::<(), zt::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Code `duplicate-name` if two objects get one name; as [`File::attributes`].
    pub fn select(&self, choose: impl FnMut(&str) -> Option<String>) -> Result<File> {
        self.rebuilt(choose)?.build()
    }

    /// The file with some objects replaced. `make` gets each name and object. It returns the new object and a
    /// source with its bytes, which may make them on demand, or `None` to keep the old object; after an error
    /// the object is listed, and reading it is that error. Objects may share a source. Everything else is kept, and
    /// nothing is copied or read.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use zt::{Dense, File, Memory, Writer};
    /// # let mut bytes = Vec::new();
    /// # let mut writer = Writer::new(&mut bytes)?;
    /// # writer.add("bias", &Dense::from_slice(&[1], &[0.5f32])?)?;
    /// # writer.finish()?;
    /// let file = File::from_bytes(bytes)?;
    /// let other = file.replace(|name, object| {
    ///     let mut object = object.clone();
    ///     object.components[0].1.blob = zt::Blob::raw(zt::Span::new(0, 4)?);
    ///     Some(Ok((object, Arc::new(Memory::new(1f32.to_le_bytes())))))
    /// })?;
    /// assert_eq!(*other.tensor("bias")?.values::<f32>()?, [1.0]);
    /// # Ok::<(), zt::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`File::attributes`]. A span outside its source, or a violation of the object's format, becomes
    /// the fault of the object.
    pub fn replace(
        &self,
        mut make: impl FnMut(&str, &Object) -> Option<Result<(Object, Arc<dyn Source>)>>,
    ) -> Result<File> {
        let mut builder = self.rebuilt(|name| Some(name.to_owned()))?;
        let mut objects = std::mem::take(&mut builder.objects);
        let mut placed = HashMap::new();
        for (name, resolved) in &mut objects {
            let Ok(old) = &resolved.object else { continue };
            match make(name, old) {
                None => {}
                Some(Ok((new, source))) => {
                    let (from, offset) = resolved.place(&builder.places);
                    let place = SourceOrigin::MadeOf(from, offset);
                    let source = *placed
                        .entry(Arc::as_ptr(&source).addr())
                        .or_insert_with(|| builder.place(source, place));
                    **resolved = builder.resolved(name, new, Home::One(source.0));
                }
                Some(Err(error)) => {
                    let raw = Arc::new(raw_of(old.clone()));
                    resolved.object = Err(Arc::new(Faulty { error, raw }));
                }
            }
        }
        builder.objects = objects;
        builder.build()
    }

    /// The objects whose names `keep` accepts, and `made` ones, whose components come from any objects of the file.
    /// Attributes and warnings of the file are kept. Nothing is copied or read.
    ///
    /// ```
    /// # use zt::foreign::Regrouped;
    /// # use zt::{Attributes, Dense, File, Writer};
    /// # let mut bytes = Vec::new();
    /// # let mut writer = Writer::new(&mut bytes)?;
    /// # writer.add("weight.data", &Dense::from_slice(&[2], &[1.0f32, 2.0])?)?;
    /// # writer.finish()?;
    /// let file = File::from_bytes(bytes)?;
    /// let weight = Regrouped {
    ///     name: "weight".to_owned(),
    ///     shape: vec![2],
    ///     format: "dense".into(),
    ///     attributes: Attributes::new(),
    ///     components: vec![("data".into(), "weight.data".to_owned(), "data".into())],
    /// };
    /// let file = file.regroup(|_| false, [weight])?;
    /// assert_eq!(*file.tensor("weight")?.values::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), zt::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Code `not-found` if there is no such object or component; the fault of an object; otherwise as [`File::select`]. A
    /// violation of the new object's format becomes the fault of the object.
    pub fn regroup(
        &self,
        mut keep: impl FnMut(&str) -> bool,
        made: impl IntoIterator<Item = Regrouped>,
    ) -> Result<File> {
        let mut builder = self.rebuilt(|name| keep(name).then(|| name.to_owned()))?;
        for Regrouped { name, shape, format, attributes, components } in made {
            let mut object = Object::new(shape, format);
            object.attributes = (!attributes.is_empty()).then_some(attributes);
            let mut sources = Vec::with_capacity(components.len());
            for (role, of, of_role) in components {
                let tensor = self.tensor(&of)?;
                let part = tensor.locate(&of_role)?;
                object.components.push((role, part.component.clone()));
                sources.push(tensor.source_index(part));
            }
            builder.add(name, object, Home::Each(sources.into()));
        }
        builder.build()
    }

    /// The same file with these warnings, too.
    ///
    /// # Errors
    ///
    /// As [`File::attributes`].
    pub fn with_warnings(&self, warnings: impl IntoIterator<Item = Warning>) -> Result<File> {
        let mut builder = self.rebuilt(|name| Some(name.to_owned()))?;
        warnings.into_iter().for_each(|warning| builder.warning(warning));
        builder.build()
    }

    /// The same file with these attributes.
    ///
    /// # Errors
    ///
    /// As [`File::select`].
    pub fn with_attributes(&self, attributes: Attributes) -> Result<File> {
        let mut builder = self.rebuilt(|name| Some(name.to_owned()))?;
        builder.attributes(attributes);
        builder.build()
    }

    /// A builder with the objects that `choose` gives a name, and the attributes and warnings of the file.
    fn rebuilt(&self, choose: impl FnMut(&str) -> Option<String>) -> Result<FileBuilder> {
        let inner = &self.inner;
        let mut options = OpenOptions::new();
        options.limits = inner.limits;
        options.registry = Some(inner.registry.clone());
        options.verify = inner.verify;
        let mut builder = FileBuilder::new(inner.kind, options);
        builder.include_as(self, choose);
        let of_file = inner.catalog.warnings().iter();
        for warning in of_file.map(|warning| warning_of(None, warning)) {
            builder.warning(warning);
        }
        builder.attributes = self.attributes()?;
        builder.extra(self.extra()?);
        Ok(builder)
    }
}

debug::fields!(FileBuilder, |builder| kind: builder.kind, objects: builder.objects.len());

/// What a listing shows of an object that is refused.
fn raw_of(object: Object) -> RawObject {
    let mut raw = RawObject::default();
    raw.shape = Some(object.shape);
    raw.format = Some(object.format);
    raw.attributes = object.attributes;
    raw.extra = object.extra;
    for (role, component) in object.components {
        let mut described = RawComponent::default();
        described.dtype = component.dtype.map(|dtype| dtype.as_str().into());
        described.logical_type = component.logical_type;
        described.offset = Some(component.blob.span.offset());
        described.length = Some(component.blob.span.byte_len());
        described.encoding = Some(component.blob.encoding.as_str().into());
        described.decoded_len = component.blob.decoded_len;
        let digest = component.blob.digest;
        described.digest = digest.map(|digest| digest.to_string().into());
        described.byte_order = component.byte_order;
        described.extra = component.extra;
        raw.components.push((role, described));
    }
    raw
}
