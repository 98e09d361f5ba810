//! A `.zt` file, written from front to back.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use zt_container::{Blob, ContainerWriter, Limits, repeated};
use zt_formats::{NewObject, ObjectFormat, Parts, PlaneCoding, Registry, ToObject, check_bools};
use zt_manifest::{Attributes, DType, Fields, Object, Text, check_component_count};

use crate::cores::debug;
use crate::disk::publish::AtomicFile;
use crate::error::{Error, Fault, Result};
use crate::write::component::stored_component;
use crate::write::copy::Expected;
use crate::write::directory::Directory;
use crate::write::encode::{Encoder, Lending, Placed};
use crate::write::object::ObjectWriter;
use crate::write::options::{ComponentOptions, Compression, Keeps, ObjectOptions, WriteOptions};
use crate::write::share::{Content, Sharable, Shares};

pub(crate) use crate::write::sink::{Sink, Tail};

/// Writes a `.zt` file: objects in order, then the manifest.
///
/// The object's format checks the metadata of every object. For an object that is
/// [added](Writer::add), it also checks the contents before any byte is written. Contents of
/// streamed ([`Writer::begin`]) and copied ([`Writer::copy`]) objects are not checked, and
/// [`crate::File::verify`] finds invalid ones, such as an index beyond its dimension. The writer
/// never seeks, so it takes any [`Write`].
///
/// Components are compressed on all cores while the caller goes on. Calls return before their bytes
/// are written, and wait if more than 4 MiB for each thread and 8 MiB are in progress. So an error
/// of the sink comes from a later call, [`Writer::finish`] at the latest, and names no object. The
/// sha256 of several components is computed in parallel, at most 64 MiB behind the writing.
///
/// ```
/// use zt::{Dense, File, Writer};
///
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("model.zt");
/// let mut writer = Writer::create(&path)?;
/// writer.add("bias", &Dense::from_slice(&[3], &[0.5f32, 1.0, 1.5])?)?;
/// assert!(!path.exists(), "nothing appears before it is whole");
/// writer.finish()?;
/// assert_eq!(*File::open(&path)?.tensor("bias")?.values::<f32>()?, [0.5, 1.0, 1.5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Writer<'w> {
    pub(crate) encoder: Encoder<Sink<'w>>,
    pub(crate) options: ComponentOptions,
    /// How dense objects are split into planes, if possible.
    pub(crate) planes: Option<PlaneCoding>,
    pub(crate) registry: Registry,
    attributes: Option<Attributes>,
    extra: Attributes,
    objects: Directory,
    /// A spare object whose memory is used again.
    spare: Option<Object>,
    /// `None` unless the writer deduplicates.
    pub(crate) shares: Option<Shares>,
    /// The components of large objects that others share with, by the objects' places, which do not
    /// change.
    sharable: HashMap<usize, Sharable>,
    /// Components without a known blob, in the order of the objects.
    pending: Vec<Pending>,
    /// The digests that copied components must have, by the tickets of their blobs.
    pub(crate) expected: Vec<(usize, Expected)>,
    /// The storage that copied components keep.
    pub(crate) keeps: Keeps,
    takes_empty_names: bool,
    /// The object that was begun and dropped, or met an error: the file has bytes that belong to no
    /// object.
    pub(crate) abandoned: Option<String>,
}

/// The component that gets the blob of a ticket.
struct Pending {
    object: usize,
    component: usize,
    ticket: usize,
}

impl WriteOptions {
    /// Begins the file at `path`. It appears there when the writer finishes, complete, and replaces any
    /// file of that name. If the writer does not finish, nothing appears.
    ///
    /// # Errors
    ///
    /// As [`AtomicFile::create`]; as [`WriteOptions::to_writer`].
    pub fn create(self, path: impl AsRef<Path>) -> Result<Writer<'static>> {
        let file = AtomicFile::create(path)?;
        Writer::with_sink(Sink::File(file), self)
    }

    /// As [`WriteOptions::create`], but never replaces a file: not one that is there, nor one that
    /// appears until the writer finishes.
    ///
    /// # Errors
    ///
    /// Code `overwrite` where the file exists, here or from [`Writer::finish`]; as
    /// [`WriteOptions::create`].
    pub fn create_new(self, path: impl AsRef<Path>) -> Result<Writer<'static>> {
        let file = AtomicFile::create_new(path)?;
        Writer::with_sink(Sink::File(file), self)
    }

    /// Begins a file in any sink: a socket, a pipe, a `&mut Vec<u8>`. Nothing seeks.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::Io`] if the sink fails; [`crate::ErrorKind::Misuse`] for an
    /// invalid alignment.
    pub fn to_writer<'w>(self, sink: impl Write + Send + 'w) -> Result<Writer<'w>> {
        Writer::with_sink(Sink::stream(sink), self)
    }

    /// As [`WriteOptions::to_writer`], for a sink that gathers small writes itself.
    ///
    /// # Errors
    ///
    /// As [`WriteOptions::to_writer`].
    pub fn to_buffered_writer<'w>(self, sink: impl Write + Send + 'w) -> Result<Writer<'w>> {
        Writer::with_sink(Sink::Stream(Box::new(sink)), self)
    }

    /// Begins a file that the caller publishes after [`Writer::finish`].
    ///
    /// # Errors
    ///
    /// As [`WriteOptions::to_writer`].
    pub fn to_atomic_file(self, file: &mut AtomicFile) -> Result<Writer<'_>> {
        Writer::with_sink(Sink::Lent(file), self)
    }
}

