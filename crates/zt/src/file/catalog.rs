//! The objects of an open file: an index of names. An object is decoded on demand.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use zt_container::{Container, Layout, LimitExceeded, Limits, Source, Span};
use zt_formats::{Buffer, Registry, Signature};
use zt_manifest::{
    Attributes, Component, Index, ManifestDigest, Object, Placement, RawObject, Version, Warning,
};

use crate::cores::{parallel, stretches};
use crate::error::{Error, Result};
use crate::file::unfinished::has_lost_page;

/// Names in the order of the file, each with its object.
pub(crate) struct Catalog {
    listing: Listing,
    order: OnceLock<Order>,
}

/// Indices of objects, in the order of their data.
pub(crate) struct Order {
    pub(crate) all: Box<[u32]>,
    pub(crate) warned: Box<[u32]>,
}

enum Listing {
    Manifest(Box<Listed>),
    Built(Built),
}

/// A `.zt` file: objects are decoded from its manifest.
struct Listed {
    index: Index<ManifestBytes>,
    placement: Placement,
    manifest: Span,
    /// The objects that are kept. Of two threads that want one, the second waits for the first.
    pages: Box<[OnceLock<Page>]>,
}

/// Neighbours of the index, in one piece of memory: the first of them that is kept allocates it.
type Page = Box<[OnceLock<Resolved>]>;

/// Objects in a page.
const PAGE: usize = 32;

/// Bytes that a stretch of kept objects takes, about. They are allocated and freed before the first object, so
/// that the heap of the thread grows once. In glibc, it otherwise grows by 4 KiB at a time, and all threads
/// that need a page wait meanwhile.
///
/// Pays: 100,000 objects are listed in 0.74 of the time on two cores, and read in 0.94 of the CPU time.
const ROOM: usize = 200 << 10;

/// Another file, whose reader made every object; `order` sorts them by name.
struct Built {
    names: Vec<String>,
    objects: Vec<Resolved>,
    order: Vec<u32>,
    /// By source.
    places: Vec<SourceOrigin>,
    attributes: Option<Attributes>,
    extra: Attributes,
}

/// Where the bytes of a source come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SourceOrigin {
    /// They are a file.
    File,
    /// Made by the reader of a kind; they have no place in a file.
    Made,
    /// Made from the bytes of a source, from this offset on.
    MadeOf(usize, u64),
}

/// The components of an object that have a flag of their own for a verified digest. The results of the
/// others are kept by blob.
pub(crate) const FLAGS: usize = 64;

/// An object, or why there is none.
pub(crate) struct Resolved {
    /// Its components can be read.
    pub(crate) object: Result<Object, Arc<Faulty>>,
    /// The rule of its format that it breaks: its components have no meaning together.
    pub(crate) fault: Option<Error>,
    home: Home,
    /// For each of the first [`FLAGS`] components: whether its digest was found right.
    verified: AtomicU64,
    pub(crate) warnings: Box<[Warning]>,
}

/// A decoded object, which the catalog keeps or the caller owns.
pub(crate) enum Decoded<'c> {
    Kept(&'c Resolved),
    Made(Resolved),
}

impl std::ops::Deref for Decoded<'_> {
    type Target = Resolved;

    fn deref(&self) -> &Resolved {
        match self {
            Decoded::Kept(resolved) => resolved,
            Decoded::Made(resolved) => resolved,
        }
    }
}

/// The sources that hold the components.
pub(crate) enum Home {
    /// All in one.
    One(usize),
    /// Each in its own, in the order of the components.
    Each(Box<[usize]>),
}

impl Home {
    /// The source of a component by its index; `usize::MAX`, which is no source, if it has none.
    pub(crate) fn of(&self, component: usize) -> usize {
        match self {
            Home::One(source) => *source,
            Home::Each(sources) => sources.get(component).copied().unwrap_or(usize::MAX),
        }
    }
}

pub(crate) struct Faulty {
    pub(crate) error: Error,
    /// The fields that are known.
    pub(crate) raw: Arc<RawObject>,
}

impl Resolved {
    pub(crate) fn new(object: Result<Object, Arc<Faulty>>, home: Home) -> Self {
        Resolved {
            object,
            fault: None,
            home,
            verified: AtomicU64::new(0),
            warnings: Box::default(),
        }
    }

