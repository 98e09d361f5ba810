//! `quantized_group`: packed integers, with a scale and a zero-point per group. Spec:
//! formats/quantized_group.

use std::borrow::Cow;

use zt_manifest::{DType, Text};

use crate::base::{
    AttributeFault, Buffer, Dense, Elements, FormatViolation, NewObject, ObjectFormat, Parts,
    Registry, Result, Signature, ToObject, View, element_count,
};
use crate::formats::number::{Number, Numbers, check_numbers, expect_known, to_numbers};
use crate::formats::quantization::{Quantization, ZeroKind};

const PACKED_WEIGHT: &str = "packed_weight";
const SCALES: &str = "scales";
const ZEROS: &str = "zeros";

/// The rules of `quantized_group`.
///
/// * The attributes hold a [`Quantization`]. Other attributes are permitted.
/// * `packed_weight` has the words that the values need.
/// * `scales` has a floating-point number for each group. `zeros` is optional, and has a real
///   number for each group.
///
/// The specification leaves the arithmetic open; `spec/formats/quantized_group.md` defines it. If
/// the registry does not know the logical type of one of the three, only the attributes are
/// checked.
#[derive(Debug, Clone, Copy, Default)]
pub struct QuantizedGroupFormat;

impl ObjectFormat for QuantizedGroupFormat {
    fn id(&self) -> &str {
        QuantizedGroup::FORMAT
    }

    fn check(&self, signature: &Signature<'_>, registry: &Registry) -> Result<()> {
        let packed = signature.component(PACKED_WEIGHT)?;
        let scales = signature.component(SCALES)?;
        let zeros = signature.get(ZEROS);
        let count = signature.element_count(PACKED_WEIGHT)?;
        let quantization = Quantization::from_attributes(signature.attributes, signature.shape)?;
        if !is_understood(signature, registry) {
            return Ok(());
        }

        let expected = quantization.packing.dtype;
        if let Some(found) = packed.dtype.filter(|found| *found != expected) {
            let fault = AttributeFault::Component { expected, found };
            let name = "packing";
            return Err(FormatViolation::Attribute { name, fault }.of(PACKED_WEIGHT));
        }
        packed.expect_plain(expected)?;
        packed.expect_elements(quantization.word_count(count))?;
        let groups = quantization.group_count(count);
        check_numbers(scales, Numbers::Floats, registry)?;
        scales.expect_values(groups, registry)?;
        if let Some(zeros) = zeros {
            check_numbers(zeros, Numbers::Reals, registry)?;
            zeros.expect_values(groups, registry)?;
        }
        Ok(())
    }

    fn data_roles(&self) -> Option<&[&str]> {
        Some(&[])
    }

    fn is_of_value(&self, role: &str, _: &Signature<'_>) -> bool {
        [PACKED_WEIGHT, SCALES, ZEROS].contains(&role)
    }

    fn dense_type(&self, signature: &Signature<'_>, _: &Registry) -> Option<(DType, Option<Text>)> {
        // `to_dense` computes with the specification's types.
        is_understood(signature, &Registry::builtin()).then_some((DType::F32, None))
    }

    fn value_type(&self, signature: &Signature<'_>) -> Option<Text> {
        let bits = Quantization::bits_of(signature.attributes).ok()?;
        Some(Text::Owned(format!("{bits}-bit")))
    }

    fn parameters(&self) -> &[&str] {
        &["bits", "group_size", "packing", "signed", "zero_kind"]
    }

