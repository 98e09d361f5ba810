//! The names of a manifest and the places of its objects, from one pass over its bytes.

use zt_container::{Layout, Limits};

use crate::attributes::Attributes;
use crate::cbor::{Cursor, Flaw, Head, Scanner, text_at};
use crate::error::{Error, LimitExceeded, Result, abridged};
use crate::names::Names;
use crate::object::Object;
use crate::own_digest::{self, ManifestDigest};
use crate::plain;
use crate::raw::{Fault, RawObject};
use crate::schema::{self, ROOT_KEYS, describe};
use crate::validate::Placement;
use crate::value::Value;
use crate::version::{NEWEST_MINOR, Version};
use crate::warning::Warning;

/// A manifest that is well-formed, and an index of its objects. Objects are decoded on request.
///
/// `B` is the manifest's bytes, owned or borrowed. The index adds twelve bytes for each object. Objects
/// and attributes stay encoded until a caller asks for them.
///
/// ```
/// use zt_manifest::{Index, Layout, Limits, Manifest, Object};
///
/// let manifest = Manifest {
///     objects: vec![("w".to_owned(), Object::new([2, 3], "dense"))],
///     ..Manifest::default()
/// };
/// let index = Index::parse(manifest.to_cbor()?, Layout::V1_1, &Limits::default())?;
/// let w = index.find("w").unwrap();
/// assert_eq!(index.object(w).shape, Some(vec![2, 3]));
/// # Ok::<(), zt_manifest::Error>(())
/// ```
#[derive(Debug)]
pub struct Index<B> {
    cbor: B,
    layout: Layout,
    names: Names,
    version: Option<Version>,
    /// The place of the root's `attributes`, if their value is a map.
    attributes: Option<usize>,
    /// Where the objects begin and end, so that [`Index::extra`] can pass over them.
    objects: (usize, usize),
    limits: Limits,
    digest: ManifestDigest,
    warnings: Vec<Warning>,
}

impl<B: AsRef<[u8]>> Index<B> {
    /// Reads a manifest in one pass. Time and memory are proportional to its bytes, also for hostile
    /// ones.
    ///
    /// # Errors
    ///
    /// The file is at fault, and is refused.
    ///
    /// * `cbor`: not one well-formed item, invalid UTF-8, a duplicate key in any map, or nesting beyond
    ///   the limit
    /// * `version`: another major version than 1
    /// * `schema`: a root that the layout does not allow
    /// * `manifest-size`: longer than the limit, or than 4 GiB
    ///
    /// Spec: §3.1, §3.2, §11; legacy.
    pub fn parse(cbor: B, layout: Layout, limits: &Limits) -> Result<Self> {
        let bytes = cbor.as_ref();
        let limit = limits.manifest_len.min(u32::MAX.into());
        let found = bytes.len() as u64;
        if found > limit {
            let exceeded = zt_container::LimitExceeded::Manifest { limit, found };
            return Err(zt_container::Error::Limit(exceeded).into());
        }
        let root = match layout {
            Layout::V0_1 => Root::array(bytes, limits)?,
            _ => Root::map(bytes, layout, limits)?,
        };
        let mut warnings = Vec::new();
        let version = match layout {
            Layout::V0_1 => None,
            _ => Some(version(bytes, root.version, &mut warnings)?),
        };
        // The version comes first: for another major version, it is the only useful error.
        if let Some(error) = root.error {
            return Err(error);
        }
        Ok(Index {
            layout,
            names: root.names,
            version,
            attributes: root.attributes,
            objects: root.objects.unwrap_or_default(),
            limits: *limits,
            digest: match layout {
                Layout::V1_1 => ManifestDigest::of(bytes),
                _ => ManifestDigest::Absent,
            },
            warnings,
            cbor,
        })
    }

    /// The version that the manifest declares; none in layout 0.1.
    pub const fn version(&self) -> Option<&Version> {
        self.version.as_ref()
    }

    /// Whether the manifest's bytes have the digest that it carries. [`Index::parse`] takes damaged bytes,
    /// too: a repair can use them.
    ///
    /// Spec: §3.6.
    pub const fn digest(&self) -> &ManifestDigest {
        &self.digest
    }

