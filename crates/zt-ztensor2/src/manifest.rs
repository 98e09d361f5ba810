//! The manifest, before its objects are checked. Spec: §3.

use zt::manifest::{LimitExceeded, Text};
use zt::{Attributes, Error, Limits, RawComponent, RawObject, Result};

use crate::cbor::{Cursor, Item};
use crate::violation::Violation;

/// The most dimensions. Spec: §3.3.
const RANK_MAX: u64 = 64;

/// The most bytes of a name. Spec: §3.5.
const NAME_MAX: usize = 1024;

/// The type of numeric fields, for errors.
const NUMBER: &str = "an unsigned number";

/// A manifest with a valid root.
#[derive(Debug, Default)]
pub(super) struct Manifest {
    pub(super) attributes: Option<Attributes>,
    /// In the order of their names.
    pub(super) shards: Vec<Shard>,
    /// In the order of the manifest.
    pub(super) objects: Vec<Entry>,
}

/// A shard: a file that holds blobs. Spec: §7.1.
#[derive(Debug)]
pub(super) struct Shard {
    pub(super) name: String,
    pub(super) byte_len: u64,
}

/// An object's map, before it is checked.
#[derive(Debug, Default)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) raw: RawObject,
    /// The shard of each component's blob.
    pub(super) shards: Vec<Option<String>>,
    /// The first field that is invalid or missing.
    pub(super) fault: Option<Error>,
}

impl Manifest {
    /// Reads a manifest that begins at `base`. Unknown fields are ignored. Faults of the CBOR, of
    /// the root or of a name are errors. Other faults belong to their entries.
    pub(super) fn parse(bytes: &[u8], base: u64, limits: &Limits) -> Result<Self> {
        let mut cursor = Cursor::new(bytes, base);
        let mut manifest = Manifest::default();
        let mut has_objects = false;
        let pairs = cursor.expect_map("manifest")?;
        cursor.pairs(pairs, |cursor, key| match key.text {
            Some("attributes") => {
                manifest.attributes = Some(attributes(cursor, limits)?);
                Ok(())
            }
            Some("shards") => {
                let pairs = cursor.expect_map("shards")?;
                cursor.pairs(pairs, |cursor, key| {
                    manifest.shards.push(shard(cursor, key.text)?);
                    Ok(())
                })
            }
            Some("objects") => {
                has_objects = true;
                let pairs = cursor.expect_map("objects")?;
                cursor.pairs(pairs, |cursor, key| {
                    let at = cursor.offset();
                    let name = key.text.ok_or(Violation::KeyNotText { field: "objects" });
                    let name = name.and_then(checked_name);
                    let name = name.map_err(|fault| Error::from(fault).with_offset(at))?;
                    manifest.objects.push(Entry::read(cursor, name, limits)?);
                    Ok(())
                })
            }
            _ => cursor.skip(),
        })?;
        if !cursor.is_at_end() {
            return Err(Error::from(Violation::Behind).with_offset(cursor.offset()));
        }
        if !has_objects {
            return Err(Error::from(Violation::Missing { field: "objects" }).with_offset(base));
        }
        Ok(manifest)
    }
}

impl Cursor<'_> {
    fn expect_map(&mut self, field: &'static str) -> Result<u64> {
        let at = self.offset();
        let expected = "a map";
        let wrong = || Error::from(Violation::Type { field, expected }).with_offset(at);
        self.item()?.map().ok_or_else(wrong)
    }
}

/// A map of attributes. Spec: §3.1, §3.5.
fn attributes(cursor: &mut Cursor<'_>, limits: &Limits) -> Result<Attributes> {
    let field = "attributes";
    let mut ahead = *cursor;
    let pairs = ahead.expect_map(field)?;
    let start = *cursor;
    cursor.skip()?;
    // A value takes up to 32 times its bytes.
    let (limit, found) = (limits.attributes_len, start.until(cursor).len());
    if found > limit {
        let exceeded = LimitExceeded::Attributes { limit, found };
        return Err(zt::manifest::Error::Limit(exceeded).into());
    }
    let attributes = ahead.map(pairs)?;
    for (key, _) in &attributes {
        let name = key.as_str().ok_or(Violation::KeyNotText { field });
        let checked = name.and_then(checked_name);
        checked.map_err(|fault| Error::from(fault).with_offset(start.offset()))?;
    }
    Ok(attributes)
}

