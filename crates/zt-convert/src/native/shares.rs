//! Finds equal components of the inputs and of an edited file, so that each is stored once.
//!
//! Two names for one range of bytes are found without reading. Copies with the same length and the
//! same first bytes are compared byte for byte, in two pieces of memory; a hash never decides. Of compressed copies
//! that take few bytes, such as planes of one exponent, these bytes are compared.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};
use std::io::Read as _;

use zt::container::bytes_of;
use zt::formats::check_bools_from;
use zt::{ByteOrder, Component, DType, Encoding, Span, Tensor};
use zt_foreign::{DATA, Incoming, Outgoing, Treatment, Written};

use crate::native::in_file::InFile;

/// Copies of fewer bytes are not looked for, because writing 100,000 of them is faster.
///
/// Pays: `zt convert` of 100,000 tensors of 160 bytes takes 0.81 of the CPU time.
const LEAST: u64 = 4 << 10;

/// Components are compared if so many first bytes are equal.
pub(crate) const SAMPLE: u64 = 64 << 10;

/// Bytes that are compared at a time.
const PIECE: usize = 256 << 10;

/// Compressed bytes of a component that are kept for comparing, at most, and of how many components.
///
/// Pays: `zt convert` of 400 equal tensors of 256 KiB, all zeros in zstd, takes 0.03 of the CPU time. Without
/// copies it takes as long.
const FEW: u64 = 4 << 10;
const MOST_KEPT: usize = 4 << 10;

/// The most components with the same first bytes, and at the same place in different files, that one
/// is compared with. They bound the time for hostile inputs.
pub(crate) const MOST_COMPARED: usize = 4;
const MOST_PLACED: usize = 64;

/// Bytes that are written: a component, or a dense value, and how it is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unit<'i> {
    pub(crate) tensor: Tensor<'i>,
    /// The role of the component; `data` for a dense value, which is made of all components.
    pub(crate) role: &'i str,
    pub(crate) treatment: Treatment,
    /// Whether it is written as planes.
    pub(crate) is_split: bool,
}

/// A unit that was written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen<'i> {
    pub(crate) unit: Unit<'i>,
    pub(crate) written: Written,
}

/// A unit that must be written, and the keys by which later ones find it.
pub(crate) struct Missing<'i> {
    unit: Unit<'i>,
    few: Option<Box<Few>>,
    content: Option<Content>,
}

/// The place of a unit's bytes in some file, how they are written, and whether as planes.
type Place = (Span, Treatment, bool);

/// A key that equal contents share: their length, and a hash of their first bytes.
type Content = (u64, u64);

/// All bytes of a component that zstd has made short, and the length of its content.
type Few = (u64, Vec<u8>);

/// All units that were written so far. The default finds nothing.
#[derive(Default)]
pub(crate) struct Shares<'i> {
    is_on: bool,
    by_place: HashMap<Place, Vec<Seen<'i>>>,
    by_few: HashMap<Few, Seen<'i>>,
    by_content: HashMap<Content, Vec<Seen<'i>>>,
    in_file: InFile<'i>,
    /// The number of components by length. A component with a unique length has no copy.
    lengths: HashMap<u64, usize>,
    /// Bytes of values that were shared and not written.
    pub(crate) byte_len: u64,
}