    /// The same object with the fault that its format finds, if any.
    pub(crate) fn with_fault(self, fault: Option<Error>) -> Self {
        Resolved { fault, ..self }
    }

    /// The same object with sources counted from `base`. Its digests are compared anew.
    pub(crate) fn moved(&self, base: usize) -> Self {
        let moved = |source: usize| source.strict_add(base);
        let home = match &self.home {
            Home::One(source) => Home::One(moved(*source)),
            Home::Each(sources) => Home::Each(sources.iter().copied().map(moved).collect()),
        };
        Resolved {
            warnings: self.warnings.clone(),
            fault: self.fault.clone(),
            ..Resolved::new(self.object.clone(), home)
        }
    }

    /// The same object with other errors about it.
    pub(crate) fn with_errors(mut self, change: impl Fn(Error) -> Error) -> Self {
        if let Err(faulty) = &mut self.object {
            *faulty = Arc::new(Faulty {
                error: change(faulty.error.clone()),
                raw: Arc::clone(&faulty.raw),
            });
        }
        self.fault = self.fault.map(change);
        self
    }

    /// The place of the component with this role.
    ///
    /// A linear search: objects have ten components at most, and files cannot force more than
    /// `Limits::components`. To ask for each of 1,024 takes about a millisecond.
    pub(crate) fn component(&self, role: &str) -> Option<usize> {
        let components = &self.object.as_ref().ok()?.components;
        components.iter().position(|(name, _)| name == role)
    }

    pub(crate) fn source(&self, component: usize) -> usize {
        self.home.of(component)
    }

    pub(crate) fn is_verified(&self, component: usize) -> bool {
        let flags = self.verified.load(Ordering::Relaxed);
        component < FLAGS && flags & (1 << component) != 0
    }

    pub(crate) fn set_verified(&self, component: usize) {
        if component < FLAGS {
            self.verified.fetch_or(1 << component, Ordering::Relaxed);
        }
    }

    /// The beginning of the data, for listing objects in the order of their data: a source, an offset in
    /// it, and whether there are bytes. A component without bytes shares its offset with the next one
    /// written, and comes before it. Data made from another source begins where that source's bytes do.
    fn beginning(&self, places: &[SourceOrigin]) -> (usize, u64, bool) {
        let place = |(at, (offset, byte_len)): (usize, (Option<u64>, Option<u64>))| {
            let source = self.source(at);
            let has_bytes = byte_len != Some(0);
            match places.get(source) {
                Some(SourceOrigin::MadeOf(from, start)) => Some((*from, *start, has_bytes)),
                _ => offset.map(|offset| (source, offset, has_bytes)),
            }
        };
        let first = match &self.object {
            Ok(object) => {
                let spans = object.components.iter().map(|(_, part)| part.blob.span);
                let spans = spans.map(|span| (Some(span.offset()), Some(span.byte_len())));
                spans.enumerate().filter_map(place).min()
            }
            Err(faulty) => {
                let components = faulty.raw.components.iter();
                let spans = components.map(|(_, part)| (part.offset, part.length));
                spans.enumerate().filter_map(place).min()
            }
        };
        first.unwrap_or((self.source(0), u64::MAX, true))
    }

    /// The source and the offset at which its data begins. Data made from another source begins where that
    /// source's bytes do.
    pub(crate) fn place(&self, places: &[SourceOrigin]) -> (usize, u64) {
        let (source, offset, _) = self.beginning(places);
        (source, offset)
    }

    /// The end of the last blob of a sound object of a `.zt` file; 0 without blobs.
    pub(crate) fn end(&self) -> u64 {
        let components = self.object.iter().flat_map(|object| &object.components);
        let ends = components.map(|(_, component)| component.blob.span.end());
        ends.max().unwrap_or(0)
    }

    /// The beginning of the first blob of an object of a `.zt` file.
    pub(crate) fn start(&self) -> u64 {
        self.beginning(&[]).1
    }
}

/// The manifest: lent by the source if it can, else a copy.
pub(crate) enum ManifestBytes {
    Lent(Arc<dyn Source>, Span),
    Owned(Buffer),
}