impl Writer<'static> {
    /// Begins the file at `path` with the defaults of [`WriteOptions`]. A file of that name is
    /// replaced when the writer finishes; [`Writer::create_new`] refuses it.
    ///
    /// # Errors
    ///
    /// As [`WriteOptions::create`].
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        WriteOptions::new().create(path)
    }

    /// As [`Writer::create`], but never replaces a file.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("model.zt");
    /// zt::Writer::create_new(&path)?.finish()?;
    /// let error = zt::Writer::create_new(&path).unwrap_err();
    /// assert_eq!(error.code(), zt::codes::OVERWRITE);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`WriteOptions::create_new`].
    pub fn create_new(path: impl AsRef<Path>) -> Result<Self> {
        WriteOptions::new().create_new(path)
    }
}

impl<'w> Writer<'w> {
    /// Begins a file in any sink with the defaults of [`WriteOptions`].
    ///
    /// # Errors
    ///
    /// As [`WriteOptions::to_writer`].
    pub fn new(sink: impl Write + Send + 'w) -> Result<Self> {
        WriteOptions::new().to_writer(sink)
    }

    pub(crate) fn with_sink(sink: Sink<'w>, options: WriteOptions) -> Result<Self> {
        Self::after(ContainerWriter::new(sink)?, Directory::default(), options)
    }

    /// Continues after the first `offset` bytes of a file with these objects.
    pub(crate) fn resume(
        sink: Sink<'w>,
        offset: u64,
        objects: Directory,
        options: WriteOptions,
    ) -> Result<Self> {
        Self::after(ContainerWriter::resume(sink, offset), objects, options)
    }

    fn after(
        container: ContainerWriter<Sink<'w>>,
        objects: Directory,
        options: WriteOptions,
    ) -> Result<Self> {
        let (alignment, chunks) = (options.alignment, options.chunk_digests);
        Ok(Writer {
            encoder: Encoder::new(container, alignment, chunks, options.threads)?,
            options: options.component(),
            keeps: options.keeps(),
            planes: options.planes,
            registry: options.registry.unwrap_or_else(crate::file::open::registry),
            attributes: None,
            extra: Attributes::new(),
            objects,
            spare: None,
            shares: options.deduplicate.then(Shares::default),
            sharable: HashMap::new(),
            pending: Vec::new(),
            expected: Vec::new(),
            takes_empty_names: options.empty_names,
            abandoned: None,
        })
    }

    /// Sets the file's attributes.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::Misuse`], with the key, for a value that a manifest cannot represent, such as
    /// one that is nested deeper than readers accept. The writer keeps the attributes that it had.
    pub fn set_attributes(&mut self, attributes: Attributes) -> Result<()> {
        Fields::File.check(&attributes)?;
        self.attributes = Some(attributes);
        Ok(())
    }

    /// Sets fields of the manifest's root that the specification does not define. A copy keeps the
    /// fields of the old file this way.
    ///
    /// # Errors
    ///
    /// As [`Writer::set_attributes`]; [`crate::ErrorKind::Misuse`] for a field that the specification
    /// defines.
    pub fn set_extra(&mut self, extra: Attributes) -> Result<()> {
        Fields::ExtraOfFile.check(&extra)?;
        self.extra = extra;
        Ok(())
    }

    /// Adds an object that is in memory.
    ///
    /// # Errors
    ///
    /// Code `duplicate-name`; [`crate::ErrorKind::Misuse`] for an empty name, unless
    /// [`WriteOptions::empty_names`] allows it; the fault that a reader would find in the object. An
    /// object that is refused for such a fault leaves the writer as it was.
    ///
    /// [`crate::ErrorKind::Io`] if the sink fails, or code `allocation`: all later calls fail then, too.
    pub fn add(&mut self, name: &str, object: &(impl ToObject + ?Sized)) -> Result<()> {
        let new = self.checked(name, object)?;
        let options = self.options_for(&new.format);
        self.add_new(name, new, &options, None)
    }