impl<'i> Shares<'i> {
    /// Finds equal components of `objects`.
    pub(crate) fn new(objects: &[Incoming<'i>]) -> Self {
        let mut shares = Shares { is_on: true, ..Shares::default() };
        for incoming in objects {
            for (_, component) in incoming.tensor.components() {
                if let Some(byte_len) = component.blob.decoded_len {
                    let count = shares.lengths.entry(byte_len).or_default();
                    *count = count.strict_add(1);
                }
            }
        }
        shares
    }

    /// Also finds the components of an object that the edited file has already, under the same name.
    pub(crate) fn add_existing(&mut self, tensor: Tensor<'i>) {
        self.in_file.add(tensor);
    }

    /// Searches for a unit with the same bytes that was written before.
    ///
    /// # Errors
    ///
    /// The unit that must be written, if there is none.
    pub(crate) fn search(&mut self, unit: Unit<'i>) -> Result<Seen<'i>, Missing<'i>> {
        let place = unit.place().filter(|_| self.is_on);
        let seen = place.and_then(|place| self.by_place.get(&place));
        let mut latest = seen.into_iter().flatten().rev().take(MOST_PLACED);
        if let Some(seen) = latest.find(|seen| seen.unit.is_alike(&unit, has_blob_of)) {
            return Ok(*seen);
        }
        let (alike, unsampled) = self.in_file.candidates(&unit);
        let mut alike = alike.into_iter();
        if let Some(seen) = alike.find(|seen| seen.unit.is_alike(&unit, has_content_of)) {
            return Ok(seen);
        }
        for seen in unsampled {
            if let Some(content) = content(&seen.unit) {
                self.insert_content(content, seen);
            }
        }
        let few = self.few(&unit);
        let seen = few.as_ref().and_then(|few| self.by_few.get(few));
        if let Some(seen) = seen.filter(|seen| seen.unit.is_alike(&unit, |_, _, _, _| true)) {
            return Ok(*seen);
        }
        let content = self.content(&unit);
        let seen = content.as_ref().and_then(|it| self.by_content.get(it));
        let mut candidates = seen.into_iter().flatten();
        match candidates.find(|seen| seen.unit.is_alike(&unit, has_content_of)) {
            Some(seen) => Ok(*seen),
            None => Err(Missing { unit, few: few.map(Box::new), content }),
        }
    }

    /// Remembers a unit that was written.
    pub(crate) fn insert(&mut self, missing: Missing<'i>, written: Written) {
        let unit = missing.unit;
        let seen = Seen { unit, written };
        if let Some(place) = unit.place().filter(|_| self.is_on) {
            self.by_place.entry(place).or_insert_with(one).push(seen);
        }
        if let Some(few) = missing.few.filter(|_| self.by_few.len() < MOST_KEPT) {
            self.by_few.entry(*few).or_insert(seen);
        }
        if let Some(content) = missing.content {
            self.insert_content(content, seen);
        }
    }

    fn insert_content(&mut self, content: Content, seen: Seen<'i>) {
        let candidates = self.by_content.entry(content).or_insert_with(one);
        if candidates.len() < MOST_COMPARED {
            candidates.push(seen);
        }
    }

    /// Equal ones decode to the same content, which need not be decoded then. `None` as for
    /// [`Shares::content`].
    fn few(&self, unit: &Unit<'_>) -> Option<Few> {
        let (component, byte_len) = self.comparable(unit)?;
        let blob = &component.blob;
        let is_zstd = blob.encoding == Encoding::Zstd && component.byte_order == ByteOrder::Little;
        if !is_zstd || byte_len < LEAST || blob.span.byte_len() > FEW {
            return None;
        }
        let (source, span) = unit.tensor.stored_bytes(unit.role).ok()?;
        let stored = bytes_of(&source, span).ok()?;
        Some((byte_len, stored.into_owned()))
    }

    /// `None` if copies are not looked for, or if the component cannot be read: writing it reports
    /// the error.
    fn content(&self, unit: &Unit<'_>) -> Option<Content> {
        self.comparable(unit)?;
        content(unit)
    }

    /// A component, and the length of its content, which others have, too.
    fn comparable<'u>(&self, unit: &Unit<'u>) -> Option<(&'u Component, u64)> {
        let component = unit.component()?;
        let byte_len = component.blob.decoded_len?;
        let others = self.lengths.get(&byte_len)?;
        let has_others = *others > 1 || self.in_file.has(byte_len);
        (has_others && !matches!(unit.treatment, Treatment::Decode(_)))
            .then_some((component, byte_len))
    }
}

/// Room for one: nearly every place has one unit, and a list that grows has room for four.
fn one<T>() -> Vec<T> {
    Vec::with_capacity(1)
}

/// The key of a component that is not short, if it can be read.
fn content(unit: &Unit<'_>) -> Option<Content> {
    let byte_len = unit.component()?.blob.decoded_len?;
    if byte_len < LEAST {
        return None;
    }
    let mut sample = vec![0; usize::try_from(byte_len.min(SAMPLE)).ok()?];
    let len = unit.tensor.reader(unit.role).ok()?.read(&mut sample).ok()?;
    let mut hasher = DefaultHasher::new();
    hasher.write(sample.get(..len)?);
    Some((byte_len, hasher.finish()))
}