    /// Refuses a manifest whose bytes have another digest than it carries.
    ///
    /// # Errors
    ///
    /// [`Error::Digest`]
    pub fn check_digest(&self) -> Result<()> {
        match &self.digest {
            ManifestDigest::Wrong { expected, found } => {
                Err(Error::Digest { expected: expected.clone(), found: found.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Warnings about the file as a whole.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The attributes of the file, decoded; `None` if there are none, or if they are `null`.
    ///
    /// # Errors
    ///
    /// `allocation` if there is no memory for them: up to 32 bytes for each encoded byte.
    pub fn attributes(&self) -> Result<Option<Attributes>> {
        let Some(at) = self.attributes else {
            return Ok(None);
        };
        let bytes = self.cbor.as_ref();
        let mut cursor = Cursor::at(bytes, at);
        let map = match cursor.head() {
            Ok(Head::Map(len)) => cursor.map(len).map(Some),
            other => other.map(|_| None),
        };
        map.map_err(|flaw| flaw.into_error(bytes))
    }

    /// The root's fields that this crate does not know, decoded.
    ///
    /// In a file of layout 1.0, a field whose name 1.2 defines gets the prefix `1.0.`.
    ///
    /// # Errors
    ///
    /// As [`Index::attributes`].
    pub fn extra(&self) -> Result<Attributes> {
        let bytes = self.cbor.as_ref();
        self.unknown(bytes).map_err(|flaw| flaw.into_error(bytes))
    }

    fn unknown(&self, bytes: &[u8]) -> Result<Attributes, Flaw> {
        let mut cursor = Cursor::new(bytes);
        let Head::Map(mut left) = cursor.head()? else {
            return Ok(Attributes::new());
        };
        let mut pairs: Vec<(Value, Value)> = Vec::new();
        while cursor.more(&mut left) {
            let start = cursor;
            let key = cursor.text()?;
            if key.is_some() && cursor.offset() == self.objects.0 {
                cursor = Cursor::at(bytes, self.objects.1);
            } else if matches!(key.as_deref(), Some("version" | "attributes" | own_digest::KEY)) {
                cursor.skip()?;
            } else {
                cursor = start;
                pairs.push((cursor.value()?, cursor.value()?));
            }
        }
        Ok(schema::extra(pairs, &ROOT_KEYS, self.layout))
    }

    /// The number of objects.
    pub const fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are no objects.
    pub const fn is_empty(&self) -> bool {
        self.names.len() == 0
    }

    /// The name of the `index`th object, in the order of the file, borrowed from the manifest. Empty if
    /// `index` is out of range.
    pub fn name(&self, index: usize) -> &str {
        let name = self.names.name(self.cbor.as_ref(), index);
        name.unwrap_or_default()
    }

    /// All names, in the order of the file.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.len()).map(|index| self.name(index))
    }

    /// The position of the object with this name, by binary search.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.names.find(self.cbor.as_ref(), name)
    }

    /// The fields of the `index`th object, decoded on each call and not validated. A field of the wrong
    /// type, or above a limit, is left out, and the first one is kept as a fault. An `index` out of range
    /// gives an object without fields.
    pub fn object(&self, index: usize) -> RawObject {
        let bytes = self.cbor.as_ref();
        let Some(at) = self.names.object(index) else {
            return RawObject::default();
        };
        let mut raw = schema::object(bytes, at, self.layout, &self.limits);
        let minor = self.version.as_ref().map_or(0, |version| version.minor);
        // The framing decides how a file is read, but 1.1 and 1.2 have the same framing.
        raw.demands_decoded_len = self.layout == Layout::V1_1 && minor >= 2;
        let (found, limit) = (self.name(index).len(), self.limits.name_len);
        if found > limit {
            raw.note(None, LimitExceeded::Name { limit, found }.into());
        }
        raw
    }

    /// The `index`th object, validated: [`Index::object`] and [`RawObject::validate`], in one step for
    /// objects of the usual form. `placement` has the layout of this index.
    ///
    /// # Errors
    ///
    /// As [`RawObject::validate`].
    pub fn validated(
        &self,
        index: usize,
        placement: &Placement,
        warnings: &mut Vec<Warning>,
    ) -> Result<Object, Fault> {
        let bytes = self.cbor.as_ref();
        let plain = || {
            let name_len = self.names.byte_len(bytes, index)?;
            let is_plain = self.is_plain() && name_len <= self.limits.name_len;
            let at = self.names.object(index).filter(|_| is_plain)?;
            plain::object(bytes, at, placement, &self.limits)
        };
        match plain() {
            Some(object) => Ok(object),
            None => self.object(index).validate(placement, warnings),
        }
    }

    /// Where the data of the `index`th object begins, and whether that first component has bytes. The
    /// object is not decoded.
    ///
    /// `None` if the object has to be decoded to find out: in files of layout 0.1 and 1.0, in objects of an
    /// unusual form or without components, and if a digest may be of an unknown algorithm.
    pub fn beginning(&self, index: usize) -> Option<(u64, bool)> {
        let at = self.names.object(index).filter(|_| self.is_plain())?;
        plain::beginning(self.cbor.as_ref(), at)
    }

    /// Whether objects have the fields of 1.1 and later.
    const fn is_plain(&self) -> bool {
        !matches!(self.layout, Layout::V0_1 | Layout::V1_0)
    }

    /// The manifest's bytes.
    pub fn cbor(&self) -> &[u8] {
        self.cbor.as_ref()
    }
}

/// The fields of the root. A fault of the schema is kept until the pass has found the bytes well-formed.
#[derive(Default)]
struct Root {
    names: Names,
    version: Option<usize>,
    attributes: Option<usize>,
    objects: Option<(usize, usize)>,
    /// A root of 1.0 has the key `objects`, which belongs to later versions.
    has_objects_of_1_1: bool,
    error: Option<Error>,
}

impl Root {
    /// The root of 1.0 and later. Spec: §3.2, 1.0 §4.1.
    fn map(bytes: &[u8], layout: Layout, limits: &Limits) -> Result<Root> {
        let mut root = Root::default();
        let mut scanner = Scanner::new(bytes, 0, limits.nesting);
        let objects_key = match layout {
            Layout::V1_0 => "tensors",
            _ => "objects",
        };
        let scanned = root.scan_map(&mut scanner, objects_key);
        let scanned = scanned.and_then(|()| scanner.end());
        let scanned = scanned.and_then(|()| root.names.finish(bytes));
        scanned.map_err(|flaw| flaw.into_error(bytes))?;
        if root.error.is_none() && root.objects.is_none() {
            root.error = Some(if root.has_objects_of_1_1 {
                Error::FooterMissing
            } else {
                Error::missing(Some(0), objects_key)
            });
        }
        Ok(root)
    }

    fn scan_map(&mut self, scanner: &mut Scanner<'_>, objects_key: &str) -> Result<(), Flaw> {
        let start = scanner.cursor;
        let Head::Map(mut left) = scanner.cursor.head()? else {
            scanner.cursor = start;
            self.wrong(start, "root", "a map");
            return scanner.item(0);
        };
        let depth = scanner.enter(0, 0)?;
        let mut keys = scanner.open_map();
        while scanner.cursor.more(&mut left) {
            let mut key = scanner.cursor;
            scanner.key(depth, &mut keys)?;
            let value = scanner.cursor;
            match key.text()?.as_deref() {
                Some("version") => {
                    self.version = Some(value.offset());
                    scanner.item(depth)?;
                }
                Some("attributes") => {
                    match value.peek_head()? {
                        Head::Map(_) => self.attributes = Some(value.offset()),
                        Head::Simple(22) => {}
                        _ => self.wrong(value, "attributes", "a map"),
                    }
                    scanner.item(depth)?;
                }
                Some(key) if key == objects_key => {
                    self.scan_objects(scanner, depth, objects_key)?;
                    self.objects = Some((value.offset(), scanner.cursor.offset()));
                }
                key => {
                    self.has_objects_of_1_1 |= key == Some("objects");
                    scanner.item(depth)?;
                }
            }
        }
        scanner.close_map(keys)
    }

    fn scan_objects(
        &mut self,
        scanner: &mut Scanner<'_>,
        depth: usize,
        field: &str,
    ) -> Result<(), Flaw> {
        let start = scanner.cursor;
        let Head::Map(mut left) = scanner.cursor.head()? else {
            scanner.cursor = start;
            self.wrong(start, field, "a map");
            return scanner.item(depth);
        };
        let depth = scanner.enter(start.offset(), depth)?;
        self.names.reserve(left.unwrap_or_default())?;
        while scanner.cursor.more(&mut left) {
            let name = scanner.cursor;
            let is_text = name.peek_head()?.is_text();
            // The scanner does not compare names: the index sorts them anyway.
            scanner.item(depth)?;
            if is_text {
                self.names.push(name.offset(), scanner.cursor.offset())?;
            } else {
                self.wrong(name, "object name", "text");
            }
            scanner.object(depth)?;
        }
        Ok(())
    }

    /// The root of 0.1: an array of maps, each with its name inside.
    fn array(bytes: &[u8], limits: &Limits) -> Result<Root> {
        let mut root = Root::default();
        let mut scanner = Scanner::new(bytes, 0, limits.nesting);
        let scanned = root.scan_array(&mut scanner).and_then(|()| scanner.end());
        scanned.map_err(|flaw| flaw.into_error(bytes))?;
        let finished = root.names.finish(bytes);
        finished.map_err(|flaw| match flaw.duplicate_at() {
            // Real readers differ in which of the two they return, so none is right.
            Some(at) => Error::DuplicateName { offset: at as u64, name: text_at(bytes, at) },
            None => flaw.into_error(bytes),
        })?;
        Ok(root)
    }

    fn scan_array(&mut self, scanner: &mut Scanner<'_>) -> Result<(), Flaw> {
        let start = scanner.cursor;
        let Head::Array(mut left) = scanner.cursor.head()? else {
            scanner.cursor = start;
            self.wrong(start, "root", "an array");
            return scanner.item(0);
        };
        let depth = scanner.enter(0, 0)?;
        while scanner.cursor.more(&mut left) {
            let object = scanner.cursor;
            scanner.item(depth)?;
            match field(object, "name")? {
                Some(name) if name.peek_head()?.is_text() => {
                    self.names.push(name.offset(), object.offset())?;
                }
                Some(name) => self.wrong(name, "name", "text"),
                None if object.peek_head()?.is_map() => {
                    let offset = Some(object.offset() as u64);
                    self.error.get_or_insert(Error::missing(offset, "name"));
                }
                None => self.wrong(object, "object", "a map"),
            }
        }
        Ok(())
    }

    fn wrong(&mut self, item: Cursor<'_>, field: &str, expected: &'static str) {
        let at = item.offset() as u64;
        let error = || Error::schema(at, field.to_owned(), describe(item), expected);
        self.error.get_or_insert_with(error);
    }
}

/// A cursor at the value of the text key `name`, if `item` is a map that has it.
fn field<'a>(mut item: Cursor<'a>, name: &str) -> Result<Option<Cursor<'a>>, Flaw> {
    let Head::Map(mut left) = item.head()? else {
        return Ok(None);
    };
    while item.more(&mut left) {
        match item.text()? {
            Some(key) if key == name => return Ok(Some(item)),
            Some(_) => {}
            None => item.skip()?,
        }
        item.skip()?;
    }
    Ok(None)
}

/// Spec: §11.
fn version(bytes: &[u8], at: Option<usize>, warnings: &mut Vec<Warning>) -> Result<Version> {
    let at = at.ok_or(Error::missing(Some(0), "version"))?;
    let mut cursor = Cursor::at(bytes, at);
    let text = cursor.text().map_err(|flaw| flaw.into_error(bytes))?;
    let offset = at as u64;
    let text = text.ok_or_else(|| Error::schema(offset, "version", describe(cursor), "text"))?;
    let version = Version::parse(&text).filter(|version| version.major == 1);
    let version = version.ok_or_else(|| Error::Version { offset, text: abridged(&text) })?;
    if version.minor > NEWEST_MINOR {
        let version = abridged(&text);
        warnings.push(Warning::NewerMinor { version });
    }
    if !version.suffix().is_empty() {
        let version = abridged(&text);
        warnings.push(Warning::VersionSuffix { version });
    }
    Ok(version)
}