    fn to_dense(&self, parts: Parts<'_>) -> Result<Dense<'static>> {
        QuantizedGroup::from_parts(parts)?.to_dense()
    }

    fn is_flat(&self) -> bool {
        true
    }

    fn row_unit(&self, signature: &Signature<'_>, registry: &Registry) -> Option<u64> {
        if !is_understood(signature, registry) {
            return None;
        }
        // Parts have other shapes, and so other groups.
        if Quantization::has_group_for_each_row(signature.attributes) {
            return None;
        }
        let (_, row) = signature.shape.split_first()?;
        let row = element_count(row)?;
        element_count(signature.shape)?;
        let quantization =
            Quantization::from_attributes(signature.attributes, signature.shape).ok()?;
        // A larger group is valid only in an array that is as large, and parts are smaller.
        i32::try_from(quantization.group_size).ok()?;
        // Rows until both a group and a word end with one.
        let words = multiple(row, quantization.packing.per_word.into())?;
        let groups = multiple(row, quantization.group_size)?;
        groups.checked_mul(multiple(groups, words)?)
    }

    fn expected_len(
        &self,
        role: &str,
        signature: &Signature<'_>,
        registry: &Registry,
    ) -> Option<u64> {
        let component = signature.get(role)?;
        if !is_understood(signature, registry) {
            return None;
        }
        let count = element_count(signature.shape)?;
        let quantization =
            Quantization::from_attributes(signature.attributes, signature.shape).ok()?;
        let value_len = component.value_len(registry).ok()??;
        match role {
            PACKED_WEIGHT => quantization.word_count(count).checked_mul(value_len),
            SCALES | ZEROS => quantization.group_count(count).checked_mul(value_len),
            _ => None,
        }
    }
}

/// The least number whose product with `len` is a multiple of `unit`; `None` if `len` is 0.
fn multiple(len: u64, unit: u64) -> Option<u64> {
    let (mut divisor, mut rest) = (unit, len);
    while let Some(remainder) = divisor.checked_rem(rest) {
        (divisor, rest) = (rest, remainder);
    }
    unit.checked_div(divisor).filter(|_| len > 0)
}

/// Whether the registry knows all types that the lengths depend on.
fn is_understood(signature: &Signature<'_>, registry: &Registry) -> bool {
    let roles = [PACKED_WEIGHT, SCALES, ZEROS];
    let mut components = roles.iter().filter_map(|role| signature.get(role));
    components.all(|component| component.is_understood(registry))
}

/// An array of quantized values.
///
/// Always well-formed: the lengths of the components fit shape and quantization, and the arithmetic
/// knows their types. Borrowed components stay borrowed.
///
/// ```
/// use zt_formats::{Packing, Quantization, QuantizedGroup};
/// use zt_formats::DType;
///
/// let packing = Packing { per_word: 2, dtype: DType::U8 };
/// let group = QuantizedGroup::new(
///     [4],
///     Quantization::new(4, 2, packing),
///     &[0x21u8, 0xf8],
///     &[0.5f32, 2.0],
///     Some((&[1.0f32, 8.0]).into()),
/// )?;
/// assert_eq!(group.quantized().collect::<Vec<_>>(), [1, 2, 8, 15]);
/// assert_eq!(*group.to_dense()?.as_slice::<f32>()?, [0.0, 0.5, 0.0, 14.0]);
/// # Ok::<(), zt_formats::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct QuantizedGroup<'a> {
    shape: Vec<u64>,
    quantization: Quantization,
    packed: Elements<'a>,
    scales: Elements<'a>,
    zeros: Option<Elements<'a>>,
    /// The product of the shape.
    count: u64,
}

impl<'a> QuantizedGroup<'a> {
    /// An array of `shape` with the values `packed`, in row-major order.
    ///
    /// # Errors
    ///
    /// Malformed: a rule of [`QuantizedGroupFormat`]. Unsupported: a logical type outside the
    /// specification.
    pub fn new(
        shape: impl Into<Vec<u64>>,
        quantization: Quantization,
        packed: impl Into<Elements<'a>>,
        scales: impl Into<Elements<'a>>,
        zeros: Option<Elements<'a>>,
    ) -> Result<Self> {
        let mut elements = vec![
            (Text::Borrowed(PACKED_WEIGHT), packed.into()),
            (Text::Borrowed(SCALES), scales.into()),
        ];
        elements.extend(zeros.map(|zeros| (Text::Borrowed(ZEROS), zeros)));
        Self::from_parts(Parts {
            shape: Cow::Owned(shape.into()),
            attributes: Cow::Owned(quantization.to_attributes()),
            elements,
        })
    }

    /// The dimensions.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The quantization and the packing.
    pub const fn quantization(&self) -> &Quantization {
        &self.quantization
    }

    /// The packed words.
    pub const fn packed(&self) -> &Elements<'a> {
        &self.packed
    }

    /// The scale of each group.
    pub const fn scales(&self) -> &Elements<'a> {
        &self.scales
    }

    /// The zero-point of each group; `None` if all are zero.
    pub const fn zeros(&self) -> Option<&Elements<'a>> {
        self.zeros.as_ref()
    }

    /// The quantized values in row-major order, as many as the shape has.
    pub fn quantized(&self) -> Quantized<'_> {
        Quantized {
            words: &self.packed.bytes,
            width: self.packed.dtype.byte_len(),
            per_word: self.quantization.packing.per_word,
            bits: self.quantization.bits,
            signed: self.quantization.signed,
            word: 0,
            in_word: 0,
            left: self.count,
        }
    }

    /// The values as f32: `(quantized - zero) * scale`, or `quantized * scale + zero` if
    /// zero-points are additive. Each step is rounded to f32, and none are fused. If scales are
    /// f64, the steps are in f64, and only the result is rounded to f32.
    ///
    /// # Errors
    ///
    /// Allocation.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "f64 is rounded to f32 at the end, as is documented"
    )]
    pub fn to_dense(&self) -> Result<Dense<'static>> {
        let mut out = Buffer::try_zeroed_values(self.count, 4)?;
        let (values, _) = out.as_chunks_mut::<4>();
        let is_wide = self.scales.dtype == DType::F64;
        match (is_wide, self.quantization.zero_kind) {
            (false, ZeroKind::Subtractive) => {
                self.fill(values, |q, zero: f32, scale| (q as f32 - zero) * scale)
            }
            (false, ZeroKind::Additive) => {
                self.fill(values, |q, zero: f32, scale| q as f32 * scale + zero)
            }
            (true, ZeroKind::Subtractive) => {
                self.fill(values, |q, zero: f64, scale| ((q as f64 - zero) * scale) as f32)
            }
            (true, ZeroKind::Additive) => {
                self.fill(values, |q, zero: f64, scale| (q as f64 * scale + zero) as f32)
            }
        }?;
        let elements = Elements::new(DType::F32, out);
        Ok(Dense::from_checked(self.shape.clone(), elements))
    }

    /// Computes each value from its quantized value, its zero-point and its scale, in type `T`.
    fn fill<T: Number>(
        &self,
        values: &mut [[u8; 4]],
        value: impl Fn(i64, T, T) -> f32,
    ) -> Result<()> {
        let scales: Vec<T> = to_numbers(SCALES, &self.scales)?;
        let zeros: Vec<T> = match &self.zeros {
            Some(zeros) => to_numbers(ZEROS, zeros)?,
            None => Vec::new(),
        };
        let zeros = zeros.into_iter().chain(std::iter::repeat(T::default()));
        // A group larger than the address space holds all values.
        let group_size = usize::try_from(self.quantization.group_size).unwrap_or(usize::MAX);
        let mut quantized = self.quantized();
        for ((group, scale), zero) in values.chunks_mut(group_size.max(1)).zip(scales).zip(zeros) {
            for (out, quantized) in group.iter_mut().zip(quantized.by_ref()) {
                *out = value(quantized, zero, scale).to_le_bytes();
            }
        }
        Ok(())
    }
}

