//! Room `file`: an open file, its objects and their bytes.
//!
//! | module | holds |
//! | --- | --- |
//! | this one | [`File`] and [`Entry`] |
//! | `inner`, `warning` | the state that handles share; [`Warning`] |
//! | `open` | [`OpenOptions`], and how `.zt` files are opened |
//! | `builder`, `value_rule` | how crates for other kinds of files build a `File` |
//! | `kind` | the name of a kind of file |
//! | `nearest` | the name that a user meant |
//! | `catalog` | the index of names, and the objects, decoded when they are asked for |
//! | `tensor` | [`Tensor`]: metadata and components of one object |
//! | `unfinished` | the old file, where an edit has not finished |
//! | `direct` | reads past the page cache of the system |
//! | `batches` | takes objects some thousand at a time |
//! | `overlap` | the limit for bytes that many blobs share |
//! | `verified_blobs`, `chunks` | the blobs whose digest was already checked, and the chunks of blobs |
//!
//! It knows the rooms `error` and `cores`, and the three crates below.
//!
//! It must not know the rooms after it. Slices, dense values and checks are `impl` blocks in `read`
//! and `check`; `File::edit` is one in `edit`.

pub(crate) mod batches;
pub(crate) mod builder;
pub(crate) mod catalog;
pub(crate) mod chunks;
mod direct;
pub(crate) mod inner;
pub(crate) mod kind;
mod nearest;
pub(crate) mod open;
pub(crate) mod overlap;
pub(crate) mod tensor;
pub(crate) mod unfinished;
pub(crate) mod value_rule;
mod verified_blobs;
mod warning;

pub(crate) use inner::{Inner, Origin};
pub use nearest::nearest;
pub use warning::{Warning, WarningKind, parted_links};

use std::path::Path;
use std::sync::{Arc, OnceLock};

use zt_container::{Layout, Source, Span};
use zt_formats::Registry;
use zt_manifest::{Attributes, ManifestDigest, Object, RawObject};

use crate::cores::{debug, stretches};
use crate::error::{Error, Fault, Result};
use crate::file::catalog::{Catalog, Decoded, Resolved};
use crate::file::kind::Kind;
use crate::file::open::OpenOptions;
use crate::file::tensor::Tensor;
use crate::file::verified_blobs::Verified;

/// An open tensor file: named objects, each with a shape, a format and typed components.
///
/// Cheap to clone, `Send` and `Sync`: one file serves any number of threads. Everything that
/// another format's reader opens is a `File` too, and every call works on it.
///
/// ```
/// use zt::{Dense, File, Writer};
///
/// let mut bytes = Vec::new();
/// let mut writer = Writer::new(&mut bytes)?;
/// writer.add("weight", &Dense::from_slice(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0])?)?;
/// writer.finish()?;
///
/// let file = File::from_bytes(bytes)?;
/// let weight = file.tensor("weight")?;
/// assert_eq!(weight.shape(), [2, 2]);
/// assert_eq!(*weight.values::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
/// # Ok::<(), zt::Error>(())
/// ```
#[derive(Clone)]
pub struct File {
    pub(crate) inner: Arc<Inner>,
}

