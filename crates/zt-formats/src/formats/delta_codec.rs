//! Codes what changed between two arrays of as many elements. Spec: formats/zt.delta.
//!
//! Gaps between changes and the sizes of changes are geometric in practice, so Golomb-Rice codes come
//! within 3 % of their entropy. The chance of a change depends on the exponent of the old value: an
//! optimizer moves a small weight by several units in the last place, and a large one by less than half
//! of a unit. So elements of one exponent can have codes of their own.
//!
//! The parameters of a list come before it. Nothing adapts while numbers are read, so a reader does a few
//! steps for each change and none for the values between.
#![deny(clippy::cast_possible_truncation)]

use zt_manifest::DType;
use zt_manifest::memory::in_memory;

use crate::base::DeltaFault;
use crate::formats::delta_bits::{BitReader, BitWriter, bit_len, estimated_bits};

/// How a stretch is coded: its first byte.
const ONE_CLASS: u8 = 0;
const BY_EXPONENT: u8 = 1;
const VALUES: u8 = 2;

/// Bytes of the length of a code in the table.
const LENGTH: usize = 4;

/// Bits that hold every gap of a stretch.
const GAP_BITS: u32 = 17;

/// Classes of one stretch at most: the values of an exponent's lowest 8 bits.
const CLASSES: usize = 256;

/// With fewer changes in a stretch, classes cost more than they save.
///
/// Pays: no time: `zt delta` of 75 MB takes as long with 0 and without classes. The bytes of deltas are not
/// compared.
const WORTH_CLASSES: usize = 64;

/// Elements of a stretch from which the sizes of its classes are estimated.
const SAMPLES: usize = 1 << 13;

/// Bits of a class before its gaps, about.
const CLASS_BITS: u64 = 32;

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

impl DeltaCodec {
    /// Elements of a stretch. Each stretch is coded without the others. Shorter ones have
    /// more parameters in all; a longer one makes slices read more.
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
        DeltaCodec { width: dtype.byte_len(), mantissa }
    }

    /// Bytes of the elements of a stretch; the last one of an array may have fewer.
    #[must_use]
    pub const fn stretch_len(&self) -> usize {
        self.width.strict_mul(Self::STRETCH)
    }

    /// Bytes of the codes in a component of `byte_len` bytes: the changes of `elements` elements. The rest is
    /// the table of the lengths of the codes. `None` if the table does not fit.
    #[must_use]
    pub fn codes_len(elements: u64, byte_len: u64) -> Option<u64> {
        let stretches = elements.div_ceil(Self::STRETCH as u64);
        byte_len.checked_sub(stretches.checked_mul(LENGTH as u64)?)
    }

    /// Where the code of each stretch ends, from the table of their lengths. `None` if the lengths do not add
    /// up to `codes_len`.
    ///
    /// ```
    /// use zt_formats::DeltaCodec;
    ///
    /// let table = [3, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0];
    /// assert_eq!(DeltaCodec::ends(&table, 5), Some(vec![3, 3, 5]));
    /// assert_eq!(DeltaCodec::ends(&table, 6), None);
    /// ```
    #[must_use]
    pub fn ends(table: &[u8], codes_len: u64) -> Option<Vec<u64>> {
        let mut end = 0u64;
        let ends = table.as_chunks::<LENGTH>().0.iter().map(|len| {
            end = end.checked_add(u32::from_le_bytes(*len).into())?;
            Some(end)
        });
        let ends: Vec<u64> = ends.collect::<Option<_>>()?;
        (end == codes_len).then_some(ends)
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
        let Some((method, rest)) = code.split_first() else {
            return Ok(());
        };
        if rest.len() > values.len() {
            return Err(DeltaFault::Length);
        }
        let mantissa = match (*method, self.mantissa) {
            (VALUES, _) => {
                let fits = rest.len() == values.len();
                return fits.then(|| values.copy_from_slice(rest)).ok_or(DeltaFault::Length);
            }
            (ONE_CLASS, _) => None,
            (BY_EXPONENT, Some(mantissa)) => Some(mantissa),
            _ => return Err(DeltaFault::Method),
        };
        match self.width {
            1 => apply_words::<1>(mantissa, rest, values),
            2 => apply_words::<2>(mantissa, rest, values),
            4 => apply_words::<4>(mantissa, rest, values),
            _ => apply_words::<8>(mantissa, rest, values),
        }
    }

    /// Whether a code has the new values themselves. Then it gives them whatever the old ones are.
    #[must_use]
    pub fn replaces(code: &[u8]) -> bool {
        code.first() == Some(&VALUES)
    }

    fn encode_words<const W: usize>(&self, base: &[u8], new: &[u8]) -> Vec<u8> {
        let whole =
            Class { count: base.as_chunks::<W>().0.len() as u64, changes: changes::<W>(base, new) };
        if whole.changes.is_empty() {
            return Vec::new();
        }
        let mut code = encode_classes::<W>(ONE_CLASS, [&whole]);
        if let Some(mantissa) = self.mantissa {
            let words = base.as_chunks::<W>().0;
            // One class is applied several times faster.
            let most = code.len().strict_sub(code.len() >> 5);
            if estimated_len(mantissa, words, &whole.changes) < most {
                let classes = in_classes(mantissa, words, &whole.changes);
                let by_exponent = encode_classes::<W>(BY_EXPONENT, &classes);
                if by_exponent.len() < most {
                    code = by_exponent;
                }
            }
        }
        if code.len() > new.len() {
            code.clear();
            code.push(VALUES);
            code.extend_from_slice(new);
        }
        code
    }
}