    /// Adds many objects that are in memory, with the same bytes as one [`Writer::add`] after the
    /// other. It is faster, and the way to write a whole model.
    ///
    /// The objects' memory is borrowed until the call returns, and nothing is copied. Workers compress
    /// it, and they hash several components at the same time, while the caller's thread writes. When
    /// the call returns, all bytes were given to the sink.
    ///
    /// ```
    /// use zt::{Dense, File, Writer};
    ///
    /// let model = [
    ///     ("weight", Dense::from_slice(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0])?),
    ///     ("bias", Dense::from_slice(&[2], &[0.5f32, 1.5])?),
    /// ];
    /// let mut bytes = Vec::new();
    /// let mut writer = Writer::new(&mut bytes)?;
    /// writer.add_all(model.iter().map(|(name, dense)| (name, dense)))?;
    /// writer.finish()?;
    /// assert_eq!(*File::from_bytes(bytes)?.tensor("bias")?.values::<f32>()?, [0.5, 1.5]);
    /// # Ok::<(), zt::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Writer::add`], for the first object that is at fault. The objects before it are added.
    pub fn add_all<'o, N: AsRef<str>, T: ToObject + ?Sized + 'o>(
        &mut self,
        objects: impl IntoIterator<Item = (N, &'o T)>,
    ) -> Result<()> {
        let mut objects = objects.into_iter();
        if self.shares.is_some() {
            return objects.try_for_each(|(name, object)| self.add(name.as_ref(), object));
        }
        let workers = Arc::clone(&self.encoder.workers);
        workers.scope(usize::MAX, |scope| {
            let mut lending = Lending::begin(&mut self.encoder, scope)?;
            let mut last = None;
            let added = objects.try_for_each(|(name, object)| {
                let new = self.checked(name.as_ref(), object)?;
                let options = self.options_for(&new.format);
                let added = self.add_new(name.as_ref(), new, &options, Some(&mut lending));
                last = Some(name);
                added
            });
            if self.abandoned.is_none() {
                let finished = lending.finish(&mut self.encoder);
                finished.inspect_err(|_| {
                    self.abandoned = last.map(|name| name.as_ref().to_owned());
                })?;
            }
            added
        })
    }

    /// As [`Writer::add`], stored with `options`.
    ///
    /// # Errors
    ///
    /// As [`Writer::add`].
    pub fn add_with(
        &mut self,
        name: &str,
        object: &(impl ToObject + ?Sized),
        options: &ObjectOptions,
    ) -> Result<()> {
        let new = self.checked(name, object)?;
        self.add_new(name, new, options, None)
    }

    /// The default storage of the components of an object of `format`. A format for compression is
    /// compressed unless an option chooses, because raw components of it are only slower to read.
    pub(crate) fn options_for(&self, format: &str) -> ObjectOptions {
        let mut options = self.options;
        let is_coded = PlaneCoding::from_format(format) == Some(PlaneCoding::Huffman);
        let format = self.registry.format(format);
        if self.keeps.encoding && format.is_some_and(ObjectFormat::is_for_compression) {
            options.compression = Compression::Auto;
        }
        let options = ObjectOptions::from(options);
        if is_coded { options.with_raw_codes() } else { options }
    }

    /// Adds an object, with a copy of its components unless they are lent.
    fn add_new<'o>(
        &mut self,
        name: &str,
        new: NewObject<'o>,
        options: &ObjectOptions,
        mut lending: Option<&mut Lending<'_, 'o>>,
    ) -> Result<()> {
        if let Some(codec) = self.planes_of_new(&new) {
            return match lending {
                Some(lending) => self.lend_split(name, new, &codec, options, lending),
                None => self.add_split(name, &new, &codec, options),
            };
        }
        let mut object = self.spare.take().unwrap_or_else(|| Object::new([], ""));
        object.shape.clear();
        object.shape.extend_from_slice(&new.shape);
        object.components.clear();
        object = Object { format: new.format, attributes: new.attributes, ..object };
        for (role, elements) in new.components {
            let options = options.of(&role);
            let placed = match &mut lending {
                Some(lending) => lending.store(&mut self.encoder, &elements.bytes.into(), options),
                None => self.store(&elements.bytes, options),
            };
            let placed = placed.inspect_err(|_| self.abandoned = Some(name.to_owned()))?;
            let blob = self.place(placed, object.components.len());
            let component = stored_component(elements.dtype, elements.logical_type, blob);
            object.components.push((role, component));
        }
        self.push(name, object)
    }

