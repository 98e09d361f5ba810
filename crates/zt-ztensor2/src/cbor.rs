//! CBOR in the only form that zTensor 2 allows, item by item. Spec: §3.1, RFC 8949 §4.2.1.
//!
//! This reader differs from `zt-manifest`'s, because the form is a rule here: lengths and floats are
//! as short as possible, keys are in the order of their bytes, and there are no tags and no indefinite
//! lengths. Equal keys therefore have equal bytes, and a duplicate follows the first directly.

use half::f16;
use zt::manifest::ListBuilder;
use zt::{Attributes, Error, Result, Value};

use crate::violation::{Rule, Violation};

/// The most levels below the root. Spec: §3.1.
const DEPTH: u32 = 32;

/// An item: a value, or the head of an array or a map with its number of items or pairs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Item<'m> {
    Unsigned(u64),
    /// The integer `-1 - n`.
    Negative(u64),
    Bytes(&'m [u8]),
    Text(&'m str),
    Array(u64),
    Map(u64),
    Bool(bool),
    Null,
    Float(f64),
}

impl<'m> Item<'m> {
    pub(super) fn number(self) -> Option<u64> {
        match self {
            Item::Unsigned(number) => Some(number),
            _ => None,
        }
    }

    pub(super) fn text(self) -> Option<&'m str> {
        match self {
            Item::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn array(self) -> Option<u64> {
        match self {
            Item::Array(items) => Some(items),
            _ => None,
        }
    }

    pub(super) fn map(self) -> Option<u64> {
        match self {
            Item::Map(pairs) => Some(pairs),
            _ => None,
        }
    }
}

/// The error for an item at `at` that breaks a rule.
fn broken(at: u64, rule: Rule) -> Error {
    Error::from(Violation::Cbor(rule)).with_offset(at)
}

/// A key of a map.
#[derive(Clone, Copy)]
pub(super) struct Key<'m> {
    /// `None` for a key of another type.
    pub(super) text: Option<&'m str>,
    spelled: &'m [u8],
}

/// A position in a manifest.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'m> {
    rest: &'m [u8],
    /// The absolute offset of the manifest's end.
    end: u64,
    depth: u32,
}

impl<'m> Cursor<'m> {
    /// Before the root of a manifest that begins at `base` in the file.
    #[expect(clippy::arithmetic_side_effects, reason = "within the file")]
    pub(super) const fn new(manifest: &'m [u8], base: u64) -> Self {
        Cursor { rest: manifest, end: base + manifest.len() as u64, depth: 0 }
    }

    /// The absolute offset of the next item.
    #[expect(clippy::arithmetic_side_effects, reason = "within the manifest")]
    pub(super) const fn offset(&self) -> u64 {
        self.end - self.rest.len() as u64
    }