impl<'a> View<'a> for QuantizedGroup<'a> {
    const FORMAT: &'static str = "quantized_group";

    fn from_parts(mut parts: Parts<'a>) -> Result<Self> {
        let registry = Registry::builtin();
        registry.check(Self::FORMAT, &parts.signature())?;
        let count = parts.signature().element_count(PACKED_WEIGHT)?;
        let packed = parts.take(PACKED_WEIGHT)?;
        let scales = parts.take(SCALES)?;
        let zeros = parts.take_if_any(ZEROS);
        for elements in [&packed, &scales].into_iter().chain(&zeros) {
            expect_known(elements, &registry)?;
        }
        Ok(QuantizedGroup {
            quantization: Quantization::from_attributes(&parts.attributes, &parts.shape)?,
            shape: parts.shape.into_owned(),
            packed,
            scales,
            zeros,
            count,
        })
    }
}

impl ToObject for QuantizedGroup<'_> {
    fn to_object(&self) -> Result<NewObject<'_>> {
        let zeros = self.zeros.as_ref().map(|zeros| (ZEROS, zeros.borrow()));
        let components = [(PACKED_WEIGHT, self.packed.borrow()), (SCALES, self.scales.borrow())];
        let attributes = Some(self.quantization.to_attributes());
        let (format, components) = (Self::FORMAT, components.into_iter().chain(zeros));
        Ok(NewObject::new(&self.shape, format, attributes, components))
    }
}

/// Quantized values in order; see [`QuantizedGroup::quantized`]. Skipping with [`Iterator::nth`]
/// takes no time.
#[derive(Debug, Clone)]
pub struct Quantized<'a> {
    /// The words after the current one.
    words: &'a [u8],
    width: usize,
    per_word: u32,
    bits: u32,
    signed: bool,
    /// The rest of the current word, with the next value in the lowest bits.
    word: u64,
    in_word: u32,
    left: u64,
}

impl Quantized<'_> {
    fn load(&mut self) -> Option<()> {
        let (word, words) = self.words.split_at_checked(self.width)?;
        let mut bytes = [0; 8];
        bytes.get_mut(..self.width)?.copy_from_slice(word);
        self.word = u64::from_le_bytes(bytes);
        self.in_word = self.per_word;
        self.words = words;
        Some(())
    }
}

impl Iterator for Quantized<'_> {
    /// A value of 1 to 32 bits, signed or not.
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        self.left = self.left.checked_sub(1)?;
        if self.in_word == 0 {
            self.load()?;
        }
        self.in_word = self.in_word.checked_sub(1)?;
        // 1 to 32 bits of 64: every shift is in range.
        let above = u64::BITS.wrapping_sub(self.bits);
        let top = self.word.wrapping_shl(above).cast_signed();
        self.word = self.word.wrapping_shr(self.bits);
        Some(if self.signed {
            top.wrapping_shr(above)
        } else {
            top.cast_unsigned().wrapping_shr(above).cast_signed()
        })
    }

    fn nth(&mut self, n: usize) -> Option<i64> {
        let mut skipped = n as u64;
        let Some(left) = self.left.checked_sub(skipped) else {
            self.left = 0;
            return None;
        };
        self.left = left;
        let in_word = u64::from(self.in_word);
        if let Some(beyond) = skipped.checked_sub(in_word) {
            let words = beyond.checked_div(self.per_word.into())?;
            let bytes = usize::try_from(words).ok()?.checked_mul(self.width)?;
            self.words = self.words.get(bytes..)?;
            skipped = beyond.checked_rem(self.per_word.into())?;
            self.in_word = 0;
            if skipped > 0 {
                self.load()?;
            }
        }
        for _ in 0..skipped {
            self.word = self.word.wrapping_shr(self.bits);
            self.in_word = self.in_word.checked_sub(1)?;
        }
        self.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.left);
        (left.unwrap_or(usize::MAX), left.ok())
    }
}
