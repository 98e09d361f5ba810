//! Codes what changed between two arrays of as many elements. Spec: formats/zt.delta.
//!
//! Gaps between changes and the sizes of changes are geometric in practice, so Golomb-Rice codes with
//! adaptive parameters come within 3 % of their entropy. The chance of a change depends on the exponent
//! of the old value: an optimizer moves a small weight by several units in the last place, and a large
//! one by less than half of a unit. So elements of one exponent have gaps and parameters of their own.
#![deny(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation
)]

use zt_manifest::DType;

use crate::base::DeltaFault;
use crate::formats::delta_bits::{BitReader, BitWriter, Mean};

/// How a stretch is coded: the lowest bits of its first byte.
const ONE_CLASS: u8 = 0;
const BY_EXPONENT: u8 = 1;
const VALUES: u8 = 2;

/// The bits of the method in the first byte. The others are the parameter of gaps.
const METHOD_BITS: u32 = 2;

/// Bits of a gap that is too long for its parameter: enough for the elements of a stretch.
const GAP_BITS: u32 = 18;

/// Classes of one stretch at most: the values of an exponent's lowest 8 bits.
const CLASSES: usize = 256;

/// With fewer changes in a stretch, classes cost more than they save.
const WORTH_CLASSES: usize = 64;

/// The coding of changes of elements of one storage type, in stretches of [`DeltaCodec::STRETCH`]
/// elements.
///
/// ```
/// use zt_formats::{DType, DeltaCodec};
///
/// let codec = DeltaCodec::new(DType::U8);
/// let mut values = [1, 2, 3, 4];
/// let code = codec.encode(&values, &[1, 2, 9, 4]);
/// codec.apply(&code, &mut values)?;
/// assert_eq!(values, [1, 2, 9, 4]);
/// assert_eq!(codec.encode(&values, &values), []);
/// # Ok::<(), zt_formats::DeltaFault>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeltaCodec {
    width: usize,
    /// The bits below the exponent, for floating-point elements.
    mantissa: Option<u32>,
}

/// An element at which the code of a class goes on: its first element, or a change.
struct Event {
    class: u8,
    change: Option<Change>,
    /// Elements of the class until its next change, or until its end.
    gap: u32,
}

/// A difference of two elements, which is not 0.
#[derive(Clone, Copy)]
struct Change {
    /// The absolute value, less 1.
    size: u64,
    is_negative: bool,
}

impl DeltaCodec {
    /// Elements of a stretch. Each stretch is coded without the others. A shorter one repeats what it
    /// costs to learn the parameters; a longer one makes slices read more.
    pub const STRETCH: usize = 1 << 17;

    /// The coding for elements of `dtype`.
    #[must_use]
    pub const fn new(dtype: DType) -> Self {
        let mantissa = match dtype {
            DType::F64 => Some(52),
            DType::F32 => Some(23),
            DType::F16 => Some(10),
            DType::BF16 => Some(7),
            _ => None,
        };
        DeltaCodec {
            width: dtype.byte_len(),
            mantissa,
        }
    }

    /// Bytes of the elements of a stretch; the last one of an array may have fewer.
    #[must_use]
    pub const fn stretch_len(&self) -> usize {
        self.width.saturating_mul(Self::STRETCH)
    }

    /// The code of a stretch that was `base` and is `new`, in little-endian bytes; empty if they are
    /// equal. A code is never longer than the stretch and one byte.
    ///
    /// # Panics
    ///
    /// If the lengths differ, are not whole elements, or exceed [`DeltaCodec::stretch_len`].
    #[must_use]
    pub fn encode(&self, base: &[u8], new: &[u8]) -> Vec<u8> {
        assert!(base.len() == new.len() && base.len() <= self.stretch_len());
        assert!(base.len().is_multiple_of(self.width));
        match self.width {
            1 => self.encode_words::<1>(base, new),
            2 => self.encode_words::<2>(base, new),
            4 => self.encode_words::<4>(base, new),
            _ => self.encode_words::<8>(base, new),
        }
    }

    /// Applies the code of a stretch to its old values, in place. After an error the values are
    /// unspecified.
    ///
    /// # Errors
    ///
    /// The rule that the code breaks.
    pub fn apply(&self, code: &[u8], values: &mut [u8]) -> Result<(), DeltaFault> {
        let Some((first, rest)) = code.split_first() else {
            return Ok(());
        };
        let (method, parameter) = (first & 0b11, u32::from(first >> METHOD_BITS));
        if method == VALUES && parameter == 0 {
            let fits = rest.len() == values.len();
            return fits
                .then(|| values.copy_from_slice(rest))
                .ok_or(DeltaFault::Length);
        }
        let mantissa = match (method, self.mantissa) {
            (ONE_CLASS, _) => None,
            (BY_EXPONENT, Some(mantissa)) => Some(mantissa),
            _ => return Err(DeltaFault::Method),
        };
        let (sizes, bits) = rest.split_first().ok_or(DeltaFault::Length)?;
        let gaps = Mean::of_gaps(parameter).ok_or(DeltaFault::Parameter)?;
        let sizes = Mean::of_sizes(u32::from(*sizes)).ok_or(DeltaFault::Parameter)?;
        let reader = ChangeReader {
            bits: BitReader::new(bits),
            width: self.width,
        };
        match (self.width, mantissa) {
            (1, _) => reader.one_class::<1>(gaps, sizes, values),
            (2, None) => reader.one_class::<2>(gaps, sizes, values),
            (4, None) => reader.one_class::<4>(gaps, sizes, values),
            (_, None) => reader.one_class::<8>(gaps, sizes, values),
            (2, Some(mantissa)) => reader.classes::<2>(mantissa, gaps, sizes, values),
            (4, Some(mantissa)) => reader.classes::<4>(mantissa, gaps, sizes, values),
            (_, Some(mantissa)) => reader.classes::<8>(mantissa, gaps, sizes, values),
        }
    }