    /// The bytes between this position and a later one.
    #[expect(clippy::arithmetic_side_effects, reason = "`later` has fewer bytes left")]
    pub(super) fn until(&self, later: &Self) -> &'m [u8] {
        self.rest.split_at(self.rest.len() - later.rest.len()).0
    }

    pub(super) const fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next item; for an array or a map, its head. The manifest has at least a byte for every
    /// declared item.
    pub(super) fn item(&mut self) -> Result<Item<'m>> {
        let at = self.offset();
        if self.depth > DEPTH {
            return Err(broken(at, Rule::Depth { limit: DEPTH }));
        }
        let [initial] = self.take(at)?;
        let info = initial & 0x1F;
        if initial >> 5 == 7 {
            return self.simple(at, info);
        }
        let (argument, least) = match info {
            0..=23 => (u64::from(info), 0),
            24 => (u8::from_be_bytes(self.take(at)?).into(), 24),
            25 => (u16::from_be_bytes(self.take(at)?).into(), 1 << 8),
            26 => (u32::from_be_bytes(self.take(at)?).into(), 1 << 16),
            27 => (u64::from_be_bytes(self.take(at)?), 1 << 32),
            31 => return Err(broken(at, Rule::Indefinite)),
            _ => return Err(broken(at, Rule::Reserved)),
        };
        if argument < least {
            return Err(broken(at, Rule::Long));
        }
        // An item takes at least a byte.
        let fits = |unit: u64| match argument.checked_mul(unit) {
            Some(needed) if needed <= self.rest.len() as u64 => Ok(argument),
            _ => Err(broken(at, Rule::Cut)),
        };
        match initial >> 5 {
            0 => Ok(Item::Unsigned(argument)),
            1 => Ok(Item::Negative(argument)),
            2 => Ok(Item::Bytes(self.bytes(argument, at)?)),
            3 => {
                let text = std::str::from_utf8(self.bytes(argument, at)?);
                text.map(Item::Text).map_err(|_| broken(at, Rule::Utf8))
            }
            4 => Ok(Item::Array(fits(1)?)),
            5 => Ok(Item::Map(fits(2)?)),
            _ => Err(broken(at, Rule::Tag)),
        }
    }

    /// Bools, null and floats. A float is as short as its value allows, and there is one NaN.
    fn simple(&mut self, at: u64, info: u8) -> Result<Item<'m>> {
        let (value, is_shortest) = match info {
            20 | 21 => return Ok(Item::Bool(info == 21)),
            22 => return Ok(Item::Null),
            25 => {
                let half = f16::from_bits(u16::from_be_bytes(self.take(at)?));
                let is_the_nan = half.to_bits() == 0x7E00;
                (half.to_f64(), is_the_nan || !half.is_nan())
            }
            26 => {
                let single = f32::from_bits(u32::from_be_bytes(self.take(at)?));
                let is_half = f16::from_f32(single).to_f32() == single;
                (single.into(), !is_half && !single.is_nan())
            }
            27 => {
                let double = f64::from_bits(u64::from_be_bytes(self.take(at)?));
                #[expect(clippy::cast_possible_truncation, reason = "compared")]
                let is_single = f64::from(double as f32) == double;
                (double, !is_single && !double.is_nan())
            }
            31 => return Err(broken(at, Rule::Indefinite)),
            _ => return Err(broken(at, Rule::Reserved)),
        };
        if is_shortest { Ok(Item::Float(value)) } else { Err(broken(at, Rule::Long)) }
    }

    /// Calls `each` with the keys of a map whose head was the last item. `each` reads the value.
    #[expect(clippy::arithmetic_side_effects, reason = "at most DEPTH + 1")]
    pub(super) fn pairs(
        &mut self,
        count: u64,
        mut each: impl FnMut(&mut Self, Key<'m>) -> Result<()>,
    ) -> Result<()> {
        self.depth += 1;
        let mut before: Option<&[u8]> = None;
        for _ in 0..count {
            let start = *self;
            let item = self.item()?;
            self.pass(item)?;
            let text = item.text();
            let spelled = start.until(self);
            if let Some(before) = before.filter(|before| *before >= spelled) {
                let rule = if before == spelled { Rule::Repeated } else { Rule::Unsorted };
                return Err(broken(start.offset(), rule));
            }
            before = Some(spelled);
            each(self, Key { text, spelled })?;
        }
        self.depth -= 1;
        Ok(())
    }

    /// Calls `each` for every item of an array whose head was the last item. `each` reads the item.
    #[expect(clippy::arithmetic_side_effects, reason = "at most DEPTH + 1")]
    pub(super) fn items(
        &mut self,
        count: u64,
        mut each: impl FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        self.depth += 1;
        for _ in 0..count {
            each(self)?;
        }
        self.depth -= 1;
        Ok(())
    }

    /// Skips the next item and all items in it.
    pub(super) fn skip(&mut self) -> Result<()> {
        let item = self.item()?;
        self.pass(item)
    }

    /// Skips the items in `item`, the last one that was read.
    pub(super) fn pass(&mut self, item: Item<'m>) -> Result<()> {
        match item {
            Item::Array(count) => self.items(count, Self::skip),
            Item::Map(count) => self.pairs(count, |cursor, _| cursor.skip()),
            _ => Ok(()),
        }
    }

    /// The next item and all items in it, as a value.
    pub(super) fn value(&mut self) -> Result<Value> {
        Ok(match self.item()? {
            Item::Unsigned(value) => Value::Unsigned(value),
            Item::Negative(value) => Value::Negative(value),
            Item::Bytes(bytes) => Value::Bytes(bytes.to_vec()),
            Item::Text(text) => Value::Text(text.to_owned()),
            Item::Bool(value) => Value::Bool(value),
            Item::Null => Value::Null,
            Item::Float(value) => Value::Float(value),
            Item::Array(count) => {
                let mut values = ListBuilder::default();
                self.items(count, |cursor| {
                    values.push(cursor.value()?)?;
                    Ok(())
                })?;
                Value::Array(values.finish())
            }
            Item::Map(count) => Value::Map(self.map(count)?),
        })
    }

    /// The pairs of a map whose head was the last item, as values.
    pub(super) fn map(&mut self, count: u64) -> Result<Attributes> {
        let mut pairs: Vec<(Value, Value)> = Vec::new();
        self.pairs(count, |cursor, key| {
            // The key was checked, with its depth.
            let name = Cursor::new(key.spelled, 0).value()?;
            pairs.push((name, cursor.value()?));
            Ok(())
        })?;
        Ok(pairs.into_iter().collect())
    }

    fn take<const N: usize>(&mut self, at: u64) -> Result<[u8; N]> {
        let cut = || broken(at, Rule::Cut);
        let (bytes, rest) = self.rest.split_first_chunk::<N>().ok_or_else(cut)?;
        self.rest = rest;
        Ok(*bytes)
    }

    fn bytes(&mut self, len: u64, at: u64) -> Result<&'m [u8]> {
        let len = usize::try_from(len).ok();
        let split = len.and_then(|len| self.rest.split_at_checked(len));
        let (bytes, rest) = split.ok_or_else(|| broken(at, Rule::Cut))?;
        self.rest = rest;
        Ok(bytes)
    }
}