impl AsRef<[u8]> for ManifestBytes {
    fn as_ref(&self) -> &[u8] {
        match self {
            // The source has lent this span before, and its answer never changes.
            ManifestBytes::Lent(source, span) => source.slice(*span).unwrap_or_default(),
            ManifestBytes::Owned(bytes) => bytes,
        }
    }
}

impl Catalog {
    /// As [`Catalog::from_damaged_zt`]; refuses a manifest that does not have the digest that it carries.
    pub(crate) fn from_zt(source: &Arc<dyn Source>, limits: &Limits) -> Result<Self> {
        let catalog = Self::from_damaged_zt(source, limits)?;
        if let Some(listed) = catalog.listed() {
            let checked = listed.index.check_digest();
            checked.map_err(|error| Error::in_manifest(error, listed.manifest))?;
        }
        Ok(catalog)
    }

    /// One pass over the manifest of a `.zt` file.
    pub(crate) fn from_damaged_zt(source: &Arc<dyn Source>, limits: &Limits) -> Result<Self> {
        let container = Container::open(source, limits)?;
        let manifest = container.footer().manifest();
        let data = container.footer().data();
        let bytes = if source.slice(manifest).is_some() {
            ManifestBytes::Lent(Arc::clone(source), manifest)
        } else {
            // A long one takes large pages: half of the time to read 12 MB went into small ones.
            let mut bytes = Buffer::try_zeroed(manifest.byte_len())?;
            let read = source.read_at(manifest.offset(), &mut bytes);
            read.map_err(zt_container::Error::Io)?;
            ManifestBytes::Owned(bytes)
        };
        let layout = container.layout();
        let index = Index::parse(bytes, layout, limits)
            .map_err(|error| Error::in_manifest(error, manifest))?;
        let placement = Placement::new(layout, data, *limits);
        let count = index.len().div_ceil(PAGE);
        let mut pages: Vec<OnceLock<Page>> = Vec::new();
        pages.try_reserve_exact(count).map_err(|_| {
            let byte_len = count.saturating_mul(size_of::<OnceLock<Page>>()) as u64;
            zt_container::Error::Limit(LimitExceeded::Allocation { byte_len })
        })?;
        pages.resize_with(count, OnceLock::new);
        Ok(Catalog {
            listing: Listing::Manifest(Box::new(Listed {
                index,
                placement,
                manifest,
                pages: pages.into(),
            })),
            order: OnceLock::new(),
        })
    }

    /// The objects that a reader of another format has made, in the order of their data.
    pub(crate) fn from_objects(
        objects: Vec<(String, Box<Resolved>)>,
        places: Vec<SourceOrigin>,
        attributes: Option<Attributes>,
        extra: Attributes,
    ) -> Result<Self> {
        let objects = objects.into_iter().map(|(name, object)| (name, *object));
        let (names, objects): (Vec<String>, Vec<Resolved>) = objects.unzip();
        let count = u32::try_from(names.len()).map_err(|_| {
            let byte_len = (names.len() as u64).strict_mul(4);
            zt_container::Error::Limit(LimitExceeded::Allocation { byte_len })
        })?;
        let mut order: Vec<u32> = (0..count).collect();
        let name = |at: &u32| names.get(*at as usize).map(String::as_str);
        order.sort_by_key(name);
        let mut neighbours = order.iter().zip(order.iter().skip(1));
        if let Some((first, _)) = neighbours.find(|(a, b)| name(a) == name(b)) {
            let error = Error::from(crate::error::Fault::DuplicateName);
            return Err(error.with_object(name(first).unwrap_or_default()));
        }
        Ok(Catalog {
            listing: Listing::Built(Built { names, objects, order, places, attributes, extra }),
            order: OnceLock::new(),
        })
    }

    pub(crate) fn len(&self) -> usize {
        match &self.listing {
            Listing::Manifest(listed) => listed.index.len(),
            Listing::Built(built) => built.objects.len(),
        }
    }