    fn encode_words<const W: usize>(&self, base: &[u8], new: &[u8]) -> Vec<u8> {
        let changes = changes::<W>(base, new);
        if changes.is_empty() {
            return Vec::new();
        }
        let count = base.len().checked_div(W).unwrap_or(0);
        let mut code = self.code(ONE_CLASS, &in_one_class(&changes, count));
        if let Some(mantissa) = self.mantissa.filter(|_| changes.len() >= WORTH_CLASSES) {
            let by_exponent = self.code(BY_EXPONENT, &in_classes::<W>(mantissa, base, &changes));
            // One class is applied many times faster.
            if by_exponent.len().saturating_add(code.len() >> 5) < code.len() {
                code = by_exponent;
            }
        }
        if code.len() > new.len() {
            code.clear();
            code.push(VALUES);
            code.extend_from_slice(new);
        }
        code
    }

    fn code(&self, method: u8, events: &[Event]) -> Vec<u8> {
        let (mut gap, mut size) = (Mean::default(), Mean::default());
        for event in events {
            gap.count_in(u64::from(event.gap));
            if let Some(change) = event.change {
                size.count_in(change.size);
            }
        }
        let gap = gap.parameter().min(Mean::MOST_OF_GAPS);
        let size = size.parameter().min(Mean::MOST_OF_SIZES);
        let mut bits = BitWriter::new(method | low_byte(u64::from(gap)) << METHOD_BITS);
        bits.push_byte(low_byte(u64::from(size)));
        let first = (
            Mean::of_gaps(gap).unwrap_or_default(),
            Mean::of_sizes(size).unwrap_or_default(),
        );
        let mut means = vec![first; CLASSES];
        let size_bits = size_bits(self.width);
        for event in events {
            let Some((gaps, sizes)) = means.get_mut(usize::from(event.class)) else {
                continue;
            };
            if let Some(Change { size, is_negative }) = event.change {
                bits.golomb(size, sizes.parameter(), size_bits);
                bits.bits(u64::from(is_negative), 1);
                sizes.add(size);
            }
            bits.golomb(u64::from(event.gap), gaps.parameter(), GAP_BITS);
            gaps.add(u64::from(event.gap));
        }
        bits.finish()
    }
}

/// The bits of a change's size that is too large for its parameter.
fn size_bits(width: usize) -> u32 {
    u32::try_from(width).map_or(64, |width| width.saturating_mul(8))
}

/// The elements that differ, with their places.
fn changes<const W: usize>(base: &[u8], new: &[u8]) -> Vec<(u32, Change)> {
    /// Bytes that are compared at once: most stretches of a model have not changed.
    const BLOCK: usize = 128;
    let mut changes = Vec::new();
    let places = (0u32..).step_by(BLOCK.checked_div(W).unwrap_or(1));
    for (first, (base, new)) in places.zip(base.chunks(BLOCK).zip(new.chunks(BLOCK))) {
        if base == new {
            continue;
        }
        for (place, (base, new)) in (first..).zip(words::<W>(base).zip(words::<W>(new))) {
            if base != new {
                changes.push((place, Change::between::<W>(base, new)));
            }
        }
    }
    changes
}

impl Change {
    fn between<const W: usize>(base: u64, new: u64) -> Self {
        let unused = 64u32.saturating_sub(size_bits(W));
        // The difference modulo 2^(8 W), as a signed number.
        let difference = new.wrapping_sub(base).wrapping_shl(unused).cast_signed() >> unused;
        Change {
            size: difference.unsigned_abs().wrapping_sub(1),
            is_negative: difference < 0,
        }
    }

    const fn add_to(self, base: u64) -> u64 {
        let size = self.size.wrapping_add(1);
        if self.is_negative {
            base.wrapping_sub(size)
        } else {
            base.wrapping_add(size)
        }
    }
}

fn in_one_class(changes: &[(u32, Change)], count: usize) -> Vec<Event> {
    let mut events = Vec::with_capacity(changes.len().saturating_add(1));
    let (mut change, mut start) = (None, 0);
    let end = u32::try_from(count).unwrap_or(u32::MAX);
    for (place, next) in changes.iter().map(|(place, next)| (*place, Some(*next))) {
        let gap = place.wrapping_sub(start);
        let class = 0;
        events.push(Event { class, change, gap });
        (change, start) = (next, place.wrapping_add(1));
    }
    let (class, gap) = (0, end.wrapping_sub(start));
    events.push(Event { class, change, gap });
    events
}