/// An element that differs.
#[derive(Clone, Copy)]
struct Change {
    /// Its index in the class.
    at: u64,
    /// The difference: twice its absolute value less 1, and one more if it is negative.
    step: u64,
}

impl Change {
    fn between<const W: usize>(at: u64, base: u64, new: u64) -> Self {
        let unused = 64u32.strict_sub(step_bits::<W>());
        // The difference modulo 2^(8 W), as a signed number.
        let difference = new.wrapping_sub(base).wrapping_shl(unused).cast_signed() >> unused;
        let size = difference.unsigned_abs().wrapping_sub(1);
        let step = size.wrapping_shl(1) | u64::from(difference < 0);
        Change { at, step }
    }
}

/// The value that a step leads to. Signs are random, so a branch would be slow.
const fn add_step(base: u64, step: u64) -> u64 {
    let size = (step >> 1).wrapping_add(1);
    let sign = (step & 1).wrapping_neg();
    base.wrapping_add((size ^ sign).wrapping_sub(sign))
}

/// Elements that are coded together.
#[derive(Clone, Default)]
struct Class {
    count: u64,
    changes: Vec<Change>,
}

/// Bits that hold every step.
const fn step_bits<const W: usize>() -> u32 {
    match W {
        1 => 8,
        2 => 16,
        4 => 32,
        _ => 64,
    }
}

/// The elements that differ.
fn changes<const W: usize>(base: &[u8], new: &[u8]) -> Vec<Change> {
    /// Bytes that are compared at once.
    const BLOCK: usize = 32;
    let mut changes = Vec::new();
    let mut add = |first: u64, base: &[u8], new: &[u8]| {
        for (place, (base, new)) in (first..).zip(words::<W>(base).zip(words::<W>(new))) {
            if base != new {
                changes.push(Change::between::<W>(place, base, new));
            }
        }
    };
    let (blocks, rest) = base.as_chunks::<BLOCK>();
    let (new_blocks, new_rest) = new.as_chunks::<BLOCK>();
    let mut places = (0u64..).step_by(BLOCK.strict_div(W));
    for ((base, new), first) in blocks.iter().zip(new_blocks).zip(places.by_ref()) {
        if base != new {
            add(first, base, new);
        }
    }
    add(places.next().unwrap_or_default(), rest, new_rest);
    changes
}

/// The elements of each exponent, with their changes.
fn in_classes<const W: usize>(mantissa: u32, base: &[[u8; W]], changes: &[Change]) -> Vec<Class> {
    let mut classes = vec![Class::default(); CLASSES];
    let mut changes = changes.iter().peekable();
    for (place, value) in (0u64..).zip(base) {
        let Some(class) = classes.get_mut(usize::from(class_of(word(value), mantissa))) else {
            continue;
        };
        if let Some(change) = changes.next_if(|change| change.at == place) {
            class.changes.push(Change { at: class.count, ..*change });
        }
        class.count = class.count.wrapping_add(1);
    }
    classes
}

/// About as many bytes as classes by exponent take.
fn estimated_len<const W: usize>(mantissa: u32, base: &[[u8; W]], changes: &[Change]) -> usize {
    #[derive(Clone, Copy, Default)]
    struct Estimate {
        elements: u64,
        changes: u64,
        steps: u64,
        /// All bits of the steps.
        bits: u64,
    }
    if changes.len() < WORTH_CLASSES {
        return usize::MAX;
    }
    let mut classes = [Estimate::default(); CLASSES];
    let each = (base.len() / SAMPLES).max(1);
    for value in base.iter().step_by(each) {
        if let Some(class) = classes.get_mut(usize::from(class_of(word(value), mantissa))) {
            class.elements = class.elements.wrapping_add(each as u64);
        }
    }
    for change in changes {
        let value = base.get(in_memory(change.at)).map_or(0, word);
        if let Some(class) = classes.get_mut(usize::from(class_of(value, mantissa))) {
            class.changes = class.changes.wrapping_add(1);
            class.steps = class.steps.saturating_add(change.step); // An estimate.
            class.bits |= change.step;
        }
    }
    let bits = classes.iter().map(|class| {
        if class.changes == 0 {
            return 0;
        }
        // A sample may find fewer elements than changes.
        let gaps = class.elements.saturating_sub(class.changes);
        let plain = class.changes.strict_mul(bit_len(class.bits).into());
        let steps = estimated_bits(class.changes, class.steps).min(plain);
        estimated_bits(class.changes, gaps).strict_add(steps).strict_add(CLASS_BITS)
    });
    in_memory(bits.fold(0, u64::strict_add) >> 3)
}