impl<'i> Unit<'i> {
    /// A component of `object`, or its dense value if it is decoded.
    pub(crate) fn new(object: &Outgoing<'i>, role: &'i str) -> Self {
        let treatment = match object.treatment() {
            Treatment::Cast(_) if role != DATA => Treatment::Keep,
            treatment => treatment,
        };
        Unit { tensor: object.tensor, role, treatment, is_split: false }
    }

    /// The values of `object` as planes.
    pub(crate) fn planes(object: &Outgoing<'i>) -> Self {
        let is_split = true;
        Unit { is_split, ..Unit::new(object, DATA) }
    }

    /// Whether a component is written as it is.
    pub(crate) fn is_copied(&self) -> bool {
        self.treatment == Treatment::Keep && !self.is_split
    }

    pub(crate) fn component(&self) -> Option<&'i Component> {
        match self.treatment {
            Treatment::Decode(_) => self.tensor.components().next().map(|(_, first)| first),
            _ => self.tensor.component(self.role).ok(),
        }
    }

    fn place(&self) -> Option<Place> {
        let span = self.component()?.blob.span;
        (!span.is_empty()).then_some((span, self.treatment, self.is_split))
    }

    /// Whether both are written in the same way, from components that are `equal`.
    fn is_alike(
        &self,
        other: &Unit<'_>,
        equal: fn(&Tensor<'_>, &str, &Tensor<'_>, &str) -> bool,
    ) -> bool {
        if self.treatment != other.treatment || self.is_split != other.is_split {
            return false;
        }
        let (a, b) = (self.tensor.object(), other.tensor.object());
        if !matches!(self.treatment, Treatment::Decode(_)) {
            let types_matter = self.is_split || self.treatment != Treatment::Keep;
            let alike = self.component().zip(other.component());
            let is_bool = |it: &Component| it.dtype == Some(DType::Bool);
            return alike.is_some_and(|(a, b)| {
                // Bytes that are shared with a bool must have been checked as bools.
                is_of_type(a, b) || !types_matter && is_bool(a) == is_bool(b)
            }) && equal(&self.tensor, self.role, &other.tensor, other.role);
        }
        let mut pairs = a.components.iter().zip(&b.components);
        a.format == b.format
            && a.shape == b.shape
            && a.attributes() == b.attributes()
            && a.components.len() == b.components.len()
            && pairs.all(|((role, a), (other_role, b))| {
                role == other_role
                    && is_of_type(a, b)
                    && equal(&self.tensor, role, &other.tensor, role)
            })
    }
}

fn is_of_type(a: &Component, b: &Component) -> bool {
    a.dtype == b.dtype && a.logical_type == b.logical_type
}

fn has_blob_of(a: &Tensor<'_>, role: &str, b: &Tensor<'_>, other: &str) -> bool {
    a.has_blob_of(role, b, other).unwrap_or(false)
}

/// A component that cannot be read is equal to none, and neither is one with an invalid bool: writing
/// it reports the error.
fn has_content_of(a: &Tensor<'_>, role: &str, b: &Tensor<'_>, other: &str) -> bool {
    let dtype = a.component(role).ok().and_then(|it| it.dtype);
    let (Ok(mut a), Ok(mut b)) = (a.reader(role), b.reader(other)) else {
        return false;
    };
    let (mut this, mut that) = (vec![0; PIECE], vec![0; PIECE]);
    let mut compared = 0;
    loop {
        // Every piece but the last is full, so lengths differ only at the end.
        let (Ok(len), Ok(other_len)) = (a.read(&mut this), b.read(&mut that)) else {
            return false;
        };
        match (this.get(..len), that.get(..other_len)) {
            (Some([]), Some([])) => return true,
            (Some(a), Some(b)) if a == b => {
                if dtype == Some(DType::Bool) && check_bools_from(compared, a).is_err() {
                    return false;
                }
                compared = compared.strict_add(a.len() as u64);
            }
            _ => return false,
        }
    }
}