    pub(crate) fn name(&self, at: usize) -> &str {
        match &self.listing {
            Listing::Manifest(listed) => listed.index.name(at),
            Listing::Built(built) => built.name(at),
        }
    }

    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        match &self.listing {
            Listing::Manifest(listed) => listed.index.find(name),
            Listing::Built(built) => {
                let by_name = |at: &u32| built.name(*at as usize).cmp(name);
                let found = built.order.binary_search_by(by_name).ok()?;
                built.order.get(found).map(|at| *at as usize)
            }
        }
    }

    pub(crate) fn attributes(&self) -> Result<Option<Attributes>> {
        match &self.listing {
            Listing::Manifest(listed) => listed.blamed(listed.index.attributes()),
            Listing::Built(built) => Ok(built.attributes.clone()),
        }
    }

    pub(crate) fn extra(&self) -> Result<Attributes> {
        match &self.listing {
            Listing::Manifest(listed) => listed.blamed(listed.index.extra()),
            Listing::Built(built) => Ok(built.extra.clone()),
        }
    }

    /// What the manifest says, if this is a `.zt` file.
    fn listed(&self) -> Option<&Listed> {
        match &self.listing {
            Listing::Manifest(listed) => Some(listed),
            Listing::Built(_) => None,
        }
    }

    /// By source; none for a `.zt` file.
    fn places(&self) -> &[SourceOrigin] {
        match &self.listing {
            Listing::Manifest(_) => &[],
            Listing::Built(built) => &built.places,
        }
    }

    pub(crate) fn warnings(&self) -> &[Warning] {
        self.listed().map_or(&[], |listed| listed.index.warnings())
    }

    pub(crate) fn place(&self, source: usize) -> SourceOrigin {
        match &self.listing {
            Listing::Manifest(_) => SourceOrigin::File,
            Listing::Built(built) => match built.places.get(source) {
                Some(place) => *place,
                None => SourceOrigin::Made,
            },
        }
    }

    /// The manifest of a `.zt` file, and where it is.
    pub(super) fn manifest(&self) -> Option<(Span, &[u8])> {
        let listed = self.listed()?;
        Some((listed.manifest, listed.index.cbor()))
    }

    /// Whether the end of the file may be an incomplete copy that still decodes: it has a page of zeros, or
    /// lacks the footer magic and so looks like layout 1.0.
    pub(super) fn may_be_torn(&self) -> bool {
        self.listed().is_some_and(|listed| {
            listed.placement.layout == Layout::V1_0
                || has_lost_page(listed.manifest, listed.index.cbor())
        })
    }

    /// What the manifest of a `.zt` file says about its own bytes.
    pub(crate) fn manifest_digest(&self) -> Option<&ManifestDigest> {
        self.listed().map(|listed| listed.index.digest())
    }

    pub(crate) fn placement(&self) -> Option<(&Placement, Option<&Version>)> {
        let listed = self.listed()?;
        Some((&listed.placement, listed.index.version()))
    }

    /// The object, decoded and checked the first time.
    pub(crate) fn resolve(&self, at: usize, registry: &Registry) -> Option<&Resolved> {
        match &self.listing {
            Listing::Manifest(listed) => {
                let page = listed.pages.get(at / PAGE).filter(|_| at < self.len())?;
                let page = page.get_or_init(|| (0..PAGE).map(|_| OnceLock::new()).collect());
                Some(page.get(at % PAGE)?.get_or_init(|| listed.decode(at, registry)))
            }
            Listing::Built(built) => built.objects.get(at),
        }
    }

    /// The object as it is kept, or decoded for the caller alone.
    pub(crate) fn decoded(&self, at: usize, registry: &Registry) -> Option<Decoded<'_>> {
        match self.listed() {
            Some(listed) if at < self.len() && listed.kept(at).is_none() => {
                Some(Decoded::Made(listed.decode(at, registry)))
            }
            _ => self.resolve(at, registry).map(Decoded::Kept),
        }
    }

    /// The order of the objects' data. The first call looks at every object, and keeps none.
    pub(crate) fn order(&self, registry: &Registry) -> &Order {
        // Outside the lock: a thread of the pool that waits for it may have to run another caller's work.
        let order = self.order.get();
        order.unwrap_or_else(|| {
            let sorted = self.sorted(registry, false);
            self.order.get_or_init(|| sorted)
        })
    }

    /// As [`Catalog::order`], with every object decoded and kept.
    pub(crate) fn kept_order(&self, registry: &Registry) -> &Order {
        let Some(order) = self.order.get() else {
            let sorted = self.sorted(registry, true);
            return self.order.get_or_init(|| sorted);
        };
        let keep = |(): &mut (), at| {
            self.resolve(at, registry);
        };
        stretches::fold(0..self.len(), keep, |()| ());
        order
    }

    fn sorted(&self, registry: &Registry, keep: bool) -> Order {
        let narrow = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let look = |keys: &mut Vec<Key>, at: usize| {
            if keep && keys.is_empty() {
                drop(black_box(Vec::<u8>::with_capacity(ROOM)));
            }
            let key = |resolved: &Resolved| {
                let (source, offset, has_bytes) = resolved.beginning(self.places());
                let is_warned = !resolved.warnings.is_empty();
                (narrow(source), offset, has_bytes, narrow(at), is_warned)
            };
            let plain = self.listed().filter(|_| !keep);
            let plain = plain.and_then(|listed| listed.index.beginning(at));
            keys.extend(if let Some((offset, has_bytes)) = plain {
                Some((0, offset, has_bytes, narrow(at), false))
            } else if keep {
                self.resolve(at, registry).map(key)
            } else {
                self.decoded(at, registry).map(|decoded| key(&decoded))
            });
        };
        let mut keys: Vec<Key> = Vec::with_capacity(self.len());
        stretches::fold(0..self.len(), look, |stretch| keys.extend(stretch));
        parallel::sort(&mut keys);
        let warned = keys.iter().filter(|(.., is_warned)| *is_warned);
        Order {
            warned: warned.map(|(_, _, _, at, _)| *at).collect(),
            all: keys.iter().map(|(_, _, _, at, _)| *at).collect(),
        }
    }
}