    /// Stores a component, unless it shares the blob of an earlier one.
    fn store(&mut self, content: &[u8], options: ComponentOptions) -> Result<Placed> {
        let Some(shares) = self.shares.as_mut().filter(|_| !content.is_empty()) else {
            return self.encoder.encode(content, options);
        };
        let key = (Content::of(content, &self.encoder.workers)?, options);
        if let Some(placed) = shares.components.get(&key) {
            return Ok(placed.clone());
        }
        let placed = self.encoder.encode(content, options)?;
        shares.components.insert(key, placed.clone());
        Ok(placed)
    }

    /// The object, if readers accept it.
    fn checked<'o>(
        &self,
        name: &str,
        object: &'o (impl ToObject + ?Sized),
    ) -> Result<NewObject<'o>> {
        let checked = || {
            let new = object.to_object()?;
            self.check_not_empty(name)?;
            self.check_name(name, &new.shape)?;
            check_component_count(new.components.len(), &Limits::default())?;
            let mut roles: Vec<&str> = new.components.iter().map(|(role, _)| &**role).collect();
            if let Some(role) = repeated(&mut roles) {
                return Err(Error::from(Fault::DuplicateRole).with_component(role));
            }
            if let Some(attributes) = &new.attributes {
                Fields::Object.check(attributes)?;
            }
            self.registry.check(&new.format, &new.signature())?;
            self.check_contents(&new)?;
            Ok(new)
        };
        checked().map_err(|error: Error| error.with_object(name))
    }

    /// Refuses contents that the reader refuses, such as a bool of 2 or a column out of range.
    fn check_contents(&self, new: &NewObject<'_>) -> Result<()> {
        for (role, elements) in &new.components {
            if elements.dtype == DType::Bool {
                check_bools(&elements.bytes).map_err(|error| error.with_role(role.clone()))?;
            }
        }
        let Some(format) = self.registry.format(&new.format) else {
            return Ok(());
        };
        let roles = format.data_roles();
        if roles.is_some_and(<[&str]>::is_empty) {
            return Ok(());
        }
        let wanted = |role: &str| roles.is_none_or(|roles| roles.contains(&role));
        let components = new.components.iter().filter(|(role, _)| wanted(role));
        let components = components.map(|(role, elements)| (role.clone(), elements.borrow()));
        let parts = Parts {
            shape: Cow::Borrowed(&new.shape),
            attributes: Cow::Owned(new.attributes.clone().unwrap_or_default()),
            elements: components.collect(),
        };
        Ok(format.check_data(&parts)?)
    }

    /// Begins an object with streamed components, which may be larger than memory.
    ///
    /// # Errors
    ///
    /// Code `duplicate-name`.
    pub fn begin<'a>(
        &'a mut self,
        name: &str,
        shape: &[u64],
        format: impl Into<Text>,
    ) -> Result<ObjectWriter<'a, 'w>> {
        self.check_name(name, shape).map_err(|error| error.with_object(name))?;
        Ok(ObjectWriter::new(self, name, Object::new(shape, format)))
    }

    /// Writes the manifest and the footer. A writer made by [`Writer::create`] then makes the file
    /// durable and gives it its name.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::Io`]; [`crate::ErrorKind::Misuse`] if a streamed object was dropped before it
    /// was finished; [`crate::ErrorKind::DigestMismatch`] about a component that was copied. No file
    /// appears then.
    pub fn finish(self) -> Result<()> {
        match self.finish_sink()? {
            Sink::File(file) => file.publish(),
            Sink::Lent(_) | Sink::Stream(_) | Sink::Tail(_) => Ok(()),
        }
    }

    /// Writes the manifest and the footer, flushes the sink and returns it.
    pub(crate) fn finish_sink(mut self) -> Result<Sink<'w>> {
        self.check_usable()?;
        self.check_copied()?;
        let mut objects = self.objects;
        let (container, blobs) = self.encoder.finish()?;
        for place in self.pending {
            if let Some(blob) = blobs.get(place.ticket) {
                objects.set_blob(place.object, place.component, blob);
            }
        }
        let manifest = objects.finish(self.attributes.as_ref(), &self.extra)?;
        Ok(container.finish_from(manifest.pieces())?)
    }

    /// Removes an object, and returns whether it existed.
    pub(crate) fn remove(&mut self, name: &str) -> bool {
        self.objects.remove(name)
    }

    pub(crate) fn rename(&mut self, from: &str, to: &str) -> Result<()> {
        self.check_not_empty(to)?;
        self.check_name(to, &[]).map_err(|error| error.with_object(to))?;
        if self.objects.rename(from, to) {
            return Ok(());
        }
        Err(Error::from(Fault::NoSuchObject).with_object(from))
    }

    /// Whether there is an object of that name.
    pub(crate) fn expect(&self, name: &str) -> Result<()> {
        let missing = || Error::from(Fault::NoSuchObject).with_object(name);
        self.objects.find(name).map(drop).ok_or_else(missing)
    }

    pub(crate) const fn attributes_mut(&mut self) -> &mut Option<Attributes> {
        &mut self.attributes
    }

    pub(crate) const fn attributes(&self) -> Option<&Attributes> {
        self.attributes.as_ref()
    }

    pub(crate) const fn extra(&self) -> &Attributes {
        &self.extra
    }

    /// The destination, if a file is edited.
    pub(crate) fn tail(&mut self) -> Option<&mut dyn Tail> {
        match self.encoder.container.sink_mut() {
            Sink::Tail(tail) => Some(tail.as_mut()),
            Sink::File(_) | Sink::Lent(_) | Sink::Stream(_) => None,
        }
    }

    /// The blob of the component number `component` of the next object, as far as it is known.
    pub(crate) fn place(&mut self, placed: Placed, component: usize) -> Blob {
        if let Placed::Later { ticket, .. } = placed {
            self.pending.push(Pending { object: self.objects.len(), component, ticket });
        }
        placed.into_blob()
    }

    /// The place and the type of a component that the file has already.
    pub(crate) fn shared(&mut self, object: &str, role: &str) -> Result<(Option<DType>, Placed)> {
        let at = self.objects.find(object).ok_or(Fault::NoSuchObject)?;
        let shared = if let Some(known) = self.sharable.get(&at) {
            known.get(role)
        } else {
            let found = self.objects.object(at)?.ok_or(Fault::NoSuchObject)?;
            let known = Sharable::of(&found);
            let shared = known.get(role);
            if !self.objects.is_small(at) {
                self.sharable.insert(at, known);
            }
            shared
        };
        let missing = || Fault::NoSuchComponent(role.to_owned());
        let (component, dtype, blob) = shared.ok_or_else(missing)?;
        Ok((dtype, self.placed(at, component, &blob)))
    }

    /// The place of a component's blob. `object` may be the next one.
    pub(crate) fn placed(&self, object: usize, component: usize, blob: &Blob) -> Placed {
        let place = |pending: &Pending| (pending.object, pending.component);
        let found = (self.pending).binary_search_by_key(&(object, component), place);
        match found.ok().and_then(|at| self.pending.get(at)) {
            Some(Pending { ticket, .. }) => {
                Placed::Later { ticket: *ticket, decoded_len: blob.decoded_len }
            }
            None => Placed::At(blob.clone()),
        }
    }

    /// The number of objects, without the one that was begun.
    pub(crate) fn object_count(&self) -> usize {
        self.objects.len()
    }

    /// Adds an object whose bytes are in the file or will be.
    pub(crate) fn push(&mut self, name: &str, object: Object) -> Result<()> {
        let last = self.pending.last();
        let is_open = last.is_some_and(|last| last.object == self.objects.len());
        let pushed = if is_open {
            self.objects.push_open(name, object)
        } else {
            let pushed = self.objects.push(name, &object);
            self.spare = Some(object);
            pushed
        };
        pushed.inspect_err(|_| self.abandoned = Some(name.to_owned()))
    }

    /// Refuses a name and a shape that readers refuse by default.
    fn check_name(&self, name: &str, shape: &[u64]) -> Result<()> {
        self.check_usable()?;
        let limits = Limits::default();
        if name.len() > limits.name_len {
            return Err(Fault::NameTooLong(limits.name_len).into());
        }
        if shape.len() > limits.rank {
            return Err(Fault::TooManyDimensions(limits.rank).into());
        }
        if self.objects.find(name).is_some() {
            return Err(Fault::DuplicateName.into());
        }
        Ok(())
    }

    /// Refuses an empty name, which is usually a mistake. Readers take it, so that copies keep it.
    fn check_not_empty(&self, name: &str) -> Result<()> {
        if name.is_empty() && !self.takes_empty_names {
            return Err(Fault::EmptyName.into());
        }
        Ok(())
    }

    fn check_usable(&self) -> Result<()> {
        match &self.abandoned {
            Some(name) => Err(Error::from(Fault::UnfinishedObject).with_object(name)),
            None => Ok(()),
        }
    }
}

debug::fields!(
    Writer<'_>,
    |writer| objects: writer.objects.len(), offset: writer.encoder.container.offset()
);