impl File {
    /// Opens the `.zt` file at `path` with the defaults of [`OpenOptions`]. Files of other kinds are
    /// opened as a [`File`] by `zt_convert::open`, which looks at their bytes.
    ///
    /// # Errors
    ///
    /// As [`OpenOptions::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        OpenOptions::new().open(path)
    }

    /// Opens a `.zt` file that is in memory, without copying it.
    ///
    /// # Errors
    ///
    /// As [`OpenOptions::open_source`].
    pub fn from_bytes(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Result<Self> {
        OpenOptions::new().open_bytes(bytes)
    }

    pub(crate) fn from_zt(source: Arc<dyn Source>, options: &OpenOptions) -> Result<Self> {
        let (catalog, source, remarks) = unfinished::open(source, &options.limits)?;
        Self::from_source(catalog, source, remarks, options)
    }

    /// As [`File::from_zt`], for a source that ends with a footer, also with a damaged manifest that
    /// decodes: no search for an unfinished edit.
    pub(crate) fn from_damaged_zt(source: Arc<dyn Source>, options: &OpenOptions) -> Result<Self> {
        let catalog = Catalog::from_damaged_zt(&source, &options.limits)?;
        Self::from_source(catalog, source, Vec::new(), options)
    }

    fn from_source(
        catalog: Catalog,
        source: Arc<dyn Source>,
        remarks: Vec<Warning>,
        options: &OpenOptions,
    ) -> Result<Self> {
        let origin = Origin {
            byte_len: source.byte_len(),
            sources: vec![source],
            remarks,
            ..Origin::default()
        };
        Self::from_catalog(Kind::ZT, catalog, origin, options)
    }

    pub(crate) fn from_catalog(
        kind: Kind,
        catalog: Catalog,
        origin: Origin,
        options: &OpenOptions,
    ) -> Result<Self> {
        let inner = Inner {
            kind,
            catalog,
            past_cache: origin.sources.iter().map(|_| OnceLock::new()).collect(),
            sources: origin.sources,
            paths: origin.paths,
            byte_len: origin.byte_len,
            registry: options.registry_or_builtin(),
            limits: options.limits,
            verify: options.verify,
            remarks: origin.remarks,
            tolerated: origin.tolerated,
            truncated: origin.truncated,
            verified: Verified::default(),
            chunks: chunks::Tables::default(),
            pool: crate::cores::scratch::Pool::default(),
        };
        let file = File { inner: Arc::new(inner) };
        if options.strict {
            if let Some(truncated) = file.truncated() {
                return Err(truncated.clone());
            }
            let entries = file.entries();
            if let Some(fault) = entries.iter().find_map(Entry::fault) {
                return Err(fault.clone());
            }
            if let Some(problem) = file.inner.tolerated.problems.first() {
                return Err(problem.clone());
            }
        }
        Ok(file)
    }

    /// The file's format.
    pub fn kind(&self) -> Kind {
        self.inner.kind
    }

    /// The generation of a `.zt` file: `0.1`, `1.0`, `1.1` or `1.2`; `None` for other kinds.
    pub fn layout(&self) -> Option<&'static str> {
        let (placement, version) = self.inner.catalog.placement()?;
        Some(match placement.layout {
            Layout::V0_1 => "0.1",
            Layout::V1_0 => "1.0",
            // Both have one framing; the version in the manifest tells them apart.
            _ if version.is_some_and(|version| version.minor < 2) => "1.1",
            _ => "1.2",
        })
    }

    /// The version text of a `.zt` manifest, as it stands there; 0.1 has none.
    pub fn version(&self) -> Option<&str> {
        let (_, version) = self.inner.catalog.placement()?;
        version.map(|version| version.text.as_str())
    }

    /// Bytes of the file; of all files, where it is a set of several.
    pub fn byte_len(&self) -> u64 {
        self.inner.byte_len
    }

    /// Where the blobs of a `.zt` file may lie; `None` for other kinds.
    pub fn data_region(&self) -> Option<Span> {
        let placement = self.inner.catalog.placement();
        placement.map(|(placement, _)| placement.data)
    }

    /// What the manifest of a `.zt` file says about its own bytes; `None` for other kinds.
    pub(crate) fn manifest_digest(&self) -> Option<&ManifestDigest> {
        self.inner.catalog.manifest_digest()
    }

    /// The file's attributes, decoded anew at each call; `None` where there is no such field.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::Limit`] where there is no memory for them.
    pub fn attributes(&self) -> Result<Option<Attributes>> {
        self.inner.catalog.attributes()
    }

    /// Fields of the manifest's root that the specification does not know.
    ///
    /// # Errors
    ///
    /// As [`File::attributes`].
    pub fn extra(&self) -> Result<Attributes> {
        self.inner.catalog.extra()
    }

    /// Everything that a user should know and that is no error. Decodes every object, and keeps none in
    /// memory.
    pub fn warnings(&self) -> Vec<Warning> {
        let of_file = |warning: &zt_manifest::Warning| warning_of(None, warning);
        let truncated = self.truncated().map(Warning::from);
        let mut warnings: Vec<Warning> = truncated.into_iter().collect();
        warnings.extend(self.inner.remarks.iter().cloned());
        warnings.extend(self.inner.tolerated.warnings());
        warnings.extend(self.inner.catalog.warnings().iter().map(of_file));
        let catalog = &self.inner.catalog;
        for at in &catalog.order(&self.inner.registry).warned {
            self.peek(*at, |entry| {
                let of_object = |warning| warning_of(Some(entry.name()), warning);
                warnings.extend(entry.resolved.warnings.iter().map(of_object));
            });
        }
        warnings
    }

    /// The fault of a file of another kind whose end is missing, if its reader was asked to open it all
    /// the same. Its offset is the first missing byte. Objects that are cut have faults of their own; others
    /// may be missing altogether, if their kind lists them at the end. It is among the
    /// [warnings](File::warnings) and a problem to [`File::verify`].
    pub fn truncated(&self) -> Option<&Error> {
        self.inner.truncated.as_ref()
    }

    /// How many objects there are, faulty ones included.
    pub fn len(&self) -> usize {
        self.inner.catalog.len()
    }

    /// Whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The objects' names. Nothing is decoded.
    ///
    /// They come in the order of the file's index. Our writer sorts it as deterministic CBOR does:
    /// shorter names first, names of one length by their bytes. [`File::entries`] has the order of the
    /// data.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|at| self.inner.catalog.name(at))
    }

    /// The object of that name, `None` where there is none.
    ///
    /// # Errors
    ///
    /// `Some(Err(_))`: the object's fault, if it cannot be read at all.
    pub fn get(&self, name: &str) -> Option<Result<Tensor<'_>>> {
        let at = self.inner.catalog.find(name)?;
        Some(self.entry_at(at)?.tensor())
    }

    /// The object of that name. Only this object is decoded and checked; no data is touched.
    ///
    /// # Errors
    ///
    /// Code `not-found`; the object's fault, if it cannot be read at all. An object that breaks a
    /// rule of its format has a handle: see [`Tensor::fault`].
    pub fn tensor(&self, name: &str) -> Result<Tensor<'_>> {
        let missing = || Err(Error::from(Fault::NoSuchObject).with_object(name));
        self.get(name).unwrap_or_else(missing)
    }

    /// Every object in the order of [`File::names`], each decoded when it comes.
    ///
    /// # Errors
    ///
    /// The faults of objects, each in the place of its object.
    ///
    /// ```
    /// # use zt::{Dense, File, Writer};
    /// # let mut bytes = Vec::new();
    /// # let mut writer = Writer::new(&mut bytes)?;
    /// # writer.add("bias", &Dense::from_slice(&[3], &[0.5f32, 1.0, 1.5])?)?;
    /// # writer.finish()?;
    /// let file = File::from_bytes(bytes)?;
    /// for tensor in file.tensors() {
    ///     let tensor = tensor?;
    ///     assert_eq!((tensor.name(), tensor.shape()), ("bias", &[3][..]));
    ///     assert_eq!(tensor.dtype(), Some(zt::DType::F32));
    /// }
    /// # Ok::<(), zt::Error>(())
    /// ```
    pub fn tensors(&self) -> impl Iterator<Item = Result<Tensor<'_>>> {
        (0..self.len()).filter_map(|at| Some(self.entry_at(at)?.tensor()))
    }

    /// Every object in the order of its data, faulty ones included. This is the order in which a writer
    /// was given them: reading all of a file in this order reads it from front to back.
    ///
    /// Decodes every object, on all cores, and keeps all in memory.
    ///
    /// ```
    /// # use zt::{Dense, File, Writer};
    /// # let mut bytes = Vec::new();
    /// # let mut writer = Writer::new(&mut bytes)?;
    /// for name in ["layers.10.bias", "layers.2.bias", "head"] {
    ///     writer.add(name, &Dense::from_slice(&[1], &[0.5f32])?)?;
    /// }
    /// writer.finish()?;
    /// let file = File::from_bytes(bytes)?;
    /// let names: Vec<_> = file.names().collect();
    /// assert_eq!(names, ["head", "layers.2.bias", "layers.10.bias"]);
    /// let entries = file.entries();
    /// assert_eq!(entries[0].name(), "layers.10.bias");
    /// assert_eq!(*entries[0].tensor()?.values::<f32>()?, [0.5]);
    /// # Ok::<(), zt::Error>(())
    /// ```
    pub fn entries(&self) -> Vec<Entry<'_>> {
        let order = self.inner.catalog.kept_order(&self.inner.registry);
        let entries = order.all.iter();
        entries.filter_map(|at| self.entry_at(*at as usize)).collect()
    }

    /// Shows every object to `add`, on all cores, and hands over the sum of some hundred neighbours to `take`,
    /// in the order of [`File::entries`]. The objects of a `.zt` file are decoded for this alone and not kept: their order takes
    /// 4 bytes each.
    ///
    /// ```
    /// # use zt::{Dense, File, Writer};
    /// # let mut bytes = Vec::new();
    /// # let mut writer = Writer::new(&mut bytes)?;
    /// # writer.add("bias", &Dense::from_slice(&[3], &[0.5f32, 1.0, 1.5])?)?;
    /// # writer.finish()?;
    /// let file = File::from_bytes(bytes)?;
    /// let mut list = String::new();
    /// let add = |lines: &mut String, entry: &zt::Entry<'_>| lines.extend([entry.name(), "\n"]);
    /// file.fold_entries(add, |lines| list.push_str(&lines));
    /// assert_eq!(list, "bias\n");
    /// # Ok::<(), zt::Error>(())
    /// ```
    pub fn fold_entries<T: Default + Send>(
        &self,
        add: impl Fn(&mut T, &Entry<'_>) + Sync,
        take: impl FnMut(T),
    ) {
        let order = self.data_order();
        let add = |sum: &mut T, at: usize| {
            let place = order.get(at).copied().unwrap_or(u32::MAX);
            self.peek(place, |entry| add(sum, entry));
        };
        stretches::fold(0..order.len(), add, take);
    }

    /// Decoded bytes of all components; an unknown length counts as 0. Decodes every object, and keeps
    /// none in memory.
    pub fn decoded_len(&self) -> u64 {
        let add = |sum: &mut u64, at: usize| {
            let place = u32::try_from(at).unwrap_or(u32::MAX);
            let len = self.peek(place, |entry| {
                let objects = entry.object().into_iter();
                let components = objects.flat_map(|object| &object.components);
                let lens = components.filter_map(|(_, component)| component.blob.decoded_len);
                lens.fold(0, u64::saturating_add)
            });
            *sum = sum.saturating_add(len.unwrap_or(0));
        };
        let mut all = 0u64;
        stretches::fold(0..self.len(), add, |sum| all = all.saturating_add(sum));
        all
    }

    /// The order of the objects' data: their places in [`File::names`]. The first call decodes every
    /// object, and keeps none in memory.
    pub(crate) fn data_order(&self) -> &[u32] {
        &self.inner.catalog.order(&self.inner.registry).all
    }

    /// The result of `look` for an object. The object is decoded for this call alone, unless it is kept
    /// already.
    fn peek<T>(&self, place: u32, look: impl FnOnce(&Entry<'_>) -> T) -> Option<T> {
        let (catalog, at) = (&self.inner.catalog, place as usize);
        let decoded = catalog.decoded(at, &self.inner.registry)?;
        Some(look(&self.entry_of(place, &decoded)))
    }

    /// Adds the objects at these places, decoded on all cores.
    pub(crate) fn decode<'f>(&'f self, places: &[u32], to: &mut Vec<(u32, Decoded<'f>)>) {
        let one = |stretch: &mut Vec<_>, at: usize| {
            let place = places.get(at).copied().unwrap_or(u32::MAX);
            let catalog = &self.inner.catalog;
            let decoded = catalog.decoded(place as usize, &self.inner.registry);
            stretch.extend(decoded.map(|decoded| (place, decoded)));
        };
        stretches::fold(0..places.len(), one, |stretch| to.extend(stretch));
    }

    pub(crate) fn entry_of<'e>(&'e self, place: u32, resolved: &'e Resolved) -> Entry<'e> {
        Entry { file: &self.inner, name: self.inner.catalog.name(place as usize), resolved }
    }

    /// The object at this place of [`File::names`], decoded if it was not before. `None` behind the last one.
    pub fn entry_at(&self, at: usize) -> Option<Entry<'_>> {
        let resolved = self.inner.catalog.resolve(at, &self.inner.registry)?;
        Some(self.entry_of(u32::try_from(at).ok()?, resolved))
    }

    /// The place of an object in [`File::names`], for [`File::entry_at`]. Nothing is decoded.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.inner.catalog.find(name)
    }

    /// The formats and logical types that this file is read with.
    pub fn registry(&self) -> &Registry {
        &self.inner.registry
    }
}