fn shard(cursor: &mut Cursor<'_>, name: Option<&str>) -> Result<Shard> {
    let at = cursor.offset();
    let broken = |violation| Error::from(violation).with_offset(at);
    let name = name.ok_or_else(|| broken(Violation::KeyNotText { field: "shards" }))?;
    if !is_shard_name(name) {
        let name = abridged(name);
        return Err(broken(Violation::ShardName { name }));
    }
    let pairs = cursor.expect_map("shard")?;
    let (mut byte_len, mut digest) = (None, None);
    cursor.pairs(pairs, |cursor, key| {
        let item = cursor.item()?;
        match (key.text, item) {
            (Some("size"), Item::Unsigned(size)) => byte_len = Some(size),
            (Some("digest"), Item::Text(text)) => digest = Some(text),
            _ => {}
        }
        cursor.pass(item)
    })?;
    let byte_len = byte_len.ok_or_else(|| broken(Violation::Missing { field: "size" }))?;
    let digest = digest.ok_or_else(|| broken(Violation::Missing { field: "digest" }))?;
    if !is_digest(digest) {
        let text = abridged(digest);
        return Err(broken(Violation::Digest { text }));
    }
    Ok(Shard { name: name.to_owned(), byte_len })
}

/// The rule is narrow, so that a name can never be a path. Spec: §7.1.
fn is_shard_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=64).contains(&name.len()) && !name.starts_with('.') && name.bytes().all(is_allowed)
}

/// An algorithm, a colon and lower-case digits. Spec: §3.4.
pub(super) fn is_digest(text: &str) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_letter = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'z');
    text.split_once(':').is_some_and(|(algorithm, digits)| {
        !algorithm.is_empty()
            && !digits.is_empty()
            && algorithm.bytes().all(is_letter)
            && digits.bytes().all(is_digit)
    })
}

/// Spec: §3.5.
fn checked_name(name: &str) -> Result<&str, Violation> {
    if name.is_empty() || name.len() > NAME_MAX || name.contains('\0') {
        let name = abridged(name);
        return Err(Violation::Name { name });
    }
    Ok(name)
}

/// The start of a text for an error message. A text may be as long as the manifest.
pub(super) fn abridged(text: &str) -> String {
    text.chars().take(80).collect()
}

impl Entry {
    fn read(cursor: &mut Cursor<'_>, name: &str, limits: &Limits) -> Result<Self> {
        let mut entry = Entry { name: name.to_owned(), ..Entry::default() };
        let at = cursor.offset();
        let Some(pairs) = entry.expect(cursor, None, "object", "a map", Item::map)? else {
            return Ok(entry);
        };
        let mut has_parts = false;
        cursor.pairs(pairs, |cursor, key| match key.text {
            Some("shape") => entry.shape(cursor),
            Some("layout") => {
                entry.raw.format = entry.text(cursor, None, "layout")?;
                Ok(())
            }
            Some("attributes") => entry.attributes(cursor, limits),
            Some("parts") => {
                has_parts = true;
                entry.parts(cursor)
            }
            _ => cursor.skip(),
        })?;
        let missing = [
            ("shape", entry.raw.shape.is_none()),
            ("layout", entry.raw.format.is_none()),
            ("parts", !has_parts),
        ];
        for (field, is_missing) in missing {
            if is_missing {
                entry.note(None, at, Violation::Missing { field });
            }
        }
        if entry.raw.components.is_empty() {
            entry.note(None, at, Violation::NoParts);
        }
        Ok(entry)
    }

    fn shape(&mut self, cursor: &mut Cursor<'_>) -> Result<()> {
        let at = cursor.offset();
        match self.expect(cursor, None, "shape", "an array", Item::array)? {
            Some(found) if found > RANK_MAX => {
                let limit = RANK_MAX;
                self.note(None, at, Violation::Rank { found, limit });
                cursor.pass(Item::Array(found))?;
            }
            Some(rank) => self.raw.shape = self.numbers(cursor, rank, None, "shape")?,
            None => {}
        }
        Ok(())
    }

    /// Reads the object's attributes. Faults belong to the object, except for faults of the CBOR.
    fn attributes(&mut self, cursor: &mut Cursor<'_>, limits: &Limits) -> Result<()> {
        let mut ahead = *cursor;
        cursor.skip()?;
        match attributes(&mut ahead, limits) {
            Ok(map) => self.raw.attributes = Some(map),
            Err(error) => {
                self.fault.get_or_insert(error);
            }
        }
        Ok(())
    }