fn encode_classes<'c, const W: usize>(
    method: u8,
    classes: impl IntoIterator<Item = &'c Class>,
) -> Vec<u8> {
    let mut bits = BitWriter::new(method);
    let (mut gaps, mut steps) = (Vec::new(), Vec::new());
    for Class { count, changes } in classes {
        bits.bits(changes.len() as u64, bit_len(*count));
        if changes.is_empty() {
            continue;
        }
        gaps.clear();
        steps.clear();
        let mut next = 0;
        for change in changes {
            gaps.push(change.at.wrapping_sub(next));
            steps.push(change.step);
            next = change.at.wrapping_add(1);
        }
        let of_gaps = bits.code_of(&gaps, GAP_BITS);
        let of_steps = bits.code_of(&steps, step_bits::<W>());
        bits.numbers(&gaps, of_gaps);
        bits.numbers(&steps, of_steps);
    }
    bits.finish()
}

fn apply_words<const W: usize>(
    mantissa: Option<u32>,
    code: &[u8],
    values: &mut [u8],
) -> Result<(), DeltaFault> {
    let (values, _) = values.as_chunks_mut::<W>();
    let mut bits = BitReader::new(code);
    let mut places = Vec::new();
    let Some(mantissa) = mantissa else {
        let count = values.len() as u64;
        let place = |at: u64| usize::try_from(at).ok().filter(|_| at < count);
        read_class(&mut bits, count, place, &mut places, values)?;
        return bits.finish();
    };
    let (order, counts) = by_exponent(mantissa, values);
    let mut order = &order[..];
    for count in counts {
        let (class, rest) = order.split_at_checked(count).unwrap_or_default();
        let place = |at: u64| {
            let at = usize::try_from(at).ok()?;
            class.get(at).map(|place| *place as usize)
        };
        read_class(&mut bits, count as u64, place, &mut places, values)?;
        order = rest;
    }
    bits.finish()
}

/// Reads the changes of a class of `count` elements and applies them. `place_of` gives the index in the
/// stretch from the index in the class.
fn read_class<const W: usize>(
    bits: &mut BitReader<'_>,
    count: u64,
    place_of: impl Fn(u64) -> Option<usize>,
    places: &mut Vec<usize>,
    values: &mut [[u8; W]],
) -> Result<(), DeltaFault> {
    let changes = bits.bits(bit_len(count))?;
    if changes > count {
        return Err(DeltaFault::Count);
    }
    if changes == 0 {
        return Ok(());
    }
    let of_gaps = bits.code(GAP_BITS)?;
    let of_steps = bits.code(step_bits::<W>())?;
    places.clear();
    let mut at = 0u64;
    for _ in 0..changes {
        at = at.checked_add(bits.number(of_gaps)?).ok_or(DeltaFault::Gap)?;
        places.push(place_of(at).ok_or(DeltaFault::Gap)?);
        at = at.wrapping_add(1);
    }
    for place in places {
        let step = bits.number(of_steps)?;
        if bit_len(step) > step_bits::<W>() {
            return Err(DeltaFault::Size);
        }
        let value = values.get_mut(*place).ok_or(DeltaFault::Gap)?;
        set_word(value, add_step(word(value), step));
    }
    Ok(())
}

/// The places of the elements, sorted by their class, and the number of elements of each class.
fn by_exponent<const W: usize>(mantissa: u32, values: &[[u8; W]]) -> (Vec<u32>, [usize; CLASSES]) {
    let classes = values.iter().map(|value| class_of(word(value), mantissa));
    let classes: Vec<u8> = classes.collect();
    let mut counts = [0usize; CLASSES];
    for class in &classes {
        if let Some(count) = counts.get_mut(usize::from(*class)) {
            *count = count.wrapping_add(1);
        }
    }
    let mut start = 0usize;
    let mut next = counts.map(|count| {
        let first = start;
        start = start.wrapping_add(count);
        first
    });
    let mut order = vec![0; values.len()];
    for (place, class) in (0u32..).zip(classes) {
        let Some(next) = next.get_mut(usize::from(class)) else {
            continue;
        };
        if let Some(slot) = order.get_mut(*next) {
            *slot = place;
        }
        *next = next.wrapping_add(1);
    }
    (order, counts)
}

/// The lowest 8 bits of the exponent.
const fn class_of(value: u64, mantissa: u32) -> u8 {
    low_byte(value.wrapping_shr(mantissa))
}

#[expect(clippy::cast_possible_truncation, reason = "the rest is cut off on purpose")]
const fn low_byte(value: u64) -> u8 {
    value as u8
}

fn words<const W: usize>(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.as_chunks::<W>().0.iter().map(word)
}

/// A little-endian number.
fn word<const W: usize>(bytes: &[u8; W]) -> u64 {
    let mut word = [0; 8];
    for (to, from) in word.iter_mut().zip(bytes) {
        *to = *from;
    }
    u64::from_le_bytes(word)
}

fn set_word<const W: usize>(bytes: &mut [u8; W], word: u64) {
    for (to, from) in bytes.iter_mut().zip(word.to_le_bytes()) {
        *to = from;
    }
}