debug::fields!(File, |file| kind: file.inner.kind, objects: file.len());

/// An object of a file, sound or faulty.
///
/// ```
/// # use zt::{Dense, File, Writer};
/// # let mut bytes = Vec::new();
/// # let mut writer = Writer::new(&mut bytes)?;
/// # writer.add("w", &Dense::from_slice(&[2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?)?;
/// # writer.finish()?;
/// # let file = File::from_bytes(bytes)?;
/// for entry in file.entries() {
///     match entry.fault() {
///         None => println!("{}: {:?}", entry.name(), entry.tensor()?.shape()),
///         Some(fault) => eprintln!("{}: {fault} [{}]", entry.name(), fault.code()),
///     }
/// }
/// # Ok::<(), zt::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Entry<'f> {
    file: &'f Inner,
    name: &'f str,
    resolved: &'f Resolved,
}

impl<'f> Entry<'f> {
    /// Its name.
    pub fn name(&self) -> &'f str {
        self.name
    }

    /// Its fault: it cannot be read at all, or it breaks a rule of its format. In the second case
    /// [`Entry::tensor`] still reads each component, but the components have no meaning together.
    pub fn fault(&self) -> Option<&'f Error> {
        let unreadable = self.resolved.object.as_ref().err();
        let unreadable = unreadable.map(|faulty| &faulty.error);
        unreadable.or(self.resolved.fault.as_ref())
    }

    /// Its validated manifest entry.
    ///
    /// # Errors
    ///
    /// Its fault, if it cannot be read at all.
    pub fn object(&self) -> Result<&'f Object> {
        let object = self.resolved.object.as_ref();
        object.map_err(|faulty| faulty.error.clone())
    }

    /// The fields of an object that cannot be read at all, as far as they are known; `None` for all others.
    pub fn raw(&self) -> Option<&'f RawObject> {
        let fault = self.resolved.object.as_ref().err();
        fault.map(|faulty| &*faulty.raw)
    }

    /// The handle to read it with.
    ///
    /// # Errors
    ///
    /// Its fault, if it cannot be read at all.
    pub fn tensor(&self) -> Result<Tensor<'f>> {
        let object = self.object()?;
        Ok(Tensor::new(self.file, self.name, self.resolved, object))
    }
}

debug::fields!(Entry<'_>, |entry| name: entry.name, fault: entry.fault());

pub(crate) fn warning_of(object: Option<&str>, warning: &zt_manifest::Warning) -> Warning {
    Warning {
        object: object.map(str::to_owned),
        component: warning.role().map(str::to_owned),
        ..Warning::new(warning.code(), warning.to_string())
    }
}