/// The beginning of an object's data (see [`Resolved::beginning`]), its index, and whether it has warnings.
type Key = (u32, u64, bool, u32, bool);

impl Listed {
    /// The result, whose error is about the manifest.
    fn blamed<T>(&self, result: zt_manifest::Result<T>) -> Result<T> {
        result.map_err(|error| Error::in_manifest(error, self.manifest))
    }

    fn kept(&self, at: usize) -> Option<&Resolved> {
        self.pages.get(at / PAGE)?.get()?.get(at % PAGE)?.get()
    }

    fn decode(&self, at: usize, registry: &Registry) -> Resolved {
        let mut warnings = Vec::new();
        let mut fault = None;
        let validated = self.index.validated(at, &self.placement, &mut warnings);
        let object = match validated {
            Ok(mut object) => {
                let found = check(&mut object, registry);
                fault = found.map(|fault| fault.with_object(self.index.name(at)));
                Ok(object)
            }
            Err(fault) => {
                let mut error = Error::in_manifest(fault.error, self.manifest);
                error = error.with_object(self.index.name(at));
                if let Some(role) = &fault.role {
                    error = error.with_component(role);
                }
                // Decoded a second time, because validating a sound object consumes it.
                let raw = Arc::new(self.index.object(at));
                Err(Arc::new(Faulty { error, raw }))
            }
        };
        Resolved { warnings: warnings.into(), fault, ..Resolved::new(object, Home::One(0)) }
    }
}

impl Built {
    fn name(&self, at: usize) -> &str {
        self.names.get(at).map_or("", String::as_str)
    }
}

/// The error with the span of the blob of its component.
pub(crate) fn blame_blob(error: Error, object: &Object) -> Error {
    let component = error.component().and_then(|role| object.component(role));
    match component.map(|component| component.blob.span) {
        Some(span) => error.with_span(span),
        None => error,
    }
}

/// The rule of its format that the object breaks. Fills in lengths that a legacy file leaves out and that
/// the format knows.
pub(crate) fn check(object: &mut Object, registry: &Registry) -> Option<Error> {
    if let Err(error) = registry.check(&object.format, &Signature::of(object)) {
        return Some(blame_blob(error.into(), object));
    }
    let unknown = |(_, component): &(_, Component)| component.blob.decoded_len.is_none();
    if object.components.iter().any(unknown)
        && let Some(format) = registry.format(&object.format)
    {
        let signature = Signature::of(object);
        let roles = object.components.iter().map(|(role, _)| role);
        let lengths = roles.map(|role| format.expected_len(role, &signature, registry));
        let lengths: Vec<Option<u64>> = lengths.collect();
        for ((_, component), length) in object.components.iter_mut().zip(lengths) {
            component.blob.decoded_len = component.blob.decoded_len.or(length);
        }
    }
    None
}