fn in_classes<const W: usize>(mantissa: u32, base: &[u8], changes: &[(u32, Change)]) -> Vec<Event> {
    #[derive(Clone, Copy, Default)]
    struct Class {
        /// The event that waits for its gap, and the elements since then.
        last: Option<usize>,
        gap: u32,
    }
    let mut classes = [Class::default(); CLASSES];
    let mut events: Vec<Event> = Vec::with_capacity(changes.len().saturating_add(CLASSES));
    let close = |class: &mut Class, events: &mut Vec<Event>| {
        if let Some(event) = class.last.and_then(|last| events.get_mut(last)) {
            event.gap = class.gap;
        }
        *class = Class {
            last: Some(events.len()),
            gap: 0,
        };
    };
    let mut changes = changes.iter().peekable();
    for (place, value) in (0u32..).zip(words::<W>(base)) {
        let class = class_of(value, mantissa);
        let Some(state) = classes.get_mut(usize::from(class)) else {
            continue;
        };
        if state.last.is_none() {
            close(state, &mut events);
            let (change, gap) = (None, 0);
            events.push(Event { class, change, gap });
        }
        match changes.next_if(|(changed, _)| *changed == place) {
            Some((_, change)) => {
                close(state, &mut events);
                let (change, gap) = (Some(*change), 0);
                events.push(Event { class, change, gap });
            }
            None => state.gap = state.gap.wrapping_add(1),
        }
    }
    for class in &mut classes {
        close(class, &mut events);
    }
    events
}

/// The lowest 8 bits of the exponent.
const fn class_of(value: u64, mantissa: u32) -> u8 {
    low_byte(value.wrapping_shr(mantissa))
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the rest is cut off on purpose"
)]
const fn low_byte(value: u64) -> u8 {
    value as u8
}

/// Reads the changes of a stretch.
struct ChangeReader<'a> {
    bits: BitReader<'a>,
    width: usize,
}

impl ChangeReader<'_> {
    fn gap(&mut self, gaps: &mut Mean, most: usize) -> Result<usize, DeltaFault> {
        let gap = self.bits.golomb(gaps.parameter(), GAP_BITS)?;
        gaps.add(gap);
        let fits = usize::try_from(gap).ok().filter(|gap| *gap <= most);
        fits.ok_or(DeltaFault::Gap)
    }

    fn change(&mut self, sizes: &mut Mean) -> Result<Change, DeltaFault> {
        let size_bits = size_bits(self.width);
        let size = self.bits.golomb(sizes.parameter(), size_bits)?;
        if size.checked_shr(size_bits.saturating_sub(1)) != Some(0) {
            return Err(DeltaFault::Size);
        }
        let is_negative = self.bits.bits(1)? == 1;
        sizes.add(size);
        Ok(Change { size, is_negative })
    }

    fn one_class<const W: usize>(
        mut self,
        mut gaps: Mean,
        mut sizes: Mean,
        values: &mut [u8],
    ) -> Result<(), DeltaFault> {
        let (mut rest, _) = values.as_chunks_mut::<W>();
        loop {
            let gap = self.gap(&mut gaps, rest.len())?;
            let Some((value, after)) = rest.split_at_mut(gap).1.split_first_mut() else {
                break;
            };
            set_word(value, self.change(&mut sizes)?.add_to(word(value)));
            rest = after;
        }
        self.bits.finish()
    }

    fn classes<const W: usize>(
        mut self,
        mantissa: u32,
        gaps: Mean,
        sizes: Mean,
        values: &mut [u8],
    ) -> Result<(), DeltaFault> {
        const UNSEEN: usize = usize::MAX;
        let (values, _) = values.as_chunks_mut::<W>();
        let most = values.len();
        let mut means = vec![(gaps, sizes); CLASSES];
        let mut left = [UNSEEN; CLASSES];
        for value in values {
            let old = word(value);
            let class = usize::from(class_of(old, mantissa));
            let (Some(left), Some((gaps, sizes))) = (left.get_mut(class), means.get_mut(class))
            else {
                continue;
            };
            if *left == UNSEEN {
                *left = self.gap(gaps, most)?;
            }
            if let Some(less) = left.checked_sub(1) {
                *left = less;
                continue;
            }
            set_word(value, self.change(sizes)?.add_to(old));
            *left = self.gap(gaps, most)?;
        }
        if left.iter().any(|left| ![0, UNSEEN].contains(left)) {
            return Err(DeltaFault::Gap);
        }
        self.bits.finish()
    }
}

fn words<const W: usize>(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.as_chunks::<W>().0.iter().map(word)
}

/// A little-endian number.
fn word<const W: usize>(bytes: &[u8; W]) -> u64 {
    let shifted = bytes.iter().rev();
    shifted.fold(0, |word, byte| word << 8 | u64::from(*byte))
}

fn set_word<const W: usize>(bytes: &mut [u8; W], mut word: u64) {
    for byte in bytes {
        *byte = low_byte(word);
        word >>= 8;
    }
}