    fn parts(&mut self, cursor: &mut Cursor<'_>) -> Result<()> {
        let Some(pairs) = self.expect(cursor, None, "parts", "a map", Item::map)? else {
            return Ok(());
        };
        cursor.pairs(pairs, |cursor, key| {
            let at = cursor.offset();
            let name = key.text.ok_or(Violation::KeyNotText { field: "parts" });
            match name.and_then(checked_name) {
                Ok(role) => self.part(cursor, role),
                Err(fault) => {
                    self.note(None, at, fault);
                    cursor.skip()
                }
            }
        })
    }

    fn part(&mut self, cursor: &mut Cursor<'_>, name: &str) -> Result<()> {
        let at = cursor.offset();
        let role = Some(name);
        let Some(pairs) = self.expect(cursor, role, "part", "a map", Item::map)? else {
            return Ok(());
        };
        let mut part = RawComponent::default();
        let (mut shard, mut has_blob) = (None, false);
        cursor.pairs(pairs, |cursor, key| {
            match key.text {
                Some("dtype") => part.dtype = self.text(cursor, role, "dtype")?,
                Some("type") => part.logical_type = self.text(cursor, role, "type")?,
                Some("encoding") => part.encoding = self.text(cursor, role, "encoding")?,
                Some("digest") => part.digest = self.text(cursor, role, "digest")?,
                Some("shard") => shard = self.text(cursor, role, "shard")?.map(Text::into_owned),
                Some("decoded_length") => {
                    let field = "decoded_length";
                    part.decoded_len = self.expect(cursor, role, field, NUMBER, Item::number)?;
                }
                Some("blob") => {
                    has_blob = true;
                    if let Some([offset, length]) = self.blob(cursor, role)?.as_deref() {
                        (part.offset, part.length) = (Some(*offset), Some(*length));
                    }
                }
                _ => cursor.skip()?,
            }
            Ok(())
        })?;
        let missing = [("dtype", part.dtype.is_none()), ("blob", !has_blob)];
        for (field, is_missing) in missing {
            if is_missing {
                self.note(role, at, Violation::Missing { field });
            }
        }
        self.raw.components.push((Text::Owned(name.to_owned()), part));
        self.shards.push(shard);
        Ok(())
    }

    /// An array `[offset, length]`.
    fn blob(&mut self, cursor: &mut Cursor<'_>, role: Option<&str>) -> Result<Option<Vec<u64>>> {
        let pair = |item: Item<'_>| item.array().filter(|len| *len == 2);
        match self.expect(cursor, role, "blob", "an array of two numbers", pair)? {
            Some(len) => self.numbers(cursor, len, role, "blob"),
            None => Ok(None),
        }
    }

    fn numbers(
        &mut self,
        cursor: &mut Cursor<'_>,
        count: u64,
        role: Option<&str>,
        field: &'static str,
    ) -> Result<Option<Vec<u64>>> {
        let mut numbers = Vec::new();
        let mut are_numbers = true;
        cursor.items(count, |cursor| {
            match self.expect(cursor, role, field, NUMBER, Item::number)? {
                Some(number) => numbers.push(number),
                None => are_numbers = false,
            }
            Ok(())
        })?;
        Ok(are_numbers.then_some(numbers))
    }

    fn text(
        &mut self,
        cursor: &mut Cursor<'_>,
        role: Option<&str>,
        field: &'static str,
    ) -> Result<Option<Text>> {
        let text = self.expect(cursor, role, field, "text", Item::text)?;
        Ok(text.map(|text| Text::Owned(text.to_owned())))
    }

    /// The next item, if it has the type that `of` accepts. Another item is skipped, and is a fault.
    fn expect<'m, T>(
        &mut self,
        cursor: &mut Cursor<'m>,
        role: Option<&str>,
        field: &'static str,
        expected: &'static str,
        of: impl FnOnce(Item<'m>) -> Option<T>,
    ) -> Result<Option<T>> {
        let at = cursor.offset();
        let item = cursor.item()?;
        let accepted = of(item);
        if accepted.is_none() {
            self.note(role, at, Violation::Type { field, expected });
            cursor.pass(item)?;
        }
        Ok(accepted)
    }

    /// Keeps the first fault.
    fn note(&mut self, role: Option<&str>, at: u64, violation: Violation) {
        let error = || {
            let error = Error::from(violation).with_offset(at);
            role.into_iter().fold(error, Error::with_component)
        };
        self.fault.get_or_insert_with(error);
    }
}
